"""Tar archives, plain or compressed by gzip: the location of their members. Sources: POSIX.1-2017, pax, "ustar
Interchange Format" and "pax Extended Header"; GNU tar manual, "Basic Tar Format".

A member is a header of 512 bytes and its bytes, padded to a multiple of 512. Long names come before it, as members of
types L (GNU) or x (pax). Every step advances by at least a header, and only headers are read. So the time for a hostile
archive is bounded by its number of blocks. Data that gzip unpacks is charged to the budget of the file.
"""
from __future__ import annotations
import zlib
from collections.abc import Iterator

from tinyhw.named_tuple import NamedTuple
from tinyhw.nn.tensor_io import FileLike, InputFile
from tinyhw.tensor import Tensor

_BLOCK = 512
_LONGEST_NAME = 1 << 20        # bytes of a long name or of pax records
_WITHOUT_BYTES = b"123456"      # type flags: links, devices, folders, pipes
_LONG_NAME, _LONG_LINK, _PAX, _PAX_GLOBAL, _SPARSE = b"L", b"K", b"x", b"g", b"S"
_SPARSE_RECORD = "GNU.sparse"
_KNOWN_RECORDS = (b"path", b"size", _SPARSE_RECORD.encode())
_GZIP = b"\x1f\x8b"
_AT_ONCE = 1 << 16              # unpacked bytes at a time
_PIECE = 1 << 14                # packed bytes at a time; each of several joined files copies its unused rest

class Member(NamedTuple):
  """A file in the archive: its name, and the location of its bytes."""
  name: str
  begin: int
  size: int

def tar_extract(t: FileLike, limit: int | None = None) -> dict[str, Tensor]:
  """Return the files in a tar archive (.tar, .tar.gz), by name, as vectors of bytes. If several have one name, the last
  counts. Nothing is written: names are keys.

  Files of a plain archive are views on DISK. A gzip archive is unpacked. Folders, links and devices are left out.
  limit: the bytes of memory that this may use; None: 64 MB and 20 for each byte of the archive. Raises FileFormatError,
  BudgetError beyond the limit.

  >>> import tarfile
  >>> npy_save(Tensor([1.0, 2.0]), "bias.npy")
  >>> with tarfile.open("weights.tar", "w") as archive: archive.add("bias.npy")
  >>> npy_load(tar_extract("weights.tar")["bias.npy"]).tolist()
  [1.0, 2.0]
  """
  source = InputFile(t, "tar", limit)
  head = source.read(0, min(source.size, _MOST_MAGIC), "the head")
  if head.startswith(_GZIP): source = unpacked(source)
  for at, magic, name in _OTHERS:
    if head[at:].startswith(magic):
      raise source.bad(f"it is packed with {name}, and gzip is what is read here; unpack it first: {name} -d")
  return {member.name: source.part(member.begin, member.size, repr(member.name)) for member in members(source)}

# (offset of a magic, the magic, its program)
_OTHERS = ((0, b"\xfd7zXZ\0", "xz"), (4, b"1AY&SY", "bzip2"), (0, b"\x28\xb5\x2f\xfd", "zstd"))
_MOST_MAGIC = max(at + len(magic) for at, magic, _ in _OTHERS)

