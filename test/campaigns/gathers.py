"""Random programs with gathers, crops, writes by index and gradients (test/support/generators/gather_programs.py),
compared with NumPy.

  python3 test/campaigns/gathers.py --programs 20000 --seed 1 --device "CPU AVX2"

The device is CPU, "CPU AVX2" (that level on a processor with more), CLANG, PYTHON, or a virtual card: AMD:gfx1100,
NV:sm_90. Each failure is printed as a program that runs by itself; the last line has the counts. Exit status 1 if there
was one. Seeds count up from --seed: a number says which.
"""
from __future__ import annotations
import argparse
import os
from pathlib import Path
import sys
import time

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "test" / "support")]

def environment(device: str) -> dict[str, str]:
  """The variables that choose a device by its name here. They must be set before tinyhw is imported."""
  name, _, arch = device.replace(" ", ":").partition(":")
  if not arch: return {"DEV": name}
  return {"DEV": name, "ARCH": f"x86_64:{arch.lower()}"} if name == "CPU" else {"DEV": name, "EMULATE": arch}

def campaign(programs: int, seed: int) -> tuple[int, int, int]:
  """Run programs from a seed on. How many were wrong, ended in an InternalError, or in another error."""
  from generators import gather_programs
  from tinyhw.errors import InternalError
  def outcome(program: gather_programs.Program) -> str:
    try: found = gather_programs.wrong(program, gather_programs.run(program))
    except InternalError as error: return f"internal error: {error}"
    # whatever it is, it is counted
    except Exception as error: return f"error: {type(error).__name__}: {error}"  # noqa: BLE001
    return f"wrong: {', '.join(found)}" if found else ""
  counts = {"wrong": 0, "internal error": 0, "error": 0}
  for number in range(seed, seed + programs):
    program = gather_programs.make(number)
    if not (said := outcome(program)): continue
    kind = said.partition(":")[0]
    counts[kind] += 1
    # mypy sees one argument
    short = gather_programs.smaller(program, lambda p, kind=kind: outcome(p).startswith(kind))  # type: ignore[misc]
    sys.stdout.write(f"seed {number}: {said}\n{short.source()}\n\n")
    sys.stdout.flush()
  return counts["wrong"], counts["internal error"], counts["error"]

def main() -> int:
  parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
  parser.add_argument("--programs", type=int, default=20000)
  parser.add_argument("--seed", type=int, default=1)
  parser.add_argument("--device", default="CPU", help="CPU, 'CPU AVX2', CLANG, PYTHON, AMD:gfx1100, NV:sm_90")
  arguments = parser.parse_args()
  os.environ.update(environment(arguments.device))
  os.environ.setdefault("CACHE", "0")   # each program is new: nothing of it is worth keeping
  start, processor = time.perf_counter(), time.process_time()
  wrong, internal, errors = campaign(arguments.programs, arguments.seed)
  seconds, used = time.perf_counter() - start, time.process_time() - processor
  sys.stdout.write(f"gathers on {arguments.device}, seeds from {arguments.seed}: {arguments.programs} run, {wrong} "
                   f"wrong, {internal} internal "
                   f"errors, {errors} other errors; {seconds:.0f} s, {used / max(arguments.programs, 1) * 1e3:.0f} ms "
                   f"of processor time each\n")
  return int(wrong + internal + errors > 0)

if __name__ == "__main__": sys.exit(main())
