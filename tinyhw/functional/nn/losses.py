"""Losses with PyTorch's parameters. `reduction` is "mean", "sum" or "none"; size_average and reduce are its old names.

Source of the formulas: PyTorch's documentation.
"""
from __future__ import annotations
import math
from typing import Any

from tinyhw.dtype import dtypes
from tinyhw.errors import ArgumentError, DTypeError, ShapeError
from tinyhw.functional.known import is_known, want_all, want_index
from tinyhw.functional.operands import as_row, broadcast, checked, common_shape, reduced, sizes, want_float
from tinyhw.functional.products import pairwise_distance, tensordot
from tinyhw.functional.reductions import log_softmax
from tinyhw.methods.base import Handle
from tinyhw.tensor import Tensor

def _reduction(size_average: Any, reduce: Any, reduction: str) -> str:
  """Return the reduction that the old flags name."""
  if size_average is None and reduce is None: return reduction
  if reduce is False: return "none"
  return "sum" if size_average is False else "mean"

def _both(what: str, input: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
  a, b = broadcast(checked(what, input), checked(what, target))
  return a, b

def _same(what: str, input: Tensor, target: Tensor) -> None:
  if sizes(checked(what, input)) != sizes(checked(what, target)):
    raise ShapeError(f"{what} wants a target of shape {input.shape}, not {target.shape}")

def mse_loss(input: Tensor, target: Tensor, size_average: Any = None, reduce: Any = None, reduction: str = "mean",
             weight: Tensor | None = None) -> Tensor:
  """Return (input - target)**2."""
  a, b = _both("mse_loss", input, target)
  return _weighted(a.sub(b).square(), weight, _reduction(size_average, reduce, reduction))

def l1_loss(input: Tensor, target: Tensor, size_average: Any = None, reduce: Any = None, reduction: str = "mean",
            weight: Tensor | None = None) -> Tensor:
  """Return |input - target|."""
  a, b = _both("l1_loss", input, target)
  return _weighted(a.sub(b).abs(), weight, _reduction(size_average, reduce, reduction))

def _weighted(losses: Tensor, weight: Tensor | None, reduction: str) -> Tensor:
  if weight is None: return reduced(losses, reduction)
  if sizes(weight) != sizes(losses): raise ShapeError(f"weight has shape {weight.shape}, not {losses.shape}")
  total = losses.mul(weight)
  return total.sum().div(weight.sum()) if reduction == "mean" else reduced(total, reduction)

def smooth_l1_loss(input: Tensor, target: Tensor, size_average: Any = None, reduce: Any = None,
                   reduction: str = "mean", beta: float = 1.0) -> Tensor:
  """Return 0.5 d**2 / beta where d = |input - target| is below beta, else d - 0.5 beta."""
  if beta < 0: raise ArgumentError(f"beta is {beta}; it is not negative")
  if beta == 0: return l1_loss(input, target, size_average, reduce, reduction)
  a, b = _both("smooth_l1_loss", input, target)
  d = a.sub(b).abs()
  return reduced(d.lt(beta).where(d.square().mul(0.5 / beta), d.sub(0.5 * beta)), _reduction(size_average, reduce,
                                                                                              reduction))

def huber_loss(input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0,
               weight: Tensor | None = None) -> Tensor:
  """Return 0.5 d**2 where d = |input - target| is at most delta, else delta * (d - 0.5 delta)."""
  if delta <= 0: raise ArgumentError(f"delta is {delta}; it must be positive")
  a, b = _both("huber_loss", input, target)
  d = a.sub(b).abs()
  return _weighted(d.le(delta).where(d.square().mul(0.5), d.sub(0.5 * delta).mul(delta)), weight, reduction)

def binary_cross_entropy(input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: Any = None,
                         reduce: Any = None, reduction: str = "mean") -> Tensor:
  """Return -(target log(input) + (1 - target) log(1 - input)), each logarithm -100 at least."""
  _same("binary_cross_entropy", input, target)
  for name, x in (("input", input), ("target", target)):
    want_all(f"binary_cross_entropy wants probabilities: {name} has elements outside of 0..1; apply sigmoid, or call "
             "binary_cross_entropy_with_logits", x.ge(0).bitwise_and(x.le(1)), x)
  losses = input.binary_crossentropy(target, "none")
  if not is_known(target): losses = (target.ge(0) & target.le(1)).where(losses, math.nan)    # as no check has seen it
  return reduced(losses if weight is None else losses.mul(weight), _reduction(size_average, reduce, reduction))

def binary_cross_entropy_with_logits(input: Tensor, target: Tensor, weight: Tensor | None = None,
                                     size_average: Any = None, reduce: Any = None, reduction: str = "mean",
                                     pos_weight: Tensor | None = None) -> Tensor:
  """Return the binary cross-entropy of sigmoid(input), without overflow."""
  _same("binary_cross_entropy_with_logits", input, target)
  losses = input.binary_crossentropy_logits(target, "none", pos_weight)
  return reduced(losses if weight is None else losses.mul(weight), _reduction(size_average, reduce, reduction))

# ***** classes *****

def _class_axis(x: Tensor) -> int: return 1 if x.ndim > 1 else 0

def nll_loss(input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: Any = None,
             ignore_index: int = -100, reduce: Any = None, reduction: str = "mean") -> Tensor:
  """Return -input at the class that target names along axis 1, times the class's weight."""
  reduction = _reduction(size_average, reduce, reduction)
  if not checked("nll_loss", input).ndim: raise ShapeError("nll_loss wants scores of classes, and has no axis")
  _check_classes("nll_loss", input, target, weight, ignore_index)
  if reduction not in ("mean", "sum", "none"):
    raise ArgumentError(f"reduction is 'mean', 'sum' or 'none', not {reduction!r}")
  losses, weights = _picked(input, target, weight, ignore_index)
  return losses.sum().div(weights.sum()) if reduction == "mean" else reduced(losses, reduction)

def _check_classes(what: str, input: Tensor, target: Tensor, weight: Tensor | None, ignore_index: int) -> None:
  axis = _class_axis(input)
  wanted = sizes(input)[:axis] + sizes(input)[axis + 1:]
  if sizes(checked(what, target)) != wanted:
    raise ShapeError(f"{what} wants classes of shape {wanted}, not {target.shape}")
  if dtypes.is_float(target.dtype): raise DTypeError(f"{what} wants classes as integers, not {target.dtype}")
  if weight is not None and sizes(weight) != (sizes(input)[axis],):
    raise ShapeError(f"{what} wants a weight for each of {sizes(input)[axis]} classes, not {weight.shape}")
  want_index(f"{what}: a class", target, sizes(input)[axis], 0, ignore_index)

def _picked(input: Tensor, target: Tensor, weight: Tensor | None, ignore_index: int) -> tuple[Tensor, Tensor]:
  counts = target.ne(ignore_index)
  safe = counts.where(target, 0)
  if not input.numel():
    zero = Tensor.zeros(*sizes(target), dtype=input.dtype)
    return zero, zero
  axis = _class_axis(input)
  found = input._at_class(safe, axis).neg()
  if not is_known(target):       # a class out of range that no check has seen is no silent 0
    found = (safe.ge(0) & safe.lt(sizes(input)[axis])).where(found, math.nan)
  weights = counts.cast(input.dtype)
  if weight is not None: weights = weights.mul(weight.gather(0, safe.reshape(-1)).reshape(sizes(target)))
  return counts.where(found, 0).mul(weights), weights

def cross_entropy(input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: Any = None,
                  ignore_index: int = -100, reduce: Any = None, reduction: str = "mean",
                  label_smoothing: float = 0.0) -> Tensor:
  """Return the cross-entropy of scores along axis 1 with classes, or with probabilities of the input's shape."""
  reduction = _reduction(size_average, reduce, reduction)
  if not 0 <= label_smoothing <= 1: raise ArgumentError(f"label_smoothing is {label_smoothing}; it is from 0 to 1")
  axis = _class_axis(input)
  classes = sizes(input)[axis]
  logs = log_softmax(input, axis)
  shape = [classes if i == axis else 1 for i in range(input.ndim)]
  if sizes(target) == sizes(input) and dtypes.is_float(target.dtype):
    shares = target.mul(1 - label_smoothing).add(label_smoothing / classes)
    losses = logs.mul(shares if weight is None else shares.mul(weight.reshape(shape))).sum(axis).neg()
    count = max(math.prod(sizes(losses)), 1)
    return losses.sum().div(count) if reduction == "mean" else reduced(losses, reduction)
  _check_classes("cross_entropy", input, target, weight, ignore_index)
  losses, weights = _picked(logs, target, weight, ignore_index)
  plain = losses.sum().div(weights.sum()) if reduction == "mean" else reduced(losses, reduction)
  if not label_smoothing: return plain
  smooth = (logs if weight is None else logs.mul(weight.reshape(shape))).sum(axis).neg()
  smooth = target.ne(ignore_index).where(smooth, 0)
  even = smooth.sum().div(weights.sum()) if reduction == "mean" else reduced(smooth, reduction)
  return plain.mul(1 - label_smoothing).add(even.mul(label_smoothing / classes))

def linear_cross_entropy(input: Tensor, linear_weight: Tensor, target: Tensor, **keywords: Any) -> Tensor:
  """Return the cross-entropy of input @ linear_weight^T. linear_weight: (C, ..., features), input: (N, features)."""
  bias = keywords.pop("linear_bias", None)
  for name in ("chunking_method", "chunking_strategy", "options", "grad_in_forward"): keywords.pop(name, None)
  if keywords.get("ignore_index", 0) is None: del keywords["ignore_index"]
  if "ignore_index" in keywords and dtypes.is_float(target.dtype):
    raise ArgumentError("ignore_index names a class, and the target has probabilities")
  if linear_weight.ndim > 2 and input.ndim < 2:
    raise ShapeError(f"a weight of {linear_weight.shape} wants a batch of inputs, not {input.shape}")
  scores = tensordot(input, linear_weight, ([-1], [-1]))
  return cross_entropy(scores if bias is None else scores.add(bias), target, **keywords)

def kl_div(input: Tensor, target: Tensor, size_average: Any = None, reduce: Any = None, reduction: str = "mean",
           log_target: bool = False) -> Tensor:
  """Return target * (log(target) - input). "batchmean" divides the sum by the size of the first axis."""
  a, b = _both("kl_div", input, target)
  if log_target: losses = b.exp().mul(b.sub(a))
  else:
    none = b.eq(0)
    losses = none.where(0, b.mul(none.where(1, b).log())).sub(b.mul(a))
  reduction = _reduction(size_average, reduce, reduction)
  if reduction == "batchmean": return losses.sum().div(max(sizes(as_row(input))[0], 1))
  return reduced(losses, reduction)

def poisson_nll_loss(input: Tensor, target: Tensor, log_input: bool = True, full: bool = False,
                     size_average: Any = None, eps: float = 1e-8, reduce: Any = None,
                     reduction: str = "mean") -> Tensor:
  """Return the negative log-likelihood of counts of a Poisson distribution. full: with Stirling's approximation."""
  a, b = _both("poisson_nll_loss", input, target)
  losses = a.exp().sub(b.mul(a)) if log_input else a.sub(b.mul(a.add(eps).log()))
  if full:
    large = b.gt(1)
    safe = large.where(b, 1)
    stirling = safe.mul(safe.log()).sub(safe).add(safe.mul(2 * math.pi).log().mul(0.5))
    losses = losses.add(large.where(stirling, 0))
  return reduced(losses, _reduction(size_average, reduce, reduction))

def gaussian_nll_loss(input: Tensor, target: Tensor, var: Any, full: bool = False, eps: float = 1e-6,
                      reduction: str = "mean") -> Tensor:
  """Return the negative log-likelihood of normal distributions with means and variances."""
  want_float("gaussian_nll_loss", checked("gaussian_nll_loss", input))
  spread = var._self() if isinstance(var, Handle) else Tensor(float(var), dtype=input.dtype)
  want_all("gaussian_nll_loss: a variance is negative", spread.ge(0), spread)
  if spread.ndim and sizes(spread) != sizes(input):
    if sizes(spread) == sizes(input)[:-1]: spread = spread.unsqueeze(-1)
    elif sizes(spread)[:-1] != sizes(input)[:-1] or sizes(spread)[-1] != 1:
      if common_shape(sizes(spread), sizes(input)) != sizes(input):
        raise ShapeError(f"gaussian_nll_loss: var has shape {spread.shape}, the input {input.shape}")
  safe = spread.lt(eps).where(spread.sub(spread.detach()).add(eps), spread)
  losses = safe.log().add(input.sub(target).square().div(safe)).mul(0.5)
  return reduced(losses.add(0.5 * math.log(2 * math.pi)) if full else losses, reduction)

# ***** margins *****

def hinge_embedding_loss(input: Tensor, target: Tensor, margin: float = 1.0, size_average: Any = None,
                         reduce: Any = None, reduction: str = "mean") -> Tensor:
  """Return input where target is 1, max(0, margin - input) where it is -1."""
  a, b = _both("hinge_embedding_loss", input, target)
  losses = b.ne(1).where(a.sub(margin, reverse=True).clamp(0, None), 0).add(b.ne(-1).where(a, 0))
  return reduced(losses, _reduction(size_average, reduce, reduction))

def margin_ranking_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0, size_average: Any = None,
                        reduce: Any = None, reduction: str = "mean") -> Tensor:
  """Return max(0, -target * (input1 - input2) + margin)."""
  if input1.ndim != input2.ndim or input1.ndim != target.ndim:
    raise ShapeError(f"margin_ranking_loss: {input1.shape}, {input2.shape} and {target.shape} differ in their axes")
  losses = target.neg().mul(input1.sub(input2)).add(margin).clamp(0, None)
  return reduced(losses, _reduction(size_average, reduce, reduction))

