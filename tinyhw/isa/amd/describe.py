"""Listings of AMD kernels for DEBUG=7: text and notes of instructions, and the typical card that the model is of."""
from __future__ import annotations
import functools
from collections.abc import Collection, Mapping, Sequence

from tinyhw.codegen.program import Program
from tinyhw.isa.amd.capabilities import generation_of
from tinyhw.isa.amd.decode import decode
from tinyhw.isa.amd.form import Generation
from tinyhw.isa.amd.latency import SOURCE, card
from tinyhw.isa.amd.resources import Costs, element_of, model, operations, place_of, touched
from tinyhw.isa.amd.syntax import show
from tinyhw.isa.amd.target import assemble, code_of, target
from tinyhw.machine.access import Accesses, Pattern
from tinyhw.machine.code import Code
from tinyhw.machine.inst import Block, Function, MInst
from tinyhw.machine.listing import Line, Reader, listing, uop_text
from tinyhw.machine.listing_waves import Bounds, Card, bounds_of, wave_lines
from tinyhw.machine.occupancy import Kernel, residency
from tinyhw.uop.ops import UOp

__all__ = ["bounds", "compile_listed", "microarchitecture"]

# ***** notes *****

def notes(function: Function, offsets: Mapping[int, int]) -> dict[int, str]:
  """What there is to say of instructions beside what they came from: waits and what they wait for, hazards, macros."""
  found: dict[int, str] = {}
  for block in function.blocks:
    for inst in block.insts:
      if inst.comment: found[id(inst)] = f"{inst.comment}: {uop_text(inst.origin)}" if isinstance(inst.origin, UOp) else inst.comment
  return found

# ***** text *****

def text_of(inst: MInst) -> str:
  """The instruction; jumps name their block."""
  goals = [o for o in inst.operands if isinstance(o, Block)]
  return f"{inst.row.isa.mnemonic} {goals[0]!r}" if goals else show(inst)

def kernel_of(function: Function, program: Program, generation: Generation) -> Kernel:
  """What the launch tells the hardware."""
  code = code_of(program, generation.arch, function, b"")
  return Kernel(dict(code.registers), program.local_bytes, program.lanes, program.grid if isinstance(program.grid, int) else None)

def card_of(kernel: Kernel, program: Program, generation: Generation) -> Card:
  """The typical card of a generation as a listing of this kernel sees it."""
  sizes = card(generation)
  groups = residency(sizes.unit, kernel, sizes.units).groups * sizes.units
  accesses = Accesses(program.uops, generation.wave, groups, sizes.dies)
  def pattern(inst: MInst) -> Pattern | None:
    place = place_of(inst)
    return accesses.pattern(place) if place is not None else None
  def peak(insts: Sequence[MInst]) -> tuple[float, str]:
    return max([(sizes.flops.get(kind, 0.0), kind) for kind in sorted(set(map(element_of, insts)))], default=(0.0, ""))
  return Card(f"{sizes.title} ({sizes.units} {sizes.unit.name}s, {sizes.clock_ghz} GHz, {sizes.memory_gbs:g} GB/s)", SOURCE,
              model(Costs(generation, pattern)), sizes.units, sizes.clock_ghz, sizes.memory_rate, operations, touched, peak)

def bounds(program: Program, arch: str) -> Bounds:
  """What limits a kernel on the typical card of an architecture, without its listing."""
  generation = generation_of(arch)
  function, _, _ = assemble(program, arch)
  kernel = kernel_of(function, program, generation)
  return bounds_of(function, kernel, card_of(kernel, program, generation))

def compile_listed(program: Program, arch: str, microarchitecture: str = "") -> tuple[Code, str]:
  """What target.compile does, and the listing."""
  t, generation = target(arch), generation_of(arch)
  function, text, places = assemble(program, arch)
  kernel = kernel_of(function, program, generation)
  waves = -(-program.lanes // generation.wave)
  reader = Reader(text_of, touched, operations, functools.partial(wave_lines, kernel, card_of(kernel, program, generation)), is_local, notes, waves)
  lines = [Line(offset, text[offset:offset + size_of(text, offset, inst, arch)], inst) for offset, inst in places]
  return code_of(program, arch, function, text), listing(function, lines, t.banks, reader, kernel.grid, t.allocatable, program.uops)

def size_of(text: bytes, offset: int, inst: MInst, arch: str) -> int:
  """Bytes of an instruction."""
  return decode(text, offset, arch)[1]

def is_local(inst: MInst) -> bool: return inst.row.pipe == "lds"

def microarchitecture(vendor: str, signature: int, features: Collection[str] = ()) -> str:
  """AMD's architectures are named by `arch` alone."""
  return ""
