"""Products of matrices: matmul, linear, einsum, attention, and iterations that use them.

A product is written as broadcast, multiply and sum. The scheduler makes one kernel of it. Types narrower than 32 bits
are widened to 32 bits before they are multiplied, so products and sums are exact in float32's range, and rounded once.
The result has the type to which the operands promote. Integers wrap to it. For bools the result says whether any
product is true. `dtype=` names both the type to compute in and the type of the result.
"""
from __future__ import annotations
from collections.abc import Callable, Sequence
import math
from typing import TYPE_CHECKING, Any

from tinyhw.dtype import DTypeLike, dtypes, least_upper_dtype, least_upper_float, to_dtype
from tinyhw.errors import ArgumentError, ShapeError
from tinyhw.methods.base import Handle, check_devices, complex_room, is_complex
from tinyhw.methods.checks import flag, function, is_number, real, whole
from tinyhw.methods.graph import graph
from tinyhw.methods.pointwise.casts import converted
from tinyhw.methods.random.random import Random
from tinyhw.trace import of_one_line
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp, sint
if TYPE_CHECKING: from tinyhw.tensor import Tensor

class Matmul(Random):
  """Products of matrices, and methods that use them."""
  __slots__ = ()

  def dot(self, w: Any, dtype: DTypeLike | None = None) -> Tensor:
    """Sum the products over the last axis of this tensor and the second last axis of w (its only one if it is a
    vector). Leading axes broadcast.

    >>> Tensor([1.0, 2.0]).dot(Tensor([3.0, 4.0])).item()
    11.0
    """
    other = self._tensor(w)
    a, b = self.uop, other.uop
    check_devices("matmul", a, b)
    if not a.shape or not b.shape:
      raise ShapeError(f"cannot matmul {graph.show(a.shape)} and {graph.show(b.shape)}: both need an axis; use * for "
                       f"numbers")
    inner = -2 if len(b.shape) > 1 else -1
    if not graph.equal(a.shape[-1], b.shape[inner]):
      raise ShapeError(f"cannot matmul {graph.show(a.shape)} and {graph.show(b.shape)}: the last axis of the first "
                       f"must equal axis {inner} of the "
                       "second; transpose one of them")
    out = least_upper_dtype(a.dtype, b.dtype)
    wide = to_dtype(dtype) if dtype is not None else graph.accumulator(out)
    a, b = graph.cast(a, wide), graph.cast(b, wide)
    if len(b.shape) > 1:
      b = graph.transpose(b, len(b.shape) - 2, len(b.shape) - 1)
      if len(a.shape) > 1: a, b = _between(a), graph.reshape(b, (*b.shape[:-2], 1, *b.shape[-2:]))
    shape = graph.broadcast_shape("matmul", a.shape, b.shape)
    product = graph.mul(graph.broadcast(a, shape), graph.broadcast(b, shape))
    result = graph.fold(product, Ops.ADD, (len(shape) - 1,))
    return self._new(converted(result, out) if dtype is None else result)

  def matmul(self, x: Any, reverse: bool = False, dtype: DTypeLike | None = None) -> Tensor:
    """Return self @ x.

    >>> Tensor([[1, 2], [3, 4]]).matmul(Tensor([[0, 1], [1, 0]])).tolist()
    [[2, 1], [4, 3]]
    """
    return self._tensor(x).dot(self, dtype) if reverse else self.dot(x, dtype)

  def __matmul__(self, x: Any) -> Tensor: return self.dot(x)
  def __rmatmul__(self, x: Any) -> Tensor: return self._tensor(x).dot(self)
  def __imatmul__(self, x: Any) -> Tensor: return self.assign(self.dot(x))

  def linear(self, weight: Tensor, bias: Tensor | None = None, dtype: DTypeLike | None = None) -> Tensor:
    """Return self @ weight + bias. A weight with one axis multiplies elementwise. dtype: the type to compute in.

    >>> Tensor([[1.0, 2.0]]).linear(Tensor([[1.0], [10.0]]), Tensor([0.5])).tolist()
    [[21.5]]
    """
    self._operand("linear", weight)
    if dtype is not None:
      plain_bias = bias is None or is_number(bias)
      return self.cast(dtype).linear(weight.cast(dtype), bias if plain_bias else self._tensor(bias).cast(dtype))
    if isinstance(bias, Handle) and weight.ndim > 1 and bias.dtype is self.dtype is weight.dtype:
      wide = graph.accumulator(self.dtype)      # so that results of 16 bits are rounded once
      if dtypes.is_float(wide) and wide is not self.dtype:
        return self.dot(weight, wide).add(bias.cast(wide)).cast(self.dtype)
    x = self.mul(weight) if weight.ndim == 1 else self.dot(weight)
    return x if bias is None else x.add(bias)

  def sequential(self, ll: Sequence[Callable[[Tensor], Tensor]]) -> Tensor:
    """Apply functions one after the other to this tensor.

    >>> Tensor([-1.0, 2.0]).sequential([Tensor.relu, lambda x: x + 1]).tolist()
    [1.0, 3.0]
    """
    if not isinstance(ll, (list, tuple)): raise ArgumentError(f"sequential wants a list of functions, not {ll!r}")
    x = self._self()
    for f in ll: x = function("each item of sequential", f)(x)
    return x

  @classmethod
  def einsum(cls, formula: str, *operands: Any, dtype: DTypeLike | None = None) -> Tensor:
    """Compute an Einstein sum: "ij,jk->ik". A letter that occurs twice in one operand takes the diagonal. "..."
    broadcasts. Without "->", letters that occur once stay.

    The result has the type to which the operands promote, even for one operand, where sum() would widen integers.
    dtype: another type.

    >>> Tensor.einsum("ij,jk->ik", Tensor([[1, 2], [3, 4]]), Tensor([[1], [1]])).tolist()
    [[3], [7]]
    """
    tensors = [x for item in operands for x in (item if isinstance(item, (list, tuple)) else (item,))]
    if not isinstance(formula, str):
      raise ArgumentError(f"einsum wants a formula such as 'ij,jk->ik' first, not {formula!r}")
    text = formula.replace(" ", "")
    sides = text.split("->")
    inputs = sides[0].split(",")
    for x in tensors:
      if not isinstance(x, Handle): raise ArgumentError(f"einsum wants Tensors after the formula, not {x!r}")
    if any([is_complex(x) for x in tensors]): return complex_room().einsum(formula, tensors)  # type: ignore[no-any-return]
    if len(inputs) != len(tensors):
      raise ArgumentError(f"einsum {formula!r} has {len(inputs)} operands, and {len(tensors)} were given")
    dots = [x.ndim - len(names.replace("...", "")) if "..." in names else 0 for names, x in zip(inputs, tensors)]
    most = max(dots)
    inputs = [_spell(names, n, most) for names, n in zip(inputs, dots)]
    if len(sides) == 2: output = _spell(sides[1], most, most)
    else:
      every = "".join(inputs)
      output = _spell("...", most,
                      most) + "".join(sorted(c for c in set(every) if every.count(c) == 1 and not c.isdigit()))
    for names, x in zip(inputs, tensors):
      if len(names) != x.ndim: raise ShapeError(f"einsum {formula!r}: {names!r} does not fit {graph.show(x.shape)}")
    if len(set(output)) != len(output) or not set(output) <= set("".join(inputs)):
      raise ArgumentError(f"einsum {formula!r}: the result's axes must be named once each, in an operand")
    order = output + "".join(sorted(set("".join(inputs)) - set(output)))
    factors = [_aligned(x, names, order) for names, x in zip(inputs, tensors)]
    axes = tuple(range(len(output), len(order)))
    out = least_upper_dtype(*(x.dtype for x in factors)) if dtype is None else to_dtype(dtype)
    result = factors[0].cast(graph.accumulator(out))
    for x in factors[1:]: result = result.mul(x.cast(result.dtype))
    result = result.sum(axes, dtype=result.dtype) if axes else result
    return result.cast(out)

  @of_one_line
  def scaled_dot_product_attention(self, key: Tensor, value: Tensor, attn_mask: Tensor | None = None,
                                   dropout_p: float = 0.0,
                                   is_causal: bool = False, enable_gqa: bool = False) -> Tensor:
    """Return softmax(q k^T / sqrt(d) + mask) v. q: (..., T, d)  k: (..., S, d)  v: (..., S, e)  ->  (..., T, e).

    attn_mask: bool (true: may attend) or numbers to add. A row that may attend to nothing gives zeros. is_causal: row i
    sees columns up to i. enable_gqa: k and v have fewer heads (axis -3), and a group of query heads uses each of them.
    Source: Vaswani et al. 2017.

    >>> q, k, v = Tensor.ones(1, 2, 4), Tensor.ones(1, 3, 4), Tensor.arange(3).reshape(1, 3, 1).float()
    >>> q.scaled_dot_product_attention(k, v).realize()
    <Tensor (1, 2, 1) float32 on CPU, realized:
     [[[1.0],
       [1.0]]]>
    """
    for x in (self, self._operand("attention", key), self._operand("attention", value)):
      if x.ndim < 2:
        raise ShapeError(f"attention wants (..., T, d), and one of query, key and value has shape "
                         f"{graph.show(x.shape)}")
    is_causal = flag("is_causal", is_causal)
    if is_causal and attn_mask is not None: raise ArgumentError("give attn_mask or is_causal, not both")
    if flag("enable_gqa", enable_gqa):
      groups = _heads_per_key(self._self(), key, value)
      key, value = key.repeat_interleave(groups, dim=-3), value.repeat_interleave(groups, dim=-3)
    wide = graph.accumulator(least_upper_dtype(self.dtype, key.dtype))
    scale = 1 / math.sqrt(max(int(self.shape[-1]), 1))
    if wide is self.dtype or math.frexp(scale)[0] == 0.5:
      scores = self.mul(scale).matmul(key.transpose(-2, -1), dtype=wide)
    else: scores = self.matmul(key.transpose(-2, -1), dtype=wide).mul(scale)      # a narrow query would be rounded
    if is_causal:
      u = scores.uop
      later = graph.compare(Ops.CMPLT, graph.positions(u, scores.ndim - 2), graph.positions(u, scores.ndim - 1))
      scores = self._new(graph.where(later, graph.like(u, -math.inf), u))
    elif attn_mask is not None:
      self._operand("attention's mask", attn_mask)
      scores = attn_mask.where(scores, -math.inf) if attn_mask.dtype is dtypes.bool else scores.add(attn_mask)
    weights = scores.softmax(-1) if attn_mask is None else masked_softmax(scores)
    return weights.cast(least_upper_float(self.dtype)).dropout(dropout_p).matmul(value)

  def newton_schulz(self, steps: int, params: tuple[float, ...], eps: float = 1.0e-7) -> Tensor:
    """Approximate the nearest orthogonal matrix by odd polynomials with the given coefficients. Source: Jordan et al.
    2024 (Muon).

    >>> Tensor([[3.0, 0.0], [0.0, 2.0]]).newton_schulz(5, (2.0, -1.5, 0.5)).realize()
    <Tensor (2, 2) float32 on CPU, realized:
     [[1.0, 0.0],
      [0.0, 1.0]]>
    """
    if self.ndim < 2: raise ShapeError(f"newton_schulz wants matrices, not {graph.show(self.shape)}")
    steps, params = whole("steps", steps,
                          0), tuple([real("a coefficient", c)
                                     for c in (params if isinstance(params, (tuple, list)) else (params,))])
    if not params: raise ArgumentError("newton_schulz wants a coefficient at least")
    def nearest(x: Tensor) -> Tensor:
      x = x.div(x.square().sum((-2, -1), keepdim=True).sqrt().add(eps))
      rows, columns = (int(d) for d in x.shape[-2:])
      if rows > columns: x = x.transpose(-2, -1)
      for _ in range(steps):
        gram = x.dot(x.transpose(-2, -1))
        power, total = x, x.mul(params[0])
        for coefficient in params[1:]:
          power = gram.dot(power)
          total = total.add(power.mul(coefficient))
        x = total.contiguous()
      return x.transpose(-2, -1) if rows > columns else x
    return self._precisely(nearest)

