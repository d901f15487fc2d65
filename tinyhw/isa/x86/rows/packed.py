"""x86-64 rows of packed integers: AVX2 and their AVX-512 forms, in the notation of table.py."""
from __future__ import annotations

def both(name: str, fields: str, op: str, pipe: str, operands: str, w: str = "WIG", evex: str = "avx512bw") -> str:
  """A row with a VEX form and an EVEX form of one opcode. `fields` is prefix and map; `w` is the EVEX form's W."""
  return f"{name}  VEX.{fields}.WIG {op} /r | EVEX.{fields}.{w} {op} /r  {operands}  {pipe} @avx2/{evex}\n"

# name, map, opcode, pipe; elements of bytes and words: no broadcast form
NARROW = "".join(both(name, f"66.{map}", op, pipe, "v={kz} v v/m") for name, map, op, pipe in (
  ("vpaddb", "0F", "FC", "vec_alu"), ("vpaddw", "0F", "FD", "vec_alu"), ("vpsubb", "0F", "F8", "vec_alu"), ("vpsubw", "0F", "F9", "vec_alu"),
  ("vpaddsb", "0F", "EC", "vec_alu"), ("vpaddsw", "0F", "ED", "vec_alu"), ("vpaddusb", "0F", "DC", "vec_alu"), ("vpaddusw", "0F", "DD", "vec_alu"),
  ("vpsubsb", "0F", "E8", "vec_alu"), ("vpsubsw", "0F", "E9", "vec_alu"), ("vpsubusb", "0F", "D8", "vec_alu"), ("vpsubusw", "0F", "D9", "vec_alu"),
  ("vpmullw", "0F", "D5", "vec_mul"), ("vpmulhw", "0F", "E5", "vec_mul"), ("vpmulhuw", "0F", "E4", "vec_mul"),
  ("vpmulhrsw", "0F38", "0B", "vec_mul"), ("vpmaddwd", "0F", "F5", "vec_mul"), ("vpmaddubsw", "0F38", "04", "vec_mul"),
  ("vpminsb", "0F38", "38", "vec_alu"), ("vpminsw", "0F", "EA", "vec_alu"), ("vpminub", "0F", "DA", "vec_alu"), ("vpminuw", "0F38", "3A", "vec_alu"),
  ("vpmaxsb", "0F38", "3C", "vec_alu"), ("vpmaxsw", "0F", "EE", "vec_alu"), ("vpmaxub", "0F", "DE", "vec_alu"), ("vpmaxuw", "0F38", "3E", "vec_alu"),
  ("vpavgb", "0F", "E0", "vec_alu"), ("vpavgw", "0F", "E3", "vec_alu"), ("vpshufb", "0F38", "00", "shuffle"),
  ("vpacksswb", "0F", "63", "shuffle"), ("vpackuswb", "0F", "67", "shuffle"),
  ("vpunpcklbw", "0F", "60", "shuffle"), ("vpunpcklwd", "0F", "61", "shuffle"),
  ("vpunpckhbw", "0F", "68", "shuffle"), ("vpunpckhwd", "0F", "69", "shuffle")))

WIDE = "".join(both(name, f"66.{map}", op, pipe, f"v={{kz}} v v/m/b{bits}", "W1" if bits == 64 else "W0", evex)
               for name, map, op, bits, pipe, evex in (
  ("vpaddd", "0F", "FE", 32, "vec_alu", "avx512f"), ("vpaddq", "0F", "D4", 64, "vec_alu", "avx512f"),
  ("vpsubd", "0F", "FA", 32, "vec_alu", "avx512f"), ("vpsubq", "0F", "FB", 64, "vec_alu", "avx512f"),
  ("vpmuludq", "0F", "F4", 64, "vec_mul", "avx512f"), ("vpmuldq", "0F38", "28", 64, "vec_mul", "avx512f"),
  ("vpmulld", "0F38", "40", 32, "vec_mul_d", "avx512f"),
  ("vpminsd", "0F38", "39", 32, "vec_alu", "avx512f"), ("vpminud", "0F38", "3B", 32, "vec_alu", "avx512f"),
  ("vpmaxsd", "0F38", "3D", 32, "vec_alu", "avx512f"), ("vpmaxud", "0F38", "3F", 32, "vec_alu", "avx512f"),
  ("vpackssdw", "0F", "6B", 32, "shuffle", "avx512bw"), ("vpackusdw", "0F38", "2B", 32, "shuffle", "avx512bw"),
  ("vpunpckldq", "0F", "62", 32, "shuffle", "avx512f"), ("vpunpckhdq", "0F", "6A", 32, "shuffle", "avx512f"),
  ("vpunpcklqdq", "0F", "6C", 64, "shuffle", "avx512f"), ("vpunpckhqdq", "0F", "6D", 64, "shuffle", "avx512f")))

