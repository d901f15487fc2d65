"""Measure latency and reciprocal throughput of instructions on this machine, and compare with the table of its
microarchitecture.

  python3 test/bench/latency.py [pipe ...]

A probe is a line of assembly for our own assembler. Latency: {d} is one register, so that each instruction waits for
the one before; throughput: {d} goes through many. Times are in cycles of the core: the time of a chain of `add`, which
takes one cycle each, is the unit, so that the clock's frequency does not matter. The least of many runs is taken: noise
only ever adds.

What is measured is a row of the latency tables (tinyhw/isa/x86/latency_*.py), marked "m" there; what a chain cannot
tell apart (a way from a vector register to a general one and back) is measured as a sum.
"""
from __future__ import annotations
import ctypes
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tinyhw import device
from tinyhw.drivers.cpu import processor
from tinyhw.drivers.cpu.memory import CodeArena
from tinyhw.isa.x86.asm.syntax import assemble_function, parse
from tinyhw.isa.x86.model.latency import Microarchitecture, find, microarchitecture
from tinyhw.machine.model.scoreboard import bound

GENERAL = ("rax", "rdx", "rsi", "r8", "r9", "r10", "r12", "r13")
VECTORS = tuple(str(i) for i in range(12))  # 12 and up are inputs that never change
SAVED = ("rbx", "rbp", "r12", "r13", "r14", "r15")
UNROLL, ITERATIONS, RUNS = 48, 60, 40

