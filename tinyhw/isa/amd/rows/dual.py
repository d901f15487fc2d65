"""AMD rows of operations that can be paired in one instruction (VOPD, RDNA in waves of 32 lanes).

The notation is that of table.py. The opcode is the same for the first and the second operation. An opcode that is too
large for the first field can only be the second. Operands have the names of the slots, with x for the first operation
and y for the second.
"""
from __future__ import annotations

TEXT = """
@ vopd valu
v_dual_fmac_f32                              - - 0 .   f32+ f32 f32
v_dual_fmaak_f32                             - - 1 .   f32= f32 f32 literal:k32
v_dual_fmamk_f32                             - - 2 .   f32= f32 literal:k32 vsrc1:f32
v_dual_mul_f32                               - - 3 .   f32= f32 f32
v_dual_add_f32                               - - 4 .   f32= f32 f32
v_dual_sub_f32                               - - 5 .   f32= f32 f32
v_dual_subrev_f32                            - - 6 .   f32= f32 f32
v_dual_mul_dx9_zero_f32                      - - 7 .   f32= f32 f32
v_dual_mov_b32                               - - 8 .   b32= b32
v_dual_cndmask_b32                           - - 9 .   b32= b32 b32  reads:vcc
v_dual_max_f32 v_dual_max_num_f32@rdna4      - - a .   f32= f32 f32
v_dual_min_f32 v_dual_min_num_f32@rdna4      - - b .   f32= f32 f32
v_dual_dot2acc_f32_f16                       - - c .   f32+ f16x2 f16x2
v_dual_add_nc_u32                            - - 10 .  u32= u32 u32  second
v_dual_lshlrev_b32                           - - 11 .  b32= u32 b32  second
v_dual_and_b32                               - - 12 .  b32= b32 b32  second
"""
