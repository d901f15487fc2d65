"""Kernels on an AMD GPU: the registers and packets of a launch. A Recording is an indirect buffer.

A kernel finds the address of its arguments in the first two scalar registers. The number of its workgroup is at the
position that `topology.Chip` gives. The packets are made once for each program. A launch changes only a few of their
words.
"""
from __future__ import annotations
import struct
from typing import TYPE_CHECKING

from tinyhw.drivers.amd.commands import Commands, dispatch_header
from tinyhw.drivers.amd.kfd import HOST
from tinyhw.drivers.amd.topology import MAX_LANES, Gpu
from tinyhw.drivers.gpu.launch import GpuRecording, GpuProgram
from tinyhw.errors import DeviceError
from tinyhw.machine.ir.code import Code
from tinyhw.named_tuple import NamedTuple
if TYPE_CHECKING: from tinyhw.drivers.amd.device import AMDDevice

FLOAT_MODE = 0xF0         # round to nearest even; keep denormals of all widths
LDS_UNIT = 512
PREFETCH_BYTES = 128
CODE_ALIGNMENT = 256
SPECIAL_SGPRS = 6          # on GFX9: vcc, flat_scratch and xnack_mask count as used

def _up(value: int, unit: int) -> int: return -(-value // unit)

class LaunchPackets(NamedTuple):
  """The packets of a launch, and the positions of the words that change.

  arguments: the address of the arguments, two words. dispatch: the dispatch packet.
  """
  words: tuple[int, ...]
  arguments: int
  dispatch: int

def registers(code: Code, gpu: Gpu, commands: Commands) -> tuple[int, int, int]:
  """Return COMPUTE_PGM_RSRC1, 2 and 3 of a kernel. Raises DeviceError if the kernel exceeds a limit of the chip."""
  chip, used, r = gpu.chip, dict(code.registers), commands.gc
  vgprs, agprs, sgprs, wave = used.get("vgpr", 0), used.get("agpr", 0), used.get("sgpr", 0), code.wave or chip.waves[0]
  limits = {"vgpr": (vgprs, 256), "agpr": (agprs, 256 if chip.gc == 9 else 0),
            "sgpr": (sgprs, 102 if chip.gc == 9 else 106),
            "lanes": (code.lanes, MAX_LANES), "bytes of shared memory": (code.local_bytes, chip.lds_bytes)}
  for name, (number, most) in limits.items():
    if number > most:
      raise DeviceError(f"kernel {code.name} wants {number} {name}, and {chip.arch} has {most}; compile it for fewer")
  if wave not in chip.waves:
    raise DeviceError(f"kernel {code.name} is for waves of {wave} lanes; {chip.arch} has "
                      f"{' and '.join(map(str, chip.waves))}")
  second = r.COMPUTE_PGM_RSRC2(scratch_en=int(code.private_bytes > 0), user_sgpr=chip.user_sgprs, tgid_x_en=1,
                               lds_size=_up(code.local_bytes, chip.lds_step) * chip.lds_step // LDS_UNIT)
  if chip.gc == 9:
    offset = max(_up(vgprs, 4), 1)
    return (r.COMPUTE_PGM_RSRC1(vgprs=_up(max(4 * offset * bool(agprs) + agprs, vgprs, 1), 8) - 1,
                                sgprs=_up(sgprs + SPECIAL_SGPRS, 8) - 1,
                                float_mode=FLOAT_MODE, dx10_clamp=1, ieee_mode=1), second,
            r.COMPUTE_PGM_RSRC3(accum_offset=offset - 1))
  # without priv, waves are saved incorrectly; as kfdtest has it
  extra = {"dx10_clamp": 1, "ieee_mode": 1, "priv": 1} if chip.gc == 11 else {}
  first = r.COMPUTE_PGM_RSRC1(vgprs=_up(max(vgprs, 1), 8 if wave == 32 else 4) - 1, float_mode=FLOAT_MODE, wgp_mode=1,
                              mem_ordered=1, fwd_progress=1,
                              **extra)
  ahead = r.COMPUTE_PGM_RSRC3.fields["inst_pref_size"].mask
  return first, second, r.COMPUTE_PGM_RSRC3(inst_pref_size=min(_up(len(code.text), PREFETCH_BYTES), ahead))

class AMDProgram(GpuProgram):
  """A kernel in the GPU's memory.

  Its barrier waits for the waves of earlier launches, and makes their writes visible to loads.
  """
  device: AMDDevice

  def check(self) -> None:
    self.rsrc = registers(self.code, self.device.gpu, self.device.commands())
    self.device.reserve_scratch(self.code.private_bytes)

  def prepare(self) -> None:
    commands = self.device.commands()
    commands.finish()
    commands.see_earlier_kernels()
    self.barrier = tuple(commands.words)
    self.idle = tuple(commands.packets.NOP(data=[0] * (len(self.barrier) - 1)))
    self.words = self._words(commands, self.rsrc, self.code.wave or self.device.gpu.chip.waves[0])
    self.words_of_launch = len(self.words.words)

  def _words(self, commands: Commands, rsrc: tuple[int, int, int], wave: int) -> LaunchPackets:
    """Return the packets of a launch after its barrier, with arguments at 0 and no workgroups."""
    r, start = commands.gc, self.start
    assert start % CODE_ALIGNMENT == 0, f"{self.name}: code begins at a multiple of {CODE_ALIGNMENT}"
    commands.set_registers(r.COMPUTE_PGM_LO, start >> 8 & 0xFFFF_FFFF, start >> 40)
    commands.set_registers(r.COMPUTE_PGM_RSRC1, *rsrc[:2])
    commands.set_registers(r.COMPUTE_PGM_RSRC3, rsrc[2])
    commands.set_registers(r.COMPUTE_RESTART_X, 0, 0, 0)
    arguments = commands.set_registers(r.COMPUTE_USER_DATA_0, 0, 0)
    commands.set_registers(r.COMPUTE_RESOURCE_LIMITS, 0)
    commands.set_registers(r.COMPUTE_START_X, 0, 0, 0, r.COMPUTE_NUM_THREAD_X(num_thread_full=self.code.lanes), 1, 1, 0,
                           0)
    wave32 = {"cs_w32_en": 1} if wave == 32 else {}
    dispatch = commands.dispatch(r.COMPUTE_DISPATCH_INITIATOR(compute_shader_en=1, force_start_at_000=1, **wave32), 0)
    return LaunchPackets(tuple(commands.words), arguments, dispatch)

  def launch(self, address: int, groups: int, data: memoryview) -> list[int]:
    words, at, dispatch = self.words
    made = list(words)
    made[at], made[at + 1] = address & 0xFFFF_FFFF, address >> 32
    made[dispatch], made[dispatch + 1] = dispatch_header(groups), groups
    return made

  def regrid(self, recording: GpuRecording, launch: int, groups: int) -> None:
    place = 4 * (recording.places[launch] + self.words.dispatch)
    recording.memory.mapping.copyin(place, struct.pack("<2I", dispatch_header(groups), groups))

class AMDRecording(GpuRecording):
  """Launches as an indirect buffer."""
  memory_kind = HOST
