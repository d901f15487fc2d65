"""HTTP for the servers of this project: connections, requests and answers. A subclass defines the content, and answers
one `Request` at a time.

Each connection has a thread. A client's use of resources is bounded, whatever it sends or omits:
- time: A request, head and body, is complete TRANSFER_SECONDS after its first byte. An answer is taken
  TRANSFER_SECONDS (and a second for each MB) after its first byte.
- connections: At most MOST_CONNECTIONS. One more closes the connection for whose client the server has waited longest.
  If it waits for none, the new one gets 503.
- sizes: of lines, heads, bodies, and of all bodies together.

Requests are parsed strictly (RFC 9112), so that all parties agree about their end. Lines end with CR LF, names of
headers are tokens, a body has one Content-Length and no Transfer-Encoding. Unclear requests are refused, and the
connection is closed. On this machine's loopback address, only requests that name it as their host are answered. So no
page of another site can reach the server through a name that resolves to this address.
"""
from __future__ import annotations
import contextlib
import http.client
import ipaddress
import re
import socket
import sys
import threading
import time

from tinyhw.errors import ConfigError
from tinyhw.named_tuple import NamedTuple

TRANSFER_SECONDS = 30.0    # of a request, and of an answer
SLOWEST = 1 << 20          # bytes a second that extend a client's time
MOST_CONNECTIONS = 64
MOST_LINE = 1 << 16        # bytes of a request's first line
MOST_HEAD = 1 << 17        # bytes of a head
MOST_HEADERS = 100
MOST_BYTES = 8 << 20       # maximum bytes of a request's body
MOST_HELD = 64 << 20       # maximum bytes of all bodies held
MOST_PENDING = 8 << 20     # bytes of a stream that its client has not taken yet
LINGER_SECONDS = 1.0       # time for a client to read an error before its connection is closed
METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH")
_PIECE = 1 << 16
_END = re.compile(rb"\r?\n\r?\n")
_ABSOLUTE = re.compile(r"http://([^/?#]+)([/?].*|)", re.IGNORECASE)   # the form of a request to a proxy
_HEADER = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([^\x00-\x08\x0a-\x1f\x7f]*)")   # RFC 9110, 5.1 and 5.5
_OWN_PAGES = re.compile(r"https?://(127\.0\.0\.1|localhost|\[::1\])(:[0-9]+)?", re.I)   # origins
_ONCE = ("host", "content-length", "transfer-encoding")   # headers that may appear once only

class RequestError(Exception):
  """A request that gets an error as its answer. status: of HTTP. headers: of the answer. fatal: the connection ends
  with it."""
  def __init__(self, status: int, message: str, code: str | None = None, fatal: bool = False,
               headers: dict[str, str] | None = None):
    super().__init__(message)
    self.status, self.message, self.code, self.fatal, self.headers = status, message, code, fatal, headers or {}

class Gone(Exception):
  """The client has closed its connection, or the server has given it up."""

class Request(NamedTuple):
  """One request. path: without the query. headers: by lower-case name."""
  method: str
  path: str
  version: str
  headers: dict[str, str]
  body: bytes = b""

  @property
  def keeps(self) -> bool:
    """May another request follow on this connection?"""
    return self.version == "HTTP/1.1" and "close" not in [word.strip().lower()
                                                          for word in self.headers.get("connection", "").split(",")]

