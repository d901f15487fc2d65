"""Wait states after MFMA. Before a store of the result they are those that LLVM 22 inserts. Each other use is in a
kernel."""
from __future__ import annotations
from collections.abc import Callable

import pytest
from amd.kernels import Box, Kernel

from tinyhw.emulator.amd.checks.hazards_mfma import Use, overwrite_states, states
from tinyhw.emulator.amd.execute.matrix import product_of
from tinyhw.emulator.errors import MissingHazard

# name: wait states before a store of the result on gfx942 and gfx950, by compiling each intrinsic; None where the
# instruction does not exist
STORED = {
  "32x32x8_f16": (11, 12), "16x16x16_f16": (7, 8), "32x32x8_bf16": (11, 12), "16x16x16_bf16": (7, 8),
  "32x32x2_f32": (18, 18),
  "16x16x4_f32": (10, 10),
  "32x32x1_2b_f32": (18, 18), "16x16x1_4b_f32": (10, 10), "4x4x1_16b_f32": (4, 4), "32x32x4_2b_f16": (19, 20),
  "16x16x4_4b_f16": (11, 12),
  "4x4x4_16b_f16": (5, 5), "16x16x32_fp8_fp8": (7, 8), "32x32x16_fp8_fp8": (11, 12), "16x16x8_xf32": (7, None),
  "32x32x4_xf32": (11, None),
  "16x16x32_f16": (None, 8), "32x32x16_f16": (None, 12), "16x16x32_bf16": (None, 8), "32x32x16_bf16": (None, 12)}

@pytest.mark.parametrize("shape", STORED)
def test_before_a_store(shape: str) -> None:
  product = product_of(f"v_mfma_f32_{shape}")
  assert product is not None
  for arch, expected in zip(("gfx942", "gfx950"), STORED[shape]):
    if expected is not None: assert states(product, Use.MEMORY, None, arch) == expected

def test_of_other_types() -> None:
  for name, expected in (("v_mfma_i32_16x16x32_i8", (7, 8)), ("v_mfma_i32_32x32x16_i8", (11, 12)),
                         ("v_mfma_f64_16x16x4_f64", (18, 18)),
                         ("v_mfma_f64_4x4x4_4b_f64", (9, 9)), ("v_mfma_i32_16x16x64_i8", (None, 8)),
                         ("v_mfma_i32_32x32x32_i8", (None, 12))):
    product = product_of(name)
    assert product is not None
    for arch, wanted in zip(("gfx942", "gfx950"), expected):
      if wanted is not None: assert states(product, Use.MEMORY, None, arch) == wanted
  half = product_of("v_mfma_f32_32x32x8_f16")
  assert half is not None and overwrite_states(half) == 7

NARROW = "v_mfma_f32_16x16x16_f16"
USES: dict[str, tuple[Callable[[Kernel], None], int]] = {
  "VALU reads": (lambda k: k("v_add_f32", k.v(2), k.v(1), k.v(20)), 7),
  "VALU overwrites": (lambda k: k("v_mov_b32", k.v(21), 0), 7),
  "A or B": (lambda k: k(NARROW, k.v(28, 4), k.v(20, 2), k.v(4, 2), k.v(32, 4)), 7),
  "the same C": (lambda k: k(NARROW, k.v(20, 4), k.v(2, 2), k.v(4, 2), k.v(20, 4)), 0),
  "a part of C": (lambda k: k(NARROW, k.v(28, 4), k.v(2, 2), k.v(4, 2), k.v(22, 4)), 5),
  "VALU overwrites C": (lambda k: k("v_mov_b32", k.v(36), 0), 3),
}

@pytest.mark.parametrize("use", USES)
def test_in_a_kernel(use: str) -> None:
  second, need = USES[use]
  for waits in {need, max(need - 1, 0)}:
    k = Kernel("gfx942")
    for i in range(1, 48): k("v_mov_b32", k.v(i), 0)
    k("s_nop", 7)
    k(NARROW, k.v(20, 4), k.v(2, 2), k.v(4, 2), k.v(36, 4) if use == "VALU overwrites C" else k.v(40, 4))
    if waits: k("s_nop", waits - 1)
    second(k)
    k("s_endpgm")
    if waits == need: Box().run(k, (64,))
    else:
      with pytest.raises(MissingHazard, match=f"{need} wait states are needed between {NARROW}"): Box().run(k, (64,))
