"""Hazard of results that are forwarded before all of their lanes are ready, on RDNA3 in waves of 64
(VALUPartialForwarding).

VALU writes a vector register, SALU writes EXEC, VALU writes another one, VALU reads both. At most 2 VALU instructions
lie between the writes, and at most 4 between the later write and the reader. An access to memory ends the hazard, and
so does va_vdst(0). Source: LLVM GCNHazardRecognizer.cpp, fixVALUPartialForwardingHazard.
"""
from __future__ import annotations
from typing import TYPE_CHECKING

from tinyhw.emulator.errors import MissingHazard
from tinyhw.named_tuple import NamedTuple

if TYPE_CHECKING:
  from tinyhw.emulator.amd.execute.decoded import DecodedInstruction

BETWEEN, AFTER = 2, 4           # VALU instructions between the writes; between the later one and the reader
KEPT = BETWEEN + AFTER + 2      # VALU instructions for which a write can matter

class KnownWrite(NamedTuple):
  """A register that VALU wrote. valu, execs: VALU instructions and writes of EXEC since."""
  register: int
  valu: int
  execs: int

class ForwardingWatch:
  """The vector registers that VALU wrote lately: number of the VALU instruction, and number of SALU writes of EXEC
  until then."""
  def __init__(self) -> None:
    self.execs = 0
    self.writes: dict[int, tuple[int, int]] = {}

  def step(self, step: DecodedInstruction, now: int) -> None:
    """Check and record an instruction, issued `now` VALU instructions after the start. Raises MissingHazard."""
    if step.valu:
      if self.execs and self.writes: self.check(step, now)
      for register in step.vector_writes: self.writes[register] = now, self.execs
    elif "salu" in step.classes: self.execs += step.activates
    elif "vmem" in step.classes or "lds" in step.classes: self.clear()

  def check(self, step: DecodedInstruction, now: int) -> None:
    found = [(self.writes[register], register) for register in step.read_set & self.writes.keys()]
    for (first, before), one in found:
      for (last, second), other in found:
        if before < second and last - first <= BETWEEN + 1 and now - last <= AFTER + 1:
          raise MissingHazard(f"v{one} and v{other} are read, and SALU wrote EXEC between the VALU instructions that "
                              f"wrote them; "
                              "put s_waitcnt_depctr va_vdst(0) (0x0fff) before this instruction")

  def clear(self) -> None:
    """Forget all writes: their results are ready."""
    self.writes.clear()
    self.execs = 0

  def known(self, now: int) -> tuple[KnownWrite, ...]:
    """Return the writes that can still matter."""
    return tuple(sorted(KnownWrite(register, now - at, self.execs - execs)
                        for register, (at, execs) in self.writes.items() if now - at <= KEPT))

  def tell(self, what: tuple[KnownWrite, ...], now: int) -> None:
    """Set the writes that can still matter."""
    self.execs = max((write.execs for write in what), default=0)
    self.writes = {write.register: (now - write.valu, self.execs - write.execs) for write in what}
