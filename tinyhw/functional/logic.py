"""Comparison and logic: truth of elements, membership, tests of numbers.

Source of the meanings: PyTorch's documentation.
"""
from __future__ import annotations
from collections.abc import Callable
from typing import Any

from tinyhw.dtype import dtypes
from tinyhw.errors import ArgumentError, DTypeError
from tinyhw.functional.operands import (
  as_row, axes_of, checked, common_shape, result_type, sizes, tensor, tensors)
from tinyhw.methods.base import Handle
from tinyhw.tensor import Tensor

def _infix(method: str, sign: str, weak: bool = False) -> Callable[[Any, Any], Tensor]:
  """Return a method of Tensor as a function of two operands, promoted. weak: a number after a tensor stays a number,
  so that one outside of the tensor's type compares by its value."""
  def function(input: Any, other: Any) -> Tensor:
    if weak and isinstance(input, Handle) and not isinstance(other, Handle): a, b = input, other
    else: a, b = tensors(input, other)
    return getattr(a, method)(b)  # type: ignore[no-any-return]
  function.__name__ = function.__qualname__ = method
  function.__doc__ = f"Return input {sign} other."
  return function

eq, ne, lt, le, gt, ge = (_infix(name, sign, weak=True) for name, sign in (
  ("eq", "=="), ("ne", "!="), ("lt", "<"), ("le", "<="), ("gt", ">"), ("ge", ">=")))
bitwise_and, bitwise_or, bitwise_xor, bitwise_left_shift, bitwise_right_shift = (_infix(name, sign) for name, sign in (
  ("bitwise_and", "&"), ("bitwise_or", "|"), ("bitwise_xor", "^"), ("lshift", "<<"), ("rshift", ">>")))

def equal(input: Tensor, other: Tensor) -> bool:
  """Return True if two tensors have one shape and equal elements."""
  a, b = checked("equal", input), checked("equal", other)
  return sizes(a) == sizes(b) and bool(a.eq(b).all().item())

