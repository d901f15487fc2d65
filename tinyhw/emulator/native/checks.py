"""Checks in assembly before translated code accesses memory or the LDS: is the access plain (windows.py)? x86-64 only.

A probe checks one address: `probe_read4` of memory, `probe_local_write2` of the LDS. There is one for reading and one
for writing 1, 2 and 4 bytes. Functions of native/access.py call them for each address of an instruction before they
move anything. An access that is not plain leaves the loop for Python, through `.slow_probe`.

In: rax, an address; rbx, the context; r15, the window that is tried first, or the LocalWindow. Out: rdx, the host
address; r15, the window that contains it. rcx and rbp are lost. A probe sets marks at once, even if a later lane's
access is not plain. Python then executes the instruction, which sets the same marks.
"""
from __future__ import annotations
from collections.abc import Iterator, Mapping
from types import SimpleNamespace

from tinyhw.emulator.memory.cache import LINE
from tinyhw.emulator.memory.windows import WINDOW_BYTES, LocalWindow, MemoryWindow
from tinyhw.named_tuple import NamedTuple

class Size(NamedTuple):
  """Accesses of `bytes` bytes. word: the assembler's word for memory of that size; ones: 1 in each byte; marks: the
  assembler's word for the marks of the bytes together; c, b: the parts of rcx and rbp that hold them."""
  bytes: int
  word: str
  ones: int
  marks: str
  c: str
  b: str

# Marks of memory have 16 bits, those of the LDS have 8
SIZES = (Size(1, "byte", 0x01, "word", "cx", "bp"), Size(2, "word", 0x0101, "dword", "ecx", "ebp"),
         Size(4, "dword", 0x01010101, "qword", "rcx", "rbp"))
LOCAL_SIZES = (Size(1, "byte", 0x01, "byte", "cl", "bpl"), Size(2, "word", 0x0101, "word", "cx", "bp"),
               Size(4, "dword", 0x01010101, "dword", "ecx", "ebp"))

def at(fields: tuple[str, ...]) -> SimpleNamespace:
  """Return the offsets of the words of a MemoryWindow or a LocalWindow, in bytes, by name."""
  return SimpleNamespace(**{name: 8 * i for i, name in enumerate(fields)})

# ***** memory *****

PROBE = """
.probe_{name}:
  cmp rax, qword ptr [r15 + {window.start}]
  jb .search_{name}
  lea rdx, [rax + {bytes}]
  cmp rdx, qword ptr [r15 + {window.end}]
  ja .search_{name}
.found_{name}:
{check}
  mov rdx, qword ptr [r15 + {window.data}]
  add rdx, rax
  ret
.search_{name}:
  mov r15, qword ptr [rbx + {TABLE}]
  mov rcx, qword ptr [r15]
  add r15, 8
.next_{name}:
  sub rcx, 1
  jb .slow_probe
  lea rdx, [rax + {bytes}]
  cmp rax, qword ptr [r15 + {window.start}]
  jb .other_{name}
  cmp rdx, qword ptr [r15 + {window.end}]
  jbe .found_{name}
.other_{name}:
  add r15, {WINDOW_BYTES}
  jmp .next_{name}
"""
def _marked(table: str, unit: str, place: str, bits: int) -> str:
  """Return code that marks bytes as read by this reader. If all bytes had the same other reader, they are marked as
  read by several (-1). In other cases Python executes the access.

  unit: memory that holds the marks of all bytes that are read; place: its address among the readers of the table; bits:
  of a byte's mark.
  """
  there, mark = f"{unit} ptr [rdx + {place}]", f"{unit} ptr [r15 + {{{table}.mark}}]"
  return f"""
  mov rdx, qword ptr [r15 + {{{table}.readers}}]
  mov {{c}}, {there}
  cmp {{c}}, {mark}
  je .marked_{{name}}
  test {{c}}, {{c}}
  je .mine_{{name}}
  mov {{b}}, {{c}}
  rol {{b}}, {bits}
  cmp {{b}}, {{c}}
  jne .slow_probe
  mov {there}, -1
  jmp .marked_{{name}}
.mine_{{name}}:
  mov {{c}}, {mark}
  mov {there}, {{c}}
.marked_{{name}}:
"""
# Check that the bytes were written, that caches hold them as memory does or can be filled, and that no other workgroup
# has written them. Mark them as read.
READ = """
  mov rdx, qword ptr [r15 + {window.written}]
  test rdx, rdx
  je .written_{name}
  cmp {word} ptr [rax + rdx], {ones}
  jne .slow_probe
.written_{name}:
  mov rdx, qword ptr [r15 + {window.held0}]
  test rdx, rdx
  je .coherent_{name}
  mov rcx, rax
  and ecx, {LAST_OF_LINE}
  cmp ecx, {last_start}
  ja .slow_probe
  mov rcx, rax
  shr rcx, 7
  cmp byte ptr [rdx + rcx], 1
  je .coherent_{name}
  ja .slow_probe
  mov rbp, qword ptr [r15 + {window.dirty}]
  movzx ebp, byte ptr [rbp + rcx]
  test ebp, ebp
  je .take_{name}
  cmp rbp, qword ptr [r15 + {window.own}]
  jne .slow_probe
.take_{name}:
  mov rbp, qword ptr [r15 + {window.held1}]
  cmp byte ptr [rbp + rcx], 1
  ja .slow_probe
  je .first_{name}
  mov rbp, qword ptr [r15 + {window.held2}]
  cmp byte ptr [rbp + rcx], 1
  ja .slow_probe
  mov byte ptr [rbp + rcx], 1
  mov rbp, qword ptr [r15 + {window.held1}]
  mov byte ptr [rbp + rcx], 1
.first_{name}:
  mov byte ptr [rdx + rcx], 1
  mov rbp, qword ptr [r15 + {window.seen}]
  mov byte ptr [rbp + rcx], 1
.coherent_{name}:
  mov rdx, qword ptr [r15 + {window.writers}]
  test rdx, rdx
  je .marked_{name}
  mov {c}, {marks} ptr [rdx + 2*rax]
  test {c}, {c}
  je .readers_{name}
  cmp {c}, {marks} ptr [r15 + {window.mark}]
  jne .slow_probe
.readers_{name}:""" + _marked("window", "{marks}", "2*rax", 16)
# Check that the bytes may be written, and that nothing else needs a check.
WRITE = """
  cmp qword ptr [r15 + {window.writable}], 0
  je .slow_probe
  cmp qword ptr [r15 + {window.held0}], 0
  jne .slow_probe
"""
# Mark the bytes as written.
MARK = """
  mov rdx, qword ptr [r15 + {window.marked}]
  test rdx, rdx
  je .marked_{name}
  mov {word} ptr [rax + rdx], {ones}
.marked_{name}:
"""

