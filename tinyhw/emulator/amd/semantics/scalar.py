"""Semantics of scalar instructions that compute, in the notation of notation.py. Branches, waits and messages are in
control.py, memory instructions in transfer_scalar.py.

S0 and S1 are ssrc0 and ssrc1 (S0 the destination and S1 the constant of SOPK), D is sdst, K a trailing constant. Names
of all architectures with the same semantics share a row. Source: the ISA guides of RDNA3, RDNA4 and CDNA3, chapters on
SALU instructions.
"""
from __future__ import annotations

def rows(text: str) -> dict[str, str]:
  """Return name -> semantics from lines `name name : semantics`."""
  found: dict[str, str] = {}
  for line in text.strip().splitlines():
    if not line.strip() or line.lstrip().startswith("#"): continue
    names, semantics = line.split(" : ", 1)
    for name in names.split():
      assert name not in found, f"two meanings of {name}"
      found[name] = semantics.strip()
  return found

SCALAR = rows("""
s_mov_b32 s_movk_i32            : D.u32 = S0.u32
s_mov_b64                       : D.u64 = S0.u64
s_cmov_b32 s_cmovk_i32          : D.u32 = S0.u32 if SCC else D.u32
s_cmov_b64                      : D.u64 = S0.u64 if SCC else D.u64
s_brev_b32                      : D.u32 = reversed(S0.u32)
s_brev_b64                      : D.u64 = reversed(S0.u64)
s_ctz_i32_b32 s_ff1_i32_b32     : D.i32 = trailing_zeros(S0.u32)
s_ctz_i32_b64 s_ff1_i32_b64     : D.i32 = trailing_zeros(S0.u64)
s_ff0_i32_b32                   : D.i32 = trailing_zeros(S0.u32 ^ 0xffffffff)
s_ff0_i32_b64                   : D.i32 = trailing_zeros(S0.u64 ^ 0xffffffffffffffff)
s_clz_i32_u32 s_flbit_i32_b32   : D.i32 = leading_zeros(S0.u32)
s_clz_i32_u64 s_flbit_i32_b64   : D.i32 = leading_zeros(S0.u64)
s_cls_i32 s_flbit_i32           : D.i32 = leading_signs(S0.i32)
s_cls_i32_i64 s_flbit_i32_i64   : D.i32 = leading_signs(S0.i64)
s_sext_i32_i8                   : D.i32 = i32(S0.i8)
s_sext_i32_i16                  : D.i32 = i32(S0.i16)
s_bitset0_b32                   : D.u32 = D.u32 & ~(1 << S0.u32[4:0])
s_bitset0_b64                   : D.u64 = D.u64 & ~(u64(1) << S0.u32[5:0])
s_bitset1_b32                   : D.u32 = D.u32 | (1 << S0.u32[4:0])
s_bitset1_b64                   : D.u64 = D.u64 | (u64(1) << S0.u32[5:0])
s_abs_i32                       : t = magnitude(S0.i32); D.u32 = u32(t); SCC = S0.u32 != 0
s_bcnt0_i32_b32                 : t = ones(S0.u32 ^ 0xffffffff); D.u32 = t; SCC = t != 0
s_bcnt0_i32_b64                 : t = ones(S0.u64 ^ 0xffffffffffffffff); D.u32 = t; SCC = t != 0
s_bcnt1_i32_b32                 : t = ones(S0.u32); D.u32 = t; SCC = t != 0
s_bcnt1_i32_b64                 : t = ones(S0.u64); D.u32 = t; SCC = t != 0
s_not_b32                       : t = ~S0.u32; D.u32 = t; SCC = t != 0
s_not_b64                       : t = ~S0.u64; D.u64 = t; SCC = t != 0
s_getpc_b64                     : D.u64 = PC
s_setpc_b64                     : PC = S0.u64
s_swappc_b64                    : t = S0.u64; D.u64 = PC; PC = t
s_add_u32 s_add_co_u32          : t = u64(S0.u32) + u64(S1.u32); SCC = t[32]; D.u32 = t
s_sub_u32 s_sub_co_u32          : SCC = S1.u32 > S0.u32; D.u32 = S0.u32 - S1.u32
s_add_i32 s_add_co_i32          : t = i64(S0.i32) + i64(S1.i32); D.i32 = t; SCC = t != i64(i32(t))
s_sub_i32 s_sub_co_i32          : t = i64(S0.i32) - i64(S1.i32); D.i32 = t; SCC = t != i64(i32(t))
s_addk_i32 s_addk_co_i32        : t = i64(D.i32) + i64(S0.i32); D.i32 = t; SCC = t != i64(i32(t))
s_mulk_i32                      : D.u32 = D.u32 * S0.u32
s_addc_u32 s_add_co_ci_u32      : t = u64(S0.u32) + u64(S1.u32) + SCC; SCC = t[32]; D.u32 = t
s_subb_u32 s_sub_co_ci_u32      : t = u64(S0.u32) - u64(S1.u32) - SCC; SCC = t[32]; D.u32 = t
s_absdiff_i32                   : t = i64(S0.i32) - i64(S1.i32); a = magnitude(t); D.i32 = a; SCC = a != 0
s_lshl_b32                      : t = S0.u32 << S1.u32[4:0]; D.u32 = t; SCC = t != 0
s_lshl_b64                      : t = S0.u64 << S1.u32[5:0]; D.u64 = t; SCC = t != 0
s_lshr_b32                      : t = S0.u32 >> S1.u32[4:0]; D.u32 = t; SCC = t != 0
s_lshr_b64                      : t = S0.u64 >> S1.u32[5:0]; D.u64 = t; SCC = t != 0
s_ashr_i32                      : t = S0.i32 >> S1.u32[4:0]; D.i32 = t; SCC = t != 0
s_ashr_i64                      : t = S0.i64 >> S1.u32[5:0]; D.i64 = t; SCC = t != 0
s_lshl1_add_u32                 : t = (u64(S0.u32) << 1) + u64(S1.u32); SCC = t > 0xffffffff; D.u32 = t
s_lshl2_add_u32                 : t = (u64(S0.u32) << 2) + u64(S1.u32); SCC = t > 0xffffffff; D.u32 = t
s_lshl3_add_u32                 : t = (u64(S0.u32) << 3) + u64(S1.u32); SCC = t > 0xffffffff; D.u32 = t
s_lshl4_add_u32                 : t = (u64(S0.u32) << 4) + u64(S1.u32); SCC = t > 0xffffffff; D.u32 = t
s_min_i32                       : SCC = S0.i32 < S1.i32; D.i32 = least(S0.i32, S1.i32)
s_min_u32                       : SCC = S0.u32 < S1.u32; D.u32 = least(S0.u32, S1.u32)
s_max_i32                       : SCC = S0.i32 >= S1.i32; D.i32 = most(S0.i32, S1.i32)
s_max_u32                       : SCC = S0.u32 >= S1.u32; D.u32 = most(S0.u32, S1.u32)
s_and_b32                       : t = S0.u32 & S1.u32; D.u32 = t; SCC = t != 0
s_and_b64                       : t = S0.u64 & S1.u64; D.u64 = t; SCC = t != 0
s_or_b32                        : t = S0.u32 | S1.u32; D.u32 = t; SCC = t != 0
s_or_b64                        : t = S0.u64 | S1.u64; D.u64 = t; SCC = t != 0
s_xor_b32                       : t = S0.u32 ^ S1.u32; D.u32 = t; SCC = t != 0
s_xor_b64                       : t = S0.u64 ^ S1.u64; D.u64 = t; SCC = t != 0
s_nand_b32                      : t = ~(S0.u32 & S1.u32); D.u32 = t; SCC = t != 0
s_nand_b64                      : t = ~(S0.u64 & S1.u64); D.u64 = t; SCC = t != 0
s_nor_b32                       : t = ~(S0.u32 | S1.u32); D.u32 = t; SCC = t != 0
s_nor_b64                       : t = ~(S0.u64 | S1.u64); D.u64 = t; SCC = t != 0
s_xnor_b32                      : t = ~(S0.u32 ^ S1.u32); D.u32 = t; SCC = t != 0
s_xnor_b64                      : t = ~(S0.u64 ^ S1.u64); D.u64 = t; SCC = t != 0
s_andn2_b32 s_and_not1_b32      : t = S0.u32 & ~S1.u32; D.u32 = t; SCC = t != 0
s_andn2_b64 s_and_not1_b64      : t = S0.u64 & ~S1.u64; D.u64 = t; SCC = t != 0
s_orn2_b32 s_or_not1_b32        : t = S0.u32 | ~S1.u32; D.u32 = t; SCC = t != 0
s_orn2_b64 s_or_not1_b64        : t = S0.u64 | ~S1.u64; D.u64 = t; SCC = t != 0
s_bfe_u32       : t = (S0.u64[31:0] >> S1.u32[4:0]) & ((u64(1) << S1.u32[22:16]) - 1); D.u32 = t; SCC = u32(t) != 0
s_bfe_u64       : t = (u128(S0.u64) >> S1.u32[5:0]) & ((u128(1) << S1.u32[22:16]) - 1); D.u64 = t; SCC = u64(t) != 0
s_bfe_i32       : n = S1.u32[22:16]; h = (u64(1) << n) >> 1; t = u64(i64(S0.i32) >> S1.u32[4:0]) & ((u64(1) << n) - 1); \
r = u32((t ^ h) - h); D.u32 = r; SCC = r != 0
s_bfe_i64       : n = S1.u32[22:16]; h = (u128(1) << n) >> 1; t = u128(i128(S0.i64) >> S1.u32[5:0]) & ((u128(1) << n) - 1); \
r = u64((t ^ h) - h); D.u64 = r; SCC = r != 0
s_bfm_b32                       : D.u32 = ((1 << S0.u32[4:0]) - 1) << S1.u32[4:0]
s_bfm_b64                       : D.u64 = ((u64(1) << S0.u32[5:0]) - 1) << S1.u32[5:0]
s_mul_i32                       : D.u32 = S0.u32 * S1.u32
s_mul_hi_u32                    : D.u32 = (u64(S0.u32) * u64(S1.u32)) >> 32
s_mul_hi_i32                    : D.i32 = (i64(S0.i32) * i64(S1.i32)) >> 32
s_mul_u64                       : D.u64 = S0.u64 * S1.u64
s_add_nc_u64 s_add_u64          : D.u64 = S0.u64 + S1.u64
s_sub_nc_u64 s_sub_u64          : D.u64 = S0.u64 - S1.u64
s_cselect_b32                   : D.u32 = S0.u32 if SCC else S1.u32
s_cselect_b64                   : D.u64 = S0.u64 if SCC else S1.u64
s_pack_ll_b32_b16               : D.u32 = S0.u32[15:0] | S1.u32[15:0] << 16
s_pack_lh_b32_b16               : D.u32 = S0.u32[15:0] | S1.u32[31:16] << 16
s_pack_hh_b32_b16               : D.u32 = S0.u32[31:16] | S1.u32[31:16] << 16
s_pack_hl_b32_b16               : D.u32 = S0.u32[31:16] | S1.u32[15:0] << 16
s_bitcmp0_b32                   : SCC = ((S0.u32 >> S1.u32[4:0]) & 1) == 0
s_bitcmp1_b32                   : SCC = ((S0.u32 >> S1.u32[4:0]) & 1) != 0
s_bitcmp0_b64                   : SCC = ((S0.u64 >> S1.u32[5:0]) & 1) == 0
s_bitcmp1_b64                   : SCC = ((S0.u64 >> S1.u32[5:0]) & 1) != 0
s_cmp_eq_u64                    : SCC = S0.u64 == S1.u64
s_cmp_lg_u64                    : SCC = S0.u64 != S1.u64
s_add_f32                       : D.f32 = S0.f32 + S1.f32
s_sub_f32                       : D.f32 = S0.f32 - S1.f32
s_mul_f32                       : D.f32 = S0.f32 * S1.f32
s_min_num_f32                   : D.f32 = min_num(S0.f32, S1.f32)
s_max_num_f32                   : D.f32 = max_num(S0.f32, S1.f32)
s_minimum_f32                   : D.f32 = minimum(S0.f32, S1.f32)
s_maximum_f32                   : D.f32 = maximum(S0.f32, S1.f32)
s_fmac_f32                      : D.f32 = fma(S0.f32, S1.f32, D.f32)
s_fmaak_f32                     : D.f32 = fma(S0.f32, S1.f32, K.f32)
s_fmamk_f32                     : D.f32 = fma(S0.f32, K.f32, S1.f32)
s_add_f16                       : D.f16 = S0.f16 + S1.f16
s_sub_f16                       : D.f16 = S0.f16 - S1.f16
s_mul_f16                       : D.f16 = S0.f16 * S1.f16
s_fmac_f16                      : D.f16 = fma(S0.f16, S1.f16, D.f16)
s_min_num_f16                   : D.f16 = min_num(S0.f16, S1.f16)
s_max_num_f16                   : D.f16 = max_num(S0.f16, S1.f16)
s_minimum_f16                   : D.f16 = minimum(S0.f16, S1.f16)
s_maximum_f16                   : D.f16 = maximum(S0.f16, S1.f16)
s_ceil_f32                      : D.f32 = ceil(S0.f32)
s_floor_f32                     : D.f32 = floor(S0.f32)
s_trunc_f32                     : D.f32 = trunc(S0.f32)
s_rndne_f32                     : D.f32 = rndne(S0.f32)
s_ceil_f16                      : D.f16 = ceil(S0.f16)
s_floor_f16                     : D.f16 = floor(S0.f16)
s_trunc_f16                     : D.f16 = trunc(S0.f16)
s_rndne_f16                     : D.f16 = rndne(S0.f16)
s_cvt_f32_i32                   : D.f32 = f32(S0.i32)
s_cvt_f32_u32                   : D.f32 = f32(S0.u32)
s_cvt_i32_f32                   : D.i32 = i32(S0.f32)
s_cvt_u32_f32                   : D.u32 = u32(S0.f32)
s_cvt_f16_f32                   : D.f16 = f16(S0.f32)
s_cvt_f32_f16                   : D.f32 = f32(S0.f16)
s_cvt_hi_f32_f16                : D.f32 = f32(S0.f16(1))
s_cvt_pk_rtz_f16_f32            : D.u32 = f16_rtz(S0.f32) | f16_rtz(S1.f32) << 16
""")

