"""Kernels for the processor in Python (x86/machine.py): tensor programs by name, programs of masks, and launches that
are checked.

`devices()` makes the devices X86 (AVX2) and X86:1 (AVX-512). Every kernel that they run is also evaluated by
uop/evaluate/ from its Program, and what it writes must be the same to the bit, NaNs aside.
"""
from __future__ import annotations
import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
import struct
from typing import Any

import numpy as np
from generators.program_builder import Builder, broadcast, vectorize
from x86 import machine as x86_machine

from tinyhw import Device, Tensor, dtypes
from tinyhw import device as devices_module
from tinyhw.arithmetic import elements
from tinyhw.device import Launch
from tinyhw.dtype import DType
from tinyhw.isa.x86 import target
from tinyhw.uop.enums import AxisType, Ops
from tinyhw.uop.evaluate.evaluate import evaluate
from tinyhw.uop.ops import UOp
from tinyhw.uop.program import Program

# ***** devices *****

@contextlib.contextmanager
def devices() -> Iterator[list[Program]]:
  """X86 and X86:1 exist. Gives the list of Programs that were run and compared."""
  programs: dict[bytes, Program] = {}
  compared: list[Program] = []
  compile_plain = target.compile

  def compile_and_remember(program: Program, arch: str) -> Any:
    code = compile_plain(program, arch)
    programs[code.text] = program
    return code

  names = ("X86", "X86:1")
  target.compile = compile_and_remember
  Device.register("X86", "x86.machine")
  try:
    for device in [Device[name] for name in names]:
      device.submit = checking(device.submit, programs, compared)  # type: ignore[method-assign]
    yield compared
  finally:
    target.compile = compile_plain
    for name in names: Device.close(name)
    del devices_module.DRIVERS["X86"]

Submit = Callable[[Sequence[Launch]], None]

def checking(submit: Submit, programs: dict[bytes, Program], compared: list[Program]) -> Submit:
  """submit, and the same launches evaluated."""
  def run(launches: Sequence[Launch]) -> None:
    for launch in launches:
      program = programs.get(launch.program[0].text)
      before: dict[int, memoryview] = {}   # by address: views that begin together share memory
      for b in launch.buffers:
        if b.address not in before or len(before[b.address]) < len(b.data):
          before[b.address] = memoryview(bytearray(b.data))
      copies = [before[b.address][:len(b.data)] for b in launch.buffers]
      submit([launch])
      if program is None: continue
      variables = {u.arg[0]: v for u, v in zip(program.variables, launch.variables)}
      evaluate(program, {param.arg[0]: copy for param, copy in zip(program.params, copies)}, variables, 0, launch.grid)
      for param, b, copy in zip(program.params, launch.buffers, copies):
        same_bytes(param.dtype, bytes(b.data), bytes(copy), program.name)
      compared.append(program)
  return run

def same_bytes(dtype: DType, got: bytes, wanted: bytes, name: str) -> None:
  if got == wanted: return
  a, b = elements(got, dtype), elements(wanted, dtype)
  different = [(k, a[k], b[k]) for k in range(len(a)) if a[k] != b[k] and not (a[k] != a[k] and b[k] != b[k])]
  assert not different, f"{name}: {dtype} differs: (position, got, wanted) {different[:4]}"

# ***** tensor programs: each takes a function that makes a Tensor of an array *****

random = np.random.default_rng(0)

def quarters(*shape: int) -> Any: return random.integers(-8, 9, shape).astype(np.float32) / 4

