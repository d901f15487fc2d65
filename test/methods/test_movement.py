"""Movement against NumPy."""
import numpy as np
import pytest

from test.helpers import check_gradient, compare, same
from tinyhw.errors import ArgumentError, IndexRangeError, ShapeError
from tinyhw.tensor import Tensor
from tinyhw.uop.ops import UOp

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)

@pytest.mark.slow
@pytest.mark.parametrize("f, g", [
  (lambda t: t.reshape(6, 4), lambda a: a.reshape(6, 4)), (lambda t: t.reshape((4, -1)), lambda a: a.reshape(4, 6)),
    (lambda t: t.view(None, 12), lambda a: a.reshape(2, 12)),
  (lambda t: t.permute(2, 0, 1), lambda a: a.transpose(2, 0, 1)),
  (lambda t: t.transpose(-1, 0), lambda a: a.swapaxes(-1, 0)),
  (lambda t: t.transpose(), lambda a: a.swapaxes(0, 1)), (lambda t: t.flip(1), lambda a: np.flip(a, 1)),
  (lambda t: t.flip((0, -1)), lambda a: np.flip(a, (0, 2))),
  (lambda t: t.flatten(), lambda a: a.reshape(-1)), (lambda t: t.flatten(1), lambda a: a.reshape(2, 12)),
  (lambda t: t.flatten(0, 1), lambda a: a.reshape(6, 4)),
  (lambda t: t.unflatten(2, (2, -1)), lambda a: a.reshape(2, 3, 2, 2)),
  (lambda t: t.unsqueeze(1), lambda a: a[:, None]),
  (lambda t: t.unsqueeze(-1), lambda a: a[..., None]),
  (lambda t: t.unsqueeze(0).squeeze(), lambda a: a), (lambda t: t.unsqueeze(0).squeeze(0), lambda a: a),
  (lambda t: t.squeeze(1), lambda a: a),
  (lambda t: t.reshape(2, 1, 3, 4).expand(2, 5, 3, 4), lambda a: np.broadcast_to(a[:, None], (2, 5, 3, 4))),
  (lambda t: t.expand(3, -1, -1, -1), lambda a: np.broadcast_to(a, (3, 2, 3, 4))),
  (lambda t: t.shrink(((0, 1), None, (1, 3))), lambda a: a[0:1, :, 1:3]),
  (lambda t: t.shrink_to(1, None, 2), lambda a: a[:1, :, :2]),
  (lambda t: t.pad(((1, 0), None, (0, 2))), lambda a: np.pad(a, ((1, 0), (0, 0), (0, 2)))),
  (lambda t: t.pad((1, 2), value=7), lambda a: np.pad(a, ((0, 0), (0, 0), (1, 2)), constant_values=7)),
  (lambda t: t.pad((-1, 2, 1, -1)), lambda a: np.pad(a[:, :2, 1:], ((0, 0), (1, 0), (0, 2)))),
  (lambda t: t.pad((1, 2, 2, 1), mode="reflect"), lambda a: np.pad(a, ((0, 0), (2, 1), (1, 2)), mode="reflect")),
  (lambda t: t.pad((1, 2, 2, 1), mode="replicate"), lambda a: np.pad(a, ((0, 0), (2, 1), (1, 2)), mode="edge")),
  (lambda t: t.pad((1, 2, 2, 1), mode="circular"), lambda a: np.pad(a, ((0, 0), (2, 1), (1, 2)), mode="wrap")),
  (lambda t: t.pad_to(2, 5, None), lambda a: np.pad(a, ((0, 0), (0, 2), (0, 0)))),
  (lambda t: t.repeat(2, 1, 3), lambda a: np.tile(a, (2, 1, 3))),
  (lambda t: t.repeat(2, 1, 1, 2), lambda a: np.tile(a, (2, 1, 1, 2))),
  (lambda t: t.repeat_interleave(2, 1), lambda a: a.repeat(2, 1)),
  (lambda t: t.repeat_interleave(3), lambda a: a.repeat(3)), (lambda t: t.roll(1, 1), lambda a: np.roll(a, 1, 1)),
  (lambda t: t.roll((1, -5), (0, 2)), lambda a: np.roll(a, (1, -5), (0, 2))),
  (lambda t: t.roll(5), lambda a: np.roll(a, 5)),
  (lambda t: t.cat(t, t, dim=1), lambda a: np.concatenate([a, a, a], 1)),
  (lambda t: t.stack(t, dim=-1), lambda a: np.stack([a, a], -1)),
  (lambda t: t.diagonal(), lambda a: a.diagonal()), (lambda t: t.diagonal(1, 1, 2), lambda a: a.diagonal(1, 1, 2)),
  (lambda t: t.diagonal(-2, 1, 2), lambda a: a.diagonal(-2, 1, 2)),
  (lambda t: t.unfold(2, 2, 1), lambda a: np.lib.stride_tricks.sliding_window_view(a, 2, 2)),
  (lambda t: t.unfold(1, 2, 1), lambda a: np.lib.stride_tricks.sliding_window_view(a, 2, 1)),
  (lambda t: t.unfold(2, 3, 2), lambda a: np.lib.stride_tricks.sliding_window_view(a, 3, 2)[:, :, ::2]),
  (lambda t: t.rearrange("a b c -> (c a) b"), lambda a: a.transpose(2, 0, 1).reshape(8, 3)),
  (lambda t: t.rearrange("a b (c d) -> a d (b c)", d=2),
   lambda a: a.reshape(2, 3, 2, 2).transpose(0, 3, 1, 2).reshape(2, 2, 6)),
  (lambda t: t.rearrange("... c -> c ... 1"), lambda a: a.transpose(2, 0, 1)[..., None]),
  (lambda t: t.rearrange("… c -> c … 1"), lambda a: a.transpose(2, 0, 1)[..., None])])
