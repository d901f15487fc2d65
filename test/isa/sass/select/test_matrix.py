"""Products on the matrix unit: the elements of factors that a lane loads, and missing shapes."""
from __future__ import annotations

import random
from dataclasses import replace

import pytest

from test.codegen.kernels import axis, data_for
from test.codegen.products import convolution, gradient, halved, product
from test.isa.sass.machine import ARCHS, SASS, check
from tinyhw.codegen.optimize import optimize
from tinyhw.codegen.passes import lower
from tinyhw.codegen.transform import blocks
from tinyhw.codegen.transform.tiling import Opt, OptOps
from tinyhw.dtype import DType, dtypes
from tinyhw.emulator.errors import DataRace, MissingWait, UninitialisedRead
from tinyhw.errors import CompileError
from tinyhw.isa.sass.asm.encode import encode
from tinyhw.isa.sass.capabilities import capabilities
from tinyhw.isa.sass.select.select import select
from tinyhw.isa.sass.table.control import Control, unpack
from tinyhw.isa.sass.table.matrix import product_of_group
from tinyhw.isa.sass.table.table import build, table
from tinyhw.isa.sass.target import assemble, target
from tinyhw.machine.ir.target import Capabilities
from tinyhw.uop.enums import AxisType, Ops
from tinyhw.uop.matrix import by_columns
from tinyhw.uop.ops import KernelInfo, UOp
from tinyhw.uop.program import Program

HALF = dtypes.float16

def count(program: Program, op: Ops) -> int: return sum(u.op is op for u in program.uops)

@pytest.mark.slow
@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("dtype", (HALF, dtypes.bfloat16), ids=str)
def test_products(dtype: object, arch: str) -> None:
  """Results equal the interpreter's, as small whole numbers have no rounding.

  Lanes together load rows of factors from shared memory.
  """
  assert dtype is HALF or dtype is dtypes.bfloat16
  out, a, b = UOp.param(0, dtypes.float32, 32 * 24), UOp.param(1, dtype, 32 * 48), UOp.param(2, dtype, 48 * 24)
  i, j, x = axis(32, 0), axis(24, 1), axis(48, 2, "REDUCE")
  total = a.index(i * 48 + x).load().cast(dtypes.float32) * b.index(x * 24 + j).load().cast(dtypes.float32)
  kernel = UOp.sink(out.index(i * 24 + j).store(total.reduce(Ops.ADD, x), i, j))
  program = lower(optimize(kernel, capabilities(arch)), capabilities(arch), "product")
  placed = [inst for _, inst, _ in assemble(program, arch)[2]]
  names = [inst.row.name for inst in placed]
  assert "HMMA.16816" in names and "LDSM" in names and "LDS" not in names
  check(kernel, arch)

def test_sums_begin_as_zeros_that_are_made_where_they_are() -> None:
  capable = capabilities("sm_80")
  program = lower(optimize(product(2048, 2048, 256, HALF, dtypes.float32), capable), capable, "product")
  names = [inst.row.name for _, inst, _ in assemble(program, "sm_80")[2]]
  sums = sum(u.op is Ops.ACC for u in program.uops)
  assert sums > 1 and sum(name.startswith("IMAD.WIDE") for name in names) == 2 * sums and names.count("MOV") < sums

FP8 = dtypes.fp8e4m3
WIDENED = [(FP8, FP8), (dtypes.fp8e5m2, FP8), (dtypes.int8, HALF), (dtypes.fp8e5m2, dtypes.bfloat16)]

