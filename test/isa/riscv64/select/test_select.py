"""Kernels as code of RISC-V, executed by QEMU and compared with the interpreter: memory, loops, gates, variables."""
from __future__ import annotations
from collections.abc import Callable

import pytest
from cpu.kernels import CASES, Case, elementwise, lowered, narrow_product, product, sum_of_rows
from riscv64.machine import needs_qemu, run

from test.codegen.random_kernels import Generator
from tinyhw.dtype import DType, dtypes
from tinyhw.isa.riscv64.capabilities import capabilities
from tinyhw.isa.riscv64.select.rules import LEVELS
from tinyhw.isa.riscv64.target import target
from tinyhw.machine.ir.inst import Function
from tinyhw.uop.ops import UOp

def check(kernel: UOp, optimized: bool, arch: str, variables: dict[str, int] | None = None) -> None:
  """Compile a kernel, execute it and compare."""
  case = lowered(kernel, capabilities(arch), optimized, variables)
  run(case.program, arch, case.memory, case.variables)

@pytest.mark.slow
@needs_qemu
@pytest.mark.parametrize("seed", range(60))
def test_random_kernels(seed: int) -> None:
  generator = Generator(seed)
  check(generator.kernel(), False, list(LEVELS)[seed % len(LEVELS)], generator.variables)

@needs_qemu
@pytest.mark.parametrize("arch", LEVELS)
@pytest.mark.parametrize("optimized", (False, True))
@pytest.mark.parametrize("make", (elementwise, sum_of_rows, product))
def test_kernels(make: Callable[[], UOp], optimized: bool, arch: str) -> None: check(make(), optimized, arch)

@needs_qemu
@pytest.mark.parametrize("arch", LEVELS)
@pytest.mark.parametrize("dtype", (dtypes.int8, dtypes.uint8, dtypes.float16), ids=lambda d: d.name)
def test_products_of_narrow_numbers(dtype: DType, arch: str) -> None: check(narrow_product(dtype), True, arch)

@needs_qemu
@pytest.mark.parametrize("arch", LEVELS)
@pytest.mark.parametrize("make", CASES)
def test_loops_gates_and_addresses(make: Callable[[], Case], arch: str) -> None:
  case = make()
  run(case.program, arch, case.memory, case.variables)

def test_an_address_is_one_instruction_with_zba() -> None:
  def names(arch: str) -> list[str]:
    case = lowered(elementwise(), capabilities(arch), False)
    function: Function = target(arch).select(case.program, target(arch))   # type: ignore[misc]  # it has one
    return [inst.row.name for block in function.blocks for inst in block.insts if block.depth]
  assert names("riscv64:rva22").count("sh2add") == 3 and "slli" not in names("riscv64:rva22")
  assert names("riscv64:g").count("slli") == 3