def parse_head(head: bytes) -> Request:
  """Parse a request without its body, from the bytes up to its first empty line.

  Raises RequestError. It is fatal, since the start of the next request is unknown.
  """
  def refuse(status: int, why: str) -> RequestError: return RequestError(status, why, fatal=True)
  lines = head.decode("latin-1").split("\r\n")
  if any("\n" in line or "\r" in line for line in lines):
    raise refuse(400, "a line of the head does not end with CR LF")
  words = lines[0].split(" ")
  if len(words) != 3 or not all(words) or not lines[0].isascii() or not lines[0].isprintable():
    raise refuse(400, "the first line is no request")
  method, target, version = words
  if method not in METHODS: raise refuse(501, "the method is not known")
  if version not in ("HTTP/1.0", "HTTP/1.1"):
    raise refuse(505 if re.fullmatch(r"HTTP/[0-9]\.[0-9]", version) else 400, "HTTP/1.1 is spoken here")
  if len(lines) - 1 > MOST_HEADERS: raise refuse(431, f"there are more than {MOST_HEADERS} headers")
  headers: dict[str, str] = {}
  for line in lines[1:]:
    found = _HEADER.fullmatch(line)
    if found is None: raise refuse(400, "a line of the head is no header")
    name, value = found[1].lower(), found[2].strip(" \t")
    if name in headers and name in _ONCE: raise refuse(400, f"there are two headers {name}")
    headers[name] = f"{headers[name]}, {value}" if name in headers else value
  if version == "HTTP/1.1" and "host" not in headers: raise refuse(400, "there is no header host")
  # it takes precedence (RFC 9112, 3.2.2)
  if (whole := _ABSOLUTE.fullmatch(target)) is not None: headers["host"], target = whole[1], whole[2]
  return Request(method, target.partition("?")[0] or "/", version, headers)

def body_length(request: Request) -> int:
  """Return the length of a request's body. Raises RequestError if it is missing or too large."""
  length = request.headers.get("content-length")
  if "transfer-encoding" in request.headers:
    if length is not None: raise RequestError(400, "there are both Content-Length and Transfer-Encoding", fatal=True)
    raise RequestError(411, "the request does not say its Content-Length", fatal=True)
  if length is None: return 0
  if not re.fullmatch("[0-9]+", length): raise RequestError(400, "the Content-Length is no number of bytes", fatal=True)
  if len(length) > 12 or int(length) > MOST_BYTES:
    raise RequestError(413, f"the body has more than {MOST_BYTES} bytes", fatal=True)
  if request.headers.get("expect", "100-continue").lower() != "100-continue":
    raise RequestError(417, "only 100-continue is expected", fatal=True)
  return int(length)

