"""The AArch64 rows of branches and system instructions, in the notation of table.py. Source: DDI 0487, section C4.1.93."""
from __future__ import annotations

CONDITIONS = "eq ne hs lo mi pl vs vc hi ls ge lt gt le al nv".split()

def conditional(name: str, last: str, properties: str) -> str:
  """A line for each condition, which is part of the mnemonic."""
  return "".join(f"{name}.{c}   01010100iiiiiiiiiiiiiiiiiii{last}{n:04b}  #<label:i*4>{properties}\n"
                 for n, c in enumerate(CONDITIONS))

BRANCHES = """
@ branch base jump end
b      000101iiiiiiiiiiiiiiiiiiiiiiiiii  #<label:i*4>
@ branch base jump
cbz    F0110100iiiiiiiiiiiiiiiiiiiddddd  Rd, #<label:i*4>                   w x
cbnz   F0110101iiiiiiiiiiiiiiiiiiiddddd  Rd, #<label:i*4>                   w x
tbz    00110110jjjjjiiiiiiiiiiiiiiddddd  Wd, #<j>, #<label:i*4>
tbz    10110110jjjjjiiiiiiiiiiiiiiddddd  Xd, #<j+32>, #<label:i*4>
tbz    00110110jjjjjiiiiiiiiiiiiiiddddd  Xd, #<j>, #<label:i*4>               -  unseen
tbnz   00110111jjjjjiiiiiiiiiiiiiiddddd  Wd, #<j>, #<label:i*4>
tbnz   10110111jjjjjiiiiiiiiiiiiiiddddd  Xd, #<j+32>, #<label:i*4>
tbnz   00110111jjjjjiiiiiiiiiiiiiiddddd  Xd, #<j>, #<label:i*4>               -  unseen
@ branch base call
bl     100101iiiiiiiiiiiiiiiiiiiiiiiiii  #<label:i*4>
blr    1101011000111111000000nnnnn00000  Xn
@ branch base end
br     1101011000011111000000nnnnn00000  Xn
ret    11010110010111110000001111000000  -                                  -  alias
ret    1101011001011111000000nnnnn00000  Xn
eret   11010110100111110000001111100000  -
@ branch base jump rf
""" + conditional("b", "0", "") + "@ branch hbc jump rf\n" + conditional("bc", "1", "")

SYSTEM = """
@ trap base end
brk    11010100001iiiiiiiiiiiiiiii00000  #<x:i>
hlt    11010100010iiiiiiiiiiiiiiii00000  #<x:i>
udf    0000000000000000iiiiiiiiiiiiiiii  #<i>
@ system base call
svc    11010100000iiiiiiiiiiiiiiii00001  #<x:i>
hvc    11010100000iiiiiiiiiiiiiiii00010  #<x:i>
smc    11010100000iiiiiiiiiiiiiiii00011  #<x:i>
dcps1  11010100101000000000000000000001  -                                  -  alias
dcps2  11010100101000000000000000000010  -                                  -  alias
dcps3  11010100101000000000000000000011  -                                  -  alias
dcps1  11010100101iiiiiiiiiiiiiiii00001  #<x:i>
dcps2  11010100101iiiiiiiiiiiiiiii00010  #<x:i>
dcps3  11010100101iiiiiiiiiiiiiiii00011  #<x:i>
@ nop base
nop    11010101000000110010000000011111  -                                  -  alias
csdb   11010101000000110010001010011111  -                                  -  alias
bti    11010101000000110010010000011111  -                                  -  alias @bti
bti    110101010000001100100100jj011111  <bti:j>                            -  alias @bti
xpaclri     11010101000000110010000011111111  -                             -  alias @pauth
pacia1716   11010101000000110010000100011111  -                             -  alias @pauth
pacib1716   11010101000000110010000101011111  -                             -  alias @pauth
autia1716   11010101000000110010000110011111  -                             -  alias @pauth
autib1716   11010101000000110010000111011111  -                             -  alias @pauth
paciaz      11010101000000110010001100011111  -                             -  alias @pauth
paciasp     11010101000000110010001100111111  -                             -  alias @pauth
pacibz      11010101000000110010001101011111  -                             -  alias @pauth
pacibsp     11010101000000110010001101111111  -                             -  alias @pauth
autiaz      11010101000000110010001110011111  -                             -  alias @pauth
autiasp     11010101000000110010001110111111  -                             -  alias @pauth
autibz      11010101000000110010001111011111  -                             -  alias @pauth
autibsp     11010101000000110010001111111111  -                             -  alias @pauth
@ system base barrier
yield  11010101000000110010000000111111  -                                  -  alias
wfe    11010101000000110010000001011111  -                                  -  alias
wfi    11010101000000110010000001111111  -                                  -  alias
sev    11010101000000110010000010011111  -                                  -  alias
sevl   11010101000000110010000010111111  -                                  -  alias
dgh    11010101000000110010000011011111  -                                  -  alias
esb    11010101000000110010001000011111  -                                  -  alias
hint   11010101000000110010iiiiiii11111  #<i>
ssbb   11010101000000110011000010011111  -                                  -  alias
pssbb  11010101000000110011010010011111  -                                  -  alias
dfb    11010101000000110011110010011111  -                                  -  alias unseen
clrex  11010101000000110011111101011111  -                                  -  alias
clrex  11010101000000110011iiii01011111  #<i>
dsb    11010101000000110011iiii10011111  <barrier:i>
dmb    11010101000000110011iiii10111111  <barrier:i>
isb    11010101000000110011iiii11011111  (<isb:i>)
sb     11010101000000110011000011111111  -                                  -  @sb
mrs    110101010011iiiiiiiiiiiiiiiddddd  Xd=, <system:i>
msr    110101010001iiiiiiiiiiiiiiiddddd  <system:i>, Xd
msr    11010101000000110100iiiijjj11111  <pstate:j>, #<i>
cfinv  11010101000000000100000000011111  -                                  -  @flagm rf wf
sys    1101010100001jjjnnnnmmmmiiiddddd  #<j>, <creg:n>, <creg:m>, #<i>(, Xd)
sysl   1101010100101jjjnnnnmmmmiiiddddd  Xd=, #<j>, <creg:n>, <creg:m>, #<i>
dc     110101010000100001110110001ddddd  ivac, Xd                           -  alias
dc     110101010000101101110100001ddddd  zva, Xd                            -  alias
dc     110101010000101101111010001ddddd  cvac, Xd                           -  alias
dc     110101010000101101111011001ddddd  cvau, Xd                           -  alias
dc     110101010000101101111110001ddddd  civac, Xd                          -  alias
ic     11010101000010000111000100011111  ialluis                            -  alias
ic     11010101000010000111010100011111  iallu                              -  alias
ic     110101010000101101110101001ddddd  ivau, Xd                           -  alias
"""

TEXT = BRANCHES + SYSTEM
