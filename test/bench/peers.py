"""Time tinyhw beside its peers, in one run: for each workload the libraries take turns, each in a process of its own
(turns.py).

    python3 test/bench/peers.py [workload ...] [--seconds 2] [--peers torch,numpy,tinygrad] [--json FILE]

Peers that are not installed are left out. Printed: the median of each in milliseconds, and tinyhw's ratio to the
fastest peer (above 1: faster). PyTorch and NumPy get results' memory back from the allocator without a page fault;
tinyhw and tinygrad run captured (TinyJit).
"""
from __future__ import annotations
import argparse
import importlib.util
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np  # the inputs; also a peer
import turns
from turns import Run

Function = Callable[..., object]

def floats(*shape: int) -> np.ndarray: return np.random.default_rng(0).standard_normal(shape, dtype=np.float32)

class Peer:
  """A library: how arrays get in, in a type that NumPy may not have, and how a function of them becomes something to
  time."""
  name = ""
  def array(self, a: np.ndarray, dtype: str) -> object: return a
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
  def array(self, a: np.ndarray, dtype: str) -> object: return self.torch.from_numpy(a).to(getattr(self.torch, dtype))

class Lazy(Peer):
  """tinyhw or tinygrad: captured by TinyJit, synchronized after each call."""
  def __init__(self, name: str) -> None:
    self.name = name
    module = importlib.import_module(name)
    self.Tensor, self.TinyJit, self.Device = module.Tensor, module.TinyJit, module.Device
  def array(self, a: np.ndarray, dtype: str) -> object: return self.Tensor(a).cast(dtype).contiguous().realize()
  def prepare(self, f: Callable[..., object], *args: object) -> Run:
    jitted = self.TinyJit(lambda *xs: f(*xs).realize())
    device = self.Device[self.Device.DEFAULT]
    def run() -> object:
      result = jitted(*args)
      device.synchronize()
      return result
    for _ in range(3): run()
    return run

class Workload(NamedTuple):
  """A timed piece of work: inputs, functions by kind of library ("lazy": tinyhw and tinygrad), and how much one run
  does."""
  inputs: Callable[[], tuple[np.ndarray, ...]]
  functions: dict[str, Function]
  amount: float
  unit: str
  dtype: str = "float32"   # of the inputs; NumPy has float32 only

def everywhere(f: Function) -> dict[str, Function]: return dict.fromkeys(("lazy", "torch", "numpy"), f)

def torch_functional(name: str, *args: object) -> Function:
  """A function of torch.nn.functional, which is imported when it is called."""
  return lambda *tensors: getattr(importlib.import_module("torch.nn.functional"), name)(*tensors, *args)

