"""HMMA and IMMA: the lane of each element, and the sum, compared with a product from the layouts that selection uses.
"""
from __future__ import annotations
import random

import pytest

from nvidia.warps import after
from tinyhw.arithmetic import encode_bfloat16, encode_float16
from tinyhw.dtype import dtypes, fp8_to_float
from tinyhw.emulator.errors import EmulatorError, UnknownInstruction
from tinyhw.emulator.nvidia.execute.matrix import short, total
from tinyhw.emulator.nvidia.warp.numbers import floats_of, words_of
from tinyhw.emulator.nvidia.warp.state import LANES

@pytest.mark.parametrize("word, encode", [("", encode_float16), (".BF16", encode_bfloat16)])
def test_products(word: str, encode) -> None:  # type: ignore[no-untyped-def]  # a function of numbers
  """Registers are filled by the PTX ISA's formulas, written out: a0 (g, 2t..), a1 (g+8, 2t..), a2 (g, 2t+8..), a3 (g+8,
  2t+8..)."""
  rng = random.Random(5)
  a, b, c = ([[float(rng.randint(-8, 8)) for _ in range(columns)] for _ in range(rows)]
             for rows, columns in ((16, 16), (16, 8), (16, 8)))
  def halves(low: float, high: float) -> int: return encode(high) << 16 | encode(low)
  given: dict[int, list[int]] = {k: [] for k in (*range(4, 8), 8, 9)}
  sums: dict[int, list[float]] = {k: [] for k in range(12, 16)}
  for lane in range(LANES):
    g, t = lane // 4, 2 * (lane % 4)
    for k, (i, j) in enumerate(((g, t), (g + 8, t), (g, t + 8), (g + 8, t + 8))):
      given[4 + k].append(halves(a[i][j], a[i][j + 1]))
    for k, i in enumerate((t, t + 8)): given[8 + k].append(halves(b[i][g], b[i + 1][g]))
    for k, (i, j) in enumerate(((g, t), (g, t + 1), (g + 8, t), (g + 8, t + 1))): sums[12 + k].append(c[i][j])
  warp = after([f"HMMA.16816.F32{word} R16, R4, R8, R12"],
               registers={**given, **{k: words_of(x) for k, x in sums.items()}})
  for lane in range(LANES):
    g, t = lane // 4, 2 * (lane % 4)
    for k, (i, j) in enumerate(((g, t), (g, t + 1), (g + 8, t), (g + 8, t + 1))):
      assert floats_of(warp.registers[16 + k])[lane] == c[i][j] + sum(a[i][x] * b[x][j] for x in range(16))

@pytest.mark.parametrize("left", ("S8", "U8"))
@pytest.mark.parametrize("right", ("S8", "U8"))
def test_products_of_bytes(left: str, right: str) -> None:
  """a0 (g, 4t..), a1 (g+8, 4t..), a2 (g, 4t+16..), a3 (g+8, 4t+16..); b0 (4t.., g), b1 (4t+16.., g). Sums wrap."""
  rng, signs = random.Random(6), {"S8": (-128, 127), "U8": (0, 255)}
  a, b = [[rng.randint(*signs[left]) for _ in range(32)]
          for _ in range(16)], [[rng.randint(*signs[right]) for _ in range(8)] for _ in range(32)]
  c = [[rng.choice((0x7fffffff, 0x80000000, 5)) for _ in range(8)] for _ in range(16)]
  def four(values: list[int]) -> int: return int.from_bytes(bytes(x & 255 for x in values), "little")
  given: dict[int, list[int]] = {k: [] for k in (*range(4, 10), *range(12, 16))}
  for lane in range(LANES):
    g, t = lane // 4, lane % 4
    for k, (i, j) in enumerate(((g, 4 * t), (g + 8, 4 * t), (g, 4 * t + 16), (g + 8, 4 * t + 16))):
      given[4 + k].append(four(a[i][j:j + 4]))
    for k, i in enumerate((4 * t, 4 * t + 16)): given[8 + k].append(four([b[i + n][g] for n in range(4)]))
    for k, (i, j) in enumerate(((g, 2 * t), (g, 2 * t + 1), (g + 8, 2 * t), (g + 8, 2 * t + 1))):
      given[12 + k].append(c[i][j])
  warp = after([f"IMMA.16832.{left}.{right} R16, R4.ROW, R8.COL, R12"], registers=given)
  for lane in range(LANES):
    g, t = lane // 4, 2 * (lane % 4)
    for k, (i, j) in enumerate(((g, t), (g, t + 1), (g + 8, t), (g + 8, t + 1))):
      assert warp.registers[16 + k][lane] == (c[i][j] + sum(a[i][x] * b[x][j] for x in range(32))) & 0xffffffff

