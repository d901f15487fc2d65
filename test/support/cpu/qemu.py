"""Kernels for another CPU under QEMU's user mode: a program of a few instructions calls the kernel, checks that it kept
what the calling convention demands, and writes the buffers to its output. No other program or library for that CPU is
needed."""
from __future__ import annotations
import os
import shutil
import struct
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence

import pytest

from tinyhw.arithmetic import elements
from tinyhw.dtype import DType
from tinyhw.machine.ir.code import Code
from tinyhw.uop.evaluate.evaluate import evaluate
from tinyhw.uop.ops import UOp
from tinyhw.uop.program import Program

CODE, DATA, SCRATCH = 0x400000, 0x1000_0000, 0x2000_0000
PATTERN = 0x5a5a_0000_0000_00a5   # in each register that a kernel must preserve, with its number in the middle
EXIT, WRITE = 93, 64              # Linux system calls of new architectures

class QemuMachine:
  """A CPU that QEMU emulates.

  - name: of QEMU's program, qemu-<name>; elf: its number in an ELF file.
  - assemble: the text of a function to bytes; compile: a program for an arch string.
  - caller: the text of the program that calls the kernel at an address on a range of work items, and writes so many
    bytes of data. Exit status: 0, or the number of what the kernel did not preserve.
  """

  def __init__(self, name: str, elf: int, assemble: Callable[[str], bytes], compile: Callable[[Program, str], Code],
               caller: Callable[[int, tuple[int, int], int], str]):
    self.elf, self.assemble, self.compile, self.caller = elf, assemble, compile, caller
    self.qemu = next((found for found in (f"qemu-{name}-static", f"qemu-{name}") if shutil.which(found)), "")
    self.needed = pytest.mark.skipif(not self.qemu, reason=f"QEMU for {name} is not installed (Debian: qemu-user)")

  def program_file(self, kernel: bytes, grid: tuple[int, int], data: bytes, scratch: int) -> bytes:
    """An ELF file with three segments: code, data, scratch memory."""
    header = 64 + 3 * 56
    start = -(-header // 64) * 64
    size = len(self.assemble(self.caller(0, grid, len(data))))
    place = start + -(-size // 64) * 64
    text = self.assemble(self.caller(CODE + place, grid, len(data)))
    code = (b"\0" * (start - header) + text).ljust(place - header, b"\0") + kernel
    at = -(-(header + len(code)) // 4096) * 4096
    def segment(flags: int, offset: int, address: int, inside: int, memory: int) -> bytes:
      return struct.pack("<IIQQQQQQ", 1, flags, offset, address, address, inside, memory, 4096)
    elf = struct.pack("<16sHHIQQQIHHHHHH", b"\x7fELF\2\1\1" + bytes(9), 2, self.elf, 1, CODE + start, 64, 0, 0, 64, 56,
                      3, 0, 0, 0)
    elf += segment(5, 0, CODE, header + len(code), header + len(code)) + segment(6, at, DATA, len(data), len(data))
    elf += segment(6, 0, SCRATCH, 0, max(scratch, 4096))
    return (elf + code).ljust(at, b"\0") + data

  def execute(self, kernel: bytes, slots: Sequence[int | bytes], grid: tuple[int, int], scratch: int = 0,
              cpu: str = "") -> list[bytes]:
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
    with tempfile.NamedTemporaryFile(suffix=".elf", delete=False) as file: file.write(
      self.program_file(kernel, grid, data, scratch))
    try:
      os.chmod(file.name, 0o700)
      done = subprocess.run([self.qemu, *(("-cpu", cpu) if cpu else ()), file.name], capture_output=True, check=False)
    finally: os.unlink(file.name)
    assert done.returncode == 0, f"the kernel did not keep register {done.returncode}, or died: {done.stderr.decode()}"
    return [done.stdout[offset:offset + size] for offset, size in offsets]

  def run(self, program: Program, arch: str, memory: Sequence[bytes], variables: Mapping[str, int] | None = None,
          cpu: str = "") -> None:
    """Execute a program and compare what it writes with the program's evaluation. memory: of each parameter."""
    values = variables or {}
    wanted = [bytearray(m) for m in memory]
    evaluate(program, {param.arg[0]: memoryview(m) for param, m in zip(program.params, wanted)}, dict(values))
    code = self.compile(program, arch)
    grid = program.grid if isinstance(program.grid, int) else grid_of(program.grid, values)
    slots: list[int | bytes] = [*map(bytes, memory), *(values[v.arg[0]] for v in program.variables)]
    found = self.execute(code.text, slots, (0, grid), code.local_bytes, cpu)
    for param, got, want in zip(program.params, found, wanted):
      same_bytes(param.dtype, got, bytes(want), program.name)

def same_bytes(dtype: DType, got: bytes, wanted: bytes, name: str) -> None:
  """Equal, NaNs aside."""
  if got == wanted: return
  a, b = elements(got, dtype.scalar()), elements(wanted, dtype.scalar())
  different = [(k, a[k], b[k]) for k in range(len(a)) if a[k] != b[k] and not (a[k] != a[k] and b[k] != b[k])]
  assert not different, f"{name}: {dtype} differs: (position, got, wanted) {different[:4]}"

def grid_of(grid: UOp, values: Mapping[str, int]) -> int:
  return int(grid.substitute({v: v.const_like(values[v.arg[0]]) for v in grid.variables()}).simplify().arg)
