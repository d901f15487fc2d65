"""GGUF for tests: random blocks of each type, blocks decoded one element after the other, and a writer of files."""
from __future__ import annotations
from array import array
import base64
import math
import random
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from tinyhw.llm.blocks import IQ4, MXFP4, GgmlType
from tinyhw.llm.grids import GRIDS

# Where blocks have their float16 scales
SCALES = {"Q4_0": (0,), "Q4_1": (0, 2), "Q5_0": (0,), "Q5_1": (0, 2), "Q8_0": (0,), "Q2_K": (80, 82), "Q3_K": (108,),
          "Q4_K": (0, 2), "Q5_K": (0, 2),
          "Q6_K": (208,), "IQ4_NL": (0,), "IQ4_XS": (0,), "MXFP4": (), "IQ2_XXS": (0,), "IQ2_XS": (0,), "IQ2_S": (0,),
          "IQ3_XXS": (0,), "IQ3_S": (0,), "IQ1_S": (0,), "TQ1_0": (52,), "TQ2_0": (64,), "Q1_0": (0,)}

def random_blocks(kind: GgmlType, n: int, seed: int = 0) -> bytes:
  """n blocks of random bytes, whose scales are numbers of usual sizes."""
  rng = random.Random(seed)
  data = bytearray(rng.randbytes(n * kind.size))
  for block in range(n):
    for at in SCALES.get(kind.name, ()): struct.pack_into("<e", data, block * kind.size + at, rng.gauss(0, 1))
    if kind.name == "IQ1_M": data[block * kind.size + 55] = 0x30 | data[block * kind.size + 55] & 15   # exponent 12
  return bytes(data)

# ***** one block after the other, as the descriptions of the formats have it: slow, and nothing shared with
# tinyhw/llm/blocks.py *****

def f32(x: float) -> float:
  """Rounded to float32."""
  try: return float(struct.unpack("<f", struct.pack("<f", x))[0])
  except OverflowError: return math.copysign(math.inf, x)
def half(b: bytes, at: int) -> float: return float(struct.unpack_from("<e", b, at)[0])
def int8(x: int) -> int: return x - 256 if x > 127 else x

def legacy(b: bytes, low: int, high: int | None, offset: int, minimum: bool) -> Iterator[float]:
  """Q4_0 to Q5_1: 16 bytes of nibbles from `low` on; a fifth bit in four bytes from `high` on; minus offset, or plus a
  minimum."""
  fifth = 0 if high is None else int.from_bytes(b[high:high + 4], "little")
  for k in range(32):
    q = b[low + k % 16] >> (0 if k < 16 else 4) & 15 | (fifth >> k & 1) << 4
    yield half(b, 0) * q + half(b, 2) if minimum else half(b, 0) * (q - offset)

