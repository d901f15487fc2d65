"""Arguments and results of functions as trees: collect their leaves, and rebuild the same tree around other leaves.

Branches are lists, tuples (named ones too), dicts and dataclasses. Leaves are Tensors, bound Variables and other
objects, which count as plain values. Numbers and texts are equal if a program cannot tell them apart: 0.0 is not -0.0,
True is not 1, NaN is NaN. Other values with a hash of their own are compared by ==, and objects by identity.
"""
from __future__ import annotations
import copy
import functools
from collections.abc import Callable, Iterator
from typing import Any

from tinyhw.errors import JitError
from tinyhw.named_tuple import NamedTuple
from tinyhw.tensor import Tensor
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp

_DEEPEST = 100    # limit of nesting; a deeper container contains itself
_MOST_NAMED = 16
# The names of n Tensors without keywords: the same object in each call.
_NAMES = [tuple(map(str, range(n))) for n in range(_MOST_NAMED + 1)]

class Rest(NamedTuple):
  """A place in the arguments that holds no Tensor. `token` equals that of another call if nothing has changed. `value`
  is for messages."""
  name: str
  token: Any
  value: Any
  is_branch: bool = False     # a container, whose parts are places themselves

# The arguments of a call: names of Tensors, these Tensors once each, values of Variables, and the rest. A plain tuple:
# a named one takes 0.2 us longer to make.
Arguments = tuple[tuple[str, ...], list[Tensor], dict[str, int], tuple[Rest, ...]]

class _Object:
  """A token that equals only the token of the same object."""
  __slots__ = ("value",)
  def __init__(self, value: Any): self.value = value
  def __eq__(self, other: object) -> bool: return isinstance(other, _Object) and other.value is self.value
  def __hash__(self) -> int: return id(self.value)

def is_data(value: Any) -> bool:
  """Is this mutable memory: an array of another library or of Python, a bytearray, a number or structure of ctypes?"""
  kind: Any = type(value)
  return _holds_data(kind)

@functools.lru_cache(maxsize=256)
def _holds_data(kind: Any) -> bool:
  if issubclass(kind, (str, bytes)): return False
  if hasattr(kind, "__array__"): return not _has_hash(kind)    # NumPy's numbers have a hash
  if issubclass(kind, (bytearray, memoryview)) or kind.__module__ == "array": return True
  # without functions of ctypes
  return any(base.__name__ == "_CData" for base in kind.__mro__) and "__call__" not in dir(kind)

def token(value: Any) -> Any:
  """Return a token that equals that of another value if no program can tell the values apart."""
  kind = type(value)
  if kind in (int, str, bool, bytes, type(None)): return kind, value
  if kind is float: return kind, value.hex()
  if kind is complex: return kind, value.real.hex(), value.imag.hex()
  if kind in (tuple, list): return kind, tuple([token(v) for v in value])
  if kind in (set, frozenset): return kind, frozenset([token(v) for v in value])
  if kind is slice: return kind, token((value.start, value.stop, value.step))
  return (kind, value) if _has_hash(kind) else _Object(value)

def _has_hash(kind: type) -> bool:
  """Do objects of this class have a hash of their own, so that equal ones stay equal?"""
  return getattr(kind, "__hash__", None) not in (None, object.__hash__)

def fields_of(value: Any) -> tuple[str, ...] | None:
  """Return the field names of a dataclass instance; None for other values."""
  found = getattr(type(value), "__dataclass_fields__", None)
  return None if found is None else tuple(name for name in found if hasattr(value, name))

