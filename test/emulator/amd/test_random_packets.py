"""Random packets. Any content of a ring is executed, refused with an EmulatorError, or a fault of the GPU. Nothing else
happens."""
import random
from typing import Any

import pytest

from test.support.amd.virtual import AQL, COMPUTE, PAGE, SDMA, Program, Ring, kernels, nothing
from tinyhw.autogen.amd import hsa
from tinyhw.emulator.errors import EmulatorError

PACKETS = 40  # of a ring

class Random:
  """Packets of the tables. A field is random, or likely to be right."""
  def __init__(self, card: str, seed: int):
    self.source, self.program = random.Random(seed), Program(card, seed=seed)
    kernels(self.program.computer, {0x1000: nothing})
    self.area = self.program.allocate(4 * PAGE)
    for offset in range(0, self.area.size, 4):
      self.area.mapping.store32(offset, self.source.choice([0, 1, 0xFFFF1000, self.source.getrandbits(32)]))

  def number(self, name: str, mask: int) -> int:
    source = self.source
    if "addr" in name or name in ("src", "dst", "ib_base"):
      value = self.area.address + source.choice([0, 64, 256, 1024, 2 * PAGE, 3, 1 << 20])
    else: value = source.choice([0, 0, 1, 1, 2, 3, 4, 5, 7, 16, 64, 255, 0x14, mask, source.getrandbits(32)])
    return value & mask

  def packet(self, table: Any) -> list[int]:
    """Return one of a table's packets."""
    layout = self.source.choice(list(table.rows.values()))
    free = [field for field in layout.fields.values() if field.fixed is None and self.source.random() < 0.8]
    fields: dict[str, Any] = {field.name: self.number(field.name, field.mask) for field in free}
    if layout.rest: fields[layout.rest] = [self.source.getrandbits(32) for _ in range(self.source.randint(0, 4))]
    words: list[int] = layout(**fields)
    if self.source.random() < 0.1: words[self.source.randrange(len(words))] ^= 1 << self.source.randrange(32)
    return words

  def run(self, queue: Ring) -> str:
    """Run packets, and return how the run ends."""
    try: self.program.settle()
    except EmulatorError as error:
      assert error.message
      return "refused"
    assert not self.program.gpu.work
    return ("fault" if self.program.gpu.stopped else "done"
            if queue.program.computer.queues.queues[queue.request.queue_id].consumed else "waits")

@pytest.mark.slow
@pytest.mark.parametrize("card", ["gfx1100", "gfx1200", "gfx942"])
def test_rings_of_words(card: str) -> None:
  ends = set()
  for seed in range(40):
    it = Random(card, seed)
    kind = it.source.choice([COMPUTE, SDMA])
    queue = it.program.queue(kind)
    for _ in range(it.source.randint(1, PACKETS)):
      if kind == COMPUTE and it.source.random() < 0.2:
        queue.put([*it.program.kernel_registers(), *it.program.dispatch(3)])
      queue.put(it.packet(it.program.packets if kind == COMPUTE else it.program.copies))
      if queue.count > 3000: break
    try: queue.ring_doorbell()
    except EmulatorError: continue  # some were done at once
    ends.add(it.run(queue))
  assert {"refused", "fault"} <= ends

@pytest.mark.parametrize("card", ["gfx1200", "gfx942"])
def test_rings_of_aql_packets(card: str) -> None:
  ends = set()
  for seed in range(40):
    it = Random(card, seed)
    queue = it.program.queue(AQL)
    for slot in range(4):
      for word in range(16):
        value = it.source.choice([0, 0, 1, 1, 64, it.area.address & 0xFFFFFFFF, it.number("", 0xFFFFFFFF)])
        queue.ring.mapping.store32(64 * slot + 4 * word, value)
      header = hsa.HEADER(type=it.source.randrange(6), barrier=it.source.getrandbits(1),
                          acquire_fence_scope=it.source.randrange(4))
      queue.ring.mapping.store32(64 * slot, header | it.source.choice([0, 1, 2]) << 16)
    queue.areas[1].mapping.store64(hsa.Queue.write_dispatch_id.offset, 4)
    try: it.program.doorbells.store64(queue.doorbell, 3)
    except EmulatorError: continue
    ends.add(it.run(queue))
  assert "refused" in ends
