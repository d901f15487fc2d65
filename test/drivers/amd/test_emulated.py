"""The driver on a virtual computer, which enforces the kernel's rules and executes the bytes of kernels: all of a launch, at once."""
import os
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tinyhw import emulator
from tinyhw.device import Launch
from tinyhw.drivers import amd
from tinyhw.drivers.amd import kfd
from tinyhw.drivers.amd.device import AMDDevice
from tinyhw.drivers.linux import files
from tinyhw.errors import DriverError
from tinyhw.isa.amd import syntax
from tinyhw.machine.code import Code

ROOT = Path(__file__).resolve().parents[3]
KINDS = ("gfx1100", "gfx1200", "gfx942")
LANES, GROUPS = 64, 5
N = LANES * GROUPS
# out[i] = a[i] + b[i] + x, as each chip has it: where the workgroup's number is, names of loads, waits
WORDS = {
  "gfx1100": {"group": "s15", "load": "b32", "load2": "b64", "load4": "b128", "add": "v_add_nc_u32", "scalars": "s_waitcnt lgkmcnt(0)",
              "vectors": "s_waitcnt vmcnt(0)", "stores": "s_waitcnt_vscnt null, 0x0"},
  "gfx1200": {"group": "ttmp9", "load": "b32", "load2": "b64", "load4": "b128", "add": "v_add_nc_u32", "scalars": "s_wait_kmcnt 0x0",
              "vectors": "s_wait_loadcnt 0x0", "stores": "s_wait_storecnt 0x0"},
  "gfx942": {"group": "s2", "load": "dword", "load2": "dwordx2", "load4": "dwordx4", "add": "v_add_u32", "scalars": "s_waitcnt lgkmcnt(0)",
             "vectors": "s_waitcnt vmcnt(0)", "stores": "s_waitcnt vmcnt(0)"},
}
ADD = """s_load_{load4} s[4:7], s[0:1], 0x0
s_load_{load2} s[8:9], s[0:1], 0x10
s_load_{load} s10, s[0:1], 0x18
s_lshl_b32 s11, {group}, 6
v_and_b32 v0, 0x3ff, v0
{add} v0, s11, v0
v_lshlrev_b32 v0, 2, v0
{scalars}
global_load_{load} v1, v0, s[6:7]
global_load_{load} v2, v0, s[8:9]
{vectors}
v_add_f32 v1, v1, v2
v_add_f32 v1, s10, v1
global_store_{load} v0, v1, s[4:5]
s_endpgm"""
ENDLESS = "s_branch 0xffff"
# out[i] = i + (i + 7), both spilled before they are added
SPILL = """s_load_{load2} s[4:5], s[0:1], 0x0
s_lshl_b32 s11, {group}, 6
v_and_b32 v0, 0x3ff, v0
{add} v0, s11, v0
{add} v3, 7, v0
scratch_store_{load} off, v0, off offset:4
scratch_store_{load} off, v3, off offset:64
{stores}
scratch_load_{load} v1, off, off offset:4
scratch_load_{load} v2, off, off offset:64
v_lshlrev_b32 v0, 2, v0
{vectors}
{add} v1, v1, v2
{scalars}
global_store_{load} v0, v1, s[4:5]
s_endpgm"""

def code(kind: str, text: str = ADD, name: str = "add", arguments: tuple[str, ...] = ("buffer", "buffer", "buffer", "int64"), **fields: Any) -> Code:
  made = b"".join(syntax.assemble(line, kind) for line in text.format(**WORDS[kind]).splitlines())
  return Code(name, kind, made, arguments, lanes=LANES, registers=(("vgpr", 4), ("sgpr", 16)), **fields)

class Opened:
  """A device on a virtual computer of its own, and three buffers of floats on it."""
  def __init__(self, monkeypatch: pytest.MonkeyPatch, name: str, ordinals: int = 1):
    self.kind = name.removesuffix("x2")
    self.box: Any = emulator.make(name, seed=7)
    monkeypatch.setattr(files, "COMPUTER", self.box)
    self.devices: list[AMDDevice] = [amd.open(i, lambda name: None) for i in range(ordinals)]  # type: ignore[arg-type,return-value]
    self.device = self.devices[0]
    self.buffers = [self.floats([0.0] * N), self.floats(range(N)), self.floats(i / 2 for i in range(N))]
    self.program = self.device.load(code(self.kind))

  def floats(self, values: Any, device: AMDDevice | None = None) -> Any:
    device = device or self.device
    opaque = device.allocator.alloc(4 * N)
    device.allocator.copyin(opaque, memoryview(struct.pack(f"<{N}f", *values)))
    return opaque

  def read(self, opaque: Any, device: AMDDevice | None = None) -> list[float]:
    out = bytearray(4 * N)
    (device or self.device).allocator.copyout(memoryview(out), opaque)
    return list(struct.unpack(f"<{N}f", out))

  def close(self) -> None:
    for device in self.devices: device.close()
    kfd.forget(self.box)

@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
  made: list[Opened] = []
  def make(name: str, ordinals: int = 1) -> Opened:
    made.append(Opened(monkeypatch, name, ordinals))
    return made[-1]
  yield make
  for each in made: each.close()

def bits(value: float) -> int: return int(struct.unpack("<i", struct.pack("<f", value))[0])

@pytest.mark.parametrize("kind", KINDS)
def test_a_kernel_computes(opened: Any, kind: str) -> None:
  box = opened(kind)
  box.device.submit([Launch(box.program, box.buffers, [bits(100.0)], GROUPS)])
  assert box.read(box.buffers[0]) == [i * 1.5 + 100 for i in range(N)]

