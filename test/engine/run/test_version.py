"""tinyhw/engine/run/version.py: the digest covers the contents of all files that affect the code, in folders and
archives."""
from __future__ import annotations
import os
from pathlib import Path
import shutil
import subprocess
import sys
import time
import zipfile

import pytest

from tinyhw.engine.run import version
from tinyhw.engine.run.compile import backend
from tinyhw.engine.run.version import archive_around, compiler_version, folders
from tinyhw.isa import TARGETS

ROOT = Path(__file__).resolve().parents[3]
ARCHES = ["x86_64", "gfx1100", "sm_90", "c", "python"]
LOADS = """
import sys
from tinyhw.codegen import optimize, passes
from tinyhw.codegen import search
from tinyhw.codegen.kernel import estimate
from tinyhw.engine.run.compile import backend
from tinyhw.uop import program
backend(sys.argv[1])
loaded = [m for name, m in sys.modules.items() if name.startswith("tinyhw")]
print(*[m.__file__ for m in loaded if getattr(m, "__file__", None)], sep="\\n")
"""

def environment(**more: str) -> dict[str, str]: return {**os.environ, "PYTHONPATH": str(ROOT), "DEV": "CPU", **more}

@pytest.mark.parametrize("arch", ARCHES)
def test_all_that_compiles_is_in_it(arch: str) -> None:
  done = subprocess.run([sys.executable, "-c", LOADS, arch], env=environment(), capture_output=True, text=True,
                        check=True)
  covered = {os.path.realpath(folder) for folder in folders(os.path.dirname(backend(arch).__file__))}
  loaded = done.stdout.split()
  assert len(loaded) > 40 and [path for path in loaded if os.path.dirname(os.path.realpath(path)) not in covered] == []

@pytest.mark.parametrize("arch", ARCHES)
def test_each_backend_has_a_version(arch: str) -> None:
  assert (len(compiler_version(backend(arch))) == 32 and compiler_version(backend(arch))
          == compiler_version(backend(arch)))
  assert (len({compiler_version(backend(a)) for a in ("x86_64", "gfx1100", "sm_90", "c")}) == 4
          and set(TARGETS) > {"x86_64", "gfx1100", "sm_90"})

@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
  """The folder of a backend, and no others."""
  monkeypatch.setattr(version, "folders", lambda own: [own])
  (tmp_path / "own").mkdir()
  for name in ("a.py", "b.py"): write(tmp_path / "own" / name, b"x = 1")
  return tmp_path / "own"

def write(path: Path, content: bytes, seconds: float = 1e9) -> None:
  path.write_bytes(content)
  os.utime(path, (seconds, seconds))

def test_contents_and_names_count_and_times_do_not(own: Path) -> None:
  before = version._digest(str(own))
  os.utime(own / "a.py", (2e9 - 1e9 + 5, 1e9 + 5))
  (own / "notes.txt").write_bytes(b"no code")
  assert version._digest(str(own)) == before and len(before) == 32
  write(own / "a.py", b"x = 2")   # of the same size and time
  changed = version._digest(str(own))
  write(own / "a.py", b"x = 1")
  (own / "a.py").rename(own / "c.py")
  assert len({before, changed, version._digest(str(own))}) == 3

def test_files_that_changed_since_they_were_loaded_have_no_version(own: Path) -> None:
  write(own / "a.py", b"x = 1", time.time())
  assert version._digest(str(own)) == ""
  write(own / "a.py", b"x = 1", time.time() + 3600)   # a clock that was wrong says nothing
  assert version._digest(str(own)) != ""

def test_what_cannot_be_read_has_no_version(own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
  assert version._digest(str(own / "none")) == ""
  with pytest.raises(OSError, match="in no folder and no archive"): archive_around(str(own / "none"))
  monkeypatch.setattr(version, "_MOST_ARCHIVE_BYTES", 3)
  assert version._digest(str(own)) == ""

def test_the_version_of_an_archive_is_that_of_its_contents(own: Path) -> None:
  archive = own / "app.pyz"
  write(archive, b"PK one")
  inside = str(archive / "tinyhw" / "isa" / "x86")
  assert archive_around(inside) == str(archive) and archive_around(str(own)) is None
  before = version._digest(inside)
  write(archive, b"PK two")
  assert len({before, version._digest(inside), version._digest(str(archive / "tinyhw" / "isa" / "amd"))}) == 3

def test_an_archive_computes_and_keeps_its_kernels(tmp_path: Path) -> None:
  """zipapp: there is no folder to list."""
  with zipfile.ZipFile(tmp_path / "app.pyz", "w") as archive:
    archive.writestr("__main__.py", "from tinyhw import Tensor; print(Tensor([1, 2, 3]).sum().item())")
    for top in ("tinyhw", "drivers", "autogen"):
      for path in sorted((ROOT / top).rglob("*.py")): archive.write(path, path.relative_to(ROOT))
  os.utime(tmp_path / "app.pyz", (1e9, 1e9))
  kept = []
  for _ in range(2):
    done = subprocess.run([sys.executable, str(tmp_path / "app.pyz")], cwd=tmp_path, capture_output=True, text=True,
                          env=environment(PYTHONPATH="", CACHEDIR=str(tmp_path / "cache")))
    assert (done.stdout, done.stderr) == ("6\n", "")
    kept.append({path: path.stat().st_ino for path in (tmp_path / "cache" / "values" / "code").rglob("*")
                 if path.is_file()})
  assert kept[0] == kept[1] and len(kept[0]) == 1
  shutil.rmtree(tmp_path / "cache")
