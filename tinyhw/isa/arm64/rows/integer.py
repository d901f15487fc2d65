"""The AArch64 rows of arithmetic over general registers, in the notation of table.py.

Source: Arm Architecture Reference Manual, DDI 0487, sections C4.1.92 (immediates) and C4.1.95 (registers).
"""
from __future__ import annotations

IMMEDIATE = """
@ int_mov base alias
mov    0001000100000000000000nnnnn11111  wsp, Wn|sp
mov    1001000100000000000000nnnnn11111  sp, Xn|sp
mov    000100010000000000000011111ddddd  Wd|sp=, wsp
mov    100100010000000000000011111ddddd  Xd|sp=, sp
mov    F10100101Khiiiiiiiiiiiiiiiiddddd  Rd=, #<movz%:khi>                  w x
mov    F00100101Khiiiiiiiiiiiiiiiiddddd  Rd=, #<movn%:khi>                  w x
mov    F01100100Krrrrrrssssss11111ddddd  Rd|sp=, #<movm%:krs>               w x
@ int_mov base
movz   F10100101Khiiiiiiiiiiiiiiiiddddd  Rd=, #<i>(, lsl #<kh*16>)          w x
movn   F00100101Khiiiiiiiiiiiiiiiiddddd  Rd=, #<i>(, lsl #<kh*16>)          w x
movk   F11100101Khiiiiiiiiiiiiiiiiddddd  Rd+, #<i>(, lsl #<kh*16>)          w x
adr    0ll10000iiiiiiiiiiiiiiiiiiiddddd  Xd=, #<label:il>
adrp   1ll10000iiiiiiiiiiiiiiiiiiiddddd  Xd=, #<label:il*4096>
@ int_alu base
add    F00100010hiiiiiiiiiiiinnnnnddddd  Rd|sp=, Rn|sp, #<shifted12:hi>     w x
sub    F10100010hiiiiiiiiiiiinnnnnddddd  Rd|sp=, Rn|sp, #<shifted12:hi>     w x
and    F00100100Krrrrrrssssssnnnnnddddd  Rd|sp=, Rn, #<mask%:krs>           w x
orr    F01100100Krrrrrrssssssnnnnnddddd  Rd|sp=, Rn, #<mask%:krs>           w x
eor    F10100100Krrrrrrssssssnnnnnddddd  Rd|sp=, Rn, #<mask%:krs>           w x
@ int_flags base wf
cmn    F01100010hiiiiiiiiiiiinnnnn11111  Rn|sp, #<shifted12:hi>             w x  alias
cmp    F11100010hiiiiiiiiiiiinnnnn11111  Rn|sp, #<shifted12:hi>             w x  alias
adds   F01100010hiiiiiiiiiiiinnnnnddddd  Rd=, Rn|sp, #<shifted12:hi>        w x
subs   F11100010hiiiiiiiiiiiinnnnnddddd  Rd=, Rn|sp, #<shifted12:hi>        w x
tst    F11100100Krrrrrrssssssnnnnn11111  Rn, #<mask%:krs>                   w x  alias
ands   F11100100Krrrrrrssssssnnnnnddddd  Rd=, Rn, #<mask%:krs>              w x
@ int_shift base alias
lsl    F10100110FArrrrrBsssssnnnnnddddd  Rd=, Rn, #<left:rs>                w x
lsr    F10100110FArrrrrBsssssnnnnnddddd  Rd=, Rn, #<right:rs>               w x
asr    F00100110FArrrrrBsssssnnnnnddddd  Rd=, Rn, #<right:rs>               w x
uxtb   0101001100000000000111nnnnnddddd  Wd=, Wn
uxth   0101001100000000001111nnnnnddddd  Wd=, Wn
sxtb   F00100110F000000000111nnnnnddddd  Rd=, Wn                            w x
sxth   F00100110F000000001111nnnnnddddd  Rd=, Wn                            w x
sxtw   1001001101000000011111nnnnnddddd  Xd=, Wn
ror    F00100111F0mmmmmLiiiiinnnnnddddd  Rd=, Rnm, #<i>                     w x
@ int_field base alias
ubfiz  F10100110FArrrrrBsssssnnnnnddddd  Rd=, Rn, #<insert:rs>              w x
ubfx   F10100110FArrrrrBsssssnnnnnddddd  Rd=, Rn, #<extract:rs>             w x
sbfiz  F00100110FArrrrrBsssssnnnnnddddd  Rd=, Rn, #<insert:rs>              w x
sbfx   F00100110FArrrrrBsssssnnnnnddddd  Rd=, Rn, #<extract:rs>             w x
bfi    F01100110FArrrrrBsssssnnnnnddddd  Rd+, Rn, #<insert:rs>              w x
bfxil  F01100110FArrrrrBsssssnnnnnddddd  Rd+, Rn, #<extract:rs>             w x
bfc    F01100110FArrrrrBsssss11111ddddd  Rd+, #<insert:rs>                  w x  unseen
@ int_field base
ubfm   F10100110FArrrrrBsssssnnnnnddddd  Rd=, Rn, #<r>, #<s>                w x
sbfm   F00100110FArrrrrBsssssnnnnnddddd  Rd=, Rn, #<r>, #<s>                w x
bfm    F01100110FArrrrrBsssssnnnnnddddd  Rd+, Rn, #<r>, #<s>                w x
extr   F00100111F0mmmmmLiiiiinnnnnddddd  Rd=, Rn, Rm, #<i>                  w x
@ int_alu cssc
smax   F00100011100 00iiiiiiiinnnnnddddd  Rd=, Rn, #<s:i>                   w x
umax   F00100011100 01iiiiiiiinnnnnddddd  Rd=, Rn, #<i>                     w x
smin   F00100011100 10iiiiiiiinnnnnddddd  Rd=, Rn, #<s:i>                   w x
umin   F00100011100 11iiiiiiiinnnnnddddd  Rd=, Rn, #<i>                     w x
"""

