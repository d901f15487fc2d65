"""The memory that the CPU device's worker loop and its driver share: a packet, the context, a thread's record.

Source: this repository, written by hand. Readers: tinyhw/isa/x86/runtime.py (the loop in machine code),
drivers/cpu/loop.py (the loop in C) and drivers/cpu/workers.py (Python). Offsets are in bytes. Every field is 8 bytes
long unless another size is given. Fields that different threads write at the same time lie in different 64-byte lines.
"""
from __future__ import annotations

PACKET_BYTES = 64
PACKET = {
  "FUNCTION": 0,     # address of the kernel; kernel(arguments, first, last, scratch)
  "ARGUMENTS": 8,    # address of its 8-byte slots
  "GRID": 16,        # number of work items
  "SIZE": 24,        # work items of one chunk
  "CHUNKS": 32,      # at least 1; chunks that begin past the grid are skipped
  # chunks of this batch that belong to earlier packets: all are complete before the first one of this packet starts
  "REQUIRED": 40,
}

CONTEXT_BYTES = 512
CONTEXT = {
  # written before the threads start
  "RING": 0x00,           # address of the first packet
  "MASK": 0x08,           # packets in the ring, a power of two, minus 1
  "SPIN": 0x10,           # how long to spin before sleeping, in ticks of the time stamp counter
  "OS_WAIT": 0x18,        # macOS, Windows: address of the system's function
  "OS_WAKE_ONE": 0x20,
  "OS_WAKE_ALL": 0x28,
  "STOP": 0x30,           # 4 bytes; 1 tells the workers to return
  # written by the caller, once a batch
  "PUBLISHED": 0x40,      # serial number (SERIAL_BITS wide) after the last packet
  "TARGET": 0x48,         # value of COMPLETED when all published chunks are done
  "TIMELINE": 0x50,       # batches completed
  # in one line, because a thread that writes one has just written, or is about to write, the other
  "STATE": 0x80,          # serial number of the current packet << CHUNK_BITS | its next chunk
  "COMPLETED": 0x88,      # chunks of this batch that are complete
  # 4 bytes; changes when a packet with several chunks starts, or all must wake; sleepers wait on it
  "BELL": 0x100,
  "SLEEPERS": 0x104,      # 4 bytes; threads that wait on BELL, or are about to
  "CALLER_SLEEPS": 0x108, # 4 bytes; the caller waits on BELL
}
WORDS = ("STOP", "BELL", "SLEEPERS", "CALLER_SLEEPS")   # the fields of 4 bytes
CHUNK_BITS, SERIAL_BITS = 24, 40
MAX_CHUNKS = (1 << CHUNK_BITS) - 1

RECORD_BYTES = 64
RECORD = {
  "CONTEXT_ADDRESS": 0,
  "SCRATCH": 8,      # this thread's scratch memory
  "WORKER": 16,      # 0: the calling thread; 1: a worker, which returns when STOP is set
  "DONE": 24,        # chunks that this thread has done and not yet added to COMPLETED, all of one packet
  "SERIAL": 32,      # the serial number of that packet
  "WOKEN": 56,       # 1: this thread slept and has not taken a chunk since
  # of the calling thread only: the arguments of "submit"
  "BATCH": 40,       # address of the first packet
  "COUNT": 48,       # number of packets
}

# Placeholders in the machine code of "submit" for addresses that the driver inserts.
MARKS = {"RECORD_MARK": 0x5EC0_4D00_0000_0001, "ENTRY_MARK": 0x5EC0_4D00_0000_0002}
