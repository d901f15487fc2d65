"""The AArch64 rows of AdvSIMD vectors of floats, and of products of bytes and bfloat16, in the notation of table.py.

Source: Arm Architecture Reference Manual, DDI 0487, chapter C7.
"""
from __future__ import annotations

TEXT = """
@ dot bf16
bfdot       00101110010mmmmm111111nnnnnddddd  Vd.2s+, Vn.4h, Vm.4h
bfdot       01101110010mmmmm111111nnnnnddddd  Vd.4s+, Vn.8h, Vm.8h
bfdot       0000111101lmmmmm1111h0nnnnnddddd  Vd.2s+, Vn.4h, Vm.2h[<hl>]
bfdot       0100111101lmmmmm1111h0nnnnnddddd  Vd.4s+, Vn.8h, Vm.2h[<hl>]
bfmlal[bt]  0M101110110mmmmm111111nnnnnddddd  Vd.4s+, Vn.8h, Vm.8h
bfmlal[bt]  0M00111111llmmmm1111h0nnnnnddddd  Vd.4s+, Vn.8h, Vm.h[<hl>]
@ dot dotprod
[su]dot  0QM01110100mmmmm100101nnnnnddddd  Vd.C+, Vn.T, Vm.T         8b 16b
[su]dot  0QM0111110lmmmmm1110h0nnnnnddddd  Vd.C+, Vn.T, Vm.4b[<hl>]  8b 16b
@ dot i8mm
sudot  0Q00111100lmmmmm1111h0nnnnnddddd  Vd.C+, Vn.T, Vm.4b[<hl>]  8b 16b
usdot  0Q001110100mmmmm100111nnnnnddddd  Vd.C+, Vn.T, Vm.T         8b 16b
usdot  0Q00111110lmmmmm1111h0nnnnnddddd  Vd.C+, Vn.T, Vm.4b[<hl>]  8b 16b
@ fp_add base
fabd  0Q1011101S1mmmmm110101nnnnnddddd  Vd.T=, Vn.T, Vm.T  2s 4s 2d
fadd  0Q0011100S1mmmmm110101nnnnnddddd  Vd.T=, Vn.T, Vm.T  2s 4s 2d
fsub  0Q0011101S1mmmmm110101nnnnnddddd  Vd.T=, Vn.T, Vm.T  2s 4s 2d
@ fp_add complxnum
fcadd  0Q1011101S0mmmmm111i01nnnnnddddd  Vd.T=, Vn.T, Vm.T, #<i*180+90>  2s 4s 2d
@ fp_add fullfp16
fabd  0Q101110110mmmmm000101nnnnnddddd  Vd.T=, Vn.T, Vm.T  4h 8h
fadd  0Q001110010mmmmm000101nnnnnddddd  Vd.T=, Vn.T, Vm.T  4h 8h
fsub  0Q001110110mmmmm000101nnnnnddddd  Vd.T=, Vn.T, Vm.T  4h 8h
@ fp_add fullfp16+complxnum
fcadd  0Q101110010mmmmm111i01nnnnnddddd  Vd.T=, Vn.T, Vm.T, #<i*180+90>  4h 8h
@ fp_compare base
facge  0Q1011100S1mmmmm111011nnnnnddddd  Vd.T=, Vn.T, Vm.T  2s 4s 2d
facgt  0Q1011101S1mmmmm111011nnnnnddddd  Vd.T=, Vn.T, Vm.T  2s 4s 2d
fcmeq  0Q0011100S1mmmmm111001nnnnnddddd  Vd.T=, Vn.T, Vm.T  2s 4s 2d
fcmeq  0Q0011101S100000110110nnnnnddddd  Vd.T=, Vn.T, #0.0  2s 4s 2d
fcmge  0Q1011100S1mmmmm111001nnnnnddddd  Vd.T=, Vn.T, Vm.T  2s 4s 2d
fcmge  0Q1011101S100000110010nnnnnddddd  Vd.T=, Vn.T, #0.0  2s 4s 2d
fcmgt  0Q0011101S100000110010nnnnnddddd  Vd.T=, Vn.T, #0.0  2s 4s 2d
fcmgt  0Q1011101S1mmmmm111001nnnnnddddd  Vd.T=, Vn.T, Vm.T  2s 4s 2d
fcmle  0Q1011101S100000110110nnnnnddddd  Vd.T=, Vn.T, #0.0  2s 4s 2d
fcmlt  0Q0011101S100000111010nnnnnddddd  Vd.T=, Vn.T, #0.0  2s 4s 2d
@ fp_compare fullfp16
facge  0Q101110010mmmmm001011nnnnnddddd  Vd.T=, Vn.T, Vm.T  4h 8h
facgt  0Q101110110mmmmm001011nnnnnddddd  Vd.T=, Vn.T, Vm.T  4h 8h
fcmeq  0Q001110010mmmmm001001nnnnnddddd  Vd.T=, Vn.T, Vm.T  4h 8h
fcmeq  0Q00111011111000110110nnnnnddddd  Vd.T=, Vn.T, #0.0  4h 8h
fcmge  0Q101110010mmmmm001001nnnnnddddd  Vd.T=, Vn.T, Vm.T  4h 8h
fcmge  0Q10111011111000110010nnnnnddddd  Vd.T=, Vn.T, #0.0  4h 8h
fcmgt  0Q00111011111000110010nnnnnddddd  Vd.T=, Vn.T, #0.0  4h 8h
fcmgt  0Q101110110mmmmm001001nnnnnddddd  Vd.T=, Vn.T, Vm.T  4h 8h
fcmle  0Q10111011111000110110nnnnnddddd  Vd.T=, Vn.T, #0.0  4h 8h
fcmlt  0Q00111011111000111010nnnnnddddd  Vd.T=, Vn.T, #0.0  4h 8h
@ fp_convert base
fcvta[su]  0QM011100S100001110010nnnnnddddd  Vd.T=, Vn.T          2s 4s 2d
fcvtl      0000111000100001011110nnnnnddddd  Vd.4s=, Vn.4h
fcvtl      0000111001100001011110nnnnnddddd  Vd.2d=, Vn.2s
fcvtl2     0100111000100001011110nnnnnddddd  Vd.4s=, Vn.8h
fcvtl2     0100111001100001011110nnnnnddddd  Vd.2d=, Vn.4s
fcvtm[su]  0QM011100S100001101110nnnnnddddd  Vd.T=, Vn.T          2s 4s 2d
fcvtn      0000111000100001011010nnnnnddddd  Vd.4h=, Vn.4s
fcvtn      0000111001100001011010nnnnnddddd  Vd.2s=, Vn.2d
fcvtn2     0100111000100001011010nnnnnddddd  Vd.8h+, Vn.4s
fcvtn2     0100111001100001011010nnnnnddddd  Vd.4s+, Vn.2d
fcvtn[su]  0QM011100S100001101010nnnnnddddd  Vd.T=, Vn.T          2s 4s 2d
fcvtp[su]  0QM011101S100001101010nnnnnddddd  Vd.T=, Vn.T          2s 4s 2d
fcvtxn     0010111001100001011010nnnnnddddd  Vd.2s=, Vn.2d
fcvtxn2    0110111001100001011010nnnnnddddd  Vd.4s+, Vn.2d
fcvtz[su]  0QM011101S100001101110nnnnnddddd  Vd.T=, Vn.T          2s 4s 2d
fcvtz[su]  0QM011110IIIIIII111111nnnnnddddd  Vd.T=, Vn.T, #<%-i>  2s 4s 2d
[su]cvtf   0QM011100S100001110110nnnnnddddd  Vd.T=, Vn.T          2s 4s 2d
[su]cvtf   0QM011110IIIIIII111001nnnnnddddd  Vd.T=, Vn.T, #<%-i>  2s 4s 2d
@ fp_convert bf16
bfcvtn   0000111010100001011010nnnnnddddd  Vd.4h=, Vn.4s
bfcvtn2  0100111010100001011010nnnnnddddd  Vd.8h+, Vn.4s
@ fp_convert fullfp16
fcvta[su]  0QM0111001111001110010nnnnnddddd  Vd.T=, Vn.T          4h 8h
fcvtm[su]  0QM0111001111001101110nnnnnddddd  Vd.T=, Vn.T          4h 8h
fcvtn[su]  0QM0111001111001101010nnnnnddddd  Vd.T=, Vn.T          4h 8h
fcvtp[su]  0QM0111011111001101010nnnnnddddd  Vd.T=, Vn.T          4h 8h
fcvtz[su]  0QM0111011111001101110nnnnnddddd  Vd.T=, Vn.T          4h 8h
fcvtz[su]  0QM011110001iiii111111nnnnnddddd  Vd.T=, Vn.T, #<%-i>  4h 8h
[su]cvtf   0QM0111001111001110110nnnnnddddd  Vd.T=, Vn.T          4h 8h
[su]cvtf   0QM011110001iiii111001nnnnnddddd  Vd.T=, Vn.T, #<%-i>  4h 8h
@ fp_div base
fdiv  0Q1011100S1mmmmm111111nnnnnddddd  Vd.T=, Vn.T, Vm.T  2s 4s 2d
@ fp_div fullfp16
fdiv  0Q101110010mmmmm001111nnnnnddddd  Vd.T=, Vn.T, Vm.T  4h 8h
@ fp_estimate base
frecpe   0Q0011101S100001110110nnnnnddddd  Vd.T=, Vn.T  2s 4s 2d
frsqrte  0Q1011101S100001110110nnnnnddddd  Vd.T=, Vn.T  2s 4s 2d
urecpe   0Q00111010100001110010nnnnnddddd  Vd.T=, Vn.T  2s 4s
ursqrte  0Q10111010100001110010nnnnnddddd  Vd.T=, Vn.T  2s 4s
@ fp_estimate fullfp16
frecpe   0Q00111011111001110110nnnnnddddd  Vd.T=, Vn.T  4h 8h
frsqrte  0Q10111011111001110110nnnnnddddd  Vd.T=, Vn.T  4h 8h
@ fp_fma base
fml[as]  0Q001110MS1mmmmm110011nnnnnddddd  Vd.T+, Vn.T, Vm.T         2s 4s 2d
fml[as]  0Q00111110lmmmmm0M01h0nnnnnddddd  Vd.T+, Vn.T, Vm.E[<hl>]   2s 4s
fml[as]  01001111110mmmmm0M01i0nnnnnddddd  Vd.2d+, Vn.2d, Vm.d[<i>]
frecps   0Q0011100S1mmmmm111111nnnnnddddd  Vd.T=, Vn.T, Vm.T         2s 4s 2d
frsqrts  0Q0011101S1mmmmm111111nnnnnddddd  Vd.T=, Vn.T, Vm.T         2s 4s 2d
@ fp_fma complxnum
fcmla  0Q1011101S0mmmmm110ii1nnnnnddddd  Vd.T+, Vn.T, Vm.T, #<i*90>         2s 4s 2d
fcmla  01101111100mmmmm0ii1j0nnnnnddddd  Vd.4s+, Vn.4s, Vm.s[<j>], #<i*90>
@ fp_fma fp16fml
fml[as]l   00001110M01mmmmm111011nnnnnddddd  Vd.2s+, Vn.2h, Vm.2h
fml[as]l   01001110M01mmmmm111011nnnnnddddd  Vd.4s+, Vn.4h, Vm.4h
fml[as]l   0000111110llmmmm0M00h0nnnnnddddd  Vd.2s+, Vn.2h, Vm.h[<hl>]
fml[as]l   0100111110llmmmm0M00h0nnnnnddddd  Vd.4s+, Vn.4h, Vm.h[<hl>]
fml[as]l2  00101110M01mmmmm110011nnnnnddddd  Vd.2s+, Vn.2h, Vm.2h
fml[as]l2  01101110M01mmmmm110011nnnnnddddd  Vd.4s+, Vn.4h, Vm.4h
fml[as]l2  0010111110llmmmm1M00h0nnnnnddddd  Vd.2s+, Vn.2h, Vm.h[<hl>]
fml[as]l2  0110111110llmmmm1M00h0nnnnnddddd  Vd.4s+, Vn.4h, Vm.h[<hl>]
@ fp_fma fullfp16
fml[as]  0Q001110M10mmmmm000011nnnnnddddd  Vd.T+, Vn.T, Vm.T        4h 8h
fml[as]  0Q00111100llmmmm0M01h0nnnnnddddd  Vd.T+, Vn.T, Vm.E[<hl>]  4h 8h
frecps   0Q001110010mmmmm001111nnnnnddddd  Vd.T=, Vn.T, Vm.T        4h 8h
frsqrts  0Q001110110mmmmm001111nnnnnddddd  Vd.T=, Vn.T, Vm.T        4h 8h
@ fp_fma fullfp16+complxnum
fcmla  0Q101110010mmmmm110ii1nnnnnddddd  Vd.T+, Vn.T, Vm.T, #<i*90>          4h 8h
fcmla  0010111101immmmm0jj100nnnnnddddd  Vd.4h+, Vn.4h, Vm.h[<i>], #<j*90>
fcmla  0110111101lmmmmm0jj1h0nnnnnddddd  Vd.8h+, Vn.8h, Vm.h[<hl>], #<j*90>
@ fp_minmax base
fmax    0Q0011100S1mmmmm111101nnnnnddddd  Vd.T=, Vn.T, Vm.T  2s 4s 2d
fmaxnm  0Q0011100S1mmmmm110001nnnnnddddd  Vd.T=, Vn.T, Vm.T  2s 4s 2d
fmin    0Q0011101S1mmmmm111101nnnnnddddd  Vd.T=, Vn.T, Vm.T  2s 4s 2d
fminnm  0Q0011101S1mmmmm110001nnnnnddddd  Vd.T=, Vn.T, Vm.T  2s 4s 2d
@ fp_minmax fullfp16
fmax    0Q001110010mmmmm001101nnnnnddddd  Vd.T=, Vn.T, Vm.T  4h 8h
fmaxnm  0Q001110010mmmmm000001nnnnnddddd  Vd.T=, Vn.T, Vm.T  4h 8h
fmin    0Q001110110mmmmm001101nnnnnddddd  Vd.T=, Vn.T, Vm.T  4h 8h
fminnm  0Q001110110mmmmm000001nnnnnddddd  Vd.T=, Vn.T, Vm.T  4h 8h
@ fp_mul base
fmul   0Q1011100S1mmmmm110111nnnnnddddd  Vd.T=, Vn.T, Vm.T         2s 4s 2d
fmul   0Q00111110lmmmmm1001h0nnnnnddddd  Vd.T=, Vn.T, Vm.E[<hl>]   2s 4s
fmul   01001111110mmmmm1001i0nnnnnddddd  Vd.2d=, Vn.2d, Vm.d[<i>]
fmulx  0Q0011100S1mmmmm110111nnnnnddddd  Vd.T=, Vn.T, Vm.T         2s 4s 2d
fmulx  0Q10111110lmmmmm1001h0nnnnnddddd  Vd.T=, Vn.T, Vm.E[<hl>]   2s 4s
fmulx  01101111110mmmmm1001i0nnnnnddddd  Vd.2d=, Vn.2d, Vm.d[<i>]
@ fp_mul fullfp16
fmul   0Q101110010mmmmm000111nnnnnddddd  Vd.T=, Vn.T, Vm.T        4h 8h
fmul   0Q00111100llmmmm1001h0nnnnnddddd  Vd.T=, Vn.T, Vm.E[<hl>]  4h 8h
fmulx  0Q001110010mmmmm000111nnnnnddddd  Vd.T=, Vn.T, Vm.T        4h 8h
fmulx  0Q10111100llmmmm1001h0nnnnnddddd  Vd.T=, Vn.T, Vm.E[<hl>]  4h 8h
@ fp_reduce base
faddp    0111111000110000110110nnnnnddddd  Sd=, Vn.2s
faddp    0111111001110000110110nnnnnddddd  Dd=, Vn.2d
faddp    0Q1011100S1mmmmm110101nnnnnddddd  Vd.T=, Vn.T, Vm.T  2s 4s 2d
fmaxnmp  0111111000110000110010nnnnnddddd  Sd=, Vn.2s
fmaxnmp  0111111001110000110010nnnnnddddd  Dd=, Vn.2d
fmaxnmp  0Q1011100S1mmmmm110001nnnnnddddd  Vd.T=, Vn.T, Vm.T  2s 4s 2d
fmaxnmv  0110111000110000110010nnnnnddddd  Sd=, Vn.4s
fmaxp    0111111000110000111110nnnnnddddd  Sd=, Vn.2s
fmaxp    0111111001110000111110nnnnnddddd  Dd=, Vn.2d
fmaxp    0Q1011100S1mmmmm111101nnnnnddddd  Vd.T=, Vn.T, Vm.T  2s 4s 2d
fmaxv    0110111000110000111110nnnnnddddd  Sd=, Vn.4s
fminnmp  0111111010110000110010nnnnnddddd  Sd=, Vn.2s
fminnmp  0111111011110000110010nnnnnddddd  Dd=, Vn.2d
fminnmp  0Q1011101S1mmmmm110001nnnnnddddd  Vd.T=, Vn.T, Vm.T  2s 4s 2d
fminnmv  0110111010110000110010nnnnnddddd  Sd=, Vn.4s
fminp    0111111010110000111110nnnnnddddd  Sd=, Vn.2s
fminp    0111111011110000111110nnnnnddddd  Dd=, Vn.2d
fminp    0Q1011101S1mmmmm111101nnnnnddddd  Vd.T=, Vn.T, Vm.T  2s 4s 2d
fminv    0110111010110000111110nnnnnddddd  Sd=, Vn.4s
@ fp_reduce fullfp16
faddp    0101111000110000110110nnnnnddddd  Hd=, Vn.2h
faddp    0Q101110010mmmmm000101nnnnnddddd  Vd.T=, Vn.T, Vm.T  4h 8h
fmaxnmp  0101111000110000110010nnnnnddddd  Hd=, Vn.2h
fmaxnmp  0Q101110010mmmmm000001nnnnnddddd  Vd.T=, Vn.T, Vm.T  4h 8h
fmaxnmv  0Q00111000110000110010nnnnnddddd  Fd=, Vn.T          4h 8h
fmaxp    0101111000110000111110nnnnnddddd  Hd=, Vn.2h
fmaxp    0Q101110010mmmmm001101nnnnnddddd  Vd.T=, Vn.T, Vm.T  4h 8h
fmaxv    0Q00111000110000111110nnnnnddddd  Fd=, Vn.T          4h 8h
fminnmp  0101111010110000110010nnnnnddddd  Hd=, Vn.2h
fminnmp  0Q101110110mmmmm000001nnnnnddddd  Vd.T=, Vn.T, Vm.T  4h 8h
fminnmv  0Q00111010110000110010nnnnnddddd  Fd=, Vn.T          4h 8h
fminp    0101111010110000111110nnnnnddddd  Hd=, Vn.2h
fminp    0Q101110110mmmmm001101nnnnnddddd  Vd.T=, Vn.T, Vm.T  4h 8h
fminv    0Q00111010110000111110nnnnnddddd  Fd=, Vn.T          4h 8h
@ fp_round base
frinta  0Q1011100S100001100010nnnnnddddd  Vd.T=, Vn.T  2s 4s 2d
frinti  0Q1011101S100001100110nnnnnddddd  Vd.T=, Vn.T  2s 4s 2d
frintm  0Q0011100S100001100110nnnnnddddd  Vd.T=, Vn.T  2s 4s 2d
frintn  0Q0011100S100001100010nnnnnddddd  Vd.T=, Vn.T  2s 4s 2d
frintp  0Q0011101S100001100010nnnnnddddd  Vd.T=, Vn.T  2s 4s 2d
frintx  0Q1011100S100001100110nnnnnddddd  Vd.T=, Vn.T  2s 4s 2d
frintz  0Q0011101S100001100110nnnnnddddd  Vd.T=, Vn.T  2s 4s 2d
@ fp_round fptoint
frint32x  0Q1011100S100001111010nnnnnddddd  Vd.T=, Vn.T  2s 4s 2d
frint32z  0Q0011100S100001111010nnnnnddddd  Vd.T=, Vn.T  2s 4s 2d
frint64x  0Q1011100S100001111110nnnnnddddd  Vd.T=, Vn.T  2s 4s 2d
frint64z  0Q0011100S100001111110nnnnnddddd  Vd.T=, Vn.T  2s 4s 2d
@ fp_round fullfp16
frinta  0Q10111001111001100010nnnnnddddd  Vd.T=, Vn.T  4h 8h
frinti  0Q10111011111001100110nnnnnddddd  Vd.T=, Vn.T  4h 8h
frintm  0Q00111001111001100110nnnnnddddd  Vd.T=, Vn.T  4h 8h
frintn  0Q00111001111001100010nnnnnddddd  Vd.T=, Vn.T  4h 8h
frintp  0Q00111011111001100010nnnnnddddd  Vd.T=, Vn.T  4h 8h
frintx  0Q10111001111001100110nnnnnddddd  Vd.T=, Vn.T  4h 8h
frintz  0Q00111011111001100110nnnnnddddd  Vd.T=, Vn.T  4h 8h
@ fp_sign base
fabs  0Q0011101S100000111110nnnnnddddd  Vd.T=, Vn.T  2s 4s 2d
fneg  0Q1011101S100000111110nnnnnddddd  Vd.T=, Vn.T  2s 4s 2d
@ fp_sign fullfp16
fabs  0Q00111011111000111110nnnnnddddd  Vd.T=, Vn.T  4h 8h
fneg  0Q10111011111000111110nnnnnddddd  Vd.T=, Vn.T  4h 8h
@ fp_sqrt base
fsqrt  0Q1011101S100001111110nnnnnddddd  Vd.T=, Vn.T  2s 4s 2d
@ fp_sqrt fullfp16
fsqrt  0Q10111011111001111110nnnnnddddd  Vd.T=, Vn.T  4h 8h
@ mmla bf16
bfmmla  01101110010mmmmm111011nnnnnddddd  Vd.4s+, Vn.8h, Vm.8h
@ mmla i8mm
[su]mmla  01M01110100mmmmm101001nnnnnddddd  Vd.4s+, Vn.16b, Vm.16b
usmmla    01001110100mmmmm101011nnnnnddddd  Vd.4s+, Vn.16b, Vm.16b
"""
