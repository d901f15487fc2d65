"""Operators: functions by domain and version. The signature of a function has the form of its node.

The positional parameters of a function are the node's inputs, its keyword parameters the node's attributes. The
annotation has the kind of the argument:

- Tensor: an input as a Tensor, or an attribute that is a tensor.
- Ints, Int, Floats, Float, Scalar: Python numbers, from an input whose values have to be known to build the graph
  (shapes, axes, ...).
- TextTensor: an input that is text.
- Value: an unchanged input: a Tensor, a Known, TextTensor, a list (a sequence) or a dict (a map). As an attribute: a
  tensor of numbers or text.
- int, float, str, Ints, Floats, Strings, Type: attributes.
- Body: an attribute that is a graph, as a function of its inputs.
- Outputs: not an attribute, but the number of results that the node names.
- Memo: not an attribute, but a dict that the node keeps, for tables that are made of its attributes alone.

With `| None` a parameter may be missing. Nodes are checked against this before anything runs.
"""
from __future__ import annotations
from collections.abc import Callable, Sequence
import inspect
from typing import Any, TypeVar

from tinyhw.device import DeviceLike
from tinyhw.dtype import DType, dtypes
from tinyhw.engine.memory.buffers import buffer_of
from tinyhw.errors import ArgumentError
from tinyhw.helpers import fully_flatten, prod
from tinyhw.methods.base import stored
from tinyhw.methods.data.hostdata import HostData, pack
from tinyhw.named_tuple import NamedTuple
from tinyhw.nn.onnx.texts import TextTensor
from tinyhw.tensor import Tensor
from tinyhw.uop.enums import Ops
from tinyhw.uop.evaluate.evaluate import evaluate

F = TypeVar("F", bound=Callable[..., Any])

# Values that depend only on shapes and constants are computed by the interpreter, not by kernels, up to this many
# elements.
MOST_KNOWN = 256

class Known:
  """A small tensor whose elements Python knows: a constant, or a value computed from shapes."""
  __slots__ = ("values", "shape", "dtype", "device", "_tensor")

  def __init__(self, values: Sequence[Any], shape: tuple[int, ...], dtype: DType, device: DeviceLike | None = None,
               tensor: Tensor | None = None):
    self.values, self.shape, self.dtype, self.device, self._tensor = tuple(values), shape, dtype, device, tensor

  @property
  def tensor(self) -> Tensor:
    if self._tensor is None:
      if len(set(map(repr, self.values))) == 1:
        # a constant costs no memory
        self._tensor = Tensor.full(self.shape, self.values[0], dtype=self.dtype, device=self.device)
      else: self._tensor = Tensor(stored(HostData(pack(self.values, self.dtype), self.shape, self.dtype), self.device))
    return self._tensor

  @property
  def key(self) -> tuple[Any, ...]: return self.dtype, self.shape, bytes(pack(self.values, self.dtype))

Value = Any   # a Tensor, a Known, a TextTensor, a list of these (a sequence), a dict (a map), or None
Ints = list[int]
Floats = list[float]
Strings = list[str]
Int = int
Float = float
Scalar = Any
Outputs = int
Type = dict[str, Any]
Memo = dict[Any, Any]
Body = Callable[..., list[Any]]

def as_tensor(value: Value) -> Tensor:
  """Return a value as a Tensor. Raises ArgumentError for a sequence."""
  if isinstance(value, Tensor): return value
  if isinstance(value, Known): return value.tensor
  raise ArgumentError(f"a tensor is wanted, and {_kind(value)} was given")

def _kind(value: Value) -> str:
  kinds = ((TextTensor, "text"), (dict, "a map"), ((Tensor, Known), "a tensor of numbers"))
  return next((name for kind, name in kinds if isinstance(value, kind)), "a sequence or nothing")

def as_texts(value: Value) -> TextTensor:
  if isinstance(value, TextTensor): return value
  raise ArgumentError(f"text is wanted, and {_kind(value)} was given")

