"""A language model behind the HTTP interface that clients of OpenAI's speak: /v1/models, /v1/chat/completions, /v1/completions.

One thread for each connection; the model answers one request after the other. Fields that would change the answer and are not there (several choices,
top_p, penalties, log probabilities, tools) are refused, unknown ones are ignored. On a loopback address only requests are answered that name it as
their host, so that no page of another site can reach the server by a name that leads here.
"""
from __future__ import annotations
from collections.abc import Callable, Iterator, Mapping
import http.client
import http.server
import ipaddress
import json
import math
import select
import socket
import socketserver
import sys
import threading
import time
from typing import Any
import uuid

from tinyhw.errors import ArgumentError, ConfigError, TinyError
from tinyhw.llm.chat import FallbackTemplate
from tinyhw.llm.tokenizer import SimpleTokenizer
from tinyhw.named_tuple import NamedTuple

MOST_BYTES = 8 << 20       # of a request's body
MOST_CONNECTIONS = 64      # more are sent away
SECONDS = 30.0             # for a request to arrive, and for a client to take what it is sent
MOST_STOPS = 16

class RequestError(Exception):
  """A request that gets an error as its answer: status of HTTP, and what is wrong."""
  def __init__(self, status: int, message: str, code: str | None = None, **headers: str):
    super().__init__(message)
    self.status, self.message, self.code, self.headers = status, message, code, headers

class Gone(Exception):
  """The client has closed its connection."""

# ***** what a request asks for *****

class Asked(NamedTuple):
  """A request's fields."""
  ids: list[int]
  temperature: float
  most: int | None
  stops: list[str]
  seed: int | None
  stream: bool
  usage: bool

def _number(low: float, high: float) -> Callable[[Any], bool]:
  return lambda x: type(x) in (int, float) and math.isfinite(x) and low <= x <= high
def _whole(low: int, high: int) -> Callable[[Any], bool]: return lambda x: type(x) is int and low <= x <= high

# field: (what it is if it is right, what it must be)
_FIELDS: dict[str, tuple[Callable[[Any], bool], str]] = {
  "temperature": (_number(0, 1e6), "a number from 0 on"), "max_tokens": (_whole(1, 1 << 31), "a whole number above 0"),
  "max_completion_tokens": (_whole(1, 1 << 31), "a whole number above 0"), "seed": (_whole(-(1 << 63), (1 << 63) - 1), "a whole number of 64 bits"),
  "stream": (lambda x: type(x) is bool, "true or false"), "stream_options": (lambda x: isinstance(x, dict), "an object"),
  "stop": (lambda x: isinstance(x, str) or (isinstance(x, list) and len(x) <= MOST_STOPS and all(isinstance(s, str) for s in x)),
           f"a text or up to {MOST_STOPS} texts"),
  "model": (lambda x: isinstance(x, str), "a text"),
}
# field: the values that ask for nothing that is not there
_HARMLESS: dict[str, tuple[Any, ...]] = {
  "n": (1,), "best_of": (1,), "top_p": (1,), "presence_penalty": (0,), "frequency_penalty": (0,), "logprobs": (False, 0), "top_logprobs": (0,),
  "tools": ([],), "functions": ([],), "logit_bias": ({},), "response_format": ({"type": "text"},), "echo": (False,), "suffix": ("",),
}

def parse(body: bytes) -> dict[str, Any]:
  """A request's JSON object, its fields checked. Raises RequestError."""
  def refuse(name: str) -> Any: raise ValueError(f"{name} is no number of JSON")
  try: found = json.loads(body.decode("utf-8"), parse_constant=refuse)
  except (ValueError, RecursionError) as error: raise RequestError(400, f"the body is no JSON: {error}") from None
  if not isinstance(found, dict): raise RequestError(400, "the body is no JSON object")
  fields = {name: value for name, value in found.items() if value is not None}
  for name, (right, what) in _FIELDS.items():
    if name in fields and not right(fields[name]): raise RequestError(400, f"{name} must be {what}")
  for name, values in _HARMLESS.items():
    if name in fields and fields[name] not in values: raise RequestError(400, f"{name} is not supported; leave it out", "unsupported_parameter")
  return fields

