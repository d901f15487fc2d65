"""`graph_rewrite`: apply a `PatternMatcher` to every node of a graph until nothing changes.

Input: a node and all nodes below it. Output: its final form. Sources come first: a node is matched when its sources are
final. Its replacement is rewritten too. bottom_up=True is the other order: a node is matched before its sources are
visited, and again if they changed.

Each distinct node is matched once, because nodes are interned and results are kept in a memo. So the cost is linear in
the number of nodes that are created: 1 µs each plus the time of the rules. The walk is a loop with a stack, so depth
does not matter.

Rules that feed each other for ever make a chain of replacements, each of which waits for the next. A chain of
`LONGEST_CHAIN` raises PatternError.
"""
from __future__ import annotations
from typing import Any

from tinyhw import trace
from tinyhw.errors import PatternError
from tinyhw.uop.ops import UOp
from tinyhw.uop.rewrite.match import PatternMatcher

LONGEST_CHAIN = 20_000

class BottomUpGate(Exception):
  """Raised by a rule of a bottom-up rewrite: keep the node as it is and do not visit its sources."""

class Statistics:
  """The amount of work of all rewrites of this process. It is deterministic, for tests of how cost grows."""
  visited = 0   # nodes whose result was found
  replaced = 0  # nodes that a rule replaced

class Waiting:
  """Entry of the stack: nodes whose result is the result of their replacement, which is not known yet."""
  __slots__ = ("node", "rebuilt", "replacement")
  def __init__(self, node: UOp, rebuilt: UOp, replacement: UOp) -> None:
    self.node, self.rebuilt, self.replacement = node, rebuilt, replacement

class Ready:
  """Entry of the stack of a bottom-up rewrite: the sources of `matched`, which replaced `node`, have results."""
  __slots__ = ("node", "matched")
  def __init__(self, node: UOp, matched: UOp) -> None: self.node, self.matched = node, matched

