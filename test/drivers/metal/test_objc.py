"""Messages: the driver's table against the headers', ownership, pools, texts."""
import ctypes

import pytest

from tinyhw.autogen.metal import MESSAGES
from tinyhw.drivers.metal.objc import SELECTORS, TYPES, MetalSize, ObjectiveC
from tinyhw.emulator.errors import StrictError
from tinyhw.emulator.metal.objects import TABLE
from tinyhw.errors import DriverError
from test.drivers.metal.conftest import Opener

@pytest.mark.parametrize("selector", SELECTORS)
def test_types_are_those_of_the_headers(selector: str) -> None:
  declared = {(found.result, *found.arguments) for messages in TABLE.values() for name, found in messages.items()
              if name == selector}
  assert declared == {tuple(SELECTORS[selector])}, f"{len(MESSAGES)} classes"

def test_letters() -> None:
  assert ctypes.sizeof(MetalSize) == 24 and TYPES["B"] is ctypes.c_bool
  assert {word for types in SELECTORS.values() for word in types} <= set(TYPES)

def test_texts_and_pools(mac: Opener) -> None:
  computer, device = mac()
  objc = device.objc
  with objc.pool():
    assert objc.text(objc.string("größer ✓")) == "größer ✓" and objc.text(None) == ""
    assert objc.description(None) == "no reason is given" and computer.census()["NSString"] == 1
  assert "NSString" not in computer.census()
  with pytest.raises(StrictError, match="autoreleased on a thread without a pool: it leaks"): objc.string("x")
  with pytest.raises(DriverError, match="this macOS has no class MTLUnknown; update it"): objc.make("MTLUnknown")

def test_prototypes_are_made_once(mac: Opener) -> None:
  _, device = mac()
  objc = ObjectiveC(device.objc.library)
  assert objc.message("retain")[0] is objc.message("init")[0] is not objc.message("release")[0]
  assert objc.message("retain")[1] == objc.names["retain"] and objc.keep(device.about.handle) == device.about.handle
  objc.release(device.about.handle)
  objc.release(None)

def test_newer_messages_are_asked_for(mac: Opener) -> None:
  for chip, is_there in (("apple7", False), ("apple9", True)):
    _, device = mac(chip)
    with device.objc.pool():
      options = device._options()
      assert device.objc.responds(options, "setMathMode:") is is_there
      device.objc.release(options)
