"""Parser of kernels in Metal's language: tokens become a tree. It knows grammar, and no types.

The subset is the one that codegen/render/metal.py writes: inline helpers of one return, one or more kernels, scalars,
vectors, pointers, counted loops, conditions, declarations and assignments. Other statements are refused by line.
"""
from __future__ import annotations
from collections.abc import Callable

from tinyhw.emulator.metal.words import SourceError, MslToken, tokens
from tinyhw.named_tuple import NamedTuple

SCALARS = ("bool", "char", "uchar", "short", "ushort", "int", "uint", "long", "ulong", "half", "float")
VECTORS = {f"{name}{count}": (name, count) for name in SCALARS for count in (2, 4)}   # those of 3 have padding
MATRICES = {"simdgroup_float8x8": "float", "simdgroup_half8x8": "half"}
SPACES = ("device", "constant", "threadgroup", "thread")
LEVELS = (("||",), ("&&",), ("|",), ("^",), ("&",), ("==", "!="), ("<", ">", "<=", ">="), ("<<", ">>"), ("+", "-"),
          ("*", "/", "%"))    # binary operators, the loosest first

class TypeName(NamedTuple):
  """A type as it is written. space: of a pointer or reference; mark: "*", "&" or empty."""
  name: str
  space: str = ""
  mark: str = ""

class Expr(NamedTuple):
  """An expression. kind: number, name, unary, binary, choice, cast, call, index, member, deref; text: its operator,
  name or literal."""
  kind: str
  line: int
  text: str = ""
  parts: tuple[Expr, ...] = ()
  type: TypeName | None = None

class Stmt(NamedTuple):
  """A statement. kind: declare, assign, if, for, block, barrier, matrix, element, multiply, return."""
  kind: str
  line: int
  name: str = ""
  type: TypeName | None = None
  parts: tuple[Expr, ...] = ()
  body: tuple[Stmt, ...] = ()

class Argument(NamedTuple):
  """An argument of a function. attribute: its name and number, such as ("buffer", 0)."""
  type: TypeName
  name: str
  attribute: tuple[str, int] = ("", 0)

class FunctionTree(NamedTuple):
  """A function. result: None of kernels. structures: those that an argument may be, by name: types and names."""
  name: str
  line: int
  arguments: tuple[Argument, ...]
  body: tuple[Stmt, ...]
  result: TypeName | None = None
  structures: dict[str, tuple[Argument, ...]] = {}

