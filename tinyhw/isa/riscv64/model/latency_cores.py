"""Latency and ports of RISC-V cores. machine/model/core_tables.py has the notation.

Rows marked p have the latency and reciprocal throughput of the model that `source` names, with the ports that give this
throughput. A pipe has the values of its most used instruction: of float32, in one vector register. Rows marked a are
assumed.
"""
from __future__ import annotations

from tinyhw.machine.model.core_tables import CoreText

P670 = """
atomic          3   45        1 p
branch          1   23        1 p
fence           4   45        1 a
fp_add          2   fg        1 p
fp_compare      2   f         1 p
fp_convert      2   fg        1 p
fp_div          6   g|e*6     1 p
fp_fma          4   fg        1 p
fp_minmax       2   fg        1 p
fp_move         2   fg        1 p
fp_mul          3   fg        1 p
fp_sqrt         18  g|e*17    1 p
fp_to_int       2   f         1 p
int_alu         1   0123      1 p
int_div         20  d*19|1    1 p
int_mul         3   1         1 p
int_to_fp       2   1         1 p
load            4   45        1 p
store           1   45        1 p
system          1   0         1 p
trap            0   -         1 a
vec_compare     1   vw        1 p
vec_config      1   0         1 p
vec_div         64  x*63|w    1 p
vec_fixed       6   vw        1 p
vec_fp_add      6   vw        1 p
vec_fp_compare  2   vw        1 p
vec_fp_convert  3   vw        1 p
vec_fp_div      76  w|y*76    1 p
vec_fp_estimate 2   vw        1 p
vec_fp_fma      6   vw        1 p
vec_fp_minmax   1   vw        1 p
vec_fp_move     1   vw        1 p
vec_fp_mul      6   vw        1 p
vec_fp_sqrt     76  w|y*76    1 p
vec_fp_widen    6   vw        1 p
vec_from_int    2   vw        1 p
vec_int         1   vw        1 p
vec_load        8   6         1 p
vec_mask        1   v         1 p
vec_move        1   vw        1 p
vec_mul         6   vw        1 p
vec_muladd      6   vw        1 p
vec_narrow      2   vw        1 p
vec_permute     2   v         1 p
vec_reduce      4   w         1 p
vec_store       8   7         1 p
vec_to_int      2   vw        1 p
vec_widen       6   vw        1 p
"""

U74 = """
atomic          3   A         1 p
branch          3   B         1 p
fence           4   A         1 a
fp_add          5   B         1 p
fp_compare      3   B         1 p
fp_convert      3   B         1 p
fp_div          27  e*26|B    1 p
fp_fma          5   B         1 p
fp_minmax       3   B         1 p
fp_move         3   B         1 p
fp_mul          5   B         1 p
fp_sqrt         27  e*26|B    1 p
fp_to_int       3   B         1 p
int_alu         3   AB        1 p
int_div         34  d*33|B    1 p
int_mul         3   B         1 p
int_to_fp       3   B         1 p
load            3   A         1 p
store           1   A         1 p
system          1   B         1 p
trap            0   -         1 a
"""

LLVM = "LLVM 19, scheduling model"
TABLES = {
  "p670": CoreText("SiFive P670", LLVM, 4, P670,
    {"0": "IEXQ0", "1": "IEXQ1", "2": "IEXQ2", "3": "IEXQ3", "4": "LDST0", "5": "LDST1", "6": "VLD", "7": "VST",
     "d": "divider", "e": "float divider", "f": "FEXQ0", "g": "FEXQ1", "v": "VEXQ0", "w": "VEXQ1",
     "x": "vector divider", "y": "vector float divider"}),
  "u74": CoreText("SiFive U74", LLVM, 2, U74, {"A": "A", "B": "B", "d": "divider", "e": "float divider"}),
}
