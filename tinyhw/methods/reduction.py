"""Reductions over axes, normalizations, and cumulative reductions.

Sums of bools and of integers narrower than 32 bits are int32 (unsigned: uint32). float16, bfloat16 and fp8 accumulate
in float32, and are rounded once. Sums and products of no elements are 0 and 1. max, argmax and similar methods then
raise ShapeError. NaN in gives NaN out.
"""
from __future__ import annotations
from collections.abc import Callable, Sequence
import math
from typing import TYPE_CHECKING

from tinyhw.dtype import DTypeLike, dtypes, least_upper_float, to_dtype
from tinyhw.errors import ArgumentError, ShapeError
from tinyhw.gradient import define_gradient
from tinyhw.helpers import ceildiv
from tinyhw.methods.checks import flag, real, whole
from tinyhw.methods.graph import graph
from tinyhw.methods.graph.views import limits
from tinyhw.methods.movement import Movement
from tinyhw.methods.pointwise.casts import truth
from tinyhw.trace import of_one_line
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp, sint, sint_prod
if TYPE_CHECKING: from tinyhw.tensor import Tensor

Axis = int | Sequence[int] | None
# A cumulative reduction longer than twice this is done in blocks of this size. So each element is reduced with at most
# this many others. The lanes of a GPU do that at once, and fewer steps of blocks are better. A worker of a CPU does one
# after another.
_BLOCK = 32
_SHORT_BLOCK = 8

