"""Programs compiled for NVIDIA GPUs and executed by the emulator's warps, in flat memory: what tests of selection compare with the interpreter."""
from __future__ import annotations
from collections.abc import Mapping
from typing import Any

from test.codegen.kernels import compare, data_for
from tinyhw.arithmetic import from_bytes, to_bytes
from tinyhw.codegen.optimize import optimize
from tinyhw.codegen.passes import lower
from tinyhw.codegen.program import Program
from tinyhw.emulator.memory import FlatMemory
from tinyhw.emulator.nvidia.block import Block
from tinyhw.emulator.nvidia.launch import Launch
from tinyhw.isa.sass.abi import ABI
from tinyhw.isa.sass.capabilities import capabilities, generation_of
from tinyhw.isa.sass.target import compile
from tinyhw.machine.code import Code
from tinyhw.uop.evaluate import evaluate
from tinyhw.uop.ops import UOp

ARCHS = ("sm_80", "sm_89", "sm_90")
CODE, BUFFERS, APART = 0x7f00_0000_0000, 0x7f20_0000_0000, 1 << 32

def launch_of(code: Code, slots: bytes, blocks: int) -> Launch:
  """The launch of a kernel with these arguments."""
  start, counts = ABI[generation_of(code.arch).name], dict(code.registers)
  constants = bytearray(start.arguments) + slots
  return Launch(code.name, code.arch, CODE, counts["r"], bytes(constants), threads=code.lanes, blocks=blocks,
                shared_bytes=start.shared + code.local_bytes, local_bytes=code.private_bytes, barriers=counts["barrier"])

def execute(program: Program, arch: str, data: dict[int, list[Any]], variables: Mapping[str, int] | None = None, seed: int = 0) -> int:
  """Run all blocks over the contents of buffers (slot -> values, changed in place); the number of instructions executed by warps."""
  code, memory = compile(program, arch), FlatMemory()
  memory.add(CODE, bytearray(code.text))
  contents: dict[int, bytearray] = {}
  slots = b""
  for k, param in enumerate(program.params):
    scalar, values = param.dtype.scalar(), data[param.arg[0]]
    contents[param.arg[0]] = bytearray(b"".join(to_bytes(x, scalar) for x in values))
    memory.add(BUFFERS + k * APART, contents[param.arg[0]])
    slots += (BUFFERS + k * APART).to_bytes(8, "little")
  for variable in program.variables: slots += (variables or {})[variable.arg[0]].to_bytes(8, "little", signed=True)
  launch = launch_of(code, slots, value_of(program.grid, variables or {}))
  decoder, executed = None, 0
  for number in range(launch.blocks):
    block = Block(launch, number, memory, seed + number, decoder)
    decoder, executed = block.decoder, executed + block.run()
  for param in program.params:
    scalar, content = param.dtype.scalar(), contents[param.arg[0]]
    data[param.arg[0]][:] = [from_bytes(bytes(content[k:k + scalar.itemsize]), scalar) for k in range(0, len(content), scalar.itemsize)]
  return executed

def check(kernel: UOp, arch: str, data: dict[int, list[Any]] | None = None, optimized: bool = True, tolerance: float = 0.0, what: str = "") -> None:
  """Compile a kernel, execute it, and compare with the interpreter. optimized: the heuristics spread it over lanes."""
  known, capable = data or data_for(kernel), capabilities(arch)
  expected, found = ({k: list(v) for k, v in known.items()} for _ in range(2))
  evaluate(kernel, expected)
  execute(lower(optimize(kernel, capable) if optimized else kernel, capable, "test"), arch, found)
  compare(f"{arch} {what}", expected, found, tolerance)

def value_of(x: Any, variables: Mapping[str, int]) -> int:
  """A grid under values of the variables."""
  if isinstance(x, int): return x
  return int(x.substitute({v: v.const_like(variables[v.arg[0]]) for v in x.variables()}).simplify().arg)
