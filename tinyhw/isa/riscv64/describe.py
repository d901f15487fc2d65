"""Work of RISC-V instructions for the listing of DEBUG=7: bytes of memory, floating-point operations, and the peak of
the processor."""
from __future__ import annotations
import re
from collections.abc import Callable, Sequence

from tinyhw.isa.riscv64.asm.syntax import parse, show
from tinyhw.isa.riscv64.model.latency import find, microarchitecture
from tinyhw.isa.riscv64.select.rules import VECTOR_BYTES
from tinyhw.isa.riscv64.target import assemble, target
from tinyhw.machine.ir.inst import Effect, MInst
from tinyhw.machine.listed import CpuLister
from tinyhw.machine.model.core_tables import CoreTable
from tinyhw.machine.model.scoreboard import bound

__all__ = ["bounds", "compile_listed", "microarchitecture"]

# pipe -> floating-point operations for each element
OPERATIONS = {"fp_fma": 2, "fp_add": 1, "fp_mul": 1, "fp_div": 1, "fp_sqrt": 1, "fp_minmax": 1}
OPERATIONS |= {f"vec_{pipe}": count for pipe, count in OPERATIONS.items()}
OPERATIONS |= {"vec_fp_widen": 1, "vec_fp_estimate": 1}
LETTER_BYTES = {"b": 1, "h": 2, "w": 4, "d": 8}

def state_of(inst: MInst) -> tuple[int, int]:
  """Elements and bits of an element, by the state of vectors that an instruction needs; (0, 0) without one."""
  found = re.match(r"(\d+)x(\d+)m", getattr(inst.row.isa, "state", ""))
  return (int(found[2]), int(found[1])) if found else (0, 0)

def touched(inst: MInst, arch: str) -> int:
  """Bytes of memory that a load or store covers. Spills cover whole registers, and bits are a byte for eight."""
  if not inst.row.effects & (Effect.LOAD | Effect.STORE): return 0
  mnemonic, (elements, _) = inst.row.isa.mnemonic, state_of(inst)
  if found := re.fullmatch(r"v[ls](\d)r(?:e\d+)?\.v", mnemonic): return int(found[1]) * VECTOR_BYTES.get(arch, 0)
  if mnemonic in ("vlm.v", "vsm.v"): return -(-elements // 8)
  if mnemonic[0] == "v":
    found = re.search(r"(?:seg(\d))?e(\d+)(?:ff)?\.v$", mnemonic)
    return elements * int(found[2]) // 8 * int(found[1] or 1) if found else 0
  if inst.row.pipe == "atomic": return 4 if ".w" in mnemonic else 8
  return LETTER_BYTES.get(mnemonic.lstrip("f").rstrip("u")[-1], 0)

def element_of(inst: MInst) -> tuple[int, int]:
  """Elements and their bits, of a floating-point instruction; (0, 0) for others."""
  if inst.row.pipe not in OPERATIONS: return 0, 0
  if inst.row.pipe[:3] == "vec": return state_of(inst)
  return 1, {"h": 16, "s": 32, "d": 64}[inst.row.isa.mnemonic[-1]]

def operations(inst: MInst) -> int:
  """Floating-point operations. A multiply-add counts as two for each element; conversions and comparisons as none."""
  return element_of(inst)[0] * OPERATIONS.get(inst.row.pipe, 0)

def peak_of(table: CoreTable, arch: str) -> dict[int, float]:
  """Bits of an element -> floating-point operations per cycle of multiply-adds: on whole vectors where the level has
  them."""
  def rate(text: str) -> float: return 2 / bound([parse(text)], table.costs, table.issue_width).ports
  size = VECTOR_BYTES.get(arch, 0)
  if size and "vec_fp_fma" in table.costs:
    return {bits: rate("vfmacc.vv v1, v2, v3") * size * 8 / bits for bits in (32, 64)}
  return {32: rate("fmadd.s fa0, fa1, fa2, fa3"), 64: rate("fmadd.d fa0, fa1, fa2, fa3")}

def peak(table: CoreTable, arch: str) -> Callable[[Sequence[MInst]], float]:
  """The peak for the elements of some instructions."""
  peaks = peak_of(table, arch)
  return lambda insts: max((peaks.get(element_of(inst)[1], 0.0) for inst in insts), default=0.0)

LISTER = CpuLister(assemble, target, find, peak, show, touched, operations)
compile_listed, bounds = LISTER.compile_listed, LISTER.bounds
