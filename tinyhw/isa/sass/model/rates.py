"""How much NVIDIA's GPUs do in a cycle: pipes, the tensor core, shared memory, caches and memory, of one typical card
for each architecture.

A table is text, a row a line: a pipe of the instruction table, or an instruction's name, which goes before its pipe;
what a warp takes of which resource of its sub-partition, separated by "|"; evidence. `f*2` is two cycles of the FMA
pipe. Every instruction takes an issue slot besides. What memory instructions take depends on their bytes and addresses
(machine/model/traffic.py). Latencies are in latency.py.

Evidence: p published, a assumed. Nothing of this was measured here.

Published: CUDA C++ Programming Guide, "Throughput of Native Arithmetic Instructions" (results a cycle and SM; a
sub-partition has a fourth); white papers of A100, GA102, AD102 and H100 (units, clocks, rates of tensor cores, caches);
Luo et al. 2024 (arXiv 2402.13499): on Hopper products of a warp reach 62 % of what those of four warps (wgmma) do,
which is its published peak: (64, N) x 16 steps of float16 in N / 2 cycles.
Published: 32 results of a warp shuffle a cycle and SM. Assumed: it is shared memory's crossbar that does them, in the
place of an access.
Assumed: two instructions of FMA pipes that are half as wide each count as one pipe; rates of second-level caches of Ada
and Hopper.
"""
from __future__ import annotations

from tinyhw.isa.sass.table.units import UNITS, column
from tinyhw.machine.ir.costs import PipeCost
from tinyhw.machine.model.hardware import Hardware
from tinyhw.once import once

# letter -> whose warps share it, what it is
RESOURCES = {"i": ("simd", "the issue slots"), "f": ("simd", "the FMA pipe"), "a": ("simd", "the ALU pipe"),
             "w": ("simd", "the FP64 pipe"),
             "s": ("simd", "the special function unit"), "x": ("simd", "the tensor core"),
             "u": ("simd", "the uniform datapath"),
             "d": ("unit", "shared memory"), "g": ("unit", "the first-level cache"),
             "2": ("unit", "the second-level cache"), "m": ("unit", "memory")}

COMMON = """
alu             a*2      p
fma             f*2      p
pack            a*2      a
convert         s*8      a
xu              s*8      p
uniform         u*2      a
r2ur            a*2      a
warp            a*2      a
SHFL            d        p
"""
WHOLE = """
FADD            f        p
FMUL            f        p
FFMA            f        p
"""
COSTS = {  # a later row takes the place of an earlier one
  "sm_80": COMMON + "half f p\nfp64 w*4 p\n",
  "sm_86": COMMON + WHOLE + "half f*2 p\nfp64 w*64 p\n",
  "sm_89": COMMON + WHOLE + "half f*2 p\nfp64 w*64 p\n",
  "sm_90": COMMON + WHOLE + "half f p\nfp64 w*2 p\n",
}

WARP_SHARE = 0.62  # of Hopper's tensor core that products of one warp reach
_H100 = {kind: round(WARP_SHARE * rate, 1) for kind, rate in {"f16": 1024, "bf16": 1024, "tf32": 512,
                                                              "i8": 2048}.items()}
_H100 |= {"wgmma f16": 1024, "wgmma bf16": 1024, "wgmma i8": 2048, "wgmma fp8": 2048, "wgmma tf32": 512}
_H100 |= {"f64": 64, "vf32": 64, "vf16": 128, "vf64": 32}
_A100 = {"f16": 512, "bf16": 512, "tf32": 256, "i8": 1024, "f64": 32, "vf32": 32, "vf16": 128, "vf64": 16}
_3090 = {"f16": 128, "bf16": 128, "tf32": 64, "i8": 512, "vf32": 64, "vf16": 64, "vf64": 1}
_L40S = {"f16": 256, "bf16": 256, "tf32": 128, "i8": 512, "fp8": 512, "vf32": 64, "vf16": 64, "vf64": 1}

# Products are summed in float32. The GeForces of Ada do that half as fast as cards for workstations and servers, of
# which one is here
CARDS = {
  "sm_80": Hardware("A100 SXM", UNITS["sm_80"], 108, 1.41, 128, 64, 5120, 2039, 0, _A100, sector=32),
  "sm_86": Hardware("RTX 3090", UNITS["sm_86"], 82, 1.70, 128, 64, 2048, 936, 0, _3090, sector=32),
  "sm_89": Hardware("L40S", UNITS["sm_89"], 142, 2.52, 128, 64, 3072, 864, 0, _L40S, sector=32),
  "sm_90": Hardware("H100 SXM", UNITS["sm_90"], 132, 1.83, 128, 64, 5120, 3350, 0, _H100, sector=32),
}
SOURCE = ("published: CUDA C++ Programming Guide, NVIDIA's white papers, arXiv 2402.13499; assumed: conversions, "
          "caches; nothing is measured")

@once
def costs(arch: str) -> dict[str, PipeCost]:
  """Rows by name: what is taken in the notation of PipeCost, an issue slot not counted."""
  found = {}
  for line in COSTS[column(arch)].split("\n"):
    words = line.split()
    if not words: continue
    name, takes, _ = words
    parts = [part.partition("*") for part in takes.split("|")]
    found[name] = PipeCost(0, "|".join(letter for letter, _, times in parts for _ in range(int(times or 1))))
  return found
