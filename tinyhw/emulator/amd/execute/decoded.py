"""Decoding of bytes to steps: everything that the execution of one instruction needs, made once per instruction of a
kernel.

A `DecodedInstruction` has the function of the instruction, and its properties for strict.py and hazards.py: registers
that it reads and writes, counters that count it, hazards of which it may be the first or the second half. Steps do not
depend on the address, so kernels share them.
"""
from __future__ import annotations
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING

from tinyhw.data_class import dataclass, field
from tinyhw.emulator.amd.checks.hazards import (
  Start, Wait, classes, is_matrix, registers_of, starts_of, states_of, waits_of)
from tinyhw.emulator.amd.checks.strict import SCALAR_BASE, SCC
from tinyhw.emulator.amd.execute import (
  arithmetic, control, lanes, matrix, transfer_global, transfer_local, transfer_scalar, transfer_scratch)
from tinyhw.emulator.amd.execute.arithmetic import Mode, NamedOperands, row_of
from tinyhw.emulator.amd.registers import DispatchRegisters
from tinyhw.emulator.errors import EarlyWrite, OutOfBounds, PageFault, UnknownInstruction
from tinyhw.errors import DecodeError
from tinyhw.isa.amd.asm.decode import decoder
from tinyhw.isa.amd.asm.syntax import show
from tinyhw.isa.amd.table import regs
from tinyhw.machine.ir.inst import Access, MInst, Reg
from tinyhw.machine.order.early import overwritten

if TYPE_CHECKING:
  from tinyhw.emulator.amd.execute.state import Wave
  from tinyhw.emulator.amd.native.translate import Translation

LONGEST = 20  # bytes of an instruction with all words that may follow it

@dataclass(eq=False)
class DecodedInstruction:
  """One instruction as it executes. Vector registers are rows of state.Wave, scalar ones bits by their index.

  - touched, read_set, results: registers as strict.Strict.pending numbers them: all, those that are read, those that a
    counted instruction writes.
  - kind: of its event, if `counters` count it. states: number of wait states.
  - product: the product of a matrix instruction; factors, addend: the registers of its A and B, and of its C.
  - mask_reads: scalar registers that are read as masks of lanes. valu, trans: 1 for an instruction of these classes.
  - breaks: it may end the wave, make it wait, or change its mode. ends: a block of steps ends after it.
  - steers: it only changes the state of strict.py. local: it may access the LDS.
  - all_lanes: it also writes lanes that are not active. activates: it may write EXEC.
  - overwritten: the source that is in the registers of an early result, if there is one.
  """
  inst: MInst
  size: int
  text: str
  run: Callable[[Wave], None]
  vector_reads: tuple[int, ...] = ()
  vector_writes: tuple[int, ...] = ()
  scalar_reads: int = 0
  scalar_writes: int = 0
  scalar_limit: int = 0
  touched: frozenset[int] = frozenset()
  read_set: frozenset[int] = frozenset()
  results: frozenset[int] = frozenset()
  counters: tuple[str, ...] = ()
  kind: str = ""
  all_lanes: bool = False
  activates: bool = False
  states: int = 1
  waits: tuple[Wait, ...] = ()
  starts: tuple[Start, ...] = ()
  classes: frozenset[str] = field(default_factory=frozenset)
  mask_reads: int = 0
  valu: int = 0
  trans: int = 0
  breaks: bool = False
  ends: bool = False
  steers: bool = False
  local: bool = False
  product: matrix.Product | None = None
  factors: frozenset[int] = frozenset()
  addend: tuple[int, ...] = ()
  overwritten: str = ""

