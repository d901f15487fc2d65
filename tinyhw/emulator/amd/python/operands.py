"""Operands of an instruction as Python text: the reads of a shape's function, and their types.

A function (python/lanes.py) has a part that is executed once, and a part for each active lane `l`. This file adds text
to both:

- A scalar operand is read once (`before`).
- A vector register is looked up once and indexed for each lane (`streams`).
- A lane's bits, converted to a type, get a name in the lane's part (`inside`).

Constants and register numbers are parameters of the function's maker.
"""
from __future__ import annotations

from tinyhw.arithmetic import decode_bfloat16
from tinyhw.emulator.python.expressions import Expressions, PythonExpression
from tinyhw.emulator.amd.python.shapes import OperandForm, InstructionShape, ResultForm
from tinyhw.emulator.python import floats
from tinyhw.emulator.notation import TYPES, ExpressionNode, ValueType
from tinyhw.isa.amd.table import regs

VIEW = {"u32": "u", "i32": "i", "f32": "f"}    # types of views of a wave's registers: the RegisterRows of state.Wave
_DECODE = {"f16": "HALVES[{} & 0xffff]", "bf16": "decode_bfloat16({} & 0xffff)", "f32": "float32_of({})",
           "f64": "float64_of({})"}
_BITS = {"scc": "w.scc", "vccz": f"(0 if w.mask({regs.VCC}) else 1)", "execz": "(0 if w.exec else 1)"}

def plus(n: int) -> str:
  """Return the text that adds n to an operand's first register number."""
  return f" + {n}" if n else ""

# ***** constants *****

def constant_value(bits: int, kind: ValueType) -> int | float:
  """Return the value of a constant operand's bits as a type."""
  bits &= (1 << kind.bits) - 1
  if kind.name == "f16": return floats.HALVES[bits]
  if kind.name == "bf16": return decode_bfloat16(bits)
  if kind.kind == "f": return floats.float64_of(bits) if kind.bits == 64 else floats.float32_of(bits)
  return bits - (1 << kind.bits) if kind.kind == "i" and bits > kind.high else bits

def constant_parameter(name: str, form: OperandForm, kind: ValueType) -> str:
  """Return the maker's parameter for a constant operand of this form and type."""
  return f"{name}_{kind.name}_{form.shift}_{form.width}" if form.shift or form.width else f"{name}_{kind.name}"

def constant_argument(parameter: str, bits: int) -> int | float:
  """Return the argument for a parameter of `constant_parameter`. bits: of the constant."""
  _, kind, *part = parameter.split("_")
  if part:
    shift, width = map(int, part)
    bits = bits >> shift & (1 << width) - 1
  return constant_value(bits, TYPES[kind])

# ***** operands *****

