"""The runtime's functions: they assemble and agree with an independent assembler; each access of shared memory has the
order that the architecture demands; they preserve what the calling convention demands.

QEMU runs the code with the order of its host, so it cannot find a missing order. The tables here can.
"""
from __future__ import annotations
import re
import shutil
import struct
import subprocess
import sys

import pytest
from riscv64.machine import cpu_of, execute, needs_qemu, number

from tinyhw.autogen import cpu_ring
from tinyhw.errors import DeviceError
from tinyhw.isa.riscv64 import runtime
from tinyhw.isa.riscv64.abi import LP64D
from tinyhw.isa.riscv64.asm import syntax
from tinyhw.isa.riscv64.table import regs

NAMES = runtime.NAMES
OFFSETS = {str(offset): name for name, offset in cpu_ring.CONTEXT.items()}
SHARED = {"STATE", "COMPLETED", "PUBLISHED", "BELL", "SLEEPERS", "CALLER_SLEEPS", "STOP"}
CONTEXT, STATE_AT = runtime.REGISTERS["s1"], runtime.REGISTERS["s9"]

def lines_of(name: str) -> list[str]:
  """Instructions and labels, without comments."""
  lines = [line.split(";")[0].strip() for line in runtime.text(name).splitlines()]
  return [line for line in lines if line]

def instructions() -> list[str]:
  """Those of the ring."""
  return [line for line in lines_of("ring") if not line.endswith(":")]

@pytest.mark.parametrize("name", NAMES)
def test_assembles(name: str) -> None:
  assert 10 < len(syntax.assemble_function(runtime.text(name))) < 2048 and "{" not in runtime.text(name)

@pytest.mark.parametrize("name", NAMES)
def test_an_independent_assembler_agrees(name: str) -> None:
  tool = next((found for found in ("llvm-mc-19", "llvm-mc") if shutil.which(found)), None)
  if tool is None: pytest.skip("llvm-mc is not installed")
  lines = [re.sub(r"(^|[ ,])\.(\w+)", r"\1.L\2", line) for line in lines_of(name)]
  lines = [".word 0x0100000f" if line == "pause" else line for line in lines]   # LLVM 14 has no name for it
  ours = syntax.assemble_function(runtime.text(name))
  assert ours in assembled_by(tool, lines)

def assembled_by(tool: str, lines: list[str]) -> bytes:
  """The object file of an assembler, which contains the bytes in one piece."""
  return subprocess.run([tool, "-triple=riscv64", "-mattr=+m,+a,+f,+d,+v", "-filetype=obj"], check=True,
                        input=("\n".join(lines) + "\n").encode(), capture_output=True).stdout

# ***** order *****

def plain(line: str) -> tuple[str, str] | None:
  """A plain load or store of a shared field: its mnemonic and the field."""
  found = re.fullmatch(rf"(l[wd]|s[wd]) \w+, (\d+)\(({CONTEXT}|{STATE_AT})\)", line)
  if found is None: return None
  field = "STATE" if found[3] == STATE_AT else OFFSETS[found[2]]
  return (found[1], field) if field in SHARED else None

def test_a_load_of_what_another_thread_writes_is_followed_by_its_fence() -> None:
  lines = instructions()
  loads = [(k, found[1]) for k, line in enumerate(lines) if (found := plain(line)) and found[0][0] == "l"]
  bare = [field for k, field in loads if lines[k + 1] != "fence r, rw"]
  assert bare == ["PUBLISHED"], "only the caller, which alone writes it, reads it so"
  assert {field for _, field in loads} == SHARED
  assert sum(line == "fence r, rw" for line in lines) == len(loads) - 1, "no fence without its load"

def test_stores_for_other_threads() -> None:
  """One is after a fence; two are before that one or after a sleep."""
  lines = instructions()
  stores = [(k, found[1]) for k, line in enumerate(lines) if (found := plain(line)) and found[0][0] == "s"]
  assert [field for _, field in stores] == ["COMPLETED", "PUBLISHED", "CALLER_SLEEPS"]
  assert lines[stores[1][0] - 1] == "fence rw, w" and sum(line == "fence rw, w" for line in lines) == 1
  assert lines[stores[2][0] - 1].startswith("amoadd.w.aqrl"), "it has left the sleepers before"

def test_changes_at_once_have_both_orders() -> None:
  atomics = [line for line in instructions() if line.startswith("amo")]
  assert len(atomics) == 9 and all(line.partition(" ")[0].endswith(".aqrl") for line in atomics)
  assert not [line for line in atomics if "zero" in line], "an access whose old value nobody wants may lose its load"
  fields = [re.fullmatch(rf"addi t6, {CONTEXT}, (\d+)", line) for line in instructions()]
  assert {OFFSETS[found[1]] for found in fields if found} == {"BELL", "SLEEPERS", "CALLER_SLEEPS", "COMPLETED"}

def test_the_claim() -> None:
  """Between lr and sc there are only branches, as the architecture wants for progress; a full fence follows."""
  lines = lines_of("ring")
  at = next(k for k, line in enumerate(lines) if line.startswith("lr."))
  assert lines[at - 1].startswith(".loop") and sum(line.startswith(("lr.", "sc.")) for line in lines) == 2
  assert [line.partition(" ")[0] for line in lines[at:at + 6]] == ["lr.d.aqrl", "bne", "sc.d.rl", "bnez", "fence", "j"]
  assert lines[at + 4] == "fence rw, rw" and lines[at + 3].endswith(lines[at - 1][:-1])

