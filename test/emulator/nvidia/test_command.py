"""`emulate` with an NVIDIA GPU: a kernel from text, the trace, stops, and messages about mistakes."""
from __future__ import annotations
from pathlib import Path

import pytest

from tinyhw.emulator.command import assemble_all, request, run
from tinyhw.emulator.errors import MissingHazard, MissingWait
from tinyhw.emulator.nvidia.command import NvidiaMachine, parse_registers
from tinyhw.errors import ArgumentError, ParseError
from tinyhw.isa.sass.abi import ABI

SAXPY = """
// y = 2 x + y
[B------:R-:W0:-:S02] S2R R0, SR_TID.X             # the number of the lane
[B------:R-:W-:-:S06] MOV R8, 4
[B0-----:R-:W-:-:S06] IMAD.WIDE R2, R0, R8, c[0x0][X]
[B------:R-:W-:-:S06] IMAD.WIDE R4, R0, R8, c[0x0][Y]
[B------:R-:W0:-:S02] LDG.E R6, [R2]
[B------:R-:W1:-:S02] LDG.E R7, [R4]
[B01----:R-:W-:-:S06] FFMA R7, R6, 2, R7
store:
[B------:R-:W-:-:S02] STG.E [R4], R7 ;
EXIT
"""

def execute(tmp_path: Path, text: str, *arguments: str, arch: str = "sm_90") -> list[str]:
  path, lines = tmp_path / "kernel.s", []
  path.write_text(text.replace("X]", f"{ABI[arch].arguments:#x}]").replace("Y]", f"{ABI[arch].arguments + 8:#x}]"))
  assert run([str(path), "--arch", arch, *arguments], lines.append) == 0
  return lines

@pytest.mark.parametrize("arch", ABI)
def test_a_kernel_with_a_trace_and_a_stop(tmp_path: Path, arch: str) -> None:
  lines = execute(tmp_path, SAXPY, "--threads", "4", "--buffer", "f32:iota:4", "--buffer=f32=1,1,1,1", "--trace",
                  "--stop", "store",
                  "--show", "R7:f32", "--show=P0", "--show=UR4", arch=arch)
  assert lines[0] == "warp 0  +0x0000  [B------:R-:W0:-:S02] S2R R0, SR_TID.X           R0=(pending)"
  assert lines[1].endswith("MOV R8, 0x4                R8=0x4 0x4 0x4 0x4")
  stop = lines.index("stop: warp 0 at +0x70: [B------:R-:W-:-:S02] STG.E [R4], R7")
  assert "R7=1 3 5 7" in lines[stop - 1]
  assert lines[stop + 1].split() == ["R7:", "0", "1", "3", "5", "7", "(-)", "(-)", "(-)", "(-)"]
  assert lines[stop + 5].split() == ["P0:", "0", *"----", *["(-)"] * 4] and lines[stop + 9] == "  UR4 = -"
  assert lines[-3:] == ["9 instructions by 1 warps", "buffer 0 (f32:iota:4): 0 1 2 3",
                        "buffer 1 (f32=1,1,1,1): 1 3 5 7"]

def test_mistakes_are_told(tmp_path: Path) -> None:
  buffers = "--buffer=f32:32", "--buffer=f32:32"
  with pytest.raises(MissingWait, match=r"(?s)R7 is read, and scoreboard 1 has not been waited for.*\(kernel \+ "
                     r"0x60\).*FFMA R7, R6, 2, R7.*warp 0"):
    execute(tmp_path, SAXPY.replace("B01-", "B0--"), *buffers)
  with pytest.raises(MissingHazard, match="R8 is read 1 cycles after its instruction"):
    execute(tmp_path, SAXPY.replace("S06] MOV", "S01] MOV").replace("[B0-----:R-:W-:-:S06] IMAD",
                                                                    "[B0-----:R-:W-:-:S06] IMAD"), *buffers)
  with pytest.raises(ArgumentError, match=r"read of 0x1000010: not present; the buffers are at 0x1000000 to "
                     r"0x1000010.*\n"
                     r"  at 0x40 \(kernel \+ 0x40\): .*LDG.E R6, \[R2\]\n  lane 4 of warp 0 of "
                     r"block 0"):
    execute(tmp_path, SAXPY, "--buffer=f32:4", "--buffer=f32:32")
  with pytest.raises(ArgumentError, match=r"read of 0x0: not present; there are no buffers, see --buffer\n  at "):
    execute(tmp_path, SAXPY)

