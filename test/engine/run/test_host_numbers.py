"""Numbers that the host computes for devices without float64: they are those of devices that have it, to the bit."""
from __future__ import annotations
import math
import pickle
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from test.helpers import HOME
from tinyhw.capture.jit import TinyJit
from tinyhw.codegen.render.targets import capabilities
from tinyhw.config import Context
from tinyhw.device import Device
from tinyhw.dtype import dtypes
from tinyhw.engine.run import compile
from tinyhw.engine.run.compile import has_float64, values_of
from tinyhw.engine.run.host_numbers import computed_by_host
from tinyhw.engine.schedule.multi import SHARD
from tinyhw.engine.schedule.schedule import canonicalize, schedule
from tinyhw.errors import JitError
from tinyhw.tensor import Tensor
from tinyhw.uop.enums import Ops
from tinyhw.uop.evaluate.evaluate import evaluate
from tinyhw.uop.ops import UOp
from tinyhw.uop.verify.verify import verify

V, W = UOp.variable("v", 0, 50), UOp.variable("w", -9, 9)
VALUES = ((0, -9), (1, 0), (7, 9), (50, 5))

def ones(dtype: str = "float32") -> Tensor: return Tensor([1, 1, 1], dtype=dtype)

FORMS: dict[str, Callable[[Any, Any], Tensor]] = {
  "quotient": lambda v, w: ones() * (v / 3),
  "half": lambda v, w: ones("float16") * (1 / (v + 1)),
  "bfloat16": lambda v, w: ones("bfloat16") + w / 7,
  "fp8": lambda v, w: (ones("float32") * 0).cast("fp8e4m3") + v / 7,
  "integers": lambda v, w: ones("int8") * (w / 7),
  "power": lambda v, w: ones() * v ** 0.5 + 2 ** (w / 3),
  "infinite": lambda v, w: ones() * (1 / v),
  "two numbers": lambda v, w: (ones() * (v / 7) + w * 0.1).sum(),
  "filled": lambda v, w: Tensor.full((3,), v / 7),
  "compared": lambda v, w: ones() * (v / 4 < w),
  "sizes, too": lambda v, w: Tensor.arange(50.0)[:v].sum() * (w / 7),
}

def kernels(t: Tensor) -> tuple[list[UOp], dict[str, int]]:
  canonical = canonicalize([t.uop])
  return [k.sink for k in schedule(canonical).kernels], canonical.variables

def stored(sink: UOp, variables: dict[str, int]) -> dict[int, list[Any]]:
  params = {u for u in sink.toposort() if u.op is Ops.PARAM}
  places: dict[int, Any] = {p.arg[0]: [1] * p.arg[1] for p in params}
  evaluate(sink, places, variables)
  return places

@pytest.mark.parametrize("form", FORMS)
def test_results_are_those_of_float64(form: str) -> None:
  seen = 0
  for v, w in VALUES:
    for sink, variables in ((s, given) for sinks, given in [kernels(FORMS[form](V.bind(v), W.bind(w)))] for s in sinks):
      made, values = computed_by_host(sink)
      verify(made, 1)
      assert not any(u.dtype is dtypes.float64 for u in made.toposort())
      assert (made is sink) == (not values)
      given = dict(variables, **dict(zip(values, values_of(values.values(), variables))))
      assert str(stored(made, given)) == str(stored(sink, variables))   # NaNs, too
      seen += len(values)
  assert seen

def test_what_stays() -> None:
  """Elements of float64, numbers that differ between devices, and kernels without Variables."""
  store = UOp.param(0, dtypes.float64, 1).index(0)
  assert computed_by_host(UOp.sink(store.store(V / 3)))[1] == {}
  loaded = UOp.param(1, dtypes.float64, 1).index(0).load()
  to = UOp.param(0, dtypes.float32, 1).index(0)
  for value in ((loaded * (V / 3)).cast(dtypes.float32), (UOp.variable(SHARD, 0, 3) / 3).cast(dtypes.float32),
                UOp.const(dtypes.float64, 0.1).cast(dtypes.float32), V.cast(dtypes.float32)):
    sink = UOp.sink(to.store(value))
    assert computed_by_host(sink) == (sink, {})

