"""A matmul on the toy accelerator, with the listing of its kernel, and training steps of a small network: python3
examples/toy_accelerator/demo.py"""
import os
import sys
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from examples.toy_accelerator.table import decode  # the path above makes this work in a bare clone
from tinyhw import Device, Tensor, nn

def train(x: Tensor, first: nn.Linear, second: nn.Linear, optimizer: nn.optim.Optimizer) -> float:
  """Run one step. Return the loss before it."""
  loss = (second(first(x).relu()) - 1).square().mean()
  optimizer.zero_grad()
  loss.backward()
  Tensor.realize(loss, *optimizer.schedule_step())
  return float(loss.item())

Device.DEFAULT, Tensor.training = "TOY", True
Tensor.manual_seed(1)
a, b = Tensor.rand(16, 32).realize(), Tensor.rand(32, 16).realize()
x = a.matmul(b).realize()
code = Device["TOY"].latest  # type: ignore[attr-defined]  # ToyDevice has it
print(f"{code.name}: {code.lanes} lanes, {code.local_bytes} bytes of shared memory")
for number, inst in enumerate(decode(code.text)): print(f"{number:4d}  {inst!r}")
print("largest error", (x - (a.reshape(16, 32, 1) * b).sum(1)).abs().max().item())
layers = nn.Linear(16, 16), nn.Linear(16, 4)
optimizer = nn.optim.SGD(nn.state.get_parameters(layers), lr=0.002)
for step in range(3): print(f"step {step}: loss {train(x, *layers, optimizer):.4f}")