def soft_margin_loss(input: Tensor, target: Tensor, size_average: Any = None, reduce: Any = None,
                     reduction: str = "mean") -> Tensor:
  """Return log(1 + exp(-target * input))."""
  a, b = _both("soft_margin_loss", input, target)
  return reduced(a.mul(b).neg().softplus(), _reduction(size_average, reduce, reduction))

def multi_margin_loss(input: Tensor, target: Tensor, p: int = 1, margin: float = 1.0, weight: Tensor | None = None,
                      size_average: Any = None, reduce: Any = None, reduction: str = "mean") -> Tensor:
  """Return the mean over other classes of max(0, margin - x[class] + x[other])**p, times the class's weight."""
  if p not in (1, 2): raise ArgumentError(f"p is 1 or 2, not {p}")
  x = as_row(input)
  rows, y = (x.unsqueeze(0) if x.ndim == 1 else x), as_row(target)
  n, classes = sizes(rows)
  if sizes(y) != (n,): raise ShapeError(f"multi_margin_loss wants {n} classes, not {target.shape}")
  want_index("multi_margin_loss: a class", y, classes)
  if weight is not None and sizes(weight) != (classes,): raise ShapeError(f"weight has shape {weight.shape}")
  at = y.unsqueeze(1)
  gaps = rows.sub(rows.gather(1, at)).add(margin).clamp(0, None)
  gaps = gaps if p == 1 else gaps.square()
  if weight is not None: gaps = gaps.mul(weight.gather(0, y).unsqueeze(1))
  other = Tensor.arange(classes, dtype=dtypes.int32).ne(at)
  losses = other.where(gaps, 0).sum(1).div(classes)
  losses = losses if target.ndim else losses.squeeze(0)
  return reduced(losses, _reduction(size_average, reduce, reduction))

