"""Ensembles of decision trees of ai.onnx.ml. Source: ONNX operator schemas (ai.onnx.ml).

All trees become one table of nodes. A row of features walks down all trees at once: each step gathers the feature and
the threshold of its node, and goes on to one of two nodes. Leaves go to themselves, so as many steps as the deepest
tree has levels are enough. The results are sums, means, or extremes of the leaves' weights.
"""
from __future__ import annotations
from collections.abc import Callable, Iterable
import math
import operator as operator_module
from typing import Any

from tinyhw.dtype import dtypes
from tinyhw.errors import ArgumentError, ShapeError
from tinyhw.named_tuple import NamedTuple
from tinyhw.nn.onnx.ml.features import ML
from tinyhw.nn.onnx.ml.scores import label_count, labelled, rows_of, transformed
from tinyhw.nn.onnx.operator import Floats, Ints, Memo, Outputs, Strings, as_numbers, operator, remembered
from tinyhw.nn.onnx.ops.shape import check_count
from tinyhw.tensor import Tensor

# The comparisons of a feature with a threshold, in the order of TreeEnsemble's nodes_modes.
_COMPARE: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
  "BRANCH_LEQ": Tensor.le, "BRANCH_LT": Tensor.lt, "BRANCH_GTE": Tensor.ge, "BRANCH_GT": Tensor.gt,
  "BRANCH_EQ": Tensor.eq, "BRANCH_NEQ": Tensor.ne}
MEMBER, LEAF = "BRANCH_MEMBER", "LEAF"
_AGGREGATES = ("AVERAGE", "SUM", "MIN", "MAX")
_TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")
MOST_LEVELS = 1024

class Forest(NamedTuple):
  """A table of nodes. modes: a name of _COMPARE, MEMBER or LEAF. members: the set of each node of mode MEMBER. weights:
  of leaves, (node, target, weight)."""
  roots: list[int]
  modes: list[str]
  features: list[int]
  thresholds: list[float]
  yes: list[int]
  no: list[int]
  missing: list[int]
  members: dict[int, list[float]]
  weights: list[tuple[int, int, float]]

def levels(forest: Forest) -> int:
  """Return the levels of the deepest tree. Raises ArgumentError for a node that is not there, and for a cycle."""
  count, deepest = len(forest.modes), 0
  row = list(forest.roots)
  while row:
    if any(not 0 <= i < count for i in row): raise ArgumentError(f"a tree names a node outside of {count} nodes")
    if deepest > MOST_LEVELS: raise ArgumentError(f"a tree has a cycle, or more than {MOST_LEVELS} levels")
    row = sorted({child for i in row if forest.modes[i] != LEAF for child in (forest.yes[i], forest.no[i])})
    deepest += 1
  return deepest

class ForestTables(NamedTuple):
  """A forest as tensors. codes: the index of each node's mode in kinds. Leaves go to themselves."""
  features: Tensor
  thresholds: Tensor
  yes: Tensor
  no: Tensor
  missing: Tensor
  codes: Tensor
  members: Tensor | None
  kinds: list[str]
  steps: int
  most: int   # the largest number of a feature

def tables(forest: Forest, dtype: Any, device: Any) -> ForestTables:
  """Return a forest's tables on a device. Sets are rows, filled with NaN, which equals nothing."""
  steps = levels(forest) - 1
  def table(values: Iterable[Any], kind: Any = dtypes.int32) -> Tensor:
    return Tensor(list(values), dtype=kind, device=device)
  def next_nodes(children: list[int]) -> Tensor:
    return table(i if mode == LEAF else child for i, (mode, child) in enumerate(zip(forest.modes, children)))
  kinds = [mode for mode in (*_COMPARE, MEMBER) if mode in forest.modes]
  features = [0 if mode == LEAF else f for f, mode in zip(forest.features, forest.modes)]
  if min(features, default=0) < 0: raise ArgumentError("a tree asks for a feature with a negative number")
  width = max((len(found) for found in forest.members.values()), default=0)
  sets = [[*forest.members.get(i, []), *[math.nan] * (width - len(forest.members.get(i, [])))]
          for i in range(len(forest.modes))] if width else []
  return ForestTables(table(features), table(forest.thresholds, dtype), next_nodes(forest.yes), next_nodes(forest.no),
                table(forest.missing), table(kinds.index(mode) if mode in kinds else 0 for mode in forest.modes),
                table(sets, dtype) if sets else None, kinds, steps, max(features, default=0))

