"""tinyhw/emulator/__init__.py: the box that EMULATE names."""
import os
import subprocess
import sys
from pathlib import Path

import pytest

import tinyhw.emulator as emulator
from tinyhw.config import EMULATE
from tinyhw.drivers.linux.files import machine
from tinyhw.errors import ConfigError

ROOT = Path(__file__).resolve().parents[2]

@pytest.fixture
def emulated() -> object:
  kept = EMULATE.value
  EMULATE.value = "gfx1100x2"
  yield
  EMULATE.value = kept

def test_drivers_get_the_box_by_its_name(emulated: object) -> None:
  assert machine() is emulator.box("gfx1100x2") is machine()
  assert (machine().exists("/dev/kfd") and machine().exists("/dev/dri/renderD129")
          and not machine().exists("/dev/dri/renderD130"))

def test_boxes_of_other_names_are_others() -> None:
  assert emulator.box("gfx1200") is not emulator.box("gfx942")
  assert emulator.make("gfx1200") is not emulator.make("gfx1200")

@pytest.mark.parametrize("name", ["x", "sm_", "1100", "gfx1100x0", "gfx1100x17", "gfx1100,gfx942", "gfx1100 ",
                                  "gfx1100x2x2", "gfx1100:wave64"])
def test_names_that_are_none(name: str) -> None:
  form = ("name 1 to 16 cards" if name in ("gfx1100x0", "gfx1100x17") else "there is no virtual 1100|several cards x "
          "and their number .* gfx1100x2")
  with pytest.raises(ConfigError, match=f"EMULATE={name!r}.*({form})"): emulator.make(name)

@pytest.mark.slow
def test_a_forked_child_has_its_own() -> None:
  mine = emulator.box("gfx1100")
  child = os.fork()
  if child == 0: os._exit(emulator.box("gfx1100") is mine)
  assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0

def test_nothing_of_it_is_loaded_without_emulate() -> None:
  program = ("import sys; from tinyhw.drivers.linux.files import machine; machine(); "
             "print(any(m.startswith('tinyhw.emulator') for m in sys.modules))")
  environment = {**os.environ, "EMULATE": "", "PYTHONPATH": str(ROOT)}
  found = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True, env=environment)
  assert found.stdout.strip() == "False"

@pytest.mark.slow
def test_seed_and_strictness_are_those_of_the_environment() -> None:
  program = """from tinyhw.drivers.linux.files import machine
box = machine()
print(box.strict, box.coherence is None, box.scheduler.random.random())"""
  def run(**variables: str) -> str:
    environment = {**os.environ, "EMULATE": "gfx1100", "PYTHONPATH": str(ROOT), **variables}
    return subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True,
                          env=environment).stdout
  assert run().startswith("1 False") and run(EMULATE_STRICT="0").startswith("0 True")
  assert run(EMULATE_SEED="5") == run(EMULATE_SEED="5") != run(EMULATE_SEED="6")

def imported(path: Path) -> str:
  """Return the lines of a file that import something."""
  return "\n".join(line for line in path.read_text(encoding="utf-8").splitlines()
                   if line.strip().startswith(("import ", "from ")))

def test_families_share_what_is_above_them() -> None:
  """The common part of all virtual cards imports no family, and no family imports another one."""
  folder = Path(emulator.__file__).parent
  for path in folder.rglob("*.py"):
    own = path.relative_to(folder).parts[0]
    for family in {name.rpartition(".")[2] for name in emulator.FAMILIES.values()} - {own}:
      assert f"tinyhw.emulator.{family}" not in imported(path), (path, family)
