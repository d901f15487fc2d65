"""The page's server: what it serves, and what it refuses."""
from __future__ import annotations
import json
import re
import socket
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tinyhw.errors import ConfigError
from tinyhw.http import server as http_server
from tinyhw.viz import server as serving
from tinyhw.viz.archive import VERSION, Archive, ArchiveWriter
from tinyhw.viz.server import Server

@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
  writer = ArchiveWriter()
  writer.add("index", {"version": VERSION, "kernels": ["<script>"]})
  writer.add("kernel/0", {"name": "k"})
  writer.close(str(tmp_path / "a.zip"))
  (tmp_path / "secret.json").write_text("{}")
  found = Server(Archive(str(tmp_path / "a.zip")))
  thread = threading.Thread(target=found.serve_forever)
  thread.start()
  yield found
  found.shutdown()
  thread.join()
  found.close()

def get(server: Server, path: str, **headers: str) -> tuple[int, str, dict[str, str]]:
  request = urllib.request.Request(server.url.rstrip("/") + path, headers=headers)
  try:
    with urllib.request.urlopen(request, timeout=10) as answer:
      return answer.status, answer.read().decode(), dict(answer.headers)
  except urllib.error.HTTPError as error: return error.code, error.read().decode(), dict(error.headers)

def raw(server: Server, data: bytes) -> bytes:
  with socket.create_connection(("127.0.0.1", server.port), timeout=10) as connection:
    connection.sendall(data)
    connection.shutdown(socket.SHUT_WR)
    received = b""
    while block := connection.recv(65536): received += block
  return received

def test_the_page_is_one_file_without_assets(server: Server) -> None:
  status, page, headers = get(server, "/")
  assert status == 200 and headers["Content-Type"] == "text/html; charset=utf-8" and page.startswith("<!doctype html>")
  assert not re.findall(r"""(?:src|href)=["'](?!data:)""",
                        page) and "http://" not in page.replace("http://www.w3.org/2000/svg", "")
  assert "https://" not in page and "@import" not in page and page.count("<script>") == 1

def test_only_its_own_script_may_run(server: Server) -> None:
  _, _, headers = get(server, "/")
  assert re.fullmatch(r"default-src 'none'; script-src 'sha256-[\w+/=]+'; .*", headers["Content-Security-Policy"])
  assert (headers["X-Content-Type-Options"] == "nosniff" and headers["Cache-Control"] == "no-store"
          and "Access-Control-Allow-Origin" not in headers)

def test_members_are_json(server: Server) -> None:
  status, text, headers = get(server, "/api/index")
  assert status == 200 and json.loads(text)["kernels"] == ["<script>"] and headers["Content-Type"] == "application/json"
  assert get(server, "/api/kernel/0?x")[:2] == (200, '{"name":"k"}')

@pytest.mark.parametrize("path", ["/api/kernel/1", "/api/schedule/0", "/api/kernel/-1", "/api/kernel/0.json",
                                  "/api/../secret", "/secret.json",
                                  "/..%2fsecret.json", "/api/kernel/../../secret", "/page.html", "/x//", "/api", "/%00",
                                  "/api/kernel/9999999999"])
def test_nothing_else_is_there(server: Server, path: str) -> None: assert get(server, path)[0] == 404

@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1", "127.0.0.1:1", "evil.example:{port}", "",
                                  "localhost.evil.example:{port}"])
def test_other_hosts_are_refused(server: Server, host: str) -> None:
  status, text, _ = get(server, "/api/index", Host=host.format(port=server.port))
  assert status == 403 and "script" not in text

def test_its_own_names_are_taken(server: Server) -> None:
  assert get(server, "/", Host=f"LOCALHOST:{server.port}")[0] == 200
  assert raw(server, b"GET / HTTP/1.0\r\n\r\n").startswith(b"HTTP/1.1 403"), "a request without a host"
  assert raw(server, f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nHost: evil\r\n\r\n".encode()).startswith(
    b"HTTP/1.1 400")

@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "HEAD", "OPTIONS", "TRACE"])
def test_only_get(server: Server, method: str) -> None:
  answer = raw(server,
               f"{method} /api/index HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nContent-Length: 0\r\n\r\n".encode())
  assert answer.startswith(b"HTTP/1.1 405") and b"script>" not in answer

@pytest.mark.parametrize("data", [b"\r\n", b"<script>alert(1)</script>\r\n\r\n", b"GET\r\n\r\n",
                                  b"GET / HTTP/9.9\r\n\r\n", b"\xff\x00\xfe\r\n\r\n",
                                  b"GET /" + b"a" * 70000])
def test_malformed_requests_do_no_harm(server: Server, data: bytes) -> None:
  try: assert b"<script>alert" not in raw(server, data)
  except ConnectionError: pass  # it has not read all of it
  assert get(server, "/api/index")[0] == 200

def test_connections_that_say_nothing_delay_nobody(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setattr(http_server, "MOST_CONNECTIONS", 8)
  idle = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(20)]
  assert [get(server, "/api/index")[0] for _ in range(3)] == [200] * 3
  for connection in idle: connection.close()
  assert get(server, "/api/index")[0] == 200

def test_a_slow_client_holds_the_page_from_nobody(server: Server) -> None:
  """It sends a byte now and then. The page once waited for it alone."""
  with socket.create_connection(("127.0.0.1", server.port)) as slow:
    for byte in b"GET / HTTP/1.1":
      slow.sendall(bytes((byte,)))
      assert get(server, "/api/index")[0] == 200

def test_it_listens_on_loopback_only(server: Server) -> None:
  assert server.socket.getsockname()[0] == "127.0.0.1" and server.url == f"http://127.0.0.1:{server.port}/"

def test_a_port_that_is_taken_is_told(server: Server, tmp_path: Path) -> None:
  found = Archive(str(tmp_path / "a.zip"))
  with pytest.raises(ConfigError, match=f"127.0.0.1:{server.port} cannot be opened.*choose another one, with VIZ=port"):
    Server(found, server.port)
  with pytest.raises(ConfigError, match="127.0.0.1:70000"): Server(found, 70000)

def test_a_damaged_member_is_an_error_of_the_server(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
  server.archive.names.add("timeline.json")
  monkeypatch.setattr(server.archive.zip, "open", lambda name: (_ for _ in ()).throw(OSError("broken")))
  assert get(server, "/api/timeline")[0] == 500

def test_serve_ends_at_an_interrupt(tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch,
                                    capsys: pytest.CaptureFixture[str]) -> None:
  def interrupt(self: Server) -> None: raise KeyboardInterrupt
  monkeypatch.setattr(Server, "serve_forever", interrupt)
  serving.serve(str(tmp_path / "a.zip"))
  assert re.search(r"open http://127\.0\.0\.1:\d+/ \(Ctrl-C ends it\)", capsys.readouterr().err)
