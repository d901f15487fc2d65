"""What `python3 -m tinyhw selftest NV` asks of a GPU before it computes: from the version of the kernel driver to a copy, one part of the driver
after the other.

The steps before the device opens use the driver's parts by themselves, so the first that fails says which part of it, of the kernel or of the card is
to be looked at. Through the vendor's library (NV:CUDA) only the steps with tensors are run.
"""
from __future__ import annotations
import contextlib
import gc
import time
from collections.abc import Sequence

from tinyhw.autogen.nvidia import methods
from tinyhw.device import Device
from tinyhw.drivers.gpu.bench import COPIED, Bench
from tinyhw.drivers.linux.files import Mapping, machine, map_memory
from tinyhw.drivers.nvidia.card import HOST, RING, USER, VRAM, Card
from tinyhw.drivers.nvidia.channel import Channel, Group
from tinyhw.drivers.nvidia.commands import Commands
from tinyhw.drivers.nvidia.device import LOCAL_WINDOW, SHARED_WINDOW, NVDevice
from tinyhw.drivers.nvidia.launch import Program
from tinyhw.drivers.nvidia.rm import Connection, connect
from tinyhw.errors import DriverError, TinyError
from tinyhw.selftest.frame import Session, Step, Tools, Wrong, short_bytes

LIMIT_MS = 5000           # for what takes microseconds
SLEEP_SECONDS = 0.02      # between two looks at the clock
CLOCK_TOLERANCE = 0.02

class NVBench(Bench):
  """Channels of a GPU: an `Owner` (channel.py)."""
  def __init__(self, card: Card, limit_ms: int):
    self.card = card
    super().__init__(lambda size, kind, label: card.allocate(size, kind, label), HOST, VRAM, Program.alignment, limit_ms)
    self.doorbell: Mapping = card.usermode(self.undo)
    self.channels: dict[str, Channel] = {}

  def look(self, ms: int) -> None:
    time.sleep(0.0002)
    self.doorbell.load32(methods.USERMODE_TIME)
    for channel in self.channels.values():
      if channel.error(): raise Wrong(f"the driver stopped the {channel.name} channel: Xid {channel.error()}")

  def begin(self) -> None:
    """Both channels, in their group."""
    group = Group(self.card, self.undo)
    for name, number in (("compute", self.card.chip.compute), ("copy", self.card.class_of(self.card.chip.copy, "copy engine"))):
      self.channels[name] = self.keep(Channel(self, group, name, number))
    group.start()
    for channel in self.channels.values(): channel.begin()

  def commands(self) -> Commands: return Commands(self.card.chip.generation)

  def send(self, name: str, commands: Commands) -> None:
    """Tell a channel."""
    self.channels[name].put(commands.words)
    self.channels[name].ring.ring()

class NVSession(Session):
  """The self-test of one GPU. limit_ms: how long a part of it may take for what takes microseconds."""
  limit_ms = LIMIT_MS

  def __init__(self, name: str, tools: Tools):
    super().__init__(name, tools)
    self.ordinal, self.box = int(name.partition(":")[2] or 0), machine()
    self.connection: Connection | None = None
    self.card: Card | None = None
    self.opened: NVBench | None = None

  @property
  def bench(self) -> NVBench:
    assert self.opened is not None, "steps follow each other"
    return self.opened

  def first(self) -> Sequence[Step]: return SYSTEM
  def last(self) -> Sequence[Step]: return (RELEASE,)

  def recover(self) -> None:
    """Let go of channels that may hang, and of a device that is lost."""
    with contextlib.suppress(TinyError): self.close()
    with contextlib.suppress(TinyError): Device.close(self.name)

  def close(self) -> None:
    opened, self.opened = self.opened, None
    if opened is not None: opened.close()

def begin(name: str, tools: Tools) -> Session: return Session(name, tools) if "CUDA" in name else NVSession(name, tools)

# **** steps ****

