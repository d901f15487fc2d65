"""Time transformers beside PyTorch: decoding and prefill of GPT-2 124M and of a Llama of 1.1B, attention, an LSTM,
layers of an MLP.

    python3 test/bench/transformers.py [workload ...] [--seconds 9] [--no-torch]

Weights are random. Decoding: one token at positions from 128 on, with a cache of 1,024. Prefill: 128 tokens at once.
Libraries take turns (turns.py); PyTorch runs eagerly in inference mode, on the same cores, with its
scaled_dot_product_attention. Printed: medians in ms, PyTorch's over tinyhw's, and for decoding the share of the
memory's rate, which the sum of an array of 1 GB shows in the same run.
"""
from __future__ import annotations
import argparse
import importlib.util
import itertools
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import turns

CONTEXT, PROMPT = 1024, 128

class Shape(NamedTuple):
  """Sizes of a decoder. kv: heads of keys and values. gated: SwiGLU and RMSNorm instead of GELU and LayerNorm."""
  layers: int
  dim: int
  heads: int
  kv: int
  hidden: int
  vocabulary: int
  gated: bool

  def weights(self) -> dict[str, tuple[int, int]]:
    """The matrices that a token reads, by name: (outputs, inputs)."""
    head = self.dim // self.heads
    layer = {"q": (self.dim, self.dim), "k": (self.kv * head, self.dim), "v": (self.kv * head, self.dim),
             "o": (self.dim, self.dim), "up": (self.hidden, self.dim), "down": (self.dim, self.hidden)}
    if self.gated: layer["gate"] = (self.hidden, self.dim)
    found = {f"{k}.{name}": size for k in range(self.layers) for name, size in layer.items()}
    return {**found, "head": (self.vocabulary, self.dim)}

SHAPES = {"gpt2": Shape(12, 768, 12, 12, 3072, 50257, False), "llama": Shape(22, 2048, 32, 4, 5632, 32000, True)}
# One workload a line: the decoder, its numbers, and the tokens of a call.
DECODERS = {f"{name} {kind} {dtype}": (name, dtype, tokens) for name, dtypes in
            (("gpt2", ("float32",)), ("llama", ("float32", "bfloat16", "float16"))) for dtype in dtypes
            for kind, tokens in (("decode", 1), ("prefill", PROMPT))}
ATTENTION = ("attention", "attention backward")
MEMORY = "memory"
MLP = "mlp"   # rows, and columns of each of three layers
WORKLOADS = [MEMORY, *DECODERS, *ATTENTION, "lstm 64", "lstm 128", "mlp 128 1024", "mlp 512 512", "mlp 1024 1024"]

# ***** tinyhw *****

