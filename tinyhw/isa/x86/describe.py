"""Work of x86-64 instructions for the listing of DEBUG=7: bytes of memory, floating-point operations, and the peak of
the processor."""
from __future__ import annotations
import functools
import re
from collections.abc import Sequence

from tinyhw.isa.x86.asm.decode import decode
from tinyhw.isa.x86.asm.syntax import gathered_bits, show
from tinyhw.isa.x86.model.latency import Microarchitecture, find, microarchitecture
from tinyhw.isa.x86.table import regs
from tinyhw.isa.x86.table.form import Form
from tinyhw.isa.x86.table.table import TABLE
from tinyhw.isa.x86.target import assemble, target
from tinyhw.machine.ir.code import Code
from tinyhw.machine.ir.inst import Effect, Function, MInst
from tinyhw.machine.model.listing import EncodedInst, InstructionInfo, listing
from tinyhw.machine.model.listing_core import Core, bound_lines
from tinyhw.machine.model.scoreboard import bound
from tinyhw.machine.passes import cpu_code
from tinyhw.uop.ops import UOp
from tinyhw.uop.program import Program

__all__ = ["compile_listed", "describe", "microarchitecture", "reader"]

# pipe -> floating-point operations for each element
OPERATIONS = {"fma": 2, "fp_add": 1, "fp_mul": 1, "fp_min": 1, "div_f32": 1, "div_f64": 1, "sqrt_f32": 1, "sqrt_f64": 1,
              "fp_horizontal": 1,
              "fp_estimate": 1, "fp_round": 1}
SUFFIX = re.compile(r"[ps]([sd])$")
ELEMENT_BITS = {"s": 32, "d": 64}
STACK_BYTES = 8  # bytes of a push, pop or call
TILE_OPERATIONS = 2 * 16 * 16 * 32   # of a product of tiles of bfloat16

def touched(inst: MInst) -> int:
  """Bytes of the memory operand, without regard to masks."""
  form: Form = inst.row.isa
  if inst.row.pipe in ("tile_load", "tile_store"): return regs.TILE_BYTES
  kind = next((kind for at, kind in form.syntax if kind.category in ("memory", "broadcast")), None)
  if kind is None: return STACK_BYTES if inst.row.effects & (Effect.LOAD | Effect.STORE) else 0
  return gathered_bits(inst.row, kind) // 8

def element_bits(inst: MInst) -> int:
  """Bits of a floating-point instruction's elements; 0 for other instructions."""
  if inst.row.name == "tdpbf16ps": return 16
  if inst.row.pipe not in OPERATIONS: return 0
  found = SUFFIX.search(inst.row.name)
  return ELEMENT_BITS[found[1]] if found else 0

def operations(inst: MInst) -> int:
  """Floating-point operations. An FMA counts as two for each element; conversions and comparisons count as none."""
  bits = element_bits(inst)
  if not bits: return 0
  if inst.row.pipe == "tile_dot": return TILE_OPERATIONS
  packed = inst.row.name[-2] == "p"
  width = max(o.cls.bits for o in inst.row.operands if o.cls is not None and o.cls.bank is regs.VEC)
  return OPERATIONS[inst.row.pipe] * (width // bits if packed else 1)

def peak_of(table: Microarchitecture, vector_bits: int) -> dict[int, float]:
  """Element bits -> floating-point operations per cycle of FMAs on the longest vectors; 16: of products of tiles."""
  v, cls = {128: ("x", regs.XMM), 256: ("y", regs.YMM), 512: ("z", regs.ZMM)}[vector_bits]
  cycles = bound([MInst(TABLE[f"vfmadd231ps_{v}_{v}_{v}"], [regs.reg(cls, i) for i in range(3)])], table.costs,
                 table.issue_width).ports
  peaks = {bits: 2 * vector_bits / bits / cycles for bits in ELEMENT_BITS.values()}
  if "tile_dot" in table.costs:
    one = MInst(TABLE["tdpbf16ps_t_t_t"], [regs.reg(regs.TMM, i) for i in range(3)])
    peaks[16] = TILE_OPERATIONS / bound([one], table.costs, table.issue_width).ports
  return peaks

def core(microarchitecture: str, vector_bits: int) -> Core:
  """The model of a processor for the bounds of a listing."""
  table = find(microarchitecture)
  peaks = peak_of(table, vector_bits)
  def peak(insts: Sequence[MInst]) -> float:
    return max((peaks[bits] for bits in map(element_bits, insts) if bits), default=0.0)
  return Core(table.title, table.source, table.issue_width, table.ports, table.costs, peak)

def reader(microarchitecture: str, vector_bits: int) -> InstructionInfo:
  """The functions by which a listing reads instructions of this processor."""
  last_lines = functools.partial(bound_lines, core(microarchitecture, vector_bits))
  return InstructionInfo(show, touched, operations, last_lines)

def describe(function: Function, code: bytes, places: Sequence[tuple[int, MInst]], arch: str, microarchitecture: str,
             grid: int | None = None, uops: Sequence[UOp] = ()) -> str:
  """The listing of an encoded function. places: offsets and instructions, from encode_function. The other parameters
  are those of listing."""
  t = target(arch)
  ends = [offset for offset, _ in places[1:]]
  if places: ends.append(places[-1][0] + decode(code, places[-1][0])[1])
  lines = [EncodedInst(offset, code[offset:end], inst) for (offset, inst), end in zip(places, ends)]
  return listing(function, lines, t.banks, reader(microarchitecture, 8 * t.capabilities.vector_bytes), grid,
                 t.allocatable, uops)

def compile_listed(program: Program, arch: str, microarchitecture: str = "generic") -> tuple[Code, str]:
  """Compile a program as target.compile does, and return the listing too."""
  function, text, places = assemble(program, arch)
  grid = program.grid if isinstance(program.grid, int) else None
  return cpu_code(program, arch, function, text), describe(function, text, places, arch, microarchitecture, grid,
                                                          program.uops)
