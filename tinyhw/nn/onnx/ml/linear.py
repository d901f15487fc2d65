"""Linear models and support vector machines of ai.onnx.ml. Source: ONNX operator schemas; Chang and Lin, LIBSVM."""
from __future__ import annotations
from typing import Any

from tinyhw.dtype import dtypes
from tinyhw.errors import ArgumentError
from tinyhw.nn.onnx.ml.features import ML
from tinyhw.nn.onnx.ml.scores import label_count, labelled, rows_of, transformed
from tinyhw.nn.onnx.operator import Floats, Ints, Outputs, Strings, as_numbers, operator
from tinyhw.tensor import Tensor

def _matrix(values: list[float], columns: int, like: Tensor, what: str) -> Tensor:
  """Return numbers as rows of a number of columns."""
  if columns < 1 or len(values) % columns:
    raise ArgumentError(f"the {len(values)} numbers of {what} are no rows of {columns}")
  return Tensor(values, dtype=like.dtype, device=like.device).reshape(-1, columns)

def _scores(x: Tensor, coefficients: list[float], intercepts: list[float] | None) -> Tensor:
  """Return a row of scores for each row of features, one for each row of coefficients."""
  found = x.matmul(_matrix(coefficients, int(x.shape[1]), x, "coefficients").transpose())
  return found + Tensor(intercepts, dtype=x.dtype, device=x.device) if intercepts else found

@operator("LinearRegressor", 1, ML)
def linear_regressor(x: Tensor, *, coefficients: Floats | None = None, intercepts: Floats | None = None,
                     post_transform: str = "NONE", targets: int = 1) -> Tensor:
  found = _scores(rows_of(x), coefficients or [], intercepts)
  if int(found.shape[1]) != targets: raise ArgumentError(f"coefficients for {found.shape[1]} targets, not {targets}")
  return transformed(found, post_transform).cast(dtypes.float32)

@operator("LinearClassifier", 1, ML)
def linear_classifier(x: Tensor, *, coefficients: Floats, classlabels_ints: Ints | None = None,
                      classlabels_strings: Strings | None = None, intercepts: Floats | None = None,
                      multi_class: int = 0, post_transform: str = "NONE", outputs: Outputs = 2) -> Any:
  """Return labels and scores. Of two classes, coefficients may be given for the second alone."""
  scores = _scores(rows_of(x), coefficients, intercepts)
  labels = label_count(classlabels_ints, classlabels_strings)
  if int(scores.shape[1]) == 1 and labels == 2: scores = (-scores).cat(scores, dim=1)
  if labels and labels != int(scores.shape[1]):
    raise ArgumentError(f"{labels} labels, and coefficients for {scores.shape[1]} classes")
  return (labelled(scores.argmax(1), classlabels_ints, classlabels_strings),
          transformed(scores, post_transform).cast(dtypes.float32))

# ***** support vector machines *****

def _kernel(x: Tensor, vectors: Tensor, kind: str, params: list[float] | None) -> Tensor:
  """Return the kernel of each row of features and each support vector. params: gamma, coef0, degree."""
  gamma, coef0, degree = params if params and len(params) == 3 else (0.0, 0.0, 0.0)
  if kind == "RBF":
    apart = x.unsqueeze(1) - vectors.unsqueeze(0)
    return (apart.square().sum(2) * -gamma).exp()
  product = x.matmul(vectors.transpose())
  if kind == "LINEAR": return product
  if kind == "POLY": return (product * gamma + coef0).pow(int(degree))
  if kind == "SIGMOID": return (product * gamma + coef0).tanh()
  raise ArgumentError(f"kernel_type is LINEAR, POLY, RBF or SIGMOID, not {kind!r}")

@operator("SVMRegressor", 1, ML)
def svm_regressor(x: Tensor, *, coefficients: Floats | None = None, kernel_params: Floats | None = None,
                  kernel_type: str = "LINEAR", n_supports: int = 0, one_class: int = 0, post_transform: str = "NONE",
                  rho: Floats | None = None, support_vectors: Floats | None = None) -> Tensor:
  """Return a score for each row; of one class: 1 inside, -1 outside."""
  rows, weights = rows_of(x), coefficients or []
  if n_supports > 0:
    vectors = _matrix(support_vectors or [], int(rows.shape[1]), rows, "support_vectors")
    products = _kernel(rows, vectors, kernel_type, kernel_params)
  else: products = rows
  found = _scores(products, weights, (rho or [])[:1])
  if one_class: found = (found > 0).where(1.0, -1.0)
  return transformed(found, post_transform).cast(dtypes.float32)

