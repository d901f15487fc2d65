"""Addresses that the lanes of a wave access, from the view of a GPU's memory: sectors, banks, and addresses that
concurrent workgroups share.

Input: the address (INDEX) of a load or store of a Program. Its index is compiled once to a Python function of ranges
and variables, and called for each lane. Ranges other than that of the lanes have sample values: first all 0, then all
1, limited by their ends. The start of a sector may depend on them. An index that depends on memory is unknown, unless
all lanes load the same number, such as the number of a row. Workgroups are then assumed to load different ones.
"""
from __future__ import annotations
from collections.abc import Callable, Iterable, Mapping, Sequence

from tinyhw.data_class import dataclass, replace
from tinyhw.dtype import dtypes
from tinyhw.uop.enums import AxisType, Ops
from tinyhw.uop.ops import UOp

Index = Callable[..., int]
INFIX = {Ops.ADD: "+", Ops.SUB: "-", Ops.MUL: "*", Ops.AND: "&", Ops.OR: "|", Ops.XOR: "^", Ops.SHL: "<<",
         Ops.SHR: ">>",
         Ops.IDIV: "//", Ops.MOD: "%", Ops.CMPLT: "<", Ops.CMPNE: "!=", Ops.CMPEQ: "=="}
SAMPLES = (0, 1)
MOST_GROUPS = 512  # workgroups that are compared; of more, only the first ones
MOST_ITERATIONS = 16  # of loops, at which gates are evaluated

@dataclass(frozen=True)
class Pattern:
  """The accesses of one wave's load or store.

  - lanes: for each sample, the byte address of each lane within the buffer.
  - fresh: the share of distinct requests among those of all waves of the card that run at once.
  - shared: the same among waves that have a second-level cache together.
  - done: the share of a workgroup's accesses that the gate allows.
  """
  lanes: tuple[tuple[int, ...], ...]
  fresh: float
  shared: float
  done: float = 1.0

