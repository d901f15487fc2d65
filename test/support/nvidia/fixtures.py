"""Fixtures: NVIDIA devices on virtual computers, which must hold nothing when they have been closed."""
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from nvidia.box import Opened

from tinyhw.config import Context
from tinyhw.drivers import nvidia
from tinyhw.drivers.linux import files
from tinyhw.drivers.nvidia import rm
from tinyhw.emulator.nvidia.card.computer import GpuHost

@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Opened]]:
  """opened("sm_90") -> (computer, device)."""
  made: list[Opened] = []
  def make(kind: str = "sm_90", **arguments: Any) -> Opened:
    name, _, count = kind.partition("x")
    computer = GpuHost(kind, [name] * int(count or 1), **arguments)
    monkeypatch.setattr(files, "COMPUTER", computer)
    device = nvidia.open(0, lambda name: None)  # type: ignore[arg-type,return-value]
    made.append((computer, device))
    return made[-1]
  with Context(EMULATE=""): yield make
  for computer, device in made:
    device.close()
    ranges, kept = computer.census().get("ranges", 0), {card: card.kept
                                                        for card in device.card.connection.cards.values()}
    assert ranges == sum(len(left.memories) for left in kept.values()
                         if left is not None), ("a closed device leaves what buffers still hold")
    rm.forget(computer)
    assert computer.census() == {}
