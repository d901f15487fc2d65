"""The AVX-512 level, executed by a processor in Python (test/support/x86/machine.py), against uop/evaluate/evaluate.py
and the PYTHON device.

The emitted code is also disassembled by llvm-mc, if present, and compared with our own text.
"""
from __future__ import annotations
from collections.abc import Iterator
import shutil
import subprocess

import numpy as np
import pytest
from generators import tensor_programs
from x86 import kernels as x86_kernels

from tinyhw import Device, dtypes
from tinyhw.isa.x86.asm.decode import decode
from tinyhw.isa.x86.asm.encode import encode
from tinyhw.isa.x86.asm.syntax import parse, show
from tinyhw.isa.x86.table import regs
from tinyhw.isa.x86.target import target

ARCH, DEVICE = "x86_64:avx512", "X86:1"
OF_THE_LEVEL = ("vpmullq vpmaxsq vpsraq vcvtqq2pd vcvttps2qq vpmovdb vblendmps vpblendmq korq kxorq kandq vcmpps "
                "vpcmpud vgatherqps vextractf64x4 "
                "vrndscaleps vpbroadcastd vptestmb vmovdqu8 vpsraw "
                "kunpckwd kunpckdq").split()

@pytest.fixture(scope="module")
def compared() -> Iterator[list[object]]:
  with x86_kernels.devices() as programs: yield programs

@pytest.mark.parametrize("name", x86_kernels.KERNELS)
def test_kernels(compared, name):
  before = len(compared)
  for got, wanted in zip(x86_kernels.results(name, DEVICE), x86_kernels.results(name, "PYTHON")):
    np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6)
  assert len(compared) > before

@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_random_programs(compared, part):
  for seed in range(part, 24, 4):
    program = tensor_programs.make(seed)
    tensor_programs.check(program, tensor_programs.run(program, DEVICE))

@pytest.mark.parametrize("lanes", [2, 4, 8, 16])
def test_masks(lanes):
  x86_kernels.run(x86_kernels.masks(lanes), ARCH, x86_kernels.memory_of_masks(lanes, np.int32))

@pytest.mark.parametrize("lanes", [32, 64])
def test_masks_of_bytes(lanes):
  x86_kernels.run(x86_kernels.masks(lanes, dtypes.int8), ARCH, x86_kernels.memory_of_masks(lanes, np.int8))

@pytest.mark.parametrize("lanes", [4, 8, 16])
def test_half_of_a_mask(lanes):
  x86_kernels.run(x86_kernels.halves(lanes), ARCH,
                  [bytes(lanes), np.random.default_rng(1).normal(size=2 * lanes).astype(np.float32).tobytes()])

@pytest.mark.parametrize("dtype", [dtypes.int32, dtypes.uint64, dtypes.float32, dtypes.float64], ids=str)
def test_scattered_stores(dtype):
  for lanes in (2, 4, 8, 16):
    if lanes * dtype.itemsize > 64: continue
    program = x86_kernels.scattered(lanes, dtype, wide=lanes == 8)
    x86_kernels.run(program, ARCH, x86_kernels.memory_of_scattered(lanes, dtype))

@pytest.mark.parametrize("dtype", [*dtypes.ints, dtypes.float32, dtypes.float64], ids=str)
def test_masked_memory(dtype):
  """Elements of every size, in vectors that fill a register and in shorter ones."""
  for lanes in (2, 4, 8, 16, 32, 64):
    if lanes * dtype.itemsize > 64 or lanes > 16: continue
    size = (lanes + lanes // 2) * dtype.itemsize
    x86_kernels.run(x86_kernels.masked_memory(lanes, dtype), ARCH, [b"\5" * size, bytes(k % 60 for k in range(size))])

def emitted() -> dict[bytes, str]:
  """Distinct instructions that were executed, by their bytes, in our disassembler's text."""
  machine = Device[DEVICE].machine  # type: ignore[attr-defined]
  out = {}
  for at, (_, end) in machine.steps.items():
    data, offset = machine.memory.find(at, end - at)
    inst, size = decode(bytes(data[offset:offset + end - at]))
    if inst.row.isa.block < 0: out[bytes(data[offset:offset + size])] = show(inst)
  return out

@pytest.mark.slow
def test_instructions_of_the_level_were_executed(compared):
  """The kernels above used all registers and all kinds of instructions that only AVX-512 has."""
  for name in x86_kernels.KERNELS: x86_kernels.results(name, DEVICE)
  shown = emitted().values()
  missing = set(OF_THE_LEVEL) - {text.split()[0] for text in shown}
  assert not missing
  for name in ("zmm0", "zmm15", "zmm16", "zmm20", "ymm", "xmm", "{k1}"):
    assert any(name in text for text in shown), name

@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("llvm-mc"), reason="llvm-mc is not installed")
def test_llvm_reads_the_same_instructions(compared):
  for name in ("matmul", "argmax", "where", "padding", "softmax", "arithmetic of int64", "gather"):
    x86_kernels.results(name, DEVICE)
  instructions = emitted()
  features = "+avx512f,+avx512bw,+avx512dq,+avx512vl,+avx512cd,+bmi2,+fma,+f16c"
  text = "\n".join(" ".join(f"0x{b:02x}" for b in code) for code in instructions)
  done = subprocess.run(["llvm-mc", "--disassemble", "--triple=x86_64", f"--mattr={features}",
                         "--output-asm-variant=1"], input=text, text=True,
                        capture_output=True, check=True, timeout=60)
  assert not done.stderr, done.stderr
  lines = [" ".join(line.partition("#")[0].split()) for line in done.stdout.splitlines() if line.strip()
           and ".text" not in line]
  assert len(lines) == len(instructions)
  assert len(lines) > 200
  # names of predicates, signs
  for ours, theirs in zip(instructions.values(), lines): assert ours == theirs or ours == show(parse(theirs))

def test_target():
  """64-byte vectors in 32 registers, and moves, spills and swaps of the upper ones that have an encoding."""
  t = target(ARCH)
  assert (t.capabilities.vector_bytes, t.capabilities.vector_registers, t.capabilities.wide_casts) == (64, 32, True)
  assert t.allocatable["vec"] == tuple(range(32))
  for cls, low, high in ((regs.XMM, 3, 20), (regs.YMM, 17, 31), (regs.ZMM, 0, 16), (regs.K, 1, 7)):
    a, b = regs.reg(cls, low), regs.reg(cls, high)
    for inst in (t.move(a, b), t.spill(b, 64), t.reload(b, 64), *t.swap(a, b)): assert encode(inst)
