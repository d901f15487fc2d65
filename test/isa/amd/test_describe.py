"""AMD's instructions in listings, and the model's results for a kernel."""
from __future__ import annotations
from pathlib import Path

import pytest

from amd.listed import ARCHS as LISTED, listed
from test.codegen.kernels import data_for, elementwise
from test.codegen.products import product
from test.isa.amd.machine import ARCHS, execute
from test.codegen.test_optimize import kernels_of
from tinyhw.codegen.optimize import optimize
from tinyhw.codegen.passes import lower
from tinyhw.dtype import dtypes
from tinyhw.isa.amd import target
from tinyhw.isa.amd.capabilities import capabilities
from tinyhw.isa.amd.describe import bounds, compile_listed
from tinyhw.machine.model.listing import size
from tinyhw.tensor import Tensor
from tinyhw.uop.ops import UOp
from tinyhw.uop.program import Program

def compiled(kernel: UOp, arch: str) -> Program:
  return lower(optimize(kernel, capabilities(arch)), capabilities(arch), "kernel")

@pytest.mark.slow
@pytest.mark.parametrize("arch", ARCHS)
def test_code_is_what_the_target_compiles(arch: str) -> None:
  program = compiled(product(64, 64, 256, dtypes.float16, dtypes.float32), arch)
  code, text = compile_listed(program, arch)
  assert code == target.compile(program, arch)
  lines = text.splitlines()
  assert lines[1].split() == ["offset", "bytes", "instruction", "sgpr", "vgpr", "from", "line"]
  assert any(line.startswith("occupancy: ") for line in lines) and any(line.startswith("roofline: 2097 k flop")
                                                                       for line in lines)

@pytest.mark.slow
@pytest.mark.parametrize("arch", ARCHS)
def test_model_of_a_product(arch: str) -> None:
  """For any lowering: the operations are the kernel's, no rate exceeds a peak, and the bound takes as long as the
  loop."""
  found = bounds(compiled(product(256, 256, 1024, dtypes.float16, dtypes.float32), arch), arch)
  assert found.operations == 2 * 256 * 256 * 1024 and found.memory == 2 * 256 * 1024 * 2 + 256 * 256 * 4
  assert found.hottest.element == "f16, matrix unit" and 0 < found.hottest.share <= 1
  assert found.hottest.loop is not None and found.hottest.loop.parent is None
  for part in (*found.parts, found.whole):
    assert part.cost.cycles == max(part.cost.alone, *part.cost.resources.values())
    assert part.binding == "latency" or part.cost.resources[part.binding] == part.cost.cycles

@pytest.mark.parametrize("arch", ARCHS)
def test_model_of_an_elementwise_kernel(arch: str) -> None:
  found = bounds(compiled(elementwise(1 << 16, 1, 1), arch), arch)
  assert found.hottest is found.whole or found.hottest.loop is not None
  assert found.memory is not None and found.memory >= 2 * 4 << 16 and found.hottest.share < 0.2

GOLDEN = Path(__file__).parents[2] / "golden/amd_listing.txt"

@pytest.mark.parametrize("arch", LISTED)
def test_listing_is_the_golden_one(arch: str) -> None:
  """test/golden/make_amd_listing.py rewrites it."""
  sections = dict(section.split("\n", 1) for section in GOLDEN.read_text(encoding="utf-8").split("# ")[1:])
  assert listed(arch).splitlines() == sections[arch].rstrip("\n").splitlines()

@pytest.mark.slow
@pytest.mark.parametrize("arch", ARCHS)
def test_instructions_are_as_many_as_waves_execute(arch: str) -> None:
  """The listing's count of the whole launch equals the emulator's."""
  for kernel in (product(64, 64, 256, dtypes.float16, dtypes.float32), elementwise(1 << 12, 1, 1)):
    program = compiled(kernel, arch)
    overall = next(line for line in compile_listed(program, arch)[1].splitlines() if line.startswith("overall "))
    executed = execute(program, arch, data_for(kernel))
    assert f": {size(executed)} instructions, " in overall, f"{executed} in {overall}"

