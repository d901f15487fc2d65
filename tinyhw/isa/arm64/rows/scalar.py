"""The AArch64 rows of scalar floating point and scalar AdvSIMD, in the notation of table.py.

Source: Arm Architecture Reference Manual, DDI 0487, chapter C7.
"""
from __future__ import annotations

TEXT = """
@ vec_permute base
dup    01011110000JJJJJ000001nnnnnddddd  Fd=, Vn.E[<j>]                        b h s d  unseen
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
fcvt    0001111000100010110000nnnnnddddd  Dd=, Sn          s
fcvt    0001111000100011110000nnnnnddddd  Hd=, Sn          h
fcvt    0001111001100010010000nnnnnddddd  Sd=, Dn          s
fcvt    0001111001100011110000nnnnnddddd  Hd=, Dn          h
fcvt    0001111011100010010000nnnnnddddd  Sd=, Hn          h
fcvt    0001111011100010110000nnnnnddddd  Dd=, Hn          h
fcvtas  010111100S100001110010nnnnnddddd  Fd=, Fn          s d
fcvtau  011111100S100001110010nnnnnddddd  Fd=, Fn          s d
fcvtms  010111100S100001101110nnnnnddddd  Fd=, Fn          s d
fcvtmu  011111100S100001101110nnnnnddddd  Fd=, Fn          s d
fcvtns  010111100S100001101010nnnnnddddd  Fd=, Fn          s d
fcvtnu  011111100S100001101010nnnnnddddd  Fd=, Fn          s d
fcvtps  010111101S100001101010nnnnnddddd  Fd=, Fn          s d
fcvtpu  011111101S100001101010nnnnnddddd  Fd=, Fn          s d
fcvtxn  0111111001100001011010nnnnnddddd  Sd=, Dn          s
fcvtzs  010111101S100001101110nnnnnddddd  Fd=, Fn          s d
fcvtzs  010111110IIIIIII111111nnnnnddddd  Fd=, Fn, #<%-i>  s d
fcvtzu  011111101S100001101110nnnnnddddd  Fd=, Fn          s d
fcvtzu  011111110IIIIIII111111nnnnnddddd  Fd=, Fn, #<%-i>  s d
scvtf   010111100S100001110110nnnnnddddd  Fd=, Fn          s d
scvtf   010111110IIIIIII111001nnnnnddddd  Fd=, Fn, #<%-i>  s d
ucvtf   011111100S100001110110nnnnnddddd  Fd=, Fn          s d
ucvtf   011111110IIIIIII111001nnnnnddddd  Fd=, Fn, #<%-i>  s d
@ fp_convert bf16
bfcvt  0001111001100011010000nnnnnddddd  Hd=, Sn  h
@ fp_convert fullfp16
fcvtas  0101111001111001110010nnnnnddddd  Hd=, Hn
fcvtau  0111111001111001110010nnnnnddddd  Hd=, Hn
fcvtms  0101111001111001101110nnnnnddddd  Hd=, Hn
fcvtmu  0111111001111001101110nnnnnddddd  Hd=, Hn
fcvtns  0101111001111001101010nnnnnddddd  Hd=, Hn
fcvtnu  0111111001111001101010nnnnnddddd  Hd=, Hn
fcvtps  0101111011111001101010nnnnnddddd  Hd=, Hn
fcvtpu  0111111011111001101010nnnnnddddd  Hd=, Hn
fcvtzs  0101111011111001101110nnnnnddddd  Hd=, Hn
fcvtzs  010111110001iiii111111nnnnnddddd  Hd=, Hn, #<16-i>
fcvtzu  0111111011111001101110nnnnnddddd  Hd=, Hn
fcvtzu  011111110001iiii111111nnnnnddddd  Hd=, Hn, #<16-i>
scvtf   0101111001111001110110nnnnnddddd  Hd=, Hn
scvtf   010111110001iiii111001nnnnnddddd  Hd=, Hn, #<16-i>
ucvtf   0111111001111001110110nnnnnddddd  Hd=, Hn
ucvtf   011111110001iiii111001nnnnnddddd  Hd=, Hn, #<16-i>
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
fmla     01011111110mmmmm0001i0nnnnnddddd  Dd+, Dn, Vm.d[<i>]
fmla     0101111110lmmmmm0001h0nnnnnddddd  Sd+, Sn, Vm.s[<hl>]
fmls     01011111110mmmmm0101i0nnnnnddddd  Dd+, Dn, Vm.d[<i>]
fmls     0101111110lmmmmm0101h0nnnnnddddd  Sd+, Sn, Vm.s[<hl>]
fmsub    00011111YY0mmmmm1aaaaannnnnddddd  Fd=, Fn, Fm, Fa      h s d
fnmadd   00011111YY1mmmmm0aaaaannnnnddddd  Fd=, Fn, Fm, Fa      h s d
fnmsub   00011111YY1mmmmm1aaaaannnnnddddd  Fd=, Fn, Fm, Fa      h s d
frecps   010111100S1mmmmm111111nnnnnddddd  Fd=, Fn, Fm          s d
frsqrts  010111101S1mmmmm111111nnnnnddddd  Fd=, Fn, Fm          s d
@ fp_fma fullfp16
fmla     0101111100llmmmm0001h0nnnnnddddd  Hd+, Hn, Vm.h[<hl>]
fmls     0101111100llmmmm0101h0nnnnnddddd  Hd+, Hn, Vm.h[<hl>]
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
fcvtas  00011110YY100100000000nnnnnddddd  Wd=, Fn           h s d
fcvtas  10011110YY100100000000nnnnnddddd  Xd=, Fn           h s d
fcvtau  00011110YY100101000000nnnnnddddd  Wd=, Fn           h s d
fcvtau  10011110YY100101000000nnnnnddddd  Xd=, Fn           h s d
fcvtms  00011110YY110000000000nnnnnddddd  Wd=, Fn           h s d
fcvtms  10011110YY110000000000nnnnnddddd  Xd=, Fn           h s d
fcvtmu  00011110YY110001000000nnnnnddddd  Wd=, Fn           h s d
fcvtmu  10011110YY110001000000nnnnnddddd  Xd=, Fn           h s d
fcvtns  00011110YY100000000000nnnnnddddd  Wd=, Fn           h s d
fcvtns  10011110YY100000000000nnnnnddddd  Xd=, Fn           h s d
fcvtnu  00011110YY100001000000nnnnnddddd  Wd=, Fn           h s d
fcvtnu  10011110YY100001000000nnnnnddddd  Xd=, Fn           h s d
fcvtps  00011110YY101000000000nnnnnddddd  Wd=, Fn           h s d
fcvtps  10011110YY101000000000nnnnnddddd  Xd=, Fn           h s d
fcvtpu  00011110YY101001000000nnnnnddddd  Wd=, Fn           h s d
fcvtpu  10011110YY101001000000nnnnnddddd  Xd=, Fn           h s d
fcvtzs  00011110YY111000000000nnnnnddddd  Wd=, Fn           h s d
fcvtzs  10011110YY111000000000nnnnnddddd  Xd=, Fn           h s d
fcvtzs  00011110000110001iiiiinnnnnddddd  Wd=, Sn, #<32-i>
fcvtzs  00011110YY0110001iiiiinnnnnddddd  Wd=, Fn, #<32-i>  h d
fcvtzs  1001111001011000iiiiiinnnnnddddd  Xd=, Dn, #<64-i>
fcvtzs  10011110YY011000iiiiiinnnnnddddd  Xd=, Fn, #<64-i>  h s
fcvtzu  00011110YY111001000000nnnnnddddd  Wd=, Fn           h s d
fcvtzu  10011110YY111001000000nnnnnddddd  Xd=, Fn           h s d
fcvtzu  00011110000110011iiiiinnnnnddddd  Wd=, Sn, #<32-i>
fcvtzu  00011110YY0110011iiiiinnnnnddddd  Wd=, Fn, #<32-i>  h d
fcvtzu  1001111001011001iiiiiinnnnnddddd  Xd=, Dn, #<64-i>
fcvtzu  10011110YY011001iiiiiinnnnnddddd  Xd=, Fn, #<64-i>  h s
@ fp_to_int jsconv
fjcvtzs  0001111001111110000000nnnnnddddd  Wd=, Dn
@ int_to_fp base
scvtf  00011110YY100010000000nnnnnddddd  Fd=, Wn           h s d
scvtf  10011110YY100010000000nnnnnddddd  Fd=, Xn           h s d
scvtf  00011110000000101iiiiinnnnnddddd  Sd=, Wn, #<32-i>
scvtf  00011110YY0000101iiiiinnnnnddddd  Fd=, Wn, #<32-i>  h d
scvtf  1001111001000010iiiiiinnnnnddddd  Dd=, Xn, #<64-i>
scvtf  10011110YY000010iiiiiinnnnnddddd  Fd=, Xn, #<64-i>  h s
ucvtf  00011110YY100011000000nnnnnddddd  Fd=, Wn           h s d
ucvtf  10011110YY100011000000nnnnnddddd  Fd=, Xn           h s d
ucvtf  00011110000000111iiiiinnnnnddddd  Sd=, Wn, #<32-i>
ucvtf  00011110YY0000111iiiiinnnnnddddd  Fd=, Wn, #<32-i>  h d
ucvtf  1001111001000011iiiiiinnnnnddddd  Dd=, Xn, #<64-i>
ucvtf  10011110YY000011iiiiiinnnnnddddd  Fd=, Xn, #<64-i>  h s
@ int_to_vec base
fmov  00011110YY100111000000nnnnnddddd  Fd=, Wn         h s
fmov  10011110YY100111000000nnnnnddddd  Fd=, Xn         h d
fmov  1001111010101111000000nnnnnddddd  Vd.d=[1], Xn
ins   01001110000JJJJJ000111nnnnnddddd  Vd.E+[<j>], Wn  b h s
ins   01001110000i1000000111nnnnnddddd  Vd.d+[<i>], Xn
@ vec_alu base
abs     0101111011100000101110nnnnnddddd  Dd=, Dn
add     01011110111mmmmm100001nnnnnddddd  Dd=, Dn, Dm
neg     0111111011100000101110nnnnnddddd  Dd=, Dn
sqabs   01011110ZZ100000011110nnnnnddddd  Fd=, Fn      b h s d
sqadd   01011110ZZ1mmmmm000011nnnnnddddd  Fd=, Fn, Fm  b h s d
sqneg   01111110ZZ100000011110nnnnnddddd  Fd=, Fn      b h s d
sqsub   01011110ZZ1mmmmm001011nnnnnddddd  Fd=, Fn, Fm  b h s d
sub     01111110111mmmmm100001nnnnnddddd  Dd=, Dn, Dm
suqadd  01011110ZZ100000001110nnnnnddddd  Fd+, Fn      b h s d
uqadd   01111110ZZ1mmmmm000011nnnnnddddd  Fd=, Fn, Fm  b h s d
uqsub   01111110ZZ1mmmmm001011nnnnnddddd  Fd=, Fn, Fm  b h s d
usqadd  01111110ZZ100000001110nnnnnddddd  Fd+, Fn      b h s d
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
sqdmlal  01011110011mmmmm100100nnnnnddddd  Sd+, Hn, Hm          h
sqdmlal  01011110101mmmmm100100nnnnnddddd  Dd+, Sn, Sm          s
sqdmlal  0101111101llmmmm0011h0nnnnnddddd  Sd+, Hn, Vm.h[<hl>]
sqdmlal  0101111110lmmmmm0011h0nnnnnddddd  Dd+, Sn, Vm.s[<hl>]
sqdmlsl  01011110011mmmmm101100nnnnnddddd  Sd+, Hn, Hm          h
sqdmlsl  01011110101mmmmm101100nnnnnddddd  Dd+, Sn, Sm          s
sqdmlsl  0101111101llmmmm0111h0nnnnnddddd  Sd+, Hn, Vm.h[<hl>]
sqdmlsl  0101111110lmmmmm0111h0nnnnnddddd  Dd+, Sn, Vm.s[<hl>]
@ vec_mla rdm
sqrdmlah  01111110ZZ0mmmmm100001nnnnnddddd  Fd+, Fn, Fm          h s
sqrdmlah  0111111101llmmmm1101h0nnnnnddddd  Hd+, Hn, Vm.h[<hl>]
sqrdmlah  0111111110lmmmmm1101h0nnnnnddddd  Sd+, Sn, Vm.s[<hl>]
sqrdmlsh  01111110ZZ0mmmmm100011nnnnnddddd  Fd+, Fn, Fm          h s
sqrdmlsh  0111111101llmmmm1111h0nnnnnddddd  Hd+, Hn, Vm.h[<hl>]
sqrdmlsh  0111111110lmmmmm1111h0nnnnnddddd  Sd+, Sn, Vm.s[<hl>]
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
shl   0101111101iiiiii010101nnnnnddddd  Dd=, Dn, #<i>
sli   0111111101iiiiii010101nnnnnddddd  Dd+, Dn, #<i>
sri   0111111101iiiiii010001nnnnnddddd  Dd+, Dn, #<64-i>
sshl  01011110111mmmmm010001nnnnnddddd  Dd=, Dn, Dm
sshr  0101111101iiiiii000001nnnnnddddd  Dd=, Dn, #<64-i>
ushl  01111110111mmmmm010001nnnnnddddd  Dd=, Dn, Dm
ushr  0111111101iiiiii000001nnnnnddddd  Dd=, Dn, #<64-i>
@ vec_shift_acc base
srsra  0101111101iiiiii001101nnnnnddddd  Dd+, Dn, #<64-i>
ssra   0101111101iiiiii000101nnnnnddddd  Dd+, Dn, #<64-i>
ursra  0111111101iiiiii001101nnnnnddddd  Dd+, Dn, #<64-i>
usra   0111111101iiiiii000101nnnnnddddd  Dd+, Dn, #<64-i>
@ vec_shift_long base
sqrshl    01011110ZZ1mmmmm010111nnnnnddddd  Fd=, Fn, Fm       b h s d
sqrshrn   010111110IIIIIII100111nnnnnddddd  Fd=, Gn, #<%-i>   b h s
sqrshrun  011111110IIIIIII100011nnnnnddddd  Fd=, Gn, #<%-i>   b h s
sqshl     01011110ZZ1mmmmm010011nnnnnddddd  Fd=, Fn, Fm       b h s d
sqshl     010111110IIIIIII011101nnnnnddddd  Fd=, Fn, #<i>     b h s d
sqshlu    011111110IIIIIII011001nnnnnddddd  Fd=, Fn, #<i>     b h s d
sqshrn    010111110IIIIIII100101nnnnnddddd  Fd=, Gn, #<%-i>   b h s
sqshrun   011111110IIIIIII100001nnnnnddddd  Fd=, Gn, #<%-i>   b h s
sqxtn     01011110ZZ100001010010nnnnnddddd  Fd=, Gn           b h s
sqxtun    01111110ZZ100001001010nnnnnddddd  Fd=, Gn           b h s
srshl     01011110111mmmmm010101nnnnnddddd  Dd=, Dn, Dm
srshr     0101111101iiiiii001001nnnnnddddd  Dd=, Dn, #<64-i>
uqrshl    01111110ZZ1mmmmm010111nnnnnddddd  Fd=, Fn, Fm       b h s d
uqrshrn   011111110IIIIIII100111nnnnnddddd  Fd=, Gn, #<%-i>   b h s
uqshl     01111110ZZ1mmmmm010011nnnnnddddd  Fd=, Fn, Fm       b h s d
uqshl     011111110IIIIIII011101nnnnnddddd  Fd=, Fn, #<i>     b h s d
uqshrn    011111110IIIIIII100101nnnnnddddd  Fd=, Gn, #<%-i>   b h s
uqxtn     01111110ZZ100001010010nnnnnddddd  Fd=, Gn           b h s
urshl     01111110111mmmmm010101nnnnnddddd  Dd=, Dn, Dm
urshr     0111111101iiiiii001001nnnnnddddd  Dd=, Dn, #<64-i>
@ vec_to_int base
fmov  00011110YY100110000000nnnnnddddd  Wd=, Fn         h s
fmov  10011110YY100110000000nnnnnddddd  Xd=, Fn         h d
fmov  1001111010101110000000nnnnnddddd  Xd=, Vn.d[1]
smov  00001110000JJJJJ001011nnnnnddddd  Wd=, Vn.E[<j>]  b h
smov  01001110000JJJJJ001011nnnnnddddd  Xd=, Vn.E[<j>]  b h s
umov  00001110000JJJJJ001111nnnnnddddd  Wd=, Vn.E[<j>]  b h s
"""
