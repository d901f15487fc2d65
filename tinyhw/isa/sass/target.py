"""NVIDIA GPUs as a `Target`: registers and instructions for the machine passes, and the compilation of a Program to
Code."""
from __future__ import annotations
from typing import Any

from tinyhw.isa.sass import frame

from tinyhw.isa.sass.table import branch, regs

from tinyhw.isa.sass.abi import ABI
from tinyhw.isa.sass.capabilities import capabilities, generation_of
from tinyhw.isa.sass.late.drop_copies import drop_copies
from tinyhw.isa.sass.late.emit import encode_function
from tinyhw.isa.sass.late.schedule import control_words, lines_of
from tinyhw.isa.sass.macros.macros import expand_macros, make
from tinyhw.isa.sass.model.latency import COSTS
from tinyhw.isa.sass.select import register_copies
from tinyhw.isa.sass.select.async_products import synchronize_products
from tinyhw.isa.sass.select.part import COPY
from tinyhw.isa.sass.select.select import select
from tinyhw.isa.sass.select.tensor_map import descriptors
from tinyhw.isa.sass.table.control import Control
from tinyhw.isa.sass.table.table import table
from tinyhw.isa.sass.table.units import FILE, PARTITIONS, STEPS, WARP
from tinyhw.machine.ir.code import Code
from tinyhw.machine.ir.inst import Function, MInst, Reg
from tinyhw.machine.ir.target import Hook, Target, region
from tinyhw.machine.order.interleave import interleave
from tinyhw.machine.passes import Before, hook_reasons, run
from tinyhw.machine.select.macros import Macro
from tinyhw.machine.select.unused import drop_unused
from tinyhw.threads import once
from tinyhw.uop.program import Program

__all__ = ["capabilities", "compile", "target"]

# The register of the stack frame (frame.py) follows them, at most R252. They are whole groups of four, which the
# allocator fills from below
ALLOCATABLE = {"R": tuple(range(252)), "P": tuple(range(regs.TRUE))}

HOOKS: dict[str, tuple[Hook, ...]] = {
  "before:order": (drop_unused, interleave),
  "after:expand": (expand_macros, drop_copies, synchronize_products, frame.add_frame),
  "after:check_results": (control_words,)}
WITHOUT_ASYNC_PRODUCTS = {place: tuple(hook for hook in hooks if hook is not synchronize_products)
                          for place, hooks in HOOKS.items()}
REASONS = hook_reasons(HOOKS, (
  Before("drop_unused", "interleave", "an instruction without users would take a place in the schedule"),
  Before("interleave", "order", "interleave leaves crowded blocks alone; order lowers the register pressure there"),
  Before("expand", "expand_macros", "copies, spills and reloads may be macros"),
  Before("expand_macros", "drop_copies", "macros make copies, too"),
  Before("drop_copies", "synchronize_products", "a copy of an accumulator that can go would be waited for"),
  Before("expand_macros", "synchronize_products", "the instructions of macros may touch accumulators, too"),
  Before("expand_macros", "add_frame", "lines of macros name the register of the frame"),
  Before("add_frame", "layout", "the entry block gets instructions"),
  Before("layout", "control_words", "stalls and scoreboards depend on the final order of blocks"),
  Before("check_results", "control_words", "no pass may exchange registers or instructions afterwards"),
))

