"""tinyhw/emulator/amd/card/queues.py: each rule of queue creation and of doorbells, and its refusal."""
import errno
from collections.abc import Callable
from typing import Any

import pytest

from test.support.amd.virtual import AQL, COMPUTE, DEVICE_MEMORY, PAGE, SDMA, Program, Ring
from tinyhw.autogen.amd import kfd_ioctl as kfd
from tinyhw.autogen.amd import pm4
from tinyhw.drivers.linux.files import MAP_SHARED, READ_WRITE
from tinyhw.emulator.errors import DoorbellError
from tinyhw.emulator.files import ENOTSUPP

Change = Callable[[Any, list[Any], Program], Any]
RULES: dict[str, tuple[int, str, Change]] = {
  "ring_size is a power of two": (errno.EINVAL, "power of two", lambda r, a, p: setattr(r, "ring_size", 3 * PAGE)),
  "the ring is one mapping of its size": (errno.EINVAL, "the ring", lambda r, a, p: setattr(r, "ring_size", 2 * PAGE)),
  "the ring begins its mapping": (errno.EINVAL, "the ring", lambda r, a,
                                  p: setattr(r, "ring_base_address", r.ring_base_address + 256)),
  "the ring is mapped": (errno.EINVAL, "nothing is mapped", lambda r, a, p: p.unmap(a[0].handle)),
  "the write pointer is mapped": (errno.EINVAL, "write pointer's page", lambda r, a, p: p.unmap(a[1].handle)),
  "the read pointer is mapped": (errno.EINVAL, "read pointer's page", lambda r, a, p: p.unmap(a[2].handle)),
  "a pointer's page is a mapping of one page": (errno.EINVAL, "pointer's page", lambda r, a,
                                                p: setattr(r, "read_pointer_address",
                                                           p.allocate(2 * PAGE).address)),
  "a pointer's page begins its mapping": (errno.EINVAL, "pointer's page", lambda r, a,
                                          p: setattr(r, "write_pointer_address",
                                                     p.allocate(2 * PAGE).address + PAGE)),
  "the end-of-pipe buffer has its size": (errno.EINVAL, "end-of-pipe", lambda r, a,
                                          p: setattr(r, "eop_buffer_size", 2 * PAGE)),
  "the end-of-pipe buffer is its own mapping": (errno.EINVAL, "end-of-pipe", lambda r, a,
                                                p: setattr(r, "eop_buffer_address",
                                                           p.allocate(4 * PAGE).address)),
  "the control stack's size is exact": (errno.EINVAL, "control stack", lambda r, a,
                                        p: setattr(r, "ctl_stack_size", r.ctl_stack_size + PAGE)),
  "the save area is large enough": (errno.EINVAL, "save area", lambda r, a,
                                    p: setattr(r, "ctx_save_restore_size", r.ctx_save_restore_size - 1)),
  "the save area's mapping is exact": (errno.EINVAL, "save area", lambda r, a, p: setattr(r, "ctx_save_restore_size",
                                                                                          r.ctx_save_restore_size
                                                                                          + PAGE)),
  "percent": (errno.EINVAL, "100 percent", lambda r, a, p: setattr(r, "queue_percentage", 101)),
  "priority": (errno.EINVAL, "above 15", lambda r, a, p: setattr(r, "queue_priority", 16)),
  "addresses of the program": (errno.EFAULT, "no address of the program", lambda r, a,
                               p: setattr(r, "read_pointer_address", 1 << 63)),
  "type": (ENOTSUPP, "queue type 9", lambda r, a, p: setattr(r, "queue_type", 9)),
  "GPU": (errno.EINVAL, "no GPU", lambda r, a, p: setattr(r, "gpu_id", 1)),
}

@pytest.mark.parametrize("name", RULES)
def test_rules_of_creation(name: str) -> None:
  program = Program()
  request, areas = program.request()
  number, message, change = RULES[name]
  change(request, areas, program)
  with pytest.raises(OSError, match=message) as caught: program.call(request)
  assert caught.value.errno == number and not program.computer.queues.queues
  program.call(program.request()[0])

