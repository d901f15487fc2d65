"""The cases of the tables of test/whole/edges, and how a result is compared with the expected one.

A table is `EDGES: dict[str, list[Case]]`: by method, cases (code, expected). The code is one expression, after
statements if need be ("x = Tensor([1, 2]); x[0] = 5; x"). It knows Tensor, dtypes, nn, Variable, math, inf and nan.
What is expected, worked out by hand:

  a number, nested lists   a Tensor of this shape, with bools, integers or floats as written, and these values; -0.0 is
                           not 0.0, nan is nan
  like(...)                the same, with a type, a shape (which lists of nothing cannot say) or another tolerance
  (a, b), [a, b]           a tuple or a list of results, each as expected
  any other value          the same value of the same Python type
  raises(Error, "words")   that error from the code, with these words in its message

Integers and bools are exact. Floats may differ by a few units of their type's last place, relative to what is expected.
"""
from __future__ import annotations
import ast
import math
from typing import Any, NamedTuple

from test import suite
from tinyhw import Tensor, Variable, dtypes, nn
from tinyhw.config import DEV, EMULATE
from tinyhw.dtype import DType

Case = tuple[str, object]
KNOWN = {"Tensor": Tensor, "Variable": Variable, "dtypes": dtypes, "nn": nn, "math": math, "inf": math.inf,
         "nan": math.nan}
# Relative to the expected value. float32 and float64 may be made of several rounded steps; narrower types compute in
# float32, and round once.
TOLERANCE = {dtypes.float64: 8 * 2.0 ** -52, dtypes.float32: 8 * 2.0 ** -23, dtypes.float16: 2.0 ** -10,
             dtypes.bfloat16: 2.0 ** -7,
             dtypes.fp8e4m3: 2.0 ** -3, dtypes.fp8e5m2: 2.0 ** -2}

class Like(NamedTuple):
  """A Tensor that is expected; None says nothing. tolerance: relative and absolute, instead of the type's relative
  one."""
  values: Any
  dtype: DType | None
  shape: tuple[int, ...] | None
  tolerance: float | None

class Raises(NamedTuple):
  """An error that is expected, and words of its message."""
  error: type[Exception]
  words: str

def like(values: Any = None, dtype: DType | None = None, shape: tuple[int, ...] | None = None,
         tolerance: float | None = None) -> Like:
  return Like(values, dtype, shape, tolerance)

def raises(error: type[Exception], words: str) -> Raises:
  assert words, "an error is expected with words of its message"
  return Raises(error, words)

def run(code: str) -> Any:
  """The value of the last expression of the code."""
  tree = ast.parse(code)
  last = tree.body.pop()
  assert isinstance(last, ast.Expr), f"the end of {code!r} is no expression"
  names: dict[str, Any] = dict(KNOWN)
  exec(compile(tree, code, "exec"), names)
  return eval(compile(ast.Expression(last.value), code, "eval"), names)

def difference(code: str, expected: object) -> str:
  """How what the code gives differs from what is expected; "" if it does not."""
  try:
    found = run(code)
    if not isinstance(expected, Raises): return compared(found, expected)
  except Exception as error:  # noqa: BLE001  # of any kind: what is left of the table is tried too
    if suite.lacks(suite.chip_here(EMULATE.value, DEV.value), error): return ""
    if not isinstance(expected, Raises) or not isinstance(error, expected.error): return f"raises {error!r}"
    return "" if expected.words in str(error) else f"says {str(error)!r}, without {expected.words!r}"
  return f"gives {found!r}, and should raise {expected.error.__name__}"

def compared(found: Any, expected: Any) -> str:
  """As `difference`, of a value."""
  if isinstance(found, Tensor): return _tensor(found, expected if isinstance(expected, Like) else like(expected))
  if isinstance(expected, Like): return _number(found, expected)
  if type(found) is not type(expected): return f"gives {found!r} of {type(found)}, not {expected!r} of {type(expected)}"
  if not isinstance(expected, (tuple, list)):
    return "" if _same(found, expected, 0, 0) else f"gives {found!r}, not {expected!r}"
  if len(found) != len(expected): return f"gives {len(found)} results, not {len(expected)}: {found!r}"
  return next((f"result {i} {why}" for i, (f, e) in enumerate(zip(found, expected)) if (why := compared(f, e))), "")

def _number(found: Any, expected: Like) -> str:
  """A Python number beside one that is expected with a tolerance."""
  assert expected.tolerance is not None, "a number of Python's is expected as it is, or with a tolerance"
  right = type(found) is type(expected.values) and _same(found, expected.values, expected.tolerance, expected.tolerance)
  return "" if right else f"gives {found!r}, not {expected.values!r}"

def _tensor(found: Tensor, expected: Like) -> str:
  if expected.dtype is not None and found.dtype is not expected.dtype: return f"has {found.dtype}, not {expected.dtype}"
  values = found.tolist()
  # a Variable's is known once it is computed
  shape = found.shape if all(isinstance(d, int) for d in found.shape) else shape_of(values)
  wanted = shape_of(expected.values) if expected.shape is None and expected.values is not None else expected.shape
  if wanted is not None and shape != wanted: return f"has shape {shape}, not {wanted}: {values}"
  if expected.values is None: return ""
  got, want = flat(values), flat(expected.values)
  if expected.dtype is None and want and kind(found.dtype) is not kind_of(want):
    return f"has {found.dtype}, and {kind_of(want).__name__}s are expected: {values}"
  relative, absolute = ((TOLERANCE.get(found.dtype, 0.0), 0.0) if expected.tolerance is None
                        else (expected.tolerance,) * 2)
  if len(got) != len(want) or not all(_same(g, w, relative, absolute) for g, w in zip(got, want)):
    return f"gives {values}, not {expected.values}"
  return ""

def _same(got: Any, want: Any, relative: float, absolute: float) -> bool:
  if not isinstance(want, float): return bool(got == want)
  if not isinstance(got, float) or math.isnan(want): return got != got
  if want == 0 and not absolute: return got == 0 and math.copysign(1, got) == math.copysign(1, want)
  return got == want or (math.isfinite(want) and abs(got - want) <= relative * abs(want) + absolute)

def kind(dtype: DType) -> type:
  if dtype is dtypes.bool: return bool
  return int if dtypes.is_int(dtype) else float

def kind_of(values: list[Any]) -> type:
  """Return the common kind of numbers; a float among integers makes floats of them."""
  return next((k for k in (float, bool) if any(isinstance(x, k) for x in values)), int)

def shape_of(values: Any) -> tuple[int, ...]:
  """The shape of nested lists."""
  if not isinstance(values, list): return ()
  inner = {shape_of(x) for x in values}
  assert len(inner) <= 1, f"rows of different lengths: {values}"
  return (len(values), *next(iter(inner), ()))

def flat(values: Any) -> list[Any]:
  return [x for row in values for x in flat(row)] if isinstance(values, list) else [values]
