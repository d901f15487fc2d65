"""Tensor[...], gather and scatter against NumPy."""
import random

import numpy as np
import pytest

from test.helpers import arrays, check_gradient, compare, same
from tinyhw.dtype import dtypes
from tinyhw.errors import ArgumentError, DTypeError, IndexingError, IndexRangeError, ShapeError
from tinyhw.tensor import Tensor
from tinyhw.uop.ops import UOp

X = np.arange(60, dtype=np.float32).reshape(3, 4, 5)
I, J, K = np.array([2, 0, -1]), np.array([[1], [-4]]), np.array([True, False, True])

BASIC = [np.s_[0], np.s_[-1], np.s_[1:], np.s_[:, 1:3], np.s_[..., 2], np.s_[0, ..., 1], np.s_[None], np.s_[:, None, 1],
         np.s_[..., None],
  np.s_[::2], np.s_[:, ::-1], np.s_[:, ::-2],
         np.s_[2:0:-1], np.s_[:, 3:1:-1, ::3], np.s_[5:], np.s_[2:1], np.s_[:, -3:-1], np.s_[1, 2, 3],
         np.s_[:, :, -100:100], np.s_[:, 1::2],
         np.s_[()], np.s_[...], np.s_[:, :, 1::3]]
ADVANCED = [np.s_[I], np.s_[:, I], np.s_[..., I], np.s_[I, I], np.s_[I, :, I], np.s_[J % 3], np.s_[:, J, I],
            np.s_[I, 1:3], np.s_[:, J, ::-1],
  np.s_[1:, I], np.s_[:, I[0]], np.s_[[0, 2]], np.s_[:, [1, -1]],
            np.s_[None, I], np.s_[I, None, 1:2], np.s_[K], np.s_[K, 1], np.s_[X > 30], np.s_[I, J[:, 0][:1]], np.s_[[]]]

def as_tensor(index):
  if isinstance(index, np.ndarray): return Tensor(index)
  return tuple(as_tensor(i) for i in index) if isinstance(index, tuple) else index

def as_array(index):
  if isinstance(index, list): return np.array(index, dtype=int)
  return tuple(as_array(i) for i in index) if isinstance(index, tuple) else index

@pytest.mark.parametrize("index", BASIC + ADVANCED, ids=str)
def test_reading(index): compare(lambda t: t[as_tensor(index)], lambda a: a[as_array(index)], X)

@pytest.mark.slow
@pytest.mark.parametrize("index", [i for i in BASIC + ADVANCED if not isinstance(i, np.ndarray)
                                   or i.dtype != np.bool_][:40], ids=str)
@pytest.mark.parametrize("stored", [True, False])
def test_writing(index, stored):
  want = X.copy()
  value = -1 - np.arange(want[as_array(index)].size, dtype=np.float32).reshape(want[as_array(index)].shape)
  want[as_array(index)] = value
  t = Tensor(X) if stored else Tensor(X) + 0
  t[as_tensor(index)] = Tensor(value)
  same(t, want)
  want[as_array(index)] = 7
  t[as_tensor(index)] = 7
  same(t, want)

@pytest.mark.slow
def test_a_list_that_holds_slices_is_a_tuple_of_indices():
  compare(lambda t: t[[slice(0, 2), None, ..., 1]], lambda a: a[0:2, None, ..., 1], X)
  compare(lambda t: t[((1, 0), (0, 1)),], lambda a: a[np.array([[1, 0], [0, 1]])], X)
  t = Tensor.zeros(2, 3)
  t[[slice(None), 1]] = 5
  assert t.tolist() == [[0.0, 5.0, 0.0]] * 2

def test_writing_to_storage_is_in_place():
  t = Tensor(X)
  view, memory = t[1], t.uop.base.storage
  t[1, 2:4] = 0.5
  t[0] += 1
  assert t.uop.base.storage is memory and view[2].tolist() == [0.5] * 5 and t[0, 0].tolist() == [1, 2, 3, 4, 5]
  t[t > 30] = 0
  assert t.max().item() <= 30 and t.uop.base.storage is memory
  t[:2] = t[1:]
  same(t[1], t[2].numpy())

def test_writing_has_gradients():
  x, v = Tensor([1.0, 2.0, 3.0]) * 1, Tensor([5.0])
  y = x * 2
  y[1:2] = v * 3
  gx, gv = y.square().sum().gradient(x, v)
  assert gx.tolist() == [8.0, 0.0, 24.0] and gv.tolist() == [90.0]

