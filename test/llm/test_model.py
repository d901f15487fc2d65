"""Language models from files against NumPy's float64, on every device; the cache, chunks, sampling, errors."""
import copy
import gc
import itertools
import pickle
from typing import Any

import numpy as np
import pytest
from formats.gguf_models import CONTEXT, DIM, EPS, F16, HEADS, HIDDEN, KV_HEADS, Q8_0, TOKENIZER, VOCAB, Model, stored
from formats.mutations import fuzz
from formats.tinygrad_llm import tinygrad_llm

from test.helpers import ENGINES, on
from tinyhw import GlobalCounters, Tensor, dtypes
from tinyhw.errors import ArgumentError, FileFormatError
from tinyhw.llm.arch import TransformerConfig, config_of
from tinyhw.llm.gguf import gguf_read
from tinyhw.llm.model import Transformer
from tinyhw.llm.packed import PackedMatrix
from tinyhw.llm.tokenizer import SimpleTokenizer
from tinyhw.llm.words import PRESETS, split

DEVICES = [name for name in ENGINES if name != "interpreter"]   # the interpreter replaces runs that TinyJit captures
TEXT = [int(t) for t in np.random.default_rng(1).integers(0, VOCAB, 13)]
MODELS = {
  "llama": Model("llama"), "llama, stretched": Model("llama", divisors=[1.0, 1.5, 4.0, 8.0]),
  "tied F16": Model("llama", F16, tied=True),
  "mixtral": Model("llama", experts=4), "qwen2": Model("qwen2"), "qwen3": Model("qwen3", head_dim=16),
  "Q8_0": Model("qwen3", Q8_0),
  "qwen3moe": Model("qwen3moe", experts=4), "Q8_0 experts": Model("qwen3moe", Q8_0, experts=4),
  "olmoe": Model("olmoe", experts=4),
}

def load(model, **kwargs): return Transformer.from_gguf(Tensor(model.file(), dtype=dtypes.uint8), **kwargs)[0]

def likeliest(model, text, count):
  """Return the tokens that follow a text, and by how much each is likelier than any other."""
  found, margins = list(text), []
  for _ in range(count):
    scores = model.logits(found)[-1]
    best, second = np.sort(scores)[::-1][:2]
    margins.append(best - second)
    found.append(int(scores.argmax()))
  return found[len(text):], min(margins)

def take(iterator, count): return list(itertools.islice(iterator, count))

@pytest.fixture(scope="module")
def llama() -> Any:
  """A shared model for tests without special needs, since each model compiles a step for a token and one for a
  chunk."""
  with on(DEVICES[0]): yield load(MODELS["llama"])

FAST = ("llama", "qwen3", "qwen3moe")   # models whose tests are not marked slow

def scores(model, *lengths):
  """Return the scores after parts of TEXT."""
  ends = np.cumsum(lengths)
  with Tensor.no_grad():
    return [model.logits(Tensor(TEXT[b - n:b], dtype="int32"), int(b - n), n - 1).numpy()
            for b, n in zip(ends, lengths)]

@pytest.mark.parametrize("name", [pytest.param(name, marks=[] if name in FAST else pytest.mark.slow)
                                  for name in MODELS])
def test_scores(name):
  model = MODELS[name]
  with on(DEVICES[0]): got = scores(load(model, exact=True), 9, 4)
  np.testing.assert_allclose(got, model.logits(TEXT)[[8, 12]], rtol=1e-3, atol=2e-4)

@pytest.mark.slow
@pytest.mark.parametrize("name", ["Q8_0", "Q8_0 experts"])
def test_scores_of_rounded_products(name):
  """Scores after a prompt, and after single tokens. They are not exact."""
  model = MODELS[name]
  with on(DEVICES[0]): got = np.array(scores(load(model), 9, 1, 1, 2))
  want = model.logits(TEXT)[[8, 9, 10, 12]]
  difference = np.abs(got - want).max(-1) / np.abs(want).max(-1)
  assert (difference < 0.04).all() and (difference > 1e-3).any(), difference

