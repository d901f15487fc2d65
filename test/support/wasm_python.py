"""Newer Pythons than most computers have, as WebAssembly under node: `python3 test/support/wasm_python.py` installs
them, once.

They come by npm and lie in .venv, which git ignores; continuous integration asks for them, a test that needs one skips
where it is not there.
"""
from __future__ import annotations
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / ".venv" / "wasm"
PACKAGES = {"3.14": "314.0.7", "3.15": "315.0.0-alpha.2"}    # Python -> version of the npm package `pyodide` that has
                                                             # it

def module_of(python: str) -> Path:
  """Where the JavaScript module of a Python is, once it is installed."""
  return FOLDER / "node_modules" / f"pyodide{python}" / "pyodide.mjs"

def missing(python: str) -> str:
  """Why a Python cannot run here; empty if it can."""
  if shutil.which("node") is None: return "there is no node"
  return ("" if module_of(python).exists() else f"it is not installed; `python3 {Path(__file__).relative_to(ROOT)}` "
          f"does that, with npm")

def command(python: str, program: str, *arguments: str) -> list[str]:
  """Return the command that runs a program's file, in the folder of the repository, on a Python."""
  return ["node", str(Path(__file__).with_suffix(".mjs")), str(module_of(python)), str(ROOT), program, *arguments]

def install() -> str:
  """Install them; what was done, in words."""
  if all(module_of(python).exists() for python in PACKAGES): return "they are there"
  if shutil.which("npm") is None: return "skipped, since there is no npm"
  FOLDER.mkdir(parents=True, exist_ok=True)
  (FOLDER / "package.json").write_text("{}")
  wanted = [f"pyodide{python}@npm:pyodide@{version}" for python, version in PACKAGES.items()]
  done = subprocess.run(["npm", "install", "--silent", "--no-fund", "--no-audit", *wanted], cwd=FOLDER,
                        capture_output=True, text=True)
  return ("installed" if done.returncode == 0 else f"skipped, since npm failed: "
          f"{(done.stderr or done.stdout).strip()[-500:]}")

if __name__ == "__main__": sys.exit(print(f"Python {' and '.join(PACKAGES)} as WebAssembly: {install()}"))
