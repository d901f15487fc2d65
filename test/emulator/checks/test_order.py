"""Order of grids and copies: flushes, ends of pipe, waits, atomics and doorbells make one; other events do not."""
from __future__ import annotations
from collections.abc import Callable, Iterator

import pytest
from amd.virtual import COMPUTE, SDMA, Area, Group, Program, kernels, split

from tinyhw.autogen.amd import sdma
from tinyhw.emulator.amd.registers import DispatchRegisters
from tinyhw.emulator.checks.order import Agent, Order
from tinyhw.emulator.checks.races import Copied, Races
from tinyhw.emulator.errors import DataRace
from tinyhw.emulator.memory.memory import MemoryInterface

CODE = 0x10000

def touch(write: bool) -> Callable[[MemoryInterface, DispatchRegisters, Group], Iterator[None]]:
  """Return a kernel of one step that reads or changes a word. User data: its address."""
  def run(memory: MemoryInterface, registers: DispatchRegisters, group: Group) -> Iterator[None]:
    place = (registers.user_data[0] or 0) | (registers.user_data[1] or 0) << 32
    yield
    if write: memory.store(place, CODE.to_bytes(4, "little"))
    else: memory.load(place, 4)
    yield
  return run

class Bench:
  """Two queues, a word of data, a word of signals, staging, and kernels that read and write the word."""
  def __init__(self, seed: int = 0):
    self.p = Program(seed=seed)
    kernels(self.p.computer, {CODE: touch(False), CODE + 256: touch(True)})
    self.compute, self.copies = self.p.queue(COMPUTE), self.p.queue(SDMA)
    self.data, self.signal, self.staging = self.p.allocate(4096), self.p.allocate(4096), self.p.allocate(4096)
    self.signal.mapping.store64(0, 0)
    self.data.mapping.copyin(0, bytes(4096))
    self.staging.mapping.copyin(0, bytes(range(256)) * 16)

  def kernel(self, write: bool) -> list[int]:
    return [*self.p.acquire(), *self.p.kernel_registers(CODE + 256 * write, user_data=split(self.data.address)),
            *self.p.dispatch()]

  def copy(self, to: Area, source: Area) -> list[int]:
    words: list[int] = self.p.copies.COPY_LINEAR(count=63, src_addr=source.address, dst_addr=to.address)
    return words

  def fence(self) -> list[int]:
    words: list[int] = self.p.copies.FENCE(addr=self.signal.address, data=1, mtype=sdma.MTYPE_UC)
    return words

  def poll(self) -> list[int]:
    words: list[int] = self.p.copies.POLL_REGMEM(func=sdma.GREATER_EQUAL, mem_poll=1, addr=self.signal.address, value=1,
                                                 mask=0xFFFFFFFF,
                                                 retry_count=sdma.RETRY_FOREVER)
    return words

def races(act: Callable[[Bench], None], seeds: int = 3) -> set[bool]:
  """Return whether the act races, with each of some seeds."""
  found = set()
  for seed in range(seeds):
    bench = Bench(seed)
    try:
      act(bench)
      bench.p.settle()
      found.add(False)
    except DataRace as error:
      assert "nothing orders them" in error.message
      found.add(True)
  return found

def two_kernels(between: Callable[[Bench], list[int]], first: bool, second: bool) -> Callable[[Bench], None]:
  return lambda b: b.compute.submit(b.kernel(first), between(b), b.kernel(second))

FLUSH: Callable[[Bench], list[int]] = lambda b: [*b.p.partial_flush(), *b.p.release(write_back=True)]

@pytest.mark.slow
@pytest.mark.parametrize("first, second, wrong", [(True, False, True), (False, True, True), (False, False, False)])
def test_kernels_of_one_queue(first: bool, second: bool, wrong: bool) -> None:
  """A write and a read, in either order, need a flush between them. Two writes of one value do not race, and reads
  never do.
  """
  assert races(two_kernels(lambda b: [], first, second)) == {wrong}
  assert races(two_kernels(FLUSH, first, second)) == {False}

@pytest.mark.slow
def test_an_end_of_pipe_that_is_waited_for_is_as_good_as_a_flush() -> None:
  signalled = lambda b: [*b.p.release(b.signal.address, 1), *b.p.wait(b.signal.address, 1)]
  assert races(two_kernels(signalled, True, False)) == {False}
  assert races(two_kernels(lambda b: b.p.release(b.signal.address, 1), True, False)) == {True}

def test_a_copy_and_a_kernel() -> None:
  def act(waits: bool) -> Callable[[Bench], None]:
    def run(b: Bench) -> None:
      b.copies.submit(b.copy(b.data, b.staging), b.fence())
      b.compute.submit(b.p.wait(b.signal.address, 1) if waits else [], b.kernel(False))
    return run
  assert races(act(True)) == {False} and races(act(False)) == {True}

def test_a_kernel_and_a_copy() -> None:
  def act(waits: bool) -> Callable[[Bench], None]:
    def run(b: Bench) -> None:
      b.compute.submit(b.kernel(True), b.p.release(b.signal.address, 1))
      b.copies.submit(b.poll() if waits else [], b.copy(b.staging, b.data))
    return run
  assert races(act(True)) == {False} and True in races(act(False))

def test_what_the_program_has_seen_goes_with_its_doorbell() -> None:
  def act(looks: bool) -> Callable[[Bench], None]:
    def run(b: Bench) -> None:
      b.copies.submit(b.copy(b.data, b.staging), b.fence())
      b.p.settle()
      if looks: assert b.signal.mapping.load32(0) == 1
      b.compute.submit(b.kernel(False))
    return run
  assert races(act(True)) == {False}
  assert races(act(False)) == {True}, "it was done, but nobody could know"

def test_copies_of_one_queue_are_in_order() -> None:
  def run(b: Bench) -> None: b.copies.submit(b.copy(b.data, b.staging), b.copy(b.staging, b.data))
  assert races(run) == {False}

def test_a_queue_that_is_destroyed_leaves_no_rivals() -> None:
  def run(b: Bench) -> None:
    b.copies.submit(b.copy(b.data, b.staging))
    b.p.settle()
    b.p.destroy(b.copies)
    b.compute.submit(b.kernel(False))
  assert races(run) == {False}

def test_atomics_add_what_is_known() -> None:
  order = Order()
  first, second, reader = (Agent(order) for _ in range(3))
  for agent in (first, second):
    agent.learn(agent.begin(Races(), "a task"))
    agent.publish(64, 4, keep=True)
  reader.observe(64, 4)
  assert reader.known == first.known | second.known == 3
  first.publish(64, 4)
  reader.known = 0
  reader.observe(60, 8)
  assert reader.known == 1

def test_what_all_know_is_forgotten() -> None:
  order = Order()
  agent = Agent(order)
  agent.idle = False
  for _ in range(500):
    agent.learn(agent.begin(Races(), "a task"))
    order.host.learn(agent.started)
  assert len(order.live) < 100 and not any(races.rivals for races in order.live)

def test_pieces_of_copies() -> None:
  copied = Copied()
  copied.pieces = {True: [(100, 200)], False: [(4096, 5000)]}
  assert [copied.touched(0, 150, 300, True), copied.touched(0, 200, 300, True),
          copied.touched(0, 0, 4096, False)] == [0, None, None]
  assert copied.touched(0, 4096, 4106, False) == 0
  copied.forget(4096, 4096)
  assert copied.pieces == {True: [(100, 200)], False: []}
