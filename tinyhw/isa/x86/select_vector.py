"""Vector arithmetic for x86-64, AVX2: packed floats and integers, masks, lanes, gathers, masked memory. A table from operation to method.

A mask has lanes of all ones or zeros, as wide as the lanes that were compared; a user with other lanes gets it converted (`mask`). Constants are
read from behind the code. Rows are named by mnemonic and register letters, so `{v}` is the letter of the narrowest register that holds a vector.
"""
from __future__ import annotations
import dataclasses
import functools
import struct
from typing import TYPE_CHECKING, Any, Callable

from tinyhw.dtype import DType, dtypes, encode_float, FLOAT_FORMATS
from tinyhw.errors import CompileError
from tinyhw.isa.x86 import regs
from tinyhw.isa.x86.select_scalar import FLOATS, FLOAT_BINARY, PREDICATES
from tinyhw.isa.x86.table import TABLE
from tinyhw.machine.inst import Effect, Inst, MInst, Reg
from tinyhw.uop.enums import GroupOp, Ops
from tinyhw.uop.ops import UOp
if TYPE_CHECKING:
  from tinyhw.isa.x86.select import Address, Selector

LETTER_CLASS = {"x": regs.XMM, "y": regs.YMM, "z": regs.ZMM}
ELEMENT = {1: "b", 2: "w", 4: "d", 8: "q"}
PACKED_INTEGER = {Ops.ADD: "vpadd", Ops.SUB: "vpsub"}
MULTIPLY = {2: "vpmullw", 4: "vpmulld"}
LOGIC = {Ops.AND: "vpand", Ops.OR: "vpor", Ops.XOR: "vpxor"}
NO_PLACE = (regs.RIP, None, 1)

def letter(size: int) -> str:
  """The narrowest vector register for so many bytes."""
  return "x" if size <= 16 else "y" if size <= 32 else "z"

def packed(dtype: DType) -> str: return "ps" if dtype.scalar() is dtypes.float32 else "pd"

