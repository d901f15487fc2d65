"""C source, compiled by the available C compiler, computes exactly the same as the interpreter.

Skipped without a compiler.
"""
import ctypes
import dataclasses
import shutil
import subprocess
from pathlib import Path

import pytest
from generators.program_builder import (
  Builder, RandomProgram, broadcast, convert, convert_to_all, i32, memory_for, named, same_memory, softmax, workgroups)

from tinyhw.codegen.render.c import WORDS, render
from tinyhw.codegen.render.prelude import HELPERS
from tinyhw.dtype import dtypes
from tinyhw.errors import CompileError
from tinyhw.uop.enums import AxisType, Ops
from tinyhw.uop.evaluate.evaluate import evaluate
from tinyhw.uop.ops import UOp
from tinyhw.uop.program import Program

FLAGS = ["-O1", "-march=native", "-shared", "-fPIC", "-ffp-contract=off", "-fno-math-errno", "-fno-strict-aliasing",
         "-w", "-Werror=implicit"]
compiler = next((path for name in ("clang", "gcc", "cc") if (path := shutil.which(name))), None)
needs_compiler = pytest.mark.skipif(compiler is None, reason="no C compiler on this machine")

class Library:
  """Programs compiled into one shared object, their sources one after another in one file."""
  def __init__(self, programs: list[Program], folder: Path, *flags: str):
    self.programs = [dataclasses.replace(p, name=f"k{i}") for i, p in enumerate(programs)]
    source = folder / "all.c"
    source.write_text("".join(render(p) for p in self.programs))
    subprocess.run([str(compiler), *FLAGS, *flags, str(source), "-o", str(folder / "all.so")], check=True)
    self.library = ctypes.CDLL(str(folder / "all.so"))

  def run(self, program: Program, memory: dict[int, bytearray], variables: tuple[int, ...] = (), first: int = 0,
          last: int | None = None) -> None:
    function = self.library[program.name]
    function.argtypes = [ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p]
    buffers = [ctypes.addressof(ctypes.c_char.from_buffer(memory[p.arg[0]])) for p in program.params]
    arguments = (ctypes.c_uint64 * (len(buffers) + len(variables)))(*buffers, *[v % 2**64 for v in variables])
    scratch = ctypes.create_string_buffer(program.local_bytes + 64)
    address = (ctypes.addressof(scratch) + 63) // 64 * 64
    function(ctypes.addressof(arguments), first, program.grid if last is None else last, address)

  def check(self, number: int, memory: dict[int, bytearray]) -> None:
    program, again = self.programs[number], {k: bytearray(v) for k, v in memory.items()}
    evaluate(program, memory)
    self.run(program, again)
    same_memory(program, memory, again)

@needs_compiler
def test_programs(tmp_path: Path) -> None:
  library = Library(named(), tmp_path)
  for k, p in enumerate(library.programs): library.check(k, memory_for(p))

@pytest.mark.slow
@needs_compiler
def test_random_programs(tmp_path: Path) -> None:
  made = [RandomProgram(seed, lanes=lanes, steps=14) for seed in range(10) for lanes in (1, 3, 4)]
  library = Library([m.program for m in made], tmp_path)
  for k, m in enumerate(made): library.check(k, m.memory(k))

@needs_compiler
def test_conversions(tmp_path: Path) -> None:
  library = Library([convert_to_all(d, 24) for d in dtypes.all], tmp_path)
  for k, d in enumerate(dtypes.all):
    outputs = {i + 1: bytearray(24 * target.itemsize) for i, target in enumerate(dtypes.all)}
    library.check(k, {0: RandomProgram(0, types=(d,), items=24).memory(k)[0], **outputs})

@pytest.mark.slow
@needs_compiler
def test_every_code_of_the_narrow_floats(tmp_path: Path) -> None:
  narrow = dtypes.fp8s + (dtypes.float16, dtypes.bfloat16)
  programs = [convert(d, dtypes.float32, 1 << d.bitsize) for d in narrow] + [convert(dtypes.float32, d, 1 << d.bitsize)
                                                                             for d in narrow]
  library = Library(programs, tmp_path)
  for k, d in enumerate(narrow):
    codes = bytearray(b"".join(code.to_bytes(d.itemsize, "little") for code in range(1 << d.bitsize)))
    wide = bytearray(4 << d.bitsize)
    library.check(k, {1: codes, 0: wide})
    library.check(len(narrow) + k, {1: wide, 0: bytearray(len(codes))})

@needs_compiler
def test_scratch_memory_variables_and_conditions(tmp_path: Path) -> None:
  b = Builder("scratch")
  out, n = b.param(0, i32, 8), b.add(UOp.variable("n", -9, 9, i32))
  first, second = b.local(dtypes.uint8, 3), b.local(i32, 8)
  with b.loop(8, AxisType.GLOBAL) as g:
    b.store(first, 1, g.cast(dtypes.uint8))
    with b.loop(8) as k: b.store(second, k, k * n)
    with b.when(b.add(g.ne(3))): b.store(out, g, b.load(second, g) + b.load(first, 1).cast(i32))
  library = Library([b.program()], tmp_path)
  memory = {0: bytearray(32)}
  library.run(library.programs[0], memory, (-5,), 1, 7)
  assert memoryview(memory[0]).cast("i").tolist() == [0, -4, -8, 0, -16, -20, -24, 0]

