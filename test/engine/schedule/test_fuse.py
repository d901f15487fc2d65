"""The kernels of a tensor program: their number, and the cost of finding them in visited nodes."""
from __future__ import annotations
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from test.support.lines import lines_executed
from tinyhw import nn
from tinyhw.dtype import DType, dtypes
from tinyhw.engine.schedule.fuse import Fusion, buffers_worth, fused
from tinyhw.engine.schedule.lower import Lowering
from tinyhw.engine.schedule.schedule import canonicalize, make_schedule, schedule, strip
from tinyhw.engine.schedule.split import split_reductions
from tinyhw.methods.graph import graph
from tinyhw.tensor import Tensor
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp

def empty(*shape: int) -> Tensor: return Tensor.empty(*shape, device="PYTHON")

def kernels(*tensors: Tensor) -> int: return len(schedule(canonicalize([t.uop for t in tensors])).kernels)

def written_out(a: Tensor, b: Tensor) -> Tensor:
  n, k, m = a.shape[0], a.shape[1], b.shape[1]
  return (a.reshape(n, 1, k).expand(n, m, k) * b.permute(1, 0).reshape(1, m, k).expand(n, m, k)).sum(2)

PROGRAMS: dict[str, tuple[Callable[[], Tensor], int]] = {
  "matmul": (lambda: empty(32, 48) @ empty(48, 64), 1),
  "matmul written out": (lambda: written_out(empty(32, 48), empty(48, 64)), 1),
  "matmul bias relu": (lambda: (empty(32, 48) @ empty(48, 64) + empty(64)).relu(), 1),
  "two matmuls": (lambda: (empty(32, 48) @ empty(48, 64)) @ empty(64, 16), 2),
  "softmax": (lambda: empty(64, 128).softmax(), 1),
  "log_softmax": (lambda: empty(64, 128).log_softmax(), 1),
  "layernorm": (lambda: empty(64, 128).layernorm(), 1),
  "elementwise": (lambda: ((empty(64, 64) * 2 + empty(64, 64)).exp() - 1).permute(1, 0), 1),
  "movement": (lambda: empty(8, 8).pad(((1, 1), (0, 0))).flip(0).shrink(((2, 6), (1, 7))).expand(4, 6).contiguous(), 1),
  "sum": (lambda: (empty(64, 64) * empty(64, 64)).sum(), 1),
  "big sum": (lambda: empty(1024, 1024).sum(), 2),
  "product of many terms": (lambda: empty(64, 8192) @ empty(8192, 64), 2),
  "mean": (lambda: empty(64, 64).mean(1), 1),
  "operand computed often": (lambda: empty(64, 64).exp() @ empty(64, 64), 2),
  "mask computed often": (lambda: ((empty(64, 64).exp() > 1) & (empty(64, 64).sin() > 0)).float() @ empty(64, 64), 2),
  "conv relu": (lambda: empty(2, 4, 16, 16).conv2d(empty(8, 4, 3, 3), empty(8)).relu(), 1),
  "conv relu pool": (lambda: empty(2, 4, 16, 16).conv2d(empty(8, 4, 3, 3), empty(8)).relu().max_pool2d(), 2),
  "gather": (lambda: empty(100, 16)[empty(8).cast("int32")], 1),
  "cat": (lambda: empty(4, 4).cat(empty(4, 4), empty(4, 4)), 1),
}

@pytest.mark.parametrize("name", PROGRAMS)
def test_kernels(name: str) -> None:
  make, count = PROGRAMS[name]
  assert kernels(make()) == count

