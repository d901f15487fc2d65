"""Find products whose operand is a product's rows after a softmax: attention. One kernel computes both products.

    scores[i, j] = sum of q[i, d] * k[j, d]      the inner product
    weights[i, j] = softmax of a row of scores   functions, masks, and reductions along a row
    out[i, e] = sum of weights[i, j] * v[j, e]   the outer product

Two kernels would write all scores to memory, and read them again. One kernel keeps the scores of a few rows in a
worker's scratch memory, which stays in a cache. `Fusion` puts each value that a row needs several times into a STAGE
over the row. A loop of its own computes each element once.

The conditions are that no other kernel needs these values, that their elements are floats, and that FEWEST_ROWS rows
fit into scratch memory.

Lanes of a workgroup keep no rows. Their kernel computes a softmax while it goes along a row (codegen/attention). So
there what is between the products must be a softmax, and the operands must have a type of the matrix unit.
"""
from __future__ import annotations
import math
from collections.abc import Callable

from tinyhw.device import opened
from tinyhw.dtype import DType, dtypes
from tinyhw.engine.schedule.indexing import GatedIndex
from tinyhw.named_tuple import NamedTuple
from tinyhw.uop.enums import AxisType, GroupOp, Ops
from tinyhw.uop.ops import UOp

MOST_NODES = 64       # between the two products: more than a softmax with a mask, a bias and a dropout has
MOST_TERMS = 256      # of the inner product: with more, its operands are read again for each few rows from far caches
MOST_ONLINE = 128     # terms of the inner product, and columns of the outer one, in registers of lanes
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
  inner one. once: computed nodes of the inner product's first operand, if the kernel reads each of its elements once.
  """
  values: tuple[UOp, ...]
  reductions: tuple[UOp, ...]
  once: tuple[UOp, ...] = ()

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
  if rows < FEWEST_ROWS or not all(dtypes.is_float(u.dtype) for u in values): return None
  bytes = row * FEWEST_ROWS * max(u.dtype.itemsize for u in values)
  kept = KeptRows(values, (product, *reductions))
  if bytes <= row_bytes(last.device): return kept
  return kept._replace(once=_read_once(kept.inner, users)) if _is_online(kept, last) else None

def _read_once(inner: UOp, users: dict[UOp, list[UOp]]) -> tuple[UOp, ...]:
  """Return the computed nodes of the operand whose rows stay in registers: it is the same at all positions of a row."""
  position = next((k for k in reversed(range(len(inner.shape))) if inner.shape[k] != 1), 0)
  for factor in _factors(inner):
    found, u, is_row = [], factor, False
    while len(users[u]) == 1 and u.src:
      is_row = is_row or u.op is Ops.EXPAND and u.src[0].shape[position] == 1 != u.shape[position]
      if u.op in GroupOp.Elementwise: found.append(u)
      elif u.op not in GroupOp.Movement: break
      open_sources = [s for s in u.src if _still(s).op is not Ops.CONST]
      if len(open_sources) != 1: break
      u = open_sources[0]
    if is_row: return tuple(found)
  return ()

def _is_online(rows: KeptRows, last: UOp) -> bool:
  """May lanes of a workgroup compute these rows with an online softmax?"""
  types = opened(last.device).attention_types
  if not types or len(rows.reductions) != 4: return False
  product, inner = rows.reductions[0], rows.inner
  if max(inner.src[0].size // inner.size, product.size * _row(last)[0] // last.size) > MOST_ONLINE: return False
  operands = [_narrow(x) for r in (product, inner) for x in _factors(r)]
  if len({*operands}) != 1 or operands[0] not in types: return False
  return _is_softmax(last, rows)

def _factors(product: UOp) -> tuple[UOp, ...]:
  """Return the factors of a product; nothing for another reduction."""
  u = product.src[0]
  while u.op in GroupOp.Movement: u = u.src[0]
  return u.src if u.op is Ops.MUL and u.dtype is dtypes.float32 else ()

def _narrow(u: UOp) -> DType:
  """Return the type from which a factor of a product was widened."""
  while u.op in GroupOp.Movement: u = u.src[0]
  return u.src[0].dtype if u.op is Ops.CAST else u.dtype

def _is_softmax(last: UOp, rows: KeptRows) -> bool:
  """Are the weights the powers of differences to a row's largest score, times factors?

  A factor is a function of positions and inputs, or one of the row, such as 1 / the sum of its powers.
  """
  total, largest = rows.reductions[1:3]
  if largest.arg[0] is not Ops.MAX or total.arg[0] is not Ops.ADD: return False
  power = _still(total.src[0])
  if power.op not in (Ops.EXP, Ops.EXP2) or power.src[0].op is not Ops.SUB: return False
  score, subtracted = map(_still, power.src[0].src)
  if _unguarded(subtracted) is not largest or score is not _still(largest.src[0]): return False
  return _is_multiple(last, power, total)

def _unguarded(u: UOp) -> UOp:
  """Return x of `0 if x == -inf else x`, which keeps a row that sees nothing from becoming NaN; else the value."""
  if u.op is not Ops.WHERE: return u
  test, zero, x = map(_still, u.src)
  if test.op is not Ops.CMPEQ or zero.op is not Ops.CONST or zero.arg != 0: return u
  a, b = map(_still, test.src)
  return x if a is x and b.op is Ops.CONST and b.arg == -math.inf else u

def _still(u: UOp) -> UOp:
  while u.op in GroupOp.Movement: u = u.src[0]
  return u

def _is_multiple(u: UOp, power: UOp, total: UOp) -> bool:
  """Is a weight the power, times factors?"""
  u = _still(u)
  if u is power: return True
  if u.op is Ops.CAST: return dtypes.is_float(u.dtype) and _is_multiple(u.src[0], power, total)
  if u.op is Ops.WHERE:
    chosen = [s for s in u.src[1:] if not (_still(s).op is Ops.CONST and _still(s).arg == 0)]
    return len(chosen) == 1 and not _needs(u.src[0], power) and _is_multiple(chosen[0], power, total)
  if u.op is Ops.FDIV: return _is_of_row(u.src[1], total, power) and _is_multiple(u.src[0], power, total)
  if u.op is not Ops.MUL: return False
  for x, y in (u.src, u.src[::-1]):
    if (_is_of_row(y, total, power) or not _needs(y, power)) and _is_multiple(x, power, total): return True
  return False

def _is_of_row(u: UOp, total: UOp, power: UOp) -> bool:
  """Does a factor depend on the powers through their sum alone?"""
  u = _still(u)
  if u is total: return True
  return u.op in GroupOp.Elementwise and _needs(u, power) and all(_is_of_row(s, total, power) or not _needs(s, power)
                                                                  for s in u.src)

def _needs(u: UOp, power: UOp) -> bool: return power in u.toposort()

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
  return opened(device).row_bytes
