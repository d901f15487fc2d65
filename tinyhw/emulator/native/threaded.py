"""Threaded code: a loop in machine code of the host that executes the translated program of a virtual processor. x86-64
only.

A program becomes a sequence of records (records.py). The loop calls the first function of a record, or the second one
while some lanes are not active, and goes on to the next record. A function gets the address of a `context`: the
processor's state, the record, and the other words of the table below. Most functions are compiled from Programs (UOps)
with the state as parameter 0 and the record as parameter 1. This file has the control functions: entries of blocks,
jumps, exits to Python, checks of written registers. native/access.py has loads and stores.

Strict checks that depend only on the path are done once. Their knowledge is a numbered state. The entry of a block has
pairs (state before, state after) for which Python has found no mistake. Any other state leaves the loop, and Python
checks it. Nothing here knows an instruction set.
"""
from __future__ import annotations
import ctypes
import importlib
from collections.abc import Callable
from enum import IntEnum
from platform import machine

from tinyhw.drivers.cpu import processor
from tinyhw.drivers.cpu.memory import CodeArena
from tinyhw.emulator.native import access as window_access
from tinyhw.emulator.native.records import OPERANDS, PAIRS, WORD, offsets
from tinyhw.errors import TinyError
from tinyhw.machine.ir.code import Code
from tinyhw.threads import once

CONTEXT = (           # words of a context
  "STATE",            # address of the registers
  "RECORD",           # address of the record where the loop is
  "BUDGET",           # instructions that may still begin
  "KNOWN",            # number of the state of strict checks
  "ENTERED",          # the same at the entry of the current block
  "ENTRY",            # address of its record
  "ACTIVE",           # mask of active lanes
  "ALL",              # mask of all lanes
  "PARTIAL",          # 0 or 8, the offset of the function that a record's next call takes
  "WRITTEN",          # address of a mask for each register: lanes in which it was written
  "VECTOR_WINDOWS",   # addresses of tables of windows (windows.py) for accesses of vectors and
  "SCALAR_WINDOWS",   # of scalars
  "TABLE",            # address of the current table
  "LOCAL",            # address of a LocalWindow
  "FAILED",           # an address whose access was not plain
  "PLACES")           # and on: a word for the host address of each element that an instruction's lanes touch
AT = {name: i for i, name in enumerate(CONTEXT)}
MOST_PLACES = 256  # of an instruction
CONTEXT_BYTES = (8 * (len(CONTEXT) + MOST_PLACES) + 63) // 64 * 64

class Exit(IntEnum):
  """Why the loop has ended, at RECORD."""
  BUDGET = 0     # at an entry: nothing is left
  UNKNOWN = 1    # at an entry: no pair has this state
  PYTHON = 2     # an instruction that Python executes; the loop goes on after it
  LINK = 3       # at the end of a block whose next block is not known yet
  UNWRITTEN = 4  # a register that is about to be read was not written in an active lane
  MAKE = 5       # the function for some lanes does not exist yet

