"""Select values of several registers: vectors that are loaded, stored, and split into elements.

Elements narrower than 32 bits are packed, the first one lowest. Elements of 64 bits have two registers. The source of a
vector is known byte by byte, so a vector is assembled directly from the registers of other vectors. Vectors have no
arithmetic except on matrices (select/matrix.py).
"""
from __future__ import annotations
from typing import Any

from tinyhw.arithmetic import to_bytes
from tinyhw.dtype import DType, dtypes
from tinyhw.isa.sass.capabilities import HALVES
from tinyhw.isa.sass.macros.macros import macros_of
from tinyhw.isa.sass.select.cast import Casts, code_of
from tinyhw.isa.sass.table import regs
from tinyhw.machine.ir.inst import Access, Reg, RegClass
from tinyhw.machine.ir.structure import LOOSE, element_of, origin_of
from tinyhw.machine.select.macros import Macro
from tinyhw.machine.select.selection import lowest_bits
from tinyhw.threads import once
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp

ByteSource = tuple[Any, int]  # a register, group or constant, and a byte of it

class Vectors(Casts):
  """The layer of Selector for groups of registers."""

  def group_class(self, dtype: DType) -> RegClass:
    """Return the register class of a value."""
    return regs.R[max(memory_bytes(dtype) // 4, 1)]

  def joined(self, u: UOp) -> Reg: return self.packed(u.dtype, list(u.src) * (u.dtype.count // len(u.src)))

  def filled(self, dtype: DType, number: Any) -> Reg:
    cls, words = self.group_class(dtype), constant_words(dtype, number)
    if cls.units % 2 == 0 and not any(words): return self.op(cls, zeros(cls.units))
    return self.gathered(cls, [(word, k) for word in words for k in range(4)])

  def part_of(self, u: UOp) -> Reg:
    (source, first), scalar = origin_of(u), u.dtype.scalar()
    if source.op not in LOOSE and memory_bytes(u.dtype) % 4 == 0:
      return self.part(self.group_class(u.dtype), self.group(source), first * scalar.itemsize // 4)
    return self.packed(u.dtype, [UOp(Ops.GEP, scalar, (source,), first + k) for k in range(u.dtype.count)])

  def packed(self, dtype: DType, elements: list[UOp]) -> Reg:
    """Pack elements that were computed or loaded one by one, or are parts of other vectors."""
    size = dtype.scalar().itemsize
    places: list[ByteSource] = []
    if all(rounded(e) for e in elements) and len(elements) % 2 == 0:
      return self.words(dtype, [self.rounded_word(dtype.scalar(), low.src[0], high.src[0])
                                for low, high in zip(elements[::2], elements[1::2])])
    if dtype.scalar() is dtypes.bool: return self.truths(dtype, [self.value(e) for e in elements])
    for e in elements:
      value, first = self.byte_source(e)
      places += [(value, first + k) for k in range(size)]
    return self.gathered(self.group_class(dtype), places + places[-1:] * (-len(places) % 4))

  def cast(self, u: UOp) -> Reg:
    """Convert. Vectors go from float32 to 16 bits, two elements in one instruction."""
    if u.dtype.count == 1: return super().cast(u)
    source, first = origin_of(u.src[0]) if u.src[0].op is Ops.GEP else (u.src[0], 0)
    scalar, numbers = u.dtype.scalar(), range(first, first + u.dtype.count, 2)
    if source.op in LOOSE:
      return self.words(u.dtype, [self.rounded_word(scalar, element_of(source, k), element_of(source, k + 1))
                                  for k in numbers])
    group = self.group(source)
    return self.words(u.dtype, [self.rounded_pair(scalar, *[self.part(regs.R[1], group, k + i) for i in (0, 1)])
                                for k in numbers])

  def words(self, dtype: DType, words: list[Reg]) -> Reg:
    """Return words as a vector."""
    return self.gathered(self.group_class(dtype), [(word, k) for word in words for k in range(4)])

  def rounded_word(self, dtype: DType, low: UOp, high: UOp) -> Reg:
    """Round two float32 to a word of two 16-bit elements."""
    word = self.unpacked(low, high) if dtype is dtypes.float16 else None
    return word or self.rounded_pair(dtype, *[self.in_register(self.value(u), 1) for u in (low, high)])

  def unpacked(self, low: UOp, high: UOp) -> Reg | None:
    """Return two float32 that were fp8 of one kind as float16, which represents all fp8 numbers.

    Return None if no instruction converts two of them.
    """
    sources = [u.src[0] for u in (low, high) if u.op is Ops.CAST and u.src[0].dtype in dtypes.fp8_ocp]
    if len(sources) < 2 or sources[0].dtype is not sources[1].dtype: return None
    name = f"two_{code_of(sources[0].dtype)}"
    if name not in macros_of(self.generation.arch): return None
    (value, first), (other, second) = map(self.byte_source, sources)
    if value is not other or first % 2 or second != first + 1:
      value, first = self.gathered(regs.R[1], [(value, first), (other, second)] * 2), 0
    return self.once(regs.R[1], f"{name}_high" if first % 4 else name, self.part(regs.R[1], value, first // 4))

  def rounded_pair(self, dtype: DType, low: Reg, high: Reg) -> Reg:
    return self.once(regs.R[1], f"both_to_{code_of(dtype)}", low, high)

  def truths(self, dtype: DType, values: list[Any]) -> Reg:
    """Return predicates as bytes of 0 and 1."""
    words = []
    for start in range(0, len(values), 4):
      flags = [self.op(regs.R[1], "flag", value, 1 << 8 * k) for k, value in enumerate(values[start:start + 4])]
      while len(flags) > 1: flags = [self.op(regs.R[1], "or_three", *(*flags, regs.RZ)[:3]), *flags[3:]]
      words += flags
    return self.gathered(self.group_class(dtype), [(word, k) for word in words for k in range(4)])

  def byte_source(self, u: UOp) -> ByteSource:
    """Return the register and byte where an element begins. A variable may have changed since its element was taken."""
    if u.op is Ops.GEP:
      source, number = origin_of(u)
      if source.op in LOOSE: return self.byte_source(element_of(source, number))
      if source.op is not Ops.ACC or u not in self.values: return self.group(source), number * u.dtype.itemsize
    value = self.value(lowest_bits(u))
    return (value if u.dtype.itemsize == 4 else self.in_register(value, max(u.dtype.itemsize // 4, 1))), 0

  def half_of_word(self, u: UOp) -> tuple[Any, bool]:
    if u.op is not Ops.GEP or origin_of(u)[0].op in (*LOOSE, Ops.ACC): return self.value(u), False
    source, number = origin_of(u)
    return self.part(regs.R[1], self.group(source), number // 2), bool(number % 2)

  def gathered(self, cls: RegClass, places: list[ByteSource]) -> Reg:
    """Gather a group from bytes of other registers. If the bytes are exactly one group, return that group."""
    places = [(value.group, 4 * value.at + byte) if isinstance(value, regs.Element) else (value, byte)
              for value, byte in places]
    first = places[0][0]
    if isinstance(first, Reg) and first.cls is cls and places == [(first, k) for k in range(len(places))]: return first
    sources = {id(value): value for value, _ in places}
    numbers = {key: k for k, key in enumerate(sources)}
    units = tuple([s.cls.units if isinstance(s, Reg) else 0 for s in sources.values()])
    return self.op(cls, gathering(units, tuple([(numbers[id(value)], byte) for value, byte in places])),
                   *sources.values())

  def element(self, dtype: DType, source: UOp, number: int) -> Reg:
    """Return one element of a group. Narrow integers are extended to 32 bits."""
    group, size = self.group(source), dtype.itemsize
    at, low = divmod(number * size, 4)
    if dtype is dtypes.bool: return self.op(regs.P, "any_bits", self.part(regs.R[1], group, at), 0xff << 8 * low)
    if size < 4: return self.op(regs.R[1], f"bytes_of{at}", group, selector(low, size, dtype in dtypes.sints))
    return self.part(self.group_class(dtype), group, at)

def rounded(u: UOp) -> bool:
  """Return whether an element is a float32 rounded to 16 bits. One instruction rounds two of them."""
  return u.op is Ops.CAST and u.dtype in HALVES and u.src[0].dtype is dtypes.float32

def memory_bytes(dtype: DType) -> int:
  """Return the bytes of a value in memory. A bool is one byte, also as an element."""
  return dtype.count * dtype.scalar().itemsize

def constant_words(dtype: DType, number: Any) -> list[int]:
  """Return a vector with the same number in all elements, as words of 32 bits."""
  content = (to_bytes(number, dtype.scalar()) * max(dtype.count, 4))[:max(memory_bytes(dtype), 4)]
  return [int.from_bytes(content[k:k + 4], "little") for k in range(0, len(content), 4)]

@once
def gathering(units: tuple[int, ...], places: tuple[tuple[int, int], ...]) -> Macro:
  """Return a macro that makes a group from single bytes.

  units: registers of its sources, 0 for a constant. places: source and byte of each byte of the group. A word that
  equals a word of a source is moved. Bytes of two words take one PRMT, those of more than two take three.
  """
  words = [places[k:k + 4] for k in range(0, len(places), 4)]
  operands = [("d", Access.WRITE, f"v{len(words)}"),
              *((f"s{k}", Access.READ, f"v{n}" if n else "x1") for k, n in enumerate(units))]
  lines: list[str] = []
  for k, word in enumerate(words):
    goal, found = part("d", k) if len(words) > 1 else "d", sorted({(source, byte // 4) for source, byte in word})
    if len(found) == 1 and [byte % 4 for _, byte in word] == [0, 1, 2, 3]:
      lines.append(f"MOV {goal}, {named(found[0], units)}")
    elif len(found) <= 2: lines.append(permutation(goal, word, units))
    else:
      lines += [permutation("t", word[:2], units), permutation(goal, word[2:], units),
                f"PRMT {goal}, t, 0x5410, {goal}"]
  if any(line.startswith("PRMT t") for line in lines): operands.append(("t", Access.WRITE, "v1"))
  return Macro("gather", tuple(operands), 1 + len(units), tuple(lines))

@once
def zeros(units: int) -> Macro:
  """Return a macro that clears a group, two registers at once."""
  return Macro("zeros", (("d", Access.WRITE, f"v{units}"),), 1,
               tuple([f"IMAD.WIDE {part('d', k)}, RZ, RZ, RZ" for k in range(0, units, 2)]))

def named(word: tuple[int, int], units: tuple[int, ...]) -> str:
  """Return a word of a source in the text of a macro."""
  source, at = word
  return part(f"s{source}", at) if units[source] > 1 else f"s{source}"

def part(name: str, at: int) -> str:
  """Return a register of a group in the text of a macro."""
  return f"{name}.{at}" if at < 4 else f"{name}.r{at}"

def permutation(goal: str, places: tuple[tuple[int, int], ...], units: tuple[int, ...]) -> str:
  """Return the line that puts bytes of at most two words, or the first two bytes, into a register."""
  found = sorted({(source, byte // 4) for source, byte in places})
  digits = [byte % 4 + 4 * found.index((source, byte // 4)) for source, byte in places]
  selects = sum(digit << 4 * k for k, digit in enumerate(digits))
  return f"PRMT {goal}, {named(found[0], units)}, {selects:#x}, {named(found[1], units) if len(found) > 1 else 'RZ'}"

def selector(first: int, size: int, signed: bool) -> int:
  """Return the PRMT selector that extends one or two bytes of a register.

  It has a digit for each byte: 4 is a zero, 8 plus the number of a byte is the sign of that byte.
  """
  digits = [first + k for k in range(size)]
  digits += [digits[-1] | 8 if signed else 4] * (4 - size)
  return sum(digit << 4 * k for k, digit in enumerate(digits))
