"""The toy accelerator: its table, the errors of its hardware, its waits, its driver, and tensors on it.

The guide that builds it is run too.
"""
from __future__ import annotations
import dataclasses
import os
import random
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from generators import tensor_programs

import examples.toy_accelerator  # noqa: F401  # registers the device
from examples.toy_accelerator import driver, target
from examples.toy_accelerator.hardware import Hardware, Wave, step_of
from examples.toy_accelerator.table import ALWAYS, P1, S1, S2, TABLE, V1, V2, V4, decode, encode
from tinyhw import Context, Device, Tensor, TinyJit, dtypes
from tinyhw.device import Buffer, Launch
from tinyhw.errors import DecodeError, DeviceError, EncodeError
from tinyhw.machine.ir.inst import Block, Function, MInst, Reg

ROOT = Path(__file__).resolve().parent.parent.parent
FOLDER = ROOT / "examples/toy_accelerator"

def reg(cls: Any, index: int) -> Reg: return Reg(cls, index=index)
def inst(name: str, *operands: Any) -> MInst: return MInst(TABLE[name], list(operands))

@pytest.fixture
def toy() -> Iterator[str]:
  before, Device.DEFAULT = Device._default, "TOY"
  try: yield "TOY"
  finally: Device.DEFAULT = before

def test_it_is_small() -> None:
  lines = {path.name: len(path.read_text(encoding="utf-8").splitlines()) for path in FOLDER.glob("*.py")}
  assert sum(lines.values()) <= 700, lines

# ***** table *****

@pytest.mark.parametrize("seed", range(4))
def test_decode_inverts_encode(seed: int) -> None:
  rng = random.Random(seed)
  for row in TABLE.values():
    operands = [rng.choice([0, 1, -1, (1 << 63) - 1, -1 << 63, rng.getrandbits(32)]) if o.cls is None else
                reg(o.cls, rng.randrange(0, o.cls.bank.count, o.cls.align)) for o in row.operands]
    code = MInst(row, operands)
    assert list(decode(encode(code, {}))) == [code]

def test_what_is_no_instruction_is_refused() -> None:
  with pytest.raises(DecodeError, match="is no instruction of the toy accelerator"): list(decode(b"\xff" * 16))
  with pytest.raises(EncodeError, match="field imm must be in"): encode(inst("wait", 1 << 63), {})

def test_blocks_are_numbers_of_words() -> None:
  block = Block(3)
  assert list(decode(encode(inst("jump", block), {block: 17})))[0].operands == [17]

# ***** errors of the hardware *****

def execute(*code: MInst, memory: int = 256, local: int = 64, lanes: int = 8) -> Wave:
  """Run one wave over some instructions, with the address 0 as its arguments."""
  wave = Wave(memoryview(bytearray(memory)), memoryview(bytearray(local)), 0, 0, 0, lanes)
  wave.run([(step_of(i), i) for i in (*code, inst("end"))])
  return wave

LOAD = inst("s_load.u32", reg(S1, 4), reg(S2, 0), reg(S1, 2), 0)

@pytest.mark.parametrize("code, message", [
  ([LOAD, inst("spread", reg(V1, 1), reg(S1, 4))], r"instruction 1, `spread v1, s4`: s4 is touched while a load into "
   r"s4 is in flight; wait for it"),
  ([LOAD, inst("s_const.u32", reg(S1, 4), 1)], "s4 is touched while a load into s4 is in flight"),
  ([LOAD, inst("s_const.u64", reg(S2, 4), 1)], r"s\[4:5\] is touched while a load into s4 is in flight"),
  ([LOAD, LOAD], "s4 is touched while a load into s4 is in flight"),
  ([inst("s_const.u64", reg(S2, 5), 1)], r"s\[5:6\] is misaligned: 2 registers start at a multiple of 2"),
  ([inst("quad", reg(V4, 6), *[reg(V1, 0)] * 4)], r"v\[6:9\] is misaligned: 4 registers start at a multiple of 4"),
  ([inst("spread", reg(V1, 1), reg(S1, 9))], "s9 is read but was never written"),
  ([inst("v_store.u64", ALWAYS, reg(S2, 0), reg(V1, 0), 0, reg(V2, 0))], r"v\[0:1\] is read but was never written"),
  ([inst("v_store.u32", ALWAYS, reg(S2, 0), reg(V1, 0), 228, reg(V1, 0))],
   "4 bytes at 0x100 are outside of the memory"),
  ([inst("v_local_load.u32", reg(V1, 1), reg(V1, 0), -4)], "4 bytes at -0x4 are outside of shared memory")])
def test_what_the_hardware_refuses(code: list[MInst], message: str) -> None:
  with pytest.raises(DeviceError, match=message): execute(*code)

