"""Damaged kernels for a virtual Metal: the exact sources of the engine's kernels with one random damage, and the
verdict on each.

Each class of damage breaks a rule of Metal or of its language, where its place matters. Such are a barrier less, or one
that some lanes do not reach, and a value that nobody has written. Others are an index outside of a buffer, a misaligned
vector, a gate less, and other arguments than the driver binds. A kernel may read another element than it should, and
break no rule. So no class does only that.

A mutant that is not reported, and has the results of the whole kernel with several seeds of the lanes' order, is
harmless: its place did not matter.
"""
from __future__ import annotations
import dataclasses
import functools
import random
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest

from test.codegen.kernels import data_for
from test.emulator.mutants.mutation_kernels import TENSORS, Case, empty
from test.emulator.mutants.mutations import Mutant
from tinyhw import emulator
from tinyhw.arithmetic import to_bytes
from tinyhw.codegen.optimize import optimize
from tinyhw.codegen.passes import lower
from tinyhw.codegen.render.targets import METAL, compile as source_of
from tinyhw.device import Launch
from tinyhw.drivers import metal
from tinyhw.emulator.metal.computer import MetalComputer
from tinyhw.engine.schedule.schedule import canonicalize, schedule
from tinyhw.errors import TinyError

SEEDS = 4
WITHOUT = {"doubles"}     # Metal has no float64
MORE = {"maxima of long rows": lambda: empty(3, 2000).max(1),
        "sums of blocks": lambda: empty(4096).reshape(4, 1024).sum(1)}

class Damaged(NamedTuple):
  """A kernel with a damage, and what it is."""
  case: Case
  what: str

Damage = Callable[[Case, list[str], random.Random], str | None]   # changes a line; returns what it did, None: no place

# ***** damages *****

def _replaced(lines: list[str], rng: random.Random, pattern: str, new: Callable[[re.Match[str]], str]) -> str | None:
  """Replace one match of a pattern in the kernel's function."""
  start = next(k for k, line in enumerate(lines) if line.startswith("kernel void"))
  places = [(k, found) for k in range(start + 1, len(lines)) for found in re.finditer(pattern, lines[k])]
  if not places: return None
  k, found = rng.choice(places)
  before = lines[k]
  lines[k] = before[:found.start()] + new(found) + before[found.end():]
  return f"{before.strip()} -> {lines[k].strip()}"

BARRIER = r"threadgroup_barrier\(mem_flags::mem_threadgroup\);"

def no_barrier(case: Case, lines: list[str], rng: random.Random) -> str | None:
  return _replaced(lines, rng, BARRIER, lambda found: "")

def parted_barrier(case: Case, lines: list[str], rng: random.Random) -> str | None:
  some = rng.randrange(1, case.code.lanes) if case.code.lanes > 1 else None
  return some and _replaced(lines, rng, BARRIER, lambda found: f"if (lane < {some}) {found[0]}")

def unwritten(case: Case, lines: list[str], rng: random.Random) -> str | None:
  return _replaced(lines, rng, r"^( +(?:float|int|uint|long|ushort|uchar|float2|float4) [av]\d+) = [^;]*;$",
                   lambda found: f"{found[1]};")

def outside(case: Case, lines: list[str], rng: random.Random) -> str | None:
  """An index of a device buffer that is far beyond it, or before it."""
  by = rng.choice((max(case.sizes), -max(case.sizes)))
  return _replaced(lines, rng, r"\b(data\d+)\[(\w+|\(\w+\))\]", lambda found: f"{found[1]}[{found[2]} + ({by})]")

def shared_outside(case: Case, lines: list[str], rng: random.Random) -> str | None:
  by = rng.choice((case.code.local_bytes, -case.code.local_bytes))
  return _replaced(lines, rng, r"\b(local\d+)\[(\w+|\(\w+\))\]", lambda found: f"{found[1]}[{found[2]} + ({by})]")

def misaligned(case: Case, lines: list[str], rng: random.Random) -> str | None:
  return _replaced(lines, rng, r"(\*\((?:device|threadgroup) \w+[24] \*\)\(\w+ \+ )([^;]*)\)",
                   lambda found: f"{found[1]}1 + {found[2]})")

def ungated(case: Case, lines: list[str], rng: random.Random) -> str | None:
  return _replaced(lines, rng, r"v\d+ \? (data\d+\[v\d+\]) : [^;]*", lambda found: found[1])

def stored_to_one(case: Case, lines: list[str], rng: random.Random) -> str | None:
  """All lanes store to one element. They may all store the same value."""
  return _replaced(lines, rng, r"^( +(?:data|local)\d+)\[\w+\] = ", lambda found: f"{found[1]}[0] = ")

def unknown_name(case: Case, lines: list[str], rng: random.Random) -> str | None:
  return _replaced(lines, rng, r"\b[av]\d+\b", lambda found: f"{found[0]}x")

def other_space(case: Case, lines: list[str], rng: random.Random) -> str | None:
  return _replaced(lines, rng, r"\((?:device|threadgroup) (\w+ \*)\)", lambda found: f"({found[1]})")

