"""Bulk copies of boxes of tensors and runs of bytes to shared memory, counted by an mbarrier; and products of the
copied data."""
from __future__ import annotations
import struct
from collections.abc import Sequence

import pytest

from nvidia.copies import F32, U8, initialise, tensor_map
from nvidia.products import fill, numbers, tile, tiles
from nvidia.warps import LANES, MEMORY, block_of, scheduled
from tinyhw.arithmetic import encode_bfloat16
from tinyhw.emulator.errors import (
  DataRace, EmulatorError, Hang, MissingWait, OutOfBounds, UninitialisedRead, UnknownInstruction)
from tinyhw.emulator.nvidia.block import ThreadBlock
from tinyhw.emulator.nvidia.memory import tensor_copies
from tinyhw.emulator.nvidia.warp.numbers import words_of

MEET, AT, GOAL = "BAR.SYNC.DEFER_BLOCKING 0x0", 0x3f00, 0x400
TENSOR = 1024            # where tensors begin in global memory, after the maps
MAP = MEMORY + 512

def box(at: int, coordinates: Sequence[int], which: int = 0, dims: int = 2) -> list[str]:
  """Return lines that start a copy of a box by map number `which`."""
  words = [at, AT, *coordinates]
  return [*(f"UMOV UR{8 + k}, {word & 0xffffffff:#x}" for k, word in enumerate(words)),
          f"UMOV UR4, {MAP + 128 * which & 0xffffffff:#x}",
          f"UMOV UR5, {MAP >> 32:#x}", f"UTMALDG.{dims}D [UR8], [UR4]"]

def expect(size: int) -> list[str]:
  """Return lines with which one lane of the first warp arrives, and expects bytes."""
  return ["ELECT P2, UR3, PT", f"MOV R6, {size:#x}", "@P2 SYNCS.ARRIVE.TRANS64 RZ, [UR2], R6"]

WAIT = ["MOV R3, RZ", "again:", "SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR2], R3", "@!P0 BRA again"]

def program(lines: Sequence[str], then: Sequence[str], memory: bytes, threads: int = 64, seed: int = 0,
            begin: Sequence[str] = tuple(initialise(AT, 1))) -> ThreadBlock:
  """Run a program: the first warp initialises a barrier of one arrival, and executes lines. Then all execute `then`."""
  whole = ["S2R R0, SR_TID.X", "ISETP.GE.U32.AND P1, PT, R0, 0x20, PT", "SHF.L.U32 R1, R0, 0x2, RZ",
           f"UMOV UR2, {AT:#x}", "@P1 BRA met",
           *begin, "met:", MEET, "@P1 BRA started", *lines, "started:", *then]
  return block_of(scheduled(whole), threads=threads, shared=16384, content=bytearray(memory), seed=seed, count=64)

def ran(lines: Sequence[str], then: Sequence[str], memory: bytes, threads: int = 64, seed: int = 0,
        **given: Sequence[str]) -> ThreadBlock:
  block = program(lines, then, memory, threads, seed, **given)
  block.run()
  return block

def memory_of(maps: Sequence[bytes], data: bytes) -> bytes:
  found = bytearray(8192)
  for k, each in enumerate(maps): found[512 + 128 * k:512 + 128 * (k + 1)] = each
  found[TENSOR:TENSOR + len(data)] = data
  return bytes(found)

ROWS, COLUMNS = 24, 40
PLANE = memory_of([tensor_map(MEMORY + TENSOR, (COLUMNS, ROWS), (4 * COLUMNS,), (8, 4), F32, 0, 4)],
                  struct.pack(f"<{ROWS * COLUMNS}I", *range(1, 1 + ROWS * COLUMNS)))
SIZE = 4 * 32

