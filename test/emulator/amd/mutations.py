"""Mutations of machine code: real kernels with one thing damaged at random, run on the virtual GPU by the driver, and what became of each.

A mutant is made from the exact bytes: decoded, damaged (`DAMAGES`), assembled again with its branches. What it did wrong is told by rules.py, from
the trace of what its waves executed; what it computed is compared with what the whole kernel computes. The verdict says who noticed.
"""
from __future__ import annotations
import collections
import dataclasses
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

from test.emulator.amd.mutation_kernels import Case, cases
from test.emulator.amd.rules import Broken, Did, Local, broken
from tinyhw.device import Launch
from tinyhw.drivers import amd
from tinyhw.drivers.amd import kfd
from tinyhw.drivers.linux import files
from tinyhw.emulator.amd.computer import Computer
from tinyhw.emulator.amd.wave import Workgroup
from tinyhw.emulator.errors import StrictError, UnusedResult
from tinyhw.errors import DecodeError, DriverError, EncodeError
from tinyhw.isa.amd import regs
from tinyhw.isa.amd.decode import decode_all
from tinyhw.isa.amd.encode import encode
from tinyhw.isa.amd.syntax import show
from tinyhw.isa.amd.table import build, table
from tinyhw.machine.inst import Effect, MInst, Reg

MOST_TIMES = 5   # as many instructions as the whole kernel: then a mutant never ends

# **** code ****

