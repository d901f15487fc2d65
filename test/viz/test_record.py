"""Recordings of VIZ=1 and PROFILE=1: they are complete, true and bounded, and absent without these variables."""
from __future__ import annotations
import inspect
import json
import os
import re
import select
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest
import recordings

from tinyhw import trace
from tinyhw.codegen.passes import LIST_PASSES, PASSES
from tinyhw.config import Context
from tinyhw.device import Buffer, Device
from tinyhw.dtype import dtypes
from tinyhw.engine.run import compile as compiling
from tinyhw.errors import CompileError
from tinyhw.helpers import profile_marker
from tinyhw.isa.x86.target import target
from tinyhw.machine.passes import steps
from tinyhw.methods.graph import graph
from tinyhw.tensor import Tensor
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp
from tinyhw.uop.rewrite.match import PatternMatcher, rule
from tinyhw.uop.rewrite.rewrite import graph_rewrite
from tinyhw.uop.upat import UPat
from tinyhw.viz import record
from tinyhw.viz.archive import Archive

ROOT = Path(__file__).resolve().parent.parent.parent

@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Archive, list[float]]:
  path = tmp_path_factory.mktemp("viz") / "train.viz.zip"
  losses = recordings.write_example(path)
  return Archive(str(path)), losses

def kernels(archive: Archive) -> list[dict[str, Any]]:
  return [recordings.read(archive, f"kernel/{n}") for n in range(len(recordings.read(archive, "index")["kernels"]))]

def test_recording_changes_no_result(made: tuple[Archive, list[float]]) -> None:
  assert made[1] == recordings.train(recordings.device()) and made[1][0] > made[1][-1] > 0

def test_each_kernel_has_all_passes_in_order(made: tuple[Archive, list[float]]) -> None:
  machine = (["select", *[name for name, _, _ in steps(target(Device["CPU"].arch))]] if recordings.device() == "CPU"
             else [])
  for kernel in kernels(made[0]):
    assert [s["name"] for s in kernel["steps"]] == ["kernel", "optimize", *(p.name for p in PASSES), "linearize",
                                                    *(p.name for p in LIST_PASSES if not p.has_lanes), *machine]
    assert kernel["pseudo"].startswith(f"kernel {kernel['name']}(") and (kernel["listing"] if machine
                                                                         else kernel["source"])
    assert all(("roots" in s or s["language"] == "machine") and s["text"] for s in kernel["steps"])

def test_rows_are_graphs(made: tuple[Archive, list[float]]) -> None:
  """Sources stand before their users, and roots, marks and rewrites are rows; lines are those of this test's
  program."""
  schedules = [recordings.read(made[0], f"schedule/{n}")
               for n in range(len(recordings.read(made[0], "index")["schedules"]))]
  for member in (*kernels(made[0]), *schedules):
    rows = member["rows"]
    for n, (op, dtype, src, arg, line, shape) in enumerate(rows):
      assert op in Ops.__members__ and all(0 <= s < n for s in src) and -1 <= line < len(member["lines"]), (n, op)
    for step in member["steps"]:
      assert all(0 <= n < len(rows) for n in (*step.get("roots", ()), *step.get("marked", ())))
      assert all(0 <= r < len(member["rules"]) and 0 <= a < len(rows) and 0 <= b < len(rows)
                 for r, a, b in step["rewrites"])
  # constants may be from where they were made first
  assert "recordings.py" in {Path(line[0]).name for s in schedules for line in s["lines"]}
  assert any(row[5] == "(24, 7)" for s in schedules for row in s["rows"])

def test_rules_are_where_they_are_said_to_be(made: tuple[Archive, list[float]]) -> None:
  rules = {(r["name"], r["file"], r["line"]): r for kernel in kernels(made[0]) for r in kernel["rules"]}
  assert {"sin", "log2", "exp2"} & {name for name, _, _ in rules} and any(file.startswith("tinyhw/codegen/")
                                                                          for _, file, _ in rules)
  for (name, file, line), r in rules.items():
    text = (ROOT / file).read_text(encoding="utf-8").splitlines()[line - 1]
    assert r["source"].startswith(text) and (name.rpartition(".")[2] in text or "@" in text
                                             or "lambda" in text), (name, file, line)

