"""tinygrad's language models as an oracle.

Its wheel of 0.14 lacks a module of kernels for one GPU that the others import: an empty one stands in.
"""
import importlib
import sys
import types
from typing import Any

import pytest

def tinygrad_llm(name: str) -> Any:
  """tinygrad.llm.<name>, or skip the test."""
  pytest.importorskip("tinygrad")
  nn = importlib.import_module("tinygrad.nn")
  try: importlib.import_module("tinygrad.llm.kernels.amd")
  except ImportError:
    folder, module = types.ModuleType("tinygrad.llm.kernels"), types.ModuleType("tinygrad.llm.kernels.amd")
    vars(folder)["__path__"] = []
    vars(module).update(Linear=nn.Linear, gated_delta_prefill=None, flash_attention=None,
                        amd_custom_kernels_supported=lambda *_, **__: False)
    sys.modules[folder.__name__], sys.modules[module.__name__] = folder, module
  try: return importlib.import_module(f"tinygrad.llm.{name}")
  except ImportError as error: pytest.skip(f"this tinygrad has no tinygrad.llm.{name}: {error}")
