"""The damages of AMD's kernels, and runs of their mutants: for test/emulator/mutants/mutations.py.

Branches are assembled again. The oracle is rules.py.
"""
from __future__ import annotations
import random
from collections.abc import Sequence
from functools import partial
from typing import Any

from test.emulator.mutants import mutations
from test.emulator.amd.rules import Did, Local, broken
from test.emulator.mutants.mutation_kernels import Case, cases
from test.emulator.mutants.mutations import Class, Damage, Family, Insts, Outcome, Recorder
from tinyhw.drivers import amd
from tinyhw.drivers.amd import kfd
from tinyhw.emulator.amd.card.computer import GpuHost
from tinyhw.emulator.amd.workgroup import Workgroup
from tinyhw.isa.amd.asm.decode import decode_all
from tinyhw.isa.amd.asm.encode import encode
from tinyhw.isa.amd.asm.syntax import show
from tinyhw.isa.amd.table import regs
from tinyhw.isa.amd.table.table import build, table
from tinyhw.machine.ir.inst import Effect, MInst, Reg

# **** code ****

class Listing(mutations.Listing):
  """A kernel's instructions, and the target of each branch; without the bytes after the end."""
  def __init__(self, arch: str, text: bytes):
    self.arch = arch
    found = list(decode_all(text, arch))
    last = max(k for k, (_, inst) in enumerate(found) if inst.row.isa.key == "s_endpgm")
    self.tail = text[found[last + 1][0]:] if last + 1 < len(found) else b""
    places = {at: k for k, (at, _) in enumerate(found)}
    self.insts = [inst for _, inst in found[:last + 1]]
    self.goals = {k: places[found[k + 1][0] + 4 * signed16(inst.operands[0])] for k, inst in enumerate(self.insts)
                  if is_branch(inst)}

  def bytes(self, insts: Sequence[MInst | None]) -> bytes:
    """Return the code with these instructions in their places; None: removed. Raises EncodeError."""
    pieces = [b"" if inst is None else encode(inst) for inst in insts]
    places = [0]
    for piece in pieces: places.append(places[-1] + len(piece))
    for k, goal in self.goals.items():
      inst = insts[k]
      if inst is not None:
        pieces[k] = encode(build(table(self.arch)[inst.row.isa.key], (places[goal] - places[k + 1]) // 4))
    return b"".join(pieces) + self.tail

def signed16(n: int) -> int: return (n & 0xffff ^ 0x8000) - 0x8000
def is_branch(inst: MInst) -> bool:
  return bool(inst.row.effects & Effect.JUMP) and inst.row.isa.key.startswith(("s_branch", "s_cbranch"))
def name_of(inst: MInst) -> str: return str(inst.row.isa.key)
def with_operand(inst: MInst, place: int, value: Any) -> MInst:
  return MInst(inst.row, [value if k == place else o for k, o in enumerate(inst.operands)])

# **** damages ****

MEMORY_WAITS = ("s_waitcnt", "s_waitcnt_vscnt", "s_wait_loadcnt", "s_wait_storecnt", "s_wait_dscnt", "s_wait_kmcnt",
                "s_wait_loadcnt_dscnt")
STATES = ("s_nop", "v_nop", "s_waitcnt_depctr")
# of a wait: positions of its counters, and their bits
FIELDS = {"gfx942": ((0, 4), (8, 4)), "gfx1100": ((10, 6), (4, 6)), "gfx1200": ((0, 6),)}

def places(insts: Insts, *names: str) -> list[int]:
  return [k for k, inst in enumerate(insts) if inst is not None and name_of(inst) in names]

def remove(*names: str) -> Damage:
  def act(insts: Insts, rng: random.Random, case: Case) -> str | None:
    found = places(insts, *names)
    if not found: return None
    k = rng.choice(found)
    gone, insts[k] = insts[k], None
    assert gone is not None
    return f"without {show(gone)}"
  return act

def weaken_wait(insts: Insts, rng: random.Random, case: Case) -> str | None:
  """Let one counter be higher."""
  found = places(insts, *MEMORY_WAITS)
  if not found: return None
  k = rng.choice(found)
  inst = insts[k]
  assert inst is not None
  low, bits = rng.choice(FIELDS[case.arch])
  value, most = inst.operands[-1], (1 << bits) - 1
  now = value >> low & most
  if now == most: return None
  more = rng.choice((now + 1, now + 1, now + 2, rng.randint(now + 1, most)))
  made = insts[k] = with_operand(inst, len(inst.operands) - 1, value & ~(most << low) | min(more, most) << low)
  return f"{show(made)} for {show(inst)}"

def weaken_alu(insts: Insts, rng: random.Random, case: Case) -> str | None:
  """Shorten s_nop, or remove one field of a wait for results of the ALUs."""
  found = places(insts, "s_nop", "s_waitcnt_depctr")
  if not found: return None
  k = rng.choice(found)
  inst = insts[k]
  assert inst is not None
  value = inst.operands[0]
  if name_of(inst) == "s_nop":
    if value == 0: return None
    changed = rng.randrange(value)
  else:
    waited = [(low, bits) for low, bits in ((0, 1), (1, 1), (9, 3), (12, 4)) if value >> low & (1 << bits) - 1 == 0]
    if not waited: return None
    low, bits = rng.choice(waited)
    changed = value | (1 << bits) - 1 << low
  made = insts[k] = with_operand(inst, 0, changed)
  return f"{show(made)} for {show(inst)}"

def remove_barrier(insts: Insts, rng: random.Random, case: Case) -> str | None:
  found = places(insts, "s_barrier", "s_barrier_signal")
  if not found: return None
  k = rng.choice(found)
  pair = (insts[k + 1] if insts[k] is not None and name_of(insts[k]) == "s_barrier_signal"
          else None)  # type: ignore[arg-type]
  insts[k] = None
  if pair is not None: insts[k + 1] = None
  return "without a barrier"

def writes_exec(inst: MInst | None) -> bool:
  if inst is None: return False
  return "exec" in inst.row.isa.writes or any(isinstance(r, Reg) and r.cls.bank is regs.SGPR and r.index == regs.EXEC
                                              for r in inst.writes())

def remove_exec(insts: Insts, rng: random.Random, case: Case) -> str | None:
  found = [k for k, inst in enumerate(insts) if writes_exec(inst)]
  if not found: return None
  k = rng.choice(found)
  gone, insts[k] = insts[k], None
  assert gone is not None
  return f"without {show(gone)}"

def swap_register(insts: Insts, rng: random.Random, case: Case) -> str | None:
  """Replace one operand by another register of its kind that the kernel has. The instruction then reads or writes that
  one."""
  bank, written = rng.choice((regs.VGPR, regs.SGPR)), rng.random() < 0.5
  count = dict(case.code.registers).get(bank.name, 1)
  found = [(k, place) for k, inst in enumerate(insts) if inst is not None
           for place in (inst.row.writes if written else inst.row.only_reads)
           if isinstance(inst.operands[place], Reg) and inst.operands[place].cls.bank is bank
           and inst.operands[place].index < count]
  if not found: return None
  k, place = rng.choice(found)
  inst = insts[k]
  assert inst is not None
  old = inst.operands[place]
  others = [i for i in range(0, count - old.cls.units + 1, old.cls.align) if i != old.index]
  if not others: return None
  made = insts[k] = with_operand(inst, place, regs.reg(old.cls, rng.choice(others)))
  return f"{show(made)} for {show(inst)}"

def move_up(insts: Insts, rng: random.Random, case: Case) -> str | None:
  """Swap an instruction with the one before it."""
  fixed = ("s_endpgm", "s_barrier", "s_barrier_signal", "s_barrier_wait")
  found = [k for k in range(1, len(insts)) if all(i is not None and not is_branch(i) and name_of(i) not in fixed
                                                  for i in insts[k - 1:k + 1])]
  k = rng.choice(found)
  insts[k - 1], insts[k] = insts[k], insts[k - 1]
  first, second = insts[k - 1], insts[k]
  assert first is not None and second is not None
  return f"{show(first)} before {show(second)}"

DAMAGES = (
  Class("a wait is gone", remove(*MEMORY_WAITS), True),
  Class("a wait is weaker", weaken_wait, True),
  Class("a nop or ALU wait is gone", remove(*STATES), True),
  Class("a nop or ALU wait is weaker", weaken_alu, True),
  Class("a barrier is gone", remove_barrier, True),
  Class("a write of exec is gone", remove_exec, False),
  Class("a register is swapped", swap_register, False),
  Class("two instructions change places", move_up, False),
)

# **** runs ****

LOCAL_BYTES = {"b8": 1, "u8": 1, "i8": 1, "b16": 2, "u16": 2, "i16": 2, "b32": 4, "b64": 8, "b96": 12, "b128": 16}

def local_of(inst: MInst, wave: Any) -> Local | None:
  """Return the bytes of the LDS that an instruction is about to touch; None if it is none of the loads and stores of
  our kernels."""
  name, index = name_of(inst), inst.row.isa.index
  words = name.split("_")
  if words[1] not in ("load", "store") or words[-1] not in LOCAL_BYTES or "2addr" in words: return None
  row, size = inst.operands[index["addr"]].index, LOCAL_BYTES[words[-1]]
  offset = inst.operands[index["offset"]] or 0
  lanes = [lane for lane in range(wave.lanes) if wave.exec >> lane & 1]
  try:
    values = wave.u[row]
    stored = ([wave.u[inst.operands[index["data0"]].index + k] for k in range(-(-size // 4))] if words[1] == "store"
              else [])
  except KeyError: return None
  data = tuple(b"".join(word[lane].to_bytes(4, "little") for word in stored)[:size] for lane in lanes) if stored else ()
  return Local(words[1] == "store", tuple((values[lane] + offset, size) for lane in lanes), data)

class Amd(Family):
  """The mutants of AMD's GPUs."""
  isa, damages, driver = "amd", DAMAGES, amd

  def cases(self, arch: str) -> Sequence[Case]: return cases("amd", arch)
  def listing(self, arch: str, text: bytes) -> Listing: return Listing(arch, text)
  def check(self, arch: str, text: bytes) -> None: list(decode_all(text, arch))
  def forget(self, computer: GpuHost) -> None: kfd.forget(computer)

  def computer(self, arch: str, seed: int, strict: int, recorder: Recorder[Did]) -> GpuHost:
    computer = GpuHost(arch, [arch], seed, strict)
    def make(*arguments: Any, **named: Any) -> Workgroup:
      return Workgroup(*arguments, watch=partial(note, recorder, recorder.begin()), **named)
    computer.make_workgroup = make
    return computer

  def first_broken(self, case: Case, outcome: Outcome) -> str | None:
    groups = ([traces[k] for k in sorted(traces)] for traces in outcome.recorder.groups)
    found = next((found for traces in groups for found in broken(traces, case.arch, case.code.local_bytes)), None)
    return None if found is None else f"{found.rule}: {show(found.at)}"

def note(recorder: Recorder[Did], traces: dict[int, list[Did]], wave: Any, step: Any) -> None:
  """Record the instruction that a wave is about to execute."""
  number, inst = recorder.next(), step.inst
  local = local_of(inst, wave) if inst.row.isa.key.startswith("ds_") else None
  traces.setdefault(wave.number, []).append(Did(inst, wave.exec, number, local))

AMD = Amd()
