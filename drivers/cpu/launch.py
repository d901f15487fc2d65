"""Kernels on host threads: loading, launching and recording.

The CPU and CLANG devices share this code. They differ in how Code becomes an address.
"""
from __future__ import annotations
import struct
import threading
import time
from collections.abc import Sequence

from tinyhw.autogen.cpu_ring import PACKET, PACKET_BYTES
from tinyhw.device import Compiled, Launch
from tinyhw.drivers.cpu.memory import CodeArena, CodeChunk, HostAllocator, Memory, address_of
from tinyhw.drivers.cpu.workers import WorkerLoop, Ring, available_threads, split
from tinyhw.errors import DeviceError
from tinyhw.machine.ir.code import Code

PACKET_FORMAT = "<6q16x"  # the fields of PACKET, in order
assert list(PACKET) == ["FUNCTION", "ARGUMENTS", "GRID", "SIZE", "CHUNKS",
                        "REQUIRED"] and struct.calcsize(PACKET_FORMAT) == PACKET_BYTES
_SLOT = struct.Struct("<q")

class HostProgram:
  """A loaded kernel: its address and the layout of its arguments.

  `owner` keeps it in memory and is called back when it is garbage.
  """
  __slots__ = ("name", "address", "buffers", "variables", "packer", "arguments", "arena", "chunk")

  def __init__(self, code: Code, address: int, arena: CodeArena | None = None, chunk: CodeChunk | None = None):
    self.name, self.address, self.arena, self.chunk = code.name, address, arena, chunk
    self.buffers = code.arguments.count("buffer")
    self.variables = len(code.arguments) - self.buffers
    self.arguments = struct.Struct(f"<{len(code.arguments)}q")
    self.packer = struct.Struct(f"{PACKET_FORMAT}{len(code.arguments)}q")

  def __del__(self) -> None:
    arena = getattr(self, "arena", None)
    if arena is not None: arena.release(self.chunk)

  def __repr__(self) -> str: return f"<HostProgram {self.name} at {self.address:#x}>"

class Staging:
  """Room for one packet and its arguments."""
  __slots__ = ("memory", "address", "arguments")

  def __init__(self, size: int):
    self.memory = bytearray(size)
    self.address = address_of(self.memory)
    self.arguments = self.address + PACKET_BYTES

class HostRecording:
  """Packets and arguments in one block, ready to run. Argument slots can be patched between runs."""
  def __init__(self, device: HostDevice, launches: Sequence[Launch]):
    self.device, self.launches = device, len(launches)
    self.programs: list[HostProgram] = [launch.program for launch in launches]
    self.grids = [launch.grid for launch in launches]
    self.small = [launch.small for launch in launches]
    self.slots: list[int] = []  # offset of each launch's arguments
    end = PACKET_BYTES * len(launches)
    for program in self.programs:
      self.slots.append(end)
      end += program.arguments.size
    self.memory = bytearray(end)
    self.address = address_of(self.memory) if end else 0
    for i, launch in enumerate(launches):
      try:
        launch.program.arguments.pack_into(self.memory, self.slots[i], *[b.address for b in launch.buffers],
                                           *launch.variables)
      except (struct.error, AttributeError): raise explain(launch) from None
      if len(launch.buffers) != launch.program.buffers or launch.grid < 0: raise explain(launch)
    self.linked = False
    self._link()

  def _link(self) -> None:
    """Write the packets, if a grid has changed: the chunks of each grid, and the count of chunks before it."""
    if self.linked: return
    required = 0
    self.parallel = False
    for i, program in enumerate(self.programs):
      chunks, size = split(self.grids[i], 1 if self.small[i] else self.device.ring.threads)
      struct.pack_into(PACKET_FORMAT, self.memory, i * PACKET_BYTES, program.address, self.address + self.slots[i],
                       self.grids[i], size, chunks,
                       required)
      self.parallel = self.parallel or chunks > 1
      required += chunks
    self.linked = True

  def patch(self, launch: int, position: int, value: Memory | int) -> None:
    """Replace an argument. Raises DeviceError if there is none, or for an int that needs more than 64 bits."""
    program = self.programs[launch]
    if not 0 <= position < program.buffers + program.variables:
      raise DeviceError(f"kernel {program.name} has {program.buffers + program.variables} arguments; there is no "
                        f"number {position} to patch")
    try:
      _SLOT.pack_into(self.memory, self.slots[launch] + 8 * position, value if isinstance(value, int)
                      else value.address)
    except (struct.error, AttributeError):
      raise DeviceError(f"kernel {program.name}, argument {position}: {value!r} is neither memory of this device nor "
                        f"a 64-bit integer") from None

  def patch_grid(self, launch: int, grid: int) -> None:
    """Replace the number of work items of a launch."""
    if grid == self.grids[launch]: return
    if grid < 0:
      raise DeviceError(f"kernel {self.programs[launch].name}: a grid of {grid} work items; it is at least 0")
    self.grids[launch], self.linked = grid, False

  def submit(self) -> None:
    if not self.launches: return
    self._link()
    ring = self.device.ring
    if self.parallel and not ring.handles: ring.start()
    with ring.lock: ring.run(self, self.address, self.launches)

  def submit_timed(self) -> list[tuple[int, int]]:
    """Run the packets one by one, each as a batch that waits for no other. Return when each began and ended
    (perf_counter_ns)."""
    ring, times = self.device.ring, []
    self._link()
    if self.parallel and not ring.handles: ring.start()
    for i in range(self.launches):
      packet = bytearray(self.memory[i * PACKET_BYTES:(i + 1) * PACKET_BYTES])
      struct.pack_into("<q", packet, PACKET["REQUIRED"], 0)
      with ring.lock:
        address, start = address_of(packet), time.perf_counter_ns()
        ring.run(packet, address, 1)
        times.append((start, time.perf_counter_ns()))
    return times