A, B, C = quarters(33, 17), quarters(17, 40), quarters(2, 64)
IMAGE, WEIGHTS = quarters(1, 3, 9, 11), quarters(4, 3, 3, 3)
INTEGERS, INDICES = random.integers(-300, 300, (7, 19)), random.integers(0, 64, (37,))
WIDE = random.integers(0, 100, (3, 150))
Make = Callable[[Any], Tensor]
KERNELS: dict[str, Callable[[Make], Any]] = {
  "matmul": lambda t: t(A) @ t(B),
  "matmul of float64": lambda t: t(A.astype(np.float64)[:9]) @ t(B.astype(np.float64)),
  "matrix times vector": lambda t: t(C) @ t(C[0]),
  "padded convolution": lambda t: t(IMAGE).conv2d(t(WEIGHTS), padding=1),
  "softmax": lambda t: t(A[:9]).softmax(-1),
  "softmax of whole vectors": lambda t: t(C).softmax(-1),
  "argmax": lambda t: t(A).argmax(-1),
  "cumsum": lambda t: t(A).cumsum(1),
  "cumsum of int64": lambda t: t(INTEGERS).cumsum(1),
  "layernorm": lambda t: t(A[:5]).layernorm(),
  "sort": lambda t: t(A[:5]).sort(1)[0],
  "exp and sin": lambda t: t(A[:7]).exp() + t(A[:7]).sin(),
  "sqrt, reciprocal, trunc": lambda t: t(A).sqrt() + t(A).reciprocal() - t(A * 3).trunc(),
  "where": lambda t: (t(A) > 0).where(t(A), -1.0),
  "where of bools": lambda t: (t(A) > 0).where(t(A) < 1, t(A) > -1),
  "logic of bools": lambda t: ((t(A) > 0) ^ (t(A) < 1)) | (t(A) == -1).logical_not(),
  "bools from memory": lambda t: (t(A > 0) & t(A < 1), t(A > 0).logical_not(),
                                  t(A > 0).cast("float32") + t(A < 1).cast("int32")),
  "count": lambda t: ((t(A) > 0) & (t(A) < 1)).sum(),
  "any and all": lambda t: ((t(A) > 1.9).any(axis=0), (t(A) > -1.9).all(axis=1)),
  "gather": lambda t: t(C)[:, t(INDICES)],
  "gather of int32": lambda t: t(np.arange(64, dtype=np.int32))[t(INDICES.astype(np.int32))],
  "padding": lambda t: (t(A).pad(((1, 2), (3, 5)), value=2.0) + 1, t(INTEGERS).pad(((1, 2), (3, 5))) * 3),
  "padding of small elements": lambda t: tuple(t(WIDE.astype(kind)).pad(((1, 2), (3, 70))).contiguous()
                                               for kind in ("int8", "uint16", "bool")),
  "arithmetic of int64": lambda t: (t(INTEGERS) * t(INTEGERS[::-1].copy()), t(INTEGERS).maximum(7).max(axis=1),
                                    t(INTEGERS) >> 3),
  "arithmetic of int16": lambda t: (t(INTEGERS.astype(np.int16)) << 2) + (t(INTEGERS.astype(np.int16)) >> 3),
  "arithmetic of int8": lambda t: (t(INTEGERS.astype(np.int8)) + 1, t(INTEGERS.astype(np.int8)).maximum(3),
                                   t(INTEGERS.astype(np.uint8)) * 3),
  "compares of unsigned": lambda t: t(INTEGERS.astype(np.uint32)) < t(INTEGERS[::-1].astype(np.uint32)),
  "int64 to floats": lambda t: (t(INTEGERS).cast("float32") * 0.5, t(INTEGERS).cast("float64"),
                                t(abs(INTEGERS).astype(np.uint64)).cast("float32")),
  "floats to int64": lambda t: ((t(A) * 100).cast("int64"), (t(A.astype(np.float64)) * 100).cast("int64")),
  "integers of other widths": lambda t: tuple(t(INTEGERS).cast(d) for d in ("int8", "int16", "int32", "uint8")),
  "wider integers": lambda t: (t(INTEGERS.astype(np.int8)).cast("int64")
                               + t(INTEGERS.astype(np.uint8)).cast("int32").cast("int64")),
  "narrow floats": lambda t: t(A).cast("float16").cast("float32") + t(A).cast("bfloat16").cast("float32"),
  "one element": lambda t: (t(A[:1, :1]) * 3 > 0).where(2.0, t(A[:1, :1]).cast("float64")),
}

def results(name: str, device: str) -> list[Any]:
  """Return the results of a kernel on a device, as arrays."""
  made = KERNELS[name](lambda a: Tensor(a, device=device))
  tensors = made if isinstance(made, tuple) else (made,)
  return [t.numpy() for t in tensors]

# ***** programs of masks *****

def masks(lanes: int, dtype: DType = dtypes.int32) -> Program:
  """All that is done with vectors of bool: from compares, memory, scalars and lanes; logic; choices; lanes; variables;
  stores."""
  b = Builder(f"masks_{lanes}")
  out, bools = b.param(0, dtypes.bool, 16 * lanes), b.param(1, dtypes.bool, 2 * lanes)
  x, y = b.param(2, dtype, 2 * lanes), b.param(3, dtype, 2 * lanes)
  with b.loop(2, AxisType.GLOBAL) as g:
    at = g * lanes
    p, q, m = b.load(x, at, lanes), b.load(y, at, lanes), b.load(bools, at, lanes)
    less, equal = b.add(p.alu(Ops.CMPLT, q)), b.add(p.alu(Ops.CMPEQ, q))
    flag = b.add(b.load(x, g).alu(Ops.CMPLT, b.load(y, g)))
    variable = b.accumulator(m)
    with b.loop(3, AxisType.REDUCE): b.assign(variable, variable.alu(Ops.XOR, less))
    lane = [UOp(Ops.GEP, dtypes.bool, (less,), k) for k in range(lanes)]
    made = [less.alu(Ops.AND, m), less.alu(Ops.CMPEQ, m), less.alu(Ops.CMPLT, m), less.alu(Ops.WHERE, m, equal),
            variable,
            vectorize(*[lane[k - 1] for k in range(lanes)]), broadcast(flag, lanes).alu(Ops.XOR, m)]
    if lanes >= 4: made.append(UOp(Ops.BROADCAST, less.dtype, (UOp(Ops.GEP, dtypes.bool, (m,), lanes - 1),)))
    for k, u in enumerate(made): b.store(out, g * (8 * lanes) + k * lanes, b.add(u))
  return b.program()

