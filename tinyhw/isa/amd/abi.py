"""The state of a wave at the start of a kernel: which registers hold which value, and the launch settings for that.

Selection and `Code` use these data. A kernel gets one pointer, to its arguments. They are slots of 8 bytes: addresses
of buffers, then integers. The grid has one dimension: work item n is workgroup n.

Sources: LLVM's AMDGPUUsage, "Initial Kernel Execution State"; RDNA3, RDNA4 and MI300 ISA guides, "Initial wavefront
state".
"""
from __future__ import annotations

from tinyhw.isa.amd.table import regs
from tinyhw.machine.ir.inst import Reg
from tinyhw.named_tuple import NamedTuple

class Abi(NamedTuple):
  """Registers that are initialized at the start of a kernel.

  - arguments: the pair with the pointer to the arguments.
  - workgroup: the register with the workgroup's number.
  - lane: the vector register with the lane's number.
  - user_sgprs: the number of scalar registers that the launch fills from USER_DATA; the hardware fills the registers
    after them.
  """
  arguments: Reg
  workgroup: Reg
  lane: Reg
  user_sgprs: int

# family -> index of the register with the workgroup's number, user_sgprs. rdna3: ERRATA 16 scalar registers must be
# initialized, or some are lost; user and workgroup registers are made to be 16; seen on gfx1100, gfx1102. rdna4: the
# number is no argument, it is in ttmp9.
_WORKGROUP = {"cdna": (2, 2), "rdna3": (15, 15), "rdna4": (regs.TTMP + 9, 2)}

def abi(family: str) -> Abi:
  workgroup, user = _WORKGROUP[family]
  return Abi(regs.s(0, 2), regs.s(workgroup), regs.v(0), user)
