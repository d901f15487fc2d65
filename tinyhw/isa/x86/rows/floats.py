"""x86-64 rows of floating-point vectors and scalars: AVX, FMA, F16C and their AVX-512 forms. The notation is that of
table.py."""
from __future__ import annotations

ARITHMETIC = "".join(f"""
{name}ps  VEX.0F.WIG {op} /r | EVEX.0F.W0 {op} /r                v={{kz}} v v/m/b32   {pipe_f32}
{name}pd  VEX.66.0F.WIG {op} /r | EVEX.66.0F.W1 {op} /r          v={{kz}} v v/m/b64   {pipe_f64}
{name}ss  VEX.LIG.F3.0F.WIG {op} /r | EVEX.LIG.F3.0F.W0 {op} /r  x={{kz}} x x/m32     {pipe_f32}
{name}sd  VEX.LIG.F2.0F.WIG {op} /r | EVEX.LIG.F2.0F.W1 {op} /r  x={{kz}} x x/m64     {pipe_f64}
""" for name, op, pipe_f32, pipe_f64 in (
  ("vadd", "58", "fp_add", "fp_add"), ("vmul", "59", "fp_mul", "fp_mul"), ("vsub", "5C", "fp_add", "fp_add"),
  ("vmin", "5D", "fp_min", "fp_min"), ("vdiv", "5E", "div_f32", "div_f64"), ("vmax", "5F", "fp_min", "fp_min")))

LOGIC = "@ avx/avx512dq\n" + "".join(f"""
{name}ps  VEX.0F.WIG {op} /r | EVEX.0F.W0 {op} /r         v={{kz}} v v/m/b32   vec_logic
{name}pd  VEX.66.0F.WIG {op} /r | EVEX.66.0F.W1 {op} /r   v={{kz}} v v/m/b64   vec_logic
""" for name, op in (("vand", "54"), ("vandn", "55"), ("vor", "56"), ("vxor", "57")))

# name, opcode of the packed 132 form (the scalar one is 1 higher); 213 is 16 and 231 is 32 higher
FMA = "@ fma/avx512f\n" + "".join(f"""
{name}{order}ps  VEX.66.0F38.W0 {op:02X} /r | EVEX.66.0F38.W0 {op:02X} /r   v+{{kz}} v v/m/b32   fma{swap}
{name}{order}pd  VEX.66.0F38.W1 {op:02X} /r | EVEX.66.0F38.W1 {op:02X} /r   v+{{kz}} v v/m/b64   fma{swap}
""" + ("" if op & 15 < 8 else f"""
{name}{order}ss  VEX.LIG.66.0F38.W0 {op + 1:02X} /r | EVEX.LIG.66.0F38.W0 {op + 1:02X} /r   x+{{kz}} x x/m32   fma{swap}
{name}{order}sd  VEX.LIG.66.0F38.W1 {op + 1:02X} /r | EVEX.LIG.66.0F38.W1 {op + 1:02X} /r   x+{{kz}} x x/m64   fma{swap}
""") for name, first in (("vfmaddsub", 0x96), ("vfmsubadd", 0x97), ("vfmadd", 0x98), ("vfmsub", 0x9A), ("vfnmadd", 0x9C), ("vfnmsub", 0x9E))
     for order, op, swap in (("132", first, " commutes:02"), ("213", first + 0x10, " commutes:01"), ("231", first + 0x20, "")))

