"""Interrupts at every bytecode: KeyboardInterrupt before each instruction of tinyhw that a first compile, a write, a
capture and a replay execute.

One process: programs run again and again under `sys.settrace`, each time until the next instruction that no interrupt
has met. After each interrupt the engine must be at rest: its lock free, garbage collection on, no capture under way.
Written storage must be old or new or refused. The same program, compiled anew, must give the right numbers. threads.py
calls `interrupted` in processes of its own.

CPython runs handlers at calls, at the start of functions and at jumps backwards. A trace function can raise at other
instructions, too: those between the end of a `with` or `try` and the call that leaves it. These are left out. Wants
Python 3.11 or later, whose code says where these are.
"""
from __future__ import annotations
import contextvars
import dis
import gc
import os
import random
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
OURS = tuple(str(ROOT / folder) + os.sep for folder in ("tinyhw", "drivers", "autogen"))
GROUP = 12            # functions that are traced at the same time: the others run at full speed

Place = tuple[CodeType, int]

def name_of(place: Place) -> str:
  """A place, the same in every process."""
  code, offset = place
  return f"{os.path.relpath(code.co_filename, ROOT)}:{code.co_firstlineno}:{code.co_name}:{offset}"

def undeliverable(code: CodeType) -> frozenset[int]:
  """The offsets of instructions at which CPython lets no handler run: behind a protected range, up to the next call."""
  instructions = [i for i in dis.get_instructions(code) if i.opname != "CACHE"]
  # there is no public one
  ends = {entry.end for entry in dis._parse_exception_table(code)}  # type: ignore[attr-defined]
  found = set()
  for k, instruction in enumerate(instructions):
    if instruction.offset not in ends: continue
    for after in instructions[k:]:
      found.add(after.offset)
      if after.opname.startswith("CALL"): break
      if after.opname.startswith(("JUMP_BACKWARD", "RETURN")): break
  return frozenset(found)

class Interrupter:
  """`with interrupter:` raises KeyboardInterrupt at the next place of its functions that was not met before, once.
  functions: None means all."""
  def __init__(self) -> None:
    self.met: set[Place] = set()
    self.seen: dict[CodeType, None] = {}      # functions that ran
    self.functions: frozenset[CodeType] | None = frozenset()
    self.skip = 0                             # new places to let pass
    self.at: Place | None = None
    self._closed: dict[CodeType, frozenset[int]] = {}

  def __enter__(self) -> Interrupter:
    self.at = None
    sys.settrace(self._called)
    return self

  def __exit__(self, *_: object) -> None: sys.settrace(None)

  def _called(self, frame: FrameType, event: str, argument: Any) -> Any:
    code = frame.f_code
    if not code.co_filename.startswith(OURS) or self.at is not None: return None
    if code not in self.seen: self.seen[code] = None
    if self.functions is not None and code not in self.functions: return None
    frame.f_trace_opcodes, frame.f_trace_lines = True, False
    return self._stepped

  def _stepped(self, frame: FrameType, event: str, argument: Any) -> Any:
    if event != "opcode" or self.at is not None: return self._stepped
    place = frame.f_code, frame.f_lasti
    if place in self.met: return self._stepped
    if frame.f_code not in self._closed: self._closed[frame.f_code] = undeliverable(frame.f_code)
    if frame.f_lasti in self._closed[frame.f_code]: return self._stepped
    if self.skip:
      self.skip -= 1
      return self._stepped
    self.met.add(place)
    self.at = place
    raise KeyboardInterrupt

# ***** programs *****

def forget() -> None:
  """Let the next computation be scheduled and compiled anew."""
  from tinyhw import Device
  from tinyhw.engine.schedule import numbers, schedule
  schedule._schedules.clear()
  numbers._families.clear()
  for opened in list(Device._opened.values()): opened.kernels.clear()

