"""The doctor: what it finds, what it advises."""
import itertools
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import tinyhw
from tinyhw.config import CACHEDIR
from tinyhw.device import DRIVERS, Device
from tinyhw.selftest import doctor

ROOT = Path(__file__).resolve().parents[2]

def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
  return subprocess.run([sys.executable, "-m", "tinyhw", "doctor", *arguments], capture_output=True, text=True,
                        cwd=ROOT,
                        env={**os.environ, "DEV": "", **environment})

def test_json_and_text() -> None:
  done, shown = run("--json"), run()
  facts = json.loads(done.stdout)
  assert done.returncode == shown.returncode == 0 and done.stderr == shown.stderr == ""
  names = {d["name"] for d in facts["devices"]}
  assert (facts["python"]["executable"] == sys.executable and {"CPU", "CLANG", "PYTHON"} <= names
          <= set(DRIVERS)), "tests may register more"
  for device in facts["devices"]: assert device["arch"] if device["opens"] else device["reason"]
  assert facts["version"] == tinyhw.__version__ and shown.stdout.startswith(f"tinyhw {tinyhw.__version__}, ")
  assert shown.stdout == doctor.show(facts) + "\n" and f"default device: {facts['default']}" in shown.stdout

@pytest.mark.host("about the host's own processor")
def test_a_device_by_itself_has_all_its_facts() -> None:
  shown, one = run().stdout.splitlines(), run("--device", "CPU").stdout
  at = next(k for k, line in enumerate(shown) if line.startswith("CPU "))
  facts = [line.strip() for line in itertools.takewhile(lambda line: line.startswith(" "), shown[at + 1:])]
  assert facts and all(fact in one for fact in facts)

def test_metal_is_left_out_on_other_systems() -> None:
  listed = {d["name"] for d in json.loads(run("--json").stdout)["devices"]}
  assert ("METAL" in listed) == (sys.platform == "darwin")
  assert "METAL" in {d["name"] for d in json.loads(run("--json", EMULATE="apple7").stdout)["devices"]}

def test_without_a_compiler() -> None:
  facts = json.loads(run("--json", PATH="", CC="").stdout)
  clang = next(d for d in facts["devices"] if d["name"] == "CLANG")
  assert not clang["opens"] and "is on PATH" in clang["reason"] and clang["fix"].startswith("install clang or gcc")

def test_no_device_at_all() -> None:
  done = run(DEV="ABACUS")
  assert done.returncode == 1 and "no default device: there is no device 'ABACUS'; the known ones are" in done.stdout
  assert "settings: DEV=ABACUS" in done.stdout

def test_wrong_options() -> None:
  assert (run("--xml").returncode, run("--xml").stderr) == (2, "doctor: the options are --json and --device NAME, got "
                                                            "--xml\n")

def test_fixes(monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setattr(doctor.shutil, "which", lambda program: program if program in ("dnf", "apk") else None)
  monkeypatch.setattr(Device, "refused", {"CLANG": "none is on PATH"})
  assert doctor.fix("NV", "this version of tinyhw has no driver for it") is None
  assert doctor.fix("CLANG", "none is on PATH") == doctor.fix("CPU", "lacks avx2") == "sudo dnf install -y clang"
  assert doctor.fix("CLANG", "CC=x: x is not on PATH") == "unset CC"
  reason = ("opening /dev/kfd: permission denied (EACCES); join the group render, which owns it (sudo usermod -aG "
            "render $USER), and log in again")
  assert doctor.fix("AMD", reason) == "sudo usermod -aG render $USER, then log in again"
  assert doctor.fix("AMD", "there is no /dev/kfd") is None
  assert doctor.fix("CPU", "ARCH=z80 is not known") == "unset ARCH"
  monkeypatch.setattr(Device, "refused", {})
  assert doctor.fix("CPU", "lacks avx2") is None, "CLANG opens, and does its work"

def test_cache_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setattr(CACHEDIR, "value", str(tmp_path / "new"))
  assert doctor._cache() == {"folder": str(tmp_path / "new"), "writable": True, "files": 0,
                             "bytes": 0} and not (tmp_path / "new").exists()
  (tmp_path / "new").mkdir()
  (tmp_path / "new" / "entry").write_bytes(bytes(100))
  assert doctor._cache() == {"folder": str(tmp_path / "new"), "writable": True, "files": 1, "bytes": 100}
  (tmp_path / "file").write_bytes(b"")
  monkeypatch.setattr(CACHEDIR, "value", str(tmp_path / "file" / "below"))
  found = doctor._cache()
  assert not found["writable"] and found["reason"] and found["fix"].startswith("export CACHEDIR=")
  facts: dict[str, Any] = {**doctor.examine(), "cache": found}
  assert "not writable" in doctor.show(facts) and "to fix: export CACHEDIR=" in doctor.show(facts)

def test_one_device() -> None:
  done = run("--device", "AMD", EMULATE="gfx1100")
  assert ((done.returncode, done.stderr) == (0, "") and "chip                 ok       gfx1100, which is driven as "
          "gfx1100\n" in done.stdout)
  found = json.loads(run("--device", "PYTHON", "--json").stdout)
  assert found == [{"name": "PYTHON", "state": "ok", "words": "opens: python", "fix": ""}]
  refused = run("--device", "METAL", EMULATE="")
  assert refused.returncode == 1 and refused.stdout == (
    "library  problem  Metal is part of macOS\n"
    "                  to fix: on other systems EMULATE=apple7 DEV=METAL runs a virtual one\n")
  for name in ("NV:CUDA", "NV:CUDA:3"):   # a way to a device's GPUs that has no findings of its own
    assert run("--device", name).stdout.startswith(f"{name}  problem  ") or "opens" in run("--device", name).stdout
  assert run("--device", "DISK:/x").stderr.startswith("doctor: DISK:/x keeps a file and computes nothing")
  assert run("--device").returncode == 2 and run("--device", "A", "B").returncode == 2

def test_findings_for_people() -> None:
  found = [{"name": "card", "state": "ok", "words": "one", "fix": ""},
           {"name": "a", "state": "problem", "words": "b", "fix": "c"}]
  shown = doctor.show_findings(found)
  assert shown == "card  ok       one\na     problem  b\n               to fix: c"