def test_the_largest_expression_is_one_number() -> None:
  to = UOp.param(0, dtypes.float32, 1).index(0)
  number = (V / 3).cast(dtypes.float32) * UOp.const(dtypes.float32, 2.0) + (V / 7).cast(dtypes.float32)
  made, values = computed_by_host(UOp.sink(to.store(number), UOp.param(1, dtypes.float32, 1).index(0).store(number)))
  assert [v.arg[0] for v in made.variables()] == list(values) == ["_host0"]
  assert values_of(values.values(), {"v": 5}) == [int.from_bytes(np.float32(np.float32(5 / 3) * 2 + np.float32(5 / 7))
                                                                 .tobytes(), "little")]

def test_which_targets_have_float64() -> None:
  assert [has_float64(capabilities(a)) for a in ("metal", "wgsl", "opencl:", "opencl:fp64", "c", "python")] == [
    False, False, False, True, True, True]

# ***** on a device that is taken for one without float64 *****

@pytest.fixture
def without_float64(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
  monkeypatch.setattr(compile, "has_float64", lambda capabilities: False)
  monkeypatch.setattr(Device[HOME], "kernels", {})
  with Context(CACHE=0): yield

def quotient(n: int) -> list[float]: return [float(np.float32(n / 3)), float(np.float32(2) * np.float32(n / 3))]

@pytest.mark.usefixtures("without_float64")
def test_launches_and_replays() -> None:
  x = Tensor([1.0, 2.0]).realize()
  for n in (1, 5): assert (x * (V.bind(n) / 3)).tolist() == quotient(n)
  jit: Any = TinyJit(lambda t, n: (t * (n / 3)).realize())
  for n in (2, 2, 5, 5, 9, 0): assert jit(x, V.bind(n)).tolist() == quotient(n)
  assert any(isinstance(wanted, UOp) for r in Device[HOME].kernels.values() for part in r
             for wanted in part.runner.variables)

@pytest.mark.usefixtures("without_float64")
def test_variables_that_a_captured_function_binds() -> None:
  x, state = Tensor([1.0, 2.0]).realize(), {"k": 4}
  jit: Any = TinyJit(lambda t, n: (t * (V.bind(state["k"]) / 3) * (n / 1)).realize())
  for _ in range(3): assert jit(x, W.bind(1)).tolist() == quotient(4)
  with pytest.raises(JitError, match="the function binds v to 4 itself"): jit(x, W.bind(2))
  both: Any = TinyJit(lambda t, n: (t * (n / 3)).realize() + (t * (V.bind(9) / 3)).realize())
  with pytest.raises(JitError, match="the function binds v to 9 and to 3"):
    for _ in range(3): both(x, V.bind(3))

@pytest.mark.usefixtures("without_float64")
def test_a_pickled_capture() -> None:
  x = Tensor([1.0, 2.0]).realize()
  jit: Any = TinyJit(scaled)
  for n in (2, 2, 3): jit(x, V.bind(n))
  again = pickle.loads(pickle.dumps(jit))
  for n in (7, 3, 7): assert again(x, V.bind(n)).tolist() == quotient(n)

def scaled(t: Tensor, n: UOp) -> Tensor: return (t * (n / 3)).realize()

@pytest.mark.usefixtures("without_float64")
def test_a_search_for_the_best_kernel() -> None:
  with Context(BEAM=1): assert (Tensor([1.0, 2.0]) * (V.bind(2) / 3)).tolist() == quotient(2)

@pytest.mark.usefixtures("without_float64")
def test_random_numbers_of_any_size() -> None:
  """They have forms for any size, which do not take numbers of the host."""
  Tensor.manual_seed(3)
  got = (Tensor.rand(70) * (V.bind(2) / 3)).numpy()
  Tensor.manual_seed(3)
  assert (got == Tensor.rand(70).numpy() * np.float32(2 / 3)).all() and not math.isnan(got.sum())
