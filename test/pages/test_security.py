"""SECURITY.md: each promise names a test that exists, and the sections that it must have are there."""
from __future__ import annotations
import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| (?!promise \||---)(.*?) \| (.*?) \|$", TEXT, re.M)

@pytest.mark.parametrize("promise, named", ROWS, ids=[named for _, named in ROWS])
def test_each_promise_has_its_tests(promise: str, named: str) -> None:
  for one in named.split(", "):
    found = re.fullmatch(r"`(test/[\w/]+\.py)::(test_\w+)`", one)
    assert found is not None, f"{promise}: {one} names no test"
    tests = {node.name for node in ast.walk(ast.parse((ROOT / found[1]).read_text(encoding="utf-8")))
             if isinstance(node, ast.FunctionDef)}
    assert found[2] in tests, f"{promise}: {found[1]} has no {found[2]}"

def test_what_it_states() -> None:
  sections = re.findall(r"^## (.*)$", TEXT, re.M)
  assert ({"Files", "Servers", "Threads", "Caches"} <= set(sections) and "**To report**" in TEXT
          and "**Not promised**" in TEXT)
  for section, body in zip(sections, TEXT.split("\n## ")[1:]):
    assert "| promise | test |" in body, f"{section} promises nothing"
  assert sum(named.count("::") for _, named in ROWS) == TEXT.count("::test_"), "a row that is not read as one"

def test_the_readme_leads_there() -> None:
  assert "(SECURITY.md)" in (ROOT / "README.md").read_text(encoding="utf-8")
