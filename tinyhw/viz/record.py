"""The recorder of VIZ=1 and PROFILE=1: the `trace.Recorder` to which compiler and engine report.

VIZ: each schedule and each kernel becomes a member of an archive (archive.py) as soon as it is made. So its graphs are
freed, and the archive's limit bounds memory. Launches, copies, memory and the phases of the compiler become events
(trace.events). VIZ's timeline and PROFILE's trace are written from them when the program ends. Each thread makes one
thing at a time (`Making`).

Reported times exclude the recorder's own work, but the program waits for it. A fault of the recorder never reaches the
program (`guarded`).
"""
from __future__ import annotations
import atexit
import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import wraps
from types import FrameType
from typing import Any, Concatenate, ParamSpec

from tinyhw import trace
from tinyhw.codegen.render.pseudo import render as pseudo_code
from tinyhw.config import PROFILE, PROFILE_FILE, VIZ, VIZ_FILE, Context
from tinyhw.device import Buffer, Device
from tinyhw.engine.run.compile import Runner, kernel_name
from tinyhw.engine.run.show import expressions, number
from tinyhw.engine.schedule.lower import Kernel
from tinyhw.errors import TinyError
from tinyhw.files.cache import recorded
from tinyhw.files.regular import write_atomically
from tinyhw.files.storage import cache_dir
from tinyhw.helpers import GlobalCounters
from tinyhw.machine.ir.code import Code
from tinyhw.machine.ir.inst import Function
from tinyhw.machine.ir.show import show as show_function
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp
from tinyhw.uop.program import Program
from tinyhw.uop.text import show, type_name
from tinyhw.viz import archive
from tinyhw.viz.graph import NodeTable
from tinyhw.viz.rules import Rules

MOST_REWRITES = 3000        # rewrites of one step; more are counted, not kept
MOST_CHARACTERS = 1 << 20   # characters of one text
TEXT_ARCHS = ("c", "python")  # architectures whose Code is source text

def cut(text: str) -> str:
  return (text if len(text) <= MOST_CHARACTERS else f"{text[:MOST_CHARACTERS]}\n… {len(text) - MOST_CHARACTERS} more "
          f"characters")

class Making:
  """A schedule or kernel that a thread is making. keeps: VIZ is set, so graphs are kept; otherwise only times."""
  def __init__(self, kind: str, name: str, node: Any, device: str, keeps: bool):
    self.kind, self.name, self.node, self.device, self.keeps = kind, name, node, device, keeps
    self.table = NodeTable(shapes=kind == "schedule")
    self.rules = Rules()
    self.steps: list[dict[str, Any]] = []
    self.rewrites: list[tuple[int, UOp, UOp]] = []
    self.more = 0  # rewrites beyond MOST_REWRITES
    self.line = trace.caller()
    self.start_ns = self.mark_ns = time.perf_counter_ns()

  def add_rewrite(self, rule: Any, before: UOp, after: UOp) -> None:
    if len(self.rewrites) < MOST_REWRITES: self.rewrites.append((self.rules.number(rule), before, after))
    else: self.more += 1

  def step(self, name: str, made: Any, because: str, ns: int) -> None:
    """Keep the state after a step, and the rewrites since the previous step."""
    table, shown = self.table, self.shown(made)
    kept = [(rule, table.add(before, True), table.add(after, True)) for rule, before, after in self.rewrites]
    self.steps.append({"name": name, "because": because, "ns": ns, "rewrites": [r for r in kept if min(r) >= 0],
                       "more": self.more, **shown})
    self.rewrites, self.more = [], 0

  def ns(self) -> int: return sum(step["ns"] for step in self.steps)

  def shown(self, made: Any) -> dict[str, Any]:
    """Return the result of a step, as text and roots of a graph."""
    table = self.table
    if isinstance(made, UOp):
      return {"roots": table.add_all([made]), "text": cut(expressions(made)), "language": "expressions"}
    if isinstance(made, Program):
      roots = table.add_all(made.uops)
      used = {s for n in roots for s in table.rows[n][2]}
      return {"roots": [n for n in dict.fromkeys(roots) if n not in used], "text": cut(show(made)), "language": "uops"}
    if isinstance(made, Function): return {"text": cut(show_function(made)), "language": "machine"}
    if isinstance(made, list) and all(isinstance(k, Kernel) for k in made):
      return {"text": cut("\n\n".join(map(kernel_text, made))), "language": "expressions"}
    if isinstance(made, list): return {"roots": table.add_all(made)}
    realized = getattr(made, "realized", None)
    if realized is not None: return {"roots": table.add_all(made.roots), "marked": table.add_all(realized)}
    return {}

