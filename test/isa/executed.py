"""Execution of programs by a virtual processor in flat memory, compared with the interpreter: the part common to all
vendors' GPUs."""
from __future__ import annotations
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from test.codegen.kernels import compare, data_for
from tinyhw.arithmetic import from_bytes, to_bytes
from tinyhw.codegen.optimize import optimize
from tinyhw.codegen.passes import lower
from tinyhw.emulator.memory.memory import FlatMemory
from tinyhw.machine.ir.code import Code
from tinyhw.machine.ir.target import Capabilities
from tinyhw.uop.evaluate.evaluate import evaluate
from tinyhw.uop.ops import UOp
from tinyhw.uop.program import Program

CODE, DESCRIPTORS, BUFFERS, APART = 0x7f00_0000_0000, 0x7f10_0000_0000, 0x7f20_0000_0000, 1 << 32

@dataclass(frozen=True)
class Machine:
  """A vendor's GPUs.

  run(code, arguments, workgroups, memory, seed) executes the code at CODE, and counts the instructions of all waves.
  arguments: the slots of 8 bytes with the kernel's arguments.
  """
  archs: tuple[str, ...]
  capabilities: Callable[[str], Capabilities]
  compile: Callable[[Program, str], Code]
  run: Callable[[Code, bytes, int, FlatMemory, int], int]

  def execute(self, program: Program, arch: str, data: dict[int, list[Any]], variables: Mapping[str, int] | None = None,
              seed: int = 0) -> int:
    """Run all workgroups over the contents of buffers (slot -> values, changed in place). Returns the number of
    instructions executed by waves."""
    code, memory, values = self.compile(program, arch), FlatMemory(), variables or {}
    memory.add(CODE, bytearray(code.text))
    contents: dict[int, bytearray] = {}
    slots = b""
    for k, param in enumerate(program.params):
      scalar = param.dtype.scalar()
      contents[param.arg[0]] = bytearray(b"".join(to_bytes(x, scalar) for x in data[param.arg[0]]))
      memory.add(BUFFERS + k * APART, contents[param.arg[0]])
      slots += (BUFFERS + k * APART).to_bytes(8, "little")
    for variable in program.variables: slots += values[variable.arg[0]].to_bytes(8, "little", signed=True)
    maps = [(int.from_bytes(made[:8], "little") + BUFFERS + number * APART).to_bytes(8, "little") + made[8:]
            for number, made in code.descriptors]
    if maps:
      memory.add(DESCRIPTORS, bytearray(b"".join(maps)))
      slots += DESCRIPTORS.to_bytes(8, "little")
    executed = self.run(code, slots, value_of(program.grid, values), memory, seed)
    for param in program.params:
      scalar, content = param.dtype.scalar(), contents[param.arg[0]]
      data[param.arg[0]][:] = [from_bytes(bytes(content[k:k + scalar.itemsize]), scalar)
                               for k in range(0, len(content), scalar.itemsize)]
    return executed

  def check(self, kernel: UOp, arch: str, data: dict[int, list[Any]] | None = None, optimized: bool = True,
            tolerance: float = 0.0, what: str = "",
            meaning: UOp | None = None) -> None:
    """Compile a kernel, execute it, and compare with the interpreter. optimized: heuristics spread it over lanes;
    meaning: the kernel before that."""
    known, capable = data or data_for(kernel), self.capabilities(arch)
    wanted = evaluated(kernel if meaning is None else meaning, repr(known), known)
    found = {k: list(v) for k, v in known.items()}
    self.execute(lower(optimize(kernel, capable) if optimized else kernel, capable, "test"), arch, found)
    compare(f"{arch} {what}", wanted, found, tolerance)

_evaluated: dict[tuple[UOp, str], dict[int, list[Any]]] = {}
_MOST_EVALUATED = 32

def evaluated(kernel: UOp, key: str, known: dict[int, list[Any]]) -> dict[int, list[Any]]:
  """The buffers after a kernel, by the interpreter; remembered for other archs. key: the text of the buffers before."""
  if (kernel, key) not in _evaluated:
    found = {k: list(v) for k, v in known.items()}
    evaluate(kernel, found)
    if len(_evaluated) == _MOST_EVALUATED: del _evaluated[next(iter(_evaluated))]   # the oldest one
    _evaluated[kernel, key] = found
  return _evaluated[kernel, key]

def value_of(x: Any, variables: Mapping[str, int]) -> int:
  """A grid under values of the variables."""
  if isinstance(x, int): return x
  return int(x.substitute({v: v.const_like(variables[v.arg[0]]) for v in x.variables()}).simplify().arg)
