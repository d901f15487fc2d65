"""Select vectors for RISC-V with V: arithmetic by rules, masks, lanes, memory, conversions.

A vector of any number of elements is in one vector register, from element 0 on. A vector of bool is a bit for each
element, as comparisons write it. Every line names the state that it needs (line.py).
"""
from __future__ import annotations
from collections.abc import Iterator
from typing import Any

from tinyhw.dtype import DType, dtypes
from tinyhw.isa.riscv64.select.cast import Casts, as_code
from tinyhw.machine.ir.inst import Reg
from tinyhw.machine.select.cpu import integer_bits, is_mask
from tinyhw.machine.select.rules import FLOATS, SelectionRule
from tinyhw.uop.enums import GroupOp, Ops
from tinyhw.uop.ops import UOp

COMMUTE = frozenset({Ops.ADD, Ops.MUL, Ops.MULACC, Ops.AND, Ops.OR, Ops.XOR, Ops.MAX, Ops.CMPEQ, Ops.CMPNE})

def state_of(dtype: DType, share: int = 1) -> str:
  """The state of a vector type, whose elements fill a register or a share of one. A bool counts as a byte."""
  return f"{8 * dtype.scalar().itemsize}x{dtype.count}{'m1' if share == 1 else f'mf{share}'}"

class Vectors(Casts):
  """Vectors, and the masks of vectors of bool."""

  def vector(self, state: str, text: str, **values: Any) -> Reg:
    """Emit lines in a state, and return their %d."""
    return self.code("; ".join(f"{one} @{state}" for one in text.split("; ")), **values)

  def spelled(self, text: str, dtype: DType, numbers: dict[str, int]) -> str:
    if dtype.count == 1: return super().spelled(text, dtype, numbers)
    text = text.format_map(numbers) if "{" in text else text
    return f"{text} @{state_of(dtype)}"

  # ***** rules *****

  def orders(self, u: UOp, rule: SelectionRule) -> Iterator[list[UOp]]:
    yield list(u.src)
    if rule.condition == "b:scalar" and u.op in COMMUTE: yield [u.src[1], u.src[0], *u.src[2:]]

  def operands(self, u: UOp, condition: str, sources: list[UOp]) -> tuple[dict[str, Any] | None, dict[str, int]]:
    if condition != "b:scalar": return super().operands(u, condition, sources)
    if sources[1] not in self.spread: return None, {}
    values = {name: self.value(s) for name, s in zip("ac", (sources[0], *sources[2:]))}
    return {**values, "b": self.value(sources[1].src[0])}, {}

  def include(self, u: UOp, users: list[UOp]) -> None:
    """Leave a broadcast to its users, if all of them take a scalar."""
    if u.op is not Ops.BROADCAST or is_mask(u) or u.src[0].op is Ops.CONST: return
    if all(self.takes_scalar(u, user) for user in users): self.spread.add(u)

  def takes_scalar(self, u: UOp, user: UOp) -> bool:
    if sum(s is u for s in user.src) != 1 or user.dtype.count == 1: return False
    dtype = user.src[0].dtype if user.op in GroupOp.Comparison else user.dtype
    return any(rule.condition == "b:scalar" and sources[1] is u
               for rule in self.lanes.get((user.op, dtype.scalar()), ()) for sources in self.orders(user, rule))

  # ***** operations *****

  def compute_lanes(self, u: UOp) -> Reg:
    """An operation of vectors."""
    if u.op is Ops.BITCAST: return self.value(u.src[0])
    if u.op is Ops.CAST: return self.cast_lanes(u.src[0].dtype, u.dtype, self.value(u.src[0]))
    if u.op is Ops.WHERE:
      condition, yes, no = (self.value(s) for s in u.src)
      return self.blended(u.dtype, condition, yes, no, u.src[0].dtype.count == 1)
    return self.by_rule(u, self.lanes, u.src[0].dtype if u.op in GroupOp.Comparison else None)

  def blended(self, dtype: DType, condition: Reg, yes: Reg, no: Reg, scalar: bool = False) -> Reg:
    """yes where the mask (scalar: a bool for all) is true, else no."""
    bits = state_of(dtypes.bool.vec(dtype.count))
    mask = self.mask_of_flag(condition, dtype.count) if scalar else condition
    if dtype.scalar() is not dtypes.bool:
      return self.vector(state_of(dtype), "vmerge.vvm v%d, v%b, v%a, v0", m=mask, a=yes, b=no)
    text = "vmand.mm v%t, v%m, v%a; vmandn.mm v%u, v%b, v%m; vmor.mm v%d, v%t, v%u"
    return self.vector(bits, text, m=mask, a=yes, b=no)

  def mask_of_flag(self, condition: Reg, count: int) -> Reg:
    """A scalar bool as a mask."""
    return self.vector(state_of(dtypes.bool.vec(count)), "vmv.v.x v%t, x%a; vmsne.vi v%d, v%t, 0", a=condition)

  def bytes_of(self, mask: Reg, count: int) -> Reg:
    """The bytes of a mask, 0 or 1."""
    return self.vector(state_of(dtypes.bool.vec(count)), "vmv.v.i v%t, 0; vmerge.vim v%d, v%t, 1, v0", m=mask)

  # ***** constants and lanes *****

  def vector_constant(self, dtype: DType, value: Any) -> Reg:
    """The same value in all lanes."""
    state, scalar = state_of(dtype), dtype.scalar()
    if scalar is dtypes.bool:
      return self.vector(state, "vmset.m v%d" if value else "vmclr.m v%d")
    if scalar in FLOATS: return self.vector(state, "vfmv.v.f v%d, f%a", a=self.fresh_constant(scalar, value))
    bits = integer_bits(scalar, value)
    if -16 <= bits < 16: return self.repeatable(f"vmv.v.i v%d, {bits} @{state}")
    return self.vector(state, "vmv.v.x v%d, x%a", a=self.fresh_constant(scalar, value))

  def constant_lanes(self, u: UOp) -> Reg:
    """A vector of different constants: numbers at a distance from each other, or one after the other."""
    values = [s.arg for s in u.src]
    step = values[1] - values[0]
    if dtypes.is_int(u.dtype.scalar()) and all(b - a == step for a, b in zip(values, values[1:])):
      return self.once((u,), lambda: self.ramp(u.dtype, values[0], step))
    return self.once((u,), lambda: self.joined_lanes(u))

  def ramp(self, dtype: DType, start: int, step: int) -> Reg:
    state, scalar = state_of(dtype), dtype.scalar()
    made = self.vector(state, "vid.v v%d")
    if step != 1: made = self.vector(state, "vmul.vx v%d, v%a, x%b", a=made, b=self.fresh_constant(scalar, step))
    if not start: return made
    return self.vector(state, "vadd.vx v%d, v%a, x%b", a=made, b=self.fresh_constant(scalar, start))

  def broadcast(self, u: UOp) -> Reg:
    value, scalar = self.value(u.src[0]), u.dtype.scalar()
    if is_mask(u): return self.mask_of_flag(value, u.dtype.count)
    return self.vector(state_of(u.dtype), "vfmv.v.f v%d, f%a" if scalar in FLOATS else "vmv.v.x v%d, x%a", a=value)

  def vectorize(self, u: UOp) -> Reg:
    made = self.joined_lanes(u)
    return self.vector(state_of(u.dtype), "vmsne.vi v%d, v%a, 0", a=made) if is_mask(u) else made

  def joined_lanes(self, u: UOp) -> Reg:
    """Scalars, one after the other: the first in all lanes, the others pushed in from above. Bools are bytes."""
    state, letter = state_of(u.dtype), "f" if u.dtype.scalar() in FLOATS else "x"
    made = self.vector(state, "vfmv.v.f v%d, f%a" if letter == "f" else "vmv.v.x v%d, x%a", a=self.value(u.src[0]))
    text = "vfslide1down.vf v%d, v%a, f%b" if letter == "f" else "vslide1down.vx v%d, v%a, x%b"
    for s in u.src[1:]: made = self.vector(state, text, a=made, b=self.value(s))
    return made

  def element(self, dtype: DType, source: UOp, number: int) -> Reg:
    """An element of a vector in registers."""
    value, state = self.value(source), state_of(source.dtype)
    if dtype is dtypes.bool: value = self.bytes_of(value, source.dtype.count)
    if number: value = self.slid(value, number, state)
    if dtype in FLOATS: return self.vector(state, "vfmv.f.s f%d, v%a", a=value)
    made = self.vector(state, "vmv.x.s x%d, v%a", a=value)   # extended with its sign
    return made if dtype in dtypes.sints else self.normal(as_code(dtype), made)

  def slid(self, value: Reg, number: int, state: str) -> Reg:
    """The elements from a number on."""
    if number < 32: return self.vector(state, f"vslidedown.vi v%d, v%a, {number}", a=value)
    return self.vector(state, "vslidedown.vx v%d, v%a, x%b", a=value, b=self.constant(dtypes.int64, number))

  def part_of(self, u: UOp) -> Reg:
    """A GEP of several adjacent elements."""
    source, state = u.src[0], state_of(u.src[0].dtype)
    value = self.value(source)
    if not u.arg: return value
    if not is_mask(u): return self.slid(value, u.arg, state)
    part = self.slid(self.bytes_of(value, source.dtype.count), u.arg, state)
    return self.vector(state_of(u.dtype), "vmsne.vi v%d, v%a, 0", a=part)

  # ***** memory *****

  def load_lanes(self, dtype: DType, place: Reg) -> Reg:
    made = self.vector(state_of(dtype), f"vle{8 * dtype.scalar().itemsize}.v v%d, (x%p)", p=place)
    return self.vector(state_of(dtype), "vmsne.vi v%d, v%a, 0", a=made) if dtype.scalar() is dtypes.bool else made

  def store_lanes(self, value: UOp, place: Reg, gate: UOp | None = None) -> None:
    """Store a vector. gate: a mask; memory of other elements is not touched."""
    dtype, found = value.dtype, self.value(value)
    if is_mask(value): found = self.bytes_of(found, dtype.count)
    text = f"vse{8 * dtype.scalar().itemsize}.v v%s, (x%p)"
    if gate is None: self.emit(f"{text} @{state_of(dtype)}", s=found, p=place)
    else: self.emit(f"{text}, v0.t @{state_of(dtype)}", s=found, p=place, m=self.value(gate))

  def masked_load(self, u: UOp, place: Reg) -> Reg:
    """A load under a mask. Memory of other elements is not touched."""
    dtype, gate, other = u.dtype, self.value(u.src[1]), self.value(u.src[2])
    if is_mask(u): other = self.bytes_of(other, dtype.count)
    text = f"vle{8 * dtype.scalar().itemsize}.v v%d:b, (x%p), v0.t"
    made = self.vector(state_of(dtype), text, p=place, m=gate, b=other)
    return self.vector(state_of(dtype), "vmsne.vi v%d, v%a, 0", a=made) if is_mask(u) else made

  # ***** conversions *****

  def cast_lanes(self, source: DType, target: DType, value: Reg) -> Reg:
    a, b, count = source.scalar(), target.scalar(), target.count
    if a is b: return value
    if a is dtypes.bool: return self.numbers_of(target, value)
    if b is dtypes.bool and a in FLOATS:
      return self.vector(state_of(source), "vmfne.vf v%d, v%a, f%z", a=value, z=self.constant(a, 0.0))
    if b is dtypes.bool and dtypes.is_int(a): return self.vector(state_of(source), "vmsne.vi v%d, v%a, 0", a=value)
    if dtypes.is_int(a) and dtypes.is_int(b): return self.resized_lanes(a, b, count, value)
    if a in FLOATS and b in FLOATS:
      text = "vfwcvt.f.f.v v%d, v%a" if b.itemsize == 8 else "vfncvt.f.f.w v%d, v%a"
      return self.vector(state_of(dtypes.float32.vec(count), 2), text, a=value)
    if dtypes.is_int(a) and b in FLOATS and a.itemsize < 8 and (a is not dtypes.uint32 or b is dtypes.float64):
      same = dtypes.int64 if b is dtypes.float64 else dtypes.int32
      return self.vector(state_of(target), "vfcvt.f.x.v v%d, v%a", a=self.resized_lanes(a, same, count, value))
    if a in FLOATS and dtypes.is_int(b) and b.itemsize <= 4 and b is not dtypes.uint32:
      return self.resized_lanes(dtypes.int32, b, count, self.integers_of(source, value))
    raise self.refuse(source, target)

  def resized_lanes(self, a: DType, b: DType, count: int, value: Reg) -> Reg:
    """Integer lanes of another size."""
    if a.itemsize < b.itemsize:
      kind = "s" if a in dtypes.sints else "z"
      return self.vector(state_of(b.vec(count)), f"v{kind}ext.vf{b.itemsize // a.itemsize} v%d, v%a", a=value)
    size = a.itemsize
    while size > b.itemsize:
      size //= 2
      value = self.vector(f"{8 * size}x{count}mf2", "vncvt.x.x.w v%d, v%a", a=value)
    return value

  def integers_of(self, source: DType, value: Reg) -> Reg:
    """Floats as int32. Those that do not fit, and NaN, become the least one."""
    count, scalar = source.count, source.scalar()
    fits = self.vector(state_of(source), "vmflt.vf v%d, v%a, f%l", a=value, l=self.constant(scalar, 2.0 ** 31))
    words = dtypes.int32.vec(count)
    found = self.vector(state_of(source), "vfcvt.rtz.x.f.v v%d, v%a", a=value)
    # not vfncvt.rtz.x.f.w, at which QEMU 7.2 stops; vnclip saturates
    if scalar is dtypes.float64: found = self.vector(state_of(words, 2), "vnclip.wi v%d, v%a, 0", a=found)
    return self.blended(words, fits, found, self.constant(words, -1 << 31))

  def numbers_of(self, target: DType, mask: Reg) -> Reg:
    """1 where a mask is true, else 0."""
    state, scalar = state_of(target), target.scalar()
    if scalar not in FLOATS: return self.vector(state, "vmv.v.i v%t, 0; vmerge.vim v%d, v%t, 1, v0", m=mask)
    return self.vector(state, "vmv.v.i v%t, 0; vfmerge.vfm v%d, v%t, f%a, v0", m=mask, a=self.constant(scalar, 1.0))
