"""AMD GPUs as a `Target`: registers, instructions for the machine passes, and compilation of a Program to Code."""
from __future__ import annotations

from tinyhw.errors import CompileError
from tinyhw.isa.amd.abi import abi
from tinyhw.isa.amd.capabilities import capabilities, generation_of
from tinyhw.isa.amd.late.drop_copies import drop_copies
from tinyhw.isa.amd.late.dual import pair_operations
from tinyhw.isa.amd.late.emit import encode_function
from tinyhw.isa.amd.late.demanded_words import reduce_to_words
from tinyhw.isa.amd.late.hazards import avoid_hazards
from tinyhw.isa.amd.late.hazards_rdna import avoid_chains
from tinyhw.isa.amd.late.waits import add_waits
from tinyhw.isa.amd.macros.macros import expand_macros, group_row, macro_row
from tinyhw.isa.amd.model.latency import costs
from tinyhw.isa.amd.model.units import register_steps
from tinyhw.isa.amd.select.select import select
from tinyhw.isa.amd.table import regs
from tinyhw.isa.amd.table.table import Table, build, table
from tinyhw.machine.ir.code import Code
from tinyhw.machine.ir.inst import Block, Function, MInst, Reg, RegClass
from tinyhw.machine.ir.pseudo import copy
from tinyhw.machine.ir.target import Hook, Target, region
from tinyhw.machine.order.interleave import interleave
from tinyhw.machine.passes import Before, hook_reasons, run
from tinyhw.machine.select.macros import MACRO
from tinyhw.machine.select.unused import drop_unused
from tinyhw.threads import once
from tinyhw.uop.program import Program

__all__ = ["capabilities", "compile", "target"]

# Vector registers that hold spilled scalar registers, one in each lane. They are never allocated to values. The others
# are whole groups of four, which the allocator fills from below. `compact_registers` renumbers these at the end, so
# that they follow the others.
SPILL_REGISTERS = tuple(range(248, 256))
OPPOSITE = {"s_cbranch_scc0": "s_cbranch_scc1", "s_cbranch_scc1": "s_cbranch_scc0"}

