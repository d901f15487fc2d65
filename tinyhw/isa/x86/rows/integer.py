"""x86-64 rows of general registers, in the notation of table.py."""
from __future__ import annotations

CONDITIONS = ("o", "no", "b", "ae", "e", "ne", "be", "a", "s", "ns", "p", "np", "l", "ge", "le", "g")

# number (which determines opcodes and digit), name, access of the destination, properties
ALU = "".join(f"""
{name}  {n * 8:02X} /r               r8/m8{dst} r8     int_alu wf {reads}
{name}  {n * 8 + 1:02X} /r           rv/mv{dst} rv     int_alu wf {reads} {swap}
{name}  {n * 8 + 2:02X} /r           r8{dst} r8/m8     int_alu wf {reads}
{name}  {n * 8 + 3:02X} /r           rv{dst} rv/mv     int_alu wf {reads}
{name}  {n * 8 + 4:02X} ib AI | 80 /{n} ib             r8/m8{dst} i8   int_alu wf {reads}
{name}  83 /{n} ib | {n * 8 + 5:02X} iz AI | 81 /{n} iz  rv/mv{dst} iz   int_alu wf {reads}
""" for n, (name, dst, reads, swap) in enumerate((
  ("add", "+", "", "commutes:01"), ("or", "+", "", "commutes:01"), ("adc", "+", "rf", "commutes:01"), ("sbb", "+", "rf", ""),
  ("and", "+", "", "commutes:01"), ("sub", "+", "", ""), ("xor", "+", "", "commutes:01"), ("cmp", "", "", ""))))

LOCKED = "".join(f"""
lock {name}  F0 {n * 8:02X} /r       m8+ r8      atomic wf barrier
lock {name}  F0 {n * 8 + 1:02X} /r   mv+ rv      atomic wf barrier
lock {name}  F0 80 /{n} ib           m8+ i8      atomic wf barrier
lock {name}  F0 83 /{n} ib | F0 81 /{n} iz       mv+ iz      atomic wf barrier
""" for n, name in ((0, "add"), (1, "or"), (4, "and"), (5, "sub"), (6, "xor")))

SHIFTS = "".join(f"""
{name}  D0 /{n} M1 | C0 /{n} ib      r8/m8+ u8    {pipe} wf {reads}
{name}  D1 /{n} M1 | C1 /{n} ib      rv/mv+ u8    {pipe} wf {reads}
{name}  D2 /{n}                      r8/m8+ cl    {pipe}_cl wf {reads}
{name}  D3 /{n}                      rv/mv+ cl    {pipe}_cl wf {reads}
""" for n, name, pipe, reads in ((0, "rol", "int_shift", ""), (1, "ror", "int_shift", ""), (2, "rcl", "int_rotate_carry", "rf"),
                                 (3, "rcr", "int_rotate_carry", "rf"), (4, "shl", "int_shift", ""), (5, "shr", "int_shift", ""),
                                 (7, "sar", "int_shift", "")))

BY_CONDITION = "".join(f"""
set{cc}   0F {0x90 + n:02X} /0               r8/m8=         int_alu rf
cmov{cc}  0F {0x40 + n:02X} /r               rv+ rv/mv      int_alu rf
j{cc}     {0x70 + n:02X} cb | 0F {0x80 + n:02X} cd   rel    branch rf jump
""" for n, cc in enumerate(CONDITIONS))

BIT_TESTS = "".join(f"""
{name}  0F {0x83 + n * 8:02X} /r         rv/mv{dst} rv     int_alu wf
{name}  0F BA /{n} ib                    rv/mv{dst} u8     int_alu wf
""" for n, name, dst in ((4, "bt", ""), (5, "bts", "+"), (6, "btr", "+"), (7, "btc", "+")))

