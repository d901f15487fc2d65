"""compat/torch/machine.py: devices, limits of types, and settings."""
from __future__ import annotations

import pytest

import tinyhw.compat.torch as torch
from tinyhw import dtypes
from tinyhw.errors import ArgumentError

def test_devices() -> None:
  device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
  assert device.type == "cpu" and device.index is None and str(device) == "cpu" and device == torch.zeros(1).device
  assert repr(torch.device("cuda", 1)) == "device(type='cuda', index=1)" and torch.device(1) == torch.device("cuda:1")
  assert device != "cuda" and {device: 1}["CPU"] == 1
  x = torch.zeros(2, device=device).to(device).cpu()
  assert torch.nn.Linear(2, 2).to(device)(x).shape == (2,)
  with pytest.raises(ArgumentError, match="has a name"): torch.device(1.5)

def test_backends() -> None:
  assert not torch.backends.mps.is_available() and not torch.backends.mps.is_built() and not torch.xpu.is_available()
  torch.backends.cudnn.benchmark = True
  torch.backends.cuda.matmul.allow_tf32 = True

def test_limits() -> None:
  real = pytest.importorskip("torch")
  for name in ("float16", "bfloat16", "float32", "float64"):
    a, b = real.finfo(getattr(real, name)), torch.finfo(getattr(torch, name))
    assert [getattr(a, k) for k in ("bits", "eps", "max", "min", "tiny", "smallest_normal", "dtype")] == [
      getattr(b, k) for k in ("bits", "eps", "max", "min", "tiny", "smallest_normal", "dtype")]
    assert a.resolution == pytest.approx(b.resolution)
  for name in ("int8", "uint8", "int64"):
    a, b = real.iinfo(getattr(real, name)), torch.iinfo(getattr(torch, name))
    assert (a.bits, a.min, a.max) == (b.bits, b.min, b.max)
  with pytest.raises(ArgumentError, match="use iinfo"): torch.finfo(torch.int8)
  with pytest.raises(ArgumentError, match="use finfo"): torch.iinfo(torch.float32)

def test_settings() -> None:
  assert torch.get_default_dtype() is torch.float32 and torch.get_num_threads() >= 1
  torch.set_default_dtype(torch.float64)
  try: assert torch.zeros(1).dtype is torch.float64
  finally: dtypes.default_float = dtypes.float32
  with pytest.raises(ArgumentError, match="is a float type"): torch.set_default_dtype(torch.int8)
  torch.set_num_threads(1)
  torch.set_float32_matmul_precision("high")
  torch.use_deterministic_algorithms(True)
  assert torch.are_deterministic_algorithms_enabled() and torch.get_float32_matmul_precision() == "highest"
  net = torch.nn.Linear(1, 1)
  assert torch.compile(net) is net and torch.compile(mode="x")(len) is len

def test_default_devices() -> None:
  torch.set_default_device("cpu")
  assert torch.get_default_device().type == "cpu" and torch.zeros(1).device.type == "cpu"
  with torch.device("python"):
    x = torch.ones(2)
    assert x.device.type == "python" == torch.get_default_device().type
  torch.set_default_device("python")
  assert torch.zeros(1).device.type == "python"
  torch.set_default_device(None)
  assert torch.zeros(1).device == "cpu" and x.device != "cpu"

def test_legacy_default_types() -> None:
  try:
    for kind in (torch.DoubleTensor, "torch.DoubleTensor"):
      torch.set_default_tensor_type(kind)
      assert torch.zeros(1).dtype is torch.float64
      torch.set_default_tensor_type(torch.FloatTensor)
      assert torch.zeros(1).dtype is torch.float32
  finally: dtypes.default_float = dtypes.float32

def test_scripts_are_python() -> None:
  assert torch.jit.script(len) is len and torch.jit.trace(len, ()) is len and torch.jit.ignore()(len) is len
  assert not torch.jit.is_scripting() and not torch.compiler.is_compiling() and torch.compiler.disable(len) is len
  assert not torch.distributed.is_available() and torch.distributed.get_world_size() == 1
  assert torch.distributed.get_rank() == 0 and torch.version.cuda is None and torch.__version__ > "2"
  assert torch.typename(1) == "int"

def test_kernels_of_attention() -> None:
  from tinyhw.compat.torch.nn.attention import SDPBackend, sdpa_kernel
  q = torch.ones(1, 1, 2, 4)
  with sdpa_kernel([SDPBackend.FLASH_ATTENTION, SDPBackend.MATH]):
    assert torch.nn.functional.scaled_dot_product_attention(q, q, q).shape == (1, 1, 2, 4)
