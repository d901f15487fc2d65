"""tinyhw/http/server.py over real sockets: valid and invalid requests, slow clients, many clients, and shared
limits."""
from __future__ import annotations
import contextlib
import random
import socket
import threading
import time
from collections.abc import Iterator

import pytest
from formats.mutations import cases, mutations

from tinyhw.errors import ConfigError
from tinyhw.http import server as http_server
from tinyhw.http.server import Connection, HttpServer, Request, RequestError, body_length, parse_head

class Echo(HttpServer):
  """Answers with the request. /large: a megabyte for each; /wait: after `gate`; /stream: in parts; /broken: not."""
  gate = threading.Event()
  large = 64
  def respond(self, request: Request, connection: Connection) -> None:
    if request.path == "/wait": self.gate.wait(20)
    if request.path == "/broken": raise ValueError("boom")
    if request.path == "/no": raise RequestError(404, "no")
    if request.path == "/stream":
      connection.begin("text/plain")
      for part in (b"ab", b"", b"cd"): connection.part(part)
      return connection.end()
    data = bytes(self.large << 20) if request.path == "/large" else b"%s %s [%s]" % (request.method.encode(),
                                                                                     request.path.encode(),
                                                                                     request.body)
    connection.answer(200, "text/plain", data)

@pytest.fixture
def server() -> Iterator[Echo]:
  found = Echo(("127.0.0.1", 0))
  found.gate = threading.Event()
  thread = threading.Thread(target=found.serve_forever, args=(0.02,))
  thread.start()
  yield found
  found.gate.set()
  found.shutdown()
  thread.join()
  found.server_close()

def connect(server: Echo) -> socket.socket:
  return socket.create_connection(("127.0.0.1", server.server_port), timeout=20)

def until_closed(client: socket.socket) -> bytes:
  received = b""
  with contextlib.suppress(ConnectionError):
    while block := client.recv(1 << 16): received += block
  return received

def raw(server: Echo, data: bytes) -> bytes:
  """Return the server's whole answer to some bytes, after which the client sends nothing."""
  with connect(server) as client:
    with contextlib.suppress(ConnectionError):
      client.sendall(data)
      client.shutdown(socket.SHUT_WR)
    return until_closed(client)

def statuses(answers: bytes) -> list[int]: return [int(part[:3]) for part in answers.split(b"HTTP/1.1 ")[1:]]

def request(server: Echo, path: str = "/", head: bytes = b"", body: bytes = b"", method: str = "GET") -> bytes:
  return f"{method} {path} HTTP/1.1\r\nHost: localhost:{server.server_port}\r\n".encode() + head + b"\r\n" + body

def works(server: Echo) -> bool: return b"GET / []" in raw(server, request(server))

# ***** what a request is *****

def test_heads() -> None:
  found = parse_head(b"GET /a?b=c HTTP/1.1\r\nHost: x\r\nAccept: 1\r\nACCEPT:\t2 \r\nEmpty:")
  assert found == Request("GET", "/a", "HTTP/1.1", {"host": "x", "accept": "1, 2", "empty": ""}) and found.keeps
  assert not parse_head(b"GET / HTTP/1.0").keeps and not parse_head(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: TE, "
                                                                    b"Close").keeps

@pytest.mark.parametrize("target, path", [("http://y:8/a?b", "/a"), ("HTTP://y:8", "/"), ("http://y:8?b", "/"),
                                          ("http://y:8/", "/")])
def test_the_host_of_a_whole_address_counts(target: str, path: str) -> None:
  found = parse_head(f"GET {target} HTTP/1.1\r\nHost: x".encode())
  assert (found.path, found.headers) == (path, {"host": "y:8"})

