"""The command ring of the CPU device: threads that run machine code, the packets that they read, and recorded batches.

The loop itself is machine code (tinyhw/isa/x86/runtime.py explains how it shares work and when it sleeps); here its memory is laid out and its
threads are started. The thread that submits works too, so a batch of small kernels is one call and wakes nobody. Threads start with the first
packet that has several chunks. After a fork the child has none, and starts its own.
"""
from __future__ import annotations
import ctypes
import os
import struct
import sys
import threading
from collections.abc import Sequence
from typing import Any

from tinyhw.autogen import cpu_ring
from tinyhw.device import Launch
from tinyhw.drivers.cpu.memory import CodeArena, Memory, address_of, map_private
from tinyhw.errors import DriverError
from tinyhw.machine.code import Code

RING_PACKETS = 1024
SPIN_TICKS = 75_000            # of the time stamp counter: 25 to 40 us at the usual 2 to 3 GHz
CHUNKS_PER_THREAD = 4          # so that a thread which loses its processor holds the others up for a quarter of its share
PACKET = struct.Struct("<8Q")
MIN_SCRATCH_BYTES = 4096
STAGE_BYTES = 1 << 16          # of batches that run once

def packet(function: int, arguments: int, grid: int, chunks: int, required: int, base: int) -> bytes:
  """A packet as the loop reads it: a grid cut into chunks."""
  size = -(-grid // chunks) if grid else 1
  return PACKET.pack(function, arguments, grid, size, max(chunks, 1), required, base, 0)

class Program:
  """Machine code in memory. Unloaded with its last reference."""
  __slots__ = ("name", "address", "arena", "chunk", "lock", "local_bytes")

  def __init__(self, code: Code, arena: CodeArena, lock: threading.RLock):
    self.name, self.arena, self.lock, self.local_bytes = code.name, arena, lock, code.local_bytes
    start, self.chunk = arena.add(code.text)
    self.address = start + code.entry

  def __del__(self) -> None:
    if hasattr(self, "chunk"):
      with self.lock: self.arena.release(self.chunk)

class Ring:
  """The ring, its threads and their scratch memory. One caller at a time: `lock` is held during a batch."""

  def __init__(self, loop: Code, threads: int, arena: CodeArena):
    self.threads, self.arena, self.lock = max(threads, 1), arena, threading.RLock()
    entry, self.chunk = arena.add(loop.text)
    self.entry = entry + loop.entry
    self.call = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)(self.entry)
    self.scratch_bytes = 0
    self.process = os.getpid()
    self._lay_out()

  def _lay_out(self) -> None:
    """Fresh memory, as if no thread had ever run."""
    records = cpu_ring.CONTEXT_BYTES
    packets = records + self.threads * cpu_ring.RECORD_BYTES
    self.memory = map_private(packets + RING_PACKETS * cpu_ring.PACKET_BYTES)
    self.context = address_of(self.memory)
    self.records = [self.context + records + k * cpu_ring.RECORD_BYTES for k in range(self.threads)]
    for name, value in (("RING", self.context + packets), ("MASK", RING_PACKETS - 1), ("SPIN", SPIN_TICKS), *system_functions().items()):
      self._set(cpu_ring.CONTEXT[name], value)
    self.scratch: list[Any] = []
    for k in range(self.threads):
      self._set(records + k * cpu_ring.RECORD_BYTES + cpu_ring.RECORD["CONTEXT_ADDRESS"], self.context)
      self._set(records + k * cpu_ring.RECORD_BYTES + cpu_ring.RECORD["WORKER"], int(k > 0))
    wanted, self.scratch_bytes = max(self.scratch_bytes, MIN_SCRATCH_BYTES), 0
    self.reserve(wanted)
    self.started: list[int] = []
    stage = map_private(STAGE_BYTES)
    self.stage = Memory(address_of(stage), STAGE_BYTES, memoryview(stage))

  def _set(self, offset: int, value: int) -> None: struct.pack_into("<Q", self.memory, offset, value)

  def reserve(self, size: int) -> None:
    """Make sure that each thread has so much scratch memory. No kernel may be running."""
    if size <= self.scratch_bytes: return
    self.scratch_bytes = (size + 4095) // 4096 * 4096
    stride = self.scratch_bytes + 4096     # threads do not share pages
    mapping = map_private(stride * self.threads)
    start = address_of(mapping)
    for k in range(self.threads):
      self._set(cpu_ring.CONTEXT_BYTES + k * cpu_ring.RECORD_BYTES + cpu_ring.RECORD["SCRATCH"], start + k * stride)
    self.scratch = [mapping]

  # ***** threads *****

  def start(self) -> None:
    """Start the workers that are not running yet."""
    if self.process != os.getpid():
      self.process = os.getpid()
      self._lay_out()
    for record in self.records[1 + len(self.started):]: self.started.append(start_thread(self.entry, record))

  def stop(self) -> None:
    """Let all workers return, and wait for them."""
    with self.lock:
      if not self.started or self.process != os.getpid(): return
      struct.pack_into("<I", self.memory, cpu_ring.CONTEXT["STOP"], 1)
      self.call(self.records[0], None, 0)
      for thread in self.started: join_thread(thread)
      self.started = []
      struct.pack_into("<I", self.memory, cpu_ring.CONTEXT["STOP"], 0)

  # ***** batches *****

  def chunks_of(self, launch: Launch) -> int:
    """Into how many chunks a launch's grid is cut; a small kernel stays whole, since waking a thread costs more than it does."""
    if launch.small or self.threads == 1: return 1
    return max(1, min(launch.grid, self.threads * CHUNKS_PER_THREAD))

  def pack(self, launches: Sequence[Launch], slots: Memory) -> tuple[bytearray, list[int]]:
    """Packets of a batch, and where in `slots` (filled here) each launch's arguments begin."""
    packets, starts = bytearray(), []
    position = base = required = 0
    for launch in launches:
      program, buffers = launch.program, launch.buffers
      values = [b.address for b in buffers] + [v & 0xFFFFFFFFFFFFFFFF for v in launch.variables]
      struct.pack_into(f"<{len(values)}Q", slots.view, position, *values)
      if not launch.independent: required = base
      chunks = self.chunks_of(launch)
      packets += packet(program.address, slots.address + position, launch.grid, chunks, required, base)
      starts.append(position)
      base += chunks
      position += 8 * len(values)
    if base > len(launches): self.start()
    return packets, starts

  def submit(self, launches: Sequence[Launch]) -> None:
    """Run launches once, through memory that is kept for the purpose; long batches get memory of their own."""
    size = slots_of(launches)
    if size + len(launches) * cpu_ring.PACKET_BYTES > STAGE_BYTES: return Batch(self, launches).submit()
    with self.lock:
      packets, _ = self.pack(launches, self.stage)
      self.stage.view[size:size + len(packets)] = packets
      self.run(self.stage.address + size, len(launches))

  def run(self, packets: int, count: int) -> None:
    """Run a batch and return when it is done. The lock is held."""
    if self.process != os.getpid(): self.start()
    self.call(self.records[0], packets, count)

