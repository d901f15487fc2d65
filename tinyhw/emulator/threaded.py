"""Threaded code: the loop in machine code of the host that walks what a virtual processor's program has been translated to. x86-64 only.

A program becomes `records`, one after the other, in 8-byte words: two addresses of functions, the size of the record in bytes, operands. The loop
calls a record's first function, or its second one while some lanes are not active, and goes on to the next record. A function gets the address of a
`context`: the processor's state, the record, and what else stands in the table below; most are compiled from Programs (UOps) with the state as
parameter 0 and the record as parameter 1. The functions that steer are written here: entries of blocks, jumps, exits to Python, checks of what has
been written.

Strict checks that depend only on the way that was taken are done once: what they know is a numbered state, and the entry of a block has pairs
(state before, state behind) of those for which Python has found no mistake. Another state leaves the loop, and Python looks. Nothing here knows an
instruction set.
"""
from __future__ import annotations
import ctypes
import functools
import importlib
from array import array
from collections.abc import Callable, Sequence
from enum import IntEnum
from platform import machine

from tinyhw.drivers.cpu import processor
from tinyhw.drivers.cpu.memory import CodeArena
from tinyhw.emulator import windows
from tinyhw.errors import TinyError
from tinyhw.machine.code import Code

WORD = 8
# words of a context. STATE: the address of the registers; RECORD: where the loop is; BUDGET: instructions that may still begin; KNOWN: the number
# of what strict checks know, ENTERED: the same where the current block was entered, ENTRY: its record; ACTIVE: the mask of active lanes, ALL:
# that of all; PARTIAL: 0 or 8, the place of the function that a record's next call takes; WRITTEN: the address of a mask of lanes for each vector
# register; VECTOR_WINDOWS, SCALAR_WINDOWS: addresses of tables of windows.py, TABLE: of that in use; LOCAL: of a Local; FAILED: the address that
# was not plain; PLACES and on: a word for each place that lanes touch
CONTEXT = ("STATE", "RECORD", "BUDGET", "KNOWN", "ENTERED", "ENTRY", "ACTIVE", "ALL", "PARTIAL", "WRITTEN", "VECTOR_WINDOWS", "SCALAR_WINDOWS",
           "TABLE", "LOCAL", "FAILED", "PLACES")
AT = {name: i for i, name in enumerate(CONTEXT)}
MOST_PLACES = 256  # of an instruction
CONTEXT_BYTES = (8 * (len(CONTEXT) + MOST_PLACES) + 63) // 64 * 64
HEAD = 3          # words of a record before its operands
PAIRS = 6         # of an entry

class Exit(IntEnum):
  """Why the loop has ended; RECORD is where."""
  BUDGET = 0     # at an entry: nothing is left
  UNKNOWN = 1    # at an entry: no pair has this state
  PYTHON = 2     # an instruction that Python executes; the loop goes on behind it
  LINK = 3       # at the end of a block, whose next one is not known yet
  UNWRITTEN = 4  # a register that is about to be read has not been written in an active lane
  MAKE = 5       # the function for some lanes is not there yet

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

.entry:                                ; operands: instructions, pairs
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

.jump:                                 ; operands: record
  mov r12, qword ptr [r12 + 24]
  jmp .go
.jump_zero:                            ; operands: records if true and if not, place in the state, mask
  mov rcx, qword ptr [rbx + {STATE}]
  mov rdx, qword ptr [r12 + 40]
  mov rax, qword ptr [rcx + rdx]
  and rax, qword ptr [r12 + 48]
  je .taken
.not_taken:
  mov r12, qword ptr [r12 + 32]
  jmp .go
.jump_set:
  mov rcx, qword ptr [rbx + {STATE}]
  mov rdx, qword ptr [r12 + 40]
  mov rax, qword ptr [rcx + rdx]
  and rax, qword ptr [r12 + 48]
  je .not_taken
.taken:
  mov r12, qword ptr [r12 + 24]
  jmp .go

.activate:                             ; operands: place of the mask in the state
  mov rcx, qword ptr [rbx + {STATE}]
  mov rdx, qword ptr [r12 + 24]
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

.guard:                                ; operands: place of a mask, what inverts it, place of the lanes that run, number of the mask among what has
  call .guarded_lanes                  ; been written, and where the lanes go that are active from now on
  mov rax, rdi
  mov rdx, qword ptr [r12 + 56]
  mov dword ptr [rcx + rdx], eax
  mov rcx, qword ptr [rbx + {ALL}]
  jmp .activate_these
.branch:                               ; operands: records if all lanes that run go there and if none does; mask, inversion, lanes, number as above
  add r12, 16
  call .guarded_lanes
  sub r12, 16
  test rdi, rdi
  je .not_taken
  cmp rdi, rax
  je .taken
  jmp .python
.guarded_lanes:                        ; gives rax: lanes that run, rdi: those of them in the mask, rcx: the state. Leaves the function of who calls
  mov rcx, qword ptr [rbx + {STATE}]
  mov rdx, qword ptr [r12 + 40]
  mov eax, dword ptr [rcx + rdx]
  mov rsi, qword ptr [rbx + {WRITTEN}]
  mov rdi, qword ptr [r12 + 48]
  mov rsi, qword ptr [rsi + 8*rdi]
  not rsi
  test rsi, rax
  jne .guard_unwritten
  mov rdx, qword ptr [r12 + 24]
  mov edi, dword ptr [rcx + rdx]
  xor rdi, qword ptr [r12 + 32]
  and rdi, rax
  ret
