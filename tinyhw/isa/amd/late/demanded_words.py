"""Compute only the demanded words, low or high, of 64-bit values.

A word is demanded if a user needs it. Examples are an index, if an address takes only its low word, and one word of a
pair. Two kinds of users need one word of a value. The first are the macros low and high. The second are instructions
that are themselves reduced to one word (TEXT): the low word of a sum or product needs the low words of its operands.
Either word of a choice or of logic needs the same words. All other users need the whole value.

The needs spread from users to operands until nothing changes. Then instructions are replaced, and the users of a word
read it where it was made.

Needs: SSA form over virtual registers, macros included; before machine/select/unused.py, which drops unused values.
Cost: linear.
"""
from __future__ import annotations
from typing import Any

from tinyhw.isa.amd.macros.macros import make, part
from tinyhw.isa.amd.table import regs
from tinyhw.isa.amd.table.form import Form, Generation
from tinyhw.isa.amd.table.table import table
from tinyhw.machine.ir.inst import Function, MInst, Reg, concrete
from tinyhw.machine.ir.target import Target
from tinyhw.machine.select.macros import MACRO
from tinyhw.named_tuple import NamedTuple

# An instruction, a word of its result, the instruction that makes this word, and its operands. These are names in the
# macro or row; a name with a point is the same word of that operand; "=" takes the operand itself. The count of a shift
# must be known, and less than 32.
TEXT = """
add64          low   v_add_nc_u32   a. b.
sub64          low   v_sub_nc_u32   a. b.
mul64          low   v_mul_lo_u32   a. b.
mul_wide       low   v_mul_lo_u32   a b
mul_wide       high  v_mul_hi_u32   a b
v_lshlrev_b64  low   v_lshlrev_b32  src0 src1.
and64          both  v_and_b32      a. b.
or64           both  v_or_b32       a. b.
xor64          both  v_xor_b32      a. b.
choose64       both  v_cndmask_b32  b. a. m
move64         both  v_mov_b32      a.
pack64         low   v_mov_b32      lo
pack64         high  v_mov_b32      hi
sign64         low   =              a
sign64         high  v_ashrrev_i32  31 a
s_add64        low   s_add_u32      a. b.
s_sub64        low   s_sub_u32      a. b.
s_mul64        low   s_mul_i32      a. b.
s_lshl_b64     low   s_lshl_b32     ssrc0. ssrc1
s_pack64       low   s_mov_b32      lo
s_pack64       high  s_mov_b32      hi
s_sign64       low   =              a
s_sign64       high  s_ashr_i32     a 31
"""
LOW, HIGH, BOTH = 1, 2, 3
WORDS = {"low": (LOW,), "high": (HIGH,), "both": (LOW, HIGH)}
TAKES = {"low": LOW, "s_low": LOW, "high": HIGH, "s_high": HIGH}
SHIFTS = ("v_lshlrev_b64", "s_lshl_b64")

class WordRecipe(NamedTuple):
  """The instruction that makes one word. operands: names or integers, and whether the same word of it is meant."""
  key: str
  operands: tuple[tuple[str | int, bool], ...]

def parse(text: str) -> dict[tuple[str, int], WordRecipe]:
  """Parse the table: (instruction, word) -> recipe."""
  found = {}
  for line in text.strip().split("\n"):
    name, which, key, *names = line.split()
    operands = tuple((int(x) if x.isdecimal() else x.rstrip("."), x[-1] == ".") for x in names)
    found.update({(name, word): WordRecipe(key, operands) for word in WORDS[which]})
  return found

RECIPES = parse(TEXT)
MADE = frozenset(name for name, _ in RECIPES)

def named(inst: MInst) -> dict[str, Any]:
  return {operand.name: value for operand, value in zip(inst.row.operands, inst.operands)}

def taken_word(inst: MInst) -> int:
  """The word that a macro takes of its source, or 0."""
  return TAKES.get(inst.row.name, 0) if inst.row.encoding is MACRO else 0

def can_reduce(inst: MInst) -> bool:
  """Whether an instruction may be reduced to one word."""
  if inst.row.name not in MADE: return False
  return inst.row.name not in SHIFTS or any(isinstance(value, int) and 0 <= value < 32 for value in inst.operands[1:3])

