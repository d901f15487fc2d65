"""docs/layers.svg: the layers, drawn from the imports of the files. test_picture.py compares it with what stands there.

  python3 test/house/picture.py    # draws it anew

A box is a folder or file of tinyhw/. It stands above everything that it imports: its row is the longest chain of
imports below it. An arrow is an import; arrows that follow from others are left out. Dashed arrows are modules that are
opened by their names, where an import would be against the layers.
"""
from __future__ import annotations
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
  "device": ("device allocator", "the device interface"),
  "base": ("", "types, errors, settings, files"),
}
BY_NAME = {"device": "drivers", "drivers": "emulator"}   # opens modules of the other by their names
ALIASES = ("tinyhw.engine.jit",)         # other projects' names of our modules
ENTRIES = ("tinyhw", "tinyhw.__main__")   # above everything

WIDTH, HEIGHT, GAP, ROW, MARGIN = 222, 46, 18, 84, 12

def box_of(module: str) -> str:
  part = module.split(".")[1] if "." in module else ""
  return next((box for box, (modules, _) in WORDS.items() if part in modules.split()), "base")

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

def drawing() -> str:
  """The picture as SVG."""
  graph = edges()
  level, shown = rows(graph), reduced(graph)
  lines: dict[int, list[str]] = {}
  for box in WORDS: lines.setdefault(level[box], []).append(box)
  most = max(len(line) for line in lines.values())
  width = most * (WIDTH + GAP) - GAP + 2 * MARGIN
  height = (max(lines) + 1) * ROW - (ROW - HEIGHT) + 2 * MARGIN + 18
  at: dict[str, tuple[float, float]] = {}
  for k, line in sorted(lines.items()):
    left = (width - len(line) * (WIDTH + GAP) + GAP) / 2
    if k:   # near what they import
      line.sort(key=lambda box: sum(at[o][0] for o in shown[box]) / max(len(shown[box]), 1))
    for n, box in enumerate(line): at[box] = left + n * (WIDTH + GAP), height - MARGIN - 18 - HEIGHT - k * ROW
  out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">',
         f"<style>{STYLE}</style>",
         '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
         '<path d="M0 0 8 4 0 8z"/></marker></defs>']
  def arrow(upper: str, lower: str, kind: str) -> None:
    (x0, y0), (x1, y1) = at[upper], at[lower]
    x0, x1 = x0 + WIDTH / 2, x1 + WIDTH / 2
    if y0 < y1: y0 += HEIGHT
    else: y1 += HEIGHT
    bend = (y0 + y1) / 2
    out.append(f'<path class="{kind}" marker-end="url(#head)" d="M{x0:g} {y0:g}C{x0:g} {bend:g} {x1:g} {bend:g} '
               f'{x1:g} {y1:g}"/>')
  for box, others in shown.items():
    for other in sorted(others): arrow(box, other, "import")
  for box, other in BY_NAME.items(): arrow(box, other, "named")
  for box, (x, y) in at.items():
    modules, words = WORDS[box]
    title = modules.replace(" ", " · ") or "base"
    out += [f'<rect x="{x:g}" y="{y:g}" width="{WIDTH}" height="{HEIGHT}" rx="5"/>',
            f'<text x="{x + 10:g}" y="{y + 19:g}">{escape(title)}</text>',
            f'<text class="small" x="{x + 10:g}" y="{y + 36:g}">{escape(words)}</text>']
  out.append(f'<text class="small" x="{MARGIN}" y="{height - 6}">Arrows are imports, drawn from the files by '
             "test/house/picture.py; dashed: opened by name.</text>")
  return "\n".join([*out, "</svg>", ""])

if __name__ == "__main__": PICTURE.write_text(drawing(), encoding="utf-8")
