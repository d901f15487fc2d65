"""Damaged conversations of the driver with a virtual Metal: a random program runs, and from a random message on the
driver leaves messages out, sends them twice, or sends other arguments.

A damage removes something that the program needs, or breaks a rule of Metal: ownership, states of command buffers and
encoders, limits, hazards between dispatches, kinds of objects, types of arguments. So every mutant is to be noticed: by
a strict object, by the driver's own look at statuses and deadlines, or by the count of objects that are left at the
end, as tests of the driver count them.
"""
from __future__ import annotations
import ctypes
import gc
import mmap
import random
import struct
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest

from test.drivers.metal.conftest import code, code_of_many
from test.emulator.mutants.mutations import MISSED, NOTICED, Mutant
from tinyhw import emulator
from tinyhw.config import Context
from tinyhw.device import Launch
from tinyhw.drivers import metal
from tinyhw.drivers.metal import objc
from tinyhw.drivers.metal.objc import MetalSize, ObjectiveC
from tinyhw.emulator.errors import EmulatorError
from tinyhw.emulator.metal.computer import MetalComputer
from tinyhw.errors import TinyError
from tinyhw.helpers import mv_address

BUFFERS, OPERATIONS, LANES, GROUPS, MANY = 4, 16, 4, 3, 33
COUNT = LANES * GROUPS
TIMEOUT_MS = 20      # of the driver's waits; a virtual GPU gets twenty times as much

Arguments = tuple[Any, ...]
Change = Callable[[Arguments], list[Arguments]]     # the messages of one selector to send in place of one

class MessageDamage(NamedTuple):
  """A damage. selector: of the messages. change: of their arguments. types: of all messages, in place of a change.
  all: it changes each message; else from a random one on. chip: of a Mac whose system has the message."""
  name: str
  selector: str
  change: Change
  types: str = ""
  all: bool = False
  chip: str = "apple7"

RECEIVER = object()   # as an argument: the object to which the message goes

def gone(arguments: Arguments) -> list[Arguments]: return []
def twice(arguments: Arguments) -> list[Arguments]: return [arguments, arguments]
def other(position: int, make: Callable[[Any], Any]) -> Change:
  """Return a change of one argument."""
  return lambda arguments: [(*arguments[:position], make(arguments[position]), *arguments[position + 1:])]
def nil(_: Any) -> None: return None

BUFFER, BYTES, SHARED = "setBuffer:offset:atIndex:", "setBytes:length:atIndex:", "setThreadgroupMemoryLength:atIndex:"
DISPATCH, LENGTH = "dispatchThreadgroups:threadsPerThreadgroup:", "newBufferWithLength:options:"
DAMAGES = (
  *(MessageDamage(f"no {selector}", selector, gone) for selector in (
    "waitForFence:", "updateFence:", "memoryBarrierWithScope:", "endEncoding", "commit", "retain", "release",
    "useResource:usage:")),
  *(MessageDamage(f"no {selector}", selector, gone, all=True) for selector in (
    "setComputePipelineState:", BUFFER, BYTES, SHARED)),
  *(MessageDamage(f"{selector} twice", selector, twice) for selector in ("endEncoding", "commit", "release", "retain")),
  MessageDamage("an offset beyond the buffer", BUFFER, other(1, lambda offset: offset + (1 << 20))),
  MessageDamage("an argument that the kernel lacks", BUFFER, other(2, lambda index: index + 31)),
  MessageDamage("a buffer that is nil", BUFFER, other(0, nil)),
  MessageDamage("variables that are too long", BYTES, other(1, lambda length: length + 8192)),
  MessageDamage("shared memory of an odd size", SHARED, other(0, lambda length: length - 8)),
  MessageDamage("shared memory that is too large", SHARED, other(0, lambda length: 1 << 16)),
  MessageDamage("less shared memory", SHARED, other(0, lambda length: length - 16)),
  MessageDamage("too many lanes", DISPATCH, other(1, lambda size: MetalSize(2048, 1, 1))),
  MessageDamage("no lanes", DISPATCH, other(1, lambda size: MetalSize(0, 1, 1))),
  MessageDamage("more threadgroups than elements", DISPATCH, other(0, lambda size: MetalSize(1000, 1, 1))),
  MessageDamage("a barrier for textures", "memoryBarrierWithScope:", other(0, lambda scope: 2)),
  MessageDamage("a fence that is nil", "waitForFence:", other(0, nil)),
  MessageDamage("a pipeline that is nil", "setComputePipelineState:", other(0, nil)),
  MessageDamage("an encoder of a type that there is not", "computeCommandEncoderWithDispatchType:",
                other(0, lambda kind: 7)),
  MessageDamage("an empty buffer", LENGTH, other(0, lambda size: 0)),
  MessageDamage("a buffer that the program does not see", LENGTH, other(1, lambda options: 0x120)),
  MessageDamage("fast math, as older systems say it", "setFastMathEnabled:", other(0, lambda is_fast: True)),
  MessageDamage("fast math", "setMathMode:", other(0, lambda mode: 2), chip="apple9"),
  MessageDamage("fast functions", "setMathFloatingPointFunctions:", other(0, lambda functions: 0), chip="apple9"),
  MessageDamage("an encoder as a pipeline", "setComputePipelineState:", other(0, lambda pipeline: RECEIVER)),
  MessageDamage("an encoder as a buffer", BUFFER, other(0, lambda buffer: RECEIVER)),
  MessageDamage("an encoder as a fence", "updateFence:", other(0, lambda fence: RECEIVER)),
  MessageDamage("offsets as doubles", BUFFER, gone, "v @ d Q"),
  MessageDamage("a status as a double", "status", gone, "d"),
  MessageDamage("sizes by their address", DISPATCH, gone, "v ^v ^v"),
)

