"""The driver's packets, damaged: a random program runs, and from a random packet on flushes, cache flags, waits and
signals are left out.

A damage removes something that the program needs; a family's damages say why. Kernels read values that others have just
written, on other compute units and dies. The copy engine overwrites bytes that caches hold, and reads results of
kernels. New code replaces old code. Stale caches and races depend on the order of events, so a mutant runs with several
seeds.
"""
from __future__ import annotations
import random
import struct
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any, NamedTuple

import pytest
from gpu.programs import LANES, code

from test.emulator.mutants.mutations import Mutant
from tinyhw.device import Launch
from tinyhw.drivers.gpu import device as gpu_device
from tinyhw.drivers.linux import files
from tinyhw.emulator.errors import StrictError
from tinyhw.errors import DriverError

GROUPS, BUFFERS, OPERATIONS, SEEDS = 10, 4, 26, 5
COUNT = LANES * GROUPS
MOST_LOOKS = 60_000       # at a signal that never comes

Fields = dict[str, Any]
Change = Callable[[str, Fields], Fields | None]   # from a packet's name and fields to other fields; None: removed

class Damage(NamedTuple):
  """A damage. cards: those whose program needs the removed packets. change: of a packet. all: it changes each packet;
  else from a random one on."""
  name: str
  cards: tuple[str, ...]
  change: Change
  all: bool = False

def gone(*names: str) -> Change: return lambda name, fields: None if name in names else fields
def without(flag: str) -> Change: return lambda name, fields: {k: v for k, v in fields.items() if k != flag}

class Packets:
  """The parts of a family that damages of its packets need."""
  damages: tuple[Damage, ...]
  driver: ModuleType

  def computer(self, card: str, seed: int) -> Any:
    """Return a virtual computer with a card."""
    raise NotImplementedError

  def forget(self, computer: Any) -> None:
    """Release a computer that no driver uses any more."""

  def install(self, patch: pytest.MonkeyPatch, change: Change) -> None:
    """Apply a change to all packets that the driver sends."""
    raise NotImplementedError

class Damaging:
  """Changes packets, from number `first` on of those that a damage changes, and counts them. None: it changes none."""
  def __init__(self, damage: Damage, first: int | None):
    self.damage, self.first, self.count = damage, first, 0

  def __call__(self, name: str, fields: Fields) -> Fields | None:
    changed = self.damage.change(name, fields)
    if changed == fields: return fields
    self.count += 1
    return fields if self.first is None or self.count <= self.first else changed

def wait_until(done: Callable[[], bool], timeout_ms: int, sleep: Callable[[int], None],
               looks: int | None = None) -> bool:
  """Wait like the driver, with a deadline that counts looks, not time. Each look lets the devices move."""
  for _ in range(MOST_LOOKS):
    if done(): return True
  sleep(0)
  return done()

