"""The boundary between tinyhw's own faults and the user's program.

`boundary` wraps everything that schedules, compiles and runs: realize, prepare, Again, custom kernels, captures and
replays. A broken invariant below it (KeyError, AssertionError, RecursionError, ...) leaves as an InternalError, raised
from the original. It names the kernel, and the line of the user's program. Mistakes of the user have classes of their
own, and pass. So do interrupts and errors of the operating system. Nothing catches an InternalError.

The kernel is found in the frames of the error, so successful runs keep no notes.
"""
from __future__ import annotations
import functools
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from tinyhw import trace
from tinyhw.engine.run.compile import compile_kernel, kernel_name
from tinyhw.errors import InternalError, TinyError

P = ParamSpec("P")
R = TypeVar("R")

FAULTS = (ArithmeticError, AssertionError, AttributeError, LookupError, NameError, NotImplementedError, RecursionError,
          TypeError, ValueError)
MOST_TEXT = 300   # characters of the original in the message; a node's repr may be long

def boundary(work: Callable[P, R]) -> Callable[P, R]:
  """Wrap a function so that faults of tinyhw leave it as InternalError."""
  @functools.wraps(work)
  def within(*args: P.args, **kwargs: P.kwargs) -> R:
    try: return work(*args, **kwargs)
    except TinyError: raise
    except FAULTS as error: raise internal(error) from error
  return within

def internal(error: Exception) -> InternalError:
  """Return the InternalError that tells the user about a fault."""
  doing, line = activity_of(error)
  text = str(error)
  if len(text) > MOST_TEXT: text = text[:MOST_TEXT] + " ..."
  wanted = "" if line is None else f" (of {line[0]}:{line[1]})"
  return InternalError(f"{doing}{wanted} failed with {type(error).__name__}: {text}. This is a fault of tinyhw, not "
                       f"of your program: please report "
                       "it, with this traceback and what `python3 -m tinyhw doctor` prints. Until it is mended, "
                       "contiguous() on the operands of "
                       "that operation, or NOOPT=1, may go round it")

def activity_of(error: Exception) -> tuple[str, trace.Location | None]:
  """Return the activity during which an error was raised, and the line of the operation that wanted it (TRACEMETA)."""
  doing = "scheduling"
  lines: dict[Any, trace.Location | None] = {}
  line: trace.Location | None = None
  entry = error.__traceback__
  while entry is not None:
    code, names = entry.tb_frame.f_code, entry.tb_frame.f_locals
    if code is compile_kernel.__code__:
      doing, line = f"compiling the kernel {kernel_name(names['sink'])} for {names['arch']}", lines.get(names["sink"])
    # found by name: realize.py imports this module
    elif code.co_name in ("_launches", "prepare", "rows") and "kernels" in names:
      lines |= {k.sink: k.line for k in names["kernels"]}
    elif code.co_name == "launch_rows" and names.get("launches"):
      last = names["launches"][-1]
      doing, line = f"running the kernel {last.program.name} on {names['opened'].name}", last.line
    elif code.co_name == "execute" and getattr(names.get("step"), "runner", None) is not None:
      doing, line = f"running the kernel {names['step'].runner.name} on {names['step'].runner.device}", names[
        "step"].line
    entry = entry.tb_next
  return doing, line
