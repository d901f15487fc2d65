"""What shared code may know about a processor: `Capabilities` for codegen, `Target` for the machine passes.

Both are data. A difference between two ISAs is a value in a row, else a field here, else a pass at a named hook;
nothing in machine/ or codegen/ asks which ISA it serves.
"""
from __future__ import annotations
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence

from tinyhw.machine.ir.inst import Bank, Block, Effect, Function, MInst, Reg, RegClass
from tinyhw.uop.enums import Ops
from tinyhw.uop.matrix import Matrix
from tinyhw.uop.ops import UOp

if TYPE_CHECKING:
  from tinyhw.dtype import DType
  from tinyhw.machine.ir.code import Code
  from tinyhw.machine.ir.costs import PipeCost
  from tinyhw.uop.program import Program

@dataclass(frozen=True)
class Capabilities:
  """What codegen may ask about a target.

  vector_bytes: the widest vector register; where lanes are threads (a GPU), the widest group of registers that is one
  value of a lane.
  vector_registers: registers that hold a vector or, on a GPU, that a lane has; what register tiles are planned with.
  operations: (op, scalar dtype) pairs that one instruction, or a short sequence of the selector, computes.
  vector_operations: the same for vectors of that scalar; any number of lanes that fills at most vector_bytes.
  threads: workers that run a grid together. lanes: of a workgroup, as many as execute one instruction (a wave); LOCAL
  axes exist. Lanes of a workgroup share local memory and a barrier. 0 on a CPU.
  unit_registers: of all lanes that a workgroup may have together; 0: a lane has as many in any workgroup.
  hidden_registers: of a lane's part of those, that the hardware keeps for itself.
  local_bytes: budget of STAGE: half of L2 on a CPU, LDS or shared memory on a GPU. cache_bytes: L1, L2, L3 as one
  worker sees them.
  masked_bytes: sizes of elements that a vector gate of a LOAD or STORE may keep.
  gathers: the INDEX of a LOAD may be a vector; scatters: that of a STORE.
  matrix: shapes of the matrix unit, best first.
  panel_products: where the unit reads local memory itself, products that it makes while local memory gives a byte, of
  elements of one byte; of two bytes half as many. cache_cost: bytes that local memory gives a workgroup while the
  caches between it and memory give each workgroup one.
  less_exact: more shapes, of which docs/numerics.md does not promise the usual precision, by the variable of config.py
  that allows them.
  wide_casts: CAST converts vectors between int64 and floats, and from uint64 to floats.
  truths: where lanes are threads, vectors of bool are loaded and stored, a byte for each.
  maxima: types of floats of which an instruction takes the larger, NaN where one is NaN, but of two zeros any: for
  folds of many.
  aligned: where lanes are threads, memory is accessed at multiples of the access only. Buffers begin at multiples of
  `vector_bytes`.
  copies: bytes that one lane can copy from memory to local memory while it goes on (FETCH); none: there are no such
  copies.
  boxes: a unit copies boxes of tensors there by itself (BOX), which signals count.
  exchanges: lanes of a wave read registers of each other (EXCHANGE), scalars of any type, at any distance that is a
  power of two below `lanes`.
  """
  vector_bytes: int
  vector_registers: int
  operations: frozenset[tuple[Ops, DType]] = frozenset()
  vector_operations: frozenset[tuple[Ops, DType]] = frozenset()
  threads: int = 1
  lanes: int = 0
  local_bytes: int = 0
  cache_bytes: tuple[int, ...] = ()
  masked_bytes: tuple[int, ...] = ()
  gathers: bool = False
  scatters: bool = False
  matrix: tuple[Matrix, ...] = ()
  less_exact: tuple[tuple[str, tuple[Matrix, ...]], ...] = ()
  wide_casts: bool = False
  aligned: bool = False
  truths: bool = False
  maxima: frozenset[DType] = frozenset()
  copies: tuple[int, ...] = ()
  unit_registers: int = 0
  hidden_registers: int = 0
  panel_products: float = 1
  cache_cost: float = 1
  boxes: bool = False
  exchanges: bool = False

  def allowing(self, names: Collection[str]) -> Capabilities:
    """With the shapes that these variables allow. A product takes the first shape that has all numbers of its factors:
    of narrow types first, and of the same type the one that had to be allowed; those of panels are last, and chosen by
    their cost."""
    allowed = [matrix for name, found in self.less_exact if name in names for matrix in found]
    if not allowed: return self
    return replace(self,
                   matrix=tuple(sorted((*allowed, *self.matrix),
                                       key=lambda matrix: (matrix.panels, matrix.operand.itemsize))))

  def supports(self, op: Ops, dtype: DType) -> bool:
    """Whether the selector knows op with a result of this dtype (compares: with operands of it), lanes counted."""
    if dtype.count == 1: return (op, dtype) in self.operations
    return dtype.itemsize <= self.vector_bytes and (op, dtype.scalar()) in self.vector_operations

