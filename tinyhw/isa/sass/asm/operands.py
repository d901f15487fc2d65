"""Print and parse single operands: registers with signs and suffixes, immediates, constants, addresses in brackets."""
from __future__ import annotations
from typing import Any

from tinyhw.errors import ParseError
from tinyhw.isa.sass.asm.encode import BYTES, units_of
from tinyhw.isa.sass.asm.immediates import parse_float, parse_signed, parse_unsigned, show_float, show_signed
from tinyhw.isa.sass.asm.special import parse_special, show_special
from tinyhw.isa.sass.table import regs
from tinyhw.isa.sass.table.control import Control
from tinyhw.isa.sass.table.form import SCALE, Form, TokenPart, Spec, Token, bracketed, width_of
from tinyhw.machine.ir.inst import Reg
from tinyhw.machine.notation.text import none_missing, parse_integer

BOARDS = 6
LETTERS = {"sb": "SB", "gsb": "gsb", "gsb0": "gsb"}  # before the number of a scoreboard or group
INNER = "h1"  # the suffix between the bars of an absolute value

def split_operands(text: str) -> list[str]:
  """Split at commas outside of brackets and braces. Raises ParseError if an operand is missing."""
  if not text.strip(): return []
  parts: list[str] = []
  inside = 0
  for word in text.split(","):
    if inside: parts[-1] += "," + word
    else: parts.append(word)
    inside += word.count("[") + word.count("{") - word.count("]") - word.count("}")
  return none_missing([part.strip() for part in parts])

# ---- printing

def show_token(form: Form, token: Token, values: dict[str, Any], control: Control, pc: int) -> str:
  """Return the text of one operand."""
  def one(part: TokenPart) -> str: return show_part(form, part, values, control, pc)
  if token.literal: return token.literal
  if token.spaced: return " ".join(map(one, token.parts()))
  if not token.brackets: return one(token.parts()[0])
  signed = next((part for part in token.parts() if part.sign or part.absolute), None)
  bare = token if signed is None else Token(tuple((prefix, tuple(TokenPart(p.name) for p in parts))
                                                  for prefix, parts in token.groups))
  groups: list[str] = []
  for prefix, parts in bare.groups:
    inside = show_sum(form, parts, values, one)
    groups.append(f"{prefix if not groups or prefix != 'c' else ''}[{inside}]")
  text = "".join(groups) + "".join(f".{word}" for name, word in token.flags if values[name])
  return text if signed is None else with_signs(signed, text, values)

def show_sum(form: Form, parts: tuple[TokenPart, ...], values: dict[str, Any], one: Any) -> str:
  """Return the text inside brackets. A zero register or offset is left out if another term is there."""
  texts = []
  for i, part in enumerate(parts):
    value = values[part.name]
    scaled = any(suffix[0] == "=" or values[suffix] for suffix in part.suffixes)
    texts.append((one(part), i == 0 and value in (regs.RZ, regs.URZ) and not scaled or value == 0))
  kept = [text for text, usual in texts if not usual] or [texts[0][0]]
  return "+".join(kept)

def show_part(form: Form, part: TokenPart, values: dict[str, Any], control: Control, pc: int) -> str:
  """Return the text of a field with its signs and suffixes."""
  spec, value = form.specs[form.index[part.name]], values[part.name]
  if not spec.register: return with_signs(part, show_number(form, spec, value, values, pc), values)
  if part.following: return str(following(value))
  half = word_of(form, INNER, values) if INNER in part.suffixes else ""
  text = with_signs(part, f"{value}.{half}" if half else str(value), values)
  if spec.reuse >= 0 and control.reuse >> spec.reuse & 1: text += ".reuse"
  for suffix in part.suffixes:
    if suffix == INNER: continue
    word = suffix[1:] if suffix[0] == "=" else word_of(form, suffix, values)
    if word: text += f".{word}"
  return text

def following(value: Reg) -> Reg:
  """Return the next register; after URZ comes URZ."""
  assert value.index is not None, f"{value!r} is virtual"
  return value if value.index == regs.ZERO else regs.reg(value.cls, value.index + 1)

def word_of(form: Form, name: str, values: dict[str, Any]) -> str:
  """Return the text of a modifier."""
  enumeration = form.specs[form.index[name]].enumeration
  assert enumeration is not None, f"{form.key}: {name} is no modifier"
  return enumeration.words[int(values[name])]

def with_signs(part: TokenPart, text: str, values: dict[str, Any]) -> str:
  """Add ! - ~ and | |."""
  if part.absolute and values[part.absolute]: text = f"|{text}|"
  if part.sign and values[part.sign]: text = ("~" if part.inverse else "-") + text
  return "!" + text if part.negate and values[part.negate] else text

