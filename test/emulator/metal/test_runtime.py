"""Calls as a processor makes them: arguments and results by the headers' types, whatever the caller declares."""
import ctypes

import pytest

from tinyhw import emulator
from tinyhw.emulator.metal.computer import MetalComputer
from tinyhw.emulator.metal.objects import ObjectMistake
from tinyhw.emulator.metal.runtime import GARBAGE, VirtualLibrary

P, Q, B = ctypes.c_void_p, ctypes.c_uint64, ctypes.c_bool

def loaded() -> tuple[VirtualLibrary, int]:
  """A library, and the handle of its device."""
  computer = emulator.make("apple7")
  assert isinstance(computer, MetalComputer)
  library = computer.metal
  return library, library.function("MTLCreateSystemDefaultDevice", P)()

def name(library: VirtualLibrary, text: bytes) -> int:
  return int(library.function("sel_registerName", P, ctypes.c_char_p)(text))

def test_integers_and_booleans() -> None:
  library, device = loaded()
  family = name(library, b"supportsFamily:")
  assert name(library, b"supportsFamily:") == family
  assert library.message(B, [P, P, ctypes.c_int64])(device, family, 1007) is True
  assert library.message(Q, [P, P, ctypes.c_int64])(device, family, 1008) == GARBAGE   # a BOOL has 8 bits
  assert library.message(Q, [P, P])(device, name(library, b"maxBufferLength")) == 1 << 30

def test_mistakes_of_prototypes() -> None:
  library, device = loaded()
  make = name(library, b"newBufferWithLength:options:")
  assert library.message(P, [P, P, Q, Q])(device, make, (1 << 32) + 16, 0x100) is None   # too large
  short = library.message(P, [P, P, ctypes.c_uint32, Q])(device, make, (1 << 32) + 16, 0x100)   # 16 bytes
  assert library.message(Q, [P, P])(short, name(library, b"length")) == 16
  with pytest.raises(ObjectMistake, match="maxBufferLength returns Q, and the prototype takes its result from another"):
    library.message(ctypes.c_double, [P, P])(device, name(library, b"maxBufferLength"))
  with pytest.raises(ObjectMistake, match="message name to nil"):
    library.message(P, [P, P])(None, name(library, b"name"))
  with pytest.raises(ObjectMistake, match="0x3 is no selector"): library.message(P, [P, P])(device, 3)
  with pytest.raises(ObjectMistake, match="an argument of .*: 0x10 is no object"):
    library.message(P, [P, P, P, P, P])(device, name(library, b"newLibraryWithSource:options:error:"), 16, 16, None)
  with pytest.raises(ObjectMistake, match="objc_getClass is declared with other types in its header"):
    library.function("objc_getClass", P, P)

def test_classes_and_devices() -> None:
  library, device = loaded()
  find = library.function("objc_getClass", P, ctypes.c_char_p)
  assert find(b"NSString") and find(b"MTLUnknown") is None
  devices = library.function("MTLCopyAllDevices", P)()
  at = library.message(P, [P, P, Q])
  assert at(devices, name(library, b"objectAtIndex:"), 0) == device
