"""Python functions from meanings: one executes an instruction on the registers of a wave.

A `Shape` is all that the text of the function depends on; register numbers and constants are arguments of its maker, so that instructions that
differ in these only share one compilation. A vector function loops over the active lanes, or, where a meaning is one assignment of a plain 32-bit
value and all lanes are active, is one comprehension. Integers are computed without wrapping: bounds are carried along, and a mask is applied only
where a value could be outside of its type and somebody would see it. Floats are doubles that are rounded where their type is narrower.
"""
from __future__ import annotations
from array import array
from collections.abc import Callable
from functools import lru_cache
from itertools import compress
from typing import Any, NamedTuple

from tinyhw.arithmetic import decode_bfloat16
from tinyhw.emulator.amd import floats, numerics
from tinyhw.emulator.notation import FUNCTIONS, TYPES, Assignment, Node, NotationError, Type, parse

class Form(NamedTuple):
  """How an operand is read or written, but for its number.

  kind: "v" a vector register, "s" a scalar one, "k" a constant, "scc"/"vccz"/"execz" a bit as a number, "none" (writes are dropped).
  dword: counted from the operand's first register. shift, width: the part of that dword that is used, 0 bits: what the type wants. signed: the part
  is sign extended. halves, negates: which half elements 0 and 1 of a pair of 16-bit values are, and which of them are negated. mix: of an
  operand that is a float16 or float32 which half the float16 is, or None for a float32.
  """
  kind: str
  dword: int = 0
  shift: int = 0
  width: int = 0
  signed: bool = False
  negate: bool = False
  magnitude: bool = False
  halves: tuple[int, int] = (0, 1)
  negates: tuple[bool, bool] = (False, False)
  mix: int | None = None

class Target(NamedTuple):
  """How the result is written. keep: bits of the register outside of the part that is written stay, else they are 0 (or, with extend, its sign)."""
  kind: str
  dword: int = 0
  shift: int = 0
  width: int = 0
  keep: bool = True
  extend: bool = False

class Shape(NamedTuple):
  """What a function is made for. A pass is one evaluation of the meaning: packed instructions have two, for the halves of their operands.

  sources: (operand, Form); targets: (operand, Target). lanes: 0 for a scalar instruction. omod: exponent of the factor 2, 4, 1/2 (1, 2, -1).
  flush32, flush64: denormals of float32, and of float16 and float64, become 0. fnuz: 8-bit floats are those of gfx942. permuted: S0 comes from other
  lanes (DPP).
  """
  meaning: str
  passes: tuple[tuple[tuple[tuple[str, Form], ...], tuple[tuple[str, Target], ...]], ...]
  lanes: int
  clamp: bool = False
  omod: int = 0
  flush32: bool = False
  flush64: bool = False
  fnuz: bool = False
  permuted: bool = False

class Value(NamedTuple):
  """A piece of Python: an integer within low..high, or a float that is `rounded` to its type or not yet."""
  text: str
  low: int = 0
  high: int = 0
  rounded: bool = True

@lru_cache(maxsize=None)
def environment(fnuz: bool) -> dict[str, Any]:
  """The globals of generated functions."""
  return numerics.environment(fnuz) | {"array": array, "compress": compress, "BITS": tuple(1 << i for i in range(64)),
                                       "__name__": __name__}  # so that nobody takes them for a user's

class Compiled(NamedTuple):
  """make(*arguments) gives the function of a wave; a parameter is an operand's name, whose argument is a register number, or a constant's
  (constant_argument)."""
  make: Callable[..., Callable[[Any], None]]
  parameters: tuple[str, ...]
  text: str

@lru_cache(maxsize=None)
def compiled(shape: Shape) -> Compiled:
  """The function of a shape."""
  writer = _Writer(shape)
  text = writer.function()
  names: dict[str, Any] = {}
  exec(compile(text, f"<{shape.meaning}>", "exec"), environment(shape.fnuz), names)
  return Compiled(names["make"], tuple(writer.parameters), text)

def constant_value(bits: int, kind: Type) -> int | float:
  """What the bits of a constant operand are when they are read as a type."""
  bits &= (1 << kind.bits) - 1
  if kind.name == "f16": return floats.HALVES[bits]
  if kind.name == "bf16": return decode_bfloat16(bits)
  if kind.kind == "f": return floats.float64_of(bits) if kind.bits == 64 else floats.float32_of(bits)
  return bits - (1 << kind.bits) if kind.kind == "i" and bits > kind.high else bits