def test_schedules_tell_what_ran(made: tuple[Archive, list[float]]) -> None:
  index = recordings.read(made[0], "index")
  found = [recordings.read(made[0], f"schedule/{n}") for n in range(len(index["schedules"]))]
  for row, s in zip(index["schedules"], found):
    assert [s["name"] for s in s["steps"]] == ["graph", "broadcast", "weights", "operands", "split", "mask", "fuse",
                                              "lower", "order", "group", "plan"]
    for k, kernel in enumerate(row["kernels"]):
      assert kernel["name"] == "copy" or kernel["made"] and all(index["kernels"][n]["device"] in kernel["device"]
                                                                for n in kernel["made"])
      assert set(s["kernels"][k]["writes"]) <= set(s["kernels"][k]["buffers"])
    for writer, reader, buffer in s["edges"]:
      assert writer < reader and buffer in s["kernels"][writer]["writes"] and buffer in s["kernels"][reader]["buffers"]
    for b in s["buffers"]:
      assert (b["kind"] == "temporary") == (b["offset"] >= 0)
      assert b["offset"] < 0 or b["offset"] + b["bytes"] <= s["arenas"][b["device"]]
  assert max(len(s["kernels"]) for s in found) > 3

def test_launches_are_counted_and_timed(made: tuple[Archive, list[float]]) -> None:
  """Each launch is an event of the timeline, including those of replays."""
  index, timeline = recordings.read(made[0], "index"), recordings.read(made[0], "timeline")
  launches = [e for e in timeline["events"] if "kernel" in e[4]]
  for n, k in enumerate(index["kernels"]):
    own = [e for e in launches if e[4]["kernel"] == n]
    assert len(own) == k["runs"] > 0 and {timeline["names"][e[1]] for e in own} == {k["name"]}
    assert (abs(sum(e[3] for e in own) - k["total_ns"] / 1e3) < 0.01 * len(own) + 0.01
            and k["best_ns"] <= k["total_ns"] / k["runs"])
  replays = [e for e in timeline["events"] if timeline["names"][e[1]].startswith("replay ")]
  assert len(replays) == 2 and all(timeline["lanes"][e[0]] == "host" for e in replays)
  for replay in replays:
    inside = [e for e in launches if replay[2] <= e[2] and e[2] + e[3] <= replay[2] + replay[3] + 0.001]
    assert len(inside) == replay[4]["kernels"]
  assert ([timeline["names"][e[1]] for e in timeline["events"] if timeline["lanes"][e[0]] == "markers"]
          == [f"step {k}" for k in range(4)])

def check_trace(found: dict[str, Any]) -> None:
  """Check the rules of the Trace Event Format on which viewers rely. Complete events of one thread are disjoint or
  nested."""
  by_thread: dict[tuple[int, int], list[tuple[float, float]]] = {}
  for row in found["traceEvents"]:
    assert (isinstance(row["name"], str) and isinstance(row["pid"], int) and isinstance(row["args"], dict)
            and row["ph"] in ("M", "X", "i", "C"))
    if row["ph"] == "M":
      assert row["name"] in ("process_name", "thread_name") and isinstance(row["args"]["name"], str)
      continue
    assert isinstance(row["ts"], float) and isinstance(row["tid"], int)
    if row["ph"] == "i": assert row["s"] in ("t", "p", "g")
    if row["ph"] == "C": assert row["args"] and all(isinstance(v, (int, float)) for v in row["args"].values())
    if row["ph"] == "X":
      assert row["dur"] > 0
      by_thread.setdefault((row["pid"], row["tid"]), []).append((row["ts"], row["ts"] + row["dur"]))
  for spans in by_thread.values():
    open_until: list[float] = []
    for start, end in sorted(spans, key=lambda s: (s[0], -s[1])):
      while open_until and open_until[-1] <= start + 1e-3: open_until.pop()
      assert not open_until or end <= open_until[-1] + 1e-3, "events of one thread overlap"
      open_until.append(end)

