"""How far methods of Tensor are from the truth, in units of the last place (ULP), on a device: what
test/numerics/measure.py measures and writes down, and tests hold it to.

The truth is NumPy's longdouble, which on x86-64 has 11 bits more than a float64 (`EXACT`), by the C library's
functions. OPERATIONS are the elementwise UOps as methods; METHODS what is made of them. Samples are the same in each
run. On a device that flushes subnormal numbers of float32, operands of that kind are zeros, and so may results be.
"""
from __future__ import annotations
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import ulps

from ulps import flushes
from tinyhw.dtype import DType, FLOAT_FORMATS, dtypes
from tinyhw.tensor import Tensor

Array = ulps.Array
LONG = np.longdouble
EXACT = np.finfo(np.longdouble).nmant >= 63
SAMPLES = {dtypes.float32: 1 << 15, dtypes.float64: 1 << 13}
PYTHON_SAMPLES = 1 << 10  # of the device PYTHON
LEAST_NORMAL = 2.0 ** -126  # of float32
HALF_PI = np.arctan(LONG(1)) * 2

class Method(NamedTuple):
  """A method and its truth on longdoubles. samples: of both operands, for those that take two. beside: errors count in
  units of this, where it is larger than the truth (what cancels cannot be better than its operands)."""
  ours: Callable[..., Tensor]
  truth: Callable[..., Array]
  samples: Callable[[DType, int], tuple[Array, ...]] | None = None
  beside: Callable[[DType, tuple[Array, ...]], Array] | None = None

# ***** truths *****

def sigmoid(x: Array) -> Array: return np.where(x < 0, np.exp(x) / (1 + np.exp(x)), 1 / (1 + np.exp(-x)))
def softplus(x: Array) -> Array: return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))
def gelu_tanh(x: Array) -> Array: return x * sigmoid(2 * np.sqrt(1 / HALF_PI) * (x + LONG("0.044715") * x ** 3))
def expm1(x: Array) -> Array: return np.where(x > 0, x, np.expm1(np.minimum(x, 0)))
def erf(x: Array) -> Array:
  """By a series of positive terms: 2/sqrt(pi) * exp(-x*x) * (x + 2 x**3 / 3 + 4 x**5 / 15 + ...)."""
  size = np.minimum(np.abs(x), 7)
  term = total = size
  for n in range(1, 220):
    term = term * (2 * size * size / (2 * n + 1))
    total = total + term
  return np.copysign(np.where(np.isnan(x), x, np.minimum(total * np.exp(-size * size) / np.sqrt(HALF_PI / 2), 1)), x)

def erfc(x: Array) -> Array:
  """1 - erf(x); above 2 by a continued fraction."""
  far = np.maximum(x, 2)
  fraction = np.zeros_like(far)
  for k in range(120, 0, -1): fraction = LONG(k) / 2 / (far + fraction)
  return np.where(x > 2, np.exp(-far * far) / (far + fraction) / np.sqrt(2 * HALF_PI), 1 - erf(np.minimum(x, 2)))

def gelu_erf(x: Array) -> Array: return x / 2 * erfc(-x * np.sqrt(LONG(0.5)))

def largest_operand(dtype: DType, operands: tuple[Array, ...]) -> Array: return np.max(np.abs(operands), axis=0)

def tiny(dtype: DType, operands: tuple[Array, ...]) -> Array:
  """x times the smallest normal number: where exp(x) is subnormal, x times it is as wrong."""
  return np.abs(operands[0]) * LONG(2) ** (1 - FLOAT_FORMATS[dtype].bias)

# ***** samples of two operands *****

def pairs(dtype: DType, n: int) -> tuple[Array, ...]:
  """All pairs of special values, and any with any."""
  x, special = ulps.samples(dtype, n), np.array(ulps.edges(dtype), ulps.numpy_type(dtype))
  y = np.random.default_rng(1).permutation(x)
  return np.concatenate([np.repeat(special, len(special)), x]), np.concatenate([np.tile(special, len(special)), y])

def near(dtype: DType, n: int) -> tuple[Array, ...]:
  """Numbers of one size, whose exponentials add up to something else than the larger."""
  rng, kind = np.random.default_rng(2), ulps.numpy_type(dtype)
  x = (rng.choice([-1, 1], n) * ulps.powers_of_two(rng.uniform(-10, 7, n))).astype(kind)
  return x, (x + rng.uniform(-20, 20, n)).astype(kind)

