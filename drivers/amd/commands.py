"""PM4 as a list of words: the commands of a compute queue for setup, launch, wait and signal.

The queues (queue.py, aql.py) pass the words to the hardware. The calls are the same for all chips. Differences are in
the rows of autogen/amd and in the few tables here.

If a chip presents several compute dies (XCCs) as one, each die reads all commands. The hardware distributes the
workgroups, and `dies_meet` is a barrier of all dies.
Sources: Linux, nvd.h and soc15d.h; ROCm, kfdtest's Dispatch.cpp. docs/hardware/amd.md describes the launch sequence.
"""
from __future__ import annotations
import contextlib
from collections.abc import Iterator
from typing import Any

from tinyhw.autogen.amd import gc, pm4
from tinyhw.autogen.fields import Register
from tinyhw.drivers.amd.topology import Gpu

ATOMIC_ADD_32 = 0x0F      # TC_OP_ATOMIC_ADD_RTN_32, Linux: vega10_enum.h
POLL = 4                  # poll_interval of a wait, in units of the command processor's clock
MEET_POLL = 0x80          # of the dies' barrier: longer, so that waiting dies do not slow down those that they wait for

# By packets (9: GFX9, 10: later). Flags of ACQUIRE_MEM make writes of others visible to a kernel. Flags of RELEASE_MEM
# make the writes of a kernel visible. "shared": caches of the compute units, which every kernel needs; "dies": with L2,
# which each die has for itself and which was written back; "all": with L2 and instructions, for data from outside.
ACQUIRE: dict[int, dict[str, dict[str, int]]] = {
  9: {"shared": {"sh_kcache_action_ena": 1, "tcl1_action_ena": 1, "poll_interval": 10},
      "all": {"sh_kcache_action_ena": 1, "tcl1_action_ena": 1, "sh_icache_action_ena": 1, "tc_action_ena": 1,
              "tc_wb_action_ena": 1,
              "poll_interval": 10},
      "dies": {"sh_kcache_action_ena": 1, "tcl1_action_ena": 1, "tc_action_ena": 1, "poll_interval": 10},
      "write back": {"tc_wb_action_ena": 1, "poll_interval": 10}},
  10: {"shared": {"glm_inv": 1, "glm_wb": 1, "glk_inv": 1, "glk_wb": 1, "glv_inv": 1, "gl1_inv": 1},
       "all": {"gli_inv": 1, "glm_inv": 1, "glm_wb": 1, "glk_inv": 1, "glk_wb": 1, "glv_inv": 1, "gl1_inv": 1,
               "gl2_inv": 1, "gl2_wb": 1}},
}
RELEASE: dict[int, dict[str, int]] = {
  9: {"tc_wb_action_en": 1, "tc_nc_action_en": 1},
  10: {"glm_wb": 1, "glm_inv": 1, "glv_inv": 1, "gl1_inv": 1, "gl2_inv": 1, "gl2_wb": 1, "seq": 1},
}

