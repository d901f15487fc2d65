"""What the listing is told about AMD's instructions, and what the model says of a kernel."""
from __future__ import annotations
import pytest

from test.codegen.kernels import elementwise
from test.isa.amd.machine import ARCHS
from test.isa.amd.test_matrix import product
from tinyhw.codegen.optimize import optimize
from tinyhw.codegen.passes import lower
from tinyhw.codegen.program import Program
from tinyhw.dtype import dtypes
from tinyhw.isa.amd import target
from tinyhw.isa.amd.capabilities import capabilities
from tinyhw.isa.amd.describe import bounds, compile_listed, element_of, meets, operations, touched, waits
from tinyhw.isa.amd.syntax import parse
from tinyhw.uop.ops import UOp

@pytest.mark.parametrize("arch, text, size, count, element", [
  ("gfx1100", "global_load_b128 v[0:3], v4, s[0:1]", 512, 0, ""),
  ("gfx1100:wave64", "global_load_b128 v[0:3], v4, s[0:1]", 1024, 0, ""),
  ("gfx1100", "global_store_b16 v4, v0, s[0:1]", 64, 0, ""),
  ("gfx1100", "ds_load_b64 v[0:1], v2", 256, 0, ""),
  ("gfx1100", "ds_store_2addr_b32 v0, v1, v2 offset1:1", 256, 0, ""),
  ("gfx1100", "s_load_b512 s[0:15], s[16:17], 0x0", 64, 0, ""),
  ("gfx942", "global_load_dwordx4 v[0:3], v4, s[0:1]", 1024, 0, ""),
  ("gfx1100", "v_fma_f32 v0, v1, v2, v3", 0, 64, "vf32"),
  ("gfx942", "v_pk_fma_f16 v0, v1, v2, v3", 0, 256, "vf16"),
  ("gfx942", "v_add_f64 v[0:1], v[2:3], v[4:5]", 0, 64, "vf64"),
  ("gfx1100", "v_add_nc_u32 v0, v1, v2", 0, 0, ""),
  ("gfx1100", "v_cvt_f16_f32 v0, v1", 0, 0, ""),
  ("gfx1100", "v_dual_fmac_f32 v0, v1, v2 :: v_dual_add_f32 v3, v4, v5", 0, 96, "vf32"),
  ("gfx1100", "v_dot2_f32_f16 v0, v1, v2, v3", 0, 128, "vf32"),
  ("gfx1100", "v_wmma_f32_16x16x16_f16 v[0:7], v[8:15], v[16:23], v[0:7]", 0, 8192, "f16"),
  ("gfx942", "v_mfma_f32_32x32x8_f16 v[0:15], v[16:17], v[18:19], v[0:15]", 0, 16384, "f16"),
  ("gfx942", "v_mfma_f32_4x4x4_16b_f16 v[0:3], v[16:17], v[18:19], v[0:3]", 0, 2048, "f16"),
])
def test_bytes_and_operations_of_a_wave(arch: str, text: str, size: int, count: int, element: str) -> None:
  inst = parse(text, arch)
  assert (touched(inst), operations(inst), element_of(inst)) == (size, count, element)

@pytest.mark.parametrize("arch, text, counts", [
  ("gfx1100", "s_waitcnt vmcnt(3)", {"vmcnt": 3}), ("gfx1100", "s_waitcnt vmcnt(0) lgkmcnt(0)", {"vmcnt": 0, "lgkmcnt": 0}),
  ("gfx942", "s_waitcnt vmcnt(40)", {"vmcnt": 40}), ("gfx1200", "s_wait_dscnt 2", {"dscnt": 2}),
  ("gfx1200", "s_wait_loadcnt_dscnt 0x0301", {"loadcnt": 3, "dscnt": 1}), ("gfx1100", "v_nop", {})])
def test_waits(arch: str, text: str, counts: dict[str, int]) -> None:
  assert waits(parse(text, arch)) == counts and not meets(parse(text, arch))

def compiled(kernel: UOp, arch: str) -> Program:
  return lower(optimize(kernel, capabilities(arch)), capabilities(arch), "kernel")

@pytest.mark.parametrize("arch", ARCHS)
def test_code_is_what_the_target_compiles(arch: str) -> None:
  program = compiled(product(64, 64, 256, dtypes.float16, dtypes.float32), arch)
  code, text = compile_listed(program, arch)
  assert code == target.compile(program, arch)
  lines = text.splitlines()
  assert lines[1].split() == ["offset", "bytes", "instruction", "sgpr", "vgpr", "from", "line"]
  assert any(line.startswith("occupancy: ") for line in lines) and any(line.startswith("roofline: 2097 k flop") for line in lines)

@pytest.mark.parametrize("arch", ARCHS)
def test_model_of_a_product(arch: str) -> None:
  """Whatever the lowering: the operations are the kernel's, nothing beats a peak, and what binds takes as long as the loop."""
  found = bounds(compiled(product(256, 256, 256, dtypes.float16, dtypes.float32), arch), arch)
  assert found.operations == 2 * 256 ** 3 and found.memory == 2 * 256 * 256 * 2 + 256 * 256 * 4
  assert found.hottest.element == "f16" and 0 < found.hottest.share <= 1 and found.hottest.loop is not None and found.hottest.loop.parent is None
  for part in (*found.parts, found.whole):
    assert part.cost.cycles == max(part.cost.alone, *part.cost.resources.values())
    assert part.binding == "latency" or part.cost.resources[part.binding] == part.cost.cycles

@pytest.mark.parametrize("arch", ARCHS)
def test_model_of_an_elementwise_kernel(arch: str) -> None:
  found = bounds(compiled(elementwise(1 << 16, 1, 1), arch), arch)
  assert found.hottest is found.whole or found.hottest.loop is not None
  assert found.memory is not None and found.memory >= 2 * 4 << 16 and found.hottest.share < 0.2
