"""The C functions that kernels use, compiled together and called one by one, against the arithmetic.

Skipped without a compiler.
"""
from __future__ import annotations
import ctypes
from pathlib import Path
import random
import shutil
import subprocess

import pytest

from tinyhw.arithmetic import CODED, cast, operation
from tinyhw.codegen.render.prelude import HELPERS
from tinyhw.dtype import ALIASES_BY_TYPE, DType, dtypes

COMPILER = next((name for name in ("clang", "gcc", "cc") if shutil.which(name)), None)
C_TYPES = {dtypes.int8: ctypes.c_int8, dtypes.uint8: ctypes.c_uint8, dtypes.int16: ctypes.c_int16,
           dtypes.uint16: ctypes.c_uint16,
           dtypes.int32: ctypes.c_int32, dtypes.uint32: ctypes.c_uint32, dtypes.int64: ctypes.c_int64,
           dtypes.uint64: ctypes.c_uint64,
           dtypes.float32: ctypes.c_float, dtypes.float64: ctypes.c_double}

@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
  """Return all helpers, exported."""
  if COMPILER is None: pytest.skip("no C compiler")
  folder: Path = tmp_path_factory.mktemp("prelude")
  source = "#include <stdint.h>\n" + "\n".join(text.replace("static inline ", "") for text in HELPERS.values())
  (folder / "all.c").write_text(source, encoding="utf-8")
  flags = ["-O2", "-shared", "-fPIC", "-fno-strict-aliasing", "-ffp-contract=off"]
  subprocess.run([COMPILER, *flags, str(folder / "all.c"), "-o", str(folder / "all.so")], check=True)
  return ctypes.CDLL(str(folder / "all.so"))

def function(library: ctypes.CDLL, name: str, result: DType, *arguments: DType) -> ctypes._CFuncPtr:
  found = library[name]
  found.restype, found.argtypes = C_TYPES[result], [C_TYPES[d] for d in arguments]
  return found

@pytest.mark.parametrize("dtype", dtypes.ints, ids=str)
def test_division(library: ctypes.CDLL, dtype: DType) -> None:
  """All pairs of corners, with 0 and the smallest number by -1."""
  low, high = int(dtype.min), int(dtype.max)
  corners = sorted({low, low + 1, max(low, -7), max(low, -1), 0, 1, 3, 7, high - 1, high})
  for op in ("IDIV", "MOD"):
    f, wanted = function(library, f"{op.lower()}_{ALIASES_BY_TYPE[dtype]}", dtype, dtype, dtype), operation(op, dtype)
    for a in corners:
      for b in corners: assert f(a, b) == wanted(a, b), f"{a} {op} {b}"

@pytest.mark.parametrize("source", (dtypes.float32, dtypes.float64), ids=str)
@pytest.mark.parametrize("target", (dtypes.int32, dtypes.int64, dtypes.uint64), ids=str)
def test_floats_become_integers(library: ctypes.CDLL, source: DType, target: DType) -> None:
  f, wanted = function(library, f"{ALIASES_BY_TYPE[source]}_to_{ALIASES_BY_TYPE[target]}", target,
                       source), cast(source, target)
  edges = [s * e for e in (0.0, 0.9, 1.5, 2.0 ** 31, 2.0 ** 32, 2.0 ** 63, 2.0 ** 64, 1e30, float("inf"))
           for s in (1, -1)]
  nearby = [x * (1 + d * 2.0 ** -23) for x in edges for d in (-1, 1)]
  for x in [*edges, *nearby, -2147483648.5, 2147483647.5, float("nan")]:
    x = ctypes.c_float(x).value if source is dtypes.float32 else x
    assert f(x) == wanted(x), f"{x}"

@pytest.mark.parametrize("dtype", dtypes.narrow_floats, ids=str)
def test_narrow_floats(library: ctypes.CDLL, dtype: DType) -> None:
  """Every code to float32 and back; then numbers between them, and at half the distance."""
  name, code_type = ALIASES_BY_TYPE[dtype], {8: dtypes.uint8, 16: dtypes.uint16}[dtype.bitsize]
  decode, encode = function(library, f"decode_{name}", dtypes.float32,
                            code_type), function(library, f"encode_{name}", code_type, dtypes.float32)
  to_number, to_code = CODED[dtype]
  rng, numbers = random.Random(0), []
  for code in range(1 << dtype.bitsize):
    x, want = decode(code), to_number(code)
    assert x == want or (x != x and want != want), f"{code:#x}"
    if x == x: numbers.append(x)
    if x == x: assert encode(x) == to_code(x)
  finite = sorted(x for x in numbers if abs(x) != float("inf"))
  for a, b in zip(finite, finite[1:]):
    for x in ((a + b) / 2, a + (b - a) * rng.random()):
      x = ctypes.c_float(x).value
      assert encode(x) == to_code(x), f"{x!r}"
  for x in (finite[-1] * 1.01, finite[-1] * 2, float("inf"), -float("inf")):
    assert encode(x) == to_code(ctypes.c_float(x).value), f"{x!r}"

def test_threefry(library: ctypes.CDLL) -> None:
  f, wanted, rng = function(library, "threefry", dtypes.uint64, dtypes.uint64,
                            dtypes.uint64), operation("THREEFRY", dtypes.uint64), random.Random(1)
  for _ in range(200):
    counter, key = rng.getrandbits(64), rng.getrandbits(64)
    assert f(counter, key) == wanted(counter, key)

def test_helpers_stand_after_what_they_call() -> None:
  names = list(HELPERS)
  for k, name in enumerate(names): assert not any(f"{later}(" in HELPERS[name] for later in names[k + 1:]), name
