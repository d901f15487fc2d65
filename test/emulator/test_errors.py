"""tinyhw/emulator/errors.py: what reaches users, and what becomes an event."""
import inspect

from tinyhw.emulator import errors
from tinyhw.errors import TinyError

def test_faults_are_no_errors_of_users() -> None:
  assert not issubclass(errors.PageFault, TinyError)
  assert str(errors.PageFault(0x1234, True, "read only")) == "write to 0x1234: read only"
  assert str(errors.PageFault(0x10, False)) == "read of 0x10: not present"

def test_strict_errors_are_of_one_family() -> None:
  own = [made for _, made in inspect.getmembers(errors, inspect.isclass) if made.__module__ == errors.__name__]
  for made in own: assert issubclass(made, (errors.EmulatorError, errors.Fault)), made
