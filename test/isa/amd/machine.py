"""Programs compiled for AMD and executed by the emulator's waves, in flat memory: what tests of selection compare with the interpreter."""
from __future__ import annotations
from collections.abc import Mapping
from typing import Any

from test.codegen.kernels import compare, data_for
from tinyhw.arithmetic import from_bytes, to_bytes
from tinyhw.codegen.optimize import optimize
from tinyhw.codegen.passes import lower
from tinyhw.codegen.program import Program
from tinyhw.emulator.amd import unused
from tinyhw.emulator.amd.registers import DispatchRegisters
from tinyhw.emulator.amd.wave import Workgroup
from tinyhw.emulator.memory import FlatMemory
from tinyhw.isa.amd.abi import abi
from tinyhw.isa.amd.capabilities import capabilities, generation_of
from tinyhw.isa.amd.target import compile
from tinyhw.uop.evaluate import evaluate
from tinyhw.uop.ops import UOp

ARCHS = ("gfx1100", "gfx1200", "gfx942")
CODE, ARGUMENTS, BUFFERS, APART = 0x7f00_0000_0000, 0x7f10_0000_0000, 0x7f20_0000_0000, 1 << 32

def execute(program: Program, arch: str, data: dict[int, list[Any]], variables: Mapping[str, int] | None = None, seed: int = 0) -> int:
  """Run all workgroups over the contents of buffers (slot -> values, changed in place); the number of instructions executed by waves."""
  code, generation, memory = compile(program, arch), generation_of(arch), FlatMemory()
  memory.add(CODE, bytearray(code.text))
  contents: dict[int, bytearray] = {}
  slots = bytearray()
  for k, param in enumerate(program.params):
    scalar, values = param.dtype.scalar(), data[param.arg[0]]
    contents[param.arg[0]] = bytearray(b"".join(to_bytes(x, scalar) for x in values))
    memory.add(BUFFERS + k * APART, contents[param.arg[0]])
    slots += (BUFFERS + k * APART).to_bytes(8, "little")
  for variable in program.variables: slots += (variables or {})[variable.arg[0]].to_bytes(8, "little", signed=True)
  memory.add(ARGUMENTS, slots)
  counts, start = dict(code.registers), abi(generation.family)
  user = [ARGUMENTS & 0xffffffff, ARGUMENTS >> 32] + [0] * (start.user_sgprs - 2)
  grid = value_of(program.grid, variables or {})
  registers = DispatchRegisters(
    arch=generation.name, code=CODE, wave_size=generation.wave, vgprs=max(counts["vgpr"], 1), sgprs=generation.sgprs, group_size=(code.lanes, 1, 1),
    groups=(grid, 1, 1), user_data=tuple(user), lds_bytes=code.local_bytes, float_denorm=15)
  unused.check(registers, memory.load)
  executed = 0
  for group in range(grid):
    executed += Workgroup(generation.name, memory.load, registers, (group, 0, 0), memory, code.local_bytes, seed + group).run()
  for param in program.params:
    scalar, content = param.dtype.scalar(), contents[param.arg[0]]
    data[param.arg[0]][:] = [from_bytes(bytes(content[k:k + scalar.itemsize]), scalar) for k in range(0, len(content), scalar.itemsize)]
  return executed

def check(kernel: UOp, arch: str, data: dict[int, list[Any]] | None = None, optimized: bool = True, tolerance: float = 0.0, what: str = "",
          meaning: UOp | None = None) -> None:
  """Compile a kernel, execute it, and compare with the interpreter. optimized: heuristics spread it over lanes; meaning: what it was before."""
  known, capable = data or data_for(kernel), capabilities(arch)
  wanted, found = ({k: list(v) for k, v in known.items()} for _ in range(2))
  evaluate(kernel if meaning is None else meaning, wanted)
  execute(lower(optimize(kernel, capable) if optimized else kernel, capable, "test"), arch, found)
  compare(f"{arch} {what}", wanted, found, tolerance)

def value_of(x: Any, variables: Mapping[str, int]) -> int:
  """A grid under values of the variables."""
  if isinstance(x, int): return x
  return int(x.substitute({v: v.const_like(variables[v.arg[0]]) for v in x.variables()}).simplify().arg)
