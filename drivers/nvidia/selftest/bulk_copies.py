"""The step of the self-test for bulk tensor copies (TMA): the unit must work as the compiler assumes.

One kernel has two warps. The first one makes an mbarrier, and issues a copy once, all of its lanes together, with a
tensor map that is data of the launch. Both warps wait for the phase. The step checks that the map is found, the barrier
counts, the bytes are at their addresses, and elements outside of the tensor are zero. If the unit copied once for each
lane, or not at all, or with an old map, the phase would never complete, or other numbers would come. Cards before sm_90
have no such unit.
"""
from __future__ import annotations
import struct
from typing import TYPE_CHECKING

from tinyhw.autogen.nvidia.bank import RESERVED
from tinyhw.drivers.gpu.selftest.kernels import LANES, kernels
from tinyhw.selftest.frame import Absent, Probe
if TYPE_CHECKING: from tinyhw.drivers.gpu.selftest.session import GpuSession

WIDTH, HEIGHT, FIRST = 36, 5, (8, 3)   # of the tensor; the first element of the box, which lies partly outside
BOX = 32, 2                            # its size: an element for each lane
WORD, BARRIER = 4, 256                 # bytes of an element; the offset of the barrier, after the box
COUNT = 1 << 20                        # the word of a barrier counts the missing arrivals up to this
SHARED_BYTES = 512
LEAST_VERSION, GENERATION = 90, 9
KIND = 2 << 7                          # of elements in a tensor map: unsigned integers of 32 bits

TEXT = """S2R R0, SR_TID.X
LDC.64 R4, c[0x0][{argument0}]
LDC.64 R6, c[0x0][{argument2}]
IMAD.WIDE R4, R0, 0x4, R4
ISETP.GE.U32.AND P1, PT, R0, 0x20, PT
ISETP.EQ.AND P2, PT, R0, RZ, PT
UMOV UR2, {barrier}
UMOV UR0, {missing}
UMOV UR1, {missing_high}
@P1 BRA {met}
SYNCS.EXCH.64 URZ, [UR2], UR0
R2UR UR4, R6
R2UR UR5, R7
UTMACCTL.IV [UR4]
FENCE.VIEW.ASYNC.S
MOV R8, {bytes}
@P2 SYNCS.ARRIVE.TRANS64 RZ, [UR2], R8
UMOV UR8, {shared}
UMOV UR9, {barrier}
UMOV UR10, {x}
UMOV UR11, {y}
UTMALDG.2D [UR8], [UR4]
BAR.SYNC.DEFER_BLOCKING 0x0
MOV R9, RZ
SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR2], R9
@!P0 BRA {look}
IMAD R10, R0, 0x4, RZ
LDS R11, [R10+{shared}]
STG.E [R4], R11
EXIT"""

def jump(name: str, words: str) -> str:
  """Return the distance from the jump to {name} to the first line with these words, in bytes.

  Each line is assembled at address 0.
  """
  here, there = (next(k for k, line in enumerate(TEXT.splitlines()) if part in line) for part in (f"{{{name}}}", words))
  return hex(16 * (there - here))

def tensor_map() -> bytes:
  """Return a map of the tensor at offset 0 of a buffer. Fields are as in docs/hardware/nvidia.md's sources, without a
  swizzle."""
  made = bytearray(128)
  struct.pack_into("<I", made, 8, 1 << 4 | KIND)
  struct.pack_into("<I", made, 12, WORD * WIDTH // 16)
  struct.pack_into("<2I", made, 32, WIDTH - 1, HEIGHT - 1)
  made[55], made[56] = (n - 1 for n in BOX)
  struct.pack_into("<I4xI", made, 64, WORD * BOX[0] * BOX[1], 16)
  return bytes(made)

def bulk_copies(s: GpuSession) -> str:
  with kernels(s) as k:
    if int(k.device.arch[3:]) < LEAST_VERSION: raise Absent("only cards from sm_90 on have it")
    words = {"barrier": hex(RESERVED[GENERATION] + BARRIER), "missing": hex(COUNT - 1 << 1),
             "missing_high": hex(COUNT - 1 << 11 & 0xffffffff),
             "bytes": hex(WORD * BOX[0] * BOX[1]), "x": hex(FIRST[0]), "y": hex(FIRST[1]),
             "met": jump("met", "BAR.SYNC"),
             "look": jump("look", "PHASECHK")}
    numbers, out = k.buffer(struct.pack(f"<{WIDTH * HEIGHT}I", *range(1, 1 + WIDTH * HEIGHT))), k.buffer(
      bytes(4 * LANES))
    program = k.load(TEXT, "box", ("buffer", "buffer"), words=words, local_bytes=SHARED_BYTES,
                     descriptors=((1, tensor_map()),))
    k.run(program, [out, numbers], 1)
    places = [(FIRST[0] + lane % BOX[0], FIRST[1] + lane // BOX[0]) for lane in range(LANES)]
    k.expect(out, [1 + x + WIDTH * y if x < WIDTH and y < HEIGHT else 0 for x, y in places], "elements of a box")
  return f"a box of {BOX[0]} x {BOX[1]}, with zeros outside of the tensor, asked for by a whole warp"

STEP = Probe("bulk copies",
             "does the unit that copies boxes of tensors find its map in the launch, and copy once for a warp",
             "if it never ends: the address of the map (last argument; drivers/nvidia/launch.py), its fields "
             "(isa/sass/select/tensor_map.py), the "
             "word of an mbarrier; numbers of another place: UTMACCTL, or what a warp asks for. Leave BULK_COPY out of "
             "a kernel's opts meanwhile", bulk_copies)