# r12: the record, r13: 0, or 8 while some lanes are not active, rbx: the context. `{jump.to}` is an operand of a
# record, by name.
TEXT = """
{pushes}
  sub rsp, {frame}
  mov rbx, {argument0}
  mov r12, qword ptr [rbx + {RECORD}]
  mov r13, qword ptr [rbx + {PARTIAL}]
.next:
  mov {argument0}, rbx
  call qword ptr [r12 + r13]
  add r12, qword ptr [r12 + 16]
  mov qword ptr [rbx + {RECORD}], r12
  jmp .next
.go:                                   ; from a function: r12 is the record that comes next
  add rsp, 8
  mov qword ptr [rbx + {RECORD}], r12
  jmp .next
.leave:                                ; from a function: eax says why
  add rsp, 8
  add rsp, {frame}
{pops}
  ret

.entry:
  cmp qword ptr [rbx + {BUDGET}], 0
  jle .entry_budget
  mov rax, qword ptr [rbx + {KNOWN}]
{tests}
  mov eax, {UNKNOWN}
  jmp .leave
.entry_budget:
  mov eax, {BUDGET_EXIT}
  jmp .leave
{founds}

.python:
  mov eax, {PYTHON}
  jmp .leave
.link:
  mov eax, {LINK}
  jmp .leave
.make:
  mov eax, {MAKE}
  jmp .leave

.jump:
  mov r12, qword ptr [r12 + {jump.to}]
  jmp .go
.jump_zero:
  mov rcx, qword ptr [rbx + {STATE}]
  mov rdx, qword ptr [r12 + {jump_zero.place}]
  mov rax, qword ptr [rcx + rdx]
  and rax, qword ptr [r12 + {jump_zero.mask}]
  je .taken
.not_taken:                            ; those that choose between two records have these as their first operands
  mov r12, qword ptr [r12 + {jump_zero.no}]
  jmp .go
.jump_set:
  mov rcx, qword ptr [rbx + {STATE}]
  mov rdx, qword ptr [r12 + {jump_set.place}]
  mov rax, qword ptr [rcx + rdx]
  and rax, qword ptr [r12 + {jump_set.mask}]
  je .not_taken
.taken:
  mov r12, qword ptr [r12 + {jump_set.yes}]
  jmp .go

.activate:
  mov rcx, qword ptr [rbx + {STATE}]
  mov rdx, qword ptr [r12 + {activate.mask}]
  mov rax, qword ptr [rcx + rdx]
  mov rcx, qword ptr [rbx + {ALL}]
  and rax, rcx
.activate_these:
  mov qword ptr [rbx + {ACTIVE}], rax
  xor r13d, r13d
  mov edx, 8
  cmp rax, rcx
  cmovne r13, rdx
  mov qword ptr [rbx + {PARTIAL}], r13
  ret

.guard:
  call .guarded_lanes
  mov rax, rdi
  mov rdx, qword ptr [r12 + {guard.active}]
  mov dword ptr [rcx + rdx], eax
  mov rcx, qword ptr [rbx + {ALL}]
  jmp .activate_these
.branch:
  add r12, {branch_is_later}           ; its operands of this kind come after two others
  call .guarded_lanes
  sub r12, {branch_is_later}
  test rdi, rdi
  je .not_taken
  cmp rdi, rax
  je .taken
  jmp .python
; rax: lanes that run, rdi: those of them in the mask, rcx: the state. May leave the calling function
.guarded_lanes:
  mov rcx, qword ptr [rbx + {STATE}]
  mov rdx, qword ptr [r12 + {guard.running}]
  mov eax, dword ptr [rcx + rdx]
  mov rsi, qword ptr [rbx + {WRITTEN}]
  mov rdi, qword ptr [r12 + {guard.number}]
  mov rsi, qword ptr [rsi + 8*rdi]
  not rsi
  test rsi, rax
  jne .guard_unwritten
  mov rdx, qword ptr [r12 + {guard.mask}]
  mov edi, dword ptr [rcx + rdx]
  xor rdi, qword ptr [r12 + {guard.inversion}]
  and rdi, rax
  ret
.guard_unwritten:
  add rsp, 8
  jmp .unwritten

.written_all:                          ; checks for all lanes
  mov rax, qword ptr [rbx + {ALL}]
  jmp .written_lanes
.written:                              ; the same for the active lanes
  mov rax, qword ptr [rbx + {ACTIVE}]
.written_lanes:
  mov rcx, qword ptr [rbx + {WRITTEN}]
  mov r8, qword ptr [r12 + {written.reads}]
  mov r9, qword ptr [r12 + {written.writes}]
  lea r10, [r12 + {written.numbers}]
  test r8, r8
  je .written_writes
.written_read:
  mov rdx, qword ptr [r10]
  mov rdx, qword ptr [rcx + 8*rdx]
  not rdx
  test rdx, rax
  jne .unwritten
  add r10, 8
  sub r8, 1
  jne .written_read
.written_writes:
  test r9, r9
  je .written_done
.written_write:
  mov rdx, qword ptr [r10]
  or qword ptr [rcx + 8*rdx], rax
  add r10, 8
  sub r9, 1
  jne .written_write
.written_done:
  ret
.unwritten:
  mov eax, {UNWRITTEN}
  jmp .leave
"""

