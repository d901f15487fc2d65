"""README.md and docs/: their examples run and print the shown output, named files exist, and generated parts are up to
date.

The ```python blocks of a document run in order, in one namespace and one process. A ```text block that follows one is
what it prints. After a change of the compiler, `python3 test/pages/test_docs.py` writes outputs and generated parts
anew; the diff is then reviewed.
"""
from __future__ import annotations
import contextlib
import importlib
import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import evidence
import pass_table
import onnx_counts
import pytorch_names
import reference
import suite

from tinyhw.config import documentation
from tinyhw.device import Device
from tinyhw.errors import TinyError

ROOT = Path(__file__).resolve().parents[2]
ELSEWHERE = {"new-accelerator.md"}   # has a test of its own, test/examples/test_toy_accelerator.py
DOCUMENTS = [ROOT / "README.md", *sorted(path for path in (ROOT / "docs").rglob("*.md") if path.name not in ELSEWHERE
                                         and path.parent != ROOT / reference.FOLDER)]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.M | re.S)
LINK = re.compile(r"\]\(([^)#:]+)\)")
NAMED_FILE = re.compile(r"`((?:tinyhw|drivers|autogen|test|examples|docs)/[\w/.-]+\.(?:py|md|txt))`")
GENERATED = "(<!-- {0}: .*? -->\\n).*?(<!-- end of {0} -->)"   # a part of a document that `with_tables` writes
ENVIRONMENT = {"DEV": "CPU", "THREADS": "2", "CACHE": "0", "PATH": os.environ.get("PATH", ""), "PYTHONPATH": str(ROOT),
               "PYTHONUTF8": "1"}

class Example(NamedTuple):
  """A python block: its first line, its text, and where in the document the expected output stands (None: it is not
  compared)."""
  line: int
  source: str
  output: tuple[int, int] | None

def examples(document: str) -> list[Example]:
  """The python blocks of a document, each with the text block behind it if nothing but blank lines is between them."""
  found: list[Example] = []
  end = -1
  for fence in FENCE.finditer(document):
    if fence[1] == "python": found.append(Example(document.count("\n", 0, fence.start(2)) + 1, fence[2], None))
    elif fence[1] == "text" and found and end >= 0 and not document[end:fence.start()].strip():
      found[-1] = found[-1]._replace(output=fence.span(2))
    end = fence.end() if fence[1] == "python" else -1
  return found

def name_of(path: Path) -> str:
  """Return the path below docs/ or, for README.md, below the root."""
  return path.relative_to(ROOT).as_posix().removeprefix("docs/")

def run_here(path: Path) -> list[str]:
  """Return the output of a document's blocks, in this process."""
  namespace: dict[str, object] = {"__name__": "__main__"}
  printed = []
  for example in examples(path.read_text(encoding="utf-8")):
    out = io.StringIO()
    code = compile("\n" * (example.line - 1) + example.source, str(path.relative_to(ROOT)), "exec")
    with contextlib.redirect_stdout(out): exec(code, namespace)
    printed.append("".join(line.rstrip() + "\n" for line in out.getvalue().splitlines()))
  return printed

def run_apart(path: Path) -> list[str]:
  """Return the output of a document's blocks, in a new process with fixed settings."""
  done = subprocess.run([sys.executable, __file__, "--run", str(path)], cwd=ROOT, env=ENVIRONMENT, capture_output=True,
                        text=True, timeout=120)
  assert done.returncode == 0, f"{path.name}:\n{done.stderr}"
  printed: list[str] = json.loads(done.stdout)
  return printed

def environment_page() -> str:
  """docs/guide/environment.md."""
  rows = "".join(f"| `{key}` | {json.dumps(default) if default != '' else 'empty'} | "
                 f"{meaning.replace('|', chr(92) + '|')} |\n"
                 for key, _, default, meaning in documentation())
  return ("# Environment variables\n\n"
          "All variables that tinyhw reads, in order of declaration. Written by `python3 test/pages/test_docs.py` from "
          "`tinyhw/config.py`; do not edit.\n"
          "`with Context(DEBUG=2):` sets one for a while, in one thread or task.\n\n"
          f"| variable | default | meaning |\n|---|---|---|\n{rows}")

def rows_of(document: str) -> Iterator[dict[str, str]]:
  """The rows of a document's tables, by the names of their columns."""
  names: list[str] | None = None
  for line in document.splitlines():
    cells = [cell.strip() for cell in line.strip("|").split("|")] if line.startswith("|") else None
    if cells is None: names = None
    elif names is None: names = cells
    elif set(line) - set("|- "): yield dict(zip(names, cells))

def speed_table() -> str:
  """Return README's speed table: a part of the columns of docs/performance.md."""
  rows = [row for row in rows_of((ROOT / "docs/performance.md").read_text(encoding="utf-8")) if "bar" in row]
  lines = []
  for row in rows:
    values = [row["tinyhw"], row.get("ratio") or "—", row["verdict"]]
    if row["tinyhw"] == "—": values = ["not measured yet", "—", "—"]
    lines.append(f"| {row['case']} | {row['bar']} | {' | '.join(values)} |\n")
  return "| case | bar | tinyhw | ratio | verdict |\n|---|---|---|---|---|\n" + "".join(lines)

