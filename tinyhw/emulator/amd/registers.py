"""`DispatchRegisters`: the initial state of every wave of a dispatch, from the compute registers.

The command processor (dispatch.py) makes it from registers, or from an AQL packet with its kernel descriptor. Waves
read it. Sources: the field tables of PGM_RSRC1/2/3; LLVM's AMDGPUUsage for the order of registers at the start.
"""
from __future__ import annotations

from tinyhw.data_class import dataclass, field

# Flat addresses of LDS and scratch: Linux sets SH_MEM_BASES so, and AMDKFD_IOC_GET_PROCESS_APERTURES reports them
APERTURES, APERTURE_BYTES = {"shared": 1 << 48, "private": 2 << 48}, 1 << 32

@dataclass(frozen=True)
class DispatchRegisters:
  """One dispatch. Sizes are in bytes unless a field says otherwise.

  - code: address of the first instruction.
  - user_data: the first user SGPRs, as many as RSRC2.USER_SGPR says; None: never set.
  - group_ids: which of workgroup id x, y, z are given (on gfx12 all are always in trap registers).
  - group_info: the workgroup's info SGPR follows.
  - work_item_ids: 1 to 3 components of v0.
  - vgprs: registers per lane that a wave may use, of both files where there are two; accumulator: the first one that is
    an accumulation register, or None.
  - sgprs: scalar registers that a wave may use, without VCC.
  - scratch_base: that of wave slot 0; there are scratch_waves slots.
  """
  arch: str
  code: int
  wave_size: int
  vgprs: int
  sgprs: int
  group_size: tuple[int, int, int]             # work-items of a workgroup
  groups: tuple[int, int, int]                 # workgroups
  user_data: tuple[int | None, ...] = ()
  group_ids: tuple[bool, bool, bool] = (True, False, False)
  group_info: bool = False
  work_item_ids: int = 1
  lds_bytes: int = 0
  accumulator: int | None = None
  scratch_base: int = 0
  scratch_wave_bytes: int = 0                  # of one wave, all its lanes
  scratch_enabled: bool = False
  # work-items of the last workgroup along each axis if it is smaller; else 0
  partial_size: tuple[int, int, int] = (0, 0, 0)
  float_round: int = 0                         # MODE[3:0]: 1:0 for f32, 3:2 for f16 and f64
  float_denorm: int = 0                        # MODE[7:4]: 1:0 for f32, 3:2 for f16 and f64; 0 flushes, 3 keeps
  dx10_clamp: bool = True
  ieee_mode: bool = True
  fp16_overflow: bool = False
  wgp_mode: bool = False
  privileged: bool = False
  rsrc: tuple[int, int, int] = field(default=(0, 0, 0))  # RSRC1, 2, 3 unchanged, for messages
  scratch_waves: int = 0

  def describe(self) -> str:
    """Return one line for errors that identifies the kernel."""
    return (f"kernel at {self.code:#x} ({self.arch}, groups {self.groups} of {self.group_size}, {self.vgprs} VGPRs, "
            f"{self.lds_bytes} bytes of LDS)")
