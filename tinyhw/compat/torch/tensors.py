"""`TorchTensor`: tinyhw's Tensor with PyTorch's methods. `torch.Tensor` is this class.

Methods are the functions of `torch` with the tensor as the first argument, from the table. A name that ends with an
underscore writes the result into the tensor. Operators, reading and gradients are Tensor's.
"""
from __future__ import annotations
from collections.abc import Callable
from typing import Any

from tinyhw.compat.torch import table
from tinyhw.compat.torch.attributes import Attributes, TorchSize
from tinyhw.compat.torch.differentiation import gradients, hooks
from tinyhw.compat.torch.dress import Dressed, dress, plain
from tinyhw.dtype import DTypeLike, dtypes
from tinyhw.engine.memory.writes import fresh_tag, memory_of, unique
from tinyhw.errors import ArgumentError, DTypeError, UnknownValueError
from tinyhw.functional.known import want_indices
from tinyhw.functional.operands import is_scalar, number_type, rank
from tinyhw.helpers import argfix
from tinyhw.tensor import Tensor
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp

class TorchTensor(Attributes, Tensor):
  """A Tensor whose methods mean what PyTorch's mean."""
  __slots__ = ()

  def __init__(self, *args: Any, **options: Any):
    """A tensor of sizes, without values, or of data. Data without a type of its own are floats."""
    if args and not options and (all(type(d) is int for d in args) or isinstance(args[0], TorchSize)):
      super().__init__(Tensor.empty(*argfix(*args)))
    elif len(args) == 1 and not options and isinstance(args[0], (list, tuple)):
      super().__init__(plain(args[0]), dtype=dtypes.default_float)
    else: super().__init__(*args, **options)

  def __getattr__(self, name: str) -> Any:
    """A method that writes in place: x.add_(y) is x.assign(x.add(y))."""
    if name.endswith("_") and not name.startswith("_"):
      function = getattr(type(self), name[:-1], None)
      if callable(function): return lambda *args, **keywords: self._put(function(self, *args, **keywords))
    raise AttributeError(f"Tensor has no attribute {name!r}")

  def _put(self, value: Any) -> Any:
    """Write a value in place."""
    if not isinstance(value, Tensor): raise ArgumentError(f"only a tensor can be written in place, not {value!r}")
    if value.shape != self.shape:
      raise ArgumentError(f"a result of shape {value.shape} cannot be written into a tensor of shape {self.shape}")
    if rank(value.dtype) > rank(self.dtype):
      raise DTypeError(f"a result of {value.dtype} cannot be written into a tensor of {self.dtype}; cast one of them")
    new = plain(value.cast(self.dtype))
    if self.holds_complex: plain(self).assign(new)
    else: self.assign(new)      # a write through another handle would be done at once
    return self

  def __deepcopy__(self, memo: dict[int, Any]) -> Any:
    found = memo[id(self)] = dress(super().__deepcopy__(memo))
    if found.grad is not None: dress(found.grad)
    return found

  @property
  def requires_grad(self) -> bool | None:
    """Was it marked, or does its gradient flow to a tensor that was? The answer for a result walks its graph."""
    own = super().requires_grad
    return hooks.is_differentiable(self) if own is None else own

  @requires_grad.setter
  def requires_grad(self, value: bool | None) -> None:
    if value and not self.requires_grad: self._alone()
    super(TorchTensor, type(self)).requires_grad.fset(self, value)  # type: ignore[attr-defined]  # a property

  def _alone(self) -> None:
    """Let a constant, or memory that was detached, have a node and a gradient of its own: it equals others."""
    for x in self._planes if self.holds_complex else (self,):
      u = x.uop
      if u.op is Ops.DETACH: x.uop = UOp(u.op, u.dtype, u.src, u.arg, fresh_tag())
      elif x._alias is None and memory_of(u)[0] is None: x.uop = unique(u)

  @property
  def is_leaf(self) -> bool:
    """Is it no result of a computation that has gradients?"""
    return self._requires_grad is not None or not self.requires_grad

  def register_hook(self, hook: Callable[[Any], Any]) -> hooks.RemovableHandle:
    """Call hook with this tensor's gradient when one is expressed. A tensor that it returns replaces the gradient."""
    return hooks.register_hook(self, hook)

  def register_post_accumulate_grad_hook(self, hook: Callable[[Any], Any]) -> hooks.RemovableHandle:
    """Call hook(tensor) after a backward pass has added to this leaf's `grad`."""
    return hooks.register_post_accumulate(self, hook)

  @property
  def is_cuda(self) -> bool:
    """Is it on a CUDA device?"""
    return str(self.device).partition(":")[0] in ("NV", "CUDA")

  @property
  def itemsize(self) -> int:
    """The bytes of an element."""
    return int(self.dtype.itemsize)

  def ndimension(self) -> int:
    """Return the number of axes."""
    return self.ndim

  def stride(self, dim: int | None = None) -> Any:
    """Return the strides of a tensor in order, which are those that programs see."""
    found, step = [], 1
    for d in reversed(self.shape):
      found.append(step)
      step *= max(int(d), 1)
    found.reverse()
    return tuple(found) if dim is None else found[dim]

  def is_contiguous(self, memory_format: Any = None) -> bool:
    """Return True: the order in memory is the engine's."""
    return True

  def pin_memory(self, device: Any = None) -> Any:
    """Return the tensor: memory of the host needs no pinning here."""
    return self

  def random_(self, from_: int = 0, to: int | None = None, *, generator: Any = None, **named: Any) -> Any:
    """Write whole numbers from `from` to `to`, without it."""
    low, high = (named.get("from", from_), to) if to is not None else (0, from_ or 1 << 24)
    return self._put(table.find("", "randint")(low, high, tuple(self.shape), generator=generator).to(self.dtype))

  def __reduce_ex__(self, protocol: Any) -> Any:
    made, args, *_ = super().__reduce_ex__(protocol)
    return _dressed_again, (made, args)

  def resize_(self, *sizes: Any, memory_format: Any = None) -> Any:
    """Take another shape: the first elements stay, in order, and new ones are not set. Views do not follow."""
    wanted = tuple(sizes[0]) if len(sizes) == 1 and isinstance(sizes[0], (tuple, list)) else sizes
    if wanted == tuple(self.shape): return self
    self.hold(plain(table.find("", "Tensor").resize(self, *wanted)).contiguous().realize().uop)
    return self

  def resize_as_(self, the_template: Any, *, memory_format: Any = None) -> Any:
    """Take the shape of another tensor."""
    return self.resize_(tuple(the_template.shape))

  def copy_(self, src: Any, non_blocking: bool = False) -> Any:
    """Write the elements of another tensor, cast and broadcast, into this one."""
    if not isinstance(src, Tensor): raise ArgumentError(f"copy_ copies a tensor, not {src!r}")
    return self._put(dress(plain(src).cast(self.dtype).expand(self.shape)))

  @property
  def data(self) -> Any:
    """The same memory without a gradient. To set it writes another tensor's elements."""
    return dress(plain(self).detach())

  @data.setter
  def data(self, value: Any) -> None:
    if value.shape == self.shape and value.dtype is self.dtype: self.copy_(value.detach())
    else: Tensor.replace(self, plain(value).detach())

  def __repr__(self) -> str: return table.text_of(self)

  def __bool__(self) -> bool:
    if self.numel() != 1:
      raise UnknownValueError(f"the truth of a tensor of {self.numel()} elements is ambiguous; use .any() or .all()")
    return bool(self.item())

  def __contains__(self, x: Any) -> bool: return bool(plain(self).eq(plain(x)).any().item())

  @property
  def nbytes(self) -> int:  # type: ignore[override]  # PyTorch's meaning
    """The bytes of the elements."""
    return plain(self).nbytes()  # type: ignore[no-any-return]

  def __getitem__(self, indices: Any) -> Any:
    chosen = plain(indices)
    if isinstance(chosen, (Tensor, tuple)): want_indices(self, chosen)
    return dress(plain(self)[chosen])

  def __setitem__(self, indices: Any, v: Any) -> None:
    chosen = plain(indices)
    if isinstance(chosen, (Tensor, tuple)): want_indices(self, chosen)
    plain(self)[chosen] = plain(v)

  def backward(self, gradient: Any = None, retain_graph: Any = None, create_graph: bool = False,
               inputs: Any = None) -> Any:
    """Add to `grad` of the tensors from which this one was computed, as Tensor.backward does. inputs: of these alone.

    retain_graph and create_graph change nothing: graphs are kept while something needs them.
    """
    if inputs is None: hooks.adding(lambda: Tensor.backward(self, gradient))
    else: hooks.adding(lambda: gradients.add(self, gradient, inputs))
    return self

  def cast(self, dtype: DTypeLike) -> Any: return dress(plain(self).cast(dtype))

