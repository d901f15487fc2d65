"""The RISC-V rows of floats and atomic accesses: F, D, Zfh with Zfhmin, and A, in the notation of table.py.

Sources: RISC-V Unprivileged ISA, version 20240411, chapters "F", "D", "Zfh", "A"; riscv-opcodes, rv_f to rv_a.

Variants s, d and h are the format: `$` in the mnemonic and FF in the word. A name of three letters, such as `fcvt.s.w`,
has the format of the result first.
"""
from __future__ import annotations

ARITHMETIC = """
@ fp_fma f
fmadd.$   aaaaaFFmmmmmnnnnnrrrddddd1000011  Fd=, Fn, Fm, Fa(, <rm:r>)  s d h
fmsub.$   aaaaaFFmmmmmnnnnnrrrddddd1000111  Fd=, Fn, Fm, Fa(, <rm:r>)  s d h
fnmsub.$  aaaaaFFmmmmmnnnnnrrrddddd1001011  Fd=, Fn, Fm, Fa(, <rm:r>)  s d h
fnmadd.$  aaaaaFFmmmmmnnnnnrrrddddd1001111  Fd=, Fn, Fm, Fa(, <rm:r>)  s d h
@ fp_add f
fadd.$    00000FFmmmmmnnnnnrrrddddd1010011  Fd=, Fn, Fm(, <rm:r>)      s d h
fsub.$    00001FFmmmmmnnnnnrrrddddd1010011  Fd=, Fn, Fm(, <rm:r>)      s d h
@ fp_mul f
fmul.$    00010FFmmmmmnnnnnrrrddddd1010011  Fd=, Fn, Fm(, <rm:r>)      s d h
@ fp_div f
fdiv.$    00011FFmmmmmnnnnnrrrddddd1010011  Fd=, Fn, Fm(, <rm:r>)      s d h
@ fp_sqrt f
fsqrt.$   01011FF00000nnnnnrrrddddd1010011  Fd=, Fn(, <rm:r>)          s d h
@ fp_move f
fmv.$     00100FFmmmmmnnnnn000ddddd1010011  Fd=, Fmn                   s d h  alias
fneg.$    00100FFmmmmmnnnnn001ddddd1010011  Fd=, Fmn                   s d h  alias
fabs.$    00100FFmmmmmnnnnn010ddddd1010011  Fd=, Fmn                   s d h  alias
fsgnj.$   00100FFmmmmmnnnnn000ddddd1010011  Fd=, Fn, Fm                s d h
fsgnjn.$  00100FFmmmmmnnnnn001ddddd1010011  Fd=, Fn, Fm                s d h
fsgnjx.$  00100FFmmmmmnnnnn010ddddd1010011  Fd=, Fn, Fm                s d h
@ fp_minmax f
fmin.$    00101FFmmmmmnnnnn000ddddd1010011  Fd=, Fn, Fm                s d h
fmax.$    00101FFmmmmmnnnnn001ddddd1010011  Fd=, Fn, Fm                s d h
@ fp_compare f
feq.$     10100FFmmmmmnnnnn010ddddd1010011  Xd=, Fn, Fm                s d h
flt.$     10100FFmmmmmnnnnn001ddddd1010011  Xd=, Fn, Fm                s d h
fle.$     10100FFmmmmmnnnnn000ddddd1010011  Xd=, Fn, Fm                s d h
fgt.$     10100FFmmmmmnnnnn001ddddd1010011  Xd=, Fm, Fn                s d h  unseen
fge.$     10100FFmmmmmnnnnn000ddddd1010011  Xd=, Fm, Fn                s d h  unseen
fclass.$  11100FF00000nnnnn001ddddd1010011  Xd=, Fn                    s d h
"""

