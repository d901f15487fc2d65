"""Commands for NVIDIA's engines as words of a pushbuffer. autogen/nvidia/methods.py describes them.

Subchannel 1 is the compute engine's, 4 the copy engine's. Methods of the channel itself go through any.
"""
from __future__ import annotations
from tinyhw.autogen.fields import Register
from tinyhw.autogen.nvidia import methods
from tinyhw.autogen.nvidia.methods import COMPUTE_SUBCHANNEL, COPY_SUBCHANNEL, HEADER, INCREASE, Engines, engines

MOST_COPY = 1 << 30         # bytes of one copy
MAX_SM_COUNT = 0xFF         # of local memory: no limit, as in Mesa NVK on all GPUs

class Commands:
  """Words, in the order of the method calls."""
  def __init__(self, generation: int):
    self.engines: Engines = engines(generation)
    self.words: list[int] = []

  def call(self, subchannel: int, method: Register, *data: int) -> int:
    """Call a method and those that follow it, with a word for each. Return the position of the first word."""
    assert data and len(data) <= methods.MOST_DATA
    self.words.append(HEADER(method=method.address // 4, subchannel=subchannel, count=len(data), opcode=INCREASE))
    self.words += data
    return len(self.words) - len(data)

  # **** the channel ****

  def bind(self, subchannel: int, number: int) -> None:
    """Connect a subchannel with the engine object of a class."""
    self.call(subchannel, self.engines.host.SET_OBJECT, number)

  def release(self, address: int, value: int, wait: bool, timestamp: bool = False) -> None:
    """Write a 32-bit value (with timestamp: 64 bits, then the time). wait: when all earlier commands are done."""
    self._semaphore(address, value, operation=methods.RELEASE, release_wfi=int(wait), release_timestamp=int(timestamp),
                    payload_size=int(timestamp))

  def acquire(self, address: int, value: int) -> None:
    """Wait until the 32-bit word at an address is `value` or more."""
    self._semaphore(address, value, operation=methods.ACQUIRE_AT_LEAST, acquire_switch_tsg=1)

  def _semaphore(self, address: int, value: int, **execute: int) -> None:
    host = self.engines.host
    fields = {name: v for name, v in execute.items() if v}
    self.call(0, host.SEM_ADDR_LO, address & 0xFFFF_FFFF, host.SEM_ADDR_HI(offset=address >> 32), value, 0,
              host.SEM_EXECUTE(**fields))

  # **** compute ****

  def setup(self, number: int, shared_window: int, local_window: int) -> None:
    """Append the first commands of a compute channel: its object, and the addresses of shared and local memory."""
    compute = self.engines.compute
    self.bind(COMPUTE_SUBCHANNEL, number)
    self.call(COMPUTE_SUBCHANNEL, compute.SET_SHADER_SHARED_MEMORY_WINDOW_A, shared_window >> 32,
              shared_window & 0xFFFF_FFFF)
    self.call(COMPUTE_SUBCHANNEL, compute.SET_SHADER_LOCAL_MEMORY_WINDOW_A, local_window >> 32,
              local_window & 0xFFFF_FFFF)

  def local_memory(self, address: int, tpc_bytes: int) -> None:
    """Set the local memory of lanes: its address and its bytes for each TPC."""
    compute = self.engines.compute
    self.call(COMPUTE_SUBCHANNEL, compute.SET_SHADER_LOCAL_MEMORY_A, address >> 32, address & 0xFFFF_FFFF)
    self.call(COMPUTE_SUBCHANNEL, compute.SET_SHADER_LOCAL_MEMORY_NON_THROTTLED_A, tpc_bytes >> 32,
              tpc_bytes & 0xFFFF_FFFF,
              compute.SET_SHADER_LOCAL_MEMORY_NON_THROTTLED_C(max_sm_count=MAX_SM_COUNT))

  def see_earlier_kernels(self) -> None:
    """Wait for earlier kernels, and invalidate caches, including those of code and constants."""
    compute = self.engines.compute
    self.call(COMPUTE_SUBCHANNEL, compute.WAIT_FOR_IDLE, 0)
    self.call(COMPUTE_SUBCHANNEL, compute.INVALIDATE_SHADER_CACHES_NO_WFI,
              compute.INVALIDATE_SHADER_CACHES_NO_WFI(instruction=1, global_data=1, constant=1))

  def launch(self, qmd: int) -> int:
    """Start the launch that a QMD at an address describes. The QMD may have been another one before.

    Return the position of the word with the address.
    """
    compute = self.engines.compute
    place = self.call(COMPUTE_SUBCHANNEL, compute.SEND_PCAS_A, qmd >> 8)
    self.call(COMPUTE_SUBCHANNEL, compute.SEND_SIGNALING_PCAS2_B,
              compute.SEND_SIGNALING_PCAS2_B(pcas_action=methods.INVALIDATE_COPY_SCHEDULE))
    return place

  # **** copies ****

  def copy(self, dest: int, source: int, size: int) -> None:
    """Copy bytes."""
    copy = self.engines.copy
    start_word = copy.LAUNCH_DMA(data_transfer_type=methods.NON_PIPELINED, src_memory_layout=methods.PITCH,
                                 dst_memory_layout=methods.PITCH)
    for start in range(0, size, MOST_COPY):
      here, there, count = source + start, dest + start, min(MOST_COPY, size - start)
      self.call(COPY_SUBCHANNEL, copy.OFFSET_IN_UPPER, here >> 32, here & 0xFFFF_FFFF, there >> 32, there & 0xFFFF_FFFF)
      self.call(COPY_SUBCHANNEL, copy.LINE_LENGTH_IN, count)
      self.call(COPY_SUBCHANNEL, copy.LAUNCH_DMA, start_word)

  def copied(self, address: int, value: int) -> None:
    """When earlier copies are done and visible, write a 32-bit value."""
    copy = self.engines.copy
    self.call(COPY_SUBCHANNEL, copy.SET_SEMAPHORE_A, address >> 32, address & 0xFFFF_FFFF, value)
    self.call(COPY_SUBCHANNEL, copy.LAUNCH_DMA, copy.LAUNCH_DMA(flush_enable=1, semaphore_type=methods.ONE_WORD))
