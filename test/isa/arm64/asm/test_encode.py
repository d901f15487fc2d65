"""Bytes of instructions against golden files, GNU as and llvm-mc; functions with jumps."""
from __future__ import annotations
import random
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tinyhw.errors import TinyError
from tinyhw.machine.assembler.encode import encode
from tinyhw.isa.arm64.asm.syntax import assemble, show
from tinyhw.isa.arm64.table.table import TABLE
from tinyhw.machine.ir.inst import MInst
from arm64.golden import encodings, refusals
from arm64.instructions import random_instruction

LLVM = next((name for name in ("llvm-mc-19", "llvm-mc-18", "llvm-mc-17", "llvm-mc") if shutil.which(name)), "")
GNU = "aarch64-linux-gnu-as"
GNU_ARCH = ("-march=armv9-a+crc+sve2+sve2-aes+sve2-sm4+sve2-sha3+sve2-bitperm+fp16+fp16fml+bf16+i8mm+f32mm+"
            "f64mm+crypto+aes+sha2+sha3+sm4+rcpc+flagm+sb+pauth+rng+lor+compnum+dotprod")
# the features of rows that older assemblers do not know, or that the options above cannot name
LEFT_OUT = {"cssc", "hbc", "mte"}

@pytest.mark.slow
def test_bytes_are_those_of_the_reference_assemblers() -> None:
  wrong = [(text, assemble(text).hex(" "), code.hex(" ")) for text, code, _ in encodings() if assemble(text) != code]
  assert not wrong, f"{len(wrong)} differ: {wrong[:3]}"

def test_each_thirtieth_encoding_and_the_number_of_them() -> None:
  every = list(encodings())
  assert len(every) > 13_000
  assert not [text for text, code, _ in every[::30] if assemble(text) != code]

@pytest.mark.slow
def test_refusals() -> None:
  every = list(refusals())
  assert len(every) > 1400
  for text, reason in every:
    with pytest.raises(TinyError) as caught: assemble(text)
    assert caught.value.message == reason

def test_each_thirtieth_refusal() -> None:
  for text, reason in list(refusals())[::30]:
    with pytest.raises(TinyError) as caught: assemble(text)
    assert caught.value.message == reason

def samples(count: int, seed: int) -> list[MInst]:
  rng = random.Random(seed)
  rows = [row for row in TABLE if row.feature not in LEFT_OUT and "label" not in row.isa.text
          and "unseen" not in row.isa.words]
  return [random_instruction(row, rng) for row in rng.choices(rows, k=count)]

def test_random_instructions_against_gnu_as(tmp_path: Path) -> None:
  if shutil.which(GNU) is None: pytest.skip(f"{GNU} is not installed")
  # GNU as limits the immediate of one-bit fields of PSTATE to 0 and 1; the manual and LLVM take four bits
  insts = [inst for inst in samples(4000, 5) if not re.match(r"msr (PAN|UAO|DIT|SSBS|TCO|ALLINT), ", show(inst))]
  source, target, image = (tmp_path / name for name in ("a.s", "a.o", "a.bin"))
  source.write_text("".join(show(i) + "\n" for i in insts))
  done = subprocess.run([GNU, GNU_ARCH, "-o", str(target), str(source)], capture_output=True, text=True, check=False)
  errors = [line for line in done.stderr.splitlines() if "Error" in line]
  assert not errors, [(e, show(insts[int(re.search(r":(\d+):", e)[1]) - 1])) for e in errors[:5]]  # type: ignore[index]
  subprocess.run(["aarch64-linux-gnu-objcopy", "-O", "binary", "-j", ".text", str(target), str(image)], check=True)
  code = image.read_bytes()
  wrong = [(show(i), encode(i).hex(" "), code[4 * k:4 * k + 4].hex(" ")) for k, i in enumerate(insts)
           if encode(i) != code[4 * k:4 * k + 4]]
  assert len(code) == 4 * len(insts) and not wrong, f"{len(wrong)} differ: {wrong[:3]}"

def test_random_instructions_against_llvm() -> None:
  if not LLVM: pytest.skip("llvm-mc is not installed")
  version = int(re.search(r"version (\d+)", subprocess.run([LLVM, "--version"], capture_output=True, text=True,
                                                            # type: ignore[index]
                                                           check=True).stdout)[1])
  if version < 17: pytest.skip(f"llvm-mc {version} lacks features of the table; 17 or later is needed")
  # LLVM refuses movprfx unless its user follows, and ldp of zr twice, which GNU as takes (with a warning)
  insts = [inst for inst in samples(4000, 6) if not re.match(r"movprfx|ldp(sw)? [wx]zr, [wx]zr", show(inst))]
  done = subprocess.run([LLVM, "--triple=aarch64", "-mattr=+all", "--show-encoding"],
                        input="".join(show(i) + "\n" for i in insts), capture_output=True, text=True, check=False)
  assert "error" not in done.stderr, done.stderr[:2000]
  codes = [bytes.fromhex(m.replace("0x", "").replace(",", "")) for m in re.findall(r"encoding: \[(.*)\]", done.stdout)]
  wrong = [(show(i), encode(i).hex(" "), code.hex(" ")) for i, code in zip(insts, codes) if encode(i) != code]
  assert len(codes) == len(insts) and not wrong, f"{len(wrong)} differ: {wrong[:3]}"
