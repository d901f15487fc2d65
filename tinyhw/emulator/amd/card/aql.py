"""Command processors of an AQL queue: one on each XCC. All of them read every packet, and each does its share of it.

They run at their own speeds. A packet with the barrier bit begins when all packets before it are complete on all XCCs.
A packet is complete when every XCC has done its share. A vendor packet holds an indirect buffer of PM4. After all XCCs
have read a packet, its slot becomes INVALID again, and the read index advances.
"""
from __future__ import annotations
import ctypes
from typing import TYPE_CHECKING, Any, TypeVar

from tinyhw.autogen.amd import hsa
from tinyhw.emulator.amd.card.dispatch import Dispatch, Grid, ProgramRegisters, Scratch, start
from tinyhw.emulator.amd.card.pm4 import PACKETS as PM4_PACKETS, Executor
from tinyhw.emulator.amd.registers import DispatchRegisters
from tinyhw.emulator.checks.races import Races
from tinyhw.emulator.errors import EmulatorError, PacketError, PageFault
from tinyhw.emulator.memory.memory import ENGINE
from tinyhw.emulator.schedule import Actor
from tinyhw.named_tuple import NamedTuple

if TYPE_CHECKING:
  from tinyhw.emulator.amd.card.queues import HardwareQueue

Struct = TypeVar("Struct", bound=ctypes.Structure)
CODE_ALIGNMENT, DESCRIPTOR_ALIGNMENT, KERNARG_ALIGNMENT = 256, 64, 16
PRELOAD_SKIP = 256          # bytes of a prologue that the processor skips when it has preloaded kernel arguments
ACQUIRED = {hsa.FENCE_SCOPE_NONE: (), hsa.FENCE_SCOPE_AGENT: ("vector", "first", "scalar", "instruction"),
            hsa.FENCE_SCOPE_SYSTEM: ("vector", "first", "scalar", "instruction", "last")}
INVALID = hsa.HEADER(type=hsa.PACKET_TYPE_INVALID).to_bytes(2, "little")
MISSING_PROPERTIES = ("enable_sgpr_private_segment_buffer", "enable_sgpr_flat_scratch_init", "uses_dynamic_stack")

class Progress:
  """A packet that some XCC has begun. done: how many XCCs have done their share; start: when the first one began, by
  the GPU's clock."""
  def __init__(self, header: dict[str, int], packet: bytes, start: int):
    self.header, self.packet, self.start, self.done = header, packet, start, 0
    self.races = Races()

class SharedProgress:
  """State that the XCCs of a queue share. complete: number of leading packets that are complete."""
  def __init__(self, queue: HardwareQueue, count: int):
    self.queue, self.count = queue, count
    self.progress: dict[int, Progress] = {}
    self.complete = self.reported = 0
    self.readers: list[CommandProcessor] = []
    self.known = 0                       # ended tasks, as known by a packet that waits for all before it (order.py)

  def finish(self, index: int, port: Any) -> None:
    """Count one more XCC that has done its share. The last one completes the packet."""
    progress = self.progress[index]
    progress.done += 1
    self.known |= port.agent.known | port.agent.started
    if progress.done < self.count: return
    signal = int.from_bytes(progress.packet[56:64], "little")
    if signal: self._signal(signal, progress, port)
    while self.complete in self.progress and self.progress[self.complete].done == self.count:
      del self.progress[self.complete]
      self.complete += 1

  def _signal(self, address: int, progress: Progress, port: Any) -> None:
    """Decrement a completion signal, store the times, and raise its event."""
    if address % 64: raise PacketError(f"the completion signal {address:#x} is not at a multiple of 64")
    signal = hsa.Signal.from_buffer_copy(port.load(address, ctypes.sizeof(hsa.Signal), ENGINE))
    if signal.kind != hsa.SIGNAL_KIND_USER:
      raise PacketError(f"the completion signal at {address:#x} has kind {signal.kind}, not {hsa.SIGNAL_KIND_USER}")
    if self._profiled(port):
      port.store(address + hsa.Signal.start_ts.offset, progress.start.to_bytes(8, "little"), ENGINE)
      port.store(address + hsa.Signal.end_ts.offset, self.queue.gpu.clock().to_bytes(8, "little"), ENGINE)
    port.agent.learn(self.known)
    port.atomic(address + hsa.Signal.value.offset, 8, lambda word: word - 1, ENGINE)
    if signal.event_mailbox_ptr:
      port.store(signal.event_mailbox_ptr, int(signal.event_id).to_bytes(8, "little"), ENGINE)
      self.queue.gpu.computer.events.interrupt(signal.event_id)

  def _profiled(self, port: Any) -> bool:
    return bool(hsa.QUEUE_PROPERTIES.decode([self.descriptor(port).queue_properties])["enable_profiling"])

  def descriptor(self, port: Any) -> hsa.Queue:
    """Return the amd_queue_t that contains the read index."""
    offset = hsa.Queue.read_dispatch_id.offset
    found = hsa.Queue.from_buffer_copy(port.load(self.queue.read_pointer - offset, ctypes.sizeof(hsa.Queue), ENGINE))
    if found.read_dispatch_id_field_base_byte_offset != offset:
      raise PacketError(f"read_dispatch_id_field_base_byte_offset is {found.read_dispatch_id_field_base_byte_offset}, "
                        f"not {offset}: "
                        "the processor does not find the queue's descriptor")
    return found

  def report(self, port: Any) -> bool:
    """Set slots that all XCCs have read to INVALID. Then advance the read index."""
    read = min(reader.at for reader in self.readers)
    if read == self.reported: return False
    for index in range(self.reported, read): port.store(slot(self.queue, index), INVALID, ENGINE)
    self.reported = self.queue.consumed = read
    port.store(self.queue.read_pointer, read.to_bytes(8, "little"), ENGINE)
    return True

