"""Delay instructions that follow too soon after another one, where the hardware has no interlock.

A rule names two kinds of instructions. The first writes (or reads) registers, the second touches them. Fewer than a
number of wait states between them are a hazard. A wait state, `state` for short, is an issued instruction of the kinds
that the rule counts.

The states that registers still lack flow through the blocks; where paths meet, the larger number holds. If states are
lacking, the cure is put before the second instruction. A rule is about one bank of registers, and sets of registers are
ints used as bitsets. Hazards of three instructions are in hazards_rdna.py.

Sources: LLVM, GCNHazardRecognizer; Mesa, src/amd/compiler/README-ISA.md; MI300 ISA guide, section 4.5; RDNA3 ISA guide,
section 5.7.
"""
from __future__ import annotations
import re
from collections.abc import Callable, Iterable, Iterator

from tinyhw.isa.amd.model.latency import matrix_cycles
from tinyhw.isa.amd.table import regs
from tinyhw.isa.amd.table.form import Form, Generation
from tinyhw.isa.amd.table.table import Table, build, table
from tinyhw.machine.ir.flow import rewrite
from tinyhw.machine.ir.inst import Bank, Block, Function, Inst, MInst, Reg
from tinyhw.machine.ir.target import Target
from tinyhw.named_tuple import NamedTuple
from tinyhw.threads import once

# ***** registers that instructions touch *****

SGPR, VGPR = regs.SGPR, regs.VGPR
EXEC_BITS = 3 << regs.EXEC  # nearly all instructions read it; no rule is about it

def bits(registers: Iterable[Reg], bank: Bank) -> int:
  """The registers of a bank among these, as a bitset."""
  found = 0
  for r in registers:
    if r.cls.bank is bank:
      assert r.index is not None, f"{r!r} has no register yet"
      found |= ((1 << r.cls.units) - 1) << r.index
  return found

@once
def named(names: tuple[str, ...]) -> int:
  """Scalar registers that an instruction uses implicitly."""
  return bits([regs.reg(regs.S[regs.SPECIAL[n][1]], regs.SPECIAL[n][0]) for n in names if n in regs.SPECIAL], SGPR)

def written(inst: MInst, bank: Bank) -> int:
  form: Form = inst.row.isa
  return bits(inst.writes(), bank) | (named(form.writes) if form.writes and bank is SGPR else 0)

def read(inst: MInst, bank: Bank) -> int:
  form: Form = inst.row.isa
  return bits(inst.reads(), bank) | (named(form.reads) & ~EXEC_BITS if form.reads and bank is SGPR else 0)

def indices(mask: int) -> Iterator[int]:
  """The numbers of the bits that are set."""
  while mask:
    yield (mask & -mask).bit_length() - 1
    mask &= mask - 1

def name_of(bank: Bank, mask: int) -> str:
  """The name of the first of these registers: s4, v5, vcc_lo."""
  index = next(indices(mask))
  return (regs.S if bank is SGPR else regs.V)[1].name_of(index)

VALU = frozenset({"valu", "dual", "trans", "f64", "dot", "wmma", "mfma"})

class InstructionClass(NamedTuple):
  """Instructions of some pipes (empty: of all) and with this beginning of their names, and the registers of a bank that
  count."""
  pipes: frozenset[str]
  bank: Bank
  registers: Callable[[MInst, Bank], int]
  name: str = ""

  def has(self, row: Inst) -> bool: return (not self.pipes or row.pipe in self.pipes) and row.name.startswith(self.name)

def writes(bank: Bank, *pipes: str) -> InstructionClass:
  """Registers of a bank that instructions of these pipes write."""
  return InstructionClass(frozenset(pipes) or VALU, bank, written)

def reads(bank: Bank, *pipes: str, name: str = "") -> InstructionClass:
  """Registers of a bank that instructions of these pipes, with this beginning of their names, read."""
  return InstructionClass(frozenset(pipes) or VALU, bank, read, name)

