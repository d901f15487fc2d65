"""The interface of the CPU device."""
import pytest
from host_kernels import Loaded, code, open_cpu

from tinyhw import device as devices
from tinyhw.drivers import cpu
from tinyhw.errors import DeviceError
from tinyhw.machine.ir.code import Code

def test_code_of_another_machine_is_refused() -> None:
  device = open_cpu(1)
  for arch in ("c", "x86_64:avx512", "python"):
    with pytest.raises(DeviceError, match=f"kernel k is for {arch}, device CPU is x86_64:avx2; compile it for that"):
      device.load(Code("k", arch, b"\xc3", ()))
  device.close()

def test_facts() -> None:
  device = open_cpu(3)
  facts = device.facts()
  assert (facts["threads"] == 3 and facts["arch"] == "x86_64:avx2" and len(facts["cache_bytes"]) == 3
          and "avx2" in facts["features"])
  assert facts["local_bytes"] == facts["cache_bytes"][1] // 2
  device.close()

def test_devices_are_numbered() -> None:
  open_cpu(1).close()
  first, second = cpu.open(0, devices.runtime), cpu.open(1, devices.runtime)
  assert (first.name, second.name) == ("CPU", "CPU:1") and first.ring is not second.ring
  first.close()
  second.close()

def test_local_bytes_become_scratch() -> None:
  loaded = Loaded(open_cpu(2))
  loaded.device.load(code("scratch", loaded.device.arch, local_bytes=100_000))
  assert loaded.device.ring.scratch_bytes >= 100_000
  loaded.device.close()
