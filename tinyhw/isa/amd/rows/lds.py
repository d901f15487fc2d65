"""AMD rows of shared memory (DS: LDS and GDS, and lane permutations that use its crossbar), in the notation of
table.py.

CDNA's cmpst has the value to compare with first, then the new one. RDNA's cmpstore has them in the opposite order. So
they are two instructions.
"""
from __future__ import annotations

TEXT = """
@ ds lds
ds_add_u32                                    0 . . .    addr:b32 u32        load store
ds_sub_u32                                    1 . . .    addr:b32 u32        load store
ds_rsub_u32                                   2 . . .    addr:b32 u32        load store
ds_inc_u32                                    3 . . .    addr:b32 u32        load store
ds_dec_u32                                    4 . . .    addr:b32 u32        load store
ds_min_i32                                    5 . . .    addr:b32 i32        load store
ds_max_i32                                    6 . . .    addr:b32 i32        load store
ds_min_u32                                    7 . . .    addr:b32 u32        load store
ds_max_u32                                    8 . . .    addr:b32 u32        load store
ds_and_b32                                    9 . . .    addr:b32 b32        load store
ds_or_b32                                     a . . .    addr:b32 b32        load store
ds_xor_b32                                    b . . .    addr:b32 b32        load store
ds_mskor_b32                                  c . . .    addr:b32 b32 b32    load store
ds_store_b32 ds_write_b32@cdna                d . . .    addr:b32 b32        store
ds_cmpstore_b32                               - - 10 .   addr:b32 b32 b32    store
ds_cmpstore_f32                               - - 11 -   addr:b32 f32 f32    store
ds_min_f32 ds_min_num_f32@rdna4               12 . . .   addr:b32 f32        load store
ds_max_f32 ds_max_num_f32@rdna4               13 . . .   addr:b32 f32        load store
ds_nop                                        14 . . .   -                   bare
ds_add_f32                                    15 . . .   addr:b32 f32        load store
ds_gws_sema_release_all                       98 . 18 -  -                   load store gds:1
ds_gws_init                                   99 . 19 -  addr:b32            load store gds:1
ds_gws_sema_v                                 9a . 1a -  -                   load store gds:1
ds_gws_sema_br                                9b . 1b -  addr:b32            load store gds:1
ds_gws_sema_p                                 9c . 1c -  -                   load store gds:1
ds_gws_barrier                                9d . 1d -  addr:b32            load store gds:1
ds_store_b8 ds_write_b8@cdna                  1e . . .   addr:b32 b8         store
ds_store_b16 ds_write_b16@cdna                1f . . .   addr:b32 b16        store
ds_add_rtn_u32                                20 . . .   u32= b32 u32        load store
ds_sub_rtn_u32                                21 . . .   u32= b32 u32        load store
ds_rsub_rtn_u32                               22 . . .   u32= b32 u32        load store
ds_inc_rtn_u32                                23 . . .   u32= b32 u32        load store
ds_dec_rtn_u32                                24 . . .   u32= b32 u32        load store
ds_min_rtn_i32                                25 . . .   i32= b32 i32        load store
ds_max_rtn_i32                                26 . . .   i32= b32 i32        load store
ds_min_rtn_u32                                27 . . .   u32= b32 u32        load store
ds_max_rtn_u32                                28 . . .   u32= b32 u32        load store
ds_and_rtn_b32                                29 . . .   b32= b32 b32        load store
ds_or_rtn_b32                                 2a . . .   b32= b32 b32        load store
ds_xor_rtn_b32                                2b . . .   b32= b32 b32        load store
ds_mskor_rtn_b32                              2c . . .   b32= b32 b32 b32    load store
ds_storexchg_rtn_b32 ds_wrxchg_rtn_b32@cdna   2d . . .   b32= b32 b32        load store
ds_cmpstore_rtn_b32                           - - 30 .   b32= b32 b32 b32    load store
ds_cmpstore_rtn_f32                           - - 31 -   f32= b32 f32 f32    load store
ds_min_rtn_f32 ds_min_num_rtn_f32@rdna4       32 . . .   f32= b32 f32        load store
ds_max_rtn_f32 ds_max_num_rtn_f32@rdna4       33 . . .   f32= b32 f32        load store
ds_wrap_rtn_b32                               34 . . -   b32= b32 b32 b32    load store
ds_swizzle_b32                                3d . 35 .  b32= b32            load
ds_load_b32 ds_read_b32@cdna                  36 . . .   b32= b32            load
ds_load_i8 ds_read_i8@cdna                    39 . . .   i8= b32             load
ds_load_u8 ds_read_u8@cdna                    3a . . .   u8= b32             load
ds_load_i16 ds_read_i16@cdna                  3b . . .   i16= b32            load
ds_load_u16 ds_read_u16@cdna                  3c . . .   u16= b32            load
ds_consume                                    bd . 3d .  b32=                load store
ds_append                                     be . 3e .  b32=                load store
ds_ordered_count                              - - 3f -   b32= b32            load store gds:1
ds_add_u64                                    40 . . .   addr:b32 u64        load store
ds_sub_u64                                    41 . . .   addr:b32 u64        load store
ds_rsub_u64                                   42 . . .   addr:b32 u64        load store
ds_inc_u64                                    43 . . .   addr:b32 u64        load store
ds_dec_u64                                    44 . . .   addr:b32 u64        load store
ds_min_i64                                    45 . . .   addr:b32 i64        load store
ds_max_i64                                    46 . . .   addr:b32 i64        load store
ds_min_u64                                    47 . . .   addr:b32 u64        load store
ds_max_u64                                    48 . . .   addr:b32 u64        load store
ds_and_b64                                    49 . . .   addr:b32 b64        load store
ds_or_b64                                     4a . . .   addr:b32 b64        load store
ds_xor_b64                                    4b . . .   addr:b32 b64        load store
ds_mskor_b64                                  4c . . .   addr:b32 b64 b64    load store
ds_store_b64 ds_write_b64@cdna                4d . . .   addr:b32 b64        store
ds_cmpstore_b64                               - - 50 .   addr:b32 b64 b64    store
ds_cmpstore_f64                               - - 51 -   addr:b32 f64 f64    store
ds_min_f64 ds_min_num_f64@rdna4               52 . . .   addr:b32 f64        load store
ds_max_f64 ds_max_num_f64@rdna4               53 . . .   addr:b32 f64        load store
ds_add_rtn_u64                                60 . . .   u64= b32 u64        load store
ds_sub_rtn_u64                                61 . . .   u64= b32 u64        load store
ds_rsub_rtn_u64                               62 . . .   u64= b32 u64        load store
ds_inc_rtn_u64                                63 . . .   u64= b32 u64        load store
ds_dec_rtn_u64                                64 . . .   u64= b32 u64        load store
ds_min_rtn_i64                                65 . . .   i64= b32 i64        load store
ds_max_rtn_i64                                66 . . .   i64= b32 i64        load store
ds_min_rtn_u64                                67 . . .   u64= b32 u64        load store
ds_max_rtn_u64                                68 . . .   u64= b32 u64        load store
ds_and_rtn_b64                                69 . . .   b64= b32 b64        load store
ds_or_rtn_b64                                 6a . . .   b64= b32 b64        load store
ds_xor_rtn_b64                                6b . . .   b64= b32 b64        load store
ds_mskor_rtn_b64                              6c . . .   b64= b32 b64 b64    load store
ds_storexchg_rtn_b64 ds_wrxchg_rtn_b64@cdna   6d . . .   b64= b32 b64        load store
ds_cmpstore_rtn_b64                           - - 70 .   b64= b32 b64 b64    load store
ds_cmpstore_rtn_f64                           - - 71 -   f64= b32 f64 f64    load store
ds_min_rtn_f64 ds_min_num_rtn_f64@rdna4       72 . . .   f64= b32 f64        load store
ds_max_rtn_f64 ds_max_num_rtn_f64@rdna4       73 . . .   f64= b32 f64        load store
ds_load_b64 ds_read_b64@cdna                  76 . . .   b64= b32            load
ds_add_rtn_f32                                35 . 79 .  f32= b32 f32        load store
ds_add_gs_reg_rtn                             - - 7a -   b64= data0:b32      load store gds:1
ds_sub_gs_reg_rtn                             - - 7b -   b64= data0:b32      load store gds:1
ds_condxchg32_rtn_b64                         7e . . .   b64= b32 b64        load store
ds_store_b8_d16_hi ds_write_b8_d16_hi@cdna    54 . a0 .  addr:b32 b8         store
ds_store_b16_d16_hi ds_write_b16_d16_hi@cdna  55 . a1 .  addr:b32 b16        store
ds_load_u8_d16 ds_read_u8_d16@cdna            56 . a2 .  u8+ b32             load
ds_load_u8_d16_hi ds_read_u8_d16_hi@cdna      57 . a3 .  u8+ b32             load
ds_load_i8_d16 ds_read_i8_d16@cdna            58 . a4 .  i8+ b32             load
ds_load_i8_d16_hi ds_read_i8_d16_hi@cdna      59 . a5 .  i8+ b32             load
ds_load_u16_d16 ds_read_u16_d16@cdna          5a . a6 .  u16+ b32            load
ds_load_u16_d16_hi ds_read_u16_d16_hi@cdna    5b . a7 .  u16+ b32            load
ds_bvh_stack_rtn_b32                          - - ad -   b32= b32+ b32 b128  load store gds:0
ds_store_addtid_b32 ds_write_addtid_b32@cdna  1d . b0 .  data0:b32           store reads:m0
ds_load_addtid_b32 ds_read_addtid_b32@cdna    b6 . b1 .  b32=                load reads:m0
ds_permute_b32                                3e . b2 .  b32= b32 b32        gds:0
ds_bpermute_b32                               3f . b3 .  b32= b32 b32        gds:0
ds_store_b96 ds_write_b96@cdna                de . . .   addr:b32 b96        store
ds_store_b128 ds_write_b128@cdna              df . . .   addr:b32 b128       store
ds_load_b96 ds_read_b96@cdna                  fe . . .   b96= b32            load
ds_load_b128 ds_read_b128@cdna                ff . . .   b128= b32           load
ds_cmpst_b32                                  10 . - -   addr:b32 b32 b32    load store
ds_cmpst_f32                                  11 . - -   addr:b32 f32 f32    load store
ds_cmpst_rtn_b32                              30 . - -   b32= b32 b32 b32    load store
ds_cmpst_rtn_f32                              31 . - -   f32= b32 f32 f32    load store
ds_cmpst_b64                                  50 . - -   addr:b32 b64 b64    load store
ds_cmpst_f64                                  51 . - -   addr:b32 f64 f64    load store
ds_add_f64                                    5c . - -   addr:b32 f64        load store
ds_cmpst_rtn_b64                              70 . - -   b64= b32 b64 b64    load store
ds_cmpst_rtn_f64                              71 . - -   f64= b32 f64 f64    load store
ds_add_rtn_f64                                7c . - -   f64= b32 f64        load store
ds_cond_sub_u32                               - - - 98   addr:b32 u32        load store
ds_sub_clamp_u32                              - - - 99   addr:b32 u32        load store
ds_pk_add_f16                                 17 . - 9a  addr:b32 f16x2      load store
ds_pk_add_bf16                                18 . - 9b  addr:b32 bf16x2     load store
ds_cond_sub_rtn_u32                           - - - a8   u32= b32 u32        load store
ds_sub_clamp_rtn_u32                          - - - a9   u32= b32 u32        load store
ds_pk_add_rtn_f16                             b7 . - aa  f16x2= b32 f16x2    load store
ds_pk_add_rtn_bf16                            b8 . - ab  bf16x2= b32 bf16x2  load store
ds_load_b64_tr_b4 ds_read_b64_tr_b4@cdna4     - e0 - -   b64= b32            load
ds_load_b96_tr_b6 ds_read_b96_tr_b6@cdna4     - e1 - -   b96= b32            load
ds_load_b64_tr_b8 ds_read_b64_tr_b8@cdna4     - e2 - -   b64= b32            load
ds_load_b64_tr_b16 ds_read_b64_tr_b16@cdna4   - e3 - -   b64= b32            load
@ ds2 lds
ds_store_2addr_b32 ds_write2_b32@cdna               e . . .   addr:b32 b32 b32    store
ds_store_2addr_stride64_b32 ds_write2st64_b32@cdna  f . . .   addr:b32 b32 b32    store
ds_storexchg_2addr_rtn_b32 ds_wrxchg2_rtn_b32@cdna  2e . . .  b32x2= b32 b32 b32  load store
ds_storexchg_2addr_stride64_rtn_b32 ds_wrxchg2st64_rtn_b32@cdna  2f . . .  b32x2= b32 b32 b32  load store
ds_load_2addr_b32 ds_read2_b32@cdna                 37 . . .  b32x2= b32          load
ds_load_2addr_stride64_b32 ds_read2st64_b32@cdna    38 . . .  b32x2= b32          load
ds_store_2addr_b64 ds_write2_b64@cdna               4e . . .  addr:b32 b64 b64    store
ds_store_2addr_stride64_b64 ds_write2st64_b64@cdna  4f . . .  addr:b32 b64 b64    store
ds_storexchg_2addr_rtn_b64 ds_wrxchg2_rtn_b64@cdna  6e . . .  b64x2= b32 b64 b64  load store
ds_storexchg_2addr_stride64_rtn_b64 ds_wrxchg2st64_rtn_b64@cdna  6f . . .  b64x2= b32 b64 b64  load store
ds_load_2addr_b64 ds_read2_b64@cdna                 77 . . .  b64x2= b32          load
ds_load_2addr_stride64_b64 ds_read2st64_b64@cdna    78 . . .  b64x2= b32          load
"""
