"""AMD rows of vector instructions that are VOP3 only, in the notation of table.py."""
from __future__ import annotations

TEXT = """
@ vop3 valu
v_fma_dx9_zero_f32                               - - 209 .          f32= f32 f32 f32             clamp omod nodpp
v_mad_i32_i24                                    1c2 . 20a .        i32= i24 i24 i24             clamp
v_mad_u32_u24                                    1c3 . 20b .        u32= u24 u24 u24             clamp
v_cubeid_f32                                     1c4 . 20c .        f32= f32 f32 f32             clamp omod
v_cubesc_f32                                     1c5 . 20d .        f32= f32 f32 f32             clamp omod
v_cubetc_f32                                     1c6 . 20e .        f32= f32 f32 f32             clamp omod
v_cubema_f32                                     1c7 . 20f .        f32= f32 f32 f32             clamp omod
v_bfe_u32                                        1c8 . 210 .        u32= u32 u32 u32
v_bfe_i32                                        1c9 . 211 .        i32= i32 u32 u32
v_bfi_b32                                        1ca . 212 .        b32= b32 b32 b32
v_fma_f32                                        1cb . 213 .        f32= f32 f32 f32             clamp omod
v_fma_f64                                        1cc . 214 .        f64= f64 f64 f64             clamp omod pipe:f64
v_lerp_u8                                        1cd . 215 .        b32= b32 b32 b32
v_alignbit_b32                                   1ce . 216 .        b32= b32 b32 u16             clamp
v_alignbyte_b32                                  1cf . 217 .        b32= b32 b32 u16             clamp
v_mullit_f32                                     - - 218 .          f32= f32 f32 f32             clamp omod
v_min3_f32 v_min3_num_f32@rdna4                  1d0 . 219 229      f32= f32 f32 f32             clamp omod
v_min3_i32                                       1d1 . 21a .        i32= i32 i32 i32
v_min3_u32                                       1d2 . 21b .        u32= u32 u32 u32
v_max3_f32 v_max3_num_f32@rdna4                  1d3 . 21c 22a      f32= f32 f32 f32             clamp omod
v_max3_i32                                       1d4 . 21d .        i32= i32 i32 i32
v_max3_u32                                       1d5 . 21e .        u32= u32 u32 u32
v_med3_f32 v_med3_num_f32@rdna4                  1d6 . 21f 231      f32= f32 f32 f32             clamp omod
v_med3_i32                                       1d7 . 220 .        i32= i32 i32 i32
v_med3_u32                                       1d8 . 221 .        u32= u32 u32 u32
v_sad_u8                                         1d9 . 222 .        u32= b32 b32 u32             clamp
v_sad_hi_u8                                      1da . 223 .        u32= b32 b32 u32             clamp
v_sad_u16                                        1db . 224 .        u32= b32 b32 u32             clamp
v_sad_u32                                        1dc . 225 .        u32= u32 u32 u32             clamp
v_cvt_pk_u8_f32                                  1dd . 226 .        b32= f32 u32 b32             clamp
v_div_fixup_f32                                  1de . 227 .        f32= f32 f32 f32             clamp omod nodpp
v_div_fixup_f64                                  1df . 228 .        f64= f64 f64 f64             clamp omod pipe:f64
v_div_fmas_f32                                   1e2 . 237 .        f32= f32 f32 f32             clamp omod nodpp reads:vcc
v_div_fmas_f64                                   1e3 . 238 .        f64= f64 f64 f64             clamp omod reads:vcc pipe:f64
v_msad_u8                                        1e4 . 239 .        u32= b32 b32 u32             clamp
v_qsad_pk_u16_u8                                 1e5 . 23a .        b64= b64 b32 b64             clamp early
v_mqsad_pk_u16_u8                                1e6 . 23b .        b64= b64 b32 b64             clamp early
v_mqsad_u32_u8                                   1e7 . 23d .        b128= b64 b32 b128[v]        clamp early
v_xor3_b32                                       - - 240 .          b32= b32 b32 b32
v_mad_u16                                        204 . 241 .        u16= u16 u16 u16             op_sel clamp
v_perm_b32                                       1ed . 244 .        b32= b32 b32 b32
v_xad_u32                                        1f3 . 245 .        u32= u32 u32 u32
v_lshl_add_u32                                   1fd . 246 .        u32= u32 u32 u32
v_add_lshl_u32                                   1fe . 247 .        u32= u32 u32 u32
v_fma_f16                                        206 . 248 .        f16= f16 f16 f16             op_sel clamp omod
v_min3_f16 v_min3_num_f16@rdna4                  1f4 . 249 22b      f16= f16 f16 f16             op_sel clamp omod
v_min3_i16                                       1f5 . 24a .        i16= i16 i16 i16             op_sel clamp
v_min3_u16                                       1f6 . 24b .        u16= u16 u16 u16             op_sel clamp
v_max3_f16 v_max3_num_f16@rdna4                  1f7 . 24c 22c      f16= f16 f16 f16             op_sel clamp omod
v_max3_i16                                       1f8 . 24d .        i16= i16 i16 i16             op_sel clamp
v_max3_u16                                       1f9 . 24e .        u16= u16 u16 u16             op_sel clamp
v_med3_f16 v_med3_num_f16@rdna4                  1fa . 24f 232      f16= f16 f16 f16             op_sel clamp omod
v_med3_i16                                       1fb . 250 .        i16= i16 i16 i16             op_sel clamp
v_med3_u16                                       1fc . 251 .        u16= u16 u16 u16             op_sel clamp
v_mad_i16                                        205 . 253 .        i16= i16 i16 i16             op_sel clamp
v_div_fixup_f16                                  207 . 254 .        f16= f16 f16 f16             op_sel clamp omod
v_add3_u32                                       1ff . 255 .        u32= u32 u32 u32
v_lshl_or_b32                                    200 . 256 .        b32= b32 b32 b32
v_and_or_b32                                     201 . 257 .        b32= b32 b32 b32
v_or3_b32                                        202 . 258 .        b32= b32 b32 b32
v_mad_u32_u16                                    1f1 . 259 .        u32= u16 u16 u32             op_sel clamp
v_mad_i32_i16                                    1f2 . 25a .        i32= i16 i16 i32             op_sel clamp
v_permlane16_b32                                 - - 25b .          b32+ b32[v] b32[sc] b32[sc]  op_sel=3 lanes nodpp
v_permlanex16_b32                                - - 25c .          b32+ b32[v] b32[sc] b32[sc]  op_sel=3 lanes nodpp
v_cndmask_b16                                    - - 25d .          b16= f16 f16 src2:mask
v_maxmin_f32 v_maxmin_num_f32@rdna4              - - 25e 269        f32= f32 f32 f32             clamp omod
v_minmax_f32 v_minmax_num_f32@rdna4              - - 25f 268        f32= f32 f32 f32             clamp omod
v_maxmin_f16 v_maxmin_num_f16@rdna4              - - 260 26b        f16= f16 f16 f16             op_sel clamp omod
v_minmax_f16 v_minmax_num_f16@rdna4              - - 261 26a        f16= f16 f16 f16             op_sel clamp omod
v_maxmin_u32                                     - - 262 .          u32= u32 u32 u32
v_minmax_u32                                     - - 263 .          u32= u32 u32 u32
v_maxmin_i32                                     - - 264 .          i32= i32 i32 i32
v_minmax_i32                                     - - 265 .          i32= i32 i32 i32
v_dot2_f16_f16                                   - - 266 .          f16= f16x2 f16x2 f16         pipe:dot
v_dot2_bf16_bf16                                 - - 267 .          bf16= bf16x2 bf16x2 bf16     pipe:dot
v_add_nc_u16 v_add_u16@cdna                      vop2:26 . 303 .    u16= u16 u16                 op_sel@rdna clamp
v_sub_nc_u16 v_sub_u16@cdna                      vop2:27 . 304 .    u16= u16 u16                 op_sel@rdna clamp
v_mul_lo_u16                                     vop2:29 . 305 .    u16= u16 u16
v_cvt_pk_i16_f32                                 - - 306 .          i16x2= f32 f32               clamp
v_cvt_pk_u16_f32                                 - - 307 .          u16x2= f32 f32               clamp
v_max_u16                                        vop2:2f . 309 .    u16= u16 u16
v_max_i16                                        vop2:30 . 30a .    i16= i16 i16
v_min_u16                                        vop2:31 . 30b .    u16= u16 u16
v_min_i16                                        vop2:32 . 30c .    i16= i16 i16
v_add_nc_i16 v_add_i16@cdna                      29e . 30d .        i16= i16 i16                 op_sel clamp
v_sub_nc_i16 v_sub_i16@cdna                      29f . 30e .        i16= i16 i16                 op_sel clamp
v_pack_b32_f16                                   2a0 . 311 .        b32= f16 f16                 op_sel clamp
v_cvt_pk_norm_i16_f16 v_cvt_pknorm_i16_f16@cdna  299 . 312 .        i16x2= f16 f16               op_sel clamp
v_cvt_pk_norm_u16_f16 v_cvt_pknorm_u16_f16@cdna  29a . 313 .        u16x2= f16 f16               op_sel clamp
v_ldexp_f32                                      288 . 31c .        f32= f32 i32                 clamp omod
v_bfm_b32                                        293 . 31d .        b32= b32 b32
v_bcnt_u32_b32                                   28b . 31e .        u32= b32 u32
v_mbcnt_lo_u32_b32                               28c . 31f .        u32= b32 u32
v_mbcnt_hi_u32_b32                               28d . 320 .        u32= b32 u32
v_cvt_pk_norm_i16_f32 v_cvt_pknorm_i16_f32@cdna  294 . 321 .        i16x2= f32 f32               clamp
v_cvt_pk_norm_u16_f32 v_cvt_pknorm_u16_f32@cdna  295 . 322 .        u16x2= f32 f32               clamp
v_cvt_pk_u16_u32                                 297 . 323 .        u16x2= u32 u32
v_cvt_pk_i16_i32                                 298 . 324 .        i16x2= i32 i32
v_sub_nc_i32 v_sub_i32@cdna                      29d . 325 .        i32= i32 i32                 clamp
v_add_nc_i32 v_add_i32@cdna                      29c . 326 .        i32= i32 i32                 clamp
v_add_f64                                        280 . 327 vop2:2   f64= f64 f64                 clamp omod pipe:f64
v_mul_f64                                        281 . 328 vop2:6   f64= f64 f64                 clamp omod pipe:f64
v_min_f64 v_min_num_f64@rdna4                    282 . 329 vop2:d   f64= f64 f64                 clamp omod pipe:f64
v_max_f64 v_max_num_f64@rdna4                    283 . 32a vop2:e   f64= f64 f64                 clamp omod pipe:f64
v_ldexp_f64                                      284 . 32b .        f64= f64 i32                 clamp omod pipe:f64
v_mul_lo_u32                                     285 . 32c .        u32= u32 u32                 nodpp
v_mul_hi_u32                                     286 . 32d .        u32= u32 u32                 nodpp
v_mul_hi_i32                                     287 . 32e .        i32= i32 i32                 nodpp
v_trig_preop_f64                                 292 . 32f .        f64= f64 u32                 clamp omod pipe:f64
v_lshlrev_b16                                    vop2:2a . 338 .    b16= u16 b16
v_lshrrev_b16                                    vop2:2b . 339 .    b16= u16 b16
v_ashrrev_i16                                    vop2:2c . 33a .    i16= u16 i16
v_lshlrev_b64                                    28f . 33c vop2:1f  b64= u32 b64                 scalar1
v_lshrrev_b64                                    290 . 33d .        b64= u32 b64                 scalar1
v_ashrrev_i64                                    291 . 33e .        i64= u32 i64                 scalar1
v_readlane_b32                                   289 . 360 .        sdst:b32= b32[v] u32[sc]     nodpp nom0
v_writelane_b32                                  28a . 361 .        b32+ b32[sc] u32[sc]         nodpp
v_and_b16                                        - - 362 .          b16= b16 b16
v_or_b16                                         - - 363 .          b16= b16 b16
v_xor_b16                                        - - 364 .          b16= b16 b16
v_mad_legacy_f16                                 1ea . - -          f16= f16 f16 f16             clamp omod
v_mad_legacy_u16                                 1eb . - -          u16= u16 u16 u16             clamp
v_mad_legacy_i16                                 1ec . - -          i16= i16 i16 i16             clamp
v_fma_legacy_f16                                 1ee . - -          f16= f16 f16 f16             clamp omod
v_div_fixup_legacy_f16                           1ef . - -          f16= f16 f16 f16             clamp omod
v_cvt_pkaccum_u8_f32                             1f0 . - -          b32= f32 u32                 clamp
v_mad_f16                                        203 . - -          f16= f16 f16 f16             op_sel clamp omod
v_lshl_add_u64                                   208 . - -          u64= u64 u32 u64
v_minimum3_f32                                   - 2a8 - 22d        f32= f32 f32 f32             clamp omod
v_maximum3_f32                                   - 2a9 - 22e        f32= f32 f32 f32             clamp omod
v_minimum3_f16                                   - - - 22f          f16= f16 f16 f16             op_sel clamp omod
v_maximum3_f16                                   - - - 230          f16= f16 f16 f16             op_sel clamp omod
v_ashr_pk_i8_i32                                 - 265 - -          i8x2= i32 i32 u32            op_sel
v_ashr_pk_u8_i32                                 - 266 - -          u8x2= i32 i32 u32            op_sel
v_cvt_pk_f16_f32                                 - 267 - -          f16x2= f32 f32               clamp omod
v_cvt_pk_bf16_f32                                - 268 - -          bf16x2= f32 f32              clamp omod
v_minimummaximum_f32                             - - - 26c          f32= f32 f32 f32             clamp omod
v_maximumminimum_f32                             - - - 26d          f32= f32 f32 f32             clamp omod
v_minimummaximum_f16                             - - - 26e          f16= f16 f16 f16             op_sel clamp omod
v_maximumminimum_f16                             - - - 26f          f16= f16 f16 f16             op_sel clamp omod
v_s_exp_f32                                      - - - 280          sdst:f32= f32                clamp omod nodpp noexec pipe:trans
v_s_exp_f16                                      - - - 281          sdst:f16= f16                clamp omod nodpp noexec pipe:trans
v_s_log_f32                                      - - - 282          sdst:f32= f32                clamp omod nodpp noexec pipe:trans
v_s_log_f16                                      - - - 283          sdst:f16= f16                clamp omod nodpp noexec pipe:trans
v_s_rcp_f32                                      - - - 284          sdst:f32= f32                clamp omod nodpp noexec pipe:trans
v_s_rcp_f16                                      - - - 285          sdst:f16= f16                clamp omod nodpp noexec pipe:trans
v_s_rsq_f32                                      - - - 286          sdst:f32= f32                clamp omod nodpp noexec pipe:trans
v_s_rsq_f16                                      - - - 287          sdst:f16= f16                clamp omod nodpp noexec pipe:trans
v_s_sqrt_f32                                     - - - 288          sdst:f32= f32                clamp omod nodpp noexec pipe:trans
v_s_sqrt_f16                                     - - - 289          sdst:f16= f16                clamp omod nodpp noexec pipe:trans
v_cvt_pk_fp8_f32                                 2a2 . - 369        fp8x2+ f32 f32               op_sel
v_cvt_pk_bf8_f32                                 2a3 . - 36a        bf8x2+ f32 f32               op_sel
v_cvt_sr_fp8_f32                                 2a4 . - 36b        fp8x4+ f32 b32               op_sel=12 byte_sel@rdna4
v_cvt_sr_bf8_f32                                 2a5 . - 36c        bf8x4+ f32 b32               op_sel=12 byte_sel@rdna4
v_cvt_sr_bf16_f32                                - 2a7 - -          bf16+ f32 b32                op_sel
v_cvt_sr_f16_f32                                 - 2a6 - -          f16+ f32 b32                 op_sel
v_permlane16_var_b32                             - - - 30f          b32+ b32[v] b32[v]           op_sel=3 lanes nodpp
v_permlanex16_var_b32                            - - - 310          b32+ b32[v] b32[v]           op_sel=3 lanes nodpp
v_minimum_f64                                    - - - 341          f64= f64 f64                 clamp omod pipe:f64
v_maximum_f64                                    - - - 342          f64= f64 f64                 clamp omod pipe:f64
v_minimum_f32                                    - - - 365          f32= f32 f32                 clamp omod
v_maximum_f32                                    - - - 366          f32= f32 f32                 clamp omod
v_minimum_f16                                    - - - 367          f16= f16 f16                 op_sel clamp omod
v_maximum_f16                                    - - - 368          f16= f16 f16                 op_sel clamp omod
@ vop3sd valu
v_div_scale_f32                       1e0 . 2fc .      f32= sdst:mask= f32 f32 f32  clamp omod nodpp
v_div_scale_f64                       1e1 . 2fd .      f64= sdst:mask= f64 f64 f64  clamp omod pipe:f64
# ERRATA the result shares a register with a source; registers that no source has avoid it; on gfx11.0, LLVM FeatureMADIntraFwdBug
v_mad_u64_u32 v_mad_co_u64_u32@rdna4  1e8 . 2fe .      u64= sdst:mask= u32 u32 u64  clamp early@rdna3
v_mad_i64_i32 v_mad_co_i64_i32@rdna4  1e9 . 2ff .      i64= sdst:mask= i32 i32 i64  clamp early@rdna3
v_add_co_u32                          vop2:19 . 300 .  u32= sdst:mask= u32 u32      clamp
v_sub_co_u32                          vop2:1a . 301 .  u32= sdst:mask= u32 u32      clamp
v_subrev_co_u32                       vop2:1b . 302 .  u32= sdst:mask= u32 u32      clamp
@ vop3_bitop valu
v_bitop3_b16  - 233 - -  b16= b16 b16 b16  op_sel
v_bitop3_b32  - 234 - -  b32= b32 b32 b32
"""