@pytest.mark.slow
@pytest.mark.parametrize("left, right", WIDENED, ids=lambda dtype: str(dtype).removeprefix("dtypes."))
def test_narrower_factors_are_converted_to_what_the_unit_takes(left: DType, right: DType) -> None:
  """The conversion is exact: float16 represents all numbers of 8 bits."""
  out, a, b = UOp.param(0, dtypes.float32, 32 * 24), UOp.param(1, left, 32 * 40), UOp.param(2, right, 40 * 24)
  i, j, x = axis(32, 0), axis(24, 1), axis(40, 2, "REDUCE")
  total = a.index(i * 40 + x).load().cast(dtypes.float32) * b.index(x * 24 + j).load().cast(dtypes.float32)
  kernel = UOp.sink(out.index(i * 24 + j).store(total.reduce(Ops.ADD, x), i, j))
  for arch in ARCHS:
    placed = assemble(lower(optimize(kernel, capabilities(arch)), capabilities(arch), "product"), arch)[2]
    assert "HMMA.16816" in {inst.row.name for _, inst, _ in placed}
  check(kernel, "sm_80")

@pytest.mark.slow
@pytest.mark.parametrize("m, n, k, transposed", [(16, 8, 16, False), (16, 8, 16, True), (64, 64, 64, False),
                                                 (64, 64, 64, True), (37, 50, 40, False)])
def test_shapes(m: int, n: int, k: int, transposed: bool) -> None:
  check(product(m, n, k, HALF, dtypes.float32, transposed), "sm_80")

@pytest.mark.slow
@pytest.mark.parametrize("transposed, turned", [(False, False), (True, False), (False, True)])
@pytest.mark.parametrize("m, n, k", [(65, 67, 63), (33, 40, 130), (40, 34, 75)])
def test_rows_that_are_no_whole_pieces(m: int, n: int, k: int, transposed: bool, turned: bool) -> None:
  """Every access is aligned and inside of the factors. The emulator checks it."""
  check(product(m, n, k, HALF, dtypes.float32, transposed, turned), "sm_90" if m == 65 else "sm_80")

@pytest.mark.slow
@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("kernel", (convolution(2, 32, 7, 32, 3, 1), gradient(2, 32, 7, 32, 3, 1)),
                         ids=("forward", "weights"))
def test_convolutions(kernel: UOp, arch: str) -> None:
  """Lanes load adjacent positions, with a gate for each, and store pieces of several steps, or columns."""
  check(halved(kernel), arch)

def test_another_shape_is_refused() -> None:
  local, base = UOp(Ops.DEFINE_LOCAL, HALF, (), (0, 256)), UOp(Ops.DEFINE_VAR, dtypes.int32, (), ("n", 0, 8))
  factor = UOp(Ops.LOAD, HALF.vec(4), (UOp(Ops.INDEX, HALF, (local, base)),))
  zero = UOp(Ops.CONST, dtypes.float32.vec(4), (), 0.0)
  product = UOp(Ops.MMA, dtypes.float32.vec(4), (factor, factor, zero), by_columns(4, 8, 4, HALF, dtypes.float32, 8))
  with pytest.raises(CompileError, match="sm_90 has no matrix unit for Matrix.m=4"):
    select(Program("k", (base, local, factor, zero, product)), target("sm_90"))

@pytest.mark.slow
@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("transposed", (False, True))
def test_factors_are_copied_ahead(arch: str, transposed: bool) -> None:
  """Scoreboard 0 counts the asynchronous copies, and DEPBAR waits for them. The emulator has checked the accesses to
  shared memory."""
  kernel = product(16, 8, 512, HALF, dtypes.float32, transposed)
  placed = assemble(lower(optimize(kernel, capabilities(arch)), capabilities(arch), "product"), arch)[2]
  names = [inst.row.name for _, inst, _ in placed]
  assert "LDGSTS.U" in names and "DEPBAR.LE" in names and not {"STS", "LDG.U", "LDG.plain"} & set(names)
  assert {control.write for _, inst, control in placed if inst.row.name == "LDGDEPBAR"} == {0}
  assert all(control.write != 0 for _, inst, control in placed if inst.row.name != "LDGDEPBAR")
  check(kernel, arch)

