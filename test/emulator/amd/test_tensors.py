"""Tensors on virtual GPUs, end to end: schedule, our machine code, the driver's packets, waves with all checks;
compared with the CPU's results.

This is a small part of a device's tests. The whole is `python3 test/suite.py`.
"""
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PROGRAM = r"""
import json, sys
from tinyhw import Device, Tensor, TinyJit, dtypes, nn
from tinyhw.helpers import Context

def numbers(shape, device, dtype=dtypes.float32):
  count = 1
  for n in shape: count *= n
  return (Tensor.arange(count, device=device) * 37 % 101 - 50).cast(dtype).reshape(shape).contiguous().realize()

def programs(device):
  a, b = numbers((17, 40), device) / 16, numbers((40, 23), device) / 8
  i, j = numbers((64,), device, dtypes.int32), numbers((8, 8), device, dtypes.int32).reshape(64)
  image, weight = numbers((2, 3, 9, 9), device) / 32, numbers((5, 3, 3, 3), device) / 32
  h = numbers((32, 48), device, dtypes.float16) / 64
  yield "elementwise", (a * 2 + 1).relu() - a.exp2() / 3 + a.abs().sqrt() + a.sin() * a.tanh()
  yield "broadcast", a[:, :23] + b[0] * b[1:2]
  yield "matmul", a @ b
  yield "matmul of halves", (h @ h.T).float()
  count = Tensor.arange(1 << 18, device=device)   # so many that a lane has two and more side by side
  x, y = (((count * factor % 65519) - 32000).cast(dtypes.float16) / 128 for factor in (7919, 104729))
  for name, value in (("difference", (x - y).relu()), ("product", x * y), ("greater", x.maximum(y)),
                      ("product and sum", x * y + x)):
    bits = value.contiguous().realize().bitcast(dtypes.uint16).cast(dtypes.int32)
    yield f"{name} of halves", (bits * (count % 1009 + 1)).sum()
  yield "sums", a.sum(1) + a.max(1) - a.min(1) + a.mean(1)
  yield "all", (a * a).sum()
  yield "softmax", a.softmax(1)
  yield "layernorm", a.layernorm()
  yield "argmax", a.argmax(1)
  yield "cumsum", a.cumsum(1)
  yield "sort", a.sort(1)[0]
  yield "integers", i // (j.abs() + 1) * 7 + i % 5 + (i << 2) + (i.abs() >> 1) + (i & j) - (i | 3) ^ j
  yield "wide integers", (i.cast(dtypes.int64) * 1000000007 // 13 + j.cast(dtypes.int64)) % 1000003
  yield "casts", i.cast(dtypes.uint8).cast(dtypes.float16).float() + a.reshape(-1)[:64].cast(dtypes.int16).float()
  yield "doubles", (a.cast(dtypes.float64) / 3).sqrt().isnan().where(0, a.cast(dtypes.float64).abs().sqrt() / 7)
  yield "pads and flips", a.pad(((1, 2), (0, 3))).flip(0).permute(1, 0)[::2]
  yield "gather", a[Tensor([3, 0, 16, 3], device=device)]
  yield "where", (a > 0).where(a, -1).any(1)
  yield "convolution", image.conv2d(weight, stride=2, padding=1).relu().max_pool2d()
  Tensor.manual_seed(7)
  yield "random", Tensor.rand(40, device=device)
  written = numbers((6, 6), device)
  written[1:3, 2] = 5
  written += 1
  yield "writes", written

def trained(device):
  Tensor.manual_seed(3)
  with Context(TRAINING=1):
    first, second = nn.Linear(12, 16), nn.Linear(16, 4)
    for layer in (first, second):
      layer.weight, layer.bias = layer.weight.to(device).realize(), layer.bias.to(device).realize()
    optimizer = nn.optim.Adam(nn.state.get_parameters([first, second]), lr=0.01)
    x, y = numbers((8, 12), device) / 50, Tensor([0, 1, 2, 3, 0, 1, 2, 3], device=device)
    @TinyJit
    def step():
      optimizer.zero_grad()
      loss = second(first(x).relu()).sparse_categorical_crossentropy(y).backward()
      return loss.realize(*optimizer.schedule_step())
    return [step().item() for _ in range(6)]

device = sys.argv[1]
print(json.dumps({**{name: value.tolist() for name, value in programs(device)}, "training": trained(device)}))
"""