def test_out_of_range_in_a_tensor_reads_zero():
  assert Tensor([1.0, 2.0])[Tensor([0, 2, -3, -1])].tolist() == [1.0, 0.0, 0.0, 2.0]
  assert Tensor([[1.0, 2.0]])[Tensor([0, 0]), Tensor([1, 2])].tolist() == [2.0, 0.0]

def test_index_types():
  for dtype in (dtypes.int8, dtypes.uint8, dtypes.int64, dtypes.uint64):
    assert Tensor([1, 2, 3])[Tensor([2, 0], dtype=dtype)].tolist() == [3, 1]
  assert Tensor([1, 2, 3])[np.int64(1)].item() == 2 and Tensor([1, 2, 3])[np.array([0, 2])].tolist() == [1, 3]

@pytest.mark.slow
def test_variables():
  n = UOp.variable("n", 1, 3).bind(2)
  x = Tensor(X)
  same(x[:, n], X[:, 2])
  assert x[:, :n].sum().item() == X[:, :2].sum() and x[:, n:n + 1].shape == (3, 1, 5)
  cache = Tensor.zeros(4, 2).contiguous().realize()
  cache[n:n + 1] = Tensor([[1.0, 2.0]])
  assert cache.tolist() == [[0, 0], [0, 0], [1, 2], [0, 0]]
  with pytest.raises(IndexRangeError): x[:, UOp.variable("m", 0, 4).bind(4)]
  same(x[:, UOp.variable("m", 0, 4).bind(1)], X[:, 1])

@pytest.mark.parametrize("f, error, text", [
  (lambda t: t[3], IndexRangeError, "index 3 is outside of axis 0, which has size 3"),
    (lambda t: t[0, 0, 0, 0], IndexingError, "4 indices for a tensor with 3"),
  (lambda t: t[..., ...], IndexingError, "one ..."), (lambda t: t[::0], IndexingError, "step"),
  (lambda t: t[Tensor([1.0])], DTypeError, "integers or bools"),
  (lambda t: t["a"], IndexingError, "is no index"), (lambda t: t[Tensor([True, False])], IndexingError, "bool index"),
  (lambda t: t[1.5], IndexingError, "is no index"),
  (lambda t: t[True], IndexingError, "True as an index could be 1 or a mask"),
  (lambda t: t.__setitem__(0, Tensor.ones(3)), ShapeError, "cannot assign"),
  (lambda t: t[Tensor([0, 1]), Tensor([0, 1, 2])], ShapeError, "cannot index with")])
def test_refusals(f, error, text):
  with pytest.raises(error, match=text): f(Tensor(X))

@pytest.mark.slow
@pytest.mark.parametrize("f", [lambda t: t[1:, ::-1], lambda t: t[Tensor([0, 2, 0])],
                               lambda t: t[:, Tensor([1, -1]), Tensor([[0], [1]])],
  lambda t: t[0, None, ::2],
                               lambda t: t.gather(1, Tensor([[[0, 1]], [[2, 0]]]))])
def test_gradients(f): check_gradient(f, (3, 4, 2))

def test_gather():
  x, index = arrays((3, 4))[0], np.array([[0, 2, 1, 1], [2, 0, 0, 1]])
  compare(lambda t, i: t.gather(0, i), lambda a, i: np.take_along_axis(a, i, 0), x, index)
  compare(lambda t, i: t.gather(1, i), lambda a, i: np.take_along_axis(a[:2], i, 1), x, index)
  with pytest.raises(ShapeError, match="number of axes"): Tensor(x).gather(0, Tensor([1]))
  with pytest.raises(DTypeError): Tensor(x).gather(0, Tensor(x))

def test_nothing_at_all():
  """Index tensors without elements, which no kernel writes."""
  x, flags = arrays((0, 4))[0], np.zeros((0, 4), np.bool_)
  compare(lambda t, m: t[m & (t > 0)], lambda a, m: a[m], x, flags)
  compare(lambda t: (t + 1).contiguous().realize().sum(0), lambda a: a.sum(0), x)
  assert (Tensor(x) + 1).realize().tolist() == []

def test_indices_that_are_constants():
  x = arrays((3, 4))[0]
  compare(lambda t: t.gather(0, Tensor.ones(2, 4, dtype=dtypes.int32)), lambda a: a[[1, 1]], x)
  compare(lambda t: t[Tensor.full((2, 1), -1)], lambda a: a[[[-1], [-1]]], x)
  compare(lambda t: t.gather(0, Tensor.ones(0, 4, dtype=dtypes.int32)), lambda a: a[:0], x)
  compare(lambda t: t.topk(0)[0], lambda a: a[:, :0], x)

