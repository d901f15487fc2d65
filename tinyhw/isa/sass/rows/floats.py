"""The NVIDIA rows of floating point arithmetic and conversions, in the notation of table.py."""
from __future__ import annotations

TEXT = """
@ fma f32
FADD                   021:1237       d= -|a| -|b|                                ftz rnd sat
FMUL                   020:1456       d= -|a| -|b|                                fmz scale rnd sat
FFMA                   023:1234567    d= -|a| -|b| -|c|                           fmz rnd sat
@ alu f32
FMNMX                  009:1456       d= -|a| -|b| pp                             ftz nan xorsign%89+
FSEL                   008:1456       d= -|a| -|b| pp                             ftz
FSET                   00a:1456       d= -|a| -|b| pp                             BF fcmp ftz bool
FSETP                  00b:1456       pu= pv= -|a| -|b| pp                        fcmp ftz bool
@ fp64 f64 board%8x reads%8x board%120 reads%120
DADD                   029:1237       d= -|a| -|c|                                rnd
DMUL                   028:1456       d= -|a| -|b|                                rnd
DFMA                   02b:1234567    d= -|a| -|b| -|c|                           rnd
DSETP                  02a:1237       pu= pv= -|a| -|b| pp                        dcmp bool
@ half half
HADD2                  030:127        d= -|a.half_a| -|b.half_b|                  bf16%9+ ftz sat
HADD2.F32              030:17         d= -a.half_a -|b.half_b|                    F32@78 ftz sat
HMUL2                  032:146        d= -|a.half_a| -|b.half_b|                  bf16%9+ fmz sat
HFMA2                  031:12467      d= -|a.half_a| -|b.half_b| -|h.half_c|      bf16 fmz sat
HFMA2.RELU             031:12467      d= -|a.half_a| -|b.half_b| -|h.half_c|      bf16 fmz RELU@79 @87-89=7
HFMA2.MMA%80,90        035:1234567    d= -|a| -|b| -|h|                           MMA bf16%90 fmz sat
HFMA2.MMA.RELU%80,90   035:1234567    d= -|a| -|b| -|h|                           MMA bf16%90 fmz RELU@79 @87-89=7
HMNMX2                 040:146        d= -|a.half_a| -|b.half_b| pp               bf16 ftz nan xorsign%89+
HSET2                  033:127        d= -|a.half_a| -|b.half_b| pp               bf16c%9+ bf fcmp ftz bool@69-70
HSETP2                 034:127        pu= pv= -|a.half_a| -|b.half_b| pp          bf16c%9+ fcmp hand ftz bool@69-70
@ pack
F2FP%80                03e:156        d= a b                                      f2relu f2bf PACK_AB rz@79-80 @64-71=255
F2FP%89+               03e:156        d= a b                                      f2relu f2to F32 PACK_AB rz@79-80 @64-71=255
F2FP.MERGE%80          03e:1567       d= b c                                      f2relu f2bf MERGE_C@78 @24-31=255
F2FP.MERGE%89+         03e:1567       d= b c                                      f2relu f2to F32 MERGE_C@78 @24-31=255
F2FP.TF32%9+           03e:156        d= b                                        TF32.F32.PACK_B@76,78=3 @86 @89 @24-31=255 @64-71=255
F2FP.UNPACK%89+        03e:16         d= b.h1hi                                   f2relu f2to%9- F16%10+ fp8 UNPACK_B@74 @89 @24-31=255 @64-71=255
F2FP.NARROW%89+        03e:1567       d= b c                                      satfinite fp8to F16.UNPACK_B_MERGE_C@73,87,90=7 @24-31=255
F2FP.PACK8%89+         03e:1567       d= a b c                                    satfinite fp8to F32.PACK_AB_MERGE_C@78,87,90=7
F2IP%89+               043:1567       d= a b c                                    f2ip ntz@74 f2relu@75
I2FP%89+               045:156        d= b                                        F32 u2fp rz @76 @85
@ convert board reads f32
F2F.F64                110:16         d:2= -|b|                                   ftz F64@75-76=3 f2f8%8x f2f32%9+ rnd
F2F.F64.F16            110:16         d:2= -|b.h1|                                ftz F64@75-76=3 F16@84 rnd
F2F                    110:156        d= -|b|:2                                   ftz f2f88@75-77%8x f2f@75-77%9+ F64@84-85=3 rnd
F2I                    105:16         d= -|b|                                     ftz f2i ffrom8%8x ffrom32%9+ toward ntz
F2I.S64                111:16         d:f2i64= -|b|:ffrom88%8x -|b|:ffrom%9+      ftz f2i64 ffrom88%8x ffrom%9+ toward ntz
F2I.F64                111:156        d= -|b|:2                                   ftz f2i F64@84-85=3 toward ntz
FRND                   107:1456       d= -|b|                                     ftz toward @76 @85
FRND.F64               113:156        d:2= -|b|:2                                 ftz F64@75-76,84-85=15 toward
I2F                    106:16         d= b                                        fto8%8x fto%9+ ifrom rnd
I2F.F64                112:16         d:2= b:ifrom                                F64@75-76=3 ifrom rnd
I2F.F64.S64            112:156        d:2= b:2                                    F64@75-76=3 ifrom64 rnd
I2F.S64                112:156        d= b:2                                      fto8%8x fto%9+ ifrom64 rnd
FCHK                   102:1456       pu= -|a| -|b|                               -
MUFU                   108:1456       d= -|b|                                     mufu
MUFU.half              108:16         d= -|b.h1|                                  mufu mufmt8%8x mufmt%9+
MUFU.64H               108:156        d= -|b|                                     mufu64
"""
