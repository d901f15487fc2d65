"""Translation of an instruction over all lanes to machine code of the host: the frame of a family's translator, and the
functions that it compiles.

A translator makes a Program (UOps, uop/program.py) of one shape of instruction, and isa/x86 compiles it. Its state is
the registers of a wave as words: rows of lanes, scalars, masks of lanes. Its record (records.py) has the numbers of the
operands' first words, and constants. An instruction without a translation raises Untranslatable and stays in Python. So
does every instruction on other processors.
"""
from __future__ import annotations
import functools
import importlib
from collections.abc import Callable

from tinyhw.dtype import dtypes
from tinyhw.emulator.native.expressions import WIDE, Expressions, Untranslatable
from tinyhw.emulator.native.records import HEAD
from tinyhw.emulator.native.threaded import level, load
from tinyhw.emulator.notation import Semantics, ValueType, nodes
from tinyhw.errors import CompileError
from tinyhw.machine.ir.target import Capabilities
from tinyhw.named_tuple import NamedTuple
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp
from tinyhw.uop.program import Program

LANE_BITS = 32

class RecordWord(NamedTuple):
  """Meaning of a word of a record. "row" or "scalar": the address in the state of the operand's row or scalar word,
  `part` registers after its first one; "constant": 32 bits of a constant."""
  kind: str
  name: str
  part: int = 0

class Native(NamedTuple):
  """A compiled shape: its address, and the meanings of the words of its records."""
  address: int
  operands: tuple[RecordWord, ...]

