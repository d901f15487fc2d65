"""Products of matrices and vectors, distances between vectors.

Source of the meanings: PyTorch's documentation.
"""
from __future__ import annotations
from collections.abc import Sequence
import math
import string
from typing import Any

from tinyhw.dtype import dtypes
from tinyhw.errors import ArgumentError, DTypeError, ShapeError
from tinyhw.functional.operands import axis_of, broadcast, checked, common_shape, rank, sizes, want_float
from tinyhw.functional.shapes import cat, part
from tinyhw.methods.base import Handle
from tinyhw.methods.checks import whole
from tinyhw.tensor import Tensor

def _of_axes(what: str, *pairs: tuple[Tensor, int]) -> None:
  first = pairs[0][0]
  for x, n in pairs:
    if checked(what, x).ndim != n: raise ShapeError(f"{what} wants a tensor of {n} axes here, not {x.shape}")
    if x.dtype is not first.dtype: raise DTypeError(f"{what} wants one type, not {first.dtype} and {x.dtype}")

def _inner(what: str, a: int, b: int) -> None:
  if a != b: raise ShapeError(f"{what}: the sizes {a} and {b} of the axes that are summed differ")

def matmul(input: Tensor, other: Tensor) -> Tensor:
  """Return the matrix product, batched and broadcast."""
  a, b = checked("matmul", input), checked("matmul", other)
  if not a.ndim or not b.ndim: raise ShapeError(f"matmul wants axes: the shapes are {a.shape} and {b.shape}")
  if a.dtype is not b.dtype: raise DTypeError(f"matmul wants one type, not {a.dtype} and {b.dtype}")
  _inner("matmul", sizes(a)[-1], sizes(b)[max(b.ndim - 2, 0)])
  if a.ndim > 1 and b.ndim > 1: common_shape(sizes(a)[:-2], sizes(b)[:-2])
  return a.matmul(b)

def mm(input: Tensor, mat2: Tensor) -> Tensor:
  """Return the product of two matrices."""
  _of_axes("mm", (input, 2), (mat2, 2))
  return matmul(input, mat2)

def bmm(input: Tensor, mat2: Tensor) -> Tensor:
  """Return the products of matrices of a batch."""
  _of_axes("bmm", (input, 3), (mat2, 3))
  if sizes(input)[0] != sizes(mat2)[0]: raise ShapeError(f"bmm: batches of {sizes(input)[0]} and {sizes(mat2)[0]}")
  return matmul(input, mat2)

def mv(input: Tensor, vec: Tensor) -> Tensor:
  """Return the product of a matrix and a vector."""
  _of_axes("mv", (input, 2), (vec, 1))
  return matmul(input, vec)

def dot(input: Tensor, other: Tensor) -> Tensor:
  """Return the product of two vectors."""
  _of_axes("dot", (input, 1), (other, 1))
  return matmul(input, other)

def _plus(what: str, input: Tensor, product: Tensor, beta: Any, alpha: Any) -> Tensor:
  if rank(input.dtype) < 2 and (isinstance(beta, float) or isinstance(alpha, float)):
    if what not in ("addbmm", "baddbmm", "addmv"):
      raise DTypeError(f"{what}: alpha and beta are integers for {input.dtype}")
    beta, alpha = int(beta), int(alpha)
  common_shape(sizes(input), sizes(product))
  if common_shape(sizes(input), sizes(product)) != sizes(product):
    raise ShapeError(f"{what}: {input.shape} does not expand to {product.shape}")
  product = product if alpha == 1 else product.mul(alpha)
  return product if beta == 0 else product.add(input if beta == 1 else input.mul(beta))

def addmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
  """Return beta * input + alpha * mat1 @ mat2."""
  return _plus("addmm", input, mm(mat1, mat2), beta, alpha)

