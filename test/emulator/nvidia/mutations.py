"""The damages of NVIDIA's kernels, and runs of their mutants: for test/emulator/mutants/mutations.py.

The oracle is rules.py.
"""
from __future__ import annotations
import random
import struct
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from test.emulator.mutants import mutations
from test.emulator.mutants.mutation_kernels import Case
from test.emulator.mutants.mutations import Class, Family, Insts, Outcome, Recorder
from test.emulator.nvidia.mutation_kernels import cases
from test.emulator.nvidia.rules import Did, Local, broken
from tinyhw.drivers import nvidia
from tinyhw.drivers.nvidia import rm
from tinyhw.emulator.nvidia.block import ThreadBlock, block_of_grid
from tinyhw.emulator.nvidia.card.computer import GpuHost
from tinyhw.emulator.nvidia.memory.transfer import SIZES
from tinyhw.emulator.nvidia.warp.state import LANES
from tinyhw.isa.sass.asm.decode import decode_all
from tinyhw.isa.sass.asm.encode import encode
from tinyhw.isa.sass.asm.syntax import show
from tinyhw.isa.sass.table import regs
from tinyhw.isa.sass.table.control import NONE, SCOREBOARDS, Control
from tinyhw.isa.sass.table.table import build, table
from tinyhw.isa.sass.table.uses import NOTHING
from tinyhw.machine.ir.inst import Bank, MInst, Reg

Line = tuple[MInst, Control]

class Listing(mutations.Listing):
  """A kernel's instructions with their control words."""
  def __init__(self, arch: str, text: bytes):
    self.insts = [(inst, control) for _, inst, control in decode_all(text, arch)]

  def bytes(self, insts: Sequence[Line]) -> bytes: return b"".join(encode(inst, control) for inst, control in insts)

def shown(line: Line) -> str: return f"{line[1]} {show(line[0], line[1])}"

# **** damages ****

def reachable(insts: Insts) -> range:
  """Return the range up to the last EXIT. After it there are only branches to themselves."""
  return range(1 + max(k for k, (inst, _) in enumerate(insts) if inst.row.name == "EXIT"))

def worse(change: Callable[[MInst, Control, random.Random], Control | None]) -> mutations.Damage:
  """Return a damage that changes a control word. change returns None if it cannot."""
  def act(insts: Insts, rng: random.Random, case: Case) -> str | None:
    k = rng.choice(reachable(insts))
    inst, control = insts[k]
    made = change(inst, control, rng)
    if made is None: return None
    insts[k] = inst, made
    return f"{shown(insts[k])} for {control}"
  return act

def shorter(inst: MInst, control: Control, rng: random.Random) -> Control | None:
  if control.stall <= 1: return None
  stall = rng.choice((control.stall - 1, rng.randrange(1, control.stall)))
  return control._replace(stall=stall, yields=stall <= 11)

def impatient(inst: MInst, control: Control, rng: random.Random) -> Control | None:
  waited = [board for board in range(SCOREBOARDS) if control.wait >> board & 1]
  return control._replace(wait=control.wait & ~(1 << rng.choice(waited))) if waited else None

def untold(inst: MInst, control: Control, rng: random.Random) -> Control | None:
  """Drop a scoreboard, or take another one in its place."""
  names = [name for name in ("write", "read") if getattr(control, name) != NONE]
  if not names: return None
  name = rng.choice(names)
  others = [board for board in range(SCOREBOARDS) if board != getattr(control, name)]
  return control._replace(**{name: rng.choice((NONE, NONE, rng.choice(others)))})

LOOK = "SYNCS.PHASECHK"
MEETINGS = ("BAR", "DEPBAR.LE", "FENCE", "LDGDEPBAR", "WARPGROUP", "WARPGROUP.DEPBAR", "SYNCS.EXCH", "SYNCS.ARRIVE",
            LOOK, "SYNCS.IV")
BANKS = (regs.VECTOR, regs.VECTOR, regs.PREDICATE, regs.UNIFORM)   # banks whose registers are swapped
COUNTS = ("DEPBAR.LE", "WARPGROUP.DEPBAR")

def with_operand(inst: MInst, place: int, value: Any) -> MInst:
  return MInst(inst.row, [*inst.operands[:place], value, *inst.operands[place + 1:]])

def weaken_barrier(insts: Insts, rng: random.Random, case: Case) -> str | None:
  """Remove an instruction that warps, copies or products wait for, or that makes writes visible; its control word
  stays. Or let more groups be left by a wait, or remove the branch back to a test of an mbarrier."""
  found = [k for k in reachable(insts) if insts[k][0].row.name in MEETINGS]
  if not found: return None
  k = rng.choice(found)
  inst, control = insts[k]
  if inst.row.name in COUNTS and rng.random() < 0.5:
    place = inst.row.isa.index["n"]
    insts[k] = with_operand(inst, place, inst.operands[place] + rng.choice((1, 2))), control
    return f"{shown(insts[k])} for {shown((inst, control))}"
  if inst.row.name == LOOK and rng.random() < 0.5:
    k = next(at for at in range(k, len(insts)) if insts[at][0].row.name == "BRA")
  gone, insts[k] = insts[k], (build(table(case.arch)["NOP/918"]), insts[k][1])
  return f"without {shown(gone)} at {16 * k:#x}"

