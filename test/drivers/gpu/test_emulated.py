"""The drivers on virtual computers, which enforce the kernel's rules and execute the bytes of kernels, all of a launch
at once."""
import concurrent.futures
import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from gpu.programs import DUTIES, GROUPS, N, Vectors, goes_round_its_rings, small_rings, works

from tinyhw import Tensor, TinyJit, emulator
from tinyhw.config import Context
from tinyhw.device import Device, Launch
from tinyhw.drivers import amd, nvidia
from tinyhw.drivers.amd import kfd
from tinyhw.drivers.gpu import queue
from tinyhw.drivers.gpu.device import GpuDevice
from tinyhw.drivers.gpu.launch import GpuRecording, GpuProgram
from tinyhw.drivers.linux import files
from tinyhw.drivers.nvidia import rm
from tinyhw.emulator.amd.card import events
from tinyhw.emulator.errors import OutOfBounds
from tinyhw.errors import DeviceError, DriverError

ROOT = Path(__file__).resolve().parents[3]
KINDS = ("gfx1100", "gfx1200", "gfx942", "gfx950", "sm_80", "sm_90")
FEW = ("gfx1100", "gfx942", "sm_90")  # for tests that start processes
Opener = Callable[..., list[GpuDevice]]

@pytest.fixture
def virtual(monkeypatch: pytest.MonkeyPatch) -> Iterator[Opener]:
  """Return virtual("gfx1100x2"): the devices of a separate virtual computer."""
  boxes, devices = list[Any](), list[GpuDevice]()
  def make(name: str) -> list[GpuDevice]:
    boxes.append(emulator.make(name, seed=7))
    monkeypatch.setattr(files, "COMPUTER", boxes[-1])
    driver = amd if vendor(name) == "AMD" else nvidia
    devices.extend(driver.open(i, lambda name: None)
                   for i in range(2 if name.endswith("x2") else 1))  # type: ignore[arg-type]
    return devices
  yield make
  for device in devices: device.close()
  for box in boxes:
    for forget in (kfd.forget, rm.forget): forget(box)

def vendor(kind: str) -> str: return "NV" if kind.startswith("sm_") else "AMD"

@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("duty", DUTIES, ids=lambda duty: duty.__name__)
def test_a_device(virtual: Opener, duty: Callable[[GpuDevice], None], kind: str,
                  monkeypatch: pytest.MonkeyPatch) -> None:
  if duty is goes_round_its_rings: small_rings(monkeypatch)
  duty(virtual(kind)[0])

@pytest.mark.parametrize("kind", FEW)
def test_what_becomes_garbage_waits_for_no_lock(virtual: Opener, kind: str) -> None:
  """A finalizer does not wait for a lock of another thread, which may wait for one of this thread's. The memory is
  freed when the lock is free."""
  device = virtual(kind)[0]
  v = Vectors(device)
  kept: list[Any] = [device.load(v.program.code), device.record([v.launch(v.one, v.half)])]
  code, memories = len(device.code.live), len(device.memories)
  with device.lock, concurrent.futures.ThreadPoolExecutor(1) as pool: pool.submit(kept.clear).result(timeout=60)
  assert not kept
  device.synchronize()
  device.code.free_cache()
  assert len(device.code.live) == code - 1 and len(device.memories) == memories - 1

@pytest.mark.parametrize("kind", KINDS)
def test_a_bad_address_is_told_and_another_device_goes_on(virtual: Opener, kind: str) -> None:
  device, other = virtual(f"{kind}x2")
  v, big = Vectors(device), device.allocator.alloc(4 << 20)
  class Beyond:
    address = big.address + (4 << 20)
  device.submit([Launch(v.program, [Beyond(), v.one, v.half], [0], GROUPS)])
  with pytest.raises(DriverError) as caught: device.synchronize()
  text = caught.value.message
  found = re.search(r"touches memory that it has not.*? at (0x\w+)", text)
  assert (text.startswith(f"{device.name} ({kind}) touches memory") and found
          and 0 <= int(found[1], 16) - Beyond.address < 4 * N), text
  assert "which it was at: add" in text
  place = (r"\n  (.*: )?(read of|write to) 0x\w+: not present; .*\n +at 0x\w+ \(kernel \+ 0x\w+\): .*\n +lane \d+ of "
           r"(wave|warp) \d+ of .*kernel")
  assert re.search(place, text) and "dmesg" not in text, text
  assert f"{Beyond.address:#x} is the end of a buffer of 4.00 MB" in text
  w = Vectors(other)
  other.submit([w.launch(w.one, w.one)])
  assert w.read(w.out) == [i * 2.0 for i in range(N)]

