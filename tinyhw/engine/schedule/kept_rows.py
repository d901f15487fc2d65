"""Find products whose operand is a product's rows after a softmax: attention. One kernel computes both products.

    scores[i, j] = sum of q[i, d] * k[j, d]      the inner product
    weights[i, j] = softmax of a row of scores   functions, masks, and reductions along a row
    out[i, e] = sum of weights[i, j] * v[j, e]   the outer product

Two kernels would write all scores to memory, and read them again. One kernel keeps the scores of a few rows in a
worker's scratch memory, which stays in a cache. `Fusion` puts each value that a row needs several times into a STAGE
over the row. A loop of its own computes each element once.

The conditions are that no other kernel needs these values, that their elements are floats, and that FEWEST_ROWS rows
fit into scratch memory.
"""
from __future__ import annotations
from collections.abc import Callable

from tinyhw.device import Device
from tinyhw.dtype import dtypes
from tinyhw.engine.schedule.indexing import GatedIndex
from tinyhw.named_tuple import NamedTuple
from tinyhw.uop.enums import AxisType, GroupOp, Ops
from tinyhw.uop.ops import UOp

MOST_NODES = 64       # between the two products: more than a softmax with a mask, a bias and a dropout has
MOST_TERMS = 256      # of the inner product: with more, its operands are read again for each few rows from far caches
FEWEST_ROWS = 16      # that share the operands of the products
OF_ROWS = frozenset({AxisType.REDUCE, AxisType.STAGE})   # loops along a row

class RowFill(NamedTuple):
  """How a row's values get into scratch memory.

  kernel: the one that needs them. axis: along the row. range: of the loop that fills it. gated: the index at which this
  loop computes the values.
  """
  kernel: UOp
  axis: int
  range: UOp
  gated: GatedIndex

class KeptRows(NamedTuple):
  """The rows between two products.

  values: the nodes to keep, in the order of the graph. reductions: those of one kernel, from the outer product to the
  inner one.
  """
  values: tuple[UOp, ...]
  reductions: tuple[UOp, ...]

  @property
  def inner(self) -> UOp: return self.reductions[-1]

  def fill(self, u: UOp, indices: list[tuple[UOp, GatedIndex]], level: int) -> RowFill | None:
    """Return how to keep the values of a node that are wanted at these indices.

    None if the indices differ in more than the position along one row, or belong to several kernels.
    """
    kernel, gated = indices[0]
    axes = [k for k, i in enumerate(gated.index) if i.op is Ops.RANGE and i.arg[1] in OF_ROWS]
    if len(axes) != 1 or gated.valid is not None: return None
    axis, n = axes[0], u.shape[axes[0]]
    if not isinstance(n, int) or any(r.arg[1] in OF_ROWS for k, i in enumerate(gated.index) if k != axis
                                     for r in i.ranges):
      return None
    def others(index: tuple[UOp, ...]) -> tuple[UOp, ...]: return index[:axis] + index[axis + 1:]
    for other, wanted in indices:
      i = wanted.index[axis]
      if other is not kernel or wanted.valid is not None or others(wanted.index) != others(gated.index): return None
      if i.op is not Ops.RANGE or i.arg[1] not in OF_ROWS or i.src[0].vmax != n: return None
    fill = UOp.range(n, (1000 - level) * 1000 + 500, AxisType.STAGE)
    return RowFill(kernel, axis, fill, GatedIndex((*gated.index[:axis], fill, *gated.index[axis + 1:])))

def rows_to_keep(product: UOp, users: dict[UOp, list[UOp]], is_product: Callable[[UOp], bool]) -> KeptRows | None:
  """Return the rows of an operand of a product that its kernel may keep in scratch memory.

  users: of each node. is_product: whether a reduction is a product for a tile.
  """
  if product.arg[0] is not Ops.ADD or len(product.arg[1]) != 1: return None
  factors = product.src[0]
  while factors.op in GroupOp.Movement: factors = factors.src[0]
  if factors.op is not Ops.MUL: return None
  for factor in factors.src:
    found = _rows_of(factor, product, users, is_product)
    if found is not None: return found
  return None

def _rows_of(factor: UOp, product: UOp, users: dict[UOp, list[UOp]], is_product: Callable[[UOp], bool]
             ) -> KeptRows | None:
  last = factor
  while last.op in GroupOp.Movement and len(users[last]) == 1: last = last.src[0]
  if last.op not in GroupOp.Elementwise or len(users[last]) != 1: return None
  between = _between(last, is_product)
  reductions = [u for u in reversed(between) if u.op is Ops.REDUCE_AXIS]
  if len(reductions) < 2 or [u for u in reductions if is_product(u)] != reductions[-1:]: return None
  inner = reductions[-1]
  if inner.src[0].size > MOST_TERMS * inner.size or inner.size != last.size: return None
  if any(user not in between for u in between if u is not last for user in users[u]): return None
  values = tuple([u for u in between if u.size == last.size and (u is last or len(users[u]) > 1)])
  row, rows = _row(last)
  bytes = row * FEWEST_ROWS * max(u.dtype.itemsize for u in values)
  if rows < FEWEST_ROWS or bytes > row_bytes(last.device): return None
  return KeptRows(values, (product, *reductions)) if all(dtypes.is_float(u.dtype) for u in values) else None

def _row(last: UOp) -> tuple[int, int]:
  """Return the elements of a row, and the number of rows; nothing for symbolic sizes."""
  shape = [n for n in last.shape if not (isinstance(n, int) and n == 1)]
  if len(shape) < 2 or not isinstance(shape[-1], int) or not isinstance(shape[-2], int): return 0, 0
  return shape[-1], shape[-2]

def _between(last: UOp, is_product: Callable[[UOp], bool]) -> dict[UOp, None]:
  """Return the nodes that depend on an inner product and that `last` depends on, sources first; nothing for many."""
  def opens(u: UOp) -> bool:
    if u.op is Ops.REDUCE_AXIS: return not is_product(u)
    return u.op in GroupOp.Elementwise or u.op in GroupOp.Movement or u.op is Ops.DETACH
  below: dict[UOp, None] = {}
  stack = [last]
  while stack:
    u = stack.pop()
    if u in below: continue
    below[u] = None
    if len(below) > MOST_NODES: return {}
    if opens(u): stack += u.src
  found: dict[UOp, None] = {}
  for u in last.toposort(opens):
    if u.op is Ops.REDUCE_AXIS and is_product(u) or opens(u) and any(s in found for s in u.src): found[u] = None
  return found

def row_bytes(device: str | tuple[str, ...] | None) -> int:
  """Return the bytes of scratch memory in which a worker of a device may keep rows; 0 for lanes of a workgroup."""
  name = device if isinstance(device, str) or device is None else device[0]
  return Device[name or Device.DEFAULT].row_bytes