def version(s: NVSession) -> str:
  s.connection = connect(s.box)
  return f"{s.connection.shown}, with the structures of branch {s.connection.structures.branch}"

def cards(s: NVSession) -> str:
  assert s.connection is not None
  infos = s.connection.list_cards()
  if s.ordinal >= len(infos): raise Wrong(f"there is no GPU number {s.ordinal}; the kernel's driver runs {len(infos)}")
  return ", ".join(f"/dev/nvidia{i.minor_number} at {i.domain:04x}:{i.bus:02x}:{i.slot:02x}.0 (device {i.device_id:#06x})" for i in infos)

def card(s: NVSession) -> str:
  assert s.connection is not None
  info = s.connection.list_cards()[s.ordinal]
  s.card = s.connection.cards.get(info.gpu_id)
  if s.card is None: s.card = s.connection.cards[info.gpu_id] = Card(s.connection, info)
  return (f"{s.card.name}, driven as {s.card.chip.arch}: {s.card.multiprocessors} multiprocessors, "
          f"memory {short_bytes(s.card.facts.get('memory_kib', 0) << 10)}; classes {' '.join(f'{c:x}' for c in s.card.classes)}")

def memory(s: NVSession) -> str:
  """Each kind of memory by itself; the processor writes and reads what it sees."""
  assert s.card is not None
  host = map_memory(COPIED)
  try:
    for kind in (VRAM, RING, HOST, USER):
      try: made = s.card.allocate(COPIED, kind, "self-test", host.address if kind is USER else 0)
      except DriverError as error: raise Wrong(f"{kind}: {error.message}") from error
      try:
        if not kind.visible: continue
        made.mapping.store32(COPIED - 4, 0x12345678)
        if made.mapping.load32(COPIED - 4) != 0x12345678: raise Wrong(f"{kind}: the processor does not read what it has written")
      finally: made.close()
  finally: host.close()
  s.opened = NVBench(s.card, s.limit_ms)
  return f"{', '.join(kind.name for kind in (VRAM, RING, HOST, USER))}: allocated, mapped and given back"

def clock(s: NVSession) -> str:
  """The nanoseconds of the doorbell's page go as the host's clock does."""
  looks = list[tuple[int, float, float]]()
  for _ in range(2):
    before = time.monotonic()
    looks.append((s.bench.doorbell.load64(methods.USERMODE_TIME), before, time.monotonic()))
    time.sleep(SLEEP_SECONDS)
  (first, before, seen), (second, asked, after) = looks
  seconds = (second - first) / 1e9
  if not (asked - seen) * (1 - CLOCK_TOLERANCE) <= seconds <= (after - before) * (1 + CLOCK_TOLERANCE):
    raise Wrong(f"the clock went on by {seconds * 1e3:.3f} ms, while {(asked - seen) * 1e3:.3f} to {(after - before) * 1e3:.3f} ms went by")
  return f"{seconds * 1e3:.3f} ms in {(after - before) * 1e3:.2f} ms"

def channels(s: NVSession) -> str:
  s.bench.begin()
  return "; ".join(channel.state() for channel in s.bench.channels.values())

def semaphore(s: NVSession) -> str:
  """A doorbell, a pushbuffer, and a word that the channel writes."""
  bench, word, commands = s.bench, s.bench.word(), s.bench.commands()
  commands.release(bench.page.address + word, 1, wait=False)
  begin = time.perf_counter()
  bench.send("compute", commands)
  bench.wait_word(word, 1, "the word that SEM_EXECUTE writes")
  return f"read {len(commands.words)} words and wrote one, {(time.perf_counter() - begin) * 1e6:.0f} us from the doorbell"

