"""Selection for GPUs: one pass over the nodes of a Program, in order. It dispatches on the kind of each node. An ISA
makes the instructions.

An ISA's selector derives from `Selection`, adds how it makes instructions, and defines the methods that raise
NotImplementedError here. Lanes never diverge: all lanes take the jump of an IF or none does, and a loop ends at the
same time for all. Other programs are refused. The ISA handles the gates of loads and stores, which mask one
instruction.
"""
from __future__ import annotations
from typing import TYPE_CHECKING, Any
from collections.abc import Callable

from tinyhw.arithmetic import to_bytes
from tinyhw.dtype import dtypes
from tinyhw.errors import CompileError
from tinyhw.machine.ir.inst import Block, Function, Reg, RegClass
from tinyhw.machine.ir.structure import HARDWARE, LOOSE, Structure, assigned_variables, element_of, origin_of
from tinyhw.uop.enums import GroupOp, Ops
from tinyhw.uop.ops import UOp
if TYPE_CHECKING:
  from tinyhw.dtype import DType
  from tinyhw.uop.program import Program

class Selection(Structure):
  """The state of one selection. varying: values that differ between lanes. conditions: for each open IF, the block
  after it."""

  def __init__(self, function: Function):
    super().__init__(function)
    self.varying: set[UOp] = set()
    self.conditions: list[Block] = []

  def select(self, program: Program) -> Function:
    """Select the program's instructions over virtual registers, into the given function. Its entry block is open."""
    self.assigned = assigned_variables(program.uops)
    for u in program.uops:
      self.origin = u
      if u.op in GroupOp.Elementwise: self.values[u] = self.compute(u)
      elif u.op in _VALUES: self.values[u] = _VALUES[u.op](self, u)
      elif u.op in _STATEMENTS: _STATEMENTS[u.op](self, u)
      elif u.op not in _OPERANDS: raise CompileError(f"{program.name}: selection for GPUs does not know {u.op.name}")
    self.finish()
    self.function.blocks = self.order
    return self.function

  # ***** provided by an ISA *****

  def home(self, u: UOp) -> RegClass:
    """The class of the registers that hold u."""
    raise NotImplementedError

  def define(self, u: UOp) -> Reg:
    """PARAM and DEFINE_VAR: an argument of the launch."""
    raise NotImplementedError

  def parameter(self, u: UOp) -> None:
    """PARAM: the address of a buffer."""
    self.values[u] = self.define(u)

  def lane_or_block(self, u: UOp) -> Reg:
    """A RANGE of the hardware: the number of the block in the grid, or that of the lane in its block."""
    raise NotImplementedError

  def load(self, u: UOp) -> Reg:
    """A LOAD. With a gate, it replaces the alternative value in the lanes where the gate is true."""
    raise NotImplementedError

  def store(self, u: UOp) -> None:
    """A STORE. With a gate, only in the lanes where the gate is true."""
    raise NotImplementedError

  def element(self, dtype: DType, source: UOp, number: int) -> Reg:
    """An element of a vector in registers."""
    raise NotImplementedError

  def filled(self, dtype: DType, number: Any) -> Reg:
    """A vector with the same number in all elements, in new registers."""
    raise NotImplementedError

  def part_of(self, u: UOp) -> Reg:
    """A GEP of several adjacent elements of a vector."""
    raise NotImplementedError

  def joined(self, u: UOp) -> Reg:
    """A VECTORIZE or BROADCAST, with its elements in contiguous registers."""
    raise NotImplementedError

  def multiply(self, u: UOp) -> Reg:
    """An MMA: a product of the matrix unit."""
    raise NotImplementedError

  def fragment(self, u: UOp) -> Reg:
    """A FRAGMENT: blocks of shared memory that the lanes of a wave load together."""
    raise NotImplementedError

  def exchange(self, u: UOp) -> Reg:
    """An EXCHANGE: the value of another lane of the wave."""
    raise NotImplementedError

  def variable_value(self, variable: UOp, u: UOp) -> Reg:
    """u in registers of the kind that hold the variable (ACC)."""
    raise NotImplementedError

  def half(self, value: Any, which: str) -> Any:
    """The "low" or "high" 32 bits of a 64-bit operand."""
    raise NotImplementedError

  def moved(self, value: Any, u: UOp) -> Reg:
    """An operand with the bits of u, in registers of u's kind."""
    raise NotImplementedError

  def widen(self, value: Any, source: DType, u: UOp) -> Reg:
    """32 bits of an integer type, extended to the 64 bits of u."""
    raise NotImplementedError

  def extend(self, value: Any, u: UOp) -> Reg:
    """The lowest bits, in the width of u's type, extended to 32 bits. Signed types are sign-extended."""
    raise NotImplementedError

  def cast(self, u: UOp) -> Reg: raise NotImplementedError
  def choose(self, u: UOp) -> Reg: raise NotImplementedError   # WHERE
  def comparison(self, u: UOp) -> Reg: raise NotImplementedError
  def logic(self, u: UOp) -> Reg: raise NotImplementedError    # AND, OR, XOR of bools
  def number(self, u: UOp) -> Reg: raise NotImplementedError   # an operation of integers or floats

  def branch_unless(self, condition: UOp, block: Block) -> None:
    """Jump if a bool that is the same in all lanes is false. Otherwise the block goes on."""
    raise NotImplementedError

  def barrier(self, u: UOp) -> None:
    """BARRIER: lanes of a block meet, and their writes to its memory are visible."""
    raise NotImplementedError

  def async_copy(self, u: UOp) -> None:
    """ASYNC_COPY: start an asynchronous copy from memory to shared memory, of a lane's elements or of a box."""
    raise NotImplementedError

  def commit(self, u: UOp) -> None:
    """COMMIT: make a group of the copies that were started, or make the boxes a phase of a signal."""
    raise NotImplementedError

  def wait(self, u: UOp) -> None:
    """WAIT for all groups of copies except the last ones, and for a phase of a signal."""
    raise NotImplementedError

  def signals(self, u: UOp) -> None:
    """SIGNALS: elements of shared memory begin to count boxes."""
    raise NotImplementedError

  def finish(self) -> None:
    """End the kernel."""
    raise NotImplementedError

  # ***** values *****

  def value(self, u: UOp) -> Any:
    """u as an operand: its register, or the bits of a constant."""
    if u.op is Ops.CONST: return constant_bits(u)
    found = self.values.get(u)
    if found is None:
      raise CompileError(f"{self.function.name}: no value for {u}; its definition does not come before its use")
    return found

  def compute(self, u: UOp) -> Reg:
    """An elementwise operation."""
    if u.op is Ops.CAST: return self.cast(u)
    if u.op is Ops.BITCAST: return self.bitcast(u)
    if u.op is Ops.WHERE: return self.choose(u)
    if u.op in GroupOp.Comparison: return self.comparison(u)
    return self.logic(u) if u.dtype is dtypes.bool else self.number(u)

  def resize(self, u: UOp) -> Reg:
    """A CAST of an integer to another integer type. Types of less than 32 bits are held extended to 32."""
    value, source, target = self.value(u.src[0]), u.src[0].dtype, u.dtype
    if source.itemsize == 8 and target.itemsize == 8: return self.moved(value, u)
    if source.itemsize == 8: value, source = self.half(value, "low"), dtypes.uint32
    if target.itemsize == 8: return self.widen(value, source, u)
    return self.moved(value, u) if is_extended(source, target) else self.extend(value, u)

  def bitcast(self, u: UOp) -> Reg:
    """The same bits. Narrow types are extended as the new type requires."""
    value, same_sign = self.value(u.src[0]), (u.src[0].dtype in dtypes.sints) == (u.dtype in dtypes.sints)
    return self.moved(value, u) if u.dtype.itemsize >= 4 or same_sign else self.extend(value, u)

  def group(self, u: UOp) -> Reg:
    """A vector in a group of registers. A vector that is made at its use is made once."""
    found = self.values.get(u)
    if found is None: found = self.values[u] = self.make_group(u)
    return found

  def make_group(self, u: UOp) -> Reg:
    if u.op is Ops.CONST: return self.filled(u.dtype, u.arg)
    if u.op is Ops.GEP: return self.part_of(u)
    if u.op in (Ops.VECTORIZE, Ops.BROADCAST): return self.joined(u)
    raise CompileError(f"{self.function.name}: selection for GPUs has no registers for {u.op.name} of {u.dtype}")

  def take(self, u: UOp) -> None:
    """A GEP. Vectors of elements are made where they are used."""
    if u.dtype.count == 1: self.values[u] = self.pick(u)

  def pick(self, u: UOp) -> Reg:
    """One element of contiguous values."""
    source, number = origin_of(u)
    if source.op in LOOSE: return self.variable_value(u, element_of(source, number))
    return self.element(u.dtype, source, number)

  def assign(self, u: UOp) -> None: self.values[u.src[0]] = self.variable_value(u.src[0], u.src[1])

  # ***** control *****

  def open(self, u: UOp) -> None:
    """A RANGE. The grid and the lanes belong to the hardware. All lanes run the same number of iterations of a loop."""
    if u.arg[1] in HARDWARE:
      self.values[u] = self.lane_or_block(u)
      return
    if u.src[0] in self.varying:
      raise CompileError(f"{self.function.name}: a loop that lanes end differently; go round for all, and gate its "
                         f"stores")
    self.open_loop(u)

  def close(self, u: UOp) -> None:
    if u.src[0].arg[1] not in HARDWARE: self.close_loop(u.src[0])

  def condition(self, u: UOp) -> None:
    """An IF that all lanes take or none does."""
    if u.src[0] in self.varying:
      raise CompileError(f"{self.function.name}: an IF that lanes take differently; gate its stores instead")
    after, inside = self.function.new_block(self.block.depth,
                                            "after"), self.function.new_block(self.block.depth, "then")
    self.conditions.append(after)
    self.branch_unless(u.src[0], after)
    self.branch(inside, [])
    self.enter(inside)

  def end_condition(self, u: UOp) -> None:
    after = self.conditions.pop()
    self.branch(after, [])
    self.enter(after)