def large_store_data(inst: MInst, bank: Bank) -> int:
  """The data of a store of more than 8 bytes."""
  if "store" not in inst.row.isa.words: return 0
  data = inst.operands[inst.row.isa.index["vdata"]]
  return bits([data], bank) if isinstance(data, Reg) and data.cls.units > 2 else 0

def factors(inst: MInst, bank: Bank) -> int:
  """Operands A and B of a product of matrices or bytes."""
  return bits([r for o, r in zip(inst.row.operands, inst.operands) if o.name in ("src0", "src1")
               and isinstance(r, Reg)], bank)

# ***** rules *****

def any_instruction(inst: MInst) -> bool: return True

def vector_instruction(inst: MInst) -> bool: return inst.row.pipe in VALU

class HazardRule(NamedTuple):
  """A hazard of two instructions.

  - first, then: the registers by which an instruction is of that kind.
  - states: the number of wait states that must be between, or a function of the first instruction.
  - counts: the instructions that count as states.
  - cure: "nop", "result" (wait for vector results) or "vector" (any vector instruction).
  """
  first: InstructionClass
  then: InstructionClass
  states: int | Callable[[MInst], int]
  counts: Callable[[MInst], bool] = any_instruction
  cure: str = "nop"

def touches(inst: MInst, bank: Bank) -> int:
  """Registers that an instruction reads or writes, except the accumulator of a matrix product that continues a sum: it
  is forwarded inside the unit."""
  if inst.row.pipe == "mfma" and inst.operands[inst.row.isa.index["src2"]] == inst.operands[0]:
    return factors(inst, bank)
  return read(inst, bank) | written(inst, bank)

def after_bytes(inst: MInst, bank: Bank) -> int:
  """Registers that an instruction touches, except the sum to which products of bytes are added: it is forwarded."""
  return factors(inst, bank) if inst.row.pipe == "dot" else read(inst, bank) | written(inst, bank)

def results_of_products(inst: MInst) -> int:
  """States until the result of a matrix product is available: its passes and 3, on CDNA4 4.

  Source: MI300 and CDNA4 ISA guides, section 4.5.
  """
  generation: Generation = inst.row.isa.generation
  passes = matrix_cycles(inst.row.name, generation.name, generation.family) // 4
  return passes + 3 + (generation.name == "gfx950" and passes != 2)

SCALARS_WRITTEN, VECTORS_WRITTEN = writes(SGPR), writes(VGPR)
SIGNED_BYTES, UNSIGNED_BYTES = (InstructionClass(frozenset({"dot"}), VGPR, written, f"v_dot4_{kind}")
                                for kind in ("i32", "u32"))
FACTORS = InstructionClass(frozenset({"wmma", "mfma"}), VGPR, factors)

RULES: dict[str, tuple[HazardRule, ...]] = {
  "cdna": (
    HazardRule(writes(VGPR, "mfma"), InstructionClass(frozenset(), VGPR, touches), results_of_products),
    HazardRule(writes(VGPR, *(VALU - {"mfma"})), reads(VGPR, "mfma"), 2),
    HazardRule(writes(VGPR, "dot"), InstructionClass(frozenset(), VGPR, after_bytes), 3),
    HazardRule(SIGNED_BYTES, UNSIGNED_BYTES._replace(registers=touches), 3),
    HazardRule(UNSIGNED_BYTES, SIGNED_BYTES._replace(registers=touches), 3),
    HazardRule(SCALARS_WRITTEN, reads(SGPR), 2),
    HazardRule(SCALARS_WRITTEN, reads(SGPR, name="v_div_fmas"), 4),
    HazardRule(SCALARS_WRITTEN, reads(SGPR, "vmem"), 5),
    HazardRule(SCALARS_WRITTEN, reads(SGPR, name="v_readlane"), 4),
    HazardRule(SCALARS_WRITTEN, reads(SGPR, name="v_writelane"), 4),
    HazardRule(VECTORS_WRITTEN, reads(VGPR, name="v_read"), 1),
    HazardRule(writes(VGPR, "trans"), reads(VGPR, *(VALU - {"trans"})), 1),
    HazardRule(InstructionClass(frozenset({"vmem"}), VGPR, large_store_data), VECTORS_WRITTEN, 2),
  ),
  "rdna3": (
    HazardRule(writes(VGPR, "trans"), reads(VGPR), 6, vector_instruction, "result"),
    HazardRule(writes(VGPR, "wmma"), FACTORS, 1, vector_instruction, "vector"),
  ),
  "rdna4": (
    HazardRule(writes(VGPR, "wmma"), FACTORS, 1, vector_instruction, "vector"),
  ),
}

