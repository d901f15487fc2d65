"""Products of a warpgroup: the lane of each accumulator element, all layouts of shared memory, groups; each rule kept
and broken."""
from __future__ import annotations
import functools
from collections.abc import Callable

import pytest

from nvidia.products import (ARRIVE, BYTES, COPY, DONE, FENCE, MEET, SECOND, THREADS, Numbers, Tile, fill, numbers,
                             program, tile, tiles)
from tinyhw.arithmetic import decode_float16, encode_bfloat16, encode_float16
from tinyhw.dtype import dtypes, float_to_fp8
from tinyhw.emulator.errors import (DataRace, EmulatorError, Hang, MissingWait, OutOfBounds, UninitialisedRead,
                                    UnknownInstruction)
from tinyhw.emulator.nvidia.block import ThreadBlock
from tinyhw.emulator.nvidia.warp.numbers import signed, words_of
from tinyhw.emulator.nvidia.warp.state import LANES

START = [*COPY, FENCE, MEET]
FIRST, OTHER = tile(0, 128, False, 64), tile(SECOND, 128, False, 16)
PRODUCT = "HGMMA.64x16x16.F32.BF16 R24, gdesc[UR8], "

def memory_of(first: Tile, second: Tile, a: Numbers, b: Numbers, encode: Callable[[float], int],
              size: int = 2) -> bytes:
  found = bytearray(BYTES)
  fill(found, first, a, encode, size)
  fill(found, second, b, encode, size)
  return bytes(found)

