"""Avoid RDNA hazards of three instructions, which no rule about two (hazards.py) can describe.

Scalar registers: a vector instruction reads one, then it is written, then it is read again. The last read may return
the old value, so it waits for the writer. On RDNA4 (VALUReadSGPR) this is a hazard of any register, and of both
registers of a pair. A scalar load or a buffer instruction ends it. On RDNA3 in waves of 64 (VALUMaskWrite) it is a
hazard of registers that were read as lane masks.

Vector registers (VALUPartialForwarding), RDNA3 in waves of 64: one is written, a scalar instruction writes exec,
another one is written, and an instruction reads both. An access to memory or a wait for vector results ends it. Macros
put an access between any two writes of exec, so that our kernels have none of these hazards. The pass is there for
future code.

Needs: code after `avoid_hazards`. Sources: LLVM, AMDGPUWaitSGPRHazards, GCNHazardRecognizer (fixVALUMaskWriteHazard,
fixVALUPartialForwardingHazard).
"""
from __future__ import annotations
import functools
from collections.abc import Callable

from tinyhw.isa.amd.late.hazards import (
  EXEC_BITS, SGPR, VALU, VECTOR_RESULTS, VGPR, bits, indices, name_of, named, read, written)
from tinyhw.isa.amd.table import regs
from tinyhw.isa.amd.table.form import Form
from tinyhw.isa.amd.table.table import Table, build, table
from tinyhw.machine.ir.flow import rewrite
from tinyhw.machine.ir.inst import Access, Block, Function, MInst, Reg
from tinyhw.machine.ir.target import Target
from tinyhw.named_tuple import NamedTuple

# ***** scalar registers that the vector unit has read *****

SCALAR_RESULTS, VECTOR_SCALARS = 0xff9e, 0xf19f  # operands of the wait: until sa_sdst is 0; until va_sdst is 0
VECTOR_VCC = 0xff9d                              # until va_vcc is 0

def masks(inst: MInst) -> int:
  """The scalar registers that a vector instruction reads as lane masks."""
  form: Form = inst.row.isa
  found = [r for spec, r in zip(form.specs, inst.operands) if spec.type is not None and spec.type.name == "mask"
           and spec.access is Access.READ]
  return bits([r for r in found if isinstance(r, Reg)], SGPR) | (named(("vcc",)) if "vcc" in form.reads else 0)

class Reread(NamedTuple):
  """A chip's hazard of scalar registers.

  - counts: the registers of a vector instruction that begin the hazard.
  - unit: the number of registers that count as one.
  - wait: the instruction that waits for the writer.
  - ended: whether accesses to memory end the hazard.
  """
  counts: Callable[[MInst], int]
  unit: int
  wait: str
  ended: bool

RDNA4 = Reread(lambda inst: read(inst, SGPR), 2, "s_wait_alu", True)
RDNA3_WAVE64 = Reread(masks, 1, "s_waitcnt_depctr", False)

