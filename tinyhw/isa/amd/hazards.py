"""What the hardware does not notice: instructions that come too soon behind another one are held back.

A rule says: an instruction of the first kind that writes (or reads) registers, then one of the second kind that touches them, with fewer than so many
*states* between them. A state is an issued instruction of the kinds that the rule counts. The states that registers still lack flow through the
blocks; where paths meet the larger number holds, and where something is lacking the cure is put before the second instruction.

Sources: LLVM, GCNHazardRecognizer; Mesa, src/amd/compiler/README-ISA.md; MI300 ISA guide, section 4.5; RDNA3 ISA guide, section 5.7.
"""
from __future__ import annotations
import functools
from collections.abc import Callable, Iterable
from typing import NamedTuple

from tinyhw.isa.amd import regs
from tinyhw.isa.amd.form import Form
from tinyhw.isa.amd.matrix import PASSES
from tinyhw.isa.amd.table import Table, build, table
from tinyhw.machine.flow import rewrite
from tinyhw.machine.inst import Block, Function, MInst, Reg
from tinyhw.machine.moves import units_of
from tinyhw.machine.target import Target

Unit = tuple[str, int]
Units = Callable[[MInst], Iterable[Unit]]

# ***** what instructions touch *****

def named(inst: MInst, names: tuple[str, ...]) -> list[Unit]:
  """Registers that an instruction uses without saying so."""
  return [("sgpr", regs.SPECIAL[n][0] + k) for n in names if n in regs.SPECIAL for k in range(regs.SPECIAL[n][1])]

def written(inst: MInst) -> list[Unit]:
  form: Form = inst.row.isa
  return [unit for r in inst.writes() for unit in units_of(r)] + named(inst, form.writes)

def read(inst: MInst) -> list[Unit]:
  form: Form = inst.row.isa
  return [unit for r in inst.reads() if isinstance(r, Reg) for unit in units_of(r)] + named(inst, tuple(n for n in form.reads if n != "exec"))

def name_of(unit: Unit) -> str:
  """s4, v5, vcc_lo."""
  bank, index = unit
  return regs.s(index).cls.name_of(index) if bank == "sgpr" else f"{bank[0]}{index}"

def of_bank(units: Iterable[Unit], bank: str) -> list[Unit]: return [unit for unit in units if unit[0] == bank]

VALU = frozenset({"valu", "trans", "f64", "dot", "wmma", "mfma"})

def writes(bank: str, *pipes: str) -> Units:
  """Registers of a bank that instructions of these pipes write."""
  kinds = frozenset(pipes) or VALU
  return lambda inst: of_bank(written(inst), bank) if inst.row.pipe in kinds else ()

def reads(bank: str, *pipes: str, name: str = "") -> Units:
  """Registers of a bank that instructions of these pipes, with this beginning of their names, read."""
  kinds = frozenset(pipes) or VALU
  return lambda inst: of_bank(read(inst), bank) if inst.row.pipe in kinds and inst.row.name.startswith(name) else ()

def stored_wide(inst: MInst) -> list[Unit]:
  """The data of a store of more than 8 bytes."""
  if inst.row.pipe != "vmem" or "store" not in inst.row.isa.words: return []
  data = inst.operands[inst.row.isa.index["vdata"]]
  return units_of(data) if isinstance(data, Reg) and data.cls.units > 2 else []

def factors(inst: MInst) -> list[Unit]:
  """A and B of a product of matrices."""
  if inst.row.pipe not in ("wmma", "mfma"): return []
  return [unit for o, r in zip(inst.row.operands, inst.operands) if o.name in ("src0", "src1") and isinstance(r, Reg) for unit in units_of(r)]

# ***** rules *****

def any_instruction(inst: MInst) -> bool: return True

def vector_instruction(inst: MInst) -> bool: return inst.row.pipe in VALU

