"""Select NVIDIA instructions over virtual registers for a Program.

This file has values, memory and control. Arithmetic is in select/alu.py, conversions in select/cast.py, vectors in
select/vector.py, addresses in select/address.py, matrices in select/matrix.py. Copies to shared memory are in
select/async_copies.py, the pass itself in machine/select/selection.py.

One pass over the program, in order. Every lane computes for itself:

  integers up to 64 bits, float32, float64   one register or two; integers narrower than a register are extended to 32
                                             bits, by their sign if they are signed
  float16, bfloat16, fp8                     their bits, extended with zeros
  bool                                       a predicate

Constants are operands. Instructions are macros (macros.py). A gate is the guard of the load or store. Lanes never
diverge.
"""
from __future__ import annotations
from collections import Counter
from typing import TYPE_CHECKING, Any

from tinyhw.dtype import DType, dtypes
from tinyhw.isa.sass.abi import ABI
from tinyhw.isa.sass.capabilities import generation_of
from tinyhw.isa.sass.select.address import free_pairs
from tinyhw.isa.sass.select.async_copies import AsyncCopies
from tinyhw.isa.sass.select.vector import memory_bytes
from tinyhw.isa.sass.select.part import FULL
from tinyhw.isa.sass.select.tensor_map import maps_of
from tinyhw.isa.sass.table import regs
from tinyhw.isa.sass.table.branch import JUMP, JUMP_IF
from tinyhw.isa.sass.table.units import WARP
from tinyhw.machine.ir.inst import Block, Function, MInst, Reg, RegClass
from tinyhw.machine.ir.structure import spread
from tinyhw.machine.select.selection import gate_of, lowest_bits
from tinyhw.uop.enums import AxisType, Ops
from tinyhw.uop.ops import UOp
if TYPE_CHECKING:
  from tinyhw.machine.ir.target import Target
  from tinyhw.uop.program import Program

REGISTER_BYTES = 4  # of a lane
ROOM = 64           # registers besides the sums of four warps that addresses of copies may take

