"""SASS as NVIDIA's disassembler writes it: `@P0 FFMA.FTZ R7, -R0, |R2|.reuse, R7`, after a control word (control.py).

`show` prints an instruction. `parse` reads a text. A text stands for one row, and its bytes decode to that row. Targets
of branches are addresses, so both functions take the address of the instruction itself (`pc`). In text for sm_8x, an
instruction with a memory descriptor shows it (`desc[UR4][R2.64]`). NVIDIA's disassembler leaves it out.
"""
from __future__ import annotations
import operator
from typing import Any

from tinyhw.errors import DecodeError, EncodeError, ParseError, TinyError
from tinyhw.isa.sass.asm import alias
from tinyhw.isa.sass.asm.encode import BYTES, encode
from tinyhw.isa.sass.asm.operands import parse_token, show_token, split_operands, word_of
from tinyhw.isa.sass.table import regs
from tinyhw.isa.sass.table.control import USUAL, Control, parse_prefix
from tinyhw.isa.sass.table.form import Form
from tinyhw.isa.sass.table.table import FORMS, TableLine, Table, entries, table
from tinyhw.machine.ir.inst import Inst, MInst, Reg
from tinyhw.machine.notation.text import ascii_only
from tinyhw.threads import once

GUARDS = frozenset({f"{kind}{index}" for kind in ("P", "UP") for index in "0123456T"})

def assemble(text: str, arch: str) -> bytes:
  """Return the bytes of one instruction at address 0. Without a control word it has stall 1 and no scoreboards."""
  return encode(*parse(text, arch))

def disassemble(code: bytes, arch: str) -> str:
  """Return the text of one instruction at address 0, after its control word."""
  from tinyhw.isa.sass.asm.decode import decode  # the compiler does not decode
  return f"{decode(code, 0, arch)[1]} {plain(code, arch)}"

def plain(code: bytes, arch: str) -> str:
  """Return the text of one instruction at address 0, without its control word."""
  from tinyhw.isa.sass.asm.decode import decode  # the compiler does not decode
  if len(code) > BYTES: raise DecodeError(f"an instruction has {BYTES} bytes, got {len(code)}")
  return show(*decode(code, 0, arch))

# ---- printing

def show(inst: MInst, control: Control = USUAL, pc: int = 0) -> str:
  """Return the text of an instruction at an address.

  The text has no control word, but it marks the operands that stay in the reuse cache.
  """
  form: Form = inst.row.isa
  values = dict(zip(form.index, inst.operands))
  words = [word for word in (form.mnemonic, alias.special_case(form, values)) if word]
  for word in form.words:
    text = word[1:] if word[0] == "=" else word_of(form, word, values)
    if text: words.append(text)
  shown: list[str] = []
  # the kind of an optional operand that is written; earlier ones of its kind must then be written too
  kept = ""
  for token in reversed(form.tokens):
    kind = form.specs[form.index[token.parts()[0].name]].kind if token.optional else ""
    if token.optional and (not kept or kept != kind) and silent(form, token, values): continue
    kept = kind
    shown.append(show_token(form, token, values, control, pc))
  return f"{show_guard(values)}{'.'.join(words)} {', '.join(reversed(shown))}".rstrip()

def silent(form: Form, token: Any, values: dict[str, Any]) -> bool:
  """Return whether all fields of an operand have their defaults."""
  names = [name for part in token.parts() for name in (part.name, part.negate, part.sign, part.absolute) if name]
  return all(values[name] == form.specs[form.index[name]].implied for name in names)

def show_guard(values: dict[str, Any]) -> str:
  """Return @!P0, or "" for an instruction that is always executed."""
  guard, inverted = values["guard"], values["guard_not"]
  return "" if guard.index == regs.TRUE and not inverted else f"@{'!' if inverted else ''}{guard} "

# ---- parsing

