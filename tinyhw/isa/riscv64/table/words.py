"""Operands of RISC-V that the text names by words: rounding modes, fences, control registers, vector types.

Sources: RISC-V Unprivileged ISA, version 20240411: chapters "RV32I" (FENCE), "F" (rounding modes), "Zicsr", "V"
(vtype); csrs.csv of riscv-opcodes.
"""
from __future__ import annotations

from tinyhw.machine.assembler.holes import WordTable

def _words(text: str, default: int = 0) -> WordTable:
  return WordTable(tuple(None if w == "-" else w for w in text.split()), default)

ROUNDING = "rne rtz rdn rup rmm - - dyn"
# predecessor or successor: bits 3 to 0 are i, o, r, w
ACCESSES = ["".join(c for bit, c in zip((8, 4, 2, 1), "iorw") if code & bit) or "-" for code in range(16)]

TABLES: dict[str, WordTable] = {
  "rm": _words(ROUNDING, 7),        # the mode of fcsr unless the text says otherwise
  "exact": _words(ROUNDING, 0),     # conversions that never round
  "fence": _words(" ".join(ACCESSES), 15),
}

# Control and status registers that programs may access
CONTROL = {"fflags": 0x001, "frm": 0x002, "fcsr": 0x003, "vstart": 0x008, "vxsat": 0x009, "vxrm": 0x00a, "vcsr": 0x00f,
           "seed": 0x015, "cycle": 0xc00, "time": 0xc01, "instret": 0xc02, "vl": 0xc20, "vtype": 0xc21, "vlenb": 0xc22}

# vtype: vma, vta, vsew (3 bits), vlmul (3 bits)
ELEMENTS = ("e8", "e16", "e32", "e64")
GROUPS = ("m1", "m2", "m4", "m8", None, "mf8", "mf4", "mf2")

def vtype_text(code: int) -> str | None:
  """e32, m1, ta, ma; None for a code without a name."""
  element, group = code >> 3 & 7, GROUPS[code & 7]
  if code >> 8 or element >= len(ELEMENTS) or group is None: return None
  return f"{ELEMENTS[element]}, {group}, {'ta' if code & 64 else 'tu'}, {'ma' if code & 128 else 'mu'}"
