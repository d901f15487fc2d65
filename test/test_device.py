"""Device and Buffer, on the devices that open everywhere and on drivers made up here."""
import ctypes
import os
import pickle
import struct
import subprocess
import sys
import types
from collections.abc import Iterator
from typing import Any

import pytest

from tinyhw import device as devices
from tinyhw.config import Context
from tinyhw.device import DRIVERS, Buffer, BufferOptions, Compiled, Compiler, Device, Launch, LRUAllocator
from tinyhw.dtype import dtypes
from tinyhw.errors import ArgumentError, ConfigError, DeviceError, DriverError
from tinyhw.helpers import GlobalCounters
from tinyhw.machine.ir.code import Code

HOSTS = ("CPU", "PYTHON")

def opens(name: str) -> bool:
  try: return Device[name] is not None
  except DeviceError: return False

@pytest.fixture(params=HOSTS)
def host(request: pytest.FixtureRequest) -> str:
  if not opens(request.param): pytest.skip(Device.refused[request.param])
  return str(request.param)

class FakeAllocator(LRUAllocator):
  """Memory that the host does not see. Bytearrays behind numbers."""
  def _alloc(self, size: int) -> bytearray: return bytearray(size)
  def _copyin(self, dest: bytearray, src: memoryview) -> None: dest[:len(src)] = src
  def _copyout(self, dest: memoryview, src: bytearray) -> None: dest[:] = src[:len(dest)]
  def offset(self, opaque: bytearray, size: int, offset: int) -> Any: return memoryview(opaque)[offset:offset + size]

@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Iterator[types.ModuleType]:
  """A device FAKE, whose driver is a module made here."""
  module = types.ModuleType("fake_driver")
  module.open = lambda ordinal, runtime: Compiled(f"FAKE:{ordinal}", FakeAllocator("FAKE", limit=1000),
                                                  arch="fake")  # type: ignore[attr-defined]
  monkeypatch.setitem(sys.modules, "fake_driver", module)
  module.__spec__ = types.SimpleNamespace(name="fake_driver")  # type: ignore[assignment]
  monkeypatch.setitem(devices.DRIVERS, "FAKE", "fake_driver")
  yield module
  for name in [name for name in Device._opened if name.startswith("FAKE")]: Device.close(name)
  Device.refused.pop("FAKE", None)

# **** Device ****

def test_names() -> None:
  for name in ("CPU", "cpu", "cpu:0", "CPU:00"): assert Device.canonicalize(name) == "CPU"
  assert Device.canonicalize("python:3") == "PYTHON:3"
  for name in ("CUDA", "gpu", "NV:0"): assert Device.canonicalize(name) == "NV"
  assert Device.canonicalize("cuda:1") == "NV:1"
  assert Device.canonicalize(None) == Device.DEFAULT
  with pytest.raises(DeviceError, match="there is no device 'ABACUS'; the known ones are NV, NV:CUDA, AMD"):
    Device["ABACUS"]
  with pytest.raises(DeviceError, match="what follows the colon is a number, as in CPU:1"): Device["CPU:x"]
  with Context(PLUGINS="json, not_there"), pytest.raises(ConfigError, match="importing 'not_there' failed: No module "
                                                         "named 'not_there'"):
    Device["ABACUS"]
  with pytest.raises(DeviceError, match="named by a string .*, not by 3"):
    Device.canonicalize(3)  # type: ignore[arg-type]

def test_opened_once(host: str) -> None:
  assert Device[host] is Device[host.lower()] is Device[f"{host}:0"]
  assert Device.get_class(host) is type(Device[host]) and host in Device.get_available_devices()
  assert repr(Device[host]).startswith("<") and Device[host].arch in repr(Device[host])

def test_refusals_have_reasons(fake: types.ModuleType) -> None:
  def refuse(ordinal: int, runtime: object) -> Compiled:
    raise DriverError("opening /dev/fake: permission denied; join the group fake")
  fake.open = refuse  # type: ignore[attr-defined]
  with pytest.raises(DeviceError, match="device FAKE does not open: opening /dev/fake: permission denied; join the "
                     "group fake"):
    Device["FAKE"]
  assert Device.refused["FAKE"].startswith("opening /dev/fake") and "FAKE" not in Device.get_available_devices()
  assert any("FAKE" in line and "join the group fake" in line for line in devices.enumerate_devices_str())

