"""Random instructions of a row, with values that its fields can say."""
from __future__ import annotations
import random
from typing import Any

from tinyhw.isa.sass.asm.encode import units_of
from tinyhw.isa.sass.asm.immediates import BITS
from tinyhw.isa.sass.table import regs
from tinyhw.isa.sass.table.control import NONE, Control
from tinyhw.isa.sass.table.form import ALLOWED, SCALE, Form, Spec, width_of
from tinyhw.machine.ir.inst import Inst, MInst, Reg

def random_instruction(row: Inst, rng: random.Random) -> MInst:
  """An instruction of this row.

  Flags of an operand that is RZ or an optional one that is left out are as usual half of the time.
  """
  form: Form = row.isa
  values: list[Any] = [random_number(spec, rng) for spec in form.specs]
  for i, spec in enumerate(form.specs):
    if spec.register: values[i] = random_register(form, spec, values, rng)
  return MInst(row, values)

def random_number(spec: Spec, rng: random.Random) -> Any:
  """A value of a field that is no register."""
  if spec.register: return 0
  if rng.random() < 0.3 and isinstance(spec.implied, int) and spec.implied >= 0: return spec.implied
  if spec.enumeration is not None:
    return rng.choice([i for i, word in enumerate(spec.enumeration.words) if word != "?"])
  if spec.kind in ALLOWED: return rng.choice(ALLOWED[spec.kind])
  width = BITS.get(spec.kind, width_of(spec.at))
  value = rng.choice((rng.getrandbits(width), rng.getrandbits(min(width, 4)), (1 << width) - 1))
  if spec.signed and value >> width - 1: value -= 1 << width
  return value * SCALE.get(spec.kind, 1)

def random_register(form: Form, spec: Spec, values: list[Any], rng: random.Random) -> Reg:
  """A register that a field can say."""
  none = spec.implied
  assert isinstance(none, Reg)
  if rng.random() < 0.3: return none
  cls = regs.KINDS[spec.kind][units_of(form, spec, values)]
  top = (1 << width_of(spec.at)) - 1
  last = top - cls.units if spec.kind in ("R", "UR") else top
  return regs.reg(cls, rng.randrange(last // cls.align + 1) * cls.align)

def random_control(row: Inst, rng: random.Random) -> Control:
  """A control word; only operands of the row can stay in the reuse cache."""
  form: Form = row.isa
  stall = rng.randrange(16)
  reuse = sum(1 << spec.reuse for spec in form.specs if spec.reuse >= 0 and rng.random() < 0.3)
  return Control(stall, 1 <= stall <= 11 and rng.random() < 0.5, rng.choice((NONE, 0, 5)), rng.choice((NONE, 1, 4)),
                 rng.getrandbits(6), reuse)
