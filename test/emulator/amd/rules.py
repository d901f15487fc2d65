"""The documented rules of waits, hazards, registers and shared memory, applied to the instructions that waves have
executed: a slow oracle for the emulator's watches.

It checks straight-line traces afterwards, backwards from each instruction, and uses nothing of tinyhw/emulator. The
mnemonic gives the kind of an instruction, and its row in the assembler's table gives its registers. Sources: MI300,
RDNA3 and RDNA4 ISA guides; LLVM's GCNHazardRecognizer, AMDGPUWaitSGPRHazards and AMDGPUUsage; Mesa's README-ISA. Only
rules that mutations of our own kernels can break are here: waves of 32 lanes on RDNA; global, scratch and scalar
memory; loads and stores of the LDS.
"""
from __future__ import annotations
import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from tinyhw.isa.amd.table import regs
from tinyhw.machine.ir.inst import Access, MInst, Reg

Register = tuple[str, int]   # bank and index
SCC, VCC, EXEC = ("sgpr", regs.READ_ONLY["src_scc"]), ("sgpr", regs.VCC), ("sgpr", regs.EXEC)
ALWAYS_DEFINED = {("sgpr", i) for name, i in regs.READ_ONLY.items()
                  if name != "src_scc"} | {EXEC, ("sgpr", regs.EXEC + 1), ("sgpr", regs.NULL)}
STATES_SEEN = 20             # wait states that no rule exceeds

class Local(NamedTuple):
  """LDS access of an instruction: (address, size) for each lane. data: bytes that a store writes."""
  write: bool
  places: tuple[tuple[int, int], ...]
  data: tuple[bytes, ...] = ()

class Did(NamedTuple):
  """An instruction that a wave was about to execute. when: its number among those of the whole workgroup."""
  inst: MInst
  exec: int
  when: int
  local: Local | None = None

class Broken(NamedTuple):
  """A broken rule, and the instruction that broke it."""
  rule: str
  at: MInst

# **** kinds of instructions ****

TRANS = re.compile(r"v_(rcp|rcp_iflag|rsq|sqrt|exp|log|sin|cos)_")
MATRIX = re.compile(r"v_(mfma|smfmac|wmma|swmmac)_")

class Facts:
  """An instruction as the rules see it. reads and writes are registers, including implied ones."""
  def __init__(self, inst: MInst, wave: int):
    form = inst.row.isa
    self.inst, self.name, self.index = inst, form.key.split("::")[0], form.index
    name = self.name
    self.valu, self.trans, self.matrix = name.startswith("v_"), bool(TRANS.match(name)), bool(MATRIX.match(name))
    self.smem = name.startswith(("s_load_", "s_buffer_load"))
    self.wait = name.startswith(("s_wait", "s_nop", "s_barrier", "s_delay", "s_clause", "s_code_end", "s_end",
                                 "s_branch", "s_cbranch", "s_sleep"))
    self.salu = name.startswith("s_") and not self.smem and not self.wait
    self.vmem = name.startswith(("global_", "scratch_", "buffer_", "flat_"))
    self.lds = name.startswith("ds_")
    self.load = "_load" in name
    self.store = "_store" in name
    self.dpp = "dpp_ctrl" in form.index
    self.reads: set[Register] = set()
    self.writes: set[Register] = set()
    self.by_name: dict[str, tuple[Register, ...]] = {}
    for operand, value in zip(inst.row.operands, inst.operands):
      if not isinstance(value, Reg) or value.index is None: continue
      units = tuple((value.cls.bank.name, value.index + k) for k in range(value.cls.units))
      self.by_name[operand.name] = units
      if operand.access & Access.READ and not (operand.access == Access.BOTH and self.load): self.reads.update(units)
      if operand.access & Access.WRITE: self.writes.update(units)
    for names, found in ((form.reads, self.reads), (form.writes, self.writes)):
      for name in names:
        if name == "scc": found.add(SCC)
        elif name in regs.SPECIAL:
          first, count = regs.SPECIAL[name]
          found.update(("sgpr", first + k) for k in range(count if wave == 64 or name not in ("vcc", "exec") else 1))
    self.writes.discard(("sgpr", regs.NULL))

  def named(self, *names: str) -> set[Register]: return {unit for name in names for unit in self.by_name.get(name, ())}
  def read(self, bank: str) -> set[Register]: return {r for r in self.reads if r[0] == bank}
  def vectors_read(self) -> set[Register]: return {r for r in self.reads if r[0] != "sgpr"}
  def vectors_written(self) -> set[Register]: return {r for r in self.writes if r[0] != "sgpr"}

  @property
  def states(self) -> int: return int(self.inst.operands[0]) % 16 + 1 if self.name == "s_nop" else 1

