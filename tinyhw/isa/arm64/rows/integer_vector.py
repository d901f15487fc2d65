"""The AArch64 rows of AdvSIMD vectors of integers, in the notation of table.py.

Source: Arm Architecture Reference Manual, DDI 0487, chapter C7.
"""
from __future__ import annotations

TEXT = """
@ vec_mov base alias
mov   0Q001110101mmmmm000111nnnnnddddd  Vd.T=, Vnm.T           8b 16b
mov   01001110000JJJJJ000111nnnnnddddd  Vd.E+[<j>], Wn         b h s
mov   01001110000JJJJJ000111nnnnnddddd  Vd.E+[<j>], Xn         d
mov   01101110000iiii10jjjj1nnnnnddddd  Vd.b+[<i>], Vn.b[<j>]
mov   01101110000iii100jjj01nnnnnddddd  Vd.h+[<i>], Vn.h[<j>]
mov   01101110000ii1000jj001nnnnnddddd  Vd.s+[<i>], Vn.s[<j>]
mov   01101110000i10000j0001nnnnnddddd  Vd.d+[<i>], Vn.d[<j>]
mov   00001110000JJJJJ001111nnnnnddddd  Wd=, Vn.E[<j>]         s
mov   01001110000JJJJJ001111nnnnnddddd  Xd=, Vn.E[<j>]         d
umov  01001110000JJJJJ001111nnnnnddddd  Xd=, Vn.E[<j>]         d
mvn   0Q10111000100000010110nnnnnddddd  Vd.T=, Vn.T            8b 16b
@ vec_mov base
movi  0Q00111100000iii0jj001iiiiiddddd  Vd.T=, #<i>(, lsl #<j*8>)  2s 4s
movi  0Q00111100000iii10j001iiiiiddddd  Vd.T=, #<i>(, lsl #<j*8>)  4h 8h
movi  0Q00111100000iii110j01iiiiiddddd  Vd.T=, #<i>, msl #<j*8+8>  2s 4s
movi  0Q00111100000iii111001iiiiiddddd  Vd.T=, #<i>                8b 16b
movi  0010111100000iii111001iiiiiddddd  Dd=, #<bytes:i>
movi  0110111100000iii111001iiiiiddddd  Vd.2d=, #<bytes:i>
mvni  0Q10111100000iii0jj001iiiiiddddd  Vd.T=, #<i>(, lsl #<j*8>)  2s 4s
mvni  0Q10111100000iii10j001iiiiiddddd  Vd.T=, #<i>(, lsl #<j*8>)  4h 8h
mvni  0Q10111100000iii110j01iiiiiddddd  Vd.T=, #<i>, msl #<j*8+8>  2s 4s
@ vec_logic base
orr  0Q00111100000iii0jj101iiiiiddddd  Vd.T+, #<i>(, lsl #<j*8>)  2s 4s
orr  0Q00111100000iii10j101iiiiiddddd  Vd.T+, #<i>(, lsl #<j*8>)  4h 8h
bic  0Q10111100000iii0jj101iiiiiddddd  Vd.T+, #<i>(, lsl #<j*8>)  2s 4s
bic  0Q10111100000iii10j101iiiiiddddd  Vd.T+, #<i>(, lsl #<j*8>)  4h 8h
@ vec_shift base unseen
[su]xtl   00M0111100001000101001nnnnnddddd  Vd.8h=, Vn.8b
[su]xtl   00M0111100010000101001nnnnnddddd  Vd.4s=, Vn.4h
[su]xtl   00M0111100100000101001nnnnnddddd  Vd.2d=, Vn.2s
[su]xtl2  01M0111100001000101001nnnnnddddd  Vd.8h=, Vn.16b
[su]xtl2  01M0111100010000101001nnnnnddddd  Vd.4s=, Vn.8h
[su]xtl2  01M0111100100000101001nnnnnddddd  Vd.2d=, Vn.4s
@ int_to_vec base
dup  0Q00111000000001000011nnnnnddddd  Vd.T=, Wn   8b 16b
dup  0Q00111000000010000011nnnnnddddd  Vd.T=, Wn   4h 8h
dup  0Q00111000000100000011nnnnnddddd  Vd.T=, Wn   2s 4s
dup  0100111000001000000011nnnnnddddd  Vd.2d=, Xn
@ vec_alu base
abs        0Q001110ZZ100000101110nnnnnddddd  Vd.T=, Vn.T        8b 16b 4h 8h 2s 4s 2d
add        0Q001110ZZ1mmmmm100001nnnnnddddd  Vd.T=, Vn.T, Vm.T  8b 16b 4h 8h 2s 4s 2d
addhn      0Q001110ZZ1mmmmm010000nnnnnddddd  Vd.T=, Vn.U, Vm.U  8b 4h 2s
addhn2     0Q001110ZZ1mmmmm010000nnnnnddddd  Vd.T+, Vn.U, Vm.U  16b 8h 4s
addp       0101111011110001101110nnnnnddddd  Dd=, Vn.2d
addp       0Q001110ZZ1mmmmm101111nnnnnddddd  Vd.T=, Vn.T, Vm.T  8b 16b 4h 8h 2s 4s 2d
cls        0Q001110ZZ100000010010nnnnnddddd  Vd.T=, Vn.T        8b 16b 4h 8h 2s 4s
clz        0Q101110ZZ100000010010nnnnnddddd  Vd.T=, Vn.T        8b 16b 4h 8h 2s 4s
cnt        0Q00111000100000010110nnnnnddddd  Vd.T=, Vn.T        8b 16b
neg        0Q101110ZZ100000101110nnnnnddddd  Vd.T=, Vn.T        8b 16b 4h 8h 2s 4s 2d
raddhn     0Q101110ZZ1mmmmm010000nnnnnddddd  Vd.T=, Vn.U, Vm.U  8b 4h 2s
raddhn2    0Q101110ZZ1mmmmm010000nnnnnddddd  Vd.T+, Vn.U, Vm.U  16b 8h 4s
rbit       0Q10111001100000010110nnnnnddddd  Vd.T=, Vn.T        8b 16b
rsubhn     0Q101110ZZ1mmmmm011000nnnnnddddd  Vd.T=, Vn.U, Vm.U  8b 4h 2s
rsubhn2    0Q101110ZZ1mmmmm011000nnnnnddddd  Vd.T+, Vn.U, Vm.U  16b 8h 4s
[su]abd    0QM01110ZZ1mmmmm011101nnnnnddddd  Vd.T=, Vn.T, Vm.T  8b 16b 4h 8h 2s 4s
[su]abdl   0QM01110ZZ1mmmmm011100nnnnnddddd  Vd.U=, Vn.T, Vm.T  8b 4h 2s
[su]abdl2  0QM01110ZZ1mmmmm011100nnnnnddddd  Vd.U=, Vn.T, Vm.T  16b 8h 4s
[su]addl   0QM01110ZZ1mmmmm000000nnnnnddddd  Vd.U=, Vn.T, Vm.T  8b 4h 2s
[su]addl2  0QM01110ZZ1mmmmm000000nnnnnddddd  Vd.U=, Vn.T, Vm.T  16b 8h 4s
[su]addlp  0QM01110ZZ100000001010nnnnnddddd  Vd.P=, Vn.T        8b 4h 2s
[su]addlp  0QM01110ZZ100000001010nnnnnddddd  Vd.U=, Vn.T        16b 8h 4s
[su]addw   0QM01110ZZ1mmmmm000100nnnnnddddd  Vd.U=, Vn.U, Vm.T  8b 4h 2s
[su]addw2  0QM01110ZZ1mmmmm000100nnnnnddddd  Vd.U=, Vn.U, Vm.T  16b 8h 4s
[su]hsub   0QM01110ZZ1mmmmm001001nnnnnddddd  Vd.T=, Vn.T, Vm.T  8b 16b 4h 8h 2s 4s
[su]max    0QM01110ZZ1mmmmm011001nnnnnddddd  Vd.T=, Vn.T, Vm.T  8b 16b 4h 8h 2s 4s
[su]maxp   0QM01110ZZ1mmmmm101001nnnnnddddd  Vd.T=, Vn.T, Vm.T  8b 16b 4h 8h 2s 4s
[su]min    0QM01110ZZ1mmmmm011011nnnnnddddd  Vd.T=, Vn.T, Vm.T  8b 16b 4h 8h 2s 4s
[su]minp   0QM01110ZZ1mmmmm101011nnnnnddddd  Vd.T=, Vn.T, Vm.T  8b 16b 4h 8h 2s 4s
sqabs      0Q001110ZZ100000011110nnnnnddddd  Vd.T=, Vn.T        8b 16b 4h 8h 2s 4s 2d
[su]qadd   0QM01110ZZ1mmmmm000011nnnnnddddd  Vd.T=, Vn.T, Vm.T  8b 16b 4h 8h 2s 4s 2d
sqneg      0Q101110ZZ100000011110nnnnnddddd  Vd.T=, Vn.T        8b 16b 4h 8h 2s 4s 2d
[su]qsub   0QM01110ZZ1mmmmm001011nnnnnddddd  Vd.T=, Vn.T, Vm.T  8b 16b 4h 8h 2s 4s 2d
[su]rhadd  0QM01110ZZ1mmmmm000101nnnnnddddd  Vd.T=, Vn.T, Vm.T  8b 16b 4h 8h 2s 4s
[su]subl   0QM01110ZZ1mmmmm001000nnnnnddddd  Vd.U=, Vn.T, Vm.T  8b 4h 2s
[su]subl2  0QM01110ZZ1mmmmm001000nnnnnddddd  Vd.U=, Vn.T, Vm.T  16b 8h 4s
[su]subw   0QM01110ZZ1mmmmm001100nnnnnddddd  Vd.U=, Vn.U, Vm.T  8b 4h 2s
[su]subw2  0QM01110ZZ1mmmmm001100nnnnnddddd  Vd.U=, Vn.U, Vm.T  16b 8h 4s
sub        0Q101110ZZ1mmmmm100001nnnnnddddd  Vd.T=, Vn.T, Vm.T  8b 16b 4h 8h 2s 4s 2d
subhn      0Q001110ZZ1mmmmm011000nnnnnddddd  Vd.T=, Vn.U, Vm.U  8b 4h 2s
subhn2     0Q001110ZZ1mmmmm011000nnnnnddddd  Vd.T+, Vn.U, Vm.U  16b 8h 4s
suqadd     0Q001110ZZ100000001110nnnnnddddd  Vd.T+, Vn.T        8b 16b 4h 8h 2s 4s 2d
uhadd      0Q101110ZZ1mmmmm000001nnnnnddddd  Vd.T=, Vn.T, Vm.T  8b 16b 4h 8h 2s 4s
usqadd     0Q101110ZZ100000001110nnnnnddddd  Vd.T+, Vn.T        8b 16b 4h 8h 2s 4s 2d
@ vec_compare base
cmeq   0Q001110ZZ100000100110nnnnnddddd  Vd.T=, Vn.T, #0    8b 16b 4h 8h 2s 4s 2d
cmeq   0Q101110ZZ1mmmmm100011nnnnnddddd  Vd.T=, Vn.T, Vm.T  8b 16b 4h 8h 2s 4s 2d
cmge   0Q101110ZZ100000100010nnnnnddddd  Vd.T=, Vn.T, #0    8b 16b 4h 8h 2s 4s 2d
cmge   0Q001110ZZ1mmmmm001111nnnnnddddd  Vd.T=, Vn.T, Vm.T  8b 16b 4h 8h 2s 4s 2d
cmgt   0Q001110ZZ100000100010nnnnnddddd  Vd.T=, Vn.T, #0    8b 16b 4h 8h 2s 4s 2d
cmgt   0Q001110ZZ1mmmmm001101nnnnnddddd  Vd.T=, Vn.T, Vm.T  8b 16b 4h 8h 2s 4s 2d
cmhi   0Q101110ZZ1mmmmm001101nnnnnddddd  Vd.T=, Vn.T, Vm.T  8b 16b 4h 8h 2s 4s 2d
cmhs   0Q101110ZZ1mmmmm001111nnnnnddddd  Vd.T=, Vn.T, Vm.T  8b 16b 4h 8h 2s 4s 2d
cmle   0Q101110ZZ100000100110nnnnnddddd  Vd.T=, Vn.T, #0    8b 16b 4h 8h 2s 4s 2d
cmlt   0Q001110ZZ100000101010nnnnnddddd  Vd.T=, Vn.T, #0    8b 16b 4h 8h 2s 4s 2d
cmtst  0Q001110ZZ1mmmmm100011nnnnnddddd  Vd.T=, Vn.T, Vm.T  8b 16b 4h 8h 2s 4s 2d
@ vec_logic base
and  0Q001110001mmmmm000111nnnnnddddd  Vd.T=, Vn.T, Vm.T  8b 16b
bic  0Q001110011mmmmm000111nnnnnddddd  Vd.T=, Vn.T, Vm.T  8b 16b
bif  0Q101110111mmmmm000111nnnnnddddd  Vd.T+, Vn.T, Vm.T  8b 16b
bit  0Q101110101mmmmm000111nnnnnddddd  Vd.T+, Vn.T, Vm.T  8b 16b
bsl  0Q101110011mmmmm000111nnnnnddddd  Vd.T+, Vn.T, Vm.T  8b 16b
eor  0Q101110001mmmmm000111nnnnnddddd  Vd.T=, Vn.T, Vm.T  8b 16b
not  0Q10111000100000010110nnnnnddddd  Vd.T=, Vn.T        8b 16b
orn  0Q001110111mmmmm000111nnnnnddddd  Vd.T=, Vn.T, Vm.T  8b 16b
orr  0Q001110101mmmmm000111nnnnnddddd  Vd.T=, Vn.T, Vm.T  8b 16b
@ vec_mla base
ml[as]        0QM01110ZZ1mmmmm100101nnnnnddddd  Vd.T+, Vn.T, Vm.T          8b 16b 4h 8h 2s 4s
ml[as]        0Q10111101llmmmm0M00h0nnnnnddddd  Vd.T+, Vn.T, Vm.E[<hl>]    4h 8h
ml[as]        0Q10111110lmmmmm0M00h0nnnnnddddd  Vd.T+, Vn.T, Vm.E[<hl>]    2s 4s
[su]ml[as]l   0QM01110ZZ1mmmmm10N000nnnnnddddd  Vd.U+, Vn.T, Vm.T          8b 4h 2s
[su]ml[as]l   00M0111101llmmmm0N10h0nnnnnddddd  Vd.4s+, Vn.4h, Vm.h[<hl>]
[su]ml[as]l   00M0111110lmmmmm0N10h0nnnnnddddd  Vd.2d+, Vn.2s, Vm.s[<hl>]
[su]ml[as]l2  0QM01110ZZ1mmmmm10N000nnnnnddddd  Vd.U+, Vn.T, Vm.T          16b 8h 4s
[su]ml[as]l2  01M0111101llmmmm0N10h0nnnnnddddd  Vd.4s+, Vn.8h, Vm.h[<hl>]
[su]ml[as]l2  01M0111110lmmmmm0N10h0nnnnnddddd  Vd.2d+, Vn.4s, Vm.s[<hl>]
sqdml[as]l    0Q001110ZZ1mmmmm10M100nnnnnddddd  Vd.U+, Vn.T, Vm.T          4h 2s
sqdml[as]l    0000111101llmmmm0M11h0nnnnnddddd  Vd.4s+, Vn.4h, Vm.h[<hl>]
sqdml[as]l    0000111110lmmmmm0M11h0nnnnnddddd  Vd.2d+, Vn.2s, Vm.s[<hl>]
sqdml[as]l2   0Q001110ZZ1mmmmm10M100nnnnnddddd  Vd.U+, Vn.T, Vm.T          8h 4s
sqdml[as]l2   0100111101llmmmm0M11h0nnnnnddddd  Vd.4s+, Vn.8h, Vm.h[<hl>]
sqdml[as]l2   0100111110lmmmmm0M11h0nnnnnddddd  Vd.2d+, Vn.4s, Vm.s[<hl>]
@ vec_mla rdm
sqrdml[as]h  0Q101110ZZ0mmmmm1000M1nnnnnddddd  Vd.T+, Vn.T, Vm.T        4h 8h 2s 4s
sqrdml[as]h  0Q10111101llmmmm11M1h0nnnnnddddd  Vd.T+, Vn.T, Vm.E[<hl>]  4h 8h
sqrdml[as]h  0Q10111110lmmmmm11M1h0nnnnnddddd  Vd.T+, Vn.T, Vm.E[<hl>]  2s 4s
@ vec_mov base
dup   0Q001110000JJJJJ000001nnnnnddddd  Vd.T=, Vn.E[<j>]    8b 16b 4h 8h 2s 4s 2d
fmov  0Q00111100000iii111101iiiiiddddd  Vd.T=, #<float:i>   2s 4s
fmov  0110111100000iii111101iiiiiddddd  Vd.2d=, #<float:i>
@ vec_mov fullfp16
fmov  0Q00111100000iii111111iiiiiddddd  Vd.T=, #<float:i>  4h 8h
@ vec_mul aes
pmull   00001110111mmmmm111000nnnnnddddd  Vd.1q=, Vn.1d, Vm.1d
pmull2  01001110111mmmmm111000nnnnnddddd  Vd.1q=, Vn.2d, Vm.2d
@ vec_mul base
mul        0Q001110ZZ1mmmmm100111nnnnnddddd  Vd.T=, Vn.T, Vm.T          8b 16b 4h 8h 2s 4s
mul        0Q00111101llmmmm1000h0nnnnnddddd  Vd.T=, Vn.T, Vm.E[<hl>]    4h 8h
mul        0Q00111110lmmmmm1000h0nnnnnddddd  Vd.T=, Vn.T, Vm.E[<hl>]    2s 4s
pmul       0Q101110001mmmmm100111nnnnnddddd  Vd.T=, Vn.T, Vm.T          8b 16b
pmull      00001110001mmmmm111000nnnnnddddd  Vd.8h=, Vn.8b, Vm.8b
pmull2     01001110001mmmmm111000nnnnnddddd  Vd.8h=, Vn.16b, Vm.16b
[su]mull   0QM01110ZZ1mmmmm110000nnnnnddddd  Vd.U=, Vn.T, Vm.T          8b 4h 2s
[su]mull   00M0111101llmmmm1010h0nnnnnddddd  Vd.4s=, Vn.4h, Vm.h[<hl>]
[su]mull   00M0111110lmmmmm1010h0nnnnnddddd  Vd.2d=, Vn.2s, Vm.s[<hl>]
[su]mull2  0QM01110ZZ1mmmmm110000nnnnnddddd  Vd.U=, Vn.T, Vm.T          16b 8h 4s
[su]mull2  01M0111101llmmmm1010h0nnnnnddddd  Vd.4s=, Vn.8h, Vm.h[<hl>]
[su]mull2  01M0111110lmmmmm1010h0nnnnnddddd  Vd.2d=, Vn.4s, Vm.s[<hl>]
sqdmulh    0Q001110ZZ1mmmmm101101nnnnnddddd  Vd.T=, Vn.T, Vm.T          4h 8h 2s 4s
sqdmulh    0Q00111101llmmmm1100h0nnnnnddddd  Vd.T=, Vn.T, Vm.E[<hl>]    4h 8h
sqdmulh    0Q00111110lmmmmm1100h0nnnnnddddd  Vd.T=, Vn.T, Vm.E[<hl>]    2s 4s
sqdmull    0Q001110ZZ1mmmmm110100nnnnnddddd  Vd.U=, Vn.T, Vm.T          4h 2s
sqdmull    0000111101llmmmm1011h0nnnnnddddd  Vd.4s=, Vn.4h, Vm.h[<hl>]
sqdmull    0000111110lmmmmm1011h0nnnnnddddd  Vd.2d=, Vn.2s, Vm.s[<hl>]
sqdmull2   0Q001110ZZ1mmmmm110100nnnnnddddd  Vd.U=, Vn.T, Vm.T          8h 4s
sqdmull2   0100111101llmmmm1011h0nnnnnddddd  Vd.4s=, Vn.8h, Vm.h[<hl>]
sqdmull2   0100111110lmmmmm1011h0nnnnnddddd  Vd.2d=, Vn.4s, Vm.s[<hl>]
sqrdmulh   0Q101110ZZ1mmmmm101101nnnnnddddd  Vd.T=, Vn.T, Vm.T          4h 8h 2s 4s
sqrdmulh   0Q00111101llmmmm1101h0nnnnnddddd  Vd.T=, Vn.T, Vm.E[<hl>]    4h 8h
sqrdmulh   0Q00111110lmmmmm1101h0nnnnnddddd  Vd.T=, Vn.T, Vm.E[<hl>]    2s 4s
@ vec_permute base
ext    00101110000mmmmm00iii0nnnnnddddd  Vd.8b=, Vn.8b, Vm.8b, #<i>
ext    01101110000mmmmm0iiii0nnnnnddddd  Vd.16b=, Vn.16b, Vm.16b, #<i>
rev16  0Q00111000100000000110nnnnnddddd  Vd.T=, Vn.T                    8b 16b
rev32  0Q101110ZZ100000000010nnnnnddddd  Vd.T=, Vn.T                    8b 16b 4h 8h
rev64  0Q001110ZZ100000000010nnnnnddddd  Vd.T=, Vn.T                    8b 16b 4h 8h 2s 4s
trn1   0Q001110ZZ0mmmmm001010nnnnnddddd  Vd.T=, Vn.T, Vm.T              8b 16b 4h 8h 2s 4s 2d
trn2   0Q001110ZZ0mmmmm011010nnnnnddddd  Vd.T=, Vn.T, Vm.T              8b 16b 4h 8h 2s 4s 2d
uzp1   0Q001110ZZ0mmmmm000110nnnnnddddd  Vd.T=, Vn.T, Vm.T              8b 16b 4h 8h 2s 4s 2d
uzp2   0Q001110ZZ0mmmmm010110nnnnnddddd  Vd.T=, Vn.T, Vm.T              8b 16b 4h 8h 2s 4s 2d
zip1   0Q001110ZZ0mmmmm001110nnnnnddddd  Vd.T=, Vn.T, Vm.T              8b 16b 4h 8h 2s 4s 2d
zip2   0Q001110ZZ0mmmmm011110nnnnnddddd  Vd.T=, Vn.T, Vm.T              8b 16b 4h 8h 2s 4s 2d
@ vec_reduce base
addv       0Q001110ZZ110001101110nnnnnddddd  Fd=, Vn.T  8b 16b 4h 8h 4s
[su]addlv  0QM01110ZZ110000001110nnnnnddddd  Gd=, Vn.T  8b 16b 4h 8h 4s
[su]maxv   0QM01110ZZ110000101010nnnnnddddd  Fd=, Vn.T  8b 16b 4h 8h 4s
[su]minv   0QM01110ZZ110001101010nnnnnddddd  Fd=, Vn.T  8b 16b 4h 8h 4s
@ vec_shift base
shl        0Q0011110IIIIIII010101nnnnnddddd  Vd.T=, Vn.T, #<i>    8b 16b 4h 8h 2s 4s 2d
shll       0010111000100001001110nnnnnddddd  Vd.8h=, Vn.8b, #8
shll       0010111001100001001110nnnnnddddd  Vd.4s=, Vn.4h, #16
shll       0010111010100001001110nnnnnddddd  Vd.2d=, Vn.2s, #32
shll2      0110111000100001001110nnnnnddddd  Vd.8h=, Vn.16b, #8
shll2      0110111001100001001110nnnnnddddd  Vd.4s=, Vn.8h, #16
shll2      0110111010100001001110nnnnnddddd  Vd.2d=, Vn.4s, #32
sli        0Q1011110IIIIIII010101nnnnnddddd  Vd.T+, Vn.T, #<i>    8b 16b 4h 8h 2s 4s 2d
sri        0Q1011110IIIIIII010001nnnnnddddd  Vd.T+, Vn.T, #<%-i>  8b 16b 4h 8h 2s 4s 2d
[su]shl    0QM01110ZZ1mmmmm010001nnnnnddddd  Vd.T=, Vn.T, Vm.T    8b 16b 4h 8h 2s 4s 2d
[su]shll   0QM011110IIIIIII101001nnnnnddddd  Vd.U=, Vn.T, #<i>    8b 4h 2s
[su]shll2  0QM011110IIIIIII101001nnnnnddddd  Vd.U=, Vn.T, #<i>    16b 8h 4s
[su]shr    0QM011110IIIIIII000001nnnnnddddd  Vd.T=, Vn.T, #<%-i>  8b 16b 4h 8h 2s 4s 2d
@ vec_shift_acc base
[su]aba    0QM01110ZZ1mmmmm011111nnnnnddddd  Vd.T+, Vn.T, Vm.T    8b 16b 4h 8h 2s 4s
[su]abal   0QM01110ZZ1mmmmm010100nnnnnddddd  Vd.U+, Vn.T, Vm.T    8b 4h 2s
[su]abal2  0QM01110ZZ1mmmmm010100nnnnnddddd  Vd.U+, Vn.T, Vm.T    16b 8h 4s
[su]adalp  0QM01110ZZ100000011010nnnnnddddd  Vd.P+, Vn.T          8b 4h 2s
[su]adalp  0QM01110ZZ100000011010nnnnnddddd  Vd.U+, Vn.T          16b 8h 4s
[su]rsra   0QM011110IIIIIII001101nnnnnddddd  Vd.T+, Vn.T, #<%-i>  8b 16b 4h 8h 2s 4s 2d
[su]sra    0QM011110IIIIIII000101nnnnnddddd  Vd.T+, Vn.T, #<%-i>  8b 16b 4h 8h 2s 4s 2d
@ vec_shift_long base
rshrn        0Q0011110IIIIIII100011nnnnnddddd  Vd.T=, Vn.U, #<%-i>  8b 4h 2s
rshrn2       0Q0011110IIIIIII100011nnnnnddddd  Vd.T+, Vn.U, #<%-i>  16b 8h 4s
shrn         0Q0011110IIIIIII100001nnnnnddddd  Vd.T=, Vn.U, #<%-i>  8b 4h 2s
shrn2        0Q0011110IIIIIII100001nnnnnddddd  Vd.T+, Vn.U, #<%-i>  16b 8h 4s
[su]qrshl    0QM01110ZZ1mmmmm010111nnnnnddddd  Vd.T=, Vn.T, Vm.T    8b 16b 4h 8h 2s 4s 2d
[su]qrshrn   0QM011110IIIIIII100111nnnnnddddd  Vd.T=, Vn.U, #<%-i>  8b 4h 2s
[su]qrshrn2  0QM011110IIIIIII100111nnnnnddddd  Vd.T+, Vn.U, #<%-i>  16b 8h 4s
sqrshrun     0Q1011110IIIIIII100011nnnnnddddd  Vd.T=, Vn.U, #<%-i>  8b 4h 2s
sqrshrun2    0Q1011110IIIIIII100011nnnnnddddd  Vd.T+, Vn.U, #<%-i>  16b 8h 4s
[su]qshl     0QM01110ZZ1mmmmm010011nnnnnddddd  Vd.T=, Vn.T, Vm.T    8b 16b 4h 8h 2s 4s 2d
[su]qshl     0QM011110IIIIIII011101nnnnnddddd  Vd.T=, Vn.T, #<i>    8b 16b 4h 8h 2s 4s 2d
sqshlu       0Q1011110IIIIIII011001nnnnnddddd  Vd.T=, Vn.T, #<i>    8b 16b 4h 8h 2s 4s 2d
[su]qshrn    0QM011110IIIIIII100101nnnnnddddd  Vd.T=, Vn.U, #<%-i>  8b 4h 2s
[su]qshrn2   0QM011110IIIIIII100101nnnnnddddd  Vd.T+, Vn.U, #<%-i>  16b 8h 4s
sqshrun      0Q1011110IIIIIII100001nnnnnddddd  Vd.T=, Vn.U, #<%-i>  8b 4h 2s
sqshrun2     0Q1011110IIIIIII100001nnnnnddddd  Vd.T+, Vn.U, #<%-i>  16b 8h 4s
[su]qxtn     0QM01110ZZ100001010010nnnnnddddd  Vd.T=, Vn.U          8b 4h 2s
[su]qxtn2    0QM01110ZZ100001010010nnnnnddddd  Vd.T+, Vn.U          16b 8h 4s
sqxtun       0Q101110ZZ100001001010nnnnnddddd  Vd.T=, Vn.U          8b 4h 2s
sqxtun2      0Q101110ZZ100001001010nnnnnddddd  Vd.T+, Vn.U          16b 8h 4s
[su]rshl     0QM01110ZZ1mmmmm010101nnnnnddddd  Vd.T=, Vn.T, Vm.T    8b 16b 4h 8h 2s 4s 2d
[su]rshr     0QM011110IIIIIII001001nnnnnddddd  Vd.T=, Vn.T, #<%-i>  8b 16b 4h 8h 2s 4s 2d
xtn          0Q001110ZZ100001001010nnnnnddddd  Vd.T=, Vn.U          8b 4h 2s
xtn2         0Q001110ZZ100001001010nnnnnddddd  Vd.T+, Vn.U          16b 8h 4s
@ vec_table base
tbl  00001110000mmmmm000000nnnnnddddd  Vd.8b=, { Vn.16b }, Vm.8b
tbl  00001110000mmmmm001000nnnnnddddd  Vd.8b=, { Vn.16b*2 }, Vm.8b
tbl  00001110000mmmmm010000nnnnnddddd  Vd.8b=, { Vn.16b*3 }, Vm.8b
tbl  00001110000mmmmm011000nnnnnddddd  Vd.8b=, { Vn.16b*4 }, Vm.8b
tbl  01001110000mmmmm000000nnnnnddddd  Vd.16b=, { Vn.16b }, Vm.16b
tbl  01001110000mmmmm001000nnnnnddddd  Vd.16b=, { Vn.16b*2 }, Vm.16b
tbl  01001110000mmmmm010000nnnnnddddd  Vd.16b=, { Vn.16b*3 }, Vm.16b
tbl  01001110000mmmmm011000nnnnnddddd  Vd.16b=, { Vn.16b*4 }, Vm.16b
tbx  00001110000mmmmm000100nnnnnddddd  Vd.8b+, { Vn.16b }, Vm.8b
tbx  00001110000mmmmm001100nnnnnddddd  Vd.8b+, { Vn.16b*2 }, Vm.8b
tbx  00001110000mmmmm010100nnnnnddddd  Vd.8b+, { Vn.16b*3 }, Vm.8b
tbx  00001110000mmmmm011100nnnnnddddd  Vd.8b+, { Vn.16b*4 }, Vm.8b
tbx  01001110000mmmmm000100nnnnnddddd  Vd.16b+, { Vn.16b }, Vm.16b
tbx  01001110000mmmmm001100nnnnnddddd  Vd.16b+, { Vn.16b*2 }, Vm.16b
tbx  01001110000mmmmm010100nnnnnddddd  Vd.16b+, { Vn.16b*3 }, Vm.16b
tbx  01001110000mmmmm011100nnnnnddddd  Vd.16b+, { Vn.16b*4 }, Vm.16b
"""
