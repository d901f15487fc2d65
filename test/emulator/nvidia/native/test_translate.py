"""Translated blocks do the same as their instructions one by one: registers, memory, errors and their text, for random
code and for loops."""
from __future__ import annotations
import random

import pytest
from nvidia.both import assert_same, hot, run_both
from nvidia.warps import MEMORY, assembled, scheduled
from test.codegen.kernels import compare, data_for
from test.codegen.random_kernels import Generator
from test.emulator.nvidia.native.test_native import LINES, UNIFORM
from test.emulator.nvidia.native.test_transfer import ADDRESSES, CONTENT, GLOBAL, SHARED
from test.isa.sass.machine import ARCHS, execute

from tinyhw import Context
from tinyhw.codegen.passes import lower
from tinyhw.emulator.native import threaded
from tinyhw.isa.sass.asm.decode import decode_all
from tinyhw.isa.sass.asm.encode import encode
from tinyhw.isa.sass.capabilities import capabilities
from tinyhw.isa.sass.table.control import Control

pytestmark = [pytest.mark.skipif(threaded.level() is None, reason="no x86-64 with AVX2, or no executable pages"),
              pytest.mark.usefixtures(hot.__name__)]

CONSTANTS = bytes(range(1, 65))
PYTHON = ("SHFL.BFLY P4, R7, R8, 0x3, 0x1f", "HSETP2.LT.AND P3, P4, R8, R9, PT",
          "MUFU.RCP R7, R8", "MUFU.EX2 R9, R10", "I2F.S64 R11, R12", "PRMT R13, R14, R15, R16", "LDC R17, c[0x0][0x4]")
KEPT = ("R1,", "R2,", "R3,", "R1 ", "R2 ", "R3 ", "UR4 ")

def random_lines(source: random.Random, count: int, shared: bool = True) -> list[str]:
  """Return instructions of all kinds, many of them guarded. Addresses do not change."""
  found = list(ADDRESSES)
  kinds = (LINES, LINES, GLOBAL, PYTHON, SHARED)
  while len(found) < count:
    line = source.choice(source.choice(kinds if shared else kinds[:-1]))
    if not line.startswith("ST"): line = line.replace(" R0,", f" R{source.choice((4, 6, 8, 10, 20))},", 1)
    if any(line.split(" ", 1)[1].startswith(kept) for kept in KEPT) and not line.startswith("ST"): continue
    found.append(("" if line.startswith(UNIFORM) else source.choice(("", "", "@P5 ", "@!P6 ", "@P0 ", "@!PT "))) + line)
  return found

@pytest.mark.slow
def test_random_code() -> None:
  clean = 0
  for seed in range(30):
    source = random.Random(seed)
    code = scheduled(random_lines(source, 40, seed % 2 == 0))
    found = assert_same(code, seed, str(seed), content=CONTENT, shared=2048, constants=CONSTANTS,
                        threads=source.choice((32, 20)))
    clean += not found[0][2]
  assert clean >= 15, "errors are reads of shared memory that a guard has not let be written"

@pytest.mark.slow
def test_hasty_code_has_the_same_errors() -> None:
  """Scheduled code with one stall, wait or scoreboard less."""
  errors = set()
  for seed in range(40):
    source = random.Random(seed)
    lines = list(decode_all(scheduled(random_lines(source, 30, seed % 4 == 0)), "sm_90"))
    at = source.randrange(len(ADDRESSES), len(lines))
    control = lines[at][2]
    worse = source.choice((Control(1, True, control.write, control.read, control.wait),
                           Control(control.stall, control.yields, 7, 7, control.wait),
                           Control(control.stall, control.yields, control.write, control.read, 0)))
    code = b"".join(encode(inst, worse if i == at else word) for i, (_, inst, word) in enumerate(lines))
    found = assert_same(code, seed, str(seed), content=CONTENT, shared=2048, constants=CONSTANTS, threads=32)
    errors.add(found[0][2].partition(":")[0])
  assert {"MissingWait", "MissingHazard"} <= errors

@pytest.mark.slow
@pytest.mark.parametrize("hidden", ([5], [9, 8], [4]))
def test_what_nothing_has_written(hidden: list[int]) -> None:
  for seed in range(6):
    source = random.Random(seed)
    lines = [f"{source.choice(('', '@P5 ', '@P3 '))}IADD3 R{source.choice((5, 8, 9, 4))}, R{source.randrange(10)}, "
             f"0x1, RZ" for _ in range(12)]
    found = assert_same(scheduled(lines), seed, str(seed), hidden=hidden, threads=48)
    assert not found[0][2] or "UninitialisedRead" in found[0][2]

# R8 counts down by lanes' guards and a branch; the inner part changes its own guard
LOOP = ["MOV R8, 0x14", "MOV R9, RZ", "IADD3 R8, R8, -0x1, RZ", "ISETP.GE.AND P0, PT, R8, 0x7, PT",
        "@P0 IADD3 R9, R9, 0x3, RZ",
        "ISETP.NE.AND P1, PT, R8, RZ, PT", "@!P0 IADD3 R9, R9, 0x100, RZ", "@P1 BRA 0x7f0000000020",
        "IMAD R9, R9, R9, RZ"]
