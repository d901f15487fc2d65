"""The command ring of the CPU and the native threads that read it.

The threads run the worker loop and never touch Python. tinyhw/isa/x86/runtime.py explains the loop; drivers/cpu/loop.py
has it in C. The threads start with the first kernel of several chunks, sleep when they are idle, and stop for a fork
and at exit.
"""
from __future__ import annotations
import contextlib
import ctypes
import functools
import mmap
import os
import signal
import struct
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from tinyhw.autogen import cpu_ring
from tinyhw.autogen.cpu_ring import CONTEXT, CONTEXT_BYTES, PACKET_BYTES, RECORD, RECORD_BYTES
from tinyhw.config import THREADS
from tinyhw.drivers.cpu.memory import IS_WINDOWS, address_of, map_aligned, map_private
from tinyhw.errors import ConfigError, DeviceError, DriverError
from tinyhw.threads import available_cores

RING_PACKETS = 256
CHUNKS_PER_THREAD = 4       # of a grid: a thread that loses its core delays the others by a quarter of its share
CHUNK_COST = 0.002          # of taking one more chunk, in parts of a grid's time

# The kernel sends these signals to the thread that caused them. They stay unblocked in workers, so that a crash is
# reported.
FAULTS = {"SIGSEGV", "SIGBUS", "SIGILL", "SIGFPE", "SIGTRAP", "SIGABRT"}

BATCH = struct.Struct("<2Q")  # BATCH and COUNT of a record
assert RECORD["COUNT"] == RECORD["BATCH"] + 8

def available_threads() -> int:
  """Return THREADS, or the number of cores that this process may use.

  Raises ConfigError.
  """
  if THREADS.value < 0:
    raise ConfigError(f"THREADS={THREADS.value} is no number of threads; set it to 1 or more, or to 0 for one per core")
  return THREADS.value or available_cores()

