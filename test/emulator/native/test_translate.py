"""Blocks, their links, states that are computed in advance, and turns; for a machine whose instructions all go through
Python.
"""
from __future__ import annotations
from collections.abc import Sequence
from zlib import crc32

import pytest

from tinyhw.drivers.cpu.memory import address_of
from tinyhw.emulator.memory.memory import FlatMemory
from tinyhw.emulator.native import threaded, translate
from tinyhw.emulator.native.threaded import AT, CONTEXT_BYTES, Engine

pytestmark = pytest.mark.skipif(threaded.level() is None, reason="no x86-64 with AVX2, or no executable pages")

class Wave:
  """A wave that counts: "add n", "to address", "until n address" (jumps while the count is below), "wait", "end".
  tired: the state of its strict checks."""
  def __init__(self) -> None:
    self.file = bytearray(CONTEXT_BYTES + 64)
    self.address, self.context, self.memory = address_of(self.file), memoryview(self.file)[:CONTEXT_BYTES].cast(
      "q"), FlatMemory()
    self.context[AT["STATE"]] = self.address + CONTEXT_BYTES
    self.pc = self.count = self.tired = self.mode = 0
    self.waiting = self.ended = self.numbered = False

Code = list[str]

class Counting(translate.Translation[Wave, Code, str, int]):
  """Three "add" without a "wait" are an error."""
  def steps_from(self, pc: int, mode: int, decoder: Code) -> list[tuple[int, str]]:
    found = []
    while not found or found[-1][1].split()[0] in ("add", "wait"):
      found.append((pc, decoder[pc]))
      pc += 1
    return found

  def size(self, step: str) -> int: return 1
  def read(self, decoder: Code, address: int, size: int) -> bytes:
    return bytes(crc32(step.encode()) & 255 for step in decoder[address:address + size])

  def write(self, block: translate.TranslatedBlock[str], decoder: Code) -> None:
    for i, (pc, step) in enumerate(block.steps):
      if step == "add 0": raise KeyError(0)
      if step.startswith("to "): block.link(int(step.split()[1]))
      else: block.python(i)

  def known(self, wave: Wave) -> int: return wave.tired
  def tell(self, wave: Wave, what: int) -> None: wave.tired = what

  def foresee(self, wave: Wave, before: int, steps: Sequence[tuple[int, str]]) -> int | None:
    for _, step in steps:
      before = 0 if step == "wait" else before + step.startswith("add")
      if before == 3: return None
    return before

  def execute(self, wave: Wave, pc: int, step: str) -> bool:
    wave.pc = pc + 1
    what, *numbers = step.split()
    if what == "add": wave.count += int(numbers[0])
    elif what == "end": wave.ended = True
    elif what == "until" and wave.count < int(numbers[0]): wave.pc = int(numbers[1])
    return what in ("add", "wait")

@pytest.fixture(autouse=True)
def hot(monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setattr(translate, "HOT", 1)
  translate._kept.clear()

def made(code: Code) -> Counting:
  found = translate.kept(("test",), code, Counting)
  assert found is not None
  return found

LOOP = ["add 1", "wait", "to 3", "add 2", "until 9 0", "wait", "end"]

def start(code: Code, budget: int = 1000) -> tuple[Wave, Counting, int]:
  wave, found = Wave(), made(code)
  block = found.block(0, 0, code)
  assert block is not None
  return wave, found, found.run(wave, block, budget, code)

def test_a_loop_runs_to_its_end() -> None:
  wave, found, count = start(LOOP)
  assert (wave.count, wave.ended, wave.numbered) == (9, True, True) and count == 3 * (3 + 2) + 2
  assert {block.pc for block in found.blocks.values() if block is not None} == {0, 3, 5}
  assert sorted(found.states) == [0, 1], "states that the loop comes back to are the same"

def test_a_budget_ends_at_a_block() -> None:
  wave, found, count = start(LOOP, 4)
  assert count == 5 and wave.pc == 0 and wave.count == 3

def test_an_error_goes_step_by_step() -> None:
  wave, _, count = start(["add 1", "add 1", "to 3", "add 1", "end"])
  assert (wave.count, wave.pc, count) == (2, 3, 3) and (wave.tired, wave.numbered) == (2, False)

def test_what_is_hot(monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setattr(translate, "HOT", 3)
  found = made(LOOP)
  assert [found.block(0, 0, LOOP) is None for _ in range(4)] == [True, True, False, False]
  assert made(["add 0", "end"]).block(0, 0, ["add 0", "end"]) is None

def test_translations_are_kept_as_long_as_the_code_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
  _, found, _ = start(LOOP)
  assert made(LOOP) is found and made([*LOOP[:-1], "wait"]) is not found
  monkeypatch.setattr(translate, "MOST", 1)
  translate.kept(("other",), LOOP, Counting)
  assert list(translate._kept) == [("other",)]

def test_a_register_that_there_is_not() -> None:
  code = ["add 0", "end"]
  assert made(code).block(0, 0, code) is None and isinstance(made(code).engine, Engine)
