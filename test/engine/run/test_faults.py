"""Faults of tinyhw become InternalErrors at one place, which name kernel and line. Errors of users keep their class."""
from __future__ import annotations
import inspect

import pytest

from tinyhw import Context, Tensor, TinyJit, Variable
from tinyhw.codegen import passes
from tinyhw.device import Device
from tinyhw.engine.run import faults, realize
from tinyhw.engine.schedule import schedule
from tinyhw.errors import InternalError, ShapeError, SymbolicError

class Fault(KeyError):
  """Raised in place of a real fault."""

def broken(*args: object, **kwargs: object) -> object: raise Fault("x" * 1000)

def line() -> int: return inspect.currentframe().f_back.f_lineno  # type: ignore[union-attr]

def fails(monkeypatch: pytest.MonkeyPatch, module: object, name: str) -> str:
  """Return the error's text for a fault in a function of the engine. Its cause is the fault."""
  monkeypatch.setattr(module, name, broken)
  with Context(CACHE=0), pytest.raises(InternalError) as found: (Tensor([1.0, 2.0, 3.0]) * 2.0 + 7.25).realize()
  assert isinstance(found.value.__cause__, Fault) and not isinstance(found.value, KeyError)
  return str(found.value)

def test_a_fault_of_the_compiler_names_kernel_and_lines(monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setattr(passes, "linearize", broken)
  x = Tensor([1.0, 2.0, 3.0, 4.0, 5.0]).realize()
  y, of = x * 2.0 + 7.25, line()
  with Context(CACHE=0), pytest.raises(InternalError) as found: y.realize(), line()
  text = str(found.value)
  assert "compiling the kernel E_5 for " in text and f"(of {__file__}:{of})" in text and "failed with Fault: " in text
  assert ("please report it" in text and text.endswith(f"(at {__file__}:{of + 1})")
          and "x" * (faults.MOST_TEXT + 1) not in text)
  assert isinstance(found.value.__cause__, Fault)

def test_a_fault_of_the_compiler_names_lines_where_nothing_runs(monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setattr(passes, "linearize", broken)
  y, of = Tensor([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]).realize() * 3.0 + 7.25, line()
  with Context(CACHE=0), pytest.raises(InternalError) as found: realize.prepare([y.uop])
  assert "compiling the kernel E_7 for " in str(found.value) and f"(of {__file__}:{of})" in str(found.value)

def test_a_fault_of_the_schedule(monkeypatch: pytest.MonkeyPatch) -> None:
  assert fails(monkeypatch, schedule, "order_kernels").startswith("scheduling failed with Fault: ")

def test_a_fault_while_running_names_the_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
  assert "running the kernel E_" in fails(monkeypatch, type(Device[Device.DEFAULT]), "submit")
  with Context(DEBUG=2): assert "running the kernel E_" in fails(monkeypatch, realize, "launch_of")

def test_a_fault_in_a_replay(monkeypatch: pytest.MonkeyPatch) -> None:
  f = TinyJit(lambda x: (x + 3.5).realize())
  for _ in range(3): f(Tensor([1.0]).realize())
  monkeypatch.setattr(type(f.captured), "_replay", broken)
  with pytest.raises(InternalError): f(Tensor([1.0]).realize())

def test_what_users_do_wrong_keeps_its_class() -> None:
  with pytest.raises(ShapeError): Tensor([1, 2]) + Tensor([1, 2, 3])
  with pytest.raises(SymbolicError): Tensor.ones(4)[:Variable("n", 1, 4)].contiguous().realize()

def test_interrupts_pass(monkeypatch: pytest.MonkeyPatch) -> None:
  def interrupted(*args: object) -> None: raise KeyboardInterrupt
  monkeypatch.setattr(realize, "schedule_of_any_numbers", interrupted)
  with pytest.raises(KeyboardInterrupt): (Tensor([1.0]) * 3.5).realize()