def multilabel_margin_loss(input: Tensor, target: Tensor, size_average: Any = None, reduce: Any = None,
                           reduction: str = "mean") -> Tensor:
  """Return the mean of max(0, 1 - x[class] + x[other]) over the listed classes, which end at -1, and all others."""
  _same("multilabel_margin_loss", input, target)
  x, y = as_row(input), as_row(target)
  x, y = (x.unsqueeze(0), y.unsqueeze(0)) if x.ndim == 1 else (x, y)
  n, classes = sizes(x)
  want_index("multilabel_margin_loss: a class", y, classes, -1)
  listed = y.lt(0).int().cumsum(1).eq(0)                                   # before the first -1
  names = listed.where(y, -1)
  is_class = names.unsqueeze(2).eq(Tensor.arange(classes, dtype=dtypes.int32)).any(1)
  at = x.gather(1, listed.where(y, 0))
  gaps = x.unsqueeze(1).sub(at.unsqueeze(2)).add(1).clamp(0, None)
  losses = (listed.unsqueeze(2) & is_class.logical_not().unsqueeze(1)).where(gaps, 0).sum((1, 2)).div(classes)
  losses = losses if input.ndim > 1 else losses.squeeze(0)
  return reduced(losses, _reduction(size_average, reduce, reduction))

