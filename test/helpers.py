"""Helpers for tests of tensors: arrays, comparison with NumPy, finite differences, and the engines that they run on.

Tests of what methods mean use the fixture `engine` (conftest.py), so they run on each of ENGINES: the reference
interpreter (`uop/evaluate/`, which shares nothing with engine and codegen) and all devices. `-k AVX2` picks one; with
DEV set, also to a device from outside, they run on that alone.
"""
from __future__ import annotations
from collections.abc import Callable, Iterator, Sequence
import contextlib
import ctypes
import os
from typing import Any, NamedTuple

import numpy as np
import pytest

import tinyhw.engine.run.realize as realizing
from tinyhw.config import DEV, Context
from tinyhw.device import Buffer, Device
from tinyhw.dtype import DType, dtypes
from tinyhw.engine.memory import writes
from tinyhw.engine.memory.buffers import buffer_of, new_buffer
from tinyhw.engine.run.compile import mode, parts
from tinyhw.engine.schedule.schedule import canonicalize
from tinyhw.errors import DeviceError, TinyError
from tinyhw.methods import base, indexing
from tinyhw.methods.data.hostdata import pack
from tinyhw.nn.optim import widest_float
from tinyhw.tensor import Tensor
from tinyhw.uop.enums import Ops
from tinyhw.uop.evaluate.evaluate import evaluate
from tinyhw.uop.ops import UOp, to_indices

BUILT_IN = ("interpreter", "CPU", "AVX2", "CLANG", "PYTHON")
ENGINES = (DEV.value,) if DEV.value else BUILT_IN
HOME = DEV.value or "CPU"   # the device of a test that wants a single one, or that compares it with PYTHON
LOWER_LEVEL = "CPU:2"   # the engine AVX2: a CPU device opened with the lowest level of the processor's architecture
LOWEST = {"x86_64": "x86_64:avx2", "arm64": "arm64:neon", "riscv64": "riscv64:g"}

def interpret(nodes: list[UOp], overwritten: Sequence[Buffer] = ()) -> None:
  """engine.realize by the reference interpreter: each node by itself, from the contents before; what ASSIGNs left is
  written in the end."""
  todo = [u for u in nodes if realizing.known(u) is None and not realizing.is_buffer(u)]
  canonical = canonicalize(todo, realizing.known)
  kept = realizing.PreservedValues(todo, canonical, overwritten) if canonical.assigns or overwritten else None
  last = [] if kept is None else [u for u in kept.write.assigns if u not in kept.write.between]
  written = {writes.base_of(u): compute(u)[writes.base_of(u)] for u in last}
  for u in todo:
    if u.op is not Ops.ASSIGN and u.realized is None: compute(u)
  for node, content in written.items(): buffer_of(node).copyin(memoryview(content))
  if kept is not None: kept.finish()

def compute(u: UOp) -> dict[UOp, bytearray]:
  """Evaluate a node, and store its value unless it is an ASSIGN.

  Gives what the ASSIGNs in it made of copies of the BUFFERs.
  """
  graph = u.substitute({n: n.realized for n in u.toposort() if realizing.known(n) is not None
                        and n.realized is not None})
  memory = {n: bytearray(buffer_of(n).ensure_allocated().as_memoryview()) for n in graph.toposort()
            if n.op is Ops.BUFFER}
  result = evaluate(graph, {n: memoryview(content) for n, content in memory.items()})
  if u.op is not Ops.ASSIGN:
    node = new_buffer(u.device or Device.DEFAULT, len(result.values), u.dtype)
    buffer_of(node).allocate().copyin(memoryview(pack(result.values, u.dtype)))
    u.realized = node if u.shape == node.shape else UOp(Ops.RESHAPE, u.dtype, (node, *to_indices(u.shape)))
  return memory

class Interpreted:
  """engine.realize's Again by the reference interpreter."""
  def __init__(self, root: UOp, given: Sequence[UOp]): self.root, self.given = root, given

  def __call__(self, *given: UOp) -> UOp | None:
    node = self.root.substitute(dict(zip(self.given, given, strict=True)))
    if node.realized is None: compute(node)
    return node.realized

