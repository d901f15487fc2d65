"""Compile programs for NVIDIA GPUs, and execute them by the emulator's warps in flat memory. Tests of selection compare
the result with the interpreter."""
from __future__ import annotations

from test.isa.executed import CODE, Machine
from tinyhw.emulator.memory.memory import FlatMemory
from tinyhw.emulator.nvidia.block import ThreadBlock
from tinyhw.emulator.nvidia.warp.launch import LaunchParameters
from tinyhw.isa.sass.abi import ABI
from tinyhw.isa.sass.capabilities import capabilities, generation_of
from tinyhw.isa.sass.target import compile
from tinyhw.machine.ir.code import Code

ARCHS = ("sm_80", "sm_89", "sm_90")

def launch_of(code: Code, slots: bytes, blocks: int) -> LaunchParameters:
  """Return the launch of a kernel with these arguments."""
  start, counts = ABI[generation_of(code.arch).name], dict(code.registers)
  constants = bytearray(start.arguments) + slots
  constants[start.stack:start.stack + 4] = code.private_bytes.to_bytes(4, "little")
  return LaunchParameters(code.name, code.arch, CODE, counts["r"], bytes(constants), threads=code.lanes, blocks=blocks,
                          shared_bytes=start.shared + code.local_bytes, local_bytes=code.private_bytes,
                          barriers=counts["barrier"])

def run(code: Code, slots: bytes, blocks: int, memory: FlatMemory, seed: int) -> int:
  """See Machine."""
  launch, decoder, executed = launch_of(code, slots, blocks), None, 0
  for number in range(blocks):
    block = ThreadBlock(launch, number, memory, seed + number, decoder)
    decoder, executed = block.decoder, executed + block.run()
  return executed

SASS = Machine(ARCHS, capabilities, compile, run)
execute, check = SASS.execute, SASS.check
