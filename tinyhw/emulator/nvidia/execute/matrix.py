"""Matrix products of one warp with 32-bit accumulators.

    HMMA.16816               (16, 16) x (16, 8)   float16 or bfloat16
    HMMA.1688                (16, 8) x (8, 8)     TF32
    IMMA.16832, QMMA.16832   (16, 32) x (32, 8)   8-bit integers, 8-bit floats

The sum of floats is exact as far as doubles go, and rounded once. Hardware adds in an order of its own, so results may
differ in the last place. QMMA keeps 13 bits of the sum's mantissa and truncates the rest (Zhang et al., arXiv
2411.10958, section 3.2). Sums of integers wrap. TF32 is a float32 whose lowest 13 bits are ignored: NVIDIA's compiler
rounds by an addition and leaves these bits as they are. Layouts are those of the PTX ISA, "Matrix Fragments for mma": g
is lane / 4, t is lane % 4. A register has adjacent elements.
"""
from __future__ import annotations
import math
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from tinyhw.arithmetic import CODED, decode_bfloat16, decode_float16
from tinyhw.dtype import dtypes
from tinyhw.emulator.errors import EmulatorError, UnknownInstruction
from tinyhw.emulator.nvidia.warp.numbers import WORD, floats_of, signed, words_of
from tinyhw.emulator.nvidia.warp.operands import Operands, put
from tinyhw.emulator.nvidia.warp.state import ALL, LANES, ZEROS, Warp
from tinyhw.emulator.python.floats import float32_of
from tinyhw.isa.sass.table import regs

Step = Callable[[Warp, int], None]
Decode = Callable[[int], Any]
M, N = 16, 8
SHORT_BITS = 14
TF32_MASK = 0xffffe000

def place_a(lane: int, register: int, at: int, each: int) -> tuple[int, int]:
  """Return row and k step of element `at` of the `each` in a register."""
  return lane // 4 + 8 * (register & 1), each * (lane % 4 + 4 * (register >> 1)) + at

def place_b(lane: int, register: int, at: int, each: int) -> tuple[int, int]:
  return each * (lane % 4 + 4 * register) + at, lane // 4
def place_c(lane: int, register: int) -> tuple[int, int]:
  return lane // 4 + 8 * (register >> 1), 2 * (lane % 4) + (register & 1)

def rows_of(warp: Warp, index: int, count: int) -> list[list[int]]:
  return [ZEROS if index == regs.ZERO else warp.registers[index + k] for k in range(count)]

Place = Callable[[int, int, int, int], tuple[int, int]]

def matrix(rows: list[list[int]], place: Place, decode: Decode, shape: tuple[int, int], each: int) -> list[list[Any]]:
  """Return the elements of an operand matrix from the registers of all lanes."""
  found: list[list[Any]] = [[0] * shape[1] for _ in range(shape[0])]
  bits = 32 // each
  for register, words in enumerate(rows):
    for lane, word in enumerate(words):
      for at in range(each):
        i, j = place(lane, register, at, each)
        found[i][j] = decode(word >> bits * at & (1 << bits) - 1)
  return found

def total(c: float, row: Sequence[float], column: Sequence[float]) -> float:
  """Return c plus the products, with infinities and NaNs as in IEEE sums."""
  try: return math.fsum((c, *map(operator.mul, row, column)))
  # infinities of both signs; sums beyond doubles
  except (ValueError, OverflowError): return sum((c, *map(operator.mul, row, column)))

def short(x: float) -> float:
  """Truncate a number to its leading 14 bits, as sums of products of 8-bit floats are kept."""
  if not math.isfinite(x): return x
  mantissa, exponent = math.frexp(x)
  return math.ldexp(math.trunc(math.ldexp(mantissa, SHORT_BITS)), exponent - SHORT_BITS)

def short_total(c: float, row: Sequence[float], column: Sequence[float]) -> float: return short(total(c, row, column))

def whole_total(c: int, row: Sequence[int], column: Sequence[int]) -> int:
  products: Iterable[int] = map(operator.mul, row, column)
  return c + sum(products) & WORD

def multiply(o: Operands, each: int, decodes: tuple[Decode, Decode], numbers: Callable[[list[int]], list[Any]],
             add: Callable[..., Any],
             words: Callable[[list[Any]], list[int]]) -> Step:
  """Compute d = a * b + c. each: elements of a register. numbers, words: conversions of the accumulator's registers,
  there and back. add: of an accumulator element and a row times a column."""
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

FP8: dict[str, Decode] = {name: tuple(CODED[dtype][0](code) for code in range(256)).__getitem__
                          for name, dtype in zip(("E4M3", "E5M2"), dtypes.fp8_ocp)}

def decode_tf32(word: int) -> float: return float32_of(word & TF32_MASK)

def hmma(o: Operands) -> Step:
  decode = decode_bfloat16 if o.word("mmabf") == "BF16" else decode_float16
  return multiply(o, 2, (decode, decode), floats_of, total, words_of)

def imma(o: Operands) -> Step:
  if o.word("mmasat"): raise UnknownInstruction("IMMA that saturates is not supported yet")
  decodes = [(lambda x: signed(x, 8)) if o.word(name) == "S8" else int for name in ("itype_a", "itype_b")]
  return multiply(o, 4, (decodes[0], decodes[1]), list, whole_total, list)

def tf32(o: Operands) -> Step: return multiply(o, 1, (decode_tf32, decode_tf32), floats_of, total, words_of)

def qmma(o: Operands) -> Step:
  left, right = o.word("fp8mma").split(".")
  return multiply(o, 4, (FP8[left], FP8[right]), floats_of, short_total, words_of)

SEMANTICS: dict[str, Callable[[Operands], Step]] = {"HMMA.16816": hmma, "HMMA.1688.TF32": tf32, "IMMA.16832": imma,
                                                    "QMMA": qmma}