class DemandedWords:
  """The words of virtual registers that are used."""
  def __init__(self, function: Function):
    self.words: dict[int, int] = {}
    self.makers: dict[int, MInst] = {}
    insts = [inst for block in function.blocks for inst in block.insts]
    self.makers = {inst.operands[0].id: inst for inst in insts if can_reduce(inst) and inst.operands[0].index is None}
    for inst in insts:
      word = taken_word(inst)
      if word: self.demand(inst.operands[1], word)
      elif not can_reduce(inst):
        for r in inst.reads(): self.demand(r, BOTH)

  def demand(self, value: Any, word: int) -> None:
    """Record that a word of a value, or both, is used, and so are the operands of the instruction that makes it."""
    work = [(value, word)]
    while work:
      value, word = work.pop()
      if not isinstance(value, Reg) or value.index is not None: continue
      before = self.words.get(value.id, 0)
      if before | word == before: continue
      self.words[value.id] = before | word
      maker = self.makers.get(value.id)
      if maker is not None: work += self.needs(maker, before | word)

  def needs(self, inst: MInst, word: int) -> list[tuple[Any, int]]:
    """The words that an instruction reads if these words of its result are used."""
    recipe = RECIPES.get((inst.row.name, word))
    if recipe is None: return [(r, BOTH) for r in inst.reads()]
    values = named(inst)
    return [(values[name], word if same else BOTH) for name, same in recipe.operands if isinstance(name, str)]

  def word_of(self, inst: MInst) -> int:
    """The only word of an instruction's result that is used, if it can be made alone; else 0."""
    result = inst.operands[0] if can_reduce(inst) else None
    word = self.words.get(result.id, 0) if isinstance(result, Reg) else 0
    return word if (inst.row.name, word) in RECIPES else 0

class WordReduction:
  """The rewrite of a function. parts: words, by register and word; same: registers that were copies of words."""
  def __init__(self, function: Function, generation: Generation):
    self.function, self.generation, self.rows = function, generation, table(generation.arch)
    self.demanded = DemandedWords(function)
    self.parts: dict[tuple[int, int], Any] = {}
    self.same: dict[int, Reg] = {}

  def run(self) -> None:
    for block in self.function.blocks:
      out: list[MInst] = []
      for inst in block.insts:
        word, source = self.demanded.word_of(inst), inst.operands[1] if taken_word(inst) else None
        if word: self.parts[inst.operands[0].id, word] = self.made(inst, word, out)
        elif isinstance(source, Reg) and (source.id, taken_word(inst)) in self.parts:
          self.same[inst.operands[0].id] = self.parts[source.id, taken_word(inst)]
        else: out.append(inst)
      block.insts = out
    if not self.same: return
    for block in self.function.blocks:
      for inst in block.insts:
        inst.operands = [self.now(value) for value in inst.operands]
        inst.ties = tuple(map(self.now, inst.ties))
        inst.arguments = tuple([self.now(value) for value in values] for values in inst.arguments)

  def now(self, value: Any) -> Any:
    """A value, or the word that it was a copy of."""
    while isinstance(value, Reg) and value.id in self.same: value = self.same[value.id]
    return value

  def made(self, inst: MInst, word: int, out: list[MInst]) -> Reg:
    """Append the instruction that makes one word of a result to `out`, and return the word."""
    recipe, values = RECIPES[inst.row.name, word], named(inst)
    sources: list[Any] = [self.word(values[str(name)], word, out, inst) if same else values.get(str(name), name)
                          for name, same in recipe.operands]
    if recipe.key == "=":
      source: Reg = sources[0]
      return source
    row = self.rows[recipe.key]
    form: Form = row.isa
    result = self.function.new_reg((regs.S if inst.operands[0].cls.bank is regs.SGPR else regs.V)[1])
    operands = [result, *sources, *(spec.implied for spec in form.specs[1 + len(sources):])]
    out.append(MInst(concrete(row, tuple(o.cls if isinstance(o, Reg) else None for o in operands)), operands,
                     inst.origin))
    return result

  def word(self, value: Any, word: int, out: list[MInst], inst: MInst) -> Any:
    """A word of a source, for an instruction."""
    which = "low" if word == LOW else "high"
    if not isinstance(value, Reg): return part(value, "lo" if word == LOW else "hi")
    if (value.id, word) in self.parts: return self.parts[value.id, word]
    scalar = value.cls.bank is regs.SGPR
    result = self.function.new_reg((regs.S if scalar else regs.V)[1])
    out.append(make(self.function, self.generation, f"s_{which}" if scalar else which, result, value))
    out[-1].origin = inst.origin
    return result

def reduce_to_words(function: Function, target: Target) -> Function:
  """Shrink a 64-bit value of which one word is used to that word."""
  if not any(taken_word(inst) for block in function.blocks for inst in block.insts): return function
  WordReduction(function, target.table.generation).run()
  function.liveness = None
  return function
