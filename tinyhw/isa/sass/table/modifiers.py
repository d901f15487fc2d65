"""The modifiers of NVIDIA instructions, by name: their usual bits, and the word for each value.

"-" is a value without text, "?" an invalid value. A word may have dots. The number after "*" is the count of registers
of an operand whose size the modifier gives. A row may put the same words at other bits: `rnd@76-77`. A line that begins
with a blank continues the words of the line before.
"""
from __future__ import annotations

from tinyhw.machine.notation.lazy import Lazy
from tinyhw.named_tuple import NamedTuple

SCOPE = ("- CONSTANT.PRIVATE CONSTANT.CTA CONSTANT.CTA.PRIVATE CONSTANT STRONG.SM STRONG.GPU.PRIVATE STRONG.GPU "
         "MMIO.GPU CONSTANT.SM STRONG.SYS "
         "CONSTANT.SM.PRIVATE MMIO.SYS CONSTANT.VC CONSTANT.VC.PRIVATE CONSTANT.GPU")
# Of instructions that write. The last three have other meanings on sm_100.
WRITE_SCOPE = ("- CONSTANT.PRIVATE CONSTANT.CTA CONSTANT.CTA.PRIVATE STRONG.SM.PRIVATE STRONG.SM STRONG.GPU.PRIVATE "
               "STRONG.GPU MMIO.GPU CONSTANT.SM "
               "STRONG.SYS CONSTANT.SM.PRIVATE MMIO.SYS ? ? ?")
COMPARE = "LT EQ LE GT NE GE"
UNORDERED = "LTU EQU LEU GTU NEU GEU"

