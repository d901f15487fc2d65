"""Registers of AArch64: banks, classes and names.

An instruction chooses the part of a register that it uses: w3 is the lower half of x3; b3, h3, s3, d3, q3 and v3.4s
are parts of one vector register. So there is one class for a bank, and the row has the name in the text. General
register 31 is xzr or sp, by the place in the instruction. Here sp has number 32.

Classes V2 to V4 are contiguous vector registers, after number 31 comes 0. Z is a vector register of SVE. Its lower 128
bits are the register of class V with the same number.
"""
from __future__ import annotations

from tinyhw.machine.ir.inst import Bank, Reg, RegClass

ZERO, STACK = 31, 32  # xzr and sp

# Best first. x0 to x17 are free in a function, x18 belongs to some platforms, x19 to x28 must be preserved. x29 and
# x30 have the frame and the return address. Vector registers 8 to 15 must be preserved in their lower halves.
# Source: AAPCS64, section 6.1
GENERAL = Bank("general", 33, (*range(0, 18), *range(19, 29)))
VECTOR = Bank("vector", 32, (*range(0, 8), *range(16, 32), *range(8, 16)))
PREDICATE = Bank("predicate", 16, tuple(range(16)))

X = RegClass("x", GENERAL, 64, names=(*(f"x{i}" for i in range(31)), "xzr", "sp"))
V = RegClass("v", VECTOR, 128, naming="v{}".format)
V2, V3, V4 = (RegClass(f"v{n}", VECTOR, 128 * n, n, naming=f"v{{}}*{n}".format) for n in (2, 3, 4))
Z = RegClass("z", VECTOR, 2048, naming="z{}".format)
Z2, Z3, Z4 = (RegClass(f"z{n}", VECTOR, 2048 * n, n, naming=f"z{{}}*{n}".format) for n in (2, 3, 4))
P = RegClass("p", PREDICATE, 256, naming="p{}".format)

CLASSES = (X, V, V2, V3, V4, Z, Z2, Z3, Z4, P)
LISTS = {"V": (V, V2, V3, V4), "Z": (Z, Z2, Z3, Z4)}
BANKS = (GENERAL, VECTOR, PREDICATE)
REGISTERS: dict[RegClass, tuple[Reg, ...]] = {c: tuple(Reg(c, index=i) for i in range(c.bank.count)) for c in CLASSES}

def reg(cls: RegClass, index: int) -> Reg:
  """The physical register; the same object every time."""
  return REGISTERS[cls][index]

XZR, SP = reg(X, ZERO), reg(X, STACK)
# the number that a name of the text has, by its letter; the letters b h s d q v name parts of a vector register
COUNTS = {**dict.fromkeys("wx", 31), **dict.fromkeys("bhsdqvz", 32), "p": 16}
SPECIAL = {"wzr": ("w", ZERO), "xzr": ("x", ZERO), "wsp": ("w", STACK), "sp": ("x", STACK)}

def name(letter: str, index: int) -> str:
  """The name of a register in the text, without an arrangement: ("w", 31) -> "wzr"."""
  if letter in "wx" and index >= ZERO: return ("wzr", "wsp") [index - ZERO] if letter == "w" else ("xzr",
                                                                                                   "sp")[index - ZERO]
  return f"{letter}{index}"

def parse(text: str) -> tuple[str, int] | None:
  """The letter and number of a name, or None: "wzr" -> ("w", 31). RegisterHole 31 by number, as x31, does not exist."""
  found = SPECIAL.get(text)
  if found is not None: return found
  digits = text[1:]
  if text[:1] not in COUNTS or not digits.isdigit() or len(digits) > 1 and digits[0] == "0": return None
  return (text[0], int(digits)) if int(digits) < COUNTS[text[0]] else None
