"""The NV driver, unchanged, against the virtual computers: the order of kernels and copies. Then the driver with
mistakes, each of which is found."""
import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from gpu.programs import GROUPS, Sums, done_in_order, noticed, works

from tinyhw.config import Context
from tinyhw.device import Launch
from tinyhw.drivers import nvidia
from tinyhw.drivers.gpu import order
from tinyhw.drivers.gpu.launch import GpuRecording
from tinyhw.drivers.gpu.order import PendingLaunches, Queues
from tinyhw.drivers.linux import files
from tinyhw.drivers.nvidia import rm
from tinyhw.drivers.nvidia.channel import Channel
from tinyhw.drivers.nvidia.commands import Commands
from tinyhw.drivers.nvidia.device import NVDevice
from tinyhw.emulator.errors import DataRace, DoorbellError, PacketError, StaleRead, StrictError
from tinyhw.emulator.nvidia.card.computer import GpuHost
from tinyhw.emulator.nvidia.card.grid import Grid
from tinyhw.errors import DriverError

CARDS = ("sm_80", "sm_90")
Opener = Callable[..., tuple[GpuHost, NVDevice]]

@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Iterator[Opener]:
  """opened("sm_90", seed=1): replace this computer by a virtual one, and open its device. At the end it must hold
  nothing.
  """
  made: list[tuple[GpuHost, NVDevice]] = []
  def make(card: str, seed: int = 0) -> tuple[GpuHost, NVDevice]:
    computer = GpuHost(card, [card], seed)
    monkeypatch.setattr(files, "COMPUTER", computer)
    made.append((computer, nvidia.open(0, lambda name: None)))  # type: ignore[arg-type]
    return made[-1]
  with Context(EMULATE=""): yield make
  for computer, device in made:
    device.close()
    rm.forget(computer)
    assert computer.census() == {}

@pytest.mark.slow
@pytest.mark.parametrize("card", CARDS)
def test_kernels_that_do_not_need_each_other_run_at_once(opened: Opener, card: str,
                                                         monkeypatch: pytest.MonkeyPatch) -> None:
  """Two sums of the same vectors, then a sum of their results."""
  computer, device = opened(card)
  it, most, init = Sums(device, random.Random(1), 5), list[int](), Grid.__init__
  a, b, c, d, e = it.buffers
  def start(grid: Grid, *arguments: Any) -> None:
    init(grid, *arguments)
    most.append(len(computer.engines.work))
  monkeypatch.setattr(Grid, "__init__", start)
  launches = [Launch(it.program, [c, a, b], [0], GROUPS, written=[0]),
              Launch(it.program, [d, a, b], [0], GROUPS, written=[0]),
              Launch(it.program, [e, c, d], [0], GROUPS, written=[0])]
  for run in (lambda: device.submit(launches), device.record(launches).submit):
    most.clear()
    run()
    assert it.read(e) == [2 * (x + y) for x, y in zip(*it.values[:2])]
    assert most == [1, 2, 1], "the second one starts while the first one runs, the third one when both are done"

def test_copies_that_need_no_kernel_run_beside_it(opened: Opener) -> None:
  """The copy is not asked to wait, and its end is reported after that of the kernel."""
  _, device = opened("sm_90")
  it = Sums(device, random.Random(1))
  a, b, c, d = it.buffers
  device.synchronize()
  asked = list[int]()
  acquire = Commands.acquire
  with pytest.MonkeyPatch.context() as patch:
    patch.setattr(Commands, "acquire", lambda self, address,
                  value: (asked.append(len(self.words)), acquire(self, address, value)))
    device.submit([Launch(it.program, [c, a, b], [0], GROUPS, written=[0])])
    asked.clear()
    it.write(d, it.values[0])
    assert asked == [len_of_copy(device)], "behind the copy, before the news of it"
  assert it.read(d) == it.values[0] and it.read(c) == [x + y for x, y in zip(*it.values[:2])]

def len_of_copy(device: NVDevice) -> int:
  commands = device.commands()
  commands.copy(0, 0, 4)
  return len(commands.words)

@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("card", CARDS)
def test_random_work_is_done_as_if_in_order(opened: Opener, card: str, seed: int) -> None:
  done_in_order(opened(card, seed)[1], random.Random(seed))

@pytest.mark.slow
def test_a_launch_of_no_blocks_keeps_the_order_of_others(opened: Opener) -> None:
  """It waits for the first kernel, so the third one need not."""
  for seed in range(3):
    _, device = opened("sm_90", seed)
    it = Sums(device, random.Random(seed))
    a, b, c, d = it.buffers
    launches = [Launch(it.program, [c, a, b], [0], GROUPS, written=[0]),
                Launch(it.program, [d, c, c], [0], 0, written=[0]),
                Launch(it.program, [b, c, c], [0], GROUPS, written=[0])]
    device.submit(launches)
    assert it.read(b) == [2 * (x + y) for x, y in zip(*it.values[:2])]

# **** a driver with a mistake ****

Break = Callable[[pytest.MonkeyPatch], None]

def instead(owner: type, name: str, function: Callable[..., Any]) -> Break:
  return lambda patch: patch.setattr(owner, name, function)

