"""The runtime's functions: they assemble and agree with an independent assembler; each access of shared memory has the
order that the architecture demands.

QEMU runs the code with the order of its host, so it cannot find a missing order. The tables here can. They follow the
verdicts of the architecture's memory model (herd7, aarch64.cat) on these patterns:

    publish by stlr, read by ldar                                        no stale data; plain store or load: stale
    read a packet, claim by casal, whoever sees the claim overwrites     the claim never reads the new packet; cas: may
    swpal, ldaddal or casal, then ldar of another word                   one of two threads sees the other
    ldaxr and stlxr, then ldar of another word                           both may miss: dmb ish must stand between
"""
from __future__ import annotations
import re
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from arm64.machine import execute, needs_qemu

from tinyhw.autogen import cpu_ring
from tinyhw.errors import DeviceError
from tinyhw.isa.arm64 import runtime
from tinyhw.isa.arm64.asm import syntax

NAMES = runtime.NAMES
RINGS = ("ring", "ring_lse")

def lines_of(name: str) -> list[str]:
  """Instructions and labels, without comments."""
  lines = [line.split(";")[0].strip() for line in runtime.text(name).splitlines()]
  return [line for line in lines if line]

def instructions(name: str) -> list[str]: return [line for line in lines_of(name) if not line.endswith(":")]

@pytest.mark.parametrize("name", NAMES)
def test_assembles(name: str) -> None:
  assert 20 < len(syntax.assemble_function(runtime.text(name))) < 2500 and "{" not in runtime.text(name)

@pytest.mark.parametrize("name", NAMES)
def test_an_independent_assembler_agrees(name: str, tmp_path: Path) -> None:
  if shutil.which("aarch64-linux-gnu-as") is None: pytest.skip("GNU as for AArch64 is not installed")
  source, target, image = (tmp_path / end for end in ("a.s", "a.o", "a.bin"))
  source.write_text("\n".join(re.sub(r"(^|[ ,])\.(\w+)", r"\1L\2", line) for line in lines_of(name)) + "\n")
  subprocess.run(["aarch64-linux-gnu-as", "-march=armv8.2-a", "-o", target, source], check=True)
  subprocess.run(["aarch64-linux-gnu-objcopy", "-O", "binary", "-j", ".text", target, image], check=True)
  ours = syntax.assemble_function(runtime.text(name))
  assert image.read_bytes()[:len(ours)] == ours

# ***** order *****

OFFSETS = {f"#{offset}": name for name, offset in cpu_ring.CONTEXT.items()}
# field of the context -> the instructions that may touch it. Plain accesses are of fields that only the caller writes,
# before it publishes, or that it wrote itself
ALLOWED = {
  "STATE": {"ldar", "casal", "ldaxr", "stlxr"}, "COMPLETED": {"ldar", "ldaddal", "ldaxr", "stlxr",
                                                              "str before PUBLISHED"},
  "PUBLISHED": {"ldar", "stlr", "ldr by its writer"}, "BELL": {"ldar", "ldaddal", "ldaxr", "stlxr"},
  "SLEEPERS": {"ldar", "ldaddal", "ldaxr", "stlxr"}, "CALLER_SLEEPS": {"ldar", "swpal", "ldaxr", "stlxr",
                                                                       "str after its sleep"},
  "STOP": {"ldar"}, "TARGET": {"ldr", "str before PUBLISHED"}, "RING": {"ldr"}, "MASK": {"ldr"}, "SPIN": {"ldr"},
  "TIMELINE": {"ldr", "str"}}
PLAIN = {("COMPLETED", "str"): "str before PUBLISHED", ("PUBLISHED", "ldr"): "ldr by its writer",
         ("CALLER_SLEEPS", "str"): "str after its sleep", ("TARGET", "str"): "str before PUBLISHED"}

def accesses(name: str) -> list[tuple[str, str, int]]:
  """(field, mnemonic, position) of each access of the context: plain ones by x19, others by a register that was set to
  the field's address."""
  found, pointer = [], {}
  for k, line in enumerate(instructions(name)):
    mnemonic, _, rest = line.partition(" ")
    set_by = re.fullmatch(r"(x\d+), x19, (#\d+)", rest) if mnemonic == "add" else None
    if set_by: pointer[set_by[1]] = OFFSETS[set_by[2]]
    plain = re.search(r"\[x19(?:, (#\d+))?\]", rest)
    if plain: found.append((OFFSETS[plain[1] or "#0"], mnemonic, k))
    by = re.search(r"\[(x\d+)\]$", rest)
    if by and by[1] in pointer and not mnemonic.startswith(("ldr", "str", "ldp", "stp")):
      found.append((pointer[by[1]], mnemonic, k))
  return found

