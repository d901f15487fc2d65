"""tinyhw/files/storage.py: the disk cache among processes and damage, and downloads from a server on loopback."""
import gzip
import hashlib
import http.server
import io
import os
import pickle
import signal
import subprocess
import sys
import tarfile
import threading
import time
import zipfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings, strategies as st
import pytest

from tinyhw.config import CACHEDIR, Context
from tinyhw.errors import FetchError
from tinyhw.files import storage
from tinyhw.files.cache import LEDGER
from tinyhw.files.regular import atomic_file, write_atomically
from tinyhw.helpers import diskcache, diskcache_clear, diskcache_get, diskcache_put, fetch

@pytest.fixture(autouse=True)
def folder(tmp_path: Path) -> Iterator[Path]:
  with Context(CACHEDIR=str(tmp_path / "cache"), CACHE=1): yield tmp_path / "cache"

def entries(folder: Path) -> list[Path]: return [p for p in folder.rglob("*") if p.is_file() and p.name != LEDGER]

# **** the disk cache ****

@pytest.mark.parametrize("key", ["text", 7, b"bytes", {"a": 1, "b": "x"}])
def test_put_get(key: str | int | bytes | dict[str, object]) -> None:
  assert diskcache_get("t", key) is None
  assert diskcache_put("t", key, [1, {"x": b"\0"}]) == [1, {"x": b"\0"}]
  assert diskcache_get("t", key) == [1, {"x": b"\0"}] and diskcache_get("u", key) is None
  diskcache_clear()
  assert diskcache_get("t", key) is None

def test_keys_are_told_apart() -> None:
  diskcache_put("t", "1", "text")
  diskcache_put("t", 1, "number")
  diskcache_put("t", {"b": 2, "a": 1}, "dict")
  assert (diskcache_get("t", "1"), diskcache_get("t", 1),
          diskcache_get("t", {"a": 1, "b": 2})) == ("text", "number", "dict")

def test_prepickled() -> None:
  diskcache_put("t", 1, pickle.dumps((1, 2)), prepickled=True)
  assert diskcache_get("t", 1) == (1, 2)

@pytest.mark.parametrize("damage", [lambda d: d[:-1], lambda d: d[:10], lambda d: b"",
                                    lambda d: d[:-2] + bytes([d[-2] ^ 1]) + d[-1:],
                                    lambda d: b"tinyhw1\n" + d[8:], lambda d: d + b"\0"])
def test_damaged_entries_are_misses_and_get_replaced(folder: Path, damage: object) -> None:
  diskcache_put("t", "k", "value")
  (file,) = entries(folder)
  file.write_bytes(damage(file.read_bytes()))  # type: ignore[operator]
  assert diskcache_get("t", "k") is None
  diskcache_put("t", "k", "value")
  assert diskcache_get("t", "k") == "value"

