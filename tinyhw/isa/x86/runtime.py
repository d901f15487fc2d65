"""Machine code for the CPU driver itself, as text for this repository's assembler: the worker loop, and the CPUID call.

`code(name)` returns "ring", "submit" or "cpuid" as Code. Its bytes are stored in autogen/x86_runtime.py, so that a
process that finds its kernels in the cache need not load the assembler. build_runtime.py writes that file. A text that
differs from the stored one is assembled again. Offsets and sizes that the loop shares with the driver are in
autogen/cpu_ring.py.

Operation of the ring: A batch is a list of packets. A packet is a kernel, its arguments and a grid cut into chunks. One
word, STATE, holds the serial number of the current packet and its next chunk. A thread takes a chunk by
compare-and-exchange of STATE. So a thread that slept through a whole batch fails and looks again: no other claim could
be stale.

The thread that takes a packet's last chunk moves STATE to the next packet. The chunks of a packet may start once
COMPLETED (chunks done in this batch) reaches the packet's REQUIRED, the chunks of all earlier packets. So a thread only
waits for chunks that another thread has taken. A thread adds its finished chunks to COMPLETED when it finds no more of
that packet. A line that another core wrote last costs 100 ns and more, so threads write shared lines seldom.

The calling thread works like any other, and returns when all chunks are done. A small batch stays in it: one exchange
and one addition a packet. An idle worker spins on BELL alone, a line that small kernels never touch; then it sleeps on
it. The thread that takes the first of several chunks of a packet rings the bell and wakes two sleepers. Each of them
wakes two more when it takes its first chunk, as long as chunks are left.

Sleeper: SLEEPERS += 1, then wait if BELL has not changed since the last look. Ringer: BELL += 1, then wake if SLEEPERS.
Both are locked instructions, so one of the two sees the other. The caller's sleep has a time limit besides, so that
even a descheduled ringer only costs time.
"""
from __future__ import annotations
import importlib
import sys
import zlib

from tinyhw.autogen import cpu_ring, x86_runtime
from tinyhw.errors import DeviceError
from tinyhw.isa.x86 import abi
from tinyhw.machine.ir.code import Code
from tinyhw.threads import once

CALLER_SLEEP_NS = 2_000_000
MXCSR_DEFAULT = 0x1f80  # all exceptions masked, round to nearest, denormals kept (Intel SDM volume 1, 10.2.3)

