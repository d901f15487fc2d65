"""AMD assembly text as LLVM writes it. Examples: `v_add_f32_e64 v0, -v1, |s2| clamp` and
`global_load_b32 v1, v[2:3], off offset:16`.

`show` prints the suffix of the encoding that the encoder chooses (_e32, _e64, _dpp, _sdwa). `parse` takes a mnemonic
with or without a suffix, and the names of all generations for it. It takes numbers in all notations, and modifiers in
any order.

Two operations in one instruction are joined by "::". A literal is written as its 32 bits. A branch's operand is the
distance in dwords from the next instruction, or a label in the text of a function.
"""
from __future__ import annotations
import re
import struct
from typing import Any

from tinyhw.errors import EncodeError, ParseError
from tinyhw.isa.amd.asm.check import describe
from tinyhw.isa.amd.asm.decode import decode
from tinyhw.isa.amd.asm.encode import chosen, encode
from tinyhw.isa.amd.asm.immediates import WORDS, integer
from tinyhw.isa.amd.asm.modifiers import FLAGS, parse_one, show_all, sources
from tinyhw.isa.amd.table import regs
from tinyhw.isa.amd.table.constants import FIRST_FLOAT, FLOAT_NAMES, float_bits
from tinyhw.isa.amd.table.form import Form, Generation, Spec
from tinyhw.isa.amd.table.make import is_half
from tinyhw.isa.amd.table.table import SUFFIXES, Table, table
from tinyhw.machine.ir.assembly import whole_text
from tinyhw.machine.ir.inst import Inst, MInst, Reg
from tinyhw.machine.notation.text import ascii_only, parse_integer, split_operands
from tinyhw.threads import once

def assemble(text: str, arch: str) -> bytes:
  """The bytes of one instruction."""
  return encode(parse(text, arch))

def disassemble(code: bytes, arch: str) -> str:
  """The text of the one instruction that makes up all of the bytes."""
  return whole_text(code, lambda code: decode(code, 0, arch), show)

# ---- printing

def show(inst: MInst) -> str:
  """The text of an instruction. With virtual registers it has no suffix, as the encoding is not known."""
  form: Form = inst.row.isa
  shown = [i for i, spec in enumerate(form.specs) if spec.show]
  parts = [show_operand(form, i, inst.operands) for i in shown]
  if form.first_operands:
    first, second = form.mnemonic.split(" :: ")
    return f"{first} {', '.join(parts[:form.first_operands])} :: {second} {', '.join(parts[form.first_operands:])}"
  words = show_all(form, inst.operands)
  if "soffset" in form.index and inst.row.pipe == "smem":
    at, offset = shown.index(form.index["soffset"]), hex(inst.operands[form.index["offset"]])
    words = [word for word in words if word[:7] != "offset:"]
    # a prefetch has both operands
    if form.specs[form.index["soffset"]].name != form.specs[shown[-1]].name: parts[at:at + 1] = [offset, parts[at]]
    elif inst.operands[form.index["soffset"]] is None: parts[at] = offset
    elif offset != "0x0": words.insert(0, f"offset:{offset}")
  virtual = any(isinstance(o, Reg) and o.index is None for o in inst.operands)
  suffix = "" if virtual else chosen(inst).name.replace("dpp8", "dpp")
  return " ".join(word for word in (form.mnemonic + suffix, ", ".join(parts), *words) if word)

def show_operand(form: Form, at: int, operands: list[Any]) -> str:
  """The text of one operand, with neg, abs or sext around it."""
  spec, value = form.specs[at], operands[at]
  if spec.kinds == "i": text = show_words(form, spec, value)
  elif value is None: text = "null" if spec.name == "soffset" else "off"
  elif isinstance(value, int): text = show_constant(spec, value)
  else: text = str(value) + half_of(form, at, operands)
  if spec.name[:3] == "src" and "neg" in form.index or "sext" in form.index:
    order = sources(form)
    bit = order.index(at) if at in order else 8
    def marked(name: str) -> bool: return name in form.index and bool(operands[form.index[name]] >> bit & 1)
    if marked("sext"): text = f"sext({text})"
    if marked("abs"): text = f"|{text}|"
    if marked("neg"): text = f"-{text}" if isinstance(value, Reg) or marked("abs") else f"neg({text})"
  return str(text)

def half_of(form: Form, at: int, operands: list[Any]) -> str:
  """The suffix .l or .h of a 16-bit half of a vector register, if the text shows halves; elsewhere op_sel is shown.

  The text may omit the suffixes if all halves are lower ones.
  """
  if "halves" not in form.words or operands[at].cls.bank is not regs.VGPR or not is_half(form.specs[at]): return ""
  if "true16" not in form.words and not operands[form.index["op_sel"]]: return ""
  order = sources(form)
  return ".h" if operands[form.index["op_sel"]] >> (order.index(at) if at in order else 3) & 1 else ".l"

