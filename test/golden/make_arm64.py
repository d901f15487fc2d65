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
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from formats.golden_words import rewrite
from formats.reference_assemblers import ReferenceAssemblers

from tinyhw.isa.arm64.asm import syntax

GNU_ARCH = ("-march=armv9.3-a+sve2+sve2-aes+sve2-sm4+sve2-sha3+sve2-bitperm+fp16+fp16fml+bf16+i8mm+f32mm+f64mm+crypto+aes+sha2+"
            "sha3+sm4+rcpc+flagm+sb+pauth+rng+lor+compnum+dotprod+sme")
LLVM_ONLY = re.compile(r"(smax|smin|umax|umin|cnt|ctz|abs) [wx]|adrp .*#")
REFERENCES = ReferenceAssemblers(("--triple=aarch64", "-mattr=+all"), 19, "aarch64-linux-gnu-", GNU_ARCH)

def bytes_of_llvm(texts: list[str]) -> list[bytes]:
  """Each movprfx is assembled apart, since llvm-mc demands that an instruction that uses it follows."""
  together = [text for text in texts if not text.startswith("movprfx")]
  found = dict(zip(together, REFERENCES.bytes_of_llvm(together)))
  return [found[text] if text in found else REFERENCES.bytes_of_llvm([text])[0] for text in texts]

if __name__ == "__main__":
  print(rewrite("arm64.txt", REFERENCES, syntax.assemble, bytes_of_llvm, lambda text: not LLVM_ONLY.match(text)))