GATHERED: dict[str, tuple[Callable[[Tensor], Tensor], int]] = {
  "a convolution": (lambda i: empty(9, 3, 12, 12)[i].pad((1, 1, 1, 1)).conv2d(empty(16, 3, 3, 3)), 2),
  "a product": (lambda i: empty(64, 32)[i] @ empty(32, 48), 2),
  "a sum of each row": (lambda i: empty(64, 32)[i].sum(1), 1),
  "a vector": (lambda i: (empty(64, 32)[i] * empty(32)).sum(1), 1),
  "windows of a symbolic axis": (lambda i: empty(2, 4, 32)[:, :,
                                                           :UOp.variable("n", 8, 32).bind(16)].conv2d(empty(16, 4, 3)),
                                 2),
}

@pytest.mark.parametrize("name", GATHERED)
def test_what_is_gathered_is_gathered_once(name: str) -> None:
  """A convolution once gathered each pixel of its images again for each channel and window: two fifths of a ResNet's
  step."""
  make, count = GATHERED[name]
  assert kernels(make(Tensor.empty(8, dtype=dtypes.int32, device="PYTHON"))) == count

def test_outputs_share_what_they_have_in_common() -> None:
  x = empty(64, 64).sum(1)
  assert kernels(x + 1, x * 2) == 2     # the sum is wanted twice, so it has a buffer; what is made of it is one kernel

def test_batchnorm_in_training_is_few_kernels() -> None:
  norm = nn.BatchNorm(8)
  with Tensor.train(): out = norm(Tensor.empty(4, 8, 6, 6))
  assert kernels(out) <= 4

def test_one_training_step_of_a_perceptron() -> None:
  """The hidden layer before and after relu, its gradient, two weights, two biases. Multiplying by 1 costs no kernel."""
  x, w, b, v, c = empty(32, 64), empty(64, 48), empty(48), empty(48, 10), empty(10)
  loss = (((x @ w + b).relu() @ v + c) * empty(32, 10)).sum()
  assert kernels(*loss.gradient(w, b, v, c)) == 7

Make = Callable[..., Tensor]
# (of tensors by shape, of products), and the reductions of each kernel
PRODUCTS: dict[str, tuple[Callable[[Make, Make], Tensor], list[int]]] = {
  "two": (lambda of, times: times(of(128, 64), 64) + times(of(128, 48), 64), [1, 1]),
  "three, and more": (lambda of, times: (times(of(128, 64), 64) + times(of(128, 48), 64) * 2
                                         + times(of(128, 64), 64)).relu() + of(64), [1, 1, 1]),
  "with a row's sum": (lambda of, times: times(x := of(128, 64), 64) + x.sum(1, keepdim=True), [1, 1]),
  "divided by a row's norm": (lambda of, times: times(x := of(128, 64), 64) / x.square().sum(1, keepdim=True).sqrt(),
                              [1, 1]),
  "part of one": (lambda of, times: times(of(128, 64), 128).shrink(((0, 128), (32, 96))) + times(of(128, 48), 64),
                  [1, 1]),
  "small": (lambda of, times: times(of(64, 48), 32) + times(of(64, 48), 32), [2]),
  "few terms": (lambda of, times: times(of(256, 8), 256) + times(of(256, 8), 256), [2]),
  "one of few terms": (lambda of, times: times(of(128, 64), 64) + times(of(128, 8), 64), [1, 1]),
  "rows": (lambda of, times: of(64, 128) / ((x := of(64, 128)).sum(1, keepdim=True) + x.square().sum(1, keepdim=True)),
           [2]),
}

@pytest.mark.parametrize("name", PRODUCTS)
def test_a_large_product_is_alone_in_its_kernel(name: str) -> None:
  make, counts = PRODUCTS[name]
  planned = schedule(canonicalize([make(empty, lambda x, columns: x @ empty(x.shape[1], columns)).uop])).kernels
  assert sorted(sum(u.op is Ops.REDUCE for u in k.sink.toposort()) for k in planned) == counts