@pytest.mark.slow
@pytest.mark.parametrize("dtype, result", [(dtypes.int8, dtypes.int32), (dtypes.uint8, dtypes.uint32)], ids=str)
@pytest.mark.parametrize("transposed", (False, True))
def test_products_of_bytes(dtype: DType, result: DType, transposed: bool) -> None:
  """Results are exact, with all values of a byte. A factor can be copied unchanged only if its steps are adjacent."""
  for m, n, k in ((16, 8, 32), (32, 32, 1024), (21, 12, 40)):
    kernel = product(m, n, k, dtype, result, transposed)
    for arch in ("sm_80", "sm_90"):
      names = [inst.row.name for _, inst, _ in assemble(lower(optimize(kernel, capabilities(arch)), capabilities(arch),
                                                              "product"), arch)[2]]
      assert "IMMA.16832" in names and "LDSM" in names and ("LDGSTS.U" in names) == (transposed and k > 1000)
    if k < 1000 or transposed: check(kernel, "sm_80")

@pytest.mark.slow
@pytest.mark.parametrize("m, n, k, transposed", [(4, 32, 4, False), (64, 64, 256, False), (64, 64, 256, True),
                                                 (37, 50, 40, False)])
def test_products_of_floats(m: int, n: int, k: int, transposed: bool) -> None:
  """Products run on the FMA pipe, from shared memory, in both orders of the second factor."""
  kernel = product(m, n, k, dtypes.float32, dtypes.float32, transposed)
  placed = assemble(lower(optimize(kernel, capabilities("sm_80")), capabilities("sm_80"), "product"), "sm_80")[2]
  assert sum(inst.row.name == "FFMA" for _, inst, _ in placed) >= 16 and {"LDS", "BAR"} <= {inst.row.name
                                                                                            for _, inst, _ in placed}
  check(kernel, "sm_80", tolerance=1e-5)

@pytest.mark.slow
@pytest.mark.parametrize("name, which", [("LDGDEPBAR", 0), ("LDGDEPBAR", -1), ("DEPBAR.LE", 0), ("BAR", 0)])
def test_each_wait_for_copies_is_needed(name: str, which: int) -> None:
  """Without it the emulator finds a possible error: an uncounted group, factors that have not arrived, arrays that
  others read."""
  plain = product(16, 16, 256, HALF, dtypes.float32)
  units = [o for o in optimize(plain, capabilities("sm_80")).arg.opts if o.op is OptOps.MATRIX]
  chosen = (*units, Opt(OptOps.UPCAST, units[2].axis, 4), Opt(OptOps.LOCAL, units[1].axis, 2))   # two waves
  kernel = plain.replace(arg=KernelInfo(opts=chosen))
  program = lower(optimize(kernel, capabilities("sm_80")), capabilities("sm_80"), "product")
  assert program.lanes == 64
  _, _, placed = assemble(program, "sm_80")
  at = [offset for offset, inst, _ in placed if inst.row.name == name][which]
  code = SASS.compile(program, "sm_80")
  nop = encode(build(table("sm_80")["NOP/918"]), unpack(int.from_bytes(code.text[at:at + 16], "little")) or Control())
  hasty = replace(SASS, compile=lambda *_: replace(code, text=code.text[:at] + nop + code.text[at + 16:]))
  with pytest.raises((DataRace, MissingWait, UninitialisedRead)):
    for seed in range(3): hasty.execute(program, "sm_80", data_for(kernel), seed=seed)

# Products of four warps

def of_groups(columns: int, dtype: DType = HALF, result: DType = dtypes.float32) -> Capabilities:
  return replace(capabilities("sm_90"), matrix=(product_of_group(columns, dtype, result),))

def opts_of(columns: int, groups: int, steps: int = 64) -> tuple[Opt, ...]:
  """Return opts for `groups` groups of warps, one below the other."""
  matrix = (Opt(OptOps.MATRIX, 0, 64), Opt(OptOps.MATRIX, 1, columns), Opt(OptOps.MATRIX, 2, steps))
  return (*matrix, *[Opt(OptOps.LOCAL, 0, groups)] * (groups > 1), Opt(OptOps.GRID, 0), Opt(OptOps.GRID, 1))