@pytest.mark.parametrize("left, right", [("E4M3", "E4M3"), ("E5M2", "E4M3"), ("E4M3", "E5M2"), ("E5M2", "E5M2")])
def test_products_of_fp8(left: str, right: str) -> None:
  """Registers are as for IMMA. Products of small numbers are exact. 14 bits of a sum are kept, the rest is truncated.
  """
  rng, types = random.Random(7), {"E4M3": dtypes.fp8e4m3, "E5M2": dtypes.fp8e5m2}
  codes = [[[rng.randrange(8) << 4 | rng.randrange(2) << 7 for _ in range(columns)] for _ in range(rows)]
           for rows, columns in ((16, 32), (32, 8))]
  a, b = ([[fp8_to_float(code, types[kind]) for code in row] for row in rows]
          for rows, kind in zip(codes, (left, right)))
  given: dict[int, list[int]] = {k: [] for k in range(4, 16)}
  for lane in range(LANES):
    g, t = lane // 4, lane % 4
    for k, (i, j) in enumerate(((g, 4 * t), (g + 8, 4 * t), (g, 4 * t + 16), (g + 8, 4 * t + 16))):
      given[4 + k].append(int.from_bytes(bytes(codes[0][i][j:j + 4]), "little"))
    for k, i in enumerate((4 * t, 4 * t + 16)):
      given[8 + k].append(int.from_bytes(bytes(codes[1][i + n][g] for n in range(4)), "little"))
    for k in range(4): given[12 + k].append(words_of([1e-3] * LANES)[0])
  warp = after([f"QMMA.16832.F32.{left}.{right} R16, R4.ROW, R8.COL, R12"],
               registers={k: v for k, v in given.items() if v}, arch="sm_89")
  for lane in range(LANES):
    g, t = lane // 4, 2 * (lane % 4)
    for k, (i, j) in enumerate(((g, t), (g, t + 1), (g + 8, t), (g + 8, t + 1))):
      found, exact = floats_of(warp.registers[16 + k])[lane], sum(a[i][x] * b[x][j]
                                                                  for x in range(32)) + floats_of(given[12])[0]
      assert (abs(found) <= abs(exact) and abs(found - exact) < abs(exact) * 2 ** -13 and warp.registers[16 + k][lane]
              & 0x3ff == 0)

def test_products_of_tf32() -> None:
  """a0 (g, t), a1 (g+8, t), a2 (g, t+4), a3 (g+8, t+4); b0 (t, g), b1 (t+4, g).

  The lowest 13 bits of an element of A or B are ignored.
  """
  rng = random.Random(8)
  a, b = ([[float(rng.randint(-512, 512)) for _ in range(columns)] for _ in range(rows)]
          for rows, columns in ((16, 8), (8, 8)))
  given: dict[int, list[int]] = {k: [] for k in range(4, 10)}
  for lane in range(LANES):
    g, t = lane // 4, lane % 4
    for k, (i, j) in enumerate(((g, t), (g + 8, t), (g, t + 4), (g + 8, t + 4))):
      given[4 + k].append(words_of([a[i][j]] * LANES)[0] | 0x1fff)
    for k, i in enumerate((t, t + 4)): given[8 + k].append(words_of([b[i][g]] * LANES)[0] | rng.randrange(0x2000))
  warp = after(["HMMA.1688.F32.TF32 R16, R4, R8, RZ"], registers=given)
  for lane in range(LANES):
    g, t = lane // 4, 2 * (lane % 4)
    for k, (i, j) in enumerate(((g, t), (g, t + 1), (g + 8, t), (g + 8, t + 1))):
      assert floats_of(warp.registers[16 + k])[lane] == sum(a[i][x] * b[x][j] for x in range(8))

def test_sums_that_are_not_finite() -> None:
  assert (short(float("-inf")) == float("-inf") and str(short(float("nan"))) == "nan"
          and short(-(2.0 ** 13 + 1.5)) == -(2.0 ** 13 + 1))
  assert total(1.0, [1e308, 2.0], [0.5, 1.0]) == 5e307 + 3 and total(float("inf"), [1.0], [1.0]) == float("inf")

def test_what_is_refused() -> None:
  given = {k: [0] for k in range(4, 16)}
  with pytest.raises(EmulatorError, match="all 32 must run"):
    after(["HMMA.16816.F32 R16, R4, R8, R12"], registers=given, threads=31)
  with pytest.raises(UnknownInstruction, match="HMMA.1684/23c is not supported"):
    after(["HMMA.1684.F32.TF32 R16, R4, R8, R12"], registers=given)
  with pytest.raises(EmulatorError, match="IMMA is executed by some lanes only"):
    after(["IMMA.16832.S8.S8 R16, R4.ROW, R8.COL, R12"], registers=given, threads=31)
  with pytest.raises(UnknownInstruction, match="saturates"):
    after(["IMMA.16832.S8.S8.SAT R16, R4.ROW, R8.COL, R12"], registers=given)