# pipe of the table, latency chain, throughput, where the two differ; {d}: vector number or general register, {m}: a
# mask register. Inputs: vectors 12 to 15 (1.0, and vector 13 a full mask), rbp (3), rcx (5), k7 (all lanes), memory
# [rbx] (zeros, then pointers to itself from 64 on).
PROBES = [line.split(" ; ") for line in """
int_alu ; add {d}, rbp ; add {d}, rbp
int_mov ; - ; mov {d}, rbp
int_mov/memory ; - ; mov {d}, qword ptr [rbx]
load ; mov {d}, qword ptr [{d}] ; mov {d}, qword ptr [rbx]
store ; - ; mov qword ptr [rbx + 128], rbp
lea ; lea {d}, [{d} + 8] ; lea {d}, [rbp + 8]
int_shift ; shl {d}, 3 ; shl {d}, 3
int_shift_cl ; shl {d}, cl ; shl {d}, cl
int_shift_double ; shld {d}, rbp, 3 ; shld {d}, rbp, 3
int_rotate_carry ; rcl {d}, 1 ; rcl {d}, 1
int_mul ; imul {d}, rbp ; imul {d}, rbp
int_bit_count ; popcnt {d}, {d} ; popcnt {d}, rbp
int_bit_scan ; bsr {d}, {d} ; bsr {d}, rbp
int_bextr ; bextr {d}, {d}, rbp ; bextr {d}, rbp, rbp
int_pdep ; pdep {d}, {d}, rbp ; pdep {d}, rbp, rbp
int_xchg ; xchg {d}, rbp ; -
fp_add ; vaddps ymm{d}, ymm{d}, ymm12 ; vaddps ymm{d}, ymm12, ymm12
fp_mul ; vmulps ymm{d}, ymm{d}, ymm12 ; vmulps ymm{d}, ymm12, ymm12
fma ; vfmadd231ps ymm{d}, ymm12, ymm12 ; vfmadd231ps ymm{d}, ymm12, ymm12
fma/memory ; vfmadd231ps ymm{d}, ymm12, ymmword ptr [rbx] ; vfmadd231ps ymm{d}, ymm12, ymmword ptr [rbx]
fp_min ; vminps ymm{d}, ymm{d}, ymm12 ; vminps ymm{d}, ymm12, ymm12
fp_compare ; vcmpps ymm{d}, ymm{d}, ymm12, 1 ; vcmpps ymm{d}, ymm12, ymm12, 1
fp_compare_flags ; - ; vucomiss xmm12, xmm12
fp_round ; vroundps ymm{d}, ymm{d}, 3 ; vroundps ymm{d}, ymm12, 3
fp_estimate ; vrcpps ymm{d}, ymm{d} ; vrcpps ymm{d}, ymm12
fp_horizontal ; vhaddps ymm{d}, ymm{d}, ymm12 ; vhaddps ymm{d}, ymm12, ymm12
fp_dot ; vdpps ymm{d}, ymm{d}, ymm12, 255 ; vdpps ymm{d}, ymm12, ymm12, 255
div_f32 ; vdivps ymm{d}, ymm{d}, ymm12 ; vdivps ymm{d}, ymm12, ymm12
div_f64 ; vdivpd ymm{d}, ymm{d}, ymm12 ; vdivpd ymm{d}, ymm12, ymm12
sqrt_f32 ; vsqrtps ymm{d}, ymm{d} ; vsqrtps ymm{d}, ymm12
sqrt_f64 ; vsqrtpd ymm{d}, ymm{d} ; vsqrtpd ymm{d}, ymm12
vec_alu ; vpaddd ymm{d}, ymm{d}, ymm12 ; vpaddd ymm{d}, ymm12, ymm12
vec_logic ; vandps ymm{d}, ymm{d}, ymm12 ; vandps ymm{d}, ymm12, ymm13
vec_compare ; vpcmpgtd ymm{d}, ymm{d}, ymm12 ; vpcmpgtd ymm{d}, ymm12, ymm13
vec_compare_q ; vpcmpgtq ymm{d}, ymm{d}, ymm12 ; vpcmpgtq ymm{d}, ymm12, ymm13
vec_mul ; vpmuludq ymm{d}, ymm{d}, ymm12 ; vpmuludq ymm{d}, ymm12, ymm12
vec_mul_d ; vpmulld ymm{d}, ymm{d}, ymm12 ; vpmulld ymm{d}, ymm12, ymm12
vec_sad ; vpsadbw ymm{d}, ymm{d}, ymm12 ; vpsadbw ymm{d}, ymm12, ymm12
vec_shift ; vpslld ymm{d}, ymm{d}, 3 ; vpslld ymm{d}, ymm12, 3
vec_shift ; vpsllvd ymm{d}, ymm{d}, ymm12 ; vpsllvd ymm{d}, ymm12, ymm12
vec_shift_by_xmm ; vpslld ymm{d}, ymm{d}, xmm12 ; vpslld ymm{d}, ymm12, xmm12
vec_horizontal ; vphaddd ymm{d}, ymm{d}, ymm12 ; vphaddd ymm{d}, ymm12, ymm12
vec_test ; - ; vptest ymm12, ymm12
vec_mov ; - ; vmovaps ymm{d}, ymm12
vec_mov/memory ; - ; vmovups ymm{d}, ymmword ptr [rbx]
load/128 ; - ; vmovss xmm{d}, dword ptr [rbx]
store/256 ; - ; vmovups ymmword ptr [rbx + 128], ymm12
shuffle ; vunpcklps ymm{d}, ymm{d}, ymm12 ; vunpcklps ymm{d}, ymm12, ymm12
shuffle ; vpshufb ymm{d}, ymm{d}, ymm12 ; vpshufb ymm{d}, ymm12, ymm12
shuffle_lane ; vperm2f128 ymm{d}, ymm{d}, ymm12, 33 ; vperm2f128 ymm{d}, ymm12, ymm12, 33
shuffle_lane ; vpermps ymm{d}, ymm{d}, ymm12 ; vpermps ymm{d}, ymm12, ymm12
shuffle_lane ; vinsertf128 ymm{d}, ymm{d}, xmm{d}, 1 ; vinsertf128 ymm{d}, ymm12, xmm12, 1
shuffle_lane ; vextractf128 xmm{d}, ymm{d}, 1 ; vextractf128 xmm{d}, ymm12, 1
broadcast ; vbroadcastss ymm{d}, xmm{d} ; vbroadcastss ymm{d}, xmm12
broadcast/memory ; - ; vbroadcastss ymm{d}, dword ptr [rbx]
blend ; vblendps ymm{d}, ymm{d}, ymm12, 5 ; vblendps ymm{d}, ymm12, ymm13, 5
blend_variable ; vblendvps ymm{d}, ymm{d}, ymm12, ymm13 ; vblendvps ymm{d}, ymm12, ymm12, ymm13
extend ; vpmovzxbd ymm{d}, xmm{d} ; vpmovzxbd ymm{d}, xmm12
convert ; vcvtdq2ps ymm{d}, ymm{d} ; vcvtdq2ps ymm{d}, ymm12
convert_width ; vcvtps2pd ymm{d}, xmm{d} ; vcvtps2pd ymm{d}, xmm12
convert_half ; vcvtph2ps ymm{d}, xmm{d} ; vcvtph2ps ymm{d}, xmm12
int_to_vec + vec_to_int ; vmovq rax, xmm0 | vmovq xmm0, rax ; -
int_to_vec ; - ; vmovq xmm{d}, rbp
vec_to_int ; - ; vmovq {g}, xmm12
vec_to_int ; - ; vmovmskps {g:32}, ymm12
convert_from_int + convert_to_int ; vcvttss2si eax, xmm0 | vcvtsi2ss xmm0, xmm0, eax ; -
convert_from_int ; - ; vcvtsi2ss xmm{d}, xmm12, ebp
convert_to_int ; - ; vcvttss2si {g:32}, xmm12
load/256 + vec_to_int ; vmovups ymm0, ymmword ptr [rax] | vmovq rax, xmm0 ; -
load_masked ; - ; vmaskmovps ymm{d}, ymm13, ymmword ptr [rbx]
store_masked ; - ; vmaskmovps ymmword ptr [rbx + 128], ymm13, ymm12
gather ; - ; vpcmpeqd ymm13, ymm13, ymm13 | vgatherdps ymm{d}, dword ptr [rbx + 4*ymm15], ymm13
atomic ; - ; lock add qword ptr [rbx + 256], rbp
pause ; - ; pause
int_div ; xor edx, edx | div rbp | or rax, r9 ; -
int_mul_wide ; mul rbp ; -
nop ; - ; nop
""".strip().splitlines()]

