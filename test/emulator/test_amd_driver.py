"""The AMD driver, unchanged, against the virtual computers: copies, kernels, recordings, failing calls, faults,
several cards."""
import dataclasses
import random
import struct
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from amd.kernels import Kernel
from gpu.programs import done_in_order, noticed, works

from tinyhw.config import HCQDEV_WAIT_TIMEOUT_MS, Context
from tinyhw.device import Launch
from tinyhw.drivers import amd
from tinyhw.drivers.amd import commands, kfd
from tinyhw.drivers.amd.device import AMDDevice
from tinyhw.drivers.amd.queue import WRITE_POINTER, Queue
from tinyhw.drivers.amd.sdma import CopyQueue
from tinyhw.drivers.gpu import order
from tinyhw.drivers.gpu.launch import GpuRecording
from tinyhw.drivers.gpu.order import PendingLaunches, Queues
from tinyhw.drivers.linux import files
from tinyhw.emulator.amd.card.computer import GpuHost
from tinyhw.emulator.amd.card.pm4 import Executor
from tinyhw.emulator.amd.chips import CHIPS
from tinyhw.emulator.errors import DataRace, DoorbellError, MissingWait, StaleRead, StrictError
from tinyhw.errors import DeviceError, DriverError, OutOfMemory
from tinyhw.isa.amd.table import regs
from tinyhw.machine.ir.code import Code

CARDS = ("gfx1100", "gfx1200", "gfx942")
LANES, GROUPS = 64, 12
COUNT = LANES * GROUPS
Opener = Callable[..., tuple[GpuHost, AMDDevice]]
# Resources that the kernel's driver keeps until the process ends: the page of events. Buffers that were not freed live
# until the connection is closed.
KEPT = {"bytes": 0x8000, "buffers": 1, "ranges": 1}

@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Iterator[Opener]:
  """opened("gfx1100", seed=1): replace this computer by a virtual one, and open its first device.

  At the end it must hold nothing.
  """
  computers: list[GpuHost] = []
  devices: list[AMDDevice] = []
  def make(card: str = "gfx1100", count: int = 1, seed: int = 0, ordinal: int = 0) -> tuple[GpuHost, AMDDevice]:
    if ordinal == 0:
      computers.append(GpuHost(card, [card] * count, seed))
      monkeypatch.setattr(files, "COMPUTER", computers[-1])
    devices.append(amd.open(ordinal, lambda name: None))  # type: ignore[arg-type,return-value]
    return computers[-1], devices[-1]
  yield make
  for device in devices: device.close()
  for computer in computers:
    kfd.forget(computer)
    assert computer.census() in (KEPT, {**KEPT, "ranges": len(computer.gpus)}), computer.census()

def addition(arch: str) -> Kernel:
  """arguments: a, b, c. c[i] = a[i] + b[i] for the element of each work-item."""
  k = Kernel(arch)
  for i in range(3): k("s_load_b64", k.s(4 + 2 * i, 2), k.s(0, 2), None, offset=8 * i)
  k.wait(lgkm=0)
  k("v_and_b32", k.v(0), 0x3FF, k.v(0))
  k("s_lshl_b32", k.s(12), group_number(arch), 8)
  k("v_lshlrev_b32", k.v(1), 2, k.v(0))
  k("v_add_u32" if k.cdna else "v_add_nc_u32", k.v(1), k.s(12), k.v(1))
  k("global_load_b32", k.v(2), k.v(1), k.s(4, 2))
  k("global_load_b32", k.v(3), k.v(1), k.s(6, 2))
  k.wait(vm=0)
  k("v_add_f32", k.v(4), k.v(2), k.v(3))
  k("global_store_b32", k.v(1), k.v(4), k.s(8, 2))
  return k("s_endpgm")

def group_number(arch: str) -> regs.Reg:
  return {"gfx1100": regs.s(15), "gfx942": regs.s(2)}.get(arch) or regs.s(regs.TTMP + 9)

def code(device: AMDDevice, kernel: Kernel, buffers: int = 3, name: str = "addition") -> Code:
  return Code(name, device.arch, kernel.bytes(), ("buffer",) * buffers, lanes=LANES, wave=kernel.lanes,
              registers=(("vgpr", 8), ("sgpr", 16)))

class Vectors:
  """Buffers of floats on a device, freed with this object."""
  def __init__(self, device: AMDDevice, count: int = 3, seed: int = 0):
    self.device, source = device, random.Random(seed)
    self.values = [[float(source.randint(-99, 99)) for _ in range(COUNT)] for _ in range(count)]
    self.buffers = [device.allocator.alloc(4 * COUNT) for _ in range(count)]
    for values, buffer in zip(self.values, self.buffers):
      device.allocator._copyin(buffer, memoryview(bytearray(struct.pack(f"<{COUNT}f", *values))))

  def __del__(self) -> None:
    for buffer in self.buffers: self.device.allocator.free(buffer, 4 * COUNT)

  def read(self, index: int) -> list[float]:
    out = bytearray(4 * COUNT)
    self.device.allocator._copyout(memoryview(out), self.buffers[index])
    return list(struct.unpack(f"<{COUNT}f", out))

