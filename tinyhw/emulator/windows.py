"""Memory as translated code reaches it: windows onto pieces of it, and the functions of records that load and store through them. x86-64 only.

A `Windows` has a few windows: addresses, where the host has them, and what must be looked at with each access. That is: which bytes something has
written; whether the nearest caches hold a line just as memory has it (bytes 1, 0 for a line that a cache has not, 2 for one of which it has an older
copy; `held` of one to three caches), or could take it in (`dirty`: 0, or the number of the only cache with writes to the line; `seen` becomes 1 for
lines that any cache holds); and which workgroup of a dispatch has read and written each byte (marks of 16 bits). An access that is not plain in all
of these, or outside of all windows, leaves the loop before anything has changed; Python adds a window then, or executes the instruction.

A function first finds all places of its lanes, then moves the data. The same with an instruction's LDS addresses, for which there is one `Local`.
"""
from __future__ import annotations
import struct
from array import array
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tinyhw.drivers.cpu.memory import address_of

LINE = 128
MOST = 12        # windows of a table
SEVERAL = 0xFFFF # the mark of a byte that several workgroups have read

class Window(NamedTuple):
  """Addresses start..end. Each other number is added to an address, or to twice (marks) or a LINE-th (held, dirty, seen) of it, and gives a place of
  the host; 0: nothing is to be looked at, or (marked, like written, but for writes) noted. own: the number in `dirty` that is no hindrance. mark:
  that of the workgroup, four times. writable: 0 or 1."""
  start: int
  end: int
  data: int
  written: int = 0
  marked: int = 0
  writable: int = 0
  held0: int = 0
  held1: int = 0
  held2: int = 0
  seen: int = 0
  dirty: int = 0
  own: int = 0
  readers: int = 0
  writers: int = 0
  mark: int = 0

WINDOW_BYTES = 8 * len(Window._fields)

class Windows:
  """A table of windows: the word at its start is how many there are."""
  def __init__(self) -> None:
    self.words = array("q", bytes(8 + MOST * WINDOW_BYTES))
    self.address = self.words.buffer_info()[0]
    self.count = self.next = 0

  def add(self, window: Window) -> bool:
    """One more, if there is none from the same address; where there are too many, in place of the oldest. Whether it was added."""
    if window.start in self.words[1:1 + self.count * len(Window._fields):len(Window._fields)]: return False
    at = 1 + self.next % MOST * len(Window._fields)
    self.words[at:at + len(window)] = array("q", [n - (1 << 64) if n >= 1 << 63 else n for n in window])
    self.next += 1
    self.words[0] = self.count = min(self.next, MOST)
    return True

  def clear(self) -> None:
    """There are none."""
    if not self.count: return
    self.words[:] = array("q", bytes(8 * len(self.words)))
    self.count = self.next = 0

KINDS = {"read": 0, "write": 1}
NOTES, NOTE_BYTES = 64, 32 + 4 * 64   # the last accesses that are remembered

class Local:
  """The LDS of a workgroup for one wave, as lds.py has it: places of its bytes, of what has been written, of who has read, written, changed each, and
  of what comes later. What the wave's instructions access is noted: kind, size, how many, and at 32 the addresses of the lanes."""
  FIELDS = ("data", "written", "readers", "writers", "atomics", "coming", "size", "mark", "notes", "noted")

  def __init__(self, places: Sequence[int], size: int, mark: int):
    self.notes = bytearray(NOTES * NOTE_BYTES if size else 0)
    self.words = array("q", (*places, size, mark * 0x01010101, address_of(self.notes) if size else 0, 0))
    self.address, self.taken = self.words.buffer_info()[0], 0

  def noted(self, last: int) -> Iterator[list[tuple[int, int, int]]]:
    """(address, size, kind) of the accesses of each instruction since the last call; nothing but of the `last` ones, of NOTES at most."""
    number = self.words[-1]
    for i in range(self.taken, number):
      if number - i > last: yield []
      else:
        kind, size, count, *_ = note = struct.unpack_from("<72I", self.notes, i % NOTES * NOTE_BYTES)
        yield [(address, size, kind) for address in note[8:8 + count]]
    self.taken = number

NOWHERE = Local((0,) * 6, 0, 0)