class Moves:
  """Build the instructions that the machine passes ask for, for one generation."""

  def __init__(self, rows: Table):
    self.rows, self.wave = rows, rows.generation.wave

  def move(self, dst: Reg, src: Reg) -> MInst:
    if dst.cls.bank is regs.SGPR: return build(self.rows[f"s_mov_b{32 * dst.cls.units}"], dst, src)
    if dst.cls.units == 1: return build(self.rows["v_mov_b32"], dst, src)
    raise CompileError(f"a copy of {dst.cls.units} vector registers is made of single ones")

  def swap(self, a: Reg, b: Reg) -> list[MInst]:
    """Swap two registers. Vector registers have an instruction; scalar ones go through vcc, which holds nothing between
    instructions."""
    if a.cls.bank is regs.VGPR: return [build(self.rows["v_swap_b32"], a, b)]
    spare = regs.reg(a.cls, regs.VCC)
    return [self.move(spare, a), self.move(a, b), self.move(b, spare)]

  def spill(self, value: Reg, slot: int) -> MInst:
    if value.cls.bank is regs.VGPR: return self.group(value, slot, "spill")
    return self.lanes(value, slot, f"spill{32 * value.cls.units}")

  def reload(self, value: Reg, slot: int) -> MInst:
    if value.cls.bank is regs.VGPR: return self.group(value, slot, "reload")
    return self.lanes(value, slot, f"reload{32 * value.cls.units}")

  def group(self, value: Reg, slot: int, name: str) -> MInst:
    """A macro that moves a group of vector registers to or from scratch memory."""
    return MInst(group_row(name, self.rows.generation, value.cls, ()), [value, slot])

  def lanes(self, value: Reg, slot: int, name: str) -> MInst:
    """A macro that moves a scalar register or pair to or from lanes of a vector register."""
    number, lane = divmod(slot // 4, self.wave)
    if number >= len(SPILL_REGISTERS):
      raise CompileError(f"more than {len(SPILL_REGISTERS) * self.wave} scalar values are spilled; split the kernel")
    kept = regs.v(SPILL_REGISTERS[number])
    pair = [kept, value] if name.startswith("spill") else [value, kept]
    return MInst(macro_row(self.rows.generation, name, ()), [*pair, *range(lane, lane + value.cls.units)])

  def jump(self, block: Block) -> MInst: return MInst(self.rows["s_branch"], [block], None, ([],))

  def invert(self, inst: MInst) -> MInst | None:
    """The conditional jump with the opposite condition."""
    opposite = OPPOSITE.get(inst.row.name)
    return None if opposite is None else MInst(self.rows[opposite], list(inst.operands), inst.origin, inst.arguments)

def split_copies(function: Function, target: Target) -> Function:
  """Split copies of several vector registers into copies of single ones, ordered so that no source is overwritten
  before it is read."""
  for block in function.blocks:
    insts: list[MInst] = []
    for inst in block.insts:
      dst = inst.operands[0] if inst.row.name == "copy" else None
      if dst is None or dst.cls.bank is not regs.VGPR or dst.cls.units == 1: insts.append(inst)
      else: insts += single_copies(inst)
    block.insts = insts
  return function

def single_copies(inst: MInst) -> list[MInst]:
  dst, src = inst.operands
  steps = range(dst.cls.units) if dst.index < src.index else range(dst.cls.units - 1, -1, -1)
  return [copy(regs.v(dst.index + k), regs.v(src.index + k)) for k in steps] if dst.index != src.index else []

def compact_registers(function: Function, target: Target) -> Function:
  """Renumber the vector registers with spilled scalars to follow the vector registers of values.

  The highest register of a kernel decides how many waves run at once.
  """
  written = function.used.get("vgpr", set())
  kept = sorted(written.intersection(SPILL_REGISTERS))
  if not kept: return function
  first = 1 + max(written.difference(kept), default=0)
  moved = {regs.v(index): regs.v(first + n) for n, index in enumerate(kept)}
  for block in function.blocks:
    for inst in block.insts:
      if inst.row.encoding is MACRO:
        inst.operands = [moved.get(o, o) if isinstance(o, Reg) else o for o in inst.operands]
  function.used["vgpr"] = written.difference(kept) | {r.index for r in moved.values() if r.index is not None}
  return function

HOOKS: dict[str, tuple[Hook, ...]] = {
  "before:order": (reduce_to_words, drop_unused, interleave),
  "before:expand": (split_copies,),
  "after:expand": (compact_registers, expand_macros, drop_copies),
  "after:layout": (add_waits, pair_operations, avoid_hazards, avoid_chains)}
REASONS = hook_reasons(HOOKS, (
  Before("reduce_to_words", "drop_unused", "the word of a value that has no user goes with its instruction"),
  Before("drop_unused", "interleave", "an instruction without users would take a place in the schedule"),
  Before("interleave", "order", "interleave leaves crowded blocks alone; order lowers the register pressure there"),
  Before("split_copies", "expand", "the hardware copies one vector register at a time"),
  Before("expand", "compact_registers", "copies, spills and reloads name registers, too"),
  Before("compact_registers", "expand_macros", "it knows the registers of scalar spills by the macros that use them"),
  Before("expand_macros", "drop_copies", "macros make copies, too"),
  Before("layout", "add_waits", "which results are under way depends on the final order of blocks"),
  Before("add_waits", "pair_operations", "no operation may cross a wait to its partner"),
  Before("pair_operations", "avoid_hazards", "hazards are between the instructions that are issued, pairs included"),
  Before("avoid_hazards", "avoid_chains", "the waits that it adds end chains of three, too"),
))

@once
def target(arch: str) -> Target:
  """The Target of an architecture such as "gfx1100"."""
  generation = generation_of(arch)
  moves = Moves(table(generation.arch))
  values = generation.vectors
  return Target(
    name=arch, capabilities=capabilities(arch), banks=(regs.SGPR, regs.VGPR),
    classes=(*classes(regs.S), *classes(values)),
    move=moves.move, spill=moves.spill, reload=moves.reload, jump=moves.jump, swap=moves.swap, invert=moves.invert,
    select=select,
    table=table(generation.arch), region=region, abi=abi(generation.family),
    allocatable={"sgpr": tuple(range(generation.sgprs)), "vgpr": tuple(range(SPILL_REGISTERS[0]))},
    latency=costs(generation.family), steps=register_steps(generation),
    hooks=HOOKS, reasons=REASONS)

def classes(files: dict[int, RegClass]) -> tuple[RegClass, ...]:
  """The register classes that values of programs can have."""
  return tuple(files[n] for n in (1, 2, 4, 8, 16) if n in files)

def assemble(program: Program, arch: str) -> tuple[Function, bytes, list[tuple[int, MInst]]]:
  """The laid out function, its bytes, and the offset of each instruction in them."""
  t = target(arch)
  function = run(select(program, t), t)
  return function, *encode_function(function, generation_of(arch))

def code_of(program: Program, arch: str, function: Function, text: bytes) -> Code:
  """The Code of a function. Registers are counted up to the highest one."""
  arguments = ("buffer",) * len(program.params) + ("int64",) * len(program.variables)
  counts = tuple((bank, 1 + max((i for i in used if bank != "sgpr" or i < regs.SGPRS), default=-1))
                 for bank, used in function.used.items())
  return Code(program.name, arch, text, arguments, local_bytes=program.local_bytes, registers=counts,
              lanes=program.lanes,
              wave=generation_of(arch).wave, private_bytes=function.stack_bytes)

def compile(program: Program, arch: str) -> Code:
  """Compile a program to machine code."""
  function, text, _ = assemble(program, arch)
  return code_of(program, arch, function, text)
