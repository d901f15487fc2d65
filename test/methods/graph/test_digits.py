"""methods/graph/digits.py: sorting by digits is a stable sort, of each type."""
from __future__ import annotations

import numpy as np
import pytest

from tinyhw import Tensor
from tinyhw.methods import sorting
from tinyhw.methods.graph import digits, places

KINDS = ("bool", "uint8", "int8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16", "float32",
         "float64")

def drawn(kind: str, shape: tuple[int, ...]) -> np.ndarray:
  x = np.random.default_rng(7).normal(size=shape) * 40
  if kind.startswith("u"): x = np.abs(x)
  out = x > 0 if kind == "bool" else x.astype(kind)
  if kind.startswith("float"):
    flat = out.reshape(-1)
    flat[::7], flat[1::9], flat[2::9], flat[3::11], flat[4::13] = np.nan, 0.0, -0.0, np.inf, -np.inf
  return out

def ranks(x: np.ndarray) -> np.ndarray:
  """Whole numbers in the order of the elements. NaN is the largest."""
  return np.unique(np.where(np.isnan(x), np.inf, x) if x.dtype.kind == "f" else x, return_inverse=True)[1].reshape(
    x.shape) + (np.isnan(x) if x.dtype.kind == "f" else 0)

@pytest.mark.parametrize("descending", (False, True))
@pytest.mark.parametrize("kind", KINDS)
def test_sorts_each_type(kind: str, descending: bool, monkeypatch: pytest.MonkeyPatch) -> None:
  for name in ("_MOST_COUNTED", "_LEAST_DIGITS"): monkeypatch.setattr(sorting, name, 0)
  monkeypatch.setattr(places, "runs_in_order", lambda u: True)
  monkeypatch.setattr(digits, "CHUNK", 16)
  for shape in ((1,), (67,), (3, 40)):     # 67 is prime: the last chunk is padded
    x = drawn(kind, shape)
    rank = ranks(x)
    wanted = np.argsort(-rank if descending else rank, axis=-1, kind="stable")
    np.testing.assert_array_equal(Tensor(x).argsort(-1, descending).numpy(), wanted)

def test_keys_sort_as_elements_do() -> None:
  x = np.array([-np.inf, -2.5, -1e-40, -0.0, 0.0, 1e-40, 3.0, np.inf, np.nan], np.float32)
  keys, bits = digits.sorting_keys(Tensor(x).uop, False)
  found = Tensor._new(keys).numpy().astype(np.int64)
  assert bits == 32 and found[3] == found[4] and all(np.diff(np.delete(found, 3)) > 0)

def test_many_keys() -> None:
  x = np.random.default_rng(0).integers(-1000, 1000, 20011)
  np.testing.assert_array_equal(Tensor(x).argsort().numpy(), np.argsort(x, kind="stable"))