def parse(text: str, arch: str, pc: int = 0) -> tuple[MInst, Control]:
  """Return the instruction and control word of a line at an address.

  Raises ParseError or EncodeError, which has the fault and the expected form.
  """
  control, text = parse_prefix(ascii_only(text.strip()))
  guard, inverted = None, 0
  if text[:1] == "@":
    word, *guarded = text.split(None, 1)
    inverted = int(word[1:2] == "!")
    if word[1 + inverted:] not in GUARDS:
      raise ParseError(f"a guard is @P0 to @P6, @PT, @UP0 to @UP6 or @UPT, or with !, as in @!P0; got {word}")
    kind, index = regs.NAMES[word[1 + inverted:]]
    guard, text = regs.reg(regs.KINDS[kind][1], index), "".join(guarded)
  mnemonic, _, rest = text.partition(" ")
  if not mnemonic: raise ParseError("an instruction is expected")
  rows = table(arch)
  first, *words = mnemonic.split(".")
  keys = rows.forms(first)
  if not keys: raise ParseError(f"{arch} has no instruction {first}{suggestion(first, rows)}")
  texts = split_operands(rest)
  # (how much of the text fits, negated position in the table, error); the largest one is raised
  errors: list[tuple[int, int, TinyError]] = []
  likely, places = Likely(words, texts), {key: place for place, key in enumerate(keys)}
  for key in sorted(keys, key=lambda key: likely.order(keys[key])) if len(keys) > 1 else keys:
    try:
      inst, reuse = fill(rows[key], words, texts, (guard, inverted), pc)
      made = Control(control.stall, control.yields, control.write, control.read, control.wait, reuse)
      encode(inst, made)
      return inst, made
    except Unfit as misfit: errors.append((misfit.depth, -places[key], misfit.error))
    except EncodeError as error: errors.append((len(texts) + 1, -places[key], without_frames(error)))
  # popped, because raising adds this frame to the error
  raise errors.pop(max(range(len(errors)), key=lambda n: errors[n][:2]))[2]

class Likely:
  """The forms that a text can be. Rows of other forms need not be made or tried."""

  def __init__(self, words: list[str], texts: list[str]):
    numbers = [text.lstrip("-+")[:1].isdigit() for text in texts]
    self.words, self.numbers, self.number_last = words, sum(numbers), True in numbers[-1:]
    self.marks = tuple([any([mark in text for text in texts]) for mark in ("c[", "UR", "desc[")])

  def order(self, form: tuple[TableLine, int]) -> tuple[int, bool, int]:
    """Return the sort key of a form: the difference between the operands of the form and those of the text.

    Equal forms are sorted by agreement with the text on an immediate as the last operand, then by the count of their
    own words, most first.
    """
    line, opcode = form
    kinds = "" if "plain" in line.properties else FORMS[opcode >> 9]
    amiss = ((line.numbers + ("I" in kinds) != self.numbers) + any([word not in self.words for word in line.words])
             + sum(map(operator.ne, self.marks, ("C" in kinds, "U" in kinds, line.described))))
    return amiss, (kinds[1:] == "I") != self.number_last, -len(line.words)

GUARD = -1000   # the depth of a text whose guard does not fit

class Unfit(Exception):
  """A text does not fit a row. depth: the number of operands that fit; negative if a word or the guard does not fit."""

  def __init__(self, depth: int, error: TinyError):
    self.depth, self.error = depth, error

def without_frames(error: TinyError) -> TinyError:
  """Remove the frames from an error that is kept for later.

  The frames would keep the error, and all variables of the callers, in a reference cycle.
  """
  return error.with_traceback(None)

def suggestion(name: str, rows: Table) -> str:
  """Return names that begin alike."""
  close = [other for other in entries() if other[:3] == name[:3] and rows.forms(other)][:4]
  return f"; did you mean {', '.join(close)}?" if close else ""

