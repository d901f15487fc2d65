"""Creation of tensors with PyTorch's parameters: types by default float32 and int64, memory formats without effect.

Results of `torch.` functions are plain here; the table dresses them. layout, device="cpu", pin_memory and
memory_format say nothing that differs here. Random numbers are tinyhw's own, so a seed gives other ones than PyTorch.
"""
from __future__ import annotations
import math
from typing import Any

from tinyhw.compat.torch.dress import dress, kind_of
from tinyhw.compat.torch.generators import drawing
from tinyhw.dtype import DType, dtypes, truncate
from tinyhw.errors import ArgumentError, DTypeError, ShapeError
from tinyhw.functional.known import at_hand, want_all
from tinyhw.functional.operands import checked, number_type, sizes, tensors
from tinyhw.helpers import argfix
from tinyhw.methods.base import Handle, complex_room
from tinyhw.methods.checks import is_number, plain, whole
from tinyhw.tensor import Tensor

def _kind(dtype: Any) -> DType:
  found = kind_of(dtype)
  return dtypes.default_float if found is None else found

def _shape(given: tuple[Any, ...], size: Any = None) -> tuple[int, ...]:
  found = tuple(argfix(*given)) if given else () if size is None else tuple(size)
  if any(isinstance(d, float) for d in found): raise ArgumentError(f"sizes are whole numbers, not {found}")
  if any(d < 0 for d in found): raise ShapeError(f"sizes are not negative: {found}")
  return found

def _placed(x: Tensor, device: Any, requires_grad: bool) -> Tensor:
  if device is not None: x = x.to(place(device))
  if requires_grad: dress(x).requires_grad_()
  return x

def place(device: Any) -> str:
  """Return PyTorch's name of a device as ours: "cpu" is the default device."""
  name = str(device)
  if name.split(":")[0] in ("cpu", "meta"): return Tensor(0).device  # type: ignore[return-value]
  return name.upper().replace(":0", "")

def tensor(data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False,
           pin_memory: bool = False) -> Tensor:
  """Return a tensor of numbers, nested lists or an array. Whole numbers are int64 unless dtype is given."""
  kind = kind_of(dtype)
  if isinstance(data, Handle): return _placed(data._self().detach().cast(kind or data.dtype).clone(), device,
                                              requires_grad)
  found = Tensor(data, dtype=kind)
  if kind is None and found.dtype is dtypes.int32 and not hasattr(data, "dtype"): found = Tensor(data,
                                                                                                 dtype=dtypes.int64)
  return _placed(found, device, requires_grad)

as_tensor = asarray = tensor

def from_numpy(ndarray: Any) -> Tensor:
  """Return an array as a tensor."""
  return Tensor(ndarray)

def scalar_tensor(s: Any, *, dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: bool = False,
                  requires_grad: bool = False) -> Tensor:
  """Return a number as a tensor without axes, a float unless dtype is given."""
  return _placed(Tensor(s, dtype=_kind(dtype)), device, requires_grad)

# ***** filled *****

def full(size: Any, fill_value: Any, *, dtype: Any = None, layout: Any = None, device: Any = None,
         requires_grad: bool = False, pin_memory: bool = False) -> Tensor:
  """Return one value everywhere. The type is that of the value unless given."""
  value = fill_value._self().item() if isinstance(fill_value, Handle) else plain(fill_value)
  kind = kind_of(dtype) or number_type(value)
  if dtypes.is_int(kind) and isinstance(value, float) and value == int(value): value = int(value)
  return _placed(Tensor.full(_shape((size,)), value, kind), device, requires_grad)

def zeros(*size: Any, dtype: Any = None, layout: Any = None, device: Any = None, requires_grad: bool = False,
          pin_memory: bool = False) -> Tensor:
  """Return zeros."""
  return _placed(Tensor.full(_shape(size), 0, _kind(dtype)), device, requires_grad)

def ones(*size: Any, dtype: Any = None, layout: Any = None, device: Any = None, requires_grad: bool = False,
         pin_memory: bool = False) -> Tensor:
  """Return ones."""
  return _placed(Tensor.full(_shape(size), 1, _kind(dtype)), device, requires_grad)

def empty(*size: Any, dtype: Any = None, layout: Any = None, device: Any = None, requires_grad: bool = False,
          pin_memory: bool = False, memory_format: Any = None) -> Tensor:
  """Return a tensor with undefined contents."""
  return _placed(Tensor.empty(*_shape(size), dtype=_kind(dtype)), device, requires_grad)