class Rule(NamedTuple):
  """first, then: the registers by which an instruction is of that kind. states: how many must be between, or what tells it of the first instruction.
  cure: "nop", "result" (wait until vector results are there) or "vector" (any vector instruction)."""
  first: Units
  then: Units
  states: int | Callable[[MInst], int]
  counts: Callable[[MInst], bool] = any_instruction
  cure: str = "nop"

def touches(inst: MInst) -> list[Unit]:
  """Vector registers that an instruction reads or writes, but those of a sum that a product of matrices goes on with: they are passed on inside."""
  units = [*read(inst), *written(inst)]
  if inst.row.pipe == "mfma":
    form: Form = inst.row.isa
    total, result = inst.operands[form.index["src2"]], inst.operands[0]
    if total == result: units = factors(inst)
  return of_bank(units, "vgpr")

def results_of_products(inst: MInst) -> int:
  """States until the result of a product of matrices is there: its passes and 3, on CDNA4 4. Source: MI300 and CDNA4 ISA guides, section 4.5."""
  passes = PASSES.get(inst.row.name, 16)
  return passes + 3 + (inst.row.isa.generation.name == "gfx950" and passes != 2)

RULES: dict[str, tuple[Rule, ...]] = {
  "cdna": (
    Rule(writes("vgpr", "mfma"), touches, results_of_products),
    Rule(writes("vgpr", *(VALU - {"mfma"})), reads("vgpr", "mfma"), 2),
    Rule(writes("sgpr"), reads("sgpr"), 2),
    Rule(writes("sgpr"), reads("sgpr", name="v_div_fmas"), 4),
    Rule(writes("sgpr"), reads("sgpr", "vmem"), 5),
    Rule(writes("sgpr"), reads("sgpr", name="v_readlane"), 4),
    Rule(writes("sgpr"), reads("sgpr", name="v_writelane"), 4),
    Rule(writes("vgpr"), reads("vgpr", name="v_read"), 1),
    Rule(writes("vgpr", "trans"), reads("vgpr", *(VALU - {"trans"})), 1),
    Rule(stored_wide, writes("vgpr"), 2),
  ),
  "rdna3": (
    Rule(writes("vgpr", "trans"), reads("vgpr"), 6, vector_instruction, "result"),
    Rule(writes("vgpr", "wmma"), factors, 1, vector_instruction, "vector"),
  ),
  "rdna4": (
    Rule(writes("vgpr", "wmma"), factors, 1, vector_instruction, "vector"),
  ),
}

State = dict[tuple[int, Unit], int]  # (number of a rule, register) -> states that are still lacking

class Recognizer:
  """The pass over one function."""
  def __init__(self, function: Function, rows: Table):
    self.function, self.rows = function, rows
    self.rules = RULES[rows.generation.family]

  def run(self) -> None:
    start: State = {}
    rewrite(self.function.blocks, start, self.walk, self.meet)

  def meet(self, known: State | None, state: State) -> State | None:
    if known is None: return dict(state)
    if all(known.get(key, 0) >= states for key, states in state.items()): return None
    return known | {key: max(states, known.get(key, 0)) for key, states in state.items()}

  def walk(self, block: Block, start: State, out: list[MInst]) -> State:
    state = dict(start)
    for inst in block.insts:
      lacking: dict[str, tuple[int, Unit]] = {}  # cure -> states, and the register that lacks them
      for number, rule in enumerate(self.rules):
        found = [(state[number, unit], unit) for unit in rule.then(inst) if (number, unit) in state]
        if found: lacking[rule.cure] = max(found + [lacking[rule.cure]] if rule.cure in lacking else found)
      for cure, (states, unit) in lacking.items():
        for new in self.cures(cure, states, state):
          new.origin, new.comment = inst.origin, f"hazard: {name_of(unit)} in {states} state{'s' if states > 1 else ''}"
          self.issue(state, new, out)
      self.issue(state, inst, out)
    return state

  def cures(self, cure: str, states: int, state: State) -> list[MInst]:
    """The instructions that hold one back."""
    if cure == "nop": return [build(self.rows["s_nop"], min(states - passed, MOST_NOPS) - 1) for passed in range(0, states, MOST_NOPS)]
    if cure == "vector": return [build(self.rows["v_nop"]) for _ in range(states)]
    for key in [key for key in state if self.rules[key[0]].cure == cure]: del state[key]
    return [build(self.rows["s_waitcnt_depctr"], VECTOR_RESULTS)]

  def issue(self, state: State, inst: MInst, out: list[MInst]) -> None:
    """An instruction goes its way; for what it starts, all states are lacking."""
    passed = 1 + inst.operands[0] if inst.row.name == "s_nop" else 1
    counted = [passed if rule.counts(inst) else 0 for rule in self.rules]
    for key in list(state):
      state[key] -= counted[key[0]]
      if state[key] <= 0: del state[key]
    for number, rule in enumerate(self.rules):
      for unit in rule.first(inst): state[number, unit] = rule.states if isinstance(rule.states, int) else rule.states(inst)
    out.append(inst)

