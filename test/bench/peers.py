"""Time tinyhw beside its peers, in one run: for each workload the libraries take turns, so that a machine's drift meets all of them alike.

    python3 test/bench/peers.py [workload ...] [--seconds 2] [--peers torch,numpy,tinygrad] [--json FILE]

Peers that are not installed are left out. Printed: the median of each in milliseconds, and tinyhw's ratio to the fastest peer (above 1: faster).
PyTorch keeps its memory between calls (out= where it has one); tinyhw and tinygrad run captured (TinyJit). See docs/performance.md.
"""
from __future__ import annotations
import argparse
import importlib.util
import json
import os
import statistics
import sys
import time
from collections.abc import Callable

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

import numpy as np  # noqa: E402  # the inputs; also a peer

Run = Callable[[], object]
RNG = np.random.default_rng(0)

def floats(*shape: int) -> np.ndarray: return RNG.standard_normal(shape, dtype=np.float32)

class Peer:
  """A library: how arrays get in, and how a function of them becomes something to time."""
  name = ""
  def array(self, a: np.ndarray) -> object: return a
  def prepare(self, f: Callable[..., object], *args: object) -> Run: return lambda: f(*args)

class NumPy(Peer):
  name = "numpy"

class Torch(Peer):
  name = "torch"
  def __init__(self) -> None:
    import torch
    torch.set_grad_enabled(False)
    torch.set_num_threads(len(os.sched_getaffinity(0)))
    self.torch = torch
  def array(self, a: np.ndarray) -> object: return self.torch.from_numpy(a)

class Lazy(Peer):
  """tinyhw or tinygrad: captured by TinyJit, synchronized after each call."""
  def __init__(self, name: str) -> None:
    self.name = name
    module = importlib.import_module(name)
    self.Tensor, self.TinyJit, self.Device = module.Tensor, module.TinyJit, module.Device
  def array(self, a: np.ndarray) -> object: return self.Tensor(a).realize()
  def prepare(self, f: Callable[..., object], *args: object) -> Run:
    jitted = self.TinyJit(lambda *xs: f(*xs).realize())
    device = self.Device[self.Device.DEFAULT]
    def run() -> object:
      result = jitted(*args)
      device.synchronize()
      return result
    for _ in range(3): run()
    return run

