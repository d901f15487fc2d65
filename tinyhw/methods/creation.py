"""Tensors made from numbers alone: filled, counted, evenly spaced, triangular. They are expressions, computed where
they are used.

Equal expressions share one node and one gradient. `buffer=True` and `requires_grad=True` give a tensor a node of its
own, so that it can be assigned to and has its own gradient.
"""
from __future__ import annotations
import math
from typing import TYPE_CHECKING, Any

from tinyhw.device import Buffer, BufferOptions, Device, DeviceLike, computing, on_disk
from tinyhw.dtype import ConstType, DType, DTypeLike, dtypes, to_dtype
from tinyhw.engine.memory.buffers import new_buffer
from tinyhw.engine.memory.writes import unique
from tinyhw.errors import ArgumentError, DTypeError, ShapeError
from tinyhw.helpers import argfix, ceildiv
from tinyhw.methods import checks
from tinyhw.methods.base import Handle, complex_room, whole
from tinyhw.methods.checks import finite, flag, real, sizes
from tinyhw.methods.data.hostdata import check_held
from tinyhw.methods.graph import graph
from tinyhw.methods.graph.views import check_elements, limits
from tinyhw.methods.reduction import Reduction
from tinyhw.uop.decide import holds
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp, sint
if TYPE_CHECKING: from tinyhw.tensor import Tensor

def _file(device: DeviceLike, count: int, kind: DType) -> Buffer:
  assert isinstance(device, str)
  return Buffer(device, count, kind, options=BufferOptions(writable=True))

def checked_shape(shape: tuple[Any, ...]) -> tuple[sint, ...]:
  """Return the sizes of a new tensor, given as numbers or as one sequence. Raises ShapeError for a negative one."""
  found = argfix(*shape) if shape else ()
  for d in found:
    if isinstance(d, bool): raise ArgumentError(f"a size is a whole number or a Variable, not {d!r}")
  found = sizes("a size", found)
  for d in found:
    if holds(d < 0):
      raise ShapeError(f"cannot make a tensor of shape {graph.show(found)}: {graph.show((d,))[1:-2]} is negative")
  check_elements(found)
  return found

