"""Semantics of 16-bit, packed and dot-product instructions, in the notation of notation.py.

The semantics of a packed instruction are for one half. They are evaluated twice, for the halves that its modifiers
choose. S0.f16(1) is element 1 of the operand as such an array. Source: the ISA guides of RDNA3, RDNA4 and CDNA3.
"""
from __future__ import annotations

from tinyhw.emulator.amd.semantics.scalar import rows

HALF = rows("""
v_mov_b16 : D.u16 = S0.u16
v_not_b16 : D.u16 = ~S0.u16
v_and_b16 : D.u16 = S0.u16 & S1.u16
v_or_b16 : D.u16 = S0.u16 | S1.u16
v_xor_b16 : D.u16 = S0.u16 ^ S1.u16
v_cndmask_b16 : D.u16 = S1.u16 if VCC else S0.u16
v_add_f16 : D.f16 = S0.f16 + S1.f16
v_sub_f16 : D.f16 = S0.f16 - S1.f16
v_subrev_f16 : D.f16 = S1.f16 - S0.f16
v_mul_f16 : D.f16 = S0.f16 * S1.f16
v_fma_f16 v_fma_legacy_f16 : D.f16 = fma(S0.f16, S1.f16, S2.f16)
v_fmac_f16 v_mac_f16 : D.f16 = fma(S0.f16, S1.f16, D.f16)
v_fmamk_f16 v_madmk_f16 : D.f16 = fma(S0.f16, K.f16, S1.f16)
v_fmaak_f16 v_madak_f16 : D.f16 = fma(S0.f16, S1.f16, K.f16)
v_mad_f16 v_mad_legacy_f16 : D.f16 = fma(S0.f16, S1.f16, S2.f16)
v_ldexp_f16 : D.f16 = ldexp(S0.f16, i32(S1.i16))
v_div_fixup_f16 v_div_fixup_legacy_f16 : D.f16 = div_fixup(S0.f16, S1.f16, S2.f16)
v_frexp_exp_i16_f16 : D.i16 = frexp_exp(S0.f16)
v_cvt_f16_u16 : D.f16 = f16(S0.u16)
v_cvt_f16_i16 : D.f16 = f16(S0.i16)
v_cvt_u16_f16 : D.u16 = u16(S0.f16)
v_cvt_i16_f16 : D.i16 = i16(S0.f16)
v_cvt_norm_i16_f16 : D.i16 = snorm(f32(S0.f16))
v_cvt_norm_u16_f16 : D.u16 = unorm(f32(S0.f16))
v_sat_pk_u8_i16 : D.u16 = u16(saturate_u8(i32(S0.i16(0)))) | u16(saturate_u8(i32(S0.i16(1)))) << 8
v_pack_b32_f16 : D.u32 = S0.u32[15:0] | S1.u32[15:0] << 16
v_add_u16 v_add_nc_u16 : D.u16 = S0.u16 + S1.u16
v_sub_u16 v_sub_nc_u16 : D.u16 = S0.u16 - S1.u16
v_subrev_u16 : D.u16 = S1.u16 - S0.u16
v_add_i16 v_add_nc_i16 : D.i16 = S0.i16 + S1.i16
v_sub_i16 v_sub_nc_i16 : D.i16 = S0.i16 - S1.i16
v_mul_lo_u16 : D.u16 = S0.u16 * S1.u16
v_mad_u16 v_mad_legacy_u16 : D.u16 = S0.u16 * S1.u16 + S2.u16
v_mad_i16 v_mad_legacy_i16 : D.i16 = S0.i16 * S1.i16 + S2.i16
v_lshlrev_b16 : D.u16 = S1.u16 << S0.u16[3:0]
v_lshrrev_b16 : D.u16 = S1.u16 >> S0.u16[3:0]
v_ashrrev_i16 : D.i16 = S1.i16 >> S0.u16[3:0]
""")
for _type in ("i16", "u16"):
  HALF |= rows("""
v_min_{t} : D.{t} = least(S0.{t}, S1.{t})
v_max_{t} : D.{t} = most(S0.{t}, S1.{t})
v_min3_{t} : D.{t} = least(least(S0.{t}, S1.{t}), S2.{t})
v_max3_{t} : D.{t} = most(most(S0.{t}, S1.{t}), S2.{t})
v_med3_{t} : D.{t} = median(S0.{t}, S1.{t}, S2.{t})
""".replace("{t}", _type))

