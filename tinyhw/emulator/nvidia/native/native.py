"""Instructions that compute as machine code of the host, from semantics/table.py: functions for records, and the words
of the records.

Instructions without semantics there stay in Python. So do those with functions that native/expressions.py lacks.
"""
from __future__ import annotations

from tinyhw.dtype import dtypes
from tinyhw.emulator.errors import UnknownInstruction
from tinyhw.emulator.native.expressions import HOST, Untranslatable
from tinyhw.emulator.native.native import Lanes, Native, built
from tinyhw.emulator.notation import Assignment, ExpressionNode, ValueType, nodes, parse
from tinyhw.emulator.nvidia.semantics.table import semantics_of
from tinyhw.emulator.nvidia.warp.operands import Operands
from tinyhw.emulator.nvidia.warp.state import (
  BLOCK, FIRST, GUARDED, LANES, P_AT, UP_AT, UR_AT, constants_word, row_word)
from tinyhw.isa.sass.table import regs
from tinyhw.machine.ir.inst import MInst, Reg
from tinyhw.machine.ir.target import Capabilities
from tinyhw.named_tuple import NamedTuple
from tinyhw.threads import once
from tinyhw.uop.ops import UOp

class OperandForm(NamedTuple):
  """How an operand is read. kind: "v" rows, "s" words of the state, "m" a mask of lanes, "k" a constant, "z" zero.

  upper: a constant is the upper word of a float64.
  """
  kind: str
  negate: bool = False
  magnitude: bool = False
  upper: bool = False

class InstructionShape(NamedTuple):
  """Everything that a function depends on. targets: operands, and "v", "s" or "m". lanes: 0 for instructions without
  lanes: uniform registers, whole predicates."""
  semantics: str
  sources: tuple[tuple[str, OperandForm], ...]
  targets: tuple[tuple[str, str], ...]
  lanes: int

class Computation(NamedTuple):
  """Computation of an instruction. arguments: for each operand the register, the word of the state, or the constant."""
  shape: InstructionShape
  arguments: dict[str, int]

STATE_WORDS = {"LANES": GUARDED, "FIRST": FIRST, "BLOCK": BLOCK}
BUILT_IN = ("LANE",)

def computation(inst: MInst, registers: int, constants: int) -> Computation | None:
  """Return the computation of an instruction, or None if it stays in Python. registers: of the launch; constants: bytes
  of its constant bank."""
  o = Operands(inst)
  # operands in constant memory, which no compiled kernel has
  if any(name.endswith("_bank") for name in o.values): return None
  try:
    text = semantics_of(o)
    if not text: return None
    found = Binder(o, text, registers, constants).computation()
    o.finish()
  except (UnknownInstruction, Untranslatable, KeyError): return None
  return found

