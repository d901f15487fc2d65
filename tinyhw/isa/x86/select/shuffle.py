"""Select SHUFFLE for x86-64: lanes of one or two vectors, at places that are constant.

    the halves of a wider vector    vinsertf128, vinsertf64x4
    the same places in each part    vunpcklps, vunpckhps, vshufps, vpermilps and those of doubles; a part is 16 bytes
    AVX-512, any places             vpermps of one vector, vpermt2ps of two
    AVX2, even or odd lanes         vshufps, and vpermpd to bring its parts in order
    AVX2, any places                vpermps of each vector, and vblendps

Integers are moved by instructions of floats, which change no bits. Elements of two bytes are taken in turns only:
vpunpcklwd, vpunpckhwd.
"""
from __future__ import annotations

from tinyhw.dtype import dtypes
from tinyhw.isa.x86.select.vector import LETTER_CLASS, Vectors, letter
from tinyhw.isa.x86.table import regs
from tinyhw.machine.ir.inst import Reg
from tinyhw.uop.ops import UOp

PART = 16   # bytes
KINDS = {2: "w", 4: "ps", 8: "pd"}   # by the size of an element
UNPACK: dict[str, dict[tuple[int, ...], str]] = {
  "ps": {(0, 4, 1, 5): "vunpcklps", (2, 6, 3, 7): "vunpckhps", (0, 1, 4, 5): "vunpcklpd", (2, 3, 6, 7): "vunpckhpd"},
  "pd": {(0, 2): "vunpcklpd", (1, 3): "vunpckhpd"},
  "w": {(0, 8, 1, 9, 2, 10, 3, 11): "vpunpcklwd", (4, 12, 5, 13, 6, 14, 7, 15): "vpunpckhwd"}}

def shuffled(selector: Vectors, u: UOp) -> Reg:
  """Select a SHUFFLE."""
  a, b, size = u.src[0], u.src[-1], u.dtype.scalar().itemsize
  count, lanes = a.dtype.count, tuple(u.arg)
  if u.dtype.count == 2 * count and lanes == tuple(range(2 * count)): return joined(selector, a, b)
  kind, places = KINDS[size], places_in_parts(lanes, count, PART // size)
  if places is not None and (name := UNPACK[kind].get(places)) is not None:
    return selector.second(b, name, selector.value(a))
  if a is b: lanes = tuple([k % count for k in lanes])
  used = {k >= count for k in lanes}
  if len(used) == 1: return from_one(selector, u, b if True in used else a, tuple([k % count for k in lanes]), kind)
  if places is not None and is_half_and_half(places):
    return selector.vop(u.dtype.itemsize, f"vshuf{kind}_{{v}}_{{v}}_{{v}}_i8", selector.value(a), selector.value(b),
                        code_of_places(places, u.dtype.itemsize // PART))
  if selector.has_two_tables: return from_tables(selector, u, a, b, lanes, kind)
  if lanes == tuple(range(lanes[0], 2 * count, 2)) and lanes[0] < 2 and u.dtype.itemsize == 32 and kind == "ps":
    pairs = selector.op(regs.YMM, "vshufps_y_y_y_i8", selector.value(a), selector.value(b), 0xdd if lanes[0] else 0x88)
    return selector.op(regs.YMM, "vpermpd_y_y_i8", pairs, 0xd8)
  mask = sum((k >= count) << n for n, k in enumerate(lanes))
  first, second = (from_one(selector, u, x, tuple([k - start if start <= k < start + count else n
                                                   for n, k in enumerate(lanes)]), kind)
                   for x, start in ((a, 0), (b, count)))
  return selector.vop(u.dtype.itemsize, f"vblend{kind}_{{v}}_{{v}}_{{v}}_i8", first, second, mask)

def joined(selector: Vectors, a: UOp, b: UOp) -> Reg:
  """Two vectors, one after the other."""
  low = selector.value(a)
  if a.dtype.itemsize == 8: return selector.op(regs.XMM, "vunpcklpd_x_x_x", low, selector.value(b))
  kind, operand = selector.last_operand(b)
  if a.dtype.itemsize == 16: return selector.op(regs.YMM, f"vinsertf128_y_y_{kind or 'x'}_i8", low, *operand, 1)
  return selector.op(regs.ZMM, f"vinsertf64x4_z_z_{kind or 'y'}_i8", low, *operand, 1)

def places_in_parts(lanes: tuple[int, ...], count: int, each: int) -> tuple[int, ...] | None:
  """Return the places of lanes in a part of `each` lanes, if they are the same in all parts of both vectors. Those of
  the second vector follow those of the first."""
  found = None
  for start in range(0, count, each):
    own = tuple([k - start if k < count else k - count - start + each for k in lanes[start:start + each]])
    inside = all(0 <= place < each if k < count else each <= place < 2 * each
                 for k, place in zip(lanes[start:start + each], own))
    if not inside or found not in (None, own): return None
    found = own
  return found

def is_half_and_half(places: tuple[int, ...]) -> bool:
  """Are the places of the first half of a part in the first vector, and the others in the second?"""
  each = len(places)
  return all((k < each) is (n < each // 2) for n, k in enumerate(places))

def code_of_places(places: tuple[int, ...], parts: int) -> int:
  """Return the operand of vshufps (two bits for a place) or vshufpd (one bit, for each part anew)."""
  each = len(places)
  code = sum(k % each << n * (each // 2) for n, k in enumerate(places))
  return code if each == 4 else sum(code << 2 * p for p in range(parts))

def from_one(selector: Vectors, u: UOp, x: UOp, lanes: tuple[int, ...], kind: str) -> Reg:
  """Lanes of one vector."""
  value, count, size = selector.value(x), x.dtype.count, u.dtype.scalar().itemsize
  if lanes == tuple(range(count)): return value
  v, each = letter(u.dtype.itemsize), PART // size
  places = places_in_parts(lanes, count, each)
  if kind == "ps" and places is not None and len(places) == each:
    return selector.op(LETTER_CLASS[v], f"vpermilps_{v}_{v}_i8", value, sum(k << 2 * n for n, k in enumerate(places)))
  if kind == "pd" and u.dtype.itemsize == 16:
    return selector.op(regs.XMM, "vpermilpd_x_x_i8", value, sum(k << n for n, k in enumerate(lanes)))
  if kind == "pd" and u.dtype.itemsize == 32:
    return selector.op(regs.YMM, "vpermpd_y_y_i8", value, sum(k << 2 * n for n, k in enumerate(lanes)))
  return selector.vop(u.dtype.itemsize, f"vperm{kind}_{{v}}_{{v}}_{{v}}", table_of(selector, lanes, size), value)

def from_tables(selector: Vectors, u: UOp, a: UOp, b: UOp, lanes: tuple[int, ...], kind: str) -> Reg:
  """Lanes of two vectors at the AVX-512 level."""
  v, low = letter(u.dtype.itemsize), selector.value(a)
  places = table_of(selector, lanes, u.dtype.scalar().itemsize)
  operand_kind, operand = selector.last_operand(b)
  return selector.tied(LETTER_CLASS[v], f"vpermt2{kind}_{v}_{v}_{operand_kind or v}", low, places, *operand)

def table_of(selector: Vectors, lanes: tuple[int, ...], size: int) -> Reg:
  """The places as a vector, which is read once."""
  dtype = dtypes.int32 if size == 4 else dtypes.int64
  data = b"".join(k.to_bytes(dtype.itemsize, "little") for k in lanes)
  return selector.once(("places", data), lambda: selector.vector_of_constants(data))
