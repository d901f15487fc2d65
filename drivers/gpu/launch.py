"""Kernels in a GPU's memory, the arguments of their launches, and Recordings.

A kernel finds its arguments (8-byte slots: addresses of buffers, then int64 variables) in memory, as a subclass of
`Kernel` says. A launch is a few words of commands, and data that they point to; what changes from launch to launch are
a few words of both.
"""
from __future__ import annotations
import struct
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from tinyhw.config import TRACEMETA
from tinyhw.device import Launch, LRUAllocator
from tinyhw.drivers.gpu.order import ANYWHERE, Flight, Touched, place, touched, written
from tinyhw.errors import DeviceError
from tinyhw.machine.ir.code import Code
from tinyhw.named_tuple import NamedTuple
from tinyhw.trace import Location, caller
if TYPE_CHECKING:
  from tinyhw.drivers.gpu.device import GpuDevice
  from tinyhw.drivers.gpu.memory import Part

MOST_GROUPS = (1 << 32) - 1
_SLOT = struct.Struct("<q")

class Indirect(NamedTuple):
  """Words that are in memory already: commands that the hardware is sent to."""
  address: int
  words: int

Work = tuple[str, Location | None]  # a kernel or copy of a submission, for reports: its name, and where the program
                                    # wants it

def work_of(launch: Launch) -> Work: return launch.program.name, launch.line

def work_of_copy(dest: int, source: int, size: int) -> list[Work]:
  """A submission that copies bytes from one address to another."""
  return [(f"copy of {size} bytes from {source:#x} to {dest:#x}", caller() if TRACEMETA.value else None)]

class Kernel:
  """A kernel in the GPU's memory. Given back when it is garbage: later work finds what it needs in order.

  padding: readable bytes behind the code, which hardware fetches ahead. alignment: of the data of a launch;
  argument_offset: where the slots are in
  it. words_of_launch: how many `launch` gives. barrier: the first of these, which wait for the launches before, where
  launches can do without them (order.py); idle: as many words that do nothing.
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
    # a size that other kernels have too: so a virtual GPU puts new code where old code was, and finds what instruction
    # caches keep
    self.place: Part = device.code.alloc(LRUAllocator.rounded(len(code.text) + self.padding))
    device.code.copyin(self.place, memoryview(code.text + bytes(self.padding)))
    self.prepare()

  def check(self) -> None:
    """Raises DeviceError for what the GPU has not; has the device take memory that all kernels share."""
    raise NotImplementedError

  def prepare(self) -> None:
    """The code is in place."""
    raise NotImplementedError

  def launch(self, address: int, groups: int, data: memoryview) -> list[int]:
    """The commands of a launch whose data, as `pack` made it, is going to be at an address; what depends on that is
    written into it."""
    raise NotImplementedError

  def regrid(self, recording: GpuRecording, launch: int, groups: int) -> None:
    """Another number of workgroups, of a launch of a recording that does not run."""
    raise NotImplementedError

  def places(self, position: int) -> list[tuple[int, int]]:
    """Where the data of a launch has an argument: offsets, and what is added to it there."""
    return [(self.argument_offset + 8 * position, 0)]

  @property
  def start(self) -> int:
    """The address of the first instruction."""
    return self.place.address + self.code.entry

  def pack(self, launch: Launch) -> bytes:
    """The data of a launch. Raises DeviceError that says what is wrong with it."""
    buffers, variables, groups = launch.buffers, launch.variables, launch.grid
    try:
      if len(buffers) != self.buffers or not 0 <= groups <= MOST_GROUPS: raise explain(launch)
      return self.slots.pack(*[b.address for b in buffers], *variables, *[0] * bool(self.code.descriptors))
    except (struct.error, AttributeError, TypeError): raise explain(launch) from None

  def __del__(self) -> None:
    place = getattr(self, "place", None)
    if place is not None: self.device.code.drop(place)

  def __repr__(self) -> str:
    return f"<{type(self).__name__} {self.name} on {self.device.name} at {self.place.address:#x}>"

def explain(launch: Launch) -> DeviceError:
  """What is wrong with a launch that could not be packed."""
  program = launch.program
  if not isinstance(program, Kernel):
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
  """Launches as commands in memory, with their data behind them: a replay is one submission. Those that need each other
  wait for each other.

  A patch writes that memory, so it waits until the last replay is done. A buffer that was patched may be anywhere in
  later replays. most_words: of commands that the hardware is sent to at once.
  """
  most_words = (1 << 20) - 1
  memory_kind: Any

  def __init__(self, device: GpuDevice, launches: Sequence[Launch]):
    self.device, self.launches = device, len(launches)
    self.programs: list[Kernel] = [launch.program for launch in launches]
    self.work = [work_of(launch) for launch in launches if isinstance(launch.program, Kernel)]
    self.busy: tuple[int, int] | None = None      # the last replay
    packed = [bytearray(launch.program.pack(launch)) if isinstance(launch.program, Kernel) else _refuse(launch)
              for launch in launches]
    self.grids = [launch.grid for launch in launches]
    self.buffers = [list(map(place, launch.buffers)) for launch in launches]
    self.written = [written(launch) for launch in launches]
    self.waits = self._order()
    self.touched: Touched | None = None           # by all launches, once that was asked for
    self.places: list[int] = []                   # of each launch's commands: the index of the first word
    self.slots: list[int] = []                    # of each launch's data: the offset
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
    """The pieces that the hardware is sent to, one after the other: as many launches in each as it can count the words
    of."""
    start = 0
    for end, after in zip(places[1:], [*places[2:], None]):
      if after is not None and after - start <= self.most_words: continue
      yield Indirect(self.memory.address + 4 * start, end - start)
      start = end

  def _order(self) -> list[bool]:
    """Which launches wait for those before them."""
    flight = Flight()
    return [flight.take(places, stores, program.code.private_bytes > 0)
            for program, places, stores in zip(self.programs, self.buffers, self.written)]

  def _moved(self, launch: int, position: int) -> None:
    """A buffer is somewhere else from now on, and may be in each replay."""
    self.buffers[launch][position], self.touched = ANYWHERE, None
    for i, (before, now) in enumerate(zip(self.waits, self._order())):
      if before or not now: continue   # one wait too many does no harm
      self.waits[i], program = True, self.programs[i]
      self.memory.mapping.copyin(4 * self.places[i], struct.pack(f"<{len(program.barrier)}I", *program.barrier))

  def patch(self, launch: int, position: int, value: Any) -> None:
    """Replace an argument. Raises DeviceError where there is none, or for an int that needs more than 64 bits."""
    program = self.programs[launch]
    if not 0 <= position < len(program.code.arguments):
      raise DeviceError(f"kernel {program.name} has {len(program.code.arguments)} arguments; there is no number "
                        f"{position} to patch")
    try:
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
    """The hardware does not read it any more."""
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
    """The same, with a look at the GPU's clock between launches: when each began and ended, in nanoseconds of
    time.perf_counter_ns."""
    data = bytearray(4 * self.words)
    if data: self.memory.mapping.copyout(0, memoryview(data))
    words = struct.unpack(f"<{self.words}I", data)
    calls = [list(words[start:end]) for start, end in zip(self.places, [*self.places[1:], None])]
    return self.device.enqueue_timed(calls, self.work)

  def __del__(self) -> None:
    memory = getattr(self, "memory", None)
    if memory is not None: self.device.release(memory, self.busy)

def _refuse(launch: Launch) -> bytearray: raise explain(launch)
