"""compat/torch/table.py: each name leads to a function with a docstring."""
from __future__ import annotations
import importlib

import pytest

import tinyhw.compat.torch as torch
from tinyhw.compat.torch.table import NOT_METHODS, TABLE, methods

ROWS = [(namespace, name, *place) for namespace, rows in TABLE.items() for name, place in rows.items()]

def test_each_name_is_computed_somewhere() -> None:
  for namespace, name, module, ours in ROWS:
    if module.startswith("@"): continue
    function = getattr(importlib.import_module(module), ours, None)
    if name in OBJECTS or namespace == "distributions.constraints": continue
    assert callable(function), f"{namespace}.{name}: {module} has no {ours}"
    assert function.__doc__, f"{module}.{ours} has no docstring"

OBJECTS = {"default_generator", "mps", "xpu", "backends", "cuda", "hip"}

def test_methods() -> None:
  assert NOT_METHODS <= set(TABLE[""])
  assert {"add", "max", "to", "expand"} <= set(methods())

def test_the_table_names_what_pytorch_has() -> None:
  torch = pytest.importorskip("torch")
  pytest.importorskip("torch.nn.utils.prune")     # PyTorch does not import it by itself
  for namespace, name, *_ in ROWS:
    holder = torch.Tensor if namespace == "methods" else torch
    for part in namespace.split(".") if namespace not in ("", "@", "methods") else (): holder = getattr(holder, part)
    if namespace == "methods" and hasattr(holder, f"{name}_") or name in PRIVATE: continue
    if namespace == "nn.modules" and name in TABLE["nn"]: continue      # some are only there
    assert hasattr(holder, name), f"PyTorch has no {namespace}.{name}"

# Names of operators that PyTorch has below torch.ops.aten or as methods.
PRIVATE = {"max_pool2d_with_indices_backward", "slice", "arctan2", "conv_transpose1d", "constant_pad_nd", "max_pool3d",
           "native_dropout_backward", "_upsample_bilinear2d_aa", "_segment_reduce", "_native_batch_norm_legit",
           "_batch_norm_with_update", "_Loss", "_WeightedLoss", "_ConvNd", "_ConvTransposeNd", "_BatchNorm",
           "_InstanceNorm", "_NormBase", "register_module_forward_hook", "register_module_forward_pre_hook",
           "register_module_full_backward_hook", "register_module_backward_hook"}

def test_functions_in_place() -> None:
  x = torch.tensor([-1.0, 2.0])
  assert torch.nn.functional.leaky_relu_(x, 0.5).tolist() == [-0.5, 2.0] == x.tolist()
  assert torch.relu_(x).tolist() == [0.0, 2.0]
