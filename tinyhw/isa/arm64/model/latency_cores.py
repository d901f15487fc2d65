"""Latency and ports of AArch64 cores. machine/model/core_tables.py has the notation.

Rows marked p have the latency and reciprocal throughput of the model or measurement that `source` names, with the ports
that give this throughput. A pipe has the values of its most used instruction, on full vectors. Rows marked a are
assumed. Rows of SVE and of predicates are missing: no kernel uses them.
"""
from __future__ import annotations

from tinyhw.machine.model.core_tables import CoreText

A72 = """
atomic              9   4|5      4 a
branch              1   3        1 p
crypto              3   v        1 a
dot                 5   v        1 a
fp_add              5   v        2 p
fp_compare          5   v        2 p
fp_convert          5   v        2 p
fp_div              34  v*34     2 p
fp_estimate         5   v        2 p
fp_flags            3   vw       1 p
fp_fma              10  v        1 p
fp_minmax           5   v        2 p
fp_mul              5   v        2 p
fp_reduce           9   v*2      3 p
fp_round            5   v        2 p
fp_select           3   vw       1 p
fp_sign             3   vw       1 p
fp_sqrt             34  v*34     2 p
fp_to_int           10  v        2 p
int_alu             1   01       1 p
int_alu_extended    2   1        1 p
int_alu_shifted     1   01       1 p
int_bits            1   01       1 p
int_carry           1   01       1 p
int_crc             3   2        1 a
int_div             19  2*19     1 p
int_field           1   01       1 p
int_flags           1   01       1 p
int_mov             1   01       1 p
int_mul             5   2        1 p
int_select          1   01       1 p
int_shift           1   01       1 p
int_to_fp           10  v        2 p
int_to_vec          8   v        2 p
load                4   4        1 p
load_ordered        4   4        1 p
load_pair           4   4        2 p
load_pair_vector    6   4*2      3 p
load_structure      9   4*2      4 p
load_vector         5   4        1 p
mmla                5   v        1 a
nop                 0   -        1 a
pointer             5   2        1 a
prefetch            4   4        1 p
store               1   5        1 p
store_ordered       1   5        1 p
store_pair          2   5*2      2 p
store_pair_vector   4   5*4      5 p
store_structure     4   5*4      6 p
store_vector        2   5*2      3 p
system              4   -        1 a
trap                0   -        1 a
vec_alu             3   vw       1 p
vec_compare         3   vw       1 p
vec_div             34  v*34     1 a
vec_logic           3   vw       1 p
vec_mla             6   v*2      2 p
vec_mov             3   vw       1 p
vec_mul             6   v*2      2 p
vec_permute         6   v*2      3 p
vec_reduce          7   v        2 p
vec_shift           3   vw       1 p
vec_shift_acc       5   v        1 p
vec_shift_long      4   v        1 p
vec_table           6   v*2      3 p
vec_to_int          6   v        2 p
"""

N1 = """
atomic              7   45|45    4 a
branch              1   3        1 p
crypto              2   v        1 a
dot                 2   vw       1 p
fp_add              2   vw       1 p
fp_compare          2   vw       1 p
fp_convert          4   v*2      2 p
fp_div              10  v*7      1 p
fp_estimate         4   v*2      2 p
fp_flags            2   v        1 p
fp_fma              4   vw       1 p
fp_minmax           2   vw       1 p
fp_mul              3   vw       1 p
fp_reduce           2   vw       1 p
fp_round            4   v*2      2 p
fp_select           2   vw       1 p
fp_sign             2   vw       1 p
fp_sqrt             10  v*7      1 p
fp_to_int           4   v        2 p
int_alu             1   012      1 p
int_alu_extended    2   2        1 p
int_alu_shifted     1   012      1 p
int_bits            1   012      1 p
int_carry           1   012      1 p
int_crc             2   2        1 a
int_div             12  2*5      1 p
int_field           1   012      1 p
int_flags           1   012      1 p
int_mov             1   012      1 p
int_mul             4   2*3      1 p
int_select          1   012      1 p
int_shift           1   012      1 p
int_to_fp           6   v        2 p
int_to_vec          3   v        1 p
load                4   45       1 p
load_ordered        4   45       1 p
load_pair           4   5        2 p
load_pair_vector    7   5        3 p
load_structure      7   5        4 p
load_vector         5   45       2 p
mmla                4   vw       1 a
nop                 0   -        1 a
pointer             5   2        1 a
prefetch            4   45       1 p
store               1   45       2 p
store_ordered       1   45       2 p
store_pair          1   5        3 p
store_pair_vector   3   5*2      6 p
store_structure     5   5        4 p
store_vector        2   5        4 p
system              4   -        1 a
trap                0   -        1 a
vec_alu             2   vw       1 p
vec_compare         2   vw       1 p
vec_div             10  v*7      1 a
vec_logic           2   vw       1 p
vec_mla             5   v*2      2 p
vec_mov             2   vw       1 p
vec_mul             5   v*2      2 p
vec_permute         2   vw       1 p
vec_reduce          3   v        1 p
vec_shift           2   v        1 p
vec_shift_acc       4   v        1 p
vec_shift_long      4   v        1 p
vec_table           2   vw       1 p
vec_to_int          2   v        1 p
"""

