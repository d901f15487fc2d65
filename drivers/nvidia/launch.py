"""Kernels on an NVIDIA GPU: the QMD of a launch, and the constant bank with its arguments.

The data of a launch is the QMD, then constant bank 0, then tensor maps (`Code.descriptors`). The arguments begin at
`Chip.arguments` in the bank. The last argument is the address of the tensor maps. The commands hold the QMD's address.
Sources: autogen/nvidia/qmd.py. Values are set as in the open drivers tinygrad and NVK (Mesa).
"""
from __future__ import annotations
import struct
from typing import TYPE_CHECKING

from tinyhw.autogen.nvidia import bank, qmd
from tinyhw.device import Launch
from tinyhw.drivers.gpu.launch import GpuRecording, GpuProgram
from tinyhw.drivers.nvidia.card import HOST
from tinyhw.drivers.nvidia.chips import Chip, registers_given, registers_used, shared_config, split
from tinyhw.drivers.nvidia.commands import Commands
from tinyhw.errors import DeviceError
from tinyhw.machine.ir.code import Code
if TYPE_CHECKING: from tinyhw.drivers.nvidia.device import NVDevice

BANK = 512                   # offset of the constant bank in the data of a launch: after the QMD
BANK_UNIT = 16
CODE_ALIGNMENT = 128
MAP_ALIGNMENT = 128
SHARED_UNIT = 256
LOCAL_UNIT = 16
MAX_LANES = 1024
PREFETCH_UNIT, MOST_PREFETCH = 256, 0x1FF
GROUP_IDS = {8: 0x3F, 9: 0, 10: 0x1F}   # guess: all ones, as in tinygrad; Mesa leaves 0, used here on Hopper
WARP = 32
NOTHING = 0                  # a word that does nothing

