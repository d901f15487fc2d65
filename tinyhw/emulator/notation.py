"""The notation for the semantics of instructions, and its typed form, a tree of `ExpressionNode`s.

    v_mad_u32_u24    D.u32 = S0.u32[23:0] * S1.u32[23:0] + S2.u32
    s_add_u32        t = u64(S0.u32) + u64(S1.u32); SCC = t[32]; D.u32 = t

It has Python's syntax:

- `S0.u32` reads an operand as a type, and `D.u32 = ...` writes one.
- `x[high:low]` and `x[n]` are bits of an integer, as unsigned numbers.
- `S0.i8(2)` is element 2 of an operand taken as an array.
- `M0.f32` is operand 0 of a mixed-precision instruction, float16 or float32.
- `u64(x)` converts a number, and `a if c else b` chooses.
- Functions are those of FUNCTIONS.
- Operands are S0, S1 ... and D on AMD's cards. On NVIDIA's they have the rows' names in capitals: A, B, D, the
  predicates PP and PU, and `W` for a word of constant memory.
- Names without a type are SCC, VCC (this lane's bit), CARRY (this lane's bit of the mask that is written), PC, EXEC,
  LANE (this lane's number), SIGNED0 and SIGNED1 (are the operands of a dot product signed), and local values.

Integers wrap to their type after each operation, and floats are rounded to theirs. Implicit conversions are these: an
integer becomes another integer type where it is assigned or converted, a literal takes the type of the other operand,
and a bool is 0 or 1. Nothing here executes: emulator/python translates the tree to Python, emulator/native to machine
code.
"""
from __future__ import annotations
import ast
from collections.abc import Iterator

from tinyhw.data_class import dataclass
from tinyhw.threads import once

@dataclass(frozen=True)
class ValueType:
  """A type of values: kind "u" (unsigned), "i" (two's complement), "f" (IEEE 754, or bfloat16) or "b" (boolean)."""
  name: str
  kind: str
  bits: int

  @property
  def low(self) -> int: return -(1 << self.bits - 1) if self.kind == "i" else 0
  @property
  def high(self) -> int: return (1 << self.bits - (self.kind == "i")) - 1

TYPES = {name: ValueType(name, kind, bits) for name, kind, bits in (
  ("bool", "b", 1), *((f"u{n}", "u", n) for n in (4, 8, 16, 32, 64, 128)),
  *((f"i{n}", "i", n) for n in (4, 8, 16, 32, 64, 128)),
  ("f16", "f", 16), ("bf16", "f", 16), ("f32", "f", 32), ("f64", "f", 64), ("fp8", "f", 8), ("bf8", "f", 8))}
BOOL = TYPES["bool"]

@dataclass(frozen=True)
class ExpressionNode:
  """A typed expression. `op`: "const", "read", "local", "bits", "convert", "select", "call", or Python's sign of an
  operation.

  value: the number of a const, the name of a read or local, (high, low) of bits, the function's name of a call.
  """
  op: str
  type: ValueType
  args: tuple["ExpressionNode", ...] = ()
  value: object = None

@dataclass(frozen=True)
class Assignment:
  """An assignment. target: "D", "D1", ... with the type that it is written as, or SCC, VCC, CARRY, PC or a local with
  the type of the value."""
  target: str
  type: ValueType
  value: ExpressionNode

Semantics = tuple[Assignment, ...]

def nodes(node: ExpressionNode) -> Iterator[ExpressionNode]:
  """Yield a node and all its descendants."""
  yield node
  for child in node.args: yield from nodes(child)

