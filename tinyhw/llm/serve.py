"""An HTTP server of a language model, with the interface that clients of OpenAI's use: /v1/models,
/v1/chat/completions, /v1/completions.

The model answers one request after the other. Output that a slow client has not taken yet is buffered, so that the next
client has its turn. Fields that would change the answer but are not supported (several choices, top_p, penalties, log
probabilities, tools) are refused. Unknown fields are ignored. http/server.py handles connections, requests and their
limits.
"""
from __future__ import annotations
from collections.abc import Callable, Iterator, Mapping
import json
import math
import threading
import time
from typing import Any
import uuid

from tinyhw.errors import ArgumentError, BudgetError, TinyError
from tinyhw.files.budget import Budget, parse_json
from tinyhw.http.server import Connection, HttpServer, Request, RequestError
from tinyhw.llm.chat import FallbackTemplate
from tinyhw.llm.tokenizer import SimpleTokenizer
from tinyhw.named_tuple import NamedTuple

MOST_STOPS = 16
MOST_STOP_CHARACTERS = 1 << 14   # of all stops of a request
MOST_JSON = 96 << 20             # bytes that the parsed body of a request may take
MOST_WAITING = 32                # requests that wait for the model

# ***** the fields of a request *****

class CompletionRequest(NamedTuple):
  """The fields of a request."""
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

# field: (a test of a right value, the description of a right value)
_FIELDS: dict[str, tuple[Callable[[Any], bool], str]] = {
  "temperature": (_number(0, 1e6), "a number from 0 on"), "max_tokens": (_whole(1, 1 << 31), "a whole number above 0"),
  "max_completion_tokens": (_whole(1, 1 << 31), "a whole number above 0"),
  "seed": (_whole(-(1 << 63), (1 << 63) - 1), "a whole number of 64 bits"),
  "stream": (lambda x: type(x) is bool, "true or false"),
  "stream_options": (lambda x: isinstance(x, dict), "an object"),
  "stop": (lambda x: isinstance(x, str)
           or (isinstance(x, list) and len(x) <= MOST_STOPS and all(isinstance(s, str) for s in x)),
           f"a text or up to {MOST_STOPS} texts"),
  "model": (lambda x: isinstance(x, str), "a text"),
}
# field: the values that ask for nothing unsupported
_HARMLESS: dict[str, tuple[Any, ...]] = {
  "n": (1,), "best_of": (1,), "top_p": (1,), "presence_penalty": (0,), "frequency_penalty": (0,),
  "logprobs": (False, 0), "top_logprobs": (0,),
  "tools": ([],), "functions": ([],), "logit_bias": ({},), "response_format": ({"type": "text"},), "echo": (False,),
  "suffix": ("",),
}

def parse(body: bytes) -> dict[str, Any]:
  """Return the checked fields of a request's JSON object. Raises RequestError."""
  try: found = parse_json(body, Budget("the body", len(body), MOST_JSON))
  except BudgetError: raise RequestError(400, "the body has too many parts") from None
  except ValueError as error: raise RequestError(400, f"the body is no JSON: {error}") from None
  if not isinstance(found, dict): raise RequestError(400, "the body is no JSON object")
  fields = {name: value for name, value in found.items() if value is not None}
  for name, (right, what) in _FIELDS.items():
    if name in fields and not right(fields[name]): raise RequestError(400, f"{name} must be {what}")
  if len("".join(fields.get("stop", ()))) > MOST_STOP_CHARACTERS:
    raise RequestError(400, f"stop has more than {MOST_STOP_CHARACTERS} characters")
  for name, values in _HARMLESS.items():
    if name in fields and fields[name] not in values:
      raise RequestError(400, f"{name} is not supported; leave it out", "unsupported_parameter")
  return fields

def text_of(content: Any) -> Any:
  """Return a message's content, which may come in parts."""
  if not isinstance(content, list): return content
  if not all(isinstance(part, dict) and part.get("type") == "text" and isinstance(part.get("text"), str)
             for part in content):
    raise RequestError(400, "of a message's content only texts are understood: no images, sounds or files")
  return "".join(part["text"] for part in content)

