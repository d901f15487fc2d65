"""Attention is one kernel, whose scores stay in scratch memory, wherever nothing else needs them. Results are the same.
"""
from __future__ import annotations
import math
import random

import pytest

from tinyhw import Tensor, Variable
from tinyhw.config import Context
from tinyhw.device import Device
from tinyhw.dtype import dtypes
from tinyhw.engine.schedule.kept_rows import FEWEST_ROWS, MOST_ONLINE, MOST_TERMS
from tinyhw.engine.schedule.schedule import canonicalize, schedule
from tinyhw.uop.enums import Ops

ON_CPU = pytest.mark.skipif(not Device[Device.DEFAULT].row_bytes, reason="workers of this device keep no rows")

def empty(heads: int = 4, queries: int = 64, keys: int = 64, width: int = 32, dtype: str = "float32") -> list[Tensor]:
  return [Tensor.empty(heads, n, width, dtype=dtype) for n in (queries, keys, keys)]

def arrays(*results: Tensor) -> list[int]:
  """Return the number of arrays that each kernel with a reduction keeps."""
  kernels = [k.sink.toposort() for k in schedule(canonicalize([t.uop for t in results])).kernels]
  return [sum(u.op is Ops.STAGE for u in nodes) for nodes in kernels if any(u.op is Ops.REDUCE for u in nodes)]

@ON_CPU
def test_attention_is_one_kernel() -> None:
  q, k, v = empty()
  assert arrays(q.scaled_dot_product_attention(k, v)) == [2], "scores, and their powers"
  assert arrays(q.scaled_dot_product_attention(k, v, is_causal=True)) == [2]
  assert arrays(q.scaled_dot_product_attention(k, v, attn_mask=Tensor.empty(64, 64))) == [2]
  assert arrays(((q @ k.transpose(1, 2)).tanh() * 3).softmax() @ v) == [2], "soft capping"
  assert arrays((q @ k.transpose(1, 2)).softmax() @ v + Tensor.empty(64, 32)) == [2], "an epilogue"
  half = [t.half() for t in empty()]
  assert arrays(half[0].scaled_dot_product_attention(half[1], half[2]))[-1] == 3, "weights are rounded"
  scores = q @ k.transpose(1, 2)
  assert arrays((scores * (scores.abs().sum(-1, keepdim=True) + 1).reciprocal()) @ v) == [2], "another divisor"
  q, k, v = empty(queries=32, keys=197)
  assert arrays(q.scaled_dot_product_attention(k, v)) == [2]
  q, k, v = Tensor.empty(8, 64, 32), Tensor.empty(2, 64, 32), Tensor.empty(2, 64, 32)
  assert arrays(q.scaled_dot_product_attention(k, v, enable_gqa=True)) == [2]

@ON_CPU
def test_other_products_have_kernels_of_their_own() -> None:
  q, k, v = empty()
  weights = (q @ k.transpose(1, 2)).softmax()
  assert not any(arrays(weights @ v, weights)), "the weights are wanted, too"
  scores = q @ k.transpose(1, 2)
  assert not any(arrays(scores.softmax() @ v, scores))
  assert not any(arrays((q @ k.transpose(1, 2)).relu() @ v)), "no reduction of a row: tiles of both products are better"
  assert not any(arrays(*empty(queries=FEWEST_ROWS - 1)[:1], q.shrink((None, (0, FEWEST_ROWS - 1), None))
                        .scaled_dot_product_attention(k, v)))
  long = Device[Device.DEFAULT].row_bytes // (4 * FEWEST_ROWS) + 1
  q, k, v = empty(1, 16, long, 8)
  assert not any(arrays(q.scaled_dot_product_attention(k, v))), "rows that do not fit"
  q, k, v = empty(1, 64, 64, MOST_TERMS + 1)
  assert not any(arrays(q.scaled_dot_product_attention(k, v))), "operands that would come from far caches"

@ON_CPU
def test_scores_that_are_wanted_at_other_indices_are_not_kept() -> None:
  """The weights are found to be a row before the scores are found to be none."""
  q, k, v = empty()
  scores = q @ k.transpose(1, 2)
  assert not any(arrays(scores.softmax(-2) @ v)), "the maximum is that of a column"
  assert not any(arrays(scores.softmax().transpose(1, 2) @ v))
  assert not any(arrays((scores.softmax() * scores.flip(2)) @ v))
  assert not any(arrays((scores.softmax() * scores.shrink((None, None, (0, 63))).pad((None, None, (1, 0)))) @ v))
  assert arrays(scores.softmax(-2) @ v + q.scaled_dot_product_attention(k, v * 2).contiguous())[-2:] == [2, 0]

@ON_CPU
def test_gradients_need_the_weights() -> None:
  q, k, v = (Tensor.empty(4, 64, 32, requires_grad=True) for _ in range(3))
  out = q.scaled_dot_product_attention(k, v)
  out.sum().backward()
  assert q.grad is not None
  assert not any(arrays(out, q.grad))

