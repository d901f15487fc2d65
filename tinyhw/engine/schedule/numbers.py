"""Make numbers that change from run to run arguments of kernels: a learning rate, a bias correction, the sigma of a
sampler, a loop's counter, the offset of a slice.

A number in an expression is a constant of its kernels. That is best while it stays the same, since constants are
folded. A number that changes in each step would need a new schedule and new kernels each time. So graphs that differ in
numbers only form a family. The first two members are scheduled as they are. From the third on, the numbers in which
members differed are variables, bound to this member's values. All these members share one schedule.

The variables hold the bits of the constant, so that results are the same. Numbers that decide what is computed stay
constants: 0, 1, 2 and -1, which simplify; exponents of powers; infinities, NaN and bools; sizes. The start of a SHRINK
and the leading size of a PAD are numbers, too: any int, on one device. A graph that a TinyJit captures keeps all of its
numbers. Cost: one walk over a graph that has no schedule yet.
"""
from __future__ import annotations
import math
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

from tinyhw.arithmetic import from_bytes, to_bytes
from tinyhw.dtype import ConstType, dtypes
from tinyhw.named_tuple import NamedTuple
from tinyhw.uop.enums import GroupOp, Ops
from tinyhw.uop.ops import UOp

NUMBER = "_number"        # prefix of the variables' names
CONSTANT_MEMBERS = 2      # members of a family before its numbers become arguments
MOST_FAMILIES = 512
# Up to this number of nodes, a graph is remembered with its variables: the second round of a loop finds it.
SMALL = 64
MOST_SMALL = 1024     # remembered graphs
PLAIN = frozenset({0, 1, 2, -1})
FLOATS = frozenset({dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64})
INTEGERS = frozenset({dtypes.int8, dtypes.int16, dtypes.int32, dtypes.int64, dtypes.uint8, dtypes.uint16, dtypes.uint32,
                      dtypes.uint64})
# By size in bytes: the integer type of a variable, whose bits are the number's.
_HOLDERS = {4: dtypes.int32, 8: dtypes.int64}

class Family(NamedTuple):
  """Graphs that differ in numbers only. first: the numbers of the first member. members: how many were seen. changing:
  positions of numbers that differed."""
  first: tuple[ConstType, ...]
  members: int = 1
  changing: frozenset[int] = frozenset()

_families: OrderedDict[tuple[int, int], Family] = OrderedDict()
_small: OrderedDict[tuple[UOp, ...], tuple[tuple[UOp, ...], dict[str, int]]] = OrderedDict()

def with_arguments(roots: tuple[UOp, ...]) -> tuple[tuple[UOp, ...], dict[str, int]]:
  """Replace changing numbers of a canonical graph by variables. Return the graph and their values; the graph itself if
  no number changes.

  The graph has no schedule yet.
  """
  found = _small.get(roots)
  if found is not None: return found
  order = nodes_of(roots)
  found = _with_arguments(roots, order)
  if found[1] and len(order) <= SMALL:
    _small[roots] = found
    while len(_small) > MOST_SMALL: _small.popitem(last=False)
  return found

def _with_arguments(roots: tuple[UOp, ...], order: list[UOp]) -> tuple[tuple[UOp, ...], dict[str, int]]:
  numbers, places = numbers_in(order), places_in(order)
  if not numbers and not places: return roots, {}
  values = *[u.arg for u in numbers], *[u.pairs[axis][0] for u, axis in places]
  family = _joined(outline(roots, order, numbers, places), values)
  if family.members <= CONSTANT_MEMBERS or not family.changing: return roots, {}
  variables: dict[str, int] = {}
  changes: dict[UOp, UOp] = {}
  moved: dict[UOp, dict[int, UOp]] = {}
  for k in sorted(family.changing):
    name = f"{NUMBER}{k}"
    if k < len(numbers): changes[numbers[k]], variables[name] = argument(name, numbers[k])
    else:
      u, axis = places[k - len(numbers)]
      moved.setdefault(u, {})[axis] = UOp.variable(name, 0, _room(u, axis))
      variables[name] = int(values[k])
  return rebuilt(roots, order, changes, moved), variables

def outline(roots: Sequence[UOp], order: Sequence[UOp], numbers: Sequence[UOp],
            places: Sequence[tuple[UOp, int]]) -> int:
  """Return a hash of the graph without its numbers.

  If two families collide and have as many numbers, they only get more variables than necessary.
  """
  left_out = set(numbers)
  # Sizes only, not the begins of parts.
  kept: dict[UOp, tuple[Any, ...]] = {u: u.dims for u, _ in places}
  for u, axis in places: kept[u] = (*kept[u][:2 * axis], None, _room(u, axis), *kept[u][2 * axis + 2:])
  named: dict[UOp, Any] = {}
  found: list[Any] = []
  for u in order:
    if u.op is Ops.CONST and u.dtype is dtypes.weakint:
      named[u] = u.arg,   # a tuple, unlike a position
      continue
    named[u] = len(found)
    if u.op is Ops.CONST: found.append((u.dtype, None if u in left_out else u.arg if u.arg == u.arg else "NaN", u.tag))
    elif u in kept: found.append((u.op, named[u.src[0]], *kept[u]))
    else: found.append((u.op, u.dtype, u.arg, u.tag, *map(named.get, u.src)))
  return hash((*[named[u] for u in roots], *found))