@pytest.mark.parametrize("card", ("gfx1100", "gfx1200", "gfx942"))
@pytest.mark.parametrize("kind", (COMPUTE, AQL, SDMA))
def test_queues_that_are_right_are_made(card: str, kind: int) -> None:
  program = Program(card)
  queue = program.queue(kind)
  assert len(program.computer.queues.queues) == 1
  program.destroy(queue)
  assert program.close() == {}

def test_a_gpu_without_an_address_space() -> None:
  program = Program(count=2)
  request, _ = program.request()
  request.gpu_id = program.computer.gpus[1].gpu_id
  with pytest.raises(OSError, match="ACQUIRE_VM") as caught: program.call(request)
  assert caught.value.errno == errno.ESRCH

def test_buffers_of_a_queue_stay_mapped() -> None:
  program = Program()
  queue = program.queue()
  for area in queue.areas:
    with pytest.raises(OSError, match="a queue needs") as caught: program.unmap(area.handle)
    assert caught.value.errno == errno.EBUSY
    with pytest.raises(OSError, match="is mapped") as caught: program.call(kfd.FreeMemoryOfGpu(handle=area.handle))
    assert caught.value.errno == errno.EBUSY
  program.destroy(queue)
  assert program.close() == {}

def test_copy_engines_have_so_many_queues() -> None:
  program = Program("gfx1200")
  chip = program.gpu.chip
  for _ in range(chip.sdma_engines * chip.sdma_queues): program.queue(SDMA)
  engines = [queue.engine for queue in program.computer.queues.queues.values()]
  assert [engines.count(engine) for engine in range(chip.sdma_engines)] == [chip.sdma_queues] * chip.sdma_engines
  with pytest.raises(OSError, match="no more SDMA queues") as caught: program.queue(SDMA)
  assert caught.value.errno == errno.ENOMEM

def test_the_older_shorter_structure_works() -> None:
  program = Program()
  request, _ = program.request()
  program.kfd.ioctl(0xC0584B02, request)  # 88 bytes, as before interface 1.17
  assert request.doorbell_offset >> 62 == 3

def test_doorbells_are_mapped_as_a_slice() -> None:
  program = Program()
  queue = program.queue()
  offset = queue.request.doorbell_offset
  assert offset >> 62 == 3 and offset >> 46 & 0xFFFF == program.gpu.gpu_id and offset & 0x1FFF == queue.doorbell
  for length in (PAGE, 4 * PAGE):
    with pytest.raises(OSError, match="doorbells are mapped") as caught:
      program.kfd.mmap(length, offset & ~0x1FFF, 0, READ_WRITE, MAP_SHARED)
    assert caught.value.errno == errno.EINVAL

# **** doorbells ****

def rung(queue: Ring, pointer: int, doorbell: int) -> None:
  queue.write.mapping.store64(0, pointer)
  queue.program.doorbells.store64(queue.doorbell, doorbell)

NOPS = [pm4.NOP_WORD] * 4
DOORBELL_RULES: dict[str, tuple[str, Callable[[Program, Ring], None]]] = {
  "before the write pointer": ("store the write pointer first", lambda program,
                               queue: program.doorbells.store64(queue.doorbell, 4)),
  "in bytes": ("in dwords", lambda program, queue: rung(queue, 4, 16)),
  "of nobody": ("that of no queue", lambda program, queue: program.doorbells.store64((queue.doorbell + 8) % 8192, 4)),
  "32 bits": ("one store of 64 bits", lambda program, queue: program.doorbells.store32(queue.doorbell, 4)),
  "backwards": ("never go back", lambda program, queue: (rung(queue, 4, 4), program.settle(), rung(queue, 2, 2))),
  "overwritten": ("packets were overwritten", lambda program, queue: rung(queue, 1025, 1025)),
}

@pytest.mark.slow
@pytest.mark.parametrize("name", DOORBELL_RULES)
def test_rules_of_doorbells(name: str) -> None:
  program = Program()
  queue = program.queue()
  for i in range(1024): queue.ring.mapping.store32(4 * i, pm4.NOP_WORD)
  message, act = DOORBELL_RULES[name]
  with pytest.raises(DoorbellError, match=message): act(program, queue)

