"""Kernels in a GPU's memory, the arguments of their launches, and Recordings.

Arguments are in memory, in 8-byte slots: addresses of buffers, then int64 variables. A subclass of `GpuProgram` knows
how the kernel finds them. A launch is a few words of commands, and data that they point to. From launch to launch, only
a few words of both change.
"""
from __future__ import annotations
import struct
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from tinyhw.config import TRACEMETA
from tinyhw.device import Launch, LRUAllocator
from tinyhw.drivers.gpu.memory import GpuBuffer, Memory
from tinyhw.drivers.gpu.order import ANYWHERE, PendingLaunches, AccessedRanges, address_range, touched, written
from tinyhw.errors import DeviceError
from tinyhw.machine.ir.code import Code
from tinyhw.named_tuple import NamedTuple
from tinyhw.trace import Location, caller
if TYPE_CHECKING:
  from tinyhw.drivers.gpu.device import GpuDevice

MOST_GROUPS = (1 << 32) - 1
ANEW = "make the tensor or captured function anew in this child of a fork, or copy tensors to the CPU before the fork"
_SLOT = struct.Struct("<q")

class Indirect(NamedTuple):
  """Commands that are already in memory, to which the hardware is sent."""
  address: int
  words: int

# a kernel or copy of a submission, for reports: its name, and the line of the program that requested it
Work = tuple[str, Location | None]

def work_of(launch: Launch) -> Work: return launch.program.name, launch.line

SHOWN = 8   # kernels of a submission in a report

def shown(work: Sequence[Work]) -> str:
  """Name the kernels of a submission, with the lines that want them."""
  words = [name if line is None else f"{name} of {line[0]}:{line[1]}" for name, line in work[:SHOWN]]
  return ", ".join(words) + (f" and {len(work) - SHOWN} more" if len(work) > SHOWN else "")

def work_of_copy(dest: int, source: int, size: int) -> list[Work]:
  """Describe a submission that copies bytes from one address to another."""
  return [(f"copy of {size} bytes from {source:#x} to {dest:#x}", caller() if TRACEMETA.value else None)]

class GpuProgram:
  """A kernel in the GPU's memory. It is freed when it is garbage: later work that reuses the memory runs after it.

  padding: readable bytes after the code, which hardware prefetches. alignment: of the data of a launch.
  argument_offset: the offset of the slots in that data. words_of_launch: the count of words that `launch` returns.
  barrier: the first of these, which wait for earlier launches; independent launches do without them (order.py). idle:
  the same count of words that do nothing.
  """
  barrier: Sequence[int] = ()
  idle: Sequence[int] = ()
  padding = 256
  alignment = 64
  argument_offset = 0
  words_of_launch: int

  def __init__(self, device: GpuDevice, code: Code):
    if code.arch.partition(":")[0] != device.arch:
      raise DeviceError(f"kernel {code.name} is for {code.arch}, device {device.name} is {device.arch}; compile it "
                        f"for that")
    self.device, self.name, self.code = device, code.name, code
    self.buffers = code.arguments.count("buffer")
    self.slots = struct.Struct(f"<{len(code.arguments) + bool(code.descriptors)}q")
    self.check()
    # a size that other kernels have too. So a virtual GPU puts new code at the address of old code, and finds stale
    # instruction caches
    self.place: GpuBuffer = device.code.alloc(LRUAllocator.rounded(len(code.text) + self.padding))
    device.code.copyin(self.place, memoryview(code.text + bytes(self.padding)))
    self.prepare()

  def check(self) -> None:
    """Raise DeviceError if the kernel exceeds a limit of the GPU. Reserve memory that all kernels share."""
    raise NotImplementedError

  def prepare(self) -> None:
    """Prepare the packets. The code is in memory."""
    raise NotImplementedError

  def launch(self, address: int, groups: int, data: memoryview) -> list[int]:
    """Return the commands of a launch whose data, made by `pack`, will be at an address. Write values that depend on
    the address into the data."""
    raise NotImplementedError

  def regrid(self, recording: GpuRecording, launch: int, groups: int) -> None:
    """Change the count of workgroups of a launch in a recording that does not run."""
    raise NotImplementedError

  def places(self, position: int) -> list[tuple[int, int]]:
    """Return the positions of an argument in the data of a launch: offsets, and the number to add to the argument
    there."""
    return [(self.argument_offset + 8 * position, 0)]

  @property
  def start(self) -> int:
    """The address of the first instruction."""
    return self.place.address + self.code.entry

  def pack(self, launch: Launch) -> bytes:
    """Return the data of a launch. Raises DeviceError, which tells the mistake."""
    buffers, variables, groups = launch.buffers, launch.variables, launch.grid
    try:
      if Memory.some_of_parent: self.refuse_memory_of_parent(buffers)
      if len(buffers) != self.buffers or not 0 <= groups <= MOST_GROUPS: raise explain(launch)
      return self.slots.pack(*[b.address for b in buffers], *variables, *[0] * bool(self.code.descriptors))
    except (struct.error, AttributeError, TypeError): raise explain(launch) from None

  def refuse_memory_of_parent(self, buffers: Sequence[GpuBuffer]) -> None:
    """Raise DeviceError for a buffer that only the parent of this process has: its address means other memory here."""
    self.device.check()
    for buffer in buffers:
      if buffer.memory.is_of_parent:
        raise DeviceError(f"kernel {self.name}: {buffer!r} is memory of the parent process; {ANEW}")

  def __del__(self) -> None:
    place = getattr(self, "place", None)
    if place is not None: self.device.code.drop(place)

  def __repr__(self) -> str:
    return f"<{type(self).__name__} {self.name} on {self.device.name} at {self.place.address:#x}>"

