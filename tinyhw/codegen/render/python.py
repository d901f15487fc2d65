"""Render a Program as Python source, for the PYTHON device: the results of uop/evaluate/evaluate.py, ten times as fast.

    def kernel(buffers, variables, first, last): ...

buffers: memory with the buffer protocol, by slot. variables: ints by name. first, last: the part of the grid to do. The
source expects the names of tinyhw.arithmetic.

Every value is a local variable, one for each lane. float32 rounds by a store into one element of memory (40 ns) instead
of a call (200 ns). A value that goes only to float32 memory is not rounded at all. Integers wrap unless their bounds
exclude it.
"""
from __future__ import annotations
import math
from collections import Counter
from typing import Any
from collections.abc import Callable

from tinyhw.arithmetic import round_to
from tinyhw.codegen.math.maximum import never_nan
from tinyhw.dtype import ALIASES_BY_TYPE, DType, dtypes
from tinyhw.errors import CompileError
from tinyhw.uop.enums import AxisType, GroupOp, Ops
from tinyhw.uop.ops import UOp
from tinyhw.uop.program import Program

_INFIX: dict[Ops, str] = {
  Ops.ADD: "+", Ops.SUB: "-", Ops.MUL: "*", Ops.AND: "&", Ops.OR: "|", Ops.XOR: "^", Ops.CMPLT: "<", Ops.CMPNE: "!=",
  Ops.CMPEQ: "==",
}
_ON_BOOLS: dict[Ops, str] = {Ops.ADD: "|", Ops.MUL: "&", Ops.SUB: "^"}
_CALLS: dict[Ops, str] = {
  Ops.SQRT: "square_root", Ops.EXP2: "exp2", Ops.LOG2: "log2", Ops.EXP: "exp", Ops.LOG: "log", Ops.SIN: "sin",
  Ops.COS: "cos", Ops.TANH: "math.tanh",
  Ops.ERF: "math.erf", Ops.POW: "power", Ops.TRUNC: "truncate_float", Ops.THREEFRY: "threefry",
}
_EXACT = (frozenset({Ops.TRUNC, Ops.MAX, Ops.WHERE, Ops.AND, Ops.OR, Ops.XOR, Ops.MOD, Ops.SHR, Ops.THREEFRY})
          | GroupOp.Comparison)
_NARROW = frozenset(dtypes.narrow_floats)

def render(program: Program) -> str:
  """Return the source of a function named `kernel`.

  Raises CompileError for operations without a meaning on this device: BARRIER, MMA.
  """
  return _Python(program).source()

