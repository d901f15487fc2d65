"""`Device[...].renderer`: what programs ask of a device before they choose a path, as a view of its Capabilities.

The names are tinygrad's. Nothing here renders: code is made by codegen and an architecture's backend.
"""
from __future__ import annotations
from typing import TYPE_CHECKING

from tinyhw.dtype import DType, dtypes
from tinyhw.engine.run.compile import capabilities_of
from tinyhw.uop.enums import Ops
if TYPE_CHECKING:
  from tinyhw.device_interface import Compiled
  from tinyhw.machine.ir.target import Capabilities
  from tinyhw.uop.matrix import Matrix

class RendererView:
  """Properties of an opened device's code.

  device: its name. arch: the architecture that it compiles for.
  """
  def __init__(self, device: Compiled) -> None:
    self.device, self.arch = device.name, device.arch

  @property
  def target(self) -> RendererView:
    """The view itself, which has `device` and `arch`."""
    return self

  @property
  def capabilities(self) -> Capabilities:
    """All that codegen uses."""
    return capabilities_of(self.arch, self.device)

  @property
  def has_local(self) -> bool:
    """Do lanes of a workgroup run together? So on GPUs."""
    return self.capabilities.lanes > 0

  @property
  def has_shared(self) -> bool:
    """Does a workgroup have shared memory?"""
    return self.shared_max > 0

  @property
  def shared_max(self) -> int:
    """Bytes of shared memory of a workgroup; 0 on a CPU."""
    return self.capabilities.local_bytes if self.has_local else 0

  @property
  def supports_float4(self) -> bool:
    """Is there a vector of 16 bytes?"""
    return self.capabilities.vector_bytes >= 16

  @property
  def tensor_cores(self) -> list[Matrix]:
    """The shapes of the matrix unit, best first."""
    return list(self.capabilities.matrix)

  def supported_dtypes(self) -> set[DType]:
    """The types that kernels compute with, directly or in wider ones: all but float64 on devices without it."""
    has_double = (Ops.ADD, dtypes.float64) in self.capabilities.operations
    return {dtype for dtype in dtypes.all if has_double or dtype is not dtypes.float64}

  def __repr__(self) -> str: return f"<renderer of {self.device}, {self.arch}>"
