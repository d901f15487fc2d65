"""Zip archives: the location and the contents of their members. Source: PKWARE, APPNOTE.TXT 6.3.10, sections 4.3 to
4.5.

The central directory is read first, and each member's local header when the member is wanted. Stored members are parts
of the archive (on DISK: views). Deflated members are unpacked.

The claims of a member are checked against the archive: deflate makes at most 1032 bytes of one, members may not
overlap, and unpacking stops at the claimed size. All unpacked data is charged to the budget of the archive.
"""
from __future__ import annotations
import struct
import zlib

from tinyhw.files.budget import ENTRY
from tinyhw.named_tuple import NamedTuple
from tinyhw.nn.tensor_io import FileLike, InputFile
from tinyhw.tensor import Tensor

STORED, DEFLATED = 0, 8
_END, _END64, _LOCATOR64, _CENTRAL, _LOCAL = (b"PK\5\6", b"PK\6\6", b"PK\6\7", b"PK\1\2", b"PK\3\4")
_END_BYTES, _LOCATOR_BYTES, _END64_BYTES, _CENTRAL_BYTES, _LOCAL_BYTES = 22, 20, 56, 46, 30
_LONGEST_COMMENT = 0xFFFF
_ENCRYPTED, _UTF8 = 1, 1 << 11                      # general purpose flags
_ZIP64, _IN_ZIP64 = 1, 0xFFFFFFFF                    # an extra field, and the size that refers to it
_MOST_EXPANSION = 1032                               # of deflate: 258 bytes for two bits
_AT_ONCE = 1 << 16

class Member(NamedTuple):
  """A file in the archive: its name, its packing method, its sizes and CRC-32, and the offset of its local header."""
  name: str
  method: int
  encrypted: bool
  crc: int
  packed: int
  size: int
  header: int

