"""llm/grids.py: the vectors are those that the command writes, where the gguf package is installed."""
import importlib
import runpy
from pathlib import Path

import pytest

from tinyhw.llm import grids

def test_the_file_is_what_the_command_writes() -> None:
  pytest.importorskip("gguf", reason="the tables are those of the package")
  made = runpy.run_path(str(Path(__file__).resolve().parents[1] / "golden/make_gguf_grids.py"))
  text = Path(importlib.import_module("tinyhw.llm.grids").__file__ or "").read_text(encoding="utf-8")
  assert set(grids.GRIDS) == set(made["NAMES"]) and all(made["row"](name) in text for name in made["NAMES"])