# Instructions with hazards that have no rule here, since selection emits none of them: DPP, SDWA, exec written by
# comparisons, dot products other than of bytes, m0, modes, products of doubles. Memory must wait longer for products of
# doubles: 18 states for 16x16x4, 9 for 4x4x4 (LLVM, GCNHazardRecognizer::checkMAIVALUHazards).
UNRULED = re.compile(
  r"v_cmpx|v_dot(?!4_[iu]32_)|v_mfma_f64|v_permlane|[sv]_movrel|s_sendmsg|s_[gs]etreg|\w*addtid|\w*_(dpp8?|sdwa)$")

Lacking = tuple[int, int]           # states, and the registers that lack them
State = dict[int, list[Lacking]]    # number of a rule -> lacking states
Kinds = list[tuple[InstructionClass, list[int]]] # a kind, and the numbers of the rules that are about it

@once
def kinds_of(row: Inst, family: str) -> tuple[Kinds, Kinds]:
  """The kinds of a row's instructions, as first and as second ones."""
  first: dict[InstructionClass, list[int]] = {}
  then: dict[InstructionClass, list[int]] = {}
  for number, rule in enumerate(RULES[family]):
    if rule.first.has(row): first.setdefault(rule.first, []).append(number)
    if rule.then.has(row): then.setdefault(rule.then, []).append(number)
  return list(first.items()), list(then.items())

def _writes_upper(inst: MInst) -> bool:
  """Whether op_sel puts a result into the upper half. CDNA then wants a state before the result is read (LLVM,
  hasDstSelForwardingHazard)."""
  return bool(inst.operands[inst.row.isa.index["op_sel"]] & 8)

