"""Vector instructions as machine code of the host, from the same meanings as python_lanes.py: for those whose shape is simple, and that are hot.

A meaning becomes a Program over all lanes (UOps, codegen/program.py), which isa/x86 compiles: rows of the register file are buffers, scalar operands,
EXEC and VCC are words of one more. What is not plain (64 bits, narrow integers, permutations, clamping, flushed denormals, fused sums of float16, two
results, approximate functions) stays Python, and so does everything on other processors. Both give the same bits but for NaNs (test_native.py).
"""
from __future__ import annotations
import ctypes
import functools
import importlib
from array import array
from platform import machine
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from tinyhw.codegen.program import Program
from tinyhw.drivers.cpu import processor
from tinyhw.drivers.cpu.memory import CodeArena
from tinyhw.dtype import DType, dtypes
from tinyhw.emulator.amd.notation import TYPES as NOTATION
from tinyhw.emulator.amd.notation import Node, Type, parse
from tinyhw.emulator.amd.python_lanes import Form, Shape, Target
from tinyhw.errors import CompileError, TinyError
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp

if TYPE_CHECKING:
  from tinyhw.emulator.amd.state import Wave

# float16 values are float32 ones that it can hold: a sum, difference or product of two, rounded to float32 and then to float16, is right
TYPES = {"u32": dtypes.uint32, "i32": dtypes.int32, "f32": dtypes.float32, "bool": dtypes.bool, "f16": dtypes.float32}
# words of the scalar buffer: EXEC, VCC, the mask that is written; then scalar operands
EXEC, VCC, CARRY, OPERANDS = 0, 2, 4, 6
SCALARS = {"S0": OPERANDS, "S1": OPERANDS + 1, "S2": OPERANDS + 2, "K": OPERANDS + 3}
HOT = 8  # executions of a shape in Python after which it is compiled
LANE_BITS = 32

def place(buffer: UOp, index: int) -> UOp: return UOp(Ops.INDEX, buffer.dtype, (buffer, UOp.const(dtypes.int32, index)))

class Untranslatable(Exception):
  """A shape that stays Python."""

# ***** from a shape to a Program *****