HOST = b"\r\nHost: x"
@pytest.mark.parametrize("head, status, why", [
  (b"", 400, "no request"), (b"GET /", 400, "no request"), (b"GET  / HTTP/1.1" + HOST, 400, "no request"),
  (b"GET / HTTP/1.1 " + HOST, 400, "no request"),
  (b"GET /\xff HTTP/1.1" + HOST, 400, "no request"), (b"GET /\0 HTTP/1.1" + HOST, 400, "no request"),
  (b"GET\t/ HTTP/1.1" + HOST, 400, "no request"),
  (b"get / HTTP/1.1" + HOST, 501, "not known"), (b"BREW / HTTP/1.1" + HOST, 501, "not known"),
  (b"GET / HTTP/2.0", 505, "spoken"),
  (b"GET / HTTP/0.9", 505, "spoken"), (b"GET / http/1.1", 400, "spoken"), (b"GET / HTTP/1.1x", 400, "spoken"),
  (b"GET / HTTP/1.1", 400, "no header host"),
  (b"GET / HTTP/1.1" + HOST + b"\r\nA : 1", 400, "is no header"),
  (b"GET / HTTP/1.1" + HOST + b"\r\n A: 1", 400, "is no header"),
  (b"GET / HTTP/1.1" + HOST + b"\r\nA", 400, "is no header"),
  (b"GET / HTTP/1.1" + HOST + b"\r\n: 1", 400, "is no header"),
  (b"GET / HTTP/1.1" + HOST + b"\r\nA\0: 1", 400, "is no header"),
  (b"GET / HTTP/1.1" + HOST + b"\r\nA: \0", 400, "is no header"),
  (b"GET / HTTP/1.1" + HOST + b"\r\nA: 1\nB: 2", 400, "does not end with CR LF"),
  (b"GET / HTTP/1.1\nHost: x", 400, "does not end with CR LF"),
  (b"GET / HTTP/1.1" + HOST + b"\r\nA: 1\rB: 2", 400, "does not end with CR LF"),
  (b"GET / HTTP/1.1" + HOST + HOST, 400, "two headers host"),
  (b"GET / HTTP/1.1" + HOST + b"\r\nContent-Length: 1" * 2, 400, "two headers content-length"),
  (b"GET / HTTP/1.1" + HOST + b"\r\nTransfer-Encoding: chunked" * 2, 400, "two headers transfer-encoding"),
  (b"GET / HTTP/1.1" + HOST + b"\r\nA: 1" * 100, 431, "more than 100 headers"),
])
def test_what_is_no_head(head: bytes, status: int, why: str) -> None:
  with pytest.raises(RequestError, match=why) as error: parse_head(head)
  assert error.value.status == status and error.value.fatal

@pytest.mark.parametrize("headers, status", [
  ({"content-length": "5", "transfer-encoding": "chunked"}, 400), ({"transfer-encoding": "chunked"}, 411),
  ({"transfer-encoding": "identity"}, 411),
  *[({"content-length": length}, 400) for length in ("", "x", "-1", "+1", "1, 1", "1 1", "0x10", "1_0", "\u0661",
                                                     "1.0")],
  ({"content-length": "9" * 5000}, 413), ({"content-length": str(http_server.MOST_BYTES + 1)}, 413),
  ({"content-length": "1", "expect": "x"}, 417)])
def test_bodies_whose_length_is_not_clear(headers: dict[str, str], status: int) -> None:
  with pytest.raises(RequestError) as error: body_length(Request("POST", "/", "HTTP/1.1", headers))
  assert error.value.status == status and error.value.fatal

def test_bodies() -> None:
  for headers, length in (({}, 0), ({"content-length": "0"}, 0), ({"content-length": "007"}, 7),
                          ({"content-length": "1", "expect": "100-Continue"}, 1)):
    assert body_length(Request("POST", "/", "HTTP/1.1", headers)) == length

# ***** requests one after the other *****

def test_a_body_belongs_to_its_request(server: Echo) -> None:
  """Also the body of a GET, which was once taken for the next request."""
  inner = request(server, "/inner")
  for method in ("GET", "POST", "DELETE"):
    told = raw(server, request(server, "/outer", b"Content-Length: %d\r\n" % len(inner), inner, method)
               + request(server, "/next"))
    assert statuses(told) == [200, 200] and b"%s /outer [%s]" % (method.encode(),
                                                                 inner) in told and b"GET /next []" in told
  for path, status in (("/no", 404), ("/wrong", 200)):   # an error reads the body, too
    assert (statuses(raw(server, request(server, path, b"Content-Length: %d\r\n" % len(inner), inner)
                         + request(server))) == [status, 200])

@pytest.mark.parametrize("lengths", [b"Content-Length: 0\r\nContent-Length: %d\r\n",
                                     b"Content-Length: %d\r\nContent-Length: %d\r\n",
                                     b"Content-Length: %d, %d\r\n", b"Content-Length: %d\r\nTransfer-Encoding: "
                                     b"chunked\r\n",
                                     b"Transfer-Encoding: chunked\r\nContent-Length: %d\r\n",
                                     b"Transfer-Encoding: chunked\r\n",
                                     b"Content-Length : %d\r\n", b"X: 1\nContent-Length: %d\r\n",
                                     b"X: 1\r\n Content-Length: %d\r\n"])
def test_nothing_is_smuggled(server: Echo, lengths: bytes) -> None:
  inner = request(server, "/inner")
  told = raw(server, request(server, "/outer", lengths.replace(b"%d", b"%d" % len(inner)), inner))
  assert len(statuses(told)) == 1 and statuses(told)[0] in (400, 411) and b"Connection: close" in told and works(server)

def test_requests_in_one_packet_and_in_many(server: Echo) -> None:
  whole = b"".join(request(server, f"/{i}", b"Content-Length: 3\r\n", b"abc", "POST") for i in range(5))
  assert statuses(raw(server, whole)) == [200] * 5
  with connect(server) as client:
    for i in range(len(whole)): client.sendall(whole[i:i + 1])
    client.shutdown(socket.SHUT_WR)
    assert statuses(until_closed(client)) == [200] * 5

