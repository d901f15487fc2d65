"""docs/numerics.md: its numbers are those that are measured now and keep the bars, and devices agree to the bit where
it says so."""
from __future__ import annotations
from collections.abc import Callable
from pathlib import Path
import re
import sys
from types import ModuleType

import numpy as np
import pytest

import accuracy
from test.helpers import BUILT_IN, HOME, open_engine, wide_types
from tinyhw import TinyJit
from tinyhw.config import Context
from tinyhw.device import Device
from tinyhw.dtype import DType, dtypes
from tinyhw.isa.x86.capabilities import LEVELS, capabilities
from tinyhw.codegen.render import targets
from tinyhw.tensor import Tensor
from tinyhw.uop.enums import Ops
import ulps

ROOT = Path(__file__).parents[2]
NUMBER = re.compile(r"(?<![\w.*])\d+\.?\d*(?:e-?\d+)?(?![\w*])")
each_method = pytest.mark.parametrize("name", [*accuracy.OPERATIONS, *accuracy.METHODS])
METHODS = {**accuracy.OPERATIONS, **accuracy.METHODS}

def generator() -> ModuleType:
  import importlib.util
  spec = importlib.util.spec_from_file_location("numerics_document", ROOT / "test/numerics/measure.py")
  assert spec is not None and spec.loader is not None
  module = importlib.util.module_from_spec(spec)
  spec.loader.exec_module(module)
  return module

def written() -> list[str]: return (ROOT / "docs/numerics.md").read_text(encoding="utf-8").splitlines()

def table(title: str) -> dict[str, list[str]]:
  """Return the first table after a heading: cells by the first cell of each row."""
  lines = written()
  start = next(i for i, line in enumerate(lines) if line.startswith(title))
  begin = next(i for i in range(start, len(lines)) if lines[i].startswith("|---"))
  rows = {}
  for line in lines[begin + 1:]:
    if not line.startswith("|"): break
    name, *cells = [cell.strip() for cell in line.strip("|").split("|")]
    rows[name] = cells
  return rows

def close(old: str, new: str) -> bool:
  """Are two measurements equal to 0.1 ULP? Python's `math` is the C library's.

  Both are written with two decimals: 1.36 and 1.26 are 0.1 apart.
  """
  return round(abs(float(old) - float(new)), 2) <= 0.1

@pytest.mark.slow
@pytest.mark.host("what is measured are CPU, CLANG and PYTHON")
@pytest.mark.skipif(not accuracy.EXACT, reason="NumPy's longdouble is no wider than a float64 here")
@pytest.mark.skipif(sys.platform != "linux", reason="the errors of the device PYTHON are written down for the C "
                    "library of Linux")
def test_the_document_says_what_is_measured() -> None:
  new, old = generator().document().splitlines(), written()
  assert len(new) == len(old), "run python3 test/numerics/measure.py"
  for a, b in zip(old, new):
    assert NUMBER.sub("#", a) == NUMBER.sub("#", b), f"{a!r} is {b!r}: run python3 test/numerics/measure.py"
    if re.match(r"\| (2\*\*|each of)", a): continue  # sums: the order of additions is the processor's
    assert all(close(x, y) for x, y in zip(NUMBER.findall(a), NUMBER.findall(b))), (f"{a!r} is {b!r}: run python3 "
                                                                                    f"test/numerics/measure.py")

def test_the_prose_of_the_document_is_the_generators() -> None:
  """Nothing is measured: a sentence written into the page alone is found at once."""
  source = set((ROOT / "test/numerics/measure.py").read_text(encoding="utf-8").splitlines())
  prose = [line for line in written() if not line.startswith(("|", "#")) and not re.search(r"\d", line)]
  assert len(prose) > 50 and not [line for line in prose if line not in source]

def test_a_document_that_is_out_of_date_is_noticed() -> None:
  assert (NUMBER.sub("#", "| exp | 1.21 | 0.5 |") == "| exp | # | # |" and NUMBER.findall("| 2**16 x | 4.8e-08 |")
          == ["4.8e-08"])
  assert close("1.21", "1.3") and not close("1.21", "1.35") and not close("0.5", "inf")

BARS = {"x + y": 0.5, "x - y": 0.5, "x * y": 0.5, "x / y": 0.5, "reciprocal": 0.5, "sqrt": 0.5, "trunc": 0, "floor": 0,
        "ceil": 0, "round": 0,
        "fmod": 0, "x % y": 0.5, "exp": 2, "exp2": 1, "log": 2, "log2": 1, "sin": 2, "cos": 2, "tanh": 4, "erf": 4,
        "x ** y": 1}

