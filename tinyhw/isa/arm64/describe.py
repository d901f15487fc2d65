"""Work of AArch64 instructions for the listing of DEBUG=7: bytes of memory, floating-point operations, and the peak of
the processor."""
from __future__ import annotations
from collections.abc import Callable, Sequence

from tinyhw.isa.arm64.asm.syntax import parse, show
from tinyhw.isa.arm64.model.latency import find, microarchitecture
from tinyhw.isa.arm64.table.holes import RegisterHole, RegisterList
from tinyhw.isa.arm64.target import assemble, target
from tinyhw.machine.assembler.form import WordForm
from tinyhw.machine.ir.inst import Effect, MInst
from tinyhw.machine.listed import CpuLister
from tinyhw.machine.model.core_tables import CoreTable
from tinyhw.machine.model.scoreboard import bound

__all__ = ["bounds", "compile_listed", "microarchitecture"]

# pipe -> floating-point operations for each element
OPERATIONS = {"fp_fma": 2, "fp_add": 1, "fp_mul": 1, "fp_div": 1, "fp_sqrt": 1, "fp_minmax": 1, "fp_reduce": 1,
              "fp_round": 1, "fp_estimate": 1}
# of lanes of float32 whose factors are pairs of bfloat16
PAIRS = {"bfdot": 4}
LETTER_BYTES = {"b": 1, "h": 2, "s": 4, "d": 8, "q": 16, "w": 4, "x": 8}
ENDINGS = (("sw", 4), ("b", 1), ("h", 2))   # of mnemonics that access less than their register

def data_of(form: WordForm) -> list[RegisterHole | RegisterList]:
  """The registers of an access that are loaded or stored: those before its address."""
  found: list[RegisterHole | RegisterList] = []
  for hole in form.holes:
    if isinstance(hole, RegisterHole) and hole.stack: break
    if isinstance(hole, (RegisterHole, RegisterList)): found.append(hole)
  return found

def lanes_of(suffix: str) -> tuple[int, int]:
  """Lanes and bytes of an element of an arrangement: "4s" -> (4, 4)."""
  return int(suffix[:-1] or 1), LETTER_BYTES[suffix[-1]]

def touched(inst: MInst) -> int:
  """Bytes of memory that a load or store covers."""
  if not inst.row.effects & (Effect.LOAD | Effect.STORE): return 0
  total, form = 0, inst.row.isa
  for hole in data_of(form):
    if isinstance(hole, RegisterList):
      lanes, size = lanes_of(hole.suffix)
      total += lanes * size * hole.count
    else: total += next((size for end, size in ENDINGS if form.mnemonic.endswith(end)), LETTER_BYTES.get(hole.letter,
                                                                                                         0))
  return total

def element_of(inst: MInst) -> tuple[int, int]:
  """Lanes, and bits of the factors, of a floating-point instruction; (0, 0) for others."""
  pairs = inst.row.isa.mnemonic in PAIRS
  if inst.row.pipe not in OPERATIONS and not pairs: return 0, 0
  hole = next(h for h in inst.row.isa.holes if isinstance(h, RegisterHole))
  lanes, size = lanes_of(hole.suffix) if hole.suffix else (1, LETTER_BYTES.get(hole.letter, 0))
  return lanes, 4 * size if pairs else 8 * size

def operations(inst: MInst) -> int:
  """Floating-point operations. A multiply-add counts as two for each element; conversions and comparisons as none."""
  lanes, _ = element_of(inst)
  if not lanes: return 0
  return lanes * (PAIRS.get(inst.row.isa.mnemonic) or OPERATIONS[inst.row.pipe])

def peak_of(table: CoreTable) -> dict[int, float]:
  """Bits of the factors -> floating-point operations per cycle of multiply-adds on whole vectors."""
  def rate(text: str) -> float:
    inst = parse(text)
    return operations(inst) / bound([inst], table.costs, table.issue_width).ports
  return {32: rate("fmla v0.4s, v1.4s, v2.4s"), 64: rate("fmla v0.2d, v1.2d, v2.2d"),
          16: rate("bfdot v0.4s, v1.8h, v2.8h")}

def peak(table: CoreTable, arch: str) -> Callable[[Sequence[MInst]], float]:
  """The peak for the elements of some instructions."""
  peaks = peak_of(table)
  return lambda insts: max((peaks.get(element_of(inst)[1], 0.0) for inst in insts), default=0.0)

LISTER = CpuLister(assemble, target, find, peak, show, lambda inst, arch: touched(inst), operations)
compile_listed, bounds = LISTER.compile_listed, LISTER.bounds