# The same, where the processor has AVX-512.
PROBES_512 = [line.split(" ; ") for line in """
fp_add/512 ; vaddps zmm{d}, zmm{d}, zmm12 ; vaddps zmm{d}, zmm12, zmm12
fp_mul/512 ; vmulps zmm{d}, zmm{d}, zmm12 ; vmulps zmm{d}, zmm12, zmm12
fma/512 ; vfmadd231ps zmm{d}, zmm12, zmm12 ; vfmadd231ps zmm{d}, zmm12, zmm12
fma/512 ; - ; vfmadd231ps zmm{d}, zmm12, dword ptr [rbx + 64]{1to16}
fp_min/512 ; vminps zmm{d}, zmm{d}, zmm12 ; vminps zmm{d}, zmm12, zmm12
fp_round/512 ; vrndscaleps zmm{d}, zmm{d}, 3 ; vrndscaleps zmm{d}, zmm12, 3
fp_estimate/512 ; vrcp14ps zmm{d}, zmm{d} ; vrcp14ps zmm{d}, zmm12
div_f32/512 ; vdivps zmm{d}, zmm{d}, zmm12 ; vdivps zmm{d}, zmm12, zmm12
div_f64/512 ; vdivpd zmm{d}, zmm{d}, zmm12 ; vdivpd zmm{d}, zmm12, zmm12
sqrt_f32/512 ; vsqrtps zmm{d}, zmm{d} ; vsqrtps zmm{d}, zmm12
sqrt_f64/512 ; vsqrtpd zmm{d}, zmm{d} ; vsqrtpd zmm{d}, zmm12
div_f32/128 ; vdivss xmm{d}, xmm{d}, xmm12 ; vdivss xmm{d}, xmm12, xmm12
div_f64/128 ; vdivsd xmm{d}, xmm{d}, xmm12 ; vdivsd xmm{d}, xmm12, xmm12
sqrt_f32/128 ; vsqrtss xmm{d}, xmm{d}, xmm{d} ; vsqrtss xmm{d}, xmm12, xmm12
sqrt_f64/128 ; vsqrtsd xmm{d}, xmm{d}, xmm{d} ; vsqrtsd xmm{d}, xmm12, xmm12
vec_alu/512 ; vpaddd zmm{d}, zmm{d}, zmm12 ; vpaddd zmm{d}, zmm12, zmm12
vec_logic/512 ; vpandd zmm{d}, zmm{d}, zmm12 ; vpandd zmm{d}, zmm12, zmm13
vec_logic/512 ; vpternlogd zmm{d}, zmm12, zmm13, 150 ; vpternlogd zmm{d}, zmm12, zmm13, 150
vec_dot ; vpdpbusd ymm{d}, ymm12, ymm13 ; vpdpbusd ymm{d}, ymm12, ymm13
vec_dot/512 ; vpdpbusd zmm{d}, zmm12, zmm13 ; vpdpbusd zmm{d}, zmm12, zmm13
bf16_dot ; vdpbf16ps ymm{d}, ymm12, ymm13 ; vdpbf16ps ymm{d}, ymm12, ymm13
bf16_dot/512 ; vdpbf16ps zmm{d}, zmm12, zmm13 ; vdpbf16ps zmm{d}, zmm12, zmm13
vec_mul/512 ; vpmuludq zmm{d}, zmm{d}, zmm12 ; vpmuludq zmm{d}, zmm12, zmm12
vec_mul_d/512 ; vpmulld zmm{d}, zmm{d}, zmm12 ; vpmulld zmm{d}, zmm12, zmm12
vec_mul_q ; vpmullq ymm{d}, ymm{d}, ymm12 ; vpmullq ymm{d}, ymm12, ymm12
vec_mul_q/512 ; vpmullq zmm{d}, zmm{d}, zmm12 ; vpmullq zmm{d}, zmm12, zmm12
vec_shift/512 ; vpsllvd zmm{d}, zmm{d}, zmm12 ; vpsllvd zmm{d}, zmm12, zmm12
vec_shift_by_xmm/512 ; vpslld zmm{d}, zmm{d}, xmm12 ; vpslld zmm{d}, zmm12, xmm12
vec_mov/512 ; - ; vmovaps zmm{d}, zmm12
load/512 ; - ; vmovups zmm{d}, zmmword ptr [rbx]
store/512 ; - ; vmovups zmmword ptr [rbx + 128], zmm12
vec_mov/memory ; - ; vmovups zmm{d}{k7}{z}, zmmword ptr [rbx]
vec_mov/memory ; - ; vmovups zmmword ptr [rbx + 128]{k7}, zmm12
shuffle/512 ; vunpcklps zmm{d}, zmm{d}, zmm12 ; vunpcklps zmm{d}, zmm12, zmm12
shuffle/512 ; vpshufb zmm{d}, zmm{d}, zmm12 ; vpshufb zmm{d}, zmm12, zmm12
shuffle_lane/512 ; vpermps zmm{d}, zmm{d}, zmm12 ; vpermps zmm{d}, zmm12, zmm12
shuffle_lane/512 ; vinsertf64x4 zmm{d}, zmm{d}, ymm{d}, 1 ; vinsertf64x4 zmm{d}, zmm12, ymm12, 1
shuffle_lane/512 ; vextractf64x4 ymm{d}, zmm{d}, 1 ; vextractf64x4 ymm{d}, zmm12, 1
broadcast/512 ; vbroadcastss zmm{d}, xmm{d} ; vbroadcastss zmm{d}, xmm12
broadcast/512 ; - ; vpbroadcastd zmm{d}, ebp
blend/512 ; vblendmps zmm{d}{k7}, zmm{d}, zmm12 ; vblendmps zmm{d}{k7}, zmm12, zmm13
extend/512 ; vpmovzxbd zmm{d}, xmm{d} ; vpmovzxbd zmm{d}, xmm12
narrow/512 ; vpmovdb xmm{d}, zmm{d} ; vpmovdb xmm{d}, zmm12
compress/512 ; vcompressps zmm{d}{k7}{z}, zmm{d} ; vcompressps zmm{d}{k7}{z}, zmm12
convert/512 ; vcvtdq2ps zmm{d}, zmm{d} ; vcvtdq2ps zmm{d}, zmm12
convert_width/512 ; vcvtps2pd zmm{d}, ymm{d} ; vcvtps2pd zmm{d}, ymm12
convert_half/512 ; vcvtph2ps zmm{d}, ymm{d} ; vcvtph2ps zmm{d}, ymm12
gather/512 ; - ; kxnorw k{m}, k7, k7 | vgatherdps zmm{d}{k{m}}, dword ptr [rbx + 4*zmm15]
scatter/512 ; - ; kxnorw k{m}, k7, k7 | vscatterdps dword ptr [rbx + 4*zmm14 + 128]{k{m}}, zmm15
vec_compare_mask ; - ; vpcmpgtd k{m}, zmm12, zmm13
vec_compare_mask ; - ; vcmpps k{m}, zmm12, zmm13, 1
vec_compare_mask + mask_to_vec ; vpcmpgtd k1, zmm0, zmm12 | vpmovm2d zmm0, k1 ; -
vec_to_mask + mask_to_vec ; vpmovd2m k1, zmm0 | vpmovm2d zmm0, k1 ; -
vec_to_mask ; - ; vpmovd2m k{m}, zmm12
mask_to_vec ; - ; vpmovm2d zmm{d}, k7
mask_logic ; kandq k1, k1, k7 ; kandq k{m}, k7, k7
mask_mov ; - ; kmovq k{m}, k7
mask_shift ; kshiftrq k1, k1, 3 ; kshiftrq k{m}, k7, 3
mask_test ; - ; kortestq k7, k7
int_to_mask + mask_to_int ; kmovq k1, rax | kmovq rax, k1 ; -
int_to_mask ; - ; kmovq k{m}, rbp
mask_to_int ; - ; kmovq {g}, k7
""".strip().splitlines()]

