"""Load and store vectors whose lanes are not adjacent in memory, by accesses of adjacent elements and SHUFFLEs.

There are three cases, by the distance of two lanes in elements:

    1 backwards, or up to MOST_STRIDE   the memory from the first lane to the last is loaded, and each lane picked
    more, and copies of the access at   a block: 4 copies (2 of 8 bytes, 8 of 2 bytes) have a piece of 16 bytes in each
    adjacent elements                   lane. Pieces are transposed to vectors, or vectors to pieces
    2, of stores, and a second copy     the lanes of both are interleaved

The second case is a transpose: the lanes go across the rows of memory, and the loop along a row is unrolled. No access
touches an element outside of those between the first and the last of the plain form. Accesses with a gate keep the
plain form, but for loads 1 backwards (`backwards`).
"""
from __future__ import annotations
from collections.abc import Iterable, Iterator, Sequence

from tinyhw.codegen.kernel.affine import linear, make, number
from tinyhw.codegen.kernel.grid import ranges_of, values_of
from tinyhw.codegen.transform.tiling import MOST_STRIDE
from tinyhw.dtype import DType, dtypes
from tinyhw.machine.ir.target import Capabilities
from tinyhw.named_tuple import NamedTuple
from tinyhw.uop.enums import AxisType, Ops
from tinyhw.uop.ops import UOp

PIECE_BYTES = 16

class AdjacentCopies(NamedTuple):
  """Copies of an access at adjacent elements, in order."""
  accesses: tuple[UOp, ...]

class StridedAddress(NamedTuple):
  """The address of an access: a buffer, the index of lane 0, elements between two lanes, and the number of lanes."""
  buffer: UOp
  base: UOp
  stride: int
  lanes: int

  def element(self, offset: int) -> UOp:
    return UOp(Ops.INDEX, self.buffer.dtype, (self.buffer, make(Ops.ADD, dtypes.weakint, (self.base, number(offset)))))

class StridedLanes:
  """Makes the accesses of a kernel in which these nodes are."""
  def __init__(self, order: Iterable[UOp], capabilities: Capabilities):
    self.capabilities = capabilities
    self.blocks = blocks_of(order, capabilities)
    self.loaded: dict[AdjacentCopies, list[UOp]] = {}
    self.values: dict[UOp, UOp] = {}    # of stores, until their block is complete

  def load(self, u: UOp, buffer: UOp, split: tuple[UOp, int], lanes: int) -> UOp | None:
    """Return the vector of a LOAD; None if it is in none of the cases. split: the index of lane 0, and the elements
    between two lanes."""
    at = StridedAddress(buffer, *split, lanes)
    if not is_plain(u) or not fills_registers(u.dtype, at.lanes, self.capabilities): return None
    if u.dtype.itemsize in self.capabilities.shuffled_bytes and (
        at.stride == -1 or 2 <= abs(at.stride) <= MOST_STRIDE): return picked(u, at)
    block = self.blocks.get(u)
    if block is None: return None
    position = block.accesses.index(u)
    if block not in self.loaded:
      self.loaded[block] = transposed(loaded_rows(u, at, position, len(block.accesses)))
    return self.loaded[block][position]

  def store(self, u: UOp, value: UOp, buffer: UOp, split: tuple[UOp, int], lanes: int,
            ranges: Sequence[UOp]) -> UOp | None:
    """Return the stores of a block if this is its last STORE, else an empty GROUP; None if there is no block."""
    block = self.blocks.get(u)
    if block is None: return None
    at = StridedAddress(buffer, *split, lanes)
    self.values[u] = value
    if any(v not in self.values for v in block.accesses): return UOp(Ops.GROUP, dtypes.void, ())
    values, first = [self.values[v] for v in block.accesses], -block.accesses.index(u)
    if at.stride == 2 and len(values) == 2:
      pieces = [(lane * at.lanes, piece) for lane, piece in enumerate(interleaved(*values))]
    else: pieces = stored_rows(values, at.stride)
    return UOp(Ops.GROUP, dtypes.void, tuple([UOp(Ops.STORE, dtypes.void, (at.element(first + offset), piece, *ranges),
                                                  None, u.tag)
                                              for offset, piece in pieces]))

# ***** blocks *****

