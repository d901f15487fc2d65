"""The command processor that reads PM4: rings, indirect buffers, and the effects of their packets.

It runs ahead of the grids that it starts: a dispatch or an end-of-pipe write is only begun by its packet. RELEASE_MEM
acts when the dispatches before it have ended. CS_PARTIAL_FLUSH waits for them. No other packet waits for dispatches.
ACQUIRE_MEM acts at once. The read pointer is written back now and then, as 32 bits that wrap at the ring's size.
Packets, fields and registers that autogen's tables do not have are refused. So are values that are not emulated.
"""
from __future__ import annotations
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from tinyhw.autogen.amd import pm4
from tinyhw.emulator.amd.card.dispatch import Dispatch, ComputeRegisters, start_of_registers
from tinyhw.emulator.errors import EmulatorError, PacketError, PageFault
from tinyhw.emulator.memory.cache import lines_between
from tinyhw.emulator.memory.memory import ENGINE
from tinyhw.emulator.schedule import Actor
from tinyhw.named_tuple import NamedTuple

if TYPE_CHECKING:
  from tinyhw.emulator.amd.card.port import Xcc
  from tinyhw.emulator.amd.card.queues import HardwareQueue

PACKETS = {9: pm4.GFX9, 10: pm4.GFX10}
DEEPEST = 2                     # indirect buffers in indirect buffers
COMPARE: dict[int, Callable[[int, int], bool]] = {
  pm4.ALWAYS: lambda a, b: True, pm4.LESS: lambda a, b: a < b, pm4.LESS_EQUAL: lambda a, b: a <= b, pm4.EQUAL: lambda a,
  b: a == b,
  pm4.NOT_EQUAL: lambda a, b: a != b, pm4.GREATER_EQUAL: lambda a, b: a >= b, pm4.GREATER: lambda a, b: a > b}
BOTTOM_OF_PIPE_TS, CS_DONE = 0x28, 0x2F
END_OF_PIPE_EVENTS = {pm4.CACHE_FLUSH_AND_INV_TS_EVENT: pm4.EVENT_INDEX_END_OF_PIPE,
                      BOTTOM_OF_PIPE_TS: pm4.EVENT_INDEX_END_OF_PIPE,
                      CS_DONE: pm4.EVENT_INDEX_SHADER_DONE}
ATOMIC_ADD_32, ATOMIC_ADD_64 = 0x0F, 0x2F  # ATOMIC_MEM: atomic; TC_OP_ATOMIC_ADD_RTN_32 and _64 of Linux, vega10_enum.h
HISTORY = 16                    # packets that are kept for messages

class CacheAction(NamedTuple):
  """A flag of ACQUIRE_MEM or RELEASE_MEM: the caches that it invalidates, or the L2 that it writes back."""
  flag: str
  cache: str                    # of port.LEVELS, or "dirty"

ACQUIRE_ACTIONS = {
  9: (CacheAction("tc_wb_action_ena", "dirty"), CacheAction("tcl1_action_ena", "vector"),
      CacheAction("tc_action_ena", "last"),
      CacheAction("sh_kcache_action_ena", "scalar"), CacheAction("sh_icache_action_ena", "instruction")),
  10: (CacheAction("gl2_wb", "dirty"), CacheAction("glv_inv", "vector"), CacheAction("gl1_inv", "first"),
       CacheAction("gl2_inv", "last"),
       CacheAction("glk_inv", "scalar"), CacheAction("gli_inv", "instruction"))}
RELEASE_ACTIONS = {
  9: (CacheAction("tc_wb_action_en", "dirty"), CacheAction("tcl1_action_en", "vector"),
      CacheAction("tc_action_en", "last")),
  10: (CacheAction("gl2_wb", "dirty"), CacheAction("glv_inv", "vector"), CacheAction("gl1_inv", "first"),
       CacheAction("gl2_inv", "last"))}

class Cursor:
  """Words that are being read, and the position in them."""
  def __init__(self, words: Sequence[int]): self.words, self.at = words, 0

class EndOfPipe(NamedTuple):
  """An action for the time when these dispatches have ended."""
  after: tuple[Dispatch, ...]
  act: Callable[[], None]

