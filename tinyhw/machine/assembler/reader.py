"""Tokens of the text of an instruction, and the error of a text that does not fit a row."""
from __future__ import annotations
import re

from tinyhw.errors import ParseError

TOKEN = re.compile(r"\s*(?:([A-Za-z_.][\w.]*)|(0x[0-9a-fA-F]+|\d+(?:\.\d+)?(?:e[-+]?\d+)?)|(\S))")

class OperandToken(str):
  """A word, number or sign. position: of the operand that it belongs to, from 1."""
  __slots__ = ("position",)
  position: int

def tokens(text: str) -> list[OperandToken]:
  """The tokens of the operands of an instruction."""
  out, position, depth = [], 1, 0
  for word, number, sign in TOKEN.findall(text):
    token = OperandToken(word or number or sign)
    token.position = position
    out.append(token)
    if sign in ("[", "{"): depth += 1
    elif sign in ("]", "}"): depth -= 1
    elif sign == "," and depth <= 0: position += 1
  return out

class TextMismatch(ParseError):
  """A text that a row does not take. at: the number of tokens that it took before; close: the token was of the right
  kind, and only its value does not fit."""

  def __init__(self, message: str, at: int = 0, close: bool = False):
    super().__init__(message)
    self.at, self.close = at, close

class TextReader:
  """A position in the tokens of a text."""

  def __init__(self, found: list[OperandToken]): self.tokens, self.at = found, 0

  def peek(self) -> str: return self.tokens[self.at] if self.at < len(self.tokens) else ""

  def take(self) -> str:
    self.at += 1
    return self.tokens[self.at - 1] if self.at <= len(self.tokens) else ""

  def skip(self, token: str) -> bool:
    """Skip a token if it is next."""
    found = self.peek() == token
    self.at += found
    return found

  def refuse(self, wanted: str, close: bool = False, start: int | None = None) -> TextMismatch:
    """The error for the token here, or for those from `start` on."""
    first = self.at if start is None else start
    got = "".join(self.tokens[first:max(self.at, first + 1)]) or "the end of the line"
    operand = self.tokens[min(first, len(self.tokens) - 1)].position if self.tokens else 1
    return TextMismatch(f"operand {operand} wants {wanted}, got {got}", first, close)

  def number(self) -> int | float | None:
    """The number here, with or without a sign and "#". None, and nothing is taken, if there is none."""
    start = self.at
    self.skip("#")
    negative = self.skip("-")
    if not negative: self.skip("+")
    text = self.peek()
    if not text[:1].isdigit():
      self.at = start
      return None
    self.at += 1
    value = int(text, 16) if text[:2] == "0x" else (float(text) if "." in text or "e" in text else int(text))
    return -value if negative else value
