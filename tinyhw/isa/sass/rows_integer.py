"""The NVIDIA rows of integer arithmetic, logic, selection and predicates, in the notation that table.py explains."""
from __future__ import annotations

TEXT = """
@ alu
IADD3%9-         210 810 a10%8x c10     d= ?pu= ?pv= -a -b -c      @77-79=7 @80 @87-89=7 @90  s32
IADD3%10+        210 810 c10            d= pu= pv= -a -b -c        @77-79=7 @80 @87-89=7 @90  s32
IADD3.X%9-       210 810 a10%8x c10     d= ?pu= ?pv= ~a ~b ~c pp pq  X@74  s32
IADD3.X%10+      210 810 c10            d= pu= pv= ~a ~b ~c pp pq  X@74  s32
VIADD            836%9x                 d= a b
VIADD.ISAT       236%120                d= a b                     S32 ISAT@74,80=3
IADD.64%120      235 835 c35            d:2= a:2 -b:2              64 @73 @81-83=7 @87-89=7 @90  s32
LEA              211 811 c11            d= ?pu= -a b n:u@75-79     @64-71=255 @87-89=7 @90
LEA.HI           211 811 c11            d= ?pu= -a b c n:u@75-79   HI@80 @87-89=7 @90
LEA.HI.X         211 811 c11            d= ?pu= ~a b c n:u@75-79 pp  HI@80 X@74
LEA.HI.X.SX32    211 811 c11            d= ?pu= ~a b n:u@75-79 pp  HI@80 X@74 SX32@73 @64-71=255
LOP3.LUT         212 812 c12            ?pu= d= a b c lut:u@72-79 pp  LUT
PLOP3.LUT        81c                    pu= pv= pp pq pr lut:u@64-66,72-76 lut2:u@16-23  LUT
PLOP3.SIGN       21f                    pu= pv= a.SIGN b.SIGN c.SIGN lut:u@72-79 lut2:u@16-23  LUT
SHF              219 819                d= a b c                   dir wrap shf hi
SEL              207 807 c07            d= a b pp
SEL.64%120       607                    d:2= a:2 b:2 pp            64  plain
PRMT             216 816                d= a b c                   prmt
SGXT             21a 81a                d= a b                     sgxt
BMSK             21b 81b                d= a b
IABS             213                    d= b
VABSDIFF         214%10-                d= a b c                   u32 @81-83=7
ISETP            20c 80c a0c%8x c0c     pu= pv= a b pp             icmp u32 bool @68-70=7  s32
ISETP.EX         20c 80c a0c%8x c0c     pu= pv= a b pp pr          icmp u32 bool EX@72  s32
ISETP.64%120     20c c0c                pu= pv= a:2 b:2 pp         icmp sign64 bool @68-70=7 @80
IMNMX%8x         217 817                d= a b pp                  u32  s32
IMNMX.64%120     217                    pu= pv= d:2= a:2 b:2 pp pq  S64 @73-74=3
VIMNMX%90        248 848                d= a b pp                  u32@72 @81-86=63  s32
VIMNMX%100       248 848                d= pu= pv= a b pp          u32@72  s32
VIMNMX%120       248 848                d= a b pp                  sign@72 @81-86=63  s32
VIADDMNMX%9x     446                    d= a -b c pp               u32@72
I2I              238                    d= b                       i2i SAT
I2IP             239                    d= a b c                   i2ip SAT%8x i2ipsat%9+
MOV              202 802 a02%8x c02     d= b                       @72-75=15
MOV.64%120       202 c02                d:2= b:2                   64 @72-75=15 @80
MOV.64I%120      402                    d:2= value:u@24-87         64  plain
@ fma
IMAD             224 424 624%8x 824 a24%8x c24 e24  d= a b -c      u32 @81-83=7 @87-89=7 @90  s32 alias
IMAD.X           224                    d= a b ~c pp               u32 X@74 @81-83=7
IMAD.WIDE        225 625%8x 825         d:2= ?pu= a b -c:2         WIDE u32 @87-89=7 @90  s32
IMAD.WIDE.X      225                    d:2= ?pu= a b ~c:2 pp      WIDE u32 X@74
IMAD.HI          227                    d= ?pu= a b -c             HI u32 @87-89=7 @90
IDP              226                    d= a b -c                  idp
@ xu board reads
POPC             309                    d= ~b
FLO              300                    d= ~b                      u32 flosh @81-83=7
BREV             301                    d= b
"""