# ***** the LDS *****

LOCAL_PROBE = """
.probe_{name}:
  lea rdx, [rax + {bytes}]
  cmp rdx, qword ptr [r15 + {local.size}]
  ja .slow_probe
{rivals}
{check}
  mov rdx, qword ptr [r15 + {local.data}]
  add rdx, rax
  ret
"""
# Check that no other wave has done an access that races with this one.
RIVAL = """
  mov rdx, qword ptr [r15 + {marks_of_rival}]
  mov {c}, {word} ptr [rdx + rax]
  test {c}, {c}
  je .no_{rival}_{name}
  cmp {c}, {word} ptr [r15 + {local.mark}]
  jne .slow_probe
.no_{rival}_{name}:
"""
# Check that the bytes were written. Mark them as read: by this wave, or by several.
LOCAL_READ = """
  mov rdx, qword ptr [r15 + {local.written}]
  cmp {word} ptr [rdx + rax], {ones}
  jne .slow_probe""" + _marked("local", "{word}", "rax", 8)
# Check that no asynchronous copy will write the bytes. Mark them as written by this wave, and as initialised.
LOCAL_WRITE = """
  mov rdx, qword ptr [r15 + {local.coming}]
  cmp {word} ptr [rdx + rax], 0
  jne .slow_probe
  mov rdx, qword ptr [r15 + {local.writers}]
  mov {c}, {word} ptr [r15 + {local.mark}]
  mov {word} ptr [rdx + rax], {c}
  mov rdx, qword ptr [r15 + {local.written}]
  mov {word} ptr [rdx + rax], {ones}
"""
RIVALS = {"read": ("writers", "atomics"), "write": ("readers", "writers", "atomics")}

def text(context: Mapping[str, int]) -> str:
  """Return all probes. context: offsets of a context's words."""
  return "".join((*_probes(context["TABLE"]), *_local_probes()))

def _probes(table: int) -> Iterator[str]:
  for size in SIZES:
    for kind, check in (("read", READ), ("write", WRITE + MARK)):
      words = {**size._asdict(), "name": f"{kind}{size.bytes}", "window": at(MemoryWindow._fields), "TABLE": table,
               "WINDOW_BYTES": WINDOW_BYTES,
               "LAST_OF_LINE": LINE - 1, "last_start": LINE - size.bytes}
      yield PROBE.format_map({**words, "check": check.format_map(words)})

def _local_probes() -> Iterator[str]:
  local = at(LocalWindow.FIELDS)
  for size in LOCAL_SIZES:
    for kind, check in (("read", LOCAL_READ), ("write", LOCAL_WRITE)):
      words = {**size._asdict(), "name": f"local_{kind}{size.bytes}", "local": local}
      rivals = "".join(RIVAL.format_map({**words, "rival": rival, "marks_of_rival": getattr(local, rival)})
                       for rival in RIVALS[kind])
      yield LOCAL_PROBE.format_map({**words, "rivals": rivals, "check": check.format_map(words)})
