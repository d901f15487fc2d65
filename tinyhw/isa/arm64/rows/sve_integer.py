"""The AArch64 rows of SVE vectors of integers, in the notation of table.py.

Source: Arm Architecture Reference Manual, DDI 0487, chapter C8.
"""
from __future__ import annotations

TEXT = """
@ vec_mov sve alias
mov   00000100011mmmmm001100nnnnnddddd  Zd.d=, Znm.d
mov   00000101ZZ100000001110nnnnnddddd  Zd.T=, Wn|sp                  b h s
mov   00000101ZZ100000001110nnnnnddddd  Zd.T=, Xn|sp                  d
mov   00000101ZZ101000101gggnnnnnddddd  Zd.T+, Pg/m, Wn|sp            b h s
mov   00000101ZZ101000101gggnnnnnddddd  Zd.T+, Pg/m, Xn|sp            d
mov   00000101ZZ100000100gggnnnnnddddd  Zd.T+, Pg/m, Fn               b h s d
mov   00000101ZZ1mmmmm11ggggnnnnnddddd  Zdm.T+, Pg/m, Zn.T            b h s d
mov   0000010100100001001000nnnnnddddd  Zd.b=, Bn
mov   0000010100100010001000nnnnnddddd  Zd.h=, Hn
mov   0000010100100100001000nnnnnddddd  Zd.s=, Sn
mov   0000010100101000001000nnnnnddddd  Zd.d=, Dn
mov   0000010100110000001000nnnnnddddd  Zd.q=, Qn
mov   00000101JJ1JJJJJ001000nnnnnddddd  Zd.T=, Zn.T[<j>]              b h s d
mov   00000101jj110000001000nnnnnddddd  Zd.q=, Zn.q[<j>]
mov   0010010100111000110iiiiiiiiddddd  Zd.b=, #<s:i>
mov   00100101ZZ11100011hiiiiiiiiddddd  Zd.T=, #<sshifted8:hi>        h s d
mov   000001010001gggg000iiiiiiiiddddd  Zd.b=, Pg/z, #<s:i>
mov   00000101ZZ01gggg00hiiiiiiiiddddd  Zd.T=, Pg/z, #<sshifted8:hi>  h s d
mov   000001010001gggg010iiiiiiiiddddd  Zd.b+, Pg/m, #<s:i>
mov   00000101ZZ01gggg01hiiiiiiiiddddd  Zd.T+, Pg/m, #<sshifted8:hi>  h s d
mov   00000101110000krrrrrrssssssddddd  Zd.T=, #<dupmask%:krs>        h s d
fmov  00100101ZZ111001110iiiiiiiiddddd  Zd.T=, #<float:i>             h s d
fmov  00000101ZZ01gggg110iiiiiiiiddddd  Zd.T+, Pg/m, #<float:i>       h s d
@ vec_mov sve
dup   0010010100111000110iiiiiiiiddddd  Zd.b=, #<s:i>
dup   00100101ZZ11100011hiiiiiiiiddddd  Zd.T=, #<sshifted8:hi>        h s d
cpy   000001010001gggg000iiiiiiiiddddd  Zd.b=, Pg/z, #<s:i>
cpy   00000101ZZ01gggg00hiiiiiiiiddddd  Zd.T=, Pg/z, #<sshifted8:hi>  h s d
cpy   000001010001gggg010iiiiiiiiddddd  Zd.b+, Pg/m, #<s:i>
cpy   00000101ZZ01gggg01hiiiiiiiiddddd  Zd.T+, Pg/m, #<sshifted8:hi>  h s d
dupm  00000101110000krrrrrrssssssddddd  Zd.T=, #<lanes%:krs>          b h s d
@ vec_logic sve
and  00000101100000krrrrrrssssssddddd  Zd.T+, Zd.T, #<lanes%:krs>  b h s d
orr  00000101000000krrrrrrssssssddddd  Zd.T+, Zd.T, #<lanes%:krs>  b h s d
eor  00000101010000krrrrrrssssssddddd  Zd.T+, Zd.T, #<lanes%:krs>  b h s d
@ int_alu sve
addpl  00000100011mmmmm01010iiiiiiddddd  Xd|sp=, Xm|sp, #<s:i>
addvl  00000100001mmmmm01010iiiiiiddddd  Xd|sp=, Xm|sp, #<s:i>
rdvl   000001001011111101010iiiiiiddddd  Xd=, #<s:i>
@ int_to_vec sve
cpy    0000010111101000101gggnnnnnddddd  Zd.d+, Pg/m, Xn|sp
cpy    00000101ZZ101000101gggnnnnnddddd  Zd.T+, Pg/m, Wn|sp  b h s
dup    0000010111100000001110nnnnnddddd  Zd.d=, Xn|sp
dup    00000101ZZ100000001110nnnnnddddd  Zd.T=, Wn|sp        b h s
index  00000100111mmmmm010011nnnnnddddd  Zd.d=, Xn, Xm
index  00000100ZZ1mmmmm010011nnnnnddddd  Zd.T=, Wn, Wm       b h s
index  00000100111mmmmm010010iiiiiddddd  Zd.d=, #<s:i>, Xm
index  00000100ZZ1mmmmm010010iiiiiddddd  Zd.T=, #<s:i>, Wm   b h s
insr   0000010111100100001110nnnnnddddd  Zd.d+, Xn
insr   00000101ZZ100100001110nnnnnddddd  Zd.T+, Wn           b h s
@ vec_alu sve
abs       00000100ZZ010110101gggnnnnnddddd  Zd.T+, Pg/m, Zn.T             b h s d
add       00000100ZZ1mmmmm000000nnnnnddddd  Zd.T=, Zn.T, Zm.T             b h s d
add       0010010100100000110iiiiiiiiddddd  Zd.b+, Zd.b, #<i>
add       00000100ZZ000000000gggnnnnnddddd  Zd.T+, Pg/m, Zd.T, Zn.T       b h s d
add       00100101ZZ10000011ijjjjjjjjddddd  Zd.T+, Zd.T, #<shifted8:ij>   h s d
adr       000001001S1mmmmm101000nnnnnddddd  Zd.T=, [Zn.T, Zm.T]           s d
adr       00000100001mmmmm101000nnnnnddddd  Zd.d=, [Zn.d, Zm.d, sxtw]
adr       00000100011mmmmm101000nnnnnddddd  Zd.d=, [Zn.d, Zm.d, uxtw]
adr       000001001S1mmmmm101001nnnnnddddd  Zd.T=, [Zn.T, Zm.T, lsl #1]   s d
adr       000001001S1mmmmm101010nnnnnddddd  Zd.T=, [Zn.T, Zm.T, lsl #2]   s d
adr       000001001S1mmmmm101011nnnnnddddd  Zd.T=, [Zn.T, Zm.T, lsl #3]   s d
adr       00000100001mmmmm101001nnnnnddddd  Zd.d=, [Zn.d, Zm.d, sxtw #1]
adr       00000100001mmmmm101010nnnnnddddd  Zd.d=, [Zn.d, Zm.d, sxtw #2]
adr       00000100001mmmmm101011nnnnnddddd  Zd.d=, [Zn.d, Zm.d, sxtw #3]
adr       00000100011mmmmm101001nnnnnddddd  Zd.d=, [Zn.d, Zm.d, uxtw #1]
adr       00000100011mmmmm101010nnnnnddddd  Zd.d=, [Zn.d, Zm.d, uxtw #2]
adr       00000100011mmmmm101011nnnnnddddd  Zd.d=, [Zn.d, Zm.d, uxtw #3]
cls       00000100ZZ011000101gggnnnnnddddd  Zd.T+, Pg/m, Zn.T             b h s d
clz       00000100ZZ011001101gggnnnnnddddd  Zd.T+, Pg/m, Zn.T             b h s d
cnt       00000100ZZ011010101gggnnnnnddddd  Zd.T+, Pg/m, Zn.T             b h s d
fabs      00000100ZZ011100101gggnnnnnddddd  Zd.T+, Pg/m, Zn.T             h s d
fcpy      00000101ZZ01mmmm110iiiiiiiiddddd  Zd.T+, Pm/m, #<float:i>       h s d
fneg      00000100ZZ011101101gggnnnnnddddd  Zd.T+, Pg/m, Zn.T             h s d
movprfx   00000100ZZ010001001gggnnnnnddddd  Zd.T+, Pg/m, Zn.T             b h s
neg       00000100ZZ010111101gggnnnnnddddd  Zd.T+, Pg/m, Zn.T             b h s d
rbit      00000101ZZ100111100gggnnnnnddddd  Zd.T+, Pg/m, Zn.T             b h s d
[su]abd   00000100ZZ00110M000gggnnnnnddddd  Zd.T+, Pg/m, Zd.T, Zn.T       b h s d
smax      00100101ZZ101000110iiiiiiiiddddd  Zd.T+, Zd.T, #<s:i>           b h s d
[su]max   00000100ZZ00100M000gggnnnnnddddd  Zd.T+, Pg/m, Zd.T, Zn.T       b h s d
smin      00100101ZZ101010110iiiiiiiiddddd  Zd.T+, Zd.T, #<s:i>           b h s d
[su]min   00000100ZZ00101M000gggnnnnnddddd  Zd.T+, Pg/m, Zd.T, Zn.T       b h s d
[su]qadd  00000100ZZ1mmmmm00010Mnnnnnddddd  Zd.T=, Zn.T, Zm.T             b h s d
[su]qadd  001001010010010M110iiiiiiiiddddd  Zd.b+, Zd.b, #<i>
[su]qadd  00100101ZZ10010M11ijjjjjjjjddddd  Zd.T+, Zd.T, #<shifted8:ij>   h s d
[su]qsub  00000100ZZ1mmmmm00011Mnnnnnddddd  Zd.T=, Zn.T, Zm.T             b h s d
[su]qsub  001001010010011M110iiiiiiiiddddd  Zd.b+, Zd.b, #<i>
[su]qsub  00100101ZZ10011M11ijjjjjjjjddddd  Zd.T+, Zd.T, #<shifted8:ij>   h s d
sub       00000100ZZ1mmmmm000001nnnnnddddd  Zd.T=, Zn.T, Zm.T             b h s d
sub       0010010100100001110iiiiiiiiddddd  Zd.b+, Zd.b, #<i>
sub       00000100ZZ000001000gggnnnnnddddd  Zd.T+, Pg/m, Zd.T, Zn.T       b h s d
sub       00100101ZZ10000111ijjjjjjjjddddd  Zd.T+, Zd.T, #<shifted8:ij>   h s d
subr      0010010100100011110iiiiiiiiddddd  Zd.b+, Zd.b, #<i>
subr      00000100ZZ000011000gggnnnnnddddd  Zd.T+, Pg/m, Zd.T, Zn.T       b h s d
subr      00100101ZZ10001111ijjjjjjjjddddd  Zd.T+, Zd.T, #<shifted8:ij>   h s d
[su]xtb   00000100ZZ01000M101gggnnnnnddddd  Zd.T+, Pg/m, Zn.T             h s d
[su]xth   000001001S01001M101gggnnnnnddddd  Zd.T+, Pg/m, Zn.T             s d
[su]xtw   000001001101010M101gggnnnnnddddd  Zd.d+, Pg/m, Zn.d
umax      00100101ZZ101001110iiiiiiiiddddd  Zd.T+, Zd.T, #<i>             b h s d
umin      00100101ZZ101011110iiiiiiiiddddd  Zd.T+, Zd.T, #<i>             b h s d
@ vec_compare sve
cmpeq  00100100000mmmmm001gggnnnnn0dddd  Pd.b=, Pg/z, Zn.b, Zm.d
cmpeq  00100100010mmmmm001gggnnnnn0dddd  Pd.h=, Pg/z, Zn.h, Zm.d
cmpeq  00100100100mmmmm001gggnnnnn0dddd  Pd.s=, Pg/z, Zn.s, Zm.d
cmpeq  00100100ZZ0mmmmm101gggnnnnn0dddd  Pd.T=, Pg/z, Zn.T, Zm.T    b h s d
cmpeq  00100101ZZ0iiiii100gggnnnnn0dddd  Pd.T=, Pg/z, Zn.T, #<s:i>  b h s d
cmpge  00100100000mmmmm010gggnnnnn0dddd  Pd.b=, Pg/z, Zn.b, Zm.d
cmpge  00100100010mmmmm010gggnnnnn0dddd  Pd.h=, Pg/z, Zn.h, Zm.d
cmpge  00100100100mmmmm010gggnnnnn0dddd  Pd.s=, Pg/z, Zn.s, Zm.d
cmpge  00100100ZZ0mmmmm100gggnnnnn0dddd  Pd.T=, Pg/z, Zn.T, Zm.T    b h s d
cmpge  00100101ZZ0iiiii000gggnnnnn0dddd  Pd.T=, Pg/z, Zn.T, #<s:i>  b h s d
cmpgt  00100100000mmmmm010gggnnnnn1dddd  Pd.b=, Pg/z, Zn.b, Zm.d
cmpgt  00100100010mmmmm010gggnnnnn1dddd  Pd.h=, Pg/z, Zn.h, Zm.d
cmpgt  00100100100mmmmm010gggnnnnn1dddd  Pd.s=, Pg/z, Zn.s, Zm.d
cmpgt  00100100ZZ0mmmmm100gggnnnnn1dddd  Pd.T=, Pg/z, Zn.T, Zm.T    b h s d
cmpgt  00100101ZZ0iiiii000gggnnnnn1dddd  Pd.T=, Pg/z, Zn.T, #<s:i>  b h s d
cmphi  00100100000mmmmm110gggnnnnn1dddd  Pd.b=, Pg/z, Zn.b, Zm.d
cmphi  00100100010mmmmm110gggnnnnn1dddd  Pd.h=, Pg/z, Zn.h, Zm.d
cmphi  00100100100mmmmm110gggnnnnn1dddd  Pd.s=, Pg/z, Zn.s, Zm.d
cmphi  00100100ZZ0mmmmm000gggnnnnn1dddd  Pd.T=, Pg/z, Zn.T, Zm.T    b h s d
cmphi  00100100ZZ1iiiiiii0gggnnnnn1dddd  Pd.T=, Pg/z, Zn.T, #<i>    b h s d
cmphs  00100100000mmmmm110gggnnnnn0dddd  Pd.b=, Pg/z, Zn.b, Zm.d
cmphs  00100100010mmmmm110gggnnnnn0dddd  Pd.h=, Pg/z, Zn.h, Zm.d
cmphs  00100100100mmmmm110gggnnnnn0dddd  Pd.s=, Pg/z, Zn.s, Zm.d
cmphs  00100100ZZ0mmmmm000gggnnnnn0dddd  Pd.T=, Pg/z, Zn.T, Zm.T    b h s d
cmphs  00100100ZZ1iiiiiii0gggnnnnn0dddd  Pd.T=, Pg/z, Zn.T, #<i>    b h s d
cmple  00100100000mmmmm011gggnnnnn1dddd  Pd.b=, Pg/z, Zn.b, Zm.d
cmple  00100100010mmmmm011gggnnnnn1dddd  Pd.h=, Pg/z, Zn.h, Zm.d
cmple  00100100100mmmmm011gggnnnnn1dddd  Pd.s=, Pg/z, Zn.s, Zm.d
cmple  00100101ZZ0iiiii001gggnnnnn1dddd  Pd.T=, Pg/z, Zn.T, #<s:i>  b h s d
cmplo  00100100000mmmmm111gggnnnnn0dddd  Pd.b=, Pg/z, Zn.b, Zm.d
cmplo  00100100010mmmmm111gggnnnnn0dddd  Pd.h=, Pg/z, Zn.h, Zm.d
cmplo  00100100100mmmmm111gggnnnnn0dddd  Pd.s=, Pg/z, Zn.s, Zm.d
cmplo  00100100ZZ1iiiiiii1gggnnnnn0dddd  Pd.T=, Pg/z, Zn.T, #<i>    b h s d
cmpls  00100100000mmmmm111gggnnnnn1dddd  Pd.b=, Pg/z, Zn.b, Zm.d
cmpls  00100100010mmmmm111gggnnnnn1dddd  Pd.h=, Pg/z, Zn.h, Zm.d
cmpls  00100100100mmmmm111gggnnnnn1dddd  Pd.s=, Pg/z, Zn.s, Zm.d
cmpls  00100100ZZ1iiiiiii1gggnnnnn1dddd  Pd.T=, Pg/z, Zn.T, #<i>    b h s d
cmplt  00100100000mmmmm011gggnnnnn0dddd  Pd.b=, Pg/z, Zn.b, Zm.d
cmplt  00100100010mmmmm011gggnnnnn0dddd  Pd.h=, Pg/z, Zn.h, Zm.d
cmplt  00100100100mmmmm011gggnnnnn0dddd  Pd.s=, Pg/z, Zn.s, Zm.d
cmplt  00100101ZZ0iiiii001gggnnnnn0dddd  Pd.T=, Pg/z, Zn.T, #<s:i>  b h s d
cmpne  00100100000mmmmm001gggnnnnn1dddd  Pd.b=, Pg/z, Zn.b, Zm.d
cmpne  00100100010mmmmm001gggnnnnn1dddd  Pd.h=, Pg/z, Zn.h, Zm.d
cmpne  00100100100mmmmm001gggnnnnn1dddd  Pd.s=, Pg/z, Zn.s, Zm.d
cmpne  00100100ZZ0mmmmm101gggnnnnn1dddd  Pd.T=, Pg/z, Zn.T, Zm.T    b h s d
cmpne  00100101ZZ0iiiii100gggnnnnn1dddd  Pd.T=, Pg/z, Zn.T, #<s:i>  b h s d
@ vec_div sve
[su]div   000001001S01010M000gggnnnnnddddd  Zd.T+, Pg/m, Zd.T, Zn.T  s d
[su]divr  000001001S01011M000gggnnnnnddddd  Zd.T+, Pg/m, Zd.T, Zn.T  s d
@ vec_logic sve
and   00000100001mmmmm001100nnnnnddddd  Zd.d=, Zn.d, Zm.d
and   00000100ZZ011010000gggnnnnnddddd  Zd.T+, Pg/m, Zd.T, Zn.T  b h s d
bic   00000100111mmmmm001100nnnnnddddd  Zd.d=, Zn.d, Zm.d
bic   00000100ZZ011011000gggnnnnnddddd  Zd.T+, Pg/m, Zd.T, Zn.T  b h s d
cnot  00000100ZZ011011101gggnnnnnddddd  Zd.T+, Pg/m, Zn.T        b h s d
eor   00000100101mmmmm001100nnnnnddddd  Zd.d=, Zn.d, Zm.d
eor   00000100ZZ011001000gggnnnnnddddd  Zd.T+, Pg/m, Zd.T, Zn.T  b h s d
not   00000100ZZ011110101gggnnnnnddddd  Zd.T+, Pg/m, Zn.T        b h s d
orr   00000100011mmmmm001100nnnnnddddd  Zd.d=, Zn.d, Zm.d
orr   00000100ZZ011000000gggnnnnnddddd  Zd.T+, Pg/m, Zd.T, Zn.T  b h s d
@ vec_mla sve
mad     00000100ZZ0mmmmm110gggnnnnnddddd  Zd.T+, Pg/m, Zm.T, Zn.T  b h s d
ml[as]  00000100ZZ0mmmmm01Mgggnnnnnddddd  Zd.T+, Pg/m, Zn.T, Zm.T  b h s d
msb     00000100ZZ0mmmmm111gggnnnnnddddd  Zd.T+, Pg/m, Zm.T, Zn.T  b h s d
@ vec_mov sve
dup      00000101JJ1JJJJJ001000nnnnnddddd  Zd.T=, Zn.E[<j>]   b h s d q
fdup     00100101ZZ111001110iiiiiiiiddddd  Zd.T=, #<float:i>  h s d
movprfx  0000010000100000101111nnnnnddddd  Zd=, Zn
movprfx  00000100ZZ010000001gggnnnnnddddd  Zd.T=, Pg/z, Zn.T  b h s d
@ vec_mul sve
mul       00100101ZZ110000110iiiiiiiiddddd  Zd.T+, Zd.T, #<s:i>      b h s d
mul       00000100ZZ010000000gggnnnnnddddd  Zd.T+, Pg/m, Zd.T, Zn.T  b h s d
[su]mulh  00000100ZZ01001M000gggnnnnnddddd  Zd.T+, Pg/m, Zd.T, Zn.T  b h s d
@ vec_permute f64mm
trn1  00000101101mmmmm000110nnnnnddddd  Zd.q=, Zn.q, Zm.q
trn2  00000101101mmmmm000111nnnnnddddd  Zd.q=, Zn.q, Zm.q
uzp1  00000101101mmmmm000010nnnnnddddd  Zd.q=, Zn.q, Zm.q
uzp2  00000101101mmmmm000011nnnnnddddd  Zd.q=, Zn.q, Zm.q
zip1  00000101101mmmmm000000nnnnnddddd  Zd.q=, Zn.q, Zm.q
zip2  00000101101mmmmm000001nnnnnddddd  Zd.q=, Zn.q, Zm.q
@ vec_permute sve
clasta      00000101ZZ101010100gggnnnnnddddd  Fd+, Pg, Fd, Zn.T        b h s d
clasta      00000101ZZ101000100gggnnnnnddddd  Zd.T+, Pg, Zd.T, Zn.T    b h s d
clastb      00000101ZZ101011100gggnnnnnddddd  Fd+, Pg, Fd, Zn.T        b h s d
clastb      00000101ZZ101001100gggnnnnnddddd  Zd.T+, Pg, Zd.T, Zn.T    b h s d
compact     000001011S100001100gggnnnnnddddd  Zd.T=, Pg, Zn.T          s d
cpy         00000101ZZ100000100gggnnnnnddddd  Zd.T+, Pg/m, Fn          b h s d
ext         00000101001iiiii000iiinnnnnddddd  Zd.b+, Zd.b, Zn.b, #<i>
index       00000100111iiiii010001nnnnnddddd  Zd.d=, Xn, #<s:i>
index       00000100ZZ1iiiii010001nnnnnddddd  Zd.T=, Wn, #<s:i>        b h s
index       00000100ZZ1iiiii010000jjjjjddddd  Zd.T=, #<s:j>, #<s:i>    b h s d
insr        00000101ZZ110100001110nnnnnddddd  Zd.T+, Fn                b h s d
lasta       00000101ZZ100010100gggnnnnnddddd  Fd=, Pg, Zn.T            b h s d
lastb       00000101ZZ100011100gggnnnnnddddd  Fd=, Pg, Zn.T            b h s d
rev         00000101ZZ111000001110nnnnnddddd  Zd.T=, Zn.T              b h s d
revb        00000101ZZ100100100gggnnnnnddddd  Zd.T+, Pg/m, Zn.T        h s d
revh        000001011S100101100gggnnnnnddddd  Zd.T+, Pg/m, Zn.T        s d
revw        0000010111100110100gggnnnnnddddd  Zd.d+, Pg/m, Zn.d
sel         00000101ZZ1mmmmm11ggggnnnnnddddd  Zd.T=, Pg, Zn.T, Zm.T    b h s d
splice      00000101ZZ101100100gggnnnnnddddd  Zd.T+, Pg, Zd.T, Zn.T    b h s d
[su]unpkhi  00000101ZZ1100M1001110nnnnnddddd  Zd.T=, Zn.N              h s d
[su]unpklo  00000101ZZ1100M0001110nnnnnddddd  Zd.T=, Zn.N              h s d
trn1        00000101ZZ1mmmmm011100nnnnnddddd  Zd.T=, Zn.T, Zm.T        b h s d
trn2        00000101ZZ1mmmmm011101nnnnnddddd  Zd.T=, Zn.T, Zm.T        b h s d
uzp1        00000101ZZ1mmmmm011010nnnnnddddd  Zd.T=, Zn.T, Zm.T        b h s d
uzp2        00000101ZZ1mmmmm011011nnnnnddddd  Zd.T=, Zn.T, Zm.T        b h s d
zip1        00000101ZZ1mmmmm011000nnnnnddddd  Zd.T=, Zn.T, Zm.T        b h s d
zip2        00000101ZZ1mmmmm011001nnnnnddddd  Zd.T=, Zn.T, Zm.T        b h s d
@ vec_reduce sve
andv      00000100ZZ011010001gggnnnnnddddd  Fd=, Pg, Zn.T  b h s d
eorv      00000100ZZ011001001gggnnnnnddddd  Fd=, Pg, Zn.T  b h s d
orv       00000100ZZ011000001gggnnnnnddddd  Fd=, Pg, Zn.T  b h s d
saddv     00000100ZZ000000001gggnnnnnddddd  Dd=, Pg, Zn.T  b h s
[su]maxv  00000100ZZ00100M001gggnnnnnddddd  Fd=, Pg, Zn.T  b h s d
[su]minv  00000100ZZ00101M001gggnnnnnddddd  Fd=, Pg, Zn.T  b h s d
uaddv     00000100ZZ000001001gggnnnnnddddd  Dd=, Pg, Zn.T  b h s d
@ vec_shift sve
asr   00000100001mmmmm100000nnnnnddddd  Zd.b=, Zn.b, Zm.d
asr   00000100011mmmmm100000nnnnnddddd  Zd.h=, Zn.h, Zm.d
asr   00000100101mmmmm100000nnnnnddddd  Zd.s=, Zn.s, Zm.d
asr   00000100II1IIIII100100nnnnnddddd  Zd.T=, Zn.T, #<%-i>        b h s d
asr   0000010000011000100gggnnnnnddddd  Zd.b+, Pg/m, Zd.b, Zn.d
asr   0000010001011000100gggnnnnnddddd  Zd.h+, Pg/m, Zd.h, Zn.d
asr   0000010010011000100gggnnnnnddddd  Zd.s+, Pg/m, Zd.s, Zn.d
asr   00000100ZZ010000100gggnnnnnddddd  Zd.T+, Pg/m, Zd.T, Zn.T    b h s d
asr   00000100II000000100gggIIIIIddddd  Zd.T+, Pg/m, Zd.T, #<%-i>  b h s d
asrd  00000100II000100100gggIIIIIddddd  Zd.T+, Pg/m, Zd.T, #<%-i>  b h s d
asrr  00000100ZZ010100100gggnnnnnddddd  Zd.T+, Pg/m, Zd.T, Zn.T    b h s d
lsl   00000100001mmmmm100011nnnnnddddd  Zd.b=, Zn.b, Zm.d
lsl   00000100011mmmmm100011nnnnnddddd  Zd.h=, Zn.h, Zm.d
lsl   00000100101mmmmm100011nnnnnddddd  Zd.s=, Zn.s, Zm.d
lsl   00000100II1IIIII100111nnnnnddddd  Zd.T=, Zn.T, #<i>          b h s d
lsl   0000010000011011100gggnnnnnddddd  Zd.b+, Pg/m, Zd.b, Zn.d
lsl   0000010001011011100gggnnnnnddddd  Zd.h+, Pg/m, Zd.h, Zn.d
lsl   0000010010011011100gggnnnnnddddd  Zd.s+, Pg/m, Zd.s, Zn.d
lsl   00000100II000011100gggIIIIIddddd  Zd.T+, Pg/m, Zd.T, #<i>    b h s d
lsl   00000100ZZ010011100gggnnnnnddddd  Zd.T+, Pg/m, Zd.T, Zn.T    b h s d
lslr  00000100ZZ010111100gggnnnnnddddd  Zd.T+, Pg/m, Zd.T, Zn.T    b h s d
lsr   00000100001mmmmm100001nnnnnddddd  Zd.b=, Zn.b, Zm.d
lsr   00000100011mmmmm100001nnnnnddddd  Zd.h=, Zn.h, Zm.d
lsr   00000100101mmmmm100001nnnnnddddd  Zd.s=, Zn.s, Zm.d
lsr   00000100II1IIIII100101nnnnnddddd  Zd.T=, Zn.T, #<%-i>        b h s d
lsr   0000010000011001100gggnnnnnddddd  Zd.b+, Pg/m, Zd.b, Zn.d
lsr   0000010001011001100gggnnnnnddddd  Zd.h+, Pg/m, Zd.h, Zn.d
lsr   0000010010011001100gggnnnnnddddd  Zd.s+, Pg/m, Zd.s, Zn.d
lsr   00000100ZZ010001100gggnnnnnddddd  Zd.T+, Pg/m, Zd.T, Zn.T    b h s d
lsr   00000100II000001100gggIIIIIddddd  Zd.T+, Pg/m, Zd.T, #<%-i>  b h s d
lsrr  00000100ZZ010101100gggnnnnnddddd  Zd.T+, Pg/m, Zd.T, Zn.T    b h s d
@ vec_table sve
tbl  00000101ZZ1mmmmm001100nnnnnddddd  Zd.T=, { Zn.T }, Zm.T  b h s d
@ vec_to_int sve
clasta  0000010111110000101gggnnnnnddddd  Xd+, Pg, Xd, Zn.d
clasta  00000101ZZ110000101gggnnnnnddddd  Wd+, Pg, Wd, Zn.T  b h s
clastb  0000010111110001101gggnnnnnddddd  Xd+, Pg, Xd, Zn.d
clastb  00000101ZZ110001101gggnnnnnddddd  Wd+, Pg, Wd, Zn.T  b h s
lasta   0000010111100000101gggnnnnnddddd  Xd=, Pg, Zn.d
lasta   00000101ZZ100000101gggnnnnnddddd  Wd=, Pg, Zn.T      b h s
lastb   0000010111100001101gggnnnnnddddd  Xd=, Pg, Zn.d
lastb   00000101ZZ100001101gggnnnnnddddd  Wd=, Pg, Zn.T      b h s
"""