V1 = """
atomic              7   678|67   4 a
branch              1   45       1 p
crypto              2   v        1 a
dot                 2   vwxy     1 p
fp_add              2   vwxy     1 p
fp_compare          2   vwxy     1 p
fp_convert          4   v        2 p
fp_div              10  v*4      1 p
fp_estimate         4   vw       1 p
fp_flags            2   v        1 p
fp_fma              4   vwxy     1 p
fp_minmax           2   vwxy     1 p
fp_mul              3   vwxy     1 p
fp_reduce           2   vwxy     1 p
fp_round            4   v        2 p
fp_select           2   vw       1 p
fp_sign             2   vwxy     1 p
fp_sqrt             10  v*4      1 p
fp_to_int           3   v        1 p
int_alu             1   0123     1 p
int_alu_extended    2   23       1 p
int_alu_shifted     1   0123     1 p
int_bits            1   0123     1 p
int_carry           1   0123     1 p
int_crc             2   23       1 a
int_div             12  3*5      1 p
int_field           1   0123     1 p
int_flags           1   123      1 p
int_mov             1   0123     1 p
int_mul             2   3        1 p
int_select          1   0123     1 p
int_shift           1   0123     1 p
int_to_fp           3   v        1 p
int_to_vec          3   v        1 p
load                4   678      1 p
load_ordered        4   678      1 p
load_pair           4   8        2 p
load_pair_vector    6   8        2 p
load_structure      8   8        4 p
load_vector         6   678      1 p
mmla                5   vwxy     1 p
nop                 0   -        1 a
pointer             5   23       1 a
prefetch            4   678      1 p
store               1   67       2 p
store_ordered       1   67       2 p
store_pair          1   67       2 p
store_pair_vector   2   67       2 p
store_structure     4   7        4 p
store_vector        2   67       2 p
system              4   -        1 a
trap                0   -        1 a
vec_alu             2   vwxy     1 p
vec_compare         2   vwxy     1 p
vec_div             12  v*8      1 a
vec_logic           2   vwxy     1 p
vec_mla             4   vw       1 p
vec_mov             2   vwxy     1 p
vec_mul             4   vw       1 p
vec_permute         2   vwxy     1 p
vec_reduce          2   vw       1 p
vec_shift           2   vw       1 p
vec_shift_acc       4   vw       1 p
vec_shift_long      4   vw       1 p
vec_table           2   v        2 p
vec_to_int          2   vwxy     1 p
"""

V2 = """
atomic              7   89A|89   4 a
branch              1   67       1 p
crypto              2   vw       1 a
dot                 3   vwxy     1 p
fp_add              2   vwxy     1 p
fp_compare          2   vwxy     1 p
fp_convert          4   v        2 p
fp_div              10  v*5      1 p
fp_estimate         4   v        2 p
fp_flags            2   v        1 p
fp_fma              4   vwxy     1 p
fp_minmax           2   vwxy     1 p
fp_mul              3   vwxy     1 p
fp_reduce           2   vwxy     1 p
fp_round            4   v        2 p
fp_select           2   vwxy     1 p
fp_sign             2   vwxy     1 p
fp_sqrt             10  v*4      1 p
fp_to_int           3   v        1 p
int_alu             1   012345   1 p
int_alu_extended    2   45       1 p
int_alu_shifted     1   012345   1 p
int_bits            1   012345   1 p
int_carry           1   2345     1 p
int_crc             2   45       1 a
int_div             12  5*12     1 p
int_field           1   012345   1 p
int_flags           1   2345     1 p
int_mov             1   012345   1 p
int_mul             2   5        1 p
int_select          1   012345   1 p
int_shift           1   012345   1 p
int_to_fp           3   v        1 p
int_to_vec          3   v        1 p
load                4   89A      1 p
load_ordered        4   89A      1 p
load_pair           4   89A      2 p
load_pair_vector    6   A        3 p
load_structure      8   A        4 p
load_vector         6   89A      1 p
mmla                6   vwxy     1 p
nop                 0   -        1 a
pointer             5   45       1 a
prefetch            4   89A      1 p
store               1   89       2 p
store_ordered       1   89       2 p
store_pair          1   89       2 p
store_pair_vector   2   9        3 p
store_structure     4   9*2      6 p
store_vector        2   89       2 p
system              4   -        1 a
trap                0   -        1 a
vec_alu             2   vwxy     1 p
vec_compare         2   vwxy     1 p
vec_div             12  v*8      1 a
vec_logic           2   vwxy     1 p
vec_mla             4   vw       1 p
vec_mov             2   vwxy     1 p
vec_mul             4   vw       1 p
vec_permute         2   vwxy     1 p
vec_reduce          2   vw       1 p
vec_shift           2   vw       1 p
vec_shift_acc       4   vw       1 p
vec_shift_long      4   vw       1 p
vec_table           2   vw       1 p
vec_to_int          2   v        2 p
"""