def test_against_numpy(f, g):
  compare(f, g, X)
  if not any(name in f.__code__.co_names for name in ("squeeze",)): check_gradient(f, X)

@pytest.mark.slow
def test_parts():
  same(Tensor(X).split(3, dim=2), [X[..., :3], X[..., 3:]])
  same(Tensor(X).split([1, 3], 2), [X[..., :1], X[..., 1:]])
  same(Tensor(X).chunk(2, dim=1), [X[:, :2], X[:, 2:]])
  same(Tensor([1, 2]).meshgrid(Tensor([3, 4, 5])), np.meshgrid([1, 2], [3, 4, 5], indexing="ij"), types=False)
  same(Tensor([1, 2]).meshgrid(Tensor([3, 4, 5]), indexing="xy"), np.meshgrid([1, 2], [3, 4, 5]), types=False)
  same(Tensor(X).stack([Tensor(X)]), np.stack([X, X]))
  same(Tensor.stack([Tensor(X), Tensor(X)], dim=1), np.stack([X, X], 1))
  same(Tensor.cat([Tensor(X), Tensor(X)], dim=-1), np.concatenate([X, X], -1))
  same(Tensor(X).cat((Tensor(X),)), np.concatenate([X, X]))
  for wrong in ([], [1.0], 3, None):
    for together in (Tensor.cat, Tensor.stack):
      with pytest.raises(ArgumentError, match="wants Tensors, or a list of them"): together(wrong)
  assert (Tensor(X).size() == (2, 3, 4) and Tensor(X).size(-1) == 4 and Tensor(X).numel() == 24
          and Tensor(X).nbytes() == 96)
  assert Tensor(X[0]).T.shape == (4, 3) and Tensor([1.0]).T.shape == (1,)

def test_scalars_and_empties():
  x = Tensor(3.0)
  assert x.reshape(1, 1).shape == (1, 1) and x.expand(2, 2).tolist() == [[3.0, 3.0]] * 2 and x.flatten().shape == (1,
    ) and x.unsqueeze(0).shape == (1,)
  empty = Tensor(np.zeros((0, 3), np.float32))
  assert (empty.reshape(3, 0).tolist() == [[], [], []] and empty.T.shape == (3, 0)
          and empty.cat(Tensor.ones(2, 3)).shape == (2, 3))
  assert empty.pad(((1, 0), None)).tolist() == [[0.0] * 3] and empty.repeat(2, 2).shape == (0, 6)

@pytest.mark.slow
def test_cat_promotes():
  same(Tensor([1]).cat(Tensor([2.5])), np.array([1, 2.5], np.float32))
  assert Tensor([True]).cat(Tensor([False])).tolist() == [True, False]

