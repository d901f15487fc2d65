"""Constant bank 0 of a launch, a block's shared memory and a lane's registers, as compiled code for NVIDIA's GPUs takes
them: what kernels and drivers agree on.

By generation, as in qmd.py. Nothing else of the bank is read by kernels of this repository: they ask special registers,
and reach global memory without the descriptor that NVIDIA's own code takes from it. Source: code that ptxas of CUDA
13.0 makes for our own PTX.
"""
from __future__ import annotations

ARGUMENTS = {8: 0x160, 9: 0x210, 10: 0x380}   # bytes: where a kernel's arguments begin
STACK = {8: 0x28, 9: 0x28, 10: 0x37C}         # bytes: a word, where the memory of a lane ends that is a kernel's
                                              # (spills)
RESERVED = {8: 0, 9: 1024, 10: 1024}          # bytes of a block's shared memory that the system keeps, before the
                                              # kernel's own

# Of each lane's registers the hardware keeps the last two for itself, from sm_70 on: they hold its program counter. A
# launch asks for them too.
# Sources: what ptxas counts is the highest index + 3 in all of its kernels, at most R252 with 255; Mesa's NAK
# (hw_reserved_gprs, and at least 4)
HIDDEN_REGISTERS = 2
LEAST_REGISTERS, MOST_REGISTERS = 4, 255      # that a launch gives a lane
