"""Kernels on an AMD GPU: loading Code, launching it, and Recordings, which are indirect buffers with places to patch.

A kernel finds the address of its arguments (8-byte slots: addresses of buffers, then int64 variables) in the first two scalar registers, and the
number of its workgroup where `topology.Chip` says. A launch is a few packets, made once for each program; what changes from launch to launch are a
few words of them, and the arguments.
"""
from __future__ import annotations
import struct
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from tinyhw.device import Launch
from tinyhw.drivers.amd.commands import Commands, dispatch_header
from tinyhw.drivers.amd.kfd import HOST
from tinyhw.drivers.amd.queue import Indirect
from tinyhw.drivers.amd.topology import MAX_LANES, Gpu
from tinyhw.errors import DeviceError
from tinyhw.machine.code import Code
if TYPE_CHECKING:
  from tinyhw.drivers.amd.device import AMDDevice
  from tinyhw.drivers.amd.memory import Part

FLOAT_MODE = 0xF0         # round to nearest even; keep denormals of all widths
LDS_UNIT = 512
PREFETCH_BYTES = 128
CODE_ALIGNMENT = 256
CODE_PADDING = 256        # readable bytes behind the code, which is fetched ahead
ARGUMENT_ALIGNMENT = 64
MOST_GROUPS = (1 << 32) - 1
MOST_WORDS = (1 << 20) - 1  # of an indirect buffer
SGPRS_BESIDE = 6          # on GFX9: vcc, flat_scratch and xnack_mask count as used
_SLOT = struct.Struct("<q")