class Operands(Expressions):
  """The operands of a shape.

  - parameters: arguments of the maker, in order. before: lines that are executed once.
  - streams: name of a value that is read for each lane -> name of its sequence in `before`.
  - inside: lines for each lane. inline: all must be one expression, so `inside` may get nothing.
  - sources, targets: of the current pass; reads: values that it has read, by name and type.
  """
  def __init__(self, shape: InstructionShape):
    self.shape = shape
    self.parameters: dict[str, None] = {}
    self.before: list[str] = []
    self.streams: dict[str, str] = {}
    self.inside: list[str] = []
    self.inline = False
    self.sources: dict[str, OperandForm] = {}
    self.targets: dict[str, ResultForm] = {}
    self.reads: dict[tuple[str, str], PythonExpression] = {}
    self.locals = {}

  def parameter(self, name: str) -> str:
    """Add a parameter to the maker."""
    self.parameters.setdefault(name)
    return name

  def once(self, line: str) -> None:
    """Add a line that is executed once, before all lanes."""
    if line not in self.before: self.before.append(line)

  def stream(self, name: str, storage: str) -> str:
    """Return a lane's element of a sequence."""
    self.streams[name] = storage
    return name

  def read(self, node: ExpressionNode) -> PythonExpression:
    key = str(node.value), node.type.name
    if key not in self.reads: self.reads[key] = self.fetch(key[0], node.type)
    return self.reads[key]

  def fetch(self, name: str, kind: ValueType) -> PythonExpression:
    """Return the value of a name of the notation: a part of the wave's state, or an operand."""
    if name == "SCC": return PythonExpression("w.scc", 0, 1)
    if name == "PC": return PythonExpression("w.pc", 0, kind.high)
    if name == "EXEC": return PythonExpression("w.exec", 0, kind.high)
    if name == "LANE": return PythonExpression(self.stream("xlane", f"range({self.shape.lanes})"), 0, 63)
    if name == "VCC": return self.lane_bit()
    if name in ("SIGNED0", "SIGNED1"): return PythonExpression(str(self.sources["S" + name[-1]].negates[0]), 0, 1)
    if name[0] == "M": return self.operand("S" + name[1:], *self.sources["S" + name[1:]].mixed(), "mix")
    name, _, element = name.partition("#")
    form = self.sources[name]
    return self.operand(name, form.element(kind, int(element)) if element else form, kind, element)

  def lane_bit(self) -> PythonExpression:
    """Return this lane's bit of the VCC operand; in a scalar instruction the lowest bit."""
    self.parameter("VCC")
    if not self.shape.lanes: return PythonExpression("(w.mask(VCC) & 1)", 0, 1)
    return PythonExpression(self.stream("xmask", f"lane_bits(w.mask(VCC), {self.shape.lanes})"), 0, 1)

  def operand(self, name: str, form: OperandForm, kind: ValueType, element: str) -> PythonExpression:
    """Return an operand as a type. element: distinguishes parts of one register that have the same form and type."""
    if form.kind == "v": return self.lane_value(name, form, kind)
    if form.kind == "k":
      parameter = self.parameter(constant_parameter(name, form, kind))
      return self.modified(PythonExpression(parameter) if kind.kind == "f"
                           else PythonExpression(parameter, kind.low, kind.high), form, kind)
    once = f"{name}_{kind.name}{element}_{form.dword}_{form.shift}"
    self.once(f"{once} = {self.scalar(name, form, kind)}")
    return self.modified(PythonExpression(once, kind.low, kind.high), form, kind)

  def scalar(self, name: str, form: OperandForm, kind: ValueType) -> str:
    """Return a scalar operand as a type."""
    if form.kind in _BITS: return self.typed(_BITS[form.kind], form, kind)
    self.parameter(name)
    raw = f"s[{name}{plus(form.dword)}]"
    for i in range(1, kind.bits // 32): raw += f" | s[{name}{plus(form.dword + i)}] << {32 * i}"
    return self.typed(raw, form, kind)

  def lane_value(self, name: str, form: OperandForm, kind: ValueType) -> PythonExpression:
    """Return a vector operand as a type, in this lane."""
    self.parameter(name)
    if kind.name in VIEW and not form.width and not form.shift: text = self.register(name, VIEW[kind.name], form.dword)
    elif kind.bits > 32:
      text = " | ".join(f"{self.register(name, 'u', form.dword + i)}{f' << {32 * i}' if i else ''}"
                        for i in range(kind.bits // 32))
      text = self.typed(f"({text})", form, kind)
    else: text = self.typed(self.register(name, "u", form.dword), form, kind)
    found = self.modified(PythonExpression(text, kind.low, kind.high), form, kind)
    if self.inline or found.text.isidentifier(): return found
    local = f"v{len(self.inside)}"
    self.inside.append(f"{local} = {found.text}")
    return found._replace(text=local)

  def register(self, name: str, view: str, dword: int) -> str:
    """Return this lane's element of a vector register."""
    row = f"w.{view}[{name}{plus(dword)}]"
    return self.stream(f"x{name.lower()}{view}{dword}", f"w.moved({row}, moves)" if self.shape.permuted and name == "S0"
                       else row)

  def typed(self, raw: str, form: OperandForm, kind: ValueType) -> str:
    """Convert raw bits to a value of a type. There are 32 bits, or as many as a wider type has."""
    width = form.width or kind.bits
    if width < 32 or form.shift:
      raw = f"({raw} >> {form.shift} & {(1 << width) - 1:#x})" if form.shift else f"({raw} & {(1 << width) - 1:#x})"
    if form.signed and width < 32:
      raw = f"((({raw}) ^ {1 << width - 1:#x}) - {1 << width - 1:#x} & {(1 << kind.bits) - 1:#x})"
    if kind.kind == "u": return raw if kind.bits >= 16 else f"({raw} & {kind.high:#x})"
    if kind.kind == "i":
      half = 1 << kind.bits - 1
      return raw if width < kind.bits and not form.signed else f"(({raw} ^ {half:#x}) - {half:#x})"
    return _DECODE[kind.name].format(raw)

  def modified(self, value: PythonExpression, form: OperandForm, kind: ValueType) -> PythonExpression:
    """Apply the magnitude and the sign that the instruction asks for, and flush denormals."""
    text = value.text
    if kind.kind == "f":
      if form.magnitude: text = f"abs({text})"
      if form.negate: text = f"(-{text})"
      return PythonExpression(f"flush_{kind.name}({text})" if self.shape.flushes(kind) else text)
    if form.magnitude: text = f"({text} & {(1 << kind.bits - 1) - 1:#x})"
    if form.negate: text = f"({text} ^ {1 << kind.bits - 1:#x})"
    return PythonExpression(text, value.low, value.high)
