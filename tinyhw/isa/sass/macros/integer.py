"""Macros of integers, logic, choices and predicates, in the notation of macros.py."""
from __future__ import annotations

TEXT = """
move           d=v1 a:x1
  MOV d, a
add32          d=v1 a:x1 b:x1
  IADD3 d, a, b, RZ
sub32          d=v1 a:v1 b:v1
  IADD3 d, a, -b, RZ
sum32          d=v1 a:x1 b:x1 c:x1
  IADD3 d, a, b, c
mad32          d=v1 a:v1 b:x1 c:x1
  IMAD d, a, b, c
mul32          d=v1 a:x1 b:x1
  IMAD d, a, b, RZ
dot4_uu        d=v1 a:v1 b:v1 c:v1
  IDP.4A.U8.U8 d, a, b, c
dot4_us        d=v1 a:v1 b:v1 c:v1
  IDP.4A.U8.S8 d, a, b, c
dot4_su        d=v1 a:v1 b:v1 c:v1
  IDP.4A.S8.U8 d, a, b, c
dot4_ss        d=v1 a:v1 b:v1 c:v1
  IDP.4A.S8.S8 d, a, b, c
and32          d=v1 a:x1 b:x1
  LOP3.LUT d, a, b, RZ, 0xc0, !PT
or32           d=v1 a:x1 b:x1
  LOP3.LUT d, a, b, RZ, 0xfc, !PT
xor32          d=v1 a:x1 b:x1
  LOP3.LUT d, a, b, RZ, 0x3c, !PT
or_three       d=v1 a:v1 b:x1 c:x1
  LOP3.LUT d, a, b, c, 0xfe, !PT
pack_halves    d=v1 a:v1 b:v1
  PRMT d, a, 0x7610, b
choose_bits    d=v1 m:v1 a:x1 b:v1
  LOP3.LUT d, m, a, b, 0xca, !PT
choose_bits_not  d=v1 m:v1 b:x1 a:v1
  LOP3.LUT d, m, b, a, 0xac, !PT
any_bits       d=p a:v1 m:x1
  LOP3.LUT d, RZ, a, m, RZ, 0xc0, !PT
shl32          d=v1 a:x1 n:x1
  SHF.L.U32 d, a, n, RZ
shr_u32        d=v1 a:x1 n:x1
  SHF.R.U32.HI d, RZ, n, a
shr_s32        d=v1 a:x1 n:x1
  SHF.R.S32.HI d, RZ, n, a
rotate32       d=v1 a:v1 n:i
  SHF.L.W.U32.HI d, a, n, a
max_s32%8x     d=v1 a:x1 b:x1
  IMNMX d, a, b, !PT
max_u32%8x     d=v1 a:x1 b:x1
  IMNMX.U32 d, a, b, !PT
max_s32%9+     d=v1 a:x1 b:x1
  VIMNMX d, a, b, !PT
max_u32%9+     d=v1 a:x1 b:x1
  VIMNMX.U32 d, a, b, !PT
sign_extend    d=v1 a:v1 n:i
  SGXT d, a, n
choose         d=v1 p:p a:x1 b:x1
  SEL d, a, b, p
choose_not     d=v1 p:p a:x1 b:x1
  SEL d, a, b, !p
flag           d=v1 p:p a:x1
  SEL d, RZ, a, !p

pack64         d=v2 lo:x1 hi:x1
  MOV d.lo, lo
  MOV d.hi, hi
move64         d=v2 a:v2
  MOV d.lo, a.lo
  MOV d.hi, a.hi
move128        d=v4 a:v4
  MOV d.0, a.0
  MOV d.1, a.1
  MOV d.2, a.2
  MOV d.3, a.3
bytes_of0      d=v1 a:v4 s:i
  PRMT d, a.0, s, RZ
bytes_of1      d=v1 a:v4 s:i
  PRMT d, a.1, s, RZ
bytes_of2      d=v1 a:v4 s:i
  PRMT d, a.2, s, RZ
bytes_of3      d=v1 a:v4 s:i
  PRMT d, a.3, s, RZ
sign64         d=v2 a:v1
  SHF.R.S32.HI d.hi, RZ, 0x1f, a
  MOV d.lo, a
add64          d=v2 a:v2 b:x2 | c=p
  IADD3 d.lo, c, a.lo, b.lo, RZ
  IADD3.X d.hi, a.hi, b.hi, RZ, c, !PT
sub64          d=v2 a:v2 b:v2 | c=p
  IADD3 d.lo, c, a.lo, -b.lo, RZ
  IADD3.X d.hi, a.hi, ~b.hi, RZ, c, !PT
mul64          d=v2 a:v2 b:x2
  IMAD.WIDE.U32 d, a.lo, b.lo, RZ
  IMAD d.hi, a.lo, b.hi, d.hi
  IMAD d.hi, a.hi, b.lo, d.hi
mul_wide_u     d=v2 a:v1 b:x1
  IMAD.WIDE.U32 d, a, b, RZ
mul_wide_s     d=v2 a:v1 b:x1
  IMAD.WIDE d, a, b, RZ
mad_wide_u     d=v2 a:v1 b:x1 c:v2
  IMAD.WIDE.U32 d, a, b, c
mad_wide_s     d=v2 a:v1 b:x1 c:v2
  IMAD.WIDE d, a, b, c
and64          d=v2 a:v2 b:x2
  LOP3.LUT d.lo, a.lo, b.lo, RZ, 0xc0, !PT
  LOP3.LUT d.hi, a.hi, b.hi, RZ, 0xc0, !PT
or64           d=v2 a:v2 b:x2
  LOP3.LUT d.lo, a.lo, b.lo, RZ, 0xfc, !PT
  LOP3.LUT d.hi, a.hi, b.hi, RZ, 0xfc, !PT
xor64          d=v2 a:v2 b:x2
  LOP3.LUT d.lo, a.lo, b.lo, RZ, 0x3c, !PT
  LOP3.LUT d.hi, a.hi, b.hi, RZ, 0x3c, !PT
shl64          d=v2 a:v2 n:x1
  SHF.L.U64.HI d.hi, a.lo, n, a.hi
  SHF.L.U32 d.lo, a.lo, n, RZ
shr_u64        d=v2 a:v2 n:x1
  SHF.R.U64 d.lo, a.lo, n, a.hi
  SHF.R.U32.HI d.hi, RZ, n, a.hi
shr_s64        d=v2 a:v2 n:x1
  SHF.R.S64 d.lo, a.lo, n, a.hi
  SHF.R.S32.HI d.hi, RZ, n, a.hi
choose64       d=v2 p:p a:v2 b:x2
  SEL d.lo, a.lo, b.lo, p
  SEL d.hi, a.hi, b.hi, p

lt_s32         d=p a:v1 b:x1
  ISETP.LT.AND d, PT, a, b, PT
lt_u32         d=p a:v1 b:x1
  ISETP.LT.U32.AND d, PT, a, b, PT
le_s32         d=p a:v1 b:x1
  ISETP.LE.AND d, PT, a, b, PT
gt_s32         d=p a:v1 b:x1
  ISETP.GT.AND d, PT, a, b, PT
gt_u32         d=p a:v1 b:x1
  ISETP.GT.U32.AND d, PT, a, b, PT
eq_u32         d=p a:x1 b:x1
  ISETP.EQ.AND d, PT, a, b, PT
ne_u32         d=p a:x1 b:x1
  ISETP.NE.AND d, PT, a, b, PT
lt_s64         d=p a:v2 b:x2 | c=p
  ISETP.LT.U32.AND c, PT, a.lo, b.lo, PT
  ISETP.LT.AND.EX d, PT, a.hi, b.hi, PT, c
lt_u64         d=p a:v2 b:x2 | c=p
  ISETP.LT.U32.AND c, PT, a.lo, b.lo, PT
  ISETP.LT.U32.AND.EX d, PT, a.hi, b.hi, PT, c
le_s64         d=p a:v2 b:x2 | c=p
  ISETP.LE.U32.AND c, PT, a.lo, b.lo, PT
  ISETP.LE.AND.EX d, PT, a.hi, b.hi, PT, c
eq_u64         d=p a:v2 b:x2 | c=p
  ISETP.EQ.U32.AND c, PT, a.lo, b.lo, PT
  ISETP.EQ.AND.EX d, PT, a.hi, b.hi, PT, c
ne_u64         d=p a:v2 b:x2 | c=p
  ISETP.NE.U32.AND c, PT, a.lo, b.lo, PT
  ISETP.NE.AND.EX d, PT, a.hi, b.hi, PT, c

p_set          d=p
  PLOP3.LUT d, PT, PT, PT, PT, 0x80, 0x0
p_clear        d=p
  PLOP3.LUT d, PT, PT, PT, PT, 0x8, 0x0
p_move         d=p a:p
  PLOP3.LUT d, PT, a, PT, PT, 0x80, 0x0
p_and          d=p a:p b:p
  PLOP3.LUT d, PT, a, b, PT, 0x80, 0x0
p_or           d=p a:p b:p
  PLOP3.LUT d, PT, a, b, PT, 0xa8, 0x0
p_xor          d=p a:p b:p
  PLOP3.LUT d, PT, a, b, PT, 0x28, 0x0
p_choose       d=p c:p a:p b:p
  PLOP3.LUT d, PT, c, a, b, 0xca, 0x0
any_lane       d=p a:p
  VOTE.ANY d, a
p_swap         a+p b+p
  PLOP3.LUT a, b, a, b, PT, 0x88, 0xa0
swap           a+v1 b+v1
  LOP3.LUT a, a, b, RZ, 0x3c, !PT
  LOP3.LUT b, a, b, RZ, 0x3c, !PT
  LOP3.LUT a, a, b, RZ, 0x3c, !PT

lane           d=v1
  S2R d, SR_TID.X
block          d=v1
  S2R d, SR_CTAID.X
barrier
  BAR.SYNC.DEFER_BLOCKING 0x0
end
  EXIT
"""
