"""Tar archives, plain or packed by gzip: where their members are. Sources: POSIX.1-2017, pax, "ustar Interchange
Format" and "pax Extended Header"; GNU tar manual, "Basic Tar Format".

A member is a header of 512 bytes and its bytes, filled up to 512. Long names come before it, as members of types L
(GNU) or x (pax). Every step goes forward by at least a header, and nothing is read but headers, so a hostile archive
costs no more time than it has blocks. What gzip unpacks draws from the budget of the file.
"""
from __future__ import annotations
import zlib
from collections.abc import Iterator

from tinyhw.named_tuple import NamedTuple
from tinyhw.nn.tensor_io import FileLike, Source
from tinyhw.tensor import Tensor

_BLOCK = 512
_LONGEST_NAME = 1 << 20        # bytes of a long name or of pax records
_WITHOUT_BYTES = b"123456"      # type flags: links, devices, folders, pipes
_LONG_NAME, _LONG_LINK, _PAX, _PAX_GLOBAL, _SPARSE = b"L", b"K", b"x", b"g", b"S"
_SPARSE_RECORD = "GNU.sparse"
_KNOWN_RECORDS = (b"path", b"size", _SPARSE_RECORD.encode())
_GZIP = b"\x1f\x8b"
_AT_ONCE = 1 << 16              # bytes of what is unpacked
_PIECE = 1 << 14                # bytes of what is packed: each of many joined files copies what is left of it

class Member(NamedTuple):
  """A file in the archive: its name, and where its bytes are."""
  name: str
  begin: int
  size: int

def tar_extract(t: FileLike, limit: int | None = None) -> dict[str, Tensor]:
  """The files in a tar archive (.tar, .tar.gz), by name, as vectors of bytes; of several with one name the last.
  Nothing is written: names are keys.

  Of a plain archive they are views on DISK; a gzip archive is unpacked. Folders, links and devices are left out. limit:
  the bytes of memory that this may make; None: 64 MB and 20 for each byte of the archive. Raises FileFormatError,
  BudgetError beyond the limit.

  >>> import tarfile
  >>> npy_save(Tensor([1.0, 2.0]), "bias.npy")
  >>> with tarfile.open("weights.tar", "w") as archive: archive.add("bias.npy")
  >>> npy_load(tar_extract("weights.tar")["bias.npy"]).tolist()
  [1.0, 2.0]
  """
  source = Source(t, "tar", limit)
  head = source.read(0, min(source.size, _MOST_MAGIC), "the head")
  if head.startswith(_GZIP): source = unpacked(source)
  for at, magic, name in _OTHERS:
    if head[at:].startswith(magic):
      raise source.bad(f"it is packed with {name}, and gzip is what is read here; unpack it first: {name} -d")
  return {member.name: source.part(member.begin, member.size, repr(member.name)) for member in members(source)}

# where a magic is, and the program that made it
_OTHERS = ((0, b"\xfd7zXZ\0", "xz"), (4, b"1AY&SY", "bzip2"), (0, b"\x28\xb5\x2f\xfd", "zstd"))
_MOST_MAGIC = max(at + len(magic) for at, magic, _ in _OTHERS)

def unpacked(source: Source) -> Source:
  """The contents of a gzip file, which may be several joined ones.

  Raises FileFormatError if it is damaged or ends early.
  """
  source.budget.take(4 * _AT_ONCE)   # for the pieces on their way
  made, part = bytearray(), b""
  unpacker = None
  for at in range(0, source.size, _PIECE):
    rest = source.read(at, min(_PIECE, source.size - at), "the gzip data")
    while rest or len(part) == _AT_ONCE:              # there may be more where as much was made as was asked for
      if unpacker is None:
        part = b""
        if not rest.strip(b"\0"): break             # zeros may fill up the end
        unpacker = zlib.decompressobj(16 + zlib.MAX_WBITS)
      try: part = unpacker.decompress(rest, _AT_ONCE)
      except zlib.error as error: raise source.bad(f"its gzip data is damaged ({error})") from None
      source.budget.take(len(part) + len(part) // 4)        # as a bytearray grows
      if not made: _check_head(source, part)                # what is no archive is not unpacked further
      made += part
      rest = unpacker.unused_data if unpacker.eof else unpacker.unconsumed_tail
      if unpacker.eof: unpacker = None
  if unpacker is not None: raise source.bad("its gzip data ends early; was the download cut off?")
  found = Source(source.unpacked(made), source.format, inside=source)
  source.budget.give(len(made))   # what was unpacked is free again
  return found

def _check_head(source: Source, head: bytes) -> None:
  if len(head) >= _BLOCK and head[:_BLOCK] != bytes(_BLOCK): _check(source, head[:_BLOCK], 0)

def members(source: Source) -> Iterator[Member]:
  """The regular files, in order. Raises FileFormatError."""
  at, long_name, ended = 0, None, False
  everywhere: dict[str, str] = {}                    # pax records for all members that follow
  pax: dict[str, str] = {}                           # those for the next one
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
      elif not name.endswith("/"):                   # what is of no other type is a file (POSIX); old archives mark
                                                     # folders by a slash
        source.part(at, size, repr(name))
        yield Member(name, at, size)
      long_name, pax = None, dict(everywhere)
    at += (size + _BLOCK - 1) // _BLOCK * _BLOCK
  if not ended and (at != source.size or not source.size):
    raise source.bad(f"it ends at byte {source.size}, within a member; was the download cut off?")

def _check(source: Source, header: bytes, at: int) -> None:
  """The sum of a header's bytes, those of the sum itself counted as spaces; some old programs added them as signed
  ones."""
  wanted = _number(source, header[148:156], f"the checksum of the header at byte {at}")
  rest = header[:148] + b" " * 8 + header[156:]
  if wanted not in (sum(rest), sum(rest) - 256 * sum(b > 127 for b in rest)):
    raise source.bad(f"the header at byte {at} has another checksum than it says")

def _number(source: Source, field: bytes, what: str) -> int:
  """Octal digits, or, marked by the first bit, a number of base 256."""
  if field[0] == 0x80: return int.from_bytes(field[1:], "big")
  if field[0] > 0x80: raise source.bad(f"{what} is negative or enormous")
  text = field.partition(b"\0")[0].strip()
  if text and not all(48 <= c <= 55 for c in text): raise source.bad(f"{what} is no octal number: {field!r}")
  return int(text, 8) if text else 0

def _pax_size(source: Source, text: str) -> int:
  """The size in pax records, which counts where the header's field is too short for it."""
  if not text.isascii() or not text.isdecimal() or len(text) > 20:
    raise source.bad(f"the size {text[:40]!r} is no number of bytes")
  return int(text)

def _name(header: bytes) -> str:
  """The name in a header; ustar's has a prefix."""
  name, prefix = (part.partition(b"\0")[0].decode("utf-8", "surrogateescape")
                  for part in (header[:100], header[345:500]))
  return f"{prefix}/{name}" if prefix and header[257:263] == b"ustar\0" else name

def _text(source: Source, at: int, size: int) -> bytes:
  """The bytes of a member that describes the next one."""
  if size > _LONGEST_NAME:
    raise source.bad(f"a name or its records take {size} bytes; at most {_LONGEST_NAME} are read")
  return source.read(at, size, "a long name")

def _records(source: Source, text: bytes) -> dict[str, str]:
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
    # of the others there may be very many
    if key in _KNOWN_RECORDS: found[key.decode()] = value.decode("utf-8", "surrogateescape")
    at = end
  return found
