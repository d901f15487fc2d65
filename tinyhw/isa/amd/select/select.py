"""Select AMD instructions over virtual registers for a Program: values, memory, control. Arithmetic is in
select/alu.py, conversions in select/cast.py, the pass over the program in machine/select/selection.py.

Uniform values, which are equal in all lanes (uniform.py), are in scalar registers. Varying ones are in vector
registers:

    integers up to 64 bits, floats of 32 and 64   one register or two; integers of 8 and 16 bits are extended
                                                  to 32 bits, with their sign if they have one
    float16, bfloat16, fp8                        their codes, extended with zeros
    bool                                          varying: a bit for each lane, in one scalar register or two
                                                  uniform: 0 or 1 in a scalar register

Constants are operands. Variables (ACC) become block parameters of the loops that assign them, so the result is in SSA
form. Sequences that must stay together are macros (macros.py). Outside of macros, exec keeps its initial value: a lane
without work computes too, and stores nothing.
"""
from __future__ import annotations
from typing import TYPE_CHECKING, Any

from tinyhw.dtype import DType, dtypes
from tinyhw.isa.amd.abi import abi
from tinyhw.isa.amd.capabilities import generation_of
from tinyhw.isa.amd.macros import macros
from tinyhw.isa.amd.select.matrix import Matrices
from tinyhw.isa.amd.select.uniform import varying_values
from tinyhw.isa.amd.table import regs
from tinyhw.machine.ir.inst import Block, Function, Reg, RegClass
from tinyhw.machine.ir.structure import LOOSE, origin_of
from tinyhw.machine.select.selection import constant_part, gate_of, short_buffer, short_index
from tinyhw.uop.enums import AxisType, Ops
from tinyhw.uop.ops import UOp
if TYPE_CHECKING:
  from tinyhw.machine.ir.target import Target
  from tinyhw.uop.program import Program

