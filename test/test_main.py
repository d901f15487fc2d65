"""The command line: asm and disasm."""
from __future__ import annotations
import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import tinyhw
from tinyhw.__main__ import ALL, overview

ROOT = Path(__file__).resolve().parent.parent

def run(*arguments: str, text: str = "") -> subprocess.CompletedProcess[str]:
  return subprocess.run([sys.executable, "-m", "tinyhw", *arguments], input=text, capture_output=True, text=True,
                        cwd=ROOT)

def test_asm() -> None:
  done = run("asm", "--arch", "x86_64", text="# comment\nvaddps ymm0, ymm1, ymm2\n\nret ; done\n")
  assert (done.returncode, done.stdout, done.stderr) == (0, "c5 f4 58 c2\nc3\n", "")

@pytest.mark.parametrize("command", ("asm", "cache", "disasm", "doctor", "emulate", "selftest", "viz"))
def test_each_command_has_help(command: str) -> None:
  done = run(command, "--help")
  assert done.returncode == 0 and done.stdout.startswith(f"usage: python3 -m tinyhw {command} ") and not done.stderr

def test_asm_refuses_a_line_and_goes_on() -> None:
  done = run("asm", "--arch=x86_64", text="ret\nvaddps ymm0, ymm1, xmm3\nret\n")
  assert (done.returncode, done.stdout) == (1, "c3\nc3\n")
  assert done.stderr == "line 2: vaddps: operand 3 wants ymm, m256 or m32{1to8}, got xmm3\n"

def test_version() -> None:
  done = run("--version")
  assert (done.returncode, done.stdout, done.stderr) == (0, f"tinyhw {tinyhw.__version__}\n", "")

def test_disasm() -> None:
  done = run("disasm", "--arch", "x86_64", text="c5 f4 58 c2\n62f1744858c2\n")
  assert (done.returncode, done.stdout, done.stderr) == (0, "vaddps ymm0, ymm1, ymm2\nvaddps zmm0, zmm1, zmm2\n", "")

def test_disasm_refuses() -> None:
  done = run("disasm", "--arch", "x86_64", text="0f ff\nc3 c3\nhello\n")
  assert done.returncode == 1
  assert done.stderr.splitlines() == ["line 1: offset 0: no instruction of the table starts with 0f ff",
                                      "line 2: ret ends after 1 bytes; these are left: c3",
                                      "line 3: bytes in hex are expected, like c5 f4 58 c2; got hello"]

@pytest.mark.skipif(not hasattr(signal, "SIGPIPE"), reason="a system without SIGPIPE")
def test_a_reader_that_goes_away_ends_it_quietly() -> None:
  command = [sys.executable, "-m", "tinyhw", "asm", "--arch", "x86_64"]
  with tempfile.TemporaryFile("w+") as text:
    text.write("ret\n" * 50000)
    text.seek(0)
    process = subprocess.Popen(command, stdin=text, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT)
  assert process.stdout is not None and process.stderr is not None
  assert process.stdout.readline() == b"c3\n"
  process.stdout.close()
  with process.stderr: assert process.stderr.read() == b""
  assert process.wait() == -signal.SIGPIPE

def test_amd() -> None:
  done = run("asm", "--arch", "gfx1100", text="v_cmp_lt_f32 vcc_lo, v0, v2\nv_cmp_lt_f32 vcc, v0, v2\n")
  assert (done.returncode, done.stdout) == (1, "00 05 22 7c\n")
  assert done.stderr == "line 2: operand sdst wants a scalar register, got vcc\n"
  done = run("disasm", "--arch", "gfx1100:wave64", text="00 05 22 7c\n")
  assert (done.returncode, done.stdout, done.stderr) == (0, "v_cmp_lt_f32_e32 vcc, v0, v2\n", "")
  refused = run("asm", "--arch", "gfx942:wave32", text="s_endpgm\n").stderr
  assert refused == "asm: gfx942:wave32 is unknown; there is gfx942, gfx942:wave64\n"
  for arch in ("gfx942:", "gfx1100:wave16", "sm_90:", "x86_64:foo"):
    assert run("asm", "--arch", arch, text="").returncode == 2

