"""Quantized matrices in the order in which products read them, and their products with vectors in integers.

ROWS rows are side by side: a vector load has the same four elements of each of them, so that a lane computes a row, and
no sum crosses lanes. Codes of 3, 5 and 6 bits are split into planes of 4, 2 and 1 bits. A word of a plane has four
bytes, for four adjacent elements. Each byte has a field for each of 8 // bits such quads:

    plane of 4 bits, word 0:   byte 0: elements 0, 4   byte 1: elements 1, 5   byte 2: 2, 6   byte 3: 3, 7

So a shift and a mask give the codes of four elements, for every type. A product rounds the vector to 8 bits first, with
a scale for 32 elements. Then all sums within a group are sums of integers, and the scales enter once for each group:

    y = sum over blocks of 32:   d * scale   * sum over groups of factor * (sum(code * q) - offset * sum(q))
                               - d * minimum * sum over groups of shift * sum(q)                   x is about d * q

Source: ggml's products of quantized matrices, which round the vector in the same way.
"""
from __future__ import annotations
from collections.abc import Callable
from functools import reduce
import math
from operator import add

from tinyhw.dtype import dtypes
from tinyhw.llm.blocks import GgmlType, Parts, fields
from tinyhw.tensor import Tensor

ROWS = 16     # side by side: a register of int32 on AVX-512, two of them on AVX2
BLOCK = 32    # elements of a vector that share a scale
QUADS = BLOCK // 4
LEAST_SCALE = 2.0 ** -126   # so zeros are divided by a number
# bits of a code -> bits of its planes, lowest first
PLANES = {2: (2,), 3: (2, 1), 4: (4,), 5: (4, 1), 6: (4, 2), 8: (8,)}

