"""Every method called with wrong kinds, shapes, types and values.

It may work, or raise one of tinyhw's errors with a message, or Python's own about the arguments of a call. It never
raises an error from deep inside, and never takes long.
"""
from __future__ import annotations
from collections.abc import Callable
import inspect
import random
from typing import Any

import numpy as np
import pytest

from tinyhw import Tensor, UOp, dtypes
from tinyhw.errors import TinyError

# not called at all: they download, read memory at any address, change other tensors' state by design, or only concern
# names inside
SKIPPED = set("from_url from_blob hold manual_seed no_grad train training backward".split())
SLOW = {"hash", "svd", "qr"}   # called, but the result is not computed
NAMES = [n for n in sorted(dir(Tensor)) if not n.startswith("_") and n not in SKIPPED and callable(getattr(Tensor, n))]
OPERATORS = ["__add__", "__rsub__", "__getitem__", "__setitem__", "__matmul__", "__pow__", "__lshift__", "__contains__",
             "__floordiv__", "__mod__",
             "__and__", "__lt__", "__eq__", "__truediv__"]
HASHES = ("hash", "keccak")   # half an hour on a virtual GPU, where test_digest.py computes some
CALLS = 7
MOST_COMPUTED = 1 << 14

def operand(choices: random.Random) -> Tensor:
  kind = choices.choice(["float32"] * 4 + ["int32", "int64", "bool", "uint8", "float16", "float64", "bfloat16", "int8"])
  shape = choices.choice([(), (0,), (1,), (3,), (4,), (2, 3), (3, 3), (2, 0, 3), (1, 2, 4, 4), (2, 3, 4)])
  return Tensor(np.arange(int(np.prod(shape)), dtype=np.float32).reshape(shape)).cast(kind)

def argument(choices: random.Random) -> Any:
  n = UOp.variable("n", 1, 3)
  makers: list[Callable[[], Any]] = [
    *[lambda x=x: x for x in (None, 0, 1, -1, 2, 5, -7, 10 ** 30, 1 << 40, 2.5, -0.5, float("nan"), float("inf"), "x",
                              "", "mean", "linear", "->",
                              "a b -> b a", "i,j->", "float32", b"ab", True, 1j, int, dtypes.int32, n, n.bind(2),
                              slice(None), slice(0, 1, -1), ...)],
    lambda: [], lambda: [1], lambda: (1, 2), lambda: (0, 1), lambda: [[1], [2, 3]], lambda: [(0, 1), None], dict, set,
    object, lambda: (lambda x: x),
    lambda: Tensor([1.0, 2, 3]), lambda: Tensor([0, 1]), lambda: Tensor([[1.0, 2, 3], [4, 5, 6]]), lambda: Tensor(True),
    lambda: Tensor([True, False]),
    lambda: Tensor.zeros(1, 2, 2, 2), lambda: np.float32(3), lambda: np.int64(1), lambda: np.bool_(True)]
  return choices.choice(makers)()

def arguments(choices: random.Random, function: Any) -> tuple[list[Any], dict[str, Any]]:
  """Return a value for each required parameter, and for some of the others."""
  given: list[Any] = []
  named: dict[str, Any] = {}
  for p in inspect.signature(function).parameters.values():
    if p.name == "self": continue
    if p.kind is p.VAR_POSITIONAL: given += [argument(choices) for _ in range(choices.randrange(3))]
    elif p.kind is p.VAR_KEYWORD:
      if choices.random() < 0.3:
        named[choices.choice(["dtype", "device", "buffer", "requires_grad"])] = argument(choices)
    elif p.kind is p.KEYWORD_ONLY: named[p.name] = argument(choices)
    elif p.default is p.empty: given.append(argument(choices))
    elif choices.random() < 0.5: named[p.name] = argument(choices)
  return given, named

def compute(found: Any, name: str) -> None:
  """Realize the Tensors of a result, if they are small."""
  for x in found if isinstance(found, (tuple, list)) else (found,):
    if (isinstance(x, Tensor) and name not in SLOW and all(isinstance(d, int) for d in x.shape)
        and int(x.numel()) <= MOST_COMPUTED):
      x.realize()

def is_about_the_call(error: TypeError) -> bool:
  """Is this Python's message for arguments that do not fit a function's parameters?"""
  return any(words in str(error) for words in ("unexpected keyword argument", "required positional argument",
                                               "required keyword-only argument",
                                               "positional arguments but", "positional argument but",
                                               "multiple values for"))

@pytest.mark.parametrize("name", [
  pytest.param(name, marks=pytest.mark.host("hashes take half an hour on a virtual GPU")) if name in HASHES else name
  for name in NAMES + OPERATORS])
def test_bad_input(name):
  function = getattr(Tensor, name)
  alone = isinstance(inspect.getattr_static(Tensor, name), (staticmethod, classmethod))
  choices = random.Random(name)
  for _ in range(CALLS):
    t, (given, named) = operand(choices), arguments(choices, function)
    print(name, t.shape, t.dtype, given, named)   # pytest shows what a failure's call was
    try: compute(function(*([] if alone else [t]), *given, **named), name)
    except TinyError as error: assert error.message, "an error without a message"
    except TypeError as error:
      if not is_about_the_call(error): raise
