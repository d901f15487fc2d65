"""Sorting and selecting: sort, topk, one_hot, nonzero, masked_select.

Short axes are sorted by counting, for each element, those that go before it (n x n comparisons in one kernel); long ones by a bitonic network,
whose steps are movements and comparisons. Both are stable. NaN counts as the largest value.
"""
from __future__ import annotations
from typing import TYPE_CHECKING

from tinyhw.arithmetic import elements
from tinyhw.dtype import ConstType, dtypes
from tinyhw.errors import ArgumentError, DTypeError
from tinyhw.methods import graph
from tinyhw.methods.checks import whole
from tinyhw.methods.indexing import Indexing, masked
from tinyhw.methods.views import static
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp
if TYPE_CHECKING: from tinyhw.tensor import Tensor

_MOST_COUNTED = 1024

def goes_before(a: UOp, b: UOp) -> UOp:
  """a < b, where NaN is larger than every number."""
  less = graph.compare(Ops.CMPLT, a, b)
  if not dtypes.is_float(a.dtype): return less
  only_b_nan = graph.binary(Ops.AND, graph.compare(Ops.CMPNE, b, b), graph.compare(Ops.CMPEQ, a, a))
  return graph.binary(Ops.OR, less, only_b_nan)

class Sorting(Indexing):
  """Orders and selections."""
  __slots__ = ()

  def sort(self, dim: int = -1, descending: bool = False) -> tuple[Tensor, Tensor]:
    """(sorted values, their places before) along an axis; equal values keep their order.

    >>> [t.tolist() for t in Tensor([3, 1, 2]).sort()]
    [[1, 2, 3], [1, 2, 0]]
    """
    dim = self._axis(dim)
    if not self.ndim: return self._own(), self.const_like(0, dtypes.int32)
    places = self.argsort(dim, descending)
    return self.gather(dim, places), places

  def argsort(self, dim: int = -1, descending: bool = False) -> Tensor:
    """The places, in sorted order, along an axis.

    >>> Tensor([3, 1, 2]).argsort().tolist()
    [1, 2, 0]
    """
    dim = self._axis(dim)
    if not self.ndim: return self.const_like(0, dtypes.int32)
    x = self.transpose(dim, -1)
    n = static(x.shape[-1], "sort")
    places = _count_sort(x.uop, n, descending) if n <= _MOST_COUNTED else _bitonic_sort(x, n, descending)
    return self._new(places).transpose(dim, -1)

  def topk(self, k: int, dim: int = -1, largest: bool = True, sorted_: bool = True) -> tuple[Tensor, Tensor]:
    """(the k largest or smallest values, their places) along an axis, in order.

    >>> [t.tolist() for t in Tensor([3, 1, 2]).topk(2)]
    [[3, 2], [0, 2]]
    """
    dim = self._axis(dim)
    n = self.shape[dim] if self.ndim else 1
    k = whole("k", k)
    if not 0 <= k <= static(n, "select from"): raise ArgumentError(f"cannot take the top {k} of axis {dim} of {graph.show(self.shape)}")
    if not self.ndim: return self._own(), self.const_like(0, dtypes.int32)
    places = self._new(graph.shrink_axis(self.argsort(dim, largest).uop, dim, 0, k))
    return self.gather(dim, places), places

  def one_hot(self, num_classes: int = -1) -> Tensor:
    """A new last axis with 1 at the place that each integer names, else 0. -1: as many classes as the largest needs (which is read back).

    >>> Tensor([0, 2]).one_hot(3).tolist()
    [[1, 0, 0], [0, 0, 1]]
    """
    if not dtypes.is_int(self.dtype): raise DTypeError(f"one_hot wants integers, not {self.dtype}")
    num_classes = whole("num_classes", num_classes, -1)
    if num_classes == -1: num_classes = max(int(self.max().item()) + 1, 0)
    x = self._self() if self.dtype.itemsize >= 4 else self.cast(dtypes.int32)   # as many places as there are classes
    wide = x.unsqueeze(-1).expand(*x.shape, num_classes)
    return self._new(graph.cast(graph.compare(Ops.CMPEQ, wide.uop, graph.positions(wide.uop, x.ndim, x.dtype)), dtypes.default_int))

  def nonzero(self, size: int | None = None, fill_value: int = 0) -> Tensor:
    """The places of true elements, one row each, in order. Without `size` their number is read back; with it, rows are cut or filled.

    >>> Tensor([0, 5, 6]).nonzero().tolist()
    [[1], [2]]
    """
    flat = self.flatten() if self.ndim else self.reshape(1)
    index = self._new(_true_places(flat.bool().uop, size, self)).contiguous()
    count = index.shape[0]
    if not self.ndim: return index.reshape(count, 1).shrink([None, (0, 0)])
    columns, rest = [], index
    for d in reversed(self.shape):
      columns.append(rest.mod(d))
      rest = rest.idiv(d)
    rows = columns[-1].stack(*columns[-2::-1], dim=1)
    return index.lt(0).unsqueeze(1).where(fill_value, rows) if size is not None else rows

  def masked_select(self, mask: Tensor, size: int | None = None, fill_value: ConstType = 0) -> Tensor:
    """The elements where mask is true, as a vector. Without `size` their number is read back; with it, the vector is cut or filled.

    >>> Tensor([1, 2, 3]).masked_select(Tensor([True, False, True])).tolist()
    [1, 3]
    """
    chosen = masked(self.uop, self._operand("masked_select", mask).uop)
    x = self._new(graph.broadcast(self.uop, chosen.shape)).flatten()
    index = self._new(_true_places(graph.reshape(chosen, x.shape), size, self))
    picked = x.gather(0, index)
    return index.lt(0).where(fill_value, picked) if size is not None and fill_value != 0 else picked

