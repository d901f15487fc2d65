"""Checks of arguments: whole numbers, real numbers, sizes, flags, functions.

Each check returns the argument as a plain Python value, or raises ArgumentError. Numbers of other libraries are
accepted: an object with `__index__` is a whole number, an instance of `numbers.Real` is a real number.
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
  """Return x as an int that is at least `least`."""
  if type(x) is not int:
    try: x = operator.index(x)
    except TypeError: raise ArgumentError(f"{what} is a whole number, not {_shown(x)}") from None
  if least is not None and x < least: raise ArgumentError(f"{what} is {x}; it must be at least {least}")
  return int(x)

def _shown(x: Any) -> str:
  """Return the text of an argument for a message: an expression if it is made of Variables."""
  return x.render() if isinstance(x, UOp) and x.dtype in dtypes.weaks else repr(x)

def _is_bool(x: Any) -> bool:
  """Is x a bool of NumPy, which is not a `numbers.Real`?"""
  kind = type(x)
  return kind.__module__ == "numpy" and kind.__name__ in ("bool", "bool_")

def real(what: str, x: Any) -> float | int:
  """Return x as an int or a float."""
  if type(x) is float or type(x) is int: return x
  # such expressions take the present values of their Variables (uop/decide.py)
  if isinstance(x, UOp) and x.dtype in dtypes.weaks: return float(x) if dtypes.is_float(x.dtype) else int(x)
  if _is_bool(x): return bool(x)
  if not isinstance(x, Real): raise ArgumentError(f"{what} is a number, not {x!r}")
  return int(operator.index(x)) if hasattr(x, "__index__") else float(x)

def size(what: str, x: Any) -> sint:
  """Return x as a size or a count: an int, or an expression of Variables."""
  if type(x) is int: return x
  if isinstance(x, UOp):
    if not dtypes.is_int(x.dtype) or x.shape:
      raise ArgumentError(f"{what} is a whole number or a Variable, not {_shown(x)}")
    return x
  return whole(what, x)

def sizes(what: str, given: Sequence[Any]) -> tuple[sint, ...]:
  """Return each argument as a size."""
  return tuple([d if type(d) is int else size(what, d) for d in given])

def wholes(what: str, given: Any, least: int | None = None) -> tuple[int, ...]:
  """Return a tuple of whole numbers, from one number or from a sequence of them."""
  if isinstance(given, (tuple, list, range)): return tuple([whole(what, x, least) for x in given])
  return (whole(what, given, least),)

def is_number(x: Any) -> bool:
  """Is x a number of Python or of another library, or made of Variables?"""
  return (type(x) in (int, float, bool) or isinstance(x, Real) or _is_bool(x) or isinstance(x, UOp)
          and x.dtype in dtypes.weaks)

def plain(x: Any) -> Any:
  """Return a number of another library as one of Python, which takes the type of the tensor operand. Return anything
  else unchanged."""
  return x if type(x) in (int, float, bool) or not (isinstance(x, Real) or _is_bool(x)) else real("a number", x)

def finite(what: str, x: Any) -> float | int:
  """Return x as a number that is neither infinite nor NaN."""
  number = real(what, x)
  if not math.isfinite(number): raise ArgumentError(f"{what} is {number}; it must be finite")
  return number

def flag(what: str, x: Any) -> bool:
  """Return the truth value of x as a bool. Raises UnknownValueError for a Tensor, which is not read for this."""
  if x is True or x is False: return x
  try: return bool(x)
  except (TypeError, ValueError) as error:
    if isinstance(error, TinyError): raise
    raise ArgumentError(f"{what} is True or False, not {x!r}") from None

def function(what: str, x: Any) -> Any:
  """Return x, which must be callable."""
  if not callable(x): raise ArgumentError(f"{what} is a function, not {x!r}")
  return x