def is_plain(u: UOp) -> bool:
  """Has an access no gate?"""
  return len(u.src) == 1 if u.op is Ops.LOAD else len(values_of(u)) == 2

def fills_registers(dtype: DType, lanes: int, capabilities: Capabilities) -> bool:
  """Do vectors of so many lanes fill a register of the target, or a half or a quarter of one?"""
  return lanes & lanes - 1 == 0 and PIECE_BYTES <= dtype.itemsize * lanes <= capabilities.vector_bytes

def blocks_of(order: Iterable[UOp], capabilities: Capabilities) -> dict[UOp, AdjacentCopies]:
  """Return the block of each LOAD and STORE that is in one."""
  groups: dict[tuple[object, ...], dict[int, list[UOp]]] = {}
  for u in order:
    if u.op not in (Ops.LOAD, Ops.STORE) or not is_plain(u): continue
    terms, constant = linear(u.src[0].src[1])
    vectors = [r for t in terms for r in t.ranges if r.arg[1] is AxisType.VECTOR]
    if len(vectors) != 1 or abs(terms.get(vectors[0], 0)) < 2: continue
    if u.src[0].dtype.itemsize not in capabilities.transposed_bytes: continue
    if not fills_registers(u.src[0].dtype, vectors[0].src[0].arg, capabilities): continue
    closed = ranges_of(u) if u.op is Ops.STORE else ()
    if u.op is Ops.STORE and vectors[0] not in closed: continue
    key = (u.op, u.src[0].src[0], vectors[0], terms[vectors[0]], frozenset(terms.items()), closed)
    groups.setdefault(key, {}).setdefault(constant, []).append(u)
  found: dict[UOp, AdjacentCopies] = {}
  for (op, buffer, _, stride, *_), members in groups.items():
    assert isinstance(buffer, UOp) and isinstance(stride, int)
    each = PIECE_BYTES // buffer.dtype.itemsize
    if any(len(same) > 1 for same in members.values()): continue
    if op is Ops.STORE and stride == 2 and buffer.dtype.itemsize in capabilities.shuffled_bytes: each = 2
    if abs(stride) < each: continue
    for run in adjacent(sorted(members)):
      together = each
      if op is Ops.STORE and stride != 2 and len(run) > 1: together = len(run)
      starts = [*range(0, len(run) - together + 1, together)]
      if op is Ops.LOAD and len(run) > each and len(run) % each: starts.append(len(run) - each)  # it overlaps
      for start in starts:
        block = AdjacentCopies(tuple([members[c][0] for c in run[start:start + together]]))
        for u in block.accesses: found.setdefault(u, block)
  return found

def adjacent(numbers: list[int]) -> Iterator[list[int]]:
  """Yield runs of numbers that follow one another. numbers: in order."""
  start = 0
  for k in range(1, len(numbers) + 1):
    if k == len(numbers) or numbers[k] != numbers[k - 1] + 1:
      yield numbers[start:k]
      start = k

# ***** vectors *****

def shuffle(lanes: Sequence[int], *vectors: UOp) -> UOp:
  return UOp(Ops.SHUFFLE, vectors[0].dtype.scalar().vec(len(lanes)), vectors, tuple(lanes))

def loaded(u: UOp, at: StridedAddress, offset: int, lanes: int) -> UOp:
  return UOp(Ops.LOAD, u.dtype.vec(lanes), (at.element(offset),))

