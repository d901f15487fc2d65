"""Products of four warps (HGMMA) go on by themselves: what says so to the hardware, put where it is needed.

Their sums stay in registers that nothing else may touch meanwhile, and their factors are read from shared memory in a
way of its own. So there is

  WARPGROUP.ARRIVE             before a product, behind anything else that touches sums, and behind each meeting of
                               warps
  gsb0                         at the last product before a wait, a meeting or the end of a block: those since the last
                               one are a group
  WARPGROUP.DEPBAR.LE gsb0, 0  before an instruction that touches sums of products that may still go on, and before a
                               meeting, behind which others may overwrite the factors, unless the program has waited
                               itself (WAIT with two numbers): it knows which groups matter
  MEMBAR, FENCE.VIEW.ASYNC     before a meeting, where a warp has written shared memory (STS, signals), or has waited
                               for its own copies: the units that multiply and copy see it then

A state flows over the blocks, so that a loop's products are waited for where a register is touched in its next
iteration, or behind it. Functions without products stay as they are.

Needs: physical code whose macros are expanded. Cost: linear in the instructions, times the depth of loops.
"""
from __future__ import annotations

from tinyhw.isa.sass.table import regs
from tinyhw.isa.sass.table.table import build, table
from tinyhw.isa.sass.table.uses import PRODUCTS, PRODUCTS_DONE
from tinyhw.machine.ir.flow import rewrite
from tinyhw.machine.ir.inst import Block, Function, MInst, Reg
from tinyhw.machine.ir.target import Target
from tinyhw.named_tuple import NamedTuple

FIRST_GROUP = 0   # the only one that there is
NUMBERED = (1 << regs.ZERO) - 1
WRITES = frozenset({"STS", "STS.U", "DEPBAR.LE", "SYNCS.EXCH"})  # behind them there may be something new in shared
                                                                 # memory

class State(NamedTuple):
  """going: registers of sums that may not be done, a bit for each. waited: the program has waited for products itself,
  since the last one.
  written: shared memory was, and products do not see it yet."""
  going: int = 0
  waited: bool = True
  written: bool = False

def meet(known: State | None, state: State) -> State | None:
  """What holds where two paths meet; None if the second one adds nothing."""
  if known is None: return state
  met = State(known.going | state.going, known.waited and state.waited, known.written or state.written)
  return met if met != known else None

def is_product(inst: MInst) -> bool: return inst.row.pipe == PRODUCTS

def touched(inst: MInst) -> int:
  """All vector registers of an instruction, a bit for each; RZ is none."""
  found = 0
  for value in inst.operands:
    if isinstance(value, Reg) and value.cls.bank is regs.VECTOR and value.index is not None:
      found |= (1 << value.cls.units) - 1 << value.index
  return found & NUMBERED

def wait_products(arch: str, left: int) -> MInst:
  """The instruction that waits for all groups of products but the last ones."""
  return build(table(arch)["WARPGROUP.DEPBAR/9c5"], FIRST_GROUP, left)

class Groups:
  """The pass over one function that has products."""

  def __init__(self, function: Function, arch: str):
    self.arch, self.rows = arch, table(arch)
    self.sums = 0
    for inst in [inst for block in function.blocks for inst in block.insts if is_product(inst)]:
      self.sums |= touched(inst)

  def walk(self, block: Block, state: State, out: list[MInst]) -> State:
    """The block with what is missing; the state at its end."""
    ready = False   # for a product
    for inst in block.insts:
      if is_product(inst):
        if not ready: out.append(build(self.rows["WARPGROUP/9c5"], wgwait="ARRIVE"))
        ready, state = True, State(state.going | touched(inst), False, state.written)
      elif inst.row.name == "BAR":
        if state.written:
          out += [build(self.rows["MEMBAR/992"], order="ALL", mem="CTA"), build(self.rows["FENCE/3c6"], sync="S")]
        if not state.waited: out.append(wait_products(self.arch, 0))
        ready, state = False, State(state.going if state.waited else 0, True, False)
      elif inst.row.name == PRODUCTS_DONE:
        ready, state = False, State(state.going if left_of(inst) else 0, True, state.written)
      else: state, ready = self.other(inst, state, ready, out)
      out.append(inst)
    return state

  def other(self, inst: MInst, state: State, ready: bool, out: list[MInst]) -> tuple[State, bool]:
    """An instruction that has nothing to do with products but, perhaps, their registers."""
    registers = touched(inst)
    if registers & state.going:
      out.append(wait_products(self.arch, 0))
      state = State(0, True, state.written)
    if inst.row.name in WRITES: state = state._replace(written=True)
    return state, ready and not registers & self.sums

def left_of(inst: MInst) -> int:
  """How many groups a wait leaves."""
  left = inst.operands[inst.row.isa.index["n"]]
  assert isinstance(left, int)
  return left

def commit(insts: list[MInst]) -> None:
  """Make products groups: the last one before each wait or meeting, and at the end, says so."""
  last: MInst | None = None
  for inst in (*insts, None):
    if inst is not None and is_product(inst): last = inst
    elif last is not None and (inst is None or inst.row.name in ("BAR", PRODUCTS_DONE)):
      last.operands[last.row.isa.index["group"]] = FIRST_GROUP
      last = None

def order_groups(function: Function, target: Target) -> Function:
  """The function with its products in groups that are waited for."""
  if any(is_product(inst) for block in function.blocks for inst in block.insts):
    groups = Groups(function, target.name)
    rewrite(function.blocks, State(), groups.walk, meet)
    for block in function.blocks: commit(block.insts)
  return function
