"""Chat templates: messages to the text that a model was trained to go on with.

The templates in files are programs in Jinja. None is run: FORMATS has the usual ones, a file's is recognised by what it
writes, and where none is known the preset of the tokenizer decides.
"""
from __future__ import annotations
from collections.abc import Mapping, Sequence
from typing import Any

from tinyhw.errors import ArgumentError
from tinyhw.llm.tokenizer import SimpleTokenizer
from tinyhw.named_tuple import NamedTuple

class Format(NamedTuple):
  """How a turn is written. before: what stands before its content, with {role}, or one text for each role; after:
  behind it. {end} is the token that
  ends a turn: `end`, if the tokenizer has it, else its eos. marker: what templates of this format have in them. begin:
  once, behind bos."""
  marker: str
  end: str
  before: str | Mapping[str, str]
  after: str | Mapping[str, str]
  begin: str = ""
  system: bool = True    # is there a turn of role "system"? If not, its content stands before that of the next turn

# Those whose marker others have too stand behind them. Source: the chat templates that the models' authors publish
FORMATS: dict[str, Format] = {
  "kimi-k2": Format("<|im_middle|>", "<|im_end|>", "<|im_{role}|>{role}<|im_middle|>", "{end}"),
  "chatml": Format("<|im_start|>", "<|im_end|>", "<|im_start|>{role}\n", "{end}\n"),
  "llama3": Format("<|start_header_id|>", "<|eot_id|>", "<|start_header_id|>{role}<|end_header_id|>\n\n", "{end}"),
  "gemma": Format("<start_of_turn>", "<end_of_turn>",
                  {"user": "<start_of_turn>user\n", "assistant": "<start_of_turn>model\n"}, "{end}\n", system=False),
  "glm4": Format("<sop>", "<|endoftext|>", "<|{role}|>", "", begin="<sop>"),
  "mistral": Format("[INST]", "</s>", {"user": "[INST]", "assistant": ""}, {"user": "[/INST]", "assistant": "{end}"},
                    system=False),
  "deepseek": Format("<｜User｜>", "<｜end▁of▁sentence｜>",
                     {"system": "", "user": "<｜User｜>", "assistant": "<｜Assistant｜>"},
                     {"system": "", "user": "", "assistant": "{end}"}),
  "phi3": Format("<|end|>", "<|end|>", "<|{role}|>\n", "{end}\n"),
  "olmo": Format("<|user|>", "<|endoftext|>", "<|{role}|>\n", "\n"),
}
_OF_PRESETS = {"sentencepiece": "mistral",
               "olmo": "olmo", "tekken": "mistral", "kimi-k2": "kimi-k2", "glm4": "glm4", "chatglm-bpe": "glm4",
               "llama3": "llama3",
               "llama-v3": "llama3", "llama-bpe": "llama3"}   # others: chatml

class FallbackTemplate:
  """The format that goes with a tokenizer's preset, or one by its name in FORMATS.

  Raises ArgumentError for a name that is not there.
  """
  def __init__(self, tok: SimpleTokenizer, name: str | None = None):
    if name is None: name = _OF_PRESETS.get(tok.preset, "chatml")
    if name not in FORMATS: raise ArgumentError(f"no chat template is called {name!r}; known are {', '.join(FORMATS)}")
    self.tok, self.name, self.format = tok, name, FORMATS[name]
    self.guessed = False   # has the file a template of its own that is not known?
    self._end = self.format.end if tok.is_special(self.format.end) else tok.decode([tok.eos_id])

  @staticmethod
  def from_gguf_kv(kv: Mapping[str, Any], tok: SimpleTokenizer) -> FallbackTemplate:
    """The format that a file's template writes, or that goes with its tokenizer."""
    source = kv.get("tokenizer.chat_template")
    name = next((name for name, f in FORMATS.items() if isinstance(source, str) and f.marker in source), None)
    found = FallbackTemplate(tok, name)
    found.guessed = source is not None and name is None
    return found

  def role(self, role: str) -> str:
    """What stands before a turn's content. Raises ArgumentError for a role that the format has not."""
    before = self.format.before
    if isinstance(before, str) and isinstance(role, str) and role.isidentifier(): return before.replace("{role}", role)
    if isinstance(before, str) or role not in before:
      raise ArgumentError(f"the chat template {self.name} has no role {role!r}")
    return before[role]

  def end_turn(self, role: str = "user") -> str:
    """What stands behind a turn's content."""
    after = self.format.after
    return (after if isinstance(after, str) else after[role]).replace("{end}", self._end)

  def pieces(self, messages: Sequence[Mapping[str, Any]], add_generation_prompt: bool = True) -> list[tuple[str, bool]]:
    """The text in pieces: (text, is it the format's own?).

    Raises ArgumentError for messages that are no list of {"role": ..., "content": text}.
    """
    begin = self.tok.decode([self.tok.bos_id]) if self.tok.bos_id is not None else ""
    found = [(begin + self.format.begin, True)]
    waiting = ""    # a system's content, where there are no such turns
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
    """The text of messages; add_generation_prompt: with the beginning of the answer. Tools are not described, and
    thoughts are kept as they are.

    >>> tok = SimpleTokenizer({"a": 0}, {"<|im_end|>": 1}, "qwen2", eos_id=1)
    >>> FallbackTemplate(tok).render([{"role": "user", "content": "Hi"}])
    '<|im_start|>user\\nHi<|im_end|>\\n<|im_start|>assistant\\n'
    """
    return "".join(text for text, _ in self.pieces(messages, add_generation_prompt))

  def encode(self, messages: Sequence[Mapping[str, Any]], add_generation_prompt: bool = True) -> list[int]:
    """The tokens of messages. Special tokens are the format's alone: what a user writes cannot end their turn."""
    found: list[int] = []
    text = ""
    for piece, own in self.pieces(messages, add_generation_prompt):
      if own:
        text += piece
        continue
      found += self.tok.encode(text) + self.tok.encode(piece, special=False)
      text = ""
    return found + self.tok.encode(text)