@given(st.data())
@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_flipped_bit_survives(folder: Path, data: st.DataObject) -> None:
  diskcache_put("t", "k", ["value", 1.5, b"bytes"])
  (file,) = entries(folder)
  good = file.read_bytes()
  bad = bytearray(good)
  for at in data.draw(st.sets(st.integers(0, 8 * len(good) - 1), min_size=1, max_size=3)): bad[at // 8] ^= 1 << at % 8
  bad[:] = (bad[:data.draw(st.integers(0, len(bad)))] + data.draw(st.binary(max_size=3)) if data.draw(st.booleans())
            else bad)
  file.write_bytes(bad)
  assert diskcache_get("t", "k") == (["value", 1.5, b"bytes"] if bytes(bad) == good else None)

@pytest.mark.parametrize(("table", "key"), [("t", "other"), ("u", "k"), ("t", b"k")])
def test_the_entry_of_another_key_is_a_miss(folder: Path, table: str, key: str | bytes) -> None:
  """A whole entry in the file of another key."""
  diskcache_put(table, key, "wrong")
  (other,) = entries(folder)
  content = other.read_bytes()
  diskcache_clear()
  diskcache_put("t", "k", "right")
  (file,) = entries(folder)
  file.write_bytes(content)
  assert diskcache_get("t", "k") is None

@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names here")
def test_a_pipe_or_a_link_in_an_entry_s_place_is_a_miss_and_replaced(folder: Path, tmp_path: Path) -> None:
  diskcache_put("t", "k", 1)
  (file,) = entries(folder)
  file.rename(tmp_path / "moved")
  for make in (lambda: os.mkfifo(file), lambda: file.symlink_to("/dev/zero"),
               lambda: file.symlink_to(tmp_path / "moved")):
    make()
    assert diskcache_get("t", "k") is None and diskcache_put("t", "k", 2) == 2 and diskcache_get("t", "k") == 2
    file.unlink()
  assert (tmp_path / "moved").exists()

def test_an_entry_that_is_too_large_is_neither_kept_nor_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
  diskcache_put("t", "k", b"x" * 1000)
  monkeypatch.setattr(storage, "_MOST_ENTRY_BYTES", 1000)
  assert diskcache_get("t", "k") is None
  diskcache_put("t", "j", b"x" * 1000)
  assert len(entries(folder)) == 1

def test_what_is_no_file_is_a_miss(folder: Path) -> None:
  diskcache_put("t", "k", 1)
  (file,) = entries(folder)
  file.unlink()
  file.mkdir()
  assert diskcache_get("t", "k") is None and diskcache_put("t", "k", 2) == 2 and diskcache_get("t", "k") is None
  assert entries(folder) == [], "what could not be put in its place is removed"

@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="files have no user here")
def test_files_of_other_users_are_misses(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
  """A pickle is a program, so only this user's pickles are loaded."""
  diskcache_put("t", "k", 1)
  user = os.geteuid()
  monkeypatch.setattr(storage.os, "geteuid", lambda: user + 1)
  if user: assert diskcache_get("t", "k") is None   # the administrator's are believed
  monkeypatch.setattr(storage.os, "geteuid", lambda: user)
  assert diskcache_get("t", "k") == 1
  (file,) = entries(folder)
  for mode in (0o620, 0o602):
    file.chmod(mode)
    assert diskcache_get("t", "k") is None
  file.chmod(0o600)
  if user == 0:
    os.chown(file, 1234, -1)
    assert diskcache_get("t", "k") is None

def in_child(program: str, folder: Path) -> "subprocess.CompletedProcess[str]":
  environment = {**os.environ, "CACHEDIR": str(folder), "PYTHONPATH": str(Path(__file__).resolve().parents[2])}
  return subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)

@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="nobody is killed here")
def test_a_writer_that_is_killed_leaves_the_old_value(folder: Path) -> None:
  diskcache_put("t", "k", "old")
  kill = "os.replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)"
  done = in_child(f"import os, signal; from tinyhw.files.storage import diskcache_put; {kill}; diskcache_put('t', "
                  f"'k', 'new')", folder)
  assert done.returncode == -signal.SIGKILL and len(entries(folder)) == 2
  assert diskcache_get("t", "k") == "old"
  diskcache_put("t", "k", "newer")
  assert diskcache_get("t", "k") == "newer"
  diskcache_clear()
  assert entries(folder) == [], "what the writer left is gone with the rest"

@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="nobody is killed here")
def test_what_killed_writers_left_is_removed(folder: Path, tmp_path: Path) -> None:
  """The next process that writes to the folder removes it. Files that are being written, and other names, stay. Folders
  go when they are a day old."""
  kill = "os.replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)"
  in_child(f"import os, signal; from tinyhw.files.storage import diskcache_put; {kill}; diskcache_put('t', 'k', 1)",
           folder)
  left, = entries(folder)
  unpacked, fresh, named = (left.with_name(name)
                            for name in ("archive.extracted.77.0.tmp", "archive.extracted.77.1.tmp", "77.0.tmp"))
  for path in (unpacked, fresh): path.mkdir()
  named.write_bytes(b"")
  os.utime(unpacked, (time.time() - 90_000,) * 2)
  with atomic_file(str(left.with_name("other"))):
    done = in_child("from tinyhw.files.storage import diskcache_put; diskcache_put('t', 'k', 3)", folder)
    assert done.returncode == 0 and not done.stderr and diskcache_get("t", "k") == 3
    assert (not left.exists() and not unpacked.exists() and fresh.exists() and named.exists()
            and len(entries(folder)) == 3)

