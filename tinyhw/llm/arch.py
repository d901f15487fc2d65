"""Sizes and choices of language models, read from a GGUF file's metadata, and the angles of rotary positions.

ARCHITECTURES has the choices that the metadata do not name: the rotation of pairs, the normalized values, the
weights of experts. Source: the models' reports, and ggml's GGUF specification for the names of the keys.
"""
from __future__ import annotations
from collections.abc import Mapping
import math
from typing import Any

from tinyhw.data_class import dataclass
from tinyhw.errors import ArgumentError, FileFormatError
from tinyhw.named_tuple import NamedTuple

DEFAULT_CONTEXT = 4096   # Tokens, at most, if no length is given. The cache of a long context may not fit into memory.

class Architecture(NamedTuple):
  """Choices of an architecture. interleaved: the pairs of a rotation are neighbours, instead of half a head apart.
  renormalize: the weights of the chosen experts add up to 1."""
  interleaved: bool = False
  renormalize: bool = True

ARCHITECTURES = {"llama": Architecture(interleaved=True), "qwen2": Architecture(), "qwen3": Architecture(),
                 "qwen3moe": Architecture(),
                 "olmoe": Architecture(renormalize=False)}

@dataclass(frozen=True)
class Scaling:
  """Scaling of positions beyond those of the training. kind: "none", "linear" or "yarn". original: positions of the
  training. Source of yarn: Peng et al. 2023."""
  kind: str = "none"
  factor: float = 1.0
  original: int = 0
  beta_fast: float = 32.0
  beta_slow: float = 1.0

@dataclass(frozen=True)
class TransformerConfig:
  """Sizes and choices. num_experts 0: no experts. qk_norm: 0 for none, head_dim for a norm of each head, or the size of
  all heads together."""
  num_blocks: int
  dim: int
  hidden_dim: int
  n_heads: int
  n_kv_heads: int
  norm_eps: float
  vocab_size: int
  head_dim: int
  rope_theta: float
  rope_dim: int
  max_context: int
  qk_norm: int = 0
  num_experts: int = 0
  num_experts_per_tok: int = 0
  norm_topk_prob: bool = False
  qkv_bias: bool = False
  interleaved: bool = False
  scaling: Scaling = Scaling()

  def __post_init__(self) -> None:
    for name in ("num_blocks", "dim", "hidden_dim", "n_heads", "n_kv_heads", "vocab_size", "head_dim", "rope_dim",
                 "max_context"):
      value = getattr(self, name)
      if type(value) is not int or not 0 < value < 1 << 31:
        raise ArgumentError(f"{name} is {value!r}, and it must be a whole number above 0")
    if self.n_heads % self.n_kv_heads:
      raise ArgumentError(f"{self.n_heads} heads cannot share the keys of {self.n_kv_heads} evenly")
    if self.rope_dim % 2 or self.rope_dim > self.head_dim:
      raise ArgumentError(f"rope_dim is {self.rope_dim}, not an even number up to {self.head_dim}")
    if (not 0 <= self.num_experts_per_tok <= self.num_experts
        or bool(self.num_experts) != bool(self.num_experts_per_tok)):
      raise ArgumentError(f"{self.num_experts_per_tok} of {self.num_experts} experts cannot be taken")
    if not (math.isfinite(self.norm_eps) and self.norm_eps >= 0):
      raise ArgumentError(f"norm_eps is {self.norm_eps}, not a small number")
    if not (math.isfinite(self.rope_theta) and self.rope_theta > 0):
      raise ArgumentError(f"rope_theta is {self.rope_theta}, not above 0")
    if not (math.isfinite(self.scaling.factor) and self.scaling.factor > 0):
      raise ArgumentError(f"the factor of positions is {self.scaling.factor}")

