"""Arithmetic beyond the operators: products with sums, remainders, decompositions of floats, differences, integrals.

Source of the meanings: PyTorch's documentation. Tensors and numbers promote as in operands.py.
"""
from __future__ import annotations
import math
from typing import Any

from tinyhw.dtype import complex_of, dtypes, least_upper_dtype
from tinyhw.errors import ArgumentError, DTypeError, ShapeError
from tinyhw.functional.operands import (
  axis_of, broadcast, checked, floats, is_scalar, rank, result_type, sizes, tensor, tensors, want_float, want_int)
from tinyhw.functional.rules import with_rule
from tinyhw.methods.base import Handle
from tinyhw.methods.checks import real, whole
from tinyhw.tensor import Tensor

def add(input: Any, other: Any, alpha: Any = 1) -> Tensor:
  """Return input + alpha * other."""
  a, b = tensors(input, other)
  _check_alpha(a, alpha)
  return a.add(b if alpha == 1 else b.mul(alpha))

def sub(input: Any, other: Any, alpha: Any = 1) -> Tensor:
  """Return input - alpha * other. Raises DTypeError for bools."""
  a, b = tensors(input, other)
  if any(isinstance(x, Handle) and x.dtype is dtypes.bool or isinstance(x, bool) for x in (input, other)):
    raise DTypeError("cannot subtract bools; use logical_xor, or cast them")
  _check_alpha(a, alpha)
  return a.sub(b if alpha == 1 else b.mul(alpha))

def rsub(input: Any, other: Any, alpha: Any = 1) -> Tensor:
  """Return other - alpha * input."""
  return sub(other, input, alpha)

def _check_alpha(a: Tensor, alpha: Any) -> None:
  if not is_scalar(alpha): raise ArgumentError(f"alpha is a number, not {alpha!r}")
  if isinstance(alpha, bool) and a.dtype is not dtypes.bool:
    raise DTypeError("a bool as alpha is for bool tensors; give a number")
  if isinstance(alpha, (float, complex)) and rank(a.dtype) < (2 if isinstance(alpha, float) else 3):
    raise DTypeError(f"alpha {alpha} is no integer, and the result is {a.dtype}; cast the operands to a float type")

def mul(input: Any, other: Any) -> Tensor:
  """Return input * other."""
  a, b = tensors(input, other)
  return a.mul(b)

def div(input: Any, other: Any, rounding_mode: str | None = None) -> Tensor:
  """Return input / other, a float. rounding_mode "floor" and "trunc" round, and keep integers."""
  if rounding_mode is None:
    a, b = floats(input, other)
    return a.div(b)
  a, b = _numbers("div", input, other)
  return a.div(b, rounding_mode=rounding_mode)

def _numbers(what: str, input: Any, other: Any) -> list[Tensor]:
  """Return operands as tensors of their common type. Raises DTypeError if it is bool."""
  found = tensors(input, other)
  if found[0].dtype is dtypes.bool: raise DTypeError(f"{what} wants numbers, not two bools; cast one with .long()")
  return found

def floor_divide(input: Any, other: Any) -> Tensor:
  """Return floor(input / other)."""
  a, b = _numbers("floor_divide", input, other)
  return a.div(b, rounding_mode="floor")

def remainder(input: Any, other: Any) -> Tensor:
  """Return the remainder with the sign of the divisor."""
  a, b = _numbers("remainder", input, other)
  found = a.mod(b)
  return found if not dtypes.is_float(found.dtype) else found.isinf().where(a.sub(a.div(b).floor().mul(b)), found)

def fmod(input: Any, other: Any) -> Tensor:
  """Return the remainder with the sign of the dividend."""
  a, b = _numbers("fmod", input, other)
  return a.fmod(b)

def pow(input: Any, exponent: Any) -> Tensor:
  """Return input ** exponent."""
  if isinstance(input, Handle) and is_scalar(exponent):
    kind = result_type(input, exponent)
    if isinstance(exponent, bool): exponent = int(exponent)
    return input._self().cast(kind).pow(exponent)
  a, b = _numbers("pow", input, exponent)
  return a.pow(b)

def float_power(input: Any, exponent: Any) -> Tensor:
  """Return input ** exponent, in float64 or complex128."""
  a, b = tensors(input, exponent)
  kind = complex_of(dtypes.float64) if rank(a.dtype) > 2 else dtypes.float64
  return a.cast(kind).pow(b.cast(kind))