class Listing:
  """A kernel's instructions, and which of them each branch goes to; without what lies behind the end."""
  def __init__(self, arch: str, text: bytes):
    self.arch = arch
    found = list(decode_all(text, arch))
    last = max(k for k, (_, inst) in enumerate(found) if inst.row.isa.key == "s_endpgm")
    self.tail = text[found[last + 1][0]:] if last + 1 < len(found) else b""
    places = {at: k for k, (at, _) in enumerate(found)}
    self.insts = [inst for _, inst in found[:last + 1]]
    self.goals = {k: places[found[k + 1][0] + 4 * signed16(inst.operands[0])] for k, inst in enumerate(self.insts) if is_branch(inst)}

  def bytes(self, insts: Sequence[MInst | None]) -> bytes:
    """The code with these instructions in their places; None: it is gone. Raises EncodeError."""
    pieces = [b"" if inst is None else encode(inst) for inst in insts]
    places = [0]
    for piece in pieces: places.append(places[-1] + len(piece))
    for k, goal in self.goals.items():
      inst = insts[k]
      if inst is not None: pieces[k] = encode(build(table(self.arch)[inst.row.isa.key], (places[goal] - places[k + 1]) // 4))
    return b"".join(pieces) + self.tail

def signed16(n: int) -> int: return (n & 0xffff ^ 0x8000) - 0x8000
def is_branch(inst: MInst) -> bool: return bool(inst.row.effects & Effect.JUMP) and inst.row.isa.key.startswith(("s_branch", "s_cbranch"))
def name_of(inst: MInst) -> str: return str(inst.row.isa.key)
def with_operand(inst: MInst, place: int, value: Any) -> MInst:
  return MInst(inst.row, [value if k == place else o for k, o in enumerate(inst.operands)])

# **** damages ****

Insts = list[MInst | None]
Damage = Callable[[Insts, random.Random, Case], str | None]  # damages a place, and says how; None: it finds none

MEMORY_WAITS = ("s_waitcnt", "s_waitcnt_vscnt", "s_wait_loadcnt", "s_wait_storecnt", "s_wait_dscnt", "s_wait_kmcnt", "s_wait_loadcnt_dscnt")
STATES = ("s_nop", "v_nop", "s_waitcnt_depctr")
FIELDS = {"gfx942": ((0, 4), (8, 4)), "gfx1100": ((10, 6), (4, 6)), "gfx1200": ((0, 6),)}   # of a wait: where counters stand in it, and their bits

def places(insts: Insts, *names: str) -> list[int]: return [k for k, inst in enumerate(insts) if inst is not None and name_of(inst) in names]

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
  """One counter may be higher by some."""
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
  """s_nop is shorter; a wait for results of the ALUs waits for one thing less."""
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
  pair = insts[k + 1] if insts[k] is not None and name_of(insts[k]) == "s_barrier_signal" else None  # type: ignore[arg-type]
  insts[k] = None
  if pair is not None: insts[k + 1] = None
  return "without a barrier"

def writes_exec(inst: MInst | None) -> bool:
  if inst is None: return False
  return "exec" in inst.row.isa.writes or any(isinstance(r, Reg) and r.cls.bank is regs.SGPR and r.index == regs.EXEC for r in inst.writes())

def remove_exec(insts: Insts, rng: random.Random, case: Case) -> str | None:
  found = [k for k, inst in enumerate(insts) if writes_exec(inst)]
  if not found: return None
  k = rng.choice(found)
  gone, insts[k] = insts[k], None
  assert gone is not None
  return f"without {show(gone)}"

def swap_register(insts: Insts, rng: random.Random, case: Case) -> str | None:
  """One operand is another register of its kind, among those that the kernel has: it is read, or written, in the other's place."""
  bank, written = rng.choice((regs.VGPR, regs.SGPR)), rng.random() < 0.5
  count = dict(case.code.registers).get(bank.name, 1)
  found = [(k, place) for k, inst in enumerate(insts) if inst is not None for place in (inst.row.writes if written else inst.row.only_reads)
           if isinstance(inst.operands[place], Reg) and inst.operands[place].cls.bank is bank and inst.operands[place].index < count]
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
  """An instruction changes places with the one before it."""
  fixed = ("s_endpgm", "s_barrier", "s_barrier_signal", "s_barrier_wait")
  found = [k for k in range(1, len(insts)) if all(i is not None and not is_branch(i) and name_of(i) not in fixed for i in insts[k - 1:k + 1])]
  k = rng.choice(found)
  insts[k - 1], insts[k] = insts[k], insts[k - 1]
  first, second = insts[k - 1], insts[k]
  assert first is not None and second is not None
  return f"{show(first)} before {show(second)}"

class Class(NamedTuple):
  """A class of damage. rules: it breaks rules of the hardware, if anything; else it may compute something else by the rules, which nobody can see."""
  name: str
  act: Damage
  rules: bool

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

class Endless(Exception):
  """A mutant goes on and on."""

class Recorder:
  """Watches the waves of one launch. traces: of each workgroup, by wave."""
  def __init__(self, most: int):
    self.most = most
    self.count = 0
    self.groups: list[dict[int, list[Did]]] = []

  def make(self, *arguments: Any, **named: Any) -> Workgroup:
    """A workgroup that is watched."""
    traces: dict[int, list[Did]] = {}
    self.groups.append(traces)
    return Workgroup(*arguments, watch=partial(self.note, traces), **named)

  def note(self, traces: dict[int, list[Did]], wave: Any, step: Any) -> None:
    self.count += 1
    if self.count > self.most: raise Endless
    inst = step.inst
    local = local_of(inst, wave) if inst.row.isa.key.startswith("ds_") else None
    traces.setdefault(wave.number, []).append(Did(inst, wave.exec, self.count, local))

LOCAL_BYTES = {"b8": 1, "u8": 1, "i8": 1, "b16": 2, "u16": 2, "i16": 2, "b32": 4, "b64": 8, "b96": 12, "b128": 16}

def local_of(inst: MInst, wave: Any) -> Local | None:
  """The bytes of the LDS that an instruction is about to touch; None: it is none of the loads and stores that kernels of ours have."""
  name, index = name_of(inst), inst.row.isa.index
  words = name.split("_")
  if words[1] not in ("load", "store") or words[-1] not in LOCAL_BYTES or "2addr" in words: return None
  row, size = inst.operands[index["addr"]].index, LOCAL_BYTES[words[-1]]
  offset = inst.operands[index["offset"]] or 0
  lanes = [lane for lane in range(wave.lanes) if wave.exec >> lane & 1]
  try:
    values = wave.u[row]
    stored = [wave.u[inst.operands[index["data0"]].index + k] for k in range(-(-size // 4))] if words[1] == "store" else []
  except KeyError: return None
  data = tuple(b"".join(word[lane].to_bytes(4, "little") for word in stored)[:size] for lane in lanes) if stored else ()
  return Local(words[1] == "store", tuple((values[lane] + offset, size) for lane in lanes), data)

class Outcome(NamedTuple):
  """error: what strict mode reported; fault: what the card reported. results: what written buffers held at the end."""
  error: StrictError | None
  fault: str
  results: tuple[bytes, ...]
  recorder: Recorder

def run(case: Case, text: bytes, seed: int, strict: int = 2, most: int = 1 << 40) -> Outcome:
  """Launch a kernel with this code on a new computer."""
  computer, recorder = Computer(case.arch, [case.arch], seed, strict), Recorder(most)
  computer.make_workgroup = recorder.make
  before, files.COMPUTER = files.COMPUTER, computer
  device: Any = None
  error: StrictError | None = None
  fault, results = "", list[bytes]()
  try:
    device = amd.open(0, lambda name: None)  # type: ignore[arg-type]  # nobody else has it
    buffers = [device.allocator.alloc(size) for size in case.sizes]
    for buffer, content in zip(buffers, case.buffers):
      if content is not None: device.allocator.copyin(buffer, memoryview(content))
    device.submit([Launch(device.load(dataclasses.replace(case.code, text=text)), buffers, (), case.grid)])
    device.synchronize()
    for buffer, content, size in zip(buffers, case.buffers, case.sizes):
      if content is not None: continue
      out = bytearray(size)
      device.allocator.copyout(memoryview(out), buffer)
      results.append(bytes(out))
  except StrictError as e: error = e
  except Endless: fault = "endless"
  except DriverError as e: fault = e.message
  finally:
    try:
      if device is not None: device.close()
    except (StrictError, DriverError, Endless): pass  # it is lost
    kfd.forget(computer)
    files.COMPUTER = before
  return Outcome(error, fault, tuple(results), recorder)

# **** verdicts ****

VERDICTS = ("reported", "by the card", "missed: a rule", "missed: a result", "needless", "unconfirmed", "harmless")

class Mutant(NamedTuple):
  case: str
  arch: str
  kind: str
  what: str
  verdict: str
  why: str

def first_broken(case: Case, outcome: Outcome) -> Broken | None:
  """A rule that a run did not keep."""
  groups = ([traces[k] for k in sorted(traces)] for traces in outcome.recorder.groups)
  return next((found for traces in groups for found in broken(traces, case.arch, case.code.local_bytes)), None)

def judge(case: Case, text: bytes, seed: int, whole: Outcome, strict: int) -> tuple[str, str]:
  """What became of a mutant, and why. whole: the outcome of the kernel as it was."""
  outcome = run(case, text, seed, strict, most=1000 + MOST_TIMES * whole.recorder.count)
  rule = first_broken(case, outcome)
  if outcome.fault: return "by the card", outcome.fault.splitlines()[0]
  if outcome.error is None:
    if rule is not None: return "missed: a rule", f"{rule.rule}: {show(rule.at)}"
    return ("harmless", "") if outcome.results == whole.results else ("missed: a result", "")
  message = outcome.error.message.splitlines()[0]
  if rule is not None: return "reported", f"{message} ({rule.rule})"
  loose = run(case, text, seed, strict=0, most=1000 + MOST_TIMES * whole.recorder.count)
  if loose.error is None and not loose.fault and loose.results == whole.results:
    return ("needless" if isinstance(outcome.error, UnusedResult) else "unconfirmed"), message
  return "reported", message

def mutants(arch: str, count: int, seed: int = 0) -> Iterator[Mutant]:
  """So many mutants, of all kernels and classes in turn; each a function of the seed and its number."""
  kernels = cases(arch)
  listings = [Listing(arch, case.code.text) for case in kernels]
  levels = [1 if isinstance(run(case, case.code.text, seed).error, UnusedResult) else 2 for case in kernels]
  wholes = [run(case, case.code.text, seed, level) for case, level in zip(kernels, levels)]
  for case, listing, whole in zip(kernels, listings, wholes):
    assert whole.error is None and not whole.fault, f"{arch} {case.name}: {whole.error or whole.fault}"
    rule = first_broken(case, whole)
    assert rule is None, f"{arch} {case.name} breaks a rule: {rule}"
    assert listing.bytes(listing.insts) == case.code.text, f"{arch} {case.name} is not assembled as it was"
  seen: set[bytes] = set()
  for number in range(count):
    rng = random.Random(f"{seed} {arch} {number}")
    made = None
    while made is None: made = damaged(kernels, listings, rng, DAMAGES[number % len(DAMAGES)], seen)
    place, text, what = made
    verdict, why = judge(kernels[place], text, rng.getrandbits(32), wholes[place], levels[place])
    yield Mutant(kernels[place].name, arch, DAMAGES[number % len(DAMAGES)].name, what, verdict, why)

def damaged(kernels: Sequence[Case], listings: Sequence[Listing], rng: random.Random, kind: Class, seen: set[bytes]) -> tuple[int, bytes, str] | None:
  """A mutant that there has not been yet: the number of its kernel, its code, what was done."""
  place = rng.randrange(len(kernels))
  insts: Insts = list(listings[place].insts)
  what = kind.act(insts, rng, kernels[place])
  if what is None: return None
  try:
    text = listings[place].bytes(insts)
    list(decode_all(text, kernels[place].arch))
  except (EncodeError, DecodeError): return None
  if text in seen and rng.random() < 0.98: return None
  seen.add(text)
  return place, text, what

def counts(found: Iterable[Mutant]) -> dict[tuple[str, str], collections.Counter[str]]:
  """How many of each verdict, by architecture and class."""
  table: dict[tuple[str, str], collections.Counter[str]] = collections.defaultdict(collections.Counter)
  for mutant in found: table[mutant.arch, mutant.kind][mutant.verdict] += 1
  return table

def shown(table: dict[tuple[str, str], collections.Counter[str]]) -> str:
  """The counts as text."""
  lines = [f"{'':40}" + " ".join(f"{v:>15}" for v in VERDICTS)]
  for (arch, kind), verdicts in sorted(table.items()): lines.append(f"{arch:8} {kind:31}" + " ".join(f"{verdicts[v]:15}" for v in VERDICTS))
  return "\n".join(lines)