# made where they are used
_OPERANDS = frozenset({Ops.CONST, Ops.INDEX, Ops.SHARED_OPERAND, Ops.TENSOR_BOX, Ops.DEFINE_LOCAL, Ops.BROADCAST,
                       Ops.VECTORIZE})
_VALUES: dict[Ops, Callable[[Selection, UOp], Reg]] = {
  Ops.DEFINE_VAR: lambda s, u: s.define(u), Ops.LOAD: lambda s, u: s.load(u),
  Ops.MMA: lambda s, u: s.multiply(u), Ops.FRAGMENT: lambda s, u: s.fragment(u),
  Ops.EXCHANGE: lambda s, u: s.exchange(u),
  Ops.ACC: lambda s, u: s.variable_value(u, u.src[0]),
}
_STATEMENTS: dict[Ops, Callable[[Selection, UOp], None]] = {
  Ops.PARAM: lambda s, u: s.parameter(u), Ops.GEP: Selection.take, Ops.RANGE: Selection.open, Ops.END: Selection.close,
  Ops.IF: Selection.condition,
  Ops.ENDIF: Selection.end_condition, Ops.ASSIGN_ACC: Selection.assign, Ops.STORE: lambda s, u: s.store(u),
  Ops.BARRIER: lambda s, u: s.barrier(u),
  Ops.ASYNC_COPY: lambda s, u: s.async_copy(u), Ops.COMMIT: lambda s, u: s.commit(u), Ops.WAIT: lambda s, u: s.wait(u),
  Ops.SIGNALS: lambda s, u: s.signals(u),
}

