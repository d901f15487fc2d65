"""The data of a processor that shared code may use: `Capabilities` for codegen, `Target` for the machine passes.

A difference between two ISAs is a value in a row, else a field here, else a pass at a named hook. Nothing in machine/
or codegen/ asks which ISA it serves.
"""
from __future__ import annotations
from typing import TYPE_CHECKING, Any
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence

from tinyhw.data_class import dataclass, field, replace
from tinyhw.machine.ir.inst import Bank, Block, Effect, Function, MInst, Reg, RegClass
from tinyhw.uop.enums import Ops
from tinyhw.uop.matrix import Matrix
from tinyhw.uop.ops import UOp

CACHE_LINE_BYTES = 64    # of a CPU

if TYPE_CHECKING:
  from tinyhw.dtype import DType
  from tinyhw.machine.ir.code import Code
  from tinyhw.machine.ir.costs import PipeCost
  from tinyhw.machine.model.hardware import Hardware
  from tinyhw.uop.program import Program

@dataclass(frozen=True)
class Capabilities:
  """The properties of a target that codegen may use.

  Vectors and operations:

  - vector_bytes: the widest vector register. If lanes are threads (a GPU), the widest group of registers that is one
    value of a lane.
  - vector_lanes: the most lanes of a vector type, where a language limits them (OpenCL C: 16). 0: no limit.
  - vector_registers: registers that hold a vector or, on a GPU, registers of a lane. Register tiles are planned with
    it.
  - operations: (op, scalar dtype) pairs that one instruction, or a short sequence of the selector, computes.
  - vector_operations: the same for vectors of that scalar, with any number of lanes that fills at most vector_bytes.
  - wide_casts: CAST converts vectors between int64 and floats, and from uint64 to floats.
  - vector_rate: operations on full vectors of floats that a worker of a CPU starts in a cycle.
  - second_level_rate: bytes that the second-level cache gives to such a worker in a cycle, beside its arithmetic. 0:
    arithmetic hides all of it.
  - flushes: arithmetic may take subnormal numbers of float32 for zeros. Moves keep them.
  - slow_fused: MULACC of floats takes many instructions. Reductions and most functions multiply and add instead; the
    expressions that need one rounding keep it (codegen/math/decompose.py).
  - rough: EXP2 and MAX of float32 with the argument ROUGH are one instruction each (uop/enums.py).
  - maxima: types of floats with a maximum instruction. It returns NaN if one operand is NaN, but any one of two zeros.
    It is for reductions of many values.

  Memory:

  - local_bytes: budget of STAGE: half of L2 on a CPU, LDS or shared memory on a GPU.
  - cache_bytes: L1, L2, L3 as one worker sees them.
  - masked_bytes: sizes of elements that a vector gate of a LOAD or STORE may have.
  - shuffled_bytes: sizes of elements that a SHUFFLE may move between vectors.
  - transposed_bytes: sizes of elements that a SHUFFLE takes from two vectors in turns, in each part of 16 bytes. So
    rows are transposed.
  - non_temporal: stores of whole lines may go to memory past the caches (codegen/lower/non_temporal.py).
  - gathers: the INDEX of a LOAD may be a vector.
  - scatters: the INDEX of a STORE may be a vector.
  - aligned: if lanes are threads, memory is only accessed at multiples of the access. Buffers begin at multiples of
    `vector_bytes`.
  - truths: if lanes are threads, vectors of bool are loaded and stored, with a byte for each element.
  - copies: sizes in bytes of asynchronous copies from memory to shared memory by one lane (ASYNC_COPY). Empty: there
    are none.
  - bulk_copies: a unit copies boxes of tensors to shared memory by itself (TENSOR_BOX), and signals count these copies.

  Threads and lanes:

  - threads: workers that run a grid together.
  - card: the sizes and rates of a typical GPU, by which tiles of products are chosen. None: there is no model.
  - unit_waves: waves that a unit of the card should have together; threads / unit_waves units run a grid.
  - lanes: of a workgroup, which is one wave: all of them execute one instruction together. They share shared memory and
    a barrier. LOCAL axes exist. 0 on a CPU.
  - exchanges: lanes of a wave read registers of each other (EXCHANGE). They are scalars of any type, at any distance
    that is a power of two below `lanes`.
  - slow_exchanges: an EXCHANGE takes as long as a value's way through shared memory, so reductions take that way.
  - unit_registers: registers of all lanes that a workgroup may have together. 0: the size of a workgroup does not limit
    the registers of a lane.
  - hidden_registers: of a lane's share of unit_registers, the number that the hardware reserves.

  Matrix unit:

  - matrix: its shapes, best first.
  - less_exact: additional shapes whose precision is below the usual promise of docs/numerics.md, by the variable of
    config.py that allows them.
  """
  vector_bytes: int
  vector_registers: int
  operations: frozenset[tuple[Ops, DType]] = frozenset()
  vector_operations: frozenset[tuple[Ops, DType]] = frozenset()
  threads: int = 1
  lanes: int = 0
  vector_rate: float = 2
  second_level_rate: float = 0
  local_bytes: int = 0
  cache_bytes: tuple[int, ...] = ()
  masked_bytes: tuple[int, ...] = ()
  shuffled_bytes: tuple[int, ...] = ()
  transposed_bytes: tuple[int, ...] = ()
  non_temporal: bool = False
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
  bulk_copies: bool = False
  exchanges: bool = False
  slow_exchanges: bool = False
  unit_waves: int = 0
  card: Hardware | None = None
  vector_lanes: int = 0
  flushes: bool = False
  slow_fused: bool = False
  rough: bool = False

  def allowing(self, names: Collection[str]) -> Capabilities:
    """Return the capabilities with the shapes that these variables allow.

    A product takes the first shape that can hold all values of its operands. So narrow types come first. Among shapes
    of the same type, those that had to be allowed come first. Shapes with shared operands are last. Their cost decides
    among them.
    """
    allowed = [matrix for name, found in self.less_exact if name in names for matrix in found]
    if not allowed: return self
    return replace(self,
                   matrix=tuple(sorted((*allowed, *self.matrix),
                                       key=lambda matrix: (matrix.shared_operands, matrix.operand.itemsize))))

  def fits(self, dtype: DType) -> bool:
    """Whether a vector of this type is one value of the target."""
    return dtype.itemsize <= self.vector_bytes and (not self.vector_lanes or dtype.count <= self.vector_lanes)

  def supports(self, op: Ops, dtype: DType) -> bool:
    """Whether the selector supports op with a result of this dtype, including its number of lanes. For comparisons it
    is the dtype of the operands."""
    if dtype.count == 1: return (op, dtype) in self.operations
    return self.fits(dtype) and (op, dtype.scalar()) in self.vector_operations