class Known:
  """Facts of instructions of an architecture, made once for each."""
  def __init__(self, arch: str):
    self.arch, self.wave = arch, 64 if arch.startswith("gfx9") else 32
    self.made: dict[int, Facts] = {}

  def __call__(self, inst: MInst) -> Facts:
    found = self.made.get(id(inst))
    if found is None or found.inst is not inst: found = self.made[id(inst)] = Facts(inst, self.wave)
    return found

# **** waits ****

def limits(facts: Facts, arch: str) -> dict[str, int]:
  """Return the limits of the counters after a wait instruction."""
  name = facts.name
  if not name.startswith("s_wait") or name == "s_waitcnt_depctr": return {}
  value = int(facts.inst.operands[-1])
  if name != "s_waitcnt": return {name.removeprefix("s_wait_").removeprefix("s_waitcnt_"): value}
  if arch.startswith("gfx9"): return {"vmcnt": value & 15 | value >> 14 << 4, "lgkmcnt": value >> 8 & 15}
  return {"vmcnt": value >> 10 & 63, "lgkmcnt": value >> 4 & 63}

COUNTERS = {  # of: vector memory loads and stores, LDS, scalar memory
  "gfx9": ("vmcnt", "vmcnt", "lgkmcnt", "lgkmcnt"),
  "gfx11": ("vmcnt", "vscnt", "lgkmcnt", "lgkmcnt"),
  "gfx12": ("loadcnt", "storecnt", "dscnt", "kmcnt"),
}

def counter_of(facts: Facts, arch: str) -> tuple[str, str]:
  """Return the counter that counts an instruction, and the queue in which it stays in order; empty for others."""
  loads, stores, local, scalar = COUNTERS[arch[:4] if arch.startswith("gfx9") else arch[:5]]
  if facts.vmem: return (loads if facts.load else stores), "vector memory"
  if facts.lds: return local, "shared memory"
  return (scalar, "") if facts.smem else ("", "")

class Flying(NamedTuple):
  """An outstanding access. queue: accesses of one queue end in order; "" ends at any time."""
  did: Did
  counter: str
  queue: str
  registers: frozenset[Register]

def in_flight(trace: Sequence[Did], know: Known) -> Iterator[tuple[Did, Facts, list[Flying]]]:
  """Yield each instruction with the accesses that may be outstanding before it."""
  flying: list[Flying] = []
  for did in trace:
    facts = know(did.inst)
    yield did, facts, flying
    for counter, most in limits(facts, know.arch).items():
      counted = [f for f in flying if f.counter == counter]
      # If an access is not done, all later ones in its queue are not done either. With more than `most` of them this is
      # impossible
      done = {id(f) for k, f in enumerate(counted) if most == 0 or f.queue
              and sum(g.queue == f.queue for g in counted[k + 1:]) >= most}
      flying = [f for f in flying if id(f) not in done]
    counter, queue = counter_of(facts, know.arch)
    if counter:
      flying = [*flying, Flying(did, counter, queue, frozenset(facts.writes if facts.load or facts.smem else ()))]

def waits(trace: Sequence[Did], know: Known) -> Iterator[Broken]:
  """Find registers of loads that are touched before the load is known to be done."""
  for did, facts, flying in in_flight(trace, know):
    _, queue = counter_of(facts, know.arch)
    for access in flying:
      touched = access.registers & (facts.reads | facts.writes)
      if queue and access.queue == queue: touched -= facts.writes - facts.reads   # it is overwritten in order
      if touched: yield Broken(f"{sorted(touched)[0]} is touched before {access.did.inst!r} is done", did.inst)

# **** hazards: wait states that must lie between ****

Registers = Callable[[Facts], set[Register]]

class Pair(NamedTuple):
  """An instruction of one kind, then one of another, that touch the same register. states: wait states that must be
  between.
  """
  name: str
  first: Registers
  second: Registers
  states: int

def when(kind: Callable[[Facts], bool], registers: Registers) -> Registers:
  return lambda facts: registers(facts) if kind(facts) else set()
