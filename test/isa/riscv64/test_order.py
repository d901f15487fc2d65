"""The worker loop on RISC-V under the architecture's memory model: what must not happen, does not.

Each pattern is statements of the loop, which become the instructions of runtime.py. `rvwmo.py` says which loads may
read what. Weaker instructions fail: each order that the table of instructions has is needed by a pattern.
"""
from __future__ import annotations
from collections.abc import Mapping
from typing import NamedTuple

import pytest
from riscv64.rvwmo import Event, Execution, events_of, may_happen

from tinyhw.autogen import cpu_ring
from tinyhw.isa.riscv64 import runtime
from tinyhw.machine.assembler.worker_loop import LOOP, Operations, expand

CONTEXT = cpu_ring.CONTEXT
POINTERS = {"s1": "context", "s9": f"context+{CONTEXT['STATE']}", runtime.REGISTERS["t4"]: "packet",
            runtime.REGISTERS["t5"]: "packet"}

class Pattern(NamedTuple):
  """threads: statements of each. outcome: "thread.place=thread.place" for a load and the access that it reads, "-" for
  the value at the start; all of them together must not happen. Places are those of accesses to memory."""
  threads: tuple[str, ...]
  outcome: str

# slot and packet are the same memory here. In place of a kernel's result: the packet's GRID
PATTERNS = {
  "who sees a packet published sees the packet": Pattern((
    "slot.FUNCTION = t6\npublish context.PUBLISHED, t3", "t2 = acquire context.PUBLISHED\nt1 = packet.FUNCTION"),
    "1.0=0.1 1.1=-"),
  "and the target": Pattern((
    "context.TARGET = target\npublish context.PUBLISHED, t3", "t2 = acquire context.PUBLISHED\nt2 = context.TARGET"),
    "1.0=0.1 1.1=-"),
  "and that no chunk is complete": Pattern((
    "context.COMPLETED = zero\npublish context.PUBLISHED, t3",
    "t2 = acquire context.PUBLISHED\nt7 = acquire context.COMPLETED"), "1.0=0.1 1.1=-"),
  "who sees a claim sees what was published before": Pattern((
    "slot.FUNCTION = t6\npublish context.PUBLISHED, t3",
    "t2 = acquire context.PUBLISHED\nclaim at state_at, state, next",
    "state = acquire at state_at\nt2 = acquire context.PUBLISHED"), "1.0=0.1 2.0=1.2 2.1=-"),
  "who sees a claim may overwrite the packet that was read before it": Pattern((
    "chunks = packet.CHUNKS\nclaim at state_at, state, next", "state = acquire at state_at\nslot.CHUNKS = t7"),
    "0.0=1.1 1.0=0.2"),
  "one thread claims": Pattern(("claim at state_at, state, next",) * 2, "0.0=- 1.0=-"),
  "results are complete before their chunk counts": Pattern((
    "slot.GRID = t6\nt4 = add to context.COMPLETED, t3", "t7 = acquire context.COMPLETED\nt2 = packet.GRID"),
    "1.0=0.1 1.1=-"),
  "what several threads count": Pattern((
    "slot.GRID = t6\nt4 = add to context.COMPLETED, t3", "t4 = add to context.COMPLETED, t3",
    "t7 = acquire context.COMPLETED\nt2 = packet.GRID"), "1.0=0.1 2.0=1.0 2.1=-"),
  "the target is read before our chunks count": Pattern((
    "t2 = context.TARGET\nt4 = add to context.COMPLETED, t3",
    "t1 = acquire context.COMPLETED\ncontext.TARGET = target"), "0.0=1.1 1.0=0.1"),
  "the caller sleeps, or the last thread sees it": Pattern((
    "exchange context.CALLER_SLEEPS\nt1 = acquire context.COMPLETED",
    "t4 = add to context.COMPLETED, t3\nt4 = acquire context.CALLER_SLEEPS"), "0.1=- 1.1=-"),
  "a worker sleeps, or the ringer sees it": Pattern((
    "increment context.SLEEPERS\nt1 = acquire context.BELL",
    "increment context.BELL\nt2 = acquire context.SLEEPERS"), "0.1=- 1.1=-"),
  "a worker that has heard the last bell sees STOP": Pattern((
    "context.STOP = zero\nincrement context.BELL", "bell = acquire context.BELL\nt1 = acquire context.STOP"),
    "1.0=0.1 1.1=-"),
  "or it counts as a sleeper before it looks": Pattern((
    "context.STOP = zero\nincrement context.BELL\nt2 = acquire context.SLEEPERS",
    "increment context.SLEEPERS\nt1 = acquire context.STOP"), "0.2=- 1.1=-"),
  "a worker leaves the sleepers before it sees that it slept": Pattern((
    "decrement context.SLEEPERS\nt1 = acquire context.BELL",
    "increment context.BELL\nt2 = acquire context.SLEEPERS"), "0.1=- 1.1=-"),
}

