"""The NVIDIA rows of the matrix units, in the notation of table.py.

Of tcgen05 (sm_100), only forms that were seen in code are listed.
"""
from __future__ import annotations

TEXT = """
@ tensor plain
HMMA.16816.F16   23c                    d:2= a:4 b:2 c:2           16816@75 F16
HMMA.16816       23c                    d:4= a:4 b:2 c:4           16816@75 F32@76 mmabf
HMMA.1688.F16    23c                    d:2= a:2 b c:2             1688 F16
HMMA.1688        23c                    d:4= a:2 b c:4             1688 F32@76 mmabf
HMMA.1688.TF32   23c                    d:4= a:4 b:2 c:4           1688 F32@76 TF32@82-83=2
HMMA.1684        23c                    d:4= a:2 b c:4             1684@78 F32@76 mmafmt
HMMA.SP.16832    23c                    d:4= a:4 b:4 c:4 e:R@40-47 n:u@48-49  SP@73 16832@75,78=3 F32@76 mmafmt
IMMA.16816       237                    d:4= a.ROW:2 b.COL c:4     16816@74 itype_a itype_b mmasat @86
IMMA.16832       237                    d:4= a.ROW:4 b.COL:2 c:4   16832@74-75=3 itype_a itype_b mmasat @86
IMMA.16864%8x    237                    d:4= a.ROW:4 b.COL:2 c:4   16864@74 S4.S4@76,78=3 mmasat @83-86=15
BMMA%9-          23d                    d:4= a.ROW:4 b.COL:2 c:4   168256.AND.POPC @74,76,78,80=15
DMMA%8x          23f                    d:4= a:2 b:2 c:4           884  board reads
DMMA.8x8x4%9+    23f                    d:4= a:2 b:2 c:4           8x8x4  board reads
DMMA.16x8x4%90   23f                    d:8= a:4 b:2 c:8           16x8x4@76  board reads
QMMA.F16%89      27a                    d:2= a.ROW:4 b.COL:2 c:2   16832@74-75=3 F16 fp8mma
QMMA.F16%120     27a                    d:2= a:4 b:2 c:2           16832@74-75=3 F16 fp8mma
QMMA%89          27a                    d:4= a.ROW:4 b.COL:2 c:4   16832@74-75=3 F32@77 fp8mma
QMMA%120         27a                    d:4= a:4 b:2 c:4           16832@74-75=3 F32@77 fp8mma
@ gmma plain barrier wants_view @91
HGMMA%90         9f0                    d:gmma16= gdesc[ua:4].negA.negB.tnspA.tnspB c:gmma16 ?qi ?group:gsb@84-86  gmma16 F32@75 gmbf
HGMMA.F16%90     9f0                    d:gmma16h= gdesc[ua:4].negA.negB.tnspA.tnspB c:gmma16h ?qi ?group:gsb@84-86  gmma16h F16
HGMMA.TF32%90    9f0                    d:gmma8= gdesc[ua:4].negA.negB c:gmma8 ?qi ?group:gsb@84-86  gmma8 @58 F32@75 TF32@77
HGMMA.R%90       df0                    d:gmma16= a:4 gdesc[ub:2].negB.tnspB c:gmma16 ?qi ?group:gsb@84-86  gmma16 F32@75 gmbf
IGMMA%90         9f1                    d:gmmai= gdesc[ua:4] c:gmmai ?qi ?group:gsb@84-86  gmmai itype_a itype_b@82-83 sat@75
QGMMA%90         9f3                    d:gmma32= gdesc[ua:4] c:gmma32 ?qi ?group:gsb@84-86  gmma32 F32@75 fp8mma@76-77
QGMMA.R%90       df3                    d:gmma32= a:4 gdesc[ub:2] c:gmma32 ?qi ?group:gsb@84-86  gmma32 F32@75 fp8mma@76-77
@ tensor5 up plain board reads @91
UTCBAR%100       3e9                    [ua] ub                    @64-71=255
UTCCP%100        9e7                    tmem[ua] gdesc[ub:2]       T.S
UTCATOMSWS%100   5e3                    qu= ud= ub                 FIND_AND_SET.ALIGN@75
UTCATOMSWS.AND%100  9e3                 ud= ub                     AND
UTCHMMA%100      5ea                    gdesc[ua:2] gdesc[ub:2] tmem[uc] tmem[ue] idesc[ue'] qp  cta2 @48-55=255
UTCHMMA.T%100    9ea                    tmem[ua] gdesc[ub:2] tmem[uc] tmem[ue] idesc[ue'] qp  cta2 @48-55=255
UTCQMMA%100      5ea                    gdesc[ua:2] gdesc[ub:2] tmem[uc] tmem[ue] idesc[ue'] qp  cta2 @48-55=255 @72-73=3
LDTM%100         9ee                    d:4= tmem[ub]              x4@82,84=3
LDTM.16dp%100    9ee                    d:4= tmem[ub]              16dp256bit@81
STTM%100         9ed                    tmem[uc] b:4               x4@82,84=3
"""