class Lanes(Expressions):
  """One shape as a Program. lanes: number of lanes to compute, 0 for scalars. host: capabilities of its vectors.

  masked: lanes that are not active, by the mask at `active_at`, keep their old values.
  """
  def __init__(self, semantics: Semantics, lanes: int, masked: bool, active_at: int, host: Capabilities):
    self.semantics, self.lanes, self.masked, self.active_at = semantics, lanes, masked, active_at
    self.types = {node.type.name for assignment in semantics
                  for node in nodes(assignment.value)} | {a.type.name for a in semantics}
    self.host, self.width = host, 1 if not lanes else host.vector_bytes // (8 if self.types & WIDE else 4)
    self.state, self.record = UOp.param(0, dtypes.uint32, 1 << 16), UOp.param(1, dtypes.int32, 1 << 8)
    self.operands: dict[RecordWord, int] = {}
    self.locals = {}
    self.start = 0
    self.masks: dict[str, list[list[UOp]]] = {}       # masks that are written: the bits of each chunk, for each word

  def chunk(self) -> list[UOp]:
    """Return the stores of the lanes from `start` on, or of a scalar instruction."""
    raise NotImplementedError

  def keeps(self, mask: str) -> bool:
    """Return whether a write of a mask keeps the bits of lanes that are not active. If not, they become 0."""
    raise NotImplementedError

  def program(self) -> Program:
    """Return the program. Raises Untranslatable."""
    order: dict[UOp, None] = {}
    stores: list[UOp] = []
    for self.start in range(0, max(self.lanes, 1), self.width):
      stores += self.chunk()
      for word in (word for words in self.masks.values() for parts in words for word in parts):
        order.update(dict.fromkeys(word.toposort()))
      if self.start + self.width < self.lanes: self.place_in(order, stores)
    stores += self.mask_stores()
    self.place_in(order, stores)
    first = [u for u in order if u.op in (Ops.PARAM, Ops.CONST)]
    return Program("lanes", (*first, *(u for u in order if u.op not in (Ops.PARAM, Ops.CONST))), 1, frozenset({0}))

  def place_in(self, order: dict[UOp, None], stores: list[UOp]) -> None:
    """Add stores after everything that they need: one store may write a value that another one reads."""
    for store in stores: order.update(dict.fromkeys(u for u in store.toposort() if u is not store))
    order.update(dict.fromkeys(stores))
    stores.clear()

  # ***** masks of lanes *****

  def put_mask(self, name: str, truth: UOp) -> None:
    """Write the bits of this chunk to a mask."""
    words = self.masks.setdefault(name, [[] for _ in range(max(self.lanes // LANE_BITS, 1))])
    words[self.start // LANE_BITS].append(self.mask_of(truth))

  def mask_of(self, truth: UOp) -> UOp:
    """Return the booleans of a vector as bits of a word, at the lanes' positions."""
    bits = truth.where(self.numbers([1 << (self.start + i) % LANE_BITS for i in range(self.width)]),
                       self.constant(dtypes.uint32, 0))
    count = self.width
    while count > 1:
      count //= 2
      kind = dtypes.uint32.vec(count)
      bits = UOp(Ops.GEP, kind, (bits,), 0).alu(Ops.OR, UOp(Ops.GEP, kind, (bits,), count))
    return bits

  def mask_stores(self) -> list[UOp]:
    """Return the stores of the masks: bits of active lanes, and bits of the others as `keeps` says."""
    stores = []
    for name, words in self.masks.items():
      for i, parts in enumerate(words):
        at = self.operand("scalar", name, i)
        word = functools.reduce(lambda a, b: a.alu(Ops.OR, b), parts)
        if self.masked:
          active = self.scalar_word(self.active_at + i)
          word = word.alu(Ops.AND, active)
          if self.keeps(name):
            others = element(self.state, at).load().alu(Ops.AND,
                                                        active.alu(Ops.XOR, UOp.const(dtypes.uint32, 0xffffffff)))
            word = word.alu(Ops.OR, others)
        stores.append(self.word_store(at, word))
    return stores

  def lane_bit(self, word: Callable[[int], UOp]) -> UOp:
    """Return each lane's bit of a mask. word: returns the word of a number."""
    shifts = self.numbers([(self.start + i) % LANE_BITS for i in range(self.width)])
    bits = self.spread(word(self.start // LANE_BITS)).alu(Ops.SHR, shifts).alu(Ops.AND, self.constant(dtypes.uint32, 1))
    return bits.alu(Ops.CMPNE, self.constant(dtypes.uint32, 0))

  def mask_bit(self, name: str) -> UOp:
    """Return each lane's bit of a mask that is an operand."""
    return self.lane_bit(lambda i: element(self.state, self.operand("scalar", name, i)).load())

  # ***** the state *****

  def operand(self, kind: str, name: str, part: int) -> UOp:
    """Return a word of the record."""
    at = self.operands.setdefault(RecordWord(kind, name, part), len(self.operands))
    return element(self.record, UOp.const(dtypes.int32, 2 * (HEAD + at))).load()

  def lanes_of(self, name: str, part: int) -> UOp:
    at = self.operand("row", name, part)
    return element(self.state, at.alu(Ops.ADD, UOp.const(dtypes.int32, self.start)) if self.start else at)

  def row(self, name: str, part: int) -> UOp:
    """Return a row of an operand."""
    return self.lanes_of(name, part).load(dtype=self.vector(dtypes.uint32))

  def row_store(self, name: str, part: int, bits: UOp) -> UOp:
    """Write a row of an operand, in active lanes."""
    if self.masked:
      bits = self.lane_bit(lambda i: self.scalar_word(self.active_at + i)).where(bits, self.row(name, part))
    return self.lanes_of(name, part).store(bits)

  def scalar_word(self, register: int) -> UOp: return element(self.state, UOp.const(dtypes.int32, register)).load()
  def word_store(self, at: UOp, word: UOp) -> UOp: return element(self.state, at).store(word)

  def spread(self, word: UOp) -> UOp:
    """Broadcast a scalar to all lanes."""
    return word if self.width == 1 else UOp(Ops.BROADCAST, self.vector(word.dtype), (word,))

  def numbers(self, values: list[int]) -> UOp:
    """Return a vector of different constants."""
    if self.width == 1: return UOp.const(dtypes.uint32, values[0])
    return UOp(Ops.VECTORIZE, self.vector(dtypes.uint32), tuple(UOp.const(dtypes.uint32, v) for v in values))

  def word_constant(self, name: str, part: int) -> UOp:
    """Return 32 bits of a constant operand in all lanes."""
    return self.spread(self.operand("constant", name, part).bitcast(dtypes.uint32))

  def word_scalar(self, name: str, part: int) -> UOp:
    """Return a scalar operand in all lanes."""
    return self.spread(element(self.state, self.operand("scalar", name, part)).load())

  # ***** values *****

  def number(self, truth: UOp) -> UOp:
    return truth.where(self.constant(dtypes.uint32, 1), self.constant(dtypes.uint32, 0))

  def words(self, value: UOp, kind: ValueType) -> list[UOp]:
    """Return the bits of a value, 32 at a time. A narrower value is in the low bits of one word."""
    if kind.kind == "b": return [self.number(value)]
    if kind.name == "f16": return [self.half_bits(value)]
    if kind.name == "bf16": raise Untranslatable
    bits = self.unsigned(value)
    word = self.vector(dtypes.uint32)
    if kind.bits == 64: return [bits.cast(word), bits.alu(Ops.SHR, self.constant(dtypes.uint64, 32)).cast(word)]
    return [bits.alu(Ops.AND, self.constant(dtypes.uint32, (1 << kind.bits) - 1)) if kind.bits < 32 else bits]

  def pair(self, low: UOp, high: UOp) -> UOp:
    """Join two words to one of 64 bits."""
    wide = self.vector(dtypes.uint64)
    return low.cast(wide).alu(Ops.OR, high.cast(wide).alu(Ops.SHL, self.constant(dtypes.uint64, 32)))

  def signed(self, x: UOp, negate: bool, magnitude: bool, kind: ValueType) -> UOp:
    """Apply the magnitude and the sign that the instruction asks for to a float."""
    if not negate and not magnitude: return x
    if kind.kind != "f": raise Untranslatable
    if magnitude: x = self.absolute(x)
    return self.flipped(x) if negate else x

def element(buffer: UOp, index: UOp) -> UOp: return UOp(Ops.INDEX, buffer.dtype, (buffer, index))

def built(make: Callable[[Capabilities], Lanes]) -> Native | None:
  """Compile the program of a translator that is made for this host. Return None if it stays in Python."""
  arch = level()
  if arch is None: return None
  x86 = importlib.import_module("tinyhw.isa.x86.target")  # loaded only where blocks are translated
  try:
    translator = make(x86.capabilities(arch))
    code = x86.compile(translator.program(), arch)
  except (Untranslatable, CompileError, NotImplementedError): return None
  if code.local_bytes: return None
  return Native(load(code), tuple(translator.operands))
