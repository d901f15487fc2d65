"""Sequences of several lengths through an embedding and a bidirectional LSTM: packing, a plateau schedule, RMSprop."""
import random

import torch
import torch.nn as nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence
from torch.utils.data import DataLoader, TensorDataset, random_split

class Tagger(nn.Module):
  def __init__(self, vocabulary, tags, embedding=12, hidden=16):
    super().__init__()
    self.embedding = nn.Embedding(vocabulary, embedding, padding_idx=0)
    self.lstm = nn.LSTM(embedding, hidden, num_layers=2, batch_first=True, bidirectional=True)
    self.dropout = nn.Dropout(0.0)
    self.classifier = nn.Linear(2 * hidden, tags)

  def forward(self, tokens, lengths):
    packed = pack_padded_sequence(self.embedding(tokens), lengths.cpu(), batch_first=True, enforce_sorted=False)
    out, (h, c) = self.lstm(packed)
    out, _ = pad_packed_sequence(out, batch_first=True, total_length=tokens.size(1))
    return self.classifier(self.dropout(out)), h

def build(): return {"net": Tagger(20, 3)}

def train(models):
  rng = random.Random(1)
  rows = [[rng.randrange(1, 20) for _ in range(rng.randrange(2, 8))] for _ in range(16)]
  tokens = pad_sequence([torch.tensor(r) for r in rows], batch_first=True, padding_value=0)
  tags = torch.where(tokens == 0, torch.full_like(tokens, -100), tokens % 3)
  lengths = torch.tensor([len(r) for r in rows])
  data = TensorDataset(tokens, tags, lengths)
  parts = random_split(data, [1.0])
  assert len(parts[0]) == 16
  net = models["net"]
  optimizer = torch.optim.RMSprop(net.parameters(), lr=5e-3, alpha=0.9, momentum=0.5)
  scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, mode="min", factor=0.5, patience=0)
  criterion = nn.CrossEntropyLoss(ignore_index=-100)
  for _ in range(3):
    total = 0.0
    for x, y, n in DataLoader(data, batch_size=8):
      optimizer.zero_grad()
      logits, h = net(x, n)
      loss = criterion(logits.permute(0, 2, 1), y) + 1e-3 * h.pow(2).mean()
      loss.backward()
      nn.utils.clip_grad_value_(net.parameters(), 0.5)
      optimizer.step()
      total += loss.item()
      yield loss.item()
    scheduler.step(total)
  yield optimizer.param_groups[0]["lr"]