@pytest.mark.slow
def test_an_index_of_8_bits_names_one_place_of_many():
  zeros, index = np.zeros(300, np.int32), np.array([5, 127, 5], np.int8)
  def count(a, i): return np.bincount(i, minlength=len(a)).astype(a.dtype)
  for kind in (np.int8, np.uint8):
    compare(lambda t, i: t.scatter_reduce(0, i, Tensor([1, 1, 1]), "sum"), count, zeros, index.astype(kind))
    compare(lambda t, i: t.scatter(0, i, 1).sum(), lambda a, i: np.int32(2), zeros, index.astype(kind))
  same(Tensor(zeros).scatter(0, Tensor([255, 0], dtype="uint8"), 1).nonzero().flatten(), np.array([0, 255], np.int32))

@pytest.mark.slow
def test_scatter():
  index, src = np.array([[0, 1, 2, 0], [0, 0, 1, 2]]), arrays((2, 4))[0]
  def scatter(a, fold):
    out = a.copy()
    for i, j in np.ndindex(*index.shape): out[index[i, j], j] = fold(out[index[i, j], j], src[i, j])
    return out
  x = arrays((3, 4), seed=2)[0]
  i, s = Tensor(index), Tensor(src)
  compare(lambda t: t.scatter(0, i, s), lambda a: scatter(a, lambda _, b: b), x)
  compare(lambda t: t.scatter(0, i, s, reduce="add"), lambda a: scatter(a, lambda p, b: p + b), x)
  compare(lambda t: t.scatter(0, i, 2.0, reduce="multiply"), lambda a: a * 2.0 ** np.array([[(index[:,
    j] == k).sum() for j in range(4)] for k in range(3)], np.float32), x)
  compare(lambda t: t.scatter_reduce(0, i, s, "amax"), lambda a: scatter(a, max), x)
  compare(lambda t: t.scatter_reduce(0, i, s, "amin"), lambda a: scatter(a, min), x)
  compare(lambda t: t.scatter_reduce(0, i, s, "prod"), lambda a: scatter(a, lambda p, b: p * b), x)
  hits = np.array([[(index[:, j] == k).sum() for j in range(4)] for k in range(3)])
  compare(lambda t: t.scatter_reduce(0, i, s, "mean"),
          lambda a: (scatter(a, lambda p, b: p + b) / (hits + 1)).astype(np.float32), x)
  alone = scatter(np.zeros_like(x), lambda p, b: p + b)
  compare(lambda t: t.scatter_reduce(0, i, s, "sum", include_self=False), lambda a: np.where(hits > 0, alone, a), x)
  assert Tensor.zeros(2, 5).scatter(1, Tensor([[4]]), 3.0).tolist() == [[0, 0, 0, 0, 3.0], [0] * 5]
  with pytest.raises(ArgumentError, match="reduce"): Tensor(x).scatter(0, i, s, reduce="mean")
  with pytest.raises(DTypeError, match="cannot scatter"): Tensor(x).scatter(0, i, i)

@pytest.mark.parametrize("index", [[3], [0, -4], (slice(None), [4]), (Ellipsis, [[0], [-5]]), range(4),
                                   np.array([0, 3]), np.array([[7]], np.uint8),
  (None, [3]), ([0, 1], [0, 4])])
def test_indices_that_the_host_knows_are_checked(index):
  x = Tensor(np.arange(12, dtype=np.int32).reshape(3, 4)).contiguous().realize()
  with pytest.raises(IndexRangeError, match="outside of axis"): x[index]
  with pytest.raises(IndexRangeError, match="outside of axis"): x[index] = 1
  with pytest.raises(IndexRangeError, match="outside of axis 0"): x[Tensor.full((2,), 3)]

@pytest.mark.slow
def test_indices_that_only_the_device_knows_read_zero():
  x = np.arange(12, dtype=np.int32).reshape(3, 4)
  same(Tensor(x)[Tensor([1, 5, -3, -4])], np.stack([x[1], 0 * x[0], x[0], 0 * x[0]]))
  same(Tensor(x)[[], 1], x[[], 1])
  same(Tensor(x)[[-3, 2], [3, -4]], x[[-3, 2], [3, -4]])

