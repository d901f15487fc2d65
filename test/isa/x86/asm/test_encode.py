"""Bytes of instructions against golden files and against llvm-mc; layout of functions."""
from __future__ import annotations
import random
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tinyhw.errors import EncodeError, TinyError
from tinyhw.isa.x86.asm.decode import decode_all
from tinyhw.isa.x86.asm.encode import encode, encode_function
from tinyhw.isa.x86.asm.syntax import assemble, disassemble, parse_function, show
from tinyhw.isa.x86.table import regs
from tinyhw.isa.x86.table.table import TABLE, assemble as build
from tinyhw.machine.ir.inst import Function, MInst
from x86.random import random_instruction

GOLDEN = Path(__file__).resolve().parents[3] / "golden" / "x86_64.txt"
LLVM_FEATURES = ("amx-tile amx-bf16 amx-int8 "
                 "avx512f avx512bw avx512dq avx512vl avx512cd avx512vnni avx512bf16 avx512vpopcntdq bmi bmi2 fma f16c "
                 "lzcnt popcnt prfchw".split())

def golden(mark: str) -> Iterator[tuple[str, str]]:
  for line in GOLDEN.read_text().splitlines():
    if line.startswith("#"): continue
    at = line.find(f" {mark} ")
    if at >= 0: yield line[:at].strip(), line[at + 3:]

@pytest.mark.slow
def test_bytes_are_those_of_the_reference_assembler() -> None:
  wrong = [(text, assemble(text).hex(" "), code) for text, code in golden(";") if assemble(text).hex(" ") != code]
  assert not wrong, f"{len(wrong)} differ: {wrong[:3]}"

@pytest.mark.slow
def test_the_reference_bytes_print_as_their_text() -> None:
  wrong = [(text, disassemble(bytes.fromhex(code)), code) for text, code in golden(";")
           if disassemble(bytes.fromhex(code)) != text]
  assert not wrong, f"{len(wrong)} differ: {wrong[:3]}"

@pytest.mark.parametrize("text,reason", list(golden("!")))
def test_refusals(text: str, reason: str) -> None:
  with pytest.raises(TinyError) as caught: assemble(text)
  assert caught.value.message == reason

def test_random_instructions_against_llvm() -> None:
  if shutil.which("llvm-mc") is None: pytest.skip("llvm-mc is not installed")
  rng = random.Random(5)
  rows = [row for row in TABLE if row.isa.block < 0 and row.name not in ("jmp", "call")]
  insts = [random_instruction(row, rng) for row in rng.sample(rows, 2000)]
  command = ["llvm-mc", "--triple=x86_64", "-mattr=" + ",".join("+" + f for f in LLVM_FEATURES), "--show-encoding",
             "--output-asm-variant=1",
             "--x86-asm-syntax=intel"]
  done = subprocess.run(command, input="".join(show(i) + "\n" for i in insts), capture_output=True, text=True)
  assert "error" not in done.stderr, done.stderr
  codes = [bytes.fromhex(m.replace("0x", "").replace(",", "")) for m in re.findall(r"encoding: \[(.*)\]", done.stdout)]
  wrong = [(show(i), encode(i).hex(" "), code.hex(" ")) for i, code in zip(insts, codes) if encode(i) != code]
  assert len(codes) == len(insts) and not wrong, f"{len(wrong)} differ: {wrong[:3]}"

def test_the_smallest_form_of_an_immediate() -> None:
  rax = regs.reg(regs.R64, 0)
  assert [len(encode(build("add_r64_i32", rax, n))) for n in (127, 128, -128, -129)] == [4, 6, 4, 6]
  assert encode(build("add_r32_i32", regs.reg(regs.R32, 0), 0xffffffff)) == bytes.fromhex("83c0ff")

def jumps(count: int) -> Function:
  """A loop with `count` three-byte instructions in it, and a jump out of it."""
  return parse_function("\n".join((".again:", "jne .out", *["add rax, rcx"] * count, "jmp .again", ".out:", "ret")))

@pytest.mark.parametrize("count,size", [(41, 2 + 41 * 3 + 2 + 1), (42, 6 + 42 * 3 + 5 + 1)])
def test_jumps_are_short_where_they_reach(count: int, size: int) -> None:
  code, places = encode_function(jumps(count))
  assert len(code) == size
  decoded = list(decode_all(code))
  assert [offset for offset, _ in decoded] == [offset for offset, _ in places]
  assert decoded[0][1].operands[0] == places[-1][0]
  assert decoded[-2][0] + decoded[-2][1].operands[0] == 0

def test_a_jump_to_the_next_block_is_left_out() -> None:
  function = parse_function("jmp .next\n.next:\nret")
  assert encode_function(function)[0] == b"\xc3"

def test_constants_stand_behind_the_code() -> None:
  function = Function("constants")
  block = function.new_block()
  one, lanes = b"\0\0\x80\x3f", bytes(range(32))
  ymm = regs.reg(regs.YMM, 1)
  block.insts = [build("vbroadcastss_y_m", ymm, (regs.RIP, None, 1, one)),
                 build("vaddps_y_y_m", ymm, ymm, (regs.RIP, None, 1, lanes)),
                 build("vshufps_y_y_m_i8", ymm, ymm, (regs.RIP, None, 1, lanes), 3),
                 build("cmp_m32_i32", (regs.RIP, None, 1, one), 5), build("ret")]
  code, places = encode_function(function)
  for (offset, inst), (end, _) in zip(places, places[1:]):
    decoded = next(decode_all(code[offset:end]))[1]
    position, constant = inst.row.isa.memory + 3, inst.operands[inst.row.isa.memory + 3]
    target = end + decoded.operands[position]
    assert code[target:target + len(constant)] == constant

def test_a_block_outside_of_the_function() -> None:
  function = Function("broken")
  function.new_block().insts.append(MInst(TABLE["jne_rel"], [Function("other").new_block(name="far")]))
  with pytest.raises(EncodeError, match="jne: block .far0 is not in the function"): encode_function(function)