def device_text(device: str | tuple[str, ...] | None) -> str:
  """Format a device, or several. None, for kernels of constants alone, is the default device."""
  if device is None: return Device.DEFAULT
  return device if isinstance(device, str) else ", ".join(device)

def kernel_text(kernel: Kernel) -> str:
  """Format a kernel of a schedule: its name and its expressions."""
  if kernel.sink.op is Ops.COPY: return f"copy to {device_text(kernel.buffers[0].arg[1])}"
  return f"{kernel_name(kernel.sink)}\n{expressions(kernel.sink)}"

class ThreadRecord(threading.local):
  """The state of a thread. making: the thing that it makes now. last: the number of the kernel that it made last, -1
  after loading."""
  making: Making | None = None
  last = -1

P = ParamSpec("P")

def guarded(method: Callable[Concatenate[RunRecorder, P], None]) -> Callable[Concatenate[RunRecorder, P], None]:
  """Decorate a method that the program calls, so that its exceptions do not end the program."""
  @wraps(method)
  def call(self: RunRecorder, /, *args: P.args, **kwargs: P.kwargs) -> None:
    try: method(self, *args, **kwargs)
    # Any exception: the program must continue.
    except Exception as error: self.failed(error)  # noqa: BLE001
  return call

def fault_text(error: Exception) -> str:
  """Describe a fault of the recorder and its line."""
  frame = error.__traceback__
  while frame is not None and frame.tb_next is not None: frame = frame.tb_next
  place = "?" if frame is None else trace.show((frame.tb_frame.f_code.co_filename, frame.tb_lineno,
                                                frame.tb_frame.f_code.co_name))
  return f"tinyhw: the recorder of VIZ and PROFILE failed: {type(error).__name__}: {error} ({place})"