def empty_strided(size: Any, stride: Any, *, dtype: Any = None, layout: Any = None, device: Any = None,
                  requires_grad: bool = False, pin_memory: bool = False) -> Tensor:
  """Return a tensor with undefined contents. The strides change nothing here."""
  if len(size) != len(stride): raise ShapeError(f"empty_strided: {len(size)} sizes and {len(stride)} strides")
  return empty(tuple(size), dtype=dtype, device=device, requires_grad=requires_grad)

def empty_permuted(size: Any, physical_layout: Any, *, dtype: Any = None, layout: Any = None, device: Any = None,
                   requires_grad: bool = False, pin_memory: bool = False) -> Tensor:
  """Return a tensor with undefined contents. The physical order of axes changes nothing here."""
  n = len(tuple(size))
  if sorted(d % n if -n <= d < n else -1 for d in physical_layout) != list(range(n)):
    raise ArgumentError(f"empty_permuted: {tuple(physical_layout)} does not name each of {n} axes once")
  return empty(tuple(size), dtype=dtype, device=device, requires_grad=requires_grad)

def full_like(input: Tensor, fill_value: Any, *, dtype: Any = None, layout: Any = None, device: Any = None,
              requires_grad: bool = False, memory_format: Any = None, pin_memory: bool = False) -> Tensor:
  """Return one value everywhere, with the shape and type of another tensor."""
  return full(sizes(checked("full_like", input)), fill_value, dtype=dtype or input.dtype, device=device,
              requires_grad=requires_grad)

def zeros_like(input: Tensor, **options: Any) -> Tensor:
  """Return zeros, with the shape and type of another tensor."""
  return full_like(input, 0, **options)

def ones_like(input: Tensor, **options: Any) -> Tensor:
  """Return ones, with the shape and type of another tensor."""
  return full_like(input, 1, **options)

empty_like = zeros_like

def new_full(input: Tensor, size: Any, fill_value: Any, **options: Any) -> Tensor:
  """Return one value everywhere, with the type of another tensor."""
  return full(size, fill_value, **{"dtype": input.dtype, **{k: v for k, v in options.items() if v is not None}})

def new_zeros(input: Tensor, *size: Any, **options: Any) -> Tensor:
  """Return zeros, with the type of another tensor."""
  return new_full(input, _shape(size, options.pop("size", None)), 0, **options)

def new_ones(input: Tensor, *size: Any, **options: Any) -> Tensor:
  """Return ones, with the type of another tensor."""
  return new_full(input, _shape(size, options.pop("size", None)), 1, **options)

new_empty = new_zeros

def new_empty_strided(input: Tensor, size: Any, stride: Any, **options: Any) -> Tensor:
  """Return undefined contents, with the type of another tensor."""
  return new_full(input, size, 0, **options)

def new_tensor(input: Tensor, data: Any, **options: Any) -> Tensor:
  """Return numbers as a tensor of another's type."""
  return tensor(data, **{"dtype": input.dtype, **options})

def fill(input: Tensor, value: Any) -> Tensor:
  """Return one value everywhere."""
  if isinstance(value, Handle):
    if value.ndim: raise ShapeError(f"fill wants a value without axes, not {value.shape}")
    return value._self().cast(checked("fill", input).dtype).expand(sizes(input))
  return full_like(input, value)

def zero(input: Tensor) -> Tensor:
  """Return zeros."""
  return zeros_like(input)

def resize(input: Tensor, *size: Any, memory_format: Any = None) -> Tensor:
  """Return the first elements in another shape; further ones are undefined (zero here)."""
  shape = _shape(size)
  count = math.prod(shape)
  flat = input.reshape(-1)
  n = sizes(flat)[0]
  flat = flat.shrink([(0, count)]) if n >= count else flat.pad([(0, count - n)])
  return flat.reshape(shape)

def resize_as(input: Tensor, other: Tensor, memory_format: Any = None) -> Tensor:
  """Return resize to the shape of another tensor."""
  return resize(input, sizes(other))

# ***** counted *****

