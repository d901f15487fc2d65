"""Compute an attention in one loop over blocks of its rows, with an online softmax and the matrix unit.

A wave computes `matrix.m` rows of the result. All waves of a workgroup stage a block of the
inner product's second operand (keys) and of the outer product's second operand (values) in shared memory, and:

    scores   = rows @ keys.T               results of the matrix unit, in registers
    new      = max(largest, scores)        over the lanes that share a row
    change   = exp(largest - new)
    powers   = exp(scores - new)
    total    = total * change + powers     each lane for its own elements
    out      = out * change + powers @ values
    largest  = new

`largest`, `total` and `out` are the state of the loop: REDUCEs that say themselves how their variables change
(docs/design/uop.md). The powers go from the layout of a result to that of an operand in registers (layout.py). After
the loop, lanes add their totals, and results are multiplied by the factors of their row.

Loops end after the last block of which a row of the workgroup sees an element. Sizes that are no multiple of a block
are padded: operands are 0 there, scores are -inf, and nothing is stored.
"""
from __future__ import annotations
import functools
import math

from tinyhw.codegen.attention.layout import distances, groups, moves
from tinyhw.codegen.attention.recognize import POWER, PRODUCT, RESULT, TOTAL, Attention
from tinyhw.codegen.kernel.affine import linear, make, number
from tinyhw.codegen.kernel.grid import ranges_of, values_of
from tinyhw.codegen.math.exponential import LOG2_OF_E
from tinyhw.codegen.matrix.local import RANGES, share
from tinyhw.codegen.matrix.matrix import factors, operand_of
from tinyhw.codegen.matrix.operands import ProductRange, WorkgroupTile, first_index, further, times
from tinyhw.codegen.matrix.ranges import is_load
from tinyhw.codegen.transform.fold import BEFORE, fold_tree
from tinyhw.codegen.transform.shorten import last_seen
from tinyhw.codegen.transform.tiling import at_most, size_of, substitute
from tinyhw.dtype import DType, dtypes
from tinyhw.named_tuple import NamedTuple
from tinyhw.machine.ir.target import Capabilities
from tinyhw.uop.enums import ROUGH, AxisType, Ops
from tinyhw.uop.matrix import Layout, Matrix
from tinyhw.uop.ops import UOp

weakint = dtypes.weakint
LEAST = -3.4028234663852886e38    # of float32: the start of a maximum, so that no difference is -inf - -inf

class AttentionTile(NamedTuple):
  """waves: of a workgroup. block: positions of a row that are staged together."""
  waves: int
  block: int

def plus(*terms: UOp) -> UOp: return functools.reduce(lambda a, b: make(Ops.ADD, weakint, (a, b)), terms)

class Padded(NamedTuple):
  """A range of the kernel, and the larger one that takes its place. inside: None where both have one size."""
  old: UOp
  range: UOp
  inside: UOp | None

  @property
  def size(self) -> int: return size_of(self.range)

