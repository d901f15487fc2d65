"""Constant bank 0 of a launch, and a block's shared memory, as compiled code for NVIDIA's GPUs takes them: what kernels and drivers agree on.

By generation, as in qmd.py. Nothing else of the bank is read by kernels of this repository: they ask special registers, and reach global memory
without the descriptor that NVIDIA's own code takes from it. Source: code that ptxas of CUDA 13.0 makes for our own PTX.
"""
from __future__ import annotations

ARGUMENTS = {8: 0x160, 9: 0x210, 10: 0x380}   # bytes: where a kernel's arguments begin
RESERVED = {8: 0, 9: 1024, 10: 1024}          # bytes of a block's shared memory that the system keeps, before the kernel's own
