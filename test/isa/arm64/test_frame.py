"""Frames keep the registers of the convention, and the stack pointer a multiple of 16."""
from __future__ import annotations
import random

import pytest
from arm64.machine import execute, needs_qemu

from tinyhw.machine.assembler.encode import encode_function
from tinyhw.isa.arm64.asm.syntax import parse, show
from tinyhw.isa.arm64.frame import LARGEST, add_frame, frame_code, steps
from tinyhw.isa.arm64.target import target
from tinyhw.machine.ir.inst import Function

ARM = target("arm64:neon")

def framed(lines: list[str], stack_bytes: int) -> Function:
  function = Function("f")
  function.stack_bytes = stack_bytes
  function.new_block().insts = [parse(line) for line in (*lines, "ret")]
  return add_frame(function, ARM)

def test_nothing_is_saved_for_nothing() -> None:
  assert [show(i) for i in framed(["add x0, x1, x2", "fmov s0, #1.0"], 0).blocks[0].insts] == [
    "add x0, x1, x2", "fmov s0, #1.00000000", "ret"]

def test_pairs_and_single_registers() -> None:
  found = [show(i) for i in framed(["mov x19, x0", "mov x28, x0", "mov x21, x0", "fmov d9, #1.0"], 24).blocks[0].insts]
  assert found[:5] == ["sub sp, sp, #48", "stp x19, x21, [sp]", "str x28, [sp, #16]", "str d9, [sp, #32]",
                       "sub sp, sp, #32"]
  assert found[-6:] == ["add sp, sp, #32", "ldp x19, x21, [sp]", "ldr x28, [sp, #16]", "ldr d9, [sp, #32]",
                        "add sp, sp, #48", "ret"]

@pytest.mark.parametrize("size", (0, 16, LARGEST, LARGEST + 16, 3 * LARGEST + 512))
def test_large_frames(size: int) -> None:
  assert sum(steps(size)) == size and all(0 < n <= LARGEST and n % 16 == 0 for n in steps(size))
  enter, leave = frame_code(size, [["x19", "x20"]])
  for line in (*enter, *leave): parse(line)

@needs_qemu
@pytest.mark.parametrize("seed", range(8))
def test_a_function_that_changes_registers_keeps_them_for_its_caller(seed: int) -> None:
  """The program around the kernel checks each register that must be kept."""
  rng = random.Random(seed)
  lines = [f"mov x{k}, #{k}" for k in range(19, 29) if rng.random() < 0.6]
  lines += [f"movi v{k}.16b, #{k}" for k in range(8, 16) if rng.random() < 0.6]
  function = framed([*lines, "str x29, [sp]"], rng.choice((16, 512, 8192)))
  execute(encode_function(function)[0], [], (0, 1))