def test_connections_end_where_it_is_asked_for(server: Echo) -> None:
  for data in (request(server, head=b"Connection: close\r\n"), request(server).replace(b"HTTP/1.1", b"HTTP/1.0")):
    with connect(server) as client:
      client.sendall(data + request(server))
      assert statuses(until_closed(client)) == [200]

def test_streams(server: Echo) -> None:
  assert raw(server, request(server, "/stream")).endswith(b"\r\n\r\n2\r\nab\r\n2\r\ncd\r\n0\r\n\r\n")
  old = raw(server, request(server, "/stream").replace(b"HTTP/1.1", b"HTTP/1.0"))
  assert old.endswith(b"\r\n\r\nabcd") and b"chunked" not in old and b"Connection: close" in old

def test_who_waits_for_leave_gets_it(server: Echo) -> None:
  with connect(server) as client:
    client.sendall(request(server, "/", b"Content-Length: 3\r\nExpect: 100-continue\r\nConnection: close\r\n", b"",
                           "POST"))
    assert client.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
    client.sendall(b"abc")
    assert b"POST / [abc]" in until_closed(client)

def test_a_head_has_no_body_in_its_answer(server: Echo) -> None:
  assert raw(server, request(server, method="HEAD")).endswith(b"Content-Length: 9\r\n\r\n")

def test_errors_in_the_server(server: Echo, capsys: pytest.CaptureFixture[str]) -> None:
  assert statuses(raw(server, request(server, "/broken") + request(server))) == [500] and works(server)
  assert "/broken: ValueError: boom" in capsys.readouterr().err

def test_other_hosts_and_pages_are_refused(server: Echo) -> None:
  own = f"localhost:{server.server_port}".encode()
  for host in (b"evil.example", b"localhost", b"", b"localhost.evil.example", own + b"0"):
    assert statuses(raw(server, request(server).replace(own, host))) == [403]
  for origin, status in ((b"https://evil.example", 403), (b"null", 403), (b"http://localhost.evil.example", 403),
                         (b"http://localhost@evil", 403),
                         (b"http://localhost:3000", 200), (b"http://[::1]:3000", 200), (b"https://127.0.0.1", 200)):
    assert statuses(raw(server, request(server, head=b"Origin: " + origin + b"\r\n"))) == [status], origin
  assert statuses(raw(server, request(server).replace(b"localhost", b"LOCALHOST"))) == [200]
  assert statuses(raw(server, request(server, "http://evil.example/"))) == [403]
  assert statuses(raw(server, request(server, f"http://localhost:{server.server_port}/"))) == [200]

def test_lines_and_heads_that_are_too_long(server: Echo) -> None:
  for data, status in ((b"GET /" + b"a" * http_server.MOST_LINE, 414),
                       (request(server)[:-2] + b"X: " + b"a" * http_server.MOST_HEAD, 431),
                       (request(server)[:-2] + b"X: 1\r\n" * 200 + b"\r\n", 431), (b"\r\n" + request(server), 400),
                       (b"\n\n", 400)):
    assert statuses(raw(server, data)) == [status] and works(server)

# ***** slow clients, many clients *****

@pytest.mark.parametrize("start", [b"GET / HTTP/1.1\r\nX: ", b"POST / HTTP/1.1\r\nHost: "
                                   b"localhost:{port}\r\nContent-Length: 1000000\r\n\r\n", b""])