@ON_CPU
def test_symbolic_sizes_keep_nothing_yet() -> None:
  n = Variable("n", 1, 64).bind(40)
  q, k, v = empty()
  assert not any(arrays(q.scaled_dot_product_attention(k.shrink((None, (0, n), None)), v.shrink((None, (0, n), None)))))

@ON_CPU
def test_the_product_is_divided_instead_of_the_weights() -> None:
  q, k, v = empty()
  (kernel,) = [s for s in schedule(canonicalize([q.scaled_dot_product_attention(k, v).uop])).kernels
               if any(u.op is Ops.STAGE for u in s.sink.toposort())]
  store = kernel.sink.src[0]
  product, factor = store.src[1].src
  assert store.src[1].op is Ops.MUL and product.op is Ops.REDUCE and factor.op is Ops.RECIPROCAL
  powers = {u for u in product.src[0].toposort(lambda u: u.op is not Ops.STAGE) if u.op is Ops.STAGE}
  assert powers == {u for u in factor.toposort(lambda u: u.op is not Ops.STAGE) if u.op is Ops.STAGE}

def expected(q: list[list[float]], k: list[list[float]], v: list[list[float]], allowed: list[list[bool]]
             ) -> list[list[float]]:
  """Return the attention of one head, by its definition. A row that may attend to nothing gives zeros."""
  out = []
  for i, query in enumerate(q):
    scores = [sum(a * b for a, b in zip(query, key)) / math.sqrt(len(query)) if fine else -math.inf
              for key, fine in zip(k, allowed[i])]
    largest = max(scores)
    powers = [math.exp(s - largest) if largest > -math.inf else 0.0 for s in scores]
    total = sum(powers) or 1.0
    out.append([sum(p * row[e] for p, row in zip(powers, v)) / total for e in range(len(v[0]))])
  return out

