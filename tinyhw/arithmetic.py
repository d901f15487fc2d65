"""The semantics of arithmetic on one element, in Python numbers, for every data type. It has no graph and no memory
layout.

The interpreter, constant folding and the PYTHON device all compute with these functions. A value is a Python bool, int
or float that its type can hold. Integers wrap. Floats are rounded to nearest, ties to even, after each operation. A
float type narrower than float32 computes in float32 and rounds the result to itself. Conversions to and from it go
through float32, except those from float64, which round once. docs/design/arithmetic.md has all rules.
"""
from __future__ import annotations
import math
import operator
import struct
from typing import Any
from collections.abc import Callable, Sequence

from tinyhw.dtype import DType, dtypes, encode_float, decode_float, truncate
from tinyhw.errors import DTypeError

Scalar = Any  # bool, int or float
Function = Callable[..., Scalar]

# ***** floats *****

_FLOAT, _BITS32, _HALF, _SHORT = struct.Struct("<f"), struct.Struct("<I"), struct.Struct("<e"), struct.Struct("<H")

def round_float32(x: float) -> float:
  """Round x to float32. Overflow gives infinity."""
  try: return _FLOAT.unpack(_FLOAT.pack(x))[0]  # type: ignore[no-any-return]  # struct gives Any
  except OverflowError: return math.copysign(math.inf, x)

def round_float16(x: float) -> float:
  """Round x to float16. Overflow gives infinity."""
  try: return _HALF.unpack(_HALF.pack(x))[0]  # type: ignore[no-any-return]  # struct gives Any
  except OverflowError: return math.copysign(math.inf, x)

def encode_bfloat16(x: float) -> int:
  """Return the 16 bits of x rounded to bfloat16."""
  if x != x: return 0x7fc0
  single = round_float32(x)
  if single != x: return encode_float(x, dtypes.bfloat16)  # rounding twice might differ
  bits: int = _BITS32.unpack(_FLOAT.pack(single))[0]
  return (bits + 0x7fff + ((bits >> 16) & 1)) >> 16

def decode_bfloat16(code: int) -> float:
  return _FLOAT.unpack(_BITS32.pack(code << 16))[0]  # type: ignore[no-any-return]  # struct gives Any

def encode_float16(x: float) -> int:
  """Return the 16 bits of x rounded to float16."""
  if x != x: return 0x7e00
  return _SHORT.unpack(_HALF.pack(round_float16(x)))[0]  # type: ignore[no-any-return]  # struct gives Any

# struct gives Any
def decode_float16(code: int) -> float: return _HALF.unpack(_SHORT.pack(code))[0]  # type: ignore[no-any-return]
def round_bfloat16(x: float) -> float: return decode_bfloat16(encode_bfloat16(x))

def round_to(dtype: DType) -> Function:
  """Return the function that rounds (wraps) a number to a scalar type."""
  return _ROUND.get(dtype) or truncate[dtype]

_ROUND: dict[DType, Function] = {dtypes.float32: round_float32, dtypes.float16: round_float16,
                                 dtypes.bfloat16: round_bfloat16}

def divide(a: float, b: float) -> float:
  """Return a / b by IEEE 754, without exceptions."""
  if b: return a / b
  if a == 0 or a != a: return math.nan
  return math.copysign(math.inf, a) * math.copysign(1.0, b)

def maximum(a: Scalar, b: Scalar) -> Scalar:
  """Return the greater; NaN if one is NaN; the first of equals."""
  return b if a < b or b != b else a

def square_root(x: float) -> float: return math.sqrt(x) if x >= 0 or x == 0 else math.nan
def truncate_float(x: float) -> float: return math.copysign(float(math.trunc(x)), x) if math.isfinite(x) else x

