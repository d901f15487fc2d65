"""The damages of pushbuffers of NVIDIA's driver: for test/emulator/mutants/packet_mutations.py."""
from __future__ import annotations
from typing import Any

import pytest

from test.emulator.mutants.packet_mutations import Change, Damage, Packets, gone, without
from tinyhw.drivers import nvidia
from tinyhw.drivers.nvidia import rm
from tinyhw.drivers.nvidia.commands import Commands
from tinyhw.emulator.nvidia.card.computer import GpuHost

CARDS = ("sm_80", "sm_89", "sm_90")
DAMAGES = (
  Damage("kernels do not wait for kernels", CARDS, gone("WAIT_FOR_IDLE"), all=True),
  Damage("invalidations are gone", CARDS, gone("INVALIDATE_SHADER_CACHES_NO_WFI"), all=True),
  Damage("global_data is left out", CARDS, without("global_data"), all=True),
  Damage("acquires are gone", CARDS, gone("acquire")),
  Damage("kernels signal nothing", CARDS, gone("release")),
  Damage("kernels signal before they have ended", CARDS, lambda name, fields: {**fields, "wait": False}
         if name == "release" else fields),
  Damage("copies signal nothing", CARDS, gone("copied")),
)
CHANGED = ("WAIT_FOR_IDLE", "INVALIDATE_SHADER_CACHES_NO_WFI")

class NvidiaPackets(Packets):
  """Methods and semaphores of NVIDIA's driver."""
  damages, driver = DAMAGES, nvidia

  def computer(self, card: str, seed: int) -> GpuHost: return GpuHost(card, [card], seed)
  def forget(self, computer: GpuHost) -> None: rm.forget(computer)

  def install(self, patch: pytest.MonkeyPatch, change: Change) -> None:
    inner = {name: getattr(Commands, name) for name in ("call", "acquire", "release", "copied")}
    def call(self: Commands, subchannel: int, method: Any, *data: int) -> int:
      if method.name not in CHANGED: return int(inner["call"](self, subchannel, method, *data))
      kept = change(method.name, method.decode([data[0]]))
      return len(self.words) if kept is None else int(inner["call"](self, subchannel, method, method(**kept)))
    def acquire(self: Commands, address: int, value: int) -> None:
      if change("acquire", {}) is not None: inner["acquire"](self, address, value)
    def release(self: Commands, address: int, value: int, wait: bool, timestamp: bool = False) -> None:
      kept = change("release", {"wait": wait})
      if kept is not None: inner["release"](self, address, value, timestamp=timestamp, **kept)
    def copied(self: Commands, address: int, value: int) -> None:
      if change("copied", {}) is not None: inner["copied"](self, address, value)
    for made in (call, acquire, release, copied): patch.setattr(Commands, made.__name__, made)

NVIDIA_PACKETS = NvidiaPackets()