def show_words(form: Form, spec: Spec, value: Any) -> str:
  """The text of an integer operand; a block shows its name."""
  if not isinstance(value, int): return str(value)
  return hex(value) if spec.integer in ("k32", "k16") else WORDS[spec.integer].show(value, form.generation)

def show_constant(spec: Spec, value: int) -> str:
  """The text of a constant: 1.0, -1, 0x12345678. A literal shows its dword."""
  assert spec.type is not None, f"{spec.name} has no type"
  kind = spec.type.constants
  value &= kind.mask
  if value in kind.names: return kind.names[value]
  if value in kind.codes and kind.codes[value] < FIRST_FLOAT:
    return str(value if value <= 64 else value - kind.mask - 1)
  if kind.signed and value >> 63: return str(value - (1 << 64))
  return hex(value >> kind.shift)

# ---- parsing

REGISTER = re.compile(r"(v|s|a|ttmp)(?:(\d+)|\[\s*(\d+)\s*(?::\s*(\d+)\s*)?\])$")
FLOAT = re.compile(r"-?\d+(\.\d*)?(e[-+]?\d+)?$")
COMMENT = re.compile(r"/\*.*?\*/")

def parse(text: str, arch: str) -> MInst:
  """Parse one line of text to an instruction.

  Raises ParseError or EncodeError with the mistake and the expected text.
  """
  rows = table(arch)
  text = ascii_only(COMMENT.sub("", text).strip())
  mnemonic, _, rest = text.partition(" ")
  if not mnemonic: raise ParseError("an instruction is expected")
  if "::" in text: return parse_pair(text, rows)
  keys = candidates(mnemonic.lower(), rest, rows)
  if not keys: raise ParseError(f"{arch} has no instruction {mnemonic.lower()}{suggestion(mnemonic.lower(), rows)}")
  errors: list[ParseError | EncodeError] = []
  for key in keys:
    try: return canonical(fill(rows[key], *split(rest, rows[key])), rows)
    except (ParseError, EncodeError) as error: errors.append(error)
  raise errors[0]

def parse_pair(text: str, rows: Table) -> MInst:
  """Parse two operations joined by "::"."""
  parts = [part.strip().partition(" ") for part in text.split("::")]
  if len(parts) != 2: raise ParseError(f"one :: joins two operations, got {len(parts)}")
  names = [name.lower() for name, _, _ in parts]
  row = rows.get("::".join(names))
  if row is None:
    raise ParseError(f"{rows.generation.arch} has no instruction that does {names[0]} and then {names[1]}")
  form: Form = row.isa
  operands = [split_operands(rest) for _, _, rest in parts]
  for name, given, wanted in zip(names, operands, (form.first_operands, len(form.specs) - form.first_operands)):
    if len(given) != wanted: raise ParseError(f"{name} takes {wanted} operands, got {len(given)}")
  inst = fill(row, operands[0] + operands[1], [])
  encode(inst)
  return inst

def candidates(mnemonic: str, rest: str, rows: Table) -> list[str]:
  """The keys of rows that a mnemonic may stand for."""
  for name, suffix in ((mnemonic, ""), *((mnemonic[:-len(s)], s) for s in SUFFIXES if mnemonic.endswith(s))):
    found = rows.spelled(name)
    if not found: continue
    if suffix[-3:] == "dpp" and "dpp8:" in rest: suffix += "8"
    keys = [key + ending for key in found for ending in ((suffix,) if suffix else ("", "_rtn"))]
    alone = {"_e32": ("vop1", "vop2", "vopc"), "_e64": ("vop3", "vop3sd")}.get(suffix, ())
    # the only encoding, so that the row's name has no suffix
    keys += [key for key in found if rows.line(key).format in alone]
    return [key for key in keys if rows.get(key) is not None]
  return []

def suggestion(mnemonic: str, rows: Table) -> str:
  """Suggest names with the same beginning."""
  close = [name for name in rows.index.names if name[:8] == mnemonic[:8] and abs(len(name) - len(mnemonic)) < 3][:3]
  return f"; did you mean {', '.join(close)}?" if close else ""

def split(text: str, row: Inst) -> tuple[list[str], list[str]]:
  """Split the text into the operands and the words after them."""
  form: Form = row.isa
  specs = [spec for spec in form.specs if spec.show]
  if len(specs) == 1 and specs[0].integer in ("waitcnt", "depctr", "delay"):
    return [text.strip()] if text.strip() else [], []
  operands, words = split_operands(text), []
  if operands:
    last, *rest = words_of(operands[-1])
    if not specs or is_modifier(last): rest, operands[-1:] = [last, *rest], []
    else: operands[-1] = last
    words = rest
  return operands, words

