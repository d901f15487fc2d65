"""Writes gguf_blocks.txt beside it: blocks of every quantized type, and the elements that the `gguf` package (0.19)
gives them.

  python3 test/golden/make_gguf.py

Needs the packages gguf and numpy. Run by hand; the tests only read the file. A line is: type, bytes in hexadecimal,
float32 elements in hexadecimal (big-endian, as they are read).
"""
from __future__ import annotations
import importlib
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from formats.gguf_files import random_blocks

from tinyhw.llm.blocks import TYPES

def main() -> None:
  gguf, numpy = importlib.import_module("gguf"), importlib.import_module("numpy")
  lines = ["# made by make_gguf.py with the gguf package, from its description of the formats\n"]
  for number, kind in TYPES.items():
    if kind.split is None or kind.name == "Q1_0": continue    # gguf 0.19 does not read Q1_0
    blocks = random_blocks(kind, 2, seed=number)
    array = numpy.frombuffer(blocks, numpy.uint8).reshape(2, kind.size)
    found = gguf.quants.dequantize(array, gguf.GGMLQuantizationType(number)).astype(">f4")
    lines.append(f"{kind.name} {blocks.hex()} {found.tobytes().hex()}\n")
  (Path(__file__).parent / "gguf_blocks.txt").write_text("".join(lines), encoding="ascii")

if __name__ == "__main__": main()