class Connection:
  """A client. Its thread reads requests and writes answers. Other threads may call `drop`."""
  def __init__(self, server: HttpServer, sock: socket.socket, address: str):
    self.server, self.sock, self.address = server, sock, address
    self.buffer, self.pending = b"", bytearray()
    self.held = 0                 # bytes of the present body
    self.request: Request | None = None
    self.begun = self.streams = self.chunked = self.closing = self.dropped = self.reading = False
    self.moved = 0.0              # time when a stream's client last took data

  def run(self) -> None:
    """Answer requests until one side ends the connection."""
    try:
      self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
      while not self.closing: self._once()
      self._linger()
    except (Gone, OSError): pass   # the client has gone, or was given up
    finally:
      self.server._ended(self)
      self.sock.close()

  def drop(self) -> None:
    """End the connection from another thread."""
    self.dropped = True
    with contextlib.suppress(OSError): self.sock.shutdown(socket.SHUT_RDWR)

  def _once(self) -> None:
    """Answer one request. Errors become answers. After an answer has begun, an error ends its connection."""
    self.begun, self.streams, self.request = False, False, None
    try:
      self.request = request = self._read()
      self.closing = not request.keeps
      self.server.check_host(request)
      self.server.respond(request, self)
    except RequestError as error: self._fail(error)
    except (Gone, OSError): raise
    # The server continues, and reports the error.
    except Exception as error:  # noqa: BLE001
      sys.stderr.write(f"{self.request.path if self.request else self.address}: {type(error).__name__}: {error}\n")
      self._fail(RequestError(500, f"an error in the server: {type(error).__name__}", fatal=True))
    finally: self.server._hold(self, -self.held)

  def _fail(self, error: RequestError) -> None:
    self.closing = self.closing or error.fatal or self.begun
    self.server.fail(error, self)

  # ***** reading *****

  def _receive(self, deadline: float) -> bytes:
    """Receive some bytes before a deadline. Raises TimeoutError, Gone."""
    self.sock.settimeout(max(deadline - time.monotonic(), 0.001))
    data = self.sock.recv(_PIECE)
    if not data: raise Gone
    return data

  def _read(self) -> Request:
    """Read the next request, whole. Raises RequestError, Gone."""
    self.server._wait(self)
    self.reading = True
    try: return self._whole()
    finally:
      self.reading = False
      self.server._work(self)

  def _whole(self) -> Request:
    if not self.buffer:
      try: self.buffer = self._receive(time.monotonic() + TRANSFER_SECONDS)
      except TimeoutError: raise Gone from None
    deadline = time.monotonic() + TRANSFER_SECONDS
    try:
      request = parse_head(self._head(deadline))
      length = body_length(request)
      if "expect" in request.headers and len(self.buffer) < length: self._send(b"HTTP/1.1 100 Continue\r\n\r\n")
      return request._replace(body=self._body(length, deadline))
    except TimeoutError:
      raise RequestError(408, f"the request took more than {TRANSFER_SECONDS:g} seconds", fatal=True) from None

  def _head(self, deadline: float) -> bytes:
    """Read the bytes before the first empty line, and drop that line."""
    at = 0
    while (end := _END.search(self.buffer, at)) is None:
      if self.buffer[:1] in (b"\r", b"\n"): raise RequestError(400, "there is no request in the first line", fatal=True)
      if b"\n" not in self.buffer[:MOST_LINE] and len(self.buffer) >= MOST_LINE:
        raise RequestError(414, "the first line is too long", fatal=True)
      if len(self.buffer) > MOST_HEAD: break
      at = max(len(self.buffer) - 3, 0)
      self.buffer += self._receive(deadline)
    if end is None or end.start() > MOST_HEAD:
      raise RequestError(431, f"the head has more than {MOST_HEAD} bytes", fatal=True)
    if end[0] != b"\r\n\r\n": raise RequestError(400, "a line of the head does not end with CR LF", fatal=True)
    head, self.buffer = self.buffer[:end.start()], self.buffer[end.end():]
    return head

  def _body(self, length: int, deadline: float) -> bytes:
    body = bytearray(self.buffer[:length])
    self.buffer = self.buffer[length:]
    self.server._hold(self, len(body))
    while len(body) < length:
      data = self._receive(deadline)
      self.server._hold(self, min(len(data), length - len(body)))
      self.buffer = data[length - len(body):]
      body += data[:length - len(body)]
    return bytes(body)

  def alive(self) -> None:
    """Raise Gone if the client has closed its connection."""
    self.sock.settimeout(0)
    try: gone = not self.sock.recv(1, socket.MSG_PEEK)
    except BlockingIOError: gone = False
    except OSError: gone = True
    if gone: raise Gone

  # ***** writing *****

  def _send(self, data: bytes) -> None:
    """Send bytes that the client takes in time. Raises OSError."""
    self.server._wait(self)
    self.sock.settimeout(TRANSFER_SECONDS + len(data) / SLOWEST)
    self.sock.sendall(data)
    if not self.reading: self.server._work(self)

  def _head_of(self, status: int, headers: dict[str, str]) -> bytes:
    self.begun = True
    if self.server.log:
      what = f'"{self.request.method} {self.request.path} {self.request.version}"' if self.request else "no request"
      sys.stderr.write(f"{self.address} {what} {status}\n")
    lines = [f"HTTP/1.1 {status} {http.client.responses.get(status, '')}", "Server: tinyhw",
             *(f"{name}: {value}" for name, value in headers.items())]
    if self.closing: lines.append("Connection: close")
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n"

  def answer(self, status: int, kind: str, data: bytes, headers: dict[str, str] | None = None) -> None:
    """Send a whole answer. kind: its Content-Type."""
    head = self._head_of(status, {"Content-Type": kind, "Content-Length": str(len(data)), **(headers or {})})
    self._send(head if self.request is not None and self.request.method == "HEAD" else head + data)

  def begin(self, kind: str) -> None:
    """Send the head of an answer of unknown length. It has chunks, or lasts until the end of the connection for clients
    without chunks."""
    assert self.request is not None
    self.streams, self.chunked = True, self.request.version != "HTTP/1.0"
    head = self._head_of(200, {"Content-Type": kind, "Cache-Control": "no-cache"}
                         | ({"Transfer-Encoding": "chunked"} if self.chunked else {}))
    self.moved = time.monotonic()
    self._offer(head)

  def part(self, data: bytes) -> None:
    """Send more of the answer. It never blocks: data that the client does not take yet are kept. Raises Gone for a
    client that takes nothing."""
    if data: self._offer(b"%x\r\n%s\r\n" % (len(data), data) if self.chunked else data)

  def end(self) -> None:
    """End the answer. Waits until the client has taken everything."""
    if self.chunked: self.pending += b"0\r\n\r\n"
    data = bytes(self.pending)
    self.pending.clear()
    self._send(data)

  def _offer(self, data: bytes) -> None:
    self.pending += data
    self.sock.settimeout(0)
    try: sent = self.sock.send(self.pending)
    except BlockingIOError: sent = 0
    del self.pending[:sent]
    now = time.monotonic()
    if sent or not self.pending: self.moved = now
    if now - self.moved > TRANSFER_SECONDS or len(self.pending) > MOST_PENDING: raise Gone

  def _linger(self) -> None:
    """Let the client read the answer: closing a connection with unread bytes would discard the answer."""
    self.server._wait(self)
    self.sock.shutdown(socket.SHUT_WR)
    deadline = time.monotonic() + LINGER_SECONDS
    with contextlib.suppress(TimeoutError):
      while time.monotonic() < deadline: self._receive(deadline)

