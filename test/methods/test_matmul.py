"""Products against NumPy."""
import math

import numpy as np
import pytest

from test.helpers import arrays, check_gradient, compare, same
from tinyhw.dtype import dtypes
from tinyhw.errors import ArgumentError, ShapeError
from tinyhw.tensor import Tensor

@pytest.mark.slow
@pytest.mark.parametrize("a, b", [((3, 4), (4, 5)), ((4,), (4,)), ((4,), (4, 5)), ((3, 4), (4,)), ((2, 3, 4), (4, 5)),
                                  ((2, 3, 4), (2, 4, 5)),
  ((3, 4), (2, 4, 5)),
                                  ((2, 1, 3, 4), (5, 4, 2)), ((1, 1), (1, 1)), ((0, 4), (4, 5)), ((3, 0), (0, 5)),
                                  ((2, 3, 4), (4,)),
                                  ((4,), (2, 4, 5))])
def test_matmul(a, b):
  compare(lambda x, y: x @ y, np.matmul, a, b, atol=1e-5)
  if 0 not in a: check_gradient(lambda x, y: x @ y, a, b)

INTEGERS = ("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")

@pytest.mark.slow
def test_types():
  x = arrays((8, 300), low=0.5)[0].astype(np.float16)
  same(Tensor(x) @ Tensor(x.T.copy()), (x.astype(np.float32) @ x.T.astype(np.float32)).astype(np.float16), rtol=1e-3)
  assert (Tensor([[100]], dtype="int8").dot(Tensor([[100]], dtype="int8"), dtype="int32")).item() == 10000
  assert Tensor([[1.0]], dtype="float16").matmul(Tensor([[1.0]], dtype="float16"),
                                                 dtype="float32").dtype is dtypes.float32
  assert (np.ones((2, 2), np.float32) @ Tensor([1.0, 2.0]).numpy()).tolist() == [3.0, 3.0]

PRODUCTS = {
  "matmul": (lambda a, b: a.matmul(b), lambda a, b: a @ b), "dot": (lambda a, b: a[0].dot(b), lambda a, b: a[0].dot(b)),
  "linear": (lambda a, b: a.linear(b), lambda a, b: a @ b),
  "einsum": (lambda a, b: Tensor.einsum("ij,jk->ki", a, b), lambda a, b: np.einsum("ij,jk->ki", a, b)),
  "conv2d": (lambda a, b: a.unsqueeze(0).conv2d(b.T.unsqueeze(-1)), lambda a, b: (b.T @ a)[None]),
}

@pytest.mark.slow
@pytest.mark.parametrize("name", PRODUCTS)
def test_products_have_the_type_that_their_operands_promote_to(name):
  """The types are those of NumPy. Sums are formed in 32 bits at least, and wrap to the type."""
  ours, theirs = PRODUCTS[name]
  rng = np.random.default_rng(4)
  def numbers(dtype): return rng.integers(0, 2 if dtype == "bool" else 128, (3, 3)).astype(dtype)
  for left, right in [*((d, d) for d in INTEGERS), ("int8", "uint8"), ("bool", "int16"), ("uint8", "int32")]:
    a, b = numbers(left), numbers(right)
    if name == "conv2d": a, b = a[:, :1], b[:, :2]
    got, want = ours(Tensor(a), Tensor(b)).numpy(), theirs(a, b)
    assert got.dtype == want.dtype and np.array_equal(got.reshape(want.shape), want), (name, left, right)

def test_products_in_a_type_of_their_own():
  x = Tensor([[100, 100]], dtype="int8")
  assert x.dot(x.T, dtype="int32").tolist() == [[20000]] and Tensor.einsum("ij->i", x, dtype="int64").tolist() == [200]
  assert Tensor.einsum("ij,ij->", x, x, dtype="int16").dtype is dtypes.int16
  assert [Tensor.einsum(f, x).dtype for f in ("ij->i", "ij->", "ij->ji")] == [dtypes.int8] * 3   # sum() widens
  assert (x.unsqueeze(0)).conv2d(Tensor([[[100], [1]]], dtype="int8").transpose(1, 2),
                                 dtype="int32").dtype is dtypes.int32

