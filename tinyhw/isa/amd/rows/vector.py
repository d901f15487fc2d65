"""AMD rows of vector instructions with a short encoding (VOP1, VOP2). They have one or two sources. The notation is
that of table.py."""
from __future__ import annotations

TEXT = """
@ vop1 valu
v_nop                                         0 . . .    -                 short nodpp@rdna nosdwa
v_mov_b32                                     1 . . .    b32= b32
v_readfirstlane_b32                           2 . . .    sdst:b32= b32[v]  short nodpp nosdwa nom0
v_cvt_i32_f64                                 3 . . .    i32= f64          clamp omod pipe:f64
v_cvt_f64_i32                                 4 . . .    f64= i32          clamp omod pipe:f64
v_cvt_f32_i32                                 5 . . .    f32= i32          clamp omod
v_cvt_f32_u32                                 6 . . .    f32= u32          clamp omod
v_cvt_u32_f32                                 7 . . .    u32= f32          clamp omod
v_cvt_i32_f32                                 8 . . .    i32= f32          clamp omod
v_cvt_f16_f32                                 a . . .    f16= f32          clamp omod
v_cvt_f32_f16                                 b . . .    f32= f16          clamp omod
v_cvt_nearest_i32_f32 v_cvt_rpi_i32_f32@cdna  c . . .    i32= f32          clamp
v_cvt_floor_i32_f32 v_cvt_flr_i32_f32@cdna    d . . .    i32= f32          clamp
v_cvt_off_f32_i4                              e . . .    f32= b32          clamp omod
v_cvt_f32_f64                                 f . . .    f32= f64          clamp omod pipe:f64
v_cvt_f64_f32                                 10 . . .   f64= f32          clamp omod pipe:f64
v_cvt_f32_ubyte0                              11 . . .   f32= b32          clamp omod
v_cvt_f32_ubyte1                              12 . . .   f32= b32          clamp omod
v_cvt_f32_ubyte2                              13 . . .   f32= b32          clamp omod
v_cvt_f32_ubyte3                              14 . . .   f32= b32          clamp omod
v_cvt_u32_f64                                 15 . . .   u32= f64          clamp omod pipe:f64
v_cvt_f64_u32                                 16 . . .   f64= u32          clamp omod pipe:f64
v_trunc_f64                                   17 . . .   f64= f64          clamp omod pipe:f64
v_ceil_f64                                    18 . . .   f64= f64          clamp omod pipe:f64
v_rndne_f64                                   19 . . .   f64= f64          clamp omod pipe:f64
v_floor_f64                                   1a . . .   f64= f64          clamp omod pipe:f64
v_pipeflush                                   - - 1b .   -                 short nodpp
v_mov_b16                                     - - 1c .   b16= b16          true16
v_fract_f32                                   1b . 20 .  f32= f32          clamp omod
v_trunc_f32                                   1c . 21 .  f32= f32          clamp omod
v_ceil_f32                                    1d . 22 .  f32= f32          clamp omod
v_rndne_f32                                   1e . 23 .  f32= f32          clamp omod
v_floor_f32                                   1f . 24 .  f32= f32          clamp omod
v_exp_f32                                     20 . 25 .  f32= f32          clamp omod pipe:trans
v_log_f32                                     21 . 27 .  f32= f32          clamp omod pipe:trans
v_rcp_f32                                     22 . 2a .  f32= f32          clamp omod pipe:trans
v_rcp_iflag_f32                               23 . 2b .  f32= f32          clamp omod pipe:trans
v_rsq_f32                                     24 . 2e .  f32= f32          clamp omod pipe:trans
v_rcp_f64                                     25 . 2f .  f64= f64          clamp omod pipe:trans
v_rsq_f64                                     26 . 31 .  f64= f64          clamp omod pipe:trans
v_sqrt_f32                                    27 . 33 .  f32= f32          clamp omod pipe:trans
v_sqrt_f64                                    28 . 34 .  f64= f64          clamp omod pipe:trans
v_sin_f32                                     29 . 35 .  f32= f32          clamp omod pipe:trans
v_cos_f32                                     2a . 36 .  f32= f32          clamp omod pipe:trans
v_not_b32                                     2b . 37 .  b32= b32
v_bfrev_b32                                   2c . 38 .  b32= b32
v_clz_i32_u32 v_ffbh_u32@cdna                 2d . 39 .  i32= u32
v_ctz_i32_b32 v_ffbl_b32@cdna                 2e . 3a .  i32= b32
v_cls_i32 v_ffbh_i32@cdna                     2f . 3b .  i32= i32
v_frexp_exp_i32_f64                           30 . 3c .  i32= f64          clamp omod pipe:f64
v_frexp_mant_f64                              31 . 3d .  f64= f64          clamp omod pipe:f64
v_fract_f64                                   32 . 3e .  f64= f64          clamp omod pipe:f64
v_frexp_exp_i32_f32                           33 . 3f .  i32= f32          clamp
v_frexp_mant_f32                              34 . 40 .  f32= f32          clamp omod
v_movreld_b32                                 - - 42 .   b32= b32          reads:m0
v_movrels_b32                                 - - 43 .   b32= b32[v]       reads:m0
v_movrelsd_b32                                - - 44 .   b32= b32[v]       reads:m0
v_movrelsd_2_b32                              - - 48 .   b32= b32[v]       reads:m0
v_cvt_f16_u16                                 39 . 50 .  f16= u16          clamp omod
v_cvt_f16_i16                                 3a . 51 .  f16= i16          clamp omod
v_cvt_u16_f16                                 3b . 52 .  u16= f16          clamp omod
v_cvt_i16_f16                                 3c . 53 .  i16= f16          clamp omod
v_rcp_f16                                     3d . 54 .  f16= f16          clamp omod pipe:trans
v_sqrt_f16                                    3e . 55 .  f16= f16          clamp omod pipe:trans
v_rsq_f16                                     3f . 56 .  f16= f16          clamp omod pipe:trans
v_log_f16                                     40 . 57 .  f16= f16          clamp omod pipe:trans
v_exp_f16                                     41 . 58 .  f16= f16          clamp omod pipe:trans
v_frexp_mant_f16                              42 . 59 .  f16= f16          clamp omod
v_frexp_exp_i16_f16                           43 . 5a .  i16= f16          clamp omod
v_floor_f16                                   44 . 5b .  f16= f16          clamp omod
v_ceil_f16                                    45 . 5c .  f16= f16          clamp omod
v_trunc_f16                                   46 . 5d .  f16= f16          clamp omod
v_rndne_f16                                   47 . 5e .  f16= f16          clamp omod
v_fract_f16                                   48 . 5f .  f16= f16          clamp omod
v_sin_f16                                     49 . 60 .  f16= f16          clamp omod pipe:trans
v_cos_f16                                     4a . 61 .  f16= f16          clamp omod pipe:trans
v_sat_pk_u8_i16                               4f . 62 .  b16= i16x2
v_cvt_norm_i16_f16                            4d . 63 .  i16= f16          clamp omod
v_cvt_norm_u16_f16                            4e . 64 .  u16= f16          clamp omod
v_swap_b32                                    51 . 65 .  b32+ b32[v]+      short nodpp nosdwa
v_permlane64_b32                              - - 67 .   b32= b32[v]       short nodpp
v_swaprel_b32                                 - - 68 .   b32+ b32[v]+      short nodpp reads:m0
v_not_b16                                     - - 69 .   b16= b16
v_cvt_i32_i16                                 - - 6a .   i32= i16
v_cvt_u32_u16                                 - - 6b .   u32= u16
v_clrexcp                                     35 . - -   -                 short nodpp nosdwa
v_screen_partition_4se_b32                    37 . - -   b32= b32
v_mov_b64                                     38 . - -   b64= b64
v_exp_legacy_f32                              4b . - -   f32= f32          clamp omod pipe:trans
v_log_legacy_f32                              4c . - -   f32= f32          clamp omod pipe:trans
v_accvgpr_mov_b32                             52 . - -   b32[a]= b32[a]    short nodpp nosdwa
v_cvt_f32_fp8                                 54 . - 6c  f32= fp8x4        clamp@cdna omod@cdna op_sel=3@rdna4 byte_sel@rdna4 nodst noneg
v_cvt_f32_bf8                                 55 . - 6d  f32= bf8x4        clamp@cdna omod@cdna op_sel=3@rdna4 byte_sel@rdna4 nodst noneg
v_cvt_pk_f32_fp8                              56 . - 6e  f32x2= fp8x2      op_sel@rdna4 clamp@cdna omod@cdna nodst noneg
v_cvt_pk_f32_bf8                              57 . - 6f  f32x2= bf8x2      op_sel@rdna4 clamp@cdna omod@cdna nodst noneg
v_prng_b32                                    - 58 - -   b32= b32
v_permlane16_swap_b32                         - 59 - -   b32+ b32[v]+      short nodpp nosdwa
v_permlane32_swap_b32                         - 5a - -   b32+ b32[v]+      short nodpp nosdwa
v_cvt_f32_bf16                                - 5b - -   f32= bf16         clamp omod
@ vop2 valu
v_cndmask_b32                                  0 . 1 .          b32= f32 f32 src2:mask
v_dot2acc_f32_f16 v_dot2c_f32_f16@cdna         37 . 2 -         f32+ f16x2 f16x2                   short@rdna3 clamp@cdna omod@cdna nosdwa pipe:dot
v_add_f32                                      1 . 3 .          f32= f32 f32                       clamp omod
v_sub_f32                                      2 . 4 .          f32= f32 f32                       clamp omod
v_subrev_f32                                   3 . 5 .          f32= f32 f32                       clamp omod
v_fmac_dx9_zero_f32                            - - 6 -          f32+ f32 f32                       clamp omod nodpp
v_mul_dx9_zero_f32 v_mul_legacy_f32@cdna       vop3:2a1 . 7 .   f32= f32 f32                       clamp omod
v_mul_f32                                      5 . 8 .          f32= f32 f32                       clamp omod
v_mul_i32_i24                                  6 . 9 .          i32= i24 i24                       clamp
v_mul_hi_i32_i24                               7 . a .          i32= i24 i24
v_mul_u32_u24                                  8 . b .          u32= u24 u24                       clamp
v_mul_hi_u32_u24                               9 . c .          u32= u24 u24
v_min_f32 v_min_num_f32@rdna4                  a . f 15         f32= f32 f32                       clamp omod
v_max_f32 v_max_num_f32@rdna4                  b . 10 16        f32= f32 f32                       clamp omod
v_min_i32                                      c . 11 .         i32= i32 i32
v_max_i32                                      d . 12 .         i32= i32 i32
v_min_u32                                      e . 13 .         u32= u32 u32
v_max_u32                                      f . 14 .         u32= u32 u32
v_lshlrev_b32                                  12 . 18 .        b32= u32 b32
v_lshrrev_b32                                  10 . 19 .        b32= u32 b32
v_ashrrev_i32                                  11 . 1a .        i32= u32 i32
v_and_b32                                      13 . 1b .        b32= b32 b32
v_or_b32                                       14 . 1c .        b32= b32 b32
v_xor_b32                                      15 . 1d .        b32= b32 b32
v_xnor_b32                                     3d . 1e .        b32= b32 b32
v_add_co_ci_u32 v_addc_co_u32@cdna             1c . 20 .        u32= sdst:mask= u32 u32 src2:mask  clamp
v_sub_co_ci_u32 v_subb_co_u32@cdna             1d . 21 .        u32= sdst:mask= u32 u32 src2:mask  clamp
v_subrev_co_ci_u32 v_subbrev_co_u32@cdna       1e . 22 .        u32= sdst:mask= u32 u32 src2:mask  clamp
v_add_nc_u32 v_add_u32@cdna                    34 . 25 .        u32= u32 u32                       clamp
v_sub_nc_u32 v_sub_u32@cdna                    35 . 26 .        u32= u32 u32                       clamp
v_subrev_nc_u32 v_subrev_u32@cdna              36 . 27 .        u32= u32 u32                       clamp
v_fmac_f32                                     3b . 2b .        f32+ f32 f32                       clamp omod nosdwa
v_fmamk_f32                                    17 . 2c .        f32= f32 literal:k32 src1:f32      short
v_fmaak_f32                                    18 . 2d .        f32= f32 f32 literal:k32           short
v_cvt_pk_rtz_f16_f32 v_cvt_pkrtz_f16_f32@cdna  vop3:296 . 2f .  f16x2= f32 f32                     clamp omod
v_add_f16                                      1f . 32 .        f16= f16 f16                       clamp omod
v_sub_f16                                      20 . 33 .        f16= f16 f16                       clamp omod
v_subrev_f16                                   21 . 34 .        f16= f16 f16                       clamp omod
v_mul_f16                                      22 . 35 .        f16= f16 f16                       clamp omod
v_fmac_f16                                     - - 36 .         f16+ f16 f16                       clamp omod
v_fmamk_f16                                    - - 37 .         f16= f16 literal:k16 src1:f16      short
v_fmaak_f16                                    - - 38 .         f16= f16 f16 literal:k16           short
v_max_f16 v_max_num_f16@rdna4                  2d . 39 31       f16= f16 f16                       clamp omod
v_min_f16 v_min_num_f16@rdna4                  2e . 3a 30       f16= f16 f16                       clamp omod
v_ldexp_f16                                    33 . 3b .        f16= f16 i16                       clamp omod
v_pk_fmac_f16                                  3c . . .         f16x2+ f16x2 f16x2                 short nodpp@rdna twice@rdna
v_fmac_f64                                     4 . - -          f64+ f64 f64                       clamp omod pipe:f64
v_dot2c_f32_bf16                               - 16 - -         f32+ bf16x2 bf16x2                 clamp omod nosdwa pipe:dot
v_mac_f16                                      23 . - -         f16+ f16 f16                       clamp omod nosdwa
v_madmk_f16                                    24 . - -         f16= f16 literal:k16 src1:f16      short
v_madak_f16                                    25 . - -         f16= f16 f16 literal:k16           short
v_subrev_u16                                   28 . - -         u16= u16 u16                       clamp
v_dot2c_i32_i16                                38 . - -         i32+ i16x2 i16x2                   clamp nosdwa pipe:dot
v_dot4c_i32_i8                                 39 . - -         i32+ i8x4 i8x4                     clamp nosdwa pipe:dot
v_dot8c_i32_i4                                 3a . - -         i32+ i4x8 i4x8                     clamp nosdwa pipe:dot
"""
