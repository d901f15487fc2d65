"""tinyhw/files/unpack.py: packed files and archives on the disk; damaged ones, and ones made to fill the disk."""
from __future__ import annotations
import bz2
import gzip
import io
import lzma
import tarfile
import tracemalloc
import zipfile
from pathlib import Path

import pytest
from formats.mutations import mutations

from tinyhw.errors import FetchError
from tinyhw.files import unpack
from tinyhw.files.unpack import unpack_archive, unpack_file

FILES = {"dir/file": b"inside" * 100, "empty": b""}
PACKERS = {"": lambda data: data, "gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress}

def tarred(files: dict[str, bytes]) -> bytes:
  made = io.BytesIO()
  with tarfile.open(fileobj=made, mode="w") as tar:
    for name, data in files.items():
      member = tarfile.TarInfo(name)
      member.size = len(data)
      tar.addfile(member, io.BytesIO(data))
  return made.getvalue()

def zipped(files: dict[str, bytes], packing: int = zipfile.ZIP_DEFLATED) -> bytes:
  made = io.BytesIO()
  with zipfile.ZipFile(made, "w", packing) as z:
    for name, data in files.items(): z.writestr(name, data)
  return made.getvalue()

def archive(folder: Path, data: bytes, limit: int | None = None) -> dict[str, bytes]:
  """Return the contents of an archive; nothing else is left in the folder."""
  (folder / "a").write_bytes(data)
  try: unpack_archive(str(folder / "a"), str(folder / "a.extracted"), limit)
  finally: assert {p.name for p in folder.iterdir()} <= {"a", "a.extracted"}
  found = folder / "a.extracted"
  return {str(p.relative_to(found)): p.read_bytes() for p in found.rglob("*") if p.is_file()}

@pytest.mark.parametrize("kind", PACKERS)
def test_tar(kind: str, tmp_path: Path) -> None: assert archive(tmp_path, PACKERS[kind](tarred(FILES))) == FILES

@pytest.mark.parametrize("packing", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2])
def test_zip(packing: int, tmp_path: Path) -> None: assert archive(tmp_path, zipped(FILES, packing)) == FILES

def test_joined_files(tmp_path: Path) -> None:
  data = tarred(FILES)
  for i, pack in enumerate((gzip.compress, bz2.compress, lzma.compress)):
    (tmp_path / str(i)).mkdir()
    assert archive(tmp_path / str(i), pack(data[:700]) + pack(data[700:]) + bytes(8)) == FILES

def test_gzip_files() -> None:
  for data, want in ((gzip.compress(b"packed"), b"packed"),
                     (gzip.compress(b"a") + gzip.compress(bytes(1 << 20)) + bytes(9), b"a" + bytes(1 << 20)),
                     (gzip.compress(b""), b"")):
    found = io.BytesIO()
    unpack_file(io.BytesIO(data), found, "x", len(data), None)
    assert found.getvalue() == want
  for data in (b"", b"text", gzip.compress(b"packed")[:-5], gzip.compress(b"packed")[:10] + b"\xff" * 20,
               gzip.compress(b"a") + b"rest",
               bz2.compress(b"a")):
    with pytest.raises(FetchError, match="x is not a gzip file"):
      unpack_file(io.BytesIO(data), io.BytesIO(), "x", len(data), None)

def bomb_header() -> bytes:
  """A name of 20 MB before a file."""
  member = tarfile.TarInfo("n" * (20 << 20))
  return member.tobuf(tarfile.GNU_FORMAT)

ZEROS = bytes(30 << 20)
BOMBS = {
  "gzip": lambda: gzip.compress(tarred({"a": ZEROS})), "bzip2": lambda: bz2.compress(tarred({"a": ZEROS})),
  "xz": lambda: lzma.compress(tarred({"a": ZEROS})), "zip": lambda: zipped({"a": ZEROS}),
  "many zips": lambda: zipped({str(i): bytes(1 << 20) for i in range(30)}),
  "many files": lambda: gzip.compress(tarred({f"{i}": b"" for i in range(3000)})),
  "many members": lambda: zipped({f"{i}": b"" for i in range(3000)}),
}

@pytest.mark.parametrize("name", BOMBS)
def test_bombs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
  """Beyond 1 MB (64 outside of tests) and 20 times the archive nothing is written, unless the caller allows it."""
  monkeypatch.setattr(unpack, "FREE", 1 << 20)
  data = BOMBS[name]()
  with pytest.raises(FetchError, match=r"would unpack to more than [0-9]+ bytes; if you trust it, allow more: "
                     r"fetch\(..., limit=bytes\)"):
    archive(tmp_path, data)
  if not name.startswith("many"): assert archive(tmp_path, data, 40 << 20) == {"a": ZEROS}

def test_headers_of_tar_are_not_read_whole(tmp_path: Path) -> None:
  data = gzip.compress(bomb_header() + bytes(1024))
  tracemalloc.start(1)
  with pytest.raises(FetchError, match="a header has [0-9]+ bytes; at most 1048576 are read"): archive(tmp_path, data)
  peak = tracemalloc.get_traced_memory()[1]
  tracemalloc.stop()
  assert peak < 8 << 20

def test_xz_that_wants_much_memory(tmp_path: Path) -> None:
  data = lzma.compress(tarred(FILES), filters=[{"id": lzma.FILTER_LZMA2, "dict_size": 1 << 29}])
  with pytest.raises(FetchError, match="is not a tar or zip archive: Memory usage limit"): archive(tmp_path, data)

def test_zip_members_packed_otherwise(tmp_path: Path) -> None:
  with pytest.raises(FetchError, match="is packed by method 14"): archive(tmp_path, zipped(FILES, zipfile.ZIP_LZMA))

@pytest.mark.parametrize("name", ["../out", "/tmp/out-of-the-archive"])
def test_members_that_reach_out(name: str, tmp_path: Path) -> None:
  with pytest.raises(FetchError, match="is a link or lies outside of the archive; unpack it by hand"):
    archive(tmp_path, tarred({name: b"x"}))
  assert not (tmp_path.parent / "out").exists() and not Path("/tmp/out-of-the-archive").exists()

def test_sparse_members_count_as_what_they_claim(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
  header = bytearray(tarred({"a": b""})[:512])
  header[156:157], header[257:265], header[483:495] = b"S", b"ustar  \0", b"%011o\0" % (1 << 30)
  header[148:156] = b" " * 8
  header[148:156] = b"%06o\0 " % sum(header)
  with pytest.raises(FetchError, match="would unpack to more than"): archive(tmp_path, bytes(header) + bytes(1024))

def test_damaged_archives(tmp_path: Path) -> None:
  """An archive with any change is unpacked or refused, and no files are left."""
  samples = {"tar": tarred(FILES), "zip": zipped(FILES)} | {kind: PACKERS[kind](tarred(FILES))
                                                            for kind in ("gz", "bz2", "xz")}
  refused = 0
  for i, (what, data) in enumerate(mutations(samples, 150)):
    folder = tmp_path / str(i)
    folder.mkdir()
    try: archive(folder, data)
    except FetchError: refused += 1
    except Exception as error: raise AssertionError(what) from error
  assert refused
