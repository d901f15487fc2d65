"""The layers of docs/design/layers.md, as a table; the sizes of files and folders; and what every source file must
keep: its imports, and what `import tinyhw` loads."""
import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ROOTS = {"tinyhw": ROOT / "tinyhw", "tinyhw.drivers": ROOT / "drivers", "tinyhw.autogen": ROOT / "autogen"}
MOST_LINES, MOST_COLUMNS, MOST_FILES = 600, 150, 16

BASE = ("tinyhw.errors tinyhw.config tinyhw.dtype tinyhw.arithmetic tinyhw.trace tinyhw.helpers tinyhw.named_tuple "
        "tinyhw.data_class tinyhw.files tinyhw.threads tinyhw.http")
COMPILER = f"{BASE} tinyhw.uop tinyhw.codegen tinyhw.engine tinyhw.device"
MACHINE_ROOMS = {   # of machine: what each may import of the others
  "ir": "", "notation": "", "assembler": "ir notation", "select": "ir notation assembler", "allocate": "ir",
  "order": "ir", "verify": "ir", "model": "ir"}
# of an instruction set, below its target.py, capabilities.py and so on: what each may import of the others
ISA_ROOMS = {
  "rows": "", "table": "rows", "asm": "table", "model": "rows table asm", "macros": "table asm",
  "select": "table asm macros abi capabilities", "late": "table asm model macros"}
CODEGEN_ROOMS = {   # of codegen: what each may import of the others
  "kernel": "", "math": "", "render": "math", "transform": "kernel", "matrix": "kernel transform",
  "lower": "kernel transform math", "plan": "kernel transform matrix lower"}
# the sizes and rates of cards, by which codegen plans
CARDS = "tinyhw.machine.model.hardware tinyhw.machine.model.occupancy"
# of the engine: what each may import of the others
ENGINE_ROOMS = {"memory": "", "schedule": "memory", "run": "memory schedule"}
# above Tensor, loaded when they are asked for: what each may import of the others
ROOMS = {"functional": "", "complex": "functional", "special": "functional", "linalg": "functional",
         "fft": "functional complex", "distributions": "functional special linalg",
         "compat": "functional complex special linalg fft nn distributions"}
