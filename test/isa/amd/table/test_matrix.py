"""Products on the matrix unit, executed by the emulator and compared with the interpreter. The emulator's layouts come
from the vendor's calculator."""
from __future__ import annotations

import pytest

from test.codegen.kernels import axis, data_for
from test.codegen.products import convolution, gradient, halved, product
from test.isa.amd.machine import ARCHS, check
from tinyhw.codegen.optimize import optimize
from tinyhw.codegen.passes import lower
from tinyhw.codegen.transform.tiling import Opt, OptOps
from tinyhw.dtype import DType, dtypes
from tinyhw.isa.amd.capabilities import capabilities, generation_of
from tinyhw.isa.amd.table.matrix import VECTOR, Unit, units
from tinyhw.isa.amd.table.table import table
from tinyhw.isa.amd.target import assemble
from tinyhw.machine.ir.inst import Reg
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import KernelInfo, UOp

MATRIX_ARCHS = (*ARCHS, "gfx950")
UNITS = [(arch, unit) for arch in MATRIX_ARCHS for unit in units(generation_of(arch))]
NAMES = [f"{arch}-{unit.key}" for arch, unit in UNITS]

@pytest.mark.parametrize("arch, unit",
                         [pytest.param(*case, id=name) for case, name in zip(UNITS, NAMES) if case[1] is not VECTOR])
def test_layouts_have_the_registers_of_the_instruction(arch: str, unit: Unit) -> None:
  matrix, specs = unit.matrix, table(generation_of(arch).arch)[unit.key].isa.specs
  assert matrix.a is not None and matrix.b is not None and matrix.c is not None
  assert [specs[k].type.elements for k in range(3)] == [matrix.c.count, matrix.a.count, matrix.b.count]

def test_layouts_of_the_vector_unit_have_each_element() -> None:
  """Lanes have the rows and columns of their accumulators; each accumulator is in one lane."""
  m = VECTOR.matrix
  assert m.a is not None and m.b is not None and m.c is not None
  places = {(m.c.coordinate("row", lane, k), m.c.coordinate("column", lane, k)): lane for lane in range(32)
            for k in range(m.c.count)}
  assert sorted(places) == [(row, column) for row in range(m.m) for column in range(m.n)]
  for (row, column), lane in places.items():
    for layout, name, at in ((m.a, "row", row), (m.b, "column", column)):
      steps = {layout.coordinate("step", lane, k) for k in range(layout.count)
               if layout.coordinate(name, lane, k) == at}
      assert steps == set(range(m.k))

@pytest.mark.slow
@pytest.mark.parametrize("arch, unit", UNITS, ids=NAMES)
def test_one_tile_and_several(arch: str, unit: Unit) -> None:
  x = unit.matrix
  for sizes in ((x.m, x.n, x.k), (2 * x.m, 2 * x.n, 4 * x.k)):
    kernel = product(*sizes, x.operand, x.result)
    names = [inst.row.name for block in assemble(lower(optimize(kernel, capabilities(arch)), capabilities(arch), "p"),
                                                 arch)[0].blocks
             for inst in block.insts]
    if any(other.matrix != x and other.matrix.operand is x.operand and sizes[0] >= other.matrix.m
           and sizes[2] >= other.matrix.k
           and sizes[1] >= other.matrix.n for _, other in UNITS if _ == arch): continue  # a better one is chosen
    assert any(name.endswith(unit.key[2:]) for name in names), "by itself, or as one of two operations"
    check(kernel, arch, what=f"{unit.key} {sizes}")

@pytest.mark.slow
@pytest.mark.parametrize("arch", MATRIX_ARCHS)
def test_what_does_not_divide_and_a_transposed_factor(arch: str) -> None:
  check(product(37, 50, 40, dtypes.float16, dtypes.float32), arch)
  check(product(32, 32, 32, dtypes.float16, dtypes.float32, transposed=True), arch)

@pytest.mark.slow
@pytest.mark.parametrize("transposed, turned", [(False, False), (True, False), (False, True)])
@pytest.mark.parametrize("arch", ("gfx1100", "gfx942"))
def test_rows_that_are_no_whole_pieces(arch: str, transposed: bool, turned: bool) -> None:
  check(product(65, 67, 63, dtypes.float16, dtypes.float32, transposed, turned), arch)

@pytest.mark.slow
@pytest.mark.parametrize("arch, operand", [("gfx1100", dtypes.fp8e4m3), ("gfx942", dtypes.fp8e5m2)])
def test_narrower_factors_are_converted_to_halves(arch: str, operand: DType) -> None:
  """The unit has no fp8, or another kind of fp8, as on gfx942."""
  kernel = product(32, 32, 32, operand, dtypes.float32)
  program = lower(optimize(kernel, capabilities(arch)), capabilities(arch), "p")
  assert {u.arg.operand for u in program.uops if u.op is Ops.MMA} == {dtypes.float16}
  check(kernel, arch)

@pytest.mark.parametrize("arch", ARCHS)
def test_sums_stay_in_their_registers(arch: str) -> None:
  """The k loop copies no accumulators."""
  program = lower(optimize(product(64, 64, 1024, dtypes.float16, dtypes.float32), capabilities(arch)),
                  capabilities(arch), "p")
  for block in assemble(program, arch)[0].blocks:
    for inst in block.insts:
      if inst.row.pipe in ("wmma", "mfma"):
        assert inst.operands[0] == inst.operands[3] or not hasattr(inst.operands[3], "cls")
        sums = set(range(inst.operands[0].index, inst.operands[0].index + inst.operands[0].cls.units))
        moved = {r.index for other in block.insts if other.row.name == "v_mov_b32" for r in other.operands
                 if isinstance(r, Reg)}
        assert not sums & moved

