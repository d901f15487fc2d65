"""A small ResNet on synthetic images: SGD with momentum, a cosine schedule, augmentation, a DataLoader."""
import math
import random

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

class Images(Dataset):
  """Waves of ten frequencies with noise; flipped now and then."""
  def __init__(self, count):
    rng = random.Random(0)
    self.labels = [rng.randrange(10) for _ in range(count)]
    self.images = [torch.tensor([[[math.sin((i + j) * (label + 1) / 8) + rng.gauss(0, 0.3) for i in range(16)]
                                  for j in range(16)] for _ in range(3)]) for label in self.labels]
    self.flips = [rng.random() < 0.5 for _ in range(count)]

  def __len__(self): return len(self.labels)

  def __getitem__(self, index):
    image = self.images[index]
    return (torch.flip(image, dims=[2]) if self.flips[index] else image), self.labels[index]

class BasicBlock(nn.Module):
  def __init__(self, inputs, outputs, stride):
    super().__init__()
    self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
    self.bn1 = nn.BatchNorm2d(outputs)
    self.conv2 = nn.Conv2d(outputs, outputs, kernel_size=3, padding=1, bias=False)
    self.bn2 = nn.BatchNorm2d(outputs)
    self.shortcut = nn.Sequential()
    if stride != 1 or inputs != outputs:
      self.shortcut = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride=stride, bias=False), nn.BatchNorm2d(outputs))

  def forward(self, x):
    out = F.relu(self.bn1(self.conv1(x)), inplace=True)
    out = self.bn2(self.conv2(out))
    out += self.shortcut(x)
    return F.relu(out)

class ResNet(nn.Module):
  def __init__(self):
    super().__init__()
    self.stem = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU(inplace=True))
    self.layers = nn.Sequential(BasicBlock(8, 8, 1), BasicBlock(8, 16, 2), BasicBlock(16, 32, 2))
    self.pool = nn.AdaptiveAvgPool2d((1, 1))
    self.fc = nn.Linear(32, 10)
    for m in self.modules():
      if isinstance(m, nn.Conv2d): nn.init.kaiming_normal_(m.weight, mode="fan_out", nonlinearity="relu")
      elif isinstance(m, nn.BatchNorm2d):
        nn.init.constant_(m.weight, 1)
        nn.init.constant_(m.bias, 0)

  def forward(self, x):
    x = self.pool(self.layers(self.stem(x)))
    return self.fc(torch.flatten(x, 1))

def build(): return {"net": ResNet()}

def train(models):
  device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
  net = models["net"].to(device)
  loader = DataLoader(Images(48), batch_size=16, shuffle=False, num_workers=0, drop_last=True, pin_memory=False)
  criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
  optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, weight_decay=5e-4, nesterov=True)
  scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=6)
  for _ in range(2):
    net.train()
    for inputs, targets in loader:
      inputs, targets = inputs.to(device, non_blocking=True), targets.to(device)
      optimizer.zero_grad(set_to_none=True)
      loss = criterion(net(inputs), targets)
      loss.backward()
      torch.nn.utils.clip_grad_norm_(net.parameters(), max_norm=5.0)
      optimizer.step()
      scheduler.step()
      yield loss.item()
  net.eval()
  correct = total = 0
  with torch.no_grad():
    for inputs, targets in loader:
      outputs = net(inputs)
      _, predicted = outputs.max(1)
      total += targets.size(0)
      correct += predicted.eq(targets).sum().item()
      yield F.cross_entropy(outputs, targets).item()
  yield correct / total
