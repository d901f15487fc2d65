"""Type conversions: the same values, or the same bits, as another type. Also detach and contiguous."""
from __future__ import annotations
from typing import TYPE_CHECKING, Any, TypeAlias

from tinyhw.device import on_disk
from tinyhw.dtype import DType, DTypeLike, dtypes, to_dtype
from tinyhw.engine.memory.disk import reread
from tinyhw.errors import DTypeError, ShapeError
from tinyhw.methods.base import Handle, complex_room
from tinyhw.methods.graph import graph
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp, sint
if TYPE_CHECKING: from tinyhw.tensor import Tensor

class TypeConversion(Handle):
  """Methods for types of elements, and for copies."""
  __slots__ = ()

  def cast(self, dtype: DTypeLike) -> Tensor:
    """Convert values to another type. Floats become integers by rounding to zero. Bools are True where a value is not
    zero.

    >>> Tensor([1.9, -1.9]).cast("int32").tolist()
    [1, -1]
    """
    wanted = to_dtype(dtype)
    if wanted is self.uop.dtype: return self._self()
    if wanted in dtypes.complexes: return complex_room().widened(self, wanted)  # type: ignore[no-any-return]
    return self._new(converted(self.uop, wanted))

  def bitcast(self, dtype: DTypeLike) -> Tensor:
    """Reinterpret the same bits as another type. If the size of the type changes, the last axis becomes longer or
    shorter, with low bytes first.

    The result is a view: writes through it change this tensor, and vice versa. contiguous() gives it memory of its own.
    For a tensor on DISK it is a view of the file. Raises DTypeError for bool, ShapeError if the last axis holds no
    whole number of elements.

    >>> Tensor([1.0]).bitcast("int32").tolist(), Tensor([1, 256]).bitcast("int16").tolist()
    ([1065353216], [1, 0, 256, 0])
    """
    wanted = to_dtype(dtype)
    if on_disk(self.uop.device): return self._leaf(reread(self.uop, wanted))
    if wanted is self.dtype: return self._self()
    if dtypes.bool in (wanted, self.dtype):
      raise DTypeError(f"cannot bitcast {self.dtype} to {wanted}: a bool has no bits of its own; use cast")
    shape = self.shape if wanted.itemsize == self.dtype.itemsize else self._regrouped(wanted)
    return self._view(graph.node(Ops.BITCAST, wanted, (self.uop,), None, shape))

  def _regrouped(self, wanted: DType) -> tuple[sint, ...]:
    """Return the shape of the bits as elements of another size."""
    have, want = self.dtype.itemsize, wanted.itemsize
    n = self.shape[-1] if self.shape else 0
    if not self.shape or isinstance(n, Int) and n * have % want:
      raise ShapeError(f"cannot bitcast {self.dtype} to {wanted}: the last axis of shape {graph.show(self.shape)} "
                       f"must hold a whole number of "
                       f"elements of {want} bytes; reshape, pad or shrink it")
    return *self.shape[:-1], graph.simple(n * (have // want) if want < have else n // (want // have))

  def float(self) -> Tensor:
    """Cast to float32.

    >>> Tensor([1, 2]).float().dtype
    dtypes.float32
    """
    return self.cast(dtypes.float32)

  def half(self) -> Tensor:
    """Cast to float16.

    >>> Tensor([1, 2]).half().dtype
    dtypes.float16
    """
    return self.cast(dtypes.float16)

  def bfloat16(self) -> Tensor:
    """Cast to bfloat16.

    >>> Tensor([1, 2]).bfloat16().dtype
    dtypes.bfloat16
    """
    return self.cast(dtypes.bfloat16)

  def double(self) -> Tensor:
    """Cast to float64.

    >>> Tensor([1, 2]).double().dtype
    dtypes.float64
    """
    return self.cast(dtypes.float64)

  def int(self) -> Tensor:
    """Cast to int32.

    >>> Tensor([1.5]).int().tolist()
    [1]
    """
    return self.cast(dtypes.int32)

  def short(self) -> Tensor:
    """Cast to int16.

    >>> Tensor([1.5]).short().dtype
    dtypes.int16
    """
    return self.cast(dtypes.int16)

  def long(self) -> Tensor:
    """Cast to int64.

    >>> Tensor([1.5]).long().dtype
    dtypes.int64
    """
    return self.cast(dtypes.int64)

  def bool(self) -> Tensor:
    """Cast to bool: True where an element is not zero.

    >>> Tensor([0.0, 1.5]).bool().tolist()
    [False, True]
    """
    return self.cast(dtypes.bool)

  def is_floating_point(self) -> Bool:
    """Return True if the elements are floats.

    >>> Tensor([1.5]).is_floating_point()
    True
    """
    return dtypes.is_float(self.dtype)

  def element_size(self) -> Int:
    """Return the bytes of one element.

    >>> Tensor([1.5]).element_size()
    4
    """
    return self.dtype.itemsize

  def detach(self) -> Tensor:
    """Return the same values, without a gradient.

    >>> x = Tensor([2.0])
    >>> loss = (x * x.detach()).backward()
    >>> x.grad.tolist()
    [2.0]
    """
    return self._view(graph.detach(self.uop))

  def contiguous(self, **kwargs: Any) -> Tensor:
    """Store the same values in memory of their own, in order. This limits fusion.

    >>> Tensor([[1, 2], [3, 4]]).T.contiguous().tolist()
    [[1, 3], [2, 4]]
    """
    return self._new(graph.contiguous(self.uop))

  def contiguous_backward(self) -> Tensor:
    """Return the same values. The gradient that arrives here is stored in memory.

    >>> Tensor([1, 2]).contiguous_backward().tolist()
    [1, 2]
    """
    return self._new(graph.unary(Ops.CONTIGUOUS_BACKWARD, self.uop))

Bool: TypeAlias = bool  # inside of the class, these names are methods
Int: TypeAlias = int

def converted(u: UOp, dtype: DType) -> UOp:
  """Return u as another type, as `Tensor.cast` does: a bool is True where u is not zero."""
  return truth(u) if dtype is dtypes.bool else graph.cast(u, dtype)

def truth(u: UOp) -> UOp:
  """Return u as bool: True where it is not zero."""
  return u if u.dtype is dtypes.bool else graph.compare(Ops.CMPNE, u, graph.like(u, 0))
