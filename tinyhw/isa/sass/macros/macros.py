"""Macros of SASS for selection: text with names for operands, of one line or several (machine/select/macros.py).

A name is a lower-case word that stands for a register or an immediate. `name.lo` and `name.hi` are the halves of a
pair. `name.0` to `name.3` are the registers of a group, `name.r4` and so on those of a large group. All other text is
as the disassembler writes it: `@p FSEL d, -a, b, !q`.

A line is parsed once for each combination of operand kinds, with stand-ins for the operands. A register selects a form
with a register, a constant a form with an immediate. If no form takes the immediate, the text is refused and selection
moves the constant into a register.

A macro of one line without parts of operands is that instruction. Other macros are rows of their own until allocation.
`UNLESS p` is a jump to the end of the macro, taken by all lanes or none.

Classes of operands: v1 v2 v4 v128 ... (registers of a lane), x1 x2 (the same, or a constant), p (a predicate), i (an
integer). "%8x", "%9+" ... after a name limits it to generations, as in table.py.
"""
from __future__ import annotations
import bisect
import itertools
import re
from collections.abc import Callable, Mapping
from typing import Any

from tinyhw.data_class import replace
from tinyhw.errors import TinyError
from tinyhw.isa.sass.asm.syntax import parse
from tinyhw.isa.sass.macros import floats, integer, memory
from tinyhw.isa.sass.table import regs
from tinyhw.isa.sass.table.branch import JUMP_IF
from tinyhw.isa.sass.table.form import Form, Generation, Spec
from tinyhw.machine.ir.inst import Access, Effect, Function, Inst, MInst, Operand, Reg, RegClass, concrete
from tinyhw.machine.ir.target import Target
from tinyhw.machine.notation.lazy import Lazy
from tinyhw.machine.select.macros import AFTER, MACRO, Macro, expand, parse_macros
from tinyhw.named_tuple import NamedTuple
from tinyhw.threads import once

TEXTS = (integer.TEXT, floats.TEXT, memory.text())
CLASSES: dict[str, RegClass] = {"x1": regs.R[1], "x2": regs.R[2], "p": regs.P,
                                **{f"v{n}": cls for n, cls in regs.R.items()}}
NAME = re.compile(r"(?<![\w.\]])(?P<name>[a-z][a-z0-9]*)(?:\.(?P<part>lo|hi|[0-3](?!\d)|r\d+))?(?![\w\[])")
SLOT_UNITS = 8                       # the least distance between the registers that stand for operands
# these stand for constants: small multiples of 4, so that every field has room for them
NUMBERS = range(0x14, 0x40, 4)
NOTHING = frozenset({regs.RZ, regs.PT})  # they discard writes
UNLESS = "UNLESS "
BASE = "UR0"                    # stands for all bases of accesses
PARTS: dict[str | None, int] = {None: 0, "lo": 0, "hi": 1, "0": 0, "1": 1, "2": 2, "3": 3,
                                **{f"r{k}": k for k in range(4, 128)}}

class OperandClass(NamedTuple):
  """The class of a register.

  part: the operand is an element of it. The position of the element is an integer operand after the macro's own
  operands.
  """
  cls: RegClass
  part: bool = False

Kinds = tuple[OperandClass | None, ...]  # of a macro's operands; None: a constant

class OperandSlot(NamedTuple):
  """The operand of a macro that fills an operand of an instruction.

  at: the register of a group, or the 32-bit word of a constant. begin: for an element, the operand that holds its
  position.
  """
  operand: int
  at: int = 0
  begin: int | None = None

class MacroInstruction(NamedTuple):
  """An instruction of a macro: the operands of its row, and the slots that replace some of them."""
  row: Inst
  operands: tuple[Any, ...]
  slots: tuple[tuple[int, OperandSlot], ...]

@once
def macros_of(arch: str) -> Mapping[str, Macro]:
  """Return the macros of a generation, by name."""
  generation, found = Generation(arch), {}
  for text in TEXTS:
    macros = parse_macros(text, str.strip)
    for full in macros:
      name, _, group = full.partition("%")
      if generation.has(group): found[name] = macros, full
  return Lazy(found, lambda source: source[0][source[1]])

def macro_of(arch: str, what: str | Macro) -> Macro:
  """Return a macro of the texts by its name.

  "+UR4" follows the name of an access with a base. A macro that was made for a single use is returned as it is.
  """
  if not isinstance(what, str): return what
  name, _, base = what.partition("+")
  return memory.with_base(macros_of(arch)[name], base) if base else macros_of(arch)[name]

