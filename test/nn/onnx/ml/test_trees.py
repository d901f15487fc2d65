"""Ensembles of random trees against a walk in Python."""
import math
import random
from typing import Any

import numpy as np
import pytest

from formats.onnx_writer import run, single
from tinyhw import Tensor, TinyJit
from tinyhw.errors import TinyError
from tinyhw.nn.onnx import OnnxRunner
from tinyhw.nn.onnx.ml.trees import LEAF, Forest, levels

F32, ML = np.float32, "ai.onnx.ml"
V5 = {"domain": ML, "domains": {ML: 5}}
COMPARE: dict[str, Any] = {"BRANCH_LEQ": lambda a, b: a <= b, "BRANCH_LT": lambda a, b: a < b,
                           "BRANCH_GTE": lambda a, b: a >= b, "BRANCH_GT": lambda a, b: a > b,
                           "BRANCH_EQ": lambda a, b: a == b, "BRANCH_NEQ": lambda a, b: a != b}
TREES, FEATURES, TARGETS = 5, 3, 2

def features(rows: int, seed: int = 0) -> Any:
  x = np.random.default_rng(seed).integers(-3, 4, (rows, FEATURES)).astype(F32)
  x[0, 0] = x[1, 1] = np.nan
  return x

def ensemble(modes: list[str], least: float = -1.0) -> tuple[dict[str, list[Any]], list[tuple[int, int, int, float]]]:
  """Return the attributes of nodes, and the weights (tree, node, target, weight) of leaves."""
  draw = random.Random(7)
  nodes: dict[str, list[Any]] = {name: [] for name in ("treeids", "nodeids", "modes", "featureids", "values",
                                                       "truenodeids", "falsenodeids", "missing_value_tracks_true")}
  weights = []
  for tree in range(TREES):
    count = 0
    def grow(depth: int, tree: int = tree) -> int:
      nonlocal count
      me, count = count, count + 1
      at = len(nodes["nodeids"])
      leaf = depth == 0 or depth < 3 and draw.random() < 0.3
      row = (tree, me, LEAF if leaf else draw.choice(modes), draw.randrange(FEATURES), float(draw.randint(-2, 2)), 0, 0,
             draw.randint(0, 1))
      for values, value in zip(nodes.values(), row): values.append(value)
      if leaf:
        weights.extend((tree, me, target, draw.uniform(least, 1)) for target in range(TARGETS) if draw.random() < 0.8)
      else: nodes["truenodeids"][at], nodes["falsenodeids"][at] = grow(depth - 1), grow(depth - 1)
      return me
    grow(4)
  return {f"nodes_{name}": values for name, values in nodes.items()}, weights

def reached(nodes: dict[str, list[Any]], x: Any) -> list[int]:
  """The leaf of each tree: its number in the tree."""
  row = {key: i for i, key in enumerate(zip(nodes["nodes_treeids"], nodes["nodes_nodeids"]))}
  found = []
  for tree in range(TREES):
    at = row[tree, 0]
    while nodes["nodes_modes"][at] != LEAF:
      value = x[nodes["nodes_featureids"][at]]
      yes = (bool(nodes["nodes_missing_value_tracks_true"][at]) if math.isnan(value)
             else COMPARE[nodes["nodes_modes"][at]](value, nodes["nodes_values"][at]))
      at = row[tree, nodes["nodes_truenodeids" if yes else "nodes_falsenodeids"][at]]
    found.append(nodes["nodes_nodeids"][at])
  return found

def scores(nodes: dict[str, list[Any]], weights: Any, x: Any, how: str) -> Any:
  merge = {"MIN": min, "MAX": max}.get(how, sum)
  rows = []
  for row in x:
    leaves = reached(nodes, row)
    parts = [[w for tree, node, k, w in weights if k == target and leaves[tree] == node] for target in range(TARGETS)]
    rows.append([merge(part) / (TREES if how == "AVERAGE" else 1) if part else 0.0 for part in parts])
  return np.array(rows)

def named(weights: Any, kind: str) -> dict[str, list[Any]]:
  return {f"{kind}_{name}": [row[i] for row in weights] for i, name in enumerate(("treeids", "nodeids", "ids",
                                                                                  "weights"))}

@pytest.mark.parametrize("how", ["SUM", "AVERAGE", "MIN", "MAX"])
@pytest.mark.parametrize("modes", [["BRANCH_LEQ"], list(COMPARE)])
def test_regression(how: str, modes: list[str]) -> None:
  nodes, weights = ensemble(modes)
  x = features(20)
  found = run("TreeEnsembleRegressor", x, domain=ML, n_targets=TARGETS, aggregate_function=how, base_values=[0.5, -0.5],
              **nodes, **named(weights, "target"))
  np.testing.assert_allclose(found, scores(nodes, weights, x, how) + [0.5, -0.5], rtol=1e-5, atol=1e-6)

