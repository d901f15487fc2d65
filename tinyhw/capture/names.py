"""The function of a TinyJit by its name. Pickles hold names of functions, not code."""
from __future__ import annotations
import functools
import importlib
from collections.abc import Callable
from typing import Any

from tinyhw.errors import JitError

def by_name(module: str, name: str) -> Any:
  """Return the object that a name stands for in a module. Raises ImportError and AttributeError."""
  return functools.reduce(getattr, name.split("."), importlib.import_module(module))

def is_named(found: Any, module: str, name: str, stands_for: Callable[[str, str], Any] = by_name) -> bool:
  """Does a name in a module stand for this object?"""
  try: return stands_for(module, name) is found
  except (AttributeError, ImportError, ValueError): return False

def qualified_name(fxn: Any) -> tuple[str, str]:
  """Return the module of a function, and its name there; empty strings if it has none."""
  return getattr(fxn, "__module__", None) or "", getattr(fxn, "__qualname__", "")

class NamedFunction:
  """Stands for the function of a TinyJit from a pickle. The function is looked up when the TinyJit is reset, or needs
  another capture.

  known: did the name stand for the function where the pickle was made? stateful: does the capture have its own storage,
  which the function would not use?
  """
  def __init__(self, module: str, name: str, known: bool, stateful: bool) -> None:
    self.__module__, self.__qualname__, self.known, self.stateful = module, name, known, stateful
    self.__name__ = name.rpartition(".")[2]

  def __reduce__(self) -> Any: return NamedFunction, (self.__module__, self.__qualname__, self.known, self.stateful)

  def __call__(self, *args: Any, **kwargs: Any) -> Any:
    """Run the function. Raises JitError if its effect would differ from the capture's."""
    return self.found("run")(*args, **kwargs)

  def found(self, what: str = "") -> Any:
    """Return the function. Raises JitError.

    what: the intended use while the capture exists. After the capture is forgotten every use is allowed.
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
    fxn = getattr(fxn, "fxn", fxn)    # a decorated function: its name stands for a TinyJit
    if fxn is not None: return fxn
    why = (f"module {self.__module__} has none of that name here" if self.known else "it has no name by which it "
           "could be found, as a lambda has none")
    raise JitError(f"{shown} is not in it: {why}; load the pickle again to replay what was captured, or make a "
                   f"TinyJit of the function")

def resolved(fxn: Any) -> Any:
  """Return the function of a Named once its capture is forgotten. If there is none return the Named, whose call
  raises."""
  if not isinstance(fxn, NamedFunction): return fxn
  try: return fxn.found()
  except JitError: return NamedFunction(fxn.__module__, fxn.__qualname__, fxn.known, False)
