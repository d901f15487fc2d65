"""Unused results of warps' instructions (unused.py). A guarded write overwrites nothing, since other lanes keep the old
value. Code with jumps to addresses in registers (calls, indirect branches) is not checked.
"""
from __future__ import annotations
import functools

from tinyhw.emulator.checks.unused import InstructionNode, refuse, unused
from tinyhw.emulator.nvidia.checks.reachable import successors, reachable
from tinyhw.emulator.nvidia.execute.decoded import DecodedInstruction, DecodedCode
from tinyhw.emulator.nvidia.warp.launch import LaunchParameters
from tinyhw.isa.sass.asm.encode import BYTES
from tinyhw.isa.sass.asm.syntax import show
from tinyhw.isa.sass.table import regs
from tinyhw.machine.ir.inst import Effect

SCALAR = frozenset({"UR", "UP", "B"})

def check(launch: LaunchParameters, decoder: DecodedCode) -> None:
  """Raise UnusedResult for a kernel with results that no path reads."""
  found, whole = reachable(launch.code, decoder)
  if not whole: return
  code = tuple((at - launch.code, decoder.read(at, BYTES)) for at in sorted(found))
  refuse(looked_at(launch.arch, code), f"kernel {launch.name}")

@functools.lru_cache(maxsize=256)
def looked_at(arch: str, code: tuple[tuple[int, bytes], ...]) -> tuple[tuple[int, str], ...]:
  """Return (offset, text) of the instructions with unused results. code: offsets and bytes of all reachable
  instructions."""
  pieces = dict(code)
  decoder = DecodedCode(arch, lambda at, size: pieces[at])
  return unused({at: node(decoder.at(at), at) for at in pieces}, SCALAR)

def node(step: DecodedInstruction, at: int) -> InstructionNode:
  """Return an instruction with its reads and writes."""
  reads, writes = frozenset(unit for unit, _ in step.uses.reads), frozenset(step.uses.writes)
  results = () if step.inst.row.effects & (Effect.STORE | Effect.BARRIER) else (writes,)
  return InstructionNode(show(step.inst, step.control), reads, writes if step.guard == regs.TRUE else frozenset(),
                         results, False,
                         tuple(successors(step, at)))
