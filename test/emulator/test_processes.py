"""Users of one virtual card, each a process with a driver of its own: AMD's and NVIDIA's drivers, unchanged.

Kernels of both run at the same time. One runs out of memory or queues because the other has them. There are endless
kernels, faults, resets, mistakes that strict checks find, and processes that are killed at any point. No process may
harm the other, and the virtual kernel counts the resources that are left.
"""
from __future__ import annotations
import contextlib
import dataclasses
import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from gpu.failures import step
from gpu.processes import User, Users, end, sharing
from gpu.programs import GROUPS, N, Sums, Vectors, code, small_rings, texts
from formats.mutations import cases

from tinyhw import Device, Tensor, emulator
from tinyhw.config import Context
from tinyhw.device import Launch
from tinyhw.emulator.amd.chips import CHIPS as AMD_CHIPS
from tinyhw.emulator.errors import UninitialisedRead
from tinyhw.emulator.nvidia.chips import CHIPS as NVIDIA_CHIPS
from tinyhw.errors import DeviceError, DriverError, OutOfMemory

KINDS = ("gfx1100", "gfx942", "sm_90")
AMD_KINDS = ("gfx1200", "gfx942")
SUMS = [i * 1.5 for i in range(N)]

@pytest.fixture
def users() -> Iterator[Users]:
  """users("gfx1100", 3): three processes (default 2) on one computer.

  At the end nothing may be left of them, nor of the computer's memory.
  """
  made: list[User] = []
  def make(kind: str, count: int = 2, seed: int = 7) -> list[User]:
    made.extend(sharing(lambda: emulator.make(kind, seed), count))
    return made[-count:]
  with Context(EMULATE=""):
    yield make
    end(made)

def other_chip(monkeypatch: pytest.MonkeyPatch, kind: str, **changes: int) -> None:
  """Change the chip of a kind of cards."""
  chips: Any = NVIDIA_CHIPS if kind.startswith("sm_") else AMD_CHIPS
  monkeypatch.setitem(chips, kind, dataclasses.replace(chips[kind], **changes))

def goes_on(user: User) -> None:
  """Check that a user computes, with new memory."""
  v = Vectors(user.device)
  user.device.submit([v.launch(v.one, v.half)])
  assert v.read(v.out) == SUMS

def meetings(users: list[User]) -> list[None]:
  """Return one item for each step of the card at which all users have running kernels."""
  found, scheduler = list[None](), users[0].box.scheduler
  step = scheduler._step
  def look(actor: Any, caller: object) -> bool:
    if all(user.box.devices_census()["kernels"] for user in users): found.append(None)
    return bool(step(actor, caller))
  scheduler._step = look
  return found

@contextlib.contextmanager
def still(user: User) -> Iterator[None]:
  """Keep the card still, as if it were slow."""
  scheduler = user.box.scheduler
  kept, scheduler.advance = scheduler.advance, lambda caller=None: None
  try: yield
  finally: scheduler.advance = kept

# **** both at once ****

@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(2))
def test_kernels_of_two_processes_run_at_once(users: Users, kind: str, seed: int) -> None:
  both = users(kind, seed=seed)
  work, met = [Sums(user.device, random.Random(i)) for i, user in enumerate(both)], meetings(both)
  for turn in range(3):
    with still(both[0]):
      for it in work:
        a, b, c, d = it.buffers
        it.device.submit([Launch(it.program, [c, a, b], [0], GROUPS, written=[0]),
                          Launch(it.program, [d, c, b], [0], GROUPS, written=[0])])
    for it in work:
      a, b, _, d = it.values
      assert it.read(it.buffers[3]) == [x + 2 * y for x, y in zip(a, b)]
      it.values[0] = [float(turn + i % 5) for i in range(N)]
      it.write(it.buffers[0], it.values[0])
  assert met, "the one waited for the other"

