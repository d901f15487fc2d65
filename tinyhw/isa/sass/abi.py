"""How a kernel starts: what constant memory and special registers hold, and what the launch must see to. Data for selection and for drivers.

Arguments are in constant bank 0: slots of 8 bytes, addresses of buffers, then integers. The grid has one dimension: work item n is block n. Memory
of each lane (spills) is addressed from 0 on: the launch gives it as "low" local memory. Shared memory is addressed from 0 on (sm_8x) or behind
what the system keeps for itself (sm_90), which the launch adds to what a kernel wants. Source: constant banks as compiled code of NVIDIA's own
assembler reads them.
"""
from __future__ import annotations
from dataclasses import dataclass

@dataclass(frozen=True)
class Abi:
  """Bytes in constant bank 0. arguments: where the slots begin. descriptor: of global memory, 8 bytes. shared: where a block's memory begins."""
  arguments: int
  descriptor: int
  shared: int

ABI = {"sm_80": Abi(0x160, 0x118, 0), "sm_89": Abi(0x160, 0x118, 0), "sm_90": Abi(0x210, 0x208, 0x400)}
