"""Descriptions of rules."""
from functools import partial
from pathlib import Path

from tinyhw.uop.symbolic import symbolic
from tinyhw.viz.rules import MOST_LINES, Rules, describe, short_path

ROOT = Path(__file__).resolve().parent.parent.parent

def test_a_rule_of_the_package() -> None:
  found = describe(symbolic.canonical_sum.function)
  assert (found["name"] == "canonical_sum" and found["file"] == "tinyhw/uop/symbolic/symbolic.py"
          and " ".join(found["doc"].split()) in " ".join(found["source"].split()))
  assert (ROOT / found["file"]).read_text().splitlines()[found["line"] - 1] == found["source"].splitlines()[0]

def test_all_rules_of_symbolic_can_be_described() -> None:
  for _, function in symbolic.symbolic.patterns:
    found = describe(function)
    assert found["name"] and found["line"] > 0 and found["source"], found

def test_what_has_no_source() -> None:
  namespace: dict[str, object] = {}
  exec(compile("def typed(x): return 'text'", "<typed in>", "exec"), namespace)
  typed = namespace["typed"]
  assert callable(typed) and describe(typed) == {"name": "typed", "file": "<typed in>", "line": 1, "doc": "",
                                                 "source": ""}
  assert describe(partial(print))["name"].startswith("functools.partial")

def test_code_of_walks_and_long_functions() -> None:
  def walk() -> None: raise NotImplementedError
  assert describe(walk.__code__)["name"].endswith("walk")
  assert len(describe(__import__("argparse").ArgumentParser._parse_known_args)["source"].splitlines()) == MOST_LINES + 1

def test_numbers() -> None:
  rules = Rules()
  assert [rules.number(f) for f in (describe, short_path, describe)] == [0, 1, 0]
  assert [r["name"] for r in rules.described] == ["describe", "short_path"]
  assert short_path("/elsewhere/a.py") == "/elsewhere/a.py"