def threads_of(pattern: Pattern, forms: Mapping[str, str]) -> list[list[Event]]:
  """The accesses of a pattern, by a table of instructions."""
  operations = Operations(runtime.REGISTERS, forms)
  return [events_of(k, expand(operations, runtime.WORDS, cpu_ring.WORDS, text), POINTERS)
          for k, text in enumerate(pattern.threads)]

def happens(pattern: Pattern, forms: Mapping[str, str]) -> bool:
  threads = threads_of(pattern, forms)
  def event(text: str) -> Event | None:
    if text == "-": return None
    thread, place = map(int, text.split("."))
    return threads[thread][place]
  wanted = [[event(side) for side in part.split("=")] for part in pattern.outcome.split()]
  def outcome(execution: Execution) -> bool:
    return all(load is not None and execution.rf[load] == store for load, store in wanted)
  return may_happen(threads, outcome)

@pytest.mark.parametrize("name", PATTERNS)
def test_it_does_not_happen(name: str) -> None: assert not happens(PATTERNS[name], runtime.FORMS)

@pytest.mark.parametrize("name", PATTERNS)
def test_its_statements_are_in_the_loop(name: str) -> None:
  """STOP is written by Python."""
  lines = {line.split(";")[0].strip() for line in LOOP.splitlines()}
  for text in PATTERNS[name].threads:
    assert set(text.split("\n")) - {"context.STOP = zero", "slot.GRID = t6", "t1 = acquire context.BELL"} <= lines, text

# form -> parts of its instructions, and what they would be without an order. lr and sc both keep what was before them:
# one of the two would do
WEAKER = [("a = acquire F", {"\nfence r, rw": ""}), ("a = acquire W", {"\nfence r, rw": ""}),
          ("a = acquire at b", {"\nfence r, rw": ""}), ("a = acquire F", {"fence r, rw": "fence r, w"}),
          ("a = acquire at b", {"fence r, rw": "fence r, r"}), ("publish F, a", {"fence rw, w\n": ""}),
          ("increment W", {".aqrl": ".rl"}), ("increment W", {".aqrl": ".aq"}), ("decrement W", {".aqrl": ".rl"}),
          ("exchange W", {".aqrl": ".rl"}), ("a = add to F, b", {".aqrl": ".rl"}),
          ("a = add to F, b", {".aqrl": ".aq"}), ("claim at a, b, c", {"lr.d.aqrl": "lr.d.aq", "sc.d.rl": "sc.d"})]

@pytest.mark.parametrize("form, parts", WEAKER)
def test_each_order_is_needed(form: str, parts: dict[str, str]) -> None:
  text = runtime.FORMS[form]
  for old, new in parts.items():
    assert old in text
    text = text.replace(old, new)
  assert any(happens(pattern, {**runtime.FORMS, form: text}) for pattern in PATTERNS.values())