class Rewriter:
  """A matcher with a memo that persists from call to call, so that only new nodes of a graph that grew are rewritten.
  The memo keeps its nodes alive.

  - pm: applied to nodes with final sources.
  - before: applied to nodes on the way down, if given.
  - walk: replacements are not rewritten again.
  """
  def __init__(self, pm: PatternMatcher | None, ctx: Any = None, before: PatternMatcher | None = None,
               name: str | None = None,
               walk: bool = False) -> None:
    self.pm, self.ctx, self.before, self.name, self.walk = pm, ctx, before, name, walk
    self.memo: dict[UOp, UOp] = {}

  def rewrite(self, sink: UOp) -> UOp:
    """Return the final form of sink. Raises PatternError if rules rewrite for ever."""
    found = self.memo.get(sink)
    if found is not None: return found
    known = len(self.memo)
    try:
      if self.before is not None: self._nodes_first(sink)
      else: self._sources_first(sink)
    finally: Statistics.visited += len(self.memo) - known
    return self.memo[sink]

  def _sources_first(self, sink: UOp) -> None:
    assert self.pm is not None, "a rewrite wants a PatternMatcher"
    memo, functions, ctx, walk = self.memo, self.pm.current(), self.ctx, self.walk
    inherit = trace.same_line if trace._origins else None  # asked once: usually no node has a line to inherit
    stack: list[Any] = [sink]
    chain = replaced = 0
    while stack:
      node = stack.pop()
      if node.__class__ is Waiting:
        memo[node.node] = memo[node.rebuilt] = memo[node.replacement]
        chain -= 1
        continue
      if node in memo: continue
      rebuilt, src = node, node.src
      if src:
        missing = [s for s in src if s not in memo]
        if missing:
          stack.append(node)
          if len(missing) > 1: missing.reverse()
          stack += missing
          continue
        new = tuple([memo[s] for s in src])
        if new != src:
          rebuilt = UOp(node.op, node.dtype, new, node.arg, node.tag)
          if inherit is not None: inherit(rebuilt, node)
          if rebuilt in memo:
            memo[node] = memo[rebuilt]
            continue
      function = functions[rebuilt.op]
      result = None if function is None else function(rebuilt, ctx)
      if result is None:
        memo[node] = memo[rebuilt] = rebuilt
        continue
      replaced += 1
      if result.__class__ is not UOp: raise self._not_a_node(rebuilt, result)
      if inherit is not None: inherit(result, node)
      if walk: memo[result] = result
      found = memo.get(result)
      if found is not None: memo[node] = memo[rebuilt] = found
      else:
        chain += 1
        if chain > LONGEST_CHAIN: raise self._endless(stack)
        stack.append(Waiting(node, rebuilt, result))
        stack.append(result)
    Statistics.replaced += replaced

  def _nodes_first(self, sink: UOp) -> None:
    memo, ctx = self.memo, self.ctx
    stack: list[Any] = [sink]
    chain = 0
    while stack:
      node = stack.pop()
      if node.__class__ is Waiting:
        memo[node.node] = memo[node.rebuilt] = memo[node.replacement]
        chain -= 1
      elif node.__class__ is Ready:
        matched = node.matched
        src = tuple([memo[s] for s in matched.src])
        rebuilt = matched if src == matched.src else UOp(matched.op, matched.dtype, src, matched.arg, matched.tag)
        result: UOp | None = rebuilt
        if rebuilt is not matched: trace.same_line(rebuilt, matched)
        else: result = None if self.pm is None else self.pm.rewrite(rebuilt, ctx)
        if result is None: memo[node.node] = memo[rebuilt] = rebuilt
        else:
          chain += 1
          if chain > LONGEST_CHAIN: raise self._endless(stack)
          stack += (Waiting(node.node, rebuilt if rebuilt is matched else node.node, result), result)
      elif node not in memo:
        matched = self._match_before(node)
        if matched in memo: memo[node] = memo[matched]
        else:
          stack.append(Ready(node, matched))
          stack.extend([s for s in reversed(matched.src) if s not in memo])

  def _match_before(self, node: UOp) -> UOp:
    """Apply the bottom-up rules to a node alone until none applies."""
    assert self.before is not None
    seen = {node}
    while True:
      try: result = self.before.rewrite(node, self.ctx)
      except BottomUpGate:
        self.memo[node] = node
        return node
      if result is None: return node
      Statistics.replaced += 1
      if result.__class__ is not UOp: raise self._not_a_node(node, result)
      trace.same_line(result, node)
      if result in seen or len(seen) > LONGEST_CHAIN: raise self._endless([Waiting(n, n, n) for n in list(seen)[-8:]])
      seen.add(result)
      node = result

  def _matchers(self) -> list[PatternMatcher]: return [m for m in (self.before, self.pm) if m is not None]

  def _rule_at(self, node: UOp) -> str | None:
    return next((name for m in self._matchers() if (name := m.which(node, self.ctx)) is not None), None)

  def _not_a_node(self, node: UOp, result: Any) -> PatternError:
    return PatternError(f"the rule {self._rule_at(node)} returned {result!r}; return a UOp, or None when the rule "
                        f"does not apply")

  def _endless(self, stack: list[Any]) -> PatternError:
    """The error for rules that rewrite for ever. It names the rules at the end of the chain."""
    last = [entry.rebuilt for entry in stack if entry.__class__ is Waiting][-8:]
    names = dict.fromkeys(name for node in last if (name := self._rule_at(node)) is not None)
    where = f" in {self.name}" if self.name else ""
    return PatternError(f"endless rewriting{where}: {LONGEST_CHAIN} replacements in a row, the last by "
                        f"{', '.join(names) or 'unknown rules'}, "
                        f"on {last[-1]}; a rule must not undo or repeat what another does")

def graph_rewrite(sink: UOp, pm: PatternMatcher | None, ctx: Any = None, bottom_up: bool = False,
                  name: str | None = None,
                  bpm: PatternMatcher | None = None, walk: bool = False) -> UOp:
  """Apply the rules of pm to sink and all nodes below it until none applies.

  - ctx: passed to the rules that want it.
  - bottom_up: match nodes before their sources.
  - name: for messages.
  - bpm: a second matcher, which matches nodes before their sources in the same walk.
  - walk: do not rewrite replacements again.
  """
  if bottom_up: return Rewriter(None, ctx, before=pm, name=name).rewrite(sink)
  return Rewriter(pm, ctx, before=bpm, name=name, walk=walk).rewrite(sink)

def graph_rewrite_map(sink: UOp, pm: PatternMatcher, ctx: Any = None, bottom_up: bool = False,
                      name: str | None = None) -> dict[UOp, UOp]:
  """As graph_rewrite, but return the result of each node of the graph."""
  rewriter = Rewriter(None, ctx, before=pm, name=name) if bottom_up else Rewriter(pm, ctx, name=name)
  return {u: rewriter.rewrite(u) for u in sink.toposort()}