class DecodedCode:
  """The steps of a dispatch's code, by address, for each mode of waves, and their translation after its first use."""
  def __init__(self, arch: str, registers: DispatchRegisters, code_reader: Callable[[int, int], bytes]):
    self.arch, self.lanes, self.sgprs, self.read = arch, registers.wave_size, registers.sgprs, code_reader
    self.by_mode: dict[int, dict[int, DecodedInstruction]] = {}
    self.translations: list[Translation | None] = []

  def shared(self, make: Callable[[], Translation | None]) -> Translation | None:
    """Return the translation that all workgroups of the dispatch share. The first one makes it."""
    if not self.translations: self.translations.append(make())
    return self.translations[0]

  def steps(self, mode: int) -> dict[int, DecodedInstruction]:
    """Return the steps that have been decoded for a mode."""
    return self.by_mode.setdefault(mode, {})

  def decode(self, address: int, mode: int) -> DecodedInstruction:
    """Return the step at an address. Raises OutOfBounds outside of the code, UnknownInstruction, EarlyWrite."""
    code = self.fetch(address)
    step = step_of(code, self.mode(mode))
    if step.scalar_limit > self.sgprs:
      raise OutOfBounds(f"s{step.scalar_limit - 1} is beyond the {self.sgprs} scalar registers of the kernel; raise "
                        f"SGPRS in RSRC1")
    if step.overwritten:
      raise EarlyWrite(f"{step.text} may write its result before it reads {step.overwritten}; give it registers that "
                       f"no source has")
    self.steps(mode)[address] = step
    return step

  def mode(self, bits: int) -> Mode:
    """Return the mode of instructions from the MODE of a wave."""
    return Mode(self.arch, self.lanes, bits >> 4 & 15, bits & 15)

  def fetch(self, address: int) -> bytes:
    for size in range(LONGEST, 0, -4):
      try: return self.read(address, size)
      except PageFault as e: fault = e
    raise OutOfBounds(f"the wave fetches from {address:#x}, where there is no code ({fault.reason}); is s_endpgm "
                      f"missing?")

@lru_cache(maxsize=65536)
def step_of(code: bytes, mode: Mode) -> DecodedInstruction:
  """Return the step of the instruction that begins `code`. Raises UnknownInstruction."""
  arithmetic.check_mode(mode)
  name = mode.arch if mode.cdna or mode.lanes == 32 else f"{mode.arch}:wave64"
  try: inst, size = decoder(name)(code, 0)
  except DecodeError as e: raise UnknownInstruction(f"{e.message}") from e
  return make_step(inst, size, mode)

def make_step(inst: MInst, size: int, mode: Mode) -> DecodedInstruction:
  """Return the step of an instruction."""
  uses = NamedOperands(inst)
  step = DecodedInstruction(inst, size, show(inst), function_of(uses, mode))
  _registers(step, uses)
  if uses.form.counter:
    step.counters = tuple(uses.form.counter.split("+"))
    step.kind = inst.row.pipe if len(step.counters) == 1 else "flat"
    step.results = _written(step, uses)
  found = overwritten(inst)
  if found is not None: step.overwritten = str(found[1])
  step.all_lanes = is_matrix(uses.name)
  step.classes = classes(uses)
  step.valu, step.trans = int("valu" in step.classes), int("trans" in step.classes)
  step.mask_reads = _mask_reads(uses)
  step.breaks = uses.name in control.BREAKS
  step.ends = step.breaks or uses.name in control.ENDS
  step.activates = (bool(step.scalar_writes >> regs.EXEC & 3) or "exec" in uses.form.writes
                    or uses.name.startswith("v_cmpx"))
  step.steers = uses.name in control.FOR_STRICT
  step.local = inst.row.pipe in ("lds", "flat") or "_lds_" in uses.name
  step.states = states_of(uses)
  step.product = matrix.product_of(uses.name)
  if step.product is not None:
    step.factors = registers_of(uses, "src0", "src1")
    step.addend = tuple(sorted(registers_of(uses, "src2")))
  step.waits, step.starts = waits_of(step, uses, mode), starts_of(step, uses, mode)
  return step

def is_computation(name: str) -> bool:
  """Return whether semantics in the notation describe an instruction completely."""
  if name in control.BUILDERS or name in lanes.BUILDERS: return False
  return arithmetic.semantics_of(name) is not None or "::" in name

def function_of(uses: NamedOperands, mode: Mode) -> Callable[[Wave], None]:
  """Return the function that executes an instruction. Raises UnknownInstruction."""
  name = uses.name
  for table in (control.BUILDERS, lanes.BUILDERS):
    if name in table: return table[name](uses, mode)
  if is_computation(name): return arithmetic.bind(uses, mode)
  for module in (transfer_global, transfer_local, transfer_scalar, transfer_scratch, matrix):
    run: Callable[[Wave], None] | None = module.bind(uses, mode)
    if run is not None: return run
  raise UnknownInstruction(f"{name} is not emulated")