# The places of lanes that an instruction touches stand in the context. Operands of the loads and stores of vectors: place of the addresses' low row,
# distance of the high row or 0, place of a scalar base or -1, offset, place of the first row of data, distance of the next ones, how many, and bits
# that are 0 in all addresses of plain accesses.
VECTOR = """
.{name}:
  mov rsi, qword ptr [rbx + {STATE}]
  mov r8, qword ptr [rbx + {ACTIVE}]
  test r8, r8
  je .done_{name}
  mov r10, qword ptr [r12 + 48]
  mov rcx, qword ptr [r12 + 40]
  test rcx, rcx
  js .no_base_{name}
  add r10, qword ptr [rsi + rcx]
.no_base_{name}:
  mov rdi, qword ptr [r12 + 24]
  add rdi, rsi
  mov r14, qword ptr [r12 + 32]
  lea r9, [rbx + {PLACES}]
{reach}
.lane_{name}:
  tzcnt rcx, r8
  mov eax, dword ptr [rdi + 4*rcx]
  test r14, r14
  je .narrow_{name}
  lea rdx, [rdi + r14]
  mov edx, dword ptr [rdx + 4*rcx]
  shl rdx, 32
  or rax, rdx
.narrow_{name}:
  add rax, r10
  test qword ptr [r12 + 80], rax
  jne .slow
  mov r11, qword ptr [r12 + 72]
.word_{name}:
  call .probe_{probe}
  mov qword ptr [r9], rdx
  add r9, 8
  add rax, {step}
  sub r11, 1
  jne .word_{name}
  blsr r8, r8
  jne .lane_{name}
  mov r8, qword ptr [rbx + {ACTIVE}]
  lea r9, [rbx + {PLACES}]
{note}
  mov rdi, qword ptr [r12 + 56]
  add rdi, rsi
  mov r14, qword ptr [r12 + 64]
.move_lane_{name}:
  tzcnt rcx, r8
  lea rsi, [rdi + 4*rcx]
  mov r11, qword ptr [r12 + 72]
.move_{name}:
  mov rdx, qword ptr [r9]
  add r9, 8
{move}
  add rsi, r14
  sub r11, 1
  jne .move_{name}
  blsr r8, r8
  jne .move_lane_{name}
.done_{name}:
  ret
"""
WINDOWED = """
  mov r15, qword ptr [rbx + {VECTOR_WINDOWS}]
  mov qword ptr [rbx + {TABLE}], r15
  add r15, 8
"""
REACHED = "  mov r15, qword ptr [rbx + {LOCAL}]"
NOTE = """
  mov rax, qword ptr [r15 + {noted}]
  and eax, {LAST_NOTE}
  imul rax, rax, {NOTE_BYTES}
  add rax, qword ptr [r15 + {notes}]
  add qword ptr [r15 + {noted}], 1
  mov r11, qword ptr [r12 + 72]
  mov dword ptr [rax], {kind}
  imul rcx, r11, {step}
  mov dword ptr [rax + 4], ecx
  popcnt rcx, r8
  mov dword ptr [rax + 8], ecx
  add rax, 32
.note_{name}:
  mov rdx, qword ptr [r9]
  sub rdx, qword ptr [r15 + {data}]
  mov dword ptr [rax], edx
  add rax, 4
  lea r9, [r9 + 8*r11]
  sub rcx, 1
  jne .note_{name}
  lea r9, [rbx + {PLACES}]
"""
# Operands of the loads of scalars: place of the base, of an offset in a register or -1, offset, place of the result, how many words
SCALAR = """
.load_scalar:
  mov rsi, qword ptr [rbx + {STATE}]
  mov rcx, qword ptr [r12 + 24]
  mov rax, qword ptr [rsi + rcx]
  add rax, qword ptr [r12 + 40]
  mov rcx, qword ptr [r12 + 32]
  test rcx, rcx
  js .no_register
  mov edx, dword ptr [rsi + rcx]
  add rax, rdx
.no_register:
  test rax, 3
  jne .slow
  mov r11, qword ptr [r12 + 56]
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
  mov r11, qword ptr [r12 + 56]
  lea r9, [rbx + {PLACES}]
  mov rdi, qword ptr [r12 + 48]
  add rdi, rsi
.scalar_move:
  mov edx, dword ptr [r9]
  mov dword ptr [rdi], edx
  add r9, 4
  add rdi, 4
  sub r11, 1
  jne .scalar_move
  ret
.slow:                                 ; from a function
  mov eax, {PYTHON}
  jmp .leave
.slow_probe:                           ; from a function that it calls
  mov qword ptr [rbx + {FAILED}], rax
  add rsp, 8
  jmp .slow
"""
# rax: an address, r15: the window that is tried first. rdx: the place; or leaves the function. rcx, rbp are lost, r15 is the window.
PROBE = """
.probe_{name}:
  cmp rax, qword ptr [r15 + {start}]
  jb .search_{name}
  lea rdx, [rax + {size}]
  cmp rdx, qword ptr [r15 + {end}]
  ja .search_{name}
.found_{name}:
{check}
  mov rdx, qword ptr [r15 + {data}]
  add rdx, rax
  ret
.search_{name}:
  mov r15, qword ptr [rbx + {table}]
  mov rcx, qword ptr [r15]
  add r15, 8
.next_{name}:
  sub rcx, 1
  jb .slow_probe
  lea rdx, [rax + {size}]
  cmp rax, qword ptr [r15 + {start}]
  jb .other_{name}
  cmp rdx, qword ptr [r15 + {end}]
  jbe .found_{name}
.other_{name}:
  add r15, {WINDOW_BYTES}
  jmp .next_{name}
"""
# The same for the LDS; r15 is a Local.
LOCAL_PROBE = """
.probe_{name}:
  lea rdx, [rax + {bytes}]
  cmp rdx, qword ptr [r15 + {size}]
  ja .slow_probe
{rivals}
{check}
  mov rdx, qword ptr [r15 + {data}]
  add rdx, rax
  ret
"""
RIVAL = """
  mov rdx, qword ptr [r15 + {{{rival}}}]
  mov {{c}}, {{word}} ptr [rdx + rax]
  test {{c}}, {{c}}
  je .no_{rival}_{{name}}
  cmp {{c}}, {{word}} ptr [r15 + {{mark}}]
  jne .slow_probe
.no_{rival}_{{name}}:
"""
LOCAL_READ = """
  mov rdx, qword ptr [r15 + {written}]
  cmp {word} ptr [rdx + rax], {ones}
  jne .slow_probe
  mov rdx, qword ptr [r15 + {readers}]
  mov {c}, {word} ptr [rdx + rax]
  cmp {c}, {word} ptr [r15 + {mark}]
  je .marked_{name}
  test {c}, {c}
  je .mine_{name}
  mov {b}, {c}
  rol {b}, 8
  cmp {b}, {c}
  jne .slow_probe
  mov {word} ptr [rdx + rax], -1
  jmp .marked_{name}
.mine_{name}:
  mov {c}, {word} ptr [r15 + {mark}]
  mov {word} ptr [rdx + rax], {c}
.marked_{name}:
"""
LOCAL_WRITE = """
  mov rdx, qword ptr [r15 + {coming}]
  cmp {word} ptr [rdx + rax], 0
  jne .slow_probe
  mov rdx, qword ptr [r15 + {writers}]
  mov {c}, {word} ptr [r15 + {mark}]
  mov {word} ptr [rdx + rax], {c}
  mov rdx, qword ptr [r15 + {written}]
  mov {word} ptr [rdx + rax], {ones}
"""
RIVALS = {"read": ("writers", "atomics"), "write": ("readers", "writers", "atomics")}
LOCAL_SIZES = {1: ("byte", 0x01, "cl", "bpl"), 2: ("word", 0x0101, "cx", "bp"), 4: ("dword", 0x01010101, "ecx", "ebp")}
READ = """
  mov rdx, qword ptr [r15 + {written}]
  test rdx, rdx
  je .written_{name}
  cmp {word} ptr [rax + rdx], {ones}
  jne .slow_probe
.written_{name}:
  mov rdx, qword ptr [r15 + {held0}]
  test rdx, rdx
  je .coherent_{name}
  mov rcx, rax
  and ecx, {last}
  cmp ecx, {limit}
  ja .slow_probe
  mov rcx, rax
  shr rcx, 7
  cmp byte ptr [rdx + rcx], 1
  je .coherent_{name}
  ja .slow_probe
  mov rbp, qword ptr [r15 + {dirty}]
  movzx ebp, byte ptr [rbp + rcx]
  test ebp, ebp
  je .take_{name}
  cmp rbp, qword ptr [r15 + {own}]
  jne .slow_probe
.take_{name}:
  mov rbp, qword ptr [r15 + {held1}]
  cmp byte ptr [rbp + rcx], 1
  ja .slow_probe
  je .first_{name}
  mov rbp, qword ptr [r15 + {held2}]
  cmp byte ptr [rbp + rcx], 1
  ja .slow_probe
  mov byte ptr [rbp + rcx], 1
  mov rbp, qword ptr [r15 + {held1}]
  mov byte ptr [rbp + rcx], 1
.first_{name}:
  mov byte ptr [rdx + rcx], 1
  mov rbp, qword ptr [r15 + {seen}]
  mov byte ptr [rbp + rcx], 1
.coherent_{name}:
  mov rdx, qword ptr [r15 + {writers}]
  test rdx, rdx
  je .ordered_{name}
  mov {c}, {marks} ptr [rdx + 2*rax]
  test {c}, {c}
  je .readers_{name}
  cmp {c}, {marks} ptr [r15 + {mark}]
  jne .slow_probe
.readers_{name}:
  mov rdx, qword ptr [r15 + {readers}]
  mov {c}, {marks} ptr [rdx + 2*rax]
  cmp {c}, {marks} ptr [r15 + {mark}]
  je .ordered_{name}
  test {c}, {c}
  je .mine_{name}
  mov {b}, {c}
  rol {b}, 16
  cmp {b}, {c}
  jne .slow_probe
  mov {marks} ptr [rdx + 2*rax], -1
  jmp .ordered_{name}
.mine_{name}:
  mov {c}, {marks} ptr [r15 + {mark}]
  mov {marks} ptr [rdx + 2*rax], {c}
.ordered_{name}:
"""
WRITE = """
  cmp qword ptr [r15 + {writable}], 0
  je .slow_probe
  cmp qword ptr [r15 + {held0}], 0
  jne .slow_probe
"""
MARK = """
  mov rdx, qword ptr [r15 + {marked}]
  test rdx, rdx
  je .marked_{name}
  mov {word} ptr [rax + rdx], {ones}
.marked_{name}:
"""
SIZES = {1: ("byte", 0x01, "word", "cx", "bp"), 2: ("word", 0x0101, "dword", "ecx", "ebp"), 4: ("dword", 0x01010101, "qword", "rcx", "rbp")}
MOVES = {
  "load1": "  movzx eax, byte ptr [rdx]\n  mov dword ptr [rsi], eax", "load1s": "  movsx eax, byte ptr [rdx]\n  mov dword ptr [rsi], eax",
  "load2": "  movzx eax, word ptr [rdx]\n  mov dword ptr [rsi], eax", "load2s": "  movsx eax, word ptr [rdx]\n  mov dword ptr [rsi], eax",
  "load2low": "  movzx eax, word ptr [rdx]\n  mov word ptr [rsi], ax", "load2high": "  movzx eax, word ptr [rdx]\n  mov word ptr [rsi + 2], ax",
  "load4": "  mov eax, dword ptr [rdx]\n  mov dword ptr [rsi], eax",
  "store1": "  mov eax, dword ptr [rsi]\n  mov byte ptr [rdx], al", "store2": "  mov eax, dword ptr [rsi]\n  mov word ptr [rdx], ax",
  "store2high": "  movzx eax, word ptr [rsi + 2]\n  mov word ptr [rdx], ax", "store4": "  mov eax, dword ptr [rsi]\n  mov dword ptr [rdx], eax"}