def walked(forest: Forest, x: Tensor, memo: Memo | None = None) -> Tensor:
  """Return the leaf that each row of features reaches in each tree: (N, F) -> (N, trees)."""
  t: ForestTables = remembered(memo, ("tables", x.dtype, x.device), lambda: tables(forest, x.dtype, x.device))
  if t.most >= int(x.shape[1]): raise ShapeError(f"a tree asks for feature {t.most}, which {x.shape} does not have")
  at = Tensor(forest.roots, dtype=dtypes.int32, device=x.device).reshape(1, -1).expand(int(x.shape[0]),
                                                                                       len(forest.roots))
  for _ in range(t.steps):
    value, threshold = x.gather(1, t.features[at]), t.thresholds[at]
    answer: Tensor | None = None
    for code, kind in enumerate(t.kinds):
      own = _is_member(t, at, value) if kind == MEMBER else _COMPARE[kind](value, threshold)
      answer = own if answer is None else t.codes[at].eq(code).where(own, answer)
    assert answer is not None
    answer = value.isnan().where(t.missing[at].ne(0), answer)
    at = answer.where(t.yes[at], t.no[at])
  return at

def _is_member(t: ForestTables, at: Tensor, value: Tensor) -> Tensor:
  """Is a feature in the set of its node?"""
  if t.members is None: return value.ne(value)
  found: Tensor = t.members[at].eq(value.unsqueeze(-1)).any(-1)
  return found

def _leaves(forest: Forest, targets: int, how: str, dtype: Any, device: Any) -> Tensor:
  """Return the weights of each node and target as a table, with the neutral number of the aggregation elsewhere."""
  if how not in _AGGREGATES: raise ArgumentError(f"aggregate_function is one of {', '.join(_AGGREGATES)}, not {how!r}")
  if any(not 0 <= target < targets for _, target, _ in forest.weights):
    raise ArgumentError(f"a leaf has a weight for a target outside of {targets}")
  check_count(targets * len(forest.modes), "a table of leaves")
  nothing = {"MIN": math.inf, "MAX": -math.inf}.get(how, 0.0)
  rows = [[nothing] * targets for _ in forest.modes]
  merge: Callable[..., float] = {"MIN": min, "MAX": max}.get(how, operator_module.add)
  for node, target, weight in forest.weights: rows[node][target] = merge(rows[node][target], weight)
  return Tensor(rows, dtype=dtype, device=device)

def evaluated(forest: Forest, x: Tensor, targets: int, how: str, memo: Memo | None = None) -> Tensor:
  """Return the sum, mean, minimum or maximum of the weights of each target: (N, F) -> (N, targets)."""
  table: Tensor = remembered(memo, ("leaves", x.dtype, x.device),
                             lambda: _leaves(forest, targets, how, x.dtype, x.device))
  found = table[walked(forest, x, memo)]                                               # (N, trees, targets)
  if how in ("SUM", "AVERAGE"):
    total = found.sum(1)
    return total / len(forest.roots) if how == "AVERAGE" else total
  best = found.min(1) if how == "MIN" else found.max(1)
  return best.isinf().where(0, best)

# ***** the three operators *****

@operator("TreeEnsemble", 5, ML)
def tree_ensemble(x: Tensor, *, leaf_targetids: Ints, leaf_weights: Tensor, nodes_falseleafs: Ints,
                  nodes_falsenodeids: Ints, nodes_featureids: Ints, nodes_modes: Tensor, nodes_splits: Tensor,
                  nodes_trueleafs: Ints, nodes_truenodeids: Ints, tree_roots: Ints, aggregate_function: int = 1,
                  membership_values: Tensor | None = None, n_targets: int = 1, nodes_hitrates: Tensor | None = None,
                  memo: Memo | None = None, nodes_missing_value_tracks_true: Ints | None = None,
                  post_transform: int = 0) -> Tensor:
  """Leaves have a table of their own here. In the forest they follow the other nodes."""
  if not 0 <= aggregate_function < 4 or not 0 <= post_transform < 5:
    raise ArgumentError(f"aggregate_function={aggregate_function} is 0 to 3, post_transform={post_transform} 0 to 4")
  forest = remembered(memo, "forest", lambda: _forest_of_tables(
    leaf_targetids, as_numbers(leaf_weights), nodes_falseleafs, nodes_falsenodeids, nodes_featureids,
    as_numbers(nodes_modes), as_numbers(nodes_splits), nodes_trueleafs, nodes_truenodeids, tree_roots,
    [] if membership_values is None else as_numbers(membership_values), nodes_missing_value_tracks_true))
  rows = rows_of(x)
  found = evaluated(forest, rows, n_targets, _AGGREGATES[aggregate_function], memo)
  return transformed(found, _TRANSFORMS[post_transform]).cast(x.dtype)

