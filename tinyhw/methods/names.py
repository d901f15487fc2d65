"""PyTorch's names for parameters of Tensor's methods, and methods that take complex operands: a table for each.

A method means what tinygrad's means. Where PyTorch's means the same and only calls a parameter otherwise, both names
work. Where the meanings differ (`max(dim)` gives indices, too), Tensor keeps tinygrad's, and `tinyhw.compat.torch` has
PyTorch's.

`respell` replaces each method of the table by a function that looks at keywords, and only at those: a call without
keywords costs the same call once more, about 0.1 us. `widen` replaces methods by functions that look at operands: if
one is complex, then the method of complex tensors computes.
"""
from __future__ import annotations
from collections.abc import Callable
import functools
from typing import Any

from tinyhw.errors import ArgumentError
from tinyhw.methods.base import Handle, complex_room

def _rows(text: str) -> dict[str, dict[str, str]]:
  """Parse lines of `methods: theirs=ours ...` to {method: {theirs: ours}}."""
  found: dict[str, dict[str, str]] = {}
  for line in text.strip().splitlines():
    methods, pairs = line.split(":")
    for method in methods.split():
      found.setdefault(method, {}).update(dict(pair.split("=") for pair in pairs.split()))
  return found

# methods: PyTorch's name=ours. Names of PyTorch's that are ours, too, are not listed.
NAMES = _rows("""
  sum prod max min mean var std var_mean std_mean any all argmax argmin logsumexp: dim=axis
  softmax softmin log_softmax cumsum cumprod cummax cummin logcumsumexp: dim=axis
  add sub mul div mod fmod maximum minimum eq ne gt lt ge le: other=x
  bitwise_and bitwise_or bitwise_xor lshift rshift: other=x
  pow: exponent=x
  matmul: other=x
  dot: tensor=w other=w
  where: input=x other=y
  clamp clip: min=min_ max=max_
  flip: dims=axis
  permute: dims=order
  expand: size=shape
  split: split_size=sizes split_size_or_sections=sizes
  unfold: dimension=dim
  topk: sorted=sorted_
  leaky_relu: negative_slope=neg_slope
  pad: pad=padding
  einsum: equation=formula
  arange linspace: end=stop
  cross_entropy nll_loss binary_crossentropy binary_crossentropy_logits sparse_categorical_crossentropy: target=Y
  cat stack: axis=dim
  squeeze unsqueeze gather scatter sort argsort topk chunk split repeat_interleave normalize: axis=dim
  transpose: axis0=dim0 axis1=dim1
  roll: dim=dims axis=dims
  diagonal: axis1=dim1 axis2=dim2
""")

def spelled(method: str, keywords: dict[str, Any], names: dict[str, str]) -> dict[str, Any]:
  """Return keywords with our names. Raises ArgumentError if a parameter is given by both."""
  found = {}
  for key, value in keywords.items():
    name = names.get(key, key)
    if name in found or name != key and name in keywords:
      raise ArgumentError(f"{method} got {name} twice: {key} is PyTorch's name of it; give one of them")
    found[name] = value
  return found

def respell(cls: type) -> None:
  """Let the methods of NAMES take PyTorch's names, in the classes that define them."""
  for method, names in NAMES.items():
    owner = next(base for base in cls.__mro__ if method in vars(base))
    kept = vars(owner)[method]
    kind = type(kept) if isinstance(kept, (staticmethod, classmethod)) else None
    made = _taking(kept.__func__ if kind else kept, method, names)
    setattr(owner, method, kind(made) if kind else made)

def _taking(function: Callable[..., Any], method: str, names: dict[str, str]) -> Callable[..., Any]:
  @functools.wraps(function)
  def called(*args: Any, **keywords: Any) -> Any:
    if keywords and not names.keys().isdisjoint(keywords): keywords = spelled(method, keywords, names)
    return function(*args, **keywords)
  return called

# Methods of Tensor with an operand that may be complex.
MIXED = """add sub mul div pow dot matmul eq ne where cat stack masked_fill lerp linear usum uprod __add__ __radd__
  __mul__ __rmul__ __rmatmul__""".split()

def widen(cls: type) -> None:
  """Let the methods of MIXED take complex operands, in the classes that define them."""
  for name in MIXED:
    owner = next(base for base in cls.__mro__ if name in vars(base))
    setattr(owner, name, _mixing(vars(owner)[name], name))

def _mixing(function: Callable[..., Any], name: str) -> Callable[..., Any]:
  if name.startswith("__"):    # an operator has one operand, and no keywords
    @functools.wraps(function)
    def applied(self: Any, x: Any) -> Any:
      if type(x) is complex or isinstance(x, Handle) and x.holds_complex:
        return complex_room().mixed(self, name, (x,), {})
      return function(self, x)
    return applied

  @functools.wraps(function)
  def called(self: Any, *args: Any, **keywords: Any) -> Any:
    for x in args:
      if type(x) is complex or isinstance(x, Handle) and x.holds_complex:
        return complex_room().mixed(self, name, args, keywords)
    return function(self, *args, **keywords)
  return called
