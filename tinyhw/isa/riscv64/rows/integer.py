"""The RISC-V rows of integers: RV64I, M, Zba, Zbb, Zbs, Zicond, Zicsr and fences, in the notation of table.py.

Sources: RISC-V Unprivileged ISA, version 20240411, chapters "RV32I", "RV64I", "M", "B", "Zicond", "Zicsr", "Zifencei";
riscv-opcodes, rv_i to rv_zicond. A spelling that the disassembler prefers stands as `alias`.
"""
from __future__ import annotations

# offsets of loads and stores, and distances of jumps: the immediates of formats I, S, B and J
LOAD, STORE = "<offset:i>[Xn]", "<offset:hi>[Xn]"
BRANCH, JUMP = "<label:jkih*2>", "<label:jkhi*2>"

IMMEDIATE = """
@ int_alu i alias
nop    00000000000000000000000000010011
li     iiiiiiiiiiii00000000ddddd0010011  Xd=, <s:i>
li     00000000000000000000ddddd0010011  Xd=, 0
mv     000000000000nnnnn000ddddd0010011  Xd=, Xn
not    111111111111nnnnn100ddddd0010011  Xd=, Xn
sext.w  000000000000nnnnn000ddddd0011011  Xd=, Xn
seqz   000000000001nnnnn011ddddd0010011  Xd=, Xn
zext.b  000011111111nnnnn111ddddd0010011  Xd=, Xn  -  unseen
@ int_alu i
lui    iiiiiiiiiiiiiiiiiiiiddddd0110111  Xd=, <i>
auipc  iiiiiiiiiiiiiiiiiiiiddddd0010111  Xd=, <i>
addi   iiiiiiiiiiiinnnnn000ddddd0010011  Xd=, Xn, <s:i>
slti   iiiiiiiiiiiinnnnn010ddddd0010011  Xd=, Xn, <s:i>
sltiu  iiiiiiiiiiiinnnnn011ddddd0010011  Xd=, Xn, <s:i>
xori   iiiiiiiiiiiinnnnn100ddddd0010011  Xd=, Xn, <s:i>
ori    iiiiiiiiiiiinnnnn110ddddd0010011  Xd=, Xn, <s:i>
andi   iiiiiiiiiiiinnnnn111ddddd0010011  Xd=, Xn, <s:i>
slli   000000iiiiiinnnnn001ddddd0010011  Xd=, Xn, <i>
srli   000000iiiiiinnnnn101ddddd0010011  Xd=, Xn, <i>
srai   010000iiiiiinnnnn101ddddd0010011  Xd=, Xn, <i>
addiw  iiiiiiiiiiiinnnnn000ddddd0011011  Xd=, Xn, <s:i>
slliw  0000000iiiiinnnnn001ddddd0011011  Xd=, Xn, <i>
srliw  0000000iiiiinnnnn101ddddd0011011  Xd=, Xn, <i>
sraiw  0100000iiiiinnnnn101ddddd0011011  Xd=, Xn, <i>
"""

