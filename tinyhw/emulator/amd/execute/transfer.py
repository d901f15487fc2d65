"""Common part of memory instructions: the elements that they move, by their names; rows of lanes from and to bytes; and
atomic operations.

An element is the data of one lane: `bytes` of memory and their position in its registers. Sources: ISA guides, chapters
on memory instructions.
"""
from __future__ import annotations
import re
import struct
from array import array
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from tinyhw.arithmetic import decode_bfloat16, encode_bfloat16, encode_float16, round_float32
from tinyhw.emulator.python.floats import HALVES, bits_of_float32, bits_of_float64, float32_of, float64_of
from tinyhw.emulator.python.numerics import max_num, min_num
from tinyhw.isa.amd.table import regs
from tinyhw.named_tuple import NamedTuple

if TYPE_CHECKING:
  from tinyhw.emulator.amd.execute.arithmetic import NamedOperands
  from tinyhw.emulator.amd.execute.state import Wave

def row_at(uses: NamedOperands, name: str) -> int:
  """Return the first row of an operand in a wave."""
  register = uses[name]
  return int(register.index) + 256 * (register.cls.bank is regs.AGPR)

# MI300 and MI350 run with ECC of their registers. So a load into one half destroys the other half, and here it never
# keeps the old value. Source: LLVM, GCNSubtarget::d16PreservesUnusedBits, which is false with SRAM-ECC.
LOST_HALF = 0xffffffff