@once
def letters_of(arch: str, what: str | Macro) -> tuple[str, ...]:
  """Return the classes of a macro's operands."""
  return tuple([letters for _, _, letters in macro_of(arch, what).operands])

@once
def signed(macro: Macro, negative: int, absolute: int) -> Macro:
  """Negate or take absolute values of sources of a one-line macro; the arguments have a bit for each source."""
  assert len(macro.lines) == 1, f"macro {macro.name} of several lines takes no signs"
  sources = [operand for operand, access, _ in macro.operands if access is not Access.WRITE]
  line, changed = macro.lines[0], {**{n: f"|{n}|" for k, n in enumerate(sources) if absolute >> k & 1},
                                   **{n: f"-{n}" for k, n in enumerate(sources) if negative >> k & 1}}
  return macro._replace(lines=(NAME.sub(lambda match: changed.get(match[0], match[0]), line),))

@once
def pieces(arch: str, what: str | Macro, kinds: Kinds) -> tuple[MacroInstruction, ...] | None:
  """Return the instructions of a macro for operands of these kinds. Return None if no form takes an immediate."""
  macro = macro_of(arch, what)
  made = parsed(arch, what, tuple(None if found is None else kind(CLASSES[letters])
                                  for found, (_, _, letters) in zip(kinds, macro.operands)))
  begins = begins_of(kinds)
  if made is None or not begins: return made
  return tuple([one._replace(slots=tuple([(i, slot._replace(begin=begins.get(slot.operand))) for i, slot in one.slots]))
                for one in made])

def begins_of(kinds: Kinds) -> dict[int, int]:
  """Map each operand that is an element of a group to the number of the operand with its position."""
  parts = [k for k, found in enumerate(kinds) if found is not None and found.part]
  return {k: len(kinds) + n for n, k in enumerate(parts)}

@once
def parsed(arch: str, what: str | Macro, kinds: Kinds) -> tuple[MacroInstruction, ...] | None:
  """Return the instructions of a macro for operands of its own classes, or constants.

  Accesses are parsed with a single base; with_base replaces it.
  """
  name, _, base = what.partition("+") if isinstance(what, str) else ("", "", "")
  if base not in ("", BASE): return with_base(parsed(arch, f"{name}+{BASE}", kinds), int(base.removeprefix("UR")))
  macro = macro_of(arch, what)
  names = {operand: k for k, (operand, _, _) in enumerate(macro.operands)}
  try: return tuple([piece(arch, names, line, kinds) for line in macro.lines])
  except TinyError:
    if None not in kinds: raise
    return None

def with_base(made: tuple[MacroInstruction, ...] | None, number: int) -> tuple[MacroInstruction, ...] | None:
  """Replace BASE in the instructions of an access by the base that begins at this uniform register."""
  if made is None: return None
  base, other = regs.reg(regs.UR[2], int(BASE.removeprefix("UR"))), regs.reg(regs.UR[2], number)
  return tuple([one._replace(operands=tuple([other if value is base else value for value in one.operands]))
                for one in made])

def piece(arch: str, names: dict[str, int], line: str, kinds: Kinds) -> MacroInstruction:
  """Parse a line.

  The stand-ins of an operand begin at the first part that the line names. So lines that differ only in names and parts
  share one parse.
  """
  if line.startswith(UNLESS):
    return MacroInstruction(JUMP_IF, (AFTER, regs.PT, 1), ((1, OperandSlot(names[line.removeprefix(UNLESS)])),))
  words = NAME.split(line)  # the text between names, a name, its part, and so on
  found = [(names[name], PARTS[part]) for name, part in zip(words[1::3], words[2::3])]
  first: dict[int, int] = {}
  for k, at in found: first[k] = min(first.get(k, at), at)
  order = list(first)
  places = tuple([(order.index(k), at - first[k]) for k, at in found])
  one = parsed_line(arch, tuple(words[::3]), places, tuple([kinds[k] for k in order]))
  return one._replace(slots=tuple([(i, OperandSlot(order[k], first[order[k]] + at)) for i, (k, at, _) in one.slots]))

