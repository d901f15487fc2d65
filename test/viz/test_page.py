"""page.html in a real browser: it shows a recording, follows keys and mouse, reports no errors, and runs no code from a
recording."""
from __future__ import annotations
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import browser
import pytest
import recordings
from browser import Browser

from tinyhw.viz.archive import VERSION, Archive, ArchiveWriter
from tinyhw.viz.server import Server

pytestmark = pytest.mark.skipif(browser.CHROMIUM is None or browser.DRIVER is None,
                                reason="the programs chromium and chromedriver are not installed")

@pytest.fixture(scope="module")
def window() -> Iterator[Browser]:
  try: found = Browser()
  except (OSError, RuntimeError) as error: pytest.skip(f"chromium does not start here: {error}")
  with found: yield found

class Page:
  """A recording, served, and a window that shows it."""
  def __init__(self, window: Browser, path: str):
    self.window, self.server = window, Server(Archive(path))
    self.thread = threading.Thread(target=self.server.serve_forever)
    self.thread.start()

  def open(self, place: str = "") -> None:
    self.window.open("about:blank")
    self.window.open(f"{self.server.url}#{place}")
    self.window.wait("return document.body.dataset.drawn || document.querySelector('.note')")

  def drawn(self, place: str) -> None:
    self.window.wait("return document.body.dataset.drawn === arguments[0]", 20, place)
  def count(self, selector: str) -> int:
    return int(self.window.run("return document.querySelectorAll(arguments[0]).length", selector))
  def text(self, selector: str) -> str:
    return str(self.window.run("return document.querySelector(arguments[0]).textContent", selector))

  def close(self) -> None:
    self.server.closed = True
    self.thread.join()
    self.server.close()

