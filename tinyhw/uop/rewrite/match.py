"""`PatternMatcher`: a list of rules, compiled to one Python function for each op at the root of a node.

A rule is a pattern and a function of the nodes that it names (and of `ctx`, if it wants that). Rules are tried in
order. The first result that is neither None nor the node itself is the node's replacement.

The function of a root op is made at its first use, in these steps:

- Expand every pattern that fits the op into ordered alternatives. Commutative operands give both orders.
- Convert each alternative into a list of tests, cheap and selective ones first.
- Merge equal first tests of consecutive alternatives.
- Write the tests as nested `if`s around the call of the rule.

Facts known beforehand (number of operands of an ALU op, the root's op) are not tested.

Cost for the rules of symbolic.py (Python 3.11, Zen 3): 0.5 to 1 µs a node if no rule applies, and 1 ms to compile a
root op. The interpreter (compiled=False) takes 33 µs. It stays as the oracle.
"""
from __future__ import annotations
import itertools
from typing import Any
from collections.abc import Callable, Iterable, Iterator, Sequence

from tinyhw import trace
from tinyhw.dtype import DType
from tinyhw.errors import PatternError
from tinyhw.uop.enums import GroupOp, Ops
from tinyhw.uop.ops import UOp
from tinyhw.uop.upat import UPat

RuleFunction = Callable[..., Any]
RootFunction = Callable[[UOp, Any], UOp | None]

class Rule:
  """A function with the patterns for which it is called, made by the decorator `rule`. To call it calls the
  function."""
  def __init__(self, patterns: tuple[UPat, ...], function: RuleFunction) -> None:
    self.patterns, self.function = patterns, function
    self.__doc__, self.__name__ = function.__doc__, function.__name__

  def __call__(self, *args: Any, **kwargs: Any) -> Any: return self.function(*args, **kwargs)
  def __repr__(self) -> str: return f"Rule({self.__name__})"

def rule(*patterns: UPat) -> Callable[[RuleFunction], Rule]:
  """Decorator: call the function for each match of one of the patterns, with the named nodes as its arguments."""
  return lambda function: Rule(patterns, function)

def rule_name(function: RuleFunction) -> str:
  """The name of a rule in messages: its function's name, or a lambda's file and line."""
  code = getattr(function, "__code__", None)
  name = getattr(function, "__name__", repr(function))
  return f"lambda at {code.co_filename}:{code.co_firstlineno}" if name == "<lambda>" and code is not None else str(name)

# number of sources of the ops for which it is fixed
ARITY: dict[Ops, int] = {**{op: 1 for op in GroupOp.Unary | {Ops.CAST, Ops.BITCAST}},
                         **{op: 2 for op in GroupOp.Binary},
                         **{op: 3 for op in GroupOp.Ternary}}

# ***** the call of a rule's function *****

class Parameters:
  """The parameters of a function.

  - names: in order; the first `required` ones have no default.
  - open: it takes keywords.
  - context: it takes ctx.
  """
  def __init__(self, function: RuleFunction) -> None:
    target = getattr(function, "__func__", function)
    code = getattr(target, "__code__", None)
    self.open = code is None or bool(code.co_flags & 0x0c) or code.co_kwonlyargcount > 0   # *args, **kwargs
    self.names: tuple[str, ...] = ()
    self.context = code is not None and "ctx" in code.co_varnames[:code.co_argcount + code.co_kwonlyargcount]
    if code is None: return
    self.names = code.co_varnames[(target is not function):code.co_argcount]
    self.required = len(self.names) - len(target.__defaults__ or ())

def argument_text(function: RuleFunction, captured: dict[str, str]) -> str:
  """The argument list for a call of a rule's function. captured: the captured names with their expressions."""
  wants = Parameters(function)
  if wants.open:
    context = ["ctx=ctx"] if wants.context else []
    return ", ".join(context + [f"{name}={text}" for name, text in captured.items()])
  unknown = [name for name in captured if name not in wants.names]
  missing = [name for name in wants.names[:wants.required] if name not in captured and name != "ctx"]
  if unknown or missing:
    problem = (f"does not take {unknown[0]!r}, which its pattern names" if unknown else f"wants {missing[0]!r}, which "
               f"its pattern does not name")
    raise PatternError(f"the rule {rule_name(function)} {problem}; use the same names in both")
  texts: list[str] = []
  for i, name in enumerate(wants.names):
    if name == "ctx" and "ctx" not in captured: texts.append("ctx" if len(texts) == i else "ctx=ctx")
    elif name in captured: texts.append(captured[name] if len(texts) == i else f"{name}={captured[name]}")
  return ", ".join(texts)

# ***** alternatives: patterns without choices *****

