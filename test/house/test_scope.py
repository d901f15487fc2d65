"""test/house/scope.py: which tests a change wants."""
from __future__ import annotations
import subprocess
import sys
from pathlib import Path

import pytest

from test import run as command
from test.house import scope

ROOT, TEST = scope.ROOT, scope.TEST

def names(paths: set[Path]) -> set[str]: return {path.relative_to(TEST).as_posix() for path in paths}

def test_layers_are_the_folders_that_have_tests() -> None:
  assert {"tensor", "codegen", "engine", "machine", "isa", "uop", "methods", "nn", "drivers",
          "emulator"} <= set(scope.layers())
  assert ("codegen/transform/test_tiling.py" in names(scope.of_layer("codegen"))
          and "isa/x86/test_abi.py" in names(scope.of_layer("isa")))
  assert "test_tensor.py" in names(scope.of_layer("tensor")) and not any("/" in name
                                                                         for name in names(scope.of_layer("tensor")))
  with pytest.raises(scope.ScopeError, match="--layer codgen: there is no such layer; there are tensor, .*codegen"):
    scope.of_layer("codgen")

def test_a_module_wants_its_own_tests_those_that_import_it_and_those_of_its_importers() -> None:
  found = names(scope.wanted_by([ROOT / "tinyhw/codegen/transform/stage.py"]))
  assert {f"codegen/transform/test_{name}.py" for name in ("stage", "tiling", "window", "lane_reduction")} <= found
  assert "nn/test_onnx.py" not in found and "test_tensor.py" not in found
  assert "drivers/cpu/test_workers.py" in names(scope.wanted_by([ROOT / "drivers/cpu/workers.py"]))

@pytest.mark.slow
def test_what_tests_share_wants_the_tests_that_use_it() -> None:
  assert "whole/test_cliffs.py" in names(scope.wanted_by([TEST / "support/work.py"]))
  steps = TEST / "support/generators/symbolic_steps.py"
  assert "whole/test_symbolic.py" in names(scope.wanted_by([steps])), "by way of generators/symbolic_programs.py"
  assert names(scope.wanted_by([TEST / "test_tensor.py"])) == {"test_tensor.py"}

def test_other_files() -> None:
  assert names(scope.wanted_by([ROOT / "docs/guide/threads.md"])) >= {"pages/test_docs.py"}
  assert "whole/test_programs.py" in names(scope.wanted_by([TEST / "golden/programs.txt"]))
  assert not scope.wanted_by([ROOT / ("no file" + ".txt"), TEST / "test_that_is_gone.py"])

def test_changes_are_asked_of_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
  def git(*words: str) -> None:
    subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=b", *words], cwd=tmp_path, check=True,
                   capture_output=True)
  monkeypatch.setattr(scope, "ROOT", tmp_path)
  git("init", "-q")
  (tmp_path / "a.py").write_text("1\n")
  git("add", "a.py"); git("commit", "-qm", "first")
  assert scope.changed_since("HEAD") == []
  (tmp_path / "a.py").write_text("2\n")
  (tmp_path / "b.py").write_text("3\n")
  assert scope.changed_since("HEAD") == [tmp_path / "a.py", tmp_path / "b.py"]
  with pytest.raises(scope.ScopeError, match="--changed nowhere: git says .*nowhere"): scope.changed_since("nowhere")

def collected(*options: str) -> subprocess.CompletedProcess[str]:
  return subprocess.run([sys.executable, "-m", "pytest", "--collect-only", "-p", "no:cacheprovider", *options],
                        cwd=ROOT, capture_output=True,
                        text=True, check=False)

def test_options_of_pytest() -> None:
  run = collected("--layer", "uop", "test/uop", "test/autogen")
  assert run.returncode == 0 and "test/uop/" in run.stdout and "test/autogen" not in run.stdout
  run = collected("--layer", "upo", "test/uop")
  assert run.returncode and "there is no such layer" in run.stderr

@pytest.mark.parametrize("name", scope.layers())
def test_every_layer_can_be_named(name: str) -> None:
  """Also where a folder beside test/ has its name. `--markers` stops pytest after it has read its arguments."""
  run = collected(*command.joined(["--layer", name, "--fast"]), "--markers")
  assert run.returncode == 0, run.stderr

def test_slow_tests_are_left_out(tmp_path: Path) -> None:
  run = collected("--layer", "codegen", "test/codegen/transform/test_bulk_copies.py")
  fast = collected("--layer", "codegen", "--fast", "test/codegen/transform/test_bulk_copies.py")
  assert run.stdout.count("::") > fast.stdout.count("::") > 0

@pytest.mark.slow
def test_a_share_of_the_slow_tests() -> None:
  """All fast tests, and some of the slow ones."""
  every, fast = (collected("--layer", "codegen", *more).stdout.count("::") for more in ((), ("--fast",)))
  third = collected("--layer", "codegen", "--slow", "3").stdout.count("::")
  assert fast < third < fast + (every - fast) * 2 // 3