def explain(launch: Launch) -> DeviceError:
  """Explain why a launch could not be packed."""
  program = launch.program
  if not isinstance(program, GpuProgram):
    return DeviceError(f"cannot launch {program!r}; pass what load() of this device returned")
  wanted = len(program.code.arguments) - program.buffers
  if len(launch.buffers) != program.buffers or len(launch.variables) != wanted:
    return DeviceError(f"kernel {program.name} takes {program.buffers} buffers and {wanted} variables, "
                       f"not {len(launch.buffers)} and {len(launch.variables)}")
  for i, buffer in enumerate(launch.buffers):
    if not hasattr(buffer, "address"):
      return DeviceError(f"kernel {program.name}, buffer {i}: {buffer!r} is not allocated memory of this device")
  if not isinstance(launch.grid, int) or not 0 <= launch.grid <= MOST_GROUPS:
    return DeviceError(f"kernel {program.name}: grid is {launch.grid!r}, not an integer from 0 to {MOST_GROUPS}")
  return DeviceError(f"kernel {program.name}: variables {tuple(launch.variables)} are not all 64-bit integers")

class GpuRecording:
  """Launches as commands in memory, followed by their data. A replay is one submission. Dependent launches wait for
  each other.

  A patch writes that memory, so it waits until the last replay is done. A patched buffer may be at any address in later
  replays. most_words: the limit of a piece of commands.
  """
  most_words = (1 << 20) - 1
  memory_kind: Any

  def __init__(self, device: GpuDevice, launches: Sequence[Launch]):
    self.device, self.launches = device, len(launches)
    self.programs: list[GpuProgram] = [launch.program for launch in launches]
    self.work = [work_of(launch) for launch in launches if isinstance(launch.program, GpuProgram)]
    self.busy: tuple[int, int] | None = None      # the last replay
    packed = [bytearray(launch.program.pack(launch)) if isinstance(launch.program, GpuProgram) else _refuse(launch)
              for launch in launches]
    self.grids = [launch.grid for launch in launches]
    self.buffers = [list(map(address_range, launch.buffers)) for launch in launches]
    self.written = [written(launch) for launch in launches]
    self.waits = self._order()
    self.touched: AccessedRanges | None = None           # by all launches; computed at first use
    self.places: list[int] = []                   # the index of the first word of each launch's commands
    self.slots: list[int] = []                    # the offset of each launch's data
    self.words, unit = sum(program.words_of_launch for program in self.programs), device.kernel.alignment
    end = -(-4 * self.words // unit) * unit
    for data in packed:
      self.slots.append(end)
      end += -(-len(data) // unit) * unit
    self.memory = device.allocate(max(end, 1), self.memory_kind, f"recording of {len(launches)} kernels")
    words: list[int] = []
    for program, slot, groups, data, waits in zip(self.programs, self.slots, self.grids, packed, self.waits):
      self.places.append(len(words))
      words += program.launch(self.memory.address + slot, groups, memoryview(data))
      if not waits: words[self.places[-1]:self.places[-1] + len(program.idle)] = program.idle
    assert len(words) == self.words, "launches have as many words as they say"
    if words: self.memory.mapping.copyin(0, struct.pack(f"<{len(words)}I", *words))
    self.pieces = list(self._cut([*self.places, len(words)]))
    for slot, data in zip(self.slots, packed):
      if data: self.memory.mapping.copyin(slot, data)

  def _cut(self, places: list[int]) -> Iterator[Indirect]:
    """Split the commands into pieces, each with as many launches as the hardware's word count allows."""
    start = 0
    for end, after in zip(places[1:], [*places[2:], None]):
      if after is not None and after - start <= self.most_words: continue
      yield Indirect(self.memory.address + 4 * start, end - start)
      start = end

  def _order(self) -> list[bool]:
    """Return which launches wait for those before them."""
    flight = PendingLaunches()
    return [flight.take(places, stores, program.code.private_bytes > 0)
            for program, places, stores in zip(self.programs, self.buffers, self.written)]

  def _moved(self, launch: int, position: int) -> None:
    """Treat a buffer as unknown from now on: its address may differ in each replay."""
    self.buffers[launch][position], self.touched = ANYWHERE, None
    for i, (before, now) in enumerate(zip(self.waits, self._order())):
      if before or not now: continue   # an unnecessary wait does no harm
      self.waits[i], program = True, self.programs[i]
      self.memory.mapping.copyin(4 * self.places[i], struct.pack(f"<{len(program.barrier)}I", *program.barrier))

  def patch(self, launch: int, position: int, value: Any) -> None:
    """Replace an argument. Raises DeviceError if there is none, or for an int that needs more than 64 bits."""
    program = self.programs[launch]
    if not 0 <= position < len(program.code.arguments):
      raise DeviceError(f"kernel {program.name} has {len(program.code.arguments)} arguments; there is no number "
                        f"{position} to patch")
    try:
      if not isinstance(value, int) and Memory.some_of_parent: program.refuse_memory_of_parent([value])
      number = value if isinstance(value, int) else value.address
      changes = [(offset, _SLOT.pack(number + added)) for offset, added in program.places(position)]
    except (struct.error, AttributeError):
      raise DeviceError(f"kernel {program.name}, argument {position}: {value!r} is neither memory of this device nor "
                        f"a 64-bit integer") from None
    self._rest()
    if position < program.buffers and self.buffers[launch][position] is not ANYWHERE: self._moved(launch, position)
    for offset, data in changes: self.memory.mapping.copyin(self.slots[launch] + offset, data)

  def patch_grid(self, launch: int, grid: int) -> None:
    """Replace the number of workgroups of a launch."""
    if grid == self.grids[launch]: return
    program = self.programs[launch]
    if not 0 <= grid <= MOST_GROUPS:
      raise DeviceError(f"kernel {program.name}: a grid of {grid} workgroups; it is from 0 to {MOST_GROUPS}")
    self._rest()
    self.grids[launch] = grid
    program.regrid(self, launch, grid)

  def _rest(self) -> None:
    """Wait until the hardware does not read the memory any more."""
    self.device.check()
    busy, self.busy = self.busy, None
    if busy is not None: self.device.wait_mark(busy)

  def submit(self) -> None:
    """Run all launches."""
    if not self.launches: return
    if self.touched is None:
      self.touched = touched(zip(self.buffers, self.written), [program.place for program in self.programs])
    self.busy = self.device.enqueue(self.pieces, self.work, self.touched)

  def submit_timed(self) -> list[tuple[int, int]]:
    """Run all launches. Return when each began and ended by the GPU's clock, in nanoseconds of time.perf_counter_ns."""
    data = bytearray(4 * self.words)
    if data: self.memory.mapping.copyout(0, memoryview(data))
    words = struct.unpack(f"<{self.words}I", data)
    calls = [list(words[start:end]) for start, end in zip(self.places, [*self.places[1:], None])]
    return self.device.enqueue_timed(calls, self.work)

  def __del__(self) -> None:
    memory = getattr(self, "memory", None)
    if memory is not None: self.device.release(memory, self.busy)

def _refuse(launch: Launch) -> bytearray: raise explain(launch)