def isclose(input: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Tensor:
  """Return |input - other| <= atol + rtol * |other|. Raises ArgumentError for negative tolerances."""
  if checked("isclose", input).dtype is not checked("isclose", other).dtype:
    raise DTypeError(f"isclose wants tensors of one type, not {input.dtype} and {other.dtype}")
  if rtol < 0 or atol < 0: raise ArgumentError(f"rtol and atol are not negative: they are {rtol} and {atol}")
  if dtypes.is_float(input.dtype) or input.dtype in dtypes.complexes:
    return input.isclose(other, rtol, atol, equal_nan)
  return input.double().isclose(other.double(), rtol, atol, equal_nan)

def allclose(input: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> bool:
  """Return True if all elements are close."""
  return bool(isclose(input, other, rtol, atol, equal_nan).all().item())

def _truths(name: str, meaning: str) -> Callable[[Tensor, Tensor], Tensor]:
  """Return an operator of bools as a function of the truth of two tensors."""
  def function(input: Tensor, other: Tensor) -> Tensor:
    a, b = (checked(f"logical_{name}", x).bool() for x in (input, other))
    return getattr(a, f"bitwise_{name}")(b)  # type: ignore[no-any-return]
  function.__name__ = function.__qualname__ = f"logical_{name}"
  function.__doc__ = f"Return True where {meaning}."
  return function

logical_and, logical_or, logical_xor = (_truths(name, meaning) for name, meaning in (
  ("and", "both are not zero"), ("or", "one at least is not zero"), ("xor", "just one is not zero")))

def isinf(input: Tensor) -> Tensor:
  """Return True for infinities."""
  return checked("isinf", input).isinf()

def isposinf(input: Tensor) -> Tensor:
  """Return True for positive infinity."""
  return checked("isposinf", input).isinf(True, False)

def isneginf(input: Tensor) -> Tensor:
  """Return True for negative infinity."""
  return checked("isneginf", input).isinf(False, True)

def signbit(input: Tensor) -> Tensor:
  """Return True where the sign bit is set, for -0.0, too."""
  x = checked("signbit", input)
  if not dtypes.is_float(x.dtype): return x.bool().bitwise_and(False) if x.dtype is dtypes.bool else x.lt(0)
  return x.bitcast({2: dtypes.int16, 4: dtypes.int32, 8: dtypes.int64}[x.dtype.itemsize]).lt(0)

def heaviside(input: Tensor, values: Tensor) -> Tensor:
  """Return 0 for negative elements and NaN, values for zeros, 1 for positive ones."""
  a, b = checked("heaviside", input), checked("heaviside", values)
  if a.dtype is not b.dtype: raise DTypeError(f"heaviside wants tensors of one type, not {a.dtype} and {b.dtype}")
  return a.eq(0).where(b, a.gt(0).cast(a.dtype))

def isin(elements: Any, test_elements: Any, assume_unique: bool = False, invert: bool = False) -> Tensor:
  """Return True where an element is one of test_elements."""
  kind = result_type(elements, test_elements)
  x, others = tensor(elements, None, kind), tensor(test_elements, None, kind).flatten()
  found = x.unsqueeze(-1).eq(others).any(-1) if sizes(others)[0] else x.const_like(False, dtypes.bool)
  return found.logical_not() if invert else found

def where(condition: Tensor, input: Any = None, other: Any = None) -> Any:
  """Return input where condition is true, else other; of a condition alone, the indices where it is true."""
  if input is None and other is None:
    return tuple([column.squeeze(1) for column in condition.nonzero().long().split(1, 1)])
  kind = result_type(input, other)
  return checked("where", condition).where(tensor(input, condition, kind), tensor(other, condition, kind))

def masked_fill(input: Tensor, mask: Tensor, value: Any) -> Tensor:
  """Return value where mask is true, else input. value: a number, or a tensor without axes."""
  if isinstance(value, Handle) and value.ndim: raise ArgumentError(f"value has shape {value.shape}; it has no axes")
  if checked("a mask", mask).dtype is not dtypes.bool: raise DTypeError(f"a mask holds bools, not {mask.dtype}")
  return mask.where(tensor(value, input, input.dtype), input)

def all(input: Tensor, dim: Any = None, keepdim: bool = False) -> Tensor:
  """Return True where all elements are true."""
  return _truth("all", input, dim, keepdim)

def any(input: Tensor, dim: Any = None, keepdim: bool = False) -> Tensor:
  """Return True where an element is true."""
  return _truth("any", input, dim, keepdim)

def _truth(name: str, input: Tensor, dim: Any, keepdim: bool) -> Tensor:
  x = checked(name, input)
  axes = axes_of(x, dim) if dim is None or not isinstance(dim, (tuple, list)) or dim else axes_of(x, None)
  found = getattr(x.bool(), name)(axes, keepdim) if x.ndim else x.bool()
  return found.cast(dtypes.uint8) if x.dtype is dtypes.uint8 else found

def count_nonzero(input: Tensor, dim: Any = None) -> Tensor:
  """Return the number of elements that are not zero, over axes."""
  return checked("count_nonzero", input).bool().long().sum(axes_of(input, dim) if input.ndim else None)

def argwhere(input: Tensor) -> Tensor:
  """Return the indices of elements that are not zero, a row for each."""
  return checked("argwhere", input).nonzero().long()

def nonzero(input: Tensor, as_tuple: bool = False) -> Any:
  """Return the indices of elements that are not zero: a row for each, or (as_tuple) a vector for each axis."""
  if not as_tuple: return checked("nonzero", input).nonzero().long()
  return tuple([column.squeeze(1) for column in as_row(input).nonzero().long().split(1, 1)])

def nonzero_static(input: Tensor, size: int, fill_value: int = -1) -> Tensor:
  """Return `size` rows of indices of elements that are not zero, cut or filled."""
  if size < 0: raise ArgumentError(f"size is {size}; it must be at least 0")
  if not input.numel():
    return Tensor.full((size, input.ndim), fill_value, dtypes.int64)
  return input.nonzero(size=size, fill_value=fill_value).long()

def masked_select(input: Tensor, mask: Tensor) -> Tensor:
  """Return the elements where mask is true, as a vector."""
  if checked("a mask", mask).dtype is not dtypes.bool: raise DTypeError(f"a mask holds bools, not {mask.dtype}")
  shape = common_shape(sizes(input), sizes(mask))
  return input.expand(shape).masked_select(mask.expand(shape)) if shape else as_row(input).masked_select(as_row(mask))

def is_nonzero(input: Tensor) -> bool:
  """Return the truth of a tensor of one element."""
  return bool(input.item())

