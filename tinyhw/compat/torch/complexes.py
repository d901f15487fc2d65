"""Tensors of complex numbers with PyTorch's methods, and the functions of torch that make and split them."""
from __future__ import annotations
from typing import Any

from tinyhw.compat.torch.dress import dress, plain
from tinyhw.compat.torch.tensors import TorchTensor
from tinyhw.complex import tensor as room
from tinyhw.complex.tensor import Complex
from tinyhw.dtype import dtypes
from tinyhw.errors import DTypeError
from tinyhw.functional.arithmetic import angle as real_angle
from tinyhw.functional.operands import checked
from tinyhw.tensor import Tensor

class TorchComplex(TorchTensor, Complex):
  """A tensor of complex numbers whose methods mean what PyTorch's mean."""
  __slots__ = ()

  nbytes = TorchTensor.nbytes  # type: ignore[assignment]  # PyTorch's meaning

  @property
  def grad(self) -> Any:
    """The gradient of a real loss, dL/da + i dL/db."""
    return dress(self._gradient())

  @grad.setter
  def grad(self, value: Any) -> None: self._set_gradient(plain(value))

def _complex(what: str, x: Any) -> Complex:
  if isinstance(checked(what, x), Complex): return x   # type: ignore[no-any-return]
  raise DTypeError(f"{what} wants a complex tensor, not {x.dtype}; cast it")

def real(input: Tensor) -> Tensor:
  """Return the real parts, a view."""
  return input.real if isinstance(input, Complex) else checked("real", input)

def imag(input: Tensor) -> Tensor:
  """Return the imaginary parts, a view. Raises DTypeError for real numbers."""
  return _complex("imag", input).imag

def conj(input: Tensor) -> Tensor:
  """Return the conjugates; real numbers are their own."""
  return input.conj() if isinstance(input, Complex) else checked("conj", input)

def adjoint(input: Tensor) -> Tensor:
  """Swap the last two axes, and conjugate."""
  return conj(input).transpose(-2, -1)

def angle(input: Tensor) -> Tensor:
  """Return the angle in the complex plane."""
  return input.angle() if isinstance(input, Complex) else real_angle(input)

def sgn(input: Tensor) -> Tensor:
  """Return input / |input|, and 0 for 0."""
  return checked("sgn", input).sign()

def is_complex(input: Tensor) -> bool:
  """Are the elements complex?"""
  return checked("is_complex", input).dtype in dtypes.complexes

def isreal(input: Tensor) -> Tensor:
  """Return True where the imaginary part is 0."""
  x = checked("isreal", input)
  return x.imag.eq(0) if isinstance(x, Complex) else x.const_like(True, dtypes.bool)

def polar(abs: Tensor, angle: Tensor) -> Tensor:
  """Return abs * (cos(angle) + i sin(angle))."""
  return room.polar(checked("polar", abs), checked("polar", angle))

def complex_(real: Tensor, imag: Tensor) -> Tensor:
  """Return real + i imag."""
  return room.joined(checked("complex", real), checked("complex", imag))

def view_as_real(input: Tensor) -> Tensor:
  """Return real and imaginary parts along a new last axis."""
  return room.view_as_real(checked("view_as_real", input))

def view_as_complex(input: Tensor) -> Tensor:
  """Return the pairs along the last axis as complex numbers."""
  return room.view_as_complex(checked("view_as_complex", input))

def _cast(kind: Any) -> Any:
  def cast(input: Tensor, memory_format: Any = None) -> Tensor:
    return checked("a cast", input).cast(kind)
  cast.__doc__ = f"Cast to {kind!r}."
  return cast

cfloat, cdouble = _cast(dtypes.complex64), _cast(dtypes.complex128)

def vdot(input: Tensor, other: Tensor) -> Tensor:
  """Return the product of two vectors, the first one conjugated."""
  for x in (input, other):
    if checked("vdot", x).ndim != 1: raise DTypeError(f"vdot wants vectors, not {x.shape}")
  return conj(input).dot(other)
