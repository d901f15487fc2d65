"""Kernels for AArch64 under QEMU's user mode: a program of a few instructions calls the kernel, checks that it kept
what the calling convention demands, and writes the buffers to its output. No other program or library for AArch64 is
needed."""
from __future__ import annotations
import os
import shutil
import struct
import subprocess
import tempfile
from collections.abc import Mapping, Sequence

import pytest

from tinyhw.arithmetic import elements
from tinyhw.dtype import DType
from tinyhw.isa.arm64.asm.syntax import assemble_function
from tinyhw.isa.arm64.target import compile
from tinyhw.uop.evaluate.evaluate import evaluate
from tinyhw.uop.ops import UOp
from tinyhw.uop.program import Program

QEMU = next((name for name in ("qemu-aarch64-static", "qemu-aarch64") if shutil.which(name)), "")
needs_qemu = pytest.mark.skipif(not QEMU, reason="QEMU for AArch64 is not installed (Debian: qemu-user-static)")
CODE, DATA, SCRATCH = 0x400000, 0x1000_0000, 0x2000_0000
PATTERN = 0x5a5a_0000_0000_00a5   # in each register that a kernel must preserve, with its number in the middle
SAVED, SAVED_VECTOR = range(19, 29), range(8, 16)
EXIT, WRITE = 93, 64

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

def program_file(kernel: bytes, grid: tuple[int, int], data: bytes, scratch: int) -> bytes:
  """An ELF file with three segments: code, data, scratch memory."""
  header = 64 + 3 * 56
  start = -(-header // 64) * 64
  size = len(assemble_function(caller(0, grid, len(data))))
  place = start + -(-size // 64) * 64
  text = assemble_function(caller(CODE + place, grid, len(data)))
  code = (b"\0" * (start - header) + text).ljust(place - header, b"\0") + kernel
  at = -(-(header + len(code)) // 4096) * 4096
  def segment(flags: int, offset: int, address: int, inside: int, memory: int) -> bytes:
    return struct.pack("<IIQQQQQQ", 1, flags, offset, address, address, inside, memory, 4096)
  elf = struct.pack("<16sHHIQQQIHHHHHH", b"\x7fELF\2\1\1" + bytes(9), 2, 183, 1, CODE + start, 64, 0, 0, 64, 56, 3, 0,
                    0, 0)
  elf += segment(5, 0, CODE, header + len(code), header + len(code)) + segment(6, at, DATA, len(data), len(data))
  elf += segment(6, 0, SCRATCH, 0, max(scratch, 4096))
  return (elf + code).ljust(at, b"\0") + data

def execute(kernel: bytes, slots: Sequence[int | bytes], grid: tuple[int, int], scratch: int = 0,
            cpu: str = "max") -> list[bytes]:
  """Run a kernel on work items grid[0] up to grid[1]. slots: bytes of buffers and values of variables. Returns the
  buffers after it."""
  contents, offsets, arguments = b"", [], b""
  base = -(-8 * len(slots) // 64) * 64
  for slot in slots:
    if isinstance(slot, int):
      arguments += struct.pack("<q", slot)
      continue
    offsets.append((base + len(contents), len(slot)))
    arguments += struct.pack("<q", DATA + base + len(contents))
    contents += slot + bytes(-len(slot) % 64 + 64)
  data = arguments.ljust(base, b"\0") + contents
  with tempfile.NamedTemporaryFile(suffix=".elf", delete=False) as file: file.write(program_file(kernel, grid, data,
                                                                                                 scratch))
  try:
    os.chmod(file.name, 0o700)
    done = subprocess.run([QEMU, "-cpu", cpu, file.name], capture_output=True, check=False)
  finally: os.unlink(file.name)
  assert done.returncode == 0, f"the kernel did not keep register {done.returncode}, or died: {done.stderr.decode()}"
  return [done.stdout[offset:offset + size] for offset, size in offsets]

def same_bytes(dtype: DType, got: bytes, wanted: bytes, name: str) -> None:
  """Equal, NaNs aside."""
  if got == wanted: return
  a, b = elements(got, dtype.scalar()), elements(wanted, dtype.scalar())
  different = [(k, a[k], b[k]) for k in range(len(a)) if a[k] != b[k] and not (a[k] != a[k] and b[k] != b[k])]
  assert not different, f"{name}: {dtype} differs: (position, got, wanted) {different[:4]}"

def run(program: Program, arch: str, memory: Sequence[bytes], variables: Mapping[str, int] | None = None,
        cpu: str = "cortex-a72") -> None:
  """Execute a program and compare what it writes with the program's evaluation. memory: of each parameter."""
  values = variables or {}
  wanted = [bytearray(m) for m in memory]
  evaluate(program, {param.arg[0]: memoryview(m) for param, m in zip(program.params, wanted)}, dict(values))
  code = compile(program, arch)
  grid = program.grid if isinstance(program.grid, int) else grid_of(program.grid, values)
  slots: list[int | bytes] = [*map(bytes, memory), *(values[v.arg[0]] for v in program.variables)]
  found = execute(code.text, slots, (0, grid), code.local_bytes, cpu)
  for param, got, want in zip(program.params, found, wanted):
    same_bytes(param.dtype, got, bytes(want), program.name)

def grid_of(grid: UOp, values: Mapping[str, int]) -> int:
  return int(grid.substitute({v: v.const_like(values[v.arg[0]]) for v in grid.variables()}).simplify().arg)