PATIENCE = "[B------:R-:W-:-:S15]"

def patient(lines: list[str]) -> list[str]:
  """Return lines with the longest stalls, except those with a control word."""
  return [line if line.startswith("[") else f"{PATIENCE} {line}" for line in lines]

@pytest.mark.slow
def test_loops_have_few_states() -> None:
  _, (machine, _, error) = assert_same(assembled(patient(LOOP)), 1, threads=96)
  assert not error and machine.warps[0].registers[9] == [(13 * 3 + 7 * 0x100) ** 2] * 32
  assert (machine.translation is not None and len(machine.translation.states) <= 6
          and machine.executed == 3 * (2 + 20 * 6 + 2))

def test_a_loop_that_is_too_hasty_at_its_second_turn() -> None:
  """The branch comes back earlier than the first entry."""
  lines = patient(LOOP[:-2])
  lines += ["[B------:R-:W-:Y:S01] DADD R8, R16, R16", "[B------:R-:W-:Y:S05] @P1 BRA 0x7f0000000020", "NOP"]
  found = run_both(assembled(lines), 1)
  assert found[0][2] == found[1][2] != "" and "R8" in found[0][2]

def test_ends_of_some_lanes() -> None:
  lines = ["[B------:R-:W0:Y:S02] S2R R8, SR_TID.X", "[B0-----:R-:W-:-:S15] ISETP.LT.AND P0, PT, R8, 0x23, PT",
           "@!P0 EXIT", "MOV R9, 0x1",
           "@P0 MOV R10, 0x2", "BAR.SYNC 0x0", "MOV R11, 0x3"]
  _, (machine, _, error) = assert_same(assembled(patient(lines)), 1, threads=64)
  assert not error and [sum(x == 3 for x in warp.registers[11]) for warp in machine.warps] == [32, 3]

@pytest.mark.slow
def test_barriers_and_shared_memory() -> None:
  """Each warp reads the words that another one wrote, in any order of warps."""
  lines = scheduled(["S2R R1, SR_TID.X", "SHF.L.U32 R5, R1, 0x2, RZ", "STS [R5], R1", "BAR.SYNC 0x0",
                     "LOP3.LUT R6, R5, 0x80, RZ, 0x3c, !PT",
                     "LDS R7, [R6]"])
  for seed in range(6):
    _, (machine, _, error) = assert_same(lines, seed, threads=128, shared=512)
    assert not error and machine.warps[1].registers[7] == list(range(32))

# R1: 4 times the lane's number, R2, R3: MEMORY and that
COPY = ["[B------:R-:W0:-:S02] S2R R1, SR_TID.X", "[B0-----:R-:W-:-:S15] SHF.L.U32 R1, R1, 0x2, RZ",
        f"IADD3 R2, R1, {MEMORY & 0xffffffff:#x}, RZ", f"MOV R3, {MEMORY >> 32:#x}",
        "[B------:R5:W-:-:S02] LDGSTS.E [R1], [R2.64]"]
WAIT = ["[B------:R-:W0:-:S02] LDGDEPBAR", "[B------:R-:W-:-:S04] DEPBAR.LE SB0, 0x0"]

@pytest.mark.parametrize("lines,message", [
  ([*COPY, *WAIT, "[B------:R-:W1:-:S02] LDS R8, [R1]", "[B-1----:R-:W-:-:S15] MOV R9, R8"], ""),
  ([*COPY, "[B------:R-:W1:-:S02] LDS R8, [R1]"], "MissingWait: shared memory address 0x0"),
  ([*COPY, "[B------:R2:W-:-:S02] STS [R1], R9"], "DataRace: shared memory address 0x0: a store where an asynchronous "
   "copy still writes"),
  ([*COPY, WAIT[0].replace("S02", "S01"), WAIT[1]], "MissingHazard: scoreboard 0 is waited for 1 cycles")])
def test_asynchronous_copies(lines: list[str], message: str) -> None:
  _, (machine, memory, error) = assert_same(assembled(patient(lines)), 1, content=CONTENT, shared=256)
  assert error.startswith(message) and bool(error) is bool(message)
  if not error:
    assert machine.warps[0].registers[9] == [int.from_bytes(CONTENT[4 * k:4 * k + 4], "little") for k in range(32)]

@pytest.mark.slow
@pytest.mark.parametrize("seed", range(24))
def test_random_kernels(seed: int) -> None:
  """Kernels of the compiler. Both paths execute as many instructions, and leave the same bits."""
  generator, arch = Generator(seed + 100), ARCHS[seed % len(ARCHS)]
  kernel, found, executed = generator.kernel(), [], []
  for translated in (0, 1):
    data = data_for(kernel)
    program = lower(kernel, capabilities(arch), "random")
    with Context(EMULATE_TRANSLATE=translated): executed.append(execute(program, arch, data, generator.variables, seed))
    found.append(data)
  assert executed[0] == executed[1]
  compare(arch, found[0], found[1], 0.0)
