"""Execution of programs compiled for AMD by the emulator's waves, in flat memory. Tests of selection compare it with
the interpreter."""
from __future__ import annotations

from test.isa.executed import CODE, Machine
from tinyhw.emulator.amd import unused
from tinyhw.emulator.amd.registers import DispatchRegisters
from tinyhw.emulator.amd.workgroup import Workgroup
from tinyhw.emulator.memory.memory import FlatMemory
from tinyhw.isa.amd.abi import abi
from tinyhw.isa.amd.capabilities import capabilities, generation_of
from tinyhw.isa.amd.target import compile
from tinyhw.machine.ir.code import Code

ARCHS = ("gfx1100", "gfx1200", "gfx942")
ARGUMENTS = 0x7f10_0000_0000

def run(code: Code, slots: bytes, groups: int, memory: FlatMemory, seed: int) -> int:
  """Execute code; see Machine."""
  generation, counts = generation_of(code.arch), dict(code.registers)
  memory.add(ARGUMENTS, bytearray(slots))
  user = [ARGUMENTS & 0xffffffff, ARGUMENTS >> 32] + [0] * (abi(generation.family).user_sgprs - 2)
  registers = DispatchRegisters(
    arch=generation.name, code=CODE, wave_size=generation.wave, vgprs=max(counts["vgpr"], 1), sgprs=generation.sgprs,
    group_size=(code.lanes, 1, 1),
    groups=(groups, 1, 1), user_data=tuple(user), lds_bytes=code.local_bytes, float_denorm=15)
  unused.check(registers, memory.load)
  return sum(Workgroup(generation.name, memory.load, registers, (group, 0, 0), memory, code.local_bytes,
                       seed + group).run()
             for group in range(groups))

AMD = Machine(ARCHS, capabilities, compile, run)
execute, check = AMD.execute, AMD.check