def _forest_of_tables(leaf_targetids: list[int], weights: list[float], nodes_falseleafs: list[int],
                      nodes_falsenodeids: list[int], nodes_featureids: list[int], codes: list[int],
                      splits: list[float], nodes_trueleafs: list[int], nodes_truenodeids: list[int],
                      roots: list[int], membership: list[float], tracks: list[int] | None) -> Forest:
  """Return the forest of TreeEnsemble's attributes."""
  names, inner = (*_COMPARE, MEMBER), len(nodes_featureids)
  lists = (nodes_falseleafs, nodes_falsenodeids, codes, splits, nodes_trueleafs, nodes_truenodeids,
           tracks or codes)
  if any(len(found) != inner for found in lists) or len(weights) != len(leaf_targetids):
    raise ArgumentError("the attributes of TreeEnsemble's nodes or leaves have different lengths")
  if any(not 0 <= code < len(names) for code in codes):
    raise ArgumentError(f"nodes_modes has one of {sorted(set(codes))[:8]}, and 0 to 6 are known")
  leaf = len(weights)
  modes = [names[code] for code in codes] + [LEAF] * leaf
  sets, members = iter(_sets(membership)), {}
  for i, mode in enumerate(modes):
    if mode == MEMBER: members[i] = next(sets, [])
  def children(ids: list[int], leaves: list[int]) -> list[int]:
    return [i + inner if is_leaf else i for i, is_leaf in zip(ids, leaves)] + [0] * leaf
  return Forest(roots, modes, nodes_featureids + [0] * leaf, splits + [0.0] * leaf,
                children(nodes_truenodeids, nodes_trueleafs), children(nodes_falsenodeids, nodes_falseleafs),
                (tracks or [0] * inner) + [0] * leaf, members,
                [(inner + i, target, w) for i, (target, w) in enumerate(zip(leaf_targetids, weights))])

def _sets(values: list[float]) -> list[list[float]]:
  """Return lists of numbers that NaN ends."""
  found: list[list[float]] = [[]]
  for value in values:
    if math.isnan(value): found.append([])
    else: found[-1].append(value)
  return found

class Nodes(NamedTuple):
  """The attributes of nodes until version 4. Nodes are named by their tree and their number in it."""
  trees: list[int]
  ids: list[int]
  modes: list[str]
  features: list[int]
  values: list[float]
  yes: list[int]
  no: list[int]
  missing: list[int]

def _forest(n: Nodes, trees: list[int], nodes: list[int], targets: list[int], weights: list[float]) -> Forest:
  """Return the forest of named nodes, and of weights of (tree, node, target)."""
  count = len(n.ids)
  if any(len(part) != count for part in n) or not len(trees) == len(nodes) == len(targets) == len(weights):
    raise ArgumentError("the attributes of a tree ensemble's nodes or weights have different lengths")
  for mode in n.modes:
    if mode not in _COMPARE and mode != LEAF:
      raise ArgumentError(f"a node's mode is LEAF or one of {', '.join(_COMPARE)}, not {mode!r}")
  place = {key: i for i, key in enumerate(zip(n.trees, n.ids))}
  def named(tree: int, node: int) -> int:
    if (tree, node) not in place: raise ArgumentError(f"tree {tree} has no node {node}")
    return place[tree, node]
  def children(ids: list[int]) -> list[int]:
    return [0 if mode == LEAF else named(tree, i) for tree, i, mode in zip(n.trees, ids, n.modes)]
  yes, no = children(n.yes), children(n.no)
  below = {child for i, mode in enumerate(n.modes) if mode != LEAF for child in (yes[i], no[i])}
  return Forest([i for i in range(count) if i not in below], n.modes, n.features, n.values, yes, no, n.missing, {},
                [(named(*row[:2]), *row[2:]) for row in zip(trees, nodes, targets, weights)])

def _either(floats: list[float] | None, tensor: Tensor | None) -> list[float]:
  return floats if floats else [] if tensor is None else as_numbers(tensor)

def _nodes(trees: Any, ids: Any, modes: Any, features: Any, values: Any, yes: Any, no: Any, missing: Any) -> Nodes:
  return Nodes(trees or [], ids or [], modes or [], features or [], values, yes or [], no or [],
               missing or [0] * len(ids or []))

