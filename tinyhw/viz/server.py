"""The page of a recording, on 127.0.0.1: the standard library's HTTP handler, one connection after the other, no threads.

What is served: the page (page.html, all in one file), and the members of one archive as JSON. Only GET, only the paths below, only to requests that
name this server as their host, so that no other site can read it by a name that leads here (DNS rebinding). The page's own script alone may run:
Content-Security-Policy has its hash. Browsers open connections that they do not use at once: a connection is looked at when it has something to say.
"""
from __future__ import annotations
import base64
import hashlib
import os
import re
import selectors
import socket
import sys
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from typing import Any

from tinyhw.errors import ConfigError, FileFormatError
from tinyhw.viz.archive import Archive

ADDRESS = "127.0.0.1"
PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "page.html")
READ_SECONDS = 2.0       # for a request that has begun
MOST_CONNECTIONS = 64    # that wait; the oldest are closed
API = re.compile(r"/api/(index|timeline|(?:schedule|kernel)/[0-9]{1,9})")
SCRIPT = re.compile(rb"<script>(.*?)</script>", re.S)

class Server:
  """Listens from the start. port 0: any that is free. `serve_forever` answers until `close`, or an interrupt."""
  def __init__(self, archive: Archive, port: int = 0):
    self.archive = archive
    with open(PAGE, "rb") as file: self.page = file.read()
    hashes = " ".join(f"'sha256-{base64.b64encode(hashlib.sha256(script).digest()).decode()}'" for script in SCRIPT.findall(self.page))
    self.policy = (f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; connect-src 'self'; img-src data:; base-uri 'none'; "
                   "form-action 'none'; frame-ancestors 'none'")
    self.socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
      if os.name == "posix": self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
      self.socket.bind((ADDRESS, port))
      self.socket.listen(16)
    except (OSError, OverflowError) as error:
      self.socket.close()
      raise ConfigError(f"port {port} of {ADDRESS} cannot be opened: {getattr(error, 'strerror', None) or error}; choose another one, with VIZ=port "
                        "or --port, or none for one that is free") from None
    self.port: int = self.socket.getsockname()[1]
    self.hosts = frozenset(f"{name}:{self.port}" for name in (ADDRESS, "localhost"))
    self.waiting: dict[socket.socket, Any] = {}
    self.selector = selectors.DefaultSelector()
    self.selector.register(self.socket, selectors.EVENT_READ)
    self.closed = False

  @property
  def url(self) -> str: return f"http://{ADDRESS}:{self.port}/"

  def serve_forever(self) -> None:
    while not self.closed: self.handle_once(0.5)

  def handle_once(self, timeout: float) -> None:
    """Accept what has come, and answer the connections that have something to say."""
    for key, _ in self.selector.select(timeout):
      if key.fileobj is self.socket: self._accept()
      elif isinstance(key.fileobj, socket.socket): self._answer(key.fileobj)

  def _accept(self) -> None:
    try: connection, address = self.socket.accept()
    except OSError: return  # it is gone again
    self.waiting[connection] = address
    self.selector.register(connection, selectors.EVENT_READ)
    while len(self.waiting) > MOST_CONNECTIONS: self._drop(next(iter(self.waiting)))

  def _drop(self, connection: socket.socket) -> None:
    self.waiting.pop(connection, None)
    self.selector.unregister(connection)
    connection.close()

  def _answer(self, connection: socket.socket) -> None:
    address = self.waiting.pop(connection)
    self.selector.unregister(connection)
    connection.settimeout(READ_SECONDS)
    try: Handler(connection, address, self)  # type: ignore[arg-type]  # it wants any object as its server, and only keeps it
    except OSError: pass  # the browser went away
    finally: connection.close()

  def close(self) -> None:
    self.closed = True
    for connection in list(self.waiting): self._drop(connection)
    self.selector.close()
    self.socket.close()
    self.archive.close()

class Handler(BaseHTTPRequestHandler):
  """One request. HTTP/1.0: the connection ends with the answer."""
  server: Server  # type: ignore[assignment]  # see Server._answer
  server_version, sys_version = "tinyhw", ""
  timeout = READ_SECONDS

  def do_GET(self) -> None:
    host = self.headers.get_all("Host") or []
    if len(host) != 1 or host[0].lower() not in self.server.hosts: return self._fail(HTTPStatus.FORBIDDEN, "this page is for 127.0.0.1 only")
    path = self.path.partition("?")[0]
    if path == "/": return self._send(HTTPStatus.OK, "text/html; charset=utf-8", self.server.page)
    found = API.fullmatch(path)
    if found is None: return self._fail(HTTPStatus.NOT_FOUND, "there is no such page")
    try: data = self.server.archive.read(found[1])
    except FileFormatError as error: return self._fail(HTTPStatus.INTERNAL_SERVER_ERROR, error.message)
    if data is None: return self._fail(HTTPStatus.NOT_FOUND, "this was not recorded")
    self._send(HTTPStatus.OK, "application/json", data)

  def _fail(self, status: HTTPStatus, text: str) -> None: self._send(status, "text/plain; charset=utf-8", text.encode("utf-8", "replace"))

  def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
    """What the standard library answers to other methods and malformed requests, as plain text without an echo of the request."""
    self._fail(HTTPStatus(code), HTTPStatus(code).phrase)

  def _send(self, status: HTTPStatus, kind: str, data: bytes) -> None:
    self.send_response(status)
    for name, value in (("Content-Type", kind), ("Content-Length", str(len(data))), ("Content-Security-Policy", self.server.policy),
                        ("X-Content-Type-Options", "nosniff"), ("Referrer-Policy", "no-referrer"), ("Cross-Origin-Resource-Policy", "same-origin"),
                        ("Cache-Control", "no-store")): self.send_header(name, value)
    self.end_headers()
    self.wfile.write(data)

  def log_message(self, format: str, *args: Any) -> None: pass

def serve(path: str, port: int = 0) -> None:
  """Show a recording until Ctrl-C. Raises MissingFileError, FileFormatError, ConfigError."""
  server = Server(Archive(path), port)
  sys.stderr.write(f"tinyhw: {path}\ntinyhw: open {server.url} (Ctrl-C ends it)\n")
  sys.stderr.flush()
  try: server.serve_forever()
  except KeyboardInterrupt: sys.stderr.write("\n")
  finally: server.close()