def named(*names: str) -> Callable[[Facts], bool]: return lambda facts: facts.name.startswith(names)

VALU = lambda facts: facts.valu
scalars_written: Registers = when(VALU, lambda f: {r for r in f.writes if r[0] == "sgpr"
                                                   and r not in (EXEC, ("sgpr", regs.EXEC + 1))})
exec_written: Registers = when(VALU, lambda f: f.writes & {EXEC})
vectors_written: Registers = when(VALU, Facts.vectors_written)

def wide_data(facts: Facts) -> set[Register]:
  data = facts.named("vdata")
  return data if facts.vmem and facts.store and len(data) > 2 else set()

CDNA3 = (
  Pair("VALU writes a scalar register, VALU reads it", scalars_written, when(VALU, lambda f: f.read("sgpr")), 2),
  Pair("VALU writes VCC, v_div_fmas", when(VALU, lambda f: f.writes & {VCC}),
       when(named("v_div_fmas"), lambda f: {VCC}), 4),
  Pair("VALU writes the lane's number", scalars_written,
       when(named("v_readlane", "v_writelane"), lambda f: f.read("sgpr")), 4),
  Pair("VALU writes EXEC, a lane is read", exec_written, when(named("v_readlane", "v_readfirstlane", "v_writelane"),
                                                              lambda f: {EXEC}), 4),
  Pair("VALU writes a register, a lane of it is read", vectors_written,
       when(named("v_readlane", "v_readfirstlane"), Facts.vectors_read), 1),
  Pair("VALU writes a scalar register, memory reads it", scalars_written,
       when(lambda f: f.vmem, lambda f: f.read("sgpr")), 5),
  Pair("VALU writes EXEC, DPP", exec_written, when(lambda f: f.dpp, lambda f: {EXEC}), 5),
  Pair("VALU writes a register, DPP reads it", vectors_written, when(lambda f: f.dpp, lambda f: f.named("src0")), 2),
  Pair("transcendental result", when(lambda f: f.trans, Facts.vectors_written),
       when(lambda f: f.valu and not f.trans, Facts.vectors_read), 1),
  Pair("the data of a wide store is overwritten", wide_data, vectors_written, 2),
  Pair("VALU writes EXEC, MFMA", exec_written, when(lambda f: f.matrix, lambda f: {EXEC}), 4),
  Pair("VALU writes a register, MFMA reads it", when(lambda f: f.valu and not f.matrix, Facts.vectors_written),
       when(lambda f: f.matrix,
            Facts.vectors_read), 2),
)

PASSES = {"32x32x8": 8, "16x16x16": 4, "32x32x4_2b": 16, "16x16x4_4b": 8, "4x4x4_16b": 2, "16x16x32": 4, "32x32x16": 8,
          "16x16x8": 4, "32x32x4": 8}
PASSES_F32 = {"32x32x2": 16, "16x16x4": 8, "4x4x1_16b": 2, "32x32x1_2b": 16, "16x16x1_4b": 8}
PRODUCT = re.compile(r"v_mfma_([a-z]+\d+)_(\d+x\d+x\d+(?:_\d+b)?)_?([a-z]*\d*)")

def product_states(first: Facts, second: Facts) -> Iterator[tuple[str, int]]:
  """Yield (rule, wait states needed) between an MFMA and an instruction. Source: MI300 ISA guide, section 4.5."""
  found = PRODUCT.match(first.name)
  if found is None: return
  result, shape, operand = found[1], found[2], found[3]
  double, single = result == "f64", operand == "f32"
  passes = (PASSES_F32 if single else PASSES).get(shape, 4)
  total = first.vectors_written()
  after = (11 if shape == "16x16x4" else 6) if double else passes + (2 if single else 3)
  if second.matrix:
    if total & second.named("src0", "src1"): yield "MFMA reads a result as a factor", after
    addend = second.named("src2")
    if addend == total:
      yield ("MFMA goes on with a sum", (4 if double and shape.startswith("4x4x4") else 0) if passes != 2 or double
             else 2)
    elif addend & total:
      if double: yield "MFMA reads a part of a result", 9 if shape == "16x16x4" else 4
      else: yield "MFMA reads a part of a result", passes if single else passes + 1
  elif total & (second.vectors_read() | second.vectors_written()):
    memory = second.vmem or second.lds
    yield "use of the result of an MFMA", (18 if shape == "16x16x4" else 9) if double and memory else after
  if second.valu and not single and not double and not second.matrix and first.named("src2") & second.vectors_written():
    yield "VALU overwrites what an MFMA adds to", passes - 1

