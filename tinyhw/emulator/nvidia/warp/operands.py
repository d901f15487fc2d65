"""The operands of one instruction as functions of a warp: sources as lists of numbers with their signs applied, and
sinks of results.

The semantics of an instruction ask for each modifier that they know (`word`, `flag`). `finish` refuses an instruction
with a modifier that has an effect and was not asked for. Kinds of numbers: "u" 32 bits, "s" the same with a sign, "f"
float32; of a pair "q" 64 bits, "sq" with a sign, "d" float64; "p" a predicate.
"""
from __future__ import annotations
from collections.abc import Callable
from typing import Any

from tinyhw.emulator.errors import OutOfBounds, UnknownInstruction
from tinyhw.emulator.nvidia.warp.numbers import (
  LONG, WORD, doubles_of, floats_of, halves_of, longs_of, longs_of_doubles, signed, words_of)
from tinyhw.emulator.nvidia.warp.state import ALL, LANES, ZEROS, Warp
from tinyhw.emulator.python.floats import float32_of, float64_of
from tinyhw.isa.sass.table import regs
from tinyhw.isa.sass.table.control import USUAL, Control
from tinyhw.isa.sass.table.form import Form
from tinyhw.isa.sass.table.uses import units_of
from tinyhw.machine.ir.inst import MInst, Reg

Source = Callable[[Warp], Any]
Sink = Callable[[Warp, Any, int], None]

class Operands:
  """One instruction. name: of its row, without the suffix that distinguishes rows of one mnemonic."""

  def __init__(self, inst: MInst, control: Control = USUAL):
    self.inst, self.control = inst, control
    self.form: Form = inst.row.isa
    self.values = dict(zip(self.form.index, inst.operands))
    self.asked: set[str] = {"guard", "guard_not"}

  def named(self, name: str) -> str:
    """Return the operand that a name of the notation stands for: A is a, or ua in a uniform instruction, and PP is pp,
    or qp there. "" if there is none."""
    name = name.lower()
    return next((found for found in (name, f"u{name}", f"q{name[1:]}") if found in self.form.index), "")

  # ***** modifiers *****

  def has(self, name: str) -> bool: return name in self.form.index

  def word(self, name: str) -> str:
    """Return the text of a modifier, "" if it has its default or the row has none."""
    if name not in self.form.index: return ""
    self.asked.add(name)
    enumeration = self.form.specs[self.form.index[name]].enumeration
    assert enumeration is not None, f"{self.form.key}: {name} is no modifier"
    return enumeration.words[self.values[name]]

  def flag(self, name: str) -> bool:
    """Return a flag, such as a sign, of an operand."""
    if name not in self.form.index: return False
    self.asked.add(name)
    return bool(self.values[name])

  def number(self, name: str) -> int:
    """Return an integer operand."""
    self.asked.add(name)
    return int(self.values[name])

  def finish(self) -> None:
    """Raise UnknownInstruction if a modifier with an effect was not asked for."""
    for spec in self.form.specs:
      if spec.kind not in ("enum", "flag") or spec.name in self.asked or self.values[spec.name] == spec.implied:
        continue
      said = spec.enumeration.words[self.values[spec.name]] if spec.enumeration is not None else spec.name
      raise UnknownInstruction(f"{self.form.key} with {said} is not supported yet")

  # ***** sources *****

  def source(self, name: str, kind: str = "u") -> Source:
    """Return a source in all lanes, with its sign."""
    negative, absolute = self.flag(f"{name}_neg"), self.flag(f"{name}_abs")
    read = self.raw(name, kind)
    if absolute: read = over(read, abs)
    if not negative: return read
    if kind in ("f", "d"): return over(read, lambda x: -x)
    assert kind == "u", f"{self.form.key}: {name} of kind {kind} has a sign"
    return over(read, lambda x: -x & WORD)

  def raw(self, name: str, kind: str) -> Source:
    """Return a source without its signs."""
    value = self.values[name]
    if f"{name}_bank" in self.values: return in_bank(self.number(f"{name}_bank"), value, kind)
    if not isinstance(value, Reg): return constant(value, kind, self.form.specs[self.form.index[name]].kind)
    index = value.index
    assert index is not None
    if value.cls.bank is regs.UNIFORM: return uniform(index, kind)
    if kind == "p": raise AssertionError("predicates are read by `predicate`")
    if kind in ("q", "sq", "d"):
      high = index if index == regs.ZERO else index + 1
      if kind == "q": return lambda warp: longs_of(warp.registers[index], warp.registers[high])
      if kind == "sq":
        return lambda warp: [signed(x, 64) for x in longs_of(warp.registers[index], warp.registers[high])]
      return lambda warp: doubles_of(longs_of(warp.registers[index], warp.registers[high]))
    if kind == "f": return lambda warp: floats_of(warp.registers[index])
    if kind == "s": return lambda warp: [signed(x) for x in warp.registers[index]]
    return lambda warp: warp.registers[index]

  def mask(self, name: str) -> Callable[[Warp], int]:
    """Return a predicate as a mask of lanes, not inverted."""
    index = self.values[name].index
    if self.values[name].cls.bank is regs.UNIFORM_PREDICATE: return lambda warp: warp.uniform_predicates[index]
    return lambda warp: warp.predicates[index]

  def predicate(self, name: str) -> Source:
    """Return a predicate as a mask of lanes."""
    read = self.mask(name)
    return (lambda warp: ~read(warp) & ALL) if self.flag(f"{name}_not") else read

  # ***** results *****

  def sink(self, name: str, kind: str = "u") -> Sink:
    """Return the sink of a result, in the lanes of a mask. It takes a list of words or numbers, or for a predicate a
    mask.
    """
    value: Reg = self.values[name]
    units, index = units_of(value), value.index
    assert index is not None
    if not units: return lambda warp, result, mask: None
    if kind == "p": return lambda warp, result, mask: put_predicate(warp, index, result, mask)
    if kind in ("q", "d"):
      def put_pair(warp: Warp, result: Any, mask: int) -> None:
        low, high = halves_of(longs_of_doubles(result) if kind == "d" else [x & LONG for x in result])
        put(warp, index, low, mask)
        put(warp, index + 1, high, mask)
      return put_pair
    if kind == "f": return lambda warp, result, mask: put(warp, index, words_of(result), mask)
    return lambda warp, result, mask: put(warp, index, [x & WORD for x in result], mask)

