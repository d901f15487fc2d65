"""Reader for the text of graphs and programs that text.py writes.

Every line is a Python call, so Python's own parser does the first half.
"""
from __future__ import annotations
import ast
import math
from typing import Any
from collections.abc import Mapping

from tinyhw.dtype import DType, to_dtype
from tinyhw.errors import DTypeError, ParseError
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp

class _Reader:
  """State of the reader: nodes by name, their order, and the classes that arguments may use."""
  def __init__(self, known: Mapping[str, type]):
    self.known = known
    self.nodes: dict[str, UOp] = {}
    self.order: list[UOp] = []

  def statement(self, statement: ast.stmt) -> Any:
    """Read one line. Return its node, or the Program."""
    if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
      name = statement.targets[0].id
      node = self.nodes[name] = self.node(statement.value)
      if not name.startswith("x"): self.order.append(node)
      return node
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Name):
      self.order.append(self.named(statement.value))
      return self.order[-1]
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call): return self.program(statement.value)
    raise ParseError("neither a node nor a program; a node is `u2 = ADD(float32, u0, u1)`")

  def node(self, call: ast.expr) -> UOp:
    if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.args):
      raise ParseError("a node is written OP(dtype, sources, arg=...)")
    if call.func.id not in Ops.__members__: raise ParseError(f"no operation is named {call.func.id}")
    given = {k.arg: self.value(k.value) for k in call.keywords}
    if set(given) - {"arg", "tag"}: raise ParseError(f"a node has arg= and tag=, not {', '.join(map(str, given))}")
    src = tuple([self.named(a) for a in call.args[1:]])
    return UOp(Ops[call.func.id], self.dtype(call.args[0]), src, given.get("arg"), given.get("tag"))

  def program(self, call: ast.Call) -> Any:
    name = call.func.id if isinstance(call.func, ast.Name) else ast.unparse(call.func)
    make = self.lookup(name)
    try: return make(uops=tuple(self.order), **{str(k.arg): self.value(k.value) for k in call.keywords})
    except TypeError as e: raise ParseError(f"{name}: {e}") from None

  def named(self, e: ast.expr) -> UOp:
    if not isinstance(e, ast.Name): raise ParseError(f"expected the name of a node, not {ast.unparse(e)}")
    if e.id not in self.nodes: raise ParseError(f"unknown name {e.id}; a node is defined before it is used")
    return self.nodes[e.id]

  def dtype(self, e: ast.expr) -> DType:
    if isinstance(e, ast.Name): return to_dtype(e.id)
    if isinstance(e, ast.Call) and isinstance(e.func, ast.Attribute) and e.func.attr == "vec" and len(e.args) == 1:
      return self.dtype(e.func.value).vec(self.value(e.args[0]))
    if isinstance(e, ast.Attribute) and isinstance(e.value, ast.Name) and e.value.id == "dtypes":
      return to_dtype(e.attr)
    raise ParseError(f"{ast.unparse(e)} is no type; write float32 or float32.vec(4)")

  def lookup(self, name: str) -> Any:
    if name not in self.known:
      raise ParseError(f"{name} is not known here; import the module that defines it (it calls text.register)")
    return self.known[name]

  def value(self, e: ast.expr) -> Any:
    """Convert an argument from its syntax tree."""
    if isinstance(e, ast.Constant): return e.value
    if isinstance(e, ast.Tuple): return tuple([self.value(x) for x in e.elts])
    if isinstance(e, ast.UnaryOp) and isinstance(e.op, ast.USub): return -self.value(e.operand)
    if isinstance(e, ast.Name): return _NAMES[e.id] if e.id in _NAMES else self.named(e)
    if isinstance(e, ast.Attribute) and isinstance(e.value, ast.Name) and e.value.id != "dtypes":
      found = getattr(self.lookup(e.value.id), e.attr, None)
      if found is None: raise ParseError(f"{e.value.id} has no {e.attr}")
      return found
    if isinstance(e, ast.Call) and isinstance(e.func, ast.Name):
      if e.func.id == "frozenset": return frozenset(self.value(e.args[0]))
      return self.lookup(e.func.id)(**{str(k.arg): self.value(k.value) for k in e.keywords})
    return self.dtype(e)

_NAMES = {"inf": math.inf, "nan": math.nan}

def parse_text(text: str, known: Mapping[str, type]) -> Any:
  """Read the graph or Program of the last line. known: classes that arguments may use, by name.

  Raises ParseError with the line.
  """
  try: body = ast.parse(text).body
  except SyntaxError as e:
    raise ParseError(f"line {e.lineno}: {e.msg}; a line is `u2 = ADD(float32, u0, u1)`") from None
  reader = _Reader(known)
  last: Any = None
  for statement in body:
    try: last = reader.statement(statement)
    except (ParseError, DTypeError, TypeError) as e:
      raise ParseError(f"line {statement.lineno}: {getattr(e, 'message', e)}") from None
  if last is None: raise ParseError("line 1: empty; write at least one node")
  return last