@pytest.mark.slow
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", ["llama", "Q8_0 experts"])
def test_texts(device, name):
  """A prompt is processed in chunks, then token by token. The following tokens are also the likeliest by the float64
  model."""
  model = MODELS[name]
  want, margin = likeliest(model, TEXT, 8)
  assert margin > 1e-3
  with on(device): assert take(load(model).generate(TEXT, chunk_size=4), 8) == want

# One model, since clang compiles its kernels. qwen2 and qwen3 agree too.
@pytest.mark.parametrize("name", ["llama"])
def test_tinygrad_goes_on_in_the_same_way(name, tmp_path):
  theirs = tinygrad_llm("model").Transformer
  model = MODELS[name]
  path = tmp_path / "tiny.gguf"
  path.write_bytes(model.file(**{"tokenizer.ggml.tokens": ["a"] * VOCAB}))
  try: found = take(theirs.from_gguf(path)[0].generate(list(TEXT), chunk_size=4, temperature=0.0), 5)
  # Python 3.12 has a fixed limit inside of its own C code
  except RecursionError: pytest.skip("tinygrad recurses deeper than this Python allows")
  assert found == likeliest(model, TEXT, 5)[0]

def test_positions_that_are_scaled():
  """Positions scaled linearly, and by yarn with the angles of its paper."""
  for more, angles in (({"rope.scaling.type": "linear", "rope.scaling.factor": 4.0}, 1000.0 ** (-np.arange(4) / 4) / 4),
                       ):
    model = Model("llama", **more)
    with on(DEVICES[0]), Tensor.no_grad(): got = load(model).logits(Tensor(TEXT, dtype="int32"), 0, 12).numpy()
    np.testing.assert_allclose(got, model.logits(TEXT, angles)[12], rtol=1e-3, atol=2e-4)

def test_the_whole_context_is_used_and_no_more(llama):
  """The last chunk does not fit into the context, so its tokens are processed one by one."""
  text = (TEXT * 4)[:CONTEXT - 2]
  want, margin = likeliest(MODELS["llama"], text, 3)
  assert margin > 1e-3 and list(llama.generate(text, chunk_size=4)) == want

def test_texts_that_begin_alike_share_work(llama):
  whole = take(llama.generate(TEXT, chunk_size=4), 4)
  assert llama.get_start_pos([*TEXT, *whole]) == len(TEXT) + 3 and llama.get_start_pos(TEXT) == len(TEXT) - 1
  assert llama.get_start_pos([*TEXT[:5], 99, 1, 2]) == 5 and llama.get_start_pos([99]) == 0
  steps = []
  plain = llama.__call__
  class Counting(Transformer):
    def __call__(self, tokens, *args):
      steps.append(tokens.shape[0])
      return plain(tokens, *args)
  llama.__class__ = Counting
  try:
    assert take(llama.generate(TEXT, chunk_size=4), 1) == whole[:1] and steps == [1]
    other = [*TEXT[:6], *TEXT]
    assert take(llama.generate(other, chunk_size=4), 1) == likeliest(MODELS["llama"], other,
                                                                     1)[0] and steps[1:] == [4, 4, 4, 1]
  finally: llama.__class__ = Transformer

def test_two_texts_at_once_do_not_disturb_each_other(llama):
  texts = [TEXT, TEXT[:5] + TEXT[:4]]
  wanted = [likeliest(MODELS["llama"], text, 4)[0] for text in texts]
  first, second = (llama.generate(text, chunk_size=4) for text in texts)
  assert [list(pair) for pair in zip(*((next(first), next(second)) for _ in range(4)))] == wanted