@pytest.mark.slow
def test_writing_to_nothing():
  """A write to an empty selection, by indices or by scatter, changes nothing."""
  a = arrays((2, 3))[0]
  for stored in (True, False):
    x = Tensor(a).realize() if stored else Tensor(a) + 0
    x[0:0, Tensor([[0, 1]])] = 7
    x[Tensor(np.zeros((2, 3), bool))] = Tensor(np.zeros(0, np.float32))
    same(x, a)
  none = Tensor(np.zeros((0, 3), np.int32))
  same(Tensor(a).scatter(0, none, Tensor(np.zeros((0, 3), np.float32))), a)
  for reduce in ("sum", "prod", "mean", "amax", "amin"):
    for include in (True, False):
      same(Tensor(a).scatter_reduce(0, none, Tensor(np.zeros((0, 3), np.float32)), reduce, include), a)

def random_index(choices, shape):
  """Return an index in the form of tinyhw and in that of NumPy. It has no ints next to Tensors, which only NumPy counts
  as index arrays."""
  ours, theirs, places = [], [], choices.choice([(), (2,), (3, 2), (1,)])
  kinds = ["slice", "slice", "all", "places"] if choices.random() < 0.6 else ["slice", "int", "all"]
  for n in shape[:choices.randint(1, len(shape))]:
    if choices.random() < 0.15:
      ours.append(None)
      theirs.append(None)
    kind = choices.choice(kinds)
    item = slice(None)
    if kind == "slice":
      bounds = [choices.choice([None, choices.randint(-n - 1, n + 1)]) for _ in range(2)]
      item = slice(*bounds, choices.choice([None, 1, 2, -1, -2, 3]))
    if kind == "int": item = choices.randrange(-n, n)
    if kind == "places":
      item = np.array([choices.randrange(-n, n) for _ in range(int(np.prod(places)))],
                      choices.choice([np.int8, np.int32, np.int64])).reshape(places)
      ours.append(choices.choice([Tensor, np.asarray])(item))
    else: ours.append(item)
    theirs.append(item)
  if not any(isinstance(i, np.ndarray) for i in theirs) and choices.random() < 0.2:
    ours.append(...)
    theirs.append(...)
  return tuple(ours), tuple(theirs)

@pytest.mark.slow
def test_random_indices(engine):
  """Read and write against NumPy. If an element is named more than once, the last value counts."""
  choices = random.Random(5)
  for _ in range(150 if engine == "CPU" else 15):
    shape = tuple(choices.randint(1, 4) for _ in range(choices.randint(1, 4)))
    a = np.arange(int(np.prod(shape)), dtype=np.float32).reshape(shape)
    ours, theirs = random_index(choices, shape)
    want = a[theirs]
    same(Tensor(a)[ours], want)
    value = (-1 - np.arange(want.size, dtype=np.float32)).reshape(want.shape)
    if want.ndim and choices.random() < 0.4: value = value[..., :1]
    x = Tensor(a).realize() if choices.random() < 0.5 else Tensor(a) + 0
    number = choices.random() < 0.3
    x[ours] = -5.0 if number else Tensor(value)
    b = a.copy()
    b[theirs] = -5.0 if number else value
    np.testing.assert_array_equal(x.numpy(), b, err_msg=f"{shape} {theirs}")

def stepped(rng, shape):
  """Return a view by slices with steps. Most of the steps do not divide their axis."""
  return tuple(slice(rng.choice([None, -3, 1]), rng.choice([None, n - 1, n + 2]), rng.choice([2, 3, 4, -1, -2, -3]))
               for n in shape)

@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_slices_with_steps_are_views(seed):
  """`y += 1` reaches the storage below one or two slices, and other views see it. Values computed before stay."""
  rng = random.Random(seed)
  shape = [rng.randint(2, 7) for _ in range(rng.randint(1, 3))]
  a = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
  x, y, v = Tensor(a).realize(), None, a
  y = x
  for turn in range(rng.randint(1, 2)):
    at = stepped(rng, v.shape)
    y, v = y[at], v[at]
    if turn: y, v = y.permute(*range(y.ndim)[::-1]), v.T
  other, before, was = x.flip(0), y * 2, v * 2
  y += 1
  v += 1
  same(x, a)
  same(y, v)
  same(other, a[::-1])
  same(before, was)
  y[...] = -5
  v[...] = -5
  same(x, a)

