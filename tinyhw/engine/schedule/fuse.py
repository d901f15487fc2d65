"""Decide which nodes of a tensor graph get a buffer, and where every other node is computed.

Two sweeps over the graph are needed, each linear. The first goes from the results to the leaves and carries gated
indices (indexing.py): the kernel, and the index expressions, for which a node's value is wanted. A node that is wanted
at one index is computed there, inside the kernel of its consumer. Other nodes get a buffer, and so a kernel, by these
rules:

- A reduction may run in its consumer's kernel, together with the chain of elementwise nodes that alone consume it (its
  *epilogue*). Three conditions hold: it is wanted at one index, the ranges of that index are outer loops of the kernel,
  and they visit each element once. Example: softmax's row maximum and sum.
- A large product is the only reduction of its kernel, since matrix units and register tiles serve one product. In a sum
  of products each adds its result to the sum so far, so that no more than two partial sums exist.
- An elementwise node is computed again in each kernel that wants it, with three exceptions. It would run several times
  per element (an operand of a matmul), it is wanted at many indices, or reading its operands costs more than writing it
  once. So each node has a bounded number of indices.
- A gather counts as an elementwise node. The gathered images that a convolution reads are gathered once: none of these
  reads is a vector load, and their addresses take divisions.
- A cast to a type that contains all numbers of a narrower one is no reason for a buffer. Its operand has a buffer, or
  is computed again.

The second sweep (lower.py) builds the kernels' expressions from the gated indices. No heuristic here changes results,
only speed.
"""
from __future__ import annotations

from typing import TYPE_CHECKING

from tinyhw.dtype import can_lossless_cast, dtypes
from tinyhw.engine.schedule.indexing import ZERO, GatedIndex, both, move, reshape_index
from tinyhw.uop.enums import AxisType, GroupOp, Ops
from tinyhw.uop.ops import UOp, sint

if TYPE_CHECKING: from tinyhw.engine.schedule.kept_rows import KeptRows, RowFill

REALIZED = frozenset({Ops.CONTIGUOUS, Ops.COPY, Ops.ASSIGN, Ops.SCATTER})   # always get a buffer
LEAVES = frozenset({Ops.BUFFER, Ops.CONST, Ops.IOTA, Ops.DEVICE, Ops.DEFINE_VAR})
_PASSES = GroupOp.Elementwise | {Ops.RESHAPE, Ops.PERMUTE, Ops.DETACH, Ops.CONTIGUOUS_BACKWARD}
_FREE = GroupOp.Movement | {Ops.CAST, Ops.BITCAST, Ops.DETACH, Ops.CONTIGUOUS_BACKWARD, Ops.AFTER}

_BITS = frozenset({Ops.AND, Ops.OR, Ops.XOR, Ops.SHL, Ops.SHR, Ops.BITCAST})
_VALUE_SOURCE = {Ops.ASSIGN: 1, Ops.CONTIGUOUS: 0}

RECOMPUTE_LIMIT = 4              # evaluations per element above which an elementwise node gets a buffer
# Number of indices above which an elementwise node gets a buffer, whatever it costs to compute.
INDICES_LIMIT = 8
ROW_BYTES_LIMIT = 512 * 1024     # a row that is reduced and then read again should still be in the cache
# Terms of a reduction from which it has a kernel of its own if its consumer reads none of its operands again.
REREAD_WORK = 1 << 18
MOST_SEARCHED = 64               # nodes that are searched for such an operand
MIN_ROWS = 8                     # fewer outer iterations than this cannot feed the workers
# A reduction that uses each element more often (a matmul) has a tile of its own.
REUSE_LIMIT = 4
# Terms of an element from which a product is worth a tile: fewer are read as fast as they are multiplied.
PRODUCT_TERMS = 16
# Terms of all elements from which the tile gains more than another kernel costs.
PRODUCT_WORK = 1 << 18
# Buffers that several kernels read for a node, from which one buffer for all of them always means fewer bytes.
ENOUGH_READS = 4
BLOCK_TERMS = 256                # terms of a block in a sum of sums
MOST_BITS = 64                   # nodes of a code that is taken apart wherever it is used
SMALL_WORK = 8192                # below this many elements one kernel is cheaper than two