def show_number(form: Form, spec: Spec, value: Any, values: dict[str, Any], pc: int) -> str:
  """Return the text of an integer, float, address or name that is no register."""
  if not isinstance(value, int): return str(value)  # a block
  if spec.kind in ("f32", "f64"): return show_float(value, spec.kind)
  if spec.kind == "half": return show_float(value, half_of(values))
  if spec.kind == "sr": return show_special(value, form.generation)
  if spec.kind in LETTERS: return f"{LETTERS[spec.kind]}{value}"
  if spec.kind == "boards": return "{" + ",".join(str(i) for i in range(BOARDS - 1, -1, -1) if value >> i & 1) + "}"
  return hex(pc + BYTES + value) if spec.kind in ("to", "at") else show_signed(value)

def half_of(values: dict[str, Any]) -> str: return "bf16" if values.get("bf16") or values.get("bf16c") else "f16"

# ---- parsing

def parse_token(form: Form, token: Token, text: str, values: dict[str, Any], pc: int) -> int:
  """Read one operand into the values of its fields. Return its bit of the reuse cache. Raises ParseError."""
  if token.literal:
    if text != token.literal: raise ParseError(f"{token.literal} is expected, got {text}")
    return 0
  if token.spaced:
    words, wanted_parts = text.split(), token.parts()
    if len(words) != len(wanted_parts): raise ParseError(f"{len(wanted_parts)} words are expected, got {text}")
    return sum(parse_part(form, part, word, values, pc) for part, word in zip(wanted_parts, words))
  if not token.brackets: return parse_part(form, token.parts()[0], text, values, pc)
  signed = next((part for part in token.parts() if part.sign or part.absolute), None)
  if signed is not None: text = take_signs(signed, text, values)
  for name, word in token.flags:
    if text.endswith("." + word): text, values[name] = text[:-len(word) - 1], 1
    elif f"].{word}." in text: text, values[name] = text.replace(f".{word}", ""), 1
  found, rest = bracketed(text)
  wanted = [prefix if i == 0 or prefix != "c" else "" for i, (prefix, _) in enumerate(token.groups)]
  if [prefix for prefix, _ in found] != wanted or rest:
    raise ParseError(f"{''.join(f'{prefix}[..]' for prefix in wanted)} is expected, got {text}")
  reuse = 0
  for (_, inside), (_, parts) in zip(found, token.groups):
    reuse |= parse_sum(form, inside, parts, values, pc, signed is not None)
  return reuse

def parse_sum(form: Form, text: str, parts: tuple[TokenPart, ...], values: dict[str, Any], pc: int, bare: bool) -> int:
  """Read the text inside brackets."""
  reuse, left = 0, list(parts)
  words = text.replace(" ", "").split("+")
  if len(words) > 1 and not words[-1]: words[-2:] = [words[-2] + "+"]
  for word in words:
    number = parse_integer(word) is not None
    at = next((i for i, part in enumerate(left) if form.specs[form.index[part.name]].register != number
               and (number or word[:2] != "UR"
                    or form.specs[form.index[part.name]].kind == "UR")
               and (word[:1] != "R" or form.specs[form.index[part.name]].kind == "R")), None)
    if at is None: raise ParseError(f"{word} is unexpected in [{text}]")
    part = left.pop(at)
    reuse |= parse_part(form, TokenPart(part.name) if bare else part, word, values, pc)
  return reuse

def parse_part(form: Form, part: TokenPart, text: str, values: dict[str, Any], pc: int) -> int:
  """Read a field with its signs and suffixes."""
  spec = form.specs[form.index[part.name]]
  body = take_signs(part, text, values)
  if not spec.register:
    if body != text and not part.sign: raise ParseError(f"operand {part.name} takes no sign, got {text}")
    values[part.name] = parse_number(form, spec, body, values, pc)
    return 0
  name, *words = body.split(".")
  if name not in regs.NAMES and not name.lstrip("URB").isdigit() or "" in words:
    raise ParseError(not_a_register(part.name, spec, text))
  kind, index = named(name, form, spec)
  if kind != spec.kind: raise ParseError(f"operand {part.name} wants a {spec.kind} register, got {text}")
  reuse = 0
  if "reuse" in words:
    if spec.reuse < 0: raise ParseError(f"operand {part.name} cannot stay in the reuse cache, got {text}")
    words.remove("reuse")
    reuse = 1 << spec.reuse
  take_suffixes(form, part, words, values, text)
  if part.following:
    if index != following(values[part.name]).index:
      raise ParseError(f"the register after {values[part.name]} is expected, got {text}")
    return reuse
  values[part.name] = register(form, spec, index, values)
  return reuse