MOVES = "@ avx/avx512f\n" + "".join(f"""
{name}  VEX.{prefix}.0F.WIG {load} /r | EVEX.{prefix}.0F.{w} {load} /r     v={{kz}} v/m   vec_mov
{name}  VEX.{prefix}.0F.WIG {store} /r | EVEX.{prefix}.0F.{w} {store} /r   v/m={{k}} v    vec_mov
""" for name, prefix, w, load, store in (("vmovaps", "NP", "W0", "28", "29"), ("vmovapd", "66", "W1", "28", "29"),
                                         ("vmovups", "NP", "W0", "10", "11"), ("vmovupd", "66", "W1", "10", "11"))) + """
vmovss  VEX.LIG.F3.0F.WIG 10 /r | EVEX.LIG.F3.0F.W0 10 /r           x={kz} m32      vec_mov
vmovss  VEX.LIG.F3.0F.WIG 11 /r | EVEX.LIG.F3.0F.W0 11 /r           m32={k} x       vec_mov
vmovss  VEX.LIG.F3.0F.WIG 10 /r RVM | EVEX.LIG.F3.0F.W0 10 /r RVM | VEX.LIG.F3.0F.WIG 11 /r MVR   x={kz} x x   shuffle
vmovsd  VEX.LIG.F2.0F.WIG 10 /r | EVEX.LIG.F2.0F.W1 10 /r           x={kz} m64      vec_mov
vmovsd  VEX.LIG.F2.0F.WIG 11 /r | EVEX.LIG.F2.0F.W1 11 /r           m64={k} x       vec_mov
vmovsd  VEX.LIG.F2.0F.WIG 10 /r RVM | EVEX.LIG.F2.0F.W1 10 /r RVM | VEX.LIG.F2.0F.WIG 11 /r MVR   x={kz} x x   shuffle
vmovlps   VEX.128.0F.WIG 12 /r RVM | EVEX.128.0F.W0 12 /r RVM       x= x m64        shuffle
vmovlps   VEX.128.0F.WIG 13 /r | EVEX.128.0F.W0 13 /r               m64= x          vec_mov
vmovhps   VEX.128.0F.WIG 16 /r RVM | EVEX.128.0F.W0 16 /r RVM       x= x m64        shuffle
vmovhps   VEX.128.0F.WIG 17 /r | EVEX.128.0F.W0 17 /r               m64= x          vec_mov
vmovlpd   VEX.128.66.0F.WIG 12 /r RVM | EVEX.128.66.0F.W1 12 /r RVM  x= x m64       shuffle
vmovlpd   VEX.128.66.0F.WIG 13 /r | EVEX.128.66.0F.W1 13 /r         m64= x          vec_mov
vmovhpd   VEX.128.66.0F.WIG 16 /r RVM | EVEX.128.66.0F.W1 16 /r RVM  x= x m64       shuffle
vmovhpd   VEX.128.66.0F.WIG 17 /r | EVEX.128.66.0F.W1 17 /r         m64= x          vec_mov
vmovhlps  VEX.128.0F.WIG 12 /r | EVEX.128.0F.W0 12 /r               x= x x          shuffle
vmovlhps  VEX.128.0F.WIG 16 /r | EVEX.128.0F.W0 16 /r               x= x x          shuffle
vmovsldup  VEX.F3.0F.WIG 12 /r | EVEX.F3.0F.W0 12 /r                v={kz} v/m      shuffle
vmovshdup  VEX.F3.0F.WIG 16 /r | EVEX.F3.0F.W0 16 /r                v={kz} v/m      shuffle
vmovddup   VEX.128.F2.0F.WIG 12 /r | EVEX.128.F2.0F.W1 12 /r        x={kz} x/m64    shuffle
vmovddup   VEX.256.F2.0F.WIG 12 /r | EVEX.256/512.F2.0F.W1 12 /r    v={kz} v/m      shuffle
vmovntps   VEX.0F.WIG 2B /r | EVEX.0F.W0 2B /r                      m= v            store_nt
vmovntpd   VEX.66.0F.WIG 2B /r | EVEX.66.0F.W1 2B /r                m= v            store_nt
vmovmskps  VEX.0F.WIG 50 /r                                         r32= v          vec_to_int
vmovmskpd  VEX.66.0F.WIG 50 /r                                      r32= v          vec_to_int
vmaskmovps  VEX.66.0F38.W0 2C /r RVM                                v= v m          load_masked
vmaskmovps  VEX.66.0F38.W0 2E /r MVR                                m= v v          store_masked
vmaskmovpd  VEX.66.0F38.W0 2D /r RVM                                v= v m          load_masked
vmaskmovpd  VEX.66.0F38.W0 2F /r MVR                                m= v v          store_masked
vldmxcsr    VEX.LZ.0F.WIG AE /2                                     m32             system barrier
vstmxcsr    VEX.LZ.0F.WIG AE /3                                     m32=            system barrier
vzeroupper  VEX.128.0F.WIG 77                                                       vzero barrier
vzeroall    VEX.256.0F.WIG 77                                                       vzero barrier
"""