def bar(name: str, dtype: DType) -> float:
  """Return the largest allowed error of a function: BARS for operations, at most 2 in float64; 4 for methods; 0.5 for
  narrower types."""
  if dtype not in (dtypes.float32, dtypes.float64): return 0.5
  if name not in BARS: return 4
  return BARS[name] if dtype is dtypes.float32 or BARS[name] <= 0.5 else 2

def test_bars() -> None:
  """No infinite error anywhere."""
  assert set(table("## 1.")) == set(BARS) == set(accuracy.OPERATIONS)
  columns = (dtypes.float32, dtypes.float64, *[dtypes.float16] * 4, dtypes.float32, dtypes.float64)
  for name, cells in (*table("## 1.").items(), *table("## 2.").items()):
    for cell, dtype in zip(cells, columns, strict=True): assert float(cell) <= bar(name, dtype), name

@pytest.mark.skipif(not accuracy.EXACT, reason="NumPy's longdouble is no wider than a float64 here")
@each_method
def test_the_device_keeps_the_bars(name: str) -> None:
  """Also one from outside, with approximate units of its own."""
  for dtype in wide_types(open_engine(HOME)):
    error, operands = accuracy.worst(METHODS[name], dtype, open_engine(HOME), 1 << 11)
    assert error <= bar(name, dtype), f"{error:.2f} ULP at {operands}"

def test_sums_are_right_however_long() -> None:
  rows = table("A long sum")
  assert len(rows) == 6 and all(float(cells[0]) < 2e-5 for cells in rows.values())

def test_every_target_rounds_mulacc_once() -> None:
  """The errors without are no device's."""
  for target in (*map(capabilities, LEVELS), *map(targets.capabilities, ("c", "python"))):
    for dtype in (dtypes.float32, dtypes.float64): assert target.supports(Ops.MULACC, dtype)

def test_what_is_documented_of_functions_is_within_the_bounds() -> None:
  rows = table("The cost of each function")
  assert {Ops[name] for name in rows} == set(ulps.FUNCTIONS)
  for name, cells in rows.items():
    for k, dtype in enumerate((dtypes.float32, dtypes.float64)):
      assert int(cells[k]) == ulps.operation_count(Ops[name], dtype)
      assert float(cells[2 + k]) <= ulps.BOUNDS[Ops[name], dtype][1], name

OTHERS = ("AVX2", "CLANG") if HOME == "CPU" else (HOME,)

@pytest.mark.parametrize("other", OTHERS)
@each_method
def test_devices_give_the_same_bits(name: str, other: str) -> None:
  """Built-in devices; one from outside in float64, for which no GPU uses approximate units."""
  device, first = open_engine(other), open_engine("CPU")
  # a C compiler is slow
  for dtype in (dtypes.float32, dtypes.float64)[other not in BUILT_IN:1 if other == "CLANG" else 2]:
    operands = accuracy.inputs(METHODS[name], dtype, 1 << 11)
    got, want = (accuracy.run(METHODS[name], dtype, operands, d) for d in (device, first))
    same = (got == want) & (np.signbit(got) == np.signbit(want)) | np.isnan(got) & np.isnan(want)
    assert same.all(), [[float(x[k]) for x in (*operands, got, want)] for k in np.nonzero(~same)[0][:3]]

# ***** determinism *****

def random(*shape: int, seed: int = 0) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
  return np.random.default_rng(seed).standard_normal(shape, np.float32)

COMPUTATIONS: dict[str, Callable[[str], Tensor]] = {
  "sum": lambda d: Tensor(random(300, 700), device=d).sum(),
  "rows": lambda d: Tensor(random(100, 900), device=d).sum(1),
  "columns": lambda d: Tensor(random(5000, 20), device=d).sum(0),
  "mean": lambda d: Tensor(random(1 << 18), device=d).mean(),
  "matmul": lambda d: Tensor(random(70, 300), device=d) @ Tensor(random(300, 90), device=d),
  "long matmul": lambda d: Tensor(random(8, 9000), device=d) @ Tensor(random(9000, 8), device=d),
  "matrix by vector": lambda d: Tensor(random(400, 500), device=d) @ Tensor(random(500), device=d),
  "conv2d": lambda d: Tensor(random(2, 8, 20, 20), device=d).conv2d(Tensor(random(16, 8, 3, 3), device=d)),
  "softmax": lambda d: Tensor(random(50, 333), device=d).softmax(),
  "layernorm": lambda d: Tensor(random(30, 400), device=d).layernorm(),
  "cumsum": lambda d: Tensor(random(3000), device=d).cumsum(),
  "float16": lambda d: Tensor(random(64, 300), device=d).half().sum(1).float(),
}

