"""`Complex`: the class of tensors of complex numbers, which are two tensors of floats, its planes.

    Tensor([1+2j])   Tensor(x, dtype="complex64")   x.cast("complex64")   polar(size, angle)   view_as_complex(x)

Each method is in one of these groups, or refuses with a DTypeError: methods that treat the planes alike (movement,
sums, storage); functions of its Planes (arithmetic.py, functions.py, products.py); and methods written here. Nothing
that is inherited from Tensor computes with `uop`, which a complex tensor lacks.
"""
from __future__ import annotations
from collections.abc import Callable, Sequence
import importlib
from typing import Any

from tinyhw.complex import arithmetic, functions, products
from tinyhw.complex.arithmetic import Planes
from tinyhw.dtype import DType, dtypes, complex_of, least_upper_dtype, plane_of, to_dtype
from tinyhw.errors import DTypeError, GradientError, ShapeError
from tinyhw.methods.base import Handle, stored
from tinyhw.methods.checks import is_number
from tinyhw.methods.data.hostdata import HostData
from tinyhw.methods.graph import graph
from tinyhw.tensor import Tensor

# Methods that do the same to both planes. The result is complex.
ALIKE = """reshape view expand permute transpose flip flatten unflatten squeeze unsqueeze shrink shrink_to split chunk
  unfold diagonal repeat repeat_interleave roll diag tril triu rearrange contiguous contiguous_backward detach clone
  copied gather masked_select sum mean cumsum to shard pad_to __getitem__""".split()
# Functions of one operand.
FUNCTIONS: dict[str, Callable[[Planes], Planes]] = {
  **{name: getattr(functions, name) for name in """exp2 log2 log10 log1p expm1 sin cos tan sinh cosh tanh asin acos atan
  asinh acosh atanh sigmoid rsqrt""".split()},
  **{name: getattr(arithmetic, name) for name in "neg exp log sqrt reciprocal".split()},
  "sign": arithmetic.sgn, "square": lambda x: arithmetic.mul(x, x)}
# Methods of Tensor that are right here as they are: they call others of this class.
INHERITED = frozenset("""half usum uprod sequential size numel dtype shape ndim device grad requires_grad T
  requires_grad_ retain_grad retains_grad holds_complex train uop""".split())

