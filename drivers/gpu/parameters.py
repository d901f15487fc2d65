"""The parameters of a kernel, and the check of the arguments that launches pass for them.

For drivers whose library takes arguments by calls: they find a mistake before the first call. Drivers that write
arguments into memory find it there (launch.py).
"""
from __future__ import annotations
from collections.abc import Sequence
from typing import Any, TypeVar

from tinyhw.device import Compiled, Kept, Launch
from tinyhw.errors import DeviceError
from tinyhw.machine.ir.code import Code

LOW, HIGH = -1 << 63, (1 << 63) - 1    # of variables

class KernelParameters:
  """The parameters of a kernel on a device: its buffers, then its variables. memory: the class of the device's memory.
  most_groups: the largest grid. groups: the vendor's word for workgroups."""
  def __init__(self, device: Compiled, code: Code, memory: type, most_groups: int, groups: str = "workgroups"):
    self.device, self.name, self.memory, self.most_groups, self.groups = device, code.name, memory, most_groups, groups
    self.count, self.buffers = len(code.arguments), code.arguments.count("buffer")
    self.variables = self.count - self.buffers

  def check(self, launch: Launch) -> None:
    """Raise DeviceError, which tells the mistake in a launch."""
    if len(launch.buffers) != self.buffers or len(launch.variables) != self.variables:
      raise DeviceError(f"kernel {self.name} takes {self.buffers} buffers and {self.variables} variables, not "
                        f"{len(launch.buffers)} and {len(launch.variables)}")
    for position, value in enumerate((*launch.buffers, *launch.variables)): self.check_argument(position, value)
    self.check_grid(launch.grid)

  def check_argument(self, position: int, value: Any) -> None:
    """Raise DeviceError for an argument that is neither memory of the device nor a 64-bit integer."""
    if position < self.buffers:
      if not isinstance(value, self.memory) or getattr(value, "device", None) is not self.device:
        raise DeviceError(f"kernel {self.name}, buffer {position}: {value!r} is not allocated memory of "
                          f"{self.device.name}")
    elif not isinstance(value, int) or not LOW <= value <= HIGH:
      raise DeviceError(f"kernel {self.name}, variable {position - self.buffers}: {value!r} is no 64-bit integer")

  def check_patch(self, position: int, value: Any) -> None:
    """Raise DeviceError if a recorded launch has no such argument, or for a value that it cannot have."""
    if not 0 <= position < self.count:
      raise DeviceError(f"kernel {self.name} has {self.count} arguments; there is no number {position} to patch")
    self.check_argument(position, value)

  def check_grid(self, grid: object) -> None:
    """Raise DeviceError for a grid that is no integer, or out of range."""
    if not isinstance(grid, int) or not 0 <= grid <= self.most_groups:
      raise DeviceError(f"kernel {self.name}: a grid of {grid!r} {self.groups}; it is an integer from 0 to "
                        f"{self.most_groups}")

P = TypeVar("P")

def program_of(launch: Launch, kind: type[P], device: Compiled) -> P:
  """Return the program of a launch on a device. Raises DeviceError if it is of another kind, or of another device."""
  program: Any = launch.program
  if not isinstance(program, kind):
    raise DeviceError(f"cannot launch {program!r}; pass what load() of this device returned")
  if getattr(program, "device", None) is not device:
    raise DeviceError(f"{program!r} is of another device than {device.name}; load the code here")
  return program

def checked(launches: Sequence[Launch], kind: type[Any], device: Compiled) -> Sequence[Launch]:
  """Return launches that are right for a device, whose programs are of this kind and have `parameters`. Raises
  DeviceError."""
  for launch in launches: program_of(launch, kind, device).parameters.check(launch)
  return launches

class CheckedRecording(Kept):
  """Launches that are encoded again at each replay: the library takes arguments over when it encodes, so a patch waits
  for none. kind: of their programs, which have `parameters`."""
  kind: type[Any]

  def __init__(self, device: Compiled, launches: Sequence[Launch]):
    super().__init__(device, checked(launches, self.kind, device))

  def patch(self, launch: int, position: int, value: Any) -> None:
    """Replace an argument. Raises DeviceError if there is none, or for a value that it cannot have."""
    self.launches[launch].program.parameters.check_patch(position, value)
    super().patch(launch, position, value)

  def patch_grid(self, launch: int, grid: int) -> None:
    """Replace the number of workgroups of a launch."""
    self.launches[launch].program.parameters.check_grid(grid)
    super().patch_grid(launch, grid)
