"""Methods of Tensor on awkward operands: every row of generators/tensor_table.py with no elements, no axes, one
element, infinities, NaN; and which methods of the API have rows."""
from __future__ import annotations
from typing import Any

import numpy as np
import pytest
from generators.tensor_methods import NOT_DRAWN
from generators.tensor_programs import make
from generators.tensor_table import KINDS, ROWS, Row

from test.helpers import HOME, on
from tinyhw import Tensor

SHAPES: list[tuple[int, ...]] = [(), (0,), (1,), (5,), (2, 3), (2, 0, 3), (1, 3, 2)]
SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, np.inf, -np.inf, np.nan]
SEEN_ELSEWHERE = {   # what has no value to compare, or its own tests with hand-written cases
  "attributes and Python's values": "data device dtype grad item ndim nbytes numel numpy shape size tolist uop "
  "element_size holds_complex is_floating_point",
  "random numbers (test_random.py)": "glorot_uniform kaiming_normal kaiming_uniform manual_seed multinomial normal "
  "rand rand_like randint randn "
                                     "randn_like random_bits randperm scaled_uniform threefry uniform",
  "gradients (test_gradient.py)": "backward checkpoint gradient retain_grad retains_grad",
  "storage (test_tensor.py)": "from_blob from_dlpack from_url invalidate to_ shard shard_ shard_like",
  "digests (test_digest.py)": "hash keccak", "kernels (test_kernels.py)": "custom_kernel schedule_linear alu "
  "as_param call callify const invalids is_param is_param_ linear_with_vars max_numel max_shape",
}

def operands(row: Row) -> list[Any]:
  """Return the arrays for a row: each shape in its first type, one shape in the others."""
  rng = np.random.default_rng(3)
  found = []
  for n, kind in enumerate(KINDS[row.kinds]):
    for shape in SHAPES if n == 0 else [(2, 3)]:
      if kind == "bool": a = rng.random(shape) < 0.5
      elif "float" in kind:
        low, high = max(row.low, -3.0), min(row.high, 3.0)
        a = np.clip(rng.uniform(low, max(high, low + 1), shape), row.low, row.high).astype(kind)
      else: a = rng.integers(0 if kind[0] == "u" else -9, 9, shape).astype(kind)
      a = np.asarray(a)
      if row.takes(a): found.append(a)
    if row.special and "float" in kind: found.append(np.array(SPECIAL, kind))
  return found

def check(row: Row, a: Any) -> None:
  with np.errstate(all="ignore"): want = np.asarray(row.array(a))
  t = row.tensor(Tensor(a))
  got = t.numpy()
  where = f"{row.name} of {a.dtype}{list(a.shape)} {a.tolist()}"
  assert got.shape == want.shape and got.dtype == want.dtype, (f"{got.dtype}{list(got.shape)}, not "
                                                               f"{want.dtype}{list(want.shape)}: {where}")
  if row.result != "about": np.testing.assert_array_equal(got, want, err_msg=where)
  else:
    tolerance = {"float16": 4e-3, "float32": 1e-5}.get(str(a.dtype), 1e-12)
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance, err_msg=where)

@pytest.mark.parametrize("name", sorted({row.name for row in ROWS}))
@pytest.mark.parametrize("device", [HOME, "interpreter"])
def test_method(device, name):
  with on(device):
    for row in ROWS:
      if row.name != name: continue
      tried = operands(row)
      assert tried, f"{name} is tried on nothing"
      for a in tried: check(row, a)

def api() -> set[str]:
  """The methods and properties of Tensor that users write, but for those that are only another form of one."""
  hidden = {"hold", "copied", "lazydata", "no_grad", "requires_grad", "requires_grad_", "train", "training", "float8"}
  return {name for name in dir(Tensor) if not name.startswith("_")} - hidden

def test_every_method_has_cases():
  known = {row.name for row in ROWS} | {name for names in SEEN_ELSEWHERE.values() for name in names.split()}
  missing = sorted(api() - known)
  assert not missing, f"give these a row in generators/tensor_table.py, or a reason in SEEN_ELSEWHERE: {missing}"
  assert len({row.name for row in ROWS}) >= 150

@pytest.mark.slow
def test_random_programs_draw_every_row():
  """The programs of test_devices.py use all methods of the table, except a few."""
  drawn: set[str] = set()
  wanted = {row.name for row in ROWS} - NOT_DRAWN
  for seed in range(4000):
    drawn |= {step.name[:-5] for step in make(seed).steps if step.name.endswith("[row]")}
    if wanted <= drawn: break
  assert wanted <= drawn, f"never drawn: {sorted(wanted - drawn)}"
