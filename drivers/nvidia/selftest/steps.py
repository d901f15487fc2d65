"""The steps of `python3 -m tinyhw selftest NV` before the kernels: from the version of the kernel driver to a copy, one
part of the driver after the other.

The steps before the device opens use single parts of the driver. So the first failure names the part of the driver, the
kernel or the card at fault. Through the vendor's library (NV:CUDA) there are only the steps with kernels and with
tensors.
"""
from __future__ import annotations
import time
from collections.abc import Sequence
from typing import Any

from tinyhw.autogen.nvidia import methods
from tinyhw.drivers.gpu.selftest.bench import Bench
from tinyhw.drivers.gpu.selftest.kernels import Texts
from tinyhw.drivers.gpu.selftest.session import (
  GpuSession, clock_step, let_go, memory_step, pinned_step, side_by_side_step)
from tinyhw.drivers.linux.files import Mapping
from tinyhw.drivers.nvidia.card import HOST, RING, USER, VRAM, Card, opened
from tinyhw.drivers.nvidia.channel import Channel, make_channels
from tinyhw.drivers.nvidia.commands import Commands
from tinyhw.drivers.nvidia.cuda import CudaDevice
from tinyhw.drivers.nvidia.device import LOCAL_WINDOW, SHARED_WINDOW, NVDevice
from tinyhw.drivers.nvidia.launch import NVProgram
from tinyhw.drivers.nvidia.rm import RmClient, connect
from tinyhw.drivers.nvidia.selftest import (
  bases as selftest_bases, bulk_copies as selftest_bulk_copies, kernels as selftest_kernels)
from tinyhw.drivers.nvidia.visible import node_of, pci_address
from tinyhw.machine.ir.code import Code
from tinyhw.selftest.frame import Session, Probe, Tools, Wrong, short_bytes

CLOCK_TRIES = 8   # one try fails if the lower word wraps, every 4 seconds

class NVBench(Bench):
  """Channels of a GPU: an `Owner` (channel.py)."""
  def __init__(self, card: Card, limit_ms: int):
    self.card = card
    super().__init__(lambda size, kind, label: card.allocate(size, kind, label), HOST, VRAM, NVProgram.alignment,
                     limit_ms,
                     card.connection.box.virtual)
    self.doorbell: Mapping = card.usermode(self.undo)
    self.channels: dict[str, Channel] = {}

  def look(self, ms: int) -> None:
    time.sleep(0.0002)
    self.doorbell.load32(methods.USERMODE_TIME)
    for channel in self.channels.values():
      if channel.error(): raise Wrong(f"the driver stopped the {channel.name} channel: Xid {channel.error()}")

  def begin(self) -> None:
    """Make both channels."""
    for made in make_channels(self, self.undo):
      self.channels[made.name] = made
      self.queues.append(made)

  def commands(self) -> Commands: return Commands(self.card.chip.generation)

  def send(self, name: str, commands: Commands) -> None:
    """Submit to a channel."""
    self.channels[name].put(commands.words)
    self.channels[name].ring.ring()

  def look_at_clock(self) -> tuple[int, float, float]:
    """Read the clock, which is two registers: the high one must be the same before and after the read of the low one.

    Raises Wrong if it never is.
    """
    before, load = time.monotonic(), self.doorbell.load32
    high = load(methods.USERMODE_TIME + 4)
    for _ in range(CLOCK_TRIES):
      low, again = load(methods.USERMODE_TIME), load(methods.USERMODE_TIME + 4)
      if again == high: return high << 32 | low, before, time.monotonic()
      high = again
    raise Wrong(f"the upper word of the clock, at {methods.USERMODE_TIME + 4:#x} of the page of the doorbell, "
                f"differed in {CLOCK_TRIES + 1} looks, "
                f"{high:#x} in the last: it changes every 4 seconds, so this is no clock")

  def converse(self, asked: int, answered: int, done: int) -> None:
    first, second = self.commands(), self.commands()
    first.release(asked, 1, wait=False)
    first.acquire(answered, 1)
    first.release(done, 1, wait=False)
    second.acquire(asked, 1)
    second.release(answered, 1, wait=False)
    self.send("compute", first)
    self.send("copy", second)