def mask_lane_bytes(dtype: DType) -> int:
  """The width of a mask's lanes where no operand says it: that of most data, if it fits."""
  return min(4, 32 // dtype.count)

def bits_of(dtype: DType, value: Any) -> bytes:
  """A value of a scalar type, as in memory."""
  if dtype is dtypes.float32: return struct.pack("<f", value)
  if dtype is dtypes.float64: return struct.pack("<d", value)
  return code_of(dtype, value).to_bytes(dtype.itemsize, "little", signed=code_of(dtype, value) < 0)

def code_of(dtype: DType, value: Any) -> int:
  """A value that is held in a general register, as an integer."""
  return encode_float(value, dtype) if dtype in FLOAT_FORMATS else int(value)

@functools.lru_cache(None)
def constant_row(key: str) -> Inst:
  """A row that reads a constant: cheaper to repeat than to spill."""
  return dataclasses.replace(TABLE[key], effects=Effect.NONE, rematerialize=True)

class Vectors:
  """The part of Selector that computes vectors."""

  def vector(self: Selector, u: UOp) -> Reg:
    operand = u.src[0].dtype if u.op in GroupOp.Comparison else u.dtype
    rule = LANE_RULES.get(u.op)
    if rule is None:
      table = MASK_RULES if operand.scalar() is dtypes.bool else FLOAT_RULES if operand.scalar() in FLOATS else INTEGER_RULES
      rule = table.get(u.op)
    if rule is None: raise CompileError(f"{self.program.name}: x86-64 has no {u.op.name} of {operand}; decompose it before selection")
    return rule(self, u)

  def code_of(self: Selector, dtype: DType, value: Any) -> int: return code_of(dtype, value)

  def vop(self: Selector, size: int, key: str, *sources: Any) -> Reg:
    """A row whose `{v}` is the register letter for `size` bytes."""
    v = letter(size)
    return self.op(LETTER_CLASS[v], key.replace("{v}", v), *sources)

  def read_constant(self: Selector, key: str, cls: regs.RegClass, data: bytes) -> Reg:
    dst = self.new(cls)
    self.block.insts.append(MInst(constant_row(key), [dst, *NO_PLACE, data], self.origin))
    return dst

  def vector_constant(self: Selector, dtype: DType, value: Any) -> Reg:
    """The same value in all lanes; a scalar float too. A bool gives a mask of bytes, which serves for lanes of any width."""
    if dtype.scalar() is dtypes.bool: return self.read_constant("vpbroadcastb_y_m", regs.YMM, b"\xff" if value else b"\0")
    data, v = bits_of(dtype.scalar(), value), letter(dtype.itemsize)
    if dtype.count == 1: key = "vmovss_x_m" if dtype is dtypes.float32 else "vmovsd_x_m"
    elif dtype.scalar() is dtypes.float32: key = f"vbroadcastss_{v}_m"
    elif dtype.scalar() is dtypes.float64: key = "vmovddup_x_m" if v == "x" else f"vbroadcastsd_{v}_m"
    else: key = f"vpbroadcast{ELEMENT[len(data)]}_{v}_m"
    return self.read_constant(key, LETTER_CLASS[v], data)

  def vector_of_constants(self: Selector, data: bytes) -> Reg:
    v = letter(len(data))
    return self.read_constant(f"vmovups_{v}_m", LETTER_CLASS[v], data.ljust({"x": 16, "y": 32, "z": 64}[v], b"\0"))

  # ***** arithmetic *****

  def _second(self: Selector, u: UOp, key: str, *first: Any) -> Reg:
    """A row whose last source, u, is memory where it is a load that may be swallowed."""
    v = letter(u.dtype.itemsize)
    address = self.memory(u) if u.dtype.itemsize in (16, 32, 64) else None
    if address is None: return self.op(LETTER_CLASS[v], f"{key}_{v}_{v}_{v}", *first, self.value(u))
    return self.op(LETTER_CLASS[v], f"{key}_{v}_{v}_m", *first, *address)

  def packed_float(self: Selector, u: UOp) -> Reg:
    a, b = u.src
    if u.op in GroupOp.Commutative and a in self.swallowed and b not in self.swallowed: a, b = b, a
    return self._second(b, FLOAT_BINARY[u.op] + packed(u.dtype), self.value(a))

  def packed_fma(self: Selector, u: UOp) -> Reg:
    a, b, c = u.src
    v, p = letter(u.dtype.itemsize), packed(u.dtype)
    if a in self.swallowed and b not in self.swallowed: a, b = b, a
    address = self.memory(b) if u.dtype.itemsize in (16, 32, 64) else None
    if address is None: return self.tied(LETTER_CLASS[v], f"vfmadd231{p}_{v}_{v}_{v}", self.value(c), self.value(a), self.value(b))
    return self.tied(LETTER_CLASS[v], f"vfmadd231{p}_{v}_{v}_m", self.value(c), self.value(a), *address)

  def packed_maximum(self: Selector, u: UOp) -> Reg:
    """See Scalars.float_maximum."""
    return self._second(u.src[0], f"vmax{packed(u.dtype)}", self.value(u.src[1]))

  def packed_unary(self: Selector, u: UOp) -> Reg:
    p, size, a = packed(u.dtype), u.dtype.itemsize, self.value(u.src[0])
    if u.op is Ops.SQRT: return self.vop(size, f"vsqrt{p}_{{v}}_{{v}}", a)
    if u.op is Ops.TRUNC: return self.vop(size, f"vround{p}_{{v}}_{{v}}_i8", a, 11)
    if u.op is Ops.RECIPROCAL: return self.vop(size, f"vdiv{p}_{{v}}_{{v}}_{{v}}", self.constant(u.dtype, 1.0), a)
    return self.vop(size, f"vxor{p}_{{v}}_{{v}}_{{v}}", a, self.constant(u.dtype, -0.0))

  def packed_integer(self: Selector, u: UOp) -> Reg:
    size = u.dtype.scalar().itemsize
    if u.op is Ops.NEG: return self.vop(u.dtype.itemsize, f"vpsub{ELEMENT[size]}_{{v}}_{{v}}_{{v}}", self.constant(u.dtype, 0), self.value(u.src[0]))
    key = MULTIPLY[size] if u.op is Ops.MUL else PACKED_INTEGER[u.op] + ELEMENT[size]
    return self._second(u.src[1], key, self.value(u.src[0]))

  def packed_logic(self: Selector, u: UOp) -> Reg: return self._second(u.src[1], LOGIC[u.op], self.value(u.src[0]))

  def packed_shift(self: Selector, u: UOp) -> Reg:
    scalar, size = u.dtype.scalar(), u.dtype.itemsize
    e = ELEMENT[scalar.itemsize]
    name = "vpsll" if u.op is Ops.SHL else "vpsrl" if dtypes.is_unsigned(scalar) else "vpsra"
    if u.src[1].op is Ops.CONST:
      return self.vop(size, f"{name}{e}_{{v}}_{{v}}_i8", self.value(u.src[0]), min(int(u.src[1].arg), 255))
    return self.vop(size, f"{name}v{e}_{{v}}_{{v}}_{{v}}", self.value(u.src[0]), self.value(u.src[1]))

  def packed_integer_maximum(self: Selector, u: UOp) -> Reg:
    scalar = u.dtype.scalar()
    return self._second(u.src[1], f"vpmax{'u' if dtypes.is_unsigned(scalar) else 's'}{ELEMENT[scalar.itemsize]}", self.value(u.src[0]))

  # ***** masks *****

  def mask(self: Selector, u: UOp, size: int) -> Reg:
    """The vector of bool u with lanes of `size` bytes."""
    if u.op is Ops.CONST: return self.constant(dtypes.bool.vec(2), u.arg)
    value = self.value(u)
    have = self.mask_bytes[u]
    return value if have == size else self.convert_mask(value, u.dtype.count, have, size)

  def convert_mask(self: Selector, value: Reg, count: int, have: int, want: int) -> Reg:
    if have < want: return self.vop(count * want, f"vpmovsx{ELEMENT[have]}{ELEMENT[want]}_{{v}}_x", value)
    while have > want:
      value = self.halve_mask(value, count, have)
      have //= 2
    return value

  def halve_mask(self: Selector, value: Reg, count: int, have: int) -> Reg:
    """Lanes of half the width. What packs two registers into one is given the two halves of a wide one."""
    if count * have <= 16: low = high = value
    else: low, high = value, self.op(regs.XMM, "vextracti128_x_y_i8", value, 1)
    if have == 8: return self.op(regs.XMM, "vshufps_x_x_x_i8", low, high, 0x88)
    return self.op(regs.XMM, "vpackssdw_x_x_x" if have == 4 else "vpacksswb_x_x_x", low, high)

  def mask_result(self: Selector, u: UOp, value: Reg, size: int) -> Reg:
    self.mask_bytes[u] = size
    return value

  def float_mask(self: Selector, u: UOp) -> Reg:
    dtype = u.src[0].dtype
    value = self.vop(dtype.itemsize, f"vcmp{packed(dtype)}_{{v}}_{{v}}_{{v}}_i8", self.value(u.src[0]), self.value(u.src[1]), PREDICATES[u.op])
    return self.mask_result(u, value, dtype.scalar().itemsize)

  def integer_mask(self: Selector, u: UOp) -> Reg:
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

  def invert(self: Selector, mask: Reg, size: int) -> Reg:
    return self.vop(size, "vpxor_{v}_{v}_{v}", mask, self.constant(dtypes.bool.vec(2), True))

  def mask_logic(self: Selector, u: UOp) -> Reg:
    size = self._lane_bytes(*u.src)
    a, b = (self.mask(s, size) for s in u.src)
    total = u.dtype.count * size
    if u.op is Ops.CMPLT: value = self.vop(total, "vpandn_{v}_{v}_{v}", a, b)
    else: value = self.vop(total, f"{LOGIC[MASK_LOGIC[u.op]]}_{{v}}_{{v}}_{{v}}", a, b)
    if u.op is Ops.CMPEQ: value = self.invert(value, total)
    return self.mask_result(u, value, size)

  def mask_not(self: Selector, u: UOp) -> Reg:
    value = self.value(u.src[0])
    size = self.mask_bytes[u.src[0]]
    return self.mask_result(u, self.invert(value, u.dtype.count * size), size)

  def mask_where(self: Selector, u: UOp) -> Reg:
    condition, yes, no = u.src
    size = self._lane_bytes(*u.src)
    if condition.dtype.count == 1: gate = self.mask_of_flag(self.value(condition), LETTER_CLASS[letter(u.dtype.count * size)])
    else: gate = self.mask(condition, size)
    value = self.vop(u.dtype.count * size, "vpblendvb_{v}_{v}_{v}_{v}", self.mask(no, size), self.mask(yes, size), gate)
    return self.mask_result(u, value, size)

  def _lane_bytes(self: Selector, *sources: UOp) -> int:
    """What lanes of masks are brought to that are used together: the widest that one of them has."""
    masks = [s for s in sources if s.op is not Ops.CONST and s.dtype.count > 1]
    for s in masks: self.value(s)
    return max((self.mask_bytes[s] for s in masks), default=mask_lane_bytes(sources[-1].dtype))

  def start_of_mask(self: Selector, u: UOp, start: UOp) -> Reg:
    """What variable u, a mask, starts with, in lanes of the width that it keeps."""
    size = mask_lane_bytes(u.dtype)
    v = letter(u.dtype.count * size)
    self.mask_bytes[u] = size
    if start.op is Ops.CONST: return self.read_constant(f"vpbroadcastb_{v}_m", LETTER_CLASS[v], b"\xff" if start.arg else b"\0")
    return self.mask(start, size)

  def mask_of_flag(self: Selector, flag: Reg, cls: regs.RegClass) -> Reg:
    """All lanes of a register from a 0 or 1 in a general register."""
    negative = self.op(regs.XMM, "vmovd_x_r32", self.tied(regs.R32, "neg_r32", flag))
    v = cls.name[0]
    return self.op(cls, f"vpbroadcastd_{v}_x", negative)

  def blend(self: Selector, dtype: DType, mask: Reg, yes: Reg, no: Reg) -> Reg:
    size = dtype.scalar().itemsize
    key = {4: "vblendvps", 8: "vblendvpd"}.get(size, "vpblendvb")
    return self.vop(dtype.itemsize, f"{key}_{{v}}_{{v}}_{{v}}_{{v}}", no, yes, mask)

  def vector_where(self: Selector, u: UOp) -> Reg:
    condition, yes, no = u.src
    if condition.dtype.count == 1: return self.choose(u.dtype, condition, self.value(yes), self.value(no))
    return self.blend(u.dtype, self.mask(condition, u.dtype.scalar().itemsize), self.value(yes), self.value(no))

  # ***** lanes *****

  def broadcast(self: Selector, u: UOp) -> Reg:
    source, scalar = u.src[0], u.dtype.scalar()
    v = letter(u.dtype.itemsize)
    cls = LETTER_CLASS[v]
    if scalar is dtypes.bool:
      size = mask_lane_bytes(u.dtype)
      return self.mask_result(u, self.mask_of_flag(self.value(source), LETTER_CLASS[letter(u.dtype.count * size)]), size)
    if scalar is dtypes.float32: name = "vbroadcastss"
    elif scalar is dtypes.float64: name = "vmovddup" if v == "x" else "vbroadcastsd"
    else: name = f"vpbroadcast{ELEMENT[scalar.itemsize]}"
    address = self.memory(source)
    if address is not None: return self.op(cls, f"{name}_{v}_m", *address)
    value = self.value(source)
    if scalar not in FLOATS: value = self.op(regs.XMM, "vmovq_x_r64" if scalar.itemsize == 8 else "vmovd_x_r32", value)
    return self.op(cls, f"{name}_{v}_x", value)

  def vectorize(self: Selector, u: UOp) -> Reg:
    scalar = u.dtype.scalar()
    if scalar is dtypes.bool: return self.vectorize_bools(u)
    if all(s.op is Ops.CONST for s in u.src): return self.vector_of_constants(b"".join(bits_of(scalar, s.arg) for s in u.src))
    if is_shuffle(u): return self.shuffle(u)
    each = 16 // scalar.itemsize
    parts = [self.pack(scalar, u.src[i:i + each]) for i in range(0, len(u.src), each)]
    if len(parts) == 1: return parts[0]
    assert len(parts) == 2, f"{u.dtype} does not fit into a register"
    return self.op(regs.YMM, "vinsertf128_y_y_x_i8", parts[0], parts[1], 1)

  def pack(self: Selector, scalar: DType, sources: tuple[UOp, ...]) -> Reg:
    """Up to 16 bytes from scalars."""
    values = [self.value(s) for s in sources]
    if scalar is dtypes.float64: return self.op(regs.XMM, "vunpcklpd_x_x_x", values[0], values[1]) if len(values) > 1 else values[0]
    if scalar is dtypes.float32:
      part = values[0]
      for k, v in enumerate(values[1:], 1): part = self.op(regs.XMM, "vinsertps_x_x_x_i8", part, v, k << 4)
      return part
    e = ELEMENT[scalar.itemsize]
    wide = "r64" if e == "q" else "r32"
    part = self.op(regs.XMM, "vmovq_x_r64" if e == "q" else "vmovd_x_r32", values[0])
    for k, v in enumerate(values[1:], 1): part = self.op(regs.XMM, f"vpinsr{e}_x_x_{wide}_i8", part, v, k)
    return part

  def vectorize_bools(self: Selector, u: UOp) -> Reg:
    size = 4 if u.dtype.count <= 8 else 1
    if all(s.op is Ops.CONST for s in u.src):
      return self.mask_result(u, self.vector_of_constants(b"".join(b"\xff" * size if s.arg else bytes(size) for s in u.src)), size)
    each = 16 // size
    scalar = dtypes.int32 if size == 4 else dtypes.int8
    parts = [self.pack(scalar, u.src[i:i + each]) for i in range(0, len(u.src), each)]
    value = parts[0] if len(parts) == 1 else self.op(regs.YMM, "vinserti128_y_y_x_i8", parts[0], parts[1], 1)
    total = u.dtype.count * size
    value = self.vop(total, f"vpcmpgt{ELEMENT[size]}_{{v}}_{{v}}_{{v}}", value, self.constant(scalar.vec(total // size), 0))
    return self.mask_result(u, value, size)

  def shuffle(self: Selector, u: UOp) -> Reg:
    """Adjacent lanes of one vector, as the halves that reductions take."""
    value = self.value(u.src[0].src[0])
    start = u.src[0].arg * u.dtype.scalar().itemsize
    if start == 0: return value
    if start == 16: return self.op(regs.XMM, "vextractf128_x_y_i8", value, 1)
    return self.op(regs.XMM, "vpsrldq_x_x_i8", value, start)

  def lane(self: Selector, u: UOp) -> Reg:
    source, k = u.src[0], u.arg[0] if isinstance(u.arg, tuple) else u.arg
    scalar = u.dtype
    if scalar is dtypes.bool: return self.mask_lane(source, k)
    value, size = self.value(source), scalar.itemsize
    if k * size >= 16:
      value = self.op(regs.XMM, "vextractf128_x_y_i8", value, 1)
      k -= 16 // size
    if scalar is dtypes.float32: return self.op(regs.XMM, "vpermilps_x_x_i8", value, k) if k else value
    if scalar is dtypes.float64: return self.op(regs.XMM, "vpermilpd_x_x_i8", value, k) if k else value
    e = ELEMENT[size]
    if e == "q": return self.op(regs.R64, "vpextrq_r64_x_i8", value, k)
    return self.normal(scalar, self.op(regs.R32, f"vpextr{e}_r32_x_i8", value, k))

  def mask_lane(self: Selector, source: UOp, k: int) -> Reg:
    bytes_ = self.mask(source, 1)
    bits = self.op(regs.R32, f"vpmovmskb_r32_{letter(source.dtype.count)}", bytes_)
    if k: bits = self.tied(regs.R32, "shr_r32_i8", bits, k)
    return self.tied(regs.R32, "and_r32_i32", bits, 1)

  # ***** memory *****

  def load_vector(self: Selector, dtype: DType, address: Address) -> Reg:
    size = dtype.itemsize if dtype.scalar() is not dtypes.bool else dtype.count
    if size in (16, 32, 64): return self.vop(size, "vmovups_{v}_m", *address)
    if size == 8: return self.op(regs.XMM, "vmovq_x_m", *address)
    if size == 4: return self.op(regs.XMM, "vmovd_x_m", *address)
    if size == 2: return self.op(regs.XMM, "vmovd_x_r32", self.op(regs.R32, "movzx_r32_m16", *address))
    raise CompileError(f"{self.program.name}: a vector of {size} bytes cannot be loaded")

  def load_bools(self: Selector, u: UOp, value: Reg) -> Reg:
    """Bytes of 0 and 1 to a mask of bytes."""
    zero = self.constant(dtypes.int8.vec(max(u.dtype.count, 16)), 0)
    return self.mask_result(u, self.vop(u.dtype.count, "vpcmpgtb_{v}_{v}_{v}", value, zero), 1)

  def store_vector(self: Selector, dtype: DType, address: Address, value: Reg) -> None:
    size = dtype.count if dtype.scalar() is dtypes.bool else dtype.itemsize
    if size in (16, 32, 64): self.emit(f"vmovups_m_{letter(size)}", *address, value)
    elif size == 8: self.emit("vmovq_m_x", *address, value)
    elif size == 4: self.emit("vmovd_m_x", *address, value)
    elif size == 2: self.emit("vpextrw_m_x_i8", *address, value, 0)
    else: raise CompileError(f"{self.program.name}: a vector of {size} bytes cannot be stored")

  def value_bytes(self: Selector, u: UOp) -> Reg:
    """A vector as memory holds it: masks become bytes of 0 and 1."""
    if u.dtype.scalar() is not dtypes.bool: return self.value(u)
    return self.vop(u.dtype.count, "vpand_{v}_{v}_{v}", self.mask(u, 1), self.constant(dtypes.int8.vec(max(u.dtype.count, 16)), 1))

  def gate_mask(self: Selector, gate: UOp, dtype: DType) -> Reg:
    if gate.dtype.count > 1: return self.mask(gate, dtype.scalar().itemsize)
    return self.mask_of_flag(self.value(gate), LETTER_CLASS[letter(dtype.itemsize)])

  def load_masked(self: Selector, u: UOp) -> Reg:
    index, gate, alt = u.src
    dtype, size = u.dtype, u.dtype.scalar().itemsize
    if gate.dtype.count == 1: return self.load_behind_flag(u)
    if size < 4 or dtype.itemsize < 16: raise CompileError(f"{self.program.name}: x86-64 has no masked load of {dtype}; gate its lanes one by one")
    mask = self.gate_mask(gate, dtype)
    value = self.vop(dtype.itemsize, f"vmaskmov{'ps' if size == 4 else 'pd'}_{{v}}_{{v}}_m", mask, *self.address(index))
    if alt.op is Ops.CONST and alt.arg == 0: return value
    return self.blend(dtype, mask, value, self.value(alt))

  def load_behind_flag(self: Selector, u: UOp) -> Reg:
    """A vector under one condition, of elements of any size: all of it or nothing."""
    index, gate, alt = u.src
    bools = u.dtype.scalar() is dtypes.bool
    dtype = dtypes.uint8.vec(u.dtype.count) if bools else u.dtype
    size, flag = dtype.itemsize, self.value(gate)
    cls = LETTER_CLASS[letter(size)]
    if size >= 16:
      mask = self.mask_of_flag(flag, cls)
      value = self.vop(size, "vmaskmovps_{v}_{v}_m", mask, *self.address(index))
    else:
      value = self.load_vector(dtype, self.address_behind(flag, index))
      mask = self.mask_of_flag(flag, cls)
    if not (size >= 16 and alt.op is Ops.CONST and alt.arg == 0): value = self.blend(dtype, mask, value, self.value_bytes(alt))
    return self.load_bools(u, value) if bools else value

  def store_masked(self: Selector, u: UOp) -> None:
    index, value, gate = u.src[:3]
    dtype, size = value.dtype, value.dtype.scalar().itemsize
    if size < 4 or dtype.itemsize < 16: raise CompileError(f"{self.program.name}: x86-64 has no masked store of {dtype}; gate its lanes one by one")
    v = letter(dtype.itemsize)
    self.emit(f"vmaskmov{'ps' if size == 4 else 'pd'}_m_{v}_{v}", *self.address(index), self.gate_mask(gate, dtype), self.value(value))

  def gather(self: Selector, u: UOp) -> Reg:
    """One load per lane, at the indices of a vector; lanes whose gate is false read nothing."""
    index, dtype = u.src[0], u.dtype
    buffer, lanes = index.src
    size = dtype.scalar().itemsize
    base, _, _, displacement = self._in_reach(self.values[buffer], None, 1, self.local_offset.get(buffer, 0))
    v = letter(dtype.itemsize)
    cls = LETTER_CLASS[v]
    wide = lanes.dtype.scalar().itemsize == 8
    mask = self.gate_mask(u.src[1], dtype) if len(u.src) > 1 else self.constant(dtypes.bool.vec(2), True)
    old = self.value(u.src[2]) if len(u.src) > 2 else self.constant(dtype, 0)
    result, used = self.new(cls), self.new(cls)
    m = "m" + (letter(lanes.dtype.itemsize))
    key = f"vgather{'q' if wide else 'd'}p{'s' if size == 4 else 'd'}_{v}_{m}_{v}"
    self.emit(key, result, base, self.value(lanes), size, displacement, used, ties=(old, mask))
    return result

def is_shuffle(u: UOp) -> bool:
  """Is a VECTORIZE a run of adjacent lanes of one vector, which one instruction can move to the front?"""
  first = u.src[0]
  if first.op is not Ops.GEP: return False
  if not all(s.op is Ops.GEP and s.src[0] is first.src[0] and s.arg == first.arg + k for k, s in enumerate(u.src)): return False
  size = u.dtype.scalar().itemsize
  start, length = first.arg * size, len(u.src) * size
  return u.dtype.scalar() is not dtypes.bool and length <= 16 and (start in (0, 16) or start + length <= 16)

MASK_LOGIC = {Ops.AND: Ops.AND, Ops.MUL: Ops.AND, Ops.OR: Ops.OR, Ops.ADD: Ops.OR, Ops.MAX: Ops.OR, Ops.XOR: Ops.XOR, Ops.CMPNE: Ops.XOR,
              Ops.CMPEQ: Ops.XOR}
Rule = Callable[[Any, UOp], Reg]
LANE_RULES: dict[Ops, Rule] = {Ops.BROADCAST: Vectors.broadcast, Ops.VECTORIZE: Vectors.vectorize, Ops.GEP: Vectors.lane}
FLOAT_RULES: dict[Ops, Rule] = {
  **dict.fromkeys(FLOAT_BINARY, Vectors.packed_float), Ops.MULACC: Vectors.packed_fma, Ops.MAX: Vectors.packed_maximum,
  Ops.WHERE: Vectors.vector_where,
  **dict.fromkeys((Ops.SQRT, Ops.TRUNC, Ops.RECIPROCAL, Ops.NEG), Vectors.packed_unary),
  **dict.fromkeys(GroupOp.Comparison, Vectors.float_mask),
}
INTEGER_RULES: dict[Ops, Rule] = {
  **dict.fromkeys((Ops.ADD, Ops.SUB, Ops.MUL, Ops.NEG), Vectors.packed_integer), **dict.fromkeys(LOGIC, Vectors.packed_logic),
  Ops.SHL: Vectors.packed_shift, Ops.SHR: Vectors.packed_shift, Ops.MAX: Vectors.packed_integer_maximum, Ops.WHERE: Vectors.vector_where,
  **dict.fromkeys(GroupOp.Comparison, Vectors.integer_mask),
}
MASK_RULES: dict[Ops, Rule] = {
  **dict.fromkeys((*MASK_LOGIC, Ops.CMPLT), Vectors.mask_logic), Ops.NEG: Vectors.mask_not, Ops.WHERE: Vectors.mask_where,
}
