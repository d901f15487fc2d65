"""LDSM: all lanes of a warp together load blocks of 8 rows of 16 bytes from shared memory.

Lane 8b + r gives the address of row r of block b. A lane gets one register for each block: word lane % 4 of row lane /
4. With transposition (MT88) elements have two bytes, and the register has element lane / 4 of rows 2 * (lane % 4) and 2
* (lane % 4) + 1. Source: PTX ISA, ldmatrix.
"""
from __future__ import annotations
from collections.abc import Callable

from tinyhw.emulator.errors import EmulatorError, UnknownInstruction
from tinyhw.emulator.nvidia.memory.transfer import aligned, shared_gather, sum_of
from tinyhw.emulator.nvidia.warp.operands import Operands, put
from tinyhw.emulator.nvidia.warp.state import ALL, LANES, Warp

Step = Callable[[Warp, int], None]
ROWS, BYTES = 8, 16

def load_blocks(o: Operands) -> Step:
  tile, count = o.word("tile"), int(o.word("count") or 1)
  if tile not in ("M88", "MT88"): raise UnknownInstruction(f"LDSM of {tile} is not supported yet")
  address, index = sum_of(o, False), o.values["d"].index
  def run(warp: Warp, mask: int) -> None:
    if mask != ALL: raise EmulatorError("LDSM is executed by some lanes only; all 32 must run")
    lanes = list(range(ROWS * count))
    places = address(warp)
    rows = shared_gather(warp, lanes, aligned([places[lane] for lane in lanes], BYTES), BYTES)
    for block in range(count):
      mine = rows[ROWS * block:ROWS * (block + 1)]
      put(warp, index + block, [word_of(mine, lane, tile == "MT88") for lane in range(LANES)], mask)
  return run

def word_of(rows: list[bytes], lane: int, transposed: bool) -> int:
  """Return a lane's register of a block."""
  row, word = divmod(lane, 4)
  if not transposed: return int.from_bytes(rows[row][4 * word:4 * word + 4], "little")
  return int.from_bytes(rows[2 * word][2 * row:2 * row + 2] + rows[2 * word + 1][2 * row:2 * row + 2], "little")

SEMANTICS: dict[str, Callable[[Operands], Step]] = {"LDSM": load_blocks}
