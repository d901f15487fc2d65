"""The passes from virtual registers to laid out machine code, in order, with the hooks of an ISA and dumps.

A Target's compile calls `run(function, target)` after selection. An ISA adds passes with `Target.hooks`:
"before:<pass>" or "after:<pass>" for the names in PASSES. A hook's name is its function's.

`DUMP=<pass>:<kernel>` prints the function after a pass or hook. The pass "select" prints the output of selection.
Kernel "*" or none selects all kernels. VIZ records the function after each pass and hook.
"""
from __future__ import annotations
import sys
from collections.abc import Iterator, Mapping, Sequence

from tinyhw import config, trace
from tinyhw.machine.allocate.allocate import allocate
from tinyhw.machine.allocate.spill import spill
from tinyhw.machine.ir.code import Code
from tinyhw.machine.ir.inst import Function
from tinyhw.machine.ir.moves import expand, moves
from tinyhw.machine.ir.show import show
from tinyhw.machine.ir.target import Hook, Target
from tinyhw.machine.order.early import check_early
from tinyhw.machine.order.layout import layout
from tinyhw.machine.order.order import order
from tinyhw.named_tuple import NamedTuple
from tinyhw.uop.program import Program

class Before(NamedTuple):
  """Pass `first` must run before pass `second`, because of `reason`."""
  first: str
  second: str
  reason: str

def reasons(names: Sequence[str], order: Sequence[Before]) -> dict[str, str]:
  """The reason for the position of each pass.

  Raises AssertionError if the order is violated or names no pass, or if a pass has no reason.
  """
  places = {name: k for k, name in enumerate(names)}
  for b in order:
    assert b.first in places and b.second in places, f"{b.first} or {b.second} is no pass; there are {', '.join(names)}"
    assert places[b.first] < places[b.second], f"pass {b.first} must run before {b.second}: {b.reason}"
  found = {name: "; ".join([f"before {b.second}: {b.reason}" for b in order if b.first == name]
                           + [f"after {b.first}: {b.reason}" for b in order if b.second == name]) for name in names}
  assert all(found.values()), f"no reason for {[name for name, reason in found.items() if not reason]}"
  return found

def verified(function: Function, target: Target) -> Function:
  """With CHECK=1, refuse invalid output of selection."""
  if not config.CHECK: return function
  from tinyhw.machine.verify.ssa import verify  # for tests; with `check` it takes 0.3 ms to load
  return verify(function, target)

def remember(function: Function, target: Target) -> Function:
  """With CHECK=1, record the code before spilling and allocation, for `check`."""
  if not config.CHECK: return function
  from tinyhw.machine.verify.allocation import snapshot  # for tests
  function.reference = snapshot(function)
  return function

def check(function: Function, target: Target) -> Function:
  """With CHECK=1, prove that the physical code is right."""
  if function.reference is None: return function
  from tinyhw.machine.verify.allocation import check as prove  # for tests
  return prove(function, target, function.reference)

def check_results(function: Function, target: Target) -> Function:
  """With CHECK=1, refuse early results that share a register with a source. Hooks have exchanged registers since
  `check`."""
  return check_early(function, target) if config.CHECK else function

PASSES: dict[str, Hook] = {
  "verify": verified,
  "order": order,
  "remember": remember,
  "spill": spill,
  "allocate": allocate,
  "check": check,
  "moves": moves,
  "check_moves": check,
  "expand": expand,
  "layout": layout,
  "check_results": check_results,
}

ORDER = (
  Before("verify", "order", "passes rely on the form, and do not look"),
  Before("order", "spill", "the order of instructions decides how many values are live at once"),
  Before("order", "remember", "the checker compares instruction by instruction"),
  Before("remember", "spill", "spilling and allocation rewrite instructions in place"),
  Before("spill", "allocate", "allocation assumes that the pressure is within the limit"),
  Before("allocate", "check", "only physical registers can be wrong"),
  Before("allocate", "moves", "copies are between physical registers"),
  Before("moves", "check_moves", "what is checked is how cycles were broken"),
  Before("moves", "expand", "a target has no parallel copies"),
  Before("check_moves", "expand", "the checker knows copies, spills and reloads, not the target's instructions for "
         "them"),
  Before("expand", "layout", "a block that only had copies of registers to themselves is empty only then"),
  Before("layout", "check_results", "what is checked are the instructions that are encoded"),
)

REASONS = reasons(list(PASSES), ORDER)

def hook_reasons(hooks: Mapping[str, Sequence[Hook]], order: Sequence[Before]) -> dict[str, str]:
  """The reason for the position of each hook of a target. A target's module calls this at import.

  order: constraints among hooks and passes. Raises AssertionError as `reasons` does, and if a position does not exist.
  """
  _check_places(hooks)
  names: list[str] = []
  for name in PASSES:
    names += [hook.__name__ for hook in hooks.get(f"before:{name}", ())]
    names.append(name)
    names += [hook.__name__ for hook in hooks.get(f"after:{name}", ())]
  found = reasons(names, (*ORDER, *order))
  return {name: reason for name, reason in found.items() if name not in PASSES}

def _check_places(hooks: Mapping[str, Sequence[Hook]]) -> None:
  """Raise AssertionError if a hook has no pass to stand before or after."""
  known = {f"{where}:{name}" for where in ("before", "after") for name in PASSES}
  unknown = [place for place in hooks if place not in known]
  assert not unknown, f"hooks are before: or after: one of {', '.join(PASSES)}, not {', '.join(unknown)}"

def steps(target: Target) -> Iterator[tuple[str, Hook, str]]:
  """Yield (name, function, position) of each pass and hook of a target, in order. The position of a hook is its key,
  such as "before:order". It is empty for a pass."""
  for name, step in PASSES.items():
    for place in (f"before:{name}", name, f"after:{name}"):
      if place == name: yield name, step, ""
      else:
        for hook in target.hooks.get(place, ()): yield hook.__name__, hook, place

def reason_of(name: str, step: Hook, place: str, reasons: Mapping[str, str]) -> str:
  """The reason for the position of a pass. For a hook without a reason: its position, and the first sentence of its
  docstring."""
  if not place: return REASONS[name]
  if name in reasons: return reasons[name]
  return f"{place.replace(':', ' ')}: " + " ".join((step.__doc__ or name).split()).partition(". ")[0].rstrip(".")

def run(function: Function, target: Target) -> Function:
  """Run all passes and hooks.

  Raises AllocationError if a kernel cannot be allocated, which is an error in tinyhw or its tables.
  """
  _check_places(target.hooks)
  wanted, recorder = _dump_after(function), trace.recorder
  if wanted == "select": _dump(function, "select")
  if recorder is not None: recorder.passed("select", function, "instructions over virtual registers")
  for name, step, place in steps(target):
    function = step(function, target)
    if wanted == name: _dump(function, name)
    if recorder is not None: recorder.passed(name, function, reason_of(name, step, place, target.reasons))
  return function

def cpu_code(program: Program, arch: str, function: Function, text: bytes) -> Code:
  """The code of a program for a CPU: `text` are the bytes of its laid out function. Buffers come before variables."""
  arguments = ("buffer",) * len(program.params) + ("int64",) * len(program.variables)
  return Code(program.name, arch, text, arguments, local_bytes=function.local_bytes)

def _dump_after(function: Function) -> str:
  """The pass after which DUMP asks for this function, or ""."""
  setting = str(config.DUMP)
  if not setting: return ""
  name, _, kernel = setting.partition(":")
  return name if kernel in ("", "*", function.name) else ""

def _dump(function: Function, name: str) -> None:
  sys.stdout.write(f"; after {name}\n{show(function)}\n")
