"""The tile instructions of the processor in Python (machine.py): all tiles have 16 rows of 64 bytes."""
from __future__ import annotations
import struct
from collections.abc import Callable
from typing import Any

from x86 import lanes as x86_lanes

from tinyhw.arithmetic import bfloat16_product
from tinyhw.isa.x86.table import regs
from tinyhw.machine.ir.inst import MInst

ROWS, ROW_BYTES = 16, 64
WORDS, FLOATS = struct.Struct("<16I"), struct.Struct("<16f")
SIGNS = {"tdpbssd": ("b", "b"), "tdpbsud": ("b", "B"), "tdpbusd": ("B", "b"), "tdpbuud": ("B", "B")}

def prepare(inst: MInst, end: int) -> Callable[[Any], None] | None:
  """Return the step of a tile instruction; None for others."""
  name, form = inst.row.name, inst.row.isa
  tiles = [r.index for r in inst.operands if r is not None and getattr(r, "cls", None) is regs.TMM]
  if name == "ldtilecfg":
    place = x86_lanes.addresser(inst, form.memory, end)
    return lambda m: configure(m, m.memory.read(place(m), 64))
  if name in ("prefetcht1", "sfence"): return lambda m: None    # later tiles load those rows; stores are in order
  if name == "tilerelease": return lambda m: setattr(m, "tiles", None)
  if name == "tilezero": return lambda m: m.tiles.__setitem__(tiles[0], bytes(ROWS * ROW_BYTES))
  if name in ("tileloadd", "tilestored"): return moved(inst, end, tiles[0], name == "tilestored")
  if name != "tdpbf16ps" and name not in SIGNS: return None
  assert len(set(tiles)) == 3, f"{inst}: the tiles of a product differ"
  def multiply(m: Any) -> None: m.tiles[tiles[0]] = product(name, *[m.tiles[k] for k in tiles])
  return multiply

def configure(m: Any, data: bytes) -> None:
  found = struct.unpack("<BB14x16H16B", data)
  assert found[:2] == (1, 0) and found[2:10] == (ROW_BYTES,) * 8 and found[18:26] == (ROWS,) * 8, "other tiles"
  assert not any(found[10:18]) and not any(found[26:]), "more than eight tiles"
  m.tiles = [b"\0" * ROWS * ROW_BYTES] * 8

def moved(inst: MInst, end: int, tile: int, stores: bool) -> Callable[[Any], None]:
  """A load or a store: the index register has the distance of the rows."""
  at = inst.row.isa.memory
  base, index, scale, displacement = inst.operands[at:at + 4]
  def step(m: Any) -> None:
    first, distance = m.general[base.index] + displacement, m.general[index.index] * scale
    places = [first + row * distance & (1 << 64) - 1 for row in range(ROWS)]
    if not stores: m.tiles[tile] = b"".join([m.memory.read(place, ROW_BYTES) for place in places])
    else:
      for row, place in enumerate(places): m.memory.write(place, m.tiles[tile][row * ROW_BYTES:(row + 1) * ROW_BYTES])
  return step

def product(name: str, c: bytes, a: bytes, b: bytes) -> bytes:
  """c + a @ b, of which each word of a and each word of b is a sum of products."""
  rows = [WORDS.unpack_from(a, row * ROW_BYTES) for row in range(ROWS)]
  columns = list(zip(*[WORDS.unpack_from(b, row * ROW_BYTES) for row in range(ROWS)]))
  if name == "tdpbf16ps":
    sums = [FLOATS.unpack_from(c, row * ROW_BYTES) for row in range(ROWS)]
    return b"".join([FLOATS.pack(*[bfloat16_product(x, y, z) for y, z in zip(columns, sums[k])])
                     for k, x in enumerate(rows)])
  first, second = (struct.Struct("<4" + sign) for sign in SIGNS[name])
  total = [WORDS.unpack_from(c, row * ROW_BYTES) for row in range(ROWS)]
  left = [[first.unpack(w.to_bytes(4, "little")) for w in x] for x in rows]
  right = [[second.unpack(w.to_bytes(4, "little")) for w in y] for y in columns]
  return b"".join([WORDS.pack(*[z + sum(p * q for u, v in zip(x, y) for p, q in zip(u, v)) & 0xffffffff
                                for y, z in zip(right, total[k])]) for k, x in enumerate(left)])
