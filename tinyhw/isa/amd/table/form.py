"""Types and operands of a line of the table, the generations, and the data of a row for the AMD encoder, decoder and
text (`Inst.isa`).

The notation is explained in table.py.
"""
from __future__ import annotations
import re
from typing import Any
from collections.abc import Callable

from tinyhw.errors import EncodeError
from tinyhw.isa.amd.table import constants, regs
from tinyhw.isa.amd.table.constants import Constants
from tinyhw.isa.amd.table.formats import formats
from tinyhw.machine.ir.inst import Access, Effect, Inst, RegClass
from tinyhw.machine.notation.bits import Format
from tinyhw.named_tuple import NamedTuple
from tinyhw.threads import once

# ---- generations

GENERATIONS = ("gfx942", "gfx950", "gfx1100", "gfx1200")  # the columns of the table
FAMILY = {"gfx942": "cdna", "gfx950": "cdna", "gfx1100": "rdna3", "gfx1200": "rdna4"}
SAME = {"gfx1201": "gfx1200"}
# A word of a line may be limited to some generations by "@" and one of these.
GROUPS = {"cdna": ("gfx942", "gfx950"), "rdna": ("gfx1100", "gfx1200"), "rdna3": ("gfx1100",), "rdna4": ("gfx1200",),
          "cdna3": ("gfx942",),
          "cdna4": ("gfx950",)}