@pytest.mark.slow
@pytest.mark.parametrize("arch", ("gfx942", "gfx1100", "gfx1200"))
def test_a_large_product_keeps_the_matrix_unit_busy(arch: str) -> None:
  """4096^3 of float16, stored as float16: at least 60 % of the matrix unit's peak by the model, in the loop and in the
  whole kernel."""
  found = bounds(compiled(product(4096, 4096, 4096, dtypes.float16, dtypes.float32), arch), arch)
  assert found.hottest.share >= 0.6 and found.whole.share >= 0.6, f"{found.hottest.binding}: {found.hottest.cost}"

@pytest.mark.slow
@pytest.mark.parametrize("arch", ("gfx1100", "gfx1200"))
def test_products_of_floats_keep_the_vector_unit_busy(arch: str) -> None:
  """1024^3 of float32, with factors in both orders, without a matrix unit for them. Most operations are paired in one
  instruction, and no value spills."""
  for transposed, turned in ((False, False), (True, False), (False, True)):
    program = compiled(product(1024, 1024, 1024, dtypes.float32, dtypes.float32, transposed, turned), arch)
    found = bounds(program, arch)
    assert found.hottest.element == "f32, vector unit" and found.whole.share >= 0.85, (f"{found.hottest.binding}: "
                                                                                       f"{found.hottest.cost}")
    assert not target.compile(program, arch).private_bytes

@pytest.mark.slow
@pytest.mark.parametrize("arch, forward, image, weights", [("gfx1100", 0.7, 0.7, 0.75), ("gfx1200", 0.7, 0.7, 0.7)])
def test_convolutions_of_floats_reach_the_vector_unit(arch: str, forward: float, image: float, weights: float) -> None:
  """3x3 of 32 images of 64 channels of 56x56, padded, and both gradients: the share of the peak."""
  x, w = (Tensor.empty(*shape, dtype="float", device="NULL").requires_grad_()
          for shape in ((32, 64, 56, 56), (64, 64, 3, 3)))
  y = x.conv2d(w, padding=1)
  y.backward(Tensor.empty(32, 64, 56, 56, dtype="float", device="NULL"))
  for result, least in ((y, forward), (x.grad, image), (w.grad, weights)):
    assert result is not None
    found = max((bounds(compiled(kernel, arch), arch) for kernel in kernels_of(result)),
                key=lambda found: found.whole.cost.cycles)
    assert found.whole.share >= least, f"{found.whole.share}: {found.hottest.binding}: {found.hottest.cost}"

@pytest.mark.slow
@pytest.mark.parametrize("arch, least", [("gfx942", 0.4), ("gfx1100", 0.799), ("gfx1200", 0.8)])
def test_a_sum_that_ends_within_a_piece(arch: str, least: float) -> None:
  """The gradient of a last layer's input, over 50257 classes: adjacent lanes copy adjacent elements, each with a gate
  of its own."""
  found = bounds(compiled(product(2048, 768, 50257, dtypes.float16, dtypes.float32), arch), arch)
  assert found.whole.share >= least, f"{found.whole.binding}: {found.whole.cost}"

@pytest.mark.slow
@pytest.mark.parametrize("arch, image, weights", [("gfx1100", 0.4, 0.6), ("gfx1200", 0.25, 0.2)])
def test_elements_that_are_loaded_alone_leave_room_for_the_sums(arch: str, image: float, weights: float) -> None:
  """Both gradients of 64 channels of 56x56: a tile that spills would take up to twenty times as long."""
  x, w = (Tensor.empty(*shape, dtype="half", device="NULL").requires_grad_()
          for shape in ((32, 64, 56, 56), (64, 64, 3, 3)))
  x.conv2d(w, padding=1).backward(Tensor.empty(32, 64, 56, 56, dtype="half", device="NULL"))
  for gradient_of, least in ((x, image), (w, weights)):
    assert gradient_of.grad is not None
    found = max((bounds(compiled(kernel, arch), arch) for kernel in kernels_of(gradient_of.grad)),
                key=lambda found: found.whole.cost.cycles)
    assert found.whole.share >= least, f"{found.whole.share}: {found.hottest.binding}: {found.hottest.cost}"
