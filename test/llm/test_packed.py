"""Packed matrices: their elements to the last bit, and products in integers against NumPy's float64, with the vector
that was rounded and with that before."""
import functools
import pickle

import numpy as np
import pytest
from formats.gguf_files import decoded, random_blocks

from test.codegen.kernels import AVX2
from test.helpers import HOME, on
from tinyhw import Device, Tensor, dtypes
from tinyhw.codegen.optimize import optimize
from tinyhw.codegen.transform.tiling import OptOps
from tinyhw.engine.schedule.schedule import canonicalize, schedule
from tinyhw.llm.blocks import TYPES
from tinyhw.llm.packed import BLOCK, LEAST_SCALE, PackedMatrix, Rounded, is_packable
from tinyhw.uop.enums import Ops

KINDS = {kind.name: kind for kind in TYPES.values() if kind.split is not None and kind.table is None}
SMALL = ("Q4_0", "Q5_1", "Q6_K")   # one plane, two planes and minima, two planes and factors of groups

def packed(name, *shape):
  """Return a packed matrix, and its elements."""
  return packed_on(Device.DEFAULT, name, shape)

@functools.cache
def packed_on(device, name, shape):
  kind = KINDS[name]
  raw = random_blocks(kind, int(np.prod(shape)) // kind.length)
  w = PackedMatrix(Tensor(raw, dtype="uint8", device=device), shape, kind)
  return w, np.array(decoded(kind, raw), np.float32).reshape(shape)

def size_of(name):
  """Return the elements of a short row: three blocks of 32, or one of 256."""
  return max(KINDS[name].length, 96)

def vectors(*shape, seed=1): return np.random.default_rng(seed).normal(size=shape).astype("f4")

def bits(values): return np.asarray(values, np.float32).view(np.uint32).tolist()

def restored(x):
  """Return a Rounded as numbers."""
  q, scale = x.q.numpy().astype("f8"), x.scale.numpy().astype("f8")
  return (q.reshape(*scale.shape, BLOCK) * scale[..., None]).reshape(*scale.shape[:-1], -1)

def close(got, want, tolerance):
  """The largest difference is a part of the largest number."""
  assert got.shape == want.shape
  np.testing.assert_allclose(got, want, rtol=0, atol=tolerance * np.abs(want).max())

# ***** elements *****

def test_types_that_are_packed():
  assert list(KINDS) == ["Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K"]

SHAPES = [(name, shape) for name in KINDS for shape in ((19,), (3, 5))]
SHAPES += [(name, shape) for name in SMALL for shape in ((1,), (16,), (2, 1, 17))]

@pytest.mark.slow
@pytest.mark.parametrize("name, shape", SHAPES, ids=str)
def test_elements(name, shape):
  """Rows of 16 are side by side, and some of the last 16 may be missing."""
  w, values = packed(name, *shape, size_of(name))
  found = w.tensor()
  assert w.shape == found.shape == values.shape and found.dtype is dtypes.float32
  assert bits(found.numpy()) == bits(values)

@pytest.mark.parametrize("name", [pytest.param(name, marks=[] if name in SMALL else pytest.mark.slow)
                                  for name in KINDS])
def test_elements_on_every_device(name, engine):
  w, values = packed(name, 3, KINDS[name].length)
  assert bits(w.tensor().numpy()) == bits(values)

@pytest.mark.parametrize("name", KINDS)
def test_rows(name):
  w, values = packed(name, 19, size_of(name))
  for index in ([18, 3, 18], [[15, 16], [0, 1]]):
    found = w.rows(Tensor(index, dtype="int32"))
    assert found.dtype is dtypes.float32 and found.shape == values[index].shape
    assert bits(found.numpy()) == bits(values[index])

def test_no_rows(): assert packed("Q4_0", 19, 96)[0].rows(Tensor([], dtype="int32")).shape == (0, 96)

# ***** products *****

def test_vectors_are_rounded(engine):
  """The largest of a block becomes 127 or -127, and others the nearest integer."""
  x = vectors(3, 96)
  x[1, :32], x[2, 5] = 0, 1e3
  found = Rounded(Tensor(x))
  scale = np.abs(x.reshape(3, 3, 32)).max(-1) / np.float32(127)
  np.testing.assert_allclose(found.scale.numpy(), np.maximum(scale, LEAST_SCALE), rtol=1e-6)
  q = found.q.numpy().reshape(3, 3, 32)
  assert q.dtype == np.int8 and set(np.abs(q).max(-1).flatten().tolist()) == {0, 127}
  with np.errstate(invalid="ignore"): exact = np.nan_to_num(x.reshape(3, 3, 32).astype("f8") / scale[..., None])
  assert np.abs(exact - q).max() <= 0.5 + 1e-4

@pytest.mark.parametrize("name", KINDS)
def test_products(name):
  w, values = packed(name, 19, size_of(name))
  for count in (1, 3) if name in SMALL else (1,):
    x = vectors(count, values.shape[1])
    given = Rounded(Tensor(x))
    got = w @ given
    assert got.dtype is dtypes.float32
    close(got.numpy(), restored(given) @ values.T.astype("f8"), 1e-6)
    close(got.numpy(), x.astype("f8") @ values.T.astype("f8"), 0.02)

@pytest.mark.slow
@pytest.mark.parametrize("name", SMALL)
def test_products_on_every_device(name, engine):
  w, values = packed(name, 3, KINDS[name].length)
  x = vectors(1, values.shape[1])
  given = Rounded(Tensor(x))
  close((w @ given).numpy(), restored(given) @ values.T.astype("f8"), 1e-6)

def test_a_rounded_vector_serves_several_products():
  x = vectors(1, 256)
  given = Rounded(Tensor(x))
  for name in ("Q4_0", "Q6_K", "Q4_K", "Q2_K", "Q8_0"):
    w, values = packed(name, 7, 256)
    close((w @ given).numpy(), restored(given) @ values.T.astype("f8"), 1e-6)

@pytest.mark.slow
@pytest.mark.parametrize("taken", (1, 2))
@pytest.mark.parametrize("name", KINDS)
def test_products_with_chosen_experts(name, taken):
  """x has a vector for each of them, or one for all."""
  w, values = packed(name, 3, 5, size_of(name))
  x, chosen = vectors(4, taken, values.shape[-1]), np.array([[0, 2], [1, 1], [2, 0], [0, 1]])
  given, places = Rounded(Tensor(x)), Tensor(chosen, dtype="int32")
  got = w.product(given, lambda t: t[places]).numpy()
  close(got, np.einsum("tkoi,tki->tko", values[chosen], np.broadcast_to(restored(given), (4, 2, x.shape[-1]))), 1e-6)

def test_products_with_chosen_experts_on_every_device(engine):
  w, values = packed("Q5_1", 2, 3, 32)
  x, chosen = vectors(2, 1, 32), np.array([[1], [0]])
  given, places = Rounded(Tensor(x)), Tensor(chosen, dtype="int32")
  got = w.product(given, lambda t: t[places]).numpy()
  close(got, np.einsum("tkoi,tki->tko", values[chosen], restored(given)), 1e-6)

# ***** special vectors: those of finite numbers have finite products, and no others have *****

def test_zeros(engine):
  w, values = packed("Q4_1", 3, 64)
  x = vectors(2, 64)
  x[0], x[1, 32:] = 0, 0
  given = Rounded(Tensor(x))
  got = (w @ given).numpy()
  assert got[0].tolist() == [0.0] * 3
  close(got[1:], restored(given)[1:] @ values.T.astype("f8"), 1e-6)

@pytest.mark.parametrize("special", [np.nan, np.inf, -np.inf], ids=str)
def test_numbers_that_are_not_finite(special, engine):
  """NaN gives NaN. An infinity gives NaN or an infinity, as the integers beside its scale decide. Other vectors are
  as they were."""
  w, values = packed("Q8_0", 3, 64)
  x = vectors(2, 64)
  plain = (w @ Rounded(Tensor(x))).numpy()
  x[0, 37] = special
  got = (w @ Rounded(Tensor(x))).numpy()
  assert not np.isfinite(got[0]).any() and got[1].tolist() == plain[1].tolist()
  if np.isnan(special): assert np.isnan(got[0]).all()

@pytest.mark.parametrize("name", ["Q4_0", "Q4_K"])
@pytest.mark.parametrize("power", [100, 40, -40, -100, -118])
def test_large_and_small_vectors(name, power):
  """The precision is that of other vectors."""
  w, values = packed(name, 19, size_of(name))
  x = vectors(1, values.shape[1]) * np.float32(2.0 ** power)
  close((w @ Rounded(Tensor(x))).numpy(), x.astype("f8") @ values.T.astype("f8"), 0.02)

@pytest.mark.parametrize("name", ["Q4_0", "Q4_K"])
def test_subnormal_vectors(name, engine):
  """They are rounded to multiples of the least scale."""
  w, values = packed(name, 3, KINDS[name].length)
  for power in (-122, -126, -130, -149):
    x = (vectors(1, values.shape[1]) * 2.0 ** power).astype("f4")
    got = (w @ Rounded(Tensor(x))).numpy()
    bound = LEAST_SCALE * np.abs(values.astype("f8")).sum(1).max()
    assert np.isfinite(got).all()
    np.testing.assert_allclose(got, x.astype("f8") @ values.T.astype("f8"), rtol=0, atol=bound)

def test_the_largest_numbers(engine):
  """No step overflows where the product does not."""
  w, values = packed("Q8_0", 3, 32)
  largest = np.abs(values).sum(1).argmax()
  x = np.sign(values[largest])[None] * np.float32(3e38 / np.abs(values[largest]).sum())
  given = Rounded(Tensor(x))
  got = (w @ given).numpy()
  assert np.isfinite(got).all() and got[0, largest] > 2.9e38
  close(got, restored(given) @ values.T.astype("f8"), 1e-6)

# ***** what is packed, and how it is computed *****

@pytest.mark.parametrize("name, shape, packs", [
  ("Q4_0", (1, 32), True), ("Q4_0", (2, 3, 4, 64), True), ("Q4_0", (32,), False), ("Q4_0", (2, 48), False),
  ("Q4_0", (0, 32), False), ("Q4_0", (2, 0), False),
  ("Q4_0", (32, 16), False), ("Q4_K", (2, 256), True), ("Q4_K", (8, 32), False), ("Q6_K", (1, 512), True),
  ("IQ4_NL", (2, 32), False), ("IQ4_XS", (2, 256), False), ("MXFP4", (2, 32), False), ("F32", (2, 32), False),
  ("F16", (2, 32), False), ("I8", (2, 32), False)])
def test_what_is_packable(name, shape, packs):
  kind = next(kind for kind in TYPES.values() if kind.name == name)
  assert is_packable(shape, kind) == packs

def bytes_of(w): return sum(t.nbytes() for t in (*w.planes, w.scale, w.factors, w.minimum, w.shifts) if t is not None)

@pytest.mark.parametrize("name", [pytest.param(name, marks=[] if name in SMALL else pytest.mark.slow)
                                  for name in KINDS])
def test_a_product_is_one_kernel_of_dots(name):
  """The rounded vector is computed before. The product reads the planes as words, and has a lane for each row."""
  with on(HOME):
    w, values = packed(name, 64, 512)
    given = Rounded(Tensor(vectors(1, 512)))
    given.scale.realize(), given.q.realize(), Tensor.realize(*given.parts(w.kind)[1])
    (kernel,) = schedule(canonicalize([(w @ given).uop])).kernels
  done = optimize(kernel.sink, AVX2)
  nodes, planes = done.toposort(), {t.numel() for t in w.planes}
  assert any(u.op is Ops.DOT4 for u in nodes)
  assert {u.dtype for u in nodes if u.op is Ops.PARAM and u.arg[1] * u.dtype.itemsize in planes} >= {dtypes.uint32}
  assert not any(u.op is Ops.LOAD and u.dtype is dtypes.uint8 and u.src[0].src[0].arg[1] in planes for u in nodes)
  assert [o.amount for o in done.arg.opts if o.op is OptOps.VECTOR] == [8], done.arg.opts

@pytest.mark.parametrize("name", ["Q4_1", "Q5_1"])
def test_a_product_with_chosen_experts_is_one_kernel_of_dots(name):
  """The chosen matrices are not copied."""
  with on(HOME):
    w, _ = packed(name, 4, 64, 96)
    given, chosen = Rounded(Tensor(vectors(1, 1, 96))), Tensor([[0, 2]], dtype="int32").realize()
    given.scale.realize(), given.q.realize(), Tensor.realize(*given.parts(w.kind)[1])
    (kernel,) = schedule(canonicalize([w.product(given, lambda t: t[chosen]).uop])).kernels
  assert any(u.op is Ops.DOT4 for u in optimize(kernel.sink, AVX2).toposort())

def test_bytes_are_those_of_the_file():
  """Factors of some types become bytes."""
  with on(HOME):
    sizes = {name: bytes_of(packed(name, 64, 512)[0]) / (64 * 512 // kind.length * kind.size)
             for name, kind in KINDS.items()}
  assert {name: round(size, 2) for name, size in sizes.items() if size > 1} == {"Q2_K": 1.19, "Q3_K": 1.04,
                                                                                "Q4_K": 1.03, "Q5_K": 1.02}

def test_copies_keep_their_size():
  with on(HOME):
    w, values = packed("Q4_K", 32, 512)
    data = pickle.dumps(w)
    copied = pickle.loads(data)
    given = Rounded(Tensor(vectors(1, 512)))
    assert len(data) < bytes_of(w) * 1.2 + 4096
    assert (copied @ given).tolist() == (w @ given).tolist() and bits(copied.tensor().numpy()) == bits(values)