class Moved:
  """A buffer whose address is wrong by some bytes."""
  def __init__(self, buffer: Any, by: int): self.address, self.size = buffer.address + by, 4 * N

@pytest.mark.parametrize("translate", (0, 1))
@pytest.mark.parametrize("kind", KINDS)
def test_accesses_beyond_the_ends_of_buffers_are_errors(virtual: Opener, kind: str, translate: int) -> None:
  """The last lanes access memory beyond the end, the first one memory before the start.

  Memory there is mapped, and other buffers are next to it.
  """
  with Context(EMULATE_TRANSLATE=translate):
    for verb, by, beyond, lane in (("writes", 16, 4 * N, "28|60"), ("reads", 16, 4 * N, "28|60"),
                                   ("writes", -4, -4, "0")):
      device = virtual(kind)[-1]
      v = Vectors(device)
      v.out = v.floats([0.0] * N)
      target, source = (Moved(v.out, by), v.one) if verb == "writes" else (v.out, Moved(v.one, by))
      with pytest.raises(OutOfBounds) as caught:
        device.submit([Launch(v.program, [target, source, v.half], [0], GROUPS)])
        device.synchronize()
      text, place = caught.value.message, (v.out if verb == "writes" else v.one).address + beyond
      assert re.search(rf"{verb} \d+ bytes at 0x\w+, and no buffer has {place:#x}: .*one of {4 * N} bytes at",
                       text), text
      assert re.search(rf"\n  at 0x\w+ \(kernel \+ 0x\w+\): .*\n  lane ({lane}) of (wave|warp) \d+ of (.*\n)+.*: add",
                       text), text

@pytest.mark.parametrize("kind", FEW)
def test_copies_beyond_the_ends_of_buffers_are_errors(virtual: Opener, kind: str) -> None:
  device = virtual(kind)[0]
  v = Vectors(device)
  with pytest.raises(OutOfBounds, match=f"reads {4 * N + 1} bytes .* no buffer has {v.one.address + 4 * N:#x}"):
    device.enqueue_copy(v.out.address, v.one.address, 4 * N + 1)
    device.synchronize()

@pytest.mark.parametrize("kind", FEW)
def test_buffers_of_all_sizes_have_bytes_of_nobody_behind_them(virtual: Opener, kind: str) -> None:
  device = virtual(kind)[0]
  parts = sorted((device.allocator.alloc(size) for size in (1, 60, 256, 257, 5000, 100_000, 1 << 19, (1 << 19) + 1)),
                 key=lambda part: part.address)
  for part, behind in zip(parts, [*parts[1:], None]):
    table = next(iter(device.box.tables()))  # type: ignore[attr-defined]
    entry = table.find(part.address)
    start = entry.offset + part.address - entry.start
    assert entry.frames.outside(start, part.size) is None
    rest = min(entry.frames.size - start, part.size + 256)
    assert rest == part.size or entry.frames.outside(start, rest) == start + part.size
    assert behind is None or behind.address >= part.address + part.size + 256

@pytest.mark.parametrize("kind", ("gfx1100", "sm_90"))
@pytest.mark.parametrize("replayed", (False, True))
def test_a_fault_of_a_tensors_kernel_names_the_line_and_the_nearest_tensor(virtual: Opener,
                                                                           monkeypatch: pytest.MonkeyPatch, kind: str,
                                                                           replayed: bool) -> None:
  name, device = vendor(kind), virtual(kind)[0]
  monkeypatch.setattr(Device, "_opened", {name: device})
  def model(x: Tensor) -> Tensor:
    return (x * 2 + x.sum()).realize()  # the line
  line = model.__code__.co_firstlineno + 1
  step = TinyJit(model) if replayed else model
  large = Tensor.zeros(1 << 18, device=name).contiguous().realize()
  for i in range(3 if replayed else 1): step(Tensor([1.0, 2.0, i], device=name).realize())
  device.synchronize()
  class Astray:
    address, size = large.uop.buffer._buf.address + (1 << 30), 12
  pack, patch = GpuProgram.pack, GpuRecording.patch
  monkeypatch.setattr(GpuProgram, "pack", lambda kernel,
                      launch: pack(kernel, launch._replace(buffers=[Astray] * len(launch.buffers))))
  monkeypatch.setattr(GpuRecording, "patch", lambda recording, launch, position,
                      value: patch(recording, launch, position, Astray))
  with pytest.raises(DriverError) as caught: step(Tensor([1.0, 2.0, 5.0], device=name).realize()).tolist()
  text = caught.value.message
  assert re.search(rf"which it was at: \w+ of {re.escape(__file__)}:{line}\b", text), text
  assert re.search(r"is the end of a buffer of .* with \d+ float32, .* before it", text), text

