"""AMD rows of CDNA4's scaled conversions of floats of 8 bits and fewer.

The notation is that of table.py. The last source is the scale, an f32 of which only the exponent counts. The sr
conversions round stochastically, by the number before the scale. op_sel selects the part of a register that has the
packed elements.
"""
from __future__ import annotations

# name without v_cvt_scalef32_, opcode, operands; {n} is fp8 or bf8
BYTES = "".join(f"""
v_cvt_scalef32_pk_{n}_f32   - {0x235 + i:x} - -  {n}x2+ f32 f32 f32         op_sel
v_cvt_scalef32_sr_{n}_f32   - {0x237 + i:x} - -  {n}x4+ f32 b32 f32         op_sel
v_cvt_scalef32_pk_f32_{n}   - {0x239 + i:x} - -  f32x2= {n}x4 f32           op_sel
v_cvt_scalef32_f32_{n}      - {0x23b + i:x} - -  f32= {n}x4 f32             op_sel
v_cvt_scalef32_pk_{n}_f16   - {0x240 + i:x} - -  {n}x2+ f16x2 f32           op_sel
v_cvt_scalef32_sr_{n}_f16   - {0x242 + i:x} - -  {n}x4+ f16 b32 f32         op_sel
v_cvt_scalef32_pk_{n}_bf16  - {0x244 + i:x} - -  {n}x2+ bf16x2 f32          op_sel
v_cvt_scalef32_sr_{n}_bf16  - {0x246 + i:x} - -  {n}x4+ bf16 b32 f32        op_sel
v_cvt_scalef32_pk_f16_{n}   - {0x248 + i:x} - -  f16x2= {n}x4 f32           op_sel
v_cvt_scalef32_f16_{n}      - {0x24a + i:x} - -  f16+ {n}x4 f32             op_sel
v_cvt_scalef32_pk_bf16_{n}  - {0x269 + i:x} - -  bf16x2= {n}x4 f32          op_sel
""" for i, n in enumerate(("fp8", "bf8")))
FOURS = """
v_cvt_scalef32_pk_fp4_f32      - 23d - -  fp4x2+ f32 f32 f32       op_sel
v_cvt_scalef32_sr_pk_fp4_f32   - 23e - -  fp4x2+ f32x2[v] b32 f32   op_sel
v_cvt_scalef32_pk_f32_fp4      - 23f - -  f32x2= fp4x8 f32         op_sel
v_cvt_scalef32_pk_fp4_f16      - 24c - -  fp4x2+ f16x2 f32         op_sel=15
v_cvt_scalef32_pk_fp4_bf16     - 24d - -  fp4x2+ bf16x2 f32        op_sel=15
v_cvt_scalef32_sr_pk_fp4_f16   - 24e - -  fp4x2+ f16x2 b32 f32     op_sel
v_cvt_scalef32_sr_pk_fp4_bf16  - 24f - -  fp4x2+ bf16x2 b32 f32    op_sel
v_cvt_scalef32_pk_f16_fp4      - 250 - -  f16x2= fp4x8 f32         op_sel
v_cvt_scalef32_pk_bf16_fp4     - 251 - -  bf16x2= fp4x8 f32        op_sel
"""
# 32 elements of six bits are in six registers.
SIXES = "".join(f"""
v_cvt_scalef32_2xpk16_{n}_f32    - {0x252 + i:x} - -  {n}x32= f32x16[v] f32x16[v] f32   noneg
v_cvt_scalef32_sr_pk32_{n}_f32   - {0x254 + i:x} - -  {n}x32= f32x32[v] b32 f32         noneg
v_cvt_scalef32_pk32_f32_{n}      - {0x256 + i:x} - -  f32x32= {n}x32[v] f32             noneg
v_cvt_scalef32_pk32_{n}_f16      - {0x258 + 2 * i:x} - -  {n}x32= f16x32[v] f32         noneg
v_cvt_scalef32_pk32_{n}_bf16     - {0x259 + 2 * i:x} - -  {n}x32= bf16x32[v] f32        noneg
v_cvt_scalef32_sr_pk32_{n}_f16   - {0x25c + 2 * i:x} - -  {n}x32= f16x32[v] b32 f32     noneg
v_cvt_scalef32_sr_pk32_{n}_bf16  - {0x25d + 2 * i:x} - -  {n}x32= bf16x32[v] b32 f32    noneg
v_cvt_scalef32_pk32_f16_{n}      - {0x260 + 2 * i:x} - -  f16x32= {n}x32[v] f32         noneg
v_cvt_scalef32_pk32_bf16_{n}     - {0x261 + 2 * i:x} - -  bf16x32= {n}x32[v] f32        noneg
""" for i, n in enumerate(("fp6", "bf6")))
TEXT = "@ vop3 valu\n" + BYTES + FOURS + SIXES
