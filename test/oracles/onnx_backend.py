"""Run ONNX's backend tests through `tinyhw.nn.onnx`, and count those that pass.

    python3 test/oracles/onnx_backend.py                      # counts
    python3 test/oracles/onnx_backend.py -v                   # and the reasons of those that do not pass
    python3 test/oracles/onnx_backend.py -v test_cast test_gru   # tests whose names begin so
    python3 test/oracles/onnx_backend.py --share 3/16         # the fourth of sixteen shares
    python3 test/oracles/onnx_backend.py --record             # write the counts to test/oracles/onnx_backend.json

The tests are the nodes of `onnx.backend.test.loader`, and the models that the package stores with their data. A test
passes if each result has the type and shape of the expected one, and agrees within the test's own bounds, which is
how ONNX's runner judges. bfloat16 may differ by two units in the last place, as there. Types of 4 and 2 bits are
compared as the numbers that they stand for. Operators that draw random numbers are compared by distribution.

A test is wrong if it gives another result; one that raises is failed, and not wrong. It is absent if an operator of
it is not supported. It is rounded, and did not pass, if results differ by rounding errors alone: by MOST_ROUNDING
units in the last place of the largest element.

Needs the packages onnx and ml_dtypes (the extra `oracles` of setup.py); without them, the command says so and ends.
"""
from __future__ import annotations
import argparse
import collections
import importlib
import json
import math
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parent))

from packages import are_missing   # the path must be set before

ROOT = Path(__file__).resolve().parents[2]
RECORD = Path(__file__).with_suffix(".json")
KINDS = ("node", "simple", "pytorch-converted", "pytorch-operator")
# Tests of operators that draw random numbers, by the beginnings of their names: how they are judged.
DRAWN = {"test_bernoulli": "bernoulli", "test_training_dropout": "dropout"}
ABSENT = "operators that tinyhw does not know"   # in the error of a model with such
MOST_ROUNDING = 4
DRAWS = 64          # runs of a model of random numbers
MOST_SIGMAS = 6.0   # the largest distance of their mean from the expected one, in standard deviations

class Outcome(NamedTuple):
  """What became of a test: passed, rounded, wrong, failed or absent; and why."""
  name: str
  kind: str
  reason: str = ""
  seconds: float = 0.0

class Case(NamedTuple):
  """A test: a model's bytes, the names of its inputs, and the data: pairs of inputs and expected outputs."""
  name: str
  model: Any
  data: list[tuple[list[Any], list[Any]]]
  relative: float
  absolute: float

def main() -> int:
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("names", nargs="*", help="beginnings of names; all if there are none")
  parser.add_argument("-v", action="store_true", help="reasons")
  parser.add_argument("--record", action="store_true", help=f"write the counts to {RECORD.name}")
  parser.add_argument("--share", default="0/1", help="i/n: every n-th test, from the i-th on")
  options = parser.parse_args()
  if are_missing("onnx", "ml_dtypes", "numpy"): return 0
  first, step = map(int, options.share.split("/"))
  outcomes = judge(options.names, first, step, options.v)
  found = counts(outcomes)
  print(json.dumps(found))
  if options.record: RECORD.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
  return int(found["wrong"] > 0)

def judge(names: list[str], first: int = 0, step: int = 1, verbose: bool = False) -> list[Outcome]:
  """Judge a share of the tests whose names begin with one of `names`, or of all."""
  sys.path.insert(0, str(ROOT))
  warnings.simplefilter("ignore")
  outcomes = []
  for case in cases(names, first, step):
    began = time.time()
    found = Judge(case).outcome()._replace(seconds=time.time() - began)
    outcomes.append(found)
    if verbose and found.kind != "passed": print(f"{found.kind:6} {found.name} {found.reason}", flush=True)
  return outcomes

def counts(outcomes: list[Outcome]) -> dict[str, Any]:
  onnx = importlib.import_module("onnx")
  kinds = collections.Counter(outcome.kind for outcome in outcomes)
  return {"onnx": onnx.__version__, "date": time.strftime("%Y-%m-%d"), "tests": len(outcomes),
          **{kind: kinds[kind] for kind in ("passed", "rounded", "wrong", "failed", "absent")}}

# ***** the tests *****

def cases(names: list[str], first: int, step: int) -> Iterator[Case]:
  """Yield tests. Stored models are read when their turn comes."""
  loader = importlib.import_module("onnx.backend.test.loader")
  listed = [(kind, test) for kind in KINDS for test in loader.load_model_tests(kind=kind)
            if not names or test.name.startswith(tuple(names))]
  for _, test in listed[first::step]:
    if test.model is None: yield stored_case(test)
    else:
      data = [([as_array(x) for x in inputs], [as_array(x) for x in outputs]) for inputs, outputs in test.data_sets]
      yield Case(test.name, test.model, data, test.rtol, test.atol)