REGISTERS = """
@ int_alu i alias
neg    0100000mmmmm00000000ddddd0110011  Xd=, Xm
negw   0100000mmmmm00000000ddddd0111011  Xd=, Xm
snez   0000000mmmmm00000011ddddd0110011  Xd=, Xm
sltz   000000000000nnnnn010ddddd0110011  Xd=, Xn
sgtz   0000000mmmmm00000010ddddd0110011  Xd=, Xm
@ int_alu i unseen
sgt    0000000mmmmmnnnnn010ddddd0110011  Xd=, Xm, Xn
sgtu   0000000mmmmmnnnnn011ddddd0110011  Xd=, Xm, Xn
@ int_alu i
add    0000000mmmmmnnnnn000ddddd0110011  Xd=, Xn, Xm
sub    0100000mmmmmnnnnn000ddddd0110011  Xd=, Xn, Xm
sll    0000000mmmmmnnnnn001ddddd0110011  Xd=, Xn, Xm
slt    0000000mmmmmnnnnn010ddddd0110011  Xd=, Xn, Xm
sltu   0000000mmmmmnnnnn011ddddd0110011  Xd=, Xn, Xm
xor    0000000mmmmmnnnnn100ddddd0110011  Xd=, Xn, Xm
srl    0000000mmmmmnnnnn101ddddd0110011  Xd=, Xn, Xm
sra    0100000mmmmmnnnnn101ddddd0110011  Xd=, Xn, Xm
or     0000000mmmmmnnnnn110ddddd0110011  Xd=, Xn, Xm
and    0000000mmmmmnnnnn111ddddd0110011  Xd=, Xn, Xm
addw   0000000mmmmmnnnnn000ddddd0111011  Xd=, Xn, Xm
subw   0100000mmmmmnnnnn000ddddd0111011  Xd=, Xn, Xm
sllw   0000000mmmmmnnnnn001ddddd0111011  Xd=, Xn, Xm
srlw   0000000mmmmmnnnnn101ddddd0111011  Xd=, Xn, Xm
sraw   0100000mmmmmnnnnn101ddddd0111011  Xd=, Xn, Xm
@ int_mul m
mul    0000001mmmmmnnnnn000ddddd0110011  Xd=, Xn, Xm
mulh   0000001mmmmmnnnnn001ddddd0110011  Xd=, Xn, Xm
mulhsu  0000001mmmmmnnnnn010ddddd0110011  Xd=, Xn, Xm
mulhu  0000001mmmmmnnnnn011ddddd0110011  Xd=, Xn, Xm
mulw   0000001mmmmmnnnnn000ddddd0111011  Xd=, Xn, Xm
@ int_div m
div    0000001mmmmmnnnnn100ddddd0110011  Xd=, Xn, Xm
divu   0000001mmmmmnnnnn101ddddd0110011  Xd=, Xn, Xm
rem    0000001mmmmmnnnnn110ddddd0110011  Xd=, Xn, Xm
remu   0000001mmmmmnnnnn111ddddd0110011  Xd=, Xn, Xm
divw   0000001mmmmmnnnnn100ddddd0111011  Xd=, Xn, Xm
divuw  0000001mmmmmnnnnn101ddddd0111011  Xd=, Xn, Xm
remw   0000001mmmmmnnnnn110ddddd0111011  Xd=, Xn, Xm
remuw  0000001mmmmmnnnnn111ddddd0111011  Xd=, Xn, Xm
@ int_alu zicond
czero.eqz  0000111mmmmmnnnnn101ddddd0110011  Xd=, Xn, Xm
czero.nez  0000111mmmmmnnnnn111ddddd0110011  Xd=, Xn, Xm
"""

BITS = """
@ int_alu zba
zext.w  000010000000nnnnn000ddddd0111011  Xd=, Xn  -  alias
add.uw  0000100mmmmmnnnnn000ddddd0111011  Xd=, Xn, Xm
sh1add  0010000mmmmmnnnnn010ddddd0110011  Xd=, Xn, Xm
sh2add  0010000mmmmmnnnnn100ddddd0110011  Xd=, Xn, Xm
sh3add  0010000mmmmmnnnnn110ddddd0110011  Xd=, Xn, Xm
sh1add.uw  0010000mmmmmnnnnn010ddddd0111011  Xd=, Xn, Xm
sh2add.uw  0010000mmmmmnnnnn100ddddd0111011  Xd=, Xn, Xm
sh3add.uw  0010000mmmmmnnnnn110ddddd0111011  Xd=, Xn, Xm
slli.uw  000010iiiiiinnnnn001ddddd0011011  Xd=, Xn, <i>
@ int_alu zbb
andn   0100000mmmmmnnnnn111ddddd0110011  Xd=, Xn, Xm
orn    0100000mmmmmnnnnn110ddddd0110011  Xd=, Xn, Xm
xnor   0100000mmmmmnnnnn100ddddd0110011  Xd=, Xn, Xm
clz    011000000000nnnnn001ddddd0010011  Xd=, Xn
ctz    011000000001nnnnn001ddddd0010011  Xd=, Xn
cpop   011000000010nnnnn001ddddd0010011  Xd=, Xn
sext.b  011000000100nnnnn001ddddd0010011  Xd=, Xn
sext.h  011000000101nnnnn001ddddd0010011  Xd=, Xn
zext.h  000010000000nnnnn100ddddd0111011  Xd=, Xn
clzw   011000000000nnnnn001ddddd0011011  Xd=, Xn
ctzw   011000000001nnnnn001ddddd0011011  Xd=, Xn
cpopw  011000000010nnnnn001ddddd0011011  Xd=, Xn
max    0000101mmmmmnnnnn110ddddd0110011  Xd=, Xn, Xm
maxu   0000101mmmmmnnnnn111ddddd0110011  Xd=, Xn, Xm
min    0000101mmmmmnnnnn100ddddd0110011  Xd=, Xn, Xm
minu   0000101mmmmmnnnnn101ddddd0110011  Xd=, Xn, Xm
rol    0110000mmmmmnnnnn001ddddd0110011  Xd=, Xn, Xm
ror    0110000mmmmmnnnnn101ddddd0110011  Xd=, Xn, Xm
rolw   0110000mmmmmnnnnn001ddddd0111011  Xd=, Xn, Xm
rorw   0110000mmmmmnnnnn101ddddd0111011  Xd=, Xn, Xm
rori   011000iiiiiinnnnn101ddddd0010011  Xd=, Xn, <i>
roriw  0110000iiiiinnnnn101ddddd0011011  Xd=, Xn, <i>
rev8   011010111000nnnnn101ddddd0010011  Xd=, Xn
orc.b  001010000111nnnnn101ddddd0010011  Xd=, Xn
@ int_alu zbs
bclr   0100100mmmmmnnnnn001ddddd0110011  Xd=, Xn, Xm
bext   0100100mmmmmnnnnn101ddddd0110011  Xd=, Xn, Xm
binv   0110100mmmmmnnnnn001ddddd0110011  Xd=, Xn, Xm
bset   0010100mmmmmnnnnn001ddddd0110011  Xd=, Xn, Xm
bclri  010010iiiiiinnnnn001ddddd0010011  Xd=, Xn, <i>
bexti  010010iiiiiinnnnn101ddddd0010011  Xd=, Xn, <i>
binvi  011010iiiiiinnnnn001ddddd0010011  Xd=, Xn, <i>
bseti  001010iiiiiinnnnn001ddddd0010011  Xd=, Xn, <i>
"""