@pytest.mark.slow
def test_a_slice_with_a_step_and_its_gradient():
  x = Tensor(X).realize()
  part = x[:, ::3, ::2]
  same((part * part).sum().gradient(x)[0],
       np.where(np.isin(np.arange(4), [0, 3])[:, None] & np.isin(np.arange(5), [0, 2, 4]), 2 * X, 0))

@pytest.mark.slow
@pytest.mark.parametrize("kind", ("int8", "uint8", "int32", "uint32", "int64"))
@pytest.mark.parametrize("apart", (False, True))
def test_several_index_tensors_one_of_which_is_out_of_range(kind, apart):
  """Just inside and just outside of each axis, at both ends: an index outside reads 0 and writes nothing, whatever the
  others are."""
  x = np.arange(1, 25, dtype=np.float32).reshape(3, 2, 4) if apart else np.arange(1, 13, dtype=np.float32).reshape(3, 4)
  def around(n): return [i for i in (-n - 1, -n, -1, 0, n - 1, n, n + 1) if i >= 0 or not kind.startswith("u")]
  rows, columns = (np.array(around(n)) for n in (3, 4))
  inside = ((rows >= -3) & (rows < 3))[:, None] & (columns >= -4) & (columns < 4)
  i, j = Tensor(rows.astype(kind)).reshape(-1, 1), Tensor(columns.astype(kind))
  index = (i, slice(None), j) if apart else (i, j)
  near = np.clip(rows, -3, 2)[:, None], np.clip(columns, -4, 3)
  clipped = (near[0], slice(None), near[1]) if apart else near
  want = np.where(inside[..., None] if apart else inside, x[clipped], 0)
  same(Tensor(x)[index], want)
  written, expected = Tensor(x).realize(), x.copy()
  written[index] = -1.0
  r, c = (np.broadcast_to(a, inside.shape)[inside] for a in (rows[:, None], columns))
  if apart: expected[r, :, c] = -1
  else: expected[r, c] = -1
  same(written, expected)

@pytest.mark.slow
@pytest.mark.parametrize("f", [
  lambda x, v: x[:, :v][:, -1:], lambda x, v: x[:, :v][:, :-1], lambda x, v: x[:, -v:], lambda x, v: x[:, :v][:, -7:9],
  lambda x, v: x[:, :v][:, 3:],
  lambda x, v: x[..., :v][..., ::2], lambda x, v: x[..., :v + 2][..., ::-2], lambda x, v: x[..., v::-1], lambda x,
  v: x[..., ::v],
  lambda x, v: x[:, -v],
  lambda x, v: x[:, :v][:, -2], lambda x, v: x[:, :v][:, [0, -1]], lambda x, v: x[:, :v][:, Tensor([1, -2])]])
def test_slices_with_variables_give_what_numbers_give(f):
  same(f(Tensor(X), UOp.variable("v", 1, 5).bind(2)), f(Tensor(X), 2).numpy())

@pytest.mark.slow
def test_a_cache_is_written_at_any_place_that_it_has():
  position = UOp.variable("position", 0, 8)
  cache = Tensor.zeros(2, 8).contiguous().realize()
  for k in (0, 7): cache[:, position.bind(k):position.bind(k) + 1] = Tensor([[k + 1.0], [k + 2.0]])
  assert cache.tolist() == [[1, 0, 0, 0, 0, 0, 0, 8], [2, 0, 0, 0, 0, 0, 0, 9]]
  n = position.bind(5)
  with pytest.raises(IndexRangeError, match=r"axis 1, which has size 8: position\[=5\] is 5, \(position\[=5\]\+4\) is "
                     r"9"):
    cache[:, n:n + 4] = Tensor.ones(2, 4)
  rows = Tensor.zeros(8).contiguous().realize()
  rows[:n][::2] = Tensor([1.0, 2.0, 3.0])
  rows[:n][1::-1] = Tensor([8.0, 9.0])
  assert rows.tolist() == [9, 8, 2, 0, 3, 0, 0, 0]

@pytest.mark.slow
def test_rows_taken_along_a_sum_of_variables():
  """The ends of loops have one form, whatever the order of the terms of bound Variables."""
  x = Tensor(X)
  for first, second in (("v", "w"), ("w", "v"), ("b", "a")):
    v, w = UOp.variable(first, 1, 6).bind(2), UOp.variable(second, 1, 16).bind(5)
    for size in (v + w, w + v): same(x[:, Tensor.arange(size) % 4], X[:, np.arange(7) % 4])
