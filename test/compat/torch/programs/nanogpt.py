"""A character model in the manner of nanoGPT: tied weights, decay groups, warm-up, accumulation, generation."""
from dataclasses import dataclass
import math

import torch
import torch.nn as nn
from torch.nn import functional as F

@dataclass
class GPTConfig:
  block_size: int = 16
  vocab_size: int = 27
  n_layer: int = 2
  n_head: int = 2
  n_embd: int = 32
  dropout: float = 0.0
  bias: bool = False

class LayerNorm(nn.Module):
  """LayerNorm with an optional bias."""
  def __init__(self, ndim, bias):
    super().__init__()
    self.weight = nn.Parameter(torch.ones(ndim))
    self.bias = nn.Parameter(torch.zeros(ndim)) if bias else None

  def forward(self, x): return F.layer_norm(x, self.weight.shape, self.weight, self.bias, 1e-5)

class CausalSelfAttention(nn.Module):
  def __init__(self, config):
    super().__init__()
    assert config.n_embd % config.n_head == 0
    self.c_attn = nn.Linear(config.n_embd, 3 * config.n_embd, bias=config.bias)
    self.c_proj = nn.Linear(config.n_embd, config.n_embd, bias=config.bias)
    self.n_head, self.dropout = config.n_head, config.dropout
    self.flash = hasattr(F, "scaled_dot_product_attention")
    self.register_buffer("bias", torch.tril(torch.ones(config.block_size, config.block_size)).view(
      1, 1, config.block_size, config.block_size))

  def forward(self, x):
    B, T, C = x.size()
    q, k, v = self.c_attn(x).split(C, dim=2)
    q, k, v = (t.view(B, T, self.n_head, C // self.n_head).transpose(1, 2) for t in (q, k, v))
    if self.training: y = F.scaled_dot_product_attention(q, k, v, attn_mask=None, dropout_p=0, is_causal=True)
    else:
      att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
      att = att.masked_fill(self.bias[:, :, :T, :T] == 0, float("-inf"))
      y = F.softmax(att, dim=-1) @ v
    return self.c_proj(y.transpose(1, 2).contiguous().view(B, T, C))

class Block(nn.Module):
  def __init__(self, config):
    super().__init__()
    self.ln_1, self.attn = LayerNorm(config.n_embd, bias=config.bias), CausalSelfAttention(config)
    self.ln_2 = LayerNorm(config.n_embd, bias=config.bias)
    self.mlp = nn.ModuleDict(dict(c_fc=nn.Linear(config.n_embd, 4 * config.n_embd), gelu=nn.GELU(),
                                  c_proj=nn.Linear(4 * config.n_embd, config.n_embd), drop=nn.Dropout(config.dropout)))

  def forward(self, x):
    x = x + self.attn(self.ln_1(x))
    m = self.mlp
    return x + m.drop(m.c_proj(m.gelu(m.c_fc(self.ln_2(x)))))

class GPT(nn.Module):
  def __init__(self, config):
    super().__init__()
    self.config = config
    self.transformer = nn.ModuleDict(dict(
      wte=nn.Embedding(config.vocab_size, config.n_embd), wpe=nn.Embedding(config.block_size, config.n_embd),
      drop=nn.Dropout(config.dropout), h=nn.ModuleList([Block(config) for _ in range(config.n_layer)]),
      ln_f=LayerNorm(config.n_embd, bias=config.bias)))
    self.lm_head = nn.Linear(config.n_embd, config.vocab_size, bias=False)
    self.transformer.wte.weight = self.lm_head.weight
    self.apply(self._init_weights)
    for pn, p in self.named_parameters():
      if pn.endswith("c_proj.weight"): torch.nn.init.normal_(p, mean=0.0, std=0.02 / math.sqrt(2 * config.n_layer))

  def _init_weights(self, module):
    if isinstance(module, nn.Linear):
      torch.nn.init.normal_(module.weight, mean=0.0, std=0.02)
      if module.bias is not None: torch.nn.init.zeros_(module.bias)
    elif isinstance(module, nn.Embedding): torch.nn.init.normal_(module.weight, mean=0.0, std=0.02)

  def forward(self, idx, targets=None):
    _, t = idx.size()
    pos = torch.arange(0, t, dtype=torch.long, device=idx.device)
    x = self.transformer.drop(self.transformer.wte(idx) + self.transformer.wpe(pos))
    for block in self.transformer.h: x = block(x)
    x = self.transformer.ln_f(x)
    if targets is None: return self.lm_head(x[:, [-1], :]), None
    logits = self.lm_head(x)
    return logits, F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1), ignore_index=-1)

  def configure_optimizers(self, weight_decay, learning_rate, betas):
    param_dict = {pn: p for pn, p in self.named_parameters() if p.requires_grad}
    groups = [{"params": [p for p in param_dict.values() if p.dim() >= 2], "weight_decay": weight_decay},
              {"params": [p for p in param_dict.values() if p.dim() < 2], "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=learning_rate, betas=betas)

  @torch.no_grad()
  def generate(self, idx, max_new_tokens, top_k=None):
    for _ in range(max_new_tokens):
      idx_cond = idx if idx.size(1) <= self.config.block_size else idx[:, -self.config.block_size:]
      logits, _ = self(idx_cond)
      logits = logits[:, -1, :]
      if top_k is not None:
        v, _ = torch.topk(logits, min(top_k, logits.size(-1)))
        logits[logits < v[:, [-1]]] = -float("Inf")
      probs = F.softmax(logits, dim=-1)
      idx = torch.cat((idx, torch.argmax(probs, dim=-1, keepdim=True)), dim=1)
    return idx

def build(): return {"net": GPT(GPTConfig())}

def get_lr(it):
  if it < 2: return 1e-2 * (it + 1) / 3
  return 1e-3 + 0.5 * (1.0 + math.cos(math.pi * min(1.0, (it - 2) / 6))) * (1e-2 - 1e-3)

def train(models):
  text = "the quick brown fox jumps over the lazy dog while seven wizards quietly mix a potion " * 4
  chars = sorted(set(text))
  stoi = {c: i for i, c in enumerate(chars)}
  data = torch.tensor([stoi[c] for c in text], dtype=torch.long)
  model = models["net"]
  optimizer = model.configure_optimizers(0.1, 1e-2, (0.9, 0.95))
  def get_batch(step):
    ix = [(step * 37 + k * 11) % (len(data) - 17) for k in range(4)]
    x = torch.stack([data[i:i + 16] for i in ix])
    y = torch.stack([data[i + 1:i + 17] for i in ix])
    return x, y
  for it in range(5):
    for param_group in optimizer.param_groups: param_group["lr"] = get_lr(it)
    total = 0.0
    for micro_step in range(2):
      X, Y = get_batch(2 * it + micro_step)
      _, loss = model(X, Y)
      loss = loss / 2
      loss.backward()
      total += loss.item()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    yield total
  model.eval()
  with torch.no_grad(): yield model(*get_batch(3))[1].item()
  yield float(model.generate(data[:5].unsqueeze(0), 12, top_k=5).sum())
  yield sum(p.numel() for p in model.parameters())
