"""docs/layers.svg: the layers, drawn from the imports of the files. test_picture.py compares it with what stands there.

  python3 test/house/picture.py    # draws it anew

A box is a folder or file of tinyhw/. It stands above everything that it imports: its row is the longest chain of
imports below it. An arrow is an import; arrows that follow from others are left out. Dashed arrows are modules that are
opened by their names, where an import would be against the layers. An arrow that crosses a row passes between its
boxes.
"""
from __future__ import annotations
import functools
import sys
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "test/house"))
from test_layers import FILES, imports  # noqa: E402  # the path must be set before

PICTURE = ROOT / "docs/layers.svg"
Edges = dict[str, set[str]]

WORDS = {   # box -> its modules, and one line about it
  "llm": ("llm", "language models, a server"),
  "nn": ("nn", "layers, optimizers, files, ONNX"),
  "function": ("function", "functions as graphs"),
  "compat": ("compat", "PyTorch's names and meaning"),
  "linalg": ("linalg", "factorizations, systems, norms"),
  "distributions": ("distributions", "densities, samples, divergences"),
  "fft": ("fft", "Fourier transforms"),
  "complex": ("complex", "numbers of two planes"),
  "special": ("special", "gamma, Bessel, polynomials"),
  "functional": ("functional", "operators by family"),
  "capture": ("capture", "TinyJit: record and replay"),
  "tensor": ("tensor methods gradient", "Tensor: calls become a graph"),
  "viz": ("viz", "the page of passes and times"),
  "selftest": ("selftest", "asks a device step by step"),
  "engine": ("engine", "graph to kernels, and their launch"),
  "codegen": ("codegen", "kernel to Program: tiles, loops"),
  "isa": ("isa", "x86, AMD, NVIDIA, as tables"),
  "machine": ("machine", "registers, order, allocation"),
  "drivers": ("drivers", "CPU, AMD, NV, files"),
  "emulator": ("emulator", "virtual cards"),
  "autogen": ("autogen", "constants of kernels and chips"),
  "uop": ("uop", "expressions, rules, interpreter"),
  "device": ("device device_interface", "the device interface"),
  "base": ("errors config dtype arithmetic trace helpers named_tuple data_class files threads http",
           "types, errors, settings, files"),
}
TITLES = {"base": "base"}   # of a box whose modules are too many to name
BY_NAME = {"device": "drivers", "drivers": "emulator"}   # opens modules of the other by their names
ALIASES = ("tinyhw.engine.jit",)         # other projects' names of our modules
ENTRIES = ("tinyhw", "tinyhw.__main__")   # above everything

WIDTH, HEIGHT, GAP, ROW, MARGIN = 222, 46, 18, 84, 20
APART = 5   # pixels between two arrows that cross a row: up to three fit into a gap

def box_of(module: str) -> str:
  """The box of a module, which WORDS must name."""
  part = module.split(".")[1]
  found = [box for box, (modules, _) in WORDS.items() if part in modules.split()]
  assert len(found) == 1, f"{module} is in {len(found)} boxes of WORDS: {found}; name tinyhw/{part} in one of them"
  return found[0]

def check_words() -> None:
  """Every module that a box names is one."""
  missing = [name for modules, _ in WORDS.values() for name in modules.split() if f"tinyhw.{name}" not in FILES]
  assert not missing, f"WORDS names modules of tinyhw that are not there: {missing}"

@functools.cache
def edges() -> Edges:
  """Which boxes import which. The frame of self-tests, which drivers fill in, belongs to drivers here."""
  found: Edges = {box: set() for box in WORDS}
  for module, path in FILES.items():
    if module in (*ALIASES, *ENTRIES): continue
    own = "drivers" if module == "tinyhw.selftest.frame" else box_of(module)
    for _, name in imports(path):
      if not name.startswith("tinyhw."): continue
      other = "drivers" if name == "tinyhw.selftest.frame" else box_of(name)
      if other != own: found[own].add(other)
  return found

def reachable(graph: Edges, box: str) -> set[str]:
  """Everything below a box."""
  below: set[str] = set()
  work = list(graph[box])
  while work:
    if (one := work.pop()) in below: continue
    below.add(one)
    work += graph[one]
  return below

def reduced(graph: Edges) -> Edges:
  """Without the arrows that follow from others. Raises AssertionError where there is a cycle."""
  below = {box: reachable(graph, box) for box in graph}
  assert not [box for box in graph if box in below[box]], "boxes import each other in a circle"
  return {box: {o for o in others if not any(o in below[p] for p in others)} for box, others in graph.items()}

def rows(graph: Edges) -> dict[str, int]:
  """The row of each box: the longest chain of imports below it."""
  found: dict[str, int] = {}
  def row(box: str) -> int:
    if box not in found: found[box] = max((row(o) + 1 for o in graph[box]), default=0)
    return found[box]
  for box in graph: row(box)
  return found

STYLE = """
  text { font: 13px system-ui, sans-serif; fill: #1b1f24 } .small { font-size: 11px; fill: #57606a }
  rect { fill: #f6f8fa; stroke: #8c959f } path { fill: none; stroke: #57606a; stroke-width: 1.2 }
  .named { stroke-dasharray: 4 3; stroke: #bc4c00 } marker path { fill: #57606a; stroke: none }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3 } .small { fill: #9198a1 } rect { fill: #161b22; stroke: #6e7681 }
    path { stroke: #9198a1 } .named { stroke: #ffa657 } marker path { fill: #9198a1 } }
"""