def sums_of(block: ThreadBlock, columns: int, first: int = 24) -> list[list[int]]:
  """Return the words of the accumulator in the PTX ISA's layout: rows of all four warps."""
  found = [[0] * columns for _ in range(64)]
  for w, warp in enumerate(block.warps[:4]):
    for i in range(columns // 2):
      words = warp.registers[first + i]
      for lane in range(LANES):
        found[16 * w + lane // 4 + (8 if i & 2 else 0)][8 * (i // 4) + 2 * (lane % 4) + i % 2] = words[lane]
  return found

def product_of(a: Numbers, b: Numbers) -> Numbers:
  return [[sum(x * y for x, y in zip(row, column)) for column in b] for row in a]

def ran(lines: list[str], seed: int = 0, threads: int = THREADS) -> ThreadBlock:
  """Run a program over numbers in the usual tiles."""
  a, b = numbers(64, 16, 1), numbers(16, 16, 2)
  block = program([*tiles(FIRST, OTHER), *lines], memory_of(FIRST, OTHER, a, b, encode_bfloat16), threads, seed)
  block.run()
  return block

@pytest.mark.slow
@pytest.mark.parametrize("line", (16, 32, 64, 128))
@pytest.mark.parametrize("turned", ((False, False), (True, True), (False, True)))
def test_layouts(line: int, turned: tuple[bool, bool]) -> None:
  a, b = numbers(64, 16, line), numbers(64, 16, line + 1)
  first, second = tile(0, line, turned[0], 64), tile(SECOND, line, turned[1], 64)
  text = "".join(f".tnsp{x}" for x, is_turned in zip("AB", turned) if is_turned)
  lines = [*START, *tiles(first, second), ARRIVE, f"HGMMA.64x64x16.F32 R24, gdesc[UR8]{text}, RZ, !UPT, gsb0", DONE]
  block = program(lines, memory_of(first, second, a, b, encode_float16))
  block.run()
  assert sums_of(block, 64) == [[word_of(x) for x in row] for row in product_of(a, b)]

@pytest.mark.slow
@pytest.mark.parametrize("columns", (8, 24, 40))
def test_columns(columns: int) -> None:
  a, b = numbers(64, 16, 1), numbers(columns, 16, 2)
  second = tile(SECOND, 128, False, columns)
  lines = [*START, *tiles(FIRST, second), ARRIVE, f"HGMMA.64x{columns}x16.F32.BF16 R24, gdesc[UR8], RZ, !UPT, gsb0",
           DONE]
  block = program(lines, memory_of(FIRST, second, a, b, encode_bfloat16))
  block.run()
  assert [[word_of(x) for x in row] for row in product_of(a, b)] == sums_of(block, columns)

def word_of(x: float) -> int: return words_of([x] * LANES)[0]

@pytest.mark.slow
def test_sums_go_on_over_steps_and_groups() -> None:
  """Lines of 128 bytes have four times 16 steps. The next 32 bytes are the next steps."""
  a, b = numbers(64, 64, 3), numbers(16, 64, 4)
  lines = [*START, *tiles(FIRST, OTHER), ARRIVE, f"{PRODUCT}RZ, !UPT"]
  for k in range(1, 4):
    lines += ["UIADD3 UR8, UR8, 0x2, URZ", "UIADD3 UR10, UR10, 0x2, URZ", f"{PRODUCT}R24{', gsb0' if k > 1 else ''}"]
  for seed in range(3):
    block = program([*lines, "WARPGROUP.DEPBAR.LE gsb0, 0x1", DONE], memory_of(FIRST, OTHER, a, b, encode_bfloat16),
                    seed=seed)
    block.run()
    assert sums_of(block, 16) == [[word_of(x) for x in row] for row in product_of(a, b)]

@pytest.mark.slow
def test_signs_and_sums_that_begin_anew() -> None:
  expected = product_of(numbers(64, 16, 1), numbers(16, 16, 2))
  assert sums_of(ran([*START, ARRIVE, f"{PRODUCT}RZ, gsb0", DONE]), 16) == [[word_of(x) for x in row]
                                                                            for row in expected]
  begun = [*START, ARRIVE, f"{PRODUCT}RZ, !UPT"]
  both = ran([*begun, "HGMMA.64x16x16.F32.BF16 R24, gdesc[UR8].negA, R24, gsb0", DONE])
  assert sums_of(both, 16) == [[0] * 16] * 64
  both = ran([*begun, "HGMMA.64x16x16.F32.BF16 R24, gdesc[UR8].negA.negB, R24, !UPT, gsb0", DONE])
  assert sums_of(both, 16) == [[word_of(x) for x in row] for row in expected]

def test_a_predicate_decides_whether_sums_begin_anew() -> None:
  """Then the registers may be unwritten."""
  lines = [*START, "ISETP.NE.AND P0, PT, R4, RZ, PT", "VOTEU.ANY UP0, P0", ARRIVE, f"{PRODUCT}R24, UP0, gsb0", DONE]
  assert sums_of(ran(lines), 16) == [[word_of(x) for x in row]
                                     for row in product_of(numbers(64, 16, 1), numbers(16, 16, 2))]
  with pytest.raises(UninitialisedRead, match="R24 is added to"):
    ran([line.replace("UP0, gsb0", "!UP0, gsb0") for line in lines])

@pytest.mark.slow
def test_the_first_factor_in_registers() -> None:
  """Each warp's 16 rows, as for HMMA: a0 (g, 2t..), a1 (g+8, 2t..), a2 (g, 2t+8..), a3 (g+8, 2t+8..)."""
  a, b = numbers(64, 16, 5), numbers(16, 16, 6)
  memory = bytearray(memory_of(tile(4096, 128, False, 64), OTHER, a, b, encode_bfloat16))
  for thread in range(THREADS):
    g, t, first = thread % 32 // 4, 2 * (thread % 4), 16 * (thread // 32)
    for k, (i, j) in enumerate(((g, t), (g + 8, t), (g, t + 8), (g + 8, t + 8))):
      pair = encode_bfloat16(a[first + i][j]) | encode_bfloat16(a[first + i][j + 1]) << 16
      memory[16 * thread + 4 * k:16 * thread + 4 * k + 4] = pair.to_bytes(4, "little")
  descriptor = [f"UMOV UR{8 + k}, {word:#x}" for k, word in enumerate(OTHER.words)]
  lines = [*START, "IMAD.WIDE.U32 R2, R0, 0x10, R4", "LDG.E.128 R16, [R2]", *descriptor, ARRIVE,
           "HGMMA.64x16x16.F32.BF16 R24, R16, gdesc[UR8], RZ, !UPT, gsb0"]
  block = program([*lines, DONE], bytes(memory))
  block.run()
  assert sums_of(block, 16) == [[word_of(x) for x in row] for row in product_of(a, b)]
  with pytest.raises(MissingWait, match="R17 belongs to an asynchronous product"):
    program([*lines, "MOV R17, RZ"], bytes(memory)).run()
  # several products may read an operand
  block = program([*lines, lines[-1].replace("R24", "R32"), DONE], bytes(memory))
  block.run()
  assert sums_of(block, 16, 32) == sums_of(block, 16)
  with pytest.raises(MissingWait, match="R16 belongs to another asynchronous product"):
    program([*lines, lines[-1].replace("R24", "R16")], bytes(memory)).run()

def test_sums_in_halves() -> None:
  a, b = numbers(64, 16, 7), numbers(16, 16, 8)
  block = program([*START, *tiles(FIRST, OTHER), ARRIVE, "HGMMA.64x16x16.F16 R24, gdesc[UR8], RZ, !UPT, gsb0", DONE],
                  memory_of(FIRST, OTHER, a, b, encode_float16))
  block.run()
  expected = product_of(a, b)
  for w, warp in enumerate(block.warps):
    for k in range(4):
      for lane, word in enumerate(warp.registers[24 + k]):
        row, column = 16 * w + lane // 4 + 8 * (k & 1), 8 * (k >> 1) + 2 * (lane % 4)
        assert [decode_float16(word & 0xffff), decode_float16(word >> 16)] == expected[row][column:column + 2]

def test_bytes() -> None:
  a, b = numbers(64, 32, 9, -128, 127), numbers(16, 32, 10, 0, 255)
  memory = bytearray(BYTES)
  fill(memory, FIRST, a, lambda x: int(x) & 255, 1)
  fill(memory, OTHER, b, int, 1)
  block = program([*START, *tiles(FIRST, OTHER), ARRIVE, "IGMMA.64x16x32.S8.U8 R24, gdesc[UR8], RZ, !UPT, gsb0", DONE],
                  bytes(memory))
  block.run()
  assert [[signed(word) for word in row] for row in sums_of(block, 16)] == product_of(a, b)

@pytest.mark.parametrize("types", ("E4M3.E4M3", "E5M2.E5M2"))
def test_floats_of_a_byte(types: str) -> None:
  """Sums of small numbers are exact."""
  encode = functools.partial(float_to_fp8, dtype={"E4M3": dtypes.fp8e4m3, "E5M2": dtypes.fp8e5m2}[types[:4]])
  a, b = numbers(64, 32, 11, -4, 4), numbers(16, 32, 12, -4, 4)
  block = program([*START, *tiles(FIRST, OTHER), ARRIVE, f"QGMMA.64x16x32.F32.{types} R24, gdesc[UR8], RZ, !UPT, gsb0",
                   DONE],
                  memory_of(FIRST, OTHER, a, b, encode, 1))
  block.run()
  assert sums_of(block, 16) == [[word_of(x) for x in row] for row in product_of(a, b)]

def test_tf32() -> None:
  """Numbers with 10 bits of mantissa. The lowest 13 bits of a float32 are ignored."""
  a, b = numbers(64, 8, 13), numbers(16, 8, 14)
  block = program([*START, *tiles(FIRST, OTHER), ARRIVE, "HGMMA.64x16x8.F32.TF32 R24, gdesc[UR8], RZ, !UPT, gsb0",
                   DONE],
                  memory_of(FIRST, OTHER, a, b, lambda x: word_of(x) | 0xfff, 4))
  block.run()
  assert sums_of(block, 16) == [[word_of(x) for x in row] for row in product_of(a, b)]

@pytest.mark.slow
def test_translated_code_does_the_same() -> None:
  """Code is translated after eight executions. It waits and finds mistakes like code that goes step by step."""
  expected = [[word_of(x) for x in row] for row in product_of(numbers(64, 16, 1), numbers(16, 16, 2))]
  for seed in range(4): assert sums_of(ran([*PRODUCED, DONE, "FADD R40, R24, RZ"], seed), 16) == expected
  for seed in range(4):
    with pytest.raises(MissingWait, match="R24 belongs"): ran([*PRODUCED, "FADD R40, R24, RZ", DONE], seed)
    with pytest.raises(DataRace, match="must execute FENCE"):
      ran([*COPY, MEET, ARRIVE, f"{PRODUCT}RZ, !UPT, gsb0"], seed)

# ***** rules *****

PRODUCED = [*START, ARRIVE, f"{PRODUCT}RZ, !UPT, gsb0"]
RULES = [
  ([*START, f"{PRODUCT}RZ, !UPT, gsb0"], MissingWait, "no WARPGROUP.ARRIVE stands before"),
  ([*START, ARRIVE, "MOV R24, RZ", f"{PRODUCT}RZ, !UPT, gsb0"], MissingWait, "R24 was read or written after the last "
   "WARPGROUP.ARRIVE"),
  ([*PRODUCED, "FADD R40, R24, RZ"], MissingWait, "R24 belongs to an asynchronous product: no WARPGROUP.DEPBAR has "
   "waited"),
  ([*PRODUCED, "MOV R31, RZ"], MissingWait, "R31 belongs to an asynchronous product"),
  ([*PRODUCED, "WARPGROUP.DEPBAR.LE gsb0, 0x1", "FADD R40, R24, RZ"], MissingWait, "R24 belongs"),
  ([*START, ARRIVE, f"{PRODUCT}RZ, !UPT", DONE, "FADD R40, R24, RZ"], MissingWait, "R24 belongs"),
  ([*PRODUCED, "HGMMA.64x8x16.F32.BF16 R24, gdesc[UR8], R24, gsb0"], MissingWait,
   "R24 belongs to another asynchronous product"),
  ([*PRODUCED, DONE, "FADD R40, R24, RZ", f"{PRODUCT}R24, gsb0"], MissingWait,
   "R24 was read or written after the last"),
  ([*COPY, MEET, ARRIVE, f"{PRODUCT}RZ, !UPT, gsb0"], DataRace, "must execute FENCE.VIEW.ASYNC.S after the store"),
  ([*COPY, "FENCE.VIEW.ASYNC.G", MEET, ARRIVE, f"{PRODUCT}RZ, !UPT, gsb0"], DataRace,
   "must execute FENCE.VIEW.ASYNC.S after the store"),
  ([*COPY, MEET, FENCE, ARRIVE, f"{PRODUCT}RZ, !UPT, gsb0"], DataRace, "make visible to products and copies there; "
   "put a barrier"),
  ([*COPY, FENCE, ARRIVE, f"{PRODUCT}RZ, !UPT, gsb0"], DataRace, "warp . does write there; put a barrier between them"),
  ([*PRODUCED, "STS [R1], RZ"], DataRace, "does (read|write) there"),
  ([*PRODUCED, MEET, "STS [R1], RZ"], DataRace, "the products of warps 0 to 3 does read there; wait until that is "
   "done"),
  ([*PRODUCED, MEET, FENCE, "STS [R1], RZ"], DataRace, "the products of warps 0 to 3 does read there"),
  ([*START, ARRIVE, f"{PRODUCT}RZ, !UPT", DONE, MEET, "STS [R1], RZ"], DataRace,
   "the products of warps 0 to 3 does read there"),
  ([*PRODUCED, f"{PRODUCT}R24, gsb0", "WARPGROUP.DEPBAR.LE gsb0, 0x1", MEET, "STS [R1], RZ"], DataRace,
   "warps 0 to 3 does read there"),
  ([MEET, ARRIVE, f"{PRODUCT}RZ, !UPT, gsb0"], UninitialisedRead, "no warp has written all"),
  ([*START, "UMOV UR8, 0x3f0", ARRIVE, f"{PRODUCT}RZ, !UPT, gsb0"], OutOfBounds,
   "is not in the first line of a pattern; align tiles to 1024"),
  ([*START, "UMOV UR8, 0x7", ARRIVE, f"{PRODUCT}RZ, !UPT, gsb0"], OutOfBounds, "its 32 bytes end after it"),
  ([*START, "UMOV UR9, 0x20000", ARRIVE, f"{PRODUCT}RZ, !UPT, gsb0"], UnknownInstruction,
   "a base offset is not supported yet"),
  ([*START, "UMOV UR9, 0x100000", ARRIVE, f"{PRODUCT}RZ, !UPT, gsb0"], UnknownInstruction, "have no meaning"),
  ([*START, "MOV R24, RZ", ARRIVE, f"{PRODUCT}R24, gsb0"], UninitialisedRead,
   "R25 is added to, and nothing has written it in all lanes"),
  ([*START, "ISETP.EQ.AND P0, PT, R1, RZ, PT", "@P0 EXIT", ARRIVE, f"{PRODUCT}RZ, !UPT, gsb0"], EmulatorError,
   "is executed by some lanes only"),
  ([*START, ARRIVE, "HGMMA.64x16x16.F32.BF16 R24, gdesc[UR8], R32, gsb0"], UnknownInstruction,
   "adds to R32 and writes R24"),
]

@pytest.mark.slow
@pytest.mark.parametrize("lines, error, message", RULES, ids=[message for *_, message in RULES])
def test_rules(lines: list[str], error: type[EmulatorError], message: str) -> None:
  for seed in range(2):
    with pytest.raises(error, match=message): ran(lines, seed)

@pytest.mark.slow
def test_what_keeps_them() -> None:
  ran([*PRODUCED, DONE, "FADD R40, R24, RZ", ARRIVE, f"{PRODUCT}R24, gsb0", DONE, "MOV R24, RZ"])
  ran([*START, ARRIVE, f"{PRODUCT}RZ, !UPT, gsb0", f"{PRODUCT}R24, gsb0", "HGMMA.64x16x16.F32.BF16 R32, gdesc[UR8], "
       "RZ, !UPT, gsb0",
       "WARPGROUP.DEPBAR.LE gsb0, 0x1", "FADD R40, R24, RZ"])
  ran([*PRODUCED, DONE, MEET, "STS [R1], RZ"])

@pytest.mark.slow
def test_who_has_waited_may_overwrite() -> None:
  """The wait of one warp is for the products of all four. That warp alone overwrites the bytes that they have read,
  without a barrier."""
  for seed in range(4):
    ran([*PRODUCED, "ISETP.EQ.AND P0, PT, R1, RZ, PT", DONE, "@P0 STS [R1], RZ"], seed)

@pytest.mark.slow
def test_the_four_go_together() -> None:
  with pytest.raises(EmulatorError, match="wants groups of four warps"):
    ran([ARRIVE, f"{PRODUCT}RZ, !UPT, gsb0"], threads=96)
  alone = ["S2R R0, SR_TID.X", "ISETP.LT.U32.AND P0, PT, R0, 0x20, PT", "@P0 EXIT", *START, ARRIVE,
           f"{PRODUCT}RZ, !UPT, gsb0", DONE]
  with pytest.raises(Hang, match="it waits for the products of warps 0 to 3, which not all of them have issued"):
    ran(alone)
  other = ["S2R R0, SR_TID.X", "SHF.R.U32 R6, R0, 0x5, RZ", "R2UR UR4, R6", *START, "UIADD3 UR8, UR8, UR4, URZ", ARRIVE,
           f"{PRODUCT}RZ, !UPT, gsb0", DONE]
  with pytest.raises(EmulatorError, match="issues another product than the warps before it"): ran(other)

def test_what_is_not_supported() -> None:
  with pytest.raises(UnknownInstruction, match="saturates"):
    ran([*START, ARRIVE, "IGMMA.64x16x32.S8.S8.SAT R24, gdesc[UR8], RZ, !UPT, gsb0"])
  with pytest.raises(UnknownInstruction, match="WARPGROUP.WAIT"): ran(["WARPGROUP.WAIT"])

@pytest.mark.parametrize("line", (ARRIVE, f"{PRODUCT}RZ, !UPT, gsb0", DONE))
def test_products_have_no_guards(line: str) -> None:
  """The state of a warp's registers does not depend on predicates. Where one is false the registers would be free, with
  no group to wait for."""
  lines = [*START, "ISETP.NE.AND P0, PT, R1, R1, PT", ARRIVE, f"{PRODUCT}RZ, !UPT, gsb0", DONE]
  lines[lines.index(line)] = f"@P0 {line}"
  with pytest.raises(UnknownInstruction, match="with a guard is not supported yet: branch around it"):
    ran([*lines, "FADD R40, R24, RZ"])
