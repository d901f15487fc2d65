"""The AArch64 rows of SVE predicates and counters, in the notation of table.py.

Source: Arm Architecture Reference Manual, DDI 0487, chapter C8.
"""
from __future__ import annotations

TEXT = """
@ pred sve alias
mov     001001011000mmmm01gggg0nnnn0dddd  Pd.b=, Pgnm.b
movs    001001011100mmmm01gggg0nnnn0dddd  Pd.b=, Pgnm.b       -  wf
mov     001001010000mmmm01gggg0nnnn0dddd  Pd.b=, Pg/z, Pnm.b
movs    001001010100mmmm01gggg0nnnn0dddd  Pd.b=, Pg/z, Pnm.b  -  wf
mov     001001010000mmmm01gggg1nnnn1dddd  Pdm.b+, Pg/m, Pn.b
not     001001010000mmmm01gggg1nnnn0dddd  Pd.b=, Pgm/z, Pn.b
pfalse  0010010100011000111001000000dddd  Pd.b=
nots    001001010100mmmm01gggg1nnnn0dddd  Pd.b=, Pgm/z, Pn.b  -  wf
@ pred sve
and      001001010000mmmm01gggg0nnnn0dddd  Pd.b=, Pg/z, Pn.b, Pm.b
ands     001001010100mmmm01gggg0nnnn0dddd  Pd.b=, Pg/z, Pn.b, Pm.b  -        wf
bic      001001010000mmmm01gggg0nnnn1dddd  Pd.b=, Pg/z, Pn.b, Pm.b
bics     001001010100mmmm01gggg0nnnn1dddd  Pd.b=, Pg/z, Pn.b, Pm.b  -        wf
brka     001001010001000001gggg0nnnn0dddd  Pd.b=, Pg/z, Pn.b
brka     001001010001000001gggg0nnnn1dddd  Pd.b+, Pg/m, Pn.b
brkas    001001010101000001gggg0nnnn0dddd  Pd.b=, Pg/z, Pn.b        -        wf
brkb     001001011001000001gggg0nnnn0dddd  Pd.b=, Pg/z, Pn.b
brkb     001001011001000001gggg0nnnn1dddd  Pd.b+, Pg/m, Pn.b
brkbs    001001011101000001gggg0nnnn0dddd  Pd.b=, Pg/z, Pn.b        -        wf
brkn     001001010001100001gggg0nnnn0dddd  Pd.b=, Pg/z, Pn.b, Pd.b
brkns    001001010101100001gggg0nnnn0dddd  Pd.b=, Pg/z, Pn.b, Pd.b  -        wf
brkpa    001001010000mmmm11gggg0nnnn0dddd  Pd.b=, Pg/z, Pn.b, Pm.b
brkpas   001001010100mmmm11gggg0nnnn0dddd  Pd.b=, Pg/z, Pn.b, Pm.b  -        wf
brkpb    001001010000mmmm11gggg0nnnn1dddd  Pd.b=, Pg/z, Pn.b, Pm.b
brkpbs   001001010100mmmm11gggg0nnnn1dddd  Pd.b=, Pg/z, Pn.b, Pm.b  -        wf
ctermeq  00100101101mmmmm001000nnnnn00000  Wn, Wm                   -        wf
ctermeq  00100101111mmmmm001000nnnnn00000  Xn, Xm                   -        wf
ctermne  00100101101mmmmm001000nnnnn10000  Wn, Wm                   -        wf
ctermne  00100101111mmmmm001000nnnnn10000  Xn, Xm                   -        wf
eor      001001010000mmmm01gggg1nnnn0dddd  Pd.b=, Pg/z, Pn.b, Pm.b
eors     001001010100mmmm01gggg1nnnn0dddd  Pd.b=, Pg/z, Pn.b, Pm.b  -        wf
nand     001001011000mmmm01gggg1nnnn1dddd  Pd.b=, Pg/z, Pn.b, Pm.b
nands    001001011100mmmm01gggg1nnnn1dddd  Pd.b=, Pg/z, Pn.b, Pm.b  -        wf
nor      001001011000mmmm01gggg1nnnn0dddd  Pd.b=, Pg/z, Pn.b, Pm.b
nors     001001011100mmmm01gggg1nnnn0dddd  Pd.b=, Pg/z, Pn.b, Pm.b  -        wf
orn      001001011000mmmm01gggg0nnnn1dddd  Pd.b=, Pg/z, Pn.b, Pm.b
orns     001001011100mmmm01gggg0nnnn1dddd  Pd.b=, Pg/z, Pn.b, Pm.b  -        wf
orr      001001011000mmmm01gggg0nnnn0dddd  Pd.b=, Pg/z, Pn.b, Pm.b
orrs     001001011100mmmm01gggg0nnnn0dddd  Pd.b=, Pg/z, Pn.b, Pm.b  -        wf
pfirst   00100101010110001100000nnnn0dddd  Pd.b=, Pn, Pd.b          -        wf
pnext    00100101ZZ0110011100010nnnn0dddd  Pd.T=, Pn, Pd.T          b h s d  wf
ptest    001001010101000011gggg0nnnn00000  Pg, Pn.b                 -        wf
ptrue    00100101ZZ011000111000iiiii0dddd  Pd.T=(, <pattern:i>)     b h s d
ptrues   00100101ZZ011001111000iiiii0dddd  Pd.T=(, <pattern:i>)     b h s d  wf
punpkhi  00000101001100010100000nnnn0dddd  Pd.h=, Pn.b
punpklo  00000101001100000100000nnnn0dddd  Pd.h=, Pn.b
rdffr    0010010100011001111100000000dddd  Pd.b=
rdffr    00100101000110001111000nnnn0dddd  Pd.b=, Pn/z
rdffrs   00100101010110001111000nnnn0dddd  Pd.b=, Pn/z              -        wf
rev      00000101ZZ1101000100000nnnn0dddd  Pd.T=, Pn.T              b h s d
sel      001001010000mmmm01gggg1nnnn1dddd  Pd.b=, Pg, Pn.b, Pm.b
setffr   00100101001011001001000000000000
trn1     00000101ZZ10mmmm0101000nnnn0dddd  Pd.T=, Pn.T, Pm.T        b h s d
trn2     00000101ZZ10mmmm0101010nnnn0dddd  Pd.T=, Pn.T, Pm.T        b h s d
uzp1     00000101ZZ10mmmm0100100nnnn0dddd  Pd.T=, Pn.T, Pm.T        b h s d
uzp2     00000101ZZ10mmmm0100110nnnn0dddd  Pd.T=, Pn.T, Pm.T        b h s d
whilele  00100101ZZ1mmmmm000001nnnnn1dddd  Pd.T=, Wn, Wm            b h s d  wf
whilele  00100101ZZ1mmmmm000101nnnnn1dddd  Pd.T=, Xn, Xm            b h s d  wf
whilelo  00100101ZZ1mmmmm000011nnnnn0dddd  Pd.T=, Wn, Wm            b h s d  wf
whilelo  00100101ZZ1mmmmm000111nnnnn0dddd  Pd.T=, Xn, Xm            b h s d  wf
whilels  00100101ZZ1mmmmm000011nnnnn1dddd  Pd.T=, Wn, Wm            b h s d  wf
whilels  00100101ZZ1mmmmm000111nnnnn1dddd  Pd.T=, Xn, Xm            b h s d  wf
whilelt  00100101ZZ1mmmmm000001nnnnn0dddd  Pd.T=, Wn, Wm            b h s d  wf
whilelt  00100101ZZ1mmmmm000101nnnnn0dddd  Pd.T=, Xn, Xm            b h s d  wf
wrffr    00100101001010001001000nnnn00000  Pn.b
zip1     00000101ZZ10mmmm0100000nnnn0dddd  Pd.T=, Pn.T, Pm.T        b h s d
zip2     00000101ZZ10mmmm0100010nnnn0dddd  Pd.T=, Pn.T, Pm.T        b h s d
@ pred sve2
whilege  00100101ZZ1mmmmm000000nnnnn0dddd  Pd.T=, Wn, Wm  b h s d  wf
whilege  00100101ZZ1mmmmm000100nnnnn0dddd  Pd.T=, Xn, Xm  b h s d  wf
whilegt  00100101ZZ1mmmmm000000nnnnn1dddd  Pd.T=, Wn, Wm  b h s d  wf
whilegt  00100101ZZ1mmmmm000100nnnnn1dddd  Pd.T=, Xn, Xm  b h s d  wf
whilehi  00100101ZZ1mmmmm000010nnnnn1dddd  Pd.T=, Wn, Wm  b h s d  wf
whilehi  00100101ZZ1mmmmm000110nnnnn1dddd  Pd.T=, Xn, Xm  b h s d  wf
whilehs  00100101ZZ1mmmmm000010nnnnn0dddd  Pd.T=, Wn, Wm  b h s d  wf
whilehs  00100101ZZ1mmmmm000110nnnnn0dddd  Pd.T=, Xn, Xm  b h s d  wf
whilerw  00100101ZZ1mmmmm001100nnnnn1dddd  Pd.T=, Xn, Xm  b h s d  wf
whilewr  00100101ZZ1mmmmm001100nnnnn0dddd  Pd.T=, Xn, Xm  b h s d  wf
@ pred_count sve
cnt[bhwd]       00000100MM10iiii111000jjjjjddddd  Xd=(, <pattern:j>(, mul #<i+1>))
cntp            00100101ZZ10000010gggg0nnnnddddd  Xd=, Pg, Pn.T                         b h s d
dec[bhwd]       00000100MM11iiii111001jjjjjddddd  Xd+(, <pattern:j>(, mul #<i+1>))
decd            000001001111iiii110001jjjjjddddd  Zd.d+(, <pattern:j>(, mul #<i+1>))
dech            000001000111iiii110001jjjjjddddd  Zd.h+(, <pattern:j>(, mul #<i+1>))
decp            00100101ZZ1011011000100nnnnddddd  Xd+, Pn.T                             b h s d
decp            00100101ZZ1011011000000nnnnddddd  Zd.T+, Pn.T                           h s d
decw            000001001011iiii110001jjjjjddddd  Zd.s+(, <pattern:j>(, mul #<i+1>))
inc[bhwd]       00000100MM11iiii111000jjjjjddddd  Xd+(, <pattern:j>(, mul #<i+1>))
incd            000001001111iiii110000jjjjjddddd  Zd.d+(, <pattern:j>(, mul #<i+1>))
inch            000001000111iiii110000jjjjjddddd  Zd.h+(, <pattern:j>(, mul #<i+1>))
incp            00100101ZZ1011001000100nnnnddddd  Xd+, Pn.T                             b h s d
incp            00100101ZZ1011001000000nnnnddddd  Zd.T+, Pn.T                           h s d
incw            000001001011iiii110000jjjjjddddd  Zd.s+(, <pattern:j>(, mul #<i+1>))
[su]qdec[bhwd]  00000100NN11iiii11111Mjjjjjddddd  Xd+(, <pattern:j>(, mul #<i+1>))
[su]qdecd       000001001110iiii11001Mjjjjjddddd  Zd.d+(, <pattern:j>(, mul #<i+1>))
[su]qdech       000001000110iiii11001Mjjjjjddddd  Zd.h+(, <pattern:j>(, mul #<i+1>))
[su]qdecp       00100101ZZ10101M1000110nnnnddddd  Xd+, Pn.T                             b h s d
[su]qdecp       00100101ZZ10101M1000000nnnnddddd  Zd.T+, Pn.T                           h s d
sqdecp          00100101ZZ1010101000100nnnnddddd  Xd+, Pn.T, Wd                         b h s d
[su]qdecw       000001001010iiii11001Mjjjjjddddd  Zd.s+(, <pattern:j>(, mul #<i+1>))
sqdec[bhwd]     00000100MM10iiii111110jjjjjddddd  Xd+, Wd(, <pattern:j>(, mul #<i+1>))
[su]qinc[bhwd]  00000100NN11iiii11110Mjjjjjddddd  Xd+(, <pattern:j>(, mul #<i+1>))
[su]qincd       000001001110iiii11000Mjjjjjddddd  Zd.d+(, <pattern:j>(, mul #<i+1>))
[su]qinch       000001000110iiii11000Mjjjjjddddd  Zd.h+(, <pattern:j>(, mul #<i+1>))
[su]qincp       00100101ZZ10100M1000110nnnnddddd  Xd+, Pn.T                             b h s d
[su]qincp       00100101ZZ10100M1000000nnnnddddd  Zd.T+, Pn.T                           h s d
sqincp          00100101ZZ1010001000100nnnnddddd  Xd+, Pn.T, Wd                         b h s d
[su]qincw       000001001010iiii11000Mjjjjjddddd  Zd.s+(, <pattern:j>(, mul #<i+1>))
sqinc[bhwd]     00000100MM10iiii111100jjjjjddddd  Xd+, Wd(, <pattern:j>(, mul #<i+1>))
uqdec[bhwd]     00000100MM10iiii111111jjjjjddddd  Wd+(, <pattern:j>(, mul #<i+1>))
uqdecp          00100101ZZ1010111000100nnnnddddd  Wd+, Pn.T                             b h s d
uqinc[bhwd]     00000100MM10iiii111101jjjjjddddd  Wd+(, <pattern:j>(, mul #<i+1>))
uqincp          00100101ZZ1010011000100nnnnddddd  Wd+, Pn.T                             b h s d
"""
