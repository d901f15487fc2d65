"""Read declarations of C headers: macros, enumerations, and the layout of structures. generate.py makes tables of them.

`read` takes the text of a header and returns a `Header`. Macros keep their text. `Header.value` computes constant
expressions, with macros that take arguments, enumerators, sizeof and the kernel's _IOWR. Structures have the layout of
64-bit Linux: arrays, nested and unnamed structures and unions, bit-fields, packed ones. Declarations of included files
are unknown. Functions and variables are skipped.
"""
from __future__ import annotations
import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

class HeaderError(ValueError):
  """A header, or an expression of it, that cannot be read."""

class Macro(NamedTuple):
  """A macro. parameters: None if it takes no arguments."""
  parameters: tuple[str, ...] | None
  tokens: tuple[str, ...]

class Member(NamedTuple):
  """A member of a structure.

  name: "" for an unnamed structure or union. kind: its declared type. counts: of an array. offset, size: in bytes.
  bits: for a bit-field, its first bit from the offset, and its width.
  """
  name: str
  kind: str
  offset: int
  size: int
  counts: tuple[int, ...] = ()
  bits: tuple[int, int] | None = None
  inner: Struct | None = None

class Struct(NamedTuple):
  """A structure or union. size, alignment: bytes."""
  name: str
  size: int
  alignment: int
  members: tuple[Member, ...]

  def flat(self, start: int = 0, prefix: str = "") -> Iterator[Member]:
    """Yield the members without inner structures. Members of inner structures are "a.b", with offsets from the
    beginning."""
    for member in self.members:
      name = prefix + member.name
      if member.inner is None or member.counts: yield member._replace(name=name, offset=start + member.offset)
      else: yield from member.inner.flat(start + member.offset, f"{name}." if member.name else prefix)

