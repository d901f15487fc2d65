"""The function of a TinyJit by its name: in pickles, which hold names of functions, not code."""
from __future__ import annotations
import functools
import importlib
from collections.abc import Callable
from typing import Any

from tinyhw.errors import JitError

def by_name(module: str, name: str) -> Any:
  """What a name stands for in a module. Raises ImportError and AttributeError."""
  return functools.reduce(getattr, name.split("."), importlib.import_module(module))

def is_named(found: Any, module: str, name: str, stands_for: Callable[[str, str], Any] = by_name) -> bool:
  """Is this what a name stands for in a module?"""
  try: return stands_for(module, name) is found
  except (AttributeError, ImportError, ValueError): return False

def place_of(fxn: Any) -> tuple[str, str]:
  """The module of a function, and its name there; empty where it has none."""
  return getattr(fxn, "__module__", None) or "", getattr(fxn, "__qualname__", "")

class Named:
  """In the place of the function of a TinyJit that came from a pickle. It is looked for when the TinyJit is reset, or
  needs another capture.

  known: did its name stand for it where the pickle was made? stateful: has the capture storage of its own, which the
  function would not use?
  """
  def __init__(self, module: str, name: str, known: bool, stateful: bool) -> None:
    self.__module__, self.__qualname__, self.known, self.stateful = module, name, known, stateful
    self.__name__ = name.rpartition(".")[2]

  def __reduce__(self) -> Any: return Named, (self.__module__, self.__qualname__, self.known, self.stateful)

  def __call__(self, *args: Any, **kwargs: Any) -> Any:
    """Run the function. Raises JitError where that would not be what the capture is."""
    return self.found("run")(*args, **kwargs)

  def found(self, what: str = "") -> Any:
    """The function. what: is to be done with it beside the capture; nothing is in its way once that is forgotten.

    Raises JitError.
    """
    shown = f"the function {self.__qualname__} of a TinyJit from a pickle"
    if what and self.stateful:
      raise JitError(f"{shown} would have to {what}, and does not know the storage that came with its capture; call "
                     f"the TinyJit outside of others, "
                     "with JIT=1 and Variables as when it was captured; or call reset(), and it computes with what "
                     "its module has")
    fxn: Any = None
    if self.known:
      try: fxn = by_name(self.__module__, self.__qualname__)
      except (AttributeError, ImportError, ValueError): pass
    fxn = getattr(fxn, "fxn", fxn)    # a decorated one: its name stands for a TinyJit
    if fxn is not None: return fxn
    why = (f"module {self.__module__} has none of that name here" if self.known else "it has no name by which it "
           "could be found, as a lambda has none")
    raise JitError(f"{shown} is not in it: {why}; load the pickle again to replay what was captured, or make a "
                   f"TinyJit of the function")

def resolved(fxn: Any) -> Any:
  """The function that a Named stands for, once its capture is forgotten; itself where there is none, which raises when
  it is called."""
  if not isinstance(fxn, Named): return fxn
  try: return fxn.found()
  except JitError: return Named(fxn.__module__, fxn.__qualname__, fxn.known, False)