def fused_float64(a: float, b: float, c: float) -> float:
  """Return a*b + c, rounded once."""
  from fractions import Fraction  # hidden: takes 3 ms, with decimals
  if not (math.isfinite(a) and math.isfinite(b)): return a * b + c
  # The product does not matter: it would overflow only if it were rounded.
  if not math.isfinite(c): return c
  exact = Fraction(a) * Fraction(b) + Fraction(c)
  if not exact: return a * b + c
  sign = -1.0 if exact < 0 else 1.0
  try: return math.copysign(float(exact), sign)
  except OverflowError: return math.copysign(math.inf, sign)

def fused_float32(a: float, b: float, c: float) -> float:
  """Return a*b + c, rounded once to float32.

  Source: Boldo and Melquiond, Emulation of FMA and correctly rounded sums, 2008.
  """
  return round_float32(fused_to_odd(a, b, c))

def fused_to_odd(a: float, b: float, c: float) -> float:
  """Return a*b + c as a double that rounds to float32 and narrower types as if it were exact. The product must be exact
  in a double.

  The sum is rounded to odd: the last bit is 1 if the sum was inexact.
  """
  product = a * b
  total = product + c
  if math.isfinite(total):
    part = total - product
    error = (product - (total - part)) + (c - part)
    if error and not int(math.frexp(total)[0] * 9007199254740992.0) & 1:
      total = math.nextafter(total, math.inf if error > 0 else -math.inf)
  return total

def _guarded(f: Callable[[float], float], overflow: float = math.inf) -> Function:
  """Wrap f so that it raises nothing: NaN outside of its domain, infinity on overflow."""
  def call(x: float) -> float:
    try: return f(x)
    except ValueError: return math.nan
    except OverflowError: return overflow
  return call

def _logarithm(f: Callable[[float], float]) -> Function:
  def call(x: float) -> float:
    if x > 0: return f(x)
    return -math.inf if x == 0 else math.nan
  return call

exp2 = _guarded(lambda x: math.pow(2.0, x))
exp, sin, cos = _guarded(math.exp), _guarded(math.sin), _guarded(math.cos)
log2, log = _logarithm(math.log2), _logarithm(math.log)

def power(a: float, b: float) -> float:
  """Return a to the b with the rules of C's pow."""
  try: return math.pow(a, b)
  except OverflowError: return -math.inf if a < 0 and math.fmod(b, 2.0) else math.inf
  except ValueError:
    if a != 0: return math.nan
    return math.copysign(math.inf, a) if abs(math.fmod(b, 2.0)) == 1.0 else math.inf

# ***** integers *****

def floor_divide(a: int, b: int) -> int: return a // b if b else 0
def modulo(a: int, b: int) -> int: return a % b if b else 0

def shift_left(bits: int) -> Function:
  """Return a << b before wrapping; 0 when b is outside of 0..bits-1."""
  return lambda a, b: a << b if 0 <= b < bits else 0

def shift_right(bits: int) -> Function:
  """Return a >> b. When b is outside of 0..bits-1 all bits are copies of the sign: 0 or -1."""
  return lambda a, b: a >> (b if 0 <= b < bits else bits)

def threefry(counter: int, key: int) -> int:
  """Return 64 random bits from a counter and a key.

  Source: Salmon et al. 2011, Threefry-2x32 with 20 rounds; low words come first.
  """
  mask = 0xffffffff
  keys = (key & mask, key >> 32, (key & mask) ^ (key >> 32) ^ 0x1bd11bda)
  x0, x1 = (counter + keys[0]) & mask, ((counter >> 32) + keys[1]) & mask
  for group in range(5):
    for rotation in ((13, 15, 26, 6), (17, 29, 16, 24))[group & 1]:
      x0 = (x0 + x1) & mask
      x1 = ((x1 << rotation | x1 >> (32 - rotation)) & mask) ^ x0
    x0, x1 = (x0 + keys[(group + 1) % 3]) & mask, (x1 + keys[(group + 2) % 3] + group + 1) & mask
  return x1 << 32 | x0

