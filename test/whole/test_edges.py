"""Edge cases of methods, written by hand: the tables of test/whole/edges on each device.
support/generators/edge_cases.py tells what a table says."""
from __future__ import annotations
import importlib
from pathlib import Path
from math import inf, nan
import re

from generators.edge_cases import Case, difference, like, raises
from ulps import flushes
import pytest

from test.helpers import ENGINES, on
from test.whole.test_api import NAMES, OPERATORS
from tinyhw import dtypes

DEVICES = [e for e in ENGINES if e in ("CPU", "CLANG", "PYTHON")] or list(ENGINES)
TABLES = Path(__file__).with_name("edges")
FAMILIES = sorted(".".join(p.relative_to(TABLES).with_suffix("").parts) for p in TABLES.rglob("*.py"))
METHODS = {n.name for n in NAMES if n.owner == "tinyhw.Tensor"}
LEAST_METHODS, LEAST_CASES = 200, 4   # of the methods that users write most; of each of them

# cases of subnormal numbers, which Apple's GPUs count as zero (docs/hardware/metal.md)
SUBNORMAL = frozenset({
  "Tensor([-100.0]).exp()", "Tensor([0.0, -inf, inf, nan, 128.0, -149.0]).exp2()", "Tensor([2.0 ** -149]).log()",
  "Tensor([2.0 ** -149, 2.0 ** 127]).log2()", "Tensor([1e-45]).ceil()", "Tensor([-1e-45]).floor()",
  "Tensor([0.0, -0.0, nan, 1e-45, -inf]).cast('bool')", "Tensor([0.0, -0.0, nan, 1e-45]).logical_not()",
  "Tensor([0.0, -0.0, nan, 1e-45]).nonzero()", "Tensor([-inf, -0.0, 0.0, 1e-45, nan]).sign()",
  "Tensor([1.1754943508222875e-38]).mul(0.5)", "Tensor([1e-40]).sin()", "Tensor([2.0 ** -140]).sqrt()",
  "Tensor([2.0 ** -140]).rsqrt()"})

def tables() -> dict[str, list[Case]]:
  """The cases of each method, of all families: several may have some."""
  found: dict[str, list[Case]] = {}
  for family in FAMILIES:
    for name, cases in importlib.import_module(f"test.whole.edges.{family}").EDGES.items():
      found.setdefault(name, []).extend(cases)
  return found

EDGES = tables()
FOREIGN = pytest.mark.foreign_memory("the device has no memory of the program in place")

@pytest.mark.slow
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", [pytest.param(name, marks=FOREIGN) if name == "from_blob" else name
                                  for name in sorted(EDGES)])
def test_method(name: str, device: str) -> None:
  with on(device):
    wrong = [f"{code}\n      {why}" for code, expected in EDGES[name]
             if not (flushes(device) and code in SUBNORMAL) and (why := difference(code, expected))]
  assert not wrong, "\n    ".join(["", *wrong])

def test_listed_cases_of_subnormal_numbers_exist() -> None:
  assert not SUBNORMAL - {code for cases in EDGES.values() for code, _ in cases}

def test_tables_name_what_users_write() -> None:
  known = METHODS | set(OPERATORS) | {str(n).removeprefix("tinyhw.") for n in NAMES}
  assert set(EDGES) <= known, f"not in api_names.txt: {sorted(set(EDGES) - known)}"

def test_methods_have_cases_of_their_own() -> None:
  """A case is another one than the others of its method, and calls it; operators are written in other ways."""
  for name, cases in EDGES.items():
    codes = {code for code, _ in cases}
    assert len(codes) == len(cases), f"{name} has a case twice"
    if name in METHODS and name not in OPERATORS: codes = {code for code in codes if re.search(rf"\b{name}\b", code)}
    assert len(codes) >= LEAST_CASES, f"{name} has {len(codes)} cases, and needs {LEAST_CASES}"

def test_enough_methods_have_cases() -> None: assert len(EDGES) >= LEAST_METHODS

@pytest.mark.parametrize(("code", "expected"), [
  ("Tensor([1.0])", [1]), ("Tensor([1])", [1.0]), ("Tensor([1])", [True]), ("Tensor([1])", 1), ("Tensor([[1]])", [1]),
  ("Tensor([1, 2])", [1]),
  ("Tensor([0.0])", [-0.0]), ("Tensor([-0.0])", [0.0]), ("Tensor([nan])", [0.0]), ("Tensor([0.0])", [nan]),
  ("Tensor([inf])", [-inf]),
  ("Tensor([1.00001])", [1.0]), ("Tensor([1.0])", [inf]), ("Tensor([1e-9])", [0.0]), ("Tensor.empty(2, 0)", []),
  ("Tensor.empty(0, 2)", []),
  ("Tensor([1])", like([1], dtypes.int64)), ("Tensor([1])", like(shape=(2,))),
  ("Tensor([1.1])", like([1.0], tolerance=0.05)),
  ("(Tensor([1]),)", ([2],)), ("(Tensor([1]),)", [[1]]), ("(1, 2)", (1,)), ("1", 1.0),
  ("1.5", like(1.0, tolerance=0.1)), ("True", 1),
  ("1", raises(ValueError, "1")), ("Tensor([1, 2]).item()", raises(ValueError, "three elements")),
])
def test_differences_are_seen(code: str, expected: object) -> None: assert difference(code, expected)
