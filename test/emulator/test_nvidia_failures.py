"""Every call of the NV driver to the kernel fails in turn, with each of its errnos and statuses of the resource
manager.

The error says which call failed, why, and what to do. Earlier and later requests are not harmed. The device goes on, or
is lost, says so, and opens again. The virtual kernel counts the resources that are left (test/support/gpu/failures.py).
"""
import errno

import pytest
from gpu.failures import Vendor, interrupted, opening_fails, running_fails
from formats.mutations import cases

from tinyhw.autogen.nvidia.rm import Status
from tinyhw.config import Context
from tinyhw.drivers import nvidia
from tinyhw.drivers.nvidia import rm
from tinyhw.emulator.nvidia.card.computer import GpuHost

S = Status
LOST = S.GPU_IS_LOST, S.RESET_REQUIRED, S.TIMEOUT
# errors of the kernel's module (nv.c, escape.c), and of its resource manager (rmapi, kernel_channel.c, mem_mgr);
# unified memory: uvm_ioctl.h
CONTROL: tuple[int, ...] = (errno.EINVAL, S.INVALID_ARGUMENT, S.NOT_SUPPORTED, S.INSUFFICIENT_PERMISSIONS, *LOST,
                            errno.ENOMEM,
                            S.INVALID_PARAM_STRUCT)
GIVEN_BACK: tuple[int, ...] = (S.GPU_IS_LOST, S.IN_USE, errno.EINVAL)
PLAUSIBLE: dict[str, tuple[int, ...]] = {
  "open": (errno.ENOENT, errno.EACCES, errno.EPERM, errno.ENODEV, errno.ENXIO, errno.EMFILE, errno.ENFILE, errno.ENOMEM,
           errno.EIO),
  "mmap": (errno.ENOMEM, errno.EINVAL, errno.ENXIO, errno.EAGAIN),
  "RegisterFd": (errno.EINVAL, errno.ENOMEM),
  "CardInfo": (errno.EINVAL, errno.ENOMEM, errno.EFAULT),
  "RmAlloc": (S.NO_MEMORY, errno.ENOMEM, S.INSUFFICIENT_RESOURCES, S.NO_FREE_FIFOS, S.INVALID_CLASS, S.INVALID_ARGUMENT,
              S.STATE_IN_USE,
              *LOST, errno.EPERM),
  "RmAllocMemory": (S.NO_MEMORY, errno.EFAULT, S.INVALID_ARGUMENT, errno.ENOMEM),
  "RmMapMemory": (S.NO_MEMORY, S.INSUFFICIENT_RESOURCES, errno.EINVAL, S.INVALID_LIMIT),
  "RmFree": GIVEN_BACK,
  **dict.fromkeys(("GetIdInfo", "GetClassList", "GetNameString", "GetGidInfo", "AcquireComputeModeReservation",
                   "GrGetGpcMask", "GrGetTpcMask",
                   "GrGetInfo", "FbGetInfo", "GroupSchedule", "GetWorkSubmitToken"), CONTROL),
  "UvmInitialize": (S.NOT_SUPPORTED, errno.ENOMEM, S.INVALID_ARGUMENT),
  "UvmMmInitialize": (S.INVALID_ARGUMENT, S.INVALID_STATE, errno.EINVAL),
  "UvmRegisterGpu": (S.INVALID_DEVICE, S.NO_MEMORY, S.GPU_IS_LOST, errno.EINVAL),
  "UvmRegisterVaSpace": (S.NO_MEMORY, S.INVALID_DEVICE, S.NOT_SUPPORTED),
  "UvmRegisterChannel": (S.NO_MEMORY, S.INVALID_ARGUMENT, S.GPU_IS_LOST, errno.EIO),
  "UvmUnregisterChannel": GIVEN_BACK, "UvmUnmapExternal": GIVEN_BACK, "UvmFree": GIVEN_BACK,
  "UvmCreateExternal": (S.UVM_ADDRESS_IN_USE, S.NO_MEMORY, errno.ENOMEM),
  "UvmMapExternal": (S.NO_MEMORY, S.INVALID_DEVICE, S.NOT_SUPPORTED, errno.ENOMEM),
}
NV = Vendor(lambda card: GpuHost(card, [card]),
            lambda: nvidia.open(0, lambda name: None),  # type: ignore[arg-type,return-value]
            rm.forget, PLAUSIBLE,
            frozenset({"AcquireComputeModeReservation", "FbGetInfo", "GrGetInfo", "GrGetGpcMask", "GrGetTpcMask"}),
            said=lambda call: "making " if call == "RmAlloc" else call)

@pytest.mark.slow
@pytest.mark.parametrize("card", ("sm_80", "sm_90"))
def test_opening(card: str, monkeypatch: pytest.MonkeyPatch) -> None:
  with Context(EMULATE=""): names = opening_fails(NV, card, monkeypatch)
  assert {"open", "mmap", "RegisterFd", "RmAlloc", "GetClassList", "GroupSchedule", "UvmRegisterGpu",
          "UvmRegisterChannel"} <= names

@pytest.mark.slow
@pytest.mark.parametrize("card", ("sm_80", "sm_90"))
def test_in_mid_run(card: str, monkeypatch: pytest.MonkeyPatch) -> None:
  with Context(EMULATE=""): names = running_fails(NV, card, monkeypatch, 1 if card == "sm_90" else cases(3, 1))
  assert {"RmAlloc", "RmAllocMemory", "RmMapMemory", "RmFree", "UvmMapExternal", "UvmUnmapExternal", "UvmFree",
          "UvmUnregisterChannel"} <= names

def test_calls_that_signals_interrupt_are_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
  with Context(EMULATE=""): interrupted(NV, "sm_90", monkeypatch)
