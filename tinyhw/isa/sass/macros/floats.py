"""Macros of floats and conversions, in the notation of macros.py.

The units deliver reciprocals and roots with about 20 correct bits. These macros round correctly, for all values. The
usual cases of float32 are in recipes.py; this file has the rest, for operands of unusual size.

div_rarely, rcp_rarely: run for all lanes if any lane needs them. They compute in float64. There the quotient of two
float32 numbers is far from the rounding boundaries of float32, unless it lies exactly on one. Two steps of Newton's
method follow, and one with the remainder. Zeros, infinities and NaNs use the approximation, which is exact for them.

div_f64: divides the mantissas, both in 1 to 2, by three steps of Newton's method. The last step includes 2*e*e, so that
divisors with a mantissa of all ones are right too (test/isa/amd/macros/test_macros.py tries the recipe in small
formats). The remainder makes the quotient correctly rounded. Two multiplications then apply its exponent. Only the
second one may round, and only if the result is not a normal number. In that case the quotient is first rounded to odd,
so that the second rounding does no harm (Boldo and Melquiond). If only the last bit is lost, the sign of the remainder
decides its rounding.

sqrt_f64: the same method, with steps that keep the root and half of its reciprocal. Numbers below 2**-767 are scaled by
2**256.
"""
from __future__ import annotations

