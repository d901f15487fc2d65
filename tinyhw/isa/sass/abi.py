"""The state in which a kernel starts: constant memory, special registers, and the duties of the launch.

Selection and drivers read these data. Drivers take the same numbers from autogen/nvidia/bank.py.

Arguments are in constant bank 0, in slots of 8 bytes: first the addresses of buffers, then the integers. If a kernel
has tensor maps, their address is the last argument (`Code.descriptors`). The grid has one dimension: work item n is
block n.

A word of the bank holds the end of the memory of each lane. Spills lie below that end (frame.py), as in code of the
vendor's compiler. Shared memory starts at address 0 (sm_8x) or after a part that the system reserves (sm_90). The
launch adds the reserved part to the size that a kernel asks for.

Loads and stores address global memory without a descriptor, in one of two ways:
- 64 bits in each lane (LDG [R2]);
- two uniform registers with the beginning of a buffer, to which a lane adds 32 unsigned bits (LDG [R2.U32+UR4]).

NVIDIA's own code loads a descriptor from the bank. Only NVIDIA's driver knows its content. Mesa's driver, which
launches like ours, uses no descriptor on any generation from sm_73 on. Its loads, stores and atomics have a base in two
uniform registers ([R2.64+UR4], often URZ). For 16-bit compare-and-swap on sm_80 to sm_90, ptxas itself emits a load
without a descriptor.

.U32 differs from .64 by one bit. That it extends with zeros follows from its name only: no code of ptxas for sm_80 to
sm_90 contains it.
"""
from __future__ import annotations

from tinyhw.autogen.nvidia import bank
from tinyhw.named_tuple import NamedTuple

class Abi(NamedTuple):
  """The addresses of a generation.

  arguments: the offset of the first slot in constant bank 0, in bytes. shared: the first address of a block's memory.
  stack: the offset of the word that holds the end of a lane's memory.
  """
  arguments: int
  shared: int
  stack: int

GENERATIONS = {"sm_80": 8, "sm_89": 8, "sm_90": 9}  # the generation of launches, as autogen/nvidia counts them
ABI = {name: Abi(bank.ARGUMENTS[number], bank.RESERVED[number], bank.STACK[number])
       for name, number in GENERATIONS.items()}