def results(device: str, chip: str = "") -> dict[str, object]:
  """Return the output of the program.

  The compiler makes no instruction with an unused result: EMULATE_STRICT=2 would refuse it.
  """
  environment = {**os.environ, "PYTHONPATH": str(ROOT), "DEV": device, "EMULATE": chip, "CACHE": "0",
                 "EMULATE_STRICT": "2"}
  done = subprocess.run([sys.executable, "-c", PROGRAM, device], env=environment, capture_output=True, text=True,
                        timeout=600)
  assert done.returncode == 0, done.stderr[-3000:]
  found: dict[str, object] = json.loads(done.stdout)
  return found

@pytest.fixture(scope="module")
def expected() -> dict[str, object]: return results("CPU")

def differences(a: object, b: object, where: str) -> list[str]:
  if isinstance(a, list) and isinstance(b, list):
    if len(a) != len(b): return [f"{where}: {len(a)} and {len(b)} elements"]
    return [d for k, (x, y) in enumerate(zip(a, b)) for d in differences(x, y, f"{where}[{k}]")]
  if isinstance(a, float) and isinstance(b, float) and (a == b or a != a and b != b
                                                        or abs(a - b) <= 2e-5 * max(abs(a), abs(b), 1.0)):
    return []
  return [] if a == b else [f"{where}: {a} on the CPU, {b} here"]

@pytest.mark.slow
@pytest.mark.parametrize("chip", ("gfx1100", "gfx1200", "gfx942", "gfx950"))
def test_tensors(chip: str, expected: dict[str, object]) -> None:
  found = results("AMD", chip)
  assert list(found) == list(expected)
  assert not [d for name in expected for d in differences(expected[name], found[name], name)][:20]

SPILLED = r"""
import struct, sys
from tinyhw import Device, dtypes
from tinyhw.codegen.passes import lower
from tinyhw.device import Buffer
from tinyhw.isa.amd.target import capabilities, compile
from tinyhw.uop.enums import AxisType
from tinyhw.uop.ops import UOp

device, n, lanes = Device["AMD"], int(sys.argv[1]), 64
a, r = UOp.param(1, dtypes.float64, lanes * n), UOp.range(lanes, 0, AxisType.LOCAL)
values = [a.index(r * n + k).load() for k in range(n)]
total = values[0]
for x in values[1:]: total = total + x
for x in values: total = total * x
kernel = UOp.sink(UOp.param(0, dtypes.float64, lanes).index(r).store(total, r))
code = compile(lower(kernel, capabilities(device.arch), "crowded"), device.arch)
assert code.private_bytes > int(sys.argv[2]), "not so much is spilled"
out, data = Buffer("AMD", lanes, dtypes.float64).allocate(), Buffer("AMD", lanes * n, dtypes.float64).allocate()
numbers = [1 + (i * 7 % 5 - 2) / 64 for i in range(lanes * n)]
data.copyin(memoryview(bytearray(struct.pack(f"{lanes * n}d", *numbers))))
device.program(code)(out, data)
device.synchronize()
content = bytearray(8 * lanes)
out.copyout(memoryview(content))
for lane, found in enumerate(struct.unpack(f"{lanes}d", content)):
  row = numbers[lane * n:(lane + 1) * n]
  expected = row[0]
  for x in row[1:]: expected += x
  for x in row: expected *= x
  assert found == expected, (lane, found, expected)
"""

@pytest.mark.slow
@pytest.mark.parametrize("chip, values, spilled", (
  ("gfx1100", 160, 0), ("gfx1200", 160, 0), ("gfx942", 160, 0), ("gfx950", 160, 0), ("gfx1100", 800, 4096),
  ("gfx942", 800, 4096)))
def test_a_kernel_that_spills(chip: str, values: int, spilled: int) -> None:
  """There are more live values than registers. Some are spilled to the scratch memory of the launch, also at large
  offsets."""
  environment = {**os.environ, "PYTHONPATH": str(ROOT), "DEV": "AMD", "EMULATE": chip, "CACHE": "0"}
  done = subprocess.run([sys.executable, "-c", SPILLED, str(values), str(spilled)], env=environment,
                        capture_output=True, text=True, timeout=600)
  assert done.returncode == 0, done.stderr[-3000:]