@pytest.mark.parametrize("seed", range(12))
def test_results_are_those_of_the_definition(seed: int) -> None:
  rng = random.Random(seed)
  heads, width = rng.choice((1, 2, 3)), rng.choice((4, 7, 16))
  queries = rng.choice((16, 17, 31, 64))
  causal, masked = rng.random() < 0.5, rng.random() < 0.4
  keys = queries if causal else rng.choice((5, 16, 50, 67, 128))
  with Context(SPEC=2):
    data = [[[[rng.uniform(-2, 2) for _ in range(width)] for _ in range(n)] for _ in range(heads)]
            for n in (queries, keys, keys)]
    allowed = [[(not causal or j <= i) and (causal or not masked or rng.random() < 0.3) for j in range(keys)]
               for i in range(queries)]
    # beside a large second batch, which makes the products large enough for one kernel
    filler = Tensor.ones(max(1, (1 << 18) // (queries * keys * width)), 1, 1)
    q, k, v = (Tensor.cat(Tensor(t), filler.expand(-1, len(t[0]), width)).contiguous().realize() for t in data)
    mask = Tensor(allowed) if masked and not causal else None
    out = q.scaled_dot_product_attention(k, v, attn_mask=mask, is_causal=causal)
    found = out.shrink(((0, heads), None, None)).tolist()
  for head in range(heads):
    wanted = expected(data[0][head], data[1][head], data[2][head], allowed)
    assert all(a == pytest.approx(b, abs=2e-5) for a, b in zip(found[head], wanted)), (seed, head)

def test_a_fold_of_all_scores_beside_one_of_those_that_are_seen() -> None:
  """Reductions of one depth share a loop, which must not end where only one of them may."""
  q, k, v = (Tensor.randn(16, 64, 32).realize() for _ in range(3))
  def result(stored: bool) -> Tensor:
    scores = q @ k.transpose(1, 2)
    if stored: scores = scores.contiguous()
    seen = (Tensor.arange(64).reshape(64, 1) < Tensor.arange(64)).where(-math.inf, scores)
    powers = (seen - seen.max(-1, keepdim=True)).exp() * scores.square().mean(-1, keepdim=True)
    return ((powers.contiguous() if stored else powers) @ v).realize()
  for a, b in zip(result(False).flatten().tolist(), result(True).flatten().tolist()):
    assert a == pytest.approx(b, rel=1e-4, abs=1e-3)

def test_what_a_mask_hides_does_not_count() -> None:
  q, k, v = (Tensor.randn(4, 64, 32) for _ in range(3))
  clean = q.scaled_dot_product_attention(k, v, is_causal=True).tolist()
  k, v = (Tensor.cat(t.shrink((None, (0, 63), None)), Tensor.full((4, 1, 32), 1e30), dim=1) for t in (k, v))
  changed = q.scaled_dot_product_attention(k.contiguous(), v.contiguous(), is_causal=True).tolist()
  assert all(a[:63] == b[:63] for a, b in zip(clean, changed))

@pytest.mark.parametrize("axis", (0, 1, 2))
def test_padding_ends_no_other_loop(axis: int) -> None:
  """Products with what is padded are 0 along its axis, and no loop along another one may end there."""
  heads, n, width, part = 16, 32, 64, 7
  sizes = [(heads, n, width), (heads, n, width), (heads, n, 16)]
  data = [Tensor.randn(*s).half().realize() for s in sizes]
  for which in range(3):
    arguments = [t.float() for t in data]
    arguments[which] = arguments[which].shrink(tuple((0, part) if k == axis else None for k in range(3))).pad(
      tuple((0, sizes[which][k] - part) if k == axis else None for k in range(3)))
    found = (arguments[0] @ arguments[1].transpose(1, 2)).softmax() @ arguments[2]
    q, k, v = (t.contiguous() for t in arguments)
    wanted = (q @ k.transpose(1, 2)).contiguous().softmax().contiguous() @ v
    assert (found - wanted).abs().max().item() < 1e-4, which

def test_heads_that_share_keys_have_rows_of_their_own() -> None:
  """Memory walks the rows of all heads as one. A mask compares their indices in a head."""
  n = 64
  q, k, v = (Tensor.randn(heads, n, n).realize() for heads in (3, 1, 1))
  hidden = Tensor.arange(n).reshape(n, 1) < Tensor.arange(n)
  def scores() -> Tensor: return hidden.where(-math.inf, q @ k.expand(3, n, n).transpose(1, 2) * 0.3)
  found = (scores().softmax() @ v.expand(3, n, n)).realize()
  wanted = scores().contiguous().softmax().contiguous() @ v
  assert (found - wanted).abs().max().item() < 1e-4

@pytest.fixture
def on_lanes(monkeypatch: pytest.MonkeyPatch) -> str:
  """A device whose lanes compute attention with an online softmax. Its schedules are of shapes that no other test has.
  """
  monkeypatch.setitem(Device["NULL"].__dict__, "_attention_types", frozenset({dtypes.float16, dtypes.bfloat16}))
  return "NULL"

def halves(rows: int, positions: int, width: int = 64, columns: int = 64, dtype: str = "float16") -> list[Tensor]:
  return [Tensor.empty(2, 3, n, d, dtype=dtype, device="NULL") for n, d in ((rows, width), (positions, width),
                                                                            (positions, columns))]

def test_lanes_compute_an_online_softmax(on_lanes: str) -> None:
  """Between the products are a softmax, and factors of a row, of positions and of inputs."""
  q, k, v = halves(200, 168)
  at = k.transpose(2, 3)
  assert arrays(q.scaled_dot_product_attention(k, v))[-1] == 3, "scores, powers and rounded weights"
  assert arrays(q.scaled_dot_product_attention(k, v, is_causal=True))[-1] == 3
  assert arrays(q.scaled_dot_product_attention(k, v, attn_mask=Tensor.empty(200, 168, device="NULL")))[-1] == 3
  assert arrays(q.scaled_dot_product_attention(
    k, v, attn_mask=Tensor.empty(200, 168, dtype="bool", device="NULL")))[-1] == 3
  assert arrays(((q @ at).float() / 30).tanh().mul(30).softmax().half() @ v)[-1] == 3, "soft capping"
  with Tensor.train(): assert arrays(q.scaled_dot_product_attention(k, v, dropout_p=0.25))[-1] >= 3
  q, k, v = halves(201, 168, dtype="bfloat16")
  assert arrays(q.scaled_dot_product_attention(k, v))[-1] == 3

def test_rows_are_scaled_as_they_are_loaded(on_lanes: str) -> None:
  q, k, v = halves(202, 168)
  def kernels(*results: Tensor) -> int: return len(schedule(canonicalize([t.uop for t in results])).kernels)
  assert kernels(q.scaled_dot_product_attention(k, v)) == 1, "1/8 is exact, so queries are scaled"
  assert kernels((q * 0.3 + 1).scaled_dot_product_attention(k, v)) == 1
  assert kernels(q.scaled_dot_product_attention(k * 0.3, v)) == 2, "each workgroup reads all keys"
  scaled = q * 0.125
  assert kernels(scaled.scaled_dot_product_attention(k, v), scaled) == 2, "they are wanted, too"

def test_lanes_compute_other_rows_in_several_kernels(on_lanes: str) -> None:
  q, k, v = halves(200, 168)
  scores = (q @ k.transpose(2, 3)).float()
  assert not any(arrays((scores * (scores.abs().sum(-1, keepdim=True) + 1).reciprocal()).half() @ v)), "no powers"
  powers = (scores - scores.max(-1, keepdim=True)).exp()
  assert not any(arrays((powers / powers.sum(-1, keepdim=True) + 0.5).half() @ v)), "no multiple of a power"
  assert not any(arrays((powers / powers.square().sum(-1, keepdim=True)).half() @ v)), "a sum of other values"
  q, k, v = halves(200, 168, MOST_ONLINE + 16)
  assert not any(arrays(q.scaled_dot_product_attention(k, v))), "rows of too many terms"
  q, k, v = halves(200, 168, 64, MOST_ONLINE + 16)
  assert not any(arrays(q.scaled_dot_product_attention(k, v))), "too many columns"
  q, k, v = halves(200, 168, dtype="float32")
  assert not any(arrays(q.scaled_dot_product_attention(k, v))), "a type that the matrix unit does not take"
