"""The copy engine. It reads a ring of SDMA packets in order, and completes each before the next.

Pointers count bytes and never wrap. A packet may not cross the end of the ring. A packet that starts an indirect buffer
must end at a multiple of 8 words. Large copies are done in pieces, between which other actors move.
"""
from __future__ import annotations
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from tinyhw.autogen.amd import pm4, sdma
from tinyhw.emulator.amd.card.pm4 import COMPARE, HISTORY
from tinyhw.emulator.amd.card.port import LEVELS
from tinyhw.emulator.checks.races import Copied, Races
from tinyhw.emulator.errors import EmulatorError, PacketError, PageFault
from tinyhw.emulator.memory.memory import ENGINE
from tinyhw.emulator.schedule import Actor

if TYPE_CHECKING:
  from tinyhw.emulator.amd.card.queues import HardwareQueue

PACKETS = {4: sdma.V4, 6: sdma.V6, 7: sdma.V7}
PIECE = 1 << 16          # bytes of a copy in a step
LONGEST = 64             # words that are read ahead to find the length of a packet
ATOMIC_ADD_64 = 47       # ATOMIC: atomic_op; ROCR, amd_blit_sdma
FILL_WIDTH = {sdma.FILL_BYTE: 1, sdma.FILL_WORD: 4}