class Program:
  """A random program: buffers of floats, and their expected content."""
  def __init__(self, device: Any, rng: random.Random):
    self.device, self.rng = device, rng
    self.buffers = [device.allocator.alloc(4 * COUNT) for _ in range(BUFFERS)]
    self.values: list[list[float]] = [[] for _ in range(BUFFERS)]
    self.right = True
    for k in range(BUFFERS): self.write(k)
    self.kernel = device.load(code(device.arch))
    self.recording = device.record([self.launch(0, 1, 2)])

  def write(self, k: int) -> None:
    """Write a buffer with the copy engine."""
    self.values[k] = [float(self.rng.randrange(100)) for _ in range(COUNT)]
    self.device.allocator._copyin(self.buffers[k], memoryview(bytearray(struct.pack(f"<{COUNT}f", *self.values[k]))))

  def launch(self, a: int, b: int, c: int) -> Launch:
    """c = a + b."""
    return Launch(self.kernel, [self.buffers[c], self.buffers[a], self.buffers[b]], [0], GROUPS)

  def computed(self, a: int, b: int, c: int) -> None:
    self.values[c] = [x + y for x, y in zip(self.values[a], self.values[b])]

  def launches(self) -> list[Launch]:
    """Return kernels, each of which reads results of others."""
    made = []
    for _ in range(self.rng.randint(1, 4)):
      places = [self.rng.randrange(BUFFERS) for _ in range(3)]
      made.append(self.launch(*places))
      self.computed(*places)
    return made

  def replay(self) -> None:
    """Replay a recording with other arguments."""
    places = [self.rng.randrange(BUFFERS) for _ in range(3)]
    for position, k in enumerate((places[2], *places[:2])): self.recording.patch(0, position, self.buffers[k])
    self.recording.submit()
    self.computed(*places)

  def read(self, k: int) -> None:
    """Read a buffer with the copy engine."""
    out = bytearray(4 * COUNT)
    self.device.allocator._copyout(memoryview(out), self.buffers[k])
    self.right = self.right and struct.unpack(f"<{COUNT}f", out) == tuple(self.values[k])

  def step(self) -> None:
    act = self.rng.randrange(10)
    if act < 4: self.device.submit(self.launches())
    elif act < 6: self.write(self.rng.randrange(BUFFERS))
    elif act < 8: self.read(self.rng.randrange(BUFFERS))
    elif act < 9: self.replay()
    else:
      for k in range(BUFFERS): self.write(k)   # numbers stay small, and caches meet values that are not theirs

def run(family: Packets, card: str, change: Change, seed: int) -> tuple[str, str]:
  """Return the verdict on one run, and its reason."""
  rng = random.Random(seed)
  computer, before = family.computer(card, rng.getrandbits(32)), files.COMPUTER
  files.COMPUTER = computer
  device: Any = None
  with pytest.MonkeyPatch.context() as patch:
    family.install(patch, change)
    patch.setattr(gpu_device, "wait_until", wait_until)
    try:
      device = family.driver.open(0, lambda name: None)  # no other user has it
      program = Program(device, rng)
      for _ in range(OPERATIONS): program.step()
      for k in range(BUFFERS): program.read(k)
      return ("harmless", "") if program.right else ("missed: a result", "")
    except StrictError as error: return "reported", error.message.splitlines()[0]
    except DriverError as error: return "by the card", error.message.splitlines()[0]
    finally:
      try:
        if device is not None: device.close()
      except (StrictError, DriverError): pass  # it is lost
      family.forget(computer)
      files.COMPUTER = before

def judge(family: Packets, card: str, damage: Damage, rng: random.Random) -> tuple[str, str]:
  """Return the verdict on a damage that begins somewhere in the first half of the packets. One seed that shows it is
  enough."""
  seeds = [rng.getrandbits(32) for _ in range(SEEDS)]
  whole = Damaging(damage, None)
  verdict, why = run(family, card, whole, seeds[0])
  assert verdict == "harmless", f"{card}, seed {seeds[0]}: {why}"
  first = 0 if damage.all else rng.randrange(max(whole.count // 2, 1))
  verdicts = []
  for seed in seeds:
    verdicts.append(run(family, card, Damaging(damage, first), seed))
    if verdicts[-1][0] in ("reported", "by the card"): return verdicts[-1]
  return next((v for v in verdicts if v[0] == "missed: a result"),
              ("missed: a rule", f"from packet {first} of {whole.count} on"))

def mutants(family: Packets, card: str, count: int, seed: int = 0) -> Iterator[Mutant]:
  """Yield `count` damages of a card's packets, in turn. Each is a function of the seed and its number."""
  damages = [damage for damage in family.damages if card in damage.cards]
  for number in range(count):
    rng = random.Random(f"{seed} {card} {number}")
    damage = damages[number % len(damages)]
    verdict, why = judge(family, card, damage, rng)
    yield Mutant("packets", card, damage.name, f"number {number}", verdict, why)
