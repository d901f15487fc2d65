"""Hazards: pairs of instructions that need wait states between them, as a table, and the watch that checks them while a
wave executes.

A wait state is an issued instruction. `s_nop n` is n + 1 of them. A row names the first instruction and its registers
that count, the second instruction and its use of them, and the number of wait states that must lie between.

Other files have the hazards of MFMA (hazards_mfma.py), of scalar registers on RDNA (hazards_scalar.py), and of EXEC in
RDNA3's waves of 64 (hazards_forwarding.py). Hazards without a row are interlocked, or do not concern compute.

Sources: LLVM GCNHazardRecognizer.cpp; ISA guides, "manually inserted wait states".
"""
from __future__ import annotations
from typing import TYPE_CHECKING

from tinyhw.emulator.amd.checks.hazards_forwarding import ForwardingWatch
from tinyhw.emulator.amd.checks.hazards_mfma import MatrixWatch
from tinyhw.emulator.amd.checks.hazards_scalar import ScalarWatch
from tinyhw.emulator.errors import MissingHazard
from tinyhw.isa.amd.table import regs
from tinyhw.machine.ir.inst import Reg
from tinyhw.named_tuple import NamedTuple

if TYPE_CHECKING:
  from tinyhw.emulator.amd.execute.arithmetic import Mode, NamedOperands
  from tinyhw.emulator.amd.execute.decoded import DecodedInstruction

class Hazard(NamedTuple):
  """A hazard. first, second: classes of instructions (see `classes`).

  - wrote: registers of the first that count: "v" vector, "s" scalar (VCC too), "vcc", "exec", "m0", "data" that a store
    reads.
  - how: the second's use of them: "read", "write", "touch" (either), "select" as the number of a lane, "src0", or "" if
    any second instruction of the class counts.
  - counts: the instructions that are wait states: any, or only those of VALU.
  """
  first: str
  wrote: str
  second: str
  how: str
  states: int
  counts: str = "any"

CDNA = (
  Hazard("valu", "s", "valu", "read", 2),
  Hazard("valu", "vcc", "div_fmas", "", 4),
  Hazard("valu", "s", "lane_select", "select", 4),
  Hazard("valu", "exec", "readlane", "", 4),
  Hazard("valu", "v", "readlane", "read", 1),
  Hazard("valu", "s", "vmem", "read", 5),
  Hazard("valu", "exec", "dpp", "", 5),
  Hazard("valu", "v", "dpp", "src0", 2),
  Hazard("salu", "m0", "uses_m0", "", 1),
  Hazard("trans", "v", "not_trans", "read", 1),
  Hazard("partial", "v", "valu", "touch", 1),        # SDWA and op_sel results that are a part of a register
  Hazard("wide_store", "data", "valu", "write", 2),
  Hazard("valu", "exec", "mfma", "", 4),
  Hazard("not_dot", "v", "mfma", "read", 2),
  Hazard("dot", "v", "dot", "operands", 3),
  Hazard("dot", "v", "not_dot", "touch", 3),
  Hazard("cmpx", "exec", "permlane_swap", "", 4),
  Hazard("valu", "v", "permlane_swap", "read", 2),
)
RDNA4 = (
  Hazard("wmma", "v", "wmma", "operands", 1, "valu"),
)
RDNA3 = (*RDNA4,
  Hazard("cmpx", "exec", "permlane", "", 1, "valu"),
)

def table(arch: str) -> tuple[Hazard, ...]:
  """Return the rows of an architecture."""
  return CDNA if arch.startswith("gfx9") else RDNA3 if arch.startswith("gfx11") else RDNA4

# Start: (row of the table, registers) of a hazard whose first half is a step. Wait: (row, states, registers) of a
# hazard whose second half is a step. A register is numbered as in strict.Strict.pending; ALWAYS stands for all
# instructions of a class.
Start = tuple[int, frozenset[int]]
Wait = tuple[int, int, frozenset[int]]
ALWAYS = -1
SCALAR_BASE = 1024

def states_of(uses: NamedOperands) -> int:
  """Return the number of wait states of an instruction."""
  return int(uses["simm16"] & 15) + 1 if uses.name == "s_nop" else 1

VALU = ("valu", "trans", "wmma", "mfma")

def is_matrix(name: str) -> bool:
  """Return whether an instruction writes the whole wave's registers, whatever EXEC is."""
  return name.startswith(("v_wmma", "v_swmmac", "v_mfma", "v_smfmac"))

