"""Registers of x86-64: banks, classes and names.

`VEC` has the 32 registers of AVX-512; an AVX2 target may allocate the first 16 only. The high byte registers (ah, bh,
ch, dh), segment registers and x87 are omitted: no compiler output needs them.
"""
from __future__ import annotations
from tinyhw.machine.ir.inst import Bank, Reg, RegClass

NAMES64 = ("rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi") + tuple(f"r{i}" for i in range(8, 16))
NAMES32 = ("eax", "ecx", "edx", "ebx", "esp", "ebp", "esi", "edi") + tuple(f"r{i}d" for i in range(8, 16))
NAMES16 = ("ax", "cx", "dx", "bx", "sp", "bp", "si", "di") + tuple(f"r{i}w" for i in range(8, 16))
NAMES8 = ("al", "cl", "dl", "bl", "spl", "bpl", "sil", "dil") + tuple(f"r{i}b" for i in range(8, 16))

# Best first: registers without a REX prefix and without a fixed use, then r8-r15 (r12 and r13 last: as a base they need
# an extra byte), then those that shifts, multiplications and divisions require. rsp (4) is never allocated.
GPR = Bank("gpr", 16, (6, 7, 8, 9, 10, 11, 3, 5, 14, 15, 12, 13, 1, 2, 0))
VEC = Bank("vec", 32, tuple(range(32)))
MASK = Bank("mask", 8, (1, 2, 3, 4, 5, 6, 7))  # k0 as an operand mask means "no mask"
TILE = Bank("tile", 8, tuple(range(8)))
POINTER = Bank("pointer", 1, ())

R8 = RegClass("r8", GPR, 8, names=NAMES8)
R16 = RegClass("r16", GPR, 16, names=NAMES16)
R32 = RegClass("r32", GPR, 32, names=NAMES32)
R64 = RegClass("r64", GPR, 64, names=NAMES64)
XMM = RegClass("xmm", VEC, 128, names=tuple(f"xmm{i}" for i in range(32)))
YMM = RegClass("ymm", VEC, 256, names=tuple(f"ymm{i}" for i in range(32)))
ZMM = RegClass("zmm", VEC, 512, names=tuple(f"zmm{i}" for i in range(32)))
K = RegClass("k", MASK, 64, names=tuple(f"k{i}" for i in range(8)))
TILE_ROWS, ROW_BYTES = 16, 64
TILE_BYTES = TILE_ROWS * ROW_BYTES
TMM = RegClass("tmm", TILE, 8 * TILE_BYTES, names=tuple(f"tmm{i}" for i in range(8)))
RIP_CLASS = RegClass("rip", POINTER, 64, names=("rip",))

CLASSES = (R8, R16, R32, R64, XMM, YMM, ZMM, K, TMM)
BANKS = (GPR, VEC, MASK, TILE)
REGISTERS: dict[RegClass, tuple[Reg, ...]] = {c: tuple(Reg(c, index=i) for i in range(c.bank.count)) for c in CLASSES}

# Base of an address relative to the end of the instruction; see encode.py about constants.
RIP = Reg(RIP_CLASS, index=0)

def reg(cls: RegClass, index: int) -> Reg:
  """The physical register; the same object every time."""
  return REGISTERS[cls][index]

def by_name() -> dict[str, Reg]:
  """Every register by its name in lower case, rip included."""
  names = {r.cls.names[i]: r for registers in REGISTERS.values() for i, r in enumerate(registers)}
  return {**names, "rip": RIP}
