"""Parameters, in blocks and plain: all elements, some rows, and random parameters without a file."""
import numpy as np
import pytest
from formats.gguf_files import decoded, random_blocks

from tinyhw import Tensor
from tinyhw.errors import FileFormatError
from tinyhw.llm.blocks import TYPES
from tinyhw.llm.gguf import Stored
from tinyhw.llm.weights import (
  Blocks, Experts, FileWeights, ModelWeights, Projection, RootMeanSquareNorm, elements, product, rows)

Q4_0, I32 = 2, 26
RAW = random_blocks(TYPES[Q4_0], 12)
VALUES = np.array(decoded(TYPES[Q4_0], RAW)).reshape(3, 2, 64)
STORED = {"w.weight": Stored(Tensor(RAW, dtype="uint8"), (3, 2, 64), Q4_0),
          "n.weight": Stored(Tensor(bytes(8), dtype="uint8"), (2,), I32)}

@pytest.mark.parametrize("realize", [False, True])
def test_blocks(realize):
  w = FileWeights(STORED, realize).get("w.weight", 3, 2, 64)
  assert isinstance(w, Tensor if realize else Blocks) and w.shape == (3, 2, 64)
  np.testing.assert_array_equal(elements(w).numpy(), VALUES)
  np.testing.assert_array_equal(rows(w, Tensor([[2, 0], [1, 1]])).numpy(), VALUES[[[2, 0], [1, 1]]])

def test_layers():
  source = FileWeights(STORED, False)
  x = np.random.default_rng(0).normal(size=(4, 2, 64)).astype("f4")
  chosen = np.array([[0, 2], [1, 1], [2, 0], [0, 1]])
  got = Experts(source, "w", 3, 64, 2)(Tensor(x), Tensor(chosen)).numpy()
  np.testing.assert_allclose(got, np.einsum("tkoi,tki->tko", VALUES[chosen], x), rtol=1e-4, atol=1e-4)
  linear = Projection(ModelWeights(), "l", 64, 5, bias=True)
  np.testing.assert_allclose(linear(Tensor(x[0])).numpy(), x[0] @ elements(linear.weight).numpy().T, rtol=1e-4,
                             atol=1e-5)
  norm = RootMeanSquareNorm(ModelWeights(), "n", 64, 0.0)
  np.testing.assert_allclose(norm(Tensor(x)).square().mean(-1).numpy(), np.ones((4, 2)), rtol=1e-5)

@pytest.mark.parametrize("tokens", [1, 3])
def test_products(tokens):
  """Products with blocks equal products with the decoded elements."""
  w = FileWeights({"w": Stored(Tensor(RAW, dtype="uint8"), (6, 64), Q4_0)}, False).get("w", 6, 64)
  x = np.random.default_rng(1).normal(size=(tokens, 64)).astype("f4")
  for weight in (w, w.tensor().realize(), w.tensor().half().realize()):
    want = x @ elements(weight).numpy().T
    np.testing.assert_allclose(product(Tensor(x), weight).numpy(), want, rtol=1e-4, atol=1e-4)

def test_sources():
  source = FileWeights(STORED, False)
  assert (source.has("w.weight") and not source.has("x") and not ModelWeights().has("w.weight")
          and list(source.unused) == ["w.weight", "n.weight"])
  source.get("w.weight", 3, 2, 64)
  assert list(source.unused) == ["n.weight"]
  for name, shape, why in (("x", (1,), "no tensor 'x'"), ("w.weight", (3, 128), "has shape"),
                           ("n.weight", (2,), "type I32, which are no floats")):
    with pytest.raises(FileFormatError, match=why): source.get(name, *shape)