CONVERSIONS = """
@ fp_to_int f
fcvt.w.$  11000FF00000nnnnnrrrddddd1010011  Xd=, Fn(, <rm:r>)          s d h
fcvt.wu.$  11000FF00001nnnnnrrrddddd1010011  Xd=, Fn(, <rm:r>)          s d h
fcvt.l.$  11000FF00010nnnnnrrrddddd1010011  Xd=, Fn(, <rm:r>)          s d h
fcvt.lu.$  11000FF00011nnnnnrrrddddd1010011  Xd=, Fn(, <rm:r>)          s d h
@ int_to_fp f
fcvt.$.w  11010FF00000nnnnnrrrddddd1010011  Fd=, Xn(, <rm:r>)          s h
fcvt.$.wu  11010FF00001nnnnnrrrddddd1010011  Fd=, Xn(, <rm:r>)          s h
fcvt.$.w  11010FF00000nnnnnrrrddddd1010011  Fd=, Xn(, <exact:r>)       d
fcvt.$.wu  11010FF00001nnnnnrrrddddd1010011  Fd=, Xn(, <exact:r>)       d
fcvt.$.l  11010FF00010nnnnnrrrddddd1010011  Fd=, Xn(, <rm:r>)          s d h
fcvt.$.lu  11010FF00011nnnnnrrrddddd1010011  Fd=, Xn(, <rm:r>)          s d h
@ fp_convert d
fcvt.s.d  010000000001nnnnnrrrddddd1010011  Fd=, Fn(, <rm:r>)
fcvt.d.s  010000100000nnnnnrrrddddd1010011  Fd=, Fn(, <exact:r>)
@ fp_convert zfhmin
fcvt.s.h  010000000010nnnnnrrrddddd1010011  Fd=, Fn(, <exact:r>)
fcvt.h.s  010001000000nnnnnrrrddddd1010011  Fd=, Fn(, <rm:r>)
fcvt.d.h  010000100010nnnnnrrrddddd1010011  Fd=, Fn(, <exact:r>)
fcvt.h.d  010001000001nnnnnrrrddddd1010011  Fd=, Fn(, <rm:r>)
fmv.x.h   111001000000nnnnn000ddddd1010011  Xd=, Fn
fmv.h.x   111101000000nnnnn000ddddd1010011  Fd=, Xn
@ fp_move f
fmv.x.w   111000000000nnnnn000ddddd1010011  Xd=, Fn
fmv.w.x   111100000000nnnnn000ddddd1010011  Fd=, Xn
fmv.x.d   111000100000nnnnn000ddddd1010011  Xd=, Fn  -  @d
fmv.d.x   111100100000nnnnn000ddddd1010011  Fd=, Xn  -  @d
"""

MEMORY = """
@ load f load
flw       iiiiiiiiiiiinnnnn010ddddd0000111  Fd=, <offset:i>[Xn]
fld       iiiiiiiiiiiinnnnn011ddddd0000111  Fd=, <offset:i>[Xn]  -  @d
flh       iiiiiiiiiiiinnnnn001ddddd0000111  Fd=, <offset:i>[Xn]  -  @zfhmin
@ store f store
fsw       hhhhhhhmmmmmnnnnn010iiiii0100111  Fm, <offset:hi>[Xn]
fsd       hhhhhhhmmmmmnnnnn011iiiii0100111  Fm, <offset:hi>[Xn]  -  @d
fsh       hhhhhhhmmmmmnnnnn001iiiii0100111  Fm, <offset:hi>[Xn]  -  @zfhmin
"""

# mnemonic, bits 31 to 27
ATOMICS = (("swap", "00001"), ("add", "00000"), ("xor", "00100"), ("and", "01100"), ("or", "01000"), ("min", "10000"),
           ("max", "10100"), ("minu", "11000"), ("maxu", "11100"))

def atomics() -> str:
  """The lines of atomic accesses: of 32 and 64 bits, with and without acquire and release."""
  lines = ["@ atomic a load store"]
  for size, width in (("w", "010"), ("d", "011")):
    for end, order in (("", "00"), (".aq", "10"), (".rl", "01"), (".aqrl", "11")):
      tail = f"nnnnn{width}ddddd0101111"
      lines += [f"lr.{size}{end}  00010{order}00000{tail}  Xd=, <no:z>[Xn]",
                f"sc.{size}{end}  00011{order}mmmmm{tail}  Xd=, Xm, <no:z>[Xn]"]
      lines += [f"amo{name}.{size}{end}  {bits}{order}mmmmm{tail}  Xd=, Xm, <no:z>[Xn]" for name, bits in ATOMICS]
  return "\n".join(lines) + "\n"

TEXT = ARITHMETIC + CONVERSIONS + MEMORY + atomics()
