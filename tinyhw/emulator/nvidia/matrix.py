"""HMMA.16816 with sums in float32: (16, 16) x (16, 8) of float16 or bfloat16.

The sum of an element is exact as far as doubles go and rounded once; hardware adds in an order of its own, so results may differ in the last place.
Layouts are those of the PTX ISA, "Matrix Fragments for mma.m16n8k16": g is lane / 4, t is lane % 4.
"""
from __future__ import annotations
import math
from collections.abc import Callable

from tinyhw.arithmetic import decode_bfloat16, decode_float16
from tinyhw.emulator.errors import EmulatorError, UnknownInstruction
from tinyhw.emulator.nvidia.numbers import floats_of, words_of
from tinyhw.emulator.nvidia.operands import Operands, put
from tinyhw.emulator.nvidia.state import ALL, LANES, ZEROS, Warp
from tinyhw.isa.sass import regs

Step = Callable[[Warp, int], None]
M, N, K = 16, 8, 16

def place_a(lane: int, register: int, half: int) -> tuple[int, int]:
  return lane // 4 + 8 * (register & 1), 2 * (lane % 4) + half + 8 * (register >> 1)

def place_b(lane: int, register: int, half: int) -> tuple[int, int]: return 2 * (lane % 4) + half + 8 * register, lane // 4
def place_c(lane: int, register: int) -> tuple[int, int]: return lane // 4 + 8 * (register >> 1), 2 * (lane % 4) + (register & 1)

def rows_of(warp: Warp, index: int, count: int) -> list[list[int]]:
  return [ZEROS if index == regs.ZERO else warp.registers[index + k] for k in range(count)]

Place = Callable[[int, int, int], tuple[int, int]]

def matrix(rows: list[list[int]], place: Place, decode: Callable[[int], float], shape: tuple[int, int]) -> list[list[float]]:
  """The elements of a factor from the registers of all lanes."""
  found = [[0.0] * shape[1] for _ in range(shape[0])]
  for register, words in enumerate(rows):
    for lane, word in enumerate(words):
      for half in range(2):
        i, j = place(lane, register, half)
        found[i][j] = decode(word >> 16 * half & 0xffff)
  return found

def total(c: float, row: list[float], column: list[float]) -> float:
  """c plus the products; infinities and NaNs as sums of them have it."""
  terms = [c, *(x * y for x, y in zip(row, column))]
  return math.fsum(terms) if all(map(math.isfinite, terms)) else sum(terms)

def hmma(o: Operands) -> Step:
  kind = o.word("mmafmt")
  if kind == "TF32": raise UnknownInstruction("HMMA of TF32 has no meaning here yet")
  decode = decode_bfloat16 if kind == "BF16" else decode_float16
  a, b, c, d = (o.values[name].index for name in "abcd")
  def run(warp: Warp, mask: int) -> None:
    if mask != ALL: raise EmulatorError("HMMA is executed by some lanes only; all 32 must run")
    left, right = matrix(rows_of(warp, a, 4), place_a, decode, (M, K)), matrix(rows_of(warp, b, 2), place_b, decode, (K, N))
    columns = [[row[j] for row in right] for j in range(N)]
    sums = [floats_of(words) for words in rows_of(warp, c, 4)]
    for register in range(4):
      found = []
      for lane in range(LANES):
        i, j = place_c(lane, register)
        found.append(total(sums[register][lane], left[i], columns[j]))
      put(warp, d + register, words_of(found), mask)
  return run

MEANINGS: dict[str, Callable[[Operands], Step]] = {"HMMA.16816": hmma}
