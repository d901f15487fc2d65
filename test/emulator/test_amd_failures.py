"""Every call of the AMD driver to the kernel fails in turn, with each errno that it may fail with: when the device is opened, and in mid-run.

The error says which call failed, why, and what to do. What was asked for before or after is not harmed: the device goes on, or is lost, says so, and
opens again; and the virtual kernel counts what is left.
"""
from __future__ import annotations
import collections
import ctypes
import errno
import random
import struct
from collections.abc import Iterator

import pytest
from mutations import cases
from gpu_programs import LANES, code

from tinyhw.device import Launch
from tinyhw.drivers import amd
from tinyhw.drivers.amd import kfd
from tinyhw.drivers.amd.device import AMDDevice
from tinyhw.drivers.linux import files
from tinyhw.emulator.amd.computer import Computer
from tinyhw.errors import OutOfMemory, TinyError

CARDS = ("gfx1100", "gfx942")
LARGE = 600 << 10  # bytes of a buffer that is an allocation of its own
# What Linux gives, by call: kfd_chardev.c and what it calls; mmap(2), open(2)
PLAUSIBLE: dict[str, tuple[int, ...]] = {
  "open": (errno.ENOENT, errno.EACCES, errno.EPERM, errno.ENODEV, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EIO),
  "mmap": (errno.ENOMEM, errno.EINVAL, errno.EACCES, errno.EAGAIN),
  "GetVersion": (errno.ENOTTY, errno.EFAULT),
  "RuntimeEnable": (errno.EBUSY, errno.EINVAL, errno.EPERM),
  "AcquireVm": (errno.EBUSY, errno.EINVAL, errno.ENODEV),
  "AllocMemoryOfGpu": (errno.ENOMEM, errno.EINVAL, errno.ENODEV, errno.EFAULT),
  "MapMemoryToGpu": (errno.ENOMEM, errno.EINVAL, errno.ENODEV),
  "UnmapMemoryFromGpu": (errno.EINVAL, errno.ENODEV, errno.ENOMEM),
  "FreeMemoryOfGpu": (errno.EBUSY, errno.EINVAL),
  "CreateEvent": (errno.ENOMEM, errno.ENOSPC, errno.EINVAL),
  "DestroyEvent": (errno.EINVAL,),
  "WaitEvents": (errno.EIO, errno.EFAULT, errno.EINVAL),
  "CreateQueue": (errno.ENOMEM, errno.EINVAL, errno.EFAULT, errno.ENODEV),
  "DestroyQueue": (errno.EINVAL, errno.ETIME),
}
KEPT = {"bytes": 0x8000, "buffers": 1, "ranges": 1}  # the page of events: the kernel's driver keeps it until the process ends

class Names:
  """Which calls a computer gets, in order."""
  def __init__(self, computer: Computer):
    self.found: list[str] = []
    inner = computer.injected
    def note(call: str) -> None:
      self.found.append(call)
      inner(call)
    computer.injected = note  # type: ignore[method-assign]

def make(card: str, monkeypatch: pytest.MonkeyPatch, seed: int = 0) -> Computer:
  computer = Computer(card, [card], seed)
  monkeypatch.setattr(files, "COMPUTER", computer)
  return computer

def opened() -> AMDDevice: return amd.open(0, lambda name: None)  # type: ignore[arg-type,return-value]

def step(device: AMDDevice) -> None:
  """A step of a program: buffers of all sizes, memory of the program's own, scratch, launches, a recording, sleep; all is given back."""
  count, source = LANES * 3, random.Random(1)
  numbers = [float(source.randrange(99)) for _ in range(count)]
  own = (ctypes.c_float * 1024)(*numbers)
  buffers = [device.allocator.alloc(4 * count) for _ in range(2)]
  large = device.allocator.alloc(LARGE)
  pinned = device.allocator.external(ctypes.addressof(own), 4 * count)
  try:
    for buffer in buffers: device.allocator._copyin(buffer, memoryview(struct.pack(f"<{count}f", *numbers)))
    device.allocator._copyin(large, memoryview(bytearray(b"x" * (LARGE))))
    program = device.load(code(device.arch, private_bytes=64))
    launch = Launch(program, [buffers[0], buffers[1], pinned], [0], 3)
    device.submit([launch])
    device.record([launch]).submit()
    out, rest = bytearray(4 * count), bytearray(LARGE)
    device.allocator._copyout(memoryview(out), buffers[0])
    device.allocator._copyout(memoryview(rest), large)
    assert struct.unpack(f"<{count}f", out) == tuple(2 * x for x in numbers) and rest == b"x" * (LARGE)
    device.sleep(0)
  finally:
    del pinned
    for buffer in buffers: device.allocator.free(buffer, 4 * count)
    device.allocator.free(large, LARGE)
  device.allocator.free_cache()
  device.synchronize()

