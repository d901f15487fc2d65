"""Loads and stores that translated code does itself: the functions of their records, in assembly. x86-64 only.

A function first finds the host addresses of all lanes with probes (native/checks.py), and keeps them in the context.
Then it moves the data. So an access that is not plain for one lane has moved nothing. `load4` accesses memory,
`local_load4` the LDS, and `load_scalar` fills scalar registers. Operands are those of records.VectorAccess and
ScalarAccess.
"""
from __future__ import annotations
from collections.abc import Mapping

from tinyhw.emulator.memory.lds import READ, WRITE
from tinyhw.emulator.memory.windows import NOTE_BYTES, NOTE_HEAD, NOTES, LocalWindow
from tinyhw.emulator.native import checks as window_checks
from tinyhw.emulator.native.records import offsets

# rsi: the state, r10: the value that is added to addresses. All addresses are found before data move
VECTOR = """
.{name}:
  mov rsi, qword ptr [rbx + {STATE}]
  cmp qword ptr [rbx + {ACTIVE}], 0
  je .done_{name}
  mov r10, qword ptr [r12 + {vector.offset}]
  mov rcx, qword ptr [r12 + {vector.base}]
  test rcx, rcx
  js .no_base_{name}
  add r10, qword ptr [rsi + rcx]
.no_base_{name}:
  mov rdi, qword ptr [r12 + {vector.addresses}]
  add rdi, rsi
  mov r14, qword ptr [r12 + {vector.high}]
{reach}
{find}
{note}
  mov rdi, qword ptr [r12 + {vector.data}]
  add rdi, rsi
  mov r14, qword ptr [r12 + {vector.row}]
{move}
.done_{name}:
  ret
"""
# A loop over lanes, and in it a loop over the words of a lane. rcx: the lane, r8: lanes that are left, r9: where the
# context has the word's address, r11: words that are left
LANES = """
  mov r8, qword ptr [rbx + {ACTIVE}]
  lea r9, [rbx + {PLACES}]
.{loop}_lane_{name}:
  tzcnt rcx, r8
{lane}
  mov r11, qword ptr [r12 + {vector.words}]
.{loop}_word_{name}:
{word}
  add r9, 8
  sub r11, 1
  jne .{loop}_word_{name}
  blsr r8, r8
  jne .{loop}_lane_{name}
"""
# rax: the lane's address
FIND_LANE = """
  mov eax, dword ptr [rdi + 4*rcx]
  test r14, r14
  je .narrow_{name}
  lea rdx, [rdi + r14]
  mov edx, dword ptr [rdx + 4*rcx]
  shl rdx, 32
  or rax, rdx
.narrow_{name}:
  add rax, r10
  test qword ptr [r12 + {vector.unaligned}], rax
  jne .slow
"""
FIND_WORD = """
  call .probe_{probe}
  mov qword ptr [r9], rdx
  add rax, {step}
"""
# rsi: the lane's element of a row
MOVE_LANE = "  lea rsi, [rdi + 4*rcx]"
MOVE_WORD = """
  mov rdx, qword ptr [r9]
{one}
  add rsi, r14
"""
# r15 for the probes: the first window of the table, which becomes the current table
WINDOWED = """
  mov r15, qword ptr [rbx + {VECTOR_WINDOWS}]
  mov qword ptr [rbx + {TABLE}], r15
  add r15, 8
"""
REACHED = "  mov r15, qword ptr [rbx + {LOCAL}]"
# Record the wave's access of the LDS: its kind, size and addresses
NOTE = """
  lea r9, [rbx + {PLACES}]
  mov rax, qword ptr [r15 + {local.noted}]
  and eax, {LAST_NOTE}
  imul rax, rax, {NOTE_BYTES}
  add rax, qword ptr [r15 + {local.notes}]
  add qword ptr [r15 + {local.noted}], 1
  mov r11, qword ptr [r12 + {vector.words}]
  mov dword ptr [rax], {kind}
  imul rcx, r11, {step}
  mov dword ptr [rax + 4], ecx
  popcnt rcx, qword ptr [rbx + {ACTIVE}]
  mov dword ptr [rax + 8], ecx
  add rax, {NOTE_HEAD}
.note_{name}:
  mov rdx, qword ptr [r9]
  sub rdx, qword ptr [r15 + {local.data}]
  mov dword ptr [rax], edx
  add rax, 4
  lea r9, [r9 + 8*r11]
  sub rcx, 1
  jne .note_{name}
"""
SCALAR = """
.load_scalar:
  mov rsi, qword ptr [rbx + {STATE}]
  mov rcx, qword ptr [r12 + {scalar.base}]
  mov rax, qword ptr [rsi + rcx]
  add rax, qword ptr [r12 + {scalar.offset}]
  mov rcx, qword ptr [r12 + {scalar.register}]
  test rcx, rcx
  js .no_register
  mov edx, dword ptr [rsi + rcx]
  add rax, rdx
.no_register:
  test rax, 3
  jne .slow
  mov r11, qword ptr [r12 + {scalar.words}]
  lea r9, [rbx + {PLACES}]
  mov r15, qword ptr [rbx + {SCALAR_WINDOWS}]
  mov qword ptr [rbx + {TABLE}], r15
  add r15, 8
.scalar_word:
  call .probe_read4
  mov edx, dword ptr [rdx]
  mov dword ptr [r9], edx
  add r9, 4
  add rax, 4
  sub r11, 1
  jne .scalar_word
  mov r11, qword ptr [r12 + {scalar.words}]
  lea r9, [rbx + {PLACES}]
  mov rdi, qword ptr [r12 + {scalar.data}]
  add rdi, rsi
.scalar_move:
  mov edx, dword ptr [r9]
  mov dword ptr [rdi], edx
  add r9, 4
  add rdi, 4
  sub r11, 1
  jne .scalar_move
  ret
"""
# Nothing has changed: Python executes the instruction
SLOW = """\
.slow:                                 ; from a function
  mov eax, {PYTHON}
  jmp .leave
.slow_probe:                           ; from a function that it calls
  mov qword ptr [rbx + {FAILED}], rax
  add rsp, 8
  jmp .slow
"""
# For one lane: rdx: the address, rsi: its element of a row
MOVES = {
  "load1": "  movzx eax, byte ptr [rdx]\n  mov dword ptr [rsi], eax", "load1s": "  movsx eax, byte ptr [rdx]\n  mov "
  "dword ptr [rsi], eax",
  "load2": "  movzx eax, word ptr [rdx]\n  mov dword ptr [rsi], eax", "load2s": "  movsx eax, word ptr [rdx]\n  mov "
  "dword ptr [rsi], eax",
  "load2low": "  movzx eax, word ptr [rdx]\n  mov word ptr [rsi], ax", "load2high": "  movzx eax, word ptr [rdx]\n  "
  "mov word ptr [rsi + 2], ax",
  "load4": "  mov eax, dword ptr [rdx]\n  mov dword ptr [rsi], eax",
  "store1": "  mov eax, dword ptr [rsi]\n  mov byte ptr [rdx], al", "store2": "  mov eax, dword ptr [rsi]\n  mov word "
  "ptr [rdx], ax",
  "store2high": "  movzx eax, word ptr [rsi + 2]\n  mov word ptr [rdx], ax", "store4": "  mov eax, dword ptr [rsi]\n  "
  "mov dword ptr [rdx], eax"}