def config_of(kv: Mapping[str, Any], names: Mapping[str, tuple[int, ...]],
              max_context: int | None = None) -> TransformerConfig:
  """Return the configuration of a file. names: its tensors' shapes.

  Raises FileFormatError for an unknown architecture, or for metadata that do not fit.
  """
  name = kv.get("general.architecture")
  arch = ARCHITECTURES.get(name) if isinstance(name, str) else None
  if arch is None:
    raise FileFormatError(f"models of architecture {name!r} are not known; known are {', '.join(ARCHITECTURES)}")
  if max_context is not None and (type(max_context) is not int or max_context < 1):
    raise ArgumentError(f"max_context is {max_context!r}, not above 0")
  def get(key: str, kind: type, default: Any = None) -> Any:
    value = kv.get(f"{name}.{key}", default)
    if kind is float and type(value) is int: value = float(value)
    if type(value) is kind: return value
    raise FileFormatError(f"{name}.{key} is {'missing' if value is None else repr(value)}; it should be of type "
                          f"{kind.__name__}")
  heads, dim, context = get("attention.head_count", int), get("embedding_length", int), get("context_length", int)
  experts = get("expert_count", int, 0)
  if heads < 1: raise FileFormatError(f"{name}.attention.head_count is {heads}")
  head_dim = get("attention.key_length", int, dim // heads)
  if get("attention.value_length", int, head_dim) != head_dim:
    raise FileFormatError("heads whose keys and values have different sizes are not known")
  window = get("attention.sliding_window", int, 0)
  if window: context = min(context, window)   # up to this length, the window hides nothing
  hidden = ("expert_feed_forward_length" if experts and f"{name}.expert_feed_forward_length" in kv
            else "feed_forward_length")
  embedding, norm = names.get("token_embd.weight", ()), names.get("blk.0.attn_q_norm.weight", (0,))
  if len(embedding) != 2 or len(norm) != 1:
    raise FileFormatError(f"token_embd.weight is missing, or it or attn_q_norm has other axes than in {name}")
  kind = get("rope.scaling.type", str, "none")
  if kind not in ("none", "linear", "yarn"):
    raise FileFormatError(f"scaling positions in the way {kind!r} is not known; known are none, linear and yarn")
  try:
    return TransformerConfig(
      num_blocks=get("block_count", int), dim=dim, hidden_dim=get(hidden, int), n_heads=heads,
      n_kv_heads=get("attention.head_count_kv", int, heads), norm_eps=get("attention.layer_norm_rms_epsilon", float),
      vocab_size=embedding[0], head_dim=head_dim, rope_theta=get("rope.freq_base", float, 10000.0),
      rope_dim=get("rope.dimension_count", int, head_dim),
      max_context=min(context, max_context if max_context is not None else DEFAULT_CONTEXT), qk_norm=norm[0],
      num_experts=experts,
      num_experts_per_tok=get("expert_used_count", int, 0),
      norm_topk_prob=get("expert_weights_norm", bool, arch.renormalize),
      qkv_bias="blk.0.attn_q.bias" in names, interleaved=arch.interleaved,
      scaling=Scaling(kind, get("rope.scaling.factor", float, 1.0),
                      get("rope.scaling.original_context_length", int, context)))
  except ArgumentError as error: raise FileFormatError(f"the metadata do not fit together: {error.message}") from None

def frequencies(config: TransformerConfig) -> tuple[list[float], float]:
  """Return the angle by which each pair is rotated from one position to the next, and the factor that lengthens rotated
  vectors (yarn)."""
  half, scaling = config.rope_dim // 2, config.scaling
  plain = [config.rope_theta ** (-k / half) for k in range(half)]
  if scaling.kind == "linear": return [f / scaling.factor for f in plain], 1.0
  if scaling.kind != "yarn" or scaling.factor <= 1: return plain, 1.0
  def pair_of(turns: float) -> float:
    """Return the pair that rotates this often within the positions of the training."""
    return half * math.log(scaling.original / (turns * 2 * math.pi)) / math.log(config.rope_theta)
  first, last = max(math.floor(pair_of(scaling.beta_fast)), 0), min(math.ceil(pair_of(scaling.beta_slow)),
                                                                    config.rope_dim - 1)
  def share(k: int) -> float:
    """Return the share of a pair that stays as in the training. It is 1 for fast pairs and 0 for slow pairs, which are
    stretched."""
    return 1 - min(max((k - first) / max(last - first, 0.001), 0.0), 1.0)
  return [f / scaling.factor * (1 - share(k)) + f * share(k)
          for k, f in enumerate(plain)], 0.1 * math.log(scaling.factor) + 1.0
