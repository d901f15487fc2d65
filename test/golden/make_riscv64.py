"""Checks riscv64.txt beside it against independent assemblers, and writes our reasons for refusals anew. Run by hand;
the tests only read the file.

  python3 test/golden/make_riscv64.py

Needs llvm-mc 19 (Debian: llvm-19) and GNU as for RISC-V (binutils-riscv64-linux-gnu). Both must give the bytes of each
line. GNU as leaves out Zicond, which binutils 2.40 does not know. A line with "=" has the spelling that llvm-mc prints
for its bytes. A refused text must be refused by llvm-mc too. To add lines, write the text alone on a line of the file:
the bytes and spellings are filled in.
"""
from __future__ import annotations
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from formats.golden_words import rewrite
from riscv64.references import LLVM_ONLY, REFERENCES

from tinyhw.isa.riscv64.asm import syntax

if __name__ == "__main__":
  print(rewrite("riscv64.txt", REFERENCES, syntax.assemble, REFERENCES.bytes_of_llvm,
                lambda text: not re.match(LLVM_ONLY, text)))
