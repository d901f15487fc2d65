"""Every Python that pyproject.toml names: those that are on this computer run test/support/any_python.py, the newest
ones as WebAssembly."""
from __future__ import annotations
import functools
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import any_python
import wasm_python

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = Path(any_python.__file__).relative_to(ROOT)
PYTHONS = re.findall(r'"Programming Language :: Python :: (3\.\d+)"',
                     (ROOT / "pyproject.toml").read_text(encoding="utf-8"))
HERE = f"{sys.version_info[0]}.{sys.version_info[1]}"

@functools.lru_cache(maxsize=None)
def interpreter(python: str) -> str | None:
  """A Python of this version: on PATH, or among those of pyenv."""
  named = [sys.executable] if python == HERE else [found for name in (f"python{python}", "python3")
                                                   if (found := shutil.which(name))]
  for found in [*named, *map(str, sorted(Path.home().glob(f".pyenv/versions/{python}.*/bin/python3")))]:
    said = subprocess.run([found, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"], capture_output=True,
                          text=True)
    if said.stdout.strip() == python: return found
  return None

def passes(command: list[str], folder: Path) -> None:
  environment = {**os.environ, "PYTHONPATH": str(ROOT), "CACHE": "0"}
  done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=900)
  lines = done.stdout.splitlines()
  assert done.returncode == 0 and not done.stderr, done.stdout + done.stderr
  assert [line.partition(":")[0] for line in lines[:-1]] == [check.__name__ for check in any_python.CHECKS], done.stdout

def test_the_pythons_are_named_alike_everywhere() -> None:
  assert PYTHONS == [f"3.{minor}" for minor in range(10, 16)]
  assert f"Python {PYTHONS[0]} to {PYTHONS[-1]};" in (ROOT / "README.md").read_text(encoding="utf-8")
  assert {*wasm_python.PACKAGES} <= {*PYTHONS}

@pytest.mark.host("what a Python has is the same for every device")
@pytest.mark.parametrize("python", PYTHONS)
def test_works_on(python: str, tmp_path: Path) -> None:
  found = interpreter(python)
  if found is None: pytest.skip(f"there is no Python {python} here, on PATH or of pyenv")
  passes([found, "-W", "error", "-X", f"pycache_prefix={tmp_path / 'pyc'}", str(ROOT / PROGRAM), "CPU"], tmp_path)

@pytest.mark.slow
@pytest.mark.host("WebAssembly has no processor to assemble for")
@pytest.mark.parametrize("python", wasm_python.PACKAGES)
def test_works_as_webassembly_on(python: str, tmp_path: Path) -> None:
  if reason := wasm_python.missing(python): pytest.skip(f"Python {python} as WebAssembly: {reason}")
  passes(wasm_python.command(python, str(PROGRAM), "PYTHON"), tmp_path)
