"""The table of docs/design/models.md, made from the recorded counts of ONNX's backend tests."""
from __future__ import annotations
import json
from pathlib import Path

RECORD = Path(__file__).resolve().parents[1] / "oracles/onnx_backend.json"

def counts() -> str:
  """What test/oracles/onnx_backend.py counted last."""
  found = json.loads(RECORD.read_text(encoding="utf-8"))
  rows = "".join(f"| {key} | {value:,} |\n" for key, value in found.items() if key not in ("onnx", "date"))
  return f"onnx {found['onnx']}, {found['date']}:\n\n| | count |\n|---|---|\n{rows}"

TABLES = {"counts": counts}