def cdna_hazards(trace: Sequence[Did], know: Known) -> Iterator[Broken]:
  """Find too few wait states between two instructions."""
  facts = [know(did.inst) for did in trace]
  for j, second in enumerate(facts):
    wanted = [(pair, registers) for pair in CDNA3 if (registers := pair.second(second))]
    between = 0
    for i in range(j - 1, -1, -1):
      first = facts[i]
      for pair, registers in wanted:
        if between < pair.states and pair.first(first) & registers: yield Broken(pair.name, trace[j].inst)
      if first.matrix:
        for name, states in product_states(first, second):
          if between < states: yield Broken(name, trace[j].inst)
      between += first.states
      if between >= STATES_SEEN: break

def rdna_products(trace: Sequence[Did], know: Known) -> Iterator[Broken]:
  """Find a WMMA that reads the result of the previous one as A or B, with no VALU between."""
  last: set[Register] = set()
  for did in trace:
    facts = know(did.inst)
    if not facts.valu: continue
    if facts.matrix and last & facts.named("src0", "src1"): yield Broken("WMMA reads a result as a factor", did.inst)
    last = facts.vectors_written() if facts.matrix else set()

def field(facts: Facts, low: int, bits: int) -> int: return int(facts.inst.operands[0]) >> low & (1 << bits) - 1

def rdna3_transcendental(trace: Sequence[Did], know: Known) -> Iterator[Broken]:
  """Find a transcendental result that VALU reads after fewer than 6 VALU and fewer than 2 transcendental instructions,
  and no memory access."""
  facts = [know(did.inst) for did in trace]
  for j, second in enumerate(facts):
    if not second.valu: continue
    needed, valu, trans = second.vectors_read(), 0, 0
    for i in range(j - 1, -1, -1):
      first = facts[i]
      if first.vmem or first.lds or first.name == "s_waitcnt_depctr" and field(first, 12, 4) == 0: break
      if first.trans and first.writes & needed: yield Broken("transcendental result", trace[j].inst)
      needed = needed - first.writes
      valu, trans = valu + first.valu, trans + first.trans
      if valu >= 6 or trans >= 2: break

def rdna4_scalars(trace: Sequence[Did], know: Known) -> Iterator[Broken]:
  """Find a pair of scalar registers that VALU has read, of which one is then written and read."""
  facts = [know(did.inst) for did in trace]
  read: set[int] = set()                    # pairs that VALU has read so far
  writers: dict[Register, str] = {}         # register -> the counter that a wait must name
  for did, f in zip(trace, facts):
    scalars = {r for r in f.reads if r[0] == "sgpr" and r[1] < regs.TTMP and r[1] != regs.NULL}
    waiting = {r: writers[r] for r in scalars if r in writers}
    if f.valu and waiting or f.salu and "sa_sdst" in waiting.values():
      yield Broken(f"{', '.join(sorted(set(waiting.values())))} before a scalar register that VALU has read is read "
                   f"again", did.inst)
    # the scalar unit waits for VALU
    if f.salu: writers = {r: how for r, how in writers.items() if how == "sa_sdst" or r not in scalars}
    if f.name == "s_waitcnt_depctr":
      ended = {name for name, low, bits in (("sa_sdst", 0, 1), ("va_vcc", 1, 1), ("va_sdst", 9, 3))
               if field(f, low, bits) == 0}
      writers = {r: how for r, how in writers.items() if how not in ended}
    if f.smem or f.name.startswith("buffer_"): writers = {}
    if f.valu: read |= {r[1] >> 1 for r in scalars}
    if f.valu or f.salu:
      written = [r for r in f.writes if r[0] == "sgpr" and r[1] >> 1 in read and r[1] < regs.TTMP]
      for r in written: writers[r] = "sa_sdst" if f.salu else "va_vcc" if r[1] >> 1 == regs.VCC >> 1 else "va_sdst"

HAZARDS: dict[str, tuple[Callable[[Sequence[Did], Known], Iterator[Broken]], ...]] = {
  "gfx942": (cdna_hazards,),
  "gfx1100": (rdna_products, rdna3_transcendental),
  "gfx1200": (rdna_products, rdna4_scalars),
}

# **** uninitialised registers ****

