"""Masks and dependent operations at the AVX2 level. A vector of bool is a vector register. Its lanes are all ones or
zeros, and have the size of the compared values.

A user with lanes of another size gets the mask converted (`mask`). select/evex.py has the same methods for AVX-512.
Both define the abstract methods of select/level.py.
"""
from __future__ import annotations

from tinyhw.dtype import DType, dtypes
from tinyhw.errors import CompileError
from tinyhw.isa.x86.select.level import Level, LevelTable
from tinyhw.isa.x86.select.scalar import FLOATS, PREDICATES
from tinyhw.isa.x86.select.vector import ELEMENT, LETTER_CLASS, LOGIC, MASK_LOGIC, letter, packed
from tinyhw.isa.x86.table import regs
from tinyhw.machine.ir.inst import Reg, RegClass
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp

def mask_lane_bytes(dtype: DType) -> int:
  """The size of a mask's lanes if no operand determines it: that of most data, if it fits."""
  return min(4, 32 // dtype.count)

class LaneMasks(Level):
  """The methods of Selector for AVX2."""
  rows = LevelTable({}, lacks="avx512")

  # ***** masks *****

  def mask(self, u: UOp, size: int) -> Reg:
    """The vector of bool u with lanes of `size` bytes."""
    if u.op is Ops.CONST: return self.constant(dtypes.bool.vec(2), u.arg)
    value = self.value(u)
    have = self.mask_bytes[u]
    return value if have == size else self.convert_mask(value, u.dtype.count, have, size)

  def convert_mask(self, value: Reg, count: int, have: int, want: int) -> Reg:
    if have < want: return self.vop(count * want, f"vpmovsx{ELEMENT[have]}{ELEMENT[want]}_{{v}}_x", value)
    while have > want:
      value = self.halve_mask(value, count, have)
      have //= 2
    return value

  def halve_mask(self, value: Reg, count: int, have: int) -> Reg:
    """Convert lanes to half the size. An instruction that packs two registers into one gets the two halves of a ymm
    register."""
    if count * have <= 16: low = high = value
    else: low, high = value, self.op(regs.XMM, "vextracti128_x_y_i8", value, 1)
    if have == 8: return self.op(regs.XMM, "vshufps_x_x_x_i8", low, high, 0x88)
    return self.op(regs.XMM, "vpackssdw_x_x_x" if have == 4 else "vpacksswb_x_x_x", low, high)

  def mask_result(self, u: UOp, value: Reg, size: int) -> Reg:
    self.mask_bytes[u] = size
    return value

  def float_mask(self, u: UOp) -> Reg:
    dtype = u.src[0].dtype
    value = self.vop(dtype.itemsize, f"vcmp{packed(dtype)}_{{v}}_{{v}}_{{v}}_i8", self.value(u.src[0]),
                     self.value(u.src[1]), PREDICATES[u.op])
    return self.mask_result(u, value, dtype.scalar().itemsize)

  def integer_mask(self, u: UOp) -> Reg:
    dtype = u.src[0].dtype
    scalar, size = dtype.scalar(), dtype.scalar().itemsize
    a, b = self.value(u.src[0]), self.value(u.src[1])
    if u.op is Ops.CMPLT:
      if dtypes.is_unsigned(scalar):
        top = self.constant(dtype, 1 << (8 * size - 1))
        a, b = (self.vop(dtype.itemsize, "vpxor_{v}_{v}_{v}", x, top) for x in (a, b))
      return self.mask_result(u, self.vop(dtype.itemsize, f"vpcmpgt{ELEMENT[size]}_{{v}}_{{v}}_{{v}}", b, a), size)
    equal = self.vop(dtype.itemsize, f"vpcmpeq{ELEMENT[size]}_{{v}}_{{v}}_{{v}}", a, b)
    if u.op is Ops.CMPNE: equal = self.invert(equal, dtype.itemsize)
    return self.mask_result(u, equal, size)

  def invert(self, mask: Reg, size: int) -> Reg:
    return self.vop(size, "vpxor_{v}_{v}_{v}", mask, self.constant(dtypes.bool.vec(2), True))

  def mask_logic(self, u: UOp) -> Reg:
    size = self._lane_bytes(*u.src)
    a, b = (self.mask(s, size) for s in u.src)
    total = u.dtype.count * size
    if u.op is Ops.CMPLT: value = self.vop(total, "vpandn_{v}_{v}_{v}", a, b)
    else: value = self.vop(total, f"{LOGIC[MASK_LOGIC[u.op]]}_{{v}}_{{v}}_{{v}}", a, b)
    if u.op is Ops.CMPEQ: value = self.invert(value, total)
    return self.mask_result(u, value, size)

  def mask_not(self, u: UOp) -> Reg:
    value = self.value(u.src[0])
    size = self.mask_bytes[u.src[0]]
    return self.mask_result(u, self.invert(value, u.dtype.count * size), size)

  def mask_where(self, u: UOp) -> Reg:
    condition, yes, no = u.src
    size = self._lane_bytes(*u.src)
    if condition.dtype.count == 1:
      gate = self.mask_of_flag(self.value(condition), LETTER_CLASS[letter(u.dtype.count * size)])
    else: gate = self.mask(condition, size)
    value = self.vop(u.dtype.count * size, "vpblendvb_{v}_{v}_{v}_{v}", self.mask(no, size), self.mask(yes, size), gate)
    return self.mask_result(u, value, size)

  def _lane_bytes(self, *sources: UOp) -> int:
    """The size of lanes for masks that are used together: the greatest size of one of them."""
    masks = [s for s in sources if s.op is not Ops.CONST and s.dtype.count > 1]
    for s in masks: self.value(s)
    return max((self.mask_bytes[s] for s in masks), default=mask_lane_bytes(sources[-1].dtype))

  def start_of_mask(self, u: UOp, start: UOp) -> Reg:
    """The initial value of variable u, a mask, in lanes of the size that it keeps."""
    size = mask_lane_bytes(u.dtype)
    v = letter(u.dtype.count * size)
    self.mask_bytes[u] = size
    if start.op is Ops.CONST:
      return self.read_constant(f"vpbroadcastb_{v}_m", LETTER_CLASS[v], b"\xff" if start.arg else b"\0")
    return self.mask(start, size)

  def mask_of_flag(self, flag: Reg, cls: RegClass) -> Reg:
    """All lanes of a register from a 0 or 1 in a general register."""
    negative = self.op(regs.XMM, "vmovd_x_r32", self.tied(regs.R32, "neg_r32", flag))
    v = cls.name[0]
    return self.op(cls, f"vpbroadcastd_{v}_x", negative)

  def blend(self, dtype: DType, mask: Reg, yes: Reg, no: Reg) -> Reg:
    size = dtype.scalar().itemsize
    key = {4: "vblendvps", 8: "vblendvpd"}.get(size, "vpblendvb")
    return self.vop(dtype.itemsize, f"{key}_{{v}}_{{v}}_{{v}}_{{v}}", no, yes, mask)

  def kept(self, u: UOp, mask: Reg) -> Reg:
    return self.second(u, f"vand{packed(u.dtype)}" if u.dtype.scalar() in FLOATS else "vpand", mask)

  def vectorize_bools(self, u: UOp) -> Reg:
    size = 4 if u.dtype.count <= 8 else 1
    if all(s.op is Ops.CONST for s in u.src):
      return self.mask_result(u, self.vector_of_constants(b"".join(b"\xff" * size if s.arg else bytes(size)
                                                                   for s in u.src)), size)
    each = 16 // size
    scalar = dtypes.int32 if size == 4 else dtypes.int8
    value = self.joined([self.pack(scalar, u.src[i:i + each]) for i in range(0, len(u.src), each)], "i")
    total = u.dtype.count * size
    value = self.vop(total, f"vpcmpgt{ELEMENT[size]}_{{v}}_{{v}}_{{v}}", value,
                     self.constant(scalar.vec(total // size), 0))
    return self.mask_result(u, value, size)

  def mask_lane(self, source: UOp, k: int) -> Reg:
    bytes_ = self.mask(source, 1)
    bits = self.op(regs.R32, f"vpmovmskb_r32_{letter(source.dtype.count)}", bytes_)
    if k: bits = self.tied(regs.R32, "shr_r32_i8", bits, k)
    return self.tied(regs.R32, "and_r32_i32", bits, 1)

  def load_bools(self, u: UOp, value: Reg) -> Reg:
    """Convert bytes of 0 and 1 to a mask of bytes."""
    zero = self.constant(dtypes.int8.vec(max(u.dtype.count, 16)), 0)
    return self.mask_result(u, self.vop(u.dtype.count, "vpcmpgtb_{v}_{v}_{v}", value, zero), 1)

  def value_bytes(self, u: UOp) -> Reg:
    """A vector in the form that memory has: masks become bytes of 0 and 1."""
    if u.dtype.scalar() is not dtypes.bool: return self.value(u)
    return self.vop(u.dtype.count, "vpand_{v}_{v}_{v}", self.mask(u, 1),
                    self.constant(dtypes.int8.vec(max(u.dtype.count, 16)), 1))

  def gate_mask(self, gate: UOp, dtype: DType) -> Reg:
    """A gate for lanes of a vector in memory. It is false after the vector's end."""
    if gate.dtype.count > 1: mask = self.mask(gate, dtype.scalar().itemsize)
    else: mask = self.mask_of_flag(self.value(gate), LETTER_CLASS[letter(dtype.itemsize)])
    return self.op(regs.XMM, "vmovq_x_x", mask) if dtype.itemsize == 8 else mask

  def load_masked(self, u: UOp) -> Reg:
    index, gate, alt = u.src
    dtype, size = u.dtype, u.dtype.scalar().itemsize
    if gate.dtype.count == 1: return self.load_under_flag(u)
    if size < 4 or dtype.itemsize < 8:
      raise CompileError(f"{self.program.name}: x86-64 has no masked load of {dtype}; gate its lanes one by one")
    mask = self.gate_mask(gate, dtype)
    value = self.vop(dtype.itemsize, f"vmaskmov{'ps' if size == 4 else 'pd'}_{{v}}_{{v}}_m", mask, *self.address(index))
    if alt.op is Ops.CONST and alt.arg == 0: return value
    return self.blend(dtype, mask, value, self.value(alt))

  def load_under_flag(self, u: UOp) -> Reg:
    """Load a vector with elements of any size under one condition: all of it or nothing."""
    index, gate, alt = u.src
    bools = u.dtype.scalar() is dtypes.bool
    dtype = dtypes.uint8.vec(u.dtype.count) if bools else u.dtype
    size, flag = dtype.itemsize, self.value(gate)
    cls = LETTER_CLASS[letter(size)]
    if size >= 16:
      mask = self.mask_of_flag(flag, cls)
      value = self.vop(size, "vmaskmovps_{v}_{v}_m", mask, *self.address(index))
    else:
      value = self.load_vector(dtype, self.address_under(flag, index))
      mask = self.mask_of_flag(flag, cls)
    if not (size >= 16 and alt.op is Ops.CONST and alt.arg == 0):
      value = self.blend(dtype, mask, value, self.value_bytes(alt))
    return self.load_bools(u, value) if bools else value

  def store_masked(self, u: UOp) -> None:
    index, value, gate = u.src[:3]
    dtype, size = value.dtype, value.dtype.scalar().itemsize
    if size < 4 or dtype.itemsize < 8:
      raise CompileError(f"{self.program.name}: x86-64 has no masked store of {dtype}; gate its lanes one by one")
    v = letter(dtype.itemsize)
    self.emit(f"vmaskmov{'ps' if size == 4 else 'pd'}_m_{v}_{v}", *self.address(index), self.gate_mask(gate, dtype),
              self.value(value))

  def gather(self, u: UOp) -> Reg:
    """One load per lane, at the indices of a vector. Lanes whose gate is false read nothing."""
    index, dtype = u.src[0], u.dtype
    buffer, lanes = index.src
    size = dtype.scalar().itemsize
    base, _, _, displacement = self.in_reach(self.values[buffer], None, 1, self.local_offset.get(buffer, 0))
    v = letter(dtype.itemsize)
    cls = LETTER_CLASS[v]
    wide = lanes.dtype.scalar().itemsize == 8
    mask = self.gate_mask(u.src[1], dtype) if len(u.src) > 1 else self.constant(dtypes.bool.vec(2), True)
    at = self.value(lanes)
    old = self.distinct(self.value(u.src[2]) if len(u.src) > 2 else self.constant(dtype, 0), at)
    result, used = self.new(cls), self.new(cls)
    m = "m" + (letter(lanes.dtype.itemsize))
    key = f"vgather{'q' if wide else 'd'}p{'s' if size == 4 else 'd'}_{v}_{m}_{v}"
    self.emit(key, result, base, at, size, displacement, used, ties=(old, self.distinct(mask, at, old)))
    return result

  # ***** operations with other instructions on each level *****

  def mask_constant(self, value: bool) -> Reg:
    """A mask of bytes, which serves for lanes of any size."""
    return self.read_constant("vpbroadcastb_y_m", regs.YMM, b"\xff" if value else b"\0")

  def assigned_mask(self, variable: UOp, value: UOp) -> Reg: return self.mask(value, self.mask_bytes[variable])

  def scalar_mask(self, suffix: str, a: Reg, b: Reg, predicate: int) -> Reg:
    return self.op(regs.XMM, f"vcmp{suffix}_x_x_x_i8", a, b, predicate)

  def flag_of_mask(self, mask: Reg) -> Reg:
    return self.tied(regs.R32, "and_r32_i32", self.op(regs.R32, "vmovd_r32_x", mask), 1)

  def is_shuffle(self, u: UOp) -> bool: return False

  def broadcast_flag(self, u: UOp) -> Reg:
    size = mask_lane_bytes(u.dtype)
    return self.mask_result(u, self.mask_of_flag(self.value(u.src[0]), LETTER_CLASS[letter(u.dtype.count * size)]),
                            size)

  def broadcast_general(self, size: int, v: str, value: Reg) -> Reg:
    low = self.op(regs.XMM, "vmovq_x_r64" if size == 8 else "vmovd_x_r32", value)
    return self.op(LETTER_CLASS[v], f"vpbroadcast{ELEMENT[size]}_{v}_x", low)

  def truncate_lanes(self, a: DType, b: DType, count: int, value: Reg) -> Reg:
    size, wide = a.itemsize, a.itemsize * count > 16
    if size == 8:
      if wide: value = self.permuted((0, 2, 4, 6, 1, 3, 5, 7), value)
      else: value = self.op(regs.XMM, "vpshufd_x_x_i8", value, 0x08)
      return self.resize(dtypes.int32, b, count, value)
    # gather the low bytes of each lane at the start of its 128 bits, then join the two
    each = 16 // size
    picks = bytes(k * size + j for k in range(each) for j in range(b.itemsize)).ljust(16, b"\x80")
    value = self.vop(size * count, "vpshufb_{v}_{v}_{v}", value, self.vector_of_constants(picks * (2 if wide else 1)))
    if not wide: return value
    if each * b.itemsize == 8: return self.op(regs.YMM, "vpermq_y_y_i8", value, 0x08)
    return self.permuted((0, 4, 1, 5, 2, 6, 3, 7), value)

  def permuted(self, order: tuple[int, ...], value: Reg) -> Reg:
    """Permute the eight lanes of four bytes."""
    return self.op(regs.YMM, "vpermd_y_y_y", self.vector_of_constants(b"".join(k.to_bytes(4, "little") for k in order)),
                   value)

  def from_mask(self, u: UOp, target: DType) -> Reg:
    """Convert a mask to 0 and 1 of some type: the mask, and the bits of 1."""
    mask = self.mask(u.src[0], target.scalar().itemsize)
    return self.vop(target.itemsize, "vpand_{v}_{v}_{v}", mask, self.constant(target, 1))

  def to_mask(self, u: UOp, source: DType, value: Reg) -> Reg:
    """Convert to bool: true unless zero; NaN is true."""
    size, zero = source.scalar().itemsize, self.constant(source, 0)
    if source.scalar() in FLOATS:
      return self.mask_result(u, self.vop(source.itemsize, f"vcmp{packed(source)}_{{v}}_{{v}}_{{v}}_i8", value, zero,
                                          4), size)
    same = self.vop(source.itemsize, f"vpcmpeq{ELEMENT[size]}_{{v}}_{{v}}_{{v}}", value, zero)
    return self.mask_result(u, self.invert(same, source.itemsize), size)