def _joined(common: int, values: tuple[ConstType, ...]) -> Family:
  """Return the family of graphs with a common outline, after adding this member."""
  key = common, len(values)
  found = _families.get(key)
  if found is None: found = Family(values)
  else:
    differing = {k for k, (a, b) in enumerate(zip(found.first, values)) if a != b}
    if differing: found = Family(found.first, found.members + 1, found.changing | differing)
  _families[key] = found
  while len(_families) > MOST_FAMILIES: _families.popitem(last=False)
  return found

def nodes_of(roots: Sequence[UOp]) -> list[UOp]:
  """Return all nodes below roots, sources first."""
  return list(UOp.sink(*roots).toposort())[:-1]

def numbers_in(order: Sequence[UOp]) -> list[UOp]:
  """Return the constants that may become arguments."""
  exponents = {_under_movement(u.src[1]) for u in order if u.op is Ops.POW}
  return [u for u in order if u.op is Ops.CONST and (u.dtype in FLOATS or u.dtype in INTEGERS) and u.arg not in PLAIN
          and math.isfinite(u.arg)
          and u not in exponents and u.tag is None]

def places_in(order: Sequence[UOp]) -> list[tuple[UOp, int]]:
  """Return the axes, with their SHRINKs and PADs, along which a part may begin elsewhere."""
  return [(u, axis) for u in order if u.op in (Ops.SHRINK, Ops.PAD) and u.tag is None
          and not isinstance(u.device, tuple)
          for axis, pair in enumerate(u.pairs) if all(isinstance(x, int) for x in (*pair, u.src[0].shape[axis]))
          and _room(u, axis)]

def _room(u: UOp, axis: int) -> int:
  """Return the largest start of a part in a SHRINK or PAD."""
  begin, end = u.pairs[axis]
  return int(begin + end if u.op is Ops.PAD else u.src[0].shape[axis] - (end - begin))

def _moved(u: UOp, src: Sequence[UOp], begins: dict[int, UOp]) -> tuple[UOp, ...]:
  """Return the sources of a SHRINK or PAD whose parts begin at Variables."""
  out = [*src]
  for axis, begin in begins.items():
    first, last = u.pairs[axis]
    out[1 + 2 * axis:3 + 2 * axis] = begin, (begin + (last - first) if u.op is Ops.SHRINK else _room(u, axis) - begin)
  return tuple(out)

def is_number(variable: UOp) -> bool:
  """Does a DEFINE_VAR stand for a number that changes?"""
  return str(variable.arg[0]).startswith(NUMBER)

def _under_movement(u: UOp) -> UOp:
  while u.op in GroupOp.Movement: u = u.src[0]
  return u

def rebuilt(roots: Sequence[UOp], order: Sequence[UOp], changes: dict[UOp, UOp],
            moved: dict[UOp, dict[int, UOp]]) -> tuple[UOp, ...]:
  """Rebuild the graph with some nodes replaced.

  New nodes keep the lines of the nodes that they replace.
  """
  new = dict(changes)
  for u in order:
    if u in new: continue
    src = tuple([new[s] for s in u.src])
    if u in moved: src = _moved(u, src, moved[u])
    made = new[u] = u if src == u.src else UOp(u.op, u.dtype, src, u.arg, u.tag)
    made.line = u.line
  return tuple([new[u] for u in roots])

def counterparts(before: Sequence[UOp], after: Sequence[UOp]) -> dict[UOp, UOp]:
  """Return the nodes that replaced those of a graph whose changing numbers became variables."""
  found: dict[UOp, UOp] = {}
  stack = list(zip(before, after))
  while stack:
    u, v = stack.pop()
    if u is v or u in found: continue
    found[u] = v
    if u.op is v.op: stack += zip(u.src, v.src)   # else a number, which is a variable now
  return found

def argument(name: str, number: UOp) -> tuple[UOp, int]:
  """Return (the value of a number computed from a variable, the value to which the variable is bound)."""
  dtype = number.dtype
  # a wider type holds all numbers of a narrower one
  wide = dtypes.float32 if dtype in FLOATS and dtype.itemsize < 4 else dtype
  if dtype in INTEGERS and dtype is not dtypes.uint64: holder, bound = dtype, int(number.arg)
  else:
    holder = _HOLDERS[wide.itemsize]
    bound = int.from_bytes(to_bytes(from_bytes(to_bytes(number.arg, dtype), dtype), wide), "little", signed=True)
  low, high = holder.limits()
  variable = UOp(Ops.DEFINE_VAR, dtypes.weakint, number.src, (name, low, high)).cast(holder)
  return (variable if holder is wide else variable.bitcast(wide)).cast(dtype), bound
