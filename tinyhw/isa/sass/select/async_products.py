"""Insert the synchronization of asynchronous products of four warps (HGMMA).

Nothing else may touch the registers of the sums while such products run. The unit reads their factors from shared
memory through another path than loads. The pass inserts:

  WARPGROUP.ARRIVE             before the first product of a block, and before one that follows a barrier, a wait or
                               another access to sums
  gsb0                         at the last product before a wait, a barrier or the end of a block; the products since
                               the last gsb0 are a group
  WARPGROUP.DEPBAR.LE gsb0, 0  before an instruction that touches sums of pending products, and before a barrier, after
                               which others may overwrite the factors
  MEMBAR, FENCE.VIEW.ASYNC     before a barrier, if a warp has written shared memory (STS, signals), or has waited for
                               its own copies: the asynchronous units then see the data

A program that waits itself (WAIT with two numbers) gets no DEPBAR before a barrier: it knows which groups matter.

State flows over the blocks. So a loop's products are waited for in its next iteration, or after it, where a register is
touched. Functions without products stay the same.

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

FIRST_GROUP = 0   # the only group
NUMBERED = (1 << regs.ZERO) - 1
# after these, shared memory may hold new data
WRITES = frozenset({"STS", "STS.U", "DEPBAR.LE", "SYNCS.EXCH"})

class State(NamedTuple):
  """The pending work at a point of the program.

  going: registers of sums that may be pending, a bit for each. waited: since the last product, the program has waited
  itself.
  written: shared memory was written, and products do not see it yet.
  """
  going: int = 0
  waited: bool = True
  written: bool = False

def meet(known: State | None, state: State) -> State | None:
  """Merge the states of two paths. Return None if the second one adds nothing."""
  if known is None: return state
  met = State(known.going | state.going, known.waited and state.waited, known.written or state.written)
  return met if met != known else None

def is_product(inst: MInst) -> bool: return inst.row.pipe == PRODUCTS

def touched(inst: MInst) -> int:
  """Return all vector registers of an instruction, a bit for each, without RZ."""
  found = 0
  for value in inst.operands:
    if isinstance(value, Reg) and value.cls.bank is regs.VECTOR and value.index is not None:
      found |= (1 << value.cls.units) - 1 << value.index
  return found & NUMBERED

def wait_products(arch: str, left: int) -> MInst:
  """Return the instruction that waits for all groups of products except the last `left` ones."""
  return build(table(arch)["WARPGROUP.DEPBAR/9c5"], FIRST_GROUP, left)

class AsyncProducts:
  """The pass over one function that has products."""

  def __init__(self, function: Function, arch: str):
    self.arch, self.rows = arch, table(arch)
    self.sums = 0
    for inst in [inst for block in function.blocks for inst in block.insts if is_product(inst)]:
      self.sums |= touched(inst)

  def walk(self, block: Block, state: State, out: list[MInst]) -> State:
    """Insert the missing instructions of a block. Return the state at its end."""
    ready = False   # a product may follow without ARRIVE
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
    """Process an instruction that is no product, but may touch the registers of one."""
    registers = touched(inst)
    if registers & state.going:
      out.append(wait_products(self.arch, 0))
      state = State(0, True, state.written)
    if inst.row.name in WRITES: state = state._replace(written=True)
    return state, ready and not registers & self.sums

def left_of(inst: MInst) -> int:
  """Return how many groups a wait leaves pending."""
  left = inst.operands[inst.row.isa.index["n"]]
  assert isinstance(left, int)
  return left

def commit(insts: list[MInst]) -> None:
  """Mark the last product before each wait, barrier and block end as the end of a group."""
  last: MInst | None = None
  for inst in (*insts, None):
    if inst is not None and is_product(inst): last = inst
    elif last is not None and (inst is None or inst.row.name in ("BAR", PRODUCTS_DONE)):
      last.operands[last.row.isa.index["group"]] = FIRST_GROUP
      last = None

def synchronize_products(function: Function, target: Target) -> Function:
  """Put asynchronous products (HGMMA) into groups, and insert the waits for them."""
  if any(is_product(inst) for block in function.blocks for inst in block.insts):
    products = AsyncProducts(function, target.name)
    rewrite(function.blocks, State(), products.walk, meet)
    for block in function.blocks: commit(block.insts)
  return function