# workload -> (inputs, {peer kind: function}, what one run does: (amount, unit)). "lazy" is tinyhw and tinygrad.
def workloads() -> dict[str, tuple[Callable[[], tuple[np.ndarray, ...]], dict[str, Callable[..., object]], tuple[float, str]]]:
  table: dict[str, tuple[Callable[[], tuple[np.ndarray, ...]], dict[str, Callable[..., object]], tuple[float, str]]] = {}
  table["elementwise"] = (lambda: (floats(1 << 24), floats(1 << 24), floats(1 << 24)), {
    "lazy": lambda a, b, c: (a * b + c).relu() * 2 - a, "torch": lambda a, b, c: (a * b).add_(c).relu_().mul_(2).sub_(a),
    "numpy": lambda a, b, c: np.maximum(a * b + c, 0) * 2 - a}, (4 * 4 * (1 << 24) / 1e9, "GB/s"))
  table["sum"] = (lambda: (floats(1 << 26),), {"lazy": lambda a: a.sum(), "torch": lambda a: a.sum(), "numpy": lambda a: a.sum()}, (4 * (1 << 26) / 1e9, "GB/s"))  # noqa: E501
  table["softmax"] = (lambda: (floats(4096, 4096),), {"lazy": lambda a: a.softmax(1), "torch": lambda a: a.softmax(1)}, (2 * 4 * (1 << 24) / 1e9, "GB/s"))  # noqa: E501
  table["layernorm"] = (lambda: (floats(8192, 1024),), {
    "lazy": lambda a: a.layernorm(), "torch": lambda a: __import__("torch").nn.functional.layer_norm(a, (1024,))}, (2 * 4 * (1 << 23) / 1e9, "GB/s"))
  for n in (256, 512, 1024, 2048, 4096):
    table[f"sgemm{n}"] = (lambda n=n: (floats(n, n), floats(n, n)),
                          dict.fromkeys(("lazy", "torch", "numpy"), lambda a, b: a @ b), (2 * n**3 / 1e9, "GFLOP/s"))
  table["batched"] = (lambda: (floats(32, 256, 256), floats(32, 256, 256)), dict.fromkeys(("lazy", "torch", "numpy"), lambda a, b: a @ b),
                      (2 * 32 * 256**3 / 1e9, "GFLOP/s"))
  table["gemv"] = (lambda: (floats(4096, 4096), floats(4096)), dict.fromkeys(("lazy", "torch", "numpy"), lambda a, b: a @ b), (4 * 4096**2 / 1e9, "GB/s"))  # noqa: E501
  table["conv3x3"] = (lambda: (floats(32, 64, 56, 56), floats(64, 64, 3, 3)), {
    "lazy": lambda x, w: x.conv2d(w, padding=1), "torch": lambda x, w: __import__("torch").nn.functional.conv2d(x, w, padding=1)},
    (2 * 32 * 64 * 64 * 9 * 56 * 56 / 1e9, "GFLOP/s"))
  table["conv1x1"] = (lambda: (floats(32, 256, 56, 56), floats(64, 256, 1, 1)), {
    "lazy": lambda x, w: x.conv2d(w), "torch": lambda x, w: __import__("torch").nn.functional.conv2d(x, w)}, (2 * 32 * 64 * 256 * 56 * 56 / 1e9, "GFLOP/s"))  # noqa: E501
  table["maxpool"] = (lambda: (floats(32, 64, 112, 112),), {
    "lazy": lambda x: x.max_pool2d((3, 3), stride=2, padding=1), "torch": lambda x: __import__("torch").nn.functional.max_pool2d(x, 3, 2, 1)},
    (4 * 32 * 64 * 112 * 112 * 1.25 / 1e9, "GB/s"))
  table["tiny"] = (lambda: (floats(4),), {"lazy": lambda a: a + 1, "torch": lambda a: a + 1, "numpy": lambda a: a + 1}, (1e-6, "Mcall/s"))
  return table

def measure(runs: dict[str, Run], seconds: float) -> dict[str, float]:
  """Medians in seconds; the runs take turns."""
  times: dict[str, list[float]] = {name: [] for name in runs}
  for run in runs.values(): run()
  end = time.perf_counter() + seconds * len(runs)
  while time.perf_counter() < end or min(map(len, times.values())) < 5:
    for name, run in runs.items():
      start = time.perf_counter()
      run()
      times[name].append(time.perf_counter() - start)
  return {name: statistics.median(values) for name, values in times.items()}

def main() -> None:
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("workloads", nargs="*")
  parser.add_argument("--seconds", type=float, default=1.0)
  parser.add_argument("--peers", default="torch,numpy")
  parser.add_argument("--json")
  args = parser.parse_args()
  peers: list[Peer] = [Lazy("tinyhw")]
  for name in filter(None, args.peers.split(",")):
    if importlib.util.find_spec(name) is not None: peers.append({"torch": Torch, "numpy": NumPy}[name]() if name != "tinygrad" else Lazy(name))
  print(f"{'workload':14s}" + "".join(f"{p.name:>12s}" for p in peers) + "       ratio   tinyhw's rate")
  results: dict[str, dict[str, float]] = {}
  for name, (inputs, functions, (amount, unit)) in workloads().items():
    if args.workloads and not any(name.startswith(w) for w in args.workloads): continue
    arrays = inputs()
    runs = {p.name: p.prepare(functions["lazy" if isinstance(p, Lazy) else p.name], *map(p.array, arrays))
            for p in peers if isinstance(p, Lazy) or p.name in functions}
    found = results[name] = measure(runs, args.seconds)
    best = min((t for p, t in found.items() if p != "tinyhw"), default=float("nan"))
    row = "".join(f"{found[p.name] * 1e3:10.3f}ms" if p.name in found else f"{'-':>12s}" for p in peers)
    print(f"{name:14s}{row}  {best / found['tinyhw']:9.2f}x  {amount / found['tinyhw']:9.1f} {unit}", flush=True)
  if args.json:
    with open(args.json, "w", encoding="utf-8") as file: json.dump(results, file, indent=1)

if __name__ == "__main__": main()
