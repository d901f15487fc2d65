"""x86-64 rows that exist in AVX-512 only: EVEX instructions and mask registers. The notation is that of table.py."""
from __future__ import annotations

def pair(names: str, fields: str, op: str, operands: str, pipe: str, evex: str = "avx512f", lengths: str = "") -> str:
  """The rows of 32-bit elements (W0) and of 64-bit elements (W1) of one opcode; "-" stands for a name that does not exist.

  B in `operands` is the memory operand that is one element, broadcast.
  """
  rows = ""
  for name, w, bits in zip(names.split(), ("W0", "W1"), ("b32", "b64")):
    if name == "-": continue
    rows += f"{name}  EVEX.{lengths}{fields}.{w} {op}  {operands.replace('B', bits)}  {pipe} @-/{evex}\n"
  return rows

THREE = "v={kz} v v/m/B"
WIDE = "256/512."

PAIRS = "".join((
  pair("vpandd vpandq", "66.0F", "DB /r", THREE, "vec_logic"),
  pair("vpandnd vpandnq", "66.0F", "DF /r", THREE, "vec_logic"),
  pair("vpord vporq", "66.0F", "EB /r", THREE, "vec_logic"),
  pair("vpxord vpxorq", "66.0F", "EF /r", THREE, "vec_logic"),
  pair("vprolvd vprolvq", "66.0F38", "15 /r", THREE, "vec_shift"),
  pair("vprorvd vprorvq", "66.0F38", "14 /r", THREE, "vec_shift"),
  pair("vprold vprolq", "66.0F", "72 /1 ib", "v={kz} v/m/B u8", "vec_shift"),
  pair("vprord vprorq", "66.0F", "72 /0 ib", "v={kz} v/m/B u8", "vec_shift"),
  pair("vpternlogd vpternlogq", "66.0F3A", "25 /r ib", "v+{kz} v v/m/B u8", "vec_logic"),
  pair("vpermi2d vpermi2q", "66.0F38", "76 /r", "v+{kz} v v/m/B", "shuffle_lane"),
  pair("vpermi2ps vpermi2pd", "66.0F38", "77 /r", "v+{kz} v v/m/B", "shuffle_lane"),
  pair("vpermt2d vpermt2q", "66.0F38", "7E /r", "v+{kz} v v/m/B", "shuffle_lane"),
  pair("vpermt2ps vpermt2pd", "66.0F38", "7F /r", "v+{kz} v v/m/B", "shuffle_lane"),
  pair("vshuff32x4 vshuff64x2", "66.0F3A", "23 /r ib", "v={kz} v v/m/B u8", "shuffle_lane", lengths=WIDE),
  pair("vshufi32x4 vshufi64x2", "66.0F3A", "43 /r ib", "v={kz} v v/m/B u8", "shuffle_lane", lengths=WIDE),
  pair("valignd valignq", "66.0F3A", "03 /r ib", "v={kz} v v/m/B u8", "shuffle_lane"),
  pair("vblendmps vblendmpd", "66.0F38", "65 /r", "v={s} v v/m/B", "blend"),
  pair("vpblendmd vpblendmq", "66.0F38", "64 /r", "v={s} v v/m/B", "blend"),
  pair("vpcmpeqd -", "66.0F", "76 /r", "k={k} v v/m/B", "vec_compare_mask"),
  pair("vpcmpgtd -", "66.0F", "66 /r", "k={k} v v/m/B", "vec_compare_mask"),
  pair("- vpcmpeqq", "66.0F38", "29 /r", "k={k} v v/m/B", "vec_compare_mask"),
  pair("- vpcmpgtq", "66.0F38", "37 /r", "k={k} v v/m/B", "vec_compare_mask"),
  pair("vpcmpd vpcmpq", "66.0F3A", "1F /r ib", "k={k} v v/m/B u8", "vec_compare_mask"),
  pair("vpcmpud vpcmpuq", "66.0F3A", "1E /r ib", "k={k} v v/m/B u8", "vec_compare_mask"),
  pair("vptestmd vptestmq", "66.0F38", "27 /r", "k={k} v v/m/B", "vec_compare_mask"),
  pair("vptestnmd vptestnmq", "F3.0F38", "27 /r", "k={k} v v/m/B", "vec_compare_mask"),
  pair("vscalefps vscalefpd", "66.0F38", "2C /r", THREE, "fp_add"),
  pair("vgetexpps vgetexppd", "66.0F38", "42 /r", "v={kz} v/m/B", "fp_add"),
  pair("vgetmantps vgetmantpd", "66.0F3A", "26 /r ib", "v={kz} v/m/B u8", "fp_add"),
  pair("vrcp14ps vrcp14pd", "66.0F38", "4C /r", "v={kz} v/m/B", "fp_estimate"),
  pair("vrsqrt14ps vrsqrt14pd", "66.0F38", "4E /r", "v={kz} v/m/B", "fp_estimate"),
  pair("vrangeps vrangepd", "66.0F3A", "50 /r ib", "v={kz} v v/m/B u8", "fp_add", "avx512dq"),
  pair("vreduceps vreducepd", "66.0F3A", "56 /r ib", "v={kz} v/m/B u8", "fp_add", "avx512dq"),
  pair("vfixupimmps vfixupimmpd", "66.0F3A", "54 /r ib", "v+{kz} v v/m/B u8", "fp_add"),
  pair("vplzcntd vplzcntq", "66.0F38", "44 /r", "v={kz} v/m/B", "vec_alu", "avx512cd"),
  pair("vpopcntd vpopcntq", "66.0F38", "55 /r", "v={kz} v/m/B", "vec_alu", "avx512vpopcntdq"),
  pair("vpdpbusd -", "66.0F38", "50 /r", "v+{kz} v v/m/B", "vec_dot", "avx512vnni"),
  pair("vpdpbusds -", "66.0F38", "51 /r", "v+{kz} v v/m/B", "vec_dot", "avx512vnni"),
  pair("vpdpwssd -", "66.0F38", "52 /r", "v+{kz} v v/m/B", "vec_dot", "avx512vnni"),
  pair("vpdpwssds -", "66.0F38", "53 /r", "v+{kz} v v/m/B", "vec_dot", "avx512vnni"),
  pair("vdpbf16ps -", "F3.0F38", "52 /r", "v+{kz} v v/m/B", "bf16_dot", "avx512bf16"),
  pair("- vpermpd", "66.0F38", "16 /r", THREE, "shuffle_lane", lengths=WIDE),
  pair("- vpermq", "66.0F38", "36 /r", THREE, "shuffle_lane", lengths=WIDE)))