# ***** conversions *****

def float_to_int32(x: float) -> int: return int(x) if -2147483649.0 < x < 2147483648.0 else -0x80000000
def float_to_int64(x: float) -> int:
  return int(x) if -9223372036854775808.0 <= x < 9223372036854775808.0 else -0x8000000000000000

def float_to_uint64(x: float) -> int:
  """Convert to uint64. Negative numbers wrap from int64. Numbers in neither range give 2**63."""
  if 0 <= x < 18446744073709551616.0: return int(x)
  return float_to_int64(x) & 0xffffffffffffffff

def int_to_float32(x: int) -> float:
  """Round x once to float32. The conversion to a double sets the last bit if it loses bits."""
  size = abs(x)
  if size >> 53:
    extra = size.bit_length() - 40
    size = size >> extra << extra | bool(size & ((1 << extra) - 1)) << extra
    if size >> 128: return -math.inf if x < 0 else math.inf
  return round_float32(math.copysign(size, x))

def _int_to_float64(x: int) -> float:
  try: return float(x)
  except OverflowError: return -math.inf if x < 0 else math.inf

_FLOAT_TO_INT: dict[DType, Function] = {dtypes.uint32: float_to_int64, dtypes.int64: float_to_int64,
                                        dtypes.uint64: float_to_uint64}
_cast: dict[tuple[DType, DType], Function] = {}

def cast(source: DType, target: DType) -> Function:
  """Return the conversion of values of type `source` to type `target` (both scalar).

  Float to integer truncates toward zero, and then wraps. It goes through int32 for int32 and types up to 16 bits,
  through int64 for uint32 and int64. NaN and values outside of the range of that type give its smallest number, as on
  x86. To bool: is it unequal to 0?
  """
  found = _cast.get((source, target))
  if found is None: found = _cast.setdefault((source, target), _make_cast(source, target))
  return found

def _make_cast(source: DType, target: DType) -> Function:
  if target is dtypes.bool: return bool
  to_float, from_float = dtypes.is_float(target), dtypes.is_float(source)
  rounded = round_to(target)
  if from_float and to_float: return rounded
  if from_float:
    if target is dtypes.weakint: return lambda x: int(x) if math.isfinite(x) else 0
    convert = _FLOAT_TO_INT.get(target, float_to_int32)
    return lambda x: rounded(convert(x))
  if not to_float: return rounded
  if target in (dtypes.float64, dtypes.weakfloat): return _int_to_float64
  if target is dtypes.float32: return int_to_float32
  return lambda x: rounded(int_to_float32(x))

_STRUCT: dict[str, struct.Struct] = {}

def to_bytes(x: Scalar, dtype: DType) -> bytes:
  """Return a scalar as bytes, little-endian."""
  if dtype in CODED: return int(CODED[dtype][1](x)).to_bytes(dtype.itemsize, "little")
  if dtype.fmt is None: raise DTypeError(f"a {dtype} has no bytes; cast it to a type with a width first")
  return struct.pack("<" + dtype.fmt, round_to(dtype)(x))

def from_bytes(data: bytes, dtype: DType) -> Scalar:
  """Return the scalar that bytes hold."""
  if dtype in CODED: return CODED[dtype][0](int.from_bytes(data, "little"))
  if dtype.fmt is None: raise DTypeError(f"a {dtype} has no bytes; cast it to a type with a width first")
  return struct.unpack("<" + dtype.fmt, data)[0]

# Types that memoryview does not know: (decode, encode), from and to unsigned integers of their width.
CODED: dict[DType, tuple[Callable[[int], float], Callable[[float], int]]] = {
  dtypes.float16: (decode_float16, encode_float16), dtypes.bfloat16: (decode_bfloat16, encode_bfloat16),
  **{d: ((lambda code, d=d: decode_float(code, d)),  # type: ignore[misc]  # no type of d
         (lambda x, d=d: encode_float(x, d))) for d in dtypes.fp8s},  # type: ignore[misc]
}

