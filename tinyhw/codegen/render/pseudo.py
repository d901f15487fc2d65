"""Render a Program as pseudo-code to read, for DEBUG=4.

Loops are named by their kind, vectors have their number of lanes, gates are written out.
"""
from __future__ import annotations
from collections import Counter
from collections.abc import Callable

from tinyhw.dtype import ALIASES_BY_TYPE, DType, dtypes
from tinyhw.helpers import strip_parens
from tinyhw.uop.enums import AxisType, GroupOp, Ops
from tinyhw.uop.ops import UOp
from tinyhw.uop.program import Program
from tinyhw.uop.text import SYMBOLS

_LETTERS: dict[AxisType, str] = {
  AxisType.GLOBAL: "g", AxisType.LOCAL: "l", AxisType.LOOP: "i", AxisType.REDUCE: "r", AxisType.UPCAST: "u",
  AxisType.UNROLL: "k",
  AxisType.VECTOR: "v", AxisType.STAGE: "s",
}
_MOST_COLUMNS = 100  # a longer expression gets a name

def render(program: Program) -> str:
  """Return program as text for people: expressions are nested where a value is used once, loops are indented."""
  return _Pseudo(program).source()

def type_name(dtype: DType) -> str:
  """`f32`, `i64`, `f32x8`."""
  short = ALIASES_BY_TYPE[dtype.scalar()].replace("uint", "u").replace("bfloat",
                                                                       "bf").replace("float", "f").replace("int", "i")
  return short if dtype.count == 1 else f"{short}x{dtype.count}"

