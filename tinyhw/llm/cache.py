"""Keys and values of a text, and attention over them.

They are kept in blocks of SPAN tokens. So a loop over the tokens of a text, whose number varies, consists of a loop
over blocks and one of SPAN iterations, which fills vector registers. The last block is read whole, and masked.
"""
from __future__ import annotations

from tinyhw.dtype import dtypes
from tinyhw.errors import ArgumentError
from tinyhw.llm.arch import TransformerConfig
from tinyhw.tensor import Tensor
from tinyhw.uop.ops import UOp

SPAN = 32            # tokens of a block
MASKED = -1e30       # the score of a token that is not seen

Position = int | UOp

def blocks_of(tokens: Position) -> Position:
  """Return the number of blocks of some tokens."""
  return (tokens + SPAN - 1) // SPAN

class KeyValueCache:
  """Keys and values of one layer. keys: (blocks, kv heads, head_dim, SPAN). values: (blocks, kv heads, SPAN, head_dim).
  """
  def __init__(self, config: TransformerConfig):
    self.config = config
    heads, size, blocks = config.n_kv_heads, config.head_dim, blocks_of(config.max_context)
    self.keys, self.values = (Tensor.zeros(blocks, heads, *shape, requires_grad=False).contiguous().realize()
                              for shape in ((size, SPAN), (SPAN, size)))

  def write(self, keys: Tensor, values: Tensor, start: Position) -> None:
    """Keep keys and values, (tokens, kv heads, head_dim), of tokens from a position on. Raises ArgumentError if they do
    not fit into the context."""
    end = start + keys.shape[0]
    if (last := end if isinstance(end, int) else int(end.vmax)) > self.config.max_context:
      raise ArgumentError(f"the cache has {self.config.max_context} tokens, and the last of these would be number "
                          f"{last}; raise max_context, or begin earlier")
    written = []
    for kept, order, new in ((self.keys, (0, 3, 1, 2), keys), (self.values, (0, 2, 1, 3), values)):
      by_token = kept.permute(*order).reshape(-1, *new.shape[1:])
      written.append(by_token.shrink(((start, end), None, None)).assign(new))
    Tensor.realize(*written)

  def attend(self, q: Tensor, start: Position, positions: Tensor) -> Tensor:
    """Return the values, weighted by softmax(q @ keys): (tokens, heads * head_dim).

    q: (tokens, heads, head_dim), with the first token at position start; each sees itself and all before. Several query
    heads share one head of keys and values (grouped queries, Ainslie et al. 2023). positions: 0, 1, ... of all blocks.
    """
    c, tokens, end = self.config, q.shape[0], start + q.shape[0]
    n, rows = blocks_of(end), c.n_heads // c.n_kv_heads * tokens
    keys, values = (t.shrink(((0, n), None, None, None)).transpose(0, 1) for t in (self.keys, self.values))
    q = q.reshape(tokens, c.n_kv_heads, -1, c.head_dim).permute(1, 2, 0, 3)
    q = q.reshape(c.n_kv_heads, rows, c.head_dim, 1, 1)
    scores = (q * keys.permute(0, 2, 1, 3).unsqueeze(1)).sum(2) * c.head_dim ** -0.5   # (kv heads, rows, n, SPAN)
    own = positions.shrink(((start, end),)).reshape(tokens, 1, 1)
    every = positions.shrink(((0, n * SPAN),)).reshape(n, SPAN)
    seen, values = every <= own, (every.unsqueeze(-1) < end).where(values, 0)   # no NaN of an earlier text counts
    scores = seen.where(scores.reshape(c.n_kv_heads, -1, tokens, n, SPAN), MASKED)
    weights = (scores - scores.max((-2, -1), keepdim=True)).exp()
    total = weights.sum((-2, -1)).reshape(c.n_kv_heads, rows, 1)
    weights = weights.reshape(c.n_kv_heads, rows, n, SPAN, 1)
    y = (weights * values.unsqueeze(1)).sum((2, 3)) / total            # (kv heads, rows, head_dim)
    return y.reshape(c.n_kv_heads, -1, tokens, c.head_dim).permute(2, 0, 1, 3).reshape(tokens, c.n_heads * c.head_dim)

def positions_of(config: TransformerConfig) -> Tensor:
  """Return the positions of all tokens of a cache: 0, 1, ..."""
  return Tensor.arange(blocks_of(config.max_context) * SPAN, dtype=dtypes.int32).contiguous().realize()
