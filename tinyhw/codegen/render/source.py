"""The skeleton of all source renderers: it walks a Program and writes lines. A `Dialect` (dialect.py) is the record of
a language.

Input: a Program. Output: its text. The skeleton knows what is the same in all languages: names and numbers of values,
blocks, elements of memory, gates, moves of lanes, variables. The record has the words of the language, and a function
for its arithmetic. A value is the text of one expression, or one for each lane in languages without vectors. Cost: one
visit of each uop.
"""
from __future__ import annotations
from collections import Counter
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING

from tinyhw.dtype import DType
from tinyhw.errors import CompileError
from tinyhw.uop.enums import AxisType, GroupOp, Ops
from tinyhw.uop.ops import UOp
from tinyhw.uop.program import Program
if TYPE_CHECKING: from tinyhw.codegen.render.dialect import Dialect, VectorSyntax

Rule = Callable[["SourceText", UOp], None]

LETTERS: dict[AxisType, str] = {
  AxisType.GLOBAL: "g", AxisType.LOCAL: "l", AxisType.LOOP: "i", AxisType.REDUCE: "r", AxisType.UPCAST: "u",
  AxisType.UNROLL: "k", AxisType.VECTOR: "v", AxisType.STAGE: "s", AxisType.ORDERED: "o",
}

