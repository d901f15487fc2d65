"""How a kernel starts: what constant memory and special registers hold, and what the launch must see to. Data for
selection and for drivers.

Arguments are in constant bank 0: slots of 8 bytes, addresses of buffers, then integers, then, where a kernel has any,
the address of its tensor maps (`Code.descriptors`). The grid has one dimension: work item n is block n. Memory of each
lane (spills) is below what a word of the bank says (frame.py), as in code of the vendor's compiler. Shared memory is
addressed from 0 on (sm_8x) or behind what the system keeps for itself (sm_90), which the launch adds to what a kernel
wants. Drivers read the same numbers in autogen/nvidia/bank.py.

Global memory is reached by addresses without a descriptor: 64 bits in each lane (LDG [R2]), or the beginning of a
buffer in two uniform registers to which a lane adds 32 bits without a sign (LDG [R2.U32+UR4]). The descriptor that
NVIDIA's own code loads from the bank is its driver's secret. Mesa's driver, which launches like ours, does without on
all generations from sm_73 on: its loads, stores and atomics have a base in two uniform registers ([R2.64+UR4], often
URZ), and ptxas itself emits a load without a descriptor for 16-bit compare-and-swap on sm_80 to sm_90. That .U32
extends with zeros, which differs from .64 by a bit, is what its name says; no code of ptxas for sm_80 to sm_90 has it.
"""
from __future__ import annotations

from tinyhw.autogen.nvidia import bank
from tinyhw.named_tuple import NamedTuple

class Abi(NamedTuple):
  """arguments: where the slots begin, in bytes of constant bank 0. shared: where a block's memory begins. stack: the
  word that says where a lane's memory ends."""
  arguments: int
  shared: int
  stack: int

GENERATIONS = {"sm_80": 8, "sm_89": 8, "sm_90": 9}  # of launches, as autogen/nvidia counts them
ABI = {name: Abi(bank.ARGUMENTS[number], bank.RESERVED[number], bank.STACK[number])
       for name, number in GENERATIONS.items()}
