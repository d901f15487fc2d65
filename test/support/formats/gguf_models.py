"""Tiny language models as GGUF files, and what they compute: NumPy's float64, one token after the other, nothing
kept."""
from __future__ import annotations
from typing import Any

import numpy as np
from formats.gguf_files import write

F32, F16, Q8_0 = 0, 1, 8
DIM, HIDDEN, HEADS, KV_HEADS, VOCAB, CONTEXT, EPS = 32, 64, 4, 2, 64, 48, 1e-5
# One token for each of 62 characters, and two special ones: VOCAB altogether
LETTERS = "ĠĊ" + "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ" + ".,!?'-:;"
TOKENIZER = {"tokenizer.ggml.tokens": [*LETTERS, "<|im_start|>", "<|im_end|>"],
             "tokenizer.ggml.token_type": [1] * 62 + [3] * 2,
             "tokenizer.ggml.pre": "qwen2", "tokenizer.ggml.eos_token_id": 63}

def stored(values: Any, kind: int) -> tuple[tuple[int, ...], int, bytes]:
  """An array as `write` wants it."""
  if kind == F32: return values.shape, kind, values.astype("<f4").tobytes()
  if kind == F16: return values.shape, kind, values.astype("<f2").tobytes()
  blocks = values.reshape(-1, 32)
  scales = (np.abs(blocks).max(1) / 127).astype("<f2")
  codes = np.clip(np.round(blocks / scales[:, None].astype("f4")), -127, 127).astype("i1")
  return values.shape, kind, b"".join(scale.tobytes() + code.tobytes() for scale, code in zip(scales, codes))

def values_of(shape: tuple[int, ...], kind: int, raw: bytes) -> Any:
  """The numbers that a file has."""
  if kind != Q8_0: return np.frombuffer(raw, "<f4" if kind == F32 else "<f2").astype(np.float64).reshape(shape)
  blocks = np.frombuffer(raw, np.dtype([("scale", "<f2"), ("codes", "i1", 32)]))
  return (blocks["scale"].astype(np.float64)[:, None] * blocks["codes"]).reshape(shape)

def shapes(arch: str, blocks: int, experts: int, head_dim: int, tied: bool) -> dict[str, tuple[int, ...]]:
  """The tensors of a model."""
  q, kv = HEADS * head_dim, KV_HEADS * head_dim
  found: dict[str, tuple[int, ...]] = {"token_embd.weight": (VOCAB, DIM), "output_norm.weight": (DIM,)}
  if not tied: found["output.weight"] = (VOCAB, DIM)
  for i in range(blocks):
    part: dict[str, tuple[int, ...]] = {
      "attn_norm.weight": (DIM,), "ffn_norm.weight": (DIM,), "attn_q.weight": (q, DIM), "attn_k.weight": (kv, DIM),
      "attn_v.weight": (kv, DIM),
      "attn_output.weight": (DIM, q)}
    if arch == "qwen2": part |= {"attn_q.bias": (q,), "attn_k.bias": (kv,), "attn_v.bias": (kv,)}
    if arch in ("qwen3", "qwen3moe"): part |= {"attn_q_norm.weight": (head_dim,), "attn_k_norm.weight": (head_dim,)}
    if arch == "olmoe": part |= {"attn_q_norm.weight": (q,), "attn_k_norm.weight": (kv,)}
    if experts: part |= {"ffn_gate_inp.weight": (experts, DIM), "ffn_gate_exps.weight": (experts, HIDDEN, DIM),
                         "ffn_up_exps.weight": (experts, HIDDEN, DIM), "ffn_down_exps.weight": (experts, DIM, HIDDEN)}
    else: part |= {"ffn_gate.weight": (HIDDEN, DIM), "ffn_up.weight": (HIDDEN, DIM), "ffn_down.weight": (DIM, HIDDEN)}
    found |= {f"blk.{i}.{name}": shape for name, shape in part.items()}
  return found

