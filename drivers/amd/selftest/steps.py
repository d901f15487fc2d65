"""The steps of `python3 -m tinyhw selftest AMD` before and after the kernels: from the device files to a copy, one part
of the driver after the other.

The steps before the device opens use single parts of the driver (`Bench`). So the first failure names the part of the
driver, the kernel or the card at fault. selftest/kernels.py has the steps with kernels.
"""
from __future__ import annotations
import time
from collections.abc import Sequence
from typing import Any

from tinyhw.autogen.amd import kfd_ioctl
from tinyhw.drivers.amd.aql import AQL_RING_BYTES, AqlQueue
from tinyhw.drivers.amd.commands import Commands
from tinyhw.drivers.amd.device import TICK_NS, AMDDevice
from tinyhw.drivers.amd.events import Events
from tinyhw.drivers.amd.kfd import CODE, HOST, USER, VRAM, Kfd, connect
from tinyhw.drivers.amd.launch import AMDProgram
from tinyhw.drivers.amd.queue import ComputeQueue, Pm4Queue
from tinyhw.drivers.amd.sdma import CopyQueue
from tinyhw.drivers.amd.selftest import kernels as selftest_kernels
from tinyhw.drivers.amd.topology import Gpu, choose, gpus
from tinyhw.drivers.gpu.selftest.bench import RESERVED_AT, Bench
from tinyhw.drivers.gpu.selftest.kernels import Texts
from tinyhw.drivers.gpu.selftest.session import (
  GpuSession, clock_step, let_go, memory_step, pinned_step, side_by_side_step)
from tinyhw.drivers.linux.files import Mapping
from tinyhw.machine.ir.code import Code
from tinyhw.selftest.frame import Probe, Tools, Wrong, short_bytes

class AMDBench(Bench):
  """Queues of an AMD GPU: an `Owner` (queue.py)."""
  def __init__(self, kfd: Kfd, gpu: Gpu, limit_ms: int):
    self.kfd, self.gpu = kfd, gpu
    self.doorbell_pages: Mapping | None = None
    self.made: dict[str, Any] = {}
    super().__init__(lambda size, kind, label: kfd.allocate(gpu, size, kind, label), HOST, VRAM, AMDProgram.alignment,
                     limit_ms,
                     kfd.box.virtual)

  def doorbells(self, offset: int) -> Mapping:
    if self.doorbell_pages is None:
      self.doorbell_pages = self.kfd.doorbells(offset)
      self.undo.callback(self.doorbell_pages.close)
    return self.doorbell_pages

  @property
  def compute(self) -> ComputeQueue:
    if "compute" not in self.made:
      self.made["compute"] = self.keep(Pm4Queue(self) if self.gpu.xccs == 1 else AqlQueue(self, AQL_RING_BYTES))
    return self.made["compute"]  # type: ignore[no-any-return]

  @property
  def copies(self) -> CopyQueue:
    if "copies" not in self.made: self.made["copies"] = self.keep(CopyQueue(self))
    return self.made["copies"]  # type: ignore[no-any-return]

  @property
  def events(self) -> Events:
    if "events" not in self.made:
      self.made["events"] = Events(self.kfd, self.gpu)
      self.undo.callback(self.made["events"].close)
    return self.made["events"]  # type: ignore[no-any-return]

  def commands(self) -> Commands:
    barrier_words = self.page.address + RESERVED_AT
    return Commands(self.gpu, (barrier_words, barrier_words + 64) if self.gpu.xccs > 1 else None)

  def send(self, commands: Commands) -> None:
    """Submit to the compute queue."""
    self.compute.put(commands.words)
    self.compute.ring.ring()

  def look_at_clock(self) -> tuple[int, float, float]:
    commands, stamp, word = self.commands(), self.word(), self.word()
    commands.timestamp(self.page.address + stamp)
    commands.release(self.page.address + word, 1)
    before = time.monotonic()
    self.send(commands)
    self.wait_word(word, 1, "the word after a timestamp")
    return self.page.mapping.load64(stamp), before, time.monotonic()

  def converse(self, asked: int, answered: int, done: int) -> None:
    commands = self.commands()
    commands.release(asked, 1)
    commands.wait(answered, 1)
    commands.release(done, 1)
    self.copies.wait_memory(asked, 1)
    self.copies.signal(answered, 1, (self.events.mailbox, self.events.number))
    self.send(commands)
    self.copies.ring.ring()