def ours(workload: str) -> turns.Run | None:
  from tinyhw import Tensor, TinyJit, Variable, dtypes, nn
  if workload == MEMORY:
    big = Tensor.ones(1 << 28).contiguous().realize()
    total = TinyJit(lambda: big.sum().realize())
    return lambda: total().item()
  if workload in DECODERS:
    name, kind, tokens = DECODERS[workload]
    shape, dtype = SHAPES[name], getattr(dtypes, kind)
    head = shape.dim // shape.heads
    w = {name: (Tensor.randn(*size) * size[1] ** -0.5).cast(dtype).contiguous().realize()
         for name, size in shape.weights().items()}
    cache = [Tensor.zeros(2, CONTEXT, shape.kv, head, dtype=dtype).contiguous().realize() for _ in range(shape.layers)]
    def norm(x: Tensor) -> Tensor:
      if not shape.gated: return x.layernorm()
      return x * (x.float().square().mean(-1, keepdim=True) + 1e-5).rsqrt().cast(x.dtype)
    def step(x: Tensor, start: Any) -> Tensor:
      for k in range(shape.layers):
        y = norm(x)
        q, keys, values = (y @ w[f"{k}.{part}"].T for part in "qkv")
        cache[k].shrink((None, (start, start + tokens), None, None)).assign(
          keys.reshape(tokens, shape.kv, head).stack(values.reshape(tokens, shape.kv, head))).realize()
        seen = [cache[k][i].shrink(((0, start + tokens), None, None)).permute(1, 0, 2).unsqueeze(1) for i in (0, 1)]
        grouped = q.reshape(tokens, shape.kv, shape.heads // shape.kv, head).permute(1, 2, 0, 3)
        scores = grouped @ seen[0].transpose(-1, -2) * head ** -0.5
        if tokens > 1:
          visible = (Tensor.arange(CONTEXT).shrink(((0, start + tokens),)).unsqueeze(0)
                     <= Tensor.arange(CONTEXT).shrink(((start, start + tokens),)).unsqueeze(1))
          scores = visible.where(scores, -1e30 if dtype is not dtypes.float16 else -6e4)
        y = (scores.softmax(-1) @ seen[1]).permute(2, 0, 1, 3).reshape(tokens, shape.dim)
        x = x + y @ w[f"{k}.o"].T
        y, up = norm(x), f"{k}.up"
        y = (y @ w[f"{k}.gate"].T).silu() * (y @ w[up].T) if shape.gated else (y @ w[up].T).gelu()
        x = x + y @ w[f"{k}.down"].T
      return (norm(x[-1:]) @ w["head"].T).argmax().realize()
    jitted, place = TinyJit(step), Variable("start", 0, CONTEXT - PROMPT)
    x = Tensor.randn(tokens, shape.dim).cast(dtype).contiguous().realize()
    starts = itertools.cycle(range(PROMPT, PROMPT + 64)) if tokens == 1 else itertools.cycle((0, 1))
    return lambda: jitted(x, place.bind(next(starts))).item()
  if workload in ATTENTION:
    q, k, v, g = (Tensor.randn(1, 12, 2048, 64, requires_grad=True).realize() for _ in range(4))
    def attend() -> Any:
      y = q.scaled_dot_product_attention(k, v, is_causal=True)
      return y.realize() if workload == "attention" else Tensor.realize(*y.gradient(q, k, v, gradient=g))
    attended = TinyJit(attend)
    return lambda: attended().numpy()[0, 0, 0]
  if workload.startswith(MLP):
    rows, columns = map(int, workload.split()[1:])
    batch = Tensor.randn(rows, columns).realize()
    layers = [(Tensor.randn(columns, columns) / columns ** 0.5).contiguous().realize() for _ in range(3)]
    for t in layers: t.requires_grad = True
    descent = nn.optim.SGD(layers, lr=1e-3)
    def learn() -> Any:
      y = batch
      for t in layers: y = (y @ t.T).relu()
      descent.zero_grad()
      loss = y.square().mean().backward()
      descent.step()
      return loss.realize()
    learning = TinyJit(learn)
    def learned() -> Any:
      with Tensor.train(): return learning().item()
    return learned
  steps = int(workload.split()[1])
  x, weights = Tensor.randn(steps, 64, 256).realize(), [
    (Tensor.randn(*size) / 16).contiguous().realize() for size in ((1024, 256), (1024, 256))]
  for t in weights: t.requires_grad = True
  optimizer = nn.optim.SGD(weights, lr=1e-3)
  def train() -> Any:
    h, c = Tensor.zeros(64, 256), Tensor.zeros(64, 256)
    for t in range(steps):
      i, f, g, o = (x[t] @ weights[0].T + h @ weights[1].T).chunk(4, -1)
      c = f.sigmoid() * c + i.sigmoid() * g.tanh()
      h = o.sigmoid() * c.tanh()
    optimizer.zero_grad()
    loss = h.square().mean().backward()
    optimizer.step()
    return loss.realize()
  def trained() -> Any:
    with Tensor.train(): return jit()
  jit = TinyJit(train)
  return lambda: trained().item()

# ***** PyTorch *****

def theirs(workload: str) -> turns.Run | None:
  import torch
  from torch.nn import functional as f
  if workload == MEMORY:
    big = torch.ones(1 << 28)
    return lambda: big.sum().item()
  if workload in DECODERS:
    name, kind, tokens = DECODERS[workload]
    shape, dtype = SHAPES[name], getattr(torch, kind)
    head = shape.dim // shape.heads
    w = {name: (torch.randn(*size) * size[1] ** -0.5).to(dtype) for name, size in shape.weights().items()}
    cache = [torch.zeros(2, shape.kv, CONTEXT, head, dtype=dtype) for _ in range(shape.layers)]
    def norm(x: Any) -> Any: return f.rms_norm(x, (shape.dim,)) if shape.gated else f.layer_norm(x, (shape.dim,))
    def step(x: Any, start: int) -> Any:
      for k in range(shape.layers):
        y = norm(x)
        q, keys, values = (f.linear(y, w[f"{k}.{part}"]) for part in "qkv")
        cache[k][0, :, start:start + tokens] = keys.view(tokens, shape.kv, head).transpose(0, 1)
        cache[k][1, :, start:start + tokens] = values.view(tokens, shape.kv, head).transpose(0, 1)
        seen = [cache[k][i, :, :start + tokens].unsqueeze(0) for i in (0, 1)]
        y = f.scaled_dot_product_attention(q.view(tokens, shape.heads, head).transpose(0, 1).unsqueeze(0), *seen,
                                           is_causal=tokens > 1 and start == 0, enable_gqa=shape.kv != shape.heads)
        x = x + f.linear(y[0].transpose(0, 1).reshape(tokens, shape.dim), w[f"{k}.o"])
        y, up = norm(x), f"{k}.up"
        y = (f.silu(f.linear(y, w[f"{k}.gate"])) * f.linear(y, w[up]) if shape.gated
             else f.gelu(f.linear(y, w[up]), approximate="tanh"))
        x = x + f.linear(y, w[f"{k}.down"])
      return f.linear(norm(x[-1:]), w["head"]).argmax()
    x = torch.randn(tokens, shape.dim).to(dtype)
    starts = itertools.cycle(range(PROMPT, PROMPT + 64)) if tokens == 1 else itertools.cycle((0,))
    @torch.inference_mode()
    def run() -> Any: return step(x, next(starts)).item()
    return run
  if workload in ATTENTION:
    q, k, v = (torch.randn(1, 12, 2048, 64, requires_grad=workload != "attention") for _ in range(3))
    g = torch.randn(1, 12, 2048, 64)
    def attend() -> Any:
      y = f.scaled_dot_product_attention(q, k, v, is_causal=True)
      return y if workload == "attention" else torch.autograd.grad(y, (q, k, v), g)
    return attend
  if workload.startswith(MLP):
    rows, columns = map(int, workload.split()[1:])
    batch = torch.randn(rows, columns)
    layers = [(torch.randn(columns, columns) / columns ** 0.5).requires_grad_() for _ in range(3)]
    descent = torch.optim.SGD(layers, lr=1e-3)
    def learn() -> Any:
      y = batch
      for t in layers: y = (y @ t.T).relu()
      descent.zero_grad()
      loss = y.square().mean()
      loss.backward()
      descent.step()
      return loss.item()
    return learn
  steps = int(workload.split()[1])
  x, model = torch.randn(steps, 64, 256), torch.nn.LSTM(256, 256, bias=False)
  optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
  def train() -> Any:
    optimizer.zero_grad()
    loss = model(x)[0][-1].square().mean()
    loss.backward()
    optimizer.step()
    return loss.item()
  return train

PEERS: dict[str, Callable[[str], turns.Run | None]] = {"tinyhw": ours, "torch": theirs}

def main() -> None:
  parser = argparse.ArgumentParser(description="Time transformers.")
  parser.add_argument("workloads", nargs="*", default=WORKLOADS)
  parser.add_argument("--seconds", type=float, default=9, help="of each library for a workload")
  parser.add_argument("--no-torch", action="store_true")
  parser.add_argument("--serve", choices=PEERS)
  options = parser.parse_args()
  if options.serve: return turns.serve(PEERS[options.serve])
  if wrong := set(options.workloads) - set(WORKLOADS):
    parser.error(f"no workloads: {', '.join(wrong)}; there are {', '.join(WORKLOADS)}")
  names = ["tinyhw"] + ["torch"] * (not options.no_torch and importlib.util.find_spec("torch") is not None)
  rate = math.nan
  for workload in dict.fromkeys([MEMORY, *options.workloads]):
    libraries = [turns.Library(__file__, name) for name in names]
    found = turns.medians(turns.take_turns(libraries, workload, options.seconds))
    for library in libraries: library.close()
    line = f"{workload:28}" + "".join(f" {name} {found[name] * 1e3:9.2f} ms" for name in names if name in found)
    if "torch" in found: line += f"  ratio {found['torch'] / found['tinyhw']:.2f}"
    if workload == MEMORY:
      rate = (1 << 30) / min(found.values())
      line += f"  {rate / 1e9:.1f} GB/s"
    elif "decode" in workload:
      shape, kind, _ = (SHAPES[DECODERS[workload][0]], *DECODERS[workload][1:])
      size = sum(a * b for a, b in shape.weights().values()) * (4 if kind == "float32" else 2)
      line += f"  {size / found['tinyhw'] / rate:.0%} of the memory's rate"
    print(line, flush=True)

if __name__ == "__main__": main()
