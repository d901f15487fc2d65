"""tinyhw/errors.py: what except clauses catch, and which line a message names."""
import copy
import inspect
import pickle

import pytest

from tinyhw import errors
from tinyhw.errors import DriverError, ShapeError, TinyError

CLASSES = [value for value in vars(errors).values() if isinstance(value, type) and issubclass(value, TinyError)]

@pytest.mark.parametrize("error,builtin", [
  (errors.ShapeError, ValueError), (errors.DTypeError, TypeError), (errors.IndexRangeError, IndexError),
  (errors.IndexingError, IndexError),
  (errors.DeviceError, RuntimeError), (errors.JitError, RuntimeError), (errors.OutOfMemory, MemoryError),
  (errors.EncodeError, ValueError),
  (errors.DecodeError, ValueError), (errors.VerifyError, AssertionError), (errors.FetchError, OSError),
  (errors.MissingFileError, FileNotFoundError),
  (errors.ConfigError, ValueError),
  (errors.UnknownValueError, TypeError)])
def test_python_error_catches_it(error: type[TinyError], builtin: type[Exception]) -> None:
  with pytest.raises(builtin): raise error("why")

@pytest.mark.parametrize("error", CLASSES)
def test_every_class_says_when_it_is_raised_and_keeps_its_message(error: type[TinyError]) -> None:
  assert error.__doc__ and error("why").message == "why" and str(error("why")).startswith("why")
  assert (str(pickle.loads(pickle.dumps(error("why", ("f.py", 3, "g")))))
          == str(copy.copy(error("why", ("f.py", 3, "g")))) == "why (at f.py:3)")

def test_user_error_names_the_line_of_the_call() -> None:
  error, line = ShapeError("cannot add"), inspect.currentframe().f_lineno  # type: ignore[union-attr]
  assert str(error) == f"cannot add (at {__file__}:{line})"

def test_driver_error_names_no_line() -> None:
  assert str(DriverError("opening x: no")) == "opening x: no"
