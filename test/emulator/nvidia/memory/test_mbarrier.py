"""mbarriers: phases, arrivals, expected bytes; the order that they make, and misuse."""
from __future__ import annotations
import random
from collections.abc import Sequence

import pytest

from nvidia.warps import LANES, block_of, scheduled
from tinyhw.emulator.errors import DataRace, EmulatorError, Hang, OutOfBounds, UninitialisedRead, UnknownInstruction
from tinyhw.emulator.nvidia.block import ThreadBlock
from tinyhw.emulator.nvidia.memory.mbarrier import Mbarrier
from tinyhw.emulator.nvidia.memory.shared import SharedMemory

MEET = "BAR.SYNC.DEFER_BLOCKING 0x0"
AT = 0x40
ARRIVE = "SYNCS.ARRIVE.TRANS64.A1T0 RZ, [UR2], RZ"

def look(parity: int, word: str = ".TRYWAIT") -> list[str]:
  """Return lines that wait for the phase of a parity."""
  return [f"MOV R3, {parity << 31:#x}", "again:", f"SYNCS.PHASECHK.TRANS64{word} P0, [UR2], R3", "@!P0 BRA again"]

def ran(lines: Sequence[str], threads: int = 64, seed: int = 0) -> ThreadBlock:
  block = block_of(scheduled(lines), threads=threads, shared=1024, seed=seed)
  block.run()
  return block

def memory() -> SharedMemory: return SharedMemory(256, random.Random(1), 2)

def start(count: int) -> list[str]:
  """Return lines for R0 the thread, R1 four times that, UR2 a barrier's address.

  Each warp initialises one (UR3), the first one that of UR2.
  """
  missing = (1 << 20) - count
  return ["S2R R0, SR_TID.X", "SHF.R.U32 R5, R0, 0x5, RZ", "SHF.L.U32 R5, R5, 0x3, RZ", "SHF.L.U32 R1, R0, 0x2, RZ",
          "R2UR UR3, R5",
          f"UMOV UR0, {missing << 1:#x}", f"UMOV UR1, {missing << 11 & 0xffffffff:#x}", f"UMOV UR2, {AT:#x}",
          "UIADD3 UR3, UR3, UR2, URZ",
          "SYNCS.EXCH.64 URZ, [UR3], UR0", MEET]

# ***** counting *****

def test_phases() -> None:
  m = memory()
  barrier = Mbarrier(m, 8, 3)
  for _ in range(2): barrier.arrive(m.release(0), 1, 0)
  assert (barrier.phase, barrier.missing) == (0, 1)
  barrier.arrive(m.release(1), 1, 0)
  assert (barrier.phase, barrier.missing) == (1, 3)
  barrier.arrive(m.release(1), 3, 0)
  assert barrier.phase == 2

def test_bytes_are_waited_for() -> None:
  m = memory()
  barrier = Mbarrier(m, 8, 1)
  barrier.arrive(m.release(0), 1, 128)
  barrier.change(0, -64)
  assert barrier.phase == 0
  barrier.change(0, -64)
  assert barrier.phase == 1
  barrier.change(0, -64)    # a copy may arrive before its bytes are expected
  barrier.arrive(m.release(0), 1, 64)
  assert barrier.phase == 2

def test_the_word() -> None:
  """As ptxas makes it, and extracts its pending count: 2^20 - (bits 43 on)."""
  m = memory()
  barrier = Mbarrier(m, 8, 5)
  assert (barrier.word() == (2 ** 20 - 5) << 1 | (2 ** 20 - 5) << 43
          and m.data[8:16] == barrier.word().to_bytes(8, "little"))
  barrier.arrive(m.release(0), 2, 0)
  assert 2 ** 20 - (barrier.word() >> 43 & 0xfffff) == 3
  barrier.arrive(m.release(0), 3, 0)
  assert barrier.word() >> 63 == 1

def test_misuse() -> None:
  m = memory()
  barrier = Mbarrier(m, 8, 2)
  with pytest.raises(EmulatorError, match="3 arrive where 2 of 2 are missing"): barrier.arrive(m.release(0), 3, 0)
  barrier.arrive(m.release(0), 2, 16)
  with pytest.raises(EmulatorError, match=r"1 arrive where 0 of 2 are missing; the phase is not complete \(16 bytes "
                     r"are under way\)"):
    barrier.arrive(m.release(0), 1, 0)
  with pytest.raises(EmulatorError, match="1048575 are the most"): barrier.change(0, 1 << 20)

