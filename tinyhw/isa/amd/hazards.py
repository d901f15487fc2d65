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
from tinyhw.machine.inst import Block, Function, Inst, MInst, Reg
from tinyhw.machine.moves import units_of
from tinyhw.machine.target import Target

Unit = tuple[str, int]

# ***** what instructions touch *****

EXEC = (regs.EXEC, regs.EXEC + 1)  # nearly all read it; that is none of the rules' business

@functools.lru_cache(None)
def named(names: tuple[str, ...]) -> list[Unit]:
  """Registers that an instruction uses without saying so."""
  return [("sgpr", regs.SPECIAL[n][0] + k) for n in names if n in regs.SPECIAL for k in range(regs.SPECIAL[n][1])]

def written(inst: MInst) -> list[Unit]:
  form: Form = inst.row.isa
  found = [unit for r in inst.writes() for unit in units_of(r)]
  return found + named(form.writes) if form.writes else found

def read(inst: MInst) -> list[Unit]:
  form: Form = inst.row.isa
  found = [unit for r in inst.reads() for unit in units_of(r)]
  return found + [unit for unit in named(form.reads) if unit[1] not in EXEC] if form.reads else found

def name_of(unit: Unit) -> str:
  """s4, v5, vcc_lo."""
  bank, index = unit
  return regs.s(index).cls.name_of(index) if bank == "sgpr" else f"{bank[0]}{index}"

def of_bank(units: Iterable[Unit], bank: str) -> list[Unit]: return [unit for unit in units if unit[0] == bank]

VALU = frozenset({"valu", "trans", "f64", "dot", "wmma", "mfma"})

class Kind(NamedTuple):
  """Instructions of these pipes (none: of all), with this beginning of their names, and which registers of theirs count."""
  pipes: frozenset[str]
  units: Callable[[MInst], list[Unit]]
  name: str = ""

  def has(self, row: Inst) -> bool: return (not self.pipes or row.pipe in self.pipes) and row.name.startswith(self.name)

def writes(bank: str, *pipes: str) -> Kind:
  """Registers of a bank that instructions of these pipes write."""
  return Kind(frozenset(pipes) or VALU, lambda inst: of_bank(written(inst), bank))

def reads(bank: str, *pipes: str, name: str = "") -> Kind:
  """Registers of a bank that instructions of these pipes, with this beginning of their names, read."""
  return Kind(frozenset(pipes) or VALU, lambda inst: of_bank(read(inst), bank), name)

def stored_wide(inst: MInst) -> list[Unit]:
  """The data of a store of more than 8 bytes."""
  if "store" not in inst.row.isa.words: return []
  data = inst.operands[inst.row.isa.index["vdata"]]
  return units_of(data) if isinstance(data, Reg) and data.cls.units > 2 else []

def factors(inst: MInst) -> list[Unit]:
  """A and B of a product of matrices."""
  return [unit for o, r in zip(inst.row.operands, inst.operands) if o.name in ("src0", "src1") and isinstance(r, Reg) for unit in units_of(r)]

# ***** rules *****

def any_instruction(inst: MInst) -> bool: return True

def vector_instruction(inst: MInst) -> bool: return inst.row.pipe in VALU

class Rule(NamedTuple):
  """first, then: the registers by which an instruction is of that kind. states: how many must be between, or what tells it of the first instruction.
  cure: "nop", "result" (wait until vector results are there) or "vector" (any vector instruction)."""
  first: Kind
  then: Kind
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

SCALARS_WRITTEN, VECTORS_WRITTEN = writes("sgpr"), writes("vgpr")
FACTORS = Kind(frozenset({"wmma", "mfma"}), factors)

RULES: dict[str, tuple[Rule, ...]] = {
  "cdna": (
    Rule(writes("vgpr", "mfma"), Kind(frozenset(), touches), results_of_products),
    Rule(writes("vgpr", *(VALU - {"mfma"})), reads("vgpr", "mfma"), 2),
    Rule(SCALARS_WRITTEN, reads("sgpr"), 2),
    Rule(SCALARS_WRITTEN, reads("sgpr", name="v_div_fmas"), 4),
    Rule(SCALARS_WRITTEN, reads("sgpr", "vmem"), 5),
    Rule(SCALARS_WRITTEN, reads("sgpr", name="v_readlane"), 4),
    Rule(SCALARS_WRITTEN, reads("sgpr", name="v_writelane"), 4),
    Rule(VECTORS_WRITTEN, reads("vgpr", name="v_read"), 1),
    Rule(writes("vgpr", "trans"), reads("vgpr", *(VALU - {"trans"})), 1),
    Rule(Kind(frozenset({"vmem"}), stored_wide), VECTORS_WRITTEN, 2),
  ),
  "rdna3": (
    Rule(writes("vgpr", "trans"), reads("vgpr"), 6, vector_instruction, "result"),
    Rule(writes("vgpr", "wmma"), FACTORS, 1, vector_instruction, "vector"),
  ),
  "rdna4": (
    Rule(writes("vgpr", "wmma"), FACTORS, 1, vector_instruction, "vector"),
  ),
}

