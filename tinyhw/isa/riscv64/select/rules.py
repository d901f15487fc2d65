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
opposite does. `b:shift`, `b:power`: an amount, and the exponent of a power of two. In vectors, `b:five`: 5 bits with a
sign; `b:amount`: an amount below 32; `b:scalar`: the second source is a scalar in all lanes, x%b or f%b in the line.
Factors are exchanged where that lets a rule apply.
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

# V: vectors. A mask is a bit for each element
VECTOR = """
ADD         int    b:five    vadd.vi v%d, v%a, {b}
ADD         int    b:scalar  vadd.vx v%d, v%a, x%b
ADD         int              vadd.vv v%d, v%a, v%b
SUB         int    b:scalar  vsub.vx v%d, v%a, x%b
SUB         int              vsub.vv v%d, v%a, v%b
MUL         int    b:scalar  vmul.vx v%d, v%a, x%b
MUL         int              vmul.vv v%d, v%a, v%b
NEG         int              vneg.v v%d, v%a
AND         int    b:five    vand.vi v%d, v%a, {b}
AND         int    b:scalar  vand.vx v%d, v%a, x%b
AND         int              vand.vv v%d, v%a, v%b
OR          int    b:five    vor.vi v%d, v%a, {b}
OR          int    b:scalar  vor.vx v%d, v%a, x%b
OR          int              vor.vv v%d, v%a, v%b
XOR         int    b:five    vxor.vi v%d, v%a, {b}
XOR         int    b:scalar  vxor.vx v%d, v%a, x%b
XOR         int              vxor.vv v%d, v%a, v%b
SHL         int    b:amount  vsll.vi v%d, v%a, {b}
SHL         int    b:scalar  vsll.vx v%d, v%a, x%b
SHL         int              vsll.vv v%d, v%a, v%b
SHR         sint   b:amount  vsra.vi v%d, v%a, {b}
SHR         sint   b:scalar  vsra.vx v%d, v%a, x%b
SHR         sint             vsra.vv v%d, v%a, v%b
SHR         uint   b:amount  vsrl.vi v%d, v%a, {b}
SHR         uint   b:scalar  vsrl.vx v%d, v%a, x%b
SHR         uint             vsrl.vv v%d, v%a, v%b
MAX         sint   b:scalar  vmax.vx v%d, v%a, x%b
MAX         sint             vmax.vv v%d, v%a, v%b
MAX         uint   b:scalar  vmaxu.vx v%d, v%a, x%b
MAX         uint             vmaxu.vv v%d, v%a, v%b
IDIV        sint   b:scalar  vdiv.vx v%d, v%a, x%b
IDIV        sint             vdiv.vv v%d, v%a, v%b
IDIV        uint   b:scalar  vdivu.vx v%d, v%a, x%b
IDIV        uint             vdivu.vv v%d, v%a, v%b
MOD         sint             vrem.vv v%d, v%a, v%b
MOD         uint             vremu.vv v%d, v%a, v%b
CMPLT       sint   b:scalar  vmslt.vx v%d, v%a, x%b
CMPLT       sint             vmslt.vv v%d, v%a, v%b
CMPLT       uint   b:scalar  vmsltu.vx v%d, v%a, x%b
CMPLT       uint             vmsltu.vv v%d, v%a, v%b
CMPEQ       int    b:five    vmseq.vi v%d, v%a, {b}
CMPEQ       int    b:scalar  vmseq.vx v%d, v%a, x%b
CMPEQ       int              vmseq.vv v%d, v%a, v%b
CMPNE       int    b:five    vmsne.vi v%d, v%a, {b}
CMPNE       int    b:scalar  vmsne.vx v%d, v%a, x%b
CMPNE       int              vmsne.vv v%d, v%a, v%b
AND         bool             vmand.mm v%d, v%a, v%b
MUL         bool             vmand.mm v%d, v%a, v%b
OR          bool             vmor.mm v%d, v%a, v%b
ADD         bool             vmor.mm v%d, v%a, v%b
MAX         bool             vmor.mm v%d, v%a, v%b
XOR         bool             vmxor.mm v%d, v%a, v%b
NEG         bool             vmnot.m v%d, v%a
CMPLT       bool             vmandn.mm v%d, v%b, v%a
CMPEQ       bool             vmxnor.mm v%d, v%a, v%b
CMPNE       bool             vmxor.mm v%d, v%a, v%b
ADD         float  b:scalar  vfadd.vf v%d, v%a, f%b
ADD         float            vfadd.vv v%d, v%a, v%b
SUB         float  b:scalar  vfsub.vf v%d, v%a, f%b
SUB         float            vfsub.vv v%d, v%a, v%b
MUL         float  b:scalar  vfmul.vf v%d, v%a, f%b
MUL         float            vfmul.vv v%d, v%a, v%b
FDIV        float  b:scalar  vfdiv.vf v%d, v%a, f%b
FDIV        float            vfdiv.vv v%d, v%a, v%b
NEG         float            vfneg.v v%d, v%a
SQRT        float            vfsqrt.v v%d, v%a
MULACC      float  b:scalar  vfmacc.vf v%d:c, f%b, v%a
MULACC      float            vfmacc.vv v%d:c, v%a, v%b
CMPLT       float  b:scalar  vmflt.vf v%d, v%a, f%b
CMPLT       float            vmflt.vv v%d, v%a, v%b
CMPEQ       float  b:scalar  vmfeq.vf v%d, v%a, f%b
CMPEQ       float            vmfeq.vv v%d, v%a, v%b
CMPNE       float  b:scalar  vmfne.vf v%d, v%a, f%b
CMPNE       float            vmfne.vv v%d, v%a, v%b
"""

# level -> its tables of rules for scalars, best first
LEVELS: dict[str, tuple[str, ...]] = {"riscv64:g": (BASE,), "riscv64:rva22": (BITS, BASE), "riscv64:v128": (BITS, BASE),
                                      "riscv64:v256": (BITS, BASE)}
# level -> bytes of a vector register
VECTOR_BYTES = {"riscv64:v128": 16, "riscv64:v256": 32}
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

@once
def vector_rules(level: str) -> Rules:
  """The rules of a level for vectors."""
  return parse(VECTOR) if level in VECTOR_BYTES else {}

def five_bits(value: int, bits: int) -> int | None: return value if -16 <= value < 16 else None
def twelve_bits(value: int, bits: int) -> int | None: return value if -2048 <= value < 2048 else None

# Conditions of constants: the constant, and the bits of the type -> the number in the lines, or None
IMMEDIATES: dict[str, Callable[[int, int], int | None]] = {
  "b:add": twelve_bits, "b:sub": lambda n, bits: twelve_bits(-n, bits), "b:shift": left_shift, "b:power": power_of_two,
  "b:five": five_bits, "b:amount": lambda n, bits: n if 0 <= n < min(bits, 32) else None}
