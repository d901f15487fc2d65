"""Recipes: floating-point operations and conversions as sequences of several instructions. Most correct the result of
an approximate unit.

The notation is that of machine/select/recipes.py; keys are those of rows and macros. `Arithmetic.perform`
(select/alu.py) emits them.

Accuracy: v_exp_f32, v_log_f32, v_rcp_f32 and v_sqrt_f32 have an error below one unit in the last place (ULP), and flush
subnormal numbers (RDNA3 and MI300 ISA guides). The emulator returns the worst results that this allows
(emulator/amd/semantics/approximate.py). The recipes have these errors:

- exp2: 2**rest, where rest is exact and at most 1/2. The error is below 1 ULP, and powers of whole numbers are exact.
  v_ldexp rounds once more if the result is subnormal.
- exp: the same, with an error of 2**-25 in rest: 0.35 ULP more. The last addition to rest restores infinity and NaN.
- log2: below 1 ULP; subnormal numbers are scaled.
- log: a unit of log2 is at most 1.39 units of its product with log(2). The product is rounded and has a rounded factor:
  0.55 more.
- sqrt: correctly rounded. The residuals of the root's neighbours tell which one is nearest. Zeros and infinity stay, as
  their residuals are NaN or 0.

test/isa/amd/select/test_recipes.py measures them; docs/numerics.md has the bars.
"""
from __future__ import annotations

from tinyhw.machine.select.recipes import parse

TEXT = """
exp2_f32 x
  near   = v_med3_f32 x -256.0 256.0
  whole  = v_rndne_f32 near
  rest   = v_sub_f32 x whole
  power  = v_exp_f32 rest
  scale  = v_cvt_i32_f32 whole
           v_ldexp_f32 power scale
exp_f32 x
  near   = v_med3_f32 x -128.0 128.0
  log2   = v_mul_f32 0xbfb8aa3b near
  minus  = v_rndne_f32 log2
  first  = v_fmamk_f32 near 1.4426950216293335 minus
  rest   = v_fmamk_f32 x 1.925963033500011e-08 first
  power  = v_exp_f32 rest
  scale  = v_cvt_i32_f32 -minus
           v_ldexp_f32 power scale
log2_f32 x
  small  = v_cmp_gt_f32 0x00800000 x
  up     = v_cndmask_b32 0 32 small
  normal = v_ldexp_f32 x up
  log2   = v_log_f32 normal
  down   = v_cvt_f32_i32 up
           v_sub_f32 log2 down
log_f32 x
  small  = v_cmp_gt_f32 0x00800000 x
  up     = v_cndmask_b32 0 32 small
  normal = v_ldexp_f32 x up
  log2   = v_log_f32 normal
  down   = v_cndmask_b32 0 0xc1b17218 small
           v_fmamk_f32 log2 0.6931471824645996 down
sqrt_f32 x
  small  = v_cmp_gt_f32 0x0f800000 x
  up     = v_cndmask_b32 0 32 small
  normal = v_ldexp_f32 x up
  root   = v_sqrt_f32 normal
  below  = v_add_nc_u32 -1 root
  least  = v_fma_f32 -below root normal
  lower  = v_cmp_ge_f32 0 least
  first  = v_cndmask_b32 root below lower
  above  = v_add_nc_u32 1 root
  most   = v_fma_f32 -above root normal
  higher = v_cmp_lt_f32 0 most
  best   = v_cndmask_b32 first above higher
  down   = v_cndmask_b32 0 -16 small
           v_ldexp_f32 best down
sqrt_f64 x
  small  = v_cmp_gt_f64 0x1000000000000000 x
  up     = v_cndmask_b32 0 256 small
  normal = v_ldexp_f64 x up
  rough  = v_rsq_f64 normal
  root   = v_mul_f64 normal rough
  half   = v_mul_f64 rough 0.5
  error  = v_fma_f64 -half root 0.5
  root1  = v_fma_f64 root error root
  half1  = v_fma_f64 half error half
  error1 = v_fma_f64 -root1 root1 normal
  root2  = v_fma_f64 error1 half1 root1
  error2 = v_fma_f64 -root2 root2 normal
  best   = v_fma_f64 error2 half1 root2
  down   = v_cndmask_b32 0 -128 small
  scaled = v_ldexp_f64 best down
  itself = v_cmp_class_f64 normal 0x260
           choose64 itself normal scaled

f32_to_i32 x
  inside = v_cmp_gt_f32 0x4f000000 x
  whole  = v_cvt_i32_f32 x
           v_cndmask_b32 0x80000000 whole inside
f64_to_i32 x
  inside = v_cmp_gt_f64 2147483648.0 x
  whole  = v_cvt_i32_f64 x
           v_cndmask_b32 0x80000000 whole inside
f64_to_u32 x
  whole  = v_trunc_f64 x
  inside = v_cmp_gt_f64 9223372036854775808.0 |whole|
  wraps  = v_mul_f64 whole 2.3283064365386963e-10
  turns  = v_floor_f64 wraps
  rest   = v_fma_f64 turns -4294967296.0 whole
  low    = v_cvt_u32_f64 rest
           v_cndmask_b32 0 low inside
"""

RECIPES = parse(TEXT)
