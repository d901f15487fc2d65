"""Latency and ports of Intel's Skylake-X and Cascade Lake, Ice Lake, Alder Lake P, Granite Rapids, and the generic
table. The notation is that of latency.py.

Ports have Intel's numbers; A is port 10, B is port 11; d is the divider, t the unit of tiles. While 512-bit operations
run, port 1 does no vector work, and the 256-bit units of ports 0 and 1 are one 512-bit unit of port 0. Port 5 has a
second one in the server cores of these tables.
"""
from __future__ import annotations

PORTS = {**{str(i): f"p{i}" for i in range(10)}, "A": "p10", "B": "p11", "d": "divider", "m": "microcode",
         "t": "tile unit"}

SKYLAKE_X = """
int_alu             1   0156         1  p
int_mov             0   -            1  p
int_mov/memory      0   -            1  p
int_bextr           2   06|15        2  p
int_bit_count       3   1            1  p
int_bit_scan        3   1            1  p
int_div             26  0156*9|d*6   10 p   # 32 bits; 64 bits take 42 to 95 cycles
int_mul             3   1            1  p
int_mul_wide        4   1|5          2  p
int_pdep            3   1            1  p
int_rotate_carry    2   06*2|0156    3  p
int_rotate_carry_cl 6   06*5|0156*2  8  p
int_shift           1   06           1  p
int_shift_cl        1   06*2         3  p
int_shift_double    3   1            1  p
int_xchg            2   0156*3       3  p
lea                 1   15           1  p
branch              1   06           1  p
load                5   23           1  p
load/128            6   23           1  p
load/256            7   23           1  p
load/512            8   23           1  p
load_masked         8   23|015       2  p
load_pop            5   23           1  p
store               4   4|237        1  p
store_masked        8   4|237|0      2  p
store_push          4   4|237        1  p
store_nt            8   4|237        1  p
prefetch            5   23           1  p
gather              22  23*8|0|015|5 4  p   # 8 elements of 32 bits
gather/512          26  23*16|0|05|5*2  5  p
scatter             22  4*16|237*16|0|05*2  36 p
atomic              18  m*18         8  p
fence               33  m*33         4  p
pause               140 m*140        4  p
string              30  m*30         10 a
system              100 m*100        20 a
trap                0   -            1  a
nop                 0   -            1  p
vzero               0   -            4  p
blend               1   015          1  p
blend/512           1   05           1  p
blend_variable      2   015*2        2  p
broadcast           3   5            1  p
broadcast/memory    0   -            1  p
compress            6   5*2          2  p
convert             4   01           1  p
convert/512         4   05           1  p
convert_from_int    5   01|5         2  p
convert_half        5   01|5         2  p
convert_half/512    7   05|5         2  p
convert_to_int      6   0|01         2  p
convert_width       5   01|5         2  p
convert_width/512   7   05|5         2  p
div_f32             11  0|d*5        1  p
div_f32/128         11  0|d*3        1  p
div_f32/512         17  0*2|5|d*10   3  p
div_f64             14  0|d*8        1  p
div_f64/128         14  0|d*4        1  p
div_f64/512         24  0*2|5|d*16   3  p
extend              3   5            1  p
extend/128          1   5            1  p
fma                 4   01           1  p
fma/512             4   05           1  p
fp_add              4   01           1  p
fp_add/512          4   05           1  p
fp_compare          4   01           1  p
fp_compare_flags    3   0            1  p
fp_dot              13  01*3|5       4  p
fp_estimate         4   0            1  p
fp_estimate/512     7   0*2|05       3  p
fp_horizontal       6   01|5*2       3  p
fp_min              4   01           1  p
fp_min/512          4   05           1  p
fp_mul              4   01           1  p
fp_mul/512          4   05           1  p
fp_round            8   01*2         2  p
fp_round/512        8   05*2         2  p
int_to_mask         2   5            1  p
int_to_vec          2   5            1  p
int_to_vec/memory   0   -            1  p
mask_logic          1   0            1  p
mask_mov            1   0            1  p
mask_shift          4   5            1  p
mask_test           2   0            1  p
mask_to_int         3   0            1  p
mask_to_vec         3   05           1  p
narrow              4   5*2          2  p
shuffle             1   5            1  p
shuffle_lane        3   5            1  p
shuffle_lane/memory 1   015          1  p   # vinsertf128 and vextractf128 with memory
sqrt_f32            12  0|d*6        1  p
sqrt_f32/128        12  0|d*3        1  p
sqrt_f32/512        20  0*2|5|d*12   3  p
sqrt_f64            16  0|d*12       1  p
sqrt_f64/128        16  0|d*6        1  p
sqrt_f64/512        31  0*2|5|d*24   3  p
vec_alu             1   015          1  p
vec_alu/512         1   05           1  p
vec_compare         1   01           1  p
vec_compare_mask    3   5            1  p
vec_compare_q       3   5            1  p
vec_dot             5   01           1  p
vec_dot/512         5   05           1  p
bf16_dot            6   01           1  a   # known to the processors that have it: Cooper Lake, Sapphire Rapids
bf16_dot/512        6   05           1  a
tile_config         204 m*204        8  p   # those of tiles, too: Sapphire Rapids
tile_dot            52  t*16         1  p
tile_load           45  23*16        10 p
tile_store          16  4*16|237*16  18 p
tile_zero           16  -            1  p
vec_horizontal      3   015|5*2      3  p
vec_logic           1   015          1  p
vec_logic/512       1   05           1  p
vec_mov             0   -            1  p
vec_mov/memory      0   -            1  p
vec_mul             5   01           1  p
vec_mul/512         5   05           1  p
vec_mul_d           10  01*2         2  p
vec_mul_d/512       10  05*2         2  p
vec_mul_q           15  01*3         3  p
vec_mul_q/512       15  05*3         3  p
vec_sad             3   5            1  p
vec_shift           1   01           1  p
vec_shift/512       1   0            1  p
vec_shift_by_xmm    2   01|5         2  p
vec_shift_by_xmm/512  4   0|5        2  p
vec_test            3   0|5          2  p
vec_to_int          2   0            1  p
vec_to_int/memory   0   -            1  p
vec_to_mask         3   0            1  p
"""

