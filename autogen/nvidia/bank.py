"""Constant bank 0 of a launch, a block's shared memory and a lane's registers: the convention of kernels and drivers
for NVIDIA's GPUs.

By generation, as in qmd.py. Kernels of this repository read nothing else of the bank. They read special registers
instead, and access global memory without the descriptor that NVIDIA's own code takes from it. Source: code that ptxas
of CUDA 13.0 makes for our own PTX.
"""
from __future__ import annotations

ARGUMENTS = {8: 0x160, 9: 0x210, 10: 0x380}   # offset of a kernel's first argument, in bytes
# offset of a word with the end of a lane's memory for the kernel (spills), in bytes
STACK = {8: 0x28, 9: 0x28, 10: 0x37C}
# bytes of a block's shared memory that the system reserves, before the kernel's own
RESERVED = {8: 0, 9: 1024, 10: 1024}

# From sm_70 on, the hardware keeps the last two of each lane's registers for its program counter. A launch asks for
# them too.
# Sources: ptxas counts the highest index + 3 in all of its kernels, at most R252 with 255; Mesa's NAK
# (hw_reserved_gprs, and at least 4)
HIDDEN_REGISTERS = 2
LEAST_REGISTERS, MOST_REGISTERS = 4, 255      # of a launch, for each lane