class _Pseudo:
  """The lines written so far, and the text of each value: a name, or an expression in parentheses."""
  def __init__(self, program: Program):
    self.program = program
    self.lines: list[str] = []
    self.depth = 1
    self.text: dict[UOp, str] = {}
    self.uses = Counter(s for u in program.uops for s in u.src)
    self.home: dict[UOp, int] = {}  # the block in which a value is computed
    self.used_in: dict[UOp, int] = {}
    self.count = 0
    block, stack, number = 0, [0], 0
    for u in program.uops:
      for s in u.src: self.used_in[s] = block
      self.home[u] = block
      if u.op in (Ops.RANGE, Ops.IF):
        number += 1
        stack.append(number)
      elif u.op in (Ops.END, Ops.ENDIF): stack.pop()
      block = stack[-1]

  def source(self) -> str:
    for u in self.program.uops:
      rule = _RULES.get(u.op, _Pseudo.operation)
      rule(self, u)
    written = self.program.written
    arguments = [f"{self.text[p]}: {type_name(p.dtype)}[{p.arg[1]}]{'' if p.arg[0] in written else ' const'}"
                 for p in self.program.params]
    arguments += [f"{v.arg[0]}: {v.arg[1]}..{v.arg[2]}" for v in self.program.variables]
    return "\n".join([f"kernel {self.program.name}({', '.join(arguments)}):"] + self.lines)

  def line(self, text: str) -> None: self.lines.append("  " * self.depth + text)

  def value(self, u: UOp, text: str, keep: bool = False) -> None:
    """Nest the expression where it is used, or give it a name.

    It gets a name if it is used more than once, used in another block, long, or if the time of its computation matters
    (keep).
    """
    if not keep and self.uses[u] == 1 and self.used_in[u] == self.home[u] and len(text) <= _MOST_COLUMNS:
      self.text[u] = text
      return
    self.count += 1
    self.text[u] = f"x{self.count}" if u.dtype.count == 1 else f"v{u.dtype.count}_{self.count}"
    self.line(f"{self.text[u]} = {strip_parens(text)}")

  def operation(self, u: UOp) -> None:
    x = [self.text[s] for s in u.src]
    if u.op in SYMBOLS: text = f"({x[0]} {SYMBOLS[u.op]} {x[1]})"
    elif u.op is Ops.WHERE: text = f"({x[1]} if {strip_parens(x[0])} else {x[2]})"
    elif u.op is Ops.MULACC: text = f"fma({', '.join(map(strip_parens, x))})"
    elif u.op is Ops.CAST: text = f"{type_name(u.dtype)}({strip_parens(x[0])})"
    elif u.op is Ops.BITCAST: text = f"bits_as_{type_name(u.dtype)}({strip_parens(x[0])})"
    elif u.op is Ops.BROADCAST:
      text = x[0] if u.src[0].op is Ops.CONST else f"{type_name(u.dtype)}({strip_parens(x[0])})"
    elif u.op is Ops.VECTORIZE: text = f"[{', '.join(map(strip_parens, x))}]"
    elif u.op is Ops.GEP: text = f"{x[0]}.{u.arg}" if u.dtype.count == 1 else f"{x[0]}[{u.arg}:{u.arg + u.dtype.count}]"
    elif u.op is Ops.SHUFFLE: text = f"lanes{u.arg} of {', '.join(map(strip_parens, x))}"
    else: text = f"{u.op.name.lower()}({', '.join(map(strip_parens, x))}{f', {u.arg}' if u.arg is not None else ''})"
    changing = any(s.op is Ops.ACC for s in u.src)
    self.value(u, text, keep=changing and u.op not in GroupOp.Elementwise)

  def name(self, u: UOp) -> None:
    if u.op is Ops.PARAM: self.text[u] = f"data{u.arg[0]}"
    elif u.op is Ops.DEFINE_VAR: self.text[u] = str(u.arg[0])
    else:
      self.text[u] = f"local{u.arg[0]}"
      self.line(f"{self.text[u]} = {type_name(u.dtype)}[{u.arg[1]}]")

  def constant(self, u: UOp) -> None:
    self.text[u] = f"{u.arg:.9g}" if dtypes.is_float(u.dtype) and u.dtype.scalar() is not dtypes.float64 else str(u.arg)

  def range(self, u: UOp) -> None:
    self.text[u] = f"{_LETTERS[u.arg[1]]}{u.arg[0]}"
    kind = {AxisType.GLOBAL: "grid", AxisType.LOCAL: "lanes"}.get(u.arg[1], "range")
    self.line(f"for {self.text[u]} in {kind}({strip_parens(self.text[u.src[0]])}):")
    self.depth += 1

  def condition(self, u: UOp) -> None:
    self.line(f"if {strip_parens(self.text[u.src[0]])}:")
    self.depth += 1

  def end(self, u: UOp) -> None: self.depth -= 1

  def index(self, u: UOp) -> None: self.text[u] = f"{self.text[u.src[0]]}[{strip_parens(self.text[u.src[1]])}]"

  def element(self, u: UOp, lanes: int) -> str:
    """Return an element, or this many from it on: `data0[i:+8]`."""
    return self.text[u] if lanes == 1 or u.src[1].dtype.count > 1 else f"{self.text[u][:-1]}:+{lanes}]"

  def load(self, u: UOp) -> None:
    text = self.element(u.src[0], u.dtype.count)
    if len(u.src) > 1: text = f"({text} if {strip_parens(self.text[u.src[1]])} else {self.text[u.src[2]]})"
    self.value(u, text, keep=u.src[0].src[0].arg[0] in self.program.written or u.src[0].src[0].op is Ops.DEFINE_LOCAL)

  def store(self, u: UOp) -> None:
    gate = f"if {strip_parens(self.text[u.src[2]])}: " if len(u.src) > 2 else ""
    self.line(f"{gate}{self.element(u.src[0], u.src[1].dtype.count)} = {strip_parens(self.text[u.src[1]])}")

  def accumulator(self, u: UOp) -> None:
    self.count += 1
    self.text[u] = f"acc{u.arg}" if isinstance(u.arg, int) else f"acc{self.count}"
    lanes = f".{u.dtype.count}" if u.dtype.count > 1 else ""
    self.line(f"{self.text[u]}{lanes} = {strip_parens(self.text[u.src[0]])}")

  def assign(self, u: UOp) -> None:
    self.line(f"{self.text[u.src[0]]} = {strip_parens(self.text[u.src[1]])}")
    self.text[u] = self.text[u.src[0]]

  def async_copy(self, u: UOp) -> None:
    gate = f"if {strip_parens(self.text[u.src[2]])}: " if len(u.src) > 2 else ""
    self.line(f"{gate}{self.element(u.src[0], u.arg)} <- "
              f"{self.text[u.src[1]] if u.src[1].op is Ops.TENSOR_BOX else self.element(u.src[1], u.arg)}")

  def box(self, u: UOp) -> None:
    sizes, first = "x".join(map(str, u.arg.sizes)), ", ".join(strip_parens(self.text[s]) for s in u.src[1:])
    self.text[u] = f"box {sizes} of {self.text[u.src[0]]} at ({first})"

  def barrier(self, u: UOp) -> None: self.line("barrier")
  def signals(self, u: UOp) -> None: self.line(f"signals {self.text[u.src[0]]}{' end' if u.arg else ''}")

  def commit(self, u: UOp) -> None:
    gate = f"if {strip_parens(self.text[u.src[1]])}: " if len(u.src) > 1 else ""
    self.line(f"{gate}commit to {self.text[u.src[0]]}" if u.src else "commit")

  def wait(self, u: UOp) -> None:
    phase = f" for phase {strip_parens(self.text[u.src[1]])} of {self.text[u.src[0]]}," if u.src else ""
    self.line(f"wait{phase} until {u.arg if isinstance(u.arg, int) else ' and '.join(map(str, u.arg))} left")
  def nothing(self, u: UOp) -> None: pass

_RULES: dict[Ops, Callable[[_Pseudo, UOp], None]] = {
  Ops.CONST: _Pseudo.constant, Ops.PARAM: _Pseudo.name, Ops.DEFINE_VAR: _Pseudo.name, Ops.DEFINE_LOCAL: _Pseudo.name,
  Ops.RANGE: _Pseudo.range,
  Ops.END: _Pseudo.end, Ops.IF: _Pseudo.condition, Ops.ENDIF: _Pseudo.end, Ops.INDEX: _Pseudo.index,
  Ops.LOAD: _Pseudo.load,
  Ops.STORE: _Pseudo.store, Ops.ACC: _Pseudo.accumulator, Ops.ASSIGN_ACC: _Pseudo.assign, Ops.BARRIER: _Pseudo.barrier,
  Ops.SINK: _Pseudo.nothing,
  Ops.NOOP: _Pseudo.nothing, Ops.GROUP: _Pseudo.nothing, Ops.ASYNC_COPY: _Pseudo.async_copy, Ops.COMMIT: _Pseudo.commit,
  Ops.WAIT: _Pseudo.wait,
  Ops.TENSOR_BOX: _Pseudo.box, Ops.SIGNALS: _Pseudo.signals,
}
