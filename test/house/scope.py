"""Which tests a change wants: `--changed`, `--layer` and `--fast` of pytest, and so of test/run.py.

    python3 test/run.py --changed                # files that differ from the last commit, and modules that import them
    python3 test/run.py --changed origin/main    # from another commit
    python3 test/run.py --layer codegen --fast   # the tests in test/codegen, without those marked `slow`

A test file belongs to a module if it mirrors its path (test/uop/rewrite/test_match.py or test_match_more.py for
uop/rewrite/match.py) or if it imports it. A module that imports a changed one brings the tests that mirror it, and no
others: one step, as nearly all modules reach all others.
"""
from __future__ import annotations
import ast
import functools
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path

TEST = Path(__file__).resolve().parents[1]
ROOT = TEST.parent
SOURCES = ("tinyhw", "drivers", "autogen", "test", "examples")

class ScopeError(Exception):
  """A layer that there is not, or a commit that git does not know."""

def layers() -> list[str]:
  """The folders of test/ that have tests, and `tensor` for the files beside them."""
  found = {path.relative_to(TEST).parts[0] for path in TEST.rglob("test_*.py")}
  return ["tensor", *sorted(name for name in found if not name.endswith(".py"))]

def of_layer(name: str) -> set[Path]:
  """The test files of a layer."""
  if name not in layers(): raise ScopeError(f"--layer {name}: there is no such layer; there are {', '.join(layers())}")
  return set(TEST.glob("test_*.py") if name == "tensor" else (TEST / name).rglob("test_*.py"))

# ***** changes *****

def changed_since(commit: str) -> list[Path]:
  """The files that differ from a commit, and those that git does not know yet."""
  found: list[str] = []
  for command in (["diff", "--name-only", commit, "--"], ["ls-files", "--others", "--exclude-standard"]):
    run = subprocess.run(["git", *command], cwd=ROOT, capture_output=True, text=True, check=False)
    if run.returncode: raise ScopeError(f"--changed {commit}: git says {run.stderr.strip()}")
    found += run.stdout.splitlines()
  return [ROOT / name for name in dict.fromkeys(found)]

def wanted_by(changes: Iterable[Path]) -> set[Path]:
  """The test files that changes want."""
  importers = _importers()
  found: set[Path] = set()
  for path in changes:
    if path.suffix == ".md": found.add(TEST / "pages/test_docs.py")
    if path.suffix != ".py":
      found |= _naming(path)
      continue
    near = importers.get(path, set())
    for module in (path, *near): found |= {module} if _is_test(module) else _mirrors(module)
    if path.name == "conftest.py": found |= set(path.parent.rglob("test_*.py"))
    if not _is_test(path) and path.is_relative_to(TEST):     # what tests share
      for other in near - found:
        if not _is_test(other): found |= {p for p in importers.get(other, ()) if _is_test(p)}
  return {path for path in found if path.exists()}

def _is_test(path: Path) -> bool: return path.is_relative_to(TEST) and path.name.startswith("test_")

def _mirrors(path: Path) -> set[Path]:
  """The test files that stand where a module stands: of tinyhw/uop/rewrite/match.py test/uop/test_match*.py; of a
  package its folder's."""
  parts = path.relative_to(ROOT).with_suffix("").parts
  if parts[0] not in ("tinyhw", "drivers", "autogen"): return set()
  below, name = parts[1:-1] if parts[0] == "tinyhw" else parts[:-1], parts[-1]
  folder = TEST.joinpath(*below)
  if name == "__init__": return set(folder.glob("test_*.py")) if below else {TEST / "test_init.py"}
  return {*folder.glob(f"test_{name}.py"), *folder.glob(f"test_{name}_*.py")}

def _naming(path: Path) -> set[Path]:
  """The test files in which a file's name stands: of recorded results, say."""
  return {test for test in TEST.rglob("test_*.py") if path.name.encode() in test.read_bytes()}

@functools.cache
def _importers() -> dict[Path, set[Path]]:
  """For each source file those that import it, inside of functions, too."""
  files = {module: path for top in SOURCES for path in sorted((ROOT / top).rglob("*.py")) for module in _names(path)}
  found: dict[Path, set[Path]] = {}
  for path in set(files.values()):
    for name in _imported(ast.parse(path.read_bytes())):
      if name in files and files[name] != path: found.setdefault(files[name], set()).add(path)
  return found

def _names(path: Path) -> list[str]:
  """By which names a file is imported: drivers and autogen are inside of the package, too, and test/support is on the
  path of tests."""
  name = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
  if path.is_relative_to(TEST / "support"): return [name, name.removeprefix("test.support.")]
  return [name, f"tinyhw.{name}"] if name.split(".")[0] in ("drivers", "autogen") else [name]

def _imported(tree: ast.AST) -> Iterator[str]:
  for node in ast.walk(tree):
    if isinstance(node, ast.Import): yield from (alias.name for alias in node.names)
    if isinstance(node, ast.ImportFrom) and node.module:
      yield node.module
      yield from (f"{node.module}.{alias.name}" for alias in node.names)
