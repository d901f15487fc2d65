"""The documented API by name: every name of support/api_names.txt exists, with its parameters in order, and state dict
keys agree."""
from __future__ import annotations
import importlib
import inspect
from pathlib import Path
import re
from typing import Any, NamedTuple

import pytest

from tinyhw import Context, Tensor, UOp, Variable, dtypes, nn
from tinyhw.device import Allocator, Buffer, Device
from tinyhw.helpers import ContextVar, GlobalCounters, Profiling, Timing, tqdm
from tinyhw.nn.state import get_state_dict

# What is announced and not there yet: a name here that works fails the test, so that the table shrinks.
NOT_YET: set[str] = set()

def undeclared_variable() -> ContextVar[int]:
  """A variable that is none of the process's."""
  found = ContextVar("TEST_API", 0)
  del ContextVar._cache[found.key]
  return found

class Name(NamedTuple):
  """owner: a module, or a class of one. parameters: None if the name is not called."""
  owner: str
  name: str
  parameters: tuple[str, ...] | None

  def __str__(self) -> str: return f"{self.owner}.{self.name}"

def sections() -> dict[str, list[str]]:
  """Return the lines under each heading of the list."""
  found: dict[str, list[str]] = {}
  lines = (Path(__file__).parents[1] / "support/api_names.txt").read_text(encoding="utf-8").splitlines()
  for line in lines[1:]:
    if line.startswith("["): found[line[1:-1]] = []
    elif line: next(reversed(found.values())).append(line)
  return found

def split(text: str) -> tuple[str, tuple[str, ...] | None]:
  """"add(x, reverse)" -> ("add", ("x", "reverse"))."""
  name, bracket, rest = text.partition("(")
  if not bracket: return name, None
  return name, tuple(p.strip() for p in rest.removesuffix(")").split(",") if p.strip())

SECTIONS = sections()
NAMES = [Name(split(heading.split(" ", 1)[1])[0], *split(line)) for heading, lines in SECTIONS.items() for line in lines
         if heading.startswith(("class ", "module "))]
CLASSES = [split(heading.removeprefix("class ")) for heading in SECTIONS if heading.startswith("class ")
           and "(" in heading]
OPERATORS = " ".join(SECTIONS["operators tinyhw.Tensor"]).split()

# Attributes that only objects have.
OBJECTS: dict[str, Any] = {
  "tinyhw.device.Buffer": lambda: Buffer("PYTHON", 1, dtypes.int8), "tinyhw.helpers.ContextVar": undeclared_variable,
  "tinyhw.helpers.Context": lambda: Context(), "tinyhw.helpers.GlobalCounters": lambda: GlobalCounters,
  "tinyhw.helpers.tqdm": lambda: tqdm([]),
  "tinyhw.helpers.Timing": Timing, "tinyhw.helpers.Profiling": lambda: Profiling(enabled=False),
  "tinyhw.Tensor": lambda: Tensor([1.0]),
  "tinyhw.device.Device": lambda: Device, "tinyhw.dtype.DType": lambda: dtypes.float32,
  "tinyhw.device.Allocator": lambda: Allocator("PYTHON"),
}

def find(path: str) -> Any:
  """Return a module, or a member of one. Raises AttributeError, ImportError."""
  try: return importlib.import_module(path)
  except ImportError:
    module, _, name = path.rpartition(".")
    if not module: raise
    return getattr(find(module), name)

def owner_of(name: Name) -> Any:
  found = find(name.owner)
  return OBJECTS[name.owner]() if not hasattr(found, name.name) and name.owner in OBJECTS else found

def wrong_parameters(call: Any, wanted: tuple[str, ...]) -> str:
  """Return the reason why a call cannot take these parameters in this order.

  *args and **kwargs may be spelled out, more parameters may follow.
  """
  stars = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
  given = [stars.get(p.kind, "") + name for name, p in inspect.signature(call).parameters.items() if name != "self"]
  plain = [w for w in wanted if not w.startswith("*")]
  missing = [w for w in plain if w not in given]
  if missing: return f"has no {', '.join(missing)}; it has {', '.join(given)}"
  if [g for g in given if g in plain] != plain: return f"has {', '.join(given)}, and the order is {', '.join(plain)}"
  open_ended = [w for w in wanted if w.startswith("*") and w not in given]
  if open_ended and len(given) <= len(plain): return f"takes nothing in place of {', '.join(open_ended)}"
  return ""

def check(name: Name) -> None:
  owner = owner_of(name)
  assert hasattr(owner, name.name), f"{name} is missing"
  if name.parameters:
    assert not (wrong := wrong_parameters(getattr(owner, name.name), name.parameters)), f"{name} {wrong}"
  elif name.parameters is not None: assert callable(getattr(owner, name.name)), f"{name} cannot be called"