class HttpServer:
  """Listens from the start. `serve_forever` answers until `shutdown`; `server_close` frees the port.

  server_address: (host, port); port 0 is any free port. advice: the remedy if the port cannot be opened. Raises
  ConfigError.
  """
  log = False

  def __init__(self, server_address: tuple[str, int], advice: str = "choose another port, or 0"):
    host, port = server_address
    self.socket = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    try:
      if sys.platform != "win32": self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
      self.socket.bind(server_address)
      self.socket.listen(MOST_CONNECTIONS)
    except (OSError, OverflowError, TypeError) as error:
      self.socket.close()
      reason = ("ports go from 0 to 65535" if isinstance(error, OverflowError) else getattr(error, "strerror", None)
                or error)
      raise ConfigError(f"{host}:{port} cannot be opened: {reason}; {advice}") from None
    self.server_address: tuple[str, int] = self.socket.getsockname()[:2]
    self.server_port: int = self.server_address[1]
    self.hosts = self._hosts()
    self._lock = threading.Lock()
    self._connections: set[Connection] = set()
    self._waiting: dict[Connection, None] = {}   # connections that wait for their clients, oldest first
    self._held = 0                               # bytes of all bodies
    self._stop, self._stopped = threading.Event(), threading.Event()
    self._stopped.set()

  def _hosts(self) -> frozenset[str] | None:
    """Return the names that requests may give for their host; None: any."""
    address, port = self.server_address
    if not ipaddress.ip_address(str(address).partition("%")[0]).is_loopback: return None
    names = (str(address), "localhost", "127.0.0.1", "[::1]")
    return frozenset(f"{name}:{port}" for name in names) | (frozenset(names) if port == 80 else frozenset())

  @property
  def url(self) -> str:
    host = str(self.server_address[0])
    return f"http://{f'[{host}]' if ':' in host else host}:{self.server_port}"

  # ***** for subclasses *****

  def respond(self, request: Request, connection: Connection) -> None:
    """Answer a request with `connection.answer`, or with begin, part and end. May raise RequestError."""
    raise NotImplementedError

  def fail(self, error: RequestError, connection: Connection) -> None:
    """Answer with an error."""
    if not connection.begun:
      connection.answer(error.status, "text/plain; charset=utf-8", error.message.encode("utf-8", "replace"),
                        error.headers)

  # ***** connections *****

  def check_host(self, request: Request) -> None:
    """Raise RequestError for a request to another host, or from a page of another site."""
    if self.hosts is None: return
    host, origin = request.headers.get("host", ""), request.headers.get("origin")
    if host.lower() not in self.hosts:
      raise RequestError(403, f"this server does not answer for the host {host!r:.100}", fatal=True)
    if origin is not None and not _OWN_PAGES.fullmatch(origin):
      raise RequestError(403, f"this server does not answer to pages of {origin!r:.100}", fatal=True)

  def serve_forever(self, poll_interval: float = 0.5) -> None:
    """Accept connections until `shutdown`."""
    self._stopped.clear()
    self.socket.settimeout(poll_interval)
    try:
      while not self._stop.is_set(): self._accept()
    finally:
      self._stop.clear()
      self._stopped.set()

  def shutdown(self) -> None:
    """End `serve_forever`, which runs in another thread. Connections continue."""
    self._stop.set()
    self._stopped.wait()

  def server_close(self) -> None:
    """Free the port, and end all connections."""
    self.socket.close()
    with self._lock: connections = list(self._connections)
    for connection in connections: connection.drop()

  def _accept(self) -> None:
    try: sock, address = self.socket.accept()
    except TimeoutError: return
    # The client has gone, or there are too many files: other connections may end.
    except OSError:
      self._stop.wait(0.05)
      return
    connection, oldest = Connection(self, sock, str(address[0])), None
    with self._lock:
      if len(self._connections) >= MOST_CONNECTIONS and self._waiting:
        oldest = next(iter(self._waiting))
        oldest.dropped = True
        self._forget(oldest)
      full = len(self._connections) >= MOST_CONNECTIONS
      if not full:
        self._connections.add(connection)
        self._waiting[connection] = None
    if oldest is not None: oldest.drop()
    try:
      if not full: return threading.Thread(target=connection.run, daemon=True).start()
    except RuntimeError: self._ended(connection)   # no thread is available
    self._send_away(sock)

  def _send_away(self, sock: socket.socket) -> None:
    """Report that all connections are busy, without blocking."""
    with contextlib.suppress(OSError):
      sock.setblocking(False)
      sock.send(b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nRetry-After: 1\r\nConnection: close\r\n\r\n")
      sock.shutdown(socket.SHUT_WR)
    sock.close()

  def _forget(self, connection: Connection) -> None:
    """Stop counting a connection. The lock is held."""
    self._connections.discard(connection)
    self._waiting.pop(connection, None)

  def _ended(self, connection: Connection) -> None:
    with self._lock: self._forget(connection)

  def _wait(self, connection: Connection) -> None:
    """Record that the server waits for the client. The connection may then be given up for another. Raises Gone if it
    was."""
    with self._lock:
      if connection.dropped: raise Gone
      self._waiting.setdefault(connection)

  def _work(self, connection: Connection) -> None:
    """Record that the server no longer waits for the client."""
    with self._lock: self._waiting.pop(connection, None)

  def _hold(self, connection: Connection, count: int) -> None:
    """Add to the bytes of bodies held, or subtract. Raises RequestError if all bodies together are too large."""
    with self._lock:
      if count > 0 and self._held + count > MOST_HELD:
        raise RequestError(503, "there are too many requests at once; try again soon", fatal=True,
                           headers={"Retry-After": "1"})
      self._held += count
      connection.held += count
