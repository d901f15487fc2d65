"""Semantics of vector instructions for one lane, in the notation of notation.py. 16-bit, packed and dot products are in
semantics/packed.py.

S0, S1, S2 are src0, src1, src2, D is vdst, K a trailing constant. VCC is this lane's bit of the mask that is read,
CARRY that of the mask that is written. Instructions between lanes are in lanes.py, matrix instructions in matrix.py.
Source: the ISA guides of RDNA3, RDNA4 and CDNA3.
"""
from __future__ import annotations

from tinyhw.emulator.amd.semantics.scalar import FLOAT_ORDER, rows

VECTOR = rows("""
v_mov_b32 v_dual_mov_b32 v_accvgpr_mov_b32 v_accvgpr_read_b32 v_accvgpr_write_b32 v_accvgpr_read v_accvgpr_write : D.u32 = S0.u32
v_pk_mov_b32                    : D.u32 = S0.u32; D1.u32 = S1.u32
v_mov_b64                       : D.u64 = S0.u64
v_cvt_i32_f64                   : D.i32 = i32(S0.f64)
v_cvt_u32_f64                   : D.u32 = u32(S0.f64)
v_cvt_f64_i32                   : D.f64 = f64(S0.i32)
v_cvt_f64_u32                   : D.f64 = f64(S0.u32)
v_cvt_f32_i32                   : D.f32 = f32(S0.i32)
v_cvt_f32_u32                   : D.f32 = f32(S0.u32)
v_cvt_i32_f32                   : D.i32 = i32(S0.f32)
v_cvt_u32_f32                   : D.u32 = u32(S0.f32)
v_cvt_f16_f32                   : D.f16 = f16(S0.f32)
v_cvt_f32_f16                   : D.f32 = f32(S0.f16)
v_cvt_f32_bf16                  : D.f32 = f32(S0.bf16)
v_cvt_nearest_i32_f32 v_cvt_rpi_i32_f32 : D.i32 = i32(floor(f64(S0.f32) + 0.5))
v_cvt_floor_i32_f32 v_cvt_flr_i32_f32   : D.i32 = i32(floor(S0.f32))
v_cvt_off_f32_i4                : D.f32 = f32((i32(S0.u32[3:0]) ^ 8) - 8) * 0.0625
v_cvt_f32_f64                   : D.f32 = f32(S0.f64)
v_cvt_f64_f32                   : D.f64 = f64(S0.f32)
v_cvt_f32_ubyte0                : D.f32 = f32(S0.u32[7:0])
v_cvt_f32_ubyte1                : D.f32 = f32(S0.u32[15:8])
v_cvt_f32_ubyte2                : D.f32 = f32(S0.u32[23:16])
v_cvt_f32_ubyte3                : D.f32 = f32(S0.u32[31:24])
v_cvt_i32_i16                   : D.i32 = i32(S0.i16)
v_cvt_u32_u16                   : D.u32 = u32(S0.u16)
v_cvt_pk_i16_i32                : D.u32 = u32(saturate_i16(S0.i32))[15:0] | u32(saturate_i16(S1.i32))[15:0] << 16
v_cvt_pk_u16_u32                : D.u32 = u32(saturate_u16(S0.u32)) | u32(saturate_u16(S1.u32)) << 16
v_cvt_pk_i16_f32                : D.u32 = u32(i16(S0.f32))[15:0] | u32(i16(S1.f32))[15:0] << 16
v_cvt_pk_u16_f32                : D.u32 = u32(u16(S0.f32)) | u32(u16(S1.f32)) << 16
v_cvt_pk_norm_i16_f32 v_cvt_pknorm_i16_f32 : D.u32 = u32(snorm(S0.f32))[15:0] | u32(snorm(S1.f32))[15:0] << 16
v_cvt_pk_norm_u16_f32 v_cvt_pknorm_u16_f32 : D.u32 = unorm(S0.f32) | unorm(S1.f32) << 16
v_cvt_pk_norm_i16_f16 v_cvt_pknorm_i16_f16 : D.u32 = u32(snorm(f32(S0.f16)))[15:0] | u32(snorm(f32(S1.f16)))[15:0] << 16
v_cvt_pk_norm_u16_f16 v_cvt_pknorm_u16_f16 : D.u32 = unorm(f32(S0.f16)) | unorm(f32(S1.f16)) << 16
v_cvt_pk_rtz_f16_f32 v_cvt_pkrtz_f16_f32   : D.u32 = f16_rtz(S0.f32) | f16_rtz(S1.f32) << 16
v_cvt_pk_f16_f32                : D.u32 = raw_f16(f16(S0.f32)) | raw_f16(f16(S1.f32)) << 16
v_cvt_pk_bf16_f32               : D.u32 = raw_bf16(bf16(S0.f32)) | raw_bf16(bf16(S1.f32)) << 16
# guess: the random bits are the low half
v_cvt_sr_bf16_f32               : t = raw_f32(S0.f32); \
D.u16 = t >> 16 if (t & 0x7f800000) == 0x7f800000 else u32((u64(t) + u64(S1.u32[15:0])) >> 16)
v_cvt_pk_u8_f32                 : n = S1.u32[1:0] << 3; D.u32 = (S2.u32 & ~(255 << n)) | (u32(u8(S0.f32)) << n)
v_cvt_f32_fp8                   : D.f32 = fp8_to_f32(S0.u8)
v_cvt_f32_bf8                   : D.f32 = bf8_to_f32(S0.u8)
v_cvt_pk_f32_fp8                : D.f32 = fp8_to_f32(S0.u16[7:0]); D1.f32 = fp8_to_f32(S0.u16[15:8])
v_cvt_pk_f32_bf8                : D.f32 = bf8_to_f32(S0.u16[7:0]); D1.f32 = bf8_to_f32(S0.u16[15:8])
v_cvt_pk_fp8_f32                : D.u16 = f32_to_fp8(S0.f32) | f32_to_fp8(S1.f32) << 8
v_cvt_pk_bf8_f32                : D.u16 = f32_to_bf8(S0.f32) | f32_to_bf8(S1.f32) << 8
v_cvt_sr_fp8_f32                : D.u8 = f32_to_fp8_random(S0.f32, S1.u32)
v_cvt_sr_bf8_f32                : D.u8 = f32_to_bf8_random(S0.f32, S1.u32)
v_not_b32                       : D.u32 = ~S0.u32
v_bfrev_b32                     : D.u32 = reversed(S0.u32)
v_clz_i32_u32 v_ffbh_u32        : D.i32 = leading_zeros(S0.u32)
v_ctz_i32_b32 v_ffbl_b32        : D.i32 = trailing_zeros(S0.u32)
v_cls_i32 v_ffbh_i32            : D.i32 = leading_signs(S0.i32)
v_prng_b32                      : D.u32 = (S0.u32 << 1) ^ (S0.u32[31] * 197)
v_cndmask_b32 v_dual_cndmask_b32 : D.u32 = S1.u32 if VCC else S0.u32
v_add_f32 v_dual_add_f32        : D.f32 = S0.f32 + S1.f32
v_sub_f32 v_dual_sub_f32        : D.f32 = S0.f32 - S1.f32
v_subrev_f32 v_dual_subrev_f32  : D.f32 = S1.f32 - S0.f32
v_mul_f32 v_dual_mul_f32        : D.f32 = S0.f32 * S1.f32
v_mul_dx9_zero_f32 v_mul_legacy_f32 v_dual_mul_dx9_zero_f32 : D.f32 = mul_zero(S0.f32, S1.f32)
v_fma_f32                       : D.f32 = fma(S0.f32, S1.f32, S2.f32)
v_fma_dx9_zero_f32              : D.f32 = fma_zero(S0.f32, S1.f32, S2.f32)
v_fmac_f32 v_dual_fmac_f32      : D.f32 = fma(S0.f32, S1.f32, D.f32)
v_fmac_dx9_zero_f32             : D.f32 = fma_zero(S0.f32, S1.f32, D.f32)
v_fmamk_f32 v_dual_fmamk_f32    : D.f32 = fma(S0.f32, K.f32, S1.f32)
v_fmaak_f32 v_dual_fmaak_f32    : D.f32 = fma(S0.f32, S1.f32, K.f32)
v_fma_mix_f32                   : D.f32 = fma(M0.f32, M1.f32, M2.f32)
v_fma_mixlo_f16 v_fma_mixhi_f16 : D.f16 = f16(fma(M0.f32, M1.f32, M2.f32))
v_fma_f64                       : D.f64 = fma(S0.f64, S1.f64, S2.f64)
v_fmac_f64                      : D.f64 = fma(S0.f64, S1.f64, D.f64)
v_add_f64                       : D.f64 = S0.f64 + S1.f64
v_mul_f64                       : D.f64 = S0.f64 * S1.f64
v_ldexp_f32                     : D.f32 = ldexp(S0.f32, S1.i32)
v_ldexp_f64                     : D.f64 = ldexp(S0.f64, S1.i32)
v_div_scale_f32                 : D.f32 = div_scale(S0.f32, S1.f32, S2.f32); CARRY = div_scale_flag(S1.f32, S2.f32)
v_div_scale_f64                 : D.f64 = div_scale(S0.f64, S1.f64, S2.f64); CARRY = div_scale_flag(S1.f64, S2.f64)
v_div_fmas_f32                  : D.f32 = div_fmas(S0.f32, S1.f32, S2.f32, VCC)
v_div_fmas_f64                  : D.f64 = div_fmas(S0.f64, S1.f64, S2.f64, VCC)
v_div_fixup_f32                 : D.f32 = div_fixup(S0.f32, S1.f32, S2.f32)
v_div_fixup_f64                 : D.f64 = div_fixup(S0.f64, S1.f64, S2.f64)
v_trig_preop_f64                : D.f64 = trig_preop(S0.f64, S1.u32)
v_mul_i32_i24                   : D.u32 = u32(i64((S0.i32 << 8) >> 8) * i64((S1.i32 << 8) >> 8))
v_mul_hi_i32_i24                : D.u32 = u32((i64((S0.i32 << 8) >> 8) * i64((S1.i32 << 8) >> 8)) >> 32)
v_mul_u32_u24                   : D.u32 = S0.u32[23:0] * S1.u32[23:0]
v_mul_hi_u32_u24                : D.u32 = (u64(S0.u32[23:0]) * u64(S1.u32[23:0])) >> 32
v_mad_i32_i24                   : D.i32 = i64((S0.i32 << 8) >> 8) * i64((S1.i32 << 8) >> 8) + i64(S2.i32)
v_mad_u32_u24                   : D.u32 = S0.u32[23:0] * S1.u32[23:0] + S2.u32
v_mad_u32_u16                   : D.u32 = u32(S0.u16) * u32(S1.u16) + S2.u32
v_mad_i32_i16                   : D.i32 = i32(S0.i16) * i32(S1.i16) + S2.i32
v_mad_u64_u32 v_mad_co_u64_u32  : p = u64(S0.u32) * u64(S1.u32); t = p + S2.u64; D.u64 = t; CARRY = t < p
v_mad_i64_i32 v_mad_co_i64_i32  : t = i128(S0.i32) * i128(S1.i32) + i128(S2.i64); D.i64 = t; CARRY = t != i128(i64(t))
v_mul_lo_u32                    : D.u32 = S0.u32 * S1.u32
v_mul_hi_u32                    : D.u32 = (u64(S0.u32) * u64(S1.u32)) >> 32
v_mul_hi_i32                    : D.i32 = (i64(S0.i32) * i64(S1.i32)) >> 32
v_lshlrev_b32 v_dual_lshlrev_b32 : D.u32 = S1.u32 << S0.u32[4:0]
v_lshrrev_b32                   : D.u32 = S1.u32 >> S0.u32[4:0]
v_ashrrev_i32                   : D.i32 = S1.i32 >> S0.u32[4:0]
v_lshlrev_b64                   : D.u64 = S1.u64 << S0.u32[5:0]
v_lshrrev_b64                   : D.u64 = S1.u64 >> S0.u32[5:0]
v_ashrrev_i64                   : D.i64 = S1.i64 >> S0.u32[5:0]
v_and_b32 v_dual_and_b32        : D.u32 = S0.u32 & S1.u32
v_or_b32                        : D.u32 = S0.u32 | S1.u32
v_xor_b32                       : D.u32 = S0.u32 ^ S1.u32
v_xnor_b32                      : D.u32 = ~(S0.u32 ^ S1.u32)
v_add_nc_u32 v_add_u32 v_dual_add_nc_u32 : D.u32 = S0.u32 + S1.u32
v_sub_nc_u32 v_sub_u32          : D.u32 = S0.u32 - S1.u32
v_subrev_nc_u32 v_subrev_u32    : D.u32 = S1.u32 - S0.u32
v_add_nc_i32 v_add_i32          : D.i32 = S0.i32 + S1.i32
v_sub_nc_i32 v_sub_i32          : D.i32 = S0.i32 - S1.i32
v_add_co_u32                    : t = u64(S0.u32) + u64(S1.u32); CARRY = t[32]; D.u32 = t
v_sub_co_u32                    : CARRY = S1.u32 > S0.u32; D.u32 = S0.u32 - S1.u32
v_subrev_co_u32                 : CARRY = S0.u32 > S1.u32; D.u32 = S1.u32 - S0.u32
v_add_co_ci_u32 v_addc_co_u32   : t = u64(S0.u32) + u64(S1.u32) + VCC; CARRY = t[32]; D.u32 = t
v_sub_co_ci_u32 v_subb_co_u32   : t = u64(S0.u32) - u64(S1.u32) - VCC; CARRY = t[32]; D.u32 = t
v_subrev_co_ci_u32 v_subbrev_co_u32 : t = u64(S1.u32) - u64(S0.u32) - VCC; CARRY = t[32]; D.u32 = t
v_bfe_u32                       : D.u32 = (S0.u32 >> S1.u32[4:0]) & ((1 << S2.u32[4:0]) - 1)
v_bfe_i32                       : n = S2.u32[4:0]; h = (u32(1) << n) >> 1; t = u32(S0.i32 >> S1.u32[4:0]) & ((1 << n) - 1); D.u32 = (t ^ h) - h
v_bfi_b32                       : D.u32 = (S0.u32 & S1.u32) | (~S0.u32 & S2.u32)
v_bfm_b32                       : D.u32 = ((1 << S0.u32[4:0]) - 1) << S1.u32[4:0]
v_alignbit_b32                  : D.u32 = (u64(S0.u32) << 32 | u64(S1.u32)) >> S2.u32[4:0]
v_alignbyte_b32                 : D.u32 = (u64(S0.u32) << 32 | u64(S1.u32)) >> (S2.u32[1:0] << 3)
v_perm_b32                      : D.u32 = perm(S0.u32, S1.u32, S2.u32)
v_lerp_u8                       : a = S0.u32; b = S1.u32; c = S2.u32; \
D.u32 = ((a[7:0] + b[7:0] + c[0]) >> 1) | ((a[15:8] + b[15:8] + c[8]) >> 1) << 8 | ((a[23:16] + b[23:16] + c[16]) >> 1) << 16 \
| ((a[31:24] + b[31:24] + c[24]) >> 1) << 24
v_sad_u8                        : D.u32 = sum_differences(S0.u32, S1.u32) + S2.u32
v_sad_hi_u8                     : D.u32 = (sum_differences(S0.u32, S1.u32) << 16) + S2.u32
v_sad_u16                       : \
D.u32 = u32(magnitude(i32(S0.u32[15:0]) - i32(S1.u32[15:0]))) + u32(magnitude(i32(S0.u32[31:16]) - i32(S1.u32[31:16]))) + S2.u32
v_sad_u32                       : D.u32 = most(S0.u32, S1.u32) - least(S0.u32, S1.u32) + S2.u32
v_lshl_add_u32                  : D.u32 = (S0.u32 << S1.u32[4:0]) + S2.u32
v_add_lshl_u32                  : D.u32 = (S0.u32 + S1.u32) << S2.u32[4:0]
v_lshl_or_b32                   : D.u32 = (S0.u32 << S1.u32[4:0]) | S2.u32
v_and_or_b32                    : D.u32 = (S0.u32 & S1.u32) | S2.u32
v_or3_b32                       : D.u32 = S0.u32 | S1.u32 | S2.u32
v_xor3_b32                      : D.u32 = S0.u32 ^ S1.u32 ^ S2.u32
v_xad_u32                       : D.u32 = (S0.u32 ^ S1.u32) + S2.u32
v_add3_u32                      : D.u32 = S0.u32 + S1.u32 + S2.u32
v_lshl_add_u64                  : D.u64 = (S0.u64 << S1.u32[2:0]) + S2.u64
v_min_i32 : D.i32 = least(S0.i32, S1.i32)
v_max_i32 : D.i32 = most(S0.i32, S1.i32)
v_min_u32 : D.u32 = least(S0.u32, S1.u32)
v_max_u32 : D.u32 = most(S0.u32, S1.u32)
v_maxmin_i32                    : D.i32 = least(most(S0.i32, S1.i32), S2.i32)
v_minmax_i32                    : D.i32 = most(least(S0.i32, S1.i32), S2.i32)
v_maxmin_u32                    : D.u32 = least(most(S0.u32, S1.u32), S2.u32)
v_minmax_u32                    : D.u32 = most(least(S0.u32, S1.u32), S2.u32)
v_bcnt_u32_b32                  : D.u32 = ones(S0.u32) + S1.u32
v_mbcnt_lo_u32_b32              : D.u32 = ones(mask_to_bits(u64(S0.u32), LANE)) + S1.u32
v_mbcnt_hi_u32_b32              : D.u32 = ones(mask_to_bits(u64(S0.u32) << 32, LANE)) + S1.u32
v_cmp_class_f16                 : CARRY = class_f16(u32(S0.u16), u32(S1.u16))
v_cmp_class_f32                 : CARRY = class_f32(S0.u32, S1.u32)
v_cmp_class_f64                 : CARRY = class_f64(S0.u64, S1.u32)
v_ashr_pk_i8_i32                : a = S0.i32 >> S2.u32[4:0]; b = S1.i32 >> S2.u32[4:0]; \
D.u16 = u16(i8(most(least(a, 127), -128)))[7:0] | u16(i8(most(least(b, 127), -128)))[7:0] << 8
v_ashr_pk_u8_i32                : D.u16 = u16(saturate_u8(S0.i32 >> S2.u32[4:0])) | u16(saturate_u8(S1.i32 >> S2.u32[4:0])) << 8
""")