MOST_NOPS = 16           # that one s_nop is
VECTOR_RESULTS = 0x0f9f  # of s_waitcnt_depctr: until va_vdst is 0

# ***** RDNA4: scalar registers that the vector unit has read *****

SCALAR_RESULTS, VECTOR_SCALARS = 0xff9e, 0xf19f  # of s_wait_alu: until sa_sdst is 0; until va_sdst is 0
VECTOR_VCC = 0xff9d                              # until va_vcc is 0

def wait_for_scalars(function: Function, rows: Table) -> None:
  """ERRATA a pair of scalar registers that a vector instruction read, was written since and is read again may give the old value to a vector
  instruction, and what a scalar instruction wrote also to a scalar one; waiting for the writer avoids it; seen on gfx1200, gfx1201. Scalar loads and
  buffer instructions end it too. Blocks begin and end with all writers waited for.
  """
  seen = {unit[1] >> 1 for block in function.blocks for inst in block.insts if inst.row.pipe in VALU for unit in of_bank(read(inst), "sgpr")}
  for block in function.blocks:
    out: list[MInst] = []
    pending: dict[int, int] = {}  # pair -> mask of s_wait_alu
    for inst in block.insts:
      vector = inst.row.pipe in VALU
      pairs = {unit[1] >> 1 for unit in of_bank(read(inst), "sgpr")} if vector or inst.row.pipe == "salu" else set()
      leaving = inst is block.insts[-1]
      mask = 0xffff
      for pair, needed in pending.items():
        if pair in pairs and vector or leaving: mask &= needed
        elif pair in pairs and not needed & 1: mask &= SCALAR_RESULTS  # scalar instructions wait for vector ones by themselves
      if mask != 0xffff:
        out.append(build(rows["s_wait_alu"], mask))
        out[-1].origin, out[-1].comment = inst.origin, "hazard: scalars"
        pending = {pair: needed for pair, needed in pending.items() if needed & mask != mask}
      out.append(inst)
      if inst.row.pipe == "smem" or inst.row.name.startswith("buffer_"): pending.clear()
      for unit in of_bank(written(inst), "sgpr"):
        pair = unit[1] >> 1
        if pair in seen and inst.row.pipe != "smem": pending[pair] = pending.get(pair, 0xffff) & kind_of_write(vector, unit[1])
    if pending: out.append(build(rows["s_wait_alu"], functools.reduce(int.__and__, pending.values())))  # the last instruction, no jump, has written
    block.insts = out

def kind_of_write(vector: bool, index: int) -> int:
  """The mask of s_wait_alu that waits for a write."""
  if not vector: return SCALAR_RESULTS
  return VECTOR_VCC if index in (regs.VCC, regs.VCC + 1) else VECTOR_SCALARS

def avoid_hazards(function: Function, target: Target) -> Function:
  """The function with its hazards cured."""
  rows = table(target.table.generation.arch)
  Recognizer(function, rows).run()
  if rows.generation.family == "rdna4": wait_for_scalars(function, rows)
  return function
