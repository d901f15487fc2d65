"""The damages of the packets of AMD's driver: for test/emulator/mutants/packet_mutations.py."""
from __future__ import annotations
from typing import Any

import pytest

from test.emulator.mutants.packet_mutations import Change, Damage, Fields, Packets, gone, without
from tinyhw.drivers import amd
from tinyhw.drivers.amd import kfd
from tinyhw.drivers.amd.commands import Commands
from tinyhw.drivers.amd.sdma import CopyQueue
from tinyhw.emulator.amd.card.computer import GpuHost

def kind_of(name: str, fields: Fields) -> str:
  """Return the kind of a packet. WAIT_REG_MEM has two: a wait for the other queue, and a part of the meeting of dies.
  """
  return "MEET" if name == "ATOMIC_MEM" or name == "WAIT_REG_MEM" and fields["reference"] == 0 else name

RDNA, ALL = ("gfx1100", "gfx1200"), ("gfx1100", "gfx1200", "gfx942")
FLAGS = {
  "glv_inv": RDNA, "gl1_inv": ("gfx1100",), "glk_inv": RDNA, "gl2_inv": RDNA, "gl2_wb": RDNA,
  "tcl1_action_ena": ("gfx942",),
  "sh_kcache_action_ena": ("gfx942",), "tc_action_ena": ("gfx942",), "tc_wb_action_ena": ("gfx942",)}
DAMAGES = (
  Damage("acquires are gone", ALL, gone("ACQUIRE_MEM"), all=True),
  Damage("releases write nothing back", RDNA, lambda name, fields: without("gl2_wb")(name, fields)
         if name == "RELEASE_MEM" else fields, all=True),
  Damage("waits for waves are gone", ALL, gone("EVENT_WRITE")),
  Damage("dies do not meet", ("gfx942",), lambda name, fields: None if kind_of(name, fields) == "MEET" else fields),
  Damage("the compute queue does not wait for copies", ALL, lambda name, fields: None if name == "WAIT_REG_MEM"
         and fields["reference"] else fields),
  Damage("the copy queue does not wait for kernels", ALL, gone("POLL_REGMEM")),
  Damage("kernels signal nothing", ALL, gone("RELEASE_MEM")),
  Damage("copies signal nothing", ALL, gone("FENCE")),
  *(Damage(f"{flag} is left out", cards, without(flag), all=True) for flag, cards in FLAGS.items()),
)

def install(patch: pytest.MonkeyPatch, change: Change) -> None:
  """Apply a change to all packets of compute queues, and to those of copies that make an order."""
  inner = {name: getattr(owner, name) for owner, name in ((Commands, "packet"), (CopyQueue, "wait_memory"))}
  def packet(self: Commands, made: Any, **fields: Any) -> int:
    kept = change(made.name, fields)
    return len(self.words) if kept is None else int(inner["packet"](self, made, **kept))
  def wait_memory(self: CopyQueue, *arguments: int) -> None:
    if change("POLL_REGMEM", {}) is not None: inner["wait_memory"](self, *arguments)
  def signal(self: CopyQueue, address: int, value: int, event: tuple[int, int]) -> None:
    kept = change("FENCE", {})
    uncached = {} if self.generation == 4 else {"mtype": 3}
    if kept is not None: self.ring.put(self.packets.FENCE(addr=address, data=value, **uncached))
    self.ring.put(self.packets.FENCE(addr=event[0], data=event[1], **uncached))
    self.ring.put(self.packets.TRAP(int_context=event[1]))
  patch.setattr(Commands, "packet", packet)
  patch.setattr(CopyQueue, "wait_memory", wait_memory)
  patch.setattr(CopyQueue, "signal", signal)

class AmdPackets(Packets):
  """The packets of AMD's driver."""
  damages, driver = DAMAGES, amd

  def computer(self, card: str, seed: int) -> GpuHost: return GpuHost(card, [card], seed)
  def forget(self, computer: GpuHost) -> None: kfd.forget(computer)
  def install(self, patch: pytest.MonkeyPatch, change: Change) -> None: install(patch, change)

AMD_PACKETS = AmdPackets()