def test_emulate(tmp_path: Path) -> None:
  kernel = tmp_path / "kernel.s"
  kernel.write_text("s_mov_b32 s4, 7\ns_endpgm\n")
  done = run("emulate", str(kernel), "--arch", "gfx1200", "--show", "s4")
  assert (done.returncode, done.stdout, done.stderr) == (0, "2 instructions by 1 waves\nwave 0: s4 = 0x7\n", "")
  kernel.write_text("s_mov_b32 s4, s5\ns_endpgm\n")
  done = run("emulate", str(kernel), "--arch", "gfx1200")
  assert done.returncode == 1
  assert done.stderr.startswith("emulate: s5 is read and nothing has written it\n  at 0x10000 (kernel + 0x0): "
                                "s_mov_b32 s4, s5")
  assert "--stop" in run("emulate", "--help").stdout and run("emulate").returncode == 2

def test_control_words_of_nvidia() -> None:
  text = "[B0-----:R-:W-:-:S04] FFMA R8, R8.reuse, R9, R10\n"
  code = run("asm", "--arch", "sm_90", text=text).stdout
  assert code == "23 72 08 08 09 00 00 00 0a 00 00 00 00 c8 1f 04\n"
  assert run("disasm", "--arch", "sm_90", text=code).stdout == text
  assert run("disasm", "--arch", "sm_90", "--plain", text=code).stdout == "FFMA R8, R8.reuse, R9, R10\n"

def test_usage() -> None:
  done = run("asm")
  assert done.returncode == 2 and done.stderr.startswith("asm: --arch is missing, the instruction set that it is for: "
                                                         "x86_64, arm64, riscv64, gfx942, ")
  assert done.stderr.endswith("; write: python3 -m tinyhw asm --arch ARCH\n")
  assert run("asm", "--arch", "z80").stderr == (
    "asm: no instruction set is called z80; there is x86_64, arm64, riscv64, gfx942, gfx950, gfx1100, gfx1200, "
    "gfx1201, sm_80, sm_86, sm_89, sm_90, sm_90a, sm_100, sm_100a, sm_120, sm_120a\n")
  done = run("frobnicate")
  assert done.returncode == 2 and done.stderr == (
    "no command is called 'frobnicate'; there is asm, cache, disasm, doctor, emulate, selftest, viz: "
    "python3 -m tinyhw --help\n")

def test_the_overview_names_every_command_and_fits_a_terminal() -> None:
  done = run()
  assert done.returncode == 0 and done.stdout == run("--help").stdout == run("help").stdout
  assert all(re.search(rf"^  {name}\b", done.stdout, re.M) for name in ALL)
  assert max(len(line) for line in done.stdout.splitlines()) <= 100 and "\x1b" not in done.stdout
  assert "\x1b[1mdevices\x1b[0m" in overview(bold=True)

@pytest.mark.parametrize("words, says", [
  ("disasm --plain code.txt", r"code.txt is not read: .* on standard input; --arch is missing, .*; write: .* disasm "
   r"--arch ARCH < FILE"),
  ("asm --arch sm_90 code.txt", r"code.txt is not read: .* on standard input; write: python3 -m tinyhw asm --arch "
   r"sm_90 < FILE"),
  ("disasm --arch=sm_90 --plian", r"--plian is no option; write: python3 -m tinyhw disasm --arch sm_90"),
  ("disasm --plain --arch", r"--arch is missing, .*; write: python3 -m tinyhw disasm --arch ARCH"),
])
def test_words_that_asm_and_disasm_do_not_take(words: str, says: str) -> None:
  """The error names files that are not read and options that do not exist, and gives the right form."""
  command, *rest = words.split()
  done = run(command, *rest)
  assert done.returncode == 2 and re.fullmatch(f"{command}: {says}\n", done.stderr), done.stderr

def test_a_wrong_variable_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setenv("THREADS", "-3")
  monkeypatch.delenv("DEV", raising=False)   # the choice of a default device opens CPU
  done = run("doctor")
  assert (done.returncode == 1 and done.stderr == "doctor: THREADS=-3 is no number of threads; set it to 1 or more, "
          "or to 0 for one per core\n")
