"""Listings of NVIDIA kernels for DEBUG=7: text, control words and notes of instructions, and the typical card of the
model."""
from __future__ import annotations
import functools
from collections.abc import Collection

from tinyhw.isa.sass.asm.encode import BYTES
from tinyhw.isa.sass.asm.syntax import show
from tinyhw.isa.sass.capabilities import capabilities, generation_of
from tinyhw.isa.sass.late.emit import encode_function
from tinyhw.isa.sass.late.schedule import lines_of
from tinyhw.isa.sass.model.rates import SOURCE, card
from tinyhw.isa.sass.model.resources import (
  Costs, conflicts_of, element_of, is_local, is_private, model, only_waits, operations, touched)
from tinyhw.isa.sass.table.branch import BRANCH
from tinyhw.isa.sass.table.control import Control
from tinyhw.isa.sass.table.units import RESERVED_BYTES, WARP
from tinyhw.isa.sass.target import code_of, scheduled, target
from tinyhw.machine.ir.code import Code
from tinyhw.machine.ir.inst import Block, Function, MInst
from tinyhw.machine.model.hardware import Hardware
from tinyhw.machine.model.listing import EncodedInst
from tinyhw.machine.model.listing_gpu import LaunchModel, GpuGeneration
from tinyhw.machine.model.listing_notes import Noted
from tinyhw.machine.model.listing_waves import Bounds
from tinyhw.machine.model.occupancy import KernelResources
from tinyhw.uop.program import Program

__all__ = ["bounds", "compile_listed", "hardware", "microarchitecture"]

def text_of(inst: MInst, control: Control) -> str:
  """Return the text of the instruction. Jumps name their block."""
  if inst.row.encoding is not BRANCH: return show(inst, control)
  goal = next(o for o in inst.operands if isinstance(o, Block))
  return (f"@{'!' if inst.operands[2] else ''}{inst.operands[1]} BRA {goal!r}" if len(inst.operands) > 1
          else f"BRA {goal!r}")

def assembled(program: Program, arch: str) -> tuple[Code, Function, dict[int, Control]]:
  """Return the code, the function with all of its lines, and the control words by id of the instruction."""
  function = scheduled(program, arch)
  blocks = lines_of(function)
  code = code_of(program, arch, function, *encode_function(blocks, generation_of(arch)))
  return code, function, {id(inst): control for _, lines in blocks for inst, control in lines}

def launch(code: Code, function: Function, controls: dict[int, Control], program: Program, arch: str) -> LaunchModel:
  """Describe a kernel on the typical card of an architecture."""
  conflicts = conflicts_of(function, controls)
  waves = -(-program.lanes // WARP)
  own = Costs(arch, None, controls, conflicts, waves)
  noted = Noted(functools.partial(touched, waves=waves), is_local, is_private, lambda inst: conflicts.get(id(inst), 0),
                only_waits, own.held)
  vendor = GpuGeneration(card(arch), WARP, capabilities(arch).cache_bytes[-1], SOURCE,
                         lambda inst: text_of(inst, own.control(inst)), operations,
                         element_of, noted, lambda traffic: model(Costs(arch, traffic, controls, conflicts, waves)),
                         ("control", own.words))
  kernel = KernelResources({"R": dict(code.registers)["r"]}, program.local_bytes + RESERVED_BYTES, program.lanes,
                           program.grid if isinstance(program.grid, int) else None)
  return LaunchModel(vendor, kernel, function, program)

def bounds(program: Program, arch: str) -> Bounds:
  """Return the limits of a kernel on the typical card of an architecture, without its listing."""
  return launch(*assembled(program, arch), program, arch).bounds()

def hardware(arch: str) -> Hardware:
  """Return the typical card of an architecture."""
  return card(arch)

def compile_listed(program: Program, arch: str, microarchitecture: str = "") -> tuple[Code, str]:
  """Compile as target.compile does, and return the listing too."""
  code, function, controls = assembled(program, arch)
  insts = [inst for block in function.blocks for inst in block.insts]
  lines = [EncodedInst(BYTES * n, code.text[BYTES * n:BYTES * (n + 1)], inst) for n, inst in enumerate(insts)]
  return code, launch(code, function, controls, program, arch).listing(lines, target(arch))

def microarchitecture(vendor: str, signature: int, features: Collection[str] = ()) -> str:
  """Return the name of NVIDIA's architecture, which is `arch` alone."""
  return ""