def _up(value: int, unit: int) -> int: return -(-value // unit) * unit

def describe(code: Code, chip: Chip, start: int) -> dict[str, int]:
  """Return the fields of a QMD for a kernel, without its grid and its constant bank. start: the address of its first
  instruction.

  Raises DeviceError if the kernel exceeds a limit of the chip.
  """
  limits = {"registers": (registers_used(code), bank.MOST_REGISTERS - bank.HIDDEN_REGISTERS),
            "lanes": (code.lanes, MAX_LANES),
            "bytes of shared memory": (code.local_bytes, chip.local_bytes)}
  for name, (number, most) in limits.items():
    if number > most:
      raise DeviceError(f"kernel {code.name} wants {number} {name}, and {chip.arch} has {most}; compile it for fewer")
  major, minor = qmd.VERSIONS[chip.generation]
  shared = _up(code.local_bytes + chip.reserved, SHARED_UNIT)
  blocks = chip.warps // max(1, -(-code.lanes // WARP))
  fields = {
    "qmd_major_version": major, "qmd_minor_version": minor, "qmd_group_id": GROUP_IDS[chip.generation],
    "sass_version": chip.version,
    "api_visible_call_limit": qmd.NO_CHECK, "sampler_index": qmd.VIA_HEADER_INDEX, "cwd_membar_type": qmd.L1_SYSMEMBAR,
    "cta_thread_dimension0": code.lanes, "cta_thread_dimension1": 1, "cta_thread_dimension2": 1, "grid_height": 1,
    "grid_depth": 1,
    "register_count": registers_given(code), "barrier_count": dict(code.registers).get("barrier", 1),
    "program_address": start,
    "shared_memory_size": shared, "min_sm_config_shared_mem_size": shared_config(chip, split(chip, shared, 1)),
    "max_sm_config_shared_mem_size": shared_config(chip, chip.carve_outs[-1]),
    "target_sm_config_shared_mem_size": shared_config(chip, split(chip, shared, blocks)),
    "shader_local_memory_low_size": _up(code.private_bytes, LOCAL_UNIT),
    "program_prefetch_size": min(len(code.text) // PREFETCH_UNIT, MOST_PREFETCH), "constant_buffer_valid[0]": 1,
    "constant_buffer_invalidate[0]": 1,
    **{f"invalidate_{name}": 1 for name in ("texture_header_cache", "texture_sampler_cache", "texture_data_cache",
                                            "shader_data_cache",
                                            "instruction_cache", "shader_constant_cache")}}
  prefetch = start // PREFETCH_UNIT * PREFETCH_UNIT
  if chip.generation == 8:
    return {**fields, "sm_global_caching_enable": 1, "program_prefetch_addr_lower": prefetch & 0xFF_FFFF_FFFF,
            "program_prefetch_addr_upper": prefetch >> 40}
  return {**fields, "qmd_type": qmd.GRID_CTA, "program_prefetch_addr": prefetch}

def stack(code: Code) -> int:
  """Return the end of a lane's memory for the constant bank: "low" local memory begins at 0."""
  return _up(code.private_bytes, LOCAL_UNIT)

class NVProgram(GpuProgram):
  """A kernel in the GPU's memory.

  Its barrier waits for earlier kernels, and invalidates caches, so that loads see their writes.
  """
  device: NVDevice
  # (offset in the data, number of the buffer, sum for its address, bytes)
  maps: list[tuple[int, int, int, bytes]]
  padding = 4096
  alignment = qmd.ALIGNMENT

  def check(self) -> None:
    chip = self.device.card.chip
    describe(self.code, chip, 0)
    self.device.reserve_local(self.code.private_bytes)
    self.layout, self.argument_offset = qmd.layout(chip.generation), BANK + chip.arguments
    self.before = (bytes(BANK + chip.stack) + stack(self.code).to_bytes(4, "little")).ljust(self.argument_offset, b"\0")
    self.bank_bytes = _up(chip.arguments + self.slots.size, BANK_UNIT)
    self.maps, at = [], _up(BANK + self.bank_bytes, MAP_ALIGNMENT)
    for buffer, data in self.code.descriptors:
      self.maps.append((at, buffer, int.from_bytes(data[:8], "little"), data))
      at += _up(len(data), MAP_ALIGNMENT)

  def prepare(self) -> None:
    assert self.start % CODE_ALIGNMENT == 0, f"{self.name}: code begins at a multiple of {CODE_ALIGNMENT}"
    fields = describe(self.code, self.device.card.chip, self.start)
    self.described = self.layout.number({**fields, "constant_buffer_size[0]": self.bank_bytes})
    commands = self._commands()
    commands.see_earlier_kernels()
    self.barrier = tuple(commands.words)
    self.idle = (NOTHING,) * len(self.barrier)
    self.words_of_launch = len(self.barrier) + len(self._start(0, 1))

  def _commands(self) -> Commands: return Commands(self.device.card.chip.generation)

  def _start(self, address: int, groups: int) -> list[int]:
    """Return the commands after the barrier, of a launch whose data is at an address."""
    commands = self._commands()
    commands.launch(address)
    return commands.words if groups else [NOTHING] * len(commands.words)

  def pack(self, launch: Launch) -> bytes:
    slots = super().pack(launch)
    bank = self.before + slots.ljust(self.bank_bytes + BANK - self.argument_offset, b"\0")
    if not self.maps: return bank
    found = bytearray(bank)
    for at, buffer, offset, data in self.maps:
      found += bytes(at - len(found))
      found += (launch.buffers[buffer].address + offset).to_bytes(8, "little") + data[8:]
    return bytes(found)

  def places(self, position: int) -> list[tuple[int, int]]:
    return [*super().places(position), *((at, offset) for at, buffer, offset, _ in self.maps if buffer == position)]

  def meta(self, address: int, groups: int) -> bytes:
    """Return the QMD of a launch whose data is at an address."""
    whole = self.described | self.layout.number({"grid_width": groups, "constant_buffer_addr[0]": address + BANK})
    return whole.to_bytes(self.layout.bytes, "little")

  def launch(self, address: int, groups: int, data: memoryview) -> list[int]:
    data[:self.layout.bytes] = self.meta(address, groups)
    if self.maps:
      struct.pack_into("<Q", data, self.argument_offset + 8 * len(self.code.arguments), address + self.maps[0][0])
    return [*self.barrier, *self._start(address, groups)]

  def regrid(self, recording: GpuRecording, launch: int, groups: int) -> None:
    slot, place = recording.slots[launch], recording.places[launch] + len(self.barrier)
    words = self._start(recording.memory.address + slot, groups)
    recording.memory.mapping.copyin(slot, self.meta(recording.memory.address + slot, groups))
    recording.memory.mapping.copyin(4 * place, struct.pack(f"<{len(words)}I", *words))

class NVRecording(GpuRecording):
  """Launches as a pushbuffer."""
  memory_kind = HOST
  most_words = (1 << 21) - 1
