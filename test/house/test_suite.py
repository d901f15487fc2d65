"""test/suite.py: the list, what it counts, and a small run of it on each virtual GPU."""
import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from test import suite
from tinyhw.errors import CompileError

def test_what_is_left_out_exists() -> None:
  assert [name for name in suite.OUT if not (suite.TEST / name).exists()] == []

def test_the_list_has_every_other_file_of_tensors() -> None:
  files = suite.files()
  assert {"test_tensor.py", "methods/test_matmul.py", "engine/schedule/test_multi.py",
          "nn/test_training.py"} <= set(files)
  assert not set(files) & set(suite.OUT) and len(files) == len(set(files))

def test_shares_have_each_test_once_in_a_while() -> None:
  names = [f"test_a.py::test_{k}" for k in range(2000)]
  for chip in suite.CHIPS:
    assert all(suite.drawn(name, chip, 1) for name in names)
    assert 60 < sum(suite.drawn(name, chip, 20) for name in names) < 140
  assert {name for name in names if suite.drawn(name, "gfx1100", 20)} != {name for name in names
                                                                          if suite.drawn(name, "gfx942", 20)}

def test_runs_are_written_and_read_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
  monkeypatch.setattr(suite, "RECORD", tmp_path / "record.txt")
  assert suite.recorded() == {}
  first = suite.Run("gfx942", "2026-01-02", "0a1b2c3", 7, 1, 12, {"large; and slow": 2})
  second = suite.Run("gfx1100", "2026-01-02", "unknown", 8, 0, 3, {})
  suite.record([first])
  suite.record([second])
  assert suite.recorded() == {"gfx1100": second, "gfx942": first}
  assert ("| gfx942 | 2026-01-02 | 0a1b2c3 | 7 | 1 | 2 | 12 |" in suite.table()
          and "| large; and slow | 0 | 2 |" in suite.table())

def test_chips_rotate_by_commit() -> None:
  chips = ["a", "b", "c", "d"]
  drawn = {tuple(suite.rotated(chips, 2, f"{commit:07x}")) for commit in range(100)}
  assert drawn == {("a", "b"), ("b", "c"), ("c", "d"), ("d", "a")}
  assert sorted(suite.rotated(chips, 9, "unknown")) == chips

