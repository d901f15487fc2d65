"""python3 -m tinyhw selftest: the report, its exit status, and its text for devices that do not open."""
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tinyhw.errors import ArgumentError, DeviceError
from tinyhw.selftest import command, frame
from tinyhw.selftest.frame import Session, Probe, Tools, Wrong

ROOT = Path(__file__).resolve().parents[2]

def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
  return subprocess.run([sys.executable, "-m", "tinyhw", "selftest", *arguments], capture_output=True, text=True,
                        cwd=ROOT,
                        env={**os.environ, "DEV": "", **environment})

def test_a_report() -> None:
  done = run("PYTHON")
  assert (done.returncode, done.stderr) == (0, "")
  lines = done.stdout.splitlines()
  assert (lines[0].startswith("selftest of PYTHON: ") and lines[1].split()[:3] == ["1", "opens", "ok"]
          and lines[-1] == "8 ok, 0 FAILED")

def test_json() -> None:
  facts = json.loads(run("PYTHON", "--json").stdout)
  assert facts["device"] == "PYTHON" and [step["outcome"] for step in facts["steps"]] == ["ok"] * 8

def test_a_device_that_does_not_open() -> None:
  done = run("METAL", EMULATE="")
  assert done.returncode == 1 and done.stdout.endswith(
    "0 ok, 1 FAILED, 25 not run\n\nThe first step that failed is \"messages\": has this macOS the methods of the "
    "driver?\n"
    "  it found: Metal is part of macOS; on other systems EMULATE=apple7 DEV=METAL runs a virtual one\n"
    "  what to check: macOS 13 or newer; the names in drivers/metal/objc.py\n")

def test_wrong_words() -> None:
  assert (run().returncode, run().stderr) == (2, "selftest: a device is expected, and --faults or --json; got "
                                              "nothing\n")
  assert run("CPU", "--fault").stderr == "selftest: a device is expected, and --faults or --json; got CPU --fault\n"
  assert (run("ABACUS").returncode, run("ABACUS").stderr.split(";")[0]) == (1, "selftest: there is no device 'ABACUS'")

def test_names() -> None:
  with pytest.raises(ArgumentError, match="DISK:/tmp/x keeps a file and computes nothing"): command.run("DISK:/tmp/x")
  with pytest.raises(ArgumentError, match="NULL runs no kernels and computes nothing; there are .*CPU"):
    command.run("NULL")
  with pytest.raises(DeviceError, match="there is no device"): command.run("ABACUS")

def test_the_first_failure_is_explained() -> None:
  def wrong(session: Session) -> str: raise Wrong("2 bytes differ\n  queue 7")
  steps = [Probe("a", "", "", lambda session: "fine"), Probe("b", "is b right", "the cable", wrong),
           Probe("c", "is c right", "the plug", wrong)]
  results = list(frame.run(Session("CPU", Tools(command.assemble)), steps))
  assert command.summary(results) == ('1 ok, 2 FAILED\n\nThe first step that failed is "b": is b right?\n  it found: '
                                      '2 bytes differ\n'
                                      "  what to check: the cable")
  assert command.line(2, results[1], 4).split("ms  ")[1] == "2 bytes differ\n        queue 7"

def test_sessions_are_those_of_the_drivers() -> None:
  assert (type(command.begin("PYTHON", False)) is Session and type(command.begin("CPU:1", False)).__module__
          == "tinyhw.drivers.cpu.selftest")
  assert (type(command.begin("AMD", True)).__module__ == "tinyhw.drivers.amd.selftest.steps"
          and command.begin("AMD", True).tools.faults)

def test_text_of_several_lines_is_assembled() -> None:
  assert command.assemble("s_nop 0\ns_endpgm", "gfx942").hex() == "000080bf000081bf"
