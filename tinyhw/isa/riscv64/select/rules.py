"""Rules of selection for RISC-V: rows of assembly for an operation of a type. The operations of a level are those that
have a rule there.

    ADD     int     b:add   addi{w} x%d, x%a, {b}
    ADD     int             add{w} x%d, x%a, x%b
    MULACC  float           fmadd.{f} f%d, f%a, f%b, f%c

machine/select/rules.py explains rows. {w} is w for types of up to 32 bits, and nothing for those of 64. {f} is s or d.
A comparison has the types of its operands.

Integers are extended to 64 bits, with their sign if the type has one. uint32 is extended with bit 31, as the
instructions of 32 bits do. So one comparison of 64 bits serves for all types.

Conditions: `b:add`: the second source is a constant that fits into 12 bits with a sign, {b} in the lines; `b:sub`: its
opposite does. `b:shift`, `b:power`: an amount, and the exponent of a power of two.
"""
from __future__ import annotations
from collections.abc import Callable

from tinyhw.machine.select.rules import Rules, left_shift, parse, power_of_two
from tinyhw.threads import once

BASE = """
ADD         int    b:add    addi{w} x%d, x%a, {b}
ADD         int             add{w} x%d, x%a, x%b
SUB         int    b:sub    addi{w} x%d, x%a, {b}
SUB         int             sub{w} x%d, x%a, x%b
MUL         int    b:power  slli{w} x%d, x%a, {b}
MUL         int             mul{w} x%d, x%a, x%b
NEG         int             neg{w} x%d, x%a
AND         int    b:add    andi x%d, x%a, {b}
AND         int             and x%d, x%a, x%b
OR          int    b:add    ori x%d, x%a, {b}
OR          int             or x%d, x%a, x%b
XOR         int    b:add    xori x%d, x%a, {b}
XOR         int             xor x%d, x%a, x%b
SHL         int    b:shift  slli{w} x%d, x%a, {b}
SHL         int             sll{w} x%d, x%a, x%b
SHR         sint   b:shift  srai{w} x%d, x%a, {b}
SHR         sint            sra{w} x%d, x%a, x%b
SHR         uint   b:shift  srli{w} x%d, x%a, {b}
SHR         uint            srl{w} x%d, x%a, x%b
MAX         sint            slt x%t, x%a, x%b; neg x%n, x%t; xor x%x, x%a, x%b; and x%y, x%x, x%n; xor x%d, x%a, x%y
MAX         uint            sltu x%t, x%a, x%b; neg x%n, x%t; xor x%x, x%a, x%b; and x%y, x%x, x%n; xor x%d, x%a, x%y
IDIV        sint            div{w} x%d, x%a, x%b
IDIV        uint            divu{w} x%d, x%a, x%b
MOD         sint            rem{w} x%d, x%a, x%b
MOD         uint            remu{w} x%d, x%a, x%b
AND         bool            and x%d, x%a, x%b
MUL         bool            and x%d, x%a, x%b
OR          bool            or x%d, x%a, x%b
ADD         bool            or x%d, x%a, x%b
MAX         bool            or x%d, x%a, x%b
XOR         bool            xor x%d, x%a, x%b
NEG         bool            xori x%d, x%a, 1
CMPLT       sint   b:add    slti x%d, x%a, {b}
CMPLT       sint            slt x%d, x%a, x%b
CMPLT       uint            sltu x%d, x%a, x%b
CMPLT       bool            sltu x%d, x%a, x%b
CMPEQ       int    b:sub    addi x%t, x%a, {b}; seqz x%d, x%t
CMPEQ       int             xor x%t, x%a, x%b; seqz x%d, x%t
CMPEQ       bool            xor x%t, x%a, x%b; seqz x%d, x%t
CMPNE       int    b:sub    addi x%t, x%a, {b}; snez x%d, x%t
CMPNE       int             xor x%t, x%a, x%b; snez x%d, x%t
CMPNE       bool            xor x%d, x%a, x%b
ADD         float           fadd.{f} f%d, f%a, f%b
SUB         float           fsub.{f} f%d, f%a, f%b
MUL         float           fmul.{f} f%d, f%a, f%b
FDIV        float           fdiv.{f} f%d, f%a, f%b
NEG         float           fneg.{f} f%d, f%a
SQRT        float           fsqrt.{f} f%d, f%a
MULACC      float           fmadd.{f} f%d, f%a, f%b, f%c
CMPLT       float           flt.{f} x%d, f%a, f%b
CMPEQ       float           feq.{f} x%d, f%a, f%b
CMPNE       float           feq.{f} x%t, f%a, f%b; xori x%d, x%t, 1
"""

# Zbb
BITS = """
MAX         sint            max x%d, x%a, x%b
MAX         uint            maxu x%d, x%a, x%b
"""

# level -> its tables of rules for scalars, best first
LEVELS: dict[str, tuple[str, ...]] = {"riscv64:g": (BASE,), "riscv64:rva22": (BITS, BASE)}
# Extension of the lowest bits to 64: sign and bits -> lines; the same with Zba and Zbb
EXTENSIONS = {"s8": "slli x%t, x%a, 56; srai x%d, x%t, 56", "s16": "slli x%t, x%a, 48; srai x%d, x%t, 48",
              "u8": "andi x%d, x%a, 255", "u16": "slli x%t, x%a, 48; srli x%d, x%t, 48",
              "u32": "slli x%t, x%a, 32; srli x%d, x%t, 32"}
SHORT_EXTENSIONS = {**EXTENSIONS, "s8": "sext.b x%d, x%a", "s16": "sext.h x%d, x%a", "u16": "zext.h x%d, x%a",
                    "u32": "zext.w x%d, x%a"}

@once
def scalar_rules(level: str) -> Rules:
  """The rules of a level for scalars."""
  return parse("\n".join(LEVELS[level]))

def twelve_bits(value: int, bits: int) -> int | None: return value if -2048 <= value < 2048 else None

# Conditions of constants: the constant, and the bits of the type -> the number in the lines, or None
IMMEDIATES: dict[str, Callable[[int, int], int | None]] = {
  "b:add": twelve_bits, "b:sub": lambda n, bits: twelve_bits(-n, bits), "b:shift": left_shift, "b:power": power_of_two}
