"""Checks that each value of a graph is computed before a node uses it."""
from __future__ import annotations
from collections.abc import Sequence
from typing import Any

from tinyhw.errors import FileFormatError
from tinyhw.nn.onnx.parser import where_of

def check_inputs(nodes: Sequence[dict[str, Any]], index: int, scopes: Sequence[set[str]]) -> None:
  """Raise FileFormatError if a node uses a name that is in none of the scopes: of the values before it."""
  for name in nodes[index]["input"]:
    if name and not any(name in scope for scope in scopes):
      raise FileFormatError(f"{where_of(nodes[index])} uses {name!r}, which {_why(nodes, index, name)}")

def check_outputs(names: Sequence[str], where: str, scopes: Sequence[set[str]]) -> None:
  """Raise FileFormatError if a result of a graph is not computed."""
  for name in names:
    if name and not any(name in scope for scope in scopes):
      raise FileFormatError(f"{where} uses {name!r}, which nothing before it computes")

def _why(nodes: Sequence[dict[str, Any]], index: int, name: str) -> str:
  """Say why a name is not there: nothing computes it, a later node does, or the node itself has a part in it."""
  makers = {output: i for i, node in enumerate(nodes) for output in node["output"]}
  if makers.get(name, -1) < index: return "nothing before it computes"
  if makers[name] == index: return "is its own result"
  path = _cycle(nodes, makers, index, name)
  if path: return f"depends on the node itself: {' <- '.join(path)}; a graph has no cycles, Loop and Scan have bodies"
  return f"{where_of(nodes[makers[name]])} computes later; sort the nodes, each after those that it uses"

def _cycle(nodes: Sequence[dict[str, Any]], makers: dict[str, int], index: int, name: str) -> list[str]:
  """Return the names from one that a node uses back to a result of that node. Empty if there is no such path."""
  own, before, queue = set(nodes[index]["output"]), {name: ""}, [name]
  for used in queue:
    for source in nodes[makers[used]]["input"] if used in makers else ():
      if source in before: continue
      before[source] = used
      queue.append(source)
      if source in own:
        path = [source]
        while before[path[-1]]: path.append(before[path[-1]])
        return path[::-1]
  return []