def bits(make: Callable[[str], Tensor], device: str) -> bytes: return make(device).contiguous().numpy().tobytes()

@pytest.fixture(scope="module")
def crowds() -> list[str]:
  """CPU devices with other numbers of threads."""
  names = []
  for ordinal, threads in ((5, 1), (6, 3), (7, 11)) if HOME == "CPU" else ():
    with Context(THREADS=threads): names.append(Device[f"CPU:{ordinal}"].name)
  return names

@pytest.mark.parametrize("name", COMPUTATIONS)
def test_sums_are_the_same_in_each_run_with_any_number_of_threads_and_replayed(name: str, crowds: list[str]) -> None:
  make = COMPUTATIONS[name]
  want = bits(make, HOME)
  assert bits(make, HOME) == want
  for device in crowds: assert bits(make, device) == want, device
  jitted = TinyJit(lambda: make(HOME).contiguous().realize())
  for _ in range(4): assert jitted().numpy().tobytes() == want

@pytest.mark.host("levels of the processor are compared")
@pytest.mark.parametrize("name", COMPUTATIONS)
def test_sums_are_the_same_with_avx2_and_in_c(name: str) -> None:
  assert bits(COMPUTATIONS[name], open_engine("AVX2")) == bits(COMPUTATIONS[name], open_engine("CLANG"))

# ***** types of results *****

KINDS: dict[str, DType] = {
  **{f"i{n}": getattr(dtypes, f"int{n}") for n in (8, 16, 32, 64)},
  **{f"u{n}": getattr(dtypes, f"uint{n}") for n in (8, 16, 32, 64)},
  "bool": dtypes.bool,
  "f16": dtypes.float16, "bf16": dtypes.bfloat16, "f32": dtypes.float32, "f64": dtypes.float64,
  **{d: getattr(dtypes, d) for d in ("fp8e4m3", "fp8e5m2", "fp8e4m3fnuz", "fp8e5m2fnuz")},
}

def expected(a: DType, b: DType) -> DType:
  """Promotion said another way: the smallest type that holds both; floats beat integers; uint64 beats int64; 8-bit
  floats meet in float16."""
  if a is b: return a
  floats = [d for d in (a, b) if dtypes.is_float(d)]
  if len(floats) == 1: return floats[0]
  if floats:
    if a.bitsize != b.bitsize: return max(a, b, key=lambda d: d.bitsize)
    return dtypes.float16 if a.bitsize == 8 else dtypes.float32
  if dtypes.bool in (a, b): return a if b is dtypes.bool else b
  if dtypes.is_unsigned(a) == dtypes.is_unsigned(b): return max(a, b, key=lambda d: d.bitsize)
  unsigned, signed = (a, b) if dtypes.is_unsigned(a) else (b, a)
  if unsigned.bitsize == 64: return dtypes.uint64
  return (signed if signed.bitsize > unsigned.bitsize
          else getattr(dtypes, f"int{2 * unsigned.bitsize}"))  # type: ignore[no-any-return]  # getattr

def test_promotion_of_all_pairs() -> None:
  rows = table("## 7.")
  assert {name.strip("*") for name in rows} == set(KINDS)
  columns = [name.strip("*") for name in rows]
  for name, cells in rows.items():
    for other, cell in zip(columns, cells):
      a, b = KINDS[name.strip("*")], KINDS[other]
      assert KINDS[cell] is expected(a, b), (name, other)
      assert (Tensor([1], dtype=a, device="PYTHON") * Tensor([1], dtype=b, device="PYTHON")).dtype is expected(a, b), (
        name, other)

def test_numbers_are_weak() -> None:
  for dtype in dtypes.all:
    x = Tensor([1], dtype=dtype, device="PYTHON")
    assert (x * True).dtype is dtype
    assert (x * 2).dtype is (dtypes.default_int if dtype is dtypes.bool else dtype)
    assert (x * 2.0).dtype is (dtype if dtypes.is_float(dtype) else dtypes.default_float)
