"""`torch.cuda` of a machine without such devices: programs take "cpu", which is tinyhw's default device."""
from __future__ import annotations
from collections.abc import Callable
from typing import Any

from tinyhw.errors import DeviceError

def is_available() -> bool:
  """Return False: programs take "cpu"."""
  return False

def is_initialized() -> bool:
  """Return False."""
  return False

def device_count() -> int:
  """Return 0."""
  return 0

def current_device(device: Any = None) -> int:
  """Refuse: there is none. Raises DeviceError."""
  raise DeviceError('there is no device of this kind by PyTorch\'s names; use torch.device("cpu"), the default one')

get_device_name = get_device_capability = get_device_properties = mem_get_info = current_device

def memory_allocated(device: Any = None) -> int:
  """Return 0."""
  return 0

def is_bf16_supported(including_emulation: bool = True) -> bool:
  """Return False."""
  return False

def _nothing(name: str) -> Callable[..., None]:
  def call(*args: Any, **keywords: Any) -> None:
    """Do nothing: there is no device."""
  call.__name__ = name
  return call

(manual_seed, manual_seed_all, empty_cache, synchronize, reset_peak_memory_stats, reset_max_memory_allocated,
 set_device, init, ipc_collect) = (
  _nothing(name) for name in ("manual_seed", "manual_seed_all", "empty_cache", "synchronize",
                              "reset_peak_memory_stats", "reset_max_memory_allocated", "set_device", "init",
                              "ipc_collect"))
