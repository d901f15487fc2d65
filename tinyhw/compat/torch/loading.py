"""`torch.utils.data` beyond tinyhw/nn/loading: numbers of items become int64 and float64, as PyTorch's do."""
from __future__ import annotations
from typing import Any

from tinyhw.compat.torch.dress import dress
from tinyhw.dtype import dtypes
from tinyhw.nn.loading.collate import collate, convert
from tinyhw.nn.loading.loader import DataLoader
from tinyhw.tensor import Tensor

def as_tensor(x: Any) -> Any:
  """Return numbers or an array as a tensor."""
  if hasattr(x, "__array_interface__"): return dress(Tensor(x))
  first = x[0]
  kind = dtypes.bool if isinstance(first, bool) else dtypes.int64 if isinstance(first, int) else dtypes.float64
  return dress(Tensor(x, dtype=kind))

def torch_collate(batch: Any) -> Any:
  """Return items as a batch: `default_collate`."""
  return collate(batch, as_tensor)

def torch_convert(data: Any) -> Any:
  """Return an item with its arrays as tensors: `default_convert`."""
  return convert(data, as_tensor)

class TorchDataLoader(DataLoader):
  """Batches of a data set, as torch.utils.data.DataLoader makes them."""
  collates = (torch_collate, torch_convert)