def test_classification() -> None:
  nodes, weights = ensemble(["BRANCH_LEQ"])
  x = features(20)
  expected = scores(nodes, weights, x, "SUM")
  label, found = run("TreeEnsembleClassifier", x, domain=ML, outputs=2, classlabels_strings=["no", "yes"],
                     post_transform="SOFTMAX", **nodes, **named(weights, "class"))
  assert label.tolist() == [["no", "yes"][i] for i in expected.argmax(1)]
  e = np.exp(expected)
  np.testing.assert_allclose(found, e / e.sum(1, keepdims=True), rtol=1e-4)

@pytest.mark.parametrize("least", [-1.0, 0.0])
def test_classification_by_one_score(least: float) -> None:
  """Scores of one class alone are probabilities if no weight is negative."""
  nodes, weights = ensemble(["BRANCH_LT"], least)
  weights = [(tree, node, 1, weight / TREES) for tree, node, target, weight in weights if target == 1]
  x = features(20)
  one = scores(nodes, weights, x, "SUM")[:, 1]
  label, found = run("TreeEnsembleClassifier", x, domain=ML, outputs=2, classlabels_int64s=[3, 4], **nodes,
                     **named(weights, "class"))
  assert label.tolist() == np.where(one > (0.5 if least == 0 else 0), 4, 3).tolist()
  np.testing.assert_allclose(found, np.stack([1 - one if least == 0 else -one, one], 1), rtol=1e-4, atol=1e-6)

def test_one_table_of_nodes_and_one_of_leaves() -> None:
  """x0 <= 1 ? (x1 in {2, 5} ? 10 : 20) : (x1 > 0 ? 30 : 40), and a tree that is a leaf."""
  x = np.array([[0, 5], [1, 3], [2, 1], [2, -1], [np.nan, 2]], F32)
  options: Any = dict(
    nodes_modes=np.array([0, 6, 3, 0], np.uint8), nodes_splits=np.array([1, 0, 0, 0], F32),
    nodes_featureids=[0, 1, 1, 0], nodes_truenodeids=[1, 0, 2, 4], nodes_falsenodeids=[2, 1, 3, 4],
    nodes_trueleafs=[0, 1, 1, 1], nodes_falseleafs=[0, 1, 1, 1], nodes_missing_value_tracks_true=[1, 0, 0, 0],
    leaf_weights=np.array([10, 20, 30, 40, 100], F32), leaf_targetids=[0] * 5, tree_roots=[0, 3],
    membership_values=np.array([2, 5, np.nan], F32))
  assert run("TreeEnsemble", x, **options, **V5).tolist() == [[110], [120], [130], [140], [110]]
  assert run("TreeEnsemble", x, aggregate_function=2, **options, **V5).tolist() == [[10], [20], [30], [40], [10]]
  for changes, why in (({"nodes_featureids": [0, 1, 2, 0]}, "does not have"), ({"tree_roots": [9]}, "outside of 9"),
                       ({"nodes_trueleafs": [0, 1]}, "different lengths"), ({"leaf_targetids": [1] * 5}, "a target"),
                       ({"nodes_truenodeids": [0, 0, 2, 4]}, "cycle"), ({"post_transform": 7}, "post_transform=7")):
    with pytest.raises(TinyError, match=why): run("TreeEnsemble", x, **{**options, **changes}, **V5)

def test_bad_names_of_nodes() -> None:
  nodes, weights = ensemble(["BRANCH_LEQ"])
  x, options = features(2), named(weights, "target")
  for changes, why in (({"nodes_modes": ["OTHER"] * len(nodes["nodes_modes"])}, "'OTHER'"),
                       ({"target_nodeids": [999] * len(weights)}, "has no node 999"),
                       ({"nodes_values": [1.0]}, "different lengths"), ({"aggregate_function": "MEDIAN"}, "is one of")):
    with pytest.raises(TinyError, match=why):
      run("TreeEnsembleRegressor", x, domain=ML, n_targets=TARGETS, **{**nodes, **options, **changes})

def test_under_tinyjit_and_on_another_device() -> None:
  nodes, weights = ensemble(["BRANCH_LEQ"])
  x = features(4)
  runner = OnnxRunner(single("TreeEnsembleRegressor", {"x": x}, domain=ML, n_targets=TARGETS, **nodes,
                             **named(weights, "target")))
  step = TinyJit(lambda x: runner({"x": x})["y0"].realize())
  for seed in range(4):
    x = features(4, seed)
    np.testing.assert_allclose(step(Tensor(x).realize()).numpy(), scores(nodes, weights, x, "SUM"), rtol=1e-5,
                               atol=1e-6)
  found = runner.to("PYTHON")({"x": Tensor(x, device="PYTHON")})["y0"]
  np.testing.assert_allclose(found.numpy(), scores(nodes, weights, x, "SUM"), rtol=1e-5, atol=1e-6)

def test_levels() -> None:
  forest = Forest([0], ["BRANCH_LT", LEAF, "BRANCH_LT", LEAF], [0] * 4, [0.0] * 4, [1, 0, 3, 0], [2, 0, 1, 0], [0] * 4,
                  {}, [])
  assert levels(forest) == 3
