"""Sorting by digits, for devices whose workers run long loops fast (places.py).

It goes digit by digit, the lowest first. Each chunk of keys counts its digits. Running sums over (digit, chunk) give
the place of the first key of each digit in each chunk. Each key then takes the next place of its digit and chunk:

    keys 3 1 3 | 1 0 3     counts of 0, 1, 3: 0 1 2 | 1 1 1     first places: 0 1 3 | 0 2 5     order: 0 1 1 3 3 3

Keys of a digit keep their order, so all passes together sort. A pass takes two loops over the keys: one counts, another
takes places and moves keys and their indices there. Cost: a pass for each byte of a key.
"""
from __future__ import annotations
from collections.abc import Callable
import math

from tinyhw.dtype import DType, dtypes
from tinyhw.helpers import ceildiv
from tinyhw.methods.graph.graph import (
  add, binary, cast, compare, contiguous, full, like, node, pad_axis, permute, place_type, positions, reshape, scale,
  where)
from tinyhw.methods.graph.places import written
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp

DIGIT_BITS = 8         # 256 counters, 1 KB, stay in the first-level cache
CHUNK = 4096           # keys of a chunk, so that its 256 counters are few beside them

Running = Callable[[UOp], UOp]     # returns the sums of each element of rows and all before it

def sorting_keys(u: UOp, descending: bool) -> tuple[UOp, int]:
  """Return whole numbers without a sign that sort as elements do, and their bits. NaN is the largest element, and both
  zeros are equal."""
  if u.dtype is dtypes.bool: keys, bits = cast(u, dtypes.uint8), 1
  else:
    bits = 8 * u.dtype.itemsize
    kind = {8: dtypes.uint8, 16: dtypes.uint16, 32: dtypes.uint32, 64: dtypes.uint64}[bits]
    keys = _bits_in_order(u, kind) if dtypes.is_float(u.dtype) else node(Ops.BITCAST, kind, (u,), None, u.shape)
    if not dtypes.is_float(u.dtype) and not dtypes.is_unsigned(u.dtype):
      keys = binary(Ops.XOR, keys, like(keys, 1 << (bits - 1)))
  return binary(Ops.XOR, keys, like(keys, (1 << bits) - 1)) if descending else keys, bits

def _bits_in_order(x: UOp, kind: DType) -> UOp:
  """Return the bits of floats as numbers in the order of the floats."""
  bits = node(Ops.BITCAST, kind, (x,), None, x.shape)
  most, sign = int(kind.max), 1 << (8 * kind.itemsize - 1)
  negative = compare(Ops.CMPLT, like(bits, sign - 1), bits)
  number = binary(Ops.XOR, bits, where(negative, like(bits, most), like(bits, sign)))
  number = where(compare(Ops.CMPEQ, x, like(x, 0.0)), like(bits, sign), number)
  return where(compare(Ops.CMPNE, x, x), like(bits, most), number)

def order_of(keys: UOp, bits: int, running: Running) -> UOp:
  """Return the places that sort the last axis. Equal keys keep their order.

  keys: whole numbers without a sign, below 2**bits.
  """
  *lead, n = keys.shape
  rows = math.prod([int(d) for d in lead])
  assert isinstance(n, int), "a number of keys"
  keys, kind = reshape(keys, (rows, n)), place_type(rows * n)
  places = positions(keys, 1, kind)
  for low in range(0, bits, DIGIT_BITS):
    width = min(DIGIT_BITS, bits - low)
    digit = cast(binary(Ops.AND, binary(Ops.SHR, keys, like(keys, low)), like(keys, (1 << width) - 1)), kind)
    to = _next_places(digit, 1 << width, running)
    again = low + width < bits
    keys, places = (reshape(written(full((rows * n,), u.dtype, 0, u.device), to, _chunked(u), None, "whole"), (rows, n))
                    if again or u is places else u for u in (keys, places))
  return reshape(places, (*lead, n))

def _chunks_of(n: int) -> int:
  """Return the number of chunks of n keys, one that divides n if there is one near."""
  chunks = ceildiv(n, CHUNK)
  return next((c for c in range(chunks, 2 * chunks + 1) if n % c == 0), chunks)

def _chunked(u: UOp) -> UOp:
  """Return rows in chunks: (rows x chunks, keys of a chunk), the last one padded with zeros."""
  rows, n = u.shape
  assert isinstance(n, int) and isinstance(rows, int)
  chunks = _chunks_of(n)
  size = ceildiv(n, chunks)
  return reshape(pad_axis(u, 1, 0, chunks * size - n), (rows * chunks, size))

def _next_places(digit: UOp, digits: int, running: Running) -> UOp:
  """Return the place of each key in the order of their digits, as `_chunked` has the keys; -1 for padding.

  digit: (rows, n) -> places in (rows x n).
  """
  rows, n = digit.shape
  assert isinstance(n, int) and isinstance(rows, int)
  kind, chunks = digit.dtype, _chunks_of(n)
  at = _chunked(digit)
  counter = add(at, scale(positions(at, 0, kind), digits))
  if at.shape[1] * chunks != n:
    padding = compare(Ops.CMPLT, like(at, n - 1), add(_within(at, chunks, kind), positions(at, 1, kind)))
    counter = where(padding, like(counter, -1), counter)
  none = full((rows * chunks * digits,), kind, 0, digit.device)
  counts = reshape(written(none, counter, like(at, 1), Ops.ADD), (rows, chunks, digits))
  counts = contiguous(reshape(permute(counts, (0, 2, 1)), (rows, digits * chunks)))
  first = reshape(add(running(counts), scale(counts, -1)), (rows, digits, chunks))
  first = add(first, scale(positions(first, 0, kind), n))
  start = reshape(permute(first, (0, 2, 1)), (rows * chunks * digits,))
  found = written(start, counter, like(at, 1), Ops.ADD, "before")
  return found if at.shape[1] * chunks == n else where(padding, like(found, -1), found)

def _within(at: UOp, chunks: int, kind: DType) -> UOp:
  """Return the position in its row of the first key of each chunk."""
  chunk = positions(at, 0, kind)
  return scale(binary(Ops.MOD, chunk, like(chunk, chunks)), int(at.shape[1]))
