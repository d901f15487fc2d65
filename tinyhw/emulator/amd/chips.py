"""The virtual cards: their differences, as rows. Numbers are those of the real cards, except for the size of memory.

Sources: sysfs of such cards, as libhsakmt reads it; Linux, drivers/gpu/drm/amd/amdkfd/kfd_queue.c (save areas); AMD's
product pages.
"""
from __future__ import annotations

from tinyhw.data_class import dataclass

PAGE = 4096
VRAM_BYTES = 4 << 30  # of every virtual card: real ones have more than most computers that emulate them

@dataclass(frozen=True)
class ChipParameters:
  """A card. cus, engines (shader engines) and arrays (shader arrays of an engine) are those of one XCC.

  - generation: of registers and of instruction formats; packets and copies: of PM4 and SDMA packets.
  - first_level: has a GL1 cache between the caches of the compute units and the L2.
  - vgpr_bytes: of all registers of a compute unit, as the save area counts them.
  """
  name: str
  marketing: str
  target_version: int
  generation: int
  packets: int
  copies: int
  device_id: int
  xccs: int
  cus: int
  engines: int
  arrays: int
  simds: int                 # of a compute unit
  waves: int                 # of a SIMD
  wave_size: int
  vgprs: int                 # of a SIMD and lane, at the wave size
  vgpr_bytes: int
  gc: tuple[int, int, int]
  sdma: tuple[int, int, int]
  nbif: tuple[int, int, int]
  clock_mhz: int
  sdma_engines: int
  xgmi_engines: int = 0
  sdma_queues: int = 8       # of an engine
  cp_queues: int = 24
  lds_kib: int = 64
  l2_kib: int = 4096
  first_level: bool = False
  vram: int = VRAM_BYTES

  @property
  def wave_count(self) -> int:
    """Return the number of waves of an XCC, as the kernel's driver counts them for the save area: kfd_queue.c."""
    return self.cus * 32 if self.generation > 9 else min(self.cus * 40, self.engines * self.xccs * 512)

  @property
  def control_stack_bytes(self) -> int:
    """Return the size of the control stack in an XCC's save area."""
    return _pages(40 + self.wave_count * (12 if self.generation > 9 else 8) + 8)

  @property
  def save_bytes(self) -> int:
    """Return the size of an XCC's context save area with its control stack: VGPRs, SGPRs, LDS and hardware registers of
    each compute unit."""
    return self.control_stack_bytes + _pages(self.cus * (self.vgpr_bytes + 0x4000 + (self.lds_kib << 10) + 0x1000))

  @property
  def debug_bytes(self) -> int:
    """Return the size of the debuggers' area after an XCC's save area."""
    return (self.wave_count * 32 + 63) & -64

def _pages(size: int) -> int: return (size + PAGE - 1) & -PAGE

EOP_BYTES = 4096  # of the end-of-pipe buffer, on all of them

CHIPS = {chip.name: chip for chip in (
  ChipParameters("gfx1100", "AMD Radeon RX 7900 XTX", 110000, 11, 10, 6, 0x744C, xccs=1, cus=96, engines=6, arrays=2,
                 simds=2,
                 waves=16, wave_size=32,
      vgprs=1536, vgpr_bytes=0x60000, gc=(11, 0, 0), sdma=(6, 0, 0), nbif=(4, 3, 0), clock_mhz=2482, sdma_engines=2,
                 l2_kib=6144,
                 first_level=True),
  ChipParameters("gfx1200", "AMD Radeon RX 9060 XT", 120000, 12, 10, 7, 0x7590, xccs=1, cus=32, engines=2, arrays=2,
                 simds=2,
                 waves=16, wave_size=32,
      vgprs=1536, vgpr_bytes=0x60000, gc=(12, 0, 0), sdma=(7, 0, 0), nbif=(6, 3, 1), clock_mhz=3130, sdma_engines=2),
  ChipParameters("gfx1201", "AMD Radeon RX 9070 XT", 120001, 12, 10, 7, 0x7550, xccs=1, cus=64, engines=4, arrays=2,
                 simds=2,
                 waves=16, wave_size=32,
      vgprs=1536, vgpr_bytes=0x60000, gc=(12, 0, 1), sdma=(7, 0, 1), nbif=(6, 3, 1), clock_mhz=2970, sdma_engines=2),
  ChipParameters("gfx942", "AMD Instinct MI300X", 90402, 9, 9, 4, 0x74A1, xccs=8, cus=38, engines=4, arrays=1, simds=4,
                 waves=8,
                 wave_size=64,
      vgprs=512, vgpr_bytes=0x80000, gc=(9, 4, 3), sdma=(4, 4, 2), nbif=(7, 9, 0), clock_mhz=2100, sdma_engines=2,
                 xgmi_engines=14),
  # guess: LDS_SIZE counts 512 bytes here too; registers and packets are those of GC 9.4.3
  ChipParameters("gfx950", "AMD Instinct MI355X", 90500, 9, 9, 4, 0x75A3, xccs=8, cus=32, engines=4, arrays=1, simds=4,
                 waves=8,
                 wave_size=64,
      vgprs=512, vgpr_bytes=0x80000, gc=(9, 5, 0), sdma=(4, 4, 5), nbif=(7, 9, 1), clock_mhz=2400, sdma_engines=2,
                 xgmi_engines=14, lds_kib=160),
)}
