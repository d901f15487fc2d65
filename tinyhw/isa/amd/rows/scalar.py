"""AMD rows of the scalar unit, in the notation of table.py: arithmetic, comparisons, branches, waits and messages."""
from __future__ import annotations

TEXT = """
@ sop2 salu
s_add_u32 s_add_co_u32@rdna4      0 . . .    u32= u32 u32                    writes:scc
s_sub_u32 s_sub_co_u32@rdna4      1 . . .    u32= u32 u32                    writes:scc
s_add_i32 s_add_co_i32@rdna4      2 . . .    i32= i32 i32                    writes:scc
s_sub_i32 s_sub_co_i32@rdna4      3 . . .    i32= i32 i32                    writes:scc
s_addc_u32 s_add_co_ci_u32@rdna4  4 . . .    u32= u32 u32                    reads:scc writes:scc
s_subb_u32 s_sub_co_ci_u32@rdna4  5 . . .    u32= u32 u32                    reads:scc writes:scc
s_absdiff_i32                     2a . 6 .   i32= i32 i32                    writes:scc
s_lshl_b32                        1c . 8 .   b32= b32 u32                    writes:scc
s_lshl_b64                        1d . 9 .   b64= b64 u32                    writes:scc
s_lshr_b32                        1e . a .   b32= b32 u32                    writes:scc
s_lshr_b64                        1f . b .   b64= b64 u32                    writes:scc
s_ashr_i32                        20 . c .   i32= i32 u32                    writes:scc
s_ashr_i64                        21 . d .   i64= i64 u32                    writes:scc
s_lshl1_add_u32                   2e . e .   u32= u32 u32                    writes:scc
s_lshl2_add_u32                   2f . f .   u32= u32 u32                    writes:scc
s_lshl3_add_u32                   30 . 10 .  u32= u32 u32                    writes:scc
s_lshl4_add_u32                   31 . 11 .  u32= u32 u32                    writes:scc
s_min_i32                         6 . 12 .   i32= i32 i32                    writes:scc
s_min_u32                         7 . 13 .   u32= u32 u32                    writes:scc
s_max_i32                         8 . 14 .   i32= i32 i32                    writes:scc
s_max_u32                         9 . 15 .   u32= u32 u32                    writes:scc
s_and_b32                         c . 16 .   b32= b32 b32                    writes:scc
s_and_b64                         d . 17 .   b64= b64 b64                    writes:scc
s_or_b32                          e . 18 .   b32= b32 b32                    writes:scc
s_or_b64                          f . 19 .   b64= b64 b64                    writes:scc
s_xor_b32                         10 . 1a .  b32= b32 b32                    writes:scc
s_xor_b64                         11 . 1b .  b64= b64 b64                    writes:scc
s_nand_b32                        16 . 1c .  b32= b32 b32                    writes:scc
s_nand_b64                        17 . 1d .  b64= b64 b64                    writes:scc
s_nor_b32                         18 . 1e .  b32= b32 b32                    writes:scc
s_nor_b64                         19 . 1f .  b64= b64 b64                    writes:scc
s_xnor_b32                        1a . 20 .  b32= b32 b32                    writes:scc
s_xnor_b64                        1b . 21 .  b64= b64 b64                    writes:scc
s_and_not1_b32 s_andn2_b32@cdna   12 . 22 .  b32= b32 b32                    writes:scc
s_and_not1_b64 s_andn2_b64@cdna   13 . 23 .  b64= b64 b64                    writes:scc
s_or_not1_b32 s_orn2_b32@cdna     14 . 24 .  b32= b32 b32                    writes:scc
s_or_not1_b64 s_orn2_b64@cdna     15 . 25 .  b64= b64 b64                    writes:scc
s_bfe_u32                         25 . 26 .  u32= u32 u32                    writes:scc
s_bfe_i32                         26 . 27 .  i32= i32 u32                    writes:scc
s_bfe_u64                         27 . 28 .  u64= u64 u32                    writes:scc
s_bfe_i64                         28 . 29 .  i64= i64 u32                    writes:scc
s_bfm_b32                         22 . 2a .  b32= u32 u32
s_bfm_b64                         23 . 2b .  b64= u32 u32
s_mul_i32                         24 . 2c .  i32= i32 i32
s_mul_hi_u32                      2c . 2d .  u32= u32 u32
s_mul_hi_i32                      2d . 2e .  i32= i32 i32
s_cselect_b32                     a . 30 .   b32= b32 b32                    reads:scc
s_cselect_b64                     b . 31 .   b64= b64 b64                    reads:scc
s_pack_ll_b32_b16                 32 . . .   b32= b32 b32
s_pack_lh_b32_b16                 33 . . .   b32= b32 b32
s_pack_hh_b32_b16                 34 . . .   b32= b32 b32
s_pack_hl_b32_b16                 - - 35 .   b32= b32 b32
s_cbranch_g_fork                  29 . - -   ssrc0:b64[s] ssrc1:b64[s]       jump pipe:branch
s_rfe_restore_b64                 2b . - -   ssrc0:b64[s] ssrc1:b32          end pipe:branch
s_add_f32                         - - - 40   f32= f32 f32
s_sub_f32                         - - - 41   f32= f32 f32
s_min_num_f32                     - - - 42   f32= f32 f32
s_max_num_f32                     - - - 43   f32= f32 f32
s_mul_f32                         - - - 44   f32= f32 f32
s_fmaak_f32                       - - - 45   f32= f32 f32 literal:k32
s_fmamk_f32                       - - - 46   f32= f32 literal:k32 ssrc1:f32
s_fmac_f32                        - - - 47   f32+ f32 f32
s_cvt_pk_rtz_f16_f32              - - - 48   f16x2= f32 f32
s_add_f16                         - - - 49   f16= f16 f16
s_sub_f16                         - - - 4a   f16= f16 f16
s_min_num_f16                     - - - 4b   f16= f16 f16
s_max_num_f16                     - - - 4c   f16= f16 f16
s_mul_f16                         - - - 4d   f16= f16 f16
s_fmac_f16                        - - - 4e   f16+ f16 f16
s_minimum_f32                     - - - 4f   f32= f32 f32
s_maximum_f32                     - - - 50   f32= f32 f32
s_minimum_f16                     - - - 51   f16= f16 f16
s_maximum_f16                     - - - 52   f16= f16 f16
s_add_nc_u64                      - - - 53   u64= u64 u64
s_sub_nc_u64                      - - - 54   u64= u64 u64
s_mul_u64                         - - - 55   u64= u64 u64
@ sop1 salu
s_mov_b32                                          0 . . .    b32= b32
s_mov_b64                                          1 . . .    b64= b64
s_cmov_b32                                         2 . . .    b32+ b32            reads:scc
s_cmov_b64                                         3 . . .    b64+ b64            reads:scc
s_brev_b32                                         8 . 4 .    b32= b32
s_brev_b64                                         9 . 5 .    b64= b64
s_ctz_i32_b32 s_ff1_i32_b32@cdna                   10 . 8 .   i32= b32
s_ctz_i32_b64 s_ff1_i32_b64@cdna                   11 . 9 .   i32= b64
s_clz_i32_u32 s_flbit_i32_b32@cdna                 12 . a .   i32= u32
s_clz_i32_u64 s_flbit_i32_b64@cdna                 13 . b .   i32= u64
s_cls_i32 s_flbit_i32@cdna                         14 . c .   i32= i32
s_cls_i32_i64 s_flbit_i32_i64@cdna                 15 . d .   i32= i64
s_sext_i32_i8                                      16 . e .   i32= i8x4
s_sext_i32_i16                                     17 . f .   i32= i16x2
s_bitset0_b32                                      18 . 10 .  b32+ u32
s_bitset0_b64                                      19 . 11 .  b64+ u32
s_bitset1_b32                                      1a . 12 .  b32+ u32
s_bitset1_b64                                      1b . 13 .  b64+ u32
s_bitreplicate_b64_b32                             37 . 14 .  b64= b32
s_abs_i32                                          30 . 15 .  i32= i32            writes:scc
s_bcnt0_i32_b32                                    a . 16 .   i32= b32            writes:scc
s_bcnt0_i32_b64                                    b . 17 .   i32= b64            writes:scc
s_bcnt1_i32_b32                                    c . 18 .   i32= b32            writes:scc
s_bcnt1_i32_b64                                    d . 19 .   i32= b64            writes:scc
s_quadmask_b32                                     28 . 1a .  b32= b32            writes:scc
s_quadmask_b64                                     29 . 1b .  b64= b64            writes:scc
s_wqm_b32                                          6 . 1c .   b32= b32            writes:scc
s_wqm_b64                                          7 . 1d .   b64= b64            writes:scc
s_not_b32                                          4 . 1e .   b32= b32            writes:scc
s_not_b64                                          5 . 1f .   b64= b64            writes:scc
s_and_saveexec_b32                                 - - 20 .   b32= b32            reads:exec writes:exec writes:scc
s_and_saveexec_b64                                 20 . 21 .  b64= b64            reads:exec writes:exec writes:scc
s_or_saveexec_b32                                  - - 22 .   b32= b32            reads:exec writes:exec writes:scc
s_or_saveexec_b64                                  21 . 23 .  b64= b64            reads:exec writes:exec writes:scc
s_xor_saveexec_b32                                 - - 24 .   b32= b32            reads:exec writes:exec writes:scc
s_xor_saveexec_b64                                 22 . 25 .  b64= b64            reads:exec writes:exec writes:scc
s_nand_saveexec_b32                                - - 26 .   b32= b32            reads:exec writes:exec writes:scc
s_nand_saveexec_b64                                25 . 27 .  b64= b64            reads:exec writes:exec writes:scc
s_nor_saveexec_b32                                 - - 28 .   b32= b32            reads:exec writes:exec writes:scc
s_nor_saveexec_b64                                 26 . 29 .  b64= b64            reads:exec writes:exec writes:scc
s_xnor_saveexec_b32                                - - 2a .   b32= b32            reads:exec writes:exec writes:scc
s_xnor_saveexec_b64                                27 . 2b .  b64= b64            reads:exec writes:exec writes:scc
s_and_not0_saveexec_b32                            - - 2c .   b32= b32            reads:exec writes:exec writes:scc
s_and_not0_saveexec_b64 s_andn1_saveexec_b64@cdna  33 . 2d .  b64= b64            reads:exec writes:exec writes:scc
s_or_not0_saveexec_b32                             - - 2e .   b32= b32            reads:exec writes:exec writes:scc
s_or_not0_saveexec_b64 s_orn1_saveexec_b64@cdna    34 . 2f .  b64= b64            reads:exec writes:exec writes:scc
s_and_not1_saveexec_b32                            - - 30 .   b32= b32            reads:exec writes:exec writes:scc
s_and_not1_saveexec_b64 s_andn2_saveexec_b64@cdna  23 . 31 .  b64= b64            reads:exec writes:exec writes:scc
s_or_not1_saveexec_b32                             - - 32 .   b32= b32            reads:exec writes:exec writes:scc
s_or_not1_saveexec_b64 s_orn2_saveexec_b64@cdna    24 . 33 .  b64= b64            reads:exec writes:exec writes:scc
s_and_not0_wrexec_b32                              - - 34 .   b32= b32            reads:exec writes:exec writes:scc
s_and_not0_wrexec_b64 s_andn1_wrexec_b64@cdna      35 . . .   b64= b64            reads:exec writes:exec writes:scc
s_and_not1_wrexec_b32                              - - 36 .   b32= b32            reads:exec writes:exec writes:scc
s_and_not1_wrexec_b64 s_andn2_wrexec_b64@cdna      36 . 37 .  b64= b64            reads:exec writes:exec writes:scc
s_movrels_b32                                      2a . 40 .  b32= b32[s]         reads:m0
s_movrels_b64                                      2b . 41 .  b64= b64[s]         reads:m0
s_movreld_b32                                      2c . 42 .  b32= b32[s]         reads:m0
s_movreld_b64                                      2d . 43 .  b64= b64[s]         reads:m0
s_movrelsd_2_b32                                   - - 44 .   b32= b32[s]         reads:m0
s_getpc_b64                                        1c . 47 .  b64=
s_setpc_b64                                        1d . 48 .  ssrc0:b64[s]        end pipe:branch
s_swappc_b64                                       1e . 49 .  b64= b64[s]         call pipe:branch
s_rfe_b64                                          1f . 4a .  ssrc0:b64[s]        end pipe:branch
s_sendmsg_rtn_b32                                  - - 4c .   b32= ssrc0:sendmsg  pipe:message
s_sendmsg_rtn_b64                                  - - 4d .   b64= ssrc0:sendmsg  pipe:message
s_ff0_i32_b32                                      e . - -    i32= b32
s_ff0_i32_b64                                      f . - -    i32= b64
s_cbranch_join                                     2e . - -   ssrc0:b32[s]        jump pipe:branch
s_set_gpr_idx_idx                                  32 . - -   ssrc0:b32           reads:m0 barrier
s_barrier_signal                                   - - - 4e   ssrc0:b32[mc]       barrier
s_barrier_signal_isfirst                           - - - 4f   ssrc0:b32[mc]       writes:scc barrier
s_get_barrier_state                                - - - 50   b32= b32[mc]
s_barrier_init                                     - - - 51   ssrc0:b32[mc]       barrier
s_barrier_join                                     - - - 52   ssrc0:b32[mc]       barrier
s_wakeup_barrier                                   - - - 57   ssrc0:b32[mc]       barrier
s_sleep_var                                        - - - 58   ssrc0:b32
s_ceil_f32                                         - - - 60   f32= f32
s_floor_f32                                        - - - 61   f32= f32
s_trunc_f32                                        - - - 62   f32= f32
s_rndne_f32                                        - - - 63   f32= f32
s_cvt_f32_i32                                      - - - 64   f32= i32
s_cvt_f32_u32                                      - - - 65   f32= u32
s_cvt_i32_f32                                      - - - 66   i32= f32
s_cvt_u32_f32                                      - - - 67   u32= f32
s_cvt_f16_f32                                      - - - 68   f16= f32
s_cvt_f32_f16                                      - - - 69   f32= f16
s_cvt_hi_f32_f16                                   - - - 6a   f32= b32
s_ceil_f16                                         - - - 6b   f16= f16
s_floor_f16                                        - - - 6c   f16= f16
s_trunc_f16                                        - - - 6d   f16= f16
s_rndne_f16                                        - - - 6e   f16= f16
@ sopc salu
s_cmp_eq_i32      0 . . .    i32 i32            writes:scc
s_cmp_lg_i32      1 . . .    i32 i32            writes:scc
s_cmp_gt_i32      2 . . .    i32 i32            writes:scc
s_cmp_ge_i32      3 . . .    i32 i32            writes:scc
s_cmp_lt_i32      4 . . .    i32 i32            writes:scc
s_cmp_le_i32      5 . . .    i32 i32            writes:scc
s_cmp_eq_u32      6 . . .    u32 u32            writes:scc
s_cmp_lg_u32      7 . . .    u32 u32            writes:scc
s_cmp_gt_u32      8 . . .    u32 u32            writes:scc
s_cmp_ge_u32      9 . . .    u32 u32            writes:scc
s_cmp_lt_u32      a . . .    u32 u32            writes:scc
s_cmp_le_u32      b . . .    u32 u32            writes:scc
s_bitcmp0_b32     c . . .    b32 u32            writes:scc
s_bitcmp1_b32     d . . .    b32 u32            writes:scc
s_bitcmp0_b64     e . . .    b64 u32            writes:scc
s_bitcmp1_b64     f . . .    b64 u32            writes:scc
s_cmp_eq_u64      12 . 10 .  u64 u64            writes:scc
s_cmp_lg_u64      13 . 11 .  u64 u64            writes:scc
s_setvskip        10 . - -   b32 b32            barrier
s_set_gpr_idx_on  11 . - -   b32 ssrc1:gpr_idx  reads:m0 barrier
s_cmp_lt_f32      - - - 41   f32 f32            writes:scc
s_cmp_eq_f32      - - - 42   f32 f32            writes:scc
s_cmp_le_f32      - - - 43   f32 f32            writes:scc
s_cmp_gt_f32      - - - 44   f32 f32            writes:scc
s_cmp_lg_f32      - - - 45   f32 f32            writes:scc
s_cmp_ge_f32      - - - 46   f32 f32            writes:scc
s_cmp_o_f32       - - - 47   f32 f32            writes:scc
s_cmp_u_f32       - - - 48   f32 f32            writes:scc
s_cmp_nge_f32     - - - 49   f32 f32            writes:scc
s_cmp_nlg_f32     - - - 4a   f32 f32            writes:scc
s_cmp_ngt_f32     - - - 4b   f32 f32            writes:scc
s_cmp_nle_f32     - - - 4c   f32 f32            writes:scc
s_cmp_neq_f32     - - - 4d   f32 f32            writes:scc
s_cmp_nlt_f32     - - - 4e   f32 f32            writes:scc
s_cmp_lt_f16      - - - 51   f16 f16            writes:scc
s_cmp_eq_f16      - - - 52   f16 f16            writes:scc
s_cmp_le_f16      - - - 53   f16 f16            writes:scc
s_cmp_gt_f16      - - - 54   f16 f16            writes:scc
s_cmp_lg_f16      - - - 55   f16 f16            writes:scc
s_cmp_ge_f16      - - - 56   f16 f16            writes:scc
s_cmp_o_f16       - - - 57   f16 f16            writes:scc
s_cmp_u_f16       - - - 58   f16 f16            writes:scc
s_cmp_nge_f16     - - - 59   f16 f16            writes:scc
s_cmp_nlg_f16     - - - 5a   f16 f16            writes:scc
s_cmp_ngt_f16     - - - 5b   f16 f16            writes:scc
s_cmp_nle_f16     - - - 5c   f16 f16            writes:scc
s_cmp_neq_f16     - - - 5d   f16 f16            writes:scc
s_cmp_nlt_f16     - - - 5e   f16 f16            writes:scc
@ sopk salu
s_movk_i32                      0 . . .    i32= simm
s_version                       - - 1 .    simm16:imm
s_cmovk_i32                     1 . 2 .    i32+ simm                 reads:scc
s_cmpk_eq_i32                   2 . 3 -    i32 simm                  writes:scc
s_cmpk_lg_i32                   3 . 4 -    i32 simm                  writes:scc
s_cmpk_gt_i32                   4 . 5 -    i32 simm                  writes:scc
s_cmpk_ge_i32                   5 . 6 -    i32 simm                  writes:scc
s_cmpk_lt_i32                   6 . 7 -    i32 simm                  writes:scc
s_cmpk_le_i32                   7 . 8 -    i32 simm                  writes:scc
s_cmpk_eq_u32                   8 . 9 -    u32 imm                   writes:scc
s_cmpk_lg_u32                   9 . a -    u32 imm                   writes:scc
s_cmpk_gt_u32                   a . b -    u32 imm                   writes:scc
s_cmpk_ge_u32                   b . c -    u32 imm                   writes:scc
s_cmpk_lt_u32                   c . d -    u32 imm                   writes:scc
s_cmpk_le_u32                   d . e -    u32 imm                   writes:scc
s_addk_i32 s_addk_co_i32@rdna4  e . f .    i32+ simm                 writes:scc
s_mulk_i32                      f . 10 .   i32+ simm
s_getreg_b32                    11 . . .   b32= hwreg
s_setreg_b32                    12 . . .   simm16:hwreg sdst:b32     barrier
s_setreg_imm32_b32              14 . 13 .  simm16:hwreg literal:k32  barrier
s_call_b64                      15 . 14 .  b64= block                call pipe:branch
s_subvector_loop_begin          - - 16 -   b32+ block
s_subvector_loop_end            - - 17 -   b32+ block
s_waitcnt_vscnt                 - - 18 -   b32 imm                   barrier
s_waitcnt_vmcnt                 - - 19 -   b32 imm                   barrier
s_waitcnt_expcnt                - - 1a -   b32 imm                   barrier
s_waitcnt_lgkmcnt               - - 1b -   b32 imm                   barrier
s_cbranch_i_fork                10 . - -   b64 block                 jump pipe:branch
@ sopp salu
s_nop                                         0 . . .    imm
s_setkill                                     b . 1 .    imm      barrier
s_sethalt                                     d . 2 .    imm      barrier
s_sleep                                       e . 3 .    imm      barrier
s_set_inst_prefetch_distance s_inst_prefetch  - - 4 -    imm
s_clause                                      - - 5 .    imm
s_delay_alu                                   - - 7 .    delay
s_waitcnt_depctr s_wait_alu@rdna4             - - 8 .    depctr   barrier
s_waitcnt                                     c . 9 .    waitcnt  barrier
s_wait_idle                                   - - a .    -        barrier
s_wait_event                                  - - b .    imm      barrier
s_trap                                        12 . 10 .  imm      barrier
s_round_mode                                  - - 11 .   imm      barrier
s_denorm_mode                                 - - 12 .   imm      barrier
s_code_end                                    - - 1f .   -
s_branch                                      2 . 20 .   block    jump end pipe:branch
s_cbranch_scc0                                4 . 21 .   block    jump pipe:branch reads:scc
s_cbranch_scc1                                5 . 22 .   block    jump pipe:branch reads:scc
s_cbranch_vccz                                6 . 23 .   block    jump pipe:branch reads:vcc
s_cbranch_vccnz                               7 . 24 .   block    jump pipe:branch reads:vcc
s_cbranch_execz                               8 . 25 .   block    jump pipe:branch reads:exec
s_cbranch_execnz                              9 . 26 .   block    jump pipe:branch reads:exec
s_cbranch_cdbgsys                             17 . 27 -  block    jump pipe:branch
s_cbranch_cdbguser                            18 . 28 -  block    jump pipe:branch
s_cbranch_cdbgsys_or_user                     19 . 29 -  block    jump pipe:branch
s_cbranch_cdbgsys_and_user                    1a . 2a -  block    jump pipe:branch
s_endpgm                                      1 . 30 .   -        end pipe:branch
s_endpgm_saved                                1b . 31 .  -        end pipe:branch
s_wakeup                                      3 . 34 .   -
s_setprio                                     f . 35 .   imm      barrier
s_sendmsg                                     10 . 36 .  sendmsg  reads:m0 barrier
s_sendmsghalt                                 11 . 37 .  sendmsg  reads:m0 barrier
s_incperflevel                                14 . 38 .  imm
s_decperflevel                                15 . 39 .  imm
s_ttracedata                                  16 . 3a .  -
s_ttracedata_imm                              - - 3b .   imm
s_icache_inv                                  13 . 3c .  -        barrier
s_barrier                                     a . 3d -   -        barrier
s_singleuse_vdst                              - - - 13   imm
s_barrier_wait                                - - - 14   simm     barrier
s_barrier_leave                               - - - 15   -        barrier
s_set_gpr_idx_off                             1c . - -   -        barrier
s_set_gpr_idx_mode                            1d . - -   gpr_idx  reads:m0 barrier
s_endpgm_ordered_ps_done                      1e . - -   -        end pipe:branch
s_wait_loadcnt                                - - - 40   imm      barrier
s_wait_storecnt                               - - - 41   imm      barrier
s_wait_samplecnt                              - - - 42   imm      barrier
s_wait_bvhcnt                                 - - - 43   imm      barrier
s_wait_expcnt                                 - - - 44   imm      barrier
s_wait_dscnt                                  - - - 46   imm      barrier
s_wait_kmcnt                                  - - - 47   imm      barrier
s_wait_loadcnt_dscnt                          - - - 48   imm      barrier
s_wait_storecnt_dscnt                         - - - 49   imm      barrier
"""