LOOP = """
[B------:R-:W-:-:S13] MOV R4, 3
again:
[B------:R-:W-:-:S06] IADD3 R4, R4, -1, RZ
[B------:R-:W-:-:S13] ISETP.EQ.AND P0, PT, R4, RZ, PT
[B------:R-:W-:-:S05] @P0 BRA done
[B------:R-:W-:-:S05] BRA again
done:
EXIT
"""

def test_loops_warps_and_bytes(tmp_path: Path) -> None:
  """Labels in both directions, and the same from the bytes of the assembled text."""
  lines = execute(tmp_path, LOOP, "--threads=64", "--show=R4")
  assert (lines[0] == "26 instructions by 2 warps" and lines[1] == "warp 0: R4:     0 (0x0) (0x0) (0x0) (0x0) (0x0) "
          "(0x0) (0x0) (0x0)")
  machine = NvidiaMachine(request(["k.s", "--arch", "sm_90"]))
  code, labels = assemble_all(LOOP, machine)
  assert labels == {"again": 16, "done": 80}
  assert assemble_all(LOOP.replace("BRA done", "BRA 0x50").replace("BRA again", "BRA 0x10"), machine)[0] == code
  path = tmp_path / "kernel.bin"
  path.write_bytes(code)
  found: list[str] = []
  assert run([str(path), "--arch", "sm_90", "--threads", "64", "--stop", "0x50", "--show", "P[0:1]"], found.append) == 0
  assert len(found) == 2 * (1 + 4 + 4) + 1 and found[1].split() == ["P0:", "0", *"1" * 8]
  with pytest.raises(ParseError, match="line 1: there is no label nowhere; there are none"):
    assemble_all("@!P0 BRA nowhere", machine)

def test_an_endless_kernel_is_stopped(tmp_path: Path) -> None:
  path, lines = tmp_path / "kernel.s", list[str]()
  path.write_text("[B------:R-:W0:-:S02] S2R R1, SR_TID.X\nagain:\n[B------:R-:W-:-:S05] BRA again")
  assert run([str(path), "--arch=sm_80", "--threads=2", "--most=1000", "--show=R1", "--buffer=u8=7"], lines.append) == 1
  assert lines == ["1000 instructions by 1 warps; the kernel has not ended, see --most 1000",
                   "warp 0: R1: its result has not been waited for",
                   "buffer 0 (u8=7): 7"]

@pytest.mark.parametrize("option, why", [
  ("--shared -4", "0 or more is expected, up to 167936"), ("--shared 167937", "up to 167936"),
  ("--registers 0", "1 or more is expected, up to 255"),
  ("--registers 256", "up to 255"), ("--threads 0", "a number from 1 to 1024"),
  ("--threads 1025", "a number from 1 to 1024"),
  ("--threads 8,8", "blocks have one dimension here"), ("--local -1", "0 or more"),
  ("--show v1", "no register to show; R4"),
  ("--show R4:f31", "no register to show"), ("--show R255", "there are R0 to R254"),
  ("--show P7", "there are P0 to P6"),
  ("--show UR63", "there are UR0 to UR62"), ("--show R[7:4]", r"--show R\[7:4\]"),
  ("--registers 32 --show R[30:32]", "has 32 registers, see --reg")])
def test_what_a_chip_has_not_is_refused(option: str, why: str) -> None:
  with pytest.raises(ArgumentError, match=why): NvidiaMachine(request(["k.s", "--arch", "sm_80", *option.split()]))

def test_a_chip_that_is_not_there() -> None:
  with pytest.raises(ArgumentError, match="--arch sm_86: there is no such virtual GPU; there are sm_80, sm_89, sm_90"):
    request(["k.s", "--arch", "sm_86"])

def test_places() -> None:
  assert parse_registers("R4:f32") == ("R", 4, 4, "f32") and parse_registers("UR[4:5]") == ("UR", 4, 5, "x32")
  assert parse_registers("UP0").bank == "UP"