def is_extended(source: DType, target: DType) -> bool:
  """Whether an integer of 32 bits or fewer, extended to 32, already has the form that another such type requires."""
  if target.itemsize == 4 or source is target: return True
  return source.itemsize < target.itemsize and (target in dtypes.sints or source not in dtypes.sints)

def lowest_bits(u: UOp) -> UOp:
  """The wider number whose lowest bits are a narrow integer. A store needs only these bits."""
  while u.op in (Ops.CAST, Ops.BITCAST) and dtypes.is_int(u.dtype) and u.dtype.itemsize < 4:
    wider = u.src[0]
    if not dtypes.is_int(wider.dtype) or not u.dtype.itemsize <= wider.dtype.itemsize <= 4 or wider.op is Ops.ACC: break
    u = wider
  return u

def constant_part(i: UOp) -> tuple[int, UOp | None]:
  """An index as a constant and the rest."""
  if i.op is Ops.CONST: return i.arg, None
  return (i.src[1].arg, i.src[0]) if i.op is Ops.ADD and i.src[1].op is Ops.CONST else (0, i)

RANGE = 1 << 32  # bytes that an unsigned 32-bit number can address

def short_index(i: UOp | None, size: int, bias: int = 0) -> bool:
  """Whether an index of elements of `size` bytes, or none, addresses a byte with unsigned 32 bits in every lane. bias:
  is added to the index."""
  return i is None or i.vmin + bias >= 0 and (i.vmax + bias + 1) * size <= RANGE

def short_buffer(buffer: UOp) -> bool:
  """Whether unsigned 32 bits address each byte of a PARAM. Then the lowest bits of an index are enough, because lanes
  that access the buffer are within it."""
  return bool(buffer.arg[1] * buffer.dtype.itemsize <= RANGE)

def gate_of(store: UOp) -> UOp | None:
  """The gate of a STORE. None if it has none, or one that is always true."""
  gate = store.src[2] if len(store.src) > 2 else None
  return None if gate is not None and gate.op is Ops.CONST and gate.arg else gate

def constant_bits(u: UOp) -> int:
  """A constant in the form of its register: integers of less than 32 bits are sign-extended if signed, and a bool is 0
  or 1."""
  scalar = u.dtype.scalar()
  if scalar is dtypes.bool: return int(u.arg)
  return int.from_bytes(to_bytes(u.arg, scalar), "little", signed=scalar in dtypes.sints and scalar.itemsize < 4)