def collect(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Arguments:
  """Return the Tensors, Variables and other values in the arguments of a call.

  Raises JitError for arrays of other libraries, and containers without an end.
  """
  if not kwargs:    # fast path for the usual calls
    count = len(args)
    if count == 1 and type(args[0]) is Tensor: return _NAMES[1], [args[0]], {}, ()
    if count <= _MOST_NAMED and len(set(map(id, args))) == count and all([type(a) is Tensor for a in args]):
      return _NAMES[count], list(args), {}, ()
  tensors: dict[int, tuple[str, Tensor]] = {}
  variables: dict[str, int] = {}
  rest: list[Rest] = []
  stack: list[tuple[str, Any]] = [(str(k), a) for k, a in reversed([*enumerate(args), *sorted(kwargs.items())])]
  while stack:
    name, value = stack.pop()
    if isinstance(value, Tensor):
      if id(value) in tensors: rest.append(Rest(name, ("is argument", tensors[id(value)][0]), value))
      else: tensors[id(value)] = name, value
    elif isinstance(value, UOp) and value.op is Ops.BIND:
      variable, bound = value.src[0], int(value.src[1].arg)
      if variables.setdefault(variable.expr, bound) != bound:
        raise JitError(f"argument {name} binds {variable.expr} to {bound}, another one to {variables[variable.expr]}; "
                       f"give one of them another name")
      rest.append(Rest(name, variable, value))
    elif (branches := _branches(value)) is not None:
      rest.append(Rest(name, (type(value), tuple([token(key) for key, _ in branches])), value, True))
      stack.extend((f"{name}.{key}", v) for key, v in reversed(branches))
      if name.count(".") > _DEEPEST:
        raise JitError(f"argument {name.partition('.')[0]} contains itself; pass lists without circles")
    elif is_data(value):
      raise JitError(f"argument {name} is of {type(value)}, and TinyJit cannot tell whether its contents change; pass "
                     f"a Tensor of it")
    else: rest.append(Rest(name, token(value), value))
  return tuple([name for name, _ in tensors.values()]), [t for _, t in tensors.values()], variables, tuple(rest)

def _branches(value: Any) -> list[tuple[Any, Any]] | None:
  """Return the parts of a container by key; None for a leaf."""
  if isinstance(value, (list, tuple)): return list(enumerate(value))
  if isinstance(value, dict): return list(value.items())
  names = fields_of(value) if not isinstance(value, type) else None
  return None if names is None else [(name, getattr(value, name)) for name in names]

def same_rest(a: tuple[Rest, ...], b: tuple[Rest, ...]) -> bool:
  """Are all arguments other than Tensors the same in two calls?"""
  return a is b or len(a) == len(b) and all(x.name == y.name and x.token == y.token for x, y in zip(a, b))

def difference(a: tuple[Rest, ...], b: tuple[Rest, ...]) -> str:
  """Describe the first difference."""
  for x, y in zip(a, b):
    if x.name != y.name or x.token != y.token: return f"{x.name} was {short(x.value)} and is {short(y.value)}"
  return "their number"

def short(value: Any) -> str:
  """Format a value for a message."""
  text = f"a Tensor of shape {value.shape}" if isinstance(value, Tensor) else repr(value)
  return text if len(text) < 100 else f"a {type(value).__name__}"

def leaves_of(tree: Any) -> Iterator[Any]:
  """Yield the leaves of a result, in order. Raises JitError for containers without an end."""
  stack = [(tree, 0)]
  while stack:
    value, depth = stack.pop()
    branches = _branches(value)
    if branches is None: yield value
    elif depth > _DEEPEST:
      raise JitError("the function returns a container that contains itself; return lists without circles")
    else: stack.extend([(v, depth + 1) for _, v in reversed(branches)])

def tensors_in(tree: Any) -> list[Tensor]:
  """Return the Tensors of a result, in order."""
  return [tree] if isinstance(tree, Tensor) else [leaf for leaf in leaves_of(tree) if isinstance(leaf, Tensor)]

def rebuilt(tree: Any, leaf: Callable[[Any], Any]) -> Any:
  """Return new containers of the same structure, around leaf(...) of each leaf."""
  if isinstance(tree, tuple):
    parts = [rebuilt(v, leaf) for v in tree]
    return type(tree)(*parts) if hasattr(tree, "_fields") else type(tree)(parts)
  if isinstance(tree, list):
    items = copy.copy(tree)
    items[:] = [rebuilt(v, leaf) for v in tree]
    return items
  if isinstance(tree, dict):
    table = copy.copy(tree)
    for key, value in tree.items(): table[key] = rebuilt(value, leaf)
    return table
  names = fields_of(tree) if not isinstance(tree, type) else None
  if names is None: return leaf(tree)
  made = copy.copy(tree)
  for name in names: object.__setattr__(made, name, rebuilt(getattr(tree, name), leaf))
  return made
