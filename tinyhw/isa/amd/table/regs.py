"""AMD registers: banks, classes of one or more registers, names, and their numbers in instructions.

Scalar registers have one index in all generations: 0 to 105 are s0 to s105, the others have the index in `SPECIAL`.
`Numbers` has a generation's codes of them in instructions (m0 is 124 on CDNA and 125 on RDNA). A group of registers is
a class of its own: `S[2]` is s[0:1], s[2:3] ... Groups of vector registers start anywhere on RDNA (`V[2]`) and at an
even register on CDNA (`VE[2]`).
"""
from __future__ import annotations

from tinyhw.machine.ir.inst import Bank, Reg, RegClass
from tinyhw.threads import once

SGPRS = 106

# name: (index, number of registers). Single registers of a pair have names with _lo and _hi.
VCC, TTMP, NULL, M0, EXEC, FLAT_SCRATCH, XNACK_MASK = 106, 108, 124, 125, 126, 128, 130
SPECIAL = {"vcc": (VCC, 2), "null": (NULL, 1), "m0": (M0, 1), "exec": (EXEC, 2), "flat_scratch": (FLAT_SCRATCH, 2),
           "xnack_mask": (XNACK_MASK, 2)}
# Values that an instruction can read like registers; a 64-bit operand reads them too. Their indices are two apart, so
# that none is half of another.
READ_ONLY = {name: 132 + 2 * i for i, name in enumerate((
  "src_shared_base", "src_shared_limit", "src_private_base", "src_private_limit", "src_pops_exiting_wave_id",
  "src_vccz", "src_execz", "src_scc"))}
SCALARS = 132 + 2 * len(READ_ONLY)

SGPR = Bank("sgpr", SCALARS, tuple(range(SGPRS)))
VGPR = Bank("vgpr", 256, tuple(range(256)))
AGPR = Bank("agpr", 256, tuple(range(256)))  # accumulation registers of CDNA
BANKS = (SGPR, VGPR, AGPR)

def _group(letter: str, index: int, units: int) -> str:
  """The name of a group: v4, v[4:7]."""
  return f"{letter}{index}" if units == 1 else f"{letter}[{index}:{index + units - 1}]"

@once
def scalar_names(units: int) -> tuple[str, ...]:
  """Names by index: s4, s[4:5], vcc, vcc_lo, ttmp[4:7]. Names are those of RDNA, where s102 to s105 are normal
  registers."""
  names = [_group("s", i, units) for i in range(SCALARS)]
  for i in range(16): names[TTMP + i] = _group("ttmp", i, units)
  for name, (at, count) in SPECIAL.items():
    if count == units: names[at] = name
    elif count == 2 and units == 1: names[at], names[at + 1] = name + "_lo", name + "_hi"
  for name, at in {**READ_ONLY, "null": NULL}.items(): names[at] = name
  return tuple(names)

def _class(letter: str, bank: Bank, units: int, align: int, even: bool = False) -> RegClass:
  """The class of groups of `units` registers. Names are made on demand: there are 11 000."""
  def naming(index: int) -> str: return scalar_names(units)[index] if bank is SGPR else _group(letter, index, units)
  return RegClass(f"{letter}{'e' if even else ''}{units}", bank, 32 * units, units, align, naming=naming)

SIZES = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 16, 32)
S = {n: _class("s", SGPR, n, min(4, 1 << (n - 1).bit_length())) for n in (1, 2, 3, 4, 8, 16)}
V = {n: _class("v", VGPR, n, 1) for n in SIZES}
VE = {1: V[1], **{n: _class("v", VGPR, n, 2, even=True) for n in SIZES[1:]}}
AE = {1: _class("a", AGPR, 1, 1), **{n: _class("a", AGPR, n, 2, even=True) for n in SIZES[1:]}}

@once
def reg(cls: RegClass, index: int) -> Reg:
  """The physical register; the same object every time."""
  return Reg(cls, index=index)

def s(index: int, units: int = 1) -> Reg:
  """s4, or with units the group that starts there."""
  return reg(S[units], index)

def v(index: int, units: int = 1) -> Reg:
  """v4, or with units the group that starts there. For RDNA; groups on CDNA are those of `ve`."""
  return reg(V[units], index)

def ve(index: int, units: int = 1) -> Reg:
  """The group of vector registers that starts at an even register, for CDNA."""
  return reg(VE[units], index)

class Numbers:
  """The codes of a family's scalar registers (cdna, rdna).

  codes: index -> code in an instruction, or -1 if the family has no such register; indices: the inverse. A group has
  the code of its first register.
  """

  def __init__(self, cdna: bool):
    self.codes = [-1] * SCALARS
    self.sgprs = 102 if cdna else SGPRS
    for i in (*range(self.sgprs), VCC, VCC + 1, *range(TTMP, TTMP + 16), EXEC, EXEC + 1): self.codes[i] = i
    if cdna:
      self.codes[M0] = 124
      for i in range(4): self.codes[FLAT_SCRATCH + i] = 102 + i
    else: self.codes[NULL], self.codes[M0] = 124, 125
    for name, index in READ_ONLY.items():
      code = READ_ONLY_CODES[name]
      if cdna or name not in CDNA_ONLY: self.codes[index] = code
    self.indices = {code: index for index, code in enumerate(self.codes) if code >= 0}

READ_ONLY_CODES = dict(zip(READ_ONLY, (235, 236, 237, 238, 239, 251, 252, 253)))
CDNA_ONLY = ("src_pops_exiting_wave_id", "src_vccz", "src_execz")
NUMBERS = {"cdna": Numbers(True), "rdna": Numbers(False)}