MEMORY = f"""
@ load i load
lb     iiiiiiiiiiiinnnnn000ddddd0000011  Xd=, {LOAD}
lh     iiiiiiiiiiiinnnnn001ddddd0000011  Xd=, {LOAD}
lw     iiiiiiiiiiiinnnnn010ddddd0000011  Xd=, {LOAD}
ld     iiiiiiiiiiiinnnnn011ddddd0000011  Xd=, {LOAD}
lbu    iiiiiiiiiiiinnnnn100ddddd0000011  Xd=, {LOAD}
lhu    iiiiiiiiiiiinnnnn101ddddd0000011  Xd=, {LOAD}
lwu    iiiiiiiiiiiinnnnn110ddddd0000011  Xd=, {LOAD}
@ store i store
sb     hhhhhhhmmmmmnnnnn000iiiii0100011  Xm, {STORE}
sh     hhhhhhhmmmmmnnnnn001iiiii0100011  Xm, {STORE}
sw     hhhhhhhmmmmmnnnnn010iiiii0100011  Xm, {STORE}
sd     hhhhhhhmmmmmnnnnn011iiiii0100011  Xm, {STORE}
"""

BRANCHES = f"""
@ branch i jump alias
blez   jiiiiii0000000000101hhhhk1100011  zero, {BRANCH}
bltz   jiiiiii0000000000100hhhhk1100011  zero, {BRANCH}
beqz   jiiiiii00000nnnnn000hhhhk1100011  Xn, {BRANCH}
bnez   jiiiiii00000nnnnn001hhhhk1100011  Xn, {BRANCH}
blez   jiiiiiimmmmm00000101hhhhk1100011  Xm, {BRANCH}
bgtz   jiiiiiimmmmm00000100hhhhk1100011  Xm, {BRANCH}
bltz   jiiiiii00000nnnnn100hhhhk1100011  Xn, {BRANCH}
bgez   jiiiiii00000nnnnn101hhhhk1100011  Xn, {BRANCH}
@ branch i jump unseen
bgt    jiiiiiimmmmmnnnnn100hhhhk1100011  Xm, Xn, {BRANCH}
ble    jiiiiiimmmmmnnnnn101hhhhk1100011  Xm, Xn, {BRANCH}
bgtu   jiiiiiimmmmmnnnnn110hhhhk1100011  Xm, Xn, {BRANCH}
bleu   jiiiiiimmmmmnnnnn111hhhhk1100011  Xm, Xn, {BRANCH}
@ branch i jump
beq    jiiiiiimmmmmnnnnn000hhhhk1100011  Xn, Xm, {BRANCH}
bne    jiiiiiimmmmmnnnnn001hhhhk1100011  Xn, Xm, {BRANCH}
blt    jiiiiiimmmmmnnnnn100hhhhk1100011  Xn, Xm, {BRANCH}
bge    jiiiiiimmmmmnnnnn101hhhhk1100011  Xn, Xm, {BRANCH}
bltu   jiiiiiimmmmmnnnnn110hhhhk1100011  Xn, Xm, {BRANCH}
bgeu   jiiiiiimmmmmnnnnn111hhhhk1100011  Xn, Xm, {BRANCH}
@ branch i jump end alias
j      jiiiiiiiiiihkkkkkkkk000001101111  {JUMP}
@ branch i call
jal    jiiiiiiiiiihkkkkkkkk000011101111  {JUMP}  -  alias
jal    jiiiiiiiiiihkkkkkkkkddddd1101111  Xd=, {JUMP}
jalr   000000000000nnnnn000000011100111  Xn      -  alias
jalr   iiiiiiiiiiiinnnnn000000011100111  {LOAD}  -  alias
jalr   iiiiiiiiiiiinnnnn000ddddd1100111  Xd=, {LOAD}
jalr   000000000000nnnnn000ddddd1100111  Xd=, Xn  -  alias
jalr   iiiiiiiiiiiinnnnn000ddddd1100111  Xd=, Xn, <s:i>  -  unseen
@ branch i end alias
ret    00000000000000001000000001100111
jr     000000000000nnnnn000000001100111  Xn
jr     iiiiiiiiiiiinnnnn000000001100111  {LOAD}
"""

