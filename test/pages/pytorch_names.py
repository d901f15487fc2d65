"""The tables of docs/guide/compat-torch.md, made from the tables that the code reads, and from the recorded counts."""
from __future__ import annotations
import json
from pathlib import Path

from tinyhw.compat.torch.table import TABLE
from tinyhw.methods.names import NAMES

TITLES = {"": "torch", "@": "modes and settings of torch", "methods": "methods of torch.Tensor alone"}
SHOWN = 30   # names in a row
RECORD = Path(__file__).resolve().parents[1] / "oracles/torch_ops.json"

def parameters() -> str:
  """The methods of Tensor whose parameters have PyTorch's names, too."""
  groups: dict[str, list[str]] = {}
  for method, names in NAMES.items():
    groups.setdefault(", ".join(f"`{theirs}` = `{ours}`" for theirs, ours in sorted(names.items())), []).append(method)
  rows = "".join(f"| {', '.join(f'`{m}`' for m in methods)} | {names} |\n" for names, methods in groups.items())
  return f"| method of Tensor | PyTorch's name = ours |\n|---|---|\n{rows}"

def functions() -> str:
  """The names of each namespace."""
  parts = []
  for namespace, rows in TABLE.items():
    names = sorted(name for name in rows if not name.startswith("_"))
    if not names: continue
    title = TITLES.get(namespace, f"torch.{namespace}")
    for begin in range(0, len(names), SHOWN):
      row = names[begin:begin + SHOWN]
      parts.append(f"| {title if not begin else ''} | {', '.join(f'`{name}`' for name in row)} |\n")
  return f"| namespace | names |\n|---|---|\n{''.join(parts)}"

def counts() -> str:
  """What test/oracles/torch_ops.py counted last."""
  many = json.loads(RECORD.read_text(encoding="utf-8"))
  keys = ("operators", "whole", "close", "part", "none", "absent", "operators with a wrong sample", "samples", "agree",
          "agree loosely", "wrong")
  rows = ""
  for title, found in many.items():
    share = found.get("samples of an operator, at most")
    loose = next(key for key in found if key.startswith("agree "))
    cells = [f"{found[key]:,}" if key != "agree loosely" else f"{found[loose]} {loose.removeprefix('agree ')}"
             for key in keys]
    rows += f"| {title}{f', at most {share} samples' if share else ''} | {found['date']} | {' | '.join(cells)} |\n"
  version = ", ".join(sorted({found["torch"] for found in many.values()}))
  return f"PyTorch {version}:\n\n| judged | date | {' | '.join(keys)} |\n{'|---' * (len(keys) + 2)}|\n{rows}"

TABLES = {"parameters": parameters, "functions": functions, "counts": counts}
