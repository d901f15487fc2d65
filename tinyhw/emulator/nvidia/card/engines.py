"""Engines of virtual NVIDIA GPUs: the host engine reads channels, other engines copy and start kernels.

A channel is an actor: each step reads an entry of its ring, or executes a method. Its position (GPGet) is written after
a whole entry has been executed. An input that an engine would misread, or hang on, is a PacketError at once. Source:
autogen/nvidia/methods.py.
"""
from __future__ import annotations
import time
from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from tinyhw.autogen.nvidia import methods
from tinyhw.autogen.nvidia.methods import COMPUTE_SUBCHANNEL, COPY_SUBCHANNEL, Call
from tinyhw.emulator.checks.order import Agent
from tinyhw.emulator.checks.races import Copied
from tinyhw.emulator.errors import DoorbellError, EmulatorError, PacketError, PageFault
from tinyhw.emulator.memory.cache import ReadCache
from tinyhw.emulator.memory.memory import ENGINE, AccessUnit
from tinyhw.emulator.memory.physical import Frames
from tinyhw.emulator.nvidia.block import block_of_grid
from tinyhw.emulator.nvidia.card.gpu import XID_MMU, GpuHardware
from tinyhw.emulator.nvidia.card.grid import Grid, MakeBlock
from tinyhw.emulator.nvidia.card.objects import ChannelItem
from tinyhw.emulator.nvidia.card.port import Port

if TYPE_CHECKING: from tinyhw.emulator.nvidia.card.computer import GpuHost

class DoorbellWatcher:
  """The usermode page of a GPU: the clock, and the doorbell, which takes a channel's token."""
  def __init__(self, computer: GpuHost, gpu: GpuHardware, frames: Frames):
    self.computer, self.gpu, self.frames = computer, gpu, frames

  def before_load(self, offset: int, size: int) -> None:
    self.frames.view[methods.USERMODE_TIME:methods.USERMODE_TIME + 8] = self.gpu.clock().to_bytes(8, "little")

  def before_store(self, offset: int, data: bytes | bytearray | memoryview) -> None:
    if offset != methods.USERMODE_DOORBELL or len(data) != 4:
      raise DoorbellError(f"a store of {len(data)} bytes at offset {offset:#x} of the usermode page; "
                          f"the doorbell is 4 bytes at {methods.USERMODE_DOORBELL:#x}")
    self.computer.engines.ring(self.gpu, int.from_bytes(data, "little"))

  def after_store(self, offset: int, size: int) -> None: pass
  def closed(self) -> None: self.computer.physical.free(self.frames)

class Engines:
  """The running channels of a process, and the grids that they have started. make_block: makes the executor of a block;
  tests may replace it."""
  def __init__(self, computer: GpuHost):
    self.computer = computer
    self.channels: dict[int, ChannelProcessor] = {}
    self.work: list[Grid] = []
    self.caches_of = computer.caches_of
    self.make_block: MakeBlock | None = block_of_grid

  def begin(self, channel: ChannelItem) -> None:
    """Start a channel."""
    if channel.token in self.channels: return
    found = self.channels[channel.token] = ChannelProcessor(self, channel)
    self.computer.scheduler.add(found, self.computer)
    def stop() -> None:
      self.channels.pop(channel.token, None)
      self.computer.scheduler.remove(found)
      found.drop_work()
      if self.computer.order is not None: self.computer.order.leave(found.agent)
    channel.stop = stop

  def ring(self, gpu: GpuHardware, token: int) -> None:
    """Ring the doorbell."""
    found = self.channels.get(token)
    if found is None or found.gpu is not gpu:
      raise DoorbellError(f"the doorbell of {gpu.name} is told {token:#x}, which is no channel's token; ask for it "
                          f"(GetWorkSubmitToken)")
    found.rung()

  def fail(self, channel: ChannelItem, xid: int, fault: PageFault | None = None) -> None:
    """Stop the whole group of a channel after an error, as the driver does, and write the error into the notifiers.

    Other groups go on.
    """
    group = channel.group
    group.fault = fault
    if fault is not None:
      self.computer.fault = f"{fault.summary}; {group.space.table.nearest(fault.address)}{fault.where}"
    for item in group.children:
      notifier = getattr(item, "notifier", None)
      if notifier is None: continue
      notifier.frames.view[:16] = time.monotonic_ns().to_bytes(8,
                                                               "little") + xid.to_bytes(4, "little") + b"\0\0\xff\xff"
    for processor in self.channels.values():
      if processor.channel.group is group: processor.stopped = True
    for grid in list(self.work):
      if grid.processor.channel.group is group: grid.abandon()

  def caches(self) -> Iterator[ReadCache]:
    """Yield all caches of all GPUs."""
    for caches in self.caches_of.values(): yield from caches.made.values()

