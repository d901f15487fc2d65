"""The step of the self-test for bases in uniform registers: a lane's 32 bits must be added as an unsigned number, as
the compiler assumes.

One kernel has loads and asynchronous copies. Their base lies 2^31 bytes before a buffer, and the lanes' offsets are
2^31 and more, so bit 31 is set. It also has a store relative to the beginning of another buffer, which comes from the
constant bank. If the offsets were signed, the kernel would access unmapped memory.

The constants of the instructions are signed. The step uses a small one below 0, and the ends of the possible range: 24
bits, or 12 bits for copies.
"""
from __future__ import annotations
import struct
from typing import TYPE_CHECKING

from tinyhw.drivers.gpu.selftest.kernels import LANES, kernels
from tinyhw.selftest.frame import Probe
if TYPE_CHECKING: from tinyhw.drivers.gpu.selftest.session import GpuSession

SPAN = 512   # elements on each side of a lane's own, as far as copies reach: 2 KiB

# R6: offset of each lane, in bytes. R7: 2^31 and SPAN elements more. R10, R11: the distances of the ends of 24 bits
# before and after R7. R12: R6 for the second copy. UR4, UR5: the second argument minus 2^31
TEXT = """S2R R0, SR_TID.X
IMAD R6, R0, 0x4, RZ
IADD3 R7, R6, -0x7ffff800, RZ
IADD3 R10, R7, -0x7ffffc, RZ
IADD3 R11, R7, 0x800000, RZ
IADD3 R12, R6, 0x100, RZ
ULDC.64 UR4, c[0x0][{argument1}]
UIADD3 UR4, UP0, UR4, -0x80000000, URZ
UIADD3.X UR5, UR5, -0x1, URZ, UP0, !UPT
ULDC.64 UR6, c[0x0][{argument0}]
LDG.E R8, [R7.U32+UR4+-0x4]
LDG.E R13, [R10.U32+UR4+0x7ffffc]
LDG.E R14, [R11.U32+UR4+-0x800000]
LDGSTS.E [R6+{shared}], [R7.U32+UR4+-0x800]
LDGSTS.E [R12+{shared}], [R7.U32+UR4+0x7fc]
LDGDEPBAR
DEPBAR.LE SB0, 0x0
LDS R9, [R6+{shared}]
LDS R15, [R12+{shared}]
IADD3 R8, R8, R13, R14
IADD3 R8, R8, R9, R15
IADD3 R6, R6, 0x800000, RZ
STG.E [R6.U32+UR6+-0x800000], R8
EXIT"""

NEAR = (SPAN - 1, SPAN, SPAN, 0, 2 * SPAN - 1)   # the sum of a lane: three loads, two copies

def bases(s: GpuSession) -> str:
  with kernels(s) as k:
    given = [n * n for n in range(LANES + 2 * SPAN)]
    numbers, out = k.buffer(struct.pack(f"<{len(given)}I", *given)), k.buffer(bytes(4 * LANES))
    k.run(k.load(TEXT, "bases", ("buffer", "buffer"), local_bytes=8 * LANES), [out, numbers], 1)
    k.expect(out, [sum(given[n + near] for near in NEAR) for n in range(LANES)],
             "sums of elements near an address relative to a base")
  return "loads, copies and stores add 32 bits without a sign, and a constant with one, to a base"

STEP = Probe("bases", "are 32 bits of a lane added without a sign to a base in uniform registers",
             "the bits of [R2.U32+UR4] (LDG.U, STG.U and LDGSTS.U of isa/sass/rows/memory.py). With NV_BASES=0 kernels "
             "have addresses of 64 bits in each lane", bases)
