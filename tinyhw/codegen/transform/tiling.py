"""Split a range, set the kind of its parts, and peel the remainder: the one vocabulary of optimisation. Choices are
made elsewhere.

`Opt(op, axis, amount)` is the form in which choices are written, printed (DEBUG=3) and searched (BEAM). axis is the id
of a range of the original kernel.

    VECTOR  the innermost `amount` iterations are lanes of a vector register
    UPCAST  the innermost `amount` iterations are unrolled: a register tile (of a reduction range: UNROLL)
    BLOCK   the innermost `amount` iterations are a loop of their own; such loops are in the order of the opts
    GRID    the rest of the range becomes part of the grid; the range of the last such opt is the fastest
    STAGE   loads of buffer `axis` (a slot) under a reduction are copied to shared memory first, in the order in which
            the reduction reads them; with an amount of 1, those of all iterations of loops in a work item, at once
    WINDOW  the same as a window of the buffer, with at most `amount` loops of the output inside of it (window.py)
    KEEP    values of the reduction over this range that the kernel needs again are stored to shared memory (keep.py),
            by a loop whose body is unrolled `amount` times
    LOCAL   the innermost `amount` iterations are lanes of a workgroup
    STRIPED unrolled like UPCAST, but outside of the lanes: neighbours of a lane are other lanes, and its repetitions
            are at a distance of all lanes
    MATRIX  three of them: the innermost iterations of the ranges of rows, columns and the sum of a product are a tile
            of the matrix unit (matrix.py). On a CPU two, since the columns are lanes: VECTOR (tile_sums.py)
    BULK_COPY  operands of the MATRIX whose sum has this range are copied to shared memory by bulk copies
            (bulk_copies.py), if both can be; its amount is 1

No gate is needed for any shape. Where the factor of an output range does not divide its size, the last step begins
early enough to be whole, and computes some elements a second time. That is not allowed where the kernel reads the
buffer that it overwrites. Then the range is peeled: the kernel does the largest multiple, and a second store with loops
of its own does the rest.

A reduction's range is always peeled, into a REDUCE for the largest multiple and others for the remainder. Remainders of
a range with lanes are done by as many lanes, then by half as many, and so on. Where lanes of a workgroup share the
range, they are done by all lanes, and then by each lane alone.
"""
from __future__ import annotations

from tinyhw import trace
from tinyhw.codegen.kernel.access import access_of
from tinyhw.codegen.kernel.affine import make, number
from tinyhw.codegen.kernel.grid import ranges_of, values_of
from tinyhw.codegen.transform.stage import next_array, panel_value, position_of
from tinyhw.dtype import dtypes
from tinyhw.named_tuple import NamedTuple
from tinyhw.uop.enums import STATED, AxisType, NamedIntEnum, Ops, plain_members
from tinyhw.uop.ops import UOp

@plain_members
class OptOps(NamedIntEnum):
  """The kinds of choices, as described at the head of this file."""
  VECTOR = 1
  UPCAST = 2
  BLOCK = 3
  GRID = 4
  STAGE = 5
  LOCAL = 6
  MATRIX = 7
  WINDOW = 8
  BULK_COPY = 9
  STRIPED = 10
  KEEP = 11

LEAST_LANES = 4            # of the remainder of a reduction's range; fewer elements than that are folded one by one
OF_BUFFERS = frozenset({OptOps.STAGE, OptOps.WINDOW})   # axis is a slot
# their iterations run in parallel in a tile
OF_TILES = frozenset({OptOps.VECTOR, OptOps.UPCAST, OptOps.LOCAL, OptOps.STRIPED, OptOps.MATRIX})
NO_FACTORS = OF_BUFFERS | {OptOps.GRID, OptOps.KEEP}    # their amounts do not split the range
# opts under which lanes of a workgroup, or a matrix unit, share the loops of a reduction
SHARED = frozenset({OptOps.LOCAL, OptOps.STRIPED, OptOps.MATRIX, OptOps.BULK_COPY})
# tag of a node that folds parts of one REDUCE, whose order of terms is free, unlike that of a program's additions
OF_ONE = "one"

class Opt(NamedTuple):
  """A choice for the innermost `amount` iterations of range `axis` (for GRID: for all remaining iterations)."""
  op: OptOps
  axis: int
  amount: int = 0

  def __repr__(self) -> str: return f"{self.op.name}({self.axis}{f', {self.amount}' if self.amount else ''})"