def swap_register(insts: Insts, rng: random.Random, case: Case) -> str | None:
  """Replace one operand by another register of its kind that the kernel has. The instruction then reads or writes that
  one."""
  bank = rng.choice(BANKS)
  count = counted(insts, bank) if bank is not regs.PREDICATE else 7
  found = [(k, place) for k in reachable(insts) for place, value in enumerate(insts[k][0].operands)
           if isinstance(value, Reg) and value.cls.bank is bank and value.index is not None and value.index < count
           and insts[k][0].row.operands[place].name != "guard"]
  if not found: return None
  k, place = rng.choice(found)
  inst, control = insts[k]
  old = inst.operands[place]
  others = [i for i in range(0, count - old.cls.units + 1, old.cls.align) if i != old.index]
  if not others: return None
  insts[k] = with_operand(inst, place, regs.reg(old.cls, rng.choice(others))), control
  return f"{shown(insts[k])} for {shown((inst, control))}"

def counted(insts: Insts, bank: Bank) -> int:
  """Return the number of registers of a bank that a kernel has."""
  found = (value for inst, _ in insts for value in inst.operands if isinstance(value, Reg) and value.cls.bank is bank)
  return max((reg.index + reg.cls.units for reg in found if reg.index != NOTHING[bank]), default=0)

DAMAGES = (
  Class("a stall is shorter", worse(shorter), True),
  Class("a wait is gone", worse(impatient), True),
  Class("a scoreboard is not taken", worse(untold), True),
  Class("a barrier is gone or weaker", weaken_barrier, True),
  Class("a register is swapped", swap_register, False),
)

# **** runs ****

def places_of(step: Any, warp: Any, on: list[int]) -> tuple[tuple[int, int], ...]:
  """Return (address, size) of an access in each lane."""
  values, form = dict(zip(step.inst.row.isa.index, step.inst.operands)), step.inst.row.isa
  size = SIZES[form.specs[form.index["size"]].enumeration.words[values["size"]]][0]
  low, wide = warp.registers[values["a"].index], values["a"].cls.units == 2
  high = warp.registers[values["a"].index + 1] if wide else low
  base = values["ub"].index if step.inst.row.name == "LDG.U" else regs.ZERO
  first = values["o"] + (warp.uniform[base] | warp.uniform[base + 1] << 32 if base != regs.ZERO else 0)
  ones = (1 << 32 if step.inst.row.name in ("LDS", "STS") else 1 << 64) - 1
  return tuple(((low[lane] | high[lane] << 32 if wide else low[lane]) + first & ones, size) for lane in on)

def data_of(step: Any, warp: Any, on: list[int], size: int) -> tuple[bytes, ...]:
  """Return the bytes that a store writes in each lane."""
  index = step.inst.operands[step.inst.row.isa.index["b"]].index
  rows = [warp.registers[index if index == regs.ZERO else index + k] for k in range(-(-size // 4))]
  return tuple(b"".join(row[lane].to_bytes(4, "little") for row in rows)[:size] for lane in on)

def note(recorder: Recorder[Did], traces: dict[int, list[Did]], warp: Any, step: Any) -> None:
  """Record the instruction that a warp is about to execute, with the bytes of plain accesses."""
  number, lanes, name = recorder.next(), warp.guarded(step.guard, step.inverted), step.inst.row.name
  on, local, loads = [lane for lane in range(LANES) if lanes >> lane & 1], None, ()
  try:
    if name in ("LDS", "STS") and on:
      places = places_of(step, warp, on)
      local = Local(name == "STS", places, data_of(step, warp, on, places[0][1]) if name == "STS" else ())
    elif name in ("LDG", "LDG.plain", "LDG.U"): loads = places_of(step, warp, on)
  except (IndexError, struct.error): pass   # registers that do not exist
  traces.setdefault(warp.number, []).append(Did(step.inst, step.control, step.uses, warp.active, lanes, number, local,
                                                loads))

class Nvidia(Family):
  """The mutants of NVIDIA's GPUs."""
  isa, damages, driver = "sass", DAMAGES, nvidia

  def cases(self, arch: str) -> Sequence[Case]: return cases(arch)
  def listing(self, arch: str, text: bytes) -> Listing: return Listing(arch, text)
  def check(self, arch: str, text: bytes) -> None: list(decode_all(text, arch))
  def forget(self, computer: GpuHost) -> None:
    for grid in list(computer.engines.work): grid.abandon()   # it may never end
    rm.forget(computer)

  def computer(self, arch: str, seed: int, strict: int, recorder: Recorder[Did]) -> GpuHost:
    computer = GpuHost(arch, [arch], seed, strict)
    def make(*arguments: Any) -> ThreadBlock:
      return block_of_grid(*arguments, watch=partial(note, recorder, recorder.begin()))
    computer.engines.make_block = make
    return computer

  def first_broken(self, case: Case, outcome: Outcome) -> str | None:
    # a load of unwritten bytes breaks no rule of the hardware: it is only a reason for a report
    buffers = outcome.recorder.buffers if outcome.error is not None else [(0, 1 << 64)]
    groups = ([traces[k] for k in sorted(traces)] for traces in outcome.recorder.groups)
    found = next((found for traces in groups for found in broken(traces, buffers)), None)
    return None if found is None else f"{found.rule}: {show(found.at)}"

NVIDIA = Nvidia()
