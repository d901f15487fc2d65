"""The NVIDIA instruction table: a line for each instruction with the opcodes of its forms, and a row for each form.

Rows are made at first use.

  table("sm_90")["FFMA/223"]     FFMA with three registers: the name of the line and the opcode
  table("sm_90").rows_of("FFMA") all forms

The operands of an MInst are the registers and integers of the text in order, then modifiers and flags as integers, then
the guard (`guard`, `guard_not`). `build` adds defaults.

Columns of the text are separated by two spaces: name, opcodes, operands, modifiers, properties. A line "@ properties"
sets the first properties and the constant bits of the lines that follow. "%8x", "%9+" ... limits a word to generations
(form.GROUPS). The name is the mnemonic. A suffix after a dot distinguishes rows.

An opcode is bits 0 to 11 in hexadecimal, or `bits 0 to 8:forms`, with a row for each of the forms. Bits 9 to 11 are the
form. It tells the kinds of sources b and c:
  1  both registers             2  c is an immediate           3  c is in constant memory (up to sm_90)
  4  b is an immediate          5  b is in constant memory (up to sm_90)
  6  b is a uniform register    7  c is a uniform register
A line with the property "plain" has its sources at the bits that it names.

An operand is a slot (SLOTS) or `name:kind@bits` (form.Spec), with these marks in order:
  ?      left out of the text if it has its default
  -  ~  |    may be negated, inverted, absolute, by the bits of the slot
  .word  a modifier that is written after it, or a literal word (capitals or digits)
  :n     a group of n registers; :size the modifier gives the count
  = +    it is written; read and written
An operand may also be brackets with a sum, as in the text: `desc[uc][a.64:2+o]`, `c[bank][a+o16]`. "&" joins two parts
that a blank separates. `x'` is the register after that of operand x.

A modifier is one of:
- its name (modifiers.py), or `name@bits`
- a literal word, WORD
- a literal word with bits to set, WORD@74 or WORD@70-71=2
- bits without text, @81-83=7

The properties are:
- the pipe
- f32, f64, half, s32: the type of immediates; f64 also makes all registers pairs
- load, store, jump, end, barrier, call
- up: the guard is a uniform predicate
- board: a scoreboard tells when the result is there
- reads: a scoreboard tells when sources have been read
- alias (alias.py); plain; makes_view, wants_view (uses.py)
"""
from __future__ import annotations
import functools
from typing import Any
from collections.abc import Iterator, Sequence

from tinyhw.errors import EncodeError
from tinyhw.isa.sass.rows import control, floats, integer, matrix, memory, uniform
from tinyhw.isa.sass.table import regs
from tinyhw.isa.sass.table.form import (
  NO_GROUP, Form, Generation, TokenPart, Ranges, Spec, Token, bracketed, mnemonic_of, ranges)
from tinyhw.isa.sass.table.modifiers import ENUMERATIONS, Enumeration
from tinyhw.machine.ir.inst import Access, Effect, Inst, MInst, Operand
from tinyhw.named_tuple import NamedTuple
from tinyhw.threads import once

TEXTS = tuple(rows.TEXT for rows in (integer, floats, memory, control, matrix, uniform))

class OperandPosition(NamedTuple):
  """A usual position of an operand: its kind, its bits, its bits for negation and absolute value, and its bit in the
  reuse cache."""
  kind: str
  at: str
  negate: str = ""
  absolute: str = ""
  reuse: int = -1

SLOTS = {
  "d": OperandPosition("R", "16-23"),
  "a": OperandPosition("R", "24-31", "72", "73", 0),
  "b": OperandPosition("R", "32-39", "63", "62", 1),
  "c": OperandPosition("R", "64-71", "75", "74", 2),
  "h": OperandPosition("R", "64-71", "84", "83", 2),  # source c of HFMA2
  "pu": OperandPosition("P", "81-83"),
  "pv": OperandPosition("P", "84-86"),
  "pp": OperandPosition("P", "87-89", "90"),
  "pq": OperandPosition("P", "77-79", "80"),
  "pr": OperandPosition("P", "68-70", "71"),
  "qu": OperandPosition("UP", "81-83"),
  "qv": OperandPosition("UP", "84-86"),
  "qp": OperandPosition("UP", "87-89", "90"),
  "qq": OperandPosition("UP", "77-79", "80"),
  "ud": OperandPosition("UR", "16-21"),
  "ua": OperandPosition("UR", "24-29", "72"),
  "ub": OperandPosition("UR", "32-37", "63"),
  "uc": OperandPosition("UR", "64-69", "75"),
  "ue": OperandPosition("UR", "40-45"),
  "qb": OperandPosition("UP", "24-26", "27"),
  "vr": OperandPosition("UR", "24-29", "30"),
  "qi": OperandPosition("~UP", "87-89", "90"),
  "bar": OperandPosition("B", "16-19"),
  "sr": OperandPosition("sr", "72-79"),
  "o": OperandPosition("s24", "40-63"),
}
FORMS = ("RR", "RR", "RI", "RC", "IR", "CR", "UR", "RU")  # the kinds of b and c, by bits 9 to 11 of the opcode
TYPES = ("f32", "f64", "half", "s32", "u32")
EFFECTS = {"load": Effect.LOAD, "store": Effect.STORE, "jump": Effect.JUMP, "end": Effect.END,
           "barrier": Effect.BARRIER, "call": Effect.CALL}
