"""Errors of channels in words."""
from tinyhw.drivers.nvidia import faults
from tinyhw.emulator.errors import PageFault

def test_errors_are_told_with_what_is_known(opened) -> None:
  computer, device = opened("sm_90")
  assert faults.explain(device, device.compute, 13).startswith("a kernel met an exception")
  assert faults.explain(device, device.copies, 32) == "read commands that mean nothing (Xid 32, copy channel)"
  assert faults.explain(device, device.copies, 999) == "was stopped (Xid 999, copy channel)"
  a = device.allocator.alloc(5 << 20)
  computer.engines.channels[device.compute.token].channel.group.fault = PageFault(a.address + 16, True, "read only")
  assert faults.explain(device, device.compute, 31) == ("touches memory that it has not (Xid 31, compute channel) at "
    f"{a.address + 16:#x} (FAULT_RO_VIOLATION): in a buffer of 5.00 MB (5242880 bytes) at {a.address:#x}")
