"""What PyTorch's tensors say about themselves: device, size, kind of storage, legacy names of types.

Programs ask these to choose a way. Here each tensor is dense, strided and in order, so most answers are constants.
"""
from __future__ import annotations
import math
from typing import Any

from tinyhw.compat.torch.dress import dress, kind_of, plain
from tinyhw.compat.torch.machine import TorchDevice
from tinyhw.dtype import DType, dtypes
from tinyhw.engine.memory.buffers import buffer_of
from tinyhw.errors import ArgumentError, DTypeError, ShapeError
from tinyhw.functional.operands import sizes
from tinyhw.methods.base import Handle
from tinyhw.methods.data.layout import layout
from tinyhw.methods.graph.memory import storage_view
from tinyhw.tensor import Tensor

class TorchSize(tuple[int, ...]):
  """A shape: a tuple whose parts and sums are shapes."""
  __slots__ = ()

  def numel(self) -> int:
    """Return the count of elements."""
    return math.prod(self)

  def __getitem__(self, index: Any) -> Any:
    found = super().__getitem__(index)
    return TorchSize(found) if isinstance(index, slice) else found

  def __add__(self, other: Any) -> TorchSize: return TorchSize(super().__add__(tuple(other)))
  def __radd__(self, other: Any) -> TorchSize: return TorchSize(tuple(other) + tuple(self))
  def __mul__(self, other: Any) -> TorchSize: return TorchSize(super().__mul__(other))
  __rmul__ = __mul__
  def __repr__(self) -> str: return f"torch.Size({list(self)})"
  __str__ = __repr__

class TensorDevice(TorchDevice):
  """The device of a tensor. It is tinyhw's name of the device, and reads as PyTorch's."""
  __slots__ = ()
  def __new__(cls, name: Any = "cpu", index: int | None = None) -> TensorDevice: return str.__new__(cls, name)
  def __str__(self) -> str: return self.lower()
  def __format__(self, spec: str) -> str: return format(self.lower(), spec)

class GradientNode:
  """How a tensor was made, for those who ask: `name()` says by which operation."""
  def __init__(self, operation: str) -> None: self.operation = operation
  def name(self) -> str:
    """Return the operation's name."""
    return f"{self.operation.title().replace('_', '')}Backward0"

  def __repr__(self) -> str: return f"<{self.name()}>"

