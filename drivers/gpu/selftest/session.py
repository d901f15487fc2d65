"""Steps of the self-tests of all GPUs, before the device opens and after it has closed: memory, the clock, both queues
in parallel.

A vendor's module `selftest` has a `GpuSession` with these steps between its own, and a `Bench` (bench.py) with its
commands. Kernels: selftest/kernels.py.
"""
from __future__ import annotations
import contextlib
import gc
import time
from collections.abc import Sequence
from typing import Any

from tinyhw.device import Device
from tinyhw.drivers.gpu.selftest.bench import COPIED, Bench
from tinyhw.drivers.gpu.selftest.kernels import Texts
from tinyhw.drivers.linux.files import machine, map_memory
from tinyhw.errors import DriverError, TinyError
from tinyhw.machine.ir.code import Code
from tinyhw.selftest.frame import Session, Probe, Tools, Wrong

LIMIT_MS = 5000           # for steps that take microseconds
SLEEP_SECONDS = 0.02      # between two reads of the clock
CLOCK_TOLERANCE = 0.02

class GpuSession(Session):
  """The self-test of one GPU.

  limit_ms: the deadline of operations that take microseconds. kinds: of memory. user: the kind of the program's memory.
  tick_ns: of the timestamp clock.
  """
  limit_ms = LIMIT_MS
  tick_ns = 1
  kinds: Sequence[Any] = ()
  user: Any = None

  def __init__(self, name: str, tools: Tools):
    super().__init__(name, tools)
    last = name.rpartition(":")[2]
    self.ordinal, self.box = int(last) if last.isdecimal() else 0, machine()
    self.opened: Any = None

  # **** for subclasses ****

  @property
  def bench(self) -> Bench:
    """Return the bench of the steps before the device opens."""
    raise NotImplementedError

  @property
  def texts(self) -> Texts:
    """Return kernels for the opened device."""
    raise NotImplementedError

  def code(self, text: str, name: str, arguments: Sequence[str], lanes: int, words: dict[str, str],
           **fields: Any) -> Code:
    """Assemble a kernel of such a text. words: replacements for other names in braces."""
    raise NotImplementedError

  def allocate(self, size: int, kind: Any, host: int) -> Any:
    """Allocate memory of a kind. host: the address of the program's memory."""
    raise NotImplementedError

  def count(self) -> int:
    """Return the count of GPUs that this process may use."""
    raise NotImplementedError

  def spill_bytes(self) -> int:
    """Return the bytes of spill memory of the opened device."""
    raise NotImplementedError

  def kept(self) -> str:
    """Describe the resources that a closed device left because of references; empty for none."""
    raise NotImplementedError

  # **** the end ****

  def recover(self) -> None:
    """Abandon queues that may hang, and a device that is lost."""
    with contextlib.suppress(TinyError): self.close()
    with contextlib.suppress(TinyError): Device.close(self.name)

  def close(self) -> None:
    opened, self.opened = self.opened, None
    if opened is not None: opened.close()

# **** steps ****

def memory(s: GpuSession) -> str: return _each(s, [kind for kind in s.kinds if kind is not s.user])
def pinned(s: GpuSession) -> str: return _each(s, [s.user])

def _each(s: GpuSession, kinds: Sequence[Any]) -> str:
  """Test each kind of memory. The processor writes and reads visible ones."""
  host = map_memory(COPIED)
  try:
    for kind in kinds:
      try: made = s.allocate(COPIED, kind, host.address if kind is s.user else 0)
      except DriverError as error: raise Wrong(f"{kind}: {error.message}") from error
      try:
        if not kind.visible: continue
        made.mapping.store32(COPIED - 4, 0x12345678)
        if made.mapping.load32(COPIED - 4) != 0x12345678:
          raise Wrong(f"{kind}: the processor does not read what it has written")
      finally: made.close()
  finally: host.close()
  return f"{', '.join(map(str, kinds))}: allocated, mapped and given back"

def clock(s: GpuSession) -> str:
  """Compare the distance of two reads of the GPU's clock with the host's clock."""
  looks = list[tuple[int, float, float]]()
  for _ in range(2):
    looks.append(s.bench.look_at_clock())
    time.sleep(SLEEP_SECONDS)
  (first, before, seen), (second, asked, after) = looks
  seconds = (second - first) * s.tick_ns / 1e9
  if not (asked - seen) * (1 - CLOCK_TOLERANCE) <= seconds <= (after - before) * (1 + CLOCK_TOLERANCE):
    raise Wrong(f"the clock went on by {second - first} ticks of {s.tick_ns} ns, which are {seconds * 1e3:.3f} ms, "
                f"while "
                f"{(asked - seen) * 1e3:.3f} to {(after - before) * 1e3:.3f} ms went by")
  return f"{second - first} ticks of {s.tick_ns} ns in {(after - before) * 1e3:.2f} ms"

def side_by_side(s: GpuSession) -> str:
  """Run both queues in parallel: the compute queue waits for a write of the copy queue, which waits for a write of the
  compute queue.

  Neither may wait for the other's end.
  """
  bench = s.bench
  asked, answered, done = (bench.page.address + bench.word() for _ in range(3))
  bench.converse(asked, answered, done)
  bench.wait_word(done - bench.page.address, 1, "the answer of the copy engine to the compute queue")
  return "each answered the other in the middle of its work"

def let_go(s: GpuSession) -> None:
  """Close the device. Raises Wrong if a resource of it is left."""
  gc.collect()  # captured steps have reference cycles
  Device.close(s.name)
  if kept := s.kept(): raise Wrong(f"buffers are still referenced after the device was closed: {kept}")

def clock_step(check: str) -> Probe:
  return Probe("clock", "does the GPU's clock go as fast as the driver thinks", check, clock)
def memory_step(check: str) -> Probe:
  return Probe("memory", "does the kernel give and map each kind of memory", check, memory, basic=True)

def pinned_step(check: str) -> Probe:
  return Probe("memory of the program", "does the GPU see pages of this process", check, pinned)

def side_by_side_step(check: str) -> Probe:
  return Probe("side by side", "do the compute queue and the copy engine work at the same time", check, side_by_side)