class Alternative:
  """One ordered form of a pattern: `patterns` are the tests on the node itself, `sources` those on its sources in
  order."""
  __slots__ = ("patterns", "sources", "exact", "each")

  def __init__(self, patterns: tuple[UPat, ...], sources: tuple[Alternative, ...] | None, exact: bool,
               each: UPat | None) -> None:
    self.patterns, self.sources, self.exact, self.each = patterns, sources, exact, each

def alternatives(pattern: UPat, count: int | None = None) -> Iterator[Alternative]:
  """Yield all ordered forms of a pattern, in the order in which the interpreter finds them. count: the node's number of
  sources, if it is known."""
  if pattern.choices:
    for choice in pattern.choices:
      for alternative in alternatives(choice, count):
        yield Alternative((pattern,) + alternative.patterns, alternative.sources, alternative.exact, alternative.each)
  elif pattern.each is not None and count is not None:
    for sources in itertools.product(list(alternatives(pattern.each)), repeat=count):
      yield Alternative((pattern,), sources, True, None)
  elif not pattern.orders: yield Alternative((pattern,), None, False, pattern.each)
  else:
    for order in pattern.orders:
      for sources in itertools.product(*[list(alternatives(p)) for p in order]):
        yield Alternative((pattern,), sources, not pattern.any_length, None)

# ***** source text *****

class Emitter:
  """Writer of the function of one root op. It collects the values that the text refers to (ops, types, functions) in
  `values`.

  reports: the function tells the recorder which rule replaced a node.
  """
  def __init__(self, op: Ops, reports: bool = False) -> None:
    self.op = op
    self.values: dict[str, Any] = {"report": report} if reports else {}
    self.answer = "return report({}, u, r)" if reports else "return r"
    self._named: dict[Any, str] = {}
    self.width = 0  # the number of sources of the root that are tested
    self.root_types: dict[str, str] = {}  # tests of the root's type, evaluated once

  def value(self, value: Any, prefix: str) -> str:
    """A name for a value in the text."""
    if isinstance(value, Ops) and prefix == "o":
      self.values[value.name] = value
      return value.name
    key = value if isinstance(value, frozenset) else id(value)  # arguments may be unhashable, and 1 == True
    name = self._named.get(key)
    if name is None:
      name = self._named[key] = f"{prefix}{len(self.values)}"
      self.values[name] = value
    return name

  def op_test(self, ops: Sequence[Ops], text: str) -> str:
    if len(ops) <= 2: return " or ".join(f"{text} is {self.value(op, 'o')}" for op in ops)
    key = frozenset(ops)
    self.values["O" + "_".join(str(int(op)) for op in sorted(key))] = key
    return f"{text} in O" + "_".join(str(int(op)) for op in sorted(key))

  def type_test(self, dtypes: Sequence[DType], node: str) -> str:
    name, relation = (self.value(dtypes[0], "d"), "is") if len(dtypes) == 1 else (self.value(frozenset(dtypes), "d"),
                                                                                  "in")
    return f"{node}.dtype {relation} {name} or {node}.dtype._scalar {relation} {name}"

  def own_tests(self, pattern: UPat, node: str) -> Iterator[str]:
    """Yield the tests on type, argument and the like of one node. Its op is tested elsewhere."""
    if pattern.dtype is not None:
      test = self.type_test(pattern.dtype, node)
      if node == "u": test = self.root_types.setdefault(test, f"type_{len(self.root_types)}")
      yield f"if {test}:"
    if pattern.arg is not None: yield f"if {self.value(pattern.arg, 'a')} == {node}.arg:"
    if pattern.scalar_only: yield f"if {node}.dtype.count == 1:"
    if pattern.custom_early_reject is not None:
      yield f"if {self.value(pattern.custom_early_reject, 'r')} <= {{s.op for s in {node}.src}}:"

  def steps(self, root: Alternative) -> tuple[list[str], dict[str, str]]:
    """The tests and assignments, in order, that decide an alternative, and the expression of each captured name."""
    steps: list[str] = []
    captured: dict[str, str] = {}
    level: list[tuple[Alternative, str]] = [(root, "u")]
    while level:  # level by level: nodes nearer to the root are cheaper to reach
      below: list[tuple[Alternative, str]] = []
      for alternative, node in level:
        for pattern in alternative.patterns:
          if pattern.name is None: continue
          if pattern.name in captured: steps.append(f"if {node} is {captured[pattern.name]}:")
          else: captured[pattern.name] = node
      for alternative, node in level:
        for pattern in alternative.patterns: steps.extend(self.own_tests(pattern, node))
        if alternative.each is not None:
          if alternative.each.op is not None or alternative.each.orders:
            steps.append(f"if all([{self.value(alternative.each, 'p')}.match(s, {{}}) for s in {node}.src]):")
        if alternative.sources is not None: below.extend(self.open_sources(alternative, node, steps))
      level = below
    return steps, captured

  def open_sources(self, alternative: Alternative, node: str, steps: list[str]) -> list[tuple[Alternative, str]]:
    """Name the sources of a node and test their ops. The rightmost operand comes first, since it is the constant."""
    sources = alternative.sources
    assert sources is not None
    names = [f"{node}_{i}" for i in range(len(sources))]
    ops = [self.op] if node == "u" else next((list(p.op) for p in alternative.patterns if p.op is not None), [])
    known = bool(ops) and alternative.exact and all(ARITY.get(op) == len(sources) for op in ops)
    if not known: steps.append(f"if len({node}.src) {'==' if alternative.exact else '>='} {len(sources)}:")
    wanted = [i for i, s in enumerate(sources) if s.each is not None or s.sources is not None
              or any(p.op is not None or p.name is not None or p.dtype is not None or p.arg is not None
                     for p in s.patterns)]
    if node == "u": self.width = max([self.width] + [i + 1 for i in wanted])
    elif alternative.exact and wanted and len(sources) > 1: steps.append(f"{', '.join(names)} = {node}.src")
    else: steps.extend(f"{names[i]} = {node}.src[{i}]" for i in wanted)
    for i in reversed(wanted):
      for pattern in sources[i].patterns:
        if pattern.op is not None:
          steps.append(f"if {self.op_test(pattern.op, f'op_{i}' if node == 'u' else names[i] + '.op')}:")
    return [(sources[i], names[i]) for i in wanted]

  def body(self, pattern: UPat, function: RuleFunction) -> Iterator[tuple[list[str], list[str]]]:
    """Yield (steps, statements after them) for each alternative of a rule."""
    call = self.value(function, "f")
    count = ARITY.get(self.op)
    left = _needs_interpreter(pattern, count)
    choices = [] if left else list(itertools.islice(alternatives(pattern, count), MOST_ALTERNATIVES + 1))
    if not choices or len(choices) > MOST_ALTERNATIVES:
      self.values["interpret"] = interpret
      yield [], [f"r = interpret({self.value(pattern, 'p')}, {call}, u, ctx)",
                 f"if r is not None: {self.answer.format(call)}"]
      return
    for alternative in choices:
      if any(p.op is not None and self.op not in p.op for p in alternative.patterns): continue
      steps, captured = self.steps(alternative)
      yield steps, [f"r = {call}({argument_text(function, captured)})",
                    f"if r is not None and r is not u: {self.answer.format(call)}"]

  def function_text(self, rules: Iterable[tuple[UPat, RuleFunction]]) -> str:
    bodies = [body for pattern, function in rules for body in self.body(pattern, function)]
    lines = ["def match(u, ctx):"]
    n = self.width
    if n and ARITY.get(self.op, -1) >= n:
      lines.append("  " + ", ".join(f"u_{i}" for i in range(ARITY[self.op])) + f"{',' * (n == 1)} = u.src")
    elif n:
      lines.append("  count = len(u.src)")
      # a length test precedes every real use
      lines += [f"  u_{i} = u.src[{i}] if count > {i} else u" for i in range(n)]
    lines += [f"  op_{i} = u_{i}.op" for i in range(n)]
    lines += [f"  {name} = {test}" for test, name in self.root_types.items()]
    _nest(bodies, 0, "  ", lines)
    lines.append("  return None")
    return "\n".join(lines)

