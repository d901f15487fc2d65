"""The runtime's functions on every system: they assemble, decode again, keep the stack aligned, and agree with an
independent assembler."""
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tinyhw.autogen import cpu_ring
from tinyhw.errors import DeviceError
from tinyhw.isa.x86 import abi, build_runtime, runtime
from tinyhw.isa.x86.asm import syntax

ROOT = Path(__file__).resolve().parents[3]
NAMES = build_runtime.NAMES
everywhere = [pytest.param(name, platform, id=f"{name}-{platform}") for name in NAMES for platform in abi.SYSTEMS]

def instructions(name: str, platform: str) -> list[str]:
  """Lines without comments and labels."""
  lines = [line.split(";")[0].strip() for line in runtime.text(name, platform).splitlines()]
  return [line for line in lines if line and not line.endswith(":")]

@pytest.mark.parametrize("name, platform", everywhere)
def test_assembles(name: str, platform: str) -> None:
  code = syntax.assemble_function(runtime.text(name, platform))
  assert 20 < len(code) < 2000 and "{" not in runtime.text(name, platform)

@pytest.mark.parametrize("name, platform", everywhere)
def test_an_independent_assembler_agrees(name: str, platform: str) -> None:
  """Each instruction without a label; running the loop covers jumps."""
  if shutil.which("llvm-mc") is None: pytest.skip("llvm-mc is not installed")
  lines = [line for line in instructions(name, platform) if not re.search(r"\s\.\w+$", line)]
  done = subprocess.run(["llvm-mc", "-triple=x86_64", "-x86-asm-syntax=intel", "-show-encoding"],
                        input="\n".join(lines), text=True,
                        capture_output=True, check=True)
  theirs = [bytes(int(b, 16) for b in found.split(",")) for found in re.findall(r"encoding: \[(.*)\]", done.stdout)]
  ours = [syntax.assemble(line) for line in lines]
  wrong = [(line, a.hex(), b.hex()) for line, a, b in zip(lines, joined(lines, theirs), ours, strict=True) if a != b
           and len(a) < len(b)]
  assert not wrong, "ours is longer, or means something else"
  for line, code in zip(lines, ours, strict=True): assert syntax.assemble(str(syntax.disassemble(code))) == code, line

def joined(lines: list[str], encodings: list[bytes]) -> list[bytes]:
  """Join the prefix `lock`, which is printed as an instruction of its own, with its instruction."""
  found, rest = [], iter(encodings)
  for line in lines:
    found.append(next(rest) + (next(rest) if line.startswith("lock ") and len(encodings) > len(lines) else b""))
  return found

def change_of_stack(line: str) -> int:
  """Bytes by which an instruction lowers rsp."""
  if line.startswith("push "): return 8
  if line.startswith("pop "): return -8
  found = re.fullmatch(r"(sub|add) rsp, (\d+)", line)
  return 0 if found is None else int(found[2]) * (1 if found[1] == "sub" else -1)

@pytest.mark.parametrize("platform", abi.SYSTEMS)
def test_calls_find_an_aligned_stack(platform: str) -> None:
  """Functions called through a register or memory are not ours: rsp must be a multiple of 16 there.

  Each piece begins with a return address on the stack.
  """
  pieces = re.split(r"\n(?=\.take:|\.wait:|\.wake:|\.wake_some:|\.wake_all:)", runtime.text("ring", platform))
  for piece in pieces:
    depth = 8
    for line in (line.split(";")[0].strip() for line in piece.splitlines()):
      if re.match(r"call (r\w+|qword)", line): assert depth % 16 == 0, (platform, line)
      if re.match(r"call \.", line) and piece is pieces[0]: assert depth % 16 == 0, (platform, line)
      if change_of_stack(line) > 0: depth += change_of_stack(line)  # stack space is only released before returns

@pytest.mark.parametrize("platform", abi.SYSTEMS)
def test_saved_registers_are_saved(platform: str) -> None:
  lines = instructions("ring", platform)
  saved = abi.abi(platform).saved
  assert [line[5:] for line in lines if line.startswith("push ")] == list(saved)
  assert [line[4:] for line in lines if line.startswith("pop ")] == list(reversed(saved))

def test_marks_stand_once() -> None:
  for platform in abi.SYSTEMS:
    code = syntax.assemble_function(runtime.text("submit", platform))
    for mark in cpu_ring.MARKS.values(): assert code.count(mark.to_bytes(8, "little")) == 1

def test_a_changed_text_is_assembled(monkeypatch: pytest.MonkeyPatch) -> None:
  kept = runtime.assemble("cpuid", "linux")
  monkeypatch.setattr(runtime, "CPUID", runtime.CPUID + "  nop\n")
  assert runtime.assemble("cpuid", "linux") == kept + b"\x90"

@pytest.mark.slow
def test_the_assembler_is_not_loaded() -> None:
  program = ("import sys; from tinyhw.isa.x86 import runtime; runtime.assemble('ring', 'linux'); print([m for m in "
             "sys.modules if 'x86.table' in m])")
  done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT, check=True)
  assert done.stdout == "[]\n"

def test_code_is_made_once() -> None:
  if sys.platform not in abi.SYSTEMS: pytest.skip("no runtime for this system")
  assert runtime.code("ring") is runtime.code("ring") and runtime.code("cpuid").arch == "x86_64"

def test_unknown_systems_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setattr(sys, "platform", "plan9")
  with pytest.raises(DeviceError, match="does not know how threads wait on plan9; use DEV=CLANG or DEV=PYTHON"):
    runtime.code.__wrapped__("ring")