Hook = Callable[[Function, "Target"], Function]

@dataclass(eq=False)
class Target:
  """A processor as the machine passes see it. Data and functions, never a subclass.

  banks, classes, table: of its registers and instructions. allocatable: bank name -> physical indices that may be used,
  best first, where that differs from the bank's own list (fewer registers on an older chip, or a limit for occupancy).
  steps: bank name -> numbers of registers, rising, beyond which a kernel does worse (fewer waves run at once):
  interleaving stays below the first, and the allocator below each as long as it can.
  select: Program -> Function over virtual registers. encode: a laid out Function -> Code. decode: bytes and an offset
  -> (MInst, size). The functions below make single instructions over physical registers; they must leave the flags
  alone:
    move(dst, src): same bank, same number of units. spill(reg, slot), reload(reg, slot): slot is a byte offset in the
    function's stack frame. jump(block): unconditional. swap(a, b): exchanges two registers of one unit; may be several
    instructions; without it, cycles need a free one.
  invert(jump): the conditional jump with the opposite condition and the same block, or None where there is none.
  region(inst): which memory a load or store touches; instructions with different regions are disjoint. None: anything.
  latency: pipe, or the name of an instruction -> PipeCost (costs.py); issue_width: micro-operations a cycle.
  abi: the calling convention, for the ISA's own passes.
  hooks: "before:<pass>" or "after:<pass>" -> passes to run there, for the names in passes.PASSES.
  reasons: the name of a hook -> why it stands there (passes.hook_reasons); else the first sentence of its docstring.
  """
  name: str
  capabilities: Capabilities
  banks: tuple[Bank, ...]
  classes: tuple[RegClass, ...]
  move: Callable[[Reg, Reg], MInst]
  spill: Callable[[Reg, int], MInst]
  reload: Callable[[Reg, int], MInst]
  jump: Callable[[Block], MInst]
  swap: Callable[[Reg, Reg], Sequence[MInst]] | None = None
  invert: Callable[[MInst], MInst | None] | None = None
  select: Callable[[Program, "Target"], Function] | None = None
  encode: Callable[[Function], Code] | None = None
  decode: Callable[[bytes, int], tuple[MInst, int]] | None = None
  table: Any = ()
  abi: Any = None
  allocatable: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
  steps: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
  region: Callable[[MInst], Hashable] | None = None
  latency: Mapping[str, PipeCost] = field(default_factory=dict)
  issue_width: int = 4
  hooks: Mapping[str, Sequence[Hook]] = field(default_factory=dict)
  reasons: Mapping[str, str] = field(default_factory=dict)

def region(inst: MInst) -> UOp | None:
  """The buffer that a load or store of the program touches: different buffers do not overlap."""
  u = inst.origin
  if isinstance(u, UOp) and u.op in (Ops.LOAD, Ops.STORE) and inst.row.effects & (Effect.LOAD | Effect.STORE):
    return u.src[0].src[0]
  return None
