"""Copy the factors of a product to local memory, from which the matrix unit gets them.

The workgroup copies the part of each factor that its waves need until the next barrier, all lanes together, in blocks
that lie along memory. In local memory the steps of the sum lie beside each other, whatever the order in memory was, so
that a lane loads its share of a factor in wide pieces (`share`). Where lanes load factors together
(`Matrix.fragments`), local memory has the order of memory instead, so that whole pieces can be copied as they are
(fetch.py); where the unit reads them itself (`Matrix.panels`), too, in panels, which a target may also have copied as
boxes (boxes.py).
"""
from __future__ import annotations
import math

from tinyhw.codegen.kernel.affine import common_factor, linear, make, number
from tinyhw.codegen.kernel.widths import gate_width, is_plain, width_along
from tinyhw.codegen.matrix.sides import Side, Tile, further, place, position, times
from tinyhw.codegen.transform.boxes import MOST_LINES, Tensor, boxes_of, tensor_of, weights
from tinyhw.codegen.transform.tiling import part_of, substitute
from tinyhw.dtype import DType, dtypes
from tinyhw.named_tuple import NamedTuple
from tinyhw.uop.enums import AxisType, Ops
from tinyhw.uop.matrix import BLOCK_ROWS, LINE_BYTES, LINES, PIECE_BYTES, WORD_BYTES, Layout, Matrix, Panels
from tinyhw.uop.ops import UOp

weakint = dtypes.weakint
SEGMENT_BYTES = 32    # of memory that lanes next to each other read; more of them would store to the same banks of
                      # local memory
LOCAL_BYTES = 128     # that local memory gives at once
MOST_TURNS = 8        # of a lane's copying that are all under way at once, in whole pieces
MOST_NARROW = 64      # the same in narrower ones
NEIGHBOURS = 32       # lanes beside each other that copy narrow pieces of a row
RANGES = 3            # new ones for a local array