def test_no_driver_yet(monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setitem(DRIVERS, "ABSENT", "tinyhw.drivers.absent")
  with pytest.raises(DeviceError, match="device ABSENT does not open: this version of tinyhw has no driver for it"):
    Device["ABSENT"]

def test_default_is_assigned(host: str) -> None:
  before = Device._default
  try:
    Device.DEFAULT = host.lower()
    assert Device.DEFAULT == host and Device.default is Device[host]
    with pytest.raises(DeviceError, match="there is no device 'abacus'"): Device.DEFAULT = "abacus"
    assert Device.DEFAULT == host
    with Context(DEV="PYTHON:2"):
      Device.DEFAULT = None
      assert Device.DEFAULT == "PYTHON:2"
  finally: Device._default = before

def run_python(program: str, **environment: str) -> subprocess.CompletedProcess[str]:
  return subprocess.run([sys.executable, "-c", program], env={**os.environ, "PYTHONPATH": os.getcwd(), **environment},
                        capture_output=True, text=True,
                        timeout=60)

FALLBACK = """
from tinyhw import device
from tinyhw.device import Device
device.PROCESSORS.clear()
print(Device.DEFAULT, Device.DEFAULT)
"""

def test_fallback_says_so_once() -> None:
  done = run_python(FALLBACK, PATH="", DEV="")
  assert done.stdout == "PYTHON PYTHON\n", done.stderr
  assert done.stderr.count("tinyhw: using PYTHON, because device CPU does not open: tinyhw has no assembler for ") == 1

def test_dev_is_obeyed() -> None:
  assert run_python("from tinyhw.device import Device; print(Device.DEFAULT)", DEV="python").stdout == "PYTHON\n"
  assert "there is no device 'abacus'" in run_python("from tinyhw.device import Device; Device.DEFAULT",
                                                     DEV="abacus").stderr

@pytest.mark.parametrize(("emulate", "dev", "default"),
                         [("gfx1100", "", "AMD"), ("sm_90x2", "", "NV"), ("gfx942", "PYTHON", "PYTHON")])
def test_a_virtual_gpu_is_the_default_unless_another_device_is_named(emulate: str, dev: str, default: str) -> None:
  done = run_python("from tinyhw import Tensor; x = Tensor([1, 2]) + 1; print(x.tolist(), x.device)", DEV=dev,
                    EMULATE=emulate)
  assert done.stdout == f"[2, 3] {default}\n", done.stderr

def test_names_of_no_virtual_gpu_are_refused() -> None:
  done = run_python("from tinyhw import Tensor; Tensor([1])", DEV="", EMULATE="i486")
  assert "ConfigError: EMULATE='i486' is no virtual card; its name begins with gfx or sm_" in done.stderr
  done = run_python("from tinyhw import Context, Tensor\nTensor([1])\nwith Context(EMULATE='i486'): Tensor([1])",
                    DEV="", EMULATE="")
  assert "ConfigError: EMULATE='i486' is no virtual card; its name begins with gfx or sm_" in done.stderr

def test_virtual_gpus_of_a_context_are_no_defaults() -> None:
  program = "from tinyhw import Context, Device\nwith Context(EMULATE='gfx1100'): print(Device.DEFAULT != 'AMD')"
  assert run_python(program, DEV="", EMULATE="").stdout == "True\n"

SET_LATE = """
from tinyhw import Context, Device, Tensor
Tensor([1]) + 1
with Context({0}): print(*[(Tensor([1], device=device) + 1).device for device in (None, None, "NULL")])
with Context({0}): Tensor([1])
Device.DEFAULT = "{1}"
with Context({0}): print(Device.DEFAULT)
"""

@pytest.mark.parametrize(("setting", "device"), [("EMULATE='gfx1100'", "AMD"), ("EMULATE='sm_90x2'", "NV"),
                                                 ("DEV='python'", "PYTHON"),
                                                 ("DEV='NULL', EMULATE='gfx1100'", "NULL")])
def test_a_device_of_a_context_that_is_no_default_is_told_once(setting: str, device: str) -> None:
  done = run_python(SET_LATE.format(setting, device), DEV="", EMULATE="")
  before = run_python(SET_LATE.format("DEBUG=0", "CPU"), DEV="", EMULATE="")
  variable = setting.split(", ")[0].replace("'", "")
  assert (done.stdout, before.stdout, before.stderr) == (f"CPU CPU NULL\n{device}\n", "CPU CPU NULL\nCPU\n", "")
  assert done.stderr == (f"tinyhw: {variable} was set after the start, so what names no device is on CPU; pass "
                         f"device=\"{device}\", "
                         f"or assign Device.DEFAULT = \"{device}\"\n")

def test_dev_of_the_start_says_more_than_emulate_of_a_context() -> None:
  done = run_python(SET_LATE.format("EMULATE='gfx1100'", "CPU"), DEV="CPU", EMULATE="")
  assert (done.stdout, done.stderr) == ("CPU CPU NULL\nCPU\n", "")

def test_the_emulator_has_the_families_that_are_defaults() -> None:
  import tinyhw.emulator as emulator
  assert {*devices.EMULATED} == {*emulator.FAMILIES}

def test_import_loads_no_driver() -> None:
  done = run_python("import sys, tinyhw.device; print([m for m in sys.modules if m == 'ctypes' or 'drivers' in m])")
  assert done.stdout == "[]\n", done.stderr

def test_debug_names_what_opened(fake: types.ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
  with Context(DEBUG=1): Device["FAKE"]
  assert capsys.readouterr().err == "opened device FAKE (fake)\n"

# **** what a driver provides ****

def test_a_device_of_parts() -> None:
  """Without a subclass: its renderers, the function that makes programs of Code, and the one that records launches."""
  seen: list[Any] = []
  def load(code: str) -> Any:
    return lambda buffers, variables, first, last: seen.append((code, buffers, tuple(variables), first, last))
  device = Compiled("PARTS", FakeAllocator("PARTS"), ["best", "good"], runtime=load)
  assert (device.name, device.device, device.arch, device.renderers) == ("PARTS", "PARTS", "best", ("best", "good"))
  program = device.load("code")
  device.submit([Launch(program, ["a"], (7,), 3)])
  recording = device.record([Launch(program, ["a"], (7,), 3)])
  recording.patch(0, 0, "b")
  recording.patch(0, 1, 8)
  recording.patch_grid(0, 4)
  recording.submit()
  assert seen == [("code", ["a"], (7,), 0, 3), ("code", ["b"], (8,), 0, 4)]
  (start, end), = recording.submit_timed()  # type: ignore[attr-defined]
  assert start <= end and len(seen) == 3
  graphed = Compiled("PARTS", FakeAllocator("PARTS"), graph=lambda device, launches: (device, launches),
    arch="good")  # type: ignore[arg-type,return-value]
  assert graphed.record([]) == (graphed, []) and graphed.renderers == ("good",)
  with pytest.raises(NotImplementedError): graphed.load("code")
  with pytest.raises(ArgumentError, match="give arch, or renderers"): Compiled("PARTS", FakeAllocator("PARTS"))
  with pytest.raises(ArgumentError, match="arch 'bad' is none of its renderers"):
    Compiled("PARTS", FakeAllocator("PARTS"), ["good"], arch="bad")

def test_code_is_called_on_buffers() -> None:
  source = ("def kernel(buffers, variables, first, last):\n  out, a = (b.cast('i') for b in buffers)\n  out[0] = a[0] "
            "* variables[0]\n")
  double = Device["PYTHON"].program(Code("scale", "python", source.encode(), ("buffer", "buffer", "int64")))
  a, out = Buffer("PYTHON", 1, dtypes.int32).copyin(memoryview(struct.pack("i", 21))), Buffer("PYTHON", 1, dtypes.int32)
  double(out, a, variables=[2])
  assert out.as_memoryview().cast("i").tolist() == [42]

def test_compilers_keep_what_they_made() -> None:
  class Upper(Compiler):
    made = 0
    def compile(self, src: str) -> bytes:
      self.made += 1
      return src.upper().encode()
  kept, fresh = Upper("test_upper"), Upper()
  assert ([kept.compile_cached("a"), kept.compile_cached("a"), Upper("test_upper").compile_cached("a")] == [b"A"] * 3
          and kept.made == 1)
  assert fresh.compile_cached("a") == fresh.compile_cached("a") == b"A" and fresh.made == 2
  assert Compiler().compile("x") == b"x"
  with pytest.raises(ArgumentError, match="Upper has no disassembler"): fresh.disassemble(b"")

# **** Buffer ****

def floats(device: str, *numbers: float) -> Buffer:
  return Buffer(device, len(numbers),
                dtypes.float32).allocate().copyin(memoryview(struct.pack(f"{len(numbers)}f", *numbers)))

def test_copyin_and_copyout(host: str) -> None:
  buffer = floats(host, 1, 2, 3)
  assert buffer.nbytes == 12 and buffer.as_memoryview().cast("f").tolist() == [1, 2, 3]
  out = memoryview(bytearray(12)).cast("f")
  assert buffer.copyout(out) is out and out.tolist() == [1, 2, 3]
  assert Buffer(host, 3, dtypes.float32, initial_value=bytes(12)).as_memoryview().tolist() == [0] * 12

def test_zero_copy(host: str) -> None:
  buffer = floats(host, 1, 2)
  view, copy = buffer.as_memoryview(force_zero_copy=True), buffer.as_memoryview()
  view.cast("f")[1] = 5
  assert buffer.as_memoryview().cast("f").tolist() == [1, 5] and copy.cast("f").tolist() == [1, 2] and len(view) == 8

def test_no_zero_copy_where_the_host_is_blind(fake: types.ModuleType) -> None:
  buffer = floats("FAKE", 1, 2)
  assert buffer.as_memoryview(allow_zero_copy=True).cast("f").tolist() == [1, 2]
  with pytest.raises(DeviceError, match="FAKE memory is not visible to the host; call as_memoryview\\(\\) for a copy"):
    buffer.as_memoryview(force_zero_copy=True)
  with pytest.raises(DeviceError, match="FAKE cannot map memory of PYTHON"): floats("PYTHON", 1).get_buf("FAKE")
  with pytest.raises(DeviceError, match="FAKE cannot use memory at a given address"):
    Buffer("FAKE", 1, dtypes.int8).allocate(external_ptr=4096)
  assert floats("PYTHON", 3, 4).copy_from(buffer).as_memoryview().cast("f").tolist() == [1, 2]

def test_a_buffer_that_outlives_the_module_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
  """At its end the interpreter sets a module's names to None, and may delete Buffers after that."""
  buffer = Buffer("CPU", 4, dtypes.float32).allocate()
  with monkeypatch.context() as cleared:
    cleared.setattr(devices, "_count_memory", None)
    buffer.__del__()
  assert buffer.is_allocated()

def test_views(host: str) -> None:
  base = floats(host, 0, 1, 2, 3)
  view = base.view(2, dtypes.float32, 4)
  inner = view.view(4, dtypes.uint8, 4)
  assert view.base is inner.base is base and inner.offset == 8 and not view.is_allocated() and view.is_initialized()
  assert view.as_memoryview().cast("f").tolist() == [1, 2] and bytes(inner.as_memoryview()) == struct.pack("f", 2)
  view.copyin(memoryview(struct.pack("2f", 8, 9)))
  assert base.as_memoryview().cast("f").tolist() == [0, 8, 9, 3]
  base.deallocate()
  assert not view.is_allocated() and not inner.is_initialized()
  with pytest.raises(ArgumentError, match="a view of bytes 12 to 20 does not fit into"):
    base.view(2, dtypes.float32, 12)
  with pytest.raises(ArgumentError, match="pass base.base"): Buffer(host, 1, dtypes.int8, base=view)

def test_views_keep_the_base_alive(host: str) -> None:
  view = floats(host, 1, 2).view(1, dtypes.float32, 4)
  assert view.ensure_allocated().as_memoryview().cast("f").tolist() == [2]

def test_memory_is_counted(host: str) -> None:
  before, here = GlobalCounters.mem_used, GlobalCounters.mem_used_per_device[host]
  buffer = Buffer(host, 1000, dtypes.int16)
  assert GlobalCounters.mem_used == before
  buffer.ensure_allocated()
  view = buffer.view(10, dtypes.int8, 0).ensure_allocated()
  assert GlobalCounters.mem_used == before + 2000 and GlobalCounters.mem_used_per_device[host] == here + 2000
  del view
  buffer.deallocate()
  assert GlobalCounters.mem_used == before
  with pytest.raises(DeviceError, match="is not allocated, or is deallocated twice"): buffer.deallocate()
  buffer.allocate()
  del buffer
  assert GlobalCounters.mem_used == before

def test_allocating_twice(host: str) -> None:
  buffer = Buffer(host, 4, dtypes.int8, preallocate=True)
  with pytest.raises(DeviceError, match="is allocated already; deallocate it first"): buffer.allocate()
  assert buffer.ensure_allocated() is buffer

def test_opaque_memory_is_adopted(host: str) -> None:
  opaque = Device[host].allocator.alloc(8)
  buffer = Buffer(host, 2, dtypes.int32, opaque=opaque)
  assert buffer.get_buf() is opaque is buffer.get_buf(host)
  held = Device[host].allocator.held
  del buffer
  assert Device[host].allocator.held == held - 8

def test_memory_of_someone_else(host: str) -> None:
  owner = (ctypes.c_int32 * 3)(1, 2, 3)
  before = GlobalCounters.mem_used
  for buffer in (Buffer(host, 3, dtypes.int32).allocate(external_ptr=ctypes.addressof(owner)),
                 Buffer(host, 3, dtypes.int32, options=BufferOptions(external_ptr=ctypes.addressof(owner)))):
    buffer.copyin(memoryview(struct.pack("3i", *(2 * x for x in owner))))
    assert GlobalCounters.mem_used == before
    buffer.deallocate()
  assert list(owner) == [4, 8, 12]

def test_host_devices_share_memory() -> None:
  if not (opens("CPU") and opens("CLANG")): pytest.skip("needs both")
  buffer = floats("CPU", 1, 2)
  assert buffer.get_buf("CLANG") is buffer.get_buf()

def test_copy_from(host: str) -> None:
  other = floats("PYTHON", 4, 5)
  assert floats(host, 1, 2).copy_from(other).as_memoryview().cast("f").tolist() == [4, 5]

def test_empty(host: str) -> None:
  buffer = Buffer(host, 0, dtypes.float32).allocate()
  assert len(buffer.copyin(memoryview(b"")).as_memoryview()) == 0 == len(buffer.as_memoryview(force_zero_copy=True))

def test_mistakes(host: str) -> None:
  buffer = floats(host, 1, 2)
  with pytest.raises(ArgumentError, match="copyin of 4 bytes into <Buffer .*> of 8 bytes; sizes must be equal"):
    buffer.copyin(memoryview(bytes(4)))
  with pytest.raises(ArgumentError, match="copyin wants contiguous memory"): buffer.copyin(memoryview(bytes(16))[::2])
  with pytest.raises(ArgumentError, match="copyout of <Buffer .*> of 8 bytes into 4 bytes"):
    buffer.copyout(memoryview(bytearray(4)))
  with pytest.raises(ArgumentError, match="copyout wants contiguous, writable memory"):
    buffer.copyout(memoryview(bytes(8)))
  empty = Buffer(host, 2, dtypes.float32)
  for read in (empty.as_memoryview, lambda: empty.copyout(memoryview(bytearray(8)))):
    with pytest.raises(DeviceError, match="has no memory to read yet"): read()
  with pytest.raises(ArgumentError, match="at least 0 elements, not -1"): Buffer(host, -1, dtypes.int8)

def test_numpy(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
  pytest.importorskip("numpy")
  found = floats(host, 1, 2).numpy()
  assert found.tolist() == [1, 2] and found.dtype == "float32"
  with pytest.raises(ArgumentError, match="NumPy has no dtypes.bfloat16; cast to float32 first"):
    Buffer(host, 1, dtypes.bfloat16).numpy()
  monkeypatch.setitem(sys.modules, "numpy", None)
  with pytest.raises(DeviceError, match="numpy\\(\\) needs NumPy, which is not installed"): floats(host, 1).numpy()

def test_pickle(host: str) -> None:
  buffer = floats(host, 1, 2)
  for again in (pickle.loads(pickle.dumps(buffer)), pickle.loads(pickle.dumps(buffer.view(2, dtypes.float32, 0)))):
    assert ((again.device, again.size, again.dtype) == (host, 2, dtypes.float32)
            and again.as_memoryview().cast("f").tolist() == [1, 2])
  assert not pickle.loads(pickle.dumps(Buffer(host, 2, dtypes.float32))).is_allocated()

def test_references_and_numbers(host: str) -> None:
  buffer = Buffer(host, 4, dtypes.int8)
  assert buffer.view(2, dtypes.int8, 0).ref(2).base.ref(-1).uop_refcount == 1
  assert Buffer(host, 4, dtypes.int8).trace_num > buffer.trace_num

def test_buffers_outlive_their_device(fake: types.ModuleType) -> None:
  buffer = floats("FAKE", 1, 2)
  Device.close("FAKE")
  del buffer
  if opens("CPU:3"):
    kept = floats("CPU:3", 1, 2)
    view = kept.as_memoryview(force_zero_copy=True)
    Device.close("CPU:3")
    assert view.cast("f").tolist() == [1, 2] and kept.as_memoryview().cast("f").tolist() == [1, 2]
    Device.close("CPU:3")

@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_locks_are_new_in_a_child() -> None:
  device = Device["PYTHON"]
  with device.allocator.lock:
    child = os.fork()
    if child == 0:
      os._exit(0 if device.allocator.lock.acquire(blocking=False) and Device._lock.acquire(blocking=False) else 1)
  assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