def unpacked(source: InputFile) -> InputFile:
  """Return the contents of a gzip file, which may be several joined ones.

  Raises FileFormatError if it is damaged or ends early.
  """
  source.budget.take(4 * _AT_ONCE)   # buffers for one step
  made, part = bytearray(), b""
  unpacker = None
  for at in range(0, source.size, _PIECE):
    rest = source.read(at, min(_PIECE, source.size - at), "the gzip data")
    while rest or len(part) == _AT_ONCE:              # if the output is as large as asked for, more may follow
      if unpacker is None:
        part = b""
        if not rest.strip(b"\0"): break             # zeros may pad the end
        unpacker = zlib.decompressobj(16 + zlib.MAX_WBITS)
      try: part = unpacker.decompress(rest, _AT_ONCE)
      except zlib.error as error: raise source.bad(f"its gzip data is damaged ({error})") from None
      source.budget.take(len(part) + len(part) // 4)        # as a bytearray grows
      if not made: _check_head(source, part)                # stop early if it is no archive
      made += part
      rest = unpacker.unused_data if unpacker.eof else unpacker.unconsumed_tail
      if unpacker.eof: unpacker = None
  if unpacker is not None: raise source.bad("its gzip data ends early; was the download cut off?")
  found = InputFile(source.unpacked(made), source.format, inside=source)
  source.budget.give(len(made))   # the unpacked bytes are free again
  return found

def _check_head(source: InputFile, head: bytes) -> None:
  if len(head) >= _BLOCK and head[:_BLOCK] != bytes(_BLOCK): _check(source, head[:_BLOCK], 0)

def members(source: InputFile) -> Iterator[Member]:
  """Yield the regular files, in order. Raises FileFormatError."""
  at, long_name, ended = 0, None, False
  everywhere: dict[str, str] = {}                    # pax records for all later members
  pax: dict[str, str] = {}                           # pax records for the next member
  while at + _BLOCK <= source.size:
    header = source.read(at, _BLOCK, "a header")
    at += _BLOCK
    if header == bytes(_BLOCK):
      ended = True
      break
    _check(source, header, at - _BLOCK)
    kind = header[156:157]
    size = _number(source, header[124:136], "the size")
    if "size" in pax: size = _pax_size(source, pax["size"])
    if kind in (_LONG_NAME, _LONG_LINK, _PAX, _PAX_GLOBAL):
      text = _text(source, at, size)
      if kind == _LONG_NAME: long_name = text.partition(b"\0")[0].decode("utf-8", "surrogateescape")
      elif kind == _PAX: pax = {**everywhere, **_records(source, text)}
      elif kind == _PAX_GLOBAL: everywhere.update(_records(source, text))
    else:
      name = pax.get("path") or long_name or _name(header)
      if kind == _SPARSE or _SPARSE_RECORD in pax:
        raise source.bad(f"{name!r} is sparse; pack the archive again without --sparse")
      if kind in _WITHOUT_BYTES: size = 0
      # A member of any other type is a file (POSIX). Old archives mark folders by a slash.
      elif not name.endswith("/"):
        source.part(at, size, repr(name))
        yield Member(name, at, size)
      long_name, pax = None, dict(everywhere)
    at += (size + _BLOCK - 1) // _BLOCK * _BLOCK
  if not ended and (at != source.size or not source.size):
    raise source.bad(f"it ends at byte {source.size}, within a member; was the download cut off?")

def _check(source: InputFile, header: bytes, at: int) -> None:
  """Check the sum of a header's bytes. The bytes of the sum itself count as spaces. Some old programs summed signed
  bytes."""
  wanted = _number(source, header[148:156], f"the checksum of the header at byte {at}")
  rest = header[:148] + b" " * 8 + header[156:]
  if wanted not in (sum(rest), sum(rest) - 256 * sum(b > 127 for b in rest)):
    raise source.bad(f"the header at byte {at} has another checksum than it says")

def _number(source: InputFile, field: bytes, what: str) -> int:
  """Parse octal digits, or, marked by the first bit, a number of base 256."""
  if field[0] == 0x80: return int.from_bytes(field[1:], "big")
  if field[0] > 0x80: raise source.bad(f"{what} is negative or enormous")
  text = field.partition(b"\0")[0].strip()
  if text and not all(48 <= c <= 55 for c in text): raise source.bad(f"{what} is no octal number: {field!r}")
  return int(text, 8) if text else 0

def _pax_size(source: InputFile, text: str) -> int:
  """Return the size in pax records. It counts where the header's field is too short for the size."""
  if not text.isascii() or not text.isdecimal() or len(text) > 20:
    raise source.bad(f"the size {text[:40]!r} is no number of bytes")
  return int(text)

def _name(header: bytes) -> str:
  """Return the name in a header. In ustar it has a prefix."""
  name, prefix = (part.partition(b"\0")[0].decode("utf-8", "surrogateescape")
                  for part in (header[:100], header[345:500]))
  return f"{prefix}/{name}" if prefix and header[257:263] == b"ustar\0" else name

def _text(source: InputFile, at: int, size: int) -> bytes:
  """Return the bytes of a member that describes the next one."""
  if size > _LONGEST_NAME:
    raise source.bad(f"a name or its records take {size} bytes; at most {_LONGEST_NAME} are read")
  return source.read(at, size, "a long name")

def _records(source: InputFile, text: bytes) -> dict[str, str]:
  """Pax records: "length key=value\\n", where length counts all of it."""
  found: dict[str, str] = {}
  at = 0
  while at < len(text):
    space = text.find(b" ", at, at + 20)
    digits = text[at:space] if space > 0 else b""
    if not digits.isdigit(): raise source.bad("a pax record has no length")
    end = at + int(digits)
    record = text[space + 1:end]
    if end > len(text) or end <= space or not record.endswith(b"\n") or b"=" not in record:
      raise source.bad("a pax record is damaged")
    key, _, value = record[:-1].partition(b"=")
    if key.startswith(b"GNU.sparse"): key = _SPARSE_RECORD.encode()
    # the file may have very many other records
    if key in _KNOWN_RECORDS: found[key.decode()] = value.decode("utf-8", "surrogateescape")
    at = end
  return found