# VEX forms without an EVEX form of the same name and operands
VEX_ONLY = "@ avx2\n" + "".join(f"{name}  VEX.66.{map}.WIG {op} /r  v= v v/m  {pipe}\n" for name, map, op, pipe in (
  ("vpand", "0F", "DB", "vec_logic"), ("vpandn", "0F", "DF", "vec_logic"), ("vpor", "0F", "EB", "vec_logic"), ("vpxor", "0F", "EF", "vec_logic"),
  ("vpcmpeqb", "0F", "74", "vec_compare"), ("vpcmpeqw", "0F", "75", "vec_compare"), ("vpcmpeqd", "0F", "76", "vec_compare"),
  ("vpcmpeqq", "0F38", "29", "vec_compare"), ("vpcmpgtb", "0F", "64", "vec_compare"), ("vpcmpgtw", "0F", "65", "vec_compare"),
  ("vpcmpgtd", "0F", "66", "vec_compare"), ("vpcmpgtq", "0F38", "37", "vec_compare_q"),
  ("vpsignb", "0F38", "08", "vec_alu"), ("vpsignw", "0F38", "09", "vec_alu"), ("vpsignd", "0F38", "0A", "vec_alu"),
  ("vphaddw", "0F38", "01", "vec_horizontal"), ("vphaddd", "0F38", "02", "vec_horizontal"), ("vphaddsw", "0F38", "03", "vec_horizontal"),
  ("vphsubw", "0F38", "05", "vec_horizontal"), ("vphsubd", "0F38", "06", "vec_horizontal"), ("vphsubsw", "0F38", "07", "vec_horizontal")))

# name, opcode of the shift by xmm, opcode and digit of the shift by immediate, W and broadcast of the EVEX form
SHIFTS = "".join(f"""
{name}  VEX.66.0F.WIG {op} /r | EVEX.66.0F.{w} {op} /r    v={{kz}} v x/m128   vec_shift_by_xmm @avx2/{evex}
{name}  VEX.66.0F.WIG {group} /{n} ib                     v= v u8             vec_shift @avx2
{name}  EVEX.66.0F.{w} {group} /{n} ib                    v={{kz}} v/m{bcast} u8      vec_shift @avx2/{evex}
""" for name, op, group, n, w, bcast, evex in (
  ("vpsllw", "F1", "71", 6, "WIG", "", "avx512bw"), ("vpslld", "F2", "72", 6, "W0", "/b32", "avx512f"),
  ("vpsllq", "F3", "73", 6, "W1", "/b64", "avx512f"), ("vpsrlw", "D1", "71", 2, "WIG", "", "avx512bw"),
  ("vpsrld", "D2", "72", 2, "W0", "/b32", "avx512f"), ("vpsrlq", "D3", "73", 2, "W1", "/b64", "avx512f"),
  ("vpsraw", "E1", "71", 4, "WIG", "", "avx512bw"), ("vpsrad", "E2", "72", 4, "W0", "/b32", "avx512f")))

EXTENSIONS = "".join(
  f"vpmov{sign}x{kind}  VEX.66.0F38.WIG {base + n:02X} /r | EVEX.66.0F38.{'W0' if kind == 'dq' else 'WIG'} {base + n:02X} /r"
  f"  v={{kz}} {size}/m{size}   extend @avx2/{evex}\n"
  for sign, base in (("s", 0x20), ("z", 0x30))
  for n, (kind, size, evex) in enumerate((("bw", "h", "avx512bw"), ("bd", "q", "avx512f"), ("bq", "e", "avx512f"), ("wd", "h", "avx512f"),
                                          ("wq", "q", "avx512f"), ("dq", "h", "avx512f"))))

