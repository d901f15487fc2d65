"""Every instruction that the processor in Python knows, on the processor that runs the tests
(test/support/x86/silicon.py).

So kernels that are executed in Python, and the bytes of the table, have the hardware's semantics. SILICON_CASES: cases
of each row, 2 by default. Then random kernels, at each level that this processor has.
"""
from __future__ import annotations
import os
import random
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from test.codegen.kernels import data_for, wild
from test.codegen.random_kernels import Generator
from x86 import kernels as x86_kernels
from x86 import lanes as x86_lanes
from x86 import silicon as x86_silicon

from tinyhw import device
from tinyhw.arithmetic import to_bytes
from tinyhw.codegen.passes import lower
from tinyhw.device import Launch
from tinyhw.drivers import cpu
from tinyhw.drivers.cpu import processor
from tinyhw.drivers.cpu.loop import MachineLoop
from tinyhw.drivers.cpu.x86 import LEVELS
from tinyhw.dtype import DType
from tinyhw.engine.run.compile import value_of
from tinyhw.errors import DeviceError
from tinyhw.isa.x86.capabilities import capabilities
from tinyhw.isa.x86.table.table import TABLE
from tinyhw.isa.x86.target import compile
from tinyhw.uop.evaluate.evaluate import evaluate
from tinyhw.uop.program import Program

CASES = int(os.environ.get("SILICON_CASES", "2"))
PARTS = 4

def features() -> frozenset[str]:
  if not sys.platform.startswith("linux"): pytest.skip("the page that faults is made by Linux's mprotect")
  try: return processor(device.runtime).features
  except DeviceError as error: pytest.skip(error.message)

@pytest.fixture(params=["avx512", "avx2"])
def silicon(request: pytest.FixtureRequest) -> Iterator[tuple[x86_silicon.Silicon, frozenset[str]]]:
  """This processor, at each level that it has, and its features there."""
  found = features()
  if request.param == "avx512" and "avx512bw" not in found: pytest.skip("this processor has no AVX-512")
  if "avx2" not in found: pytest.skip("this processor has no AVX2")
  if request.param == "avx2": found = frozenset(f for f in found if not f.startswith("avx512"))
  opened = x86_silicon.Silicon(found)
  yield opened, found
  opened.close()

@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_instructions(silicon: tuple[x86_silicon.Silicon, frozenset[str]], part: int) -> None:
  """The same registers, masks and memory give the same results, and nothing else changes."""
  opened, found = silicon
  rows = [row for row in TABLE if x86_silicon.may_run_alone(row) and x86_silicon.has(found, row)][part::PARTS]
  known, wrong = 0, []
  for row in rows:
    done, differ = x86_silicon.check(opened, row, CASES, random.Random(row.isa.key))
    known, wrong = known + (done > 0), wrong + differ
  assert not wrong, f"{len(wrong)} differ: " + "\n".join(wrong[:4])
  assert known > (900 if opened.wide else 220), "the machine in Python knows fewer instructions than it did"

def test_a_wrong_meaning_is_found(silicon: tuple[x86_silicon.Silicon, frozenset[str]],
                                  monkeypatch: pytest.MonkeyPatch) -> None:
  opened, _ = silicon
  for key, rule in (("vmaxps_y_y_y", ("ff", "f", lambda a, b: b if b > a else a)),
                    ("vpaddd_x_x_x", ("ii", "i", lambda a, b: a + b | 1))):
    assert x86_silicon.check(opened, TABLE[key], 40, random.Random(1)) == (40, [])
    with monkeypatch.context() as patch:
      patch.setattr(x86_lanes, "lane_rule", lambda name, rule=rule: rule)
      done, wrong = x86_silicon.check(opened, TABLE[key], 40, random.Random(1))
      assert done == 40 and wrong

# ***** whole kernels *****

KERNELS = int(os.environ.get("SILICON_KERNELS", "25"))

def packed(values: list[Any], dtype: DType) -> bytes: return b"".join(to_bytes(v, dtype) for v in values)

def execute(device: cpu.CPUDevice, program: Program, memory: dict[int, bytes],
            variables: dict[str, int]) -> dict[int, bytes]:
  """The contents of the buffers after a kernel."""
  loaded = device.load(compile(program, device.arch))
  buffers = [device.allocator.alloc(len(memory[p.arg[0]])) for p in program.params]
  for p, b in zip(program.params, buffers, strict=True): b.view[:len(memory[p.arg[0]])] = memory[p.arg[0]]
  device.submit([Launch(loaded, buffers, [variables[v.arg[0]] for v in program.variables],
                        value_of(program.grid, variables))])
  after = {p.arg[0]: bytes(b.view[:len(memory[p.arg[0]])]) for p, b in zip(program.params, buffers, strict=True)}
  for b in buffers: device.allocator.free(b)
  return after

@pytest.mark.slow
@pytest.mark.parametrize("arch", LEVELS)
def test_random_kernels(arch: str) -> None:
  """Generated kernels, with small numbers and with the corners of each type, give the results of their evaluation.

  SILICON_KERNELS: their number.
  """
  features()
  found = processor(device.runtime)
  if found.missing(arch): pytest.skip(f"this processor lacks {', '.join(found.missing(arch))}")
  opened = cpu.CPUDevice("CPU", arch, found, MachineLoop(device.runtime), 1)
  for seed in range(KERNELS):
    generator = Generator(70_000 + seed)
    kernel = generator.kernel()
    program = lower(kernel, capabilities(arch), f"random_{seed}")
    for make in (None, wild):
      memory = {slot: packed(values, next(p.dtype for p in program.params if p.arg[0] == slot))
                for slot, values in data_for(kernel, seed, make).items()
                if any(p.arg[0] == slot for p in program.params)}
      wanted = {slot: bytearray(data) for slot, data in memory.items()}
      evaluate(program, wanted, generator.variables, 0, value_of(program.grid, generator.variables))
      got = execute(opened, program, memory, generator.variables)
      for p in program.params:
        x86_kernels.same_bytes(p.dtype, got[p.arg[0]], bytes(wanted[p.arg[0]]), f"seed {seed}, {arch}")
  opened.close()
