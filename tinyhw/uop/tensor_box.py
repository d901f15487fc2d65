"""Bulk tensor copies: boxes of tensors that a unit of the card copies to shared memory by itself. The argument of
TENSOR_BOX.

A tensor consists of elements of a buffer, from its first one on: position (x, y, ...) is element x * strides[0] + y *
strides[1] + ... A box has a position as its first corner. The box may be partly or wholly outside of the tensor, where
elements are 0.

In shared memory the lines of a box are contiguous. Each has 128 bytes, and they are swizzled as those of a
`SwizzledLayout` (uop/matrix.py): the number of the line permutes its pieces of 16 bytes.
"""
from __future__ import annotations
import itertools
import math
from collections.abc import Iterator, Sequence

from tinyhw.data_class import dataclass
from tinyhw.uop.matrix import LINE_BYTES, SwizzledLayout
from tinyhw.uop.text import register

@register
@dataclass(frozen=True)
class TensorBox:
  """A box of a tensor.

  - dims, strides: of the tensor, in elements, innermost axis first.
  - sizes: of the box. The size of the innermost axis is a line.
  """
  dims: tuple[int, ...]
  strides: tuple[int, ...]
  sizes: tuple[int, ...]

  @property
  def count(self) -> int:
    """Elements of a box."""
    return math.prod(self.sizes)

  def wrong(self, itemsize: int) -> str | None:
    """The reason why this is no box of elements of `itemsize` bytes, or None."""
    axes = len(self.dims)
    if not axes or len(self.strides) != axes or len(self.sizes) != axes:
      return "has not as many dims, strides and sizes"
    if min(*self.dims, *self.sizes, *self.strides) < 1 or self.strides[0] != 1:
      return "has a size or stride below 1, or elements that are not contiguous"
    return (None if self.sizes[0] * itemsize == LINE_BYTES else f"has lines of {self.sizes[0] * itemsize} bytes, not "
            f"{LINE_BYTES}")

  def places(self, first: Sequence[int], itemsize: int) -> Iterator[tuple[int, int | None]]:
    """Yield for each element its offset in shared memory, from the box's beginning, and its offset in the buffer. The
    latter is None outside of the tensor."""
    layout = SwizzledLayout(self.count // self.sizes[0], False)
    for line, outer in enumerate(itertools.product(*map(range, reversed(self.sizes[1:])))):
      at = [k + start for k, start in zip(reversed(outer), first[1:])]
      inside = all(0 <= k < n for k, n in zip(at, self.dims[1:]))
      begin = sum(k * stride for k, stride in zip(at, self.strides[1:]))
      for along in range(self.sizes[0]):
        fine = inside and 0 <= first[0] + along < self.dims[0]
        yield layout.offset(line, along, itemsize), begin + first[0] + along if fine else None