def calls_of(card: str, monkeypatch: pytest.MonkeyPatch) -> tuple[list[str], list[str]]:
  """The calls of opening, and those of a step and of closing."""
  computer = make(card, monkeypatch)
  names = Names(computer)
  device = opened()
  at = len(names.found)
  step(device)
  device.close()
  kfd.forget(computer)
  return names.found[:at], names.found[at:]

def failing(names: list[str]) -> Iterator[tuple[int, str, int]]:
  """(which call of its name, its name, errno) of all that may fail; in CI the errnos of a call in turn."""
  seen: collections.Counter[str] = collections.Counter()
  for name in names:
    seen[name] += 1
    numbers = PLAUSIBLE[name]
    for number in numbers if cases(0, 1) else [numbers[seen[name] % len(numbers)]]: yield seen[name], name, number

def check_message(error: TinyError, name: str, number: int, where: str) -> None:
  """The call, the reason in words and as the name that a search finds, and advice."""
  first = error.message.splitlines()[0]
  if isinstance(error, OutOfMemory):
    assert number == errno.ENOMEM and "cannot allocate" in first and "other programs may hold the rest" in first, f"{where}: {error.message}"
    return
  call = {"open": "opening /dev/", "mmap": "mapping 0x"}.get(name, name)
  assert call in first and errno.errorcode[number] in first and first.partition("; ")[2], f"{where}: {error.message}"

@pytest.mark.parametrize("card", CARDS)
def test_opening(card: str, monkeypatch: pytest.MonkeyPatch) -> None:
  names, _ = calls_of(card, monkeypatch)
  assert {"open", "mmap", "CreateQueue", "CreateEvent", "AcquireVm"} <= set(names)
  for nth, name, number in failing(names):
    where = f"call {nth}, {name}, {errno.errorcode[number]}"
    computer = make(card, monkeypatch)
    computer.fail(name, nth, number)
    with pytest.raises(TinyError) as caught: opened()
    check_message(caught.value, name, number, where)
    device = opened()                      # the process goes on, and finds all that it needs
    step(device)
    device.close()
    kfd.forget(computer)
    assert computer.census() == KEPT, where

def test_calls_that_signals_interrupt_are_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
  opening, running = calls_of("gfx1100", monkeypatch)
  computer = make("gfx1100", monkeypatch)
  for name, count in collections.Counter((*opening, *running)).items():
    for nth in range(1, 2 * count, 2):  # the call, and not the next one, which repeats it
      if name not in ("open", "mmap"): computer.fail(name, nth, errno.EINTR)  # Python itself repeats what can be interrupted of these
  device = opened()
  step(device)
  device.close()
  kfd.forget(computer)
  assert computer.census() == KEPT

@pytest.mark.parametrize("card", CARDS)
def test_in_mid_run(card: str, monkeypatch: pytest.MonkeyPatch) -> None:
  """While buffers are made, kernels loaded, results awaited, memory given back, and the device closed."""
  _, names = calls_of(card, monkeypatch)
  assert {"AllocMemoryOfGpu", "MapMemoryToGpu", "WaitEvents", "UnmapMemoryFromGpu", "FreeMemoryOfGpu", "DestroyQueue", "DestroyEvent"} <= set(names)
  for nth, name, number in list(failing(names))[::1 if card == "gfx1100" else cases(3, 1)]:
    where = f"call {nth}, {name}, {errno.errorcode[number]}"
    computer = make(card, monkeypatch)
    device = opened()
    computer.fail(name, nth, number)
    try:
      step(device)
      device.close()
    except TinyError as error: check_message(error, name, number, where)
    computer.failures.clear()
    if device.lost is None and not device.closed: step(device)
    device.close()
    again = opened()
    step(again)
    again.close()
    kfd.forget(computer)
    assert computer.census() == KEPT, f"{where}: {computer.census()}"
