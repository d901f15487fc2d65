"""Decoding of instructions: from bytes to functions of a warp, once for all blocks of a grid.

A `DecodedInstruction` has the function of the instruction, its control word, and the registers that it uses.
`DecodedCode` has those of one launch's code, by address.
"""
from __future__ import annotations
from collections.abc import Callable
from typing import TYPE_CHECKING

from tinyhw.emulator.errors import MissingHazard, OutOfBounds, UnknownInstruction
from tinyhw.emulator.nvidia.execute import control, matrix, shuffle, uniform, warpgroup
from tinyhw.emulator.nvidia.memory import copies, fragments, mbarrier, tensor_copies, transfer
from tinyhw.emulator.nvidia.python import Step, step
from tinyhw.emulator.nvidia.semantics.table import semantics_of
from tinyhw.emulator.nvidia.warp.operands import Operands
from tinyhw.errors import DecodeError
from tinyhw.isa.sass.asm.decode import decode
from tinyhw.isa.sass.asm.encode import BYTES
from tinyhw.isa.sass.asm.syntax import show
from tinyhw.isa.sass.table import regs
from tinyhw.isa.sass.table.control import Control
from tinyhw.isa.sass.table.form import Form
from tinyhw.isa.sass.table.uses import Uses, units_of, uses_of
from tinyhw.machine.ir.inst import MInst, Reg
from tinyhw.named_tuple import NamedTuple

if TYPE_CHECKING:
  from tinyhw.emulator.nvidia.native.translate import Translation

# instructions that do more than compute; semantics/table.py has all others
FUNCTIONS: dict[str, Callable[[Operands], Step]] = {
  **transfer.SEMANTICS, **control.SEMANTICS, **shuffle.SEMANTICS, **matrix.SEMANTICS, **fragments.SEMANTICS,
  **copies.SEMANTICS, **uniform.SEMANTICS, **warpgroup.SEMANTICS, **mbarrier.SEMANTICS, **tensor_copies.SEMANTICS}
# pipes, and names, of instructions that may jump, end lanes, or make warps wait
ENDS = frozenset({"branch", "sync", "SYNCS.PHASECHK"})

class DecodedInstruction(NamedTuple):
  """A decoded instruction. guard, inverted: the index of its predicate, and whether it is executed where that is false.
  ends: a block of steps ends after it."""
  inst: MInst
  control: Control
  uses: Uses
  guard: int
  inverted: bool
  ends: bool
  run: Step
  text: str

def made_ready(code: bytes, arch: str, address: int) -> DecodedInstruction:
  """Decode the instruction at the start of code. Raises UnknownInstruction."""
  try: inst, control_word = decode(code, 0, arch)
  except DecodeError as e: raise UnknownInstruction(str(e)) from None
  o = Operands(inst, control_word)
  check_reuse(inst, control_word)
  semantics, function = semantics_of(o), FUNCTIONS.get(inst.row.name)
  if semantics: run = step(o, semantics)
  elif function is not None: run = function(o)
  else: raise UnknownInstruction(f"{o.form.key} is not supported yet")
  o.finish()
  guard = o.values["guard"]
  if guard.cls.bank is regs.UNIFORM_PREDICATE and guard is not regs.UPT:
    raise UnknownInstruction(f"{o.form.key} with the guard {guard} is not supported yet: branch around it")
  text = f"{control_word} {show(inst, control_word, address)}"
  return DecodedInstruction(inst, control_word, uses_of(inst), guard.index, bool(o.values["guard_not"]),
                            bool({inst.row.pipe, inst.row.name} & ENDS), run, text)

def check_reuse(inst: MInst, control_word: Control) -> None:
  """Check the reuse flags: an instruction must not overwrite a register whose value it keeps for the next one.

  Raises MissingHazard.
  """
  form: Form = inst.row.isa
  written = {unit for r in inst.writes() for unit in units_of(r)}
  for spec, value in zip(form.specs, inst.operands):
    if spec.reuse < 0 or not control_word.reuse >> spec.reuse & 1 or not isinstance(value, Reg): continue
    if written.intersection(units_of(value)):
      raise MissingHazard(f"{value}.reuse keeps what its own instruction overwrites for the next one")

class DecodedCode:
  """The instructions of a launch's code, and their translation after its first use. read(address, size): bytes of the
  code."""
  def __init__(self, arch: str, read: Callable[[int, int], bytes]):
    self.arch, self.read = arch, read
    self.steps: dict[int, DecodedInstruction] = {}
    self.translations: list[Translation | None] = []

  def shared(self, make: Callable[[], Translation | None]) -> Translation | None:
    """Return the translation that all blocks share. The first one makes it."""
    if not self.translations: self.translations.append(make())
    return self.translations[0]

  def at(self, address: int) -> DecodedInstruction:
    """Return the instruction at an address. Raises OutOfBounds, UnknownInstruction, PageFault."""
    found = self.steps.get(address)
    if found is None:
      if address % BYTES: raise OutOfBounds(f"code at {address:#x}: instructions are at multiples of {BYTES}")
      found = self.steps[address] = made_ready(self.read(address, BYTES), self.arch, address)
    return found