@pytest.mark.parametrize("kind", KINDS)
def test_kernels_see_what_kernels_before_have_written(opened: Any, kind: str) -> None:
  """Also those of other dies, in one submission and over several, with copies between them."""
  box = opened(kind)
  out, one, half = box.buffers
  box.device.submit([Launch(box.program, [out, out, half], [0], GROUPS)] * 3)
  box.device.allocator.copyin(one, memoryview(struct.pack(f"<{N}f", *[1.0] * N)))
  box.device.submit([Launch(box.program, [out, out, one], [0], GROUPS)])
  assert box.read(out) == [i * 1.5 + 1 for i in range(N)]

@pytest.mark.parametrize("kind", KINDS)
def test_what_lanes_spill_comes_back(opened: Any, kind: str) -> None:
  """In memory that grows while kernels that use it are recorded."""
  box, groups = opened(kind), 40
  out = box.device.allocator.alloc(4 * LANES * groups)
  small = box.device.load(code(kind, SPILL, "spill", ("buffer",), private_bytes=68))
  recording = box.device.record([Launch(small, [out], (), groups)])
  box.device.load(code(kind, SPILL, "spill", ("buffer",), private_bytes=1000))
  recording.submit()
  found = bytearray(4 * LANES * groups)
  box.device.allocator.copyout(memoryview(found), out)
  assert struct.unpack(f"<{LANES * groups}I", found) == tuple(2 * i + 7 for i in range(LANES * groups))

@pytest.mark.parametrize("kind", KINDS)
def test_a_recording_replays(opened: Any, kind: str) -> None:
  box = opened(kind)
  out, one, half = box.buffers
  recording = box.device.record([Launch(box.program, [out, one, half], [0], GROUPS), Launch(box.program, [out, out, one], [0], GROUPS)])
  recording.submit()
  recording.submit()
  assert box.read(out) == [i * 2.5 for i in range(N)]
  recording.patch(1, 2, half)
  recording.patch(1, 3, bits(3.0))
  recording.submit()
  assert box.read(out) == [i * 2.0 + 3 for i in range(N)]
  recording.patch_grid(1, 0)
  times = recording.submit_timed()
  assert box.read(out) == [i * 1.5 for i in range(N)] and len(times) == 2 and all(start < end for start, end in times)

@pytest.mark.parametrize("kind", KINDS)
def test_a_bad_address_is_told_and_another_device_goes_on(opened: Any, kind: str) -> None:
  box = opened(f"{kind}x2", 2)
  big = box.device.allocator.alloc(4 << 20)
  class Beyond:
    address = big.address + (4 << 20)
  box.device.submit([Launch(box.program, [Beyond(), *box.buffers[1:]], [0], GROUPS)])
  with pytest.raises(DriverError) as caught: box.device.synchronize()
  text = caught.value.message
  assert text.startswith(f"AMD ({kind}) touches memory that it has not at {big.address + (4 << 20):#x}") and "which it was at: add" in text
  assert f"{big.address + (4 << 20):#x} is the end of a buffer of 4.00 MB" in text
  other = box.devices[1]
  a = box.floats(range(N), other)
  program = other.load(code(kind))
  other.submit([Launch(program, [a, a, a], [0], GROUPS)])
  assert box.read(a, other) == [i * 2.0 for i in range(N)]

@pytest.mark.parametrize("kind", KINDS)
def test_gpus_copy_from_each_other(opened: Any, kind: str) -> None:
  box = opened(f"{kind}x2", 2)
  there = box.devices[1].allocator.alloc(4 * N)
  assert box.devices[1].allocator.transfer(there, box.buffers[1], 4 * N)
  assert box.read(there, box.devices[1]) == list(map(float, range(N)))

@pytest.mark.parametrize("kind", KINDS)
def test_long_runs_go_round_the_rings(opened: Any, kind: str) -> None:
  box = opened(kind)
  out, one, half = box.buffers
  for _ in range(4 if kind == "gfx942" else 40): box.device.submit([Launch(box.program, [out, out, half], [0], 0)] * 100)
  box.device.submit([Launch(box.program, [out, one, half], [0], GROUPS)])
  assert box.read(out) == [i * 1.5 for i in range(N)]

STEP = """
from tinyhw import Tensor, TinyJit
weight = (Tensor.arange(64).reshape(8, 8) * 0.5).realize()
@TinyJit
def step(x): return ((x @ weight).relu().sum(axis=1) + x.sum()).realize()
for i in range(4):
  x = [[float(i + 8 * row + column) for column in range(8)] for row in range(2)]
  product = [sum(max(sum(x[row][k] * (8 * k + j) * 0.5 for k in range(8)), 0.0) for j in range(8)) + sum(map(sum, x)) for row in range(2)]
  assert step(Tensor(x).realize()).tolist() == product
"""
SHARED = """
from tinyhw import Tensor
a = Tensor.arange(32).reshape(8, 4).float().shard(("AMD", "AMD:1"), axis=0)
b = Tensor.arange(8).reshape(4, 2).float().shard(("AMD", "AMD:1"))
assert (a @ b).tolist() == [[sum((4 * i + k) * (2 * k + j) for k in range(4)) for j in range(2)] for i in range(8)]
"""

@pytest.mark.parametrize("program, cards", [(STEP, ""), (SHARED, "x2")], ids=["a step that TinyJit replays", "a product on two GPUs"])
@pytest.mark.parametrize("kind", KINDS)
def test_programs_run_as_users_start_them(kind: str, program: str, cards: str) -> None:
  """With EMULATE and DEV. The emulator runs Python of its own while TinyJit watches which functions are called."""
  environment = {**os.environ, "EMULATE": kind + cards, "DEV": "AMD", "PYTHONPATH": str(ROOT), "CACHE": "0"}
  done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
  assert (done.returncode, done.stderr) == (0, "")
