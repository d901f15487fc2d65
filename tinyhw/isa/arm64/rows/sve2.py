"""The AArch64 rows of SVE2, in the notation of table.py.

Source: Arm Architecture Reference Manual, DDI 0487, chapter C8.
"""
from __future__ import annotations

TEXT = """
@ crypto sve2
bcax   00000100011mmmmm001110nnnnnddddd  Zd.d+, Zd.d, Zm.d, Zn.d
eor3   00000100001mmmmm001110nnnnnddddd  Zd.d+, Zd.d, Zm.d, Zn.d
shadd  01000100ZZ010000100gggnnnnnddddd  Zd.T+, Pg/m, Zd.T, Zn.T    b h s d
xar    00000100II1IIIII001101nnnnnddddd  Zd.T+, Zd.T, Zn.T, #<%-i>  b h s d
@ crypto sve2-aes
aesd    0100010100100010111001nnnnnddddd  Zd.b+, Zd.b, Zn.b
aese    0100010100100010111000nnnnnddddd  Zd.b+, Zd.b, Zn.b
aesimc  010001010010000011100100000ddddd  Zd.b+, Zd.b
aesmc   010001010010000011100000000ddddd  Zd.b+, Zd.b
@ crypto sve2-sha3
rax1  01000101001mmmmm111101nnnnnddddd  Zd.d=, Zn.d, Zm.d
@ crypto sve2-sm4
sm4e     0100010100100011111000nnnnnddddd  Zd.s+, Zd.s, Zn.s
sm4ekey  01000101001mmmmm111100nnnnnddddd  Zd.s=, Zn.s, Zm.s
@ dot sve2
cdot  010001001S0mmmmm0001iinnnnnddddd  Zd.T+, Zn.O, Zm.O, #<i*90>       s d
cdot  01000100101iimmm0100jjnnnnnddddd  Zd.s+, Zn.b, Zm.b[<i>], #<j*90>
cdot  01000100111immmm0100jjnnnnnddddd  Zd.d+, Zn.h, Zm.h[<i>], #<j*90>
@ dot sve2+i8mm
sudot  01000100101iimmm000111nnnnnddddd  Zd.s+, Zn.b, Zm.b[<i>]
usdot  01000100100mmmmm011110nnnnnddddd  Zd.s+, Zn.b, Zm.b
usdot  01000100101iimmm000110nnnnnddddd  Zd.s+, Zn.b, Zm.b[<i>]
@ fp_convert sve2
fcvtlt   0110010010001001101gggnnnnnddddd  Zd.s+, Pg/m, Zn.h
fcvtlt   0110010011001011101gggnnnnnddddd  Zd.d+, Pg/m, Zn.s
fcvtnt   0110010010001000101gggnnnnnddddd  Zd.h+, Pg/m, Zn.s
fcvtnt   0110010011001010101gggnnnnnddddd  Zd.s+, Pg/m, Zn.d
fcvtx    0110010100001010101gggnnnnnddddd  Zd.s+, Pg/m, Zn.d
fcvtxnt  0110010000001010101gggnnnnnddddd  Zd.s+, Pg/m, Zn.d
@ fp_estimate sve2
flogb    0110010100011010101gggnnnnnddddd  Zd.h+, Pg/m, Zn.h
flogb    0110010100011100101gggnnnnnddddd  Zd.s+, Pg/m, Zn.s
flogb    0110010100011110101gggnnnnnddddd  Zd.d+, Pg/m, Zn.d
urecpe   0100010010000000101gggnnnnnddddd  Zd.s+, Pg/m, Zn.s
ursqrte  0100010010000001101gggnnnnnddddd  Zd.s+, Pg/m, Zn.s
@ fp_fma sve2
fml[as]l[bt]  01100100101mmmmm10M00Nnnnnnddddd  Zd.s+, Zn.h, Zm.h
fml[as]l[bt]  01100100101iimmm01M0iNnnnnnddddd  Zd.s+, Zn.h, Zm.h[<i>]
@ fp_reduce sve2
faddp    01100100ZZ010000100gggnnnnnddddd  Zd.T+, Pg/m, Zd.T, Zn.T  h s d
fmaxnmp  01100100ZZ010100100gggnnnnnddddd  Zd.T+, Pg/m, Zd.T, Zn.T  h s d
fmaxp    01100100ZZ010110100gggnnnnnddddd  Zd.T+, Pg/m, Zd.T, Zn.T  h s d
fminnmp  01100100ZZ010101100gggnnnnnddddd  Zd.T+, Pg/m, Zd.T, Zn.T  h s d
fminp    01100100ZZ010111100gggnnnnnddddd  Zd.T+, Pg/m, Zd.T, Zn.T  h s d
@ mmla sve2+i8mm
smmla   01000101000mmmmm100110nnnnnddddd  Zd.s+, Zn.b, Zm.b
ummla   01000101110mmmmm100110nnnnnddddd  Zd.s+, Zn.b, Zm.b
usmmla  01000101100mmmmm100110nnnnnddddd  Zd.s+, Zn.b, Zm.b
@ vec_alu sve2
adcl[bt]      010001010S0mmmmm11010Mnnnnnddddd  Zd.T+, Zn.T, Zm.T               s d
addhnb        01000101ZZ1mmmmm011000nnnnnddddd  Zd.N=, Zn.T, Zm.T               h s d
addhnt        01000101ZZ1mmmmm011001nnnnnddddd  Zd.N+, Zn.T, Zm.T               h s d
addp          01000100ZZ010001101gggnnnnnddddd  Zd.T+, Pg/m, Zd.T, Zn.T         b h s d
cadd          01000101ZZ00000011011innnnnddddd  Zd.T+, Zd.T, Zn.T, #<i*180+90>  b h s d
nmatch        01000101ZZ1mmmmm100gggnnnnn1dddd  Pd.T=, Pg/z, Zn.T, Zm.T         b h
raddhnb       01000101ZZ1mmmmm011010nnnnnddddd  Zd.N=, Zn.T, Zm.T               h s d
raddhnt       01000101ZZ1mmmmm011011nnnnnddddd  Zd.N+, Zn.T, Zm.T               h s d
rsubhnb       01000101ZZ1mmmmm011110nnnnnddddd  Zd.N=, Zn.T, Zm.T               h s d
rsubhnt       01000101ZZ1mmmmm011111nnnnnddddd  Zd.N+, Zn.T, Zm.T               h s d
[su]abdl[bt]  01000101ZZ0mmmmm0011MNnnnnnddddd  Zd.T=, Zn.N, Zm.N               h s d
[su]addl[bt]  01000101ZZ0mmmmm0000MNnnnnnddddd  Zd.T=, Zn.N, Zm.N               h s d
saddlbt       01000101ZZ0mmmmm100000nnnnnddddd  Zd.T=, Zn.N, Zm.N               h s d
[su]addw[bt]  01000101ZZ0mmmmm0100MNnnnnnddddd  Zd.T=, Zn.T, Zm.N               h s d
sbcl[bt]      010001011S0mmmmm11010Mnnnnnddddd  Zd.T+, Zn.T, Zm.T               s d
[su]hsub      01000100ZZ01001M100gggnnnnnddddd  Zd.T+, Pg/m, Zd.T, Zn.T         b h s d
[su]hsubr     01000100ZZ01011M100gggnnnnnddddd  Zd.T+, Pg/m, Zd.T, Zn.T         b h s d
[su]maxp      01000100ZZ01010M101gggnnnnnddddd  Zd.T+, Pg/m, Zd.T, Zn.T         b h s d
[su]minp      01000100ZZ01011M101gggnnnnnddddd  Zd.T+, Pg/m, Zd.T, Zn.T         b h s d
sqabs         01000100ZZ001000101gggnnnnnddddd  Zd.T+, Pg/m, Zn.T               b h s d
[su]qadd      01000100ZZ01100M100gggnnnnnddddd  Zd.T+, Pg/m, Zd.T, Zn.T         b h s d
sqcadd        01000101ZZ00000111011innnnnddddd  Zd.T+, Zd.T, Zn.T, #<i*180+90>  b h s d
sqneg         01000100ZZ001001101gggnnnnnddddd  Zd.T+, Pg/m, Zn.T               b h s d
[su]qsub      01000100ZZ01101M100gggnnnnnddddd  Zd.T+, Pg/m, Zd.T, Zn.T         b h s d
[su]qsubr     01000100ZZ01111M100gggnnnnnddddd  Zd.T+, Pg/m, Zd.T, Zn.T         b h s d
[su]rhadd     01000100ZZ01010M100gggnnnnnddddd  Zd.T+, Pg/m, Zd.T, Zn.T         b h s d
[su]subl[bt]  01000101ZZ0mmmmm0001MNnnnnnddddd  Zd.T=, Zn.N, Zm.N               h s d
ssublbt       01000101ZZ0mmmmm100010nnnnnddddd  Zd.T=, Zn.N, Zm.N               h s d
ssubltb       01000101ZZ0mmmmm100011nnnnnddddd  Zd.T=, Zn.N, Zm.N               h s d
[su]subw[bt]  01000101ZZ0mmmmm0101MNnnnnnddddd  Zd.T=, Zn.T, Zm.N               h s d
subhnb        01000101ZZ1mmmmm011100nnnnnddddd  Zd.N=, Zn.T, Zm.T               h s d
subhnt        01000101ZZ1mmmmm011101nnnnnddddd  Zd.N+, Zn.T, Zm.T               h s d
suqadd        01000100ZZ011100100gggnnnnnddddd  Zd.T+, Pg/m, Zd.T, Zn.T         b h s d
uhadd         01000100ZZ010001100gggnnnnnddddd  Zd.T+, Pg/m, Zd.T, Zn.T         b h s d
usqadd        01000100ZZ011101100gggnnnnnddddd  Zd.T+, Pg/m, Zd.T, Zn.T         b h s d
@ vec_alu sve2+i8mm
movprfx  0000010011010001001gggnnnnnddddd  Zd.d+, Pg/m, Zn.d
@ vec_alu sve2-bitperm
bdep  01000101ZZ0mmmmm101101nnnnnddddd  Zd.T=, Zn.T, Zm.T  b h s d
bext  01000101ZZ0mmmmm101100nnnnnddddd  Zd.T=, Zn.T, Zm.T  b h s d
bgrp  01000101ZZ0mmmmm101110nnnnnddddd  Zd.T=, Zn.T, Zm.T  b h s d
@ vec_logic sve2
bsl    00000100001mmmmm001111nnnnnddddd  Zd.d+, Zd.d, Zm.d, Zn.d
bsl1n  00000100011mmmmm001111nnnnnddddd  Zd.d+, Zd.d, Zm.d, Zn.d
bsl2n  00000100101mmmmm001111nnnnnddddd  Zd.d+, Zd.d, Zm.d, Zn.d
eorbt  01000101ZZ0mmmmm100100nnnnnddddd  Zd.T+, Zn.T, Zm.T        b h s d
eortb  01000101ZZ0mmmmm100101nnnnnddddd  Zd.T+, Zn.T, Zm.T        b h s d
nbsl   00000100111mmmmm001111nnnnnddddd  Zd.d+, Zd.d, Zm.d, Zn.d
@ vec_mla sve2
cmla            01000100ZZ0mmmmm0010iinnnnnddddd  Zd.T+, Zn.T, Zm.T, #<i*90>       b h s d
cmla            01000100101iimmm0110jjnnnnnddddd  Zd.h+, Zn.h, Zm.h[<i>], #<j*90>
cmla            01000100111immmm0110jjnnnnnddddd  Zd.s+, Zn.s, Zm.s[<i>], #<j*90>
ml[as]          010001000i1iimmm00001Mnnnnnddddd  Zd.h+, Zn.h, Zm.h[<i>]
ml[as]          01000100101iimmm00001Mnnnnnddddd  Zd.s+, Zn.s, Zm.s[<i>]
ml[as]          01000100111immmm00001Mnnnnnddddd  Zd.d+, Zn.d, Zm.d[<i>]
[su]ml[as]lb    01000100ZZ0mmmmm010NM0nnnnnddddd  Zd.T+, Zn.N, Zm.N                h s d
[su]ml[as]lb    01000100101iimmm10NMi0nnnnnddddd  Zd.s+, Zn.h, Zm.h[<i>]
[su]ml[as]lb    01000100111immmm10NMi0nnnnnddddd  Zd.d+, Zn.s, Zm.s[<i>]
[su]ml[as]lt    01000100ZZ0mmmmm010NM1nnnnnddddd  Zd.T+, Zn.N, Zm.N                h s d
[su]ml[as]lt    01000100101iimmm10NMi1nnnnnddddd  Zd.s+, Zn.h, Zm.h[<i>]
[su]ml[as]lt    01000100111immmm10NMi1nnnnnddddd  Zd.d+, Zn.s, Zm.s[<i>]
sqdml[as]l[bt]  01000100ZZ0mmmmm0110MNnnnnnddddd  Zd.T+, Zn.N, Zm.N                h s d
sqdml[as]l[bt]  01000100101iimmm001MiNnnnnnddddd  Zd.s+, Zn.h, Zm.h[<i>]
sqdml[as]l[bt]  01000100111immmm001MiNnnnnnddddd  Zd.d+, Zn.s, Zm.s[<i>]
sqdml[as]lbt    01000100ZZ0mmmmm00001Mnnnnnddddd  Zd.T+, Zn.N, Zm.N                h s d
sqrdcmlah       01000100ZZ0mmmmm0011iinnnnnddddd  Zd.T+, Zn.T, Zm.T, #<i*90>       b h s d
sqrdcmlah       01000100101iimmm0111jjnnnnnddddd  Zd.h+, Zn.h, Zm.h[<i>], #<j*90>
sqrdcmlah       01000100111immmm0111jjnnnnnddddd  Zd.s+, Zn.s, Zm.s[<i>], #<j*90>
sqrdml[as]h     01000100ZZ0mmmmm01110Mnnnnnddddd  Zd.T+, Zn.T, Zm.T                b h s d
sqrdml[as]h     010001000i1iimmm00010Mnnnnnddddd  Zd.h+, Zn.h, Zm.h[<i>]
sqrdml[as]h     01000100101iimmm00010Mnnnnnddddd  Zd.s+, Zn.s, Zm.s[<i>]
sqrdml[as]h     01000100111immmm00010Mnnnnnddddd  Zd.d+, Zn.d, Zm.d[<i>]
@ vec_mul sve2
mul           00000100ZZ1mmmmm011000nnnnnddddd  Zd.T=, Zn.T, Zm.T       b h s d
mul           010001000i1iimmm111110nnnnnddddd  Zd.h=, Zn.h, Zm.h[<i>]
mul           01000100101iimmm111110nnnnnddddd  Zd.s=, Zn.s, Zm.s[<i>]
mul           01000100111immmm111110nnnnnddddd  Zd.d=, Zn.d, Zm.d[<i>]
pmul          00000100001mmmmm011001nnnnnddddd  Zd.b=, Zn.b, Zm.b
pmull[bt]     01000101ZZ0mmmmm01101Mnnnnnddddd  Zd.T=, Zn.N, Zm.N       h d
[su]mulh      00000100ZZ1mmmmm01101Mnnnnnddddd  Zd.T=, Zn.T, Zm.T       b h s d
[su]mull[bt]  01000101ZZ0mmmmm0111MNnnnnnddddd  Zd.T=, Zn.N, Zm.N       h s d
[su]mull[bt]  01000100101iimmm110MiNnnnnnddddd  Zd.s=, Zn.h, Zm.h[<i>]
[su]mull[bt]  01000100111immmm110MiNnnnnnddddd  Zd.d=, Zn.s, Zm.s[<i>]
sqdmulh       00000100ZZ1mmmmm011100nnnnnddddd  Zd.T=, Zn.T, Zm.T       b h s d
sqdmulh       010001000i1iimmm111100nnnnnddddd  Zd.h=, Zn.h, Zm.h[<i>]
sqdmulh       01000100101iimmm111100nnnnnddddd  Zd.s=, Zn.s, Zm.s[<i>]
sqdmulh       01000100111immmm111100nnnnnddddd  Zd.d=, Zn.d, Zm.d[<i>]
sqdmull[bt]   01000101ZZ0mmmmm01100Mnnnnnddddd  Zd.T=, Zn.N, Zm.N       h s d
sqdmull[bt]   01000100101iimmm1110iMnnnnnddddd  Zd.s=, Zn.h, Zm.h[<i>]
sqdmull[bt]   01000100111immmm1110iMnnnnnddddd  Zd.d=, Zn.s, Zm.s[<i>]
sqrdmulh      00000100ZZ1mmmmm011101nnnnnddddd  Zd.T=, Zn.T, Zm.T       b h s d
sqrdmulh      010001000i1iimmm111101nnnnnddddd  Zd.h=, Zn.h, Zm.h[<i>]
sqrdmulh      01000100101iimmm111101nnnnnddddd  Zd.s=, Zn.s, Zm.s[<i>]
sqrdmulh      01000100111immmm111101nnnnnddddd  Zd.d=, Zn.d, Zm.d[<i>]
@ vec_mul sve2-aes
pmull[bt]  01000101000mmmmm01101Mnnnnnddddd  Zd.q=, Zn.d, Zm.d
@ vec_permute sve2
ext      00000101011iiiii000iiinnnnnddddd  Zd.b=, { Zn.b*2 }, #<i>
histcnt  010001011S1mmmmm110gggnnnnnddddd  Zd.T=, Pg/z, Zn.T, Zm.T  s d
histseg  01000101001mmmmm101000nnnnnddddd  Zd.b=, Zn.b, Zm.b
match    01000101ZZ1mmmmm100gggnnnnn0dddd  Pd.T=, Pg/z, Zn.T, Zm.T  b h
splice   00000101ZZ101101100gggnnnnnddddd  Zd.T=, Pg, { Zn.T*2 }    b h s d
@ vec_shift sve2
sli           01000101II0IIIII111101nnnnnddddd  Zd.T+, Zn.T, #<i>    b h s d
sri           01000101II0IIIII111100nnnnnddddd  Zd.T+, Zn.T, #<%-i>  b h s d
[su]shll[bt]  010001010I0IIIII1010MNnnnnnddddd  Zd.U=, Zn.T, #<i>    b h s
@ vec_shift_acc sve2
[su]aba       01000101ZZ0mmmmm11111Mnnnnnddddd  Zd.T+, Zn.T, Zm.T    b h s d
[su]abal[bt]  01000101ZZ0mmmmm1100MNnnnnnddddd  Zd.T+, Zn.N, Zm.N    h s d
[su]adalp     01000100ZZ00010M101gggnnnnnddddd  Zd.T+, Pg/m, Zn.N    h s d
[su]rsra      01000101II0IIIII11101Mnnnnnddddd  Zd.T+, Zn.T, #<%-i>  b h s d
[su]sra       01000101II0IIIII11100Mnnnnnddddd  Zd.T+, Zn.T, #<%-i>  b h s d
@ vec_shift_long sve2
rshrnb       010001010I1IIIII000110nnnnnddddd  Zd.T=, Zn.U, #<%-i>        b h s
rshrnt       010001010I1IIIII000111nnnnnddddd  Zd.T+, Zn.U, #<%-i>        b h s
shrnb        010001010I1IIIII000100nnnnnddddd  Zd.T=, Zn.U, #<%-i>        b h s
shrnt        010001010I1IIIII000101nnnnnddddd  Zd.T+, Zn.U, #<%-i>        b h s
[su]qrshl    01000100ZZ00101M100gggnnnnnddddd  Zd.T+, Pg/m, Zd.T, Zn.T    b h s d
[su]qrshlr   01000100ZZ00111M100gggnnnnnddddd  Zd.T+, Pg/m, Zd.T, Zn.T    b h s d
[su]qrshrnb  010001010I1IIIII001M10nnnnnddddd  Zd.T=, Zn.U, #<%-i>        b h s
[su]qrshrnt  010001010I1IIIII001M11nnnnnddddd  Zd.T+, Zn.U, #<%-i>        b h s
sqrshrunb    010001010I1IIIII000010nnnnnddddd  Zd.T=, Zn.U, #<%-i>        b h s
sqrshrunt    010001010I1IIIII000011nnnnnddddd  Zd.T+, Zn.U, #<%-i>        b h s
[su]qshl     00000100II00011M100gggIIIIIddddd  Zd.T+, Pg/m, Zd.T, #<i>    b h s d
[su]qshl     01000100ZZ00100M100gggnnnnnddddd  Zd.T+, Pg/m, Zd.T, Zn.T    b h s d
[su]qshlr    01000100ZZ00110M100gggnnnnnddddd  Zd.T+, Pg/m, Zd.T, Zn.T    b h s d
sqshlu       00000100II001111100gggIIIIIddddd  Zd.T+, Pg/m, Zd.T, #<i>    b h s d
[su]qshrnb   010001010I1IIIII001M00nnnnnddddd  Zd.T=, Zn.U, #<%-i>        b h s
[su]qshrnt   010001010I1IIIII001M01nnnnnddddd  Zd.T+, Zn.U, #<%-i>        b h s
sqshrunb     010001010I1IIIII000000nnnnnddddd  Zd.T=, Zn.U, #<%-i>        b h s
sqshrunt     010001010I1IIIII000001nnnnnddddd  Zd.T+, Zn.U, #<%-i>        b h s
[su]qxtnb    01000101001010000100M0nnnnnddddd  Zd.b=, Zn.h
[su]qxtnb    01000101001100000100M0nnnnnddddd  Zd.h=, Zn.s
[su]qxtnb    01000101011000000100M0nnnnnddddd  Zd.s=, Zn.d
[su]qxtnt    01000101001010000100M1nnnnnddddd  Zd.b+, Zn.h
[su]qxtnt    01000101001100000100M1nnnnnddddd  Zd.h+, Zn.s
[su]qxtnt    01000101011000000100M1nnnnnddddd  Zd.s+, Zn.d
sqxtunb      0100010100101000010100nnnnnddddd  Zd.b=, Zn.h
sqxtunb      0100010100110000010100nnnnnddddd  Zd.h=, Zn.s
sqxtunb      0100010101100000010100nnnnnddddd  Zd.s=, Zn.d
sqxtunt      0100010100101000010101nnnnnddddd  Zd.b+, Zn.h
sqxtunt      0100010100110000010101nnnnnddddd  Zd.h+, Zn.s
sqxtunt      0100010101100000010101nnnnnddddd  Zd.s+, Zn.d
[su]rshl     01000100ZZ00001M100gggnnnnnddddd  Zd.T+, Pg/m, Zd.T, Zn.T    b h s d
[su]rshlr    01000100ZZ00011M100gggnnnnnddddd  Zd.T+, Pg/m, Zd.T, Zn.T    b h s d
[su]rshr     00000100II00110M100gggIIIIIddddd  Zd.T+, Pg/m, Zd.T, #<%-i>  b h s d
@ vec_table sve2
tbl  00000101ZZ1mmmmm001010nnnnnddddd  Zd.T=, { Zn.T*2 }, Zm.T  b h s d
tbx  00000101ZZ1mmmmm001011nnnnnddddd  Zd.T+, Zn.T, Zm.T        b h s d
"""
