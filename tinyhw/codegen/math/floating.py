"""The language of the expansions of transcendental functions: float formats, bits of floats, sums and products with
their errors.

All functions take and return UOps of one lane count. A Python number is a constant of the other operand's type. Nothing
here is simplified. `Precise` is an unevaluated sum of two floats, which together have about twice the precision.
"""
from __future__ import annotations
from collections.abc import Sequence

from tinyhw.dtype import DType, dtypes
from tinyhw.named_tuple import NamedTuple
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp

Real = UOp | float

class FloatEncoding(NamedTuple):
  """A binary float: its types of the same width, the bits of its stored mantissa, and its exponent's bias."""
  real: DType
  signed: DType
  unsigned: DType
  mantissa: int
  bias: int

  @property
  def one(self) -> int:
    """The bits of 1.0."""
    return self.bias << self.mantissa

  @property
  def sign(self) -> int: return 1 << (self.real.bitsize - 1)

  @property
  def infinity(self) -> int: return (2 * self.bias + 1) << self.mantissa

  @property
  def smallest_normal(self) -> float: return 2.0 ** (1 - self.bias)

  @property
  def rounder(self) -> float:
    """A number that rounds. The sum with a number below a quarter of it has the nearest integer k in its low bits, as k
    + bias. That is the exponent field of 2**k."""
    return 1.5 * 2.0 ** self.mantissa + self.bias

SINGLE = FloatEncoding(dtypes.float32, dtypes.int32, dtypes.uint32, 23, 127)
DOUBLE = FloatEncoding(dtypes.float64, dtypes.int64, dtypes.uint64, 52, 1023)

def format_of(x: UOp) -> FloatEncoding: return SINGLE if x.dtype.scalar() is dtypes.float32 else DOUBLE

# ***** bits *****

def signed(x: UOp) -> UOp: return x.bitcast(format_of(x).signed.vec(x.dtype.count))
def unsigned(x: UOp) -> UOp: return x.bitcast(format_of(x).unsigned.vec(x.dtype.count))
def real(bits: UOp) -> UOp:
  return bits.bitcast((dtypes.float32 if bits.dtype.scalar().itemsize == 4 else dtypes.float64).vec(bits.dtype.count))

def magnitude(x: UOp) -> UOp: return real(unsigned(x) & (format_of(x).sign - 1))
def sign_bit(x: UOp) -> UOp: return unsigned(x) & format_of(x).sign
def with_sign(x: UOp, sign: UOp) -> UOp:
  """Return x with its sign flipped where the sign bit is set."""
  return real(unsigned(x) ^ sign)

# ***** arithmetic *****

def fma(a: UOp, b: Real, c: Real) -> UOp: return a.alu(Ops.MULACC, a.const_like(b), a.const_like(c))
def subtract(a: UOp, b: UOp) -> UOp: return a.alu(Ops.SUB, b)
def minimum(x: UOp, limit: Real) -> UOp:
  """Return x where it is below the limit or NaN: one instruction where the target fuses comparison and choice."""
  return (x > limit).where(limit, x)

def clamp(x: UOp, low: float, high: float) -> UOp:
  """Return x limited to low..high. NaN stays."""
  return minimum(x.maximum(low), high)

def polynomial(x: UOp, coefficients: Sequence[float], last: Real | None = None) -> UOp:
  """Evaluate a polynomial by Horner's rule; coefficients from the lowest power, after `last` if that is given."""
  result: Real = coefficients[-1]
  rest = list(coefficients[-2::-1]) + ([last] if last is not None else [])
  for k, c in enumerate(rest): result = fma(x, result, c) if k or isinstance(result, float) else c
  assert isinstance(result, UOp), "a polynomial of degree 0"
  return result

class Precise(NamedTuple):
  """high + low, with low below about half of high's last place."""
  high: UOp
  low: UOp

def fast_sum(a: UOp, b: UOp) -> Precise:
  """Return a + b exactly, where a is not smaller than b or is 0."""
  total = a + b
  return Precise(total, subtract(b, subtract(total, a)))

def exact_sum(a: UOp, b: UOp) -> Precise:
  """Return a + b exactly. Source: Knuth, The Art of Computer Programming 2, 4.2.2 theorem B."""
  total = a + b
  of_b = subtract(total, a)
  of_a = subtract(total, of_b)
  return Precise(total, subtract(a, of_a) + subtract(b, of_b))

def _halves(x: UOp) -> tuple[UOp, UOp]:
  """Return x as two numbers of half the bits. Source: Veltkamp 1968; for numbers that this does not overflow."""
  scaled = x * float((1 << (format_of(x).mantissa + 2) // 2) + 1)
  high = subtract(scaled, subtract(scaled, x))
  return high, subtract(x, high)

def exact_product(a: UOp, b: UOp, fused: bool) -> Precise:
  """Return a * b exactly, unless that underflows. Without fused multiply-add: Dekker 1971."""
  product = a * b
  if fused: return Precise(product, fma(a, b, -product))
  (a1, a0), (b1, b0) = _halves(a), _halves(b)
  return Precise(product, a0 * b0 + (a0 * b1 + (a1 * b0 + subtract(a1 * b1, product))))
