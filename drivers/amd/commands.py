"""PM4 as a list of words: what a compute queue is told to set up, start, wait for and signal. The queues (queue.py,
aql.py) bring it to the hardware.

The same calls for all chips; what differs is in the rows of autogen/amd and in the few tables here. A chip that shows
several compute dies (XCCs) as one has each of them read all commands: workgroups are shared out by the hardware, and
`dies_meet` lets all of them come to one place.
Sources: Linux, nvd.h and soc15d.h; ROCm, kfdtest's Dispatch.cpp; the launch sequence is told in docs/amd.md.
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
MEET_POLL = 0x80          # of the dies' barrier: they should not crowd out who they wait for

# By packets (9: GFX9, 10: later): flags of ACQUIRE_MEM that make what others wrote visible to a kernel, and of
# RELEASE_MEM that do so for what it wrote. "shared": caches of the compute units, which kernel after kernel needs;
# "dies": with L2, of which each die has its own, and which was written back; "all": with L2 and instructions, for what
# came from outside.
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
  """Words for a compute queue of a GPU. meeting: the addresses of two words, zero at first, where several dies meet."""
  def __init__(self, gpu: Gpu, meeting: tuple[int, int] | None = None):
    self.gpu, self.meeting = gpu, meeting
    self.packets, self.gc = {9: pm4.GFX9, 10: pm4.GFX10}[gpu.chip.packets], gc.registers(gpu.chip.gc)
    self.words: list[int] = []

  def packet(self, packet: pm4.Packet, **fields: Any) -> int:
    """Append a packet; the place of its first word."""
    place = len(self.words)
    self.words += packet(**fields)
    return place

  def set_registers(self, first: Register, *values: int) -> int:
    """Set registers at addresses that follow each other; the place of the first value."""
    offset = first.address - pm4.SET_SH_REG_START
    assert 0 <= offset < pm4.SET_SH_REG_END - pm4.SET_SH_REG_START, f"{first.name} is no register of a shader"
    return self.packet(self.packets.SET_SH_REG, reg_offset=offset, values=values) + 2

  # **** order and visibility ****

  def acquire(self, what: str) -> None:
    """Caches forget what they have read, or only write back what was written: a name of ACQUIRE."""
    self.packet(self.packets.ACQUIRE_MEM, coher_size=pm4.COHER_SIZE_ALL, **ACQUIRE[self.gpu.chip.packets][what])

  def wait(self, address: int, value: int) -> None:
    """Wait until the word at an address is `value` or more."""
    self.packet(self.packets.WAIT_REG_MEM, function=pm4.GREATER_EQUAL, mem_space=pm4.MEM_SPACE_MEMORY, addr=address,
                reference=value,
                mask=0xFFFF_FFFF, poll_interval=POLL)

  def finish(self) -> None:
    """Wait until all waves have ended; with several dies: those of all, and what they wrote is in memory."""
    self.packet(self.packets.EVENT_WRITE, event_type=pm4.CS_PARTIAL_FLUSH, event_index=pm4.EVENT_INDEX_PARTIAL_FLUSH)
    if self.gpu.xccs > 1:
      self.acquire("write back")
      self.dies_meet()

  def dies_meet(self) -> None:
    """No die goes on before all have come here. Each adds 1 to a word and waits for a multiple of their number; twice,
    on two words, so that a fast one cannot add again before a slow one has looked.

    guess: the words are in host memory, which wants PCIe atomics; every computer with such a card has them.
    """
    assert self.meeting is not None
    for address in self.meeting:
      self.packet(self.packets.ATOMIC_MEM, atomic=ATOMIC_ADD_32, addr=address, src_data=1, loop_interval=16)
      self.packet(self.packets.WAIT_REG_MEM, function=pm4.EQUAL, mem_space=pm4.MEM_SPACE_MEMORY, addr=address,
                  reference=0, mask=self.gpu.xccs - 1,
                  poll_interval=MEET_POLL)

  @contextlib.contextmanager
  def one_die(self, die: int = 0) -> Iterator[None]:
    """What is appended inside is executed by one die. Only in indirect buffers, where PRED_EXEC works."""
    if self.gpu.xccs == 1:
      yield
      return
    start = self.packet(self.packets.PRED_EXEC, virtual_xcc_id_select=1 << die)
    yield
    self.words[start:start + 2] = self.packets.PRED_EXEC(virtual_xcc_id_select=1 << die,
                                                         exec_count=len(self.words) - start - 2)

  def release(self, address: int, value: int, event: tuple[int, int] | None = None) -> None:
    """When all before is done and in memory, write a 32-bit value; then signal event (mailbox, number)."""
    with self.one_die():
      self._end_of_pipe(addr=address, data=value, data_sel=pm4.DATA_32, **RELEASE[self.gpu.chip.packets])
      if event is not None:
        self._end_of_pipe(addr=event[0], data=event[1], data_sel=pm4.DATA_32, int_sel=pm4.INT_WRITE_CONFIRM,
                          int_ctxid=event[1])

  def timestamp(self, address: int) -> None:
    """Write the 64-bit GPU clock when all before is done."""
    with self.one_die(): self._end_of_pipe(addr=address, data_sel=pm4.DATA_GPU_CLOCK)

  def _end_of_pipe(self, **fields: int) -> None:
    self.packet(self.packets.RELEASE_MEM, event_type=pm4.CACHE_FLUSH_AND_INV_TS_EVENT,
                event_index=pm4.EVENT_INDEX_END_OF_PIPE, **fields)

  # **** kernels ****

  def see_earlier_kernels(self) -> None:
    """What kernels before have written, and `finish` has waited for, is what loads find."""
    self.acquire("shared" if self.gpu.xccs == 1 else "dies")

  def scratch(self, address: int, waves: int, wave_units: int, die_bytes: int) -> None:
    """Memory of lanes: for so many waves (of a shader engine, or on GFX9 of a die), so many units of the chip each.
    Each die has its part of it.

    None where all of it is 0: that has to be said too, since the registers hold what another process left.
    """
    self.set_registers(self.gc.COMPUTE_TMPRING_SIZE, self.gc.COMPUTE_TMPRING_SIZE(waves=waves, wavesize=wave_units))
    for die in range(self.gpu.xccs if waves else 0):
      with self.one_die(die):
        place = address + die * die_bytes >> 8
        self.set_registers(self.gc.COMPUTE_DISPATCH_SCRATCH_BASE_LO, place & 0xFFFF_FFFF, place >> 32)

  def dispatch(self, initiator: int, groups: int) -> int:
    """Start `groups` workgroups (none: a NOP in its place), as the registers say. The place of the packet."""
    place = self.packet(self.packets.DISPATCH_DIRECT, dim_x=groups, dim_y=1, dim_z=1, dispatch_initiator=initiator)
    self.words[place] = dispatch_header(groups)
    return place

def dispatch_header(groups: int) -> int:
  """The first word of a DISPATCH_DIRECT, or of a NOP of its length: hardware is never asked for no workgroups."""
  return pm4.header(pm4.GFX10.DISPATCH_DIRECT.opcode if groups else pm4.GFX10.NOP.opcode, 4)
