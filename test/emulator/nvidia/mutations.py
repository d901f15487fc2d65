"""The damages of NVIDIA's kernels, and how mutants of them run: for test/emulator/mutations.py. The oracle is rules.py."""
from __future__ import annotations
import functools
import random
import struct
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from test.emulator import mutations
from test.emulator.mutation_kernels import Case, case, cases
from test.emulator.mutations import Class, Family, Insts, Outcome, Recorder
from test.emulator.nvidia.rules import Did, Local, broken
from test.isa.amd.test_matrix import product
from test.isa.sass.test_select_matrix import opts_of
from tinyhw import dtypes
from tinyhw.drivers import nvidia
from tinyhw.drivers.nvidia import rm
from tinyhw.emulator.nvidia.block import Block, block_of_grid
from tinyhw.emulator.nvidia.computer import Computer
from tinyhw.emulator.nvidia.state import LANES
from tinyhw.emulator.nvidia.transfer import SIZES
from tinyhw.isa.sass import regs
from tinyhw.isa.sass.control import NONE, SCOREBOARDS, Control
from tinyhw.isa.sass.decode import decode_all
from tinyhw.isa.sass.encode import encode
from tinyhw.isa.sass.latency import BOARD_STALL, LEAST_STALL
from tinyhw.isa.sass.matrix import product_of_group
from tinyhw.isa.sass.syntax import show
from tinyhw.isa.sass.table import build, table
from tinyhw.machine.inst import MInst, Reg
from tinyhw.uop.enums import AxisType, Ops
from tinyhw.uop.ops import KernelInfo, UOp

Line = tuple[MInst, Control]

class Listing(mutations.Listing):
  """A kernel's instructions with their control words."""
  def __init__(self, arch: str, text: bytes):
    self.insts = [(inst, control) for _, inst, control in decode_all(text, arch)]

  def bytes(self, insts: Sequence[Line]) -> bytes: return b"".join(encode(inst, control) for inst, control in insts)

def shown(line: Line) -> str: return f"{line[1]} {show(line[0], line[1])}"

# **** damages ****

def reachable(insts: Insts) -> range:
  """Behind the last EXIT are only branches in place."""
  return range(1 + max(k for k, (inst, _) in enumerate(insts) if inst.row.name == "EXIT"))

def worse(change: Callable[[MInst, Control, random.Random], Control | None]) -> mutations.Damage:
  """A control word is changed; None: it cannot be."""
  def act(insts: Insts, rng: random.Random, case: Case) -> str | None:
    k = rng.choice(reachable(insts))
    inst, control = insts[k]
    made = change(inst, control, rng)
    if made is None: return None
    insts[k] = inst, made
    return f"{shown(insts[k])} for {control}"
  return act

def shorter(inst: MInst, control: Control, rng: random.Random) -> Control | None:
  """A stall that is no shorter than the instruction itself needs."""
  least = max(LEAST_STALL.get(inst.row.pipe, 1), BOARD_STALL if (control.write, control.read) != (NONE, NONE) else 1)
  if control.stall <= least: return None
  stall = rng.choice((control.stall - 1, rng.randrange(least, control.stall)))
  return control._replace(stall=stall, yields=stall <= 11)

def impatient(inst: MInst, control: Control, rng: random.Random) -> Control | None:
  waited = [board for board in range(SCOREBOARDS) if control.wait >> board & 1]
  return control._replace(wait=control.wait & ~(1 << rng.choice(waited))) if waited else None

def untold(inst: MInst, control: Control, rng: random.Random) -> Control | None:
  """A scoreboard is not taken, or another one in its place."""
  names = [name for name in ("write", "read") if getattr(control, name) != NONE]
  if not names: return None
  name = rng.choice(names)
  others = [board for board in range(SCOREBOARDS) if board != getattr(control, name)]
  return control._replace(**{name: rng.choice((NONE, NONE, rng.choice(others)))})

MEETINGS = ("BAR", "DEPBAR.LE", "FENCE", "WARPGROUP", "WARPGROUP.DEPBAR")

def remove_barrier(insts: Insts, rng: random.Random, case: Case) -> str | None:
  """What warps, copies or products wait for, or are made to see, is gone; its control word stays."""
  found = [k for k in reachable(insts) if insts[k][0].row.name in MEETINGS]
  if not found: return None
  k = rng.choice(found)
  name, insts[k] = insts[k][0].row.name, (build(table(case.arch)["NOP/918"]), insts[k][1])
  return f"without {name}"

def swap_register(insts: Insts, rng: random.Random, case: Case) -> str | None:
  """One operand is another register of its kind, among those that the kernel has: it is read, or written, in the other's place."""
  bank, count = rng.choice(((regs.VECTOR, dict(case.code.registers)["r"]), (regs.VECTOR, dict(case.code.registers)["r"]), (regs.PREDICATE, 7)))
  k = rng.choice(reachable(insts))
  inst, control = insts[k]
  found = [place for place, value in enumerate(inst.operands) if isinstance(value, Reg) and value.cls.bank is bank and value.index is not None
           and value.index < count and inst.row.operands[place].name != "guard"]
  if not found: return None
  place = rng.choice(found)
  old = inst.operands[place]
  others = [i for i in range(0, count - old.cls.units + 1, old.cls.align) if i != old.index]
  if not others: return None
  made = MInst(inst.row, [regs.reg(old.cls, rng.choice(others)) if i == place else value for i, value in enumerate(inst.operands)])
  insts[k] = made, control
  return f"{shown(insts[k])} for {shown((inst, control))}"