class Model:
  """Metadata and tensors of a model with random parameters."""
  def __init__(self, arch: str, kind: int = F32, blocks: int = 2, experts: int = 0, head_dim: int = DIM // HEADS,
               tied: bool = False, seed: int = 0,
               divisors: list[float] | None = None, **more: Any):
    rng = np.random.default_rng(seed)
    self.arch, self.head_dim, self.experts, self.taken = arch, head_dim, experts, 2
    self.kv: dict[str, Any] = {"general.architecture": arch} | {f"{arch}.{key}": value for key, value in {
      "block_count": blocks, "embedding_length": DIM, "feed_forward_length": HIDDEN, "attention.head_count": HEADS,
      "attention.head_count_kv": KV_HEADS, "attention.layer_norm_rms_epsilon": EPS, "context_length": CONTEXT,
      "rope.freq_base": 1000.0,
      "attention.key_length": head_dim, "attention.value_length": head_dim,
      **({"expert_count": experts, "expert_used_count": self.taken} if experts else {}), **more}.items()}
    self.tensors: dict[str, tuple[tuple[int, ...], int, bytes]] = {}
    for name, shape in shapes(arch, blocks, experts, head_dim, tied).items():
      values = rng.normal(size=shape) / (np.sqrt(shape[-1]) if len(shape) > 1 else 4) + ("norm" in name)
      self.tensors[name] = stored(values * (3 if "token" in name else 1), F32 if len(shape) == 1 or "gate_inp" in name
                                  else kind)
    if divisors: self.tensors["rope_freqs.weight"] = stored(np.array(divisors), F32)

  def file(self, **more: Any) -> bytes: return write({**self.kv, **more}, self.tensors)

  # ***** what it computes *****

  def logits(self, tokens: list[int], frequencies: Any = None) -> Any:
    """Scores of the next token behind each of the tokens. frequencies: angles of pairs per position, where they are
    not those of rope.freq_base."""
    w = {name: values_of(*t) for name, t in self.tensors.items()}
    x = w["token_embd.weight"][tokens]
    for i in range(self.kv[f"{self.arch}.block_count"]):
      p = {name.removeprefix(f"blk.{i}."): t for name, t in w.items()}
      x = x + self._attention(norm(x, p["attn_norm.weight"]), p, frequencies)
      x = x + self._feed_forward(norm(x, p["ffn_norm.weight"]), p)
    return norm(x, w["output_norm.weight"]) @ w.get("output.weight", w["token_embd.weight"]).T

  def _attention(self, x: Any, p: dict[str, Any], frequencies: Any) -> Any:
    def project(name: str, heads: int) -> Any:
      y = x @ p[f"attn_{name}.weight"].T + p.get(f"attn_{name}.bias", 0.0)
      scale = p.get(f"attn_{name}_norm.weight")
      if scale is not None and len(scale) == y.shape[-1]: y = norm(y, scale)
      y = y.reshape(len(x), heads, self.head_dim)
      return norm(y, scale) if scale is not None and len(scale) == self.head_dim else y
    half = self.head_dim // 2
    if frequencies is None: frequencies = 1000.0 ** (-np.arange(half) / half)
    if "rope_freqs.weight" in self.tensors: frequencies = frequencies / values_of(*self.tensors["rope_freqs.weight"])
    turn = np.exp(1j * np.arange(len(x))[:, None, None] * frequencies)   # complex numbers: what a rotation is
    def rotate(y: Any) -> Any:
      z = y[..., 0::2] + 1j * y[..., 1::2] if self.arch == "llama" else y[..., :half] + 1j * y[..., half:]
      z = z * turn
      return (np.stack([z.real, z.imag], -1).reshape(y.shape) if self.arch == "llama"
              else np.concatenate([z.real, z.imag], -1))
    q, k, v = rotate(project("q", HEADS)), rotate(project("k", KV_HEADS)), project("v", KV_HEADS)
    out = np.zeros_like(q)
    for t in range(len(x)):
      for h in range(HEADS):
        group = h // (HEADS // KV_HEADS)
        out[t, h] = softmax(k[:t + 1, group] @ q[t, h] / np.sqrt(self.head_dim)) @ v[:t + 1, group]
    return out.reshape(len(x), -1) @ p["attn_output.weight"].T

  def _feed_forward(self, x: Any, p: dict[str, Any]) -> Any:
    def swiglu(y: Any, gate: Any, up: Any, down: Any) -> Any:
      g = gate @ y
      return down @ (g / (1 + np.exp(-g)) * (up @ y))
    if not self.experts:
      return np.stack([swiglu(y, *(p[f"ffn_{k}.weight"] for k in ("gate", "up", "down"))) for y in x])
    out = []
    for y in x:
      weights = softmax(p["ffn_gate_inp.weight"] @ y)
      best = np.argsort(-weights)[:self.taken]
      scale = weights[best].sum() if self.arch != "olmoe" else 1.0
      out.append(sum(weights[e] / scale * swiglu(y, *(p[f"ffn_{k}_exps.weight"][e] for k in ("gate", "up", "down")))
                     for e in best))
    return np.stack(out)

def norm(x: Any, scale: Any) -> Any: return x / np.sqrt((x * x).mean(-1, keepdims=True) + EPS) * scale

def softmax(x: Any) -> Any:
  e = np.exp(x - x.max())
  return e / e.sum()