REST = """
@ -/avx512f
vcmpps  EVEX.0F.W0 C2 /r ib                k={k} v v/m/b32 u8      vec_compare_mask
vcmppd  EVEX.66.0F.W1 C2 /r ib             k={k} v v/m/b64 u8      vec_compare_mask
vcmpss  EVEX.LIG.F3.0F.W0 C2 /r ib         k={k} x x/m32 u8        vec_compare_mask
vcmpsd  EVEX.LIG.F2.0F.W1 C2 /r ib         k={k} x x/m64 u8        vec_compare_mask
vmovdqa32  EVEX.66.0F.W0 6F /r             v={kz} v/m              vec_mov
vmovdqa32  EVEX.66.0F.W0 7F /r             v/m={k} v               vec_mov
vmovdqa64  EVEX.66.0F.W1 6F /r             v={kz} v/m              vec_mov
vmovdqa64  EVEX.66.0F.W1 7F /r             v/m={k} v               vec_mov
vmovdqu32  EVEX.F3.0F.W0 6F /r             v={kz} v/m              vec_mov
vmovdqu32  EVEX.F3.0F.W0 7F /r             v/m={k} v               vec_mov
vmovdqu64  EVEX.F3.0F.W1 6F /r             v={kz} v/m              vec_mov
vmovdqu64  EVEX.F3.0F.W1 7F /r             v/m={k} v               vec_mov
vpbroadcastd  EVEX.66.0F38.W0 7C /r        v={kz} r32              broadcast
vpbroadcastq  EVEX.66.0F38.W1 7C /r        v={kz} r64              broadcast
vbroadcastf32x4  EVEX.256/512.66.0F38.W0 1A /r   v={kz} m128       broadcast
vbroadcastf64x4  EVEX.512.66.0F38.W1 1B /r       v={kz} m256       broadcast
vbroadcasti32x4  EVEX.256/512.66.0F38.W0 5A /r   v={kz} m128       broadcast
vbroadcasti64x4  EVEX.512.66.0F38.W1 5B /r       v={kz} m256       broadcast
vinsertf32x4  EVEX.256/512.66.0F3A.W0 18 /r ib   v={kz} v x/m128 u8    shuffle_lane
vinsertf64x4  EVEX.512.66.0F3A.W1 1A /r ib       v={kz} v y/m256 u8    shuffle_lane
vinserti32x4  EVEX.256/512.66.0F3A.W0 38 /r ib   v={kz} v x/m128 u8    shuffle_lane
vinserti64x4  EVEX.512.66.0F3A.W1 3A /r ib       v={kz} v y/m256 u8    shuffle_lane
vextractf32x4  EVEX.256/512.66.0F3A.W0 19 /r ib  x/m128={kz} v u8      shuffle_lane
vextractf64x4  EVEX.512.66.0F3A.W1 1B /r ib      y/m256={kz} v u8      shuffle_lane
vextracti32x4  EVEX.256/512.66.0F3A.W0 39 /r ib  x/m128={kz} v u8      shuffle_lane
vextracti64x4  EVEX.512.66.0F3A.W1 3B /r ib      y/m256={kz} v u8      shuffle_lane
vpabsq   EVEX.66.0F38.W1 1F /r             v={kz} v/m/b64          vec_alu
vpminsq  EVEX.66.0F38.W1 39 /r             v={kz} v v/m/b64        vec_alu
vpminuq  EVEX.66.0F38.W1 3B /r             v={kz} v v/m/b64        vec_alu
vpmaxsq  EVEX.66.0F38.W1 3D /r             v={kz} v v/m/b64        vec_alu
vpmaxuq  EVEX.66.0F38.W1 3F /r             v={kz} v v/m/b64        vec_alu
vpsraq   EVEX.66.0F.W1 E2 /r               v={kz} v x/m128         vec_shift_by_xmm
vpsraq   EVEX.66.0F.W1 72 /4 ib            v={kz} v/m/b64 u8       vec_shift
vpsravq  EVEX.66.0F38.W1 46 /r             v={kz} v v/m/b64        vec_shift
vcompressps  EVEX.66.0F38.W0 8A /r         v/m:4={kz} v            compress
vcompresspd  EVEX.66.0F38.W1 8A /r         v/m:8={kz} v            compress
vpcompressd  EVEX.66.0F38.W0 8B /r         v/m:4={kz} v            compress
vpcompressq  EVEX.66.0F38.W1 8B /r         v/m:8={kz} v            compress
vexpandps    EVEX.66.0F38.W0 88 /r         v={kz} v/m:4            compress
vexpandpd    EVEX.66.0F38.W1 88 /r         v={kz} v/m:8            compress
vpexpandd    EVEX.66.0F38.W0 89 /r         v={kz} v/m:4            compress
vpexpandq    EVEX.66.0F38.W1 89 /r         v={kz} v/m:8            compress
vscalefss   EVEX.LIG.66.0F38.W0 2D /r      x={kz} x x/m32          fp_add
vscalefsd   EVEX.LIG.66.0F38.W1 2D /r      x={kz} x x/m64          fp_add
vgetexpss   EVEX.LIG.66.0F38.W0 43 /r      x={kz} x x/m32          fp_add
vgetexpsd   EVEX.LIG.66.0F38.W1 43 /r      x={kz} x x/m64          fp_add
vgetmantss  EVEX.LIG.66.0F3A.W0 27 /r ib   x={kz} x x/m32 u8       fp_add
vgetmantsd  EVEX.LIG.66.0F3A.W1 27 /r ib   x={kz} x x/m64 u8       fp_add
vrcp14ss    EVEX.LIG.66.0F38.W0 4D /r      x={kz} x x/m32          fp_estimate
vrcp14sd    EVEX.LIG.66.0F38.W1 4D /r      x={kz} x x/m64          fp_estimate
vrsqrt14ss  EVEX.LIG.66.0F38.W0 4F /r      x={kz} x x/m32          fp_estimate
vrsqrt14sd  EVEX.LIG.66.0F38.W1 4F /r      x={kz} x x/m64          fp_estimate
vrndscaleps  EVEX.66.0F3A.W0 08 /r ib      v={kz} v/m/b32 u8       fp_round
vrndscalepd  EVEX.66.0F3A.W1 09 /r ib      v={kz} v/m/b64 u8       fp_round
vrndscaless  EVEX.LIG.66.0F3A.W0 0A /r ib  x={kz} x x/m32 u8       fp_round
vrndscalesd  EVEX.LIG.66.0F3A.W1 0B /r ib  x={kz} x x/m64 u8       fp_round
vcvtps2udq   EVEX.0F.W0 79 /r              v={kz} v/m/b32          convert
vcvttps2udq  EVEX.0F.W0 78 /r              v={kz} v/m/b32          convert
vcvtudq2ps   EVEX.F2.0F.W0 7A /r           v={kz} v/m/b32          convert
vcvtpd2udq   EVEX.0F.W1 79 /r              h={kz} v/m!/b64!        convert_width
vcvttpd2udq  EVEX.0F.W1 78 /r              h={kz} v/m!/b64!        convert_width
vcvtudq2pd   EVEX.F3.0F.W0 7A /r           v={kz} h/mh/bh32         convert_width
vcvtusi2ss   EVEX.LIG.F3.0F.Wy 7B /r       x= x ry/my!             convert_from_int
vcvtusi2sd   EVEX.LIG.F2.0F.Wy 7B /r       x= x ry/my!             convert_from_int
vcvtss2usi   EVEX.LIG.F3.0F.Wy 79 /r       ry= x/m32               convert_to_int
vcvttss2usi  EVEX.LIG.F3.0F.Wy 78 /r       ry= x/m32               convert_to_int
vcvtsd2usi   EVEX.LIG.F2.0F.Wy 79 /r       ry= x/m64               convert_to_int
vcvttsd2usi  EVEX.LIG.F2.0F.Wy 78 /r       ry= x/m64               convert_to_int
vgatherdps  EVEX.66.0F38.W0 92 /r          v+{g} vmv32             gather
vgatherdpd  EVEX.66.0F38.W1 92 /r          v+{g} vmh64             gather
vgatherqps  EVEX.66.0F38.W0 93 /r          h+{g} vmv32             gather
vgatherqpd  EVEX.66.0F38.W1 93 /r          v+{g} vmv64             gather
vpgatherdd  EVEX.66.0F38.W0 90 /r          v+{g} vmv32             gather
vpgatherdq  EVEX.66.0F38.W1 90 /r          v+{g} vmh64             gather
vpgatherqd  EVEX.66.0F38.W0 91 /r          h+{g} vmv32             gather
vpgatherqq  EVEX.66.0F38.W1 91 /r          v+{g} vmv64             gather
vscatterdps  EVEX.66.0F38.W0 A2 /r         vmv32={g} v             scatter
vscatterdpd  EVEX.66.0F38.W1 A2 /r         vmh64={g} v             scatter
vscatterqps  EVEX.66.0F38.W0 A3 /r         vmv32={g} h             scatter
vscatterqpd  EVEX.66.0F38.W1 A3 /r         vmv64={g} v             scatter
vpscatterdd  EVEX.66.0F38.W0 A0 /r         vmv32={g} v             scatter
vpscatterdq  EVEX.66.0F38.W1 A0 /r         vmh64={g} v             scatter
vpscatterqd  EVEX.66.0F38.W0 A1 /r         vmv32={g} h             scatter
vpscatterqq  EVEX.66.0F38.W1 A1 /r         vmv64={g} v             scatter
@ -/avx512bw
vmovdqu8   EVEX.F2.0F.W0 6F /r             v={kz} v/m              vec_mov
vmovdqu8   EVEX.F2.0F.W0 7F /r             v/m={k} v               vec_mov
vmovdqu16  EVEX.F2.0F.W1 6F /r             v={kz} v/m              vec_mov
vmovdqu16  EVEX.F2.0F.W1 7F /r             v/m={k} v               vec_mov
vpbroadcastb  EVEX.66.0F38.W0 7A /r        v={kz} r32              broadcast
vpbroadcastw  EVEX.66.0F38.W0 7B /r        v={kz} r32              broadcast
vpermw    EVEX.66.0F38.W1 8D /r            v={kz} v v/m            shuffle_lane
vpermi2w  EVEX.66.0F38.W1 75 /r            v+{kz} v v/m            shuffle_lane
vpermt2w  EVEX.66.0F38.W1 7D /r            v+{kz} v v/m            shuffle_lane
vpblendmb  EVEX.66.0F38.W0 66 /r           v={s} v v/m             blend
vpblendmw  EVEX.66.0F38.W1 66 /r           v={s} v v/m             blend
vpsllvw  EVEX.66.0F38.W1 12 /r             v={kz} v v/m            vec_shift
vpsrlvw  EVEX.66.0F38.W1 10 /r             v={kz} v v/m            vec_shift
vpsravw  EVEX.66.0F38.W1 11 /r             v={kz} v v/m            vec_shift
vpcmpeqb  EVEX.66.0F.WIG 74 /r             k={k} v v/m             vec_compare_mask
vpcmpeqw  EVEX.66.0F.WIG 75 /r             k={k} v v/m             vec_compare_mask
vpcmpgtb  EVEX.66.0F.WIG 64 /r             k={k} v v/m             vec_compare_mask
vpcmpgtw  EVEX.66.0F.WIG 65 /r             k={k} v v/m             vec_compare_mask
vpcmpb   EVEX.66.0F3A.W0 3F /r ib          k={k} v v/m u8          vec_compare_mask
vpcmpw   EVEX.66.0F3A.W1 3F /r ib          k={k} v v/m u8          vec_compare_mask
vpcmpub  EVEX.66.0F3A.W0 3E /r ib          k={k} v v/m u8          vec_compare_mask
vpcmpuw  EVEX.66.0F3A.W1 3E /r ib          k={k} v v/m u8          vec_compare_mask
vptestmb   EVEX.66.0F38.W0 26 /r           k={k} v v/m             vec_compare_mask
vptestmw   EVEX.66.0F38.W1 26 /r           k={k} v v/m             vec_compare_mask
vptestnmb  EVEX.F3.0F38.W0 26 /r           k={k} v v/m             vec_compare_mask
vptestnmw  EVEX.F3.0F38.W1 26 /r           k={k} v v/m             vec_compare_mask
vpmovm2b  EVEX.F3.0F38.W0 28 /r            v= k                    mask_to_vec
vpmovm2w  EVEX.F3.0F38.W1 28 /r            v= k                    mask_to_vec
vpmovb2m  EVEX.F3.0F38.W0 29 /r            k= v                    vec_to_mask
vpmovw2m  EVEX.F3.0F38.W1 29 /r            k= v                    vec_to_mask
@ -/avx512dq
vpmovm2d  EVEX.F3.0F38.W0 38 /r            v= k                    mask_to_vec
vpmovm2q  EVEX.F3.0F38.W1 38 /r            v= k                    mask_to_vec
vpmovd2m  EVEX.F3.0F38.W0 39 /r            k= v                    vec_to_mask
vpmovq2m  EVEX.F3.0F38.W1 39 /r            k= v                    vec_to_mask
vpmullq  EVEX.66.0F38.W1 40 /r             v={kz} v v/m/b64        vec_mul_q
vbroadcastf32x2  EVEX.256/512.66.0F38.W0 19 /r   v={kz} x/m64      broadcast
vbroadcasti32x2  EVEX.66.0F38.W0 59 /r           v={kz} x/m64      broadcast
vbroadcastf64x2  EVEX.256/512.66.0F38.W1 1A /r   v={kz} m128       broadcast
vbroadcastf32x8  EVEX.512.66.0F38.W0 1B /r       v={kz} m256       broadcast
vbroadcasti64x2  EVEX.256/512.66.0F38.W1 5A /r   v={kz} m128       broadcast
vbroadcasti32x8  EVEX.512.66.0F38.W0 5B /r       v={kz} m256       broadcast
vinsertf64x2  EVEX.256/512.66.0F3A.W1 18 /r ib   v={kz} v x/m128 u8    shuffle_lane
vinsertf32x8  EVEX.512.66.0F3A.W0 1A /r ib       v={kz} v y/m256 u8    shuffle_lane
vinserti64x2  EVEX.256/512.66.0F3A.W1 38 /r ib   v={kz} v x/m128 u8    shuffle_lane
vinserti32x8  EVEX.512.66.0F3A.W0 3A /r ib       v={kz} v y/m256 u8    shuffle_lane
vextractf64x2  EVEX.256/512.66.0F3A.W1 19 /r ib  x/m128={kz} v u8      shuffle_lane
vextractf32x8  EVEX.512.66.0F3A.W0 1B /r ib      y/m256={kz} v u8      shuffle_lane
vextracti64x2  EVEX.256/512.66.0F3A.W1 39 /r ib  x/m128={kz} v u8      shuffle_lane
vextracti32x8  EVEX.512.66.0F3A.W0 3B /r ib      y/m256={kz} v u8      shuffle_lane
vcvtps2qq    EVEX.66.0F.W0 7B /r           v={kz} h/mh/bh32         convert_width
vcvttps2qq   EVEX.66.0F.W0 7A /r           v={kz} h/mh/bh32         convert_width
vcvtps2uqq   EVEX.66.0F.W0 79 /r           v={kz} h/mh/bh32         convert_width
vcvttps2uqq  EVEX.66.0F.W0 78 /r           v={kz} h/mh/bh32         convert_width
vcvtpd2qq    EVEX.66.0F.W1 7B /r           v={kz} v/m/b64          convert
vcvttpd2qq   EVEX.66.0F.W1 7A /r           v={kz} v/m/b64          convert
vcvtpd2uqq   EVEX.66.0F.W1 79 /r           v={kz} v/m/b64          convert
vcvttpd2uqq  EVEX.66.0F.W1 78 /r           v={kz} v/m/b64          convert
vcvtqq2pd    EVEX.F3.0F.W1 E6 /r           v={kz} v/m/b64          convert
vcvtuqq2pd   EVEX.F3.0F.W1 7A /r           v={kz} v/m/b64          convert
vcvtqq2ps    EVEX.0F.W1 5B /r              h={kz} v/m!/b64!        convert_width
vcvtuqq2ps   EVEX.F2.0F.W1 7A /r           h={kz} v/m!/b64!        convert_width
@ -/avx512bf16
vcvtneps2bf16   EVEX.F3.0F38.W0 72 /r      h={kz} v/m!/b32!        convert_half
vcvtne2ps2bf16  EVEX.F2.0F38.W0 72 /r      v={kz} v v/m/b32        convert_half
vdpbf16ps       EVEX.F3.0F38.W0 52 /r      v+{kz} v v/m/b32        vec_dot
"""