SIZES = {"char": 1, "short": 2, "int": 4, "long": 8, "unsigned": 4, "signed": 4, "float": 4, "double": 8, "bool": 1,
         "_Bool": 1,
         **{f"{sign}{bits}": bits // 8 for sign in ("__u", "__s", "__le", "u", "s") for bits in (8, 16, 32, 64)},
         **{f"{sign}int{bits}_t": bits // 8 for sign in ("", "u") for bits in (8, 16, 32, 64)},
         "size_t": 8, "uintptr_t": 8, "__aligned_u64": 8, "long long": 8}
POINTER = 8
ENUM = "int"
TOKEN = re.compile(r"""\s+|(?P<number>0[xX][0-9a-fA-F]+|\d+)[uUlL]*|(?P<name>[A-Za-z_]\w*)|(?P<char>'(?:\\.|[^'\\])')|(?P<text>"(?:\\.|[^"\\])*")
                       |(?P<sign><<|>>|<=|>=|==|!=|&&|\|\||->|\.\.\.|[!-/:-@\[-`{-~])""", re.X)
# Binary operators, the lowest precedence first
LEVELS: tuple[dict[str, Callable[[int, int], int]], ...] = (
  {"||": lambda a, b: int(bool(a or b))}, {"&&": lambda a, b: int(bool(a and b))}, {"|": lambda a, b: a | b},
  {"^": lambda a, b: a ^ b},
  {"&": lambda a, b: a & b}, {"==": lambda a, b: int(a == b), "!=": lambda a, b: int(a != b)},
  {"<": lambda a, b: int(a < b), ">": lambda a, b: int(a > b), "<=": lambda a, b: int(a <= b), ">=": lambda a,
   b: int(a >= b)},
  {"<<": lambda a, b: a << b, ">>": lambda a, b: a >> b}, {"+": lambda a, b: a + b, "-": lambda a, b: a - b},
  {"*": lambda a, b: a * b, "/": lambda a, b: int(a / b), "%": lambda a, b: a - int(a / b) * b},
)
DIRECTIONS = {"_IO": 0, "_IOW": 1, "_IOR": 2, "_IOWR": 3}  # of an ioctl's number, as asm-generic/ioctl.h makes it
DEEPEST = 32                                               # nesting of macros

def tokens_of(text: str) -> tuple[str, ...]:
  """Return the words of C, without white space and without suffixes of numbers."""
  found, place = list[str](), 0
  while place < len(text):
    match = TOKEN.match(text, place)
    if match is None: raise HeaderError(f"no token of C begins at {text[place:place + 20]!r}")
    if match.lastgroup is not None: found.append(match[match.lastgroup])
    place = match.end()
  return tuple(found)

class Header:
  """The declarations of a header: macros, constants (enumerators), structures by name (unions too)."""
  def __init__(self) -> None:
    self.macros: dict[str, Macro] = {}
    self.constants: dict[str, int] = {}
    self.structs: dict[str, Struct] = {}
    self.types: dict[str, tuple[int, int, Struct | None]] = {}  # typedefs: size, alignment

  def value(self, name: str) -> int:
    """Return the value of a macro without arguments, or of an enumerator.

    Raises HeaderError if there is none, or if it is no number.
    """
    return Expression(self, (name,)).whole()

  def ioctl(self, name: str) -> tuple[int, Struct | None]:
    """Return the number of a call, and the structure that it takes."""
    number, macro = self.value(name), self.macros[name]
    taken = [word for before, word in zip(macro.tokens, macro.tokens[1:]) if before == "struct"]
    return number, self.structs.get(taken[-1]) if taken else None

class Expression:
  """A constant expression, evaluated as it is read."""
  def __init__(self, header: Header, tokens: tuple[str, ...], depth: int = 0):
    self.header, self.tokens, self.place, self.depth = header, tokens, 0, depth
    if depth > DEEPEST: raise HeaderError(f"macros contain each other: {' '.join(tokens[:8])}")

  def whole(self) -> int:
    result = self.choice()
    if self.place < len(self.tokens):
      raise HeaderError(f"{' '.join(self.tokens)}: {self.tokens[self.place]!r} is left over")
    return result

  def peek(self) -> str: return self.tokens[self.place] if self.place < len(self.tokens) else ""

  def take(self, wanted: str = "") -> str:
    word = self.peek()
    if not word or wanted and word != wanted:
      raise HeaderError(f"{' '.join(self.tokens)}: {wanted or 'a value'} is expected, not {word or 'the end'}")
    self.place += 1
    return word

  def choice(self) -> int:
    condition = self.binary(0)
    if self.peek() != "?": return condition
    self.take()
    first = self.choice()
    self.take(":")
    second = self.choice()
    return first if condition else second

  def binary(self, level: int) -> int:
    if level == len(LEVELS): return self.unary()
    left = self.binary(level + 1)
    while self.peek() in LEVELS[level]:
      operation = LEVELS[level][self.take()]
      right = self.binary(level + 1)
      try: left = operation(left, right)
      except ZeroDivisionError: raise HeaderError(f"{' '.join(self.tokens)}: a division by 0") from None
    return left

  def unary(self) -> int:
    word = self.take()
    if word in ("-", "+", "~", "!"):
      value = self.unary()
      return {"-": -value, "+": value, "~": ~value, "!": int(not value)}[word]
    if word == "(":
      if self.peek() in SIZES or self.peek() in self.header.types:   # a cast, whose width does not matter here
        while self.take() != ")": pass
        return self.unary()
      value = self.choice()
      self.take(")")
      return value
    if word.startswith("'"): return ord(word[1:-1].encode().decode("unicode_escape"))
    if word[0].isdigit(): return int(word, 0) if not re.fullmatch(r"0\d+", word) else int(word, 8)
    return self.named(word)

  def named(self, word: str) -> int:
    """Return the value of a name: sizeof, an ioctl's number, a macro, an enumerator."""
    header = self.header
    if word == "sizeof": return Parser(header, self.arguments()[0]).size()
    if word in DIRECTIONS and word not in header.macros:
      kind, number, *taken = self.arguments()
      size = Parser(header, taken[0]).size() if taken else 0
      values = [Expression(header, part, self.depth + 1).whole() for part in (kind, number)]
      return DIRECTIONS[word] << 30 | size << 16 | values[0] << 8 | values[1]
    if word in header.constants: return header.constants[word]
    macro = header.macros.get(word)
    if macro is None: raise HeaderError(f"{word} is not declared here")
    if macro.parameters is None: return Expression(header, macro.tokens, self.depth + 1).whole()
    given = dict(zip(macro.parameters, self.arguments()))
    if len(given) != len(macro.parameters): raise HeaderError(f"{word} takes {len(macro.parameters)} arguments")
    words = [part for token in macro.tokens for part in given.get(token, (token,))]
    return Expression(header, tuple(words), self.depth + 1).whole()

  def arguments(self) -> list[tuple[str, ...]]:
    """Return the text in parentheses, split at commas."""
    self.take("(")
    found, part, depth = list[tuple[str, ...]](), list[str](), 0
    while True:
      word = self.take()
      if word == ")" and depth == 0: return [*found, tuple(part)]
      if word == "," and depth == 0:
        found.append(tuple(part))
        part = []
        continue
      depth += {"(": 1, ")": -1}.get(word, 0)
      part.append(word)

class Parser:
  """Parse declarations, one after the other, into the header."""
  def __init__(self, header: Header, tokens: tuple[str, ...]):
    self.header, self.tokens, self.place = header, tokens, 0

  def peek(self, ahead: int = 0) -> str:
    return self.tokens[self.place + ahead] if self.place + ahead < len(self.tokens) else ""

  def take(self, wanted: str = "") -> str:
    word = self.peek()
    if not word or wanted and word != wanted:
      raise HeaderError(f"{wanted or 'a word'} is expected, not {word or 'the end'}, after "
                        f"{' '.join(self.tokens[:self.place][-8:])}")
    self.place += 1
    return word

  def size(self) -> int:
    """Return the bytes of a type's name."""
    size, _, _ = self.type()
    return POINTER if self.peek() == "*" else size

  def everything(self) -> None:
    while self.peek():
      word = self.peek()
      if word in ("struct", "union", "enum") and self.has_body(): self.type()
      elif word == "typedef": self.typedef()
      else: self.skip()

  def has_body(self) -> bool:
    """Return whether a body follows this word, after attributes and a name, if any."""
    start = self.place
    self.take()
    self.attribute()
    found = "{" in (self.peek(), self.peek(1))
    self.place = start
    return found

  def skip(self) -> None:
    """Skip one word, or the text in braces."""
    if self.take() != "{": return
    while self.peek() != "}": self.skip()
    self.take()

  def typedef(self) -> None:
    self.take("typedef")
    try: size, alignment, inner = self.type()
    except HeaderError: return  # of an undeclared type; its name stays unknown
    while self.peek() and self.peek() != ";":
      word = self.take()
      if word == "*": size, alignment, inner = POINTER, POINTER, None
      elif word == "(": return  # a function
      elif word.isidentifier() and not word.startswith("__attribute"): self.header.types[word] = size, alignment, inner

  def attribute(self) -> bool:
    """Read attributes. Return whether one of them is `packed`."""
    packed = False
    while self.peek() in ("__attribute__", "__packed"):
      if self.take() == "__packed": packed = True
      else:
        words = self.parenthesis()
        packed = packed or "packed" in words or "__packed__" in words
    return packed

  def parenthesis(self) -> tuple[str, ...]:
    start, depth = self.place, 0
    while True:
      depth += {"(": 1, ")": -1}.get(self.take(), 0)
      if depth == 0: return self.tokens[start:self.place]

  def type(self) -> tuple[int, int, Struct | None]:
    """Read a type. Return its size, alignment, and the structure if it is one."""
    while self.peek() in ("const", "volatile", "extern", "static"): self.take()
    word = self.take()
    if word == "enum": return self.enum()
    if word in ("struct", "union"): return self.struct(word == "union")
    if word in self.header.types: return self.header.types[word]
    words = [word]
    while self.peek() in ("long", "int", "char", "short", "unsigned", "signed", "double"): words.append(self.take())
    whole = [w for w in words if w not in ("unsigned", "signed")] or ["int"]
    size = SIZES.get(" ".join(whole)) or SIZES.get(whole[0])
    if size is None: raise HeaderError(f"the type {' '.join(words)} is not declared here")
    return size, size, None

  def enum(self) -> tuple[int, int, Struct | None]:
    if self.peek() != "{": self.take()
    if self.peek() == "{":
      self.take()
      value = 0
      while self.peek() != "}":
        name = self.take()
        if self.peek() == "=":
          self.take()
          value = self.constant((",", "}"))
        self.header.constants[name] = value
        value += 1
        if self.peek() == ",": self.take()
      self.take("}")
    return SIZES[ENUM], SIZES[ENUM], None

  def constant(self, ends: tuple[str, ...]) -> int:
    """Read a constant expression that ends before one of these words."""
    start, depth = self.place, 0
    while depth or self.peek() not in ends: depth += {"(": 1, ")": -1}.get(self.take(), 0)
    return Expression(self.header, self.tokens[start:self.place]).whole()

  def struct(self, union: bool) -> tuple[int, int, Struct | None]:
    packed = self.attribute()
    name = self.take() if self.peek() != "{" else ""
    if self.peek() != "{":
      found = self.header.structs.get(name)
      if found is None and self.peek() != "*": raise HeaderError(f"the structure {name} is not declared here")
      return (0, 1, None) if found is None else (found.size, found.alignment, found)
    self.take("{")
    layout = Layout(union)
    while self.peek() != "}": self.members(layout)
    self.take("}")
    if packed or self.attribute(): layout = layout.packed()
    made = layout.struct(name)
    if name: self.header.structs[name] = made
    return made.size, made.alignment, made

  def members(self, layout: Layout) -> None:
    """Read a declaration inside of a structure: a type, and its members."""
    start = self.place
    size, alignment, inner = self.type()
    kind = " ".join(self.tokens[start:self.place])
    kind = kind.partition(" {")[0]
    if self.peek() == ";": layout.add("", kind, size, alignment, inner=inner)
    while self.peek() != ";":
      pointer = False
      while self.peek() == "*": pointer = bool(self.take())
      if self.peek() == "(": raise HeaderError(f"a pointer to a function in {kind}")
      name = self.take() if self.peek() != ":" else ""
      counts, width = list[int](), None
      while self.peek() == "[":
        self.take()
        counts.append(self.constant(("]",)) if self.peek() != "]" else 0)
        self.take("]")
      if self.peek() == ":":
        self.take()
        width = self.constant((",", ";"))
      self.attribute()
      if pointer: layout.add(name, kind + " *", POINTER, POINTER, tuple(counts))
      else: layout.add(name, kind, size, alignment, tuple(counts), width, inner)
      if self.peek() == ",": self.take()
    self.take(";")

class Layout:
  """The positions of the members of a structure, as they are added."""
  def __init__(self, union: bool, pack: bool = False):
    self.union, self.pack = union, pack
    self.bits = self.most = 0      # the next free bit; the most bits of a union's members
    self.alignment = 1
    self.given: list[tuple[str, str, int, int, tuple[int, ...], int | None, Struct | None]] = []
    self.found: list[Member] = []

  def add(self, name: str, kind: str, size: int, alignment: int, counts: tuple[int, ...] = (), width: int | None = None,
          inner: Struct | None = None) -> None:
    self.given.append((name, kind, size, alignment, counts, width, inner))
    if self.pack: alignment = 1
    start = 0 if self.union else self.bits
    if width is None:
      whole = size
      for count in counts: whole *= count
      start = -(-start // (8 * alignment)) * 8 * alignment
      self.found.append(Member(name, kind, start // 8, whole, counts, None, inner))
      end = start + 8 * whole
    else:
      unit = 8 * size
      if not width or not self.pack and start // unit != (start + width - 1) // unit: start = -(-start // unit) * unit
      place = start // 8 if self.pack else start // unit * size
      if name: self.found.append(Member(name, kind, place, size, (), (start - 8 * place, width)))
      end = start + width
    if width is None or name: self.alignment = max(self.alignment, alignment)
    self.bits, self.most = end, max(self.most, end)

  def packed(self) -> Layout:
    """Return the same layout without gaps."""
    again = Layout(self.union, True)
    for given in self.given: again.add(*given)
    return again

  def struct(self, name: str) -> Struct:
    size = -(-(self.most if self.union else self.bits) // 8)
    return Struct(name, -(-size // self.alignment) * self.alignment, self.alignment, tuple(self.found))

# **** the preprocessor ****

COMMENT = re.compile(r"""/\*.*?\*/|//[^\n]*|("(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')""", re.S)
DEFINE = re.compile(r"#\s*define\s+(\w+)(\(([^)]*)\))?\s*(.*)")

def _condition(header: Header, kind: str, text: str) -> bool:
  """Return whether #if, #ifdef or #ifndef includes its lines. Undefined names count as 0."""
  if kind in ("ifdef", "ifndef"): return (text.strip() in header.macros) == (kind == "ifdef")
  text = re.sub(r"defined\s*\(?\s*(\w+)\s*\)?", lambda m: str(int(m[1] in header.macros)), text)
  words = tuple(w if not w.isidentifier() or w in header.macros else "0" for w in tokens_of(text))
  return bool(Expression(header, words).whole())

def read(text: str, known: Header | None = None) -> Header:
  """Return the declarations of a header. known: the declarations of other headers, to which these are added. Raises
  HeaderError."""
  header = Header() if known is None else known
  text = COMMENT.sub(lambda m: m[1] or " ", text.replace("\\\r\n", " ").replace("\\\n", " "))
  # taken: for each enclosing #if: (do its lines count now, has one of its parts been taken)
  kept, taken = list[str](), list[list[bool]]()
  for line in text.splitlines():
    line = line.strip()
    if not line.startswith("#"):
      if all(t[0] for t in taken): kept.append(line)
      continue
    kind, _, rest = line[1:].strip().partition(" ")
    if kind in ("if", "ifdef", "ifndef"):
      inside = all(t[0] for t in taken) and _condition(header, kind, rest)
      taken.append([inside, inside])
    elif kind in ("else", "elif"):
      if not taken: raise HeaderError(f"#{kind} without #if")
      inside = not taken[-1][1] and all(t[0] for t in taken[:-1]) and (kind == "else" or _condition(header, "if", rest))
      taken[-1] = [inside, taken[-1][1] or inside]
    elif kind == "endif":
      if not taken: raise HeaderError("#endif without #if")
      taken.pop()
    elif all(t[0] for t in taken):
      if kind == "pragma" and "pack" in rest:
        raise HeaderError("#pragma pack is not read; only __attribute__((packed)) is")
      found = DEFINE.match(line)
      if found: header.macros[found[1]] = _macro(found)
      elif kind == "undef": header.macros.pop(rest.strip(), None)
  if taken: raise HeaderError("#if without #endif")
  Parser(header, tokens_of("\n".join(kept))).everything()
  return header

def _macro(found: re.Match[str]) -> Macro:
  parameters = None if found[2] is None else tuple(name.strip() for name in found[3].split(",") if name.strip())
  try: words = tokens_of(found[4])
  except HeaderError: words = ("#",)  # text that is not C by itself has no value
  return Macro(parameters, words)