class _Python:
  """The lines written so far, and the text of each value's lanes."""
  def __init__(self, program: Program):
    self.program = program
    self.lines: list[str] = []
    self.depth = 1
    self.lanes: dict[UOp, list[str]] = {}
    self.places: dict[UOp, tuple[str, list[str]]] = {}  # INDEX -> buffer, indices
    self.uses = Counter(s for u in program.uops for s in u.src)
    self.roundings: dict[DType, str] = {}
    self.stored = {u.src[1] for u in program.uops if u.op is Ops.STORE and u.src[0].src[0].op is Ops.PARAM
                   and self.uses[u.src[1]] == 1}

  def source(self) -> str:
    for u in self.program.uops:
      rule = _RULES.get(u.op)
      if rule is not None: rule(self, u)
      elif u.op in GroupOp.Elementwise: self._elementwise(u)
      else:
        raise CompileError(f"{self.program.name}: device PYTHON has no {u.op.name}; compile without workgroups and "
                           f"matrix units")
    head = [f"def kernel(buffers, variables, first, last):  # {self.program.name}",
            "  t = memoryview(bytearray(4)).cast('f')"]
    head += [f"  {name} = round_to({_type(dtype)})" for dtype, name in self.roundings.items()]
    return "\n".join(head + self.lines + [""])

  def line(self, text: str) -> None: self.lines.append("  " * self.depth + text)

  def define(self, u: UOp, values: list[str], prefix: str = "v") -> None:
    """Give u's lanes variables that are set to these expressions."""
    name = f"{prefix}{len(self.lanes)}"
    names = [name] if len(values) == 1 else [f"{name}_{k}" for k in range(len(values))]
    for n, value in zip(names, values): self.line(f"{n} = {value}")
    self.lanes[u] = names

  def alias(self, u: UOp, values: list[str]) -> None:
    """Give u the texts of other values. They are copied where they are variables that may change."""
    if any(s.op is Ops.ACC for s in u.src): self.define(u, values)
    else: self.lanes[u] = values

  # ***** arithmetic *****

  def _elementwise(self, u: UOp) -> None:
    if u.op is Ops.BITCAST and u.dtype.count != u.src[0].dtype.count:
      raise CompileError(f"{self.program.name}: no BITCAST between numbers of lanes")
    scalar = u.dtype.scalar()
    texts = [expression(u, list(lane)) for lane in zip(*[self.lanes[s] for s in u.src])]
    if needs_rounding(u):
      if scalar is dtypes.float32 and u not in self.stored: return self._round_float32(u, texts)
      if scalar in _NARROW: texts = [f"{self._rounding(scalar)}({x})" for x in texts]
      if dtypes.is_int(scalar): texts = [wrap(x, scalar) for x in texts]
    self.define(u, texts)

  def _rounding(self, dtype: DType) -> str: return self.roundings.setdefault(dtype, f"round_{ALIASES_BY_TYPE[dtype]}")

  def _round_float32(self, u: UOp, texts: list[str]) -> None:
    name = f"v{len(self.lanes)}"
    names = [name] if len(texts) == 1 else [f"{name}_{k}" for k in range(len(texts))]
    for n, text in zip(names, texts):
      self.line(f"t[0] = {text}")
      self.line(f"{n} = t[0]")
    self.lanes[u] = names

  # ***** everything else *****

  def constant(self, u: UOp) -> None: self.lanes[u] = [literal(u)] * u.dtype.count

  def param(self, u: UOp) -> None:
    self.define(u, [f"elements(buffers[{self.program.params.index(u)}], {_type(u.dtype)})"], "p")

  def variable(self, u: UOp) -> None: self.define(u, [f"variables[{self.program.variables.index(u)}]"], "n")

  def local(self, u: UOp) -> None: self.define(u, [f"[0] * {u.arg[1]}"], "l")

  def range(self, u: UOp) -> None:
    self.lanes[u] = [f"i{u.arg[0]}_{len(self.lanes)}"]
    bounds = "first, last" if u.arg[1] is AxisType.GLOBAL else self.lanes[u.src[0]][0]
    self.line(f"for {self.lanes[u][0]} in range({bounds}):")
    self.depth += 1
    self.line("pass")

  def condition(self, u: UOp) -> None:
    self.line(f"if {self.lanes[u.src[0]][0]}:")
    self.depth += 1
    self.line("pass")

  def end(self, u: UOp) -> None: self.depth -= 1

  def index(self, u: UOp) -> None: self.places[u] = self.lanes[u.src[0]][0], self.lanes[u.src[1]]

  def elements(self, place: UOp, lanes: int) -> list[str]:
    """Return the text of each element at an INDEX: adjacent ones where the index is a scalar."""
    memory, at = self.places[place]
    if len(at) == lanes: return [f"{memory}[{i}]" for i in at]
    return [f"{memory}[{at[0]} + {k}]" if k else f"{memory}[{at[0]}]" for k in range(lanes)]

  def spread(self, u: UOp, lanes: int) -> list[str]:
    found = self.lanes[u]
    return found if len(found) == lanes else found * lanes

  def load(self, u: UOp) -> None:
    texts = self.elements(u.src[0], u.dtype.count)
    if len(u.src) > 1:
      gates, others = self.spread(u.src[1], u.dtype.count), self.spread(u.src[2], u.dtype.count)
      texts = [f"{x} if {g} else {a}" for x, g, a in zip(texts, gates, others)]
    self.define(u, texts)

  def store(self, u: UOp) -> None:
    values = self.lanes[u.src[1]]
    texts = [f"{x} = {v}" for x, v in zip(self.elements(u.src[0], len(values)), values)]
    if len(u.src) > 2: texts = [f"if {g}: {x}" for x, g in zip(texts, self.spread(u.src[2], len(values)))]
    for text in texts: self.line(text)

  def accumulator(self, u: UOp) -> None: self.define(u, self.lanes[u.src[0]], "a")

  def assign(self, u: UOp) -> None:
    for name, value in zip(self.lanes[u.src[0]], self.lanes[u.src[1]]): self.line(f"{name} = {value}")
    self.lanes[u] = self.lanes[u.src[0]]

  def broadcast(self, u: UOp) -> None: self.alias(u, self.lanes[u.src[0]] * u.dtype.count)
  def vectorize(self, u: UOp) -> None: self.alias(u, [self.lanes[s][0] for s in u.src])
  def shuffle(self, u: UOp) -> None:
    lanes = [x for s in u.src for x in self.lanes[s]]
    self.alias(u, [lanes[k] for k in u.arg])
  def lane(self, u: UOp) -> None: self.alias(u, self.lanes[u.src[0]][u.arg:u.arg + u.dtype.count])
  def nothing(self, u: UOp) -> None: pass

