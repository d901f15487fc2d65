"""Small kernels for tests of the CPU driver: as assembly text and as C, with the same meaning, and devices that run
them."""
import functools
import shutil
from collections.abc import Callable
from typing import Any

import pytest

from tinyhw import device as devices
from tinyhw.config import CC
from tinyhw.device import DeviceError
from tinyhw.drivers import clang, cpu
from tinyhw.drivers.cpu.launch import HostDevice
from tinyhw.errors import CompileError
from tinyhw.isa.arm64.asm.syntax import assemble_function as assemble_arm64
from tinyhw.isa.x86 import abi
from tinyhw.isa.x86.asm.syntax import assemble_function
from tinyhw.machine.ir.code import Code

# name -> kinds of arguments, assembly with {a} arguments, {f} first, {l} last, {s} scratch, and C where a is arguments,
# f, l, s
KERNELS: dict[str, tuple[tuple[str, ...], str, str]] = {
  "nothing": ((), "ret", ""),
  # p[i] += v for each work item
  "add": (("buffer", "int64"), """
    mov r10, qword ptr [{a}]
    mov r11, qword ptr [{a} + 8]
  .again:
    cmp {f}, {l}
    jge .done
    add qword ptr [r10 + {f}*8], r11
    add {f}, 1
    jmp .again
  .done:
    ret""", "for (int64_t *p = (int64_t *)a[0]; f < l; f++) p[f] += (int64_t)a[1];"),
  # log[++log[0]] = v, whatever the thread
  "append": (("buffer", "int64"), """
    mov r10, qword ptr [{a}]
    mov r11, qword ptr [{a} + 8]
    mov eax, 1
    lock xadd qword ptr [r10], rax
    mov qword ptr [r10 + rax*8 + 8], r11
    ret""", "int64_t *p = (int64_t *)a[0]; p[1 + __atomic_fetch_add(p, 1, __ATOMIC_SEQ_CST)] = (int64_t)a[1];"),
  # p[2*c], p[2*c+1] = first, last of each chunk; c from a counter
  "ranges": (("buffer", "buffer"), """
    mov r10, qword ptr [{a}]
    mov r11, qword ptr [{a} + 8]
    mov eax, 1
    lock xadd qword ptr [r11], rax
    shl rax, 4
    mov qword ptr [r10 + rax], {f}
    mov qword ptr [r10 + rax + 8], {l}
    ret""", "int64_t *p = (int64_t *)a[0], c = __atomic_fetch_add((int64_t *)a[1], 1, __ATOMIC_SEQ_CST); "
             "p[2 * c] = f; p[2 * c + 1] = l;"),
  # p[first] = scratch
  "scratch": (("buffer",), """
    mov r10, qword ptr [{a}]
    mov qword ptr [r10 + {f}*8], {s}
    ret""", "((uint8_t **)a[0])[f] = s;"),
  # n turns for each work item, then p[i] += 1
  "slow": (("buffer", "int64"), """
    mov r10, qword ptr [{a}]
  .item:
    cmp {f}, {l}
    jge .done
    mov r11, qword ptr [{a} + 8]
  .turn:
    pause
    sub r11, 1
    jne .turn
    add qword ptr [r10 + {f}*8], 1
    add {f}, 1
    jmp .item
  .done:
    ret""", "for (; f < l; f++) { for (volatile int64_t n = (int64_t)a[1]; n; n--) {} ((int64_t *)a[0])[f]++; }"),
}

COUNTED = """
  .count:
    ldaxr x12, [{0}]
    add x11, x12, #1
    stlxr w13, x11, [{0}]
    cbnz w13, .count"""   # x12: a number that another thread has not, from a counter
# the same in assembly of AArch64: x0 arguments, x1 first, x2 last, x3 scratch
ARM64 = {
  "nothing": "ret",
  "add": """
    ldr x9, [x0]
    ldr x10, [x0, #8]
  .again:
    cmp x1, x2
    b.ge .done
    ldr x11, [x9, x1, lsl #3]
    add x11, x11, x10
    str x11, [x9, x1, lsl #3]
    add x1, x1, #1
    b .again
  .done:
    ret""",
  "append": "ldr x9, [x0]\nldr x10, [x0, #8]" + COUNTED.format("x9") + "\nadd x9, x9, x12, lsl #3\nstr x10, [x9, "
                                                                      "#8]\nret",
  "ranges": "ldr x9, [x0]\nldr x10, [x0, #8]" + COUNTED.format("x10") + "\nadd x9, x9, x12, lsl #4\nstp x1, x2, "
                                                                       "[x9]\nret",
  "scratch": "ldr x9, [x0]\nstr x3, [x9, x1, lsl #3]\nret",
  "slow": """
    ldr x9, [x0]
  .item:
    cmp x1, x2
    b.ge .done
    ldr x10, [x0, #8]
  .turn:
    yield
    subs x10, x10, #1
    b.ne .turn
    ldr x11, [x9, x1, lsl #3]
    add x11, x11, #1
    str x11, [x9, x1, lsl #3]
    add x1, x1, #1
    b .item
  .done:
    ret""",
}

def code(name: str, arch: str, local_bytes: int = 0) -> Code:
  """A kernel for a device."""
  kinds, text, body = KERNELS[name]
  if arch == "c":
    source = f"#include <stdint.h>\nvoid {name}(const uint64_t *a, int64_t f, int64_t l, uint8_t *s) {{ {body} }}"
    return Code(name, arch, source.encode(), kinds, local_bytes=local_bytes)
  if arch.startswith("arm64"):
    return Code(name, arch, assemble_arm64(ARM64[name]), kinds, local_bytes=local_bytes)
  registers = dict(zip("afls", abi.abi().arguments, strict=False))
  return Code(name, arch, assemble_function(text.format_map(registers)), kinds, local_bytes=local_bytes)

def open_cpu(threads: int) -> cpu.CPUDevice:
  try: found = cpu.processor(devices.runtime)
  except DeviceError as error: pytest.skip(error.message)
  if found.arch is None: pytest.skip("the processor lacks AVX2 or AdvSIMD")
  visible, least = cpu.visible_code(devices.runtime), list(found.levels)[-1]
  return cpu.CPUDevice("CPU", least, found, cpu.machine_loop(devices.runtime, visible), threads, visible)

@functools.lru_cache(None)
def c_loop() -> Any: return clang.compile_loop(clang.find_compiler())

def open_c(threads: int) -> clang.ClangDevice:
  """C kernels, and the loop in C too."""
  if not CC.value and not any(map(shutil.which, clang.COMPILERS)): pytest.skip("no C compiler")
  try: return clang.ClangDevice("CLANG", clang.find_compiler(), c_loop(), threads)
  except CompileError as error: pytest.skip(f"the C compiler does not work: {error.message}")

OPENERS: dict[str, Callable[[int], HostDevice]] = {"machine": open_cpu, "c": open_c}

class Loaded:
  """A device with kernels by name and buffers of int64."""
  def __init__(self, device: HostDevice):
    self.device = device
    self.programs: dict[str, Any] = {}

  def __getitem__(self, name: str) -> Any:
    if name not in self.programs: self.programs[name] = self.device.load(code(name, self.device.arch))
    return self.programs[name]

  def zeros(self, count: int) -> Any:
    memory = self.device.allocator.alloc(8 * count)
    memory.view[:] = bytes(memory.size)
    return memory

def values(memory: Any, count: int) -> list[int]:
  return memory.view[:8 * count].cast("q").tolist()  # type: ignore[no-any-return]
