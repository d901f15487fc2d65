"""tinyhw/files/regular.py: special files in place of regular ones, and files that are whole or absent."""
import errno
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from tinyhw import Tensor

from tinyhw.emulator import command
from tinyhw.errors import ArgumentError, DriverError, FileFormatError, MissingFileError, TinyError
from tinyhw.files import regular as files
from tinyhw.llm.gguf import gguf_load
from tinyhw.nn.onnx.parser import OnnxPBParser
from tinyhw.nn.state import safe_load, safe_save, torch_load
from tinyhw.viz.archive import Archive

posix = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names here")
ROOT = Path(__file__).resolve().parents[2]

def pipe(path: Path) -> None: os.mkfifo(path)
def folder(path: Path) -> None: path.mkdir()
def device(path: Path) -> None: path.symlink_to("/dev/zero")
def link_to_pipe(path: Path) -> None:
  os.mkfifo(path.with_suffix(".pipe"))
  path.symlink_to(path.with_suffix(".pipe"))
def unix_socket(path: Path) -> None:
  with socket.socket(socket.AF_UNIX) as made: made.bind(str(path))

NO_FILES = [pipe, folder, device, link_to_pipe, unix_socket]

@posix
@pytest.mark.parametrize("make", NO_FILES)
def test_no_file_is_opened_but_regular_ones(tmp_path: Path, make: Callable[[Path], None]) -> None:
  make(tmp_path / "x")
  with pytest.raises(files.NotRegular): files.open_regular(tmp_path / "x")
  with pytest.raises(ArgumentError, match="is a folder, a pipe or a device; give the path of a thing"):
    files.open_input(tmp_path / "x", "a thing")

def test_open_input_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
  with pytest.raises(MissingFileError, match="there is no file .*none; give the path of a thing"):
    files.open_input(tmp_path / "none", "a thing")
  with pytest.raises(ArgumentError, match="cannot be the name of a thing"): files.open_input("a\0b", "a thing")
  (tmp_path / "x").write_bytes(b"here")
  with files.open_input(tmp_path / "x", "a thing") as file: assert file.read() == b"here"
  def refuse(*_: object) -> int: raise PermissionError(errno.EACCES, "Permission denied")
  monkeypatch.setattr(files.os, "open", refuse)
  with pytest.raises(DriverError, match="opening .*x: Permission denied; check its permissions"):
    files.open_input(tmp_path / "x", "a thing")

@posix
def test_a_pipe_that_comes_between_the_looks_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
  (tmp_path / "x").write_bytes(b"")
  look = os.stat(tmp_path / "x")
  (tmp_path / "x").unlink()
  os.mkfifo(tmp_path / "x")
  monkeypatch.setattr(files.os, "stat", lambda *_, **__: look)
  before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
  with pytest.raises(files.NotRegular): files.open_regular(tmp_path / "x")
  assert not before or len(os.listdir("/proc/self/fd")) == before

READERS: dict[str, Callable[[Path], object]] = {
  "Tensor": lambda path: Tensor(path).data(), "safe_load": safe_load, "torch_load": torch_load, "gguf_load": gguf_load,
  "onnx": lambda path: OnnxPBParser(path), "viz": lambda path: Archive(str(path)),
  "emulate": lambda path: command.run([str(path), "--arch", "gfx1100"]),
}

@posix
@pytest.mark.parametrize("make", NO_FILES)
@pytest.mark.parametrize("reader", READERS)
def test_no_reader_of_a_path_waits_for_a_pipe(tmp_path: Path, reader: str, make: Callable[[Path], None]) -> None:
  """It used to hang, or read a device for ever."""
  make(tmp_path / "x")
  with pytest.raises(TinyError, match=r"folder|pipe|no recording"): READERS[reader](tmp_path / "x")

# **** whom a file belongs to ****

@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="files have no user here")
def test_whose_files_are_ours(monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setattr(files.os, "geteuid", lambda: 1000)
  def found(user: int, mode: int) -> os.stat_result:
    return SimpleNamespace(st_uid=user, st_mode=mode)  # type: ignore[return-value]
  assert [files.is_ours(found(user, 0o600)) for user in (1000, 0, 1001)] == [True, True, False]
  assert [files.is_ours(found(1000, mode)) for mode in (0o644, 0o620, 0o602)] == [True, False, False]
  assert [files.belongs_to_us(found(user, 0o666)) for user in (1000, 0, 1001)] == [True, True, False]

@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="folders have no modes here")
def test_folders_that_are_made_are_private(tmp_path: Path) -> None:
  files.make_folder(str(tmp_path / "a" / "b" / "c"))
  assert [os.stat(tmp_path / part).st_mode & 0o777 for part in ("a", "a/b", "a/b/c")] == [0o700] * 3
  (tmp_path / "file").write_bytes(b"")
  with pytest.raises(OSError): files.make_folder(str(tmp_path / "file" / "below"))
  with pytest.raises(OSError): files.make_folder(str(tmp_path / "file"))

# **** files to write ****

def test_names_of_temporary_files() -> None:
  made = files.temporary_name("/x/weights.1.safetensors")
  assert (files.final_name(os.path.basename(made)) == "weights.1.safetensors"
          and made != files.temporary_name("/x/weights.1.safetensors"))
  assert [files.final_name(name) for name in ("x.tmp", "x.1.tmp", "x.1.a.tmp", "x.1.2.tmp2", "1.2.tmp")] == [None] * 5

KILLED = """
import os, signal
from tinyhw.files import regular as files
files.os.replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
files.write_atomically({path!r}, b"part")
"""

