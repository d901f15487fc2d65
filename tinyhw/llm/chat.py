"""Chat templates: conversion of messages to the text that a model was trained to continue.

The templates in files are programs in Jinja, and none is run. FORMATS has the usual ones. A file's template is
recognised by the texts that it writes. If none is recognised, the preset of the tokenizer decides.
"""
from __future__ import annotations
from collections.abc import Mapping, Sequence
from typing import Any

from tinyhw.errors import ArgumentError
from tinyhw.llm.tokenizer import SimpleTokenizer
from tinyhw.named_tuple import NamedTuple

class ChatMarkup(NamedTuple):
  """The text of a turn. before: the text before its content, with {role}, or one text for each role. after: the text
  after it. {end} is the token that ends a turn: `end`, if the tokenizer has it, else its eos. marker: a text that
  templates of this format contain. begin: a text that comes once, after bos."""
  marker: str
  end: str
  before: str | Mapping[str, str]
  after: str | Mapping[str, str]
  begin: str = ""
  # Is there a turn of role "system"? If not, its content comes before that of the next turn.
  system: bool = True

# A format is after those whose templates also contain its marker. Source: the chat templates that the models' authors
# publish
FORMATS: dict[str, ChatMarkup] = {
  "kimi-k2": ChatMarkup("<|im_middle|>", "<|im_end|>", "<|im_{role}|>{role}<|im_middle|>", "{end}"),
  "chatml": ChatMarkup("<|im_start|>", "<|im_end|>", "<|im_start|>{role}\n", "{end}\n"),
  "llama3": ChatMarkup("<|start_header_id|>", "<|eot_id|>", "<|start_header_id|>{role}<|end_header_id|>\n\n", "{end}"),
  "gemma": ChatMarkup("<start_of_turn>", "<end_of_turn>",
                      {"user": "<start_of_turn>user\n", "assistant": "<start_of_turn>model\n"}, "{end}\n",
                      system=False),
  "glm4": ChatMarkup("<sop>", "<|endoftext|>", "<|{role}|>", "", begin="<sop>"),
  "mistral": ChatMarkup("[INST]", "</s>", {"user": "[INST]", "assistant": ""},
                        {"user": "[/INST]", "assistant": "{end}"}, system=False),
  "deepseek": ChatMarkup("<｜User｜>", "<｜end▁of▁sentence｜>",
                         {"system": "", "user": "<｜User｜>", "assistant": "<｜Assistant｜>"},
                         {"system": "", "user": "", "assistant": "{end}"}),
  "phi3": ChatMarkup("<|end|>", "<|end|>", "<|{role}|>\n", "{end}\n"),
  "olmo": ChatMarkup("<|user|>", "<|endoftext|>", "<|{role}|>\n", "\n"),
}
_OF_PRESETS = {"sentencepiece": "mistral",
               "olmo": "olmo", "tekken": "mistral", "kimi-k2": "kimi-k2", "glm4": "glm4", "chatglm-bpe": "glm4",
               "llama3": "llama3",
               "llama-v3": "llama3", "llama-bpe": "llama3"}   # others: chatml

class FallbackTemplate:
  """The format for a tokenizer's preset, or one by its name in FORMATS.

  Raises ArgumentError for an unknown name.
  """
  def __init__(self, tok: SimpleTokenizer, name: str | None = None):
    if name is None: name = _OF_PRESETS.get(tok.preset, "chatml")
    if name not in FORMATS: raise ArgumentError(f"no chat template is called {name!r}; known are {', '.join(FORMATS)}")
    self.tok, self.name, self.format = tok, name, FORMATS[name]
    self.guessed = False   # does the file have an unknown template of its own?
    self._end = self.format.end if tok.is_special(self.format.end) else tok.decode([tok.eos_id])

  @staticmethod
  def from_gguf_kv(kv: Mapping[str, Any], tok: SimpleTokenizer) -> FallbackTemplate:
    """Return the format that a file's template writes, or the format for its tokenizer."""
    source = kv.get("tokenizer.chat_template")
    name = next((name for name, f in FORMATS.items() if isinstance(source, str) and f.marker in source), None)
    found = FallbackTemplate(tok, name)
    found.guessed = source is not None and name is None
    return found

  def role(self, role: str) -> str:
    """Return the text before a turn's content. Raises ArgumentError for a role that the format lacks."""
    before = self.format.before
    if isinstance(before, str) and isinstance(role, str) and role.isidentifier(): return before.replace("{role}", role)
    if isinstance(before, str) or role not in before:
      raise ArgumentError(f"the chat template {self.name} has no role {role!r}")
    return before[role]

  def end_turn(self, role: str = "user") -> str:
    """Return the text after a turn's content."""
    after = self.format.after
    return (after if isinstance(after, str) else after[role]).replace("{end}", self._end)

  def pieces(self, messages: Sequence[Mapping[str, Any]], add_generation_prompt: bool = True) -> list[tuple[str, bool]]:
    """Return the text in pieces: (text, is it the format's own?).

    Raises ArgumentError unless messages is a list of {"role": ..., "content": text}.
    """
    begin = self.tok.decode([self.tok.bos_id]) if self.tok.bos_id is not None else ""
    found = [(begin + self.format.begin, True)]
    waiting = ""    # the content of "system", if the format has no such turns
    for message in messages if isinstance(messages, Sequence) else [messages]:
      role, content = (message.get("role"), message.get("content")) if isinstance(message, Mapping) else (None, None)
      if not isinstance(role, str) or not isinstance(content, str):
        raise ArgumentError(f"a message is {{'role': 'user', 'content': 'text'}}, not {message!r:.80}")
      if role == "system" and not self.format.system:
        waiting += content + "\n\n"
        continue
      found += [(self.role(role), True), (waiting + content, False), (self.end_turn(role), True)]
      waiting = ""
    if waiting: found += [(self.role("user"), True), (waiting.strip(), False), (self.end_turn("user"), True)]
    if add_generation_prompt: found.append((self.role("assistant"), True))
    return found

  def render(self, messages: Sequence[Mapping[str, Any]], tools: Any = None, add_generation_prompt: bool = True,
             preserve_thinking: bool = False) -> str:
    """Return the text of messages. add_generation_prompt: add the beginning of the answer. Tools are not described, and
    thoughts are kept.

    >>> tok = SimpleTokenizer({"a": 0}, {"<|im_end|>": 1}, "qwen2", eos_id=1)
    >>> FallbackTemplate(tok).render([{"role": "user", "content": "Hi"}])
    '<|im_start|>user\\nHi<|im_end|>\\n<|im_start|>assistant\\n'
    """
    return "".join(text for text, _ in self.pieces(messages, add_generation_prompt))

  def encode(self, messages: Sequence[Mapping[str, Any]], add_generation_prompt: bool = True) -> list[int]:
    """Return the tokens of messages. Only the format's own text has special tokens, so the text of a user cannot end
    their turn."""
    found: list[int] = []
    text = ""
    for piece, own in self.pieces(messages, add_generation_prompt):
      if own:
        text += piece
        continue
      found += self.tok.encode(text) + self.tok.encode(piece, special=False)
      text = ""
    return found + self.tok.encode(text)
