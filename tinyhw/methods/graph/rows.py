"""The gradient of rows that were read by indices (an embedding): sums of the gradients of equal indices, by sorting.

A sum over "index equals row" costs indices x rows multiplications for each column. Here the gradients are put in the
order of their indices, which makes those of one row adjacent. A suffix sum within these is the row's gradient at its
first position:

    index        7  3  7  3  9        sorted   3     3   7     7   9
    gradient     a  b  c  d  e        suffix   b+d   d   a+c   c   e       row 3: b+d, row 7: a+c, row 9: e, others 0

Suffix sums work in blocks. A block sums within itself. A row that goes on in the next block adds the suffix sum there,
of the blocks' first positions, which are fewer and are done in the same way. Order is by position among equal indices,
so results are the same in each run. Cost: n x n comparisons of integers for n indices, BLOCK additions for an element,
and one or two reads for each row of the result.
"""
from __future__ import annotations

from tinyhw.helpers import ceildiv
from tinyhw.methods.graph.graph import (
  accumulator, add, binary, cast, compare, contiguous, expand, fold, full, like, node, pad_axis, place_type, positions,
  positions_in, reshape, scale, shrink_axis, where)
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp

BLOCK = 16

def rows_gradient(index: UOp, g: UOp, rows: int) -> UOp:
  """Return the sum of the rows of g whose index is r, for each r.

  index: (n,) integers; those outside of 0 to rows-1 name no row. g: (n, columns) -> (rows, columns).
  """
  n, columns = g.shape
  assert isinstance(n, int) and isinstance(columns, int)
  kind = place_type((rows + 2) * n)
  inside = binary(Ops.AND, compare(Ops.CMPLT, like(index, -1), index), compare(Ops.CMPLT, index, like(index, rows)))
  names = where(inside, cast(index, kind), full((n,), kind, rows))
  order = sorting(contiguous(add(scale(names, n), positions(names, 0, kind))))
  keys = contiguous(taken(names, order))
  values = contiguous(taken_rows(cast(g, accumulator(g.dtype)), order))
  first = first_positions(keys, rows)
  found = binary(Ops.AND, compare(Ops.CMPLT, first, like(first, n)),
                 compare(Ops.CMPEQ, taken(keys, first), positions(first, 0, kind)))
  places = contiguous(where(found, first, like(first, -1)))
  return cast(taken_rows(suffix_sums(keys, values), places), g.dtype)

def taken(u: UOp, places: UOp) -> UOp:
  """Return the elements of a vector at places, and 0 where there is none."""
  return node(Ops.GATHER, u.dtype, (u, places), 0, places.shape)

def taken_rows(u: UOp, places: UOp) -> UOp:
  """Return the rows of a matrix at places, and zeros where there is none."""
  (n,), columns = places.shape, u.shape[1]
  wide = expand(reshape(places, (n, 1)), (n, columns))
  return node(Ops.GATHER, u.dtype, (u, wide), 0, (n, columns))

def sorting(keys: UOp) -> UOp:
  """Return the places that sort a vector of different numbers: (n,)."""
  (n,), kind = keys.shape, place_type(keys.shape[0])
  mine, other = expand(reshape(keys, (n, 1)), (n, n)), expand(reshape(keys, (1, n)), (n, n))
  rank = contiguous(fold(cast(compare(Ops.CMPLT, other, mine), kind), Ops.ADD, (1,)))
  ranks = expand(reshape(rank, (1, n)), (n, n))
  here = compare(Ops.CMPEQ, ranks, positions(ranks, 0, kind))
  return contiguous(fold(where(here, positions(ranks, 1, kind), full((n, n), kind, 0)), Ops.ADD, (1,)))

def first_positions(keys: UOp, rows: int) -> UOp:
  """Return, for each row, the number of keys below it, by a binary search in the sorted keys: (rows,)."""
  n = keys.shape[0]
  assert isinstance(n, int)
  row = positions_in(keys, (rows,), 0, keys.dtype)
  first = like(row, 0)
  for k in range(n.bit_length() - 1, -1, -1):
    last = add(first, like(row, (1 << k) - 1))
    below = binary(Ops.AND, compare(Ops.CMPLT, last, like(row, n)), compare(Ops.CMPLT, taken(keys, last), row))
    first = where(below, add(first, like(row, 1 << k)), first)
    if k % 4 == 0: first = contiguous(first)
  return first

def suffix_sums(keys: UOp, values: UOp) -> UOp:
  """Return the sums of the rows with the same key from each row on.

  keys: (n,), sorted. values: (n, columns).
  """
  n, columns = values.shape
  assert isinstance(n, int)
  size = BLOCK if n > 2 * BLOCK else n
  blocks = ceildiv(n, size)
  names, padded = (pad_axis(u, 0, 0, blocks * size - n) for u in (keys, values))
  shape = (blocks, size, size, columns)
  wide = expand(reshape(padded, (blocks, 1, size, columns)), shape)
  mine = expand(reshape(names, (blocks, size, 1, 1)), shape)
  other = expand(reshape(names, (blocks, 1, size, 1)), shape)
  early = compare(Ops.CMPLT, positions(wide, 2), positions(wide, 1))
  hit = binary(Ops.AND, binary(Ops.XOR, early, like(early, True)), compare(Ops.CMPEQ, mine, other))
  inside = contiguous(fold(where(hit, wide, like(wide, 0)), Ops.ADD, (2,)))
  whole = shrink_axis(reshape(inside, (blocks * size, columns)), 0, 0, n)
  if blocks == 1: return whole
  starts = contiguous(reshape(shrink_axis(reshape(names, (blocks, size)), 1, 0, 1), (blocks,)))
  heads = contiguous(reshape(shrink_axis(inside, 1, 0, 1), (blocks, columns)))
  return contiguous(with_next_block(keys, whole, starts, suffix_sums(starts, heads)))

def with_next_block(keys: UOp, sums: UOp, starts: UOp, heads: UOp) -> UOp:
  """Add to the sums of each row within its block those from the next block on, if the next block has the same key.

  keys: (n,). sums: (n, columns). starts, heads: the first key of each block, and the sums from there on.
  """
  (n,), columns, blocks = keys.shape, sums.shape[1], heads.shape[0]
  assert isinstance(n, int) and isinstance(blocks, int)
  def next_of(u: UOp) -> UOp:
    """Return the element of the next block for each row. The last block has none."""
    tail = u.shape[1:]
    shifted = reshape(pad_axis(shrink_axis(u, 0, 1, blocks), 0, 0, 1), (blocks, 1, *tail))
    return shrink_axis(reshape(expand(shifted, (blocks, BLOCK, *tail)), (blocks * BLOCK, *tail)), 0, 0, n)
  row = positions(keys, 0)
  has_next = compare(Ops.CMPLT, row, like(row, (blocks - 1) * BLOCK))
  same = binary(Ops.AND, has_next, compare(Ops.CMPEQ, keys, next_of(starts)))
  return add(sums, where(expand(reshape(same, (n, 1)), (n, columns)), next_of(heads), like(sums, 0)))