def engines(s: NVSession) -> str:
  """Objects are bound to subchannels, windows are set, a semaphore waits for the engine."""
  bench = s.bench
  for name, number in (("compute", bench.card.chip.compute), ("copy", bench.channels["copy"].number)):
    commands, word = bench.commands(), bench.word()
    if name == "compute": commands.setup(number, SHARED_WINDOW, LOCAL_WINDOW)
    else: commands.bind(methods.COPY_SUBCHANNEL, number)
    commands.release(bench.page.address + word, 1, wait=True, timestamp=True)
    bench.send(name, commands)
    bench.wait_word(word, 1, f"the word behind SET_OBJECT of the {name} channel")
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

def side_by_side(s: NVSession) -> str:
  """The compute channel waits for what the copy channel writes when it has seen what the compute channel wrote: neither waits for the other's end."""
  bench = s.bench
  asked, answered, done = (bench.page.address + bench.word() for _ in range(3))
  first, second = bench.commands(), bench.commands()
  first.release(asked, 1, wait=False)
  first.acquire(answered, 1)
  first.release(done, 1, wait=False)
  second.acquire(asked, 1)
  second.release(answered, 1, wait=False)
  bench.send("compute", first)
  bench.send("copy", second)
  bench.wait_word(done - bench.page.address, 1, "the answer of the copy channel to the compute channel")
  return "each answered the other in the middle of its work"

def opens(s: NVSession) -> str:
  """The device, as programs open it."""
  s.close()
  device = s.device
  if not isinstance(device, NVDevice): raise Wrong(f"{device!r} opened in its place: the kernel driver's calls are kept from programs")
  return f"{device.arch}, {device.compute.state()}; {device.copies.state()}"

def release(s: NVSession) -> str:
  """The device closes, and nothing is left of it."""
  assert s.card is not None
  gc.collect()  # captured steps refer to themselves
  Device.close(s.name)
  if s.card.kept is not None: raise Wrong(f"buffers are still referenced after the device was closed: {s.card.kept.memories}")
  return "channels, objects and memory are given back"

NOTHING_READ = ("the channel has not been read: look into dmesg for NVRM and Xid; is the doorbell that of this kind of GPU (class of the usermode "
                "object), is the ring mapped where the channel was told, does the group run")
SYSTEM: tuple[Step, ...] = (
  Step("driver", "is a kernel driver loaded whose structures are known", "`cat /sys/module/nvidia/version`; the error tells which versions are known",
       version, basic=True),
  Step("cards", "which GPUs does the kernel's driver run", "`nvidia-smi -L`, and which /dev/nvidia* this process may open", cards, basic=True),
  Step("objects", "can a client have the GPU, its classes and an address space", "dmesg for NVRM; whether another process has the GPU for itself; "
       "MIG (nvidia-smi -q), which is not driven", card, basic=True),
  Step("memory", "is memory of each kind allocated and mapped, also by unified memory", "the kind that is named: nvidia-smi for free memory; "
       "`ls -l /dev/nvidia-uvm`, whether nvidia-uvm is loaded; ulimit -l for memory of the program", memory, basic=True),
  Step("clock", "does the GPU's clock, behind the doorbell's page, go in nanoseconds", "the page is another one: class of the usermode object, "
       "bBar1Mapping", clock),
  Step("channels", "are two channels made, scheduled and given tokens", "the structure of channel parameters of this version; dmesg for NVRM",
       channels, basic=True),
  Step("semaphore", "does a channel read its ring and write a word", NOTHING_READ, semaphore, basic=True),
  Step("engines", "do compute and copy engines take their objects, and tell the time", "the class that was bound: the class list of step "
       "\"objects\"", engines, basic=True),
  Step("copy engine", "do bytes come to the GPU's memory and back", "flags of LAUNCH_DMA; whether unified memory mapped both", copy_engine,
       basic=True),
  Step("side by side", "do the channels run at the same time", "only one of the channels of a group may be on the engine: give copies a group of "
       "their own", side_by_side),
  Step("opens", "does the device open as programs open it", "what the steps before did not do: the first submissions of device.py", opens,
       basic=True),
)
RELEASE = Step("release", "is everything given back", "other programs that use the process's tensors; else the order in which the device closes "
               "(device.py)", release)
