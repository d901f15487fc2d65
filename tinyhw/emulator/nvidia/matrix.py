"""Products of one warp with sums of 32 bits: HMMA.16816, (16, 16) x (16, 8) of float16 or bfloat16, and IMMA.16832, (16, 32) x (32, 8) of bytes.

The sum of floats is exact as far as doubles go and rounded once; hardware adds in an order of its own, so results may differ in the last place.
Sums of integers wrap. Layouts are those of the PTX ISA, "Matrix Fragments for mma": g is lane / 4, t is lane % 4; a register has elements beside
each other.
"""
from __future__ import annotations
import math
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from tinyhw.arithmetic import decode_bfloat16, decode_float16
from tinyhw.emulator.errors import EmulatorError, UnknownInstruction
from tinyhw.emulator.nvidia.numbers import WORD, floats_of, signed, words_of
from tinyhw.emulator.nvidia.operands import Operands, put
from tinyhw.emulator.nvidia.state import ALL, LANES, ZEROS, Warp
from tinyhw.isa.sass import regs

Step = Callable[[Warp, int], None]
Decode = Callable[[int], Any]
M, N = 16, 8

def place_a(lane: int, register: int, at: int, each: int) -> tuple[int, int]:
  """Row and step of element `at` of the `each` in a register."""
  return lane // 4 + 8 * (register & 1), each * (lane % 4 + 4 * (register >> 1)) + at

def place_b(lane: int, register: int, at: int, each: int) -> tuple[int, int]: return each * (lane % 4 + 4 * register) + at, lane // 4
def place_c(lane: int, register: int) -> tuple[int, int]: return lane // 4 + 8 * (register >> 1), 2 * (lane % 4) + (register & 1)

def rows_of(warp: Warp, index: int, count: int) -> list[list[int]]:
  return [ZEROS if index == regs.ZERO else warp.registers[index + k] for k in range(count)]

Place = Callable[[int, int, int, int], tuple[int, int]]

def matrix(rows: list[list[int]], place: Place, decode: Decode, shape: tuple[int, int], each: int) -> list[list[Any]]:
  """The elements of a factor from the registers of all lanes."""
  found: list[list[Any]] = [[0] * shape[1] for _ in range(shape[0])]
  bits = 32 // each
  for register, words in enumerate(rows):
    for lane, word in enumerate(words):
      for at in range(each):
        i, j = place(lane, register, at, each)
        found[i][j] = decode(word >> bits * at & (1 << bits) - 1)
  return found

def total(c: float, row: Sequence[float], column: Sequence[float]) -> float:
  """c plus the products; infinities and NaNs as sums of them have it."""
  try: return math.fsum((c, *map(operator.mul, row, column)))
  except (ValueError, OverflowError): return sum((c, *map(operator.mul, row, column)))  # infinities of both signs; sums beyond doubles

def whole_total(c: int, row: Sequence[int], column: Sequence[int]) -> int:
  products: Iterable[int] = map(operator.mul, row, column)
  return c + sum(products) & WORD

def multiply(o: Operands, each: int, decodes: tuple[Decode, Decode], numbers: Callable[[list[int]], list[Any]], add: Callable[..., Any],
             words: Callable[[list[Any]], list[int]]) -> Step:
  """d = a * b + c. each: elements of a register. numbers, words: of the sums' registers, there and back. add: a sum and a row times a column."""
  a, b, c, d = (o.values[name].index for name in "abcd")
  steps = 8 * each
  def run(warp: Warp, mask: int) -> None:
    if mask != ALL: raise EmulatorError(f"{o.form.mnemonic} is executed by some lanes only; all 32 must run")
    left = matrix(rows_of(warp, a, 4), place_a, decodes[0], (M, steps), each)
    right = matrix(rows_of(warp, b, 2), place_b, decodes[1], (steps, N), each)
    columns = [[row[j] for row in right] for j in range(N)]
    sums = [numbers(row) for row in rows_of(warp, c, 4)]
    for register in range(4):
      places = [place_c(lane, register) for lane in range(LANES)]
      put(warp, d + register, words([add(x, left[i], columns[j]) for x, (i, j) in zip(sums[register], places)]), mask)
  return run

def hmma(o: Operands) -> Step:
  kind = o.word("mmafmt")
  if kind == "TF32": raise UnknownInstruction("HMMA of TF32 has no meaning here yet")
  decode = decode_bfloat16 if kind == "BF16" else decode_float16
  return multiply(o, 2, (decode, decode), floats_of, total, words_of)

def imma(o: Operands) -> Step:
  if o.word("mmasat"): raise UnknownInstruction("IMMA that saturates has no meaning here yet")
  decodes = [(lambda x: signed(x, 8)) if o.word(name) == "S8" else int for name in ("itype_a", "itype_b")]
  return multiply(o, 4, (decodes[0], decodes[1]), list, whole_total, list)

MEANINGS: dict[str, Callable[[Operands], Step]] = {"HMMA.16816": hmma, "IMMA.16832": imma}
