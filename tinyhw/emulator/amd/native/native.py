"""Instructions that compute as machine code of the host, from the same semantics as python/lanes.py: functions for
records.

Permutations, clamped integers, flushed denormals, approximate functions and 128 bits stay in Python. On other
processors everything does. Both give the same bits except for NaNs (test_native.py).
"""
from __future__ import annotations

from tinyhw.dtype import dtypes
from tinyhw.emulator.amd.python.shapes import OperandForm, InstructionShape, ResultForm
from tinyhw.emulator.native.expressions import HOST, Untranslatable
from tinyhw.emulator.native.native import Lanes, Native, built
from tinyhw.emulator.notation import TYPES as NOTATION
from tinyhw.emulator.notation import ValueType, parse
from tinyhw.isa.amd.table import regs
from tinyhw.machine.ir.target import Capabilities
from tinyhw.threads import once
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp

SCC = regs.READ_ONLY["src_scc"]
SPECIAL = ("scc", "vccz", "execz")

class Translator(Lanes):
  """One shape as a Program. wave: lanes of the wave."""
  def __init__(self, shape: InstructionShape, masked: bool, wave: int, host: Capabilities):
    if shape.permuted or shape.omod: raise Untranslatable
    super().__init__(parse(shape.semantics), shape.lanes, masked, regs.EXEC, host)
    self.shape, self.wave = shape, wave
    if shape.flush32 and "f32" in self.types or shape.flush64 and self.types & {"f16", "f64"}: raise Untranslatable
    self.sources: dict[str, OperandForm] = {}
    self.targets: dict[str, ResultForm] = {}
    self.values: dict[tuple[str, str], UOp] = {}
    self.results: dict[tuple[str, int], UOp] = {}       # a row -> its new lanes, where passes write parts of it

  def keeps(self, mask: str) -> bool: return False

  def chunk(self) -> list[UOp]:
    """Return the stores of a vector register's lanes, or of a scalar instruction."""
    stores: list[UOp] = []
    self.results.clear()
    for part in self.shape.passes:
      self.sources, self.targets = dict(part.sources), dict(part.targets)
      self.values.clear()
      self.locals.clear()
      for assignment in self.semantics:
        target, value = assignment.target, self.value(assignment.value)
        if target == "CARRY" and self.lanes: self.put_mask("CARRY", value)
        elif target == "SCC": stores.append(self.word_store(UOp.const(dtypes.int32, SCC), self.number(value)))
        elif target == "EXEC": stores += self.exec_stores(value)
        elif target in ("PC", "CARRY"): raise Untranslatable
        elif target in self.targets:
          stores += self.write(target, assignment.type, self.modified(value, assignment.type))
        elif target.startswith("D") and target[1:].isdigit() or target == "D": raise Untranslatable
        else: self.locals[target] = value
    return stores + [self.row_store(name, part, bits) for (name, part), bits in self.results.items()]

  # ***** results *****

  def modified(self, value: UOp, kind: ValueType) -> UOp:
    """Clamp the value if the instruction asks for it."""
    if not self.shape.clamp: return value
    if kind.kind != "f": raise Untranslatable
    zero, one = self.constant(HOST[kind.name], 0.0), self.constant(HOST[kind.name], 1.0)
    held = value.alu(Ops.CMPLT, zero).where(zero, one.alu(Ops.CMPLT, value).where(one, value))
    return value.alu(Ops.CMPNE, value).where(zero, held)

  def write(self, target: str, kind: ValueType, value: UOp) -> list[UOp]:
    form = self.targets[target]
    if form.kind == "none": return []
    words = self.words(value, kind)
    if form.kind == "s":
      return [self.word_store(self.operand("scalar", target, form.dword + i), word) for i, word in enumerate(words)]
    if kind.bits >= 32 and not form.width:
      for i, word in enumerate(words): self.results[target, form.dword + i] = word
    else: self.results[target, form.dword] = self.part(target, form, kind, words[0])
    return []

  def part(self, target: str, form: ResultForm, kind: ValueType, bits: UOp) -> UOp:
    """Return a register with a part of it replaced."""
    width = form.width or kind.bits
    mask = (1 << width) - 1
    if width < kind.bits: bits = bits.alu(Ops.AND, self.constant(dtypes.uint32, mask))
    if form.extend and not form.keep:
      moved = self.constant(dtypes.int32, 32 - width)
      bits = bits.bitcast(self.vector(dtypes.int32)).alu(Ops.SHL, moved).alu(Ops.SHR,
                                                                             moved).bitcast(self.vector(dtypes.uint32))
    if form.shift: bits = bits.alu(Ops.SHL, self.constant(dtypes.uint32, form.shift))
    if not form.keep: return bits
    old = self.results.get((target, form.dword))
    if old is None: old = self.row(target, form.dword)
    return old.alu(Ops.AND, self.constant(dtypes.uint32, 0xffffffff ^ mask << form.shift)).alu(Ops.OR, bits)

  def exec_stores(self, value: UOp) -> list[UOp]:
    """Return the stores of EXEC, as wide as the wave has it."""
    words = self.words(value, NOTATION["u64"])[:self.wave // 32]
    return [self.word_store(UOp.const(dtypes.int32, regs.EXEC + i), word) for i, word in enumerate(words)]

  # ***** operands *****

  def read(self, name: str, kind: ValueType) -> UOp:
    key = name, kind.name
    if key not in self.values: self.values[key] = self.fetch(name, kind)
    return self.values[key]

  def fetch(self, name: str, kind: ValueType) -> UOp:
    if name == "SCC": return self.spread(self.scalar_word(SCC)).alu(Ops.CMPNE, self.constant(dtypes.uint32, 0))
    if name == "EXEC" and self.width == 1: return self.wave_mask(regs.EXEC)
    if name == "LANE": return self.numbers(list(range(self.start, self.start + self.width)))
    if name == "VCC" and self.shape.lanes: return self.mask_bit("VCC")
    if name in ("SIGNED0", "SIGNED1"): return self.constant(dtypes.bool, self.sources["S" + name[-1]].negates[0])
    if name in ("VCC", "PC", "EXEC"): raise Untranslatable
    if name[0] == "M": return self.typed("S" + name[1:], *self.sources["S" + name[1:]].mixed())
    name, _, element = name.partition("#")
    form = self.sources[name]
    return self.typed(name, form.element(kind, int(element)) if element else form, kind)

  def wave_mask(self, register: int) -> UOp:
    """Return a lane mask as a 64-bit number."""
    low = self.scalar_word(register).cast(dtypes.uint64)
    if self.wave == 32: return low
    return low.alu(Ops.OR,
                   self.scalar_word(register + 1).cast(dtypes.uint64).alu(Ops.SHL, UOp.const(dtypes.uint64, 32)))

  def raw(self, name: str, form: OperandForm, part: int) -> UOp:
    """Return 32 bits of an operand."""
    if form.kind == "v":
      if not self.shape.lanes: raise Untranslatable
      return self.row(name, form.dword + part)
    if form.kind == "k": return self.word_constant(name, part)
    if form.kind in SPECIAL: return self.spread(self.special(form.kind) if not part else UOp.const(dtypes.uint32, 0))
    return self.word_scalar(name, form.dword + part)

  def special(self, kind: str) -> UOp:
    """Return a bit of the wave's state as a number."""
    if kind == "scc": return self.scalar_word(SCC)
    zero = self.wave_mask(regs.VCC if kind == "vccz" else regs.EXEC).alu(Ops.CMPEQ, UOp.const(dtypes.uint64, 0))
    return zero.where(UOp.const(dtypes.uint32, 1), UOp.const(dtypes.uint32, 0))

  def typed(self, name: str, form: OperandForm, kind: ValueType) -> UOp:
    """Return an operand, or a part of it, as a type, with the sign that the instruction asks for."""
    if kind.name not in HOST or form.kind in SPECIAL and kind.kind == "f": raise Untranslatable
    host = self.vector(HOST[kind.name])
    if kind.bits == 64:
      if form.width or form.shift: raise Untranslatable
      return self.signed(self.pair(self.raw(name, form, 0), self.raw(name, form, 1)).bitcast(host), form.negate,
                         form.magnitude, kind)
    bits, width = self.raw(name, form, 0), form.width or kind.bits
    if form.shift: bits = bits.alu(Ops.SHR, self.constant(dtypes.uint32, form.shift))
    extended = kind.kind == "i" and (width == kind.bits or form.signed) or form.signed
    if width < 32 and extended:
      moved = self.constant(dtypes.int32, 32 - width)
      bits = bits.bitcast(self.vector(dtypes.int32)).alu(Ops.SHL, moved).alu(Ops.SHR,
                                                                             moved).bitcast(self.vector(dtypes.uint32))
    low = kind.bits if form.signed else min(width, kind.bits)
    if low < 32 and not (kind.kind == "i" and extended):
      bits = bits.alu(Ops.AND, self.constant(dtypes.uint32, (1 << low) - 1))
    if kind.name == "f16": return self.signed(self.half_of(bits), form.negate, form.magnitude, kind)
    if kind.name == "bf16": bits = bits.alu(Ops.SHL, self.constant(dtypes.uint32, 16))
    return self.signed(bits.bitcast(host), form.negate, form.magnitude, kind)

@once
def native(shape: InstructionShape, masked: bool, lanes: int) -> Native | None:
  """Return the compiled shape for waves of this many lanes, or None if it stays in Python. masked: for waves in which
  some lanes are not active."""
  return built(lambda host: Translator(shape, masked, lanes, host))
