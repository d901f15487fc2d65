"""Expressions of the notation as UOps over lanes (or over one scalar). native.py makes Programs of them, and defines
operands.

`HOST` gives the host type of each value. Integers narrower than 32 bits are held in 32 bits, and are wrapped after each
operation that may leave their type. float16 is held in float32, and is rounded after each operation. Rounding a sum,
difference or product of two to float32 and then to float16 is exact. bfloat16 can only be read. The rest (128 bits,
approximate functions, fused sums of float16) stays in Python.
"""
from __future__ import annotations
import functools

from tinyhw.dtype import DType, dtypes
from tinyhw.emulator.notation import TYPES, ExpressionNode, ValueType
from tinyhw.machine.ir.target import Capabilities
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp

HOST = {"bool": dtypes.bool, "f16": dtypes.float32, "bf16": dtypes.float32, "f32": dtypes.float32,
        "f64": dtypes.float64,
        **{f"u{n}": dtypes.uint32 for n in (4, 8, 16, 32)}, **{f"i{n}": dtypes.int32 for n in (4, 8, 16, 32)},
        "u64": dtypes.uint64, "i64": dtypes.int64}
UNSIGNED = {dtypes.float32: dtypes.uint32, dtypes.int32: dtypes.uint32, dtypes.float64: dtypes.uint64,
            dtypes.int64: dtypes.uint64}
_BINARY = {"+": Ops.ADD, "-": Ops.SUB, "*": Ops.MUL, "&": Ops.AND, "|": Ops.OR, "^": Ops.XOR, "<<": Ops.SHL,
           ">>": Ops.SHR}

class Untranslatable(Exception):
  """The instruction cannot be translated, and stays in Python."""

