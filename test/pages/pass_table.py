"""The tables of docs/design/passes.md: the passes of all stages, from the lists in the code.

    python3 test/pages/pass_table.py

A row has the name of a pass, the first sentence of its function's docstring, and its file. The passes of a schedule
come from the docstring of schedule.py. test/pages/test_docs.py compares the page with the tables.
"""
from __future__ import annotations
import importlib
import inspect
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FunctionType
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tinyhw.codegen import passes as codegen
from tinyhw.engine.schedule import schedule as scheduling
from tinyhw.machine.ir.target import Target
from tinyhw.machine.passes import PASSES as MACHINE, steps

LOWER = Path(__file__).resolve().parents[2] / "tinyhw/codegen/lower"
# the column of each instruction set, and architectures that have all of its hooks
SETS = {"x86": ("x86_64:avx2",), "amd": ("gfx942", "gfx1100"), "sass": ("sm_80", "sm_90")}

def first_sentence(text: str | None) -> str:
  """Return the first sentence of a docstring, as a cell."""
  sentence = re.split(r"(?<=[.])\s", " ".join((text or "").split()), maxsplit=1)[0]
  return sentence.rstrip(".").replace("|", "\\|")

def file_of(function: Callable[..., Any]) -> str: return f"`{function.__module__.replace('.', '/')}.py`"

def functions_of(step: codegen.Pass | codegen.ListPass) -> list[Callable[..., Any]]:
  """Return the functions that a pass calls, the main one first: the one in the file of the pass's name."""
  assert isinstance(step.run, FunctionType)
  names = step.run.__code__.co_names
  if step.run.__module__ == codegen.__name__ and step.run.__name__ == step.name:   # it imports its modules late
    modules = [importlib.import_module(f"tinyhw.codegen.lower.{path.stem}")
               for path in map(LOWER.joinpath, [f"{name}.py" for name in names]) if path.exists()]
    return [function for module in modules for name in names if inspect.isfunction(function := vars(module).get(name))
            and function.__module__ == module.__name__]
  called = [vars(codegen).get(name) for name in names]
  found = [function for function in called if inspect.isfunction(function)] or [step.run]
  return sorted(found, key=lambda function: function.__name__ != step.name)

def schedule_table() -> str:
  """Return the passes from a tensor graph to a schedule."""
  assert scheduling.__doc__ is not None
  listed = re.findall(r"^- (\w+): (.*(?:\n  .*)*)", scheduling.__doc__, re.M)
  recorded = set(re.findall(r'passed\("(\w+)"', inspect.getsource(scheduling.make_schedule)))
  assert recorded <= {name for name, _ in listed}, "a pass of make_schedule is not in the docstring of schedule.py"
  def rows() -> Iterator[str]:
    for name, text in listed:
      file = re.search(r" \((\w+\.py)\)\.?", text)
      what = first_sentence(text.replace(file[0], ".") if file else text)
      yield f"| `{name}` | {what} | `tinyhw/engine/schedule/{file[1] if file else 'schedule.py'}` |\n"
  return "| pass | effect | file |\n|---|---|---|\n" + "".join(rows())

def codegen_table() -> str:
  """Return the passes from an optimised kernel to a Program."""
  def rows() -> Iterator[str]:
    for step in codegen.PASSES: yield row(step.name, functions_of(step), "kernel → kernel")
    yield row("linearize", [codegen.linearize], "kernel → list")
    for late in codegen.LIST_PASSES:
      yield row(late.name, functions_of(late), f"list → list, {'GPUs' if late.has_lanes else 'CPUs'}")
  def row(name: str, functions: list[Callable[..., Any]], kind: str) -> str:
    files = list(dict.fromkeys(map(file_of, functions)))
    return f"| `{name}` | {kind} | {first_sentence(functions[0].__doc__)} | {', '.join(files)} |\n"
  return "| pass | in → out | effect | file |\n|---|---|---|---|\n" + "".join(rows())

def machine_table() -> str:
  """Return the passes and hooks from selected to laid out code, with the instruction sets that have them."""
  found: dict[tuple[str, str], tuple[list[Any], set[str]]] = {}
  order: list[tuple[str, str]] = []
  for name, archs in SETS.items():
    for arch in archs:
      at = 0
      for step, function, place in steps(target_of(name, arch)):
        key = step, place
        if key in found: at = order.index(key) + 1
        else:
          order.insert(at, key)
          found[key], at = ([], set()), at + 1
        found[key][0].append(function)
        found[key][1].add(name)
  lines = ["| pass or hook | position | for | effect | file |\n|---|---|---|---|---|\n"]
  for step, place in order:
    functions, sets = found[step, place]
    files = dict.fromkeys(map(file_of, functions))
    who = "all" if step in MACHINE else ", ".join(name for name in SETS if name in sets)
    position = f"`{place}`" if place else "pass"
    lines.append(f"| `{step}` | {position} | {who} | {first_sentence(functions[0].__doc__)} | "
                 f"{', '.join(files)} |\n")
  return "".join(lines)

def target_of(name: str, arch: str) -> Target:
  """Return the Target of an architecture."""
  made: Target = importlib.import_module(f"tinyhw.isa.{name}.target").target(arch)
  return made

TABLES = {"schedule": schedule_table, "codegen": codegen_table, "machine": machine_table}

if __name__ == "__main__":
  for make in TABLES.values(): sys.stdout.write(make() + "\n")