def kill_a_writer(path: Path) -> None:
  done = subprocess.run([sys.executable, "-c", KILLED.format(path=str(path))],
                        env={**os.environ, "PYTHONPATH": str(ROOT)})
  assert done.returncode == -signal.SIGKILL

@posix
def test_the_next_save_removes_what_a_killed_one_left(tmp_path: Path) -> None:
  kill_a_writer(tmp_path / "w.safetensors")
  kill_a_writer(tmp_path / "other")
  mine, others = sorted(tmp_path.iterdir(), key=lambda p: p.name.startswith("other"))
  foreign = tmp_path / "w.safetensors.backup.tmp"
  foreign.write_bytes(b"the user's")
  safe_save({"x": Tensor([1.0])}, str(tmp_path / "w.safetensors"))
  assert sorted(tmp_path.iterdir()) == sorted([others, foreign, tmp_path / "w.safetensors"]) and not mine.exists()

@posix
def test_a_writer_that_is_at_work_keeps_its_file(tmp_path: Path) -> None:
  """Even if another process or thread saves the same file meanwhile."""
  path = str(tmp_path / "x")
  with files.atomic_file(path) as file:
    file.write(b"slow")
    files.write_atomically(path, b"fast")
    done = subprocess.run([sys.executable, "-c",
                           f"from tinyhw.files import regular; regular.write_atomically({path!r}, b'other')"],
                          env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert done.returncode == 0 and len(os.listdir(tmp_path)) == 2 and Path(path).read_bytes() == b"other"
  assert Path(path).read_bytes() == b"slow" and os.listdir(tmp_path) == ["x"]

@posix
def test_a_file_that_is_taken_before_it_is_locked_is_made_again(tmp_path: Path,
                                                                monkeypatch: pytest.MonkeyPatch) -> None:
  plain, taken = files._lock, list[str]()
  def late(file: int, wait: bool) -> bool | None:
    if not taken:
      taken.extend(os.listdir(tmp_path))
      os.unlink(tmp_path / taken[0])
    return plain(file, wait)
  monkeypatch.setattr(files, "_lock", late)
  files.write_atomically(str(tmp_path / "x"), b"whole")
  assert (tmp_path / "x").read_bytes() == b"whole" and len(taken) == 1 and os.listdir(tmp_path) == ["x"]

def test_without_locks_age_decides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setattr(files, "_lock", lambda file, wait: None)
  old, young = tmp_path / "x.7.0.tmp", tmp_path / "x.8.0.tmp"
  for path in (old, young): path.write_bytes(b"part")
  os.utime(old, (time.time() - 90_000,) * 2)
  files.write_atomically(str(tmp_path / "x"), b"whole")
  assert sorted(os.listdir(tmp_path)) == ["x", "x.8.0.tmp"]

@posix
def test_one_name_that_cannot_be_removed_hinders_no_other(tmp_path: Path) -> None:
  (tmp_path / "x.1.0.tmp").symlink_to("/etc/passwd")
  os.mkfifo(tmp_path / "x.2.0.tmp")
  (tmp_path / "x.3.0.tmp").write_bytes(b"part")
  files.remove_abandoned(str(tmp_path))
  assert sorted(os.listdir(tmp_path)) == ["x.1.0.tmp", "x.2.0.tmp"]
  files.remove_abandoned(str(tmp_path / "none"))

@posix
def test_a_durable_file_has_its_name_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
  """The file is synced, then renamed, then its folder is synced."""
  told, sync, replace = list[str](), os.fsync, os.replace
  def synced(file: int) -> None:
    told.append("folder" if os.path.isdir(f"/dev/fd/{file}") else "file")
    sync(file)
  monkeypatch.setattr(files.os, "fsync", synced)
  monkeypatch.setattr(files.os, "replace", lambda a, b: told.append("name") or replace(a, b))
  safe_save({"x": Tensor([1.0])}, str(tmp_path / "x"))
  assert told == ["file", "name", "folder"]

@posix
def test_a_private_file_replaces_whatever_has_its_name(tmp_path: Path) -> None:
  for make in (pipe, device, unix_socket):
    path = tmp_path / make.__name__
    make(path)
    files.write_atomically(str(path), b"bytes", private=True)
    assert path.read_bytes() == b"bytes" and not path.is_symlink() and path.stat().st_mode & 0o777 == 0o600

@posix
def test_a_pipe_that_nobody_reads_is_refused(tmp_path: Path) -> None:
  os.mkfifo(tmp_path / "x")
  with pytest.raises(OSError, match="nobody reads from this pipe"), files.atomic_file(str(tmp_path / "x")): pass
  with pytest.raises(DriverError, match="nobody reads from this pipe or socket; start its reader first"):
    safe_save({}, tmp_path / "x")

@posix
def test_a_pipe_that_is_full_is_waited_for(tmp_path: Path) -> None:
  os.mkfifo(tmp_path / "x")
  got: list[bytes] = []
  def read() -> None:
    with open(tmp_path / "x", "rb") as file: got.append(file.read())
  reader = threading.Thread(target=read)
  reader.start()
  deadline = time.monotonic() + 60
  while True:  # until the reader is there
    try:
      with files.atomic_file(str(tmp_path / "x")) as file: file.write(b"x" * (1 << 20))
      break
    except OSError as error: assert error.errno == errno.ENXIO and time.monotonic() < deadline
  reader.join(60)
  assert got == [b"x" * (1 << 20)]

def test_a_file_that_ends_early_is_told(tmp_path: Path) -> None:
  (tmp_path / "x").write_bytes(b"abc")
  with pytest.raises(FileFormatError): safe_load(tmp_path / "x")
