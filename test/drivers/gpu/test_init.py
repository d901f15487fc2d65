"""drivers/gpu knows no vendor."""
from pathlib import Path

from tinyhw.drivers import gpu

def test_nothing_here_names_a_vendor_in_its_imports() -> None:
  for path in Path(gpu.__file__).parent.glob("*.py"):
    imports = [line for line in path.read_text(encoding="utf-8").splitlines()
               if line.lstrip().startswith(("import ", "from "))]
    assert not [line for line in imports if ".amd" in line or ".nvidia" in line], path.name

def test_the_table_names_all_files() -> None:
  names = {path.name for path in Path(gpu.__file__).parent.glob("*.py")} - {"__init__.py"}
  assert all(f"| {name} |" in str(gpu.__doc__) for name in names)