@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("card", CARDS)
def test_kernels_that_need_each_other(opened: Opener, card: str, seed: int) -> None:
  """c = a + b; a = c + b; the second kernel reads values that other compute units and dies have just written."""
  _, device = opened(card, seed=seed)
  program, it = device.load(code(device, addition(card))), Vectors(device)
  a, b, c = it.buffers
  device.submit([Launch(program, [a, b, c], (), GROUPS), Launch(program, [c, b, a], (), GROUPS)])
  assert it.read(0) == [x + 2 * y for x, y in zip(*it.values[:2])]

@pytest.mark.slow
@pytest.mark.parametrize("card", ["gfx1100", "gfx1200"])
def test_kernels_that_do_not_need_each_other_run_at_once(opened: Opener, card: str,
                                                         monkeypatch: pytest.MonkeyPatch) -> None:
  """Two sums of the same vectors, then a sum of their results."""
  _, device = opened(card)
  program, it, most = device.load(code(device, addition(card))), Vectors(device, 5), list[int]()
  a, b, c, d, e = it.buffers
  step = Executor.start_grid
  def start(executor: Executor, groups: tuple[int, int, int], initiator: int) -> None:
    step(executor, groups, initiator)
    most.append(sum(not dispatch.done for dispatch in executor.running))
  monkeypatch.setattr(Executor, "start_grid", start)
  launches = [Launch(program, [a, b, c], (), GROUPS, written=[2]), Launch(program, [a, b, d], (), GROUPS, written=[2]),
              Launch(program, [c, d, e], (), GROUPS, written=[2])]
  for run in (lambda: device.submit(launches), device.record(launches).submit):
    most.clear()
    run()
    assert it.read(4) == [2 * (x + y) for x, y in zip(*it.values[:2])]
    assert max(most) == 2, "the second one starts while the first one runs, the third one when both are done"

@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("card", CARDS)
def test_random_work_is_done_as_if_in_order(opened: Opener, card: str, seed: int) -> None:
  done_in_order(opened(card, seed=seed)[1], random.Random(seed))

@pytest.mark.slow
@pytest.mark.parametrize("dies", [1, 2, 4])
def test_cards_of_fewer_dies(opened: Opener, dies: int, monkeypatch: pytest.MonkeyPatch) -> None:
  """Partitions of an MI300X: one die has a PM4 queue."""
  monkeypatch.setitem(CHIPS, "gfx942", dataclasses.replace(CHIPS["gfx942"], xccs=dies))
  computer, device = opened("gfx942")
  program, it = device.load(code(device, addition("gfx942"))), Vectors(device)
  a, b, c = it.buffers
  device.submit([Launch(program, [a, b, c], (), GROUPS), Launch(program, [c, b, a], (), GROUPS)])
  assert it.read(0) == [x + 2 * y for x, y in zip(*it.values[:2])] and len(computer.gpus[0].xccs) == dies

@pytest.mark.slow
def test_without_strict_checks_the_results_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
  computers = [GpuHost("gfx942", ["gfx942"], strict=strict) for strict in (True, False)]
  results = []
  for computer in computers:
    monkeypatch.setattr(files, "COMPUTER", computer)
    device = amd.open(0, lambda name: None)  # type: ignore[arg-type,return-value]
    program, it = device.load(code(device, addition("gfx942"))), Vectors(device)
    device.submit([Launch(program, it.buffers, (), GROUPS)])
    results.append(it.read(2))
  assert results[0] == results[1] == [x + y for x, y in zip(*it.values[:2])] and computers[1].coherence is None

@pytest.mark.slow
@pytest.mark.parametrize("card", CARDS)
def test_recordings_replay_and_are_patched(opened: Opener, card: str) -> None:
  _, device = opened(card)
  program, it = device.load(code(device, addition(card))), Vectors(device, 4)
  a, b, c, d = it.buffers
  recording = device.record([Launch(program, [a, b, c], (), GROUPS), Launch(program, [c, b, a], (), GROUPS)])
  for _ in range(3): recording.submit()
  recording.patch(0, 1, d)
  recording.patch_grid(1, 1)
  recording.submit()
  x, y, _, z = it.values
  after = [p + 6 * q for p, q in zip(x, y)]
  assert it.read(2) == [p + r for p, r in zip(after, z)]
  assert it.read(0) == [p + r + q if i < LANES else p for i, (p, q, r) in enumerate(zip(after, y, z))]

