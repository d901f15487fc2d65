"""The record of a language that Programs are rendered in: its words, and a function for its arithmetic.

A new language is a record of this kind, and a row of RENDERERS (docs/hardware/new-accelerator.md). The skeleton that
reads it is source.py. Texts with braces are forms for `str.format`; their fields are in the comments.
"""
from __future__ import annotations
from collections.abc import Callable, Mapping

from tinyhw.codegen.render.source import Rule, SourceText
from tinyhw.dtype import DType
from tinyhw.named_tuple import NamedTuple
from tinyhw.uop.enums import AxisType, Ops
from tinyhw.uop.ops import UOp
from tinyhw.uop.program import Program

class VectorSyntax(NamedTuple):
  """VectorSyntax of a language.

  - lane(dtype, value, k): one lane.
  - join(source, dtype, lanes): a vector of them.
  - is_whole(dtype, indices, gates): whether one access loads or stores such a vector. indices, gates: lanes of the
    index and of the gate.
  - load(source, place, dtype), store(source, place, value): that access, an expression and a statement.
  - choice: a vector behind a scalar gate (gate, value, other, type).
  """
  lane: Callable[[DType, str, int], str]
  join: Callable[[SourceText, DType, list[str]], str]
  is_whole: Callable[[DType, int, int], bool]
  load: Callable[[SourceText, UOp, DType], str]
  store: Callable[[SourceText, UOp, UOp], str]
  choice: str

def plain(text: str) -> str: return text
def as_loaded(dtype: DType, text: str) -> str: return text

class Dialect(NamedTuple):
  """A language of source text.

  - name: for errors.
  - head(source), tail: the lines before and after the body.
  - type(source, dtype), literal(u): of values; elements of memory have the type of the scalar.
  - compute(source, u): define an elementwise operation. others: the same for operations without a rule.
  - define(source, u, texts): give a value its text, where it does not get a variable by `declaration`.
  - loaded(dtype, text): an element of memory as a value. bare(text): an expression where it stands alone.
  - vectors: None: each lane is a value of its own.
  - barrier, exchange: empty where lanes of a workgroup do not exist.
  - rules: operations that only this language has, or writes in a way of its own.
  """
  name: str
  head: Callable[[SourceText], list[str]]
  type: Callable[[SourceText, DType], str]
  literal: Callable[[UOp], str]
  compute: Rule
  declaration: str                    # type, name, value
  assignment: str                     # place, value
  choice: str                         # gate, value, other
  guard: str                          # gate, statement
  loop: str                           # type, name, end
  condition: str                      # gate
  param_name: str                     # slot or number
  param: str                          # type, name, position
  variable_name: str                  # word or number
  variable: str                       # type, name, position among all arguments, index among variables
  local_name: str                     # id or number
  local: str                          # type, name, size, offset in bytes
  loops: Mapping[AxisType, str] = {}  # as `loop`, for the grid and for lanes
  loop_name: str = "i{id}_{number}"   # id, number, letter
  close: str = "}"                    # the end of a block
  empty: str = ""                     # the first line of a block
  tail: tuple[str, ...] = ("",)
  vectors: VectorSyntax | None = None
  barrier: str = ""
  exchange: str = ""                  # value, distance
  define: Callable[[SourceText, UOp, list[str]], None] | None = None
  loaded: Callable[[DType, str], str] = as_loaded
  bare: Callable[[str], str] = plain
  others: Rule | None = None
  rules: Mapping[Ops, Rule] = {}

  def render(self, program: Program) -> str:
    """Return a Program as source. Raises CompileError for operations that the language does not have."""
    return SourceText(program, self).text()