# ***** what it keeps *****

def test_the_registers_that_functions_keep_are_saved() -> None:
  """Those that the loop writes. It leaves the other ones alone, and all floats."""
  function = syntax.parse_function(runtime.text("ring"))
  written = {(r.cls.bank, r.index) for block in function.blocks for inst in block.insts for r in inst.writes()}
  kept = {k for k in LP64D.saved if (regs.GENERAL, k) in written}
  assert {regs.X_NAMES[k] for k in kept} == {name for name in runtime.KEPT if name != "ra"}
  assert not [r for r in written if r[0] is not regs.GENERAL] and runtime.FRAME >= 8 * len(runtime.KEPT)

@needs_qemu
def test_a_batch_of_nothing_returns_and_keeps_the_rounding_mode() -> None:
  """count = 0 wakes sleepers, of which there are none."""
  context, record = 64, 64 + cpu_ring.CONTEXT_BYTES
  data = bytearray(record + cpu_ring.RECORD_BYTES)
  start = f"""
    addi sp, sp, -16
    sd ra, 0(sp)
    ld t0, 0(a0)
    sd t0, 8(sp)
    li t1, 0x23
    fscsr t1
    addi t1, t0, {context}
    addi a0, t0, {record}
    sd t1, {cpu_ring.RECORD["CONTEXT_ADDRESS"]}(a0)
    li a1, 0
    li a2, 0
    jal .ring
    ld t0, 8(sp)
    frcsr t1
    sd t1, 0(t0)
    ld ra, 0(sp)
    addi sp, sp, 16
    ret
  .ring:
  """
  code = syntax.assemble_function(start + runtime.text("ring"))
  found, = execute(code, [bytes(data)], (0, 1), cpu=cpu_of("riscv64:g"))
  mode, = struct.unpack_from("<Q", found)
  bell, = struct.unpack_from("<I", found, context + cpu_ring.CONTEXT["BELL"])
  assert (mode, bell) == (0x23, 1)

@needs_qemu
@pytest.mark.parametrize("name, cpu, least, most", [("clock", "riscv64:g", 1, 1 << 63),
                                                    ("vector_bytes", "riscv64:v128", 16, 16),
                                                    ("vector_bytes", "riscv64:v256", 32, 32)])
def test_what_the_processor_says(name: str, cpu: str, least: int, most: int) -> None:
  found, = execute(syntax.assemble_function("ld a0, 0(a0)") + runtime.STORED.code(name), [bytes(8)], (0, 1),
                   cpu=cpu_of(cpu))
  assert least <= struct.unpack("<Q", found)[0] <= most

@needs_qemu
def test_numbers_of_statements() -> None:
  """Forms that make a number in several instructions."""
  forms = {"a = limit": runtime.CALLER_SLEEP_NS, "a = everyone": 0x7fffffff, "a = last_chunk(b)": 0xffffff | 5 << 24,
           "a = chunk(b)": 7, "a = serial(b)": 5, "a = wrapped(b)": 5 << 24 | 7}
  lines = ["ld a0, 0(a0)", number("s1", 5 << 24 | 7)]
  for k, form in enumerate(forms):
    lines += [runtime.FORMS[form].format_map({**runtime.WORDS, "a": "a2", "b": "s1"}), f"sd a2, {8 * k}(a0)"]
  text = "addi sp, sp, -16\nsd s1, 0(sp)\n" + "\n".join(lines) + "\nld s1, 0(sp)\naddi sp, sp, 16\nret"
  found, = execute(syntax.assemble_function(text), [bytes(8 * len(forms))], (0, 1), cpu=cpu_of("riscv64:g"))
  assert dict(zip(forms, struct.unpack(f"<{len(forms)}Q", found))) == forms

@needs_qemu
@pytest.mark.parametrize("form", ["a = least(b, c)", "a = least_signed(b, c)"])
@pytest.mark.parametrize("b, c", [(1, 2), (2, 1), (3, 3), (1 << 63, 5), (5, 1 << 63)])
def test_the_least_of_two(form: str, b: int, c: int) -> None:
  text = "\n".join(["ld a0, 0(a0)", number("a1", b), number("a2", c),
                    runtime.FORMS[form].format(a="a1", b="a1", c="a2", k=1), "sd a1, 0(a0)", "ret"])
  found, = execute(syntax.assemble_function(text), [bytes(8)], (0, 1), cpu=cpu_of("riscv64:g"))
  signed = [x - (x >> 63 << 64) if "signed" in form else x for x in (b, c)]
  assert struct.unpack("<Q", found)[0] == min(signed) % (1 << 64)

def test_submit_has_room_for_two_addresses() -> None:
  code = runtime.STORED.code("submit")
  assert all(code.count(mark.to_bytes(8, "little")) == 1 for mark in cpu_ring.MARKS.values()) and len(code) == 40
  assert [code.index(cpu_ring.MARKS[name].to_bytes(8, "little")) for name in ("RECORD_MARK", "ENTRY_MARK")] == [24, 32]

def test_systems_without_a_known_way_to_wait(monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setattr(sys, "platform", "freebsd14")
  with pytest.raises(DeviceError, match="how threads wait on freebsd14 on RISC-V; use DEV=CLANG or DEV=PYTHON"):
    runtime.code("never asked for")

def test_a_text_that_changed_is_assembled_again(monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setattr(runtime, "CLOCK", "ret")
  assert runtime.STORED.code("clock") == syntax.assemble("ret")