def share(x: UOp, tile: Tile, side: Side, axis: str, wave: UOp, matrix: Matrix, layout: Layout | None, fresh: int,
          stage: int) -> UOp:
  """A lane's elements of a factor, which has rows or columns (side, axis), from local memory."""
  assert layout is not None, "only panels are none of a lane's"
  if matrix.fragments: return fragment(x, tile, side, axis, wave, matrix, layout, fresh, stage)
  aligned = min(layout.count * x.dtype.itemsize, PIECE_BYTES) // x.dtype.itemsize
  apart = reads_apart(layout, axis, aligned * x.dtype.itemsize)
  turned, cut = pieces_of(x, tile, side, workgroup_of(tile, wave),
                          layout.beside(axis) * x.dtype.itemsize >= PIECE_BYTES)
  array = Array(tile.step.size + aligned, False, layout.digits(axis) if apart else ())
  if turned: array, apart = Array(side.size + PIECE_BYTES // x.dtype.itemsize, True), False
  local = staged(x, tile, side, wave, array, cut, fresh, stage)
  if apart: layout = layout.packed(axis)
  names = {side.parts[-1]: axis, tile.steps: "step"}
  firsts = {r: place(layout, name, wave) for r, name in names.items()}
  beside = layout.elements == (("step", layout.count, 1),)   # steps lie beside each other: one wide load
  dtype, places = x.dtype.vec(layout.count), []
  for element in range(1 if beside else layout.count):
    outer, inner = (position([further(firsts[r], layout, names[r], element) if r in names else r for r in s.parts], s)
                    for s in (side, tile.step))
    places.append(UOp(Ops.INDEX, x.dtype, (local, array.place(outer, inner))))
  if beside: return UOp(Ops.LOAD, dtype, (places[0],))
  return UOp(Ops.VECTORIZE, dtype, tuple([UOp(Ops.LOAD, x.dtype, (p,)) for p in places]))

class Array(NamedTuple):
  """How a factor lies in local memory: rows (or columns) beginning `pitch` elements apart, in an order that `digits`
  tells (packed_place), or (turned) steps, each with all rows beside each other."""
  pitch: int
  turned: bool
  digits: tuple[tuple[int, int], ...] = ()

  def place(self, row: UOp, step: UOp) -> UOp:
    outer, inner = (step, row) if self.turned else (row, step)
    return make(Ops.ADD, weakint, (times(outer, self.pitch), inner))

  def size(self, rows: int, steps: int) -> int: return (steps if self.turned else rows) * self.pitch

class PanelArray(NamedTuple):
  """A factor in panels, as `Panels` has them."""
  panels: Panels
  length: int   # elements of a line
  digits: tuple[tuple[int, int], ...] = ()

  def place(self, row: UOp, step: UOp) -> UOp:
    line, along = (step, row) if self.panels.turned else (row, step)
    piece = self.length * PIECE_BYTES // LINE_BYTES
    number_of_piece = make(Ops.IDIV, weakint, (make(Ops.MOD, weakint, (along, number(self.length))), number(piece)))
    changed = make(Ops.XOR, weakint, (number_of_piece, make(Ops.MOD, weakint, (line, number(LINES)))))
    within = make(Ops.ADD, weakint, (times(changed, piece), make(Ops.MOD, weakint, (along, number(piece)))))
    return make(Ops.ADD, weakint, (self.begin(row, step), within))

  def begin(self, row: UOp, step: UOp) -> UOp:
    """Where the line of an element begins."""
    line, along = (step, row) if self.panels.turned else (row, step)
    before = times(make(Ops.IDIV, weakint, (along, number(self.length))), self.panels.lines)
    return times(make(Ops.ADD, weakint, (before, line)), self.length)

  def size(self, rows: int, steps: int) -> int: return rows * steps

def panels(x: UOp, y: UOp, tile: Tile, wave: UOp, fresh: int, stage: int) -> tuple[UOp, UOp]:
  """Both factors as PANELs."""
  sides = (x, tile.row), (y, tile.column)
  tensors = [tensor_in(factor, tile, side) if tile.boxed else None for factor, side in sides]
  if None in tensors: tensors = [None, None]
  a, b = (panel(factor, tile, side, wave, fresh + RANGES * k, stage + k, tensor)
          for k, ((factor, side), tensor) in enumerate(zip(sides, tensors)))
  return a, b

def tensor_in(x: UOp, tile: Tile, side: Side) -> Tensor | None:
  """A factor as a tensor of which local memory has boxes."""
  along, line = (side, tile.step) if lies_along_side(x, tile, side) else (tile.step, side)
  return tensor_of(x, weights(along.parts), weights(line.parts)) if line.size <= MOST_LINES else None

def panel(x: UOp, tile: Tile, side: Side, wave: UOp, fresh: int, stage: int, tensor: Tensor | None) -> UOp:
  """A factor as a PANEL: local memory lies as memory does, along the steps or along the rows (or columns)."""
  turned, (_, cut) = lies_along_side(x, tile, side), pieces_of(x, tile, side, workgroup_of(tile, wave), True)
  array = PanelArray(Panels(tile.step.size if turned else side.size, turned), LINE_BYTES // x.dtype.itemsize)
  if tensor is None: local = staged(x, tile, side, wave, array, cut, fresh, stage)
  else: local = boxed(tensor, tile, wave, array, side.size * tile.step.size, stage)
  row, step = (position([*s.parts[:-1], number(0)], s) for s in (side, tile.step))
  return UOp(Ops.PANEL, x.dtype, (UOp(Ops.INDEX, x.dtype, (local, array.begin(row, step))),), array.panels)

def boxed(tensor: Tensor, tile: Tile, wave: UOp, array: PanelArray, size: int, stage: int) -> UOp:
  """A local array of panels, of which each is filled by a BOX that is stored whole."""
  local = UOp(Ops.DEFINE_LOCAL, tensor.buffer.dtype, (), (stage, size))
  lanes, lines = tuple(wave if r is tile.columns else r for r in tile.lanes), array.panels.lines
  places = [UOp(Ops.INDEX, local.dtype, (local, number(at))) for at in range(0, size, lines * array.length)]
  stores = [UOp(Ops.STORE, dtypes.void, (place, box, *lanes))
            for place, box in zip(places, boxes_of(tensor, size // lines, lines))]
  return UOp(Ops.AFTER, local.dtype, (local, *stores))

def fragment(x: UOp, tile: Tile, side: Side, axis: str, wave: UOp, matrix: Matrix, layout: Layout, fresh: int,
             stage: int) -> UOp:
  """A factor's elements by a FRAGMENT: blocks of rows that lie in local memory as in memory, with a piece left out
  between them, so that the rows of a block are in different banks. Each lane says where one row is; which one, its
  number's digits tell."""
  size = x.dtype.itemsize
  piece = PIECE_BYTES // size
  turned, cut = pieces_of(x, tile, side, workgroup_of(tile, wave), matrix.turns)
  array = Array((side if turned else tile.step).size + piece, turned)
  local = staged(x, tile, side, wave, array, cut, fresh, stage)
  within = make(Ops.MOD, weakint, (wave, number(BLOCK_ROWS)))
  at = {axis: number(0) if turned else within, "step": within if turned else number(0)}
  span, skipped = BLOCK_ROWS, 1
  for name, radix, stride in layout.elements:
    if skipped < WORD_BYTES // size: skipped *= radix   # the steps of one word
    else:
      digit = make(Ops.MOD, weakint, (make(Ops.IDIV, weakint, (wave, number(span))), number(radix)))
      at[name] = make(Ops.ADD, weakint, (at[name], times(digit, stride)))
      span *= radix
  row, step = (position([*s.parts[:-1], at[name]], s) for s, name in ((side, axis), (tile.step, "step")))
  return UOp(Ops.FRAGMENT, x.dtype.vec(layout.count), (UOp(Ops.INDEX, x.dtype, (local, array.place(row, step))), wave),
             turned)

def lies_along_side(x: UOp, tile: Tile, side: Side) -> bool:
  """Does a factor lie along its rows (or columns) in memory, not along the steps?

  So it is along which its elements are closer.
  """
  piece = PIECE_BYTES // x.dtype.itemsize
  steps = distance(x, tile.steps, piece)
  return steps != 1 and distance(x, side.parts[-1], piece) < steps

def distance(x: UOp, r: UOp, most: int) -> float:
  """How far apart, in elements, memory has what a factor is computed from along a range, as its first elements tell;
  infinity where that varies."""
  return min([distance_along(u.src[0].src[1], r, most) for u in x.toposort() if u.op is Ops.LOAD], default=math.inf)

def workgroup_of(tile: Tile, wave: UOp) -> int:
  """Lanes that copy a factor together."""
  return math.prod(int((wave if r is tile.columns else r).src[0].arg) for r in tile.lanes)

class Digits:
  """A number that is taken apart into digits, the lowest one first. rest: what is left of it."""
  def __init__(self, rest: UOp): self.rest = rest

  def take(self, radix: int) -> UOp:
    digit, self.rest = (make(op, weakint, (self.rest, number(radix))) for op in (Ops.MOD, Ops.IDIV))
    return digit

def digits_of(at: UOp, side: Side, x: UOp) -> dict[UOp, UOp]:
  """The other way: its digits, for a factor, or the number itself as the last of them, if that makes no difference to
  the factor."""
  if in_a_row(x, side): return {**dict.fromkeys(side.parts[:-1], number(0)), side.parts[-1]: at}
  digits = Digits(at)
  found = {r: digits.take(r.src[0].arg) for r in reversed(side.parts[1:])}
  return {**found, side.parts[0]: digits.rest}

def in_a_row(x: UOp, side: Side) -> bool:
  """Does memory that a factor is loaded from have the rows (columns, steps) of a tile at one distance from each
  other?"""
  if x.op is not Ops.LOAD or len(x.src) > 1: return False
  terms, _ = linear(x.src[0].src[1])
  distance = terms.get(side.parts[-1], 0)
  if any(terms.pop(r, 0) != distance * weight for r, weight in weights(side.parts).items()): return False
  return not any(r in term.ranges for term in terms for r in side.parts)

class Pieces(NamedTuple):
  """How a factor is cut for copying: a lane has blocks of so many rows (or columns) by so many steps; `row` of them
  side by side, then along the steps (`deep` of them, if that is not 0), then the other rows, then further steps."""
  high: int
  wide: int
  row: int
  deep: int = 0

  def begin(self, block: UOp, side: Side, steps: Side) -> tuple[UOp, UOp]:
    """Where a block begins, by its number: how many blocks are before it along the rows (or columns), and how many
    along the steps."""
    digits = Digits(block)
    near, far = digits.take(self.row), number(0)
    if self.deep:
      first, far = digits.take(self.deep), digits.take(side.size // (self.row * self.high))
      step = make(Ops.ADD, weakint, (times(digits.rest, self.deep), first))
    elif self.row * self.high < side.size: step, far = digits.take(steps.size // self.wide), digits.rest
    else: step = digits.rest
    return make(Ops.ADD, weakint, (times(far, self.row), near)), step

def pieces_of(x: UOp, tile: Tile, side: Side, workgroup: int, turns: bool) -> tuple[bool, Pieces]:
  """Whether local memory should have a factor along its rows (or columns), if it may (turns), and the blocks in which
  it is copied.

  Blocks are pieces that lie along memory. Where they must lie along the steps in local memory, but memory lies along
  the rows, a block has several steps too, which it turns into neighbours. Where memory has no pieces that a lane could
  load at once (an odd shift, a gate for each element, a stride), lanes load elements side by side instead, and a block
  is a piece the other way: what a lane loads one after the other, it stores at once. Not along rows that are apart in
  different ways: they are the same in each iteration, so their places would take registers all the time.
  """
  itemsize = x.dtype.itemsize
  piece, most = PIECE_BYTES // itemsize, max(side.size * tile.step.size // workgroup, 1)
  deep, tall = math.gcd(piece, tile.step.size), math.gcd(piece, side.size)
  if not lies_along_side(x, tile, side):
    narrow = narrowed(x, tile.steps, deep, most, tile.aligned)
    even = all(distance(x, r, piece) < math.inf for r in (tile.steps, side.parts[-1]))
    if narrow == deep and even and at_once(x, tile.step, deep, tile.aligned) == 1:
      return turns, Pieces(part_of(tall, most), 1, 1)
    return False, Pieces(1, min(narrow, part_of(at_once(x, tile.step, deep, tile.aligned), most)) if even else narrow,
                         1)
  narrow = narrowed(x, side.parts[-1], tall, most, tile.aligned)
  high = at_once(x, side, tall, tile.aligned) if narrow == tall else narrow
  if high == 1 and narrow > 1: return False, Pieces(1, part_of(deep, most), side.size)
  if turns and high == tall: return True, Pieces(high, 1, side.size // high)
  if turns:   # of narrow pieces a lane has many, so they are few steps' by few steps', each with one gate
    row = math.gcd(side.size // high, NEIGHBOURS)
    return True, Pieces(high, 1, row, math.gcd(max(workgroup // row, 1), tile.step.size))
  high = part_of(high, most)
  wide = part_of(math.gcd(piece // 2, tile.step.size), most // high)
  return False, Pieces(high, wide, math.gcd(max(SEGMENT_BYTES // (high * itemsize), 1), side.size // high))

def narrowed(x: UOp, r: UOp, wide: int, most: int, aligned: bool) -> int:
  """Elements of a block along a range: what one access may have.

  Of more lanes than pieces (most: of a lane) each has a part of a piece anyway.
  """
  return width_along(x, r, wide, aligned) if wide <= most else part_of(wide, most)

def most_turns(cut: Pieces, dtype: DType) -> int:
  """How many blocks a lane copies at once."""
  return min(MOST_TURNS * max(PIECE_BYTES // (cut.high * cut.wide * dtype.itemsize), 1), MOST_NARROW)

def at_once(x: UOp, side: Side, most: int, aligned: bool) -> int:
  """How many elements of a factor that lie beside each other along rows (or columns, or steps) a lane can load at once:
  a power of two. aligned: it must be certain that they begin at a multiple of their number. Of loads that `width_along`
  knows, as many as may be."""
  r = side.parts[-1]
  near = [u for u in x.toposort() if u.op is Ops.LOAD and not is_plain(u, r)
          and distance_along(u.src[0].src[1], r, most) < math.inf]
  while most > 1 and not (side.size % most == 0 and all(is_piece(u, side, most, aligned) for u in near)): most //= 2
  return most

def is_piece(load: UOp, side: Side, size: int, aligned: bool) -> bool:
  """Are so many elements, from a multiple of their number on, one piece of memory, with one gate?"""
  block, within = (UOp(Ops.RANGE, weakint, (number(n),), (-1 - k, AxisType.UPCAST))
                   for k, n in enumerate((side.size // size, size)))
  index, *gates = (substitute(u, digits_of(make(Ops.ADD, weakint, (times(block, size), within)), side, load))
                   for u in (load.src[0].src[1], *load.src[1:2]))
  if any(gate_width(gate, within, size) < size for gate in gates): return False
  if aligned: return multiple_along(index, within, size) == size
  terms, _ = linear(index)
  return terms.pop(within, 0) == 1 and not any(within in term.ranges for term in terms)

def distance_along(index: UOp, r: UOp, most: int) -> float:
  """The distance from each other, if it is one, of the first elements along a range, up to so many; not 0."""
  terms, _ = linear(index)
  if r in terms and not any(r in term.ranges for term in terms if term is not r): return abs(terms[r])
  places = [substitute(index, {other: number(k if other is r else 0) for other in index.ranges})
            for k in range(min(most, int(r.src[0].arg)))]
  if any(u.op is not Ops.CONST for u in places): return math.inf
  found = {abs(v.arg - u.arg) for u, v in zip(places, places[1:])}
  return found.pop() if len(found) == 1 and 0 not in found else math.inf

def reads_apart(layout: Layout, axis: str, size: int) -> bool:
  """Whether lanes that read so many bytes each at once would do so from rows (or columns) that are not side by side,
  and so from the same banks."""
  places = {layout.place(axis, lane, 0) for lane in range(LOCAL_BYTES // size)}
  return places != set(range(len(places)))

def packed_place(row: UOp, digits: tuple[tuple[int, int], ...]) -> UOp:
  """Where local memory has a row (or column). digits: of its number within a matrix, as lanes have them: they are read
  in this order."""
  if not digits: return row
  size = math.prod(radix for radix, _ in digits)
  total, span = times(make(Ops.IDIV, weakint, (row, number(size))), size), 1
  for radix, stride in digits:
    digit = make(Ops.MOD, weakint, (make(Ops.IDIV, weakint, (row, number(stride))), number(radix)))
    total, span = make(Ops.ADD, weakint, (total, times(digit, span))), span * radix
  return total

def staged(x: UOp, tile: Tile, side: Side, wave: UOp, array: Array | PanelArray, cut: Pieces, fresh: int,
           stage: int) -> UOp:
  """A local array of a factor, some elements longer than it must be in each row, so that lanes that read rows side by
  side do so from different banks. All lanes copy blocks, `turns` times."""
  lanes = tuple(wave if r is tile.columns else r for r in tile.lanes)
  workgroup = workgroup_of(tile, wave)
  blocks = side.size * tile.step.size // (cut.high * cut.wide)
  turns = -(-blocks // workgroup)
  kind = AxisType.UPCAST if turns <= most_turns(cut, x.dtype) else AxisType.STAGE
  turn, down, along = (UOp(Ops.RANGE, weakint, (number(n),), (fresh + k, t)) for k, (n, t) in enumerate((
    (turns, kind), (cut.high, AxisType.UPCAST), (cut.wide, AxisType.UPCAST))))
  at = turn
  for r in lanes: at = make(Ops.ADD, weakint, (make(Ops.MUL, weakint, (at, r.src[0])), r))
  gate = make(Ops.CMPLT, dtypes.bool, (at, number(blocks)))
  idle = isinstance(array, PanelArray)   # lanes without a block of their own load nothing; elsewhere another's, so that
                                         # loads need no gate
  if not idle: at = make(Ops.MOD, weakint, (at, number(blocks)))
  row, step = (make(Ops.ADD, weakint, (times(first, size), within))
               for first, size, within in zip(cut.begin(at, side, tile.step), (cut.high, cut.wide), (down, along)))
  value = substitute(x, {**digits_of(row, side, x), **digits_of(step, tile.step, x)})
  local = UOp(Ops.DEFINE_LOCAL, x.dtype, (), (stage, array.size(side.size, tile.step.size)))
  place = UOp(Ops.INDEX, x.dtype, (local, array.place(packed_place(row, array.digits), step)))
  copies = side_by_side(value, place, along) or side_by_side(value, place, down) or [(value, place)]
  if idle: copies = [(gated(what, gate), to) for what, to in copies]
  stores = [make(Ops.STORE, dtypes.void, (to, what, gate, turn, *[r for r in (down, along) if r in to.ranges], *lanes))
            for what, to in copies]
  return UOp(Ops.AFTER, x.dtype, (local, *stores))

def gated(value: UOp, gate: UOp) -> UOp:
  """A value whose loads are done only where a gate is open, too. What others fill stays as it is."""
  new: dict[UOp, UOp] = {}
  for u in value.toposort(lambda u: u.op not in (Ops.STAGE, Ops.AFTER)):
    src = tuple([new.get(s, s) for s in u.src])
    if u.op is Ops.LOAD:
      src = (src[0], make(Ops.AND, dtypes.bool, (src[1], gate)) if len(src) > 1 else gate,
             *(src[2:] or (UOp.const(u.dtype, 0),)))
    new[u] = u if src == u.src else make(u.op, u.dtype, src, u.arg)
  return new[value]

def side_by_side(value: UOp, place: UOp, r: UOp) -> list[tuple[UOp, UOp]]:
  """What is copied to a place for each point of a range as few vectors and their places, where that lies along it in
  memory and in local memory, at multiples of what is accessed. Nothing where it does not: `runs` may find more."""
  length = int(r.src[0].arg)
  if length == 1 or value.op is not Ops.LOAD or len(value.src) > 1: return []
  most = [multiple_along(index, r, length) for index in (value.src[0].src[1], place.src[1])]
  if most[0] < length or most[1] == 1: return []
  dtype, size = value.dtype, most[1]
  whole = UOp(Ops.LOAD, dtype.vec(length), (substitute(value.src[0], {r: number(0)}),))
  pieces = {k: whole if size == length else UOp(Ops.GEP, dtype.vec(size), (whole,), k) for k in range(0, length, size)}
  return [(piece, substitute(place, {r: number(k)})) for k, piece in pieces.items()]

def multiple_along(index: UOp, r: UOp, length: int) -> int:
  """The most elements, a divisor of `length`, that lie beside each other along a range, and begin at multiples of
  their number."""
  terms, constant = linear(index)
  if terms.pop(r, 0) != 1 or any(r in term.ranges for term in terms): return 1
  return math.gcd(length, constant, common_factor(terms))
