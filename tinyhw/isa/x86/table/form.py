"""Operands and encodings of a line of the table, and the form of a row (`Inst.isa`).

The notation is explained in table.py.
"""
from __future__ import annotations
from typing import Any
from collections.abc import Callable

from tinyhw.isa.x86.table import regs
from tinyhw.machine.ir.inst import Access, Effect, RegClass

CLASS_OF = {"r8": regs.R8, "r16": regs.R16, "r32": regs.R32, "r64": regs.R64, "x": regs.XMM, "y": regs.YMM,
            "z": regs.ZMM, "k": regs.K, "t": regs.TMM}
GENERAL = {8: "r8", 16: "r16", 32: "r32", 64: "r64"}
VECTOR = {128: "x", 256: "y", 512: "z"}
SHARE = {"v": 1, "h": 2, "q": 4, "e": 8}
FIXED = {name: (cls, i) for cls in (regs.R8, regs.R16, regs.R32, regs.R64) for i, name in enumerate(cls.names)
         if name not in CLASS_OF}
IMMEDIATES = {"ib": 1, "iw": 2, "id": 4, "io": 8}

class OperandKind:
  """A kind of operand. category: register, fixed, memory, broadcast, immediate, block.

  - key, short: its part of a row's key.
  - cls: the register's class, or that of a vector index.
  - bits: size of memory or immediate.
  - unit: the unit of an EVEX displacement byte, in bytes.
  """
  __slots__ = ("category", "key", "short", "cls", "fixed", "bits", "unit", "lanes", "touched", "spelled", "signed")

  def __init__(self, category: str, key: str, cls: RegClass | None = None, fixed: int | None = None, bits: int = 0,
               short: str = ""):
    self.category, self.key, self.cls, self.fixed, self.bits, self.short = category, key, cls, fixed, bits, short or key
    self.unit, self.lanes, self.touched, self.spelled, self.signed = max(bits // 8, 1), 0, True, False, True

KINDS: dict[tuple[str, int, int], OperandKind] = {}

def kind_of(text: str, size: int, length: int) -> OperandKind:
  """The kind that a word of the table names, for an operand size and a vector length."""
  found = KINDS.get((text, size, length))
  if found is None: found = KINDS.setdefault((text, size, length), parse_kind(text, size, length))
  return found

def vector_class(share: str, length: int) -> str:
  """The register for a share ("v", "h", "q", "e") of the vector."""
  return VECTOR[max(128, (length or 128) // SHARE[share])]

def parse_kind(text: str, size: int, length: int) -> OperandKind:
  """See kind_of."""
  spelled = text.endswith("!")
  text = text.rstrip("!")
  if text in CLASS_OF: kind = OperandKind("register", text, CLASS_OF[text])
  elif text in ("rv", "ry"): kind = OperandKind("register", GENERAL[size], CLASS_OF[GENERAL[size]])
  elif text in SHARE: kind = OperandKind("register", vector_class(text, length), CLASS_OF[vector_class(text, length)])
  elif text in FIXED: kind = OperandKind("fixed", text, *FIXED[text])
  elif text in ("Av", "Dv", "Dy"):
    cls = CLASS_OF[GENERAL[size]]
    kind = OperandKind("fixed", cls.names["AD".index(text[0]) * 2], cls, "AD".index(text[0]) * 2)
  elif text == "rel": kind = OperandKind("block", "rel")
  elif text[0] in "iu":
    bits = min(size, 32) if text == "iz" else int(text[1:])
    kind = OperandKind("immediate", f"i{bits}", bits=bits)
    kind.signed = text[0] == "i"
  elif text == "sm": kind = OperandKind("memory", "m", regs.R64)
  elif text[:2] == "vm":
    index = vector_class(text[2], length)
    kind = OperandKind("memory", "m" + index, CLASS_OF[index], bits=int(text[3:]))
  elif text[:2] == "bh": kind = broadcast_kind(int(text[2:]), length // 2)
  elif text[0] == "b": kind = broadcast_kind(int(text[1:]), length)
  else: kind = memory_kind(text, size, length)
  kind.spelled = spelled
  return kind

def broadcast_kind(bits: int, length: int) -> OperandKind:
  """One element that fills `length` bits."""
  kind = OperandKind("broadcast", f"b{length}", bits=bits, short="b")
  kind.lanes = length // bits
  return kind

def memory_kind(text: str, size: int, length: int) -> OperandKind:
  """Parse m, m32, mv, mh, m:4 and the same with a."""
  text, _, unit = text.partition(":")
  word = text[1:]
  if word in ("v", "y"): bits = size
  elif word in ("h", "q", "e"): bits = length // SHARE[word]
  elif word: bits = int(word)
  else: bits = 0 if text == "a" else length
  kind = OperandKind("memory", f"m{bits or ''}", bits=bits, short="m")
  kind.touched = text[0] == "m"
  if unit: kind.unit = int(unit)
  return kind

class Token:
  """An operand of a line. access 0: the register is clobbered, and is no operand."""
  __slots__ = ("kinds", "access", "mask", "hidden", "memory", "fixed")

  def __init__(self, text: str):
    self.hidden = text[0] == "("
    if self.hidden: text = text[1:-1]
    text, _, mask = text.partition("{")
    self.mask = mask[:-1]
    mark = text[-1]
    self.access = {"=": Access.WRITE, "+": Access.BOTH}.get(mark, Access.READ)
    if self.hidden and mark == "!": self.access = 0  # type: ignore[assignment]  # neither: the register is only named
    self.kinds = (text[:-1] if mark in "=+" or not self.access else text).split("/")
    self.memory = any(k[0] in "ma" or k[:2] in ("vm", "sm") for k in self.kinds) and self.kinds[0] not in FIXED
    self.fixed = self.kinds[0] in FIXED

TOKENS: dict[str, Token] = {}

def token_of(text: str) -> Token:
  found = TOKENS.get(text)
  if found is None: found = TOKENS.setdefault(text, Token(text))
  return found

class TableLine:
  """One line of the table, parsed."""

  def __init__(self, text: str):
    features, mnemonic, *columns = [c.strip() for c in text.split("  ") if c and not c.isspace()]
    if len(columns) == 2: columns.insert(1, "")
    encoding, operands, words = columns[0], columns[1], " ".join(columns[2:])
    self.mnemonic, self.encoding = mnemonic, encoding
    self.specs = [Spec(e) for e in encoding.split(" | ")]
    self.tokens = [token_of(t) for t in operands.split()]
    self.mask = next((t.mask for t in self.tokens if t.mask), "")
    self.sized = next((s for s in "vy" for t in self.tokens for k in t.kinds if k.rstrip("!") in SIZED[s]), "")
    self.shown = sum(not t.hidden for t in self.tokens)
    self.evex = any(spec.space == "evex" for spec in self.specs)
    self.pipe, *properties = words.split()
    self.effects, self.repeat = Effect.NONE, False
    self.commutes: tuple[int, int] | None = None
    for word in properties:
      if word == "repeat": self.repeat = True
      elif word[0] == "@": features = word[1:]
      elif word.startswith("commutes:"): self.commutes = int(word[9]), int(word[10])
      else: self.effects |= EFFECTS[word]
    self.vex_feature, _, self.evex_feature = features.partition("/")

  def feature(self, encoding: "Encoding", length: int) -> str:
    """The required features of the processor, separated by commas: those of the first encoding of a row."""
    if encoding.space != "evex": return self.vex_feature
    return self.evex_feature + (",avx512vl" if length in (128, 256) else "")

SIZED = {"v": ("rv", "mv", "av", "iz", "Av", "Dv"), "y": ("ry", "my", "Dy")}
EFFECTS = {"rf": Effect.READ_FLAGS, "wf": Effect.WRITE_FLAGS, "load": Effect.LOAD, "store": Effect.STORE,
           "jump": Effect.JUMP, "end": Effect.END,
           "call": Effect.CALL, "barrier": Effect.BARRIER}
HEXADECIMAL = frozenset("0123456789ABCDEF")
PREFIXES = {"NP": 0, "66": 1, "F3": 2, "F2": 3}
MAPS = {"0F": 1, "0F38": 2, "0F3A": 3}

class Spec:
  """One encoding in the text. digit: of /0 to /7; -1 for /r, -2 without a ModRM byte. lengths: the vector lengths that
  it can express."""
  __slots__ = ("space", "lengths", "l", "pp", "map", "w", "opcode", "suffix", "digit", "plus", "imm", "is4", "rel",
               "letters", "lock", "operand16")

  def __init__(self, text: str):
    self.space, self.pp, self.map, self.w = "legacy", 0, 0, "0"
    self.lengths: tuple[int, ...] = ()
    self.l: int | None = None
    self.digit, self.plus, self.imm, self.is4, self.rel, self.letters = -2, False, "", False, 0, ""
    self.lock = self.operand16 = False
    opcode: list[int] = []
    words = text.split()
    if words[0][:4] in ("VEX.", "EVEX"):
      self.vector(words[0].split("."))
      words = words[1:]
    for word in words:
      if word == "/r": self.digit = -1
      elif word[0] == "/": self.digit = int(word[1])
      elif word in IMMEDIATES or word == "iz": self.imm = word
      elif word == "is4": self.is4 = True
      elif word == "REX.W": self.w = "1"
      elif word == "cb": self.rel = 1
      elif word == "cd": self.rel = 4
      elif word.endswith("+r"):
        self.plus = True
        opcode.append(int(word[:2], 16))
      elif HEXADECIMAL.issuperset(word): opcode.append(int(word, 16))
      else: self.letters = word
    if self.space == "legacy": opcode = self.legacy_prefixes(opcode)
    self.opcode, self.suffix = opcode[0], bytes(opcode[1:])

  def legacy_prefixes(self, opcode: list[int]) -> list[int]:
    """Strip prefixes and the escape. The rest is the opcode and the bytes that follow it."""
    while len(opcode) > 1 and opcode[0] in (0x66, 0xF0, 0xF2, 0xF3):
      prefix = opcode.pop(0)
      if prefix == 0x66: self.operand16 = True
      elif prefix == 0xF0: self.lock = True
      else: self.pp = 2 if prefix == 0xF3 else 3
    if opcode[0] == 0x0F and len(opcode) > 1:
      self.map = 1
      opcode.pop(0)
    return opcode

  def vector(self, fields: list[str]) -> None:
    """Parse a vector prefix such as VEX.128.66.0F38.W0."""
    self.space = fields[0].lower()
    self.lengths = (128, 256) if self.space == "vex" else (128, 256, 512)
    for field in fields[1:]:
      if field in MAPS: self.map = MAPS[field]
      elif field in PREFIXES: self.pp = PREFIXES[field]
      elif field[0] == "W": self.w = field[1:]
      elif field == "LIG": self.lengths = ()
      elif field in ("LZ", "L0", "L1"): self.lengths, self.l = (), int(field == "L1")
      else: self.lengths = tuple(int(n) for n in field.split("/"))

class Form:
  """The data of a row for the x86 encoder and text, in `Inst.isa`.

  - syntax: (operand index, kind) of the operands that are shown, in Intel order.
  - mask, memory, block: operand index, or -1.
  - bits, unit: those of the memory operand.
  - broadcast: number of lanes that one element fills, or 0.
  - encode: operands -> bytes; the first call replaces it by a function made for the row.
  """
  __slots__ = ("key", "syntax", "encodings", "mask", "zeroing", "memory", "bits", "unit", "broadcast", "block",
               "effects", "row", "encode")

  def __init__(self, key: str):
    self.key = key
    self.syntax: list[tuple[int, OperandKind]] = []
    self.encodings: list[Encoding] = []
    self.mask, self.zeroing, self.memory, self.bits, self.unit, self.broadcast, self.block = -1, False, -1, 0, 1, 0, -1
    self.effects = Effect.NONE
    self.row: Any = None
    self.encode: Callable[[list[Any]], bytes] | None = None

  def add(self, kind: OperandKind, at: int, hidden: bool) -> None:
    """Add an operand at index `at`."""
    if not hidden: self.syntax.append((at, kind))
    if kind.category == "block": self.block = at

  def set_memory(self, at: int, kind: OperandKind) -> None:
    self.memory, self.bits, self.unit = at, kind.bits, kind.unit
    self.broadcast = kind.lanes if kind.category == "broadcast" else 0

class Encoding:
  """One encoding of one form. Every field of the instruction has a value or an operand index (-1: none).

  - space: legacy, vex, evex.
  - pp: 0, 66, F3, F2.
  - w: 0, 1 or None (ignored).
  - l: 0 to 2 or None.
  - digit: as in Spec.
  - imm: operand index; imm_bytes: size.
  - imm_extends: 32 bits are sign-extended to 64.
  - accumulator, one: operands that are not encoded: one must be rax (al, ...), the other must be 1.
  """
  __slots__ = ("form", "space", "pp", "map", "opcode", "suffix", "w", "l", "digit", "plus", "lock", "operand16", "reg",
               "rm", "vvvv", "is4", "opreg",
               "imm", "imm_bytes", "imm_bits", "imm_signed", "imm_extends", "rel", "rel_bytes", "accumulator", "one",
               "bytes8")

  def __init__(self, form: Form, spec: Spec, size: int, length: int, places: list[tuple[str, int, OperandKind]]):
    self.form, self.space, self.pp, self.map, self.opcode, self.suffix = (form, spec.space, spec.pp, spec.map,
                                                                          spec.opcode, spec.suffix)
    self.digit, self.plus, self.lock = spec.digit, spec.plus, spec.lock
    legacy = spec.space == "legacy"
    self.operand16 = spec.operand16 or legacy and size == 16
    self.w: int | None = None
    if spec.w != "IG": self.w = int(size == 64) if spec.w == "y" else int(spec.w)
    if legacy and size == 64: self.w = 1
    self.l = spec.l if spec.l is not None else {128: 0, 256: 1, 512: 2}.get(length)
    self.imm_bytes = IMMEDIATES.get(spec.imm, 4) if spec.imm else 0
    if spec.imm == "iz" and size == 16: self.imm_bytes = 2
    self.rel_bytes = spec.rel
    self.reg = self.rm = self.vvvv = self.is4 = self.opreg = self.imm = self.rel = self.accumulator = self.one = -1
    self.imm_bits, self.imm_signed, self.imm_extends = 0, True, False
    self.bytes8: list[int] = []
    for letter, at, kind in places:
      setattr(self, FIELD_OF[letter], at)
      if letter == "I":
        self.imm_bits, self.imm_signed = kind.bits, kind.signed
        self.imm_extends = kind.bits == 32 and (self.w == 1 or len(places) == 1)
      if kind.cls is regs.R8 and letter in "RMO": self.bytes8.append(at)

FIELD_OF = {"R": "reg", "M": "rm", "V": "vvvv", "4": "is4", "O": "opreg", "I": "imm", "D": "rel", "A": "accumulator",
            "1": "one"}
