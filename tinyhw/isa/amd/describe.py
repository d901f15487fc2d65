"""Listings of AMD kernels for DEBUG=7: text and notes of instructions, and the typical card that the model is of."""
from __future__ import annotations
import functools
from collections.abc import Callable, Collection, Mapping, Sequence

from tinyhw.codegen.program import Program
from tinyhw.isa.amd.capabilities import capabilities, generation_of
from tinyhw.isa.amd.decode import decode
from tinyhw.isa.amd.form import Generation
from tinyhw.isa.amd.latency import SOURCE, card
from tinyhw.isa.amd.notes import Notes
from tinyhw.isa.amd.resources import Costs, element_of, model, operations, place_of, touched
from tinyhw.isa.amd.syntax import show
from tinyhw.isa.amd.target import assemble, code_of, target
from tinyhw.machine.access import Accesses, Pattern, distinct_bytes
from tinyhw.machine.code import Code
from tinyhw.machine.inst import Block, Function, MInst
from tinyhw.machine.listing import Line, Reader, find_loops, listing
from tinyhw.machine.listing_waves import Bounds, Card, bounds_of, executions, wave_lines
from tinyhw.machine.occupancy import Kernel, residency
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp

__all__ = ["bounds", "compile_listed", "describe", "microarchitecture"]

def text_of(inst: MInst) -> str:
  """The instruction; jumps name their block."""
  goals = [o for o in inst.operands if isinstance(o, Block)]
  return f"{inst.row.isa.mnemonic} {goals[0]!r}" if goals else show(inst)

def kernel_of(function: Function, program: Program, generation: Generation) -> Kernel:
  """What the launch tells the hardware."""
  code = code_of(program, generation.arch, function, b"")
  return Kernel(dict(code.registers), program.local_bytes, program.lanes, program.grid if isinstance(program.grid, int) else None)

def pattern_of(kernel: Kernel, program: Program, generation: Generation) -> Callable[[MInst], Pattern | None]:
  """What tells which addresses the lanes of an access touch, while as many workgroups run as the card holds."""
  sizes = card(generation)
  groups = residency(sizes.unit, kernel, sizes.units).groups * sizes.units
  accesses = Accesses(program.uops, generation.wave, groups, sizes.dies)
  def pattern(inst: MInst) -> Pattern | None:
    place = place_of(inst)
    return accesses.pattern(place) if place is not None else None
  return pattern

def shares_of_memory(kernel: Kernel, function: Function, generation: Generation, pattern: Callable[[MInst], Pattern | None]) -> dict[UOp, float]:
  """Of each buffer that fits into the last-level cache: its size / what waves that do not run at the same time ask for, at most 1."""
  if kernel.grid is None: return {}
  waves = kernel.grid * max(1, -(-kernel.lanes // generation.wave))
  asked: dict[UOp, float] = {}
  for count, block in zip(executions(function, find_loops(function)), function.blocks):
    for inst in block.insts:
      place, found = place_of(inst), pattern(inst)
      if place is None or found is None or place.src[0].op is not Ops.PARAM: continue
      read = distinct_bytes(found, max(1, touched(inst) // generation.wave))
      asked[place.src[0]] = asked.get(place.src[0], 0.0) + read * found.fresh * count * waves
  sizes = {buffer: buffer.arg[1] * buffer.dtype.itemsize for buffer in asked}
  most = capabilities(generation.arch).cache_bytes[-1]
  return {buffer: min(1.0, size / asked[buffer]) for buffer, size in sizes.items() if size <= most}

def card_of(kernel: Kernel, function: Function, generation: Generation, pattern: Callable[[MInst], Pattern | None]) -> Card:
  """The typical card of a generation as the listing of a kernel with these accesses sees it."""
  sizes = card(generation)
  busy = sizes.units if kernel.grid is None else max(1, min(sizes.units, kernel.grid))
  own = Costs(generation, pattern, busy, shares_of_memory(kernel, function, generation, pattern))
  def peak(insts: Sequence[MInst]) -> tuple[float, str]:
    best, kind = max([(sizes.flops.get(kind, 0.0), kind) for kind in sorted(set(map(element_of, insts)))], default=(0.0, ""))
    return best, f"{kind[1:]}, vector unit" if kind[:1] == "v" else f"{kind}, matrix unit" if kind else ""
  return Card(f"{sizes.title} ({sizes.units} {sizes.unit.name}s, {sizes.clock_ghz} GHz, {sizes.memory_gbs:g} GB/s)", SOURCE,
              model(own), sizes.units, sizes.clock_ghz, sizes.memory_rate, operations, touched, peak)

def bounds(program: Program, arch: str) -> Bounds:
  """What limits a kernel on the typical card of an architecture, without its listing."""
  generation = generation_of(arch)
  function, _, _ = assemble(program, arch)
  kernel = kernel_of(function, program, generation)
  return bounds_of(function, kernel, card_of(kernel, function, generation, pattern_of(kernel, program, generation)))

def describe(function: Function, text: bytes, places: Sequence[tuple[int, MInst]], program: Program, arch: str) -> str:
  """The listing of an encoded function. places: as encode_function gives them."""
  t, generation = target(arch), generation_of(arch)
  kernel = kernel_of(function, program, generation)
  pattern = pattern_of(kernel, program, generation)
  def notes(function: Function, offsets: Mapping[int, int]) -> Mapping[int, str]: return Notes(generation, pattern, function, offsets).found
  waves, seen = -(-program.lanes // generation.wave), card_of(kernel, function, generation, pattern)
  reader = Reader(text_of, touched, operations, functools.partial(wave_lines, kernel, seen), is_local, notes, waves)
  lines = [Line(offset, text[offset:offset + decode(text, offset, arch)[1]], inst) for offset, inst in places]
  return listing(function, lines, t.banks, reader, kernel.grid, t.allocatable, program.uops)

def compile_listed(program: Program, arch: str, microarchitecture: str = "") -> tuple[Code, str]:
  """What target.compile does, and the listing."""
  function, text, places = assemble(program, arch)
  return code_of(program, arch, function, text), describe(function, text, places, program, arch)

def is_local(inst: MInst) -> bool: return inst.row.pipe == "lds"

def microarchitecture(vendor: str, signature: int, features: Collection[str] = ()) -> str:
  """AMD's architectures are named by `arch` alone."""
  return ""
