"""Types, copies and the like of tensors with PyTorch's parameters, and functions without a room of their own."""
from __future__ import annotations
import math
from typing import Any

from tinyhw.compat.torch.attributes import TorchSize
from tinyhw.compat.torch.creation import place
from tinyhw.compat.torch.dress import kind_of
from tinyhw.dtype import DType, dtypes, least_upper_dtype
from tinyhw.errors import ArgumentError, DTypeError, ShapeError
from tinyhw.functional.operands import checked, floats, rank, result_type, sizes
from tinyhw.functional.reductions import sum as sum_over
from tinyhw.functional.shapes import cat
from tinyhw.methods.base import Handle
from tinyhw.tensor import Tensor

def to(input: Tensor, *args: Any, dtype: Any = None, device: Any = None, copy: bool = False, non_blocking: bool = False,
       memory_format: Any = None) -> Tensor:
  """Return the tensor with another type, on another device, or both; or those of another tensor."""
  x = checked("to", input)
  for arg in args:
    if isinstance(arg, bool): continue
    if isinstance(arg, Handle): dtype, device = arg.dtype, arg.device
    elif isinstance(arg, DType): dtype = arg
    elif arg is not None: device = arg
  kind = kind_of(dtype)
  if device is not None: x = x.to(place(device) if not isinstance(device, tuple) else device)
  x = x if kind is None else as_type(x, kind)
  return x.clone() if copy else x

def cpu(input: Tensor, memory_format: Any = None) -> Tensor:
  """Return the tensor on "cpu", which is the default device."""
  return to(input, "cpu")

def cuda(input: Tensor, device: Any = None, non_blocking: bool = False, memory_format: Any = None) -> Tensor:
  """Return the tensor on a CUDA device."""
  return to(input, "cuda" if device is None else f"cuda:{device}" if isinstance(device, int) else device)

def as_type(x: Tensor, kind: DType) -> Tensor:
  """Cast; a complex number becomes its real part in a real type."""
  if x.holds_complex and kind is not dtypes.bool and kind not in dtypes.complexes: x = x.real   # type: ignore[attr-defined]
  return x.cast(kind)

def _casts(kind: DType) -> Any:
  def cast(input: Tensor, memory_format: Any = None) -> Tensor:
    return as_type(checked("a cast", input), kind)
  cast.__doc__ = f"Cast to {kind!r}."
  return cast

bfloat16, half, double = (_casts(k) for k in (dtypes.bfloat16, dtypes.float16, dtypes.float64))
byte, char, short, int_, long = (_casts(k) for k in (dtypes.uint8, dtypes.int8, dtypes.int16, dtypes.int32,
                                                     dtypes.int64))
float_, bool_ = _casts(dtypes.float32), _casts(dtypes.bool)

def type_as(input: Tensor, other: Tensor) -> Tensor:
  """Cast to the type of another tensor."""
  return as_type(input, other.dtype)

def clone(input: Tensor, *, memory_format: Any = None) -> Tensor:
  """Return a copy."""
  return checked("clone", input).clone()

def contiguous(input: Tensor, memory_format: Any = None) -> Tensor:
  """Return the tensor in memory of its own."""
  return checked("contiguous", input).contiguous()

def itself(input: Tensor) -> Tensor:
  """Return the input: conjugates, real parts and the like of real numbers."""
  return checked("this function", input)

def copied(input: Tensor, *args: Any, **keywords: Any) -> Tensor:
  """Return a copy."""
  return input.clone()

def detach(input: Tensor) -> Tensor:
  """Return the values without a gradient."""
  return input.detach()

def item(input: Tensor) -> Any:
  """Return the only element as a number of Python."""
  return input.item()

def numel(input: Tensor) -> int:
  """Return the number of elements."""
  return int(checked("numel", input).numel())

def size(input: Tensor, dim: int | None = None) -> Any:
  """Return the shape, or one size."""
  return TorchSize(sizes(input)) if dim is None else sizes(input)[dim]

def dim(input: Tensor) -> int:
  """Return the number of axes."""
  return input.ndim

def is_tensor(obj: Any) -> bool:
  """Is it a tensor?"""
  return isinstance(obj, Handle)

def is_floating_point(input: Tensor) -> bool:
  """Are the elements floats?"""
  return dtypes.is_float(input.dtype)

def can_cast(from_: Any, to: Any) -> bool:
  """May a type be cast to another by PyTorch's rules? Not to a lower kind."""
  kinds = [rank(k) for k in (from_, to)]
  return kinds[0] <= kinds[1]

def promote_types(type1: DType, type2: DType) -> DType:
  """Return the type to which two promote."""
  return least_upper_dtype(type1, type2)