@needs_compiler
def test_conditions_that_all_lanes_share(tmp_path: Path) -> None:
  """Halves of rows rotated by an angle.

  With -march=x86-64-v4, GCC 12.2 gives -0 in three lanes of four where each lane chooses for itself.
  """
  b = Builder("rotate")
  out, x, cosine, sine, scales = [b.param(i, dtypes.float32, n) for i, n in enumerate((64, 64, 4, 4, 8))]
  with b.loop(16, AxisType.GLOBAL) as g:
    row, half = g // 2, g & 1
    zero, parts = b.const(dtypes.float32.vec(4), -0.0), []
    for gate, by, sign in ((half < 1, (cosine, sine), -1.0), (b.const(i32, 0) < half, (sine, cosine), 1.0)):
      scale = broadcast(b.load(scales, row, 1, gate), 4)
      first, second = [b.load(x, row * 8 + k * 4, 4, gate) * scale * b.load(by[k], 0, 4, gate) for k in range(2)]
      parts.append(b.add(broadcast(gate, 4).where(first + second * b.const(dtypes.float32.vec(4), sign), zero)))
    b.store(out, g * 4, parts[0] + parts[1])
  library = Library([b.program()], tmp_path, "-O2")
  library.check(0, memory_for(library.programs[0]))

@needs_compiler
def test_bits_of_all_lanes(tmp_path: Path) -> None:
  """Rows, of which the first is filled with the bits of a number.

  With -march=x86-64-v4, GCC 12.2 gives 0 in two lanes of four where each lane gets its bits for itself.
  """
  b = Builder("bits")
  floats, ints = dtypes.float32.vec(4), i32.vec(4)
  out, x = b.param(0, dtypes.float32, 24), b.param(1, dtypes.float32, 24)
  with b.loop(4, AxisType.GLOBAL) as g:
    first = broadcast(b.add(g < 1), 4)
    with b.loop(2) as i:
      place = g * 6 - b.add((i * -4).maximum(-2))
      bits = (b.load(x, place, 4) * b.const(floats, 2.0) - b.const(floats, 7.0)).bitcast(ints)
      b.store(out, place, b.add(first.where(b.const(ints, 4), bits)).bitcast(floats))
  library = Library([b.program()], tmp_path, "-O2")
  library.check(0, memory_for(library.programs[0]))

@needs_compiler
def test_nothing_is_left_for_libm(tmp_path: Path) -> None:
  b = Builder("math")
  out, x = b.param(0, dtypes.float32, 8), b.param(1, dtypes.float32, 8)
  v = b.load(x, 0, 8)
  b.store(out, 0, UOp(Ops.MULACC, v.dtype, (v.sqrt(), v.trunc(), v)))
  library = Library([b.program()], tmp_path)
  library.check(0, memory_for(library.programs[0]))
  info = Path("/proc/cpuinfo")
  if shutil.which("nm") is None or not info.exists() or " fma " not in info.read_text(encoding="utf-8"):
    pytest.skip("needs nm and a processor with fma")
  undefined = subprocess.run(["nm", "-u", str(tmp_path / "all.so")], check=True, capture_output=True, text=True).stdout
  assert not any(name in undefined for name in ("sqrt", "trunc", "fma"))

def test_the_abi() -> None:
  source = render(named()[0])
  assert "void add_16_1(const uint64_t *arguments, int64_t first, int64_t last, uint8_t *scratch) {" in source
  assert "float *data2 = (float *)arguments[2];" in source and "= first;" in source

@pytest.mark.parametrize(("dtype", "value", "text"), [
  (dtypes.float32, 0.5, "(0.5f)"), (dtypes.float32, float("-inf"), "(-__builtin_inff())"),
  (dtypes.float64, float("nan"), '__builtin_nan("")'),
  (dtypes.float16, 1.0, "15360"), (dtypes.int32, -2**31, "INT32_MIN"), (dtypes.int64, -2**63, "INT64_MIN"),
  (dtypes.uint32, 7, "7u"),
  (dtypes.uint64, 2**64 - 1, "18446744073709551615ull"), (dtypes.bool, True, "1"), (dtypes.int8, -3, "(-3)"),
])
def test_literals(dtype: object, value: object, text: str) -> None:
  assert WORDS.literal(UOp.const(dtype, value)) == text

def test_only_the_helpers_that_are_called() -> None:
  source = render(convert(dtypes.float16, dtypes.bfloat16, 4))
  assert {name for name in HELPERS if f"{name}(" in source} == {"power_of_two", "decode_float16", "encode_bfloat16"}

def test_what_c_has_not() -> None:
  with pytest.raises(CompileError, match="workgroups: C has no BARRIER"): render(workgroups())
  with pytest.raises(CompileError, match="softmax: C has no EXP2 of dtypes.float32 without a library; decompose it "
                     "first"):
    render(softmax())
