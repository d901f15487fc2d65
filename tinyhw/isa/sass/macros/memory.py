"""Macros of memory and of the matrix unit, in the notation of macros.py, generated for each size of an access.

Global memory is addressed without descriptors (abi.py gives the reason). A name is the operation, then the size: u8 s8
u16 s16 b32 b64 b128. The suffix "_if" adds a predicate. Where it is false, a load keeps the old value of its register.
The suffix "+UR4" adds a base: the address of a lane is 32 unsigned bits plus the 64 bits of UR4 and UR5.
"""
from __future__ import annotations

from tinyhw.machine.select.macros import Macro

SIZES = {"u8": (".U8", "v1"), "s8": (".S8", "v1"), "u16": (".U16", "v1"), "s16": (".S16", "v1"), "b32": ("", "v1"),
         "b64": (".64", "v2"),
         "b128": (".128", "v4")}
ACCESSES = """
load_{size}          d={cls} a:v2 o:i
  LDG.E{word} d, [a+o]
load_{size}_if       d+{cls} p:p a:v2 o:i
  @p LDG.E{word} d, [a+o]
store_{size}         a:v2 b:{cls} o:i
  STG.E{word} [a+o], b
store_{size}_if      p:p a:v2 b:{cls} o:i
  @p STG.E{word} [a+o], b
shared_load_{size}   d={cls} a:v1 o:i
  LDS{word} d, [a+o]
shared_load_{size}_if  d+{cls} p:p a:v1 o:i
  @p LDS{word} d, [a+o]
shared_store_{size}  a:v1 b:{cls} o:i
  STS{word} [a+o], b
shared_store_{size}_if  p:p a:v1 b:{cls} o:i
  @p STS{word} [a+o], b
"""
OTHERS = """
argument_b32   d=v1 o:i
  LDC d, c[0x0][o]
argument_b64   d=v2 o:i
  LDC.64 d, c[0x0][o]
address        d=v2 i:v1 n:x1 b:v2
  IMAD.WIDE d, i, n, b
address64      d=v2 i:v2 n:x1 b:v2
  IMAD.WIDE.U32 d, i.lo, n, b
  IMAD d.hi, i.hi, n, d.hi
copy_b32       s:v1 a:v2 o:i g:i
  LDGSTS.E [s+o], [a.64+g]
copy_b64       s:v1 a:v2 o:i g:i
  LDGSTS.E.64 [s+o], [a.64+g]
copy_b128      s:v1 a:v2 o:i g:i
  LDGSTS.E.BYPASS.128 [s+o], [a.64+g]
copy_b32_if    p:p s:v1 a:v2 o:i g:i
  @p LDGSTS.E [s+o], [a.64+g]
copy_b64_if    p:p s:v1 a:v2 o:i g:i
  @p LDGSTS.E.64 [s+o], [a.64+g]
copy_b128_if   p:p s:v1 a:v2 o:i g:i
  @p LDGSTS.E.BYPASS.128 [s+o], [a.64+g]
commit
  LDGDEPBAR
expect%9+      p:p s:v1 b:v1 o:i
  @p SYNCS.ARRIVE.TRANS64 RZ, [s+URZ+o], b
end_signal%9+  s:v1 o:i
  SYNCS.CCTL.IV [s+URZ+o]
phase_done%9+  d=p s:v1 b:v1 o:i
  SYNCS.PHASECHK.TRANS64.TRYWAIT d, [s+URZ+o], b
wait           n:i
  DEPBAR.LE SB0, n
exchange_b32   d=v1 a:v1 n:i
  SHFL.BFLY PT, d, a, n, 0x1f
exchange_b64   d=v2 a:v2 n:i
  SHFL.BFLY PT, d.lo, a.lo, n, 0x1f
  SHFL.BFLY PT, d.hi, a.hi, n, 0x1f
rows_b32       d=v1 a:v1 o:i
  LDSM.16.M88 d, [a+o]
rows_b64       d=v2 a:v1 o:i
  LDSM.16.M88.2 d, [a+o]
rows_b128      d=v4 a:v1 o:i
  LDSM.16.M88.4 d, [a+o]
columns_b32    d=v1 a:v1 o:i
  LDSM.16.MT88 d, [a+o]
columns_b64    d=v2 a:v1 o:i
  LDSM.16.MT88.2 d, [a+o]
columns_b128   d=v4 a:v1 o:i
  LDSM.16.MT88.4 d, [a+o]
"""