# scalar registers at the start of our kernels
START = {"gfx942": {0, 1, 2}, "gfx1100": {0, 1, 15}, "gfx1200": {0, 1, regs.TTMP + 7, regs.TTMP + 9}}
MASKS = re.compile(r"s_(or|and|and_not1|andn2|xor)_b(32|64)")

def undefined(trace: Sequence[Did], know: Known) -> Iterator[Broken]:
  """Find registers that are read, in an active lane, and were never written."""
  scalars: set[Register] = {("sgpr", i) for i in START[know.arch]} | ALWAYS_DEFINED | {("sgpr", regs.FLAT_SCRATCH),
                                                                                       ("sgpr", regs.FLAT_SCRATCH + 1)}
  everything = (1 << know.wave) - 1
  lanes: dict[Register, int] = {("vgpr", 0): trace[0].exec}
  for did in trace:
    facts = know(did.inst)
    # undefined bits of the other operand belong to lanes that are not active
    masked = MASKS.match(facts.name) and EXEC in facts.reads
    if not masked and facts.read("sgpr") - scalars: yield Broken("a scalar register without a value", did.inst)
    active = everything if facts.matrix else did.exec
    if facts.name.startswith("v_readfirstlane"): active &= -active
    if not facts.name.startswith(("v_readlane", "v_writelane", "v_permlane", "ds_bpermute")) and not facts.dpp:
      if any(active & ~lanes.get(r, 0) for r in facts.vectors_read()):
        yield Broken("a vector register without a value", did.inst)
    scalars |= {r for r in facts.writes if r[0] == "sgpr"}
    for r in facts.vectors_written():
      lanes[r] = lanes.get(r, 0) | (everything if facts.name.startswith("v_writelane") else active)

# **** shared memory ****

def local_races(traces: Sequence[Sequence[Did]], know: Known) -> Iterator[Broken]:
  """Find a byte that two waves access without a barrier between, one of them writing. An access that is outstanding at
  a barrier may happen after it."""
  owners: Owners = {}
  for wave, trace in enumerate(traces):
    epoch, signalled = 0, False
    for did, facts, flying in in_flight(trace, know):
      if facts.name == "s_barrier_signal": signalled = True
      if facts.name in ("s_barrier", "s_barrier_wait"):
        epoch, signalled = epoch + 1, False
        for access in flying: yield from claim(owners, wave, epoch, access.did)
      if did.local is None: continue
      yield from claim(owners, wave, epoch, did)
      if signalled: yield from claim(owners, wave, epoch + 1, did)

# (number of the barrier before, byte) -> wave -> the values that it writes there, READ for a read
Owners = dict[tuple[int, int], dict[int, set[int]]]
READ = -1

def claim(owners: Owners, wave: int, epoch: int, did: Did) -> Iterator[Broken]:
  """Record a wave's access of bytes, and find races. Two waves may write the same value to a byte."""
  if did.local is None: return
  for lane, (place, size) in enumerate(did.local.places):
    for k in range(size):
      value = (did.local.data[lane][k] if did.local.data else wave) if did.local.write else READ
      found = owners.setdefault((epoch, place + k), {})
      others = {v for other, values in found.items() if other != wave for v in values}
      if others - {value}: yield Broken(f"waves race at byte {place + k} of the LDS", did.inst)
      found.setdefault(wave, set()).add(value)

def local_contents(traces: Sequence[Sequence[Did]], size: int) -> Iterator[Broken]:
  """Find reads of LDS bytes that were never written, and accesses beyond the LDS."""
  written: set[int] = set()
  for did in sorted((did for trace in traces for did in trace if did.local is not None), key=lambda did: did.when):
    assert did.local is not None
    touched = {byte for place, count in did.local.places for byte in range(place, place + count)}
    if any(byte >= size for byte in touched): yield Broken("beyond the LDS", did.inst)
    if did.local.write: written |= touched
    elif touched - written: yield Broken("bytes of the LDS without a value", did.inst)

def broken(traces: Sequence[Sequence[Did]], arch: str, local_bytes: int = 0) -> Iterator[Broken]:
  """Find the rules that the waves of one workgroup have broken. traces: of each wave, in order."""
  know = Known(arch)
  for trace in traces:
    yield from waits(trace, know)
    for hazards in HAZARDS[arch]: yield from hazards(trace, know)
    yield from undefined(trace, know)
  yield from local_races(traces, know)
  yield from local_contents(traces, local_bytes)
