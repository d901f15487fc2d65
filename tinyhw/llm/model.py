"""Transformers that continue texts: Llama, Qwen2 and Qwen3, with and without experts, and OLMoE, from GGUF files.

Keys and values of earlier tokens are kept in a cache. A step takes one token, or a chunk of a prompt. Its position is a
Variable, so TinyJit captures each of the two once for all positions. The last chunk of a prompt is padded. The cache
entries after the prompt are overwritten before they are read.
"""
from __future__ import annotations
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
import os
import threading
from typing import Any

from tinyhw.capture.jit import TinyJit, modes
from tinyhw.dtype import dtypes
from tinyhw.errors import ArgumentError, FileFormatError
from tinyhw.llm.arch import TransformerConfig, config_of, frequencies
from tinyhw.llm.cache import KeyValueCache, Position, positions_of
from tinyhw.llm.gguf import gguf_read
from tinyhw.llm.weights import (
  Experts, FileWeights, ModelWeights, ProductInput, Projection, RootMeanSquareNorm, product, rows)
from tinyhw.methods.random.generator import Generator
from tinyhw.named_tuple import NamedTuple
from tinyhw.tensor import Tensor
from tinyhw.uop.ops import UOp

class Rotary:
  """Rotary positions: rotations of pairs of elements.

  Source: Su et al. 2021. divisors: of each pair's angle (Llama 3 stretches slow ones).
  """
  def __init__(self, config: TransformerConfig, divisors: Tensor | None):
    angles, self.length = frequencies(config)
    self.dim, self.interleaved = config.rope_dim, config.interleaved
    step = Tensor(angles, dtype=dtypes.float64)
    if divisors is not None: step = step / divisors.cast(dtypes.float64)
    turns = Tensor.arange(config.max_context, dtype=dtypes.float64).unsqueeze(1) * step
    self.cos, self.sin = ((t * self.length).float().contiguous().realize() for t in (turns.cos(), turns.sin()))

  def __call__(self, x: Tensor, start: Position) -> Tensor:
    """Rotate x: (tokens, heads, head_dim), with the first token at position start."""
    tokens, heads, size = x.shape
    cos, sin = (t.shrink(((start, start + tokens), None)).unsqueeze(1) for t in (self.cos, self.sin))
    part = x[..., :self.dim].reshape(tokens, heads, *((-1, 2) if self.interleaved else (2, -1)))
    axis = -1 if self.interleaved else -2
    a, b = (part[..., 0], part[..., 1]) if self.interleaved else (part[..., 0, :], part[..., 1, :])
    rotated = (a * cos - b * sin).stack(a * sin + b * cos, dim=axis).reshape(tokens, heads, self.dim)
    return rotated if self.dim == size else rotated.cat(x[..., self.dim:], dim=-1)

class FeedForward:
  """SwiGLU: down(silu(gate(x)) * up(x)). Source: Shazeer 2020."""
  def __init__(self, config: TransformerConfig, source: ModelWeights, name: str):
    self.gate = Projection(source, f"{name}.ffn_gate", config.dim, config.hidden_dim)
    self.up = Projection(source, f"{name}.ffn_up", config.dim, config.hidden_dim)
    self.down = Projection(source, f"{name}.ffn_down", config.hidden_dim, config.dim)

  def __call__(self, x: Tensor) -> Tensor:
    both = ProductInput(x)
    return self.down(self.gate(both).silu() * self.up(both))

class MixtureOfExperts:
  """A mixture of experts. Each token uses the experts with the highest scores of its router, weighted by their scores.

  Source: Shazeer et al. 2017.
  """
  def __init__(self, config: TransformerConfig, source: ModelWeights, name: str):
    self.taken, self.renormalize = config.num_experts_per_tok, config.norm_topk_prob
    self.router = Projection(source, f"{name}.ffn_gate_inp", config.dim, config.num_experts)
    self.gate = Experts(source, f"{name}.ffn_gate_exps", config.num_experts, config.dim, config.hidden_dim)
    self.up = Experts(source, f"{name}.ffn_up_exps", config.num_experts, config.dim, config.hidden_dim)
    self.down = Experts(source, f"{name}.ffn_down_exps", config.num_experts, config.hidden_dim, config.dim)

  def __call__(self, x: Tensor) -> Tensor:
    scores, chosen = self.router(x).softmax(-1).topk(self.taken, dim=-1)
    if self.renormalize: scores = scores / scores.sum(-1, keepdim=True)
    y = x.unsqueeze(1)
    y = self.down(self.gate(y, chosen).silu() * self.up(y, chosen), chosen)
    return (y * scores.unsqueeze(-1)).sum(1)