# ***** the model itself, by programs whose answer the manual or its litmus tests give *****

LITMUS = [
  # message passing; store buffering; load buffering
  ("sd a0, 0(s1)\nsd a0, 8(s1)", "ld a0, 8(s1)\nld a0, 0(s1)", "1.0=0.1 1.1=-", True),
  ("sd a0, 0(s1)\nfence w, w\nsd a0, 8(s1)", "ld a0, 8(s1)\nfence r, r\nld a0, 0(s1)", "1.0=0.1 1.1=-", False),
  ("sd a0, 0(s1)\nfence w, w\nsd a0, 8(s1)", "ld a0, 8(s1)\nld a0, 0(s1)", "1.0=0.1 1.1=-", True),
  ("sd a0, 0(s1)\nld a0, 8(s1)", "sd a0, 8(s1)\nld a0, 0(s1)", "0.1=- 1.1=-", True),
  ("sd a0, 0(s1)\nfence rw, rw\nld a0, 8(s1)", "sd a0, 8(s1)\nfence rw, rw\nld a0, 0(s1)", "0.1=- 1.1=-", False),
  ("sd a0, 0(s1)\nfence rw, w\nld a0, 8(s1)", "sd a0, 8(s1)\nfence rw, w\nld a0, 0(s1)", "0.1=- 1.1=-", True),
  ("ld a0, 0(s1)\nsd a0, 8(s1)", "ld a0, 8(s1)\nsd a0, 0(s1)", "0.0=1.1 1.0=0.1", True),
  ("ld a0, 0(s1)\nfence r, w\nsd a0, 8(s1)", "ld a0, 8(s1)\nfence r, w\nsd a0, 0(s1)", "0.0=1.1 1.0=0.1", False),
  # an AMO that acquires is before a later load; an sc is not
  ("amoadd.d.aq a0, a1, (s1)\nld a0, 8(s1)", "sd a0, 8(s1)\nfence rw, rw\nld a0, 0(s1)", "0.1=- 1.1=-", False),
  ("amoadd.d.rl a0, a1, (s1)\nld a0, 8(s1)", "sd a0, 8(s1)\nfence rw, rw\nld a0, 0(s1)", "0.1=- 1.1=-", True),
  ("lr.d.aqrl a0, (s1)\nsc.d.rl a0, a1, (s1)\nld a0, 8(s1)", "sd a0, 8(s1)\nfence rw, rw\nld a0, 0(s1)", "0.2=- 1.1=-",
   True),
  ("lr.d.aqrl a0, (s1)\nsc.d.rl a0, a1, (s1)\nfence rw, rw\nld a0, 8(s1)", "sd a0, 8(s1)\nfence rw, rw\nld a0, 0(s1)",
   "0.2=- 1.1=-", False),
  # two loads of an address see its stores in order
  ("sd a0, 0(s1)\nsd a0, 0(s1)", "ld a0, 0(s1)\nld a1, 0(s1)", "1.0=0.1 1.1=0.0", False),
  ("sd a0, 0(s1)", "ld a0, 0(s1)\nld a1, 0(s1)", "1.0=0.0 1.1=-", False),
  # both AMOs cannot read the value at the start
  ("amoadd.w a0, a1, (s1)", "amoadd.w a0, a1, (s1)", "0.0=- 1.0=-", False)]

@pytest.mark.parametrize("first, second, outcome, answer", LITMUS)
def test_the_model(first: str, second: str, outcome: str, answer: bool) -> None:
  threads = [events_of(k, text, {"s1": "x"}) for k, text in enumerate((first, second))]
  def event(text: str) -> Event | None:
    return None if text == "-" else threads[int(text[0])][int(text[2])]
  wanted = [[event(side) for side in part.split("=")] for part in outcome.split()]
  assert may_happen(threads, lambda e: all(e.rf[a] == b for a, b in wanted if a is not None)) is answer
