"""The NVIDIA rows of memory, in the notation of table.py.

Global, generic, local, shared and constant memory, atomics, asynchronous copies, and barriers in shared memory.
"""
from __future__ import annotations

TEXT = """
@ memory plain board reads load
LDG              981                    d:size= desc[ub][a.64:2+o]   E@72 evict ltc size scope volatile%8x @76 @81-83=7 @90-91=3
LDG.plain        381                    d:size= [a:2+o]            E@72 evict ltc size scope @81-83=7
LDG.U%9-         981                    d:size= [a.U32+ub:2+o]     E@72 evict ltc size scope @81-83=7 @91
LD               980                    d:size= desc[ub][a.64:2+o]   E@72 evict size scope @76 @90-91=3
LD.plain%9+      980                    d:size= [a:2+o:s@32-63]           E@72 evict size scope
LDL              983                    d:size= [a+o]              evict size
LDS              984                    d:size= [a.index+o]        size
LDS.U            984                    d:size= [a.index+ub+o]     size @91
LDSM             83b                    d:count= [a+o]             16 tile count
LDC              b82                    d:csize= c[bank:u@54-58][a+w:s@38-53]  csize
@ memory plain reads store
STG              986                    desc[uc][a.64:2+o] b:size  E@72 evict size wscope volatile%8x @76 @90-91=3
ST               985                    desc[uc][a.64:2+o] b:size  E@72 evict size wscope @76 @90-91=3
ST.plain         385%9+                 [a:2+o:s@32-63] c:size    E@72 evict size wscope
STG.plain        386                    [a:2+o] b:size             E@72 evict size wscope
STG.U%9-         986                    [a.U32+uc:2+o] b:size      E@72 evict size wscope @91
STL              387                    [a+o] b:size               evict size
STS              388                    [a.index+o] b:size         size
STS.U%10+        988                    [a.index+uc+o] b:size      size @91
STSM%9+          844                    [a+o] b:count              16 tile1 count
@ memory plain board reads load store
ATOMG%8x         9a8                    pu= d:atype8= desc[uc][a.64:2+o] b:atype8  E@72 aop evict atype8 wscope @70-71=3 @91
ATOMG%90         9a8                    pu= d:atype= desc[uc][a.64:2+o] b:atype  E@72 aop evict atype wscope @70-71=3 @91
ATOMG%10+        9a8                    pu= d:atype= desc[uc][a.64:2+o:s@40-62] b:atype  E@72 aop evict atype wscope @63 @76 @91
ATOMG.CAS%8x     3a9                    pu= d:stype8= [a:2+o] b:stype8 c:stype8  E@72 CAS evict stype8 wscope
ATOMG.CAS%9+     3a9                    pu= d:stype= [a:2+o] b:stype c:stype  E@72 CAS evict stype wscope
ATOMG.float%90   9a3                    pu= d:afloat= desc[uc][a.64:2+o] b:afloat  E@72 fop evict afloat wscope @70-71=3 @91
ATOMG.float%10+  9a3                    pu= d:afloat= desc[uc][a.64:2+o:s@40-62] b:afloat  E@72 fop evict afloat wscope @63 @90-91=3
ATOMS%8x         38c                    d:stype8= [a.index+o] b:stype8  aops stype8
ATOMS%9+         38c                    d:stype= [a.index+o] b:stype  aops stype
ATOMS.CAS%8x     38d                    d:stype8= [a.index+o] b:stype8 c:stype8  CAS stype8
ATOMS.CAS%9+     38d                    d:stype= [a.index+o] b:stype c:stype  CAS stype
@ memory plain reads load store
RED%8x           98e                    desc[uc][a.64:2+o] b:atype8  E@72 rop evict atype8 wscope @71 @90-91=3
REDG%9+          98e                    desc[uc][a.64:2+o] b:atype  E@72 rop evict atype wscope @71%90 @81%10+ @90-91=3
REDG.float%9+    9a6                    desc[uc][a.64:2+o] b:afloat  E@72 fop evict afloat wscope @71%90 @81%10+ @90-91=3
LDGSTS%9-        fae                    [d+s:s@44-63] desc[uc][a.64:2+g:s@32-43] ?pp  E bypass evict ltcs copy zfill @70 @76 @91
LDGSTS.plain%9-  fae                    [d+s:s@44-63] [a.64:2+g:s@32-43] ?pp  E bypass evict ltcs copy zfill @64-69=63 @70 @91
LDGSTS.U%9-      fae                    [d+s:s@44-63] [a.U32+uc:2+g:s@32-43] ?pp  E bypass evict ltcs copy zfill @91
LDGSTS%10+       fae                    [d+s:s@44-63] desc[uc][a.64:2+g:s@32-43] ?pp  E bypass evict ltcs@72-73 copy10 zfill @76 @83 @91
LDGDEPBAR        9af                    -                          -  board
CCTL             98f                    [a:2+o:s@32-63]            E@72 cctlop cctl
CCTL.all         98f                    -                          cctlop cctlall @24-31=255
CCTL.LDCU%10+    540                    [ua:2]                     E.C.LDCU.IV.DEEP @79 @86=1 @87-91=19  board
QSPC             3aa                    pu= d= [a:2]               E@72 qspc  board
ARRIVES          9b0                    [a+uc+o]                   LDGSTSBAR.64 arvcnt%90 arvcnt@76-77%10+ @72-75=10 @91
@ memory plain board reads load store
SYNCS.PHASECHK%9+  5a7                  pu= [a+uc+o] b             PHASECHK.TRANS64 @70%9- @76%10+ trywait @91
SYNCS.ARRIVE%9+  9a7                    d= [a+uc+o] b              ARRIVE.TRANS64 red optout arrive @91  wants_view
SYNCS.EXCH%9+    5b2                    ud:2= [ua+o] ub:2          EXCH.64@72 @91  up
SYNCS.IV%9+      9b1                    [a+uc+o]                   CCTL.IV @91
SYNCS.IVALL%10+  9b1                    -                          CCTL.IVALL
@ tma plain up reads load store wants_view
UBLKCP.S.G%9+    3ba                    [ub:2] [ua:2] uc           S.G@73 @91
UBLKCP.G.S%9+    3ba                    [ub:2] [ua] uc             G.S@74 @91
UBLKPF%9+        3bc                    [ua:2] uc                  L2 @91
UBLKRED%9+       3bb                    [ub:2] [ua] uc             G.S.ADD.F32.RN@74,81,83=7 @91
UTMALDG%9+       3b4                    [ub:dims] [ua:2] uc             dims im2col mcast @91
UTMALDG.plain%9+  5b4                   [ub:dims] [ua:2]           dims @91
UTMALDG.desc%9+  5b4                    [ub:dims] [ua:2] desc[ue]  dims @76 @91
UTMAPF%9+        5b8                    [ub] [ua:2]                L2 dims @91
UTMASTG%9+       3b5                    [ub] [ua:2]                dims im2col @91
UTMAREDG%9+      3b6                    [ub] [ua:2]                dims im2col tred @91
UTMACCTL%9+      9b9                    [ua:2]                     utmacctl @91
UTMACMDFLUSH%9+  9b7
"""