class TransformerBlock:
  """Attention over the token and all before it, then a feed-forward network. The input of each is added to its
  output."""
  def __init__(self, config: TransformerConfig, source: ModelWeights, name: str, rotary: Rotary):
    self.config, self.rotary = config, rotary
    queries, keys = config.n_heads * config.head_dim, config.n_kv_heads * config.head_dim
    self.attn_norm = RootMeanSquareNorm(source, f"{name}.attn_norm", config.dim, config.norm_eps)
    self.ffn_norm = RootMeanSquareNorm(source, f"{name}.ffn_norm", config.dim, config.norm_eps)
    self.attn_q = Projection(source, f"{name}.attn_q", config.dim, queries, config.qkv_bias)
    self.attn_k = Projection(source, f"{name}.attn_k", config.dim, keys, config.qkv_bias)
    self.attn_v = Projection(source, f"{name}.attn_v", config.dim, keys, config.qkv_bias)
    self.attn_output = Projection(source, f"{name}.attn_output", queries, config.dim)
    self.each = config.qk_norm == config.head_dim   # is each head normalized separately?
    self.attn_q_norm = RootMeanSquareNorm(source, f"{name}.attn_q_norm", config.head_dim if self.each else queries,
                                          config.norm_eps) if config.qk_norm else None
    self.attn_k_norm = RootMeanSquareNorm(source, f"{name}.attn_k_norm", config.head_dim if self.each else keys,
                                          config.norm_eps) if config.qk_norm else None
    self.ffn: MixtureOfExperts | FeedForward = (MixtureOfExperts if config.num_experts
                                                else FeedForward)(config, source, name)
    self.cache = KeyValueCache(config)

  def __call__(self, x: Tensor, start: Position, positions: Tensor) -> Tensor:
    """Apply the block to x: (tokens, dim), with the first token at position start. positions: 0, 1, ... of the
    whole cache."""
    x = x + self.attention(self.attn_norm(x), start, positions)
    return (x + self.ffn(self.ffn_norm(x))).contiguous()

  def attention(self, x: Tensor, start: Position, positions: Tensor) -> Tensor:
    """Write keys and values to the cache, and attend."""
    each = ProductInput(x)
    q = self._heads(self.attn_q(each), self.attn_q_norm)
    k = self._heads(self.attn_k(each), self.attn_k_norm)
    self.cache.write(self.rotary(k, start), self.attn_v(each).reshape(k.shape), start)
    return self.attn_output(self.cache.attend(self.rotary(q, start), start, positions))

  def _heads(self, x: Tensor, norm: RootMeanSquareNorm | None) -> Tensor:
    """Split heads: (tokens, all heads) -> (tokens, heads, head_dim), normalized."""
    if norm is not None and not self.each: x = norm(x)
    x = x.reshape(x.shape[0], -1, self.config.head_dim)
    return norm(x) if norm is not None and self.each else x

class GenerationOptions(NamedTuple):
  """Options of generation: the size of a chunk of the prompt, the temperature, and the generator of random numbers.
  generator None: the global one."""
  chunk_size: int
  temperature: Tensor
  generator: Generator | None

  def draw(self, place: int) -> AbstractContextManager[object]:
    """Return a context in which draws are those of the token at an index of the text. They do not depend on the number
    of steps before, since a cache may hold the prompt."""
    if self.generator is None: return nullcontext()
    self.generator.next = place
    return self.generator

