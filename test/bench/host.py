"""Time what Python costs per call where the work itself is next to nothing.

    python3 test/bench/host.py [--seconds 1] [--peers torch,tinygrad]

jitted: a captured call of one kernel over 16 floats. chain: a captured chain of 64 kernels over 16 floats, per kernel
(each reads what the one before wrote backwards, so that they stay apart). plain: `(a + b).realize()` without TinyJit,
caches warm. All include waiting for the result; peers take turns (turns.py), medians of many calls. PyTorch runs
eagerly. Peers that are not installed are left out.
"""
from __future__ import annotations
import argparse
import importlib
import importlib.util
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import turns
from turns import Run

SIZE = 16
KERNELS = {"jitted": 1, "chain": 64, "plain": 1}   # of one call

def lazy(name: str) -> dict[str, Run]:
  """tinyhw's runs, or tinygrad's."""
  module = importlib.import_module(name)
  tensor, jit = module.Tensor, module.TinyJit
  device = module.Device[module.Device.DEFAULT]
  a, b = (tensor([float(k + n) for k in range(SIZE)]).realize() for n in range(2))

  def links(x: object) -> object:
    for _ in range(KERNELS["chain"]): x = (x.flip(0) + 1).contiguous()  # type: ignore[attr-defined]
    return x.realize()  # type: ignore[attr-defined]

  one, chain = jit(lambda x: (x + 1).realize()), jit(links)

  def waited(f: Run) -> Run:
    def run() -> None:
      f()
      device.synchronize()
    return run

  runs = {"jitted": waited(lambda: one(a)), "chain": waited(lambda: chain(a)),
          "plain": waited(lambda: (a + b).realize())}
  for run in runs.values():
    for _ in range(4): run()
  captured = getattr(chain.captured, "kernels", KERNELS["chain"])
  assert captured == KERNELS["chain"], f"the chain has {captured} kernels"
  return runs

def torch_runs() -> dict[str, Run]:
  import torch
  torch.set_grad_enabled(False)
  a, b = torch.arange(SIZE) + 0.0, torch.arange(SIZE) + 1.0

  def chain() -> None:
    x = a
    for _ in range(KERNELS["chain"]): x = x.flip(0) + 1

  return {"jitted": lambda: a + 1, "chain": chain, "plain": lambda: a + b}

def main() -> None:
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("--seconds", type=float, default=1.0)
  parser.add_argument("--peers", default="torch,tinygrad")
  parser.add_argument("--serve", help=argparse.SUPPRESS)
  args = parser.parse_args()
  if args.serve:
    runs = torch_runs() if args.serve == "torch" else lazy(args.serve)
    return turns.serve(runs.get)
  names = ["tinyhw"] + [name for name in args.peers.split(",") if name and importlib.util.find_spec(name) is not None]
  libraries = [turns.Library(__file__, name) for name in names]
  print(f"{'':10s}" + "".join(f"{name:>14s}" for name in names) + "   us a kernel, median")
  for what, kernels in KERNELS.items():
    found = turns.medians(turns.take_turns(libraries, what, args.seconds))
    print(f"{what:10s}" + "".join(f"{found[name] / kernels * 1e6:14.2f}" for name in names), flush=True)
  for library in libraries: library.close()

if __name__ == "__main__": main()
