"""`import tinyhw` exports its names, and loads them only when they are used."""
import subprocess
import sys

import pytest

import tinyhw

@pytest.mark.parametrize("name", ["Context", "Device", "GlobalCounters", "Tensor", "TinyJit", "UOp", "Variable", "dtypes", "fetch", "getenv", "nn"])
def test_names(name):
  assert getattr(tinyhw, name) is not None and name in dir(tinyhw)

def test_all_names_are_imported_by_a_star():
  program = "from tinyhw import *; print(Tensor([1, 2]).sum().item(), Variable); from tinyhw.nn.state import *; print(safe_save, torch_load)"
  assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.startswith("3 ")

def test_unknown_names():
  with pytest.raises(AttributeError, match="no attribute 'tensors'"): getattr(tinyhw, "tensors")

def test_import_loads_nothing_else():
  program = "import sys, tinyhw; print([m for m in sys.modules if m.startswith('tinyhw.')])"
  assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.strip() == "[]"