def words_of(text: str) -> list[str]:
  """Split at blanks outside of brackets."""
  return re.findall(r"(?:[^\s\[(]|\[[^\]]*\]|\([^)]*\))+", text)

def is_modifier(word: str) -> bool: return word in FLAGS or re.match(r"[a-z_0-9]+:", word) is not None

def fill(row: Inst, given: list[str], words: list[str]) -> MInst:
  """The instruction from the words of its operands and modifiers."""
  form: Form = row.isa
  values: list[Any] = [spec.implied for spec in form.specs]
  specs = [(i, spec) for i, spec in enumerate(form.specs) if spec.show]
  if row.pipe == "smem" and "soffset" in form.index: given, words = scalar_memory(form, given, words)
  if len(given) + 1 == len(specs) and row.name[:6] == "v_cmpx": given = [str(form.generation.vcc), *given]
  if len(given) != len(specs):
    names = [spec.name for _, spec in specs]
    missing = (f"; {' and '.join(names[len(given):])} {'is' if len(names) == len(given) + 1 else 'are'} missing"
               if len(given) < len(names) else "")
    raise ParseError(f"{form.mnemonic} takes {len(names)} operand{'s' * (len(names) != 1)} ({', '.join(names)}), got "
                     f"{len(given)}{missing}")
  order = sources(form)
  marks: dict[str, int] = {}
  for (i, spec), text in zip(specs, given):
    body, found = marked(text) if i in order else (text, [])
    if body[-2:] in (".l", ".h") and "op_sel" in form.index and REGISTER.match(body[:-2]):
      if body[-1] == "h": marks["op_sel"] = marks.get("op_sel", 0) | 1 << (order.index(i) if i in order else 3)
      body = body[:-2]
    for name in found:
      if name not in form.index: raise ParseError(f"operand {spec.name} of {form.mnemonic} takes no {name}, got {text}")
      marks[name] = marks.get(name, 0) | 1 << order.index(i)
    values[i] = parse_operand(body, spec, form)
  for name, bits in marks.items(): values[form.index[name]] = bits
  flags = {word for word in FLAGS for encoding in form.encodings if encoding.values.get(word)}
  for word in words:
    if word in flags:
      flags.discard(word)
      continue
    name, value = parse_one(form, word)
    if name not in form.index or form.specs[form.index[name]].show:
      raise ParseError(f"{form.mnemonic} has no modifier {word}{known_modifiers(form)}")
    values[form.index[name]] = value
  if flags: raise ParseError(f"{form.mnemonic} with these operands wants {', '.join(sorted(flags))}")
  return MInst(row, values)

def known_modifiers(form: Form) -> str:
  names = [spec.name for spec in form.specs if not spec.show]
  return f"; it has {', '.join(names)}" if names else ""

def scalar_memory(form: Form, given: list[str], words: list[str]) -> tuple[list[str], list[str]]:
  """Split off the offset of a scalar memory instruction.

  A scalar load has a register or a number as offset, or both with `offset:`. A prefetch always has both.
  """
  shown = [i for i, spec in enumerate(form.specs) if spec.show]
  at = shown.index(form.index["soffset"])
  if len(given) == len(shown) + 1: return given[:at] + given[at + 1:], [f"offset:{given[at]}", *words]
  if at < len(given) and parse_integer(given[at]) is not None:
    return given[:at] + ["null"] + given[at + 1:], [f"offset:{given[at]}", *words]
  return given, words

MARKS = (("neg", re.compile(r"neg\((.*)\)$")), ("sext", re.compile(r"sext\((.*)\)$")),
         ("abs", re.compile(r"abs\((.*)\)$")),
         ("abs", re.compile(r"\|(.*)\|$")), ("neg", re.compile(r"-(?!\s*[\d.])(.*)$")))

def marked(text: str) -> tuple[str, list[str]]:
  """Strip neg, abs and sext from an operand."""
  names: list[str] = []
  while True:
    for name, pattern in MARKS:
      found = pattern.match(text)
      if found is not None:
        text = found[1].strip()
        names.append(name)
        break
    else: return text, names

def parse_operand(text: str, spec: Spec, form: Form) -> Any:
  """Parse a register, the bits of a constant, an integer, or None."""
  generation = form.generation
  if spec.kinds == "i":
    if spec.integer in ("k32", "k16"): return parse_literal(text, spec)
    value = WORDS[spec.integer].parse(text, generation)
    if spec.integer in ("block", "simm") and 0x8000 <= value <= 0xffff: value -= 0x10000
    return value
  if spec.optional and text in ("off", "null"): return None
  register = parse_register(text, spec, generation)
  if register is not None: return register
  if "c" in spec.kinds:
    constant = parse_constant(text, spec)
    if constant is not None: return constant
  raise ParseError(f"operand {spec.name} wants {describe(spec)}, got {text}")

