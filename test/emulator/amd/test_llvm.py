"""Code that LLVM 22 compiles from C runs under strict execution, and gives the results of the same C on the host. So
there are no false alarms, and no wrong semantics.

The code and the checksums of results are in test/golden/amd_llvm.txt, which test/golden/make_amd_llvm.py writes.
"""
from __future__ import annotations
import base64
import struct
import zlib
from pathlib import Path

import pytest
from amd.kernels import ARGUMENTS, CODE, Box, Kernel
from amd.llvm import WORDS, checksums, inputs

from tinyhw.emulator.amd.workgroup import Workgroup
from tinyhw.emulator.memory.memory import FlatMemory

GOLDEN = [line.split()
          for line in (Path(__file__).resolve().parents[2] / "golden/amd_llvm.txt").read_text(
  encoding="ascii").splitlines()]
CODES = {line[1]: zlib.decompress(base64.b64decode(line[2])) for line in GOLDEN if line[0] == "code"}
RESULTS = {line[1]: line[2:] for line in GOLDEN if line[0] == "result"}
KERNELS = {(line[1], line[2]): {key: int(value) for key, _, value in (word.partition("=") for word in line[3:])}
           for line in GOLDEN if line[0] == "kernel"}
SCRATCH = 0x40000000

def execute(arch: str, name: str, a: list[int], b: list[int], seed: int = 0) -> list[int]:
  """Return the result buffer after one workgroup of 128 work-items."""
  numbers, kernel, box = KERNELS[arch, name], Kernel(arch), Box()
  for content in (a, b): box.buffer(struct.pack(f"<{WORDS}I", *content))
  out = box.buffer(4 * WORDS)
  scratch = numbers["scratch"] * kernel.lanes
  box.memory.add(SCRATCH, bytearray(4 * scratch + 16))
  code = FlatMemory()
  code.add(CODE, bytearray(CODES[arch]))
  registers = box.registers(kernel, (128,), vgprs=-(-max(numbers["vgprs"], numbers.get("accumulator", 0)) // 8) * 8,
                            lds_bytes=numbers["lds"],
                            accumulator=numbers.get("accumulator"),
                            user_data=(ARGUMENTS, 0, *[0xdead] * 13)[:numbers["user"]],
                            scratch_base=SCRATCH, scratch_wave_bytes=scratch, scratch_enabled=bool(scratch))
  registers = type(registers)(**{**vars(registers), "code": CODE + numbers["offset"]})
  Workgroup(arch, code.load, registers, (0, 0, 0), box.memory, numbers["lds"], seed).run()
  return list(struct.unpack(f"<{WORDS}I", out))

@pytest.mark.parametrize("arch,name", [key for key in KERNELS if key[1] in RESULTS], ids=lambda x: str(x))
def test_kernels_agree_with_the_host(arch: str, name: str) -> None:
  assert checksums(name, execute(arch, name, *inputs(name))) == RESULTS[name]

@pytest.mark.slow
@pytest.mark.parametrize("arch", CODES)
def test_waves_that_work_together(arch: str) -> None:
  a, b = inputs("together")
  for seed in range(2):
    assert set(execute(arch, "x_reduce", a, b, seed)[:128]) == {sum(a[:128]) & 0xffffffff}
    assert execute(arch, "x_atomic", a, b, seed)[:2] == [sum(a[:128]) & 0xffffffff, max(a[:128])]
    assert execute(arch, "x_transpose", a, b, seed)[:256] == [a[(k & 15) * 16 + (k >> 4)] for k in range(256)]
