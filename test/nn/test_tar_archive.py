"""Tar archives: those of Python's tarfile in all its formats; damaged and hostile ones."""
import bz2
import gzip
import io
import lzma
import tarfile

from formats.mutations import fuzz, survives, use
import pytest

from tinyhw import Tensor
from tinyhw.errors import FileFormatError
from tinyhw.nn.state import tar_extract

FILES = {"a.txt": b"hello", "folder/b.bin": bytes(range(256)) * 3, "empty": b"",
         "n" * 150 + "/" + "m" * 120: b"long name"}
FORMATS = {"gnu": tarfile.GNU_FORMAT, "pax": tarfile.PAX_FORMAT, "ustar": tarfile.USTAR_FORMAT}

def packed(files=FILES, format=tarfile.GNU_FORMAT, mode="w", more=()):
  made = io.BytesIO()
  with tarfile.open(fileobj=made, mode=mode, format=format) as tar:
    for name, data in files.items():
      member = tarfile.TarInfo(name)
      member.size = len(data)
      tar.addfile(member, io.BytesIO(data))
    for name, kind in more:
      member = tarfile.TarInfo(name)
      member.type, member.linkname = kind, "a.txt"
      tar.addfile(member)
  return made.getvalue()

def contents(data): return {name: bytes(t.tolist()) for name, t in tar_extract(Tensor(data)).items()}

@pytest.mark.parametrize("format", FORMATS)
def test_files(format, engine):
  files = FILES if format != "ustar" else {**dict(list(FILES.items())[:3]), "p" * 150 + "/" + "n" * 90: b"prefix"}
  assert contents(packed(files, FORMATS[format])) == files == contents(packed(files, FORMATS[format], "w:gz"))

def test_names_beyond_ascii():
  files = {"ü/日本": b"x"}
  assert contents(packed(files, tarfile.PAX_FORMAT)) == files == contents(packed(files))

def test_they_stay_on_disk(tmp_path):
  (tmp_path / "f").write_bytes(packed())
  found = tar_extract(tmp_path / "f")
  assert (found["folder/b.bin"].device == f"DISK:{tmp_path / 'f'}" and bytes(found["folder/b.bin"][3:5].tolist())
          == b"\3\4")

def test_only_files_are_there():
  more = [("folder", tarfile.DIRTYPE), ("link", tarfile.SYMTYPE), ("hard", tarfile.LNKTYPE), ("pipe", tarfile.FIFOTYPE),
          ("device", tarfile.CHRTYPE)]
  files = {"../../etc/passwd": b"x", "/root": b"y"}
  assert contents(packed(files, more=more)) == files, "names are only keys"

def test_the_last_of_a_name_counts():
  both = packed({"a": b"old"})[:1024] + packed({"a": b"new"})
  assert contents(both) == {"a": b"new"}

def test_global_records_and_numbers_of_base_256():
  made = io.BytesIO()
  with tarfile.open(fileobj=made, mode="w", format=tarfile.PAX_FORMAT, pax_headers={"comment": "x"}) as tar:
    member = tarfile.TarInfo("a")
    member.size, member.uid = 1, 1 << 40
    tar.addfile(member, io.BytesIO(b"x"))
  assert contents(made.getvalue()) == {"a": b"x"}
  data = bytearray(packed({"a": b"x"}))
  data[124:136] = b"\x80" + bytes(10) + b"\1"
  assert contents(summed(data)) == {"a": b"x"}

def test_without_an_end(): assert contents(packed({"a": b"x"})[:1024]) == {"a": b"x"}, "some programs write no zeros"

def test_several_gzip_parts():
  data = packed()
  assert contents(gzip.compress(data[:700]) + gzip.compress(data[700:]) + bytes(10)) == FILES

def summed(data, at=0):
  """Return data with a corrected checksum in the header at an offset."""
  data = bytearray(data)
  data[at + 148:at + 156] = b" " * 8
  data[at + 148:at + 156] = b"%06o\0 " % sum(data[at:at + 512])
  return bytes(data)