class SourceText:
  """The lines written so far, and the text of each value.

  values: one text, or one for each lane. places: the memory and the index of an INDEX. needed: declarations before the
  function, by name. helpers: functions of the language's prelude that the source calls.
  """
  def __init__(self, program: Program, dialect: Dialect):
    self.program, self.dialect = program, dialect
    self.lines: list[str] = []
    self.depth = 1
    self.values: dict[UOp, list[str]] = {}
    self.places: dict[UOp, tuple[str, UOp]] = {}
    self.needed: dict[str, str] = {}
    self.helpers: dict[str, None] = {}
    self.count = 0

  def text(self) -> str:
    """Return the whole source. Raises CompileError for an operation that the language does not have."""
    rules = {**RULES, **self.dialect.rules}
    for u in self.program.uops:
      rule = rules.get(u.op)
      if rule is not None: rule(self, u)
      elif u.op in GroupOp.Elementwise: self.dialect.compute(self, u)
      elif self.dialect.others is not None: self.dialect.others(self, u)
      else: raise self.missing(u.op)
    return "\n".join([*self.dialect.head(self), *self.lines, *self.dialect.tail])

  def missing(self, op: Ops) -> CompileError:
    """Return the error for an operation of workgroups or matrix units that the language does not have."""
    return CompileError(f"{self.program.name}: {self.dialect.name} has no {op.name}; compile without "
                        f"{'matrix units' if self.dialect.barrier else 'workgroups and matrix units'}")

  @cached_property
  def uses(self) -> Counter[UOp]:
    """How often each uop is a source."""
    return Counter(s for u in self.program.uops for s in u.src)

  @cached_property
  def only_stored(self) -> set[UOp]:
    """Values that only go to a buffer, once."""
    return {u.src[1] for u in self.program.uops if u.op is Ops.STORE and u.src[0].src[0].op is Ops.PARAM
            and self.uses[u.src[1]] == 1}

  @cached_property
  def blocks(self) -> tuple[dict[UOp, int], dict[UOp, int]]:
    """The block in which a value is computed, and the last one in which it is used."""
    home: dict[UOp, int] = {}
    used: dict[UOp, int] = {}
    block, stack, number = 0, [0], 0
    for u in self.program.uops:
      for s in u.src: used[s] = block
      home[u] = block
      if u.op in (Ops.RANGE, Ops.IF):
        number += 1
        stack.append(number)
      elif u.op in (Ops.END, Ops.ENDIF): stack.pop()
      block = stack[-1]
    return home, used

  # ***** lines and names *****

  def line(self, text: str) -> None: self.lines.append("  " * self.depth + text)

  def number(self) -> int:
    """Return the number of the next name: of values where each lane has a name, else of names."""
    if self.dialect.vectors is None: return len(self.values)
    self.count += 1
    return self.count

  def named(self, form: str, **words: object) -> str:
    """Return a name of a form such as "data{slot}" or "n{number}"."""
    return form.format(number=self.number(), **words) if "{number}" in form else form.format(**words)

  def define(self, u: UOp, texts: list[str], prefix: str = "v") -> None:
    """Give u's texts variables, or what the language has instead."""
    if self.dialect.define is not None: return self.dialect.define(self, u, texts)
    name = self.named(prefix + "{number}")
    names = [name] if len(texts) == 1 else [f"{name}_{k}" for k in range(len(texts))]
    kind = self.dialect.type(self, u.dtype)
    for n, text in zip(names, texts): self.line(self.dialect.declaration.format(type=kind, name=n, value=text))
    self.values[u] = names

  def value(self, u: UOp) -> str:
    """Return the text of a scalar, or of a vector in languages that have them."""
    return self.values[u][0]

  def bare(self, u: UOp) -> str: return self.dialect.bare(self.value(u))

  def lane(self, u: UOp, k: int) -> str:
    """Return the text of one lane. A scalar is the same in all lanes."""
    texts = self.values[u]
    if u.dtype.count == 1 or len(texts) > 1: return texts[0 if u.dtype.count == 1 else k]
    assert self.dialect.vectors is not None, "without vectors each lane has a text"
    return self.dialect.vectors.lane(u.dtype, texts[0], k)

  def join(self, dtype: DType, lanes: list[str]) -> list[str]:
    """Return the texts of a value from those of its lanes."""
    vectors = self.dialect.vectors
    return lanes if len(lanes) == 1 or vectors is None else [vectors.join(self, dtype, lanes)]

  # ***** values that are moved *****

  def constant(self, u: UOp) -> None:
    text = self.dialect.literal(u)
    self.values[u] = [text] if self.dialect.vectors else [text] * u.dtype.count
    if self.dialect.vectors and u.dtype.count > 1: self.define(u, self.join(u.dtype, [text] * u.dtype.count))

  def move(self, u: UOp, lanes: list[str]) -> None:
    """Define u as lanes of other values. Without vectors their texts are enough, unless they are variables that change.
    """
    if self.dialect.vectors or any(s.op is Ops.ACC for s in u.src): self.define(u, self.join(u.dtype, lanes))
    else: self.values[u] = lanes

  def broadcast(self, u: UOp) -> None: self.move(u, [self.value(u.src[0])] * u.dtype.count)
  def vectorize(self, u: UOp) -> None: self.move(u, [self.value(s) for s in u.src])
  def part(self, u: UOp) -> None: self.move(u, [self.lane(u.src[0], u.arg + k) for k in range(u.dtype.count)])
  def shuffle(self, u: UOp) -> None:
    n = u.src[0].dtype.count
    self.move(u, [self.lane(u.src[k // n], k % n) for k in u.arg])

  # ***** arguments and memory *****

  def param(self, u: UOp) -> None:
    name, params = self.named(self.dialect.param_name, slot=u.arg[0]), self.program.params
    kind = self.dialect.type(self, u.dtype)
    if self.dialect.param: self.line(self.dialect.param.format(type=kind, name=name, position=params.index(u)))
    self.values[u] = [name]

  def variable(self, u: UOp) -> None:
    name, index = self.named(self.dialect.variable_name, word=u.arg[0]), self.program.variables.index(u)
    if self.dialect.variable:
      self.line(self.dialect.variable.format(type=self.dialect.type(self, u.dtype), name=name, index=index,
                                             position=len(self.program.params) + index))
    self.values[u] = [name]

  def local(self, u: UOp) -> None:
    name = self.named(self.dialect.local_name, id=u.arg[0])
    self.line(self.dialect.local.format(type=self.dialect.type(self, u.dtype), name=name, size=u.arg[1],
                                        offset=self.program.local_offsets[u]))
    self.values[u] = [name]

  def index(self, u: UOp) -> None: self.places[u] = self.value(u.src[0]), u.src[1]

  def element(self, place: UOp, k: int) -> str:
    """Return the text of element k at an INDEX: an adjacent one where the index is a scalar."""
    memory, at = self.places[place]
    if at.dtype.count > 1: return f"{memory}[{self.lane(at, k)}]"
    return f"{memory}[{self.bare(at)} + {k}]" if k else f"{memory}[{self.bare(at)}]"

  def whole(self, u: UOp, dtype: DType, gate: UOp | None) -> VectorSyntax | None:
    """Return the language's vectors if one access loads or stores a vector of this type."""
    vectors, gates = self.dialect.vectors, 1 if gate is None else gate.dtype.count
    if vectors is None or dtype.count == 1: return None
    return vectors if vectors.is_whole(dtype, u.src[0].src[1].dtype.count, gates) else None

  def load(self, u: UOp) -> None:
    gate = u.src[1] if len(u.src) > 1 and u.arg is None else None
    vectors = self.whole(u, u.dtype, gate)
    if vectors is not None:
      text = vectors.load(self, u.src[0], u.dtype)
      if u.arg is not None:     # of a matrix, in pseudo-code alone
        later = "".join(f", prefetch {u.arg.prefetched} at {self.element(s, 0)}" for s in u.src[1:])
        text = f"rows({text}, stride={u.arg.stride}{later})"
      if gate is not None:
        text = vectors.choice.format(gate=self.bare(gate), value=text, other=self.value(u.src[2]),
                                     type=self.dialect.type(self, u.dtype))
      return self.define(u, [text])
    texts = [self.dialect.loaded(u.dtype.scalar(), self.element(u.src[0], k)) for k in range(u.dtype.count)]
    if gate is not None:
      texts = [self.dialect.choice.format(gate=self.dialect.bare(self.lane(gate, k)), value=x,
                                          other=self.lane(u.src[2], k)) for k, x in enumerate(texts)]
    self.define(u, self.join(u.dtype, texts))

  def store(self, u: UOp) -> None:
    value, gate = u.src[1], u.src[2] if len(u.src) > 2 else None
    vectors = self.whole(u, value.dtype, gate)
    if vectors is not None: return self.statement(vectors.store(self, u.src[0], value), gate)
    for k in range(value.dtype.count):
      self.statement(self.dialect.assignment.format(place=self.element(u.src[0], k),
                                                    value=self.dialect.bare(self.lane(value, k))), gate, k)

  def statement(self, text: str, gate: UOp | None, k: int = 0) -> None:
    """Write a statement that is done where lane k of the gate is true."""
    if gate is not None:
      text = self.dialect.guard.format(gate=self.dialect.bare(self.lane(gate, k)), statement=text)
    self.line(text)

  # ***** blocks and variables *****

  def open(self, text: str) -> None:
    self.line(text)
    self.depth += 1
    if self.dialect.empty: self.line(self.dialect.empty)

  def range(self, u: UOp) -> None:
    kind = u.arg[1]
    form = self.dialect.loops.get(kind) or (None if kind is AxisType.LOCAL else self.dialect.loop)
    if form is None: raise self.missing(Ops.BARRIER)
    self.values[u] = [self.named(self.dialect.loop_name, id=u.arg[0], letter=LETTERS[kind])]
    self.open(form.format(type=self.dialect.type(self, u.dtype), name=self.value(u), end=self.bare(u.src[0])))

  def condition(self, u: UOp) -> None: self.open(self.dialect.condition.format(gate=self.bare(u.src[0])))

  def end(self, u: UOp) -> None:
    self.depth -= 1
    if self.dialect.close: self.line(self.dialect.close)

  def accumulator(self, u: UOp) -> None: self.define(u, self.values[u.src[0]], "a")

  def assign(self, u: UOp) -> None:
    for name, value in zip(self.values[u.src[0]], self.values[u.src[1]]):
      self.line(self.dialect.assignment.format(place=name, value=self.dialect.bare(value)))
    self.values[u] = self.values[u.src[0]]

  def barrier(self, u: UOp) -> None:
    if not self.dialect.barrier: raise self.missing(u.op)
    self.line(self.dialect.barrier)

  def exchange(self, u: UOp) -> None:
    if not self.dialect.exchange: raise self.missing(u.op)
    self.define(u, [self.dialect.exchange.format(value=self.value(u.src[0]), distance=u.arg)])

  def nothing(self, u: UOp) -> None: pass

RULES: dict[Ops, Rule] = {
  Ops.CONST: SourceText.constant, Ops.PARAM: SourceText.param, Ops.DEFINE_VAR: SourceText.variable,
  Ops.DEFINE_LOCAL: SourceText.local, Ops.RANGE: SourceText.range, Ops.END: SourceText.end,
  Ops.IF: SourceText.condition, Ops.ENDIF: SourceText.end, Ops.INDEX: SourceText.index, Ops.LOAD: SourceText.load,
  Ops.STORE: SourceText.store, Ops.ACC: SourceText.accumulator, Ops.ASSIGN_ACC: SourceText.assign,
  Ops.BARRIER: SourceText.barrier, Ops.EXCHANGE: SourceText.exchange, Ops.BROADCAST: SourceText.broadcast,
  Ops.VECTORIZE: SourceText.vectorize, Ops.GEP: SourceText.part, Ops.SHUFFLE: SourceText.shuffle,
  **dict.fromkeys((Ops.SINK, Ops.NOOP, Ops.GROUP), SourceText.nothing),
}