@pytest.mark.parametrize("name", RINGS)
def test_each_access_has_its_order(name: str) -> None:
  found = accesses(name)
  assert {field for field, _, _ in found} == set(ALLOWED)
  for field, mnemonic, _ in found:
    known = {mnemonic, PLAIN.get((field, mnemonic))}
    assert known & ALLOWED[field], f"{name}: {mnemonic} of {field}"

@pytest.mark.parametrize("name", RINGS)
def test_what_is_published_was_written_before(name: str) -> None:
  """TARGET and packets stand before the one stlr; COMPLETED is set to 0 once, at the beginning."""
  found, lines = accesses(name), instructions(name)
  published = [k for field, mnemonic, k in found if (field, mnemonic) == ("PUBLISHED", "stlr")]
  assert len(published) == 1
  for field in ("TARGET", "COMPLETED"): assert all(k < published[0] for f, m, k in found if f == field and m == "str")
  assert all(k < published[0] for k, line in enumerate(lines) if line.startswith("str") and "[x13" in line)

def test_exclusive_loops_end_with_a_barrier() -> None:
  """Between ldaxr and stlxr nothing else touches memory, and dmb ish follows before any other access."""
  lines = instructions("ring")
  for k, line in enumerate(lines):
    if not line.startswith("ldaxr"): continue
    end = next(n for n in range(k, k + 6) if lines[n].startswith("stlxr"))
    assert not [x for x in lines[k + 1:end] if "[" in x]
    assert lines[end + 1].startswith("cbnz") and lines[end + 2] == "dmb ish"
  assert sum(line.startswith("ldaxr") for line in lines) == sum(line == "dmb ish" for line in lines) == 10

def test_atomic_operations_have_both_orders_and_a_result() -> None:
  """ldadd, swp or cas without "al", or with a result in xzr, would lose an order."""
  atomics = [line for line in instructions("ring_lse") if line.startswith(("ldadd", "swp", "cas", "st"))
             and not line.startswith(("str", "stp", "stlr"))]
  assert len([a for a in atomics if a.startswith(("ldaddal", "swpal", "casal"))]) == len(atomics) == 10
  assert not [a for a in atomics if "zr" in a]

@pytest.mark.parametrize("name", RINGS)
def test_a_thread_forgets_what_it_fetched_before_it_calls(name: str) -> None:
  lines = instructions(name)
  assert [lines[k - 1] for k, line in enumerate(lines) if line.startswith("blr")] == ["isb"]

@needs_qemu
def test_identify_and_clean() -> None:
  """They run in user mode; the line sizes that clean reads are powers of two."""
  identify = runtime.STORED.code("identify")
  call = syntax.assemble_function("stp x29, x30, [sp, #-16]!\nldr x0, [x0]\nbl #12\nldp x29, x30, [sp], #16\nret")
  found, = execute(call + identify, [bytes(24)], (0, 1))
  cache_type, hertz, _ = struct.unpack("<3Q", found)
  assert cache_type >> 31 == 1 and hertz > 1_000_000
  call = syntax.assemble_function("stp x29, x30, [sp, #-16]!\nldr x0, [x0]\nadd x1, x0, #200\nbl #12\nldp x29, x30, "
                                 "[sp], #16\nret")
  execute(call + runtime.STORED.code("clean"), [bytes(256)], (0, 1))

def test_submit_has_room_for_two_addresses() -> None:
  code = runtime.STORED.code("submit")
  assert all(code.count(mark.to_bytes(8, "little")) == 1 for mark in cpu_ring.MARKS.values()) and len(code) == 40

def test_systems_without_a_known_way_to_wait(monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setattr(sys, "platform", "darwin")
  with pytest.raises(DeviceError, match="how threads wait on darwin on AArch64; use DEV=CLANG or DEV=PYTHON"):
    runtime.code.__wrapped__("clean") if hasattr(runtime.code, "__wrapped__") else runtime.code("never asked for")

def test_a_text_that_changed_is_assembled_again(monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setattr(runtime, "IDENTIFY", "ret")
  assert runtime.STORED.code("identify") == syntax.assemble("ret")
