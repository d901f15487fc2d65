"""Random instructions against NVIDIA's disassembler (the package triton has it; `pip install triton`)."""
from __future__ import annotations
import random
import re

import pytest

from sass_golden import Vector
from sass_oracle import INSTALLED, disassemble_all
from sass_random import random_instruction
from tinyhw.isa.sass.encode import encode
from tinyhw.isa.sass.form import GENERATIONS
from tinyhw.isa.sass.syntax import show
from tinyhw.isa.sass.table import table
from tinyhw.machine.inst import MInst

# Where the disassembler's text says less than ours, or is written in another way.
OTHERWISE = re.compile(r"""
  IADD3(\.X)?\ \w+,\ U?PT,\ U?P         # a first carry that is left out
  | \[RZ\.X                            # the scale of RZ
  | LDGSTS.*\.U32\+URZ                # leaves out a base that is zero
  | \[(R\d+\.X\d+\+)?-0x                # a negative address alone is written as unsigned
  | SYNCS\.EXCH.*\[-?0x                # writes URZ before an offset
  | IMAD\.IADD\ .*,\ 0x1,\ -RZ         # calls it a MOV
  | DEPBAR\ \{\} | BRX.*\ 0x0$""", re.VERBOSE)
COUNT = 20000  # instructions, at least
NAN = re.compile(r"[+-][QS]NAN")  # ours has the bits of one that is not the usual one

@pytest.mark.skipif(INSTALLED is None, reason="nvdisasm is not installed; pip install triton")
@pytest.mark.parametrize("arch", GENERATIONS)
def test_random_instructions_against_nvdisasm(arch: str) -> None:
  rng, rows = random.Random(7), list(table(arch))
  insts: list[MInst] = []
  while len(insts) < COUNT: insts += [random_instruction(row, rng) for row in rows]
  codes = [encode(inst) for inst in insts]
  wrong, accepted = [], 0
  for inst, code, (text, pc) in zip(insts, codes, disassemble_all(codes, arch)):
    accepted += bool(text)
    ours = " ".join(show(inst, pc=pc).split())
    if OTHERWISE.search(ours) or NAN.search(text) or Vector(arch, pc, code, text).same(ours): continue
    if inst.row.name == "ATOMG" and arch in ("sm_80", "sm_89") and not text: continue  # not all operations have all types
    wrong.append((ours, text))
  assert accepted >= COUNT * 0.9, f"nvdisasm knows only {accepted} of {len(insts)}"
  assert not wrong, f"{len(wrong)} of {len(insts)} differ: {wrong[:5]}"