@pytest.mark.parametrize("scaled", (False, True))
def test_each_product_of_a_sum_adds_to_the_sum_so_far(scaled: bool) -> None:
  """No more than two partial sums exist at a time, however many steps share a weight."""
  def product() -> Tensor:
    y = empty(128, 64) @ empty(64, 96)
    return y * empty(1, 96).relu() if scaled else y
  total = product()
  for _ in range(7): total = total + product()
  planned = schedule(canonicalize([total.relu().uop])).kernels
  assert len(planned) == 8
  assert sorted(len(k.reads) for k in planned) == [2 + scaled, *[3 + scaled] * 7]

@pytest.mark.parametrize("name", PRODUCTS)
def test_results_of_products_and_others(name: str) -> None:
  """They equal those of products that are stored as they are."""
  def result(stored: bool) -> np.ndarray[Any, Any]:
    random = np.random.default_rng(3)
    def of(*shape: int) -> Tensor: return Tensor(random.random(shape, np.float32))
    def times(x: Tensor, columns: int) -> Tensor:
      y = x @ of(x.shape[1], columns)
      return y.contiguous() if stored else y
    return PRODUCTS[name][0](of, times).numpy()
  np.testing.assert_allclose(result(False), result(True), rtol=1e-5)

# (a function that makes Tensors of a type and shape) -> factors of blocks, (rows or 1, blocks, terms), and a scale each
Of = Callable[..., Tensor]
Inner = Callable[[Tensor], Tensor]
I8, U8, I32, F32 = dtypes.int8, dtypes.uint8, dtypes.int32, dtypes.float32

def sums_of_blocks(of: Of, inner: Inner, a: DType = U8, b: DType = I8, rows: int = 64, blocks: int = 40,
                   terms: int = 32, wide: DType = I32) -> Tensor:
  """Return sums of scaled sums of products: (rows,). inner: applied to the sums of products."""
  products = of(a, rows, blocks, terms).cast(wide) * of(b, blocks, terms).cast(wide)
  return (inner(products.sum(-1)).cast(F32) * of(F32, rows, blocks)).sum(-1)

def sums_of_fields(of: Of, inner: Inner) -> Tensor:
  w = of(U8, 64, 40, 32)
  products = (w & 15).cast(I32) * of(I8, 40, 32).cast(I32) + (w >> 4).cast(I32) * of(I8, 40, 32).cast(I32)
  return (inner(products.sum(-1)) * of(F32, 64, 40)).sum(-1).relu()

def fields_of_many_vectors(of: Of, inner: Inner) -> Tensor:
  """Shifts and masks are done again for each vector, with four bytes at once."""
  products = (of(U8, 1, 64, 40, 32) >> 4).cast(I32) * of(I8, 16, 1, 40, 32).cast(I32)
  return (inner(products.sum(-1)).cast(F32) * of(F32, 64, 40)).sum(-1)

def counted(of: Of, inner: Inner) -> Tensor:
  return (inner((of(U8, 64, 40, 32) < of(U8, 40, 32)).sum(-1)) * of(F32, 64, 40)).sum(-1)

def padded(of: Of, inner: Inner) -> Tensor:
  found = inner((of(U8, 64, 39, 32).cast(I32) * of(I8, 39, 32).cast(I32)).sum(-1)).cast(F32)
  return (found.pad((None, (0, 1))) * of(F32, 64, 40)).sum(-1)

def moved(of: Of, inner: Inner) -> Tensor:
  """Return what reads as many blocks as there are, and zeros for one of them."""
  found = inner((of(U8, 64, 40, 32).cast(I32) * of(I8, 40, 32).cast(I32)).sum(-1)).cast(F32)
  return (found.pad((None, (1, 0))).shrink((None, (0, 40))) * of(F32, 64, 40)).sum(-1)

def of_two_rows(of: Of, inner: Inner) -> Tensor:
  found = inner((of(U8, 64, 40, 32).cast(I32) * of(I8, 40, 32).cast(I32)).sum(-1)).cast(F32)
  return (found.reshape(64, 1, 40).expand(64, 2, 40).reshape(128, 40) * of(F32, 128, 40)).sum(-1)