_RULES: dict[Ops, Callable[[_Python, UOp], None]] = {
  Ops.CONST: _Python.constant, Ops.PARAM: _Python.param, Ops.DEFINE_VAR: _Python.variable,
  Ops.DEFINE_LOCAL: _Python.local, Ops.RANGE: _Python.range,
  Ops.END: _Python.end, Ops.IF: _Python.condition, Ops.ENDIF: _Python.end, Ops.INDEX: _Python.index,
  Ops.LOAD: _Python.load, Ops.STORE: _Python.store,
  Ops.ACC: _Python.accumulator, Ops.ASSIGN_ACC: _Python.assign, Ops.BROADCAST: _Python.broadcast,
  Ops.VECTORIZE: _Python.vectorize, Ops.SHUFFLE: _Python.shuffle,
  Ops.GEP: _Python.lane, Ops.SINK: _Python.nothing, Ops.NOOP: _Python.nothing, Ops.GROUP: _Python.nothing,
}

def _type(dtype: DType) -> str: return f"dtypes.{ALIASES_BY_TYPE[dtype.scalar()]}"

def literal(u: UOp) -> str:
  """Return a CONST as Python text, rounded or wrapped to its type."""
  value: Any = round_to(u.dtype.scalar())(u.arg)
  if isinstance(value, float) and math.isnan(value): return "math.nan"
  if isinstance(value, float) and math.isinf(value): return "math.inf" if value > 0 else "(-math.inf)"
  return f"({value!r})" if repr(value).startswith("-") else repr(value)

def wrap(text: str, dtype: DType) -> str:
  """Return an integer expression modulo the width of its type."""
  if dtype is dtypes.weakint: return text
  mask, half = (1 << dtype.bitsize) - 1, 1 << (dtype.bitsize - 1)
  return f"({text}) & {mask:#x}" if dtypes.is_unsigned(dtype) else f"(({text}) + {half:#x} & {mask:#x}) - {half:#x}"

def needs_rounding(u: UOp) -> bool:
  """Can the exact result of the expression be outside of the type's values?"""
  scalar, source = u.dtype.scalar(), u.src[0].dtype.scalar()
  if u.op is Ops.CAST: return _cast_rounds(u, source, scalar)
  if scalar in dtypes.fp8_fnuz: return u.op is not Ops.BITCAST  # it has no negative zero, so even NEG rounds
  if u.op in _EXACT or u.op is Ops.BITCAST or scalar is dtypes.bool: return False
  if dtypes.is_float(scalar):
    return scalar is not dtypes.float64 and u.op is not Ops.NEG and not (u.op is Ops.MULACC
                                                                         and scalar is dtypes.float32)
  low, high = exact_bounds(u)
  return bool(low < scalar.min or high > scalar.max)

def exact_bounds(u: UOp) -> tuple[int, int]:
  """Return the bounds of an integer operation before it wraps."""
  bounds = [(int(s.vmin), int(s.vmax)) for s in u.src]
  f: Callable[[int, int], int] | None = {Ops.ADD: int.__add__, Ops.SUB: int.__sub__, Ops.MUL: int.__mul__}.get(u.op)
  if u.op is Ops.NEG: return -bounds[0][1], -bounds[0][0]
  if u.op is Ops.IDIV and bounds[1][0] >= 0: return int(u.dtype.scalar().min), int(u.dtype.scalar().max)
  if f is None: return int(u.dtype.scalar().min) - 1, int(u.dtype.scalar().max) + 1
  corners = [f(a, b) for a in bounds[0] for b in bounds[1]]
  return min(corners), max(corners)

