"""The server over real sockets: whole answers and streams, their ends, clients that leave, wrong requests."""
import http.client
import json
import socket
import threading
import time
from types import SimpleNamespace

from hypothesis import given
from hypothesis import strategies as st
import pytest
from formats.gguf_models import TOKENIZER, Model

from test.helpers import ENGINES, on
from tinyhw import Tensor, dtypes
from tinyhw.errors import ArgumentError, ConfigError
from tinyhw.http import server as http_server
from tinyhw.llm import serve
from tinyhw.llm.chat import FallbackTemplate
from tinyhw.llm.model import Transformer
from tinyhw.llm.serve import LLMServer, Stops
from tinyhw.llm.tokenizer import SimpleTokenizer

SPECIAL = {"<|im_start|>": 62, "<|im_end|>": 63}
TOK = SimpleTokenizer.from_gguf_kv(TOKENIZER)
CHAT, COMPLETIONS = "/v1/chat/completions", "/v1/completions"
HELLO = {"messages": [{"role": "user", "content": "Hello"}]}

class Scripted:
  """A model with scripted answers. gate: wait for it before each token."""
  def __init__(self, script, gate=None):
    self.config, self.script, self.gate, self.asked = SimpleNamespace(max_context=40), script, gate, []
    self.started, self.ended = threading.Event(), threading.Event()

  def generate(self, tokens, temperature, seed):
    self.asked.append((list(tokens), temperature))
    def words():
      self.started.set()
      try:
        for token in self.script:
          if self.gate is not None: assert self.gate.acquire(timeout=20)
          if isinstance(token, Exception): raise token
          yield token
      finally: self.ended.set()
    return words()

def text(s): return TOK.encode(s)

class Running:
  """A server that answers while the block runs."""
  def __init__(self, model, tok=TOK, template=None):
    self.args = ("127.0.0.1", 0), model, "tiny", tok, template or FallbackTemplate(tok)
  def __enter__(self):
    self.server = LLMServer(*self.args)
    self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02})
    self.thread.start()
    return self
  def __exit__(self, *_):
    self.server.shutdown()
    self.server.server_close()
    self.thread.join(10)

  def connect(self): return http.client.HTTPConnection("127.0.0.1", self.server.server_port, timeout=30)
  def send(self, method, path, body=None, headers=None):
    connection = self.connect()
    connection.request(method, path, body if isinstance(body, (bytes, str, type(None))) else json.dumps(body),
                       headers or {})
    return connection.getresponse()
  def ask(self, path, body, status=200):
    response = self.send("POST", path, body)
    found = json.loads(response.read())
    assert response.status == status, found
    return found
  def events(self, path, body): return events_of(self.send("POST", path, {**body, "stream": True}))

def events_of(response):
  assert response.status == 200 and response.headers["Content-Type"] == "text/event-stream"
  while line := response.readline():
    if line.startswith(b"data: "): yield line[6:].strip().decode()

@pytest.mark.slow
def test_a_model_answers():
  """A real model: a chat and a stream of it have the same text, which the model also generates directly."""
  device = [name for name in ENGINES if name != "interpreter"][0]
  with on(device):
    model = Transformer.from_gguf(Tensor(Model("qwen2").file(), dtype=dtypes.uint8))[0]
    prompt = FallbackTemplate(TOK).encode(HELLO["messages"])
    said = [token for token, _ in zip(model.generate(prompt), range(8))]
    said = said[:said.index(63)] if 63 in said else said
    with Running(model) as running:
      whole = running.ask(CHAT, {**HELLO, "max_tokens": 8})
      assert (whole["choices"][0]["message"] == {"role": "assistant", "content": TOK.decode(said)}
              and whole["object"] == "chat.completion")
      assert whole["usage"]["prompt_tokens"] == len(prompt)
      parts = [json.loads(e) for e in running.events(CHAT, {**HELLO, "max_tokens": 8}) if e != "[DONE]"]
      assert "".join(p["choices"][0]["delta"].get("content", "") for p in parts) == TOK.decode(said)
      Tensor.manual_seed(9)
      seeded = [running.ask(COMPLETIONS, {"prompt": "Hi", "max_tokens": 12, "temperature": 3,
        "seed": seed})["choices"][0]["text"] for seed in (1, 1, 2)]
      assert seeded[0] == seeded[1] != seeded[2]
      left = Tensor.rand(3).tolist()
      Tensor.manual_seed(9)
      assert left == Tensor.rand(3).tolist(), "a request's seed is its own"

