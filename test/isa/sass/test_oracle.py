"""Random instructions against NVIDIA's disassembler (the package triton has it; `pip install triton`)."""
from __future__ import annotations
import random
import re
from collections import Counter

import pytest

from nvidia.golden import Vector
from nvidia.oracle import INSTALLED, disassemble_all
from nvidia.random import random_instruction
from tinyhw.isa.sass.asm.encode import encode
from tinyhw.isa.sass.asm.syntax import show
from tinyhw.isa.sass.table.form import GENERATIONS
from tinyhw.isa.sass.table.table import table
from tinyhw.machine.ir.inst import MInst

# Texts of the disassembler that are shorter than ours, or different: a reason, and ours.
OTHERWISE = {
  "leaves out a first carry that is PT": re.compile(r"IADD3(\.X)? \w+, U?PT, U?P"),
  "leaves out the scale of RZ": re.compile(r"\[RZ\.X"),
  "leaves out a base that is URZ": re.compile(r"LDGSTS.*\.U32\+URZ"),
  "writes URZ before an offset": re.compile(r"SYNCS\.EXCH.*\[-?0x"),
  "writes a negative address alone as unsigned": re.compile(r"(?<!\])\[-0x"),
  "leaves out an empty list": re.compile(r"DEPBAR \{\}"),
  "leaves out a distance of 0": re.compile(r"BRX.* 0x0$"),
}
NAN = re.compile(r"[+-][QS]NAN")  # ours has the bits of an unusual one
SAME, DRAWN = 20000, 24000        # counts of instructions, at least
MOST_EXEMPT = 0.05                # of those drawn; 2 to 4 % are

def exemption(arch: str, inst: MInst, ours: str, text: str) -> str | None:
  """Return the reason why a different text is no error, or None.

  text: that of the disassembler, "" if it refuses the instruction.
  """
  if not text:
    return ("ATOMG has not all types with all operations" if inst.row.name == "ATOMG" and arch in ("sm_80", "sm_89")
            else None)
  if NAN.search(text): return "names a NaN"
  return next((reason for reason, pattern in OTHERWISE.items() if pattern.search(ours)), None)

@pytest.mark.skipif(INSTALLED is None, reason="nvdisasm is not installed; pip install triton")
@pytest.mark.parametrize("arch", GENERATIONS)
def test_random_instructions_against_nvdisasm(arch: str) -> None:
  rng, rows = random.Random(7), list(table(arch))
  insts: list[MInst] = []
  while len(insts) < DRAWN: insts += [random_instruction(row, rng) for row in rows]
  codes = [encode(inst) for inst in insts]
  same, exempt, wrong = 0, Counter[str](), []
  for inst, code, (text, pc) in zip(insts, codes, disassemble_all(codes, arch)):
    ours = " ".join(show(inst, pc=pc).split())
    if Vector(arch, pc, code, text).same(ours): same += 1
    elif reason := exemption(arch, inst, ours, text): exempt[reason] += 1
    else: wrong.append((ours, text))
  assert not wrong, f"{len(wrong)} of {len(insts)} differ: {wrong[:5]}"
  assert same >= SAME, f"only {same} of {len(insts)} are the same"
  assert exempt.total() <= MOST_EXEMPT * len(insts), f"{exempt.total()} of {len(insts)} are exempt: {exempt}"
