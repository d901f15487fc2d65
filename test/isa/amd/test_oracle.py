"""Random instructions against an independent assembler: the clang of the package ziglang (the extra "oracle"; `pip
install ziglang`)."""
from __future__ import annotations
import random
import re

import pytest

from amd.golden import vectors
from amd.oracle import INSTALLED, assemble_all
from amd.random import random_instruction
from tinyhw.isa.amd.asm.encode import encode
from tinyhw.isa.amd.asm.syntax import show
from tinyhw.isa.amd.table.table import table
from tinyhw.machine.ir.inst import MInst

# Instructions that clang 22 refuses or encodes in another way, by the key of the row; our reading of the guides stands.
OTHERWISE = re.compile(r"""
  (flat|global)_atomic_(add|min|max)_f64      # with accumulation registers it leaves sc1 out
  | global_atomic_(add_f32|pk_add_b?f16)_rtn  # with accumulation registers and saddr it refuses them
  | v_wmma_bf16_16x16x16_bf16                 # it takes 1 / (2 pi) of a bf16 for a literal
  | ds_gws                                    # wants an even register on CDNA
  | s_(buffer_)?load_b96                      # it has no group of three ttmp
  | s_waitcnt_(vm|vs|exp|lgkm)cnt             # it refuses what is not null
  | buffer_wbinvl1 | buffer_load_lds | s_singleuse_vdst | s_wakeup_barrier  # dropped since llvm 19, for some generation
  | s_atc_probe_buffer""", re.VERBOSE)
COUNT = 20000  # least number of instructions
LITERAL_WITH_SIGN = re.compile(r"(neg\(|\|)0x")  # neg and abs of a literal: clang refuses some

@pytest.mark.skipif(not INSTALLED, reason="ziglang is not installed; pip install ziglang")
@pytest.mark.parametrize("arch", ["gfx942", "gfx950", "gfx1100", "gfx1200", "gfx1201", "gfx1100:wave64",
                                  "gfx1200:wave64"])
def test_random_instructions_against_clang(arch: str) -> None:
  rng = random.Random(11)
  insts: list[MInst] = []
  rows = [row for row in table(arch) if not OTHERWISE.match(row.isa.key)]
  while len(insts) < COUNT:
    insts += [inst for inst in (random_instruction(row, rng) for row in rows)
              if not LITERAL_WITH_SIGN.search(show(inst))]
  texts = [show(inst) for inst in insts]
  codes = assemble_all(texts, arch)
  wrong = [(text, code, encode(inst).hex()) for text, code, inst in zip(texts, codes, insts)
           if code != encode(inst).hex()]
  assert not wrong, f"{len(wrong)} of {len(insts)} differ: {wrong[:5]}"

@pytest.mark.skipif(not INSTALLED, reason="ziglang is not installed; pip install ziglang")
@pytest.mark.parametrize("wave", ["", ":wave64"])
def test_golden_lines_of_gfx1200_are_those_of_gfx1201(wave: str) -> None:
  """clang 22 accepts the same text for both, with the same bytes. A few lines are LLVM 19's alone."""
  lines = [vector for vector in vectors("gfx1200", ";") if vector.arch == "gfx1200" + wave]
  texts = [vector.text for vector in lines]
  here, there = assemble_all(texts, "gfx1200" + wave), assemble_all(texts, "gfx1201" + wave)
  assert here == there and there.count(None) < 10
  assert all(code in (None, vector.right) for vector, code in zip(lines, there))
