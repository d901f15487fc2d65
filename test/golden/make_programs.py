"""Write test/golden/programs.txt: the losses of the programs in test/programs, by their twins in PyTorch.

    python3 test/golden/make_programs.py

A line is a program's name and its losses, a number for each of 50 steps. Needs torch (pip install torch).
"""
from __future__ import annotations
import subprocess
import sys
from pathlib import Path

TEST = Path(__file__).resolve().parents[1]
FILE = TEST / "golden/programs.txt"
STEPS = 50

def losses(script: str, steps: int, *options: str) -> list[float]:
  """What test/programs/<script>.py prints."""
  done = subprocess.run([sys.executable, str(TEST / f"programs/{script}.py"), str(steps), *options],
                        capture_output=True, text=True)
  if done.returncode: raise RuntimeError(f"{script}: {done.stderr[-3000:]}")
  return [float(line.split()[1]) for line in done.stdout.splitlines()]

def main() -> None:
  import torch
  twins = sorted(path.stem for path in (TEST / "programs").glob("*_torch.py"))
  lines = [" ".join([twin.removesuffix("_torch"), *(f"{loss:.8f}" for loss in losses(twin, STEPS))]) for twin in twins]
  FILE.write_text(f"# PyTorch {torch.__version__}: python3 test/golden/make_programs.py\n" + "\n".join(lines) + "\n",
                  encoding="utf-8")

if __name__ == "__main__": main()