def slots_of(launches: Sequence[Launch]) -> int: return sum(8 * (len(launch.buffers) + len(launch.variables)) for launch in launches) or 8

class Batch:
  """A prebuilt batch: packets, and argument slots that can be patched. Replaying it is one call."""

  def __init__(self, ring: Ring, launches: Sequence[Launch]):
    self.ring, self.count = ring, len(launches)
    self.programs = [launch.program for launch in launches]
    size = slots_of(launches)
    self.memory = map_private(size + self.count * cpu_ring.PACKET_BYTES)
    address = address_of(self.memory)
    with ring.lock: packets, self.starts = ring.pack(launches, Memory(address, size, memoryview(self.memory)[:size]))
    self.memory[size:size + len(packets)] = packets
    self.packets, self.packets_at = address + size, size
    self.slots = memoryview(self.memory)[:size // 8 * 8].cast("Q")

  def patch(self, launch: int, position: int, value: Any) -> None:
    """Replace an argument by an opaque buffer or an int."""
    self.slots[self.starts[launch] // 8 + position] = value & 0xFFFFFFFFFFFFFFFF if isinstance(value, int) else value.address

  def patch_grid(self, launch: int, grid: int) -> None:
    """Replace the number of work items. The number of chunks stays; those behind the end of the grid are skipped."""
    at = self.packets_at + launch * cpu_ring.PACKET_BYTES
    chunks = struct.unpack_from("<Q", self.memory, at + cpu_ring.PACKET["CHUNKS"])[0]
    struct.pack_into("<2Q", self.memory, at + cpu_ring.PACKET["GRID"], grid, -(-grid // chunks) if grid else 1)

  def submit(self) -> None:
    with self.ring.lock: self.ring.run(self.packets, self.count)

# ***** the operating system *****

def system_functions() -> dict[str, int]:
  """Addresses of the functions with which threads wait, where they are functions. macOS and Windows are untested."""
  if sys.platform == "darwin":
    library = ctypes.CDLL(None)
    wait, wake = (ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0 for name in ("__ulock_wait", "__ulock_wake"))
    return {"OS_WAIT": wait, "OS_WAKE_ONE": wake, "OS_WAKE_ALL": wake}
  if sys.platform == "win32":
    library = ctypes.WinDLL("api-ms-win-core-synch-l1-2-0")  # type: ignore[attr-defined,unused-ignore]  # exists on Windows only
    names = {"OS_WAIT": "WaitOnAddress", "OS_WAKE_ONE": "WakeByAddressSingle", "OS_WAKE_ALL": "WakeByAddressAll"}
    return {key: ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0 for key, name in names.items()}
  return {}

def start_thread(entry: int, argument: int) -> int:
  """A native thread that runs the function at `entry`. Raises DriverError."""
  if sys.platform == "win32":
    kernel = ctypes.WinDLL("kernel32")  # type: ignore[attr-defined,unused-ignore]
    kernel.CreateThread.restype, kernel.CreateThread.argtypes = ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_void_p] * 4
    handle = kernel.CreateThread(None, 0, entry, argument, 0, None)
    if not handle: raise DriverError("CreateThread failed; set THREADS=1 to work without threads")
    return int(handle)
  thread = ctypes.c_void_p()
  library = ctypes.CDLL(None)
  error = library.pthread_create(ctypes.byref(thread), None, ctypes.c_void_p(entry), ctypes.c_void_p(argument))
  if error: raise DriverError(f"starting a thread: {os.strerror(error)}; raise the limit on processes (ulimit -u), or set THREADS=1")
  return thread.value or 0

def join_thread(thread: int) -> None:
  if sys.platform == "win32":
    kernel = ctypes.WinDLL("kernel32")  # type: ignore[attr-defined,unused-ignore]
    kernel.WaitForSingleObject(ctypes.c_void_p(thread), -1)
    kernel.CloseHandle(ctypes.c_void_p(thread))
  else: ctypes.CDLL(None).pthread_join(ctypes.c_void_p(thread), None)
