"""Spread a kernel over the lanes of workgroups, for targets whose lanes are threads (`Capabilities.lanes`).

An output range becomes lanes. All reductions must depend on it, so that no lane repeats the work of another. Of such
ranges the one with adjacent memory is taken. A lane then computes enough neighbours for a wide access (coalesce.py).
Lanes share a reduction instead (lane_reduction.py) where memory is adjacent only along the sum, or where results are
few. A product that the matrix unit can compute gets MATRIX opts (matrix_tile.py). heuristic.py makes the grid of the
remaining ranges.
"""
from __future__ import annotations
import math
from typing import TYPE_CHECKING

from tinyhw.codegen.kernel.access import access_of
from tinyhw.codegen.kernel.affine import common_factor, linear
from tinyhw.codegen.kernel.grid import ranges_of
from tinyhw.codegen.kernel.vector_width import width_along
from tinyhw.codegen.matrix.local import at_once, distance
from tinyhw.codegen.matrix.matrix import factors
from tinyhw.codegen.matrix.operands import ProductRange
from tinyhw.codegen.plan.matrix_tile import Choice, tile
from tinyhw.codegen.plan.tile_shape import MOST_PERIOD, CopiedOperand, PlannedProduct
from tinyhw.codegen.transform.bulk_copies import tensor_of
from tinyhw.codegen.transform.tiling import Opt, OptOps, part_of, size_of
from tinyhw.machine.ir.target import Capabilities
from tinyhw.uop.enums import Ops
from tinyhw.uop.matrix import PIECE_BYTES, Matrix
from tinyhw.uop.ops import UOp
if TYPE_CHECKING:
  from tinyhw.codegen.plan.heuristic import Nest

WAVES = 4            # of a workgroup, at most
MOST_REPETITIONS = 16  # of the body of a reduction: loads of a lane that are in flight at once
MOST_HELD = 32       # elements of a row that a lane holds in registers
MOST_LANES = 512     # of a workgroup that shares sums of columns, where registers allow them
SEGMENT_BYTES = 32   # of memory that adjacent lanes should read
LONG = 4             # steps of all lanes; from this number on, a few terms more than they divide do not matter
LEAST_SHARED = 4     # lanes along a sum that are worth a stage
MOST_RUNNING = 2048  # pairs of a result and a term in a running sum whose results one lane computes
MOST_OPERATIONS = 128  # of all repetitions of a body