ACCESS = {"=": Access.WRITE, "+": Access.BOTH, "": Access.READ}

@once
def token_of(word: str) -> dict[str, str] | None:
  """Split an operand into its parts: ?-|name.suffixes|:type@bits=.

  Many lines share an operand. Return None for an operand with brackets or several names.
  """
  rest, access = (word[:-1], word[-1]) if word[-1] in "=+" else (word, "")
  rest, _, bits = rest.partition("@")
  rest, _, kind = rest.partition(":")
  inside = rest.lstrip("?-~")
  name, dot, suffixes = inside.strip("|").partition(".")
  if "&" in word or not name.isidentifier(): return None
  sign, absolute = rest.strip("?|")[0], inside[0]
  return {"name": name, "type": kind, "bits": bits, "access": access, "suffixes": dot + suffixes,
          "sign": sign if sign in "-~" else "", "absolute": "|" if absolute == "|" else ""}

class TableLine(NamedTuple):
  """A line of the table in one generation.

  words: literal words of its modifiers. numbers: the count of integer operands in every form. described: an address has
  a descriptor.
  """
  name: str
  opcodes: tuple[int, ...]
  operands: tuple[str, ...]
  modifiers: tuple[str, ...]
  properties: tuple[str, ...]
  text: str
  words: tuple[str, ...]
  numbers: int
  described: bool

def limited(words: str, generation: Generation) -> tuple[str, ...]:
  """Return the words that hold in a generation."""
  if "%" not in words: return tuple([word for word in words.split() if word != "-"])
  split = [word.partition("%") for word in words.split() if word != "-"]
  return tuple(word for word, _, group in split if generation.has(group))

Entry = tuple[str, str]  # a line of the text, and its section

@once
def entries() -> dict[str, list[Entry]]:
  """Return the lines of all generations by mnemonic."""
  found: dict[str, list[Entry]] = {}
  for text in TEXTS:
    section = ""
    for line in filter(None, text.split("\n")):
      if line[0] == "@": section = line[1:]
      else: found.setdefault(line[:line.index(" ")].partition("%")[0].partition(".")[0], []).append((line, section))
  return found

def line_of(entry: Entry, generation: Generation) -> TableLine | None:
  """Return a line in a generation. Return None if it has no opcode there."""
  text, section = entry
  name, opcodes, operands, modifiers, properties = (*[column.strip() for column in text.split("  ")
                                                      if column not in ("", " ")], "", "", "")[:5]
  name, _, group = name.partition("%")
  if not generation.has(group): return None
  codes = tuple(code for word in limited(opcodes, generation) for code in opcodes_of(word, generation))
  if not codes: return None
  fields, modifiers_of = limited(operands, generation), limited(modifiers, generation)
  words = tuple([word for modifier in modifiers_of for word in modifier.partition("@")[0].split(".") if word.isupper()
                 or word.isdigit()])
  numbers = sum([":u" in field and "[" not in field for field in fields])
  return TableLine(name, codes, fields, modifiers_of, limited(f"{section} {properties}", generation), text, words,
                   numbers, any(["desc[" in field for field in fields]))

# The pipes that have a reuse cache, and the sources that can stay there.
REUSE = {"alu": "abc", "fma": "abc", "fp64": "abc", "half": "abch", "pack": "abc", "tensor": "ab", "r2ur": "a"}
CONSTANT_FORMS, CONSTANT_GENERATIONS = (3, 5), "9-"

def opcodes_of(word: str, generation: Generation) -> list[int]:
  """Return the opcodes of a word like 023:14 that a generation has."""
  base, _, forms = word.partition(":")
  if not forms: return [int(base, 16)]
  constant = generation.has(CONSTANT_GENERATIONS)
  return [int(base, 16) | form << 9 for form in map(int, forms) if constant or form not in CONSTANT_FORMS]