class Translator:
  """One shape as a Program. masked: lanes that are not active keep what they have. width: lanes of a vector register."""
  def __init__(self, shape: Shape, masked: bool, width: int):
    if not shape.lanes or shape.permuted or shape.clamp or shape.omod or shape.flush32: raise Untranslatable
    self.shape, self.masked, self.width = shape, masked, width
    self.narrow = any(a.type.name == "f16" and a.target == "D" for a in parse(shape.meaning))
    if (len(shape.passes) > 1 or shape.flush64) and not self.narrow or self.narrow and shape.flush64: raise Untranslatable
    self.sources: dict[str, Form] = {}
    self.targets: dict[str, Target] = {}
    self.rows: dict[tuple[str, str], UOp] = {}          # (operand, type) -> its PARAM
    self.scalars = UOp.param(0, dtypes.uint32, 16)
    self.values: dict[Any, UOp] = {}
    self.start = 0

  def program(self) -> Program:
    """Raises Untranslatable."""
    stores: list[UOp] = []
    words: list[list[UOp]] = [[] for _ in range(self.shape.lanes // LANE_BITS)]
    for self.start in range(0, self.shape.lanes, self.width):
      stores += self.chunk(words)
    for i, parts in enumerate(words):
      if parts: stores.append(place(self.scalars, CARRY + i).store(functools.reduce(lambda a, b: a.alu(Ops.OR, b), parts)))
    uops: dict[UOp, None] = {}
    for store in stores: uops.update(dict.fromkeys(store.toposort()))
    first = [u for u in uops if u.op in (Ops.PARAM, Ops.CONST)]
    return Program("lanes", (*first, *(u for u in uops if u.op not in (Ops.PARAM, Ops.CONST))), 1,
                   frozenset(u.src[0].src[0].arg[0] for u in uops if u.op is Ops.STORE))

  def chunk(self, words: list[list[UOp]]) -> list[UOp]:
    """The stores of a vector register's lanes. A lane mask goes to `words`."""
    stores: list[UOp] = []
    result: UOp | None = None   # a register of which the passes write parts
    for sources, targets in self.shape.passes:
      self.sources, self.targets = dict(sources), dict(targets)
      self.values.clear()
      for assignment in parse(self.shape.meaning):
        value = self.value(assignment.value)
        if assignment.target == "D" and assignment.type.name == "f16": result = self.part(value, result)
        elif assignment.target == "D": stores.append(self.store(assignment.type, value))
        elif assignment.target == "CARRY": words[self.start // LANE_BITS].append(self.mask_of(value))
        elif assignment.target in ("SCC", "PC", "EXEC", "D1", "D2"): raise Untranslatable
        else: self.values["local", assignment.target] = value
    if result is not None: stores.append(self.stored(NOTATION["u32"], result))
    return stores

  def part(self, value: UOp, result: UOp | None) -> UOp:
    """A register with one of its halves replaced by a float16."""
    target = self.targets.get("D", Target("none"))
    if target not in (Target("v", 0, target.shift, 16, target.keep), Target("v")): raise Untranslatable
    words = self.vector(dtypes.uint32)
    bits = value.cast(self.vector(dtypes.float16)).bitcast(self.vector(dtypes.uint16)).cast(words)
    if target.shift: bits = bits.alu(Ops.SHL, self.constant(dtypes.uint32, target.shift))
    if not target.keep: return bits
    old = self.load("D", NOTATION["u32"]) if result is None else result
    return old.alu(Ops.AND, self.constant(dtypes.uint32, 0xffffffff ^ 0xffff << target.shift)).alu(Ops.OR, bits)

  def half(self, x: UOp) -> UOp:
    """A float32 rounded to what float16 holds."""
    return x.cast(self.vector(dtypes.float16)).cast(self.vector(dtypes.float32))

  def vector(self, kind: DType) -> DType: return kind.vec(self.width)
  def constant(self, kind: DType, value: int | float) -> UOp: return UOp.const(self.vector(kind), value)
  def numbers(self, values: list[int]) -> UOp:
    """A vector of different constants."""
    return UOp(Ops.VECTORIZE, self.vector(dtypes.uint32), tuple(UOp.const(dtypes.uint32, v) for v in values))

  def row(self, operand: str, kind: Type) -> UOp:
    """The buffer of a vector operand as a type. Slots follow the order in which operands are met."""
    key = operand, kind.name
    if key not in self.rows: self.rows[key] = UOp.param(1 + len(self.rows), TYPES[kind.name], self.shape.lanes)
    return self.rows[key]

  def load(self, operand: str, kind: Type) -> UOp:
    return place(self.row(operand, kind), self.start).load(dtype=self.vector(TYPES[kind.name]))

  def word(self, index: int) -> UOp:
    """A word of the scalar buffer in all lanes."""
    return UOp(Ops.BROADCAST, self.vector(dtypes.uint32), (place(self.scalars, index).load(),))

  def bit(self, mask: int) -> UOp:
    """Each lane's bit of the mask that begins at a word."""
    shifts = self.numbers([(self.start + i) % LANE_BITS for i in range(self.width)])
    bits = self.word(mask + self.start // LANE_BITS).alu(Ops.SHR, shifts).alu(Ops.AND, self.constant(dtypes.uint32, 1))
    return bits.alu(Ops.CMPNE, self.constant(dtypes.uint32, 0))

  def store(self, kind: Type, value: UOp) -> UOp:
    if self.targets.get("D") != Target("v") or kind.name not in ("u32", "i32", "f32"): raise Untranslatable
    return self.stored(kind, value)

  def stored(self, kind: Type, value: UOp) -> UOp:
    if self.masked: value = self.bit(EXEC).where(value, self.load("D", kind))
    return place(self.row("D", kind), self.start).store(value)

  def mask_of(self, truth: UOp) -> UOp:
    """The truths of a vector as bits of a word, at the lanes' places."""
    bits = truth.where(self.numbers([1 << (self.start + i) % LANE_BITS for i in range(self.width)]), self.constant(dtypes.uint32, 0))
    count = self.width
    while count > 1:
      count //= 2
      kind = dtypes.uint32.vec(count)
      bits = UOp(Ops.GEP, kind, (bits,), 0).alu(Ops.OR, UOp(Ops.GEP, kind, (bits,), count))
    return bits

  # ***** expressions *****

  def value(self, node: Node) -> UOp:
    if node.type.name not in TYPES: raise Untranslatable
    kind = TYPES[node.type.name]
    if node.op == "const": return self.constant(kind, node.value)  # type: ignore[arg-type]  # it is a number
    if node.op == "local": return self.values["local", node.value]
    if node.op == "read": return self.read(str(node.value), node.type)
    if node.op == "bits": return self.bits(node)
    if node.op == "convert": return self.convert(node)
    if node.op == "call": return self.call(str(node.value), [self.value(a) for a in node.args], node.type)
    args = [self.value(a) for a in node.args]
    if node.op == "select": return args[0].where(args[1], args[2])
    if node.op in ("<", ">", "==", "!=", "<=", ">="): return self.compare(node.op, args, node.args[0].type)
    if node.op == "neg" and node.type.kind == "f": return self.flipped(args[0])
    if node.op == "~": return args[0].alu(Ops.XOR, self.constant(kind, -1 if kind is dtypes.int32 else 0xffffffff))
    if node.op in _BINARY:
      result = args[0].alu(_BINARY[node.op], *self.counted(node, args[1]))
      return self.half(result) if node.type.name == "f16" else result
    if node.op in ("and", "or"): return functools.reduce(lambda a, b: a.alu(Ops.AND if node.op == "and" else Ops.OR, b), args)
    if node.op == "not": return self.opposite(args[0])
    raise Untranslatable

  def counted(self, node: Node, second: UOp) -> tuple[UOp]:
    """The second operand; a count to shift by has the type of the first, and is below 32 as the meanings choose its bits."""
    if node.op not in ("<<", ">>"): return (second,)
    count = node.args[1]
    if count.op == "bits" and count.value[0] - count.value[1] > 4 or count.op not in ("bits", "const"): raise Untranslatable  # type: ignore[index]
    return (second.bitcast(self.vector(TYPES[node.type.name])),)

  def opposite(self, truth: UOp) -> UOp: return truth.alu(Ops.XOR, UOp.const(truth.dtype, True))

  def compare(self, sign: str, args: list[UOp], kind: Type) -> UOp:
    if kind.name == "bool": raise Untranslatable
    a, b = args
    if sign in ("==", "!="): return a.alu(Ops.CMPEQ if sign == "==" else Ops.CMPNE, b)
    if sign in (">", ">="): a, b = b, a
    less = a.alu(Ops.CMPLT, b)
    return less if len(sign) == 1 else less.alu(Ops.OR, a.alu(Ops.CMPEQ, b))

  def bits(self, node: Node) -> UOp:
    assert isinstance(node.value, tuple), "bits have a pair"
    high, low = node.value
    if node.args[0].type.kind == "f": raise Untranslatable
    x = self.value(node.args[0]).bitcast(self.vector(dtypes.uint32))
    if low: x = x.alu(Ops.SHR, self.constant(dtypes.uint32, low))
    return x.alu(Ops.AND, self.constant(dtypes.uint32, (1 << high - low + 1) - 1)) if high < 31 else x

  def convert(self, node: Node) -> UOp:
    source, target = node.args[0].type, node.type
    if source.name not in TYPES: raise Untranslatable
    x = self.value(node.args[0])
    if source.kind in "ui" and target.kind in "ui": return x.bitcast(self.vector(TYPES[target.name]))
    if source.kind == "b" and target.name == "u32": return x.where(self.constant(dtypes.uint32, 1), self.constant(dtypes.uint32, 0))
    if source.name == "i32" and target.name == "f32": return x.cast(self.vector(dtypes.float32))
    if source.kind == "f" and target.kind == "f": return self.half(x) if target.name == "f16" else x
    raise Untranslatable

  def call(self, name: str, args: list[UOp], kind: Type) -> UOp:
    if name == "fma" and kind.name == "f32": return UOp(Ops.MULACC, self.vector(dtypes.float32), tuple(args))
    if name in ("least", "most") and kind.kind in "ui":
      a, b = args if name == "least" else args[::-1]
      return a.alu(Ops.CMPLT, b).where(*args)
    if name in ("min_num", "max_num"): return self.number_of(args[0], args[1], Ops.OR if name == "min_num" else Ops.AND)
    raise Untranslatable

  def number_of(self, a: UOp, b: UOp, zeros: Ops) -> UOp:
    """The smaller (OR decides between zeros) or greater (AND) number; of a number and a NaN the number."""
    words = self.vector(dtypes.uint32)
    equal = a.bitcast(words).alu(zeros, b.bitcast(words)).bitcast(a.dtype)
    if_less, if_not = (a, b) if zeros is Ops.OR else (b, a)
    chosen = a.alu(Ops.CMPEQ, b).where(equal, a.alu(Ops.CMPLT, b).where(if_less, if_not))
    return a.alu(Ops.CMPNE, a).where(b, b.alu(Ops.CMPNE, b).where(a, chosen))

  def flipped(self, x: UOp) -> UOp:
    words = self.vector(dtypes.uint32)
    return x.bitcast(words).alu(Ops.XOR, self.constant(dtypes.uint32, 0x80000000)).bitcast(x.dtype)

  def read(self, name: str, kind: Type) -> UOp:
    key = name, kind.name
    if key not in self.values: self.values[key] = self.fetch(name, kind)
    return self.values[key]

  def fetch(self, name: str, kind: Type) -> UOp:
    if name == "VCC": return self.bit(VCC)
    if name == "LANE": return self.numbers(list(range(self.start, self.start + self.width)))
    form = self.sources.get(name)
    if kind.name == "f16": return self.fetch_half(name, form)
    if form is None or form._replace(negate=False, magnitude=False) not in (Form("v"), Form("s"), Form("k")) or kind.kind == "b": raise Untranslatable
    if form.kind != "v" and name not in SCALARS: raise Untranslatable
    x = self.load(name, kind) if form.kind == "v" else self.word(SCALARS[name]).bitcast(self.vector(TYPES[kind.name]))
    if (form.negate or form.magnitude) and kind.kind != "f": raise Untranslatable
    words = self.vector(dtypes.uint32)
    if form.magnitude: x = x.bitcast(words).alu(Ops.AND, self.constant(dtypes.uint32, 0x7fffffff)).bitcast(x.dtype)
    return self.flipped(x) if form.negate else x

  def fetch_half(self, name: str, form: Form | None) -> UOp:
    """A half of a register or constant as a float16."""
    if form is None or form.kind not in ("v", "s", "k") or form.kind != "v" and name not in SCALARS: raise Untranslatable
    if form.dword or form.signed or form.mix is not None or form.width not in (0, 16) or form.shift not in (0, 16): raise Untranslatable
    x = self.load(name, NOTATION["u32"]) if form.kind == "v" else self.word(SCALARS[name])
    if form.shift: x = x.alu(Ops.SHR, self.constant(dtypes.uint32, 16))
    kept = 0x7fff if form.magnitude else 0xffff
    x = x.alu(Ops.AND, self.constant(dtypes.uint32, kept))
    if form.negate: x = x.alu(Ops.XOR, self.constant(dtypes.uint32, 0x8000))
    return x.cast(self.vector(dtypes.uint16)).bitcast(self.vector(dtypes.float16)).cast(self.vector(dtypes.float32))

_BINARY = {"+": Ops.ADD, "-": Ops.SUB, "*": Ops.MUL, "&": Ops.AND, "|": Ops.OR, "^": Ops.XOR, "<<": Ops.SHL, ">>": Ops.SHR}

# ***** from a Program to a function *****

@functools.cache
def level() -> str | None:
  """What the host's code is compiled for, or None if it is no x86-64 with AVX2 or pages cannot be executable."""
  if machine() not in ("x86_64", "AMD64"): return None
  try: return processor(importlib.import_module("tinyhw.isa.x86.runtime").code).arch
  except (TinyError, KeyError, OSError, AttributeError): return None

_arena = CodeArena()
_CALL = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)

class Native:
  """A compiled shape. scalar: its first argument is the scalar buffer; rows: the operands whose rows follow."""
  def __init__(self, translator: Translator, arch: str):
    program = translator.program()
    code = importlib.import_module("tinyhw.isa.x86.target").compile(program, arch)
    if code.local_bytes: raise Untranslatable
    address, self.chunk = _arena.add(code.text)
    self.call: Callable[[int, int, int, int | None], None] = _CALL(address + code.entry)
    self.rows = tuple(operand for operand, _ in translator.rows)
    self.scalar = any(u is translator.scalars for u in program.uops)

@functools.lru_cache(maxsize=None)
def native(shape: Shape, masked: bool) -> Native | None:
  """The compiled shape, or None if it stays Python."""
  arch = level()
  if arch is None: return None
  width = 16 if arch.endswith("avx512") else 8
  try: return Native(Translator(shape, masked, width), arch)
  except (Untranslatable, CompileError, NotImplementedError): return None

def faster(python: Callable[[Wave], None], shape: Shape, arguments: dict[str, Any]) -> Callable[[Wave], None]:
  """A function of a wave that is `python` until it is hot, and then native code where there is some. arguments: as the maker has them."""
  try: Translator(shape, False, 8).program()
  except Untranslatable: return python
  return Hot(python, shape, arguments)

class Prepared(NamedTuple):
  """What a call for a wave needs: the function, where its arguments are, the words of the scalar buffer, and what keeps the arguments alive."""
  call: Callable[[int, int, int, int | None], None]
  arguments: int
  words: array[int]
  slots: array[int]

class Hot:
  """An instruction that counts its executions."""
  def __init__(self, python: Callable[[Wave], None], shape: Shape, arguments: dict[str, Any]):
    self.python, self.shape, self.arguments, self.count = python, shape, arguments, 0
    forms = dict(shape.passes[0][0])
    self.constants = [(SCALARS[name], arguments[name] & 0xffffffff) for name, form in forms.items() if form.kind == "k" and name in arguments]
    self.registers = [(SCALARS[name], arguments[name]) for name, form in forms.items() if form.kind == "s" and name in SCALARS]
    self.reads_vcc, self.writes_mask = "VCC" in shape.meaning, "CARRY" in shape.meaning

  def __call__(self, wave: Wave) -> None:
    found = wave.prepared[wave.full].get(self) or self.prepare(wave)
    if found is None: return self.python(wave)
    call, arguments, words, _ = found
    for index, register in self.registers: words[index] = wave.s[register]
    if not wave.full: words[EXEC], words[EXEC + 1] = wave.exec & 0xffffffff, wave.exec >> 32
    if self.reads_vcc:
      mask = wave.mask(self.arguments["VCC"])
      words[VCC], words[VCC + 1] = mask & 0xffffffff, mask >> 32
    call(arguments, 0, 1, None)
    if self.writes_mask: wave.set_mask(self.arguments["CARRY"], (words[CARRY] | words[CARRY + 1] << 32) & wave.exec)

  def prepare(self, wave: Wave) -> Prepared | None:
    """What a call for this wave needs; None while the instruction is not hot, or if it stays Python."""
    self.count += 1
    if self.count < HOT: return None
    compiled = native(self.shape, not wave.full)
    if compiled is None: return None
    words = array("I", bytes(64))
    for index, value in self.constants: words[index] = value
    rows = [wave.file.address + wave.file.place(self.arguments[name]) for name in compiled.rows]
    slots = array("Q", [words.buffer_info()[0]] * compiled.scalar + rows)
    found = wave.prepared[wave.full][self] = Prepared(compiled.call, slots.buffer_info()[0], words, slots)
    return found