# A module follows the longest name that it begins with, and may import that name's own modules and what begins with the
# names on the right.
MAY_IMPORT = {name: names.split() for name, names in {
  **dict.fromkeys(BASE.split(), BASE),
  "tinyhw.autogen": "",
  "tinyhw.uop": BASE,
  "tinyhw.machine": f"{BASE} tinyhw.uop",
  **{f"tinyhw.machine.{room}": " ".join([f"{BASE} tinyhw.uop",
                                         *(f"tinyhw.machine.{other}" for other in others.split())])
     for room, others in MACHINE_ROOMS.items()},
  "tinyhw.isa": "",  # the registry: imports its folders by name
  **{f"tinyhw.isa.{folder.name}": f"{BASE} tinyhw.uop tinyhw.machine tinyhw.autogen"
     for folder in (ROOT / "tinyhw/isa").iterdir() if folder.is_dir()},
  **{f"tinyhw.isa.{folder.name}.{room}": " ".join([f"{BASE} tinyhw.uop tinyhw.machine tinyhw.autogen",
                                                   *(f"tinyhw.isa.{folder.name}.{other}" for other in others.split())])
     for folder in (ROOT / "tinyhw/isa").iterdir() if folder.is_dir() for room, others in ISA_ROOMS.items()},
  "tinyhw.codegen": f"{BASE} tinyhw.uop tinyhw.machine.ir.target tinyhw.machine.passes tinyhw.machine.ir.code",
  **{f"tinyhw.codegen.{room}": " ".join([f"{BASE} tinyhw.uop tinyhw.machine.ir.target tinyhw.machine.ir.code {CARDS}",
                                         *(f"tinyhw.codegen.{other}" for other in others.split())])
     for room, others in CODEGEN_ROOMS.items()},
  "tinyhw.device_interface": BASE,
  "tinyhw.device": f"{BASE} tinyhw.device_interface tinyhw.machine.ir.code",
  "tinyhw.engine": f"{BASE} tinyhw.uop tinyhw.codegen tinyhw.isa tinyhw.device tinyhw.machine.ir.code",
  **{f"tinyhw.engine.{room}": " ".join([f"{BASE} tinyhw.uop tinyhw.device tinyhw.engine.thread",
                                        *(f"tinyhw.engine.{other}" for other in others.split())])
     for room, others in ENGINE_ROOMS.items()},
  "tinyhw.engine.run": f"{BASE} tinyhw.uop tinyhw.codegen tinyhw.isa tinyhw.device tinyhw.machine.ir.code "
  f"tinyhw.engine",
  "tinyhw.engine.jit": "tinyhw.capture",   # a name of tinygrad's
  "tinyhw.drivers": f"{BASE} tinyhw.autogen tinyhw.device tinyhw.machine.ir.code",
  "tinyhw.selftest": "",
  "tinyhw.selftest.frame": f"{BASE} tinyhw.device",
  "tinyhw.selftest.tensors": f"{COMPILER} tinyhw.tensor tinyhw.capture tinyhw.selftest.frame",
  "tinyhw.selftest.command": f"{BASE} tinyhw.device tinyhw.isa tinyhw.selftest",
  **{f"tinyhw.drivers.{name}": f"{BASE} tinyhw.autogen tinyhw.drivers tinyhw.device tinyhw.machine.ir.code "
     f"tinyhw.selftest.frame"
     for name in ("gpu.selftest", "amd.selftest", "cpu.selftest", "metal.selftest", "nvidia.selftest")},
  "tinyhw.emulator": f"{BASE} tinyhw.uop tinyhw.machine tinyhw.isa tinyhw.autogen tinyhw.drivers",
  **dict.fromkeys(("tinyhw.tensor", "tinyhw.methods", "tinyhw.gradient"), f"{COMPILER} tinyhw.tensor tinyhw.methods "
                  f"tinyhw.gradient"),
  "tinyhw.capture": f"{COMPILER} tinyhw.tensor tinyhw.methods",
  **dict.fromkeys(("tinyhw.function", "tinyhw.nn", "tinyhw.llm"),
                  f"{COMPILER} tinyhw.tensor tinyhw.methods tinyhw.gradient tinyhw.function tinyhw.capture tinyhw.nn"),
  **{f"tinyhw.{room}": f"{COMPILER} tinyhw.tensor tinyhw.methods tinyhw.gradient " + " ".join(
       f"tinyhw.{other}" for other in others.split()) for room, others in ROOMS.items()},
  "tinyhw.methods.data.dlpack": f"{BASE} tinyhw.autogen",
  "tinyhw.viz": f"{COMPILER} tinyhw.machine",
  "tinyhw.selftest.doctor": f"{BASE} tinyhw.device tinyhw.isa",
  "tinyhw.__main__": "tinyhw",
  "tinyhw": f"{COMPILER} tinyhw.tensor tinyhw.capture tinyhw.function tinyhw.nn tinyhw.gradient",
}.items()}
FILES = {".".join((name, *path.relative_to(folder).with_suffix("").parts)).removesuffix(".__init__"): path
         for name, folder in ROOTS.items() for path in sorted(folder.rglob("*.py"))}

def within(module: str, names: list[str]) -> bool:
  return any(module == name or module.startswith(name + ".") for name in names)

def walk(node: ast.AST) -> Iterator[ast.AST]:
  """The nodes of a file but for what only type checkers see."""
  yield node
  if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
    children: Iterator[ast.AST] = iter(node.orelse)
  else: children = ast.iter_child_nodes(node)
  for child in children: yield from walk(child)

def imports(path: Path) -> Iterator[tuple[int, str]]:
  """(line, module) of each import that may run, those inside functions included.

  `from a import b` is a.b where that is a module, else a.
  """
  for node in walk(ast.parse(path.read_text(encoding="utf-8"))):
    if isinstance(node, ast.Import): yield from ((node.lineno, alias.name) for alias in node.names)
    if isinstance(node, ast.ImportFrom):
      base = node.module or ""
      yield from ((node.lineno, f"{base}.{alias.name}" if f"{base}.{alias.name}" in FILES else base)
                  for alias in node.names)

