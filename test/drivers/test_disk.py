"""Files as memory: reading, writing, refusals, and the fate of open files."""
import gc
import os
import pathlib
import threading

import pytest

from tinyhw.device import Buffer, BufferOptions, Device, on_disk
from tinyhw.drivers import disk
from tinyhw.dtype import dtypes
from tinyhw.errors import ArgumentError, DeviceError, DriverError, FileFormatError, MissingFileError
from tinyhw.helpers import GlobalCounters

def buffer(path: pathlib.Path, size: int, writable: bool = False) -> Buffer:
  return Buffer(f"DISK:{path}", size, dtypes.uint8, options=BufferOptions(writable=writable))

def test_names(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.chdir(tmp_path)
  assert Device.canonicalize("disk:f") == Device.canonicalize(f"DISK:{tmp_path}/x/../f") == f"DISK:{tmp_path / 'f'}"
  assert on_disk(Device.canonicalize("Disk:f")) and not on_disk("CPU") and not on_disk(None)
  assert Device.canonicalize("DISK:a:b").endswith("/a:b"), "a path may have colons, and keeps its case"
  for name in ("DISK", "disk:"):
    with pytest.raises(DeviceError, match="named with its path: DISK:/path/to/file"): Device.canonicalize(name)
  with pytest.raises(DeviceError, match="keeps a file and computes nothing; the default is one of"):
    Device.DEFAULT = "DISK:f"
  assert not any(on_disk(name) for name in Device.get_available_devices())

def is_open(path: pathlib.Path) -> bool:
  """Return whether this process has a descriptor of a file. Return False if the system does not tell."""
  folder = "/proc/self/fd"
  return os.path.isdir(folder) and any(os.path.realpath(f"{folder}/{name}") == os.path.realpath(path)
                                       for name in os.listdir(folder))

def test_a_device_lives_as_long_as_its_buffers(tmp_path: pathlib.Path) -> None:
  (tmp_path / "f").write_bytes(b"abc")
  held = buffer(tmp_path / "f", 3)
  device = Device[held.device]
  assert bytes(held.as_memoryview()) == b"abc" and Device[held.device] is device
  assert is_open(tmp_path / "f") or not os.path.isdir("/proc/self/fd")
  name = held.device
  del held, device
  gc.collect()
  assert not is_open(tmp_path / "f") and name not in Device._files and name not in Device._opened

def test_reads_parts(tmp_path: pathlib.Path) -> None:
  (tmp_path / "f").write_bytes(bytes(range(100)))
  whole = buffer(tmp_path / "f", 100)
  assert (bytes(whole.view(4, dtypes.uint8, 10).as_memoryview()) == bytes([10, 11, 12, 13])
          and whole.view(1, dtypes.uint16, 2).nbytes == 2)
  assert whole.is_initialized() and not whole.size == 0
  memory = GlobalCounters.mem_used
  assert (len(whole.as_memoryview(allow_zero_copy=True)) == 100
          and GlobalCounters.mem_used == memory), "a file takes no memory of a device"
  with pytest.raises(DeviceError, match="not visible to the host"): whole.as_memoryview(force_zero_copy=True)
  target = Buffer("PYTHON", 100, dtypes.uint8).copy_from(whole)
  assert bytes(target.as_memoryview()) == bytes(range(100))

def test_long_reads_are_done_in_parts(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setattr(disk, "_MOST_AT_ONCE", 7)
  whole = buffer(tmp_path / "f", 100, writable=True)
  whole.copyin(memoryview(bytes(range(100))))
  assert (tmp_path / "f").read_bytes() == bytes(whole.as_memoryview()) == bytes(range(100))

def test_writes_make_the_file(tmp_path: pathlib.Path) -> None:
  path = tmp_path / "f"
  whole = buffer(path, 10, writable=True)
  assert not path.exists()
  with pytest.raises(MissingFileError, match="there is no file .*f; check the path"): whole.as_memoryview()
  whole.view(2, dtypes.uint8, 4).copyin(memoryview(b"xy"))
  assert path.read_bytes() == bytes(4) + b"xy" + bytes(4)
  path.write_bytes(b"longer than ten bytes")
  whole.copyin(memoryview(b"0123456789"))
  assert path.read_bytes() == b"0123456789n ten bytes", "what lies behind stays"

def test_read_only_unless_asked_for(tmp_path: pathlib.Path) -> None:
  (tmp_path / "f").write_bytes(b"abc")
  with pytest.raises(DeviceError, match=r"open for reading only; to write to it, use Tensor.empty\(n, device=\"DISK:"):
    buffer(tmp_path / "f", 3).copyin(memoryview(b"xyz"))
  assert (tmp_path / "f").read_bytes() == b"abc"

def test_a_file_that_became_shorter(tmp_path: pathlib.Path) -> None:
  (tmp_path / "f").write_bytes(bytes(1 << 16))
  whole = buffer(tmp_path / "f", 1 << 16)
  assert len(whole.as_memoryview()) == 1 << 16
  os.truncate(tmp_path / "f", 100)
  with pytest.raises(FileFormatError, match="ends at byte 100, and bytes 0 to 65536 are wanted; it became shorter"):
    whole.as_memoryview()
  assert len(whole.view(100, dtypes.uint8, 0).as_memoryview()) == 100

def test_a_file_that_was_replaced_is_still_there(tmp_path: pathlib.Path) -> None:
  (tmp_path / "f").write_bytes(b"old")
  whole = buffer(tmp_path / "f", 3)
  whole.as_memoryview()
  (tmp_path / "g").write_bytes(b"new")
  os.replace(tmp_path / "g", tmp_path / "f")
  assert bytes(whole.as_memoryview()) == b"old" and bytes(buffer(tmp_path / "f", 3).as_memoryview()) == b"new"

def test_what_is_no_regular_file(tmp_path: pathlib.Path) -> None:
  with pytest.raises(ArgumentError, match="is a folder"): buffer(tmp_path, 1).as_memoryview()
  with pytest.raises(ArgumentError, match="is a folder"): buffer(tmp_path, 1, writable=True).copyin(memoryview(b"x"))
  os.mkfifo(tmp_path / "pipe")
  # and does not wait for a writer
  with pytest.raises(ArgumentError, match="a pipe or a device"): buffer(tmp_path / "pipe", 1).as_memoryview()
  with pytest.raises(ArgumentError, match="cannot be the name of a file"): buffer(tmp_path / "a\0b", 1).as_memoryview()
  with pytest.raises(MissingFileError, match="there is no file"):
    buffer(tmp_path / "none" / "f", 1, writable=True).copyin(memoryview(b"x"))
  with pytest.raises(DriverError, match="opening .*: Not a directory; check its permissions"):
    (tmp_path / "f").write_bytes(b"")
    buffer(tmp_path / "f" / "g", 1).as_memoryview()

def test_errors_of_the_system(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
  (tmp_path / "f").write_bytes(b"abc")
  def refuse(*_: object) -> int: raise OSError(28, "No space left on device")
  monkeypatch.setattr(disk, "_write_at", refuse)
  with pytest.raises(DriverError, match="writing .*f: No space left on device"):
    buffer(tmp_path / "f", 3, writable=True).copyin(memoryview(b"xyz"))
  monkeypatch.setattr(disk, "_read_at", refuse)
  with pytest.raises(DriverError, match="reading .*f: No space left"): buffer(tmp_path / "f", 3).as_memoryview()
  with pytest.raises(DriverError, match="cannot make .*g .* bytes long: File too large"):
    buffer(tmp_path / "g", 1 << 62, writable=True).view(1, dtypes.uint8, 0).copyin(memoryview(b"x"))

def test_computes_nothing(tmp_path: pathlib.Path) -> None:
  device = Device[f"DISK:{tmp_path / 'f'}"]
  for call in (lambda: device.load(None), lambda: device.submit([]), lambda: device.record([])):
    with pytest.raises(DeviceError, match=r"DISK:.* computes nothing; move the tensor first, with .to\(None\)"): call()

def test_where_there_is_no_reading_at_a_place(tmp_path: pathlib.Path) -> None:
  """Test the other branch, as on systems without preadv: threads share the descriptor's position, one at a time."""
  source = pathlib.Path(disk.__file__).read_text(encoding="utf-8").replace('hasattr(os, "preadv")', "False")
  names: dict[str, object] = {"__name__": "disk_without_preadv", "__annotations__": {}}
  exec(compile(source, "disk", "exec"), names)
  path = tmp_path / "f"
  opened = names["File"](str(path), 1000, True)  # type: ignore[operator]
  opened.write(0, memoryview(bytes(i % 251 for i in range(1000))))
  wrong: list[int] = []
  def read(k: int) -> None:
    for i in range(50):
      out = bytearray(10)
      opened.read((k * 50 + i) % 990, memoryview(out))
      if list(out) != [j % 251 for j in range((k * 50 + i) % 990, (k * 50 + i) % 990 + 10)]: wrong.append(i)
  threads = [threading.Thread(target=read, args=(k,)) for k in range(4)]
  for thread in threads: thread.start()
  for thread in threads: thread.join()
  assert not wrong
