"""Kernels as code of AArch64, executed by QEMU and compared with the interpreter: memory, loops, gates, variables."""
from __future__ import annotations
from collections.abc import Callable
from typing import Any

import pytest
from arm64.machine import needs_qemu, run
from cpu.kernels import CASES, Case, elementwise, lowered, narrow_product, product, sum_of_rows

from test.codegen.random_kernels import Generator
from tinyhw.codegen.optimize import optimize
from tinyhw.codegen.passes import lower
from tinyhw.dtype import DType, dtypes
from tinyhw.isa.arm64.capabilities import capabilities
from tinyhw.isa.arm64.select.rules import LEVELS
from tinyhw.isa.arm64.target import target
from tinyhw.uop.ops import UOp

ARCH = "arm64:neon"
KNOWN = capabilities(ARCH)

def check(kernel: UOp, optimized: bool, variables: dict[str, int] | None = None, arch: str = ARCH) -> None:
  """Compile a kernel, execute it and compare."""
  case = lowered(kernel, capabilities(arch), optimized, variables)
  run(case.program, arch, case.memory, case.variables, "cortex-a72" if arch == ARCH else "max")

@pytest.mark.slow
@needs_qemu
@pytest.mark.parametrize("seed", range(60))
def test_random_kernels(seed: int) -> None:
  generator = Generator(seed)
  check(generator.kernel(), False, generator.variables, list(LEVELS)[seed % len(LEVELS)])

@needs_qemu
@pytest.mark.parametrize("optimized", (False, True))
@pytest.mark.parametrize("make", (elementwise, sum_of_rows, product))
def test_kernels(make: Callable[[], UOp], optimized: bool) -> None: check(make(), optimized)

@needs_qemu
@pytest.mark.parametrize("arch", LEVELS)
@pytest.mark.parametrize("dtype", (dtypes.int8, dtypes.uint8, dtypes.float16), ids=lambda d: d.name)
def test_products_of_narrow_numbers(dtype: DType, arch: str) -> None: check(narrow_product(dtype), True, arch=arch)

@needs_qemu
@pytest.mark.parametrize("make", CASES)
def test_loops_gates_and_addresses(make: Callable[[], Case]) -> None:
  case = make()
  run(case.program, ARCH, case.memory, case.variables)

def test_the_inner_loop_of_a_product_is_products_by_element() -> None:
  """No broadcast stands in it: one load feeds several rows."""
  program = lower(optimize(product(64, 64, 64), KNOWN), KNOWN, "mm")
  function: Any = target(ARCH).select(program, target(ARCH))   # type: ignore[misc]  # it has one
  deepest = max(function.blocks, key=lambda block: block.depth)
  names = [inst.row.name for inst in deepest.insts]
  assert names.count("fmla") >= 8 and "dup" not in names