def _registers(step: DecodedInstruction, uses: NamedOperands) -> None:
  """Set the registers that an instruction reads and writes."""
  vector_reads: list[int] = []
  vector_writes: list[int] = []
  for spec, value in zip(uses.form.specs, uses.inst.operands):
    if not isinstance(value, Reg) or value.index is None: continue
    units = range(value.cls.units)
    scalar = value.cls.bank is regs.SGPR
    read = spec.access & Access.READ and not (spec.access == Access.BOTH and not _result_read(uses, spec.name))
    if scalar:
      if value.index == regs.NULL: continue
      mask = (1 << len(units)) - 1 << value.index
      if value.index < regs.SGPRS: step.scalar_limit = max(step.scalar_limit, value.index + len(units))
      if read: step.scalar_reads |= mask & _TRACKED
      if spec.access & Access.WRITE: step.scalar_writes |= mask
    else:
      rows = [row_of(value) + i for i in units]
      if read: vector_reads += rows
      if spec.access & Access.WRITE: vector_writes += rows
  if uses.name in _MASK_LOGIC and any(isinstance(v, Reg) and v.index == regs.EXEC for v in uses.inst.operands):
    step.scalar_reads = 0
  _implied(step, uses)
  step.read_set = frozenset((*vector_reads, *_bits(step.scalar_reads)))
  step.touched = step.read_set | {*vector_writes, *_bits(step.scalar_writes)}
  if uses.name in lanes.ONE_LANE: vector_reads, vector_writes = [], []  # they check single lanes themselves
  step.vector_reads, step.vector_writes = tuple(vector_reads), tuple(vector_writes)

_TRACKED = ~(sum(3 << index for name, index in regs.READ_ONLY.items() if name != "src_scc") | 3 << regs.EXEC)
# Logic on masks: with EXEC as one operand, undefined bits of the other belong to lanes that are not active. Compilers
# begin loops so
_MASK_LOGIC = frozenset(f"s_{name}_b{bits}" for name in ("or", "and", "and_not1", "andn2", "xor") for bits in (32, 64))

def _implied(step: DecodedInstruction, uses: NamedOperands) -> None:
  """Add registers that are no operands: SCC, VCC, M0, EXEC."""
  width = 2 if uses.form.generation.wave == 64 else 1
  for name in uses.form.reads:
    if name == "scc": step.scalar_reads |= 1 << SCC
    elif name == "vcc": step.scalar_reads |= (1 << width) - 1 << regs.VCC
    elif name == "m0" and not uses.name.startswith("s_sendmsg"): step.scalar_reads |= 1 << regs.M0
  for name in uses.form.writes:
    if name == "scc": step.scalar_writes |= 1 << SCC
    elif name == "vcc": step.scalar_writes |= (1 << width) - 1 << regs.VCC
    elif name == "m0": step.scalar_writes |= 1 << regs.M0

def _mask_reads(uses: NamedOperands) -> int:
  """Return the scalar registers that an instruction reads as a mask of lanes."""
  vcc = ((1 << uses.form.generation.wave // 32) - 1 << regs.VCC if "vcc" in uses.form.reads
         and uses.name.startswith("v_") else 0)
  return vcc | sum((1 << value.cls.units) - 1 << value.index for spec, value in zip(uses.form.specs, uses.inst.operands)
                   if isinstance(value, Reg) and value.index is not None and spec.type is not None
                   and spec.type.name == "mask"
                   and spec.access == Access.READ)

def _result_read(uses: NamedOperands, operand: str) -> bool:
  """Return whether the old value of an operand, marked as read and written, affects the result. DPP, SDWA and half
  loads keep parts of it."""
  semantics = arithmetic.semantics_of(uses.name)
  if operand in ("vdst", "sdst") and semantics is not None: return arithmetic.reads_result(semantics)
  return "load" not in uses.form.words

def _bits(mask: int) -> list[int]: return [SCALAR_BASE + i for i in range(mask.bit_length()) if mask >> i & 1]

def _written(step: DecodedInstruction, uses: NamedOperands) -> frozenset[int]:
  """Return registers that an instruction writes, including those that it also reads: a load may write the register of
  its own address."""
  vectors = (row_of(v) + i for s, v in zip(uses.form.specs, uses.inst.operands)
             if isinstance(v, Reg) and s.access & Access.WRITE and v.cls.bank is not regs.SGPR
             for i in range(v.cls.units))
  return frozenset((*vectors, *_bits(step.scalar_writes)))