@operator("TreeEnsembleRegressor", 1, ML)
def tree_ensemble_regressor(
    x: Tensor, *, aggregate_function: str = "SUM", base_values: Floats | None = None,
    base_values_as_tensor: Tensor | None = None, memo: Memo | None = None, n_targets: int = 1,
    nodes_falsenodeids: Ints | None = None,
    nodes_featureids: Ints | None = None, nodes_hitrates: Floats | None = None,
    nodes_hitrates_as_tensor: Tensor | None = None, nodes_missing_value_tracks_true: Ints | None = None,
    nodes_modes: Strings | None = None, nodes_nodeids: Ints | None = None, nodes_treeids: Ints | None = None,
    nodes_truenodeids: Ints | None = None, nodes_values: Floats | None = None,
    nodes_values_as_tensor: Tensor | None = None, post_transform: str = "NONE", target_ids: Ints | None = None,
    target_nodeids: Ints | None = None, target_treeids: Ints | None = None, target_weights: Floats | None = None,
    target_weights_as_tensor: Tensor | None = None) -> Tensor:
  forest = remembered(memo, "forest", lambda: _forest(
    _nodes(nodes_treeids, nodes_nodeids, nodes_modes, nodes_featureids, _either(nodes_values, nodes_values_as_tensor),
           nodes_truenodeids, nodes_falsenodeids, nodes_missing_value_tracks_true),
    target_treeids or [], target_nodeids or [], target_ids or [], _either(target_weights, target_weights_as_tensor)))
  rows = rows_of(x)
  total = evaluated(forest, rows, n_targets, aggregate_function, memo)
  base = _either(base_values, base_values_as_tensor)
  if base: total = total + Tensor(base, dtype=rows.dtype, device=x.device)
  return transformed(total, post_transform).cast(dtypes.float32)

@operator("TreeEnsembleClassifier", 1, ML)
def tree_ensemble_classifier(
    x: Tensor, *, base_values: Floats | None = None, base_values_as_tensor: Tensor | None = None,
    class_ids: Ints | None = None, class_nodeids: Ints | None = None, class_treeids: Ints | None = None,
    class_weights: Floats | None = None, class_weights_as_tensor: Tensor | None = None,
    classlabels_int64s: Ints | None = None, classlabels_strings: Strings | None = None, memo: Memo | None = None,
    nodes_falsenodeids: Ints | None = None, nodes_featureids: Ints | None = None, nodes_hitrates: Floats | None = None,
    nodes_hitrates_as_tensor: Tensor | None = None, nodes_missing_value_tracks_true: Ints | None = None,
    nodes_modes: Strings | None = None, nodes_nodeids: Ints | None = None, nodes_treeids: Ints | None = None,
    nodes_truenodeids: Ints | None = None, nodes_values: Floats | None = None,
    nodes_values_as_tensor: Tensor | None = None, post_transform: str = "NONE", outputs: Outputs = 2) -> Any:
  """Return the labels and the scores of all classes. Of two classes, weights may be given for one alone: its score s
  makes the other's 1 - s if no weight is negative, else -s."""
  weights, ids = _either(class_weights, class_weights_as_tensor), class_ids or []
  classes = max(label_count(classlabels_int64s, classlabels_strings), 1)
  alone = classes == 2 and len(set(ids)) == 1
  forest = remembered(memo, "forest", lambda: _forest(
    _nodes(nodes_treeids, nodes_nodeids, nodes_modes, nodes_featureids, _either(nodes_values, nodes_values_as_tensor),
           nodes_truenodeids, nodes_falsenodeids, nodes_missing_value_tracks_true),
    class_treeids or [], class_nodeids or [], [0] * len(ids) if alone else ids, weights))
  rows = rows_of(x)
  scores = evaluated(forest, rows, 1 if alone else classes, "SUM", memo)
  base = _either(base_values, base_values_as_tensor)
  if base: scores = scores + Tensor(base[-1:] if alone else base, dtype=rows.dtype, device=x.device)
  if alone: index, scores = of_one_score(scores, min(weights, default=0.0) >= 0, post_transform)
  else: index, scores = scores.argmax(1), transformed(scores, post_transform)
  return labelled(index, classlabels_int64s, classlabels_strings), scores.cast(dtypes.float32)

def of_one_score(score: Tensor, is_probability: bool, transform: str) -> tuple[Tensor, Tensor]:
  """Return the class (0 or 1) and the scores of both, from the score of class 1."""
  index = (score.squeeze(1) > (0.5 if is_probability else 0)).cast(dtypes.int32)
  if transform == "PROBIT": return index, (1 - score).cat(transformed(score, transform), dim=1)
  if is_probability: return index, (1 - score).cat(score, dim=1)
  return index, transformed((-score).cat(score, dim=1), transform)
