"""What an instruction computes over all lanes as machine code of the host: the frame of a family's translator, and the
functions that it compiles.

A translator makes a Program (UOps, uop/program.py) of one shape of instruction, which isa/x86 compiles. Its state is
the registers of a wave as
words: rows of lanes, scalars, masks of lanes. Its record (records.py) has the numbers of the operands' first words, and
constants. What is not plain raises Untranslatable and stays Python, and so does everything on other processors.
"""
from __future__ import annotations
import functools
import importlib
from collections.abc import Callable

from tinyhw.dtype import dtypes
from tinyhw.emulator.native.expressions import WIDE, Expressions, Untranslatable
from tinyhw.emulator.native.records import HEAD
from tinyhw.emulator.native.threaded import level, load
from tinyhw.emulator.notation import Meaning, Type, nodes
from tinyhw.errors import CompileError
from tinyhw.machine.ir.target import Capabilities
from tinyhw.named_tuple import NamedTuple
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp
from tinyhw.uop.program import Program

LANE_BITS = 32

class Operand(NamedTuple):
  """What a word of a record is: the place in the state of a row ("row") or scalar word ("scalar") of an operand, `part`
  registers behind its first one; or 32 bits of a constant ("constant")."""
  kind: str
  name: str
  part: int = 0

class Native(NamedTuple):
  """A compiled shape: where it is, and what the words of its records are."""
  address: int
  operands: tuple[Operand, ...]

