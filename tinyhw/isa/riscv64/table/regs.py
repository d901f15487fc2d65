"""Registers of RISC-V: banks, classes and names.

The text has the names of the calling convention (a0, ft3) or numbers (x10, f3). x0 is always zero. Classes V2 to V8 are
contiguous vector registers: the fields of a segment access, or whole registers that move together. Source: RISC-V ABIs
Specification 1.0, chapter "Register Convention".
"""
from __future__ import annotations

from tinyhw.machine.ir.inst import Bank, Reg, RegClass

X_NAMES = ("zero", "ra", "sp", "gp", "tp", "t0", "t1", "t2", "s0", "s1", *(f"a{k}" for k in range(8)),
           *(f"s{k}" for k in range(2, 12)), *(f"t{k}" for k in range(3, 7)))
F_NAMES = (*(f"ft{k}" for k in range(8)), "fs0", "fs1", *(f"fa{k}" for k in range(8)),
           *(f"fs{k}" for k in range(2, 12)), *(f"ft{k}" for k in range(8, 12)))

# Best first: arguments, temporaries, then what a function must preserve. x0 is zero; ra, sp, gp and tp have their uses;
# t6 is free for the addresses of far spill slots, and for exchanges of float registers.
GENERAL = Bank("general", 32, (*range(10, 18), 5, 6, 7, *range(28, 31), 8, 9, *range(18, 28)))
FLOAT = Bank("float", 32, (*range(10, 18), *range(0, 8), *range(28, 32), 8, 9, *range(18, 28)))
# No function preserves vector registers. v0 is last, because masks are read there; v31 is free for exchanges.
VECTOR = Bank("vector", 32, (*range(1, 31), 0))

X = RegClass("x", GENERAL, 64, names=X_NAMES)
F = RegClass("f", FLOAT, 64, names=F_NAMES)
V = RegClass("v", VECTOR, 256, naming="v{}".format)
# bits: those of the longest registers that kernels are compiled for
V2, V3, V4, V5, V6, V7, V8 = (RegClass(f"v{n}", VECTOR, 256 * n, n, naming=f"v{{}}*{n}".format) for n in range(2, 9))
GROUPS = {1: V, 2: V2, 3: V3, 4: V4, 5: V5, 6: V6, 7: V7, 8: V8}

CLASSES = (X, F, *GROUPS.values())
BANKS = (GENERAL, FLOAT, VECTOR)
REGISTERS: dict[RegClass, tuple[Reg, ...]] = {c: tuple(Reg(c, index=i) for i in range(32)) for c in CLASSES}
LETTERS = {"x": X, "f": F, "v": V}

def reg(cls: RegClass, index: int) -> Reg:
  """The physical register; the same object every time."""
  return REGISTERS[cls][index]

ZERO, RA, SP, T6, V0, V31 = reg(X, 0), reg(X, 1), reg(X, 2), reg(X, 31), reg(V, 0), reg(V, 31)

# name in the text -> letter and number; fp is s0
NUMBERS: dict[str, tuple[str, int]] = {
  **{f"{letter}{k}": (letter, k) for letter in LETTERS for k in range(32)},
  **{name: ("x", k) for k, name in enumerate(X_NAMES)}, **{name: ("f", k) for k, name in enumerate(F_NAMES)},
  "fp": ("x", 8)}

def name(letter: str, index: int) -> str:
  """The name of a register in the text: ("x", 10) -> "a0"."""
  return X_NAMES[index] if letter == "x" else F_NAMES[index] if letter == "f" else f"v{index}"
