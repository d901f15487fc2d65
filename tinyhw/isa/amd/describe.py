"""Listings of AMD kernels for DEBUG=7: the text of instructions, notes, and the typical card that the model
describes."""
from __future__ import annotations
from collections.abc import Collection, Sequence

from tinyhw.isa.amd.asm.decode import decode
from tinyhw.isa.amd.asm.syntax import show
from tinyhw.isa.amd.capabilities import capabilities, generation_of
from tinyhw.isa.amd.model.rates import SOURCE, card
from tinyhw.isa.amd.model.resources import Costs, element_of, is_local, is_private, model, operations, touched, waits
from tinyhw.isa.amd.table.form import Generation
from tinyhw.isa.amd.target import assemble, code_of, target
from tinyhw.machine.ir.code import Code
from tinyhw.machine.ir.inst import Block, Function, MInst
from tinyhw.machine.model.hardware import Hardware
from tinyhw.machine.model.listing import EncodedInst
from tinyhw.machine.model.listing_gpu import LaunchModel, GpuGeneration
from tinyhw.machine.model.listing_notes import Noted
from tinyhw.machine.model.listing_waves import Bounds
from tinyhw.machine.model.occupancy import KernelResources
from tinyhw.uop.program import Program

__all__ = ["bounds", "compile_listed", "describe", "hardware", "microarchitecture"]

def text_of(inst: MInst) -> str:
  """The text of an instruction; a jump shows the name of its block."""
  goals = [o for o in inst.operands if isinstance(o, Block)]
  return f"{inst.row.isa.mnemonic} {goals[0]!r}" if goals else show(inst)

def kernel_of(function: Function, program: Program, generation: Generation) -> KernelResources:
  """The properties of a kernel's launch: registers, shared memory, lanes and grid."""
  code = code_of(program, generation.arch, function, b"")
  return KernelResources(dict(code.registers), program.local_bytes, program.lanes,
                         program.grid if isinstance(program.grid, int) else None)

def vendor_of(generation: Generation) -> GpuGeneration:
  """The parts of a listing that depend on the generation."""
  noted = Noted(touched, is_local, is_private, lambda inst: 0, lambda inst: bool(waits(inst)))
  cache_bytes = capabilities(generation.arch).cache_bytes[-1]
  return GpuGeneration(card(generation), generation.wave, cache_bytes, SOURCE, text_of, operations, element_of, noted,
                       lambda traffic: model(Costs(generation, traffic)))

def launch(function: Function, program: Program, arch: str) -> LaunchModel:
  """Describe the launch of a laid out kernel on the typical card of an architecture."""
  generation = generation_of(arch)
  return LaunchModel(vendor_of(generation), kernel_of(function, program, generation), function, program)

def bounds(program: Program, arch: str) -> Bounds:
  """The limits of a kernel on the typical card of an architecture, without its listing."""
  return launch(assemble(program, arch)[0], program, arch).bounds()

def hardware(arch: str) -> Hardware:
  """The typical card of an architecture."""
  return card(generation_of(arch))

def describe(function: Function, text: bytes, places: Sequence[tuple[int, MInst]], program: Program, arch: str) -> str:
  """The listing of an encoded function. places: offsets and instructions, from encode_function."""
  lines = [EncodedInst(offset, text[offset:offset + decode(text, offset, arch)[1]], inst) for offset, inst in places]
  return launch(function, program, arch).listing(lines, target(arch))

def compile_listed(program: Program, arch: str, microarchitecture: str = "") -> tuple[Code, str]:
  """Compile a program as target.compile does, and return the listing too."""
  function, text, places = assemble(program, arch)
  return code_of(program, arch, function, text), describe(function, text, places, program, arch)

def microarchitecture(vendor: str, signature: int, features: Collection[str] = ()) -> str:
  """Always "": `arch` alone identifies an AMD architecture."""
  return ""