FRAME = """
{pushes}
  mov rbx, rdi
  mov r15, rsi
  mov ebp, 3
  mov ecx, 5
  mov rax, rbx
  add rax, 64
  mov rdx, rax
  mov r8, rax
  mov r9, rax
  vmovups ymm12, ymmword ptr [rdi + 1024]
  vpcmpeqd ymm13, ymm13, ymm13
  vpxor ymm15, ymm15, ymm15
{wide}
{fill}
  lfence
  rdtsc
  shl rdx, 32
  or rax, rdx
  mov r14, rax
  mov rax, r8
  mov rdx, r8
  lfence
.loop:
{body}
  sub r15, 1
  jne .loop
  lfence
  rdtsc
  shl rdx, 32
  or rax, rdx
  sub rax, r14
  vzeroupper
{pops}
  ret
"""

# What AVX-512 adds before the loop: the upper halves of the inputs, places 64 bytes apart for a scatter (lane k is 16 *
# k), and all lanes
WIDE = """
  vmovups zmm12, zmmword ptr [rdi + 1024]
  vpternlogd zmm13, zmm13, zmm13, 255
  vmovups zmm14, zmmword ptr [rdi + 1088]
  kxnorq k7, k7, k7
"""

def fill(template: str, d: str, g: str, m: str) -> list[str]:
  """The lines of a template: {d}, {g} and {m} are registers, {g:32} is the low half of one."""
  low = f"e{g[1:]}" if g[1:].isalpha() else f"{g}d"
  return [part.strip() for part in template.replace("{d}", d).replace("{g}",
                                                                      g).replace("{g:32}",
                                                                                 low).replace("{m}", m).split(" | ")]