def test_temperature(llama):
  """Tokens are drawn from softmax(scores / temperature), and repeat with the same seed. Another temperature needs no
  other capture."""
  scores = MODELS["llama"].logits(TEXT)[-1]
  weights = np.exp((scores - scores.max()) / 0.5)
  weights /= weights.sum()
  Tensor.manual_seed(1)
  draws = [next(llama.generate(TEXT, 4, 0.5)) for _ in range(400)]
  counts = np.bincount(draws, minlength=VOCAB)
  big = weights > 0.02
  assert ((np.abs(counts - 400 * weights) < 5 * np.sqrt(400 * weights) + 4)[big].all() and counts[weights < 1e-5].sum()
          == 0)
  def seeded(seed):
    Tensor.manual_seed(seed)
    return take(llama.generate(TEXT, 4, 2.0), 12)
  assert seeded(5) == seeded(5) != seeded(6)

def test_a_seed_of_ones_own(llama):
  """The tokens do not depend on the contents of the cache, on the chunks, or on other draws. Other draws do not depend
  on them."""
  long = TEXT * 3
  def seeded(seed, chunk_size=4):
    found = []
    for token in llama.generate(long, chunk_size, 2.0, seed=seed):
      found.append(token)
      Tensor.rand(1).realize()
      if len(found) == 8: return found
  Tensor.manual_seed(1)
  llama._cached.clear()
  first = seeded(5)
  assert seeded(5) == first == seeded(5, 2) and seeded(6) != first
  left = Tensor.rand(3).tolist()
  Tensor.manual_seed(1)
  for _ in range(32): Tensor.rand(1)
  assert Tensor.rand(3).tolist() == left

def test_temperature_0_is_the_likeliest(llama):
  assert take(llama.generate(TEXT, 4, 0), 3) == likeliest(MODELS["llama"], TEXT, 3)[0]

def test_modes_may_change_between_tokens(llama):
  """Another mode has captures of its own. Tensors that others compute meanwhile are not detached from their graph."""
  want = likeliest(MODELS["llama"], TEXT, 6)[0]
  tokens = llama.generate(TEXT, chunk_size=4)
  found = take(tokens, 2)
  with Tensor.no_grad(): found += take(tokens, 2)
  with Tensor.train(): found += take(tokens, 1)
  x = Tensor([3.0], requires_grad=True)
  y = x * x
  found += take(tokens, 1)
  y.sum().backward()
  assert found == want and x.grad.item() == 6

@pytest.mark.slow
def test_tokens_do_not_add_up_memory(llama):
  take(llama.generate(TEXT, chunk_size=4), 30)    # captures, of which the last is made at the 21st token
  tokens = llama.generate(TEXT, chunk_size=4)
  take(tokens, 5)
  gc.collect()
  before, objects = GlobalCounters.mem_used, len(gc.get_objects())
  take(tokens, 25)
  gc.collect()
  assert GlobalCounters.mem_used <= before + 4096 and len(gc.get_objects()) < objects + 500

@pytest.mark.slow
@pytest.mark.parametrize("copied", [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))],
                         ids=["deepcopy", "pickle"])
def test_copies(copied):
  """A copy has the text so far, and continues independently. Its parameters are packed, too."""
  with on(DEVICES[0]):
    first, untouched = load(MODELS["Q8_0"]), load(MODELS["Q8_0"])
    def wanted(text, count):
      untouched._cached.clear()
      return take(untouched.generate(text, chunk_size=4), count)
    assert take(first.generate(TEXT, chunk_size=4), 2) == wanted(TEXT, 2)
    second = copied(first)
    assert second.get_start_pos([*TEXT, 0, 0, 0]) == first.get_start_pos([*TEXT, 0, 0, 0]) > 0
    other = TEXT[::-1]
    assert take(first.generate(other, chunk_size=4), 2) == wanted(other, 2)
    assert take(second.generate(TEXT, chunk_size=4), 4) == wanted(TEXT, 4)