def q2_k(b: bytes) -> Iterator[float]:
  for k in range(256):
    part, shift, place = k // 128, k % 128 // 32 * 2, k % 32
    scale = b[k // 16]
    yield f32(half(b, 80) * (scale & 15) * (b[16 + part * 32 + place] >> shift & 3)) - half(b, 82) * (scale >> 4)

def q3_k(b: bytes) -> Iterator[float]:
  for k in range(256):
    part, j, place, group = k // 128, k % 128 // 32, k % 32, k // 16
    q = (b[32 + part * 32 + place] >> 2 * j & 3) - (0 if b[place] >> (part * 4 + j) & 1 else 4)
    low = b[96 + group] & 15 if group < 8 else b[96 + group - 8] >> 4
    yield half(b, 108) * ((low | (b[104 + group % 4] >> 2 * (group // 4) & 3) << 4) - 32) * q

def scale_and_minimum(s: bytes, j: int) -> tuple[int, int]:
  if j < 4: return s[j] & 63, s[j + 4] & 63
  return s[j + 4] & 15 | (s[j - 4] >> 6) << 4, s[j + 4] >> 4 | (s[j] >> 6) << 4

def q45_k(b: bytes, fifth: bool) -> Iterator[float]:
  for k in range(256):
    group, place = k // 32, k % 32
    scale, minimum = scale_and_minimum(b[4:16], group)
    q = b[(48 if fifth else 16) + group // 2 * 32 + place] >> 4 * (group % 2) & 15
    if fifth: q |= (b[16 + place] >> group & 1) << 4
    yield half(b, 0) * scale * q - half(b, 2) * minimum

def q6_k(b: bytes) -> Iterator[float]:
  for k in range(256):
    part, j, place = k // 128, k % 128 // 32, k % 32
    low = b[part * 64 + j % 2 * 32 + place] >> 4 * (j // 2) & 15
    q = low | (b[128 + part * 32 + place] >> 2 * j & 3) << 4
    yield half(b, 208) * int8(b[192 + k // 16]) * (q - 32)

def iq4_xs(b: bytes) -> Iterator[float]:
  for k in range(256):
    group, place = k // 32, k % 32
    scale = b[4 + group // 2] >> 4 * (group % 2) & 15 | (int.from_bytes(b[2:4], "little") >> 2 * group & 3) << 4
    yield half(b, 0) * (scale - 32) * IQ4[b[8 + group * 16 + place % 16] >> (0 if place < 16 else 4) & 15]

def mxfp4(b: bytes) -> Iterator[float]:
  for k in range(32): yield MXFP4[b[1 + k % 16] >> (0 if k < 16 else 4) & 15] * 2.0 ** (b[0] - 128)

def vector(name: str, index: int) -> list[int]:
  """The vector of an index, from the words of grids.py."""
  levels, text = GRIDS[name]
  word = int.from_bytes(base64.b64decode(text)[2 * index:2 * index + 2], "little")
  return [levels[word >> 2 * k & 3] for k in range(8)] if len(levels) < 5 else [levels[word >> 3 * k & 7]
                                                                               for k in range(4)]

def even(seven: int) -> int: return seven | (seven.bit_count() & 1) << 7

def iq2(b: bytes, name: str) -> Iterator[float]:
  for k in range(256):
    group, eighth = k // 32, k // 8
    if name == "IQ2_XXS":
      word = int.from_bytes(b[6 + 8 * group:10 + 8 * group], "little")
      index, signs, factor = b[2 + 8 * group + eighth % 4], even(word >> 7 * (eighth % 4) & 127), word >> 28
    elif name == "IQ2_XS":
      word = int.from_bytes(b[2 + 2 * eighth:4 + 2 * eighth], "little")
      index, signs, factor = word & 511, even(word >> 9), b[66 + group] >> k // 16 % 2 * 4 & 15
    else:
      index, signs = b[2 + eighth] | (b[66 + group] >> eighth % 4 * 2 & 3) << 8, b[34 + eighth]
      factor = b[74 + group] >> k // 16 % 2 * 4 & 15
    yield half(b, 0) * (0.5 + factor) / 4 * vector(name, index)[k % 8] * (-1 if signs >> k % 8 & 1 else 1)

def iq3(b: bytes, name: str) -> Iterator[float]:
  for k in range(256):
    group, fourth = k // 32, k // 4
    if name == "IQ3_XXS":
      word = int.from_bytes(b[66 + 4 * group:70 + 4 * group], "little")
      index, signs, factor = b[2 + fourth], even(word >> k // 8 % 4 * 7 & 127), (0.5 + (word >> 28)) / 2
    else:
      index, signs = b[2 + fourth] | (b[66 + group] >> fourth % 8 & 1) << 8, b[74 + k // 8]
      factor = 1 + 2 * (b[106 + group // 2] >> group % 2 * 4 & 15)
    yield half(b, 0) * factor * vector(name, index)[k % 4] * (-1 if signs >> k % 8 & 1 else 1)

def iq1_s(b: bytes) -> Iterator[float]:
  for k in range(256):
    word = int.from_bytes(b[34 + k // 32 * 2:36 + k // 32 * 2], "little")
    index = b[2 + k // 8] | (word >> k // 8 % 4 * 3 & 7) << 8
    yield half(b, 0) * (2 * (word >> 12 & 7) + 1) * (vector("IQ1_S", index)[k % 8] + (-1 if word >> 15 else 1) / 8)

def iq1_m(b: bytes) -> Iterator[float]:
  words = [int.from_bytes(b[at:at + 2], "little") for at in (48, 50, 52, 54)]
  scale = half(sum(word >> 12 << 4 * k for k, word in enumerate(words)).to_bytes(2, "little"), 0)
  for k in range(256):
    code = b[32 + k // 16] >> k // 8 % 2 * 4 & 15
    factor = words[k // 64] >> k // 16 % 4 * 3 & 7
    element = vector("IQ1_S", b[k // 8] | (code & 7) << 8)[k % 8] + (-1 if code > 7 else 1) / 8
    yield scale * (2 * factor + 1) * element

def tq1_0(b: bytes) -> Iterator[float]:
  for begin, end, count in ((0, 32, 5), (32, 48, 5), (48, 52, 4)):
    for digit in range(count):
      for x in b[begin:end]: yield half(b, 52) * ((x * 3**digit % 256 * 3 >> 8) - 1)

DECODERS: dict[str, Callable[[bytes], Iterator[float]]] = {
  "Q4_0": lambda b: legacy(b, 2, None, 8, False), "Q4_1": lambda b: legacy(b, 4, None, 0, True),
  "Q5_0": lambda b: legacy(b, 6, 2, 16, False),
  "Q5_1": lambda b: legacy(b, 8, 4, 0, True), "Q8_0": lambda b: (half(b, 0) * int8(x) for x in b[2:]), "Q2_K": q2_k,
  "Q3_K": q3_k,
  "Q4_K": lambda b: q45_k(b, False), "Q5_K": lambda b: q45_k(b, True), "Q6_K": q6_k,
  "IQ4_NL": lambda b: (half(b, 0) * IQ4[b[2 + k % 16] >> (0 if k < 16 else 4) & 15] for k in range(32)),
  "IQ4_XS": iq4_xs, "MXFP4": mxfp4,
  "IQ2_XXS": lambda b: iq2(b, "IQ2_XXS"), "IQ2_XS": lambda b: iq2(b, "IQ2_XS"), "IQ2_S": lambda b: iq2(b, "IQ2_S"),
  "IQ3_XXS": lambda b: iq3(b, "IQ3_XXS"), "IQ3_S": lambda b: iq3(b, "IQ3_S"), "IQ1_S": iq1_s, "IQ1_M": iq1_m,
  "TQ1_0": tq1_0,
  "TQ2_0": lambda b: (half(b, 64) * ((b[k // 128 * 32 + k % 32] >> k % 128 // 32 * 2 & 3) - 1) for k in range(256)),
  "Q1_0": lambda b: (half(b, 0) * (1 if b[2 + k // 8] >> k % 8 & 1 else -1) for k in range(128)),
}

def decoded(kind: GgmlType, data: bytes) -> list[float]:
  """The elements of blocks, as float32 numbers."""
  return [f32(x) for i in range(0, len(data), kind.size) for x in DECODERS[kind.name](data[i:i + kind.size])]

# ***** files *****

def text(s: str | bytes) -> bytes:
  raw = s if isinstance(s, bytes) else s.encode()
  return struct.pack("<Q", len(raw)) + raw

def value(x: Any) -> bytes:
  """Type and value of one of metadata's; ints become int32 where they fit, else int64."""
  kind, raw = _value(x)
  return struct.pack("<I", kind) + raw

def _value(x: Any) -> tuple[int, bytes]:
  if isinstance(x, bool): return 7, struct.pack("<?", x)
  if isinstance(x, int) and -1 << 31 <= x < 1 << 31:
    return (4, struct.pack("<I", x)) if x >= 0 else (5, struct.pack("<i", x))
  if isinstance(x, int): return 11, struct.pack("<q", x)
  if isinstance(x, float): return 6, struct.pack("<f", x)
  if isinstance(x, (str, bytes)): return 8, text(x)
  if isinstance(x, array): return 9, struct.pack("<IQ", {"i": 5, "f": 6}[x.typecode], len(x)) + x.tobytes()
  items = [_value(item) for item in x]
  kinds = {kind for kind, _ in items} or {4}
  assert len(kinds) == 1, "the items of an array have one type"
  return 9, struct.pack("<IQ", kinds.pop(), len(items)) + b"".join(raw for _, raw in items)

def write(metadata: Mapping[str, Any], tensors: Mapping[str, tuple[Sequence[int], int, bytes]], version: int = 3,
          alignment: int = 32) -> bytes:
  """A file. tensors: shape (outermost first), type and bytes by name."""
  head = [b"GGUF", struct.pack("<IQQ", version, len(tensors), len(metadata))]
  head += [text(key) + value(x) for key, x in metadata.items()]
  offset, parts = 0, []
  for name, (shape, kind, raw) in tensors.items():
    head.append(text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *reversed(shape), kind, offset))
    padded = raw + bytes(-len(raw) % alignment)
    parts.append(padded)
    offset += len(padded)
  start = b"".join(head)
  return start + bytes(-len(start) % alignment) + b"".join(parts)