def test_a_request_that_does_not_end_is_given_up(server: Echo, start: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
  """Each byte comes in time, but the request does not."""
  monkeypatch.setattr(http_server, "TRANSFER_SECONDS", 0.3)
  with connect(server) as client:
    client.sendall(start.replace(b"{port}", b"%d" % server.server_port))
    client.settimeout(0.05)
    told, ended = b"", False
    for _ in range(400):
      try:
        if start: client.sendall(b"a")
        block = client.recv(1 << 16)
        told, ended = told + block, not block
      except TimeoutError: continue
      except ConnectionError: ended = True
      if ended: break
    assert ended and statuses(told) == ([408] if start else [])

def test_an_answer_that_is_not_taken_is_given_up(server: Echo, monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setattr(http_server, "TRANSFER_SECONDS", 0.2)
  monkeypatch.setattr(http_server, "SLOWEST", 1 << 30)
  with connect(server) as client:
    client.sendall(request(server, "/large"))
    for _ in range(600):
      with server._lock: left = len(server._connections)
      if not left: break
      time.sleep(0.05)
    assert not left

def test_slow_clients_hold_no_place_that_others_want(server: Echo, monkeypatch: pytest.MonkeyPatch) -> None:
  """Some send nothing, some half a request, some do not take their answers. They take all connections, and lose them to
  others, oldest first."""
  monkeypatch.setattr(http_server, "MOST_CONNECTIONS", 9)
  with contextlib.ExitStack() as stack:
    for i in range(27):
      client = stack.enter_context(connect(server))
      client.sendall((b"", b"GET / HT", request(server, "/large"))[i % 3])
    for _ in range(5): assert works(server)
    with server._lock: assert len(server._connections) <= 9

def test_where_all_are_at_work_others_are_sent_away(server: Echo, monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setattr(http_server, "MOST_CONNECTIONS", 2)
  with connect(server) as one, connect(server) as two:
    for client in (one, two): client.sendall(request(server, "/wait"))
    for _ in range(400):
      with server._lock: busy = len(server._connections) == 2 and not server._waiting
      if busy: break
      time.sleep(0.02)
    with connect(server) as third:
      told = until_closed(third)
      assert told.startswith(b"HTTP/1.1 503 ") and b"Retry-After: 1\r\n" in told
    server.gate.set()
    for client in (one, two): assert client.recv(100).startswith(b"HTTP/1.1 200")
  assert works(server)

def holds(server: Echo, count: int) -> bool:
  """Does the server soon hold this number of bytes of bodies?"""
  for _ in range(500):
    with server._lock: held = server._held
    if held == count: return True
    time.sleep(0.02)
  return False

def test_all_bodies_together_are_bounded(server: Echo, monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setattr(http_server, "MOST_HELD", 1000)
  with connect(server) as first:
    first.sendall(request(server, "/wait", b"Content-Length: 900\r\n", bytes(900), "POST"))
    assert holds(server, 900)
    told = raw(server, request(server, "/", b"Content-Length: 200\r\n", bytes(200), "POST"))
    assert statuses(told) == [503] and b"Retry-After: 1\r\n" in told
    server.gate.set()
    assert first.recv(100).startswith(b"HTTP/1.1 200")
    assert holds(server, 0), "a body counts until its answer is written"
  assert (statuses(raw(server, request(server, "/", b"Content-Length: 200\r\n", bytes(200), "POST"))) == [200]
          and holds(server, 0))

def test_no_thread_is_to_be_had(server: Echo, monkeypatch: pytest.MonkeyPatch) -> None:
  class Full(threading.Thread):
    def start(self) -> None: raise RuntimeError("can't start new thread")
  monkeypatch.setattr(http_server.threading, "Thread", Full)
  with connect(server) as client: assert until_closed(client).startswith(b"HTTP/1.1 503 ")
  monkeypatch.undo()
  assert works(server)

# ***** anything *****

def samples() -> dict[str, bytes]:
  head = b"POST /a?b HTTP/1.1\r\nHost: localhost:80\r\nContent-Length: 5\r\nConnection: keep-alive\r\nX-Y: z, w"
  return {"post": head + b"\r\n\r\nhello", "get": b"GET / HTTP/1.1\r\nHost: localhost\r\nAccept: */*\r\n\r\n",
          "old": b"GET / HTTP/1.0\r\n\r\n"}

def test_any_head_is_a_request_or_refused() -> None:
  refused = 0
  for what, data in mutations(samples(), 10 * cases()):
    try: assert body_length(parse_head(data.partition(b"\r\n\r\n")[0])) >= 0, what
    except RequestError as error:
      refused += 1
      assert 400 <= error.status < 600 and str(error)
  assert refused

def test_the_server_outlives_any_bytes(server: Echo, monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setattr(http_server, "LINGER_SECONDS", 0.01)
  monkeypatch.setattr(server, "hosts", None)
  draw = random.Random(3)
  for what, data in mutations(samples(), 100):
    told = raw(server, data * draw.randrange(1, 4))
    assert not told or told.startswith(b"HTTP/1.1 "), what
  assert works(server)

def test_addresses(server: Echo) -> None:
  for address in (("127.0.0.1", 1 << 20), ("no.such.host.invalid", 0), ("127.0.0.1", server.server_port)):
    with pytest.raises(ConfigError, match="cannot be opened: .*; do this"):
      with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        Echo((address[0], taken.getsockname()[1]) if address[1] == server.server_port else address, "do this")
  everybody = Echo(("0.0.0.0", 0))
  assert everybody.hosts is None and server.hosts is not None and server.url == f"http://127.0.0.1:{server.server_port}"
  everybody.server_close()

def test_closing_ends_connections() -> None:
  found = Echo(("127.0.0.1", 0))
  thread = threading.Thread(target=found.serve_forever, args=(0.02,))
  thread.start()
  with connect(found) as client:
    client.sendall(request(found))
    assert client.recv(100).startswith(b"HTTP/1.1 200")
    found.shutdown()
    found.server_close()
    assert until_closed(client) is not None
  thread.join()

