"""Tensors in files: the bytes of a file that a node needs, and the movements to apply to the copy.

A tensor on DISK is a chain of movements over a BUFFER. `resolve` goes up the chain as long as the result is contiguous
in the file. The rest of the chain (a transpose, every second column) is applied to the copy. Nothing is computed on
DISK.
"""
from __future__ import annotations
import math

from tinyhw.device import Buffer, DeviceLike
from tinyhw.dtype import DType, dtypes
from tinyhw.engine.memory.buffers import buffer_of, new_buffer
from tinyhw.errors import DeviceError, ShapeError
from tinyhw.named_tuple import NamedTuple
from tinyhw.uop.enums import GroupOp, Ops
from tinyhw.uop.ops import UOp, sint, to_indices

_TRANSPARENT = frozenset({Ops.CONTIGUOUS, Ops.CONTIGUOUS_BACKWARD, Ops.DETACH})

class Piece(NamedTuple):
  """`size` elements of a BUFFER from element `begin` on, their shape, and the movements that follow, innermost
  first."""
  node: UOp
  begin: int
  size: int
  shape: tuple[sint, ...]
  rest: list[UOp]

  def on(self, storage: UOp) -> UOp:
    """Return the value of the chain, given the elements of the piece as a vector."""
    value = UOp(Ops.RESHAPE, storage.dtype, (storage, *to_indices(self.shape)))
    for movement in self.rest:
      value = UOp(movement.op, storage.dtype, (value, *movement.src[1:]), movement.arg, movement.tag)
    return value

def refusal(device: DeviceLike | None, what: str) -> DeviceError:
  """Return the error for an operation that only computing devices support."""
  return DeviceError(f"{what} cannot run on {device}, which keeps a file and computes nothing; move the tensor first, "
                     f"with .to(None) or .to(\"CPU\")")

def resolve(u: UOp) -> Piece:
  """Return the piece of its file that a node on DISK needs. Raises DeviceError if the node computes something."""
  chain: list[UOp] = []
  while u.op is not Ops.BUFFER:
    if u.op in GroupOp.Movement: chain.append(u)
    elif u.op not in _TRANSPARENT: raise refusal(u.device, u.op.name)
    u = u.src[0]
  piece = Piece(u, 0, u.arg[2], u.shape, chain[::-1])
  while piece.rest:
    movement = piece.rest[0]
    if movement.op is Ops.RESHAPE: piece = piece._replace(shape=movement.shape, rest=piece.rest[1:])
    else:
      shrunk = _shrunk(piece, movement) if movement.op is Ops.SHRINK else None
      if shrunk is None: break
      piece = shrunk
  return piece

def _shrunk(piece: Piece, movement: UOp) -> Piece | None:
  """Return the contiguous part that a SHRINK selects, and the rest of the SHRINK. None if there is no such part.

  Contiguous are single indices along the leading axes, and a range of the next axis.
  """
  bounds = [(b, e, n) for (b, e), n in zip(movement.pairs, piece.shape)]
  if not all(isinstance(x, int) for bound in bounds for x in bound): return None
  fixed: list[tuple[int, int, int]] = [(int(b), int(e), int(n)) for b, e, n in bounds]
  axis = next((k for k, (b, e, _) in enumerate(fixed) if e - b != 1), len(fixed) - 1)
  stride, begin = 1, 0
  for k in reversed(range(len(fixed))):
    if k <= axis: begin += fixed[k][0] * stride
    stride *= fixed[k][2]
  shape = [e - b for b, e, _ in fixed[:axis + 1]] + [n for _, _, n in fixed[axis + 1:]]
  size = math.prod(shape)
  if all(e - b == n for b, e, n in fixed[axis + 1:]): rest = piece.rest[1:]
  elif size == piece.size: return None
  else:
    left = [(0, d) for d in shape[:axis + 1]] + [(b, e) for b, e, _ in fixed[axis + 1:]]
    rest = [movement.replace(src=(movement.src[0], *to_indices(tuple([x for pair in left for x in pair])))),
            *piece.rest[1:]]
  return Piece(piece.node, piece.begin + begin, size, tuple(shape), rest)

def view_of(piece: Piece) -> Buffer:
  """Return the piece as a Buffer, a view of the whole file."""
  whole = buffer_of(piece.node)
  offset = piece.begin * piece.node.dtype.itemsize
  return whole.view(piece.size, piece.node.dtype, offset)  # type: ignore[no-any-return]  # a Buffer

def piece_node(piece: Piece) -> UOp:
  """Return the piece as a BUFFER node. Bools become bytes, as they are in the file."""
  storage = view_of(piece)
  if storage.dtype is dtypes.bool: storage = storage.view(storage.size, dtypes.uint8, 0)
  return new_buffer(piece.node.arg[1], piece.size, storage.dtype, storage=storage)

def truth(value: UOp) -> UOp:
  """Convert bytes of a file to bools. Any byte but 0 is true, while devices know bools of 0 and 1 only."""
  zero = UOp(Ops.RESHAPE, value.dtype, (UOp.const(value.dtype, 0), *to_indices((1,) * len(value.shape))))
  return UOp(Ops.CMPNE, dtypes.bool, (value, UOp(Ops.EXPAND, value.dtype, (zero, *to_indices(value.shape)))))

def reread(u: UOp, dtype: DType) -> UOp:
  """Return the bytes of a piece as elements of another type.

  Raises DeviceError if the piece is not contiguous, ShapeError if the last axis has no whole number of new elements.
  """
  piece = resolve(u)
  if piece.rest: raise refusal(u.device, "a bitcast of what is not in one piece")
  old = piece.node.dtype
  shape = [int(d) for d in piece.shape]
  if old.itemsize != dtype.itemsize:
    if not shape or shape[-1] * old.itemsize % dtype.itemsize:
      raise ShapeError(f"cannot bitcast a tensor of {old} and shape {tuple(shape)} to {dtype}: the bytes of the last "
                       f"axis are no whole number of "
                       "elements")
    shape[-1] = shape[-1] * old.itemsize // dtype.itemsize
  size = piece.size * old.itemsize // dtype.itemsize
  # This lets the file know of the view.
  storage = buffer_of(piece.node).view(size, dtype, piece.begin * old.itemsize).ensure_allocated()
  node = new_buffer(piece.node.arg[1], size, dtype, storage=storage)
  return UOp(Ops.RESHAPE, dtype, (node, *to_indices(tuple(shape))))