# ring(record, packets, count): the caller runs a batch of `count` packets; count = 0 wakes all sleepers. A worker's
# record makes it the worker loop.
# Registers: rbx: context, rbp: record, r12: deadline, r13: target (caller) or bell (worker), r14: packets (caller),
# r15: packets left (caller).
# Frame: [rsp + {shadow}] the thread's MXCSR, + 4 the default one, + 8 bell (caller) or the result of the last look
# (worker).
RING = """
{pushes}
  sub rsp, {frame}
  stmxcsr dword ptr [rsp + {shadow}]
  mov dword ptr [rsp + {shadow} + 4], {MXCSR_DEFAULT}
  ldmxcsr dword ptr [rsp + {shadow} + 4]
  mov rbp, {argument0}
  mov r14, {argument1}
  mov r15, {argument2}
  mov rbx, qword ptr [rbp + {CONTEXT_ADDRESS}]
  cmp qword ptr [rbp + {WORKER}], 0
  jne .worker_look_afresh
  mov qword ptr [rbx + {COMPLETED}], 0
  test r15, r15
  jne .feed
  lock inc dword ptr [rbx + {BELL}]
  lea {argument0}, [rbx + {BELL}]
  call .wake_all
  jmp .leave

.feed:                                            ; copy as many packets as the ring takes
  mov rcx, qword ptr [rbx + {MASK}]
  add rcx, 1
  cmp rcx, r15
  cmova rcx, r15
  sub r15, rcx
  mov r8, qword ptr [rbx + {PUBLISHED}]
  mov r10, qword ptr [rbx + {RING}]
.copy:
  mov rax, r8
  and rax, qword ptr [rbx + {MASK}]
  shl rax, {PACKET_SHIFT}
  add rax, r10
  mov rdx, qword ptr [r14 + {FUNCTION}]
  mov qword ptr [rax + {FUNCTION}], rdx
  mov rdx, qword ptr [r14 + {ARGUMENTS}]
  mov qword ptr [rax + {ARGUMENTS}], rdx
  mov rdx, qword ptr [r14 + {GRID}]
  mov qword ptr [rax + {GRID}], rdx
  mov rdx, qword ptr [r14 + {SIZE}]
  mov qword ptr [rax + {SIZE}], rdx
  mov rdx, qword ptr [r14 + {REQUIRED}]
  mov qword ptr [rax + {REQUIRED}], rdx
  mov rdx, qword ptr [r14 + {CHUNKS}]
  mov qword ptr [rax + {CHUNKS}], rdx
  add r8, 1
  shl r8, {CHUNK_BITS}                            ; serial numbers wrap
  shr r8, {CHUNK_BITS}
  add r14, {PACKET_BYTES}
  sub rcx, 1
  jne .copy
  add rdx, qword ptr [r14 + {REQUIRED} - {PACKET_BYTES}]
  mov r13, rdx
  mov qword ptr [rbx + {TARGET}], r13
  mov qword ptr [rbx + {PUBLISHED}], r8

.run:
  mov r9d, 1
  call .take
  cmp eax, 1
  je .run
  cmp r13, qword ptr [rbx + {COMPLETED}]
  je .fed
  rdtsc
  shl rdx, 32
  or rax, rdx
  add rax, qword ptr [rbx + {SPIN}]
  mov r12, rax
.caller_spin:
  pause
  mov eax, dword ptr [rbx + {BELL}]
  mov dword ptr [rsp + {shadow} + 8], eax
  mov r9d, 1
  call .take
  cmp eax, 1
  je .run
  cmp r13, qword ptr [rbx + {COMPLETED}]
  je .fed
  rdtsc
  shl rdx, 32
  or rax, rdx
  cmp rax, r12
  jb .caller_spin
  mov eax, 1
  xchg dword ptr [rbx + {CALLER_SLEEPS}], eax
  lock inc dword ptr [rbx + {SLEEPERS}]
  cmp r13, qword ptr [rbx + {COMPLETED}]
  je .caller_awake
  lea {argument0}, [rbx + {BELL}]
  mov {argument1d}, dword ptr [rsp + {shadow} + 8]
  mov {argument2d}, {CALLER_SLEEP_NS}
  call .wait
.caller_awake:
  lock dec dword ptr [rbx + {SLEEPERS}]
  mov dword ptr [rbx + {CALLER_SLEEPS}], 0
  jmp .run
.fed:
  test r15, r15
  jne .feed
  add qword ptr [rbx + {TIMELINE}], 1
.leave:
  ldmxcsr dword ptr [rsp + {shadow}]
  xor eax, eax
  add rsp, {frame}
{pops}
  ret

.worker_look_afresh:
  rdtsc
  shl rdx, 32
  or rax, rdx
  add rax, qword ptr [rbx + {SPIN}]
  mov r12, rax
.worker_look:
  mov r13d, dword ptr [rbx + {BELL}]
  mov r9d, 2                                      ; leave single chunks to whoever is awake and busy
  call .take
  cmp eax, 1
  je .worker_busy
  mov dword ptr [rsp + {shadow} + 8], eax
.worker_spin:
  pause
  cmp dword ptr [rbx + {STOP}], 0
  jne .leave
  cmp r13d, dword ptr [rbx + {BELL}]
  jne .worker_look_afresh
  rdtsc
  shl rdx, 32
  or rax, rdx
  cmp rax, r12
  jae .worker_sleep
  cmp dword ptr [rsp + {shadow} + 8], 0           ; a packet with several chunks that must not start yet: watch it too
  jne .worker_look
  jmp .worker_spin
.worker_busy:
  mov r9d, 1
  call .take
  cmp eax, 1
  je .worker_busy
  jmp .worker_look_afresh
.worker_sleep:
  lock inc dword ptr [rbx + {SLEEPERS}]
  cmp dword ptr [rbx + {STOP}], 0
  jne .worker_awake
  lea {argument0}, [rbx + {BELL}]
  mov {argument1d}, r13d
  xor {argument2d}, {argument2d}
  call .wait
.worker_awake:
  lock dec dword ptr [rbx + {SLEEPERS}]
  mov qword ptr [rbp + {WOKEN}], 1
  jmp .worker_look_afresh

; Take a chunk of the current packet if it has at least r9 chunks, and run it.
; eax: 1 ran one; 0 there is none for us; 2 there is one that must not start yet.
.take:
  sub rsp, {take_frame}
  mov rax, qword ptr [rbx + {STATE}]
.retry:
  mov rcx, rax
  shr rcx, {CHUNK_BITS}
  cmp qword ptr [rbp + {DONE}], 0
  je .count_done
  cmp rcx, qword ptr [rbp + {SERIAL}]
  jne .count                                      ; no more of the packet that we worked on
.count_done:
  cmp rcx, qword ptr [rbx + {PUBLISHED}]
  je .none
  mov edx, eax
  and edx, {CHUNK_MASK}                           ; the chunk
  mov r10, rcx
  and r10, qword ptr [rbx + {MASK}]
  shl r10, {PACKET_SHIFT}
  add r10, qword ptr [rbx + {RING}]               ; the packet; if it is reused while we look, the exchange fails
  mov rcx, qword ptr [r10 + {CHUNKS}]
  cmp rcx, r9
  jb .none
  mov r8, qword ptr [r10 + {REQUIRED}]
  cmp r8, qword ptr [rbx + {COMPLETED}]
  ja .early
  mov r8, rax
  lea r11, [rdx + 1]
  cmp r11, rcx
  jb .exchange
  or r8, {CHUNK_MASK}                             ; the last one: on to the next packet
.exchange:
  add r8, 1
  lock cmpxchg qword ptr [rbx + {STATE}], r8
  jne .retry
  shr rax, {CHUNK_BITS}
  mov qword ptr [rbp + {SERIAL}], rax
  cmp rcx, 1
  ja .announce
.execute:                                         ; r10: packet, rdx: chunk
  mov rax, qword ptr [r10 + {SIZE}]
  mov r11, rdx
  imul r11, rax                                   ; first work item
  add rax, r11                                    ; behind the last one
  mov r8, qword ptr [r10 + {GRID}]
  cmp r11, r8
  jge .complete
  cmp rax, r8
  cmovg rax, r8
  mov {argument0}, qword ptr [r10 + {ARGUMENTS}]
  mov r10, qword ptr [r10 + {FUNCTION}]
  mov {argument1}, r11
  mov {argument2}, rax
  mov {argument3}, qword ptr [rbp + {SCRATCH}]
  call r10
.complete:
  add qword ptr [rbp + {DONE}], 1
  mov eax, 1
  add rsp, {take_frame}
  ret
.none:
  xor eax, eax
  add rsp, {take_frame}
  ret
.early:
  mov eax, 2
  add rsp, {take_frame}
  ret
.count:
  mov r10, qword ptr [rbx + {TARGET}]             ; read before our chunks count: after that the next batch may begin
  mov r8, qword ptr [rbp + {DONE}]
  mov rdx, r8
  mov qword ptr [rbp + {DONE}], 0
  lock xadd qword ptr [rbx + {COMPLETED}], r8
  add r8, rdx
  cmp r8, r10
  jne .count_done
  cmp dword ptr [rbx + {CALLER_SLEEPS}], 0
  je .count_done
  mov qword ptr [rsp + {shadow}], r9
  lock inc dword ptr [rbx + {BELL}]
  lea {argument0}, [rbx + {BELL}]
  call .wake_all
  mov r9, qword ptr [rsp + {shadow}]
  mov rax, qword ptr [rbx + {STATE}]
  jmp .retry
.announce:                                        ; several chunks
  test edx, edx
  jne .not_first
  lock inc dword ptr [rbx + {BELL}]
  jmp .wake_others
.not_first:
  cmp qword ptr [rbp + {WOKEN}], 0
  je .execute
.wake_others:
  mov qword ptr [rbp + {WOKEN}], 0
  cmp r11, rcx
  jae .execute
  cmp dword ptr [rbx + {SLEEPERS}], 0
  je .execute
  mov qword ptr [rsp + {shadow}], r10
  mov qword ptr [rsp + {shadow} + 8], rdx
  lea {argument0}, [rbx + {BELL}]
  call .wake_some
  mov r10, qword ptr [rsp + {shadow}]
  mov rdx, qword ptr [rsp + {shadow} + 8]
  jmp .execute
"""

