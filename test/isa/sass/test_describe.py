"""The listing of NVIDIA's kernels, and the model for it."""
from __future__ import annotations
from dataclasses import replace

import pytest

from test.codegen.kernels import data_for, elementwise
from test.codegen.products import product
from test.codegen.test_optimize import kernels_of
from test.isa.sass.machine import ARCHS, execute
from tinyhw.codegen.optimize import optimize
from tinyhw.codegen.passes import lower
from tinyhw.dtype import DType, dtypes
from tinyhw.isa.sass import target
from tinyhw.isa.sass.capabilities import capabilities
from tinyhw.isa.sass.describe import bounds, compile_listed
from tinyhw.machine.model.listing import size
from tinyhw.tensor import Tensor
from tinyhw.uop.enums import AxisType, Ops
from tinyhw.uop.ops import UOp
from tinyhw.uop.program import Program

def compiled(kernel: UOp, arch: str) -> Program:
  return lower(optimize(kernel, capabilities(arch)), capabilities(arch), "kernel")

@pytest.mark.slow
@pytest.mark.parametrize("arch", (*ARCHS, "sm_86", "sm_90a"))
def test_code_is_what_the_target_compiles(arch: str) -> None:
  program = compiled(product(64, 64, 1024, dtypes.float16, dtypes.float32), arch)
  code, text = compile_listed(program, arch)
  assert code == target.compile(program, arch)
  lines = text.splitlines()
  assert lines[1].split() == ["offset", "bytes", "instruction", "control", "R", "P", "from", "line"]
  assert any(line.startswith("occupancy: ") for line in lines) and any(line.startswith("roofline: 8389 k flop")
                                                                       for line in lines)

@pytest.mark.slow
def test_lines_tell_of_control_words_and_of_what_they_wait_for() -> None:
  lines = compile_listed(compiled(product(64, 64, 256, dtypes.float16, dtypes.float32), "sm_80"),
                         "sm_80")[1].splitlines()
  offsets = {int(words[0]): line for line in lines for words in [line.lstrip("/|\\ ").split()] if words
             and words[0].isdigit()}
  first = next(line for line in offsets.values() if "sb2<=0: " in line or "sb3<=0: " in line)
  at = int(first.partition(" of ")[2].split()[0].rstrip(",;"))
  assert "after " in first and "result " in offsets[at] and "LDS" in offsets[at]
  assert any("BRA .loop" in line for line in lines) and any("@P0 BRA ." in line or "@!P0 BRA ." in line
                                                            for line in lines)

@pytest.mark.slow
@pytest.mark.parametrize("arch", ARCHS)
def test_model_of_a_product(arch: str) -> None:
  """For any lowering, the operations are the kernel's, and nothing exceeds a peak. The bound equals the time of the
  loop."""
  found = bounds(compiled(product(1024, 1024, 1024, dtypes.float16, dtypes.float32), arch), arch)
  assert found.operations == 2 * 1024 ** 3 and found.memory == 2 * 1024 * 1024 * 2 + 1024 * 1024 * 4
  assert found.hottest.element.removeprefix("wgmma ") == "f16, matrix unit" and 0 < found.hottest.share <= 1
  for part in (*found.parts, found.whole):
    assert part.cost.cycles == max(part.cost.alone, *part.cost.resources.values())
    assert part.binding == "latency" or part.cost.resources[part.binding] == part.cost.cycles

@pytest.mark.parametrize("arch", ARCHS)
def test_model_of_an_elementwise_kernel(arch: str) -> None:
  found = bounds(compiled(elementwise(1 << 16, 1, 1), arch), arch)
  assert found.memory is not None and found.memory >= 2 * 4 << 16 and found.hottest.share < 0.2

@pytest.mark.slow
@pytest.mark.parametrize("arch", ARCHS)
def test_instructions_are_as_many_as_warps_execute(arch: str) -> None:
  """Compare the listing's count of the whole launch with the emulator's."""
  for kernel in (product(64, 64, 256, dtypes.float16, dtypes.float32), elementwise(1 << 12, 1, 1)):
    program = compiled(kernel, arch)
    overall = next(line for line in compile_listed(program, arch)[1].splitlines() if line.startswith("overall "))
    executed = execute(program, arch, data_for(kernel))
    assert f": {size(executed)} instructions, " in overall, f"{executed} in {overall}"

def last_loop(program: Program, arch: str) -> list[str]:
  """Return the lines of a listing's last loop. The first stagings are in a loop before it."""
  lines = compile_listed(program, arch)[1].splitlines()
  return lines[max(at for at, line in enumerate(lines) if line[0] == "/"):max(at for at, line in enumerate(lines)
                                                                              if line[0] == "\\") + 1]

