"""Parameters, in blocks and plain: all elements, some rows, and random parameters without a file."""
import numpy as np
import pytest
from formats.gguf_files import decoded, random_blocks

from tinyhw import Tensor
from tinyhw.errors import FileFormatError
from tinyhw.llm.blocks import TYPES
from tinyhw.llm.gguf import Stored
from tinyhw.llm.packed import PackedMatrix, Rounded
from tinyhw.llm.weights import (
  Blocks, Experts, FileWeights, ModelWeights, ProductInput, Projection, RootMeanSquareNorm, elements, product, rows)

Q4_0, IQ4_NL, I32 = 2, 20, 26
RAW = random_blocks(TYPES[Q4_0], 12)
VALUES = np.array(decoded(TYPES[Q4_0], RAW)).reshape(3, 2, 64)
STORED = {"w.weight": Stored(Tensor(RAW, dtype="uint8"), (3, 2, 64), Q4_0),
          "n.weight": Stored(Tensor(bytes(8), dtype="uint8"), (2,), I32)}

@pytest.mark.parametrize("realize, exact, kept", [(False, False, PackedMatrix), (False, True, Blocks),
                                                  (True, False, Tensor), (True, True, Tensor)])
def test_blocks(realize, exact, kept):
  w = FileWeights(STORED, realize, exact).get("w.weight", 3, 2, 64)
  assert isinstance(w, kept) and w.shape == (3, 2, 64)
  np.testing.assert_array_equal(elements(w).numpy(), VALUES)

@pytest.mark.parametrize("realize, exact", [(False, False), (False, True), (True, False)])
def test_rows(realize, exact):
  """Rows of a matrix. An expert is no row of several matrices that are packed."""
  stored = {"w": STORED["w.weight"]._replace(shape=(6, 64))}
  w = FileWeights(stored, realize, exact).get("w", 6, 64)
  np.testing.assert_array_equal(rows(w, Tensor([[5, 0], [1, 1]])).numpy(), VALUES.reshape(6, 64)[[[5, 0], [1, 1]]])

@pytest.mark.parametrize("realize", [False, True])
def test_rows_of_several_matrices(realize):
  w = FileWeights(STORED, realize, exact=True).get("w.weight", 3, 2, 64)
  np.testing.assert_array_equal(rows(w, Tensor([[2, 0], [1, 1]])).numpy(), VALUES[[[2, 0], [1, 1]]])

def test_what_is_not_packed():
  """Codes that stand for numbers of a table. Their products are those of float32."""
  raw = random_blocks(TYPES[IQ4_NL], 4)
  w = FileWeights({"w": Stored(Tensor(raw, dtype="uint8"), (2, 64), IQ4_NL)}, False).get("w", 2, 64)
  x = np.random.default_rng(2).normal(size=(1, 64)).astype("f4")
  assert isinstance(w, Blocks)
  want = x @ np.array(decoded(TYPES[IQ4_NL], raw)).reshape(2, 64).T
  np.testing.assert_allclose(product(Tensor(x), w).numpy(), want, rtol=1e-5, atol=1e-5 * np.abs(want).max())

@pytest.mark.parametrize("exact, tolerance", [(True, 1e-5), (False, 0.02)])
def test_layers(exact, tolerance):
  source = FileWeights(STORED, False, exact)
  x = np.random.default_rng(0).normal(size=(4, 2, 64)).astype("f4")
  chosen = np.array([[0, 2], [1, 1], [2, 0], [0, 1]])
  got = Experts(source, "w", 3, 64, 2)(Tensor(x), Tensor(chosen)).numpy()
  want = np.einsum("tkoi,tki->tko", VALUES[chosen], x)
  np.testing.assert_allclose(got, want, rtol=0, atol=tolerance * np.abs(want).max())
  linear = Projection(ModelWeights(), "l", 64, 5, bias=True)
  np.testing.assert_allclose(linear(Tensor(x[0])).numpy(), x[0] @ elements(linear.weight).numpy().T, rtol=1e-4,
                             atol=1e-5)
  norm = RootMeanSquareNorm(ModelWeights(), "n", 64, 0.0)
  np.testing.assert_allclose(norm(Tensor(x)).square().mean(-1).numpy(), np.ones((4, 2)), rtol=1e-5)

@pytest.mark.parametrize("tokens", [1, 3])
def test_products(tokens):
  """Products with blocks equal products with the decoded elements."""
  w = FileWeights({"w": Stored(Tensor(RAW, dtype="uint8"), (6, 64), Q4_0)}, False, exact=True).get("w", 6, 64)
  x = np.random.default_rng(1).normal(size=(tokens, 64)).astype("f4")
  for weight in (w, w.tensor().realize(), w.tensor().half().realize()):
    want = x @ elements(weight).numpy().T
    np.testing.assert_allclose(product(Tensor(x), weight).numpy(), want, rtol=1e-4, atol=1e-4)

@pytest.mark.parametrize("tokens", [1, 3])
def test_products_with_rounded_vectors(tokens):
  """The input of several products is rounded once."""
  w = FileWeights({"w": Stored(Tensor(RAW, dtype="uint8"), (6, 64), Q4_0)}, False).get("w", 6, 64)
  x = np.random.default_rng(1).normal(size=(tokens, 64)).astype("f4")
  given = ProductInput(Tensor(x))
  got, again = (product(given, w).numpy() for _ in range(2))
  assert isinstance(given.rounded, Rounded) and given.rounded is given.rounded
  want = x @ VALUES.reshape(6, 64).T
  np.testing.assert_allclose(got, want, rtol=0, atol=0.02 * np.abs(want).max())
  assert np.abs(got - want).max() > 1e-4 * np.abs(want).max(), "it was not rounded"
  np.testing.assert_array_equal(got, again)
  np.testing.assert_array_equal(got, product(Tensor(x), w).numpy())
  np.testing.assert_allclose(product(given, w.tensor()).numpy(), want, rtol=1e-4, atol=1e-4)

def test_sources():
  source = FileWeights(STORED, False)
  assert (source.has("w.weight") and not source.has("x") and not ModelWeights().has("w.weight")
          and list(source.unused) == ["w.weight", "n.weight"])
  source.get("w.weight", 3, 2, 64)
  assert list(source.unused) == ["n.weight"]
  for name, shape, why in (("x", (1,), "no tensor 'x'"), ("w.weight", (3, 128), "has shape"),
                           ("n.weight", (2,), "type I32, which are no floats")):
    with pytest.raises(FileFormatError, match=why): source.get(name, *shape)