class AMDSession(GpuSession):
  """The self-test of one GPU."""
  kinds, user, tick_ns = (VRAM, CODE, HOST, USER), USER, TICK_NS

  def __init__(self, name: str, tools: Tools):
    super().__init__(name, tools)
    self.gpu: Gpu | None = None
    self.kfd: Kfd | None = None
    self.available = 0     # bytes of the GPU's memory before the first step

  @property
  def bench(self) -> AMDBench:
    assert self.gpu is not None and self.kfd is not None, "steps follow each other"
    if self.opened is None: self.opened = AMDBench(self.kfd, self.gpu, self.limit_ms)
    assert isinstance(self.opened, AMDBench)
    return self.opened

  def _open(self) -> AMDDevice:
    assert isinstance(self.device, AMDDevice)
    return self.device

  @property
  def texts(self) -> Texts: return selftest_kernels.texts(self._open().gpu.chip.gc)

  def code(self, text: str, name: str, arguments: Sequence[str], lanes: int, words: dict[str, str],
           **fields: Any) -> Code:
    device = self._open()
    return selftest_kernels.kernel(self.tools.assemble, device.arch, device.gpu.chip.gc, text, name, arguments, lanes,
                                   words, **fields)

  def allocate(self, size: int, kind: Any, host: int) -> Any:
    assert self.gpu is not None and self.kfd is not None
    return self.kfd.allocate(self.gpu, size, kind, "self-test", host)

  def count(self) -> int: return len(gpus(self.box))

  def spill_bytes(self) -> int:
    found = self._open().scratch
    return found[0].size if found is not None else 0

  def kept(self) -> str:
    assert self.gpu is not None and self.kfd is not None
    return str(self.kfd.kept[self.gpu.gpu_id].memories) if self.gpu.gpu_id in self.kfd.kept else ""

  def first(self) -> Sequence[Probe]: return (*SYSTEM, *selftest_kernels.STEPS)
  def last(self) -> Sequence[Probe]: return (*selftest_kernels.LAST, RELEASE, selftest_kernels.VERY_LAST)

def begin(name: str, tools: Tools) -> AMDSession: return AMDSession(name, tools)

# **** steps ****

def topology(s: AMDSession) -> str:
  s.gpu = gpu = choose(s.box, s.ordinal)
  dies = f" on each of {gpu.xccs} dies" if gpu.xccs > 1 else ""
  return (f"{gpu.chip.arch}, node {gpu.node}, one of {len(gpus(s.box))} GPUs; {gpu.compute_units} compute units{dies}; "
          f"memory {short_bytes(gpu.vram_bytes)}, of which the processor sees {short_bytes(gpu.visible_bytes)}")

def nodes(s: AMDSession) -> str:
  assert s.gpu is not None
  s.kfd = connect(s.box)
  s.kfd.acquire(s.gpu)
  s.available = available(s)
  return (f"interface {s.kfd.version[0]}.{s.kfd.version[1]}, {s.gpu.render_node}, {short_bytes(s.available)} of the "
          f"GPU's memory are free")

def available(s: AMDSession) -> int:
  """Return the bytes of the GPU's memory that can be allocated."""
  assert s.gpu is not None and s.kfd is not None
  request = kfd_ioctl.GetAvailableMemory(gpu_id=s.gpu.gpu_id)
  s.kfd.node.ioctl(request)
  return int(request.available)

def compute_queue(s: AMDSession) -> str:
  """Check the queue, and the mapping of its doorbell."""
  assert s.gpu is not None
  queue = s.bench.compute
  sizes = s.gpu.queue_sizes()
  return (f"{type(queue).__name__}, {queue.state()}; area for saved waves {short_bytes(sizes.total)}, control stack "
          f"{sizes.control_stack}")

def command_processor(s: AMDSession) -> str:
  """Check a doorbell, a packet that does nothing, and a word that it writes."""
  bench, commands, word = s.bench, s.bench.commands(), s.bench.word()
  commands.packet(commands.packets.NOP, data=[0, 0])
  commands.release(bench.page.address + word, 1)
  begin = time.perf_counter()
  bench.send(commands)
  bench.wait_word(word, 1, "the word that RELEASE_MEM writes")
  return (f"read {len(commands.words)} words and wrote one, {(time.perf_counter() - begin) * 1e6:.0f} us from the "
          f"doorbell")

