"""Inputs of the kernels of test/golden/amd_llvm.c, and checksums of their results, in which all NaNs are one."""
from __future__ import annotations
import random
import struct
import zlib

WORDS = 2048  # of each buffer
SHOWN = 512   # of the result, that kernels may write
SPECIAL = (0, 0x80000000, 1, 0x80000001, 0x7fffff, 0x800000, 0x3f800000, 0xbf800000, 0x3f800001, 0x3f7fffff, 0x40490fdb,
           0x7f7fffff, 0xff7fffff,
           0x7f800000, 0xff800000, 0x7fc00000, 0x4b800000, 0x4f000000, 0x34000000, 0x00ffffff, 0x41200000)

def inputs(name: str) -> tuple[list[int], list[int]]:
  """Both inputs of a kernel."""
  return words(random.Random(name + "a")), words(random.Random(name + "b"))

def words(source: random.Random) -> list[int]:
  found = []
  for _ in range(WORDS):
    kind = source.randrange(10)
    if kind < 3: found.append(source.choice(SPECIAL))
    elif kind < 6: found.append(int(struct.unpack("<I", struct.pack("<f", source.uniform(-100, 100)))[0]))
    else: found.append(source.randrange(300) if kind == 6 else source.getrandbits(32))
  return found

def checksums(name: str, results: list[int]) -> list[str]:
  """One for each 16 words. The name begins with the type of the results."""
  kind, shown = name.split("_")[0], results[:SHOWN]
  if kind == "f32": shown = [0x7fc00000 if x & 0x7fffffff > 0x7f800000 else x for x in shown]
  elif kind == "f16": shown = [0x7e00 if x & 0x7fff > 0x7c00 else x for x in shown]
  elif kind == "f64":
    for i in range(0, SHOWN, 2):
      if (shown[i] | shown[i + 1] << 32) & 0x7fffffffffffffff > 0x7ff0000000000000: shown[i:i + 2] = [0, 0x7ff80000]
  return [f"{zlib.crc32(struct.pack('<16I', *shown[i:i + 16])):08x}" for i in range(0, SHOWN, 16)]