class HostDevice(Compiled):
  """A device whose kernels run on the worker threads. Subclasses turn Code into a HostProgram."""
  shares_operands = True
  runs_in_order = True
  row_bytes = 1 << 18           # half of the second-level cache of common processors

  def __init__(self, name: str, arch: str, loop: WorkerLoop, threads: int | None = None):
    # first: close() must not run for a device that fails to open
    ring = Ring(loop, available_threads() if threads is None else threads)
    super().__init__(name, HostAllocator(name), arch=arch)
    self.loop, self.ring = loop, ring
    self.staging_bytes = PACKET_BYTES + 8 * 64
    self.staging: Staging | None = None

  def place(self, code: Code) -> HostProgram:
    """Make the code callable. Raises DriverError or CompileError."""
    raise NotImplementedError

  def load(self, code: Code) -> HostProgram:
    program = self.place(code)
    with self.ring.lock:
      if program.packer.size > self.staging_bytes: self.staging_bytes, self.staging = program.packer.size, None
    self.ring.reserve_scratch(code.local_bytes)
    return program

  def submit(self, launches: Sequence[Launch]) -> None:
    """Run launches in order. Return when they are done.

    A single launch, the most frequent case, has a fast path: 1 us of Python.
    """
    if len(launches) != 1: return HostRecording(self, launches).submit()
    program, buffers, variables, grid, small, _, _ = launches[0]
    ring = self.ring
    chunks, size = (1, grid) if small or grid <= 1 else split(grid, ring.threads)
    with ring.lock:
      # a signal handler that runs meanwhile makes its own
      staging, self.staging = self.staging or Staging(self.staging_bytes), None
      try:
        if len(buffers) != program.buffers or grid < 0: raise explain(launches[0])
        program.packer.pack_into(staging.memory, 0, program.address, staging.arguments, grid, size, chunks, 0,
                                 *[b.address for b in buffers], *variables)
      except (struct.error, AttributeError): raise explain(launches[0]) from None
      if chunks > 1 and not ring.handles: ring.start()
      ring.run(staging, staging.address, 1)
      self.staging = staging

  def record(self, launches: Sequence[Launch]) -> HostRecording: return HostRecording(self, launches)

  def rest(self) -> None: self.ring.stop()

  def before_fork(self) -> None:
    """Stop the workers and block submissions. The child begins without threads and with an idle ring."""
    self.ring.lock.acquire()
    self.rest()

  def after_fork(self, in_child: bool) -> None:
    if in_child:
      self.ring.lock = threading.RLock()
      super().after_fork(in_child)
    else: self.ring.lock.release()

  def close(self) -> None:
    super().close()
    with self.ring.lock:
      self.ring.close()
      self.loop.close()
      self.staging = None
    self.allocator.close()

def explain(launch: Launch) -> DeviceError:
  """Explain why a launch could not be packed."""
  program = launch.program
  if not isinstance(program, HostProgram):
    return DeviceError(f"cannot launch {program!r}; pass what load() of this device returned")
  if len(launch.buffers) != program.buffers or len(launch.variables) != program.variables:
    return DeviceError(f"kernel {program.name} takes {program.buffers} buffers and {program.variables} variables, "
                       f"not {len(launch.buffers)} and {len(launch.variables)}")
  for i, buffer in enumerate(launch.buffers):
    if not hasattr(buffer, "address"):
      return DeviceError(f"kernel {program.name}, buffer {i}: {buffer!r} is not allocated memory of this device")
  if not isinstance(launch.grid, int) or launch.grid < 0:
    return DeviceError(f"kernel {program.name}: grid is {launch.grid!r}, not an integer >= 0")
  return DeviceError(f"kernel {program.name}: variables {tuple(launch.variables)} are not all 64-bit integers")