class Generation:
  """A column of the table for one size of waves.

  - arch: gfx942, gfx950, gfx1100, gfx1200 or gfx1201; the suffix ":wave64" selects waves of 64 lanes where 32 are
    usual.
  - codes: scalar register -> its code; indices: the inverse.
  - scalar_limit: the number of scalar values that one vector instruction may read.
  """

  def __init__(self, arch: str):
    self.arch = arch
    name, colon, wave = arch.partition(":")
    self.name = SAME.get(name, name)
    if (self.name not in FAMILY or wave not in ("wave32", "wave64") and (wave or colon) or wave == "wave32"
        and FAMILY[self.name] == "cdna"):
      known = ", ".join((*GENERATIONS, *SAME))
      raise EncodeError(f"no AMD architecture is called {arch}; there is {known}, those from gfx1100 on also with "
                        f":wave64")
    self.column, self.family = GENERATIONS.index(self.name), FAMILY[self.name]
    self.cdna = self.family == "cdna"
    self.wave = 64 if self.cdna or wave == "wave64" else 32
    numbers = regs.NUMBERS["cdna" if self.cdna else "rdna"]
    self.codes, self.indices, self.sgprs = numbers.codes, numbers.indices, numbers.sgprs
    self.formats = formats(self.family)
    self.scalar_limit = 1 if self.cdna else 2
    self.vectors = regs.VE if self.cdna else regs.V
    self.vcc = regs.reg(regs.S[self.wave // 32], regs.VCC)

# ---- types

TYPE = re.compile(r"([a-z]+?)(\d+)(?:x(\d+)(?:/(\d+))?)?$")

class Type(NamedTuple):
  """The type of an operand: "f32", "b64", "f16x2" (two in a register).

  - kind: f, bf, fp, i, u, iu, b.
  - bits: size of an element.
  - elements: their number.
  - units: the number of registers.
  - twice: an inline float is in both halves.
  """
  name: str
  kind: str
  bits: int
  elements: int
  units: int
  twice: bool = False

  @property
  def half(self) -> bool: return self.bits * self.elements == 16

  @property
  def floating(self) -> bool: return self.kind in ("f", "bf") and self.bits >= 16

  @property
  def constants(self) -> Constants:
    """The constants that such an operand can be."""
    if self.elements > 1 and self.bits == 16 and self.floating:
      return constants.KINDS[f"{self.kind}16x2{' twice' * self.twice}"]
    if self.half: return constants.KINDS[f"{self.kind}16" if self.floating else "i16"]
    if self.bits == 64: return constants.KINDS["f64" if self.kind == "f" else "i64" if self.kind == "i" else "b64"]
    return constants.KINDS["f32" if self.floating and self.bits == 32 else "i32"]

@once
def type_of(text: str, wave: int) -> Type:
  """The type that a word of the table names.

  "mask" has a bit for each lane. "mx" is fp8, bf8, fp6, bf6 or fp4. f32x8/4 has 8 elements in waves of 32 lanes, and 4
  in those of 64.
  """
  if text == "mask": return Type("mask", "b", wave, 1, wave // 32)
  if text == "mx": return Type("mx", "mx", 32, 8, 8)
  found = TYPE.match(text)
  assert found is not None, f"{text} is no type"
  count = int(found[4] if found[4] and wave == 64 else found[3] or 1)
  bits = int(found[2])
  name = f"{found[1]}{bits}" + (f"x{count}" if found[3] else "")
  return Type(name, found[1], bits, count, -(-bits * count // 32))

# ---- operands

class Spec(NamedTuple):
  """AMD's properties of an operand of a row, besides those of machine.inst.Operand.

  - kinds: letters of the operands that it may be: v, s, a (registers), c (constant), l (literal) or "i", an integer
    that is no value.
  - type: the type of a register or constant.
  - classes: the register classes that it takes, the usual one first.
  - show: it is among the operands of the text; else it is a modifier (`clamp`, `offset:16`).
  - implied: its value if an encoding has no field for it.
  - integer: the kind of an integer, which tells its spelling in the text.
  - mask: the bits that may differ from those of `implied`.
  """
  name: str
  access: Access
  kinds: str
  type: Type | None = None
  classes: tuple[RegClass, ...] = ()
  optional: bool = False
  show: bool = True
  implied: Any = 0
  integer: str = ""
  mask: int = -1

class Encoding:
  """One encoding of a row.

  - name: the suffix of the text: e32, e64, dpp, e64_dpp, dpp8, sdwa, or "" if there is only one encoding.
  - values: fields that always have this value.
  - needs: operands that must have this value.
  - places: field -> operand index.
  - halves: field -> its bit of op_sel. In a short encoding this is bit 7 of the field, if the field has a vector
    register.
  - literal: a dword may follow for a source that is a literal.
  - sources: fields that may be constants.
  - encode: operands -> bytes, or None if the operands do not fit this encoding; made at first use.
  """
  encode: Callable[[list[Any]], bytes | None] | None = None

  def __init__(self, name: str, format: Format, format_name: str, values: dict[str, int], needs: dict[int, Any],
               places: dict[str, int],
               literal: bool, sources: tuple[str, ...], halves: dict[str, int]):
    self.name, self.format, self.format_name, self.values, self.needs = name, format, format_name, values, needs
    self.places, self.literal, self.sources, self.halves = places, literal, sources, halves

class Form:
  """AMD's data of a row (`Inst.isa`).

  - key: the row's key in the table.
  - mnemonic: the generation's spelling.
  - specs: parallel to the row's operands.
  - index: operand name -> index.
  - reads, writes: names of registers that the instruction uses besides its operands (vcc, exec, scc, m0).
  - counter: the counter of the instruction while it is in flight: vmcnt, vscnt, lgkmcnt, expcnt, loadcnt, storecnt,
    dscnt, kmcnt ... ; several are joined by "+".
  - words: the properties of its line for this generation.
  - first_operands: the number of operands of the first operation in a dual instruction.
  - row: the row of this form.
  """
  row: Inst | None = None

  def __init__(self, key: str, mnemonic: str, generation: Generation, specs: tuple[Spec, ...],
               encodings: tuple[Encoding, ...],
               reads: tuple[str, ...] = (), writes: tuple[str, ...] = (), counter: str = "",
               words: frozenset[str] = frozenset(),
               first_operands: int = 0):
    self.key, self.mnemonic, self.generation, self.specs, self.encodings = key, mnemonic, generation, specs, encodings
    self.reads, self.writes, self.counter, self.words = reads, writes, counter, words
    self.first_operands = first_operands
    self.index = {spec.name: i for i, spec in enumerate(specs)}

# Types of operands that are integers and stand among the operands of the text.
INTEGERS = ("imm", "simm", "block", "waitcnt", "depctr", "delay", "hwreg", "sendmsg", "gpr_idx", "length", "k32", "k16")
SIGNED = ("simm", "block")  # signed integers in a field without a sign
MX_UNITS = (8, 8, 6, 6, 4)  # registers of an operand of an f8f6f4 product by its format: fp8, bf8, fp6, bf6, fp4

EFFECTS = {"load": Effect.LOAD, "store": Effect.STORE, "jump": Effect.JUMP, "end": Effect.END,
           "barrier": Effect.BARRIER, "call": Effect.CALL}
