"""Random AMD instructions: a row with operands that one of its encodings can say."""
from __future__ import annotations
import random
from typing import Any

from tinyhw.errors import EncodeError
from tinyhw.isa.amd.asm.check import address_units
from tinyhw.isa.amd.asm.encode import encode, field_codes
from tinyhw.isa.amd.table import regs
from tinyhw.isa.amd.table.form import MX_UNITS, SIGNED, Encoding, Form, Spec
from tinyhw.machine.ir.inst import Inst, MInst

TRIES = 400
# Codes that are in a field, but mean nothing.
MEANT = {"dpp_ctrl": lambda rng, form: rng.choice(permutations(form)), "omod": lambda rng, form: rng.randrange(4),
         "dst_unused": lambda rng, form: rng.randrange(3), "src0_sel": lambda rng, form: rng.randrange(7),
         "src1_sel": lambda rng, form: rng.randrange(7),
         "dst_sel": lambda rng, form: rng.randrange(7), "th": lambda rng,
         form: rng.randrange(4) & ~1 | form.key.endswith("_rtn")}

def permutations(form: Form) -> list[int]:
  """The values of dpp_ctrl."""
  if any(s.type is not None and s.type.bits * s.type.elements == 64 for s in form.specs):
    return list(range(0x150, 0x160))
  common = [*range(256), *range(0x101, 0x110), *range(0x111, 0x120), *range(0x121, 0x130), 0x140, 0x141,
            *range(0x150, 0x160)]
  return common + ([0x130, 0x134, 0x138, 0x13c, 0x142, 0x143] if form.generation.cdna else list(range(0x160, 0x170)))

def random_value(form: Form, encoding: Encoding, field: str, spec: Spec, rng: random.Random, plain: bool) -> Any:
  """Something that a field can say. plain: modifiers have their usual values."""
  bits = encoding.format.fields[field]
  if spec.kinds == "i":
    if plain and not spec.show: return spec.implied
    if spec.name in MEANT: return MEANT[spec.name](rng, form)
    low, high = (-0x8000, 0x7fff) if spec.integer in SIGNED else bits.range
    value = rng.randint(low, high)
    return value if spec.mask < 0 else value & spec.mask | spec.implied & ~spec.mask
  if spec.optional and rng.random() < 0.3: return None
  if field in encoding.sources and spec.type is not None and rng.random() < 0.25:
    kind = spec.type.constants
    if rng.random() < 0.6 or "l" not in spec.kinds or not encoding.literal:
      return rng.choice(list(kind.values.values()))
    return kind.value(rng.getrandbits(32))
  codes = field_codes(form, encoding, field, spec)
  cls = rng.choice(list(codes))
  return regs.reg(cls, rng.choice([i for i, code in enumerate(codes[cls]) if code >= 0]))

def attempt(row: Inst, encoding: Encoding, rng: random.Random) -> MInst:
  """Operands for an encoding, which may not go together."""
  form: Form = row.isa
  operands: list[Any] = [encoding.needs.get(i, spec.implied) for i, spec in enumerate(form.specs)]
  plain = rng.random() < 0.5
  for field, i in encoding.places.items(): operands[i] = random_value(form, encoding, field, form.specs[i], rng, plain)
  index = form.index
  if encoding.halves: operands[index["op_sel"]] = 0 if plain else rng.getrandbits(4) & form.specs[index["op_sel"]].mask
  if "literaly" in index:
    operands[index["literaly"]] = operands[index["literalx"]] if "literalx" in index else operands[index["literaly"]]
  if "vaddr" in index and operands[index["vaddr"]] is not None: operands[index["vaddr"]] = address(form, operands, rng)
  if ("src2" in index and form.encodings[0].format_name[:4] == "mfma" and "smfmac" not in form.key
      and rng.random() < 0.7):
    operands[index["src2"]] = operands[0]
  if "mx" in form.words:
    for name, source in (("cbsz", "src0"), ("blgp", "src1")):
      operands[index[name]] = rng.randrange(len(MX_UNITS))
      operands[index[source]] = regs.ve(2 * rng.randrange(100), MX_UNITS[operands[index[name]]])
  return MInst(row, operands)

def address(form: Form, operands: list[Any], rng: random.Random) -> Any:
  """A vector address of the size that the other operands say."""
  units = address_units(form, operands)
  return regs.reg(form.generation.vectors[units], 2 * rng.randrange(120)) if units else None

def random_instruction(row: Inst, rng: random.Random) -> MInst:
  """An instruction that can be encoded. Deterministic for a seed."""
  form: Form = row.isa
  for _ in range(TRIES):
    inst = attempt(row, rng.choice(form.encodings), rng)
    try: encode(inst)
    except EncodeError: continue
    return inst
  raise AssertionError(f"no operands of {form.key} were found in {TRIES} tries")