def test_nothing_else_touches_its_bytes() -> None:
  m = memory()
  Mbarrier(m, 8, 1)
  for beside in (0, 16): m.store(0, beside, bytes(8))
  for address, size in ((4, 8), (15, 1), (0, 32)):
    with pytest.raises(EmulatorError, match="where an mbarrier is, at 0x8: until SYNCS.CCTL.IV only"):
      m.store(0, address, bytes(size))
    with pytest.raises(EmulatorError, match="where an mbarrier is, at 0x8"): m.look(0, address, size)

# ***** programs *****

@pytest.mark.parametrize("seed", range(4))
def test_what_was_written_before_is_there(seed: int) -> None:
  """Each lane stores, arrives, waits, and loads the bytes that the other warp has stored."""
  block = ran([*start(64), "STS [R1+0x80], R0", ARRIVE, *look(0), "LOP3.LUT R2, R1, 0x80, RZ, 0x3c, !PT",
               "LDS R4, [R2+0x80]"], seed=seed)
  assert [list(warp.registers[4]) for warp in block.warps] == [list(range(32, 64)), list(range(32))]

@pytest.mark.slow
def test_it_is_not_there_before() -> None:
  crossed = ["LOP3.LUT R2, R1, 0x80, RZ, 0x3c, !PT", "LDS R4, [R2+0x80]"]
  for seed in range(3):
    with pytest.raises((DataRace, UninitialisedRead)):
      ran([*start(64), "STS [R1+0x80], R0", ARRIVE, *crossed], seed=seed)
    with pytest.raises((DataRace, UninitialisedRead)):
      ran([*start(64), ARRIVE, "STS [R1+0x80], R0", *look(0), *crossed], seed=seed)
    with pytest.raises(DataRace):
      ran([*start(64), "STS [R1+0x80], R0", ARRIVE, *look(0), *crossed, "STS [R1+0x80], R2"], seed=seed)

@pytest.mark.slow
def test_the_next_phase() -> None:
  """Bytes that are overwritten in turns: one phase says that they are there, and one that they were read."""
  crossed = ["LOP3.LUT R2, R1, 0x80, RZ, 0x3c, !PT", "LDS R4, [R2+0x80]", "MOV R6, R4"]
  for seed in range(3):
    block = ran([*start(64), "STS [R1+0x80], R0", ARRIVE, *look(0), *crossed, ARRIVE,
                 *(line.replace("again", "later") for line in look(1)),
                 "STS [R1+0x80], R2"], seed=seed)
    assert list(block.warps[0].registers[4]) == list(range(32, 64))

def test_parity_of_the_phase_before() -> None:
  """The phase before the first one has completed."""
  assert ran([*start(64), *look(1), "MOV R9, RZ"]).warps[0].registers[9] == [0] * LANES

def test_a_look_without_patience() -> None:
  block = ran([*start(65), "MOV R3, RZ", "SYNCS.PHASECHK.TRANS64 P0, [UR2], R3", "SEL R9, R0, RZ, P0"])
  assert block.warps[1].registers[9] == [0] * LANES

def test_an_arrival_tells_what_was_before() -> None:
  block = ran([*start(33), "SYNCS.ARRIVE.TRANS64.A1T0 R8, [UR2], RZ"], threads=32)
  assert [2 ** 20 - (word >> 11 & 0xfffff) for word in block.warps[0].registers[8]] == [33 - lane
                                                                                        for lane in range(LANES)]

def test_counts_in_registers() -> None:
  ran([*start(64), "MOV R6, 0x2", "SYNCS.ARRIVE.TRANS64.ART0 RZ, [UR2], R6", *look(0)], threads=32)
  ran([*start(32), "MOV R6, RZ", "SYNCS.ARRIVE.TRANS64 RZ, [UR2], R6", *look(0)], threads=32)
  ran([*start(32), "MOV R6, 0x10", "SYNCS.ARRIVE.TRANS64.A1T0 RZ, [UR2], R6", *look(0)], threads=32)  # no bytes

def test_waiting_for_what_never_comes() -> None:
  with pytest.raises(Hang, match="for the phases of mbarrier 0x40, for which arrivals or bytes are missing"):
    ran([*start(65), ARRIVE, *look(0)])
  expects = ["MOV R6, 0x10", "SYNCS.ARRIVE.TRANS64.RED.A0TR RZ, [UR2], R6"]
  with pytest.raises(Hang): ran([*start(64), *expects, ARRIVE, *look(0)])

