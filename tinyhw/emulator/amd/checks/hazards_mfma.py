"""Wait states after an MFMA until its result, or the C that it still reads, may be used. They depend on passes, types
and the second instruction. CDNA3 and CDNA4.

Sources: LLVM GCNHazardRecognizer.cpp (checkMAIHazards90A, checkMAIVALUHazards), compiled examples of each shape with
LLVM 22.
"""
from __future__ import annotations
from enum import IntEnum
from typing import TYPE_CHECKING

from tinyhw.emulator.errors import MissingHazard

if TYPE_CHECKING:
  from tinyhw.emulator.amd.execute.decoded import DecodedInstruction
  from tinyhw.emulator.amd.execute.matrix import Product

LONGEST = 24   # wait states after which no result is watched: none is needed for more

class Use(IntEnum):
  """Use of a register of the first instruction's D by the second one."""
  MEMORY = 0        # VMEM or LDS reads it
  VALU = 1          # VALU reads or overwrites it
  OPERAND = 2       # MFMA reads it as A or B
  SAME_C = 3        # MFMA has exactly D as its C
  OTHER_C = 4       # MFMA's C has a part of D

def is_xdl(product: Product) -> bool:
  """Return whether it runs in the unit for narrow types."""
  return product.a not in ("f32", "f64")

# by (M, use): wait states on gfx942 and on gfx950
DOUBLE = {(16, Use.MEMORY): (18, 18), (16, Use.VALU): (11, 19), (16, Use.OPERAND): (11, 19), (16, Use.SAME_C): (0, 0),
          (16, Use.OTHER_C): (9, 17),
          (4, Use.MEMORY): (9, 9), (4, Use.VALU): (6, 6), (4, Use.OPERAND): (6, 6), (4, Use.SAME_C): (4, 4),
          (4, Use.OTHER_C): (4, 4)}

def states(first: Product, use: Use, second: Product | None, arch: str) -> int:
  """Return the wait states that must lie between `first` and a use of its result."""
  newer = arch == "gfx950"
  if first.a == "f64": return DOUBLE[first.m, use][newer]
  passes, xdl = first.passes, is_xdl(first)
  if use is Use.SAME_C: return 2 if passes == 2 else 0
  more = newer and xdl and passes != 2
  if use is Use.OTHER_C:
    if xdl: return passes + 1 + more
    return 0 if second is not None and is_xdl(second) else passes
  return passes + (3 if xdl else 2) + more

def overwrite_states(first: Product) -> int:
  """Return the wait states until VALU may overwrite the C that `first` reads."""
  return first.passes - 1 if is_xdl(first) else 0

class MatrixWatch:
  """Results and C operands of MFMAs that may still be in flight. A time counts wait states."""
  def __init__(self, arch: str):
    self.arch = arch
    # register -> (time, product, all registers of D, text)
    self.results: dict[int, tuple[int, Product, tuple[int, ...], str]] = {}
    self.addends: dict[int, tuple[int, Product, str]] = {}

  def check(self, step: DecodedInstruction, now: int) -> None:
    """Raise MissingHazard if a step comes too soon."""
    for register in step.touched & self.results.keys():
      when, first, registers, text = self.results[register]
      use = use_of(step, register, registers)
      need = states(first, use, step.product, self.arch)
      if now - when < need: self.fail(need, now - when, text, f"a use of its result as {use.name}")
      if now - when > LONGEST: del self.results[register]
    if "valu" not in step.classes or step.product is not None: return
    for register in self.addends.keys() & set(step.vector_writes):
      when, first, text = self.addends[register]
      need = overwrite_states(first)
      if now - when < need: self.fail(need, now - when, text, "an overwrite of its C")

  def note(self, step: DecodedInstruction, now: int) -> None:
    """Record a step that was issued at a time."""
    assert step.product is not None, "only matrix instructions come here"
    for register in step.vector_writes: self.results[register] = now, step.product, step.vector_writes, step.text
    for register in step.addend: self.addends[register] = now, step.product, step.text

  def fail(self, need: int, since: int, text: str, use: str) -> None:
    raise MissingHazard(f"{need} wait states are needed between {text} and {use}, and there are {since}; "
                        f"put s_nop {need - since - 1} before this instruction")

def use_of(step: DecodedInstruction, register: int, result: tuple[int, ...]) -> Use:
  """Return the use of a register of an MFMA's result by a step."""
  if step.product is None: return Use.VALU if "valu" in step.classes else Use.MEMORY
  if register in step.factors: return Use.OPERAND
  return Use.SAME_C if step.addend == result else Use.OTHER_C