# Semantics of one half of a pair
PACKED = rows("""
v_pk_mad_i16 : D.i16 = S0.i16 * S1.i16 + S2.i16
v_pk_mad_u16 : D.u16 = S0.u16 * S1.u16 + S2.u16
v_pk_mul_lo_u16 : D.u16 = S0.u16 * S1.u16
v_pk_add_i16 : D.i16 = S0.i16 + S1.i16
v_pk_sub_i16 : D.i16 = S0.i16 - S1.i16
v_pk_add_u16 : D.u16 = S0.u16 + S1.u16
v_pk_sub_u16 : D.u16 = S0.u16 - S1.u16
v_pk_lshlrev_b16 : D.u16 = S1.u16 << S0.u16[3:0]
v_pk_lshrrev_b16 : D.u16 = S1.u16 >> S0.u16[3:0]
v_pk_ashrrev_i16 : D.i16 = S1.i16 >> S0.u16[3:0]
v_pk_max_i16 : D.i16 = most(S0.i16, S1.i16)
v_pk_min_i16 : D.i16 = least(S0.i16, S1.i16)
v_pk_max_u16 : D.u16 = most(S0.u16, S1.u16)
v_pk_min_u16 : D.u16 = least(S0.u16, S1.u16)
v_pk_fma_f16 : D.f16 = fma(S0.f16, S1.f16, S2.f16)
v_pk_fmac_f16 : D.f16 = fma(S0.f16, S1.f16, D.f16)
v_pk_add_f16 : D.f16 = S0.f16 + S1.f16
v_pk_mul_f16 : D.f16 = S0.f16 * S1.f16
v_pk_min_f16 v_pk_min_num_f16 : D.f16 = min_num(S0.f16, S1.f16)
v_pk_max_f16 v_pk_max_num_f16 : D.f16 = max_num(S0.f16, S1.f16)
v_pk_minimum_f16 : D.f16 = minimum(S0.f16, S1.f16)
v_pk_maximum_f16 : D.f16 = maximum(S0.f16, S1.f16)
v_pk_minimum3_f16 : D.f16 = minimum(minimum(S0.f16, S1.f16), S2.f16)
v_pk_maximum3_f16 : D.f16 = maximum(maximum(S0.f16, S1.f16), S2.f16)
v_pk_fma_f32 : D.f32 = fma(S0.f32, S1.f32, S2.f32)
v_pk_mul_f32 : D.f32 = S0.f32 * S1.f32
v_pk_add_f32 : D.f32 = S0.f32 + S1.f32
""")

def _dot(elements: int, left: str, right: str, wide: str) -> str:
  """Return a sum of products of integers, exact, with S2."""
  terms = " + ".join(f"{wide}({left.format(i)}) * {wide}({right.format(i)})" for i in range(elements))
  return f"D.{'u32' if wide == 'u64' else 'i32'} = {terms} + {wide}(S2.{'u32' if wide == 'u64' else 'i32'})"

def _mixed_signs(elements: int, bits: int) -> str:
  """Return the same with operands that modifiers make signed."""
  sides = [f"(i64(S{side}.i{bits}({{0}})) if SIGNED{side} else i64(S{side}.u{bits}({{0}})))" for side in (0, 1)]
  return _dot(elements, sides[0], sides[1], "i64")

DOT = {
  "v_dot2_f32_f16": "D.f32 = fma(f32(S0.f16(1)), f32(S1.f16(1)), fma(f32(S0.f16(0)), f32(S1.f16(0)), S2.f32))",
  "v_dot2_f32_bf16": "D.f32 = fma(f32(S0.bf16(1)), f32(S1.bf16(1)), fma(f32(S0.bf16(0)), f32(S1.bf16(0)), S2.f32))",
  "v_dot2_f16_f16": "D.f16 = fma(S0.f16(1), S1.f16(1), fma(S0.f16(0), S1.f16(0), S2.f16))",
  "v_dot2_bf16_bf16": "D.bf16 = fma(S0.bf16(1), S1.bf16(1), fma(S0.bf16(0), S1.bf16(0), S2.bf16))",
  "v_dot2_i32_i16": _dot(2, "S0.i16({0})", "S1.i16({0})", "i64"),
  "v_dot2_u32_u16": _dot(2, "S0.u16({0})", "S1.u16({0})", "u64"),
  "v_dot4_i32_i8": _dot(4, "S0.i8({0})", "S1.i8({0})", "i64"),
  "v_dot4_u32_u8": _dot(4, "S0.u8({0})", "S1.u8({0})", "u64"),
  "v_dot8_i32_i4": _dot(8, "S0.i4({0})", "S1.i4({0})", "i64"),
  "v_dot8_u32_u4": _dot(8, "S0.u4({0})", "S1.u4({0})", "u64"),
  "v_dot4_i32_iu8": _mixed_signs(4, 8),
  "v_dot8_i32_iu4": _mixed_signs(8, 4),
}
for _left in ("fp8", "bf8"):
  for _right in ("fp8", "bf8"):
    _sum = "S2.f32"
    for _i in range(4): _sum = f"fma({_left}_to_f32(u32(S0.u8({_i}))), {_right}_to_f32(u32(S1.u8({_i}))), {_sum})"
    DOT[f"v_dot4_f32_{_left}_{_right}"] = f"D.f32 = {_sum}"
for _name, _source in (("v_dot2c_f32_f16", "v_dot2_f32_f16"), ("v_dot2acc_f32_f16", "v_dot2_f32_f16"), ("v_dual_dot2acc_f32_f16", "v_dot2_f32_f16"),
                       ("v_dot2c_f32_bf16", "v_dot2_f32_bf16"), ("v_dot2c_i32_i16", "v_dot2_i32_i16"), ("v_dot4c_i32_i8", "v_dot4_i32_i8"),
                       ("v_dot8c_i32_i4", "v_dot8_i32_i4")):
  DOT[_name] = DOT[_source].replace("S2.", "D.")
