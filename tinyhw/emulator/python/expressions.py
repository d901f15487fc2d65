"""Expressions of the notation as Python text. amd/python and nvidia/python.py make functions of them, and define
operands.

Integers are computed without wrapping. A `PythonExpression` has bounds, and a mask is applied only where the value
could be outside its type and the difference would be visible. Floats are doubles, rounded where their type is narrower.
The text calls functions of numerics.py, and those of the card.
"""
from __future__ import annotations

from tinyhw.emulator.notation import FUNCTIONS, ExpressionNode, NotationError, ValueType
from tinyhw.named_tuple import NamedTuple

MOST_SHIFT = 128   # bits; a shift by more would only make long numbers
ROUND = {"f32": "round_float32", "f16": "round_float16", "bf16": "round_bfloat16"}

class PythonExpression(NamedTuple):
  """A piece of Python: an integer within low..high, or a float that is `rounded` to its type or not yet."""
  text: str
  low: int = 0
  high: int = 0
  rounded: bool = True

class Expressions:
  """Text of nodes. locals: values that the semantics have named."""
  locals: dict[str, PythonExpression]

  def read(self, node: ExpressionNode) -> PythonExpression:
    """Return an operand as a type, or one of the names without a type."""
    raise NotImplementedError

  def exact(self, node: ExpressionNode) -> str:
    """Return the value, wrapped or rounded to its type."""
    found = self.value(node)
    return self.rounded(found, node.type) if node.type.kind == "f" else self.wrapped(found, node.type)

  def wrapped(self, value: PythonExpression, kind: ValueType) -> str:
    """Wrap an integer to its type."""
    if kind.kind == "b" or value.low >= kind.low and value.high <= kind.high: return value.text
    mask = (1 << kind.bits) - 1
    if kind.kind == "u": return f"({value.text} & {mask:#x})"
    half = 1 << kind.bits - 1
    return f"(({value.text} + {half:#x} & {mask:#x}) - {half:#x})"

  def rounded(self, value: PythonExpression, kind: ValueType) -> str:
    """Round a float to its type."""
    return value.text if value.rounded or kind.name == "f64" else f"{ROUND[kind.name]}({value.text})"

  def value(self, node: ExpressionNode) -> PythonExpression:
    """Return the value of a node, not wrapped or rounded yet."""
    if node.op == "const":
      assert isinstance(node.value, (int, float)), "a constant is a number"
      if isinstance(node.value, float): return PythonExpression(f"({node.value!r})")
      return PythonExpression(repr(node.value), int(node.value), int(node.value))
    if node.op == "local": return self.locals[str(node.value)]
    if node.op == "read": return self.read(node)
    if node.op == "convert": return self.convert(node)
    if node.op == "bits": return self.bits(node)
    if node.op == "call": return self.call(node)
    if node.op == "select": return self.select(node)
    if node.op in ("<", "<=", ">", ">=", "==", "!=", "and", "or"):
      return PythonExpression(f"({f' {node.op} '.join(self.exact(a) for a in node.args)})", 0, 1)
    if node.op == "not": return PythonExpression(f"(not {self.exact(node.args[0])})", 0, 1)
    return self.float_operation(node) if node.type.kind == "f" else self.integer_operation(node)

  def select(self, node: ExpressionNode) -> PythonExpression:
    """Return `a if c else b`. Floats are rounded first, since one may be rounded and the other not."""
    test, yes, no = self.exact(node.args[0]), self.value(node.args[1]), self.value(node.args[2])
    texts = yes.text, no.text
    if node.type.kind == "f": texts = self.rounded(yes, node.type), self.rounded(no, node.type)
    return PythonExpression(f"({texts[0]} if {test} else {texts[1]})", min(yes.low, no.low), max(yes.high, no.high))

  def float_operation(self, node: ExpressionNode) -> PythonExpression:
    """Apply one operation to rounded operands. The result is not rounded yet, unless it is exact."""
    texts = [self.exact(a) for a in node.args]
    if node.op == "neg": return PythonExpression(f"(-{texts[0]})")
    if node.op == "/": return PythonExpression(f"divide({texts[0]}, {texts[1]})", rounded=False)
    return PythonExpression(f"({texts[0]} {node.op} {texts[1]})", rounded=False)

  def integer_operation(self, node: ExpressionNode) -> PythonExpression:
    """Apply an integer operation. Sums and products may leave the type: the low bits do not depend on that, but right
    shifts do.
    """
    values = [self.value(a) for a in node.args]
    a = values[0]
    if node.op == "neg": return PythonExpression(f"(-{a.text})", -a.high, -a.low)
    if node.op == "~": return PythonExpression(f"(~{a.text})", ~a.high, ~a.low)
    b = values[1]
    if node.op in ("<<", ">>"):
      count = self.exact(node.args[1])
      if node.op == ">>":
        return PythonExpression(f"({self.exact(node.args[0])} >> {count})", node.type.low, node.type.high)
      if b.high > MOST_SHIFT: raise NotationError("the bits of a count to shift by must be chosen")
      return PythonExpression(f"({a.text} << {count})", min(a.low << b.high, a.low), a.high << b.high)
    if node.op == "+": return PythonExpression(f"({a.text} + {b.text})", a.low + b.low, a.high + b.high)
    if node.op == "-": return PythonExpression(f"({a.text} - {b.text})", a.low - b.high, a.high - b.low)
    if node.op == "*":
      corners = [x * y for x in (a.low, a.high) for y in (b.low, b.high)]
      return PythonExpression(f"({a.text} * {b.text})", min(corners), max(corners))
    if node.op == "&" and (a.low >= 0 or b.low >= 0):
      return PythonExpression(f"({a.text} & {b.text})", 0, min(v.high for v in (a, b) if v.low >= 0))
    size = max(v.bit_length() for v in (a.low, a.high, b.low, b.high))
    return PythonExpression(f"({a.text} {node.op} {b.text})", 0 if min(a.low, b.low) >= 0 else -1 << size,
                            (1 << size) - 1)

  def bits(self, node: ExpressionNode) -> PythonExpression:
    """Return bits of an integer, as an unsigned number."""
    assert isinstance(node.value, tuple), "bits have a pair"
    high, low = node.value
    inner = node.args[0]
    text, mask = self.value(inner).text, (1 << high - low + 1) - 1
    if inner.type.kind == "f": raise NotationError("bits of a float")
    return PythonExpression(f"({text} >> {low} & {mask:#x})" if low else f"({text} & {mask:#x})", 0, mask)

  def convert(self, node: ExpressionNode) -> PythonExpression:
    """Convert a number to another type.

    An integer is first wrapped to its old type, and not yet to the new one.
    """
    source, kind = node.args[0].type, node.type
    if kind.kind == "f":
      if source.kind != "f": return PythonExpression(f"integer_to_{kind.name}({self.exact(node.args[0])})")
      return PythonExpression(self.exact(node.args[0]), rounded=kind.bits > source.bits or kind is source)
    if source.kind == "f":
      return PythonExpression(f"float_to_integer({self.exact(node.args[0])}, {kind.low}, {kind.high})", kind.low,
                              kind.high)
    if source.kind == "b": return PythonExpression(self.exact(node.args[0]), 0, 1)
    inner = self.value(node.args[0])
    if inner.low >= source.low and inner.high <= source.high: return inner
    return PythonExpression(self.wrapped(inner, source), source.low, source.high)

  def call(self, node: ExpressionNode) -> PythonExpression:
    """Call a function of numerics.py: the one for the type, if each type has its own."""
    name, parameters = str(node.value), FUNCTIONS[str(node.value)][0]
    texts = ", ".join(self.exact(a) for a in node.args)
    full = f"{name}_{node.args[0].type.name}" if parameters[0] == "T" else name
    if node.type.kind == "f": return PythonExpression(f"{full}({texts})")
    low, high = (0, 1) if node.type.kind == "b" else (node.type.low, node.type.high)
    return PythonExpression(f"{full}({texts})", low, high)
