"""Time whole models beside PyTorch: a training step of an MNIST convnet, and ResNet-18's forward pass. Cold start and
steady state.

    python3 test/bench/models.py [convnet|resnet] [--seconds 9] [--no-torch]

Cold: from the start of the first call to the end of the second, without a disk cache (CACHE=0), in a fresh process.
Steady: the median of later calls; PyTorch runs eagerly on the same cores, taking turns with tinyhw (turns.py).
"""
from __future__ import annotations
import argparse
import importlib.util
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("CACHE", "0")
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import turns

from tinyhw import Tensor, TinyJit, nn

BATCH = 512

class ConvNet:
  """conv 5x5 1→32, 32→32, batchnorm, maxpool 2; conv 3x3 32→64, 64→64, batchnorm, maxpool 2; linear 576→10."""
  def __init__(self) -> None:
    self.conv1, self.conv2, self.norm1 = nn.Conv2d(1, 32, 5), nn.Conv2d(32, 32, 5), nn.BatchNorm(32)
    self.conv3, self.conv4, self.norm2 = nn.Conv2d(32, 64, 3), nn.Conv2d(64, 64, 3), nn.BatchNorm(64)
    self.linear = nn.Linear(576, 10)

  def __call__(self, x: Tensor) -> Tensor:
    x = self.norm1(self.conv2(self.conv1(x).relu()).relu()).max_pool2d()
    x = self.norm2(self.conv4(self.conv3(x).relu()).relu()).max_pool2d()
    return self.linear(x.flatten(1))

class Block:
  """A basic block of ResNet: two 3x3 convolutions and a shortcut."""
  def __init__(self, planes_in: int, planes: int, stride: int) -> None:
    self.conv1, self.bn1 = nn.Conv2d(planes_in, planes, 3, stride=stride, padding=1, bias=False), nn.BatchNorm(planes)
    self.conv2, self.bn2 = nn.Conv2d(planes, planes, 3, padding=1, bias=False), nn.BatchNorm(planes)
    self.downsample: list[Any] = []
    if stride != 1 or planes_in != planes:
      self.downsample = [nn.Conv2d(planes_in, planes, 1, stride=stride, bias=False), nn.BatchNorm(planes)]

  def __call__(self, x: Tensor) -> Tensor:
    y = self.bn2(self.conv2(self.bn1(self.conv1(x)).relu()))
    return (y + x.sequential(self.downsample)).relu()

class ResNet18:
  def __init__(self) -> None:
    self.conv1, self.bn1 = nn.Conv2d(3, 64, 7, stride=2, padding=3, bias=False), nn.BatchNorm(64)
    sizes = [(64, 64, 1), (64, 64, 1), (64, 128, 2), (128, 128, 1), (128, 256, 2), (256, 256, 1), (256, 512, 2),
             (512, 512, 1)]
    self.blocks = [Block(*s) for s in sizes]
    self.fc = nn.Linear(512, 1000)

  def __call__(self, x: Tensor) -> Tensor:
    x = self.bn1(self.conv1(x)).relu().pad((1, 1, 1, 1)).max_pool2d((3, 3), stride=2)
    return self.fc(x.sequential(self.blocks).mean((2, 3)))

def ours_convnet() -> Callable[[], Any]:
  model = ConvNet()
  optimizer = nn.optim.Adam(nn.state.get_parameters(model))
  x, y = Tensor.rand(BATCH, 1, 28, 28).realize(), Tensor.randint(BATCH, low=0, high=10).realize()

  @TinyJit
  @Tensor.train()
  def step(x: Tensor, y: Tensor) -> Tensor:
    optimizer.zero_grad()
    loss = model(x).sparse_categorical_crossentropy(y).backward()
    return loss.realize(*optimizer.schedule_step())
  return lambda: step(x, y).item()

def ours_resnet() -> Callable[[], Any]:
  model = ResNet18()
  for parameter in nn.state.get_parameters(model): parameter.realize()
  x = Tensor.rand(1, 3, 224, 224).realize()
  forward = TinyJit(lambda x: model(x).realize())
  return lambda: forward(x).numpy() if importlib.util.find_spec("numpy") else forward(x).tolist()