def test_whole_answers():
  model = Scripted([*text("Hi there"), 63, *text("never")])
  with Running(model) as running:
    found = running.ask(CHAT, {**HELLO, "temperature": 0.5, "unknown": {"a": 1}, "top_p": 1, "n": None,
                               "model": "tiny"})
    assert found["choices"] == [{"index": 0, "message": {"role": "assistant", "content": "Hi there"}, "logprobs": None,
                                 "finish_reason": "stop"}]
    n = len(model.asked[0][0])
    assert found["usage"] == {"prompt_tokens": n, "completion_tokens": 9,
                              "total_tokens": n + 9} and model.asked[0][1] == 0.5
    found = running.ask(COMPLETIONS, {"prompt": "abc", "max_tokens": 2})
    assert found["object"] == "text_completion" and found["choices"][0] == {"index": 0, "text": "Hi", "logprobs": None,
                                                                            "finish_reason": "length"}
    assert model.asked[1] == (text("abc"), 0.0)
    for prompt in ([5, 6], [[5, 6]], ["de"]):
      running.ask(COMPLETIONS, {"prompt": prompt})
      assert model.asked[-1][0] == (text("de") if prompt == ["de"] else [5, 6])
    parts = [{"role": "user", "content": [{"type": "text", "text": "Hel"}, {"type": "text", "text": "lo"}]}]
    running.ask(CHAT, {"messages": parts, "max_completion_tokens": 1})
    assert model.asked[-1][0] == model.asked[0][0]

@pytest.mark.parametrize("stop, want, reason", [("re", "Hi the", "stop"), (["zz", " t"], "Hi", "stop"),
                                                (["er", "here"], "Hi th", "stop"),
  ("ex", "Hi there", "length"), ("", "Hi there", "length")])
def test_stops(stop, want, reason):
  with Running(Scripted(text("Hi there"))) as running:
    choice = running.ask(CHAT, {**HELLO, "stop": stop})["choices"][0]
    assert (choice["message"]["content"], choice["finish_reason"]) == (want, reason)
    parts = [json.loads(e) for e in running.events(COMPLETIONS, {"prompt": "a", "stop": stop}) if e != "[DONE]"]
    assert ("".join(p["choices"][0]["text"] for p in parts) == want and parts[-1]["choices"][0]["finish_reason"]
            == reason)

def test_stops_hold_back_beginnings():
  stops = Stops(["abc", "cd"])
  assert ([stops.feed(t) for t in ("a", "b", "x", "ab", "ab")] == ["", "", "abx", "", "ab"]
          and stops.feed("", last=True) == "ab" and not stops.found)

def test_a_stream_sends_tokens_as_they_come():
  gate = threading.Semaphore(0)
  with Running(Scripted([*text("abc"), 63], gate)) as running:
    gate.release()
    response = running.send("POST", CHAT, {**HELLO, "stream": True, "stream_options": {"include_usage": True}})
    events = events_of(response)
    # while the model waits for its next token
    assert json.loads(next(events))["choices"][0]["delta"] == {"role": "assistant", "content": "a"}
    for letter in "bc":
      gate.release()
      part = json.loads(next(events))
      assert part["choices"][0]["delta"] == {"content": letter} and part["object"] == "chat.completion.chunk"
    gate.release()
    assert json.loads(next(events))["choices"][0] == {"index": 0, "delta": {}, "logprobs": None,
                                                      "finish_reason": "stop"}
    n, last = len(FallbackTemplate(TOK).encode(HELLO["messages"])), json.loads(next(events))
    assert last["choices"] == [] and last["usage"] == {"prompt_tokens": n, "completion_tokens": 4,
                                                       "total_tokens": n + 4}
    assert next(events) == "[DONE]" and not list(events)

