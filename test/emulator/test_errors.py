"""tinyhw/emulator/errors.py: errors that reach users, and faults that become events."""
import inspect

from tinyhw.emulator import errors
from tinyhw.errors import TinyError

def test_faults_are_no_errors_of_users() -> None:
  assert not issubclass(errors.PageFault, TinyError)
  assert str(errors.PageFault(0x1234, True, "read only")) == "write to 0x1234: read only"
  assert str(errors.PageFault(0x10, False)) == "read of 0x10: not present"

def test_strict_errors_are_of_one_family() -> None:
  own = [made for _, made in inspect.getmembers(errors, inspect.isclass) if made.__module__ == errors.__name__]
  for made in own: assert issubclass(made, (errors.EmulatorError, errors.Fault)) or made is errors.Misplaced, made

def test_errors_about_a_place_find_the_lane_whose_access_it_was() -> None:
  fault, error = errors.PageFault(0x107, True), errors.OutOfBounds("beyond", 0x107)
  for found in (fault, error): found.blame([3, 4, 7, 9], [0x100, 0x104, 0x108, None])
  assert fault.lane == error.lane == 4
  error.blame([1, 2], [0x200, 0x300])
  assert error.lane == 4, "no access begins before it"
  assert str(fault.located("\n  at 0x10: store")) == "write to 0x107: not present\n  at 0x10: store"
  assert errors.OutOfBounds("about a register").address is None