def not_a_register(name: str, spec: Spec, text: str) -> str:
  """Explain why an operand is no register, where the row requires one.

  A number is an error too, even if other forms take 32 bits of one.
  """
  value = parse_integer(text)
  if value is not None and not -1 << 31 <= value < 1 << 32:
    return (f"operand {name}: {text} has more than the 32 bits of an immediate; make it of two registers, or load it "
            f"from constant memory")
  return f"operand {name} wants a {spec.kind} register, got {text}"

def named(name: str, form: Form, spec: Spec) -> tuple[str, int]:
  """Return the bank and index of a register's name."""
  if name not in regs.NAMES: raise ParseError(f"{form.generation.arch} has no register {name}")
  kind, index = regs.NAMES[name]
  if kind == spec.kind and index != regs.ZERO and index >= (1 << width_of(spec.at)):
    raise ParseError(f"{form.generation.arch} has no {name} here")
  return kind, index

def register(form: Form, spec: Spec, index: int, values: dict[str, Any]) -> Reg:
  """Return the register or group of an operand."""
  group = regs.KINDS[spec.kind]
  units = (units_of(form, spec, [values[s.name] for s in form.specs]) if spec.kind in ("R", "UR") and index != regs.ZERO
           else 1)
  return regs.reg(group[units], index)

def take_signs(part: TokenPart, text: str, values: dict[str, Any]) -> str:
  """Strip leading ! - ~ and bars from the text and set them as flags."""
  if part.negate: values[part.negate] = int(text.startswith("!"))
  if part.negate and text.startswith("!"): text = text[1:]
  mark = "~" if part.inverse else "-"
  if part.sign:
    values[part.sign] = int(text.startswith(mark))
    text = text.removeprefix(mark)
  if not part.absolute: return text
  values[part.absolute] = int(text.startswith("|"))
  if not text.startswith("|"): return text
  inside, bar, after = text[1:].partition("|")
  if not bar: raise ParseError(f"| is expected after {text}")
  return inside + after

def take_suffixes(form: Form, part: TokenPart, words: list[str], values: dict[str, Any], text: str) -> None:
  """Read the suffixes of a register."""
  for suffix in part.suffixes:
    if suffix[0] == "=":
      if words[:1] != [suffix[1:]]: raise ParseError(f"operand {part.name} is written with .{suffix[1:]}, got {text}")
      words = words[1:]
      continue
    spec = form.specs[form.index[suffix]]
    assert spec.enumeration is not None, f"{form.key}: {suffix} is no modifier"
    if words and words[0] in spec.enumeration.words and words[0] != "?":
      values[suffix], words = spec.enumeration.words.index(words[0]), words[1:]
    elif spec.enumeration.implied >= 0: values[suffix] = spec.enumeration.implied
    else:
      raise ParseError(f"operand {part.name} is written with one of {', '.join(spec.enumeration.words)}, got {text}")
  if words: raise ParseError(f"operand {part.name}: .{words[0]} is unexpected in {text}")

def parse_number(form: Form, spec: Spec, text: str, values: dict[str, Any], pc: int) -> int:
  """Read an integer, float, address or name that is no register."""
  width = width_of(spec.at)
  if spec.kind in ("f32", "f64"): return parse_float(text, spec.kind)
  if spec.kind == "half": return parse_float(text, half_of(values))
  if spec.kind == "sr": return parse_special(text, form.generation)
  if spec.kind in LETTERS or spec.kind == "boards": return parse_boards(spec, text)
  value = parse_integer(text)
  if value is None and spec.kind in ("to", "at"):
    raise ParseError(f"operand {spec.name} is an address, got {text}; labels are known to `python3 -m tinyhw "
                     f"emulate`, not to a single line")
  if value is None: raise ParseError(f"operand {spec.name} is an integer, got {text}")
  if spec.kind in ("to", "at"):
    scale = SCALE.get(spec.kind, 1)
    if (value - pc) % scale: raise ParseError(f"operand {spec.name} is an address, a multiple of {scale}, got {text}")
    return value - pc - BYTES
  if spec.kind in ("w", "rel") or spec.signed and width < 32: return value
  return parse_signed(text, width) if spec.signed else parse_unsigned(text, width)

def parse_boards(spec: Spec, text: str) -> int:
  """Read SB0, gsb0 or {5,4}."""
  if spec.kind == "boards":
    inside = text.strip("{}").replace(" ", "").split(",") if text[:1] == "{" else []
    if not inside or not all(i.isdecimal() and int(i) < BOARDS for i in inside if i):
      raise ParseError(f"scoreboards are written {{5,4,0}}, got {text}")
    return sum(1 << int(i) for i in set(inside) if i)
  letters = LETTERS[spec.kind]
  if text[:-1] != letters or text[-1] not in "0123456789":
    raise ParseError(f"operand {spec.name} is written {letters}0, got {text}")
  return int(text[len(letters):])