WORKLOADS = {
  "elementwise": Workload(lambda: (floats(1 << 24), floats(1 << 24) + 1, floats(1 << 24) + 2), {
    "lazy": lambda a, b, c: (a * b + c).relu() * 2 - a, "torch": lambda a, b,
    c: (a * b).add_(c).relu_().mul_(2).sub_(a),
    "numpy": lambda a, b, c: np.maximum(a * b + c, 0) * 2 - a}, 4 * 4 * (1 << 24) / 1e9, "GB/s"),
  "sum": Workload(lambda: (floats(1 << 26),), everywhere(lambda a: a.sum()), 4 * (1 << 26) / 1e9, "GB/s"),
  "softmax": Workload(lambda: (floats(4096, 4096),), dict.fromkeys(("lazy", "torch"), lambda a: a.softmax(1)),
                      2 * 4 * (1 << 24) / 1e9, "GB/s"),
  "layernorm": Workload(lambda: (floats(8192, 1024),),
                        {"lazy": lambda a: a.layernorm(), "torch": torch_functional("layer_norm", (1024,))},
                        2 * 4 * (1 << 23) / 1e9, "GB/s"),
  **{f"sgemm{n}": Workload(lambda n=n: (floats(n, n), floats(n, n)), everywhere(lambda a, b: a @ b), 2 * n**3 / 1e9,
                           "GFLOP/s")
     for n in (256, 512, 1024, 2048, 4096)},
  **{f"linear bfloat16 {m}x{k}x{n}": Workload(
       lambda m=m, k=k, n=n: (floats(m, k), floats(n, k)), dict.fromkeys(("lazy", "torch"), lambda x, w: x @ w.T),
       2 * m * k * n / 1e9, "GFLOP/s", "bfloat16")
     for m, k, n in ((32, 2048, 2048), (128, 2048, 5632), (512, 2048, 2048), (2048, 2048, 2048))},
  "batched": Workload(lambda: (floats(32, 256, 256), floats(32, 256, 256)), everywhere(lambda a, b: a @ b),
                      2 * 32 * 256**3 / 1e9, "GFLOP/s"),
  "gemv": Workload(lambda: (floats(4096, 4096), floats(4096)), everywhere(lambda a, b: a @ b), 4 * 4096**2 / 1e9,
                   "GB/s"),
  "conv3x3": Workload(lambda: (floats(32, 64, 56, 56), floats(64, 64, 3, 3)), {
    "lazy": lambda x, w: x.conv2d(w, padding=1), "torch": torch_functional("conv2d", None, 1, 1)},
                      2 * 32 * 64 * 64 * 9 * 56 * 56 / 1e9, "GFLOP/s"),
  "conv1x1": Workload(lambda: (floats(32, 256, 56, 56), floats(64, 256, 1, 1)), {
    "lazy": lambda x, w: x.conv2d(w), "torch": torch_functional("conv2d")}, 2 * 32 * 64 * 256 * 56 * 56 / 1e9,
                      "GFLOP/s"),
  "maxpool": Workload(lambda: (floats(32, 64, 112, 112),), {
    "lazy": lambda x: x.max_pool2d((3, 3), stride=2, padding=1), "torch": torch_functional("max_pool2d", 3, 2, 1)},
    4 * 32 * 64 * 112 * 112 * 1.25 / 1e9, "GB/s"),
  "tiny": Workload(lambda: (floats(4),), everywhere(lambda a: a + 1), 1e-6, "Mcall/s"),
}

def peer(name: str) -> Peer:
  return {"torch": Torch, "numpy": NumPy}[name]() if name in ("torch", "numpy") else Lazy(name)

def prepare(library: Peer, workload: str) -> Run | None:
  """Return the function that a library runs for a workload; None if it has no way to."""
  kind = "lazy" if isinstance(library, Lazy) else library.name
  if kind not in WORKLOADS[workload].functions: return None
  asked = WORKLOADS[workload]
  return library.prepare(asked.functions[kind], *[library.array(a, asked.dtype) for a in asked.inputs()])

def main() -> None:
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("workloads", nargs="*")
  parser.add_argument("--seconds", type=float, default=2.0, help="of each library and workload")
  parser.add_argument("--peers", default="torch,numpy")
  parser.add_argument("--json")
  parser.add_argument("--serve", help=argparse.SUPPRESS)
  args = parser.parse_args()
  if args.serve:
    library = peer(args.serve)
    return turns.serve(lambda workload: prepare(library, workload))
  names = ["tinyhw"] + [name for name in filter(None, args.peers.split(","))
                        if importlib.util.find_spec(name) is not None]
  libraries = [turns.Library(__file__, name) for name in names]
  print(f"{'workload':30s}" + "".join(f"{name:>12s}" for name in names) + "       ratio   tinyhw's rate")
  results: dict[str, dict[str, float]] = {}
  for name, workload in WORKLOADS.items():
    if args.workloads and not any(name.startswith(w) for w in args.workloads): continue
    found = results[name] = turns.medians(turns.take_turns(libraries, name, args.seconds))
    best = min((t for p, t in found.items() if p != "tinyhw"), default=float("nan"))
    row = "".join(f"{found[p] * 1e3:10.3f}ms" if p in found else f"{'-':>12s}" for p in names)
    print(f"{name:30s}{row}  {best / found['tinyhw']:9.2f}x  {workload.amount / found['tinyhw']:9.1f} {workload.unit}",
          flush=True)
  for process in libraries: process.close()
  if args.json:
    with open(args.json, "w", encoding="utf-8") as file: json.dump(results, file, indent=1)

if __name__ == "__main__": main()
