"""The step of the self-test that asks whether a lane's 32 bits are added to a base in uniform registers as the compiler assumes: without a sign.

One kernel: loads, and asynchronous copies, 2^31 bytes behind a base that lies 2^31 bytes before a buffer, so bit 31 of the lanes' offsets is set; a
store behind the beginning of another buffer, which comes from the constant bank. If the sign counted, memory that nobody has would be touched.
"""
from __future__ import annotations
import struct
from typing import TYPE_CHECKING

from tinyhw.drivers.gpu.selftest_kernels import LANES, kernels
from tinyhw.selftest.frame import Step
if TYPE_CHECKING: from tinyhw.drivers.gpu.selftest import GpuSession

# R6: of each lane, in bytes; R7: 2^31 more; UR4, UR5: the second argument, 2^31 less
TEXT = """S2R R0, SR_TID.X
IMAD R6, R0, 0x4, RZ
IADD3 R7, R6, -0x80000000, RZ
ULDC.64 UR4, c[0x0][{argument1}]
UIADD3 UR4, UP0, UR4, -0x80000000, URZ
UIADD3.X UR5, UR5, -0x1, URZ, UP0, !UPT
ULDC.64 UR6, c[0x0][{argument0}]
LDG.E R8, [R7.U32+UR4+0x4]
LDGSTS.E [R6+{shared}], [R7.U32+UR4+0x8]
LDGDEPBAR
DEPBAR.LE SB0, 0x0
LDS R9, [R6+{shared}]
IADD3 R8, R8, R9, RZ
STG.E [R6.U32+UR6], R8
EXIT"""

def bases(s: GpuSession) -> str:
  with kernels(s) as k:
    given = [n * n for n in range(LANES + 2)]
    numbers, out = k.buffer(struct.pack(f"<{len(given)}I", *given)), k.buffer(bytes(4 * LANES))
    k.run(k.load(TEXT, "bases", ("buffer", "buffer"), local_bytes=4 * LANES), [out, numbers], 1)
    k.expect(out, [given[n + 1] + given[n + 2] for n in range(LANES)], "sums of two elements behind a base")
  return "loads, copies and stores add 32 bits without a sign to a base"

STEP = Step("bases", "are 32 bits of a lane added without a sign to a base in uniform registers",
            "the bits of [R2.U32+UR4] (LDG.U, STG.U and LDGSTS.U of isa/sass/rows_memory.py). With NV_BASES=0 kernels "
            "have addresses of 64 bits in each lane", bases)