@pytest.mark.slow
@pytest.mark.parametrize("card", CARDS)
@pytest.mark.parametrize("size", [1, 4096, 9 << 20])
def test_bytes_go_there_and_back(opened: Opener, card: str, size: int) -> None:
  _, device = opened(card)
  data, out = random.Random(1).randbytes(size), bytearray(size)
  buffer = device.allocator.alloc(size)
  device.allocator._copyin(buffer, memoryview(bytearray(data)))
  device.allocator._copyout(memoryview(out), buffer)
  device.allocator.free(buffer, size)
  assert out == data

# **** what goes wrong ****

def outside(arch: str, far: int) -> Kernel:
  """Stores beyond its buffer."""
  k = Kernel(arch)
  k("s_load_b64", k.s(4, 2), k.s(0, 2), None, offset=0)
  k("v_mov_b32", k.v(1), far)
  k.wait(lgkm=0)
  k("global_store_b32", k.v(1), k.v(1), k.s(4, 2))
  return k("s_endpgm")

@pytest.mark.slow
@pytest.mark.parametrize("card", CARDS)
def test_a_store_beyond_all_buffers_names_kernel_and_address(opened: Opener, card: str) -> None:
  _, device = opened(card)
  program, it = device.load(code(device, outside(card, 0x70000000), 1, "goes_astray")), Vectors(device, 1)
  device.submit([Launch(program, it.buffers, (), 1)])
  place = it.buffers[0].address + 0x70000000 & -4096
  with pytest.raises(DriverError, match=f"(?s){place:#x}.*goes_astray"): device.synchronize()
  with pytest.raises(DeviceError, match="is lost"): device.submit([Launch(program, it.buffers, (), 1)])

@pytest.mark.parametrize("card", CARDS)
@pytest.mark.parametrize("seed", range(3))
def test_what_strict_checks_find_names_kernel_and_instruction(opened: Opener, card: str, seed: int) -> None:
  _, device = opened(card, seed=seed)
  k = Kernel(card)
  k("s_load_b64", k.s(4, 2), k.s(0, 2), None, offset=0)
  k("v_mov_b32", k.v(1), 0)
  k("global_store_b32", k.v(1), k.v(1), k.s(4, 2))
  k("s_endpgm")
  program, it = device.load(code(device, k, 1, "waits_for_nothing")), Vectors(device, 1)
  with pytest.raises(MissingWait, match=r"(?s)s4 is read before s_load.*has been waited "
                     r"for.*global_store.*waits_for_nothing"):
    device.submit([Launch(program, it.buffers, (), 1)])
    device.synchronize()
  with pytest.raises(DeviceError, match="is lost since it met an error"):
    device.submit([Launch(program, it.buffers, (), 1)])

@pytest.mark.slow
def test_a_kernel_without_end_meets_the_deadline(opened: Opener) -> None:
  computer, device = opened("gfx1100")
  k = Kernel("gfx1100")
  k.label("again")
  k.jump("s_branch", "again")
  program = device.load(code(device, k, 0, "endless"))
  device.submit([Launch(program, [], (), 1)])
  with Context(HCQDEV_WAIT_TIMEOUT_MS=100), pytest.raises(DriverError, match="did not finish submission") as caught:
    device.synchronize()
  assert "endless" in caught.value.message and HCQDEV_WAIT_TIMEOUT_MS.value > 1000 and not computer.gpus[0].work