def test_linear_and_sequential():
  compare(lambda x, w, b: x.linear(w, b), lambda x, w, b: x @ w + b, (2, 3), (3, 4), (4,), atol=1e-5)
  compare(lambda x, w: x.linear(w), lambda x, w: x * w, (2, 3), (3,))
  assert Tensor([1.0]).sequential([lambda x: x + 1, Tensor.square]).tolist() == [4.0]
  assert Tensor([1.0]).linear(Tensor([2.0]), dtype="float64").dtype is dtypes.float64

@pytest.mark.parametrize("formula, shapes", [
  ("ij,jk->ik", ((2, 3), (3, 4))), ("ij->ji", ((2, 3),)), ("ij->", ((2, 3),)), ("ii->i", ((3, 3),)), ("ii", ((3, 3),)),
  ("ij,jk", ((2, 3), (3, 4))),
    ("i,j->ij", ((2,), (3,))),
  ("bij,bjk->bik", ((2, 3, 4), (2, 4, 5))), ("...ij,...jk->...ik", ((2, 3, 4), (2, 4, 5))),
  ("...ij,jk->...ik", ((2, 6, 3, 4), (4, 5))),
  ("ijk,k,i->j", ((2, 3, 4), (4,), (2,))),
  ("b n h w, n d -> b d h w", ((2, 3, 2, 2), (3, 4)))])
def test_einsum(formula, shapes):
  compare(lambda *t: Tensor.einsum(formula, *t), lambda *a: np.einsum(formula.replace(" ", ""), *a), *shapes, atol=1e-5)

def test_einsum_refusals():
  with pytest.raises(ArgumentError, match="2 operands, and 1"): Tensor.einsum("ij,jk->ik", Tensor.ones(2, 2))
  with pytest.raises(ShapeError, match="does not fit"): Tensor.einsum("ijk->i", Tensor.ones(2, 2))
  with pytest.raises(ArgumentError, match="named once"): Tensor.einsum("ij->iz", Tensor.ones(2, 2))

def attention(q, k, v, mask=None):
  s = q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])
  if mask is not None: s = np.where(mask, s, -np.inf) if mask.dtype == np.bool_ else s + mask
  e = np.exp(s - s.max(-1, keepdims=True))
  return e / e.sum(-1, keepdims=True) @ v

@pytest.mark.slow
def test_attention():
  q, k, v = arrays((2, 3, 4, 5), (2, 3, 6, 5), (2, 3, 6, 7))
  compare(lambda q, k, v: q.scaled_dot_product_attention(k, v), attention, q, k, v, atol=1e-5)
  compare(lambda q, k, v: q.scaled_dot_product_attention(k, v, is_causal=True), lambda q, k,
          v: attention(q, k, v, np.tri(4, 6, dtype=bool)), q, k,
    v, atol=1e-5)
  mask = arrays((4, 6))[0]
  compare(lambda q, k, v: q.scaled_dot_product_attention(k, v, attn_mask=Tensor(mask)), lambda q, k,
          v: attention(q, k, v, mask), q, k, v, atol=1e-5)
  compare(lambda q, k, v: q.scaled_dot_product_attention(k, v, attn_mask=Tensor(mask > -1.5)), lambda q, k,
          v: attention(q, k, v, mask > -1.5), q,
    k, v, atol=1e-5)
  compare(lambda q, k, v: q.scaled_dot_product_attention(k, v, enable_gqa=True), lambda q, k,
          v: attention(q, k.repeat(3, 1), v.repeat(3, 1)), q,
    k[:, :1].copy(), v[:, :1].copy(),
          atol=1e-5)
  with pytest.raises(ArgumentError, match="not both"):
    Tensor(q).scaled_dot_product_attention(Tensor(k), Tensor(v), Tensor(mask), is_causal=True)
  check_gradient(lambda q, k, v: q.scaled_dot_product_attention(k, v, is_causal=True), (1, 2, 3), (1, 2, 3), (1, 2, 3))