# Matrix products with a pair of registers, and with the first or second half of four registers
PRODUCTS = """
product_{kind}{group}    d=v4 a:v4 b:v2 c:v4
  {word} d, a{row}, b{column}, c
product_{kind}_0{group}  d+v4 a:v4 b:v4
  {word} d, a{row}, b.0{column}, d
product_{kind}_1{group}  d+v4 a:v4 b:v4
  {word} d, a{row}, b.2{column}, d
"""
# Four columns of a row on the FMA pipe. A group holds one step of the second factor, or one column of it
VECTOR = "product_f32_{order}  d+v4 a:v4 w:v4 x:v4 y:v4 z:v4\n"
FLOATS, BYTES = ("", ""), (".ROW", ".COL")   # suffixes of the factors
# NVIDIA's compiler rounds to TF32 in this way: it adds half of the last significant bit, except to infinities and NaN
ROUND_TF32 = """
round_tf32_{units}  d+v{units} | {predicates}
{tests}{additions}"""
KINDS = {"f16": ("HMMA.16816.F32", FLOATS), "bf16": ("HMMA.16816.F32.BF16", FLOATS), "i8": ("IMMA.16832.S8.S8", BYTES),
         "u8": ("IMMA.16832.U8.U8", BYTES), "tf32": ("HMMA.1688.F32.TF32", FLOATS)}
OF_ADA = {"e4m3": ("QMMA.16832.F32.E4M3.E4M3", BYTES), "e5m2": ("QMMA.16832.F32.E5M2.E5M2", BYTES)}

def vector_products() -> str:
  """Write the text of d += a * (w, x, y, z), step by step.

  Three to five instructions lie between two additions to the same element. The first column of a step has its sum in
  another bank than its factors, because the reuse cache does not hold those yet.
  """
  found = []
  for order in ("columns", "steps"):
    factors = [[f"{'wxyz'[column]}.{step}" if order == "columns" else f"{'wxyz'[step]}.{column}" for column in range(4)]
               for step in range(4)]
    orders = [(0, 1, 2, 3) if step % 2 else (1, 0, 3, 2) for step in range(4)]
    lines = [f"  FFMA d.{column}, a.{step}, {factors[step][column]}, d.{column}\n" for step in range(4)
             for column in orders[step]]
    found.append(VECTOR.format(order=order) + "".join(lines))
  return "".join(found)

def tf32_rounding(units: int) -> str:
  """Write the text that rounds registers of factors in place. All tests come first, because a guard takes long."""
  letters = "pqrs"[:units]
  tests = "".join(f"  FSETP.GEU.AND {letter}, PT, |d.{k}|, 0x7f800000, PT\n" for k, letter in enumerate(letters))
  additions = "".join(f"  @!{letter} IADD3 d.{k}, d.{k}, 0x1000, RZ\n" for k, letter in enumerate(letters))
  return ROUND_TF32.format(units=units, predicates=" ".join(f"{letter}=p" for letter in letters), tests=tests,
                           additions=additions)

def with_base(plain: Macro, base: str) -> Macro:
  """Return an access to global memory with a base in uniform registers. base: the first of the two, as "UR4"."""
  line, = plain.lines
  operands = [("a", access, "v1") if operand == "a" else (operand, access, letters)
              for operand, access, letters in plain.operands]
  return plain._replace(operands=tuple(operands),
                        lines=(line.replace("[a+", f"[a.U32+{base}+").replace("[a.64+", f"[a.U32+{base}+"),))

def text() -> str:
  """Return the text of all macros."""
  products = "".join(PRODUCTS.format(kind=kind, group=group, word=word, row=row, column=column)
                     for group, kinds in (("", KINDS), ("%89", OF_ADA))
                     for kind, (word, (row, column)) in kinds.items())
  products += tf32_rounding(2) + tf32_rounding(4)
  return products + vector_products() + "".join(ACCESSES.format(size=size, word=word, cls=cls)
                                                for size, (word, cls) in SIZES.items()) + OTHERS