def is_reduce(r: UOp) -> bool: return r.arg[1] in (AxisType.REDUCE, AxisType.UNROLL)

def size_of(r: UOp) -> int:
  """Return the number of iterations; 0 where it is symbolic."""
  return int(r.src[0].arg) if r.src[0].op is Ops.CONST else 0

def width_along(r: UOp, lanes: int) -> int:
  """Return the lanes that a range can fill: a short one fills a part of a register."""
  return min(lanes, 1 << size_of(r).bit_length() - 1)

def part_of(n: int, most: int) -> int:
  """Return the largest divisor of n that is no more than `most`, or 1."""
  return max([d for d in range(1, most + 1) if n % d == 0], default=1)

def without_statements(sink: UOp) -> UOp:
  """Return the kernel without what is stated of its operands."""
  found = {u: u.src[2] if u.src[1].op is Ops.CONST else u.src[1] for u in sink.toposort() if u.tag == STATED}
  return sink.substitute(found) if found else sink

class RangePart(NamedTuple):
  """A part of a split range: its kind, its size, and the iterations of the range in one step of it."""
  kind: AxisType
  size: UOp
  stride: int

ORDER = {AxisType.GLOBAL: 0, AxisType.LOCAL: 1, AxisType.LOOP: 2, AxisType.ORDERED: 2, AxisType.STAGE: 3,
         AxisType.REDUCE: 4, AxisType.UPCAST: 5, AxisType.UNROLL: 6, AxisType.VECTOR: 7}

MOST_AT_ONCE = 16    # iterations of a remainder where lanes share a reduction
REDUCING = {AxisType.VECTOR: AxisType.VECTOR, AxisType.LOCAL: AxisType.LOCAL, AxisType.UPCAST: AxisType.UNROLL,
            AxisType.LOOP: AxisType.REDUCE}
INNERMOST_FIRST = ((AxisType.VECTOR, OptOps.VECTOR), (AxisType.UPCAST, OptOps.MATRIX), (AxisType.UPCAST, OptOps.UPCAST),
                   (AxisType.LOCAL, OptOps.LOCAL), (AxisType.UPCAST, OptOps.STRIPED), (AxisType.LOOP, OptOps.BLOCK))