def test_a_link_stays_and_what_it_means_is_replaced(tmp_path: Path) -> None:
  target, link = tmp_path / "deep" / "file", tmp_path / "link"
  target.parent.mkdir()
  target.write_bytes(b"old")
  link.symlink_to(target)
  write_atomically(str(link), b"new")
  assert link.is_symlink() and target.read_bytes() == b"new" and os.listdir(target.parent) == ["file"]

@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names here")
def test_a_pipe_or_device_is_written_to_and_stays(tmp_path: Path) -> None:
  """Otherwise root, writing to /dev/null, would replace it by a file."""
  pipe = tmp_path / "pipe"
  os.mkfifo(pipe)
  reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
  try:
    with atomic_file(str(pipe), durable=True) as file: file.write(b"bytes")
    assert os.read(reader, 100) == b"bytes" and pipe.is_fifo() and os.listdir(tmp_path) == ["pipe"]
  finally: os.close(reader)

def test_a_full_disk_costs_nothing_but_speed(folder: Path) -> None:
  """A limit on the size of files fails as a full disk does: in the middle of writing."""
  pytest.importorskip("resource", reason="no limits here")
  limit = "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000)); signal.signal(signal.SIGXFSZ, signal.SIG_IGN)"
  use = ("assert diskcache_put('t', 'k', 'x' * 100_000) == 'x' * 100_000 and diskcache_get('t', 'k') is None; "
         "diskcache_put('t', 'j', 1)")
  done = in_child(f"import resource, signal; from tinyhw.files.storage import diskcache_get, diskcache_put; {limit}; "
                  f"{use}", folder)
  assert done.returncode == 0, done.stderr
  assert len(entries(folder)) == 1 and diskcache_get("t", "j") == 1 and diskcache_get("t", "k") is None

def test_value_whose_class_is_gone_is_a_miss() -> None:
  diskcache_put("t", "k", b"cnowhere_to_be_found\nThing\n.", prepickled=True)
  assert diskcache_get("t", "k") is None

def test_a_folder_that_cannot_be_used_costs_nothing_but_speed(tmp_path: Path) -> None:
  (tmp_path / "file").write_text("not a folder")
  with Context(CACHEDIR=str(tmp_path / "file" / "below")):
    assert diskcache_put("t", "k", 5) == 5 and diskcache_get("t", "k") is None
    diskcache_clear()

def test_cache_off(folder: Path) -> None:
  diskcache_put("t", "k", 1)
  with Context(CACHE=0):
    assert diskcache_get("t", "k") is None and diskcache_put("t", "j", 2) == 2
  assert diskcache_get("t", "k") == 1 and diskcache_get("t", "j") is None

HAMMER = """
from tinyhw.helpers import diskcache_get, diskcache_put
for i in range(60):
  found = diskcache_get("t", i % 5)
  assert found is None or found == [i % 5] * 1000, "a reader saw half a value"
  diskcache_put("t", i % 5, [i % 5] * 1000)
"""

def test_many_processes_share_it(folder: Path) -> None:
  environment = {**os.environ, "CACHEDIR": str(folder), "PYTHONPATH": str(Path(__file__).resolve().parents[2])}
  processes = [subprocess.Popen([sys.executable, "-c", HAMMER], env=environment) for _ in range(8)]
  assert [process.wait(60) for process in processes] == [0] * 8
  assert len(entries(folder)) == 5, "temporary files were left"

def test_failed_write_leaves_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
  def interrupted(a: str, b: str) -> None: raise KeyboardInterrupt
  monkeypatch.setattr(os, "replace", interrupted)
  with pytest.raises(KeyboardInterrupt): diskcache_put("t", "k", 1)
  assert entries(folder) == []

def test_decorator() -> None:
  calls = []
  @diskcache
  def slow(x: int, scale: int = 1) -> int | None:
    calls.append(x)
    return x * scale or None
  assert [slow(2), slow(2), slow(2, scale=3), slow(0), slow(0)] == [2, 2, 6, None, None] and calls == [2, 2, 0]

