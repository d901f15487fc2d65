"""From the brackets of a Program to blocks in SSA form: what selection for GPUs shares, whatever the instructions are.

Loops are tested at their end, and at their start if they may not run at all. Variables (ACC) become block parameters of the loops that assign them.
An ISA's selector derives from `Structure` and has the few instructions that this needs: branches, and counters of loops.
"""
from __future__ import annotations
from typing import TYPE_CHECKING, Any
from collections.abc import Iterable

from tinyhw.machine.inst import Block, Function, Reg, RegClass
from tinyhw.uop.enums import AxisType, Ops
from tinyhw.uop.ops import UOp
if TYPE_CHECKING:
  from tinyhw.dtype import DType

HARDWARE = (AxisType.GLOBAL, AxisType.LOCAL)  # ranges that are no loops: the grid, and the lanes of a workgroup

class Loop:
  """An open loop: where its body starts, the counter, and the variables that it carries. after: set when it may not run at all."""
  __slots__ = ("body", "counter", "carried", "after")

  def __init__(self, body: Block, counter: Reg, carried: list[UOp]):
    self.body, self.counter, self.carried = body, counter, carried
    self.after: Block | None = None

class Structure:
  """A function that is being made. values: what nodes are; made: what was made in this block to be shared, by key and sources; origin: the node that
  instructions come from; order: blocks as they were entered."""

  def __init__(self, function: Function):
    self.function = function
    self.values: dict[UOp, Reg] = {}
    self.origin: UOp | None = None
    self.order: list[Block] = []
    self.loops: list[Loop] = []
    self.assigned: dict[UOp, list[UOp]] = {}   # of the program, by assigned_variables

  def enter(self, block: Block) -> None:
    """Go on in another block."""
    self.block, self.made = block, {}  # type: Block, dict[Any, Reg]
    self.order.append(block)

  def new(self, cls: RegClass) -> Reg: return self.function.new_reg(cls)

  # ***** what an ISA has *****

  def value(self, u: UOp) -> Any:
    """u as an operand: its register, or a constant."""
    raise NotImplementedError

  def branch(self, block: Block, values: list[Reg]) -> None:
    """End this block with a jump."""
    raise NotImplementedError

  def branch_if(self, predicate: str, dtype: DType, a: Any, b: Any, block: Block, values: list[Reg]) -> None:
    """A jump where a "lt" or "le" b, integers that are the same in all lanes; the block goes on where not."""
    raise NotImplementedError

  def counter(self, dtype: DType) -> Reg:
    """A new zero."""
    raise NotImplementedError

  def count(self, counter: Reg) -> Reg:
    """counter + 1."""
    raise NotImplementedError

  # ***** loops *****

  def open_loop(self, u: UOp) -> None:
    """A RANGE that is a loop."""
    start = self.counter(u.dtype)
    body = self.function.new_block(self.block.depth + 1, "loop")
    loop = Loop(body, self.new(start.cls), [a for a in self.assigned[u] if a in self.values])
    before = [self.values[a] for a in loop.carried]
    if u.src[0].vmin < 1:
      loop.after = self.function.new_block(self.block.depth, "after")
      self.branch_if("le", u.src[0].dtype, self.value(u.src[0]), 0, loop.after, before)
    self.branch(body, [start, *before])
    body.params = [loop.counter] + [self.new(b.cls) for b in before]
    self.enter(body)
    self.values[u] = loop.counter
    self.values.update(zip(loop.carried, body.params[1:]))
    self.loops.append(loop)

  def close_loop(self, opened: UOp) -> None:
    """The END of a RANGE that is a loop."""
    loop = self.loops.pop()
    following = self.count(loop.counter)
    values = [self.values[a] for a in loop.carried]
    self.branch_if("lt", opened.dtype, following, self.value(opened.src[0]), loop.body, [following, *values])
    after = loop.after or self.function.new_block(self.block.depth - 1, "after")
    self.branch(after, values if loop.after is not None else [])
    if loop.after is not None:
      after.params = [self.new(v.cls) for v in values]
      self.values.update(zip(loop.carried, after.params))
    self.enter(after)

def assigned_variables(uops: Iterable[UOp]) -> dict[UOp, list[UOp]]:
  """For each loop the variables that are set inside of it and stood before it."""
  found: dict[UOp, list[UOp]] = {}
  position = {u: n for n, u in enumerate(uops)}
  open_loops: list[UOp] = []
  for u in uops:
    if u.op is Ops.RANGE:
      open_loops.append(u)
      found[u] = []
    elif u.op is Ops.END: open_loops.pop()
    elif u.op is Ops.ASSIGN_ACC:
      for r in open_loops:
        if u.src[0] not in found[r] and position[u.src[0]] < position[r]: found[r].append(u.src[0])
  return found

# ***** values that stand beside each other *****

def adjacent(u: UOp) -> UOp | None:
  """The INDEX of the first element, if the elements of a VECTORIZE are loads that stand beside each other in a local array."""
  places = [s.src[0] for s in u.src if s.op is Ops.LOAD and len(s.src) == 1]
  if len(places) < len(u.src) or places[0].src[0].op is not Ops.DEFINE_LOCAL: return None
  split = [(p.src[0], *((p.src[1].src[0], p.src[1].src[1].arg) if p.src[1].op is Ops.ADD and p.src[1].src[1].op is Ops.CONST else (p.src[1], 0)))
           for p in places]
  first = split[0]
  return places[0] if all(s == (first[0], first[1], first[2] + k) for k, s in enumerate(split)) else None

def swallowed_loads(uops: Iterable[UOp]) -> set[UOp]:
  """Loads that only a group wants: they are done with it."""
  users: dict[UOp, int] = {}
  for u in uops:
    for s in u.src: users[s] = users.get(s, 0) + 1
  factors = {s for u in uops if u.op is Ops.MMA for s in u.src[:2] if s.op is Ops.VECTORIZE and adjacent(s) is not None}
  return {load for u in factors for load in u.src if users[load] == 1}
