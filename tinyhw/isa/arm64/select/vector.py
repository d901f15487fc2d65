"""Select vectors for AArch64: broadcasts, vectors of scalars, and elements of vectors."""
from __future__ import annotations

from tinyhw.arithmetic import to_bytes
from tinyhw.dtype import DType, dtypes
from tinyhw.isa.arm64.select.cast import Casts
from tinyhw.isa.arm64.select.part import ELEMENTS, arrangement, scalar, width
from tinyhw.machine.ir.inst import Reg
from tinyhw.machine.select.cpu import is_mask
from tinyhw.machine.select.rules import FLOATS
from tinyhw.uop.ops import UOp

class Vectors(Casts):
  """BROADCAST, VECTORIZE and GEP."""

  def broadcast(self, u: UOp) -> Reg:
    source, size = u.src[0], u.dtype.scalar().itemsize
    if is_mask(u):
      self.mask_bytes[u] = 1
      return self.mask_of_flag(source)
    lanes = arrangement(size, u.dtype.itemsize)
    if source.dtype in FLOATS or source in self.in_vector:
      return self.code(f"dup v%d.{lanes}, v%a.{ELEMENTS[size]}[0]", a=self.value(source))
    return self.code(f"dup v%d.{lanes}, {width(source.dtype)}%a", a=self.value(source))

  def vectorize(self, u: UOp) -> Reg:
    if is_mask(u): return self.joined_mask(u)
    dtype = u.dtype.scalar()
    element, first = ELEMENTS[dtype.itemsize], self.value(u.src[0])
    # the lanes above the first one are replaced, as far as they exist
    if dtype in FLOATS: value = first
    else: value = self.code(f"fmov {'d' if dtype.itemsize == 8 else 's'}%d, {width(dtype)}%a", a=first)
    for k, s in enumerate(u.src[1:], 1):
      part = f"v%a.{element}[0]" if dtype in FLOATS else f"{width(dtype)}%a"
      value = self.code(f"mov v%d:o.{element}[{k}], {part}", o=value, a=self.value(s))
    return value

  def constant_lanes(self, u: UOp) -> Reg:
    """A vector of different constants."""
    return self.once((u,), lambda: self.vector_of_bytes(b"".join(to_bytes(s.arg, u.dtype.scalar()) for s in u.src)))

  def element(self, dtype: DType, source: UOp, number: int) -> Reg:
    """An element of a vector in registers."""
    if dtype is dtypes.bool: return self.mask_lane(source, number)
    return self.lane(dtype, self.value(source), number)

  def lane(self, dtype: DType, value: Reg, number: int) -> Reg:
    element = ELEMENTS[dtype.itemsize]
    if dtype in FLOATS: return self.code(f"mov {scalar(dtype)}%d, v%a.{element}[{number}]",
                                         a=value) if number else value
    kind = "s" if dtype in dtypes.sints and dtype.itemsize < 4 else "u"
    return self.code(f"{kind}mov {width(dtype)}%d, v%a.{element}[{number}]", a=value)

  def part_of(self, u: UOp) -> Reg:
    """A GEP of several adjacent elements."""
    if is_mask(u):
      source = u.src[0]
      size = self.mask_bytes.get(source, 1)
      value, start, self.mask_bytes[u] = self.mask(source, size), u.arg * size, size
    else: value, start = self.value(u.src[0]), u.arg * u.dtype.scalar().itemsize
    return self.code(f"ext v%d.16b, v%a.16b, v%a.16b, #{start}", a=value) if start else value
