"""Zip archives: those of Python's zipfile, and handmade ones that it does not write; damaged and hostile archives."""
import io
import struct
import zipfile
import zlib

from formats.mutations import fuzz, survives, use
import pytest

from tinyhw import Tensor
from tinyhw.errors import FileFormatError
from tinyhw.nn.state import zip_extract

FILES = {"a.txt": b"hello " * 100, "folder/b.bin": bytes(range(256)), "empty": b"", "ü": b"umlaut"}

def packed(files=FILES, packing=zipfile.ZIP_STORED, seekable=True, **options):
  made = io.BytesIO()
  if not seekable: made.seek = None   # type: ignore[assignment]  # zipfile then writes sizes after the data
  with zipfile.ZipFile(made, "w", packing, **options) as z:
    for name, data in files.items(): z.writestr(name, data)
  return made.getvalue()

class Pipe(io.RawIOBase):
  """A file that cannot seek. Sizes then come after the data."""
  def __init__(self): self.data = bytearray()
  def writable(self): return True
  def write(self, data):
    self.data += data
    return len(data)

def streamed():
  pipe = Pipe()
  with zipfile.ZipFile(pipe, "w", zipfile.ZIP_DEFLATED) as z:
    for name, data in FILES.items(): z.writestr(name, data)
  return bytes(pipe.data)

def zip64():
  made = io.BytesIO()
  with zipfile.ZipFile(made, "w") as z:
    for name, data in FILES.items():
      with z.open(name, "w", force_zip64=True) as file: file.write(data)
  return made.getvalue()

def contents(data): return {name: bytes(t.tolist()) for name, t in zip_extract(Tensor(data)).items()}

KINDS = {"stored": packed, "deflated": lambda: packed(packing=zipfile.ZIP_DEFLATED), "behind the data": streamed,
         "zip64": zip64}

@pytest.mark.parametrize("kind", KINDS)
def test_files(kind, engine):
  data = KINDS[kind]()
  assert contents(data) == FILES and list(contents(data)) == list(FILES)

def test_sizes_of_64_bits(monkeypatch):
  """Archives of more than 4 GB have them. zipfile is told that 10 bytes are much."""
  monkeypatch.setattr(zipfile, "ZIP64_LIMIT", 10)
  data = packed()
  monkeypatch.undo()
  assert data.count(b"\xff\xff\xff\xff") > 3 and contents(data) == FILES
  short = bytearray(data)
  at = short.index(b"PK\1\2") + 46 + len("a.txt")
  assert short[at:at + 2] == b"\1\0"
  struct.pack_into("<H", short, at, 9)    # a field of another kind: the sizes are not replaced
  refused(bytes(short), "members overlap|takes bytes")

@pytest.mark.slow
def test_zip64_end_record():
  """There are more members than 16 bits can count."""
  files = {f"{i:x}": b"" for i in range(66_000)}
  files["last"] = b"x"
  data = packed(files)
  assert b"PK\6\6" in data
  from tinyhw.nn.tensor_io import InputFile
  from tinyhw.nn.zip_archive import ZipArchive
  archive = ZipArchive(InputFile(Tensor(data), "zip"))
  assert len(archive.members) == 66_001 and archive.read(archive.members["last"]) == b"x"

def test_what_is_stored_stays_on_disk(tmp_path):
  (tmp_path / "f").write_bytes(packed())
  found = zip_extract(tmp_path / "f")
  assert found["a.txt"].device == f"DISK:{tmp_path / 'f'}" and bytes(found["folder/b.bin"][3:5].tolist()) == b"\3\4"
  (tmp_path / "g").write_bytes(packed(packing=zipfile.ZIP_DEFLATED))
  assert not zip_extract(tmp_path / "g")["a.txt"].device.startswith("DISK")

