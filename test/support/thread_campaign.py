"""Runs test/campaigns/threads.py, a little of it, with a seed that changes from day to day."""
from __future__ import annotations
import datetime
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CAMPAIGN = ROOT / "test/campaigns/threads.py"
SEED = datetime.date.today().toordinal()

def campaign(*arguments: str) -> None:
  """Assert that it finds nothing; the message is the command that repeats it."""
  done = subprocess.run([sys.executable, str(CAMPAIGN), *arguments], capture_output=True, text=True)
  assert done.returncode == 0, f"{CAMPAIGN} {' '.join(arguments)}:\n{done.stdout}{done.stderr}"