class RunRecorder:
  """See trace.Recorder. kernels and schedules: the rows of the index. shows: at the end a recording may be shown, not
  only written.

  faults: the number of failures of the recorder itself. A failure loses the record of the thing that the thread was
  making.
  """
  def __init__(self, shows: bool = True) -> None:
    self.shows, self.faults = shows, 0
    self.thread = ThreadRecord()
    self.lock = threading.Lock()
    self.writer = archive.ArchiveWriter()
    self.kernels: list[dict[str, Any]] = []
    self.schedules: list[dict[str, Any]] = []
    self.runners: dict[int, tuple[Runner, int]] = {}    # id of a loaded program -> its runner, and the kernel's number
    self.scheduled: dict[UOp, list[dict[str, Any]]] = {}    # a kernel's expression -> its rows in schedules
    self.started = time.time()
    self.start_ns = time.perf_counter_ns()
    self.wanted = {"VIZ": False, "PROFILE": False}      # settings at any time of the run

  def failed(self, error: Exception) -> None:
    """Report the first fault, and drop the record in progress of this thread."""
    self.thread.making = None
    self.faults += 1
    if self.faults > 1: return
    sys.stderr.write(f"{fault_text(error)}; the program goes on, and the recording lacks what was told then. This is "
                     f"a fault of tinyhw, not yours.\n")

  # ***** making *****

  @guarded
  def begin(self, kind: str, name: str, node: Any, device: str = "") -> None:
    self._abandon()
    if not self.times(): return
    making = Making(kind, name, node, device, bool(VIZ))
    if making.keeps:
      if isinstance(node, tuple): making.step("graph", list(node), "what was expressed, with buffers taken out", 0)
      else: making.step("kernel", node, "as the schedule made it", 0)
    self.thread.making = making     # set last: the recorder's own work is no part of it
    making.start_ns = making.mark_ns = time.perf_counter_ns()

  @guarded
  def passed(self, name: str, made: Any, because: str = "") -> None:
    making, now = self.thread.making, time.perf_counter_ns()
    if making is None: return
    trace.event(name, trace.host_lane(), making.mark_ns, now, of=making.name or making.kind)
    if making.keeps: self.quietly(lambda: making.step(name, made, because, now - making.mark_ns))
    making.mark_ns = time.perf_counter_ns()

  def quietly(self, work: Callable[[], None]) -> None:
    """Do the recorder's own work on graphs. Rules that fire for it are no part of the pass."""
    making, self.thread.making = self.thread.making, None
    try: work()
    finally: self.thread.making = making

  @guarded
  def rewrite(self, rule: Callable[..., Any], before: Any, after: Any) -> None:
    making = self.thread.making
    if making is not None and making.keeps: making.add_rewrite(rule, before, after)

  @guarded
  def became(self, before: Any, after: Any, frame: FrameType) -> None:
    making = self.thread.making
    if making is None or not making.keeps or before is after: return
    alike = (before.op is after.op and before.dtype is after.dtype and before.arg == after.arg
             and before.tag == after.tag)
    told = making.rewrites and making.rewrites[-1][1:] == (before, after)   # the rule has reported it
    if not told and (not alike or len(before.src) != len(after.src)): making.add_rewrite(frame.f_code, before, after)

  def _abandon(self) -> None:
    """Keep the record of an unfinished thing as failed, with the steps so far."""
    making, self.thread.making = self.thread.making, None
    if making is None or not making.keeps: return
    if making.kind == "kernel": self._add_kernel(making, {}, failed=True)

  @guarded
  def done(self, *made: Any) -> None:
    making, self.thread.making = self.thread.making, None
    if making is None: return
    now = time.perf_counter_ns()
    if making.kind == "kernel":
      trace.event("encode", trace.host_lane(), making.mark_ns, now, of=making.name)
      trace.event(f"compile {making.name}", trace.host_lane(), making.start_ns, now, device=making.device)
      if making.keeps: self._kernel_done(making, *made)
      else: self.thread.last = -1
    else:
      trace.event("schedule", trace.host_lane(), making.start_ns, now, kernels=len(made[1].kernels))
      if making.keeps: self._schedule_done(making, *made)

  def _kernel_done(self, making: Making, program: Program, code: Code, listing: str) -> None:
    source = bytes(code.text).decode("utf-8", "replace") if code.arch in TEXT_ARCHS else ""
    self._add_kernel(making, {"pseudo": cut(pseudo_code(program)), "listing": cut(listing), "source": cut(source),
                              "arch": code.arch,
                              "bytes": len(code.text), "opts": [str(o) for o in program.opts],
                              "local_bytes": program.local_bytes,
                              "grid": str(program.grid) if isinstance(program.grid, int) else program.grid.render()})

  def _add_kernel(self, making: Making, more: dict[str, Any], failed: bool = False) -> None:
    row = {"name": making.name, "device": making.device, "failed": failed, "opts": more.get("opts", []),
           "compile_ns": making.ns(),
           "runs": 0, "total_ns": 0, "best_ns": 0, "operations": 0, "bytes": 0}
    with self.lock:
      self.thread.last = len(self.kernels)
      self.kernels.append(row)
    row["kept"] = self.writer.add(f"kernel/{self.thread.last}",
                                  {"name": making.name, "device": making.device, "steps": making.steps,
                                   "rules": making.rules.described, **making.table.json(), **more})

  def _schedule_done(self, making: Making, canonical: Any, made: Any) -> None:
    kernels: list[Kernel] = made.kernels
    buffers: dict[UOp, int] = {}
    writer: dict[UOp, int] = {}
    rows, edges = [], []
    for k, kernel in enumerate(kernels):
      numbers = [buffers.setdefault(b, len(buffers)) for b in kernel.buffers]
      copies = kernel.sink.op is Ops.COPY
      edges += [(writer[r], k, buffers.get(r if r.op is Ops.BUFFER else base_of(r), -1))
                for r in dict.fromkeys(kernel.reads) if r in writer]
      writer.update((w, k) for w in kernel.writes)
      written = {base_of(w) for w in kernel.writes}
      rows.append({"name": "copy" if copies else kernel_name(kernel.sink),
                   "device": device_text(kernel.buffers[0].arg[1]), "buffers": numbers,
                   "writes": [n for b, n in zip(kernel.buffers, numbers) if b in written],
                   "node": making.table.add(kernel.node),
                   "text": cut(kernel_text(kernel))})
    with self.lock:
      number = len(self.schedules)
      self.schedules.append({"name": trace.show(making.line), "compile_ns": making.ns(),
                             "kernels": [{"name": row["name"], "device": row["device"], "made": []} for row in rows]})
    for row, kernel in zip(self.schedules[number]["kernels"], kernels):
      if kernel.sink.op is not Ops.COPY: self.scheduled.setdefault(kernel.sink, []).append(row)
    plan = made.plan
    told = [{"device": device_text(b.arg[1]), "dtype": type_name(b.dtype), "size": b.arg[2],
             "bytes": b.arg[2] * b.dtype.itemsize,
             "offset": plan.offsets.get(b, -1), "kind": kind_of(b, plan)} for b in buffers]
    self.schedules[number]["kept"] = self.writer.add(f"schedule/{number}", {
      "name": trace.show(making.line), "steps": making.steps, "rules": making.rules.described, "kernels": rows,
      "edges": edges, "buffers": told,
      "arenas": {device_text(device): size for device, size in plan.arena_bytes.items()}, **making.table.json()})

  @guarded
  def loaded(self, runner: Runner, start_ns: int) -> None:
    if self.times(): trace.event("load", trace.host_lane(), start_ns, time.perf_counter_ns(), of=runner.name)
    if self.thread.last >= 0: self.runners[id(runner.program)] = runner, self.thread.last
    self.thread.last = -1

  @guarded
  def ran(self, sink: UOp, runners: list[Runner]) -> None:
    for row in self.scheduled.get(sink, ()):
      row["made"] = list(dict.fromkeys(row["made"] + [n for n in map(self._number, runners) if n >= 0]))

  def _number(self, runner: Runner) -> int:
    found = self.runners.get(id(runner.program))
    return -1 if found is None else found[1]

  # ***** running *****

  def times(self) -> bool:
    viz, profile = bool(VIZ), bool(PROFILE)
    if viz: self.wanted["VIZ"] = True
    if profile: self.wanted["PROFILE"] = True
    return viz or profile

  @guarded
  def launched(self, step: Any, start_ns: int, end_ns: int) -> None:
    if not self.times(): return
    runner = step.runner
    if runner is None:
      target, source = step.buffers
      return trace.event(f"copy from {source.device}", target.device, start_ns, end_ns, bytes=target.nbytes)
    operations = int(number(runner.operations, runner.variables, step.variables))
    moved = int(number(runner.bytes_moved, runner.variables, step.variables))
    which, ns = self._number(runner), max(end_ns - start_ns, 1)
    trace.event(runner.name, runner.device, start_ns, end_ns, kernel=which, grid=step.grid, operations=operations,
                bytes=moved)
    if which < 0: return
    row = self.kernels[which]
    with self.lock:
      row["best_ns"] = min(ns, row["best_ns"] or ns)
      row["runs"] += 1
      row["total_ns"] += ns
      row["operations"], row["bytes"] = operations, moved

  @guarded
  def together(self, steps: list[Any], start_ns: int, end_ns: int) -> None:
    if len(steps) == 1: self.launched(steps[0], start_ns, end_ns)
    elif self.times():
      trace.event(f"{len(steps)} kernels", steps[0].runner.device, start_ns, end_ns,
                  names=[step.runner.name for step in steps])

  @guarded
  def replayed(self, name: str, kernels: int, start_ns: int) -> None:
    if self.times(): trace.event(f"replay {name}", trace.host_lane(), start_ns, time.perf_counter_ns(), kernels=kernels)

  @guarded
  def memory(self, buffer: Buffer, change: int) -> None:
    if not self.times(): return
    now = time.perf_counter_ns()
    trace.event(f"memory of {buffer.device}", f"{trace.COUNTERS}{buffer.device}", now, now,
                bytes=GlobalCounters.mem_used_per_device[buffer.device])
    if len(Buffer.profile_events) < trace.MOST_EVENTS:
      Buffer.profile_events.append(trace.Event("alloc" if change > 0 else "free", buffer.device, now, now,
                                               {"buffer": buffer.trace_num, "bytes": abs(change),
                                                "dtype": buffer.dtype.name}))

  @guarded
  def moved(self, buffer: Buffer, direction: str, start_ns: int) -> None:
    if self.times():
      trace.event(direction, f"{buffer.device} copies", start_ns, time.perf_counter_ns(), bytes=buffer.nbytes)

  # ***** files *****

  def index(self) -> dict[str, Any]:
    return {"version": archive.VERSION, "program": os.path.basename(sys.argv[0]) or "python", "arguments": sys.argv[1:],
            "python": sys.version.split()[0],
            "started": time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(self.started)),
            "schedules": self.schedules, "kernels": self.kernels}

  def timeline(self) -> dict[str, Any]:
    """Return the events, in microseconds from the recorder's start. Names and lanes are numbers of their tables."""
    names: dict[str, int] = {}
    lanes: dict[str, int] = {}
    rows = [(lanes.setdefault(e.lane, len(lanes)), names.setdefault(e.name, len(names)),
             round((e.start_ns - self.start_ns) / 1e3, 3),
             round((e.end_ns - e.start_ns) / 1e3, 3), e.details) for e in list(trace.events)]
    return {"lanes": list(lanes), "names": list(names), "events": rows, "dropped": trace.dropped}

  def write_recording(self, path: str) -> None:
    """Write the recording of VIZ. Raises OSError. Nothing can be added afterwards."""
    self._abandon()
    self.writer.add("index", self.index(), always=True)
    self.writer.add("timeline", self.timeline(), always=True)
    self.writer.close(path)

