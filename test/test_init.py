"""`import tinyhw` exports its names, and loads them only when they are used."""
import os
import shutil
import subprocess
import sys
import zipapp
import zipfile
from pathlib import Path

import pytest

import tinyhw

@pytest.mark.parametrize("name", ["Context", "Device", "GlobalCounters", "Tensor", "TinyJit", "UOp", "Variable",
                                  "dtypes", "fetch", "getenv", "nn"])
def test_names(name):
  assert getattr(tinyhw, name) is not None and name in dir(tinyhw)

def test_all_names_are_imported_by_a_star():
  program = ("from tinyhw import *; print(Tensor([1, 2]).sum().item(), Variable); from tinyhw.nn.state import *; "
             "print(safe_save, torch_load)")
  assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True,
                        check=True).stdout.startswith("3 ")

def test_unknown_names():
  with pytest.raises(AttributeError, match="no attribute 'tensors'"): getattr(tinyhw, "tensors")

# Stands for the times of docs/performance.md, section Startup, since time decides no test: what a module costs hardly
# varies (0.2 to 1 ms), so a bar is a number of modules, and the ones that cost most (processes, networks, archives,
# decimal numbers) are named. What is run -> the most modules that may be loaded then: of Python's, beyond os and
# importlib; of tinyhw, folders without code aside; and names of which none may be, nor any below them.
COMPUTES = ("tinyhw.codegen", "tinyhw.isa", "tinyhw.machine.ir.inst", "tinyhw.uop.rewrite.match", "tinyhw.drivers",
            "tinyhw.autogen", "ctypes",
            "mmap", "zlib")
OPTIONAL = (*(f"tinyhw.{name}" for name in ("nn", "viz", "llm", "selftest", "capture", "engine.run.show",
                                            "codegen.search",
                                            "methods.data.dlpack", "machine.model")),
            "subprocess", "socket", "http", "urllib", "json", "pickle", "random", "tempfile", "shutil", "zipfile",
            "hashlib", "decimal", "fractions", "dataclasses", "inspect",
            "logging", "asyncio", "multiprocessing", "concurrent", "sqlite3", "numpy")
LOADED = {
  # 0.001 s of 0.10: __future__ and itself
  "import tinyhw": (1, 1, (*COMPUTES, *OPTIONAL)),
  "from tinyhw import Tensor": (50, 74, (*COMPUTES, *OPTIONAL)),
  # 0.066 s of 0.40, mostly in loading
  "from tinyhw import Tensor; Tensor([1, 2, 3]).sum().item()": (58, 168, OPTIONAL),
}

@pytest.mark.parametrize("program", LOADED)
def test_what_is_loaded(program):
  root = str(Path(__file__).resolve().parents[1])
  asked = f"import os, importlib, sys; sys.path.insert(0, {root!r}); before = set(sys.modules); {program}; " \
          "files = {name: getattr(sys.modules[name], '__file__', '') for name in set(sys.modules) - before}; " \
          "print(*[name for name, file in files.items() if not file or os.path.getsize(file)])"
  done = subprocess.run([sys.executable, "-I", "-S", "-c", asked], env={**os.environ, "CACHE": "0"},
                        capture_output=True, text=True, check=True)
  loaded = done.stdout.split()
  own = [name for name in loaded if name.partition(".")[0] == "tinyhw"]
  most, most_own, none_of = LOADED[program]
  early = [name for name in loaded if any(name == prefix or name.startswith(prefix + ".") for prefix in none_of)]
  assert not early, f"`{program}` loads {sorted(early)}, which other programs need"
  others = sorted(set(loaded) - set(own))
  assert len(own) <= most_own and len(others) <= most, f"`{program}` loads {len(own)} modules of tinyhw, and {others}"

# ***** the package as a tree of modules *****

ROOT = Path(__file__).resolve().parents[1]
WALK = "import pkgutil, tinyhw; print(*[m.name for m in pkgutil.walk_packages(tinyhw.__path__, 'tinyhw.')])"

def names_in_files() -> set[str]:
  """Return every module, by the name of its import."""
  files = [(f"tinyhw.{root.name}" if root.name != "tinyhw" else "tinyhw", root, path)
           for root in (ROOT / "tinyhw", ROOT / "drivers", ROOT / "autogen") for path in root.rglob("*.py")]
  return {".".join((name, *path.relative_to(root).with_suffix("").parts)).removesuffix(".__init__")
          for name, root, path in files} - {"tinyhw"}