def text_of(content: Any) -> Any:
  """A message's content, which may come in parts."""
  if not isinstance(content, list): return content
  if not all(isinstance(part, dict) and part.get("type") == "text" and isinstance(part.get("text"), str) for part in content):
    raise RequestError(400, "of a message's content only texts are understood: no images, sounds or files")
  return "".join(part["text"] for part in content)

class Stops:
  """Text on its way to the client, up to the first of some texts; what may be the beginning of one waits.

  >>> stops = Stops(["END"])
  >>> stops.feed("aE"), stops.feed("Nb"), stops.feed("ENDc"), stops.found
  ('a', 'ENb', '', True)
  """
  def __init__(self, stops: list[str]):
    self.stops, self.waiting, self.found = [s for s in stops if s], "", False

  def feed(self, text: str, last: bool = False) -> str:
    """More text; gives what can be sent. last: nothing comes behind it."""
    self.waiting += text
    places = [place for stop in self.stops if (place := self.waiting.find(stop)) >= 0]
    if places:
      self.found = True
      sent, self.waiting = self.waiting[:min(places)], ""
      return sent
    held = 0 if last else max((k for stop in self.stops for k in range(1, len(stop)) if self.waiting.endswith(stop[:k])), default=0)
    cut = len(self.waiting) - held
    sent, self.waiting = self.waiting[:cut], self.waiting[cut:]
    return sent

# ***** answers *****

class Answer:
  """The form of answers, of which chats and completions have one each."""
  def __init__(self, chat: bool, model: str):
    self.chat, self.model = chat, model
    self.id, self.created = f"{'chatcmpl' if chat else 'cmpl'}-{uuid.uuid4().hex}", int(time.time())

  def whole(self, text: str, reason: str, usage: dict[str, int]) -> dict[str, Any]:
    choice = {"message": {"role": "assistant", "content": text}} if self.chat else {"text": text}
    return self._object("", [{"index": 0, **choice, "logprobs": None, "finish_reason": reason}]) | {"usage": usage}

  def part(self, text: str, first: bool = False, reason: str | None = None) -> dict[str, Any]:
    delta = ({"role": "assistant"} if first else {}) | ({"content": text} if text or first else {})
    choice: dict[str, Any] = {"delta": delta} if self.chat else {"text": text}
    return self._object(".chunk", [{"index": 0, **choice, "logprobs": None, "finish_reason": reason}])

  def end(self, usage: dict[str, int]) -> dict[str, Any]: return self._object(".chunk", []) | {"usage": usage}

  def _object(self, kind: str, choices: list[dict[str, Any]]) -> dict[str, Any]:
    name = f"chat.completion{kind}" if self.chat else "text_completion"
    return {"id": self.id, "object": name, "created": self.created, "model": self.model, "choices": choices}

class Run:
  """One request's text, made token by token."""
  def __init__(self, server: LLMServer, asked: Asked, alive: Callable[[], None]):
    self.server, self.asked, self.alive = server, asked, alive
    self.count, self.reason = 0, "length"

  @property
  def usage(self) -> dict[str, int]:
    return {"prompt_tokens": len(self.asked.ids), "completion_tokens": self.count, "total_tokens": len(self.asked.ids) + self.count}

  def pieces(self) -> Iterator[str]:
    """The text in pieces, as they come; other requests wait meanwhile. Raises Gone when the client is."""
    asked, tok = self.asked, self.server.tok
    while not self.server.turn.acquire(timeout=0.25): self.alive()
    try:
      more, stops = tok.stream_decoder(), Stops(asked.stops)
      tokens = self.server.model.generate(asked.ids, temperature=asked.temperature, seed=asked.seed)
      while asked.most is None or self.count < asked.most:
        self.alive()
        token = next(tokens, None)
        if token is None: break
        self.count += 1
        if tok.is_end(token):
          self.reason = "stop"
          break
        if piece := stops.feed(more(token)): yield piece
        if stops.found: break
      if not stops.found and (piece := stops.feed(more(), last=True)): yield piece
      if stops.found: self.reason = "stop"
    finally: self.server.turn.release()