# wait(address, expected, timeout in ns or 0): returns when woken, on a signal, or at once if the word differs.
# wake_some(address) wakes one or two, wake_all(address) all.
WAIT = {
  "futex": """
.wait:                                            ; rdi, esi, edx
  sub rsp, 24
  mov qword ptr [rsp], 0                          ; struct timespec
  mov qword ptr [rsp + 8], rdx
  xor r10d, r10d
  test rdx, rdx
  je .forever
  mov r10, rsp
.forever:
  mov edx, esi
  mov esi, {FUTEX_WAIT_PRIVATE}
  mov eax, {FUTEX}
  syscall
  add rsp, 24
  ret
.wake_some:
  mov edx, 2
  jmp .wake
.wake_all:
  mov edx, 0x7fffffff
.wake:
  mov esi, {FUTEX_WAKE_PRIVATE}
  mov eax, {FUTEX}
  syscall
  ret
""",
  # __ulock_wait(operation, address, value, timeout in us), __ulock_wake(operation, address, 0)
  "ulock": """
.wait:                                            ; rdi, esi, edx
  sub rsp, 8
  mov ecx, edx
  shr ecx, 10                                     ; about a microsecond each
  mov edx, esi
  mov rsi, rdi
  mov edi, {ULOCK_WAIT}
  call qword ptr [rbx + {OS_WAIT}]
  add rsp, 8
  ret
.wake_some:
  mov rsi, rdi
  mov edi, {ULOCK_WAKE_ONE}
  jmp .wake
.wake_all:
  mov rsi, rdi
  mov edi, {ULOCK_WAKE_ALL}
.wake:
  sub rsp, 8
  xor edx, edx
  call qword ptr [rbx + {OS_WAKE_ONE}]
  add rsp, 8
  ret
""",
  # WaitOnAddress(address, address of the expected value, 4, timeout in ms), WakeByAddressSingle(address),
  # WakeByAddressAll(address)
  "address": """
.wait:                                            ; rcx, edx, r8d
  sub rsp, 56
  mov dword ptr [rsp + 40], edx
  lea rdx, [rsp + 40]
  mov r9d, -1                                     ; for ever
  test r8d, r8d
  je .forever
  shr r8d, 20                                     ; about a millisecond each
  mov r9d, r8d
.forever:
  mov r8d, 4
  call qword ptr [rbx + {OS_WAIT}]
  add rsp, 56
  ret
.wake_some:
  sub rsp, 40
  call qword ptr [rbx + {OS_WAKE_ONE}]
  add rsp, 40
  ret
.wake_all:
  sub rsp, 40
  call qword ptr [rbx + {OS_WAKE_ALL}]
  add rsp, 40
  ret
""",
}