Dressed.kind = TorchTensor

def _dressed_again(made: Callable[..., Any], args: Any) -> Any: return dress(made(*args))

def _where(self: Any, condition: Any, other: Any) -> Any:
  """Return this tensor where a condition is true, else another."""
  return table.find("", "where")(condition, self, other)

def _fill_class() -> None:
  """Give the class the methods of the table, and operators that promote as PyTorch's do."""
  methods = table.methods()
  for name, method in methods.items():
    if not isinstance(getattr(Tensor, name, None), property): setattr(TorchTensor, name, method)
  operators = {"add": "add", "sub": "sub", "mul": "mul", "truediv": "div", "floordiv": "floor_divide",
               "mod": "remainder", "pow": "pow", "matmul": "matmul", "and": "bitwise_and", "or": "bitwise_or",
               "xor": "bitwise_xor", "lshift": "bitwise_left_shift", "rshift": "bitwise_right_shift"}
  for sign, name in operators.items():
    setattr(TorchTensor, f"__{sign}__", methods[name])
    setattr(TorchTensor, f"__r{sign}__", _reflected(methods[name]))
  for name in ("lt", "le", "gt", "ge"): setattr(TorchTensor, f"__{name}__", methods[name])
  for name in ("eq", "ne"): setattr(TorchTensor, f"__{name}__", _among_numbers(methods[name]))
  for name, made in (("T", "t"), ("mH", "adjoint")): setattr(TorchTensor, name, property(methods[made]))
  for name in ("real", "imag"): setattr(TorchTensor, name, property(_function_of(name)))
  setattr(TorchTensor, "mT", property(lambda self: methods["transpose"](self, -2, -1)))
  setattr(TorchTensor, "H", property(lambda self: methods["t"](methods["conj"](self))))
  setattr(TorchTensor, "__rdiv__", _reflected(methods["div"]))
  setattr(TorchTensor, "where", _where)

def _function_of(name: str) -> Callable[..., Any]:
  return lambda self: table.find("", name)(self)

def _among_numbers(method: Callable[..., Any]) -> Callable[..., Any]:
  """Let == and != leave what is neither tensor nor number to Python: x == None is False."""
  def compared(self: Any, other: Any) -> Any:
    return method(self, other) if isinstance(other, Tensor) or is_scalar(other) else NotImplemented
  return compared

def _reflected(method: Callable[..., Any]) -> Callable[..., Any]:
  def reflected(self: Any, other: Any) -> Any:
    if not isinstance(self, Tensor): raise ArgumentError(f"an operator wants a tensor, not {self!r}")
    if not isinstance(other, Tensor): other = _like(other, self)
    return method(other, self)
  return reflected

def _like(x: Any, other: Any) -> Any:
  """Return a number as a tensor without axes, which is as weak as the number."""
  return dress(Tensor(x, dtype=number_type(x)))

_fill_class()
