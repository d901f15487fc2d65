"""Expressions that mean the same in PyTorch and in `tinyhw.compat.torch`: values, types, shapes, gradients.

    agree("torch.cumsum(x, 1)")    # evaluated by both, and compared

VARIABLES are the tensors that an expression may use; F is nn.functional. PyTorch is the oracle where it is installed,
else the test skips.
"""
from __future__ import annotations
import importlib
from typing import Any

import numpy as np
import pytest

from tinyhw.errors import GradientError

def _variables() -> dict[str, Any]:
  draw = np.random.default_rng(7)
  def floats(*shape: int) -> Any: return draw.normal(size=shape).astype(np.float32)
  wide = floats(4, 4)
  return {
    "x": floats(3, 4), "y": floats(3, 4), "z": floats(2, 3, 4), "v": floats(5), "w": floats(4), "s": floats(),
    "u": draw.uniform(0.05, 0.95, (3, 4)).astype(np.float32), "p": draw.uniform(0.5, 4, (3, 4)).astype(np.float32),
    "m": wide + 3 * np.eye(4, dtype=np.float32), "batch": floats(2, 4, 4) + 3 * np.eye(4, dtype=np.float32),
    "pd": wide @ wide.T + np.eye(4, dtype=np.float32), "sym": wide + wide.T, "tall": floats(5, 3), "rhs": floats(4, 2),
    "image": floats(2, 3, 6, 6), "signal": floats(2, 3, 9), "volume": floats(1, 2, 4, 4, 4),
    "i": draw.integers(0, 3, (3, 4)), "rows": np.array([2, 0, 1]), "mask": draw.uniform(size=(3, 4)) > 0.5,
    "classes": np.array([1, 0, 3]), "ints": draw.integers(-9, 9, (3, 4)), "nat": draw.integers(0, 6, (9,)),
    "dup": draw.integers(0, 3, (3, 4)).astype(np.float32), "hole": np.array([[1, np.nan, 3], [np.nan, 5, 0]],
                                                                            np.float32),
  }

VARIABLES = _variables()

def agree(expression: str, gradient: bool = True, rtol: float = 1e-4, atol: float = 1e-5) -> None:
  """Compare an expression's results, and (gradient) those of its gradients in all float variables that it uses."""
  torch = pytest.importorskip("torch")
  ours = importlib.import_module("tinyhw.compat.torch")
  code = compile(expression, "<case>", "eval")
  names = [name for name in VARIABLES if name in code.co_names]
  theirs = _evaluate(torch, code, names)
  mine = _evaluate(ours, code, names)
  for a, b in zip(_flat(mine[0]), _flat(theirs[0]), strict=True):
    if not isinstance(b, torch.Tensor):
      assert a == b, f"{expression}: {a}, not {b}"
      continue
    assert tuple(a.shape) == tuple(b.shape) and str(a.dtype) == str(b.dtype).replace("torch", "dtypes"), (
      f"{expression}: {a.shape} {a.dtype}, not {tuple(b.shape)} {b.dtype}")
    np.testing.assert_allclose(a.numpy(), b.detach().numpy(), rtol, atol, err_msg=expression)
  places = [k for k, t in enumerate(_flat(theirs[0])) if isinstance(t, torch.Tensor) and t.requires_grad]
  if not gradient or not places: return
  _backward(theirs[0], places)
  try: _backward(mine[0], places)
  except GradientError: pass         # it depends on no variable here
  for name in names:
    if (expected := getattr(theirs[1][name], "grad", None)) is None: continue
    found = mine[1][name].grad
    if found is None:                # it does not depend on the variable here, and PyTorch's gradient is zeros
      assert not expected.any(), f"{expression}: no gradient of {name}"
      continue
    np.testing.assert_allclose(found.numpy(), expected.numpy(), 10 * rtol, 10 * atol, err_msg=f"{expression}: d {name}")

def _evaluate(torch: Any, code: Any, names: list[str]) -> tuple[Any, dict[str, Any]]:
  inputs = {name: torch.tensor(VARIABLES[name], requires_grad=VARIABLES[name].dtype == np.float32) for name in names}
  return eval(code, {"torch": torch, "F": torch.nn.functional, **inputs}), inputs

def _backward(results: Any, places: list[int]) -> None:
  total: Any = 0
  for k in places:
    t = _flat(results)[k]
    weights = np.cos(np.arange(max(1, t.numel()), dtype=np.float32))[:t.numel()].reshape(tuple(t.shape))
    total = total + (t * _like(t, weights)).sum()
  total.backward()

def _like(t: Any, weights: Any) -> Any:
  module = importlib.import_module("torch" if type(t).__module__.startswith("torch") else "tinyhw.compat.torch")
  return module.tensor(weights).to(t.dtype)

def _flat(x: Any) -> list[Any]:
  return [y for item in x for y in _flat(item)] if isinstance(x, (tuple, list)) else [x]

def _parts(found: Any) -> list[Any]:
  return [t for part in found for t in _parts(part)] if isinstance(found, tuple) else [found]

def agree_in_func(expression: str) -> None:
  """Compare an expression of torch.func with PyTorch's."""
  real, ours = pytest.importorskip("torch"), importlib.import_module("tinyhw.compat.torch")
  found = []
  for t in (ours, real):
    func = importlib.import_module("torch.func") if t is real else t.func
    names = {name: getattr(func, name) for name in ("vmap", "grad", "jacrev", "jacfwd", "hessian", "jvp", "vjp",
                                                    "grad_and_value")}
    found.append(eval(expression, {"torch": t, "F": t.nn.functional, **names,
                                   **{k: t.tensor(v) for k, v in VARIABLES.items()}}))
  for a, b in zip(_parts(found[0]), _parts(found[1]), strict=True):
    assert tuple(a.shape) == tuple(b.shape) and str(a.dtype) == str(b.dtype).replace("torch", "dtypes"), expression
    np.testing.assert_allclose(a.numpy(), b.detach().numpy(), 1e-4, 1e-5, err_msg=expression)