class Expressions:
  """UOps of `width` lanes; 1: scalars. host: capabilities of its vectors."""
  width: int
  host: Capabilities
  locals: dict[str, UOp]

  def read(self, name: str, kind: ValueType) -> UOp:
    """Return an operand as a type, or one of the names without a type."""
    raise NotImplementedError

  def vector(self, kind: DType) -> DType: return kind if self.width == 1 else kind.vec(self.width)
  def constant(self, kind: DType, value: int | float | bool) -> UOp: return UOp.const(self.vector(kind), value)

  def value(self, node: ExpressionNode) -> UOp:
    """Return the value of a node. Raises Untranslatable."""
    if node.type.name not in HOST: raise Untranslatable
    host = HOST[node.type.name]
    if node.op == "const": return self.constant(host, node.value)  # type: ignore[arg-type]  # it is a number
    if node.op == "local": return self.locals[str(node.value)]
    if node.op == "read": return self.read(str(node.value), node.type)
    if node.op == "bits": return self.bits(node)
    if node.op == "convert": return self.convert(node)
    if node.op == "call": return self.call(str(node.value), [self.value(a) for a in node.args], node)
    args = [self.value(a) for a in node.args]
    if node.op == "select": return args[0].where(args[1], args[2])
    if node.op in ("<", ">", "==", "!=", "<=", ">="): return self.compare(node.op, args, node.args[0].type)
    if node.op in ("and", "or"):
      return functools.reduce(lambda a, b: a.alu(Ops.AND if node.op == "and" else Ops.OR, b), args)
    if node.op == "not": return self.opposite(args[0])
    if node.op == "neg" and node.type.kind == "f": return self.flipped(args[0])
    if node.op == "neg": return self.wrapped(self.constant(host, 0).alu(Ops.SUB, args[0]), node.type)
    if node.op == "~": return self.wrapped(args[0].alu(Ops.XOR, self.ones(host)), node.type)
    if node.op in _BINARY: return self.binary(node, args)
    raise Untranslatable

  def ones(self, host: DType) -> UOp:
    return self.constant(host, -1 if host in (dtypes.int32, dtypes.int64) else (1 << 8 * host.itemsize) - 1)

  def binary(self, node: ExpressionNode, args: list[UOp]) -> UOp:
    kind = node.type
    if kind.kind == "b" or kind.name == "bf16": raise Untranslatable
    if node.op in ("<<", ">>"): return self.shifted(node, args[0], args[1])
    result = self.alu(_BINARY[node.op], *args)
    if kind.name == "f16": return self.half(result)
    return self.wrapped(result, kind) if node.op in ("+", "-", "*") else result

  def alu(self, op: Ops, a: UOp, b: UOp) -> UOp:
    """Apply an operation. It goes lane by lane where the host's vectors lack it: AVX2 has no 64-bit product and no
    64-bit arithmetic shift."""
    if self.width == 1 or self.host.supports(op, a.dtype): return a.alu(op, b)
    lanes = [[UOp(Ops.GEP, x.dtype.scalar(), (x,), i) for x in (a, b)] for i in range(self.width)]
    return UOp(Ops.VECTORIZE, a.dtype, tuple([x.alu(op, y) for x, y in lanes]))

  def shifted(self, node: ExpressionNode, x: UOp, count: UOp) -> UOp:
    """Shift by a count. Its used bits are selected, so that its bound is known."""
    kind, host, most = node.type, HOST[node.type.name], self.most(node.args[1])
    if most is None or kind.kind == "f": raise Untranslatable
    bits, word = 8 * host.itemsize, UNSIGNED.get(host, host)
    places = self.resized(count, word)
    if most >= bits:
      beyond = self.constant(word, bits - 1).alu(Ops.CMPLT, places)
      places = places.alu(Ops.AND, self.constant(word, bits - 1))
    moved = self.alu(_BINARY[node.op], x, places.bitcast(self.vector(host)))
    if node.op == "<<": moved = self.wrapped(moved, kind)
    if most < bits: return moved
    keeps_sign = node.op == ">>" and kind.kind == "i"
    return beyond.where(self.alu(Ops.SHR, x, self.constant(host, bits - 1)) if keeps_sign else self.constant(host, 0),
                        moved)

  def most(self, node: ExpressionNode) -> int | None:
    """Return an upper bound of a number, where one is easy to see."""
    if node.op == "const" and isinstance(node.value, int): return node.value
    if node.op == "bits" and isinstance(node.value, tuple): return int((1 << node.value[0] - node.value[1] + 1) - 1)
    if node.op == "<<" and isinstance(node.args[1].value, int):
      inner = self.most(node.args[0])
      return None if inner is None else inner << node.args[1].value
    return None

  def wrapped(self, x: UOp, kind: ValueType) -> UOp:
    """Wrap an integer to its type."""
    if kind.bits >= 32 or kind.kind not in "ui": return x
    if kind.kind == "u": return x.alu(Ops.AND, self.constant(dtypes.uint32, kind.high))
    moved = self.constant(dtypes.int32, 32 - kind.bits)
    return x.alu(Ops.SHL, moved).alu(Ops.SHR, moved)

  def opposite(self, truth: UOp) -> UOp: return truth.alu(Ops.XOR, UOp.const(truth.dtype, True))

  def compare(self, sign: str, args: list[UOp], kind: ValueType) -> UOp:
    if kind.name == "bool": raise Untranslatable
    a, b = args
    if sign in ("==", "!="): return a.alu(Ops.CMPEQ if sign == "==" else Ops.CMPNE, b)
    if sign in (">", ">="): a, b = b, a
    less = a.alu(Ops.CMPLT, b)
    return less if len(sign) == 1 else less.alu(Ops.OR, a.alu(Ops.CMPEQ, b))

  def unsigned(self, x: UOp) -> UOp:
    """Return the bits of a value."""
    scalar = x.dtype.scalar()
    return x.bitcast(self.vector(UNSIGNED.get(scalar, scalar)))

  def bits(self, node: ExpressionNode) -> UOp:
    assert isinstance(node.value, tuple), "bits have a pair"
    high, low = node.value
    if node.args[0].type.kind == "f": raise Untranslatable
    x = self.unsigned(self.value(node.args[0]))
    host = x.dtype.scalar()
    if low: x = x.alu(Ops.SHR, self.constant(host, low))
    return x.alu(Ops.AND, self.constant(host, (1 << high - low + 1) - 1)) if high < 8 * host.itemsize - 1 else x

  # ***** conversions *****

  def convert(self, node: ExpressionNode) -> UOp:
    source, target = node.args[0].type, node.type
    if source.name not in HOST: raise Untranslatable
    x = self.value(node.args[0])
    if source.kind == "b":
      if target.kind == "f": raise Untranslatable
      return x.where(self.constant(HOST[target.name], 1), self.constant(HOST[target.name], 0))
    if target.kind == "b": return x.alu(Ops.CMPNE, self.constant(HOST[source.name], 0))
    if target.kind == "f": return self.to_float(x, source, target, self.most(node.args[0]))
    if source.kind == "f": return self.to_integer(x, target)
    return self.wrapped(self.resized(x, HOST[target.name]), target)

  def resized(self, x: UOp, host: DType) -> UOp:
    """Convert an integer to another host type, with sign extension if it is signed."""
    scalar = x.dtype.scalar()
    if scalar.itemsize == host.itemsize: return x.bitcast(self.vector(host))
    same = {(4, True): dtypes.int32, (8, True): dtypes.int64, (4, False): dtypes.uint32, (8, False): dtypes.uint64}
    return x.cast(self.vector(same[host.itemsize, scalar in (dtypes.int32, dtypes.int64)])).bitcast(self.vector(host))

  def to_float(self, x: UOp, source: ValueType, target: ValueType, most: int | None) -> UOp:
    if target.name == "bf16" or source.name == "f64" and target.name == "f16": raise Untranslatable
    if source.kind in "ui" and source.bits == 64: raise Untranslatable
    host = self.vector(dtypes.float64 if target.name == "f64" else dtypes.float32)
    if source.name == "u32" and (most is None or most >= 1 << 31):
      if target.name == "f16": raise Untranslatable
      high, low = x.alu(Ops.SHR, self.constant(dtypes.uint32, 16)), x.alu(Ops.AND, self.constant(dtypes.uint32, 0xffff))
      high, low = (part.bitcast(self.vector(dtypes.int32)).cast(host) for part in (high, low))
      return high.alu(Ops.MUL, UOp.const(host, 65536.0)).alu(Ops.ADD, low)  # only the sum is rounded
    if source.kind == "u": x = x.bitcast(self.vector(dtypes.int32))
    x = x.cast(host)
    return self.half(x) if target.name == "f16" else x

  def to_integer(self, x: UOp, kind: ValueType) -> UOp:
    """Truncate to an integer and clamp to the type. NaN gives 0."""
    if kind.bits > 32: raise Untranslatable
    scalar, host = x.dtype.scalar(), HOST[kind.name]
    if kind.name == "u32":
      half, top = self.constant(scalar, 2.0**31), self.constant(dtypes.uint32, 1 << 31)
      small, rest = (y.cast(self.vector(dtypes.int32)).bitcast(self.vector(host)) for y in (x, x.alu(Ops.SUB, half)))
      number = x.alu(Ops.CMPLT, half).where(small, rest.alu(Ops.XOR, top))
    else: number = x.cast(self.vector(dtypes.int32)).bitcast(self.vector(host))
    low, high = self.constant(scalar, float(kind.low)), self.constant(scalar, float(kind.high))
    within = low.alu(Ops.CMPLT, x).where(number, self.constant(host, kind.low))
    held = x.alu(Ops.CMPLT, high).where(within, self.constant(host, kind.high))
    return x.alu(Ops.CMPNE, x).where(self.constant(host, 0), held)

  def half(self, x: UOp) -> UOp:
    """Round a float32 to a value of float16."""
    return x.cast(self.vector(dtypes.float16)).cast(self.vector(dtypes.float32))

  def half_of(self, bits: UOp) -> UOp:
    """Return the float16 in the low bits of a word whose other bits are 0."""
    return bits.cast(self.vector(dtypes.uint16)).bitcast(self.vector(dtypes.float16)).cast(self.vector(dtypes.float32))

  def half_bits(self, x: UOp) -> UOp:
    return x.cast(self.vector(dtypes.float16)).bitcast(self.vector(dtypes.uint16)).cast(self.vector(dtypes.uint32))

  # ***** functions *****

  def call(self, name: str, args: list[UOp], node: ExpressionNode) -> UOp:
    kind = node.type
    if name == "fma" and kind.name in ("f32", "f64"): return UOp(Ops.MULACC, self.vector(HOST[kind.name]), tuple(args))
    if name in ("least", "most") and kind.kind in "ui": return self.chosen(name, *args)
    if name == "median" and kind.kind in "ui":
      a, b, c = args
      return self.chosen("most", self.chosen("least", a, b), self.chosen("least", self.chosen("most", a, b), c))
    if name in ("min_num", "max_num"): return self.number_of(args[0], args[1], name)
    if name in ("minimum", "maximum"):
      a, b = args
      unknown = a.alu(Ops.CMPNE, a).alu(Ops.OR, b.alu(Ops.CMPNE, b))
      return unknown.where(a.alu(Ops.ADD, b), self.number_of(a, b, "min_num" if name == "minimum" else "max_num"))
    if name == "magnitude" and kind.kind == "i":
      return args[0].alu(Ops.CMPLT,
                         self.constant(HOST[kind.name], 0)).where(self.constant(HOST[kind.name],
                                                                                0).alu(Ops.SUB, args[0]), args[0])
    if name == "raw_f32": return self.unsigned(args[0])
    if name == "as_f32": return args[0].bitcast(self.vector(dtypes.float32))
    if name == "as_f16": return self.half_of(args[0])
    if name == "raw_f16": return self.half_bits(args[0])
    raise Untranslatable

  def chosen(self, name: str, a: UOp, b: UOp) -> UOp:
    """Return the smaller or greater integer."""
    return (a.alu(Ops.CMPLT, b) if name == "least" else b.alu(Ops.CMPLT, a)).where(a, b)

  def number_of(self, a: UOp, b: UOp, name: str) -> UOp:
    """Return the smaller or greater number. -0 is below +0. Of a number and a NaN it is the number."""
    host, zeros = a.dtype.scalar(), Ops.OR if name == "min_num" else Ops.AND
    equal = self.unsigned(a).alu(zeros, self.unsigned(b)).bitcast(self.vector(host))
    if_less, if_not = (a, b) if name == "min_num" else (b, a)
    chosen = a.alu(Ops.CMPEQ, b).where(equal, a.alu(Ops.CMPLT, b).where(if_less, if_not))
    return a.alu(Ops.CMPNE, a).where(b, b.alu(Ops.CMPNE, b).where(a, chosen))

  def flipped(self, x: UOp) -> UOp: return self.signs(x, Ops.XOR, 1)
  def absolute(self, x: UOp) -> UOp: return self.signs(x, Ops.AND, 0)

  def signs(self, x: UOp, op: Ops, bit: int) -> UOp:
    """Change the sign of a float by a bit operation with the sign's bit, or with all other bits."""
    words, host = self.unsigned(x), x.dtype.scalar()
    top = 1 << 8 * host.itemsize - 1
    return words.alu(op, self.constant(words.dtype.scalar(), top if bit else top - 1)).bitcast(self.vector(host))

WIDE = frozenset(name for name, kind in TYPES.items() if kind.bits == 64)
