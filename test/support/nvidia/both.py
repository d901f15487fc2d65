"""Random straight SASS that warps execute both ways, step by step in Python and as translated code, and what must be
the same afterwards."""
from __future__ import annotations
import random
from collections.abc import Sequence
from typing import Any

import pytest
from nvidia.warps import block_of, give, words

from tinyhw import Context
from tinyhw.emulator.errors import StrictError
from tinyhw.emulator.native import translate
from tinyhw.emulator.nvidia.block import ThreadBlock
from tinyhw.emulator.nvidia.warp.state import LANES, Warp

REGISTERS = 24
FLOATS = (0, 0x80000000, 0x3f800000, 0xbf800000, 0x7f800000, 0xff800000, 0x7fc00000, 0x7f7fffff, 0x00000001, 0x007fffff,
          0x4b000001, 0xcf000000,
          0x4f000000, 0x3effffff, 0xc0490fdb, 0x3c003c00, 0x7c01fbff, 0x3ff00000, 0xbff80000, 0x41e00000, 0x7ff00000,
          0xfff80000)
NUMBERS = FLOATS + (1, 2, 3, 31, 32, 33, 63, 64, 65, 0x7fffffff, 0xffffffff, 0xfffffffe, 0x80000001, 0x10000)

@pytest.fixture
def hot(monkeypatch: pytest.MonkeyPatch) -> None:
  """Everything is translated when it is executed for the first time."""
  monkeypatch.setattr(translate, "HOT", 1)
  translate._kept.clear()

def fill(block: ThreadBlock, seed: int, hidden: Sequence[int] = ()) -> None:
  """Values that show mistakes in all registers and predicates; nothing has written the hidden registers."""
  source = random.Random(seed)
  for warp in block.warps:
    for index in range(REGISTERS):
      if index not in hidden:
        give(warp, index,
             words(source.getrandbits(32), NUMBERS if source.random() < 0.9 else (source.getrandbits(32),)))
    for index in range(7):
      warp.predicates[index], warp.known["P",
                                         index] = source.choice((source.getrandbits(32), 0, 0xffffffff)), 0xffffffff
    for index in range(8): warp.uniform[index], warp.known["UR", index] = source.choice(NUMBERS), 0xffffffff
    for index in range(7):
      warp.uniform_predicates[index], warp.known["UP", index] = source.choice((0, 0xffffffff)), 0xffffffff

Outcome = tuple[ThreadBlock, bytearray, str]

def run_both(code: bytes, seed: int, content: bytes = b"", hidden: Sequence[int] = (), **given: Any) -> list[Outcome]:
  """(block, memory, error) step by step and translated."""
  found = []
  for translated in (0, 1):
    memory, error = bytearray(content) if content else None, ""
    with Context(EMULATE_TRANSLATE=translated):
      block = block_of(code, content=memory, count=REGISTERS, seed=seed, **given)
      fill(block, seed, hidden)
      try: block.run()
      except StrictError as e: error = f"{type(e).__name__}: {e}"
    found.append((block, memory or bytearray(), error))
  return found

def alike(a: int, b: int, highs: tuple[int, int]) -> bool:
  """Equal, or NaNs of float32, of float64 by the words above, or of float16 in a half."""
  if a == b or a & 0x7fffffff > 0x7f800000 and b & 0x7fffffff > 0x7f800000: return True
  if all(x & 0x7ff00000 == 0x7ff00000 for x in highs): return True
  return all(x == y or x & 0x7fff > 0x7c00 and y & 0x7fff > 0x7c00
             for x, y in ((a & 0xffff, b & 0xffff), (a >> 16, b >> 16)))

def assert_same(code: bytes, seed: int, what: str = "", **given: Any) -> list[Outcome]:
  """Both ways leave the same registers, memory and errors."""
  found = run_both(code, seed, **given)
  (python, memory, error), (machine, other_memory, other_error) = found
  assert error == other_error, what
  assert memory == other_memory, what
  if not error: assert python.executed == machine.executed, what
  assert python.translation is None and (machine.translation is not None and machine.translation.by_entry
                                         or error), what
  for one, other in zip(python.warps, machine.warps): assert_same_warp(one, other, what)
  return found

def assert_same_warp(one: Warp, other: Warp, what: str) -> None:
  assert (one.pc, one.active, one.waiting) == (other.pc, other.active, other.waiting), what
  assert one.predicates.tolist() == other.predicates.tolist(), (what,
                                                                [hex(a ^ b)
                                                                 for a, b in zip(one.predicates, other.predicates)])
  assert one.uniform.tolist() == other.uniform.tolist(), what
  assert list(one.uniform_predicates) == list(other.uniform_predicates), what
  assert one.known.masks.tolist() == other.known.masks.tolist(), what
  for index in range(REGISTERS):
    high = index + 1 if index + 1 < REGISTERS else index
    rows = [(warp.registers[index], warp.registers[high]) for warp in (one, other)]
    for lane in range(LANES):
      values = [row[0][lane] for row in rows]
      assert alike(values[0], values[1], (rows[0][1][lane], rows[1][1][lane])), (what, index, lane,
                                                                                 [hex(x) for x in values])