Hook = Callable[[Function, "Target"], Function]

@dataclass(eq=False)
class Target:
  """The data and functions of a processor for the machine passes. It is never subclassed.

  Registers:

  - banks, classes, table: its registers and instructions.
  - allocatable: bank name -> physical indices that may be used, best first. It is for targets that differ from the
    bank's own list (fewer registers on an older chip, or a limit for occupancy).
  - steps: bank name -> rising numbers of registers above which a kernel does worse, because fewer waves run at once.
    Interleaving stays below the first. The allocator stays below each as long as it can.
  - abi: the calling convention, for the ISA's own passes.

  Compilation:

  - select: Program -> Function over virtual registers.
  - encode: a laid out Function -> Code.
  - decode: bytes and an offset -> (MInst, size).
  - hooks: "before:<pass>" or "after:<pass>" -> passes to run there, for the names in passes.PASSES.
  - reasons: the name of a hook -> the reason for its position (passes.hook_reasons). The default is the first sentence
    of its docstring.

  Functions that make instructions over physical registers. They must not change the flags:

  - move(dst, src): same bank, same number of units. It, spill and reload may be several instructions.
  - spill(reg, slot), reload(reg, slot): slot is a byte offset in the function's stack frame.
  - jump(block): unconditional.
  - swap(a, b): exchanges two registers of one unit. It may be several instructions. Without it, cycles need a free
    register.
  - invert(jump): the conditional jump with the opposite condition and the same block, or None if there is none.

  Scheduling:

  - region(inst): the memory that a load or store accesses. Instructions with different regions are disjoint. None: any
    memory.
  - latency: pipe, or the name of an instruction -> PipeCost (costs.py).
  - issue_width: micro-operations a cycle.
  """
  name: str
  capabilities: Capabilities
  banks: tuple[Bank, ...]
  classes: tuple[RegClass, ...]
  move: Callable[[Reg, Reg], MInst | list[MInst]]
  spill: Callable[[Reg, int], MInst | list[MInst]]
  reload: Callable[[Reg, int], MInst | list[MInst]]
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
  """The buffer that a load or store of the program accesses. Different buffers do not overlap."""
  u = inst.origin
  if isinstance(u, UOp) and u.op in (Ops.LOAD, Ops.STORE) and inst.row.effects & (Effect.LOAD | Effect.STORE):
    return u.src[0].src[0]
  return None
