"""pyproject.toml and setup.py: what they declare, without a build: setuptools is replaced by a recorder."""
import importlib
import inspect
import re
import runpy
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]

@pytest.fixture
def declared(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
  found: dict[str, Any] = {}
  monkeypatch.setitem(sys.modules, "setuptools", SimpleNamespace(setup=found.update))
  monkeypatch.chdir(ROOT)
  runpy.run_path(str(ROOT / "setup.py"))
  return found

@pytest.fixture
def project() -> dict[str, Any]:
  tomllib = pytest.importorskip("tomllib", reason="Python 3.10 reads no TOML")
  found: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
  return found

def test_needs_nothing_but_python(project: dict[str, Any], declared: dict[str, Any]) -> None:
  assert project["project"]["dependencies"] == [] and project["project"]["requires-python"] == ">=3.10"
  assert set(declared["extras_require"]) == {"test", "bench", "oracle", "oracles", "webgpu"}

def test_each_fact_is_declared_once(project: dict[str, Any], declared: dict[str, Any]) -> None:
  assert not {key.replace("-", "_") for key in project["project"]} & set(declared)
  assert set(project["project"]["dynamic"]) == {"version", "optional-dependencies"}

def test_the_version_is_that_of_the_package(project: dict[str, Any]) -> None:
  module, _, name = project["tool"]["setuptools"]["dynamic"]["version"]["attr"].rpartition(".")
  assert re.fullmatch(r"\d+\.\d+\.\d+", getattr(importlib.import_module(module), name))

def test_console_scripts_can_be_called(project: dict[str, Any]) -> None:
  scripts = project["project"]["scripts"]
  assert set(scripts) == {"tinyhw", "tinyhw-llm"}
  for target in scripts.values():
    module, _, name = target.partition(":")
    inspect.signature(getattr(importlib.import_module(module), name)).bind()   # it takes the process's own words

def folder_of(package: str, declared: dict[str, Any]) -> Path:
  """setuptools takes a package's folder from the longest name in package_dir that it begins with."""
  root = max((name for name in declared["package_dir"] if package == name or package.startswith(name + ".")), key=len)
  return ROOT / declared["package_dir"][root] / Path(*package[len(root):].strip(".").split("."))

def test_every_source_file_is_in_a_package(declared: dict[str, Any]) -> None:
  folders = {folder_of(package, declared) for package in declared["packages"]}
  sources = {path.parent for name in ("tinyhw", "drivers", "autogen") for path in (ROOT / name).rglob("*.py")}
  assert sources <= folders and all(folder.is_dir() for folder in folders), f"without __init__.py: {sources - folders}"

def test_data_files_are_there(declared: dict[str, Any]) -> None:
  assert all((folder_of(package, declared) / file).exists() for package, files in declared["package_data"].items()
             for file in files)