# Differences from Skylake-X: a fifth issue slot, a second store, shuffles on port 1 too (not 512 bits), a divider for
# integers.
ICE_LAKE = SKYLAKE_X + """
int_div             15  1*4|0156*3   4  p
int_mov             1   0156         1  p   # moves between general registers are executed (microcode update)
store               4   49|78        1  p
store/512           8   4|78         1  p
store_masked        8   49|78|0      2  p
store_push          4   49|78        1  p
store_nt            8   49|78        1  p
scatter             22  49*16|78*16|0|05*2  36 p
shuffle             1   15           1  p
shuffle/512         1   5            1  p
fp_horizontal       6   01|15*2      3  p
vec_horizontal      3   015|15*2     3  p
"""

# Differences from Ice Lake: six issue slots, a fifth ALU, a third load, additions in three cycles on ports 1 and 5.
ALDER_LAKE = ICE_LAKE + """
int_alu             1   0156A        1  p
int_mov             0   -            1  p
int_div             12  1*4|0156A*3  4  p
int_xchg            2   0156A*3      3  p
lea                 1   0156A        1  p
load                5   23B          1  p
load/128            7   23B          1  p
load/256            8   23B          1  p
load_pop            5   23B          1  p
load_masked         9   23B|015      2  p
prefetch            5   23B          1  p
gather              22  23B*8|0|015|5  25  p
blend_variable      3   015*3        3  p
fp_add              3   15           1  p
fp_add/512          3   05           1  p
"""