def test_decorator_knows_the_constants_of_a_function() -> None:
  """`x * 3` and `x * 4` have the same bytecode."""
  def scaled(source: str) -> Callable[[int], int]:
    names: dict[str, Any] = {"__name__": "some_module"}
    exec(source, names)
    found: Callable[[int], int] = diskcache(names["f"])
    return found
  sources = ["def f(x): return x * 3", "def f(x): return x * 4", "def f(x, y=5): return x * y",
             "def f(x, y=6): return x * y",
             "def f(x): return [x * k for k in (7,)][0]", "def f(x): return [x * k for k in (8,)][0]",
             "def f(x): return abs(x)",
             "def f(x): return int(x)", "def f(x, *, y=5): return x + y", "def f(x, *, y=6): return x + y"]
  assert [scaled(source)(-2) for source in sources] == [-6, -8, -10, -12, -14, -16, 2, -2, 3, 4]

def test_cache_dir_follows_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setattr(sys, "platform", "linux")
  monkeypatch.setenv("XDG_CACHE_HOME", "/x")
  with Context(CACHEDIR=""): assert storage.cache_dir() == os.path.join("/x", "tinyhw")
  monkeypatch.setenv("XDG_CACHE_HOME", "relative")
  with Context(CACHEDIR=""): assert os.path.isabs(storage.cache_dir()) and "relative" not in storage.cache_dir()
  with Context(CACHEDIR="/y/z"): assert storage.cache_dir() == os.path.abspath(CACHEDIR.value or "/y/z")

@pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="other systems have other names for the user's folders")
def test_tests_leave_the_users_folders_alone(tmp_path_factory: pytest.TempPathFactory) -> None:
  run = str(tmp_path_factory.getbasetemp())
  assert storage.cache_dir().startswith(run)
  with Context(CACHEDIR=""): assert storage.cache_dir().startswith(run)
  for name in ("CACHEDIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"):
    assert os.environ[name].startswith(run) and os.path.isdir(os.environ[name])

# **** downloads ****

class Server(http.server.ThreadingHTTPServer):
  hits: int = 0

class Handler(http.server.SimpleHTTPRequestHandler):
  def do_GET(self) -> None:
    self.server.hits += 1  # type: ignore[attr-defined]
    if self.path != "/short": return super().do_GET()
    self.send_response(200)
    self.send_header("Content-Length", "100")
    self.end_headers()
    self.wfile.write(b"only this")

  def log_message(self, format: str, *args: object) -> None: pass

@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
  (tmp_path / "www").mkdir()
  (tmp_path / "www" / "a.txt").write_bytes(b"hello" * 10000)
  (tmp_path / "www" / "a.gz").write_bytes(gzip.compress(b"packed"))
  with Server(("127.0.0.1", 0), partial(Handler, directory=str(tmp_path / "www"))) as server:
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    thread.join()

def url(server: Server, name: str) -> str: return f"http://127.0.0.1:{server.server_address[1]}/{name}"

def test_fetch_downloads_once(server: Server, folder: Path) -> None:
  path = fetch(url(server, "a.txt"))
  assert path.read_bytes() == b"hello" * 10000 and folder in path.parents
  assert fetch(url(server, "a.txt")) == path and server.hits == 1
  fetch(url(server, "a.txt"), allow_caching=False)
  with Context(DISABLE_HTTP_CACHE=1): fetch(url(server, "a.txt"))
  assert server.hits == 3 and entries(folder) == [path]

def test_fetch_removes_what_killed_downloads_left(server: Server, folder: Path) -> None:
  (folder / "downloads").mkdir(parents=True)
  (folder / "downloads" / "file.1.0.tmp").write_bytes(b"part")
  path = fetch(url(server, "a.gz"), gunzip=True)
  assert entries(folder) == [path]

def test_fetch_names(server: Server, folder: Path, tmp_path: Path) -> None:
  assert fetch(url(server, "a.txt"), name="b.txt", subdir="sub") == folder / "downloads" / "sub" / "b.txt"
  assert fetch(url(server, "a.txt"), name=tmp_path / "new" / "c.txt").read_bytes()[:5] == b"hello"
  assert fetch(url(server, "a.txt"), headers={"X": "1"}) != fetch(url(server, "a.txt"))
  assert fetch("/some/path") == Path("/some/path") and fetch("./x") == Path("./x")
  assert fetch((tmp_path / "www" / "a.txt").as_uri()).read_bytes()[:5] == b"hello"

