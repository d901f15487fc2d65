"""The AArch64 rows of scalar floating point and scalar AdvSIMD, in the notation of table.py.

Source: Arm Architecture Reference Manual, DDI 0487, chapter C7.
"""
from __future__ import annotations

TEXT = """
@ vec_permute base
dup  01011110000JJJJJ000001nnnnnddddd  Fd=, Vn.E[<j>]  b h s d  unseen
@ fp_add base
fabd  011111101S1mmmmm110101nnnnnddddd  Fd=, Fn, Fm  s d
fadd  00011110YY1mmmmm001010nnnnnddddd  Fd=, Fn, Fm  h s d
fsub  00011110YY1mmmmm001110nnnnnddddd  Fd=, Fn, Fm  h s d
@ fp_add fullfp16
fabd  01111110110mmmmm000101nnnnnddddd  Hd=, Hn, Hm
@ fp_compare base
facge  011111100S1mmmmm111011nnnnnddddd  Fd=, Fn, Fm    s d
facgt  011111101S1mmmmm111011nnnnnddddd  Fd=, Fn, Fm    s d
fcmeq  010111100S1mmmmm111001nnnnnddddd  Fd=, Fn, Fm    s d
fcmeq  010111101S100000110110nnnnnddddd  Fd=, Fn, #0.0  s d
fcmge  011111100S1mmmmm111001nnnnnddddd  Fd=, Fn, Fm    s d
fcmge  011111101S100000110010nnnnnddddd  Fd=, Fn, #0.0  s d
fcmgt  011111101S1mmmmm111001nnnnnddddd  Fd=, Fn, Fm    s d
fcmgt  010111101S100000110010nnnnnddddd  Fd=, Fn, #0.0  s d
fcmle  011111101S100000110110nnnnnddddd  Fd=, Fn, #0.0  s d
fcmlt  010111101S100000111010nnnnnddddd  Fd=, Fn, #0.0  s d
@ fp_compare fullfp16
facge  01111110010mmmmm001011nnnnnddddd  Hd=, Hn, Hm
facgt  01111110110mmmmm001011nnnnnddddd  Hd=, Hn, Hm
fcmeq  01011110010mmmmm001001nnnnnddddd  Hd=, Hn, Hm
fcmeq  0101111011111000110110nnnnnddddd  Hd=, Hn, #0.0
fcmge  01111110010mmmmm001001nnnnnddddd  Hd=, Hn, Hm
fcmge  0111111011111000110010nnnnnddddd  Hd=, Hn, #0.0
fcmgt  01111110110mmmmm001001nnnnnddddd  Hd=, Hn, Hm
fcmgt  0101111011111000110010nnnnnddddd  Hd=, Hn, #0.0
fcmle  0111111011111000110110nnnnnddddd  Hd=, Hn, #0.0
fcmlt  0101111011111000111010nnnnnddddd  Hd=, Hn, #0.0
@ fp_convert base
fcvt       0001111000100010110000nnnnnddddd  Dd=, Sn          s
fcvt       0001111000100011110000nnnnnddddd  Hd=, Sn          h
fcvt       0001111001100010010000nnnnnddddd  Sd=, Dn          s
fcvt       0001111001100011110000nnnnnddddd  Hd=, Dn          h
fcvt       0001111011100010010000nnnnnddddd  Sd=, Hn          h
fcvt       0001111011100010110000nnnnnddddd  Dd=, Hn          h
fcvta[su]  01M111100S100001110010nnnnnddddd  Fd=, Fn          s d
fcvtm[su]  01M111100S100001101110nnnnnddddd  Fd=, Fn          s d
fcvtn[su]  01M111100S100001101010nnnnnddddd  Fd=, Fn          s d
fcvtp[su]  01M111101S100001101010nnnnnddddd  Fd=, Fn          s d
fcvtxn     0111111001100001011010nnnnnddddd  Sd=, Dn          s
fcvtz[su]  01M111101S100001101110nnnnnddddd  Fd=, Fn          s d
fcvtz[su]  01M111110IIIIIII111111nnnnnddddd  Fd=, Fn, #<%-i>  s d
[su]cvtf   01M111100S100001110110nnnnnddddd  Fd=, Fn          s d
[su]cvtf   01M111110IIIIIII111001nnnnnddddd  Fd=, Fn, #<%-i>  s d
@ fp_convert bf16
bfcvt  0001111001100011010000nnnnnddddd  Hd=, Sn  h
@ fp_convert fullfp16
fcvta[su]  01M1111001111001110010nnnnnddddd  Hd=, Hn
fcvtm[su]  01M1111001111001101110nnnnnddddd  Hd=, Hn
fcvtn[su]  01M1111001111001101010nnnnnddddd  Hd=, Hn
fcvtp[su]  01M1111011111001101010nnnnnddddd  Hd=, Hn
fcvtz[su]  01M1111011111001101110nnnnnddddd  Hd=, Hn
fcvtz[su]  01M111110001iiii111111nnnnnddddd  Hd=, Hn, #<16-i>
[su]cvtf   01M1111001111001110110nnnnnddddd  Hd=, Hn
[su]cvtf   01M111110001iiii111001nnnnnddddd  Hd=, Hn, #<16-i>
@ fp_div base
fdiv  00011110YY1mmmmm000110nnnnnddddd  Fd=, Fn, Fm  h s d
@ fp_estimate base
frecpe   010111101S100001110110nnnnnddddd  Fd=, Fn  s d
frecpx   010111101S100001111110nnnnnddddd  Fd=, Fn  s d
frsqrte  011111101S100001110110nnnnnddddd  Fd=, Fn  s d
@ fp_estimate fullfp16
frecpe   0101111011111001110110nnnnnddddd  Hd=, Hn
frecpx   0101111011111001111110nnnnnddddd  Hd=, Hn
frsqrte  0111111011111001110110nnnnnddddd  Hd=, Hn
@ fp_flags base
fccmp   00011110YY1mmmmmiiii01nnnnn0jjjj  Fn, Fm, #<j>, <cond:i>  h s d  wf rf
fccmpe  00011110YY1mmmmmiiii01nnnnn1jjjj  Fn, Fm, #<j>, <cond:i>  h s d  wf rf
fcmp    00011110YY1mmmmm001000nnnnn00000  Fn, Fm                  h s d  wf
fcmp    00011110YY100000001000nnnnn01000  Fn, #0.0                h s d  wf
fcmpe   00011110YY1mmmmm001000nnnnn10000  Fn, Fm                  h s d  wf
fcmpe   00011110YY100000001000nnnnn11000  Fn, #0.0                h s d  wf
@ fp_fma base
fmadd    00011111YY0mmmmm0aaaaannnnnddddd  Fd=, Fn, Fm, Fa      h s d
fml[as]  01011111110mmmmm0M01i0nnnnnddddd  Dd+, Dn, Vm.d[<i>]
fml[as]  0101111110lmmmmm0M01h0nnnnnddddd  Sd+, Sn, Vm.s[<hl>]
fmsub    00011111YY0mmmmm1aaaaannnnnddddd  Fd=, Fn, Fm, Fa      h s d
fnmadd   00011111YY1mmmmm0aaaaannnnnddddd  Fd=, Fn, Fm, Fa      h s d
fnmsub   00011111YY1mmmmm1aaaaannnnnddddd  Fd=, Fn, Fm, Fa      h s d
frecps   010111100S1mmmmm111111nnnnnddddd  Fd=, Fn, Fm          s d
frsqrts  010111101S1mmmmm111111nnnnnddddd  Fd=, Fn, Fm          s d
@ fp_fma fullfp16
fml[as]  0101111100llmmmm0M01h0nnnnnddddd  Hd+, Hn, Vm.h[<hl>]
frecps   01011110010mmmmm001111nnnnnddddd  Hd=, Hn, Hm
frsqrts  01011110110mmmmm001111nnnnnddddd  Hd=, Hn, Hm
@ fp_minmax base
fmax    00011110YY1mmmmm010010nnnnnddddd  Fd=, Fn, Fm  h s d
fmaxnm  00011110YY1mmmmm011010nnnnnddddd  Fd=, Fn, Fm  h s d
fmin    00011110YY1mmmmm010110nnnnnddddd  Fd=, Fn, Fm  h s d
fminnm  00011110YY1mmmmm011110nnnnnddddd  Fd=, Fn, Fm  h s d
@ fp_mul base
fmul   00011110YY1mmmmm000010nnnnnddddd  Fd=, Fn, Fm          h s d
fmul   01011111110mmmmm1001i0nnnnnddddd  Dd=, Dn, Vm.d[<i>]
fmul   0101111110lmmmmm1001h0nnnnnddddd  Sd=, Sn, Vm.s[<hl>]
fmulx  010111100S1mmmmm110111nnnnnddddd  Fd=, Fn, Fm          s d
fmulx  01111111110mmmmm1001i0nnnnnddddd  Dd=, Dn, Vm.d[<i>]
fmulx  0111111110lmmmmm1001h0nnnnnddddd  Sd=, Sn, Vm.s[<hl>]
fnmul  00011110YY1mmmmm100010nnnnnddddd  Fd=, Fn, Fm          h s d
@ fp_mul fullfp16
fmul   0101111100llmmmm1001h0nnnnnddddd  Hd=, Hn, Vm.h[<hl>]
fmulx  01011110010mmmmm000111nnnnnddddd  Hd=, Hn, Hm
fmulx  0111111100llmmmm1001h0nnnnnddddd  Hd=, Hn, Vm.h[<hl>]
@ fp_round base
frinta  00011110YY100110010000nnnnnddddd  Fd=, Fn  h s d
frinti  00011110YY100111110000nnnnnddddd  Fd=, Fn  h s d
frintm  00011110YY100101010000nnnnnddddd  Fd=, Fn  h s d
frintn  00011110YY100100010000nnnnnddddd  Fd=, Fn  h s d
frintp  00011110YY100100110000nnnnnddddd  Fd=, Fn  h s d
frintx  00011110YY100111010000nnnnnddddd  Fd=, Fn  h s d
frintz  00011110YY100101110000nnnnnddddd  Fd=, Fn  h s d
@ fp_round fptoint
frint32x  000111100S101000110000nnnnnddddd  Fd=, Fn  s d
frint32z  000111100S101000010000nnnnnddddd  Fd=, Fn  s d
frint64x  000111100S101001110000nnnnnddddd  Fd=, Fn  s d
frint64z  000111100S101001010000nnnnnddddd  Fd=, Fn  s d
@ fp_select base
fcsel  00011110YY1mmmmmiiii11nnnnnddddd  Fd=, Fn, Fm, <cond:i>  h s d  rf
@ fp_sign base
fabs  00011110YY100000110000nnnnnddddd  Fd=, Fn  h s d
fneg  00011110YY100001010000nnnnnddddd  Fd=, Fn  h s d
@ fp_sqrt base
fsqrt  00011110YY100001110000nnnnnddddd  Fd=, Fn  h s d
@ fp_to_int base
fcvta[su]  00011110YY10010M000000nnnnnddddd  Wd=, Fn           h s d
fcvta[su]  10011110YY10010M000000nnnnnddddd  Xd=, Fn           h s d
fcvtm[su]  00011110YY11000M000000nnnnnddddd  Wd=, Fn           h s d
fcvtm[su]  10011110YY11000M000000nnnnnddddd  Xd=, Fn           h s d
fcvtn[su]  00011110YY10000M000000nnnnnddddd  Wd=, Fn           h s d
fcvtn[su]  10011110YY10000M000000nnnnnddddd  Xd=, Fn           h s d
fcvtp[su]  00011110YY10100M000000nnnnnddddd  Wd=, Fn           h s d
fcvtp[su]  10011110YY10100M000000nnnnnddddd  Xd=, Fn           h s d
fcvtz[su]  00011110YY11100M000000nnnnnddddd  Wd=, Fn           h s d
fcvtz[su]  10011110YY11100M000000nnnnnddddd  Xd=, Fn           h s d
fcvtz[su]  000111100001100M1iiiiinnnnnddddd  Wd=, Sn, #<32-i>
fcvtz[su]  00011110YY01100M1iiiiinnnnnddddd  Wd=, Fn, #<32-i>  h d
fcvtz[su]  100111100101100Miiiiiinnnnnddddd  Xd=, Dn, #<64-i>
fcvtz[su]  10011110YY01100Miiiiiinnnnnddddd  Xd=, Fn, #<64-i>  h s
@ fp_to_int jsconv
fjcvtzs  0001111001111110000000nnnnnddddd  Wd=, Dn
@ int_to_fp base
[su]cvtf  00011110YY10001M000000nnnnnddddd  Fd=, Wn           h s d
[su]cvtf  10011110YY10001M000000nnnnnddddd  Fd=, Xn           h s d
[su]cvtf  000111100000001M1iiiiinnnnnddddd  Sd=, Wn, #<32-i>
[su]cvtf  00011110YY00001M1iiiiinnnnnddddd  Fd=, Wn, #<32-i>  h d
[su]cvtf  100111100100001Miiiiiinnnnnddddd  Dd=, Xn, #<64-i>
[su]cvtf  10011110YY00001Miiiiiinnnnnddddd  Fd=, Xn, #<64-i>  h s
@ int_to_vec base
fmov  00011110YY100111000000nnnnnddddd  Fd=, Wn         h s
fmov  10011110YY100111000000nnnnnddddd  Fd=, Xn         h d
fmov  1001111010101111000000nnnnnddddd  Vd.d=[1], Xn
ins   01001110000JJJJJ000111nnnnnddddd  Vd.E+[<j>], Wn  b h s
ins   01001110000i1000000111nnnnnddddd  Vd.d+[<i>], Xn
@ vec_alu base
abs       0101111011100000101110nnnnnddddd  Dd=, Dn
add       01011110111mmmmm100001nnnnnddddd  Dd=, Dn, Dm
neg       0111111011100000101110nnnnnddddd  Dd=, Dn
sqabs     01011110ZZ100000011110nnnnnddddd  Fd=, Fn      b h s d
[su]qadd  01M11110ZZ1mmmmm000011nnnnnddddd  Fd=, Fn, Fm  b h s d
sqneg     01111110ZZ100000011110nnnnnddddd  Fd=, Fn      b h s d
[su]qsub  01M11110ZZ1mmmmm001011nnnnnddddd  Fd=, Fn, Fm  b h s d
sub       01111110111mmmmm100001nnnnnddddd  Dd=, Dn, Dm
suqadd    01011110ZZ100000001110nnnnnddddd  Fd+, Fn      b h s d
usqadd    01111110ZZ100000001110nnnnnddddd  Fd+, Fn      b h s d
@ vec_compare base
cmeq   0101111011100000100110nnnnnddddd  Dd=, Dn, #0
cmeq   01111110111mmmmm100011nnnnnddddd  Dd=, Dn, Dm
cmge   01011110111mmmmm001111nnnnnddddd  Dd=, Dn, Dm
cmge   0111111011100000100010nnnnnddddd  Dd=, Dn, #0
cmgt   0101111011100000100010nnnnnddddd  Dd=, Dn, #0
cmgt   01011110111mmmmm001101nnnnnddddd  Dd=, Dn, Dm
cmhi   01111110111mmmmm001101nnnnnddddd  Dd=, Dn, Dm
cmhs   01111110111mmmmm001111nnnnnddddd  Dd=, Dn, Dm
cmle   0111111011100000100110nnnnnddddd  Dd=, Dn, #0
cmlt   0101111011100000101010nnnnnddddd  Dd=, Dn, #0
cmtst  01011110111mmmmm100011nnnnnddddd  Dd=, Dn, Dm
@ vec_mla base
sqdml[as]l  01011110011mmmmm10M100nnnnnddddd  Sd+, Hn, Hm          h
sqdml[as]l  01011110101mmmmm10M100nnnnnddddd  Dd+, Sn, Sm          s
sqdml[as]l  0101111101llmmmm0M11h0nnnnnddddd  Sd+, Hn, Vm.h[<hl>]
sqdml[as]l  0101111110lmmmmm0M11h0nnnnnddddd  Dd+, Sn, Vm.s[<hl>]
@ vec_mla rdm
sqrdml[as]h  01111110ZZ0mmmmm1000M1nnnnnddddd  Fd+, Fn, Fm          h s
sqrdml[as]h  0111111101llmmmm11M1h0nnnnnddddd  Hd+, Hn, Vm.h[<hl>]
sqrdml[as]h  0111111110lmmmmm11M1h0nnnnnddddd  Sd+, Sn, Vm.s[<hl>]
@ vec_mov base
fmov  00011110YY100000010000nnnnnddddd  Fd=, Fn                h s d
fmov  00011110YY1iiiiiiii10000000ddddd  Fd=, #<float:i>        h s d
ins   01101110000i10000j0001nnnnnddddd  Vd.d+[<i>], Vn.d[<j>]
ins   01101110000ii1000jj001nnnnnddddd  Vd.s+[<i>], Vn.s[<j>]
ins   01101110000iii100jjj01nnnnnddddd  Vd.h+[<i>], Vn.h[<j>]
ins   01101110000iiii10jjjj1nnnnnddddd  Vd.b+[<i>], Vn.b[<j>]
mov   01011110000JJJJJ000001nnnnnddddd  Fd=, Vn.E[<j>]         b h s d
@ vec_mul base
sqdmulh   01011110ZZ1mmmmm101101nnnnnddddd  Fd=, Fn, Fm          h s
sqdmulh   0101111101llmmmm1100h0nnnnnddddd  Hd=, Hn, Vm.h[<hl>]
sqdmulh   0101111110lmmmmm1100h0nnnnnddddd  Sd=, Sn, Vm.s[<hl>]
sqdmull   01011110011mmmmm110100nnnnnddddd  Sd=, Hn, Hm          h
sqdmull   01011110101mmmmm110100nnnnnddddd  Dd=, Sn, Sm          s
sqdmull   0101111101llmmmm1011h0nnnnnddddd  Sd=, Hn, Vm.h[<hl>]
sqdmull   0101111110lmmmmm1011h0nnnnnddddd  Dd=, Sn, Vm.s[<hl>]
sqrdmulh  01111110ZZ1mmmmm101101nnnnnddddd  Fd=, Fn, Fm          h s
sqrdmulh  0101111101llmmmm1101h0nnnnnddddd  Hd=, Hn, Vm.h[<hl>]
sqrdmulh  0101111110lmmmmm1101h0nnnnnddddd  Sd=, Sn, Vm.s[<hl>]
@ vec_shift base
shl      0101111101iiiiii010101nnnnnddddd  Dd=, Dn, #<i>
sli      0111111101iiiiii010101nnnnnddddd  Dd+, Dn, #<i>
sri      0111111101iiiiii010001nnnnnddddd  Dd+, Dn, #<64-i>
[su]shl  01M11110111mmmmm010001nnnnnddddd  Dd=, Dn, Dm
[su]shr  01M1111101iiiiii000001nnnnnddddd  Dd=, Dn, #<64-i>
@ vec_shift_acc base
[su]rsra  01M1111101iiiiii001101nnnnnddddd  Dd+, Dn, #<64-i>
[su]sra   01M1111101iiiiii000101nnnnnddddd  Dd+, Dn, #<64-i>
@ vec_shift_long base
[su]qrshl   01M11110ZZ1mmmmm010111nnnnnddddd  Fd=, Fn, Fm       b h s d
[su]qrshrn  01M111110IIIIIII100111nnnnnddddd  Fd=, Gn, #<%-i>   b h s
sqrshrun    011111110IIIIIII100011nnnnnddddd  Fd=, Gn, #<%-i>   b h s
[su]qshl    01M11110ZZ1mmmmm010011nnnnnddddd  Fd=, Fn, Fm       b h s d
[su]qshl    01M111110IIIIIII011101nnnnnddddd  Fd=, Fn, #<i>     b h s d
sqshlu      011111110IIIIIII011001nnnnnddddd  Fd=, Fn, #<i>     b h s d
[su]qshrn   01M111110IIIIIII100101nnnnnddddd  Fd=, Gn, #<%-i>   b h s
sqshrun     011111110IIIIIII100001nnnnnddddd  Fd=, Gn, #<%-i>   b h s
[su]qxtn    01M11110ZZ100001010010nnnnnddddd  Fd=, Gn           b h s
sqxtun      01111110ZZ100001001010nnnnnddddd  Fd=, Gn           b h s
[su]rshl    01M11110111mmmmm010101nnnnnddddd  Dd=, Dn, Dm
[su]rshr    01M1111101iiiiii001001nnnnnddddd  Dd=, Dn, #<64-i>
@ vec_to_int base
fmov  00011110YY100110000000nnnnnddddd  Wd=, Fn         h s
fmov  10011110YY100110000000nnnnnddddd  Xd=, Fn         h d
fmov  1001111010101110000000nnnnnddddd  Xd=, Vn.d[1]
smov  00001110000JJJJJ001011nnnnnddddd  Wd=, Vn.E[<j>]  b h
smov  01001110000JJJJJ001011nnnnnddddd  Xd=, Vn.E[<j>]  b h s
umov  00001110000JJJJJ001111nnnnnddddd  Wd=, Vn.E[<j>]  b h s
"""
