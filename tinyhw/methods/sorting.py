"""Sorting and selection: sort, topk, one_hot, nonzero, masked_select.

Short axes are sorted by counting: one kernel compares n x n elements to count those before each one. Long axes are
sorted by digits where a worker runs long loops fast (graph/digits.py). Elsewhere a bitonic network sorts them, whose
steps are movements and comparisons. All are stable. NaN counts as the largest value.

The k largest of many elements are searched in blocks: they are in the k blocks with the largest maxima.
"""
from __future__ import annotations
from array import array
from collections.abc import Callable
import itertools
import math
from typing import TYPE_CHECKING

from tinyhw.dtype import ConstType, dtypes
from tinyhw.errors import ArgumentError, DTypeError
from tinyhw.methods.checks import flag, whole
from tinyhw.methods.graph import graph
from tinyhw.methods.graph.views import fixed, static
from tinyhw.methods.indexing import Indexing, masked
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp, sint_prod
if TYPE_CHECKING: from tinyhw.tensor import Tensor

_MOST_COUNTED = 1024
_LEAST_DIGITS = 256            # elements of an axis from which sorting by digits may pay
_COUNTED_WORK = 1 << 22        # comparisons of a sort by counting, from which sorting by digits takes less time

_LEAST_SEARCHED = 256         # elements of which the first ones are searched in blocks
_LEAST_WRITTEN = 1 << 14      # elements of a mask, from which a loop finds the true ones faster than the host
_MOST_LOOPS = 64              # loops over parts of a mask
_SEARCH_GAIN = 64             # times as many elements as are selected, from which that pays
_MOST_BLOCK = 64              # elements of such a block

def ordered(u: UOp) -> UOp:
  """Return whole numbers that compare as floats do: both zeros are equal, and NaN is the largest. Other types stay as
  they are.

  Each element is compared with many others. Direct comparisons of floats with NaN would take a dozen operations each.
  """
  if not dtypes.is_float(u.dtype): return u
  x = graph.cast(u, dtypes.float32) if u.dtype.itemsize < 4 else u
  whole = dtypes.int32 if x.dtype.itemsize == 4 else dtypes.int64
  bits = graph.node(Ops.BITCAST, whole, (x,), None, x.shape)
  most = graph.like(bits, int(whole.max))
  negative, is_zero = graph.compare(Ops.CMPLT, bits, graph.like(bits, 0)), graph.compare(Ops.CMPEQ, x,
                                                                                         graph.like(x, 0.0))
  number = graph.where(negative, graph.binary(Ops.XOR, bits, most), bits)
  return graph.where(graph.compare(Ops.CMPNE, x, x), most, graph.where(is_zero, graph.like(bits, 0), number))