class ChannelProcessor:
  """Reader of one channel. subchannels: the class of the engine object of each; registers: values that methods have
  set, by subchannel."""
  def __init__(self, engines: Engines, channel: ChannelItem):
    self.engines, self.channel, self.computer = engines, channel, engines.computer
    gpu = channel.gpu
    assert gpu is not None
    self.gpu: GpuHardware = gpu
    self.name = f"channel {channel.token:#x} of {gpu.name}"
    self.port = Port(channel.group.space.table, self.computer.coherence, f"an engine of {self.name}")
    self.agent = self.port.agent = Agent(self.computer.order)
    self.known = 0                        # ended tasks that the program knew at its last ring (order.py)
    self.tables = methods.engines(gpu.chip.generation)
    self.subchannels: dict[int, int] = {}
    self.registers: dict[int, dict[int, int]] = {}
    self.calls: deque[Call] = deque()
    self.get = self.put = 0
    self.open = False                     # an entry was read whose end is not reported yet
    self.stopped = False

  # **** the ring ****

  def _userd(self, offset: int) -> memoryview:
    start = self.channel.place + offset
    return self.channel.userd.frames.view[start:start + 4]

  def rung(self) -> None:
    """Take new entries after a doorbell."""
    put = int.from_bytes(self._userd(methods.USERD_PUT), "little")
    if put >= self.channel.entries:
      raise DoorbellError(f"{self.name}: GPPut is {put}, and the ring has {self.channel.entries} entries")
    self.put, self.agent.idle = put, False
    if self.computer.order is not None: self.known |= self.computer.order.host.known

  def step(self) -> bool:
    """Read an entry, or execute a method. Return False while there is nothing to do, or while it must wait."""
    if self.stopped or not self.channel.group.running: return False
    try:
      if self.calls: return self._execute()
      if self.open: self._entry_done()
      if self.get == self.put:
        self.agent.idle = not self._busy()
        return False
      self.agent.learn(self.known)
      self._read_entry()
      return True
    except PageFault as fault: self.engines.fail(self.channel, XID_MMU, fault)
    except EmulatorError:
      self.stopped = True
      raise
    return False

  def _entry_done(self) -> None:
    self.open, self.get = False, (self.get + 1) % self.channel.entries
    self._userd(methods.USERD_GET)[:] = self.get.to_bytes(4, "little")

  def _read_entry(self) -> None:
    data = self.port.load(self.channel.ring + 8 * self.get, 8, ENGINE)
    try: entry = methods.ENTRY.decode([int.from_bytes(data[:4], "little"), int.from_bytes(data[4:], "little")])
    except ValueError as error: raise PacketError(f"{self.name}: entry {self.get} of the ring: {error}") from error
    if not entry["length"]:
      raise PacketError(f"{self.name}: entry {self.get} of the ring has no words: it would be read as an opcode")
    words = self.port.load(entry["address"] << 2, 4 * entry["length"], ENGINE)
    try: calls = methods.decode([int.from_bytes(words[i:i + 4], "little") for i in range(0, len(words), 4)])
    except ValueError as error:
      raise PacketError(f"{self.name}: the pushbuffer at {entry['address'] << 2:#x}: {error}") from error
    self.calls.extend(calls)
    self.open = True

  # **** methods ****

  def _execute(self) -> bool:
    call = self.calls[0]
    if call.offset < 0x100 and not (call.offset == 0 and call.subchannel): done = self._host(call)
    elif call.offset == 0: done = self._bind(call)
    else: done = self._engine(call)
    if done: self.calls.popleft()
    return done

  def _fields(self, table: methods.Methods, call: Call) -> tuple[str, dict[str, Any]]:
    method = table.offsets.get(call.offset)
    if method is None:
      raise PacketError(f"{self.name}: method {call.offset:#x} of subchannel {call.subchannel} is none that the "
                        f"emulator knows")
    try: return method.name, method.decode([call.data])
    except ValueError as error: raise PacketError(f"{self.name}: {error}") from error

  def _bind(self, call: Call) -> bool:
    if call.data not in self.channel.engines:
      raise PacketError(f"{self.name}: SET_OBJECT {call.data:#x}, and the channel has no object of this class; "
                        f"allocate it on the channel")
    self.subchannels[call.subchannel] = call.data
    return True

  def _host(self, call: Call) -> bool:
    name, fields = self._fields(self.tables.host, call)
    state = self.registers.setdefault(-1, {})
    state[call.offset] = call.data
    if name == "WFI": return self._all_ended()
    if name != "SEM_EXECUTE": return True
    return self._semaphore(state, fields)

  def _word(self, state: dict[int, int], table: methods.Methods, name: str) -> int:
    offset = table.rows[name].address
    if offset not in state: raise PacketError(f"{self.name}: {name} has not been set")
    return state[offset]

  def _semaphore(self, state: dict[int, int], fields: dict[str, Any]) -> bool:
    host = self.tables.host
    address = self._word(state, host, "SEM_ADDR_LO") | self._word(state, host, "SEM_ADDR_HI") << 32
    value = self._word(state, host, "SEM_PAYLOAD_LO") | (self._word(state, host, "SEM_PAYLOAD_HI") << 32
                                                         if fields["payload_size"] else 0)
    size = 8 if fields["payload_size"] else 4
    if fields["operation"] == methods.RELEASE:
      if fields["release_wfi"] and not self._all_ended(): return False
      data = value.to_bytes(size, "little")
      if fields["release_timestamp"]: data = value.to_bytes(8, "little") + self.gpu.clock().to_bytes(8, "little")
      if address % len(data): raise PacketError(f"{self.name}: a semaphore of {len(data)} bytes at {address:#x}")
      self.port.store(address, data, ENGINE)
      return True
    if fields["operation"] == methods.ACQUIRE_AT_LEAST:
      found = int.from_bytes(self.port.load(address, size, ENGINE), "little")
      return (found - value & (1 << 8 * size) - 1) < 1 << 8 * size - 1
    raise PacketError(f"{self.name}: semaphore operation {fields['operation']} is not emulated")

  def _engine(self, call: Call) -> bool:
    bound = self.subchannels.get(call.subchannel)
    if bound is None:
      raise PacketError(f"{self.name}: method {call.offset:#x} on subchannel {call.subchannel}, to which no object is "
                        f"bound (SET_OBJECT)")
    computes = bound == self.gpu.chip.compute
    if call.subchannel != (COMPUTE_SUBCHANNEL if computes else COPY_SUBCHANNEL):
      raise PacketError(f"{self.name}: class {bound:#x} on subchannel {call.subchannel}")
    name, fields = self._fields(self.tables.compute if computes else self.tables.copy, call)
    state = self.registers.setdefault(call.subchannel, {})
    state[call.offset] = call.data
    return self._compute(name, fields, state) if computes else self._copy(name, fields, state)

  # **** compute ****

  def _busy(self) -> bool: return any(grid.processor is self for grid in self.engines.work)

  def _all_ended(self) -> bool:
    """Return whether all grids that it has started have ended. If so, learn it."""
    if self._busy(): return False
    self.agent.learn(self.agent.started)
    return True

  def _compute(self, name: str, fields: dict[str, Any], state: dict[int, int]) -> bool:
    if name == "WAIT_FOR_IDLE": return self._all_ended()
    if name in ("INVALIDATE_SHADER_CACHES_NO_WFI", "INVALIDATE_SHADER_CACHES"):
      for flag, unit in (("instruction", AccessUnit.INSTRUCTION), ("global_data", AccessUnit.VECTOR),
                         ("data", AccessUnit.VECTOR),
                         ("constant", AccessUnit.SCALAR)):
        if fields.get(flag): self.engines.caches_of[self.gpu].forget(unit)
    elif name == "SEND_SIGNALING_PCAS2_B":
      if fields["pcas_action"] != methods.INVALIDATE_COPY_SCHEDULE:
        raise PacketError(f"{self.name}: PCAS action {fields['pcas_action']} leaves what the scheduler has of a QMD "
                          f"at this address from before; "
                          f"use {methods.INVALIDATE_COPY_SCHEDULE}")
      if not self.channel.registered:
        raise PacketError(f"{self.name}: a kernel before UvmRegisterChannel: its engine has no memory for its state")
      Grid(self, self._word(state, self.tables.compute, "SEND_PCAS_A") << 8, state)
    elif name in ("LAUNCH_DMA", "LOAD_INLINE_DATA", "SEND_SIGNALING_PCAS_B"):
      raise PacketError(f"{self.name}: {name} is not emulated")
    return True

  # **** copies ****

  def _copy(self, name: str, fields: dict[str, Any], state: dict[int, int]) -> bool:
    if name != "LAUNCH_DMA": return True
    table = self.tables.copy
    if fields["data_transfer_type"]: self._transfer(fields, state)
    if fields["semaphore_type"]:
      if fields["data_transfer_type"] == methods.PIPELINED or not fields["flush_enable"]:
        raise PacketError(f"{self.name}: a semaphore of a copy without FLUSH_ENABLE may be seen before the bytes")
      address = self._word(state, table, "SET_SEMAPHORE_A") << 32 | self._word(state, table, "SET_SEMAPHORE_B")
      data = self._word(state, table, "SET_SEMAPHORE_PAYLOAD").to_bytes(4, "little")
      if fields["semaphore_type"] == methods.FOUR_WORDS:
        data = data.ljust(8, b"\0") + self.gpu.clock().to_bytes(8, "little")
      self.port.store(address, data, ENGINE)
    return True

  def _transfer(self, fields: dict[str, Any], state: dict[int, int]) -> None:
    table = self.tables.copy
    if fields["remap_enable"] or fields["multi_line_enable"] or fields["src_type"] or fields["dst_type"]:
      raise PacketError(f"{self.name}: only copies of one line between virtual addresses are emulated")
    if not fields["src_memory_layout"] or not fields["dst_memory_layout"]:
      raise PacketError(f"{self.name}: a copy of block-linear memory; set PITCH")
    source = self._word(state, table, "OFFSET_IN_UPPER") << 32 | self._word(state, table, "OFFSET_IN_LOWER")
    target = self._word(state, table, "OFFSET_OUT_UPPER") << 32 | self._word(state, table, "OFFSET_OUT_LOWER")
    size, races = self._word(state, table, "LINE_LENGTH_IN"), Copied()
    task = self.agent.begin(races, f"a copy of {size} bytes by {self.name}")
    self.port.races = races if self.computer.order is not None else None
    try: self.port.copy(source, target, size)
    finally: self.port.races = None
    self.agent.learn(task)

  def drop_work(self) -> None:
    """Drop its grids: the channel ends."""
    for grid in list(self.engines.work):
      if grid.processor is self: grid.abandon()