def picked(u: UOp, at: StridedAddress) -> UOp:
  """Load all memory from the first lane to the last, and pick the lanes."""
  n = at.lanes
  low, size = min(0, at.stride * (n - 1)), abs(at.stride) * (n - 1) + 1
  starts = [*range(0, size - n + 1, n)]
  if size % n: starts.append(size - n)     # the last vector ends with the last lane
  vectors = [loaded(u, at, low + start, n) for start in starts]
  places = [at.stride * k - low for k in range(n)]
  source = [min(place // n, len(starts) - 1) for place in places]
  inside = [place - starts[s] for place, s in zip(places, source)]
  if len(vectors) == 1: return shuffle(inside, *vectors)
  result = vectors[0]
  for part, vector in enumerate(vectors[1:], 1):
    kept = inside if part == 1 else range(n)
    result = shuffle([n + i if s == part else k for k, i, s in zip(kept, inside, source)], result, vector)
  return result

def backwards(index: UOp, gate: UOp, other: UOp) -> UOp | None:
  """Return the lanes of a masked load from the last to the first; None for a gate that is not made of comparisons.

  gate, other: as the result has them.
  """
  last_first = tuple(range(other.dtype.count - 1, -1, -1))
  mask = reversed_lanes(gate)
  if mask is None: return None
  return shuffle(last_first, UOp(Ops.LOAD, other.dtype, (index, mask, shuffle(last_first, other))))

def reversed_lanes(u: UOp) -> UOp | None:
  """Return a mask, or an index in it, with its lanes from the last to the first. None for what needs a SHUFFLE."""
  if u.op in (Ops.CONST, Ops.BROADCAST): return u
  if u.op is Ops.VECTORIZE: return u.replace(src=u.src[::-1])
  if u.op not in (Ops.AND, Ops.OR, Ops.XOR, Ops.ADD, Ops.CMPLT, Ops.CMPNE, Ops.CMPEQ): return None
  sources = [reversed_lanes(s) for s in u.src]
  return u.replace(src=tuple([s for s in sources if s is not None])) if None not in sources else None

def loaded_rows(u: UOp, at: StridedAddress, position: int, each: int) -> list[UOp]:
  """Load the pieces of a block. Row q has the pieces of lanes q, q + each, ..., one in each part of 16 bytes."""
  pieces = [loaded(u, at, at.stride * lane - position, each) for lane in range(at.lanes)]
  return [joined(pieces[q::each]) for q in range(each)]

def stored_rows(values: list[UOp], stride: int) -> list[tuple[int, UOp]]:
  """Return the pieces of a block's rows with their offsets in elements, row by row. values: of the copies, in order.

  A row lies in another page than the next one, so all its pieces are stored together: some of 16 bytes, then smaller
  ones.
  """
  dtype, lanes = values[0].dtype.scalar(), values[0].dtype.count
  part = PIECE_BYTES // dtype.itemsize      # elements of 16 bytes
  found: list[list[tuple[int, UOp]]] = [[] for _ in range(lanes)]
  start = 0
  while start < len(values):
    size = min(part, 1 << (len(values) - start).bit_length() - 1)
    vectors = transposed(values[start:start + size], part)
    for lane, row in enumerate(found):
      vector, at = divmod(lane % part * size, part)
      at += lane // part * part
      piece = vectors[vector]
      if size < lanes: piece = UOp(Ops.GEP, dtype.vec(size) if size > 1 else dtype, (piece,), at)
      row.append((stride * lane + start, piece))
    start += size
  return [piece for row in found for piece in row]

def joined(vectors: list[UOp]) -> UOp:
  """Return vectors as one, in their order."""
  while len(vectors) > 1:
    both = range(2 * vectors[0].dtype.count)
    vectors = [shuffle(both, a, b) for a, b in zip(vectors[::2], vectors[1::2])]
  return vectors[0]

def transposed(rows: list[UOp], part: int = 0) -> list[UOp]:
  """Transpose the elements of 1, 2, 4 or 8 rows, in each part of 16 bytes. part: elements of a part; as many as rows if
  0, and then element k of row q becomes element q of row k.

  With fewer rows, the results have the elements of several columns, one after another. Each step takes the elements of
  row q and of row q + n/2 in turns.
  """
  n = part or len(rows)
  low, high = (tuple([k + start + n * which for k in range(n // 2) for which in (0, 1)]) for start in (0, n // 2))
  for _ in range(len(rows).bit_length() - 1):
    half = len(rows) // 2
    rows = [in_parts(places, a, b) for a, b in zip(rows[:half], rows[half:]) for places in (low, high)]
  return rows

def in_parts(places: tuple[int, ...], a: UOp, b: UOp) -> UOp:
  """Shuffle each part of two vectors in the same way. places: in a part of a, followed by the same part of b."""
  each, n = len(places), a.dtype.count
  return shuffle([start + (k if k < each else k - each + n) for start in range(0, n, each) for k in places], a, b)

def interleaved(a: UOp, b: UOp) -> list[UOp]:
  """Return the lanes of two vectors in turns, as two vectors."""
  n = a.dtype.count
  lanes = [k + n * which for k in range(n) for which in (0, 1)]
  return [shuffle(lanes[:n], a, b), shuffle(lanes[n:], a, b)]