def memory_of_masks(lanes: int, kind: Any) -> list[bytes]:
  """For `masks`: what is written, bools, and numbers of a kind, many of them equal."""
  noise = np.random.default_rng(lanes)
  return [bytes(16 * lanes), noise.integers(0, 2, 2 * lanes, np.uint8).tobytes(),
          *[noise.integers(0, 3, 2 * lanes, kind).tobytes() for _ in "xy"]]

def halves(lanes: int) -> Program:
  """The upper half of a mask as a vector of its own."""
  b = Builder(f"halves_{lanes}")
  out, x = b.param(0, dtypes.bool, lanes), b.param(1, dtypes.float32, 2 * lanes)
  with b.loop(2, AxisType.GLOBAL) as g:
    m = b.add(b.load(x, g * lanes, lanes).alu(Ops.CMPLT, UOp.const(dtypes.float32.vec(lanes), 0.0)))
    half = vectorize(*[UOp(Ops.GEP, dtypes.bool, (m,), k) for k in range(lanes // 2, lanes)])
    b.store(out, g * (lanes // 2), half)
  return b.program()

def masked_memory(lanes: int, dtype: DType) -> Program:
  """Loads and stores under a vector gate: nothing after the end of a buffer is touched.

  The last vector is half outside.
  """
  b = Builder(f"masked_{lanes}_{dtype.name}")
  size = lanes + lanes // 2
  out, x = b.param(0, dtype, size), b.param(1, dtype, size)
  with b.loop(2, AxisType.GLOBAL) as g:
    i = UOp(Ops.ADD, dtypes.int32.vec(lanes),
            (broadcast(g * lanes, lanes), vectorize(*[UOp.const(dtypes.int32, k) for k in range(lanes)])))
    gate = b.add(i.alu(Ops.CMPLT, UOp.const(i.dtype, size)))
    zero = b.load(x, g * lanes, lanes, gate, 0)
    one = b.load(x, g * lanes, lanes, gate, 1)
    value = b.add(zero.alu(Ops.XOR, one.alu(Ops.CMPEQ, zero).alu(Ops.WHERE, one, zero)) if dtypes.is_int(dtype)
                  else zero + one)
    b.store(out, g * lanes, value, gate)
  return b.program()

def scattered(lanes: int, dtype: DType, wide: bool) -> Program:
  """A vector stored lane by lane: at a stride, also downwards; at constant places; at places from memory, of 32 and
  (wide) 64 bits."""
  b = Builder(f"scattered_{lanes}_{dtype.name}")
  out, x = b.param(0, dtype, 10 * lanes), b.param(1, dtype, 2 * lanes)
  places = b.param(2, dtypes.int32, lanes)

  def vector(values: Iterable[int]) -> UOp: return vectorize(*[UOp.const(dtypes.int32, k) for k in values])

  with b.loop(2, AxisType.GLOBAL) as g:
    value, found = b.load(x, g * lanes, lanes), b.load(places, UOp.const(dtypes.int32, 0), lanes)
    up = b.add(broadcast(g + 1, lanes).alu(Ops.ADD, vector(range(0, 2 * lanes, 2))))
    down = b.add(vector(range(3 * lanes - 2, lanes - 2, -2)).alu(Ops.ADD, broadcast(b.add(g + lanes), lanes)))
    for at in (up, down, vector(range(4 * lanes, 7 * lanes, 3)), b.add(found.cast(dtypes.int64)) if wide else found):
      b.store(out, at, value)
  return b.program()

def memory_of_scattered(lanes: int, dtype: DType) -> list[bytes]:
  places = np.random.default_rng(lanes).permutation(3 * lanes)[:lanes].astype(np.int32) + 7 * lanes
  return [bytes(10 * lanes * dtype.itemsize), bytes(k % 60 for k in range(2 * lanes * dtype.itemsize)),
          places.tobytes()]

def run(program: Program, arch: str, memory: Sequence[bytes], shift: int = 0) -> None:
  """The program compiled for arch and executed, against its evaluation.

  memory: bytes of each parameter. shift: bytes after a page at which parameters begin.
  """
  machine = x86_machine.Machine(arch)
  entry = machine.load(target.compile(program, arch).text).address
  regions = [machine.memory.add(bytearray(shift) + data) for data in memory]
  scratch = machine.memory.add(bytearray(program.local_bytes))
  arguments = machine.memory.add(bytearray(struct.pack(f"<{len(regions)}Q", *[r.address + shift for r in regions])))
  machine.call(entry, [arguments.address, 0, int(program.grid), scratch.address])
  wanted = [bytearray(data) for data in memory]
  evaluate(program, dict(enumerate(wanted)), {}, 0, int(program.grid))
  for param, got, expected in zip(program.params, regions, wanted):
    same_bytes(param.dtype, bytes(got.data[shift:]), bytes(expected), program.name)