SYSTEM = """
@ system i call
ecall  00000000000000000000000001110011
@ trap i end
ebreak  00000000000100000000000001110011
unimp  11000000000000000001000001110011  -  -  alias
@ fence i barrier
fence  00001111111100000000000000001111  -  -  alias
fence.tso  10000011001100000000000000001111
pause  00000001000000000000000000001111
fence  0000iiiijjjj00000000000000001111  <fence:i>, <fence:j>
fence.i  00000000000000000001000000001111  -  -  @zifencei
@ system zicsr barrier alias
rdcycle   11000000000000000010ddddd1110011  Xd=
rdtime    11000000000100000010ddddd1110011  Xd=
rdinstret  11000000001000000010ddddd1110011  Xd=
frflags   00000000000100000010ddddd1110011  Xd=
frrm      00000000001000000010ddddd1110011  Xd=
frcsr     00000000001100000010ddddd1110011  Xd=
fsflags   000000000001nnnnn001000001110011  Xn
fsrm      000000000010nnnnn001000001110011  Xn
fscsr     000000000011nnnnn001000001110011  Xn
fsflags   000000000001nnnnn001ddddd1110011  Xd=, Xn
fsrm      000000000010nnnnn001ddddd1110011  Xd=, Xn
fscsr     000000000011nnnnn001ddddd1110011  Xd=, Xn
fsflagsi  000000000001iiiii101000001110011  <i>
fsrmi     000000000010iiiii101000001110011  <i>
fsflagsi  000000000001iiiii101ddddd1110011  Xd=, <i>
fsrmi     000000000010iiiii101ddddd1110011  Xd=, <i>
csrr      cccccccccccc00000010ddddd1110011  Xd=, <csr:c>
csrw      ccccccccccccnnnnn001000001110011  <csr:c>, Xn
csrs      ccccccccccccnnnnn010000001110011  <csr:c>, Xn
csrc      ccccccccccccnnnnn011000001110011  <csr:c>, Xn
csrwi     cccccccccccciiiii101000001110011  <csr:c>, <i>
csrsi     cccccccccccciiiii110000001110011  <csr:c>, <i>
csrci     cccccccccccciiiii111000001110011  <csr:c>, <i>
@ system zicsr barrier
csrrw     ccccccccccccnnnnn001ddddd1110011  Xd=, <csr:c>, Xn
csrrs     ccccccccccccnnnnn010ddddd1110011  Xd=, <csr:c>, Xn
csrrc     ccccccccccccnnnnn011ddddd1110011  Xd=, <csr:c>, Xn
csrrwi    cccccccccccciiiii101ddddd1110011  Xd=, <csr:c>, <i>
csrrsi    cccccccccccciiiii110ddddd1110011  Xd=, <csr:c>, <i>
csrrci    cccccccccccciiiii111ddddd1110011  Xd=, <csr:c>, <i>
"""

TEXT = IMMEDIATE + REGISTERS + BITS + MEMORY + BRANCHES + SYSTEM