@pytest.mark.parametrize("first", [(0, 0), (8, 4), (36, 0), (-4, 22), (-8, -8), (100, 3)])
def test_boxes(first: tuple[int, int]) -> None:
  """Rows are contiguous. Elements outside of the tensor are zeros, and their bytes are counted too."""
  for seed in range(2):
    then = [*WAIT, "LOP3.LUT R2, R1, 0x7c, RZ, 0xc0, !PT", f"LDS R4, [R2+{GOAL:#x}]", "MOV R5, R4"]
    block = ran([*expect(SIZE), *box(GOAL, first)], then, PLANE, seed=seed)
    places = [(first[0] + lane % 8, first[1] + lane // 8) for lane in range(LANES)]
    expected = [1 + x + COLUMNS * y if 0 <= x < COLUMNS and 0 <= y < ROWS else 0 for x, y in places]
    assert [list(warp.registers[4]) for warp in block.warps] == [expected] * 2

@pytest.mark.slow
def test_a_copy_comes_though_nobody_waits_with_patience() -> None:
  """256 tests: one of them finds it."""
  looks = ["MOV R3, RZ", "MOV R7, RZ", "again:", "SYNCS.PHASECHK.TRANS64 P0, [UR2], R3", "IADD3 R7, R7, 0x1, RZ",
           "ISETP.LT.AND P2, PT, R7, 0x100, PT", "@P2 BRA again", "SEL R9, R7, RZ, P0"]
  assert ran([*expect(SIZE), *box(GOAL, (0, 0))], looks, PLANE).warps[1].registers[9] == [256] * LANES

def test_three_dimensions() -> None:
  data = struct.pack("<480I", *range(480))
  memory = memory_of([tensor_map(MEMORY + TENSOR, (8, 5, 12), (32, 160), (4, 4, 2), F32, 0, 4)], data)
  block = ran([*expect(SIZE), *box(GOAL, (4, 3, 7), 0, 3)],
              [*WAIT, "LOP3.LUT R2, R1, 0x7c, RZ, 0xc0, !PT", f"LDS R4, [R2+{GOAL:#x}]"], memory)
  places = [(4 + lane % 4, 3 + lane // 4 % 4, 7 + lane // 16) for lane in range(LANES)]
  assert list(block.warps[0].registers[4]) == [x + 8 * y + 40 * z if y < 5 else 0 for x, y, z in places]

@pytest.mark.slow
def test_a_product_of_two_swizzled_boxes() -> None:
  """As in a pipeline: the first warp requests both operands, four warps multiply them."""
  a, b = numbers(64, 64, 1), numbers(16, 64, 2)
  flat = b"".join(encode_bfloat16(x).to_bytes(2, "little") for row in (*a, *b) for x in row)
  found = bytearray(memory_of([], b"") + bytes(8192))
  for k, (at, rows) in enumerate(((0, 64), (64 * 128, 16))):
    found[512 + 128 * k:640 + 128 * k] = tensor_map(MEMORY + TENSOR + at, (64, rows), (128,), (64, rows), swizzle=3)
  found[TENSOR:TENSOR + len(flat)] = flat
  first, second = tile(0, 128, False, 64), tile(8192, 128, False, 16)
  asked = [*expect(10240), *box(0, (0, 0)), *box(8192, (0, 0), 1)]
  multiplied = [*tiles(first, second), "WARPGROUP.ARRIVE", "HGMMA.64x16x16.F32.BF16 R24, gdesc[UR8], RZ, !UPT"]
  for k in range(1, 4):
    multiplied += ["UIADD3 UR8, UR8, 0x2, URZ", "UIADD3 UR10, UR10, 0x2, URZ",
                   f"HGMMA.64x16x16.F32.BF16 R24, gdesc[UR8], R24{', gsb0' * (k == 3)}"]
  done = "WARPGROUP.DEPBAR.LE gsb0, 0x0"
  for seed in range(2):
    block = ran(asked, [*WAIT, *multiplied, done], bytes(found), 128, seed)
    for w, warp in enumerate(block.warps):
      for i in range(8):
        for lane, word in enumerate(warp.registers[24 + i]):
          row, column = 16 * w + lane // 4 + 8 * (i >> 1 & 1), 8 * (i >> 2) + 2 * (lane % 4) + i % 2
          assert word == words_of([sum(x * y for x, y in zip(a[row], b[column]))] * LANES)[0]
    with pytest.raises((DataRace, MissingWait)): ran(asked, [*multiplied, done], bytes(found), 128, seed)
    # the next box overwrites the bytes that the product reads: only after its group is done, and only if the requesting
    # warp knows that
    again = ["@P1 BRA over", *box(8192, (0, 0), 1), "over:"]
    with pytest.raises(DataRace, match="does (read|write) there; wait until that is done"):
      ran(asked, [*WAIT, *multiplied, *again], bytes(found), 128, seed)

@pytest.mark.slow
def test_the_swizzle_is_that_of_descriptors() -> None:
  """A box of (64, 8) of bytes as pieces in a swizzled tile."""
  for swizzle, line in ((1, 32), (2, 64), (3, 128)):
    data = bytes(range(256)) * (8 * line // 256)
    drawn = bytearray(2048)
    fill(drawn, tile(0, line, False, 8), [[float(x) for x in data[line * r:line * (r + 1)]] for r in range(8)], int, 1)
    memory = memory_of([tensor_map(MEMORY + TENSOR, (line, 8), (line,), (line, 8), U8, swizzle, 1)], data)
    block = ran([*expect(8 * line), *box(GOAL, (0, 0))], [*WAIT, f"LDS R4, [R1+{GOAL:#x}]"], memory)
    words = [word for warp in block.warps for word in warp.registers[4]]
    assert struct.pack("<64I", *words) == bytes(drawn[:256])

@pytest.mark.slow
def test_runs_of_bytes() -> None:
  copy = [f"UMOV UR8, {GOAL:#x}", f"UMOV UR9, {AT:#x}", f"UMOV UR6, {MEMORY + TENSOR + 16 & 0xffffffff:#x}",
          f"UMOV UR7, {MEMORY >> 32:#x}",
          "UMOV UR4, 0x80", "UBLKCP.S.G [UR8], [UR6], UR4"]
  block = ran([*expect(128), *copy], [*WAIT, "LOP3.LUT R2, R1, 0x7c, RZ, 0xc0, !PT", f"LDS R4, [R2+{GOAL:#x}]"], PLANE)
  assert list(block.warps[1].registers[4]) == list(range(5, 37))
  for right, wrong, told in (("UR4, 0x80", "UR4, 0x82", "a number of bytes 0x82"),
                             (f"UR8, {GOAL:#x}", "UR8, 0x408", "a copy to shared memory 0x408"),
                             ("410", "418", "a copy from 0x.*418")):
    lines = [line.replace(right, wrong) for line in copy]
    with pytest.raises(OutOfBounds, match=f"{told} is no multiple of 16"): ran([*expect(128), *lines], WAIT, PLANE)

LOAD = [f"LDS R4, [R1+{GOAL:#x}]", "MOV R5, R4"]
START = [*expect(SIZE), *box(GOAL, (0, 0))]
RULES = [
  (START, LOAD, DataRace, "a copy that mbarrier 0x3f00 counts does write there; wait until that is done"),
  (START, [*WAIT, f"LDS R4, [R1+{GOAL + 64:#x}]"], UninitialisedRead, "no warp has written all"),
  ([*START, f"STS [R1+{GOAL:#x}], RZ"], WAIT, DataRace, "a store where an asynchronous copy still writes"),
  ([*START, *box(GOAL, (0, 0))], WAIT, DataRace, "two asynchronous copies write there"),
  ([f"STS [R1+{GOAL:#x}], RZ", *START], WAIT, DataRace, "must execute FENCE.VIEW.ASYNC.S after the store"),
  ([*box(GOAL, (0, 0)), *box(GOAL + 128, (0, 0)), *expect(SIZE)], WAIT, EmulatorError,
   "a phase is complete while 1 of its copies are under way"),
  ([*expect(2 * SIZE), *box(GOAL, (0, 0))], WAIT, Hang, "for which arrivals or bytes are missing"),
  (box(GOAL, (0, 0)), [], DataRace, "the block ends, and 1 copies to its memory have not been waited for"),
  ([*expect(2 * SIZE), *box(GOAL, (0, 0)), "SYNCS.CCTL.IV [UR2]"], [], EmulatorError,
   "ends while 1 of its copies are under way"),
  ([*expect(SIZE), *box(AT - AT % 128, (0, 0))], WAIT, EmulatorError, "memory address 0x3f00: 16 bytes are read or "
   "written where an mbarrier is"),
  ([*expect(SIZE), *box(GOAL + 64, (0, 0))], WAIT, OutOfBounds, "a box at shared memory 0x440 is no multiple of 128"),
  ([*expect(SIZE), *box(16384, (0, 0))], WAIT, OutOfBounds, "the block has 16384 bytes"),
  ([*expect(SIZE), *(line.replace(f"UR9, {AT:#x}", "UR9, 0x200") for line in box(GOAL, (0, 0)))], WAIT,
   UninitialisedRead,
   "no mbarrier has been initialised"),
  ([*expect(SIZE), *box(GOAL, (0, 0, 0), 0, 3)], WAIT, OutOfBounds, "UTMALDG.3D of a tensor with 2 dimensions"),
]

@pytest.mark.parametrize("lines, then, error, message", RULES, ids=[message for *_, message in RULES])
def test_rules(lines: list[str], then: list[str], error: type[EmulatorError], message: str) -> None:
  for seed in range(2):
    with pytest.raises(error, match=message): ran(lines, then, PLANE, seed=seed)

def about_maps(word: str, at: int) -> list[str]:
  return [f"UMOV UR4, {at & 0xffffffff:#x}", f"UMOV UR5, {at >> 32:#x}", f"UTMACCTL.{word} [UR4]"]

@pytest.mark.parametrize("word", ["IV", "PF"])
def test_what_the_unit_knows_of_a_map(word: str) -> None:
  """To forget or to prefetch it changes nothing here. The address is checked."""
  ran([*about_maps(word, MAP), *expect(SIZE), *box(GOAL, (0, 0))], WAIT, PLANE)
  with pytest.raises(OutOfBounds, match="a tensor map at .* is no multiple of 64"):
    ran(about_maps(word, MAP + 32), [], PLANE)

def test_what_was_stored_before_is_overwritten_behind_a_fence() -> None:
  ran([f"STS [R1+{GOAL:#x}], RZ", "FENCE.VIEW.ASYNC.S", *START], WAIT, PLANE)

def test_who_starts_a_copy_has_met_who_initialised_its_mbarrier() -> None:
  """The second warp starts a copy, and nothing tells it that the first one has made the barrier."""
  lines = ["S2R R0, SR_TID.X", "ISETP.GE.U32.AND P1, PT, R0, 0x20, PT", f"UMOV UR2, {AT:#x}", "@P1 BRA other",
           *initialise(AT, 1), "EXIT", "other:",
           *box(GOAL, (0, 0))]
  for seed in range(3):
    with pytest.raises((DataRace, UninitialisedRead), match="0x3f00"):
      block_of(scheduled(lines), threads=64, shared=16384, content=bytearray(PLANE), seed=seed, count=64).run()

@pytest.mark.slow
def test_copies_see_an_mbarrier_when_it_has_been_fenced() -> None:
  """By its initialising warp, before that meets the warp that starts the copy. Arrivals and tests need no fence."""
  lines, begin, fence = [*expect(SIZE), *box(GOAL, (0, 0))], initialise(AT, 1)[:-1], initialise(AT, 1)[-1]
  for seed in range(2):
    with pytest.raises(DataRace, match="0x3f00: a product or tensor copy meets what warp 0 has stored: that warp must "
                       "execute FENCE.VIEW.ASYNC.S"):
      ran(lines, WAIT, PLANE, seed=seed, begin=begin)
    ran([fence, *lines], WAIT, PLANE, seed=seed, begin=begin)
    other = ["@!P1 BRA looks", *lines, "looks:", *WAIT]
    ran([], other, PLANE, seed=seed)
    with pytest.raises(DataRace, match="0x3f00: "): ran([fence], other, PLANE, seed=seed, begin=begin)
  ran(expect(0), WAIT, PLANE, begin=begin)

def test_maps() -> None:
  """Strides have 36 bits in units of 16 bytes. Element strides of dimensions that a tensor does not have mean nothing.
  """
  made = tensor_copies.tensor_map(tensor_map(64, (64, 3, 5), (1 << 39, 5 << 37), (8, 2, 1), F32, 0, 4))
  assert made == tensor_copies.TensorMap(64, 4, 16, (64, 3, 5), (4, 1 << 39, 5 << 37), (8, 2, 1))
  assert tensor_copies.tensor_map(changed(52, 0x40)) == tensor_copies.tensor_map(PLANE[512:640])

def changed(at: int, value: int) -> bytes:
  found = bytearray(PLANE[512:640])
  found[at] = value
  return bytes(found)

@pytest.mark.parametrize("data, message", [
  (changed(8, 1), "flags 0x.* are not supported yet"),
  (changed(8, PLANE[520] | 0x50), "flags 0x3d0 are not supported yet"),
  (changed(0, 8), "which is no multiple of 16"), (changed(9, 11), "interleaved"),
  (changed(52, 1), "steps between elements"), (changed(64, 3), "byte 64 says that a box has 3 bytes; it has 128"),
  (changed(72, 0), "byte 72"),
  (changed(55, 1), "a row of the box has 8 bytes"),
  (tensor_map(0, (64, 8), (128,), (32, 8), swizzle=3), "a row of the box has 64 bytes, a line of"),
  (tensor_map(0, (64, 8), (128,), (32, 8), kind=11), "there is no type 11")])
def test_maps_that_are_wrong(data: bytes, message: str) -> None:
  with pytest.raises(UnknownInstruction, match=message): tensor_copies.tensor_map(data)