@once
def parsed_line(arch: str, words: tuple[str, ...], places: tuple[tuple[int, int], ...],
                kinds: Kinds) -> MacroInstruction:
  """Parse a line of these words with operands between them. places: the operand and its part, for each gap."""
  starts = starts_of(kinds)
  predicates = [k for k, kind in enumerate(kinds) if kind is not None and kind.cls is regs.P]
  numbers: dict[OperandSlot, int] = {}

  def stand_in(k: int, at: int) -> str:
    if kinds[k] is None: return hex(numbers.setdefault(OperandSlot(k, at), NUMBERS[len(numbers)]))
    return f"P{predicates.index(k)}" if k in predicates else f"R{starts[k] + at}"

  text = words[0] + "".join([stand_in(*place) + word for place, word in zip(places, words[1:])])
  inst, _ = parse(text, arch)
  form: Form = inst.row.isa
  found = [(i, slot_of(spec, value, starts, predicates, numbers))
           for i, (spec, value) in enumerate(zip(form.specs, inst.operands))]
  slots = tuple([(i, slot) for i, slot in found if slot is not None])
  missing = set(numbers) - {slot for _, slot in slots}
  assert not missing, f"{text} has no operand for {missing}"
  return MacroInstruction(guarded(inst.row) if text.startswith("@") else inst.row, tuple(inst.operands), slots)

@once
def guarded(row: Inst) -> Inst:
  """Return the row of an instruction with a guard: lanes without the guard keep the old values of its results."""
  return replace(row, operands=tuple(o._replace(access=Access.BOTH) if o.access is Access.WRITE and o.cls is not None
                                     else o for o in row.operands))