def write_profile(path: str) -> None:
  """Write the events in the Trace Event Format. Raises OSError."""
  write_atomically(os.path.abspath(path), json.dumps(trace.chrome_trace(), default=str).encode())

def base_of(u: UOp) -> UOp:
  """Return the BUFFER of an AFTER's state."""
  while u.op is Ops.AFTER: u = u.src[0]
  return u

def kind_of(buffer: UOp, plan: Any) -> str:
  if buffer.arg[0][0] == "in": return "input"
  return "temporary" if buffer in plan.offsets else "result"

# ***** the end of the program *****

def start() -> RunRecorder:
  """Return a recorder whose files are written when the program ends. A fork's child has its own records, and shows
  none."""
  recorder = RunRecorder()
  atexit.register(finish)
  if hasattr(os, "register_at_fork"): os.register_at_fork(after_in_child=_forget)
  return recorder

def _forget() -> None:
  trace.events.clear()
  Buffer.profile_events.clear()
  if trace.recorder is not None: trace.recorder = RunRecorder(shows=False)

def finish() -> None:
  """Write the requested files, and print their paths.

  A recording is shown if a user is present.
  """
  recorder, trace.recorder = trace.recorder, None
  if not isinstance(recorder, RunRecorder): return
  port = int(VIZ) if VIZ > 1 else 0
  with Context(VIZ=0, PROFILE=0):
    try:
      for line in _write(recorder, port): sys.stderr.write(line + "\n")
    except Exception as error:  # noqa: BLE001  # as in `guarded`
      sys.stderr.write(f"{fault_text(error)}; a file may be missing. This is a fault of tinyhw, not yours.\n")