class Placement:
  """Where the boxes are: (left, top) of each, and the size of the picture."""
  def __init__(self, graph: Edges) -> None:
    self.level, shown = rows(graph), reduced(graph)
    lines: dict[int, list[str]] = {}
    for box in WORDS: lines.setdefault(self.level[box], []).append(box)
    self.width = max(len(line) for line in lines.values()) * (WIDTH + GAP) - GAP + 2 * MARGIN
    self.height = (max(lines) + 1) * ROW - (ROW - HEIGHT) + 2 * MARGIN + 18
    self.at: dict[str, tuple[float, float]] = {}
    for k, line in sorted(lines.items()):
      left = (self.width - len(line) * (WIDTH + GAP) + GAP) / 2
      if k:   # near what they import
        line.sort(key=lambda box: sum(self.at[o][0] for o in shown[box]) / max(len(shown[box]), 1))
      for n, box in enumerate(line): self.at[box] = left + n * (WIDTH + GAP), self.top(k)
    self.taken: dict[int, list[float]] = {k: [] for k in lines}   # where arrows cross each row

  def top(self, row: int) -> float: return self.height - MARGIN - 18 - HEIGHT - row * ROW

  def crossing(self, row: int, wish: float) -> float:
    """Where an arrow crosses a row: as near to a wish as boxes and other arrows allow."""
    boxes = [self.at[box][0] for box, k in self.level.items() if k == row]
    edges = [x for left in boxes for x in (left - GAP / 2, left + WIDTH + GAP / 2)]
    wishes = [wish] * all(not left - GAP / 2 < wish < left + WIDTH + GAP / 2 for left in boxes)
    nearest = sorted((*wishes, *edges), key=lambda x: abs(x - wish))
    found = next(x + shift for x in nearest for shift in (0, -APART, APART)
                 if all(abs(x + shift - other) >= APART for other in self.taken[row]))
    self.taken[row].append(found)
    return found

  def route(self, start: str, end: str, shift: float) -> list[tuple[float, float, float]]:
    """The straight pieces of an arrow, as (x, y where it enters, y where it leaves): its two ends, and between them a
    piece for each row that it crosses. shift: how far its ends are from the middle of the boxes."""
    (x0, y0), (x1, y1) = self.at[start], self.at[end]
    x0, x1, step = x0 + WIDTH / 2 + shift, x1 + WIDTH / 2 + shift, 1 if y1 < y0 else -1
    def piece(x: float, top: float) -> tuple[float, float, float]:
      return (x, top + HEIGHT, top) if step == 1 else (x, top, top + HEIGHT)
    found = [(x0, y0, piece(x0, y0)[2])]
    between = range(self.level[start] + step, self.level[end], step)
    for n, row in enumerate(between, 1):
      wish = x0 + (x1 - x0) * n / (len(between) + 1)
      found.append(piece(self.crossing(row, wish), self.top(row)))
    return [*found, (x1, piece(x1, y1)[1], y1)]

def path(pieces: list[tuple[float, float, float]]) -> str:
  """The pieces of an arrow, joined by curves that stay between two rows."""
  (x0, _, y0), *others = pieces
  words = [f"M{x0:g} {y0:g}"]
  for n, (x, enters, leaves) in enumerate(others):
    bend = (y0 + enters) / 2
    words.append(f"C{x0:g} {bend:g} {x:g} {bend:g} {x:g} {enters:g}")
    if n < len(others) - 1: words.append(f"L{x:g} {leaves:g}")
    x0, y0 = x, leaves
  return "".join(words)

def drawing() -> str:
  """The picture as SVG."""
  check_words()
  graph = edges()
  placed = Placement(graph)
  width, height = placed.width, placed.height
  out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">',
         f"<style>{STYLE}</style>",
         '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
         '<path d="M0 0 8 4 0 8z"/></marker></defs>']
  arrows = [("import", box, other) for box, others in reduced(graph).items() for other in sorted(others)]
  for kind, start, end in [*arrows, *(("named", box, other) for box, other in BY_NAME.items())]:
    line = path(placed.route(start, end, 2 * GAP if kind == "named" else 0))
    out.append(f'<path class="{kind}" marker-end="url(#head)" d="{line}"/>')
  for box, (x, y) in placed.at.items():
    modules, words = WORDS[box]
    title = TITLES.get(box, modules.replace(" ", " · "))
    out += [f'<rect x="{x:g}" y="{y:g}" width="{WIDTH}" height="{HEIGHT}" rx="5"/>',
            f'<text x="{x + 10:g}" y="{y + 19:g}">{escape(title)}</text>',
            f'<text class="small" x="{x + 10:g}" y="{y + 36:g}">{escape(words)}</text>']
  out.append(f'<text class="small" x="{MARGIN}" y="{height - 6}">Arrows are imports, drawn from the files by '
             "test/house/picture.py; dashed: opened by name.</text>")
  return "\n".join([*out, "</svg>", ""])

if __name__ == "__main__": PICTURE.write_text(drawing(), encoding="utf-8")