def maximum(input: Any, other: Any) -> Tensor:
  """Return the larger of each pair, NaN if either is NaN."""
  a, b = tensors(checked("maximum", input), checked("maximum", other))
  return a.maximum(b)

def minimum(input: Any, other: Any) -> Tensor:
  """Return the smaller of each pair, NaN if either is NaN."""
  a, b = tensors(checked("minimum", input), checked("minimum", other))
  return a.minimum(b)

def fmax(input: Any, other: Any) -> Tensor:
  """Return the larger of each pair; of a number and NaN the number."""
  a, b = tensors(checked("fmax", input), checked("fmax", other))
  if not dtypes.is_float(a.dtype): return a.maximum(b)
  return a.isnan().where(b, b.isnan().where(a, a.ge(b).where(a, b)))

def fmin(input: Any, other: Any) -> Tensor:
  """Return the smaller of each pair; of a number and NaN the number."""
  a, b = tensors(checked("fmin", input), checked("fmin", other))
  if not dtypes.is_float(a.dtype): return a.minimum(b)
  return a.isnan().where(b, b.isnan().where(a, a.le(b).where(a, b)))

def addcmul(input: Tensor, tensor1: Tensor, tensor2: Tensor, value: Any = 1) -> Tensor:
  """Return input + value * tensor1 * tensor2."""
  a, b, c = tensors(input, checked("addcmul", tensor1), checked("addcmul", tensor2))
  _check_alpha(a, value)
  return a.add(b.mul(value).mul(c) if value != 1 else b.mul(c))

def addcdiv(input: Tensor, tensor1: Tensor, tensor2: Tensor, value: Any = 1) -> Tensor:
  """Return input + value * tensor1 / tensor2. Raises DTypeError for integers."""
  a, b, c = tensors(input, checked("addcdiv", tensor1), checked("addcdiv", tensor2))
  if rank(b.dtype) < 2: raise DTypeError("addcdiv divides floats; cast the operands, or use addcmul")
  return a.add(b.div(c).mul(value))

def frac(input: Tensor) -> Tensor:
  """Return the part after the point, with the sign of input."""
  want_float("frac", checked("frac", input))
  return input.sub(input.trunc())

def round(input: Tensor, decimals: int = 0) -> Tensor:
  """Round to a number of decimals, halves to even."""
  decimals = whole("decimals", decimals)
  if not decimals: return checked("round", input).round()
  want_float("round to decimals", input)
  scale = 10.0 ** abs(decimals)
  if decimals > 0: return input.mul(scale).round().div(scale)
  return input.div(scale).round().mul(scale)

def frexp(input: Tensor) -> tuple[Tensor, Tensor]:
  """Return (mantissa, exponent) with input = mantissa * 2**exponent and 0.5 <= abs(mantissa) < 1."""
  want_float("frexp", checked("frexp", input))
  x = input.double()
  # powers of two leave a float64 exact; a float32 that is not normal is normal in float64
  bits = x.detach().bitcast(dtypes.int64)
  biased = bits.rshift(52).bitwise_and(0x7FF)
  special = x.eq(0) | x.isinf() | x.isnan()
  exponent = special.where(0, biased.sub(1022))
  mantissa = special.where(x, x.mul(_power_of_two(exponent.neg())))
  return mantissa.cast(input.dtype), exponent.int()

def _power_of_two(exponent: Tensor) -> Tensor:
  """Return 2.0**exponent in float64, exactly, for integers from -1022 to 1023."""
  return exponent.long().add(1023).lshift(52).bitcast(dtypes.float64)

def ldexp(input: Any, other: Any) -> Tensor:
  """Return input * 2**other."""
  a, b = tensors(input, other)
  wide = a.cast(a.dtype if rank(a.dtype) > 1 else dtypes.default_float)
  return wide.mul(b.cast(wide.dtype).exp2())