def open_engine(engine: str) -> str:
  """The device that an engine computes on. Skips the test where it does not open, with the reason."""
  if engine == "interpreter": return "PYTHON"
  device = LOWER_LEVEL if engine == "AVX2" else engine
  try:
    if engine != "AVX2": return Device[device].name
    best = Device["CPU"].arch
    lowest = LOWEST[best.partition(":")[0]]
    if best == lowest: pytest.skip(f"{lowest} is the best level of this processor: engine CPU is it")
    with Context(ARCH=lowest): return Device[device].name
  except DeviceError as error: pytest.skip(error.message)

def keeps_host_memory(device: str) -> bool:
  """Whether a device's tensors are in memory that the program sees, as the CPU's are, and a GPU's are not.

  False where it does not open.
  """
  try: buffer = Buffer(device, 1, dtypes.uint8).allocate()
  except DeviceError: return False
  return buffer.allocator.as_memoryview(buffer._buf) is not None

def has_float64(device: str = "") -> bool:
  """Whether a device computes in float64; without a name, the default one."""
  return widest_float(device or Device.DEFAULT) == dtypes.float64

def wide_types(device: str = "") -> tuple[DType, ...]:
  """Return float32, and float64 where a device has it."""
  return (dtypes.float32, dtypes.float64) if has_float64(device) else (dtypes.float32,)

def takes_foreign_memory(device: str) -> bool:
  """Whether kernels of a device use memory of the program at its address. False where it does not open."""
  memory = ctypes.create_string_buffer(1)
  try: Buffer(device, 1, dtypes.uint8).allocate(external_ptr=ctypes.addressof(memory))
  except DeviceError: return False
  return True

def only_on(engine: str, *names: str, why: str) -> None:
  """Skip the test on other engines of BUILT_IN than `names`: these show it.

  A device from outside, which DEV names, shows it for itself.
  """
  if engine in BUILT_IN and engine not in names: pytest.skip(why)

class Ran(NamedTuple):
  """The kernels that a test was the first to run on CPU."""
  test: str
  kernels: list[UOp]

_last = Ran("", [])

def current_test(engine: str) -> str:
  """The test that runs, by a name that is the same on all engines."""
  return os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" ")[0].replace(engine, "")

@contextlib.contextmanager
def compiled_together(engine: str, device: str) -> Iterator[None]:
  """CLANG compiles the kernels of a test that has just run on CPU together, before the test: starting the compiler for
  each takes most of the time.

  They are the same expressions on both. One that is not among them, or does not compile, is met where the test wants
  it.
  """
  global _last
  if engine == "CLANG" and _last.test == current_test(engine):
    with contextlib.suppress(TinyError): parts(device, _last.kernels)
  if engine != "CPU":
    yield
    return
  kernels = Device[device].kernels
  before = set(kernels)
  try: yield
  finally:
    new = [(key, launched) for key, launched in kernels.items() if key not in before]
    # those with fixed values are launches of others, which are there too
    _last = Ran(current_test(engine), [sink for (sink, found), launched in new if found == mode()
                                       and not any(part.fixed for part in launched)])

@contextlib.contextmanager
def on(engine: str) -> Iterator[str]:
  """Inside, tensors are computed by one of ENGINES; gives its name.

  Graphs and bounds are verified, random numbers start anew.
  """
  before, Device.DEFAULT = Device._default, open_engine(engine)
  with pytest.MonkeyPatch.context() as patch, Context(SPEC=2):
    if engine == "interpreter":
      for module in (base, indexing): patch.setattr(module, "realize_nodes", interpret)
      patch.setattr(base, "Again", Interpreted)
    Tensor.manual_seed(7)
    try:
      with compiled_together(engine, Device.DEFAULT): yield engine
    finally: Device.DEFAULT = before