def test_profile_is_a_trace(tmp_path: Path) -> None:
  path = tmp_path / "deep" / "trace.json"
  with recordings.recording(PROFILE=1, CACHE=0) as recorder:
    recordings.train(recordings.device())
    assert not recorder.schedules and recorder.wanted == {"VIZ": False, "PROFILE": True}
    assert {e.name for e in Buffer.profile_events} == {"alloc", "free"} and all(e.details["bytes"] > 0
                                                                                for e in Buffer.profile_events)
    record.write_profile(str(path))
  found = json.loads(path.read_text())
  check_trace(found)
  names = {row["name"] for row in found["traceEvents"]}
  assert {"schedule", "fuse", "optimize", "vectorize", "linearize", "encode", "load", "step 0",
          f"memory of {recordings.device()}"} <= names
  lanes = {row["args"]["name"] for row in found["traceEvents"] if row["name"] == "thread_name"}
  assert {"host", "markers", recordings.device()} <= lanes
  launches = [row for row in found["traceEvents"] if "grid" in row["args"]]
  assert launches and all(row["args"]["bytes"] > 0 for row in launches) and any(row["args"]["operations"] > 0
                                                                                for row in launches)

def test_a_device_that_cannot_time_its_launches_shows_them_together(monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.delattr(type(Device["PYTHON"].record([])), "submit_timed")
  with recordings.recording(PROFILE=1):
    losses = recordings.train("PYTHON")
    together = [e for e in trace.events if e.name.endswith(" kernels")]
    assert (len(together) == 2 and together[0].lane == "PYTHON" and together[0].details["names"]
            and losses[0] > losses[-1])

def test_what_json_does_not_know_is_text(tmp_path: Path) -> None:
  with recordings.recording() as recorder:
    profile_marker("odd", color=Path("x"))  # type: ignore[arg-type]
    record.write_profile(str(tmp_path / "a.json"))
    recorder.write_recording(str(tmp_path / "a.zip"))
  assert recordings.read(Archive(str(tmp_path / "a.zip")), "timeline")["events"][0][4] == {"color": "x"}

def test_copies_are_events() -> None:
  with recordings.recording(PROFILE=1):
    there = Buffer("PYTHON", 4, dtypes.float32).copyin(memoryview(bytes(16)))
    there.copyout(memoryview(bytearray(16)))
    (Tensor([1.0, 2.0], device="PYTHON") + 1).realize().to("PYTHON:1").realize()
    found = [(e.name, e.lane, e.details["bytes"]) for e in trace.events if "cop" in e.name]
    assert (found[:2] == [("copyin", "PYTHON copies", 16), ("copyout", "PYTHON copies", 16)]
            and ("copy from PYTHON", "PYTHON:1", 8) in found)
    mine = [(e.name, e.details) for e in Buffer.profile_events if e.details["buffer"] == there.trace_num]
    assert mine == [("alloc", {"buffer": there.trace_num, "bytes": 16, "dtype": "float"})]

def test_a_trace_with_overlaps_is_refused() -> None:
  row = {"name": "a", "ph": "X", "pid": 0, "tid": 0, "args": {}, "ts": 0.0, "dur": 5.0}
  with pytest.raises(AssertionError, match="overlap"): check_trace({"traceEvents": [row, {**row, "ts": 3.0}]})

def test_rules_of_a_matcher_are_told() -> None:
  @rule(UPat(Ops.MUL, src=(UPat.var("x"), UPat(Ops.CONST, arg=2))))
  def double(x: UOp) -> UOp:
    """x*2 -> x + x."""
    return x + x
  x = UOp.variable("x", 0, 9)
  matcher = PatternMatcher([double])
  with recordings.recording() as recorder:
    recorder.begin("kernel", "k", x * 2 + 1)
    for interpreted in (matcher, PatternMatcher([double], compiled=False)):
      assert graph_rewrite(x * 2 + 1, interpreted) is graph_rewrite(x * 2 + 1, interpreted,
                                                                    bottom_up=True) is (x + x + 1)
    making = recorder.thread.making
    assert making is not None
    recorder.passed("double", x + x + 1)
    step = making.steps[-1]
    assert [making.rules.described[r]["name"] for r, _, _ in step["rewrites"]] == ["double"] * 4
    assert making.rules.described[0] == {"name": "double", "file": os.path.relpath(__file__, ROOT),
                                         "doc": "x*2 -> x + x.",
                                         "line": inspect.getsourcelines(double.function)[1],
                                         "source": inspect.getsource(double.function)}
    assert {(making.table.rows[a][0], making.table.rows[b][0]) for _, a, b in step["rewrites"]} == {("MUL", "ADD")}
  assert graph_rewrite(x * 2, matcher) is x + x

def test_rewrites_and_events_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setattr(record, "MOST_REWRITES", 5)
  monkeypatch.setattr(record, "MOST_CHARACTERS", 50)
  with recordings.recording() as recorder:
    recorder.begin("kernel", "k", UOp.const(dtypes.int32, 0))
    for k in range(20):
      recorder.rewrite(test_rewrites_and_events_are_bounded, UOp.const(dtypes.int32, k), UOp.const(dtypes.int32, k + 1))
    making = recorder.thread.making
    assert making is not None
    recorder.passed("count", UOp.const(dtypes.int32, 20))
    assert (len(making.steps[-1]["rewrites"]), making.steps[-1]["more"]) == (5, 15)
  assert record.cut("x" * 60) == "x" * 50 + "\n… 10 more characters"

def test_what_the_recorder_does_itself_is_not_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
  node = UOp.const(dtypes.int32, 0)
  with recordings.recording() as recorder:
    def noisy(kernel: UOp) -> str:
      recorder.rewrite(noisy, kernel, kernel + 1)
      return "text"
    monkeypatch.setattr(record, "expressions", noisy)
    recorder.begin("kernel", "k", node)
    making = recorder.thread.making
    assert making is not None
    for name in ("a", "b"): recorder.passed(name, node)
    assert [(s["text"], s["rewrites"]) for s in making.steps] == [("text", [])] * 3

def test_a_kernel_that_fails_is_kept_as_far_as_it_came(monkeypatch: pytest.MonkeyPatch) -> None:
  def fail(*_: object) -> None: raise CompileError("no")
  monkeypatch.setattr(compiling.backend("python"), "compile", fail)
  with recordings.recording() as recorder:
    with pytest.raises(CompileError): (Tensor([1.0] * 11, device="PYTHON") + 3).realize()
    recorder._abandon()
    assert [(k["name"], k["failed"], k["runs"]) for k in recorder.kernels] == [("E_11", True, 0)]

def test_what_a_program_calls_is_guarded() -> None:
  told = inspect.getsource(trace).partition("class Recorder(Protocol)")[2].partition("\n\n")[0]
  names = re.findall(r"def (\w+)\(self", told)
  assert (len(names) >= 12 and [name for name in names if not hasattr(getattr(record.RunRecorder, name), "__wrapped__")]
          == ["times"])

@pytest.mark.parametrize("broken", ["expressions", "kernel_name", "pseudo_code", "number", "kind_of", "NodeTable.add",
                                    "Rules.number", "RunRecorder._number",
                                    "archive.ArchiveWriter.add"])
def test_a_fault_of_the_recorder_does_not_reach_the_program(broken: str, monkeypatch: pytest.MonkeyPatch,
                                                            tmp_path: Path,
                                                            capsys: pytest.CaptureFixture[str]) -> None:
  def fail(*_: object, **__: object) -> None: raise KeyError("broken")
  expected = recordings.train("PYTHON")
  with recordings.recording() as recorder:
    with monkeypatch.context() as patch:
      *way, name = broken.split(".")
      owner: Any = record
      for part in way: owner = getattr(owner, part)
      patch.setattr(owner, name, fail)
      assert recordings.train("PYTHON") == expected
    told = capsys.readouterr().err
    assert (recorder.faults > 0 and told.count("\n") == 1 and "KeyError: 'broken' (test_record.py:" in told
            and "the program goes on" in told)
    assert ((Tensor([1.0] * 17, device="PYTHON") + 3) * 2).tolist() == [8.0] * 17
    recorder.write_recording(str(tmp_path / "a.zip"))
    recorder.faults = 0
  kernels = recordings.read(Archive(str(tmp_path / "a.zip")), "index")["kernels"]
  assert kernels[-1]["name"] == "E_17" and kernels[-1]["runs"] == 1 and capsys.readouterr().err == ""

def test_a_fault_while_files_are_written_is_told(tmp_path: Path) -> None:
  program = ("from tinyhw.viz import archive\ndef fail(*_): raise KeyError('broken')\n"
             "archive.ArchiveWriter.close = fail\n" + PROGRAM)
  done = run(program, VIZ="1", VIZ_FILE=str(tmp_path / "a.zip"))
  assert done.returncode == 0 and done.stdout == "[2.0, 4.0, 6.0]\n" and done.stderr.count("\n") == 1, done.stderr
  assert "KeyError: 'broken' (<string>:2 fail); a file may be missing" in done.stderr

def test_a_thread_without_the_variable_is_not_recorded() -> None:
  with recordings.recording() as recorder:
    with Context(VIZ=0, PROFILE=0): (Tensor([1.0] * 13, device="PYTHON") + 3).realize()
    assert not recorder.kernels and not [e for e in trace.events if e.lane == "PYTHON"]

def test_threads_have_kernels_of_their_own() -> None:
  with recordings.recording() as recorder:
    def work(n: int) -> None:
      with Context(VIZ=1):
        for k in range(4): (Tensor([1.0] * (20 * n + k + 2), device="PYTHON").sin() + n).realize()
    threads = [threading.Thread(target=work, args=(n,), name=f"worker {n}") for n in (1, 2, 3)]
    for t in threads: t.start()
    for t in threads: t.join()
    assert sorted(k["name"] for k in recorder.kernels) == sorted(f"E_{20 * n + k + 2}" for n in (1, 2, 3)
                                                                 for k in range(4))
    assert {e.lane for e in trace.events if e.name == "fuse"} == {f"host: worker {n}" for n in (1, 2, 3)}

PROGRAM = "from tinyhw import Tensor; print((Tensor([1.0, 2.0, 3.0], device='PYTHON') * 2).tolist())"

def run(program: str, **variables: str) -> subprocess.CompletedProcess[str]:
  environment = {**os.environ, "PYTHONPATH": str(ROOT), **variables}
  return subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True,
                        stdin=subprocess.DEVNULL, timeout=120)

