"""The report about a lost GPU."""
import re

import pytest
from amd.box import Opener, code

from tinyhw.device import Buffer, Device, Launch
from tinyhw.drivers.gpu.reports import describe_address, report
from tinyhw.dtype import dtypes

@pytest.mark.slow
def test_addresses_are_told_by_what_lies_next_to_them(opened: Opener) -> None:
  _, device = opened("gfx1100")
  big = device.allocator.alloc(5 << 20)
  assert describe_address(device, big.address + 5) == f"in a buffer of 5.00 MB (5242880 bytes) at {big.address:#x}"
  assert f"{big.address + (5 << 20):#x} is the end of a buffer of 5.00 MB" in describe_address(device,
                                                                                               big.address + (5 << 20))
  assert describe_address(device, 8) == "a null pointer, or an offset from one"
  far = (f"of all buffers {big.address + (5 << 20):#x} is the end of a buffer of 5.00 MB (5242880 bytes), 32.00 TB "
         f"(35184366845952 bytes) before it")
  assert describe_address(device, big.address + (1 << 45)) == far
  address = big.address
  device.allocator.free(big)
  assert describe_address(device, address + (1 << 45)) == "no memory of the device is near it"
  device.allocator.free_cache()
  device.synchronize()
  assert "which was freed" in describe_address(device, address)

@pytest.mark.slow
def test_buffers_are_told_with_what_they_hold(opened: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
  _, device = opened("gfx1100")
  monkeypatch.setattr(Device, "_opened", {"AMD": device})
  buffer = Buffer("AMD", 300, dtypes.float32).allocate()
  view, program = buffer.view(7, dtypes.int64, 80).allocate(), device.load(code("gfx1100", name="adds"))
  start = buffer._buf.address
  assert describe_address(device, start) == f"in a buffer of 1.17 KB (1200 bytes) with 300 float32 at {start:#x}"
  assert describe_address(device, start + 90) == f"in a part of a buffer of 56 bytes with 7 int64 at {start + 80:#x}"
  before = f"{start + 1200:#x} is the end of a buffer of 1.17 KB (1200 bytes) with 300 float32, 8 bytes before"
  assert before in describe_address(device, start + 1208)
  assert re.match("in code of .* with kernel adds at", describe_address(device, program.start))
  signals = device.timeline.memory.address
  told = describe_address(device, signals)
  assert re.fullmatch(f'in "signals" of 4.00 KB .* at {signals:#x}; of all buffers 0x.* of a (part of a )?buffer of .*',
                      told)
  del view

def test_a_report_shows_what_indirect_buffers_hold(opened: Opener) -> None:
  box, device = opened("gfx942")
  program, a = device.load(code("gfx942")), device.allocator.alloc(100)
  device.synchronize()
  box.stopped = True
  device.submit([Launch(program, [a], [1], 77)])
  text = report(device, "has a fault")
  assert "INDIRECT_BUFFER ib_base=0x" in text and "      DISPATCH_DIRECT dim_x=0x4d dim_y=1 dim_z=1" in text
  box.stopped = False
  device.timeline.memory.store32(0, device.timeline.submitted)

def test_a_report_names_the_kernels_that_were_running(opened: Opener) -> None:
  box, device = opened("gfx1100")
  programs, a = [device.load(code(name=f"kernel_{i}")) for i in range(10)], device.allocator.alloc(100)
  device.synchronize()
  box.stopped = True
  device.submit([Launch(program, [a], [1], 1, line=("model.py", 7 + i, "f") if i else None)
                 for i, program in enumerate(programs)])
  lines = report(device, "has a fault").splitlines()
  done = device.timeline.completed
  assert lines[0] == "AMD (gfx1100) has a fault"
  assert lines[1] == f"  submission {done} is the last one that it has done, {done + 1} was submitted last"
  shown = ", ".join(f"kernel_{i} of model.py:{7 + i}" for i in range(1, 8))
  assert lines[2] == f"  submission {done + 1}, which it was at: kernel_0, {shown} and 2 more"
  assert lines[3].startswith("  compute queue ") and lines[4].startswith("  copy queue ")
  assert any("DISPATCH_DIRECT" in line for line in lines)
  assert "dmesg" in lines[-1] and "EMULATE=gfx1100" in lines[-1]
  box.virtual, box.told = True, lambda: "write to 0x10\n  at 0x20"  # type: ignore[method-assign]
  told = report(device, "has a fault")
  box.virtual = False
  assert "dmesg" not in told and told.endswith("\n  write to 0x10\n    at 0x20")
  box.stopped = False
  device.timeline.memory.store32(0, done + 1)