class Stops:
  """A filter for text on its way to the client. It ends the text at the first of some stop texts, and holds back a
  possible beginning of one.

  Each character is looked at once (Knuth, Morris and Pratt 1977). To feed n of them costs O(n) for each stop, however
  long it is.

  >>> stops = Stops(["END"])
  >>> stops.feed("aE"), stops.feed("Nb"), stops.feed("ENDc"), stops.found
  ('a', 'ENb', '', True)
  """
  def __init__(self, stops: list[str]):
    self.stops, self.waiting, self.found = [s for s in stops if s], "", False
    self._borders = [_borders(stop) for stop in self.stops]
    self._matched = [0] * len(self.stops)   # for each stop, the number of its characters at the end of the text

  def feed(self, text: str, last: bool = False) -> str:
    """Add text, and return the text that can be sent. last: no more text follows."""
    for i, c in enumerate(text):
      whole = [len(stop) for k, stop in enumerate(self.stops) if self._advance(k, c) == len(stop)]
      if not whole: continue
      self.found = True
      sent, self.waiting = self.waiting + text[:i + 1], ""
      return sent[:len(sent) - max(whole)]
    self.waiting += text
    cut = len(self.waiting) - (0 if last else max(self._matched, default=0))
    sent, self.waiting = self.waiting[:cut], self.waiting[cut:]
    return sent

  def _advance(self, k: int, c: str) -> int:
    """Return the length of the beginning of a stop with which the text ends, after one more character."""
    stop, borders, matched = self.stops[k], self._borders[k], self._matched[k]
    while matched and stop[matched] != c: matched = borders[matched - 1]
    self._matched[k] = matched = matched + (stop[matched] == c)
    return matched

def _borders(text: str) -> list[int]:
  """Return, for each beginning of a text, the length of its longest proper part that is both a beginning and an end of
  it."""
  found = [0] * len(text)
  length = 0
  for i in range(1, len(text)):
    while length and text[length] != text[i]: length = found[length - 1]
    length += text[length] == text[i]
    found[i] = length
  return found

# ***** answers *****

class Answer:
  """The format of answers. Chats and completions have one each."""
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
  """The text of one request, made token by token."""
  def __init__(self, server: LLMServer, request: CompletionRequest, alive: Callable[[], None]):
    self.server, self.request, self.alive = server, request, alive
    self.count, self.reason = 0, "length"

  @property
  def usage(self) -> dict[str, int]:
    return {"prompt_tokens": len(self.request.ids), "completion_tokens": self.count,
            "total_tokens": len(self.request.ids) + self.count}

  def pieces(self) -> Iterator[str]:
    """Yield the text in pieces. Other requests wait meanwhile.

    Raises Gone if the client is gone, RequestError if too many wait.
    """
    request, tok, server = self.request, self.server.tok, self.server
    more, stops = tok.stream_decoder(), Stops(request.stops)
    server.take_turn(self.alive)
    try:
      tokens = server.model.generate(request.ids, temperature=request.temperature, seed=request.seed)
      while request.most is None or self.count < request.most:
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
    finally: server.turn.release()

# ***** HTTP *****

def _json(value: Any) -> bytes: return json.dumps(value).encode("ascii")
def _event(value: Any) -> bytes:
  """Return one event of a stream."""
  return b"data: " + (value if isinstance(value, bytes) else _json(value)) + b"\n\n"

def _chat(server: LLMServer, fields: Mapping[str, Any]) -> list[int]:
  messages = fields.get("messages")
  if not isinstance(messages, list) or not messages:
    raise RequestError(400, "messages must be a list of messages, at least one")
  if not all(isinstance(m, dict) for m in messages):
    raise RequestError(400, "a message must be an object with role and content")
  return server.tokens_of([{**m, "content": text_of(m.get("content"))} for m in messages])

def _completion(server: LLMServer, fields: Mapping[str, Any]) -> list[int]:
  prompt = fields.get("prompt")
  if isinstance(prompt, list) and len(prompt) == 1 and isinstance(prompt[0], (str, list)): prompt = prompt[0]
  if isinstance(prompt, list) and prompt and all(type(token) is int for token in prompt): return prompt
  if not isinstance(prompt, str): raise RequestError(400, "prompt must be one text, or the tokens of one")
  server.check_length(len(prompt))
  begin = [] if server.tok.bos_id is None else [server.tok.bos_id]
  return begin + server.tok.encode(prompt)

_POSTS: dict[str, Callable[[LLMServer, Mapping[str, Any]], list[int]]] = {"/v1/chat/completions": _chat,
                                                                          "/v1/completions": _completion}

