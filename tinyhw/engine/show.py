"""What DEBUG prints while kernels are made and run."""
from __future__ import annotations
import sys
from typing import TYPE_CHECKING

from tinyhw.config import DEBUG
from tinyhw.helpers import GlobalCounters, colored, time_to_str
from tinyhw.uop.ops import UOp, sint
if TYPE_CHECKING:
  from tinyhw.codegen.program import Program
  from tinyhw.engine.realize import Step

def number(x: sint, names: tuple[str, ...], values: tuple[int, ...]) -> float:
  """An estimate under values of the variables."""
  if isinstance(x, int): return x
  bound = dict(zip(names, values))
  return float(x.substitute({v: v.const_like(bound[v.arg[0]]) for v in x.variables()}).simplify().vmax)

def show_launch(step: Step, seconds: float) -> None:
  """DEBUG=2: a line per kernel."""
  found = step.runner
  assert found is not None
  operations = number(found.operations, found.variables, step.variables)
  moved = number(found.bytes_moved, found.variables, step.variables)
  GlobalCounters.global_ops += int(operations)
  GlobalCounters.global_mem += int(moved)
  GlobalCounters.time_sum_s += seconds
  speed = f"{operations / seconds / 1e9:9.2f} GFLOP/s {moved / seconds / 1e9:8.2f} GB/s"
  line = f"*** {found.device:7s} {GlobalCounters.kernel_count:5d} {found.name:40s} grid {step.grid:7d} {time_to_str(seconds, w=9)} {speed}"
  print(colored(line, "yellow") if seconds > 0.01 and sys.stdout.isatty() else line)

def show_program(program: Program) -> None:
  """DEBUG=4: pseudo-code; 5: UOps; 6: the linear program as text."""
  from tinyhw.codegen.render.pseudo import render
  print(f"--- {program.name} {' '.join(map(str, program.opts))}")
  print(render(program))
  if DEBUG >= 6:
    from tinyhw.uop.text import show
    print(show(UOp.sink(*program.uops)))