def text(context: dict[str, int], python: int) -> str:
  """The functions, for contexts with words at these places. python: what leaves the loop for Python."""
  parts = [SCALAR.format_map(context | {"PYTHON": python})]
  local: dict[str, object] = {name: 8 * i for i, name in enumerate(Local.FIELDS)}
  for name, move in MOVES.items():
    kind, size = "read" if name.startswith("load") else "write", int(next(c for c in name if c.isdigit()))
    words: dict[str, object] = {**context, "name": name, "probe": f"{kind}{size}", "step": size, "move": move, "note": ""}
    parts.append(VECTOR.format_map({**words, "reach": WINDOWED.format_map(words)}))
    words |= {**local, "name": f"local_{name}", "probe": f"local_{kind}{size}", "kind": KINDS[kind], "LAST_NOTE": NOTES - 1, "NOTE_BYTES": NOTE_BYTES}
    parts.append(VECTOR.format_map({**words, "reach": REACHED.format_map(words), "note": NOTE.format_map(words)}))
  return "".join((*parts, *_probes(context["TABLE"]), *_local_probes(local)))

def _probes(table: int) -> Iterator[str]:
  for size, (word, ones, marks, c, b) in SIZES.items():
    for kind, check in (("read", READ), ("write", WRITE + MARK)):
      words: dict[str, object] = {name: 8 * i for i, name in enumerate(Window._fields)}
      words |= {"name": f"{kind}{size}", "size": size, "word": word, "ones": ones, "marks": marks, "c": c, "b": b, "last": LINE - 1,
                "limit": LINE - size, "table": table, "WINDOW_BYTES": WINDOW_BYTES}
      yield PROBE.format_map(words | {"check": check.format_map(words)})

def _local_probes(local: dict[str, object]) -> Iterator[str]:
  for size, (word, ones, c, b) in LOCAL_SIZES.items():
    for kind, check in (("read", LOCAL_READ), ("write", LOCAL_WRITE)):
      words = {**local, "name": f"local_{kind}{size}", "bytes": size, "word": word, "ones": ones, "c": c, "b": b}
      rivals = "".join(RIVAL.format(rival=rival).format_map(words) for rival in RIVALS[kind])
      yield LOCAL_PROBE.format_map({**words, "rivals": rivals, "check": check.format_map(words)})
