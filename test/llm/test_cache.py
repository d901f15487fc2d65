"""Attention over cached keys and values, against NumPy: blocks that are full, begun and crossed, and positions that are
Variables."""
import numpy as np
import pytest

from tinyhw import Tensor, TinyJit, Variable
from tinyhw.errors import ArgumentError
from tinyhw.llm.arch import TransformerConfig
from tinyhw.llm.cache import SPAN, KeyValueCache, blocks_of, positions_of

pytestmark = pytest.mark.usefixtures("engine")

HEADS, KV_HEADS, SIZE, CONTEXT = 4, 2, 8, SPAN + 5
CONFIG = TransformerConfig(num_blocks=1, dim=32, hidden_dim=32, n_heads=HEADS, n_kv_heads=KV_HEADS, norm_eps=1e-5,
                           vocab_size=8, head_dim=SIZE, rope_theta=1e4, rope_dim=SIZE, max_context=CONTEXT)

def attended(q, keys, values):
  """Causal attention of the last tokens of a text, in float64. keys, values: of the whole text."""
  q, keys, values = (x.astype("f8") for x in (q, keys, values))
  count, grouped = len(q), q.reshape(len(q), KV_HEADS, -1, SIZE)
  scores = np.einsum("tkgd,nkd->kgtn", grouped, keys) * SIZE ** -0.5
  scores[..., np.arange(len(keys)) > np.arange(len(keys) - count, len(keys))[:, None]] = -np.inf
  weights = np.exp(scores - scores.max(-1, keepdims=True))
  weights /= weights.sum(-1, keepdims=True)
  return np.einsum("kgtn,nkd->tkgd", weights, values).reshape(count, -1)

def text(count):
  rng = np.random.default_rng(count)
  return [rng.normal(size=(count, heads, SIZE)).astype("f4") for heads in (HEADS, KV_HEADS, KV_HEADS)]

@pytest.mark.parametrize("steps", [[1, 1, 3], [SPAN], [SPAN - 1, 1, 1], [SPAN - 2, 5], [CONTEXT - 1, 1]])
def test_a_text_in_steps(steps):
  cache, positions = KeyValueCache(CONFIG), positions_of(CONFIG)
  q, keys, values = text(sum(steps))
  start = 0
  for count in steps:
    end = start + count
    cache.write(Tensor(keys[start:end]), Tensor(values[start:end]), start)
    got = cache.attend(Tensor(q[start:end]), start, positions).numpy()
    np.testing.assert_allclose(got, attended(q[start:end], keys[:end], values[:end]), rtol=1e-4, atol=1e-5)
    start = end

def test_later_tokens_of_the_cache_are_not_seen():
  """They are of another text, and may be anything."""
  cache, positions = KeyValueCache(CONFIG), positions_of(CONFIG)
  q, keys, values = text(CONTEXT)
  keys[20:], values[25:] = float("nan"), float("inf")
  cache.write(Tensor(keys * 1e6), Tensor(values * 1e6), 0)
  for k in range(3):
    cache.write(Tensor(keys[k:k + 1]), Tensor(values[k:k + 1]), k)
    got = cache.attend(Tensor(q[k:k + 1]), k, positions).numpy()
    np.testing.assert_allclose(got, attended(q[k:k + 1], keys[:k + 1], values[:k + 1]), rtol=1e-4, atol=1e-5)

def test_one_capture_for_all_positions():
  cache, positions = KeyValueCache(CONFIG), positions_of(CONFIG)
  q, keys, values = text(CONTEXT)
  def step(q, keys, values, start):
    cache.write(keys, values, start)
    return cache.attend(q, start, positions).realize()
  jitted, start = TinyJit(step), Variable("start", 0, CONTEXT - 1)
  for k in range(CONTEXT):
    got = jitted(*(Tensor(t[k:k + 1]).realize() for t in (q, keys, values)), start.bind(k)).numpy()
    if k in (0, 1, 2, SPAN - 1, SPAN, CONTEXT - 1):
      np.testing.assert_allclose(got, attended(q[k:k + 1], keys[:k + 1], values[:k + 1]), rtol=1e-4, atol=1e-5)

def test_blocks():
  assert [blocks_of(n) for n in (0, 1, SPAN, SPAN + 1)] == [0, 1, 1, 2]
  assert positions_of(CONFIG).tolist() == list(range(2 * SPAN))

def test_tokens_behind_the_context_are_refused():
  cache = KeyValueCache(CONFIG)
  _, keys, values = text(2)
  for start in (CONTEXT - 1, CONTEXT, Variable("start", 0, CONTEXT - 1).bind(3)):
    with pytest.raises(ArgumentError, match="would be number"): cache.write(Tensor(keys), Tensor(values), start)
  cache.write(Tensor(keys), Tensor(values), CONTEXT - 2)