@operator("SVMClassifier", 1, ML)
def svm_classifier(x: Tensor, *, classlabels_ints: Ints | None = None, classlabels_strings: Strings | None = None,
                   coefficients: Floats | None = None, kernel_params: Floats | None = None, kernel_type: str = "LINEAR",
                   post_transform: str = "NONE", prob_a: Floats | None = None, prob_b: Floats | None = None,
                   rho: Floats | None = None, support_vectors: Floats | None = None,
                   vectors_per_class: Ints | None = None, outputs: Outputs = 2) -> Any:
  """Return labels and scores: with support vectors those of all pairs of classes, which vote, or probabilities if
  prob_a and prob_b are given; without, those of the classes."""
  rows, weights, offsets = rows_of(x), coefficients or [], rho or []
  classes = max(label_count(classlabels_ints, classlabels_strings), 1)
  if not vectors_per_class or not sum(vectors_per_class):
    scores = _scores(rows, weights, offsets[:1])
    return (labelled(scores.argmax(1), classlabels_ints, classlabels_strings),
            transformed(scores, post_transform).cast(dtypes.float32))
  pairs = [(i, j) for i in range(classes) for j in range(i + 1, classes)]
  if len(vectors_per_class) != classes or len(offsets) < len(pairs):
    raise ArgumentError(f"{classes} classes want as many vectors_per_class and {len(pairs)} numbers rho")
  vectors = _matrix(support_vectors or [], int(rows.shape[1]), rows, "support_vectors")
  products = _kernel(rows, vectors, kernel_type, kernel_params)
  table = _matrix(weights, int(vectors.shape[0]), rows, "coefficients")
  starts = [sum(vectors_per_class[:i]) for i in range(classes + 1)]
  columns = []
  for k, (i, j) in enumerate(pairs):
    own, other = slice(starts[i], starts[i + 1]), slice(starts[j], starts[j + 1])
    columns.append((products[:, own] * table[j - 1, own]).sum(1) + (products[:, other] * table[i, other]).sum(1)
                   + offsets[k])
  decisions = columns[0].stack(*columns[1:], dim=1)
  if prob_a and prob_b:
    if min(len(prob_a), len(prob_b)) < len(pairs): raise ArgumentError(f"prob_a and prob_b want {len(pairs)} numbers")
    scores = _probabilities(decisions, prob_a, prob_b, classes, pairs)
  else: scores = decisions
  votes = _votes(decisions, classes, pairs)
  if int(scores.shape[1]) == 1: scores = (-scores).cat(scores, dim=1)
  return (labelled(votes.argmax(1), classlabels_ints, classlabels_strings),
          transformed(scores, post_transform).cast(dtypes.float32))

def _votes(decisions: Tensor, classes: int, pairs: list[tuple[int, int]]) -> Tensor:
  """Return how many pairs each class wins. The first of a pair wins if the decision is positive."""
  first = [[1.0 if c == i else 0.0 for c in range(classes)] for i, _ in pairs]
  second = [[1.0 if c == j else 0.0 for c in range(classes)] for _, j in pairs]
  won = (decisions > 0).cast(dtypes.float32)
  return won.matmul(Tensor(first, device=decisions.device)) + (1 - won).matmul(Tensor(second, device=decisions.device))

def _probabilities(decisions: Tensor, a: list[float], b: list[float], classes: int,
                   pairs: list[tuple[int, int]]) -> Tensor:
  """Return probabilities of classes that fit those of all pairs best. They are computed on the host, row by row.

  Source: Wu, Lin and Weng 2004, method 2.
  """
  slope, shift = (Tensor(part[:len(pairs)], dtype=decisions.dtype, device=decisions.device) for part in (a, b))
  chances = as_numbers((1 - (decisions * slope + shift).sigmoid()).clamp(1e-7, 1 - 1e-7))
  rows = [_coupled(chances[i:i + len(pairs)], classes, pairs) for i in range(0, len(chances), len(pairs))]
  return Tensor(rows, dtype=decisions.dtype, device=decisions.device)

def _coupled(chances: list[float], classes: int, pairs: list[tuple[int, int]]) -> list[float]:
  """Minimize the sum of (r[j][i] p[i] - r[i][j] p[j])² over all pairs, by coordinates."""
  r = [[0.0] * classes for _ in range(classes)]
  for (i, j), chance in zip(pairs, chances): r[i][j], r[j][i] = chance, 1 - chance
  q = [[sum(r[k][i] ** 2 for k in range(classes) if k != i) if i == j else -r[j][i] * r[i][j]
        for j in range(classes)] for i in range(classes)]
  p = [1 / classes] * classes
  for _ in range(max(100, classes)):
    gradient = [sum(q[i][j] * p[j] for j in range(classes)) for i in range(classes)]
    total = sum(x * g for x, g in zip(p, gradient))
    if max(abs(g - total) for g in gradient) < 0.005 / classes: break
    for i in range(classes):
      step = (total - gradient[i]) / q[i][i]
      p[i] += step
      total = (total + step * (step * q[i][i] + 2 * gradient[i])) / (1 + step) ** 2
      p = [x / (1 + step) for x in p]
      gradient = [(g + step * q[i][j]) / (1 + step) for j, g in enumerate(gradient)]
  return p