def refused(data, text):
  assert not survives(lambda d: tar_extract(Tensor(d)), data, text)
  with pytest.raises(FileFormatError, match=text): tar_extract(Tensor(data))

@pytest.mark.parametrize("compress, name",
                         [(lzma.compress, "xz"), (bz2.compress, "bzip2"), (lambda d: b"\x28\xb5\x2f\xfd" + d, "zstd")])
def test_other_compressions_are_named(compress, name):
  refused(compress(packed()), f"packed with {name}, and gzip is what is read here; unpack it first: {name} -d")

def test_a_name_is_no_compression(): assert contents(packed({"BZhello": b"x"})) == {"BZhello": b"x"}

def test_damage():
  data = packed({"a": b"contents"})
  def sized(field): return summed(data[:124] + field + data[136:])
  refused(b"", "within a member")
  refused(b"hello" * 10, "within a member")
  refused(b"x" * 1024, "checksum")
  refused(data[:600], "takes bytes 512 to 520|within a member")
  refused(data[:100] + b"\xff" + data[101:], "another checksum")
  for field, text in ((b"77777777777\0", "takes bytes"), (b"\x80" + b"\xff" * 11, "takes bytes"),
                      (b"\xff" * 12, "negative or enormous"),
                      (b"-0000000001\0", "no octal number"), (b"0000000008x\0", "no octal number")):
    refused(sized(field), text)
  gz = gzip.compress(data)
  refused(gz[:-10], "gzip data ends early")
  refused(gz[:20] + b"\xff" * 20 + gz[40:], "gzip data is damaged")

def pax(record):
  """Return an archive whose one file has this pax record."""
  data = bytearray(packed({"a": b"x" * 20}, tarfile.PAX_FORMAT))
  header = bytearray(512)
  header[:3], header[124:136], header[156:157], header[257:265] = b"pax", b"%011o\0" % len(record), b"x", b"ustar\00000"
  return summed(header) + record.ljust(512, b"\0") + bytes(data)

def test_pax_records():
  assert (contents(pax(b"10 path=bc\n".replace(b"10", b"11"))) == {"bc": b"x" * 20} and contents(pax(b"9 size=5\n"))
          == {"a": b"x" * 5})
  for record, text in ((b"x", "has no length"), (b"99 path=b\n", "damaged"), (b"3 b\n", "damaged"),
                       (b"0 path=b\n", "damaged"),
    (b"10 path=bcd", "damaged"),
                       (b"12 size=-5 \n", "no number of bytes"), (b"9999999999999999999999 a=b\n", "has no length"),
                       (b"22 GNU.sparse.major=1\n", "is sparse"), (b"24 size=999999999999999\n", "takes bytes")):
    refused(pax(record), text)

@pytest.mark.slow
def test_many_global_records():
  """They apply to each later member, and cost nothing there."""
  record = b"".join(b"16 key%04d=abcd\n" % i for i in range(9999))
  header = bytearray(512)
  header[:3], header[124:136], header[156:157], header[257:265] = b"pax", b"%011o\0" % len(record), b"g", b"ustar\00000"
  data = summed(header) + record + bytes(-len(record) % 512) + packed({f"{i}": b"" for i in range(3000)})
  assert survives(lambda d: tar_extract(Tensor(d, device="PYTHON")), data, "global records")

def test_sparse_files_and_long_names():
  data = bytearray(packed({"a": b"x"}))
  data[156:157] = b"S"
  refused(summed(data), "'a' is sparse; pack the archive again without --sparse")
  data[156:157], data[124:136] = b"L", b"00100000000\0"
  refused(summed(data), "a name or its records take 16777216 bytes")

def test_a_gzip_bomb_of_no_tar():
  refused(gzip.compress(bytes([1]) * (1 << 20)), "checksum")

def test_mutated_files():
  small = {"a.txt": b"hello", "folder/b": bytes(range(100)), "n" * 120: b"long"}
  samples = {name: packed(small, FORMATS[name]) for name in ("gnu", "pax")} | {"gz": packed(small, mode="w:gz")}
  fuzz(lambda data: use(tar_extract(Tensor(data, device="PYTHON"))), samples)