def _cast_rounds(u: UOp, source: DType, target: DType) -> bool:
  if target in (dtypes.bool, dtypes.float64, dtypes.weakint, dtypes.weakfloat): return False
  if dtypes.is_float(target):
    return not (target is dtypes.float32 and (source in _NARROW or not dtypes.is_float(source)))
  if dtypes.is_float(source): return target not in (dtypes.int32, dtypes.int64, dtypes.uint64)
  return bool(u.src[0].vmin < target.min or u.src[0].vmax > target.max)

def _cast(u: UOp, x: str) -> str:
  source, target = u.src[0].dtype.scalar(), u.dtype.scalar()
  if target is dtypes.bool: return x if source is dtypes.bool else f"{x} != 0"
  if dtypes.is_float(target):
    if dtypes.is_float(source): return x
    if target is dtypes.float64: return f"float({x})"
    return f"float({x})" if -(1 << 24) <= u.src[0].vmin and u.src[0].vmax <= 1 << 24 else f"int_to_float32({x})"
  if dtypes.is_float(source):
    if target is dtypes.uint64: return f"float_to_uint64({x})"
    return f"float_to_{'int64' if target in (dtypes.int64, dtypes.uint32, dtypes.weakint) else 'int32'}({x})"
  return f"int({x})" if source is dtypes.bool else x

def _guarded(u: UOp, text: str, low: int, high: int, otherwise: str, operand: str) -> str:
  """Return text, guarded by its replacement for a second operand outside of low..high."""
  if low <= u.src[1].vmin and u.src[1].vmax <= high: return text
  return f"({text} if {low} <= {operand} <= {high} else {otherwise})"

def expression(u: UOp, x: list[str]) -> str:
  """Return one lane of an elementwise operation on the lanes x of its sources, before rounding."""
  op, scalar = u.op, u.dtype.scalar()
  if op is Ops.CAST: return _cast(u, x[0])
  if op is Ops.BITCAST: return f"from_bytes(to_bytes({x[0]}, {_type(u.src[0].dtype)}), {_type(scalar)})"
  if scalar is dtypes.bool and op in _ON_BOOLS: return f"{x[0]} {_ON_BOOLS[op]} {x[1]}"
  if op in _INFIX: return f"{x[0]} {_INFIX[op]} {x[1]}"
  if op is Ops.WHERE: return f"{x[1]} if {x[0]} else {x[2]}"
  if op is Ops.MAX:
    nan = f" or {x[1]} != {x[1]}" if dtypes.is_float(scalar) and not never_nan(u.src[1]) else ""
    return f"{x[1]} if {x[0]} < {x[1]}{nan} else {x[0]}"
  if op is Ops.NEG: return f"not {x[0]}" if scalar is dtypes.bool else f"-{x[0]}"
  if op is Ops.FDIV: return f"{x[0]} / {x[1]} if {x[1]} else divide({x[0]}, {x[1]})"
  if op is Ops.RECIPROCAL: return f"1.0 / {x[0]} if {x[0]} else divide(1.0, {x[0]})"
  if op in (Ops.IDIV, Ops.MOD):
    symbol = "//" if op is Ops.IDIV else "%"
    return (f"{x[0]} {symbol} {x[1]}" if u.src[1].vmin > 0 or u.src[1].vmax < 0 else f"({x[0]} {symbol} {x[1]} if "
            f"{x[1]} else 0)")
  if op is Ops.SHL: return _guarded(u, f"{x[0]} << {x[1]}", 0, scalar.bitsize - 1, "0", x[1])
  if op is Ops.SHR: return _guarded(u, f"{x[0]} >> {x[1]}", 0, scalar.bitsize - 1, f"{x[0]} >> {scalar.bitsize}", x[1])
  if op is Ops.MULACC: return _fused(scalar, x)
  if op is Ops.TRUNC and dtypes.is_int(scalar): return x[0]
  if op in _CALLS: return f"{_CALLS[op]}({', '.join(x)})"
  raise CompileError(f"device PYTHON has no {op.name} of {scalar}")

def _fused(dtype: DType, x: list[str]) -> str:
  if dtype is dtypes.float64: return f"fused_float64({', '.join(x)})"
  if dtypes.is_float(dtype): return f"fused_float32({', '.join(x)})"
  return f"{x[0]} * {x[1]} + {x[2]}"