def quotients(dtype: DType, n: int) -> tuple[Array, ...]:
  """Dividends up to 2**60 times their divisors."""
  rng, kind = np.random.default_rng(3), ulps.numpy_type(dtype)
  y = (rng.choice([-1, 1], n) * ulps.powers_of_two(rng.uniform(-30, 30, n))).astype(kind)
  return (y * rng.choice([-1, 1], n) * ulps.powers_of_two(rng.uniform(-3, 60, n))).astype(kind), y

# ***** what is measured *****

OPERATIONS: dict[str, Method] = {
  "x + y": Method(lambda x, y: x + y, lambda x, y: x + y, pairs),
  "x - y": Method(lambda x, y: x - y, lambda x, y: x - y, pairs),
  "x * y": Method(lambda x, y: x * y, lambda x, y: x * y, pairs),
  "x / y": Method(lambda x, y: x / y, lambda x, y: x / y, pairs),
  "reciprocal": Method(lambda x: x.reciprocal(), lambda x: 1 / x), "sqrt": Method(lambda x: x.sqrt(), np.sqrt),
  "trunc": Method(lambda x: x.trunc(), np.trunc), "floor": Method(lambda x: x.floor(), np.floor),
  "ceil": Method(lambda x: x.ceil(), np.ceil),
  "round": Method(lambda x: x.round(), np.rint),
  "fmod": Method(lambda x, y: x.fmod(y), np.fmod, quotients),
  "x % y": Method(lambda x, y: x % y, np.remainder, quotients),
  "exp": Method(lambda x: x.exp(), np.exp), "exp2": Method(lambda x: x.exp2(), np.exp2),
  "log": Method(lambda x: x.log(), np.log),
  "log2": Method(lambda x: x.log2(), np.log2), "sin": Method(lambda x: x.sin(), np.sin),
  "cos": Method(lambda x: x.cos(), np.cos),
  "tanh": Method(lambda x: x.tanh(), np.tanh), "erf": Method(lambda x: x.erf(), erf),
  "x ** y": Method(lambda x, y: x ** y, np.power, ulps.power_samples),
}
METHODS: dict[str, Method] = {
  "rsqrt": Method(lambda x: x.rsqrt(), lambda x: 1 / np.sqrt(x)), "log10": Method(lambda x: x.log10(), np.log10),
  "tan": Method(lambda x: x.tan(), np.tan), "asin": Method(lambda x: x.asin(), np.arcsin),
  "acos": Method(lambda x: x.acos(), np.arccos),
  "atan": Method(lambda x: x.atan(), np.arctan), "sinh": Method(lambda x: x.sinh(), np.sinh),
  "cosh": Method(lambda x: x.cosh(), np.cosh),
  "asinh": Method(lambda x: x.asinh(), np.arcsinh), "acosh": Method(lambda x: x.acosh(), np.arccosh),
  "atanh": Method(lambda x: x.atanh(), np.arctanh),
  "x ** 2": Method(lambda x: x ** 2, lambda x: x ** 2), "x ** 3": Method(lambda x: x ** 3, lambda x: x ** 3),
  "x ** 4": Method(lambda x: x ** 4, lambda x: x ** 4), "x ** -2": Method(lambda x: x ** -2, lambda x: 1 / x / x),
  "sigmoid": Method(lambda x: x.sigmoid(), sigmoid),
  "logsigmoid": Method(lambda x: x.logsigmoid(), lambda x: -softplus(-x)),
  "softplus": Method(lambda x: x.softplus(), softplus), "silu": Method(lambda x: x.silu(), lambda x: x * sigmoid(x),
                                                                       None, tiny),
  "mish": Method(lambda x: x.mish(), lambda x: x * np.tanh(softplus(x)), None, tiny),
  "gelu": Method(lambda x: x.gelu(), gelu_tanh, None, largest_operand),
  "gelu('none')": Method(lambda x: x.gelu("none"), gelu_erf, None, largest_operand),
  "elu": Method(lambda x: x.elu(), expm1),
  "softsign": Method(lambda x: x.softsign(), lambda x: x / (1 + np.abs(x))),
  "logaddexp": Method(lambda x, y: x.logaddexp(y), np.logaddexp, near, largest_operand),
}

# ***** measuring *****

def inputs(method: Method, dtype: DType, n: int | None = None) -> tuple[Array, ...]:
  """Samples of a type, as arrays; all numbers of types narrower than float32 (some pairs of them)."""
  if dtype in dtypes.narrow_floats: return narrow_inputs(method, dtype)
  count = SAMPLES[dtype] if n is None else n
  return (ulps.samples(dtype, count),) if method.samples is None else method.samples(dtype, count)

