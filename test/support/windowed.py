"""A processor of four lanes and its memory, with all that windows have looked at: for tests of loads and stores of
translated code."""
from __future__ import annotations
from array import array

from tinyhw.emulator.memory.cache import LINE
from tinyhw.emulator.memory.windows import MemoryWindow, Windows
from tinyhw.emulator.native import threaded
from tinyhw.emulator.native.records import Records, ScalarAccess, VectorAccess
from tinyhw.emulator.native.threaded import AT, CONTEXT_BYTES, Exit

START, SIZE = 0x10000, 1024
LANES = 4

class Machine:
  """Four lanes: word 0 to 3 of the state are addresses, 4 and on data.

  Memory of SIZE bytes with all that may be looked at.
  """
  def __init__(self, **more: int):
    self.state, self.context = array("I", [0] * 64), array("q", bytes(CONTEXT_BYTES))
    self.data, self.written = array("B", [i & 0xff for i in range(SIZE)]), array("B", [1] * SIZE)
    self.held = [array("B", bytes(SIZE // LINE)) for _ in range(3)]
    self.seen, self.dirty = array("B", bytes(SIZE // LINE)), array("B", bytes(SIZE // LINE))
    self.readers, self.writers = array("H", [0] * SIZE), array("H", [0] * SIZE)
    def at(memory: array[int], shift: int = 0, double: int = 1) -> int:
      return memory.buffer_info()[0] - (START >> shift) * double
    fields = dict(data=at(self.data), written=at(self.written), marked=at(self.written), writable=1,
                  held0=at(self.held[0], 7), own=3,
                  held1=at(self.held[1], 7), held2=at(self.held[2], 7), seen=at(self.seen, 7), dirty=at(self.dirty, 7),
                  readers=at(self.readers, double=2), writers=at(self.writers, double=2), mark=9 * 0x1000100010001)
    self.table = Windows()
    self.table.add(MemoryWindow(START, START + SIZE, **{**fields, **more}))
    for name, value in (("STATE", self.state.buffer_info()[0]), ("ACTIVE", 0xf), ("ALL", 0xf),
                        ("VECTOR_WINDOWS", self.table.address),
                        ("SCALAR_WINDOWS", self.table.address)): self.context[AT[name]] = value

  def run(self, function: str, addresses: list[int], count: int = 1, base: int = -1, unaligned: int = 0) -> bool:
    """Whether the access was plain."""
    self.state[:LANES] = array("I", addresses)
    return self.executes(function, VectorAccess(0, 0, base, 0, data=16, row=16, words=count, unaligned=unaligned))

  def executes(self, function: str, operands: VectorAccess | ScalarAccess) -> bool:
    """Whether a record of the function was plain: the loop came to what stands behind it."""
    loop = threaded.engine()
    assert loop is not None
    records = Records(loop.functions)
    records.steer(function, *operands)
    records.link()
    records.done()
    self.context[AT["RECORD"]] = records.address
    return loop.run(self.context.buffer_info()[0]) == Exit.LINK

  def words(self, count: int = LANES) -> list[int]: return self.state[4:4 + count].tolist()

def word(at: int) -> int: return sum((at + i & 0xff) << 8 * i for i in range(4))