.guard_unwritten:
  add rsp, 8
  jmp .unwritten

.written_all:                          ; operands: how many are read, how many written, their numbers: checks for all lanes
  mov rax, qword ptr [rbx + {ALL}]
  jmp .written_lanes
.written:                              ; the same for the active lanes
  mov rax, qword ptr [rbx + {ACTIVE}]
.written_lanes:
  mov rcx, qword ptr [rbx + {WRITTEN}]
  mov r8, qword ptr [r12 + 24]
  mov r9, qword ptr [r12 + 32]
  lea r10, [r12 + 40]
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

def text() -> str:
  """The assembly text of the loop and its functions."""
  abi = importlib.import_module("tinyhw.isa.x86.abi").abi()
  words: dict[str, int | str] = {name: WORD * i for i, name in enumerate(CONTEXT)}
  words |= {f"{name}_EXIT" if name in words else name: int(code) for name, code in Exit.__members__.items()}
  first = WORD * (HEAD + 1)
  words["tests"] = "\n".join(f"  cmp rax, qword ptr [r12 + {first + 16 * i}]\n  je .found{i}" for i in range(PAIRS))
  words["founds"] = "\n".join(f"""
.found{i}:
  mov qword ptr [rbx + {words["ENTERED"]}], rax
  mov qword ptr [rbx + {words["ENTRY"]}], r12
  mov rax, qword ptr [r12 + {first + 16 * i + 8}]
  mov qword ptr [rbx + {words["KNOWN"]}], rax
  mov rax, qword ptr [r12 + {WORD * HEAD}]
  sub qword ptr [rbx + {words["BUDGET"]}], rax
  ret""" for i in range(PAIRS))
  steering = TEXT.format_map(words | {
    "pushes": "\n".join(f"  push {r}" for r in abi.saved), "pops": "\n".join(f"  pop {r}" for r in reversed(abi.saved)),
    "argument0": abi.arguments[0], "frame": abi.shadow_bytes + 8 * (1 - len(abi.saved) % 2)})  # rsp is a multiple of 16 at a call
  return steering + windows.text({name: WORD * i for i, name in enumerate(CONTEXT)}, Exit.PYTHON)

@functools.cache
def level() -> str | None:
  """What the host's code is compiled for, or None if it is no x86-64 with AVX2 or pages cannot be executable."""
  if machine() not in ("x86_64", "AMD64"): return None
  try: return processor(importlib.import_module("tinyhw.isa.x86.runtime").code).arch
  except (TinyError, KeyError, OSError, AttributeError): return None

_arena = CodeArena()

class Engine:
  """The loop, ready to run. `run(address of a context)` gives an Exit; `functions` has the addresses of what stands in TEXT by name."""
  def __init__(self) -> None:
    syntax = importlib.import_module("tinyhw.isa.x86.syntax")
    function = syntax.parse_function(text())
    code, lines = importlib.import_module("tinyhw.isa.x86.encode").encode_function(function)
    offsets = {id(inst): at for at, inst in lines}
    address, self.chunk = _arena.add(code)
    self.functions: dict[str, int] = {block.name: address + offsets[id(block.insts[0])] for block in function.blocks if block.name and block.insts}
    self.run: Callable[[int], int] = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)(address)

@functools.cache
def engine() -> Engine | None:
  """The loop, or None on a host that has none."""
  return None if level() is None else Engine()

def load(code: Code) -> int:
  """Where the host may call a compiled Program; it stays there."""
  address, chunk = _arena.add(code.text)
  _kept.append(chunk)
  return address + code.entry

_kept: list[object] = []

class Records:
  """Records of one block while they are made, and their memory afterwards. Numbers are 64-bit words."""
  def __init__(self, engine: Engine):
    self.engine = engine
    self.words = array("q")
    self.address = 0
    self.addresses: list[tuple[int, int]] = []   # places of words that are to be addresses of records, and the places of those

  def add(self, functions: Sequence[int], operands: Sequence[int]) -> int:
    """Append a record; its place in words."""
    at = len(self.words)
    self.words.extend((functions[0], functions[-1], WORD * (HEAD + len(operands)), *operands))
    return at

  def steer(self, name: str, *operands: int) -> int:
    """Append a record of one of the functions of TEXT."""
    return self.add((self.engine.functions[name],), operands)

  def entry(self, instructions: int) -> int:
    """Append the entry of a block, which no state has passed yet."""
    return self.steer("entry", instructions, *[-1, -1] * PAIRS)

  def done(self) -> None:
    """Nothing more is added; the records stay where they are from now on."""
    self.address = self.words.buffer_info()[0]
    for at, place in self.addresses: self.words[at] = self.address + WORD * place

  def jump(self, at: int, target: int) -> None:
    """A record with one operand becomes a jump to an address."""
    self.words[at:at + HEAD + 1] = array("q", (self.engine.functions["jump"], self.engine.functions["jump"], WORD * (HEAD + 1), target))