REGISTERS = """
@ int_mov base alias
mov    F0101010000mmmmm00000011111ddddd  Rd=, Rm                            w x
@ int_alu_shifted base
mvn    F0101010tt1mmmmmLiiiii11111ddddd  Rd=, Rm(, <rotate:t> #<i>)         w x  alias
neg    F1001011tt0mmmmmLiiiii11111ddddd  Rd=, Rm(, <shift:t> #<i>)          w x  alias
and    F0001010tt0mmmmmLiiiiinnnnnddddd  Rd=, Rn, Rm(, <rotate:t> #<i>)     w x
bic    F0001010tt1mmmmmLiiiiinnnnnddddd  Rd=, Rn, Rm(, <rotate:t> #<i>)     w x
orr    F0101010tt0mmmmmLiiiiinnnnnddddd  Rd=, Rn, Rm(, <rotate:t> #<i>)     w x
orn    F0101010tt1mmmmmLiiiiinnnnnddddd  Rd=, Rn, Rm(, <rotate:t> #<i>)     w x
eor    F1001010tt0mmmmmLiiiiinnnnnddddd  Rd=, Rn, Rm(, <rotate:t> #<i>)     w x
eon    F1001010tt1mmmmmLiiiiinnnnnddddd  Rd=, Rn, Rm(, <rotate:t> #<i>)     w x
add    F0001011tt0mmmmmLiiiiinnnnnddddd  Rd=, Rn, Rm(, <shift:t> #<i>)      w x
sub    F1001011tt0mmmmmLiiiiinnnnnddddd  Rd=, Rn, Rm(, <shift:t> #<i>)      w x
@ int_flags base wf
cmn    F0101011tt0mmmmmLiiiiinnnnn11111  Rn, Rm(, <shift:t> #<i>)           w x  alias
cmp    F1101011tt0mmmmmLiiiiinnnnn11111  Rn, Rm(, <shift:t> #<i>)           w x  alias
negs   F1101011tt0mmmmmLiiiii11111ddddd  Rd=, Rm(, <shift:t> #<i>)          w x  alias
adds   F0101011tt0mmmmmLiiiiinnnnnddddd  Rd=, Rn, Rm(, <shift:t> #<i>)      w x
subs   F1101011tt0mmmmmLiiiiinnnnnddddd  Rd=, Rn, Rm(, <shift:t> #<i>)      w x
tst    F1101010tt0mmmmmLiiiiinnnnn11111  Rn, Rm(, <rotate:t> #<i>)          w x  alias
ands   F1101010tt0mmmmmLiiiiinnnnnddddd  Rd=, Rn, Rm(, <rotate:t> #<i>)     w x
bics   F1101010tt1mmmmmLiiiiinnnnnddddd  Rd=, Rn, Rm(, <rotate:t> #<i>)     w x
@ int_alu_extended base alias
add    00001011001mmmmm010iiinnnnn11111  wsp, Wn|sp, Wm(, lsl #<amount:i>)
add    10001011001mmmmm011iiinnnnn11111  sp, Xn|sp, Xm(, lsl #<amount:i>)
add    00001011001mmmmm010iii11111ddddd  Wd|sp=, wsp, Wm(, lsl #<amount:i>)
add    10001011001mmmmm011iii11111ddddd  Xd|sp=, sp, Xm(, lsl #<amount:i>)
sub    01001011001mmmmm010iiinnnnn11111  wsp, Wn|sp, Wm(, lsl #<amount:i>)
sub    11001011001mmmmm011iiinnnnn11111  sp, Xn|sp, Xm(, lsl #<amount:i>)
sub    01001011001mmmmm010iii11111ddddd  Wd|sp=, wsp, Wm(, lsl #<amount:i>)
sub    11001011001mmmmm011iii11111ddddd  Xd|sp=, sp, Xm(, lsl #<amount:i>)
@ int_alu_extended base
add    00001011001mmmmmoooiiinnnnnddddd  Wd|sp=, Wn|sp, Wm, <extend:o>( #<amount:i>)
add    10001011001mmmmmo11iiinnnnnddddd  Xd|sp=, Xn|sp, Xm, <extend64:o>( #<amount:i>)
add    10001011001mmmmmoooiiinnnnnddddd  Xd|sp=, Xn|sp, Wm, <extend32:o>( #<amount:i>)
sub    01001011001mmmmmoooiiinnnnnddddd  Wd|sp=, Wn|sp, Wm, <extend:o>( #<amount:i>)
sub    11001011001mmmmmo11iiinnnnnddddd  Xd|sp=, Xn|sp, Xm, <extend64:o>( #<amount:i>)
sub    11001011001mmmmmoooiiinnnnnddddd  Xd|sp=, Xn|sp, Wm, <extend32:o>( #<amount:i>)
@ int_flags base wf alias
cmn    00101011001mmmmm010iii1111111111  wsp, Wm(, lsl #<amount:i>)
cmn    10101011001mmmmm011iii1111111111  sp, Xm(, lsl #<amount:i>)
cmp    01101011001mmmmm010iii1111111111  wsp, Wm(, lsl #<amount:i>)
cmp    11101011001mmmmm011iii1111111111  sp, Xm(, lsl #<amount:i>)
cmn    00101011001mmmmmoooiiinnnnn11111  Wn|sp, Wm, <extend:o>( #<amount:i>)
cmn    10101011001mmmmmo11iiinnnnn11111  Xn|sp, Xm, <extend64:o>( #<amount:i>)
cmn    10101011001mmmmmoooiiinnnnn11111  Xn|sp, Wm, <extend32:o>( #<amount:i>)
cmp    01101011001mmmmmoooiiinnnnn11111  Wn|sp, Wm, <extend:o>( #<amount:i>)
cmp    11101011001mmmmmo11iiinnnnn11111  Xn|sp, Xm, <extend64:o>( #<amount:i>)
cmp    11101011001mmmmmoooiiinnnnn11111  Xn|sp, Wm, <extend32:o>( #<amount:i>)
adds   00101011001mmmmm010iii11111ddddd  Wd=, wsp, Wm(, lsl #<amount:i>)
adds   10101011001mmmmm011iii11111ddddd  Xd=, sp, Xm(, lsl #<amount:i>)
subs   01101011001mmmmm010iii11111ddddd  Wd=, wsp, Wm(, lsl #<amount:i>)
subs   11101011001mmmmm011iii11111ddddd  Xd=, sp, Xm(, lsl #<amount:i>)
@ int_flags base wf
adds   00101011001mmmmmoooiiinnnnnddddd  Wd=, Wn|sp, Wm, <extend:o>( #<amount:i>)
adds   10101011001mmmmmo11iiinnnnnddddd  Xd=, Xn|sp, Xm, <extend64:o>( #<amount:i>)
adds   10101011001mmmmmoooiiinnnnnddddd  Xd=, Xn|sp, Wm, <extend32:o>( #<amount:i>)
subs   01101011001mmmmmoooiiinnnnnddddd  Wd=, Wn|sp, Wm, <extend:o>( #<amount:i>)
subs   11101011001mmmmmo11iiinnnnnddddd  Xd=, Xn|sp, Xm, <extend64:o>( #<amount:i>)
subs   11101011001mmmmmoooiiinnnnnddddd  Xd=, Xn|sp, Wm, <extend32:o>( #<amount:i>)
@ int_carry base rf
ngc    F1011010000mmmmm00000011111ddddd  Rd=, Rm                            w x  alias
adc    F0011010000mmmmm000000nnnnnddddd  Rd=, Rn, Rm                        w x
sbc    F1011010000mmmmm000000nnnnnddddd  Rd=, Rn, Rm                        w x
@ int_carry base rf wf
ngcs   F1111010000mmmmm00000011111ddddd  Rd=, Rm                            w x  alias
adcs   F0111010000mmmmm000000nnnnnddddd  Rd=, Rn, Rm                        w x
sbcs   F1111010000mmmmm000000nnnnnddddd  Rd=, Rn, Rm                        w x
ccmn   F0111010010mmmmmcccc00nnnnn0iiii  Rn, Rm, #<i>, <cond:c>             w x
ccmp   F1111010010mmmmmcccc00nnnnn0iiii  Rn, Rm, #<i>, <cond:c>             w x
ccmn   F0111010010jjjjjcccc10nnnnn0iiii  Rn, #<j>, #<i>, <cond:c>           w x
ccmp   F1111010010jjjjjcccc10nnnnn0iiii  Rn, #<j>, #<i>, <cond:c>           w x
rmif   10111010000iiiiii00001nnnnn0jjjj  Xn, #<i>, #<j>                     -  @flagm
@ int_select base rf
cset   F001101010011111cccc0111111ddddd  Rd=, <opposite:c>                  w x  alias
csetm  F101101010011111cccc0011111ddddd  Rd=, <opposite:c>                  w x  alias
cinc   F0011010100mmmmmcccc01nnnnnddddd  Rd=, Rnm, <opposite:c>              w x  alias
cinv   F1011010100mmmmmcccc00nnnnnddddd  Rd=, Rnm, <opposite:c>              w x  alias
cneg   F1011010100mmmmmcccc01nnnnnddddd  Rd=, Rnm, <opposite:c>              w x  alias
csel   F0011010100mmmmmcccc00nnnnnddddd  Rd=, Rn, Rm, <cond:c>              w x
csinc  F0011010100mmmmmcccc01nnnnnddddd  Rd=, Rn, Rm, <cond:c>              w x
csinv  F1011010100mmmmmcccc00nnnnnddddd  Rd=, Rn, Rm, <cond:c>              w x
csneg  F1011010100mmmmmcccc01nnnnnddddd  Rd=, Rn, Rm, <cond:c>              w x
@ int_shift base
lsl    F0011010110mmmmm001000nnnnnddddd  Rd=, Rn, Rm                        w x
lsr    F0011010110mmmmm001001nnnnnddddd  Rd=, Rn, Rm                        w x
asr    F0011010110mmmmm001010nnnnnddddd  Rd=, Rn, Rm                        w x
ror    F0011010110mmmmm001011nnnnnddddd  Rd=, Rn, Rm                        w x
lslv   F0011010110mmmmm001000nnnnnddddd  Rd=, Rn, Rm                        w x
lsrv   F0011010110mmmmm001001nnnnnddddd  Rd=, Rn, Rm                        w x
asrv   F0011010110mmmmm001010nnnnnddddd  Rd=, Rn, Rm                        w x
rorv   F0011010110mmmmm001011nnnnnddddd  Rd=, Rn, Rm                        w x
@ int_div base
udiv   F0011010110mmmmm000010nnnnnddddd  Rd=, Rn, Rm                        w x
sdiv   F0011010110mmmmm000011nnnnnddddd  Rd=, Rn, Rm                        w x
@ int_mul base
mul    F0011011000mmmmm011111nnnnnddddd  Rd=, Rn, Rm                        w x  alias
mneg   F0011011000mmmmm111111nnnnnddddd  Rd=, Rn, Rm                        w x  alias
smull  10011011001mmmmm011111nnnnnddddd  Xd=, Wn, Wm                        -  alias
smnegl  10011011001mmmmm111111nnnnnddddd  Xd=, Wn, Wm                       -  alias
umull  10011011101mmmmm011111nnnnnddddd  Xd=, Wn, Wm                        -  alias
umnegl  10011011101mmmmm111111nnnnnddddd  Xd=, Wn, Wm                       -  alias
madd   F0011011000mmmmm0aaaaannnnnddddd  Rd=, Rn, Rm, Ra                    w x
msub   F0011011000mmmmm1aaaaannnnnddddd  Rd=, Rn, Rm, Ra                    w x
smaddl  10011011001mmmmm0aaaaannnnnddddd  Xd=, Wn, Wm, Xa
smsubl  10011011001mmmmm1aaaaannnnnddddd  Xd=, Wn, Wm, Xa
umaddl  10011011101mmmmm0aaaaannnnnddddd  Xd=, Wn, Wm, Xa
umsubl  10011011101mmmmm1aaaaannnnnddddd  Xd=, Wn, Wm, Xa
smulh  10011011010mmmmm011111nnnnnddddd  Xd=, Xn, Xm
umulh  10011011110mmmmm011111nnnnnddddd  Xd=, Xn, Xm
@ int_bits base
rbit   F101101011000000000000nnnnnddddd  Rd=, Rn                            w x
rev16  F101101011000000000001nnnnnddddd  Rd=, Rn                            w x
rev    0101101011000000000010nnnnnddddd  Wd=, Wn
rev    1101101011000000000011nnnnnddddd  Xd=, Xn
rev64  1101101011000000000011nnnnnddddd  Xd=, Xn
rev32  1101101011000000000010nnnnnddddd  Xd=, Xn
clz    F101101011000000000100nnnnnddddd  Rd=, Rn                            w x
cls    F101101011000000000101nnnnnddddd  Rd=, Rn                            w x
@ int_alu cssc
ctz    F101101011000000000110nnnnnddddd  Rd=, Rn                            w x
cnt    F101101011000000000111nnnnnddddd  Rd=, Rn                            w x
abs    F101101011000000001000nnnnnddddd  Rd=, Rn                            w x
smax   F0011010110mmmmm011000nnnnnddddd  Rd=, Rn, Rm                        w x
umax   F0011010110mmmmm011001nnnnnddddd  Rd=, Rn, Rm                        w x
smin   F0011010110mmmmm011010nnnnnddddd  Rd=, Rn, Rm                        w x
umin   F0011010110mmmmm011011nnnnnddddd  Rd=, Rn, Rm                        w x
@ int_crc crc
crc32b  00011010110mmmmm010000nnnnnddddd  Wd=, Wn, Wm
crc32h  00011010110mmmmm010001nnnnnddddd  Wd=, Wn, Wm
crc32w  00011010110mmmmm010010nnnnnddddd  Wd=, Wn, Wm
crc32x  10011010110mmmmm010011nnnnnddddd  Wd=, Wn, Xm
crc32cb  00011010110mmmmm010100nnnnnddddd  Wd=, Wn, Wm
crc32ch  00011010110mmmmm010101nnnnnddddd  Wd=, Wn, Wm
crc32cw  00011010110mmmmm010110nnnnnddddd  Wd=, Wn, Wm
crc32cx  10011010110mmmmm010111nnnnnddddd  Wd=, Wn, Xm
@ pointer pauth
pacia  1101101011000001000000nnnnnddddd  Xd+, Xn|sp
pacib  1101101011000001000001nnnnnddddd  Xd+, Xn|sp
pacda  1101101011000001000010nnnnnddddd  Xd+, Xn|sp
pacdb  1101101011000001000011nnnnnddddd  Xd+, Xn|sp
autia  1101101011000001000100nnnnnddddd  Xd+, Xn|sp
autib  1101101011000001000101nnnnnddddd  Xd+, Xn|sp
autda  1101101011000001000110nnnnnddddd  Xd+, Xn|sp
autdb  1101101011000001000111nnnnnddddd  Xd+, Xn|sp
paciza  110110101100000100100011111ddddd  Xd+
pacizb  110110101100000100100111111ddddd  Xd+
pacdza  110110101100000100101011111ddddd  Xd+
pacdzb  110110101100000100101111111ddddd  Xd+
autiza  110110101100000100110011111ddddd  Xd+
autizb  110110101100000100110111111ddddd  Xd+
autdza  110110101100000100111011111ddddd  Xd+
autdzb  110110101100000100111111111ddddd  Xd+
xpaci  110110101100000101000011111ddddd  Xd+
xpacd  110110101100000101000111111ddddd  Xd+
pacga  10011010110mmmmm001100nnnnnddddd  Xd=, Xn, Xm|sp
"""

TEXT = IMMEDIATE + REGISTERS
