"""Write tinyhw/llm/grids.py: the vectors that codes of GGUF's smallest types stand for.

Run by hand: python3 test/golden/make_gguf_grids.py. Needs the package gguf, which has the tables of ggml-common.h.
"""
from __future__ import annotations
import base64
import importlib
import struct
import textwrap
from pathlib import Path

TARGET = Path(__file__).resolve().parents[2] / "tinyhw/llm/grids.py"
NAMES = ("IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ3_XXS", "IQ3_S", "IQ1_S")
HEAD = '''"""Vectors that codes of GGUF's smallest types stand for. Written by `python3 test/golden/make_gguf_grids.py` from the
tables of ggml-common.h (iq2xxs_grid, iq2xs_grid, iq2s_grid, iq3xxs_grid, iq3s_grid, iq1s_grid).

A row has the levels that elements of a vector take, and the vectors as words of 16 bits in base64. A word has the
places of the elements in the levels: 2 bits for each of 8 elements, or 3 bits for each of 4.
"""

'''

def row(name: str) -> str:
  """Return the row of a type."""
  quantized = getattr(importlib.import_module("gguf.quants"), name)
  quantized.init_grid()
  vectors = quantized.grid.reshape(quantized.grid_shape).astype(int).tolist()
  levels = sorted({x for vector in vectors for x in vector})
  width = 16 // len(vectors[0]) if len(vectors[0]) == 8 else 3
  words = [sum(levels.index(x) << width * k for k, x in enumerate(vector)) for vector in vectors]
  text = base64.b64encode(struct.pack(f"<{len(words)}H", *words)).decode()
  lines = "\n".join(f'    "{line}"' for line in textwrap.wrap(text, 112))
  return f'  "{name}": ({tuple(levels)}, (\n{lines})),\n'

if __name__ == "__main__":
  rows = "".join(map(row, NAMES))
  TARGET.write_text(f"{HEAD}GRIDS: dict[str, tuple[tuple[int, ...], str]] = {{\n{rows}}}\n", encoding="utf-8")
