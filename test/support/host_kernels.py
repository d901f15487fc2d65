"""Small kernels for tests of the CPU driver: as assembly text and as C, with the same meaning, and devices that run
them."""
import functools
from collections.abc import Callable
from typing import Any

import pytest

from tinyhw import device as devices
from tinyhw.device import DeviceError
from tinyhw.drivers import clang, cpu
from tinyhw.drivers.cpu.launch import HostDevice
from tinyhw.errors import CompileError
from tinyhw.isa.arm64.asm.syntax import assemble_function as assemble_arm64
from tinyhw.isa.riscv64.asm.syntax import assemble_function as assemble_riscv64
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

# the same in assembly of RISC-V: a0 arguments, a1 first, a2 last, a3 scratch
RISCV64 = {
  "nothing": "ret",
  "add": """
    ld t0, 0(a0)
    ld t1, 8(a0)
    slli t2, a1, 3
    add t0, t0, t2
  .again:
    bge a1, a2, .done
    ld t2, 0(t0)
    add t2, t2, t1
    sd t2, 0(t0)
    addi t0, t0, 8
    addi a1, a1, 1
    j .again
  .done:
    ret""",
  "append": """
    ld t0, 0(a0)
    ld t1, 8(a0)
    li t2, 1
    amoadd.d.aqrl t2, t2, (t0)
    slli t2, t2, 3
    add t0, t0, t2
    sd t1, 8(t0)
    ret""",
  "ranges": """
    ld t0, 0(a0)
    ld t1, 8(a0)
    li t2, 1
    amoadd.d.aqrl t2, t2, (t1)
    slli t2, t2, 4
    add t0, t0, t2
    sd a1, 0(t0)
    sd a2, 8(t0)
    ret""",
  "scratch": "ld t0, 0(a0)\nslli t1, a1, 3\nadd t0, t0, t1\nsd a3, 0(t0)\nret",
  "slow": """
    ld t0, 0(a0)
    slli t2, a1, 3
    add t0, t0, t2
  .item:
    bge a1, a2, .done
    ld t1, 8(a0)
  .turn:
    pause
    addi t1, t1, -1
    bnez t1, .turn
    ld t2, 0(t0)
    addi t2, t2, 1
    sd t2, 0(t0)
    addi t0, t0, 8
    addi a1, a1, 1
    j .item
  .done:
    ret""",
}
ASSEMBLED = {"arm64": (ARM64, assemble_arm64), "riscv64": (RISCV64, assemble_riscv64)}

def code(name: str, arch: str, local_bytes: int = 0) -> Code:
  """A kernel for a device."""
  kinds, text, body = KERNELS[name]
  if arch == "c":
    source = f"#include <stdint.h>\nvoid {name}(const uint64_t *a, int64_t f, int64_t l, uint8_t *s) {{ {body} }}"
    return Code(name, arch, source.encode(), kinds, local_bytes=local_bytes)
  if arch.partition(":")[0] in ASSEMBLED:
    texts, assemble = ASSEMBLED[arch.partition(":")[0]]
    return Code(name, arch, assemble(texts[name]), kinds, local_bytes=local_bytes)
  registers = dict(zip("afls", abi.abi().arguments, strict=False))
  return Code(name, arch, assemble_function(text.format_map(registers)), kinds, local_bytes=local_bytes)

def open_cpu(threads: int) -> cpu.CPUDevice:
  try: found = cpu.processor(devices.runtime)
  except DeviceError as error: pytest.skip(error.message)
  if found.arch is None: pytest.skip("the processor lacks what the lowest level needs")
  visible, least = cpu.visible_code(devices.runtime), list(found.levels)[-1]
  return cpu.CPUDevice("CPU", least, found, cpu.machine_loop(devices.runtime, visible), threads, visible)

@functools.lru_cache(None)
def c_loop() -> Any: return clang.compile_loop(clang.find_compiler())

def open_c(threads: int) -> clang.ClangDevice:
  """C kernels, and the loop in C too."""
  try: clang.find_compiler()
  except DeviceError as error: pytest.skip(error.message)
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