def arange(start: Any = 0, end: Any = None, step: Any = 1, *, dtype: Any = None, layout: Any = None,
           device: Any = None, requires_grad: bool = False, pin_memory: bool = False) -> Tensor:
  """Return start, start + step, ... up to but without end. int64 unless a number is a float."""
  if end is None: start, end = 0, start
  numbers = [x._self().item() if isinstance(x, Handle) else plain(x) for x in (start, end, step)]
  if not all(is_number(x) for x in numbers): raise ArgumentError(f"arange wants numbers, not {start}, {end}, {step}")
  if numbers[2] == 0: raise ArgumentError("arange: step is 0; it must be another number")
  if (numbers[1] - numbers[0]) * numbers[2] < 0: raise ArgumentError(f"arange: {end} is not after {start} by {step}")
  kind = kind_of(dtype) or (dtypes.default_float if any(isinstance(x, float) for x in numbers) else dtypes.int64)
  if not dtypes.is_int(kind):
    return _placed(Tensor.arange(numbers[0], numbers[1], numbers[2], kind), device, requires_grad)
  if any(isinstance(x, float) for x in numbers) and dtype is not None: numbers = [int(x) for x in numbers]
  first, last, each = (int(x) for x in numbers)
  if not each: raise ArgumentError(f"arange: step {step} is 0 as a whole number")
  count = max(math.ceil((last - first) / each), 0)
  if not count: return Tensor.empty(0, dtype=kind)
  return _placed(Tensor.arange(first, first + each * count, each, dtype=kind), device, requires_grad)

range_ = arange

def linspace(start: Any, end: Any, steps: int, *, dtype: Any = None, layout: Any = None, device: Any = None,
             requires_grad: bool = False, pin_memory: bool = False) -> Tensor:
  """Return `steps` evenly spaced numbers from start to end, both included."""
  kind = _kind(dtype)
  if steps is None or whole("steps", steps) < 0: raise ArgumentError(f"steps is {steps}; it must be at least 0")
  a, b = (_end(x, "linspace") for x in (start, end))
  if steps == 0: return Tensor.empty(0, dtype=kind)
  values = _spaced(a, b, steps, kind)
  return _placed(Tensor([int(v) for v in values] if dtypes.is_int(kind) else values, dtype=kind), device, requires_grad)

def logspace(start: Any, end: Any, steps: int, base: float = 10.0, *, dtype: Any = None, layout: Any = None,
             device: Any = None, requires_grad: bool = False, pin_memory: bool = False) -> Tensor:
  """Return powers of base with evenly spaced exponents from start to end."""
  kind = _kind(dtype)
  if steps is None or whole("steps", steps) < 0: raise ArgumentError(f"steps is {steps}; it must be at least 0")
  a, b = (_end(x, "logspace") for x in (start, end))
  if steps == 0: return Tensor.empty(0, dtype=kind)
  # As PyTorch, one exponent is not cast. Exponents of a 16-bit type would be wrong by a thousandth.
  exponents = _spaced(a, b, steps, kind if dtypes.is_int(kind) else dtypes.float64) if steps > 1 else [a]
  values = [_power(float(base), e) for e in exponents]
  return _placed(Tensor(values, dtype=dtypes.float64).cast(kind), device, requires_grad)

def _spaced(a: float, b: float, steps: int, kind: DType) -> list[float]:
  """Return evenly spaced numbers from a to b. As PyTorch's, both ends are cast to the type, and a type of 16 bits has
  its own arithmetic. Raises ArgumentError for an end that an integer type cannot hold."""
  if dtypes.is_int(kind):
    for end in (a, b):
      if not math.isfinite(end) or not kind.min <= int(end) <= kind.max:
        raise ArgumentError(f"{kind} cannot hold the end {end}; give another dtype")
    a, b = float(int(a)), float(int(b))
  half, rounded = steps // 2, truncate[kind] if dtypes.is_float(kind) and kind.itemsize == 2 else float
  a, b = rounded(a), rounded(b)
  gap = rounded((b - a) / (steps - 1) if steps > 1 else 0.0)
  return [a + rounded(gap * i) if i < half or steps == 1 else b - rounded(gap * (steps - 1 - i)) for i in range(steps)]

def _power(base: float, e: float) -> float:
  try: found = base ** e
  except ZeroDivisionError: return math.inf
  except OverflowError: return math.inf
  return math.nan if isinstance(found, complex) else found