class Binder:
  """Binder of an instruction's operands to its semantics."""
  def __init__(self, o: Operands, text: str, registers: int, constants: int):
    self.o, self.text, self.registers, self.constants = o, text, registers, constants
    self.semantics = parse(text)
    self.arguments: dict[str, int] = {}

  def computation(self) -> Computation | None:
    """Return the computation. Raises Untranslatable, UnknownInstruction or KeyError if there is none."""
    reads: dict[str, ExpressionNode] = {str(n.value): n for a in self.semantics for n in nodes(a.value)
                                        if n.op == "read"
                                        and n.value not in BUILT_IN}
    sources = tuple((name, self.source(name, node.type)) for name, node in reads.items())
    targets = tuple((a.target, kind) for a in self.semantics if (kind := self.target(a)))
    if not targets: return None
    lanes = LANES if any(kind != "s" for _, kind in targets) else 0
    return Computation(InstructionShape(self.text, sources, targets, lanes), self.arguments)

  def source(self, name: str, kind: ValueType) -> OperandForm:
    if name in STATE_WORDS:
      self.arguments[name] = STATE_WORDS[name]
      return OperandForm("s")
    if name == "W": return self.constant_bank(kind.bits // 8)
    operand = self.o.named(name)
    negate, magnitude = (kind.kind == "f" and self.o.flag(f"{operand}_{sign}") for sign in ("neg", "abs"))
    form = OperandForm(self.place(name, self.o.values[operand], kind.kind == "b"), negate, magnitude)
    return form._replace(upper=form.kind == "k" and kind.name == "f64")

  def place(self, name: str, value: Reg | int, truth: bool) -> str:
    """Record an operand's argument. Return its kind."""
    if not isinstance(value, Reg):
      self.arguments[name] = value & 0xffffffff
      return "k"
    assert value.index is not None, "a physical register is expected"
    if value.index == regs.ZERO: return "z"
    bank = value.cls.bank
    first = {regs.VECTOR: 0, regs.UNIFORM: UR_AT, regs.PREDICATE: P_AT, regs.UNIFORM_PREDICATE: UP_AT}[bank]
    self.arguments[name] = first + value.index
    return "v" if bank is regs.VECTOR else "m" if truth else "s"

  def constant_bank(self, size: int) -> OperandForm:
    offset = self.o.number("w")
    if self.o.number("bank") or size < 4: raise Untranslatable
    if offset % size or not 0 <= offset <= self.constants - size: raise Untranslatable
    self.arguments["W"] = constants_word(self.registers) + offset // 4
    return OperandForm("s")

  def target(self, assignment: Assignment) -> str:
    """Return the kind of a result, "" for a local value and for one that is discarded."""
    value = self.o.values.get(self.o.named(assignment.target))
    if value is None: return ""
    if value.cls.bank is regs.UNIFORM_PREDICATE and assignment.type.kind == "b" and value is not regs.UPT:
      raise Untranslatable  # a mask of all lanes, or of none
    kind = self.place(assignment.target, value, assignment.type.kind == "b")
    return "" if kind == "z" or value is regs.PT or value is regs.UPT else kind

class Translator(Lanes):
  """One shape as a Program."""
  def __init__(self, shape: InstructionShape, masked: bool, host: Capabilities):
    super().__init__(parse(shape.semantics), shape.lanes, masked, GUARDED, host)
    self.sources, self.targets = dict(shape.sources), dict(shape.targets)
    self.values: dict[tuple[str, str], UOp] = {}

  def keeps(self, mask: str) -> bool: return True

  def chunk(self) -> list[UOp]:
    stores: list[UOp] = []
    self.values.clear()
    self.locals.clear()
    for target, kind, node in ((a.target, a.type, a.value) for a in self.semantics):
      form = self.targets.get(target)
      if form == "m": self.put_mask(target, self.value(node))
      elif form == "v":
        stores += [self.row_store(target, i, word) for i, word in enumerate(self.words(self.value(node), kind))]
      elif form == "s":
        stores += [self.word_store(self.operand("scalar", target, i), word)
                   for i, word in enumerate(self.words(self.value(node), kind))]
      else: self.locals[target] = self.value(node)
    return stores

  # ***** operands *****

  def read(self, name: str, kind: ValueType) -> UOp:
    key = name, kind.name
    if key not in self.values: self.values[key] = self.fetch(name, kind)
    return self.values[key]

  def fetch(self, name: str, kind: ValueType) -> UOp:
    if name == "LANE": return self.numbers(list(range(self.start, self.start + self.width)))
    form = self.sources[name]
    if form.kind == "m": return self.mask_bit(name)
    if kind.name not in HOST: raise Untranslatable
    host = self.vector(HOST[kind.name])
    if kind.bits == 64: bits = self.pair(self.word(name, form, 0), self.word(name, form, 1)).bitcast(host)
    elif kind.bits == 32: bits = self.word(name, form, 0).bitcast(host)
    else: raise Untranslatable
    return self.signed(bits, form.negate, form.magnitude, kind)

  def word(self, name: str, form: OperandForm, part: int) -> UOp:
    """Return 32 bits of an operand."""
    if form.kind == "v": return self.row(name, part)
    if form.kind == "s": return self.word_scalar(name, part)
    if form.kind == "z" or form.upper != bool(part): return self.constant(dtypes.uint32, 0)
    return self.word_constant(name, 0)

@once
def native(shape: InstructionShape, masked: bool) -> Native | None:
  """Return the compiled shape, or None if it stays in Python. masked: for warps in which some lanes are not active."""
  return built(lambda host: Translator(shape, masked, host))

def words_of(made: Native, found: Computation, registers: int) -> list[int]:
  """Return the operands of a record of the function, for a launch with this many registers.

  Raises KeyError for a register that it does not have.
  """
  words = []
  for kind, name, part in made.operands:
    value = found.arguments[name]
    words.append(row_word(value + part, registers) if kind == "row" else value + part if kind == "scalar" else value)
  return words
