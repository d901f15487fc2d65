"""Tensor maps and mbarriers for tests, written out field by field."""
from __future__ import annotations
import struct
from collections.abc import Sequence

BF16, U8, F32 = 10, 0, 7
PATTERN = {0: 16, 1: 256, 2: 512, 3: 1024}   # bytes, by number of a swizzle: none, 32, 64, 128

def tensor_map(address: int, dims: Sequence[int], strides: Sequence[int], box: Sequence[int], kind: int = BF16,
               swizzle: int = 0,
               size: int = 2) -> bytes:
  """128 bytes. strides: bytes of all dimensions but the innermost one."""
  rank = len(dims)
  made = bytearray(128)
  struct.pack_into("<QI", made, 0, address, rank - 1 << 4 | kind << 7 | swizzle << 13)
  for k, stride in enumerate(strides): struct.pack_into("<I", made, 12 + 4 * k, stride // 16 & 0xffffffff)
  struct.pack_into("<H", made, 28, sum((stride // 16 >> 32) << 4 * k for k, stride in enumerate(strides)))
  for k, n in enumerate(dims): struct.pack_into("<I", made, 32 + 4 * k, n - 1)
  total = size
  for k, n in enumerate(box):
    made[55 + k] = n - 1
    total *= n
  struct.pack_into("<I4xI", made, 64, total, PATTERN[swizzle])
  return bytes(made)

def initialise(address: int, count: int) -> list[str]:
  """An mbarrier of `count` arrivals, by UR0 to UR2, which copies see."""
  missing = (1 << 20) - count
  return [f"UMOV UR0, {missing << 1:#x}", f"UMOV UR1, {missing << 11 & 0xffffffff:#x}", f"UMOV UR2, {address:#x}",
          "SYNCS.EXCH.64 URZ, [UR2], UR0",
          "FENCE.VIEW.ASYNC.S"]