def _end(x: Any, what: str) -> float:
  if isinstance(x, Handle):
    if x.ndim: raise ShapeError(f"{what} wants ends without axes, not {x.shape}")
    return float(x._self().item())
  if not is_number(x): raise ArgumentError(f"{what} wants numbers, not {x!r}")
  return float(x)

def eye(n: int, m: int | None = None, *, dtype: Any = None, layout: Any = None, device: Any = None,
        requires_grad: bool = False, pin_memory: bool = False) -> Tensor:
  """Return the identity matrix."""
  rows, columns = whole("n", n), whole("m", n if m is None else m)
  if min(rows, columns) < 0: raise ShapeError(f"eye: sizes are not negative: {rows}, {columns}")
  return _placed(Tensor.eye(rows, columns, dtype=_kind(dtype)), device, requires_grad)

# ***** random *****

@drawing
def rand(*size: Any, dtype: Any = None, layout: Any = None, device: Any = None,
         requires_grad: bool = False, pin_memory: bool = False, memory_format: Any = None) -> Tensor:
  """Return numbers drawn evenly from 0 to 1."""
  return _placed(_drawn(Tensor.rand, _shape(size), _kind(dtype), 1.0), device, requires_grad)

@drawing
def randn(*size: Any, dtype: Any = None, layout: Any = None, device: Any = None,
          requires_grad: bool = False, pin_memory: bool = False, memory_format: Any = None) -> Tensor:
  """Return numbers drawn from the standard normal distribution."""
  return _placed(_drawn(Tensor.randn, _shape(size), _kind(dtype), math.sqrt(0.5)), device, requires_grad)

def _drawn(draw: Any, shape: tuple[int, ...], kind: DType, factor: float) -> Tensor:
  """Draw numbers; complex ones by a draw for each plane, times a factor."""
  if kind not in dtypes.complexes: return draw(*shape, dtype=kind)   # type: ignore[no-any-return]
  found = complex_room().made_planes(lambda plane: draw(*shape, dtype=plane).mul(factor), kind, None)
  return found.realize()   # type: ignore[no-any-return]