class Creation(Reduction):
  """full, arange and other functions that create tensors."""
  __slots__ = ()

  @classmethod
  def empty(cls, *shape: Any, device: DeviceLike | None = None, dtype: DTypeLike | None = None,
            requires_grad: bool | None = None) -> Tensor:
    """Allocate storage and leave its contents undefined. On DISK:/path the contents are those of the file. assign()
    writes the file, and creates it if it does not exist.

    >>> Tensor.empty(2, 3).shape
    (2, 3)
    """
    sizes = checked_shape(shape)
    count = graph.size(sizes)
    if not isinstance(count, int):
      raise ShapeError(f"cannot make an empty tensor of symbolic shape {graph.show(sizes)}; use the largest size and "
                       f"shrink it")
    place, kind = Device.canonicalize(device), dtypes.default_float if dtype is None else to_dtype(dtype)
    if kind in dtypes.complexes:
      found: Tensor = complex_room().made_planes(lambda plane: cls.empty(sizes, device=device, dtype=plane), kind,
                                                requires_grad)
      return found
    node = new_buffer(place, count, kind, _file(place, count, kind) if on_disk(place) else None)
    return cls._leaf(whole(node, sizes), requires_grad)

  @classmethod
  def full(cls, shape: Any, fill_value: ConstType, dtype: DTypeLike | None = None, device: DeviceLike | None = None,
           buffer: bool = False,
           requires_grad: bool | None = None) -> Tensor:
    """Return a tensor with one value everywhere. The type is that of the value unless given.

    >>> Tensor.full((2, 2), 7).tolist()
    [[7, 7], [7, 7]]
    """
    if isinstance(fill_value, complex) or dtype is not None and to_dtype(dtype) in dtypes.complexes:
      return complex_room().filled(shape, fill_value, dtype, device, requires_grad)  # type: ignore[no-any-return]
    if isinstance(fill_value, UOp): u = graph.element(fill_value, None if dtype is None else to_dtype(dtype))
    else:
      if isinstance(fill_value, Handle): fill_value = fill_value._self().item()
      if not isinstance(fill_value, bool): fill_value = real("a value to fill with", fill_value)
      kind = dtypes.from_py(fill_value) if dtype is None else to_dtype(dtype)
      fill_value = graph.check_number("fill", kind, fill_value)
      u = graph.constant(kind, fill_value, Device.canonicalize(device))
    u = graph.broadcast(u, checked_shape((shape,)))
    if requires_grad is not None: requires_grad = flag("requires_grad", requires_grad)
    return cls._leaf(unique(u) if flag("buffer", buffer) or requires_grad else u, requires_grad)

  @classmethod
  def zeros(cls, *shape: Any, **kwargs: Any) -> Tensor:
    """Return zeros, of the default float type unless dtype is given.

    >>> Tensor.zeros(2, 2).tolist()
    [[0.0, 0.0], [0.0, 0.0]]
    """
    return cls.full(argfix(*shape) if shape else (), 0.0, **kwargs)

  @classmethod
  def ones(cls, *shape: Any, **kwargs: Any) -> Tensor:
    """Return ones, of the default float type unless dtype is given.

    >>> Tensor.ones(2, dtype="int32").tolist()
    [1, 1]
    """
    return cls.full(argfix(*shape) if shape else (), 1.0, **kwargs)

  def full_like(self, fill_value: ConstType, dtype: DTypeLike | None = None, device: DeviceLike | None = None,
                buffer: bool = False,
                requires_grad: bool | None = None) -> Tensor:
    """Return a tensor with one value everywhere, with the shape, type and device of this tensor.

    >>> Tensor([1, 2]).full_like(5).tolist()
    [5, 5]
    """
    return self.full(self.shape, fill_value, self.dtype if dtype is None else dtype, device or computing(self.device),
                     buffer, requires_grad)

  def zeros_like(self, **kwargs: Any) -> Tensor:
    """Return zeros, with the shape, type and device of this tensor.

    >>> Tensor([1, 2]).zeros_like().tolist()
    [0, 0]
    """
    return self.full_like(0, **kwargs)

  def ones_like(self, **kwargs: Any) -> Tensor:
    """Return ones, with the shape, type and device of this tensor.

    >>> Tensor([1, 2]).ones_like().tolist()
    [1, 1]
    """
    return self.full_like(1, **kwargs)

  def empty_like(self, dtype: DTypeLike | None = None, device: DeviceLike | None = None) -> Tensor:
    """Allocate storage of this tensor's shape, with undefined contents.

    >>> Tensor([1, 2]).empty_like().dtype
    dtypes.int32
    """
    return self.empty(self.shape, device=device or computing(self.device), dtype=self.dtype if dtype is None else dtype)

  @classmethod
  def arange(cls, start: Any, stop: Any = None, step: Any = 1, dtype: DTypeLike | None = None,
             device: DeviceLike | None = None,
             requires_grad: bool | None = None) -> Tensor:
    """Return start, start + step, ... up to but without stop. arange(n) starts at 0. The elements are integers unless
    an argument is a float.

    Raises DTypeError for integers that the type does not hold. Raises ArgumentError for a step of 0 and for numbers
    that are not finite.

    >>> Tensor.arange(2, 10, 3).tolist()
    [2, 5, 8]
    """
    if stop is None: start, stop = 0, start
    start, stop, step = (x if isinstance(x, UOp) and dtypes.is_int(x.dtype) else finite("a bound or step of arange", x)
                         for x in (start, stop, step))
    numbers = (start, stop, step)
    if holds(step == 0 if not isinstance(step, UOp) else step.eq(0)):
      raise ArgumentError("arange needs a step other than 0")
    if dtype is not None: kind = to_dtype(dtype)
    else: kind = dtypes.default_float if any(isinstance(x, float) for x in numbers) else dtypes.default_int
    count = _how_many(start, stop, step)
    check_elements((count,))
    if kind is dtypes.bool: raise DTypeError("arange makes numbers, not bools; cast the result")
    place = Device.canonicalize(device)
    exact = dtypes.is_int(kind)
    if exact and isinstance(count, int) and count and not isinstance(start, UOp) and not isinstance(step, UOp):
      check_held((int(start), int(start) + (count - 1) * int(step)), kind)
    u = graph.iota(count, kind if exact else graph.place_type(count), place)
    if not exact:
      wide = graph.accumulator(kind)
      u = graph.cast(u, wide)
      if isinstance(step, UOp) or step != 1: u = graph.mul(u, _of(u, step))
      if isinstance(start, UOp) or start != 0: u = graph.add(u, _of(u, start))
      return cls._leaf(graph.cast(u, kind), requires_grad)
    if isinstance(step, UOp) or step != 1: u = graph.mul(u, _of(u, step))
    if isinstance(start, UOp) or start != 0: u = graph.add(u, _of(u, start))
    return cls._leaf(u, requires_grad)

  @classmethod
  def linspace(cls, start: float, stop: float, steps: int, dtype: DTypeLike | None = None,
               device: DeviceLike | None = None, **kwargs: Any) -> Tensor:
    """Return `steps` evenly spaced numbers from start to stop, both included.

    >>> Tensor.linspace(0, 1, 5).tolist()
    [0.0, 0.25, 0.5, 0.75, 1.0]
    """
    start, stop, steps = finite("start", start), finite("stop", stop), checks.whole("steps", steps, 0)
    kind = dtypes.default_float if dtype is None else to_dtype(dtype)
    if kind is dtypes.bool: raise DTypeError("linspace makes numbers, not bools; cast the result")
    if steps == 1: return cls.full((1,), start, kind, device, **kwargs)
    wide = kind if kind is dtypes.float64 else dtypes.float32
    i = cls.arange(steps, dtype=wide, device=device)
    values = i.mul((stop - start) / max(steps - 1, 1)).add(start)
    return cls._leaf(i.eq(steps - 1).where(float(stop), values).cast(kind).uop, **kwargs)

  @classmethod
  def eye(cls, n: int, m: int | None = None, dtype: DTypeLike | None = None, device: DeviceLike | None = None,
          requires_grad: bool | None = None) -> Tensor:
    """Return the identity matrix: ones where row and column are equal, else zeros.

    >>> Tensor.eye(2).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    n, columns = (int(d) for d in checked_shape((checks.whole("n", n), checks.whole("m", n if m is None else m))))
    rows = cls.arange(n, device=device).reshape(n, 1).expand(n, columns)
    same = rows.eq(cls.arange(columns, device=device).reshape(1, columns))
    return cls._leaf(same.cast(dtypes.default_float if dtype is None else to_dtype(dtype)).uop, requires_grad)

  def tril(self, diagonal: int = 0) -> Tensor:
    """Set the elements above a diagonal to zero. The diagonal is that with column - row == diagonal.

    >>> Tensor.ones(3, 3, dtype="int32").tril().tolist()
    [[1, 0, 0], [1, 1, 0], [1, 1, 1]]
    """
    return self._band(diagonal, lower=True)

  def triu(self, diagonal: int = 0) -> Tensor:
    """Set the elements below a diagonal to zero. The diagonal is that with column - row == diagonal.

    >>> Tensor.ones(3, 3, dtype="int32").triu(1).tolist()
    [[0, 1, 1], [0, 0, 1], [0, 0, 0]]
    """
    return self._band(diagonal, lower=False)

  def _band(self, diagonal: int, lower: bool) -> Tensor:
    diagonal = checks.whole("diagonal", diagonal)
    if self.ndim < 2: raise ShapeError(f"a triangle needs two axes, and {graph.show(self.shape)} has {self.ndim}")
    rows, columns = (limits(d)[1] for d in self.shape[-2:])
    # Farther out the result does not change. The limit keeps indices in few bits.
    diagonal = max(-rows, min(diagonal, columns))
    kind = graph.place_type(rows + columns)
    row, column = (graph.positions(self.uop, self.ndim - k, kind) for k in (2, 1))
    shifted = graph.add(row, graph.like(row, diagonal if lower else diagonal - 1))
    above = graph.compare(Ops.CMPLT, shifted, column)
    zero = graph.like(self.uop, 0)
    return self._new(graph.where(above, zero, self.uop) if lower else graph.where(above, self.uop, zero))

  def diag(self) -> Tensor:
    """Return a matrix with this vector as its diagonal.

    >>> Tensor([1, 2]).diag().tolist()
    [[1, 0], [0, 2]]
    """
    if self.ndim != 1:
      raise ShapeError(f"diag wants one axis, and {graph.show(self.shape)} has {self.ndim}; diagonal() takes a "
                       f"diagonal out")
    n = self.shape[0]
    wide = self.reshape(n, 1).expand(n, n)
    same = graph.compare(Ops.CMPEQ, graph.positions(wide.uop, 0), graph.positions(wide.uop, 1))
    return self._new(graph.where(same, wide.uop, graph.like(wide.uop, 0)))

def _of(u: UOp, x: Any) -> UOp:
  """Return a number or Variable in u's type and shape."""
  return (graph.broadcast(graph.element(x, u.dtype), u.shape) if isinstance(x, UOp)
          else graph.like(u, int(x) if dtypes.is_int(u.dtype) else x))

def _how_many(start: Any, stop: Any, step: Any) -> sint:
  """Return the length of an arange."""
  numbers = (start, stop, step)
  symbolic = any(isinstance(x, UOp) for x in numbers)
  if symbolic and any(isinstance(x, float) for x in numbers):
    start, stop, step = (int(x) if isinstance(x, UOp) else x for x in numbers)
  elif symbolic:
    forward = holds(step > 0, True)
    span, each = (stop - start, step) if forward else (start - stop, -step)
    return 0 if holds(span <= 0) else graph.simple(ceildiv(span, each))
  if any(isinstance(x, float) for x in (start, stop, step)): return max(0, int(math.ceil((stop - start) / step)))
  return max(0, int(-(-(stop - start) // step)))

