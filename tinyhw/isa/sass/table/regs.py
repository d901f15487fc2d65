"""The registers of NVIDIA GPUs from sm_80 on: vector registers R, uniform registers UR, predicates P and UP,
convergence barriers B.

The last register of a bank reads as zero (RZ, URZ) or true (PT, UPT) and discards writes. URZ has index 255 here; a
field of six bits encodes it as 63. A group of registers starts at a multiple of its size, up to 8.
Source: NVIDIA's disassembler, version 13.1.
"""
from __future__ import annotations

from tinyhw.machine.ir.inst import Bank, Reg, RegClass

ZERO = 255  # the index of RZ and URZ
TRUE = 7    # the index of PT and UPT

def numbered(letter: str, count: int, last: str) -> tuple[str, ...]:
  """Return the names R0, R1 ... RZ."""
  return (*(f"{letter}{i}" for i in range(count - 1)), last)

VECTOR = Bank("R", 256, tuple(range(253)))  # the hardware takes R253 and R254 from sm_70 on
UNIFORM = Bank("UR", 256, tuple(range(63)))
PREDICATE = Bank("P", 8, tuple(range(7)))
UNIFORM_PREDICATE = Bank("UP", 8, tuple(range(7)))
BARRIER = Bank("B", 16, tuple(range(16)))

SIZES = (1, 2, 3, 4, *range(6, 129, 2))  # registers of a group; more than 4 only for matrices

def classes(bank: Bank, names: tuple[str, ...], sizes: tuple[int, ...]) -> dict[int, RegClass]:
  """Return the classes of a bank by their count of registers."""
  return {n: RegClass(bank.name + (f"x{n}" if n > 1 else ""), bank, 32 * n, n, {1: 1, 2: 2}.get(n, 4 if n % 8 else 8),
                      names) for n in sizes}

R = classes(VECTOR, numbered("R", 256, "RZ"), SIZES)
UR = classes(UNIFORM, numbered("UR", 256, "URZ"), (1, 2, 3, 4, 5, 6, 7))
P = RegClass("P", PREDICATE, 1, names=numbered("P", 8, "PT"))
UP = RegClass("UP", UNIFORM_PREDICATE, 1, names=numbered("UP", 8, "UPT"))
B = RegClass("B", BARRIER, 32, names=tuple(f"B{i}" for i in range(16)))

class Element(Reg):
  """Registers of a group as a source of an instruction: from number `at` on.

  Selection makes the whole group the operand.
  """
  __slots__ = ("group", "at")

  def __init__(self, cls: RegClass, group: Reg, at: int):
    super().__init__(cls)
    self.group, self.at = group, at

KINDS = {"R": R, "UR": UR, "P": {1: P}, "UP": {1: UP}, "B": {1: B}}
NAMES = {name: (kind, i) for kind, group in KINDS.items() for i, name in enumerate(group[1].names)}
_made: dict[tuple[RegClass, int], Reg] = {}

def reg(cls: RegClass, index: int) -> Reg:
  """Return a physical register or group; the same object each time."""
  found = _made.get((cls, index))
  if found is None: found = _made.setdefault((cls, index), Reg(cls, index=index))
  return found

RZ, URZ, PT, UPT = reg(R[1], ZERO), reg(UR[1], ZERO), reg(P, TRUE), reg(UP, TRUE)
