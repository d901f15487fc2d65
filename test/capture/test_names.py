"""Functions by their names, and their stand-ins from pickles."""
from __future__ import annotations
import pickle
from typing import Any

import pytest

from tinyhw import Tensor, TinyJit
from tinyhw.capture.names import NamedFunction, by_name, is_named, qualified_name, resolved
from tinyhw.errors import JitError

def double(x: Any) -> Any: return x * 2

@TinyJit
def decorated(x: Tensor) -> Tensor: return (x * 3).realize()

class Holder:
  @staticmethod
  def triple(x: Any) -> Any: return x * 3

def test_names_stand_for_what_modules_have() -> None:
  assert by_name(*qualified_name(double)) is double and by_name(*qualified_name(Holder.triple)) is Holder.triple
  assert is_named(double, *qualified_name(double)) and is_named(decorated, *qualified_name(decorated.fxn))
  assert not is_named(decorated.fxn, *qualified_name(decorated.fxn))
  for found in (lambda x: x, 3): assert not is_named(found, *qualified_name(found))
  with pytest.raises(AttributeError): by_name(__name__, "nothing")
  with pytest.raises(ImportError): by_name("no.such.module", "x")

def test_a_function_is_found_when_it_is_to_run() -> None:
  named = NamedFunction(*qualified_name(double), True, False)
  assert named(4) == 8 and named.found() is double and resolved(named) is double and resolved(double) is double
  assert NamedFunction(*qualified_name(Holder.triple), True, False)(2) == 6
  assert NamedFunction(*qualified_name(decorated.fxn), True, False).found() is decorated.fxn
  again = pickle.loads(pickle.dumps(NamedFunction(*qualified_name(double), True, True)))
  assert (again.__module__, again.__qualname__, again.known, again.stateful) == (*qualified_name(double), True, True)

def test_what_it_does_not_do() -> None:
  with pytest.raises(JitError, match="double of a TinyJit from a pickle would have to run, and does not know the "
                     "storage"):
    NamedFunction(*qualified_name(double), True, True)(4)
  found = resolved(NamedFunction(*qualified_name(double), True, True))
  assert found is double, "nothing is in its way once the capture is forgotten"
  gone = NamedFunction("no.such.module", "double", True, True)
  lambdas = NamedFunction(*qualified_name(lambda x: x), False, True)
  for named, why in ((gone, "module no.such.module has none of that name here"),
                     (lambdas, "has no name by which it could be found")):
    found = resolved(named)
    assert isinstance(found, NamedFunction) and not found.stateful
    with pytest.raises(JitError, match=why): found(4)
