"""Every call of a driver to the kernel fails in turn, with each reason that it may fail for: when the device is opened,
and in mid-run.

What the error says, what becomes of the device, and what the virtual kernel counts in the end is the same for all
vendors. A vendor says how its computer and device are made, which call may fail why, and what the kernel keeps until
the process ends.
"""
from __future__ import annotations
import collections
import ctypes
import errno
import struct
from collections.abc import Callable, Iterator, Mapping
from enum import IntEnum
from typing import Any, NamedTuple

import pytest
from gpu.programs import LANES, code
from formats.mutations import cases

from tinyhw.device import Launch
from tinyhw.drivers.gpu.device import GpuDevice
from tinyhw.drivers.linux import files
from tinyhw.errors import OutOfMemory, TinyError

LARGE = 600 << 10  # bytes of a buffer that is an allocation of its own
COUNT = LANES * 3
NUMBERS = [float(number * 37 % 99) for number in range(COUNT)]
OWN = (ctypes.c_float * 1024)(*NUMBERS)  # memory of the program, which outlives the work on it: a step that fails
                                         # leaves before its kernels are done

class Vendor(NamedTuple):
  """plausible: by call, errnos and statuses of the driver's own. optional: calls that the device does without. kept:
  what the kernel keeps."""
  computer: Callable[[str], Any]
  opened: Callable[[], GpuDevice]
  forget: Callable[[Any], None]
  plausible: Mapping[str, tuple[int, ...]]
  optional: frozenset[str] = frozenset()
  kept: Mapping[str, int] = {}
  said: Callable[[str], str] = lambda call: call        # how messages call a call

class Names:
  """Which calls a computer gets, in order."""
  def __init__(self, computer: Any):
    self.found: list[str] = []
    inner = computer.injected
    def note(call: str) -> None:
      self.found.append(call)
      inner(call)
    computer.injected = note

def make(vendor: Vendor, card: str, monkeypatch: pytest.MonkeyPatch) -> Any:
  computer = vendor.computer(card)
  monkeypatch.setattr(files, "COMPUTER", computer)
  return computer

def step(device: GpuDevice) -> None:
  """A step of a program: buffers of all sizes, memory of the program's own, spills, launches, a recording, sleep; all
  is given back."""
  size = 4 * COUNT
  buffers = [device.allocator.alloc(size) for _ in range(2)]
  large = device.allocator.alloc(LARGE)
  pinned = device.allocator.external(ctypes.addressof(OWN), size)
  try:
    for buffer in buffers: device.allocator._copyin(buffer, memoryview(struct.pack(f"<{COUNT}f", *NUMBERS)))
    device.allocator._copyin(large, memoryview(bytearray(b"x" * LARGE)))
    program = device.load(code(device.arch, private_bytes=64))
    launch = Launch(program, [buffers[0], buffers[1], pinned], [0], 3)
    device.submit([launch])
    device.record([launch]).submit()
    out, rest = bytearray(size), bytearray(LARGE)
    device.allocator._copyout(memoryview(out), buffers[0])
    device.allocator._copyout(memoryview(rest), large)
    assert struct.unpack(f"<{COUNT}f", out) == tuple(2 * x for x in NUMBERS) and rest == b"x" * LARGE
    device.sleep(0)
  finally:
    del pinned
    for buffer in buffers: device.allocator.free(buffer, size)
    device.allocator.free(large, LARGE)
  device.allocator.free_cache()
  device.synchronize()

def calls_of(vendor: Vendor, card: str, monkeypatch: pytest.MonkeyPatch) -> tuple[list[str], list[str]]:
  """The calls of opening, and those of a step and of closing."""
  computer = make(vendor, card, monkeypatch)
  names = Names(computer)
  device = vendor.opened()
  at = len(names.found)
  step(device)
  device.close()
  end = len(names.found)
  vendor.forget(computer)
  return names.found[:at], names.found[at:end]

def failing(vendor: Vendor, names: list[str]) -> Iterator[tuple[int, str, int]]:
  """(which call of its name, its name, errno) of all that may fail; in CI the errnos of a call in turn."""
  seen: collections.Counter[str] = collections.Counter()
  for name in names:
    seen[name] += 1
    numbers = vendor.plausible[name]
    for number in numbers if cases(0, 1) else [numbers[seen[name] % len(numbers)]]: yield seen[name], name, number

def reason(number: int) -> str:
  """How messages name an errno, or a status."""
  return number.name.lower().replace("_", " ") if isinstance(number, IntEnum) else errno.errorcode[number]

def check_message(vendor: Vendor, error: TinyError, name: str, number: int, where: str) -> None:
  """The call, the reason in words and as the name that a search finds, and advice."""
  first = error.message.splitlines()[0]
  if isinstance(error, OutOfMemory):
    assert "cannot allocate" in first and "other programs may hold the rest" in first, f"{where}: {error.message}"
    return
  call = {"open": "opening /dev/", "mmap": "mapping 0x"}.get(name, vendor.said(name))
  assert call in first and reason(number) in first and first.partition("; ")[2], f"{where}: {error.message}"

def goes_on(vendor: Vendor, computer: Any, where: str) -> None:
  """The process opens the device again, finds all that it needs, and leaves nothing."""
  device = vendor.opened()
  step(device)
  device.close()
  vendor.forget(computer)
  assert computer.census() == vendor.kept, f"{where}: {computer.census()}"

def opening_fails(vendor: Vendor, card: str, monkeypatch: pytest.MonkeyPatch) -> set[str]:
  """Each call of opening fails. The names of all."""
  names, _ = calls_of(vendor, card, monkeypatch)
  for nth, name, number in failing(vendor, names):
    where = f"call {nth}, {name}, {reason(number)}"
    computer = make(vendor, card, monkeypatch)
    computer.fail(name, nth, number)
    if name in vendor.optional: vendor.opened().close()
    else:
      with pytest.raises(TinyError) as caught: vendor.opened()
      check_message(vendor, caught.value, name, number, where)
    goes_on(vendor, computer, where)
  return set(names)

def running_fails(vendor: Vendor, card: str, monkeypatch: pytest.MonkeyPatch, each: int = 1) -> set[str]:
  """While buffers are made, kernels loaded, results awaited, memory given back, and the device closed, each call
  fails, or every so many-th."""
  _, names = calls_of(vendor, card, monkeypatch)
  for nth, name, number in list(failing(vendor, names))[::each]:
    where = f"call {nth}, {name}, {reason(number)}"
    computer = make(vendor, card, monkeypatch)
    device = vendor.opened()
    computer.fail(name, nth, number)
    try:
      step(device)
      device.close()
    except TinyError as error: check_message(vendor, error, name, number, where)
    computer.failures.clear()
    if device.lost is None and not device.closed: step(device)
    device.close()
    goes_on(vendor, computer, where)
  return set(names)

def interrupted(vendor: Vendor, card: str, monkeypatch: pytest.MonkeyPatch) -> None:
  """Calls that a signal interrupts are made again: nothing is noticed."""
  opening, running = calls_of(vendor, card, monkeypatch)
  computer = make(vendor, card, monkeypatch)
  for name, count in collections.Counter((*opening, *running)).items():
    for nth in range(1, 2 * count, 2):  # the call, and not the next one, which repeats it
      # Python itself repeats what can be interrupted of these
      if name not in ("open", "mmap"): computer.fail(name, nth, errno.EINTR)
  goes_on(vendor, computer, "interrupted")
