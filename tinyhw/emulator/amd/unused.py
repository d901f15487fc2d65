"""Unused results of AMD instructions (unused.py). Only a write with at least the lanes of the first writer overwrites a
vector register: after a change of EXEC the old value lives. Code with jumps to addresses in registers (calls,
s_setpc_b64) is not checked.
"""
from __future__ import annotations
import functools
from collections.abc import Callable

from tinyhw.emulator.amd.execute.decoded import DecodedCode
from tinyhw.emulator.amd.registers import DispatchRegisters
from tinyhw.emulator.checks.unused import InstructionNode, Register, refuse, unused
from tinyhw.emulator.errors import OutOfBounds
from tinyhw.errors import DecodeError
from tinyhw.isa.amd.asm.decode import decoder
from tinyhw.isa.amd.asm.syntax import show
from tinyhw.isa.amd.table import regs
from tinyhw.machine.ir.inst import Access, Effect, MInst, Reg

SCC = ("sgpr", regs.READ_ONLY["src_scc"])
EXEC = {("sgpr", regs.EXEC), ("sgpr", regs.EXEC + 1)}
NULL = ("sgpr", regs.NULL)
ANYWHERE = ("s_setpc", "s_swappc", "s_call", "s_rfe", "s_movrel", "v_movrel", "s_set_gpr_idx", "s_subvector")
SCALAR = frozenset({"sgpr"})

def check(registers: DispatchRegisters, reader: Callable[[int, int], bytes]) -> None:
  """Raise UnusedResult for a kernel with results that no path reads. reader: see wave.Workgroup."""
  entry, cdna = registers.code, registers.arch.startswith("gfx9")
  arch = registers.arch if cdna or registers.wave_size == 32 else f"{registers.arch}:wave64"
  found: dict[int, bytes] = {}
  work, one, fetch = [entry], decoder(arch), DecodedCode(registers.arch, registers, reader).fetch
  while work:
    at = work.pop()
    if at in found: continue
    try:
      code = fetch(at)
      inst, size = one(code, 0)
    except (OutOfBounds, DecodeError): return  # a wave that comes there raises it
    if inst.row.isa.key.startswith(ANYWHERE): return
    found[at] = code[:size]
    work += follow(inst, at, size)
  lines = looked_at(arch, tuple((at - entry, code) for at, code in sorted(found.items())))
  refuse(lines, registers.describe())

def follow(inst: MInst, at: int, size: int) -> list[int]:
  """Return the possible addresses of the next instruction."""
  name = inst.row.isa.key
  if name.startswith("s_endpgm"): return []
  if not name.startswith(("s_branch", "s_cbranch")): return [at + size]
  goal = at + size + 4 * ((inst.operands[0] & 0xffff ^ 0x8000) - 0x8000)
  return [goal] if name == "s_branch" else [goal, at + size]

@functools.lru_cache(maxsize=256)
def looked_at(arch: str, code: tuple[tuple[int, bytes], ...]) -> tuple[tuple[int, str], ...]:
  """Return (offset, text) of the instructions with unused results. code: offsets and bytes of all reachable
  instructions."""
  one = decoder(arch)
  return unused({at: node(one(piece, 0)[0], at, len(piece)) for at, piece in code}, SCALAR)

def node(inst: MInst, at: int, size: int) -> InstructionNode:
  """Return an instruction with its reads and writes."""
  form = inst.row.isa
  reads: set[Register] = set()
  writes: set[Register] = set()
  for operand, value in zip(inst.row.operands, inst.operands):
    if not isinstance(value, Reg) or value.index is None: continue
    units = [(value.cls.bank.name, value.index + k) for k in range(value.cls.units)]
    if operand.access & Access.READ: reads.update(units)
    if operand.access & Access.WRITE: writes.update(units)
  written = writes - EXEC - {NULL}
  for names, found in ((form.reads, reads), (form.writes, writes)):
    for name in names: found.update(implied(name, form.generation.wave))
  changes_exec = bool(writes & EXEC)
  results = [written if changes_exec else writes - {NULL}]
  if inst.row.effects & (Effect.STORE | Effect.BARRIER): results = []
  # two operations, of 32 bits each
  elif inst.row.pipe == "dual": results = [{(r.cls.bank.name, r.index or 0)} for r in inst.writes()]
  return InstructionNode(show(inst), frozenset(reads), frozenset(writes), tuple(map(frozenset, results)), changes_exec,
                         tuple(follow(inst, at, size)))

def implied(name: str, wave: int) -> list[Register]:
  """Return the registers of a name that is not an operand."""
  if name == "scc": return [SCC]
  first, count = regs.SPECIAL.get(name, (0, 0))
  return [("sgpr", first + k) for k in range(count if wave == 64 or name not in ("vcc", "exec") else min(count, 1))]
