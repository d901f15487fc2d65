"""Resources that warps share on NVIDIA's GPUs, and their allocation units: registers of a sub-partition, shared memory
of a multiprocessor (SM).

An SM has four sub-partitions. Each has every fourth warp of a block, and 65536 bytes of registers, 512 for each lane. A
warp gets registers in steps of eight for each lane, of which the hardware keeps two (autogen/nvidia/bank.py). Each
block takes a KiB of shared memory in addition to that of its kernel.
Source: CUDA C++ Programming Guide, "Compute Capabilities".
"""
from __future__ import annotations

from tinyhw.autogen.nvidia import bank
from tinyhw.machine.model.occupancy import RegisterFile, ComputeUnit, VendorTerms, steps

WARP = 32             # lanes that execute one instruction
PARTITIONS = 4
FILE = RegisterFile(512, 8, bank.HIDDEN_REGISTERS)  # of a sub-partition, for each of its lanes
RESERVED_BYTES = 1024  # of shared memory, of each block
FEWEST = 32           # warps of an SM; kernels do not spare registers for more
PREDICATES = 6        # free predicates of a lane; one more is left for temporary use

WORDS = VendorTerms("warp", "block", "sub-partition", "shared memory")

def multiprocessor(warps: int, blocks: int, shared_kib: int) -> ComputeUnit:
  """Return the most warps and blocks of a multiprocessor, and its shared memory."""
  return ComputeUnit("SM", PARTITIONS, warps // PARTITIONS, WARP, {"R": FILE}, shared_kib << 10, 128, blocks, WORDS)

# by architecture: sm_86 has the instructions of sm_80
UNITS = {"sm_80": multiprocessor(64, 32, 164), "sm_86": multiprocessor(48, 16, 100),
         "sm_89": multiprocessor(48, 24, 100),
         "sm_90": multiprocessor(64, 32, 228)}

def column(arch: str) -> str:
  """Return the architecture of tables: "sm_90a" is "sm_90"."""
  return arch.rstrip("a")

# Registers of a lane. With more than each of these, fewer warps run at once, or predicates are short
STEPS = {"R": tuple(n for n in steps(UNITS["sm_80"].files["R"], FEWEST // PARTITIONS)
                    if n + FILE.extra <= bank.MOST_REGISTERS), "P": (PREDICATES,)}