def classes(uses: NamedOperands) -> frozenset[str]:
  """Return the classes of an instruction."""
  name, pipe = uses.name, uses.row.pipe
  found = {pipe}
  if name.startswith("v_"): found.add("valu")
  if pipe == "trans": found.add("trans")
  elif "valu" in found: found.add("not_trans")
  if pipe in ("vmem", "flat"): found.add("vmem")
  if name.startswith("v_dot"): found.add("dot")
  elif "valu" in found and not is_matrix(name): found.add("not_dot")
  if is_matrix(name): found |= {"wmma" if "wmm" in name else "mfma"}
  if name.startswith("v_div_fmas"): found.add("div_fmas")
  if name in ("v_readlane_b32", "v_readfirstlane_b32", "v_writelane_b32"): found.add("readlane")
  if name in ("v_readlane_b32", "v_writelane_b32"): found.add("lane_select")
  if "dpp_ctrl" in uses.index: found.add("dpp")
  if name.startswith("v_cmpx"): found.add("cmpx")
  if name.startswith("v_permlane"): found.add("permlane_swap" if name.endswith("swap_b32") else "permlane")
  if name.startswith(("buffer_", "tbuffer_")): found.add("buffer")
  if name.startswith(("s_movrel", "s_sendmsg")) or "addtid" in name or "_lds_" in name: found.add("uses_m0")
  if _is_partial(uses): found.add("partial")
  if "store" in uses.form.words and any(uses.count(n) > 2 for n in ("vdata",) if n in uses): found.add("wide_store")
  return frozenset(found)

def _is_partial(uses: NamedOperands) -> bool:
  if uses.get("dst_sel", 6) != 6: return True
  if uses.name.startswith(("v_cvt_sr_fp8", "v_cvt_sr_bf8")): return bool(uses.get("op_sel"))
  return bool(uses.get("op_sel") & 8) and "op_sel_hi" not in uses.index

def starts_of(step: DecodedInstruction, uses: NamedOperands, mode: Mode) -> tuple[Start, ...]:
  """Return the hazards whose first half a step may be."""
  found = []
  for number, hazard in enumerate(table(mode.arch)):
    if hazard.first not in step.classes: continue
    registers = _written(hazard.wrote, step, uses)
    if registers: found.append((number, registers))
  return tuple(found)

def _written(wrote: str, step: DecodedInstruction, uses: NamedOperands) -> frozenset[int]:
  if wrote == "v": return frozenset(step.vector_writes)
  if wrote == "s":
    return frozenset(SCALAR_BASE + i for i in range(step.scalar_writes.bit_length()) if step.scalar_writes >> i & 1)
  if wrote == "data": return frozenset(step.vector_reads) - registers_of(uses, "vaddr")
  special = {"vcc": regs.VCC, "exec": regs.EXEC, "m0": regs.M0}[wrote]
  written = step.scalar_writes >> special & 1 or wrote == "exec" and "exec" in uses.form.writes
  return frozenset((ALWAYS,)) if written else frozenset()

def registers_of(uses: NamedOperands, *names: str) -> frozenset[int]:
  """Return the registers of operands."""
  found: set[int] = set()
  for name in names:
    value = uses.get(name)
    if not isinstance(value, Reg) or value.index is None: continue
    base = SCALAR_BASE if value.cls.bank is regs.SGPR else 256 if value.cls.bank is regs.AGPR else 0
    found.update(base + value.index + i for i in range(value.cls.units))
  return frozenset(found)

def waits_of(step: DecodedInstruction, uses: NamedOperands, mode: Mode) -> tuple[Wait, ...]:
  """Return the hazards whose second half a step may be."""
  found = []
  for number, hazard in enumerate(table(mode.arch)):
    if hazard.second not in step.classes: continue
    registers = _used(hazard.how, step, uses)
    if registers: found.append((number, hazard.states, registers))
  return tuple(found)

def _used(how: str, step: DecodedInstruction, uses: NamedOperands) -> frozenset[int]:
  if how == "": return frozenset((ALWAYS,))
  if how == "read": return step.read_set
  if how == "write": return frozenset(step.vector_writes)
  if how == "touch": return step.touched
  if how == "operands": return registers_of(uses, "src0", "src1")
  return registers_of(uses, "src0" if how == "src0" else "src1")

