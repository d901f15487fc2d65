"""A tensor as a file, on devices and on DISK, and parts of files as tensors."""
import io
import os
import tarfile
import zipfile

import pytest

from tinyhw.dtype import dtypes
from tinyhw.errors import ArgumentError, DriverError, FileFormatError, MissingFileError
from tinyhw.nn.tensor_io import InputFile, TensorIO, writing
from tinyhw.tensor import Tensor

@pytest.fixture(params=("device", "DISK"))
def vector(request, engine, tmp_path):
  """Return a function that makes a tensor of bytes."""
  def make(data):
    if request.param == "device": return Tensor(data)
    return Tensor.empty(len(data), device=f"DISK:{tmp_path / 'f'}", dtype=dtypes.uint8).assign(Tensor(data))
  return make

def test_reading(vector):
  with TensorIO(vector(b"0123456789")) as file:
    assert file.readable() and file.seekable() and file.writable() and file.tell() == 0
    assert (file.read(3), file.tell(), file.read(), file.read(5), file.read(-1)) == (b"012", 3, b"3456789", b"", b"")
    assert file.seek(-4, 2) == 6 and file.seek(1, 1) == 7 and file.read(None) == b"789"
    assert file.seek(100) == 100 and file.read(2) == b"" and file.seek(-50, 2) == 0 and file.readall() == b"0123456789"
    target = bytearray(4)
    file.seek(8)
    assert file.readinto(target) == 2 and target == b"89\0\0"
  with pytest.raises(ArgumentError, match="the file is closed"): file.read()

def test_what_takes_files_takes_it(vector):
  with io.BufferedReader(TensorIO(vector(b"one\ntwo\n"))) as file: assert list(file) == [b"one\n", b"two\n"]
  packed = io.BytesIO()
  with zipfile.ZipFile(packed, "w") as z: z.writestr("a", "contents")
  assert zipfile.ZipFile(TensorIO(vector(packed.getvalue()))).read("a") == b"contents"
  packed = io.BytesIO()
  with tarfile.open(fileobj=packed, mode="w") as tar: tar.addfile(tarfile.TarInfo("b"))
  assert tarfile.open(fileobj=TensorIO(vector(packed.getvalue()))).getnames() == ["b"]

def test_writing(vector):
  t = vector(b"abcdef")
  file = TensorIO(t)
  assert (file.read(2) == b"ab" and file.write(b"XY") == 2 and file.tell() == 4 and file.write(b"123") == 2
          and file.write(b"4") == 0)
  assert bytes(t.tolist()) == b"abXY12" and file.seek(0) == 0 and file.read() == b"abXY12"
  file.seek(0)
  file.writelines([b"u", bytearray(b"vw")])
  assert bytes(t.tolist()) == b"uvwY12"
  with pytest.raises(ArgumentError, match="the tensor has 6 bytes, and cannot grow"): file.writelines([b"12345678"])
  with pytest.raises(ArgumentError, match="size stays as it is"): file.truncate(0)

def test_views(engine):
  t = Tensor(b"abcdef")
  file = TensorIO(t[1:5])
  assert file.read() == b"bcde" and TensorIO(Tensor(b"").cast("uint8")).read() == b""
  file.seek(0)
  file.write(b"Z")
  assert bytes(t.tolist()) == b"aZcdef"

def test_mistakes(engine):
  for wrong in (5, b"bytes", "path"):
    with pytest.raises(ArgumentError, match="TensorIO wants a Tensor, not"): TensorIO(wrong)
  with pytest.raises(ArgumentError, match=r"a vector of uint8, not dtypes.int32 of shape \(2,\)"):
    TensorIO(Tensor([1, 2]))
  with pytest.raises(ArgumentError, match="a vector of uint8"): TensorIO(Tensor(b"abcd").reshape(2, 2))
  file = TensorIO(Tensor(b"abc"))
  with pytest.raises(ArgumentError, match="cannot go to byte -1"): file.seek(-1)
  with pytest.raises(ArgumentError, match="whence is 0, 1 or 2, not 7"): file.seek(0, 7)

def test_sources(vector):
  source = InputFile(vector(bytes(range(16))), "test")
  assert source.size == 16 and source.read(2, 3, "x") == b"\2\3\4" and source.part(1, 2, "x").tolist() == [1, 2]
  assert source.elements(4, (2, 2), dtypes.uint16, "x").tolist() == [[0x504, 0x706], [0x908, 0xB0A]]
  assert source.elements(4, (0, 3), dtypes.float32, "x").shape == (0, 3)
  for begin, count in ((15, 2), (-1, 1), (0, -1), (1 << 70, 1)):
    with pytest.raises(FileFormatError, match="no whole test file"): source.read(begin, count, "x")

def test_writing_files(tmp_path, monkeypatch):
  with writing(tmp_path / "f", "test") as file: file.write(b"x")
  assert (tmp_path / "f").read_bytes() == b"x"
  for path, text in ((5, "a string or a Path, not 5"), (None, "a string or a Path"), ("", "cannot be the name"),
                     ("a\0b", "cannot be the name"),
                     (tmp_path, "it is a folder")):
    with pytest.raises(ArgumentError, match=text), writing(path, "test"): pass
  with pytest.raises(MissingFileError, match="there is no folder"), writing(tmp_path / "none" / "f", "test"): pass
  def full(*_): raise OSError(28, "No space left on device")
  monkeypatch.setattr(os, "fsync", full)
  with pytest.raises(DriverError,
                     match="cannot write .*f: No space left on device; check"), writing(tmp_path / "f", "test") as file:
    file.write(b"y")
  with pytest.raises(MissingFileError, match="no such"), writing(tmp_path / "f", "test"):
    raise MissingFileError("no such")
  assert (tmp_path / "f").read_bytes() == b"x" and os.listdir(tmp_path) == ["f"]