def addmv(input: Tensor, mat: Tensor, vec: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
  """Return beta * input + alpha * mat @ vec."""
  return _plus("addmv", input, mv(mat, vec), beta, alpha)

def addr(input: Tensor, vec1: Tensor, vec2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
  """Return beta * input + alpha * the outer product of two vectors. Of bools: whether a product is true."""
  if input.dtype is vec1.dtype is vec2.dtype is dtypes.bool:
    return _plus("addr", input, outer(vec1, vec2), beta, alpha).cast(dtypes.bool)
  return _plus("addr", input, outer(vec1, vec2), beta, alpha)

def addbmm(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
  """Return beta * input + alpha * the sum of a batch of products."""
  return _plus("addbmm", input, bmm(batch1, batch2).sum(0), beta, alpha)

def baddbmm(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
  """Return beta * input + alpha * a batch of products."""
  return _plus("baddbmm", input, bmm(batch1, batch2), beta, alpha)

def outer(input: Tensor, vec2: Tensor) -> Tensor:
  """Return the products of all pairs of elements of two vectors."""
  for x in (input, vec2):
    if checked("outer", x).ndim != 1: raise ShapeError(f"outer wants vectors, not {x.shape}")
  return input.unsqueeze(1).mul(vec2.unsqueeze(0))

ger = outer

def inner(input: Tensor, other: Tensor) -> Tensor:
  """Return the products along the last axes."""
  a, b = checked("inner", input), checked("inner", other)
  if not a.ndim or not b.ndim: return a.mul(b)
  _inner("inner", sizes(a)[-1], sizes(b)[-1])
  return tensordot(a, b, ([-1], [-1]))

def tensordot(a: Tensor, b: Tensor, dims: Any = 2) -> Tensor:
  """Return the sum of products over pairs of axes: the last n of a with the first n of b, or those listed."""
  if isinstance(dims, Handle): dims = dims._self().tolist()
  if isinstance(dims, int):
    n = whole("dims", dims, 0)
    first, second = list(range(a.ndim - n, a.ndim)), list(range(n))
  else: first, second = ([axis_of(x, d) for d in listed] for x, listed in zip((a, b), dims))
  if len(first) != len(second):
    raise ArgumentError(f"tensordot: {len(first)} axes of one and {len(second)} of the other")
  for i, j in zip(first, second):      # an axis of one element stands for as many equal ones
    if 1 in (sizes(a)[i], sizes(b)[j]): a, b = a.sum(i, keepdim=True), b.sum(j, keepdim=True)
    _inner("tensordot", sizes(a)[i], sizes(b)[j])
  left, right = [i for i in range(a.ndim) if i not in first], [i for i in range(b.ndim) if i not in second]
  count = math.prod(sizes(a)[i] for i in first)
  x = a.permute([*left, *first]) if a.ndim else a
  y = b.permute([*second, *right]) if b.ndim else b
  shape = [sizes(a)[i] for i in left], [sizes(b)[i] for i in right]
  found = x.reshape(math.prod(shape[0]), count).matmul(y.reshape(count, math.prod(shape[1])))
  return found.reshape(*shape[0], *shape[1]) if shape[0] or shape[1] else found.reshape(())

def kron(input: Tensor, other: Tensor) -> Tensor:
  """Return the Kronecker product."""
  n = max(input.ndim, other.ndim)
  a, b = ((1,) * (n - x.ndim) + sizes(x) for x in (input, other))
  left = input.reshape([d for pair in zip(a, (1,) * n) for d in pair])
  right = other.reshape([d for pair in zip((1,) * n, b) for d in pair])
  return left.mul(right).reshape([x * y for x, y in zip(a, b)])

def chain_matmul(*matrices: Tensor) -> Tensor:
  """Return the product of several matrices, in the cheapest order."""
  return multi_dot(list(matrices))

def multi_dot(tensors: Sequence[Tensor]) -> Tensor:
  """Return the product of several matrices, in the cheapest order. The first and the last may be vectors."""
  if len(tensors) < 2: raise ArgumentError(f"multi_dot wants two tensors at least, not {len(tensors)}")
  found = list(tensors)
  for i, x in enumerate(found):
    edge = i in (0, len(found) - 1)
    if x.ndim != 2 and not (edge and x.ndim == 1): raise ShapeError(f"multi_dot wants matrices, not {x.shape}")
    if x.dtype is not found[0].dtype: raise DTypeError("multi_dot wants tensors of one type")
  row, column = found[0].ndim == 1, found[-1].ndim == 1
  if row: found[0] = found[0].unsqueeze(0)
  if column: found[-1] = found[-1].unsqueeze(1)
  for x, y in zip(found, found[1:]): _inner("multi_dot", sizes(x)[1], sizes(y)[0])
  result = _multiplied(found)
  if row: result = result.squeeze(0)
  return result.squeeze(-1) if column else result

def _multiplied(factors: list[Tensor]) -> Tensor:
  """Multiply in the order of the fewest products of numbers. Source: Cormen et al., matrix-chain order."""
  lengths = [sizes(factors[0])[0], *[sizes(x)[1] for x in factors]]
  best: dict[tuple[int, int], tuple[int, int]] = {(i, i): (0, i) for i in range(len(factors))}
  for span in range(1, len(factors)):
    for i in range(len(factors) - span):
      j = i + span
      best[i, j] = min((best[i, k][0] + best[k + 1, j][0] + lengths[i] * lengths[k + 1] * lengths[j + 1], k)
                       for k in range(i, j))
  def product(i: int, j: int) -> Tensor:
    if i == j: return factors[i]
    k = best[i, j][1]
    return product(i, k).matmul(product(k + 1, j))
  return product(0, len(factors) - 1)

def cross(input: Tensor, other: Tensor, dim: int | None = None) -> Tensor:
  """Return the cross product along an axis of 3; without dim, the first such axis."""
  if dim is None:
    shape = common_shape(sizes(input), sizes(other))
    dim = next((i for i, d in enumerate(shape) if d == 3), -1)
    if dim < 0: raise ShapeError(f"cross wants an axis of size 3: the shapes are {input.shape} and {other.shape}")
  return linalg_cross(input, other, dim=dim)

def linalg_cross(input: Tensor, other: Tensor, *, dim: int = -1) -> Tensor:
  """Return the cross product along an axis of 3."""
  if input.ndim != other.ndim: raise ShapeError(f"cross wants as many axes: {input.shape} and {other.shape}")
  for given in (input, other):
    if sizes(given)[axis_of(given, dim)] != 3:
      raise ShapeError(f"cross wants an axis of size 3, not axis {dim} of {given.shape}")
  a, b = broadcast(input, other)
  axis = axis_of(a, dim)
  x, y = ([part(t, axis, i, i + 1) for i in range(3)] for t in (a, b))
  return cat([x[i].mul(y[j]).sub(x[j].mul(y[i])) for i, j in ((1, 2), (2, 0), (0, 1))], axis)

def vecdot(x: Tensor, y: Tensor, *, dim: int = -1) -> Tensor:
  """Return the products of vectors along an axis."""
  if x.dtype is not y.dtype: raise DTypeError(f"vecdot wants one type, not {x.dtype} and {y.dtype}")
  a, b = broadcast(x, y)
  if a.holds_complex: a = a.conj()   # type: ignore[attr-defined]
  return a.mul(b).sum(axis_of(a, dim))

# ***** distances *****

def cdist(x1: Tensor, x2: Tensor, p: float = 2.0, compute_mode: Any = None) -> Tensor:
  """Return the p-norm distances of all pairs of rows, batched."""
  for x in (x1, x2):
    want_float("cdist", checked("cdist", x))
    if x.ndim < 2: raise ShapeError(f"cdist wants matrices, not {x.shape}")
  if p < 0: raise ArgumentError(f"p is {p}; it is not negative")
  _inner("cdist", sizes(x1)[-1], sizes(x2)[-1])
  common_shape(sizes(x1)[:-2], sizes(x2)[:-2])
  return _lengths(x1.unsqueeze(-2).sub(x2.unsqueeze(-3)), float(p))

def _lengths(x: Tensor, p: float) -> Tensor:
  """Return the p-norms of the last axis. Their gradient at 0 is 0."""
  if not sizes(x)[-1]: return x.sum(-1)
  size = x.abs()
  if p == 0: return size.ne(0).cast(x.dtype).sum(-1)
  if p == 1: return size.sum(-1)
  if math.isinf(p): return size.max(-1)
  total = size.square().sum(-1) if p == 2 else size.pow(p).sum(-1)
  zero = total.eq(0)
  safe = zero.where(1, total)
  return zero.where(0, safe.sqrt() if p == 2 else safe.pow(1 / p))

def pdist(input: Tensor, p: float = 2.0) -> Tensor:
  """Return the p-norm distances of all pairs of different rows, as a vector."""
  if checked("pdist", input).ndim != 2: raise ShapeError(f"pdist wants a matrix, not {input.shape}")
  if p < 0: raise ArgumentError(f"p is {p}; it is not negative")
  n = sizes(input)[0]
  pairs = [(i, j) for i in range(n) for j in range(i + 1, n)]
  if not pairs: return Tensor.empty(0, dtype=input.dtype)
  return _lengths(input[[i for i, _ in pairs]].sub(input[[j for _, j in pairs]]), float(p))

def pairwise_distance(x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Tensor:
  """Return the p-norm of x1 - x2 + eps along the last axis."""
  found = _lengths(x1.sub(x2).add(eps), float(p))
  return found.unsqueeze(-1) if keepdim else found

def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
  """Return the cosine of the angle of vectors along an axis. Each norm counts as eps at least."""
  a, b = broadcast(x1, x2)
  want_float("cosine_similarity", a, b)
  axis = axis_of(a, dim)
  norms = [(x.square().sum(axis, keepdim=True)).sqrt().maximum(eps) for x in (a, b)]
  return a.div(norms[0]).mul(b.div(norms[1])).sum(axis) if a.ndim else a.div(norms[0]).mul(b.div(norms[1]))

def renorm(input: Tensor, p: float, dim: int, maxnorm: float) -> Tensor:
  """Scale the parts of an axis whose p-norm exceeds maxnorm down to it."""
  if p <= 0: raise ArgumentError(f"p is {p}; it must be positive")
  if maxnorm < 0: raise ArgumentError(f"maxnorm is {maxnorm}; it is not negative")
  if checked("renorm", input).ndim < 2: raise ShapeError(f"renorm wants two axes at least, not {input.shape}")
  axis = axis_of(input, dim)
  rest = tuple([i for i in range(input.ndim) if i != axis])
  size = input.abs()
  norm = size.max(rest, keepdim=True) if math.isinf(p) else size.pow(p).sum(rest, keepdim=True).pow(1 / p)
  return input.mul(norm.gt(maxnorm).where(norm.add(1e-7).reciprocal().mul(maxnorm), 1))

def einsum(equation: Any, *operands: Any) -> Tensor:
  """Return the sum of products that an equation names, or lists of axes after each operand and for the result."""
  if not isinstance(equation, str): equation, operands = _equation((equation, *operands))
  found = operands[0] if len(operands) == 1 and isinstance(operands[0], (tuple, list)) else operands
  return Tensor.einsum(equation, *found)

def _equation(parts: tuple[Any, ...]) -> tuple[str, tuple[Any, ...]]:
  """Return the equation and the operands of x, [0, 1], y, [1, 2], [0, 2]."""
  def letters(axes: Any) -> str:
    if not isinstance(axes, (list, tuple)): raise ArgumentError(f"einsum wants a list of axes, not {axes!r:.60}")
    bad = next((k for k in axes if k is not ... and (not isinstance(k, int) or not 0 <= k < 52)), None)
    if bad is not None: raise ArgumentError(f"einsum: axes are numbers from 0 to 51, or ..., not {bad!r}")
    return "".join(["..." if k is ... else string.ascii_letters[k] for k in axes])
  count = len(parts) // 2
  equation = ",".join([letters(axes) for axes in parts[1:2 * count:2]])
  return equation + (f"->{letters(parts[-1])}" if len(parts) % 2 else ""), parts[:2 * count:2]

def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
  """Return input1^T weight[o] input2 + bias[o] for each output o."""
  for x, d in ((input1, sizes(weight)[1]), (input2, sizes(weight)[2])): _inner("bilinear", sizes(x)[-1], d)
  if sizes(input1)[:-1] != sizes(input2)[:-1]: raise ShapeError(f"bilinear: {input1.shape} and {input2.shape}")
  found = Tensor.einsum("na,oab,nb->no", input1.reshape(-1, sizes(input1)[-1]), weight,
                        input2.reshape(-1, sizes(input2)[-1]))
  found = found.reshape(*sizes(input1)[:-1], sizes(weight)[0])
  return found if bias is None else found.add(bias)

def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
  """Return input @ weight^T + bias."""
  across = weight if weight.ndim == 1 else weight.transpose(0, 1)
  found = matmul(input, across)      # it checks the operands
  if bias is None: return found
  return found.add(bias) if weight.ndim == 1 else input.linear(across, bias)