@pytest.mark.parametrize("module", FILES)
def test_imports_follow_the_layers(module: str) -> None:
  layer = max((name for name in MAY_IMPORT if within(module, [name])), key=len)
  assert layer != "tinyhw" or module == "tinyhw", (f"{module} has no layer: give it one in docs/design/layers.md, "
                                                   f"and in MAY_IMPORT")
  for line, name in imports(FILES[module]):
    top = name.split(".")[0]
    if top != "tinyhw":
      assert top in sys.stdlib_module_names, f"{FILES[module]}:{line} imports {name}: not in the standard library"
    else:
      assert within(name, [layer, *MAY_IMPORT[layer]]), (f"{FILES[module]}:{line} imports {name}: not allowed in "
                                                         f"layer {layer}")
    assert layer != "tinyhw.isa" or top != "tinyhw", f"{FILES[module]}:{line}: the registry imports nothing of tinyhw"
    own = ".".join(layer.split(".")[:3])
    inside = within(name, [own]) or layer in ("tinyhw.__main__", "tinyhw.emulator")
    assert inside or not name.startswith("tinyhw.isa."), (f"{FILES[module]}:{line} imports {name}: open it by its "
                                                          f"name in the registry")

# Pairs of a folder and its neighbour that import each other, each with its reason.
TWO_WAY = {
  ("tinyhw.capture", "tinyhw.engine"): "engine/jit.py is tinygrad's name of capture/jit.py",
  ("tinyhw.gradient", "tinyhw.methods"): "one layer: rules of gradients are built with methods/graph, and methods that "
                                         "have a gradient of their own name it",
  ("tinyhw.methods.base", "tinyhw.methods.data"): "a Tensor begins with data of the host, and prints it: parts of a "
                                                  "class, which base begins",
  ("tinyhw.uop.ops", "tinyhw.uop.symbolic"): "methods of a node call rules, which they load at their first use"}

def sibling_imports() -> dict[tuple[str, str], str]:
  """The imports between two neighbours in a folder, of which one is a folder: (importer, imported) -> an example."""
  found: dict[tuple[str, str], str] = {}
  for module, path in FILES.items():
    for line, name in imports(path):
      own, other = module.split("."), name.split(".")
      same = next((k for k, (a, b) in enumerate(zip(own, other)) if a != b), None)
      if same is None or name not in FILES: continue
      pair = ".".join(own[:same + 1]), ".".join(other[:same + 1])
      if any(FILES[one].name == "__init__.py" for one in pair):
        found.setdefault(pair, f"{path.relative_to(ROOT)}:{line} imports {name}")
  return found

def test_neighbours_import_each_other_one_way() -> None:
  found = sibling_imports()
  both = {pair: (found[pair], found[pair[::-1]]) for pair in found if pair[0] < pair[1] and pair[::-1] in found}
  assert set(both) == set(TWO_WAY), {pair: both.get(pair, "is one way now: take it from the list")
                                     for pair in set(both) ^ set(TWO_WAY)}

# data
@pytest.mark.parametrize("module", [name for name in FILES if not name.startswith("tinyhw.autogen")
                                    and FILES[name].name != "table.py"])
def test_files_are_of_readable_size(module: str) -> None:
  lines = FILES[module].read_text(encoding="utf-8").splitlines()
  assert len(lines) <= MOST_LINES, f"{FILES[module]} has {len(lines)} lines: is it two things?"
  wide = [i for i, line in enumerate(lines, 1) if len(line) > MOST_COLUMNS]
  assert not wide, f"{FILES[module]}: lines {wide} exceed {MOST_COLUMNS} columns"

@pytest.mark.parametrize("folder", sorted({path.parent for path in FILES.values()}),
                         ids=lambda folder: str(folder.relative_to(ROOT)))
def test_folders_are_rooms(folder: Path) -> None:
  """A reader sees the contents of a folder at one glance. An `__init__.py` is the folder itself."""
  names = sorted(path.name for path in folder.glob("*.py") if path.name != "__init__.py")
  assert len(names) <= MOST_FILES, (f"{folder} has {len(names)} files: give it rooms, and a page of docs/design/ a "
                                    f"table of them")