def run_in(folder: Path, *arguments: str, path: str = str(ROOT)) -> str:
  """Return the output of a Python that finds the package at a path, and not in its working folder."""
  program = [sys.executable, "-B", *arguments]
  return subprocess.run(program, cwd=folder, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True,
                        check=True, timeout=300).stdout

def test_walking_the_package_meets_each_module_once(tmp_path):
  found = run_in(tmp_path, "-c", WALK).split()
  assert sorted(found) == sorted(names_in_files())

@pytest.mark.parametrize("name", ["tinyhw.setup", "tinyhw.tinyhw", "tinyhw.tinyhw.tinyhw", "tinyhw.examples",
                                  "tinyhw.test"])
def test_the_rest_of_a_clone_is_no_part_of_the_package(tmp_path, name):
  assert run_in(tmp_path, "-c", f"import importlib.util as u\ntry: print(u.find_spec('{name}'))\nexcept "
                f"ModuleNotFoundError: print(None)") == "None\n"

def test_pydoc_lists_the_package_and_ends(tmp_path):
  page = run_in(tmp_path, "-m", "pydoc", "tinyhw")
  contents = page.partition("PACKAGE CONTENTS")[2].partition("\n\n")[0].replace(" (package)", "").split()
  assert {"drivers", "autogen", "nn", "tensor"} <= {*contents} and not {"tinyhw", "setup", "examples"} & {*contents}
  assert "find_spec" not in page
  assert "class Compiled" in run_in(tmp_path, "-m", "pydoc", "tinyhw.device_interface")
  assert "tinyhw.drivers.cpu" in run_in(tmp_path, "-m", "pydoc", "tinyhw.drivers.cpu")

@pytest.mark.parametrize("inside", [True, False], ids=["installed", "a clone's"])
def test_the_package_in_an_archive(tmp_path, inside):
  archive = tmp_path / "all.zip"
  with zipfile.ZipFile(archive, "w") as file:
    for name in ("tinyhw", "drivers", "autogen"):
      for path in (ROOT / name).rglob("*.py"):
        file.write(path, Path("tinyhw" if inside and name != "tinyhw" else "", path.relative_to(ROOT)))
  found = run_in(tmp_path, "-c", WALK, path=str(archive)).split()
  assert sorted(found) == sorted(names_in_files())
  program = "import tinyhw.drivers.cpu, tinyhw.autogen.dlpack as d; print(d.__file__)"
  assert run_in(tmp_path, "-c", program, path=str(archive)).startswith(str(archive))

def test_loaded_again_it_still_finds_its_parts(tmp_path):
  program = ("import importlib, sys, tinyhw\nimportlib.reload(tinyhw)\nimport tinyhw.drivers.cpu\n"
             "for name in [n for n in sys.modules if n.split('.')[0] == 'tinyhw']: del sys.modules[name]\n"
             "sys.path_importer_cache.clear(); importlib.invalidate_caches()\n"
             "import tinyhw.drivers.gpu, tinyhw.autogen.fields; print(tinyhw.drivers.gpu.__name__, "
             "importlib.util.find_spec('tinyhw.setup'))")
  assert run_in(tmp_path, "-c", program) == "tinyhw.drivers.gpu None\n"

PARTS = ("import sys; from tinyhw.nn.datasets import digits; from tinyhw.viz import server; from tinyhw.files.regular "
         "import packaged; "
         "print([t.shape[0] for t in digits()], packaged(server.PAGE)[:15], '.pyz' in digits.__code__.co_filename)")

@pytest.mark.slow
def test_an_application_in_one_file(tmp_path):
  """`python3 -m zipapp`: what every Python can do works from an archive, too, and so do files that lie with the
  sources, and the commands."""
  tree = tmp_path / "tree"
  for name in ("tinyhw", "drivers", "autogen", "examples"):
    shutil.copytree(ROOT / name, tree / name, ignore=shutil.ignore_patterns("__pycache__"))
  shutil.copy(ROOT / "test/support/any_python.py", tree / "__main__.py")
  archive = tmp_path / "all.pyz"
  zipapp.create_archive(tree, archive)
  shutil.rmtree(tree)
  assert run_in(tmp_path, str(archive), "CPU", path="").splitlines()[-1].endswith(": 0 failed")
  assert run_in(tmp_path, "-c", PARTS, path=str(archive)) == "[1438, 1438, 359, 359] b'<!doctype html>' True\n"
  assert "PYTHON  opens   python" in run_in(tmp_path, "-m", "tinyhw", "doctor", path=str(archive))
  assert "test accuracy: 9" in run_in(tmp_path, "-m", "examples.digits", path=str(archive))
