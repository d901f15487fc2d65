"""BITCASTs that change the size of elements: their schedule gives the interpreter's results."""
from __future__ import annotations

import numpy as np
import pytest

from tinyhw import Tensor, Variable
from tinyhw.dtype import DType, dtypes
from tinyhw.engine.schedule.regroup import regrouped, regroups
from tinyhw.uop.evaluate.evaluate import evaluate
from tinyhw.uop.verify.verify import verify

TYPES = (dtypes.uint8, dtypes.int16, dtypes.float16, dtypes.float32, dtypes.int64, dtypes.float64)
PAIRS = [(a, b) for a in TYPES for b in TYPES if a.itemsize != b.itemsize]

@pytest.mark.parametrize(("have", "want"), PAIRS, ids=lambda dtype: dtype.name)
def test_shifts_give_the_bytes_in_order(have: DType, want: DType) -> None:
  raw = np.random.default_rng(1).integers(0, 100, 48, dtype=np.uint8)
  x = Tensor(raw.tobytes(), dtype=have).reshape(3, -1)
  u = x.uop.bitcast(want)
  assert regroups(u) and not regroups(x.uop) and u.shape == (3, 16 // want.itemsize)
  made = regrouped(x.uop, want)
  assert made.shape == u.shape and made.dtype is want and not any(map(regroups, made.toposort()))
  verify(u, 2)
  verify(made, 2)
  memory = {x.uop.base: raw.tobytes()}
  expected = raw.view(want.fmt).tolist()
  assert evaluate(u, memory).values == expected == evaluate(made, memory).values
  assert Tensor(u).flatten().tolist() == expected

def test_rows_of_symbolic_length() -> None:
  n = Variable("n", 1, 4).bind(2)
  x = Tensor([[1.0, 2.0, 3.0, 4.0]]).realize()[:, :n]
  assert (x.bitcast("uint8") + 0).tolist() == [[0, 0, 128, 63, 0, 0, 0, 64]]

def test_each_device_regroups_its_part() -> None:
  a = np.arange(1, 33, dtype=np.float32).reshape(4, 8)
  for axis in (0, 1, None):
    x, b = Tensor(a).shard(("PYTHON:1", "PYTHON:2"), axis=axis).realize(), a.copy()
    for dtype in ("uint8", "int64", "int32"):
      view, expected = x.bitcast(dtype), b.view(dtype)
      view[1] = 3
      view[:, 2:3] += 1
      view.assign(view * 2).realize()
      expected[1] = 3
      expected[:, 2:3] += 1
      expected *= 2
      assert (view.device == x.device and view.tolist() == expected.tolist()
              and x.bitcast("int32").tolist() == b.view("int32").tolist())