@pytest.mark.slow
@pytest.mark.parametrize("m, n, k, columns, groups, dtype, transposed, turned", [
  (64, 64, 256, 64, 1, HALF, False, False), (128, 64, 256, 64, 2, dtypes.bfloat16, True, False),
  (72, 72, 320, 64, 1, HALF, False, False),
  (192, 64, 256, 64, 3, HALF, False, False), (200, 64, 256, 64, 3, HALF, True, True)])
def test_products_of_groups(m: int, n: int, k: int, columns: int, groups: int, dtype: DType, transposed: bool,
                            turned: bool) -> None:
  """Factors lie along the sum and across it. There are one group and two, and sizes that are no multiples. Of three
  groups some lanes have no last piece."""
  kernel = product(m, n, k, dtype, dtypes.float32, transposed,
                   turned).replace(arg=KernelInfo(opts=opts_of(columns, groups)))
  program = lower(optimize(kernel, of_groups(columns, dtype)), of_groups(columns, dtype), "product")
  placed = [inst for _, inst, _ in assemble(program, "sm_90")[2]]
  assert program.lanes == 128 * groups and sum(inst.row.name == "HGMMA" for inst in placed) == 4
  assert not any(inst.row.name.startswith(("LDG.", "STS")) for inst in placed), "lanes copy asynchronously"
  check(kernel, "sm_90")

@pytest.mark.slow
@pytest.mark.parametrize("m, n, k, groups, transposed, turned, carried", [
  (66, 67, 253, 1, False, False, True), (66, 67, 253, 1, True, True, True), (192, 64, 253, 3, False, True, False),
  (64, 66, 254, 1, True, False, False)])
def test_groups_of_narrow_pieces(m: int, n: int, k: int, groups: int, transposed: bool, turned: bool,
                                 carried: bool) -> None:
  """Odd rows are carried through registers, others are copied. Zeros after the end of the sum are stored.

  All of that is ahead of the products.
  """
  kernel = product(m, n, k, HALF, dtypes.float32, transposed, turned).replace(arg=KernelInfo(opts=opts_of(64, groups)))
  program = lower(optimize(kernel, capabilities("sm_90")), capabilities("sm_90"), "product")
  assert count(program, Ops.SHARED_OPERAND) == 2 and count(program, Ops.WAIT) == 1 and count(program, Ops.BARRIER) == 1
  stored = [u.src[1].op for u in program.uops if u.op is Ops.STORE and u.src[0].src[0].op is Ops.DEFINE_LOCAL]
  assert (Ops.ACC in stored) == carried and (carried or stored and set(stored) == {Ops.CONST})
  check(kernel, "sm_90")

@pytest.mark.slow
def test_narrow_pieces_of_bytes_and_of_long_sums(monkeypatch: pytest.MonkeyPatch) -> None:
  """A loop around the loop of the stagings restarts the pieces that lanes carry."""
  monkeypatch.setattr(blocks, "LONG_SUM", 16)
  monkeypatch.setattr(blocks, "BLOCK", 16)
  for dtype, result, steps in ((dtypes.int8, dtypes.int32, 128), (HALF, dtypes.float32, 64)):
    kernel = product(64, 65, 8 * steps - 3, dtype, result, True).replace(arg=KernelInfo(opts=opts_of(64, 1, steps)))
    program = lower(optimize(kernel, capabilities("sm_90")), capabilities("sm_90"), "product")
    assert sum(u.op is Ops.RANGE and u.arg[1] is AxisType.REDUCE
               for u in program.uops) == (1 if dtype is dtypes.int8 else 2)
    check(kernel, "sm_90")