def forgets(**flags: int) -> Break:
  """Make cache invalidations weaker."""
  def less(self: Commands) -> None:
    compute = self.engines.compute
    self.call(1, compute.WAIT_FOR_IDLE, 0)
    self.call(1, compute.INVALIDATE_SHADER_CACHES_NO_WFI, compute.INVALIDATE_SHADER_CACHES_NO_WFI(**flags))
  return instead(Commands, "see_earlier_kernels", less)

def no_idle(self: Commands) -> None:
  compute = self.engines.compute
  self.call(1, compute.INVALIDATE_SHADER_CACHES_NO_WFI,
            compute.INVALIDATE_SHADER_CACHES_NO_WFI(instruction=1, global_data=1, constant=1))

def early(self: Commands, address: int, value: int, wait: bool, timestamp: bool = False) -> None:
  self._semaphore(address, value, operation=1, release_timestamp=int(timestamp), payload_size=int(timestamp))

def forgetful(flight: PendingLaunches, places: Any, writes: Any, spills: bool = False) -> bool:
  """Remember only writes of launches: a launch that writes bytes which another one reads does not wait."""
  waits = order.meet(places, flight.writes)
  if waits: flight.writes = []
  flight.writes += [p for i, p in enumerate(places) if i in writes]
  return waits

def doorbell_first(channel: Channel, written: int) -> None:
  channel.owner.doorbell.store32(0x90, channel.token)
  channel.memory.mapping.store32(8 * 4096 + 0x8C, written // 2 % 4096)

def other_token(channel: Channel, written: int) -> None:
  channel.memory.mapping.store32(8 * 4096 + 0x8C, written // 2 % 4096)
  channel.owner.doorbell.store32(0x90, channel.handle)

def no_flush(self: Commands, address: int, value: int) -> None:
  copy = self.engines.copy
  self.call(4, copy.SET_SEMAPHORE_A, address >> 32, address & 0xFFFF_FFFF, value)
  self.call(4, copy.LAUNCH_DMA, copy.LAUNCH_DMA(semaphore_type=1))

MISTAKES: dict[str, tuple[str, type[StrictError], Break]] = {
  "code stays in its cache": ("sm_90", StaleRead, forgets(global_data=1, constant=1)),
  "data stays in the first-level cache": ("sm_80", StaleRead, forgets(instruction=1, constant=1)),
  "kernels do not wait for kernels": ("sm_90", DataRace, instead(Commands, "see_earlier_kernels", no_idle)),
  "the end is told before kernels are done": ("sm_90", DataRace, instead(Commands, "release", early)),
  "launches that need each other do not wait": ("sm_80", DataRace,
                                                instead(PendingLaunches, "take",
                                                        lambda self, places, writes, spills: False)),
  "what launches only read is forgotten": ("sm_90", DataRace, instead(PendingLaunches, "take", forgetful)),
  "copies and kernels that need each other do not wait": ("sm_80", DataRace, instead(Queues, "take", lambda self, queue,
                                                                                     number, what, done: 0)),
  "patched buffers are thought to be where they were": ("sm_90", DataRace, instead(GpuRecording, "_moved", lambda self,
                                                                                   launch, position: None)),
  "channels do not wait for each other": ("sm_90", DataRace,
                                          instead(Commands, "acquire", lambda self, address, value: None)),
  "a copy's end is told before its bytes are seen": ("sm_80", PacketError, instead(Commands, "copied", no_flush)),
  "the doorbell is told another number": ("sm_90", DoorbellError, instead(Channel, "publish", other_token)),
}

def work(card: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> bool:
  """Return whether the results are right after work that overwrites bytes which other work has read."""
  computer = GpuHost(card, [card], seed)
  monkeypatch.setattr(files, "COMPUTER", computer)
  try: return works(nvidia.open(0, lambda name: None), random.Random(seed))  # type: ignore[arg-type]
  finally: rm.forget(computer)

@pytest.mark.slow
@pytest.mark.parametrize("card", CARDS)
def test_the_driver_as_it_is(card: str, monkeypatch: pytest.MonkeyPatch) -> None: assert work(card, 0, monkeypatch)

@pytest.mark.slow
@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_in_the_driver_are_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
  """Real hardware forgives each of them most of the time."""
  card, kind, break_it = MISTAKES[name]
  break_it(monkeypatch)
  assert noticed(lambda seed: work(card, seed, monkeypatch), kind)

def test_a_pointer_behind_the_doorbell_is_never_seen(monkeypatch: pytest.MonkeyPatch) -> None:
  """The channel reads up to the pointer at the time of the doorbell. No work arrives, and the deadline reports it."""
  monkeypatch.setattr(Channel, "publish", doorbell_first)
  computer = GpuHost("sm_90", ["sm_90"])
  monkeypatch.setattr(files, "COMPUTER", computer)
  with Context(EMULATE="", HCQDEV_WAIT_TIMEOUT_MS=50), pytest.raises(DriverError, match="0 of 1 entries read"):
    nvidia.open(0, lambda name: None)  # type: ignore[arg-type]
  rm.forget(computer)
