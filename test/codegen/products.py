"""Kernels that consist of products, for the tests of matrix units: of matrices, convolutions, and weight gradients."""
from __future__ import annotations

from test.codegen.kernels import axis
from tinyhw.dtype import DType, dtypes
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp

F32 = dtypes.float32

def product(m: int, n: int, k: int, operand: DType, result: DType, transposed: bool = False,
            turned: bool = False) -> UOp:
  """Return out[i, j] = sum over x of a[i, x] * b[x, j].

  transposed: b is contiguous along x in memory. turned: a is contiguous along i.
  """
  out, a, b = UOp.param(0, result, m * n), UOp.param(1, operand, m * k), UOp.param(2, operand, k * n)
  i, j, x = axis(m, 0), axis(n, 1), axis(k, 2, "REDUCE")
  left, right = a.index(x * m + i if turned else i * k + x).load(), b.index(j * k + x if transposed
                                                                            else x * n + j).load()
  return UOp.sink(out.index(i * n + j).store((left.cast(result) * right.cast(result)).reduce(Ops.ADD, x), i, j))

def padded(image: UOp, plane: UOp, row: UOp, column: UOp, size: int, pad: int) -> UOp:
  """Return an element of square images with sides of `size` elements: 0 outside, where `pad` allows an outside."""
  place = image.index(plane * size * size + row * size + column)
  return place.load((row >= 0) & (row < size) & (column >= 0) & (column < size)) if pad else place.load()

def convolution(batch: int, channels: int, size: int, kernels: int, width: int, pad: int = 0) -> UOp:
  """Return out[b, o, y, x] = sum over c, i, j of w[o, c, i, j] * a[b, c, y + i - pad, x + j - pad], 0 outside."""
  places = size + 2 * pad - width + 1
  out = UOp.param(0, F32, batch * kernels * places * places)
  a, w = UOp.param(1, F32, batch * channels * size * size), UOp.param(2, F32, kernels * channels * width * width)
  b, o, y, x = axis(batch, 0), axis(kernels, 1), axis(places, 2), axis(places, 3)
  c, i, j = axis(channels, 4, "REDUCE"), axis(width, 5, "REDUCE"), axis(width, 6, "REDUCE")
  value = padded(a, b * channels + c, y + i - pad, x + j - pad, size, pad)
  total = (value * w.index(((o * channels + c) * width + i) * width + j).load()).reduce(Ops.ADD, c, i, j)
  return UOp.sink(out.index(((b * kernels + o) * places + y) * places + x).store(total, b, o, y, x))

def gradient(batch: int, channels: int, size: int, kernels: int, width: int, pad: int = 0) -> UOp:
  """Return out[o, c, i, j] = sum over b, y, x of g[b, o, y, x] * a[b, c, y + i - pad, x + j - pad], 0 outside."""
  places = size + 2 * pad - width + 1
  out = UOp.param(0, F32, kernels * channels * width * width)
  a, g = UOp.param(1, F32, batch * channels * size * size), UOp.param(2, F32, batch * kernels * places * places)
  o, c, i, j = axis(kernels, 0), axis(channels, 1), axis(width, 2), axis(width, 3)
  b, y, x = axis(batch, 4, "REDUCE"), axis(places, 5, "REDUCE"), axis(places, 6, "REDUCE")
  value = padded(a, b * channels + c, y + i - pad, x + j - pad, size, pad)
  total = (value * g.index(((b * kernels + o) * places + y) * places + x).load()).reduce(Ops.ADD, b, y, x)
  return UOp.sink(out.index(((o * channels + c) * width + i) * width + j).store(total, o, c, i, j))

def halved(kernel: UOp) -> UOp:
  """Return a kernel whose operands are float16 and whose sum is float32."""
  changes: dict[UOp, UOp] = {}
  for u in kernel.toposort():
    src = tuple(changes[s] for s in u.src)
    if u.op is Ops.PARAM and u.arg[0] > 0: changes[u] = UOp.param(u.arg[0], dtypes.float16, u.arg[1])
    elif u.op is Ops.INDEX: changes[u] = UOp(Ops.INDEX, src[0].dtype, src)
    elif u.op is Ops.LOAD:
      rest = src[1:] and (src[1], UOp.const(dtypes.float16, 0))
      changes[u] = UOp(Ops.LOAD, dtypes.float16, (src[0], *rest)).cast(dtypes.float32)
    else: changes[u] = u.replace(src=src)
  return changes[kernel]