@pytest.mark.slow
def test_memory_that_runs_out(opened: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setitem(CHIPS, "gfx1200", dataclasses.replace(CHIPS["gfx1200"], vram=48 << 20))
  computer, device = opened("gfx1200")
  taken, size = [], 4 << 20
  with pytest.raises(OutOfMemory, match="live buffers hold"):
    while True: taken.append(device.allocator.alloc(size))
  assert len(taken) > 3 and computer.gpus[0].vram_used <= 48 << 20
  for buffer in taken: device.allocator.free(buffer, size)
  device.allocator.free(device.allocator.alloc(2 * size), 2 * size)

@pytest.mark.slow
def test_a_reset_of_the_gpu_is_told(opened: Opener) -> None:
  computer, device = opened("gfx1200")
  program, it = device.load(code(device, addition("gfx1200"))), Vectors(device)
  device.submit([Launch(program, it.buffers, (), GROUPS)])
  computer.gpus[0].reset()
  with pytest.raises(DriverError, match="was reset by the kernel"): device.synchronize()

def test_cards_copy_from_each_other(opened: Opener) -> None:
  _, first = opened("gfx1100", count=2)
  _, second = opened("gfx1100", count=2, ordinal=1)
  one, two = Vectors(first, 1), Vectors(second, 1, seed=9)
  assert second.allocator.transfer(two.buffers[0], one.buffers[0], 4 * COUNT)
  assert two.read(0) == one.values[0] == one.read(0)

# **** a driver with a mistake ****

Break = Callable[[pytest.MonkeyPatch], None]

def without(packets: int, *flags: str) -> Break:
  """Leave out cache flags in all packets."""
  def kept(fields: dict[str, int]) -> dict[str, int]:
    return {flag: value for flag, value in fields.items() if flag not in flags}
  def act(patch: pytest.MonkeyPatch) -> None:
    for name, fields in commands.ACQUIRE[packets].items(): patch.setitem(commands.ACQUIRE[packets], name, kept(fields))
    patch.setitem(commands.RELEASE, packets, kept(commands.RELEASE[packets]))
  return act

def instead(owner: type, name: str, function: Callable[..., None]) -> Break:
  return lambda patch: patch.setattr(owner, name, function)

def doorbell_first(queue: Any, written: int) -> None:
  queue.doorbell.store64(queue.doorbell_offset, queue.doorbell_value(written))
  queue.pointers.store64(WRITE_POINTER, queue.pointer(written))

def doorbell_in_bytes(queue: Any, written: int) -> None:
  queue.pointers.store64(WRITE_POINTER, queue.pointer(written))
  queue.doorbell.store64(queue.doorbell_offset, queue.doorbell_value(written) * 4)

def forgetful(flight: PendingLaunches, places: Any, writes: Any, spills: bool = False) -> bool:
  """Remember only writes of launches: a launch that writes bytes which another one reads does not wait."""
  waits = order.meet(places, flight.writes)
  if waits: flight.writes = []
  flight.writes += [p for i, p in enumerate(places) if i in writes]
  return waits

MISTAKES: dict[str, tuple[str, type[StrictError], Break]] = {
  **{f"no {flag} on {card}": (card, StaleRead, without(packets, flag)) for card, packets, flags in (
    ("gfx1100", 10, "glv_inv gl1_inv glk_inv gli_inv gl2_inv gl2_wb"),
    ("gfx1200", 10, "glv_inv glk_inv gl2_inv gl2_wb"),
    ("gfx942", 9, "tcl1_action_ena sh_kcache_action_ena sh_icache_action_ena tc_action_ena tc_wb_action_ena"))
     for flag in flags.split()},
  "no wait for kernels": ("gfx1100", DataRace, instead(commands.Commands, "finish", lambda self: None)),
  "launches that need each other do not wait": ("gfx1200", DataRace,
                                                instead(PendingLaunches, "take",
                                                        lambda self, places, writes, spills: False)),
  "what launches only read is forgotten": ("gfx1100", DataRace, instead(PendingLaunches, "take", forgetful)),
  "copies and kernels that need each other do not wait": ("gfx1200", DataRace, instead(Queues, "take", lambda self,
                                                                                       queue, number, what, done: 0)),
  "patched buffers are thought to be where they were": ("gfx1100", DataRace,
                                                        instead(GpuRecording, "_moved", lambda self, launch,
                                                                position: None)),
  "dies do not meet": ("gfx942", DataRace, instead(commands.Commands, "dies_meet", lambda self: None)),
  "the copy engine does not wait for kernels": ("gfx1100", DataRace,
                                                instead(CopyQueue, "wait_memory", lambda self, address, value: None)),
  "kernels do not wait for the copy engine": ("gfx1200", DataRace,
                                              instead(commands.Commands, "wait", lambda self, address, value: None)),
  "the doorbell before the write pointer": ("gfx1100", DoorbellError, instead(Queue, "publish", doorbell_first)),
  "the doorbell in bytes": ("gfx1100", DoorbellError, instead(Queue, "publish", doorbell_in_bytes)),
}

def work(card: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> bool:
  """Return whether the results are right after work that overwrites bytes which other work has read."""
  monkeypatch.setattr(files, "COMPUTER", GpuHost(card, [card], seed))
  return works(amd.open(0, lambda name: None), random.Random(seed))  # type: ignore[arg-type]

@pytest.mark.slow
@pytest.mark.parametrize("card", CARDS)
def test_the_driver_as_it_is(card: str, monkeypatch: pytest.MonkeyPatch) -> None:
  assert work(card, 0, monkeypatch)

@pytest.mark.slow
@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_in_the_driver_are_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
  """Real hardware forgives each of them most of the time."""
  card, kind, break_it = MISTAKES[name]
  break_it(monkeypatch)
  assert noticed(lambda seed: work(card, seed, monkeypatch), kind)