class Lanes(Expressions):
  """One shape as a Program. lanes: that are computed, 0 for scalars. masked: lanes that are not active, by the mask at
  `active_at`, keep what they
  have. host: what its vectors can compute."""
  def __init__(self, meaning: Meaning, lanes: int, masked: bool, active_at: int, host: Capabilities):
    self.meaning, self.lanes, self.masked, self.active_at = meaning, lanes, masked, active_at
    self.types = {node.type.name for assignment in meaning
                  for node in nodes(assignment.value)} | {a.type.name for a in meaning}
    self.host, self.width = host, 1 if not lanes else host.vector_bytes // (8 if self.types & WIDE else 4)
    self.state, self.record = UOp.param(0, dtypes.uint32, 1 << 16), UOp.param(1, dtypes.int32, 1 << 8)
    self.operands: dict[Operand, int] = {}
    self.locals = {}
    self.start = 0
    self.masks: dict[str, list[list[UOp]]] = {}       # masks that are written: for each word the bits that chunks give

  def chunk(self) -> list[UOp]:
    """The stores of the lanes from `start` on, or of a scalar instruction."""
    raise NotImplementedError

  def keeps(self, mask: str) -> bool:
    """Whether a mask that is written keeps its bits of lanes that are not active; else they become 0."""
    raise NotImplementedError

  def program(self) -> Program:
    """Raises Untranslatable."""
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
    """Add stores, behind all that they need: what one of them writes another one may read."""
    for store in stores: order.update(dict.fromkeys(u for u in store.toposort() if u is not store))
    order.update(dict.fromkeys(stores))
    stores.clear()

  # ***** masks of lanes *****

  def put_mask(self, name: str, truth: UOp) -> None:
    """A mask is written: its bits of this chunk."""
    words = self.masks.setdefault(name, [[] for _ in range(max(self.lanes // LANE_BITS, 1))])
    words[self.start // LANE_BITS].append(self.mask_of(truth))

  def mask_of(self, truth: UOp) -> UOp:
    """The truths of a vector as bits of a word, at the lanes' places."""
    bits = truth.where(self.numbers([1 << (self.start + i) % LANE_BITS for i in range(self.width)]),
                       self.constant(dtypes.uint32, 0))
    count = self.width
    while count > 1:
      count //= 2
      kind = dtypes.uint32.vec(count)
      bits = UOp(Ops.GEP, kind, (bits,), 0).alu(Ops.OR, UOp(Ops.GEP, kind, (bits,), count))
    return bits

  def mask_stores(self) -> list[UOp]:
    """The masks that are written: bits of active lanes, and of the others as `keeps` says."""
    stores = []
    for name, words in self.masks.items():
      for i, parts in enumerate(words):
        at = self.operand("scalar", name, i)
        word = functools.reduce(lambda a, b: a.alu(Ops.OR, b), parts)
        if self.masked:
          active = self.scalar_word(self.active_at + i)
          word = word.alu(Ops.AND, active)
          if self.keeps(name):
            others = place(self.state, at).load().alu(Ops.AND,
                                                      active.alu(Ops.XOR, UOp.const(dtypes.uint32, 0xffffffff)))
            word = word.alu(Ops.OR, others)
        stores.append(self.word_store(at, word))
    return stores

  def lane_bit(self, word: Callable[[int], UOp]) -> UOp:
    """Each lane's bit of a mask, whose words are asked for by number."""
    shifts = self.numbers([(self.start + i) % LANE_BITS for i in range(self.width)])
    bits = self.spread(word(self.start // LANE_BITS)).alu(Ops.SHR, shifts).alu(Ops.AND, self.constant(dtypes.uint32, 1))
    return bits.alu(Ops.CMPNE, self.constant(dtypes.uint32, 0))

  def mask_bit(self, name: str) -> UOp:
    """Each lane's bit of a mask that is an operand."""
    return self.lane_bit(lambda i: place(self.state, self.operand("scalar", name, i)).load())

  # ***** the state *****

  def operand(self, kind: str, name: str, part: int) -> UOp:
    """A word of the record."""
    at = self.operands.setdefault(Operand(kind, name, part), len(self.operands))
    return place(self.record, UOp.const(dtypes.int32, 2 * (HEAD + at))).load()

  def lanes_of(self, name: str, part: int) -> UOp:
    at = self.operand("row", name, part)
    return place(self.state, at.alu(Ops.ADD, UOp.const(dtypes.int32, self.start)) if self.start else at)

  def row(self, name: str, part: int) -> UOp:
    """A row of an operand."""
    return self.lanes_of(name, part).load(dtype=self.vector(dtypes.uint32))

  def row_store(self, name: str, part: int, bits: UOp) -> UOp:
    """Write a row of an operand, in active lanes."""
    if self.masked:
      bits = self.lane_bit(lambda i: self.scalar_word(self.active_at + i)).where(bits, self.row(name, part))
    return self.lanes_of(name, part).store(bits)

  def scalar_word(self, register: int) -> UOp: return place(self.state, UOp.const(dtypes.int32, register)).load()
  def word_store(self, at: UOp, word: UOp) -> UOp: return place(self.state, at).store(word)

  def spread(self, word: UOp) -> UOp:
    """A scalar in all lanes."""
    return word if self.width == 1 else UOp(Ops.BROADCAST, self.vector(word.dtype), (word,))

  def numbers(self, values: list[int]) -> UOp:
    """A vector of different constants."""
    return UOp(Ops.VECTORIZE, self.vector(dtypes.uint32), tuple(UOp.const(dtypes.uint32, v) for v in values))

  def word_constant(self, name: str, part: int) -> UOp:
    """32 bits of a constant operand in all lanes."""
    return self.spread(self.operand("constant", name, part).bitcast(dtypes.uint32))

  def word_scalar(self, name: str, part: int) -> UOp:
    """A scalar operand in all lanes."""
    return self.spread(place(self.state, self.operand("scalar", name, part)).load())

  # ***** values *****

  def number(self, truth: UOp) -> UOp:
    return truth.where(self.constant(dtypes.uint32, 1), self.constant(dtypes.uint32, 0))

  def words(self, value: UOp, kind: Type) -> list[UOp]:
    """The bits of a value, 32 at a time, or fewer in the low bits of one."""
    if kind.kind == "b": return [self.number(value)]
    if kind.name == "f16": return [self.half_bits(value)]
    if kind.name == "bf16": raise Untranslatable
    bits = self.unsigned(value)
    word = self.vector(dtypes.uint32)
    if kind.bits == 64: return [bits.cast(word), bits.alu(Ops.SHR, self.constant(dtypes.uint64, 32)).cast(word)]
    return [bits.alu(Ops.AND, self.constant(dtypes.uint32, (1 << kind.bits) - 1)) if kind.bits < 32 else bits]

  def pair(self, low: UOp, high: UOp) -> UOp:
    """Two words as one of 64 bits."""
    wide = self.vector(dtypes.uint64)
    return low.cast(wide).alu(Ops.OR, high.cast(wide).alu(Ops.SHL, self.constant(dtypes.uint64, 32)))

  def signed(self, x: UOp, negate: bool, magnitude: bool, kind: Type) -> UOp:
    """A float with the magnitude and the sign that the instruction asks for."""
    if not negate and not magnitude: return x
    if kind.kind != "f": raise Untranslatable
    if magnitude: x = self.absolute(x)
    return self.flipped(x) if negate else x

def place(buffer: UOp, index: UOp) -> UOp: return UOp(Ops.INDEX, buffer.dtype, (buffer, index))

def built(make: Callable[[Capabilities], Lanes]) -> Native | None:
  """What a translator, made for a host, compiles to; None if it stays Python."""
  arch = level()
  if arch is None: return None
  x86 = importlib.import_module("tinyhw.isa.x86.target")
  try:
    translator = make(x86.capabilities(arch))
    code = x86.compile(translator.program(), arch)
  except (Untranslatable, CompileError, NotImplementedError): return None
  if code.local_bytes: return None
  return Native(load(code), tuple(translator.operands))