def of_several_vectors(of: Of, inner: Inner) -> Tensor:
  found = inner((of(U8, 1, 64, 40, 32).cast(I32) * of(I8, 4, 1, 40, 32).cast(I32)).sum(-1))
  return (found.cast(F32) * of(F32, 64, 40)).sum(-1)

def of_the_same_blocks(of: Of, inner: Inner) -> Tensor:
  found = inner((of(U8, 1, 40, 32).cast(I32) * of(I8, 40, 32).cast(I32)).sum(-1))
  return (found.cast(F32).expand(64, 40) * of(F32, 64, 40)).sum(-1)

BLOCK_SUMS: dict[str, tuple[Callable[[Of, Inner], Tensor], int]] = {
  "bytes": (sums_of_blocks, 1),
  "signed bytes": (lambda of, inner: sums_of_blocks(of, inner, I8, I8), 1),
  "two products": (sums_of_fields, 1),
  "several vectors": (of_several_vectors, 1),
  "fields, and many vectors": (fields_of_many_vectors, 1),
  "the fewest rows": (lambda of, inner: sums_of_blocks(of, inner, rows=8), 1),
  "fewer rows": (lambda of, inner: sums_of_blocks(of, inner, rows=7), 2),
  "the longest blocks": (lambda of, inner: sums_of_blocks(of, inner, terms=256), 1),
  "longer blocks": (lambda of, inner: sums_of_blocks(of, inner, terms=260), 2),
  "floats": (lambda of, inner: sums_of_blocks(of, inner, F32, F32, wide=F32), 2),
  "bytes as floats": (lambda of, inner: sums_of_blocks(of, inner, wide=F32), 2),
  "16 bits": (lambda of, inner: sums_of_blocks(of, inner, dtypes.int16), 2),
  "bools": (lambda of, inner: sums_of_blocks(of, inner, dtypes.bool, dtypes.bool), 2),
  "bools counted": (counted, 2), "blocks and padding": (padded, 2), "blocks that are moved": (moved, 2),
  "blocks that two rows need": (of_two_rows, 2), "blocks that all rows need": (of_the_same_blocks, 2),
}

@pytest.mark.parametrize("name", BLOCK_SUMS)
def test_sums_of_short_blocks_of_products_of_bytes_need_no_buffer(name: str) -> None:
  make, count = BLOCK_SUMS[name]
  found = make(lambda dtype, *shape: Tensor.empty(*shape, dtype=dtype, device="PYTHON"), lambda x: x)
  planned = schedule(canonicalize([found.uop])).kernels
  assert sorted(sum(u.op is Ops.REDUCE for u in k.sink.toposort()) for k in planned) == ([2] if count == 1 else [1, 1])

@pytest.mark.parametrize("name", BLOCK_SUMS)
def test_results_of_sums_of_blocks(name: str) -> None:
  """They equal those with a buffer for the inner sums. All numbers are small enough to be exact."""
  def result(inner: Inner) -> list[Any]:
    random = np.random.default_rng(4)
    def of(dtype: DType, *shape: int) -> Tensor:
      low, high = (0, 256) if dtype is U8 else (-3, 4)
      return Tensor(random.integers(low, high, shape), dtype=I32).cast(dtype).realize()
    return BLOCK_SUMS[name][0](of, inner).tolist()
  assert result(lambda x: x) == result(lambda x: x.contiguous())