@pytest.mark.slow
@pytest.mark.parametrize("arch", MATRIX_ARCHS)
@pytest.mark.parametrize("result", (dtypes.float16, dtypes.float32), ids=lambda dtype: dtype.name)
def test_results_are_stored_in_wide_pieces(arch: str, result: DType) -> None:
  """A lane has adjacent elements of a row, and float16 are converted in pairs."""
  out, a, b = UOp.param(0, result, 64 * 32), UOp.param(1, dtypes.float16,
                                                       64 * 16), UOp.param(2, dtypes.float16, 16 * 32)
  i, j, x = axis(64, 0), axis(32, 1), axis(16, 2, "REDUCE")
  terms = a.index(i * 16 + x).load().cast(dtypes.float32) * b.index(x * 32 + j).load().cast(dtypes.float32)
  kernel = UOp.sink(out.index(i * 32 + j).store(terms.reduce(Ops.ADD, x).cast(result), i, j))
  check(kernel, arch)
  program = lower(optimize(kernel, capabilities(arch)), capabilities(arch), "p")
  stores = {inst.row.name for block in assemble(program, arch)[0].blocks for inst in block.insts
            if inst.row.name.startswith("global_store")}
  assert stores == {"global_store_b128"}
  assert not any(u.op is Ops.GEP and u.dtype.count == 1 and u.src[0].dtype.scalar() is dtypes.float32
                 for u in program.uops)

@pytest.mark.slow
@pytest.mark.parametrize("arch", MATRIX_ARCHS)
def test_large_tiles_and_loads_one_iteration_early(arch: str) -> None:
  """Several matrices of a wave and several waves, as in a large product. Three blocks of k steps are staged; the last
  one is partly padding."""
  kernel = product(128, 64, 4 * 32 + 9, dtypes.float16, dtypes.float32)
  unit = next(x for x in capabilities(arch).matrix if x.operand is dtypes.float16)
  opts = [Opt(OptOps.MATRIX, axis, size) for axis, size in enumerate((unit.m, unit.n, unit.k))]
  opts += [Opt(OptOps.UPCAST, 0, 2), Opt(OptOps.UPCAST, 2, 64 // unit.k)]
  opts += [Opt(OptOps.LOCAL, axis, 2) for axis in range(2)]
  if unit.n == 16: opts.append(Opt(OptOps.UPCAST, 1, 2))
  optimized = optimize(kernel.replace(arg=KernelInfo(opts=(*opts, Opt(OptOps.GRID, 0), Opt(OptOps.GRID, 1)))),
                       capabilities(arch))
  check(optimized, arch, data_for(kernel), optimized=False, meaning=kernel)

@pytest.mark.slow
@pytest.mark.parametrize("arch", ("gfx1100", "gfx1200"))
@pytest.mark.parametrize("transposed, turned", [(False, False), (True, False), (False, True), (True, True)])
def test_floats_on_the_vector_unit(arch: str, transposed: bool, turned: bool) -> None:
  """Several squares of a lane, with factors loaded by rows or by steps. One product has sizes that no tile divides."""
  for sizes in ((64, 64, 40), (37, 67, 63)):
    kernel = product(*sizes, dtypes.float32, dtypes.float32, transposed, turned)
    program = lower(optimize(kernel, capabilities(arch)), capabilities(arch), "p")
    assert {u.arg for u in program.uops if u.op is Ops.MMA} == {VECTOR.matrix}
    check(kernel, arch)

@pytest.mark.slow
@pytest.mark.parametrize("arch", ("gfx1100", "gfx1200"))
def test_convolutions_of_floats_on_the_vector_unit(arch: str) -> None:
  """The forward pass and the gradient of weights: each element has a gate."""
  for kernel in (convolution(2, 16, 6, 32, 3, 1), gradient(2, 32, 5, 32, 3, 1)):
    program = lower(optimize(kernel, capabilities(arch)), capabilities(arch), "p")
    assert {u.arg for u in program.uops if u.op is Ops.MMA} == {VECTOR.matrix}
    check(kernel, arch)

@pytest.mark.slow
@pytest.mark.parametrize("pad", (0, 1))
@pytest.mark.parametrize("arch", ARCHS)
def test_convolutions(arch: str, pad: int) -> None:
  kernel = halved(convolution(2, 5, 8, 32, 3, pad))
  program = lower(optimize(kernel, capabilities(arch)), capabilities(arch), "p")
  assert any(u.op is Ops.MMA for u in program.uops)
  check(kernel, arch, what=f"convolution padded by {pad}")

@pytest.mark.slow
@pytest.mark.parametrize("kernel", (convolution(2, 32, 7, 32, 3, 1), gradient(2, 32, 7, 32, 3, 1)),
                         ids=("forward", "weights"))
@pytest.mark.parametrize("arch", ARCHS)
def test_convolutions_of_many_channels(arch: str, kernel: UOp) -> None:
  """Lanes load contiguous elements, with a gate for each, and store pieces of several steps, or columns."""
  check(halved(kernel), arch)

@pytest.mark.slow
@pytest.mark.parametrize("arch", ARCHS)
def test_more_lanes_than_there_is_to_copy(arch: str) -> None:
  """Rows and steps may have fewer elements than there are lanes: no two lanes store the same one."""
  for unit in capabilities(arch).matrix[-2:]:
    kernel = product(unit.m, 4 * unit.n, unit.k, unit.operand, unit.result)
    opts = (tuple(Opt(OptOps.MATRIX, axis, amount) for axis, amount in enumerate((unit.m, unit.n, unit.k)))
            + (Opt(OptOps.LOCAL, 1, 4),))
    check(optimize(kernel.replace(arg=KernelInfo(opts=opts)), capabilities(arch)), arch, data_for(kernel),
          optimized=False, meaning=kernel)
