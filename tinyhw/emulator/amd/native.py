"""Instructions that compute as machine code of the host, from the same meanings as python_lanes.py: functions for the records of threaded.py.

A shape becomes a Program over all lanes (UOps, codegen/program.py), which isa/x86 compiles. Its state is the registers of a wave as words, its record
the numbers of the operands' first words, and constants. What is not plain (permutations, clamped integers, flushed denormals, approximate functions,
128 bits) stays Python, and so does everything on other processors. Both give the same bits but for NaNs (test_native.py).
"""
from __future__ import annotations
import functools
import importlib
from collections.abc import Callable, Iterator
from typing import NamedTuple

from tinyhw.codegen.program import Program
from tinyhw.dtype import dtypes
from tinyhw.emulator.native_expressions import HOST, WIDE, Expressions, Untranslatable
from tinyhw.emulator.notation import TYPES as NOTATION
from tinyhw.emulator.notation import Node, Type, parse
from tinyhw.emulator.amd.python_lanes import Form, Shape, Target
from tinyhw.emulator.threaded import HEAD, level, load
from tinyhw.errors import CompileError
from tinyhw.isa.amd import regs
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp

LANE_BITS = 32
SCC = regs.READ_ONLY["src_scc"]
SPECIAL = ("scc", "vccz", "execz")
VIEWS = ("u32", "i32", "f32")

class Operand(NamedTuple):
  """What a word of a record is: the place in the state of a row ("row") or scalar register ("scalar") of an operand, `part` registers behind its
  first one; or 32 bits of a constant ("constant")."""
  kind: str
  name: str
  part: int = 0