def test_what_the_hardware_accepts() -> None:
  wave = execute(LOAD, inst("wait", 0), inst("spread", reg(V1, 1), reg(S1, 4)))
  assert wave.read(reg(V1, 1)) == [0] * 8
  store = inst("v_store.u32", reg(P1, 0), reg(S2, 0), reg(V1, 0), 0, reg(V1, 0))
  few = inst("v_cmplt.u32", reg(P1, 0), reg(V1, 0), reg(V1, 1))
  wave = execute(inst("v_const.u32", reg(V1, 1), 3), few, store)  # lanes 0, 1, 2
  assert [x for x in wave.memory[:32].cast("I")] == [0, 1, 2, 0, 0, 0, 0, 0]
  # the other lanes do not exist
  wave = execute(inst("v_store.u32", ALWAYS, reg(S2, 0), reg(V1, 0), 0, reg(V1, 0)), lanes=5)
  assert [x for x in wave.memory[:32].cast("I")] == [0, 1, 2, 3, 4, 0, 0, 0]

def test_waves_meet_at_barriers() -> None:
  """Lanes from 8 on are a second wave, which goes to the end."""
  code = [inst("v_const.u32", reg(V1, 1), 8), inst("v_cmplt.u32", reg(P1, 0), reg(V1, 0), reg(V1, 1)),
          inst("jump_if", reg(P1, 0), 4), inst("end"),
          inst("barrier"), inst("end")]
  hardware = Hardware()
  text = b"".join(encode(i, {}) for i in code)
  hardware.memory[4096:4096 + len(text)] = text
  packet = driver.PACKET.pack(4096, len(text), 1, 0, 16, 0)
  hardware.memory[:len(packet)] = packet
  with pytest.raises(DeviceError, match="some waves of a workgroup are at a barrier, others at the end"):
    hardware.doorbell(1)

# ***** waits *****

def test_waits_count_loads_that_may_stay_in_flight() -> None:
  function = Function("f")
  block = function.new_block()
  loads = [inst("s_load.u32", reg(S1, 4 + k), reg(S2, 0), reg(S1, 2), 4 * k) for k in range(3)]
  uses = [inst("spread", reg(V1, 1 + k), reg(S1, 4 + k)) for k in range(3)]
  block.insts = [*loads, *uses, loads[0], inst("jump", block)]
  function.blocks = [block]
  target.add_waits(function, target.TARGET)
  assert [repr(i) for i in block.insts] == [
    *map(repr, loads), "wait 2", repr(uses[0]), "wait 1", repr(uses[1]), "wait 0", repr(uses[2]), repr(loads[0]),
    "wait 0", "jump .b0"]

def test_a_pair_in_flight_is_waited_for_by_its_halves() -> None:
  function = Function("f")
  block = function.new_block()
  block.insts = [inst("s_load.u64", reg(S2, 4), reg(S2, 0), reg(S1, 2), 0), inst("s_const.u32", reg(S1, 5), 1),
                 inst("end")]
  function.blocks = [block]
  target.add_waits(function, target.TARGET)
  assert [i.row.name for i in block.insts] == ["s_load.u64", "wait", "s_const.u32", "end"]

# ***** driver *****

def codes(f: Any) -> list[Any]:
  """Return the Code of each kernel that f compiles."""
  device, found = Device["TOY"], []
  old = device.load
  with pytest.MonkeyPatch.context() as patch, Context(CACHE=0):
    patch.setattr(device, "load", lambda code: [found.append(code), old(code)][1])
    f()
  return found

def test_a_product_is_staged_and_multiplied_by_matrices(toy: str) -> None:
  rng = np.random.default_rng(1)
  a, b = (rng.integers(-8, 8, (16, 32)).astype(np.float32), rng.integers(-8, 8, (32, 16)).astype(np.float32))
  results: list[Any] = []
  code, = codes(lambda: results.append((Tensor(a) @ Tensor(b)).relu().numpy()))
  np.testing.assert_array_equal(results[0], np.maximum(a @ b, 0))
  names = [i.row.isa.operation for i in decode(code.text)]
  assert code.lanes == 16 and code.local_bytes > 0
  assert (names.index("local_store") < names.index("barrier", names.index("local_store")) < names.index("local_load")
          < names.index("mma"))

def test_more_launches_than_the_ring_has_slots(toy: str) -> None:
  x = Tensor([1.0, 2.0]).realize()
  code, = codes(lambda: (x + 0.5).realize())
  device = Device["TOY"]
  handle, done = device.load(code), device.hardware.done
  places = [device.allocator.alloc(8) for _ in range(150)]
  device.allocator.copyin(places[0], memoryview(np.array([1, 2], np.float32)).cast("B"))
  device.submit([Launch(handle, [out, given], (), 1) for given, out in zip(places, places[1:])])
  assert np.frombuffer(device.allocator.as_memoryview(places[-1])[:8], np.float32).tolist() == [75.5, 76.5]
  assert device.hardware.done == done + 149

def test_a_captured_step_is_replayed(toy: str) -> None:
  @TinyJit
  def step(x: Tensor, y: Tensor) -> Tensor: return ((x @ y) * 2).sum(0).realize()
  for k in range(5):
    x, y = np.full((4, 8), k, np.float32), np.arange(64, dtype=np.float32).reshape(8, 8)
    np.testing.assert_array_equal(step(Tensor(x).realize(), Tensor(y).realize()).numpy(), (x @ y * 2).sum(0))