class Table:
  """The rows of a generation by key. Lines are parsed and rows are made at first use."""

  def __init__(self, arch: str):
    self.generation = Generation(arch)
    self.made: dict[str, Inst] = {}
    self.known: dict[str, dict[str, tuple[TableLine, int]]] = {}

  def forms(self, mnemonic: str) -> dict[str, tuple[TableLine, int]]:
    """Return the forms of all lines of a mnemonic by key: the line, and the opcode."""
    known = self.known.get(mnemonic)
    if known is not None: return known
    found: dict[str, tuple[TableLine, int]] = {}
    for line in filter(None, [line_of(entry, self.generation) for entry in entries().get(mnemonic, ())]):
      for opcode in line.opcodes:
        key = f"{line.name}/{opcode:03x}"
        assert key not in found, f"{key} stands twice in the table"
        found[key] = line, opcode
    return self.known.setdefault(mnemonic, found)

  @functools.cached_property
  def lines(self) -> dict[str, tuple[TableLine, int]]:
    """All forms."""
    return {key: form for mnemonic in entries() for key, form in self.forms(mnemonic).items()}

  @functools.cached_property
  def opcodes(self) -> dict[int, list[str]]:
    """Keys by opcode."""
    found: dict[int, list[str]] = {}
    for key, (_, opcode) in self.lines.items(): found.setdefault(opcode, []).append(key)
    return found

  def __getitem__(self, key: str) -> Inst:
    """Return the row of a key. Raises EncodeError if there is none."""
    row = self.made.get(key)
    if row is None:
      form = self.forms(mnemonic_of(key)).get(key)
      if form is None: raise EncodeError(f"{self.generation.arch} has no instruction {key}{self.others(key)}")
      row = self.made.setdefault(key, Maker(*form, self.generation).row())
    return row

  def others(self, key: str) -> str:
    """Return the existing forms of a missing key, for an error."""
    found = self.keys_of(key.partition("/")[0])
    return f"; its forms are {', '.join(found)}" if found else ""

  def __contains__(self, key: str) -> bool: return key in self.forms(mnemonic_of(key))

  def keys_of(self, name: str) -> list[str]:
    """Return the keys of a line."""
    return [key for key in self.forms(mnemonic_of(name)) if key.partition("/")[0] == name]

  def rows_of(self, name: str) -> list[Inst]:
    """Return the forms of a line."""
    return [self[key] for key in self.keys_of(name)]

  def __iter__(self) -> Iterator[Inst]:
    """Make and yield every row."""
    for key in self.lines: yield self[key]

@once
def table(arch: str) -> Table:
  """Return the table of an architecture: sm_80, sm_86, sm_89, sm_90, sm_100, sm_120."""
  return Table(arch)

# ---- from a line to a row