class Programs:
  """The programs that are interrupted. Each raises AssertionError if its numbers are wrong."""
  def __init__(self) -> None:
    from tinyhw import Tensor, TinyJit
    self.Tensor, self.TinyJit = Tensor, TinyJit
    self.size = 3
    self.start()

  def start(self) -> None:
    """State that lasts from interrupt to interrupt."""
    self.state, self.steps = self.Tensor([0.0] * self.size).realize(), self.Tensor([0.0] * self.size).realize()
    self.one = self.Tensor([1.0] * self.size).realize()
    steps = self.steps
    self.replayed: Any = self.TinyJit(lambda x: (steps.assign(steps + x) * 2).realize())
    for _ in range(3): self.replayed(self.one)

  def compile(self) -> None:
    x = self.Tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    assert (found := ((x + 1) * x).sum(0).tolist()) == [22.0, 36.0, 54.0], found

  def write(self) -> None:
    x = self.Tensor([1.0, 2.0, 3.0]).realize()
    before, view = x * 10, x[1:]
    x += 1
    assert (found := [before.tolist(), x.tolist(), view.tolist()]) == [[10.0, 20.0, 30.0], [2.0, 3.0, 4.0],
                                                                       [3.0, 4.0]], found
    x[0] = 7
    assert (found := x.tolist()) == [7.0, 3.0, 4.0], found

  def write_state(self) -> None:
    """A tensor that lasts: after an interrupt it is as before, or as after."""
    before = self.read(self.state)
    self.state += 1
    assert (found := self.state.tolist()) == [before + 1] * self.size, f"{found} after {before}"

  def capture(self) -> None:
    total, x = self.Tensor([0.0, 0.0]).realize(), self.Tensor([1.0, 2.0]).realize()
    jit: Any = self.TinyJit(lambda x: (total.assign(total + x) * 2).realize())
    for k in range(1, 4): assert (found := jit(x).tolist()) == [2.0 * k, 4.0 * k], f"call {k}: {found}"

  def replay(self) -> None:
    before = self.read(self.steps)
    assert (found := self.replayed(self.one).tolist()) == [2 * (before + 1)] * self.size, f"{found} after {before}"

  def train(self) -> None:
    from tinyhw import nn
    w = self.Tensor([2.0, 4.0], requires_grad=True)
    optimizer = nn.optim.SGD([w], lr=0.25)
    with self.Tensor.train():
      (w * w).sum().backward()
      optimizer.step()
    assert (found := w.tolist()) == [1.0, 2.0], found

  def read(self, t: Any) -> float:
    """The number that all elements of a tensor are."""
    found: list[float] = t.tolist()
    assert found == found[:1] * self.size, f"half of a write: {found}"
    return found[0]

  def all(self) -> tuple[Callable[[], None], ...]:
    return self.compile, self.write, self.write_state, self.capture, self.replay, self.train

def at_rest() -> None:
  """Assert that the engine keeps nothing of a computation that was left."""
  from tinyhw import Tensor, threads
  from tinyhw.engine.thread import this_thread
  # threading.Condition asks this, too
  assert not threads.lock._is_owned(), "the lock is still held"  # type: ignore[attr-defined]
  assert gc.isenabled(), "garbage collection is off"
  assert (this_thread.capture is None and this_thread.kernels is None and this_thread.stored is None
          and this_thread.traced is None), vars(this_thread)
  assert not Tensor.training, "training mode is on"

def after(programs: Programs, program: Callable[[], None]) -> None:
  """Check that work goes on after an interrupt. State may be refused; then there is new state."""
  from tinyhw.errors import UnknownValueError
  at_rest()
  forget()
  for lasting in (programs.state, programs.steps):
    try: programs.read(lasting)
    except UnknownValueError:
      programs.start()
      break
  program()

def cold(interrupter: Interrupter, choose: random.Random, mean: int, most: int) -> None:
  """Interrupt the very first computation of a process, at places `mean` apart, until it succeeds: modules are
  imported, tables made."""
  from tinyhw import Tensor
  interrupter.functions = None
  for _ in range(most):
    interrupter.skip = int(choose.expovariate(1 / mean))
    try:
      with interrupter:
        assert (found := (Tensor([[1.0, 2.0], [3.0, 4.0]]) * 2 + 1).sum(0).tolist()) == [10.0, 14.0], found
    except KeyboardInterrupt: pass
    if interrupter.at is None: return

def interrupted(count: int, seed: int) -> tuple[list[str], list[str]]:
  """Interrupt at up to `count` places: (the places, what went wrong). A sample is spread by its seed."""
  sys.unraisablehook = lambda error: None     # an interrupt of a finalizer is told here, and goes no further
  interrupter, errors, choose = Interrupter(), list[str](), random.Random(seed)
  cold(interrupter, choose, 2000, min(count // 2, 60))
  interrupter.functions, interrupter.skip = frozenset(), 0
  programs = Programs()
  for program in programs.all():    # find out which functions run, first compile included
    forget()
    with interrupter: program()
  functions = [code for code in interrupter.seen if code.co_name != "<module>"]
  choose.shuffle(functions)
  for k in range(0, len(functions), GROUP):
    interrupter.functions = frozenset(functions[k:k + GROUP])
    for program in programs.all():
      for place in places(interrupter, program, choose, count - len(interrupter.met)):
        try: after(programs, program)
        except BaseException as error:  # noqa: BLE001  # whatever it is, it counts
          gc.enable()
          errors.append(f"{program.__name__}, interrupted at {name_of(place)}: {type(error).__name__}: {error}"[:600])
          if len(errors) > 20: return list(map(name_of, interrupter.met)), errors
          programs.start()
    if len(interrupter.met) >= count: break
  return list(map(name_of, interrupter.met)), errors

def places(interrupter: Interrupter, program: Callable[[], None], choose: random.Random, most: int) -> Iterator[Place]:
  """Run a program until it meets no new place; gives each place where it was interrupted."""
  for _ in range(max(most, 0)):
    forget()
    try:
      with interrupter: contextvars.copy_context().run(program)  # what `with Context(...)` may leave behind ends with
                                                                 # it: docs/guide/threads.md
    except KeyboardInterrupt: pass
    if interrupter.at is None: return
    yield interrupter.at