def test_memory_is_given_back(toy: str) -> None:
  held = Device["TOY"].allocator.held
  buffer = Buffer("TOY", 1000, dtypes.float32).allocate()
  assert Device["TOY"].allocator.held == held + 4000
  del buffer
  assert Device["TOY"].allocator.held == held
  with pytest.raises(MemoryError, match="TOY: cannot allocate"): Device["TOY"].allocator.alloc(1 << 40)

def python(*arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
  settings = {"PATH": os.environ.get("PATH", ""), "PYTHONPATH": str(ROOT), "CACHEDIR": os.environ["CACHEDIR"],
              **environment}
  return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, cwd=ROOT, env=settings)

def test_the_environment_names_devices_from_outside() -> None:
  program = "from tinyhw import Tensor; x = Tensor([1, 2, 3]); print(x.device, (x * 2).tolist())"
  assert python("-c", program, DEV="TOY", PLUGINS="examples.toy_accelerator").stdout == "TOY [2, 4, 6]\n"
  assert "there is no device 'TOY'; the known ones are" in python("-c", program, DEV="TOY").stderr

# ***** tensors *****

@pytest.mark.parametrize("part", range(4))
def test_random_programs(part: int) -> None:
  for seed in range(part, 24, 4):
    program = tensor_programs.make(seed)
    tensor_programs.check(program, tensor_programs.run(program, "TOY"))

def test_plain_kernels_use_scalar_registers(toy: str) -> None:
  a = np.arange(35, dtype=np.float32).reshape(5, 7)
  with Context(NOOPT=1):
    code, = codes(lambda: np.testing.assert_array_equal((Tensor(a) @ Tensor(a.T)).numpy(), a @ a.T))
  names = {i.row.name for i in decode(code.text)}
  assert code.lanes == 1 and "s_mulacc.f32" in names and "v_mulacc.f32" not in names

def test_few_registers_are_enough(toy: str, monkeypatch: pytest.MonkeyPatch) -> None:
  few = dataclasses.replace(target.TARGET, allocatable={"v": tuple(range(16)), "s": tuple(range(12))})
  monkeypatch.setattr(target, "TARGET", few)
  a, b = (np.arange(16 * 24, dtype=np.float32).reshape(16, 24) % 7 for _ in range(2))
  code, = codes(lambda: np.testing.assert_array_equal((Tensor(a) @ Tensor(b).T * 2).numpy(), a @ b.T * 2))
  operations = {i.row.isa.operation.partition("_")[0] for i in decode(code.text)}
  assert {"save", "restore", "mma"} <= operations

SMALL = "not gradient and not a4 and not a5 and not a6 and not a7 and not attention"

@pytest.mark.slow
def test_the_tensor_tests() -> None:
  files = [f"test/methods/{name}.py" for name in ("pointwise/test_elementwise", "test_reduction", "test_loss",
                                                  "test_sorting", "test_matmul")]
  result = python("-m", "pytest", "-q", "-x", *files, "-k", SMALL, DEV="TOY", PLUGINS="examples.toy_accelerator",
                  HOME=os.environ.get("HOME", ""))
  assert result.returncode == 0, result.stdout[-3000:]

def test_the_demo() -> None:
  lines = python(str(FOLDER / "demo.py")).stdout.splitlines()
  assert lines[0].startswith("r_16_16_32: 16 lanes") and any(line.endswith("wait 0") for line in lines)
  losses = [float(line.split()[-1]) for line in lines if line.startswith("step ")]
  assert len(losses) == 3 and losses[0] > losses[1] > losses[2]

# ***** the guide *****

GUIDE = ROOT / "docs/hardware/new-accelerator.md"
BLOCKS = (re.findall(r"^```python(?: (\S+))?\n(.*?)^```", GUIDE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
          if GUIDE.exists() else [])

def test_the_guide_quotes_the_files() -> None:
  """A block with a file's name is in that file, word by word. A `...` line stands for omitted lines."""
  quoted = [(name, text) for name, text in BLOCKS if name]
  assert {name for name, _ in quoted} == {f"{path.name}" for path in FOLDER.glob("*.py")} - {"demo.py"}
  for name, text in quoted:
    source, at = (FOLDER / name).read_text(encoding="utf-8"), 0
    for part in re.split(r"^ *\.\.\.\n", text, flags=re.MULTILINE):
      found = source.find(part, at)
      assert found >= 0, f"{name} has no such lines (any more):\n{textwrap.indent(part, '  ')}"
      at = found + len(part)

def test_the_guide_runs() -> None:
  """Execute blocks without a name in order, in one namespace."""
  namespace: dict[str, Any] = {}
  before = Device._default
  try:
    for name, text in BLOCKS:
      if not name: exec(compile(text, str(GUIDE), "exec"), namespace)
  finally: Device.DEFAULT = before