class ZipArchive:
  """The members of a zip archive by name, in its order. Raises FileFormatError."""
  def __init__(self, source: InputFile):
    self.source = source
    self.members: dict[str, Member] = {}
    count, size, start = self._end()
    source.budget.take(2 * size)
    directory = source.read(start, size, "the central directory")
    at = 0
    while at < size and directory[at:at + 4] == _CENTRAL:
      member, at = self._member(directory, at)
      if member.name in self.members: raise source.bad(f"it has two members named {member.name!r}")
      self.members[member.name] = member
    if len(self.members) != count:
      raise source.bad(f"it should have {count} members, and {len(self.members)} are listed")
    if sum(m.packed for m in self.members.values()) > source.size: raise source.bad("its members overlap")

  def _end(self) -> tuple[int, int, int]:
    """Return the number of members, and the size and the offset of the central directory, from the end record."""
    source = self.source
    length = min(source.size, _END_BYTES + _LONGEST_COMMENT)
    tail = source.read(source.size - length, length, "the end record")
    at = tail.rfind(_END, 0, max(len(tail) - _END_BYTES + 4, 0))
    if at < 0: raise source.bad("it has no end record; was the download cut off?")
    disk, first, here, count, size, start, _ = struct.unpack_from("<4H2LH", tail, at + 4)
    end = source.size - length + at
    if end >= _LOCATOR_BYTES:
      locator = source.read(end - _LOCATOR_BYTES, _LOCATOR_BYTES, "the zip64 locator")
      if locator[:4] == _LOCATOR64:
        record = source.read(struct.unpack_from("<Q", locator, 8)[0], _END64_BYTES, "the zip64 end record")
        if record[:4] != _END64: raise source.bad("its zip64 locator points to nothing")
        disk, first, here, count, size, start = struct.unpack_from("<2L4Q", record, 16)
    if disk != first or here != count: raise source.bad("it is one of several parts; join them first")
    if start + size > end:
      raise source.bad(f"its directory ends at byte {start + size}, after the end record at {end}")
    return count, size, start

  def _member(self, directory: bytes, at: int) -> tuple[Member, int]:
    """Return the directory entry at an offset, and the next offset."""
    bad = self.source.bad
    if at + _CENTRAL_BYTES > len(directory): raise bad("its directory ends within an entry")
    _, _, flags, method, _, _, crc, packed, size, n, m, k, _, _, _, header = struct.unpack_from("<6H3L5H2L", directory,
                                                                                                at + 4)
    end = at + _CENTRAL_BYTES + n + m + k
    if end > len(directory): raise bad("its directory ends within an entry")
    raw = directory[at + _CENTRAL_BYTES:at + _CENTRAL_BYTES + n]
    try: name = raw.decode("utf-8" if flags & _UTF8 else "cp437")
    except UnicodeDecodeError: raise bad(f"the name {raw!r} is not UTF-8, though it says so") from None
    if _IN_ZIP64 in (packed, size, header):
      wide = self._wide(directory[at + _CENTRAL_BYTES + n:at + _CENTRAL_BYTES + n + m], name, [size, packed, header])
      size, packed, header = wide
    self.source.budget.take(ENTRY + 4 * len(name))
    return Member(name, method, bool(flags & _ENCRYPTED), crc, packed, size, header), end

  def _wide(self, extra: bytes, name: str, found: list[int]) -> list[int]:
    """Replace the numbers of an entry that refer to its extra field by the 64-bit numbers there."""
    at = 0
    while at + 4 <= len(extra):
      kind, length = struct.unpack_from("<2H", extra, at)
      if kind == _ZIP64:
        field = extra[at + 4:at + 4 + length]
        for i, value in enumerate(found):
          if value != _IN_ZIP64: continue
          if len(field) < 8: break
          found[i] = int.from_bytes(field[:8], "little")
          field = field[8:]
        break
      at += 4 + length
    return found

  def offset(self, member: Member) -> int:
    """Return the offset of a member's packed bytes."""
    head = self.source.read(member.header, _LOCAL_BYTES, f"the header of {member.name!r}")
    if head[:4] != _LOCAL: raise self.source.bad(f"there is no header of {member.name!r} where the directory says")
    n, m = struct.unpack_from("<2H", head, 26)
    return member.header + _LOCAL_BYTES + int(n) + int(m)

  def _check(self, member: Member) -> None:
    bad, name = self.source.bad, repr(member.name)
    if member.encrypted: raise bad(f"{name} is encrypted; unpack the archive with its password first")
    if member.method not in (STORED, DEFLATED):
      raise bad(f"{name} is packed by method {member.method}; tinyhw knows stored and deflated")
    if member.method == STORED and member.packed != member.size:
      raise bad(f"{name} has {member.packed} bytes stored, and should have {member.size}")
    if member.size > member.packed * _MOST_EXPANSION:
      raise bad(f"{name} claims {member.size} bytes, which {member.packed} packed ones cannot give")

  def read(self, member: Member) -> bytes | bytearray:
    """Return a member's bytes, unpacked, with its size and CRC checked."""
    self._check(member)
    self.source.budget.take(member.size)
    with self.source.budget.borrowed(): self.source.budget.take(4 * _AT_ONCE)   # for the pieces on their way
    begin = self.offset(member)
    what = repr(member.name)
    data: bytes | bytearray
    if member.method == STORED: data = self.source.read(begin, member.packed, what)
    else: data = self._inflated(member, begin)
    if zlib.crc32(data) != member.crc: raise self.source.bad(f"{what} is damaged: its checksum differs")
    return data

  def _inflated(self, member: Member, begin: int) -> bytearray:
    """Inflate a member in steps, at most up to the claimed size."""
    bad, name = self.source.bad, repr(member.name)
    unpacker, unpacked, made = zlib.decompressobj(-zlib.MAX_WBITS), bytearray(member.size), 0
    for at in range(0, member.packed, _AT_ONCE):
      rest = self.source.read(begin + at, min(_AT_ONCE, member.packed - at), name)
      while not unpacker.eof:
        try: part = unpacker.decompress(rest, min(member.size - made + 1, _AT_ONCE))
        except zlib.error as error: raise bad(f"{name} is damaged ({error})") from None
        if made + len(part) > member.size: raise bad(f"{name} has more than the {member.size} bytes that it claims")
        unpacked[made:made + len(part)] = part
        made += len(part)
        rest = unpacker.unconsumed_tail
        if not part and not rest: break
    if not unpacker.eof or made != member.size: raise bad(f"{name} has {made} bytes, and claims {member.size}")
    return unpacked

  def tensor(self, member: Member) -> Tensor:
    """Return a member's bytes as a vector. It is a part of the archive if they are stored."""
    self._check(member)
    if member.method == STORED: return self.source.part(self.offset(member), member.packed, repr(member.name))
    found = self.source.unpacked(self.read(member))
    self.source.budget.give(member.size)   # the bytes that were read are free again
    return found

def zip_extract(t: FileLike, limit: int | None = None) -> dict[str, Tensor]:
  """Return the files in a zip archive, by name, as vectors of bytes. Folders are left out. Nothing is written: names
  are only keys.

  Stored files stay in the archive, on DISK. Deflated files are unpacked. limit: the bytes of memory that this may use;
  None: 64 MB and 20 for each byte of the archive. Raises FileFormatError, BudgetError beyond the limit.

  >>> import zipfile
  >>> with zipfile.ZipFile("weights.zip", "w") as archive: archive.writestr("bias", b"abc")
  >>> zip_extract("weights.zip")["bias"].tolist()
  [97, 98, 99]
  """
  archive = ZipArchive(InputFile(t, "zip", limit))
  return {name: archive.tensor(member) for name, member in archive.members.items() if not name.endswith("/")}