@pytest.fixture(scope="module")
def page(window: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
  path = tmp_path_factory.mktemp("viz") / "train.viz.zip"
  recordings.write_example(path)
  found = Page(window, str(path))
  yield found
  found.close()

def matmul(page: Page) -> int:
  """Return the number of the kernel that multiplies matrices."""
  kernels = recordings.read(page.server.archive, "index")["kernels"]
  return next(n for n, k in enumerate(kernels) if k["name"] == "r_16_7_24")

def test_a_schedule_is_drawn_first(page: Page) -> None:
  page.open()
  index = recordings.read(page.server.archive, "index")
  assert page.count(".item.schedule") == len(index["schedules"]) and page.count(".item") >= len(index["kernels"])
  assert page.count("svg.graph .n") > 20 and page.count("svg.graph .edge") > 20
  assert page.window.errors() == []

def test_a_node_is_clicked(page: Page) -> None:
  page.open()
  page.window.run("[...document.querySelectorAll('.n')].find(n => n.textContent.startsWith('REDUCE'))"
                  ".dispatchEvent(new MouseEvent('click', {bubbles: true}))")
  assert page.text("#details h2") == "REDUCE_AXIS" and "recordings.py:" in page.text("#details dl")
  assert page.count(".n.self") == 1 and page.count(".n.near") >= 2 and page.count(".edge.in") == 1
  page.window.run("document.querySelector('#details a.node').click()")
  assert page.text("#details h2") != "REDUCE_AXIS" and page.count(".n.self") == 1
  page.window.press("Escape")
  assert page.count(".n.self") == 0 and page.window.errors() == []

def test_a_real_click_and_the_wheel(page: Page) -> None:
  number = matmul(page)
  page.open(f"kernel/{number}/0/graph")
  box = page.window.run("const b = [...document.querySelectorAll('.n')].find(n => "
                        "n.textContent.startsWith('MUL')).getBoundingClientRect();"
                        "return [b.x + b.width / 2, b.y + b.height / 2]")
  page.window.point(int(box[0]), int(box[1]), click=True)
  assert page.text("#details h2") == "MUL"
  before = page.window.run("return document.querySelector('svg.graph > g').getAttribute('transform')")
  page.window.press("+")
  assert (page.window.run("return document.querySelector('svg.graph > g').getAttribute('transform')") != before
          and page.window.errors() == [])

def test_all_steps_of_a_kernel_in_all_their_modes(page: Page) -> None:
  number = matmul(page)
  page.open(f"kernel/{number}/0/graph")
  names = page.window.run("return [...document.querySelectorAll('[data-step]')].map(b => b.dataset.step)")
  assert names[:4] == ["kernel", "optimize", "grid", "stage"] and "linearize" in names and "pseudo" in names
  seen = set()
  for at in range(len(names)):
    for mode in page.window.run("return [...document.querySelectorAll('[data-mode]')].map(b => b.dataset.mode)"):
      page.window.click(f"[data-mode={mode}]")
      page.drawn(f"kernel/{number}/{at}/{mode}")
      seen.add(mode)
      assert page.count("#view *") >= 1
    page.window.press("ArrowRight")
  assert seen == {"graph", "text", "diff", "rewrites"} and page.window.errors() == []

def test_differences_are_those_of_the_texts(page: Page) -> None:
  """The lines that the page calls removed and added turn one text into the other, and keep as many lines as can be
  kept."""
  for a, b in (("", "x"), ("a\nb\nc", "a\nc"), ("a\nb\nc\nd\ne", "x\na\nc\nb\nd\nf\ne"), ("1\n2\n3", "4\n5"),
               ("same", "same"),
               ("a\na\na\nb", "a\nb\na\na"), ("x\n" * 40, "y\nx\n" * 30)):
    rows = page.window.run("return difference(arguments[0].split('\\n'), arguments[1].split('\\n'))", a, b)
    assert [text for kind, text in rows if kind != "+"] == a.split("\n") and [text for kind, text in rows
                                                                              if kind != "-"] == b.split("\n")
    assert sum(kind == " " for kind, _ in rows) == longest_common(a.split("\n"), b.split("\n"))

def longest_common(a: list[str], b: list[str]) -> int:
  """The length of the longest common subsequence."""
  row = [0] * (len(b) + 1)
  for x in a:
    last = row
    row = [0]
    for j, y in enumerate(b): row.append(last[j] + 1 if x == y else max(row[-1], last[j + 1]))
  return row[-1]

def test_rewrites_are_stepped_through(page: Page) -> None:
  number = matmul(page)
  page.open(f"kernel/{number}/0/graph")
  steps = recordings.read(page.server.archive, f"kernel/{number}")["steps"]
  at = max(range(len(steps)), key=lambda n: len(steps[n]["rewrites"]))
  page.open(f"kernel/{number}/{at}/rewrites")
  assert page.count("[data-rewrite]") == len(steps[at]["rewrites"]) > 2
  page.window.press("j", "j", "k")
  assert page.text("[aria-selected=true] .at") == "2" and page.text(".rule .where").startswith("tinyhw/codegen/")
  assert page.count(".canvas .n.added") + page.count(".canvas .n.removed") > 0 and page.window.errors() == []

def test_kernels_and_memory_of_a_schedule(page: Page) -> None:
  schedules = recordings.read(page.server.archive, "index")["schedules"]
  number = max(range(len(schedules)), key=lambda n: len(schedules[n]["kernels"]))
  steps = len(recordings.read(page.server.archive, f"schedule/{number}")["steps"])
  page.open(f"schedule/{number}/{steps}")
  assert page.count("svg.graph .n") == len(schedules[number]["kernels"])
  page.open(f"schedule/{number}/{steps + 1}")
  buffers = recordings.read(page.server.archive, f"schedule/{number}")["buffers"]
  assert page.count(".memory-chart tbody tr") == len(buffers) and page.count("rect.b") == sum(b["kind"] == "temporary"
                                                                                              for b in buffers) > 0
  assert page.window.errors() == []

def test_the_timeline_is_hovered_and_clicked(page: Page) -> None:
  page.open("timeline")
  rows = [k for k in recordings.read(page.server.archive, "index")["kernels"] if k["runs"]]
  assert page.count(".sums tbody tr") == len(rows)
  page.window.run("[...document.querySelectorAll('#bar button')].find(b => b.textContent === 'last run').click()")
  x, y = page.window.run("""const lane = timeline.lanes.find(l => l.rows.flat().some(e => e.details.kernel >= 0));
    const kernels = lane.rows.flat().filter(e => e.details.kernel >= 0 && e.start >= timeline.from);
    const e = kernels.sort((a, b) => b.length - a.length)[0];
    const box = document.getElementById('canvas').getBoundingClientRect();
    const depth = lane.rows.findIndex(row => row.includes(e));
    const share = (e.start + e.length / 2 - timeline.from) / (timeline.to - timeline.from);
    return [box.x + 118 + share * (box.width - 118), box.y + lane.top + 3 + depth * 18 + 7];""")
  page.window.point(int(x), int(y))
  assert page.window.wait("const tip = document.getElementById('tip'); return tip.style.display === 'block' && "
                          "tip.textContent.includes('B/s')")
  page.window.point(int(x), int(y), click=True)
  page.window.click("#open")
  page.window.wait("return document.body.dataset.drawn.startsWith('kernel/')")
  assert page.window.errors() == []

def test_the_list_is_filtered_and_walked(page: Page) -> None:
  page.open()
  page.window.press("/", "r", "_", "1", "6", "Enter")
  assert 0 < page.count(".item:not(.schedule)") < len(recordings.read(page.server.archive, "index")["kernels"])
  page.window.press("ArrowDown")
  page.window.wait("return document.querySelector('.item[aria-selected=true]')")
  page.window.run("document.getElementById('filter').value = ''; document.getElementById('filter').dispatchEvent(new "
                  "Event('input'))")
  page.window.click("#order")
  assert page.count(".item.schedule") == 0 and page.count(".item") > 3 and page.window.errors() == []

EVIL = "</span><img src=x onerror=window.hacked=1><script>window.hacked=1</script>"

def hostile(value: Any) -> Any:
  """Return a recording with markup in every text except those that select the view."""
  if isinstance(value, str): return value + EVIL
  if isinstance(value, list): return [hostile(v) for v in value]
  if isinstance(value, dict): return {k: v if k in ("language", "kind") else hostile(v) for k, v in value.items()}
  return value

def test_what_a_recording_says_is_text(page: Page, window: Browser, tmp_path: Path) -> None:
  """Names of kernels, files, variables, rules, devices: markup in them is shown, not interpreted."""
  writer, archive = ArchiveWriter(), page.server.archive
  for name in sorted(archive.names):
    writer.add(name.removesuffix(".json"), hostile(recordings.read(archive, name.removesuffix(".json"))))
  writer.close(str(tmp_path / "evil.zip"))
  number, found = matmul(page), Page(window, str(tmp_path / "evil.zip"))
  try:
    modes = ("graph", "text", "diff", "rewrites")
    for place in ("schedule/0", "schedule/0/7", "schedule/0/8", "timeline",
                  *(f"kernel/{number}/{k}/{mode}" for k in (1, 4) for mode in modes)):
      found.open(place)
      window.run("document.querySelectorAll('.n, .item, tr, .log div').forEach(n => n.dispatchEvent(new "
                 "MouseEvent('click', {bubbles: true})))")
      assert (window.run("return window.hacked === undefined") and found.count("img") == 0
              and found.count("script") == 1), place
    assert EVIL in window.run("return document.body.textContent")
    assert window.errors() == []
  finally: found.close()

def test_broken_recordings_are_told(window: Browser, tmp_path: Path) -> None:
  writer = ArchiveWriter()
  writer.add("index", {"version": VERSION, "program": "p", "arguments": [], "started": "", "python": "", "kernels": [],
                       "schedules": [
    {"name": "s", "kernels": [], "compile_ns": 0, "kept": True}]})
  writer.close(str(tmp_path / "a.zip"))
  found = Page(window, str(tmp_path / "a.zip"))
  try:
    found.open()
    found.window.wait("return document.querySelector('#view .note')")
    assert found.text("#view .note") == "This cannot be shown: schedule/0: this was not recorded"
  finally:
    window.errors()
    found.close()

def test_thousands_of_nodes(window: Browser, tmp_path: Path) -> None:
  """A graph of 5000 nodes in layers of 50 is drawn in part within seconds, and whole on request."""
  rows: list[Any] = [["BUFFER", "float32", [], "(('in', 0), 'CPU', 4)", -1, "(4)"]]
  rows += [["ADD", "float32", [max(0, n - 50), max(0, n - 50 - n * n % 13)], "", -1, "(4)"] for n in range(1, 5000)]
  rows += [["SINK", "void", list(range(4950, 5000)), "", -1, ""]]
  step = {"name": "graph", "because": "", "ns": 1, "rewrites": [], "more": 0, "roots": [5000]}
  writer = ArchiveWriter()
  writer.add("index", {"version": VERSION, "program": "p", "arguments": [], "started": "", "python": "", "kernels": [],
                       "schedules": [
    {"name": "s", "kernels": [], "compile_ns": 0, "kept": True}]})
  writer.add("schedule/0", {"name": "s", "steps": [step], "rules": [], "kernels": [], "edges": [], "buffers": [],
                            "arenas": {}, "rows": rows,
                            "lines": []})
  writer.close(str(tmp_path / "a.zip"))
  found = Page(window, str(tmp_path / "a.zip"))
  try:
    found.open()
    assert found.count(".n") == 1200 and "those nearest to the results" in found.text(".banner")
    window.click("#show-all")
    found.window.wait("return document.querySelectorAll('.n').length === 5001", 60)
    assert window.errors() == []
  finally: found.close()
