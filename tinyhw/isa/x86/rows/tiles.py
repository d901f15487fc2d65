"""x86-64 rows of AMX: tile registers and their unit, in the notation of table.py.

A tile has up to 16 rows of 64 bytes. A product adds the sums of 2 or 4 products of each pair of words, as DOT2 and DOT4
do (docs/design/uop.md). A row of a tile in memory is the index register's bytes after the row before.

Source: Intel SDM volume 1, chapter 18; volume 2, the instructions' pages.
"""
from __future__ import annotations

PRODUCTS = "".join(f"{name}  VEX.L0.{prefix}.0F38.W0 {opcode} /r RMV  t+ t t  tile_dot @{feature}\n"
                   for name, prefix, opcode, feature in (
  ("tdpbf16ps", "F3", "5C", "amx_bf16"), ("tdpbssd", "F2", "5E", "amx_int8"), ("tdpbsud", "F3", "5E", "amx_int8"),
  ("tdpbusd", "66", "5E", "amx_int8"), ("tdpbuud", "NP", "5E", "amx_int8")))

TEXT = """
@ amx_tile
ldtilecfg  VEX.L0.NP.0F38.W0 49 /0    m              tile_config load
sttilecfg  VEX.L0.66.0F38.W0 49 /0    m=             tile_config store
tilerelease  VEX.L0.NP.0F38.W0 49 C0                 tile_config
tilezero  VEX.L0.F2.0F38.W0 49 /r R   t=             tile_zero repeat
tileloadd  VEX.L0.F2.0F38.W0 4B /r    t= sm          tile_load load
tileloaddt1  VEX.L0.66.0F38.W0 4B /r  t= sm          tile_load load
tilestored  VEX.L0.F3.0F38.W0 4B /r   sm= t          tile_store store
""" + PRODUCTS