class LLMServer(HttpServer):
  """A server that answers requests with a model. `serve_forever` works until `shutdown`. `server_close` frees the port.

  server_address: (host, port). Port 0 is any that is free. A host other than this machine's loopback is open to
  everybody who can reach it. template: a FallbackTemplate, or an object with render(messages) -> text, or such a
  function. Raises ConfigError for an address that cannot be opened.
  """
  def __init__(self, server_address: tuple[str, int], model: Any, model_name: str, tok: SimpleTokenizer, template: Any):
    render = getattr(template, "render", template)
    if not callable(render):
      raise ArgumentError(f"a template is a function of messages, or an object with render, and not {template!r:.60}")
    self._render: Callable[[list[dict[str, Any]]], str] = render
    self.model, self.model_name, self.tok, self.template = model, model_name, tok, template
    self.turn = threading.Lock()         # held by the request that uses the model
    self._places = threading.BoundedSemaphore(MOST_WAITING)   # for the requests that wait for it
    self.started = int(time.time())
    super().__init__(server_address)

  def take_turn(self, alive: Callable[[], None]) -> None:
    """Wait until the model is free, and take it. Raises the errors of alive, and RequestError where too many wait."""
    if not self._places.acquire(blocking=False):
      raise RequestError(503, f"more than {MOST_WAITING} requests wait for the model; try again later",
                         headers={"Retry-After": "5"})
    try:
      while not self.turn.acquire(timeout=0.25): alive()
    finally: self._places.release()

  # ***** requests *****

  def respond(self, request: Request, connection: Connection) -> None:
    path = request.path.rstrip("/")
    try:
      if request.method == "GET": connection.answer(200, "application/json", _json(self._get(path)))
      elif request.method == "POST": self._post(path, request, connection)
      else:
        raise RequestError(405, f"{request.method} is not understood; use GET or POST", headers={"Allow": "GET, POST"})
    except ArgumentError as error: raise RequestError(400, error.message) from None
    except TinyError as error: raise RequestError(500, str(error)) from None

  def fail(self, error: RequestError, connection: Connection) -> None:
    """Send an error: as JSON, or as the last event of a stream that has begun."""
    kind = "server_error" if error.status >= 500 else "invalid_request_error"
    value = {"error": {"message": error.message, "type": kind, "param": None, "code": error.code}}
    if not connection.begun: connection.answer(error.status, "application/json", _json(value), error.headers)
    elif connection.streams:
      connection.part(_event(value))
      connection.end()

  def _get(self, path: str) -> Any:
    entry = {"id": self.model_name, "object": "model", "created": self.started, "owned_by": "local"}
    found = {"/v1/models": {"object": "list", "data": [entry]}, f"/v1/models/{self.model_name}": entry,
             "/health": {"status": "ok"}}.get(path)
    if found is not None: return found
    if path in _POSTS: raise RequestError(405, f"{path} wants POST", headers={"Allow": "POST"})
    raise RequestError(404, f"there is nothing at {path or '/':.200}; there are /v1/models, {', '.join(_POSTS)}")

  def _post(self, path: str, request: Request, connection: Connection) -> None:
    if path not in _POSTS:
      raise RequestError(404, f"there is nothing to POST to at {path or '/':.200}; there are {', '.join(_POSTS)}")
    if "content-length" not in request.headers:
      raise RequestError(411, "the request does not say its Content-Length", fatal=True)
    fields = parse(request.body)
    name = fields.get("model", self.model_name)
    if name != self.model_name:
      raise RequestError(404, f"no model is called {name!r:.100}; there is {self.model_name!r}", "model_not_found")
    run = Run(self, self._completion_request(fields, _POSTS[path](self, fields)), connection.alive)
    answer = Answer(_POSTS[path] is _chat, self.model_name)
    if run.request.stream: self._stream(run, answer, connection)
    else: connection.answer(200, "application/json", _json(answer.whole("".join(run.pieces()), run.reason, run.usage)))

  def _completion_request(self, fields: Mapping[str, Any], ids: list[int]) -> CompletionRequest:
    if not ids: raise RequestError(400, "the prompt is empty")
    place = self.model.config.max_context
    if len(ids) > place:
      raise RequestError(400, f"the prompt has {len(ids)} tokens, and the context {place}", "context_length_exceeded")
    stop = fields.get("stop", [])
    return CompletionRequest(ids, float(fields.get("temperature", 0.0)),
                             fields.get("max_completion_tokens", fields.get("max_tokens")),
                             [stop] if isinstance(stop, str) else stop, fields.get("seed"), fields.get("stream", False),
                             bool(fields.get("stream_options", {}).get("include_usage", False)))

  def _stream(self, run: Run, answer: Answer, connection: Connection) -> None:
    """Send the answer as events (text/event-stream), as they become available.

    The model waits for no client: its turn ends with its last token.
    """
    pieces = run.pieces()
    try:
      first = next(pieces, "")   # an error before the first piece has a status of its own, and is no event
      connection.begin("text/event-stream")
      connection.part(_event(answer.part(first, first=True)))
      for piece in pieces: connection.part(_event(answer.part(piece)))
    finally: getattr(pieces, "close")()   # lets the next request have its turn
    connection.part(_event(answer.part("", reason=run.reason)))
    if run.request.usage: connection.part(_event(answer.end(run.usage)))
    connection.part(_event(b"[DONE]"))
    connection.end()

  def tokens_of(self, messages: list[dict[str, Any]]) -> list[int]:
    """Return the prompt for messages."""
    self.check_length(sum(len(m["content"]) for m in messages if isinstance(m["content"], str)))
    # special tokens in users' text are plain text
    if isinstance(self.template, FallbackTemplate): return self.template.encode(messages)
    return self.tok.encode(self._render(messages))

  def check_length(self, characters: int) -> None:
    """Raise RequestError for a text that cannot fit into the context, before time is spent on its tokens."""
    place, least = self.model.config.max_context, characters // self.tok.longest
    if least > place:
      raise RequestError(400, f"the prompt has at least {least} tokens, and the context {place}",
                         "context_length_exceeded")
