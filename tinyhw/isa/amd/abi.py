"""How a kernel starts: which registers hold what, and what the launch must say so. Data for selection and for `Code`.

A kernel gets one pointer, to its arguments: slots of 8 bytes, addresses of buffers, then integers. The grid has one
dimension: work item n is
workgroup n. Source: LLVM's AMDGPUUsage, "Initial Kernel Execution State"; RDNA3, RDNA4 and MI300 ISA guides, "Initial
wavefront state".
"""
from __future__ import annotations

from tinyhw.isa.amd.table import regs
from tinyhw.machine.ir.inst import Reg
from tinyhw.named_tuple import NamedTuple

class Abi(NamedTuple):
  """arguments: the pair with the pointer. workgroup: the register with the workgroup's number. lane: the vector
  register with the lane's number.

  user_sgprs: scalar registers that the launch fills from USER_DATA, what stands behind them is the hardware's.
  """
  arguments: Reg
  workgroup: Reg
  lane: Reg
  user_sgprs: int

# family -> index of the workgroup's number. rdna3: ERRATA 16 scalar registers must be initialised in all, or some are
# lost; user and workgroup registers are made to be 16 of them; seen on gfx1100, gfx1102. rdna4: it is no argument but
# stands in ttmp9
_WORKGROUP = {"cdna": (2, 2), "rdna3": (15, 15), "rdna4": (regs.TTMP + 9, 2)}

def abi(family: str) -> Abi:
  workgroup, user = _WORKGROUP[family]
  return Abi(regs.s(0, 2), regs.s(workgroup), regs.v(0), user)
