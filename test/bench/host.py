"""Time what Python costs per call where the work itself is next to nothing.

    python3 test/bench/host.py [--seconds 1] [--peers torch,tinygrad]

jitted: a captured call of one kernel over 16 floats. chain: a captured chain of 64 kernels over 16 floats, per kernel (each reads what the one
before wrote backwards, so that they stay apart). plain: `(a + b).realize()` without TinyJit, caches warm. All include waiting for the result;
peers take turns, medians of many calls. PyTorch runs eagerly. Peers that are not installed are left out.
"""
from __future__ import annotations
import argparse
import importlib
import importlib.util
import os
import statistics
import sys
import time
from collections.abc import Callable

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

KERNELS, SIZE = 64, 16
Run = Callable[[], object]

def lazy(name: str) -> dict[str, tuple[Run, int]]:
  """tinyhw's runs, or tinygrad's: what to call, and how many kernels a call has."""
  module = importlib.import_module(name)
  tensor, jit = module.Tensor, module.TinyJit
  device = module.Device[module.Device.DEFAULT]
  a, b = (tensor([float(k + n) for k in range(SIZE)]).realize() for n in range(2))

  def links(x: object) -> object:
    for _ in range(KERNELS): x = (x.flip(0) + 1).contiguous()  # type: ignore[attr-defined]
    return x.realize()  # type: ignore[attr-defined]

  one, chain = jit(lambda x: (x + 1).realize()), jit(links)

  def waited(f: Run) -> Run:
    def run() -> None:
      f()
      device.synchronize()
    return run

  runs: dict[str, tuple[Run, int]] = {"jitted": (waited(lambda: one(a)), 1), "chain": (waited(lambda: chain(a)), KERNELS),
                                      "plain": (waited(lambda: (a + b).realize()), 1)}
  for run, _ in runs.values():
    for _ in range(4): run()
  captured = getattr(chain.captured, "kernels", KERNELS)
  assert captured == KERNELS, f"the chain has {captured} kernels"
  return runs

def torch_runs() -> dict[str, tuple[Run, int]]:
  import torch
  torch.set_grad_enabled(False)
  a, b = torch.arange(SIZE) + 0.0, torch.arange(SIZE) + 1.0

  def chain() -> None:
    x = a
    for _ in range(KERNELS): x = x.flip(0) + 1

  return {"jitted": (lambda: a + 1, 1), "chain": (chain, KERNELS), "plain": (lambda: a + b, 1)}

def main() -> None:
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("--seconds", type=float, default=1.0)
  parser.add_argument("--peers", default="torch,tinygrad")
  args = parser.parse_args()
  names = ["tinyhw"] + [name for name in args.peers.split(",") if name and importlib.util.find_spec(name) is not None]
  table = {name: torch_runs() if name == "torch" else lazy(name) for name in names}
  print(f"{'':10s}" + "".join(f"{name:>14s}" for name in names) + "   us a kernel, median")
  for what in ("jitted", "chain", "plain"):
    times: dict[str, list[float]] = {name: [] for name in names}
    end = time.perf_counter() + args.seconds * len(names)
    while time.perf_counter() < end:
      for name in names:
        run, kernels = table[name][what]
        start = time.perf_counter()
        run()
        times[name].append((time.perf_counter() - start) / kernels)
    print(f"{what:10s}" + "".join(f"{statistics.median(times[name]) * 1e6:14.2f}" for name in names), flush=True)

if __name__ == "__main__": main()