def padded(r: UOp, multiple: int) -> Padded:
  """Return a range as one whose size is a multiple."""
  size = -(-size_of(r) // multiple) * multiple
  if size == size_of(r): return Padded(r, r, None)
  wide = UOp(Ops.RANGE, weakint, (number(size),), r.arg)
  return Padded(r, wide, make(Ops.CMPLT, dtypes.bool, (wide, r.src[0])))

def within(u: UOp, ranges: list[Padded]) -> UOp:
  """Return a value over the larger ranges, which loads nothing outside of the old ones."""
  new: dict[UOp, UOp] = {}
  for v in substitute(u, {p.old: p.range for p in ranges if p.inside is not None}).toposort():
    src = tuple([new[s] for s in v.src])
    if v.op is Ops.LOAD:
      gates = [p.inside for p in ranges if p.inside is not None and p.range in v.src[0].ranges]
      if gates:
        gate = functools.reduce(lambda a, b: make(Ops.AND, dtypes.bool, (a, b)), [*src[1:2], *gates])
        src = (src[0], gate, src[2] if len(src) > 2 else UOp.const(v.dtype, 0))
    new[v] = last = v if src == v.src else UOp(v.op, v.dtype, src, v.arg, v.tag)
  return last

def zero_outside(u: UOp, ranges: list[Padded]) -> UOp:
  """Return an operand of a product that is 0 outside of these ranges."""
  found = within(u, ranges)
  if is_load(u): return found
  for p in ranges:
    if p.inside is not None and p.range in found.ranges:
      found = make(Ops.WHERE, u.dtype, (p.inside, found, UOp.const(u.dtype, 0)))
  return found

class Builder:
  """Makes the kernel of an attention under a tile."""

  def __init__(self, found: Attention, matrix: Matrix, tile: AttentionTile, capabilities: Capabilities):
    assert matrix.a is not None and matrix.b is not None and matrix.c is not None
    self.found, self.matrix, self.tile, self.aligned = found, matrix, tile, capabilities.aligned
    self.a, self.b, self.c = matrix.a, matrix.b, matrix.c
    m, n, k = matrix.m, matrix.n, matrix.k
    column = found.column if found.column is not None else UOp(Ops.RANGE, weakint, (number(1),), (-1, AxisType.LOOP))
    self.rows = padded(found.row, tile.waves * m)
    self.columns, self.steps = padded(column, n), padded(ranges_of(found.inner)[0], k)
    self.positions = padded(found.position, tile.block)
    self.padded = [self.rows, self.columns, self.steps, self.positions]
    self.numbers = 0
    self.outer = {r: self.range(size_of(r), AxisType.GLOBAL) for r in ranges_of(found.store)
                  if r is not found.row and r is not column}
    self.group = self.range(self.rows.size // (tile.waves * m), AxisType.GLOBAL)
    self.wave, self.lane = self.range(tile.waves, AxisType.LOCAL), self.range(matrix.lanes, AxisType.LOCAL)
    self.loop = self.range(self.blocks(), AxisType.REDUCE)
    # parts of a block of positions, as columns of the first product and as steps of the second; parts of its steps,
    # and of the second one's columns
    self.keys = self.parts(tile.block, n, AxisType.UPCAST)
    self.steps_of_keys = self.parts(self.steps.size, k, AxisType.UNROLL)
    self.steps_of_values = self.parts(tile.block, k, AxisType.UNROLL)
    self.values = self.parts(self.columns.size, n, AxisType.UPCAST)
    self.variables, self.is_single = 0, size_of(self.loop) == 1

  # ***** loops and positions *****

  def range(self, size: int | UOp, kind: AxisType) -> UOp:
    self.numbers += 1
    return UOp(Ops.RANGE, weakint, (number(size) if isinstance(size, int) else size,), (self.numbers - 1, kind))

  def blocks(self) -> int | UOp:
    """Return the number of blocks of which a row of the workgroup sees an element."""
    most = self.positions.size // self.tile.block
    last = last_seen(self.found.score, self.found.position)
    if last is None or any(t is not self.found.row or c < 0 for t, c in linear(last)[0].items()): return most
    rows = self.tile.waves * self.matrix.m
    edge = substitute(last, {self.found.row: plus(times(self.group, rows), number(rows - 1))})
    return at_most(plus(make(Ops.IDIV, weakint, (edge, number(self.tile.block))), number(1)), most)

  def parts(self, size: int, inner: int, kind: AxisType) -> ProductRange:
    return ProductRange((self.range(size // inner, kind), self.range(inner, kind)))

  def row(self, layout: Layout, element: int) -> UOp:
    """Return the row of an element of a lane."""
    first = times(plus(times(self.group, self.tile.waves), self.wave), self.matrix.m)
    return plus(first, further(first_index(layout, "row", self.lane), layout, "row", element))

  def along(self, layout: Layout, axis: str, element: int, first: int) -> UOp:
    """Return the column or step of an element of a lane, from `first` on."""
    return plus(further(first_index(layout, axis, self.lane), layout, axis, element), number(first))

  def block(self, position: UOp) -> UOp:
    """Return a position in the row. position: within the block."""
    return plus(times(self.loop, self.tile.block), position)

  def place(self, u: UOp, changes: dict[UOp, UOp]) -> UOp: return substitute(u, {**self.outer, **changes})

  # ***** operands *****

  def operands(self) -> tuple[UOp, UOp, UOp]:
    """Return the rows, keys and values in the type of the matrix unit, as functions of the kernel's old ranges."""
    x, y = factors(self.found.inner, self.matrix) or self.found.inner.src[0].src
    if self.found.position in x.ranges: x, y = y, x
    value = operand_of(self.found.value, self.matrix.operand)
    assert value is not None
    return zero_outside(x, self.padded), zero_outside(y, self.padded), zero_outside(value, self.padded)

  def loaded(self, x: UOp, step: int) -> UOp:
    """Return a lane's part of a matrix of rows, which it loads from memory."""
    elements = [self.place(x, {self.rows.range: self.row(self.a, e),
                               self.steps.range: self.along(self.a, "step", e, step * self.matrix.k)})
                for e in range(self.a.count)]
    return UOp(Ops.VECTORIZE, self.matrix.operand.vec(self.a.count), tuple(elements))

  def staged(self, x: UOp, columns: ProductRange, steps: ProductRange, stage: int) -> list[list[UOp]]:
    """Return a lane's parts of the matrices of a second operand by columns and steps, from shared memory."""
    last = UOp(Ops.RANGE, weakint, (number(self.matrix.n),), self.lane.arg)
    tile = WorkgroupTile(ProductRange(()), ProductRange((last,)), steps, (self.wave, last), False, self.aligned)
    part = share(x, tile, columns, "column", self.lane, self.matrix, self.b, self.numbers, stage)
    self.numbers += RANGES
    return [[substitute(part, {columns.parts[0]: number(c), steps.parts[0]: number(s)})
             for s in range(size_of(steps.parts[0]))] for c in range(size_of(columns.parts[0]))]

  # ***** the state of the loop *****

  def variable(self, dtype: DType, start: float) -> UOp:
    """Return a new variable of the loop. Its start is the variable itself where the loop has one iteration."""
    self.variables += 1
    begin = UOp.const(dtype, start)
    return begin if self.is_single else UOp(Ops.ACC, dtype, (begin,), (-self.variables, 0, 0))

  def before(self, variable: UOp) -> UOp:
    """Return a variable's value before an iteration, for other variables."""
    return variable if self.is_single else variable.replace(arg=(*variable.arg[:2], BEFORE))

  def after(self, variable: UOp, *updates: UOp) -> UOp:
    """Return a variable's value after the loop."""
    if self.is_single: return updates[-1]
    return UOp(Ops.REDUCE, variable.dtype, (variable, *updates, self.loop), Ops.ADD)

  def shared(self, op: Ops, value: UOp, arg: object = None) -> UOp:
    """Return the fold of the values of all lanes that share a row."""
    for distance in distances(self.c, "column"):
      value = UOp(op, value.dtype, (value, UOp(Ops.EXCHANGE, value.dtype, (value,), distance)), arg)
    return value

  # ***** the kernel *****

  def build(self) -> tuple[UOp, ...]:
    """Return the stores of the kernel."""
    rows, keys, values = self.operands()
    key_parts = self.staged(self.place(keys, {
      self.positions.range: self.block(self.value_of(self.keys)), self.steps.range: self.value_of(self.steps_of_keys)}),
                            self.keys, self.steps_of_keys, 0)
    value_parts = self.staged(self.place(values, {
      self.positions.range: self.block(self.value_of(self.steps_of_values)),
      self.columns.range: self.value_of(self.values)}), self.values, self.steps_of_values, 1)
    return tuple(self.stores(rows, key_parts, value_parts))

  def value_of(self, parts: ProductRange) -> UOp:
    return plus(times(parts.parts[0], size_of(parts.parts[1])), parts.parts[1])

  def scores(self, rows: UOp, keys: list[list[UOp]]) -> list[list[UOp]]:
    """Return a lane's scores of a block, for each matrix of positions."""
    loaded = [self.loaded(rows, step) for step in range(size_of(self.steps_of_keys.parts[0]))]
    whole = within(self.found.score, self.padded)
    if self.positions.inside is not None:
      whole = make(Ops.WHERE, whole.dtype, (self.positions.inside, whole, UOp.const(whole.dtype, -math.inf)))
    found = []
    for k, parts in enumerate(keys):
      result = self.chain(list(zip(loaded, parts)))
      found.append([self.place(whole, {PRODUCT: UOp(Ops.GEP, self.matrix.result, (result,), e), **self.at(e, k)})
                    for e in range(self.c.count)])
    return found

  def chain(self, products: list[tuple[UOp, UOp]]) -> UOp:
    """Return a sum of matrix products. It is a REDUCE without a loop, so that all such sums go on together."""
    dtype = self.matrix.result.vec(self.c.count)
    self.variables += 1
    sums = [UOp.const(dtype, 0), *[UOp(Ops.ACC, dtype, (UOp.const(dtype, 0),), (-self.variables, 0, k))
                                   for k in range(1, len(products))]]
    updates = [UOp(Ops.MMA, dtype, (*pair, so_far), self.matrix) for pair, so_far in zip(products, sums)]
    return UOp(Ops.REDUCE, dtype, (UOp(Ops.ACC, dtype, (sums[0],), (-self.variables, 0, 0)), *updates), Ops.ADD)

  def at(self, element: int, key: int) -> dict[UOp, UOp]:
    """Return the row and the position of an element of a lane's scores. key: the matrix of positions."""
    return {self.rows.range: self.row(self.c, element),
            self.positions.range: self.block(self.along(self.c, "column", element, key * self.matrix.n))}

  def stores(self, rows: UOp, keys: list[list[UOp]], values: list[list[UOp]]) -> list[UOp]:
    """Return the stores of a lane's results. group_of: the row of an element, among those of its lane."""
    group_of = groups(self.c)
    scores, in_groups = self.scores(rows, keys), range(1 + max(group_of))
    def of_group(k: int, found: list[list[UOp]]) -> list[UOp]:
      return [x for part in found for x, g in zip(part, group_of) if g == k]
    largest, total = ([self.variable(dtypes.float32, start) for _ in in_groups] for start in (LEAST, 0))
    most = [self.shared(Ops.MAX, fold_tree(Ops.MAX, of_group(k, scores), ROUGH), ROUGH) for k in in_groups]
    # NaN need not stay in a maximum: it makes the powers NaN
    new = [UOp(Ops.MAX, dtypes.float32, (self.before(largest[k]), most[k]), ROUGH) for k in in_groups]
    change = [self.power(self.before(largest[k]), new[k]) for k in in_groups]
    powers = [[self.power(x, new[g]) for x, g in zip(part, group_of)] for part in scores]
    more = [fold_tree(Ops.ADD, of_group(k, powers)) for k in in_groups]
    sums = [UOp(Ops.MULACC, dtypes.float32, (total[k], change[k], more[k])) for k in in_groups]
    totals = [self.shared(Ops.ADD, self.after(total[k], sums[k])) for k in in_groups]
    weight = within(self.found.weight, self.padded)
    operands = self.moved([[self.narrow(self.place(weight, {POWER: p, **self.at(e, k)})) for e, p in enumerate(part)]
                           for k, part in enumerate(powers)])
    last = [self.after(largest[k], new[k]) for k in in_groups]
    results = [self.product(operands, parts, change, group_of) for parts in values]
    return [self.stored(self.complete(UOp(Ops.GEP, dtypes.float32, (result,), e), last), e, c, totals[g])
            for c, result in enumerate(results) for e, g in enumerate(group_of)]

  def power(self, a: UOp, b: UOp) -> UOp:
    """Return the power of a difference, to the bits that weights have."""
    difference = UOp(Ops.SUB, a.dtype, (a, b))
    if self.found.power is Ops.EXP: difference = UOp(Ops.MUL, a.dtype, (difference, UOp.const(a.dtype, LOG2_OF_E)))
    return UOp(Ops.EXP2, a.dtype, (difference,), ROUGH)

  def narrow(self, u: UOp) -> UOp:
    """Return a weight in the type of the matrix unit."""
    dtype = self.matrix.operand
    found = operand_of(u, dtype)
    return UOp(Ops.CAST, dtype, (u,)) if found is None else found

  def moved(self, weights: list[list[UOp]]) -> list[UOp]:
    """Return a lane's weights as operands of the second product, for each of its steps."""
    tiles, found = self.matrix.k // self.matrix.n, []
    for first in range(0, len(weights), tiles):
      elements = []
      for move in moves(self.matrix) or ():
        value = weights[first + move.tile][move.element]
        rounds = value.op is Ops.CAST and value.src[0].dtype is dtypes.float32    # after an exchange, once for two
        if move.distance and rounds: value = value.src[0]
        if move.distance:
          other = UOp(Ops.EXCHANGE, value.dtype, (value,), move.distance)
          bit = make(Ops.MOD, weakint, (make(Ops.IDIV, weakint, (self.lane, number(move.distance))), number(2)))
          own = make(Ops.CMPEQ, dtypes.bool, (bit, number(move.own)))
          value = UOp(Ops.WHERE, value.dtype, (own, value, other))
        elements.append(value if value.dtype is self.matrix.operand else UOp(Ops.CAST, self.matrix.operand, (value,)))
      found.append(UOp(Ops.VECTORIZE, self.matrix.operand.vec(self.a.count), tuple(elements)))
    return found

  def product(self, operands: list[UOp], values: list[UOp], change: list[UOp], group_of: list[int]) -> UOp:
    """Return a lane's part of a matrix of results, after the loop."""
    dtype = self.matrix.result.vec(self.c.count)
    variable = self.variable(dtype, 0)
    scaled = UOp(Ops.VECTORIZE, dtype, tuple([
      UOp(Ops.MUL, dtype.scalar(), (UOp(Ops.GEP, dtype.scalar(), (variable,), e), change[g]))
      for e, g in enumerate(group_of)]))
    updates: list[UOp] = []
    for k, (x, value) in enumerate(zip(operands, values)):
      so_far = scaled if k == 0 else updates[-1] if self.is_single else variable.replace(arg=(*variable.arg[:2], k))
      updates.append(UOp(Ops.MMA, dtype, (x, value, so_far), self.matrix))
    return self.after(variable, *updates)

  def complete(self, value: UOp, variables: list[UOp]) -> UOp:
    """Return a result of the loop, which needs these variables, too."""
    return value if self.is_single else UOp(Ops.AFTER, value.dtype, (value, *variables))

  def stored(self, value: UOp, element: int, column: int, total: UOp) -> UOp:
    """Return the store of one result. total: of the powers of its row."""
    at = {self.rows.range: self.row(self.c, element),
          self.columns.range: self.along(self.c, "column", element, column * self.matrix.n)}
    for factor in self.found.factors:
      factor = self.place(within(factor, self.padded), {**at, TOTAL: total})
      if factor.dtype is not value.dtype: factor = UOp(Ops.CAST, value.dtype, (factor,))
      value = UOp(Ops.MUL, value.dtype, (value, factor))
    index, whole, *gates = values_of(self.found.store)
    gates += [p.inside for p in (self.rows, self.columns) if p.inside is not None]
    if gates: gates = [functools.reduce(lambda a, b: make(Ops.AND, dtypes.bool, (a, b)), gates)]
    placed = [self.place(within(u, self.padded), {**at, RESULT: value}) for u in (index, whole, *gates)]
    return UOp(Ops.STORE, dtypes.void, (*placed, *self.outer.values(), self.group, self.wave, self.lane))