MOVES = """
@ avx/avx512f
vmovdqa  VEX.66.0F.WIG 6F /r                                        v= v/m            vec_mov
vmovdqa  VEX.66.0F.WIG 7F /r                                        v/m= v            vec_mov
vmovdqu  VEX.F3.0F.WIG 6F /r                                        v= v/m            vec_mov
vmovdqu  VEX.F3.0F.WIG 7F /r                                        v/m= v            vec_mov
vmovntdq   VEX.66.0F.WIG E7 /r | EVEX.66.0F.W0 E7 /r                m= v              store_nt
vmovntdqa  VEX.66.0F38.WIG 2A /r | EVEX.66.0F38.W0 2A /r            v= m              vec_mov @avx2/avx512f
vmovd    VEX.128.66.0F.W0 6E /r | EVEX.128.66.0F.W0 6E /r           x= r32/m32        int_to_vec
vmovd    VEX.128.66.0F.W0 7E /r | EVEX.128.66.0F.W0 7E /r           r32/m32= x        vec_to_int
vmovq    VEX.128.F3.0F.WIG 7E /r | EVEX.128.F3.0F.W1 7E /r          x= x/m64          vec_mov
vmovq    VEX.128.66.0F.WIG D6 /r | EVEX.128.66.0F.W1 D6 /r          x/m64= x          vec_mov
vmovq    VEX.128.66.0F.W1 6E /r | EVEX.128.66.0F.W1 6E /r           x= r64/m64        int_to_vec
vmovq    VEX.128.66.0F.W1 7E /r | EVEX.128.66.0F.W1 7E /r           r64/m64= x        vec_to_int
vpmovmskb  VEX.66.0F.WIG D7 /r                                      r32= v            vec_to_int @avx2
vpinsrb  VEX.128.66.0F3A.W0 20 /r ib | EVEX.128.66.0F3A.WIG 20 /r ib   x= x r32/m8 u8    int_to_vec @avx/avx512bw
vpinsrw  VEX.128.66.0F.W0 C4 /r ib | EVEX.128.66.0F.WIG C4 /r ib       x= x r32/m16 u8   int_to_vec @avx/avx512bw
vpinsrd  VEX.128.66.0F3A.W0 22 /r ib | EVEX.128.66.0F3A.W0 22 /r ib    x= x r32/m32 u8   int_to_vec @avx/avx512dq
vpinsrq  VEX.128.66.0F3A.W1 22 /r ib | EVEX.128.66.0F3A.W1 22 /r ib    x= x r64/m64 u8   int_to_vec @avx/avx512dq
vpextrb  VEX.128.66.0F3A.W0 14 /r ib | EVEX.128.66.0F3A.WIG 14 /r ib   r32/m8= x u8      vec_to_int @avx/avx512bw
vpextrw  VEX.128.66.0F.W0 C5 /r ib | EVEX.128.66.0F.WIG C5 /r ib       r32= x u8         vec_to_int @avx/avx512bw
vpextrw  VEX.128.66.0F3A.W0 15 /r ib | EVEX.128.66.0F3A.WIG 15 /r ib   r32/m16= x u8     vec_to_int @avx/avx512bw
vpextrd  VEX.128.66.0F3A.W0 16 /r ib | EVEX.128.66.0F3A.W0 16 /r ib    r32/m32= x u8     vec_to_int @avx/avx512dq
vpextrq  VEX.128.66.0F3A.W1 16 /r ib | EVEX.128.66.0F3A.W1 16 /r ib    r64/m64= x u8     vec_to_int @avx/avx512dq
vpmaskmovd  VEX.66.0F38.W0 8C /r RVM                                v= v m            load_masked @avx2
vpmaskmovd  VEX.66.0F38.W0 8E /r MVR                                m= v v            store_masked @avx2
vpmaskmovq  VEX.66.0F38.W1 8C /r RVM                                v= v m            load_masked @avx2
vpmaskmovq  VEX.66.0F38.W1 8E /r MVR                                m= v v            store_masked @avx2
"""

