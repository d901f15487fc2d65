"""Checks arm64.txt beside it against independent assemblers, and writes our reasons for refusals anew. Run by hand; the
tests only read the file.

  python3 test/golden/make_arm64.py

Needs llvm-mc 19 (Debian: llvm-19) and GNU as for AArch64 (binutils-aarch64-linux-gnu). Both must give the bytes of each
line. GNU as leaves out two groups of lines, which binutils 2.40 does not know (see LLVM_ONLY). A line with "=" has the
spelling that llvm-mc prints for its bytes. A refused text must be refused by llvm-mc too. To add lines, write the text
alone on a line of the file: the bytes and spellings are filled in.
"""
from __future__ import annotations
import re
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from arm64.golden import GOLDEN

from tinyhw.errors import TinyError
from tinyhw.isa.arm64.asm import syntax

LLVM = ["llvm-mc-19", "--triple=aarch64", "-mattr=+all"]
GNU = "aarch64-linux-gnu-as"
GNU_ARCH = ("-march=armv9.3-a+sve2+sve2-aes+sve2-sm4+sve2-sha3+sve2-bitperm+fp16+fp16fml+bf16+i8mm+f32mm+f64mm+crypto+aes+sha2+"
            "sha3+sm4+rcpc+flagm+sb+pauth+rng+lor+compnum+dotprod+sme")
LLVM_ONLY = re.compile(r"(smax|smin|umax|umin|cnt|ctz|abs) [wx]|adrp .*#")

def llvm(lines: list[str], *options: str) -> tuple[list[str], str]:
  done = subprocess.run([*LLVM, *options], input="\n".join(lines) + "\n", capture_output=True, text=True, check=False)
  return done.stdout.splitlines(), done.stderr

def bytes_of_llvm(texts: list[str]) -> list[bytes]:
  """Each movprfx is assembled apart, since llvm-mc demands that an instruction that uses it follows."""
  together = [text for text in texts if not text.startswith("movprfx")]
  found = dict(zip(together, encodings_of(together)))
  return [found[text] if text in found else encodings_of([text])[0] for text in texts]

def encodings_of(texts: list[str]) -> list[bytes]:
  out, errors = llvm(texts, "--show-encoding")
  assert "error" not in errors, errors[:2000]
  codes = [bytes.fromhex(m[1].replace("0x", "").replace(",", "")) for line in out
           if (m := re.search(r"encoding: \[(.*)\]", line))]
  assert len(codes) == len(texts), f"{len(texts)} lines, llvm-mc made {len(codes)}"
  return codes

def bytes_of_gnu(texts: list[str]) -> bytes:
  with tempfile.TemporaryDirectory() as folder:
    source, target, image = (Path(folder) / name for name in ("a.s", "a.o", "a.bin"))
    source.write_text("\n".join(texts) + "\n")
    done = subprocess.run([GNU, GNU_ARCH, "-o", target, source], capture_output=True, text=True, check=False)
    errors = [line for line in done.stderr.splitlines() if "Error" in line]
    assert not errors, errors[:5]
    subprocess.run(["aarch64-linux-gnu-objcopy", "-O", "binary", "-j", ".text", target, image], check=True)
    return image.read_bytes()

def spelled_by_llvm(codes: list[bytes]) -> list[str]:
  out, errors = llvm([" ".join(f"0x{byte:02x}" for byte in code) for code in codes], "--disassemble")
  assert "error" not in errors, errors[:2000]
  lines = [line.partition("//")[0].strip().replace("\t", " ", 1) for line in out]
  return [line for line in lines if line and line[0] != "."]

def refusal(text: str) -> str:
  try: code = syntax.assemble(text)
  except TinyError as e: return f"{text} ! {e.message}"
  raise AssertionError(f"{text} is not refused: {code.hex()}")

def main() -> None:
  lines = GOLDEN.read_text(encoding="utf-8").splitlines()
  head = [line for line in lines if line.startswith("#")]
  refused = [line.partition(" ! ")[0] for line in lines if " ! " in line and line[0] != "#"]
  texts = [line.partition(" ; ")[0] for line in lines if line and line[0] != "#" and " ! " not in line]
  codes = bytes_of_llvm(texts)
  both = [k for k, text in enumerate(texts) if not LLVM_ONLY.match(text)]
  other = bytes_of_gnu([texts[k] for k in both])
  wrong = [texts[k] for n, k in enumerate(both) if other[4 * n:4 * n + 4] != codes[k]]
  assert not wrong, f"the assemblers differ: {wrong[:5]}"
  spelled = spelled_by_llvm(codes)
  accepted = [text for text in refused if "error" not in llvm([text])[1]]
  assert not accepted, f"llvm-mc takes {accepted[:5]}"
  made = [f"{text} ; {code.hex(' ')}" + (f" = {other_text}" if other_text != text else "")
          for text, code, other_text in zip(texts, codes, spelled)]
  GOLDEN.write_text("\n".join([*head, *dict.fromkeys(made), *map(refusal, refused)]) + "\n", encoding="utf-8")
  print(f"{len(made)} encodings, {len(refused)} refusals")

if __name__ == "__main__": main()