# Parameters and result of each function. T: any type, the same for all T. The result of "fma T T T -> T" with f32 is
# f32, and fma_f32 computes it.
_FUNCTIONS = """
fma T T T -> T
mul_zero T T -> T
fma_zero T T T -> T
least T T -> T
most T T -> T
min_num T T -> T
max_num T T -> T
minimum T T -> T
maximum T T -> T
median T T T -> T
magnitude T -> T
isnan T -> bool
trunc T -> T
floor T -> T
ceil T -> T
rndne T -> T
fract T -> T
rcp T -> T
rsq T -> T
sqrt T -> T
exp T -> T
log T -> T
sin T -> T
cos T -> T
ldexp T i32 -> T
frexp_mant T -> T
frexp_exp T -> i32
div_scale T T T -> T
div_scale_flag T T -> bool
div_fixup T T T -> T
div_fmas T T T bool -> T
class_f16 u32 u32 -> bool
class_f32 u32 u32 -> bool
class_f64 u64 u32 -> bool
leading_zeros T -> i32
trailing_zeros T -> i32
leading_signs T -> i32
ones T -> u32
reversed T -> T
perm u32 u32 u32 -> u32
f16_rtz f32 -> u32
snorm f32 -> i32
unorm f32 -> u32
saturate_i16 i32 -> i16
saturate_u16 u32 -> u16
saturate_u8 i32 -> u32
as_f32 u32 -> f32
as_f16 u16 -> f16
as_bf16 u16 -> bf16
as_f64 u64 -> f64
raw_f32 f32 -> u32
raw_f16 f16 -> u32
raw_bf16 bf16 -> u32
fp8_to_f32 u32 -> f32
bf8_to_f32 u32 -> f32
f32_to_fp8 f32 -> u32
f32_to_bf8 f32 -> u32
f32_to_fp8_random f32 u32 -> u32
f32_to_bf8_random f32 u32 -> u32
sum_differences u32 u32 -> u32
mask_to_bits u64 u32 -> u32
trig_preop f64 u32 -> f64
rcp_upper u32 -> u32
rsq_upper u32 -> u32
"""
FUNCTIONS: dict[str, tuple[tuple[str, ...], str]] = {
  line.split()[0]: (tuple(line.split(" -> ")[0].split()[1:]), line.split(" -> ")[1])
  for line in _FUNCTIONS.strip().splitlines()}

class NotationError(AssertionError):
  """Semantics that do not parse or type: a mistake in a table of this package."""

_BINARY: dict[type[ast.operator], str] = {
  ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^",
  ast.LShift: "<<", ast.RShift: ">>"}
_COMPARE: dict[type[ast.cmpop], str] = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==",
                                        ast.NotEq: "!="}
_UNARY: dict[type[ast.unaryop], str] = {ast.USub: "neg", ast.Invert: "~", ast.Not: "not"}
_NAMES = {"SCC": "bool", "VCC": "bool", "CARRY": "bool", "PC": "u64", "EXEC": "u64", "LANE": "u32", "SIGNED0": "bool",
          "SIGNED1": "bool"}

@once
def parse(text: str) -> Semantics:
  """Parse the semantics of an instruction into assignments. Raises NotationError."""
  try: return _Parser(text).assignments()
  except (NotationError, SyntaxError) as e: raise NotationError(f"{text}: {e}") from e