@pytest.mark.parametrize("lines, error, message", [
  (["UIADD3 UR2, UR2, 0x20, URZ", ARRIVE], UninitialisedRead, "no mbarrier has been initialised there"),
  (["UIADD3 UR2, UR2, 0x4, URZ", ARRIVE], OutOfBounds, "its address is no multiple of 8"),
  (["MOV R6, 0x3", "SYNCS.ARRIVE.TRANS64.ART0 RZ, [UR2], R6"], EmulatorError, "3 arrive where 1 of 64 are missing"),
  (["SYNCS.CCTL.IV [UR3]", "UIADD3 UR2, UR3, URZ, URZ", ARRIVE], UninitialisedRead, "no mbarrier has been initialised"),
  (["UMOV UR0, 0x7", "UMOV UR3, 0x80", "SYNCS.EXCH.64 URZ, [UR3], UR0"], EmulatorError,
   "is no word of a barrier whose first phase has just begun"),
  (["SYNCS.EXCH.64 URZ, [UR3], UR0"], EmulatorError, "mbarrier 0x4. is initialised again: SYNCS.CCTL.IV must end it "
   "before"),
  (["UMOV UR0, 0x0", "UMOV UR3, 0x80", "SYNCS.EXCH.64 URZ, [UR3], UR0"], EmulatorError,
   "0x80: 0x.* is a word of 1048576 arrivals; there are 1 to"),
  (["MOV R6, UR2", "LDS R4, [R6]", "MOV R5, R4"], EmulatorError, "memory address 0x40: 4 bytes are read or written "
   "where an mbarrier is, at 0x40"),
  (["MOV R2, RZ", "STS.64 [R2+0x48], RZ"], EmulatorError, "8 bytes are read or written where an mbarrier is, at 0x48"),
  (["SYNCS.ARRIVE.TRANS64.A0T1 RZ, [UR2], RZ"], UnknownInstruction, "SYNCS.ARRIVE..A0T1 is not supported yet"),
  (["SYNCS.ARRIVE.TRANS64.TMASK.A1T0 RZ, [UR2], RZ"], UnknownInstruction, "SYNCS.ARRIVE.TMASK.A1T0 is not supported "
   "yet")])
def test_rules(lines: list[str], error: type[EmulatorError], message: str) -> None:
  """Any class of error names its instruction."""
  with pytest.raises(error, match=f"(?s){message}.* at 0x.* of block .*, kernel "): ran([*start(64), *lines])

def test_memory_that_is_no_mbarrier_any_more() -> None:
  """The warp that initialised it may initialise it again, or use the memory."""
  ended = [*start(64), "SYNCS.CCTL.IV [UR3]"]
  ran([*ended, "SYNCS.EXCH.64 URZ, [UR3], UR0"])
  block = ran([*ended, "MOV R6, UR3", "STS [R6], R6", "LDS R4, [R6]", "MOV R5, R4"])
  assert [warp.registers[5][0] for warp in block.warps] == [AT, AT + 8]

@pytest.mark.slow
def test_others_meet_who_initialises() -> None:
  lines = start(64)
  for seed in range(3):
    with pytest.raises((DataRace, UninitialisedRead)): ran([*lines[:-1], ARRIVE], seed=seed)
    with pytest.raises((DataRace, UninitialisedRead)): ran([*lines[:-1], *look(1)], seed=seed)

@pytest.mark.slow
def test_others_meet_who_ends_it() -> None:
  for seed in range(3):
    with pytest.raises((DataRace, UninitialisedRead)): ran([*start(64), ARRIVE, "SYNCS.CCTL.IV [UR3]"], seed=seed)
    ran([*start(64), ARRIVE, MEET, "SYNCS.CCTL.IV [UR3]"], seed=seed)

def test_offsets() -> None:
  """Of the barrier that is initialised, and of those at which threads arrive and wait."""
  def moved(lines: Sequence[str]) -> list[str]: return [line.replace("[UR2]", "[UR2+0x40]") for line in lines]
  ran([*start(64)[:-1], "SYNCS.EXCH.64 URZ, [UR3+0x40], UR0", MEET, *moved([ARRIVE, *look(0)])])
  with pytest.raises(UninitialisedRead, match="shared memory 0x80: no mbarrier"): ran([*start(64), *moved([ARRIVE])])
  with pytest.raises(UninitialisedRead, match="shared memory 0x80: no mbarrier"): ran([*start(64), *moved(look(1))])