def test_characters_are_sent_whole():
  tok = SimpleTokenizer({"â": 0, "Ĥ": 1, "¬": 2, "u": 3, "s": 4, "e": 5, "r": 6, "a": 7, "i": 8, "t": 9, "n": 10,
                         "Ċ": 11}, SPECIAL, "qwen2",
    None, 63)
  with Running(Scripted([0, 1, 2, 7, 0]), tok) as running:
    parts = [json.loads(e)["choices"][0]["text"] for e in running.events(COMPLETIONS, {"prompt": "a"}) if e != "[DONE]"]
    assert parts == ["€", "a", "\ufffd", ""]

def test_a_connection_is_used_again_and_requests_take_turns():
  gate = threading.Semaphore(0)
  with Running(Scripted(text("ab"), gate)) as running:
    found = []
    threads = [threading.Thread(
      target=lambda: found.append(running.ask(COMPLETIONS, {"prompt": "a"})["choices"][0]["text"])) for _ in range(3)]
    for thread in threads: thread.start()
    assert json.loads(running.send("GET", "/v1/models").read())["data"][0]["id"] == "tiny"   # while they wait
    for _ in range(6): gate.release()
    for thread in threads: thread.join(20)
    assert found == ["ab"] * 3
    connection = running.connect()
    for _ in range(2):
      connection.request("GET", "/v1/models/tiny")
      assert json.loads(connection.getresponse().read())["object"] == "model"
    assert json.loads(running.send("GET", "/health").read()) == {"status": "ok"}

@pytest.mark.parametrize("stream", [False, True])
def test_clients_that_leave_end_their_request(stream):
  gate = threading.Semaphore(0)
  model = Scripted(text("abc") * 1000, gate)
  with Running(model) as running:
    body = json.dumps({"prompt": "a", "stream": stream}).encode()
    client = socket.create_connection(("127.0.0.1", running.server.server_port))
    client.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: localhost:%d\r\nContent-Length: %d\r\n\r\n%s"
                   % (running.server.server_port,
                      len(body), body))
    assert model.started.wait(20)
    gate.release()
    if stream: assert b"200" in client.recv(100)
    client.close()
    for _ in range(200):
      gate.release()
      if model.ended.wait(0.05): break
    assert model.ended.is_set()
    model.script, model.gate = text("ok"), None
    assert running.ask(COMPLETIONS, {"prompt": "a"})["choices"][0]["text"] == "ok"

