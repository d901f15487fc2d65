"""Control words with too short stalls or missing waits are all found. The hardware would read old values."""
from __future__ import annotations
import struct
from typing import Any

import pytest

from nvidia.warps import assembled, block_of
from test.isa.executed import APART, BUFFERS, CODE
from test.isa.sass.machine import launch_of
from tinyhw.codegen.passes import lower
from tinyhw.dtype import dtypes
from tinyhw.emulator.errors import MissingHazard, MissingWait, OutOfBounds, UninitialisedRead
from tinyhw.emulator.memory.memory import FlatMemory
from tinyhw.emulator.nvidia.block import ThreadBlock
from tinyhw.emulator.nvidia.checks.strict import waits
from tinyhw.isa.sass.asm.decode import decode_all
from tinyhw.isa.sass.asm.encode import encode
from tinyhw.isa.sass.capabilities import capabilities
from tinyhw.isa.sass.model.latency import BOARD_STALL, LEAST_STALL
from tinyhw.isa.sass.table.control import NONE
from tinyhw.isa.sass.target import compile
from tinyhw.machine.ir.code import Code
from tinyhw.uop.enums import AxisType, Ops
from tinyhw.uop.ops import UOp

def run(*lines: str, arch: str = "sm_90", **given: Any) -> None: block_of(assembled(lines, arch), arch, **given).run()

FENCES = ["[B------:R-:W0:-:S02] FENCE.VIEW.ASYNC.S", "[B------:R-:W1:-:S02] FENCE.VIEW.ASYNC.S"]
CASES = [
  (["[B------:R-:W-:Y:S03] FADD R0, R1, R1", "FADD R2, R0, R0"], MissingHazard,
   "R0 is read 3 cycles after its instruction; it is there after 4"),
  (["[B------:R-:W-:Y:S04] FADD R0, R1, R1", "IADD3 R2, R0, R0, RZ"], MissingHazard, "R0 is read 4 cycles .* after 5"),
  (["[B------:R-:W-:-:S12] ISETP.EQ.AND P0, PT, R1, RZ, PT", "@P0 MOV R0, R1"], MissingHazard,
   "P0 is read 12 cycles .* after 13"),
  (["[B------:R-:W-:Y:S04] ISETP.EQ.AND P0, PT, R1, RZ, PT", "SEL R0, R1, RZ, P0"], MissingHazard,
   "P0 is read 4 cycles .* after 5"),
  (["[B------:R-:W-:Y:S02] DADD R2, R4, R4", "MOV R2, R1"], MissingHazard, "R2 is overwritten 2 cycles after another "
   "result"),
  (["[B------:R-:W-:Y:S01] IADD3 R0, R1, R1, RZ", "[B------:R-:W0:Y:S02] MUFU.RCP R1, R4"], MissingHazard,
   "R1 is overwritten 1 cycles after another instruction began to read it"),
  (["[B------:R-:W0:Y:S02] MUFU.RCP R0, R1", "FADD R2, R0, R0"], MissingWait,
   "R0 is read, and scoreboard 0 has not been waited for"),
  (["[B------:R-:W0:Y:S02] MUFU.RCP R0, R1", "[B-1----:R-:W-:Y:S01] FADD R2, R0, R0"], MissingWait,
   "R0 is read, and scoreboard 0"),
  (["[B------:R-:W-:Y:S02] MUFU.RCP R0, R1", "[B012345:R-:W-:Y:S01] FADD R2, R0, R0"], MissingWait,
   "no scoreboard tells when"),
  (["[B------:R-:W0:Y:S02] MUFU.RCP R0, R1", "MOV R0, R1"], MissingWait, "R0 is overwritten before its own result is "
   "there"),
  (["[B------:R-:W0:Y:S02] MUFU.RCP R0, R1", "MOV R1, RZ"], MissingWait, "R1 is overwritten while it may still be "
   "read"),
  (["[B------:R2:W-:Y:S02] STS [RZ], R1", "MOV R1, RZ"], MissingWait, "R1 is overwritten while it may still be read: "
   "scoreboard 2"),
  (["[B------:R-:W0:Y:S01] MUFU.RCP R0, R1", "[B0-----:R-:W-:Y:S01] FADD R2, R0, R0"], MissingHazard,
   "scoreboard 0 is waited for 1 cycles after"),
  (["[B------:R-:W-:Y:S04] BRA 0x7f0000000010"], MissingHazard, "a stall of 4: the next instruction may issue 5 "
   "cycles after this one"),
  (["[B------:R-:W-:Y:S05] MEMBAR.ALL.CTA"], MissingHazard, "a stall of 5: the next instruction may issue 6 cycles"),
  (["[B------:R-:W-:Y:S03] DEPBAR.LE SB0, 0x0"], MissingHazard, "a stall of 3: the next instruction may issue 4 "
   "cycles"),
  (["[B------:R-:W-:-:S00] MOV R0, R1"], MissingHazard, "a stall of 0: the next instruction may issue 1 cycles"),
  ([*FENCES, "[B0-----:R-:W-:-:S06] BAR.SYNC 0x0"], MissingWait, "FENCE has not made visible what was written: "
   "scoreboard 1 has"),
  ([*FENCES, "[B-1----:R-:W-:-:S06] BAR.SYNC 0x0"], MissingWait, "FENCE has not made visible what was written: "
   "scoreboard 0 has"),
  (["IADD3 R2, R3, R1, RZ"], UninitialisedRead, "R3 is read in lanes 0xffffffff"),
  (["@P0 MOV R2, R1"], UninitialisedRead, "P0 is read in lanes 0xffffffff"),
  (["MOV R99, R1"], OutOfBounds, "R99: the launch gives each lane 64 registers, but for 2 that .* keeps for itself; "
   "raise REGISTER_COUNT"),
]

