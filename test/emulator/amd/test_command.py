"""`emulate` with an AMD GPU: a kernel from text, the trace, stops, and messages about mistakes."""
from __future__ import annotations
from pathlib import Path

import pytest

from tinyhw.emulator.amd.command import AmdMachine
from tinyhw.emulator.command import assemble_all, request, run
from tinyhw.emulator.errors import MissingWait
from tinyhw.errors import ArgumentError, ParseError

SAXPY = """
// y = 2 x + y
  s_load_b128 s[4:7], s[0:1], null     # two addresses
  v_and_b32 v0, 0x3ff, v0
  v_lshlrev_b32 v1, 2, v0
  s_waitcnt lgkmcnt(0)
  global_load_b32 v2, v1, s[4:5]
  global_load_b32 v3, v1, s[6:7]
  s_waitcnt vmcnt(0)
compute:
  v_fmac_f32 v3, 2.0, v2
  global_store_b32 v1, v3, s[6:7]
  s_endpgm
"""

MACHINE = AmdMachine(request(["k.s", "--arch", "gfx1100"]))

def execute(tmp_path: Path, text: str, *arguments: str) -> list[str]:
  path, lines = tmp_path / "kernel.s", []
  path.write_text(text)
  assert run([str(path), *arguments], lines.append) == 0
  return lines

def test_a_kernel_with_a_trace_and_a_stop(tmp_path: Path) -> None:
  lines = execute(tmp_path, SAXPY, "--arch", "gfx1100", "--threads", "4", "--buffer", "f32:iota:4",
                  "--buffer=f32=1,1,1,1", "--trace",
                  "--stop", "compute", "--show", "v2:f32", "--show=exec")
  assert (lines[0] == "wave 0  +0x0000  s_load_b128 s[4:7], s[0:1], 0x0                  s4=0x1000000  s5=0x0  "
          "s6=0x2000000  s7=0x0")
  stop = lines.index("stop: wave 0 at +0x2c: v_fmac_f32_e32 v3, 2.0, v2")
  assert lines[stop + 1].split() == ["v2:", "0", "0", "1", "2", "3", "(-)", "(-)", "(-)",
                                     "(-)"] and lines[stop + 5] == "  exec_lo = 0xf"
  assert "v3=1 3 5 7" in lines[stop + 6]
  assert lines[-3:] == ["10 instructions by 1 waves", "buffer 0 (f32:iota:4): 0 1 2 3",
                        "buffer 1 (f32=1,1,1,1): 1 3 5 7"]

def test_mistakes_are_told(tmp_path: Path) -> None:
  with pytest.raises(MissingWait, match=r"(?s)v2 is read before global_load_b32.*v_fmac_f32_e32 v3, 2.0, v2"):
    execute(tmp_path, SAXPY.replace("s_waitcnt vmcnt(0)", ""), "--arch=gfx1100", "--buffer=f32:32", "--buffer=f32:32")
  with pytest.raises(ArgumentError, match=r"read of 0x1000010: not present; the buffers are at 0x1000000 to "
                     r"0x1000010.*\n"
                     r"  at 0x10018 \(kernel \+ 0x18\): global_load_b32 v2, v1, s\[4:5\]\n  lane "
                     r"4 of wave 0 of workgroup"):
    execute(tmp_path, SAXPY, "--arch=gfx1100", "--buffer=f32:4", "--buffer=f32:32")
  with pytest.raises(ArgumentError, match=r"read of 0x0: not present; there are no buffers, see --buffer\n  at "):
    execute(tmp_path, SAXPY, "--arch=gfx1100")