class TransferElement(NamedTuple):
  """An element. bytes: in memory. signed: sign-extended to 32 bits. half: the half of the register, or None for all of
  it. On RDNA a load keeps the other half."""
  bytes: int
  signed: bool = False
  half: int | None = None

  @property
  def registers(self) -> int: return max(self.bytes // 4, 1)

_WIDTHS = {"8": 1, "16": 2, "32": 4, "64": 8, "96": 12, "128": 16, "256": 32, "512": 64}
_NAME = re.compile(r"(?:(?P<d16>d16_(?:hi_)?))?(?P<sign>[uib])(?P<bits>\d+)(?:_(?P<after>d16(?:_hi)?))?$")

def element_of(words: str) -> TransferElement | None:
  """Return the element of the end of a name: u8, i16, b128, d16_hi_b16, u16_d16_hi; None if it is none."""
  found = _NAME.match(words)
  if found is None or found["bits"] not in _WIDTHS: return None
  placed = found["d16"] or found["after"]
  return TransferElement(_WIDTHS[found["bits"]], found["sign"] == "i", None if placed is None else int("hi" in placed))

def put_lanes(wave: Wave, row: int, element: TransferElement, lanes: Sequence[int], data: Sequence[bytes]) -> None:
  """Write the loaded bytes of each of `lanes` to its registers from `row` on."""
  if element.bytes >= 4: return put_run(wave, row, element, lanes, b"".join(data))
  target, half = wave.u[row], element.half
  lost = LOST_HALF if wave.registers.arch.startswith("gfx9") else 0
  for lane, piece in zip(lanes, data):
    word = int.from_bytes(piece, "little", signed=element.signed) & (0xffffffff if half is None else 0xffff)
    if half is not None:
      other = target[lane] ^ lost
      word = other & 0xffff0000 | word if half == 0 else other & 0xffff | word << 16
    target[lane] = word

def put_run(wave: Wave, row: int, element: TransferElement, lanes: Sequence[int], data: bytes) -> None:
  """Do as put_lanes, for contiguous elements of whole dwords."""
  count = element.bytes // 4
  words = struct.unpack(f"<{len(data) // 4}I", data)
  for i in range(count):
    target = wave.u[row + i]
    if wave.full: target[:] = array("I", words[i::count])
    else:
      for lane, word in zip(lanes, words[i::count]): target[lane] = word

def get_run(wave: Wave, row: int, element: TransferElement) -> bytes:
  """Return the bytes that all lanes store, contiguously; for elements of whole dwords."""
  count = element.bytes // 4
  if count == 1: return bytes(wave.u[row])
  words = array("I", bytes(4 * count * wave.lanes))
  for i in range(count): words[i::count] = array("I", wave.u[row + i].tolist())
  return words.tobytes()

def is_run(addresses: list[int], size: int) -> bool:
  """Return whether elements of whole dwords are contiguous."""
  first, count = addresses[0], len(addresses)
  return (size >= 4 and addresses[-1] == first + (count - 1) * size
          and addresses == list(range(first, first + count * size, size)))

def get_lanes(wave: Wave, row: int, element: TransferElement, lanes: Sequence[int]) -> list[bytes]:
  """Return the bytes that each of `lanes` stores."""
  if element.bytes >= 4:
    rows = [wave.u[row + i].tolist() for i in range(element.bytes // 4)]
    pack = struct.Struct(f"<{len(rows)}I").pack
    return [pack(*[words[lane] for words in rows]) for lane in lanes]
  words, shift, mask = wave.u[row].tolist(), 16 * (element.half or 0), (1 << 8 * element.bytes) - 1
  return [(words[lane] >> shift & mask).to_bytes(element.bytes, "little") for lane in lanes]

def get_words(wave: Wave, row: int, size: int, lanes: Sequence[int]) -> list[int]:
  """Return the bytes that each of `lanes` stores, as numbers of 4 or 8 bytes."""
  return [int.from_bytes(data, "little") for data in get_lanes(wave, row, TransferElement(size), lanes)]

# ***** atomic operations: (old word, operand) -> new word *****

# Names of gfx9 and gfx11 are those of isa/amd, which has one for both.

def _signed(bits: int, choose: Callable[[int, int], int]) -> Callable[[int, int], int]:
  half, mask = 1 << bits - 1, (1 << bits) - 1
  return lambda old, x: choose((old ^ half) - half, (x ^ half) - half) & mask

def _wrapped(bits: int, compute: Callable[[int, int], int]) -> Callable[[int, int], int]:
  return lambda old, x: compute(old, x) & (1 << bits) - 1
def _increment(old: int, x: int) -> int: return 0 if old >= x else old + 1
def _decrement(old: int, x: int) -> int: return x if old == 0 or old > x else old - 1

def _float32(f: Callable[[float, float], float]) -> Callable[[int, int], int]:
  return lambda old, x: bits_of_float32(round_float32(f(float32_of(old), float32_of(x))))

def _float64(f: Callable[[float, float], float]) -> Callable[[int, int], int]:
  return lambda old, x: bits_of_float64(f(float64_of(old), float64_of(x)))

def _pair(decode: Callable[[int], float], encode: Callable[[float], int]) -> Callable[[int, int], int]:
  """Add two packed halves each."""
  return lambda old, x: sum(encode(decode(old >> i & 0xffff) + decode(x >> i & 0xffff)) << i for i in (0, 16))

def _sum(a: float, b: float) -> float: return a + b

ATOMICS: dict[str, tuple[int, Callable[[int, int], int]]] = {
  "pk_add_f16": (4, _pair(HALVES.__getitem__, encode_float16)),
  "pk_add_bf16": (4, _pair(decode_bfloat16, encode_bfloat16)),
  "add_f32": (4, _float32(_sum)), "min_f32": (4, _float32(min_num)), "max_f32": (4, _float32(max_num)),
  "min_num_f32": (4, _float32(min_num)), "max_num_f32": (4, _float32(max_num)),
  "add_f64": (8, _float64(_sum)), "min_f64": (8, _float64(min_num)), "max_f64": (8, _float64(max_num)),
  "min_num_f64": (8, _float64(min_num)), "max_num_f64": (8, _float64(max_num)),
}
for _bits in (32, 64):
  _words: dict[str, Callable[[int, int], int]] = {
    "swap_b": lambda old, x: x, "storexchg_b": lambda old, x: x, "add_u": _wrapped(_bits, lambda old, x: old + x),
    "sub_u": _wrapped(_bits, lambda old, x: old - x), "rsub_u": _wrapped(_bits, lambda old, x: x - old),
    "inc_u": _increment, "dec_u": _decrement,
    "min_i": _signed(_bits, min), "max_i": _signed(_bits, max), "min_u": min, "max_u": max,
    "and_b": lambda old, x: old & x, "or_b": lambda old, x: old | x, "xor_b": lambda old, x: old ^ x,
    "cond_sub_u": lambda old, x: old - x if old >= x else old, "sub_clamp_u": lambda old, x: max(old - x, 0),
    "csub_u": lambda old, x: max(old - x, 0)}
  ATOMICS |= {f"{name}{_bits}": (_bits // 8, function) for name, function in _words.items()}
COMPARE = re.compile(r"(?:cmpswap|cmpstore|cmpst)_[bf](\d+)$")  # takes a new value and one to compare with
