"""Stage the operands of a product in shared memory, where the matrix unit gets them.

All lanes of the workgroup copy the part of each operand that its waves need until the next barrier. They copy blocks
that are contiguous in memory. In shared memory the steps of the sum are adjacent, whatever the order in memory is. A
lane therefore loads its share of an operand in wide pieces (`share`).

Where lanes load operands together (`Matrix.fragments`), shared memory keeps the order of memory, so that whole pieces
can be copied unchanged (prefetch.py). This also holds where the unit reads shared memory itself
(`Matrix.shared_operands`). Shared memory then has swizzled lines, which a target may also fill by bulk copies
(bulk_copies.py).
"""
from __future__ import annotations
import math

from tinyhw.codegen.kernel.affine import common_factor, linear, make, number
from tinyhw.codegen.kernel.vector_width import gate_width, is_plain, width_along
from tinyhw.codegen.matrix.operands import ProductRange, WorkgroupTile, further, first_index, position, times
from tinyhw.codegen.transform.bulk_copies import MOST_LINES, OperandTensor, tensor_boxes, tensor_of, weights
from tinyhw.codegen.transform.tiling import part_of, substitute
from tinyhw.dtype import DType, dtypes
from tinyhw.named_tuple import NamedTuple
from tinyhw.uop.enums import AxisType, Ops
from tinyhw.uop.matrix import BLOCK_ROWS, LINE_BYTES, LINES, PIECE_BYTES, WORD_BYTES, Layout, Matrix, SwizzledLayout
from tinyhw.uop.ops import UOp

weakint = dtypes.weakint
# of memory that adjacent lanes read; longer segments would cause bank conflicts in the stores to shared memory
SEGMENT_BYTES = 32
LOCAL_BYTES = 128     # that shared memory delivers at once
MOST_ROUNDS = 8       # blocks of a lane that are all in flight at once, in whole pieces
MOST_NARROW_ROUNDS = 64  # the same in narrower pieces
NEIGHBOURS = 32       # adjacent lanes that copy narrow pieces of a row
RANGES = 3            # new ones for a shared array

