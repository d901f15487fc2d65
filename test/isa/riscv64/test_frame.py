"""Frames keep the registers of the convention, and the stack pointer a multiple of 16."""
from __future__ import annotations
import random

import pytest
from riscv64.machine import execute, needs_qemu

from tinyhw.isa.riscv64.asm.syntax import parse, show
from tinyhw.isa.riscv64.frame import LARGEST, add_frame, frame_code, steps
from tinyhw.isa.riscv64.target import target
from tinyhw.machine.assembler.encode import encode_function
from tinyhw.machine.ir.inst import Function

def framed(lines: list[str], stack_bytes: int) -> Function:
  function = Function("f")
  function.stack_bytes = stack_bytes
  function.new_block().insts = [parse(line) for line in (*lines, "ret")]
  return add_frame(function, target("riscv64:g"))

def test_nothing_is_saved_for_nothing() -> None:
  lines = ["add a0, a1, a2", "fmv.d fa0, ft1", "ret"]
  assert [show(i) for i in framed(lines[:-1], 0).blocks[0].insts] == lines

def test_saved_registers_and_slots() -> None:
  found = [show(i) for i in framed(["li s1, 1", "fmv.d fs2, fa0", "li s11, 2"], 24).blocks[0].insts]
  assert found[:5] == ["addi sp, sp, -32", "sd s1, 0(sp)", "sd s11, 8(sp)", "fsd fs2, 16(sp)", "addi sp, sp, -32"]
  assert found[-6:] == ["addi sp, sp, 32", "ld s1, 0(sp)", "ld s11, 8(sp)", "fld fs2, 16(sp)", "addi sp, sp, 32", "ret"]

@pytest.mark.parametrize("size", (0, 16, LARGEST, LARGEST + 16, 3 * LARGEST + 512))
def test_large_frames(size: int) -> None:
  assert sum(steps(size)) == size and all(0 < n <= LARGEST and n % 16 == 0 for n in steps(size))
  for line in (*frame_code(size, [("d", "s1")])[0], *frame_code(size, [("fd", "fs1")])[1]): parse(line)

@needs_qemu
@pytest.mark.parametrize("seed", range(6))
def test_a_function_that_changes_registers_keeps_them_for_its_caller(seed: int) -> None:
  """The program around the kernel checks each register that must be kept."""
  rng = random.Random(seed)
  lines = [f"li s{k}, {k}" for k in range(12) if rng.random() < 0.6]
  lines += [f"fmv.d.x fs{k}, a0" for k in range(12) if rng.random() < 0.6]
  function = framed([*lines, "sd ra, 0(sp)"], rng.choice((16, 512, 8192)))
  execute(encode_function(function)[0], [], (0, 1))