def interrupts(s: AMDSession) -> str:
  """Check that a wait sleeps until a queue signals."""
  bench, commands, word = s.bench, s.bench.commands(), s.bench.word()
  commands.release(bench.page.address + word, 1, (bench.events.mailbox, bench.events.number))
  bench.send(commands)
  begin = time.monotonic()
  fault = bench.events.wait(s.limit_ms)
  milliseconds = (time.monotonic() - begin) * 1000
  if fault is not None: raise Wrong(f"a fault came: {fault}")
  bench.wait_word(word, 1, "the word that RELEASE_MEM writes")
  if milliseconds >= s.limit_ms:
    raise Wrong(f"the word was written, but nothing woke the process in {s.limit_ms / 1000:g} s")
  return f"woken after {milliseconds:.2f} ms"

def copy_engine(s: AMDSession) -> str:
  """Copy from the host's memory to the GPU's, and back to another address."""
  bench, word = s.bench, s.bench.word()
  def finish() -> None:
    bench.copies.signal(bench.page.address + word, 1, (bench.events.mailbox, bench.events.number))
    bench.copies.ring.ring()
    bench.wait_word(word, 1, "the word that FENCE writes")
  return bench.there_and_back(bench.copies.copy, finish)

def opens(s: AMDSession) -> str:
  """Open the device as programs do."""
  s.close()
  device = s.device
  assert isinstance(device, AMDDevice)
  return f"{device.arch}, {device.compute.state()}; {device.copies.state()}"

def release(s: AMDSession) -> str:
  """Close the device. All of the GPU's memory must be free again."""
  let_go(s)
  left = available(s)
  if left < s.available:
    raise Wrong(f"{short_bytes(s.available - left)} less of the GPU's memory are free than in the beginning")
  return f"{short_bytes(left)} of the GPU's memory are free"

NOTHING_READ = ("the hardware has not read the queue: look into dmesg for the queue's creation and for hangs; is the "
                "doorbell's mapping that of this "
                "process, is another program stopping the GPU (a debugger), is the firmware that of the kernel's "
                "version")
SYSTEM = (
  Probe("topology", "does the kernel show a GPU that this driver knows", "`python3 -m tinyhw doctor` says what would "
        "change it; "
        "/sys/devices/virtual/kfd/kfd/topology/nodes/*/properties has what was read", topology, basic=True),
  Probe("nodes", "can this user open the device files, and bind the GPU's address space",
        "the groups that own /dev/kfd and /dev/dri/renderD*, the "
        "container's devices, and whether another driver of this process has the GPU", nodes, basic=True),
  memory_step("the line of dmesg that came with it; free memory of GPU and host"),
  pinned_step("limits of locked memory (ulimit -l); tensors of memory that others own (from_blob) are used in place "
              "only with it"),
  Probe("compute queue", "does the kernel make a queue for commands", "EINVAL: the sizes of the save area, which the "
        "kernel computes from the chip; "
        "compare them with cwsr_size and ctl_stack_size of the node's properties, and send both with the kernel's "
        "version", compute_queue, basic=True),
  Probe("command processor", "does the hardware read the queue and write to the host's memory", NOTHING_READ,
        command_processor, basic=True),
  Probe("interrupts", "does a signal wake a sleeping process", "the event's slot and the interrupt's number "
        "(events.py): programs work without, but "
        "wait a second for what takes longer than half a millisecond", interrupts),
  Probe("copy engine", "does the copy engine move bytes between the host and the GPU",
        "its packets (autogen/amd/sdma.py) if nothing came; "
        "memory kinds and caches if bytes differ: are they whole lines of 64 or 128 bytes", copy_engine, basic=True),
  clock_step("TICK_NS in device.py: times of DEBUG=2 and VIZ are wrong by the same factor, results are not"),
  side_by_side_step("whether the kernel has both queues on the hardware: another process may have taken their places "
                    "(dmesg: over-subscribed)"),
  Probe("opens", "does the device open as programs open it", "what of the steps before was there, and is not now",
        opens, basic=True),
)
RELEASE = Probe("release", "is everything given back", "other programs that took memory meanwhile: run it again alone; "
                "else the order in "
                "which the device closes (device.py)", release)