# cpuid(leaf, subleaf, out): eax, ebx, ecx, edx to out[0..3]. With leaf 0xffffffff: XCR0 to out[0..1] (only if CPUID
# reports OSXSAVE).
CPUID = """
  push rbx
  mov r9, {argument2}
  mov eax, {argument0d}
  mov ecx, {argument1d}
  cmp eax, -1
  je .extended
  cpuid
  mov dword ptr [r9], eax
  mov dword ptr [r9 + 4], ebx
  mov dword ptr [r9 + 8], ecx
  mov dword ptr [r9 + 12], edx
  pop rbx
  ret
.extended:
  xor ecx, ecx
  xgetbv
  mov dword ptr [r9], eax
  mov dword ptr [r9 + 4], edx
  pop rbx
  ret
"""

# submit(): run the batch of the caller's record. Python calls a function without arguments several times faster than
# one with three.
SUBMIT = """
  mov {argument0}, {RECORD_MARK}
  mov {argument1}, qword ptr [{argument0} + {BATCH}]
  mov {argument2}, qword ptr [{argument0} + {COUNT}]
  mov rax, {ENTRY_MARK}
  jmp rax
"""

_LOW = {"rdi": "edi", "rsi": "esi", "rdx": "edx", "rcx": "ecx", "r8": "r8d", "r9": "r9d"}

