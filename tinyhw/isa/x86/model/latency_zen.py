"""Latency and ports of AMD's Zen 3 and Zen 4. The notation is explained in latency.py.

Zen's floating-point schedulers have pipes FP0 to FP3 for arithmetic, and two for stores and moves to general registers.
A vector load needs one of two buses to them, a vector store the one store path: these are ports here. A 512-bit
operation of Zen 4 occupies a pipe for two cycles.
"""
from __future__ import annotations

PORTS = {"0": "ALU0", "1": "ALU1", "2": "ALU2", "3": "ALU3", "4": "BRU", "A": "AGU0", "B": "AGU1", "C": "AGU2", "u": "FP0", "v": "FP1", "w": "FP2",
         "x": "FP3", "l": "load bus 0", "L": "load bus 1", "s": "store 0", "t": "store 1", "d": "divider 0", "e": "divider 1", "i": "FP to integer",
         "m": "microcode"}

ZEN3 = """
int_alu             1   0123         1  m
int_mov             0   -            1  m   # moves between registers end at renaming; immediates take an ALU
int_mov/memory      0   -            1  m
int_bextr           1   12           1  m
int_bit_count       1   0123         1  m
int_bit_scan        4   m*4          8  m
int_div             12  1*6          2  m
int_mul             3   1            1  m
int_mul_wide        3   1|0123       2  p
int_pdep            3   1            1  m
int_rotate_carry    1   1            1  m
int_rotate_carry_cl 3   12*4         7  p
int_shift           1   12           1  m
int_shift_cl        1   12           1  m
int_shift_double    2   12*3         6  m
int_xchg            0   -            2  m
lea                 1   0123         1  m
branch              1   04           1  p
load                4   ABC          1  m
load/128            7   ABC|lL       1  m
load/256            7   ABC|lL       1  m
load_masked         8   ABC|lL|uvwx  1  m
load_pop            4   ABC          1  p
store               4   ABC|st       1  m
store/128           8   ABC|s        1  m
store/256           8   ABC|s        1  m
store_masked        8   m*12         18 m
store_push          4   ABC|st       1  p
store_nt            8   ABC|s        1  a
prefetch            4   ABC          1  p
gather              20  uvwx*38      39 m
atomic              7   m*6          4  m
fence               30  m*30         4  a
pause               77  m*77         1  m
string              30  m*30         10 a
system              40  m*40         20 a
trap                0   -            1  a
nop                 0   -            1  m
vzero               0   -            1  p
blend               1   uvwx         1  m
blend_variable      1   uv           1  m
broadcast           2   v            1  m
broadcast/memory    0   -            1  m
convert             3   wx           1  m
convert_from_int    6   w|wx         2  m
convert_half        4   w|x          2  m
convert_to_int      7   wx|i         2  m
convert_width       4   wx|v         2  m
div_f32             10  v|de*7       1  m
div_f64             13  v|de*9       1  m
extend              4   v|vw         2  m
extend/128          1   vw           1  p
fma                 4   uv           1  m
fp_add              3   wx           1  m
fp_compare          1   uv           1  m
fp_compare_flags    7   uv|i         2  m
fp_dot              15  uv|wx*3|v*4  8  m
fp_estimate         3   uv           1  m
fp_horizontal       6   wx|v*2       4  m
fp_min              1   uv           1  m
fp_mul              3   uv           1  m
fp_round            3   wx           1  m
int_to_vec          4   w            1  m
int_to_vec/memory   0   -            1  p
shuffle             1   vw           1  m
shuffle/memory      1   vw           1  p
shuffle_lane        3   v            1  m  # measured: vperm2f128 and vextractf128 3, vinsertf128 2, vpermps 3 (1.35 cycles each)
shuffle_lane/memory 1   vw           1  p
sqrt_f32            14  v|de*10      1  m
sqrt_f64            20  v|de*17      1  m
vec_alu             1   uvwx         1  m
vec_compare         1   uvwx         1  m
vec_compare_q       1   uvwx         1  m
vec_horizontal      2   uvwx|v*2     4  m
vec_logic           1   uvwx         1  m
vec_mov             0   -            1  m
vec_mov/memory      0   -            1  m
vec_mul             3   ux           1  m
vec_mul_d           3   ux           1  m
vec_sad             3   ux           1  m
vec_shift           1   vw           1  m
vec_shift_by_xmm    1   vw           1  m
vec_test            7   v|i          2  m
vec_to_int          2   i            1  m   # with int_to_vec 6, with a load 9: the sums are measured
vec_to_int/memory   0   -            1  p
"""

# Differences from Zen 3, and the rows of AVX-512. Later rows of a pipe replace earlier ones.
ZEN4 = ZEN3 + """
bf16_dot            6   uv           1  m
compress            4   vw*2         2  p
scatter             20  m*16         40 p
int_to_mask         3   v            1  p
mask_logic          1   uv           1  p
mask_mov            1   uv           1  p
mask_shift          4   v            1  p
mask_test           1   uv|i         2  p
mask_to_int         3   i            1  p
mask_to_vec         1   uv           1  p
vec_to_mask         4   uv           1  p
narrow              4   vw|vw        2  p
vec_compare_mask    3   uv           1  p
vec_dot             4   uv           1  p
vec_mul_q           3   uv           1  p
load/512            8   ABC*2|lL*2   1  p
store/512           8   ABC*2|s*2    2  p
double/512  blend broadcast convert convert_half convert_width div_f32 div_f64 extend fma fp_add fp_compare fp_estimate fp_min fp_mul fp_round
double/512  gather load_masked scatter shuffle shuffle_lane sqrt_f32 sqrt_f64 vec_alu vec_compare_mask vec_dot vec_logic vec_mul vec_mul_d vec_mul_q
double/512  bf16_dot vec_sad vec_shift vec_shift_by_xmm narrow compress mask_to_vec vec_to_mask
"""

TABLES = {
  "zen3": ("AMD Zen 3 (family 19h, models 00h-0fh and 20h-5fh)",
           "measured by test/bench/latency.py on an EPYC of family 25, model 1; else published: AMD 56665, Software Optimization Guide; uops.info",
           6, PORTS, {}, ZEN3),
  "zen4": ("AMD Zen 4 (family 19h, models 10h-1fh and 60h-afh)",
           "published: AMD 57647, Software Optimization Guide; uops.info; assumed: what is not listed there is as on Zen 3",
           6, PORTS, {"m": "a"}, ZEN4),
}
