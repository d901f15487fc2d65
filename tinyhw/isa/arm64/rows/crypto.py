"""The AArch64 rows of cryptographic extensions, in the notation of table.py.

Source: Arm Architecture Reference Manual, DDI 0487, chapter C7.
"""
from __future__ import annotations

TEXT = """
@ crypto aes
aesd    0100111000101000010110nnnnnddddd  Vd.16b+, Vn.16b
aese    0100111000101000010010nnnnnddddd  Vd.16b+, Vn.16b
aesimc  0100111000101000011110nnnnnddddd  Vd.16b=, Vn.16b
aesmc   0100111000101000011010nnnnnddddd  Vd.16b=, Vn.16b
@ crypto base
shadd  0Q001110ZZ1mmmmm000001nnnnnddddd  Vd.T=, Vn.T, Vm.T  8b 16b 4h 8h 2s 4s
@ crypto sha2
sha1c      01011110000mmmmm000000nnnnnddddd  Qd+, Sn, Vm.4s
sha1h      0101111000101000000010nnnnnddddd  Sd=, Sn
sha1m      01011110000mmmmm001000nnnnnddddd  Qd+, Sn, Vm.4s
sha1p      01011110000mmmmm000100nnnnnddddd  Qd+, Sn, Vm.4s
sha1su0    01011110000mmmmm001100nnnnnddddd  Vd.4s+, Vn.4s, Vm.4s
sha1su1    0101111000101000000110nnnnnddddd  Vd.4s+, Vn.4s
sha256h    01011110000mmmmm010000nnnnnddddd  Qd+, Qn, Vm.4s
sha256h2   01011110000mmmmm010100nnnnnddddd  Qd+, Qn, Vm.4s
sha256su0  0101111000101000001010nnnnnddddd  Vd.4s+, Vn.4s
sha256su1  01011110000mmmmm011000nnnnnddddd  Vd.4s+, Vn.4s, Vm.4s
@ crypto sha3
bcax       11001110001mmmmm0aaaaannnnnddddd  Vd.16b=, Vn.16b, Vm.16b, Va.16b
eor3       11001110000mmmmm0aaaaannnnnddddd  Vd.16b=, Vn.16b, Vm.16b, Va.16b
rax1       11001110011mmmmm100011nnnnnddddd  Vd.2d=, Vn.2d, Vm.2d
sha512h    11001110011mmmmm100000nnnnnddddd  Qd+, Qn, Vm.2d
sha512h2   11001110011mmmmm100001nnnnnddddd  Qd+, Qn, Vm.2d
sha512su1  11001110011mmmmm100010nnnnnddddd  Vd.2d+, Vn.2d, Vm.2d
xar        11001110100mmmmmiiiiiinnnnnddddd  Vd.2d=, Vn.2d, Vm.2d, #<i>
@ crypto sm4
sm3partw1  11001110011mmmmm110000nnnnnddddd  Vd.4s+, Vn.4s, Vm.4s
sm3partw2  11001110011mmmmm110001nnnnnddddd  Vd.4s+, Vn.4s, Vm.4s
sm3ss1     11001110010mmmmm0aaaaannnnnddddd  Vd.4s=, Vn.4s, Vm.4s, Va.4s
sm3tt1a    11001110010mmmmm10ii00nnnnnddddd  Vd.4s+, Vn.4s, Vm.s[<i>]
sm3tt1b    11001110010mmmmm10ii01nnnnnddddd  Vd.4s+, Vn.4s, Vm.s[<i>]
sm3tt2a    11001110010mmmmm10ii10nnnnnddddd  Vd.4s+, Vn.4s, Vm.s[<i>]
sm3tt2b    11001110010mmmmm10ii11nnnnnddddd  Vd.4s+, Vn.4s, Vm.s[<i>]
sm4ekey    11001110011mmmmm110010nnnnnddddd  Vd.4s=, Vn.4s, Vm.4s
"""