def put(warp: Warp, index: int, words: list[int], mask: int) -> None:
  """Write a register in the lanes of a mask."""
  unit = ("R", index)
  if mask == ALL: warp.registers[index], warp.known[unit] = words, ALL
  else:
    old = warp.registers[index]
    warp.registers[index] = [new if mask >> lane & 1 else old[lane] for lane, new in enumerate(words)]
    warp.known[unit] = warp.known.get(unit, 0) | mask

def put_predicate(warp: Warp, index: int, result: int, mask: int) -> None:
  warp.predicates[index] = warp.predicates[index] & ~mask | result & mask
  warp.known["P", index] = warp.known.get(("P", index), 0) | mask

def put_uniform(warp: Warp, index: int, number: int, words: int = 1) -> None:
  """Write words of a number to uniform registers. URZ discards them."""
  if index == regs.ZERO: return
  for k in range(words): warp.uniform[index + k], warp.known["UR", index + k] = number >> 32 * k & WORD, ALL

def put_uniform_predicate(warp: Warp, index: int, truth: bool) -> None:
  """Write a uniform predicate. UPT discards it."""
  if index != regs.TRUE: warp.uniform_predicates[index], warp.known["UP", index] = ALL * truth, ALL

def over(read: Source, function: Callable[[Any], Any]) -> Source: return lambda warp: [function(x) for x in read(warp)]

def uniform(index: int, kind: str) -> Source:
  """Return a uniform register, or a pair of them, in all lanes."""
  def word(warp: Warp) -> int: return 0 if index == regs.ZERO else warp.uniform[index]
  def pair(warp: Warp) -> int: return 0 if index == regs.ZERO else warp.uniform[index] | warp.uniform[index + 1] << 32
  convert: dict[str, Callable[[Warp], Any]] = {
    "u": word, "s": lambda warp: signed(word(warp)), "f": lambda warp: float32_of(word(warp)), "q": pair,
    "sq": lambda warp: signed(pair(warp), 64), "d": lambda warp: float64_of(pair(warp))}
  return lambda warp: [convert[kind](warp)] * LANES

def constants(warp: Warp, bank: int, address: int, size: int) -> bytes:
  """Return bytes of constant bank 0. Raises OutOfBounds."""
  if bank: raise OutOfBounds(f"constant bank {bank} has not been given to this launch")
  if address < 0 or address + size > len(warp.launch.constants):
    raise OutOfBounds(f"constant memory {address:#x}: bank 0 has {len(warp.launch.constants)} bytes")
  if address % size:
    raise OutOfBounds(f"an access of {size} bytes at {address:#x}: the address is no multiple of its size")
  return warp.launch.constants[address:address + size]

def in_bank(bank: int, offset: int, kind: str) -> Source:
  """Return a word of a constant bank, or two of them, in all lanes."""
  size = 8 if kind in ("q", "sq", "d") else 4
  convert: dict[str, Callable[[int], Any]] = {
    "u": int, "q": int, "s": signed, "sq": lambda x: signed(x, 64), "f": float32_of, "d": float64_of}
  as_number = convert[kind]
  return lambda warp: [as_number(int.from_bytes(constants(warp, bank, offset, size), "little"))] * LANES

def constant(value: int, kind: str, field: str) -> Source:
  """Return an immediate in all lanes."""
  if kind == "f": found: Any = float32_of(value)
  elif kind == "d": found = float64_of(value << 32)
  elif kind == "s": found = signed(value & WORD)
  else: found = value & WORD
  same = [found] * LANES if found or kind != "u" else ZEROS
  return lambda warp: same
