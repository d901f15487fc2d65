"""Boxes of tensors that a unit of the card copies to local memory by itself: the argument of BOX.

A tensor is elements of a buffer, from its first one on: place (x, y, ...) is element x * strides[0] + y * strides[1] +
... A box has a place as its first corner, which may lie outside of the tensor, as may all of it: there it is 0. In
local memory its lines, which have 128 bytes each, lie one after the other, as those of one panel (uop/matrix.py): their
pieces of 16 bytes change places by the number of the line.
"""
from __future__ import annotations
import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tinyhw.uop.matrix import LINE_BYTES, Panels
from tinyhw.uop.text import register

@register
@dataclass(frozen=True)
class Box:
  """dims, strides: of the tensor, in elements, innermost axis first. sizes: of the box; those of the innermost axis
  are a line."""
  dims: tuple[int, ...]
  strides: tuple[int, ...]
  sizes: tuple[int, ...]

  @property
  def count(self) -> int:
    """Elements of a box."""
    return math.prod(self.sizes)

  def wrong(self, itemsize: int) -> str | None:
    """What makes this no box of elements of so many bytes."""
    axes = len(self.dims)
    if not axes or len(self.strides) != axes or len(self.sizes) != axes:
      return "has not as many dims, strides and sizes"
    if min(*self.dims, *self.sizes, *self.strides) < 1 or self.strides[0] != 1:
      return "has a size or stride below 1, or elements apart"
    return (None if self.sizes[0] * itemsize == LINE_BYTES else f"has lines of {self.sizes[0] * itemsize} bytes, not "
            f"{LINE_BYTES}")

  def places(self, first: Sequence[int], itemsize: int) -> Iterator[tuple[int, int | None]]:
    """For each element, where it is in local memory, from the box's beginning on, and where in the buffer; None for
    what is outside of the tensor."""
    panel = Panels(self.count // self.sizes[0], False)
    for line, outer in enumerate(itertools.product(*map(range, reversed(self.sizes[1:])))):
      at = [k + start for k, start in zip(reversed(outer), first[1:])]
      inside = all(0 <= k < n for k, n in zip(at, self.dims[1:]))
      begin = sum(k * stride for k, stride in zip(at, self.strides[1:]))
      for along in range(self.sizes[0]):
        fine = inside and 0 <= first[0] + along < self.dims[0]
        yield panel.place(line, along, itemsize), begin + first[0] + along if fine else None