class Conversation:
  """Changes messages from number `first` on of those that a damage changes, and counts them. None: it changes none."""
  def __init__(self, damage: MessageDamage, first: int | None):
    self.damage, self.first, self.count = damage, first, 0

  def install(self, patch: pytest.MonkeyPatch) -> None:
    plain = ObjectiveC.send
    def send(self_: ObjectiveC, receiver: int, selector: str, *arguments: Any) -> Any:
      if selector != self.damage.selector: return plain(self_, receiver, selector, *arguments)
      self.count += 1
      if self.damage.types: return plain(self_, receiver, selector, *arguments)
      changed = self.first is not None and self.count > self.first
      found = receiver if selector == "retain" else None
      for sent in self.damage.change(arguments) if changed else [arguments]:
        found = plain(self_, receiver, selector, *[receiver if x is RECEIVER else x for x in sent])
      return found
    patch.setattr(ObjectiveC, "send", send)
    if self.damage.types and self.first is not None:
      patch.setitem(objc.SELECTORS, self.damage.selector, self.damage.types.split())

REVERSED = """threadgroup int *shared = (threadgroup int *)(shared_bytes + 0);
  shared[lane] = data0[group * 4 + lane];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  data0[group * 4 + lane] = shared[3 - lane] + int(numbers[0]);"""
SHARED_BYTES = 16

class RandomProgram:
  """Buffers of ints, and their expected content. Each launch adds a number to a buffer, reverses each four of its
  elements, or adds the last of many buffers."""
  def __init__(self, device: Any, rng: random.Random):
    self.device, self.rng, self.allocator = device, rng, device.allocator
    self.buffers = [self.allocator.alloc(4 * COUNT) for _ in range(BUFFERS)]
    self.values: list[list[int]] = [[] for _ in range(BUFFERS)]
    self.right = True
    self.adds, self.reverses = device.load(code()), device.load(code("reversed", REVERSED, local_bytes=SHARED_BYTES))
    self.many = device.load(code_of_many(MANY))
    self.pages = mmap.mmap(-1, mmap.PAGESIZE)
    for k in range(BUFFERS): self.write(k)

  def write(self, k: int) -> None:
    self.values[k] = [self.rng.randrange(100) for _ in range(COUNT)]
    self.allocator.copyin(self.buffers[k], memoryview(bytearray(struct.pack(f"<{COUNT}i", *self.values[k]))))

  def read(self, k: int) -> None:
    out = bytearray(4 * COUNT)
    self.allocator.copyout(memoryview(out), self.buffers[k])
    self.right = self.right and list(struct.unpack(f"<{COUNT}i", out)) == self.values[k]

  def launches(self) -> list[Launch]:
    made: list[Launch] = []
    for _ in range(self.rng.randint(1, 4)):
      k, n, kind = self.rng.randrange(BUFFERS), self.rng.randrange(9), self.rng.randrange(3)
      values = self.values[k]
      if kind == 2:
        last = self.rng.choice([m for m in range(BUFFERS) if m != k])
        memories = [self.buffers[k], *[self.buffers[last]] * (MANY - 1)]
        made.append(Launch(self.many, memories, [n], 1))
        for at in range(LANES): values[at] += self.values[last][at] + n
        continue
      made.append(Launch(self.reverses if kind else self.adds, [self.buffers[k]], [n], GROUPS))
      if kind: values[:] = [x for at in range(0, COUNT, LANES) for x in reversed(values[at:at + LANES])]
      values[:] = [x + n for x in values]
    return made

  def step(self) -> None:
    act = self.rng.randrange(8)
    if act < 4: self.device.submit(self.launches())
    elif act < 5: self.write(self.rng.randrange(BUFFERS))
    elif act < 6: self.read(self.rng.randrange(BUFFERS))
    elif act < 7:
      k = self.rng.randrange(BUFFERS)      # another buffer, while the old one may be in use
      self.allocator.free(self.buffers[k])
      self.allocator.free_cache()
      self.buffers[k] = self.allocator.alloc(4 * COUNT)
      self.write(k)
    else: self.in_place()

  def in_place(self) -> None:
    """Add to memory of the program."""
    mine = memoryview(self.pages).cast("i")[:COUNT]
    mine[:] = memoryview(bytearray(4 * COUNT)).cast("i")
    self.device.submit([Launch(self.adds, [self.allocator.external(mv_address(mine), 4 * COUNT)], [5], GROUPS)])
    self.device.synchronize()
    self.right = self.right and mine.tolist() == [5] * COUNT

