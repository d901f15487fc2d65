"""examples/digits.py as its reader runs it: Python and nothing else, from another folder, to the accuracy that the README promises."""
from pathlib import Path
import re
import subprocess
import sys

DIGITS = Path(__file__).resolve().parents[2] / "examples/digits.py"

def test_the_main_job(tmp_path: Path) -> None:
  environment = {"PATH": "", "CACHEDIR": str(tmp_path), "SYSTEMROOT": "C:\\Windows"}
  done = subprocess.run([sys.executable, "-I", "-S", "-B", str(DIGITS)], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
  lines = done.stdout.splitlines()
  found = re.fullmatch(r"test accuracy: (\d\d\.\d\d) %", lines[-1])
  assert found is not None and float(found[1]) >= 98, lines[-1]
  progress = [re.fullmatch(r"epoch +(\d+)  loss (\d+\.\d{4})  +[\d,]+ images/s", line) for line in lines[:-1]]
  assert len(progress) > 2 and all(progress), "plain lines where there is no terminal"
  losses = [float(line[2]) for line in progress if line is not None]
  assert losses[-1] < losses[0] / 2 and not done.stderr