def test_loops_waves_and_bytes(tmp_path: Path) -> None:
  """Labels in both directions, and the same from the bytes of the assembled text."""
  text = ("s_mov_b32 s4, 3\nagain:\ns_sub_u32 s4, s4, 1\ns_cmp_eq_u32 s4, 0\ns_cbranch_scc1 done\ns_branch "
          "again\ndone: \ns_endpgm")
  lines = execute(tmp_path, text, "--arch=gfx1100", "--threads=64", "--show=s4")
  assert lines == ["26 instructions by 2 waves", "wave 0: s4 = 0x0", "wave 1: s4 = 0x0"]
  code, labels = assemble_all(text, MACHINE)
  assert labels == {"again": 4, "done": 20}
  path = tmp_path / "kernel.bin"
  path.write_bytes(code)
  found: list[str] = []
  run([str(path), "--arch", "gfx1100", "--threads", "64", "--stop", "0x14", "--show", "scc"], found.append)
  assert sorted(found) == ["  scc = 1", "  scc = 1", "26 instructions by 2 waves",
                           *(f"stop: wave {n} at +0x14: s_endpgm" for n in (0, 1))]

@pytest.mark.parametrize("arch, option, why", [
  ("gfx1100", "--lds -4", "0 or more is expected, up to 65536"), ("gfx1100", "--lds 999999999", "up to 65536"),
  ("gfx950", "--lds 163841", "up to 163840"),
  ("gfx1100", "--vgprs 0", "1 or more is expected, up to 256"), ("gfx1100", "--vgprs 999", "up to 256"),
  ("gfx942", "--vgprs 513", "up to 512"),
  ("gfx1100", "--threads 0", "one to three numbers from 1 on"), ("gfx1100", "--threads -1", "numbers from 1 on"),
  ("gfx1100", "--threads 32,32,2", "of 1024 together"), ("gfx1100", "--threads 1,1,1,1", "one to three"),
  ("gfx1100", "--wave 16", "has 32 or 64 lanes"),
  ("gfx942", "--wave 32", "a wave of gfx942 has 64 lanes"),
  ("gfx1", "--wave 32", "no such virtual GPU; there are gfx1100,"),
  ("gfx1100", "--show v300", "has 256 registers of the kind v; with --vgprs 256"),
  ("gfx942", "--show v128", "has 128 registers of the kind v"),
  ("gfx1100", "--show a0", "has 0 registers of the kind a"),
  ("gfx1100", "--show s[104:106]", "has 106 registers of the kind s"),
  ("gfx1100", "--show v[5:3]", r"--show v\[5:3\]"), ("gfx1100", "--scratch -1", "0 or more"),
  ("gfx1100", "--seed -1", "0 or more is expected"),
  ("gfx1100", "--most 0", "1 or more is expected"), ("gfx1100", "--show q1", "no register to show")])
def test_what_a_chip_has_not_is_refused(arch: str, option: str, why: str) -> None:
  with pytest.raises(ArgumentError, match=why): AmdMachine(request(["k.s", "--arch", arch, *option.split()]))

def test_an_endless_kernel_is_stopped(tmp_path: Path) -> None:
  path, lines = tmp_path / "kernel.s", list[str]()
  path.write_text("v_mov_b32 v1, 5\nagain:\ns_branch again")
  assert run([str(path), "--arch=gfx1100", "--threads=2", "--most=1000", "--show=v1", "--buffer=u8=7"],
             lines.append) == 1
  assert lines[0] == "1000 instructions by 1 waves; the kernel has not ended, see --most 1000"
  assert lines[1].split()[:5] == ["wave", "0:", "v1:", "0", "0x5"] and lines[-1] == "buffer 0 (u8=7): 7"

def test_labels_that_are_not_there_or_twice(tmp_path: Path) -> None:
  with pytest.raises(ParseError, match="line 2: there is no label nowhere; there are here"):
    assemble_all("here:\ns_cbranch_scc0  nowhere", MACHINE)
  with pytest.raises(ParseError, match="line 3: there is a label here before"):
    assemble_all("here:\ns_nop 0\nhere:\ns_endpgm", MACHINE)
  assert assemble_all("s_branch -1", MACHINE)[0] == assemble_all("here:\ns_branch here", MACHINE)[0]
  for stop, why in (("nolabel", "--stop nolabel: there is no such label; there are compute"),
                    ("0x400", "--stop 0x400: the code has 0x.* bytes")):
    with pytest.raises(ArgumentError, match=why): execute(tmp_path, SAXPY, "--arch=gfx1100", "--stop", stop)
