"""Words whose bytes are the corners of signed and unsigned bytes, for sums of products of bytes."""
from __future__ import annotations
import itertools
import random

CORNERS = (0x80, 0xff, 0x7f, 0x00, 0x01, 0x81)   # -128 or 128, -1 or 255, 127, ...
WORDS = 64

def byte_words(seed: int) -> bytes:
  """Return WORDS words whose bytes are all pairs of corners, in any order, and random ones."""
  rng = random.Random(seed)
  pairs = list(itertools.product(CORNERS, CORNERS))
  rng.shuffle(pairs)
  data = bytes([byte for pair in pairs for byte in pair * 2])
  return data + rng.randbytes(4 * WORDS - len(data))