class MslParser:
  """One source. at: the position of the next token."""
  def __init__(self, source: str):
    self.tokens, self.at = tokens(source), 0
    self.structures: dict[str, tuple[Argument, ...]] = {}

  # **** tokens ****

  @property
  def next(self) -> MslToken: return self.tokens[self.at]

  def take(self) -> MslToken:
    self.at += 1
    return self.tokens[self.at - 1]

  def is_next(self, *texts: str) -> bool:
    """Are the next tokens these?"""
    return all(self.tokens[min(self.at + k, len(self.tokens) - 1)].text == text for k, text in enumerate(texts))

  def expect(self, *texts: str) -> MslToken:
    """Take these tokens. Return the last one."""
    for text in texts:
      if self.next.text != text: raise SourceError(self.next.line, f"expected {text!r}, found {self.next.text!r}")
      found = self.take()
    return found

  def name(self) -> str:
    if self.next.kind != "name": raise SourceError(self.next.line, f"expected a name, found {self.next.text!r}")
    return self.take().text

  def listed(self, read: Callable[[], Expr]) -> tuple[Expr, ...]:
    """Read "(a, b, ...)"."""
    self.expect("(")
    found = [] if self.is_next(")") else [read()]
    while self.is_next(","):
      self.take()
      found.append(read())
    self.expect(")")
    return tuple(found)

  # **** functions ****

  def program(self) -> list[FunctionTree]:
    """Return the functions of the source, in order."""
    found: list[FunctionTree] = []
    while self.next.kind != "end":
      if self.is_next("using"): self.expect("using", "namespace", "metal", ";")
      elif self.is_next("struct"): self.structure()
      elif self.is_next("kernel"): found.append(self.function(is_kernel=True))
      elif self.is_next("inline"): found.append(self.function(is_kernel=False))
      else: raise SourceError(self.next.line, f"{self.next.text!r} begins no function of the subset of kernels")
    return found

  def structure(self) -> None:
    """Read a structure of pointers."""
    line = self.take().line
    name, found = self.name(), list[Argument]()
    if name in self.structures: raise SourceError(line, f"redefinition of {name!r}")
    self.expect("{")
    while not self.is_next("}"):
      kind, word = self.type(), self.name()
      if (kind.space, kind.mark) != ("device", "*") or word in [a.name for a in found]:
        raise SourceError(line, "a structure of the subset of kernels has pointers to device memory, each once")
      found.append(Argument(kind, word))
      self.expect(";")
    self.expect("}", ";")
    self.structures[name] = tuple(found)

  def function(self, is_kernel: bool) -> FunctionTree:
    line = self.take().line
    result = None if is_kernel else self.type()
    if is_kernel: self.expect("void")
    name = self.name()
    self.expect("(")
    arguments: list[Argument] = []
    while not self.is_next(")"):
      if arguments: self.expect(",")
      arguments.append(self.argument())
    self.expect(")")
    return FunctionTree(name, line, tuple(arguments), self.block(), result, self.structures)

  def argument(self) -> Argument:
    kind, name = self.type(), self.name()
    if not self.is_next("[", "["): return Argument(kind, name)
    self.expect("[", "[")
    attribute, number = self.name(), 0
    if self.is_next("("):
      self.take()
      if not self.next.text.isdecimal():
        raise SourceError(self.next.line, f"{attribute} takes a number, found {self.next.text!r}")
      number = int(self.take().text)
      self.expect(")")
    self.expect("]", "]")
    return Argument(kind, name, (attribute, number))

  # **** types ****

  def is_type(self) -> bool:
    return self.next.text in (*SCALARS, *VECTORS, *MATRICES, *SPACES, "const")

  def type(self) -> TypeName:
    space = ""
    if self.is_next("const"): self.take()
    if self.next.text in SPACES: space = self.take().text
    if self.is_next("const"): self.take()
    name = self.name()
    if name not in (*SCALARS, *VECTORS, *MATRICES, *(self.structures if space == "constant" else ())):
      raise SourceError(self.tokens[self.at - 1].line, f"unknown type name {name!r}")
    mark = self.take().text if self.next.text in ("*", "&") and space else ""
    return TypeName(name, space, mark)

  # **** statements ****

  def block(self) -> tuple[Stmt, ...]:
    self.expect("{")
    found: list[Stmt] = []
    while not self.is_next("}"): found.append(self.statement())
    self.expect("}")
    return tuple(found)

  def statement(self) -> Stmt:
    line, text = self.next.line, self.next.text
    if text == "{": return Stmt("block", line, body=self.block())
    if text == "if": return self.condition()
    if text == "for": return self.loop()
    if text == "return":
      self.take()
      found = Stmt("return", line, parts=(self.expression(),))
    elif text in MATRICES:
      kind = self.type()
      found = Stmt("matrix", line, self.name(), kind)
    elif self.is_type():
      kind = self.type()
      name = self.name()
      self.expect("=")
      found = Stmt("declare", line, name, kind, (self.expression(),))
    elif text in ("threadgroup_barrier", "simdgroup_barrier"):
      self.take()
      self.expect("(", "mem_flags", "::")
      found = Stmt("barrier", line, f"{text} {self.name()}")
      self.expect(")")
    elif text == "simdgroup_multiply_accumulate":
      self.take()
      found = Stmt("multiply", line, parts=self.listed(self.expression))
    else: found = self.assignment()
    self.expect(";")
    return found

  def assignment(self) -> Stmt:
    line, place = self.next.line, self.unary()
    self.expect("=")
    return Stmt("assign", line, parts=(place, self.expression()))

  def condition(self) -> Stmt:
    line = self.expect("if", "(").line
    gate = self.expression()
    self.expect(")")
    body = self.block() if self.is_next("{") else (self.statement(),)
    if self.is_next("else"): raise SourceError(self.next.line, "else is not in the subset of kernels")
    return Stmt("if", line, parts=(gate,), body=body)

  def loop(self) -> Stmt:
    line = self.expect("for", "(").line
    kind, name = self.type(), self.name()
    self.expect("=")
    start = self.expression()
    self.expect(";", name, "<")
    end = self.expression()
    self.expect(";", name, "++", ")")
    return Stmt("for", line, name, kind, (start, end), self.block())

  # **** expressions ****

  def expression(self) -> Expr:
    gate = self.binary(0)
    if not self.is_next("?"): return gate
    line = self.take().line
    one = self.expression()
    self.expect(":")
    return Expr("choice", line, parts=(gate, one, self.expression()))

  def binary(self, level: int) -> Expr:
    if level == len(LEVELS): return self.unary()
    found = self.binary(level + 1)
    while self.next.kind == "sign" and self.next.text in LEVELS[level]:
      sign = self.take()
      found = Expr("binary", sign.line, sign.text, (found, self.binary(level + 1)))
    return found

  def unary(self) -> Expr:
    line, text = self.next.line, self.next.text
    if text in ("-", "!", "~", "*"):
      self.take()
      return Expr("deref" if text == "*" else "unary", line, text, (self.unary(),))
    if text == "(" and self.tokens[self.at + 1].text in (*SCALARS, *VECTORS, *SPACES):
      self.take()
      kind = self.type()
      self.expect(")")
      return Expr("cast", line, parts=(self.unary(),), type=kind)
    return self.postfix()

  def postfix(self) -> Expr:
    found = self.primary()
    while True:
      line = self.next.line
      if self.is_next("["):
        self.take()
        found = Expr("index", line, parts=(found, self.expression()))
        self.expect("]")
      elif self.is_next("."):
        self.take()
        found = Expr("member", line, self.name(), (found,))
        if found.text == "thread_elements": self.expect("(", ")")
      else: return found

  def primary(self) -> Expr:
    word = self.take()
    if word.kind == "number": return Expr("number", word.line, word.text)
    if word.text == "(":
      found = self.expression()
      self.expect(")")
      return found
    if word.kind != "name": raise SourceError(word.line, f"{word.text!r} begins no expression")
    name, kind = word.text, None
    if name == "as_type":
      self.expect("<")
      kind = self.type()
      self.expect(">")
    elif self.is_next("::"):
      self.take()
      name = f"{name}::{self.name()}"
    if self.is_next("("): return Expr("call", word.line, name, self.listed(self.expression), kind)
    return Expr("name", word.line, name)

def parse(source: str) -> list[FunctionTree]:
  """Return the functions of a source. Raises SourceError."""
  return MslParser(source).program()