SHUFFLES = """
@ avx/avx512f
vunpcklps  VEX.0F.WIG 14 /r | EVEX.0F.W0 14 /r                      v={kz} v v/m/b32      shuffle
vunpckhps  VEX.0F.WIG 15 /r | EVEX.0F.W0 15 /r                      v={kz} v v/m/b32      shuffle
vunpcklpd  VEX.66.0F.WIG 14 /r | EVEX.66.0F.W1 14 /r                v={kz} v v/m/b64      shuffle
vunpckhpd  VEX.66.0F.WIG 15 /r | EVEX.66.0F.W1 15 /r                v={kz} v v/m/b64      shuffle
vshufps    VEX.0F.WIG C6 /r ib | EVEX.0F.W0 C6 /r ib                v={kz} v v/m/b32 u8   shuffle
vshufpd    VEX.66.0F.WIG C6 /r ib | EVEX.66.0F.W1 C6 /r ib          v={kz} v v/m/b64 u8   shuffle
vblendps   VEX.66.0F3A.WIG 0C /r ib                                 v= v v/m u8           blend
vblendpd   VEX.66.0F3A.WIG 0D /r ib                                 v= v v/m u8           blend
vblendvps  VEX.66.0F3A.W0 4A /r is4                                 v= v v/m v            blend_variable
vblendvpd  VEX.66.0F3A.W0 4B /r is4                                 v= v v/m v            blend_variable
vpermilps  VEX.66.0F38.W0 0C /r | EVEX.66.0F38.W0 0C /r             v={kz} v v/m/b32      shuffle
vpermilps  VEX.66.0F3A.W0 04 /r ib | EVEX.66.0F3A.W0 04 /r ib       v={kz} v/m/b32 u8     shuffle
vpermilpd  VEX.66.0F38.W0 0D /r | EVEX.66.0F38.W1 0D /r             v={kz} v v/m/b64      shuffle
vpermilpd  VEX.66.0F3A.W0 05 /r ib | EVEX.66.0F3A.W1 05 /r ib       v={kz} v/m/b64 u8     shuffle
vperm2f128  VEX.256.66.0F3A.W0 06 /r ib                             y= y y/m u8           shuffle_lane
vinsertf128   VEX.256.66.0F3A.W0 18 /r ib                           y= y x/m128 u8        shuffle_lane
vextractf128  VEX.256.66.0F3A.W0 19 /r ib                           x/m128= y u8          shuffle_lane
vinsertps  VEX.128.66.0F3A.WIG 21 /r ib | EVEX.128.66.0F3A.W0 21 /r ib    x= x x/m32 u8   shuffle
vextractps  VEX.128.66.0F3A.WIG 17 /r ib | EVEX.128.66.0F3A.WIG 17 /r ib  r32/m32= x u8   vec_to_int
vbroadcastss  VEX.66.0F38.W0 18 /r | EVEX.66.0F38.W0 18 /r          v={kz} x/m32          broadcast
vbroadcastsd  VEX.256.66.0F38.W0 19 /r | EVEX.256/512.66.0F38.W1 19 /r    v={kz} x/m64    broadcast
vbroadcastf128  VEX.256.66.0F38.W0 1A /r                            y= m128               broadcast
@ avx2/avx512f
vpermps    VEX.256.66.0F38.W0 16 /r | EVEX.256/512.66.0F38.W0 16 /r        v={kz} v v/m/b32   shuffle_lane
vpermpd    VEX.256.66.0F3A.W1 01 /r ib | EVEX.256/512.66.0F3A.W1 01 /r ib  v={kz} v/m/b64 u8  shuffle_lane
vgatherdps  VEX.66.0F38.W0 92 /r RMV                                v+ vmv32 v+           gather
vgatherdpd  VEX.66.0F38.W1 92 /r RMV                                v+ vmh64 v+           gather
vgatherqps  VEX.66.0F38.W0 93 /r RMV                                h+ vmv32 h+           gather
vgatherqpd  VEX.66.0F38.W1 93 /r RMV                                v+ vmv64 v+           gather
"""