class NVSession(GpuSession):
  """The self-test of one GPU."""
  kinds, user = (VRAM, RING, HOST, USER), USER

  def __init__(self, name: str, tools: Tools):
    super().__init__(name, tools)
    self.connection: RmClient | None = None
    self.card: Card | None = None

  @property
  def bench(self) -> NVBench:
    assert self.card is not None, "steps follow each other"
    if self.opened is None: self.opened = NVBench(self.card, self.limit_ms)
    assert isinstance(self.opened, NVBench)
    return self.opened

  def _open(self) -> NVDevice:
    assert isinstance(self.device, NVDevice)
    return self.device

  @property
  def texts(self) -> Texts: return selftest_kernels.TEXTS

  def code(self, text: str, name: str, arguments: Sequence[str], lanes: int, words: dict[str, str],
           **fields: Any) -> Code:
    return selftest_kernels.kernel(self.tools.assemble, self._open().card.chip, text, name, arguments, lanes, words,
                                   **fields)

  def allocate(self, size: int, kind: Any, host: int) -> Any:
    assert self.card is not None
    return self.card.allocate(size, kind, "self-test", host)

  def count(self) -> int: return len(self._open().card.connection.list_cards())

  def spill_bytes(self) -> int:
    found = self._open().local
    return found[0].size if found is not None else 0

  def kept(self) -> str:
    assert self.card is not None
    return str(self.card.kept.memories) if self.card.kept is not None else ""

  def first(self) -> Sequence[Probe]:
    return (*SYSTEM, *selftest_kernels.STEPS, selftest_bases.STEP, selftest_bulk_copies.STEP)
  def last(self) -> Sequence[Probe]: return (*selftest_kernels.LAST, RELEASE, selftest_kernels.VERY_LAST)

class CudaSession(GpuSession):
  """The self-test of one GPU through the vendor's library: kernels, but no part of our own driver."""
  @property
  def texts(self) -> Texts: return selftest_kernels.TEXTS

  def code(self, text: str, name: str, arguments: Sequence[str], lanes: int, words: dict[str, str],
           **fields: Any) -> Code:
    assert isinstance(self.device, CudaDevice)
    return selftest_kernels.kernel(self.tools.assemble, self.device.chip, text, name, arguments, lanes, words, **fields)

  def spill_bytes(self) -> int: return 0
  def first(self) -> Sequence[Probe]:
    return (OPENS, *(step for step in selftest_kernels.STEPS if step.name not in OF_OUR_DRIVER), selftest_bases.STEP,
            selftest_bulk_copies.STEP)

OF_OUR_DRIVER = ("caches", "order")  # steps that the library is responsible for

def opens_by_library(s: CudaSession) -> str:
  return f"{s.device.facts()['processor']}, {s.device.facts()['kernel_interface']}"

OPENS = Probe("opens", "does the vendor's library open the GPU", "`python3 -m tinyhw doctor --device NV`: the "
              "library's version; nvidia-smi",
              opens_by_library, basic=True)

def begin(name: str, tools: Tools) -> Session:
  return CudaSession(name, tools) if "CUDA" in name else NVSession(name, tools)

# **** steps ****

def version(s: NVSession) -> str:
  s.connection = connect(s.box)
  return f"{s.connection.shown}, with the structures of branch {s.connection.structures.branch}"

def cards(s: NVSession) -> str:
  assert s.connection is not None
  s.connection.find_card(s.ordinal)
  return ", ".join(f"{node_of(info)} at {pci_address(info)} (device {info.device_id:#06x})"
                   for info in s.connection.list_cards())

def card(s: NVSession) -> str:
  assert s.connection is not None
  s.card = opened(s.connection, s.connection.find_card(s.ordinal))
  return (f"{s.card.name}, driven as {s.card.chip.arch}: {s.card.multiprocessors} multiprocessors, "
          f"memory {short_bytes(s.card.facts.get('memory_kib', 0) << 10)}; classes "
          f"{' '.join(f'{c:x}' for c in s.card.classes)}")

def channels(s: NVSession) -> str:
  s.bench.begin()
  return "; ".join(channel.state() for channel in s.bench.channels.values())

