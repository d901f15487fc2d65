"""Kernels for RISC-V under QEMU's user mode."""
from __future__ import annotations
import subprocess
from collections.abc import Mapping, Sequence

from cpu.qemu import DATA, EXIT, PATTERN, SCRATCH, WRITE, QemuMachine, same_bytes

from tinyhw.isa.riscv64.asm.syntax import assemble_function
from tinyhw.isa.riscv64.target import compile
from tinyhw.uop.program import Program

__all__ = ["CPUS", "cpu_of", "execute", "needs_qemu", "run", "same_bytes"]

SAVED = ("s1", *(f"s{k}" for k in range(2, 12)))      # s0 has the stack pointer
SAVED_FLOAT = tuple(f"fs{k}" for k in range(12))
# level -> the processor of QEMU that has just it, as far as QEMU can leave out extensions. "rva22" needs Zfhmin, whose
# property has another name before QEMU 8
CPUS = {"riscv64:g": "rv64,zba=false,zbb=false,zbs=false,c=false",
        "riscv64:rva22": "rv64,zba=true,zbb=true,{zfhmin}=true",
        **{f"riscv64:v{bits}": "rv64,zba=true,zbb=true,{zfhmin}=true,v=true,vext_spec=v1.0,vlen=" + str(bits)
           for bits in (128, 256)}}

def cpu_of(arch: str) -> str:
  """The option of QEMU for a level."""
  shown = subprocess.run([MACHINE.qemu, "--version"], capture_output=True, text=True, check=True).stdout
  return CPUS[arch].format(zfhmin="Zfhmin" if int(shown.split("version ")[1].split(".")[0]) < 8 else "zfhmin")

def number(register: str, value: int) -> str:
  """Lines that put 64 bits into a register, 11 bits at a time, which addi adds without a sign."""
  lines = [f"li {register}, {value >> 55 & 0x1ff}"]
  for shift in (44, 33, 22, 11, 0):
    lines += [f"slli {register}, {register}, 11", f"addi {register}, {register}, {value >> shift & 0x7ff}"]
  return "\n".join(lines)

def caller(kernel: int, grid: tuple[int, int], size: int) -> str:
  """The program. Exit status: 0, 255 for the stack pointer, or the position in the list of what must be preserved."""
  kept = {name: PATTERN | k << 24 for k, name in enumerate((*SAVED, *SAVED_FLOAT), 1)}
  lines = []
  for register, value in kept.items():
    lines += [number("t0", value), f"fmv.d.x {register}, t0" if register[0] == "f" else f"mv {register}, t0"]
  lines += ["mv s0, sp", number("a0", DATA), number("a1", grid[0]), number("a2", grid[1]), number("a3", SCRATCH),
            number("t0", kernel), "jalr t0", "li a0, 255", "bne s0, sp, .exit"]
  for k, (register, value) in enumerate(kept.items(), 1):
    lines += [number("t0", value), f"fmv.x.d t1, {register}" if register[0] == "f" else f"mv t1, {register}",
              f"li a0, {k}", "bne t0, t1, .exit"]
  lines += [number("s1", DATA), number("s2", size), ".again:", "mv a1, s1", "mv a2, s2", "li a0, 1", f"li a7, {WRITE}",
            "ecall", "add s1, s1, a0", "sub s2, s2, a0", "bnez s2, .again", "li a0, 0", ".exit:", f"li a7, {EXIT}",
            "ecall"]
  return "\n".join(lines)

MACHINE = QemuMachine("riscv64", 243, assemble_function, compile, caller)
needs_qemu = MACHINE.needed

def execute(kernel: bytes, slots: Sequence[int | bytes], grid: tuple[int, int], scratch: int = 0,
            cpu: str = "") -> list[bytes]: return MACHINE.execute(kernel, slots, grid, scratch, cpu)

def run(program: Program, arch: str, memory: Sequence[bytes], variables: Mapping[str, int] | None = None) -> None:
  MACHINE.run(program, arch, memory, variables, cpu_of(arch))