def torch_convnet() -> Callable[[], Any]:
  import torch
  from torch import nn as tnn
  model = tnn.Sequential(tnn.Conv2d(1, 32, 5), tnn.ReLU(), tnn.Conv2d(32, 32, 5), tnn.ReLU(), tnn.BatchNorm2d(32),
                         tnn.MaxPool2d(2),
                         tnn.Conv2d(32, 64, 3), tnn.ReLU(), tnn.Conv2d(64, 64, 3), tnn.ReLU(), tnn.BatchNorm2d(64),
                         tnn.MaxPool2d(2),
                         tnn.Flatten(), tnn.Linear(576, 10))
  optimizer = torch.optim.Adam(model.parameters())
  x, y = torch.rand(BATCH, 1, 28, 28), torch.randint(0, 10, (BATCH,))

  def step() -> float:
    optimizer.zero_grad()
    loss = tnn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    return float(loss)
  return step

def torch_resnet() -> Callable[[], Any]:
  import torch
  from torch import nn as tnn

  class TorchBlock(tnn.Module):
    def __init__(self, planes_in: int, planes: int, stride: int) -> None:
      super().__init__()
      self.body = tnn.Sequential(tnn.Conv2d(planes_in, planes, 3, stride, 1, bias=False), tnn.BatchNorm2d(planes),
                                 tnn.ReLU(),
                                 tnn.Conv2d(planes, planes, 3, 1, 1, bias=False), tnn.BatchNorm2d(planes))
      shortcut = stride != 1 or planes_in != planes
      self.skip = (tnn.Sequential(tnn.Conv2d(planes_in, planes, 1, stride, bias=False), tnn.BatchNorm2d(planes))
                   if shortcut else tnn.Identity())
    def forward(self, x: Any) -> Any: return (self.body(x) + self.skip(x)).relu()

  sizes = [(64, 64, 1), (64, 64, 1), (64, 128, 2), (128, 128, 1), (128, 256, 2), (256, 256, 1), (256, 512, 2),
           (512, 512, 1)]
  model = tnn.Sequential(tnn.Conv2d(3, 64, 7, 2, 3, bias=False), tnn.BatchNorm2d(64), tnn.ReLU(),
                         tnn.MaxPool2d(3, 2, 1),
                         *[TorchBlock(*s) for s in sizes], tnn.AdaptiveAvgPool2d(1), tnn.Flatten(),
                         tnn.Linear(512, 1000)).eval()
  x = torch.rand(1, 3, 224, 224)

  def forward() -> Any:
    with torch.no_grad(): return model(x).numpy()
  return forward

MODELS: dict[str, dict[str, Callable[[], Callable[[], Any]]]] = {
  "convnet": {"tinyhw": ours_convnet, "torch": torch_convnet}, "resnet": {"tinyhw": ours_resnet, "torch": torch_resnet}}

def main() -> None:
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("models", nargs="*", default=list(MODELS))
  parser.add_argument("--seconds", type=float, default=9.0, help="of each library and model")
  parser.add_argument("--no-torch", action="store_true")
  parser.add_argument("--serve", help=argparse.SUPPRESS)
  args = parser.parse_args()
  if args.serve: return turns.serve(lambda model: MODELS[model][args.serve]())
  names = ["tinyhw"] + ["torch"] * (not args.no_torch and importlib.util.find_spec("torch") is not None)
  for model in args.models:
    libraries = [turns.Library(__file__, name) for name in names]
    first, second, *_ = libraries[0].turn(model, 0.0)
    medians = turns.medians(turns.take_turns(libraries, model, args.seconds))
    ratio = f", ratio {medians['torch'] / medians['tinyhw']:.2f}" if "torch" in medians else ""
    print(f"{model}: first call {first:.2f} s, to the end of the second {first + second:.2f} s; steady "
          + ", ".join(f"{name} {m * 1e3:.1f} ms" for name, m in medians.items()) + ratio, flush=True)
    for library in libraries: library.close()

if __name__ == "__main__": main()
