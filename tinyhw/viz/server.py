"""Serve the page of a recording, on 127.0.0.1.

It serves the page (page.html, all in one file), and the members of one archive as JSON. Only GET and the paths below
are allowed. Only the page's own script may run: Content-Security-Policy has its hash. http/server.py has connections,
requests and their limits.
"""
from __future__ import annotations
import base64
import hashlib
import os
import re
import sys

from tinyhw.errors import FileFormatError
from tinyhw.files.regular import packaged
from tinyhw.http.server import Connection, HttpServer, Request, RequestError
from tinyhw.viz.archive import Archive

ADDRESS = "127.0.0.1"
PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "page.html")
API = re.compile(r"/api/(index|timeline|(?:schedule|kernel)/[0-9]{1,9})")
SCRIPT = re.compile(rb"<script>(.*?)</script>", re.S)

class Server(HttpServer):
  """Listens from the start. port 0: any free port. `serve_forever` answers until `shutdown`, or an interrupt."""
  def __init__(self, archive: Archive, port: int = 0):
    self.archive = archive
    self.page = packaged(PAGE)
    hashes = " ".join(f"'sha256-{base64.b64encode(hashlib.sha256(script).digest()).decode()}'"
                      for script in SCRIPT.findall(self.page))
    policy = (f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; connect-src 'self'; img-src "
              f"data:; base-uri 'none'; "
              "form-action 'none'; frame-ancestors 'none'")
    self.headers = {"Content-Security-Policy": policy, "X-Content-Type-Options": "nosniff",
                    "Referrer-Policy": "no-referrer",
                    "Cross-Origin-Resource-Policy": "same-origin", "Cache-Control": "no-store"}
    super().__init__((ADDRESS, port), "choose another one, with VIZ=port or --port, or none for one that is free")

  @property
  def port(self) -> int: return self.server_port

  @property
  def url(self) -> str: return f"{super().url}/"

  def close(self) -> None:
    self.server_close()
    self.archive.close()

  def respond(self, request: Request, connection: Connection) -> None:
    if request.method != "GET": raise RequestError(405, "only GET is understood", headers={"Allow": "GET"})
    kind, data = self._page(request.path)
    connection.answer(200, kind, data, self.headers)

  def _page(self, path: str) -> tuple[str, bytes]:
    """Return the type and the bytes at a path. Raises RequestError."""
    if path == "/": return "text/html; charset=utf-8", self.page
    found = API.fullmatch(path)
    if found is None: raise RequestError(404, "there is no such page")
    try: data = self.archive.read(found[1])
    except FileFormatError as error: raise RequestError(500, error.message) from None
    if data is None: raise RequestError(404, "this was not recorded")
    return "application/json", data

  def fail(self, error: RequestError, connection: Connection) -> None:
    """Send the error as plain text, which no browser takes for a page."""
    error.headers.update(self.headers)
    super().fail(error, connection)

def serve(path: str, port: int = 0) -> None:
  """Show a recording until Ctrl-C. Raises MissingFileError, FileFormatError, ConfigError."""
  server = Server(Archive(path), port)
  sys.stderr.write(f"tinyhw: {path}\ntinyhw: open {server.url} (Ctrl-C ends it)\n")
  sys.stderr.flush()
  try: server.serve_forever()
  except KeyboardInterrupt: sys.stderr.write("\n")
  finally: server.close()