class Commands:
  """Words for a compute queue of a GPU.

  barrier_words: the addresses of two words, initially zero, for the barrier of several dies.
  """
  def __init__(self, gpu: Gpu, barrier_words: tuple[int, int] | None = None):
    self.gpu, self.barrier_words = gpu, barrier_words
    self.packets, self.gc = {9: pm4.GFX9, 10: pm4.GFX10}[gpu.chip.packets], gc.registers(gpu.chip.gc)
    self.words: list[int] = []

  def packet(self, packet: pm4.Packet, **fields: Any) -> int:
    """Append a packet. Return the position of its first word."""
    place = len(self.words)
    self.words += packet(**fields)
    return place

  def set_registers(self, first: Register, *values: int) -> int:
    """Set registers at consecutive addresses. Return the position of the first value."""
    offset = first.address - pm4.SET_SH_REG_START
    assert 0 <= offset < pm4.SET_SH_REG_END - pm4.SET_SH_REG_START, f"{first.name} is no register of a shader"
    return self.packet(self.packets.SET_SH_REG, reg_offset=offset, values=values) + 2

  # **** order and visibility ****

  def acquire(self, what: str) -> None:
    """Invalidate caches, or only write them back. what: a name of ACQUIRE."""
    self.packet(self.packets.ACQUIRE_MEM, coher_size=pm4.COHER_SIZE_ALL, **ACQUIRE[self.gpu.chip.packets][what])

  def wait(self, address: int, value: int) -> None:
    """Wait until the word at an address is `value` or more."""
    self.packet(self.packets.WAIT_REG_MEM, function=pm4.GREATER_EQUAL, mem_space=pm4.MEM_SPACE_MEMORY, addr=address,
                reference=value,
                mask=0xFFFF_FFFF, poll_interval=POLL)

  def finish(self) -> None:
    """Wait until all waves have ended. With several dies, wait for all dies and until their writes are in memory."""
    self.packet(self.packets.EVENT_WRITE, event_type=pm4.CS_PARTIAL_FLUSH, event_index=pm4.EVENT_INDEX_PARTIAL_FLUSH)
    if self.gpu.xccs > 1:
      self.acquire("write back")
      self.dies_meet()

  def dies_meet(self) -> None:
    """Let no die continue before all dies are here.

    Each die adds 1 to a word and waits for a multiple of the count of dies. It does so twice, on two words, so that a
    fast die cannot add again before a slow one has looked.
    guess: the words are in host memory, which requires PCIe atomics. Every computer with such a card has them.
    """
    assert self.barrier_words is not None
    for address in self.barrier_words:
      self.packet(self.packets.ATOMIC_MEM, atomic=ATOMIC_ADD_32, addr=address, src_data=1, loop_interval=16)
      self.packet(self.packets.WAIT_REG_MEM, function=pm4.EQUAL, mem_space=pm4.MEM_SPACE_MEMORY, addr=address,
                  reference=0, mask=self.gpu.xccs - 1,
                  poll_interval=MEET_POLL)

  @contextlib.contextmanager
  def one_die(self, die: int = 0) -> Iterator[None]:
    """Let one die execute the commands that are appended inside. Only in indirect buffers, where PRED_EXEC works."""
    if self.gpu.xccs == 1:
      yield
      return
    start = self.packet(self.packets.PRED_EXEC, virtual_xcc_id_select=1 << die)
    yield
    self.words[start:start + 2] = self.packets.PRED_EXEC(virtual_xcc_id_select=1 << die,
                                                         exec_count=len(self.words) - start - 2)

  def release(self, address: int, value: int, event: tuple[int, int] | None = None) -> None:
    """When all earlier commands are done and in memory, write a 32-bit value, then signal event (mailbox, number)."""
    with self.one_die():
      self._end_of_pipe(addr=address, data=value, data_sel=pm4.DATA_32, **RELEASE[self.gpu.chip.packets])
      if event is not None:
        self._end_of_pipe(addr=event[0], data=event[1], data_sel=pm4.DATA_32, int_sel=pm4.INT_WRITE_CONFIRM,
                          int_ctxid=event[1])

  def timestamp(self, address: int) -> None:
    """Write the 64-bit GPU clock when all earlier commands are done."""
    with self.one_die(): self._end_of_pipe(addr=address, data_sel=pm4.DATA_GPU_CLOCK)

  def _end_of_pipe(self, **fields: int) -> None:
    self.packet(self.packets.RELEASE_MEM, event_type=pm4.CACHE_FLUSH_AND_INV_TS_EVENT,
                event_index=pm4.EVENT_INDEX_END_OF_PIPE, **fields)

  # **** kernels ****

  def see_earlier_kernels(self) -> None:
    """Make the writes of earlier kernels, for which `finish` has waited, visible to loads."""
    self.acquire("shared" if self.gpu.xccs == 1 else "dies")

  def scratch(self, address: int, waves: int, wave_units: int, die_bytes: int) -> None:
    """Set the scratch memory of lanes.

    waves: of a shader engine, or on GFX9 of a die. wave_units: the size of a wave's scratch, in units of the chip.
    die_bytes: the part of each die. With all arguments 0 there is no scratch. That must be set too, since the registers
    hold the values of another process.
    """
    self.set_registers(self.gc.COMPUTE_TMPRING_SIZE, self.gc.COMPUTE_TMPRING_SIZE(waves=waves, wavesize=wave_units))
    for die in range(self.gpu.xccs if waves else 0):
      with self.one_die(die):
        place = address + die * die_bytes >> 8
        self.set_registers(self.gc.COMPUTE_DISPATCH_SCRATCH_BASE_LO, place & 0xFFFF_FFFF, place >> 32)

  def dispatch(self, initiator: int, groups: int) -> int:
    """Start `groups` workgroups with the current registers; append a NOP for none. Return the position of the
    packet."""
    place = self.packet(self.packets.DISPATCH_DIRECT, dim_x=groups, dim_y=1, dim_z=1, dispatch_initiator=initiator)
    self.words[place] = dispatch_header(groups)
    return place

def dispatch_header(groups: int) -> int:
  """Return the first word of a DISPATCH_DIRECT, or of a NOP of the same length. The hardware never gets a dispatch of
  no workgroups."""
  return pm4.header(pm4.GFX10.DISPATCH_DIRECT.opcode if groups else pm4.GFX10.NOP.opcode, 4)