def starts_of(kinds: Kinds) -> tuple[int, ...]:
  """Return the first stand-in register of each operand, and the first register after all of them."""
  sizes = [SLOT_UNITS if kind is None else -(-kind.cls.units // SLOT_UNITS) * SLOT_UNITS for kind in kinds]
  return (0, *itertools.accumulate(sizes))

def slot_of(spec: Spec, value: Any, starts: tuple[int, ...], predicates: list[int],
            numbers: dict[OperandSlot, int]) -> OperandSlot | None:
  """Return the slot of an operand of a parsed line."""
  if isinstance(value, Reg):
    assert value.index is not None
    if value.cls.bank is regs.VECTOR and value.index < starts[-1]:
      operand = bisect.bisect(starts, value.index) - 1
      return OperandSlot(operand, value.index - starts[operand])
    return OperandSlot(predicates[value.index]) if value.cls is regs.P and value.index < len(predicates) else None
  if spec.kind in ("enum", "flag"): return None
  return next((slot for slot, number in numbers.items() if number == value), None)

def filled(one: MacroInstruction, values: list[Any]) -> list[Any]:
  """Return the operands of a piece with the macro's own operands in their slots."""
  operands = list(one.operands)
  for i, (operand, at, begin) in one.slots:
    value = values[operand]
    if not isinstance(value, Reg): operands[i] = immediate(one.row.isa.specs[i], value >> 32 * at)
    elif operands[i].cls is value.cls or value.index == regs.ZERO: operands[i] = value
    else:
      assert value.index is not None, f"{value!r} has no register yet"
      operands[i] = regs.reg(operands[i].cls, value.index + at + (values[begin] if begin is not None else 0))
  return operands

def immediate(spec: Spec, value: int) -> int:
  """Reduce a constant to 32 bits where the field has 32."""
  if spec.kind not in ("s", "u", "f32") or spec.at[0][1] - spec.at[0][0] != 31: return value
  value &= 0xffffffff
  return value - (1 << 32) if spec.signed and value >> 31 else value

# ***** instructions over virtual registers *****

class ResolvedMacro(NamedTuple):
  """A macro with operands of known kinds.

  piece: its instruction, if it is a single one over whole operands. temporary: the classes of its temporary registers.
  parts: the operands that are elements of groups.
  """
  row: Inst
  piece: MacroInstruction | None
  temporary: tuple[RegClass, ...]
  parts: tuple[int, ...]

@once
def ready(arch: str, what: str | Macro, shown: Kinds) -> ResolvedMacro | None:
  """Return a macro over operands of these kinds. Return None if no form takes an immediate.

  A register that is read and written has Access.BOTH.
  """
  macro = macro_of(arch, what)
  assert len(shown) == macro.shown, f"macro {macro.name} takes {macro.shown} operands, got {len(shown)}"
  temporary = tuple([CLASSES[letters] for _, _, letters in macro.operands[macro.shown:]])
  kinds = (*shown, *map(kind, temporary))
  made = pieces(arch, what, kinds)
  if made is None: return None
  if single(made, kinds): return ResolvedMacro(plain_row(macro, made[0], kinds), made[0], temporary, ())
  several, parts = len(made) > 1, tuple(begins_of(kinds))
  operands = tuple(Operand(operand, access, kind.cls if kind else None, "reg" if kind else "imm",
                           early=several and access is Access.WRITE)
                   for (operand, access, _), kind in zip(macro.operands, kinds))
  operands += tuple(Operand(f"{macro.operands[k][0]}_begin", Access.READ, None, "imm") for k in parts)
  effects = 0
  for one in made: effects |= one.row.effects & (Effect.LOAD | Effect.STORE | Effect.BARRIER)
  return ResolvedMacro(Inst(macro.name, MACRO, operands, made[0].row.pipe, effects, isa=made), None, temporary, parts)

def single(made: tuple[MacroInstruction, ...], kinds: Kinds) -> bool:
  """Return whether a macro is one instruction over whole operands."""
  def whole(i: int, slot: OperandSlot) -> bool:
    kind = kinds[slot.operand]
    return not slot.at and (kind is None or not kind.part and made[0].operands[i].cls is kind.cls)
  return len(made) == 1 and all(whole(i, slot) for i, slot in made[0].slots)

def plain_row(macro: Macro, one: MacroInstruction, kinds: Kinds) -> Inst:
  """Return the row of a single instruction for the allocator: the classes of its operands, and which of them keep old
  values.

  The allocator ignores registers that the text names (RZ, PT, UR4).
  """
  given = {i for i, _ in one.slots}
  row = concrete(one.row, tuple(value.cls if isinstance(value, Reg) and i in given else None
                                for i, value in enumerate(one.operands)))
  repeat = (not any(cls is not None for cls, (_, access, _) in zip(kinds, macro.operands) if access is not Access.WRITE)
            and repeatable(one))
  both = {i for i, slot in one.slots if macro.operands[slot.operand][1] is Access.BOTH}
  operands = tuple(o._replace(access=Access.BOTH) if i in both and o.access is Access.WRITE else o
                   for i, o in enumerate(row.operands))
  hidden = any(isinstance(value, Reg) and i not in given and o.access & Access.WRITE and value not in NOTHING
               for i, (value, o) in enumerate(zip(one.operands, one.row.operands)))
  # a write to a named register must not move
  effects = Effect.NONE if repeat else row.effects | (Effect.BARRIER if hidden else 0)
  return replace(row, operands=operands, effects=effects, rematerialize=repeat)

def repeatable(one: MacroInstruction) -> bool:
  """Return whether an instruction without sources gives the same result at any time: a constant."""
  return one.row.name in ("MOV", "LDC")

New = Callable[[RegClass], Reg]

def kind_of(x: Any) -> OperandClass | None:
  """Return the kind of an operand."""
  if x.__class__ is Reg: return kind(x.cls)
  return kind(x.group.cls, True) if x.__class__ is regs.Element else None

@once
def kind(cls: RegClass, part: bool = False) -> OperandClass:
  """Return an OperandClass, the same object each time."""
  return OperandClass(cls, part)

def make(arch: str, what: str | Macro, operands: list[Any], new: New | None = None,
         ties: tuple[Reg, ...] = ()) -> MInst | None:
  """Return an instruction, or a macro with temporary registers of its own.

  Return None if no form takes a constant. operands: those before "|".
  """
  found = ready(arch, what, tuple([kind_of(x) for x in operands]))
  if found is None: return None
  row, one, temporary, parts = found
  values = list(operands)
  for k in parts: values[k] = operands[k].group
  if temporary:
    assert new is not None, f"macro {row.name} needs temporary registers"
    values += [new(cls) for cls in temporary]
  values += [operands[k].at for k in parts]
  return MInst(row, values if one is None else filled(one, values), ties=ties)

# ***** after allocation *****

def expand_macros(function: Function, target: Target) -> Function:
  """Replace every macro by its instructions."""
  return expand(function, instructions, target.jump)

def instructions(inst: MInst) -> list[MInst]:
  """Return the instructions of a macro that `make` made."""
  return [MInst(one.row, filled(one, inst.operands), None, ([],) if one.row is JUMP_IF else ()) for one in inst.row.isa]