def nextafter(input: Tensor, other: Tensor) -> Tensor:
  """Return the next number of the type from input towards other."""
  a, b = tensors(checked("nextafter", input), checked("nextafter", other))
  want_float("nextafter", a)
  a, b = broadcast(a, b)
  kind = {2: dtypes.int16, 4: dtypes.int32, 8: dtypes.int64}[a.dtype.itemsize]
  bits = a.bitcast(kind)
  away = b.gt(a).eq(a.gt(0))
  stepped = bits.add(away.where(1, -1).cast(kind)).bitcast(a.dtype)
  least = Tensor.full((), 1, kind).bitcast(a.dtype)
  found = a.eq(0).where(b.gt(0).where(least, least.neg()), stepped)
  found = (a.isnan() | b.isnan()).where(math.nan, a.eq(b).where(b, found))
  def rule(y: Tensor, g: Tensor, x: Tensor) -> tuple[Tensor]: return (x.ne(b.detach()).where(g, 0),)
  return with_rule(found.detach(), (a,), rule)

def hypot(input: Tensor, other: Tensor) -> Tensor:
  """Return sqrt(input**2 + other**2) without overflow."""
  a, b = floats(input, other)
  x, y = a.abs(), b.abs()
  most, least = x.maximum(y), x.minimum(y)
  ratio = most.eq(0).where(0, least.div(most.eq(0).where(1, most)))
  found = most.mul(ratio.square().add(1).sqrt())
  return (x.isinf() | y.isinf()).where(math.inf, found)

def gcd(input: Tensor, other: Tensor) -> Tensor:
  """Return the greatest common divisor of integers, by as many steps of Euclid as the type may need."""
  a, b = tensors(checked("gcd", input), checked("gcd", other))
  want_int("gcd", a)
  a, b = (x.abs().contiguous() for x in broadcast(a, b))
  for i in range(a.dtype.itemsize * 12):
    done = b.eq(0)
    a, b = done.where(a, b), done.where(0, a.mod(done.where(1, b)))
    if i % 4 == 3: a, b = a.contiguous(), b.contiguous()
  return a

def lcm(input: Tensor, other: Tensor) -> Tensor:
  """Return the least common multiple of integers."""
  a, b = tensors(checked("lcm", input), checked("lcm", other))
  divisor = gcd(a, b)
  none = divisor.eq(0)
  return none.where(0, a.div(none.where(1, divisor), rounding_mode="floor").mul(b).abs())

def deg2rad(input: Tensor) -> Tensor:
  """Convert degrees to radians."""
  return floats(input)[0].mul(math.pi / 180)

def rad2deg(input: Tensor) -> Tensor:
  """Convert radians to degrees."""
  return floats(input)[0].mul(180 / math.pi)

def expm1(input: Tensor) -> Tensor:
  """Return exp(input) - 1 without cancellation near 0."""
  x = floats(input)[0]
  if x.holds_complex: return x.expm1()  # type: ignore[attr-defined, no-any-return]  # Complex
  want_float("expm1", x)
  return x._precisely(lambda y: y.gt(0).where(_expm1_above(y), y._expm1_below(1.0)))

def _expm1_above(x: Tensor) -> Tensor:
  near = x.lt(1)
  t = near.where(x, 0).mul(0.5).tanh()
  return near.where(t.mul(2).div(t.neg().add(1)), near.where(0, x).exp().sub(1))

def log1p(input: Tensor) -> Tensor:
  """Return log(1 + input) without cancellation near 0."""
  x = floats(input)[0]
  if x.holds_complex: return x.log1p()  # type: ignore[attr-defined, no-any-return]  # Complex
  return x._precisely(lambda x: x.eq(math.inf).where(math.inf, x._log1p()))

def atan2(input: Any, other: Any) -> Tensor:
  """Return the angle of the point (other, input), from -pi to pi."""
  y, x = floats(input, other)
  return y._precisely(lambda y: _angle(y, x.cast(y.dtype)))

def _angle(y: Tensor, x: Tensor) -> Tensor:
  """atan(y / x), plus pi or -pi on the left; or a right angle less atan(x / y), where y is larger. Without absolute
  values, so that the gradient is right on the axes, too."""
  shallow = y.abs().le(x.abs())
  top, bottom = shallow.where(y, x), shallow.where(x, y)
  none, far = x.eq(0) & y.eq(0), x.isinf() & y.isinf()
  one = y.const_like(1)
  ratio = far.where(one.copysign(y).mul(one.copysign(x)), top.div((none | far).where(1, bottom)))
  slope = none.where(y.detach(), ratio).atan()
  left = one.copysign(x.detach()).lt(0)
  return shallow.where(left.where(one.mul(math.pi).copysign(y).add(slope), slope),
                       one.mul(math.pi / 2).copysign(y).sub(slope))