@pytest.mark.slow
@pytest.mark.parametrize("arch", ("sm_80", "sm_89"))
@pytest.mark.parametrize("dtype", (dtypes.float16, dtypes.bfloat16), ids=str)
def test_a_large_product_keeps_the_tensor_core_busy(dtype: DType, arch: str) -> None:
  """4096^3 reaches at least 85 % of the peak by the model, in the loop and in the whole kernel. The loop has only
  necessary instructions."""
  program = compiled(product(4096, 4096, 4096, dtype, dtypes.float32), arch)
  found = bounds(program, arch)
  assert found.hottest.share >= 0.85 and found.whole.share >= 0.85, f"{found.hottest.binding}: {found.hottest.cost}"
  loop = last_loop(program, arch)
  products = sum("HMMA.16816" in line for line in loop)
  assert products in (32, 64) and len(loop) < 2 * products + 20 and not any("banks x" in line and "LDSM" in line
                                                                            for line in loop)

@pytest.mark.slow
@pytest.mark.parametrize("dtype", (dtypes.float16, dtypes.bfloat16), ids=str)
def test_a_large_product_of_four_warps_keeps_the_tensor_core_busy(dtype: DType) -> None:
  """The same holds for the rate of four warps on sm_90. Products of an iteration are adjacent, and the waits for them
  come first."""
  program = compiled(product(4096, 4096, 4096, dtype, dtypes.float32), "sm_90")
  found = bounds(program, "sm_90")
  assert found.hottest.share >= 0.95 and found.whole.share >= 0.85, f"{found.hottest.binding}: {found.hottest.cost}"
  assert found.hottest.element == f"wgmma {'bf16' if dtype is dtypes.bfloat16 else 'f16'}, matrix unit"
  loop = last_loop(program, "sm_90")
  at = [k for k, line in enumerate(loop) if "HGMMA.64x256x16" in line]
  assert len(at) == 4 and at[-1] - at[0] == 3 and len(loop) < 90 and not any("MOV R" in line or "banks x" in line
                                                                             for line in loop)

@pytest.mark.slow
@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("transposed, turned", [(False, True), (True, False), (True, True)])
def test_factors_may_lie_either_way(arch: str, transposed: bool, turned: bool) -> None:
  """A layer's weights are transposed. Their gradient has the other factor transposed."""
  found = bounds(compiled(product(4096, 4096, 4096, dtypes.float16, dtypes.float32, transposed, turned), arch), arch)
  assert found.whole.share >= (0.85 if arch == "sm_90" else 0.8), f"{found.hottest.binding}: {found.hottest.cost}"

@pytest.mark.slow
def test_many_columns_are_read_once() -> None:
  """In the last layer of a language model all rows are in the cache. With its columns first it reaches 39 % by the
  model."""
  assert bounds(compiled(product(2048, 50304, 768, dtypes.float16, dtypes.float32, True), "sm_90"),
                "sm_90").whole.share >= 0.7

ODD, LOGITS, WEIGHTS = (1001, 1001, 1001), (2048, 768, 50257), (50257, 768, 2048)

@pytest.mark.slow
@pytest.mark.parametrize("arch, size, turned, least", [
  ("sm_80", ODD, False, 0.4), ("sm_80", LOGITS, False, 0.7), ("sm_80", WEIGHTS, True, 0.9),
  ("sm_90", ODD, False, 0.2), ("sm_90", LOGITS, False, 0.35), ("sm_90", WEIGHTS, True, 0.6),
  ("sm_90", (4096, 4096, 4095), False, 0.6)])
def test_rows_that_are_no_whole_pieces(arch: str, size: tuple[int, int, int], turned: bool, least: float) -> None:
  """1001^3, and the gradients of a last layer of 50257 classes. Adjacent lanes copy adjacent elements, so that the
  cache is accessed once."""
  found = bounds(compiled(product(*size, dtypes.float16, dtypes.float32, False, turned), arch), arch)
  assert found.whole.share >= least, f"{found.whole.binding}: {found.whole.cost}"

@pytest.mark.slow
def test_narrow_copies_have_few_gates() -> None:
  """2049^3: of a factor across the sum, a lane copies 32 elements of 8 steps of 32, the last of them after the end. The
  loop has gates for those, and one for the other factor."""
  program = compiled(product(2049, 2049, 2049, dtypes.float16, dtypes.float32), "sm_80")
  found = bounds(program, "sm_80")
  assert found.whole.share >= 0.55, f"{found.whole.binding}: {found.whole.cost}"
  # before the loop, and in it
  assert len({u.src[1] for u in program.uops if u.op is Ops.LOAD and len(u.src) > 1}) <= 2 * 9