def multilabel_soft_margin_loss(input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: Any = None,
                                reduce: Any = None, reduction: str = "mean") -> Tensor:
  """Return the mean over classes of the binary cross-entropy of logits."""
  losses = target.mul(input.logsigmoid()).add(target.sub(1, reverse=True).mul(input.neg().logsigmoid())).neg()
  losses = losses if weight is None else losses.mul(weight)
  return reduced(losses.mean(-1), _reduction(size_average, reduce, reduction))

def cosine_embedding_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0, size_average: Any = None,
                          reduce: Any = None, reduction: str = "mean") -> Tensor:
  """Return 1 - cos where target is 1, max(0, cos - margin) where it is -1."""
  cosine = _cosine(input1, input2)
  losses = target.eq(1).where(cosine.sub(1, reverse=True), 0).add(
    target.eq(-1).where(cosine.sub(margin).clamp(0, None), 0))
  return reduced(losses, _reduction(size_average, reduce, reduction))

def _cosine(a: Tensor, b: Tensor) -> Tensor:
  axis = a.ndim - 1
  if a.ndim not in (1, 2): raise ShapeError(f"cosine_embedding_loss wants vectors or rows, not {a.shape}")
  norm = a.square().sum(axis).add(1e-12).mul(b.square().sum(axis).add(1e-12))
  return a.mul(b).sum(axis).div(norm.sqrt())