class Executor:
  """Executor of packets on one XCC: the common part of rings and AQL queues.

  part of parts: the workgroups of a grid that this XCC runs. log: the last packets, for messages.
  """
  def __init__(self, queue: HardwareQueue, xcc: Xcc, part: int = 0, parts: int = 1):
    self.queue, self.gpu, self.xcc, self.part, self.parts = queue, queue.gpu, xcc, part, parts
    self.packets = PACKETS[self.gpu.chip.packets]
    self.registers = ComputeRegisters(self.gpu)
    self.port = self.gpu.engine_port(f"the command processor of {queue.name}")
    self.agent = self.port.agent = queue.agent()
    self.random = self.gpu.computer.scheduler.random
    self.cursors: list[Cursor] = []                 # of indirect buffers
    self.running: list[Dispatch] = []
    self.ends: deque[EndOfPipe] = deque()
    self.blocked: Callable[[], bool] | None = None  # a wait: returns True when it is over
    self.phase = self.groups = 0                    # number of waits so far; workgroups that were started since
    self.skipped = 0                                # number of next words to skip
    self.log: deque[str] = deque(maxlen=HISTORY)
    self.actions: dict[str, Callable[[dict[str, Any]], None]] = {
      "NOP": lambda fields: None, "SET_SH_REG": self._set_registers, "SET_UCONFIG_REG": self._set_uconfig,
      "ACQUIRE_MEM": self._acquire,
      "RELEASE_MEM": self._release, "WAIT_REG_MEM": self._wait, "WAIT_REG_MEM64": self._wait_64,
      "WRITE_DATA": self._write_data,
      "COPY_DATA": self._copy_data, "EVENT_WRITE": self._event, "DISPATCH_DIRECT": self._dispatch,
      "DISPATCH_INDIRECT": self._dispatch_indirect,
      "INDIRECT_BUFFER": self._indirect, "PRED_EXEC": self._predicate, "ATOMIC_MEM": self._atomic}

  # **** progress ****

  @property
  def reading(self) -> bool:
    """Return whether it is inside an indirect buffer, or waits."""
    return bool(self.cursors) or self.blocked is not None

  @property
  def idle(self) -> bool:
    """Return whether it has nothing to read, to wait for, or to end."""
    return not (self.reading or self.running or self.ends)

  def advance(self) -> bool:
    """End work that is done, or go on with the available words. Return False if it waits, or has no words."""
    self.running = [dispatch for dispatch in self.running if not dispatch.done]
    ended = bool(self.ends) and all(dispatch.done for dispatch in self.ends[0].after)
    waits = self.blocked is not None and not self.blocked()
    if ended and (waits or not self.reading or self.random.random() < 0.5):
      self.ends.popleft().act()
      return True
    if waits: return False
    if self.blocked is not None:
      self.blocked = None
      self.wait_over()
      return True
    if not self.cursors: return False
    cursor = self.cursors[-1]
    if cursor.at == len(cursor.words):
      self.cursors.pop()
      return True
    size = self.execute(cursor.words[cursor.at:])
    cursor.at += size
    return True

  def wait_over(self) -> None:
    """Begin a new phase: earlier work is done, or was waited for in another way. Later work may rely on it."""
    self.phase, self.groups = self.phase + 1, 0

  def execute(self, words: Sequence[int]) -> int:
    """Execute the packet at the start of words. Return its number of words."""
    try: packet, fields, size = self.packets.read(words)
    except ValueError as error:
      raise self.error(f"{error}; words: {' '.join(f'{word:08x}' for word in words[:8])}") from error
    self.log.append(packet.name)
    action = self.actions.get(packet.name)
    if action is None: raise self.error(f"{packet.name} is not emulated")
    try: action(fields)
    except PacketError as error: raise self.error(f"{packet.name}: {error.message}") from error
    size, self.skipped = size + self.skipped, 0
    if size > len(words): raise self.error(f"{packet.name} skips words beyond the end of the buffer")
    return size

  def error(self, text: str) -> PacketError:
    """Return an error with the queue and the packets that it read last."""
    return PacketError(f"{self.queue.name}, XCC {self.xcc.number}: {text}\n  the last packets: {', '.join(self.log)}")

  # **** registers ****

  def _set_registers(self, fields: dict[str, Any]) -> None:
    if fields["vmid_shift"] or fields["index"]: raise PacketError("VMID_SHIFT and INDEX are 0 in a user queue")
    if not fields["values"]: raise PacketError("no values")
    for i, value in enumerate(fields["values"]):
      self.registers.set(pm4.SET_SH_REG_START + fields["reg_offset"] + i, value)

  def _set_uconfig(self, fields: dict[str, Any]) -> None:
    for i, value in enumerate(fields["values"]):
      self.registers.set(pm4.SET_UCONFIG_REG_START + fields["reg_offset"] + i, value)

  # **** caches ****

  def _acquire(self, fields: dict[str, Any]) -> None:
    if fields.get("coher_cntl"): raise PacketError("COHER_CNTL is 0 from gfx10 on: the flags are in GCR_CNTL")
    everything = fields["coher_size"] >= pm4.COHER_SIZE_ALL >> 8  # gfx9 programs only 32 bits of it
    if everything and fields["coher_base"]: raise PacketError("all of memory begins at COHER_BASE 0")
    if not fields["coher_size"]: raise PacketError("COHER_SIZE is 0: nothing is invalidated")
    start = fields["coher_base"] << 8
    lines = None if everything else lines_between(self.gpu.table, start, start + (fields["coher_size"] << 8))
    for action in ACQUIRE_ACTIONS[self.gpu.chip.packets]:
      if fields[action.flag]: self.maintain(action.cache, lines)

  def maintain(self, name: str, lines: set[int] | None = None) -> None:
    """Invalidate caches, or write the L2 back. lines: only these."""
    coherence = self.gpu.computer.coherence
    if coherence is None: return
    if name == "dirty": coherence.write_back(self.xcc.dirty, lines)
    else: self.xcc.forget(name, lines)

  # **** end of pipe ****

  def _release(self, fields: dict[str, Any]) -> None:
    kind = fields["event_type"]
    if END_OF_PIPE_EVENTS.get(kind) != fields["event_index"]:
      raise PacketError(f"event {kind:#x} with index {fields['event_index']}")
    if fields["data_sel"] > pm4.DATA_GPU_CLOCK or fields["int_sel"] > pm4.INT_WRITE_CONFIRM:
      raise PacketError(f"selectors {fields}")
    width = {pm4.DATA_NONE: 0, pm4.DATA_32: 4}.get(fields["data_sel"], 8)
    if width and fields["addr"] % width: raise PacketError(f"{width} bytes at {fields['addr']:#x}: align the address")
    before = self.agent.started
    self.ends.append(EndOfPipe(tuple(self.running), lambda: self._end_of_pipe(fields, width, before)))

  def _end_of_pipe(self, fields: dict[str, Any], width: int, before: int) -> None:
    """Act at the end of the pipe. before: the tasks that have ended."""
    if not self.queue.has_eop: raise PageFault(0, True)  # the queue's buffer for these events
    if fields["event_type"] == pm4.CACHE_FLUSH_AND_INV_TS_EVENT:
      for action in RELEASE_ACTIONS[self.gpu.chip.packets]:
        if fields[action.flag]: self.maintain(action.cache)
    # it does not wait for the write
    if fields["int_sel"] == pm4.INT_ONLY: self.gpu.computer.events.interrupt(fields["int_ctxid"])
    if width:
      data = self.gpu.clock() if fields["data_sel"] == pm4.DATA_GPU_CLOCK else fields["data"]
      self.port.store(fields["addr"], (data & ((1 << width * 8) - 1)).to_bytes(width, "little"), ENGINE, before)
    if fields["int_sel"] == pm4.INT_WRITE_CONFIRM: self.gpu.computer.events.interrupt(fields["int_ctxid"])

  def _event(self, fields: dict[str, Any]) -> None:
    if fields != {"event_type": pm4.CS_PARTIAL_FLUSH, "event_index": pm4.EVENT_INDEX_PARTIAL_FLUSH}:
      raise PacketError(f"{fields} is not emulated")
    before, started = tuple(self.running), self.agent.started
    def over() -> bool:
      if not all(dispatch.done for dispatch in before): return False
      self.agent.learn(started)
      return True
    self.blocked = over

  # **** waits and copies ****

  def _load(self, address: int, width: int) -> int:
    if address % width: raise PacketError(f"{width} bytes at {address:#x}: align the address")
    return int.from_bytes(self.port.load(address, width, ENGINE), "little")

  def _wait(self, fields: dict[str, Any]) -> None:
    if fields["operation"] == pm4.OPERATION_WRITE_WAIT: self._flush_host_path(fields)
    elif fields["mem_space"] == pm4.MEM_SPACE_MEMORY: self._wait_memory(fields, 4)
    else: raise PacketError(f"a wait for register {fields['addr']:#x} is not emulated")

  def _wait_64(self, fields: dict[str, Any]) -> None:
    if fields["operation"] == pm4.OPERATION_WRITE_WAIT or fields["mem_space"] != pm4.MEM_SPACE_MEMORY:
      raise PacketError("only waits for memory")
    self._wait_memory(fields, 8)

  def _wait_memory(self, fields: dict[str, Any], width: int) -> None:
    compare, address, mask, reference = COMPARE.get(fields["function"]), fields["addr"], fields["mask"], fields[
      "reference"]
    if compare is None or fields["operation"] not in (pm4.OPERATION_WAIT, pm4.OPERATION_WAIT_PREEMPTABLE):
      raise PacketError(f"{fields}")
    self._load(address, width)
    self.blocked = lambda: compare(self._load(address, width) & mask, reference)

  def _flush_host_path(self, fields: dict[str, Any]) -> None:
    """Write a register and wait for another: the flush of the host data path."""
    registers = self.gpu.registers
    asked, answered = fields["addr"] & 0xFFFFFFFF, fields["addr"] >> 32
    wanted = registers.BIF_BX_PF0_GPU_HDP_FLUSH_REQ.address, registers.BIF_BX_PF0_GPU_HDP_FLUSH_DONE.address
    if fields["mem_space"] != pm4.MEM_SPACE_REGISTER or (asked, answered) != wanted:
      raise PacketError(f"registers {asked:#x}, {answered:#x}: only HDP_FLUSH_REQ and _DONE ({wanted[0]:#x}, "
                        f"{wanted[1]:#x}) are emulated")
    bits = fields["reference"]
    if not bits or bits != fields["mask"] or fields["function"] != pm4.EQUAL:
      raise PacketError(f"reference {bits:#x}, mask {fields['mask']:#x}")
    if bits & ~registers.BIF_BX_PF0_GPU_HDP_FLUSH_REQ.fields["cp"].mask:
      raise PacketError(f"bits {bits:#x} are not those of a command processor")
    self.gpu.host_writes.flush()

  def _write_data(self, fields: dict[str, Any]) -> None:
    if fields["addr_incr"] or not fields["data"]: raise PacketError(f"{fields} is not emulated")
    if fields["dst_sel"] == pm4.WRITE_REGISTER:
      for i, value in enumerate(fields["data"]): self.registers.set(fields["dst_addr"] + i, value)
      return
    if fields["dst_sel"] not in (pm4.WRITE_L2, pm4.WRITE_MEMORY): raise PacketError(f"DST_SEL {fields['dst_sel']}")
    if fields["dst_addr"] % 4: raise PacketError(f"words at {fields['dst_addr']:#x}: align the address")
    self.port.store(fields["dst_addr"], b"".join(word.to_bytes(4, "little") for word in fields["data"]), ENGINE)

  def _copy_data(self, fields: dict[str, Any]) -> None:
    width = 8 if fields["count_sel"] == pm4.COUNT_64 else 4
    source, target = fields["src_sel"], fields["dst_sel"]
    if source in (pm4.COPY_MEMORY, pm4.COPY_L2): value = self._load(fields["src"], width)
    elif source == pm4.COPY_IMMEDIATE: value = fields["src"] & ((1 << width * 8) - 1)
    elif source == pm4.COPY_GPU_CLOCK: value = self.gpu.clock() & ((1 << width * 8) - 1)
    elif source == pm4.COPY_REGISTER and fields["src"] in self.registers.values:
      value = self.registers.values[fields["src"]]
    else: raise PacketError(f"SRC_SEL {source} of {fields['src']:#x}")
    if target == pm4.COPY_REGISTER:
      for i in range(width // 4): self.registers.set(fields["dst"] + i, value >> 32 * i & 0xFFFFFFFF)
    elif target in (pm4.COPY_L2, pm4.WRITE_MEMORY):
      if fields["dst"] % width: raise PacketError(f"{width} bytes at {fields['dst']:#x}: align the address")
      self.port.store(fields["dst"], value.to_bytes(width, "little"), ENGINE)
    else: raise PacketError(f"DST_SEL {target}")

  def _atomic(self, fields: dict[str, Any]) -> None:
    width = {ATOMIC_ADD_32: 4, ATOMIC_ADD_64: 8}.get(fields["atomic"])
    if width is None or fields["command"]:
      raise PacketError(f"operation {fields['atomic']:#x}, command {fields['command']} are not emulated")
    if fields["addr"] % width: raise PacketError(f"{width} bytes at {fields['addr']:#x}: align the address")
    self.port.atomic(fields["addr"], width, lambda word: word + fields["src_data"], ENGINE)

  # **** grids ****

  def _dispatch(self, fields: dict[str, Any]) -> None:
    self.start_grid((fields["dim_x"], fields["dim_y"], fields["dim_z"]), fields["dispatch_initiator"])

  def _dispatch_indirect(self, fields: dict[str, Any]) -> None:
    x, y, z = (self._load(fields["addr"] + 4 * i, 4) for i in range(3))
    self.start_grid((x, y, z), fields["dispatch_initiator"])

  def start_grid(self, groups: tuple[int, int, int], initiator: int) -> None:
    """Begin a dispatch with the current registers."""
    registers = start_of_registers(self.registers, groups, initiator)
    races = self.queue.races.begin(self.part, self.phase)
    self.agent.begin(races, registers.describe())
    self.running.append(Dispatch(self.gpu, self.queue, self.xcc, registers, races, self.part, self.parts, self.groups))
    self.groups += groups[0] * groups[1] * groups[2]

  # **** indirect buffers ****

  def _indirect(self, fields: dict[str, Any]) -> None:
    if not fields["valid"] or fields["priv"] or fields["vmid"]: raise PacketError("VALID is 1, PRIV and VMID are 0")
    if not fields["ib_size"] or fields["ib_base"] % 4:
      raise PacketError(f"{fields['ib_size']} words at {fields['ib_base']:#x}")
    if fields["chain"]:
      if not self.cursors: raise PacketError("CHAIN outside of an indirect buffer")
      self.cursors.pop()
    if len(self.cursors) >= DEEPEST: raise PacketError(f"more than {DEEPEST} indirect buffers in each other")
    self.begin(fields["ib_base"], fields["ib_size"])

  def begin(self, address: int, count: int) -> None:
    """Read an indirect buffer, all of it at once, as the hardware prefetches it."""
    data = self.port.load(address, 4 * count, ENGINE)
    self.cursors.append(Cursor(memoryview(data).cast("I").tolist()))

  def _predicate(self, fields: dict[str, Any]) -> None:
    """Skip words on XCCs that are not selected."""
    if not self.cursors: raise PacketError("PRED_EXEC works in indirect buffers only")
    if not fields["virtual_xcc_id_select"] >> self.part & 1: self.skipped = fields["exec_count"]

class RingProcessor:
  """The processor of a PM4 queue."""
  def __init__(self, queue: HardwareQueue, xcc: Xcc):
    self.queue, self.executor = queue, Executor(queue, xcc)
    self.capacity = queue.ring_size // 4
    self.consumed = self.reported = 0    # words, never wrapping

  def step(self) -> bool:
    """Advance by a packet, or by work that a packet has begun."""
    if not self.queue.active: return False
    try: return self._step()
    except PageFault as fault:
      self.queue.gpu.page_fault(fault, f"{self.executor.port.who} (last packets: {', '.join(self.executor.log)})")
      return True
    except EmulatorError as error:
      self.queue.stopped = str(error)
      raise

  def _step(self) -> bool:
    executor = self.executor
    if executor.advance(): return True
    if executor.reading: return self._report()
    if self.consumed < self.queue.rung and (self.reported == self.consumed or executor.random.random() < 0.75):
      self.queue.look(executor.agent)
      self.consumed += executor.execute(self._words())
      self.queue.consumed = self.consumed
      return True
    executor.agent.idle = self.consumed == self.queue.rung and executor.idle
    return self._report()

  def _words(self) -> list[int]:
    """Return the words between the read pointer and the write pointer, at most those of one packet and its header."""
    there, start, capacity = self.queue.rung - self.consumed, self.consumed % self.capacity, self.capacity
    head = int.from_bytes(self.executor.port.load(self.queue.ring + 4 * start, 4, ENGINE), "little")
    count = min(there, ((head >> 16) + 1 & 0x3FFF) + 1)
    data = self.executor.port.load(self.queue.ring + 4 * start, 4 * min(count, capacity - start), ENGINE)
    if count > capacity - start:
      data += self.executor.port.load(self.queue.ring, 4 * (count - capacity + start), ENGINE)
    return memoryview(data).cast("I").tolist()

  def _report(self) -> bool:
    """Write the read pointer back: 32 bits that wrap."""
    if self.reported == self.consumed: return False
    self.reported = self.consumed
    self.executor.port.store(self.queue.read_pointer, (self.consumed % self.capacity).to_bytes(4, "little"), ENGINE)
    return True

def processors(queue: HardwareQueue, xcc: int) -> list[Actor]:
  """Return the actors of a PM4 queue: one command processor, on the XCC that the queue was made for."""
  xccs = queue.gpu.xccs
  return [RingProcessor(queue, xccs[xcc if xcc < len(xccs) else 0])]
