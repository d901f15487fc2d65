"""Mutations of machine code: real kernels with one random damage, run on a virtual GPU by the driver, and the verdict
on each.

A mutant is made from the exact bytes: decoded, damaged, assembled again. An oracle of the family finds the rules that
it breaks, from the trace of the instructions that its waves executed. Its results are compared with those of the
undamaged kernel. The verdict names the check that reported it.
"""
from __future__ import annotations
import collections
import dataclasses
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import ModuleType
from typing import Any, Generic, NamedTuple, TypeVar

from formats.mutations import cases as many

from test.emulator.mutants.mutation_kernels import Case
from tinyhw.device import Launch
from tinyhw.drivers.linux import files
from tinyhw.emulator.errors import EmulatorError, UnusedResult
from tinyhw.errors import DecodeError, DriverError, EncodeError

MOST_TIMES = 5   # as many instructions as the undamaged kernel: a mutant that executes more never ends
Insts = list[Any]                                            # of a kernel, as its family has them; None: removed
Damage = Callable[[Insts, random.Random, Case], str | None]  # damages one place, and describes it; None: it finds none
Trace = TypeVar("Trace")

class Class(NamedTuple):
  """A class of damage. rules: it breaks rules of the hardware, if anything. Otherwise it may also compute another
  result within the rules, which no check can see."""
  name: str
  act: Damage
  rules: bool

class Endless(Exception):
  """A mutant does not end."""

class Recorder(Generic[Trace]):
  """Observer of the waves of one launch. groups: for each workgroup the traces, by wave; buffers: (address, size) of
  the kernel's buffers that have content."""
  def __init__(self, most: int):
    self.most = most
    self.buffers: list[tuple[int, int]] = []
    self.count = 0
    self.groups: list[dict[int, list[Trace]]] = []

  def begin(self) -> dict[int, list[Trace]]:
    """Return the traces of one more workgroup."""
    self.groups.append({})
    return self.groups[-1]

  def next(self) -> int:
    """Return the number of an instruction that is about to be executed. Raises Endless."""
    self.count += 1
    if self.count > self.most: raise Endless
    return self.count

class Outcome(NamedTuple):
  """Outcome of a run. error: reported by strict mode, or for a feature that is not emulated; fault: reported by the
  card; results: written buffers at the end."""
  error: EmulatorError | None
  fault: str
  results: tuple[bytes, ...]
  recorder: Recorder[Any]

class Family:
  """The parts of a family of GPUs that mutants need. driver: its package."""
  isa: str
  damages: tuple[Class, ...]
  driver: ModuleType

  def cases(self, arch: str) -> Sequence[Case]:
    """Return the kernels of an architecture."""
    raise NotImplementedError

  def listing(self, arch: str, text: bytes) -> Listing:
    """Return the instructions of a kernel."""
    raise NotImplementedError

  def check(self, arch: str, text: bytes) -> None:
    """Raise DecodeError for code that no decoder reads."""
    raise NotImplementedError

  def computer(self, arch: str, seed: int, strict: int, recorder: Recorder[Any]) -> Any:
    """Return a virtual computer whose workgroups are watched."""
    raise NotImplementedError

  def forget(self, computer: Any) -> None:
    """Release a computer that no driver uses any more."""

  def first_broken(self, case: Case, outcome: Outcome) -> str | None:
    """Return the text of a rule that a run broke."""
    raise NotImplementedError

class Listing:
  """A kernel's instructions."""
  insts: Insts

  def bytes(self, insts: Sequence[Any]) -> bytes:
    """Return the code with these instructions in their places. Raises EncodeError."""
    raise NotImplementedError

def run(family: Family, case: Case, text: bytes, seed: int, strict: int = 2, most: int = 1 << 40) -> Outcome:
  """Launch a kernel with this code on a new computer."""
  recorder: Recorder[Any] = Recorder(most)
  computer = family.computer(case.arch, seed, strict, recorder)
  before, files.COMPUTER = files.COMPUTER, computer
  device: Any = None
  error: EmulatorError | None = None
  fault, results = "", list[bytes]()
  try:
    device = family.driver.open(0, lambda name: None)  # no other user has it
    buffers = [device.allocator.alloc(size) for size in case.sizes]
    recorder.buffers = [(buffer.address, size) for buffer, size, content in zip(buffers, case.sizes, case.buffers)
                        if content is not None]
    for buffer, content in zip(buffers, case.buffers):
      if content is not None: device.allocator.copyin(buffer, memoryview(content))
    device.submit([Launch(device.load(dataclasses.replace(case.code, text=text)), buffers, (), case.grid)])
    device.synchronize()
    for buffer, content, size in zip(buffers, case.buffers, case.sizes):
      if content is not None: continue
      out = bytearray(size)
      device.allocator.copyout(memoryview(out), buffer)
      results.append(bytes(out))
  except EmulatorError as e: error = e
  except Endless: fault = "endless"
  except DriverError as e: fault = e.message
  finally:
    try:
      if device is not None: device.close()
    except (EmulatorError, DriverError, Endless): pass  # it is lost
    family.forget(computer)
    files.COMPUTER = before
  return Outcome(error, fault, tuple(results), recorder)

