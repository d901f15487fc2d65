"""Bytes of RISC-V instructions against the golden file, GNU as and llvm-mc."""
from __future__ import annotations
import random
import re

import pytest
from formats.encodings import encodings, refusals
from formats.reference_assemblers import differences
from generators.random_words import random_instruction
from riscv64.references import LLVM_ONLY, REFERENCES

from tinyhw.errors import TinyError
from tinyhw.isa.riscv64.asm.syntax import assemble, show
from tinyhw.isa.riscv64.table.table import TABLE
from tinyhw.machine.assembler.encode import encode

def check_encodings(step: int) -> None:
  lines = list(encodings("riscv64.txt"))[::step]
  texts = [line[0] for line in lines]
  assert not differences(texts, [assemble(text) for text in texts], [line[1] for line in lines])

def check_refusals(step: int) -> None:
  for text, reason in list(refusals("riscv64.txt"))[::step]:
    with pytest.raises(TinyError) as caught: assemble(text)
    assert caught.value.message == reason

@pytest.mark.slow
def test_bytes_and_refusals() -> None:
  check_encodings(1)
  check_refusals(1)

def test_each_twentieth() -> None:
  check_encodings(20)
  check_refusals(20)
  assert (len(list(encodings("riscv64.txt"))), len(list(refusals("riscv64.txt")))) >= (4600, 1400)

def samples(count: int, seed: int) -> dict[str, bytes]:
  """The texts of random instructions, and their bytes."""
  rng = random.Random(seed)
  rows = [row for row in TABLE if "csr" not in row.isa.text and "label" not in row.isa.text]
  return {show(inst): encode(inst) for inst in (random_instruction(row, rng) for row in rng.choices(rows, k=count))}

def test_random_instructions_against_llvm() -> None:
  if REFERENCES.why_no_llvm(): pytest.skip(REFERENCES.why_no_llvm())
  made = samples(4000, 7)
  assert not differences(list(made), list(made.values()), REFERENCES.bytes_of_llvm(list(made)))[:3]

def test_random_instructions_against_gnu_as() -> None:
  if REFERENCES.why_no_gnu(): pytest.skip(REFERENCES.why_no_gnu())
  made = {text: code for text, code in samples(4000, 8).items() if not re.match(LLVM_ONLY, text)}
  assert not differences(list(made), list(made.values()), REFERENCES.bytes_of_gnu(list(made)))[:3]
