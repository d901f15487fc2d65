"""Rules of selection for AArch64: rows of assembly for an operation of a type. The operations of a level are those that
have a rule there.

    ADD     int     b:add    add R%d, R%a, #{b}
    MULACC  float            fmadd F%d, F%a, F%b, F%c

machine/select/rules.py explains rows. R is w or x, F is s or d, by the type. In vectors T is the
arrangement, E the element, H the arrangement of all bytes, P that of pairs of bytes, L that of as many halves
(float16).

Conditions: `b:add`, `b:sub`, `b:mask`, `b:shift`, `b:power`: the second source is a constant that the instruction
takes, {b} in the lines. `b:element`: the second source is an element of a register in all lanes, v%b.E[{b}] in the
lines. `ss`, `uu`, `us`, `su`: the signs of the bytes of words a and b, s for bytes that have signs or are below 128.
Factors are exchanged where that lets a rule apply. `halves`: a and b are conversions from float16; the lines read the
halves.
"""
from __future__ import annotations
from collections.abc import Callable
from typing import Any

from tinyhw.isa.arm64.table.immediates import mask_bits
from tinyhw.machine.select.rules import Rules, left_shift, parse, power_of_two, right_shift
from tinyhw.threads import once
from tinyhw.uop.enums import Ops

SCALAR = """
ADD         int    b:add    add R%d, R%a, #{b}
ADD         int    b:sub    sub R%d, R%a, #{b}
ADD         int             add R%d, R%a, R%b
SUB         int    b:add    sub R%d, R%a, #{b}
SUB         int    b:sub    add R%d, R%a, #{b}
SUB         int             sub R%d, R%a, R%b
MUL         int    b:power  lsl R%d, R%a, #{b}
MUL         int             mul R%d, R%a, R%b
NEG         int             neg R%d, R%a
AND         int    b:mask   and R%d, R%a, #{b}
AND         int             and R%d, R%a, R%b
OR          int    b:mask   orr R%d, R%a, #{b}
OR          int             orr R%d, R%a, R%b
XOR         int    b:mask   eor R%d, R%a, #{b}
XOR         int             eor R%d, R%a, R%b
SHL         int    b:shift  lsl R%d, R%a, #{b}
SHR         sint   b:shift  asr R%d, R%a, #{b}
SHR         uint   b:shift  lsr R%d, R%a, #{b}
SHL         int             lsl R%t, R%a, R%b; cmp R%b, #{bits}; csel R%d, R%t, Rzr, lo
SHR         uint            lsr R%t, R%a, R%b; cmp R%b, #{bits}; csel R%d, R%t, Rzr, lo
SHR         sint            mov R%m, #{last}; cmp R%b, R%m; csel R%n, R%b, R%m, lo; asr R%d, R%a, R%n
MAX         sint            cmp R%a, R%b; csel R%d, R%b, R%a, lt
MAX         uint            cmp R%a, R%b; csel R%d, R%b, R%a, lo
IDIV        sint            sdiv R%d, R%a, R%b
IDIV        uint            udiv R%d, R%a, R%b
MOD         sint            sdiv R%q, R%a, R%b; msub R%d, R%q, R%b, R%a
MOD         uint            udiv R%q, R%a, R%b; msub R%d, R%q, R%b, R%a
AND         bool            and w%d, w%a, w%b
MUL         bool            and w%d, w%a, w%b
OR          bool            orr w%d, w%a, w%b
ADD         bool            orr w%d, w%a, w%b
MAX         bool            orr w%d, w%a, w%b
XOR         bool            eor w%d, w%a, w%b
NEG         bool            eor w%d, w%a, #1
ADD         float           fadd F%d, F%a, F%b
SUB         float           fsub F%d, F%a, F%b
MUL         float           fmul F%d, F%a, F%b
FDIV        float           fdiv F%d, F%a, F%b
NEG         float           fneg F%d, F%a
SQRT        float           fsqrt F%d, F%a
TRUNC       float           frintz F%d, F%a
RECIPROCAL  float           fmov F%t, #1.0; fdiv F%d, F%t, F%a
MULACC      float           fmadd F%d, F%a, F%b, F%c
"""

VECTOR = """
ADD         int             add v%d.T, v%a.T, v%b.T
SUB         int             sub v%d.T, v%a.T, v%b.T
MUL         small           mul v%d.T, v%a.T, v%b.T
NEG         int             neg v%d.T, v%a.T
AND         int             and v%d.H, v%a.H, v%b.H
OR          int             orr v%d.H, v%a.H, v%b.H
XOR         int             eor v%d.H, v%a.H, v%b.H
SHL         int    b:shift  shl v%d.T, v%a.T, #{b}
SHR         sint   b:right  sshr v%d.T, v%a.T, #{b}
SHR         uint   b:right  ushr v%d.T, v%a.T, #{b}
SHL         int             ushl v%d.T, v%a.T, v%b.T
SHR         sint            neg v%n.T, v%b.T; sshl v%d.T, v%a.T, v%n.T
SHR         uint            neg v%n.T, v%b.T; ushl v%d.T, v%a.T, v%n.T
MAX         ssmall          smax v%d.T, v%a.T, v%b.T
MAX         usmall          umax v%d.T, v%a.T, v%b.T
ADD         float           fadd v%d.T, v%a.T, v%b.T
SUB         float           fsub v%d.T, v%a.T, v%b.T
MUL         float  b:element  fmul v%d.T, v%a.T, v%b.E[{b}]
MUL         float           fmul v%d.T, v%a.T, v%b.T
FDIV        float           fdiv v%d.T, v%a.T, v%b.T
NEG         float           fneg v%d.T, v%a.T
SQRT        float           fsqrt v%d.T, v%a.T
TRUNC       float           frintz v%d.T, v%a.T
RECIPROCAL  float           fmov v%t.T, #1.0; fdiv v%d.T, v%t.T, v%a.T
MULACC      float  b:element  fmla v%d:c.T, v%a.T, v%b.E[{b}]
MULACC      float           fmla v%d:c.T, v%a.T, v%b.T
"""