# ***** HTTP *****

class Handler(http.server.BaseHTTPRequestHandler):
  """One connection."""
  server: LLMServer
  protocol_version, server_version, sys_version = "HTTP/1.1", "tinyhw", ""
  timeout = SECONDS
  disable_nagle_algorithm = True

  def log_message(self, format: str, *args: Any) -> None:
    if self.server.log: sys.stderr.write(f"{self.address_string()} {format % args}\n")

  def do_GET(self) -> None: self._answer(self._get)
  def do_POST(self) -> None: self._answer(self._post)
  def do_PUT(self) -> None: self._answer(self._wrong_method)
  do_DELETE = do_PATCH = do_OPTIONS = do_HEAD = do_PUT

  def _answer(self, respond: Callable[[], None]) -> None:
    """Respond; whatever goes wrong becomes an error with its status. An answer that has begun cannot become another: its connection ends."""
    self.begun = False
    try:
      self._check_host()
      respond()
    except (Gone, ConnectionError, TimeoutError): self.close_connection = True
    except RequestError as error: self._error(error)
    except ArgumentError as error: self._error(RequestError(400, error.message))
    except TinyError as error: self._error(RequestError(500, str(error)))
    except Exception as error:   # noqa: BLE001  # the server lives on, and says what it was
      sys.stderr.write(f"{self.path}: {type(error).__name__}: {error}\n")
      self._error(RequestError(500, f"an error in the server: {type(error).__name__}"))

  def _check_host(self) -> None:
    if self.server.hosts is None: return
    host, origin = self.headers.get("Host", ""), self.headers.get("Origin")
    if host not in self.server.hosts: raise RequestError(403, f"this server does not answer for the host {host!r}")
    if origin is not None and origin.partition("://")[2].partition(":")[0] not in ("127.0.0.1", "localhost", "[::1]"):
      raise RequestError(403, f"this server does not answer to pages of {origin!r}")

  def _error(self, error: RequestError) -> None:
    kind = "server_error" if error.status >= 500 else "invalid_request_error"
    value = {"error": {"message": error.message, "type": kind, "param": None, "code": error.code}}
    try:
      if self.begun:
        self._event(value)
        self.close_connection = True
      else: self._json(error.status, value, **{"Connection": "close"} | error.headers)   # what is left of the request is not read
    except OSError: self.close_connection = True

  def _json(self, status: int, value: Any, **headers: str) -> None:
    data = json.dumps(value).encode("ascii")
    self.begun = True
    self.send_response(status)
    for name, text in {"Content-Type": "application/json", "Content-Length": str(len(data)), **headers}.items(): self.send_header(name, text)
    self.end_headers()
    if self.command != "HEAD": self.wfile.write(data)

  def _event(self, value: Any) -> None:
    """One event of a stream, sent at once."""
    data = b"data: " + (value if isinstance(value, bytes) else json.dumps(value).encode("ascii")) + b"\n\n"
    self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data) if self._in_chunks else data)

  @property
  def _in_chunks(self) -> bool:
    """Does the client know chunks? Else an answer of unknown length ends with its connection."""
    return self.request_version != "HTTP/1.0"

  def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
    """What the class above finds wrong, in the form of other errors."""
    self.begun, self.request_version = False, self.protocol_version   # not yet known: without one there would be no status
    self._error(RequestError(int(code), message or http.client.responses.get(int(code), "wrong request")))

  def _alive(self) -> None:
    """Raise Gone if the client has closed its connection."""
    if not select.select([self.connection], [], [], 0)[0]: return
    try: gone = not self.connection.recv(1, socket.MSG_PEEK)
    except OSError: gone = True
    if gone: raise Gone

  # ***** paths *****

  def _wrong_method(self) -> None: raise RequestError(405, f"{self.command} is not understood; use GET or POST", Allow="GET, POST")

  def _get(self) -> None:
    path = self.path.partition("?")[0].rstrip("/")
    entry = {"id": self.server.model_name, "object": "model", "created": self.server.started, "owned_by": "local"}
    if path == "/v1/models": self._json(200, {"object": "list", "data": [entry]})
    elif path == f"/v1/models/{self.server.model_name}": self._json(200, entry)
    elif path == "/health": self._json(200, {"status": "ok"})
    elif path in _POSTS: raise RequestError(405, f"{path} wants POST", Allow="POST")
    else: raise RequestError(404, f"there is nothing at {path or '/'}; there are /v1/models, {', '.join(_POSTS)}")

  def _post(self) -> None:
    path = self.path.partition("?")[0].rstrip("/")
    if path not in _POSTS: raise RequestError(404, f"there is nothing to POST to at {path or '/'}; there are {', '.join(_POSTS)}")
    fields = parse(self._body())
    name = fields.get("model", self.server.model_name)
    if name != self.server.model_name:
      raise RequestError(404, f"no model is called {name!r:.100}; there is {self.server.model_name!r}", "model_not_found")
    asked = self._asked(fields, _POSTS[path](self.server, fields))
    run, answer = Run(self.server, asked, self._alive), Answer(_POSTS[path] is _chat, self.server.model_name)
    if asked.stream: self._stream(run, answer)
    else: self._json(200, answer.whole("".join(run.pieces()), run.reason, run.usage))

  def _body(self) -> bytes:
    length = self.headers.get("Content-Length")
    if length is None or not (length.isascii() and length.isdigit()) or "Transfer-Encoding" in self.headers:
      raise RequestError(411, "the request does not say its Content-Length")
    if len(length) > 12 or int(length) > MOST_BYTES: raise RequestError(413, f"the body has more than {MOST_BYTES} bytes")
    body = self.rfile.read(int(length))
    if len(body) < int(length): raise Gone
    return body

  def _asked(self, fields: Mapping[str, Any], ids: list[int]) -> Asked:
    if not ids: raise RequestError(400, "the prompt is empty")
    place = self.server.model.config.max_context
    if len(ids) > place: raise RequestError(400, f"the prompt has {len(ids)} tokens, and the context {place}", "context_length_exceeded")
    stop = fields.get("stop", [])
    return Asked(ids, float(fields.get("temperature", 0.0)), fields.get("max_completion_tokens", fields.get("max_tokens")),
                 [stop] if isinstance(stop, str) else stop, fields.get("seed"), fields.get("stream", False),
                 bool(fields.get("stream_options", {}).get("include_usage", False)))

  def _stream(self, run: Run, answer: Answer) -> None:
    """The answer as events (text/event-stream), each sent when it is there."""
    pieces = run.pieces()
    try:
      first = next(pieces, "")   # what cannot be done is an error with its status, not an event
      self.begun = True
      self.send_response(200)
      ending = ("Transfer-Encoding", "chunked") if self._in_chunks else ("Connection", "close")
      for name, text in (("Content-Type", "text/event-stream"), ("Cache-Control", "no-cache"), ending): self.send_header(name, text)
      self.end_headers()
      self._event(answer.part(first, first=True))
      for piece in pieces: self._event(answer.part(piece))
      self._event(answer.part("", reason=run.reason))
      if run.asked.usage: self._event(answer.end(run.usage))
      self._event(b"[DONE]")
      if self._in_chunks: self.wfile.write(b"0\r\n\r\n")
    finally: getattr(pieces, "close")()   # lets the next request have its turn

