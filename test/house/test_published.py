"""The rule of the whole tree that what threads share is published whole (`once` of tinyhw/threads.py)."""
import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sorted(path for folder in ("tinyhw", "drivers", "autogen") for path in (ROOT / folder).rglob("*.py"))
CHANGES = frozenset({"append", "add", "update", "setdefault", "extend", "insert", "pop", "appendleft", "remove",
                     "discard", "clear", "sort"})

def _is_fresh(value: ast.expr) -> bool:
  """Is it a container or an object that is filled later?"""
  return isinstance(value, (ast.Dict, ast.List, ast.Set, ast.DictComp, ast.ListComp, ast.SetComp, ast.Call))

def _shared_names(tree: ast.Module) -> set[str]:
  """What all threads see: the file's own variables, but for constants' classes and functions."""
  targets = [t for s in tree.body if isinstance(s, (ast.Assign, ast.AnnAssign))
             for t in (s.targets if isinstance(s, ast.Assign) else [s.target])]
  return {t.id for t in targets if isinstance(t, ast.Name)}

def _changed_at(function: ast.FunctionDef, name: str, after: int) -> int:
  """The first line behind `after` that changes what a name (as text) stands for; 0: none."""
  found = []
  for node in ast.walk(function):
    line = getattr(node, "lineno", 0)
    if line < after: continue
    if (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in CHANGES
        and ast.unparse(node.func.value) == name):
      found.append(line)
    if isinstance(node, (ast.Subscript, ast.Attribute)) and isinstance(node.ctx,
                                                                       ast.Store) and ast.unparse(node.value) == name:
      found.append(line)
  return min(found, default=0)

def published_early(tree: ast.Module) -> Iterator[tuple[int, str]]:
  """(line, text) of each assignment that puts a container where others find it, while the function goes on to change
  it.

  Where others find it: a global variable, a place in one, and a place in an attribute of an object (`self.known[key]`),
  as tables have them.
  """
  shared = _shared_names(tree)
  for function in [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name != "__init__"]:
    declared = {name for node in ast.walk(function) if isinstance(node, ast.Global) for name in node.names}
    for node in ast.walk(function):
      if not isinstance(node, ast.Assign) or not _is_fresh(node.value): continue
      outside = [t for t in node.targets if isinstance(t, ast.Name) and t.id in declared
                 or isinstance(t, ast.Subscript)
                 and (isinstance(t.value, ast.Attribute) or isinstance(t.value, ast.Name) and t.value.id in shared)]
      if outside and any(_changed_at(function, ast.unparse(t), node.end_lineno + 1)
                         for t in node.targets):  # type: ignore[operator]  # it has one
        yield node.lineno, ast.unparse(node)

def filled_in_place(tree: ast.Module) -> Iterator[tuple[int, str]]:
  """(line, text) of each `if not TABLE: ...`: whoever comes second finds a table that is not empty, and not full."""
  shared = _shared_names(tree)
  for function in [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]:
    for node in ast.walk(function):
      if not isinstance(node, ast.If) or not isinstance(node.test,
                                                        ast.UnaryOp) or not isinstance(node.test.op, ast.Not):
        continue
      if isinstance(node.test.operand, ast.Name) and node.test.operand.id in shared and node.test.operand.id.isupper():
        if not isinstance(node.body[0], (ast.Return, ast.Raise)): yield node.lineno, ast.unparse(node.test)

def made_twice(tree: ast.Module) -> Iterator[tuple[int, str]]:
  """Yield (line, text) of each `x = TABLE[key] = ...` in a global table. Two threads would each keep their own;
  setdefault gives both the first."""
  shared = _shared_names(tree)
  for function in [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]:
    for node in ast.walk(function):
      if isinstance(node, ast.Assign) and len(node.targets) > 1:
        if any(isinstance(t, ast.Subscript) and isinstance(t.value, ast.Name) and t.value.id in shared
               for t in node.targets):
          yield node.lineno, ast.unparse(node)
      if isinstance(node, ast.If) and isinstance(node.test, ast.Compare) and isinstance(node.test.ops[0], ast.NotIn):
        table, body = node.test.comparators[0], node.body[0]
        targets = body.targets if isinstance(body, ast.Assign) else []
        places = [ast.unparse(t.value) for t in targets if isinstance(t, ast.Subscript)]
        if isinstance(table, ast.Name) and table.id in shared and table.id in places:
          yield node.lineno, ast.unparse(body)

BAD = """
KNOWN = {}
def early(key):
  found = KNOWN[key] = {}
  found[1] = 2
def in_an_object(self, key):
  self.known[key] = []
  for x in key: self.known[key].append(x)
def sorted_later(self, key):
  found = self.known[key] = list(key)
  found.sort()
def two(key):
  found = KNOWN[key] = str(key)
  return found
def fill():
  if not KNOWN: index()
def absent(key):
  if key not in KNOWN: KNOWN[key] = str(key)
  return KNOWN[key]
"""

def test_the_rules_are_found_to_be_broken() -> None:
  tree = ast.parse(BAD)
  assert [line for line, _ in published_early(tree)] == [4, 7, 10]
  assert [line for line, _ in made_twice(tree)] == [4, 13, 18]
  assert [line for line, _ in filled_in_place(tree)] == [16]

# What only one thread at a time can reach, and why.
GUARDED = {
  "drivers/amd/kfd.py: found = _connections[key] = Kfd(box)": "a connection opens files, so none is made in vain: "
  "Device._lock is held",
  "drivers/nvidia/rm.py: found = _connections[key] = RmClient(box)": "the same",
  "tinyhw/engine/schedule/schedule.py: made = _schedules[canonical.roots] = make_schedule(canonical.roots)":
  "engine.lock is held",
  "tinyhw/uop/evaluate/execute.py: kernel.together[store] = groups.setdefault(ranges_of_store(store), [])":
  "a kernel that is being made",
}

@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_shared_tables_are_published_whole(path: Path) -> None:
  tree = ast.parse(path.read_text(encoding="utf-8"))
  found = [*published_early(tree), *filled_in_place(tree), *made_twice(tree)]
  found = [(line, text) for line, text in found if f"{path.relative_to(ROOT).as_posix()}: {text}" not in GUARDED]
  assert not found, "\n".join(f"{path}:{line}: {text}: make it whole, then publish it with setdefault"
                              for line, text in found)

PERSISTENT = ("isa", "machine")   # their results are compared with `is`

@pytest.mark.parametrize("folder", PERSISTENT)
def test_what_is_compared_with_is_comes_from_once(folder: str) -> None:
  for path in (ROOT / "tinyhw" / folder).rglob("*.py"):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
      if not isinstance(node, ast.FunctionDef): continue
      texts = [ast.unparse(decorator) for decorator in node.decorator_list]
      assert not [t for t in texts if t.endswith((".cache", "lru_cache(None)",
                                                  "lru_cache(maxsize=None)"))], f"{path}: {node.name}: use @once"