def triplet_margin_loss(anchor: Tensor, positive: Tensor, negative: Tensor, margin: float = 1.0, p: float = 2,
                        eps: float = 1e-6, swap: bool = False, size_average: Any = None, reduce: Any = None,
                        reduction: str = "mean") -> Tensor:
  """Return max(0, d(anchor, positive) - d(anchor, negative) + margin). swap: the nearer of the two to the negative."""
  if margin <= 0: raise ArgumentError(f"margin is {margin}; it must be positive")
  def distance(a: Tensor, b: Tensor) -> Tensor: return pairwise_distance(a, b, p, eps)
  return triplet_margin_with_distance_loss(anchor, positive, negative, distance_function=distance, margin=margin,
                                           swap=swap, reduction=_reduction(size_average, reduce, reduction))

def triplet_margin_with_distance_loss(anchor: Tensor, positive: Tensor, negative: Tensor, *,
                                      distance_function: Any = None, margin: float = 1.0, swap: bool = False,
                                      reduction: str = "mean") -> Tensor:
  """Return the triplet margin loss by a distance; by default that of pairwise_distance."""
  if margin <= 0: raise ArgumentError(f"margin is {margin}; it must be positive")
  if not anchor.ndim == positive.ndim == negative.ndim:
    raise ShapeError(f"triplet_margin_loss: {anchor.shape}, {positive.shape} and {negative.shape} differ in their axes")
  distance = distance_function or pairwise_distance
  near, far = distance(anchor, positive), distance(anchor, negative)
  if swap: far = far.minimum(distance(positive, negative))
  return reduced(near.sub(far).add(margin).clamp(0, None), reduction)