class Translator(Expressions):
  """One shape as a Program. masked: lanes that are not active keep what they have. lanes: of the wave. vector_bytes: of the host."""
  def __init__(self, shape: Shape, masked: bool, lanes: int, vector_bytes: int):
    if shape.permuted or shape.omod: raise Untranslatable
    self.shape, self.masked, self.lanes = shape, masked, lanes
    self.meaning = parse(shape.meaning)
    types = {node.type.name for assignment in self.meaning for node in nodes(assignment.value)} | {a.type.name for a in self.meaning}
    if shape.flush32 and "f32" in types or shape.flush64 and types & {"f16", "f64"}: raise Untranslatable
    self.width = 1 if not shape.lanes else vector_bytes // (8 if types & WIDE else 4)
    self.state, self.record = UOp.param(0, dtypes.uint32, 1 << 16), UOp.param(1, dtypes.int32, 1 << 8)
    self.operands: dict[Operand, int] = {}
    self.sources: dict[str, Form] = {}
    self.targets: dict[str, Target] = {}
    self.values: dict[tuple[str, str], UOp] = {}
    self.locals = {}
    self.start = 0
    self.results: dict[tuple[str, int], UOp] = {}       # a row -> its new lanes, where passes write parts of it
    self.masks: list[list[UOp]] = [[] for _ in range(max(shape.lanes // LANE_BITS, 1))]
    self.writes_exec = False

  def program(self) -> Program:
    """Raises Untranslatable."""
    order: dict[UOp, None] = {}
    stores: list[UOp] = []
    for self.start in range(0, max(self.shape.lanes, 1), self.width):
      stores += self.chunk()
      if self.start + self.width < self.shape.lanes: self.place_in(order, stores)
    if self.masks[0]: stores += self.mask_stores()
    self.place_in(order, stores)
    first = [u for u in order if u.op in (Ops.PARAM, Ops.CONST)]
    return Program("lanes", (*first, *(u for u in order if u.op not in (Ops.PARAM, Ops.CONST))), 1, frozenset({0}))

  def place_in(self, order: dict[UOp, None], stores: list[UOp]) -> None:
    """Add stores, behind all that they need: what one of them writes another one may read."""
    for store in stores: order.update(dict.fromkeys(u for u in store.toposort() if u is not store))
    order.update(dict.fromkeys(stores))
    stores.clear()

  def chunk(self) -> list[UOp]:
    """The stores of a vector register's lanes, or of a scalar instruction."""
    stores: list[UOp] = []
    self.results.clear()
    for sources, targets in self.shape.passes:
      self.sources, self.targets = dict(sources), dict(targets)
      self.values.clear()
      self.locals.clear()
      for assignment in self.meaning:
        target, value = assignment.target, self.value(assignment.value)
        if target == "CARRY" and self.shape.lanes: self.masks[self.start // LANE_BITS].append(self.mask_of(value))
        elif target == "SCC": stores.append(self.word_store(UOp.const(dtypes.int32, SCC), self.number(value)))
        elif target == "EXEC": stores += self.exec_stores(value)
        elif target in ("PC", "CARRY"): raise Untranslatable
        elif target in self.targets: stores += self.write(target, assignment.type, self.modified(value, assignment.type))
        elif target.startswith("D") and target[1:].isdigit() or target == "D": raise Untranslatable
        else: self.locals[target] = value
    return stores + [self.row_store(name, part, bits) for (name, part), bits in self.results.items()]

  # ***** results *****

  def modified(self, value: UOp, kind: Type) -> UOp:
    """Clamped, if the instruction asks for it."""
    if not self.shape.clamp: return value
    if kind.kind != "f": raise Untranslatable
    zero, one = self.constant(HOST[kind.name], 0.0), self.constant(HOST[kind.name], 1.0)
    held = value.alu(Ops.CMPLT, zero).where(zero, one.alu(Ops.CMPLT, value).where(one, value))
    return value.alu(Ops.CMPNE, value).where(zero, held)

  def write(self, target: str, kind: Type, value: UOp) -> list[UOp]:
    form = self.targets[target]
    if form.kind == "none": return []
    words = self.words(value, kind)
    if form.kind == "s": return [self.word_store(self.operand("scalar", target, form.dword + i), word) for i, word in enumerate(words)]
    if kind.bits >= 32 and not form.width:
      for i, word in enumerate(words): self.results[target, form.dword + i] = word
    else: self.results[target, form.dword] = self.part(target, form, kind, words[0])
    return []

  def words(self, value: UOp, kind: Type) -> list[UOp]:
    """The bits of a value, 32 at a time, or fewer in the low bits of one."""
    if kind.kind == "b": return [self.number(value)]
    if kind.name == "f16": return [self.half_bits(value)]
    if kind.name == "bf16": raise Untranslatable
    bits = self.unsigned(value)
    word = self.vector(dtypes.uint32)
    if kind.bits == 64: return [bits.cast(word), bits.alu(Ops.SHR, self.constant(dtypes.uint64, 32)).cast(word)]
    return [bits.alu(Ops.AND, self.constant(dtypes.uint32, (1 << kind.bits) - 1)) if kind.bits < 32 else bits]

  def part(self, target: str, form: Target, kind: Type, bits: UOp) -> UOp:
    """A register with a part of it replaced."""
    width = form.width or kind.bits
    mask = (1 << width) - 1
    if width < kind.bits: bits = bits.alu(Ops.AND, self.constant(dtypes.uint32, mask))
    if form.extend and not form.keep:
      moved = self.constant(dtypes.int32, 32 - width)
      bits = bits.bitcast(self.vector(dtypes.int32)).alu(Ops.SHL, moved).alu(Ops.SHR, moved).bitcast(self.vector(dtypes.uint32))
    if form.shift: bits = bits.alu(Ops.SHL, self.constant(dtypes.uint32, form.shift))
    if not form.keep: return bits
    old = self.results.get((target, form.dword))
    if old is None: old = self.row(target, form.dword)
    return old.alu(Ops.AND, self.constant(dtypes.uint32, 0xffffffff ^ mask << form.shift)).alu(Ops.OR, bits)

  def number(self, truth: UOp) -> UOp: return truth.where(self.constant(dtypes.uint32, 1), self.constant(dtypes.uint32, 0))

  def exec_stores(self, value: UOp) -> list[UOp]:
    """EXEC, as wide as the wave has it."""
    self.writes_exec = True
    words = self.words(value, NOTATION["u64"])[:self.lanes // 32]
    return [self.word_store(UOp.const(dtypes.int32, regs.EXEC + i), word) for i, word in enumerate(words)]

  def mask_of(self, truth: UOp) -> UOp:
    """The truths of a vector as bits of a word, at the lanes' places."""
    bits = truth.where(self.numbers([1 << (self.start + i) % LANE_BITS for i in range(self.width)]), self.constant(dtypes.uint32, 0))
    count = self.width
    while count > 1:
      count //= 2
      kind = dtypes.uint32.vec(count)
      bits = UOp(Ops.GEP, kind, (bits,), 0).alu(Ops.OR, UOp(Ops.GEP, kind, (bits,), count))
    return bits

  def mask_stores(self) -> list[UOp]:
    """The mask of lanes that is written: bits of active lanes."""
    stores = []
    for i, parts in enumerate(self.masks):
      word = functools.reduce(lambda a, b: a.alu(Ops.OR, b), parts)
      if self.masked: word = word.alu(Ops.AND, self.scalar_word(regs.EXEC + i))
      stores.append(self.word_store(self.operand("scalar", "CARRY", i), word))
    return stores

  # ***** the state *****

  def operand(self, kind: str, name: str, part: int) -> UOp:
    """A word of the record."""
    at = self.operands.setdefault(Operand(kind, name, part), len(self.operands))
    return place(self.record, UOp.const(dtypes.int32, 2 * (HEAD + at))).load()

  def lanes_of(self, name: str, part: int) -> UOp:
    at = self.operand("row", name, part)
    return place(self.state, at.alu(Ops.ADD, UOp.const(dtypes.int32, self.start)) if self.start else at)

  def row(self, name: str, part: int) -> UOp: return self.lanes_of(name, part).load(dtype=self.vector(dtypes.uint32))

  def row_store(self, name: str, part: int, bits: UOp) -> UOp:
    if self.masked: bits = self.lane_bit(lambda i: self.scalar_word(regs.EXEC + i)).where(bits, self.row(name, part))
    return self.lanes_of(name, part).store(bits)

  def scalar_word(self, register: int) -> UOp: return place(self.state, UOp.const(dtypes.int32, register)).load()
  def word_store(self, at: UOp, word: UOp) -> UOp: return place(self.state, at).store(word)

  def spread(self, word: UOp) -> UOp:
    """A scalar in all lanes."""
    return word if self.width == 1 else UOp(Ops.BROADCAST, self.vector(word.dtype), (word,))

  def numbers(self, values: list[int]) -> UOp:
    """A vector of different constants."""
    return UOp(Ops.VECTORIZE, self.vector(dtypes.uint32), tuple(UOp.const(dtypes.uint32, v) for v in values))

  def lane_bit(self, word: Callable[[int], UOp]) -> UOp:
    """Each lane's bit of a mask, whose words are asked for by number."""
    shifts = self.numbers([(self.start + i) % LANE_BITS for i in range(self.width)])
    bits = self.spread(word(self.start // LANE_BITS)).alu(Ops.SHR, shifts).alu(Ops.AND, self.constant(dtypes.uint32, 1))
    return bits.alu(Ops.CMPNE, self.constant(dtypes.uint32, 0))

  # ***** operands *****

  def read(self, name: str, kind: Type) -> UOp:
    key = name, kind.name
    if key not in self.values: self.values[key] = self.fetch(name, kind)
    return self.values[key]

  def fetch(self, name: str, kind: Type) -> UOp:
    if name == "SCC": return self.spread(self.scalar_word(SCC)).alu(Ops.CMPNE, self.constant(dtypes.uint32, 0))
    if name == "EXEC" and self.width == 1: return self.wave_mask(regs.EXEC)
    if name == "LANE": return self.numbers(list(range(self.start, self.start + self.width)))
    if name == "VCC" and self.shape.lanes: return self.lane_bit(lambda i: place(self.state, self.operand("scalar", "VCC", i)).load())
    if name in ("SIGNED0", "SIGNED1"): return self.constant(dtypes.bool, self.sources["S" + name[-1]].negates[0])
    if name in ("VCC", "PC", "EXEC"): raise Untranslatable
    if name[0] == "M": return self.mixed("S" + name[1:])
    name, _, element = name.partition("#")
    form = self.sources[name]
    return self.typed(name, element_form(form, kind, int(element)) if element else form, kind)

  def wave_mask(self, register: int) -> UOp:
    """A lane mask as a number of 64 bits."""
    low = self.scalar_word(register).cast(dtypes.uint64)
    if self.lanes == 32: return low
    return low.alu(Ops.OR, self.scalar_word(register + 1).cast(dtypes.uint64).alu(Ops.SHL, UOp.const(dtypes.uint64, 32)))

  def mixed(self, name: str) -> UOp:
    """An operand that is a float32 or a half of a register as float16."""
    form = self.sources[name]
    if form.mix is None: return self.typed(name, form, NOTATION["f32"])
    return self.typed(name, form._replace(shift=16 * form.mix, width=16), NOTATION["f16"])

  def raw(self, name: str, form: Form, part: int) -> UOp:
    """32 bits of an operand."""
    if form.kind == "v":
      if not self.shape.lanes: raise Untranslatable
      return self.row(name, form.dword + part)
    if form.kind == "k": return self.spread(self.operand("constant", name, part).bitcast(dtypes.uint32))
    if form.kind in SPECIAL: return self.spread(self.special(form.kind) if not part else UOp.const(dtypes.uint32, 0))
    return self.spread(place(self.state, self.operand("scalar", name, form.dword + part)).load())

  def special(self, kind: str) -> UOp:
    """A bit of the wave's state as a number."""
    if kind == "scc": return self.scalar_word(SCC)
    zero = self.wave_mask(regs.VCC if kind == "vccz" else regs.EXEC).alu(Ops.CMPEQ, UOp.const(dtypes.uint64, 0))
    return zero.where(UOp.const(dtypes.uint32, 1), UOp.const(dtypes.uint32, 0))

  def typed(self, name: str, form: Form, kind: Type) -> UOp:
    """An operand, or a part of it, as a type, with the sign that the instruction asks for."""
    if kind.name not in HOST or form.kind in SPECIAL and kind.kind == "f": raise Untranslatable
    host = self.vector(HOST[kind.name])
    if kind.bits == 64:
      if form.width or form.shift: raise Untranslatable
      wide = self.vector(dtypes.uint64)
      high = self.raw(name, form, 1).cast(wide).alu(Ops.SHL, self.constant(dtypes.uint64, 32))
      return self.signed(self.raw(name, form, 0).cast(wide).alu(Ops.OR, high).bitcast(host), form, kind)
    bits, width = self.raw(name, form, 0), form.width or kind.bits
    if form.shift: bits = bits.alu(Ops.SHR, self.constant(dtypes.uint32, form.shift))
    extended = kind.kind == "i" and (width == kind.bits or form.signed) or form.signed
    if width < 32 and extended:
      moved = self.constant(dtypes.int32, 32 - width)
      bits = bits.bitcast(self.vector(dtypes.int32)).alu(Ops.SHL, moved).alu(Ops.SHR, moved).bitcast(self.vector(dtypes.uint32))
    low = kind.bits if form.signed else min(width, kind.bits)
    if low < 32 and not (kind.kind == "i" and extended): bits = bits.alu(Ops.AND, self.constant(dtypes.uint32, (1 << low) - 1))
    if kind.name == "f16": return self.signed(self.half_of(bits), form, kind)
    if kind.name == "bf16": bits = bits.alu(Ops.SHL, self.constant(dtypes.uint32, 16))
    return self.signed(bits.bitcast(host), form, kind)

  def signed(self, x: UOp, form: Form, kind: Type) -> UOp:
    """With the magnitude and the sign that the instruction asks for."""
    if not form.negate and not form.magnitude: return x
    if kind.kind != "f": raise Untranslatable
    if form.magnitude: x = self.absolute(x)
    return self.flipped(x) if form.negate else x

def place(buffer: UOp, index: UOp) -> UOp: return UOp(Ops.INDEX, buffer.dtype, (buffer, index))

def nodes(node: Node) -> Iterator[Node]:
  """A node and all below it."""
  yield node
  for child in node.args: yield from nodes(child)

def element_form(form: Form, kind: Type, index: int) -> Form:
  """The form of element `index` of an operand that is an array of narrow values."""
  if kind.bits == 16 and index < 2:
    return form._replace(shift=16 * form.halves[index], width=16, negate=form.negates[index], magnitude=False)
  return form._replace(dword=form.dword + index * kind.bits // 32, shift=index * kind.bits % 32, width=kind.bits, negate=False, magnitude=False)

class Native(NamedTuple):
  """A compiled shape: where it is, what the words of its records are, and whether it writes EXEC other than by an operand."""
  address: int
  operands: tuple[Operand, ...]
  writes_exec: bool

@functools.lru_cache(maxsize=None)
def native(shape: Shape, masked: bool, lanes: int) -> Native | None:
  """The compiled shape for waves of so many lanes, or None if it stays Python. masked: for when some lanes are not active."""
  arch = level()
  if arch is None: return None
  try:
    translator = Translator(shape, masked, lanes, 64 if arch.endswith("avx512") else 32)
    code = importlib.import_module("tinyhw.isa.x86.target").compile(translator.program(), arch)
  except (Untranslatable, CompileError, NotImplementedError): return None
  if code.local_bytes: return None
  return Native(load(code), tuple(translator.operands), translator.writes_exec)