def test_nothing_runs_without_a_doorbell() -> None:
  program = Program()
  queue, signal = program.queue(), program.allocate(PAGE)
  queue.put(program.release(signal.address, 1))
  queue.write.mapping.store64(0, queue.count)
  program.settle()
  assert signal.mapping.load64(0) == 0
  queue.ring_doorbell()
  program.settle()
  assert signal.mapping.load64(0) == 1

def test_a_queue_without_a_share_rests_until_it_gets_one() -> None:
  program = Program()
  queue, signal = program.queue(queue_percentage=0), program.allocate(PAGE)
  queue.submit(program.release(signal.address, 1))
  program.settle()
  assert signal.mapping.load64(0) == 0
  update = kfd.UpdateQueue(ring_base_address=queue.ring.address, queue_id=queue.request.queue_id,
                           ring_size=queue.ring.size, queue_percentage=100)
  program.call(update)
  program.settle()
  assert signal.mapping.load64(0) == 1

@pytest.mark.parametrize("change", [{"queue_percentage": 200}, {"queue_priority": 99}, {"ring_size": 4097},
                                    {"ring_base_address": 4096},
                                    {"queue_id": 77}])
def test_updates_that_are_refused(change: dict[str, int]) -> None:
  program = Program()
  queue = program.queue()
  update = {"ring_base_address": queue.ring.address, "queue_id": queue.request.queue_id, "ring_size": queue.ring.size,
            "queue_percentage": 100}
  with pytest.raises(OSError) as caught: program.call(kfd.UpdateQueue(**update | change))
  assert caught.value.errno == errno.EINVAL

def test_an_update_gives_another_ring() -> None:
  program = Program()
  queue, other = program.queue(), program.allocate(2 * PAGE, DEVICE_MEMORY)
  program.call(kfd.UpdateQueue(ring_base_address=other.address, queue_id=queue.request.queue_id, ring_size=other.size,
                               queue_percentage=100))
  program.unmap(queue.ring.handle)
  with pytest.raises(OSError, match="a queue needs"): program.unmap(other.handle)

def test_destroying_drops_the_work() -> None:
  program = Program()
  queue, signal = program.queue(), program.allocate(PAGE)
  queue.submit(program.wait(signal.address, 1), program.release(signal.address, 2))
  program.settle()
  program.destroy(queue)
  signal.mapping.store64(0, 1)
  program.settle()
  assert signal.mapping.load64(0) == 1 and not program.computer.scheduler.actors
  with pytest.raises(OSError, match="no queue"): program.call(kfd.DestroyQueue(queue_id=queue.request.queue_id))

# **** two processes ****

@pytest.mark.slow
def test_the_queues_of_copy_engines_are_the_cards() -> None:
  one = Program("gfx1200")
  other = Program(beside=one)
  count = one.gpu.chip.sdma_engines * one.gpu.chip.sdma_queues
  queues = [(program, program.queue(SDMA)) for program in [one, other] * (count // 2)]
  for program in (one, other):
    with pytest.raises(OSError, match="no more SDMA queues") as caught: program.queue(SDMA)
    assert caught.value.errno == errno.ENOMEM
    program.queue()
  queues[0][0].destroy(queues[0][1])
  other.queue(SDMA)

def test_a_card_has_so_many_queues(monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setattr("tinyhw.emulator.amd.card.queues.MOST_OF_CARD", 3)
  one = Program(count=2)
  other = Program(beside=one)
  for program in (one, other, one): program.queue()
  with pytest.raises(OSError, match="at most 3 queues") as caught: other.queue()
  assert caught.value.errno == errno.EPERM
  one.computer.kill()
  other.queue()

def test_doorbells_ring_the_queues_of_their_own_process_only() -> None:
  one = Program()
  other = Program(beside=one)
  mine, theirs, signal = one.queue(), other.queue(), other.allocate(PAGE)
  theirs.put(other.release(signal.address, 1))
  theirs.write.mapping.store64(0, theirs.count)
  if mine.doorbell != theirs.doorbell:
    with pytest.raises(DoorbellError, match="that of no queue"): one.doorbells.store64(theirs.doorbell, theirs.count)
  one.settle()
  assert signal.mapping.load64(0) == 0
  theirs.ring_doorbell()
  one.settle()
  assert signal.mapping.load64(0) == 1