class Reduction(Movement):
  """sum, max and similar methods."""
  __slots__ = ()

  def _fold(self, op: Ops, axis: Axis, keepdim: bool, u: UOp | None = None) -> Tensor:
    u = self.uop if u is None else u
    axes = self._axes(axis)
    return self._own(graph.reduce(u, op, axes) if flag("keepdim", keepdim) else graph.fold(u, op, axes))

  def sum(self, axis: Axis = None, keepdim: bool = False, dtype: DTypeLike | None = None) -> Tensor:
    """Sum over axes. dtype: the type to accumulate in and to return.

    >>> Tensor([[1.0, 2.0], [3.0, 4.0]]).sum(axis=0).tolist()
    [4.0, 6.0]
    """
    own = self.uop.dtype
    wide = graph.accumulator(own) if dtype is None else to_dtype(dtype)
    total = self._fold(Ops.ADD, axis, keepdim, graph.cast(self.uop, wide))
    return total.cast(own) if dtype is None and dtypes.is_float(own) else total

  def prod(self, axis: Axis = None, keepdim: bool = False, dtype: DTypeLike | None = None) -> Tensor:
    """Multiply over axes.

    >>> Tensor([[1.0, 2.0], [3.0, 4.0]]).prod().item()
    24.0
    """
    own = self.uop.dtype
    wide = graph.accumulator(own) if dtype is None else to_dtype(dtype)
    total = self._fold(Ops.MUL, axis, keepdim, graph.cast(self.uop, wide))
    return total.cast(own) if dtype is None and dtypes.is_float(own) else total

  def max(self, axis: Axis = None, keepdim: bool = False) -> Tensor:
    """Return the largest element, or NaN if there is one. Raises ShapeError if there are no elements.

    >>> Tensor([[1, 5], [7, 3]]).max(axis=1).tolist()
    [5, 7]
    """
    self._refuse_empty("find the largest of", axis)
    return self._largest(axis, keepdim)

  def _largest(self, axis: Axis, keepdim: bool = False) -> Tensor:
    """Return max. For no elements it is the smallest value of the type."""
    return self._fold(Ops.MAX, axis, keepdim)

  def _refuse_empty(self, what: str, axis: Axis) -> None:
    axes = self._axes(axis)
    if any(graph.equal(self.shape[a], 0) for a in axes):
      raise ShapeError(f"cannot {what} no elements: shape {graph.show(self.shape)} over axes {axes}; reduce other "
                       f"axes, or pad first")

  def min(self, axis: Axis = None, keepdim: bool = False) -> Tensor:
    """Return the smallest element, or NaN if there is one. Raises ShapeError if there are no elements.

    >>> Tensor([[1, 5], [7, 3]]).min(axis=0).tolist()
    [1, 3]
    """
    self._refuse_empty("find the smallest of", axis)
    return self._mirror()._fold(Ops.MAX, axis, keepdim)._mirror()

  def _mirror(self) -> Tensor:
    """Return values in reversed order of size: -x, or ~x where -x could wrap."""
    if dtypes.is_float(self.dtype): return self.neg()
    return self.bitwise_not()

  def any(self, axis: Axis = None, keepdim: bool = False) -> Tensor:
    """Return True where any element is true.

    >>> Tensor([False, True]).any().item()
    True
    """
    return self._fold(Ops.MAX, axis, keepdim, truth(self.uop))

  def all(self, axis: Axis = None, keepdim: bool = False) -> Tensor:
    """Return True where all elements are true.

    >>> Tensor([False, True]).all().item()
    False
    """
    return self.logical_not().any(axis, keepdim).logical_not()

  def isclose(self, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Tensor:
    """Return |self - other| <= atol + rtol * |other|. Equal infinities are close.

    >>> Tensor([1.0, 2.0]).isclose(Tensor([1.0, 2.1])).tolist()
    [True, False]
    """
    other = self.ufix(other)
    x, y = self._float(), other._float()
    near = x.isfinite() & y.isfinite() & (x.sub(y).abs() <= y.abs().mul(rtol).add(atol))
    return near | x.eq(y) | (x.isnan() & y.isnan() & flag("equal_nan", equal_nan))

  def allclose(self, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> bool:
    """Return True if all elements are close.

    >>> Tensor([1.0, 2.0]).allclose(Tensor([1.0, 2.0]))
    True
    """
    return bool(self.isclose(other, rtol, atol, equal_nan).all()._buffer().as_memoryview()[0])

  # ***** statistics *****

  def _count(self, axis: Axis) -> sint: return sint_prod([self.shape[a] for a in self._axes(axis)])

  def _over(self, n: sint) -> Tensor:
    """Return self / n for a count, which may be symbolic or 0."""
    if isinstance(n, int): return self.mul(1 / n) if n & (n - 1) == 0 and n else self.div(n)
    return self.div(self._new(graph.cast(n, self.dtype)))

  def mean(self, axis: Axis = None, keepdim: bool = False) -> Tensor:
    """Return the average. Integers give the default float type. Floats narrower than 32 bits accumulate in float32. The
    mean of no elements is NaN.

    >>> Tensor([[1.0, 2.0], [3.0, 4.0]]).mean(axis=-1, keepdim=True).tolist()
    [[1.5], [3.5]]
    """
    out = least_upper_float(self.dtype)
    wide = graph.accumulator(out)
    return self.cast(wide).sum(axis, keepdim, wide)._over(self._count(axis)).cast(out)

  def var(self, axis: Axis = None, keepdim: bool = False, correction: int = 1) -> Tensor:
    """Return the variance. The divisor is the count minus `correction`, at least 0.

    >>> Tensor([[1.0, 2.0], [3.0, 4.0]]).var(axis=1).tolist()
    [0.5, 0.5]
    """
    return self.var_mean(axis, keepdim, correction)[0]

  def var_mean(self, axis: Axis = None, keepdim: bool = False, correction: int = 1) -> tuple[Tensor, Tensor]:
    """Return variance and mean.

    >>> [t.tolist() for t in Tensor([[1.0, 2.0], [3.0, 4.0]]).var_mean(axis=1)]
    [[0.5, 0.5], [1.5, 3.5]]
    """
    out = least_upper_float(self.dtype)
    var, mean = self._spread(axis, keepdim, correction)
    return var.cast(out), mean.cast(out)

  def _spread(self, axis: Axis, keepdim: bool, correction: int) -> tuple[Tensor, Tensor]:
    """Return variance and mean, in the type of the accumulator."""
    correction = whole("correction", correction)
    wide = graph.accumulator(least_upper_float(self.dtype))
    x = self.cast(wide)
    mean = x.mean(axis, keepdim=True)
    n = self._count(axis)
    divisor: sint = max(n - correction, 0) if isinstance(n, int) else (n - correction).maximum(0)
    var = x.sub(mean).square().sum(axis, keepdim, wide)._over(divisor)
    return var, mean if keepdim else mean.reshape(var.shape)

  def std(self, axis: Axis = None, keepdim: bool = False, correction: int = 1) -> Tensor:
    """Return the standard deviation.

    >>> Tensor([1.0, 3.0, 5.0]).std().item()
    2.0
    """
    return self.std_mean(axis, keepdim, correction)[0]

  def std_mean(self, axis: Axis = None, keepdim: bool = False, correction: int = 1) -> tuple[Tensor, Tensor]:
    """Return standard deviation and mean.

    >>> [t.item() for t in Tensor([1.0, 3.0, 5.0]).std_mean()]
    [2.0, 3.0]
    """
    out = least_upper_float(self.dtype)
    var, mean = self._spread(axis, keepdim, correction)
    return var._root().cast(out), mean.cast(out)

  def normalize(self, p: float = 2, dim: int = 1, eps: float = 1e-12) -> Tensor:
    """Divide by the p-norm along an axis. The norm counts as at least eps.

    >>> Tensor([[3.0, 4.0]]).normalize().realize()
    <Tensor (1, 2) float32 on CPU, realized:
     [[0.6, 0.8]]>
    """
    p = real("p", p)
    if p <= 0: raise ArgumentError(f"normalize wants a positive p, not {p}")
    def divided(x: Tensor) -> Tensor:
      if p == 2: norm = x.square().sum(dim, keepdim=True)._root()
      elif p == math.inf: norm = x.abs()._largest(dim, keepdim=True)
      else: norm = x.abs().pow(p).sum(dim, keepdim=True).pow(1 / p)
      return x.div(norm.maximum(eps))
    return self._precisely(divided)

  # ***** softmax and its relatives *****

  def _shifted(self, axis: int) -> Tensor:
    """Subtract the maximum along an axis. The gradient ignores the maximum."""
    return self.sub(self.detach()._largest(axis, keepdim=True)) if self.ndim else self.sub(self.detach())

  @of_one_line
  def softmax(self, axis: int = -1, dtype: DTypeLike | None = None) -> Tensor:
    """Return exp(self) divided by its sum along an axis. dtype: the type to cast to before.

    >>> Tensor([0.0, 0.0]).softmax().tolist()
    [0.5, 0.5]
    """
    def shares(x: Tensor) -> Tensor:
      e = x._shifted(axis).exp()
      return e.mul(e.sum(axis, keepdim=True).reciprocal())
    return (self if dtype is None else self.cast(dtype))._precisely(shares)

  def softmin(self, axis: int = -1, dtype: DTypeLike | None = None) -> Tensor:
    """Return softmax(-self).

    >>> Tensor([0.0, 1.0]).softmin().realize()
    <Tensor (2,) float32 on CPU, realized: [0.73106, 0.26894]>
    """
    return self.neg().softmax(axis, dtype)

  @of_one_line
  def log_softmax(self, axis: int = -1, dtype: DTypeLike | None = None) -> Tensor:
    """Return the logarithm of softmax.

    >>> Tensor([0.0, 1.0]).log_softmax().realize()
    <Tensor (2,) float32 on CPU, realized: [-1.3133, -0.31326]>
    """
    def logarithms(x: Tensor) -> Tensor:
      below = x._shifted(axis)
      return below.sub(below.exp().sum(axis, keepdim=True).log())
    return (self if dtype is None else self.cast(dtype))._precisely(logarithms)

  def logsumexp(self, axis: Axis = None, keepdim: bool = False) -> Tensor:
    """Return log(sum(exp(self))) without overflow. It is -inf where all elements are -inf.

    >>> Tensor([0.0, 1.0]).logsumexp().realize()
    <Tensor () float32 on CPU, realized: 1.3133>
    """
    def logarithm(x: Tensor) -> Tensor:
      top = x.detach()._largest(axis, keepdim=True)
      top = top.isfinite().where(top, 0)
      total = x.sub(top).exp().sum(axis, keepdim).log()
      return total.add(top if keepdim else top.reshape(total.shape))
    return self._precisely(logarithm)

  @of_one_line
  def layernorm(self, axis: int | tuple[int, ...] = -1, eps: float = 1e-5) -> Tensor:
    """Normalize to mean 0 and variance 1 along axes.

    >>> Tensor([[1.0, 3.0]]).layernorm().realize()
    <Tensor (1, 2) float32 on CPU, realized:
     [[-0.99999,  0.99999]]>
    """
    out = least_upper_float(self.dtype)
    x = self.cast(graph.accumulator(out))
    y = x.sub(x.mean(axis, keepdim=True))
    return y.mul(y.square().mean(axis, keepdim=True).add(eps).rsqrt()).cast(out)

  @of_one_line
  def batchnorm(self, weight: Tensor | None, bias: Tensor | None, mean: Tensor, invstd: Tensor,
                axis: int | tuple[int, ...] = 1) -> Tensor:
    """Return (self - mean) * invstd * weight + bias. These are vectors along `axis`. invstd may also have the full
    shape.

    >>> x = Tensor([[1.0], [3.0]])
    >>> x.batchnorm(None, None, x.mean(0), x.var(0, correction=0).add(1e-5).rsqrt()).realize()
    <Tensor (2, 1) float32 on CPU, realized:
     [[-0.99999],
      [ 0.99999]]>
    """
    for x in (mean, invstd): self._operand("batchnorm", x)
    axes = self._axes(axis)
    shape = [d if i in axes else 1 for i, d in enumerate(self.shape)]
    x = self.sub(mean.reshape(shape))
    if weight is not None: x = x.mul(weight.reshape(shape))
    x = x.mul(invstd.reshape(shape) if len(invstd.shape) == len(axes) else invstd)
    return x if bias is None else x.add(bias.reshape(shape))

  # ***** indices of extremes *****

  def argmax(self, axis: int | None = None, keepdim: bool = False) -> Tensor:
    """Return the index of the largest element along an axis, or in the flattened tensor. Of equal elements it is the
    first. If there is a NaN, it is the first NaN.

    Indices have the default integer type, or int64 if that type cannot hold the count.

    >>> Tensor([[1, 5], [7, 3]]).argmax(axis=1).tolist()
    [1, 0]
    """
    if axis is None:
      place = self.flatten().argmax(0)
      return place.reshape((1,) * self.ndim) if flag("keepdim", keepdim) else place
    axis = self._axis(axis)
    if not self.ndim: return self.const_like(0, dtypes.default_int)
    n = self.shape[axis]
    if graph.equal(n, 0): raise ShapeError(f"argmax along axis {axis} of {graph.show(self.shape)}: there is no element")
    top = self._or_nan(self.eq(self.max(axis, keepdim=True))).uop
    kind = graph.place_type(n, least=dtypes.default_int)
    late = graph.binary(Ops.SUB, graph.count(top.shape, kind, n), graph.positions(top, axis, kind))
    first = self._new(graph.where(top, late, graph.like(late, 0))).max(axis, keepdim)
    return first.sub(n, reverse=True).minimum(n - 1)

  def argmin(self, axis: int | None = None, keepdim: bool = False) -> Tensor:
    """Return the index of the smallest element. Of equal elements it is the first. If there is a NaN, it is the first
    NaN.

    >>> Tensor([[1, 5], [7, 3]]).argmin(axis=1).tolist()
    [0, 1]
    """
    return self._mirror().argmax(axis, keepdim)

  def _or_nan(self, where: Tensor) -> Tensor:
    """Return True also where an element is NaN."""
    return where | self.isnan() if dtypes.is_float(self.dtype) else where

  # ***** running reductions *****

  def _running(self, axis: int, op: Ops, identity: float | int | bool) -> Tensor:
    """Reduce each element with all before it along an axis, by a masked n x n reduction. Long axes are done in
    blocks."""
    axis = self._axis(axis)
    if not self.ndim: return self._own()
    n = self.shape[axis]
    if limits(n)[1] <= 2 * _SHORT_BLOCK: return self._new(_triangle(self.uop, op, identity, axis))
    from tinyhw.methods.graph.places import runs_in_order  # 0.3 ms to load, for long axes
    size = _SHORT_BLOCK if isinstance(n, int) and runs_in_order(self.uop) else _BLOCK
    if limits(n)[1] <= 2 * size: return self._new(_triangle(self.uop, op, identity, axis))
    blocks, x = graph.simple(ceildiv(n, size)), self._self()
    padded = not graph.equal(n, blocks * size)
    if padded: x = x.pad(_along(x, axis, (0, graph.simple(blocks * size - n))), value=identity)
    x = x.reshape(*x.shape[:axis], blocks, size, *x.shape[axis + 1:])
    # Elements are read twice, so that only the blocks' totals are stored in between.
    before = self._new(graph.fold(x.uop, op, (axis + 1,)))._running(axis, op, identity)
    shifted = before.pad(_along(before, axis, (1, -1)), value=identity).contiguous().unsqueeze(axis + 1)
    inside = _triangle(x.uop, op, identity, axis + 1)
    done = self._new(graph.binary(op, inside, graph.expand(shifted.uop, inside.shape)))
    # A kernel that computes a part of the last block would compute each result alone.
    if padded: done = done.contiguous()
    return done.flatten(axis, axis + 1).shrink([(0, n) if k == axis else None for k in range(self.ndim)])

  def cumsum(self, axis: int = 0) -> Tensor:
    """Return the sums of each element and all before it along an axis.

    >>> Tensor([1, 2, 3]).cumsum().tolist()
    [1, 3, 6]
    """
    return self._accumulated(lambda x: x._running(axis, Ops.ADD, 0))

  def cumprod(self, axis: int = 0) -> Tensor:
    """Return the products of each element and all before it along an axis.

    >>> Tensor([1, 2, 3]).cumprod(0).tolist()
    [1, 2, 6]
    """
    return self._accumulated(lambda x: x._running(axis, Ops.MUL, 1))

  def _accumulated(self, run: Callable[[Tensor], Tensor]) -> Tensor:
    total = run(self.cast(graph.accumulator(self.dtype)))
    return total.cast(self.dtype) if dtypes.is_float(self.dtype) else total

  def cummax(self, axis: int = 0) -> tuple[Tensor, Tensor]:
    """Return (largest element so far, its index). Of equal elements, and of NaNs, it is the last index, as in PyTorch.
    All of the gradient goes to this element.

    >>> [t.tolist() for t in Tensor([1, 3, 2]).cummax()]
    [[1, 3, 3], [0, 1, 1]]
    """
    if not self.ndim: return self._own(), self.const_like(0, dtypes.default_int)
    axis = self._axis(axis)
    values = self._running(axis, Ops.MAX, self.dtype.min)
    if not dtypes.is_float(self.dtype): return values, self._last_equal(values, axis)
    make = type(self)._new
    node = graph.node(Ops.DETACH, self.dtype, (values.uop, self.uop), None, values.shape)
    def backward(own: UOp, g: UOp) -> tuple[UOp]:
      place = make(own.src[1])._last_equal(make(own.src[0]), axis)
      wide = make(graph.cast(g, graph.accumulator(g.dtype))).transpose(axis, -1)
      return (graph.cast(wide._sent_to(place.transpose(axis, -1)).transpose(axis, -1).uop, g.dtype),)
    define_gradient(node, (self.uop,), backward)
    return self._new(node), self._last_equal(values, axis)

  def _last_equal(self, values: Tensor, axis: int) -> Tensor:
    """Return the last index so far where self equals the running maximum."""
    place = self._new(graph.positions(self.uop, axis, graph.place_type(self.shape[axis], least=dtypes.default_int)))
    return self._or_nan(self.eq(values)).where(place, 0)._running(axis, Ops.MAX, 0)

  def _sent_to(self, place: Tensor) -> Tensor:
    """Sum, for each index of the last axis, the elements whose `place` is that index. Places never decrease, and none
    is greater than the index of its element.

    It works in blocks, as `_running` does. Elements with a place before their block all have the same place: the last
    one of the block before.
    """
    n = self.shape[-1]
    if limits(n)[1] <= 2 * _BLOCK: return self._new(_named(self.uop, place.uop))
    blocks = graph.simple(ceildiv(n, _BLOCK))
    def cut(x: Tensor) -> Tensor:
      whole = x.pad([None] * (x.ndim - 1) + [(0, graph.simple(blocks * _BLOCK - n))])
      return whole.reshape(*whole.shape[:-1], blocks, _BLOCK)
    x, place = cut(self._self()), cut(place).contiguous()
    rank = x.ndim - 1
    begin = self._new(graph.positions(place.uop, rank - 1, place.dtype)).mul(_BLOCK)
    late = place.lt(begin).where(x, 0).sum(-1, dtype=self.dtype).contiguous()
    last = self._new(graph.shrink_axis(place.uop, rank, _BLOCK - 1, _BLOCK))
    # Block b + 1 adds to the block that the place of the last element of block b lies in.
    after = late.pad([None] * (rank - 1) + [(-1, 1)])
    carried = after._sent_to(last.squeeze(-1).idiv(_BLOCK)).unsqueeze(-1)
    here = begin.add(self._new(graph.positions(place.uop, rank, place.dtype)))
    done = self._new(_named(x.uop, place.sub(begin).uop)).add(here.eq(last).where(carried, 0))
    return done.flatten(-2).shrink([None] * (self.ndim - 1) + [(0, n)])

  def cummin(self, axis: int = 0) -> tuple[Tensor, Tensor]:
    """Return (smallest element so far, its index).

    >>> [t.tolist() for t in Tensor([3, 1, 2]).cummin(0)]
    [[3, 1, 1], [0, 1, 1]]
    """
    values, place = self._mirror().cummax(axis)
    return values._mirror(), place

  def logcumsumexp(self, axis: int = 0) -> Tensor:
    """Return the cumulative logsumexp along an axis.

    >>> Tensor([0.0, 0.0]).logcumsumexp().realize()
    <Tensor (2,) float32 on CPU, realized: [0.0, 0.69315]>
    """
    x = self._float()
    if not x.ndim: return x._own()
    return x.transpose(axis, -1)._running_logsumexp().transpose(axis, -1)

  def _running_logsumexp(self) -> Tensor:
    """Return the cumulative logsumexp along the last axis. Long ones are done in blocks."""
    n = self.shape[-1]
    if not isinstance(n, int) or n <= 2 * _SHORT_BLOCK:
      wide = self.unsqueeze(-2).expand(*self.shape[:-1], n, n)
      return self._new(_lower(wide.uop, wide.ndim - 2)).where(wide, -math.inf).logsumexp(-1)
    blocks, before = ceildiv(n, _SHORT_BLOCK), [None] * (self.ndim - 1)
    x = self.pad([*before, (0, blocks * _SHORT_BLOCK - n)], value=-math.inf)
    inside = x.reshape(*x.shape[:-1], blocks, _SHORT_BLOCK)._running_logsumexp().contiguous()
    totals = inside.shrink([*before, None, (_SHORT_BLOCK - 1, _SHORT_BLOCK)]).squeeze(-1)._running_logsumexp()
    earlier = totals.pad([*before, (1, -1)], value=-math.inf).contiguous()
    return inside.logaddexp(earlier.unsqueeze(-1)).flatten(-2).shrink([*before, (0, n)])

def _along(x: Tensor, axis: int, pair: tuple[sint, sint]) -> list[tuple[sint, sint] | None]:
  """Return the argument of pad or shrink for one axis."""
  return [pair if k == axis else None for k in range(x.ndim)]

def _lower(u: UOp, axis: int) -> UOp:
  """Return True where the index along an axis is at least the index along the next axis."""
  late = graph.compare(Ops.CMPLT, graph.positions(u, axis), graph.positions(u, axis + 1))
  return graph.binary(Ops.XOR, late, graph.like(late, True))

def _triangle(u: UOp, op: Ops, identity: float | int | bool, axis: int) -> UOp:
  """Reduce cumulatively along an axis by a masked reduction."""
  before, n, after = u.shape[:axis], u.shape[axis], u.shape[axis + 1:]
  wide = graph.expand(graph.reshape(u, (*before, 1, n, *after)), (*before, n, n, *after))
  return graph.fold(graph.where(_lower(wide, axis), wide, graph.like(wide, identity)), op, (axis + 1,))

def _named(u: UOp, place: UOp) -> UOp:
  """Sum, for each index of the last axis, the elements whose place is that index. Each sum runs over all elements."""
  *lead, n = u.shape
  wide, names = (graph.expand(graph.reshape(x, (*lead, 1, n)), (*lead, n, n)) for x in (u, place))
  hit = graph.compare(Ops.CMPEQ, names, graph.positions(names, len(lead), place.dtype))
  return graph.fold(graph.where(hit, wide, graph.like(wide, 0)), Ops.ADD, (len(lead) + 1,))

def check_one_of(what: str, value: object, choices: Sequence[object]) -> None:
  """Raise ArgumentError unless value is one of the choices."""
  if value not in choices: raise ArgumentError(f"{what} is one of {', '.join(map(repr, choices))}, not {value!r}")