def share(x: UOp, tile: WorkgroupTile, mn_range: ProductRange, axis: str, wave: UOp, matrix: Matrix,
          layout: Layout | None, fresh: int, stage: int) -> UOp:
  """Load a lane's elements of an operand from shared memory. The operand has rows or columns (mn_range, axis)."""
  assert layout is not None, "only shared operands are none of a lane's"
  if matrix.fragments: return fragment(x, tile, mn_range, axis, wave, matrix, layout, fresh, stage)
  aligned = min(layout.count * x.dtype.itemsize, PIECE_BYTES) // x.dtype.itemsize
  conflicts = has_bank_conflicts(layout, axis, aligned * x.dtype.itemsize)
  transposed, cut = pieces_of(x, tile, mn_range, workgroup_of(tile, wave),
                              layout.contiguous(axis) * x.dtype.itemsize >= PIECE_BYTES)
  array = Array(tile.step.size + aligned, False, layout.digits(axis) if conflicts else ())
  if transposed: array, conflicts = Array(mn_range.size + PIECE_BYTES // x.dtype.itemsize, True), False
  local = staged(x, tile, mn_range, wave, array, cut, fresh, stage)
  if conflicts: layout = layout.packed(axis)
  names = {mn_range.parts[-1]: axis, tile.steps: "step"}
  firsts = {r: first_index(layout, name, wave) for r, name in names.items()}
  contiguous = layout.elements == (("step", layout.count, 1),)   # steps are adjacent: one wide load
  dtype, places = x.dtype.vec(layout.count), []
  for element in range(1 if contiguous else layout.count):
    outer, inner = (position([further(firsts[r], layout, names[r], element) if r in names else r for r in s.parts], s)
                    for s in (mn_range, tile.step))
    places.append(UOp(Ops.INDEX, x.dtype, (local, array.offset(outer, inner))))
  if contiguous: return UOp(Ops.LOAD, dtype, (places[0],))
  return UOp(Ops.VECTORIZE, dtype, tuple([UOp(Ops.LOAD, x.dtype, (p,)) for p in places]))

class Array(NamedTuple):
  """The layout of an operand in shared memory.

  Rows (or columns) begin `pitch` elements apart, in the order of `digits` (packed_place). transposed: steps begin
  `pitch` elements apart, and the rows of a step are adjacent.
  """
  pitch: int
  transposed: bool
  digits: tuple[tuple[int, int], ...] = ()

  def offset(self, row: UOp, step: UOp) -> UOp:
    outer, inner = (step, row) if self.transposed else (row, step)
    return make(Ops.ADD, weakint, (times(outer, self.pitch), inner))

  def size(self, rows: int, steps: int) -> int: return (steps if self.transposed else rows) * self.pitch

class SwizzledArray(NamedTuple):
  """An operand in the order of `SwizzledLayout`."""
  layout: SwizzledLayout
  length: int   # elements of a line
  digits: tuple[tuple[int, int], ...] = ()

  def offset(self, row: UOp, step: UOp) -> UOp:
    line, along = (step, row) if self.layout.transposed else (row, step)
    piece = self.length * PIECE_BYTES // LINE_BYTES
    number_of_piece = make(Ops.IDIV, weakint, (make(Ops.MOD, weakint, (along, number(self.length))), number(piece)))
    changed = make(Ops.XOR, weakint, (number_of_piece, make(Ops.MOD, weakint, (line, number(LINES)))))
    within = make(Ops.ADD, weakint, (times(changed, piece), make(Ops.MOD, weakint, (along, number(piece)))))
    return make(Ops.ADD, weakint, (self.begin(row, step), within))

  def begin(self, row: UOp, step: UOp) -> UOp:
    """Return the first element of the line that holds an element."""
    line, along = (step, row) if self.layout.transposed else (row, step)
    before = times(make(Ops.IDIV, weakint, (along, number(self.length))), self.layout.lines)
    return times(make(Ops.ADD, weakint, (before, line)), self.length)

  def size(self, rows: int, steps: int) -> int: return rows * steps

def shared_operands(x: UOp, y: UOp, tile: WorkgroupTile, wave: UOp, fresh: int, stage: int) -> tuple[UOp, UOp]:
  """Return both operands as SHARED_OPERAND nodes."""
  operands = (x, tile.row), (y, tile.column)
  tensors = [tensor_in(factor, tile, mn_range) if tile.bulk else None for factor, mn_range in operands]
  if None in tensors: tensors = [None, None]
  a, b = (shared_operand(factor, tile, mn_range, wave, fresh + RANGES * k, stage + k, tensor)
          for k, ((factor, mn_range), tensor) in enumerate(zip(operands, tensors)))
  return a, b

def tensor_in(x: UOp, tile: WorkgroupTile, mn_range: ProductRange) -> OperandTensor | None:
  """Return an operand as a tensor, of which shared memory gets boxes."""
  along, line = (mn_range, tile.step) if lies_along_rows(x, tile, mn_range) else (tile.step, mn_range)
  return tensor_of(x, weights(along.parts), weights(line.parts)) if line.size <= MOST_LINES else None

def shared_operand(x: UOp, tile: WorkgroupTile, mn_range: ProductRange, wave: UOp, fresh: int, stage: int,
                   tensor: OperandTensor | None) -> UOp:
  """Return an operand as a SHARED_OPERAND. Shared memory is contiguous as memory is, along the steps or along the rows
  (or columns)."""
  transposed = lies_along_rows(x, tile, mn_range)
  _, cut = pieces_of(x, tile, mn_range, workgroup_of(tile, wave), True)
  lines = tile.step.size if transposed else mn_range.size
  array = SwizzledArray(SwizzledLayout(lines, transposed), LINE_BYTES // x.dtype.itemsize)
  if tensor is None: local = staged(x, tile, mn_range, wave, array, cut, fresh, stage)
  else: local = bulk_copied(tensor, tile, wave, array, mn_range.size * tile.step.size, stage)
  row, step = (position([*s.parts[:-1], number(0)], s) for s in (mn_range, tile.step))
  return UOp(Ops.SHARED_OPERAND, x.dtype, (UOp(Ops.INDEX, x.dtype, (local, array.begin(row, step))),), array.layout)

def bulk_copied(tensor: OperandTensor, tile: WorkgroupTile, wave: UOp, array: SwizzledArray, size: int,
                stage: int) -> UOp:
  """Return a shared array whose columns of swizzle atoms are filled by one TENSOR_BOX each."""
  local = UOp(Ops.DEFINE_LOCAL, tensor.buffer.dtype, (), (stage, size))
  lanes, lines = tuple(wave if r is tile.columns else r for r in tile.lanes), array.layout.lines
  places = [UOp(Ops.INDEX, local.dtype, (local, number(at))) for at in range(0, size, lines * array.length)]
  stores = [UOp(Ops.STORE, dtypes.void, (place, box, *lanes))
            for place, box in zip(places, tensor_boxes(tensor, size // lines, lines))]
  return UOp(Ops.AFTER, local.dtype, (local, *stores))

def fragment(x: UOp, tile: WorkgroupTile, mn_range: ProductRange, axis: str, wave: UOp, matrix: Matrix, layout: Layout,
             fresh: int, stage: int) -> UOp:
  """Load a lane's elements of an operand by a FRAGMENT.

  The rows of a block keep the order of memory. A piece is left out between them, so that they are in different banks.
  Each lane gives the address of one row, which the digits of its number select.
  """
  size = x.dtype.itemsize
  piece = PIECE_BYTES // size
  transposed, cut = pieces_of(x, tile, mn_range, workgroup_of(tile, wave), matrix.transposes)
  array = Array((mn_range if transposed else tile.step).size + piece, transposed)
  local = staged(x, tile, mn_range, wave, array, cut, fresh, stage)
  within = make(Ops.MOD, weakint, (wave, number(BLOCK_ROWS)))
  at = {axis: number(0) if transposed else within, "step": within if transposed else number(0)}
  span, skipped = BLOCK_ROWS, 1
  for name, radix, stride in layout.elements:
    if skipped < WORD_BYTES // size: skipped *= radix   # the steps of one word
    else:
      digit = make(Ops.MOD, weakint, (make(Ops.IDIV, weakint, (wave, number(span))), number(radix)))
      at[name] = make(Ops.ADD, weakint, (at[name], times(digit, stride)))
      span *= radix
  row, step = (position([*s.parts[:-1], at[name]], s) for s, name in ((mn_range, axis), (tile.step, "step")))
  return UOp(Ops.FRAGMENT, x.dtype.vec(layout.count), (UOp(Ops.INDEX, x.dtype, (local, array.offset(row, step))), wave),
             transposed)

def lies_along_rows(x: UOp, tile: WorkgroupTile, mn_range: ProductRange) -> bool:
  """Is an operand contiguous along its rows (or columns) in memory, not along the steps?

  It is if its elements are closer along the rows.
  """
  piece = PIECE_BYTES // x.dtype.itemsize
  steps = distance(x, tile.steps, piece)
  return steps != 1 and distance(x, mn_range.parts[-1], piece) < steps

def distance(x: UOp, r: UOp, most: int) -> float:
  """Return the distance in memory, in elements, of an operand's inputs along a range; infinity where it varies.

  It is measured on the first elements.
  """
  return min([distance_along(u.src[0].src[1], r, most) for u in x.toposort() if u.op is Ops.LOAD], default=math.inf)

def workgroup_of(tile: WorkgroupTile, wave: UOp) -> int:
  """Return the number of lanes that copy an operand together."""
  return math.prod(int((wave if r is tile.columns else r).src[0].arg) for r in tile.lanes)

class Digits:
  """A number that is split into digits, the lowest one first. rest: the remaining number."""
  def __init__(self, rest: UOp): self.rest = rest

  def take(self, radix: int) -> UOp:
    digit, self.rest = (make(op, weakint, (self.rest, number(radix))) for op in (Ops.MOD, Ops.IDIV))
    return digit

def digits_of(at: UOp, extent: ProductRange, x: UOp) -> dict[UOp, UOp]:
  """Return the digits of a number: the inverse of `position`.

  If that makes no difference to the operand, the number itself is the last digit and the others are 0.
  """
  if has_one_stride(x, extent): return {**dict.fromkeys(extent.parts[:-1], number(0)), extent.parts[-1]: at}
  digits = Digits(at)
  found = {r: digits.take(r.src[0].arg) for r in reversed(extent.parts[1:])}
  return {**found, extent.parts[0]: digits.rest}

def has_one_stride(x: UOp, extent: ProductRange) -> bool:
  """Are the rows (columns, steps) of a tile at equal distances in the memory of an operand?"""
  if x.op is not Ops.LOAD or len(x.src) > 1: return False
  terms, _ = linear(x.src[0].src[1])
  distance = terms.get(extent.parts[-1], 0)
  if any(terms.pop(r, 0) != distance * weight for r, weight in weights(extent.parts).items()): return False
  return not any(r in term.ranges for term in terms for r in extent.parts)

class Pieces(NamedTuple):
  """The blocks in which an operand is copied.

  A lane copies blocks of `rows` rows (or columns) by `steps` steps. Blocks are numbered `row_blocks` of them along the
  rows first, then along the steps (`step_blocks` of them, if that is not 0), then along the other rows, then further
  steps.
  """
  rows: int
  steps: int
  row_blocks: int
  step_blocks: int = 0

  def begin(self, block: UOp, extent: ProductRange, step_range: ProductRange) -> tuple[UOp, UOp]:
    """Return the position of a block: the number of blocks before it along the rows (or columns), and along the steps.
    """
    digits = Digits(block)
    near, far = digits.take(self.row_blocks), number(0)
    if self.step_blocks:
      first, far = digits.take(self.step_blocks), digits.take(extent.size // (self.row_blocks * self.rows))
      step = make(Ops.ADD, weakint, (times(digits.rest, self.step_blocks), first))
    elif self.row_blocks * self.rows < extent.size: step, far = digits.take(step_range.size // self.steps), digits.rest
    else: step = digits.rest
    return make(Ops.ADD, weakint, (times(far, self.row_blocks), near)), step

def pieces_of(x: UOp, tile: WorkgroupTile, mn_range: ProductRange, workgroup: int,
              transposes: bool) -> tuple[bool, Pieces]:
  """Return whether shared memory has an operand along its rows (or columns), and the blocks of the copy.

  transposes: whether it may have it along its rows.

  Blocks are pieces that are contiguous in memory. Shared memory may need contiguous steps where memory is contiguous
  along the rows. A block then also has several steps, which it transposes.

  Memory may have no pieces that a lane can load at once: because of an odd shift, a gate for each element, or a stride.
  Then adjacent lanes load adjacent elements, and a block is a piece the other way. A lane loads the elements of a block
  one by one and stores them at once. This is not done along rows at unequal distances: their addresses are the same in
  each iteration, so they would occupy registers all the time.
  """
  itemsize = x.dtype.itemsize
  piece, most = PIECE_BYTES // itemsize, max(mn_range.size * tile.step.size // workgroup, 1)
  most_steps, most_rows = math.gcd(piece, tile.step.size), math.gcd(piece, mn_range.size)
  if not lies_along_rows(x, tile, mn_range):
    width = block_width(x, tile.steps, most_steps, most, tile.aligned)
    even = all(distance(x, r, piece) < math.inf for r in (tile.steps, mn_range.parts[-1]))
    if width == most_steps and even and at_once(x, tile.step, most_steps, tile.aligned) == 1:
      return transposes, Pieces(part_of(most_rows, most), 1, 1)
    steps = part_of(at_once(x, tile.step, most_steps, tile.aligned), most)
    return False, Pieces(1, min(width, steps) if even else width, 1)
  width = block_width(x, mn_range.parts[-1], most_rows, most, tile.aligned)
  rows = at_once(x, mn_range, most_rows, tile.aligned) if width == most_rows else width
  if rows == 1 and width > 1: return False, Pieces(1, part_of(most_steps, most), mn_range.size)
  if transposes and rows == most_rows: return True, Pieces(rows, 1, mn_range.size // rows)
  if transposes:   # a lane has many narrow pieces, so they cover a few steps by a few steps, each with one gate
    row_blocks = math.gcd(mn_range.size // rows, NEIGHBOURS)
    return True, Pieces(rows, 1, row_blocks, math.gcd(max(workgroup // row_blocks, 1), tile.step.size))
  rows = part_of(rows, most)
  steps = part_of(math.gcd(piece // 2, tile.step.size), most // rows)
  return False, Pieces(rows, steps, math.gcd(max(SEGMENT_BYTES // (rows * itemsize), 1), mn_range.size // rows))

def block_width(x: UOp, r: UOp, wanted: int, most: int, aligned: bool) -> int:
  """Return the elements of a block along a range: as many as one access may have.

  If there are more lanes than pieces, each lane has a part of a piece anyway. most: elements of a lane.
  """
  return width_along(x, r, part_of(wanted, most), aligned)

def most_rounds(cut: Pieces, dtype: DType) -> int:
  """Return how many blocks a lane copies at once."""
  return min(MOST_ROUNDS * max(PIECE_BYTES // (cut.rows * cut.steps * dtype.itemsize), 1), MOST_NARROW_ROUNDS)

def at_once(x: UOp, extent: ProductRange, most: int, aligned: bool) -> int:
  """Return how many elements along rows (or columns, or steps) a lane can load at once: a power of two.

  aligned: they must certainly begin at a multiple of their number. Loads that `width_along` handles do not limit it.
  """
  r = extent.parts[-1]
  near = [u for u in x.toposort() if u.op is Ops.LOAD and not is_plain(u, r)
          and distance_along(u.src[0].src[1], r, most) < math.inf]
  while most > 1 and not (extent.size % most == 0 and all(is_piece(u, extent, most, aligned) for u in near)): most //= 2
  return most

def is_piece(load: UOp, extent: ProductRange, size: int, aligned: bool) -> bool:
  """Are this many elements, from a multiple of their number on, one piece of memory with one gate?"""
  block, within = (UOp(Ops.RANGE, weakint, (number(n),), (-1 - k, AxisType.UPCAST))
                   for k, n in enumerate((extent.size // size, size)))
  index, *gates = (substitute(u, digits_of(make(Ops.ADD, weakint, (times(block, size), within)), extent, load))
                   for u in (load.src[0].src[1], *load.src[1:2]))
  if any(gate_width(gate, within, size) < size for gate in gates): return False
  if aligned: return multiple_along(index, within, size) == size
  terms, _ = linear(index)
  return terms.pop(within, 0) == 1 and not any(within in term.ranges for term in terms)

def distance_along(index: UOp, r: UOp, most: int) -> float:
  """Return the distance of the first elements along a range, at most this many; infinity if it varies or is 0."""
  terms, _ = linear(index)
  if r in terms and not any(r in term.ranges for term in terms if term is not r): return abs(terms[r])
  places = [substitute(index, {other: number(k if other is r else 0) for other in index.ranges})
            for k in range(min(most, int(r.src[0].arg)))]
  if any(u.op is not Ops.CONST for u in places): return math.inf
  found = {abs(v.arg - u.arg) for u, v in zip(places, places[1:])}
  return found.pop() if len(found) == 1 and 0 not in found else math.inf

def has_bank_conflicts(layout: Layout, axis: str, size: int) -> bool:
  """Do lanes that read this many bytes each read from rows (or columns) that are not adjacent, with bank conflicts?"""
  places = {layout.coordinate(axis, lane, 0) for lane in range(LOCAL_BYTES // size)}
  return places != set(range(len(places)))

def packed_place(row: UOp, digits: tuple[tuple[int, int], ...]) -> UOp:
  """Return the position of a row (or column) in shared memory.

  digits: of its number within a matrix, as lanes have them. Shared memory has rows in the order of these digits.
  """
  if not digits: return row
  size = math.prod(radix for radix, _ in digits)
  total, span = times(make(Ops.IDIV, weakint, (row, number(size))), size), 1
  for radix, stride in digits:
    digit = make(Ops.MOD, weakint, (make(Ops.IDIV, weakint, (row, number(stride))), number(radix)))
    total, span = make(Ops.ADD, weakint, (total, times(digit, span))), span * radix
  return total

def staged(x: UOp, tile: WorkgroupTile, mn_range: ProductRange, wave: UOp, array: Array | SwizzledArray, cut: Pieces,
           fresh: int, stage: int) -> UOp:
  """Return a shared array of an operand, filled by copies of all lanes, in `rounds` rounds.

  Each row is padded by some elements, so that lanes that read adjacent rows use different banks.
  """
  lanes = tuple(wave if r is tile.columns else r for r in tile.lanes)
  workgroup = workgroup_of(tile, wave)
  blocks = mn_range.size * tile.step.size // (cut.rows * cut.steps)
  rounds = -(-blocks // workgroup)
  kind = AxisType.UPCAST if rounds <= most_rounds(cut, x.dtype) else AxisType.STAGE
  copy_round, down, along = (UOp(Ops.RANGE, weakint, (number(n),), (fresh + k, t)) for k, (n, t) in enumerate((
    (rounds, kind), (cut.rows, AxisType.UPCAST), (cut.steps, AxisType.UPCAST))))
  at = copy_round
  for r in lanes: at = make(Ops.ADD, weakint, (make(Ops.MUL, weakint, (at, r.src[0])), r))
  gate = make(Ops.CMPLT, dtypes.bool, (at, number(blocks)))
  # lanes without a block of their own load nothing; elsewhere they load another's, so that loads need no gate
  idle = isinstance(array, SwizzledArray)
  if not idle: at = make(Ops.MOD, weakint, (at, number(blocks)))
  row, step = (make(Ops.ADD, weakint, (times(first, size), within))
               for first, size, within in zip(cut.begin(at, mn_range, tile.step), (cut.rows, cut.steps), (down, along)))
  value = substitute(x, {**digits_of(row, mn_range, x), **digits_of(step, tile.step, x)})
  local = UOp(Ops.DEFINE_LOCAL, x.dtype, (), (stage, array.size(mn_range.size, tile.step.size)))
  place = UOp(Ops.INDEX, x.dtype, (local, array.offset(packed_place(row, array.digits), step)))
  copies = vector_copies(value, place, along) or vector_copies(value, place, down) or [(value, place)]
  if idle: copies = [(gated(what, gate), to) for what, to in copies]
  stores = [make(Ops.STORE, dtypes.void,
                 (to, what, gate, copy_round, *[r for r in (down, along) if r in to.ranges], *lanes))
            for what, to in copies]
  return UOp(Ops.AFTER, x.dtype, (local, *stores))

def gated(value: UOp, gate: UOp) -> UOp:
  """Return a value whose loads also need this gate. Values of other stages stay as they are."""
  new: dict[UOp, UOp] = {}
  for u in value.toposort(lambda u: u.op not in (Ops.STAGE, Ops.AFTER)):
    src = tuple([new.get(s, s) for s in u.src])
    if u.op is Ops.LOAD:
      src = (src[0], make(Ops.AND, dtypes.bool, (src[1], gate)) if len(src) > 1 else gate,
             *(src[2:] or (UOp.const(u.dtype, 0),)))
    new[u] = u if src == u.src else make(u.op, u.dtype, src, u.arg)
  return new[value]

def vector_copies(value: UOp, place: UOp, r: UOp) -> list[tuple[UOp, UOp]]:
  """Return the copy of all points of a range as a few vectors and their positions in shared memory.

  The range must be contiguous in memory and in shared memory, at multiples of the access size. Otherwise return
  nothing: `coalesce` may find more.
  """
  length = int(r.src[0].arg)
  if length == 1 or value.op is not Ops.LOAD or len(value.src) > 1: return []
  most = [multiple_along(index, r, length) for index in (value.src[0].src[1], place.src[1])]
  if most[0] < length or most[1] == 1: return []
  dtype, size = value.dtype, most[1]
  whole = UOp(Ops.LOAD, dtype.vec(length), (substitute(value.src[0], {r: number(0)}),))
  pieces = {k: whole if size == length else UOp(Ops.GEP, dtype.vec(size), (whole,), k) for k in range(0, length, size)}
  return [(piece, substitute(place, {r: number(k)})) for k, piece in pieces.items()]

def multiple_along(index: UOp, r: UOp, length: int) -> int:
  """Return the most contiguous elements along a range that begin at multiples of their number, a divisor of `length`.
  """
  terms, constant = linear(index)
  if terms.pop(r, 0) != 1 or any(r in term.ranges for term in terms): return 1
  return math.gcd(length, constant, common_factor(terms))
