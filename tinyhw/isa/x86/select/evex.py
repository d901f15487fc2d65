"""Masks and dependent operations at the AVX-512 level. A vector of bool is a mask register, with bit k for lane k, for
any type of compared values.

Bits above the number of lanes are undefined: comparisons clear them, `knot` sets them. They are cleared if they matter
(`clipped`): when a vector that is shorter than its register accesses memory. Some instructions have no EVEX form under
their name. `NAMES` has another one for them, so that all 32 registers can be used. select/mask.py is the AVX2
counterpart.
"""
from __future__ import annotations

from tinyhw.dtype import DType, dtypes
from tinyhw.isa.x86.select.level import PACKED_CASTS, CASTS_OF_64_BITS, Level, LevelTable
from tinyhw.isa.x86.select.scalar import FLOATS, PREDICATES
from tinyhw.isa.x86.select.vector import ELEMENT, LETTER_CLASS, MASK_LOGIC, letter, packed
from tinyhw.isa.x86.table import regs
from tinyhw.machine.ir.inst import Reg, RegClass
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp

NAMES = {
  "vpand": "vpandd", "vpor": "vpord", "vpxor": "vpxord", "vextractf128": "vextractf32x4", "vinsertf128": "vinsertf32x4",
  "vinserti128": "vinserti32x4", "vroundps": "vrndscaleps", "vroundpd": "vrndscalepd", "vroundss": "vrndscaless",
  "vroundsd": "vrndscalesd",
}
MASK_INSTRUCTIONS = {Ops.AND: "kandq", Ops.OR: "korq", Ops.XOR: "kxorq"}
# predicates of vpcmpd and similar ones; vpcmpeqd is shorter
INTEGER_PREDICATES = {Ops.CMPLT: 1, Ops.CMPNE: 4}
BLENDS = {1: "vpblendmb", 2: "vpblendmw", 4: "vpblendmd", 8: "vpblendmq"}
JOINS = {8: "kunpckbw", 16: "kunpckwd", 32: "kunpckdq"}  # joins two masks of this number of lanes
MOVES = {1: "vmovdqu8", 2: "vmovdqu16", 4: "vmovdqu32", 8: "vmovdqu64"}             # moves lanes under a mask

def is_run(u: UOp) -> bool:
  """Whether a VECTORIZE has adjacent lanes of one vector."""
  first = u.src[0]
  return first.op is Ops.GEP and all(s.op is Ops.GEP and s.src[0] is first.src[0] and s.arg == first.arg + k
                                     for k, s in enumerate(u.src))