class Sorting(Indexing):
  """Methods that sort and select."""
  __slots__ = ()

  def sort(self, dim: int = -1, descending: bool = False) -> tuple[Tensor, Tensor]:
    """Return (sorted values, their indices in this tensor) along an axis. Equal values keep their order.

    >>> [t.tolist() for t in Tensor([3, 1, 2]).sort()]
    [[1, 2, 3], [1, 2, 0]]
    """
    dim = self._axis(dim)
    if not self.ndim: return self._own(), self.const_like(0, dtypes.int32)
    places = self.argsort(dim, descending)
    return self.gather(dim, places), places

  def argsort(self, dim: int = -1, descending: bool = False) -> Tensor:
    """Return the indices that sort an axis.

    >>> Tensor([3, 1, 2]).argsort().tolist()
    [1, 2, 0]
    """
    dim = self._axis(dim)
    if not self.ndim: return self.const_like(0, dtypes.int32)
    x = self._new(fixed(self.uop, "sort")).transpose(dim, -1)
    n = static(x.shape[-1], "sort")
    return self._new(x._sorting(n, flag("descending", descending))).transpose(dim, -1)

  def _sorting(self, n: int, descending: bool) -> UOp:
    """Return the indices that sort the last axis, of n elements."""
    from tinyhw.methods.graph import digits, places  # for large sorts only
    work = n * max(sint_prod(self.shape), 1)
    if n >= _LEAST_DIGITS and (n > _MOST_COUNTED or work > _COUNTED_WORK) and places.runs_in_order(self.uop):
      keys, bits = digits.sorting_keys(self.uop, descending)
      return digits.order_of(graph.contiguous(keys), bits, lambda u: self._new(u)._running(1, Ops.ADD, 0).uop)
    keys = ordered(self.uop)
    return _count_sort(keys, n, descending) if n <= _MOST_COUNTED else _bitonic_sort(keys, n, descending)

  def topk(self, k: int, dim: int = -1, largest: bool = True, sorted_: bool = True) -> tuple[Tensor, Tensor]:
    """Return (the k largest or smallest values, their indices) along an axis, in order.

    >>> [t.tolist() for t in Tensor([3, 1, 2]).topk(2)]
    [[3, 2], [0, 2]]
    """
    dim = self._axis(dim)
    n = static(self.shape[dim] if self.ndim else 1, "select from")
    k = whole("k", k)
    if not 0 <= k <= n:
      raise ArgumentError(f"cannot take the top {k} of axis {dim} of {graph.show(self.shape)}; k is from 0 to {n}")
    if not self.ndim: return self._own(), self.const_like(0, dtypes.int32)
    x = self._new(fixed(self.uop, "select from")).transpose(dim, -1)
    largest, keys = flag("largest", largest), ordered(x.uop)
    places = x._first(self._new(keys), k, largest).transpose(dim, -1)
    return self.gather(dim, places), places

  def _first(self, keys: Tensor, k: int, largest: bool) -> Tensor:
    """Return the indices of the first k elements of the last axis in their order, by whole numbers that sort as they
    do.

    Each of the k elements is in one of the k blocks whose first elements come first. So only these are sorted. Of
    blocks or elements that are equal, the earlier ones come first.
    """
    n = static(keys.shape[-1], "select from")
    size = _block_of(n, k)
    if size < 2: return self._new(graph.shrink_axis(keys._sorting(n, largest), keys.ndim - 1, 0, k))
    lead, blocks = keys.shape[:-1], -(-n // size)
    worst = int(keys.dtype.min if largest else keys.dtype.max)
    keys = keys.contiguous()
    wide = keys.pad([None] * len(lead) + [(0, blocks * size - n)], value=worst).reshape(*lead, blocks, size)
    best = wide.max(-1) if largest else wide.min(-1)
    chosen = self._first(best.contiguous(), k, largest).sort(-1)[0].cast(graph.place_type(n)).contiguous()
    inside = self._new(graph.iota(size, chosen.dtype, chosen.device))
    places = chosen.unsqueeze(-1).mul(size).add(inside).flatten(-2)
    real = places.lt(n)      # the last block may be padded
    found = real.where(keys.gather(-1, places.minimum(n - 1)), worst)
    return places.gather(-1, self._new(graph.shrink_axis(found._sorting(k * size, largest), len(lead), 0, k)))

  def one_hot(self, num_classes: int = -1) -> Tensor:
    """Add a last axis with 1 at the index that each integer names, else 0. -1: the number of classes is read back from
    the largest element.

    >>> Tensor([0, 2]).one_hot(3).tolist()
    [[1, 0, 0], [0, 0, 1]]
    """
    if not dtypes.is_int(self.dtype): raise DTypeError(f"one_hot wants integers, not {self.dtype}")
    num_classes = whole("num_classes", num_classes, -1)
    if num_classes == -1: num_classes = max(int(self.max().item()) + 1, 0)
    x = self._new(graph.counting(self.uop, num_classes))
    wide = x.unsqueeze(-1).expand(*x.shape, num_classes)
    return self._new(graph.cast(graph.compare(Ops.CMPEQ, wide.uop, graph.positions(wide.uop, x.ndim, x.dtype)),
                                dtypes.default_int))

  def nonzero(self, size: int | None = None, fill_value: int = 0) -> Tensor:
    """Return the indices of nonzero elements in order, one row for each. Without `size` their count is read back. With
    it, rows are cut or filled.

    fill_value: a whole number, as indices are. Raises ArgumentError for others.

    >>> Tensor([0, 5, 6]).nonzero().tolist()
    [[1], [2]]
    """
    fill_value = whole("fill_value", fill_value)
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
    """Return the elements where mask is true, as a vector. Without `size` their count is read back. With it, the vector
    is cut or filled.

    fill_value is cast to this type, as in `pad`.

    >>> Tensor([1, 2, 3]).masked_select(Tensor([True, False, True])).tolist()
    [1, 3]
    """
    chosen = masked(self.uop, self._operand("masked_select", mask).uop)
    x = self._new(graph.broadcast(self.uop, chosen.shape)).flatten()
    index = self._new(_true_places(graph.reshape(chosen, x.shape), size, self))
    picked = x.gather(0, index)
    if size is None or not (value := graph.check_number("fill", self.dtype, fill_value)): return picked
    return self._new(graph.where(index.lt(0).uop, graph.like(picked.uop, value), picked.uop))

def _block_of(n: int, k: int) -> int:
  """Return the size of blocks in which the first k of n elements are searched; 1 where all are sorted."""
  return min(_MOST_BLOCK, math.isqrt(n // max(k, 1))) if n >= _LEAST_SEARCHED and n >= _SEARCH_GAIN * k and k else 1

def _true_places(mask: UOp, size: int | None, like: Sorting) -> UOp:
  """Return the indices of the true elements of a vector: all of them, or `size`, filled with -1."""
  mask = fixed(mask, "select from")
  if size is not None: size = whole("a size", size, 0)
  if (size is not None or mask.shape[0] >= _LEAST_WRITTEN) and not isinstance(mask.device, tuple):
    from tinyhw.methods.graph.places import runs_in_order, written  # 0.3 ms to load, for long masks
    if runs_in_order(mask): return _written_places(mask, size, like, written)
  if size is None:
    truths = like._new(mask)._buffer().as_memoryview().cast("B")      # a byte each
    kind = graph.place_type(mask.shape[0])
    assert kind.fmt is not None, f"{kind} has a format"
    return like._tensor(array(kind.fmt, itertools.compress(itertools.count(), truths))).cast(kind).uop
  n = static(mask.shape[0], "select from")
  kind = graph.place_type(n, size)
  seen = like._new(graph.cast(mask, kind))._running(0, Ops.ADD, 0).contiguous().uop
  # The i-th true element is at the first index where the count exceeds i.
  wide = graph.expand(graph.reshape(seen, (1, n)), (size, n))
  before = graph.compare(Ops.CMPLT, graph.positions(wide, 0), wide)
  place = graph.fold(graph.cast(graph.binary(Ops.XOR, before, graph.like(before, True)), kind), Ops.ADD, (1,))
  return graph.where(graph.compare(Ops.CMPLT, place, graph.like(place, n)), place, graph.like(place, -1))

def _written_places(mask: UOp, size: int | None, like: Sorting, written: Callable[..., UOp]) -> UOp:
  """Return the same: each true element writes its index to the place that is the count of those before it."""
  n = static(mask.shape[0], "select from")
  kind = graph.place_type(n, size or 0)
  mask = graph.contiguous(mask)
  seen = graph.contiguous(like._new(graph.cast(mask, kind))._running(0, Ops.ADD, 0).uop) if n else mask
  if size is None:
    if not n: return graph.full((0,), kind, 0, mask.device)
    size = int(like._new(graph.shrink_axis(seen, 0, n - 1, n)).item())
  if not n or not size: return graph.full((size,), kind, -1, mask.device)
  rows = next((r for r in range(_MOST_LOOPS, 1, -1) if n % r == 0), 1)
  none = graph.like(seen, -1)
  to = graph.reshape(graph.where(mask, graph.add(seen, none), none), (rows, n // rows))
  own = graph.reshape(graph.iota(n, kind, mask.device), to.shape)
  return written(graph.full((size,), kind, -1, mask.device), to, own)

def _count_sort(u: UOp, n: int, descending: bool) -> UOp:
  """Return the indices that sort the last axis.

  The rank of an element is the number of elements before it. The index of rank r is where the rank is r.
  """
  *lead, _ = u.shape
  axis, kind = len(lead), graph.place_type(n)
  wide = (*lead, n, n)
  mine = graph.expand(graph.reshape(u, (*lead, n, 1)), wide)
  other = graph.expand(graph.reshape(u, (*lead, 1, n)), wide)
  before = graph.compare(Ops.CMPLT, mine, other) if descending else graph.compare(Ops.CMPLT, other, mine)
  earlier = graph.compare(Ops.CMPLT, graph.positions(before, axis + 1), graph.positions(before, axis))
  tie = graph.binary(Ops.AND, graph.compare(Ops.CMPEQ, mine, other), earlier)
  rank = graph.fold(graph.cast(graph.binary(Ops.OR, before, tie), kind), Ops.ADD, (axis + 1,))
  ranks = graph.expand(graph.reshape(graph.contiguous(rank), (*lead, 1, n)), wide)
  here = graph.compare(Ops.CMPEQ, ranks, graph.positions(ranks, axis, kind))
  return graph.fold(graph.where(here, graph.positions(here, axis + 1, kind), graph.full(wide, kind, 0)), Ops.ADD,
                    (axis + 1,))

def _bitonic_sort(u: UOp, n: int, descending: bool) -> UOp:
  """Return the indices that sort the last axis, by Batcher's bitonic network over (value, index) pairs. Indices break
  ties, so the sort is stable."""
  *lead, _ = u.shape
  stages = (n - 1).bit_length()
  whole, axis = 1 << stages, len(lead)
  values = graph.pad_axis(u, axis, 0, whole - n)
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
      values, places = (_swapped(swap, low, high, axis + 1, (*lead, whole))
                        for low, high in ((low_v, high_v), (low_p, high_p)))
  return graph.shrink_axis(places, axis, 0, n)

def _out_of_order(v: UOp, p: UOp, w: UOp, q: UOp, n: int, descending: bool) -> UOp:
  """Does the pair (w, q) go before (v, p)? Padding (indices from n on) goes last."""
  before = graph.compare(Ops.CMPLT, v, w) if descending else graph.compare(Ops.CMPLT, w, v)
  before = graph.binary(Ops.OR, before,
                        graph.binary(Ops.AND, graph.compare(Ops.CMPEQ, v, w), graph.compare(Ops.CMPLT, q, p)))
  p_real, q_real = (graph.compare(Ops.CMPLT, u, graph.like(u, n)) for u in (p, q))
  both = graph.binary(Ops.AND, p_real, q_real)
  return graph.where(both, before,
                     graph.binary(Ops.AND, q_real, graph.binary(Ops.XOR, p_real, graph.like(p_real, True))))

def _swapped(swap: UOp, low: UOp, high: UOp, axis: int, shape: tuple[object, ...]) -> UOp:
  """Exchange two halves where swap is true. Return them joined and stored."""
  first, second = graph.where(swap, high, low), graph.where(swap, low, high)
  joined = graph.add(graph.pad_axis(first, axis, 0, 1), graph.pad_axis(second, axis, 1, 0))
  return graph.contiguous(graph.reshape(joined, shape))  # type: ignore[arg-type]  # sizes
