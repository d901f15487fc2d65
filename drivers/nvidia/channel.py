"""Channels pass commands to a GPU. Pushbuffers hold the words. A channel's ring (GPFIFO) holds their addresses. A
doorbell signals new entries.

All channels of a device are one group (unless COPY_ENGINE is set), which the GPU schedules as a whole. Ring and
pointers (USERD) lie in the GPU's memory, as for the kernel's own channels.
"""
from __future__ import annotations
import collections
import contextlib
import struct
from collections.abc import Callable, Sequence
from typing import Protocol

from tinyhw.autogen.nvidia import methods, rm
from tinyhw.drivers.gpu.launch import Indirect
from tinyhw.drivers.gpu.memory import Memory
from tinyhw.drivers.gpu.queue import Ring, Timeline, Transient
from tinyhw.drivers.linux.files import Mapping, Returns, fence
from tinyhw.drivers.nvidia.card import HOST, RING, Card, MemoryKind

ENTRIES = 1 << 12
GRAPHICS = rm.flags("NV2080_ENGINE_TYPE_", "GRAPHICS")   # engine type of the group: the compute engine
# 0: copies are in the group of the kernels. Tests and the variants of test/silicon.py set the engine type of a separate
# group
COPY_ENGINE = 0
SUBCONTEXT_ASYNC = rm.flags("NV_CTXSHARE_ALLOCATION_FLAGS_", "SUBCONTEXT_ASYNC")
NO_TOKEN = 0xFFFF_FFFF
# addresses for buffers of a channel's engine; those for the state of all multiprocessors are large
RESERVED_BYTES = 1 << 30
NOTIFIER_BYTES = 1 << 16
MOST_SHOWN = 64

class Owner(Protocol):
  """The interface of a channel's device."""
  card: Card
  transient: Transient
  doorbell: Mapping
  def wait_for(self, done: Callable[[], bool], what: str) -> None: ...
  def words(self, address: int, count: int) -> list[int]: ...

class Group:
  """A channel group of a device, for one engine. The channels of the kernels' group share a context share. `start` runs
  the group, when all channels are there.

  channels: those that have been made in it. returns: the steps that free its content, its channels first.
  """
  def __init__(self, card: Card, undo: contextlib.ExitStack, engine: int = GRAPHICS):
    connection, s = card.connection, card.connection.structures
    self.card, self.returns = card, Returns(connection.unreturned)
    self.channels = list[Channel]()
    self.handle = connection.new(card.device, rm.CHANNEL_GROUP,
                                 s.ChannelGroupParams(hVASpace=card.space, engineType=engine))
    self.returns.add(lambda: connection.free(self.handle))
    undo.callback(self.returns.close)
    self.share = 0
    if engine == GRAPHICS:
      self.share = connection.new(self.handle, rm.CONTEXT_SHARE,
                                  s.ContextShareParams(hVASpace=card.space, flags=SUBCONTEXT_ASYNC))

  def start(self) -> None:
    """Run the channels, after each is registered with unified memory.

    In an address space of unified memory, the resource manager schedules no channel whose engine's memory has no
    addresses.
    Source: open-gpu-kernel-modules, src/nvidia/src/kernel/gpu/fifo/kernel_channel.c, kchannelIsSchedulable.
    """
    for channel in self.channels: channel.register()
    self.card.connection.control(self.handle, self.card.connection.structures.GroupSchedule(bEnable=1))

def make_channels(owner: Owner, undo: contextlib.ExitStack) -> tuple[Channel, Channel]:
  """Return the channels for kernels and for copies, in their groups, which run."""
  card = owner.card
  groups = [Group(card, undo)]
  if COPY_ENGINE: groups.append(Group(card, undo, COPY_ENGINE))
  found = (Channel(owner, groups[0], "compute", card.chip.compute),
           Channel(owner, groups[-1], "copy", card.class_of(card.chip.copy, "copy engine")))
  for group in groups: group.start()
  return found