class Accesses:
  """The patterns of a program's loads and stores.

  - wave: lanes of a wave.
  - groups: workgroups that run at once.
  - caches: second-level caches of the card. Workgroup n uses number n % caches.
  """

  def __init__(self, uops: Iterable[UOp], wave: int, groups: int, caches: int = 1):
    ranges = [u for u in uops if u.op is Ops.RANGE]
    self.lane = next((u for u in ranges if u.arg[1] is AxisType.LOCAL), None)
    self.grid = next((u for u in ranges if u.arg[1] is AxisType.GLOBAL), None)
    self.lanes = int(self.lane.src[0].arg) if self.lane is not None else 1
    self.wave, self.caches = wave, caches
    most = self.grid.src[0].arg if self.grid is not None and self.grid.src[0].op is Ops.CONST else MOST_GROUPS
    self.groups = max(1, min(groups, MOST_GROUPS, most)) if self.grid is not None else 1
    self.known: dict[tuple[UOp, UOp | None], Pattern | None] = {}

  def pattern(self, place: UOp, gate: UOp | None = None) -> Pattern | None:
    """The pattern of an access, or None if it is unknown. place: an INDEX with one index, or a TENSOR_BOX, which counts
    as the index of its first element."""
    if (place, gate) not in self.known:
      found = self._pattern(place)
      self.known[place, gate] = found if found is None or gate is None else replace(
        found, done=self._done(gate, place.op is Ops.TENSOR_BOX))
    return self.known[place, gate]

  def _done(self, gate: UOp, once: bool) -> float:
    """The share of accesses of the first workgroup's lanes for which a gate is true, on average over its loops. It is 1
    if the gate is unknown. once: one lane accesses memory for all."""
    free = [u for u in gate.toposort() if u.op in (Ops.RANGE, Ops.DEFINE_VAR)]
    function = compiled(gate, free)
    if function is None: return 1.0
    sizes = {u: int(u.vmax) + 1 for u in free if u.op is Ops.RANGE and u not in (self.lane, self.grid)}
    iterations, found = min(max(sizes.values(), default=1), MOST_ITERATIONS), list[bool]()
    for k in range(iterations):
      values = {u: sizes[u] * k // iterations if u in sizes else int(u.vmin) for u in free}
      lanes = self._each(function, free, values, [(0, lane) for lane in range(self.lanes)])
      found += [any(lanes)] if once else map(bool, lanes)
    return sum(found) / len(found)

  def _pattern(self, place: UOp) -> Pattern | None:
    """Compute a pattern. Evaluate the index for the lanes of one wave, at a few samples of the other ranges. Evaluate
    it for the first lanes of all waves, for the addresses that they share."""
    if place.op not in (Ops.INDEX, Ops.TENSOR_BOX) or place.src[1].dtype.count > 1: return None
    index, size = first_of(place), place.src[0].dtype.itemsize
    free = [u for u in index.toposort(self._is_computed)
            if u.op in (Ops.RANGE, Ops.DEFINE_VAR) or not self._is_computed(u)]
    function = compiled(index, free)
    if function is None: return None
    samples = []
    for sample in SAMPLES:
      values = {u: min(sample, int(u.vmax)) if u.op is Ops.RANGE else 0 if u.op is Ops.LOAD else int(u.vmin)
                for u in free}
      samples.append(tuple(size * at for at in self._each(function, free, values,
                                                          [(0, lane) for lane in range(min(self.wave, self.lanes))])))
    once = place.op is Ops.TENSOR_BOX   # once for a workgroup, not for each wave
    starts = [(group, lane) for group in range(self.groups) for lane in range(0, 1 if once else self.lanes, self.wave)]
    found = self._each(function, free, {u: 0 if u.op is Ops.LOAD else int(u.vmin) for u in free}, starts)
    caches = [group % self.caches for group, _ in starts]
    return Pattern(tuple(samples), len(set(found)) / len(found), len(set(zip(caches, found))) / len(found))

  def _is_computed(self, u: UOp) -> bool:
    """Is a node something else than a loaded number that all lanes share?"""
    return u.op is not Ops.LOAD or self.lane in u.toposort()

  def _each(self, function: Index, free: Sequence[UOp], values: Mapping[UOp, int],
            points: Iterable[tuple[int, int]]) -> list[int]:
    """The index for each (workgroup, lane), with these values of the other ranges and variables."""
    before = [values[u] for u in free]
    group_at = [i for i, u in enumerate(free) if u is self.grid or u.op is Ops.LOAD]
    lane_at = [i for i, u in enumerate(free) if u is self.lane]
    found = []
    for group, lane in points:
      for i in group_at: before[i] = group
      for i in lane_at: before[i] = lane
      found.append(int(function(*before)))
    return found

def first_of(place: UOp) -> UOp:
  """The index of the first element of an INDEX or TENSOR_BOX."""
  if place.op is Ops.INDEX: return place.src[1]
  total, dtype = place.src[1], place.src[1].dtype
  for x, stride in zip(place.src[2:], place.arg.strides[1:]):
    total = UOp(Ops.ADD, dtype, (total, UOp(Ops.MUL, dtype, (x, UOp.const(dtype, stride)))))
  return total

def compiled(index: UOp, free: Sequence[UOp]) -> Index | None:
  """Compile an index to a function of its ranges and variables, in order. None if it needs anything else."""
  names: dict[UOp, str] = {u: f"f{i}" for i, u in enumerate(free)}
  lines: list[str] = []
  for u in index.toposort(lambda u: u.op is not Ops.LOAD or u not in names):
    if u in names or u.op is Ops.RANGE: continue
    if u.op is Ops.CONST and isinstance(u.arg, int): names[u] = repr(int(u.arg))
    elif any(s not in names for s in u.src): continue  # the end of a range
    else:
      text = expression(u, [names[s] for s in u.src])
      if text is None: return None
      names[u] = f"x{len(lines)}"
      lines.append(f"  {names[u]} = {text}\n")
  scope: dict[str, Index] = {}
  exec(f"def index({', '.join(names[u] for u in free)}):\n{''.join(lines)}  return {names[index]}\n", scope)
  return scope["index"]

def expression(u: UOp, names: Sequence[str]) -> str | None:
  """One operation over names as Python text, or None."""
  if u.op in INFIX: return f"{names[0]} {INFIX[u.op]} {names[1]}"
  if u.op is Ops.CAST and u.dtype is dtypes.uint32: return f"{names[0]} & 0xffffffff"
  if u.op is Ops.CAST and dtypes.is_int(u.dtype) or u.op is Ops.BITCAST: return names[0]
  if u.op is Ops.NEG: return f"-{names[0]}"
  if u.op is Ops.MAX: return f"max({names[0]}, {names[1]})"
  if u.op is Ops.MULACC: return f"{names[0]} * {names[1]} + {names[2]}"
  if u.op is Ops.WHERE: return f"{names[1]} if {names[0]} else {names[2]}"
  return None

# ***** accesses of memory *****

def sectors(pattern: Pattern, width: int, sector: int) -> int:
  """Aligned pieces of `sector` bytes that lanes with `width` bytes each access, in the worse sample."""
  return max(len({piece for at in lanes for piece in range(at // sector, (at + width - 1) // sector + 1)})
             for lanes in pattern.lanes)

def distinct_bytes(pattern: Pattern, width: int) -> int:
  """Bytes that at least one lane accesses, in the worse sample. Each lane accesses `width` bytes, all of which other
  lanes access too, or none."""
  return width * max(len(set(lanes)) for lanes in pattern.lanes)

def bank_cycles(pattern: Pattern, width: int, banks: int) -> int:
  """Cycles of shared memory, with banks of 4 bytes, in the worse sample.

  Lanes are served together as long as their number of words fits the number of banks. Lanes with the same word get it
  at once. Different words of one bank take one cycle each (a bank conflict).
  """
  together = max(1, min(4 * banks // max(width, 4), max(map(len, pattern.lanes))))
  return max(sum(busiest_bank(lanes[first:first + together], width, banks) for first in range(0, len(lanes), together))
             for lanes in pattern.lanes)

def busiest_bank(addresses: Sequence[int], width: int, banks: int) -> int:
  """The largest number of different words that these lanes access in one bank."""
  words = {word for at in addresses for word in range(at // 4, (at + width - 1) // 4 + 1)}
  counts: dict[int, int] = {}
  for word in words: counts[word % banks] = counts.get(word % banks, 0) + 1
  return max(counts.values(), default=0)
