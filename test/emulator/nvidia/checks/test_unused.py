"""EMULATE_STRICT=2 on SASS: results that no path reads, and results that some path or lane reads."""
from __future__ import annotations

import pytest
from gpu.programs import code
from nvidia.warps import ORIGIN, assembled, block_of

from tinyhw.device import Launch
from tinyhw.drivers import nvidia
from tinyhw.drivers.linux import files
from tinyhw.drivers.nvidia import rm
from tinyhw.emulator.errors import UnusedResult
from tinyhw.emulator.nvidia.card.computer import GpuHost
from tinyhw.emulator.nvidia.checks.unused import check

def look(*lines: str) -> None:
  block = block_of(assembled(lines))
  check(block.launch, block.decoder)

USED = (["MOV R0, 0x1", "STS [RZ], R0"], ["ISETP.LT.AND P0, PT, RZ, RZ, PT", "@P0 MOV R0, RZ", "STS [RZ], R0"],
        ["MOV R0, 0x1", "@P0 MOV R0, 0x2", "STS [RZ], R0"],
        ["MOV R0, 0x1", f"@P0 BRA {ORIGIN + 0x30:#x}", "MOV R0, 0x2", "STS [RZ], R0"],
        ["MOV R0, 0x1", "IADD3 R0, R0, 0x1, RZ", f"@P0 BRA {ORIGIN + 0x10:#x}"],
        ["MOV R0, 0x1", "@P0 EXIT", "STS [RZ], R0"])

@pytest.mark.parametrize("lines", USED)
def test_what_is_read_is_used(lines: list[str]) -> None: look(*lines)

@pytest.mark.parametrize("lines,text", [
  (["MOV R0, 0x1", "MOV R0, 0x2", "STS [RZ], R0"], r"kernel \+ 0x0: .*MOV R0, 0x1"), (["MOV R0, 0x1"], "MOV R0"),
  (["MOV R0, 0x1", "EXIT", "STS [RZ], R0"], "MOV R0"), (["LDG.E R0, [R2]"], "LDG"),
  (["ISETP.LT.AND P0, PT, RZ, RZ, PT"], "ISETP"),
  (["MOV R0, 0x1", f"BRA {ORIGIN + 0x30:#x}", "STS [RZ], R0"], "MOV R0")])
def test_what_is_not_read_is_refused(lines: list[str], text: str) -> None:
  with pytest.raises(UnusedResult, match=rf"(?s)no instruction that can come later reads.*{text}.*kernel text"):
    look(*lines)

def test_code_that_goes_anywhere_is_left_alone() -> None: look("MOV R0, 0x1", "BRX R2 0x0")

@pytest.mark.parametrize("strict", (1, 2))
def test_a_launch_is_looked_at(strict: int, monkeypatch: pytest.MonkeyPatch) -> None:
  """Only strict execution of the second level does it."""
  computer = GpuHost("sm_90", ["sm_90"], strict=strict)
  monkeypatch.setattr(files, "COMPUTER", computer)
  looked: list[str] = []
  monkeypatch.setattr("tinyhw.emulator.nvidia.checks.unused.check", lambda launch, decoder: looked.append(launch.name))
  device = nvidia.open(0, lambda name: None)  # type: ignore[arg-type,return-value]
  buffers = [device.allocator.alloc(4096) for _ in range(3)]
  for buffer in buffers: device.allocator.copyin(buffer, memoryview(bytearray(4096)))
  try:
    device.submit([Launch(device.load(code("sm_90")), buffers, [0], 1)])
    device.synchronize()
  finally:
    device.close()
    rm.forget(computer)
  assert len(looked) == (strict == 2)