VERDICTS = ("reported", "by the card", "missed: a rule", "missed: a result", "needless", "unconfirmed", "harmless")
NOTICED, MISSED = VERDICTS[:2], VERDICTS[2:4]

class Mutant(NamedTuple):
  case: str
  arch: str
  kind: str
  what: str
  verdict: str
  why: str

def judge(family: Family, case: Case, text: bytes, seed: int, whole: Outcome, strict: int) -> tuple[str, str]:
  """Return the verdict on a mutant, and its reason. whole: the outcome of the undamaged kernel."""
  outcome = run(family, case, text, seed, strict, most=1000 + MOST_TIMES * whole.recorder.count)
  rule = family.first_broken(case, outcome)
  if outcome.fault: return "by the card", outcome.fault.splitlines()[0]
  if outcome.error is None:
    if rule is not None: return "missed: a rule", rule
    return ("harmless", "") if outcome.results == whole.results else ("missed: a result", "")
  message = outcome.error.message.splitlines()[0]
  if rule is not None: return "reported", f"{message} ({rule})"
  loose = run(family, case, text, seed, strict=0, most=1000 + MOST_TIMES * whole.recorder.count)
  if loose.error is None and not loose.fault and loose.results == whole.results:
    return ("needless" if isinstance(outcome.error, UnusedResult) else "unconfirmed"), message
  return "reported", message

def mutants(family: Family, arch: str, count: int, seed: int = 0, strict: int = 2) -> Iterator[Mutant]:
  """Yield `count` mutants, of all kernels and classes in turn. Each is a function of the seed and its number. strict:
  EMULATE_STRICT, at most."""
  kernels = family.cases(arch)
  listings = [family.listing(arch, case.code.text) for case in kernels]
  levels = [1 if isinstance(run(family, case, case.code.text, seed, strict).error, UnusedResult) else strict
            for case in kernels]
  wholes = [run(family, case, case.code.text, seed, level) for case, level in zip(kernels, levels)]
  for case, listing, whole in zip(kernels, listings, wholes):
    assert whole.error is None and not whole.fault, f"{arch} {case.name}: {whole.error or whole.fault}"
    rule = family.first_broken(case, whole)
    assert rule is None, f"{arch} {case.name} breaks a rule: {rule}"
    assert listing.bytes(listing.insts) == case.code.text, f"{arch} {case.name} is not assembled as it was"
  seen: set[bytes] = set()
  for number in range(count):
    rng, kind = random.Random(f"{seed} {arch} {number}"), family.damages[number % len(family.damages)]
    made = None
    while made is None: made = damaged(family, kernels, listings, rng, kind, seen)
    place, text, what = made
    verdict, why = judge(family, kernels[place], text, rng.getrandbits(32), wholes[place], levels[place])
    yield Mutant(kernels[place].name, arch, kind.name, what, verdict, why)

def damaged(family: Family, kernels: Sequence[Case], listings: Sequence[Listing], rng: random.Random, kind: Class,
            seen: set[bytes]) -> tuple[int, bytes, str] | None:
  """Return a new mutant: the number of its kernel, its code, the damage."""
  place = rng.randrange(len(kernels))
  insts: Insts = list(listings[place].insts)
  what = kind.act(insts, rng, kernels[place])
  if what is None: return None
  try:
    text = listings[place].bytes(insts)
    family.check(kernels[place].arch, text)
  except (EncodeError, DecodeError): return None
  if text in seen and rng.random() < 0.98: return None
  seen.add(text)
  return place, text, what

def drawn_seed() -> int:
  """Return 0 in CI; nightly another seed each time, which pytest shows with failures."""
  seed = random.SystemRandom().randrange(1 << 32) if many(0, 1) else 0
  print(f"the seed of these mutations is {seed}")
  return seed

def rate(found: Iterable[Mutant]) -> tuple[int, int]:
  """Return how many were noticed, and how many change a result or break a rule."""
  verdicts = [mutant.verdict for mutant in found]
  noticed = sum(verdict in NOTICED for verdict in verdicts)
  return noticed, noticed + sum(verdict in MISSED for verdict in verdicts)

def counts(found: Iterable[Mutant]) -> dict[tuple[str, str], collections.Counter[str]]:
  """Count the verdicts, by architecture and class."""
  table: dict[tuple[str, str], collections.Counter[str]] = collections.defaultdict(collections.Counter)
  for mutant in found: table[mutant.arch, mutant.kind][mutant.verdict] += 1
  return table

def shown(table: dict[tuple[str, str], collections.Counter[str]]) -> str:
  """Return the counts as text."""
  lines = [f"{'':40}" + " ".join(f"{v:>15}" for v in VERDICTS)]
  for (arch, kind), verdicts in sorted(table.items()):
    lines.append(f"{arch:8} {kind:31}" + " ".join(f"{verdicts[v]:15}" for v in VERDICTS))
  return "\n".join(lines)