class Engine:
  """The processor of an SDMA queue."""
  def __init__(self, queue: HardwareQueue):
    self.queue, self.gpu = queue, queue.gpu
    self.packets = PACKETS[self.gpu.chip.copies]
    self.port = self.gpu.engine_port(f"the copy engine of {queue.name}")
    self.agent = self.port.agent = queue.agent()
    self.random = self.gpu.computer.scheduler.random
    self.consumed = self.reported = 0                       # bytes
    self.words: list[int] = []                              # of an indirect buffer
    self.at = 0
    self.work: deque[Callable[[], object]] = deque()          # pieces of the current packet
    self.blocked: Callable[[], bool] | None = None
    self.log: deque[str] = deque(maxlen=HISTORY)
    self.actions: dict[str, Callable[[dict[str, Any]], None]] = {
      "NOP": lambda fields: None, "COPY_LINEAR": self._copy, "WRITE_UNTILED": self._write, "INDIRECT": self._indirect,
      "FENCE": self._fence,
      "TRAP": self._trap, "POLL_REGMEM": self._poll, "CONSTANT_FILL": self._fill, "TIMESTAMP_GET": self._timestamp,
      "TIMESTAMP_GET_GLOBAL": self._timestamp, "ATOMIC": self._atomic, "COND_EXE": self._condition,
      "GCR_REQ": self._caches}

  # **** progress ****

  def step(self) -> bool:
    """Advance by a packet, or a piece of one."""
    if not self.queue.active: return False
    try: return self._step()
    except PageFault as fault:
      self.gpu.page_fault(fault, f"{self.port.who} (last packets: {', '.join(self.log)})")
      return True
    except EmulatorError as error:
      self.queue.stopped = str(error)
      raise

  def _step(self) -> bool:
    """Do the first of these that is possible: a piece of a copy, a poll, an indirect buffer, the next packet.

    Return whether anything was done.
    """
    if self.work:
      self.work.popleft()()
      return True
    if self.blocked is not None:
      if not self.blocked(): return self._report()
      self.blocked = None
      return True
    if self.words:
      size = self._execute(self.words[self.at:])
      self.at += size
      if self.at >= len(self.words): self.words, self.at = [], 0
      return True
    if self.consumed < self.queue.rung and (self.reported == self.consumed or self.random.random() < 0.75):
      self.queue.look(self.agent)
      self.consumed += 4 * self._execute(self._ring_words())
      self.queue.consumed = self.consumed
      return True
    self.agent.idle = self.consumed == self.queue.rung
    return self._report()

  def _ring_words(self) -> Sequence[int]:
    """Return the words up to the write pointer or the ring's end."""
    start = self.consumed % self.queue.ring_size
    if self.queue.rung % 4:
      raise PacketError(f"{self.queue.name}: the write pointer {self.queue.rung:#x} is in the midst of a word")
    there = min(self.queue.rung - self.consumed, self.queue.ring_size - start)
    head = memoryview(self.port.load(self.queue.ring + start, min(there, 4 * LONGEST), ENGINE)).cast("I").tolist()
    packet = self.packets.opcodes.get((head[0] & 0xFF, head[0] >> 8 & 0xFF))
    count = len(head) if packet is None else packet.size(head)
    if 4 * count <= there:
      return memoryview(self.port.load(self.queue.ring + start, 4 * count, ENGINE)).cast("I").tolist()
    if there == self.queue.ring_size - start:
      raise self._error(f"a packet of {count} words goes over the end of the ring; fill up with NOPs before it")
    return head

  def _report(self) -> bool:
    if self.reported == self.consumed: return False
    self.reported = self.consumed
    self.port.store(self.queue.read_pointer, self.consumed.to_bytes(8, "little"), ENGINE)
    return True

  def _execute(self, words: Sequence[int]) -> int:
    try: packet, fields, size = self.packets.read(words)
    except ValueError as error:
      raise self._error(f"{error}; words: {' '.join(f'{word:08x}' for word in words[:8])}") from error
    self.log.append(packet.name)
    action = self.actions.get(packet.name)
    if action is None: raise self._error(f"{packet.name} is not emulated")
    try: action(fields)
    except PacketError as error: raise self._error(f"{packet.name}: {error.message}") from error
    return size

  def _error(self, text: str) -> PacketError:
    return PacketError(f"{self.queue.name}: {text}\n  the last packets: {', '.join(self.log)}")

  # **** packets ****

  def _copy(self, fields: dict[str, Any]) -> None:
    if fields.get("encrypt") or fields["tmz"] or fields.get("backwards") or fields["broadcast"]:
      raise PacketError(f"{fields} is not emulated")
    size, source, target = fields["count"] + 1, fields["src_addr"], fields["dst_addr"]
    races = Copied()
    task = self.agent.begin(races, f"a copy of {size} bytes by {self.port.who}")
    for start in range(0, size, PIECE):
      self.work.append(partial(self._piece, races, source + start, target + start, min(PIECE, size - start)))
    self.work[-1] = partial(self._last_piece, self.work[-1], task)

  def _piece(self, races: Races, source: int, target: int, size: int) -> None:
    """Copy a piece."""
    self.port.races = races if self.gpu.computer.order is not None else None
    try: self.port.copy(source, target, size)
    finally: self.port.races = None

  def _last_piece(self, piece: Callable[[], object], task: int) -> None:
    piece()
    self.agent.learn(task)

  def _write(self, fields: dict[str, Any]) -> None:
    if fields["encrypt"] or fields["tmz"] or fields["sw"]: raise PacketError(f"{fields} is not emulated")
    if fields["dst_addr"] % 4: raise PacketError(f"words at {fields['dst_addr']:#x}: align the address")
    self.port.store(fields["dst_addr"], b"".join(word.to_bytes(4, "little") for word in fields["data"]), ENGINE)

  def _fill(self, fields: dict[str, Any]) -> None:
    """Fill memory. COUNT is in bytes, and one unit less than the filled size."""
    width = FILL_WIDTH.get(fields["fillsize"])
    if width is None or fields["sw"]: raise PacketError(f"{fields} is not emulated")
    size = fields["count"] + width
    if size % width or fields["dst_addr"] % width:
      raise PacketError(f"{size} bytes at {fields['dst_addr']:#x} are no whole units of {width}")
    pattern = (fields["data"] & ((1 << width * 8) - 1)).to_bytes(width, "little")
    for start in range(0, size, PIECE):
      self.work.append(partial(self.port.store, fields["dst_addr"] + start,
                               pattern * (min(PIECE, size - start) // width), ENGINE))

  def _fence(self, fields: dict[str, Any]) -> None:
    if fields["addr"] % 4: raise PacketError(f"a fence at {fields['addr']:#x}: align the address to 4")
    self.work.append(lambda: self.port.store(fields["addr"], fields["data"].to_bytes(4, "little"), ENGINE))

  def _trap(self, fields: dict[str, Any]) -> None:
    self.work.append(lambda: self.gpu.computer.events.interrupt(fields["int_context"]))

  def _timestamp(self, fields: dict[str, Any]) -> None:
    if fields["write_addr"] % 8: raise PacketError(f"a timestamp at {fields['write_addr']:#x}: align the address to 8")
    self.work.append(lambda: self.port.store(fields["write_addr"], self.gpu.clock().to_bytes(8, "little"), ENGINE))

  def _poll(self, fields: dict[str, Any]) -> None:
    if fields["hdp_flush"]: self.gpu.host_writes.flush()
    if not fields["mem_poll"]:
      if not fields["hdp_flush"]: raise PacketError("a poll of a register is not emulated")
      return
    if fields["retry_count"] != sdma.RETRY_FOREVER:
      raise PacketError("RETRY_COUNT 0xfff polls for ever; what happens after fewer is not emulated")
    compare, address, mask, value = COMPARE.get(fields["func"]), fields["addr"], fields["mask"], fields["value"]
    if compare is None or address % 4: raise PacketError(f"function {fields['func']} at {address:#x}")
    self.port.load(address, 4, ENGINE)
    self.blocked = lambda: compare(int.from_bytes(self.port.load(address, 4, ENGINE), "little") & mask, value)

  def _atomic(self, fields: dict[str, Any]) -> None:
    if fields["atomic_op"] != ATOMIC_ADD_64 or fields["loop"]:
      raise PacketError(f"operation {fields['atomic_op']} is not emulated")
    if fields["addr"] % 8: raise PacketError(f"an atomic operation at {fields['addr']:#x}: align the address to 8")
    self.work.append(partial(self.port.atomic, fields["addr"], 8, lambda word: word + fields["src_data"], ENGINE))

  def _condition(self, fields: dict[str, Any]) -> None:
    """Skip words if memory does not have the reference value."""
    if not self.words: raise PacketError("COND_EXE is emulated in indirect buffers only")
    if int.from_bytes(self.port.load(fields["addr"], 4, ENGINE), "little") != fields["reference"]:
      self.at += fields["exec_count"]

  def _caches(self, fields: dict[str, Any]) -> None:
    """GCR_REQ: maintain the caches of the graphics block, for all of memory or for lines of it."""
    control = fields["gcr_control_15_0"] | fields["gcr_control_18_16"] << 16
    flags = self.gcr_fields(control)
    coherence = self.gpu.computer.coherence
    if coherence is None: return
    for xcc in self.gpu.xccs:
      if flags["gl2_wb"]: coherence.write_back(xcc.dirty)
      for name, level in LEVELS.items():
        if flags[level.flags[10].lower()]: xcc.forget(name)

  @staticmethod
  def gcr_fields(control: int) -> dict[str, int]:
    """Return the flags of GCR_CNTL. They are those of ACQUIRE_MEM's last word."""
    packet = pm4.GFX10.ACQUIRE_MEM
    return {field.name: control >> field.low & field.mask for field in packet.fields.values()
            if field.word == packet.words - 1}

  def _indirect(self, fields: dict[str, Any]) -> None:
    if self.words: raise PacketError("an indirect buffer in an indirect buffer")
    if fields["vmid"] or fields.get("priv"): raise PacketError("VMID and PRIV are 0 in a user queue")
    if fields["ib_base"] % 32 or not fields["ib_size"]:
      raise PacketError(f"{fields['ib_size']} words at {fields['ib_base']:#x}: align the address to 32")
    end = self.consumed // 4 + 6
    if end % sdma.INDIRECT_ALIGNMENT:
      raise PacketError(f"it ends at word {end} of the ring, not at a multiple of {sdma.INDIRECT_ALIGNMENT}; put NOPs "
                        f"before it")
    self.words, self.at = memoryview(self.port.load(fields["ib_base"], 4 * fields["ib_size"],
                                                    ENGINE)).cast("I").tolist(), 0

def processors(queue: HardwareQueue) -> list[Actor]:
  """Return the actors of an SDMA queue."""
  return [Engine(queue)]