@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_tensors_of_two_processes(users: Users, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
  """The engine's kernels: all are started before the first result is read."""
  both = users(kind)
  name = "NV" if kind.startswith("sm_") else "AMD"
  for place, user in zip((name, f"{name}:1"), both): monkeypatch.setitem(Device._opened, place, user.device)
  met = meetings(both)
  rows = [[[(8 * row + column + i) % 13 for column in range(8)] for row in range(6)] for i in range(2)]
  given = [Tensor(rows[i], device=place).realize() for i, place in enumerate((name, f"{name}:1"))]
  for turn in range(3):
    with still(both[0]) if turn else contextlib.nullcontext():  # kernels are loaded at first use, which waits
      made = [((a @ a.permute(1, 0)).relu() - a.sum(1)).realize() for a in given]
    for i, result in enumerate(made):
      assert result.tolist() == [[sum(x * y for x, y in zip(p, q)) - sum(q) for q in rows[i]] for p in rows[i]]
  assert met

@pytest.mark.slow
@pytest.mark.parametrize("kind", ("gfx1200", *KINDS[1:]))
def test_the_rings_of_two_processes_fill_and_wrap(users: Users, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
  """Small rings, and more submissions of both, in turn, than they hold. A user without room waits, and the other goes
  on."""
  small_rings(monkeypatch)
  both = users(kind)
  scheduler, work, waited = both[0].box.scheduler, [Vectors(user.device) for user in both], list[int]()
  moves = scheduler.advance
  for i, v in enumerate(work): _waits_for_room(v.device.compute.ring, scheduler, moves, i, waited)
  scheduler.advance = lambda caller=None: None  # the card does nothing until somebody waits
  for _ in range(100):
    for v in work: v.device.submit([v.launch(v.out, v.half, groups=0)])
  scheduler.advance = moves
  assert set(waited) == {0, 1} and all(v.device.compute.ring.written > v.device.compute.ring.words for v in work)
  for v in work: v.device.submit([v.launch(v.one, v.half)])
  for v in work: assert v.read(v.out) == SUMS

def _waits_for_room(ring: Any, scheduler: Any, moves: Callable[..., None], number: int, waited: list[int]) -> None:
  """Record that a ring waits for room. The card moves as long as it waits."""
  inner, still = ring.wait, lambda caller=None: None
  def wait(done: Callable[[], bool]) -> None:
    waited.append(number)
    scheduler.advance = moves
    try: inner(done)
    finally: scheduler.advance = still
  ring.wait = wait

# **** scarce resources ****

@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("killed", (False, True), ids=["gives it back", "is killed"])
def test_memory_that_the_other_holds(users: Users, kind: str, killed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
  before, size = users(kind), 4 << 20
  used = before[0].box.gpus[0].vram_used
  for user in before: user.close()
  other_chip(monkeypatch, kind, vram=used + (64 << 20))
  one, other = users(kind)
  taken = list[Any]()
  with pytest.raises(OutOfMemory, match="cannot allocate"):
    while True: taken.append(other.device.allocator.alloc(size))
  assert len(taken) > 4
  with pytest.raises(OutOfMemory, match="the system gives no more: other programs may hold the rest"):
    one.device.allocator.alloc(2 * size)
  if killed: other.kill()
  else:
    for buffer in taken: other.device.allocator.free(buffer, size)
    other.device.allocator.free_cache()
    other.device.synchronize()
    goes_on(other)
  one.device.allocator.free(one.device.allocator.alloc(2 * size), 2 * size)
  goes_on(one)

@pytest.mark.slow
@pytest.mark.parametrize("kind", AMD_KINDS)
def test_queues_that_the_other_has(users: Users, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
  """The queues of copy engines, of which a card has few; then all queues, whose number the kernel limits."""
  other_chip(monkeypatch, kind, sdma_engines=1, sdma_queues=1)
  one, = users(kind, 1)
  box = one.box.process()
  with pytest.raises(DriverError, match="CreateQueue: .*ENOMEM.*; other processes have all queues of the GPU; end one "
                     "of them"):
    User(box)
  goes_on(one)
  one.device.close()
  other = User(box)
  try: goes_on(other)
  finally: other.close()
  monkeypatch.setattr("tinyhw.emulator.amd.card.queues.MOST_OF_CARD", 1)
  box = one.box.process()
  with pytest.raises(DriverError, match="CreateQueue: .*EPERM.*amdgpu.max_num_of_queues_per_device"): User(box)
  box.kill()

@pytest.mark.slow
def test_channels_that_the_other_has(users: Users, monkeypatch: pytest.MonkeyPatch) -> None:
  """A GPU has a limited number for all processes. A user that got only one of two leaves nothing."""
  one, = users("sm_90", 1)
  monkeypatch.setattr("tinyhw.emulator.nvidia.card.objects.MOST_CHANNELS", 3)
  box = one.box.process()
  with pytest.raises(DriverError, match="no free fifos; other processes have all channels of the GPU: end one of them"):
    User(box)
  goes_on(one)
  one.close()
  other = User(box)
  try: goes_on(other)
  finally: other.close()

# **** one of them fails ****

@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("killed", (False, True), ids=["meets its deadline", "is killed"])
def test_a_kernel_without_end(users: Users, kind: str, killed: bool) -> None:
  """The other goes on meanwhile: the card gives turns to both."""
  one, other = users(kind)
  endless = one.device.load(code(kind, texts(kind).hang, "endless", ()))
  one.device.submit([Launch(endless, [], (), 1)])
  goes_on(other)
  assert one.box.devices_census()["kernels"]
  if killed: one.kill()
  else:
    with Context(HCQDEV_WAIT_TIMEOUT_MS=50), pytest.raises(DriverError, match="(?s)did not finish submission.*endless"):
      one.device.synchronize()
  assert not one.box.devices_census()["kernels"]
  goes_on(other)

@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_fault_of_one(users: Users, kind: str) -> None:
  """It happens while the other process looks. That process notices nothing, and the faulting one is told."""
  one, other = users(kind)
  v, w = Vectors(one.device), Vectors(other.device)
  class Beyond:
    address = 1 << 39
  other.device.submit([w.launch(w.one, w.half)])
  one.device.submit([Launch(v.program, [Beyond(), v.one, v.half], [0], GROUPS)])
  other.box.scheduler.settle()
  assert w.read(w.out) == SUMS
  with pytest.raises(DriverError, match="touches memory that it has not"): one.device.synchronize()
  with pytest.raises(DeviceError, match="is lost"): one.device.submit([v.launch(v.one, v.half)])
  goes_on(other)

@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_mistake_of_one_is_told_to_it(users: Users, kind: str) -> None:
  """Strict checks find it while the other process looks."""
  one, other = users(kind)
  v, w = Vectors(one.device), Vectors(other.device)
  one.device.submit([v.launch(one.device.allocator.alloc(4 * N), v.half)])
  for _ in range(20):
    other.device.submit([w.launch(w.one, w.half)])
    assert w.read(w.out) == SUMS
  assert one.box in one.box.scheduler.untold
  with pytest.raises(UninitialisedRead, match="add"): one.device.synchronize()
  goes_on(other)

@pytest.mark.slow
@pytest.mark.parametrize("kind", AMD_KINDS)
def test_a_reset_is_told_to_both_and_a_third_one_works(users: Users, kind: str) -> None:
  """A process without work is told at its next submission."""
  one, other = users(kind)
  endless, v = one.device.load(code(kind, texts(kind).hang, "endless", ())), Vectors(other.device)
  one.device.submit([Launch(endless, [], (), 1)])
  one.box.gpus[0].reset()
  other.device.submit([v.launch(v.one, v.half)])
  for device in (one.device, other.device):
    with pytest.raises(DriverError, match="because it did not respond to this program or to another one; what was in "
                       "its memory is gone"):
      device.synchronize()
  third = User(one.box.process())
  try: goes_on(third)
  finally: third.close()

@pytest.mark.slow
def test_an_error_of_the_card_is_told_to_both_and_a_third_one_works(users: Users) -> None:
  """The kernel's driver writes it into the notifiers of all channels. Each process learns of it at its next submission.
  """
  both = users("sm_90")
  work = [Vectors(user.device) for user in both]
  for user in both:
    device: Any = user.device
    user.box.engines.fail(user.box.engines.channels[device.compute.token].channel, 79)
  for v in work:
    v.device.submit([v.launch(v.one, v.half)])
    with pytest.raises(DriverError, match=r"fell off the bus \(Xid 79, compute channel\)"): v.device.synchronize()
    with pytest.raises(DeviceError, match="is lost"): v.device.submit([v.launch(v.one, v.half)])
  third = User(both[0].box.process())
  try: goes_on(third)
  finally: third.close()

class Killed(BaseException):
  """Raised in a killed process: nothing of it runs afterwards."""

def looks(user: User, at: int = 0) -> list[None]:
  """Count a process's looks at its devices, by a call or in memory. Kill it at look number `at`."""
  counted, scheduler = list[None](), user.box.scheduler
  advance = scheduler.advance
  def look(caller: object = None) -> None:
    if caller is user.box and not user.killed:
      counted.append(None)
      if len(counted) == at:
        user.kill()
        raise Killed
    advance(caller)
  scheduler.advance = look
  return counted

@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_process_that_is_killed_anywhere_in_a_step_leaves_nothing(users: Users, kind: str) -> None:
  """Also between two stores of a submission. Work of the other process goes on."""
  alone, = users(kind, 1)
  counted = looks(alone)
  step(alone.device)
  alone.close()
  whole, within = len(counted), 0
  for at in random.Random(kind).sample(range(1, whole + 1), cases(4, 40)):
    one, other = users(kind, seed=at)
    w = Vectors(other.device)
    other.device.submit([w.launch(w.one, w.half)])
    held, allocated = other.box.census(), other.box.physical.held[other.box]
    looks(one, at)
    # its driver may raise something else at last, which nobody receives
    with contextlib.suppress(Exception, Killed): step(one.device)
    within += one.killed
    if not one.killed: one.kill()  # it waited less than alone, and came to the end
    assert one.box.census() == {} and one.box not in other.box.processes
    assert other.box.physical.allocated == allocated and {**other.box.census(), "kernels": 0} == {**held, "kernels": 0}
    assert w.read(w.out) == SUMS
    step(other.device)
    other.close()
  assert within > 1
