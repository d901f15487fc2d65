"""Names of operations (`Ops`), groups of them, and kinds of axes.

IntEnum hashes three times faster than a plain Enum.
"""
from __future__ import annotations
from enum import IntEnum, auto
from typing import TypeVar

E = TypeVar("E", bound=IntEnum)

def plain_members(cls: type[E]) -> type[E]:
  """Decorator: make members plain attributes of the class, as in Python 3.12.

  In 3.10 and 3.11 `Ops.ADD` calls a Python function otherwise. It takes 110 ns, not 40, which was a tenth of a compile.
  """
  for name, member in cls.__members__.items(): type.__setattr__(cls, name, member)
  return cls

class NamedIntEnum(IntEnum):
  """An enumeration that prints as `Ops.ADD` in each version of Python. An IntEnum prints as its number from 3.11 on,
  and before that in an f-string."""
  def __str__(self) -> str: return f"{type(self).__name__}.{self.name}"

@plain_members
class Ops(NamedIntEnum):
  """The operation of a UOp. docs/design/uop.md defines sources, argument and semantics of each.

  The order is stable: constants sort first.
  """
  # leaves
  CONST = auto()
  DEVICE = auto()
  DEFINE_VAR = auto()
  BIND = auto()
  PARAM = auto()
  DEFINE_LOCAL = auto()
  RANGE = auto()
  BUFFER = auto()
  IOTA = auto()

  # movement (tensor graph)
  RESHAPE = auto()
  PERMUTE = auto()
  EXPAND = auto()
  PAD = auto()
  SHRINK = auto()
  FLIP = auto()
  GATHER = auto()

  # tensor graph, the rest
  REDUCE_AXIS = auto()
  CONTIGUOUS = auto()
  CONTIGUOUS_BACKWARD = auto()
  DETACH = auto()
  COPY = auto()
  MULTI = auto()
  ASSIGN = auto()
  AFTER = auto()

  # unary
  CAST = auto()
  BITCAST = auto()
  NEG = auto()
  RECIPROCAL = auto()
  SQRT = auto()
  TRUNC = auto()
  EXP2 = auto()
  LOG2 = auto()
  EXP = auto()
  LOG = auto()
  SIN = auto()
  COS = auto()
  TANH = auto()
  ERF = auto()

  # binary. IDIV rounds to minus infinity and MOD has the sign of the divisor, as in Python. x // 0 and x % 0 are 0.
  ADD = auto()
  SUB = auto()
  MUL = auto()
  FDIV = auto()
  IDIV = auto()
  MOD = auto()
  MAX = auto()
  POW = auto()
  AND = auto()
  OR = auto()
  XOR = auto()
  SHL = auto()
  SHR = auto()
  CMPLT = auto()
  CMPNE = auto()
  CMPEQ = auto()
  THREEFRY = auto()

  # ternary
  WHERE = auto()
  MULACC = auto()
  DOT4 = auto()
  DOT2 = auto()

  # kernels and programs
  INDEX = auto()
  LOAD = auto()
  STORE = auto()
  REDUCE = auto()
  STAGE = auto()
  GROUP = auto()
  SINK = auto()
  END = auto()
  IF = auto()
  ENDIF = auto()
  ACC = auto()
  ASSIGN_ACC = auto()
  BARRIER = auto()
  ASYNC_COPY = auto()
  COMMIT = auto()
  WAIT = auto()
  FRAGMENT = auto()
  SHARED_OPERAND = auto()
  TENSOR_BOX = auto()
  SIGNALS = auto()
  MMA = auto()
  EXCHANGE = auto()
  BROADCAST = auto()
  VECTORIZE = auto()
  GEP = auto()
  SHUFFLE = auto()
  NOOP = auto()

  SCATTER = auto()  # of the tensor graph; last, so that the order of the others is as it was

  # older names
  RECIP = RECIPROCAL
  DEFINE_GLOBAL = PARAM

class GroupOp:
  """Sets of operations that rules refer to."""
  Unary = frozenset({Ops.NEG, Ops.RECIPROCAL, Ops.SQRT, Ops.TRUNC, Ops.EXP2, Ops.LOG2, Ops.EXP, Ops.LOG, Ops.SIN,
                     Ops.COS, Ops.TANH, Ops.ERF})
  Binary = frozenset({Ops.ADD, Ops.SUB, Ops.MUL, Ops.FDIV, Ops.IDIV, Ops.MOD, Ops.MAX, Ops.POW, Ops.AND, Ops.OR,
                      Ops.XOR, Ops.SHL, Ops.SHR,
                      Ops.CMPLT, Ops.CMPNE, Ops.CMPEQ, Ops.THREEFRY})
  Ternary = frozenset({Ops.WHERE, Ops.MULACC, Ops.DOT4, Ops.DOT2})
  ALU = Unary | Binary | Ternary
  Elementwise = ALU | {Ops.CAST, Ops.BITCAST}
  Comparison = frozenset({Ops.CMPLT, Ops.CMPNE, Ops.CMPEQ})
  Commutative = frozenset({Ops.ADD, Ops.MUL, Ops.MAX, Ops.AND, Ops.OR, Ops.XOR, Ops.CMPNE, Ops.CMPEQ})
  Associative = frozenset({Ops.ADD, Ops.MUL, Ops.MAX, Ops.AND, Ops.OR, Ops.XOR})
  Idempotent = frozenset({Ops.AND, Ops.OR, Ops.MAX})
  Transcendental = frozenset({Ops.EXP2, Ops.LOG2, Ops.EXP, Ops.LOG, Ops.SIN, Ops.COS, Ops.TANH, Ops.ERF, Ops.POW})
  Movement = frozenset({Ops.RESHAPE, Ops.PERMUTE, Ops.EXPAND, Ops.PAD, Ops.SHRINK, Ops.FLIP})

# tag of a WHERE that gives what one of its operands has anyway (engine/schedule/masks.py)
STATED = "stated"
# arg of operations on float32 that codegen knows to need less than docs/numerics.md promises. EXP2: a relative error of
# 2**-18 is allowed, and 0 for results below 2**-126. MAX: where one operand is NaN, the result may be any of both
ROUGH = "rough"
# tag of a STORE in a Program that need not pass through the caches (codegen/lower/non_temporal.py)
NON_TEMPORAL = "non-temporal"

@plain_members
class AxisType(NamedIntEnum):
  """The kind of a range: where its iterations run."""
  GLOBAL = auto()        # the grid: work items that any worker or workgroup may take
  LOCAL = auto()         # lanes of a workgroup
  LOOP = auto()          # a loop
  REDUCE = auto()        # a loop that accumulates its results
  UPCAST = auto()        # an unrolled loop: a tile in registers
  UNROLL = auto()        # an unrolled reduction
  VECTOR = auto()        # lanes of a vector register
  STAGE = auto()         # a loop that fills a shared array
  ORDERED = auto()       # a loop whose iterations see the stores of earlier ones