class Moves:
  """The instructions that the machine passes ask for, of one generation."""

  def __init__(self, arch: str, frame: int): self.arch, self.frame = arch, frame

  def made(self, name: str | Macro, *operands: Any, ties: tuple[Reg, ...] = ()) -> MInst:
    found = make(self.arch, name, list(operands), ties=ties)
    assert found is not None, f"{name} does not take {operands}"
    return found

  def move(self, dst: Reg, src: Reg) -> MInst:
    if dst.cls is regs.P: return self.made("p_move", dst, src)
    if dst.cls.units in COPY: return self.made(COPY[dst.cls.units], dst, src)
    assert dst.index is not None and src.index is not None, f"{dst!r} or {src!r} is virtual"
    return self.made(register_copies.copied(dst.cls.units, dst.index > src.index), dst, src)

  def swap(self, a: Reg, b: Reg) -> list[MInst]: return [self.made("p_swap" if a.cls is regs.P else "swap", a, b)]

  def spill(self, value: Reg, slot: int) -> MInst:
    if value.cls is regs.P: return self.made(frame.kept_predicate(slot, self.frame), value)
    return self.made(frame.kept(value.cls.units, slot, self.frame), value)

  def reload(self, value: Reg, slot: int) -> MInst:
    if value.cls is regs.P: return self.made(frame.reloaded_predicate(self.arch, slot, self.frame), value)
    return self.made(frame.reloaded(value.cls.units, slot, self.frame), value)

def registers_for(lanes: int) -> int:
  """Return how many registers a lane may have in a block of `lanes` lanes.

  The registers of each sub-partition must suffice for its share of the warps. It allocates them in steps of eight, two
  of them for the hardware itself. One register is left for the stack frame.
  """
  warps = -(-lanes // (WARP * PARTITIONS))   # of a sub-partition
  return min(len(ALLOCATABLE["R"]), FILE.registers // warps // FILE.granule * FILE.granule - FILE.extra - 1)

def has_async_products(arch: str) -> bool:
  """Return whether there are products of four warps."""
  return any(matrix.shared_operands for matrix in capabilities(arch).matrix)

@once
def target(arch: str, registers: int = len(ALLOCATABLE["R"])) -> Target:
  """Return the Target for "sm_90" and so on. registers: the most of a lane."""
  generation = generation_of(arch)
  moves = Moves(arch, registers)
  return Target(
    name=arch, capabilities=capabilities(arch), banks=(regs.VECTOR, regs.PREDICATE),
    classes=(regs.R[1], regs.R[2], regs.R[4], regs.P),
    move=moves.move, spill=moves.spill, reload=moves.reload, jump=branch.jump, swap=moves.swap, invert=branch.invert,
    select=select,
    table=table(arch), region=region, abi=ABI[generation.name], latency=COSTS,
    allocatable={**ALLOCATABLE, "R": ALLOCATABLE["R"][:registers]},
    steps={**STEPS, "R": tuple(n for n in STEPS["R"] if n < registers)},
    hooks=HOOKS if has_async_products(arch) else WITHOUT_ASYNC_PRODUCTS, reasons=REASONS)

def scheduled(program: Program, arch: str) -> Function:
  """Return the function in final block order, with control words."""
  t = target(arch, registers_for(program.lanes))
  return run(select(program, t), t)

def assemble(program: Program, arch: str) -> tuple[Function, bytes, list[tuple[int, MInst, Control]]]:
  """Return the function in final block order, its bytes, and each instruction's offset and control word."""
  function = scheduled(program, arch)
  return function, *encode_function(lines_of(function), generation_of(arch))

def compile(program: Program, arch: str) -> Code:
  """Compile the program to machine code.

  Registers ("r") count up to the highest one, without the hardware's; "barrier" is 1 if lanes of a block synchronize.
  """
  return code_of(program, arch, *assemble(program, arch))

def code_of(program: Program, arch: str, function: Function, text: bytes,
            placed: list[tuple[int, MInst, Control]]) -> Code:
  """Return the Code of an assembled function."""
  arguments = ("buffer",) * len(program.params) + ("int64",) * len(program.variables)
  used = [r.index + r.cls.units for _, inst, _ in placed for r in inst.operands
          if isinstance(r, Reg) and r.cls.bank is regs.VECTOR and r.index is not None and r.index < regs.ZERO]
  barriers = int(any(inst.row.name == "BAR" for _, inst, _ in placed))
  counts = ("r", max(used, default=0)), ("barrier", barriers)
  return Code(program.name, arch, text, arguments, local_bytes=program.local_bytes, registers=counts,
              lanes=program.lanes, wave=WARP,
              private_bytes=function.stack_bytes, descriptors=descriptors(program))