@pytest.mark.parametrize("lines, error, message", CASES, ids=[message for _, _, message in CASES])
def test_haste_is_found(lines: list[str], error: type[Exception], message: str) -> None:
  with pytest.raises(error, match=message): run(*lines, registers={1: [1], 4: [0], 5: [0]}, shared=16)

WAITLESS = ("[B------:R-:W0:Y:S02] MUFU.RCP R0, R1", "FADD R2, R0, R0")

def test_an_error_says_where() -> None:
  with pytest.raises(MissingWait) as caught: run("NOP", *WAITLESS, registers={1: [1]})
  assert ("\n  at 0x7f0000000020 (kernel + 0x20): [B------:R-:W-:Y:S01] FADD R2, R0, R0\n  warp 0 of block 0, kernel "
          "text" in str(caught.value))

def test_patience_is_enough() -> None:
  run("[B------:R-:W0:Y:S02] MUFU.RCP R0, R1", "[B0-----:R-:W-:Y:S04] FADD R2, R0, R0",
      "[B------:R-:W-:Y:S05] FADD R3, R2, R0", "MOV R0, R3",
      registers={1: [1]})
  run("[B------:R-:W-:-:S13] ISETP.EQ.AND P0, PT, R1, RZ, PT", "@P0 MOV R0, R1", registers={1: [1]})
  run(*FENCES, "[B01----:R-:W-:-:S06] BAR.SYNC 0x0")

def test_float64_has_scoreboards_on_some_chips() -> None:
  lines = ["[B------:R-:W-:-:S15] DADD R2, R4, R4", "DADD R6, R2, R2"]
  run(*lines, registers={4: [0], 5: [0]})
  with pytest.raises(MissingWait, match="no scoreboard tells when"):
    run(*lines, arch="sm_80", registers={4: [0], 5: [0]})

def test_words() -> None:
  assert waits(0b100101) == "scoreboard 0, 2, 5"

# ***** a kernel whose control words are damaged *****

def kernel(arch: str) -> Code:
  """Return straight code: loads, a division with its conversions and doubles, a selection, a store."""
  n = 32
  a, b = (UOp.param(k, dtypes.float32, n).index(UOp.range(n, 0, AxisType.LOCAL)).load() for k in (1, 2))
  r = UOp.range(n, 0, AxisType.LOCAL)
  quotient = UOp(Ops.FDIV, dtypes.float32, (a, b))
  chosen = UOp(Ops.WHERE, dtypes.float32, (a < b, quotient, a * b + quotient))
  return compile(lower(UOp.sink(UOp.param(0, dtypes.float32, n).index(r).store(chosen, r)), capabilities(arch),
                       "damaged"), arch)

def run_kernel(code: Code, text: bytes) -> None:
  memory, slots = FlatMemory(), b""
  memory.add(CODE, bytearray(text))
  for k in range(3):
    memory.add(BUFFERS + k * APART, bytearray(struct.pack("<32f", *range(1, 33))))
    slots += (BUFFERS + k * APART).to_bytes(8, "little")
  ThreadBlock(launch_of(code, slots, 1), 0, memory).run()

@pytest.mark.slow
@pytest.mark.parametrize("arch", ("sm_80", "sm_90"))
def test_every_wait_and_every_cycle_of_a_kernel_is_needed(arch: str) -> None:
  """One bit of a wait mask less, one cycle of a stall less, one scoreboard that is not taken: each is an error. The
  undamaged kernel is none."""
  code = kernel(arch)
  lines = list(decode_all(code.text, arch))
  run_kernel(code, code.text)
  damaged = 0
  for at, inst, control in lines:
    if inst.row.name == "BRA": break
    least = max(LEAST_STALL.get(inst.row.pipe, 1), BOARD_STALL if (control.write, control.read) != (NONE, NONE) else 1)
    worse = [control._replace(wait=control.wait & ~(1 << board)) for board in range(6) if control.wait >> board & 1]
    if control.stall > least: worse.append(control._replace(stall=control.stall - 1, yields=control.stall - 1 <= 11))
    if control.write != NONE: worse.append(control._replace(write=NONE))
    for changed in worse:
      with pytest.raises((MissingWait, MissingHazard)):
        run_kernel(code, code.text[:at] + encode(inst, changed) + code.text[at + 16:])
      damaged += 1
  assert damaged > 15
