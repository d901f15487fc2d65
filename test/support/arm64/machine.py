"""Kernels for AArch64 under QEMU's user mode."""
from __future__ import annotations
from collections.abc import Mapping, Sequence

from cpu.qemu import DATA, EXIT, PATTERN, SCRATCH, WRITE, QemuMachine, same_bytes

from tinyhw.isa.arm64.asm.syntax import assemble_function
from tinyhw.isa.arm64.target import compile
from tinyhw.uop.program import Program

__all__ = ["execute", "needs_qemu", "run", "same_bytes"]

SAVED, SAVED_VECTOR = range(19, 29), range(8, 16)

def number(register: str, value: int) -> str:
  """Lines that put 64 bits into a register."""
  pieces = [f"movz {register}, #{value & 0xffff}"]
  return "\n".join(pieces + [f"movk {register}, #{value >> k & 0xffff}, lsl #{k}" for k in (16, 32, 48)])

def caller(kernel: int, grid: tuple[int, int], size: int) -> str:
  """The program.

  Exit status: 0, or the number of a register that the kernel did not preserve (vector registers: + 32).
  """
  kept = {f"x{k}": PATTERN | k << 24 for k in SAVED} | {f"d{k}": PATTERN | k + 32 << 24 for k in SAVED_VECTOR}
  lines = []
  for register, value in kept.items():
    lines += [number("x9", value), f"{'fmov' if register[0] == 'd' else 'mov'} {register}, x9"]
  lines += ["mov x29, sp", number("x0", DATA), number("x1", grid[0]), number("x2", grid[1]), number("x3", SCRATCH),
            number("x9", kernel), "blr x9", "mov x9, sp", "cmp x29, x9", "mov x0, #31", "b.ne .exit"]
  for register, value in kept.items():
    lines += [number("x9", value), f"fmov x10, {register}" if register[0] == "d" else f"mov x10, {register}",
              "cmp x9, x10", f"mov x0, #{int(register[1:]) + 32 * (register[0] == 'd')}", "b.ne .exit"]
  lines += [number("x1", DATA), number("x2", size), ".again:", "mov x0, #1", f"mov x8, #{WRITE}", "svc #0",
            "add x1, x1, x0", "subs x2, x2, x0", "b.ne .again", "mov x0, #0", ".exit:", f"mov x8, #{EXIT}", "svc #0"]
  return "\n".join(lines)

MACHINE = QemuMachine("aarch64", 183, assemble_function, compile, caller)
needs_qemu = MACHINE.needed

def execute(kernel: bytes, slots: Sequence[int | bytes], grid: tuple[int, int], scratch: int = 0,
            cpu: str = "max") -> list[bytes]: return MACHINE.execute(kernel, slots, grid, scratch, cpu)

def run(program: Program, arch: str, memory: Sequence[bytes], variables: Mapping[str, int] | None = None,
        cpu: str = "cortex-a72") -> None: MACHINE.run(program, arch, memory, variables, cpu)