@pytest.mark.parametrize("name", NAMES, ids=str)
def test_name(name: Name) -> None:
  late = NOT_YET & {str(name), name.owner}
  if not late: return check(name)
  with pytest.raises((AssertionError, AttributeError, ImportError)): check(name)

def test_the_table_of_what_is_late_names_what_is_announced() -> None:
  assert NOT_YET <= {str(n) for n in NAMES} | {n.owner for n in NAMES}

@pytest.mark.parametrize(("path", "parameters"), CLASSES, ids=lambda x: x if isinstance(x, str) else "")
def test_class(path: str, parameters: tuple[str, ...]) -> None:
  found = find(path)
  if parameters: assert not (wrong := wrong_parameters(found, parameters)), f"{path} {wrong}"
  else: assert found is not None

@pytest.mark.parametrize("operator", OPERATORS)
def test_operator(operator: str) -> None: assert callable(getattr(Tensor, f"__{operator}__"))

@pytest.mark.parametrize("name", " ".join(SECTIONS["dtypes"]).split())
def test_dtype(name: str) -> None: assert str(getattr(dtypes, name)).startswith("dtypes.")

ARGUMENTS: dict[str, tuple[Any, ...]] = {
  "BatchNorm": (3,), "BatchNorm2d": (3,), "Conv1d": (2, 3, 3), "Conv2d": (2, 3, 3), "ConvTranspose1d": (2, 3, 3),
  "ConvTranspose2d": (2, 3, 3),
  "Linear": (2, 3), "GroupNorm": (2, 4), "InstanceNorm": (3,), "LayerNorm": (3,), "LayerNorm2d": (3,), "RMSNorm": (3,),
  "Embedding": (5, 3),
  "LSTMCell": (2, 3),
}

@pytest.mark.parametrize("line", SECTIONS["state"])
def test_state_dict_keys(line: str) -> None:
  path, _, keys = line.partition(": ")
  kind = path.rpartition(".")[2]
  if path.startswith("nn.optim."):
    options = {"momentum": 0.9} if kind == "SGD" else {}     # the list is of one with momentum
    made = getattr(nn.optim, kind)([Tensor([1.0, 2.0])], **options)
  else: made = getattr(nn, kind)(*ARGUMENTS[kind])
  assert sorted(get_state_dict(made)) == sorted(keys.split())

def test_kernels_and_expressions() -> None:
  """The level below tensors, by the names that users write."""
  from tinyhw.codegen.transform.tiling import Opt, OptOps
  from tinyhw.uop.enums import AxisType, Ops
  from tinyhw.uop.ops import KernelInfo
  from tinyhw.uop.upat import PatternMatcher, UPat, graph_rewrite
  x = Variable("x", 0, 10)
  assert (x.vmin, x.vmax, x.bind(3).unbind()) == (0, 10, (x, 3)) and {"op", "dtype", "src", "arg", "tag"} <= set(dir(x))
  first = PatternMatcher([(UPat(Ops.ADD, src=(UPat.cvar("x"), UPat.cvar("x"))), lambda x: x * 2)])
  both = first + PatternMatcher([(UPat.var("y") + UPat.const(dtypes.int32, 0), lambda y: y)])
  four = UOp.const(dtypes.int32, 4)
  assert graph_rewrite(UOp(Ops.ADD, dtypes.int32, (four, four)), both, None) is four * 2
  assert graph_rewrite(UOp(Ops.ADD, dtypes.int32, (x.cast(dtypes.int32), UOp.const(dtypes.int32, 0))),
                       both) is x.cast(dtypes.int32)
  any_sum = PatternMatcher([(UPat(Ops.ADD, name="u", src=(UPat.var("a"),), allow_any_len=True), lambda u,
                             a: a * len(u.src))])
  assert graph_rewrite(UOp(Ops.ADD, dtypes.int32, (four, four)), any_sum) is four * 2
  assert AxisType.GLOBAL and KernelInfo(name="k").name == "k" and Opt(OptOps.UPCAST, 0, 4).amount == 4

# Where a default is another one than tinygrad's, and why that changes nothing that a user sees.
OTHER_DEFAULTS = {
  ("full", "buffer"): "a tensor gets storage when it is written or realized", ("full_like", "buffer"): "the same",
  ("selu", "alpha"): "all digits", ("selu", "gamma"): "all digits",
}

def test_defaults_are_those_of_tinygrad() -> None:
  theirs = pytest.importorskip("tinygrad").Tensor
  found = {}
  for name in [n.name for n in NAMES if n.owner == "tinyhw.Tensor" and n.parameters and str(n) not in NOT_YET]:
    ours = inspect.signature(getattr(Tensor, name)).parameters
    for key, parameter in inspect.signature(getattr(theirs, name)).parameters.items():
      if key not in ours or parameter.default is parameter.empty: continue
      a, b = ours[key].default, parameter.default
      if a != b and not re.search(r"dtypes\.int(32)?$", f"{a}") and (name, key) not in OTHER_DEFAULTS:
        found[name, key] = a, b
  assert not found
