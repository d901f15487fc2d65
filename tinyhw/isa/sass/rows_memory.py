"""The NVIDIA rows of memory: global, generic, local, shared and constant memory, atomics, asynchronous copies and
barriers in shared memory, in the notation that table.py explains."""
from __future__ import annotations

TEXT = """
@ memory plain board reads load
LDG              981                    d:size= desc[vb][a.64:2+o]   E@72 evict ltc size scope volatile%8x @76 @81-83=7 @90-91=3
LDG.plain        381                    d:size= [a:2+o]            E@72 evict ltc size scope @81-83=7
LD               980                    d:size= desc[vb][a.64:2+o]   E@72 evict size scope @76 @90-91=3
LD.plain%9+      980                    d:size= [a:2+o]            E@72 evict size scope
LDL              983                    d:size= [a+o]              evict size
LDS              984                    d:size= [a.index+o]        size
LDS.U            984                    d:size= [a.index+vb+o]     size @91
LDSM             83b                    d:count= [a+o]             16 tile count
LDC              b82                    d:size= c[bank:u@54-58][a+w:s@38-53]  size
@ memory plain reads store
STG              986                    desc[vc][a.64:2+o] b:size  E@72 evict size scope volatile%8x @76 @90-91=3
ST               985                    desc[vc][a.64:2+o] b:size  E@72 evict size scope @76 @90-91=3
ST.plain         385%9+                 [a:2+o:s24@32-55] c:size    E@72 evict size scope
STL              387                    [a+o] b:size               evict size
STS              388                    [a.index+o] b:size         size
STS.U%10+        988                    [a.index+vc+o] b:size      size @91
STSM%9+          844                    [a+o] b:count              16 tile count
@ memory plain board reads load store
ATOMG%8x         9a8                    pu= d:atype8= desc[vc][a.64:2+o] b:atype8  E@72 aop evict atype8 scope @70-71=3 @91
ATOMG%90         9a8                    pu= d:atype= desc[vc][a.64:2+o] b:atype  E@72 aop evict atype scope @70-71=3 @91
ATOMG%10+        9a8                    pu= d:atype= desc[vc][a.64:2+o:s@40-62] b:atype  E@72 aop evict atype scope @63 @76 @91
ATOMG.CAS        3a9                    pu= d:stype= [a:2+o] b:stype c:stype  E@72 CAS evict stype scope
ATOMG.float%90   9a3                    pu= d:afloat= desc[vc][a.64:2+o] b:afloat  E@72 fop evict afloat scope @70-71=3 @91
ATOMG.float%10+  9a3                    pu= d:afloat= desc[vc][a.64:2+o:s@40-62] b:afloat  E@72 fop evict afloat scope @63 @90-91=3
ATOMS            38c                    d:stype= [a.index+o] b:stype  aop stype
ATOMS.CAS        38d                    d:stype= [a.index+o] b:stype c:stype  CAS stype
@ memory plain reads load store
RED%8x           98e                    desc[vc][a.64:2+o] b:atype8  E@72 rop evict atype8 scope @71 @90-91=3
REDG%9+          98e                    desc[vc][a.64:2+o] b:atype  E@72 rop evict atype scope @71%90 @81%10+ @90-91=3
REDG.float%9+    9a6                    desc[vc][a.64:2+o] b:afloat  E@72 frop evict afloat scope @71%90 @81%10+ @90-91=3
LDGSTS%9-        fae                    [d+s:s@44-63] desc[vc][a.64:2+g:s@32-43] ?pp  E bypass evict ltcs copy scope zfill @70 @76 @91
LDGSTS%10+       fae                    [d+s:s@44-63] desc[vc][a.64:2+g:s@32-43] ?pp  E bypass evict ltcs@72-73 copy10 scope zfill @76 @83 @91
LDGDEPBAR        9af                    -                          -  board
CCTL             98f                    [a:2+o:s@32-63]            E@72 cctlop cctl
CCTL.all         98f                    -                          cctlop cctlall @24-31=255
CCTL.LDCU%10+    540                    [va:2]                     E.C.LDCU.IV.DEEP @79 @86=1 @87-91=19
QSPC             3aa                    pu= d= [a:2]               E@72 qspc
ARRIVES          9b0                    [a+uc+o]                   LDGSTSBAR.64 arvcnt%9- arvcnt@76-77%10+ @72-75=10 @91
@ memory plain board reads load store
SYNCS.PHASECHK%9+  5a7                  pu= [a+vc+o] b             PHASECHK.TRANS64 @70%9- @76%10+ trywait @91
SYNCS.ARRIVE%9+  9a7                    d= [a+uc+o] b              ARRIVE.TRANS64 red optout arrive @91
SYNCS.EXCH%9+    5b2                    ud:2= [va+o] vb:2          EXCH.64@72 @91
SYNCS.IV%9+      9b1                    [a+vc+o]                   CCTL.IV @91
SYNCS.IVALL%10+  9b1                    -                          CCTL.IVALL
UBLKCP.S.G%9+    3ba                    [vb:2] [va:2] vc           S.G@73 @91
UBLKCP.G.S%9+    3ba                    [vb:2] [va] vc             G.S@74 @91
UBLKPF%9+        3bc                    [va:2] vc                  L2 @91
UBLKRED%9+       3bb                    [vb:2] [va] vc             G.S.ADD.F32.RN@74,81,83=7 @91
UTMALDG%9+       3b4                    [vb] [va:2] vc             dims im2col mcast @91
UTMALDG.plain%9+  5b4                   [vb] [va:2]                dims im2col @91
UTMALDG.desc%9+  5b4                    [vb] [va:2] desc[vd:UR@40-45]  dims im2col @76 @91
UTMAPF%9+        5b8                    [vb] [va:2]                L2 dims @91
UTMASTG%9+       3b5                    [vb] [va:2]                dims im2col @91
UTMAREDG%9+      3b6                    [vb] [va:2]                dims im2col tred @91
UTMACCTL%9+      9b9                    [va:2]                     utmacctl @91
UTMACMDFLUSH%9+  9b7
"""
