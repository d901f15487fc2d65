"""Code of a CPU whose instructions are words of 32 bits, with its listing and the
bounds of its innermost loops, for DEBUG=7.

An ISA's describe.py has what its instructions do (`InstructionInfo`), and the model of a core.
"""
from __future__ import annotations
import functools
from collections.abc import Callable, Sequence

from tinyhw.machine.assembler.encode import BYTES
from tinyhw.machine.ir.code import Code
from tinyhw.machine.ir.inst import Function, MInst
from tinyhw.machine.ir.target import Target
from tinyhw.machine.model.core_tables import CoreTable
from tinyhw.machine.model.listing import EncodedInst, InstructionInfo, listing
from tinyhw.machine.model.listing_core import Core, bound_lines
from tinyhw.machine.passes import cpu_code
from tinyhw.uop.program import Program

Assembled = tuple[Function, bytes, list[tuple[int, MInst]]]   # the laid out function, its bytes, and offsets in them

class CpuLister:
  """Listings of an ISA.

  - assemble: a program for an arch string. target: the Target of that.
  - table: the table of a microarchitecture. peak: of a table for an arch string, the highest floating-point operations
    a cycle for elements like those of these instructions; 0 if they have none.
  - show, touched, operations: as in InstructionInfo, for an arch string.
  """

  def __init__(self, assemble: Callable[[Program, str], Assembled], target: Callable[[str], Target],
               table: Callable[[str], CoreTable],
               peak: Callable[[CoreTable, str], Callable[[Sequence[MInst]], float]],
               show: Callable[[MInst], str], touched: Callable[[MInst, str], int],
               operations: Callable[[MInst], int]):
    self.assemble, self.target, self.table, self.peak = assemble, target, table, peak
    self.show, self.touched, self.operations = show, touched, operations

  def core(self, name: str, arch: str) -> Core:
    """The model of a processor for the bounds of a listing."""
    table = self.table(name)
    return Core(table.title, table.source, table.issue_width, table.ports, table.costs, self.peak(table, arch))

  def described(self, program: Program, arch: str, microarchitecture: str) -> tuple[Function, bytes, str]:
    """The laid out function, its bytes and its listing."""
    function, text, places = self.assemble(program, arch)
    lines = [EncodedInst(offset, text[offset:offset + BYTES], inst) for offset, inst in places]
    target, grid = self.target(arch), program.grid if isinstance(program.grid, int) else None
    info = InstructionInfo(self.show, lambda inst: self.touched(inst, arch), self.operations,
                           functools.partial(bound_lines, self.core(microarchitecture, arch)))
    return function, text, listing(function, lines, target.banks, info, grid, target.allocatable, program.uops)

  def compile_listed(self, program: Program, arch: str, microarchitecture: str = "") -> tuple[Code, str]:
    """Compile a program as target.compile does, and return the listing too."""
    function, text, made = self.described(program, arch, microarchitecture)
    return cpu_code(program, arch, function, text), made

  def bounds(self, program: Program, arch: str, microarchitecture: str = "") -> list[str]:
    """The lines about the limits of the innermost loops, without the listing."""
    made = self.described(program, arch, microarchitecture)[2].splitlines()
    start = next((k for k, line in enumerate(made) if line.startswith("bound of ")), len(made))
    return made[start:]