def parse_literal(text: str, spec: Spec) -> int:
  """Parse the dword of an instruction that always has one. A float has the instruction's type."""
  if FLOAT.match(text) and not text.lstrip("-").isdecimal():
    return float_bits(float(text), "f" if spec.integer == "k32" else "e")
  value = integer(text, "the literal") & 0xffffffff
  return value

def parse_register(text: str, spec: Spec, generation: Generation) -> Reg | None:
  """The register that a text names, in a class that the operand takes; None if the text names none."""
  found = REGISTER.match(text)
  if found is None: return special_register(text, spec, generation)
  letter, first, low, high = found.groups()
  index = int(first or low)
  units = 1 if first or high is None else int(high) - index + 1
  files = {"v": generation.vectors, "a": regs.AE if generation.cdna else {}, "s": regs.S, "ttmp": regs.S}
  cls = files[letter].get(units)
  bank = {"s": generation.sgprs, "ttmp": 16}.get(letter, 256)
  if cls is None or index + units > bank: raise ParseError(f"{text}: {generation.arch} has no such register")
  if index % cls.align:
    raise ParseError(f"{text}: a group of {units} {letter} registers starts at a multiple of {cls.align} on "
                     f"{generation.arch}")
  if cls not in spec.classes: raise ParseError(f"operand {spec.name} wants {describe(spec)}, got {text}")
  return regs.reg(cls, index + (regs.TTMP if letter == "ttmp" else 0))

@once
def special_names(family: str, units: int) -> dict[str, int]:
  """Names of scalar registers other than s and a number: name -> index."""
  codes = regs.NUMBERS["cdna" if family == "cdna" else "rdna"].codes
  names = {name: i for i, name in enumerate(regs.scalar_names(units)) if codes[i] >= 0 and i >= regs.SGPRS
           and not REGISTER.match(name)}
  return {**names, **{name[4:]: i for name, i in names.items() if name[:4] == "src_"}}

def special_register(text: str, spec: Spec, generation: Generation) -> Reg | None:
  """Parse the name of a special register: vcc, exec_lo, m0, src_scc ..."""
  for cls in spec.classes:
    names = special_names(generation.family, cls.units) if cls.bank is regs.SGPR else {}
    if text in names: return regs.reg(cls, names[text])
  for units in regs.S:
    if text in special_names(generation.family, units):
      raise ParseError(f"operand {spec.name} wants {describe(spec)}, got {text}")
  return None

def parse_constant(text: str, spec: Spec) -> int | None:
  """The bits of a constant; None if the text is none. A literal of 64-bit floats is written as its upper half."""
  assert spec.type is not None, f"{spec.name} has no type"
  kind = spec.type.constants
  for bits, name in kind.names.items():
    if text == name or text.startswith(FLOAT_NAMES[-1]) and name.startswith(FLOAT_NAMES[-1]): return bits
  value = parse_integer(text)
  if value is None:
    if not FLOAT.match(text): return None
    return parse_float(text, spec)
  if kind.shift and value & kind.mask not in kind.codes and -1 << 31 <= value < 1 << 32:
    return (value & 0xffffffff) << kind.shift
  if not -1 << kind.bits - 1 <= value <= kind.mask:
    raise ParseError(f"operand {spec.name}: {text} does not fit {kind.bits} bits")
  return value & kind.mask

def parse_float(text: str, spec: Spec) -> int:
  """The bits of a float that is no inline constant, in the type of the operand."""
  assert spec.type is not None, f"{spec.name} has no type"
  kind = spec.type.constants
  if not kind.letter: raise ParseError(f"operand {spec.name} is {spec.type.name}: write {text} as an integer")
  try: return float_bits(float(text), kind.letter)
  except (OverflowError, struct.error):
    raise ParseError(f"operand {spec.name}: {text} does not fit {spec.type.name}") from None

def canonical(inst: MInst, rows: Table) -> MInst:
  """Replace a row that is fixed to an encoding by the general row, if that is encoded in the same way.

  Raises EncodeError if nothing fits.
  """
  form: Form = inst.row.isa
  encoding = chosen(inst)
  name, suffix = rows.split(form.key)
  group = suffix.replace("_e64", "").replace("_e32", "")
  if group == suffix: return inst
  plain = rows.get(name + group)
  if plain is None or len(plain.operands) != len(inst.operands): return inst
  other = MInst(plain, inst.operands)
  return other if chosen(other).name == encoding.name else inst
