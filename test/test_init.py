"""`import tinyhw` exports its names, and loads them only when they are used."""
import os
import subprocess
import sys
from pathlib import Path

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

# Stands for the times of docs/performance.md, section Startup, since time decides no test: what a module costs hardly varies (0.2 to 1 ms), so a bar
# is a number of modules, and the ones that cost most (processes, networks, archives, decimal numbers) are named. What is run -> the most modules that
# may be loaded then: of Python's, beyond os and importlib; of tinyhw; and names of which none may be, nor any below them.
COMPUTES = ("tinyhw.codegen", "tinyhw.isa", "tinyhw.machine.inst", "tinyhw.uop.match", "tinyhw.drivers", "tinyhw.autogen", "ctypes", "mmap", "zlib")
OPTIONAL = (*(f"tinyhw.{name}" for name in ("nn", "viz", "llm", "doctor", "engine.jit", "engine.surroundings", "engine.show", "engine.search",
                                            "methods.dlpack", "machine.listing")),
            "subprocess", "socket", "http", "urllib", "json", "pickle", "random", "tempfile", "shutil", "zipfile", "hashlib", "decimal", "fractions",
            "logging", "asyncio", "multiprocessing", "concurrent", "sqlite3", "numpy")
LOADED = {
  "import tinyhw": (1, 1, (*COMPUTES, *OPTIONAL)),                                   # 0.001 s of 0.10: __future__ and itself
  "from tinyhw import Tensor": (64, 70, (*COMPUTES, *OPTIONAL)),
  "from tinyhw import Tensor; Tensor([1, 2, 3]).sum().item()": (72, 180, OPTIONAL),    # 0.066 s of 0.40, mostly in loading
}

@pytest.mark.parametrize("program", LOADED)
def test_what_is_loaded(program):
  root = str(Path(__file__).resolve().parents[1])
  asked = f"import os, importlib, sys; sys.path.insert(0, {root!r}); before = set(sys.modules); {program}; print(*set(sys.modules) - before)"
  done = subprocess.run([sys.executable, "-I", "-S", "-c", asked], env={**os.environ, "CACHE": "0"}, capture_output=True, text=True, check=True)
  loaded = done.stdout.split()
  own = [name for name in loaded if name.partition(".")[0] == "tinyhw"]
  most, most_own, none_of = LOADED[program]
  early = [name for name in loaded if any(name == prefix or name.startswith(prefix + ".") for prefix in none_of)]
  assert not early, f"`{program}` loads {sorted(early)}, which other programs need"
  others = sorted(set(loaded) - set(own))
  assert len(own) <= most_own and len(others) <= most, f"`{program}` loads {len(own)} modules of tinyhw, and {others}"