def test_nothing_is_loaded_without_the_variables() -> None:
  done = run(f"{PROGRAM}; import sys, tinyhw.trace as t; print(t.recorder, t.events, [m for m in sys.modules if 'viz' "
             f"in m])", VIZ="0", PROFILE="0")
  assert done.stdout == "[2.0, 4.0, 6.0]\nNone [] []\n" and done.stderr == ""

def test_a_program_writes_its_files_at_its_end(tmp_path: Path) -> None:
  done = run(PROGRAM, VIZ="1", PROFILE="1", VIZ_FILE=str(tmp_path / "a.zip"), PROFILE_FILE=str(tmp_path / "a.json"))
  assert done.returncode == 0 and done.stdout == "[2.0, 4.0, 6.0]\n"
  assert done.stderr.splitlines()[0].startswith(f"tinyhw: wrote the trace {tmp_path / 'a.json'};")
  assert (done.stderr.splitlines()[1] == f"tinyhw: wrote the recording {tmp_path / 'a.zip'}; python3 -m tinyhw viz "
          f"{tmp_path / 'a.zip'} shows it")
  check_trace(json.loads((tmp_path / "a.json").read_text()))
  assert [k["name"] for k in recordings.read(Archive(str(tmp_path / "a.zip")), "index")["kernels"]] == ["E_3"]

