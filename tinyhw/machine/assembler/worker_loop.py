"""The worker loop of all processors that compute in registers alone (AArch64, RISC-V). isa/x86/runtime.py explains the
algorithm. Names, labels and their order are those of its text.

A line of LOOP is a label, or a statement of registers, fields and numbers. An ISA has a table (`Operations`): the form
of a statement, such as "a = b + n", and its instructions. `expand` replaces each statement by them. The order of memory
is part of the statement, so that an ISA gives each access the order that it needs, by construction:

    a = acquire F      read what another thread writes: nothing after it is read or written before it
    publish F, a       write for other threads: nothing before it is read or written after it
    increment F        both, and nothing passes it: of two threads that do so and read then, one sees the other. The
                       same holds for decrement, exchange, add to, and claim
    a = F, F = a       plain: a thread's own record, packets, and what only the caller writes, before it publishes

The claim of a chunk keeps the reads of its packet before it: who sees the claim may overwrite the packet.
"""
from __future__ import annotations
import re
from collections.abc import Collection, Mapping

from tinyhw.named_tuple import NamedTuple

# registers by what they contain. t0 to t7: any that calls of the system preserve. s0 to s9: those that functions
# preserve. argument0 to argument3: those of the calling convention
REGISTERS = {"record": "s0", "context": "s1", "deadline": "s2", "target": "s3", "bell": "s3", "source": "s4",
             "left": "s5", "mode": "s6", "look": "s7", "least": "s8", "state_at": "s9",
             "state": "t0", "serial": "t1", "chunk": "t3", "slot": "t5", "packet": "t4", "chunks": "t5", "next": "t6",
             "following": "t7"}

# ring(record, packets, count): the caller runs a batch of packets; count 0 wakes all sleepers. The record of a worker
# makes it the worker's loop.
LOOP = """
  enter
  record = argument0
  source = argument1
  left = argument2
  context = record.CONTEXT_ADDRESS
  t1 = record.WORKER
  if t1: .worker_look_afresh
  context.COMPLETED = zero
  if left: .feed
  increment context.BELL
  argument0 = & context.BELL
  call .wake_all
  goto .leave

.feed:                                            ; copy as many packets as the ring takes
  t1 = context.MASK
  t2 = t1 + 1
  t2 = least(t2, left)
  left = left - t2
  t3 = context.PUBLISHED
  t4 = context.RING
.copy:
  slot = t3 & t1
  slot = t4 + packets(slot)
  t6 = source.FUNCTION
  slot.FUNCTION = t6
  t6 = source.ARGUMENTS
  slot.ARGUMENTS = t6
  t6 = source.GRID
  slot.GRID = t6
  t6 = source.SIZE
  slot.SIZE = t6
  t6 = source.REQUIRED
  slot.REQUIRED = t6
  t7 = source.CHUNKS
  slot.CHUNKS = t7
  target = t6 + t7
  t3 = t3 + 1
  t3 = wrapped(t3)                                ; serial numbers wrap
  source = source + PACKET_BYTES
  count down t2: .copy
  context.TARGET = target
  publish context.PUBLISHED, t3

.run:
  argument0 = 1
  call .take
  if argument0 == 1: .run
  t1 = acquire context.COMPLETED
  if target == t1: .fed
  t1 = clock
  t2 = context.SPIN
  deadline = t1 + t2
.caller_spin:
  relax
  look = acquire context.BELL
  argument0 = 1
  call .take
  if argument0 == 1: .run
  t1 = acquire context.COMPLETED
  if target == t1: .fed
  t1 = clock
  if t1 < deadline: .caller_spin
  exchange context.CALLER_SLEEPS
  increment context.SLEEPERS
  t1 = acquire context.COMPLETED
  if target == t1: .caller_awake
  argument0 = & context.BELL
  argument1 = look
  argument2 = limit
  call .wait
.caller_awake:
  decrement context.SLEEPERS
  context.CALLER_SLEEPS = zero
  goto .run
.fed:
  if left: .feed
  t1 = context.TIMELINE
  t1 = t1 + 1
  context.TIMELINE = t1
.leave:
  leave

.worker_look_afresh:
  t1 = clock
  t2 = context.SPIN
  deadline = t1 + t2
.worker_look:
  bell = acquire context.BELL
  argument0 = 2                                   ; leave single chunks to whoever is awake and busy
  call .take
  if argument0 == 1: .worker_busy
  look = argument0
.worker_spin:
  relax
  t1 = acquire context.STOP
  if t1: .leave
  t1 = acquire context.BELL
  if bell != t1: .worker_look_afresh
  t1 = clock
  if t1 >= deadline: .worker_sleep
  if look: .worker_look                           ; a packet with several chunks that must not start yet: watch it too
  goto .worker_spin
.worker_busy:
  argument0 = 1
  call .take
  if argument0 == 1: .worker_busy
  goto .worker_look_afresh
.worker_sleep:
  increment context.SLEEPERS
  t1 = acquire context.STOP
  if t1: .worker_awake
  argument0 = & context.BELL
  argument1 = bell
  argument2 = 0
  call .wait
.worker_awake:
  decrement context.SLEEPERS
  t1 = 1
  record.WOKEN = t1
  goto .worker_look_afresh

; Take a chunk of the current packet if it has at least so many chunks, and run it.
; Returns 1: it ran one; 0: there is none for us; 2: there is one that must not start yet.
.take:
  enter take
  least = argument0
  state_at = & context.STATE
  state = acquire at state_at
.retry:
  serial = serial(state)
  t2 = record.DONE
  if not t2: .count_done
  t3 = record.SERIAL
  if serial != t3: .count                         ; no more of the packet that we worked on
.count_done:
  t2 = acquire context.PUBLISHED
  if serial == t2: .none
  chunk = chunk(state)
  t4 = context.MASK
  t4 = serial & t4
  t5 = context.RING
  packet = t5 + packets(t4)                       ; if it is reused while we look, the claim fails
  chunks = packet.CHUNKS
  if chunks < least: .none
  t6 = packet.REQUIRED
  t7 = acquire context.COMPLETED
  if t6 > t7: .early
  next = state
  following = chunk + 1
  if following < chunks: .claim
  next = last_chunk(next)                         ; the last one: on to the next packet
.claim:
  next = next + 1
  claim at state_at, state, next                  ; continues at .claimed, or at .retry with the state that it found
.claimed:
  record.SERIAL = serial
  if chunks > 1: .announce
.execute:
  t1 = packet.SIZE
  argument1 = chunk * t1                          ; first work item
  argument2 = argument1 + t1                      ; after the last one
  t2 = packet.GRID
  if argument1 >= t2 signed: .complete
  argument2 = least_signed(argument2, t2)
  argument0 = packet.ARGUMENTS
  t1 = packet.FUNCTION
  argument3 = record.SCRATCH
  call t1
.complete:
  t1 = record.DONE
  t1 = t1 + 1
  record.DONE = t1
  argument0 = 1
  leave take
.none:
  argument0 = 0
  leave take
.early:
  argument0 = 2
  leave take
.count:
  t2 = context.TARGET                             ; read before our chunks count: after that the next batch may begin
  t3 = record.DONE
  record.DONE = zero
  t4 = add to context.COMPLETED, t3
  if t4 != t2: .count_done
  t4 = acquire context.CALLER_SLEEPS
  if not t4: .count_done
  increment context.BELL
  argument0 = & context.BELL
  call .wake_all
  state = acquire at state_at
  goto .retry
.announce:                                        ; several chunks
  if chunk: .not_first
  increment context.BELL
  goto .wake_others
.not_first:
  t2 = record.WOKEN
  if not t2: .execute
.wake_others:
  record.WOKEN = zero
  if following >= chunks: .execute
  t2 = acquire context.SLEEPERS
  if not t2: .execute
  save packet, chunk
  argument0 = & context.BELL
  call .wake_some
  restore packet, chunk
  goto .execute

; wait(address, expected, timeout in ns or 0): returns when woken, on a signal, or at once if the word differs.
; wake_some(address) wakes one or two, wake_all(address) all.
.wait:
  enter wait argument2                            ; with a struct timespec in the frame
  argument3 = 0
  if not argument2: .forever
  argument3 = timespec
.forever:
  argument2 = argument1
  argument1 = FUTEX_WAIT_PRIVATE
  system FUTEX
  leave wait
.wake_some:
  argument2 = 2
  goto .wake
.wake_all:
  argument2 = everyone
.wake:
  argument1 = FUTEX_WAKE_PRIVATE
  system FUTEX
  return
"""