@drawing
def randint(low: Any = 0, high: Any = None, size: Any = None, *, dtype: Any = None,
            layout: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
  """Return whole numbers drawn evenly from low to high, without high."""
  if size is None: low, high, size = 0, low, high
  if high <= low: raise ArgumentError(f"randint: high {high} is not above low {low}")
  kind = kind_of(dtype) or dtypes.int64
  return _placed(Tensor.randint(*_shape((size,)), low=low, high=high, dtype=dtypes.int64).cast(kind), device,
                 requires_grad)

@drawing
def randperm(n: int, *, dtype: Any = None, layout: Any = None, device: Any = None,
             requires_grad: bool = False, pin_memory: bool = False) -> Tensor:
  """Return 0..n-1 in a random order."""
  return Tensor.randperm(n).cast(kind_of(dtype) or dtypes.int64)

def rand_like(input: Tensor, **options: Any) -> Tensor:
  """Return rand with the shape and type of another tensor."""
  return rand(sizes(input), **{"dtype": input.dtype, **options})

def randn_like(input: Tensor, **options: Any) -> Tensor:
  """Return randn with the shape and type of another tensor."""
  return randn(sizes(input), **{"dtype": input.dtype, **options})

def randint_like(input: Tensor, low: Any, high: Any = None, *, memory_format: Any = None, **options: Any) -> Tensor:
  """Return randint with the shape and type of another tensor."""
  if high is None: low, high = 0, low
  return randint(low, high, sizes(input), **{"dtype": input.dtype, **options})

@drawing
def normal(mean: Any, std: Any = 1.0, size: Any = None, *, dtype: Any = None,
           layout: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
  """Return numbers drawn from normal distributions with means and deviations, numbers or tensors."""
  if is_number(std) and std < 0: raise ArgumentError(f"std is {std}; it is not negative")
  if isinstance(std, Tensor): want_all("normal: an element of std is negative", std.ge(0), std)
  if size is not None: return Tensor.randn(*_shape((size,)), dtype=_kind(dtype)).mul(std).add(mean)
  a, b = tensors(mean, std)
  wide = a.add(b)
  return Tensor.randn(*sizes(wide), dtype=wide.dtype).mul(b).add(a)

_CHANCE = "bernoulli wants probabilities; one is outside of 0..1"

@drawing
def bernoulli(input: Tensor, p: float | None = None) -> Tensor:
  """Return 1 with the probability that an element (or p) is, else 0."""
  chance = checked("bernoulli", input) if p is None else p
  if isinstance(chance, Tensor): want_all(_CHANCE, chance.ge(0).bitwise_and(chance.le(1)), chance)
  elif not 0 <= chance <= 1: raise ArgumentError(_CHANCE)
  return Tensor.rand(*sizes(input)).lt(chance).cast(input.dtype)

@drawing
def multinomial(input: Tensor, num_samples: int, replacement: bool = False) -> Tensor:
  """Return indices drawn with the weights of a vector, or of each row."""
  if checked("multinomial", input).ndim not in (1, 2):
    raise ShapeError(f"multinomial wants a vector or rows, not {input.shape}")
  if not dtypes.is_float(input.dtype): raise DTypeError(f"multinomial wants floats, not {input.dtype}")
  if num_samples <= 0: raise ArgumentError(f"num_samples is {num_samples}; it must be at least 1")
  if not replacement and num_samples > sizes(input)[-1]:
    raise ArgumentError(f"{num_samples} draws without replacement of {sizes(input)[-1]}")
  if sizes(input)[-1] > _MOST_CATEGORIES:
    raise ArgumentError(f"multinomial draws from at most {_MOST_CATEGORIES} weights, not {sizes(input)[-1]}")
  input = at_hand(input)
  rows = input if input.ndim == 2 else input.unsqueeze(0)
  want_all("multinomial wants weights that are finite, not negative, and not all zero",
           (rows.isfinite() & rows.ge(0)).all(1) & rows.sum(1).ne(0), input)
  if replacement or num_samples == 1:
    return input.multinomial(num_samples, replacement).long()
  keys = Tensor.rand(*sizes(input), dtype=input.dtype).log().div(input)      # Efraimidis and Spirakis 2006
  return keys.topk(num_samples)[1].long()

_MOST_CATEGORIES = 1 << 24

@drawing
def uniform(input: Tensor, from_: float = 0.0, to: float = 1.0, **named: Any) -> Tensor:
  """Return numbers drawn evenly from `from` to `to`."""
  low = named.get("from", from_)
  if low > to: raise ArgumentError(f"uniform draws from {low} to {to}, which is below")
  return Tensor.rand(*sizes(input), dtype=input.dtype).mul(to - low).add(low)

def _uniform(input: Tensor) -> Tensor:
  kind = input.dtype if dtypes.is_float(input.dtype) else dtypes.float32
  return Tensor.rand(*sizes(input), dtype=kind).sub(1, reverse=True)

@drawing
def exponential(input: Tensor, lambd: float = 1.0) -> Tensor:
  """Return numbers drawn from an exponential distribution."""
  if lambd <= 0: raise ArgumentError(f"lambd is {lambd}; it must be positive")
  return _uniform(input).log().neg().div(lambd)

@drawing
def geometric(input: Tensor, p: float) -> Tensor:
  """Return numbers drawn from a geometric distribution."""
  if not 0 < p < 1: raise ArgumentError(f"p is {p}; it is from 0 to 1")
  return _uniform(input).log().div(math.log(1 - p)).ceil().maximum(1).cast(input.dtype)

@drawing
def cauchy(input: Tensor, median: float = 0.0, sigma: float = 1.0) -> Tensor:
  """Return numbers drawn from a Cauchy distribution."""
  if sigma <= 0: raise ArgumentError(f"sigma is {sigma}; it must be positive")
  return _uniform(input).sub(0.5).mul(math.pi).tan().mul(sigma).add(median)

@drawing
def log_normal(input: Tensor, mean: float = 1.0, std: float = 2.0) -> Tensor:
  """Return exponentials of numbers drawn from a normal distribution."""
  if std <= 0: raise ArgumentError(f"std is {std}; it must be positive")
  return Tensor.randn(*sizes(input), dtype=input.dtype).mul(std).add(mean).exp()

@drawing
def normal_into(input: Tensor, mean: float = 0.0, std: float = 1.0) -> Tensor:
  """Return numbers drawn from a normal distribution, in the shape of the input: the method normal_."""
  if std < 0: raise ArgumentError(f"std is {std}; it is not negative")
  return Tensor.randn(*sizes(input), dtype=input.dtype).mul(std).add(mean)