MOST_ALTERNATIVES = 64  # patterns with more alternatives are interpreted

def _needs_interpreter(pattern: UPat, count: int | None = None) -> bool:
  """Whether some source is an "each source matches" pattern with names, for an unknown number of sources. One name then
  stands for many nodes."""
  if pattern.each is not None and count is None and _names(pattern.each): return True
  below = [p for order in pattern.orders[:1] for p in order]
  return any(_needs_interpreter(p) for p in below) or any(_needs_interpreter(p, count) for p in pattern.choices)

def _names(pattern: UPat) -> dict[str, None]:
  """The names in a pattern. All choices must define the same ones."""
  found: dict[str, None] = {} if pattern.name is None else {pattern.name: None}
  below = list(pattern.choices) + [p for order in pattern.orders[:1] for p in order] + ([] if pattern.each is None
                                                                                        else [pattern.each])
  for p in below: found.update(_names(p))
  return found

def _nest(bodies: list[tuple[list[str], list[str]]], depth: int, indent: str, lines: list[str]) -> None:
  """Write bodies as nested ifs. Consecutive bodies with equal steps up to here share them."""
  i = 0
  while i < len(bodies):
    steps, body = bodies[i]
    if depth == len(steps):
      lines.extend(indent + line for line in body)
      i += 1
      continue
    end = i + 1
    while end < len(bodies) and len(bodies[end][0]) > depth and bodies[end][0][depth] == steps[depth]: end += 1
    lines.append(indent + steps[depth])
    _nest(bodies[i:end], depth + 1, indent + "  " * steps[depth].startswith("if "), lines)
    i = end