class Selector(Matrices):
  """The state of one selection; `select` at the end of this file uses it."""

  def __init__(self, program: Program, arch: str):
    super().__init__(generation_of(arch), Function(program.name))
    self.abi, self.offsets = abi(self.generation.family), program.local_offsets
    self.slots = {u: 8 * k for k, u in enumerate([*program.params, *program.variables])}
    self.varying = varying_values(program)
    self.enter(self.function.new_block(name="entry"))
    self.arguments, self.workgroup, self.lane = self.incoming()
    self.function.local_bytes = program.local_bytes

  def incoming(self) -> list[Reg]:
    """The pointer to the arguments, the number of the workgroup and that of the lane.

    A register that no value may have (RDNA4's ttmp9) is no parameter.
    """
    found: list[Reg] = []
    for r in (self.abi.arguments, self.abi.workgroup, self.abi.lane):
      if r.cls.bank is regs.SGPR and r.index is not None and r.index >= regs.SGPRS: found.append(r)
      else:
        found.append(self.new(r.cls))
        self.function.fixed_params[len(self.block.params)] = r.index or 0
        self.block.params.append(found[-1])
    return found

  # ***** values *****

  def home(self, u: UOp) -> RegClass:
    """The register class of u."""
    if u.dtype is dtypes.bool: return self.mask_class if u in self.varying else regs.S[1]
    return self.class_of(u.dtype, u in self.varying)

  def class_of(self, dtype: DType, varying: bool) -> RegClass:
    units = max(dtype.itemsize // 4, 1)
    return self.generation.vectors[units] if varying else regs.S[units]

  def vector(self, u: UOp) -> Reg:
    """u in vector registers."""
    return self.in_vector(self.value(u), u.dtype.itemsize)

  def mask(self, u: UOp) -> Any:
    """A bool as a bit for each lane."""
    value = self.value(u)
    if isinstance(value, int): return -1 if value else 0
    return value if u in self.varying else self.once(self.mask_class, "mask_of", value)

  def pick(self, u: UOp) -> Reg:
    source, number = origin_of(u)
    if u.dtype.itemsize == 2 and u in self.varying and source.op not in LOOSE:
      self.halves[u] = self.values[source], number
    return super().pick(u)

  # ***** memory *****

  def define(self, u: UOp) -> Reg:
    """Select PARAM and DEFINE_VAR: load a slot of 8 bytes of the arguments."""
    units = 2 if u.op is Ops.PARAM or u.dtype.itemsize == 8 else 1
    return self.op(regs.S[units], f"s_load_b{32 * units}", self.arguments, None, offset=self.slots[u])

  def load(self, u: UOp) -> Reg:
    index, dtype = u.src[0], u.dtype
    if u not in self.varying: return self.scalar_load(u)
    key, operands, offset = self.address(index, "load", self.extension(dtype))
    if dtype.itemsize > MAX_ACCESS_BYTES: return self.loaded(u, operands[0], offset)
    cls = self.class_of(dtype, True)
    if len(u.src) == 1: result = self.op(cls, key, *operands, offset=offset)
    else:
      old = self.stored(u.src[2])
      result = self.masked(u.src[1], key, [self.new(cls), *operands], offset, old)
    return self.op(self.mask_class, "v_cmp_ne_u32", 0, result) if dtype is dtypes.bool else result

  def extension(self, dtype: DType) -> str:
    """The type in the name of a load. Loads of less than 32 bits extend by sign (i) or with zeros (u)."""
    if dtype.itemsize >= 4: return f"b{8 * dtype.itemsize}"
    if dtype.count > 1: return f"u{8 * dtype.itemsize}"
    return f"{'i' if dtype in dtypes.sints else 'u'}{8 * dtype.itemsize}"

  def scalar_load(self, u: UOp) -> Reg:
    """Load by the scalar unit, from memory that this kernel does not write."""
    buffer, i = u.src[0].src
    size, units = buffer.dtype.itemsize, u.dtype.itemsize // 4
    offset, rest = self.offset_of(i, size)
    return self.op(regs.S[units], f"s_load_b{32 * units}", self.base_of(buffer, rest, size), None, offset=offset)

  def base_of(self, buffer: UOp, i: UOp | None, size: int) -> Reg:
    """The address of a uniform element."""
    base: Reg = self.values[buffer]
    if i is None: return base
    index = self.value(i)
    wide = index if i.dtype.itemsize == 8 else self.once(regs.S[2], "s_sign64", index)
    shifted = self.once(regs.S[2], "s_lshl_b64", wide, size.bit_length() - 1) if size > 1 else wide
    return self.once(regs.S[2], "s_add64", base, shifted)

  def offset_of(self, i: UOp, size: int) -> tuple[int, UOp | None]:
    """Split an index into a constant number of bytes, if it fits an instruction, and the rest."""
    low, high = macros.OFFSETS[self.generation.family]
    more, rest = constant_part(i)
    fits = low <= more * size <= high and (rest is None or rest.vmin >= 0)
    return (more * size, rest) if fits else (0, i)

  def address(self, index: UOp, kind: str, form: str) -> tuple[str, list[Any], int]:
    """The key of a vector access to memory, the operands of its address, and the constant offset in bytes."""
    buffer, i = index.src
    size = buffer.dtype.itemsize
    if buffer.op is Ops.DEFINE_LOCAL:
      more, rest = constant_part(i)
      offset = self.offsets[buffer] + more * size
      if not 0 <= offset < 1 << 16: offset, rest = self.offsets[buffer], i
      address = self.in_vector(0, 4) if rest is None else self.scaled(rest, size)
      return f"ds_{kind}_{form}", [address], offset
    offset, rest = self.offset_of(i, size)
    key = f"global_{kind}_{form}"
    if rest is None: return key, [self.in_vector(0, 4), self.values[buffer]], offset
    if short_index(rest, size): return key, [self.scaled(rest, size), self.values[buffer]], offset
    if short_buffer(buffer): return key, [self.scaled(i, size), self.values[buffer]], 0
    return key, [self.address64(buffer, rest, size), None], offset

  def scaled(self, i: UOp, size: int) -> Reg:
    """An index in bytes, in a vector register of 32 bits."""
    if i.op is Ops.CONST: return self.in_vector(i.arg * size, 4)
    value = self.value(i)
    if i.dtype.itemsize == 8: value = self.half(value, "low")
    if size == 1: return self.in_vector(value, 4)
    return self.once(regs.V[1], "v_lshlrev_b32", size.bit_length() - 1, value)

  def address64(self, buffer: UOp, i: UOp, size: int) -> Reg:
    """The 64-bit address of an element in vector registers, for an index that may be negative or large."""
    pair, value = self.generation.vectors[2], self.value(i)
    if not isinstance(value, Reg): return self.in_vector(self.base_of(buffer, i, size), 8)
    wide = self.in_vector(value, 8) if i.dtype.itemsize == 8 else self.once(pair, "sign64", self.in_vector(value, 4))
    shifted = self.once(pair, "v_lshlrev_b64", size.bit_length() - 1, wide) if size > 1 else wide
    return self.once(pair, "add64", self.values[buffer], shifted)

  def stored(self, u: UOp) -> Reg:
    """u in vector registers, in the form that memory has; a bool is a byte."""
    if u.dtype.count > 1: return self.group(u)
    if u.dtype is not dtypes.bool: return self.lowest(u) if u.dtype.itemsize < 4 else self.vector(u)
    if u not in self.varying: return self.in_vector(self.value(u), 4)
    return self.once(regs.V[1], "v_cndmask_b32", 0, 1, self.value(u))

  def masked(self, gate: UOp, key: str, operands: list[Any], offset: int, old: Reg | None) -> Reg:
    """A load or store in the lanes where a gate is true."""
    plain = self.instruction(key, *operands, offset=offset)
    row = macros.masked_row(plain.row, self.generation)
    mask = self.in_scalar(self.mask(gate), self.mask_class)
    self.put(row, [mask, self.new(self.mask_class), *plain.operands], () if old is None else (old,))
    result: Reg = operands[0]
    return result

  def store(self, u: UOp) -> None:
    index, value = u.src[0], u.src[1]
    key, address, offset = self.address(index, "store", f"b{8 * value.dtype.itemsize}")
    operands = [address[0], self.stored(value), *address[1:]]
    gate = gate_of(u)
    if gate is not None: self.masked(gate, key, operands, offset, None)
    else: self.emit(key, *operands, offset=offset)

  # ***** control *****

  def branch(self, block: Block, values: list[Reg]) -> None: self.emit("s_branch", block, arguments=(values,))

  def branch_if(self, predicate: str, dtype: DType, a: Any, b: Any, block: Block, values: list[Reg]) -> None:
    self.compare(predicate, dtype, a, b)
    self.emit("s_cbranch_scc1", block, arguments=(values,))

  def counter(self, dtype: DType) -> Reg:
    cls = regs.S[dtype.itemsize // 4]
    return self.op(cls, f"s_mov_b{32 * cls.units}", 0)

  def count(self, counter: Reg) -> Reg:
    return self.op(counter.cls, "s_add_u32" if counter.cls.units == 1 else "s_add64", counter, 1)

  def branch_unless(self, condition: UOp, block: Block) -> None:
    self.emit("s_cmp_eq_u32", self.in_scalar(self.value(condition), regs.S[1]), 0)
    self.emit("s_cbranch_scc1", block, arguments=([],))

  def lane_or_block(self, u: UOp) -> Reg:
    value = self.workgroup if u.arg[1] is AxisType.GLOBAL else self.lane
    if u.dtype.itemsize == 8: return self.widen(value, dtypes.uint32, u)
    return self.op(regs.S[1], "s_mov_b32", value) if value is self.abi.workgroup else value

  def barrier(self, u: UOp) -> None:
    """Synchronize the waves of a workgroup. Their earlier writes to shared memory are visible then (waits.py)."""
    if self.generation.family == "rdna4":
      self.emit("s_barrier_signal", -1)
      self.emit("s_barrier_wait", -1)
    else: self.emit("s_barrier")

  def exchange(self, u: UOp) -> Reg:
    """Select EXCHANGE by the crossbar of shared memory, which needs no memory; 32 bits at a time."""
    x = u.src[0]
    if u not in self.varying: return self.value(x)  # type: ignore[no-any-return]
    if u.dtype is dtypes.bool:
      flag = self.op(regs.V[1], "v_cndmask_b32", 0, 1, self.value(x))
      return self.op(self.mask_class, "v_cmp_ne_u32", 0, self.from_lane(flag, u.arg))
    value = self.vector(x)
    if u.dtype.itemsize < 8: return self.from_lane(value, u.arg)
    halves = [self.from_lane(self.half(value, which), u.arg) for which in ("low", "high")]
    return self.put_group("pack32", self.generation.vectors[2], halves)

  def from_lane(self, value: Reg, distance: int) -> Reg:
    """The value of the lane whose number differs in one bit."""
    if distance < SWIZZLED_LANES:
      return self.op(regs.V[1], "ds_swizzle_b32", value, offset=distance << 10 | SWIZZLED_LANES - 1)
    byte = self.once(regs.V[1], "v_lshlrev_b32", 2, self.lane)
    return self.op(regs.V[1], "ds_bpermute_b32", self.once(regs.V[1], "v_xor_b32", 4 * distance, byte), value)

  def finish(self) -> None: self.emit("s_endpgm")

  def variable_value(self, variable: UOp, u: UOp) -> Reg:
    if variable.dtype.count > 1: return self.group(u)
    if variable.dtype is dtypes.bool:
      varying = variable in self.varying
      return self.in_scalar(self.mask(u) if varying else self.value(u), self.mask_class if varying else regs.S[1])
    cls = self.home(variable)
    value = self.value(u)
    if isinstance(value, Reg) and value.cls is cls: return value
    return self.in_vector(value, variable.dtype.itemsize) if variable in self.varying else self.in_scalar(value, cls)

SWIZZLED_LANES = 32    # among which ds_swizzle permutes, by and, or and xor of their numbers
MAX_ACCESS_BYTES = 16  # greatest number of bytes of one load or store

def select(program: Program, target: Target) -> Function:
  """Select instructions over virtual registers for a program. Raises CompileError if AMD cannot run it."""
  return Selector(program, target.name).select(program)