@pytest.mark.parametrize("kind", FEW)
def test_a_seed_is_a_run_however_busy_the_machine_is(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
  """A microsecond, or 10 ms, pass between two reads of the clock."""
  class Clock:
    def __init__(self, seconds: float): self.seconds, self.now, self.sleep = seconds, 0.0, time.sleep
    def monotonic(self) -> float:
      self.now += self.seconds
      return self.now
  def run(seconds: float) -> tuple[int, object]:
    box, clock = emulator.make(kind, seed=5), Clock(seconds)
    monkeypatch.setattr(files, "COMPUTER", box)
    for module in (queue, events): monkeypatch.setattr(module, "time", clock)
    device = (amd if vendor(kind) == "AMD" else nvidia).open(0, lambda name: None)  # type: ignore[arg-type]
    assert works(device, random.Random(0))  # type: ignore[arg-type]
    device.close()
    for forget in (kfd.forget, rm.forget): forget(box)
    return box.scheduler.steps, box.scheduler.random.getstate()  # type: ignore[attr-defined]
  assert run(1e-6) == run(1e-2)

@pytest.mark.parametrize("kind", KINDS)
def test_gpus_copy_from_each_other(virtual: Opener, kind: str) -> None:
  v, w = map(Vectors, virtual(f"{kind}x2"))
  assert w.device.allocator.transfer(w.out, v.one, 4 * N)
  assert w.read(w.out) == list(map(float, range(N)))

@pytest.mark.parametrize("kind", FEW)
def test_gpus_use_each_others_memory_in_place_or_not_at_all(virtual: Opener, kind: str) -> None:
  """A kernel of one GPU reads a buffer of the other. A GPU cannot copy memory of the program from another one."""
  v, w = map(Vectors, virtual(f"{kind}x2"))
  class Shared:
    _buf, device = v.one, v.device.name
  v.device.synchronize()  # only the program orders the work of two GPUs
  w.device.submit([Launch(w.program, [w.out, w.device.allocator.map(Shared), w.half], [0],
                          GROUPS)])  # type: ignore[arg-type]
  assert w.read(w.out) == [i * 1.5 for i in range(N)]
  assert not w.device.allocator.transfer(w.out, b"bytes", 5)

@pytest.mark.parametrize("kind", FEW)
def test_without_a_link_copies_go_another_way(virtual: Opener, kind: str) -> None:
  v, w = map(Vectors, virtual(f"{kind}x2"))
  files.COMPUTER.peers = False  # type: ignore[attr-defined]
  assert not w.device.allocator.transfer(w.out, v.one, 4 * N)
  class Shared:
    _buf, device = v.one, v.device.name
  with pytest.raises(DeviceError, match=f"{w.device.name} cannot see memory of {v.device.name}"):
    w.device.allocator.map(Shared)  # type: ignore[arg-type]

@pytest.mark.parametrize("kind", FEW)
def test_kernels_are_timed_where_users_ask_for_it(kind: str, tmp_path: Path) -> None:
  """With PROFILE=1 the trace has each launch with its time, including those of replays."""
  trace = tmp_path / "trace.json"
  environment = {**os.environ, "EMULATE": kind, "DEV": vendor(kind), "PYTHONPATH": str(ROOT), "CACHE": "0",
                 "PROFILE": "1",
                 "PROFILE_FILE": str(trace)}
  done = subprocess.run([sys.executable, "-c", STEP], env=environment, capture_output=True, text=True)
  assert done.returncode == 0, done.stderr
  events = json.loads(trace.read_text())
  events = events["traceEvents"] if isinstance(events, dict) else events
  kernels = [e for e in events if e.get("ph") == "X" and "grid" in e.get("args", {})]
  assert len(kernels) >= 4 and all(e["dur"] > 0 for e in kernels)

STEP = """
from tinyhw import Tensor, TinyJit
weight = (Tensor.arange(64).reshape(8, 8) * 0.5).realize()
@TinyJit
def step(x): return ((x @ weight).relu().sum(axis=1) + x.sum()).realize()
for i in range(4):
  x = [[float(i + 8 * row + column) for column in range(8)] for row in range(2)]
  rows = [sum(max(sum(x[row][k] * (8 * k + j) * 0.5 for k in range(8)), 0.0) for j in range(8)) for row in range(2)]
  product = [row + sum(map(sum, x)) for row in rows]
  assert step(Tensor(x).realize()).tolist() == product
"""
SHARED = """
from tinyhw import Tensor
from tinyhw.device import Device
devices = Device.DEFAULT, Device.DEFAULT + ":1"
a = Tensor.arange(32).reshape(8, 4).float().shard(devices, axis=0)
b = Tensor.arange(8).reshape(4, 2).float().shard(devices)
assert (a @ b).tolist() == [[sum((4 * i + k) * (2 * k + j) for k in range(4)) for j in range(2)] for i in range(8)]
"""

@pytest.mark.parametrize("program, cards", [(STEP, ""), (SHARED, "x2")],
                         ids=["a step that TinyJit replays", "a product on two GPUs"])
@pytest.mark.parametrize("kind", FEW)
def test_programs_run_as_users_start_them(kind: str, program: str, cards: str) -> None:
  """Run with EMULATE and DEV. The emulator runs Python of its own while TinyJit records function calls."""
  environment = {**os.environ, "EMULATE": kind + cards, "DEV": vendor(kind), "PYTHONPATH": str(ROOT), "CACHE": "0"}
  done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
  assert (done.returncode, done.stderr) == (0, "")

STEPS = """
import sys
from tinyhw import Tensor, TinyJit
weight = (Tensor.arange(256).reshape(16, 16) * 0.25).realize()
@TinyJit
def step(x): return (x @ weight).relu().realize()
n = int(sys.argv[1])
for i in range(n):
  x = [[float(i + 16 * row + column) for column in range(16)] for row in range(16)]
  found = step(Tensor(x).realize()).tolist()
  assert found == [[sum(x[row][k] * (16 * k + j) * 0.25 for k in range(16)) for j in range(16)] for row in range(16)]
  print(i, flush=True)
"""

@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="nobody is killed here")
@pytest.mark.parametrize("kind", ("gfx1100", "sm_90"))
def test_processes_with_one_cache_of_kernels_and_one_that_is_killed(kind: str, tmp_path: Path) -> None:
  """Three processes of the operating system write to one cache on disk. One is killed in the middle of a step. The
  others continue, and none of its files, shared memory or locks is left.

  Each has a card of its own; test/emulator/test_processes.py has users of one card.
  """
  shared, cache = Path("/dev/shm"), tmp_path / "cache"
  (tmp_path / "temporary").mkdir()
  environment = {**os.environ, "EMULATE": kind, "DEV": vendor(kind), "PYTHONPATH": str(ROOT), "CACHEDIR": str(cache),
                 "TMPDIR": str(tmp_path / "temporary")}
  def listed() -> set[str]: return set(os.listdir(shared)) if shared.is_dir() else set()
  def start(count: int) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", STEPS, str(count)], env=environment, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True)
  before, killed, others = listed(), start(1 << 20), [start(3) for _ in range(2)]
  assert killed.stdout is not None
  for i in range(3): assert killed.stdout.readline() == f"{i}\n"
  killed.kill()
  killed.communicate()
  for other in others:
    told, errors = other.communicate(timeout=300)
    assert (other.returncode, told, errors) == (0, "0\n1\n2\n", "")
  assert ({name for name in listed() - before if "tinyhw" in name} == set()
          and not list((tmp_path / "temporary").iterdir()))
  assert not [path for path in cache.rglob("*") if path.suffix in (".tmp", ".lock")]
  done = start(3)
  assert done.communicate(timeout=300)[1] == "" and done.returncode == 0, "who comes later finds nothing in the way"