class Bench:
  """Runs pieces of assembly.

  Times are ticks of the time stamp counter; the core's own cycle is measured beside each probe.
  """
  def __init__(self, wide: bool) -> None:
    self.arena, self.wide = CodeArena(), wide
    raw = ctypes.create_string_buffer(1 << 16)
    start = -ctypes.addressof(raw) % 4096
    self.raw, self.address = raw, ctypes.addressof(raw) + start
    # memory that points to itself
    ctypes.memmove(self.address + 64, (ctypes.c_uint64 * 4)(*[self.address + 64] * 4), 32)
    ctypes.memmove(self.address + 1024, (ctypes.c_float * 16)(*[1.0] * 16), 64)
    ctypes.memmove(self.address + 1088, (ctypes.c_int32 * 16)(*[16 * k for k in range(16)]), 64)

  def ticks(self, lines: list[str]) -> float:
    """Ticks for all the lines once, least of RUNS."""
    text = FRAME.format(pushes="\n".join(f"  push {r}" for r in SAVED),
                        pops="\n".join(f"  pop {r}" for r in reversed(SAVED)),
                        wide=WIDE if self.wide else "", fill="\n".join(f"  vmovups ymm{i}, ymm12" for i in range(12)),
                        body="\n".join(lines))
    address, chunk = self.arena.add(assemble_function(text))
    call = ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_void_p, ctypes.c_uint64)(address)
    best = min(call(self.address, ITERATIONS) for _ in range(RUNS))
    self.arena.release(chunk)
    return best / ITERATIONS

  def cycles(self, template: str, registers: tuple[str, ...]) -> float:
    """Cycles that the template takes each time, {d} going through the registers."""
    def text(count: int) -> list[str]:
      lines: list[str] = []
      for i in range(count):
        lines += fill(template, registers[i % len(registers)], GENERAL[i % len(GENERAL)], str(1 + i % 6))
      return lines
    units, probes = [], []
    for _ in range(4):  # in turns, so that both see the same frequencies; noise only ever adds, to either
      units.append((self.ticks(["add rax, rbp"] * 2 * UNROLL) - self.ticks(["add rax, rbp"] * UNROLL)) / UNROLL)
      probes.append((self.ticks(text(2 * UNROLL)) - self.ticks(text(UNROLL))) / UNROLL)
    return min(probes) / min(units)

