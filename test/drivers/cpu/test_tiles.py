"""Permission for tile registers: asked of Linux, and without it a lower level."""
from __future__ import annotations
import ctypes
import sys

import pytest

from test.drivers.cpu.test_processor import AMX, invented
from tinyhw import device as devices
from tinyhw.drivers import cpu
from tinyhw.drivers.cpu import tiles

def test_other_systems_are_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setattr(sys, "platform", "win32")
  monkeypatch.setattr(ctypes, "CDLL", None)
  assert not tiles.allowed()

@pytest.mark.parametrize("answer", (0, -1))
def test_linux_is_asked_for_the_process(monkeypatch: pytest.MonkeyPatch, answer: int) -> None:
  asked: list[tuple[int, ...]] = []
  class Call:
    def __call__(self, *arguments: int) -> int:
      asked.append(arguments)
      return answer
  class Library: syscall = Call()
  monkeypatch.setattr(sys, "platform", "linux")
  monkeypatch.setattr(ctypes, "CDLL", lambda *_, **__: Library)
  assert tiles.allowed() is (answer == 0)
  assert asked == [(158, 0x1023, 18)]

@pytest.mark.parametrize("allowed, arch", [(True, "x86_64:amx"), (False, "x86_64:avx512bf16")])
def test_a_process_that_may_not_use_tiles_uses_the_next_level(monkeypatch: pytest.MonkeyPatch, allowed: bool,
                                                             arch: str) -> None:
  if cpu.is_arm64(): pytest.skip("no x86-64")
  monkeypatch.setattr(cpu, "detect", lambda query: invented(AMX, state=0x600e7))
  monkeypatch.setattr(tiles, "allowed", lambda: allowed)
  assert cpu.detect_x86(devices.runtime).arch == arch