def run(damage: Conversation, seed: int) -> tuple[str, str]:
  """Return the verdict on one run, and its reason."""
  rng = random.Random(seed)
  computer = emulator.make(damage.damage.chip, rng.getrandbits(32))
  assert isinstance(computer, MetalComputer)
  with pytest.MonkeyPatch.context() as patch:
    patch.setattr(metal, "load_library", lambda: computer.metal)
    damage.install(patch)
    try:
      with Context(HCQDEV_WAIT_TIMEOUT_MS=TIMEOUT_MS): return _outcome(computer, rng)
    except EmulatorError as error: return "reported", error.message.splitlines()[0]
    except TinyError as error: return "by the card", error.message.splitlines()[0]
    except (TypeError, ctypes.ArgumentError) as error: return "by the card", f"ctypes: {error}"

def _outcome(computer: MetalComputer, rng: random.Random) -> tuple[str, str]:
  device: Any = metal.open(0, lambda name: None)  # type: ignore[arg-type,return-value]
  program = RandomProgram(device, rng)
  for _ in range(OPERATIONS): program.step()
  for k in range(BUFFERS): program.read(k)
  if not program.right: return "missed: a result", ""
  for buffer in program.buffers: device.allocator.free(buffer)
  device.close()
  del program
  gc.collect()
  device.synchronize()
  left = computer.census()
  return ("by the card", f"objects are left: {left}") if left != OF_A_DEVICE else ("harmless", "")

OF_A_DEVICE = {"MTLDevice": 1, "MTLCommandQueue": 1, "MTLFence": 1}

SEEDS = 5

def judge(damage: MessageDamage, rng: random.Random) -> tuple[str, str]:
  """Return the verdict on a damage that begins somewhere in the first half of its messages. One seed that shows it is
  enough."""
  whole, seed = Conversation(damage, None), 0
  while not whole.count:      # some programs have no such message
    seed = rng.getrandbits(32)
    verdict, why = run(whole, seed)
    assert verdict == "harmless", f"seed {seed}: {verdict}, {why}"
  seeds = [seed, *(rng.getrandbits(32) for _ in range(SEEDS - 1))]
  first = 0 if damage.all or damage.types else rng.randrange(max(whole.count // 2, 1))
  verdicts = []
  for seed in seeds:
    verdicts.append(run(Conversation(damage, first), seed))
    if verdicts[-1][0] in NOTICED: return verdicts[-1]
  return next((v for v in verdicts if v[0] in MISSED), ("missed: a rule", f"from message {first} of {whole.count} on"))

def mutants(count: int, seed: int = 0) -> Iterator[Mutant]:
  """Yield `count` damages, in turn. Each is a function of the seed and its number."""
  for number in range(count):
    rng, damage = random.Random(f"{seed} messages {number}"), DAMAGES[number % len(DAMAGES)]
    verdict, why = judge(damage, rng)
    yield Mutant("messages", damage.chip, damage.name, f"number {number}", verdict, why)