def size_of(sizes: tuple[sint, ...]) -> int:
  """Return the number of elements, with symbolic sizes at their maximum."""
  n = 1
  for d in sizes: n *= d if isinstance(d, int) else int(d.vmax)
  return n

def simplest(n: sint) -> sint:
  """Simplify the end of a range fully, so that later simplification does not change it: a range must stay one node.

  A size of bound Variables has another order of terms.
  """
  return n if isinstance(n, int) else n.simplify()

def range_size(r: UOp) -> int: return int(r.src[0].vmax)

def operands(u: UOp) -> tuple[UOp, ...]:
  """Return the sources from which u's value is computed. For an AFTER it is the first: the others only give the
  order."""
  return u.src[:1] if u.op is Ops.AFTER else u.src

def _value(u: UOp) -> UOp: return u.src[_VALUE_SOURCE[u.op]] if u.op in _VALUE_SOURCE else u

def index_ranges(gated: GatedIndex) -> frozenset[UOp]: return frozenset(r for i in gated.index for r in i.ranges)

class Fusion:
  """The result of the first sweep.

  at[u]: the gated indices at which u's value is computed, by kernel. realized: nodes with a buffer, and so a kernel.
  reads[u]: gated indices at which a realized node's buffer is read. moved[u, gated index]: the gated index in u's
  source. gathers: the meaning of the placeholders of gathered indices. apart: products that are not in one kernel with
  the rows of an operand. refused: those that were to be, whose rows are wanted at other indices than those of a row.
  """
  def __init__(self, roots: list[UOp], forced: frozenset[UOp] = frozenset(), closed: bool = False,
               apart: frozenset[UOp] = frozenset()):
    self.roots, self.forced, self.apart = frozenset(roots), forced, apart
    self.refused: set[UOp] = set()
    self.kept: dict[UOp, KeptRows] = {}                      # value or reduction -> the rows that it belongs to
    self.once: set[UOp] = set()                              # computed once for each row, in registers
    self.filled: dict[UOp, RowFill] = {}                     # value of a row in scratch memory -> how it gets there
    self.closed = closed                                     # only roots and forced nodes get a buffer
    self.nodes = [u for u in UOp.sink(*roots).toposort() if u.op is not Ops.SINK]
    self.at: dict[UOp, dict[tuple[UOp, GatedIndex], None]] = {}
    self.realized: dict[UOp, tuple[UOp, ...]] = {}           # node -> the ranges of its kernel
    # The gated index in a realized node that its kernel's ranges visit.
    self.own: dict[UOp, GatedIndex] = {}
    # Of a SCATTER: the ranges and the index of the kernel that fills its places first.
    self.filling: dict[UOp, tuple[tuple[UOp, ...], GatedIndex]] = {}
    self.moved: dict[tuple[UOp, GatedIndex], GatedIndex] = {}
    # By the argument of a placeholder: the index node, and the gated index at which its value is wanted.
    self.gathers: list[tuple[UOp, GatedIndex]] = []
    self.reduce_ranges: dict[UOp, tuple[UOp, ...]] = {}
    # Kernel -> ranges of the reductions that run only under its outer loops.
    self.rows: dict[UOp, list[frozenset[UOp]]] = {}
    self.folds: dict[tuple[UOp, UOp], int] = {}  # (kernel, reduce range) -> number of runs of the loop over it
    self.inside: dict[UOp, list[UOp]] = {}                   # kernel -> the reductions in it
    self._analyse()
    self._sweep()

  # ***** facts that do not depend on indices *****

  def _analyse(self) -> None:
    """Find users of each node, depth of nested reductions, constants, and the end of each reduction's epilogue."""
    self.users: dict[UOp, list[UOp]] = {u: [] for u in self.nodes}
    self.level: dict[UOp, int] = {}
    self.constant: set[UOp] = set()
    for u in self.nodes:
      for s in dict.fromkeys(operands(u)): self.users[s].append(u)
      self.level[u] = max((self.level[s] for s in operands(u)), default=0) + (u.op is Ops.REDUCE_AXIS)
      if u.op is Ops.CONST or (u.op in GroupOp.Movement and u.op is not Ops.PAD and u.src[0] in self.constant):
        self.constant.add(u)
    # Buffers seen through movement and casts: computing them again costs nothing.
    self.trivial: set[UOp] = set(self.constant)
    for u in self.nodes:
      if u.op in LEAVES or (u.op in _FREE and u.src[0] in self.trivial): self.trivial.add(u)
      elif (u.op is Ops.MUL and any(s in self.constant and s.base.arg == 1 for s in u.src)
            and all(s in self.trivial for s in u.src)):
        self.trivial.add(u)                                  # gradients begin with 1
    self.extent = extents(self.nodes)
    self._find_rows()
    self._find_products()
    self.epilogue: dict[UOp, list[UOp]] = {}                 # the end of a chain -> reductions that it carries
    self.chain: dict[UOp, UOp] = {}                          # node of a chain -> its reduction, the first of several
    self.chain_end: dict[UOp, UOp] = {}                      # reduction -> the end of its chain
    self.codes: set[UOp] = set()      # operations on bits for products of bytes: they are done with four bytes at once
    for r in self.nodes:
      if r.op is not Ops.REDUCE_AXIS: continue
      self._follow_epilogue(r)
      for byte in multiplied_bytes(r.src[0]):
        bits = byte.toposort(lambda v: v.op in _BITS or v.op in GroupOp.Movement)
        if len(bits) <= MOST_BITS: self.codes.update(v for v in bits if v.op in _BITS)

  def _find_rows(self) -> None:
    """Find the products whose operands are rows that their kernel keeps (kept_rows.py)."""
    products = [u for u in self.nodes if u.op is Ops.REDUCE_AXIS and is_large_product(u, self.extent)]
    if len(products) < 2: return
    from tinyhw.engine.schedule.kept_rows import rows_to_keep  # 0.3 ms to load, for graphs with several products
    known, needed = frozenset(products), self.roots | self.forced
    for product in products:
      if product in self.apart: continue
      rows = rows_to_keep(product, self.users, known.__contains__)
      if rows is not None and needed.isdisjoint((*rows.values, *rows.reductions[1:])):
        self.kept.update(dict.fromkeys((*rows.values, *rows.reductions), rows))
        self.once.update(rows.once)

  def _follow_epilogue(self, r: UOp) -> None:
    """Find the end of r's epilogue. If it meets the epilogue of an earlier reduction, it ends where that one does.

    Where products meet, the last one has the epilogue. So in a sum of many, each adds its result to the sum so far.
    """
    end, u = r, r
    self.chain.setdefault(r, r)
    while self.users[u] and self._goes_on(u, user := self.users[u][0]):
      other = self.chain.get(user)
      if other is not None:
        if not self._crowd([r, other]): end = self.chain_end[other]
        break
      if self.last_product.get(user) not in (None, r): break
      u = user
      self.chain[u] = r
      if u.op not in GroupOp.Movement and not self._widens(u): end = u
    self.chain_end[r] = end
    self.epilogue.setdefault(end, []).append(r)

  def _find_products(self) -> None:
    """Find, for each node on the way of a large product's epilogue, the last product that reaches it."""
    self.last_product: dict[UOp, UOp] = {}
    for u in self.nodes:
      if u.op is Ops.REDUCE_AXIS and is_large_product(u, self.extent): self.last_product[u] = u
      elif u.op in _PASSES:
        for s in u.src:
          if s in self.last_product and self._goes_on(s, u): self.last_product[u] = self.last_product[s]

  def _goes_on(self, u: UOp, user: UOp) -> bool:
    """May the kernel that computes u compute its user, too?"""
    return (len(self.users[u]) == 1 and u not in self.roots and u not in self.forced and user.op in _PASSES
            and user.size == u.size)

  def _widens(self, u: UOp) -> bool:
    """Does a node only widen the type of its operand, and may the operand have a buffer instead?

    That takes fewer bytes, and products of 16-bit floats stay such.
    """
    if (u.op is not Ops.CAST or u.dtype.itemsize <= u.src[0].dtype.itemsize
        or not can_lossless_cast(u.src[0].dtype, u.dtype)):
      return False
    source = u.src[0]
    while source.op in GroupOp.Movement: source = source.src[0]
    return source in self.chain or source.op in GroupOp.Elementwise or source.op in REALIZED

  # ***** the sweep *****

  def _sweep(self) -> None:
    for u in reversed(self.nodes):
      indices = self.at.get(u, {})
      if u.op is Ops.DEVICE: continue
      rows = self.kept.get(u)
      if rows is not None and u in rows.values and self._keeps(u, rows, indices): continue
      if u in self.roots or u in self.forced or not self.closed and self._wants_buffer(u, indices):
        if u.op is Ops.SCATTER: ranges, gated = own_index(u.src[2], u.src[2].shape, len(u.src[1].shape) - 1)
        else: ranges, gated = own_index(u, self.loop_shape(u))
        self.realized[u], self.own[u] = ranges, gated
        self.inside[u] = list(self.epilogue.get(_value(u), ()))
        self._push(u, u, gated)
      else:
        for kernel, gated in list(indices): self._push(u, kernel, gated)

  def _add(self, u: UOp, kernel: UOp, gated: GatedIndex) -> None:
    if u not in self.constant: self.at.setdefault(u, {})[kernel, gated] = None

  def _push(self, u: UOp, kernel: UOp, gated: GatedIndex) -> None:
    """Tell u's sources the indices at which their values are wanted."""
    op = u.op
    if op in GroupOp.Elementwise:
      for s in u.src: self._add(s, kernel, gated)
    elif op in GroupOp.Movement or op in (Ops.REDUCE_AXIS, Ops.GATHER):
      moved = self.moved.get((u, gated))
      if moved is None: moved = self.moved[u, gated] = self._move(u, gated)
      self._add(u.src[0], kernel, moved)
      if op is Ops.GATHER: self._add(u.src[1], kernel, gated)
      if op is Ops.REDUCE_AXIS:
        runs = self.evaluations(kernel, gated)
        for r in self.reduce_ranges[u]: self.folds[kernel, r] = max(self.folds.get((kernel, r), 0), runs)
    elif op is Ops.ASSIGN: self._add(u.src[1], kernel, gated)
    elif op is Ops.SCATTER:
      self._add(u.src[1], kernel, row_of(u, gated))
      self._add(u.src[2], kernel, gated)
      if u.arg[1] == "whole": return
      self.filling[u] = own_index(u.src[0], u.src[0].shape)
      self._add(u.src[0], kernel, self.filling[u][1])
    elif op not in LEAVES and op is not Ops.COPY: self._add(u.src[0], kernel, gated)

  def _move(self, u: UOp, gated: GatedIndex) -> GatedIndex:
    if u.op is Ops.REDUCE_AXIS:
      if u not in self.reduce_ranges:
        self.reduce_ranges[u] = tuple(
          ZERO if u.src[0].shape[axis] == 1 else UOp.range(simplest(u.src[0].shape[axis]),
                                                           (1000 - self.level[u]) * 1000 + k, AxisType.REDUCE)
          for k, axis in enumerate(sorted(u.arg[1])))
      axes = dict(zip(sorted(u.arg[1]), self.reduce_ranges[u]))
      return GatedIndex(tuple(axes.get(k, i) for k, i in enumerate(gated.index)), gated.valid)
    if u.op is Ops.GATHER:
      axis = u.arg
      there = UOp(Ops.GATHER, dtypes.weakint, gated.index + (() if gated.valid is None else (gated.valid,)),
                  len(self.gathers))
      self.gathers.append((u.src[1], gated))
      inside = (there >= 0) & (there < u.src[0].shape[axis])
      return GatedIndex(gated.index[:axis] + (there,) + gated.index[axis + 1:], both(gated.valid, inside))
    return move(u, gated)

  # ***** decisions *****

  def loop_shape(self, u: UOp) -> tuple[sint, ...]:
    """Return the shape whose axes become the loops of u's kernel. It is that of the reduction in it, so that reshapes
    of its result cost no division."""
    v = _value(u)
    r = self.chain.get(v)
    if r is None or v in self.realized: return u.shape
    while v is not r:
      if v.op is Ops.PERMUTE: return u.shape
      v = next(s for s in v.src if self.chain.get(s) is r)
    return r.shape if r.size == u.size else u.shape

  def _wants_buffer(self, u: UOp, indices: dict[tuple[UOp, GatedIndex], None]) -> bool:
    if u.op in REALIZED: return True
    if u in self.trivial or u in self.once or not indices: return False
    if u in self.epilogue:
      if len(indices) > 1: return True
      if any(r in self.kept and r is self.kept[r].inner for r in self.epilogue[u]): return False   # it fills a row
      ((kernel, gated),) = indices
      return not self._inlines(u, kernel, gated)
    if u in self.chain or u.op in GroupOp.Movement or self._widens(u): return False
    if len(indices) > INDICES_LIMIT: return True
    if u in self.codes: return False
    runs: dict[UOp, int] = {}
    for kernel, gated in indices:
      n = self.evaluations(kernel, gated)
      if n >= RECOMPUTE_LIMIT * u.size: return True
      runs[kernel] = runs.get(kernel, 0) + n
    return any(n > 2 * RECOMPUTE_LIMIT * u.size for n in runs.values())

  def evaluations(self, kernel: UOp, gated: GatedIndex) -> int:
    """Return how often a value at an index is computed: once per point of its ranges, and again in each run of an
    enclosing reduction loop."""
    ranges = index_ranges(gated)
    inner = [r for r in ranges if r.arg[1] is AxisType.REDUCE]
    if not inner: return prod_sizes(ranges)
    runs = max(self.folds.get((kernel, r), 1) for r in inner)
    return runs * prod_sizes(frozenset(r for r in inner if self.folds.get((kernel, r), 1) == runs))

  def _inlines(self, u: UOp, kernel: UOp, gated: GatedIndex) -> bool:
    """Try to put the reductions whose epilogue ends in u into the consumer's kernel; return whether they may run there.

    The rules are in the head of this file.
    """
    if kernel not in self.realized or kernel.op in (Ops.COPY, Ops.SCATTER): return False
    ranges, outer, inside = index_ranges(gated), self.realized[kernel], self.inside[kernel]
    # The kernel of a CONTIGUOUS has its own reduction from the start.
    together = list(dict.fromkeys(inside + self.epilogue[u]))
    if not self._is_block_sum(u, kernel, gated, outer):
      if not ranges <= frozenset(outer) or prod_sizes(ranges) > u.size or self._crowd(together): return False
      if len(ranges) != len(outer) and not self._nests(u, kernel, gated): return False
    self.inside[kernel] = together
    return True

  def _is_block_sum(self, u: UOp, kernel: UOp, gated: GatedIndex, outer: tuple[UOp, ...]) -> bool:
    """Do the reductions whose epilogue ends in u sum short blocks of products of bytes, which the kernel then sums?

    This is a product with quantized weights, with a scale for each block. Each block is needed once. Writing and
    reading a buffer for the sums would take a good part of the bytes of the weights.
    """
    if gated.valid is not None or kernel.size < MIN_ROWS or self.evaluations(kernel, gated) > u.size: return False
    return frozenset(outer) < index_ranges(gated) and all(
      r.src[0].size <= BLOCK_TERMS * r.size and multiplied_bytes(r.src[0]) for r in self.epilogue[u])

  def _keeps(self, u: UOp, rows: KeptRows, indices: dict[tuple[UOp, GatedIndex], None]) -> bool:
    """Try to keep a row's values in the scratch memory of the one kernel that needs them, in a loop of their own.

    All indices must be the same but for one axis, along which each is a loop over the whole row. Otherwise the product
    is refused, and the graph is fused again without its rows: other values of the row may be in scratch memory by then.
    """
    fill = rows.fill(u, list(indices), self.level[u])
    if fill is None or fill.kernel not in self.realized:
      self.refused.add(rows.reductions[0])
      return False
    self.filled[u] = fill
    self._push(u, fill.kernel, fill.gated)
    return True

  def _crowd(self, reductions: list[UOp]) -> bool:
    """Does one of several reductions need a kernel of its own? Those of one attention count as one."""
    if len(reductions) < 2 or not any([is_large_product(r, self.extent) for r in reductions]): return False
    return len({self.kept[r].reductions[0] if r in self.kept else r for r in reductions}) > 1

  def _nests(self, u: UOp, kernel: UOp, gated: GatedIndex) -> bool:
    """Try to put the reductions whose epilogue ends in u under some of kernel's outer loops; return whether they may
    run there.

    They run once for all iterations of the other outer loops.
    """
    ranges = index_ranges(gated)
    if gated.valid is not None or any(terms_per_element(r, self.extent) > REUSE_LIMIT for r in self.epilogue[u]):
      return False
    rows, row = prod_sizes(ranges), max(r.src[0].size // max(r.size, 1) for r in self.epilogue[u])
    small = rows * row + kernel.size <= SMALL_WORK
    if not small and (rows < MIN_ROWS or row * u.dtype.itemsize > ROW_BYTES_LIMIT): return False
    if rows * row >= REREAD_WORK and not any(self._reads_again(r, kernel) for r in self.epilogue[u]): return False
    others = self.rows.setdefault(kernel, [])
    if not all(ranges <= o or o <= ranges for o in others): return False   # both cannot be outer loops
    others.append(ranges)
    return True

  def _reads_again(self, r: UOp, kernel: UOp) -> bool:
    """Does a kernel need elements that the reduction r reads, besides r itself? A row is then in the cache."""
    seen, stack = {r.src[0]}, [r.src[0]]
    while stack:
      u = stack.pop()
      if any(k is kernel for k, _ in self.at.get(u, ())) or len(seen) > MOST_SEARCHED: return True
      if u.op not in GroupOp.Elementwise and u.op not in GroupOp.Movement: continue
      stack += [s for s in operands(u) if s not in seen and s not in self.constant]
      seen.update(operands(u))
    return False

def extents(nodes: list[UOp]) -> dict[UOp, int]:
  """Return for each node the size of its largest operand, direct or indirect, without repetition by EXPAND."""
  found: dict[UOp, int] = {}
  for u in nodes:
    if u.op in GroupOp.Elementwise or u.op in GroupOp.Movement or u.op is Ops.AFTER:
      found[u] = max((found[s] for s in operands(u) if s in found), default=1)
    elif u.op is Ops.CONST: found[u] = 1
    else: found[u] = u.size if u.shape else 1
  return found

def terms_per_element(r: UOp, extent: dict[UOp, int]) -> float:
  """Return how many terms of a reduction use each element that it reads."""
  return r.src[0].size / max(extent[r.src[0]], 1)

def is_large_product(r: UOp, extent: dict[UOp, int]) -> bool:
  """Is a reduction a matrix product whose tile pays for a kernel?"""
  terms = r.src[0].size
  return terms >= PRODUCT_WORK and terms >= PRODUCT_TERMS * r.size and terms_per_element(r, extent) > REUSE_LIMIT

def multiplied_bytes(u: UOp) -> list[UOp]:
  """Return the 8-bit factors of a sum of few products of two widened bytes each; nothing for other expressions."""
  found, left = [], [u]
  while left:
    u = left.pop().base
    if u.op is Ops.ADD: left += u.src
    elif u.op is not Ops.MUL: return []
    else:
      factors = [s.base for s in u.src]
      if any(s.op is not Ops.CAST or s.dtype.itemsize == 1 or not dtypes.is_int(s.dtype)
             or s.src[0].dtype not in (dtypes.int8, dtypes.uint8) for s in factors):
        return []
      found += [s.src[0] for s in factors]
    if len(found) + len(left) > BLOCK_TERMS // 2: return []
  return found

def prod_sizes(ranges: frozenset[UOp]) -> int:
  n = 1
  for r in ranges: n *= range_size(r)
  return n

def row_of(u: UOp, gated: GatedIndex) -> GatedIndex:
  """Return the gated index in the index of a SCATTER, for one in its values, which may have one axis more."""
  return GatedIndex(gated.index[:len(u.src[1].shape)], gated.valid)

def own_index(u: UOp, loops: tuple[sint, ...], ordered: int | None = None) -> tuple[tuple[UOp, ...], GatedIndex]:
  """Return fresh ranges over `loops` for u's kernel, and the gated index in u that they visit. ordered: the number of
  an ORDERED range."""
  index = tuple(ZERO if isinstance(n, int) and n == 1 else
                UOp.range(simplest(n), k, AxisType.ORDERED if k == ordered else AxisType.LOOP)
                for k, n in enumerate(loops))
  ranges = tuple(i for i in index if i is not ZERO)
  return ranges, GatedIndex(index if loops == u.shape else reshape_index(index, loops, u.shape))

def fused(roots: list[UOp], forced: frozenset[UOp] = frozenset()) -> Fusion:
  """Decide the fusion of a graph, with the extra buffers that are worth their bytes, and those that are `forced`.

  Values that are computed twice to save memory (over AFTER) get the same buffers as if they were computed once. So both
  computations have the same kernels, and all results have the bits of the graph without AFTER.
  """
  once = _without_after(roots)
  if once:
    return _swept(roots, _stored_alike(once, fused([once[r] for r in roots], frozenset(map(once.__getitem__, forced)))),
                  closed=True)
  fusion = _swept(roots, forced)
  worth = buffers_worth(fusion)
  return _swept(roots, worth | forced) if worth else fusion

def _swept(roots: list[UOp], forced: frozenset[UOp] = frozenset(), closed: bool = False) -> Fusion:
  """Return the fusion in which no product is refused. Each sweep that refuses some sets these apart in the next one."""
  fusion = Fusion(roots, forced, closed)
  while fusion.refused: fusion = Fusion(roots, forced, closed, fusion.apart | fusion.refused)
  return fusion

def _stored_alike(once: dict[UOp, UOp], fusion: Fusion) -> frozenset[UOp]:
  return frozenset(u for u, v in once.items() if v in fusion.realized and u.op is not Ops.AFTER)

def _without_after(roots: list[UOp]) -> dict[UOp, UOp]:
  """Map each node to its counterpart in the graph without AFTERs, in which nothing is computed twice; empty if there
  are none."""
  nodes = UOp.sink(*roots).toposort()
  if not any(u.op is Ops.AFTER for u in nodes): return {}
  new: dict[UOp, UOp] = {}
  for u in nodes:
    src = tuple([new[s] for s in u.src])
    if u.op is Ops.AFTER: new[u] = src[0]
    elif u.op is not Ops.SINK: new[u] = u if src == u.src else UOp(u.op, u.dtype, src, u.arg, u.tag)
  return new

def buffers_worth(fusion: Fusion) -> frozenset[UOp]:
  """Return elementwise nodes wanted in several kernels for which one more buffer means fewer bytes moved.

  With k kernels that each read l buffers to make the node, k*l reads become l reads, one write and k reads. For k = 2
  that is fewer from l = 4 on, and for more kernels sooner. So no more than ENOUGH_READS buffers of each node need be
  known.
  """
  wanted = {u: k for u, at in fusion.at.items() if len(at) > 1 and (k := len({kernel for kernel, _ in at})) > 1
            and u.op in GroupOp.Elementwise and u not in fusion.trivial and u not in fusion.chain}
  leaves: dict[UOp, tuple[UOp, ...]] = {}
  found: set[UOp] = set()
  for u in fusion.nodes if wanted else ():
    if u in fusion.realized or u.op is Ops.BUFFER: leaves[u] = (u,)
    else:
      leaves[u] = reads = leaves_of(u, leaves)
      k, l = wanted.get(u, 0), len(reads)
      if k * l > l + k + 1:
        found.add(u)
        leaves[u] = (u,)
  return frozenset(found)

def leaves_of(u: UOp, leaves: dict[UOp, tuple[UOp, ...]]) -> tuple[UOp, ...]:
  """Return the buffers that u's operands read, up to ENOUGH_READS."""
  sources = operands(u)
  if len(sources) == 1: return leaves[sources[0]]
  return tuple(dict.fromkeys([b for s in sources for b in leaves[s]]))[:ENOUGH_READS]
