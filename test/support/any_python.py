"""Checks for any Python that has tinyhw, of the one that runs this file, with nothing but its standard library:
`python3 any_python.py DEVICE`.

test/house/test_pythons.py runs it on each Python that it finds. Every module imports, and no warning is given; a first
result; the device's selftest; a network that learns, with TinyJit; tensors through pickle; the examples in the
docstrings of Tensor's methods, as a share of the tests.
"""
from __future__ import annotations
import doctest
import importlib
import io
import os
import pickle
import pkgutil
import re
import sys
import tempfile
import warnings
from typing import Any

NEEDS = re.compile(r"numpy|torch|\bnp\.|asarray")   # examples with what this Python may not have

def modules() -> str:
  """Every module of the package imports, with warnings as errors."""
  import tinyhw
  names = [found.name for found in pkgutil.walk_packages(tinyhw.__path__, "tinyhw.")]
  for name in names: importlib.import_module(name)
  return f"{len(names)} modules"

def first_result() -> str:
  from tinyhw import Tensor
  assert Tensor([1, 2, 3]).sum().item() == 6
  return "6"

def selftest() -> str:
  from tinyhw import Device
  from tinyhw.selftest.command import run
  report = io.StringIO()
  assert run(Device.DEFAULT, out=report) == 0, report.getvalue()
  return report.getvalue().splitlines()[-1]

def training() -> str:
  """A network fits a few points, captured and replayed."""
  from tinyhw import Tensor, TinyJit, nn
  Tensor.manual_seed(1)
  x, y = Tensor.randn(16, 4).realize(), Tensor.randint(16, low=0, high=3).realize()
  first, last = nn.Linear(4, 8), nn.Linear(8, 3)
  optimizer = nn.optim.AdamW(nn.state.get_parameters([first, last]), lr=0.05)
  @TinyJit
  @Tensor.train()
  def step() -> Tensor:
    optimizer.zero_grad()
    loss = last(first(x).relu()).sparse_categorical_crossentropy(y).backward()
    return loss.realize(*optimizer.schedule_step())
  losses = [step().item() for _ in range(12)]
  assert losses[-1] < 0.7 * losses[0], losses
  return f"loss {losses[0]:.3f} to {losses[-1]:.3f}"

def held_values() -> str:
  """Held nodes are told from others, and a value inside of a schedule is kept if its tensor is held."""
  from tinyhw import Tensor
  from tinyhw.engine.memory.held import held_outside
  from tinyhw.uop.enums import Ops
  from tinyhw.uop.ops import UOp
  graph = dict.fromkeys([UOp(Ops.SINK, tag=object()) for _ in range(3)])
  held = list(graph)[1]
  assert held_outside(graph, dict.fromkeys(graph)) == [held]
  x = Tensor([[1.0, 2.0], [3.0, 4.0]]).realize()
  hidden = (x @ x).contiguous()
  (hidden @ x).contiguous().realize()
  assert hidden.uop.realized is not None
  return "1 of 3 nodes"

def named_tuples() -> str:
  """A class whose annotations are evaluated when they are asked for, as Python 3.14 does, has its fields too."""
  scope: dict[str, Any] = {"__name__": __name__}
  text = ("from tinyhw.named_tuple import NamedTuple\nclass Pair(NamedTuple):\n  first: int\n  rest: 'Pair | None' = "
          "None")
  exec(compile(text, "pair", "exec", dont_inherit=True), scope)
  assert repr(scope["Pair"](1)) == "Pair(first=1, rest=None)", scope["Pair"]._fields
  return "Pair(first=1, rest=None)"

def pickles() -> str:
  """Tensors through every protocol."""
  from tinyhw import Tensor
  x = Tensor([[1.0, 2.0], [3.0, 4.0]])
  for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
    assert pickle.loads(pickle.dumps(x, protocol)).tolist() == x.tolist()
  return f"{pickle.HIGHEST_PROTOCOL + 1} protocols"

def examples() -> str:
  """The examples of Tensor's methods, on the default device in place of CPU."""
  import tinyhw
  from tinyhw import Tensor
  names = {name: getattr(tinyhw, name) for name in tinyhw.__all__}
  runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
  report: list[str] = []
  for name in sorted({cls.__module__ for cls in Tensor.__mro__ if cls.__module__.startswith("tinyhw")}):
    module = importlib.import_module(name)
    for test in doctest.DocTestFinder().find(module, name, extraglobs=names):
      if any(NEEDS.search(example.source) for example in test.examples): continue
      for example in test.examples:
        example.source, example.want = (re.sub(r"\bCPU\b", tinyhw.Device.DEFAULT, text)
                                        for text in (example.source, example.want))
      runner.run(test, out=report.append)
  assert not runner.failures, "".join(report)
  assert runner.tries > 200, f"only {runner.tries} examples were found"
  return f"{runner.tries} examples"

CHECKS = (modules, first_result, selftest, training, held_values, named_tuples, pickles, examples)

def main(device: str, checks: list[str]) -> int:
  """Run the checks, all or those of these names; a line for each. The number of them that failed."""
  os.environ["DEV"] = device
  warnings.simplefilter("error")
  failed = 0
  for check in CHECKS:
    if checks and check.__name__ not in checks: continue
    try: words = check()
    except Exception as error:  # noqa: BLE001  # whatever it is, the other checks go on
      failed += 1
      words = f"FAILED: {type(error).__name__}: {error}"
    print(f"{check.__name__}: {words}", flush=True)
  print(f"Python {sys.version.split()[0]} on {sys.platform}: {failed} failed", flush=True)
  return failed

if __name__ == "__main__":
  here = os.getcwd()
  with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)   # examples write files
    status = main(sys.argv[1], sys.argv[2:])
    os.chdir(here)
  sys.exit(status)