def other_argument(case: Case, lines: list[str], rng: random.Random) -> str | None:
  """A buffer's number is another one: twice the same, or one that the driver does not bind."""
  k = next(k for k, line in enumerate(lines) if line.startswith("kernel void"))
  places = list(re.finditer(r"\[\[buffer\((\d+)\)\]\]", lines[k]))
  found, number = rng.choice(places), rng.randrange(len(places) + 2)
  if number == int(found[1]): return None
  lines[k] = lines[k][:found.start()] + f"[[buffer({number})]]" + lines[k][found.end():]
  return f"{found[0]} -> [[buffer({number})]]"

DAMAGES: dict[str, Damage] = {
  "a barrier less": no_barrier, "a barrier that lanes do not reach": parted_barrier, "an unwritten value": unwritten,
  "an index outside": outside, "an index outside of shared memory": shared_outside, "a misaligned vector": misaligned,
  "a gate less": ungated, "stores to one element": stored_to_one, "an unknown name": unknown_name,
  "another address space": other_space, "another argument": other_argument}
SMALLER = "less shared memory"     # than the kernel has: of its launch, not of its source

# ***** kernels *****

@functools.lru_cache(None)
def kernels() -> tuple[Case, ...]:
  """Return the kernels of the engine, with data."""
  found: list[Case] = []
  for name, make in {**TENSORS, **MORE}.items():
    if name in WITHOUT: continue
    for k, kernel in enumerate(schedule(canonicalize([make().uop])).kernels):
      program = lower(optimize(kernel.sink, METAL), METAL, name.replace(" ", "_"))
      data: dict[int, list[Any]] = data_for(kernel.sink)
      contents = [b"".join(to_bytes(x, p.dtype.scalar()) for x in data[p.arg[0]]) for p in program.params]
      buffers = tuple([None if p.arg[0] in program.written else c for p, c in zip(program.params, contents)])
      assert isinstance(program.grid, int) and not program.variables
      found.append(Case(f"{name} {k}", "apple7", source_of(program, "metal"), buffers, tuple(map(len, contents)),
                        program.grid))
  return tuple(found)

def damaged(rng: random.Random, kind: str) -> Damaged | None:
  case = rng.choice(kernels())
  if kind == SMALLER:
    if case.code.local_bytes <= 16: return None
    less = rng.randrange(0, case.code.local_bytes - 15, 16)
    return Damaged(case._replace(code=dataclasses.replace(case.code, local_bytes=less)), f"{less} bytes")
  lines = case.code.text.decode().split("\n")
  what = DAMAGES[kind](case, lines, rng)
  if what is None: return None
  return Damaged(case._replace(code=dataclasses.replace(case.code, text="\n".join(lines).encode())), what)

# ***** runs *****

def run(case: Case, seed: int) -> tuple[str, tuple[bytes, ...]]:
  """Launch a kernel on a new computer. Return the report, and the written buffers."""
  with pytest.MonkeyPatch.context() as patch:
    computer = emulator.make(case.arch, seed)
    assert isinstance(computer, MetalComputer)
    patch.setattr(metal, "load_library", lambda: computer.metal)
    device: Any = metal.open(0, lambda name: None)  # type: ignore[arg-type,return-value]
    results: list[bytes] = []
    try:
      buffers = [device.allocator.alloc(size) for size in case.sizes]
      for buffer, content in zip(buffers, case.buffers):
        if content is not None: device.allocator.copyin(buffer, memoryview(content))
      device.submit([Launch(device.load(case.code), buffers, (), case.grid)])
      device.synchronize()
      for buffer, content, size in zip(buffers, case.buffers, case.sizes):
        if content is not None: continue
        out = bytearray(size)
        device.allocator.copyout(memoryview(out), buffer)
        results.append(bytes(out))
    except TinyError as error: return f"{type(error).__name__}: {error.message}", ()
    return "", tuple(results)

@functools.lru_cache(None)
def whole(name: str) -> tuple[bytes, ...]:
  """Return the results of an undamaged kernel."""
  report, results = run(next(case for case in kernels() if case.name == name), 0)
  assert not report, f"{name}: {report}"
  return results

def judge(mutant: Damaged, rng: random.Random) -> tuple[str, str]:
  """Return the verdict, and its reason."""
  verdict = "harmless", ""
  for _ in range(SEEDS):
    report, results = run(mutant.case, rng.getrandbits(32))
    if report: return "reported", report
    if results != whole(mutant.case.name): verdict = "missed: a result", ""
  return verdict

def mutants(count: int, seed: int = 0) -> Iterator[Mutant]:
  """Yield `count` mutants, of all classes in turn."""
  kinds = (*DAMAGES, SMALLER)
  for number in range(count):
    rng, kind = random.Random(f"{seed} {number}"), kinds[number % len(kinds)]
    made = None
    while made is None: made = damaged(rng, kind)
    verdict, why = judge(made, rng)
    yield Mutant(made.case.name, made.case.arch, kind, made.what, verdict, why)