def angle(input: Tensor) -> Tensor:
  """Return the angle of real numbers in the complex plane: 0 or pi."""
  x = floats(input)[0]
  return x.isnan().where(math.nan, x.lt(0).where(math.pi, 0).cast(x.dtype))

def sign(input: Tensor) -> Tensor:
  """Return the sign: -1, 0 or 1; 0 for NaN."""
  x = checked("sign", input)
  return x.isnan().where(0, x.sign()) if dtypes.is_float(x.dtype) else x.sign()

def positive(input: Tensor) -> Tensor:
  """Return input. Raises DTypeError for bools."""
  if checked("positive", input).dtype is dtypes.bool: raise DTypeError("positive wants numbers, not bools")
  return input

def sinc(input: Tensor) -> Tensor:
  """Return sin(pi x) / (pi x), which is 1 at 0."""
  x = floats(input)[0].mul(math.pi)
  zero = x.eq(0)
  return zero.where(x.square().mul(-1 / 6).add(1), x.sin().div(zero.where(1, x)))

def logaddexp2(input: Tensor, other: Tensor) -> Tensor:
  """Return log2(2**input + 2**other) without overflow."""
  a, b = floats(input, other)
  return a.mul(math.log(2)).logaddexp(b.mul(math.log(2))).div(math.log(2))

def logaddexp(input: Tensor, other: Tensor) -> Tensor:
  """Return log(exp(input) + exp(other)) without overflow."""
  a, b = floats(input, other)
  return a.logaddexp(b)

def copysign(input: Any, other: Any) -> Tensor:
  """Return the magnitude of input with the sign of other."""
  a, b = floats(input, other)
  return a.copysign(b)

def lerp(input: Tensor, end: Tensor, weight: Any) -> Tensor:
  """Interpolate linearly between input and end."""
  for x in (input, end, *([weight] if isinstance(weight, Handle) else [])):
    if x.dtype is not input.dtype: raise DTypeError(f"lerp wants tensors of one type, not {input.dtype} and {x.dtype}")
  return input.lerp(end, weight)

# ***** along an axis *****

def diff(input: Tensor, n: int = 1, dim: int = -1, prepend: Tensor | None = None,
         append: Tensor | None = None) -> Tensor:
  """Return the n-th differences of adjacent elements along an axis."""
  n = whole("n", n, 0)
  if not checked("diff", input).ndim: raise ShapeError("diff wants a tensor with an axis")
  dim = axis_of(input, dim)
  if n == 0: return input
  parts = [x for x in (prepend, input, append) if x is not None]
  x = parts[0].cat(*parts[1:], dim=dim) if len(parts) > 1 else input
  for _ in range(n):
    if sizes(x)[dim] == 0: break
    after, before = _part(x, dim, 1, sizes(x)[dim]), _part(x, dim, 0, sizes(x)[dim] - 1)
    x = after.bitwise_xor(before) if x.dtype is dtypes.bool else after.sub(before)
  return x

def _part(x: Tensor, dim: int, begin: int, end: int) -> Tensor:
  return x.shrink([(begin, max(end, begin)) if i == dim else None for i in range(x.ndim)])

def trapezoid(y: Tensor, x: Tensor | None = None, dx: Any = 1, dim: int = -1) -> Tensor:
  """Integrate along an axis by the trapezoidal rule. x: the positions; without them, all distances are dx."""
  return _trapezoids(checked("trapezoid", y), x, dx, dim).sum(axis_of(y, dim))

def cumulative_trapezoid(y: Tensor, x: Tensor | None = None, dx: Any = 1, dim: int = -1) -> Tensor:
  """Return the integral up to each position along an axis."""
  return _trapezoids(checked("cumulative_trapezoid", y), x, dx, dim).cumsum(axis_of(y, dim))

def _trapezoids(y: Tensor, x: Tensor | None, dx: Any, dim: int) -> Tensor:
  if not y.ndim: raise ShapeError("trapezoid wants a tensor with an axis")
  dim = axis_of(y, dim)
  n = sizes(y)[dim]
  if n == 0 and x is None: return y
  wide = y if rank(y.dtype) > 1 else y.float()
  mean = _part(wide, dim, 1, n).add(_part(wide, dim, 0, n - 1)).mul(0.5) if n else wide
  if x is None: return mean.mul(dx)
  if x.ndim == 1: x = x.reshape([-1 if i == dim else 1 for i in range(y.ndim)])
  along = dim - y.ndim + x.ndim
  steps = diff(x, dim=along)
  if sizes(steps)[along] not in (1, max(n - 1, 0)) or n == 0 and sizes(x)[along] != 0:
    raise ShapeError(f"trapezoid: {sizes(x)[along]} positions for {n} values; give one for each")
  return mean.mul(steps)