def joined_masks(u: UOp) -> list[UOp] | None:
  """The vectors of bool that a VECTORIZE joins, if they are whole, and an instruction joins this number of lanes."""
  first = u.src[0].src[0] if u.src[0].op is Ops.GEP else u
  lanes = first.dtype.count
  if lanes not in JOINS or len(u.src) // lanes not in (2, 4, 8): return None
  parts = [s.src[0] if s.op is Ops.GEP else u for s in u.src[::lanes]]
  whole = all(s.op is Ops.GEP and s.src[0] is parts[k // lanes] and s.arg == k % lanes for k, s in enumerate(u.src))
  return parts if whole and all(p.dtype.count == lanes for p in parts) else None

class EvexMasks(Level):
  """The methods of Selector for AVX-512."""
  rows = LevelTable(NAMES)
  spreads = has_ternary = has_two_tables = True
  packed_casts = {**PACKED_CASTS, **CASTS_OF_64_BITS}

  # ***** masks *****

  def mask(self, u: UOp, size: int = 0) -> Reg:
    return self.constant(dtypes.bool.vec(2), u.arg) if u.op is Ops.CONST else self.value(u)

  def mask_constant(self, value: bool) -> Reg: return self.mask_bits((1 << 64) - 1 if value else 0)

  def mask_bits(self, bits: int) -> Reg: return self.read_constant("kmovq_k_m", regs.K, bits.to_bytes(8, "little"))

  def mask_of_flag(self, flag: Reg, cls: RegClass) -> Reg:
    """A mask from a flag, made once a block: all stores and loads under one gate use it."""
    key = (id(self.block), "mask of flag", flag.id, cls is regs.ZMM)
    found = self.constants.get(key)
    if found is None: found = self.constants[key] = self._mask_of_flag(flag, cls)
    return found

  def _mask_of_flag(self, flag: Reg, cls: RegClass) -> Reg:
    all_bits = self.tied(regs.R32, "neg_r32", flag)
    if cls is not regs.ZMM: return self.op(regs.K, "kmovd_k_r32", all_bits)
    return self.op(regs.K, "kmovq_k_r64", self.op(regs.R64, "movsxd_r64_r32", all_bits))

  def gate_mask(self, gate: UOp, dtype: DType) -> Reg:
    """A gate for lanes of a vector in memory. It is false after the vector's end."""
    mask = self.mask(gate) if gate.dtype.count > 1 else self.mask_of_flag(self.value(gate),
                                                                          LETTER_CLASS[letter(dtype.itemsize)])
    return self.clipped(mask, dtype)

  def clipped(self, mask: Reg, dtype: DType) -> Reg:
    if dtype.itemsize in (16, 32, 64): return mask
    bits = (1 << dtype.count) - 1
    return self.op(regs.K, "kandq_k_k_k", mask, self.once(("mask bits", bits), lambda: self.mask_bits(bits)))

  def start_of_mask(self, u: UOp, start: UOp) -> Reg: return self.mask(start)

  def assigned_mask(self, variable: UOp, value: UOp) -> Reg: return self.mask(value)

  def broadcast_flag(self, u: UOp) -> Reg:
    return self.mask_of_flag(self.value(u.src[0]), LETTER_CLASS[letter(u.dtype.count)])

  def float_mask(self, u: UOp) -> Reg:
    dtype = u.src[0].dtype
    v = letter(dtype.itemsize)
    return self.op(regs.K, f"vcmp{packed(dtype)}_k_{v}_{v}_i8", self.value(u.src[0]), self.value(u.src[1]),
                   PREDICATES[u.op])

  def integer_mask(self, u: UOp) -> Reg:
    dtype = u.src[0].dtype
    v, e, a, b = letter(dtype.itemsize), ELEMENT[dtype.scalar().itemsize], self.value(u.src[0]), self.value(u.src[1])
    if u.op is Ops.CMPEQ: return self.op(regs.K, f"vpcmpeq{e}_k_{v}_{v}", a, b)
    sign = "u" if dtypes.is_unsigned(dtype.scalar()) else ""
    return self.op(regs.K, f"vpcmp{sign}{e}_k_{v}_{v}_i8", a, b, INTEGER_PREDICATES[u.op])

  def mask_logic(self, u: UOp) -> Reg:
    a, b = self.mask(u.src[0]), self.mask(u.src[1])
    if u.op is Ops.CMPLT: return self.op(regs.K, "kandnq_k_k_k", a, b)
    if u.op is Ops.CMPEQ: return self.op(regs.K, "kxnorq_k_k_k", a, b)
    return self.op(regs.K, f"{MASK_INSTRUCTIONS[MASK_LOGIC[u.op]]}_k_k_k", a, b)

  def mask_not(self, u: UOp) -> Reg: return self.op(regs.K, "knotq_k_k", self.mask(u.src[0]))

  def mask_where(self, u: UOp) -> Reg:
    condition, yes, no = u.src
    if condition.dtype.count > 1: gate = self.mask(condition)
    else: gate = self.mask_of_flag(self.value(condition), LETTER_CLASS[letter(u.dtype.count)])
    taken = self.op(regs.K, "kandq_k_k_k", gate, self.mask(yes))
    return self.op(regs.K, "korq_k_k_k", taken, self.op(regs.K, "kandnq_k_k_k", gate, self.mask(no)))

  def mask_lane(self, source: UOp, k: int) -> Reg:
    cls, bits = (regs.R64, 64) if k >= 32 else (regs.R32, 32)
    value = self.op(cls, f"kmov{'q' if bits == 64 else 'd'}_r{bits}_k", self.mask(source))
    if k: value = self.tied(cls, f"shr_r{bits}_i8", value, k)
    if bits == 64: value = self.op(regs.R32, "mov_r32_r32", value)
    return self.tied(regs.R32, "and_r32_i32", value, 1)

  def is_shuffle(self, u: UOp) -> bool:
    return u.dtype.scalar() is dtypes.bool and (is_run(u) or joined_masks(u) is not None)

  def vectorize_bools(self, u: UOp) -> Reg:
    if all(s.op is Ops.CONST for s in u.src): return self.mask_bits(sum(bool(s.arg) << k for k, s in enumerate(u.src)))
    if is_run(u):
      mask, start = self.mask(u.src[0].src[0]), u.src[0].arg
      return self.op(regs.K, "kshiftrq_k_k_i8", mask, start) if start else mask
    parts = joined_masks(u)
    if parts is not None: return self.join_masks([self.mask(p) for p in parts], parts[0].dtype.count)
    value = self.joined([self.pack(dtypes.int8, u.src[i:i + 16]) for i in range(0, len(u.src), 16)], "i")
    v = letter(u.dtype.count)
    return self.op(regs.K, f"vptestmb_k_{v}_{v}", value, value)

  def join_masks(self, masks: list[Reg], lanes: int) -> Reg:
    """Join masks of `lanes` lanes, low lanes first. Bits above a mask's lanes do not matter."""
    while len(masks) > 1:
      masks = [self.op(regs.K, f"{JOINS[lanes]}_k_k_k", high, low) for low, high in zip(masks[::2], masks[1::2])]
      lanes *= 2
    return masks[0]

  # ***** values and masks *****

  def blend(self, dtype: DType, mask: Reg, yes: Reg, no: Reg) -> Reg:
    size, v = dtype.scalar().itemsize, letter(dtype.itemsize)
    name = f"vblendm{packed(dtype)}" if dtype.scalar() in FLOATS else BLENDS[size]
    return self.op(LETTER_CLASS[v], f"{name}_{v}k_{v}_{v}", mask, no, yes)

  def kept(self, u: UOp, mask: Reg) -> Reg:
    v, address = letter(u.dtype.itemsize), self.memory(u) if u.dtype.itemsize in (16, 32, 64) else None
    key = f"{f'vmovu{packed(u.dtype)}' if u.dtype.scalar() in FLOATS else MOVES[u.dtype.scalar().itemsize]}_{v}kz_"
    if address is not None: return self.op(LETTER_CLASS[v], key + "m", mask, *address)
    return self.op(LETTER_CLASS[v], key + v, mask, self.value(u))

  def from_mask(self, u: UOp, target: DType) -> Reg:
    """Convert a mask to 0 and 1 of some type: ones, zeroed where the mask is 0."""
    v = letter(target.itemsize)
    return self.op(LETTER_CLASS[v], f"{MOVES[target.scalar().itemsize]}_{v}kz_{v}", self.mask(u.src[0]),
                   self.constant(target, 1))

  def to_mask(self, u: UOp, source: DType, value: Reg) -> Reg:
    """Convert to bool: true unless zero; NaN is true."""
    v = letter(source.itemsize)
    if source.scalar() in FLOATS:
      return self.op(regs.K, f"vcmp{packed(source)}_k_{v}_{v}_i8", value, self.constant(source, 0), 4)
    return self.op(regs.K, f"vptestm{ELEMENT[source.scalar().itemsize]}_k_{v}_{v}", value, value)

  def load_bools(self, u: UOp, value: Reg) -> Reg:
    """Convert bytes of 0 and 1 to a mask."""
    v = letter(u.dtype.count)
    return self.op(regs.K, f"vptestmb_k_{v}_{v}", value, value)

  def value_bytes(self, u: UOp) -> Reg:
    """A vector in the form that memory has: masks become bytes of 0 and 1."""
    if u.dtype.scalar() is not dtypes.bool: return self.value(u)
    v = letter(u.dtype.count)
    return self.op(LETTER_CLASS[v], f"vmovdqu8_{v}kz_{v}", self.mask(u),
                   self.constant(dtypes.uint8.vec(u.dtype.count), 1))

  # ***** memory *****

  def load_masked(self, u: UOp) -> Reg:
    index, gate, alt = u.src
    bools = u.dtype.scalar() is dtypes.bool
    dtype = dtypes.uint8.vec(u.dtype.count) if bools else u.dtype
    v, mask, name = letter(dtype.itemsize), self.gate_mask(gate, dtype), MOVES[dtype.scalar().itemsize]
    if alt.op is Ops.CONST and alt.arg == 0:
      value = self.op(LETTER_CLASS[v], f"{name}_{v}kz_m", mask, *self.address(index))
    else: value = self.tied(LETTER_CLASS[v], f"{name}_{v}k_m", self.value_bytes(alt), mask, *self.address(index))
    return self.load_bools(u, value) if bools else value

  def store_masked(self, u: UOp) -> None:
    index, value, gate = u.src[:3]
    dtype = dtypes.uint8.vec(value.dtype.count) if value.dtype.scalar() is dtypes.bool else value.dtype
    stored = self.value_bytes(value)
    self.emit(f"{MOVES[dtype.scalar().itemsize]}_mk_{letter(dtype.itemsize)}", *self.address(index),
              self.gate_mask(gate, dtype), stored)

  def gather(self, u: UOp) -> Reg:
    """One load per lane, at the indices of a vector. Lanes whose gate is false read nothing. The mask is
    overwritten."""
    index, dtype = u.src[0], u.dtype
    buffer, lanes = index.src
    size = dtype.scalar().itemsize
    base, _, _, displacement = self.in_reach(self.values[buffer], None, 1, self.local_offset.get(buffer, 0))
    v = letter(dtype.itemsize)
    every = self.constant(dtypes.bool.vec(2), True) if len(u.src) == 1 else None
    mask = self.gate_mask(u.src[1], dtype) if every is None else self.clipped(every, dtype)
    at = self.value(lanes)
    old = self.distinct(self.value(u.src[2]) if len(u.src) > 2 else self.constant(dtype, 0), at)
    result, used = self.new(LETTER_CLASS[v]), self.new(regs.K)
    kind = "q" if lanes.dtype.scalar().itemsize == 8 else "d"
    key = f"vgather{kind}p{'s' if size == 4 else 'd'}_{v}k_m{letter(lanes.dtype.itemsize)}"
    self.emit(key, result, used, base, at, size, displacement, ties=(old, mask))
    return result

  # ***** operations with other instructions on each level *****

  def scalar_mask(self, suffix: str, a: Reg, b: Reg, predicate: int) -> Reg:
    return self.op(regs.K, f"vcmp{suffix}_k_x_x_i8", a, b, predicate)

  def flag_of_mask(self, mask: Reg) -> Reg: return self.op(regs.R32, "kmovw_r32_k", mask)

  def broadcast_general(self, size: int, v: str, value: Reg) -> Reg:
    return self.op(LETTER_CLASS[v], f"vpbroadcast{ELEMENT[size]}_{v}_r{64 if size == 8 else 32}", value)

  def truncate_lanes(self, a: DType, b: DType, count: int, value: Reg) -> Reg:
    source, v = letter(a.itemsize * count), letter(b.itemsize * count)
    return self.op(LETTER_CLASS[v], f"vpmov{ELEMENT[a.itemsize]}{ELEMENT[b.itemsize]}_{v}_{source}", value)