# Not of the folder's contents: commands that README gives to users, fixtures, and the test of an `__init__.py`.
NOT_COUNTED = {"run.py", "suite.py", "silicon.py", "conftest.py", "test_init.py"}
SHOWN = (".py", ".md", ".txt", ".svg")
LARGE = {   # folders with more files than a reader sees at one glance
  "test/golden": "recorded data, a file for each tool and target",
  "test/bench": "a file for each command that prints a table",
  "test/programs": "nine programs, each with its twin in PyTorch beside it",
  "docs/reference": "written from docstrings, a page for each module"}

@pytest.mark.parametrize("top", ("test", "docs"))
def test_folders_of_tests_and_pages_are_rooms(top: str) -> None:
  counts = {str(folder.relative_to(ROOT)): sum(path.suffix in SHOWN and path.name not in NOT_COUNTED
                                               for path in folder.iterdir())
            for folder in (ROOT / top, *(ROOT / top).rglob("*/"))}
  large = {name: count for name, count in counts.items() if count > MOST_FILES}
  assert set(large) == {name for name in LARGE if name.startswith(top)}, f"give these rooms, or LARGE a reason: {large}"

def test_import_tinyhw_loads_neither_tables_nor_drivers() -> None:
  program = "import sys; before = set(sys.modules); import tinyhw; print(*sorted(set(sys.modules) - before))"
  loaded = subprocess.run([sys.executable, "-I", "-S", "-c", f"import sys; sys.path.insert(0, {str(ROOT)!r}); "
                           f"{program}"], check=True,
                          capture_output=True, text=True).stdout.split()
  forbidden = [m for m in loaded if m == "ctypes" or within(m, ["tinyhw.drivers", "tinyhw.autogen"])
               or m.startswith("tinyhw.isa.")]
  foreign = [m for m in loaded if m.split(".")[0].lstrip("_") != "tinyhw"
             and m.split(".")[0] not in sys.stdlib_module_names]
  assert not forbidden and not foreign, f"import tinyhw loads {forbidden + foreign}"

# Tables, whose rows the tests of what reads them execute or compare with the manual, and what is made by a command that
# has a test.
WITHOUT_A_TEST = {"tinyhw.autogen.cpu_ring", "tinyhw.autogen.x86_runtime", "tinyhw.autogen.arm64_runtime",
                  "tinyhw.autogen.riscv64_runtime",
                  "tinyhw.isa.arm64.model.latency_cores", "tinyhw.isa.riscv64.model.latency_cores",
                  "tinyhw.isa.x86.model.latency_intel",
                  "tinyhw.isa.x86.model.latency_zen",
                  *(f"tinyhw.isa.x86.rows.{name}" for name in ("avx512", "floats", "integer", "packed", "tiles")),
                  *(f"tinyhw.isa.arm64.rows.{name}" for name in (
                    "branch", "crypto", "float_vector", "integer", "integer_vector", "memory", "memory_vector",
                    "scalar", "sve2", "sve_float", "sve_integer", "sve_memory", "sve_predicate")),
                  *(f"tinyhw.isa.riscv64.rows.{name}" for name in ("floats", "integer", "vector")),
                  *(f"tinyhw.isa.amd.rows.{name}" for name in (
                    "compare", "dual", "lds", "matrix", "memory", "packed", "scalar", "scaled", "vector", "vector3")),
                  *(f"tinyhw.isa.sass.rows.{name}" for name in ("control", "floats", "integer", "matrix", "memory",
                                                                "uniform")),
                  *(f"tinyhw.isa.sass.macros.{name}" for name in ("floats", "integer", "memory"))}

def test_each_source_file_has_a_test_file_of_its_name() -> None:
  """tinyhw/a/b.py: test/a/test_b.py; drivers/b.py: test/drivers/test_b.py; a package's own code: test_init.py."""
  missing = {}
  for module, path in FILES.items():
    top, *folders = path.relative_to(ROOT).parent.parts
    name = "init" if path.stem == "__init__" else path.stem.strip("_")
    wanted = ROOT.joinpath("test", *([] if top == "tinyhw" else [top]), *folders, f"test_{name}.py")
    if path.stat().st_size and not wanted.exists(): missing[module] = str(wanted.relative_to(ROOT))
  assert set(missing) == WITHOUT_A_TEST, {module: missing.get(module, "has a test now")
                                          for module in set(missing) ^ WITHOUT_A_TEST}