def text(name: str, platform: str = "linux") -> str:
  """The assembly text of "ring", "submit" or "cpuid" for a platform.

  A line is an instruction, a `.label:`, or empty; `;` comments.
  """
  convention = abi.abi(platform)
  words: dict[str, int | str] = {**cpu_ring.PACKET, **cpu_ring.CONTEXT, **cpu_ring.RECORD, **cpu_ring.MARKS}
  for i, register in enumerate(convention.arguments[:4]):
    words |= {f"argument{i}": register, f"argument{i}d": _LOW[register]}
  words |= {
    "PACKET_BYTES": cpu_ring.PACKET_BYTES, "PACKET_SHIFT": cpu_ring.PACKET_BYTES.bit_length() - 1,
    "CHUNK_BITS": cpu_ring.CHUNK_BITS,
    "CHUNK_MASK": cpu_ring.MAX_CHUNKS, "MXCSR_DEFAULT": MXCSR_DEFAULT, "CALLER_SLEEP_NS": CALLER_SLEEP_NS,
    "FUTEX": abi.FUTEX, "FUTEX_WAIT_PRIVATE": abi.FUTEX_WAIT_PRIVATE, "FUTEX_WAKE_PRIVATE": abi.FUTEX_WAKE_PRIVATE,
    "ULOCK_WAIT": abi.UL_COMPARE_AND_WAIT | abi.ULF_NO_ERRNO,
    "ULOCK_WAKE_ONE": abi.UL_COMPARE_AND_WAIT | abi.ULF_NO_ERRNO,
    "ULOCK_WAKE_ALL": abi.UL_COMPARE_AND_WAIT | abi.ULF_NO_ERRNO | abi.ULF_WAKE_ALL,
    "pushes": "\n".join(f"  push {r}" for r in convention.saved),
    "pops": "\n".join(f"  pop {r}" for r in reversed(convention.saved)),
    # both frames make rsp a multiple of 16: above the first are the return address and an even number of registers,
    # above the second an address
    "shadow": convention.shadow_bytes, "frame": convention.shadow_bytes + 24,
    "take_frame": convention.shadow_bytes + 24,
  }
  texts = {"cpuid": CPUID, "submit": SUBMIT, "ring": RING + WAIT[abi.system(platform).wait]}
  return texts[name].format_map(words)

def assemble(name: str, platform: str) -> bytes:
  """The bytes of a function. Stored bytes are used if they came from this text; otherwise the assembler is loaded."""
  source = text(name, platform)
  crc, kept = x86_runtime.CODE.get((name, platform), (0, ""))
  if crc == zlib.crc32(source.encode()): return bytes.fromhex(kept)
  assembled: bytes = importlib.import_module("tinyhw.isa.x86.asm.syntax").assemble_function(source)
  return assembled

@once
def code(name: str) -> Code:
  """"ring", "submit" or "cpuid" as machine code for this system.

  Raises DeviceError for systems without a known way to wait.
  """
  if sys.platform not in abi.SYSTEMS:
    raise DeviceError(f"tinyhw does not know how threads wait on {sys.platform}; use DEV=CLANG or DEV=PYTHON")
  return Code(name, "x86_64", assemble(name, sys.platform), ())
