"""The NVIDIA rows of the uniform datapath, in the notation of table.py. It computes one value for all lanes of a
warp."""
from __future__ import annotations

TEXT = """
@ uniform up @91
UIADD3%9-              090:14         ud= ?qu= ?qv= -ua -ub -uc                   @77-79=7 @80 @87-89=7 @90  s32
UIADD3%10+             090:14         ud= qu= qv= -ua -ub -uc                     @77-79=7 @80 @87-89=7 @90  s32
UIADD3.X%9-            090:14         ud= ?qu= ?qv= ~ua ~ub ~uc qp qq             X@74  s32
UIADD3.64%120          097:14         ud:2= qu= qv= -ua:2 ub -uc:2                64 @77-79=7 @80 @87-89=7 @90  s32
UIADD3.X%10+           090:14         ud= qu= qv= ~ua ~ub ~uc qp qq               X@74  s32
UISETP%10+             08c:14         qu= qv= ua ub qp                            icmp u32 bool @68-70=7  s32
ULEA%9+                091:14         ud= ?qu= -ua ub n:u@75-79                   @64-69=63%9- @64-71=255%10+ @87-89=7 @90
ULOP3.LUT              092:14         ?qu= ud= ua ub uc lut:u@72-79 qp            LUT
USHF                   099:14         ud= ua ub uc                                dir wrap shf hi
UMOV.64%120            482            ud:2= value:u@24-87                         64  plain
UPRMT                  096:14         ud= ua ub uc                                -
UFMUL%120              056:1          ud= ua ub                                   scale
UI2FP%120              05e:1          ud= ub                                      F32 u2fp @76 @85
UP2UR                  883            ud= UPR ua n:u@32-63                        B3@76-77=3
UR2UP                  884            UPR ua.B3                                   @32-39=255 @76-77=3
@ uniform up
UMOV                   082:46         ud= ub
@ uniform up plain load
ULDC%9-                ab9            ud:csize= c[bank:u@54-58][w:s@38-53]        csize
LDCU%10+               7ac            ud:size= c[bank:u@54-58][ua+w:s@37-53]      size @91  board
"""