# For each pair of an entry: the test of its state before, and the code for a match
TEST = """\
  cmp rax, qword ptr [r12 + {before}]
  je .found{i}"""
FOUND = """
.found{i}:
  mov qword ptr [rbx + {ENTERED}], rax
  mov qword ptr [rbx + {ENTRY}], r12
  mov rax, qword ptr [r12 + {after}]
  mov qword ptr [rbx + {KNOWN}], rax
  mov rax, qword ptr [r12 + {entry.instructions}]
  sub qword ptr [rbx + {BUDGET}], rax
  ret"""

def text() -> str:
  """Return the assembly text of the loop and its functions."""
  abi = importlib.import_module("tinyhw.isa.x86.abi").abi()  # loaded only where blocks are translated
  context = {name: WORD * i for i, name in enumerate(CONTEXT)}
  words: dict[str, object] = {**context, **{function: offsets(function) for function in OPERANDS}}
  words |= {f"{name}_EXIT" if name in words else name: int(code) for name, code in Exit.__members__.items()}
  words["branch_is_later"] = offsets("branch").mask - offsets("guard").mask
  pairs = [words | {"i": i, "before": offsets("entry").pairs + 16 * i, "after": offsets("entry").pairs + 16 * i + WORD}
           for i in range(PAIRS)]
  words["tests"] = "\n".join(TEST.format_map(pair) for pair in pairs)
  words["founds"] = "".join(FOUND.format_map(pair) for pair in pairs)
  steering = TEXT.format_map(words | {
    "pushes": "\n".join(f"  push {r}" for r in abi.saved), "pops": "\n".join(f"  pop {r}" for r in reversed(abi.saved)),
    # rsp is a multiple of 16 at a call
    "argument0": abi.arguments[0], "frame": abi.shadow_bytes + 8 * (1 - len(abi.saved) % 2)})
  return steering + window_access.text(context, Exit.PYTHON)

@once
def level() -> str | None:
  """Return the target that host code is compiled for.

  Return None if the host is no x86-64 with AVX2, or if pages cannot be executable.
  """
  if machine() not in ("x86_64", "AMD64"): return None
  # loaded only on this processor
  try: return processor(importlib.import_module("tinyhw.isa.x86.runtime").code).arch
  except (TinyError, KeyError, OSError, AttributeError): return None

_arena = CodeArena()

class Engine:
  """The loop, ready to run.

  `run(address of a context)` returns an Exit. `functions` has the addresses of the labels of TEXT by name.
  """
  def __init__(self) -> None:
    # an assembler loads only where blocks are translated
    syntax = importlib.import_module("tinyhw.isa.x86.asm.syntax")
    function = syntax.parse_function(text())
    code, lines = importlib.import_module("tinyhw.isa.x86.asm.encode").encode_function(function)
    offsets = {id(inst): at for at, inst in lines}
    address, self.chunk = _arena.add(code)
    self.functions: dict[str, int] = {block.name: address + offsets[id(block.insts[0])] for block in function.blocks
                                      if block.name and block.insts}
    self.run: Callable[[int], int] = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)(address)

@once
def engine() -> Engine | None:
  """Return the loop, or None on a host without one."""
  return None if level() is None else Engine()

def load(code: Code) -> int:
  """Load a compiled Program and return the address where the host may call it. It does not move."""
  address, chunk = _arena.add(code.text)
  _kept.append(chunk)
  return address + code.entry

_kept: list[object] = []