def _chat(server: LLMServer, fields: Mapping[str, Any]) -> list[int]:
  messages = fields.get("messages")
  if not isinstance(messages, list) or not messages: raise RequestError(400, "messages must be a list of messages, at least one")
  if not all(isinstance(m, dict) for m in messages): raise RequestError(400, "a message must be an object with role and content")
  return server.tokens_of([{**m, "content": text_of(m.get("content"))} for m in messages])

def _completion(server: LLMServer, fields: Mapping[str, Any]) -> list[int]:
  prompt = fields.get("prompt")
  if isinstance(prompt, list) and len(prompt) == 1 and isinstance(prompt[0], (str, list)): prompt = prompt[0]
  if isinstance(prompt, list) and prompt and all(type(token) is int for token in prompt): return prompt
  if not isinstance(prompt, str): raise RequestError(400, "prompt must be one text, or the tokens of one")
  begin = [] if server.tok.bos_id is None else [server.tok.bos_id]
  return begin + server.tok.encode(prompt)

_POSTS: dict[str, Callable[[LLMServer, Mapping[str, Any]], list[int]]] = {"/v1/chat/completions": _chat, "/v1/completions": _completion}

class LLMServer(http.server.ThreadingHTTPServer):
  """Answers requests with a model. `serve_forever` works until `shutdown`; `server_close` frees the port.

  server_address: (host, port); port 0 is any that is free. Hosts that are not of this machine's loopback are open to everybody who can reach them.
  template: a FallbackTemplate, or an object with render(messages) -> text, or such a function. Raises ConfigError for an address that cannot be
  opened.
  """
  daemon_threads = True
  allow_reuse_address = sys.platform != "win32"
  request_queue_size = MOST_CONNECTIONS

  def __init__(self, server_address: tuple[str, int], model: Any, model_name: str, tok: SimpleTokenizer, template: Any):
    render = getattr(template, "render", template)
    if not callable(render): raise ArgumentError(f"a template is a function of messages, or an object with render, and not {template!r:.60}")
    self._render: Callable[[list[dict[str, Any]]], str] = render
    self.model, self.model_name, self.tok, self.template, self.log = model, model_name, tok, template, False
    self.turn = threading.Lock()         # of the request that the model works for
    self.started = int(time.time())
    self._places = threading.BoundedSemaphore(MOST_CONNECTIONS)
    host, port = server_address
    try:
      if ":" in host: self.address_family = socket.AF_INET6
      super().__init__(server_address, Handler)
    except (OSError, OverflowError, TypeError) as error:
      raise ConfigError(f"{host}:{port} cannot be opened: {getattr(error, 'strerror', None) or error}; choose another port, or 0") from None
    address, port = self.server_address[:2]
    loopback = ipaddress.ip_address(str(address)).is_loopback
    names = (str(address), "localhost", "127.0.0.1", "[::1]")
    self.hosts = frozenset(f"{name}:{port}" for name in names) | (frozenset(names) if port == 80 else frozenset()) if loopback else None

  def server_bind(self) -> None:
    """As the class above, but without asking for the name of the address, which may take a network."""
    socketserver.TCPServer.server_bind(self)
    self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])

  @property
  def url(self) -> str:
    host = str(self.server_address[0])
    return f"http://{f'[{host}]' if ':' in host else host}:{self.server_port}"

  def tokens_of(self, messages: list[dict[str, Any]]) -> list[int]:
    """The prompt that messages make."""
    if isinstance(self.template, FallbackTemplate): return self.template.encode(messages)   # users' special tokens are plain text
    return self.tok.encode(self._render(messages))

  def process_request(self, request: Any, client_address: Any) -> None:
    """A thread for a connection, unless there are too many."""
    if self._places.acquire(blocking=False): super().process_request(request, client_address)
    else:
      try: request.sendall(b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
      except OSError: pass   # it is sent away in any case
      self.shutdown_request(request)

  def process_request_thread(self, request: Any, client_address: Any) -> None:
    try: super().process_request_thread(request, client_address)
    finally: self._places.release()

  def handle_error(self, request: Any, client_address: Any) -> None:
    """A connection that broke is no event; anything else is told."""
    error = sys.exc_info()[1]
    if not isinstance(error, (ConnectionError, TimeoutError)): sys.stderr.write(f"{client_address}: {type(error).__name__}: {error}\n")
