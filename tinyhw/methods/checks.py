"""What arguments have to be: whole numbers, real numbers, sizes, flags, functions.

Each check gives the argument as plain Python, or raises ArgumentError. Numbers of other libraries are numbers here:
what has `__index__` is whole, what `numbers.Real` knows is real.
"""
from __future__ import annotations
from collections.abc import Sequence
import math
from numbers import Real
import operator
from typing import Any

from tinyhw.dtype import dtypes
from tinyhw.errors import ArgumentError, TinyError
from tinyhw.uop.ops import UOp, sint

def whole(what: str, x: Any, least: int | None = None) -> int:
  """x as an int, not below `least`."""
  if type(x) is not int:
    try: x = operator.index(x)
    except TypeError: raise ArgumentError(f"{what} is a whole number, not {_shown(x)}") from None
  if least is not None and x < least: raise ArgumentError(f"{what} is {x}; it must be at least {least}")
  return int(x)

def _shown(x: Any) -> str:
  """An argument as a message has it: what is made of Variables as an expression."""
  return x.render() if isinstance(x, UOp) and x.dtype in dtypes.weaks else repr(x)

def _is_bool(x: Any) -> bool:
  """Is x a bool of NumPy's, which `numbers.Real` does not know?"""
  kind = type(x)
  return kind.__module__ == "numpy" and kind.__name__ in ("bool", "bool_")

def real(what: str, x: Any) -> float | int:
  """x as an int or a float."""
  if type(x) is float or type(x) is int: return x
  # decided by values (uop/decide.py)
  if isinstance(x, UOp) and x.dtype in dtypes.weaks: return float(x) if dtypes.is_float(x.dtype) else int(x)
  if _is_bool(x): return bool(x)
  if not isinstance(x, Real): raise ArgumentError(f"{what} is a number, not {x!r}")
  return int(operator.index(x)) if hasattr(x, "__index__") else float(x)

def size(what: str, x: Any) -> sint:
  """x as a size or a count: an int, or an expression of Variables."""
  if type(x) is int: return x
  if isinstance(x, UOp):
    if not dtypes.is_int(x.dtype) or x.shape:
      raise ArgumentError(f"{what} is a whole number or a Variable, not {_shown(x)}")
    return x
  return whole(what, x)

def sizes(what: str, given: Sequence[Any]) -> tuple[sint, ...]:
  """Sizes, all of them given."""
  return tuple([d if type(d) is int else size(what, d) for d in given])

def wholes(what: str, given: Any, least: int | None = None) -> tuple[int, ...]:
  """Whole numbers, from one or from a sequence of them."""
  if isinstance(given, (tuple, list, range)): return tuple([whole(what, x, least) for x in given])
  return (whole(what, given, least),)

def is_number(x: Any) -> bool:
  """Is x a number of Python's, or of another library, or made of Variables?"""
  return (type(x) in (int, float, bool) or isinstance(x, Real) or _is_bool(x) or isinstance(x, UOp)
          and x.dtype in dtypes.weaks)

def plain(x: Any) -> Any:
  """A number of another library as one of Python's, which takes the type of the tensor beside it; anything else as it
  is."""
  return x if type(x) in (int, float, bool) or not (isinstance(x, Real) or _is_bool(x)) else real("a number", x)

def finite(what: str, x: Any) -> float | int:
  """x as a number that is neither infinite nor NaN."""
  number = real(what, x)
  if not math.isfinite(number): raise ArgumentError(f"{what} is {number}; it must be finite")
  return number

def flag(what: str, x: Any) -> bool:
  """x as a bool: what Python says of its truth. Raises UnknownValueError for a Tensor, which is not read for it."""
  if x is True or x is False: return x
  try: return bool(x)
  except (TypeError, ValueError) as error:
    if isinstance(error, TinyError): raise
    raise ArgumentError(f"{what} is True or False, not {x!r}") from None

def function(what: str, x: Any) -> Any:
  """x, which can be called."""
  if not callable(x): raise ArgumentError(f"{what} is a function, not {x!r}")
  return x