def _up(value: int, unit: int) -> int: return -(-value // unit)

class Words(NamedTuple):
  """The packets of a launch, and which words of them change: the address of the arguments (two words), and the dispatch."""
  words: tuple[int, ...]
  arguments: int
  dispatch: int

def registers(code: Code, gpu: Gpu, commands: Commands) -> tuple[int, int, int]:
  """COMPUTE_PGM_RSRC1, 2 and 3 of a kernel. Raises DeviceError for what the chip has not."""
  chip, used, r = gpu.chip, dict(code.registers), commands.gc
  vgprs, agprs, sgprs, wave = used.get("vgpr", 0), used.get("agpr", 0), used.get("sgpr", 0), code.wave or chip.waves[0]
  limits = {"vgpr": (vgprs, 256), "agpr": (agprs, 256 if chip.gc == 9 else 0), "sgpr": (sgprs, 102 if chip.gc == 9 else 106),
            "lanes": (code.lanes, MAX_LANES), "bytes of local memory": (code.local_bytes, chip.lds_bytes)}
  for name, (number, most) in limits.items():
    if number > most: raise DeviceError(f"kernel {code.name} wants {number} {name}, and {chip.arch} has {most}; compile it for fewer")
  if wave not in chip.waves:
    raise DeviceError(f"kernel {code.name} is for waves of {wave} lanes; {chip.arch} has {' and '.join(map(str, chip.waves))}")
  second = r.COMPUTE_PGM_RSRC2(scratch_en=int(code.private_bytes > 0), user_sgpr=chip.user_sgprs, tgid_x_en=1,
                               lds_size=_up(code.local_bytes, chip.lds_step) * chip.lds_step // LDS_UNIT)
  if chip.gc == 9:
    offset = max(_up(vgprs, 4), 1)
    return (r.COMPUTE_PGM_RSRC1(vgprs=_up(max(4 * offset * bool(agprs) + agprs, vgprs, 1), 8) - 1, sgprs=_up(sgprs + SGPRS_BESIDE, 8) - 1,
                                float_mode=FLOAT_MODE, dx10_clamp=1, ieee_mode=1), second, r.COMPUTE_PGM_RSRC3(accum_offset=offset - 1))
  extra = {"dx10_clamp": 1, "ieee_mode": 1, "priv": 1} if chip.gc == 11 else {}  # priv: waves are saved wrongly without it; as kfdtest has it
  first = r.COMPUTE_PGM_RSRC1(vgprs=_up(max(vgprs, 1), 8 if wave == 32 else 4) - 1, float_mode=FLOAT_MODE, wgp_mode=1, mem_ordered=1, fwd_progress=1,
                              **extra)
  ahead = r.COMPUTE_PGM_RSRC3.fields["inst_pref_size"].mask
  return first, second, r.COMPUTE_PGM_RSRC3(inst_pref_size=min(_up(len(code.text), PREFETCH_BYTES), ahead))

class Program:
  """A kernel in the GPU's memory. Given back when it is garbage: later work finds what it needs in order."""
  def __init__(self, device: AMDDevice, code: Code):
    chip = device.gpu.chip
    if code.arch.partition(":")[0] != chip.arch:
      raise DeviceError(f"kernel {code.name} is for {code.arch}, device {device.name} is {chip.arch}; compile it for that")
    commands = device.commands()
    rsrc = registers(code, device.gpu, commands)
    self.device, self.name, self.code = device, code.name, code
    self.buffers = code.arguments.count("buffer")
    self.slots = struct.Struct(f"<{len(code.arguments)}q")
    device.reserve_scratch(code.private_bytes)
    self.place: Part = device.code.alloc(len(code.text) + CODE_PADDING)
    device.code.copyin(self.place, memoryview(code.text + bytes(CODE_PADDING)))
    self.words = self._words(commands, rsrc, code.wave or chip.waves[0])

  def _words(self, commands: Commands, rsrc: tuple[int, int, int], wave: int) -> Words:
    """The packets of a launch, with arguments at 0 and no workgroups."""
    r, start = commands.gc, self.place.address + self.code.entry
    assert start % CODE_ALIGNMENT == 0, f"{self.name}: code begins at a multiple of {CODE_ALIGNMENT}"
    commands.see_earlier_kernels()
    commands.set_registers(r.COMPUTE_PGM_LO, start >> 8 & 0xFFFF_FFFF, start >> 40)
    commands.set_registers(r.COMPUTE_PGM_RSRC1, *rsrc[:2])
    commands.set_registers(r.COMPUTE_PGM_RSRC3, rsrc[2])
    commands.set_registers(r.COMPUTE_RESTART_X, 0, 0, 0)
    arguments = commands.set_registers(r.COMPUTE_USER_DATA_0, 0, 0)
    commands.set_registers(r.COMPUTE_RESOURCE_LIMITS, 0)
    commands.set_registers(r.COMPUTE_START_X, 0, 0, 0, r.COMPUTE_NUM_THREAD_X(num_thread_full=self.code.lanes), 1, 1, 0, 0)
    wave32 = {"cs_w32_en": 1} if wave == 32 else {}
    dispatch = commands.dispatch(r.COMPUTE_DISPATCH_INITIATOR(compute_shader_en=1, force_start_at_000=1, **wave32), 0)
    commands.finish()
    return Words(tuple(commands.words), arguments, dispatch)

  def launch(self, arguments: int, groups: int) -> list[int]:
    """The packets of a launch with arguments at an address."""
    words, at, dispatch = self.words
    made = list(words)
    made[at], made[at + 1] = arguments & 0xFFFF_FFFF, arguments >> 32
    made[dispatch], made[dispatch + 1] = dispatch_header(groups), groups
    return made

  def pack(self, launch: Launch) -> bytes:
    """The arguments of a launch. Raises DeviceError that says what is wrong with it."""
    buffers, variables, groups = launch.buffers, launch.variables, launch.grid
    try:
      if len(buffers) != self.buffers or not 0 <= groups <= MOST_GROUPS: raise explain(launch)
      return self.slots.pack(*[b.address for b in buffers], *variables)
    except (struct.error, AttributeError, TypeError): raise explain(launch) from None

  def __del__(self) -> None:
    place = getattr(self, "place", None)
    if place is not None: self.device.code.free(place)

  def __repr__(self) -> str: return f"<Program {self.name} on {self.device.name} at {self.place.address:#x}>"

def explain(launch: Launch) -> DeviceError:
  """What is wrong with a launch that could not be packed."""
  program = launch.program
  if not isinstance(program, Program): return DeviceError(f"cannot launch {program!r}; pass what load() of this device returned")
  wanted = len(program.code.arguments) - program.buffers
  if len(launch.buffers) != program.buffers or len(launch.variables) != wanted:
    return DeviceError(f"kernel {program.name} takes {program.buffers} buffers and {wanted} variables, "
                       f"not {len(launch.buffers)} and {len(launch.variables)}")
  for i, buffer in enumerate(launch.buffers):
    if not hasattr(buffer, "address"): return DeviceError(f"kernel {program.name}, buffer {i}: {buffer!r} is not allocated memory of this device")
  if not isinstance(launch.grid, int) or not 0 <= launch.grid <= MOST_GROUPS:
    return DeviceError(f"kernel {program.name}: grid is {launch.grid!r}, not an integer from 0 to {MOST_GROUPS}")
  return DeviceError(f"kernel {program.name}: variables {tuple(launch.variables)} are not all 64-bit integers")

class AMDRecording:
  """Launches as an indirect buffer, with their arguments behind it in the same memory: a replay is one submission.

  A patch writes that memory, so it waits until the last replay is done.
  """
  def __init__(self, device: AMDDevice, launches: Sequence[Launch]):
    self.device, self.launches = device, len(launches)
    self.programs: list[Program] = [launch.program for launch in launches]
    self.busy: tuple[int, int] | None = None      # the last replay
    packed = [launch.program.pack(launch) if isinstance(launch.program, Program) else _refuse(launch) for launch in launches]
    self.grids = [launch.grid for launch in launches]
    self.places: list[int] = []                   # of each launch's packets: the index of the first word
    self.slots: list[int] = []                    # of each launch's arguments: the offset
    end = _up(4 * sum(len(program.words.words) for program in self.programs), ARGUMENT_ALIGNMENT) * ARGUMENT_ALIGNMENT
    for arguments in packed:
      self.slots.append(end)
      end += _up(len(arguments), ARGUMENT_ALIGNMENT) * ARGUMENT_ALIGNMENT
    self.memory = device.allocate(max(end, 1), HOST, f"recording of {len(launches)} kernels")
    words: list[int] = []
    for program, slot, groups in zip(self.programs, self.slots, self.grids):
      self.places.append(len(words))
      words += program.launch(self.memory.address + slot, groups)
    if words: self.memory.mapping.copyin(0, struct.pack(f"<{len(words)}I", *words))
    self.pieces = list(self._cut([*self.places, len(words)]))
    for slot, arguments in zip(self.slots, packed):
      if arguments: self.memory.mapping.copyin(slot, arguments)

  def _cut(self, places: list[int]) -> Iterator[Indirect]:
    """The buffers that the command processor is sent to, one after the other: as many launches in each as it can count the words of."""
    start = 0
    for end, after in zip(places[1:], [*places[2:], None]):
      if after is not None and after - start <= MOST_WORDS: continue
      yield Indirect(self.memory.address + 4 * start, end - start)
      start = end

  def patch(self, launch: int, position: int, value: Any) -> None:
    """Replace an argument. Raises DeviceError where there is none, or for an int that needs more than 64 bits."""
    program = self.programs[launch]
    if not 0 <= position < len(program.code.arguments):
      raise DeviceError(f"kernel {program.name} has {len(program.code.arguments)} arguments; there is no number {position} to patch")
    try: data = _SLOT.pack(value if isinstance(value, int) else value.address)
    except (struct.error, AttributeError):
      raise DeviceError(f"kernel {program.name}, argument {position}: {value!r} is neither memory of this device nor a 64-bit integer") from None
    self._rest()
    self.memory.mapping.copyin(self.slots[launch] + 8 * position, data)

  def patch_grid(self, launch: int, grid: int) -> None:
    """Replace the number of workgroups of a launch."""
    if grid == self.grids[launch]: return
    program = self.programs[launch]
    if not 0 <= grid <= MOST_GROUPS: raise DeviceError(f"kernel {program.name}: a grid of {grid} workgroups; it is from 0 to {MOST_GROUPS}")
    self._rest()
    self.grids[launch] = grid
    self.memory.mapping.copyin(4 * (self.places[launch] + program.words.dispatch), struct.pack("<2I", dispatch_header(grid), grid))

  def _rest(self) -> None:
    """The hardware does not read it any more."""
    self.device.check()
    busy, self.busy = self.busy, None
    if busy is not None: self.device.wait_mark(busy)

  def submit(self) -> None:
    """Run all launches."""
    if self.launches: self.busy = self.device.enqueue(self.pieces, [program.name for program in self.programs])

  def submit_timed(self) -> list[tuple[int, int]]:
    """The same, with a look at the GPU's clock between launches: when each began and ended, in nanoseconds of time.perf_counter_ns."""
    calls = [program.launch(self.memory.address + slot, groups) for program, slot, groups in zip(self.programs, self.slots, self.grids)]
    return self.device.enqueue_timed(calls, [program.name for program in self.programs])

  def __del__(self) -> None:
    memory = getattr(self, "memory", None)
    if memory is not None: self.device.release(memory, self.busy)

def _refuse(launch: Launch) -> bytes: raise explain(launch)
