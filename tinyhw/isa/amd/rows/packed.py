"""AMD rows of packed arithmetic, dot products and mixed precision (VOP3P), in the notation of table.py."""
from __future__ import annotations

TEXT = """
@ vop3p valu
v_pk_mad_i16                         0 . . .    i16x2= i16x2 i16x2 i16x2         op_sel neg clamp nodpp
v_pk_mul_lo_u16                      1 . . .    u16x2= u16x2 u16x2               op_sel neg clamp nodpp
v_pk_add_i16                         2 . . .    i16x2= i16x2 i16x2               op_sel neg clamp nodpp
v_pk_sub_i16                         3 . . .    i16x2= i16x2 i16x2               op_sel neg clamp nodpp
v_pk_lshlrev_b16                     4 . . .    b16x2= u16x2 b16x2               op_sel neg clamp nodpp
v_pk_lshrrev_b16                     5 . . .    b16x2= u16x2 b16x2               op_sel neg clamp nodpp
v_pk_ashrrev_i16                     6 . . .    i16x2= u16x2 i16x2               op_sel neg clamp nodpp
v_pk_max_i16                         7 . . .    i16x2= i16x2 i16x2               op_sel neg clamp nodpp
v_pk_min_i16                         8 . . .    i16x2= i16x2 i16x2               op_sel neg clamp nodpp
v_pk_mad_u16                         9 . . .    u16x2= u16x2 u16x2 u16x2         op_sel neg clamp nodpp
v_pk_add_u16                         a . . .    u16x2= u16x2 u16x2               op_sel neg clamp nodpp
v_pk_sub_u16                         b . . .    u16x2= u16x2 u16x2               op_sel neg clamp nodpp
v_pk_max_u16                         c . . .    u16x2= u16x2 u16x2               op_sel neg clamp nodpp
v_pk_min_u16                         d . . .    u16x2= u16x2 u16x2               op_sel neg clamp nodpp
v_pk_fma_f16                         e . . .    f16x2= f16x2 f16x2 f16x2         op_sel neg clamp nodpp
v_pk_add_f16                         f . . .    f16x2= f16x2 f16x2               op_sel neg clamp nodpp
v_pk_mul_f16                         10 . . .   f16x2= f16x2 f16x2               op_sel neg clamp nodpp
v_pk_min_f16 v_pk_min_num_f16@rdna4  11 . . 1b  f16x2= f16x2 f16x2               op_sel neg clamp nodpp
v_pk_max_f16 v_pk_max_num_f16@rdna4  12 . . 1c  f16x2= f16x2 f16x2               op_sel neg clamp nodpp
v_dot2_f32_f16                       23 . 13 .  f32= f16x2 f16x2 f32             op_sel@rdna neg clamp pipe:dot
v_dot4_i32_iu8                       - - 16 .   i32= iu8x4 iu8x4 i32             neg clamp nodpp pipe:dot
v_dot4_u32_u8                        29 . 17 .  u32= u8x4 u8x4 u32               neg clamp nodpp pipe:dot
v_dot8_i32_iu4                       - - 18 .   i32= iu4x8 iu4x8 i32             neg clamp nodpp pipe:dot
v_dot8_u32_u4                        2b . 19 .  u32= u4x8 u4x8 u32               neg clamp nodpp pipe:dot
v_dot2_f32_bf16                      - 1a . .   f32= bf16x2 bf16x2 f32           op_sel@rdna neg clamp pipe:dot
v_fma_mix_f32                        20 . . .   f32= f32[vsc] f32[vsc] f32[vsc]  mix op_sel clamp
v_fma_mixlo_f16                      21 . . .   f16+ f32[vsc] f32[vsc] f32[vsc]  mix op_sel clamp
v_fma_mixhi_f16                      22 . . .   f16+ f32[vsc] f32[vsc] f32[vsc]  mix op_sel clamp
v_pk_minimum3_f16                    - 1b - -   f16x2= f16x2 f16x2 f16x2         clamp neg op_sel
v_pk_maximum3_f16                    - 1c - -   f16x2= f16x2 f16x2 f16x2         clamp neg op_sel
v_pk_minimum_f16                     - - - 1d   f16x2= f16x2 f16x2               op_sel neg clamp nodpp
v_pk_maximum_f16                     - - - 1e   f16x2= f16x2 f16x2               op_sel neg clamp nodpp
v_dot4_f32_fp8_bf8                   - - - 24   f32= fp8x4 bf8x4 f32             neg pipe:dot neg_lo=4 neg_hi=4 vdpp
v_dot4_f32_bf8_fp8                   - - - 25   f32= bf8x4 fp8x4 f32             neg pipe:dot neg_lo=4 neg_hi=4 vdpp
v_dot2_i32_i16                       26 . - -   i32= i16x2 i16x2 i32             clamp neg pipe:dot
v_dot4_f32_fp8_fp8                   - - - 26   f32= fp8x4 fp8x4 f32             neg pipe:dot neg_lo=4 neg_hi=4 vdpp
v_dot2_u32_u16                       27 . - -   u32= u16x2 u16x2 u32             clamp neg pipe:dot
v_dot4_f32_bf8_bf8                   - - - 27   f32= bf8x4 bf8x4 f32             neg pipe:dot neg_lo=4 neg_hi=4 vdpp
v_dot4_i32_i8                        28 . - -   i32= i8x4 i8x4 i32               neg clamp pipe:dot
v_dot8_i32_i4                        2a . - -   i32= i4x8 i4x8 i32               neg clamp pipe:dot
v_pk_fma_f32                         30 . - -   f32x2= f32x2 f32x2 f32x2         op_sel neg clamp
v_pk_mul_f32                         31 . - -   f32x2= f32x2 f32x2               op_sel neg clamp
v_pk_add_f32                         32 . - -   f32x2= f32x2 f32x2               op_sel neg clamp
v_pk_mov_b32                         33 . - -   b32x2= b32x2 b32x2               op_sel neg clamp
v_accvgpr_read_b32                   58 . - -   b32= b32[a]
v_accvgpr_write_b32                  59 . - -   b32[a]= b32[vc]
"""