class _Parser:
  def __init__(self, text: str):
    self.body = ast.parse(text).body
    self.locals: dict[str, ValueType] = {}

  def assignments(self) -> Semantics:
    found = []
    for statement in self.body:
      if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        raise NotationError("assignments are expected")
      found.append(self.assignment(statement.targets[0], statement.value))
    return tuple(found)

  def assignment(self, target: ast.expr, source: ast.expr) -> Assignment:
    if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name):
      written = TYPES[target.attr]
      return Assignment(target.value.id, written, convert(self.expression(source, written), written))
    if not isinstance(target, ast.Name): raise NotationError("a name or name.type is expected on the left")
    wanted = TYPES[_NAMES[target.id]] if target.id in _NAMES else None
    value = self.expression(source, wanted)
    if wanted is None: self.locals[target.id] = value.type
    elif wanted is BOOL and value.type is not BOOL:
      value = ExpressionNode("!=", BOOL, (value, ExpressionNode("const", value.type, value=0)))
    return Assignment(target.id, value.type, value)

  def expression(self, node: ast.expr, hint: ValueType | None = None) -> ExpressionNode:
    """Parse an expression. `hint` is the type of a literal that has no other type."""
    match node:
      case ast.Constant(value=bool() | int() | float() as value): return constant(value, hint)
      case ast.Name(id="inf" | "nan" as name): return constant(float(name), hint)
      case ast.Name(id=name):
        if name in self.locals: return ExpressionNode("local", self.locals[name], value=name)
        if name in _NAMES: return ExpressionNode("read", TYPES[_NAMES[name]], value=name)
        raise NotationError(f"{name} is not known")
      case ast.Attribute(value=ast.Name(id=name), attr=kind): return ExpressionNode("read", TYPES[kind], value=name)
      case ast.Subscript(value=inner, slice=place): return self.bits(self.expression(inner), place)
      case ast.UnaryOp(op=op, operand=inner):
        of = self.expression(inner, hint)
        if isinstance(op, ast.USub) and isinstance(of.value, (int, float)) and of.op == "const":
          return constant(-of.value, of.type)
        return ExpressionNode(_UNARY[type(op)], BOOL if isinstance(op, ast.Not) else of.type, (of,))
      case ast.BinOp(left=left, op=op, right=right): return self.binary(_BINARY[type(op)], left, right, hint)
      case ast.Compare(left=left, ops=[op], comparators=[right]):
        return ExpressionNode(_COMPARE[type(op)], BOOL, self.pair(left, right, None))
      case ast.BoolOp(op=op, values=values):
        return ExpressionNode("and" if isinstance(op, ast.And) else "or", BOOL,
                              tuple(self.expression(v) for v in values))
      case ast.IfExp(test=test, body=yes, orelse=no):
        pair = self.pair(yes, no, hint)
        return ExpressionNode("select", pair[0].type, (self.expression(test), *pair))
      case ast.Call(func=ast.Name(id=name), args=arguments): return self.call(name, arguments, hint)
      case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=kind), args=[ast.Constant(value=int() as index)]):
        return ExpressionNode("read", TYPES[kind], value=f"{name}#{index}")
    raise NotationError(f"{ast.unparse(node)} is not part of the notation")

  def pair(self, left: ast.expr, right: ast.expr, hint: ValueType | None) -> tuple[ExpressionNode, ExpressionNode]:
    """Parse two operands of one type. A literal takes the type of the other operand. A bool with a number becomes a
    number.
    """
    if is_literal(left):
      b = self.expression(right, hint)
      a = self.expression(left, b.type)
    else:
      a = self.expression(left, hint)
      b = self.expression(right, a.type)
    if a.type is BOOL and b.type is not BOOL: a = convert(a, b.type)
    if b.type is BOOL and a.type is not BOOL: b = convert(b, a.type)
    if a.type is not b.type:
      raise NotationError(f"{ast.unparse(left)} is {a.type.name}, {ast.unparse(right)} is {b.type.name}")
    return a, b

  def binary(self, op: str, left: ast.expr, right: ast.expr, hint: ValueType | None) -> ExpressionNode:
    if op in ("<<", ">>"):
      count = self.expression(right, TYPES["u32"])
      value = self.expression(left, hint or count.type)
      return ExpressionNode(op, value.type, (value, count))
    pair = self.pair(left, right, hint)
    if pair[0].type is BOOL and op in ("+", "-", "*"):
      pair = (convert(pair[0], TYPES["u32"]), convert(pair[1], TYPES["u32"]))
    return ExpressionNode(op, pair[0].type, pair)

  def bits(self, value: ExpressionNode, place: ast.expr) -> ExpressionNode:
    match place:
      case ast.Slice(lower=ast.Constant(value=int() as high), upper=ast.Constant(value=int() as low)): pass
      case ast.Constant(value=int() as high): low = high
      case _: raise NotationError("bits are [high:low] or [n], numbers")
    unsigned = value.type if value.type.kind == "u" else TYPES[f"u{value.type.bits}"]
    return ExpressionNode("bits", unsigned, (value,), (high, low))

  def call(self, name: str, arguments: list[ast.expr], hint: ValueType | None) -> ExpressionNode:
    if name in TYPES: return convert(self.expression(arguments[0], TYPES[name]), TYPES[name])
    if name not in FUNCTIONS: raise NotationError(f"there is no function {name}")
    parameters, result = FUNCTIONS[name]
    if len(parameters) != len(arguments): raise NotationError(f"{name} takes {len(parameters)} arguments")
    values: list[ExpressionNode] = []
    for argument, parameter in zip(arguments, parameters):
      values.append(self.expression(argument, TYPES.get(parameter) or (values[0].type if values else hint)))
      if parameter in TYPES and values[-1].type is not TYPES[parameter]:
        values[-1] = convert(values[-1], TYPES[parameter])
      elif parameter not in TYPES and values[-1].type is not values[0].type:
        raise NotationError(f"{name}: operands of different types")
    return ExpressionNode("call", TYPES[result] if result in TYPES else values[0].type, tuple(values), name)

def is_literal(node: ast.expr) -> bool:
  """Return whether a node is a number, with or without a sign."""
  if isinstance(node, ast.UnaryOp): return is_literal(node.operand)
  return isinstance(node, ast.Constant) or isinstance(node, ast.Name) and node.id in ("inf", "nan")

def constant(value: int | float, wanted: ValueType | None) -> ExpressionNode:
  if wanted is None: raise NotationError(f"{value} has no type here")
  if wanted.kind == "f": return ExpressionNode("const", wanted, value=float(value))
  if isinstance(value, float): raise NotationError(f"{value} is no {wanted.name}")
  if wanted.kind != "b" and not wanted.low <= value <= wanted.high:
    raise NotationError(f"{value} is outside of {wanted.name}")
  return ExpressionNode("const", wanted, value=value)

def convert(value: ExpressionNode, wanted: ValueType) -> ExpressionNode:
  """Convert a number to another type. Integers wrap. numerics.py defines the conversion of floats."""
  return value if value.type is wanted else ExpressionNode("convert", wanted, (value,))