def slot(queue: HardwareQueue, index: int) -> int:
  """Return the address of a packet."""
  return int(queue.ring + index * hsa.PACKET_BYTES % queue.ring_size)

class Share(NamedTuple):
  """An XCC's share of a kernel packet."""
  packet: int
  dispatch: Dispatch

class Barrier(NamedTuple):
  """A barrier packet that waits for all or for one of its signals. signals: addresses."""
  packet: int
  everyone: bool
  signals: list[int]

class CommandProcessor:
  """The command processor of one XCC. at: index of the next packet; shares: the kernels that it has begun.

  buffer: the packet whose indirect buffer is being executed; barrier: the barrier packet that it waits at.
  """
  def __init__(self, shared: SharedProgress, part: int):
    self.shared, self.queue, self.gpu, self.part = shared, shared.queue, shared.queue.gpu, part
    self.executor = Executor(self.queue, self.gpu.xccs[part], part, shared.count)
    self.port = self.executor.port
    self.at = 0
    self.shares: list[Share] = []
    self.buffer: int | None = None
    self.barrier: Barrier | None = None

  def step(self) -> bool:
    """Advance by a packet, or by work that a packet has begun."""
    if not self.queue.active: return False
    try: return self._step()
    except PageFault as fault:
      self.gpu.page_fault(fault, f"{self.port.who}, packet {self.at}")
      return True
    except PacketError as error:
      self.queue.stopped = str(error)
      raise PacketError(f"{self.queue.name}, packet {self.at}: {error.message}") from error
    except EmulatorError as error:
      self.queue.stopped = str(error)
      raise

  def _step(self) -> bool:
    """Do the first of these that is possible: continue an indirect buffer, end a share, pass a barrier, read the next
    packet.

    Return whether anything was done.
    """
    if self.executor.advance(): return True
    if self.buffer is not None and self.executor.idle:
      index, self.buffer = self.buffer, None
      self._finish(index)
      return True
    for share in self.shares:
      if share.dispatch.done:
        self.shares.remove(share)
        self._finish(share.packet)
        return True
    if self.barrier is not None:
      if not self._signalled(self.barrier): return False
      index, self.barrier = self.barrier.packet, None
      self._finish(index)
      return True
    if self.executor.reading: return False
    self.executor.agent.idle = self.at >= self.queue.rung and self.executor.idle and not self.shares
    return self._read() or self.part == 0 and self.shared.report(self.port)

  def _finish(self, index: int) -> None:
    """End this XCC's share: release, then count it."""
    progress = self.shared.progress[index]
    scope = progress.header["release_fence_scope"]
    if scope == hsa.FENCE_SCOPE_SYSTEM or scope == hsa.FENCE_SCOPE_AGENT and self.shared.count > 1:
      self.executor.maintain("dirty")
    self.shared.finish(index, self.port)

  # **** packets ****

  def _read(self) -> bool:
    """Begin the next packet, if it is there and may begin."""
    index = self.at
    if index >= self.queue.rung: return False
    progress = self.shared.progress.get(index)
    if progress is None:
      word = int.from_bytes(self.port.load(slot(self.queue, index), 2, ENGINE), "little")
      try: header = hsa.HEADER.decode([word])
      except ValueError as error: raise PacketError(str(error)) from error
      if header["type"] == hsa.PACKET_TYPE_INVALID: return False  # it may still be written
      progress = Progress(header, self.port.load(slot(self.queue, index), hsa.PACKET_BYTES, ENGINE), self.gpu.clock())
    if progress.header["barrier"] and self.shared.complete < index: return False
    self.queue.look(self.executor.agent)
    if progress.header["barrier"]: self.executor.agent.learn(self.shared.known)
    self.shared.progress[index] = progress
    self._acquire(progress.header["acquire_fence_scope"])
    self.at += 1
    kinds = {hsa.PACKET_TYPE_KERNEL_DISPATCH: self._kernel, hsa.PACKET_TYPE_VENDOR_SPECIFIC: self._vendor,
             hsa.PACKET_TYPE_BARRIER_AND: self._barrier,
             hsa.PACKET_TYPE_BARRIER_OR: self._barrier}
    begin = kinds.get(progress.header["type"])
    if begin is None: raise PacketError(f"packet type {progress.header['type']} is not emulated")
    begin(index, progress)
    return True

  def _acquire(self, scope: int) -> None:
    """Acquire for a scope. An agent acquire reaches the L2s where there are several."""
    if scope not in ACQUIRED: raise PacketError(f"acquire scope {scope}")
    for name in ACQUIRED[scope]: self.executor.maintain(name)
    if scope == hsa.FENCE_SCOPE_AGENT and self.shared.count > 1: self.executor.maintain("last")

  def _vendor(self, index: int, progress: Progress) -> None:
    """Begin the indirect buffer of a vendor packet."""
    packet = hsa.Pm4IndirectPacket.from_buffer_copy(progress.packet)
    if packet.format != hsa.FORMAT_PM4_IB or packet.remaining != hsa.PM4_REMAINING:
      raise PacketError("a vendor packet that holds no PM4 buffer")
    if any(packet.reserved): raise PacketError("reserved words of a vendor packet are 0")
    found, fields, size = PM4_PACKETS[self.gpu.chip.packets].read(list(packet.indirect_buffer))
    if found.name != "INDIRECT_BUFFER" or size != 4:
      raise PacketError(f"a vendor packet holds INDIRECT_BUFFER, not {found.name}")
    if not fields["valid"] or not fields["ib_size"] or fields["ib_base"] % 4:
      raise PacketError(f"INDIRECT_BUFFER {fields}")
    self.buffer = index
    if progress.header["barrier"]: self.executor.wait_over()
    self.executor.begin(fields["ib_base"], fields["ib_size"])

  def _barrier(self, index: int, progress: Progress) -> None:
    """Wait at a barrier packet."""
    signals = [address for address in hsa.BarrierAndPacket.from_buffer_copy(progress.packet).dep_signal if address]
    self.barrier = Barrier(index, progress.header["type"] == hsa.PACKET_TYPE_BARRIER_AND, signals)

  def _signalled(self, barrier: Barrier) -> bool:
    """Return whether the signals of a barrier packet are 0."""
    zero = [not any(self.port.load(address + hsa.Signal.value.offset, 8, ENGINE)) for address in barrier.signals]
    return all(zero) if barrier.everyone else any(zero) or not zero

  # **** kernels ****

  def _kernel(self, index: int, progress: Progress) -> None:
    """Begin this XCC's share of a kernel."""
    packet = hsa.KernelDispatchPacket.from_buffer_copy(progress.packet)
    dimensions = packet.setup & 3
    sizes = (packet.workgroup_size_x, packet.workgroup_size_y, packet.workgroup_size_z)
    grids = (packet.grid_size_x, packet.grid_size_y, packet.grid_size_z)
    if packet.setup >> 2 or not dimensions or packet.reserved0 or packet.reserved2:
      raise PacketError(f"setup {packet.setup:#x}, or reserved fields")
    if 0 in sizes or any(size != 1 for size in (*sizes[dimensions:], *grids[dimensions:])):
      raise PacketError(f"workgroup {sizes} and grid {grids} of {dimensions} dimensions: sizes beyond them are 1, "
                        f"none is 0")
    if packet.kernarg_address % KERNARG_ALIGNMENT:
      raise PacketError(f"kernel arguments at {packet.kernarg_address:#x}: align them to {KERNARG_ALIGNMENT}")
    registers = self._start(packet, sizes, grids)
    self.executor.agent.begin(progress.races, registers.describe())
    dispatch = Dispatch(self.gpu, self.queue, self.gpu.xccs[self.part], registers, progress.races, self.part,
                        self.shared.count)
    self.shares.append(Share(index, dispatch))

  def _start(self, packet: hsa.KernelDispatchPacket, sizes: tuple[int, int, int],
             grids: tuple[int, int, int]) -> DispatchRegisters:
    """Return the initial registers of waves, from the kernel's descriptor."""
    if packet.kernel_object % DESCRIPTOR_ALIGNMENT:
      raise PacketError(f"the descriptor at {packet.kernel_object:#x}: align it to {DESCRIPTOR_ALIGNMENT}")
    found = hsa.KernelDescriptor.from_buffer_copy(self.port.load(packet.kernel_object,
                                                                 ctypes.sizeof(hsa.KernelDescriptor), ENGINE))
    code = packet.kernel_object + found.kernel_code_entry_byte_offset
    if code % CODE_ALIGNMENT: raise PacketError(f"the code begins at {code:#x}: align it to {CODE_ALIGNMENT}")
    if found.group_segment_fixed_size > packet.group_segment_size:
      raise PacketError("the packet gives less LDS than the descriptor says")
    try: properties = hsa.KERNEL_CODE_PROPERTIES.decode([found.kernel_code_properties])
    except ValueError as error: raise PacketError(str(error)) from error
    user, length = self._user_data(packet, properties, hsa.KERNARG_PRELOAD.decode([found.kernarg_preload]))
    wave_size = 32 if properties["enable_wavefront_size32"] else 64
    groups = (-(-grids[0] // sizes[0]), -(-grids[1] // sizes[1]), -(-grids[2] // sizes[2]))
    partial = (grids[0] % sizes[0], grids[1] % sizes[1], grids[2] % sizes[2])
    queue = self.shared.descriptor(self.port) if packet.private_segment_size else None
    scratch = Scratch(0, 0) if queue is None else Scratch(queue.scratch_backing_memory_location,
                                                          queue.compute_tmpring_size)
    program = ProgramRegisters(code + (PRELOAD_SKIP if length else 0), found.compute_pgm_rsrc1, found.compute_pgm_rsrc2,
                               found.compute_pgm_rsrc3,
                               packet.group_segment_size)
    return start(self.gpu, program, Grid(wave_size, sizes, groups, partial), user, scratch)

  def _user_data(self, packet: hsa.KernelDispatchPacket, properties: dict[str, int],
                 preload: dict[str, int]) -> tuple[list[int | None], int]:
    """Return the user SGPRs that the descriptor asks for, and the number of argument words that were preloaded."""
    missing = [name for name in MISSING_PROPERTIES if properties[name]]
    if missing: raise PacketError(f"{', '.join(missing)}: not emulated")
    words: list[int | None] = []
    for name, value in (("enable_sgpr_dispatch_ptr", slot(self.queue, self.at - 1)),
                        ("enable_sgpr_queue_ptr", self.queue.read_pointer - 128),
                        ("enable_sgpr_kernarg_segment_ptr", packet.kernarg_address),
                        ("enable_sgpr_dispatch_id", self.at - 1)):
      if properties[name]: words += [value & 0xFFFFFFFF, value >> 32]
    length = preload["length"]
    if length:
      words += memoryview(self.port.load(packet.kernarg_address + 4 * preload["offset"], 4 * length,
                                         ENGINE)).cast("I").tolist()
    if properties["enable_sgpr_private_segment_size"]: words.append(packet.private_segment_size)
    return words + [None] * (16 - len(words)), length

def processors(queue: HardwareQueue) -> list[Actor]:
  """Return the actors of an AQL queue: a processor on each XCC."""
  shared = SharedProgress(queue, len(queue.gpu.xccs))
  shared.readers = [CommandProcessor(shared, part) for part in range(shared.count)]
  return list(shared.readers)
