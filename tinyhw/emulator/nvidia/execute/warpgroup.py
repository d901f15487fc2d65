"""Asynchronous products of four warps: HGMMA, IGMMA and QGMMA, and WARPGROUP, which waits for them.

(64, K) x (K, N) with K of 32 bytes and N of 8 to 256. Operand B is in shared memory (descriptors.py). Operand A is
there too, or each warp's 16 rows are in registers as for HMMA. Warp w of a group has rows 16 w to 16 w + 15 of the
accumulator. Register i of a lane is row lane / 4 + 8 * (i / 2 % 2), column 8 * (i / 4) + 2 * (lane % 4) + i % 2. For
accumulators in float16 a register has two columns. Source: PTX ISA, "Asynchronous warpgroup level matrix instructions".

A product begins when all four warps have issued it. It may read shared memory until WARPGROUP.DEPBAR has waited for its
group in one of them, and nothing may write there meanwhile. Here it is computed when it begins; products.py and
shared.py make sure that nothing reads the result too early. Sums of floats are exact as far as doubles go and rounded
once, like those of HMMA (matrix.py). Hardware keeps fewer bits of each term. Those of QGMMA are as short as QMMA's.
"""
from __future__ import annotations
import functools
import struct
from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import Any

from tinyhw.arithmetic import decode_bfloat16, decode_float16, encode_float16
from tinyhw.emulator.errors import EmulatorError, UninitialisedRead, UnknownInstruction
from tinyhw.emulator.nvidia.execute.matrix import (
  FP8, decode_tf32, matrix, place_a, rows_of, short_total, total, whole_total)
from tinyhw.emulator.nvidia.memory.descriptors import DEPTH, PIECE, Descriptor, descriptor, k_major, mn_major
from tinyhw.emulator.nvidia.memory.shared import SharedMemory
from tinyhw.emulator.nvidia.warp.numbers import floats_of, signed, words_of
from tinyhw.emulator.nvidia.warp.operands import Operands, put
from tinyhw.emulator.nvidia.warp.state import ALL, LANES, ZEROS, Warp, named
from tinyhw.isa.sass.table import regs
from tinyhw.isa.sass.table.form import NO_GROUP
from tinyhw.named_tuple import NamedTuple

Step = Callable[[Warp, int], None]
Rows = list[list[Any]]
WARPS, ROWS = 4, 16   # of a group, of a warp

class ProductTypes(NamedTuple):
  """The types of a product.

  - element: bytes of an element of A or B. decode_a, decode_b: of an element.
  - each: accumulator elements in a register; numbers, words: of registers, there and back.
  - add: of an accumulator element, a row and a column.
  """
  element: int
  decode_a: Callable[[int], Any]
  decode_b: Callable[[int], Any]
  each: int
  numbers: Callable[[list[int]], list[Any]]
  words: Callable[[list[Any]], list[int]]
  add: Callable[[Any, Sequence[Any], Sequence[Any]], Any]

class Product(NamedTuple):
  """The common part of an instruction in the four warps.

  - d, a: registers; a is -1 where operand A is in shared memory.
  - transposed: for A and B, whether the operand is MN-major. signs: 1 or -1. factors: descriptors.
  - sums: whether d is added to. ends: whether it ends a group.
  """
  pc: int
  kind: ProductTypes
  columns: int
  d: int
  a: int
  transposed: tuple[bool, bool]
  signs: tuple[int, int]
  factors: tuple[int, int]
  sums: bool
  ends: bool

class Warpgroup:
  """Four warps, or fewer at a block's end, which issue no products.

  issued: number of products of each warp; ends: the numbers of those that end a group; begun: number of products that
  have begun.
  """
  def __init__(self, warps: Sequence[Warp], shared: SharedMemory):
    self.warps, self.shared = warps, shared
    self.name = f"the products of warps {warps[0].number} to {warps[-1].number}"
    self.actor = shared.actor(self.name)
    self.issued = dict.fromkeys((warp.number for warp in warps), 0)
    self.products: list[Product] = []
    self.ends: list[int] = []
    self.begun = 0

  def issue(self, warp: Warp, product: Product) -> None:
    """Issue the next product of a warp. The last one of the four warps begins it. Raises EmulatorError if they differ.
    """
    number = self.issued[warp.number]
    if number == len(self.products):
      self.products.append(product)
      if product.ends: self.ends.append(number)
    elif self.products[number] != product:
      raise EmulatorError(f"warp {warp.number} issues another product than the warps before it: the four of a group "
                          f"issue the same ones")
    self.issued[warp.number] += 1
    for index in range(product.d, product.d + registers_of(product)): warp.known["R", index] = ALL
    if min(self.issued.values()) > self.begun: self.begin()

  def begin(self) -> None:
    """Begin a product that all warps have issued."""
    product = self.products[self.begun]
    self.begun += 1
    self.shared.now[self.actor] = self.begun
    self.shared.acquire(self.actor, self.shared.in_common(warp.number for warp in self.warps))
    compute(self, product)

  def wait(self, warp: Warp, left: int) -> bool:
    """Return whether all groups that a warp has ended, except the last `left` ones, are done. If so, the warp knows it.
    """
    ended = bisect_left(self.ends, self.issued[warp.number])
    done = self.ends[ended - 1 - left] + 1 if ended > left else 0
    if done > self.begun: return False
    self.shared.acquire(warp.number, {self.actor: done})
    return True