def fill(row: Inst, words: list[str], texts: list[str], guard: tuple[Reg | None, int], pc: int) -> tuple[MInst, int]:
  """Return the instruction of a row from the dotted words and operands of a text, and its bits of the reuse cache.

  Raises Unfit.
  """
  form: Form = row.isa
  values: dict[str, Any] = {spec.name: spec.implied for spec in form.specs}
  if guard[0] is not None:
    wanted = form.specs[form.index["guard"]].classes[0]
    if guard[0].cls is not wanted:
      raise Unfit(GUARD, ParseError(f"the guard of {form.mnemonic} is a {wanted.name} register, got {guard[0]}"))
    values["guard"], values["guard_not"] = guard
  case, given = alias.without(words, form)
  if not take_words(form, list(form.words), given, values):
    known = ", ".join(describe_words(form)) or "no modifiers"
    raise Unfit(known_words(form, given) - len(given) - 1,
                ParseError(f"{form.mnemonic} with these operands takes {known}, got .{'.'.join(words)}" if words else
                           f"{form.mnemonic} with these operands takes {known}, and the text has none"))
  state = Matching(form, texts, values, pc)
  if not state.match(0, 0):
    if len(texts) > len(form.tokens):
      raise Unfit(0, ParseError(f"{form.mnemonic} takes {len(form.tokens)} operands, got {len(texts)}"))
    raise Unfit(state.depth,
                state.error or ParseError(f"{form.mnemonic} takes {len(form.tokens)} operands, got {len(texts)}"))
  if case and case != alias.special_case(form, values):
    raise Unfit(len(texts), ParseError(f"{form.mnemonic}.{case} is an {form.mnemonic} where {alias.MEANINGS[case]}; "
                                       f"without {case} it is any"))
  return MInst(row, [values[spec.name] for spec in form.specs]), state.reuse

def known_words(form: Form, given: list[str]) -> int:
  """Return how many of the dotted words a row has."""
  known = {part for word in describe_words(form) for choice in word[1:].split("|") for part in choice.split(".")}
  return sum(word in known for word in given)

def describe_words(form: Form) -> list[str]:
  """Describe the modifiers of a row, for an error."""
  out = []
  for word in form.words:
    enumeration = None if word[0] == "=" else form.specs[form.index[word]].enumeration
    out.append(word[1:] if enumeration is None else "|".join(w for w in enumeration.words if w not in ("", "?")))
  return [f".{word}" for word in out]

def take_words(form: Form, names: list[str], given: list[str], values: dict[str, Any]) -> bool:
  """Assign each of the dotted words to a modifier, in order. Return whether that is possible."""
  if not names: return not given
  name, *rest = names
  if name[0] == "=":
    wanted = name[1:].split(".")
    return given[:len(wanted)] == wanted and take_words(form, rest, given[len(wanted):], values)
  enumeration = form.specs[form.index[name]].enumeration
  assert enumeration is not None, f"{form.key}: {name} is no modifier"
  for wanted, value in choices_of(enumeration.words) if given else ():
    if given[:len(wanted)] == wanted and take_words(form, rest, given[len(wanted):], values):
      values[name] = value
      return True
  if enumeration.implied < 0: return False
  values[name] = enumeration.implied
  return take_words(form, rest, given, values)

@once
def choices_of(words: tuple[str, ...]) -> list[tuple[list[str], int]]:
  """Return the words of a modifier with their values. Words with the most parts come first."""
  choices = [(word.split("."), value) for value, word in enumerate(words) if word not in ("", "?")]
  return sorted(choices, key=lambda choice: -len(choice[0]))

class Matching:
  """Match the operands of a text with those of a row, some of which are optional.

  depth, error: the position and reason of the last failure.
  """

  def __init__(self, form: Form, texts: list[str], values: dict[str, Any], pc: int):
    self.form, self.texts, self.values, self.pc = form, texts, values, pc
    self.reuse, self.depth = 0, 0
    self.error: TinyError | None = None

  def match(self, token: int, text: int) -> bool:
    """Return whether the operands from here on fit."""
    if token == len(self.form.tokens): return text == len(self.texts)
    current = self.form.tokens[token]
    saved, reuse = dict(self.values), self.reuse
    if text < len(self.texts):
      try:
        self.reuse |= parse_token(self.form, current, self.texts[text], self.values, self.pc)
        if current in self.form.tokens[:token] and self.values != saved:
          raise ParseError(f"{self.texts[text]} must be the operand before it")
        if self.match(token + 1, text + 1): return True
      except (ParseError, EncodeError) as error:
        if self.error is None or text >= self.depth: self.depth, self.error = text, without_frames(error)
      self.values.update(saved)
      self.reuse = reuse
    return current.optional and self.match(token + 1, text)
