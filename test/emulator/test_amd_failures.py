"""Every call of the AMD driver to the kernel fails in turn, with each of its errnos: when the device is opened, and in
mid-run.

The error says which call failed, why, and what to do. Earlier and later requests are not harmed. The device goes on, or
is lost, says so, and opens again. The virtual kernel counts the resources that are left (test/support/gpu/failures.py).
"""
import errno

import pytest
from gpu.failures import Vendor, interrupted, opening_fails, running_fails
from formats.mutations import cases

from tinyhw.drivers import amd
from tinyhw.drivers.amd import kfd
from tinyhw.emulator.amd.card.computer import GpuHost

CARDS = ("gfx1100", "gfx1200", "gfx942")
# errnos of Linux, by call: kfd_chardev.c and the functions that it calls; mmap(2), open(2)
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
# The page of events: the kernel's driver keeps it until the process ends
AMD = Vendor(lambda card: GpuHost(card, [card]),
             lambda: amd.open(0, lambda name: None),  # type: ignore[arg-type,return-value]
             kfd.forget, PLAUSIBLE, kept={"bytes": 0x8000, "buffers": 1, "ranges": 1})

@pytest.mark.parametrize("card", CARDS)
def test_opening(card: str, monkeypatch: pytest.MonkeyPatch) -> None:
  assert {"open", "mmap", "CreateQueue", "CreateEvent", "AcquireVm"} <= opening_fails(AMD, card, monkeypatch)

@pytest.mark.slow
@pytest.mark.parametrize("card", CARDS)
def test_in_mid_run(card: str, monkeypatch: pytest.MonkeyPatch) -> None:
  names = running_fails(AMD, card, monkeypatch, 1 if card == "gfx1100" else cases(3, 1))
  assert {"AllocMemoryOfGpu", "MapMemoryToGpu", "WaitEvents", "UnmapMemoryFromGpu", "FreeMemoryOfGpu", "DestroyQueue",
          "DestroyEvent"} <= names

def test_calls_that_signals_interrupt_are_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
  interrupted(AMD, "gfx1100", monkeypatch)