def _between(u: UOp) -> UOp:
  """Add an axis of size 1 before the last."""
  return graph.reshape(u, (*u.shape[:-1], 1, u.shape[-1]))

def _spell(names: str, dots: int, most: int) -> str:
  """Return the names with "..." written as digits, aligned at the end."""
  return names.replace("...", "".join(str(i) for i in range(most - dots, most)))

def _aligned(x: Tensor, names: str, order: str) -> Tensor:
  """Return x with one axis for each name in order. A name that repeats takes the diagonal. An axis that x lacks has
  size 1."""
  while (twice := next((c for c in names if names.count(c) > 1), None)) is not None:
    first = names.index(twice)
    second = names.index(twice, first + 1)
    if not graph.equal(x.shape[first], x.shape[second]):
      raise ShapeError(f"einsum: {twice!r} stands for sizes {x.shape[first]} and {x.shape[second]}")
    x = x.diagonal(0, first, second)
    names = names[:first] + names[first + 1:second] + names[second + 1:] + twice
  present = [c for c in order if c in names]
  x = x.permute([names.index(c) for c in present]) if present else x
  sizes = iter(x.shape)
  shape: list[sint] = [next(sizes) if c in names else 1 for c in order]
  return x.reshape(shape)

def _heads_per_key(query: Tensor, key: Tensor, value: Tensor) -> int:
  """Return the number of query heads that use each head of key and value. Raises ShapeError."""
  heads = [int(x.shape[-3]) if x.ndim > 2 else 0 for x in (query, key, value)]
  if heads[1] and heads[1] == heads[2] and heads[0] % heads[1] == 0: return heads[0] // heads[1]
  raise ShapeError(f"enable_gqa wants (..., heads, T, d), key and value of the same number of heads, and a multiple "
                   f"of it in the query: they have "
                   f"shapes {graph.show(key.shape)}, {graph.show(value.shape)} and {graph.show(query.shape)}")

def masked_softmax(scores: Tensor) -> Tensor:
  """Return softmax along the last axis, for floats of at least 32 bits.

  Rows that are all -inf, which attend to nothing, become zeros, and so do their gradients.
  """
  most = scores.detach()._largest(-1, keepdim=True)
  powers = scores.sub(most.eq(-math.inf).where(0, most)).exp()
  total = powers.sum(-1, keepdim=True)
  return powers.mul(total.eq(0).where(1, total).reciprocal())