OTHER = """
@ avx/avx512f
vsqrtps  VEX.0F.WIG 51 /r | EVEX.0F.W0 51 /r                        v={kz} v/m/b32        sqrt_f32
vsqrtpd  VEX.66.0F.WIG 51 /r | EVEX.66.0F.W1 51 /r                  v={kz} v/m/b64        sqrt_f64
vsqrtss  VEX.LIG.F3.0F.WIG 51 /r | EVEX.LIG.F3.0F.W0 51 /r          x={kz} x x/m32        sqrt_f32
vsqrtsd  VEX.LIG.F2.0F.WIG 51 /r | EVEX.LIG.F2.0F.W1 51 /r          x={kz} x x/m64        sqrt_f64
vrcpps   VEX.0F.WIG 53 /r                                           v= v/m                fp_estimate
vrcpss   VEX.LIG.F3.0F.WIG 53 /r                                    x= x x/m32            fp_estimate
vrsqrtps  VEX.0F.WIG 52 /r                                          v= v/m                fp_estimate
vrsqrtss  VEX.LIG.F3.0F.WIG 52 /r                                   x= x x/m32            fp_estimate
vroundps  VEX.66.0F3A.WIG 08 /r ib                                  v= v/m u8             fp_round
vroundpd  VEX.66.0F3A.WIG 09 /r ib                                  v= v/m u8             fp_round
vroundss  VEX.LIG.66.0F3A.WIG 0A /r ib                              x= x x/m32 u8         fp_round
vroundsd  VEX.LIG.66.0F3A.WIG 0B /r ib                              x= x x/m64 u8         fp_round
vhaddps  VEX.F2.0F.WIG 7C /r                                        v= v v/m              fp_horizontal
vhaddpd  VEX.66.0F.WIG 7C /r                                        v= v v/m              fp_horizontal
vhsubps  VEX.F2.0F.WIG 7D /r                                        v= v v/m              fp_horizontal
vhsubpd  VEX.66.0F.WIG 7D /r                                        v= v v/m              fp_horizontal
vaddsubps  VEX.F2.0F.WIG D0 /r                                      v= v v/m              fp_add
vaddsubpd  VEX.66.0F.WIG D0 /r                                      v= v v/m              fp_add
vdpps    VEX.66.0F3A.WIG 40 /r ib                                   v= v v/m u8           fp_dot
vdppd    VEX.128.66.0F3A.WIG 41 /r ib                               v= v v/m u8           fp_dot
vcmpps   VEX.0F.WIG C2 /r ib                                        v= v v/m u8           fp_compare
vcmppd   VEX.66.0F.WIG C2 /r ib                                     v= v v/m u8           fp_compare
vcmpss   VEX.LIG.F3.0F.WIG C2 /r ib                                 x= x x/m32 u8         fp_compare
vcmpsd   VEX.LIG.F2.0F.WIG C2 /r ib                                 x= x x/m64 u8         fp_compare
vucomiss  VEX.LIG.0F.WIG 2E /r | EVEX.LIG.0F.W0 2E /r               x x/m32               fp_compare_flags wf
vucomisd  VEX.LIG.66.0F.WIG 2E /r | EVEX.LIG.66.0F.W1 2E /r         x x/m64               fp_compare_flags wf
vcomiss   VEX.LIG.0F.WIG 2F /r | EVEX.LIG.0F.W0 2F /r               x x/m32               fp_compare_flags wf
vcomisd   VEX.LIG.66.0F.WIG 2F /r | EVEX.LIG.66.0F.W1 2F /r         x x/m64               fp_compare_flags wf
vtestps  VEX.66.0F38.W0 0E /r                                       v v/m                 vec_test wf
vtestpd  VEX.66.0F38.W0 0F /r                                       v v/m                 vec_test wf
vptest   VEX.66.0F38.WIG 17 /r                                      v v/m                 vec_test wf
"""

