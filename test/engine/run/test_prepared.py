"""Prepared runs: launches are found once, until the device, its kernels or the variables change. Results are those of
the general way."""
from collections.abc import Callable
from typing import Any

import pytest

from tinyhw import Tensor, Variable
from tinyhw.config import Context
from tinyhw.device import Device
from tinyhw.engine.run import compile as compiling, prepared, realize as realizing
from tinyhw.engine.schedule.schedule import _schedules as schedules
from tinyhw.errors import SymbolicError
from tinyhw.helpers import GlobalCounters
from tinyhw.methods.graph.places import written as scatter

def tensor(*values: float) -> Tensor: return Tensor([float(x) for x in values], device="PYTHON").realize()

@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch) -> list[str]:
  """The devices for which loaded kernels were looked up."""
  looked_up: list[str] = []
  plain = prepared.found_parts
  monkeypatch.setattr(prepared, "found_parts", lambda device, sinks: looked_up.append(device) or plain(device, sinks))
  return looked_up

def test_launches_are_found_once(found: list[str]) -> None:
  for k in range(4): assert (tensor(1, 2, k) * 3 + 0.125).tolist() == [3.125, 6.125, 3 * k + 0.125]
  assert found == ["PYTHON"]

def test_they_are_found_again_where_the_device_was_closed_or_has_dropped_kernels(
    found: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
  def run() -> None: assert (tensor(1, 2) * 5 - 0.375).tolist() == [4.625, 9.625]
  run()
  Device.close("PYTHON")
  for _ in range(2): run()
  assert found == ["PYTHON"] * 2
  monkeypatch.setattr(compiling, "MOST_KERNELS", 1)
  for n in range(2, 5): (tensor(*range(n)) * 7).realize()
  del found[:]
  run()
  assert found == ["PYTHON"]

def test_they_depend_on_the_variables_of_code(found: list[str]) -> None:
  def run() -> None: (tensor(1, 2) * 5 - 0.625).realize()
  run()
  with Context(NOOPT=1): run()
  run()
  run()
  assert found == ["PYTHON"] * 3

def test_they_end_with_their_schedule() -> None:
  (tensor(1, 2) * 5 - 0.875).realize()
  launches = Device["PYTHON"].launches
  assert len(launches)
  schedules.clear()
  assert not len(launches)

def chain(x: Tensor) -> list[Tensor]:
  """Two results, and temporaries of which one outlives the schedule."""
  kept = (x.reshape(2, 2) @ x.reshape(2, 2).T).contiguous()
  total = (kept.softmax() * 2).sum(0)
  total.realize()
  return [kept + 1, total]

def bound(x: Tensor) -> list[Tensor]:
  n = Variable("n", 1, 4).bind(3)
  return [x[:n].sum(), x[:n].contiguous().sum()]

def equal_results(x: Tensor) -> list[Tensor]:
  a, b = x * 2, x * 2
  Tensor.realize(a, b)
  a.assign(a + 1)
  return [a, b]

def written(x: Tensor) -> list[Tensor]:
  y = x.clone().realize()
  before = y * 3
  y.assign(y + 1)
  return [y, before]

def scattered(x: Tensor) -> list[Tensor]:
  """Two kernels write to one buffer that outlives the schedule."""
  index, value = Tensor([[3, 0]], device="PYTHON"), tensor(7, 8).reshape(1, 2)
  return [x._new(scatter(x.uop, index.uop, value.uop, None, "after"))]

@pytest.mark.parametrize("make", [chain, bound, equal_results, written, scattered])
def test_results_are_those_of_the_general_way(make: Callable[[Tensor], list[Tensor]],
                                              monkeypatch: pytest.MonkeyPatch) -> None:
  def run() -> list[Any]: return [t.tolist() for t in make(tensor(1, 2, 3, 4))]
  first = [run(), run()]
  monkeypatch.setattr(realizing, "places_of", lambda *_: None)
  assert first == [run(), run()]

def test_kernels_are_counted_and_a_variable_without_a_value_is_refused() -> None:
  x = tensor(1, 2, 3, 4)
  GlobalCounters.reset()
  Tensor.realize(x.sum(), x.flip(0) * 2)
  assert GlobalCounters.kernel_count == 2
  with pytest.raises(SymbolicError, match="has no value; bind it"): x[:Variable("n", 1, 4)].sum().realize()