State = dict[tuple[int, Unit], int]  # (number of a rule, register) -> states that are still lacking
Kinds = list[tuple[Kind, list[int]]] # a kind, and the numbers of the rules that are about it

@functools.lru_cache(None)
def kinds_of(row: Inst, family: str) -> tuple[Kinds, Kinds]:
  """Of which kinds instructions of a row are, as first and as second ones."""
  first: dict[Kind, list[int]] = {}
  then: dict[Kind, list[int]] = {}
  for number, rule in enumerate(RULES[family]):
    if rule.first.has(row): first.setdefault(rule.first, []).append(number)
    if rule.then.has(row): then.setdefault(rule.then, []).append(number)
  return list(first.items()), list(then.items())

class Recognizer:
  """The pass over one function.

  Within a block there is a clock for each way in which rules count states; what is kept of a register is the time from which on it is safe.
  """
  def __init__(self, function: Function, rows: Table):
    self.function, self.rows = function, rows
    self.rules = RULES[rows.generation.family]
    self.ways = list(dict.fromkeys(rule.counts for rule in self.rules))
    self.clock_of = [self.ways.index(rule.counts) for rule in self.rules]

  def run(self) -> None:
    start: State = {}
    rewrite(self.function.blocks, start, self.walk, self.meet)

  def meet(self, known: State | None, state: State) -> State | None:
    if known is None: return dict(state)
    if all(known.get(key, 0) >= states for key, states in state.items()): return None
    return known | {key: max(states, known.get(key, 0)) for key, states in state.items()}

  def walk(self, block: Block, start: State, out: list[MInst]) -> State:
    clock, safe, clock_of = [0] * len(self.ways), dict(start), self.clock_of
    for inst in block.insts:
      lacking: dict[str, tuple[int, Unit]] = {}  # cure -> states, and the register that lacks them
      for kind, numbers in kinds_of(inst.row, self.rows.generation.family)[1]:
        found = [(safe[number, unit] - clock[clock_of[number]], unit, self.rules[number].cure)
                 for unit in kind.units(inst) for number in numbers if (number, unit) in safe]
        for states, unit, cure in found:
          if states > 0: lacking[cure] = max((states, unit), lacking.get(cure, (0, unit)))
      for cure, (states, unit) in lacking.items():
        for new in self.cures(cure, states, safe):
          new.origin, new.comment = inst.origin, f"hazard: {name_of(unit)} in {states} state{'s' if states > 1 else ''}"
          self.issue(clock, safe, new, out)
      self.issue(clock, safe, inst, out)
    return {key: time - clock[clock_of[key[0]]] for key, time in safe.items() if time > clock[clock_of[key[0]]]}

  def cures(self, cure: str, states: int, state: State) -> list[MInst]:
    """The instructions that hold one back."""
    if cure == "nop": return [build(self.rows["s_nop"], min(states - passed, MOST_NOPS) - 1) for passed in range(0, states, MOST_NOPS)]
    if cure == "vector": return [build(self.rows["v_nop"]) for _ in range(states)]
    for key in [key for key in state if self.rules[key[0]].cure == cure]: del state[key]
    return [build(self.rows["s_waitcnt_depctr"], VECTOR_RESULTS)]

  def issue(self, clock: list[int], safe: State, inst: MInst, out: list[MInst]) -> None:
    """An instruction goes its way; for what it starts, all states are lacking."""
    passed = 1 + inst.operands[0] if inst.row.name == "s_nop" else 1
    for number, counts in enumerate(self.ways):
      if counts(inst): clock[number] += passed
    for kind, numbers in kinds_of(inst.row, self.rows.generation.family)[0]:
      units = kind.units(inst)
      for number in numbers:
        states = self.rules[number].states
        time = clock[self.clock_of[number]] + (states if isinstance(states, int) else states(inst))
        for unit in units: safe[number, unit] = time
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