# the same for several types: {t} is the type, {n} its name in the mnemonic
for _type in ("f32", "f64", "f16"):
  VECTOR |= rows("""
v_trunc_{t} : D.{t} = trunc(S0.{t})
v_ceil_{t} : D.{t} = ceil(S0.{t})
v_floor_{t} : D.{t} = floor(S0.{t})
v_rndne_{t} : D.{t} = rndne(S0.{t})
v_fract_{t} : D.{t} = fract(S0.{t})
v_rcp_{t} v_s_rcp_{t} : D.{t} = rcp(S0.{t})
v_rsq_{t} v_s_rsq_{t} : D.{t} = rsq(S0.{t})
v_sqrt_{t} v_s_sqrt_{t} : D.{t} = sqrt(S0.{t})
v_frexp_mant_{t} : D.{t} = frexp_mant(S0.{t})
v_min_{t} v_min_num_{t} v_dual_min_{t} v_dual_min_num_{t} : D.{t} = min_num(S0.{t}, S1.{t})
v_max_{t} v_max_num_{t} v_dual_max_{t} v_dual_max_num_{t} : D.{t} = max_num(S0.{t}, S1.{t})
v_minimum_{t} : D.{t} = minimum(S0.{t}, S1.{t})
v_maximum_{t} : D.{t} = maximum(S0.{t}, S1.{t})
""".replace("{t}", _type))
for _type in ("f32", "f16"):
  VECTOR |= rows("""
v_exp_{t} v_s_exp_{t} : D.{t} = exp(S0.{t})
v_log_{t} v_s_log_{t} : D.{t} = log(S0.{t})
v_sin_{t} : D.{t} = sin(S0.{t})
v_cos_{t} : D.{t} = cos(S0.{t})
v_min3_{t} v_min3_num_{t} : D.{t} = min_num(min_num(S0.{t}, S1.{t}), S2.{t})
v_max3_{t} v_max3_num_{t} : D.{t} = max_num(max_num(S0.{t}, S1.{t}), S2.{t})
v_med3_{t} v_med3_num_{t} : D.{t} = median(S0.{t}, S1.{t}, S2.{t})
v_maxmin_{t} v_maxmin_num_{t} : D.{t} = min_num(max_num(S0.{t}, S1.{t}), S2.{t})
v_minmax_{t} v_minmax_num_{t} : D.{t} = max_num(min_num(S0.{t}, S1.{t}), S2.{t})
v_minimum3_{t} : D.{t} = minimum(minimum(S0.{t}, S1.{t}), S2.{t})
v_maximum3_{t} : D.{t} = maximum(maximum(S0.{t}, S1.{t}), S2.{t})
v_maximumminimum_{t} : D.{t} = minimum(maximum(S0.{t}, S1.{t}), S2.{t})
v_minimummaximum_{t} : D.{t} = maximum(minimum(S0.{t}, S1.{t}), S2.{t})
""".replace("{t}", _type))
VECTOR |= {"v_rcp_iflag_f32": VECTOR["v_rcp_f32"], "v_exp_legacy_f32": VECTOR["v_exp_f32"], "v_log_legacy_f32": VECTOR["v_log_f32"],
           "v_frexp_exp_i32_f32": "D.i32 = frexp_exp(S0.f32)", "v_frexp_exp_i32_f64": "D.i32 = frexp_exp(S0.f64)"}
for _type in ("i32", "u32"):
  VECTOR |= rows("""
v_min3_{t} : D.{t} = least(least(S0.{t}, S1.{t}), S2.{t})
v_max3_{t} : D.{t} = most(most(S0.{t}, S1.{t}), S2.{t})
v_med3_{t} : D.{t} = median(S0.{t}, S1.{t}, S2.{t})
""".replace("{t}", _type))

INTEGER_ORDER = {"f": "False", "lt": "{a} < {b}", "eq": "{a} == {b}", "le": "{a} <= {b}", "gt": "{a} > {b}", "ne": "{a} != {b}", "ge": "{a} >= {b}",
                 "t": "True"}
for _type in ("f16", "f32", "f64", "i16", "u16", "i32", "u32", "i64", "u64"):
  for _name, _order in (FLOAT_ORDER if _type[0] == "f" else INTEGER_ORDER).items():
    VECTOR[f"v_cmp_{_name}_{_type}"] = "CARRY = " + _order.format(a=f"S0.{_type}", b=f"S1.{_type}")
VECTOR |= {name.replace("v_cmp_", "v_cmpx_"): semantics for name, semantics in VECTOR.items() if name.startswith("v_cmp_")}  # the mask is EXEC