def constant_argument(parameter: str, bits: int) -> int | float:
  """The argument for a maker's parameter that stands for a constant operand: operand_type or operand_type_shift_width."""
  words = parameter.split("_")
  if len(words) > 2: bits = bits >> int(words[2]) & (1 << int(words[3])) - 1
  return constant_value(bits, TYPES[words[1]])

_VIEW = {"u32": "u", "i32": "i", "f32": "f"}
_ENCODE = {"f16": "encode_float16", "bf16": "encode_bfloat16", "f32": "bits_of_float32", "f64": "bits_of_float64"}
_DECODE = {"f16": "HALVES[{} & 0xffff]", "bf16": "decode_bfloat16({} & 0xffff)", "f32": "float32_of({})", "f64": "float64_of({})"}
_CODE = {"u32": "I", "i32": "i", "f32": "f"}

class _Writer:
  """The text of one function."""
  def __init__(self, shape: Shape):
    self.shape = shape
    self.meaning = parse(shape.meaning)
    self.parameters: dict[str, None] = {}     # arguments of the maker, in order
    self.before: list[str] = []               # once for each execution
    self.streams: dict[str, str] = {}         # what is read for each lane -> the sequence that it comes from, as `before` knows it
    self.inline = False                       # all in one expression
    self.inside: list[str] = []               # once for each lane
    self.after: list[str] = []
    self.reads: dict[Any, Value] = {}
    self.sources: dict[str, Form] = {}
    self.targets: dict[str, Target] = {}

  def function(self) -> str:
    quick = self.quick() if self.shape.lanes else []
    for number, (sources, targets) in enumerate(self.shape.passes):
      self.sources, self.targets, self.reads = dict(sources), dict(targets), {}
      for assignment in self.meaning: self.assign(assignment, f"{number}" if number else "")
    if self.shape.permuted: self.parameter("MOVES")
    lines = [*self.before]
    if self.shape.lanes:
      lines += [f"{name.upper()} = {storage}" for name, storage in self.streams.items()]
      lines += quick
      lines.append("for l in lanes:" if self.shape.permuted else "for l in w.active:")
      lines += [f"  {name} = {name.upper()}[l]" for name in self.streams]
      lines += [f"  {line}" for line in self.inside] or ["  pass"]
    else: lines += self.inside
    if self.shape.permuted: lines.insert(0, "lanes, moves = w.permutation(MOVES)")
    body = "\n".join(f"    {line}" for line in (*lines, *self.after)) or "    pass"
    return f"def make({', '.join(self.parameters)}):\n  def run(w):\n    s = w.s\n{body}\n  return run\n"

  def quick(self) -> list[str]:
    """All lanes at once, where the meaning is one assignment of a whole register or of the lane mask; nothing where it is not."""
    if len(self.meaning) != 1 or len(self.shape.passes) != 1 or self.shape.permuted: return []
    target, kind, value = self.meaning[0].target, self.meaning[0].type, self.meaning[0].value
    self.sources, targets = dict(self.shape.passes[0][0]), dict(self.shape.passes[0][1])
    mask = target == "CARRY"
    if not mask and (targets.get(target) != Target("v") or kind.name not in _VIEW): return []
    self.inline = True
    wide = self.wide(value) if kind.name == "f32" else None
    result = self.exact(value) if mask else self.result(value, kind, rounding=False).text
    streams, self.streams, self.reads, self.inline = self.streams, {}, {}, False
    if not streams: return []
    lists = [name.upper() if storage.startswith(("lane_bits", "range")) else f"{name.upper()}.tolist()" for name, storage in streams.items()]
    each = f"for {', '.join(streams)} in {lists[0] if len(lists) == 1 else f'zip({chr(44).join(lists)})'}"
    if mask: return ["if w.full:", f"  w.set_mask(CARRY, sum(compress(BITS, [{result} {each}])))", "  return"]
    stored = f"w.{_VIEW[kind.name]}[{target}][:] = array('{_CODE[kind.name]}', "
    if wide is None: return ["if w.full:", f"  {stored}[{result} {each}])", "  return"]
    reads = [f"    {name} = {name.upper()}[l]" for name in streams]
    return ["if w.full:", f"  sums = [{wide} {each}]", "  for l in doubtful(sums):", *reads, f"    sums[l] = {result}", f"  {stored}sums)",
            "  return"]

  def wide(self, value: Node) -> str | None:
    """A fused multiplication and addition of float32 as two operations on doubles; `doubtful` says where that may be wrong."""
    if value.op != "call" or value.value != "fma" or self.shape.omod or self.shape.clamp or self.shape.flush32: return None
    a, b, c = (self.exact(argument) for argument in value.args)
    return f"{a} * {b} + {c}"

  # ***** statements *****

  def assign(self, assignment: Assignment, suffix: str) -> None:
    target, kind, value = assignment.target, assignment.type, assignment.value
    if target == "CARRY" and self.shape.lanes:
      self.parameter("CARRY")
      if "mask_out = 0" not in self.before:
        self.before.append("mask_out = 0")
        self.after.append("w.set_mask(CARRY, mask_out)")
      self.inside.append(f"if {self.exact(value)}: mask_out |= 1 << l")
    elif target == "SCC": self.after.append(f"w.scc = 1 if {self.exact(value)} else 0")
    elif target == "PC": self.after.append(f"w.pc = {self.exact(value)}")
    elif target == "EXEC": self.after.append(f"w.set_exec({self.exact(value)})")
    elif target in self.targets: self.write(target, kind, value)
    elif target.startswith("D"): raise NotationError(f"{target} is no operand of this instruction")
    else:
      name = f"t_{target}{suffix}"
      self.inside.append(f"{name} = {self.exact(value)}")
      found = self.value(value)
      low, high = (0, 1) if kind.kind == "b" else (kind.low, kind.high)
      within = low <= found.low and found.high <= high
      self.reads["local", target] = Value(name, found.low if within else low, found.high if within else high)

  def result(self, value: Node, kind: Type, rounding: bool = True) -> Value:
    """The value as it is written: modified, rounded, with denormals flushed as the mode says. Without `rounding` storing a float32 rounds it."""
    found = self.value(value)
    if kind.kind == "f":
      plain = not (self.shape.omod or self.shape.clamp or self.flushes(kind))
      if plain and not rounding: return found
      text = self.rounded(found, kind)
      if self.shape.omod: text = self.rounded(Value(f"({text} * {2.0 ** self.shape.omod})", rounded=False), kind)
      if self.shape.clamp: text = f"clamp_float({text})"
      if self.flushes(kind): text = f"flush_{kind.name}({text})"
      return Value(text)
    if self.shape.clamp: return Value(f"min(max({found.text}, {kind.low}), {kind.high})", max(found.low, kind.low), min(found.high, kind.high))
    return Value(self.wrapped(found, kind), kind.low, kind.high)

  def flushes(self, kind: Type) -> bool: return self.shape.flush32 if kind.name == "f32" else self.shape.flush64 and kind.name in ("f16", "f64")

  def write(self, target: str, kind: Type, value: Node) -> None:
    form = self.targets[target]
    if form.kind == "none": return
    self.parameter(target)
    if form.kind == "v" and kind.name in _VIEW and not form.width:
      stored = f"w.{_VIEW[kind.name]}[{target}{plus(form.dword)}]"
      name = f"{target}_{_VIEW[kind.name]}{form.dword}"
      if f"{name} = {stored}" not in self.before: self.before.append(f"{name} = {stored}")
      self.inside.append(f"{name}[l] = {self.result(value, kind, rounding=False).text}")
      return
    bits = self.bits_of(self.result(value, kind).text, kind)
    if form.kind == "s": self.write_scalar(target, form, kind, bits)
    else: self.write_lane(target, form, kind, bits)

  def bits_of(self, text: str, kind: Type) -> str:
    """An exact value as an unsigned number."""
    if kind.kind == "i": return f"({text} & {(1 << kind.bits) - 1:#x})"
    if kind.kind == "b": return f"(1 if {text} else 0)"
    if kind.kind == "u": return text
    return f"{_ENCODE[kind.name]}({text})"

  def write_scalar(self, target: str, form: Target, kind: Type, bits: str) -> None:
    if kind.bits <= 32: self.after.append(f"s[{target}{plus(form.dword)}] = {bits}")
    else:
      self.after.append(f"{target}_bits = {bits}")
      self.after += [f"s[{target}{plus(i)}] = {target}_bits >> {32 * i} & 0xffffffff" for i in range(kind.bits // 32)]

  def write_lane(self, target: str, form: Target, kind: Type, bits: str) -> None:
    count = max(kind.bits // 32, 1)
    for i in range(count):
      line = f"{target}_u{form.dword + i} = w.u[{target}{plus(form.dword + i)}]"
      if line not in self.before: self.before.append(line)
    if count > 1:
      self.inside.append(f"{target}_bits = {bits}")
      for i in range(count): self.inside.append(f"{target}_u{form.dword + i}[l] = {target}_bits >> {32 * i} & 0xffffffff")
      return
    name, width = f"{target}_u{form.dword}", form.width or kind.bits
    if width < kind.bits: bits = f"({bits} & {(1 << width) - 1:#x})"
    moved = f"({bits} << {form.shift})" if form.shift else bits
    if form.keep: self.inside.append(f"{name}[l] = {name}[l] & {0xffffffff ^ ((1 << width) - 1 << form.shift):#x} | {moved}")
    elif form.extend: self.inside.append(f"{name}[l] = (({bits} ^ {1 << width - 1:#x}) - {1 << width - 1:#x} << {form.shift}) & 0xffffffff")
    else: self.inside.append(f"{name}[l] = {moved}")

  def parameter(self, name: str) -> str:
    self.parameters.setdefault(name)
    return name

  # ***** expressions *****

  def exact(self, node: Node) -> str:
    """The value as its type has it: wrapped, rounded."""
    found = self.value(node)
    return self.rounded(found, node.type) if node.type.kind == "f" else self.wrapped(found, node.type)

  def wrapped(self, value: Value, kind: Type) -> str:
    if kind.kind == "b" or value.low >= kind.low and value.high <= kind.high: return value.text
    mask = (1 << kind.bits) - 1
    if kind.kind == "u": return f"({value.text} & {mask:#x})"
    half = 1 << kind.bits - 1
    return f"(({value.text} + {half:#x} & {mask:#x}) - {half:#x})"

  def rounded(self, value: Value, kind: Type) -> str:
    if value.rounded or kind.name == "f64": return value.text
    return f"{ {'f32': 'round_float32', 'f16': 'round_float16', 'bf16': 'round_bfloat16'}[kind.name] }({value.text})"

  def value(self, node: Node) -> Value:
    kind = node.type
    if node.op == "const":
      assert isinstance(node.value, (int, float)), "a constant is a number"
      if isinstance(node.value, float): return Value(f"({node.value!r})")
      return Value(repr(node.value), int(node.value), int(node.value))
    if node.op == "local": return self.reads["local", node.value]
    if node.op == "read": return self.read(node)
    if node.op == "convert": return self.convert(node)
    if node.op == "bits": return self.part(node)
    if node.op == "call": return self.call(node)
    if node.op == "select":
      test, yes, no = self.exact(node.args[0]), self.value(node.args[1]), self.value(node.args[2])
      texts = yes.text, no.text
      if kind.kind == "f": texts = self.rounded(yes, kind), self.rounded(no, kind)
      return Value(f"({texts[0]} if {test} else {texts[1]})", min(yes.low, no.low), max(yes.high, no.high))
    if node.op in ("<", "<=", ">", ">=", "==", "!=", "and", "or"):
      return Value(f"({f' {node.op} '.join(self.exact(a) for a in node.args)})", 0, 1)
    if node.op == "not": return Value(f"(not {self.exact(node.args[0])})", 0, 1)
    return self.float_operation(node) if kind.kind == "f" else self.integer_operation(node)

  def float_operation(self, node: Node) -> Value:
    texts = [self.exact(a) for a in node.args]
    if node.op == "neg": return Value(f"(-{texts[0]})")
    if node.op == "/": return Value(f"divide({texts[0]}, {texts[1]})", rounded=False)
    return Value(f"({texts[0]} {node.op} {texts[1]})", rounded=False)

  def integer_operation(self, node: Node) -> Value:
    """Sums and products may leave the type; bits of a number do not depend on that, shifts to the right do."""
    values = [self.value(a) for a in node.args]
    a = values[0]
    if node.op == "neg": return Value(f"(-{a.text})", -a.high, -a.low)
    if node.op == "~": return Value(f"(~{a.text})", ~a.high, ~a.low)
    b = values[1]
    if node.op in ("<<", ">>"):
      count = self.exact(node.args[1])
      if node.op == ">>": return Value(f"({self.exact(node.args[0])} >> {count})", node.type.low, node.type.high)
      if b.high > 128: raise NotationError("the bits of a count to shift by must be chosen")
      return Value(f"({a.text} << {count})", min(a.low << b.high, a.low), a.high << b.high)
    if node.op == "+": return Value(f"({a.text} + {b.text})", a.low + b.low, a.high + b.high)
    if node.op == "-": return Value(f"({a.text} - {b.text})", a.low - b.high, a.high - b.low)
    if node.op == "*":
      corners = [x * y for x in (a.low, a.high) for y in (b.low, b.high)]
      return Value(f"({a.text} * {b.text})", min(corners), max(corners))
    if node.op == "&" and (min(a.low, b.low) >= 0 or a.low >= 0 or b.low >= 0):
      high = min(v.high for v in (a, b) if v.low >= 0)
      return Value(f"({a.text} & {b.text})", 0, high)
    size = max(v.bit_length() for v in (a.low, a.high, b.low, b.high))
    return Value(f"({a.text} {node.op} {b.text})", 0 if min(a.low, b.low) >= 0 else -1 << size, (1 << size) - 1)

  def part(self, node: Node) -> Value:
    assert isinstance(node.value, tuple), "bits have a pair"
    high, low = node.value
    inner = node.args[0]
    text, mask = self.value(inner).text, (1 << high - low + 1) - 1
    if inner.type.kind == "f": raise NotationError("bits of a float")
    return Value(f"({text} >> {low} & {mask:#x})" if low else f"({text} & {mask:#x})", 0, mask)

  def convert(self, node: Node) -> Value:
    source, kind = node.args[0].type, node.type
    if kind.kind == "f":
      if source.kind != "f": return Value(f"integer_to_{kind.name}({self.exact(node.args[0])})")
      return Value(self.exact(node.args[0]), rounded=kind.bits > source.bits or kind is source)
    if source.kind == "f": return Value(f"float_to_integer({self.exact(node.args[0])}, {kind.low}, {kind.high})", kind.low, kind.high)
    if source.kind == "b": return Value(self.exact(node.args[0]), 0, 1)
    inner = self.value(node.args[0])
    if inner.low >= source.low and inner.high <= source.high: return inner
    return Value(self.wrapped(inner, source), source.low, source.high)

  def call(self, node: Node) -> Value:
    name, parameters = str(node.value), FUNCTIONS[str(node.value)][0]
    texts = ", ".join(self.exact(a) for a in node.args)
    full = f"{name}_{node.args[0].type.name}" if parameters[0] == "T" else name
    if node.type.kind == "f": return Value(f"{full}({texts})")
    low, high = (0, 1) if node.type.kind == "b" else (node.type.low, node.type.high)
    return Value(f"{full}({texts})", low, high)

  # ***** operands *****

  def read(self, node: Node) -> Value:
    key = (node.value, node.type.name)
    if key not in self.reads: self.reads[key] = self.fetch(str(node.value), node.type)
    return self.reads[key]

  def fetch(self, name: str, kind: Type) -> Value:
    if name in ("SCC",): return Value("w.scc", 0, 1)
    if name == "PC": return Value("w.pc", 0, kind.high)
    if name == "EXEC": return Value("w.exec", 0, kind.high)
    if name == "LANE": return Value(self.stream("xlane", f"range({self.shape.lanes})"), 0, 63)
    if name == "VCC": return self.lane_bit()
    if name in ("SIGNED0", "SIGNED1"): return Value(str(self.sources["S" + name[-1]].negates[0]), 0, 1)
    if name[0] == "M": return self.mixed("S" + name[1:])
    name, _, element = name.partition("#")
    form = self.sources[name]
    if element: form = self.element(form, kind, int(element))
    return self.operand(name, form, kind, element)

  def operand(self, name: str, form: Form, kind: Type, element: str) -> Value:
    if form.kind == "v": return self.fetch_lane(name, form, kind)
    if form.kind == "k": return self.modified(self.fixed(name, form, kind), form, kind)
    once = f"{name}_{kind.name}{element or ''}_{form.dword}_{form.shift}"
    line = f"{once} = {self.scalar(name, form, kind)}"
    if line not in self.before: self.before.append(line)
    return self.modified(Value(once, kind.low, kind.high), form, kind)

  def mixed(self, name: str) -> Value:
    form, kind = self.sources[name], TYPES["f32"]
    if form.mix is not None: form, kind = form._replace(shift=16 * form.mix, width=16), TYPES["f16"]
    return self.operand(name, form, kind, "mix")

  def lane_bit(self) -> Value:
    self.parameter("VCC")
    if not self.shape.lanes: return Value("(w.mask(VCC) & 1)", 0, 1)
    return Value(self.stream("xmask", f"lane_bits(w.mask(VCC), {self.shape.lanes})"), 0, 1)

  def element(self, form: Form, kind: Type, index: int) -> Form:
    """The form of element `index` of an operand that is an array of narrow values."""
    if kind.bits == 16 and index < 2:
      return form._replace(shift=16 * form.halves[index], width=16, negate=form.negates[index], magnitude=False)
    return form._replace(dword=form.dword + index * kind.bits // 32, shift=index * kind.bits % 32, width=kind.bits, negate=False, magnitude=False)

  def fixed(self, name: str, form: Form, kind: Type) -> Value:
    parameter = self.parameter(f"{name}_{kind.name}_{form.shift}_{form.width}" if form.shift or form.width else f"{name}_{kind.name}")
    return Value(parameter, kind.low, kind.high) if kind.kind != "f" else Value(parameter)

  def scalar(self, name: str, form: Form, kind: Type) -> str:
    """A scalar operand, read once, as a type."""
    if form.kind in ("scc", "vccz", "execz"): raw = {"scc": "w.scc", "vccz": "(0 if w.mask(106) else 1)", "execz": "(0 if w.exec else 1)"}[form.kind]
    else:
      self.parameter(name)
      raw = f"s[{name}{plus(form.dword)}]"
      for i in range(1, kind.bits // 32): raw += f" | s[{name}{plus(form.dword + i)}] << {32 * i}"
    return self.typed(raw, form, kind)

  def typed(self, raw: str, form: Form, kind: Type) -> str:
    """Raw bits (32 of them, or as many as the type has, if more) as a value of the type."""
    width = form.width or kind.bits
    if width < 32 or form.shift: raw = f"({raw} >> {form.shift} & {(1 << width) - 1:#x})" if form.shift else f"({raw} & {(1 << width) - 1:#x})"
    if form.signed and width < 32: raw = f"((({raw}) ^ {1 << width - 1:#x}) - {1 << width - 1:#x} & {(1 << kind.bits) - 1:#x})"
    if kind.kind == "u": return raw if kind.bits >= 16 else f"({raw} & {kind.high:#x})"
    if kind.kind == "i":
      half = 1 << kind.bits - 1
      return raw if width < kind.bits and not form.signed else f"(({raw} ^ {half:#x}) - {half:#x})"
    return _DECODE[kind.name].format(raw)

  def fetch_lane(self, name: str, form: Form, kind: Type) -> Value:
    self.parameter(name)
    plain = not form.width and not form.shift
    if kind.name in _VIEW and plain: text = self.register(name, _VIEW[kind.name], form.dword)
    elif kind.bits > 32:
      text = " | ".join(f"{self.register(name, 'u', form.dword + i)}{f' << {32 * i}' if i else ''}" for i in range(kind.bits // 32))
      text = self.typed(f"({text})", form, kind)
    else: text = self.typed(self.register(name, "u", form.dword), form, kind)
    found = self.modified(Value(text, kind.low, kind.high), form, kind)
    if self.inline or found.text.isidentifier(): return found
    local = f"v{len(self.inside)}"
    self.inside.append(f"{local} = {found.text}")
    return found._replace(text=local)

  def register(self, name: str, view: str, dword: int) -> str:
    """A vector register of each lane."""
    row = f"w.{view}[{name}{plus(dword)}]"
    return self.stream(f"x{name.lower()}{view}{dword}", f"w.moved({row}, moves)" if self.shape.permuted and name == "S0" else row)

  def stream(self, name: str, storage: str) -> str:
    self.streams[name] = storage
    return name

  def modified(self, value: Value, form: Form, kind: Type) -> Value:
    """With the magnitude and the sign that the instruction asks for, and denormals flushed."""
    text = value.text
    if kind.kind == "f":
      if form.magnitude: text = f"abs({text})"
      if form.negate: text = f"(-{text})"
      return Value(f"flush_{kind.name}({text})" if self.flushes(kind) else text)
    if form.magnitude: text = f"({text} & {(1 << kind.bits - 1) - 1:#x})"
    if form.negate: text = f"({text} ^ {1 << kind.bits - 1:#x})"
    return Value(text, value.low, value.high)

def plus(n: int) -> str: return f" + {n}" if n else ""
