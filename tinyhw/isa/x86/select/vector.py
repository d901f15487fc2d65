"""Select vector arithmetic for x86-64: packed floats and integers, lanes, memory. Tables map operations to methods.

Operations that depend on the form of masks are in the feature level (select/level.py). Constants are read from memory
after the code. Row names consist of the mnemonic and register letters; `{v}` is the letter of the smallest register
that holds a vector.
"""
from __future__ import annotations
import struct
from typing import Any

from tinyhw.data_class import replace
from tinyhw.dtype import DType, dtypes
from tinyhw.errors import CompileError
from tinyhw.isa.x86.select.level import Level, SelectionRule, rule_of
from tinyhw.isa.x86.select.part import Address
from tinyhw.isa.x86.select.scalar import FLOATS, FLOAT_BINARY, code_of
from tinyhw.isa.x86.table import regs
from tinyhw.isa.x86.table.table import TABLE
from tinyhw.machine.ir.inst import Effect, Inst, MInst, Reg, RegClass
from tinyhw.threads import once
from tinyhw.uop.enums import GroupOp, Ops
from tinyhw.uop.ops import UOp

LETTER_CLASS = {"x": regs.XMM, "y": regs.YMM, "z": regs.ZMM}
ELEMENT = {1: "b", 2: "w", 4: "d", 8: "q"}
PACKED_INTEGER = {Ops.ADD: "vpadd", Ops.SUB: "vpsub"}
MULTIPLY = {2: "vpmullw", 4: "vpmulld", 8: "vpmullq"}
LOGIC = {Ops.AND: "vpand", Ops.OR: "vpor", Ops.XOR: "vpxor"}
# bytes -> store of a register's first lane, of another one
LANE_STORES = {4: ("vmovss_m_x", "vextractps_m_x_i8"), 8: ("vmovsd_m_x", "vmovhps_m_x")}
NO_PLACE = (regs.RIP, None, 1)

def letter(size: int) -> str:
  """The letter of the smallest vector register for `size` bytes."""
  if size <= 16: return "x"
  return "y" if size <= 32 else "z"

def packed(dtype: DType) -> str: return "ps" if dtype.scalar() is dtypes.float32 else "pd"

def bits_of(dtype: DType, value: Any) -> bytes:
  """The bytes of a scalar value in memory."""
  if dtype is dtypes.float32: return struct.pack("<f", value)
  if dtype is dtypes.float64: return struct.pack("<d", value)
  return code_of(dtype, value).to_bytes(dtype.itemsize, "little", signed=code_of(dtype, value) < 0)

@once
def constant_row(key: str) -> Inst:
  """A row that reads a constant: cheaper to repeat than to spill."""
  return replace(TABLE[key], effects=Effect.NONE, rematerialize=True)

def is_short_product(u: UOp) -> bool:
  """Whether both factors are int16, and one of them is not negative.

  vpmaddwd adds the products of two pairs of 16 bits. The upper halves of the non-negative factor are 0, so it computes
  the product. vpmulld takes twice as long.
  """
  return all(-0x8000 <= s.vmin and s.vmax < 0x8000 for s in u.src) and any(s.vmin >= 0 for s in u.src)