def as_numbers(value: Value) -> list[Any]:
  """Return the elements of a value in row-major order. They are computed now if they are not known."""
  if isinstance(value, Known): return list(value.values)
  if not isinstance(value, Tensor): raise ArgumentError(f"numbers are wanted, and {_kind(value)} was given")
  found = value.tolist()
  return list(fully_flatten(found)) if isinstance(found, list) else [found]

def known(tensor: Tensor) -> Known | None:
  """Evaluate a tensor that depends only on known values, by the interpreter. Return None if it is too large."""
  shape = tensor.shape
  if not all(isinstance(d, int) for d in shape) or prod(shape) > MOST_KNOWN: return None
  nodes = tensor.uop.toposort()
  if any(u.size > 4 * MOST_KNOWN for u in nodes if isinstance(u.size, int) and u.op is not Ops.DEVICE): return None
  memory = {u: buffer_of(u).as_memoryview() if u.arg[2] else memoryview(b"") for u in nodes if u.op is Ops.BUFFER}
  values = evaluate(tensor.uop, memory).values
  return Known(values, tuple(int(d) for d in shape), tensor.dtype, tensor.device)

def of_numbers(values: Sequence[Any], dtype: DType = dtypes.int64, shape: tuple[int, ...] | None = None) -> Known:
  """Return numbers as a value: a vector unless a shape is given."""
  return Known(values, (len(values),) if shape is None else shape, dtype)

# ***** signatures *****

def _integers(values: list[Any]) -> list[int]:
  if not all(type(x) is int for x in values): raise ArgumentError(f"whole numbers are wanted, not {values[:4]}")
  return values

def _only(values: list[Any]) -> Any:
  if len(values) != 1: raise ArgumentError(f"one number is wanted, not {len(values)}")
  return values[0]

_INPUTS: dict[str, Callable[[Value], Any]] = {
  "Tensor": as_tensor, "TextTensor": as_texts, "Value": lambda x: x, "Ints": lambda x: _integers(as_numbers(x)),
  "Int": lambda x: _only(_integers(as_numbers(x))),
  "Floats": lambda x: [float(v) for v in as_numbers(x)], "Float": lambda x: float(_only(as_numbers(x))),
  "Scalar": lambda x: _only(as_numbers(x)),
}
_ATTRIBUTES: dict[str, Callable[[Any], bool]] = {
  "int": lambda x: type(x) is int, "float": lambda x: type(x) is float, "str": lambda x: isinstance(x, str),
  "Tensor": lambda x: isinstance(x, Tensor), "Value": lambda x: isinstance(x, (Tensor, TextTensor)), "Body": callable,
  "Type": lambda x: isinstance(x, dict), "Memo": lambda x: False,
  "Ints": lambda x: isinstance(x, list) and all(type(v) is int for v in x),
  "Floats": lambda x: isinstance(x, list) and all(type(v) is float for v in x),
  "Strings": lambda x: isinstance(x, list) and all(isinstance(v, str) for v in x),
}

def remembered(memo: Memo | None, key: Any, make: Callable[[], Any]) -> Any:
  """Return what make() returned for this key before, if there is a memo."""
  if memo is None: return make()
  if key not in memo: memo[key] = make()
  return memo[key]

class Parameter(NamedTuple):
  """An input or attribute: its kind, and whether it may be missing."""
  name: str
  kind: str
  optional: bool