@pytest.mark.slow
def test_a_long_sum_of_four_warps() -> None:
  """The gradient of a last layer's input over 50304 classes is computed in blocks of products of four warps."""
  program = compiled(product(2048, 768, 50304, dtypes.float16, dtypes.float32), "sm_90")
  assert bounds(program, "sm_90").whole.share >= 0.5 and sum(u.op is Ops.SHARED_OPERAND for u in program.uops) == 2

@pytest.mark.slow
def test_boxes_are_chosen_where_lanes_cannot_copy_and_the_model_says_that_they_are_faster() -> None:
  """The sum is no multiple of 64; its zeros are outside of the tensors. With equal bounds lanes copy."""
  kernel, capable = product(4096, 4096, 1000, dtypes.float16, dtypes.float32), capabilities("sm_90")
  program, without = compiled(kernel, "sm_90"), lower(optimize(kernel, replace(capable, bulk_copies=False)), capable,
                                                      "product")
  assert any(u.op is Ops.TENSOR_BOX for u in program.uops) and not any(u.op is Ops.TENSOR_BOX for u in without.uops)
  assert not any(u.op is Ops.TENSOR_BOX for u in compiled(product(4096, 4096, 1024, dtypes.float16, dtypes.float32),
                                                          "sm_90").uops)
  found, other = bounds(program, "sm_90"), bounds(without, "sm_90")
  assert found.seconds is not None and other.seconds is not None and found.seconds < 0.95 * other.seconds
  assert found.hottest.share >= 0.95 and found.hottest.rate > 1.08 * other.hottest.rate
  text = compile_listed(program, "sm_90")[1]
  assert "async copy 64x192 of data1(" in text and "all 1 iterations" in text and "overall: not known" not in text

@pytest.mark.slow
@pytest.mark.parametrize("arch, least", [("sm_80", 0.95), ("sm_89", 0.85), ("sm_90", 0.85)])
def test_a_large_product_of_floats_keeps_the_fma_pipe_busy(arch: str, least: float) -> None:
  """4096^3 of float32, which no tensor core computes without loss."""
  found = bounds(compiled(product(4096, 4096, 4096, dtypes.float32, dtypes.float32), arch), arch)
  assert found.hottest.element == "f32, vector unit" and found.hottest.share >= least, (f"{found.hottest.binding}: "
                                                                                        f"{found.hottest.cost}")

@pytest.mark.parametrize("arch", ("sm_80", "sm_90"))
@pytest.mark.parametrize("columns, faster, alone",
                         [(64, 1.4, 0.95), (128, 1.0, 0.95), (256, 1.0, 1.0), (1024, 1.0, 1.0)])
def test_lanes_that_exchange_sums_take_less_of_everything(columns: int, faster: float, alone: float, arch: str) -> None:
  """They are compared with lanes that share sums in shared memory alone, which is the bound for the shortest rows.

  A block of several warps that runs alone is no slower. A block of one warp hardly is.
  """
  out, a = UOp.param(0, dtypes.float32, 4096), UOp.param(1, dtypes.float32, 4096 * columns)
  i, x = UOp.range(4096, 0), UOp.range(columns, 1, AxisType.REDUCE)
  kernel, capable = UOp.sink(out.index(i).store(a.index(i * columns + x).load().reduce(Ops.ADD, x),
                                                i)), capabilities(arch)
  found = bounds(compiled(kernel, arch), arch).whole.cost
  other = bounds(lower(optimize(kernel, replace(capable, exchanges=False)), capable, "staged"), arch).whole.cost
  assert found.cycles * faster <= other.cycles and found.alone * alone < other.alone
  assert (found.resources["d"] < other.resources["d"] / 2
          and found.resources["i"] < other.resources["i"]), "shared memory, and issue slots"

@pytest.mark.slow
def test_what_is_done_rarely_is_no_loop_and_costs_nothing() -> None:
  """Quotients have a path for rare numbers after the end of the code, from where it jumps back."""
  (kernel,) = kernels_of(Tensor.empty(512, 512, device="NULL").softmax())
  program = compiled(kernel, "sm_90")
  text = compile_listed(program, "sm_90")[1]
  assert "rarely" in text and "loop " not in text and "overall (512 work items): " in text and "roofline: " in text
  found = bounds(program, "sm_90")
  assert not found.parts and "f64" not in found.whole.cost.resources

@pytest.mark.slow
def test_a_listing_has_nvidias_words() -> None:
  text = compile_listed(compiled(product(64, 64, 64, dtypes.float16, dtypes.float32), "sm_80"), "sm_80")[1]
  assert ("warps a sub-partition" in text and "bytes of shared memory" in text and "blocks of " in text
          and "; a block alone" in text)
  assert not [word for word in ("wave", "workgroup", "SIMD", "local memory") if word in text]