def wait_for_scalars(function: Function, rows: Table, hazard: Reread) -> None:
  """Wait for writers of scalar registers whose old value might be read. Blocks begin and end with all writers waited
  for.

  ERRATA a scalar register (or pair) that a vector instruction read and that was written since may give the old value
  when it is read again. Vector instructions may get the old value after any write, scalar ones after a write by a
  scalar instruction. Waiting for the writer avoids it; seen on gfx1200, gfx1201, and for masks on gfx1100 with 64
  lanes.
  """
  vectors = [inst for block in function.blocks for inst in block.insts if inst.row.pipe in VALU]
  seen = {index // hazard.unit for inst in vectors for index in indices(hazard.counts(inst))}
  if not seen: return
  for block in function.blocks:
    out: list[MInst] = []
    pending: dict[int, int] = {}  # register or pair -> mask of the wait
    for inst in block.insts:
      vector = inst.row.pipe in VALU
      used = ({index // hazard.unit for index in indices(read(inst, SGPR))} if vector or inst.row.pipe == "salu"
              else set())
      leaving = inst is block.insts[-1]
      mask = 0xffff
      for unit, needed in pending.items():
        if unit in used and vector or leaving: mask &= needed
        # scalar instructions wait for vector ones by themselves
        elif unit in used and not needed & 1: mask &= SCALAR_RESULTS
      if mask != 0xffff:
        out.append(build(rows[hazard.wait], mask))
        out[-1].origin, out[-1].comment = inst.origin, "hazard: scalars"
        pending = {unit: needed for unit, needed in pending.items() if needed & mask != mask}
      out.append(inst)
      if hazard.ended and (inst.row.pipe == "smem" or inst.row.name.startswith("buffer_")): pending.clear()
      for index in indices(written(inst, SGPR)) if inst.row.pipe != "smem" else ():
        unit = index // hazard.unit
        if unit in seen: pending[unit] = pending.get(unit, 0xffff) & kind_of_write(vector, index)
    # the last instruction is no jump and has written a register
    if pending: out.append(build(rows[hazard.wait], functools.reduce(int.__and__, pending.values())))
    block.insts = out

def kind_of_write(vector: bool, index: int) -> int:
  """The mask of the wait for a write."""
  if not vector: return SCALAR_RESULTS
  return VECTOR_VCC if index in (regs.VCC, regs.VCC + 1) else VECTOR_SCALARS

# ***** vector registers written before and after a write of exec *****

RECENT = 3   # vector instructions before a write of exec whose results count: at most two between such a one and exec
FAR = 8      # vector instructions after it that count: at most two, the second writer, four, and the reader
MEMORY = ("vmem", "flat", "lds")

class ExecWrites(NamedTuple):
  """Vector registers written around a write of exec.

  - recent: those written by the last vector instructions, the last one first.
  - before, since: those written before and after the write of exec.
  - left: the number of vector instructions for which these count.
  """
  recent: tuple[int, ...] = ()
  before: int = 0
  since: int = 0
  left: int = 0

def after(inst: MInst, state: ExecWrites) -> ExecWrites:
  """The state after an instruction."""
  pipe, (recent, before, since, left) = inst.row.pipe, state
  if pipe in MEMORY: return ExecWrites()
  if pipe in VALU:
    wrote = written(inst, VGPR)
    recent = (wrote, *recent)[:RECENT]
    return ExecWrites(recent, before & ~wrote, since | wrote, left - 1) if left > 1 else ExecWrites(recent)
  if not written(inst, SGPR) & EXEC_BITS: return state
  return ExecWrites((), functools.reduce(int.__or__, recent, before), since if left else 0, FAR)

def wait_for_halves(function: Function, rows: Table) -> None:
  """Wait for vector results before an instruction that reads registers written before and after a write of exec.

  ERRATA a vector instruction that reads two registers, one written before and one after a write of exec by a scalar
  instruction, may see only parts of them; waiting for vector results avoids it; on gfx1100 with 64 lanes.
  """
  if not any(inst.row.pipe == "salu" and written(inst, SGPR) & EXEC_BITS for block in function.blocks
             for inst in block.insts):
    return

  def walk(block: Block, state: ExecWrites, out: list[MInst]) -> ExecWrites:
    for inst in block.insts:
      used = read(inst, VGPR) if state.left and inst.row.pipe in VALU else 0
      if used & state.before and used & state.since:
        out.append(build(rows["s_waitcnt_depctr"], VECTOR_RESULTS))
        out[-1].origin, out[-1].comment = (inst.origin, f"hazard: {name_of(VGPR, used & state.before)}, exec, "
                                           f"{name_of(VGPR, used & state.since)}")
        state = ExecWrites()
      out.append(inst)
      state = after(inst, state)
    return state

  rewrite(function.blocks, ExecWrites(), walk, meet)

def meet(known: ExecWrites | None, state: ExecWrites) -> ExecWrites | None:
  """Merge the possible states where two paths meet. None if `known` covers `state`."""
  if known is None: return state
  longer, shorter = sorted((known.recent, state.recent), key=len, reverse=True)
  recent = tuple(a | (shorter[k] if k < len(shorter) else 0) for k, a in enumerate(longer))
  both = ExecWrites(recent, known.before | state.before, known.since | state.since, max(known.left, state.left))
  return both if both != known else None

def avoid_chains(function: Function, target: Target) -> Function:
  """Insert waits for the hazards of three instructions, on RDNA."""
  rows = table(target.table.generation.arch)
  generation = rows.generation
  if generation.family == "rdna4": wait_for_scalars(function, rows, RDNA4)
  if generation.family == "rdna3" and generation.wave == 64:
    wait_for_scalars(function, rows, RDNA3_WAVE64)
    wait_for_halves(function, rows)
  return function
