"""Sizes and rates of AMD cards, one for each architecture, for the model of listings.

Costs of instructions are in latency.py, with their evidence.
"""
from __future__ import annotations

from tinyhw.isa.amd.model.latency import MATRIX_SHARES_VECTOR, costs
from tinyhw.isa.amd.model.units import UNITS, unit_of
from tinyhw.isa.amd.table.form import Generation
from tinyhw.machine.model.hardware import Hardware
from tinyhw.threads import once

_RDNA3_FLOPS = {"f16": 256, "bf16": 256, "iu8": 256, "iu4": 512, "vf32": 128, "vf16": 128, "vf64": 4}
_RDNA4_FLOPS = {"f16": 512, "bf16": 512, "iu8": 1024, "iu4": 2048, "fp8": 1024, "bf8": 1024, "vf32": 128, "vf16": 128,
                "vf64": 4}
_CDNA3_FLOPS = {"f16": 512, "bf16": 512, "i8": 1024, "fp8": 1024, "bf8": 1024, "f32": 64, "xf32": 256, "f64": 64,
                "vf32": 64, "vf16": 64, "vf64": 32}
_CDNA4_FLOPS = {"f16": 1024, "bf16": 1024, "i8": 2048, "fp8": 2048, "bf8": 2048, "f32": 64, "f64": 32, "f8f6f4": 2048,
                "vf32": 64, "vf16": 64,
                "vf64": 32}

# Sources: AMD's product pages. RDNA3: each CU's first-level cache gives 64 bytes a cycle, and each of 48 channels of L2
# 64. MI300: 64, and on each of eight dies 16 channels of 128; the last-level cache after them gives 17.2 TB/s (CDNA 3
# white paper). CDNA4 reads LDS faster, which is not counted here.
CARDS = {
  "gfx942": Hardware("MI300X", UNITS["gfx942"], 304, 2.1, 128, 64, 16384, 5300, 17200, _CDNA3_FLOPS, 8),
  "gfx950": Hardware("MI355X", UNITS["gfx950"], 256, 2.4, 128, 64, 16384, 8000, 17200, _CDNA4_FLOPS, 8),
  "gfx1100": Hardware("RX 7900 XTX", UNITS["gfx1100"], 48, 2.5, 256, 128, 3072, 960, 5300, _RDNA3_FLOPS),
  "gfx1200": Hardware("RX 9060 XT", UNITS["gfx1200"], 16, 3.13, 256, 128, 1024, 320, 1750, _RDNA4_FLOPS),
  "gfx1201": Hardware("RX 9070 XT", UNITS["gfx1200"], 32, 2.97, 256, 128, 2048, 640, 3500, _RDNA4_FLOPS),
}
SOURCE = ("published: LLVM's SISchedule.td, AMD's matrix instruction calculator, ISA guides; assumed: LDS, RDNA4 as "
          "RDNA3; nothing is measured")

@once
def card(generation: Generation) -> Hardware:
  """The card of an architecture, with its units for waves of this size."""
  pipes, cdna = costs(generation.family), generation.cdna
  return CARDS[generation.arch.partition(":")[0]]._replace(
    unit=unit_of(generation), latency=pipes["vmem"].latency, local_latency=pipes["lds"].latency,
    guard_latency=pipes["valu"].latency,
    vector_cycles=generation.wave / (16 if cdna else 32), shares_vector=generation.family in MATRIX_SHARES_VECTOR)