def ctc_loss(log_probs: Tensor, targets: Tensor, input_lengths: Any, target_lengths: Any, blank: int = 0,
             reduction: str = "mean", zero_infinity: bool = False) -> Tensor:
  """Return the negative log-probability of label sequences. log_probs: (T, N, C) or (T, C).

  Source: Graves et al. 2006; the forward variables, in logarithms, one step after another.
  """
  batched = log_probs.ndim == 3
  logs = log_probs if batched else log_probs.unsqueeze(1)
  steps, n, classes = sizes(logs)
  if not 0 <= blank < classes: raise ArgumentError(f"blank is {blank}; it is a class from 0 to {classes - 1}")
  ends, lengths = _lengths("input_lengths", input_lengths, n, steps), _ctc_lengths(targets, target_lengths, n)
  labels = _labels(targets, lengths, n, blank)
  width = len(labels[0])
  names = Tensor(labels, dtype=dtypes.int32)
  skips = Tensor([[i > 1 and row[i] != blank and row[i] != row[i - 2] for i in range(width)] for row in labels])
  chances = logs.gather(2, names.unsqueeze(0).expand(steps, n, width))
  alpha = Tensor([[i < 2 and i < 2 * m + 1 for i in range(width)] for m in lengths]).where(chances[0], _NEVER)
  done = Tensor(ends, dtype=dtypes.int32)
  for t in range(1, steps):
    one = alpha.pad([None, (1, 0)], value=_NEVER)[:, :width]
    two = skips.where(alpha.pad([None, (2, 0)], value=_NEVER)[:, :width], _NEVER)
    moved = alpha.stack(one, two, dim=0).logsumexp(0).add(chances[t])
    alpha = done.gt(t).unsqueeze(1).where(moved, alpha).contiguous()
  final = Tensor([[i in (2 * m, 2 * m - 1) for i in range(width)] for m in lengths])
  losses = final.where(alpha, _NEVER).logsumexp(1).neg()
  seen = done.reshape(1, n, 1).gt(Tensor.arange(steps, dtype=dtypes.int32).reshape(steps, 1, 1))
  sums = seen.where(logs.exp(), 0).sum((0, 2))         # the count of steps, if the logarithms are normalized
  losses = losses.add(sums.sub(sums.detach()))         # so their gradient is PyTorch's: that before log_softmax
  losses = losses.detach().gt(-_NEVER / 2).where(0.0 if zero_infinity else math.inf, losses)
  if reduction == "mean": return losses.div(Tensor([float(max(m, 1)) for m in lengths], dtype=losses.dtype)).mean()
  return reduced(losses if batched else losses.squeeze(0), reduction)

_NEVER = -1e30      # the logarithm of no chance, whose gradient is 0 and not NaN

def _ctc_lengths(targets: Tensor, lengths: Any, n: int) -> list[int]:
  """Return the counts of labels. A matrix of targets has a row for each sequence, a vector has them in a row."""
  if targets.ndim > 1: return _lengths("target_lengths", lengths, n, sizes(targets)[-1])
  found = _lengths("target_lengths", lengths, n, sizes(as_row(targets))[0])
  if sum(found) > sizes(as_row(targets))[0]:
    raise ShapeError(f"ctc_loss: target_lengths sum to {sum(found)}, and there are {targets.numel()} targets")
  return found

def _lengths(what: str, x: Any, n: int, most: int) -> list[int]:
  found = as_row(x._self()).tolist() if isinstance(x, Handle) else list(x) if isinstance(x, (tuple, list)) else [x]
  if len(found) != n: raise ShapeError(f"ctc_loss wants a length for each of {n} sequences, not {len(found)}")
  bad = next((d for d in found if not 0 <= d <= most), None)
  if bad is not None: raise ArgumentError(f"ctc_loss: one of {what} is {bad}; it must be from 0 to {most}")
  return [int(d) for d in found]

def _labels(targets: Tensor, lengths: list[int], n: int, blank: int) -> list[list[int]]:
  """Return each label sequence with blanks around each label, all of one length."""
  found = targets.tolist()
  if targets.ndim < 2:
    ends = [sum(lengths[:i + 1]) for i in range(n)]
    rows = [found[end - m:end] for end, m in zip(ends, lengths)]
  else: rows = [row[:m] for row, m in zip(found, lengths)]
  width = 2 * max(lengths, default=0) + 1
  spread = [[blank] + [c for label in row for c in (label, blank)] for row in rows]
  return [row + [blank] * (width - len(row)) for row in spread]

