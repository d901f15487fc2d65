"""Whole kernels for each generation: selection, allocation, waits, hazards, and bytes that decode again."""
import pytest

from test.codegen.kernels import axis
from test.isa.amd.machine import check
from tinyhw.codegen.optimize import optimize
from tinyhw.codegen.passes import lower
from tinyhw.dtype import dtypes
from tinyhw.isa.amd.asm.decode import decode
from tinyhw.isa.amd.asm.encode import encode
from tinyhw.isa.amd.macros.macros import expand_macros
from tinyhw.isa.amd.table import regs
from tinyhw.isa.amd.target import assemble, capabilities, compile, target
from tinyhw.machine.ir.inst import Block, Function
from tinyhw.machine.order.early import overwritten
from tinyhw.uop.ops import UOp
from tinyhw.uop.program import Program

ARCHS = ("gfx1100", "gfx1100:wave64", "gfx1200", "gfx942", "gfx950")

def elementwise(arch: str, n: int = 1000) -> Program:
  out, a, b = [UOp.param(k, dtypes.float32, n) for k in range(3)]
  r = axis(n, 0)
  kernel = UOp.sink(out.index(r).store(a.index(r).load() * b.index(r).load() + a.index(r).load(), r))
  return lower(optimize(kernel, capabilities(arch)), capabilities(arch), "E")

@pytest.mark.parametrize("arch", ARCHS)
def test_what_is_encoded_decodes(arch: str) -> None:
  function, text, placed = assemble(elementwise(arch), arch)
  for offset, inst in placed:
    found, size = decode(text, offset, arch)
    assert found.row.name == inst.row.name, f"{inst} at {offset} is read as {found}"
  assert placed[-1][1].row.name == "s_endpgm"
  assert len(text) >= placed[-1][0] + 256, "the fetch of instructions runs on behind the end"

@pytest.mark.parametrize("arch", ARCHS)
def test_code_says_what_a_launch_needs(arch: str) -> None:
  code = compile(elementwise(arch), arch)
  assert code.lanes in (125, 250) and code.arguments == ("buffer",) * 3
  assert code.wave == (32 if arch in ("gfx1100", "gfx1200") else 64) and code.private_bytes == 0
  counts = dict(code.registers)
  assert 0 < counts["vgpr"] <= 24 and 0 < counts["sgpr"] <= 106

@pytest.mark.parametrize("arch", ("gfx1100", "gfx942"))
@pytest.mark.parametrize("units", (1, 2, 4, 8, 16))
def test_values_of_any_size_are_spilled_in_pieces_that_memory_takes(units: int, arch: str) -> None:
  t = target(arch)
  cls = next(c for c in t.classes if c.bank is regs.VGPR and c.units == units)
  function = Function("k")
  function.blocks = [Block(0)]
  function.blocks[0].insts = [t.spill(regs.reg(cls, 32), 64), t.reload(regs.reg(cls, 32), 64)]
  made = expand_macros(function, t).blocks[0].insts
  sizes = [min(units, 4)] * max(units // 4, 1)
  assert [i.row.name for i in made] == [f"scratch_{what}_b{32 * n}" for what in ("store", "load") for n in sizes]
  assert all(encode(i) for i in made)

@pytest.mark.parametrize("arch", ("gfx1100", "gfx942", "gfx1200"))
@pytest.mark.parametrize("slot", (4092, 4096, 9000, 1 << 20))
def test_scratch_memory_beyond_the_reach_of_an_instruction(slot: int, arch: str) -> None:
  """A scalar register has a part of the offset; RDNA4's instructions reach 8 MiB."""
  t = target(arch)
  value = regs.reg(next(c for c in t.classes if c.bank is regs.VGPR and c.units == 8), 32)
  function = Function("k")
  function.blocks = [Block(0)]
  function.blocks[0].insts = [t.spill(value, slot), t.reload(value, slot)]
  made = expand_macros(function, t).blocks[0].insts
  bases = [i.operands[1] for i in made if i.row.name == "s_mov_b32"]
  assert len(bases) == (0 if arch == "gfx1200" else 2) and all(encode(i) for i in made)
  moved = [i for i in made if i.row.name.startswith("scratch")]
  offset = [spec.name for spec in moved[0].row.isa.specs].index("offset")
  assert [i.operands[offset] + (bases[0] if bases else 0) for i in moved] == [slot, slot + 16] * 2

@pytest.mark.slow
@pytest.mark.parametrize("arch", ("gfx1100", "gfx942"))
def test_a_launch_is_told_of_scratch_memory(arch: str) -> None:
  """More than a hundred doubles are live at once, so some are spilled."""
  n = 160
  a, r = UOp.param(1, dtypes.float64, 64 * n), axis(64, 0, "LOCAL")
  values = [a.index(r * n + k).load() for k in range(n)]
  total = values[0]
  for x in values[1:]: total = total + x
  for x in values: total = total * x
  code = compile(lower(UOp.sink(UOp.param(0, dtypes.float64, 64).index(r).store(total, r)), capabilities(arch),
                       "crowded"), arch)
  assert code.private_bytes > 0 and dict(code.registers)["vgpr"] > 200

@pytest.mark.slow
@pytest.mark.parametrize("arch", ("gfx1100", "gfx942"))
def test_spilled_scalars_take_the_next_vector_registers(arch: str) -> None:
  """More than a hundred uniform integers are live at once. Some are spilled to lanes of vector registers, of which few
  are used."""
  n = 140
  out, a, r = UOp.param(0, dtypes.int32, 32), UOp.param(1, dtypes.int32, n), axis(32, 0, "LOCAL")
  values = [a.index(k).load() for k in range(n)]
  total = values[0]
  for x in values[1:]: total = total ^ x
  for x in values: total = total * 3 + x
  kernel = UOp.sink(out.index(r).store(total, r))
  program = lower(kernel, capabilities(arch), "crowded")
  function, _, _ = assemble(program, arch)
  names = [inst.row.name for block in function.blocks for inst in block.insts]
  assert "v_writelane_b32" in names and "v_readlane_b32" in names
  assert dict(compile(program, arch).registers)["vgpr"] < 16
  check(kernel, arch, optimized=False)

@pytest.mark.parametrize("arch", ARCHS)
def test_steps_of_occupancy_are_those_of_the_register_files(arch: str) -> None:
  steps = target(arch).steps["vgpr"]
  assert list(steps) == sorted(steps)
  assert {"gfx1100": (96, 120, 144), "gfx1100:wave64": (48, 60, 72),
          "gfx1200": (96, 120, 144)}.get(arch, (64, 72, 80)) == steps[:3]

def test_no_early_result_is_in_the_register_of_a_source() -> None:
  """A division by a constant multiplies elements of a vector load that have just been copied. CHECK=1 refuses wrong
  code too."""
  n, capable = 90300, capabilities("gfx1100")
  out, a, r = UOp.param(0, dtypes.int32, n), UOp.param(1, dtypes.int32, n), axis(n, 0)
  program = lower(optimize(UOp.sink(out.index(r).store(a.index(r).load() // 7, r)), capable), capable, "sevenths")
  insts = [inst for _, inst in assemble(program, "gfx1100")[2]]
  assert any(inst.row.early for inst in insts) and not any(overwritten(inst) for inst in insts)