class Recognizer:
  """The pass over one function.

  Within a block there is a clock for each kind of states that rules count. Registers have a time until which they lack
  something.
  """
  def __init__(self, function: Function, rows: Table):
    self.function, self.rows = function, rows
    self.rules = RULES[rows.generation.family]
    rows_used = dict.fromkeys(inst.row for block in function.blocks for inst in block.insts)
    unruled = [row.isa.key for row in rows_used if UNRULED.match(row.isa.key)]
    if rows.generation.cdna:
      halved = {row for row in rows_used if "op_sel" in row.isa.index and "op_sel_hi" not in row.isa.index}
      unruled += [f"{inst.row.isa.key} with op_sel" for block in function.blocks for inst in block.insts
                  if inst.row in halved and _writes_upper(inst)]
    assert not unruled, (f"{function.name}: there are hazards of {', '.join(unruled)}, and no rules, as nothing "
                         f"emitted them; add the rules")
    kinds = [kinds_of(row, rows.generation.family) for row in rows_used]
    first, then = ({number for found in kinds for _, numbers in found[role] for number in numbers} for role in (0, 1))
    self.active = frozenset(first & then)  # rules for which the function has instructions of both kinds
    self.counts = list(dict.fromkeys(self.rules[number].counts for number in sorted(self.active)))
    self.clock_of = {number: self.counts.index(self.rules[number].counts) for number in self.active}
    self.kinds: dict[Inst, tuple[Kinds, Kinds]] = {}

  def run(self) -> None:
    if not self.active: return
    start: State = {}
    rewrite(self.function.blocks, start, self.walk, self.meet)

  def meet(self, known: State | None, state: State) -> State | None:
    """Merge the lacking states where two paths meet: for each register and rule the larger number. None if `known`
    covers `state`."""
    if known is None: return {number: list(entries) for number, entries in state.items()}
    found = {number: list(entries) for number, entries in known.items()}
    changed = False
    for number, entries in state.items():
      for states, mask in entries:
        for longer, registers in found.get(number, ()):
          if longer >= states: mask &= ~registers
        if mask:
          found.setdefault(number, []).append((states, mask))
          changed = True
    return found if changed else None

  def kinds_of(self, row: Inst) -> tuple[Kinds, Kinds]:
    """The kinds of a row, for active rules only."""
    found = self.kinds.get(row)
    if found is None:
      both = [[(kind, here) for kind, numbers in roles if (here := [n for n in numbers if n in self.active])]
              for roles in kinds_of(row, self.rows.generation.family)]
      found = self.kinds[row] = both[0], both[1]
    return found

  def walk(self, block: Block, start: State, out: list[MInst]) -> State:
    """Copy a block's instructions to `out`, with cures before hazards. Returns the lacking states at its end.

    until: as `start`, but with times on the block's clocks instead of states.
    """
    clock, until = [0] * len(self.counts), {number: list(entries) for number, entries in start.items()}
    for inst in block.insts:
      lacking: dict[str, tuple[int, str]] = {}  # cure -> states, and the name of a register that lacks them
      for kind, numbers in self.kinds_of(inst.row)[1]:
        pending = []
        for number in numbers:
          if not until.get(number): continue
          now = clock[self.clock_of[number]]
          until[number] = [entry for entry in until[number] if entry[0] > now]
          if until[number]: pending.append((now, until[number], self.rules[number].cure))
        if not pending: continue
        mask = kind.registers(inst, kind.bank)
        for now, entries, cure in pending:
          for time, registers in entries:
            if registers & mask:
              lacking[cure] = max((time - now, name_of(kind.bank, registers & mask)), lacking.get(cure, (0, "")))
      for cure, (states, name) in lacking.items():
        for new in self.cures(cure, states, until):
          new.origin, new.comment = inst.origin, f"hazard: {name} in {states} state{'s' if states > 1 else ''}"
          self.issue(clock, until, new, out)
      self.issue(clock, until, inst, out)
    left = {number: [(time - clock[self.clock_of[number]], mask) for time, mask in entries]
            for number, entries in until.items()}
    return {number: [entry for entry in entries if entry[0] > 0] for number, entries in left.items()}

  def cures(self, cure: str, states: int, state: State) -> list[MInst]:
    """The instructions that provide the lacking states."""
    if cure == "nop":
      return [build(self.rows["s_nop"], min(states - passed, MOST_NOPS) - 1) for passed in range(0, states, MOST_NOPS)]
    if cure == "vector": return [build(self.rows["v_nop"]) for _ in range(states)]
    for number in [number for number in state if self.rules[number].cure == cure]: del state[number]
    return [build(self.rows["s_waitcnt_depctr"], VECTOR_RESULTS)]

  def issue(self, clock: list[int], until: State, inst: MInst, out: list[MInst]) -> None:
    """Append an instruction to `out`, advance the clocks, and start the hazards of its registers."""
    passed = 1 + inst.operands[0] if inst.row.name == "s_nop" else 1
    for number, counts in enumerate(self.counts):
      if counts(inst): clock[number] += passed
    for kind, numbers in self.kinds_of(inst.row)[0]:
      mask = kind.registers(inst, kind.bank)
      if not mask: continue
      for number in numbers:
        states = self.rules[number].states
        until.setdefault(number,
                         []).append((clock[self.clock_of[number]] + (states if isinstance(states, int)
                                                                     else states(inst)), mask))
    out.append(inst)

MOST_NOPS = 16           # states of one s_nop
VECTOR_RESULTS = 0x0f9f  # operand of s_waitcnt_depctr: wait until va_vdst is 0

def avoid_hazards(function: Function, target: Target) -> Function:
  """Insert wait states and other cures of hazards between two instructions."""
  Recognizer(function, table(target.table.generation.arch)).run()
  return function