class Channel:
  """One channel, usable from the start of its group until the group ends.

  name: of its purpose. number: the class of its engine object.
  """
  def __init__(self, owner: Owner, group: Group, name: str, number: int):
    self.owner, self.name, self.number, self.card, self.returns = owner, name, number, owner.card, group.returns
    connection, s = self.card.connection, self.card.connection.structures
    self.memory = self._allocate(8 * ENTRIES + methods.USERD_BYTES, RING, "ring")
    self.notifier = self._allocate(NOTIFIER_BYTES, HOST, "errors")
    self.memory.mapping.copyin(0, bytes(8 * ENTRIES + methods.USERD_BYTES))
    self.notifier.mapping.copyin(0, bytes(16))
    parameters = s.ChannelParams(hObjectError=self.notifier.handle, hObjectBuffer=self.memory.handle,
                                 gpFifoOffset=self.memory.address,
                                 gpFifoEntries=ENTRIES, hContextShare=group.share)
    parameters.hUserdMemory[0], parameters.userdOffset[0] = self.memory.handle, 8 * ENTRIES
    self.handle = connection.new(group.handle, self.card.class_of(self.card.chip.channel, "channel"), parameters)
    self.returns.add(lambda: connection.free(self.handle))
    self.engine = connection.new(self.handle, number, None)
    self.token = 0
    group.channels.append(self)
    self.marks: collections.deque[tuple[Timeline, int, int]] = collections.deque()
    self.read = 0      # words that have certainly been read; never wraps
    self.followed = 0  # the same, as far as GPGet was seen to move
    self.ring = Ring(self.memory.mapping, 2 * ENTRIES, self.consumed, self.publish, self.wait)

  def _allocate(self, size: int, kind: MemoryKind, label: str) -> Memory:
    """Allocate memory until the group ends.

    It is not the owner's, which frees its own even if the kernel keeps the channel.
    """
    memory = self.card.allocate(size, kind, f"{self.name} channel: {label}")
    self.returns.add(memory.close)
    return memory

  def register(self) -> None:
    """Get the doorbell's value, and let the kernel set up memory for the engine."""
    connection, s = self.card.connection, self.card.connection.structures
    self.token = int(connection.control(self.handle, s.GetWorkSubmitToken(workSubmitToken=NO_TOKEN)).workSubmitToken)
    space = self.card.addresses()
    base = space.take(RESERVED_BYTES, 2 << 20)
    self.returns.add(lambda: space.give(base, RESERVED_BYTES))
    uuid = (type(s.UvmRegisterChannel().gpuUuid))(*self.card.uuid)
    connection.call_uvm(s.UvmRegisterChannel(gpuUuid=uuid, rmCtrlFd=connection.node.fileno(), hClient=connection.root,
                                             hChannel=self.handle,
                                             base=base, length=RESERVED_BYTES))
    gone = s.UvmUnregisterChannel(hClient=connection.root, hChannel=self.handle)
    if hasattr(gone, "gpuUuid"): gone.gpuUuid = uuid
    self.returns.add(lambda: connection.call_uvm(gone))

  def put(self, *pieces: Sequence[int] | Indirect) -> None:
    """Append commands, in order. Words are copied to memory of the next submission. An Indirect is already in
    memory."""
    words: list[int] = []
    for piece in pieces:
      if not isinstance(piece, Indirect): words += piece
      else:
        self._flush(words)
        words = []
        self._entry(piece.address, piece.words)
    self._flush(words)

  def _flush(self, words: list[int]) -> None:
    most = self.owner.transient.size // 16
    for start in range(0, len(words), most):
      part = words[start:start + most]
      self._entry(self.owner.transient.write(struct.pack(f"<{len(part)}I", *part)), len(part))

  def _entry(self, address: int, words: int) -> None:
    if words: self.ring.put(methods.ENTRY.encode({"address": address >> 2, "length": words}))

  def wait(self, done: Callable[[], bool]) -> None:
    """Wait for room in the ring."""
    self.owner.wait_for(done, f"room in the {self.name} channel")

  def mark(self, timeline: Timeline, number: int) -> None:
    """Note that the commands so far are read when the timeline has reached this number."""
    if self.marks and self.marks[-1][1] > number: self.marks.clear()   # the timeline restarted
    self.marks.append((timeline, number, self.ring.written))

  def consumed(self) -> int:
    """Return the position in the ring of the next word that the GPU reads: GPGet, or the end of the completed work if
    that is further.

    GPGet is modulo the ring, so alone it cannot distinguish a full ring from an empty one. Only its movement counts. If
    it rests, because the GPU does not write it or has not begun, it frees no word.
    """
    while self.marks and self.marks[0][0].reached(self.marks[0][1]): self.read = self.marks.popleft()[2]
    self.followed += (2 * self.told() - self.followed) % (2 * ENTRIES)
    return max(self.followed, self.read) % (2 * ENTRIES)

  def told(self) -> int:
    """Return the entry that the GPU reads next, by its own account (GPGet)."""
    return self.memory.mapping.load32(8 * ENTRIES + methods.USERD_GET)

  def publish(self, written: int) -> None:
    """Signal the GPU: the pointer first, then the doorbell.

    Both may lie in PCI windows whose stores the processor collects (write-combining).
    """
    fence()
    self.memory.mapping.store32(8 * ENTRIES + methods.USERD_PUT, written // 2 % ENTRIES)
    fence()
    self.owner.doorbell.store32(methods.USERMODE_DOORBELL, self.token)
    fence()

  def error(self) -> int:
    """Return the kind of error that stopped the channel (an Xid), 0 for none."""
    return self.notifier.mapping.load32(8) if self.notifier.mapping.load32(12) >> 16 else 0

  def state(self) -> str:
    """Return the progress of the channel, for reports."""
    return (f"{self.name} channel {self.token:#x}: {self.told()} of {self.ring.written // 2 % ENTRIES} entries read "
            f"(modulo {ENTRIES})")

  def recent(self) -> list[str]:
    """Return the commands around the read position of the GPU, as text."""
    entries = self.ring.recent(8)
    lines: list[str] = []
    for low, high in zip(entries[::2], entries[1::2]):
      entry = methods.ENTRY.decode([low, high])
      try: calls = methods.decode(self.owner.words(entry["address"] << 2, min(entry["length"], MOST_SHOWN)))
      except ValueError: calls = []
      lines += [f"{entry['length']} words at {entry['address'] << 2:#x}",
                *("  " + text for text in show(calls, self.card.chip.generation))]
    return lines

def show(calls: Sequence[methods.Call], generation: int) -> list[str]:
  """Return methods as text."""
  tables = {methods.COMPUTE_SUBCHANNEL: methods.engines(generation).compute,
            methods.COPY_SUBCHANNEL: methods.engines(generation).copy}
  lines: list[str] = []
  for call in calls:
    table = methods.engines(generation).host if call.offset < 0x100 else tables.get(call.subchannel)
    method = table.offsets.get(call.offset) if table is not None else None
    if method is None: lines.append(f"method {call.offset:#x} of subchannel {call.subchannel} = {call.data:#x}")
    else:
      try: fields = method.decode([call.data])
      except ValueError: fields = {"data": call.data}
      lines.append(f"{method.name} " + " ".join(f"{name}={value:#x}" for name, value in fields.items() if value))
  return lines