# Redwood Cove, measured by test/bench/latency.py in a virtual machine (2 loads a cycle of any size; a 512-bit
# multiplication or conversion lowers the clock by 6 %, which the script shows and these rows leave out). Sums and
# additions of immediates below 1024 are done at renaming.
GRANITE_RAPIDS = ALDER_LAKE + """
int_alu             1   0156A        1  m
int_mov             0   -            1  m
int_mov/memory      0   -            1  m
int_bextr           2   06*2         2  m
int_bit_count       3   1            1  m
int_bit_scan        3   1            1  m
int_div             14  1*4|0156A*3  4  m   # 64 bits with a small quotient
int_mul             3   1            1  m
int_mul_wide        3   1|5          2  m
int_pdep            3   1            1  m
int_shift           1   06           1  m
int_shift_cl        1   06*2         3  m
int_shift_double    3   1            1  m
lea                 1   0156A        1  m   # 2 cycles and ports 015 with a scale
load                5   23           1  m
load/128            7   23           1  m
load/256            8   23           1  m
load/512            8   23           1  m
load_masked         9   23|015*2     3  m
store               4   49|78        1  m
store/512           8   4|78         1  m
store_masked        8   4|78|0       2  m
gather              22  23*8|0|015|5 25 m
gather/512          26  23*16|0|05|5*2  5  m
scatter             22  4*16|78*16|0|05*2  36 m
atomic              18  m*18         8  m
pause               34  m*34         4  m
nop                 0   -            1  m
blend               1   015          1  m
blend/512           1   05           1  m
blend_variable      2   015*3        3  m
broadcast           3   5            1  m
broadcast/memory    0   -            1  m
compress            3   5*2          2  m
convert             4   01           1  m
convert/512         4   05           1  m
convert_from_int    6   01|5         2  m
convert_half        8   01|5         2  m
convert_half/512    8   05|5         2  m
convert_to_int      6   0|01         2  m
convert_width       7   01|5         2  m
convert_width/512   7   05|5         2  m
div_f32             11  0|d*5        1  m
div_f32/128         11  0|d*3        1  m
div_f32/512         17  0*2|5|d*10   3  m
div_f64             13  0|d*8        1  m
div_f64/128         13  0|d*4        1  m
div_f64/512         22  0*2|5|d*16   3  m
extend              3   5            1  m
fma                 4   01           1  m
fma/512             4   05           1  m
fp_add              2   15           1  m   # 3 from and to other units
fp_add/512          3   05           1  m   # 4 on port 5
fp_compare          4   01           1  m
fp_compare_flags    3   0            1  m
fp_dot              13  01*3|5*4     6  m
fp_estimate         4   0            1  m
fp_estimate/512     6   0*2|05       3  m
fp_horizontal       5   01|5*2       3  m
fp_min              4   01           1  m
fp_min/512          4   05           1  m
fp_mul              3   01           1  m
fp_mul/512          3   05           1  m   # 4 on port 5
fp_round            8   01*2         2  m
fp_round/512        8   05*2         2  m
int_to_mask         2   5            1  m
int_to_vec          2   5            1  m
mask_logic          1   0            1  m
mask_mov            1   0            1  m
mask_shift          4   5            1  m
mask_test           2   0            1  m
mask_to_int         2   0            1  m
mask_to_vec         1   05           1  m
narrow              4   5*2          2  m
shuffle             1   15           1  m   # those of floats: 5
shuffle/512         1   5            1  m
shuffle_lane        3   5            1  m
sqrt_f32            12  0|d*6        1  m
sqrt_f32/128        12  0|d*3        1  m
sqrt_f32/512        19  0*2|5|d*12   3  m
sqrt_f64            18  0|d*12       1  m
sqrt_f64/128        18  0|d*6        1  m
sqrt_f64/512        27  0*2|5|d*24   3  m
vec_alu             1   015          1  m
vec_alu/512         1   05           1  m
vec_compare         1   01           1  m
vec_compare_mask    3   5            1  m
vec_compare_q       3   5            1  m
vec_dot             5   01           1  m
vec_dot/512         5   05           1  m
bf16_dot            6   01           1  a
bf16_dot/512        6   05           1  a
vec_horizontal      2   015|15*2     3  m
vec_logic           1   015          1  m
vec_logic/512       1   05           1  m
vec_mov             0   -            1  m
vec_mov/memory      0   -            1  m
vec_mul             5   01           1  m
vec_mul/512         5   05           1  m
vec_mul_d           10  01*2         2  m
vec_mul_d/512       10  05*2         2  m
vec_mul_q           15  01*3         3  m
vec_mul_q/512       15  05*3         3  m
vec_sad             3   5            1  m
vec_shift           1   01           1  m
vec_shift/512       1   0            1  m
vec_shift_by_xmm    1   01|5         2  m
vec_shift_by_xmm/512  1   0|5        2  m
vec_test            3   0|5          2  m
vec_to_int          2   0            1  m
vec_to_mask         3   0            1  m
"""

SOURCE = "published: Intel 248966, Optimization Reference Manual; uops.info; Agner Fog, Instruction tables"

TABLES = {
  "skylakex": ("Intel Skylake-X, Cascade Lake", SOURCE, 4, PORTS, {}, SKYLAKE_X),
  "icelake": ("Intel Ice Lake, Tiger Lake, Rocket Lake", SOURCE, 5, PORTS, {}, ICE_LAKE),
  "alderlake": ("Intel Alder Lake P, Sapphire Rapids", SOURCE, 6, PORTS, {}, ALDER_LAKE),
  "graniterapids": ("Intel Granite Rapids (Redwood Cove)", "measured by test/bench/latency.py; else " + SOURCE, 6, PORTS, {}, GRANITE_RAPIDS),
  "generic": ("a processor without a table of its own", "assumed: all as on Skylake-X, the narrowest core that is still common", 4, PORTS,
              {"p": "a"}, SKYLAKE_X),
}
