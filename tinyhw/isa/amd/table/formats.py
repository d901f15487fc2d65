"""Formats of AMD instructions, drawn as in the ISA guides. The most significant bit of the last dword comes first, so
later dwords are on the left.

`formats(family)` has them by name; the families are cdna (CDNA3, CDNA4), rdna3 and rdna4. Names of fields are those of
the guides. Where families differ in a name, one is used for all (offset for ioffset, vdata for vsrc, clamp for clmp,
neg_lo for the neg of a packed format).

Instructions with an additional dword (a mandatory literal, DPP, SDWA) are formats of their own. A constant in place of
src0 identifies them. A field may have more bits than the register's number: src0[9] of an MFMA selects accumulation
registers, vaddr[8] of SCRATCH tells that there is a register.

Sources: RDNA3, RDNA4, MI300 (CDNA3) and CDNA4 ISA guides, and AMD's machine-readable ISA description.
"""
from __future__ import annotations

from tinyhw.machine.notation.bits import Format, fmt
from tinyhw.machine.notation.lazy import Lazy
from tinyhw.threads import once

SOURCES = "neg:3 omod:2 src2:9 src1:9 src0:9"
PACKED = "neg_lo:3 op_sel_hi[1:0] src2:9 src1:9 src0:9"
MATRIX = "blgp:3 src1[9] src0[9] src2:9 src1[8:0] src0[8:0] 110100111 op:7 vdst[8]"

COMMON = {
  "sop1": "101111101 sdst:7 op:8 ssrc0:8",
  "sop2": "10 op:7 sdst:7 ssrc1:8 ssrc0:8",
  "sopk": "1011 op:5 sdst:7 simm16:16",
  "sopc": "101111110 op:7 ssrc1:8 ssrc0:8",
  "sopp": "101111111 op:7 simm16:16",
  "vop1": "0111111 vdst:8 op:8 src0:9",
  "vop2": "0 op:6 vdst:8 vsrc1:8 src0:9",
  "vopc": "0111110 op:8 vsrc1:8 src0:9",
}
CDNA = {
  # The offset is a number (imm), in a scalar register whose number is in the field `offset`, or the sum of both
  # (soffset_en).
  "smem_imm": "_:7 _:4 offset:21s 110000 op:8 1 glc:1 _:1 0 _:1 sdata:7 sbase:6",
  "smem_register": "_:7 _:4 _:14 soffset:7 110000 op:8 0 glc:1 _:1 0 _:1 sdata:7 sbase:6",
  "smem_both": "soffset:7 _:4 offset:21s 110000 op:8 1 glc:1 _:1 1 _:1 sdata:7 sbase:6",
  "smem_none": "_:32 110000 op:8 0 _:4 sdata:7 _:6",
  "vop3": f"{SOURCES} 110100 op:10 clamp:1 op_sel:4 abs:3 vdst:8",
  "vop3sd": f"{SOURCES} 110100 op:10 clamp:1 sdst:7 vdst:8",
  "vop3_bitop": "bitop3[2:0] bitop3[7:6] src2:9 src1:9 src0:9 110100 op:10 clamp:1 op_sel:4 bitop3[5:3] vdst:8",
  "vop3p": f"{PACKED} 110100111 op:7 clamp:1 op_sel_hi[2] op_sel:3 neg_hi:3 vdst:8",
  "mfma": f"{MATRIX} abid:4 cbsz:3 vdst[7:0]",
  # The lower half is the prefix with the sources of the scales, the upper half the MFMA that it scales.
  "mfma_scale": f"{MATRIX} 0001 cbsz:3 vdst[7:0]  _:3 op_sel_hi:2 _:9 scale_src1:9 scale_src0:9 1101001110101100 _:2 "
  f"_:1 op_sel:2 _:11",
  "ds": "vdst:8 data1:8 data0:8 addr:8 110110 acc:1 op:8 gds:1 offset:16",
  "ds2": "vdst:8 data1:8 data0:8 addr:8 110110 acc:1 op:8 gds:1 offset1:8 offset0:8",
  "flat": "vdst:8 acc:1 _:7 vdata:8 vaddr:8 110111 sc1:1 op:7 nt:1 sc0:1 00 _:2 offset:12",
  "scratch": "vdst:8 acc:1 saddr:7 vdata:8 vaddr[7:0] 110111 sc1:1 op:7 nt:1 sc0:1 01 vaddr[8] offset:13s",
  "global": "vdst:8 acc:1 saddr:7 vdata:8 vaddr:8 110111 sc1:1 op:7 nt:1 sc0:1 10 _:1 offset:13s",
  "mubuf": "soffset:8 acc:1 _:2 srsrc:5 vdata:8 vaddr:8 111000 _:1 op:7 nt:1 lds:1 sc1:1 sc0:1 idxen:1 offen:1 "
  "offset:12",
}
RDNA3 = {
  "smem": "soffset:7 _:4 offset:21s 111101 op:8 _:3 glc:1 dlc:1 sdata:7 sbase:6",
  "vop3": f"{SOURCES} 110101 op:10 clamp:1 op_sel:4 abs:3 vdst:8",
  "vop3sd": f"{SOURCES} 110101 op:10 clamp:1 sdst:7 vdst:8",
  "vop3p": f"{PACKED} 11001100 _:1 op:7 clamp:1 op_sel_hi[2] op_sel:3 neg_hi:3 vdst:8",
  "vopd": "vdstx:8 vdsty:7 vsrcy1:8 srcy0:9 110010 op[8:5] op[4:0] vsrcx1:8 srcx0:9",
  "ds": "vdst:8 data1:8 data0:8 addr:8 110110 op:8 gds:1 _:1 offset:16",
  "ds2": "vdst:8 data1:8 data0:8 addr:8 110110 op:8 gds:1 _:1 offset1:8 offset0:8",
  "flat": "vdst:8 _:1 1111100 vdata:8 vaddr:8 110111 _:1 op:7 00 slc:1 glc:1 dlc:1 _:1 offset:12",
  "scratch": "vdst:8 vaddr[8] saddr:7 vdata:8 vaddr[7:0] 110111 _:1 op:7 01 slc:1 glc:1 dlc:1 offset:13s",
  "global": "vdst:8 _:1 saddr:7 vdata:8 vaddr:8 110111 _:1 op:7 10 slc:1 glc:1 dlc:1 offset:13s",
  "mubuf": "soffset:8 idxen:1 offen:1 tfe:1 srsrc:5 vdata:8 vaddr:8 111000 op:8 _:3 glc:1 dlc:1 slc:1 offset:12",
}
RDNA4 = {
  **{name: RDNA3[name] for name in ("vop3", "vop3sd", "vop3p", "vopd")},
  "smem": "soffset:7 _:1 offset:24s 111101 _:1 th:2 scope:2 _:2 op:6 sdata:7 sbase:6",
  "ds": "vdst:8 data1:8 data0:8 addr:8 110110 op:8 _:2 offset:16",
  "ds2": "vdst:8 data1:8 data0:8 addr:8 110110 op:8 _:2 offset1:8 offset0:8",
  "flat": "offset:24s vaddr:8 _:1 vdata:8 th:3 scope:2 _:10 vdst:8 11101100 _:2 op:8 _:7 1111100",
  "scratch": "offset:24s vaddr[7:0] _:1 vdata:8 th:3 scope:2 vaddr[8] _:9 vdst:8 11101101 _:2 op:8 _:7 saddr:7",
  "global": "offset:24s vaddr:8 _:1 vdata:8 th:3 scope:2 _:10 vdst:8 11101110 _:2 op:8 _:7 saddr:7",
  "mubuf": "_:1 offset:23 vaddr:8 idxen:1 offen:1 0000001 th:3 scope:2 srsrc:9 _:1 vdata:8 110001 _:3 tfe:1 op:8 _:7 "
  "soffset:7",
  "mtbuf": "_:1 offset:23 vaddr:8 idxen:1 offen:1 format:7 th:3 scope:2 srsrc:9 _:1 vdata:8 110001 _:3 tfe:1 op:8 _:7 "
  "soffset:7",
}
FAMILIES = {"cdna": CDNA, "rdna3": RDNA3, "rdna4": RDNA4}