def test_fetch_unpacks(server: Server, tmp_path: Path) -> None:
  assert fetch(url(server, "a.gz"), gunzip=True).read_bytes() == b"packed"
  for name, make in (("x.tar.gz", make_tar), ("x.zip", make_zip)):
    (tmp_path / "www" / name).write_bytes(make({"dir/file": b"inside"}))
    for _ in range(2): assert (fetch(url(server, name), extract=True) / "dir" / "file").read_bytes() == b"inside"
  assert server.hits == 3

def test_fetch_takes_no_more_than_its_limit(server: Server, tmp_path: Path, folder: Path) -> None:
  (tmp_path / "www" / "bomb.gz").write_bytes(gzip.compress(bytes(100 << 20)))
  (tmp_path / "www" / "bomb.zip").write_bytes(make_zip({"a": b"x" * 10_000}))
  for name, options, message in (("a.txt", {"limit": 49_999}, "has more than 49999 bytes; if it is what you want, "
                                  "allow more"),
                                 ("bomb.gz", {"gunzip": True}, r"would unpack to more than 6[0-9]+ bytes; if you "
                                  r"trust it, allow more")):
    with pytest.raises(FetchError, match=message): fetch(url(server, name), **options)  # type: ignore[arg-type]
  assert entries(folder) == []
  assert fetch(url(server, "a.txt"), limit=50_000).stat().st_size == 50_000
  with pytest.raises(FetchError, match="would unpack to more than 11000 bytes"):
    fetch(url(server, "bomb.zip"), extract=True, limit=11_000)
  assert (fetch(url(server, "bomb.zip"), extract=True, limit=20_000) / "a").stat().st_size == 10_000

def make_tar(files: dict[str, bytes], kind: bytes = tarfile.REGTYPE) -> bytes:
  stream = io.BytesIO()
  with tarfile.open(fileobj=stream, mode="w:gz") as tar:
    for name, data in files.items():
      member = tarfile.TarInfo(name)
      member.size, member.type, member.linkname = len(data), kind, "/etc/passwd"
      tar.addfile(member, io.BytesIO(data))
  return stream.getvalue()

def make_zip(files: dict[str, bytes]) -> bytes:
  stream = io.BytesIO()
  with zipfile.ZipFile(stream, "w") as z:
    for name, data in files.items(): z.writestr(name, data)
  return stream.getvalue()

@pytest.mark.parametrize("archive", [make_tar({"../out": b"x"}), make_tar({"/tmp/out": b"x"}),
                                     make_tar({"link": b""}, tarfile.SYMTYPE)])
def test_fetch_refuses_archives_that_reach_out(server: Server, tmp_path: Path, folder: Path, archive: bytes) -> None:
  (tmp_path / "www" / "bad.tar.gz").write_bytes(archive)
  with pytest.raises(FetchError, match="is a link or lies outside of the archive"):
    fetch(url(server, "bad.tar.gz"), extract=True)
  assert not list(folder.rglob("out")) and not (tmp_path / "out").exists()

def test_fetch_checks_the_sha256(server: Server, tmp_path: Path, folder: Path) -> None:
  good = hashlib.sha256(b"hello" * 10000).hexdigest()
  path = fetch(url(server, "a.txt"), sha256=good)
  path.write_bytes(b"damaged")
  assert fetch(url(server, "a.txt"), sha256=good).read_bytes()[:5] == b"hello" and server.hits == 2
  with pytest.raises(FetchError, match=f"has the sha256 {good}, not {'0' * 64}"):
    fetch(url(server, "a.txt"), name="n", sha256="0" * 64)
  assert entries(folder) == [path]

@pytest.mark.parametrize("name,message", [
  ("missing", "cannot download .*missing: File not found; check the address"), ("short", "ended early.*; try again"),
  ("a.txt", "is not a gzip file")])
def test_fetch_refuses(server: Server, folder: Path, name: str, message: str) -> None:
  with pytest.raises(FetchError, match=message): fetch(url(server, name), gunzip=name == "a.txt")
  assert entries(folder) == []

