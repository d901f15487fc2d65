"""The metadata of a model, and angles of positions by the formulae of their papers."""
import math

import numpy as np
import pytest
from formats.gguf_models import CONTEXT, DIM, HEADS, HIDDEN, KV_HEADS, VOCAB, Model

from tinyhw.errors import ArgumentError, FileFormatError
from tinyhw.llm.arch import ARCHITECTURES, Scaling, TransformerConfig, config_of, frequencies

def config(model, max_context=None, **more):
  return config_of({**model.kv, **more}, {k: t[0] for k, t in model.tensors.items()}, max_context)

def test_metadata():
  c = config(Model("qwen3", head_dim=16))
  assert (c.num_blocks, c.dim, c.hidden_dim, c.n_heads, c.n_kv_heads, c.vocab_size) == (2, DIM, HIDDEN, HEADS, KV_HEADS,
                                                                                        VOCAB)
  assert (c.head_dim, c.rope_dim, c.qk_norm, c.max_context, c.rope_theta, c.qkv_bias,
          c.interleaved) == (16, 16, 16, CONTEXT, 1000.0, False, False)
  assert config(Model("qwen2")).qkv_bias and config(Model("llama")).interleaved
  moe = config(Model("olmoe", experts=4), **{"olmoe.expert_feed_forward_length": 48})
  assert (moe.num_experts, moe.num_experts_per_tok, moe.norm_topk_prob, moe.hidden_dim,
          moe.qk_norm) == (4, 2, False, 48, DIM)
  assert config(Model("qwen3moe", experts=4)).norm_topk_prob and not config(Model("llama", expert_weights_norm=False,
                                                                                  experts=4)).norm_topk_prob
  assert set(ARCHITECTURES) == {"llama", "qwen2", "qwen3", "qwen3moe", "olmoe"}

def test_the_context():
  """The context is the file's, but at most 4096 unless asked for, and not beyond a sliding window."""
  big = Model("llama", context_length=100000)
  assert (config(big).max_context == 4096 and config(big, 9000).max_context == 9000 and config(big, 10 ** 6).max_context
          == 100000)
  assert config(Model("llama", **{"attention.sliding_window": 16})).max_context == 16

@pytest.mark.parametrize("more, why", [
  ({"general.architecture": "mamba"}, "'mamba' are not known; known are llama"),
  ({"general.architecture": None}, "None are not known"),
  ({"llama.block_count": None}, "llama.block_count is missing"), ({"llama.block_count": "2"}, "is '2'"),
  ({"llama.block_count": 0}, "num_blocks is 0"),
  ({"llama.attention.head_count": 0}, "head_count is 0"), ({"llama.attention.head_count_kv": 3}, "share the keys of 3"),
  ({"llama.attention.head_count_kv": [2, 2]}, "is \\[2, 2\\]"),
  ({"llama.attention.value_length": 4}, "different sizes"),
  ({"llama.rope.scaling.type": "longrope"}, "'longrope' is not known"),
  ({"llama.rope.scaling.type": "linear", "llama.rope.scaling.factor": 0.0}, "factor"),
  ({"llama.rope.dimension_count": 7}, "not an even number"), ({"llama.expert_count": 4}, "0 of 4 experts"),
  ({"llama.rope.freq_base": -1.0}, "rope_theta"),
  ({"llama.attention.layer_norm_rms_epsilon": float("nan")}, "norm_eps"),
  ({"llama.embedding_length": 1 << 40}, "dim is 1099511627776"),
])
def test_metadata_that_do_not_fit_are_refused(more, why):
  with pytest.raises(FileFormatError, match=why): config(Model("llama"), **more)

def test_axes_are_checked():
  model = Model("qwen3")
  for name, shape in (("token_embd.weight", ()), ("token_embd.weight", (4,)), ("blk.0.attn_q_norm.weight", ())):
    with pytest.raises(FileFormatError, match="other axes"):
      config_of(model.kv, {k: t[0] for k, t in model.tensors.items()} | {name: shape})

def test_max_context_is_checked():
  for wrong in (0, -1, "x", 1.5):
    with pytest.raises(ArgumentError, match="max_context is"): config(Model("llama"), wrong)

def sized(**more): return TransformerConfig(1, 64, 64, 2, 2, 1e-5, 8, 32, 10000.0, 32, 64, **more)

def test_angles():
  plain = 10000.0 ** (-np.arange(0, 32, 2) / 32)
  assert frequencies(sized()) == (pytest.approx(plain), 1.0)
  assert frequencies(sized(scaling=Scaling("linear", 4.0))) == (pytest.approx(plain / 4), 1.0)
  found, length = frequencies(sized(scaling=Scaling("yarn", 8.0, 2048)))
  turns = 2048 * plain / (2 * math.pi)   # within the positions of the training
  assert length == pytest.approx(1 + 0.1 * math.log(8))
  # Fast pairs stay, slow pairs are stretched, and the others are in between.
  for f, p, t in zip(found, plain, turns):
    if t > 40: assert f == pytest.approx(p)
    elif t < 0.7: assert f == pytest.approx(p / 8)
    else: assert p / 8 <= f <= p
  assert sorted(found, reverse=True) == found and frequencies(sized(scaling=Scaling("yarn", 1.0, 2048)))[1] == 1.0
