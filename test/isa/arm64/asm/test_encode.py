"""Bytes of instructions against golden files, GNU as and llvm-mc; functions with jumps."""
from __future__ import annotations
import random
import re

import pytest

from tinyhw.errors import TinyError
from tinyhw.machine.assembler.encode import encode
from tinyhw.isa.arm64.asm.syntax import assemble, show
from tinyhw.isa.arm64.table.table import TABLE
from tinyhw.machine.ir.inst import MInst
from formats.encodings import encodings, refusals
from formats.reference_assemblers import ReferenceAssemblers, differences
from generators.random_words import random_instruction

REFERENCES = ReferenceAssemblers(
  ("--triple=aarch64", "-mattr=+all"), 17, "aarch64-linux-gnu-",
  "-march=armv9-a+crc+sve2+sve2-aes+sve2-sm4+sve2-sha3+sve2-bitperm+fp16+fp16fml+bf16+i8mm+f32mm+f64mm+crypto+aes+sha2+"
  "sha3+sm4+rcpc+flagm+sb+pauth+rng+lor+compnum+dotprod")
# the features of rows that older assemblers do not know, or that the options above cannot name
LEFT_OUT = {"cssc", "hbc", "mte"}

@pytest.mark.slow
def test_bytes_are_those_of_the_reference_assemblers() -> None:
  wrong = [(text, assemble(text).hex(" "), code.hex(" ")) for text, code, _ in encodings("arm64.txt")
           if assemble(text) != code]
  assert not wrong, f"{len(wrong)} differ: {wrong[:3]}"

def test_each_thirtieth_encoding_and_the_number_of_them() -> None:
  every = list(encodings("arm64.txt"))
  assert len(every) > 13_000
  assert not [text for text, code, _ in every[::30] if assemble(text) != code]

@pytest.mark.slow
def test_refusals() -> None:
  every = list(refusals("arm64.txt"))
  assert len(every) > 1400
  for text, reason in every:
    with pytest.raises(TinyError) as caught: assemble(text)
    assert caught.value.message == reason

def test_each_thirtieth_refusal() -> None:
  for text, reason in list(refusals("arm64.txt"))[::30]:
    with pytest.raises(TinyError) as caught: assemble(text)
    assert caught.value.message == reason

def samples(count: int, seed: int) -> list[MInst]:
  rng = random.Random(seed)
  rows = [row for row in TABLE if row.feature not in LEFT_OUT and "label" not in row.isa.text
          and "unseen" not in row.isa.words]
  return [random_instruction(row, rng) for row in rng.choices(rows, k=count)]

def test_random_instructions_against_gnu_as() -> None:
  if REFERENCES.why_no_gnu(): pytest.skip(REFERENCES.why_no_gnu())
  # GNU as limits the immediate of one-bit fields of PSTATE to 0 and 1; the manual and LLVM take four bits
  insts = [inst for inst in samples(4000, 5) if not re.match(r"msr (PAN|UAO|DIT|SSBS|TCO|ALLINT), ", show(inst))]
  texts = [show(i) for i in insts]
  assert not differences(texts, list(map(encode, insts)), REFERENCES.bytes_of_gnu(texts))[:3]

def test_random_instructions_against_llvm() -> None:
  if REFERENCES.why_no_llvm(): pytest.skip(REFERENCES.why_no_llvm())
  # LLVM refuses movprfx unless its user follows, and ldp of zr twice, which GNU as takes (with a warning)
  insts = [inst for inst in samples(4000, 6) if not re.match(r"movprfx|ldp(sw)? [wx]zr, [wx]zr", show(inst))]
  texts = [show(i) for i in insts]
  assert not differences(texts, list(map(encode, insts)), REFERENCES.bytes_of_llvm(texts))[:3]