def narrow_inputs(method: Method, dtype: DType) -> tuple[Array, ...]:
  from tinyhw.arithmetic import CODED
  decode = CODED[dtype][0]
  every = np.array([decode(code) for code in range(1 << dtype.bitsize)], np.float32)
  if method.samples is None: return (every,)
  x, y = np.repeat(every, 256), np.tile(every, 256)
  if dtype.bitsize == 16: x, y = every, np.random.default_rng(4).permutation(every)
  inside = np.ones(len(x), np.bool_) if method.samples is not quotients else ~(np.abs(x.astype(LONG)) > 2.0 ** 60
                                                                               * np.abs(y.astype(LONG)))
  return x[inside], y[inside]

def run(method: Method, dtype: DType, operands: Sequence[Array], device: str) -> Array:
  """Return the results of a device, as numbers of a type that holds them."""
  tensors = [Tensor(x, device=device).cast(dtype).realize() for x in operands]
  result = method.ours(*tensors)
  assert result.dtype is dtype, f"{result.dtype} from {dtype}"
  values: Array = (result.float() if dtype in dtypes.narrow_floats else result).numpy()
  return values

def flushed(x: Array) -> Array:
  """Return numbers of float32 with zeros in the place of subnormal ones; signs stay."""
  return np.where(np.abs(x) < LEAST_NORMAL, np.copysign(0, x), x).astype(x.dtype)

def errors(got: Array, want: Array, dtype: DType, beside: Array | None = None) -> Array:
  """In ULP at the truth, or at what is beside it and larger. Infinite where one is NaN or infinite and the other should
  not be; what rounds to infinity may be infinite."""
  form = FLOAT_FORMATS[dtype]
  least = 1 - form.bias - form.mantissa_bits
  with np.errstate(all="ignore"):
    rounded = rounded_to(want, dtype)
    size = want if beside is None else np.where(np.isfinite(beside), np.maximum(np.abs(want), beside), want)
    unit = np.ldexp(LONG(1), np.maximum(np.frexp(size)[1] - 1 - form.mantissa_bits, least))
    wrong = np.abs(got - want) / unit
    fits = (got == rounded) | (np.isnan(got) & np.isnan(rounded))
    wrong = np.where(np.isfinite(got) & np.isfinite(want) & np.isfinite(rounded), wrong, np.where(fits, 0, np.inf))
    largest = largest_of(dtype)
    # on both sides of the last number
    barely = np.isfinite(want) & (np.isinf(got) | np.isinf(rounded) | np.isnan(got)) & ~fits
    past = np.where(np.isfinite(got), np.abs(got), largest + unit)
    wrong = np.where(barely & ~np.isnan(got), np.abs(past - np.abs(want)) / unit, wrong)
  return np.asarray(wrong, np.float64)

def largest_of(dtype: DType) -> float:
  from tinyhw.dtype import decode_float
  return decode_float(FLOAT_FORMATS[dtype].largest_code, dtype)

def rounded_to(want: Array, dtype: DType) -> Array:
  """The truth rounded once to a type."""
  kind = {dtypes.float32: np.float32, dtypes.float64: np.float64, dtypes.float16: np.float16}.get(dtype)
  if kind is not None: return want.astype(kind)
  from tinyhw.arithmetic import round_to
  f = round_to(dtype)
  return np.array([f(float(x)) for x in want], np.float32)

def worst(method: Method, dtype: DType, device: str, n: int | None = None) -> tuple[float, tuple[float, ...]]:
  """The largest error on a device, and the operands that have it."""
  operands = inputs(method, dtype, n)
  got = run(method, dtype, operands, device)
  return worst_of(method, dtype, operands, got, dtype is dtypes.float32 and flushes(device))

def worst_of(method: Method, dtype: DType, operands: Sequence[Array], got: Array, is_flushed: bool = False
             ) -> tuple[float, tuple[float, ...]]:
  """The same of results. is_flushed: of a device without subnormal numbers."""
  with np.errstate(all="ignore"):
    wide = [(flushed(x) if is_flushed else x).astype(LONG) for x in operands]
    want = method.truth(*wide)
    beside = None if method.beside is None else method.beside(dtype, tuple(wide))
  wrong = errors(got.astype(LONG), want, dtype, beside)
  if is_flushed:     # a term of the result may have been subnormal
    slack = 2 * LEAST_NORMAL if method.beside is None else np.maximum(tiny(dtype, tuple(wide)), 2 * LEAST_NORMAL)
    with np.errstate(invalid="ignore"): wrong = np.where(np.abs(got - want) <= slack, 0, wrong)
  at = int(np.argmax(wrong))
  return float(wrong[at]), tuple(float(x[at]) for x in operands)

def smallest_of(dtype: DType) -> float:
  """The smallest number above 0."""
  from tinyhw.dtype import decode_float
  return decode_float(1, dtype)