class Rounded:
  """Vectors in 8 bits, for several products: x is about scale * q. x: (..., in_features).

  q: int8, (..., blocks, QUADS, 4). scale: float32, (..., blocks). The largest element of a block becomes 127 or -127,
  unless all are zero or subnormal.
  """
  def __init__(self, x: Tensor):
    blocks = x.reshape(*x.shape[:-1], x.shape[-1] // BLOCK, BLOCK)
    self.scale = (blocks.abs().max(-1) / 127).maximum(LEAST_SCALE).contiguous()
    q = (blocks / self.scale.unsqueeze(-1)).round().cast(dtypes.int8).contiguous()
    self.q = q.reshape(*q.shape[:-1], QUADS, 4)
    self._made: dict[tuple[int, int, int], tuple[list[Tensor], list[Tensor], Tensor]] = {}

  def parts(self, kind: GgmlType) -> tuple[list[Tensor], list[Tensor], Tensor]:
    """Return the quads of each block, the sums of its groups (both int32), and the scales: (..., 1, blocks of the type,
    blocks of 32 in it, 1), quads with a last axis of 4. The sums are those that a type needs: times its offset, if it
    has one."""
    if (key := (kind.length, kind.group, kind.offset)) not in self._made: self._made[key] = self._parts(kind)
    return self._made[key]

  def _parts(self, kind: GgmlType) -> tuple[list[Tensor], list[Tensor], Tensor]:
    shape = *self.scale.shape[:-1], 1, -1, kind.length // BLOCK
    sums = self.q.reshape(*self.q.shape[:-2], BLOCK // kind.group, kind.group).cast(dtypes.int32).sum(-1)
    sums = (sums * kind.offset if kind.offset else sums).contiguous()
    quads = self.q.cast(dtypes.int32).reshape(*shape, 1, QUADS, 4)
    return ([quads[..., k, :] for k in range(QUADS)],
            [sums[..., g].reshape(*shape, 1) for g in range(BLOCK // kind.group)], self.scale.reshape(*shape, 1))

def is_packable(shape: tuple[int, ...], kind: GgmlType) -> bool:
  """Can elements of this type and shape be packed? Codes of a table are not numbers, and rows must be whole blocks."""
  return (kind.split is not None and kind.table is None and len(shape) > 1 and math.prod(shape) > 0
          and shape[-1] % kind.length == 0)

class PackedMatrix:
  """Matrices of a quantized type. shape: (..., out_features, in_features).

  planes: uint8, (matrices, row groups, blocks of the type, blocks of 32 in it, words, ROWS, 4). The numbers of Parts:
  (matrices, row groups, n of a row, ROWS). Rows of zeros fill the last row group.
  """
  def __init__(self, data: Tensor, shape: tuple[int, ...], kind: GgmlType):
    """Pack elements. data: uint8, the blocks of all rows, one after another."""
    assert kind.split is not None and is_packable(shape, kind)
    self.shape, self.kind = shape, kind
    parts = kind.split(data.to(None).contiguous().realize().reshape(-1, kind.size))
    codes = self._side_by_side(parts.codes.reshape(-1, 4))
    self.planes: list[Tensor] = []
    for bits in PLANES[kind.bits]:
      self.planes.append(self._plane(codes, bits, sum(PLANES[kind.bits][:len(self.planes)])).contiguous().realize())
    def numbers(t: Tensor) -> Tensor: return self._side_by_side(t.flatten()).contiguous().realize()
    self.scale = numbers(parts.scale)
    self.factors, self.minimum, self.shifts = (None if t is None else numbers(t) for t in parts[2:])

  def _side_by_side(self, t: Tensor) -> Tensor:
    """Put ROWS rows side by side: (numbers of all rows, ...) -> (matrices, row groups, n of a row, ROWS, ...)."""
    tail, out = t.shape[1:], self.shape[-2]
    t = t.reshape(math.prod(self.shape[:-2]), out, -1, *tail)
    t = t.pad((None, (0, -out % ROWS), *[None] * (t.ndim - 2)))
    return t.reshape(t.shape[0], -1, ROWS, *t.shape[2:]).permute(0, 1, 3, 2, *range(4, t.ndim + 1))

  def _plane(self, codes: Tensor, bits: int, below: int) -> Tensor:
    """Return the plane of some bits of codes, which have `below` lower bits."""
    fields, per_block = 8 // bits, self.kind.length // BLOCK
    t = codes.rshift(below).bitwise_and((1 << bits) - 1)
    t = t.reshape(*codes.shape[:2], -1, per_block, QUADS // fields, fields, ROWS, 4)
    places = Tensor.arange(0, 8, bits, dtype=dtypes.uint8, device=codes.device).reshape(fields, 1, 1)
    return t.lshift(places).sum(-3, dtype=dtypes.uint8)

  # ***** elements *****

  def tensor(self) -> Tensor:
    """Return all elements, as float32."""
    matrices, (out, size) = math.prod(self.shape[:-2]), self.shape[-2:]
    return self._elements(lambda t: t).reshape(matrices, -1, size)[:, :out].reshape(self.shape)

  def rows(self, index: Tensor) -> Tensor:
    """Return some rows of one matrix, as float32: (*index.shape, in_features). Only their bytes are read."""
    return self._elements(lambda t: t[index.flatten()]).reshape(*index.shape, self.shape[-1])

  def _elements(self, choose: Callable[[Tensor], Tensor]) -> Tensor:
    """Return the elements of chosen rows: (n, in_features). choose: takes the parts of these rows."""
    def by_row(t: Tensor) -> Tensor:
      axis = t.ndim - (2 if t.ndim > 4 else 1)   # that of ROWS
      return choose(t.permute(0, 1, axis, *[k for k in range(2, t.ndim) if k != axis]).flatten(0, 2))
    codes, below = None, 0
    for plane, bits in zip(self.planes, PLANES[self.kind.bits]):
      t = by_row(plane)
      part = fields(t, bits, -2).lshift(below).reshape(t.shape[0], self.shape[-1] // self.kind.length, self.kind.length)
      codes, below = part if codes is None else codes.bitwise_or(part), below + bits
    assert codes is not None
    n, blocks = codes.shape[0], codes.shape[0] * codes.shape[1]
    def numbers(t: Tensor | None, count: int) -> Tensor | None:
      return None if t is None else by_row(t).reshape(blocks, count)
    groups = self.kind.length // self.kind.group
    parts = Parts(codes.flatten(0, 1), by_row(self.scale).reshape(blocks, 1), numbers(self.factors, groups),
                  numbers(self.minimum, 1), numbers(self.shifts, groups))
    return self.kind.elements(parts).reshape(n, self.shape[-1])

  # ***** products *****

  def __matmul__(self, x: Rounded) -> Tensor:
    """Return the products of one matrix with vectors: (n, out_features). x: (n, in_features)."""
    return self.product(x, lambda t: t)

  def product(self, x: Rounded, choose: Callable[[Tensor], Tensor]) -> Tensor:
    """Return the products of chosen matrices with vectors: (..., out_features).

    choose: takes the part of a chosen matrix, (matrices, ...) -> (..., ...), with the leading axes of x.
    """
    quads, sums, scale = x.parts(self.kind)
    shape = self.kind.length // BLOCK, len(sums), ROWS
    def dot(g: int) -> Tensor:
      """Return the sums of group g of each block, (..., row groups, blocks of the type, blocks in it, ROWS)."""
      numbers = range(g * QUADS // len(sums), (g + 1) * QUADS // len(sums))
      found = reduce(add, [self._code(k, choose).cast(dtypes.int32) * quads[k] for k in numbers]).sum(-1)
      return found - sums[g] if self.kind.offset else found
    def weighted(integers: list[Tensor], numbers: Tensor | None, t: Tensor) -> Tensor:
      """Return the sum of a block's integers, times numbers of their groups, times a float of the block."""
      terms = [x.cast(dtypes.float32) for x in integers]
      if numbers is not None:
        n = choose(numbers)
        n = n.reshape(*n.shape[:-2], -1, *shape).cast(dtypes.float32)
        terms = [x * n[..., g, :] for g, x in enumerate(terms)]
      return reduce(add, terms) * choose(t).unsqueeze(-2).cast(dtypes.float32)
    value = weighted([dot(g) for g in range(len(sums))], self.factors, self.scale)
    if self.minimum is not None: value = value - weighted(sums, self.shifts, self.minimum)
    return (value * scale).sum((-3, -2)).flatten(-2)[..., :self.shape[-2]]

  def _code(self, quad: int, choose: Callable[[Tensor], Tensor]) -> Tensor:
    """Return the codes of a quad of each block: uint8, (..., blocks of the type, blocks in it, ROWS, 4)."""
    code, below = None, 0
    for plane, bits in zip(self.planes, PLANES[self.kind.bits]):
      word, field = divmod(quad, 8 // bits)
      t = choose(plane[..., word, :, :])
      if bits < 8: t = t.rshift(bits * field).bitwise_and((1 << bits) - 1)
      code, below = t if code is None else code.bitwise_or(t.lshift(below)), below + bits
    assert code is not None
    return code