def split(r: UOp, opts: list[Opt], columns: bool = False) -> list[RangePart]:
  """Return the parts of a range under its opts, outermost first.

  Where the amounts' product does not divide the size, the last step overlaps. columns: whether these are the columns of
  a MATRIX, which are lanes.
  """
  parts: list[RangePart] = []
  stride = 1
  for kind, wanted in INNERMOST_FIRST:
    if columns and wanted is OptOps.MATRIX: kind = AxisType.LOCAL
    for opt in opts:
      if opt.op is not wanted: continue
      # more iterations than the range has would be outside of it
      amount = min(opt.amount, -(-size_of(r) // stride)) if size_of(r) else opt.amount
      if amount == 1: continue
      parts.append(RangePart(REDUCING[kind] if is_reduce(r) else kind, number(amount), stride))
      stride *= amount
  size = r.src[0]
  if stride == 1: rest = size
  elif size_of(r): rest = number(-(-size_of(r) // stride))
  else: rest = make(Ops.IDIV, dtypes.weakint, (size, number(stride)))    # symbolic.py made it a multiple
  if not (rest.op is Ops.CONST and rest.arg == 1):
    grid = any(opt.op is OptOps.GRID for opt in opts)
    parts.append(RangePart(AxisType.GLOBAL if grid else r.arg[1], rest, stride))
  return parts[::-1]

def apply(sink: UOp, opts: tuple[Opt, ...], order: tuple[int, ...] = ()) -> UOp:
  """Return the kernel with its ranges split.

  order: ids of ranges, outermost first, for the remaining loops. Without it they are in the order of their ids, and the
  grid is in the order of the opts.
  """
  return apply_pieces(sink, opts, order).sink

class SplitKernel(NamedTuple):
  """A kernel with split ranges. pieces: the parts of each old range, outermost first. values: its value from these."""
  sink: UOp
  pieces: dict[UOp, list[UOp]]
  values: dict[UOp, UOp]

def apply_pieces(sink: UOp, opts: tuple[Opt, ...], order: tuple[int, ...] = ()) -> SplitKernel:
  """Return the same, with the parts of each range."""
  nodes = sink.toposort()
  ranges = sorted((u for u in nodes if u.op is Ops.RANGE), key=lambda r: r.arg)
  rank = {axis: k for k, axis in enumerate(order)}
  grid = {o.axis: k for k, o in enumerate(opts) if o.op is OptOps.GRID} if not order else {}
  blocks = list(dict.fromkeys(o.axis for o in opts if o.op is OptOps.BLOCK))
  rank.update(zip(blocks, sorted(blocks)) if not order else ())
  matrix = [o.axis for o in opts if o.op is OptOps.MATRIX]
  columns = matrix[1:2] if len(matrix) == 3 else []
  parts: list[tuple[tuple[int, bool, int, int], UOp, RangePart]] = []
  first_part: dict[UOp, RangePart] = {}
  for r in ranges:
    mine = split(r, [o for o in opts if o.axis == r.arg[0] and o.op not in OF_BUFFERS], r.arg[0] in columns)
    if mine: first_part[r] = mine[0]
    for depth, p in enumerate(mine):
      place = (grid[r.arg[0]] if p.kind is AxisType.GLOBAL and r.arg[0] in grid
               else rank.get(r.arg[0], len(order) + r.arg[0]))
      # lanes along memory are adjacent
      parts.append(((ORDER[p.kind], not (p.kind is AxisType.LOCAL and is_reduce(r)), place, depth), r, p))
  parts.sort(key=lambda item: item[0])
  pieces: dict[UOp, list[UOp]] = {r: [] for r in ranges}
  value: dict[UOp, UOp] = {r: number(0) for r in ranges}
  for n, (_, r, p) in enumerate(parts):
    size = substitute(p.size, value) if p.size.ranges else p.size    # it depends on loops outside of this one
    new = UOp(Ops.RANGE, dtypes.weakint, (size,), (n, p.kind))
    pieces[r].append(new)
    step = make(Ops.MUL, dtypes.weakint, (new, number(p.stride)))
    if p is first_part[r] and size_of(r) % p.stride: step = at_most(step, size_of(r) - p.stride)
    value[r] = make(Ops.ADD, dtypes.weakint, (value[r], step))
  return SplitKernel(rebuilt(sink, value, pieces), pieces, value)

def at_most(x: UOp, limit: int) -> UOp:
  """Return the smaller of an index and a limit, in a form with exact bounds."""
  minus = UOp(Ops.MAX, dtypes.weakint, (make(Ops.MUL, dtypes.weakint, (x, number(-1))), number(-limit)))
  return make(Ops.MUL, dtypes.weakint, (minus, number(-1)))

def rebuilt(sink: UOp, value: dict[UOp, UOp], pieces: dict[UOp, list[UOp]]) -> UOp:
  """Return sink with each range replaced: by a value where it is used, by pieces where it is closed."""
  new: dict[UOp, UOp] = dict(value)
  for u in sink.toposort():
    if u in new: continue
    if u.op in (Ops.STORE, Ops.REDUCE, Ops.STAGE):
      closed = sorted((p for r in ranges_of(u) for p in pieces.get(r, [r])), key=lambda p: p.arg)
      values = tuple(new[s] for s in values_of(u))
      if u.op is Ops.REDUCE and not closed: new[u] = values[0]
      elif u.op is Ops.STAGE and any(new[r].op is not Ops.RANGE for r in ranges_of(u)):
        at = values[1] if len(values) > 1 else position_of(ranges_of(u), new)
        # the position in a single loop is that loop, and a RANGE among the sources is closed
        new[u] = UOp(u.op, u.dtype, (values[0], *closed) if closed == [at] else (values[0], at, *closed), u.arg)
      else: new[u] = UOp(u.op, u.dtype, values + tuple(closed), u.arg, u.tag if u.op is Ops.STORE else None)
    else:
      src = tuple([new[s] for s in u.src])
      new[u] = u if src == u.src else make(u.op, u.dtype, src,
                                           u.arg) if u.tag is None else UOp(u.op, u.dtype, src, u.arg, u.tag)
  trace.hand_on(new)
  return new[sink]

# ***** peeling *****

def factor_of(r: UOp, opts: tuple[Opt, ...]) -> int:
  """Return the number that must divide the size of a range."""
  factor = 1
  for o in opts:
    if o.axis == r.arg[0] and o.op not in NO_FACTORS: factor *= o.amount
  return factor

def lanes_along(r: UOp, opts: tuple[Opt, ...]) -> int:
  return next((o.amount for o in opts if o.op is OptOps.VECTOR and o.axis == r.arg[0]), 1)

def cuts_of(n: int, lanes: int) -> list[tuple[int, int]]:
  """Return the steps for the remainder of a reduction's range, and the lanes of each: all lanes, then fewer, at last
  one."""
  found: list[tuple[int, int]] = []
  while n:
    if n < lanes: lanes = lanes // 2 if lanes > LEAST_LANES else 1
    else:
      found.append((n // lanes, lanes))
      n %= lanes
  return found

def peel_reductions(sink: UOp, opts: tuple[Opt, ...], fresh: int) -> tuple[UOp, tuple[Opt, ...]]:
  """Split each REDUCE over the ranges that the factor does not divide, and fold the results.

  Return the opts of new ranges, too.
  """
  new: dict[UOp, UOp] = {}
  more: list[Opt] = []
  for u in sink.toposort():
    src = tuple([new[s] for s in u.src])
    v = u if src == u.src else UOp(u.op, u.dtype, src, u.arg, u.tag)
    if u.op is Ops.REDUCE:
      pieces = [v]
      for r in ranges_of(u):
        rest, lanes = size_of(r) % factor_of(r, opts), lanes_along(r, opts)
        if not rest: continue
        shared = next((o.amount for o in opts if o.op is OptOps.LOCAL and o.axis == r.arg[0]), 1)
        cuts = cuts_of(rest, lanes) if shared == 1 else [cut for cut in ((rest // shared, shared), (rest % shared, 1))
                                                         if cut[0]]
        pieces = [p for piece in pieces
                  for p in _peel_reduce(piece, r, [size_of(r) - rest, *[steps * width for steps, width in cuts]],
                                        fresh)]
        for axis, (steps, width) in enumerate(cuts, fresh):   # a loop of few steps is unrolled
          if shared > 1 and width > 1: more.append(Opt(OptOps.LOCAL, axis, width))
          if shared > 1: more.append(Opt(OptOps.UPCAST, axis, part_of(steps, MOST_AT_ONCE)))
          if lanes > 1:
            more += [Opt(op, axis, amount) for op, amount in ((OptOps.VECTOR, width), (OptOps.UPCAST, steps))
                     if amount > 1]
        fresh += len(cuts)
      v = pieces[0]
      for piece in pieces[1:]: v = UOp(u.arg, u.dtype, (v, piece), None, OF_ONE)
    new[u] = v
  trace.hand_on(new)
  return new[sink], tuple(more)

def _peel_reduce(u: UOp, r: UOp, sizes: list[int], fresh: int) -> list[UOp]:
  """Return a REDUCE as one for each part of a range. sizes: of the parts. Later parts have new ranges, numbered from
  `fresh`."""
  others = tuple(s for s in ranges_of(u) if s is not r)
  pieces: list[UOp] = []
  done = 0
  for axis, size in zip((r.arg[0], *range(fresh, fresh + len(sizes))), sizes):
    if not size: continue
    part = UOp(Ops.RANGE, r.dtype, (number(size),), (axis, r.arg[1]))
    place = make(Ops.ADD, dtypes.weakint, (part, number(done))) if done else part
    pieces.append(UOp(Ops.REDUCE, u.dtype, (substitute(u.src[0], {r: place}), part) + others, u.arg))
    done += size
  return pieces

def peel_store(store: UOp, r: UOp, most: int, fresh: int) -> list[UOp]:
  """Return a store over a range as two: one over the first `most` iterations, one over the others."""
  rest = UOp(Ops.RANGE, r.dtype, (number(size_of(r) - most),), (fresh, r.arg[1]))
  tail = _moved(store, r, rest, make(Ops.ADD, dtypes.weakint, (rest, number(most))))
  if not most: return [tail]
  main = UOp(Ops.RANGE, r.dtype, (number(most),), r.arg)
  return [_moved(store, r, main, main), tail]

def _moved(store: UOp, old: UOp, new: UOp, value: UOp) -> UOp:
  values = tuple(substitute(s, {old: value}) for s in values_of(store))
  return UOp(Ops.STORE, store.dtype, values + tuple(new if r is old else r for r in ranges_of(store)), store.arg,
             store.tag)

def substitute(u: UOp, changes: dict[UOp, UOp]) -> UOp:
  """Return u with ranges replaced by index expressions, which are brought to normal form."""
  new: dict[UOp, UOp] = dict(changes)
  for v in u.toposort(lambda v: v not in changes):
    if v in new: continue
    src = tuple([new[s] for s in v.src])
    if src == v.src: new[v] = v
    else: new[v] = make(v.op, v.dtype, src, v.arg) if v.tag is None else UOp(v.op, v.dtype, src, v.arg, v.tag)
  trace.hand_on(new)
  return new[u]

# ***** staging *****

MOST_STRIDE = 4            # elements between lanes of a load whose memory is loaded as a whole (lower/strided.py)

def rows_copies(itemsize: int) -> int:
  """Return the number of adjacent elements of a row that are copied together where lanes go across rows."""
  return max(16 // itemsize, 4)

def is_unrolled_in_panels(r: UOp, itemsize: int) -> bool:
  """Can the loop that copies a row to a panel be unrolled for so many elements?"""
  return size_of(r) > 0 and size_of(r) % rows_copies(itemsize) == 0

def copying_ranges(load: UOp, own: list[UOp], fresh: int) -> tuple[dict[UOp, UOp], list[UOp]]:
  """Return the index of each range of a load in the loops that copy it, and these loops, numbered from `fresh`.

  Where lanes go across rows, adjacent elements of a row are copied together. So rows are transposed in registers.
  """
  access = access_of(load)
  across = any(r.arg[1] is AxisType.VECTOR and access.stride(r) not in (0, 1) for r in load.ranges)
  index: dict[UOp, UOp] = {}
  loops: list[UOp] = []
  for r in own:
    # a panel that other loops share is filled as a whole, also where the loop that reads it ends early
    if any(i.arg[1] is not AxisType.GLOBAL and access.stride(i) == 0 for i in r.src[0].ranges):
      size: tuple[UOp, ...] = (number(int(r.src[0].vmax)),)
    else: size = r.src
    if across and access.stride(r) == 1 and is_unrolled_in_panels(r, load.dtype.itemsize):
      n = rows_copies(load.dtype.itemsize)
      outer = UOp(Ops.RANGE, r.dtype, (number(size_of(r) // n),), (fresh + len(loops), AxisType.STAGE))
      inner = UOp(Ops.RANGE, r.dtype, (number(n),), (fresh + len(loops) + 1, AxisType.UPCAST))
      index[r] = make(Ops.ADD, r.dtype, (make(Ops.MUL, r.dtype, (outer, number(n))), inner))
      loops += outer, inner
    else:
      index[r] = UOp(Ops.RANGE, r.dtype, size, (fresh + len(loops), AxisType.STAGE))
      loops.append(index[r])
  return index, loops

def stage_loads(sink: UOp, slots: frozenset[int], whole: frozenset[int] = frozenset()) -> UOp:
  """Stage loads of these buffers under a REDUCE, with what it computes of each alone (`panel_value`).

  The shared array has an element for each point of the reduction's loops (and of the tile). Those of the buffers in
  `whole` also have one for each iteration of the output's loops in a work item.
  """
  nodes = sink.toposort()
  fresh = 1 + max((u.arg[0] for u in nodes if u.op is Ops.RANGE), default=0)
  first = next_array(nodes)
  changes: dict[UOp, UOp] = {}
  for u in nodes:
    if u.op is not Ops.REDUCE: continue
    loops = [r for r in ranges_of(u) if r.arg[1] is AxisType.REDUCE]
    for load in u.src[0].toposort():
      if (load.op is not Ops.LOAD or load.src[0].src[0].op is not Ops.PARAM
          or load.src[0].src[0].arg[0] not in slots):
        continue
      own = [r for r in loops if r in load.ranges]
      if own and load.src[0].src[0].arg[0] in whole: own = [r for r in load.ranges if r.arg[1] is AxisType.LOOP] + own
      if not own: continue   # it is read while a window is filled
      value = panel_value(load, u.src[0])
      if value in changes: continue
      index, copying = copying_ranges(load, own, fresh)
      fresh += len(copying)
      stage = UOp(Ops.STAGE, value.dtype, (substitute(value, index), *copying), (first + len(changes),))
      changes[value] = UOp(Ops.LOAD, value.dtype, (UOp(Ops.INDEX, value.dtype, (stage, position_of(own))),))
  return sink.substitute(changes) if changes else sink