@pytest.mark.slow
@pytest.mark.parametrize("numbers", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_attention_to_nothing_is_zero(numbers, dtype):
  """As in PyTorch since 2.5. NaN in the input is not hidden, and gradients of such rows are zero."""
  mask = Tensor([[True, False, True], [False, False, False]])
  if numbers: mask = mask.where(0.0, -math.inf)
  q, k, v = (Tensor(x).cast(dtype).realize() for x in arrays((2, 4), (3, 4), (3, 2)))
  y = q.scaled_dot_product_attention(k, v, attn_mask=mask)
  assert y.tolist()[1] == [0.0, 0.0] and y[:1].isnan().any().item() is False and y.dtype is q.dtype
  assert y[0].isclose(q[:1].scaled_dot_product_attention(k, v, attn_mask=mask[:1])[0], atol=1e-3).all().item()
  for t, gradient in zip((q, k, v), y.sum().gradient(q, k, v)):
    assert gradient.isnan().any().item() is False and t.shape == gradient.shape
  assert y.sum().gradient(q)[0].tolist()[1] == [0.0] * 4
  poisoned = (q * Tensor([[1.0], [math.nan]])).scaled_dot_product_attention(k, v,
                                                                            attn_mask=Tensor([[True, True, True],
                                                                                              [True, False, False]]))
  assert poisoned.isnan().tolist() == [[False, False], [True, True]]
  assert q.scaled_dot_product_attention(k[:0], v[:0], attn_mask=mask[:, :0]).tolist() == [[0.0, 0.0], [0.0, 0.0]]

@pytest.mark.slow
def test_newton_schulz():
  for shape in ((3, 5), (5, 3)):
    x = Tensor(arrays(shape)[0]).newton_schulz(15, (2, -1.5, 0.5)).numpy()
    small = x @ x.T if shape[0] < shape[1] else x.T @ x
    np.testing.assert_allclose(small, np.eye(3), atol=1e-3)

def test_refusals():
  with pytest.raises(ShapeError, match=r"cannot matmul \(2, 3\) and \(2, 3\)"): Tensor.ones(2, 3) @ Tensor.ones(2, 3)
  with pytest.raises(ShapeError, match="both need an axis"): Tensor(1.0) @ Tensor.ones(2)
  with pytest.raises(ShapeError, match="cannot matmul"): Tensor.ones(2, 3, 4) @ Tensor.ones(3, 4, 5)
  with pytest.raises(ArgumentError, match="linear wants a Tensor, not 2"): Tensor.ones(2).linear(2)
  with pytest.raises(ArgumentError, match="attention wants a Tensor"):
    Tensor.ones(2, 2).scaled_dot_product_attention(1, 2)
  with pytest.raises(ShapeError, match=r"has shape \(2,\)"):
    Tensor.ones(2, 2).scaled_dot_product_attention(Tensor.ones(2), Tensor.ones(2))

@pytest.mark.slow
def test_linear_in_a_type_with_a_number_as_bias():
  x, w = Tensor.ones(2, 3), Tensor.ones(3, 2)
  for bias in (1, 1.0, [1, 1], Tensor([1.0, 1.0])):
    assert x.linear(w, bias, dtype="float64").tolist() == x.linear(w, bias).tolist() == [[4, 4], [4, 4]]
    assert x.linear(w, bias, dtype="float64").dtype is dtypes.float64

def test_attention_in_a_narrow_type_does_not_round_its_scaled_query() -> None:
  q, k, v = (Tensor([[((7 * i + 3 * j + n) % 13 - 6) / 4 for j in range(8)] for i in range(5)], dtype="bfloat16")
             for n in range(3))
  wide = q.float().scaled_dot_product_attention(k.float(), v.float())
  assert (q.scaled_dot_product_attention(k, v).float() - wide).abs().max().item() < 0.004

def test_a_linear_layer_of_16_bits_rounds_once():
  """2049 is no float16. With the bias it is 2050, which is one."""
  x, w, b = (Tensor(v, dtype="float16") for v in ([[2048.0, 1.0]], [[1.0], [1.0]], [1.0]))
  found = x.linear(w, b)
  assert found.dtype is x.dtype and found.tolist() == [[2050.0]] and (x @ w + b).tolist() == [[2048.0]]