def test_without_names_files_are_in_the_cache(tmp_path: Path) -> None:
  done = run(PROGRAM, VIZ="1", PROFILE="1", CACHEDIR=str(tmp_path))
  assert (done.returncode == 0 and len(list((tmp_path / "viz").glob("*.viz.zip"))) == 1
          == len(list((tmp_path / "profile").glob("*.json"))))

def test_files_that_cannot_be_written_are_told(tmp_path: Path) -> None:
  (tmp_path / "file").write_text("")
  done = run(PROGRAM, VIZ="1", PROFILE="1", VIZ_FILE=str(tmp_path / "file/a.zip"),
             PROFILE_FILE=str(tmp_path / "file/a.json"))
  assert done.returncode == 0 and done.stdout == "[2.0, 4.0, 6.0]\n"
  assert [line.rpartition("; ")[2] for line in done.stderr.splitlines()] == ["name another file with PROFILE_FILE",
                                                                             "name another file with VIZ_FILE"]

@pytest.mark.skipif(not hasattr(os, "fork"), reason="a system without fork")
def test_a_forked_child_forgets_its_parents_records() -> None:
  program = ("import os, sys; from tinyhw import Tensor, trace; import tinyhw.trace as t; (Tensor([1.0, 2.0], "
             "device='PYTHON') + 1).realize()\n"
             "r, w = os.pipe(); pid = os.fork()\n"
             "if not pid: os.write(w, f'{len(t.events)} {len(t.recorder.kernels)}'.encode()); os._exit(0)\n"
             "os.waitpid(pid, 0); print(os.read(r, 99).decode(), len(t.recorder.kernels))")
  done = run(program, VIZ="1", VIZ_FILE=os.devnull)
  assert done.stdout == "0 0 1\n", done.stderr

