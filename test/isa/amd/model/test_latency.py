"""Tables of costs: every instruction has one, and matrix instructions take the cycles of AMD's calculator."""
from __future__ import annotations

import pytest

from tinyhw.isa.amd.asm.syntax import parse
from tinyhw.isa.amd.model.latency import costs, matrix_cycles
from tinyhw.isa.amd.model.rates import card
from tinyhw.isa.amd.model.resources import Costs, element_of, operations
from tinyhw.isa.amd.table.form import Generation
from tinyhw.isa.amd.table.table import table
from tinyhw.machine.ir.inst import MInst

ARCHS = ("gfx942", "gfx950", "gfx1100", "gfx1200")

# AMD's matrix instruction calculator 1.3.2, "Execution cycles"
CYCLES = {
  "gfx942": {"f32_16x16x8_xf32": 16, "f32_32x32x4_xf32": 32, "f32_32x32x1_2b_f32": 64, "f32_16x16x1_4b_f32": 32,
             "f32_4x4x1_16b_f32": 8,
             "f32_32x32x2_f32": 64, "f32_16x16x4_f32": 32, "f32_32x32x4_2b_f16": 64, "f32_16x16x4_4b_f16": 32,
             "f32_4x4x4_16b_f16": 8,
             "f32_32x32x8_f16": 32, "f32_16x16x16_f16": 16, "i32_32x32x4_2b_i8": 64, "i32_4x4x4_16b_i8": 8,
             "i32_32x32x16_i8": 32,
             "i32_16x16x32_i8": 16, "f32_32x32x8_bf16": 32, "f64_16x16x4_f64": 32, "f64_4x4x4_4b_f64": 16,
             "f32_16x16x32_bf8_fp8": 16,
             "f32_32x32x16_fp8_fp8": 32},
  "gfx1100": {"f32_16x16x16_f16": 32, "f32_16x16x16_bf16": 32, "f16_16x16x16_f16": 32, "i32_16x16x16_iu8": 32,
              "i32_16x16x16_iu4": 16},
  "gfx1200": {"f32_16x16x16_f16": 16, "bf16_16x16x16_bf16": 16, "i32_16x16x16_iu8": 8, "i32_16x16x32_iu4": 8,
              "f32_16x16x16_fp8_bf8": 8},
}

@pytest.mark.parametrize("arch", CYCLES)
def test_matrix_cycles(arch: str) -> None:
  family, kind = Generation(arch).family, "mfma" if arch == "gfx942" else "wmma"
  assert {name: matrix_cycles(f"v_{kind}_{name}", arch, family) for name in CYCLES[arch]} == CYCLES[arch]

@pytest.mark.parametrize("arch", ARCHS)
def test_no_matrix_instruction_beats_the_peak_and_one_reaches_it(arch: str) -> None:
  generation, best = Generation(arch), dict[str, float]()
  for row in table(arch):
    if row.pipe not in ("wmma", "mfma") or row.name[:8] in ("v_swmmac", "v_smfmac"): continue
    inst = MInst(row, [])
    element = element_of(inst)
    best[element] = max(best.get(element, 0.0),
                        operations(inst) / matrix_cycles(row.name, generation.name, generation.family))
  if arch == "gfx950": best["fp8"] = best["bf8"] = best["f8f6f4"]  # its fast shapes take any of these
  assert best == {element: card(generation).flops[element] for element in best}

@pytest.mark.parametrize("arch", ARCHS)
def test_every_pipe_has_a_row_and_evidence(arch: str) -> None:
  rows = costs(Generation(arch).family)
  assert {row.pipe for row in table(arch)} <= set(rows)

def test_wide_waves_take_the_vector_unit_twice_as_long() -> None:
  narrow, wide = Costs(Generation("gfx1100")), Costs(Generation("gfx1100:wave64"))
  for text, expected in (("v_add_f32 v0, v1, v2", {"v": (1, 2)}), ("v_exp_f32 v0, v1", {"v": (1, 2), "t": (4, 8)}),
                         ("s_add_u32 s0, s1, s2", {"s": (1, 1)})):
    one, two = (dict(c.takes(parse(text, c.generation.arch))) for c in (narrow, wide))
    assert {letter: (one[letter], two[letter]) for letter in one} == expected
