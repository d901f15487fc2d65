"""Recipes of float32 operations: the special function unit, and the instructions that round its results correctly.

The notation is that of machine/select/recipes.py. The keys are macros. `Arithmetic.perform` (select/alu.py) emits them.

MUFU.RCP and MUFU.RSQ are off by a unit or two, and treat subnormal numbers as zeros. One step of Newton's method makes
their results correctly rounded, for every mantissa. NVIDIA's own code for rcp.rn and sqrt.rn is that step, and the
errors of the emulator's units are within its bounds. A quotient is a product with a correctly rounded reciprocal and
one step by the remainder (Markstein 1990, theorem 8.2).

That holds if no intermediate result is too large or too small. So roots are scaled. If some lane has a number outside
of 2**-60 to 2**60 (and 0), the whole warp divides again (macros/floats.py).

div_constant_f32 is the same for a divisor of common size with a known reciprocal. In div_integer_f32 the dividend was
an integer of at most 32 bits (so no -0). Neither needs the check.

EX2 and LG2 are off by 2 units and by 2**-22, more than docs/numerics.md allows. Expressions of codegen replace them,
except for an EXP2 with the argument ROUGH.
"""
from __future__ import annotations

from tinyhw.machine.select.recipes import parse

TEXT = """
sqrt_f32 x
  small  = lt_f32 x 5.421010862427522e-20
  normal = mul_f32_if x small x 18446744073709551616.0
  rough  = rsq_f32 normal
  root   = mul_f32 normal rough
  half   = mul_f32 rough 0.5
  error  = fma_f32 -root root normal
  best   = fma_f32 error half root
  zero   = eq_f32 normal 0
  itself = eq_or_f32 normal 0x7f800000 zero
  whole  = choose itself normal best
           mul_f32_if whole small whole 2.3283064365386963e-10
reciprocal_f32 x
  large  = gtu_f32 |x| 0x7e800000
  rare   = lt_or_f32 |x| 0x00800000 large
  some   = any_lane rare
  rough  = rcp_f32 x
  error  = fma_f32 -x rough 1.0
  best   = fma_f32 rough error rough
           rcp_rarely best some x
div_f32 x y
  tiny   = lt_f32 |x| 0x21800000
  small  = ne_and_f32 x 0 tiny
  large  = gtu_or_f32 |x| 0x5d800000 small
  under  = lt_or_f32 |y| 0x21800000 large
  rare   = gtu_or_f32 |y| 0x5d800000 under
  some   = any_lane rare
  rough  = rcp_f32 y
  error  = fma_f32 -y rough 1.0
  better = fma_f32 rough error rough
  first  = mul_f32 x better
  rest   = fma_f32 -y first x
  best   = fma_f32 rest better first
  signed = with_sign_f32 best first
           div_rarely signed some x y
div_constant_f32 x y inverse
  tiny   = lt_f32 |x| 0x21800000
  small  = ne_and_f32 x 0 tiny
  rare   = gtu_or_f32 |x| 0x5d800000 small
  some   = any_lane rare
  first  = mul_f32 x inverse
  rest   = fma_f32 -first y x
  best   = fma_f32 rest inverse first
  signed = with_sign_f32 best first
           div_rarely signed some x y
div_integer_f32 x y inverse
  first  = mul_f32 x inverse
  rest   = fma_f32 -first y x
           fma_f32 rest inverse first
"""

RECIPES = parse(TEXT)
