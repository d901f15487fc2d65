"""compat/torch/no_gpu.py: what programs ask torch.cuda."""
from __future__ import annotations

import pytest

import tinyhw.compat.torch as torch
from tinyhw.errors import DeviceError

def test_there_is_none() -> None:
  assert not torch.cuda.is_available() and torch.cuda.device_count() == 0
  torch.cuda.manual_seed_all(3)
  torch.cuda.synchronize()
  assert torch.cuda.memory_allocated() == torch.cuda.max_memory_reserved() == 0 and not torch.cuda.is_bf16_supported()
  with pytest.raises(DeviceError, match="no device of this kind"): torch.cuda.current_device()

def test_questions() -> None:
  assert not torch.cuda.is_initialized()
  torch.cuda.reset_max_memory_allocated()
  with pytest.raises(DeviceError, match="there is no device"): torch.cuda.get_device_name(0)