def expected(table: Microarchitecture, template: str) -> tuple[float, float]:
  """Latency of a chain and reciprocal throughput that the table gives for a template."""
  insts = [parse(line) for line in fill(template, "0" if "mm{d}" in template else "rax", "rax", "1")]
  found = bound(insts, table.costs, table.issue_width)
  return found.latency, max(found.ports, found.issue)

def main(wanted: list[str]) -> None:
  found_here = processor(device.runtime)
  wide = "avx512bw" in found_here.features and "avx512dq" in found_here.features
  bench, table = Bench(wide), find(microarchitecture(found_here.vendor, found_here.signature, found_here.features))
  print(f"{found_here.vendor}, signature {found_here.signature:#x}: table {table.name}")
  print(f"{'pipe':34s} {'latency':>8s} {'table':>6s} {'per':>8s} {'table':>6s}  instruction")
  for pipe, chain, stream in PROBES + (PROBES_512 if wide else []):
    if wanted and not any(w in pipe for w in wanted): continue
    found = [" " * 8, " " * 6, " " * 8, " " * 6]
    vectors = "mm{d}" in chain + stream
    if chain != "-":
      latency = bench.cycles(chain, ("0",) if vectors else ("rax",))
      found[:2] = f"{latency:8.2f}", f"{expected(table, chain)[0]:6.2f}"
    if stream != "-":
      each = bench.cycles(stream, VECTORS if vectors else GENERAL)
      found[2:] = f"{each:8.2f}", f"{expected(table, stream)[1]:6.2f}"
    print(f"{pipe:34s} {' '.join(found)}  {chain if chain != '-' else stream}", flush=True)

if __name__ == "__main__": main(sys.argv[1:])