class Attributes:
  """Attributes of tensors that are no functions of torch."""
  __slots__ = ()
  layout, name, output_nr = "strided", None, 0
  is_sparse = is_sparse_csr = is_quantized = is_mkldnn = is_nested = is_meta = is_mps = is_xpu = is_xla = False
  is_vulkan = is_ipu = is_maia = is_mtia = False

  @property
  def shape(self) -> Any:
    """The sizes of the axes."""
    return TorchSize(super().shape)  # type: ignore[misc]  # that of Tensor

  @property
  def device(self) -> Any:
    """The device, which has a type and an index; a tuple of names on several devices."""
    found = super().device  # type: ignore[misc]  # that of Tensor
    return TensorDevice(found) if isinstance(found, str) else found

  @property
  def is_cpu(self) -> bool:
    """Is it on the device of the processor?"""
    return bool(self.device == "cpu")

  def get_device(self) -> int:
    """Return the number of the GPU, or -1 on the CPU."""
    return -1 if self.is_cpu else self.device.index or 0

  @property
  def grad_fn(self) -> GradientNode | None:
    """How the tensor was made, if it has a gradient and was made from others; else None."""
    x: Any = self
    if x._requires_grad or not x.requires_grad: return None
    return GradientNode((x._planes[0] if x.holds_complex else x).uop.op.name)

  def type(self, dtype: Any = None, non_blocking: bool = False) -> Any:
    """Return the legacy name of the type, or (dtype: a type, its name or its class) the tensor cast to it."""
    x: Any = self
    if dtype is None: return f"torch.{_LEGACY_OF[x.dtype]}"
    if isinstance(dtype, str): return x.to(_legacy(dtype).kind)
    return x.to(dtype.kind if isinstance(dtype, LegacyType) else kind_of(dtype))

  def is_signed(self) -> bool:
    """May elements be negative?"""
    kind = self.dtype  # type: ignore[attr-defined]  # of Tensor
    return kind is not dtypes.bool and not dtypes.is_unsigned(kind)

  def is_same_size(self, other: Any) -> bool:
    """Have both the same shape?"""
    return bool(self.shape == other.shape)

  def is_conj(self) -> bool:
    """Return False: conjugates are computed."""
    return False

  is_neg = is_inference = is_pinned = is_conj

  def storage_offset(self) -> int:
    """Return 0: strides and offsets that programs see are those of a tensor in order."""
    return 0

  def data_ptr(self) -> int:
    """Return a number that two tensors share where both begin at the same place in memory. It is no address."""
    x: Any = self
    memory = storage_view(x.realize().uop)
    found = None if memory is None else layout(memory)
    if found is None: return id(x._buffer())
    return id(buffer_of(found[0])) + int(found[1].offset * x.dtype.itemsize)

  def to_dense(self, dtype: Any = None) -> Any:
    """Return the tensor, which is dense."""
    return self

  def new(self, *args: Any) -> Any:
    """Return a tensor of this type: of sizes, without values; or of data."""
    return _made(self.dtype, args)  # type: ignore[attr-defined]  # of Tensor

  def set_(self, source: Any) -> Any:
    """Stand for the memory of another tensor of the same type."""
    x: Any = self
    if not isinstance(source, Handle) or source.dtype is not x.dtype:
      raise ArgumentError(f"set_ wants a tensor of {x.dtype}, not {source!r:.80}")
    x.hold(plain(source).realize().uop)
    return self

  def fill_diagonal_(self, fill_value: float, wrap: bool = False) -> Any:
    """Write a number on the main diagonal. wrap: it begins again below a tall matrix, after a row without it."""
    x: Any = self
    shape = tuple(sizes(x))
    if len(shape) < 2 or len(shape) > 2 and len(set(shape)) > 1:
      raise ShapeError(f"fill_diagonal_ wants a matrix, or axes of one size, not {shape}")
    step = sum(math.prod(shape[k + 1:]) for k in range(len(shape)))
    most = math.prod(shape) if wrap or len(shape) > 2 else shape[1] * shape[1]
    places = Tensor.arange(math.prod(shape), device=super().device)  # type: ignore[misc]  # as in `device`
    on = places.mod(step).eq(0).bitwise_and(places.lt(most)).reshape(shape)
    return x._put(dress(on.where(plain(x).const_like(fill_value), plain(x))))

  def apply_(self, callable: Any) -> Any:
    """Write a function of Python of each element."""
    x: Any = self
    return x._put(_of_numbers([callable(v) for v in x.reshape(-1).tolist()], x))

  def map_(self, tensor: Any, callable: Any) -> Any:
    """Write a function of Python of each element and of another tensor's."""
    x: Any = self
    other = plain(tensor).expand(sizes(x)).reshape(-1).tolist()
    return x._put(_of_numbers([callable(a, b) for a, b in zip(x.reshape(-1).tolist(), other)], x))

  def __index__(self) -> int:
    kind = self.dtype  # type: ignore[attr-defined]  # of Tensor
    if not (dtypes.is_int(kind) or kind is dtypes.bool) or self.shape.numel() != 1:
      raise DTypeError(f"only a tensor of one whole number is an index, not {kind} of shape {tuple(self.shape)}")
    return int(self.item())  # type: ignore[attr-defined]  # of Tensor

def _of_numbers(values: list[Any], like: Any) -> Any:
  return dress(Tensor(values, dtype=like.dtype, device=plain(like).device).reshape(sizes(like)))

# ***** legacy names of types *****

class LegacyType(type):
  """The classes torch.FloatTensor, torch.LongTensor ...: they make tensors, and know those of their type."""
  kind: DType

  def __instancecheck__(cls, x: Any) -> bool: return isinstance(x, Handle) and x.dtype is cls.kind
  def __call__(cls, *args: Any, **options: Any) -> Any: return _made(cls.kind, args)

def _made(kind: DType, args: tuple[Any, ...]) -> Any:
  if len(args) == 1 and isinstance(args[0], Handle): return dress(plain(args[0]).cast(kind).clone())
  if len(args) == 1 and not isinstance(args[0], (int, TorchSize)): return dress(Tensor(args[0], dtype=kind))
  shape = args[0] if len(args) == 1 and isinstance(args[0], TorchSize) else args
  return dress(Tensor.empty(*shape, dtype=kind)) if shape else dress(Tensor.empty(0, dtype=kind))

_NAMES = {"FloatTensor": dtypes.float32, "DoubleTensor": dtypes.float64, "HalfTensor": dtypes.float16,
          "BFloat16Tensor": dtypes.bfloat16, "ByteTensor": dtypes.uint8, "CharTensor": dtypes.int8,
          "ShortTensor": dtypes.int16, "IntTensor": dtypes.int32, "LongTensor": dtypes.int64,
          "BoolTensor": dtypes.bool, "ComplexFloatTensor": dtypes.complex64, "ComplexDoubleTensor": dtypes.complex128}
LEGACY = {name: LegacyType(name, (), {"kind": kind, "__doc__": f"Makes tensors of {kind}."})
          for name, kind in _NAMES.items()}
_LEGACY_OF = {kind: name for name, kind in _NAMES.items()}

def _legacy(name: str) -> Any:
  found = LEGACY.get(name.removeprefix("torch."))
  if found is None: raise ArgumentError(f"a type is torch.FloatTensor and the like, not {name!r}")
  return found
