"""Writes torch_zip.pt and torch_stream.pt, files that PyTorch itself made: `python3 test/golden/make_torch.py`. Made
with PyTorch 2.13.

They hold a state dict, plain data, two names for one storage, a transposed view, and every type that both formats have.
"""
from collections import OrderedDict
from pathlib import Path

import torch

def contents(types: "list[torch.dtype]") -> "dict[str, object]":
  weight = torch.arange(6, dtype=torch.float32).reshape(2, 3) / 2
  model = OrderedDict({"a.weight": weight, "a.bias": torch.zeros(2), "b.weight": torch.ones(2),
                       "b.bias": torch.tensor([0.25, -0.25])})
  return {"model": model, "epoch": 3, "lr": 0.5, "shape": weight.shape, "tied": torch.nn.Parameter(weight),
          "transposed": weight.T,
          "types": [torch.arange(3).to(kind) for kind in types]}

OLD = [torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.uint8, torch.int8, torch.int16, torch.int32,
       torch.int64, torch.bool]
NEW = [*OLD, torch.uint16, torch.uint32, torch.uint64, torch.float8_e4m3fn, torch.float8_e5m2]

if __name__ == "__main__":
  here = Path(__file__).parent
  torch.save(contents(NEW), here / "torch_zip.pt")
  torch.save(contents(OLD), here / "torch_stream.pt", _use_new_zipfile_serialization=False)