def test_fetch_without_a_server() -> None:
  with pytest.raises(FetchError, match="check the address and the network"): fetch("http://127.0.0.1:9/x")
  with pytest.raises(FetchError, match="cannot download nonsense"): fetch("nonsense")

def test_fetch_falls_back_to_the_temporary_folder(server: Server, tmp_path: Path,
                                                  monkeypatch: pytest.MonkeyPatch) -> None:
  (tmp_path / "file").write_text("not a folder")
  monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
  with Context(CACHEDIR=str(tmp_path / "file" / "below")):
    assert tmp_path / "tmp" in fetch(url(server, "a.txt")).parents

def test_fetch_has_a_folder_of_its_own_in_the_temporary_one(server: Server, tmp_path: Path,
                                                            monkeypatch: pytest.MonkeyPatch) -> None:
  """Another user may have made it before: as their own, as a link to theirs, or writable by all."""
  (tmp_path / "file").write_text("not a folder")
  (tmp_path / "tmp").mkdir()
  monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
  own = tmp_path / "tmp" / f"tinyhw-{os.getuid() if hasattr(os, 'getuid') else 0}"
  with Context(CACHEDIR=str(tmp_path / "file" / "below")):
    path = fetch(url(server, "a.txt"))
    if hasattr(os, "geteuid"): assert {place.stat().st_mode & 0o777 for place in (own, own / "downloads")} == {0o700}
    own.rename(tmp_path / "elsewhere")
    own.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(FetchError, match="neither .*below nor .*tinyhw-.* is a folder that this user alone can write "
                       "to; set CACHEDIR to one"):
      fetch(url(server, "a.txt"))
    own.unlink()
    own.write_bytes(b"")
    with pytest.raises(FetchError, match="alone can write to"): fetch(url(server, "a.txt"))
    own.unlink()
    (tmp_path / "elsewhere").rename(own)
    assert fetch(url(server, "a.txt")) == path and server.hits == 1

@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only the administrator gives files away")
@pytest.mark.parametrize("place", ["", "downloads"])
def test_fetch_leaves_a_folder_of_another_user_alone(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                                     place: str) -> None:
  (tmp_path / "file").write_text("not a folder")
  monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
  with Context(CACHEDIR=str(tmp_path / "file" / "below")):
    fetch(url(server, "a.txt")).write_bytes(b"theirs")
    os.chown(tmp_path / "tmp" / f"tinyhw-{os.getuid()}" / place, 1234, -1)
    with pytest.raises(FetchError, match="this user alone can write to"): fetch(url(server, "a.txt"))

@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="folders have no modes here")
def test_fetch_makes_its_folder_private_again(server: Server, folder: Path) -> None:
  """Files that another user put there meanwhile are downloaded again."""
  path = fetch(url(server, "a.txt"), name="a", subdir="sub")
  path.parent.chmod(0o777)
  assert (fetch(url(server, "a.txt"), name="a", subdir="sub") == path and server.hits == 1
          and path.parent.stat().st_mode & 0o777 == 0o700)
  if os.geteuid() == 0:
    os.chown(path, 1234, -1)
    fetch(url(server, "a.txt"), name="a", subdir="sub")
    assert server.hits == 2 and path.stat().st_uid == 0

def test_fetch_refuses_a_subdir_that_leads_out(server: Server) -> None:
  with pytest.raises(FetchError, match="leads out of the folder of downloads; name a folder inside of it"):
    fetch(url(server, "a.txt"), subdir="../x")

@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names here")
def test_fetch_replaces_a_pipe(server: Server, folder: Path) -> None:
  path = fetch(url(server, "a.txt"))
  path.unlink()
  os.mkfifo(path)
  assert fetch(url(server, "a.txt")).read_bytes()[:5] == b"hello" and server.hits == 2

def test_fetch_tells_what_cannot_be_written(server: Server, tmp_path: Path) -> None:
  (tmp_path / "folder" / "x").mkdir(parents=True)
  with pytest.raises(FetchError, match="cannot write .*folder: Is a directory; check the folder's permissions"):
    fetch(url(server, "a.txt"), name=tmp_path / "folder")