class Vectors(Level):
  """The vector arithmetic of Selector."""

  def vector(self, u: UOp) -> Reg:
    operand = u.src[0].dtype if u.op in GroupOp.Comparison else u.dtype
    rule = LANE_RULES.get(u.op)
    if rule is None:
      numbers = FLOAT_RULES if operand.scalar() in FLOATS else INTEGER_RULES
      rule = (MASK_RULES if operand.scalar() is dtypes.bool else numbers).get(u.op)
    if rule is None:
      raise CompileError(f"{self.program.name}: x86-64 has no {u.op.name} of {operand}; decompose it before selection")
    return rule(self, u)

  def vop(self, size: int, key: str, *sources: Any) -> Reg:
    """Emit a row whose `{v}` is the register letter for `size` bytes."""
    v = letter(size)
    return self.op(LETTER_CLASS[v], key.replace("{v}", v), *sources)

  def read_constant(self, key: str, cls: RegClass, data: bytes) -> Reg:
    dst = self.new(cls)
    self.block.insts.append(MInst(constant_row(key), [dst, *NO_PLACE, data], self.origin))
    return dst

  def vector_constant(self, dtype: DType, value: Any) -> Reg:
    """The same value in all lanes, or a scalar float. A bool gives a mask that serves for lanes of any size."""
    if dtype.scalar() is dtypes.bool: return self.mask_constant(value)
    data, v = bits_of(dtype.scalar(), value), letter(dtype.itemsize)
    if dtype.count == 1: key = "vmovss_x_m" if dtype is dtypes.float32 else "vmovsd_x_m"
    elif dtype.scalar() is dtypes.float32: key = f"vbroadcastss_{v}_m"
    elif dtype.scalar() is dtypes.float64: key = "vmovddup_x_m" if v == "x" else f"vbroadcastsd_{v}_m"
    else: key = f"vpbroadcast{ELEMENT[len(data)]}_{v}_m"
    return self.read_constant(key, LETTER_CLASS[v], data)

  def vector_of_constants(self, data: bytes) -> Reg:
    v = letter(len(data))
    return self.read_constant(f"vmovups_{v}_m", LETTER_CLASS[v], data.ljust({"x": 16, "y": 32, "z": 64}[v], b"\0"))

  # ***** arithmetic *****

  def second(self, u: UOp, key: str, *first: Any) -> Reg:
    """Emit a row whose last source, u, is a memory operand if it is a load that may be included."""
    v = letter(u.dtype.itemsize)
    kind, place = self.last_operand(u)
    return self.op(LETTER_CLASS[v], f"{key}_{v}_{v}_{kind or v}", *first, *place)

  def packed_float(self, u: UOp) -> Reg:
    a, b = u.src
    if u.op in GroupOp.Commutative and self.in_memory(a) and not self.in_memory(b): a, b = b, a
    return self.second(b, FLOAT_BINARY[u.op] + packed(u.dtype), self.value(a))

  def packed_pairs(self, u: UOp) -> Reg:
    """Select a DOT2: products of pairs of bfloat16, added to a sum of float32."""
    a, b, total = u.src
    if self.in_memory(a) and not self.in_memory(b): a, b = b, a
    v = letter(u.dtype.itemsize)
    kind, place = self.last_operand(b)
    return self.tied(LETTER_CLASS[v], f"vdpbf16ps_{v}_{v}_{kind or v}", self.value(total), self.value(a), *place)

  def packed_unary(self, u: UOp) -> Reg:
    p, size, a = packed(u.dtype), u.dtype.itemsize, self.value(u.src[0])
    if u.op is Ops.SQRT: return self.vop(size, f"vsqrt{p}_{{v}}_{{v}}", a)
    if u.op is Ops.TRUNC: return self.vop(size, f"vround{p}_{{v}}_{{v}}_i8", a, 11)
    if u.op is Ops.RECIPROCAL: return self.vop(size, f"vdiv{p}_{{v}}_{{v}}_{{v}}", self.constant(u.dtype, 1.0), a)
    return self.vop(size, f"vxor{p}_{{v}}_{{v}}_{{v}}", a, self.constant(u.dtype, -0.0))

  def packed_integer(self, u: UOp) -> Reg:
    size = u.dtype.scalar().itemsize
    if u.op is Ops.NEG:
      return self.vop(u.dtype.itemsize, f"vpsub{ELEMENT[size]}_{{v}}_{{v}}_{{v}}", self.constant(u.dtype, 0),
                      self.value(u.src[0]))
    key = MULTIPLY[size] if u.op is Ops.MUL else PACKED_INTEGER[u.op] + ELEMENT[size]
    if key == "vpmulld" and u.src[1] not in self.spread and is_short_product(u): key = "vpmaddwd"
    return self.second(u.src[1], key, self.value(u.src[0]))

  def packed_logic(self, u: UOp) -> Reg:
    """Select logic. Rows without an element size in their name broadcast four bytes, so the size only matters for
    broadcasts."""
    if u in self.rotated: return self.rotate(u.dtype, self.value(self.rotated[u][0]), self.rotated[u][1])
    if u in self.inner: return self.ternary(u)
    wide = u.src[1] in self.spread and u.dtype.scalar().itemsize == 8
    return self.second(u.src[1], LOGIC[u.op] + "q" * wide, self.value(u.src[0]))

  def packed_shift(self, u: UOp) -> Reg:
    scalar, size = u.dtype.scalar(), u.dtype.itemsize
    e = ELEMENT[scalar.itemsize]
    right = "vpsrl" if dtypes.is_unsigned(scalar) else "vpsra"
    name = "vpsll" if u.op is Ops.SHL else right
    if u.src[1].op is Ops.CONST:
      return self.vop(size, f"{name}{e}_{{v}}_{{v}}_i8", self.value(u.src[0]), min(int(u.src[1].arg), 255))
    return self.vop(size, f"{name}v{e}_{{v}}_{{v}}_{{v}}", self.value(u.src[0]), self.value(u.src[1]))

  def packed_integer_maximum(self, u: UOp) -> Reg:
    scalar = u.dtype.scalar()
    return self.second(u.src[1], f"vpmax{'u' if dtypes.is_unsigned(scalar) else 's'}{ELEMENT[scalar.itemsize]}",
                       self.value(u.src[0]))

  # ***** lanes *****

  def broadcast(self, u: UOp) -> Reg:
    source, scalar = u.src[0], u.dtype.scalar()
    v = letter(u.dtype.itemsize)
    cls = LETTER_CLASS[v]
    if scalar is dtypes.bool: return self.broadcast_flag(u)
    if scalar is dtypes.float32: name = "vbroadcastss"
    elif scalar is dtypes.float64: name = "vmovddup" if v == "x" else "vbroadcastsd"
    else: name = f"vpbroadcast{ELEMENT[scalar.itemsize]}"
    address = self.memory(source)
    if address is not None: return self.op(cls, f"{name}_{v}_m", *address)
    value = self.value(source)
    return self.op(cls, f"{name}_{v}_x", value) if scalar in FLOATS else self.broadcast_general(scalar.itemsize, v,
                                                                                                value)

  def vectorize(self, u: UOp) -> Reg:
    scalar = u.dtype.scalar()
    if scalar is dtypes.bool: return self.vectorize_bools(u)
    if all(s.op is Ops.CONST for s in u.src):
      return self.vector_of_constants(b"".join(bits_of(scalar, s.arg) for s in u.src))
    each = 16 // scalar.itemsize
    parts = [self.pack(scalar, u.src[i:i + each]) for i in range(0, len(u.src), each)]
    return self.joined(parts, "f")

  def joined(self, parts: list[Reg], kind: str) -> Reg:
    """Join up to four registers of 16 bytes. kind: the type of their elements, "f" or "i"."""
    if len(parts) == 1: return parts[0]
    low, *high = [self.op(regs.YMM, f"vinsert{kind}128_y_y_x_i8", *parts[k:k + 2], 1) if len(parts) > k + 1
                  else parts[k]
                  for k in range(0, len(parts), 2)]
    return self.op(regs.ZMM, f"vinsert{kind}64x4_z_z_y_i8", low, high[0], 1) if high else low

  def pack(self, scalar: DType, sources: tuple[UOp, ...]) -> Reg:
    """Up to 16 bytes from scalars."""
    values = [self.value(s) for s in sources]
    if scalar is dtypes.float64:
      return self.op(regs.XMM, "vunpcklpd_x_x_x", values[0], values[1]) if len(values) > 1 else values[0]
    if scalar is dtypes.float32:
      part = values[0]
      for k, v in enumerate(values[1:], 1): part = self.op(regs.XMM, "vinsertps_x_x_x_i8", part, v, k << 4)
      return part
    e = ELEMENT[scalar.itemsize]
    wide = "r64" if e == "q" else "r32"
    part = self.op(regs.XMM, "vmovq_x_r64" if e == "q" else "vmovd_x_r32", values[0])
    for k, v in enumerate(values[1:], 1): part = self.op(regs.XMM, f"vpinsr{e}_x_x_{wide}_i8", part, v, k)
    return part

  def lanes(self, u: UOp) -> Reg:
    """Move adjacent lanes of a vector, such as the halves in a reduction, to the start of a register."""
    source = u.src[0]
    value, start = self.value(source), u.arg * u.dtype.scalar().itemsize
    if start == 0: return value
    if u.dtype.itemsize > 16: return self.op(regs.YMM, "vextractf64x4_y_z_i8", value, 1)
    value = self.chunk(source.dtype, value, start // 16)
    return self.op(regs.XMM, "vpsrldq_x_x_i8", value, start % 16) if start % 16 else value

  def chunk(self, dtype: DType, value: Reg, k: int) -> Reg:
    """16 bytes of a vector."""
    return self.op(regs.XMM, f"vextractf128_x_{letter(dtype.itemsize)}_i8", value, k) if k else value

  def lane(self, u: UOp) -> Reg:
    if u.dtype.count > 1: return self.lanes(u)
    source, k = u.src[0], u.arg
    scalar = u.dtype
    if scalar is dtypes.bool: return self.mask_lane(source, k)
    size = scalar.itemsize
    value, k = self.chunk(source.dtype, self.value(source), k * size // 16), k % (16 // size)
    if scalar is dtypes.float32: return self.op(regs.XMM, "vpermilps_x_x_i8", value, k) if k else value
    if scalar is dtypes.float64: return self.op(regs.XMM, "vpermilpd_x_x_i8", value, k) if k else value
    e = ELEMENT[size]
    if e == "q": return self.op(regs.R64, "vpextrq_r64_x_i8", value, k)
    return self.normal(scalar, self.op(regs.R32, f"vpextr{e}_r32_x_i8", value, k))

  # ***** memory *****

  def load_vector(self, dtype: DType, address: Address) -> Reg:
    size = dtype.itemsize if dtype.scalar() is not dtypes.bool else dtype.count
    if size in (16, 32, 64): return self.vop(size, "vmovups_{v}_m", *address)
    if size == 8: return self.op(regs.XMM, "vmovq_x_m", *address)
    if size == 4: return self.op(regs.XMM, "vmovd_x_m", *address)
    if size == 2: return self.op(regs.XMM, "vmovd_x_r32", self.op(regs.R32, "movzx_r32_m16", *address))
    raise CompileError(f"{self.program.name}: a vector of {size} bytes cannot be loaded")

  def store_vector(self, dtype: DType, address: Address, value: Reg, non_temporal: bool = False) -> None:
    size = dtype.count if dtype.scalar() is dtypes.bool else dtype.itemsize
    if size in (16, 32, 64): self.emit(f"{'vmovntps' if non_temporal else 'vmovups'}_m_{letter(size)}", *address, value)
    elif size == 8: self.emit("vmovq_m_x", *address, value)
    elif size == 4: self.emit("vmovd_m_x", *address, value)
    elif size == 2: self.emit("vpextrw_m_x_i8", *address, value, 0)
    else: raise CompileError(f"{self.program.name}: a vector of {size} bytes cannot be stored")

  def scatter(self, index: UOp, value: UOp) -> None:
    """One store per lane: a register's first lane directly, the others by an instruction that extracts them."""
    (buffer, places), scalar, whole = index.src, value.dtype.scalar(), self.value(value)
    first, other = LANE_STORES[scalar.itemsize]
    each, known = 16 // scalar.itemsize, places_of(places)
    for k in range(value.dtype.count):
      if k % each == 0: chunk = self.chunk(value.dtype, whole, k // each)
      if known is not None: address = self.element(buffer, known[0], known[1][k])
      else:
        address = self.in_reach(self.values[buffer], self.place(places, k), scalar.itemsize,
                                self.local_offset.get(buffer, 0))
      if k % each == 0: self.emit(first, *address, chunk)
      else: self.emit(other, *address, chunk, *[k % each] * (each > 2))

  def place(self, places: UOp, k: int) -> Reg:
    """Lane k of a vector of indices, as a 64-bit register."""
    each = 16 // places.dtype.scalar().itemsize
    chunk = self.chunk(places.dtype, self.value(places), k // each)
    if each == 2: return self.op(regs.R64, "vpextrq_r64_x_i8", chunk, k % each)
    return self.op(regs.R64, "movsxd_r64_r32", self.op(regs.R32, "vpextrd_r32_x_i8", chunk, k % each))

def is_constant_vector(u: UOp) -> bool:
  """Whether u is a vector of constants, which is made at its use, like a constant.

  A vector of bools is none: its own rule decides the size of its lanes.
  """
  return u.op is Ops.VECTORIZE and u.dtype.scalar() is not dtypes.bool and all(s.op is Ops.CONST for s in u.src)

def places_of(u: UOp) -> tuple[UOp, list[int]] | None:
  """A vector of indices as a scalar, and the constant that each lane adds to it; None for anything else."""
  if is_constant_vector(u): return u.src[0], [s.arg - u.src[0].arg for s in u.src]
  if u.op is not Ops.ADD: return None
  steps, base = u.src if is_constant_vector(u.src[0]) else u.src[::-1]
  return (base.src[0], [s.arg for s in steps.src]) if base.op is Ops.BROADCAST and is_constant_vector(steps) else None

def _dot(selector: Vectors, u: UOp) -> Reg:
  from tinyhw.isa.x86.select.dot import packed_dot  # 0.3 ms to load, for products of bytes only
  return packed_dot(selector, u)

def _shuffle(selector: Vectors, u: UOp) -> Reg:
  from tinyhw.isa.x86.select.shuffle import shuffled  # 0.3 ms to load, for strided vectors only
  return shuffled(selector, u)

MASK_LOGIC = {Ops.AND: Ops.AND, Ops.MUL: Ops.AND, Ops.OR: Ops.OR, Ops.ADD: Ops.OR, Ops.MAX: Ops.OR, Ops.XOR: Ops.XOR,
              Ops.CMPNE: Ops.XOR,
              Ops.CMPEQ: Ops.XOR}
LANE_RULES: dict[Ops, SelectionRule] = {Ops.BROADCAST: Vectors.broadcast, Ops.VECTORIZE: Vectors.vectorize,
                                        Ops.GEP: Vectors.lane, Ops.SHUFFLE: _shuffle}
FLOAT_RULES: dict[Ops, SelectionRule] = {
  **dict.fromkeys(FLOAT_BINARY, Vectors.packed_float), Ops.MULACC: rule_of("packed_fma"),
  Ops.DOT2: Vectors.packed_pairs,
  Ops.WHERE: rule_of("vector_where"),
  **dict.fromkeys((Ops.SQRT, Ops.TRUNC, Ops.RECIPROCAL, Ops.NEG), Vectors.packed_unary),
  **dict.fromkeys(GroupOp.Comparison, rule_of("float_mask")),
}
INTEGER_RULES: dict[Ops, SelectionRule] = {
  **dict.fromkeys((Ops.ADD, Ops.SUB, Ops.MUL, Ops.NEG), Vectors.packed_integer),
  **dict.fromkeys(LOGIC, Vectors.packed_logic),
  Ops.SHL: Vectors.packed_shift, Ops.SHR: Vectors.packed_shift, Ops.MAX: Vectors.packed_integer_maximum,
  Ops.WHERE: rule_of("vector_where"), Ops.DOT4: _dot,
  **dict.fromkeys(GroupOp.Comparison, rule_of("integer_mask")),
}
MASK_RULES: dict[Ops, SelectionRule] = {
  **dict.fromkeys((*MASK_LOGIC, Ops.CMPLT), rule_of("mask_logic")), Ops.NEG: rule_of("mask_not"),
  Ops.WHERE: rule_of("mask_where"),
}