class Selector(AsyncCopies):
  """The state of one selection. `select` at the end of this file is the entry point."""

  def __init__(self, program: Program, arch: str, registers: int):
    super().__init__(generation_of(arch), Function(program.name))
    self.abi, self.offsets = ABI[self.generation.name], program.local_offsets
    self.varying = spread(program.uops, {u for u in program.uops if u.op is Ops.MMA or u.op is Ops.RANGE
                                         and u.arg[1] is AxisType.LOCAL})
    self.slots = {u: self.abi.arguments + 8 * k for k, u in enumerate([*program.params, *program.variables])}
    self.uses = Counter(s for u in program.uops for s in u.src)
    self.kept = Counter(u.src[1] for u in program.uops if u.op is Ops.STORE)
    self.enter(self.function.new_block(name="entry"))
    self.function.local_bytes = program.local_bytes
    self.started, self.boxes, self.maps = [], [], maps_of(program)
    self.maps_slot = self.abi.arguments + 8 * len(self.slots)
    self.lanes = next((u for u in program.uops if u.op is Ops.RANGE and u.arg[1] is AxisType.LOCAL), None)
    self.counted = any(u.op is Ops.ASYNC_COPY and u.src[1].op is Ops.INDEX for u in program.uops)
    sums = max([memory_bytes(u.dtype) // REGISTER_BYTES for u in program.uops
                if u.op is Ops.MMA and u.arg.shared_operands],
               default=0)
    self.crowded = registers - sums < ROOM
    self.bases, self.pairs = {}, free_pairs(program)

  # ***** values *****

  def home(self, u: UOp) -> RegClass:
    """Return the register class of u."""
    if u.dtype is dtypes.bool: return regs.P
    return regs.R[2] if u.dtype.itemsize == 8 else regs.R[1]

  def define(self, u: UOp) -> Reg:
    """Select DEFINE_VAR: a slot of 8 bytes in constant memory."""
    units = 2 if u.dtype.itemsize == 8 else 1
    return self.op(regs.R[units], f"argument_b{32 * units}", self.slots[u])

  def parameter(self, u: UOp) -> None: """PARAM: `begin` loads the addresses that accesses need."""

  def exchange(self, u: UOp) -> Reg:
    """Select SHFL, of words and pairs of them. A predicate is exchanged as a number."""
    value, number = self.value(u.src[0]), u.arg
    assert number < WARP, f"lanes of a warp are no {number} apart"
    if u.dtype is dtypes.bool:
      return self.op(regs.P, "ne_u32", self.op(regs.R[1], "exchange_b32", self.op(regs.R[1], "flag", value, 1), number),
                     0)
    units = 2 if u.dtype.itemsize == 8 else 1
    return self.op(regs.R[units], f"exchange_b{32 * units}", self.in_register(value, units), number)

  # ***** memory *****

  def load(self, u: UOp) -> Reg:
    address, name = self.address(u.src[0]), f"load_{access_of(u.dtype)}"
    cls = self.group_class(u.dtype)
    if len(u.src) == 1: result = self.op(cls, self.access(address, name), address.register, address.offset)
    else:
      old, result = self.alternative(u.src[2]), self.new(cls)
      self.emit(self.access(address, f"{name}_if"), result, self.value(u.src[1]), address.register, address.offset,
                ties=(old,))
    return self.op(regs.P, "ne_u32", result, 0) if u.dtype is dtypes.bool else result

  def alternative(self, u: UOp) -> Reg:
    """Return u in its memory format, in registers that a load may overwrite.

    Constants are made again, which costs no more than a copy.
    """
    constant = u.src[0] if u.op is Ops.BROADCAST else u
    if constant.op is not Ops.CONST or u.dtype is dtypes.bool: return self.stored(u)
    return self.filled(u.dtype, constant.arg) if u.dtype.count > 1 else self.made_anew(self.value(u), u.dtype)

  def made_anew(self, value: int, dtype: DType) -> Reg:
    """Return a constant in new registers."""
    if dtype.itemsize == 8: return self.op(regs.R[2], "pack64", value & FULL, value >> 32 & FULL)
    return self.op(regs.R[1], "move", value & FULL)

  def stored(self, u: UOp) -> Reg:
    """Return u in its memory format; a bool is a byte."""
    if u.dtype.count > 1: return self.group(u)
    if u.dtype is dtypes.bool: return self.op(regs.R[1], "flag", self.value(u), 1)
    return self.in_register(self.value(u), 2 if u.dtype.itemsize == 8 else 1)

  def store(self, u: UOp) -> None:
    address, value = self.address(u.src[0]), self.stored(lowest_bits(u.src[1]))
    name = f"store_{access_of(u.src[1].dtype)}"
    gate = gate_of(u)
    if gate is not None:
      self.emit(self.access(address, f"{name}_if"), self.value(gate), address.register, value, address.offset)
    else: self.emit(self.access(address, name), address.register, value, address.offset)

  # ***** control *****

  def branch(self, block: Block, values: list[Reg]) -> None:
    self.block.insts.append(MInst(JUMP, [block], self.origin, (values,)))

  def jump_if(self, predicate: Reg, block: Block, values: list[Reg]) -> None:
    self.block.insts.append(MInst(JUMP_IF, [block, predicate, 0], self.origin, (values,)))

  def branch_if(self, predicate: str, dtype: DType, a: Any, b: Any, block: Block, values: list[Reg]) -> None:
    self.jump_if(self.op(regs.P, f"{predicate}_s{8 * dtype.itemsize}", a, b), block, values)

  def counter(self, dtype: DType) -> Reg:
    return self.op(regs.R[1], "move", 0) if dtype.itemsize == 4 else self.op(regs.R[2], "pack64", 0, 0)

  def count(self, counter: Reg) -> Reg:
    return self.op(counter.cls, "add32" if counter.cls is regs.R[1] else "add64", counter, 1)

  def branch_unless(self, condition: UOp, block: Block) -> None:
    value = self.value(condition)
    predicate = value if isinstance(value, Reg) else self.truth(value)
    self.block.insts.append(MInst(JUMP_IF, [block, predicate, 1], self.origin, ([],)))

  def lane_or_block(self, u: UOp) -> Reg:
    number = self.op(regs.R[1], "block" if u.arg[1] is AxisType.GLOBAL else "lane")
    return number if u.dtype.itemsize == 4 else self.op(regs.R[2], "pack64", number, 0)

  def barrier(self, u: UOp) -> None: self.emit("barrier")

  def finish(self) -> None:
    self.emit("end")
    self.begin()

  def variable_value(self, variable: UOp, u: UOp) -> Reg:
    if variable.dtype.count > 1: return self.filled(u.dtype, u.arg) if u.op is Ops.CONST else self.whole(self.group(u))
    value = self.value(u)
    if isinstance(value, Reg): return self.whole(value)
    if variable.dtype is dtypes.bool: return self.op(regs.P, "p_set" if value else "p_clear")
    return self.in_register(value, 2 if variable.dtype.itemsize == 8 else 1)

def access_of(dtype: DType) -> str:
  """Return the size of an access. Narrow sizes include the extension of the register."""
  size = memory_bytes(dtype)
  return f"b{8 * size}" if size >= 4 else f"{'s' if dtype in dtypes.sints else 'u'}{8 * size}"

def select(program: Program, target: Target) -> Function:
  """Return the program as instructions over virtual registers. Raises CompileError if the program is no NVIDIA
  kernel."""
  return Selector(program, target.name, len(target.allocatable["R"])).select(program)