# Sums of four products of bytes: products of 16 bits, added in pairs
PRODUCTS = """
DOT4        word   ss       smull v%p.8h, v%a.8b, v%b.8b; smull2 v%q.8h, v%a.16b, v%b.16b; saddlp v%r.4s, v%p.8h; \
saddlp v%s.4s, v%q.8h; addp v%t.4s, v%r.4s, v%s.4s; add v%d.4s, v%t.4s, v%c.4s
DOT4        word   uu       umull v%p.8h, v%a.8b, v%b.8b; umull2 v%q.8h, v%a.16b, v%b.16b; uaddlp v%r.4s, v%p.8h; \
uaddlp v%s.4s, v%q.8h; addp v%t.4s, v%r.4s, v%s.4s; add v%d.4s, v%t.4s, v%c.4s
"""

# FEAT_DotProd
DOTPROD = """
DOT4        word   ss b:element   sdot v%d:c.T, v%a.H, v%b.4b[{b}]
DOT4        word   uu b:element   udot v%d:c.T, v%a.H, v%b.4b[{b}]
DOT4        word   ss             sdot v%d:c.T, v%a.H, v%b.H
DOT4        word   uu             udot v%d:c.T, v%a.H, v%b.H
"""

# FEAT_BF16 and FEAT_I8MM
BF16 = """
DOT4        word   us b:element   usdot v%d:c.T, v%a.H, v%b.4b[{b}]
DOT4        word   su b:element   sudot v%d:c.T, v%a.H, v%b.4b[{b}]
DOT4        word   us             usdot v%d:c.T, v%a.H, v%b.H
DOT2        single  b:element     bfdot v%d:c.T, v%a.P, v%b.2h[{b}]
DOT2        single                bfdot v%d:c.T, v%a.P, v%b.P
"""

# FEAT_FHM. The product of two halves is exact, and added with one rounding
FHM = """
MULACC      single  halves        fmlal v%d:c.T, v%a.L, v%b.L
"""

# the comparisons of a < b, a == b, a != b: the condition after cmp or fcmp. A comparison with NaN is false, but !=
CONDITIONS = {"sint": {Ops.CMPLT: "lt", Ops.CMPEQ: "eq", Ops.CMPNE: "ne"}, "uint": {Ops.CMPLT: "lo", Ops.CMPEQ: "eq",
                                                                                    Ops.CMPNE: "ne"},
              "float": {Ops.CMPLT: "mi", Ops.CMPEQ: "eq", Ops.CMPNE: "ne"}}
# the same for lanes: lines that make a mask
LANES = {"sint": {Ops.CMPLT: "cmgt v%d.T, v%b.T, v%a.T", Ops.CMPEQ: "cmeq v%d.T, v%a.T, v%b.T",
                  Ops.CMPNE: "cmeq v%t.T, v%a.T, v%b.T; mvn v%d.H, v%t.H"},
         "uint": {Ops.CMPLT: "cmhi v%d.T, v%b.T, v%a.T", Ops.CMPEQ: "cmeq v%d.T, v%a.T, v%b.T",
                  Ops.CMPNE: "cmeq v%t.T, v%a.T, v%b.T; mvn v%d.H, v%t.H"},
         "float": {Ops.CMPLT: "fcmgt v%d.T, v%b.T, v%a.T", Ops.CMPEQ: "fcmeq v%d.T, v%a.T, v%b.T",
                   Ops.CMPNE: "fcmeq v%t.T, v%a.T, v%b.T; mvn v%d.H, v%t.H"}}

SCALAR_RULES = parse(SCALAR)
# level -> its tables of rules for vectors, best first
NEON = (VECTOR, PRODUCTS)
LEVELS: dict[str, tuple[str, ...]] = {"arm64:neon": NEON, "arm64:dotprod": (DOTPROD, *NEON),
                                      "arm64:bf16": (BF16, DOTPROD, *NEON),
                                      "arm64:fhm": (FHM, BF16, DOTPROD, *NEON)}

@once
def vector_rules(level: str) -> Rules:
  """The rules of a level for vectors."""
  return parse("\n".join(LEVELS[level]))

# Conditions of constants: the constant, and the bits of the type -> the number in the lines, or None
IMMEDIATES: dict[str, Callable[[int, int], int | None]] = {
  "b:add": lambda n, bits: n if 0 <= n < 4096 else None,
  "b:sub": lambda n, bits: -n if -4096 < n < 0 else None,
  "b:mask": lambda n, bits: n & (1 << bits) - 1 if mask_bits(n & (1 << bits) - 1, bits) is not None else None,
  "b:shift": left_shift, "b:power": power_of_two, "b:right": right_shift,
}

def immediate(condition: str, value: Any, bits: int) -> int | None:
  """The number in the lines of a rule, if a constant fulfils its condition."""
  return IMMEDIATES[condition](int(value), bits)
