"""Costs of instructions of AMD's GPUs: latency and resources by kind of instruction, cycles of matrix instructions.
Cards are in rates.py.

A table is text, a row is a line. Its first column is a pipe of the instruction table, or an instruction's name, which
takes precedence over its pipe. The second column is the number of cycles until the result is available. The third lists
the resources that a wave takes, separated by "|", and the last is the evidence. Resources are letters; `v*4` is four
cycles of the vector unit.

The resources of LDS and caches that memory instructions take depend on their bytes. Their rows list only the latency
and the minimum of resources. All rows are for waves of the usual size. A wave of 64 lanes on RDNA takes vector units
twice as long.

Evidence: p published, a assumed. Nothing of this was measured here: there was no AMD GPU.

Published:
- LLVM, SISchedule.td: latencies of RDNA3 and of CDNA's pipelines, in steps of 4 cycles there.
- AMD's matrix instruction calculator: cycles of matrix instructions.
- MI300 and RDNA3 ISA guides.
- Chips and Cheese, "Latency testing is hard" (2023-06-14): the last-level cache of a 7900 XTX answers vector loads
  after 150.3 ns and scalar ones after 128.4 ns. At 2.5 GHz these are 376 and 321 cycles.
- CDNA 3 white paper: rates of its caches.
- RDNA3 ISA guide, "Dual Issue VALU": each of the four banks of vector registers delivers a first, a second and a third
  source at once. So no instruction waits for registers. Pairs of operations that would wait are never made (check.py).

Assumed:
- WMMA holds the vector unit of its SIMD.
- RDNA4's latencies are those of RDNA3, where LLVM has no table of its own. Its last-level cache is as fast relative to
  its memory.
- The latencies of LDS, and those of CDNA's memory, whose last-level cache is on another die.
"""
from __future__ import annotations

from tinyhw.isa.amd.rows.matrix import ProductShape
from tinyhw.machine.ir.costs import PipeCost
from tinyhw.threads import once

# letter -> the unit whose waves share the resource, its description
RESOURCES = {"v": ("simd", "the vector unit"), "t": ("simd", "the unit of transcendental functions"),
             "x": ("simd", "the matrix unit"),
             "s": ("simd", "the scalar unit"), "b": ("simd", "the branch unit"), "c": ("unit", "scalar memory"),
             "d": ("unit", "LDS"),
             "g": ("unit", "vector memory"), "2": ("unit", "the second-level cache"),
             "l": ("unit", "the last-level cache"), "m": ("unit", "memory")}

RDNA3 = """
salu            2    s        p
branch          1    b        a   # taken ones stall the wave longer, others go on meanwhile
message         20   b        a
valu            5    v        p
v_mul_lo_u32    8    v*4      p
v_mul_hi_u32    8    v*4      p
v_mul_hi_i32    8    v*4      p
v_mad_u64_u32   8    v*4      p
v_mad_i64_i32   8    v*4      p
dual            5    v        p
dot             5    v        a
trans           10   v|t*4    p
f64             38   v*16     p
wmma            4    -        a   # after its own cycles
smem            321  c        p
vmem            376  g        p
flat            376  g        p
lds             64   d        a
"""
RDNA4 = RDNA3

CDNA3 = """
salu            4    s*4      p
branch          4    b*4      a
valu            4    v*4      p
v_mul_lo_u32    4    v*4      p
dual            4    v*4      p
dot             4    v*4      a
trans           16   v*16     p
f64             4    v*4      p
mfma            4    v*4      a   # after its own cycles
smem            400  c        a
vmem            700  g        a
flat            700  g        a
lds             128  d        a
"""
COSTS = {"cdna": CDNA3, "rdna3": RDNA3, "rdna4": RDNA4}
ISSUE = {"cdna": 4.0, "rdna3": 1.0, "rdna4": 1.0}  # cycles between two instructions of one wave
MATRIX_SHARES_VECTOR = ("rdna3", "rdna4")          # a matrix product holds the vector unit too

@once
def costs(family: str) -> dict[str, PipeCost]:
  """Parse a family's table: name -> latency, and resources in the notation of PipeCost."""
  found = {}
  for line in COSTS[family].splitlines():
    words = line.split("#")[0].split()
    if not words: continue
    name, latency, takes, _ = words
    parts = [] if takes == "-" else [part.partition("*") for part in takes.split("|")]
    found[name] = PipeCost(int(latency), "|".join(letter for letter, _, times in parts for _ in range(int(times or 1))))
  return found

# ***** matrix products *****

# CDNA: rows of a block -> cycles of one block, and of several at once. Types of 8 and 16 bits take the same time,
# whatever their number of k steps.
BLOCK = {32: 32, 16: 16}
BLOCKS = {32: 64, 16: 32, 4: 8}
# RDNA: bits of an element -> cycles
WMMA = {"rdna3": {16: 32, 8: 32, 4: 16}, "rdna4": {16: 16, 8: 8, 4: 8}}
BITS = {"f16": 16, "bf16": 16, "f32": 32, "xf32": 32, "f64": 64, "iu4": 4}

def shape_of(name: str) -> ProductShape:
  """The shape in an instruction's name: v_wmma_f32_16x16x16_f16."""
  name = name.removeprefix("v_mfma_scale_") if name.startswith("v_mfma_scale_") else name.split("_", 2)[2]
  return ProductShape(name)

def element_of_matrix(name: str) -> str:
  """The type of A in a matrix instruction's name: f16, bf16, xf32, iu8 ..."""
  return "xf32" if name.endswith("_xf32") else shape_of(name).a

@once
def matrix_cycles(name: str, generation: str, family: str) -> int:
  """Cycles that a matrix product holds the matrix unit.

  Source: AMD's matrix instruction calculator; CDNA4's own shapes: CDNA4 ISA guide, section 7.
  """
  shape = shape_of(name)
  if family != "cdna": return WMMA[family][BITS.get(shape.a, 8)]
  slower = 2 if generation == "gfx950" else 1
  if shape.a == "f64": return {16: 32 * slower, 4: 16}[shape.m]
  if shape.a == "f8f6f4": return 2 * BLOCK[shape.m]
  if shape.blocks > 1: return BLOCKS[shape.m]
  return BLOCK[shape.m] * (2 if element_of_matrix(name) == "f32" else 1)
