"""The AArch64 rows of SVE vectors of floats, in the notation of table.py.

Source: Arm Architecture Reference Manual, DDI 0487, chapter C8.
"""
from __future__ import annotations

TEXT = """
@ dot sve
[su]dot  010001001S0mmmmm00000Mnnnnnddddd  Zd.T+, Zn.O, Zm.O       s d
[su]dot  01000100101iimmm00000Mnnnnnddddd  Zd.s+, Zn.b, Zm.b[<i>]
[su]dot  01000100111immmm00000Mnnnnnddddd  Zd.d+, Zn.h, Zm.h[<i>]
@ fp_add sve
fabd   01100101ZZ001000100gggnnnnnddddd  Zd.T+, Pg/m, Zd.T, Zn.T               h s d
fadd   01100101ZZ0mmmmm000000nnnnnddddd  Zd.T=, Zn.T, Zm.T                     h s d
fadd   01100101ZZ000000100gggnnnnnddddd  Zd.T+, Pg/m, Zd.T, Zn.T               h s d
fadd   01100101ZZ011000100ggg0000iddddd  Zd.T+, Pg/m, Zd.T, #<halfone:i>       h s d
fcadd  01100100ZZ00000i100gggnnnnnddddd  Zd.T+, Pg/m, Zd.T, Zn.T, #<i*180+90>  h s d
fsub   01100101ZZ0mmmmm000001nnnnnddddd  Zd.T=, Zn.T, Zm.T                     h s d
fsub   01100101ZZ000001100gggnnnnnddddd  Zd.T+, Pg/m, Zd.T, Zn.T               h s d
fsub   01100101ZZ011001100ggg0000iddddd  Zd.T+, Pg/m, Zd.T, #<halfone:i>       h s d
fsubr  01100101ZZ000011100gggnnnnnddddd  Zd.T+, Pg/m, Zd.T, Zn.T               h s d
fsubr  01100101ZZ011011100ggg0000iddddd  Zd.T+, Pg/m, Zd.T, #<halfone:i>       h s d
@ fp_compare sve
facge  01100101ZZ0mmmmm110gggnnnnn1dddd  Pd.T=, Pg/z, Zn.T, Zm.T  h s d
facgt  01100101ZZ0mmmmm111gggnnnnn1dddd  Pd.T=, Pg/z, Zn.T, Zm.T  h s d
fcmeq  01100101ZZ010010001gggnnnnn0dddd  Pd.T=, Pg/z, Zn.T, #0.0  h s d
fcmeq  01100101ZZ0mmmmm011gggnnnnn0dddd  Pd.T=, Pg/z, Zn.T, Zm.T  h s d
fcmge  01100101ZZ010000001gggnnnnn0dddd  Pd.T=, Pg/z, Zn.T, #0.0  h s d
fcmge  01100101ZZ0mmmmm010gggnnnnn0dddd  Pd.T=, Pg/z, Zn.T, Zm.T  h s d
fcmgt  01100101ZZ010000001gggnnnnn1dddd  Pd.T=, Pg/z, Zn.T, #0.0  h s d
fcmgt  01100101ZZ0mmmmm010gggnnnnn1dddd  Pd.T=, Pg/z, Zn.T, Zm.T  h s d
fcmle  01100101ZZ010001001gggnnnnn1dddd  Pd.T=, Pg/z, Zn.T, #0.0  h s d
fcmlt  01100101ZZ010001001gggnnnnn0dddd  Pd.T=, Pg/z, Zn.T, #0.0  h s d
fcmne  01100101ZZ010011001gggnnnnn0dddd  Pd.T=, Pg/z, Zn.T, #0.0  h s d
fcmne  01100101ZZ0mmmmm011gggnnnnn1dddd  Pd.T=, Pg/z, Zn.T, Zm.T  h s d
fcmuo  01100101ZZ0mmmmm110gggnnnnn0dddd  Pd.T=, Pg/z, Zn.T, Zm.T  h s d
@ fp_convert sve
fcvt       0110010110001000101gggnnnnnddddd  Zd.h+, Pg/m, Zn.s
fcvt       0110010110001001101gggnnnnnddddd  Zd.s+, Pg/m, Zn.h
fcvt       0110010111001000101gggnnnnnddddd  Zd.h+, Pg/m, Zn.d
fcvt       0110010111001001101gggnnnnnddddd  Zd.d+, Pg/m, Zn.h
fcvt       0110010111001010101gggnnnnnddddd  Zd.s+, Pg/m, Zn.d
fcvt       0110010111001011101gggnnnnnddddd  Zd.d+, Pg/m, Zn.s
fcvtz[su]  011001010101101M101gggnnnnnddddd  Zd.h+, Pg/m, Zn.h
fcvtz[su]  011001010101110M101gggnnnnnddddd  Zd.s+, Pg/m, Zn.h
fcvtz[su]  011001010101111M101gggnnnnnddddd  Zd.d+, Pg/m, Zn.h
fcvtz[su]  011001011001110M101gggnnnnnddddd  Zd.s+, Pg/m, Zn.s
fcvtz[su]  011001011101100M101gggnnnnnddddd  Zd.s+, Pg/m, Zn.d
fcvtz[su]  011001011101110M101gggnnnnnddddd  Zd.d+, Pg/m, Zn.s
fcvtz[su]  011001011101111M101gggnnnnnddddd  Zd.d+, Pg/m, Zn.d
[su]cvtf   011001010101001M101gggnnnnnddddd  Zd.h+, Pg/m, Zn.h
[su]cvtf   011001010101010M101gggnnnnnddddd  Zd.h+, Pg/m, Zn.s
[su]cvtf   011001010101011M101gggnnnnnddddd  Zd.h+, Pg/m, Zn.d
[su]cvtf   011001011001010M101gggnnnnnddddd  Zd.s+, Pg/m, Zn.s
[su]cvtf   011001011101000M101gggnnnnnddddd  Zd.d+, Pg/m, Zn.s
[su]cvtf   011001011101010M101gggnnnnnddddd  Zd.s+, Pg/m, Zn.d
[su]cvtf   011001011101011M101gggnnnnnddddd  Zd.d+, Pg/m, Zn.d
@ fp_div sve
fdiv   01100101ZZ001101100gggnnnnnddddd  Zd.T+, Pg/m, Zd.T, Zn.T  h s d
fdivr  01100101ZZ001100100gggnnnnnddddd  Zd.T+, Pg/m, Zd.T, Zn.T  h s d
@ fp_estimate sve
fexpa    00000100ZZ100000101110nnnnnddddd  Zd.T=, Zn.T              h s d
frecpe   01100101ZZ001110001100nnnnnddddd  Zd.T=, Zn.T              h s d
frecpx   01100101ZZ001100101gggnnnnnddddd  Zd.T+, Pg/m, Zn.T        h s d
frsqrte  01100101ZZ001111001100nnnnnddddd  Zd.T=, Zn.T              h s d
fscale   01100101ZZ001001100gggnnnnnddddd  Zd.T+, Pg/m, Zd.T, Zn.T  h s d
@ fp_fma sve
fcmla     01100100101iimmm0001jjnnnnnddddd  Zd.h+, Zn.h, Zm.h[<i>], #<j*90>
fcmla     01100100111immmm0001jjnnnnnddddd  Zd.s+, Zn.s, Zm.s[<i>], #<j*90>
fcmla     01100100ZZ0mmmmm0iigggnnnnnddddd  Zd.T+, Pg/m, Zn.T, Zm.T, #<i*90>  h s d
fmad      01100101ZZ1mmmmm100gggnnnnnddddd  Zd.T+, Pg/m, Zn.T, Zm.T           h s d
fml[as]   011001000i1iimmm00000Mnnnnnddddd  Zd.h+, Zn.h, Zm.h[<i>]
fml[as]   01100100101iimmm00000Mnnnnnddddd  Zd.s+, Zn.s, Zm.s[<i>]
fml[as]   01100100111immmm00000Mnnnnnddddd  Zd.d+, Zn.d, Zm.d[<i>]
fml[as]   01100101ZZ1mmmmm00Mgggnnnnnddddd  Zd.T+, Pg/m, Zn.T, Zm.T           h s d
fmsb      01100101ZZ1mmmmm101gggnnnnnddddd  Zd.T+, Pg/m, Zn.T, Zm.T           h s d
fnmad     01100101ZZ1mmmmm110gggnnnnnddddd  Zd.T+, Pg/m, Zn.T, Zm.T           h s d
fnml[as]  01100101ZZ1mmmmm01Mgggnnnnnddddd  Zd.T+, Pg/m, Zn.T, Zm.T           h s d
fnmsb     01100101ZZ1mmmmm111gggnnnnnddddd  Zd.T+, Pg/m, Zn.T, Zm.T           h s d
frecps    01100101ZZ0mmmmm000110nnnnnddddd  Zd.T=, Zn.T, Zm.T                 h s d
frsqrts   01100101ZZ0mmmmm000111nnnnnddddd  Zd.T=, Zn.T, Zm.T                 h s d
ftmad     01100101ZZ010iii100000nnnnnddddd  Zd.T+, Zd.T, Zn.T, #<i>           h s d
ftsmul    01100101ZZ0mmmmm000011nnnnnddddd  Zd.T=, Zn.T, Zm.T                 h s d
ftssel    00000100ZZ1mmmmm101100nnnnnddddd  Zd.T=, Zn.T, Zm.T                 h s d
@ fp_minmax sve
fmax    01100101ZZ000110100gggnnnnnddddd  Zd.T+, Pg/m, Zd.T, Zn.T          h s d
fmax    01100101ZZ011110100ggg0000iddddd  Zd.T+, Pg/m, Zd.T, #<zeroone:i>  h s d
fmaxnm  01100101ZZ000100100gggnnnnnddddd  Zd.T+, Pg/m, Zd.T, Zn.T          h s d
fmaxnm  01100101ZZ011100100ggg0000iddddd  Zd.T+, Pg/m, Zd.T, #<zeroone:i>  h s d
fmin    01100101ZZ000111100gggnnnnnddddd  Zd.T+, Pg/m, Zd.T, Zn.T          h s d
fmin    01100101ZZ011111100ggg0000iddddd  Zd.T+, Pg/m, Zd.T, #<zeroone:i>  h s d
fminnm  01100101ZZ000101100gggnnnnnddddd  Zd.T+, Pg/m, Zd.T, Zn.T          h s d
fminnm  01100101ZZ011101100ggg0000iddddd  Zd.T+, Pg/m, Zd.T, #<zeroone:i>  h s d
@ fp_mul sve
fmul   01100101ZZ0mmmmm000010nnnnnddddd  Zd.T=, Zn.T, Zm.T                h s d
fmul   011001000i1iimmm001000nnnnnddddd  Zd.h=, Zn.h, Zm.h[<i>]
fmul   01100100101iimmm001000nnnnnddddd  Zd.s=, Zn.s, Zm.s[<i>]
fmul   01100100111immmm001000nnnnnddddd  Zd.d=, Zn.d, Zm.d[<i>]
fmul   01100101ZZ000010100gggnnnnnddddd  Zd.T+, Pg/m, Zd.T, Zn.T          h s d
fmul   01100101ZZ011010100ggg0000iddddd  Zd.T+, Pg/m, Zd.T, #<halftwo:i>  h s d
fmulx  01100101ZZ001010100gggnnnnnddddd  Zd.T+, Pg/m, Zd.T, Zn.T          h s d
@ fp_reduce sve
fadda    01100101ZZ011000001gggnnnnnddddd  Fd+, Pg, Fd, Zn.T  h s d
faddv    01100101ZZ000000001gggnnnnnddddd  Fd=, Pg, Zn.T      h s d
fmaxnmv  01100101ZZ000100001gggnnnnnddddd  Fd=, Pg, Zn.T      h s d
fmaxv    01100101ZZ000110001gggnnnnnddddd  Fd=, Pg, Zn.T      h s d
fminnmv  01100101ZZ000101001gggnnnnnddddd  Fd=, Pg, Zn.T      h s d
fminv    01100101ZZ000111001gggnnnnnddddd  Fd=, Pg, Zn.T      h s d
@ fp_round sve
frinta  01100101ZZ000100101gggnnnnnddddd  Zd.T+, Pg/m, Zn.T  h s d
frinti  01100101ZZ000111101gggnnnnnddddd  Zd.T+, Pg/m, Zn.T  h s d
frintm  01100101ZZ000010101gggnnnnnddddd  Zd.T+, Pg/m, Zn.T  h s d
frintn  01100101ZZ000000101gggnnnnnddddd  Zd.T+, Pg/m, Zn.T  h s d
frintp  01100101ZZ000001101gggnnnnnddddd  Zd.T+, Pg/m, Zn.T  h s d
frintx  01100101ZZ000110101gggnnnnnddddd  Zd.T+, Pg/m, Zn.T  h s d
frintz  01100101ZZ000011101gggnnnnnddddd  Zd.T+, Pg/m, Zn.T  h s d
@ fp_sqrt sve
fsqrt  01100101ZZ001101101gggnnnnnddddd  Zd.T+, Pg/m, Zn.T  h s d
@ mmla f32mm
fmmla  01100100101mmmmm111001nnnnnddddd  Zd.s+, Zn.s, Zm.s
@ mmla f64mm
fmmla  01100100111mmmmm111001nnnnnddddd  Zd.d+, Zn.d, Zm.d
@ mmla sve+bf16
bfmmla  01100100011mmmmm111001nnnnnddddd  Zd.s+, Zn.h, Zm.h
"""