def test_what_is_computed_twice_is_stored_alike() -> None:
  """A row's sum has no buffer if one kernel alone uses it. It has two if it is also computed again for another."""
  def rows(u: UOp) -> UOp: return graph.reduce(graph.unary(Ops.EXP, u), Ops.ADD, (1,))
  def scaled(u: UOp) -> UOp: return graph.mul(u, graph.expand(rows(u), u.shape))
  x = empty(64, 64).uop
  root = scaled(x)
  again = graph.mul(root, graph.expand(rows(graph.after(x, root)), x.shape))
  def sums(places: Fusion) -> int: return sum(u.op is Ops.REDUCE_AXIS for u in places.realized)
  assert (sums(fused([root])) == 0 and sums(fused([root, graph.mul(root, graph.expand(rows(x), x.shape))])) == 1
          and sums(fused([root, again])) == 2)

# ***** cost *****

def cost(tensors: list[Tensor]) -> int:
  """Return the nodes and gated indices that scheduling visits: a count, so the same on every machine."""
  roots = [strip(r) for r in split_reductions([strip(r) for r in canonicalize([t.uop for t in tensors]).roots])]
  places = Fusion(roots)
  total = len(places.nodes) + sum(map(len, places.at.values()))
  worth = buffers_worth(places)
  if worth:
    places = Fusion(roots, worth)
    total += len(places.nodes) + sum(map(len, places.at.values()))
  lowering = Lowering(places)
  return total + len(lowering.value) + sum(len(k.sink.toposort()) for k in lowering.kernels())

def perceptron(layers: int) -> list[Tensor]:
  x = empty(16, 32)
  for _ in range(layers): x = (x @ empty(32, 32) + empty(32)).relu()
  return [x]

def perceptron_gradient(layers: int) -> list[Tensor]:
  x, weights = empty(16, 32), [empty(32, 32) for _ in range(layers)]
  for w in weights: x = (x @ w).gelu()
  return list(x.sum().gradient(*weights))

def lstm(steps: int) -> list[Tensor]:
  h, c, wi, wh, b = empty(4, 8), empty(4, 8), empty(8, 32), empty(8, 32), empty(32)
  for _ in range(steps):
    i, f, o, z = (empty(4, 8) @ wi + h @ wh + b).chunk(4, dim=1)
    c = f.sigmoid() * c + i.sigmoid() * z.tanh()
    h = o.sigmoid() * c.tanh()
  return [h, c]

def lstm_gradient(steps: int) -> list[Tensor]:
  w = empty(8, 32)
  h = c = empty(4, 8)
  for _ in range(steps):
    i, f, o, z = (h @ w).chunk(4, dim=1)
    c = f.sigmoid() * c + i.sigmoid() * z.tanh()
    h = o.sigmoid() * c.tanh()
  return [(h * c).sum().gradient(w)[0]]

def stencil(steps: int) -> list[Tensor]:
  x = empty(16, 16)
  for _ in range(steps): x = (x + x.roll(1, 0)).tanh()
  return [x]

def sums_of_a_chain(steps: int) -> list[Tensor]:
  x, out = empty(8, 8), []
  for _ in range(steps):
    x = x.sin() * 2
    out.append(x.sum())
  return out

@pytest.mark.parametrize("make, steps", [(perceptron, 8), (perceptron_gradient, 8), (lstm, 8), (lstm_gradient, 8),
                                         (stencil, 32),
                                         (sums_of_a_chain, 32)], ids=lambda x: getattr(x, "__name__", str(x)))
def test_doubling_a_graph_doubles_the_cost(make: Callable[[int], list[Tensor]], steps: int) -> None:
  once, twice = cost(make(steps)), cost(make(2 * steps))
  assert twice <= 2.2 * once, f"{once} nodes became {twice}"

@pytest.mark.parametrize("dtype", [dtypes.bool, dtypes.uint8, dtypes.int8], ids=str)
def test_bits_that_spread_cost_no_more_in_bytes(dtype: DType) -> None:
  """Each step wants the values of the previous one at twice as many places: in a few steps, most have a buffer."""
  def spread(kind: DType) -> list[Tensor]:
    x = Tensor.empty(1 << 16, dtype=kind, device="PYTHON")
    for k in range(10): x = x | x.roll(1 << k, 0)
    return [x]
  plain = cost(spread(I32))
  assert cost(spread(dtype)) <= 1.1 * plain