def group_warps(warps: Sequence[Warp], shared: SharedMemory) -> None:
  """Make warpgroups of the warps of a block."""
  for first in range(0, len(warps), WARPS):
    group = Warpgroup(warps[first:first + WARPS], shared)
    for warp in group.warps: warp.group = group

def registers_of(product: Product) -> int:
  """Return the number of accumulator registers of each lane."""
  return product.columns // 2 // product.kind.each

# ***** operands A and B *****

def elements(data: bytes, size: int, decode: Callable[[int], Any], sign: int) -> list[Any]:
  """Return the numbers of a 16-byte piece."""
  return [sign * decode(int.from_bytes(data[at:at + size], "little")) for at in range(0, len(data), size)]

def lines(group: Warpgroup, product: Product, which: int, count: int) -> Rows:
  """Return the rows of operand A, or the columns of operand B."""
  size, decode = product.kind.element, (product.kind.decode_a, product.kind.decode_b)[which]
  place: Descriptor = descriptor(product.factors[which])
  transposed, sign = product.transposed[which], product.signs[which]
  addresses = mn_major(place, count * size // PIECE, DEPTH // size) if transposed else k_major(place, count)
  found = [[x for address in line for x in elements(group.shared.look(group.actor, address, PIECE), size, decode, sign)]
           for line in addresses]
  return [list(line) for line in zip(*found)] if transposed else found

def rows_in_registers(warp: Warp, product: Product) -> Rows:
  """Return a warp's rows of operand A, from registers."""
  each = 4 // product.kind.element
  return matrix(rows_of(warp, product.a, 4), place_a, product.kind.decode_a, (ROWS, 8 * each), each)

# ***** accumulators *****

def compute(group: Warpgroup, product: Product) -> None:
  """Compute the accumulators of all four warps."""
  columns = lines(group, product, 1, product.columns)
  rows = lines(group, product, 0, WARPS * ROWS) if product.a < 0 else []
  for k, warp in enumerate(group.warps):
    mine = rows[ROWS * k:ROWS * (k + 1)] if rows else rows_in_registers(warp, product)
    for i in range(registers_of(product)): add(warp, product, i, mine, columns)

def add(warp: Warp, product: Product, i: int, rows: Rows, columns: Rows) -> None:
  """Compute register i of the accumulators."""
  kind, first = product.kind, i * product.kind.each
  sums = kind.numbers(warp.registers[product.d + i] if product.sums else ZEROS)
  found = [kind.add(old, rows[row], columns[column]) for old, (row, column) in zip(sums, places(first, kind.each))]
  put(warp, product.d + i, kind.words(found), ALL)

@functools.lru_cache(maxsize=256)
def places(first: int, each: int) -> list[tuple[int, int]]:
  """Return rows and columns of accumulator elements, lane by lane: of number `first` and, if a register has several,
  the next ones.
  """
  return [(lane // 4 + 8 * (number >> 1 & 1), 8 * (number >> 2) + 2 * (lane % 4) + (number & 1))
          for lane in range(LANES) for number in range(first, first + each)]

SHAPES = ("gmma16", "gmma16h", "gmma8", "gmma32", "gmmai")   # modifiers that have rows, columns and steps
_PAIRS = struct.Struct(f"<{LANES}I"), struct.Struct(f"<{2 * LANES}H")
def halves(words: list[int]) -> list[float]:
  return [decode_float16(x) for x in _PAIRS[1].unpack(_PAIRS[0].pack(*words))]
def words_of_halves(numbers: list[float]) -> list[int]:
  return list(_PAIRS[0].unpack(_PAIRS[1].pack(*map(encode_float16, numbers))))

def kind_of(o: Operands) -> ProductTypes:
  """Return the types of an instruction. Raises UnknownInstruction."""
  name = o.inst.row.name
  if name == "IGMMA":
    if o.word("sat"): raise UnknownInstruction("IGMMA that saturates is not supported yet")
    decodes = [(lambda x: signed(x, 8)) if o.word(word) == "S8" else int for word in ("itype_a", "itype_b")]
    return ProductTypes(1, decodes[0], decodes[1], 1, list, list, whole_total)
  if name in ("QGMMA", "QGMMA.R"):
    left, right = o.word("fp8mma").split(".")
    return ProductTypes(1, FP8[left], FP8[right], 1, floats_of, words_of, short_total)
  if name == "HGMMA.TF32": return ProductTypes(4, decode_tf32, decode_tf32, 1, floats_of, words_of, total)
  decode = decode_bfloat16 if o.word("gmbf") else decode_float16
  if name == "HGMMA.F16": return ProductTypes(2, decode, decode, 2, halves, words_of_halves, total)
  return ProductTypes(2, decode, decode, 1, floats_of, words_of, total)

# ***** instructions *****

def check_always(o: Operands) -> None:
  """Raise UnknownInstruction for a guard: the checks of warps assume that all lanes execute it."""
  if o.values["guard"] is not regs.PT or o.values["guard_not"]:
    raise UnknownInstruction(f"{o.form.mnemonic} with a guard is not supported yet: branch around it")

def multiply(o: Operands) -> Step:
  """Compute d = a * b + d, or without d where the uniform predicate is false."""
  check_always(o)
  kind, shape = kind_of(o), next(name for name in SHAPES if o.has(name))
  columns, d, c = int(o.word(shape).split("x")[1]), o.values["d"], o.values["c"]
  if c not in (d, regs.RZ):
    raise UnknownInstruction(f"{o.form.key} adds to {c} and writes {d}: only {d} or RZ has a meaning here")
  a, descriptors = (o.values["a"].index, o.values["ub"].index - 2) if o.has("a") else (-1, o.values["ua"].index)
  transposed = bool(o.word("tnspA")), bool(o.word("tnspB"))
  signs = -1 if o.word("negA") else 1, -1 if o.word("negB") else 1
  accumulate = o.predicate("qi")
  ends = o.number("group") != NO_GROUP
  def run(warp: Warp, mask: int) -> None:
    group = group_of(warp, o.form.mnemonic)
    if mask != ALL: raise EmulatorError(f"{o.form.mnemonic} is executed by some lanes only; all 32 must run")
    words = [warp.uniform[descriptors + k] if k > 1 or a < 0 else 0 for k in range(4)]
    sums = bool(accumulate(warp) & 1) and c is d
    if sums: check_known(warp, d.index, d.cls.units)
    factors = words[0] | words[1] << 32, words[2] | words[3] << 32
    group.issue(warp, Product(warp.at, kind, columns, d.index, a, transposed, signs, factors, sums, ends))
  return run

def check_known(warp: Warp, first: int, count: int) -> None:
  """Raise UninitialisedRead for accumulators that were never written."""
  for index in range(first, first + count):
    if warp.known["R", index] != ALL:
      raise UninitialisedRead(f"{named(('R', index))} is added to, and nothing has written it in all lanes")

def group_of(warp: Warp, what: str) -> Warpgroup:
  """Return the group of a warp. Raises EmulatorError if it has fewer than four."""
  if warp.group is None or len(warp.group.warps) < WARPS:
    raise EmulatorError(f"{what} wants groups of four warps; this block's last one is smaller")
  return warp.group

def arrive(o: Operands) -> Step:
  """WARPGROUP.ARRIVE: products.py has its effect."""
  check_always(o)
  if o.word("wgwait") != "ARRIVE": raise UnknownInstruction("WARPGROUP.WAIT is not supported yet")
  return lambda warp, mask: None

def wait(o: Operands) -> Step:
  """WARPGROUP.DEPBAR."""
  check_always(o)
  left = o.number("n")
  def run(warp: Warp, mask: int) -> None:
    group = group_of(warp, "WARPGROUP.DEPBAR")
    if not group.wait(warp, left):
      warp.wait_until(lambda: group.wait(warp, left), f"for {group.name}, which not all of them have issued")
  return run

def fence(o: Operands) -> Step:
  """FENCE.VIEW.ASYNC: of shared memory. Global memory is coherent here."""
  shared = o.word("sync") == "S"
  def run(warp: Warp, mask: int) -> None:
    if shared and isinstance(warp.shared, SharedMemory): warp.shared.fence(warp.number)
  return run

SEMANTICS: dict[str, Callable[[Operands], Step]] = {
  **dict.fromkeys(("HGMMA", "HGMMA.F16", "HGMMA.R", "HGMMA.TF32", "IGMMA", "QGMMA", "QGMMA.R"), multiply),
  "WARPGROUP": arrive, "WARPGROUP.DEPBAR": wait, "FENCE": fence,
}
