"""Hazards of scalar registers that VALU reads, on RDNA. They need an s_waitcnt_depctr (gfx11) or s_wait_alu (gfx12).

RDNA3 in waves of 64 (VALUMaskWrite): VALU reads a register as a mask of lanes, then it is written, then it is read.
RDNA4 (VALUReadSGPR): VALU reads a register of a pair, then one of the pair is written, then that one is read. A scalar
load between them ends the hazard. In both the write must be waited for: sa_sdst(0) if a SALU instruction wrote it,
va_sdst(0) if a VALU one did, va_vcc(0) if that wrote VCC. Sources: LLVM GCNHazardRecognizer.cpp
(fixVALUMaskWriteHazard), AMDGPUWaitSGPRHazards.cpp.
"""
from __future__ import annotations
from typing import TYPE_CHECKING

from tinyhw.emulator.errors import MissingHazard
from tinyhw.isa.amd.table import regs

if TYPE_CHECKING:
  from tinyhw.emulator.amd.execute.decoded import DecodedInstruction

UNTRACKED = 3 << regs.EXEC | 1 << regs.M0 | 1 << regs.NULL | ~((1 << 128) - 1)
VCC_BITS = 3 << regs.VCC
PAIRS = sum(1 << i for i in range(0, 128, 2))

def pairs_of(mask: int) -> int:
  """Return the registers of all pairs that have a register in a mask."""
  low = (mask | mask >> 1) & PAIRS
  return low | low << 1

class ScalarWatch:
  """Masks of scalar registers: those that VALU has read, and of these the ones that SALU or VALU has written since."""
  def __init__(self, arch: str, lanes: int):
    self.pairs = arch.startswith("gfx12")
    self.on = self.pairs or arch.startswith("gfx11") and lanes == 64
    self.read = self.by_salu = self.by_valu = 0

  def step(self, step: DecodedInstruction) -> None:
    """Check and record an instruction that is issued. Raises MissingHazard."""
    if self.by_salu | self.by_valu: self.check(step)
    if "smem" in step.classes or "buffer" in step.classes:
      if self.pairs: self.by_salu = self.by_valu = 0
      return
    if step.valu:
      written = step.scalar_writes & self.read
      self.by_valu = self.by_valu | written
      self.by_salu &= ~written
      self.read |= (pairs_of(step.scalar_reads) if self.pairs else step.mask_reads) & ~UNTRACKED
    elif "salu" in step.classes:
      written = step.scalar_writes & self.read
      self.by_salu = self.by_salu | written
      self.by_valu &= ~written

  def check(self, step: DecodedInstruction) -> None:
    if not step.valu and "salu" not in step.classes: return
    used = step.scalar_reads
    if used & self.by_salu: self.fail(used & self.by_salu, "SALU", "sa_sdst(0)")
    if not step.valu:
      if used & self.by_valu: self.by_valu = 0  # SALU waits for VALU by itself
    elif used & self.by_valu & VCC_BITS: self.fail(used & self.by_valu & VCC_BITS, "VALU", "va_vcc(0)")
    elif used & self.by_valu: self.fail(used & self.by_valu, "VALU", "va_sdst(0)")

  def fail(self, registers: int, who: str, wait: str) -> None:
    name = regs.S[1].name_of(registers.bit_length() - 1)
    how, instruction = ("", "s_wait_alu") if self.pairs else (" as a mask", "s_waitcnt_depctr")
    raise MissingHazard(f"{name} is read, which VALU had read{how} before {who} wrote it; put {instruction} {wait} "
                        f"between")

  def wait(self, immediate: int) -> None:
    """s_waitcnt_depctr, s_wait_alu: a field of 0 waits."""
    if not immediate & 1: self.by_salu = 0
    if not immediate >> 9 & 7: self.by_valu &= VCC_BITS
    if not immediate >> 1 & 1: self.by_valu &= ~VCC_BITS