def as_array(x: Any) -> Any:
  onnx = importlib.import_module("onnx")
  return onnx.numpy_helper.to_array(x) if isinstance(x, onnx.TensorProto) else x

def stored_case(test: Any) -> Case:
  onnx = importlib.import_module("onnx")
  folder = Path(test.model_dir)
  model = onnx.load(folder / "model.onnx")
  data = []
  for part in sorted(folder.glob("test_data_set*")):
    columns = []
    for what, infos in (("input", model.graph.input), ("output", model.graph.output)):
      files = [part / f"{what}_{i}.pb" for i in range(len(list(part.glob(f"{what}_*.pb"))))]
      columns.append([read_value(onnx, file, infos[i].type) for i, file in enumerate(files)])
    data.append((columns[0], columns[1]))
  return Case(test.name, model, data, test.rtol, test.atol)

def read_value(onnx: Any, file: Path, kind: Any) -> Any:
  """Return a stored tensor, sequence or optional value, as the model's type says."""
  readers = {"sequence_type": (onnx.SequenceProto, "to_list"), "optional_type": (onnx.OptionalProto, "to_optional")}
  proto, read = readers.get(kind.WhichOneof("value"), (onnx.TensorProto, "to_array"))
  return getattr(onnx.numpy_helper, read)(proto.FromString(file.read_bytes()))

# ***** judgement *****

class RoundingDifference(AssertionError):
  """Results that differ by rounding errors."""