def test_folders_comments_and_names_are_harmless():
  made = io.BytesIO()
  with zipfile.ZipFile(made, "w") as z:
    z.writestr("folder/", b"")
    z.writestr("../../etc/passwd", b"x")
    z.comment = b"a comment, PK\5\6 and all"
  assert contents(made.getvalue()) == {"../../etc/passwd": b"x"}

def refused(data, text):
  assert not survives(lambda d: zip_extract(Tensor(d)), data, text)
  with pytest.raises(FileFormatError, match=text): zip_extract(Tensor(data))

def changed(data, mark, offset, form, value, skip=0):
  """Return data with a number changed, `offset` bytes after a signature."""
  at = -1
  for _ in range(skip + 1): at = data.index(mark, at + 1)
  made = bytearray(data)
  struct.pack_into(form, made, at + offset, value)
  return bytes(made)

def test_bombs():
  deflater = zlib.compressobj(9, zlib.DEFLATED, -15)
  bomb = deflater.compress(bytes(50 << 20)) + deflater.flush()
  data = packed({"a": bytes(1000)}, zipfile.ZIP_DEFLATED)
  refused(changed(data, b"PK\1\2", 24, "<L", 1 << 30), "claims 1073741824 bytes, which .* packed ones cannot give")
  refused(changed(data, b"PK\1\2", 24, "<L", 999), "more than the 999 bytes that it claims")
  refused(changed(data, b"PK\1\2", 24, "<L", 1001), "has 1000 bytes, and claims 1001")
  head = packed({"a": bomb})
  lying = changed(changed(head, b"PK\1\2", 10, "<H", zipfile.ZIP_DEFLATED), b"PK\1\2", 24, "<L", 1000)
  refused(lying, "more than the 1000 bytes that it claims")
  two = packed({"a": bytes(1000), "b": b""})
  refused(changed(changed(two, b"PK\1\2", 20, "<L", 1000, 1), b"PK\1\2", 42, "<L", 0, 1), "overlap|should have 0")

def test_damage():
  data = packed({"a": b"contents"}, zipfile.ZIP_DEFLATED)
  for text, made in (("no end record", data[:-1]), ("no end record", b""), ("no end record", b"PK"),
                     ("no end record", bytes(100)),
                     ("checksum differs", changed(data, b"PK\1\2", 16, "<L", 5)),
                     ("is encrypted", changed(data, b"PK\1\2", 8, "<H", 1)),
                     ("packed by method 14", changed(data, b"PK\1\2", 10, "<H", 14)),
                     ("no header of 'a'", changed(data, b"PK\1\2", 42, "<L", 3)),
                     ("takes bytes", changed(data, b"PK\1\2", 42, "<L", 1 << 30)),
                     ("is one of several parts", changed(data, b"PK\5\6", 4, "<H", 1)),
                     ("should have 2 members", changed(changed(data, b"PK\5\6", 8, "<H", 2), b"PK\5\6", 10, "<H", 2)),
                     ("after the end record", changed(data, b"PK\5\6", 12, "<L", 1 << 20)),
                     ("ends within an entry", changed(data,
                       b"PK\1\2", 28, "<H", 999)),
                     ("is damaged", changed(data, b"PK\3\4", 31, "<H", 0xFFFF)),
                     ("should have 5", changed(packed({"a": b"xyz"}),
                                               b"PK\1\2", 24, "<L", 5)),
                     ("not UTF-8", changed(packed({"ü": b""}), b"PK\1\2", 46, "<B", 0xFF)),
                     ("two members named 'a'", packed({"a": b"", "b": b""}).replace(b"b", b"a"))): refused(made, text)

def test_mutated_files():
  small = {"a.txt": b"hello " * 20, "b": bytes(range(64)), "empty": b""}
  samples = {"stored": packed(small), "deflated": packed(small, zipfile.ZIP_DEFLATED), "streamed": streamed(),
             "zip64": zip64()}
  fuzz(lambda data: use(zip_extract(Tensor(data, device="PYTHON"))), samples)
