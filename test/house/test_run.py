"""test/run.py: its requirements, its environments, and what it says where something is missing.

The whole is what runs these tests.
"""
import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

RUN = Path(__file__).resolve().parents[1] / "run.py"

@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
  spec = importlib.util.spec_from_file_location("run", RUN)
  assert spec is not None and spec.loader is not None
  module = importlib.util.module_from_spec(spec)
  spec.loader.exec_module(module)
  monkeypatch.setattr(module.time, "sleep", lambda seconds: None)
  return module

def test_requirements_are_those_of_setup(run: ModuleType) -> None:
  assert {r.split(">")[0] for r in run.test_requirements()} >= {"pytest", "hypothesis", "numpy", "ruff", "mypy"}

def test_syntax_is_readable_by_old_pythons(run: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
  import ast
  ast.parse(RUN.read_text(), feature_version=(3, 6))
  monkeypatch.setattr(run.sys, "version_info", (3, 8, 1))
  monkeypatch.setattr(run.shutil, "which", lambda name: None)
  with pytest.raises(SystemExit, match="this is Python 3.8; tinyhw needs 3.10 or newer: install one"):
    run.need_new_python()

def test_a_newer_python_on_path_is_used(run: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setattr(run.sys, "version_info", (3, 8, 1))
  monkeypatch.setattr(run.sys, "argv", ["run.py", "-k", "x"])
  monkeypatch.setattr(run.shutil, "which", lambda name: "/bin/" + name if name in ("python3.11", "python3.10")
                      else None)
  calls = []
  def execv(program: str, arguments: list[str]) -> None:
    calls.append((program, arguments))
    raise SystemExit
  monkeypatch.setattr(run.os, "execv", execv)
  with pytest.raises(SystemExit): run.need_new_python()
  assert calls == [("/bin/python3.11", ["/bin/python3.11", str(RUN), "-k", "x"])]

def test_environment_is_beside_the_sources_or_in_the_cache(run: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
  name = f"{sys.implementation.name}-{sys.version_info[0]}.{sys.version_info[1]}"
  assert run.environment_folder() == os.path.join(run.ROOT, ".venv", name)
  monkeypatch.setattr(run.os, "access", lambda path, mode: False)
  monkeypatch.setenv("XDG_CACHE_HOME", "/cache")
  assert (run.environment_folder().startswith(os.path.join("/cache", "tinyhw", "test-"))
          and run.environment_folder().endswith(name))

def test_python_without_ensurepip(run: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
  if importlib.util.find_spec("pip") is None: pytest.skip("no pip here")
  call = subprocess.call
  monkeypatch.setattr(run.subprocess, "call", lambda command, **options: 1 if command[1:3] == ["-m", "venv"]
                      else call(command, **options))
  pip = run.make_environment(str(tmp_path / "env"))
  assert (pip == [sys.executable, "-m", "pip", "--python", run.python_of(str(tmp_path / "env"))]
          and os.path.exists(pip[-1]))

def test_python_without_venv_is_told(run: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
  monkeypatch.setattr(run.subprocess, "call", lambda command, **options: 1)
  with pytest.raises(SystemExit, match="lacks venv or pip; install them"): run.make_environment(str(tmp_path / "env"))

def test_offline_is_told_after_three_attempts_and_success_is_remembered(run: ModuleType,
                                                                        monkeypatch: pytest.MonkeyPatch,
                                                                        tmp_path: Path) -> None:
  commands: list[list[str]] = []
  status = [1]
  def call(command: list[str], **options: object) -> int:
    commands.append(command)
    return status[0]
  (tmp_path / "env").mkdir()
  monkeypatch.setattr(run, "environment_folder", lambda: str(tmp_path / "env"))
  monkeypatch.setattr(run, "make_environment", lambda folder: ["pip"])
  monkeypatch.setattr(run.subprocess, "call", call)
  with pytest.raises(SystemExit, match="the tests need a package registry once: check the network"): run.prepare()
  assert len(commands) == 3
  status[0] = 0
  for _ in range(2): assert run.prepare() == run.python_of(str(tmp_path / "env"))
  assert len(commands) == 4

@pytest.mark.parametrize("cores, expected",
                         [(1, []), (2, ["-n", "2", "--dist", "loadfile"]), (64, ["-n", "8", "--dist", "loadfile"])])
def test_cores_share_the_tests(run: ModuleType, monkeypatch: pytest.MonkeyPatch, cores: int,
                               expected: list[str]) -> None:
  monkeypatch.setattr(run.os, "sched_getaffinity", lambda pid: set(range(cores)), raising=False)
  assert run.processes() == expected

def test_the_name_of_a_layer_is_one_word_with_its_option(run: ModuleType) -> None:
  assert run.joined(["--layer", "drivers", "--fast"]) == ["--layer=drivers", "--fast"]
  assert run.joined(["--layer", "uop", "--layer", "isa", "-k", "x"]) == ["--layer=uop", "--layer=isa", "-k", "x"]
  assert run.joined(["--layer"]) == ["--layer"] and run.joined(["--layer=uop", "y.py"]) == ["--layer=uop", "y.py"]

def test_types_are_checked_in_a_tree_with_the_drivers_inside(run: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
  seen: list[bool] = []
  def call(command: list[str], cwd: str) -> int:
    files = ("tinyhw/errors.py", "tinyhw/drivers/__init__.py", "tinyhw/autogen/__init__.py", "examples/digits.py")
    seen.extend(os.path.exists(os.path.join(cwd, name)) for name in files)
    return 0
  monkeypatch.setattr(run.subprocess, "call", call)
  assert run.check_types("python") == 0 and seen == [True] * 4

def test_what_never_ends_is_a_failure(tmp_path: Path) -> None:
  """With the settings of pyproject.toml, and a shorter time: the stuck test is named, where it stands is shown, and
  the others run."""
  (tmp_path / "test_stuck.py").write_text("import threading\ndef test_a(): pass\ndef test_stuck(): "
                                          "threading.Event().wait()\ndef test_b(): pass\n")
  settings = ["-c", str(RUN.parents[1] / "pyproject.toml"), "--rootdir", str(tmp_path), "-n", "1", "-o",
              "faulthandler_timeout=1"]
  done = subprocess.run([sys.executable, "-m", "pytest", *settings, str(tmp_path)], cwd=tmp_path, capture_output=True,
                        text=True, timeout=100)
  assert done.returncode == 1 and "1 failed, 2 passed" in done.stdout, done.stdout + done.stderr
  assert ("crashed while running 'test_stuck.py::test_stuck'" in done.stdout and "test_stuck.py\", line 3 in "
          "test_stuck" in done.stderr)
