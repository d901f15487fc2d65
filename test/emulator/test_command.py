"""`emulate`: options, files, labels and buffers, for any GPU."""
from __future__ import annotations
from pathlib import Path

import pytest

from tinyhw.emulator.command import USAGE, BufferArgument, assemble_all, machine_of, request, run
from tinyhw.errors import ArgumentError, MissingFileError, ParseError

ARCHITECTURES = ("gfx1100", "sm_90")

def test_buffers() -> None:
  assert (BufferArgument("u32:3").data == bytes(12) and BufferArgument("u8=1,2").data == b"\1\2"
          and BufferArgument("i32:iota:2").show() == "0 1")
  for wrong in ("f33:4", "f32", "u8=300", "f32=a", "u32:iota", "f32:-3", "u32:iota:-1", "f32:99999999999",
                "u8:0x1000001"):
    with pytest.raises(ArgumentError, match="is no buffer|number is expected"): BufferArgument(wrong)

@pytest.mark.parametrize("arguments,why", [
  (["k.s"], "a file and --arch"), (["--arch", "sm_90"], "a file and --arch"),
  (["k.s", "j.s", "--arch", "gfx1100"], "one file"),
  (["k.s", "--arch"], "wants a value"), (["k.s", "--arch", "sm_90", "--frames", "3"], "no option --frames"),
  (["k.s", "--arch", "gfx1100", "--seed", "x"], "a number is expected"),
  (["k.s", "--arch", "sm_90", "--most=0"], "1 or more is expected"),
  (["k.s", "--arch", "sm_90", "--wave", "32"], "no option --wave"),
  (["k.s", "--arch", "gfx1100", "--registers", "32"], "no option --registers"),
  (["k.s", "--arch", "x86_64"], "no such virtual GPU; their names begin with gfx or sm_"),
  (["k.s", "--arch", "gfx1100", *["--buffer=f32:1"] * 64], "64 buffers are too many; there is room for 63")])
def test_command_lines_that_are_refused(arguments: list[str], why: str) -> None:
  with pytest.raises(ArgumentError, match=why): request(arguments)

@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_all_options_are_in_the_usage(arch: str) -> None:
  asked = request(["k.s", "--arch", arch])
  assert asked.numbers["most"] == 1 << 21 and asked.numbers["seed"] == 0
  assert all(f"[--{name} " in USAGE for name in (*asked.numbers, "threads", "buffer", "stop", "show"))

@pytest.mark.parametrize("arch, end", [("gfx1100", "s_endpgm"), ("sm_90", "EXIT")])
def test_files_and_text_that_are_refused(tmp_path: Path, arch: str, end: str) -> None:
  machine = machine_of(arch)(request(["k.s", "--arch", arch]))
  with pytest.raises(MissingFileError, match="there is no file"): run([str(tmp_path / "none.s"), "--arch", arch])
  with pytest.raises(ParseError, match="line 2: "): assemble_all(f"{end}\nv_frobnicate v0", machine)
  with pytest.raises(ParseError, match="line 3: there is a label here before"):
    assemble_all(f"here:\n{end}\nhere:\n{end}", machine)
  for stop, why in (("nolabel", "--stop nolabel: there is no such label; there are here"),
                    ("0x400", "--stop 0x400: the code has 0x.* bytes")):
    (tmp_path / "k.s").write_text(f"here:\n{end}")
    with pytest.raises(ArgumentError, match=why): run([str(tmp_path / "k.s"), "--arch", arch, "--stop", stop])
