"""Writes amd_*.txt beside it again: instructions and the bytes that an independent assembler gives them. Run by hand;
the tests only read the files.

  python3 test/golden/make_amd.py

Needs ziglang (`pip install ziglang`), whose clang assembles for all these architectures. The instructions are those of
the files: one of every opcode, then operands, modifiers, literals, lane permutations, cache policies, waits and matrix
forms; then what must be refused, with our reason: clang must refuse it too. The files were made first with llvm-mc 19
and clang 22 together, of which gfx950 is known to the second only; they agreed on all bytes. The 16 instructions that
the second refuses (dropped since) keep their bytes.
"""
from __future__ import annotations
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from amd.golden import ARCHS, GOLDEN
from amd.oracle import assemble_all

from tinyhw.errors import TinyError
from tinyhw.isa.amd.asm import syntax

def reason(text: str, arch: str) -> str:
  """Why we refuse a text."""
  try: return f"accepted: {syntax.assemble(text, arch).hex()}"
  except TinyError as error: return error.message

def remake(name: str) -> int:
  """Write the file of an architecture; the number of instructions on which clang and we do not agree."""
  path = GOLDEN / f"amd_{name}.txt"
  head, *lines = path.read_text(encoding="utf-8").splitlines()
  arch, entries = name, []
  for line in lines:
    if line.startswith("@"): arch = line[2:]
    at = max(line.rfind(" ; "), line.find(" ! "))
    entries.append((arch, line[:at], line[at + 1], line[at + 3:]) if at > 0 else (arch, line, "@", ""))
  given: dict[int, str | None] = {}
  for wanted in dict.fromkeys(a for a, *_ in entries):
    numbers = [i for i, (a, _, mark, _) in enumerate(entries) if a == wanted and mark != "@"]
    given.update(zip(numbers, assemble_all([entries[i][1] for i in numbers], wanted)))
  wrong, out = 0, [head]
  for i, (arch, text, mark, old) in enumerate(entries):
    if mark == "@":
      out.append(text)
      continue
    ours = reason(text, arch)
    right = ours if mark == "!" else given[i] or old
    if (mark == "!" and given[i] is not None or ours.startswith("accepted") == (mark == "!") or mark == ";"
        and ours != f"accepted: {right}"):
      print(f"{arch}: {text}: clang: {given[i]}, we: {ours}", file=sys.stderr)
      wrong += 1
    out.append(f"{text} {mark} {right}")
  path.write_text("\n".join(out) + "\n", encoding="utf-8")
  return wrong

if __name__ == "__main__": sys.exit(1 if sum(map(remake, ARCHS)) else 0)