def _write(recorder: RunRecorder, port: int) -> Iterator[str]:
  program = os.path.basename(sys.argv[0]) or "python"
  if recorder.wanted["PROFILE"]:
    path = str(PROFILE_FILE) or os.path.join(cache_dir(), "profile", f"{program}-{os.getpid()}.json")
    try:
      write_profile(path)
      if not str(PROFILE_FILE): recorded(cache_dir(), "profile")
    except OSError as error:
      yield f"tinyhw: PROFILE: {path} cannot be written: {error.strerror}; name another file with PROFILE_FILE"
    else: yield f"tinyhw: wrote the trace {path}; open it in https://ui.perfetto.dev or chrome://tracing"
  if not recorder.wanted["VIZ"]: return
  path = str(VIZ_FILE) or archive.new_path(program)
  try:
    recorder.write_recording(path)
    if not str(VIZ_FILE): recorded(cache_dir(), "viz")
  except OSError as error:
    yield f"tinyhw: VIZ: {path} cannot be written: {error.strerror}; name another file with VIZ_FILE"
    return
  if VIZ_FILE or not recorder.shows or not is_watched():
    yield f"tinyhw: wrote the recording {path}; python3 -m tinyhw viz {path} shows it"
    return
  from tinyhw.viz.server import serve  # hidden: loaded if there is something to show
  try: serve(path, port)
  except TinyError as error: yield f"tinyhw: VIZ: {error.message}; python3 -m tinyhw viz {path} shows the recording"

def is_watched() -> bool:
  """Is a user at a terminal, who can open a page and end it?"""
  return all(stream is not None and not stream.closed and stream.isatty() for stream in (sys.stdin, sys.stderr))