trapz = trapezoid

def gradient(input: Tensor, spacing: Any = None, dim: Any = None, edge_order: int = 1) -> tuple[Tensor, ...]:
  """Estimate the derivative along each axis by differences of second order inside, of edge_order at the ends."""
  if edge_order not in (1, 2): raise ArgumentError(f"edge_order is 1 or 2, not {edge_order!r}")
  x = checked("gradient", input)
  axes = list(range(x.ndim)) if dim is None else [axis_of(x, d) for d in (
    dim if isinstance(dim, (tuple, list)) else (dim,))]
  if len(set(axes)) != len(axes): raise ArgumentError(f"gradient: dim {dim!r} names an axis twice")
  given = list(spacing) if isinstance(spacing, (tuple, list)) else [1.0 if spacing is None else spacing] * len(axes)
  if len(given) != len(axes): raise ArgumentError(f"spacing has {len(given)} entries for {len(axes)} axes")
  return tuple([_slope(x, axis, step, edge_order) for axis, step in zip(axes, given)])

def _slope(x: Tensor, dim: int, spacing: Any, edge_order: int) -> Tensor:
  n = sizes(x)[dim]
  if n < edge_order + 1: raise ShapeError(f"gradient with edge_order {edge_order} wants {edge_order + 1} elements")
  shape = [-1 if i == dim else 1 for i in range(x.ndim)]
  steps = (diff(spacing._self()) if isinstance(spacing, Handle) and spacing.ndim
           else Tensor.full((n - 1,), float(spacing._self().item() if isinstance(spacing, Handle) else real("spacing",
                                                                                                       spacing))))
  steps = steps.cast(least_upper_dtype(x.dtype, dtypes.float32)).reshape(shape)
  slopes = diff(x, dim=dim).div(steps)
  first, last = _part(slopes, dim, 0, 1), _part(slopes, dim, n - 2, n - 1)
  if n == 2: return first.cat(last, dim=dim)
  before, after = _part(steps, dim, 0, n - 2), _part(steps, dim, 1, n - 1)
  s, t = _part(slopes, dim, 0, n - 2), _part(slopes, dim, 1, n - 1)
  inside = s.mul(after).add(t.mul(before)).div(before.add(after))
  if edge_order == 2:
    first, last = (end.mul(2).sub(near) for end, near in ((first, _part(inside, dim, 0, 1)),
                                                          (last, _part(inside, dim, n - 3, n - 2))))
  return first.cat(inside, last, dim=dim)

def clamp_min(input: Tensor, min: Any) -> Tensor:
  """Return elements that are at least min."""
  a, b = tensors(input, min)
  return a.clamp(b, None)

def clamp_max(input: Tensor, max: Any) -> Tensor:
  """Return elements that are at most max."""
  a, b = tensors(input, max)
  return a.clamp(None, b)

def clamp(input: Tensor, min: Any = None, max: Any = None) -> Tensor:
  """Limit elements to min..max, numbers or tensors."""
  if min is None and max is None: raise ArgumentError("clamp needs min, max or both")
  kind = result_type(input, *[x for x in (min, max) if x is not None])
  low, high = (x if x is None else tensor(x, input, kind) for x in (min, max))
  return input.cast(kind).clamp(low, high)

clip = clamp

def nan_to_num(input: Tensor, nan: Any = None, posinf: Any = None, neginf: Any = None) -> Tensor:
  """Replace NaN (by 0) and infinities (by the type's limits) by numbers."""
  x = checked("nan_to_num", input)
  if not dtypes.is_float(x.dtype): return x
  most = {dtypes.float16: 65504.0, dtypes.bfloat16: 3.3895313892515355e38, dtypes.float32: 3.4028234663852886e38}.get(
    x.dtype, 1.7976931348623157e308)
  found = x.isnan().where(0.0 if nan is None else nan, x)
  found = x.eq(math.inf).where(most if posinf is None else posinf, found)
  return x.eq(-math.inf).where(-most if neginf is None else neginf, found)
