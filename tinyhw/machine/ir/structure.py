"""Conversion of a Program's brackets to blocks in SSA form. Selection for all GPUs shares it, whatever the instructions
are.

Loops are tested at their end, and at their start if they may not run at all. Variables (ACC) become block parameters of
the loops that assign them. Selection (selection.py) derives from `Structure`. An ISA provides the few instructions that
this needs: branches, and counters of loops.
"""
from __future__ import annotations
from typing import TYPE_CHECKING, Any
from collections.abc import Callable, Iterable

from tinyhw.machine.ir.inst import Block, Function, Reg, RegClass
from tinyhw.machine.ir.liveness import first_jump
from tinyhw.uop.enums import AxisType, Ops
from tinyhw.uop.ops import UOp
if TYPE_CHECKING:
  from tinyhw.dtype import DType

HARDWARE = (AxisType.GLOBAL, AxisType.LOCAL)  # ranges that are no loops: the grid, and the lanes of a workgroup

class LoopContext:
  """An open loop: the start of its body, the counter, and the variables that it carries.

  - after: the block after it, set if the loop may not run at all.
  - before: the block that enters it.
  - made: the shared values of that block.
  """
  __slots__ = ("body", "counter", "carried", "after", "before", "made")

  def __init__(self, body: Block, counter: Reg, carried: list[UOp], before: Block, made: dict[Any, Reg]):
    self.body, self.counter, self.carried, self.before, self.made = body, counter, carried, before, made
    self.after: Block | None = None

class Structure:
  """A function under construction.

  - values: the register of each node.
  - made: shared values of this block, by key and sources.
  - origin: the node that new instructions come from.
  - order: blocks in the order in which they were entered.
  """

  def __init__(self, function: Function):
    self.function = function
    self.values: dict[UOp, Reg] = {}
    self.origin: UOp | None = None
    self.order: list[Block] = []
    self.loops: list[LoopContext] = []
    self.assigned: dict[UOp, list[UOp]] = {}   # of the program, by assigned_variables

  def enter(self, block: Block) -> None:
    """Continue in another block."""
    self.block, self.made = block, {}  # type: Block, dict[Any, Reg]
    self.order.append(block)

  def new(self, cls: RegClass) -> Reg: return self.function.new_reg(cls)

  # ***** provided by an ISA *****

  def value(self, u: UOp) -> Any:
    """u as an operand: its register, or a constant."""
    raise NotImplementedError

  def branch(self, block: Block, values: list[Reg]) -> None:
    """End this block with a jump."""
    raise NotImplementedError

  def branch_if(self, predicate: str, dtype: DType, a: Any, b: Any, block: Block, values: list[Reg]) -> None:
    """Jump if a "lt" or "le" b, integers that are the same in all lanes. Otherwise the block goes on."""
    raise NotImplementedError

  def counter(self, dtype: DType) -> Reg:
    """A new register with zero."""
    raise NotImplementedError

  def count(self, counter: Reg) -> Reg:
    """counter + 1."""
    raise NotImplementedError

  # ***** loops *****

  def steady(self, value: Reg) -> LoopContext | None:
    """The outermost open loop in which a virtual register keeps its value, because it was made before the loop. None if
    there is none."""
    return next((loop for loop in self.loops if value.id < loop.counter.id), None)

  def before(self, loop: LoopContext, make: Callable[[], Reg]) -> Reg:
    """Run `make` in the block before a loop instead of in this block, and return its result."""
    insts, here = loop.before.insts, (self.block, self.made)
    jumps = insts[first_jump(loop.before):]
    del insts[len(insts) - len(jumps):]
    self.block, self.made = loop.before, loop.made
    made = make()
    insts += jumps
    self.block, self.made = here
    return made

  def open_loop(self, u: UOp, start: Reg | None = None) -> None:
    """Open a RANGE that is a loop. start: the first number of a loop that runs at least once; others count from 0."""
    surely = start is not None or u.src[0].vmin >= 1
    if start is None: start = self.counter(u.dtype)
    body = self.function.new_block(self.block.depth + 1, "loop")
    carried = [a for a in self.assigned[u] if a in self.values]
    loop = LoopContext(body, self.new(start.cls), carried, self.block, self.made)
    before = [self.values[a] for a in loop.carried]
    if not surely:
      loop.after = self.function.new_block(self.block.depth, "after")
      self.branch_if("le", u.src[0].dtype, self.value(u.src[0]), 0, loop.after, before)
    self.branch(body, [start, *before])
    body.params = [loop.counter] + [self.new(b.cls) for b in before]
    self.enter(body)
    self.values[u] = loop.counter
    self.values.update(zip(loop.carried, body.params[1:]))
    self.loops.append(loop)

  def close_loop(self, opened: UOp, end: Any = None) -> None:
    """Close a RANGE that is a loop, at its END. end: the number before which it ends; by default that of the RANGE."""
    loop = self.loops.pop()
    following = self.count(loop.counter)
    values = [self.values[a] for a in loop.carried]
    if end is None: end = self.value(opened.src[0])
    self.branch_if("lt", opened.dtype, following, end, loop.body, [following, *values])
    after = loop.after or self.function.new_block(self.block.depth - 1, "after")
    self.branch(after, values if loop.after is not None else [])
    if loop.after is not None:
      after.params = [self.new(v.cls) for v in values]
      self.values.update(zip(loop.carried, after.params))
    self.enter(after)

def assigned_variables(uops: Iterable[UOp]) -> dict[UOp, list[UOp]]:
  """For each loop, the variables that are assigned inside of it and defined before it."""
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

def spread(uops: Iterable[UOp], reasons: set[UOp]) -> set[UOp]:
  """The values that differ between lanes because others do. The difference spreads from sources to users, and around
  loops through variables. Changes `reasons`.

  Cost: O(nodes) a round. Rounds are bounded by the nesting of variables, usually two.
  """
  assignments = [u for u in uops if u.op is Ops.ASSIGN_ACC]
  while True:
    before = len(reasons)
    for u in uops:
      if u not in reasons and u.op is not Ops.CONST and not reasons.isdisjoint(u.src): reasons.add(u)
    reasons.update(u.src[0] for u in assignments if u.src[1] in reasons)
    if len(reasons) == before: return reasons

# ***** contiguous values *****

def origin_of(u: UOp) -> tuple[UOp, int]:
  """The vector from which a GEP takes elements, past other GEPs, and the number of the first element."""
  source, number = u.src[0], int(u.arg)
  while source.op is Ops.GEP: source, number = source.src[0], number + int(source.arg)
  return source, number

LOOSE = (Ops.VECTORIZE, Ops.BROADCAST, Ops.CONST)  # vectors that only group their elements, wherever those are

def element_of(vector: UOp, number: int) -> UOp:
  """An element of a LOOSE vector."""
  if vector.op is Ops.CONST: return UOp.const(vector.dtype.scalar(), vector.arg)
  return vector.src[number if vector.op is Ops.VECTORIZE else 0]
