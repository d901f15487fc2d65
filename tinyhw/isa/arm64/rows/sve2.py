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
fmlalb  01100100101mmmmm100000nnnnnddddd  Zd.s+, Zn.h, Zm.h
fmlalb  01100100101iimmm0100i0nnnnnddddd  Zd.s+, Zn.h, Zm.h[<i>]
fmlalt  01100100101mmmmm100001nnnnnddddd  Zd.s+, Zn.h, Zm.h
fmlalt  01100100101iimmm0100i1nnnnnddddd  Zd.s+, Zn.h, Zm.h[<i>]
fmlslb  01100100101mmmmm101000nnnnnddddd  Zd.s+, Zn.h, Zm.h
fmlslb  01100100101iimmm0110i0nnnnnddddd  Zd.s+, Zn.h, Zm.h[<i>]
fmlslt  01100100101mmmmm101001nnnnnddddd  Zd.s+, Zn.h, Zm.h
fmlslt  01100100101iimmm0110i1nnnnnddddd  Zd.s+, Zn.h, Zm.h[<i>]
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
adclb    010001010S0mmmmm110100nnnnnddddd  Zd.T+, Zn.T, Zm.T               s d
adclt    010001010S0mmmmm110101nnnnnddddd  Zd.T+, Zn.T, Zm.T               s d
addhnb   01000101ZZ1mmmmm011000nnnnnddddd  Zd.N=, Zn.T, Zm.T               h s d
addhnt   01000101ZZ1mmmmm011001nnnnnddddd  Zd.N+, Zn.T, Zm.T               h s d
addp     01000100ZZ010001101gggnnnnnddddd  Zd.T+, Pg/m, Zd.T, Zn.T         b h s d
cadd     01000101ZZ00000011011innnnnddddd  Zd.T+, Zd.T, Zn.T, #<i*180+90>  b h s d
nmatch   01000101ZZ1mmmmm100gggnnnnn1dddd  Pd.T=, Pg/z, Zn.T, Zm.T         b h
raddhnb  01000101ZZ1mmmmm011010nnnnnddddd  Zd.N=, Zn.T, Zm.T               h s d
raddhnt  01000101ZZ1mmmmm011011nnnnnddddd  Zd.N+, Zn.T, Zm.T               h s d
rsubhnb  01000101ZZ1mmmmm011110nnnnnddddd  Zd.N=, Zn.T, Zm.T               h s d
rsubhnt  01000101ZZ1mmmmm011111nnnnnddddd  Zd.N+, Zn.T, Zm.T               h s d
sabdlb   01000101ZZ0mmmmm001100nnnnnddddd  Zd.T=, Zn.N, Zm.N               h s d
sabdlt   01000101ZZ0mmmmm001101nnnnnddddd  Zd.T=, Zn.N, Zm.N               h s d
saddlb   01000101ZZ0mmmmm000000nnnnnddddd  Zd.T=, Zn.N, Zm.N               h s d
saddlbt  01000101ZZ0mmmmm100000nnnnnddddd  Zd.T=, Zn.N, Zm.N               h s d
saddlt   01000101ZZ0mmmmm000001nnnnnddddd  Zd.T=, Zn.N, Zm.N               h s d
saddwb   01000101ZZ0mmmmm010000nnnnnddddd  Zd.T=, Zn.T, Zm.N               h s d
saddwt   01000101ZZ0mmmmm010001nnnnnddddd  Zd.T=, Zn.T, Zm.N               h s d
sbclb    010001011S0mmmmm110100nnnnnddddd  Zd.T+, Zn.T, Zm.T               s d
sbclt    010001011S0mmmmm110101nnnnnddddd  Zd.T+, Zn.T, Zm.T               s d
shsub    01000100ZZ010010100gggnnnnnddddd  Zd.T+, Pg/m, Zd.T, Zn.T         b h s d
shsubr   01000100ZZ010110100gggnnnnnddddd  Zd.T+, Pg/m, Zd.T, Zn.T         b h s d
smaxp    01000100ZZ010100101gggnnnnnddddd  Zd.T+, Pg/m, Zd.T, Zn.T         b h s d
sminp    01000100ZZ010110101gggnnnnnddddd  Zd.T+, Pg/m, Zd.T, Zn.T         b h s d
sqabs    01000100ZZ001000101gggnnnnnddddd  Zd.T+, Pg/m, Zn.T               b h s d
sqadd    01000100ZZ011000100gggnnnnnddddd  Zd.T+, Pg/m, Zd.T, Zn.T         b h s d
sqcadd   01000101ZZ00000111011innnnnddddd  Zd.T+, Zd.T, Zn.T, #<i*180+90>  b h s d
sqneg    01000100ZZ001001101gggnnnnnddddd  Zd.T+, Pg/m, Zn.T               b h s d
sqsub    01000100ZZ011010100gggnnnnnddddd  Zd.T+, Pg/m, Zd.T, Zn.T         b h s d
sqsubr   01000100ZZ011110100gggnnnnnddddd  Zd.T+, Pg/m, Zd.T, Zn.T         b h s d
srhadd   01000100ZZ010100100gggnnnnnddddd  Zd.T+, Pg/m, Zd.T, Zn.T         b h s d
ssublb   01000101ZZ0mmmmm000100nnnnnddddd  Zd.T=, Zn.N, Zm.N               h s d
ssublbt  01000101ZZ0mmmmm100010nnnnnddddd  Zd.T=, Zn.N, Zm.N               h s d
ssublt   01000101ZZ0mmmmm000101nnnnnddddd  Zd.T=, Zn.N, Zm.N               h s d
ssubltb  01000101ZZ0mmmmm100011nnnnnddddd  Zd.T=, Zn.N, Zm.N               h s d
ssubwb   01000101ZZ0mmmmm010100nnnnnddddd  Zd.T=, Zn.T, Zm.N               h s d
ssubwt   01000101ZZ0mmmmm010101nnnnnddddd  Zd.T=, Zn.T, Zm.N               h s d
subhnb   01000101ZZ1mmmmm011100nnnnnddddd  Zd.N=, Zn.T, Zm.T               h s d
subhnt   01000101ZZ1mmmmm011101nnnnnddddd  Zd.N+, Zn.T, Zm.T               h s d
suqadd   01000100ZZ011100100gggnnnnnddddd  Zd.T+, Pg/m, Zd.T, Zn.T         b h s d
uabdlb   01000101ZZ0mmmmm001110nnnnnddddd  Zd.T=, Zn.N, Zm.N               h s d
uabdlt   01000101ZZ0mmmmm001111nnnnnddddd  Zd.T=, Zn.N, Zm.N               h s d
uaddlb   01000101ZZ0mmmmm000010nnnnnddddd  Zd.T=, Zn.N, Zm.N               h s d
uaddlt   01000101ZZ0mmmmm000011nnnnnddddd  Zd.T=, Zn.N, Zm.N               h s d
uaddwb   01000101ZZ0mmmmm010010nnnnnddddd  Zd.T=, Zn.T, Zm.N               h s d
uaddwt   01000101ZZ0mmmmm010011nnnnnddddd  Zd.T=, Zn.T, Zm.N               h s d
uhadd    01000100ZZ010001100gggnnnnnddddd  Zd.T+, Pg/m, Zd.T, Zn.T         b h s d
uhsub    01000100ZZ010011100gggnnnnnddddd  Zd.T+, Pg/m, Zd.T, Zn.T         b h s d
uhsubr   01000100ZZ010111100gggnnnnnddddd  Zd.T+, Pg/m, Zd.T, Zn.T         b h s d
umaxp    01000100ZZ010101101gggnnnnnddddd  Zd.T+, Pg/m, Zd.T, Zn.T         b h s d
uminp    01000100ZZ010111101gggnnnnnddddd  Zd.T+, Pg/m, Zd.T, Zn.T         b h s d
uqadd    01000100ZZ011001100gggnnnnnddddd  Zd.T+, Pg/m, Zd.T, Zn.T         b h s d
uqsub    01000100ZZ011011100gggnnnnnddddd  Zd.T+, Pg/m, Zd.T, Zn.T         b h s d
uqsubr   01000100ZZ011111100gggnnnnnddddd  Zd.T+, Pg/m, Zd.T, Zn.T         b h s d
urhadd   01000100ZZ010101100gggnnnnnddddd  Zd.T+, Pg/m, Zd.T, Zn.T         b h s d
usqadd   01000100ZZ011101100gggnnnnnddddd  Zd.T+, Pg/m, Zd.T, Zn.T         b h s d
usublb   01000101ZZ0mmmmm000110nnnnnddddd  Zd.T=, Zn.N, Zm.N               h s d
usublt   01000101ZZ0mmmmm000111nnnnnddddd  Zd.T=, Zn.N, Zm.N               h s d
usubwb   01000101ZZ0mmmmm010110nnnnnddddd  Zd.T=, Zn.T, Zm.N               h s d
usubwt   01000101ZZ0mmmmm010111nnnnnddddd  Zd.T=, Zn.T, Zm.N               h s d
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
cmla       01000100ZZ0mmmmm0010iinnnnnddddd  Zd.T+, Zn.T, Zm.T, #<i*90>       b h s d
cmla       01000100101iimmm0110jjnnnnnddddd  Zd.h+, Zn.h, Zm.h[<i>], #<j*90>
cmla       01000100111immmm0110jjnnnnnddddd  Zd.s+, Zn.s, Zm.s[<i>], #<j*90>
mla        010001000i1iimmm000010nnnnnddddd  Zd.h+, Zn.h, Zm.h[<i>]
mla        01000100101iimmm000010nnnnnddddd  Zd.s+, Zn.s, Zm.s[<i>]
mla        01000100111immmm000010nnnnnddddd  Zd.d+, Zn.d, Zm.d[<i>]
mls        010001000i1iimmm000011nnnnnddddd  Zd.h+, Zn.h, Zm.h[<i>]
mls        01000100101iimmm000011nnnnnddddd  Zd.s+, Zn.s, Zm.s[<i>]
mls        01000100111immmm000011nnnnnddddd  Zd.d+, Zn.d, Zm.d[<i>]
smlalb     01000100ZZ0mmmmm010000nnnnnddddd  Zd.T+, Zn.N, Zm.N                h s d
smlalb     01000100101iimmm1000i0nnnnnddddd  Zd.s+, Zn.h, Zm.h[<i>]
smlalb     01000100111immmm1000i0nnnnnddddd  Zd.d+, Zn.s, Zm.s[<i>]
smlalt     01000100ZZ0mmmmm010001nnnnnddddd  Zd.T+, Zn.N, Zm.N                h s d
smlalt     01000100101iimmm1000i1nnnnnddddd  Zd.s+, Zn.h, Zm.h[<i>]
smlalt     01000100111immmm1000i1nnnnnddddd  Zd.d+, Zn.s, Zm.s[<i>]
smlslb     01000100ZZ0mmmmm010100nnnnnddddd  Zd.T+, Zn.N, Zm.N                h s d
smlslb     01000100101iimmm1010i0nnnnnddddd  Zd.s+, Zn.h, Zm.h[<i>]
smlslb     01000100111immmm1010i0nnnnnddddd  Zd.d+, Zn.s, Zm.s[<i>]
smlslt     01000100ZZ0mmmmm010101nnnnnddddd  Zd.T+, Zn.N, Zm.N                h s d
smlslt     01000100101iimmm1010i1nnnnnddddd  Zd.s+, Zn.h, Zm.h[<i>]
smlslt     01000100111immmm1010i1nnnnnddddd  Zd.d+, Zn.s, Zm.s[<i>]
sqdmlalb   01000100ZZ0mmmmm011000nnnnnddddd  Zd.T+, Zn.N, Zm.N                h s d
sqdmlalb   01000100101iimmm0010i0nnnnnddddd  Zd.s+, Zn.h, Zm.h[<i>]
sqdmlalb   01000100111immmm0010i0nnnnnddddd  Zd.d+, Zn.s, Zm.s[<i>]
sqdmlalbt  01000100ZZ0mmmmm000010nnnnnddddd  Zd.T+, Zn.N, Zm.N                h s d
sqdmlalt   01000100ZZ0mmmmm011001nnnnnddddd  Zd.T+, Zn.N, Zm.N                h s d
sqdmlalt   01000100101iimmm0010i1nnnnnddddd  Zd.s+, Zn.h, Zm.h[<i>]
sqdmlalt   01000100111immmm0010i1nnnnnddddd  Zd.d+, Zn.s, Zm.s[<i>]
sqdmlslb   01000100ZZ0mmmmm011010nnnnnddddd  Zd.T+, Zn.N, Zm.N                h s d
sqdmlslb   01000100101iimmm0011i0nnnnnddddd  Zd.s+, Zn.h, Zm.h[<i>]
sqdmlslb   01000100111immmm0011i0nnnnnddddd  Zd.d+, Zn.s, Zm.s[<i>]
sqdmlslbt  01000100ZZ0mmmmm000011nnnnnddddd  Zd.T+, Zn.N, Zm.N                h s d
sqdmlslt   01000100ZZ0mmmmm011011nnnnnddddd  Zd.T+, Zn.N, Zm.N                h s d
sqdmlslt   01000100101iimmm0011i1nnnnnddddd  Zd.s+, Zn.h, Zm.h[<i>]
sqdmlslt   01000100111immmm0011i1nnnnnddddd  Zd.d+, Zn.s, Zm.s[<i>]
sqrdcmlah  01000100ZZ0mmmmm0011iinnnnnddddd  Zd.T+, Zn.T, Zm.T, #<i*90>       b h s d
sqrdcmlah  01000100101iimmm0111jjnnnnnddddd  Zd.h+, Zn.h, Zm.h[<i>], #<j*90>
sqrdcmlah  01000100111immmm0111jjnnnnnddddd  Zd.s+, Zn.s, Zm.s[<i>], #<j*90>
sqrdmlah   01000100ZZ0mmmmm011100nnnnnddddd  Zd.T+, Zn.T, Zm.T                b h s d
sqrdmlah   010001000i1iimmm000100nnnnnddddd  Zd.h+, Zn.h, Zm.h[<i>]
sqrdmlah   01000100101iimmm000100nnnnnddddd  Zd.s+, Zn.s, Zm.s[<i>]
sqrdmlah   01000100111immmm000100nnnnnddddd  Zd.d+, Zn.d, Zm.d[<i>]
sqrdmlsh   01000100ZZ0mmmmm011101nnnnnddddd  Zd.T+, Zn.T, Zm.T                b h s d
sqrdmlsh   010001000i1iimmm000101nnnnnddddd  Zd.h+, Zn.h, Zm.h[<i>]
sqrdmlsh   01000100101iimmm000101nnnnnddddd  Zd.s+, Zn.s, Zm.s[<i>]
sqrdmlsh   01000100111immmm000101nnnnnddddd  Zd.d+, Zn.d, Zm.d[<i>]
umlalb     01000100ZZ0mmmmm010010nnnnnddddd  Zd.T+, Zn.N, Zm.N                h s d
umlalb     01000100101iimmm1001i0nnnnnddddd  Zd.s+, Zn.h, Zm.h[<i>]
umlalb     01000100111immmm1001i0nnnnnddddd  Zd.d+, Zn.s, Zm.s[<i>]
umlalt     01000100ZZ0mmmmm010011nnnnnddddd  Zd.T+, Zn.N, Zm.N                h s d
umlalt     01000100101iimmm1001i1nnnnnddddd  Zd.s+, Zn.h, Zm.h[<i>]
umlalt     01000100111immmm1001i1nnnnnddddd  Zd.d+, Zn.s, Zm.s[<i>]
umlslb     01000100ZZ0mmmmm010110nnnnnddddd  Zd.T+, Zn.N, Zm.N                h s d
umlslb     01000100101iimmm1011i0nnnnnddddd  Zd.s+, Zn.h, Zm.h[<i>]
umlslb     01000100111immmm1011i0nnnnnddddd  Zd.d+, Zn.s, Zm.s[<i>]
umlslt     01000100ZZ0mmmmm010111nnnnnddddd  Zd.T+, Zn.N, Zm.N                h s d
umlslt     01000100101iimmm1011i1nnnnnddddd  Zd.s+, Zn.h, Zm.h[<i>]
umlslt     01000100111immmm1011i1nnnnnddddd  Zd.d+, Zn.s, Zm.s[<i>]
@ vec_mul sve2
mul       00000100ZZ1mmmmm011000nnnnnddddd  Zd.T=, Zn.T, Zm.T       b h s d
mul       010001000i1iimmm111110nnnnnddddd  Zd.h=, Zn.h, Zm.h[<i>]
mul       01000100101iimmm111110nnnnnddddd  Zd.s=, Zn.s, Zm.s[<i>]
mul       01000100111immmm111110nnnnnddddd  Zd.d=, Zn.d, Zm.d[<i>]
pmul      00000100001mmmmm011001nnnnnddddd  Zd.b=, Zn.b, Zm.b
pmullb    01000101ZZ0mmmmm011010nnnnnddddd  Zd.T=, Zn.N, Zm.N       h d
pmullt    01000101ZZ0mmmmm011011nnnnnddddd  Zd.T=, Zn.N, Zm.N       h d
smulh     00000100ZZ1mmmmm011010nnnnnddddd  Zd.T=, Zn.T, Zm.T       b h s d
smullb    01000101ZZ0mmmmm011100nnnnnddddd  Zd.T=, Zn.N, Zm.N       h s d
smullb    01000100101iimmm1100i0nnnnnddddd  Zd.s=, Zn.h, Zm.h[<i>]
smullb    01000100111immmm1100i0nnnnnddddd  Zd.d=, Zn.s, Zm.s[<i>]
smullt    01000101ZZ0mmmmm011101nnnnnddddd  Zd.T=, Zn.N, Zm.N       h s d
smullt    01000100101iimmm1100i1nnnnnddddd  Zd.s=, Zn.h, Zm.h[<i>]
smullt    01000100111immmm1100i1nnnnnddddd  Zd.d=, Zn.s, Zm.s[<i>]
sqdmulh   00000100ZZ1mmmmm011100nnnnnddddd  Zd.T=, Zn.T, Zm.T       b h s d
sqdmulh   010001000i1iimmm111100nnnnnddddd  Zd.h=, Zn.h, Zm.h[<i>]
sqdmulh   01000100101iimmm111100nnnnnddddd  Zd.s=, Zn.s, Zm.s[<i>]
sqdmulh   01000100111immmm111100nnnnnddddd  Zd.d=, Zn.d, Zm.d[<i>]
sqdmullb  01000101ZZ0mmmmm011000nnnnnddddd  Zd.T=, Zn.N, Zm.N       h s d
sqdmullb  01000100101iimmm1110i0nnnnnddddd  Zd.s=, Zn.h, Zm.h[<i>]
sqdmullb  01000100111immmm1110i0nnnnnddddd  Zd.d=, Zn.s, Zm.s[<i>]
sqdmullt  01000101ZZ0mmmmm011001nnnnnddddd  Zd.T=, Zn.N, Zm.N       h s d
sqdmullt  01000100101iimmm1110i1nnnnnddddd  Zd.s=, Zn.h, Zm.h[<i>]
sqdmullt  01000100111immmm1110i1nnnnnddddd  Zd.d=, Zn.s, Zm.s[<i>]
sqrdmulh  00000100ZZ1mmmmm011101nnnnnddddd  Zd.T=, Zn.T, Zm.T       b h s d
sqrdmulh  010001000i1iimmm111101nnnnnddddd  Zd.h=, Zn.h, Zm.h[<i>]
sqrdmulh  01000100101iimmm111101nnnnnddddd  Zd.s=, Zn.s, Zm.s[<i>]
sqrdmulh  01000100111immmm111101nnnnnddddd  Zd.d=, Zn.d, Zm.d[<i>]
umulh     00000100ZZ1mmmmm011011nnnnnddddd  Zd.T=, Zn.T, Zm.T       b h s d
umullb    01000101ZZ0mmmmm011110nnnnnddddd  Zd.T=, Zn.N, Zm.N       h s d
umullb    01000100101iimmm1101i0nnnnnddddd  Zd.s=, Zn.h, Zm.h[<i>]
umullb    01000100111immmm1101i0nnnnnddddd  Zd.d=, Zn.s, Zm.s[<i>]
umullt    01000101ZZ0mmmmm011111nnnnnddddd  Zd.T=, Zn.N, Zm.N       h s d
umullt    01000100101iimmm1101i1nnnnnddddd  Zd.s=, Zn.h, Zm.h[<i>]
umullt    01000100111immmm1101i1nnnnnddddd  Zd.d=, Zn.s, Zm.s[<i>]
@ vec_mul sve2-aes
pmullb  01000101000mmmmm011010nnnnnddddd  Zd.q=, Zn.d, Zm.d
pmullt  01000101000mmmmm011011nnnnnddddd  Zd.q=, Zn.d, Zm.d
@ vec_permute sve2
ext      00000101011iiiii000iiinnnnnddddd  Zd.b=, { Zn.b*2 }, #<i>
histcnt  010001011S1mmmmm110gggnnnnnddddd  Zd.T=, Pg/z, Zn.T, Zm.T  s d
histseg  01000101001mmmmm101000nnnnnddddd  Zd.b=, Zn.b, Zm.b
match    01000101ZZ1mmmmm100gggnnnnn0dddd  Pd.T=, Pg/z, Zn.T, Zm.T  b h
splice   00000101ZZ101101100gggnnnnnddddd  Zd.T=, Pg, { Zn.T*2 }    b h s d
@ vec_shift sve2
sli     01000101II0IIIII111101nnnnnddddd  Zd.T+, Zn.T, #<i>    b h s d
sri     01000101II0IIIII111100nnnnnddddd  Zd.T+, Zn.T, #<%-i>  b h s d
sshllb  010001010I0IIIII101000nnnnnddddd  Zd.U=, Zn.T, #<i>    b h s
sshllt  010001010I0IIIII101001nnnnnddddd  Zd.U=, Zn.T, #<i>    b h s
ushllb  010001010I0IIIII101010nnnnnddddd  Zd.U=, Zn.T, #<i>    b h s
ushllt  010001010I0IIIII101011nnnnnddddd  Zd.U=, Zn.T, #<i>    b h s
@ vec_shift_acc sve2
saba    01000101ZZ0mmmmm111110nnnnnddddd  Zd.T+, Zn.T, Zm.T    b h s d
sabalb  01000101ZZ0mmmmm110000nnnnnddddd  Zd.T+, Zn.N, Zm.N    h s d
sabalt  01000101ZZ0mmmmm110001nnnnnddddd  Zd.T+, Zn.N, Zm.N    h s d
sadalp  01000100ZZ000100101gggnnnnnddddd  Zd.T+, Pg/m, Zn.N    h s d
srsra   01000101II0IIIII111010nnnnnddddd  Zd.T+, Zn.T, #<%-i>  b h s d
ssra    01000101II0IIIII111000nnnnnddddd  Zd.T+, Zn.T, #<%-i>  b h s d
uaba    01000101ZZ0mmmmm111111nnnnnddddd  Zd.T+, Zn.T, Zm.T    b h s d
uabalb  01000101ZZ0mmmmm110010nnnnnddddd  Zd.T+, Zn.N, Zm.N    h s d
uabalt  01000101ZZ0mmmmm110011nnnnnddddd  Zd.T+, Zn.N, Zm.N    h s d
uadalp  01000100ZZ000101101gggnnnnnddddd  Zd.T+, Pg/m, Zn.N    h s d
ursra   01000101II0IIIII111011nnnnnddddd  Zd.T+, Zn.T, #<%-i>  b h s d
usra    01000101II0IIIII111001nnnnnddddd  Zd.T+, Zn.T, #<%-i>  b h s d
@ vec_shift_long sve2
rshrnb     010001010I1IIIII000110nnnnnddddd  Zd.T=, Zn.U, #<%-i>        b h s
rshrnt     010001010I1IIIII000111nnnnnddddd  Zd.T+, Zn.U, #<%-i>        b h s
shrnb      010001010I1IIIII000100nnnnnddddd  Zd.T=, Zn.U, #<%-i>        b h s
shrnt      010001010I1IIIII000101nnnnnddddd  Zd.T+, Zn.U, #<%-i>        b h s
sqrshl     01000100ZZ001010100gggnnnnnddddd  Zd.T+, Pg/m, Zd.T, Zn.T    b h s d
sqrshlr    01000100ZZ001110100gggnnnnnddddd  Zd.T+, Pg/m, Zd.T, Zn.T    b h s d
sqrshrnb   010001010I1IIIII001010nnnnnddddd  Zd.T=, Zn.U, #<%-i>        b h s
sqrshrnt   010001010I1IIIII001011nnnnnddddd  Zd.T+, Zn.U, #<%-i>        b h s
sqrshrunb  010001010I1IIIII000010nnnnnddddd  Zd.T=, Zn.U, #<%-i>        b h s
sqrshrunt  010001010I1IIIII000011nnnnnddddd  Zd.T+, Zn.U, #<%-i>        b h s
sqshl      00000100II000110100gggIIIIIddddd  Zd.T+, Pg/m, Zd.T, #<i>    b h s d
sqshl      01000100ZZ001000100gggnnnnnddddd  Zd.T+, Pg/m, Zd.T, Zn.T    b h s d
sqshlr     01000100ZZ001100100gggnnnnnddddd  Zd.T+, Pg/m, Zd.T, Zn.T    b h s d
sqshlu     00000100II001111100gggIIIIIddddd  Zd.T+, Pg/m, Zd.T, #<i>    b h s d
sqshrnb    010001010I1IIIII001000nnnnnddddd  Zd.T=, Zn.U, #<%-i>        b h s
sqshrnt    010001010I1IIIII001001nnnnnddddd  Zd.T+, Zn.U, #<%-i>        b h s
sqshrunb   010001010I1IIIII000000nnnnnddddd  Zd.T=, Zn.U, #<%-i>        b h s
sqshrunt   010001010I1IIIII000001nnnnnddddd  Zd.T+, Zn.U, #<%-i>        b h s
sqxtnb     0100010100101000010000nnnnnddddd  Zd.b=, Zn.h
sqxtnb     0100010100110000010000nnnnnddddd  Zd.h=, Zn.s
sqxtnb     0100010101100000010000nnnnnddddd  Zd.s=, Zn.d
sqxtnt     0100010100101000010001nnnnnddddd  Zd.b+, Zn.h
sqxtnt     0100010100110000010001nnnnnddddd  Zd.h+, Zn.s
sqxtnt     0100010101100000010001nnnnnddddd  Zd.s+, Zn.d
sqxtunb    0100010100101000010100nnnnnddddd  Zd.b=, Zn.h
sqxtunb    0100010100110000010100nnnnnddddd  Zd.h=, Zn.s
sqxtunb    0100010101100000010100nnnnnddddd  Zd.s=, Zn.d
sqxtunt    0100010100101000010101nnnnnddddd  Zd.b+, Zn.h
sqxtunt    0100010100110000010101nnnnnddddd  Zd.h+, Zn.s
sqxtunt    0100010101100000010101nnnnnddddd  Zd.s+, Zn.d
srshl      01000100ZZ000010100gggnnnnnddddd  Zd.T+, Pg/m, Zd.T, Zn.T    b h s d
srshlr     01000100ZZ000110100gggnnnnnddddd  Zd.T+, Pg/m, Zd.T, Zn.T    b h s d
srshr      00000100II001100100gggIIIIIddddd  Zd.T+, Pg/m, Zd.T, #<%-i>  b h s d
uqrshl     01000100ZZ001011100gggnnnnnddddd  Zd.T+, Pg/m, Zd.T, Zn.T    b h s d
uqrshlr    01000100ZZ001111100gggnnnnnddddd  Zd.T+, Pg/m, Zd.T, Zn.T    b h s d
uqrshrnb   010001010I1IIIII001110nnnnnddddd  Zd.T=, Zn.U, #<%-i>        b h s
uqrshrnt   010001010I1IIIII001111nnnnnddddd  Zd.T+, Zn.U, #<%-i>        b h s
uqshl      00000100II000111100gggIIIIIddddd  Zd.T+, Pg/m, Zd.T, #<i>    b h s d
uqshl      01000100ZZ001001100gggnnnnnddddd  Zd.T+, Pg/m, Zd.T, Zn.T    b h s d
uqshlr     01000100ZZ001101100gggnnnnnddddd  Zd.T+, Pg/m, Zd.T, Zn.T    b h s d
uqshrnb    010001010I1IIIII001100nnnnnddddd  Zd.T=, Zn.U, #<%-i>        b h s
uqshrnt    010001010I1IIIII001101nnnnnddddd  Zd.T+, Zn.U, #<%-i>        b h s
uqxtnb     0100010100101000010010nnnnnddddd  Zd.b=, Zn.h
uqxtnb     0100010100110000010010nnnnnddddd  Zd.h=, Zn.s
uqxtnb     0100010101100000010010nnnnnddddd  Zd.s=, Zn.d
uqxtnt     0100010100101000010011nnnnnddddd  Zd.b+, Zn.h
uqxtnt     0100010100110000010011nnnnnddddd  Zd.h+, Zn.s
uqxtnt     0100010101100000010011nnnnnddddd  Zd.s+, Zn.d
urshl      01000100ZZ000011100gggnnnnnddddd  Zd.T+, Pg/m, Zd.T, Zn.T    b h s d
urshlr     01000100ZZ000111100gggnnnnnddddd  Zd.T+, Pg/m, Zd.T, Zn.T    b h s d
urshr      00000100II001101100gggIIIIIddddd  Zd.T+, Pg/m, Zd.T, #<%-i>  b h s d
@ vec_table sve2
tbl  00000101ZZ1mmmmm001010nnnnnddddd  Zd.T=, { Zn.T*2 }, Zm.T  b h s d
tbx  00000101ZZ1mmmmm001011nnnnnddddd  Zd.T+, Zn.T, Zm.T        b h s d
"""
