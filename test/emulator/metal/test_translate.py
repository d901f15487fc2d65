"""Types of kernels, and the Python that they become: programs agree with the interpreter bit by bit."""
import random

import pytest
from generators import program_builder
from generators.program_builder import (
  INTS, RandomProgram, add, memory_for, named, same_memory, workgroups)

from tinyhw.codegen.render.metal import render
from tinyhw.dtype import dtypes
from tinyhw.emulator.metal.lanes import MslRegion, ThreadGroup
from tinyhw.emulator.metal.translate import translate
from tinyhw.emulator.metal.words import SourceError
from tinyhw.uop.enums import Ops
from tinyhw.uop.evaluate.evaluate import evaluate
from tinyhw.uop.program import Program
from test.emulator.metal.conftest import kernel_of

def check(program: Program, memory: dict[int, bytearray]) -> None:
  """Assert that the virtual GPU computes from the source what the interpreter does."""
  kernel = translate(render(program))[f"k_{program.name}"]
  again, regions, shared = {slot: bytearray(data) for slot, data in memory.items()}, dict[str, MslRegion](), None
  for argument in kernel.arguments:
    kind, index = argument.attribute
    if kind == "buffer":
      data = again[program.params[index].arg[0]]
      regions[argument.name] = MslRegion(argument.name, data, bytearray([1]) * len(data))
    elif kind == "threadgroup":
      shared = regions[argument.name] = MslRegion(argument.name, bytearray(program.local_bytes),
                                               bytearray(program.local_bytes))
  group = ThreadGroup(kernel, regions, shared, program.lanes, random.Random(1))
  for k in range(int(program.grid)): group.run(k)
  evaluate(program, memory)
  same_memory(program, memory, again)

SKIPPED = {"add_15_3": "vectors of 3", "fold_8": "vectors of 8"}
PROGRAMS = [p for p in (*named(), add(16, 4), workgroups(), workgroups(5, 48)) if p.name not in SKIPPED]

@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.name)
def test_programs(program: Program) -> None: check(program, memory_for(program))

@pytest.mark.parametrize("seed", range(16))
def test_random_programs(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
  """All but divisions, whose operands codegen makes positive before, and whose results may be subnormal."""
  monkeypatch.setattr(program_builder, "INT_OPS", tuple(op for op in program_builder.INT_OPS
                                                        if op not in (Ops.IDIV, Ops.MOD)))
  made = RandomProgram(seed, steps=14, types=(*INTS, dtypes.bool))
  check(made.program, made.memory(seed))

@pytest.mark.parametrize(("body", "words"), [
  ("int a = 1; int a = 2;", "program_source:5: error: redefinition of 'a'"), ("return 1;", "a kernel returns nothing"),
  ("threadgroup_barrier(mem_flags::mem_device);", "threadgroup_barrier mem_device is not in the subset"),
  ("for (int i = 0; i < 3; i++) { i = 1; }", "the counter 'i'"), ("x = 1;", "'x' cannot be assigned to"),
  ("int a = 1; { int a = 2; } out[0] = a;", "redefinition of 'a'; names that hide others"),
  ("int lane = 1;", "redefinition of 'lane'"), ("for (float f = 0; f < 3; f++) { }", "a counter of float"),
  ("threadgroup int *s = shared_bytes; s[0] = 1;", "a pointer to threadgroup int cannot point to threadgroup uchar"),
  ("device int4 *p = (device int4 *)(x + 0); out[0] = p[1];", "a pointer to device int4 cannot point to device int"),
  ("numbers[0] = 1l;", "cannot assign to memory that is constant"),
  ("simdgroup_half8x8 a; simdgroup_multiply_accumulate(a, a, a, a);", "no matching function for call to 'simdgroup")])
def test_refusals(body: str, words: str) -> None:
  with pytest.raises(SourceError, match=words): translate(kernel_of(body))

def test_arguments() -> None:
  source = kernel_of("out[0] = 1;")
  for old, new, words in (("[[buffer(1)]]", "[[buffer(0)]]", "two arguments are buffer"),
                          ("uint lane", "int lane", "argument 'lane' is not in the subset"),
                          ("[[buffer(1)]]", "[[buffer(31)]]", r"buffer\(31\) is no place"),
                          ("[[buffer(1)]]", "[[buffer(1u)]]", "buffer takes a number, found '1u'"),
                          ("device int *x", "constant int &x", "argument 'x' is not in the subset")):
    with pytest.raises(SourceError, match=words): translate(source.replace(old, new))
  assert [a.attribute for a in translate(source)["k_t"].arguments][:3] == [("buffer", 0), ("buffer", 1), ("buffer", 2)]

@pytest.mark.parametrize(("fields", "body", "words"), [
  ("device int *a; device int *a;", "out[0] = 1;", "pointers to device memory, each once"),
  ("int a;", "out[0] = 1;", "pointers to device memory, each once"),
  ("constant int *a;", "out[0] = 1;", "pointers to device memory, each once"),
  ("device int *a;", "device int *p = slots.b; out[0] = p[0];", "the expression is no pointer"),
  ("device int *a;", "device float *p = slots.a; out[0] = 1;", "a pointer to device float cannot point to device int"),
  ("device int *a;", "out[0] = slots.a;", "'slots' is no value")])
def test_structures(fields: str, body: str, words: str) -> None:
  source = kernel_of(body, helpers=f"struct k_s {{ {fields} }};\n")
  with pytest.raises(SourceError, match=words):
    translate(source.replace("constant long *numbers", "constant k_s &slots"))

def test_a_structure_of_pointers() -> None:
  helpers = "struct k_s { device float *a; device int *b; };\n"
  source = kernel_of("device int *p = slots.b; out[0] = p[1];", helpers=helpers)
  kernel = translate(source.replace("constant long *numbers", "constant k_s &slots"))["k_t"]
  assert kernel.pointers == (("slots.a", "float"), ("slots.b", "int"))
  assert {way.memory for way in kernel.accessors} == {"out", "slots.b"}
  with pytest.raises(SourceError, match="redefinition of 'k_s'"): translate(kernel_of("", helpers=2 * helpers))

def test_functions_are_known_from_their_place_on() -> None:
  one, two = "inline int one(int a) { return a; }\n", "inline int two(int a) { return one(a); }\n"
  assert list(translate(kernel_of("out[0] = two(1);", helpers=one + two))) == ["k_t"]
  for helpers, words in ((two + one, "program_source:4: error: no matching function for call to 'one' with int"),
                         ("inline int one(int a) { return one(a); }\n", "no matching function for call to 'one'"),
                         (one + one, "redefinition of 'one'"),
                         ("inline int one(int a) { }\n", "'one' returns no value")):
    with pytest.raises(SourceError, match=words): translate(kernel_of("out[0] = 1;", helpers=helpers))