def test_decoded_once_or_where_it_is_used():
  """Both ways compute the same. A matrix in blocks stays in blocks, or is packed and stays small."""
  model = MODELS["Q8_0"]
  with on(DEVICES[0]):
    small, whole, packed = load(model, exact=True), load(model, realize=True), load(model)
    assert (small.blk[0].ffn.gate.weight.data.nbytes() == HIDDEN * DIM // 32 * 34 and whole.blk[0].ffn.gate.weight.shape
            == (HIDDEN, DIM))
    weight = packed.blk[0].ffn.gate.weight
    assert isinstance(weight, PackedMatrix)
    assert sum(t.nbytes() for t in (*weight.planes, weight.scale)) == HIDDEN * DIM // 32 * 34
    with Tensor.no_grad(): a, b = (m.logits(Tensor(TEXT, dtype="int32"), 0, 12).numpy() for m in (small, whole))
    np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)

def test_a_model_of_random_numbers():
  config = TransformerConfig(num_blocks=1, dim=DIM, hidden_dim=HIDDEN, n_heads=HEADS, n_kv_heads=KV_HEADS, norm_eps=EPS,
                             vocab_size=VOCAB, head_dim=8,
                             rope_theta=1e4, rope_dim=4, max_context=4)
  with on(DEVICES[0]):
    found = list(Transformer(config).generate([1]))
    assert len(found) == 4 and all(0 <= token < VOCAB for token in found)

def test_what_generate_refuses(llama):
  for tokens, why in (([], "no text"), ([VOCAB], "64 is no token"), ([-1], "-1 is no token"),
                      (["a"], "'a' is no token"),
                      ([True], "True is no token"), ([1] * (CONTEXT + 1), "has 49 tokens")):
    with pytest.raises(ArgumentError, match=why): llama.generate(tokens)
  for options, why in (({"chunk_size": 0}, "chunk_size is 0"), ({"temperature": -1}, "temperature is -1"),
                       ({"temperature": float("nan")}, "nan"),
                       ({"temperature": "x"}, "temperature is 'x'")):
    with pytest.raises(ArgumentError, match=why): llama.generate(TEXT, **options)

def test_files_that_do_not_fit_are_refused():
  def file(change):
    model = Model("qwen2", blocks=1)
    change(model)
    return model
  def drop(m): del m.tensors["blk.0.ffn_up.weight"]
  def shape(m): m.tensors["blk.0.ffn_up.weight"] = stored(np.ones((DIM, HIDDEN)), 0)
  def extra(m): m.tensors["blk.0.attn_post_norm.weight"] = stored(np.ones(DIM), 0)
  def integers(m): m.tensors["blk.0.ffn_up.weight"] = ((HIDDEN, DIM), 26, bytes(HIDDEN * DIM * 4))
  def bigger(m): m.kv["qwen2.block_count"] = 2
  with on(DEVICES[0]):
    for change, why in ((drop, "no tensor 'blk.0.ffn_up.weight'"), (shape, "has shape"),
                        (extra, "would not use .*attn_post_norm"),
                        (integers, "no floats"), (bigger, "no tensor 'blk.1")):
      with pytest.raises(FileFormatError, match=why): load(file(change))

def test_mutated_files():
  """A damaged file is refused, or gives a model. There is no crash, no hang, and no memory for a false claim."""
  def use(data):
    with Tensor.no_grad(): config_of(*shapes_of(data))
  def shapes_of(data):
    kv, stored_tensors = gguf_read(Tensor(data, dtype=dtypes.uint8))
    SimpleTokenizer.from_gguf_kv(kv).encode("Hi<|im_end|>")
    return kv, {name: s.shape for name, s in stored_tensors.items()}
  for preset in set(PRESETS.values()): split("a", preset)   # the expressions are made once, which takes a while
  model = Model("qwen2", blocks=1)
  model.tensors = {name: t for name, t in model.tensors.items() if "norm" in name or "token" in name}
  fuzz(use, {"model": model.file(**TOKENIZER)})
