"""llvm-mc and GNU as, as references for assemblers of ISAs whose instructions are words of 32 bits."""
from __future__ import annotations
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

class ReferenceAssemblers:
  """The two assemblers of an instruction set.

  - llvm: options of llvm-mc; since: the first version that knows all of the table.
  - gnu: prefix of the GNU tools, such as "riscv64-linux-gnu-"; march: the option of GNU as.
  """

  def __init__(self, llvm: tuple[str, ...], since: int, gnu: str, march: str):
    names = [f"llvm-mc-{version}" for version in range(25, since - 1, -1)]
    self.program = next((name for name in (*names, "llvm-mc") if shutil.which(name)), "")
    self.options, self.since, self.gnu, self.march = llvm, since, gnu, march

  def why_no_llvm(self) -> str:
    """The reason to skip a test that needs llvm-mc, or ""."""
    if not self.program: return "llvm-mc is not installed"
    shown = subprocess.run([self.program, "--version"], capture_output=True, text=True, check=True).stdout
    found = re.search(r"version (\d+)", shown)
    version = int(found[1]) if found is not None else 0
    return f"llvm-mc {version} lacks features of the table; {self.since} or later is needed" * (version < self.since)

  def why_no_gnu(self) -> str: return "" if shutil.which(self.gnu + "as") else f"{self.gnu}as is not installed"

  def run_llvm(self, lines: list[str], *options: str) -> tuple[list[str], str]:
    """The lines of output, and the errors."""
    done = subprocess.run([self.program, *self.options, *options], input="\n".join(lines) + "\n", capture_output=True,
                          text=True, check=False)
    return done.stdout.splitlines(), done.stderr

  def bytes_of_llvm(self, texts: list[str]) -> list[bytes]:
    out, errors = self.run_llvm(texts, "--show-encoding")
    assert "error" not in errors, errors[:2000]
    codes = [bytes.fromhex(m[1].replace("0x", "").replace(",", "")) for line in out
             if (m := re.search(r"encoding: \[(.*)\]", line))]
    assert len(codes) == len(texts), f"{len(texts)} lines, llvm-mc made {len(codes)}"
    return codes

  def refused_by_llvm(self, texts: list[str]) -> set[int]:
    """The positions of the texts that llvm-mc refuses."""
    return {int(number) - 1 for number in re.findall(r"<stdin>:(\d+):\d+: error:", self.run_llvm(texts)[1])}

  def spelled_by_llvm(self, codes: list[bytes]) -> list[str]:
    out, errors = self.run_llvm([" ".join(f"0x{byte:02x}" for byte in code) for code in codes], "--disassemble")
    assert "error" not in errors and "invalid" not in errors, errors[:2000]
    lines = [re.split(r"//|#(?=\s)", line)[0].strip().replace("\t", " ", 1) for line in out]
    return [line for line in lines if line and line[0] != "."]

  def bytes_of_gnu(self, texts: list[str]) -> list[bytes]:
    with tempfile.TemporaryDirectory() as folder:
      source, target, image = (Path(folder) / name for name in ("a.s", "a.o", "a.bin"))
      source.write_text("\n".join(texts) + "\n")
      done = subprocess.run([self.gnu + "as", self.march, "-o", target, source], capture_output=True, text=True,
                            check=False)
      errors = [(line, texts[int(found[1]) - 1]) for line in done.stderr.splitlines()
                if "Error" in line and (found := re.search(r":(\d+):", line))]
      assert not errors, errors[:5]
      subprocess.run([self.gnu + "objcopy", "-O", "binary", "-j", ".text", target, image], check=True)
      code = image.read_bytes()
    assert len(code) == 4 * len(texts), f"{len(texts)} lines, GNU as made {len(code)} bytes"
    return [code[k:k + 4] for k in range(0, len(code), 4)]

def differences(texts: list[str], ours: list[bytes], theirs: list[bytes]) -> list[tuple[str, str, str]]:
  return [(text, a.hex(" "), b.hex(" ")) for text, a, b in zip(texts, ours, theirs) if a != b]
