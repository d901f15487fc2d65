"""What DEBUG prints while kernels are made and run; nothing here is loaded while DEBUG is below 2.

2: a line per kernel and copy. 3: the optimisations that were chosen. 4: pseudo-code. 5: the kernel as expressions. 6:
the linear program. 7: the annotated machine code, where the architecture has a lister (tinyhw/isa/__init__.py), or the
source for an installed compiler. Colours appear on a terminal only.
"""
from __future__ import annotations
from collections import Counter
import importlib
import sys
from typing import TYPE_CHECKING

from tinyhw.codegen.render import RENDERERS
from tinyhw.codegen.render.pseudo import render as pseudo_code
from tinyhw.config import DEBUG
from tinyhw.device import Device
from tinyhw.dtype import dtypes
from tinyhw.helpers import GlobalCounters, colored, wants_color
from tinyhw.isa import LISTERS
from tinyhw.threads import once
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import KernelInfo, UOp, sint
from tinyhw.uop.text import render, show
if TYPE_CHECKING:
  from tinyhw.device import Buffer
  from tinyhw.engine.run.realize import Step
  from tinyhw.machine.ir.code import Code
  from tinyhw.uop.program import Program

SLOW_SECONDS, FAST_SECONDS = 1e-2, 1e-4  # times from the first on are shown in red, up to the second in green
UNITS = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, " "))
NAME_COLUMNS = 28

def out(text: str) -> None:
  sys.stdout.write(text + "\n")

def on_terminal(text: str, color: str | None) -> str:
  return colored(text, color) if color and wants_color() else text

def number(x: sint, names: tuple[str | UOp, ...], values: tuple[int, ...]) -> float:
  """An estimate under values of the variables."""
  if isinstance(x, int): return x
  bound = {name: value for name, value in zip(names, values) if isinstance(name, str)}
  return float(x.substitute({v: v.const_like(bound[v.arg[0]]) for v in x.variables()}).simplify().vmax)

def amount(x: float, unit: str) -> str:
  """Format a count with a prefix, in eight columns, and the unit: `  12.50 G` + "B/s"."""
  scale, prefix = next(((s, p) for s, p in UNITS if x >= s), UNITS[-1])
  return f"{x / scale:7.2f} {prefix}{unit}"

def duration(seconds: float) -> str:
  """Format a time in ten columns, aligned at the decimal point: `  12.34 ms`."""
  for scale, unit in ((1.0, "s "), (1e3, "ms")):
    if seconds * scale >= 1: return f"{seconds * scale:7.2f} {unit}"
  return f"{seconds * 1e6:7.2f} us"

def show_launch(step: Step, seconds: float) -> None:
  """DEBUG=2: a line per kernel with device, number, name, work items, time, rates, and totals so far."""
  found = step.runner
  assert found is not None
  operations = number(found.operations, found.variables, step.variables)
  moved = number(found.bytes_moved, found.variables, step.variables)
  GlobalCounters.global_ops += int(operations)
  GlobalCounters.global_mem += int(moved)
  _line(found.device, found.name, f"grid {step.grid:7d}", seconds, f"{amount(operations / seconds, 'FLOP/s')} "
        f"{amount(moved / seconds, 'B/s')}")

def show_copy(destination: Buffer, source: Buffer, seconds: float) -> None:
  """DEBUG=2: a line per copy between devices."""
  GlobalCounters.global_mem += source.nbytes
  _line(destination.device, f"copy from {source.device}", f"{'':12}", seconds,
        f"{'':15} {amount(source.nbytes / seconds, 'B/s')}")

LEGEND = (f"    {'device':7s}   no. {'kernel':{NAME_COLUMNS}s} {'work items':>12s} {'time':>10s} {'operations':>15s} "
          f"{'memory':>12s}  | {'all time':>10s} {'operations':>13s} {'memory':>10s}")

@once
def _legend() -> None:
  """Print the meaning of the columns, before the first line of a process."""
  out(on_terminal(LEGEND, "BLACK"))