def with_tables(path: Path) -> str:
  """A document with its generated parts up to date."""
  document = path.read_text(encoding="utf-8")
  for name, made in TABLES.get(name_of(path), {}).items():
    document, found = re.subn(GENERATED.format(name), lambda found, made=made: found[1] + made() + found[2], document,
                              flags=re.S)
    assert found == 1, f"{path.name} has no place for its table of {name}"
  return document

TABLES: dict[str, dict[str, Callable[[], str]]] = {   # the generated parts of documents
  "README.md": {"evidence": evidence.table, "speed": speed_table}, "hardware/emulator.md": {"suite": suite.table},
  "design/passes.md": pass_table.TABLES, "guide/compat-torch.md": pytorch_names.TABLES,
  "design/models.md": onnx_counts.TABLES}

def has_cpu() -> bool:
  try: return bool(Device["CPU"].arch)
  except TinyError: return False

@pytest.mark.parametrize("path", [path for path in DOCUMENTS if "```python" in path.read_text(encoding="utf-8")],
                         ids=name_of)
def test_examples_run_and_print_what_stands_there(path: Path) -> None:
  document = path.read_text(encoding="utf-8")
  if not has_cpu(): pytest.skip("the CPU device does not open here")
  for example, printed in zip(examples(document), run_apart(path), strict=True):
    if example.output is None: continue
    expected = document[slice(*example.output)]
    assert printed == expected, (f"{path.name}, line {example.line}: run python3 test/pages/test_docs.py and review "
                                 "the diff")

@pytest.mark.parametrize("path", DOCUMENTS, ids=name_of)
def test_files_that_are_named_exist(path: Path) -> None:
  document = path.read_text(encoding="utf-8")
  missing = [name for name in LINK.findall(document) if not (path.parent / name).exists()]
  missing += [name for name in NAMED_FILE.findall(document) if not (ROOT / name).exists()]
  assert not missing

def test_environment_page_lists_every_variable() -> None:
  assert (ROOT / "docs/guide/environment.md").read_text(encoding="utf-8") == environment_page()

@pytest.mark.parametrize("path", [path for path in DOCUMENTS if name_of(path) in TABLES], ids=name_of)
def test_generated_tables_are_up_to_date(path: Path) -> None:
  assert path.read_text(encoding="utf-8") == with_tables(path)

DESIGN = [path.read_text(encoding="utf-8") for path in sorted((ROOT / "docs/design").glob("*.md"))]
CONSTANTS = [(row["constant"].strip("`"), row["value"])
             for page in DESIGN for row in rows_of(page) if "constant" in row]

@pytest.mark.parametrize("name,value", CONSTANTS, ids=[name for name, _ in CONSTANTS])
def test_constants_have_the_values_of_the_design_pages(name: str, value: str) -> None:
  module, _, constant = name.rpartition(".")
  assert str(getattr(importlib.import_module(f"tinyhw.{module}"), constant)) == value

def test_commands_of_the_performance_page_exist() -> None:
  page = (ROOT / "docs/performance.md").read_text(encoding="utf-8")
  assert all((ROOT / name).exists() for name in re.findall(r"python3 ([\w/]+\.py)", page))

def test_output_belongs_to_the_block_before_it() -> None:
  text = "```python\nprint(1)\n```\n\n```text\n1\n```\nwords\n```python\n2\n```\nwords\n```text\n3\n```\n"
  first, second = examples(text)
  assert (first.line, first.source, second.line, second.output) == (2, "print(1)\n", 10, None)
  assert first.output is not None and text[slice(*first.output)] == "1\n"

def rewrite(path: Path) -> None:
  """Put into a document what its blocks print."""
  document = path.read_text(encoding="utf-8")
  shown = examples(document)
  for example, printed in reversed(list(zip(shown, run_apart(path) if shown else []))):
    if example.output is not None: document = document[:example.output[0]] + printed + document[example.output[1]:]
  path.write_text(document, encoding="utf-8")

def write_all() -> Iterator[Path]:
  for path in DOCUMENTS: path.write_text(with_tables(path), encoding="utf-8")
  (ROOT / "docs/guide/environment.md").write_text(environment_page(), encoding="utf-8")
  (ROOT / reference.FOLDER).mkdir(exist_ok=True)
  for name, text in reference.pages().items():
    (ROOT / name).write_text(text, encoding="utf-8")
    yield ROOT / name
  for path in DOCUMENTS:
    rewrite(path)
    yield path

if __name__ == "__main__":
  if sys.argv[1:2] == ["--run"]: sys.stdout.write(json.dumps(run_here(Path(sys.argv[2]))))
  else: print(*write_all(), sep="\n")
