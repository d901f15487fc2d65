"""The steps with tensors pass for right results, and fail for wrong ones."""
import re
from collections.abc import Callable

import pytest

from tinyhw.selftest import frame, tensors
from tinyhw.selftest.frame import FAILED, OK, Session, Tools, Wrong
from tinyhw.tensor import Tensor

def run(name: str, device: str = "CPU") -> frame.ProbeResult:
  session = Session(device, Tools(lambda text, arch: b""))
  result, = frame.run(session, [step for step in tensors.STEPS if step.name == name])
  return result

@pytest.mark.parametrize("device", ("CPU", "PYTHON"))
@pytest.mark.parametrize("name", [step.name for step in tensors.STEPS])
def test_they_pass(name: str, device: str) -> None:
  result = run(name, device)
  assert result.outcome == OK, result.words

def off_on_the_cpu(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
  """The same, but 1 % too large on the CPU."""
  return lambda x, *a, **k: function(x, *a, **k) * 1.01 if x.device == "CPU" else function(x, *a, **k)

# A method that goes wrong on one device, and what the step says that uses it
MISTAKES = {
  "elementwise": ("relu", r"relu\(x \* 0.3 \+ y\).*of 1000 elements differ; the first is number \d+, .* instead of"),
  "integers": ("abs", "integers: .* elements differ"),
  "sums": ("max", "maxima of columns: .* of 500 elements differ"),
  "product": ("__matmul__", "33x48 @ 48x32 of dtypes.float32: .* elements differ"),
  "product of halves": ("__matmul__", "33x48 @ 48x32 of dtypes.float16: .* elements differ"),
  "functions": ("tanh", r"tanh\(.*\) is .* units in the last place off; 2 are allowed"),
  "replay": ("relu", "call 1: .* of 2 elements differ"),
}

@pytest.mark.parametrize("name", MISTAKES)
def test_they_fail_and_say_where(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
  method, words = MISTAKES[name]
  wrong = off_on_the_cpu(getattr(Tensor, method))
  monkeypatch.setattr(Tensor, method, wrong)
  monkeypatch.setattr(tensors, "FUNCTIONS",
                      tuple((n, wrong if n == method else f, *rest) for n, f, *rest in tensors.FUNCTIONS))
  result = run(name)
  assert result.outcome == FAILED and result.step.check
  assert re.search(words, result.words), result.words

def test_each_step_has_a_mistake() -> None: assert list(MISTAKES) == [step.name for step in tensors.STEPS]

def test_zeros_and_nans_are_compared_by_bits() -> None:
  tensors.compare([float("nan"), 0.0], [float("nan"), 0.0], "same")
  with pytest.raises(Wrong, match="what: 1 of 1 elements differ; the first is number 0, -0.0 instead of 0.0"):
    tensors.compare([-0.0], [0.0], "what")
  with pytest.raises(Wrong, match="what: 1 elements came back instead of 2"): tensors.compare([1.0], [1.0, 2.0], "what")
