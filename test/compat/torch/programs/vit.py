"""A vision transformer of nn.TransformerEncoder: a class token, a parameter of positions, warm-up and cosine, AdamW."""
import math

import torch
from torch import nn
from torch.optim.lr_scheduler import CosineAnnealingLR, LinearLR, SequentialLR

class ViT(nn.Module):
  def __init__(self, image=12, patch=4, dim=24, depth=2, heads=3, classes=5):
    super().__init__()
    self.to_patch = nn.Conv2d(3, dim, kernel_size=patch, stride=patch)
    count = (image // patch) ** 2
    self.cls_token = nn.Parameter(torch.randn(1, 1, dim))
    self.pos_embedding = nn.Parameter(torch.empty(1, count + 1, dim).normal_(std=0.02))
    layer = nn.TransformerEncoderLayer(dim, heads, dim_feedforward=48, dropout=0.0, activation="gelu", batch_first=True,
                                       norm_first=True)
    self.transformer = nn.TransformerEncoder(layer, depth, norm=nn.LayerNorm(dim), enable_nested_tensor=False)
    self.head = nn.Linear(dim, classes)

  def forward(self, img):
    x = self.to_patch(img).flatten(2).transpose(1, 2)
    cls = self.cls_token.expand(x.shape[0], -1, -1)
    x = torch.cat([cls, x], dim=1) + self.pos_embedding
    return self.head(self.transformer(x)[:, 0])

def build(): return {"net": ViT()}

def train(models):
  torch.manual_seed(0)
  net = models["net"]
  labels = torch.tensor([k % 5 for k in range(10)])
  images = torch.stack([torch.tensor([[[math.cos(i * (k % 5 + c) / 3 + j) for i in range(12)] for j in range(12)]
                                      for c in range(3)]) for k in range(10)])
  decay = [p for n, p in net.named_parameters() if p.ndim > 1 and "token" not in n]
  rest = [p for n, p in net.named_parameters() if not (p.ndim > 1 and "token" not in n)]
  optimizer = torch.optim.AdamW([{"params": decay}, {"params": rest, "weight_decay": 0.0}], lr=3e-3, weight_decay=0.05)
  scheduler = SequentialLR(optimizer, [LinearLR(optimizer, 0.1, total_iters=2), CosineAnnealingLR(optimizer, 4)], [2])
  loss_fn = nn.CrossEntropyLoss()
  for _ in range(5):
    logits = net(images)
    loss = loss_fn(logits, labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()
    yield loss.item()
  yield scheduler.get_last_lr()[0]
  yield (net(images).argmax(dim=-1) == labels).float().mean().item()