class Complex(Tensor):
  """A tensor of complex numbers: complex64, or complex128."""
  __slots__ = ()
  holds_complex = True

  # ***** properties *****

  @property
  def uop(self) -> Any:   # type: ignore[override]  # what has a node is real
    """A complex tensor has no node of its own. Raises DTypeError."""
    raise DTypeError(f"this is not defined for {self.dtype}, or not written for it; compute with .real and .imag")

  @property
  def pair(self) -> Planes:
    """The planes."""
    return Planes(*self._planes)

  @property
  def shape(self) -> Any: return self._planes[0].shape
  @property
  def ndim(self) -> int: return self._planes[0].ndim
  @property
  def dtype(self) -> DType: return complex_of(self._planes[0].dtype)
  @property
  def device(self) -> Any: return self._planes[0].device

  @property
  def real(self) -> Tensor:
    """The real parts, a view."""
    return self._planes[0]._view(self._planes[0].uop)

  @property
  def imag(self) -> Tensor:
    """The imaginary parts, a view."""
    return self._planes[1]._view(self._planes[1].uop)

  @property
  def T(self) -> Tensor: return self.permute(tuple(range(self.ndim))[::-1])

  def conj(self) -> Tensor:
    """Return the conjugates."""
    return made(self._planes[0], self._planes[1].neg())

  def angle(self) -> Tensor:
    """Return the angles, from -pi to pi, as floats."""
    return arithmetic.angle(self.pair)

  # ***** gradients: dL/da + i dL/db *****

  @property
  def grad(self) -> Tensor | None:
    """The gradient of a real loss: dL/da + i dL/db, as in PyTorch."""
    return self._gradient()

  @grad.setter
  def grad(self, value: Tensor | None) -> None: self._set_gradient(value)

  def _gradient(self) -> Tensor | None:
    found = [x.grad for x in self._planes]
    if found[0] is None and found[1] is None: return None
    return made(*[x.const_like(0) if g is None else g for x, g in zip(self._planes, found)])

  def _set_gradient(self, value: Tensor | None) -> None:
    parts: Sequence[Tensor | None] = (None, None) if value is None else of(value)._planes
    for x, part in zip(self._planes, parts): x.grad = part

  @property
  def requires_grad(self) -> bool | None: return self._planes[0].requires_grad

  @requires_grad.setter
  def requires_grad(self, value: bool | None) -> None:
    for x in self._planes: x.requires_grad = value

  def retain_grad(self) -> None:
    for x in self._planes: x.retain_grad()

  @property
  def retains_grad(self) -> bool: return self._planes[0].retains_grad

  def _paired(self, gradient: Any) -> Tensor:
    """Return the real number whose gradient is that of this tensor, weighted."""
    if gradient is None:
      raise GradientError("a complex tensor has no gradient of its own; give gradient=, or differentiate a real number")
    weight = of(gradient, self.dtype)
    return self._planes[0].mul(weight._planes[0]).add(self._planes[1].mul(weight._planes[1])).sum()

  def backward(self, gradient: Any = None) -> Tensor:
    self._paired(gradient).backward()
    return self

  def gradient(self, *targets: Tensor, gradient: Any = None) -> list[Tensor]:
    return self._paired(gradient).gradient(*targets)

  # ***** operators *****

  def add(self, x: Any, reverse: bool = False) -> Tensor: return self._with(arithmetic.add, x, reverse)
  def sub(self, x: Any, reverse: bool = False) -> Tensor: return self._with(arithmetic.sub, x, reverse)

  def mul(self, x: Any, reverse: bool = False) -> Tensor:
    if (factor := _real(x)) is not None:
      a, b = _aligned(self, factor)
      return made(*arithmetic.scaled(a.pair, b))
    return self._with(arithmetic.mul, x, reverse)

  def div(self, x: Any, reverse: bool = False, rounding_mode: str | None = None) -> Tensor:
    if rounding_mode is not None: raise DTypeError("complex numbers are not rounded; leave out rounding_mode")
    if not reverse and (divisor := _real(x)) is not None:
      a, b = _aligned(self, divisor)
      return made(a._planes[0].div(b), a._planes[1].div(b))
    return self._with(arithmetic.div, x, reverse)

  def pow(self, x: Any, reverse: bool = False) -> Tensor:
    if not reverse and arithmetic.is_small_whole(x): return made(*arithmetic.power(self.pair, int(x)))
    return self._with(_precise_pow, x, reverse)

  def eq(self, x: Any) -> Tensor:
    a, b = both(self, x)
    return a._planes[0].eq(b._planes[0]).bitwise_and(a._planes[1].eq(b._planes[1]))

  def ne(self, x: Any) -> Tensor: return self.eq(x).logical_not()

  def dot(self, w: Any, dtype: Any = None) -> Tensor:
    a, b = both(self, w)
    return made(*products.dot(a.pair, b.pair))

  def matmul(self, x: Any, reverse: bool = False, dtype: Any = None) -> Tensor:
    return of(x).dot(self) if reverse else self.dot(x)

  def linear(self, weight: Tensor, bias: Tensor | None = None, dtype: Any = None) -> Tensor:
    found = self.mul(weight) if weight.ndim == 1 else self.dot(weight)
    return found if bias is None else found.add(bias)

  def lerp(self, end: Any, weight: Any) -> Tensor: return self.add(both(self, end)[1].sub(self).mul(weight))
  def __add__(self, x: Any) -> Tensor: return self.add(x)
  def __radd__(self, x: Any) -> Tensor: return self.add(x, True)
  def __mul__(self, x: Any) -> Tensor: return self.mul(x)
  def __rmul__(self, x: Any) -> Tensor: return self.mul(x, True)
  def __rmatmul__(self, x: Any) -> Tensor: return of(x).dot(self)

  def _with(self, function: Callable[[Planes, Planes], Planes], x: Any, reverse: bool) -> Tensor:
    a, b = both(self, x)
    return made(*(function(b.pair, a.pair) if reverse else function(a.pair, b.pair)))

  def _tensor(self, x: Any) -> Tensor: return of(x)

  # ***** functions *****

  def abs(self) -> Tensor: return arithmetic.magnitude(self.pair)
  def isnan(self) -> Tensor: return self._planes[0].isnan().bitwise_or(self._planes[1].isnan())
  def isfinite(self) -> Tensor: return self._planes[0].isfinite().bitwise_and(self._planes[1].isfinite())

  def isinf(self, detect_positive: bool = True, detect_negative: bool = True) -> Tensor:
    if not detect_positive or not detect_negative: raise DTypeError("infinite complex numbers have no sign")
    return self._planes[0].isinf().bitwise_or(self._planes[1].isinf())

  def isclose(self, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Tensor:
    a, b = both(self, other)
    near = a.sub(b).abs().le(b.abs().mul(rtol).add(atol)).bitwise_and(b.isfinite()).bitwise_or(a.eq(b))
    return near.bitwise_or(a.isnan().bitwise_and(b.isnan())) if equal_nan else near

  def allclose(self, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> bool:
    return bool(self.isclose(other, rtol, atol, equal_nan).all().item())

  def masked_fill(self, mask: Any, value: Any) -> Tensor: return where(mask, value, self)
  def any(self, axis: Any = None, keepdim: bool = False) -> Tensor: return self.bool().any(axis, keepdim)
  def all(self, axis: Any = None, keepdim: bool = False) -> Tensor: return self.bool().all(axis, keepdim)
  def logical_not(self) -> Tensor: return self.bool().logical_not()

  def prod(self, axis: Any = None, keepdim: bool = False, dtype: Any = None) -> Tensor:
    axes = self._planes[0]._axes(axis)
    if not axes: return self
    rest = [i for i in range(self.ndim) if i not in axes]
    ordered = self.permute([*rest, *axes]).reshape(*[self.shape[i] for i in rest], -1)
    found = made(*products.prod(ordered.pair, len(rest)))   # type: ignore[attr-defined]  # Complex
    return found.reshape([1 if i in axes else d for i, d in enumerate(self.shape)] if keepdim
                         else [self.shape[i] for i in rest])

  def cumprod(self, axis: int = 0) -> Tensor:
    return made(*products.cumprod(self.pair, self._planes[0]._axis(axis))) if self.ndim else self

  def var(self, axis: Any = None, keepdim: bool = False, correction: int = 1) -> Tensor:
    return self._planes[0].var(axis, keepdim, correction).add(self._planes[1].var(axis, keepdim, correction))

  def std(self, axis: Any = None, keepdim: bool = False, correction: int = 1) -> Tensor:
    return self.var(axis, keepdim, correction).sqrt()

  def var_mean(self, axis: Any = None, keepdim: bool = False, correction: int = 1) -> tuple[Tensor, Tensor]:
    return self.var(axis, keepdim, correction), self.mean(axis, keepdim)

  def std_mean(self, axis: Any = None, keepdim: bool = False, correction: int = 1) -> tuple[Tensor, Tensor]:
    return self.std(axis, keepdim, correction), self.mean(axis, keepdim)

  def nonzero(self, size: Any = None, fill_value: Any = 0) -> Tensor: return self.bool().nonzero(size, fill_value)
  def silu(self) -> Tensor: return self.mul(self.sigmoid())
  def softsign(self) -> Tensor: return self.div(self.abs().add(1))

  def conv2d(self, weight: Tensor, bias: Tensor | None = None, *args: Any, **keywords: Any) -> Tensor:
    return self._convolved_by("conv2d", weight, bias, args, keywords)

  def conv_transpose2d(self, weight: Tensor, bias: Tensor | None = None, *args: Any, **keywords: Any) -> Tensor:
    return self._convolved_by("conv_transpose2d", weight, bias, args, keywords)

  def _convolved_by(self, name: str, weight: Tensor, bias: Tensor | None, args: Any, keywords: Any) -> Tensor:
    """Convolve by four real convolutions."""
    x, w = both(self, weight)
    def part(i: Any, j: Any) -> Any: return getattr(x._planes[i], name)(w._planes[j], None, *args, **keywords)
    found = made(part(0, 0).sub(part(1, 1)), part(0, 1).add(part(1, 0)))
    return found if bias is None else found.add(bias.reshape(-1, *(1,) * (self.ndim - 2)))

  # ***** joining, padding *****

  def cat(self, *args: Any, dim: int = 0) -> Tensor: return self._joined("cat", args, dim)
  def stack(self, *args: Any, dim: int = 0) -> Tensor: return self._joined("stack", args, dim)

  def _joined(self, name: str, args: Any, dim: int) -> Tensor:
    given = [of(x) for x in (self, *args)]
    kind = least_upper_dtype(*[x.dtype for x in given])
    given = [of(x, kind) for x in given]
    return made(*[getattr(given[0]._planes[k], name)(*[x._planes[k] for x in given[1:]], dim=dim) for k in (0, 1)])

  def meshgrid(self, *args: Any, indexing: str = "ij") -> tuple[Tensor, ...]:
    given = [of(x) for x in (self, *args)]
    grids = [given[0]._planes[k].meshgrid(*[x._planes[k] for x in given[1:]], indexing=indexing) for k in (0, 1)]
    return tuple([made(a, b) for a, b in zip(*grids)])

  def scatter(self, dim: Any, index: Tensor, src: Any, reduce: str | None = None) -> Tensor:
    if reduce not in (None, "add"): raise DTypeError(f"scatter of {self.dtype} writes or adds; {reduce!r} is neither")
    value = of(src, self.dtype)
    return made(*[x.scatter(dim, index, y, reduce) for x, y in zip(self._planes, value._planes)])

  def pad(self, padding: Any, mode: str = "constant", value: Any = 0) -> Tensor:
    parts = complex(value).real, complex(value).imag
    return made(*[x.pad(padding, mode, part) for x, part in zip(self._planes, parts)])

  # ***** types *****

  def cast(self, dtype: Any) -> Tensor:
    """Convert to the other complex type, or to bool: True where a number is not 0. Raises DTypeError for others."""
    kind = to_dtype(dtype)
    if kind is self.dtype: return self
    if kind is dtypes.bool: return self.eq(0).logical_not()
    if kind not in dtypes.complexes:
      raise DTypeError(f"a cast of {self.dtype} to {kind} would drop the imaginary parts; use .real, .imag or .abs()")
    return made(*[x.cast(plane_of(kind)) for x in self._planes])

  def bool(self) -> Tensor: return self.cast(dtypes.bool)
  def float(self) -> Tensor: return self.cast(dtypes.float32)
  def double(self) -> Tensor: return self.cast(dtypes.float64)
  def int(self) -> Tensor: return self.cast(dtypes.int32)
  def long(self) -> Tensor: return self.cast(dtypes.int64)
  def is_floating_point(self) -> Any: return False
  def element_size(self) -> Any: return self.dtype.itemsize
  def nbytes(self) -> Any: return sum(x.nbytes() for x in self._planes)

  def const_like(self, b: Any, dtype: Any = None) -> Tensor:
    kind = self.dtype if dtype is None else to_dtype(dtype)
    if kind not in dtypes.complexes: return self._planes[0].const_like(b, kind)
    return made(*[x.const_like(part, plane_of(kind)) for x, part in zip(self._planes, (complex(b).real,
                                                                                      complex(b).imag))])

  def full_like(self, fill_value: Any, dtype: Any = None, device: Any = None, buffer: Any = False,
                requires_grad: Any = None) -> Tensor:
    return Tensor.full(self.shape, fill_value, dtype or self.dtype, device or self.device, buffer, requires_grad)

  def zeros_like(self, **kwargs: Any) -> Tensor: return self.full_like(0, **kwargs)
  def ones_like(self, **kwargs: Any) -> Tensor: return self.full_like(1, **kwargs)

  def empty_like(self, dtype: Any = None, device: Any = None) -> Tensor:
    return Tensor.empty(self.shape, dtype=dtype or self.dtype, device=device or self.device)

  # ***** reading and writing *****

  def tolist(self) -> Any:
    """The elements as complex numbers of Python, in lists as deep as the shape."""
    return _zipped(self._planes[0].tolist(), self._planes[1].tolist())

  def item(self) -> Any: return complex(*[x.item() for x in self._planes])
  def __complex__(self) -> complex: return complex(self.item())

  def numpy(self) -> Any:
    """The elements as a NumPy array of complex numbers."""
    real, imag = (x.numpy() for x in self._planes)
    numpy = importlib.import_module("numpy")
    found = numpy.empty(real.shape, str(self.dtype).removeprefix("dtypes."))
    found.real, found.imag = real, imag
    return found

  def realize(self, *lst: Any, do_update_stats: Any = True) -> Tensor:
    planes = [y for x in (self, *lst) for y in (x._planes if isinstance(x, Complex) else (x,))]
    planes[0].realize(*planes[1:])
    return self

  def replace(self, x: Handle) -> Tensor:
    if self.shape != x.shape: raise ShapeError(f"cannot replace a tensor of {self.shape} by one of {x.shape}")
    self._planes = of(x, self.dtype)._planes
    return self

  def assign(self, x: Any) -> Tensor: return self._updated(x)

  def _updated(self, x: Any) -> Tensor:
    value = of(x, self.dtype)
    if isinstance(x, Handle) and x.dtype is not self.dtype:
      raise DTypeError(f"cannot assign {x.dtype} to a tensor of {self.dtype}; cast it first")
    for mine, part in zip(self._planes, value._planes): mine.assign(part)
    return self

  def __setitem__(self, indices: Any, v: Any) -> None:
    value = of(v, self.dtype)
    for mine, part in zip(self._planes, value._planes): mine[indices] = part

  def __len__(self) -> Any: return len(self._planes[0])
  def __repr__(self) -> str:
    return (f"<Tensor {graph.show(self.shape)} {str(self.dtype).removeprefix('dtypes.')} on {self.device}: real "
            f"{self._planes[0]!r}, imaginary {self._planes[1]!r}>")
  def __copy__(self) -> Tensor: return made(*self._planes)
  def __deepcopy__(self, memo: dict[Any, Any]) -> Tensor: return made(*[x.__deepcopy__(memo) for x in self._planes])
  def __reduce_ex__(self, protocol: Any) -> Any: return made, tuple(self._planes)

# ***** making *****

def made(real: Tensor, imag: Tensor) -> Complex:
  """Return the complex tensor of two planes, of one shape and float type."""
  found = object.__new__(Complex)
  found._planes = real, imag
  return found

def of(x: Any, dtype: DType | None = None) -> Complex:
  """Return a tensor or number as a complex tensor."""
  if isinstance(x, Complex): return x if dtype is None else x.cast(dtype)   # type: ignore[return-value]
  if not isinstance(x, Handle):
    if dtype is None: dtype = complex_of(dtypes.default_float)
    return Tensor(x, dtype=dtype)   # type: ignore[return-value]
  return widened(x._self(), complex_of(x.dtype) if dtype is None else dtype)

def widened(x: Tensor, dtype: DType) -> Complex:
  """Return a real tensor as a complex one."""
  real = x.cast(plane_of(dtype))
  return made(real, real.const_like(0))

def both(x: Handle, y: Any) -> tuple[Complex, Complex]:
  """Return two operands, of which one is complex, in their common type. A number takes the type of the tensor."""
  a = of(x)
  if not isinstance(y, Handle) and (is_number(y) or isinstance(y, complex)): return a, of(y, a.dtype)
  b = of(y)
  kind = least_upper_dtype(x.dtype, y.dtype if isinstance(y, Handle) else b.dtype)
  return of(a, kind), of(b, kind)

def _real(x: Any) -> Any:
  """Return an operand that is real, else None."""
  return x if is_number(x) or isinstance(x, Handle) and not isinstance(x, Complex) else None

def _aligned(x: Complex, factor: Any) -> tuple[Complex, Any]:
  """Return a complex and a real operand in their common type."""
  if not isinstance(factor, Handle): return x, factor
  kind = least_upper_dtype(x.dtype, factor.dtype)
  return of(x, kind), factor._self().cast(plane_of(kind))

def _precise_pow(x: Planes, y: Planes) -> Planes:
  """Return x ** y, computed in float64: its angle is a product, whose rounding error the size of the result scales."""
  kind = x.real.dtype
  a, b = (Planes(*[part.cast(dtypes.float64) for part in pair]) for pair in (x, y))
  found = arithmetic.pow(a, b)
  return Planes(found.real.cast(kind), found.imag.cast(kind))

def mixed(x: Any, name: str, args: Any, keywords: Any) -> Any:
  """Call a method of a real tensor that has a complex operand."""
  if name == "where": return where(x, *args, **keywords)
  return getattr(of(x), name)(*args, **keywords)

def where(condition: Tensor, x: Any, y: Any) -> Tensor:
  """Return x where a condition is true, else y."""
  a, b = both(x, y) if isinstance(x, Handle) else both(y, x)[::-1] if isinstance(y, Handle) else (of(x), of(y))
  return made(*[condition.where(p, q) for p, q in zip(a._planes, b._planes)])

def einsum(formula: str, operands: list[Tensor]) -> Tensor:
  """Return an Einstein sum of tensors of which one is complex."""
  kind = least_upper_dtype(*[x.dtype for x in operands])
  return made(*products.einsum(formula, [of(x, kind).pair for x in operands]))

def made_planes(make: Callable[[DType], Tensor], kind: DType, requires_grad: Any) -> Tensor:
  """Return a complex tensor whose planes a function makes, given their type."""
  found = made(make(plane_of(kind)), make(plane_of(kind)))
  if requires_grad is not None: found.requires_grad = requires_grad
  return found

def filled(shape: Any, value: Any, dtype: Any, device: Any, requires_grad: Any) -> Complex:
  """Return one complex number everywhere, in storage of its own."""
  value = complex(value._self().item() if isinstance(value, Handle) else value)
  kind = complex_of(dtypes.default_float) if dtype is None else to_dtype(dtype)
  if kind not in dtypes.complexes: raise DTypeError(f"a complex number is no element of {kind}; take a complex type")
  found = made(*[Tensor.full(shape, part, plane_of(kind), device, buffer=True) for part in (value.real, value.imag)])
  if requires_grad is not None: found.requires_grad = requires_grad
  return found

def fill(tensor: Tensor, data: Any, device: Any, dtype: DType | None, requires_grad: bool | None) -> None:
  """Make a new Tensor complex: of data of the host, a number, or another tensor."""
  if isinstance(data, Handle):
    found = of(data, dtype)
    if device is not None: found = found.to(device)   # type: ignore[assignment]
  elif isinstance(data, HostData): found = _of_host(data, device, dtype)
  else:
    given = 0.0 if data is None else data
    if is_number(given) or isinstance(given, complex): found = filled((), given, dtype, device, None)
    else:
      other = Tensor(given, device)
      found = of(other, dtype)
      if not isinstance(other, Complex):
        found = made(found._planes[0], Tensor.full(other.shape, 0, plane_of(found.dtype), device, buffer=True))
  tensor._planes = found._planes
  tensor.__class__ = Complex
  if requires_grad is not None: tensor.requires_grad = requires_grad

def _of_host(data: HostData, device: Any, dtype: DType | None) -> Complex:
  plane = plane_of(data.dtype)
  found = made(*[Tensor._leaf(stored(HostData(part, data.shape, plane), device)) for part in data.data])
  return of(found, dtype)

def gradients(y: Tensor, targets: Sequence[Tensor], gradient: Any) -> list[Tensor]:
  """Return the gradients of a real tensor for targets of which some are complex."""
  below = y.uop.toposort()
  planes = [x for t in targets for x in (t._planes if isinstance(t, Complex) else (t,))]
  reached = [x for x in planes if x.uop in below]
  if targets and not reached: raise GradientError("the tensor was not computed from any of the targets")
  found = dict(zip(map(id, reached), y.gradient(*reached, gradient=gradient)))
  def slope(x: Tensor) -> Tensor: return found[id(x)] if id(x) in found else x.const_like(0)
  return [made(*map(slope, t._planes)) if isinstance(t, Complex) else slope(t) for t in targets]

def _zipped(a: Any, b: Any) -> Any:
  return [_zipped(x, y) for x, y in zip(a, b)] if isinstance(a, list) else complex(a, b)

# ***** polar and views *****

def polar(size: Tensor, angle: Tensor) -> Tensor:
  """Return size * (cos(angle) + i sin(angle)). Raises DTypeError unless both are float32 or float64."""
  if size.dtype is not angle.dtype or size.dtype not in (dtypes.float32, dtypes.float64):
    raise DTypeError(f"polar wants float32 or float64 twice, not {size.dtype} and {angle.dtype}")
  return made(size.mul(angle.cos()), size.mul(angle.sin()))

def joined(real: Tensor, imag: Tensor) -> Tensor:
  """Return real + i imag. Raises DTypeError unless both are float32 or float64."""
  if real.dtype is not imag.dtype or real.dtype not in (dtypes.float32, dtypes.float64):
    raise DTypeError(f"complex wants float32 or float64 twice, not {real.dtype} and {imag.dtype}")
  zero = real.const_like(0).add(imag.const_like(0))
  return made(*[x if x.shape == zero.shape else x.add(zero) for x in (real, imag)])

def view_as_real(x: Tensor) -> Tensor:
  """Return real and imaginary parts along a new last axis."""
  if not isinstance(x, Complex): raise DTypeError(f"view_as_real wants a complex tensor, not {x.dtype}")
  return x._planes[0].stack(x._planes[1], dim=-1)

def view_as_complex(x: Tensor) -> Tensor:
  """Return the pairs along the last axis as complex numbers, whose parts are views."""
  if not x.ndim or x.shape[-1] != 2: raise ShapeError(f"view_as_complex wants a last axis of 2, not {x.shape}")
  if x.dtype not in (dtypes.float32, dtypes.float64):
    raise DTypeError(f"view_as_complex wants float32 or float64, not {x.dtype}")
  return made(x[..., 0], x[..., 1])

# ***** the rest of the class *****

def _alike(name: str) -> Callable[..., Any]:
  def method(self: Complex, *args: Any, **keywords: Any) -> Any:
    found = [getattr(x, name)(*args, **keywords) for x in self._planes]
    if isinstance(found[0], (tuple, list)): return type(found[0])([made(a, b) for a, b in zip(*found)])
    return made(*found)
  method.__name__, method.__doc__ = name, getattr(Tensor, name).__doc__
  return method

def _function(name: str, function: Callable[[Planes], Planes]) -> Callable[..., Any]:
  def method(self: Complex) -> Any: return made(*function(self.pair))
  method.__name__, method.__doc__ = name, function.__doc__
  return method

def _refusing(name: str) -> Callable[..., Any]:
  def method(self: Any, *args: Any, **keywords: Any) -> Any:
    raise DTypeError(f"{name} is not defined for complex numbers, or not written for them; use .real and .imag")
  method.__name__ = name
  return method

def _fill_class() -> None:
  """Give the class its methods that are made, and let it refuse those that are not its own."""
  for name in ALIKE: setattr(Complex, name, _alike(name))
  for name, function in FUNCTIONS.items(): setattr(Complex, name, _function(name, function))
  own = {*vars(Complex), *INHERITED}
  for name in dir(Tensor):
    if not name.startswith("_") and name not in own: setattr(Complex, name, _refusing(name))

_fill_class()