_ORDER = {"eq": "==", "lg": "!=", "gt": ">", "ge": ">=", "lt": "<", "le": "<="}
for _name, _sign in _ORDER.items():
  for _type in ("i32", "u32"):
    SCALAR[f"s_cmp_{_name}_{_type}"] = f"SCC = S0.{_type} {_sign} S1.{_type}"
    SCALAR[f"s_cmpk_{_name}_{_type}"] = f"SCC = D.{_type} {_sign} S0.{_type}"

# Comparisons of floats: of ordered operands, and their negations, which are true if an operand is NaN
FLOAT_ORDER = {
  "f": "False", "lt": "{a} < {b}", "eq": "{a} == {b}", "le": "{a} <= {b}", "gt": "{a} > {b}", "lg": "{a} < {b} or {a} > {b}", "ge": "{a} >= {b}",
  "o": "{a} == {a} and {b} == {b}", "u": "{a} != {a} or {b} != {b}", "nge": "not {a} >= {b}", "nlg": "not ({a} < {b} or {a} > {b})",
  "ngt": "not {a} > {b}", "nle": "not {a} <= {b}", "neq": "not {a} == {b}", "nlt": "not {a} < {b}", "t": "True", "tru": "True"}
for _name, _sign in FLOAT_ORDER.items():
  if _name in ("f", "t", "tru"): continue
  for _type in ("f32", "f16"): SCALAR[f"s_cmp_{_name}_{_type}"] = "SCC = " + _sign.format(a=f"S0.{_type}", b=f"S1.{_type}")