class Operations(NamedTuple):
  """How an ISA does the statements.

  registers: "t0" to "t7", "s0" to "s9", "argument0" to "argument3", "zero". forms: the form of a statement -> lines.
  In them {a}, {b}, {c} are its registers and {L} is its label. {n} is a number or a field's offset, {base} the field's
  register. {k} is a number that no other statement has.
  """
  registers: Mapping[str, str]
  forms: Mapping[str, str]

TOKEN = re.compile(r"\.\w+|(\w+)\.([A-Z_]+)|\w+|[^\w\s]+")

def form_of(statement: str, operations: Operations, words: Mapping[str, int],
            short: Collection[str]) -> tuple[str, dict[str, str]]:
  """The form of a statement, and what stands in it. A field is F, one of 4 bytes (`short`) W, a number n, a label L."""
  registers = {**operations.registers, **{name: operations.registers[place] for name, place in REGISTERS.items()}}
  form, found, letters = [], dict[str, str](), iter("abc")
  tokens = list(TOKEN.finditer(statement))
  for k, token in enumerate(tokens):
    text = token[0]
    called = k + 1 < len(tokens) and tokens[k + 1][0] == "("
    if text[0] == ".":
      form.append("L")
      found["L"] = text
    elif token[2]:
      form.append("W" if token[2] in short else "F")
      found |= {"base": registers[token[1]], "n": str(words[token[2]])}
    elif text in registers and not called:
      form.append(next(letters))
      found[form[-1]] = registers[text]
    elif text.isdigit() or text in words:
      form.append("n")
      found["n"] = text if text.isdigit() else str(words[text])
    else: form.append(text)
  return re.sub(r" ?([(),:]) ?", lambda m: {"(": "(", ")": ")", ",": ", ", ":": ": "}[m[1]], " ".join(form)), found

def expand(operations: Operations, words: Mapping[str, int], short: Collection[str], text: str = LOOP) -> str:
  """The loop as assembly text. words: offsets of fields, and numbers. short: fields of 4 bytes."""
  lines = []
  for k, line in enumerate(text.split("\n")):
    statement = line.split(";")[0].strip()
    if not statement or statement.endswith(":"):
      lines.append(line)
      continue
    form, found = form_of(statement, operations, words, short)
    assert form in operations.forms, f"no instructions for {statement!r}, whose form is {form!r}"
    lines += [f"  {one}" for one in operations.forms[form].format(**found, k=k, **words).split("\n") if one]
  return "\n".join(lines)
