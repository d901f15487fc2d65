"""The NVIDIA rows of integer arithmetic, logic, selection and predicates, in the notation of table.py."""
from __future__ import annotations

TEXT = """
@ alu
IADD3%9-               010:1456       d= ?pu= ?pv= -a -b -c                       @77-79=7 @80 @87-89=7 @90  s32
IADD3%10+              010:1456       d= pu= pv= -a -b -c                         @77-79=7 @80 @87-89=7 @90  s32
IADD3.X%9-             010:1456       d= ?pu= ?pv= ~a ~b ~c pp pq                 X@74  s32
IADD3.X%10+            010:1456       d= pu= pv= ~a ~b ~c pp pq                   X@74  s32
VIADD%9x               036:1456       d= a b
VIADD.32%120           036:146        d= a b                                      32
VIADD.ISAT%120         036:146        d= a b                                      S32 ISAT@74,80=3
IADD.64%120            035:146        d:2= a:2 -b:2                               64 @73 @81-83=7 @87-89=7 @90  s32
LEA                    011:1456       d= ?pu= -a b n:u@75-79                      @64-71=255 @87-89=7 @90
LEA.HI                 011:12456      d= ?pu= -a b c n:u@75-79                    HI@80 @87-89=7 @90
LEA.HI.X               011:12456      d= ?pu= ~a b c n:u@75-79 pp                 HI@80 X@74
LEA.HI.X.SX32          011:1456       d= ?pu= ~a b n:u@75-79 pp                   HI@80 X@74 SX32@73 @64-71=255
LOP3.LUT               012:1456       ?pu= d= a b c lut:u@72-79 pp                LUT
PLOP3.LUT              81c            pu= pv= pp pq pr lut:u@64-66,72-76 lut2:u@16-23  LUT
PLOP3.SIGN             21f            pu= pv= a.SIGN b.SIGN c.SIGN lut:u@72-79 lut2:u@16-23  LUT
SHF                    019:1234567    d= a b c                                    dir wrap shf hi
SEL                    007:1456       d= a b pp
SEL.64%120             607            d:2= a:2 b:2 pp                             64  plain
PRMT                   016:1234567    d= a b c                                    prmt
SGXT                   01a:1456       d= a b                                      sgxt
BMSK                   01b:1456       d= a b
IABS                   013:156        d= b
VABSDIFF%10-           014:1234567    d= a b c                                    u32 @81-83=7
ISETP                  00c:1456       pu= pv= a b pp                              icmp u32 bool @68-70=7  s32
ISETP.EX               00c:1456       pu= pv= a b pp pr                           icmp u32 bool EX@72  s32
ISETP.64%120           00c:146        pu= pv= a:2 b:2 pp                          icmp sign64 bool @68-70=7 @80  s32
IMNMX%8x               017:1456       d= a b pp                                   u32  s32
IMNMX.64%120           017:146        pu= pv= d:2= a:2 b:2 pp pq                  S64 @73-74=3  s32
VIMNMX%90              048:1456       d= a b pp                                   u32@72 @81-86=63  s32
VIMNMX%100             048:1456       d= pu= pv= a b pp                           u32@72  s32
VIMNMX%120             048:1456       d= a b pp                                   sign@72 @81-86=63  s32
VIADDMNMX%9x           046:1234567    d= a -b c pp                                u32@72
I2I                    038:156        d= b                                        i2i SAT
I2IP                   039:156        d= a b c                                    i2ip SAT%8x i2ipsat%9+
MOV                    002:1456       d= b                                        @72-75=15
MOV.64%120             002:16         d:2= b:2                                    64 @72-75=15 @80
MOV.64I%120            402            d:2= value:u@24-87                          64  plain
@ fma
IMAD                   024:1234567    d= a b -c                                   u32 @81-83=7 @87-89=7 @90  s32 alias
IMAD.X                 024:1234567    d= a b ~c pp                                u32 X@74 @81-83=7  s32
IMAD.WIDE              025:134567     d:2= ?pu= a b -c:2                          WIDE u32 @87-89=7 @90  s32
IMAD.WIDE.X            025:134567     d:2= ?pu= a b ~c:2 pp                       WIDE u32 X@74  s32
IMAD.HI                027:134567     d= ?pu= a b -c                              HI u32 @87-89=7 @90  s32
IDP                    026:156        d= a b -c                                   idp
@ xu board reads
POPC                   109:1456       d= ~b
FLO                    100:1456       d= ~b                                       u32 flosh @81-83=7
BREV                   101:1456       d= b
"""