@pytest.mark.parametrize("f, error, text", [
  (lambda t: t.reshape(5, -1), ShapeError, "24 elements are not a multiple of 5"),
    (lambda t: t.reshape(5, 5), ShapeError, "cannot reshape .* to .*24 elements do not make 25"),
  (lambda t: t.expand(2, 3, 5), ShapeError, "axis -1 is 4, and only 1"),
  (lambda t: t.permute(0, 0, 1), ShapeError, "each of the 3 axes once"),
  (lambda t: t.transpose(0, 3), IndexRangeError, "axis 3 does not exist"),
  (lambda t: t.shrink(((0, 3), None, None)), IndexRangeError, "cannot take 0 to 3 of axis 0"),
  (lambda t: t.pad((1, 1, 1)), ShapeError, "two counts"),
  (lambda t: t.pad((4, 0), mode="reflect"), ShapeError, "at most 3"),
  (lambda t: t.pad((1, 1), mode="x"), ArgumentError, "mode"),
  (lambda t: t.cat(Tensor.ones(2, 2), dim=0), ShapeError, "cannot cat"),
  (lambda t: t.stack(Tensor.ones(2)), ShapeError, "cannot stack"),
  (lambda t: t.split(0), ArgumentError, "part is 0"),
  (lambda t: t.flip((0, 0)), ArgumentError, "twice"), (lambda t: t.rearrange("a b -> b a"), ShapeError, "does not fit"),
  (lambda t: t.split([2, -1, 1]), ArgumentError, "part is -1"),
  (lambda t: t.unfold(0, 1, 0), ArgumentError, "step is 0"),
  (lambda t: t.repeat(1, -1, 1), ArgumentError, "not negative"),
  (lambda t: t.repeat_interleave(-1), ArgumentError, "at least 0"),
  (lambda t: t.sum().cat(t.sum()), ShapeError, "cannot cat a tensor of shape ()"),
  (lambda t: t.sum().split(1), ShapeError, "no axes"),
  (lambda t: t.sum().chunk(2), ShapeError, "no axes"), (lambda t: t.sum().unflatten(0, (1, 1)), ShapeError, "no axes"),
  (lambda t: t.sum().size(0), ShapeError, "no axes"), (lambda t: t.pad(1), ArgumentError, "a tuple of counts, not 1"),
  (lambda t: t.shrink(1), ArgumentError, "a pair or None"),
  (lambda t: t.rearrange("a b c -> a b d"), ArgumentError, "same names")])
def test_refusals(f, error, text):
  with pytest.raises(error, match=text): f(Tensor(X))

def test_symbolic_sizes():
  n = UOp.variable("n", 1, 4).bind(2)
  x = Tensor(X)[:, :, :n]
  assert x.shape[2] is not None and x.reshape(6, n).shape[0] == 6 and x.permute(2, 0, 1).shape[1:] == (2, 3)
  assert x.reshape(-1, n).shape[0] == 6
  with pytest.raises(IndexRangeError, match="axis 1"): Tensor(X)[:, :UOp.variable("m", 1, 4).bind(4)]
  assert Tensor(X)[:, :UOp.variable("m", 1, 4).bind(2)].sum().item() == X[:, :2].sum()

V, W = (UOp.variable(name, 1, 8).bind(k) for name, k in (("v", 2), ("w", 3)))

@pytest.mark.slow
@pytest.mark.parametrize("f", [
  lambda x, v, w: x[:, :v].cat(x[:, :1], dim=1), lambda x, v, w: x[:, :v].cat(x[:, 1:], x[:, :v], dim=1), lambda x, v,
  w: x[:, :, :w].cat(x, dim=2),
  lambda x, v, w: x[:v].stack(x[:v]), lambda x, v, w: x[:, :v].pad(((1, v), None, (0, w)), value=7), lambda x, v,
  w: x.pad((0, v - w)),
  lambda x, v, w: x[:, :, :w].roll(1, 2), lambda x, v, w: x[:, :, :w].roll(-v, 2), lambda x, v,
  w: x[:, :, :w].split(2, 2)[1],
  lambda x, v, w: x.split(v, 2)[1], lambda x, v, w: x[:, :, :w].split([v, 1], 2)[0], lambda x, v,
  w: x[:, :, :w].chunk(2, 2)[0],
  lambda x, v, w: x[:, :, :w].unfold(2, 2, 1), lambda x, v, w: x.unfold(2, v, w), lambda x, v, w: x[:, :v].squeeze(),
  lambda x, v, w: x[:, :v - 1].squeeze(1),
  lambda x, v, w: x[:, :, :w].reshape(-1, v), lambda x, v, w: x[:v, :v].diagonal(), lambda x, v,
  w: x[:, :v] + x[:, :w - 1] + x[:, :2],
  lambda x, v, w: x[:, :v - 1] + x, lambda x, v, w: x[:, :v].repeat(1, v, 1), lambda x, v,
  w: x[:, :, :w].pad((1, 2), mode="reflect"),
  lambda x, v, w: v * x - w])
def test_symbolic_sizes_give_what_numbers_give(f):
  same(f(Tensor(X), V, W), f(Tensor(X), 2, 3).numpy())
