"""Throughput of NVIDIA's GPUs: pipes, the tensor core, shared memory, caches and memory, of one typical card for each
architecture.

A table is text with one row a line. A row has three words:
- a pipe of the instruction table, or the name of an instruction, which takes precedence over its pipe;
- the resources of the sub-partition that a warp takes, separated by "|";
- the evidence.

`f*2` is two cycles of the FMA pipe. Every instruction takes an issue slot too. The cost of memory instructions depends
on their bytes and addresses (machine/model/traffic.py). Latencies are in latency.py.

Evidence: p published, a assumed. Nothing of this was measured here.

Published: CUDA C++ Programming Guide, "Throughput of Native Arithmetic Instructions". It counts results a cycle and SM,
of which a sub-partition has a fourth.
Published: white papers of A100, GA102, AD102 and H100 (units, clocks, rates of tensor cores, caches).
Published: Luo et al. 2024 (arXiv 2402.13499). On Hopper, products of one warp reach 62 % of the rate of four warps
(wgmma). The rate of four warps is the published peak: (64, N) x 16 steps of float16 in N / 2 cycles.
Published: 32 results of a warp shuffle a cycle and SM.
Assumed: a shuffle takes the place of an access in the crossbar of shared memory.
Assumed: two FMA pipes of half width count as one pipe.
Assumed: rates of second-level caches of Ada and Hopper.
"""
from __future__ import annotations

from tinyhw.isa.sass.model import latency
from tinyhw.isa.sass.table.units import UNITS, column
from tinyhw.machine.ir.costs import PipeCost
from tinyhw.machine.model.hardware import Hardware
from tinyhw.threads import once

# letter -> (scope of the warps that share it, name)
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
COSTS = {  # a later row replaces an earlier one
  "sm_80": COMMON + "half f p\nfp64 w*4 p\n",
  "sm_86": COMMON + WHOLE + "half f*2 p\nfp64 w*64 p\n",
  "sm_89": COMMON + WHOLE + "half f*2 p\nfp64 w*64 p\n",
  "sm_90": COMMON + WHOLE + "half f p\nfp64 w*2 p\n",
}

WARP_SHARE = 0.62  # of the peak of Hopper's tensor core, for products of one warp
_H100 = {kind: round(WARP_SHARE * rate, 1) for kind, rate in {"f16": 1024, "bf16": 1024, "tf32": 512,
                                                              "i8": 2048}.items()}
_H100 |= {"wgmma f16": 1024, "wgmma bf16": 1024, "wgmma i8": 2048, "wgmma fp8": 2048, "wgmma tf32": 512}
_H100 |= {"f64": 64, "vf32": 64, "vf16": 128, "vf64": 32}
_A100 = {"f16": 512, "bf16": 512, "tf32": 256, "i8": 1024, "f64": 32, "vf32": 32, "vf16": 128, "vf64": 16}
_3090 = {"f16": 128, "bf16": 128, "tf32": 64, "i8": 512, "vf32": 64, "vf16": 64, "vf64": 1}
_L40S = {"f16": 256, "bf16": 256, "tf32": 128, "i8": 512, "fp8": 512, "vf32": 64, "vf16": 64, "vf64": 1}

# Products are summed in float32. GeForces of Ada do that at half the rate of cards for workstations and servers; the
# card here is one of the latter
CARDS = {
  "sm_80": Hardware("A100 SXM", UNITS["sm_80"], 108, 1.41, 128, 64, 5120, 2039, 0, _A100, sector=32),
  "sm_86": Hardware("RTX 3090", UNITS["sm_86"], 82, 1.70, 128, 64, 2048, 936, 0, _3090, sector=32),
  "sm_89": Hardware("L40S", UNITS["sm_89"], 142, 2.52, 128, 64, 3072, 864, 0, _L40S, sector=32),
  "sm_90": Hardware("H100 SXM", UNITS["sm_90"], 132, 1.83, 128, 64, 5120, 3350, 0, _H100, sector=32),
}
SOURCE = ("published: CUDA C++ Programming Guide, NVIDIA's white papers, arXiv 2402.13499; assumed: conversions, "
          "caches; nothing is measured")

@once
def card(arch: str) -> Hardware:
  """Return the typical card of an architecture."""
  found = CARDS[column(arch)]
  return found._replace(latency=latency.COSTS["memory"].latency, local_latency=latency.COSTS["LDS"].latency,
                        guard_latency=latency.LATENCIES["alu"].guard)

@once
def costs(arch: str) -> dict[str, PipeCost]:
  """Return rows by name. Resources are in the notation of PipeCost, without the issue slot."""
  found = {}
  for line in COSTS[column(arch)].split("\n"):
    words = line.split()
    if not words: continue
    name, takes, _ = words
    parts = [part.partition("*") for part in takes.split("|")]
    found[name] = PipeCost(0, "|".join(letter for letter, _, times in parts for _ in range(int(times or 1))))
  return found