OTHER = """
mov     88 /r                       r8/m8= r8         int_mov
mov     89 /r                       rv/mv= rv         int_mov
mov     8A /r                       r8= r8/m8         int_mov
mov     8B /r                       rv= rv/mv         int_mov
mov     B0+r ib | C6 /0 ib          r8/m8= i8         int_mov repeat
mov     66 B8+r iw | 66 C7 /0 iw    r16/m16= i16      int_mov repeat
mov     B8+r id | C7 /0 id          r32/m32= i32      int_mov repeat
mov     REX.W C7 /0 id              r64/m64= i32      int_mov repeat
movabs  REX.W B8+r io               r64= i64          int_mov repeat
movzx   0F B6 /r                    rv= r8/m8         int_mov
movzx   0F B7 /r                    ry= r16/m16       int_mov
movsx   0F BE /r                    rv= r8/m8         int_alu
movsx   0F BF /r                    ry= r16/m16       int_alu
movsxd  REX.W 63 /r                 r64= r32/m32      int_alu
movnti  0F C3 /r                    my= ry            store_nt
lea     8D /r                       rv= a             lea
test    84 /r                       r8/m8 r8          int_alu wf
test    85 /r                       rv/mv rv          int_alu wf
test    A8 ib AI | F6 /0 ib         r8/m8 i8          int_alu wf
test    A9 iz AI | F7 /0 iz         rv/mv iz          int_alu wf
inc     FE /0                       r8/m8+            int_alu wf
inc     FF /0                       rv/mv+            int_alu wf
dec     FE /1                       r8/m8+            int_alu wf
dec     FF /1                       rv/mv+            int_alu wf
not     F6 /2                       r8/m8+            int_alu
not     F7 /2                       rv/mv+            int_alu
neg     F6 /3                       r8/m8+            int_alu wf
neg     F7 /3                       rv/mv+            int_alu wf
mul     F6 /4                       (ax=) (al) r8/m8       int_mul wf
mul     F7 /4                       (Dv=) (Av+) rv/mv      int_mul_wide wf
imul    F6 /5                       (ax=) (al) r8/m8       int_mul wf
imul    F7 /5                       (Dv=) (Av+) rv/mv      int_mul_wide wf
imul    0F AF /r                    rv+ rv/mv              int_mul wf commutes:01
imul    6B /r ib | 69 /r iz         rv= rv/mv iz           int_mul wf
div     F6 /6                       (ax+) r8/m8            int_div wf
div     F7 /6                       (Av+) (Dv+) rv/mv      int_div wf
idiv    F6 /7                       (ax+) r8/m8            int_div wf
idiv    F7 /7                       (Av+) (Dv+) rv/mv      int_div wf
cbw     66 98                       (ax=) (al)        int_alu
cwde    98                          (eax=) (ax)       int_alu
cdqe    REX.W 98                    (rax=) (eax)      int_alu
cwd     66 99                       (dx=) (ax)        int_alu
cdq     99                          (edx=) (eax)      int_alu
cqo     REX.W 99                    (rdx=) (rax)      int_alu
shld    0F A4 /r ib                 rv/mv+ rv u8      int_shift_double wf
shld    0F A5 /r                    rv/mv+ rv cl      int_shift_double wf
shrd    0F AC /r ib                 rv/mv+ rv u8      int_shift_double wf
shrd    0F AD /r                    rv/mv+ rv cl      int_shift_double wf
bsf     0F BC /r                    rv= rv/mv         int_bit_scan wf
bsr     0F BD /r                    rv= rv/mv         int_bit_scan wf
bswap   0F C8+r                     ry+               int_alu
xchg    86 /r                       r8+ r8+           int_xchg
xchg    86 /r                       m8+ r8+           int_xchg
xchg    90+r OA | 87 /r RM          rv+ rv+           int_xchg
xchg    87 /r                       mv+ rv+           int_xchg
xadd    0F C0 /r                    r8/m8+ r8+        int_xchg wf
xadd    0F C1 /r                    rv/mv+ rv+        int_xchg wf
cmpxchg  0F B0 /r                   r8/m8+ r8 (al+)   int_xchg wf
cmpxchg  0F B1 /r                   rv/mv+ rv (Av+)   int_xchg wf
lock xadd     F0 0F C0 /r           m8+ r8+           atomic wf barrier
lock xadd     F0 0F C1 /r           mv+ rv+           atomic wf barrier
lock cmpxchg  F0 0F B0 /r           m8+ r8 (al+)      atomic wf barrier
lock cmpxchg  F0 0F B1 /r           mv+ rv (Av+)      atomic wf barrier
lock inc      F0 FF /0              mv+               atomic wf barrier
lock dec      F0 FF /1              mv+               atomic wf barrier
lock bts      F0 0F BA /5 ib        mv+ u8            atomic wf barrier
lock btr      F0 0F BA /6 ib        mv+ u8            atomic wf barrier
push    50+r                        r64               store_push store
push    FF /6                       m64               store_push store
push    6A ib | 68 id               i32               store_push store
pop     58+r                        r64=              load_pop load
pop     8F /0                       m64=              load_pop load
leave   C9                                            load_pop load barrier
jmp     EB cb | E9 cd               rel               branch jump end
jmp     FF /4                       r64/m64           branch end
call    E8 cd                       rel               branch call
call    FF /2                       r64/m64           branch call
ret     C3                                            branch end
ret     C2 iw                       u16               branch end
nop     90                                            nop
nop     0F 1F /0                    av                nop
pause   F3 90                                         pause barrier
ud2     0F 0B                                         trap end
int3    CC                                            trap barrier
hlt     F4                                            trap barrier
clc     F8                                            int_alu wf
stc     F9                                            int_alu wf
cmc     F5                                            int_alu rf wf
cld     FC                                            system barrier
mfence  0F AE F0                                      fence barrier load store
lfence  0F AE E8                                      fence barrier load
sfence  0F AE F8                                      fence barrier store
endbr64  F3 0F 1E FA                                  nop
cpuid   0F A2                       (eax+) (ebx=) (ecx+) (edx=)      system barrier
xgetbv  0F 01 D0                    (eax=) (edx=) (ecx)              system
rdtsc   0F 31                       (eax=) (edx=)                    system barrier
rdtscp  0F 01 F9                    (eax=) (edx=) (ecx=)             system barrier
syscall  0F 05                      (rax+) (rcx!) (r11!)             system barrier load store
ldmxcsr  0F AE /2                   m32               system barrier
stmxcsr  0F AE /3                   m32=              system barrier
prefetchnta  0F 18 /0               a8                prefetch
prefetcht0   0F 18 /1               a8                prefetch
prefetcht1   0F 18 /2               a8                prefetch
prefetcht2   0F 18 /3               a8                prefetch
prefetchw    0F 0D /1               a8                prefetch
rep movsb    F3 A4                  (rdi+) (rsi+) (rcx+)             string load store
rep movsq    F3 REX.W A5            (rdi+) (rsi+) (rcx+)             string load store
rep stosb    F3 AA                  (rdi+) (rcx+) (al)               string store
rep stosq    F3 REX.W AB            (rdi+) (rcx+) (rax)              string store

@ popcnt
popcnt  F3 0F B8 /r                 rv= rv/mv         int_bit_count wf
@ lzcnt
lzcnt   F3 0F BD /r                 rv= rv/mv         int_bit_count wf
@ bmi
tzcnt   F3 0F BC /r                 rv= rv/mv         int_bit_count wf
andn    VEX.LZ.0F38.Wy F2 /r        ry= ry ry/my      int_alu wf
bextr   VEX.LZ.0F38.Wy F7 /r RMV    ry= ry/my ry      int_bextr wf
blsr    VEX.LZ.0F38.Wy F3 /1        ry= ry/my         int_alu wf
blsmsk  VEX.LZ.0F38.Wy F3 /2        ry= ry/my         int_alu wf
blsi    VEX.LZ.0F38.Wy F3 /3        ry= ry/my         int_alu wf
@ bmi2
bzhi    VEX.LZ.0F38.Wy F5 /r RMV    ry= ry/my ry      int_alu wf
pdep    VEX.LZ.F2.0F38.Wy F5 /r     ry= ry ry/my      int_pdep
pext    VEX.LZ.F3.0F38.Wy F5 /r     ry= ry ry/my      int_pdep
mulx    VEX.LZ.F2.0F38.Wy F6 /r     ry= ry= (Dy) ry/my   int_mul_wide
rorx    VEX.LZ.F2.0F3A.Wy F0 /r ib  ry= ry/my u8      int_shift
sarx    VEX.LZ.F3.0F38.Wy F7 /r RMV  ry= ry/my ry     int_shift
shlx    VEX.LZ.66.0F38.Wy F7 /r RMV  ry= ry/my ry     int_shift
shrx    VEX.LZ.F2.0F38.Wy F7 /r RMV  ry= ry/my ry     int_shift
"""

TEXT = "@ base\n" + ALU + LOCKED + SHIFTS + BY_CONDITION + BIT_TESTS + OTHER
