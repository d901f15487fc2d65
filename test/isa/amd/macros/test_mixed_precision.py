"""The expansion of mixed precision macros to instructions."""
from __future__ import annotations

import pytest

from tinyhw.isa.amd.asm.syntax import show
from tinyhw.isa.amd.macros.macros import instructions
from tinyhw.isa.amd.macros.mixed_precision import NOTHING, UNIT, Fused, Pair, Term, fused_row, rounded_row
from tinyhw.isa.amd.table import regs
from tinyhw.isa.amd.table.form import Generation
from tinyhw.machine.ir.inst import MInst, Reg

def texts(made: MInst) -> list[str]: return [show(inst) for inst in instructions(made)]

def two(index: int) -> Reg: return regs.reg(regs.V[2], index)

@pytest.mark.parametrize("arch", ("gfx942", "gfx950", "gfx1100", "gfx1200", "gfx1201"))
def test_low_halves_come_before_high_ones(arch: str) -> None:
  x, converted = Term(0, 1, 1, True), Fused(Term(1, 0), UNIT, NOTHING)
  words = (Fused(Term(0, 0, 0), Term(0, 0, 1), Term(1, 0)), converted), (converted, Fused(x, UNIT, x))
  row = rounded_row(Generation(arch), regs.V[2], (regs.V[2], regs.V[1]), words)
  assert texts(MInst(row, [two(4), two(0), regs.v(2)])) == [
    "v_fma_mixlo_f16 v4, v0, v0, v2 op_sel:[0,1,0] op_sel_hi:[1,1,0]", "v_fma_mixlo_f16 v5, v2, 1.0, neg(0)",
    "v_fma_mixhi_f16 v4, v2, 1.0, neg(0)", "v_fma_mixhi_f16 v5, -v1, 1.0, -v1 op_sel:[1,0,1] op_sel_hi:[1,0,1]"]

def test_a_pair_names_the_half_and_the_sign_of_each() -> None:
  low, high = Term(0, 0, 1), Term(0, 0, 0, True)
  pair = Pair("v_pk_mul_f16", ((low, high), (Term(-1, 0x4000, 0), Term(-1, 0x4000, 0))))
  row = rounded_row(Generation("gfx1100"), regs.V[1], (regs.V[1],), (pair,))
  assert texts(MInst(row, [regs.v(1), regs.v(0)])) == ["v_pk_mul_f16 v1, v0, 2.0 op_sel:[1,0] op_sel_hi:[0,0] "
                                                       "neg_hi:[1,0]"]

@pytest.mark.parametrize("term, text", [
  (Term(0, 0, 0), "v_cvt_f32_f16_e32 v1, v0"),
  (Term(0, 0, 1), "v_fma_mix_f32 v1, v0, 1.0, neg(0) op_sel:[1,0,0] op_sel_hi:[1,0,0]"),
  (Term(0, 0, 0, True), "v_fma_mix_f32 v1, -v0, 1.0, neg(0) op_sel_hi:[1,0,0]")])
def test_conversions_of_one_element(term: Term, text: str) -> None:
  row = fused_row(Generation("gfx1100"), (regs.V[1],), Fused(term, UNIT, NOTHING))
  assert texts(MInst(row, [regs.v(1), regs.v(0)])) == [text]