def arrays(*shapes: tuple[int, ...], low: float = -2.0, high: float = 2.0, dtype: Any = np.float32,
           seed: int = 0) -> list[Any]:
  """Random arrays, the same in each run."""
  rng = np.random.default_rng(seed)
  if np.dtype(dtype) == np.bool_: return [rng.random(s) < 0.5 for s in shapes]
  if np.issubdtype(dtype, np.integer): return [rng.integers(int(low), int(high) + 1, s).astype(dtype) for s in shapes]
  return [rng.uniform(low, high, s).astype(dtype) for s in shapes]

def values(x: Any) -> Any: return x.numpy() if isinstance(x, Tensor) else np.asarray(x)

def same(got: Any, want: Any, rtol: float = 1e-5, atol: float = 1e-6, types: bool = True) -> None:
  """got, tensors, has the shape, the type and about the values of want, arrays. Tuples compare item by item."""
  if isinstance(want, (tuple, list)) and isinstance(got, (tuple, list)):
    assert len(got) == len(want)
    for g, w in zip(got, want): same(g, w, rtol, atol, types)
    return
  want = np.asarray(want)
  found = values(got)
  assert found.shape == want.shape, f"shape {found.shape}, not {want.shape}"
  if types: assert found.dtype == want.dtype, f"type {found.dtype}, not {want.dtype}"
  np.testing.assert_allclose(found.astype(np.float64), want.astype(np.float64), rtol=rtol, atol=atol)

def compare(f: Callable[..., Any], g: Callable[..., Any], *inputs: Any, rtol: float = 1e-5, atol: float = 1e-6,
            types: bool = True,
  **kwargs: Any) -> None:
  """f of tensors is g of arrays. inputs: arrays, or shapes of random ones (kwargs as for `arrays`)."""
  data = arrays(*inputs, **kwargs) if all(isinstance(x, tuple) for x in inputs) else list(inputs)
  with np.errstate(all="ignore"): want = g(*data)
  same(f(*(Tensor(x) for x in data)), want, rtol, atol, types)

def check_gradient(f: Callable[..., Tensor], *inputs: Any, step: float = 1e-5, tolerance: float = 1e-6,
                   **kwargs: Any) -> None:
  """Tensor.gradient of a weighted sum of f agrees with central differences, in float64.

  A device without float64 has gradients in float32, which are compared with differences on the CPU.
  """
  data = [np.asarray(x, np.float64) for x in (arrays(*inputs, dtype=np.float64, **kwargs)
                                              if all(isinstance(x, tuple) for x in inputs) else inputs)]
  exact = has_float64()
  if not exact: data, tolerance = [x.astype(np.float32).astype(np.float64) for x in data], max(tolerance, 1e-5)
  shape = f(*(Tensor(x) for x in data)).shape
  weights = np.cos(np.arange(int(np.prod(shape)))).reshape(shape) + 1.5
  def loss(kind: type, arrays: Sequence[Any]) -> tuple[Tensor, list[Tensor]]:
    tensors = [Tensor(x.astype(kind)) for x in arrays]
    return (f(*tensors) * Tensor(weights.astype(kind))).sum(), tensors
  total, tensors = loss(np.float64 if exact else np.float32, data)
  found = [g.numpy() for g in total.gradient(*tensors)]
  with contextlib.nullcontext() if exact else on("CPU"):
    slopes = [slopes_of(lambda y, k=k: loss(np.float64, [*data[:k], y, *data[k + 1:]])[0].item(), x, step)
              for k, x in enumerate(data)]
  for k, (got, want) in enumerate(zip(found, slopes)):
    np.testing.assert_allclose(got, want, rtol=tolerance * 100, atol=tolerance, err_msg=f"gradient of input {k}")

def slopes_of(f: Callable[[Any], float], x: Any, step: float) -> Any:
  """Return the slopes of f in each element of x, by central differences."""
  slopes = np.zeros_like(x)
  for at in np.ndindex(*x.shape):
    moved = []
    for sign in (1, -1):
      y = x.copy()
      y[at] += sign * step
      moved.append(f(y))
    slopes[at] = (moved[0] - moved[1]) / (2 * step)
  return slopes

def shapes_of(items: Sequence[Any]) -> list[tuple[int, ...]]: return [tuple(x.shape) for x in items]