def _line(device: str, name: str, grid: str, seconds: float, speed: str) -> None:
  _legend()
  GlobalCounters.time_sum_s += seconds
  color = "yellow"
  if seconds >= SLOW_SECONDS: color = "red"
  if seconds <= FAST_SECONDS: color = "green"
  total = (f"{duration(GlobalCounters.time_sum_s)} {amount(GlobalCounters.global_ops, 'FLOP')} "
           f"{amount(GlobalCounters.global_mem, 'B')}")
  out(f"*** {device:7s} {GlobalCounters.kernel_count:5d} {on_terminal(f'{name:{NAME_COLUMNS}s}', 'cyan')} {grid} "
      f"{on_terminal(duration(seconds), color)} {speed}  | {total}")

def show_kernel(kernel: UOp, name: str) -> None:
  """DEBUG=3: the optimisations of a kernel. 5: the optimised kernel as expressions."""
  opts = kernel.arg.opts if isinstance(kernel.arg, KernelInfo) and kernel.arg.opts else ()
  out(on_terminal(f"--- {name}: {', '.join(map(str, opts)) or 'no optimisations'}", "yellow"))
  if DEBUG >= 5: out(f"--- kernel of {name}\n{expressions(kernel)}")

MOST_NODES = 24  # nodes of an expression that gets no name

def expressions(kernel: UOp) -> str:
  """Print a kernel for people: its ranges, then its stores.

  Values with several uses, reductions, and long expressions get lines and names of their own.
  """
  order = kernel.toposort()
  uses = Counter(s for u in order for s in u.src)
  lines = [f"  {render(u)} in {u.arg[1].name} {render(u.src[0])}"
           for u in sorted((u for u in order if u.op is Ops.RANGE), key=lambda r: r.arg)]
  new: dict[UOp, UOp] = {}
  size: dict[UOp, int] = {}
  for u in order:
    if u.op is Ops.SINK: continue
    src = tuple([new[s] for s in u.src])
    new[u], size[u] = u.replace(src=src), 1 + sum(size[s] for s in u.src)
    if u.op is Ops.STORE: lines.append(f"  {render(new[u])}")
    elif u.src and u.op not in _WHOLE and (u.op is Ops.REDUCE or size[u] > MOST_NODES or uses[u] > 1
                                           and u.dtype.scalar() is not dtypes.weakint):
      name = f"x{sum(line.startswith('  x') for line in lines)}"
      lines.append(f"  {name} = {render(new[u])}")
      new[u], size[u] = UOp(Ops.DEFINE_VAR, u.dtype, (), (name, 0, 0)), 1
  return "\n".join(lines)

# These have no value that could get a name.
_WHOLE = frozenset({Ops.RANGE, Ops.INDEX, Ops.STAGE, Ops.GROUP, Ops.AFTER})

def show_program(program: Program) -> None:
  """DEBUG=4: pseudo-code. 6: the linear program, as uop/text.py reads it back."""
  out(pseudo_code(program))
  if DEBUG >= 6: out(f"--- program of {program.name}\n{show(program)}")

def source_of(code: Code) -> str:
  """DEBUG=7: return the source of a kernel whose code is source. Empty for machine code."""
  return code.text.decode() if code.arch.partition(":")[0] in RENDERERS else ""

def compile_listed(program: Program, arch: str, device: str) -> tuple[Code, str] | None:
  """DEBUG=7, VIZ=1: compile to machine code and its listing.

  None if the architecture has no machine code of ours. Compile without a listing then.
  """
  module = LISTERS.get(arch.partition(":")[0])
  if module is None: return None
  lister = importlib.import_module(module)
  facts = Device[device].facts()
  name = lister.microarchitecture(facts.get("vendor", ""), facts.get("signature", 0), facts.get("features", ()))
  # hidden: the registry's modules are opened by name
  return lister.compile_listed(program, arch, name)  # type: ignore[no-any-return]