# VALU and transcendental instructions after which a transcendental result is ready, on RDNA3
TRANS_VALU, TRANS_TRANS = 6, 2

class Watch:
  """The last steps of this wave that may be the first half of a hazard. now: wait states so far; valu: VALU
  instructions so far.

  alert: matrix or transcendental results are in flight, so every instruction must be checked and recorded.
  """
  def __init__(self, arch: str, lanes: int):
    self.table = table(arch)
    self.scalar = ScalarWatch(arch, lanes)
    self.forwarding = ForwardingWatch() if arch.startswith("gfx11") and lanes == 64 else None
    self.now = self.valu = self.trans = 0
    self.alert = False
    # (row, register) -> (wait states then, VALU instructions then, text)
    self.last: dict[tuple[int, int], tuple[int, int, str]] = {}
    self.matrix = MatrixWatch(arch) if arch.startswith("gfx9") else None
    self.slow_trans = arch.startswith("gfx11")
    # vector register -> (VALU and transcendental instructions then, text)
    self.transcendental: dict[int, tuple[int, int, str]] = {}

  def check(self, step: DecodedInstruction) -> None:
    """Raise MissingHazard if a step comes too soon."""
    for row, states, registers in step.waits:
      for register in registers:
        found = self.last.get((row, register))
        if found is None: continue
        since = self.now - found[0] if self.table[row].counts == "any" else self.valu - found[1]
        if since < states: self.fail(row, found[2], since)
    if self.matrix is not None and self.matrix.results: self.matrix.check(step, self.now)
    if self.transcendental and step.valu: self.check_transcendental(step)

  def chain(self, step: DecodedInstruction) -> None:
    """Check hazards of three instructions. Raises MissingHazard."""
    self.scalar.step(step)
    if self.forwarding is not None: self.forwarding.step(step, self.valu)

  def note(self, step: DecodedInstruction) -> None:
    """Record a step that was issued, and counted in `now` and `valu`."""
    for row, registers in step.starts:
      for register in registers: self.last[row, register] = self.now, self.valu, step.text
    if self.matrix is not None and step.product is not None: self.matrix.note(step, self.now)
    if self.slow_trans: self.note_transcendental(step)
    self.alert = bool(self.transcendental) or self.matrix is not None and bool(self.matrix.results)

  def check_transcendental(self, step: DecodedInstruction) -> None:
    """RDNA3 (VALUTransUse): VALU may read a transcendental result after 6 VALU or 2 transcendental instructions, a
    memory access, or va_vdst(0)."""
    for register in step.read_set & self.transcendental.keys():
      valu, trans, text = self.transcendental[register]
      if self.valu - valu < TRANS_VALU and self.trans - trans < TRANS_TRANS:
        raise MissingHazard(f"{text} may not be done: put s_waitcnt_depctr va_vdst(0) (0x0fff), {TRANS_VALU} VALU or "
                            f"{TRANS_TRANS} transcendental "
                            "instructions between")
      del self.transcendental[register]

  def note_transcendental(self, step: DecodedInstruction) -> None:
    """Update the transcendental results. An access of memory waits for all, and a new write of a register replaces its
    result.
    """
    if "vmem" in step.classes or "lds" in step.classes: self.transcendental.clear()
    for register in self.transcendental.keys() & set(step.vector_writes): del self.transcendental[register]
    if step.trans:
      self.trans += 1
      for register in step.vector_writes: self.transcendental[register] = self.valu, self.trans, step.text

  def wait_alu(self, immediate: int) -> None:
    """s_waitcnt_depctr, s_wait_alu: a field of 0 ends its hazards."""
    self.scalar.wait(immediate)
    if immediate >> 12 & 15 == 0:
      self.last.clear()
      self.transcendental.clear()
      if self.forwarding is not None: self.forwarding.clear()

  def fail(self, row: int, text: str, since: int) -> None:
    hazard = self.table[row]
    what = {"s": "a scalar register", "v": "a vector register",
            "data": "the data of a store"}.get(hazard.wrote, hazard.wrote.upper())
    cure = f"s_nop {hazard.states - since - 1}" if hazard.counts == "any" else "v_nop"
    raise MissingHazard(f"{hazard.states} wait states are needed after {text} ({hazard.first}, {what}), and there are "
                        f"{since}; "
                        f"put {cure} before this instruction")
