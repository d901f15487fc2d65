"""The NVIDIA rows of control flow, synchronisation, warps and special registers, in the notation of table.py."""
from __future__ import annotations

TEXT = """
@ branch plain
BRA              947                    ?pp t:to@34-81%8x t:to@16-23,34-81%9+  step  jump
BRA.U%9+         947                    ?pp t:to@16-23,34-81        step U@32 any  jump
BRA.DIV%9+       947                    ?pp ua t:to@16-23,34-81    DIV@32-33=2 @91  jump
BRA.CONV%8x      947                    ?pp ~vr t:to@34-81  CONV@32-33=3 @91  jump
BRA.UP%9+        547                    ?pp qb t:to@16-23,34-81  U@32 any @91  jump
BRX              949                    ?pp a:2&r:rel@34-81%8x a:2&r:rel@16-23,34-81%9+  step  end
BSSY             945                    ?pp bar= t:to@34-63        reconv%10+  barrier
BSYNC            941                    ?pp bar                    reconv%10+  barrier
CALL             944                    ?pp t:to@34-81%8x t:to@16-23,34-81%9+  REL noinc  call
CALL.ABS%120     343                    ?pp a:2                    ABS noinc  call
RET              950                    ?pp a:2&t:to@34-81%8x a:2&t:to@16-23,34-81%9+  REL nodec  end
WARPSYNC%8x      948                    ?pp n:u@32-63              -  barrier
WARPSYNC.ALL%9+  948                    ?pp                        ALL  barrier
WARPSYNC.R%8x    348                    ?pp b                      -  barrier
WARPSYNC.COLLECTIVE%9+  348             ?pp a t:to@16-23,34-81     COLLECTIVE@86  barrier
ENDCOLLECTIVE%9+  91b                   ?pp                        -  barrier
EXIT             94d                    ?pp                        keep atexit  end
YIELD%9+         946                    ?pp                        -  barrier
@ sync plain barrier
BAR              b1d                    id:u@54-57 ?n:u@42-53      SYNC defer  reads wants_view
BAR.ARV          b1d                    id:u@54-57 n:u@42-53       ARV@77  reads wants_view
BAR.RED          b1d                    id:u@54-57 ?n:u@42-53 pp   RED@78 barred defer  reads wants_view
BAR.R            51d                    b                          SYNC defer  reads wants_view
BAR.RR           31d                    b b                        SYNC defer  reads wants_view
B2R              31c                    d= ?pu=                    RESULT@78  board
MEMBAR           992                    -                          order mem  reads
ERRBAR           9ab
CGAERRBAR%9+     5ab
DEPBAR           91a                    boards:boards@32-37        -
DEPBAR.LE        91a                    board:sb@44-46 n:u@38-43 ?boards:boards@32-37  LE@47
FENCE%9+         3c6                    -                          VIEW.ASYNC sync  board makes_view
UCGABAR_ARV%9+   9c7                    -                          @91  up
UCGABAR_WAIT%9+  dc7                    -                          @91  up
PREEXIT%9+       82d
ACQBULK%9+       82e
WARPGROUP%90     9c5                    -                          wgwait
WARPGROUP.DEPBAR%90  9c5                group:gsb0@84-86 n:u@72-74  DEPBAR.LE@47,80=3
USETMAXREG%90    9c8                    n:u@32-41                  DEALLOC CTAPOOL@74 @72 @81-83=7 @91  up board reads
USETMAXREG.TRY%90  9c8                  qu= n:u@32-41              TRY_ALLOC@73 CTAPOOL@74 @91  up board reads
@ misc plain
NOP              918
NANOSLEEP        95d                    ?pp n:u@32-63              -
NANOSLEEP.R      35d                    ?pp b                      -
PMTRIG           801                    ?pp n:u@32-47              -
BPT              95c                    ?n:u@34-36                 TRAP@84-85=3
LEPC%120         94e                    d:2= t:at@24-81            -
S2R              919                    d= sr                      -  board
CS2R             805                    d:wide= sr                 wide
S2UR%9+          9c3                    ud= sr                     -  up board
@ warp plain
VOTE             806                    ?d= pu= pp                 vote
VOTEU            886                    ?ud= qu= pp                vote
CREDUX%100       2cc                    ud= a                      cred redux_s
ELECT%9+         82f                    pu= ud= pp                 -
MOVM             23a                    d= a                       16.MT88  board reads
MOVM.U4%10+      23a                    d= a                       U4TO8.M832@75,78=3  board reads
@ r2ur plain
R2UR%9+          2ca                    ?pu= ud= a                 cast%10+
R2UR.OR%9+       2ca                    pu= ud= a                  OR@84 cast%10+
@ warp plain board reads
SHFL             389                    pu= d= a b c               shfl
SHFL.M           589                    pu= d= a b m:u@40-52       shfl
SHFL.L           989                    pu= d= a n:u@53-57 c       shfl
SHFL.LM          f89                    pu= d= a n:u@53-57 m:u@40-52  shfl
MATCH.ALL        3a1                    pu= d= a:u64               ALL u64
MATCH.ANY        3a1                    d= a:u64                   ANY@79 u64 @81-83=7
REDUX            3c4                    ud= a                      redux redux_s
"""