def test_a_tree_without_git_has_no_commit(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
  monkeypatch.setattr(suite, "TEST", tmp_path)
  assert suite.commit() == "unknown"

def test_outcomes_are_counted() -> None:
  counter = suite.Counter("gfx1100")
  for report in (("setup", "passed", ""), ("call", "passed", ""), ("teardown", "passed", ""),
                 ("setup", "skipped", "why"), ("call", "failed", ""),
                 ("setup", "failed", "")): counter.add(*report)
  run = counter.run()
  assert (run.passed, run.failed, run.skipped) == (1, 2, {"why": 1})

def test_kernels_of_a_type_that_a_card_lacks_are_skipped() -> None:
  for words in ("the target has no MUL of dtypes.float64, and codegen knows no other way",
                "the target does not convert dtypes.int32 to dtypes.float64, and codegen knows no other way",
                "the target does not convert dtypes.float64 to dtypes.int8, and codegen knows no other way",
                "Metal has no values of dtypes.float64"):
    assert suite.lacks("apple7", CompileError(words)) == "the card has no float64"
    assert not suite.lacks("gfx1100", CompileError(words)) and not suite.lacks("apple7", ValueError(words))
  assert not suite.lacks("apple7", CompileError("the target has no MUL of dtypes.float32, and codegen knows no other"))
  loops = CompileError("sum: this driver ends the loops of a kernel after 65535 iterations, and a lane needs 70000")
  assert suite.lacks("webgpu", loops) == "lavapipe ends the loops of a kernel after 65535 iterations"
  assert suite.lacks("webgpu", CompileError("WGSL has no values of dtypes.float64; cast")) == "the card has no float64"
  assert set(suite.WITHOUT) <= set(suite.CHIPS)

@pytest.mark.parametrize("name, chip", [("apple7x6", "apple7"), ("gfx1100", "gfx1100"),
                                        ("gfx942x6", "gfx942"), ("sm_90x6", "sm_90"), ("", "")])
def test_chips_of_names(name: str, chip: str) -> None: assert suite.chip_of(name) == chip

@pytest.mark.parametrize("emulated, device, chip", [
  ("gfx942x6", "AMD", "gfx942"), ("", "OPENCL:1", "pocl"), ("", "OPENCL", "pocl"),
  ("", "WEBGPU:2", "webgpu"), ("", "", "")])
def test_chips_here(emulated: str, device: str, chip: str) -> None: assert suite.chip_here(emulated, device) == chip

def test_a_driver_that_is_not_installed_is_left_out(monkeypatch: pytest.MonkeyPatch, tmp_path: Path,
                                                    capsys: pytest.CaptureFixture[str]) -> None:
  variables = suite.variables_of("pocl", str(tmp_path))
  assert variables["DEV"] == "OPENCL" and not variables["EMULATE"] and variables["POCL_DEVICES"].count("pthread") == 6
  assert suite.why_absent("gfx942", sys.executable, {}, "") == ""
  variables_of_webgpu = suite.variables_of("webgpu", str(tmp_path))
  assert variables_of_webgpu["DEV"] == "WEBGPU" and variables_of_webgpu["WEBGPU_DEVICES"].count("llvmpipe") == 6
  absent = suite.why_absent("pocl", sys.executable, {**variables, "OPENCL_DEVICES": "no such driver"}, "")
  assert "device OPENCL:5 does not open" in absent
  monkeypatch.setattr(suite, "why_absent", lambda *_: "it is not installed")
  assert suite.run_on("pocl", 16, []) == (0, None)
  assert capsys.readouterr().out == "suite.py: pocl is left out: it is not installed\n"

@pytest.mark.parametrize("chip, processor", [("arm64", "cortex-a72"), ("riscv64", "rv64,")])
def test_processors_are_left_out_without_their_python(chip: str, processor: str, tmp_path: Path) -> None:
  """The command that makes its Python says what to install."""
  variables = suite.variables_of(chip, str(tmp_path))
  assert variables["DEV"] == "CPU" and variables["QEMU_CPU"].startswith(processor) and not variables["EMULATE"]
  absent = suite.why_absent(chip, sys.executable, {**variables, "PATH": ""}, str(tmp_path))
  assert absent == "apt-get is missing: the root is made from a Debian archive"

@pytest.mark.parametrize("machine, chip", [("aarch64", "arm64"), ("riscv64", "riscv64"), ("x86_64", "")])
def test_the_cpu_device_is_a_chip_on_new_processors(machine: str, chip: str, monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setattr(suite.platform, "machine", lambda: machine)
  assert suite.chip_here("", "CPU") == chip and suite.chip_here("", "") == ""

@pytest.mark.slow
@pytest.mark.parametrize("sharing", (["-n", "0"], ["-n", "2"]), ids=("one process", "two"))
@pytest.mark.parametrize("chip", suite.CHIPS)
def test_a_few_tests_run_on_the_chip(chip: str, sharing: list[str], capfd: pytest.CaptureFixture[str]) -> None:
  if not importlib.util.find_spec("xdist"): pytest.skip("pytest-xdist is not installed")
  status, run = suite.run_on(chip, 1, ["test/methods/pointwise/test_elementwise.py", "-k",
                                       "test_equal_operands_of_maximum", *sharing])
  if run is None and status == 0: pytest.skip(capfd.readouterr().out)
  assert (status == 0 and run is not None and run.chip == chip and run.passed and not run.failed
          and run.workgroups), capfd.readouterr().out

def test_a_run_that_executes_nothing_fails() -> None:
  command = [sys.executable, "-m", "pytest", "--suite", "tensor", "test/methods/pointwise/test_elementwise.py", "-k",
             "test_equal_operands_of_maximum"]
  done = subprocess.run(command, cwd=suite.TEST.parent, capture_output=True, text=True,
                        env={"EMULATE": "gfx1100x6", "DEV": "PYTHON", "PATH": ""})
  assert done.returncode != 0 and "nothing ran on gfx1100x6: set DEV=AMD" in done.stdout, done.stdout + done.stderr

def test_whole_runs_that_came_to_their_end_are_recorded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
  """Each when it has ended; what is interrupted is not, nor are shares and selections."""
  monkeypatch.setattr(suite, "RECORD", tmp_path / "record.txt")
  statuses = {"gfx1100": 1, "sm_80": 0, "sm_90": 2, "gfx942": 1}
  def run_on(chip: str, share: int, rest: list[str]) -> tuple[int, suite.Run]:
    if chip == "sm_80" and not rest and share == 1: assert list(suite.recorded()) == ["gfx1100"]
    return statuses[chip], suite.Run(chip, "2026-01-02", suite.commit(), 0 if chip == "gfx942" else 7, statuses[chip],
                                     12, {})
  monkeypatch.setattr(suite, "run_on", run_on)
  for arguments, recorded in (("--share 16", []), ("-ksoftmax", []), ("", ["gfx1100", "sm_80"])):
    monkeypatch.setattr(sys, "argv", ["suite.py", *arguments.split(), *statuses])
    assert suite.main() == 1 and list(suite.recorded()) == recorded

def test_a_chip_that_there_is_not_is_refused(capsys: pytest.CaptureFixture[str],
                                             monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setattr(sys, "argv", ["suite.py", "gfx9999"])
  with pytest.raises(SystemExit): suite.main()
  assert "no such chip: gfx9999" in capsys.readouterr().err