@pytest.mark.parametrize("path, body, status, why", [
  (CHAT, b"{", 400, "no JSON"), (CHAT, b"\xff\xfe", 400, "no JSON"), (CHAT, b"[" * 100000, 400, "no JSON"),
  (CHAT, b'{"seed": NaN}', 400, "no number of JSON"),
  (CHAT, b'{"seed": 1' + b"0" * 5000 + b"}", 400, ""), (CHAT, b"[]", 400, "no JSON object"),
  (CHAT, {}, 400, "messages must be"),
  (CHAT, {"messages": []}, 400, "messages must be"),
  (CHAT, {"messages": [3]}, 400, "must be an object"), (CHAT, {"messages": [{"role": "user"}]}, 400, "a message is"),
  (CHAT, {"messages": [{"role": "user\n", "content": "a"}]}, 400, "no role"),
  (CHAT, {"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, 400, "only texts"),
  (CHAT, {**HELLO, "temperature": "hot"}, 400, "temperature must be"),
  (CHAT, {**HELLO, "temperature": -1}, 400, "temperature must be"),
  (CHAT, {**HELLO, "temperature": True}, 400, "temperature must be"),
  (CHAT, {**HELLO, "max_tokens": 0}, 400, "max_tokens must be"),
  (CHAT, {**HELLO, "stop": [1]}, 400, "stop must be"), (CHAT, {**HELLO, "stream": "yes"}, 400, "stream must be"),
  (CHAT, {**HELLO, "seed": 1.5}, 400, "seed must be"),
  (CHAT, {**HELLO, "n": 2}, 400, "n is not supported"), (CHAT, {**HELLO, "tools": [{}]}, 400, "tools is not"),
  (CHAT, {**HELLO, "top_p": 0.5}, 400, "top_p is not"),
  (CHAT, {**HELLO, "model": "gpt"}, 404, "no model is called 'gpt'"),
  (CHAT, {**HELLO, "stream_options": 3}, 400, "stream_options must be"),
  (COMPLETIONS, {"prompt": ["a", "b"]}, 400, "prompt must be"), (COMPLETIONS, {"prompt": ""}, 400, "is empty"),
  (COMPLETIONS, {}, 400, "prompt must be"),
  (COMPLETIONS, {"prompt": "a" * 41}, 400, "41 tokens, and the context 40"),
  (COMPLETIONS, {"prompt": "é"}, 400, "no token for the byte"),
  (COMPLETIONS, '{"prompt": "\\ud800"}', 400, "surrogate"), ("/v1/images", {}, 404, "nothing to POST"),
  ("/", b"", 404, "nothing to POST"),
])
def test_wrong_requests_get_errors_and_the_server_lives_on(path, body, status, why):
  with Running(Scripted(text("ok"))) as running:
    error = running.ask(path, body, status)["error"]
    assert why in error["message"] and error["type"] == "invalid_request_error"
    assert running.ask(COMPLETIONS, {"prompt": "a"})["choices"][0]["text"] == "ok"

def test_wrong_http():
  with Running(Scripted(text("ok"))) as running:
    for method, path, status in (("GET", "/", 404), ("GET", CHAT, 405), ("PUT", CHAT, 405), ("OPTIONS", "/", 405),
                                 ("GET", "/v1/models/x", 404)):
      response = running.send(method, path)
      assert (response.status, json.loads(response.read())["error"]["type"]) == (status, "invalid_request_error")
    for headers, status in (({"Content-Length": str(http_server.MOST_BYTES + 1)}, 413),
                            ({"Content-Length": "9" * 5000}, 413),
                            ({"Content-Length": "x"}, 400), ({"Content-Length": "-1"}, 400), ({}, 411),
                            ({"Transfer-Encoding": "chunked"}, 411), ({"Host": "evil.example"}, 403),
                            ({"Origin": "https://evil.example"}, 403)):
      connection = running.connect()
      connection.putrequest("POST", CHAT, skip_host="Host" in headers)
      for name, value in headers.items(): connection.putheader(name, value)
      connection.endheaders()
      assert connection.getresponse().status == status
    client = socket.create_connection(("127.0.0.1", running.server.server_port))
    client.sendall(b"\x16\x03\x01 nonsense\r\n\r\n")
    assert b"400" in client.recv(1000)
    client.close()
    assert running.ask(COMPLETIONS, {"prompt": "a"}, 200)["choices"][0]["text"] == "ok"

def raw(running, data):
  """Return all that the server sends until it closes the connection."""
  with socket.create_connection(("127.0.0.1", running.server.server_port), timeout=20) as client:
    client.sendall(data)
    found = b""
    while part := client.recv(1 << 16): found += part
  return found

def test_old_clients_and_lines_that_are_too_long():
  """A stream for HTTP/1.0 has no chunks, and ends with its connection. Errors of the HTTP parser are reported as JSON
  too."""
  with Running(Scripted(text("ok"))) as running:
    body = b'{"prompt": "a", "stream": true}'
    head, _, events = raw(running, b"POST /v1/completions HTTP/1.0\r\nHost: localhost:%d\r\nContent-Length: "
                          b"%d\r\n\r\n%s" % (
      running.server.server_port, len(body), body)).partition(b"\r\n\r\n")
    assert b"chunked" not in head and events.startswith(b"data: {") and events.endswith(b"data: [DONE]\n\n")
    for request, status in ((b"GET /" + b"a" * http_server.MOST_LINE, b"414"),
                            (b"GET / HTTP/1.1\r\nX: " + b"a" * http_server.MOST_HEAD, b"431"),
                            (b"BREW / HTTP/1.1\r\n\r\n", b"501"), (b"GET / HTTP/9.9\r\n\r\n", b"505")):
      head, _, found = raw(running, request).partition(b"\r\n\r\n")
      assert head.startswith(b"HTTP/1.1 " + status) and json.loads(found)["error"]["message"]

def test_errors_of_the_model(capsys):
  """Before the first token, they are answers. In a stream, they are its last event."""
  with Running(Scripted([ValueError("boom")])) as running:
    for stream in (False, True):
      assert running.ask(CHAT, {**HELLO, "stream": stream}, 500)["error"] == {"message": "an error in the server: "
                                                                              "ValueError",
        "type": "server_error", "param": None, "code": None}
    running.server.model.script = [*text("a"), ConfigError("broken")]
    events = list(running.events(CHAT, HELLO))
    assert "broken" in json.loads(events[-1])["error"]["message"] and len(events) == 2
    running.server.model.script = text("ok")
    assert running.ask(COMPLETIONS, {"prompt": "a"})["choices"][0]["text"] == "ok"
  assert "boom" in capsys.readouterr().err

def test_too_many_requests_for_the_model(monkeypatch):
  """Requests that do not need the model are answered meanwhile."""
  monkeypatch.setattr(serve, "MOST_WAITING", 1)
  gate = threading.Semaphore(0)
  model = Scripted(text("ab"), gate)
  with Running(model) as running:
    found = []
    threads = [threading.Thread(
      target=lambda: found.append(running.ask(COMPLETIONS, {"prompt": "a"})["choices"][0]["text"])) for _ in range(2)]
    threads[0].start()
    assert model.started.wait(20)
    threads[1].start()
    while running.server._places.acquire(blocking=False):   # until the request waits
      running.server._places.release()
      time.sleep(0.01)
    response = running.send("POST", COMPLETIONS, {"prompt": "a"})
    assert response.status == 503 and response.headers["Retry-After"] == "5"
    assert "wait for the model" in json.loads(response.read())["error"]["message"]
    assert json.loads(running.send("GET", "/health").read()) == {"status": "ok"}
    for _ in range(4): gate.release()
    for thread in threads: thread.join(20)
    assert found == ["ab"] * 2

def test_a_slow_client_of_a_stream_delays_nobody(monkeypatch):
  """It takes nothing of an answer that is larger than the system's buffer. The next client has its turn as soon as the
  model is done."""
  def events(): return b"".join(raw_events)
  raw_events = []
  monkeypatch.setattr(serve, "_event", lambda value, plain=serve._event: plain(value) + b":" + b"x" * (1 << 16)
                      + b"\n\n")
  with Running(Scripted(text("abc") * 40)) as running:
    slow = socket.socket()
    slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    slow.connect(("127.0.0.1", running.server.server_port))
    body = b'{"prompt": "a", "stream": true}'
    slow.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: localhost:%d\r\nContent-Length: %d\r\n\r\n%s"
                 % (running.server.server_port,
                    len(body), body))
    assert running.server.model.ended.wait(20)
    assert running.ask(COMPLETIONS, {"prompt": "a", "max_tokens": 3})["choices"][0]["text"] == "abc"
    while part := slow.recv(1 << 20):   # nevertheless, it gets all of the answer
      raw_events.append(part)
      if part.endswith(b"0\r\n\r\n"): break
    assert events().count(b'"text": "') == 121 and b"[DONE]" in events()
    slow.close()

def test_stops_that_are_long_cost_no_more_than_their_characters(monkeypatch):
  """400,000 characters of stops once took minutes, during the model's turn.

  Steps are counted: one or two for each character of the text and each stop.
  """
  looked = 0
  class Counted(str):
    def __getitem__(self, i):
      nonlocal looked
      looked += 1
      return super().__getitem__(i)
  n = 1 << 14
  stops = Stops(["a" * n + "b"])
  stops.stops = [Counted(stops.stops[0])]
  for _ in range(n): assert stops.feed("a") == ""
  assert stops.feed("a" * n) == "a" * n and looked < 8 * n and stops.feed("b") == "" and stops.found
  with Running(Scripted(text("ok"))) as running:
    for stop in ("a" * 400_000, ["a" * 100_000] * 4):
      assert f"stop has more than {serve.MOST_STOP_CHARACTERS} characters" in running.ask(CHAT, {**HELLO, "stop": stop},
                                                                                          400)["error"]["message"]

@given(st.lists(st.text("ab", min_size=1, max_size=5), max_size=4), st.lists(st.text("abc", max_size=4)))
def test_stops_as_they_are_found_one_after_the_other(stops, parts):
  """The slow definition: character by character, the longest stop that ends there."""
  whole, found, want = "", False, None
  for c in "".join(parts):
    whole += c
    ends = [len(stop) for stop in stops if whole.endswith(stop)]
    if ends:
      found, whole = True, whole[:len(whole) - max(ends)]
      break
  told = Stops(stops)
  want = ""
  for part in parts:
    if told.found: break
    want += told.feed(part)
  if not told.found: want += told.feed("", last=True)
  assert (want, told.found) == (whole, found)

def test_prompts_that_cannot_fit_are_not_encoded(monkeypatch):
  monkeypatch.setattr(SimpleTokenizer, "encode", lambda *_, **__: pytest.fail("time was spent on it"))
  with Running(Scripted([])) as running:
    for path, body in ((COMPLETIONS, {"prompt": "a" * 5_000_000}),
                       (CHAT, {"messages": [{"role": "user", "content": "a" * 100_000}] * 50})):
      assert "tokens, and the context 40" in running.ask(path, body, 400)["error"]["message"]

def test_json_that_grows():
  with Running(Scripted(text("ok"))) as running:
    assert "too many parts" in running.ask(CHAT, b"[" + b"[]," * 2_000_000 + b"0]", 400)["error"]["message"]
    assert "too many parts" in running.ask(CHAT, b"[" + b'{"":{}},' * 800_000 + b"0]", 400)["error"]["message"]

def test_templates():
  class Rendering:
    def render(self, messages): return messages[0]["content"] + "!"
  for template in (lambda messages: messages[0]["content"] + "!", Rendering()):
    model = Scripted(text("ok"))
    with Running(model, template=template) as running: running.ask(CHAT, HELLO)
    assert model.asked[0][0] == text("Hello!")

def test_what_is_refused():
  with pytest.raises(ArgumentError, match="a template is a function"):
    LLMServer(("127.0.0.1", 0), Scripted([]), "x", TOK, "text")
  with Running(Scripted([])) as running:
    for address in (("127.0.0.1", running.server.server_port), ("127.0.0.1", 1 << 20), ("no.such.host.invalid", 0)):
      if address[1] == running.server.server_port:
        taken = socket.socket()
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = taken.getsockname()
      with pytest.raises(ConfigError, match="cannot be opened"):
        LLMServer(address, Scripted([]), "x", TOK, FallbackTemplate(TOK))