def result_type_of(tensor1: Any, tensor2: Any) -> DType:
  """Return the type of an operation between two operands."""
  return result_type(tensor1, tensor2)

def sum_to_size(input: Tensor, *size: Any) -> Tensor:
  """Sum over axes until the shape is `size`, from which the input's shape could have been broadcast. A sum to () is
  that of all elements, also of one without axes: integers become int64."""
  wanted = tuple(size[0]) if len(size) == 1 and isinstance(size[0], (tuple, list)) else tuple(size)
  if not wanted: return sum_over(input)
  extra = input.ndim - len(wanted)
  if extra < 0: raise ShapeError(f"sum_to_size: {input.shape} has fewer axes than {wanted}")
  axes = tuple([i for i, d in enumerate(sizes(input)) if i < extra or wanted[i - extra] == 1 != d])
  for i, d in enumerate(sizes(input)[extra:]):
    if wanted[i] not in (1, d): raise ShapeError(f"sum_to_size: {input.shape} does not sum to {wanted}")
  return sum_over(input, axes, keepdim=True).reshape(wanted) if axes else input.reshape(wanted)

def unary(name: str) -> Any:
  """Return a method of one tensor as a function that casts integers to the default float type."""
  def function(input: Tensor) -> Tensor:
    return getattr(floats(checked(name, input))[0], name)()  # type: ignore[no-any-return]
  function.__name__, function.__doc__ = name, getattr(Tensor, name).__doc__
  return function

def same(name: str) -> Any:
  """Return a method of one tensor as a function."""
  def function(input: Tensor) -> Tensor:
    x = checked(name, input)
    if x.dtype is dtypes.bool and name == "square": x = x.long()    # as x ** 2 is
    if x.dtype is dtypes.bool and name not in ("logical_not", "bitwise_not", "isnan", "isfinite"):
      raise DTypeError(f"{name} wants numbers, not bools; cast them")
    return getattr(x, name)()  # type: ignore[no-any-return]
  function.__name__, function.__doc__ = name, getattr(Tensor, name).__doc__
  return function

def chunk_cat(tensors: Any, dim: int, num_chunks: int) -> Tensor:
  """Split each tensor into chunks along an axis, flatten the rest, and join the tensors' chunks."""
  if not tensors: raise ArgumentError("_chunk_cat wants a tensor at least")
  if num_chunks < 1: raise ArgumentError(f"num_chunks is {num_chunks}; it must be at least 1")
  if dim < 0 and len({x.ndim for x in tensors}) > 1:
    raise ArgumentError(f"dim {dim} of tensors that differ in their axes")
  dim, rows = dim % max(tensors[0].ndim, 1), []
  for x in tensors:
    if dim >= x.ndim or not x.numel() or sizes(x)[:dim] != sizes(tensors[0])[:dim]:
      raise ShapeError(f"_chunk_cat along axis {dim} of {x.shape}: it wants elements, and equal sizes before the axis")
  for x in tensors:
    lead, n, rest = sizes(x)[:dim], sizes(x)[dim], sizes(x)[dim + 1:]
    each = -(-n // num_chunks)
    padded = x.pad([(0, each * num_chunks - n) if i == dim else None for i in range(x.ndim)])
    rows.append(padded.reshape(*lead, num_chunks, each * math.prod(rest)))
  return cat(rows, dim + 1)

def foreach(function: Any) -> Any:
  """Return a function of tensors as one of lists of tensors, which returns a list."""
  def called(tensors: Any, *args: Any, **keywords: Any) -> list[Any]:
    def item(x: Any, k: int) -> Any: return x[k] if isinstance(x, (list, tuple)) else x
    more = {"value": args[2], **keywords} if len(args) == 3 else keywords      # of addcmul, addcdiv
    return [function(x, *[item(y, k) for y in args[:2]], **{name: item(y, k) for name, y in more.items()})
            for k, x in enumerate(tensors)]
  return called

def frombuffer(buffer: Any, *, dtype: Any, count: int = -1, offset: int = 0, requires_grad: bool = False) -> Tensor:
  """Return numbers of a buffer's bytes, from an offset on. They are a copy."""
  kind = kind_of(dtype)
  if kind is None: raise ArgumentError("frombuffer wants a dtype")
  data = bytes(memoryview(buffer).cast("B"))[offset:]
  if count < 0 and len(data) % kind.itemsize or len(data) < count * kind.itemsize:
    raise ArgumentError(f"frombuffer: {len(data)} bytes are not {'whole' if count < 0 else count} elements of {kind}")
  data = data[:count * kind.itemsize] if count >= 0 else data
  return _leaf(Tensor(data, dtype=dtypes.uint8).bitcast(kind), requires_grad)

def _leaf(x: Tensor, requires_grad: bool) -> Tensor: return x.requires_grad_() if requires_grad else x