CONVERSIONS = """
@ avx/avx512f
vcvtdq2ps   VEX.0F.WIG 5B /r | EVEX.0F.W0 5B /r                     v={kz} v/m/b32        convert
vcvtps2dq   VEX.66.0F.WIG 5B /r | EVEX.66.0F.W0 5B /r               v={kz} v/m/b32        convert
vcvttps2dq  VEX.F3.0F.WIG 5B /r | EVEX.F3.0F.W0 5B /r               v={kz} v/m/b32        convert
vcvtdq2pd   VEX.F3.0F.WIG E6 /r | EVEX.F3.0F.W0 E6 /r               v={kz} h/mh/bh32       convert_width
vcvtpd2dq   VEX.F2.0F.WIG E6 /r | EVEX.F2.0F.W1 E6 /r               h={kz} v/m!/b64!      convert_width
vcvttpd2dq  VEX.66.0F.WIG E6 /r | EVEX.66.0F.W1 E6 /r               h={kz} v/m!/b64!      convert_width
vcvtps2pd   VEX.0F.WIG 5A /r | EVEX.0F.W0 5A /r                     v={kz} h/mh/bh32       convert_width
vcvtpd2ps   VEX.66.0F.WIG 5A /r | EVEX.66.0F.W1 5A /r               h={kz} v/m!/b64!      convert_width
vcvtss2sd   VEX.LIG.F3.0F.WIG 5A /r | EVEX.LIG.F3.0F.W0 5A /r       x={kz} x x/m32        convert_width
vcvtsd2ss   VEX.LIG.F2.0F.WIG 5A /r | EVEX.LIG.F2.0F.W1 5A /r       x={kz} x x/m64        convert_width
vcvtsi2ss   VEX.LIG.F3.0F.Wy 2A /r | EVEX.LIG.F3.0F.Wy 2A /r        x= x ry/my!           convert_from_int
vcvtsi2sd   VEX.LIG.F2.0F.Wy 2A /r | EVEX.LIG.F2.0F.Wy 2A /r        x= x ry/my!           convert_from_int
vcvtss2si   VEX.LIG.F3.0F.Wy 2D /r | EVEX.LIG.F3.0F.Wy 2D /r        ry= x/m32             convert_to_int
vcvttss2si  VEX.LIG.F3.0F.Wy 2C /r | EVEX.LIG.F3.0F.Wy 2C /r        ry= x/m32             convert_to_int
vcvtsd2si   VEX.LIG.F2.0F.Wy 2D /r | EVEX.LIG.F2.0F.Wy 2D /r        ry= x/m64             convert_to_int
vcvttsd2si  VEX.LIG.F2.0F.Wy 2C /r | EVEX.LIG.F2.0F.Wy 2C /r        ry= x/m64             convert_to_int
@ f16c/avx512f
vcvtph2ps   VEX.66.0F38.W0 13 /r | EVEX.66.0F38.W0 13 /r            v={kz} h/mh           convert_half
vcvtps2ph   VEX.66.0F3A.W0 1D /r ib | EVEX.66.0F3A.W0 1D /r ib      h/mh={kz} v u8        convert_half
"""

TEXT = "@ avx/avx512f\n" + ARITHMETIC + LOGIC + FMA + MOVES + SHUFFLES + OTHER + CONVERSIONS