class Maker:
  """Make the row of one form of a line."""

  def __init__(self, line: TableLine, opcode: int, generation: Generation):
    self.line, self.opcode, self.generation = line, opcode, generation
    self.properties = frozenset(p for p in line.properties[1:] if p[0] != "@")
    self.specs: list[Spec] = []    # operands of the text
    self.flags: list[Spec] = []    # modifiers and flags
    self.constants: dict[Ranges, int] = {ranges("0-11"): opcode}
    for word in line.properties:
      if word[0] == "@": self.modifier(word)
    kinds = FORMS[opcode >> 9]
    self.type = next((p for p in line.properties if p in TYPES), "u32")
    self.plain = "plain" in self.properties
    names = [found["name"] for found in map(token_of, line.operands) if found]
    self.second_is_c = (not {"c", "h"} & set(names) and any(code >> 9 in (2, 3, 7) for code in line.opcodes)
                        and not self.plain)
    self.third = "h" if "h" in names else "c"
    swapped = kinds[1] != "R" and self.third in names
    self.kinds = {"b": "R" if swapped else kinds.replace("R", "") or "R", self.third: kinds[1],
                  "ub": kinds[0].replace("U", "R")}
    self.moved = {"b": self.third, self.third: "b"} if swapped and not self.plain else {}
    if "U" in kinds and not self.plain: self.constants[ranges("91")] = 1

  def row(self) -> Inst:
    line = self.line
    tokens = tuple(token for word in line.operands for token in self.tokens(word))
    words = tuple(word for word in map(self.modifier, line.modifiers) if word)
    kind, true = ("UP", regs.UPT) if "up" in self.properties else ("P", regs.PT)
    guard = Spec("guard", kind, ranges("12-14"), implied=true, classes=(true.cls,))
    specs = (*self.specs, *self.flags, guard, Spec("guard_not", "flag", ranges("15")))
    made = Form(f"{line.name}/{self.opcode:03x}", self.generation, words, tokens, specs, self.constants,
                self.properties)
    effects = sum({EFFECTS[p] for p in self.properties if p in EFFECTS})
    row = Inst(line.name, line.text, tuple(map(machine_operand, specs)), line.properties[0], effects, isa=made)
    made.row = row
    return row

  def tokens(self, word: str) -> list[Token]:
    """Return the operands of a word of the line: one, or two for the halves of an immediate."""
    optional = word[0] == "?"
    if word.isupper(): return [Token((), literal=word)]
    if "[" in word:
      found, rest = bracketed(word.lstrip("?"))
      first = len(self.specs)
      groups = tuple((prefix, tuple(self.part(piece) for piece in inside.split("+"))) for prefix, inside in found)
      self.specs[first:] = [spec._replace(reuse=-1) for spec in self.specs[first:]]
      flags = tuple((self.modifier(name), name) for name in rest.split(".") if name)
      return [Token(groups, optional, True, flags=tuple((field, word) for field, word in flags if field))]
    if "&" in word: return [Token((("", tuple(self.part(piece) for piece in word.split("&"))),), optional, spaced=True)]
    found_token = token_of(word)
    name = found_token["name"] if found_token else ""
    kind = self.kinds.get(name, "R") if not self.plain else "R"
    if kind == "C":
      return [Token((("c", (self.number(f"{name}_bank", "u", "54-58"),)), ("c", (self.place_constant(word, name),))),
                    optional, True)]
    if kind == "I" and self.type == "half":
      return [Token((("", (self.number(f"{name}_high", "half", "48-63"),)),)),
              Token((("", (self.number(f"{name}_low", "half", "32-47"),)),))]
    return [Token((("", (self.part(word),)),), optional)]

  def number(self, name: str, kind: str, at: str) -> TokenPart:
    """Add an integer operand."""
    self.specs.append(Spec(name, kind, ranges(at)))
    return TokenPart(name)

  def place_constant(self, word: str, name: str) -> TokenPart:
    """Add the offset of a source in constant memory, with the signs of the source."""
    part = self.signs(word, name, SLOTS["b"])
    self.specs.append(Spec(name, "w", ranges("40-53")))
    return part

  def part(self, word: str) -> TokenPart:
    """Add one field with its signs and suffixes."""
    if word[-1] == "'": return TokenPart(word[:-1], following=True)
    found = token_of(word)
    assert found is not None, f"{self.line.name}: {word} is no operand"
    name, kind = found["name"], ""
    slot = SLOTS.get(self.moved.get(name, name)) if not found["bits"] or name in SLOTS else None
    if slot is None or found["bits"] and slot.kind not in regs.KINDS:
      slot = OperandPosition(found["type"] or "u", found["bits"])
    elif found["bits"]: slot = slot._replace(at=found["bits"])
    source = self.kinds.get(name, "R") if not self.plain and name in ("b", "c", "h", "ub") else "R"
    if source == "I":
      kind = {"s32": "s", "u32": "u"}.get(self.type, self.type)
      self.specs.append(Spec(name, kind, ranges("32-63")))
      return TokenPart(name)
    if source == "U": slot = SLOTS["ub"]._replace(absolute="62")
    if any(spec.name == name for spec in self.specs): return TokenPart(name)  # written twice
    self.specs.append(self.spec(name, slot, found))
    return self.signs(word, name, slot)

  def spec(self, name: str, slot: OperandPosition, found: dict[str, str]) -> Spec:
    """Return the field of a slot."""
    reuse = self.reuse(name, slot) if slot.kind == "R" else -1
    wide = self.generation.wide and not found["bits"]
    return spec_of(name, slot, found["access"], found["type"], 2 if self.type == "f64" else 1, wide, reuse)

  def reuse(self, name: str, slot: OperandPosition) -> int:
    """Return the bit of a source in the reuse cache, which belongs to the operand, wherever its form has it.

    The second of two sources is c if the line has forms 2, 3 or 7.
    """
    sources = REUSE.get(self.line.properties[0], "")
    if name not in sources: return -1
    if name == "b" and self.second_is_c: name = "c"
    return SLOTS[name].reuse if slot.reuse >= 0 else -1

  def signs(self, word: str, name: str, slot: OperandPosition) -> TokenPart:
    """Add the flags of a field."""
    found = token_of(word)
    assert found is not None, f"{self.line.name}: {word} is no operand"
    sign = absolute = negate = ""
    if slot.kind in ("P", "UP", "~UP"):
      if slot.negate: negate = self.flag(f"{name}_not", slot.negate)
    elif found["sign"]: sign = self.flag(f"{name}_neg", slot.negate)
    if name == "b" and self.moved:  # the suffixes belong to the position
      found = next(other for other in map(token_of, self.line.operands) if other and other["name"] == self.third)
    if found["absolute"]: absolute = self.flag(f"{name}_abs", slot.absolute)
    suffixes = (tuple(self.suffix(name, s) for s in found["suffixes"].split(".") if s) if slot.kind in ("R", "UR")
                and slot.at != "32-37" else ())
    return TokenPart(name, negate, sign, absolute, found["sign"] == "~", suffixes)

  def suffix(self, name: str, word: str) -> str:
    """Return a modifier after an operand, or a literal word, marked by "="."""
    return "=" + word if word not in ENUMERATIONS else self.modifier(word)

  def flag(self, name: str, bit: str) -> str:
    assert bit, f"{self.line.name}: {name} has no bit"
    self.flags.append(Spec(name, "flag", ranges(bit)))
    return name

  def modifier(self, word: str) -> str:
    """Add a modifier of the line. Return its name, a literal word marked by "=", or "" if it has no text."""
    name, _, at = word.partition("@")
    at, _, value = at.partition("=")
    made: Enumeration | None = ENUMERATIONS.get(name)
    if made is not None:
      self.flags.append(Spec(name, "enum", ranges(at or made.bits), implied=made.implied, enumeration=made))
      return name
    if at: self.constants[ranges(at)] = int(value or "1", 0)
    return f"={name}" if name else ""