# The additional dword of an instruction whose src0 has a code that is no source: 250 DPP, 233 and 234 DPP8, 249 SDWA.
# 234 reads inactive lanes too. With VOP3 the modifiers of the sources are in its own dwords. SDWA takes scalar
# registers as sources: src[8] is set.
DPP = "row_mask:4 bank_mask:4 {modifiers} bound_ctrl:1 {fi} _:1 dpp_ctrl:9 src0:8"
DPP_MODIFIERS = "abs[1] neg[1] abs[0] neg[0]"
DPP8 = "dpp8:24 src0:8"
SDWA = "{second} src0[8] _:1 abs[0] neg[0] sext[0] src0_sel:3 {result} src0[7:0]"
SDWA_SECOND = "src1[8] _:1 abs[1] neg[1] sext[1] src1_sel:3"
SDWA_RESULT = "omod:2 clamp:1 dst_unused:2 dst_sel:3"
SDWA_CODE, DPP_CODE, DPP8_CODE, DPP8_FI_CODE = (f"0{code:08b}" for code in (249, 250, 233, 234))

def texts(family: str) -> dict[str, str]:
  """Name -> format string of a family, including the formats derived from others."""
  made = {**COMMON, **FAMILIES[family]}
  for name in ("vop1", "vop2", "vopc", "vop3", "vop3sd", "vop3p"):
    text, long = made[name], name[:4] == "vop3"
    if family == "cdna" and long: continue
    fi = "_:1" if family == "cdna" else "fi:1"
    made[name + "_dpp"] = (f"{DPP.format(modifiers='_:4' if long else DPP_MODIFIERS, fi=fi)} "
                           f"{text.replace('src0:9', DPP_CODE)}")
    if family != "cdna":
      made[name + "_dpp8"] = f"{DPP8} {text.replace('src0:9', DPP8_CODE)}"
      made[name + "_dpp8fi"] = f"{DPP8} {text.replace('src0:9', DPP8_FI_CODE)}"
    else:
      sdwa = SDWA.format(second="_:8" if name == "vop1" else SDWA_SECOND, result="sdst:8" if name == "vopc"
                         else SDWA_RESULT)
      made[name + "_sdwa"] = f"{sdwa} {text.replace('src0:9', SDWA_CODE).replace('vsrc1:8', 'src1[7:0]')}"
  for name in ("sop2", "sopk", "vop2", "vopd"):
    if name in made: made[name + "_k"] = f"literal:32 {made[name]}"
  return made

@once
def formats(family: str) -> Lazy[Format]:
  """The formats of a family by name."""
  return Lazy(texts(family), fmt)