class Transformer:
  """A language model with a cache for one text. `generate` continues a text. Texts with the same beginning share the
  work for it.

  It has no gradients. Several threads may use it: they take turns, step by step.
  """
  def __init__(self, config: TransformerConfig, source: ModelWeights | None = None):
    source = source or ModelWeights()
    self.config = config
    self.token_embd = source.get("token_embd.weight", config.vocab_size, config.dim)
    divisors = source.vector("rope_freqs.weight", config.rope_dim // 2) if source.has("rope_freqs.weight") else None
    rotary = Rotary(config, divisors)
    self.blk = [TransformerBlock(config, source, f"blk.{i}", rotary) for i in range(config.num_blocks)]
    self.output_norm = RootMeanSquareNorm(source, "output_norm", config.dim, config.norm_eps)
    tied = isinstance(source, FileWeights) and not source.has("output.weight")
    self.output = source.get("output.weight", config.vocab_size, config.dim) if not tied else self.token_embd
    self.positions = positions_of(config)
    self._steps: dict[tuple[int, tuple[Any, ...]], TinyJit[..., Tensor]] = {}   # by the number of tokens and the modes
    self._cached: list[int] = []                        # tokens whose keys and values are in the cache
    self._lock = threading.RLock()

  @staticmethod
  def from_gguf(gguf: Tensor | str | os.PathLike[str], max_context: int | None = None,
                realize: bool = False, exact: bool = False) -> tuple[Transformer, dict[str, Any]]:
    """Return the model of a GGUF file, and the file's metadata. max_context: the capacity of the cache in tokens; None:
    the file's, but at most 4096.

    realize: decode quantized parameters once, to float32. Otherwise they stay small, and products with them
    round the other operand to 8 bits, as llama.cpp does. exact: such products take float32, and are much slower.

    Raises FileFormatError for an unknown architecture, and for a file that does not fit its own metadata.
    """
    kv, stored = gguf_read(gguf)
    source = FileWeights(stored, realize, exact)
    model = Transformer(config_of(kv, {name: s.shape for name, s in stored.items()}, max_context), source)
    if source.unused:
      raise FileFormatError(f"the model would not use the file's tensors {', '.join(list(source.unused)[:8])}; it is "
                            f"of a kind not known")
    return model, kv

  def __getstate__(self) -> dict[str, Any]:
    """Return the state for copies and pickles: all but the captures and the lock, which a copy creates itself."""
    return {name: value for name, value in vars(self).items() if name not in ("_steps", "_lock")}

  def __setstate__(self, state: dict[str, Any]) -> None:
    vars(self).update(state, _steps={}, _lock=threading.RLock())

  # ***** one step *****

  def logits(self, tokens: Tensor, start: Position, last: Position) -> Tensor:
    """Return scores of the token that follows tokens[last]: (vocab_size,). tokens: (n,), with the first at position
    start of the text."""
    x = rows(self.token_embd, tokens)
    for block in self.blk: x = block(x, start, self.positions)
    x = self.output_norm(x.shrink(((last, last + 1), None)))
    return product(x, self.output).flatten()

  def forward(self, tokens: Tensor, start: Position, last: Position, temperature: Tensor) -> Tensor:
    """Return the token that follows tokens[last], drawn from softmax(logits / temperature): (). Temperature 0: the
    likeliest token.

    The largest of the scores plus temperature times Gumbel noise has that distribution. Source: Gumbel 1954.
    """
    scores = self.logits(tokens, start, last)
    noise = -(-Tensor.rand(self.config.vocab_size).clip(1e-9, 1 - 1e-7).log()).log()
    return (scores + temperature * noise).argmax().realize()

  def __call__(self, tokens: Tensor, start: int, last: int, temperature: Tensor) -> Tensor:
    """Call forward, captured once for each number of tokens and for each mode, such as Tensor.no_grad. A capture is
    valid in one mode only."""
    n = int(tokens.shape[0])
    position, row = UOp.variable("start_pos", 0,
                                 self.config.max_context - n).bind(start), UOp.variable("last", 0, n - 1).bind(last)
    step = self._steps.setdefault((n, modes()), TinyJit(self.forward))
    return step(tokens, position, row, temperature)

  # ***** texts *****

  def get_start_pos(self, tokens: Sequence[int]) -> int:
    """Return the number of a text's first tokens that need no computation, since they are in the cache. At least one
    token needs it."""
    most = min(len(tokens) - 1, len(self._cached))
    if list(tokens[:most]) == self._cached[:most]: return most
    return next(i for i in range(most) if tokens[i] != self._cached[i])

  def generate(self, tokens: Sequence[int], chunk_size: int = 32, temperature: float = 0.0,
               seed: int | None = None) -> Iterator[int]:
    """Yield the tokens that follow a text, until the context is full. Temperature 0: the likeliest ones.

    chunk_size: tokens of the prompt that are computed at once. seed: of these draws alone; None: the draws come from
    the global generator. Raises ArgumentError for tokens that do not exist, and for a text that fills the context.
    """
    text = list(tokens)
    wrong = next((t for t in text if type(t) is not int or not 0 <= t < self.config.vocab_size), None)
    if wrong is not None:
      raise ArgumentError(f"{wrong!r} is no token; they are numbers from 0 to {self.config.vocab_size - 1}")
    if not text: raise ArgumentError("there is no text to go on with; give at least one token, such as bos")
    if len(text) > self.config.max_context:
      raise ArgumentError(f"the text has {len(text)} tokens, and the context {self.config.max_context}; raise "
                          f"max_context, or shorten the text")
    if type(chunk_size) is not int or chunk_size < 1:
      raise ArgumentError(f"chunk_size is {chunk_size!r}, not a number of tokens")
    if not isinstance(temperature, (int, float)) or not 0 <= temperature < float("inf"):
      raise ArgumentError(f"temperature is {temperature!r}, not 0 or above")
    options = GenerationOptions(min(chunk_size, self.config.max_context), Tensor([float(temperature)]).realize(),
                                None if seed is None else Generator(seed))
    return self._following(text, options)

  def _following(self, text: list[int], options: GenerationOptions) -> Iterator[int]:
    while len(text) <= self.config.max_context:
      token = self._next(text, options)
      text.append(token)
      yield token

  def _next(self, text: list[int], options: GenerationOptions) -> int:
    """Return the token that follows a text, and complete the cache."""
    with self._lock:
      start = self.get_start_pos(text)
      while True:
        is_chunk = len(text) - start > 1 and start + options.chunk_size <= self.config.max_context
        size = options.chunk_size if is_chunk else 1
        part = text[start:start + size]
        del self._cached[start:]   # so a step that fails leaves no partial state
        tokens = Tensor(part + [0] * (size - len(part)), dtype=dtypes.int32).realize()
        with options.draw(len(text)): found = self(tokens, start, len(part) - 1, options.temperature)
        self._cached += part
        start += len(part)
        if start == len(text): return int(found.item())
