"""docs/reference/ is what the docstrings say, every example in a docstring runs, and every public method of Tensor has
one."""
from __future__ import annotations
import doctest
import importlib
import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

import reference

import tinyhw
from test.helpers import HOME, on
from tinyhw import Tensor, config, dtype, helpers, nn
from tinyhw.dtype import dtypes
from tinyhw.uop.ops import UOp, Variable

ROOT = Path(__file__).resolve().parents[2]
NAMES = {"Tensor": Tensor, "nn": nn, "dtypes": dtypes, "dtype": dtype, "helpers": helpers, "UOp": UOp,
         "Variable": Variable, "tinyhw": tinyhw,
         "Device": tinyhw.Device, "TinyJit": tinyhw.TinyJit, "Context": tinyhw.Context, "config": config,
         **{name: getattr(nn.state, name) for name in ("load_state_dict", "npy_load", "npy_save", "safe_load")}}
# what a page shows may stand in another module
SHOWN = {value.__module__ for page in reference.PAGES for name in page.names or ()
         if hasattr(value := getattr(importlib.import_module(page.module), name), "__module__")}
MODULES = sorted({page.module for page in reference.PAGES} | SHOWN |
                 {cls.__module__ for cls in Tensor.__mro__ if cls.__module__.startswith("tinyhw")})
# Methods of Tensor whose docstring has no example: they need an address or a network, or are the older name of another.
WITHOUT_AN_EXAMPLE = {"from_blob", "from_url", "hold", "lazydata"}

def public_methods() -> Iterator[tuple[str, Any]]:
  """Yield the methods and properties of Tensor that have a docstring."""
  for cls in Tensor.__mro__:
    if not cls.__module__.startswith("tinyhw"): continue
    for name, member in vars(cls).items():
      if not name.startswith("_") and reference.describes(member): yield name, reference.plain(member)

def test_every_public_method_of_tensor_has_an_example() -> None:
  assert ({name for name, member in public_methods() if ">>>" not in (inspect.getdoc(member) or "")}
          == WITHOUT_AN_EXAMPLE)

class Checker(doctest.OutputChecker):
  """Examples show tensors on the CPU; on another device they are the same but for its name."""
  def check_output(self, want: str, got: str, optionflags: int) -> bool:
    return super().check_output(re.sub(r"( on |^')CPU\b", rf"\g<1>{HOME}", want), got, optionflags)

SHARED = pytest.param("tinyhw.methods.data.interchange",
                      marks=pytest.mark.host_memory("a GPU's own memory is none that NumPy or PyTorch could look at"))

@pytest.mark.parametrize("name", [SHARED if name in SHARED.values else name for name in MODULES])
def test_examples_print_what_stands_there(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.chdir(tmp_path)   # examples write files
  module = importlib.import_module(name)
  runner = doctest.DocTestRunner(Checker(), optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
  report: list[str] = []
  with on(HOME):
    for test in doctest.DocTestFinder(recurse=True).find(module, name, extraglobs=NAMES):
      runner.run(test, out=report.append)
  assert not runner.failures, "".join(report)

@pytest.mark.host("pages about Python are the same on every device")
@pytest.mark.parametrize("path", reference.pages())
def test_pages_are_up_to_date(path: str) -> None:
  assert (ROOT / path).read_text(encoding="utf-8") == reference.pages()[path], "run python3 test/pages/test_docs.py"

def test_no_page_is_left_over() -> None:
  assert {str(path.relative_to(ROOT)) for path in (ROOT / reference.FOLDER).iterdir()} == set(reference.pages())
