"""Matrix instructions: WMMA of RDNA3 and RDNA4, MFMA of CDNA. This is the lane and register of each element, and the
product.

D = A @ B + C for each block. The sum of an element is exact, as far as doubles go, and rounded once. Hardware adds in
an order of its own, so floats may differ in the last place. Sparse, scaled, and broadcasting forms (SWMMAC, SMFMAC,
f8f6f4, cbsz, abid, blgp) are not emulated. Layouts are those of AMD's matrix instruction calculator, by which
test/emulator/amd/execute/test_matrix.py checks them. With gfx950's longer K a lane has 8 consecutive elements.
"""
from __future__ import annotations
import math
import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from tinyhw.arithmetic import decode_bfloat16, encode_bfloat16, encode_float16, round_float32
from tinyhw.dtype import decode_float, dtypes
from tinyhw.emulator.amd.execute.transfer import row_at
from tinyhw.emulator.python.floats import HALVES, bits_of_float32, bits_of_float64, float32_of, float64_of
from tinyhw.emulator.errors import StrictError, UnknownInstruction
from tinyhw.machine.ir.inst import Reg
from tinyhw.named_tuple import NamedTuple
from tinyhw.threads import once

if TYPE_CHECKING:
  from tinyhw.emulator.amd.execute.arithmetic import Mode, NamedOperands
  from tinyhw.emulator.amd.execute.state import Wave

_NAME = re.compile(r"v_(wmma|mfma)_(\w+?)_(\d+)x(\d+)x(\d+)_(?:(\d+)b_)?(\w+)$")
WIDTHS = {"f64": 64, "f32": 32, "xf32": 32, "f16": 16, "bf16": 16, "fp8": 8, "bf8": 8, "i8": 8, "iu8": 8, "iu4": 4,
          "i32": 32}

class Product(NamedTuple):
  """A matrix instruction by its name. a, b: types of the operands, d: of C and D."""
  family: str
  m: int
  n: int
  k: int
  blocks: int
  a: str
  b: str
  d: str

  @property
  def passes(self) -> int:
    """Return a quarter of the cycles of an MFMA. Its hazards depend on it."""
    if self.d == "f64": return 8 if self.m == 16 else 4
    return {4: 2, 16: 4, 32: 8}[self.m] * (2 if self.m != 4 and (self.blocks > 1 or self.a == "f32") else 1)

class ElementPosition(NamedTuple):
  """Place of an element: block, line (row of A, column of B), depth; lane, register, lowest bit."""
  block: int
  line: int
  depth: int
  lane: int
  register: int
  shift: int

@once
def product_of(name: str) -> Product | None:
  """Return the product of an instruction's name, or None if it is no dense product."""
  found = _NAME.match(name)
  if found is None: return None
  operands = found[7].split("_")
  if any(operand not in WIDTHS for operand in operands): return None
  return Product(found[1], int(found[3]), int(found[4]), int(found[5]), int(found[6] or 1), operands[0], operands[-1],
                 found[2])

# ***** layouts *****

@once
def operand_places(product: Product, kind: str, lanes: int, rdna3: bool) -> tuple[ElementPosition, ...]:
  """Return the places of the elements of A (of B with columns for rows)."""
  if product.family == "mfma": return tuple(_mfma_operand(product, kind))
  return tuple(_wmma3_operand(product, kind, lanes) if rdna3 else _wmma4_operand(product, kind, lanes))

