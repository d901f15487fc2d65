"""Comparison and logic: truth of elements, membership, tests of numbers.

Source of the meanings: PyTorch's documentation.
"""
from __future__ import annotations
import math
from typing import Any

from tinyhw.dtype import dtypes
from tinyhw.errors import ArgumentError, DTypeError
from tinyhw.functional.operands import (
  as_row, axes_of, checked, common_shape, rank, result_type, sizes, tensor, tensors)
from tinyhw.methods.base import Handle
from tinyhw.tensor import Tensor

def _compared(name: str, input: Any, other: Any) -> Tensor:
  if isinstance(input, Handle) and not isinstance(other, Handle): return getattr(input, name)(other)  # type: ignore[no-any-return]
  a, b = tensors(input, other)
  return getattr(a, name)(b)  # type: ignore[no-any-return]

def eq(input: Any, other: Any) -> Tensor:
  """Return input == other."""
  return _compared("eq", input, other)

def ne(input: Any, other: Any) -> Tensor:
  """Return input != other."""
  return _compared("ne", input, other)

def lt(input: Any, other: Any) -> Tensor:
  """Return input < other."""
  return _compared("lt", input, other)

def le(input: Any, other: Any) -> Tensor:
  """Return input <= other."""
  return _compared("le", input, other)

def gt(input: Any, other: Any) -> Tensor:
  """Return input > other."""
  return _compared("gt", input, other)

def ge(input: Any, other: Any) -> Tensor:
  """Return input >= other."""
  return _compared("ge", input, other)

def equal(input: Tensor, other: Tensor) -> bool:
  """Return True if two tensors have one shape and equal elements."""
  a, b = checked("equal", input), checked("equal", other)
  return sizes(a) == sizes(b) and bool(a.eq(b).all().item())

def isclose(input: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Tensor:
  """Return |input - other| <= atol + rtol * |other|. Raises ArgumentError for negative tolerances."""
  if checked("isclose", input).dtype is not checked("isclose", other).dtype:
    raise DTypeError(f"isclose wants tensors of one type, not {input.dtype} and {other.dtype}")
  if rtol < 0 or atol < 0: raise ArgumentError(f"rtol and atol are not negative: they are {rtol} and {atol}")
  if dtypes.is_float(input.dtype): return input.isclose(other, rtol, atol, equal_nan)
  return input.double().isclose(other.double(), rtol, atol, equal_nan)

def allclose(input: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> bool:
  """Return True if all elements are close."""
  return bool(isclose(input, other, rtol, atol, equal_nan).all().item())

def logical_and(input: Tensor, other: Tensor) -> Tensor:
  """Return True where both are not zero."""
  return checked("logical_and", input).bool().bitwise_and(checked("logical_and", other).bool())

def logical_or(input: Tensor, other: Tensor) -> Tensor:
  """Return True where one is not zero at least."""
  return checked("logical_or", input).bool().bitwise_or(checked("logical_or", other).bool())

def logical_xor(input: Tensor, other: Tensor) -> Tensor:
  """Return True where just one is not zero."""
  return checked("logical_xor", input).bool().bitwise_xor(checked("logical_xor", other).bool())

def _bits(name: str, input: Any, other: Any) -> Tensor:
  a, b = tensors(input, other)
  return getattr(a, name)(b)  # type: ignore[no-any-return]

def bitwise_and(input: Any, other: Any) -> Tensor:
  """Return input & other."""
  return _bits("bitwise_and", input, other)

def bitwise_or(input: Any, other: Any) -> Tensor:
  """Return input | other."""
  return _bits("bitwise_or", input, other)

def bitwise_xor(input: Any, other: Any) -> Tensor:
  """Return input ^ other."""
  return _bits("bitwise_xor", input, other)

def bitwise_left_shift(input: Any, other: Any) -> Tensor:
  """Return input << other."""
  return _bits("lshift", input, other)

def bitwise_right_shift(input: Any, other: Any) -> Tensor:
  """Return input >> other."""
  return _bits("rshift", input, other)

def isinf(input: Tensor) -> Tensor:
  """Return True for infinities."""
  return checked("isinf", input).isinf()

def isposinf(input: Tensor) -> Tensor:
  """Return True for positive infinity."""
  return checked("isposinf", input).isinf(True, False)

def isneginf(input: Tensor) -> Tensor:
  """Return True for negative infinity."""
  return checked("isneginf", input).isinf(False, True)

def isreal(input: Tensor) -> Tensor:
  """Return True everywhere: elements are real."""
  return checked("isreal", input).const_like(True, dtypes.bool)

def signbit(input: Tensor) -> Tensor:
  """Return True where the sign bit is set, for -0.0, too."""
  x = checked("signbit", input)
  if not dtypes.is_float(x.dtype): return x.bool().bitwise_and(False) if x.dtype is dtypes.bool else x.lt(0)
  return x.bitcast({2: dtypes.int16, 4: dtypes.int32, 8: dtypes.int64}[x.dtype.itemsize]).lt(0)

def heaviside(input: Tensor, values: Tensor) -> Tensor:
  """Return 0 for negative elements, values for zeros, 1 for positive ones."""
  a, b = checked("heaviside", input), checked("heaviside", values)
  if a.dtype is not b.dtype: raise DTypeError(f"heaviside wants tensors of one type, not {a.dtype} and {b.dtype}")
  return a.isnan().where(math.nan, a.eq(0).where(b, a.gt(0).cast(a.dtype))) if rank(a.dtype) == 2 else a.eq(0).where(
    b, a.gt(0).cast(a.dtype))

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

