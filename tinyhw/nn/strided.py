"""Tensors with strides in a file. They are expressed as movements of a vector of elements, so that they stay on
DISK."""
from __future__ import annotations
import math

from tinyhw.dtype import DType, dtypes
from tinyhw.files.budget import AXIS, TENSOR
from tinyhw.nn.tensor_io import InputFile
from tinyhw.tensor import Tensor

def strided(source: InputFile, begin: int, count: int, dtype: DType, offset: int, shape: tuple[int, ...],
            strides: tuple[int, ...]) -> Tensor:
  """Return the tensor whose element (i, j, ...) is number offset + i * strides[0] + j * strides[1] + ... of `count`
  elements. These begin at byte `begin`.

  Strides become movements if each is a multiple of the strides of the axes inside it. Other strides, for example of
  slices with steps, become a gather on the default device.

  Raises FileFormatError if the tensor reaches outside of the elements. Also raises it if the tensor has more elements
  than there are, not counting axes of stride 0.
  """
  if 0 in shape: return source.elements(begin, shape, dtype, "an empty tensor")
  last = offset + sum((n - 1) * s for n, s in zip(shape, strides))
  if last >= count: raise source.bad(f"a tensor of shape {shape} reaches element {last} of a storage of {count}")
  # outermost first
  axes = sorted((k for k, n in enumerate(shape) if n > 1 and strides[k]), key=lambda k: -strides[k])
  source.budget.take(AXIS * (2 + len(axes)) + AXIS // 8 * len(shape))
  x = source.elements(begin + offset * dtype.itemsize, (last - offset + 1,), dtype, "a tensor")
  # Each stride is the room for the axes further inside.
  rooms = [strides[k] for k in axes[:-1]]
  nested = all(shape[k] * strides[k] <= room and room % strides[k] == 0 for k, room in zip(axes[1:], rooms))
  x = _nested(x, shape, strides, axes) if nested else _gathered(source, x, shape, strides, axes)
  x = x.reshape([n if k in axes else 1 for k, n in enumerate(shape)])
  return x if x.shape == shape else x.expand(shape)

def _nested(x: Tensor, shape: tuple[int, ...], strides: tuple[int, ...], axes: list[int]) -> Tensor:
  """Cut each axis out of the span of one step along the axis before it. Then permute the axes into their order."""
  if axes and shape[axes[0]] * strides[axes[0]] > len(x): x = x.pad((0, shape[axes[0]] * strides[axes[0]] - len(x)))
  for k in axes: x = _first(x, shape[k] * strides[k]).reshape(*x.shape[:-1], shape[k], strides[k])
  x = _first(x, 1).reshape([shape[k] for k in axes])
  order = [axes.index(k) for k in sorted(axes)]
  return x if order == list(range(len(order))) else x.permute(order)

def _first(x: Tensor, count: int) -> Tensor:
  """Return the first elements of the last axis."""
  return x if x.shape[-1] == count else x.shrink((*[(0, n) for n in x.shape[:-1]], (0, count)))

def _gathered(source: InputFile, x: Tensor, shape: tuple[int, ...], strides: tuple[int, ...],
              axes: list[int]) -> Tensor:
  if math.prod(shape[k] for k in axes) > len(x):
    raise source.bad(f"a tensor of shape {shape} and strides {strides} overlaps itself; save its .clone()")
  source.budget.take(TENSOR)
  kind = dtypes.int32 if len(x) < 1 << 31 else dtypes.int64
  place = Tensor.zeros([1] * len(axes), dtype=kind)
  for i, k in enumerate(sorted(axes)):
    along = (Tensor.arange(shape[k], dtype=kind) * strides[k]).reshape([shape[k] if j == i else 1
                                                                        for j in range(len(axes))])
    place = place + along
  return x.to(None)[place]
