"""The worker loop is the algorithm of x86's, and each statement becomes the instructions of a table."""
from __future__ import annotations
import re

import pytest

from tinyhw.autogen import cpu_ring
from tinyhw.isa.arm64 import runtime as arm64
from tinyhw.isa.riscv64 import runtime as riscv64
from tinyhw.isa.x86 import runtime as x86
from tinyhw.machine.assembler import worker_loop
from tinyhw.machine.assembler.worker_loop import LOOP, Operations, expand, form_of

NAMES = {"t0": "T0", "t1": "T1", "s1": "S1", "s9": "S9", "zero": "Z", "t3": "T3", "t4": "T4", "t2": "T2"}
FIELDS = {**cpu_ring.PACKET, **cpu_ring.CONTEXT, **cpu_ring.RECORD}

def structure(text: str) -> list[str]:
  """The labels of a text, in order."""
  return [line.split(";")[0].strip()[1:-1] for line in text.splitlines() if re.match(r"\s*\.\w+:", line)]

def statements() -> list[str]:
  lines = [line.split(";")[0].strip() for line in LOOP.splitlines()]
  return [line for line in lines if line and not line.endswith(":")]

def test_the_labels_are_those_of_x86() -> None:
  """x86's instructions exchange or fail at once, so it has no label after the claim."""
  ours = [label for label in structure(LOOP) if label != "claimed"]
  assert ours == ["claim" if label == "exchange" else label for label in structure(x86.text("ring"))]

@pytest.mark.parametrize("statement, form, found", [
  ("t1 = t2 + 12", "a = b + n", {"a": "T1", "b": "T2", "n": "12"}),
  ("serial = serial(state)", "a = serial(b)", {"a": "T1", "b": "T0"}),
  ("t1 = acquire context.BELL", "a = acquire W", {"a": "T1", "base": "S1", "n": "256"}),
  ("context.TARGET = zero", "F = a", {"a": "Z", "base": "S1", "n": "72"}),
  ("if serial >= t2 signed: .none", "if a >= b signed: L", {"a": "T1", "b": "T2", "L": ".none"}),
  ("claim at state_at, state, t3", "claim at a, b, c", {"a": "S9", "b": "T0", "c": "T3"}),
  ("packet = t3 + packets(t1)", "a = b + packets(c)", {"a": "T4", "b": "T3", "c": "T1"}),
])
def test_forms(statement: str, form: str, found: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setattr(worker_loop, "REGISTERS", {"context": "s1", "serial": "t1", "state": "t0", "state_at": "s9",
                                                 "packet": "t4"})
  assert form_of(statement, Operations(NAMES, {}), FIELDS, cpu_ring.WORDS) == (form, found)

@pytest.mark.parametrize("operations, words", [
  (Operations(arm64.REGISTERS, {**arm64.PLAIN, **arm64.LSE}), arm64.WORDS),
  (Operations(arm64.REGISTERS, {**arm64.PLAIN, **arm64.EXCLUSIVE}), arm64.WORDS),
  (Operations(riscv64.REGISTERS, riscv64.FORMS), riscv64.WORDS)], ids=("lse", "exclusive", "riscv64"))
def test_tables_have_the_forms_and_no_other(operations: Operations, words: dict[str, int]) -> None:
  assert {form_of(line, operations, words, cpu_ring.WORDS)[0] for line in statements()} == set(operations.forms)
  registers = [operations.registers[place] for place in ("zero", *(f"argument{k}" for k in range(4)),
                                                         *(f"t{k}" for k in range(8)), *(f"s{k}" for k in range(10)))]
  assert len(set(registers)) == len(registers) == len(operations.registers)

def test_shared_fields_are_accessed_in_order() -> None:
  """What threads write at the same time is acquired, published or changed at once. A plain access has its reason."""
  shared = {"STATE", "COMPLETED", "PUBLISHED", "BELL", "SLEEPERS", "CALLER_SLEEPS", "STOP"}
  plain = {line for line in statements() for field in re.findall(r"context\.([A-Z_]+)", line)
           if field in shared and not re.search("acquire|publish|increment|decrement|exchange|add to|&", line)}
  assert plain == {"context.COMPLETED = zero",        # before it publishes
                   "t3 = context.PUBLISHED",          # the caller, which alone writes it
                   "context.CALLER_SLEEPS = zero"}    # after its sleep
  order = statements()
  published = order.index("publish context.PUBLISHED, t3")
  assert order.index("context.TARGET = target") < published > order.index("context.COMPLETED = zero")
  assert max(k for k, line in enumerate(order) if line.startswith("slot.")) < published
  added = order.index("t4 = add to context.COMPLETED, t3")
  assert order.index("t2 = context.TARGET") < added, "after our chunks count, the next batch may begin"

def test_a_statement_without_instructions_is_named() -> None:
  with pytest.raises(AssertionError, match="no instructions for 't1 = clock', whose form is 'a = clock'"):
    expand(Operations({**NAMES, **{f"s{k}": "" for k in range(10)}, **{f"t{k}": "" for k in range(8)}}, {}), {},
           (), "t1 = clock")