DAMAGES = (
  Class("a stall is shorter", worse(shorter), True),
  Class("a wait is gone", worse(impatient), True),
  Class("a scoreboard is not taken", worse(untold), True),
  Class("a barrier is gone", remove_barrier, True),
  Class("a register is swapped", swap_register, False),
)

# **** runs ****

def places_of(step: Any, warp: Any, on: list[int]) -> tuple[tuple[int, int], ...]:
  """(address, size) of an access in each lane."""
  values, form = dict(zip(step.inst.row.isa.index, step.inst.operands)), step.inst.row.isa
  size = SIZES[form.specs[form.index["size"]].enumeration.words[values["size"]]][0]
  low, wide = warp.registers[values["a"].index], values["a"].cls.units == 2
  high = warp.registers[values["a"].index + 1] if wide else low
  base = values["ub"].index if step.inst.row.name == "LDG.U" else regs.ZERO
  first = values["o"] + (warp.uniform[base] | warp.uniform[base + 1] << 32 if base != regs.ZERO else 0)
  ones = (1 << 32 if step.inst.row.name in ("LDS", "STS") else 1 << 64) - 1
  return tuple(((low[lane] | high[lane] << 32 if wide else low[lane]) + first & ones, size) for lane in on)

def data_of(step: Any, warp: Any, on: list[int], size: int) -> tuple[bytes, ...]:
  """What a store writes in each lane."""
  index = step.inst.operands[step.inst.row.isa.index["b"]].index
  rows = [warp.registers[index if index == regs.ZERO else index + k] for k in range(-(-size // 4))]
  return tuple(b"".join(row[lane].to_bytes(4, "little") for row in rows)[:size] for lane in on)

def note(recorder: Recorder[Did], traces: dict[int, list[Did]], warp: Any, step: Any) -> None:
  """Remember what a warp is about to execute, with what plain accesses touch."""
  number, lanes, name = recorder.next(), warp.guarded(step.guard, step.inverted), step.inst.row.name
  on, local, loads = [lane for lane in range(LANES) if lanes >> lane & 1], None, ()
  try:
    if name in ("LDS", "STS") and on:
      places = places_of(step, warp, on)
      local = Local(name == "STS", places, data_of(step, warp, on, places[0][1]) if name == "STS" else ())
    elif name in ("LDG", "LDG.plain", "LDG.U"): loads = places_of(step, warp, on)
  except (IndexError, struct.error): pass   # registers that there are not
  traces.setdefault(warp.number, []).append(Did(step.inst, step.control, step.uses, warp.active, lanes, number, local, loads))

class Nvidia(Family):
  """The mutants of NVIDIA's GPUs."""
  isa, damages, driver = "sass", DAMAGES, nvidia

  def cases(self, arch: str) -> Sequence[Case]: return (*cases("sass", arch), *exchanging(arch), *(products_of_groups() if arch == "sm_90" else ()))
  def listing(self, arch: str, text: bytes) -> Listing: return Listing(arch, text)
  def check(self, arch: str, text: bytes) -> None: list(decode_all(text, arch))
  def forget(self, computer: Computer) -> None:
    for grid in list(computer.engines.work): grid.abandon()   # it may never end
    rm.forget(computer)

  def computer(self, arch: str, seed: int, strict: int, recorder: Recorder[Did]) -> Computer:
    computer = Computer(arch, [arch], seed, strict)
    def make(*arguments: Any) -> Block: return block_of_grid(*arguments, watch=partial(note, recorder, recorder.begin()))
    computer.engines.make_block = make
    return computer

  def first_broken(self, case: Case, outcome: Outcome) -> str | None:
    # what a load gets beyond the kernel's buffers is no rule of the hardware's: it is a reason for a report, which comes if nothing has written there
    buffers = outcome.recorder.buffers if outcome.error is not None else [(0, 1 << 64)]
    groups = ([traces[k] for k in sorted(traces)] for traces in outcome.recorder.groups)
    found = next((found for traces in groups for found in broken(traces, buffers)), None)
    return None if found is None else f"{found.rule}: {show(found.at)}"

@functools.lru_cache(None)
def exchanging(arch: str) -> tuple[Case, ...]:
  """Rows that lanes share: of one warp, and of several."""
  found = []
  for name, op, rows, columns in (("row of a warp", Ops.ADD, 2, 96), ("row of several warps", Ops.MAX, 1, 256)):
    out, a = UOp.param(0, dtypes.float32, rows), UOp.param(1, dtypes.float32, rows * columns)
    i, x = UOp.range(rows, 0), UOp.range(columns, 1, AxisType.REDUCE)
    found.append(case(name, "sass", arch, UOp.sink(out.index(i).store(a.index(i * columns + x).load().reduce(op, x), i))))
  return tuple(found)

@functools.lru_cache(None)
def products_of_groups() -> tuple[Case, ...]:
  """A product of four warps, with copies that go on beside it."""
  kernel = product(64, 64, 256, dtypes.float16, dtypes.float32, True).replace(arg=KernelInfo(opts=opts_of(64, 1)))
  return (case("product of four warps", "sass", "sm_90", kernel, matrix=(product_of_group(64, dtypes.float16),)),)

NVIDIA = Nvidia()