OTHER = """
@ avx2/avx512bw
vpabsb   VEX.66.0F38.WIG 1C /r | EVEX.66.0F38.WIG 1C /r             v={kz} v/m        vec_alu
vpabsw   VEX.66.0F38.WIG 1D /r | EVEX.66.0F38.WIG 1D /r             v={kz} v/m        vec_alu
vpabsd   VEX.66.0F38.WIG 1E /r | EVEX.66.0F38.W0 1E /r              v={kz} v/m/b32    vec_alu @avx2/avx512f
vpsadbw  VEX.66.0F.WIG F6 /r | EVEX.66.0F.WIG F6 /r                 v= v v/m          vec_sad
vpshufd  VEX.66.0F.WIG 70 /r ib | EVEX.66.0F.W0 70 /r ib            v={kz} v/m/b32 u8  shuffle @avx2/avx512f
vpshufhw  VEX.F3.0F.WIG 70 /r ib | EVEX.F3.0F.WIG 70 /r ib          v={kz} v/m u8     shuffle
vpshuflw  VEX.F2.0F.WIG 70 /r ib | EVEX.F2.0F.WIG 70 /r ib          v={kz} v/m u8     shuffle
vpalignr  VEX.66.0F3A.WIG 0F /r ib | EVEX.66.0F3A.WIG 0F /r ib      v={kz} v v/m u8   shuffle
vpslldq  VEX.66.0F.WIG 73 /7 ib                                     v= v u8           shuffle
vpslldq  EVEX.66.0F.WIG 73 /7 ib                                    v= v/m u8         shuffle
vpsrldq  VEX.66.0F.WIG 73 /3 ib                                     v= v u8           shuffle
vpsrldq  EVEX.66.0F.WIG 73 /3 ib                                    v= v/m u8         shuffle
vpblendvb  VEX.66.0F3A.W0 4C /r is4                                 v= v v/m v        blend_variable
vpblendw   VEX.66.0F3A.WIG 0E /r ib                                 v= v v/m u8       blend
vpblendd   VEX.66.0F3A.W0 02 /r ib                                  v= v v/m u8       blend
vmpsadbw   VEX.66.0F3A.WIG 42 /r ib                                 v= v v/m u8       vec_sad
@ avx2/avx512f
vpsllvd  VEX.66.0F38.W0 47 /r | EVEX.66.0F38.W0 47 /r               v={kz} v v/m/b32  vec_shift
vpsllvq  VEX.66.0F38.W1 47 /r | EVEX.66.0F38.W1 47 /r               v={kz} v v/m/b64  vec_shift
vpsrlvd  VEX.66.0F38.W0 45 /r | EVEX.66.0F38.W0 45 /r               v={kz} v v/m/b32  vec_shift
vpsrlvq  VEX.66.0F38.W1 45 /r | EVEX.66.0F38.W1 45 /r               v={kz} v v/m/b64  vec_shift
vpsravd  VEX.66.0F38.W0 46 /r | EVEX.66.0F38.W0 46 /r               v={kz} v v/m/b32  vec_shift
vpbroadcastb  VEX.66.0F38.W0 78 /r | EVEX.66.0F38.W0 78 /r          v={kz} x/m8       broadcast @avx2/avx512bw
vpbroadcastw  VEX.66.0F38.W0 79 /r | EVEX.66.0F38.W0 79 /r          v={kz} x/m16      broadcast @avx2/avx512bw
vpbroadcastd  VEX.66.0F38.W0 58 /r | EVEX.66.0F38.W0 58 /r          v={kz} x/m32      broadcast
vpbroadcastq  VEX.66.0F38.W0 59 /r | EVEX.66.0F38.W1 59 /r          v={kz} x/m64      broadcast
vbroadcasti128  VEX.256.66.0F38.W0 5A /r                            y= m128           broadcast
vperm2i128    VEX.256.66.0F3A.W0 46 /r ib                           y= y y/m u8       shuffle_lane
vinserti128   VEX.256.66.0F3A.W0 38 /r ib                           y= y x/m128 u8    shuffle_lane
vextracti128  VEX.256.66.0F3A.W0 39 /r ib                           x/m128= y u8      shuffle_lane
vpermd   VEX.256.66.0F38.W0 36 /r | EVEX.256/512.66.0F38.W0 36 /r         v={kz} v v/m/b32   shuffle_lane
vpermq   VEX.256.66.0F3A.W1 00 /r ib | EVEX.256/512.66.0F3A.W1 00 /r ib   v={kz} v/m/b64 u8  shuffle_lane
vpgatherdd  VEX.66.0F38.W0 90 /r RMV                                v+ vmv32 v+       gather
vpgatherdq  VEX.66.0F38.W1 90 /r RMV                                v+ vmh64 v+       gather
vpgatherqd  VEX.66.0F38.W0 91 /r RMV                                h+ vmv32 h+       gather
vpgatherqq  VEX.66.0F38.W1 91 /r RMV                                v+ vmv64 v+       gather
"""

TEXT = NARROW + WIDE + VEX_ONLY + SHIFTS + EXTENSIONS + MOVES + OTHER
