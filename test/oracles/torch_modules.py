"""Run PyTorch's module database through `tinyhw.compat.torch.nn`, and count what agrees.

    python3 test/oracles/torch_modules.py                # counts
    python3 test/oracles/torch_modules.py -v nn.Conv     # and the reasons, of modules whose names begin so
    python3 test/oracles/torch_modules.py --record       # write the counts to test/oracles/torch_ops.json

Each module is made with the database's arguments, and takes the state of PyTorch's module by its keys. Its results are
compared in training and in evaluation mode, by assert_close's defaults. So are the gradients of a weighted sum of its
float results, for inputs and parameters, within 1e-3. Modules that draw random numbers in training are compared in
evaluation only. A module is whole if all of its samples agree.

Needs the extra `oracles` of setup.py; without it, the command says so and ends.
"""
from __future__ import annotations
import argparse
import collections
import importlib
import json
import sys
import time
import warnings
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parents[2]), str(Path(__file__).parent)]

from torch_ops import Operator, Verdict, counts, is_missing, record   # noqa: E402  # the path must be set before

# Modules that draw random numbers in training mode.
DRAWN = ("Dropout", "RReLU", "Transformer", "FractionalMaxPool", "MultiheadAttention")

def main() -> int:
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("names", nargs="*", help="beginnings of names; all if there are none")
  parser.add_argument("-v", action="store_true", help="reasons")
  parser.add_argument("--record", action="store_true", help="write the counts to torch_ops.json")
  parser.add_argument("--most", type=int, default=0, help="samples of one module, spread over all; 0: all of them")
  options = parser.parse_args()
  if is_missing(): return 0
  found = counts(judge(options.names, options.most, options.v))
  print(json.dumps(found))
  if options.record: record("modules with gradients, float32", found, options.most)
  return int(found["operators with a wrong sample"] > 0)

def judge(names: list[str], most: int = 0, verbose: bool = False) -> dict[str, Verdict]:
  """Judge the modules whose names begin with one of `names`, or all."""
  warnings.simplefilter("ignore")
  database = importlib.import_module("torch.testing._internal.common_modules").module_db
  torch = importlib.import_module("torch")
  verdicts = {}
  for info in database:
    if names and not info.name.startswith(tuple(names)): continue
    began = time.time()
    verdicts[info.name] = found = ModuleJudge(torch, info).judged(most)
    if verbose:
      print(f"{found.kind:6} {info.name} {found.agree} agree, {found.wrong} wrong, {found.failed} failed, "
            f"{time.time() - began:.1f} s", flush=True)
      for reason, count in sorted(found.reasons.items(), key=lambda item: -item[1])[:6]:
        print(f"         {count} x {reason}", flush=True)
  return verdicts

class ModuleJudge(Operator):
  """A module of the database and its namesake in `tinyhw.compat.torch`."""
  def __init__(self, torch: Any, info: Any) -> None:
    super().__init__(torch, "add")
    self.info, self.title = info, info.module_cls.__name__
    self.cls = getattr(self.ours.nn, self.title, None)

  def judged(self, most: int) -> Verdict:
    tally: collections.Counter[str] = collections.Counter()
    reasons: collections.Counter[str] = collections.Counter()
    for training in (True, False):
      self.torch.manual_seed(0)
      samples = self.info.module_inputs_func(self.info, device="cpu", dtype=self.torch.float32, requires_grad=True,
                                             training=training)
      if most and len(samples) > most: samples = samples[::-(-len(samples) // most)]
      for sample in samples:
        if sample.forward_input is None or training and self.title.startswith(DRAWN): continue
        outcome, reason = ("failed", "absent") if self.cls is None else self.sample(sample, training)
        tally[outcome] += 1
        if outcome != "agree": reasons[f"{outcome}: {reason}"] += 1
    return Verdict(tally["agree"], 0, tally["wrong"], tally["failed"], self.cls is None, dict(reasons))

  def sample(self, sample: Any, training: bool) -> tuple[str, str]:
    torch, made, given = self.torch, sample.constructor_input, sample.forward_input
    for key, x in made.kwargs.items():      # drawn in float64, and its module wants the input's type
      if isinstance(x, torch.Tensor) and x.dtype is torch.float64: made.kwargs[key] = x.float()
    theirs = self.info.module_cls(*made.args, **made.kwargs).train(training)
    if "Lazy" in self.title: theirs(*given.args, **given.kwargs)      # now it has its parameters
    state = {k: v.clone() for k, v in theirs.state_dict().items()}
    inputs = [x for x in self.flat([*given.args, *given.kwargs.values()]) if isinstance(x, torch.Tensor)]
    asked = [x for x in inputs if x.is_floating_point() and x.requires_grad]
    try:
      mine = self.cls(*self.mine(made.args), **self.mine(made.kwargs)).train(training)
      mine.load_state_dict(state)
      self.leaves = {id(x): self.mine(x.detach()).requires_grad_() for x in asked}
      found = mine(*self.mine(given.args), **self.mine(given.kwargs))
      total = self.weighted(self.ours, found)
      if total is not None and (asked or state): self.backward(total)
      results = [self.theirs(x) for x in self.flat(found)]
      slopes = [None if x.grad is None else self.theirs(x.grad)
                for x in [*[self.leaves[id(x)] for x in asked], *dict(mine.named_parameters()).values()]]
      after = {k: self.theirs(v) for k, v in mine.state_dict().items()}
    except Exception as error:   # noqa: BLE001  # whatever it is, it is the reason
      return "failed", f"{type(error).__name__}: {error}".split("\n")[0][:170]
    finally: self.leaves = {}
    expected = theirs(*given.args, **given.kwargs)
    total = self.weighted(torch, expected)
    if total is not None and total.requires_grad: total.backward()
    want = [x.grad for x in [*asked, *theirs.parameters()]]
    try:
      assert list(after) == list(theirs.state_dict()), f"keys {list(after)}, not {list(theirs.state_dict())}"
      for a, b in [*zip(results, self.flat(expected), strict=True), *zip(after.values(), theirs.state_dict().values())]:
        if isinstance(b, torch.Tensor): torch.testing.assert_close(a, b.detach(), equal_nan=True)
        else: assert a == b, f"{a!r}, not {b!r}"
      for a, b in zip(slopes, want, strict=True):
        if b is None: continue
        b = b.to_dense() if b.is_sparse else b
        torch.testing.assert_close(torch.zeros_like(b) if a is None else a, b, rtol=1e-3, atol=1e-3, equal_nan=True)
    except Exception as error:   # noqa: BLE001
      return "wrong", " ".join(f"{sample.desc} {made.args} {made.kwargs} training={training} {error}".split())[:330]
    finally:
      for x in asked: x.grad = None
    return "agree", ""

  def backward(self, total: Any) -> None:
    """Differentiate, where something wants a gradient."""
    try: total.backward()
    except self.errors.GradientError: pass

  def mine(self, x: Any) -> Any:
    if callable(x) and hasattr(self.ours.nn.functional, getattr(x, "__name__", "")):      # a function of PyTorch
      return getattr(self.ours.nn.functional, x.__name__)
    if isinstance(x, self.torch.nn.Module):
      made = getattr(self.ours.nn, type(x).__name__)
      if type(x).__name__ != "TransformerEncoderLayer": return made()
      return made(x.linear1.in_features, x.self_attn.num_heads, x.linear1.out_features, x.dropout.p,
                  self.mine(x.activation), batch_first=x.self_attn.batch_first, norm_first=x.norm_first,
                  bias=x.linear1.bias is not None)
    return super().mine(x)

if __name__ == "__main__": sys.exit(main())
