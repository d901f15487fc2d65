"""Code of a CPU with its listing, for ISAs whose instructions are words of 32 bits."""
from __future__ import annotations
from collections.abc import Callable, Sequence

import pytest
from generators.program_builder import Builder

from tinyhw.dtype import dtypes
from tinyhw.isa.arm64 import describe as arm64
from tinyhw.isa.riscv64 import describe as riscv64
from tinyhw.machine.ir.inst import MInst
from tinyhw.machine.listed import CpuLister
from tinyhw.machine.model.core_tables import CoreTable
from tinyhw.uop.enums import AxisType

def halved() -> Builder:
  b = Builder("halved")
  out, x = b.param(0, dtypes.float32, 64), b.param(1, dtypes.float32, 64)
  with b.loop(64, AxisType.GLOBAL) as g: b.store(out, g, b.add(b.load(x, g) * 0.3))
  return b

@pytest.mark.parametrize("lister, arch, core", [(arm64.LISTER, "arm64:neon", "Neoverse N1"),
                                                (riscv64.LISTER, "riscv64:g", "SiFive U74")])
def test_each_instruction_has_its_line_and_the_loop_its_bound(lister: CpuLister, arch: str, core: str) -> None:
  """Constants behind the code are no instructions."""
  program, name = halved().program(), {"arm64:neon": "n1", "riscv64:g": "u74"}[arch]
  function, text, made = lister.described(program, arch, name)
  insts = [inst for block in function.blocks for inst in block.insts]
  places = lister.assemble(program, arch)[2]
  assert len(places) == len(insts) and 4 * len(insts) <= len(text)
  dense = made.replace(" ", "")
  assert all(lister.show(inst) in made and text[offset:offset + 4].hex() in dense for offset, inst in places)
  assert lister.bounds(program, arch, name)[-1].startswith(f"bounds: {core}")
  code, listed = lister.compile_listed(program, arch, name)
  assert (code.text, listed) == (text, made)

def test_the_parts_are_asked_for_the_arch_string() -> None:
  """Vectors of one ISA differ in size by level."""
  asked: list[str] = []
  def touched(inst: MInst, arch: str) -> int:
    asked.append(arch)
    return 4
  def peak(table: CoreTable, arch: str) -> Callable[[Sequence[MInst]], float]:
    asked.append(arch)
    return lambda insts: 100.0
  real = riscv64.LISTER
  lister = CpuLister(real.assemble, real.target, real.table, peak, real.show, touched, real.operations)
  lines = lister.bounds(halved().program(), "riscv64:rva22", "u74")
  assert set(asked) == {"riscv64:rva22"} and "of 100" in "\n".join(lines)