TEXT = """
add_f32        d=v1 a:v1 b:x1
  FADD d, a, b
sub_f32        d=v1 a:x1 b:v1
  FADD d, -b, a
mul_f32        d=v1 a:v1 b:x1
  FMUL d, a, b
fma_f32        d=v1 a:v1 b:x1 c:x1
  FFMA d, a, b, c
least_f32      d=v1 a:v1 b:x1
  FMNMX d, a, b, PT
least_nan_f32  d=v1 a:v1 b:x1
  FMNMX.NAN d, a, b, PT
most_f32       d=v1 a:v1 b:x1
  FMNMX d, a, b, !PT
most_nan_f32   d=v1 a:v1 b:x1
  FMNMX.NAN d, a, b, !PT
neg_f32        d=v1 a:v1
  LOP3.LUT d, a, 0x80000000, RZ, 0x3c, !PT
trunc_f32      d=v1 a:v1
  FRND.TRUNC d, a
lt_f32         d=p a:v1 b:x1
  FSETP.LT.AND d, PT, a, b, PT
gt_f32         d=p a:v1 b:x1
  FSETP.GT.AND d, PT, a, b, PT
eq_f32         d=p a:v1 b:x1
  FSETP.EQ.AND d, PT, a, b, PT
ne_f32         d=p a:v1 b:x1
  FSETP.NEU.AND d, PT, a, b, PT

add_f64        d=v2 a:v2 b:v2
  DADD d, a, b
sub_f64        d=v2 a:v2 b:v2
  DADD d, a, -b
mul_f64        d=v2 a:v2 b:v2
  DMUL d, a, b
fma_f64        d=v2 a:v2 b:v2 c:v2
  DFMA d, a, b, c
neg_f64        d=v2 a:v2
  LOP3.LUT d.hi, a.hi, 0x80000000, RZ, 0x3c, !PT
  MOV d.lo, a.lo
trunc_f64      d=v2 a:v2
  FRND.F64.TRUNC d, a
lt_f64         d=p a:v2 b:v2
  DSETP.LT.AND d, PT, a, b, PT
eq_f64         d=p a:v2 b:v2
  DSETP.EQ.AND d, PT, a, b, PT
ne_f64         d=p a:v2 b:v2
  DSETP.NEU.AND d, PT, a, b, PT

s32_to_f32     d=v1 a:v1
  I2F d, a
u32_to_f32     d=v1 a:v1
  I2F.U32 d, a
s64_to_f32     d=v1 a:v2
  I2F.S64 d, a
s32_to_f64     d=v2 a:v1
  I2F.F64 d, a
u32_to_f64     d=v2 a:v1
  I2F.F64.U32 d, a
s64_to_f64     d=v2 a:v2
  I2F.F64.S64 d, a
f32_to_f64     d=v2 a:v1
  F2F.F64.F32 d, a
f64_to_f32     d=v1 a:v2
  F2F.F32.F64 d, a
f16_to_f32     d=v1 a:v1
  HADD2.F32 d, -RZ, a.H0_H0
f16_to_f32_high  d=v1 a:v1
  HADD2.F32 d, -RZ, a.H1_H1
bf16_to_f32    d=v1 a:v1
  PRMT d, a, 0x1044, RZ
bf16_to_f32_high  d=v1 a:v1
  LOP3.LUT d, a, 0xffff0000, RZ, 0xc0, !PT
f32_to_f16%80  d=v1 a:v1
  F2FP.PACK_AB d, RZ, a
f32_to_f16%89+ d=v1 a:v1
  F2FP.F16.F32.PACK_AB d, RZ, a
f32_to_bf16%80  d=v1 a:v1
  F2FP.BF16.PACK_AB d, RZ, a
f32_to_bf16%89+  d=v1 a:v1
  F2FP.BF16.F32.PACK_AB d, RZ, a
both_to_f16%80  d=v1 low:v1 high:v1
  F2FP.PACK_AB d, high, low
both_to_f16%89+  d=v1 low:v1 high:v1
  F2FP.F16.F32.PACK_AB d, high, low
both_to_bf16%80  d=v1 low:v1 high:v1
  F2FP.BF16.PACK_AB d, high, low
both_to_bf16%89+  d=v1 low:v1 high:v1
  F2FP.BF16.F32.PACK_AB d, high, low
two_e4m3%89+   d=v1 a:v1
  F2FP.F16.E4M3.UNPACK_B d, a
two_e4m3_high%89+  d=v1 a:v1
  F2FP.F16.E4M3.UNPACK_B d, a.H1
two_e5m2%89+   d=v1 a:v1
  F2FP.F16.E5M2.UNPACK_B d, a
two_e5m2_high%89+  d=v1 a:v1
  F2FP.F16.E5M2.UNPACK_B d, a.H1
e4m3_to_f32%89+  d=v1 a:v1
  F2FP.F16.E4M3.UNPACK_B d, a
  HADD2.F32 d, -RZ, d.H0_H0
e5m2_to_f32%89+  d=v1 a:v1
  F2FP.F16.E5M2.UNPACK_B d, a
  HADD2.F32 d, -RZ, d.H0_H0
f32_to_e4m3%89+  d=v1 a:v1 | p=p
  F2FP.SATFINITE.E4M3.F32.PACK_AB_MERGE_C d, RZ, a, RZ
  FSETP.LEU.AND p, PT, |a|, 0x43e80000, PT
  @!p IADD3 d, d, 0x1, RZ
f32_to_e5m2%89+  d=v1 a:v1 | p=p
  F2FP.SATFINITE.E5M2.F32.PACK_AB_MERGE_C d, RZ, a, RZ
  FSETP.LTU.AND p, PT, |a|, 0x47700000, PT
  @!p IADD3 d, d, 0x1, RZ
f32_to_s32     d=v1 a:v1 | p=p
  F2I.TRUNC.NTZ d, a
  FSETP.LT.AND p, PT, |a|, 0x4f000000, PT
  SEL d, d, 0x80000000, p
f64_to_s32     d=v1 a:v2 | p=p
  F2I.F64.TRUNC d, a
  DSETP.LT.AND p, PT, |a|, 0x41e00000, PT
  SEL d, d, 0x80000000, p
f32_to_u32     d=v1 a:v1 | t=v2 p=p
  F2I.S64.TRUNC t, a
  FSETP.LT.AND p, PT, |a|, 0x5f000000, PT
  SEL d, t.lo, RZ, p
f64_to_u32     d=v1 a:v2 | t=v2 p=p
  F2I.S64.F64.TRUNC t, a
  DSETP.LT.AND p, PT, |a|, 0x43e00000, PT
  SEL d, t.lo, RZ, p
f32_to_s64     d=v2 a:v1 | p=p
  F2I.S64.TRUNC d, a
  FSETP.LT.AND p, PT, |a|, 0x5f000000, PT
  SEL d.lo, d.lo, RZ, p
  SEL d.hi, d.hi, 0x80000000, p
f64_to_s64     d=v2 a:v2 | p=p
  F2I.S64.F64.TRUNC d, a
  DSETP.LT.AND p, PT, |a|, 0x43e00000, PT
  SEL d.lo, d.lo, RZ, p
  SEL d.hi, d.hi, 0x80000000, p

rcp_f32        d=v1 a:v1
  MUFU.RCP d, a
rsq_f32        d=v1 a:v1
  MUFU.RSQ d, a
exp2_f32       d=v1 a:v1
  MUFU.EX2 d, a
mul_f32_if     d+v1 p:p a:v1 b:x1
  @p FMUL d, a, b
with_sign_f32  d=v1 a:v1 b:v1
  LOP3.LUT d, a, 0x7fffffff, b, 0xe2, !PT
gtu_f32        d=p a:v1 b:x1
  FSETP.GTU.AND d, PT, a, b, PT
ne_and_f32     d=p a:v1 b:x1 p:p
  FSETP.NEU.AND d, PT, a, b, p
eq_or_f32      d=p a:v1 b:x1 p:p
  FSETP.EQ.OR d, PT, a, b, p
lt_or_f32      d=p a:v1 b:x1 p:p
  FSETP.LT.OR d, PT, a, b, p
gtu_or_f32     d=p a:v1 b:x1 p:p
  FSETP.GTU.OR d, PT, a, b, p
div_rarely     d+v1 some:p a:v1 b:v1 | x=v2 y=v2 r=v2 e=v2 p=p
  UNLESS some
  F2F.F64.F32 x, a
  F2F.F64.F32 y, b
  MUFU.RCP64H r.hi, y.hi
  MOV r.lo, RZ
  DMUL e, x, r
  F2F.F32.F64 d, e
  DFMA e, -y, r, 0x3ff00000
  DFMA r, r, e, r
  DFMA e, -y, r, 0x3ff00000
  DFMA r, r, e, r
  DMUL e, x, r
  DFMA x, -y, e, x
  DFMA e, x, r, e
  F2F.F32.F64 x.lo, e
  DSETP.NUM.AND p, PT, e, e, PT
  FSETP.NEU.AND p, PT, a, RZ, p
  SEL d, x.lo, d, p
rcp_rarely     d+v1 some:p b:v1 | y=v2 r=v2 e=v2 p=p
  UNLESS some
  F2F.F64.F32 y, b
  MUFU.RCP64H r.hi, y.hi
  MOV r.lo, RZ
  F2F.F32.F64 d, r
  DFMA e, -y, r, 0x3ff00000
  DFMA r, r, e, r
  DFMA e, -y, r, 0x3ff00000
  DFMA r, r, e, r
  F2F.F32.F64 y.lo, r
  DSETP.NUM.AND p, PT, r, r, PT
  SEL d, y.lo, d, p
div_f64        d=v2 a:v2 b:v2 | x=v2 y=v2 r=v2 e=v2 s=v2 i=v1 j=v1 k=v1 p=p q=p
  DSETP.GT.AND q, PT, |b|, RZ, PT
  DSETP.LT.AND q, PT, |b|, 0x7ff00000, q
  DMUL x, a, 0x43500000
  LOP3.LUT i, a.hi, 0x7ff00000, RZ, 0xc0, !PT
  ISETP.EQ.AND p, PT, i, RZ, PT
  SEL x.lo, x.lo, a.lo, p
  SEL x.hi, x.hi, a.hi, p
  SEL j, RZ, 0xffffffca, !p
  SHF.R.U32.HI i, RZ, 0x14, x.hi
  LOP3.LUT i, i, 0x7ff, RZ, 0xc0, !PT
  IADD3 i, i, j, RZ
  DMUL y, b, 0x43500000
  LOP3.LUT k, b.hi, 0x7ff00000, RZ, 0xc0, !PT
  ISETP.EQ.AND p, PT, k, RZ, PT
  SEL y.lo, y.lo, b.lo, p
  SEL y.hi, y.hi, b.hi, p
  SEL j, RZ, 0xffffffca, !p
  SHF.R.U32.HI k, RZ, 0x14, y.hi
  LOP3.LUT k, k, 0x7ff, RZ, 0xc0, !PT
  IADD3 k, k, j, RZ
  IADD3 i, i, -k, RZ
  LOP3.LUT x.hi, x.hi, 0x800fffff, RZ, 0xc0, !PT
  LOP3.LUT x.hi, x.hi, 0x3ff00000, RZ, 0xfc, !PT
  LOP3.LUT y.hi, y.hi, 0x800fffff, RZ, 0xc0, !PT
  LOP3.LUT y.hi, y.hi, 0x3ff00000, RZ, 0xfc, !PT
  SEL k, y.hi, b.hi, q
  MUFU.RCP64H r.hi, k
  MOV r.lo, RZ
  DMUL s, a, r
  DFMA e, -y, r, 0x3ff00000
  DFMA r, r, e, r
  DFMA e, -y, r, 0x3ff00000
  DFMA r, r, e, r
  DFMA e, -y, r, 0x3ff00000
  DMUL d, e, e
  DFMA e, d, 0x40000000, e
  DFMA r, r, e, r
  DMUL d, x, r
  DFMA e, -y, d, x
  DFMA d, e, r, d
  DFMA e, -y, d, x
  LOP3.LUT k, e.hi, x.hi, RZ, 0x3c, !PT
  ISETP.LT.AND p, PT, k, RZ, PT
  MOV j, 0x1
  SEL j, j, 0xffffffff, !p
  SHF.R.U32.HI k, RZ, 0x14, d.hi
  LOP3.LUT k, k, 0x7ff, RZ, 0xc0, !PT
  IADD3 k, k, i, RZ
  ISETP.NE.AND p, PT, k, RZ, PT
  SEL x.lo, RZ, 0x1, p
  LOP3.LUT x.lo, x.lo, d.lo, RZ, 0x3c, !PT
  LOP3.LUT x.lo, x.lo, 0x1, RZ, 0xc0, !PT
  ISETP.LE.AND p, PT, k, RZ, PT
  ISETP.EQ.AND p, PT, x.lo, RZ, p
  DSETP.NEU.AND p, PT, e, RZ, p
  SEL j, j, RZ, p
  IADD3 d.lo, p, d.lo, j, RZ
  SHF.R.S32.HI j, RZ, 0x1f, j
  IADD3.X d.hi, d.hi, j, RZ, p, !PT
  ISETP.LT.AND p, PT, i, 0x44c, PT
  SEL i, i, 0x44c, p
  ISETP.GT.AND p, PT, i, -0x44c, PT
  SEL i, i, 0xfffffbb4, p
  SHF.R.S32.HI j, RZ, 0x1, i
  IADD3 i, i, -j, RZ
  IADD3 j, j, 0x3ff, RZ
  IADD3 i, i, 0x3ff, RZ
  SHF.L.U32 e.hi, j, 0x14, RZ
  MOV e.lo, RZ
  DMUL d, d, e
  SHF.L.U32 e.hi, i, 0x14, RZ
  DMUL d, d, e
  DSETP.GT.AND q, PT, |a|, RZ, q
  DSETP.LT.AND q, PT, |a|, 0x7ff00000, q
  SEL d.lo, d.lo, s.lo, q
  SEL d.hi, d.hi, s.hi, q
sqrt_f64       d=v2 a:v2 | x=v2 r=v2 e=v2 p=p q=p
  DSETP.LT.AND p, PT, a, 0x10000000, PT
  DMUL x, a, 0x4ff00000
  SEL x.lo, x.lo, a.lo, p
  SEL x.hi, x.hi, a.hi, p
  MUFU.RSQ64H r.hi, x.hi
  MOV r.lo, RZ
  DMUL d, x, r
  DMUL r, r, 0x3fe00000
  DFMA e, -r, d, 0x3fe00000
  DFMA d, d, e, d
  DFMA r, r, e, r
  DFMA e, -r, d, 0x3fe00000
  DFMA d, d, e, d
  DFMA r, r, e, r
  DFMA e, -d, d, x
  DFMA d, e, r, d
  DFMA e, -d, d, x
  DFMA d, e, r, d
  DMUL e, d, 0x37f00000
  SEL d.lo, e.lo, d.lo, p
  SEL d.hi, e.hi, d.hi, p
  DSETP.NEU.AND q, PT, a, RZ, PT
  DSETP.NEU.AND q, PT, a, 0x7ff00000, q
  SEL d.lo, d.lo, a.lo, q
  SEL d.hi, d.hi, a.hi, q
"""