@functools.lru_cache(maxsize=1024)
def split(grid: int, threads: int) -> tuple[int, int]:
  """Return the count of chunks of a grid, and the work items of a chunk.

  Chunks of a few items are smaller where their count does not suit the threads: seven chunks of six items keep one of
  two threads busy for 24 items, and the other for 18.
  """
  if threads == 1 or grid <= 1: return 1, grid
  wanted = threads * CHUNKS_PER_THREAD
  size = -(-grid // min(grid, wanted))
  if size <= 2 * wanted: size = min(range(size, 0, -1), key=lambda n: _cost_of(grid, threads, n))
  return -(-grid // size), size

def _cost_of(grid: int, threads: int, size: int) -> float:
  """Return the time of the busiest thread, of which the grid has one part for each thread."""
  rounds = -(-(-(-grid // size)) // threads)
  return rounds * (size * threads / grid + CHUNK_COST)

@contextlib.contextmanager
def signals_blocked() -> Iterator[None]:
  """Block all signals except faults in this thread, and in threads that it starts.

  Python's handlers belong to Python's threads, whose waits they must interrupt. A handler may run inside nevertheless,
  if another thread of the program receives the signal.
  """
  if IS_WINDOWS:
    yield
    return
  old = signal.pthread_sigmask(signal.SIG_BLOCK, ())
  try:
    signal.pthread_sigmask(signal.SIG_BLOCK,
                           {s for s in signal.valid_signals() if getattr(s, "name", "") not in FAULTS})
    yield
  finally: signal.pthread_sigmask(signal.SIG_SETMASK, old)

JOINABLE = 0x656c_6261_6e69_6f6a   # no thread ends with this result

class NativeThread:
  """A native thread.

  The system writes `handle` at its start and `result` at the end of a join, before Python continues. So both states are
  known, wherever a signal's handler raises.
  """
  def __init__(self) -> None: self.handle, self.result = ctypes.c_void_p(), ctypes.c_uint64(JOINABLE)

class Threads:
  """Native threads whose start routine is machine code. Unix."""
  def __init__(self) -> None:
    self.libc = ctypes.CDLL(None)
    self.libc.pthread_create.argtypes = (ctypes.c_void_p,) * 4
    self.libc.pthread_join.argtypes = (ctypes.c_void_p,) * 2

  def start(self, thread: NativeThread, routine: int, argument: int) -> str:
    """Start the thread. Return the reason of a failure, or ""."""
    code = self.libc.pthread_create(ctypes.byref(thread.handle), None, routine, argument)
    return os.strerror(code) if code else ""

  def join(self, thread: NativeThread) -> None:
    """Wait for its end. Does nothing if it never began, or was joined before."""
    if thread.handle.value and thread.result.value == JOINABLE:
      self.libc.pthread_join(thread.handle, ctypes.byref(thread.result))

class WindowsThreads:
  """Native threads with CreateThread. Untested."""
  def __init__(self) -> None:
    self.kernel = ctypes.WinDLL("kernel32")  # type: ignore[attr-defined,unused-ignore]  # exists on Windows only
    self.kernel.CreateThread.restype = ctypes.c_void_p
    self.kernel.CreateThread.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_void_p,
                                         ctypes.c_uint32, ctypes.c_void_p)
    self.kernel.WaitForSingleObject.argtypes = (ctypes.c_void_p, ctypes.c_uint32)
    self.kernel.CloseHandle.argtypes = (ctypes.c_void_p,)

  def start(self, thread: NativeThread, routine: int, argument: int) -> str:
    thread.handle.value = self.kernel.CreateThread(None, 0, routine, argument, 0, None)
    return "" if thread.handle.value else "CreateThread failed"

  def join(self, thread: NativeThread) -> None:
    if not thread.handle.value: return
    self.kernel.WaitForSingleObject(thread.handle, 0xffffffff)
    self.kernel.CloseHandle(thread.handle)
    thread.handle.value = None

def wait_functions() -> tuple[int, int, int]:
  """Return the addresses of the system's functions to wait for a change of a word, and to wake one or all waiters.

  They are 0 if system calls do it.
  """
  if sys.platform == "darwin": library, names = ctypes.CDLL(None), ("__ulock_wait", "__ulock_wake", "__ulock_wake")
  elif IS_WINDOWS:
    library, names = ctypes.CDLL("api-ms-win-core-synch-l1-2-0"), ("WaitOnAddress", "WakeByAddressSingle",
                                                                   "WakeByAddressAll")
  else: return 0, 0, 0
  wait, wake_one, wake_all = (ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0 for name in names)
  return wait, wake_one, wake_all

class WorkerLoop(Protocol):
  """The worker loop's code.

  entry: its address, the start routine of the workers. spin: the time that it spins before it sleeps, in its own unit.
  """
  entry: int
  spin: int
  def bind(self, record: int, memory: mmap.mmap, batch_at: int) -> Callable[[], None]:
    """Return a function that runs the batch of the caller's record at an address.

    batch_at: the address of BATCH and COUNT in memory.
    """
  def close(self) -> None:
    """Free the code's memory."""

class Ring:
  """The memory shared with the worker loop, and its threads. The loop's code must stay until `close`.

  `run` may be called by any Python thread, one at a time: hold `lock`.
  """
  def __init__(self, loop: WorkerLoop, threads: int, packets: int = RING_PACKETS):
    assert packets & (packets - 1) == 0, "the ring's size is a power of two"
    self.entry, self.threads = loop.entry, threads
    self.lock = threading.RLock()
    self.handles: list[NativeThread] = []
    self.records = CONTEXT_BYTES
    ring = self.records + threads * RECORD_BYTES
    self.memory = map_private(ring + packets * PACKET_BYTES)
    self.address = address_of(self.memory)
    self.record = self.address + self.records  # of the calling thread
    self.scratch: Any = None
    self.scratch_bytes = 0
    wait, wake_one, wake_all = wait_functions()
    for name, value in (("RING", self.address + ring), ("MASK", packets - 1), ("SPIN", loop.spin),
                        ("OS_WAIT", wait), ("OS_WAKE_ONE", wake_one), ("OS_WAKE_ALL", wake_all)):
      self._set(CONTEXT[name], value)
    for i in range(threads):
      self._set(self.records + i * RECORD_BYTES + RECORD["CONTEXT_ADDRESS"], self.address)
      self._set(self.records + i * RECORD_BYTES + RECORD["WORKER"], int(i > 0))
    self.batch: Any = None                     # the batch of the caller's record
    self._batch_at = self.records + RECORD["BATCH"]
    self._submit: Callable[[], None] = loop.bind(self.record, self.memory, self._batch_at)
    self.system = WindowsThreads() if IS_WINDOWS else Threads()

  def _set(self, offset: int, value: int) -> None: struct.pack_into("<Q", self.memory, offset, value)

  def read(self, name: str) -> int:
    """Return a field of the context, for tests and doctor."""
    wide = name not in cpu_ring.WORDS
    return int(struct.unpack_from("<Q" if wide else "<I", self.memory, CONTEXT[name])[0])

  def run(self, batch: Any, packets: int, count: int) -> None:
    """Run `count` packets at an address. Return when all are done. The lock must be held.

    batch: an object that stands for this address and count. The record is not written again if the same batch ran last.
    """
    if self.batch is not batch:
      self.batch = None
      BATCH.pack_into(self.memory, self._batch_at, packets, count)
      self.batch = batch
    self._submit()

  def start(self) -> None:
    """Start the workers if they do not run.

    If the system refuses some, the others do their work. Raises DriverError if it refuses all.
    """
    with self.lock:
      if self.handles or self.threads == 1: return
      try: refused = self._start()
      except BaseException:
        self.stop()
        raise
      if not self.handles:
        raise DriverError(f"starting a thread: {refused}; raise the limit on processes (ulimit -u), or set THREADS=1")

  def _start(self) -> str:
    """Start the threads. Return the reason of the last refusal, or ""."""
    struct.pack_into("<I", self.memory, CONTEXT["STOP"], 0)
    with signals_blocked():
      for i in range(1, self.threads):
        # first: whatever is raised from here on, two threads never have the same record
        self.handles.append(NativeThread())
        refused = self.system.start(self.handles[-1], self.entry, self.record + i * RECORD_BYTES)
        if refused:
          self.handles.pop()
          return refused
    return ""

  def stop(self) -> None:
    """Stop the workers and wait for them.

    `start` starts new ones. An exception of a signal handler during the call does not prevent the stop.
    """
    with self.lock:
      if not self.handles: return
      try: self._stop()
      except BaseException:
        self._stop()
        raise

  def _stop(self) -> None:
    with signals_blocked():
      struct.pack_into("<I", self.memory, CONTEXT["STOP"], 1)
      self.run("stop", 0, 0)  # wakes all
      while self.handles:
        self.system.join(self.handles[-1])
        self.handles.pop()

  def reserve_scratch(self, size: int) -> None:
    """Give each thread at least `size` bytes of scratch memory, 64-byte aligned.

    Takes the lock, so no kernel runs meanwhile.
    """
    if size <= self.scratch_bytes: return
    with self.lock:
      each = (size + 4095) & -4096
      try: memory = map_aligned(each * self.threads)
      except (OSError, OverflowError, MemoryError) as error:
        raise DriverError(f"scratch memory of {self.threads} threads, {each} bytes each: {error}") from error
      base = memory.address
      for i in range(self.threads): self._set(self.records + i * RECORD_BYTES + RECORD["SCRATCH"], base + i * each)
      self.scratch, self.scratch_bytes = memory, each

  @property
  def timeline(self) -> int:
    """The count of completed batches."""
    return self.read("TIMELINE")

  def close(self) -> None:
    """Stop the workers for good. Launches raise DeviceError from now on."""
    with self.lock:
      self.stop()
      self.threads, self.scratch, self.scratch_bytes, self.batch = 1, None, 0, None
      self._submit = _raise_closed

  def __del__(self) -> None:
    if getattr(self, "handles", None): self.stop()

def _raise_closed() -> None:
  raise DeviceError("the device is closed; open it again with Device[...] and load the kernels there")

assert cpu_ring.CHUNK_BITS + cpu_ring.SERIAL_BITS == 64