def _mfma_operand(product: Product, kind: str) -> Iterator[ElementPosition]:
  """Lanes count rows first, then blocks, then parts of the depth. A lane's elements are consecutive."""
  bits, groups = WIDTHS[kind], 64 // product.m // product.blocks
  each = product.k // groups
  for lane in range(64):
    block, part = lane // product.m % product.blocks, lane // product.m // product.blocks
    for i in range(each):
      yield ElementPosition(block, lane % product.m, part * each + i, lane, i * bits // 32, i * bits % 32)

def _wmma3_operand(product: Product, kind: str, lanes: int) -> Iterator[ElementPosition]:
  """Each group of 16 lanes holds all elements."""
  bits = WIDTHS[kind]
  for lane in range(lanes):
    for k in range(product.k): yield ElementPosition(0, lane % 16, k, lane, k * bits // 32, k * bits % 32)

def _wmma4_operand(product: Product, kind: str, lanes: int) -> Iterator[ElementPosition]:
  """Runs of 8 bytes alternate between the lanes 0-15 and 16-31. In a wave of 64, the lanes 32-63 hold the elements that
  further registers hold in a wave of 32."""
  bits = WIDTHS[kind]
  each = 32 // bits
  registers = product.k * 16 // lanes * bits // 32
  if registers == 0: raise UnknownInstruction(f"operands of {kind} that fill half a register are not emulated")
  for lane in range(lanes):
    half, upper = lane // 16 % 2, lane // 32
    for register in range(registers):
      counted = upper * registers + register
      run = 2 * each if registers * (lanes // 32) > 1 else each
      for i in range(each):
        yield ElementPosition(0, lane % 16, run * (2 * (counted // 2) + half) + each * (counted % 2) + i, lane,
                              register,
                              i * bits)

@once
def result_places(product: Product, lanes: int, rdna3: bool) -> tuple[ElementPosition, ...]:
  """Return the places of the elements of C and D: line is the row, depth the column."""
  if product.family == "mfma": return tuple(_mfma_result(product))
  return tuple(_wmma3_result(lanes) if rdna3 else _wmma4_result(product, lanes))

def _mfma_result(product: Product) -> Iterator[ElementPosition]:
  groups, n = 64 // product.n, product.n
  for lane in range(64):
    group, column = lane // n, lane % n
    if product.d == "f64":
      for i in range(product.m * n * product.blocks // 64):
        block, part = (group % product.blocks, group // product.blocks) if product.blocks > 1 else (0, group)
        yield ElementPosition(block, 4 * i + part, column, lane, 2 * i, 0)
    elif product.m == 4:
      for i in range(4): yield ElementPosition(group, i, column, lane, i, 0)
    else:
      each = product.m * n // 64
      for i in range(each * product.blocks):
        inner = i % each
        yield ElementPosition(i // each, 4 * groups * (inner // 4) + 4 * group + inner % 4, column, lane, i, 0)

def _wmma3_result(lanes: int) -> Iterator[ElementPosition]:
  """Rows go around the groups of 16 lanes. Results of 16 bits are half a register."""
  for lane in range(lanes):
    for i in range(256 // lanes): yield ElementPosition(0, lanes // 16 * i + lane // 16, lane % 16, lane, i, 0)

def _wmma4_result(product: Product, lanes: int) -> Iterator[ElementPosition]:
  each = 32 // WIDTHS[product.d]
  registers = 256 // lanes // each
  for lane in range(lanes):
    for register in range(registers):
      counted = lane // 32 * registers + register
      for i in range(each):
        yield ElementPosition(0, 8 * (lane // 16 % 2) + each * counted + i, lane % 16, lane, register,
                              i * WIDTHS[product.d])

# ***** values *****

def _signed(bits: int, signed: bool) -> Callable[[int], int]:
  half = 1 << bits - 1
  return (lambda x: (x ^ half) - half) if signed else (lambda x: x)

def _short_float32(x: int) -> float:
  """Round a float32 to 10 bits of mantissa: xf32."""
  if x & 0x7f800000 == 0x7f800000: return float32_of(x)
  return float32_of((x + 0xfff + (x >> 13 & 1)) & 0xffffe000)

def decoder_of(kind: str, arch: str, signed: bool) -> Callable[[int], Any]:
  """Return the function from bits of an element to a number."""
  fp8, bf8 = dtypes.fp8_fnuz if arch == "gfx942" else dtypes.fp8_ocp
  if kind in ("fp8", "bf8"):
    return tuple(decode_float(i, fp8 if kind == "fp8" else bf8) for i in range(256)).__getitem__
  return {"f64": float64_of, "f32": float32_of, "xf32": _short_float32, "f16": HALVES.__getitem__,
          "bf16": decode_bfloat16, "i32": _signed(32, True),
          "i8": _signed(8, True), "iu8": _signed(8, signed), "iu4": _signed(4, signed)}[kind]

ENCODE: dict[str, Callable[[Any], int]] = {"f64": bits_of_float64, "f32": lambda x: bits_of_float32(round_float32(x)),
                                           "f16": encode_float16,
                                           "bf16": encode_bfloat16, "i32": lambda x: x & 0xffffffff}

def dot(a: list[Any], b: list[Any], c: Any) -> Any:
  """Return the sum of products and c."""
  if isinstance(c, int): return sum(x * y for x, y in zip(a, b)) + c
  products = [x * y for x, y in zip(a, b)]
  try: return math.fsum((*products, c))
  except (ValueError, OverflowError): return sum(products, c)  # infinities of both signs, or a sum beyond them

# ***** instructions *****

def bind(uses: NamedOperands, mode: Mode) -> Callable[[Wave], None] | None:
  """Return the function of a matrix instruction, or None if the name is none."""
  product = product_of(uses.name)
  if product is None: return None
  if any(uses.get(name) for name in ("cbsz", "abid")) or uses.get("blgp") and product.d != "f64":
    raise UnknownInstruction(f"{uses.name} with cbsz, abid or blgp is not emulated")
  rdna3, lanes = mode.arch.startswith("gfx11"), mode.lanes
  neg_lo, neg_hi = uses.get("neg_lo"), uses.get("neg_hi")
  if product.d == "f64": neg_lo = neg_hi = uses.get("blgp")
  integer = product.d == "i32"
  read = []
  for i, kind in enumerate((product.a, product.b)):
    places = operand_places(product, kind, lanes, rdna3)
    negate = (False, False) if integer else (bool(neg_lo >> i & 1), bool(neg_hi >> i & 1))
    read.append((row_at(uses, f"src{i}"), places, decoder_of(kind, mode.arch, bool(neg_lo >> i & 1)), WIDTHS[kind],
                 negate))
  results, high = (result_places(product, lanes, rdna3), 16 * (uses.get("op_sel") >> 2 & 1) if rdna3
                   and WIDTHS[product.d] == 16 else 0)
  target, c = row_at(uses, "vdst"), uses["src2"]
  c_row = row_at(uses, "src2") if isinstance(c, Reg) else None
  decode, encode, width = decoder_of(product.d, mode.arch, True), ENCODE[product.d], WIDTHS[product.d]
  c_negate, c_absolute = bool(neg_lo & 4) and not integer, bool(neg_hi & 4) and not integer
  clamp = integer and bool(uses.get("clamp"))

  def addend(wave: Wave, place: ElementPosition) -> Any:
    x = decode(element(wave, c_row, place, width, high) if c_row is not None else int(c))
    if c_absolute: x = abs(x)
    return -x if c_negate else x

  def run(wave: Wave) -> None:
    if product.family == "wmma" and not wave.full:
      raise StrictError("WMMA needs all bits of EXEC to be 1; what it does with others is not defined")
    a, b = (operand(wave, *r) for r in read)
    found = []
    for place in results:
      value = dot(a[place.block, place.line], b[place.block, place.depth], addend(wave, place))
      if clamp: value = min(max(value, -0x80000000), 0x7fffffff)
      found.append((place, encode(value)))
    for place, bits in found: put(wave, target, place, width, high, bits)
  return run

Operand = dict[tuple[int, int], list[Any]]

def operand(wave: Wave, row: int, places: tuple[ElementPosition, ...], decode: Callable[[int], Any], width: int,
            negate: tuple[bool, bool]) -> Operand:
  """Return (block, row or column) -> its elements by depth."""
  rows: dict[int, list[int]] = {}
  found: Operand = {}
  mask = (1 << width) - 1
  for block, line_number, depth, lane, register, shift in places:
    if register not in rows:
      rows[register] = wave.u[row + register].tolist()
      if width == 64:
        rows[register] = [x | y << 32 for x, y in zip(rows[register], wave.u[row + register + 1].tolist())]
    x = decode(rows[register][lane] >> shift & mask)
    line = found.setdefault((block, line_number), [0] * 256)
    line[depth] = -x if negate[depth & 1] else x
  longest = max(place.depth for place in places) + 1
  return {key: line[:longest] for key, line in found.items()}

def element(wave: Wave, row: int, place: ElementPosition, width: int, high: int) -> int:
  """Return the bits of an element of C."""
  word: int = wave.u[row + place.register][place.lane]
  if width == 64: return word | int(wave.u[row + place.register + 1][place.lane]) << 32
  return word >> place.shift + high & (1 << width) - 1

def put(wave: Wave, row: int, place: ElementPosition, width: int, high: int, bits: int) -> None:
  """Write an element of D. The rest of a register that it does not fill is kept."""
  target = wave.u[row + place.register]
  if width < 32:
    shift = place.shift + high
    target[place.lane] = target[place.lane] & ~((1 << width) - 1 << shift) & 0xffffffff | bits << shift
    return
  target[place.lane] = bits & 0xffffffff
  if width == 64: wave.u[row + place.register + 1][place.lane] = bits >> 32
