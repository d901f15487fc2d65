"""Devices, buffers, the compiler and pipelines of a virtual Metal."""
import mmap

import pytest

from tinyhw.emulator.errors import StrictError
from tinyhw.emulator.metal.device import CHIPS, LIMITS
from test.drivers.metal.conftest import Opener, code, mac

__all__ = ["mac"]

def test_chips() -> None:
  assert CHIPS["apple9"].families[:3] == ("apple7", "apple8", "apple9") and CHIPS["apple7"].most_bytes == 1 << 30

def test_limits_of_pipelines_differ(mac: Opener) -> None:
  found = set()
  for seed in range(8):
    _, device = mac(seed=seed)
    found.add(device.build(code().text, "k_example", "example")[1])
  assert found == set(LIMITS)

@pytest.mark.parametrize(("length", "options", "words"), [
  (0, 0x100, "a buffer of 0 bytes"), (16, 32, "options 0x20 of a buffer"), (16, 0, "tracked buffers are not part")])
def test_buffers_that_are_refused(mac: Opener, length: int, options: int, words: str) -> None:
  _, device = mac()
  with pytest.raises(StrictError, match=words):
    device.objc.send(device.about.handle, "newBufferWithLength:options:", length, options)

@pytest.mark.parametrize(("chip", "messages", "words"), [
  ("apple7", [], "fast math is on"), ("apple7", [("setMathMode:", 0)], "setMathMode: is of macOS 15"),
  ("apple9", [("setMathMode:", 0)], "fast math is on"),
  ("apple7", [("setFastMathEnabled:", False)], "language version"),
  ("apple7", [("setFastMathEnabled:", False), ("setLanguageVersion:", 0x20004)], "language version 0x20004")])
def test_options_that_change_results_are_refused(mac: Opener, chip: str, messages: list[tuple[str, int]],
                                                 words: str) -> None:
  _, device = mac(chip)
  objc, error = device.objc, None
  with pytest.raises(StrictError, match=words), objc.pool():
    options, source = objc.make("MTLCompileOptions"), objc.string(code().text.decode())
    for selector, value in messages: objc.send(options, selector, value)
    objc.send(device.about.handle, "newLibraryWithSource:options:error:", source, options, error)

@pytest.mark.parametrize(("address", "length", "block", "words"), [
  (1 << 20 | 16, mmap.PAGESIZE, None, "whole pages"), (1 << 20, 100, None, "it is whole pages"),
  (1 << 20, 0, None, "0 bytes"), (1 << 20, mmap.PAGESIZE, 16, "a deallocator is not part")])
def test_memory_of_the_program_that_is_refused(mac: Opener, address: int, length: int, block: int | None,
                                               words: str) -> None:
  _, device = mac()
  with pytest.raises(StrictError, match=words):
    device.objc.send(device.about.handle, "newBufferWithBytesNoCopy:length:options:deallocator:", address, length,
                     0x100, block)