class Implementation:
  """One version of an operator. folds: it may be computed at once where all of its inputs are known. This is false for
  random numbers."""
  def __init__(self, function: Callable[..., Any], folds: bool):
    self.function, self.folds = function, folds
    self.inputs: list[Parameter] = []
    self.variadic: str | None = None
    self.attributes: dict[str, Parameter] = {}
    self.wants_outputs = False
    for name, p in inspect.signature(function).parameters.items():
      kind = str(p.annotation)
      row = Parameter(name, kind.removesuffix(" | None"), kind.endswith("| None") or p.default is not p.empty)
      if p.kind is p.VAR_POSITIONAL: self.variadic = row.kind
      elif p.kind is not p.KEYWORD_ONLY: self.inputs.append(row)
      elif row.kind == "Outputs": self.wants_outputs = True
      else: self.attributes[name.rstrip("_")] = row

  def check(self, count: int, attributes: dict[str, Any]) -> str | None:
    """Return why a node with this number of inputs and these attributes does not fit the operator. None if it fits."""
    least = sum(not p.optional for p in self.inputs)
    if count < least or (count > len(self.inputs) and self.variadic is None):
      return f"it has {count} inputs, and {least} to {len(self.inputs)} are wanted"
    for name, value in attributes.items():
      row = self.attributes.get(name)
      if row is None: return f"its attribute {name!r} is not supported"
      if row.kind == "float" and type(value) is int: continue
      if not _ATTRIBUTES[row.kind](value): return f"its attribute {name!r} is {value!r:.60}, and {row.kind} is wanted"
    missing = [name for name, row in self.attributes.items() if not row.optional and name not in attributes]
    return f"it lacks the attribute {missing[0]!r}" if missing else None

  def takes_text(self, inputs: Sequence[Value]) -> bool:
    """Are all inputs that are text declared as such?"""
    return all(not isinstance(x, TextTensor) or (self.inputs[i].kind if i < len(self.inputs) else self.variadic)
               in ("TextTensor", "Value") for i, x in enumerate(inputs))

  def __call__(self, inputs: Sequence[Value], attributes: dict[str, Any], outputs: int) -> list[Value]:
    """Return the results of the node."""
    found: list[Any] = []
    for i, value in enumerate(inputs):
      row = self.inputs[i] if i < len(self.inputs) else Parameter("", self.variadic or "Tensor", False)
      if value is None and not row.optional: raise ArgumentError(f"input {i} is missing")
      found.append(None if value is None else _INPUTS[row.kind](value))
    named = {self.attributes[name].name: value for name, value in attributes.items()}
    if self.wants_outputs: named["outputs"] = outputs
    result = self.function(*found, **named)
    return list(result) if isinstance(result, tuple) else [result]

class Operator:
  """An operator by its name. `versions`: its implementations by (domain, first version).

  A call uses the newest version, on Tensors.
  """
  def __init__(self, name: str):
    self.name = name
    self.versions: dict[tuple[str, int], Implementation] = {}

  def select(self, domain: str, version: int) -> Implementation | None:
    """Return the implementation for a version of a domain's operators."""
    since = max((v for d, v in self.versions if d == domain and v <= version), default=None)
    return None if since is None else self.versions[domain, since]

  def __call__(self, *inputs: Any, outputs: int = 1, **attributes: Any) -> Any:
    found = self.versions[max(self.versions, key=lambda key: (key[0] == "", key[1]))]
    why = found.check(len(inputs), attributes)
    if why is not None: raise ArgumentError(f"{self.name}: {why}")
    results = found([_as_value(x) for x in inputs], attributes, outputs)
    plain = [x.tensor if isinstance(x, Known) else x for x in results]
    return plain[0] if len(plain) == 1 else tuple(plain)

def _as_value(x: Any) -> Value: return x if x is None or isinstance(x, (Tensor, Known, TextTensor)) else Tensor(x)

onnx_ops: dict[str, Operator] = {}

def define(name: str, function: Callable[..., Any], since: int = 1, domain: str = "", folds: bool = True) -> None:
  """Register a function as an operator from a version on."""
  onnx_ops.setdefault(name, Operator(name)).versions[domain, since] = Implementation(function, folds)

def operator(name: str, since: int = 1, domain: str = "", folds: bool = True) -> Callable[[F], F]:
  """Return `define` as a decorator."""
  def decorate(function: F) -> F:
    define(name, function, since, domain, folds)
    return function
  return decorate
