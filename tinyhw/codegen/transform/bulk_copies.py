"""Find the tensor of an operand of a product, for targets with bulk copies (`Capabilities.bulk_copies`,
uop/tensor_box.py).

A bulk copy moves a box of a tensor (TENSOR_BOX) to shared memory by one instruction. An operand is a load at `along +
stride * line + rest`, of two positions: the position in a line of shared memory, and the number of the line. These two
are the axes of the tensor. Other terms of the index are added to one of the two coordinates: multiples of the stride to
the line, the others to the position. So several matrices, one after the other or next to each other, are one tensor.

There is no tensor if coordinates would leave a line of memory. A gate that limits one of the coordinates is the end of
the tensor. There is no tensor with any other gate.

Cost: a few looks at the sum of an index.
"""
from __future__ import annotations
from collections.abc import Mapping, Sequence

from tinyhw.codegen.kernel.affine import linear, number, total
from tinyhw.codegen.transform.tiling import size_of
from tinyhw.dtype import dtypes
from tinyhw.named_tuple import NamedTuple
from tinyhw.uop.tensor_box import TensorBox
from tinyhw.uop.enums import Ops
from tinyhw.uop.matrix import LINE_BYTES, PIECE_BYTES
from tinyhw.uop.ops import UOp

MOST = (1 << 31) - 1   # of a coordinate
MOST_LINES = 256       # of a box

Weights = Mapping[UOp, int]  # the ranges in the sum of a position; one of them has weight 1

def weights(parts: Sequence[UOp]) -> Weights:
  """Return the weights of a position whose digits these ranges are, the last of them the fastest."""
  found, weight = dict[UOp, int](), 1
  for r in reversed(parts): found[r], weight = weight, weight * size_of(r)
  return found

class OperandTensor(NamedTuple):
  """An operand as a tensor.

  `first`: its coordinates where both positions are 0, along and line. `dims`: its sizes. `stride`: of lines.
  """
  buffer: UOp
  stride: int
  first: tuple[UOp, UOp]
  dims: tuple[int, int]

class Coordinate(NamedTuple):
  """A coordinate as a sum of terms, a constant and a position."""
  terms: dict[UOp, int]
  constant: int
  position: Weights

  @property
  def first(self) -> UOp: return total(self.terms, self.constant)

  @property
  def end(self) -> int:
    return int(self.first.vmax) + sum((size_of(r) - 1) * weight for r, weight in self.position.items()) + 1

  def limit(self, gate: UOp) -> int | None:
    """Return the end that a gate sets: `coordinate < end`, in any form. None for another gate."""
    if gate.op is not Ops.CMPLT or gate.src[1].op is not Ops.CONST: return None
    terms, constant = linear(gate.src[0])
    whole = dict(self.terms)
    for r, weight in self.position.items(): whole[r] = whole.get(r, 0) + weight
    return gate.src[1].arg - constant + self.constant if terms == whole else None

def tensor_of(x: UOp, along: Weights, line: Weights) -> OperandTensor | None:
  """Return the tensor of an operand. along, line: positions, as sums of ranges of known sizes. A line has whole pieces.
  """
  if x.op is not Ops.LOAD or x.src[0].src[0].op is not Ops.PARAM: return None
  if len(x.src) > 1 and not (x.src[2].op is Ops.CONST and x.src[2].arg == 0): return None
  buffer, index = x.src[0].src
  terms, constant = linear(index)
  stride = next(terms.get(r, 0) for r, weight in line.items() if weight == 1)
  if stride < 1 or stride * buffer.dtype.itemsize % PIECE_BYTES: return None
  if any(terms.get(r, 0) != weight * step for position, step in ((along, 1), (line, stride))
         for r, weight in position.items()):
    return None
  for r in (*along, *line): del terms[r]
  if any(r in term.ranges for term in terms for r in (*along, *line)): return None
  gate = x.src[1] if len(x.src) > 1 else None
  # where lines are as long as a step, a gate shows the terms of its coordinate
  for inside in (frozenset[UOp](), frozenset(gate.ranges if gate is not None else ())):
    rows = {term: factor // stride for term, factor in terms.items() if factor % stride == 0 and term not in inside}
    x_axis = Coordinate({term: factor for term, factor in terms.items() if term not in rows}, constant % stride, along)
    y_axis = Coordinate(rows, constant // stride, line)
    dims = ends_of(x_axis, y_axis, gate)
    if dims is not None: break
  if dims is None or dims[0] > stride or dims[1] > MOST or dims[0] + stride * (dims[1] - 1) > buffer.arg[1]: return None
  return OperandTensor(buffer, stride, (x_axis.first, y_axis.first), dims)

def ends_of(x: Coordinate, y: Coordinate, gate: UOp | None) -> tuple[int, int] | None:
  """Return the end of a tensor; None where coordinates are negative, or where a gate limits something else."""
  if x.first.vmin < 0 or y.first.vmin < 0: return None
  if gate is None: return x.end, y.end
  cut = x.limit(gate)
  if cut is not None: return min(cut, x.end), y.end
  cut = y.limit(gate)
  return None if cut is None else (x.end, min(cut, y.end))

def tensor_boxes(tensor: OperandTensor, length: int, lines: int) -> list[UOp]:
  """Return the TENSOR_BOX nodes, one for each column of swizzle atoms. length: elements of an operand along its
  lines."""
  element = tensor.buffer.dtype
  line = LINE_BYTES // element.itemsize
  box = TensorBox(tensor.dims, (1, tensor.stride), (line, lines))
  x, y = tensor.first
  starts = [UOp(Ops.ADD, dtypes.weakint, (x, number(at))) if at else x for at in range(0, length, line)]
  return [UOp(Ops.TENSOR_BOX, element, (tensor.buffer, start, y), box) for start in starts]