@once
def spec_of(name: str, slot: OperandPosition, access: str, size: str, units: int | str, wide: bool, reuse: int) -> Spec:
  """Return the field of a slot, which many rows share.

  size: registers of a group, or the modifier that gives their count. units: the default of size. wide: the field of a
  uniform register has eight bits.
  """
  kind, at = slot.kind.lstrip("~"), slot.at
  if kind not in regs.KINDS: return Spec(name, kind, ranges(at), ACCESS[access], NO_GROUP if kind == "gsb" else 0)
  if kind == "UR" and wide:
    low = int(at.partition("-")[0])
    at = f"{low}-{low + 7}"
  group = regs.KINDS[kind]
  if kind not in ("R", "UR"): units = 1
  if size and size in ENUMERATIONS: units = size
  elif size and size.isdecimal(): units = int(size)
  sizes = sorted(set(ENUMERATIONS[units].units)) if isinstance(units, str) else [units]
  none = regs.reg(group[1], regs.TRUE if kind in ("P", "UP") else regs.ZERO if kind != "B" else 0)
  return Spec(name, kind, ranges(at), ACCESS[access], none, tuple(group[n] for n in sizes), units, reuse=reuse,
              inverse=slot.kind[0] == "~")

def machine_operand(spec: Spec) -> Operand:
  """Return the operand for the machine code that all ISAs share."""
  kind = "reg" if spec.classes else "block" if spec.kind == "to" else spec.kind
  return Operand(spec.name, spec.access, spec.classes[0] if spec.classes else None, kind)

def build(row: Inst, *operands: Any, **others: Any) -> MInst:
  """Return an instruction over physical registers.

  operands: those of the text in order. others: by name, values other than the defaults: modifiers by value or word,
  flags, the guard. Raises EncodeError for a wrong count of operands or an unknown name.
  """
  form: Form = row.isa
  shown = [spec for spec in form.specs if spec.kind not in ("enum", "flag") and spec.name != "guard"]
  if len(operands) != len(shown):
    raise EncodeError(f"{form.key} takes {len(shown)} operands ({', '.join(s.name for s in shown)}), got "
                      f"{len(operands)}")
  values = [*operands]
  for spec in form.specs[len(shown):]: values.append(value_of(form, spec, others.pop(spec.name, spec.implied)))
  if others:
    raise EncodeError(f"{form.key} has no {', '.join(others)}; it has "
                      f"{', '.join(s.name for s in form.specs[len(shown):])}")
  return MInst(row, values)

def value_of(form: Form, spec: Spec, value: Any) -> Any:
  """Return the value of a modifier that may be given by its word."""
  if spec.enumeration is None: return value
  words: Sequence[str] = spec.enumeration.words
  if isinstance(value, str):
    if value not in words:
      raise EncodeError(f"{form.key}: {spec.name} is one of {', '.join(w for w in words if w not in ('', '?'))}, got "
                        f"{value}")
    return words.index(value)
  if value < 0: raise EncodeError(f"{form.key}: {spec.name} must be given: {', '.join(w for w in words if w != '?')}")
  return value
