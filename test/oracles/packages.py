"""The packages that an oracle needs, which the extra `oracles` has."""
from __future__ import annotations
import importlib.util

def are_missing(*names: str) -> bool:
  """Say which packages are not installed."""
  missing = [name for name in names if importlib.util.find_spec(name) is None]
  if missing: print(f"nothing is judged: {', '.join(missing)} is not installed; pip install .[oracles]")
  return bool(missing)