class Judge:
  """A judge of one test."""
  def __init__(self, case: Case) -> None:
    self.case = case
    self.np = importlib.import_module("numpy")
    self.tinyhw = importlib.import_module("tinyhw")
    self.onnx = importlib.import_module("tinyhw.nn.onnx")
    self.errors = importlib.import_module("tinyhw.errors")
    constants = {tensor.name for tensor in case.model.graph.initializer}
    self.inputs = [info.name for info in case.model.graph.input if info.name not in constants]

  def outcome(self) -> Outcome:
    name = self.case.name
    self.tinyhw.Tensor.manual_seed(0)
    try:
      runner = self.onnx.OnnxRunner(self.case.model.SerializeToString())
      self.check(lambda inputs: self.run(runner, inputs))
    except RoundingDifference as error: return Outcome(name, "rounded", shortened(error))
    except AssertionError as error: return Outcome(name, "wrong", shortened(error))
    except Exception as error:   # noqa: BLE001  # whatever it is, it is the reason
      kind = "absent" if isinstance(error, self.errors.ArgumentError) and ABSENT in str(error) else "failed"
      return Outcome(name, kind, f"{type(error).__name__}: {shortened(error)}")
    return Outcome(name, "passed")

  def run(self, runner: Any, inputs: list[Any]) -> list[Any]:
    """Return the results as arrays."""
    names = self.inputs if len(inputs) <= len(self.inputs) else [x.name for x in self.case.model.graph.input]
    found = runner(dict(zip(names, inputs)))
    return [self.computed(found[name]) for name in runner.graph_outputs]

  def computed(self, x: Any) -> Any:
    """Compute a result. Tensors keep their type, which NumPy may lack."""
    if x is None: return None
    if isinstance(x, list): return [self.computed(y) for y in x]
    if isinstance(x, dict): return {key: self.computed(y) for key, y in x.items()}
    return x.numpy(), getattr(x, "dtype", None)

  def check(self, run: Callable[[list[Any]], list[Any]]) -> None:
    law = next((law for name, law in DRAWN.items() if self.case.name.startswith(name)), None)
    for inputs, expected in self.case.data:
      if law is None or "zero_ratio" in self.case.name: self.compare(run(inputs), expected)
      else: {"bernoulli": self.check_bernoulli, "dropout": self.check_dropout}[law](run, inputs, expected)

  def compare(self, found: list[Any], expected: Any) -> None:
    assert len(found) == len(expected), f"{len(found)} results, not {len(expected)}"
    for a, b in zip(found, expected):
      if b is None: assert a is None, "a value, and nothing is expected"
      elif isinstance(b, (list, tuple)):
        assert isinstance(a, list), "a tensor, and a sequence is expected"
        self.compare(a, b)
      elif isinstance(b, dict): assert {key: x[0].tolist() for key, x in a.items()} == b, f"{a}, not {b}"
      else: self.compare_arrays(*a, self.np.asarray(b))

  def compare_arrays(self, found: Any, dtype: Any, expected: Any) -> None:
    """Compare type, shape and elements."""
    np = self.np
    self.same_form(found, dtype, expected)
    if expected.dtype == object or expected.dtype.kind in "UST":
      np.testing.assert_array_equal(found, expected.astype(object))
      return
    relative = max(self.case.relative, 2**-6) if expected.dtype.name == "bfloat16" else self.case.relative
    if expected.dtype.kind == "V" or expected.dtype.name in NARROW: expected = expected.astype(np.float32)
    found = found.astype(expected.dtype)
    try: np.testing.assert_allclose(found, expected, rtol=relative, atol=self.case.absolute)
    except AssertionError as error:
      if self.is_rounding(found, expected): raise RoundingDifference(str(error)) from None
      raise

  def is_rounding(self, found: Any, expected: Any) -> bool:
    np = self.np
    if expected.dtype.kind != "f" or not np.isfinite(found).all() or not np.isfinite(expected).all(): return False
    unit = np.finfo(expected.dtype).eps * abs(expected).max()
    return bool(abs(found.astype(np.float64) - expected).max() <= MOST_ROUNDING * unit)

  def same_form(self, found: Any, dtype: Any, expected: Any) -> None:
    assert found.shape == expected.shape, f"shape {found.shape}, not {expected.shape}"
    if dtype is None or expected.dtype.kind in "OUST":
      assert dtype is None and expected.dtype.kind in "OUST", f"{dtype}, not {expected.dtype}"
      return
    name = str(dtype).removeprefix("dtypes.")
    wanted = NARROW.get(expected.dtype.name, expected.dtype.name)
    assert name == wanted, f"type {name}, not {expected.dtype.name}"

  # ***** random numbers *****

  def check_bernoulli(self, run: Callable[[list[Any]], list[Any]], inputs: list[Any], expected: list[Any]) -> None:
    """Does each element's mean over many draws agree with its probability, and is each draw 0 or 1?

    The database's expansion of Bernoulli draws 1 where a number in [0, 1) is greater than x.
    """
    np = self.np
    p, total = inputs[0].astype(np.float64), np.zeros(inputs[0].shape)
    if any(node.op_type == "Greater" for node in self.case.model.graph.node): p = 1 - p
    for _ in range(DRAWS):
      (drawn, dtype), = run(inputs)
      self.same_form(drawn, dtype, expected[0])
      assert np.isin(drawn, (0, 1)).all(), "numbers other than 0 and 1"
      total += drawn
    self.check_mean(total / DRAWS, p, DRAWS)

  def check_dropout(self, run: Callable[[list[Any]], list[Any]], inputs: list[Any], expected: list[Any]) -> None:
    """Is each element zero or x / (1 - ratio), and the share of kept ones 1 - ratio?"""
    np = self.np
    x, ratio = inputs[0], float(inputs[1])
    total = np.zeros(x.shape)
    for _ in range(DRAWS):
      found = run(inputs)
      assert len(found) == len(expected)
      for (result, dtype), b in zip(found, expected): self.same_form(result, dtype, b)
      y = found[0][0]
      kept = found[1][0] if len(found) > 1 else y != 0
      np.testing.assert_allclose(y, np.where(kept, x / np.float32(1 - ratio), 0), rtol=1e-5)
      total += kept
    self.check_mean(total / DRAWS, np.full(x.shape, 1 - ratio), DRAWS)
    self.check_mean(np.array([total.mean() / DRAWS]), np.array([1 - ratio]), DRAWS * x.size)

  def check_mean(self, mean: Any, p: Any, count: int) -> None:
    worst = (abs(mean - p) / self.np.maximum((p * (1 - p) / count) ** 0.5, 1e-9)).max()
    assert worst <= MOST_SIGMAS and math.isfinite(worst), f"a mean that is {worst:.1f} standard deviations off"

# ml_dtypes' name: the type that holds these elements here.
NARROW = {"int4": "int8", "uint4": "uint8", "int2": "int8", "uint2": "uint8", "float4_e2m1fn": "fp8e4m3",
          "float8_e8m0fnu": "bfloat16", "float8_e4m3fn": "fp8e4m3", "float8_e4m3fnuz": "fp8e4m3fnuz",
          "float8_e5m2": "fp8e5m2", "float8_e5m2fnuz": "fp8e5m2fnuz", "bfloat16": "bfloat16"}

def shortened(error: BaseException) -> str: return " ".join(str(error).split())[:300]

if __name__ == "__main__": sys.exit(main())