def at_a_terminal(program: str, **variables: str) -> Generator[bytes, bytes | None, None]:
  """Yield the output of a program on a terminal, as it comes; text that is sent is typed there."""
  import pty  # Windows has none
  pid, terminal = pty.fork()
  if pid == 0:
    try:
      os.execve(sys.executable, [sys.executable, "-c", program], {**os.environ, "PYTHONPATH": str(ROOT), **variables})
    finally: os._exit(1)
  try:
    while True:
      readable, _, _ = select.select([terminal], [], [], 60)
      if not readable: raise TimeoutError("the program says nothing")
      try: said = os.read(terminal, 4096)
      except OSError: break  # it has ended
      if not said: break
      typed = yield said
      if typed: os.write(terminal, typed)
  finally:
    os.close(terminal)
    assert os.waitpid(pid, 0)[1] == 0

@pytest.mark.skipif(not hasattr(os, "fork"), reason="a system without terminals of this kind")
def test_at_a_terminal_the_page_is_served_until_it_is_interrupted(tmp_path: Path) -> None:
  said = b""
  program = at_a_terminal(PROGRAM, VIZ="1", CACHEDIR=str(tmp_path))
  for part in program:
    said += part
    found = re.search(rb"open (http://127\.0\.0\.1:\d+/) \(Ctrl-C ends it\)", said)
    if found is None: continue
    with urllib.request.urlopen(found[1].decode() + "api/index", timeout=20) as answer:
      assert json.load(answer)["kernels"][0]["name"] == "E_3"
    try:
      program.send(b"\x03")
      for _ in program: pass
    except StopIteration: pass
    return
  raise AssertionError(f"no page was served: {said!r}")

@pytest.mark.skipif(not hasattr(os, "fork"), reason="a system without terminals of this kind")
def test_a_port_that_cannot_be_opened_is_told(tmp_path: Path) -> None:
  said = b"".join(at_a_terminal(PROGRAM, VIZ="99999", CACHEDIR=str(tmp_path)))
  assert b"tinyhw: VIZ: 127.0.0.1:99999 cannot be opened: ports go from 0 to 65535; choose another one" in said
  assert b"shows the recording" in said and b"Traceback" not in said

CASES: dict[str, Callable[[], Tensor]] = {
  "empty": lambda: Tensor.ones(0, 3, device="PYTHON") + 1,
  "scalar": lambda: Tensor(2.0, device="PYTHON") * 3,
  "bool": lambda: ~Tensor([True], device="PYTHON"),
  "nan": lambda: Tensor([float("nan")], device="PYTHON") + float("inf"),
  "half": lambda: Tensor([1.5], dtype=dtypes.bfloat16, device="PYTHON") + 1,
  "copy": lambda: Tensor([1.0, 2.0], device="PYTHON").contiguous().to("PYTHON:1") + 1,
  "gather": lambda: Tensor([1.0, 2.0, 3.0], device="PYTHON").gather(0, Tensor([2, 0], device="PYTHON")).flip(0) + 1,
  "indexed": lambda: Tensor.arange(12, device="PYTHON").reshape(3, 4)[Tensor([1, 0], device="PYTHON"), 1:3].cumsum(1),
  "nowhere": lambda: Tensor(graph.broadcast(graph.constant(dtypes.uint64, 7), (1,)).cast(dtypes.float32)) + 1,
  "sharded": lambda: Tensor.arange(8, device="PYTHON").shard(("PYTHON:1", "PYTHON:2"), 0).sum() + 1,
  "null": lambda: Tensor.ones(4, 4, device="NULL").contiguous().sum(),
}

@pytest.mark.parametrize("case", CASES)
def test_odd_tensors_are_recorded(case: str, tmp_path: Path) -> None:
  with recordings.recording() as recorder:
    CASES[case]().realize()
    recorder.write_recording(str(tmp_path / "a.zip"))
  archive = Archive(str(tmp_path / "a.zip"))
  index = recordings.read(archive, "index")
  for kind in ("schedule", "kernel"):
    for n in range(len(index[f"{kind}s"])): recordings.read(archive, f"{kind}/{n}")
  archive.close()
  assert "NULL" in Device._opened or case != "null"