# EXEC gets the result, D its old value (saveexec) or the result as well (wrexec). The name gives the width of masks.
# They are zero-extended.
_MASKS = {"and": "S0.{t} & EXEC", "or": "S0.{t} | EXEC", "xor": "S0.{t} ^ EXEC", "nand": "~(S0.{t} & EXEC)", "nor": "~(S0.{t} | EXEC)",
          "xnor": "~(S0.{t} ^ EXEC)", "and_not0": "~S0.{t} & EXEC", "andn1": "~S0.{t} & EXEC", "or_not0": "~S0.{t} | EXEC", "orn1": "~S0.{t} | EXEC",
          "and_not1": "S0.{t} & ~EXEC", "andn2": "S0.{t} & ~EXEC", "or_not1": "S0.{t} | ~EXEC", "orn2": "S0.{t} | ~EXEC"}
for _name, _value in _MASKS.items():
  for _type, _bits in (("u32", "b32"), ("u64", "b64")):
    _result = _value.format(t=_type).replace("EXEC", "u32(EXEC)" if _type == "u32" else "EXEC")
    SCALAR[f"s_{_name}_saveexec_{_bits}"] = f"t = {_result}; D.{_type} = EXEC; EXEC = u64(t); SCC = t != 0"
    if _name in ("and_not0", "andn1", "and_not1", "andn2"):
      SCALAR[f"s_{_name}_wrexec_{_bits}"] = f"t = {_result}; D.{_type} = t; EXEC = u64(t); SCC = t != 0"