FIRESTORM = """
atomic              7   89A|AB   4 a
branch              1   67       1 a
crypto              3   vw       1 a
dot                 3   vwxy     1 p
fp_add              3   vwxy     1 p
fp_compare          2   vwxy     1 p
fp_convert          3   vwxy     1 p
fp_div              8   v        1 p
fp_estimate         3   v        1 p
fp_flags            2   v        1 p
fp_fma              4   vwxy     1 p
fp_minmax           2   vwxy     1 p
fp_mul              4   vwxy     1 p
fp_reduce           3   vwxy     1 p
fp_round            3   vwxy     1 p
fp_select           2   vw       1 p
fp_sign             2   vwxy     1 p
fp_sqrt             10  v*2      1 p
fp_to_int           13  vw       2 p
int_alu             1   012345   1 p
int_alu_extended    2   345      1 p
int_alu_shifted     1   012345   1 p
int_bits            1   012345   1 p
int_carry           1   345      1 p
int_crc             3   5        1 a
int_div             8   5*2      1 p
int_field           1   012345   1 p
int_flags           1   345      1 p
int_mov             1   012345   1 p
int_mul             13  5        1 p
int_select          1   345      1 p
int_shift           1   012345   1 p
int_to_fp           13  vwx      2 p
int_to_vec          12  vwx      2 p
load                4   89A      1 p
load_ordered        4   89A      1 a
load_pair           4   89A      2 p
load_pair_vector    9   A        2 p
load_structure      1   A        4 p
load_vector         9   89A      1 p
mmla                6   vwxy     1 a
nop                 0   -        1 a
pointer             5   45       1 a
prefetch            4   89A      1 a
store               1   AB       1 p
store_ordered       1   AB       2 a
store_pair          1   AB       1 p
store_pair_vector   1   B        2 p
store_structure     1   B        4 p
store_vector        1   AB       1 p
system              4   -        1 a
trap                0   -        1 a
vec_alu             2   vwxy     1 p
vec_compare         2   vwxy     1 a
vec_div             10  v*8      1 a
vec_logic           2   vwxy     1 p
vec_mla             3   vwxy     1 p
vec_mov             0   vwxy     1 p
vec_mul             3   vwxy     1 p
vec_permute         2   vwxy     1 p
vec_reduce          3   vwxy     1 p
vec_shift           2   vwxy     1 p
vec_shift_acc       3   vwxy     1 p
vec_shift_long      3   vwxy     1 p
vec_table           2   vwxy     1 p
vec_to_int          10  vw       1 p
"""

LLVM, DJ = "LLVM 19, scheduling model", "dougallj.github.io/applecpu, measured on M1; rows marked a: of Neoverse V2"
TABLES = {
  "a72": CoreText("Cortex-A72", LLVM, 3, A72,
    {"0": "I0", "1": "I1", "2": "M", "3": "B", "4": "L", "5": "S", "v": "F0", "w": "F1"}),
  "n1": CoreText("Neoverse N1 and Cortex-A76", LLVM, 4, N1,
    {"0": "I0", "1": "I1", "2": "M", "3": "B", "4": "LS0", "5": "LS1", "v": "V0", "w": "V1"}),
  "v1": CoreText("Neoverse V1", LLVM, 8, V1,
    {"0": "S0", "1": "S1", "2": "M0", "3": "M1", "4": "B0", "5": "B1", "6": "LS0", "7": "LS1",
     "8": "L2", "v": "V0", "w": "V1", "x": "V2", "y": "V3"}),
  "v2": CoreText("Neoverse V2", LLVM, 8, V2,
    {"0": "S0", "1": "S1", "2": "S2", "3": "S3", "4": "M0", "5": "M1", "6": "B0", "7": "B1", "8": "LS0",
     "9": "LS1", "A": "L2", "v": "V0", "w": "V1", "x": "V2", "y": "V3"}),
  "firestorm": CoreText("Apple Firestorm (M1)", DJ, 8, FIRESTORM,
    {"0": "INT0", "1": "INT1", "2": "INT2", "3": "INT3", "4": "INT4", "5": "INT5", "6": "BR0", "7": "BR1", "8": "L0",
     "9": "L1",
     "A": "LS", "B": "S", "v": "FP0", "w": "FP1", "x": "FP2", "y": "FP3"}),
}