@pytest.mark.slow
@pytest.mark.parametrize("boxed", (False, True))
def test_long_sums_of_groups_are_in_blocks(boxed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
  """A loop around the loop of the stagings has a variable of its own. Here 16 instructions are a block, and more are a
  long sum."""
  monkeypatch.setattr(blocks, "LONG_SUM", 16)
  monkeypatch.setattr(blocks, "BLOCK", 16)
  chosen = opts_of(64, 1) + (Opt(OptOps.BULK_COPY, 2, 1),) * boxed
  kernel = product(64, 64, 512, HALF, dtypes.float32, True).replace(arg=KernelInfo(opts=chosen))
  program = lower(optimize(kernel, of_groups(64, HALF)), of_groups(64, HALF), "product")
  assert (sum(u.op is Ops.RANGE and u.arg[1] is AxisType.REDUCE for u in program.uops) == 2
          and sum(u.op is Ops.ACC for u in program.uops) == 2)
  check(kernel, "sm_90")

@pytest.mark.slow
@pytest.mark.parametrize("gathered", (False, True))
def test_lanes_without_a_piece_load_nothing(gathered: bool) -> None:
  """Use three groups, where a factor has gates of its own, or is gathered. The loads of the last lanes would be outside
  of the buffers."""
  m, n, k, there = 192, 128, 256, 64
  out, a, b, rows = UOp.param(0, dtypes.float32, m * n), UOp.param(1, HALF,
                                                                   m * k), UOp.param(2, HALF,
                                                                                     k * there), UOp.param(
    3, dtypes.int32, k)
  i, j, x = axis(m, 0), axis(n, 1), axis(k, 2, "REDUCE")
  row = rows.index(x).load().cast(dtypes.weakint) % k if gathered else x
  right = UOp(Ops.LOAD, HALF, (b.index(row * there + j), j < there, UOp.const(HALF, 0)))
  total = (a.index(i * k + x).load().cast(dtypes.float32) * right.cast(dtypes.float32)).reduce(Ops.ADD, x)
  check(UOp.sink(out.index(i * n + j).store(total, i, j), arg=KernelInfo(opts=opts_of(64, 3))), "sm_90")

def allowing(arch: str, *names: str) -> Capabilities:
  return capabilities(arch).allowing(names or ("ALLOW_FP8_SUMS", "ALLOW_TF32"))

OF_BYTES = [(dtypes.int8, dtypes.int32, "IGMMA"), (dtypes.uint8, dtypes.uint32, "IGMMA"),
            (FP8, dtypes.float32, "QGMMA"),
            (dtypes.fp8e5m2, dtypes.float32, "QGMMA")]

@pytest.mark.slow
@pytest.mark.parametrize("dtype, result, name", OF_BYTES, ids=[str(dtype) for dtype, _, _ in OF_BYTES])
def test_products_of_groups_of_bytes(dtype: DType, result: DType, name: str) -> None:
  """A line of a swizzle atom has 128 steps, of which an instruction takes 32."""
  kernel = product(72, 64, 512, dtype, result, True).replace(arg=KernelInfo(opts=opts_of(64, 1, 128)))
  optimized = optimize(kernel, of_groups(64, dtype, result))
  placed = [inst for _, inst, _ in assemble(lower(optimized, of_groups(64, dtype, result), "product"), "sm_90")[2]]
  assert sum(inst.row.name == name for inst in placed) == 4
  check(optimized, "sm_90", data_for(kernel), optimized=False, meaning=kernel)

@pytest.mark.slow
@pytest.mark.parametrize("dtype, result, name", OF_BYTES[1:3], ids=[str(dtype) for dtype, _, _ in OF_BYTES[1:3]])
def test_boxes_of_bytes(dtype: DType, result: DType, name: str) -> None:
  """Bulk tensor copies load the factors of products of groups."""
  kernel = product(64, 64, 512, dtype, result,
                   True).replace(arg=KernelInfo(opts=(*opts_of(64, 1, 128), Opt(OptOps.BULK_COPY, 2, 1))))
  optimized = optimize(kernel, of_groups(64, dtype, result))
  names = [inst.row.name for _, inst, _ in assemble(lower(optimized, of_groups(64, dtype, result), "product"),
                                                    "sm_90")[2]]
  assert names.count(name) == 4 and "UTMALDG.plain" in names and not {"LDGSTS.U", "LDGSTS.plain", "LDG.U", "LDG.plain",
                                                                      "STS"} & set(names)
  check(optimized, "sm_90", data_for(kernel), optimized=False, meaning=kernel)

@pytest.mark.parametrize("dtype, result, name", OF_BYTES, ids=[str(dtype) for dtype, _, _ in OF_BYTES])
def test_bytes_must_lie_along_the_sum_for_products_of_groups(dtype: DType, result: DType, name: str) -> None:
  """The unit does not transpose swizzle atoms of bytes."""
  for transposed in (True, False):
    kernel = optimize(product(1024, 1024, 1024, dtype, result, transposed), allowing("sm_90"))
    assert any(u.op is Ops.MMA and u.arg.shared_operands for u in kernel.toposort()) == transposed

@pytest.mark.slow
@pytest.mark.parametrize("dtype", dtypes.fp8_ocp, ids=str)
def test_products_of_fp8_with_short_sums(dtype: DType) -> None:
  """They must be allowed. Sums of small numbers are exact."""
  kernel = product(32, 16, 64, dtype, dtypes.float32)
  for caps, name in ((capabilities("sm_89"), "HMMA.16816"), (allowing("sm_89"), "QMMA")):
    optimized = optimize(kernel, caps)
    assert name in {inst.row.name for _, inst, _ in assemble(lower(optimized, caps, "product"), "sm_89")[2]}
  check(optimized, "sm_89", data_for(kernel), optimized=False, meaning=kernel)

@pytest.mark.slow
@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("transposed", (False, True))
def test_products_of_tf32(arch: str, transposed: bool) -> None:
  """They must be allowed. Factors are rounded to 10 bits of mantissa. float16 uses its own unit."""
  kernel, caps = product(32, 16, 24, dtypes.float32, dtypes.float32, transposed), allowing(arch)
  optimized = optimize(kernel, caps)
  names = [inst.row.name for _, inst, _ in assemble(lower(optimized, caps, "product"), arch)[2]]
  assert "HMMA.1688.TF32" in names and "LDSM" in names and "FFMA" not in names
  rng, few = random.Random(3), {0: [0.0] * 512}
  few.update((slot, [round(rng.uniform(-8, 8) * 128) / 128 for _ in range(24 * size)])
             for slot, size in ((1, 32), (2, 16)))
  few[1][5], few[2][40] = float("inf"), float("nan")
  check(optimized, arch, few, optimized=False, meaning=kernel, tolerance=1e-6)
  halves = optimize(product(32, 16, 32, HALF, dtypes.float32), caps)
  assert {u.arg.operand for u in halves.toposort() if u.op is Ops.MMA} == {HALF}

@pytest.mark.slow
@pytest.mark.parametrize("m, n, k, transposed", [(37, 50, 40, False), (16, 16, 512, True)])
def test_shapes_of_tf32(m: int, n: int, k: int, transposed: bool) -> None:
  """Sizes that do not divide, and factors that are copied ahead."""
  kernel, caps = product(m, n, k, dtypes.float32, dtypes.float32, transposed), allowing("sm_80")
  optimized = optimize(kernel, caps)
  names = {inst.row.name for _, inst, _ in assemble(lower(optimized, caps, "product"), "sm_80")[2]}
  assert "HMMA.1688.TF32" in names and (k < 512 or "LDGSTS.U" in names)
  data = {slot: [float(round(x)) for x in values] for slot, values in data_for(kernel).items()}
  check(optimized, "sm_80", data, optimized=False, meaning=kernel)

def test_factors_are_rounded_to_tf32() -> None:
  """Rounding is to nearest. A factor a bit above half of the last significant bit becomes the next number, one a bit
  below it the previous number."""
  out, a, b = UOp.param(0, dtypes.float32, 16 * 8), UOp.param(1, dtypes.float32,
                                                              16 * 8), UOp.param(2, dtypes.float32, 8 * 8)
  i, j, x = axis(16, 0), axis(8, 1), axis(8, 2, "REDUCE")
  kernel = UOp.sink(
    out.index(i * 8 + j).store((a.index(i * 8 + x).load() * b.index(x * 8 + j).load()).reduce(Ops.ADD, x), i, j))
  near = [1 + 2 ** -11 + 2 ** -20, 1 + 2 ** -11 - 2 ** -20, -1 - 2 ** -11 - 2 ** -20, 3.0e38]
  data = {0: [0.0] * 128, 1: [near[row % 4] if row == step + 8 * (row // 8) else 0.0 for row in range(16)
                              for step in range(8)],
          2: [1.0 if row == column else 0.0 for row in range(8) for column in range(8)]}
  program = lower(optimize(kernel, allowing("sm_80")), allowing("sm_80"), "product")
  SASS.execute(program, "sm_80", data)
  assert [data[0][9 * k] for k in range(3)] == [1 + 2 ** -10, 1.0,
                                                -1 - 2 ** -10] and abs(data[0][27] - 3.0e38) < 3.0e38 * 2 ** -11

def with_epilogue(batch: int, m: int, n: int, k: int) -> UOp:
  """out[b, i, j] = half(max(sum over x of a[b, x, i] * w[b, x, j] + bias[j], 0)): both factors lie across the sum."""
  out, a, w = (UOp.param(slot, HALF, batch * size) for slot, size in enumerate((m * n, k * m, k * n)))
  bias, zero = UOp.param(3, dtypes.float32, n), UOp.const(dtypes.float32, 0)
  b, i, j, x = axis(batch, 0), axis(m, 1), axis(n, 2), axis(k, 3, "REDUCE")
  factors = a.index((b * k + x) * m + i).load(), w.index((b * k + x) * n + j).load()
  total = (factors[0].cast(dtypes.float32) * factors[1].cast(dtypes.float32)).reduce(Ops.ADD, x) + bias.index(j).load()
  return UOp.sink(out.index((b * m + i) * n + j).store(UOp(Ops.MAX, dtypes.float32, (total, zero)).cast(HALF), b, i, j))

@pytest.mark.slow
def test_batches_and_what_follows_a_product_of_groups() -> None:
  opts = (*[Opt(OptOps.MATRIX, axis, amount) for axis, amount in ((1, 64), (2, 64), (3, 64))],
          *[Opt(OptOps.GRID, axis) for axis in range(3)])
  kernel = with_epilogue(2, 64, 64, 256).replace(arg=KernelInfo(opts=opts))
  program = lower(optimize(kernel, of_groups(64)), of_groups(64), "product")
  assert program.grid == 2 and [u.arg.transposed for u in program.uops if u.op is Ops.SHARED_OPERAND] == [True, True]
  check(kernel, "sm_90")

WAITS = [("WARPGROUP", 0), ("WARPGROUP.DEPBAR", 0), ("WARPGROUP.DEPBAR", -1), ("FENCE", 0), ("BAR", 0),
         ("DEPBAR.LE", 0)]

@pytest.mark.slow
@pytest.mark.parametrize("name, which", WAITS)
def test_each_wait_for_products_of_groups_is_needed(name: str, which: int) -> None:
  """Without it the emulator finds an error: sums that others touch, overwritten arrays, or factors that are missing or
  invisible to products."""
  kernel = product(64, 64, 512, HALF, dtypes.float32, True).replace(arg=KernelInfo(opts=opts_of(64, 1)))
  program = lower(optimize(kernel, of_groups(64)), of_groups(64), "product")
  _, _, placed = assemble(program, "sm_90")
  at = [offset for offset, inst, _ in placed if inst.row.name == name][which]
  code = SASS.compile(program, "sm_90")
  nop = encode(build(table("sm_90")["NOP/918"]), unpack(int.from_bytes(code.text[at:at + 16], "little")) or Control())
  hasty = replace(SASS, compile=lambda *_: replace(code, text=code.text[:at] + nop + code.text[at + 16:]))
  with pytest.raises((DataRace, MissingWait, UninitialisedRead)):
    for seed in range(3): hasty.execute(program, "sm_90", data_for(kernel), seed=seed)