# down-conversion of integers: kind, size of the result, low digit of the opcode; truncating, with signed and with unsigned saturation
NARROWING = "".join(f"vpmov{saturate}{kind}  EVEX.F3.0F38.W0 {base + n:02X} /r  {size}/m{size}={{kz}} v  narrow @-/{evex}\n"
                    for saturate, base in (("", 0x30), ("s", 0x20), ("us", 0x10))
                    for n, (kind, size, evex) in enumerate((("wb", "h", "avx512bw"), ("db", "q", "avx512f"), ("qb", "e", "avx512f"),
                                                            ("dw", "h", "avx512f"), ("qw", "q", "avx512f"), ("qd", "h", "avx512f"))))

# mask registers: suffix, prefix of the common form, W, general register of kmov and the prefix of that form, feature
MASKS = "".join(f"""
kmov{s}     VEX.L0.{prefix}.0F.{w} 90 /r       k= k/m{bits}    mask_mov @{feature}
kmov{s}     VEX.L0.{prefix}.0F.{w} 91 /r       m{bits}= k      mask_mov @{feature}
kmov{s}     VEX.L0.{move}.0F.{move_w} 92 /r    k= {general}    int_to_mask @{feature}
kmov{s}     VEX.L0.{move}.0F.{move_w} 93 /r    {general}= k    mask_to_int @{feature}
kand{s}     VEX.L1.{prefix}.0F.{w} 41 /r       k= k k          mask_logic @{feature}
kandn{s}    VEX.L1.{prefix}.0F.{w} 42 /r       k= k k          mask_logic @{feature}
knot{s}     VEX.L0.{prefix}.0F.{w} 44 /r       k= k            mask_logic @{feature}
kor{s}      VEX.L1.{prefix}.0F.{w} 45 /r       k= k k          mask_logic @{feature}
kxnor{s}    VEX.L1.{prefix}.0F.{w} 46 /r       k= k k          mask_logic @{feature}
kxor{s}     VEX.L1.{prefix}.0F.{w} 47 /r       k= k k          mask_logic @{feature}
kadd{s}     VEX.L1.{prefix}.0F.{w} 4A /r       k= k k          mask_shift @{'avx512dq' if s == 'w' else feature}
kortest{s}  VEX.L0.{prefix}.0F.{w} 98 /r       k k             mask_test wf @{feature}
ktest{s}    VEX.L0.{prefix}.0F.{w} 99 /r       k k             mask_test wf @{'avx512dq' if s == 'w' else feature}
kshiftr{s}  VEX.L0.66.0F3A.{shift_w} {0x30 + wide:02X} /r ib   k= k u8     mask_shift @{feature}
kshiftl{s}  VEX.L0.66.0F3A.{shift_w} {0x32 + wide:02X} /r ib   k= k u8     mask_shift @{feature}
""" for s, bits, prefix, w, move, move_w, general, shift_w, wide, feature in (
  ("b", 8, "66", "W0", "66", "W0", "r32", "W0", 0, "avx512dq"), ("w", 16, "NP", "W0", "NP", "W0", "r32", "W1", 0, "avx512f"),
  ("d", 32, "66", "W1", "F2", "W0", "r32", "W0", 1, "avx512bw"), ("q", 64, "NP", "W1", "F2", "W1", "r64", "W1", 1, "avx512bw"))) + """
kunpckbw  VEX.L1.66.0F.W0 4B /r            k= k k                  mask_shift @avx512f
kunpckwd  VEX.L1.0F.W0 4B /r               k= k k                  mask_shift @avx512bw
kunpckdq  VEX.L1.0F.W1 4B /r               k= k k                  mask_shift @avx512bw
"""

TEXT = PAIRS + REST + NARROWING + MASKS