# ***** the matcher *****

RuleLike = Rule | tuple[UPat, RuleFunction]

class PatternMatcher:
  """Rules, tried in order.

  `a + b` tries the rules of a first. compiled=False interprets the patterns. That is slow, and the oracle of tests.
  """
  def __init__(self, patterns: Iterable[RuleLike], compiled: bool = True) -> None:
    self.patterns: list[tuple[UPat, RuleFunction]] = []
    for item in patterns:
      if isinstance(item, Rule): self.patterns.extend((p, item.function) for p in item.patterns)
      else: self.patterns.append((item[0], item[1]))
    for pattern, function in self.patterns:
      if not isinstance(pattern, UPat) or not callable(function):
        raise PatternError(f"a rule is {pattern!r}, {function!r}; give (UPat, function) pairs or what @rule made")
    self.compiled = compiled
    self.functions = self._lists(False)  # by int(op); None: no rule has that root
    self.reporting: list[RootFunction | None] | None = None  # the same functions, telling the recorder

  def _lists(self, reports: bool) -> list[RootFunction | None]:
    made: list[RootFunction | None] = []
    made += [self._first_use(op, made, reports) for op in _ALL_OPS]
    return made

  def current(self) -> list[RootFunction | None]:
    """The functions by root op, or their reporting versions while there is a recorder."""
    if trace.recorder is None: return self.functions
    if self.reporting is None: self.reporting = self._lists(True)
    return self.reporting

  def __add__(self, more: PatternMatcher) -> PatternMatcher:
    return PatternMatcher(self.patterns + more.patterns, self.compiled and more.compiled)
  def __reduce__(self) -> Any: return PatternMatcher, (self.patterns, self.compiled)
  def __repr__(self) -> str: return f"PatternMatcher({len(self.patterns)} rules)"

  def rewrite(self, uop: UOp, ctx: Any = None) -> UOp | None:
    """Return the replacement by the first applicable rule, or None."""
    function = self.current()[uop.op]
    return None if function is None else function(uop, ctx)

  def rules_for(self, op: Ops) -> list[tuple[UPat, RuleFunction]]:
    """The rules whose root can have this op."""
    return [(pattern, function) for pattern, function in self.patterns if op in root_ops(pattern)]

  def source(self, op: Ops) -> str:
    """The text of the compiled function for a root op, to debug rules."""
    return Emitter(op).function_text(self.rules_for(op))

  def which(self, uop: UOp, ctx: Any = None) -> str | None:
    """The name of the rule that applies to a node, for messages. It calls the rules' functions."""
    for pattern, function in self.rules_for(uop.op):
      if interpret(pattern, function, uop, ctx) is not None: return rule_name(function)
    return None

  def _first_use(self, op: Ops, functions: list[RootFunction | None], reports: bool) -> RootFunction:
    def compile_and_match(uop: UOp, ctx: Any) -> UOp | None:
      function = functions[op] = self._function(op, reports)
      return None if function is None else function(uop, ctx)
    return compile_and_match

  def _function(self, op: Ops, reports: bool) -> RootFunction | None:
    rules = self.rules_for(op)
    if not rules: return None
    if not self.compiled:
      return lambda uop, ctx: next((report(f, uop, r) if reports else r for p, f in rules
                                    if (r := interpret(p, f, uop, ctx)) is not None), None)
    emitter = Emitter(op, reports)
    code = compile(emitter.function_text(rules), f"<tinyhw rules of {op.name}>", "exec")
    exec(code, emitter.values)
    return emitter.values["match"]  # type: ignore[no-any-return]  # compiled code gives Any

def report(function: RuleFunction, uop: UOp, result: Any) -> Any:
  """Tell the recorder that a rule replaced a node, and return the rule's result."""
  if trace.recorder is not None: trace.recorder.rewrite(function, uop, result)
  return result

_ALL_OPS = tuple(Ops(i) if i else Ops(1) for i in range(max(Ops) + 1))  # by number; Ops start at 1
_EVERY_OP = frozenset(Ops)

def root_ops(pattern: UPat) -> frozenset[Ops]:
  """The ops that the root of a matching node may have."""
  own = _EVERY_OP if pattern.op is None else frozenset(pattern.op)
  return own & frozenset().union(*[root_ops(p) for p in pattern.choices]) if pattern.choices else own

def interpret(pattern: UPat, function: RuleFunction, uop: UOp, ctx: Any) -> UOp | None:
  """Apply one rule without compiling it."""
  wants = Parameters(function)
  for captured in pattern.match(uop, {}):
    extra = {"ctx": ctx} if wants.context else {}
    result = function(**extra, **captured)
    if result is not None and result is not uop: return result  # type: ignore[no-any-return]  # a rule returns Any
  return None