TEXT = f"""
ftz     80     - FTZ
fmz     76,80  - FMZ FTZ
sat     77     - SAT
rnd     78-79  - RM RP RZ
rz      78-79  - ? ? RZ
toward  78-79  - FLOOR CEIL TRUNC
scale   84-86  ? D8 D4 D2 - M2 M4 M8
nan     81     - NAN
xorsign 82     - XORSIGN
bf16    85     - BF16_V2
bf16c   64-65  - ? BF16_V2
f32     78     - F32
half_a  74-75  - ? H0_H0 H1_H1
half_b  60-61  - ? H0_H0 H1_H1
half_c  81-82  - ? H0_H0 H1_H1
h1      60     - H1
icmp    76-78  F {COMPARE} T
fcmp    76-79  F {COMPARE} NUM NAN {UNORDERED} T
dcmp    76-79  MIN {COMPARE} NUM NAN {UNORDERED} MAX
bool    74-75  AND OR XOR
u32     73     U32 -
s32     73     - S32
sign    73     U32 S32
sign64  73     U64 S64
wide    80     32 -*2
lut     80     - PAND
bf      71     - BF
hand    71     - H_AND

shf     73-74  S64 U64 S32 U32
dir     76     L R
wrap    75     - W
hi      80     - HI
prmt    72-74  - F4E B4E RC8 ECL ECR RC16
sgxt    73     U32 -
flosh   74     - SH
mufu    74-77  COS SIN EX2 LG2 RCP RSQ ? ? SQRT TANH
mufu64  74-77  ? ? ? ? ? ? RCP64H RSQ64H
mufmt   72-73  ? F16 BF16
idp     73-74,76-77  4A.U8.U8 4A.S8.U8 4A.U8.S8 4A.S8.S8 2A.LO.U16.U8 2A.LO.S16.U8 2A.LO.U16.S8 2A.LO.S16.S8
        ? ? ? ? 2A.HI.U16.U8 2A.HI.S16.U8 2A.HI.U16.S8 2A.HI.S16.S8

f2i     72,75-76  U8 S8 U16 S16 U32 -
f2i64   72,75-76  ? ? ? ? ? ? U64*2 S64*2
ntz     77     - NTZ
ffrom   84-86  ? F16 - F64*2 BF16
ffrom8  84-86  ? F16 -
ffrom88 84-86  ? F16 - F64*2
ffrom32 84-86  ? F16 - ? BF16
fto8    75-77  ? F16 -
fto     75-77  ? F16 - ? BF16
ifrom   74,84-85  U8 S8 U16 S16 U32 -
ifrom64 74,84-85  ? ? ? ? ? ? U64*2 S64*2
f2f8    84-86  ? ? F32
f2f88   84-86  ? F16 F32
f2f32   84-86  ? ? F32 ? BF16
f2f     84-86  ? F16 F32 ? BF16
i2i     76-77  U8.S32 S8.S32 U16.S32 S16.S32
i2ip    76-78  U8.S32 S8.S32 U16.S32 S16.S32
i2ipsat 74-75  - SAT SATRELU
f2ip    76-79  U8.F32 S8.F32 ? ? ? ? ? ? ? ? ? ? U8.F32.TRUNC S8.F32.TRUNC
satfinite 77   - SATFINITE
f2relu  75     - RELU
f2to    76     F16 BF16
f2bf    76     - BF16
volatile 101   - VOLATILE
h1hi    88     - H1
mufmt8  72-73  ? ? F16
fp8     73     E5M2 E4M3
fp8to   76     E5M2 E4M3

size    73-75  U8 S8 U16 S16 - 64*2 128*4
scope   77-80  {SCOPE}
wscope  77-80  {WRITE_SCOPE}
evict   84-86  EF - EL LU EU NA
ltc     68-69  - LTC64B LTC128B LTC256B
ltcs    71-72  - LTC64B LTC128B LTC256B
copy    73-75  ? ? ? ? - 64 128
copy10  74-75  - 64 128
bypass  81     BYPASS -
zfill   82     - ZFILL
index   78-79  - X4 X8 X16
count   72-73  - 2*2 4*4
tile1   78     M88 MT88
tile    78-79  M88 MT88 M816 M832
atype8  73-75  - S32 64*2 F32.FTZ.RN F16x2.RN S64*2 F64.RN*2
atype   73-75  - S32 64*2 S64*2
afloat  73-76  F16x2.RN F16x4.RN*2 F16x8.RN*4 BF16x2.RN BF16x4.RN*2 BF16x8.RN*4 ? ? ?
        F32.FTZ.RN F32x2.FTZ.RN*2 F32x4.FTZ.RN*4 F32.RN F32x2.RN*2 F32x4.RN*4 F64.RN*2
aops    87-90  ADD MIN MAX INC DEC AND OR XOR EXCH
aop     87-90  ADD MIN MAX INC DEC AND OR XOR EXCH SAFEADD
rop     87-89  ADD MIN MAX INC DEC AND OR XOR
fop     88-89  ADD MIN MAX
stype8  73-75  - S32 64*2
stype   73-75  - S32 64*2 ? 128*4
mem     76-77  CTA SM GPU SYS
order   79-80  SC ALL ? MMIO
cctl    87-90  PF1 PF2 WB IV ? RS ? ? ? PML2 DML2 RML2
cctlall 87-90  ? ? ? ? IVALL ? IVALLP WBALL WBALLP
cctlop  78-79  - U C I
sync    72     S G
qspc    73-74  G L S

shfl    58-59  IDX UP DOWN BFLY
vote    72-73  ALL ANY EQ
u64     73     - U64*2
redux   78-80  - OR XOR SUM MIN MAX
redux_s 73     - S32
barred  74-75  POPC AND OR
defer   80     - DEFER_BLOCKING
keep    84-85  - KEEPREFCOUNT PREEMPTED
atexit  86     - NO_ATEXIT
reconv  73     - RECONVERGENT
noinc   86     - NOINC
any     84     - ANY
csize   73-75  U8 S8 U16 S16 - 64*2
step    85-86  - INC DEC

nodec   86     - NODEC
cast    87     - BROADCAST
cred    79     MAX MIN
wgwait  79     ARRIVE WAIT
utmacctl 82    IV PF
cta2    85     - 2CTA
u2fp    74     U32 S32
itype_a 76-77  U8 S8
itype_b 78-79  U8 S8
mmafmt  82-83  - BF16 TF32
mmabf   82-83  - BF16 ? ?
mmasat  82     - SAT
fp8mma  78-79  E4M3.E4M3 E5M2.E4M3 E4M3.E5M2 E5M2.E5M2
gmbf    76     - BF16
negA    72     - negA
negB    63     - negB
tnspA   61     - tnspA
tnspB   62     - tnspB
dims    79-81  1D*3 2D*4 3D*5 4D*6 5D*7
im2col  82     - IM2COL
mcast   75     - MULTICAST
tred    87-90  ADD MIN MAX INC DEC AND OR XOR
arrive  84-86  - A1T0 A0T1 A0TR A0TX ART0
red     73-74  - TMASK RED
optout  75     - OPTOUT
trywait 72     - TRYWAIT
arvcnt  70-71  - ARVCNT TRANSCNT
"""
# The text of a product of N columns, by its field. An accumulator in float32 has N/2 registers, one in float16 N/4.
COLUMNS = tuple(range(8, 257, 8))
# of integers; other values are invalid
BYTE_COLUMNS = dict(zip((*range(0, 7, 3), *range(9, 52, 3)), (8, 16, 24, *range(32, 257, 16))))
TEXT += "".join(f"{name:<7} 53-57  {' '.join(f'64x{n}x{depth}*{n // share}' for n in COLUMNS)}\n"
                for name, depth, share in (("gmma16", 16, 2), ("gmma16h", 16, 4), ("gmma8", 8, 2), ("gmma32", 32, 2)))
_BYTE_WORDS = [f"64x{BYTE_COLUMNS[i]}x32*{BYTE_COLUMNS[i] // 2}" if i in BYTE_COLUMNS else "?" for i in range(52)]
TEXT += f"gmmai   53-58  {' '.join(_BYTE_WORDS)}\n"

class Enumeration(NamedTuple):
  """A modifier.

  bits: its usual position. words: the text of each value, "" if it is left out, "?" if it is invalid. units: registers
  by value.
  """
  name: str
  bits: str
  words: tuple[str, ...]
  units: tuple[int, ...]

  @property
  def implied(self) -> int:
    """The value if the text has no word for it; -1 if a word is required."""
    return self.words.index("") if "" in self.words else -1

def enumeration(line: str) -> Enumeration:
  """Parse a line of the text."""
  name, bits, *words = line.split()
  split = [word.partition("*") for word in words]
  return Enumeration(name, bits, tuple("" if word == "-" else word for word, _, _ in split),
                     tuple(int(units or 1) for _, _, units in split))

ENUMERATIONS = Lazy({line.split(None, 1)[0]: line for line in TEXT.replace("\n ", " ").split("\n") if line},
                    enumeration)