def spread(nest: Nest, capabilities: Capabilities) -> tuple[Opt, ...]:
  """Return the opts that make lanes; none for a kernel without an output range."""
  found = products(nest, capabilities)
  if found: return found[0]
  block = running(nest, capabilities)
  if block: return running_lanes(nest, block, capabilities)
  ranges = [r for r in nest.ranges if size_of(r) > 1]
  shared = [r for r in ranges if all(r in u.ranges for u in nest.reduces)] or ranges
  best = max(shared, key=lambda r: (adjacent(nest, r), r.arg), default=None)
  summed = along_reductions(nest, best, capabilities)
  if summed: return (*summed, *unrolled(nest, summed))
  if best is None: return ()
  columns = outputs_and_reductions(nest, best, capabilities)
  if columns: return columns
  repetitions = repetitions_along(nest, best, capabilities)
  lanes = lanes_along(size_of(best) // repetitions, capabilities.lanes)
  more = further_lanes(nest, lanes, [r for r in shared if r is not best], capabilities)
  neighbouring = [Opt(OptOps.UPCAST, best.arg[0], repetitions)] * (repetitions > 1)
  if not neighbouring and not more and not nest.reduces: neighbouring = along_contiguous(nest, best, capabilities)
  return (Opt(OptOps.LOCAL, best.arg[0], lanes), *neighbouring, *more, *unrolled(nest, ()))

def running(nest: Nest, capabilities: Capabilities) -> tuple[UOp, UOp] | None:
  """Return the ranges of a running sum: that of its results and that of its terms. None for another kernel, and for one
  with too few blocks for all lanes.

  A mask depends on both, and the terms on the second one only. So a lane loads a term once for all results. If the mask
  compares positions, it also folds a term once.
  """
  if len(nest.reduces) != 1 or len(ranges_of(nest.reduces[0])) != 1: return None
  (summed,), value = ranges_of(nest.reduces[0]), nest.reduces[0].src[0]
  if value.op is not Ops.WHERE or value.src[2].op is not Ops.CONST or summed not in value.src[0].ranges: return None
  for r in nest.ranges:
    if r not in value.src[0].ranges or r in value.src[1].ranges: continue
    blocks = math.prod(size_of(x) for x in nest.ranges if x is not r)
    few = blocks * WAVES < capabilities.threads * capabilities.lanes
    return None if few or not 1 < size_of(r) * size_of(summed) <= MOST_RUNNING else (r, summed)
  return None

def running_lanes(nest: Nest, block: tuple[UOp, UOp], capabilities: Capabilities) -> tuple[Opt, ...]:
  """Return the opts of a running sum: a lane computes all results of a block, each from the one before."""
  others = [r for r in nest.ranges if r is not block[0] and size_of(r) > 1]
  best = max(others, key=lambda r: (adjacent(nest, r), r.arg), default=None)
  whole = [Opt(OptOps.UPCAST, r.arg[0], size_of(r)) for r in block]
  if best is None: return tuple(whole)
  lanes = lanes_along(size_of(best), capabilities.lanes)
  more = further_lanes(nest, lanes, [r for r in others if r is not best], capabilities)
  return (Opt(OptOps.LOCAL, best.arg[0], lanes), *more, *whole)

def unrolled(nest: Nest, taken: tuple[Opt, ...]) -> list[Opt]:
  """Return repetitions along the innermost ranges of reductions, so that many loads are in flight at once.

  taken: opts that ranges of reductions already have. The order of additions does not change, except where a loop over
  lanes is inside.
  """
  found: dict[int, Opt] = {}
  for u in nest.reduces:
    room = min(MOST_REPETITIONS, MOST_OPERATIONS // max(nest.operations, 1))
    for r in reversed(ranges_of(u)):
      if r.src[0].op is not Ops.CONST: break
      own = [o for o in taken if o.axis == r.arg[0]]
      if own:
        room //= math.prod(o.amount for o in own if o.op is OptOps.UPCAST)
        continue
      repetitions = part_of(size_of(r), room)
      if repetitions > 1: found[r.arg[0]] = Opt(OptOps.UPCAST, r.arg[0], repetitions)
      if repetitions < size_of(r): break
      room //= repetitions
  return list(found.values())

def further_lanes(nest: Nest, lanes: int, ranges: list[UOp], capabilities: Capabilities) -> list[Opt]:
  """Return lanes along other ranges if the given lanes do not fill a wave.

  Each is the largest part that keeps the workgroup small.
  """
  found = []
  for r in sorted(ranges, key=lambda r: (adjacent(nest, r), r.arg), reverse=True):
    if lanes >= capabilities.lanes: break
    part = part_of(size_of(r), capabilities.lanes * WAVES // lanes)
    if part > 1: found.append(Opt(OptOps.LOCAL, r.arg[0], part))
    lanes *= part
  return found

def adjacent(nest: Nest, r: UOp) -> int:
  """Count the accesses that are adjacent, or at one address, for lanes along r."""
  return sum(a.distance(r) in (0, 1) for a in nest.accesses)

def repetitions_along(nest: Nest, r: UOp, capabilities: Capabilities) -> int:
  """Return the number of neighbours that a lane computes with one access (coalesce.py), if there is enough work for all
  lanes."""
  if not all(a.stride(r) in (0, 1) for a in nest.accesses): return 1
  repetitions = elements_per_access(nest, capabilities)
  points, wave = math.prod(size_of(x) for x in nest.ranges), capabilities.lanes
  while repetitions > 1 and (size_of(r) % repetitions or size_of(r) < repetitions * wave
                             or points < repetitions * capabilities.threads * wave):
    repetitions //= 2
  return repetitions

def along_contiguous(nest: Nest, lanes: UOp, capabilities: Capabilities) -> list[Opt]:
  """Return repetitions along the contiguous range of strided loads, as in a transpose, if there is enough work for all
  lanes.

  Each lane then uses up at least a whole segment of its loads at once.
  """
  strided = [a for a in nest.accesses if not a.is_store and a.distance(lanes) not in (0, 1)]
  points, wave = math.prod(size_of(x) for x in nest.ranges), capabilities.lanes
  for r in nest.ranges:
    sizes = [a.node.dtype.itemsize for a in strided if a.stride(r) == 1]
    if not sizes or r is lanes: continue
    repetitions = min(SEGMENT_BYTES // min(sizes), MOST_OPERATIONS // max(nest.operations, 1))
    repetitions = 1 << max(repetitions.bit_length() - 1, 0)
    while repetitions > 1 and (size_of(r) % repetitions or points < repetitions * capabilities.threads * wave):
      repetitions //= 2
    if repetitions > 1: return [Opt(OptOps.UPCAST, r.arg[0], repetitions)]
  return []

def elements_per_access(nest: Nest, capabilities: Capabilities) -> int:
  """Return the elements of the widest type in memory that one access of a lane can have."""
  return max(capabilities.vector_bytes // max(a.node.src[0].dtype.itemsize for a in nest.accesses), 1)

def elements_along(nest: Nest, r: UOp, capabilities: Capabilities) -> int:
  """The same for the types that are contiguous along a range."""
  return max(capabilities.vector_bytes // max([a.node.src[0].dtype.itemsize for a in nest.accesses if a.stride(r) != 0],
                                              default=1), 1)

def along_reductions(nest: Nest, best: UOp | None, capabilities: Capabilities) -> tuple[Opt, ...]:
  """Return lanes along the ranges of all reductions.

  They pay where memory is more contiguous along these ranges than along the best output range, or where the output is
  too small. With equal contiguity, an output is too small if it has fewer results than lanes that should run.

  Output ranges that no reduction depends on get the same lanes: a workgroup computes a whole row of a softmax, in
  several steps over the same lanes.
  """
  wave = capabilities.lanes
  if not nest.reduces or any(r not in nest.ranges for u in nest.reduces for r in u.ranges): return ()
  candidates = [[r for r in ranges_of(u) if size_of(r) >= 2 * wave] for u in nest.reduces]
  short = [math.prod(size_of(r) for r in ranges_of(u)) for u, found in zip(nest.reduces, candidates) if not found]
  candidates = [found for found in candidates if found]
  if not candidates or max(short, default=0) >= 2 * wave: return ()   # each lane computes short ones itself
  # two reductions may share a range
  found = {max(ranges, key=lambda r: (adjacent(nest, r), r.arg)): None for ranges in candidates}
  rows = [r for r in nest.ranges if all(r in u.ranges for u in nest.reduces)]
  if best is not None and best in rows and (size_of(best) >= wave or outputs_and_reductions(nest, best, capabilities)):
    closer = adjacent(nest, best) - min(adjacent(nest, r) for r in found)
    results = math.prod(size_of(r) for r in rows)
    if closer > 0 or closer == 0 and results >= capabilities.threads * wave: return ()
  lanes = lanes_per_row(nest, list(found), math.prod(size_of(r) for r in rows), capabilities)
  # it is better to repeat the reduction
  if best is not None and best not in rows and size_of(best) > lanes * max(size_of(r) for r in found): return ()
  inner = [r for r in nest.ranges if not any(r in u.ranges for u in nest.reduces) and size_of(r) >= lanes]
  if inner: found[max(inner, key=lambda r: (adjacent(nest, r), r.arg))] = None
  held = rows_in_registers(nest, list(found), capabilities)
  if held: return held
  return tuple([o for r in found for o in row_opts(nest, r, lanes, capabilities)])

def outputs_and_reductions(nest: Nest, best: UOp, capabilities: Capabilities) -> tuple[Opt, ...]:
  """Return lanes along the output and along the sum.

  This is for memory that is contiguous along the output, with too few results for the card. Adjacent lanes read
  adjacent elements, and the other lanes read further terms. Lanes are limited so that each may use any number of
  registers, and so that each has a body of its own.
  """
  wave, results = capabilities.lanes, math.prod(size_of(r) for r in nest.ranges)
  summed = {ranges_of(u) for u in nest.reduces}
  if len(summed) != 1 or not all(r in u.ranges for u in nest.reduces for r in nest.ranges): return ()
  if not 0 < results < capabilities.threads * wave: return ()   # 0: they depend on variables
  ranges, sizes = summed.pop(), [a.node.src[0].dtype.itemsize for a in nest.accesses if a.stride(best) == 1]
  along, terms = max(ranges, key=lambda r: (size_of(r), r.arg)), math.prod(size_of(r) for r in ranges)
  lanes_n = part_of(size_of(best), wave)
  while (lanes_n % 2 == 0 and lanes_n // 2 * min(sizes, default=0) >= SEGMENT_BYTES
         and results < lanes_n * capabilities.threads // WAVES):
    lanes_n //= 2
  if lanes_n * max(sizes, default=0) < SEGMENT_BYTES: return ()
  most = min(MOST_LANES, capabilities.unit_registers // max(capabilities.vector_registers, 1) or MOST_LANES)
  room = min(most // lanes_n, -(-2 * capabilities.threads * wave // results), terms // MOST_REPETITIONS)
  lanes_k = part_of(size_of(along), room)
  if lanes_k < LEAST_SHARED: return ()
  lanes = Opt(OptOps.LOCAL, best.arg[0], lanes_n), Opt(OptOps.LOCAL, along.arg[0], lanes_k)
  if len(ranges) > 1: return (*lanes, *unrolled(nest, lanes))
  repetitions = part_of(terms // lanes_k, min(MOST_REPETITIONS, MOST_OPERATIONS // max(nest.operations, 1)))
  return (*lanes, *[Opt(OptOps.UPCAST, along.arg[0], repetitions)] * (repetitions > 1))

def lanes_per_row(nest: Nest, ranges: list[UOp], rows: int, capabilities: Capabilities) -> int:
  """Return the number of lanes that share a row.

  It is the divisor of the row's ranges with which a wave loads most bytes at once, since each iteration waits for
  memory. It is at most two waves, as each lane folds the results of all at the end. Where rows are few it may be more,
  and then the bytes that all of them load at once count. It is one wave if a wave loads a row at once and its lanes
  exchange their results without shared memory.
  """
  wave, few = capabilities.lanes, rows * 2 < capabilities.threads
  most = wave * (WAVES if few else 2)
  common = math.gcd(*[size_of(r) for r in ranges])
  longest = max(size_of(r) for r in ranges)
  exchanges = capabilities.exchanges and not capabilities.slow_exchanges
  if exchanges and common % wave == 0 and longest <= wave * elements_per_access(nest, capabilities): return wave
  def loaded(d: int) -> float:
    return min(d * neighbours(nest, r, d, capabilities) for r in ranges) / (1 if few else -(-d // wave))
  return max([d for d in range(wave, most + 1) if common % d == 0], key=lambda d: (loaded(d), d), default=most)

def row_opts(nest: Nest, r: UOp, lanes: int, capabilities: Capabilities) -> list[Opt]:
  """Return lanes along a range, each with the neighbours of one access, or with strided ones where no access is wide.

  There are repetitions only where they divide the range. The range may also have LONG times as many iterations, so that
  the remainder is small.
  """
  repetitions = neighbours(nest, r, lanes, capabilities)
  if repetitions == 1:
    possible = halved(most_repetitions(nest, r, capabilities))
    repetitions = next((c for c in possible if size_of(r) >= LONG * lanes * c), 1)
  kind = OptOps.STRIPED if capabilities.aligned and not rows_aligned(nest, r, repetitions) else OptOps.UPCAST
  return [Opt(OptOps.LOCAL, r.arg[0], lanes)] + [Opt(kind, r.arg[0], repetitions)] * (repetitions > 1)

def rows_in_registers(nest: Nest, ranges: list[UOp], capabilities: Capabilities) -> tuple[Opt, ...]:
  """Return lanes that hold a whole row, for rows that several ranges read; nothing where a row is too long.

  Each lane has all of its elements at once, so that the loads of the ranges are the same. Lanes are as few as possible
  with half of MOST_HELD elements, if there are such, and whole waves where these divide the row.
  """
  sizes = {size_of(r) for r in ranges}
  wave, n = capabilities.lanes, max(sizes)
  possible = [d for d in range(wave, 2 * WAVES * wave + 1) if n % d == 0 and n // d <= MOST_HELD]
  if len(ranges) < 2 or len(sizes) > 1 or not possible: return ()
  lanes = min(possible, key=lambda d: (n // d > MOST_HELD // 2, d % wave != 0, d))
  found = []
  for r in ranges:
    wide = next((c for c in halved(most_repetitions(nest, r, capabilities)) if n // lanes % c == 0
                 and (not capabilities.aligned or rows_aligned(nest, r, c))), 1)
    found += [Opt(OptOps.LOCAL, r.arg[0], lanes), *[Opt(OptOps.UPCAST, r.arg[0], wide)] * (wide > 1),
              *[Opt(OptOps.STRIPED, r.arg[0], n // lanes // wide)] * (n // lanes > wide)]
  return tuple(found)

def rows_aligned(nest: Nest, r: UOp, elements: int) -> bool:
  """Is contiguous memory along a range aligned to this many elements, in each iteration of the other ranges?"""
  return not any(a.opaque or stride % elements for a in nest.accesses if a.stride(r) != 0
                 for other, stride in a.strides.items() if other is not r)

def neighbours(nest: Nest, r: UOp, lanes: int, capabilities: Capabilities) -> int:
  """Return the neighbouring iterations that a lane executes at once: those of one access, if that divides the range."""
  return next((c for c in halved(most_repetitions(nest, r, capabilities)) if size_of(r) % (lanes * c) == 0), 1)

def most_repetitions(nest: Nest, r: UOp, capabilities: Capabilities) -> int:
  """Return the number of iterations of a range that one access can have."""
  return elements_along(nest, r, capabilities) if adjacent(nest, r) == len(nest.accesses) else 1

def halved(n: int) -> list[int]:
  """Return n and its halves, down to 2."""
  return [n >> k for k in range(n.bit_length() - 1)]

def lanes_along(n: int, wave: int) -> int:
  """Return the lanes for a range of n iterations: all of them, or a divisor that fills at least a wave, or whole waves.
  """
  most = wave * WAVES
  return n if n <= most else next((d for d in range(most, wave - 1, -1) if n % d == 0), most)

# ***** products *****

def products(nest: Nest, capabilities: Capabilities) -> list[tuple[Opt, ...]]:
  """Return opts for the matrix unit, cheapest first.

  These are the opts for the first shape that fits the product. For units that read shared memory there are opts with
  copies by lanes and with bulk copies. Of equal costs the copies by lanes come first. Bulk copies win
  where lanes cannot copy whole pieces.
  """
  choices: list[Choice] = []
  for matrix in capabilities.matrix:
    if matrix.c is None or not matrix.shared_operands and (matrix.lanes != capabilities.lanes or choices): continue
    for bulk in (False, True) if matrix.shared_operands and capabilities.bulk_copies else (False,):
      choice = product(nest, matrix, capabilities, bulk)
      if choice is not None: choices.append(choice)
  return [choice.opts for choice in sorted(choices, key=lambda choice: (choice.cost, choice.bulk))]

def product(nest: Nest, matrix: Matrix, capabilities: Capabilities, bulk: bool = False) -> Choice | None:
  """Return opts for the matrix unit, if the only reduction is a product of operands A and B.

  Operand A has the rows, operand B has the columns, and both have the summed range. bulk: they are copied by bulk
  copies.
  """
  if len(nest.reduces) != 1 or not all(r in nest.reduces[0].ranges for r in nest.ranges): return None
  pair = factors(nest.reduces[0], matrix)
  if pair is None: return None
  lines = [copied_along(x) for x in pair] if matrix.shared_operands and not bulk else []
  inner = [r for r in ranges_of(nest.reduces[0]) if size_of(r) >= matrix.k and all(r in x.ranges for x in pair)]
  if not inner: return None
  k = inner[-1]
  if not matrix.transposes and None not in lines and any(r is not k for r in lines): return None
  store = access_of(nest.store)
  for n in sorted(nest.ranges, key=lambda r: (store.stride(r) == 1, r.arg), reverse=True):
    owners = [x for x in pair if n in x.ranges]
    if size_of(n) < matrix.n or len(owners) != 1: continue
    rows = pair[0] if owners[0] is pair[1] else pair[1]
    of_rows = [r for r in nest.ranges if r.arg < n.arg and size_of(r) >= matrix.m and r in rows.ranges
               and r not in owners[0].ranges]
    if not of_rows: continue
    m = of_rows[-1]
    operands = (rows, m), (owners[0], n)
    tensors = ((bulk or None in lines) and capabilities.bulk_copies
               and all(is_tensor(x, r, k, matrix.transposes) for x, r in operands))
    if bulk != tensors: return None   # where lanes cannot copy whole pieces, bulk copies are better than narrow ones
    copied = [copied_operand(x, r, k, matrix.transposes, capabilities.aligned) for x, r in operands]
    if None in lines and None in copied: return None
    others = math.prod(max(size_of(r), 1) for r in nest.ranges if r is not m and r is not n)
    a, b = (x or computed_operand(factor, r, k, capabilities.aligned) for x, (factor, r) in zip(copied, operands))
    return tile(m, n, k, PlannedProduct(size_of(m), size_of(n), size_of(k), others, (a, b), bulk), matrix, capabilities,
                nest.in_place)
  return None

def is_tensor(factor: UOp, mn_range: UOp, summed: UOp, transposes: bool) -> bool:
  """Is an operand a tensor for bulk copies, along the sum or, if the unit transposes, along its other range?"""
  orders = ((summed, mn_range), (mn_range, summed))
  return any(tensor_of(factor, {along: 1}, {line: 1}) is not None for along, line in orders[:1 + transposes])

def copied_operand(factor: UOp, mn_range: UOp, summed: UOp, transposes: bool, aligned: bool) -> CopiedOperand | None:
  """Return an operand that lanes copy in pieces of adjacent elements.

  Return None where it is not an element of memory, or where its address is expensive to compute.
  """
  if factor.op is not Ops.LOAD: return None
  terms, first = linear(factor.src[0].src[1])
  if any(term.op is not Ops.RANGE for term in terms): return None
  strides, piece = access_of(factor).strides, PIECE_BYTES // factor.dtype.itemsize
  along = next((r for r in (summed, mn_range)[:1 + transposes] if strides.get(r) == 1), None)
  if along is None: return None
  lines = [first, *[stride for r, stride in strides.items() if r is not along]]
  alignment = math.gcd(*[n * factor.dtype.itemsize for n in lines], 1 << 10)
  return CopiedOperand(along is summed, piece // width_along(factor, along, piece, aligned), len(factor.src) > 1,
                 bytes_of(factor), False, alignment)

def computed_operand(factor: UOp, mn_range: UOp, summed: UOp, aligned: bool) -> CopiedOperand:
  """Return an operand whose addresses need divisions. Lanes load pieces of it where those are certain."""
  gated = any(u.op is Ops.LOAD and len(u.src) > 1 for u in factor.toposort())
  along, piece = lies_along(factor, mn_range, summed), PIECE_BYTES // factor.dtype.itemsize
  once = min(at_once(factor, ProductRange((along,)), piece, aligned), width_along(factor, along, piece, aligned))
  return CopiedOperand(along is summed, piece // once, gated, bytes_of(factor), True, factor.dtype.itemsize * once,
                 period_along(factor, mn_range if along is summed else summed))

def period_along(factor: UOp, r: UOp) -> int:
  """Return the size of aligned blocks of a range in which quotients and conditions that depend on it are constant."""
  found = MOST_PERIOD
  for u in factor.toposort():
    if u.op not in (Ops.IDIV, Ops.MOD, Ops.CMPLT, Ops.CMPNE) or r not in u.src[0].ranges: continue
    terms, constant = linear(u.src[0])
    stride = terms.pop(r, 0)
    if not stride: continue    # it depends on quotients, which this loop has met
    if u.op not in (Ops.IDIV, Ops.MOD) or u.src[1].op is not Ops.CONST: return 1
    divisor = u.src[1].arg
    if math.gcd(constant, common_factor(terms)) % divisor: return 1
    found = math.gcd(found, divisor // math.gcd(divisor, stride))
  return found

def bytes_of(factor: UOp) -> int:
  """Return the bytes of the buffers that an operand is computed from."""
  return sum({u: u.arg[1] * u.dtype.itemsize for u in factor.toposort() if u.op is Ops.PARAM}.values())

def lies_along(factor: UOp, mn_range: UOp, summed: UOp) -> UOp:
  """Return the range along which an operand's elements are closer in memory, that of the sum if both are alike."""
  piece = PIECE_BYTES // factor.dtype.itemsize
  return mn_range if distance(factor, mn_range, piece) < distance(factor, summed, piece) else summed

def copied_along(factor: UOp) -> UOp | None:
  """Return the contiguous range of an operand if it can be copied in whole pieces; everything else moves whole pieces.
  """
  if factor.op is not Ops.LOAD or len(factor.src) > 1: return None
  piece = PIECE_BYTES // factor.dtype.itemsize
  along = piece_along(factor, piece)
  return along if along is not None and size_of(along) % piece == 0 else None

def piece_along(load: UOp, size: int) -> UOp | None:
  """Return the range along which an ungated LOAD has this many contiguous elements, aligned to their number."""
  terms, constant = linear(load.src[0].src[1])
  along = [r for r, stride in terms.items() if stride == 1]
  if len(load.src) > 1 or len(along) != 1 or along[0].op is not Ops.RANGE: return None
  others = [stride for r, stride in terms.items() if r is not along[0]]
  return None if any(stride % size for stride in (constant, *others)) else along[0]