def text(context: Mapping[str, int], python: int) -> str:
  """Return the text of the functions. context: offsets of a context's words. python: the exit to Python."""
  operands = {"vector": offsets("vector"), "scalar": offsets("scalar")}
  parts = [(SCALAR + SLOW).format_map({**context, **operands, "PYTHON": python})]
  for name, one in MOVES.items():
    kind, size = "read" if name.startswith("load") else "write", int(next(c for c in name if c.isdigit()))
    words: dict[str, object] = {**context, **operands, "name": name, "probe": f"{kind}{size}", "step": size, "one": one}
    parts.append(_vector(words, WINDOWED, ""))
    words |= {"name": f"local_{name}", "probe": f"local_{kind}{size}", "local": window_checks.at(LocalWindow.FIELDS),
              "kind": READ if kind == "read" else WRITE, "LAST_NOTE": NOTES - 1, "NOTE_HEAD": NOTE_HEAD,
              "NOTE_BYTES": NOTE_BYTES}
    parts.append(_vector(words, REACHED, NOTE))
  return "".join((*parts, window_checks.text(context)))

def _vector(words: Mapping[str, object], reach: str, note: str) -> str:
  """Return the function of one size. reach: how addresses are found; note: how the access is recorded."""
  def loop(name: str, lane: str, word: str) -> str:
    return LANES.format_map({**words, "loop": name, "lane": lane.format_map(words), "word": word.format_map(words)})
  return VECTOR.format_map({**words, "reach": reach.format_map(words), "note": note.format_map(words),
                            "find": loop("find", FIND_LANE, FIND_WORD), "move": loop("move", MOVE_LANE, MOVE_WORD)})