class _Coded:
  """Elements of a type that memoryview does not know, over a view of their codes."""
  __slots__ = ("codes", "decode", "encode")

  def __init__(self, codes: memoryview, dtype: DType):
    self.codes = codes
    self.decode, self.encode = CODED[dtype]

  def __len__(self) -> int: return len(self.codes)
  def __getitem__(self, i: int) -> float: return self.decode(self.codes[i])
  def __setitem__(self, i: int, x: float) -> None: self.codes[i] = self.encode(x)

def elements(memory: Any, dtype: DType) -> Any:
  """Return memory (any object with the buffer protocol) as a sequence of elements of a scalar type.

  A list is returned as it is.
  """
  if isinstance(memory, list): return memory
  view = memoryview(memory)
  if view.format != "B" or view.ndim != 1: view = view.cast("B")
  if view.nbytes % dtype.itemsize: view = view[:view.nbytes // dtype.itemsize * dtype.itemsize]
  if dtype in CODED: return _Coded(view if dtype.itemsize == 1 else view.cast("H"), dtype)
  if dtype.fmt is None: raise DTypeError(f"memory cannot hold {dtype}; give the buffer a type with a width")
  return view.cast(dtype.fmt)  # type: ignore[call-overload]  # the stubs know formats as literals only

# ***** operations by name *****

_COMPARE: dict[str, Function] = {"CMPLT": operator.lt, "CMPNE": operator.ne, "CMPEQ": operator.eq}
# the result is one of the operands
_CHOOSE: dict[str, Function] = {"MAX": maximum, "WHERE": lambda c, a, b: a if c else b}

# Rounded after the operation
_ON_FLOATS: dict[str, Function] = {
  "ADD": operator.add, "SUB": operator.sub, "MUL": operator.mul, "FDIV": divide, "RECIPROCAL": lambda x: divide(1.0, x),
  "SQRT": square_root,
  "EXP2": exp2, "LOG2": log2, "EXP": exp, "LOG": log, "SIN": sin, "COS": cos, "TANH": math.tanh, "ERF": math.erf,
  "POW": power,
  "NEG": operator.neg, "TRUNC": truncate_float,
}
_ON_INTS: dict[str, Function] = {
  "ADD": operator.add, "SUB": operator.sub, "MUL": operator.mul, "IDIV": floor_divide, "MOD": modulo,
  "NEG": operator.neg, "TRUNC": lambda x: x,
  "AND": operator.and_, "OR": operator.or_, "XOR": operator.xor, "MULACC": lambda a, b, c: a * b + c,
}
_ON_BOOLS: dict[str, Function] = {
  "ADD": operator.or_, "MUL": operator.and_, "SUB": operator.xor, "AND": operator.and_, "OR": operator.or_,
  "XOR": operator.xor,
  "NEG": operator.not_, "MULACC": lambda a, b, c: (a and b) or c,
}

def dot4(a: DType, b: DType) -> Function:
  """Return x, y, z -> z + the sum of the products of the four bytes of x and y, as int32.

  The bytes of an operand of type int32 have signs, those of uint32 have none.
  """
  first, second, wrap = _bytes_of_word(a), _bytes_of_word(b), round_to(dtypes.int32)
  return lambda x, y, z: wrap(z + sum(map(operator.mul, first(x), second(y))))

def dot2(x: int, y: int, z: float) -> float:
  """Return z + the products of the two bfloat16 of x and y, in float32: first that of the upper halves.

  Each step rounds once. Subnormal numbers, given or computed, count as zero.
  """
  for shift in (16, 0):
    a, b = (_normal(decode_bfloat16(w >> shift & 0xffff)) for w in (x, y))
    z = _normal(fused_float32(a, b, _normal(z)))
  return z

def bfloat16_product(xs: Sequence[int], ys: Sequence[int], z: float) -> float:
  """Return z + the products of the bfloat16 in the words of xs and ys, in float32.

  Those of the lower halves and those of the upper halves are summed apart, from 0. Each step rounds once. Subnormal
  numbers, given or computed, count as zero.
  """
  sums = []
  for shift in (0, 16):
    total = 0.0
    for x, y in zip(xs, ys):
      a, b = (_normal(decode_bfloat16(w >> shift & 0xffff)) for w in (x, y))
      total = _normal(fused_float32(a, b, total))
    sums.append(total)
  return _normal(round_float32(_normal(z) + _normal(round_float32(sums[0] + sums[1]))))

def _normal(x: float) -> float: return math.copysign(0.0, x) if abs(x) < 2.0 ** -126 else x

def _bytes_of_word(dtype: DType) -> Callable[[Any], tuple[int, ...]]:
  unpack = struct.Struct("4B" if dtypes.is_unsigned(dtype) else "4b").unpack
  return lambda x: unpack((x & 0xffffffff).to_bytes(4, "little"))

def _rounded(f: Function, rounding: Function, arity: int) -> Function:
  if arity == 1: return lambda a: rounding(f(a))
  if arity == 2: return lambda a, b: rounding(f(a, b))
  return lambda a, b, c: rounding(f(a, b, c))

_UNARY = frozenset({"NEG", "RECIPROCAL", "SQRT", "TRUNC", "EXP2", "LOG2", "EXP", "LOG", "SIN", "COS", "TANH", "ERF"})
_operation: dict[tuple[str, DType], Function] = {}

def operation(name: str, dtype: DType) -> Function:
  """Return the elementwise operation `name` (as in Ops) whose result has a scalar type. Comparisons are the same for
  all types.

  Raises DTypeError for an unknown operation.
  """
  found = _operation.get((name, dtype))
  if found is None: found = _operation.setdefault((name, dtype), _make_operation(name, dtype))
  return found

def whatever_others_are(name: str, dtype: DType, operands: int, position: int, value: Scalar) -> Scalar | None:
  """Return the result of an operation of which one operand is known, if it is the same for all finite other ones; else
  None.

  name, dtype: as of `operation`; CAST of 0 or -inf is the same value. position: that of the known operand.
  """
  if name == "MUL" and value == 0 and dtypes.is_float(dtype): return value
  if value == -math.inf and (name == "ADD" or name == "SUB" and position == 0): return value
  if operands > 1 or name == "BITCAST": return None
  if name == "CAST": return value if value in (0, -math.inf) and dtypes.is_float(dtype) else None
  return operation(name, dtype)(value)

def _make_operation(name: str, dtype: DType) -> Function:
  if name in _COMPARE: return _COMPARE[name]
  if name in _CHOOSE: return _CHOOSE[name]
  if dtype is dtypes.bool and name in _ON_BOOLS: return _ON_BOOLS[name]
  if dtype is dtypes.uint64 and name == "THREEFRY": return threefry
  rounding, arity = round_to(dtype), 3 if name == "MULACC" else 2 - (name in _UNARY)
  if dtypes.is_float(dtype):
    if name == "MULACC" and dtype in (dtypes.float64, dtypes.weakfloat): return fused_float64
    if name == "MULACC": return fused_float32 if dtype is dtypes.float32 else _rounded(fused_float32, rounding, 3)
    if name in _ON_FLOATS: return _rounded(_ON_FLOATS[name], rounding, arity)
  elif dtypes.is_int(dtype):
    if name == "SHL": return _rounded(shift_left(dtype.bitsize), rounding, 2)
    if name == "SHR": return shift_right(dtype.bitsize)
    if name in _ON_INTS: return _rounded(_ON_INTS[name], rounding, arity)
  raise DTypeError(f"{name} has no meaning for {dtype}; cast the operands to a type that has it")