def semaphore(s: NVSession) -> str:
  """Check a doorbell, a pushbuffer, and a word that the channel writes."""
  bench, word, commands = s.bench, s.bench.word(), s.bench.commands()
  commands.release(bench.page.address + word, 1, wait=False)
  begin = time.perf_counter()
  bench.send("compute", commands)
  bench.wait_word(word, 1, "the word that SEM_EXECUTE writes")
  us = (time.perf_counter() - begin) * 1e6
  return (f"read {len(commands.words)} words and wrote one, {us:.0f} us from the doorbell; GPGet: "
          f"{bench.channels['compute'].state()}")

def engines(s: NVSession) -> str:
  """Bind objects to subchannels, set windows, and wait for the engine by a semaphore."""
  bench = s.bench
  for name, number in (("compute", bench.card.chip.compute), ("copy", bench.channels["copy"].number)):
    commands, word = bench.commands(), bench.word()
    if name == "compute": commands.setup(number, SHARED_WINDOW, LOCAL_WINDOW)
    else: commands.bind(methods.COPY_SUBCHANNEL, number)
    commands.release(bench.page.address + word, 1, wait=True, timestamp=True)
    bench.send(name, commands)
    bench.wait_word(word, 1, f"the word after SET_OBJECT of the {name} channel")
    stamp = bench.page.mapping.load64(word + 8)
    if not stamp: raise Wrong(f"the {name} channel's semaphore has no time")
  return f"classes {bench.card.chip.compute:x} and {bench.channels['copy'].number:x}; timestamps come"

def copy_engine(s: NVSession) -> str:
  bench, word, commands = s.bench, s.bench.word(), s.bench.commands()
  def finish() -> None:
    commands.copied(bench.page.address + word, 1)
    bench.send("copy", commands)
    bench.wait_word(word, 1, "the word that the copy engine writes")
  return bench.there_and_back(commands.copy, finish)

def opens(s: NVSession) -> str:
  """Open the device as programs do."""
  s.close()
  device = s.device
  if isinstance(device, CudaDevice): raise Wrong(f"the vendor's library opened in its place: {device.instead}")
  assert isinstance(device, NVDevice)
  return f"{device.arch}, {device.compute.state()}; {device.copies.state()}"

def release(s: NVSession) -> str:
  """Close the device. No resource of it may be left."""
  let_go(s)
  return "channels, objects and memory are given back"

NOTHING_READ = ("the channel has not been read: look into dmesg for NVRM and Xid; is the doorbell that of this kind "
                "of GPU (class of the usermode "
                "object), is the ring mapped where the channel was told, does the group run")
SYSTEM: tuple[Probe, ...] = (
  Probe("driver", "is a kernel driver loaded whose structures are known", "`cat /sys/module/nvidia/version`; the error "
        "tells which versions are known",
        version, basic=True),
  Probe("cards", "which GPUs does the kernel's driver run", "`nvidia-smi -L`, and which /dev/nvidia* this process may "
        "open", cards, basic=True),
  Probe("objects", "can a client have the GPU, its classes and an address space",
        "dmesg for NVRM; whether another process has the GPU for itself; "
        "MIG (nvidia-smi -q), which is not driven", card, basic=True),
  memory_step("the kind that is named: nvidia-smi for free memory; `ls -l /dev/nvidia-uvm`, whether nvidia-uvm is "
              "loaded"),
  pinned_step("ulimit -l; tensors of memory that others own (from_blob) are used in place only with it"),
  clock_step("the page is another one: class of the usermode object"),
  Probe("channels", "are two channels made, scheduled and given tokens", "the structure of channel parameters of this "
        "version; dmesg for NVRM",
        channels, basic=True),
  Probe("semaphore", "does a channel read its ring and write a word", NOTHING_READ, semaphore, basic=True),
  Probe("engines", "do compute and copy engines take their objects, and tell the time",
        "the class that was bound: the class list of step "
        "\"objects\"", engines, basic=True),
  Probe("copy engine", "do bytes come to the GPU's memory and back", "flags of LAUNCH_DMA; whether unified memory "
        "mapped both", copy_engine,
        basic=True),
  side_by_side_step("only one of the channels of a group may be on the engine: give copies a group of their own"),
  Probe("opens", "does the device open as programs open it", "what the steps before did not do: the first submissions "
        "of device.py", opens,
        basic=True),
)
RELEASE = Probe("release", "is everything given back", "other programs that use the process's tensors; else the order "
                "in which the device closes "
                "(device.py)", release)