def sum_of_sums(terms: int) -> list[Tensor]:
  x = empty(4, 8).sum(1)
  for _ in range(terms): x = x + empty(4, 8).sum(1)
  return [x]

def gradients_of_layers(layers: int) -> list[Tensor]:
  x, weights = empty(8), [empty(8) for _ in range(layers)]
  for w in weights: x = x + (x * w).tanh()
  return list(x.sum().gradient(*weights))

@pytest.mark.parametrize("make, steps", [(sum_of_sums, 100), (gradients_of_layers, 40)])
def test_twice_the_graph_is_twice_the_lines(make: Callable[[int], list[Tensor]], steps: int) -> None:
  """Also for steps that do not visit nodes or indices: from a graph to ordered kernels, with memory."""
  costs = []
  for size in (steps, 2 * steps):
    roots = list(canonicalize([t.uop for t in make(size)]).roots)
    costs.append(lines_executed(lambda: make_schedule(roots)))
  assert costs[1] <= 2.2 * costs[0], f"{costs[0]} lines became {costs[1]}"

def test_deep_graphs_need_no_deep_stack() -> None:
  x = empty(4)
  for _ in range(1500): x = x + empty(4)
  assert kernels(x) >= 1

def test_long_terms_need_no_deep_stack() -> None:
  """Also where sums of short blocks are looked for."""
  x, y, scale = (Tensor.empty(16, 8, 64, dtype=dtype, device="PYTHON") for dtype in (I32, I8, F32))
  for term in (x, y.cast(I32) * y.cast(I32)):
    total = term
    for k in range(1500): total = total + ((x ^ k) if term is x else (y ^ (k & 127)).cast(I32) * y.cast(I32))
    assert kernels((total.sum(-1).cast(F32) * scale.shrink((None, None, (0, 1))).reshape(16, 8)).sum(-1)) >= 1

def buffers(*tensors: Tensor) -> list[str]:
  """Return the types of the kernels' stores."""
  return [w.dtype.name for k in schedule(canonicalize([t.uop for t in tensors])).kernels for w in k.writes]

@pytest.mark.parametrize("dtype", [dtypes.float16, dtypes.bfloat16], ids=str)
@pytest.mark.parametrize("name, before", [("elementwise", lambda x: x.relu()), ("row", lambda x: x.softmax()),
                                          ("product", lambda x: x @ x),
                                          ("moved", lambda x: x.relu().T), ("kept", lambda x: x.relu().contiguous()),
                                          ("kept and moved", lambda x: x.contiguous().T),
                                          ("shared", lambda x: x.sum(0).expand(32, 32) + x)])
def test_what_a_product_reads_is_stored_in_its_own_type(name: str, before: Callable[[Tensor], Tensor],
                                                        dtype: DType) -> None:
  """Products are summed in float32, and so widen what they read; that a factor is computed first makes it no float32
  in memory."""
  x, w = (Tensor.empty(32, 32, dtype=dtype, device="PYTHON") for _ in range(2))
  assert set(buffers(before(x) @ w)) == {dtype.name}, name

def test_widened_values_are_those_that_were_stored() -> None:
  x = Tensor([[float(i * j % 13 - 6) for j in range(8)] for i in range(8)], dtype=dtypes.float16, device="PYTHON")
  y = (x * 0.3).relu()
  found, expected = y.matmul(x, dtype=dtypes.float32).tolist(), y.contiguous().matmul(x, dtype=dtypes.float32).tolist()
  assert found == expected

def test_a_widened_sum_s_further_steps_are_in_its_kernel() -> None:
  x = Tensor.empty(32, 32, dtype=dtypes.float16, device="PYTHON")
  assert buffers((x @ x).float() * 2 + 1) == ["float"] and buffers((x @ x).float()) == ["float"]
