"""Random x86-64 instructions over physical registers, for every kind of operand that the table has."""
from __future__ import annotations
import random
from typing import Any

from tinyhw.isa.x86.table import regs
from tinyhw.isa.x86.table.form import Form
from tinyhw.machine.ir.inst import Inst, MInst, Operand, Reg

def random_instruction(row: Inst, rng: random.Random) -> MInst:
  """Operands that the row accepts, extreme ones often, in the canonical form that the decoder gives."""
  form: Form = row.isa
  wide = any(e.space == "evex" for e in form.encodings) and (form.encodings[0].space == "evex" or rng.random() < 0.5)
  operands: list[Any] = []
  for i, operand in enumerate(row.operands):
    if form.memory >= 0 and form.memory <= i < form.memory + 4: continue_memory(row, operands, i, rng, wide)
    else: operands.append(random_operand(operand, rng, wide))
  # rax first is written the other way
  if row.name == "xchg" and form.memory < 0: operands[0] = regs.reg(operands[0].cls, rng.randrange(1, 16))
  if "gather" in row.name: make_distinct(row, operands, rng)
  for at, kind in form.syntax:
    if kind.category == "immediate" and not kind.signed: operands[at] &= (1 << kind.bits) - 1
  return MInst(row, operands)

def random_register(cls: regs.RegClass, rng: random.Random, wide: bool) -> Reg:
  count = cls.bank.count if cls.bank is not regs.VEC or wide else 16
  return regs.reg(cls, rng.randrange(count))

def random_operand(operand: Operand, rng: random.Random, wide: bool) -> Any:
  cls = operand.cls
  if cls is not None:
    if operand.fixed is not None: return regs.reg(cls, operand.fixed)
    if operand.name == "mask": return regs.reg(cls, rng.randrange(1, 8))
    return random_register(cls, rng, wide)
  if operand.kind == "rel":
    return rng.choice((0, 127, 129, 130, 133, -126, -127, rng.randrange(-1000, 1000),
                       rng.randrange(-1 << 31, 1 << 31) // 2))
  bits = int(operand.kind[1:])
  if bits == 8 and rng.random() < 0.3: return 1
  return rng.choice((0, 127, -128, rng.randrange(-1 << bits - 1, 1 << bits - 1), (1 << bits - 1) - 1, -1 << bits - 1,
                     -1))

def continue_memory(row: Inst, operands: list[Any], at: int, rng: random.Random, wide: bool) -> None:
  """base, index, scale or displacement, by the operand's name."""
  form: Form = row.isa
  operand = row.operands[at]
  gather = row.operands[form.memory + 1].cls is not regs.R64
  if operand.name == "base":
    if row.operands[form.memory + 1].optional and rng.random() < 0.05: operands.append(regs.RIP)
    else: operands.append(None if rng.random() < 0.1 else random_register(regs.R64, rng, wide))
  elif operand.name == "index":
    assert operand.cls is not None
    if gather: operands.append(random_register(operand.cls, rng, wide))
    elif operand.optional and (operands[-1] is regs.RIP or rng.random() < 0.5): operands.append(None)
    else: operands.append(regs.reg(regs.R64, rng.choice([i for i in range(16) if i != 4])))
  elif operand.name == "scale": operands.append(rng.choice((1, 2, 4, 8)) if operands[-1] is not None else 1)
  else:
    unit = form.unit
    operands.append(rng.choice((0, 0, 1, -1, 127, -128, 128, -129, unit, 127 * unit, 128 * unit, -128 * unit,
                                -129 * unit, 3 * unit + 1,
                                rng.randrange(-1 << 31, 1 << 31), (1 << 31) - 1, -1 << 31)))

def make_distinct(row: Inst, operands: list[Any], rng: random.Random) -> None:
  """A gather's destination, index and mask register differ."""
  places = [i for i, o in enumerate(row.operands) if o.cls is not None and o.cls.bank is regs.VEC]
  top = 16 if len(places) == 3 else 32
  for i, number in zip(places, rng.sample(range(top), len(places))): operands[i] = regs.reg(operands[i].cls, number)