def _true_places(mask: UOp, size: int | None, like: Sorting) -> UOp:
  """Indices of the true elements of a vector: as many as there are, or `size`, filled with -1."""
  if size is None:
    found = [i for i, x in enumerate(elements(like._new(mask)._buffer().as_memoryview(), dtypes.bool)) if x]
    return like._tensor(found).cast(dtypes.int32).uop
  size = whole("a size", size, 0)
  n = static(mask.shape[0], "select from")
  seen = like._new(graph.cast(mask, dtypes.int32))._running(0, Ops.ADD, 0).contiguous().uop
  wide = graph.expand(graph.reshape(seen, (1, n)), (size, n))  # the i-th true element is where the count first exceeds i
  before = graph.compare(Ops.CMPLT, graph.positions(wide, 0), wide)
  place = graph.fold(graph.cast(graph.binary(Ops.XOR, before, graph.like(before, True)), dtypes.int32), Ops.ADD, (1,))
  return graph.where(graph.compare(Ops.CMPLT, place, graph.like(place, n)), place, graph.like(place, -1))

def _count_sort(u: UOp, n: int, descending: bool) -> UOp:
  """Places in sorted order along the last axis. An element's rank is how many go before it; the place of rank r is where the rank is r."""
  *lead, _ = u.shape
  axis = len(lead)
  wide = (*lead, n, n)
  mine = graph.expand(graph.reshape(u, (*lead, n, 1)), wide)
  other = graph.expand(graph.reshape(u, (*lead, 1, n)), wide)
  before = goes_before(mine, other) if descending else goes_before(other, mine)
  after = goes_before(other, mine) if descending else goes_before(mine, other)
  earlier = graph.compare(Ops.CMPLT, graph.positions(before, axis + 1), graph.positions(before, axis))
  tie = graph.binary(Ops.AND, graph.binary(Ops.XOR, after, graph.like(after, True)), earlier)
  rank = graph.fold(graph.cast(graph.binary(Ops.OR, before, tie), dtypes.int32), Ops.ADD, (axis + 1,))
  ranks = graph.expand(graph.reshape(graph.contiguous(rank), (*lead, 1, n)), wide)
  here = graph.compare(Ops.CMPEQ, ranks, graph.positions(ranks, axis))
  return graph.fold(graph.where(here, graph.positions(here, axis + 1), graph.full(wide, dtypes.int32, 0)), Ops.ADD, (axis + 1,))

def _bitonic_sort(x: Tensor, n: int, descending: bool) -> UOp:
  """Places in sorted order along the last axis, by Batcher's bitonic network over (value, place) pairs; places break ties, so it is stable."""
  *lead, _ = x.shape
  stages = (n - 1).bit_length()
  whole, axis = 1 << stages, len(lead)
  values = graph.pad_axis(x.uop, axis, 0, whole - n)
  places = graph.positions(values, axis)
  if whole == 1: return places
  for stage in range(stages):
    for step in range(stage, -1, -1):
      span = 1 << step
      shape = (*lead, whole // (2 * span), 2, span)
      v, p = graph.reshape(values, shape), graph.reshape(places, shape)
      (low_v, high_v), (low_p, high_p) = ([graph.shrink_axis(u, axis + 1, i, i + 1) for i in range(2)] for u in (v, p))
      block = graph.positions(low_v, axis)
      mask = 1 << (stage - step)
      down = graph.compare(Ops.CMPNE, graph.binary(Ops.AND, block, graph.like(block, mask)), graph.like(block, 0))
      swap = graph.compare(Ops.CMPNE, _out_of_order(low_v, low_p, high_v, high_p, n, descending), down)
      values, places = (_swapped(swap, low, high, axis + 1, (*lead, whole)) for low, high in ((low_v, high_v), (low_p, high_p)))
  return graph.shrink_axis(places, axis, 0, n)

def _out_of_order(v: UOp, p: UOp, w: UOp, q: UOp, n: int, descending: bool) -> UOp:
  """Does the pair (w, q) go before (v, p)? Padding (places from n on) goes last."""
  before = goes_before(v, w) if descending else goes_before(w, v)
  after = goes_before(w, v) if descending else goes_before(v, w)
  same = graph.binary(Ops.XOR, graph.binary(Ops.OR, before, after), graph.like(before, True))
  before = graph.binary(Ops.OR, before, graph.binary(Ops.AND, same, graph.compare(Ops.CMPLT, q, p)))
  p_real, q_real = (graph.compare(Ops.CMPLT, u, graph.like(u, n)) for u in (p, q))
  both = graph.binary(Ops.AND, p_real, q_real)
  return graph.where(both, before, graph.binary(Ops.AND, q_real, graph.binary(Ops.XOR, p_real, graph.like(p_real, True))))

def _swapped(swap: UOp, low: UOp, high: UOp, axis: int, shape: tuple[object, ...]) -> UOp:
  """The halves, exchanged where swap is true, put together again and stored."""
  first, second = graph.where(swap, high, low), graph.where(swap, low, high)
  joined = graph.add(graph.pad_axis(first, axis, 0, 1), graph.pad_axis(second, axis, 1, 0))
  return graph.contiguous(graph.reshape(joined, shape))  # type: ignore[arg-type]  # sizes
