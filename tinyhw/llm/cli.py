"""The command line `python3 -m tinyhw.llm --model FILE`: answer a prompt, talk, or serve. Nothing is downloaded: FILE
is a local GGUF file.

SimpleTokenizer and FallbackTemplate can also be imported from here.
"""
from __future__ import annotations
import argparse
from collections.abc import Iterator, Sequence
import os
import sys
from typing import Any, TextIO

from tinyhw.errors import FileFormatError, TinyError
from tinyhw.llm.chat import FORMATS, FallbackTemplate as FallbackTemplate
from tinyhw.llm.model import Transformer
from tinyhw.llm.serve import LLMServer
from tinyhw.llm.tokenizer import SimpleTokenizer as SimpleTokenizer
from tinyhw.tensor import Tensor

DEFAULT_PORT, BENCHMARK_TOKENS = 8000, 20

def load(path: Tensor | str | os.PathLike[str], max_context: int | None = None, realize: bool = False,
         chat_format: str | None = None,
         exact: bool = False) -> tuple[Transformer, SimpleTokenizer, FallbackTemplate]:
  """Return a GGUF file's model, its tokenizer, and its chat template. Options are those of Transformer.from_gguf.

  Raises FileFormatError if the file is no such model, MissingFileError if it does not exist.
  """
  model, kv = Transformer.from_gguf(path, max_context, realize, exact)
  tok = SimpleTokenizer.from_gguf_kv(kv)
  count = len(kv["tokenizer.ggml.tokens"])
  if count > model.config.vocab_size:
    raise FileFormatError(f"the file names {count} tokens, and its model knows {model.config.vocab_size}")
  return (model, tok, FallbackTemplate(tok, chat_format) if chat_format is not None
          else FallbackTemplate.from_gguf_kv(kv, tok))

def text_after(model: Transformer, tok: SimpleTokenizer, ids: Sequence[int], max_tokens: int | None = None,
               temperature: float = 0.0) -> Iterator[str]:
  """Yield the model's text after some tokens, in pieces. It ends when the model ends it, after max_tokens, or when the
  context is full."""
  more = tok.stream_decoder()
  for count, token in enumerate(model.generate(ids, temperature=temperature), 1):
    if tok.is_end(token): break
    yield more(token)
    if count == max_tokens: break
  yield more()

def _whole(text: str) -> int:
  value = int(text)
  if value < 1: raise ValueError
  return value
_whole.__name__ = "whole number above 0"   # argparse uses the name in its error message

def _not_negative(text: str) -> float:
  value = float(text)
  if not 0 <= value < float("inf"): raise ValueError
  return value
_not_negative.__name__ = "number from 0 on"

def _port(text: str) -> int:
  value = int(text)
  if not 0 <= value < 1 << 16: raise ValueError
  return value
_port.__name__ = "port"

def parser() -> argparse.ArgumentParser:
  """Return the parser of the options."""
  p = argparse.ArgumentParser(prog="python3 -m tinyhw.llm", description="Language models from GGUF files: answer a "
                              "prompt, talk, or serve.")
  p.add_argument("--model", "-m", required=True, metavar="FILE", help="a GGUF file")
  p.add_argument("--prompt", "-p", metavar="TEXT", help="answer this and end; without it, lines of standard input are "
                 "a conversation")
  p.add_argument("--raw", action="store_true", help="go on with the prompt as it is, without a chat's template")
  p.add_argument("--system", metavar="TEXT", help="what the model is told before the conversation")
  p.add_argument("--max_tokens", type=_whole, metavar="N", help="of an answer; else until the model ends it, or the "
                 "context is full")
  p.add_argument("--temperature", type=_not_negative, default=0.0, metavar="T",
                 help="0, the default, takes the likeliest tokens")
  p.add_argument("--seed", type=int, metavar="N", help="of what is drawn, so that it comes again")
  p.add_argument("--max_context", type=_whole, metavar="N", help="tokens that there is place for; else the model's, "
                 "but at most 4096")
  p.add_argument("--chat_format", choices=sorted(FORMATS), help="of chats; else what the file's own template looks "
                 "like")
  p.add_argument("--realize", action="store_true", help="decode quantized parameters once, to float32: several times "
                 "the memory")
  p.add_argument("--exact", action="store_true", help="multiply quantized parameters in float32, instead of 8 bits: "
                 "much slower")
  p.add_argument("--serve", nargs="?", type=_port, const=DEFAULT_PORT, metavar="PORT",
                 help=f"serve OpenAI's API (default port {DEFAULT_PORT})")
  p.add_argument("--host", default="127.0.0.1", help="to serve at; others than this machine's own are open to whoever "
                 "reaches them")
  p.add_argument("--warmup", action="store_true", help="compile everything before the first request")
  p.add_argument("--benchmark", nargs="?", type=_whole, const=BENCHMARK_TOKENS, metavar="N",
                 help="time this many tokens and their kernels, and end")
  return p

def main(arguments: Sequence[str] | None = None, stdin: TextIO | None = None, stdout: TextIO | None = None) -> int:
  """Run the command. Return 0, or 1 if it fails. Wrong options end the process with 2."""
  options = parser().parse_args(arguments)
  out = stdout or sys.stdout
  try:
    model, tok, template = load(options.model, options.max_context, options.realize, options.chat_format,
                                options.exact)
    if template.guessed:
      sys.stderr.write(f"the file's chat template is not known; {template.name} is used, and --chat_format chooses "
                       f"another\n")
    if options.seed is not None: Tensor.manual_seed(options.seed)
    if options.warmup: _warm_up(model)
    if options.benchmark is not None:
      from tinyhw.llm.benchmark import benchmark  # for --benchmark alone
      benchmark(model, options.benchmark, out)
    elif options.serve is not None:
      _serve(LLMServer((options.host, options.serve), model, os.path.basename(options.model), tok, template), out)
    elif options.raw and options.prompt is not None:
      _say(text_after(model, tok, [*_begin(tok), *tok.encode(options.prompt)], options.max_tokens, options.temperature),
           out)
    else:
      _talk(model, tok, template, options, [options.prompt] if options.prompt is not None else stdin or sys.stdin, out)
  except TinyError as error:
    sys.stderr.write(f"{error.message}\n")
    return 1
  except BrokenPipeError: return 1   # `... | head -1`
  except KeyboardInterrupt: return 130
  return 0

def _begin(tok: SimpleTokenizer) -> list[int]: return [] if tok.bos_id is None else [tok.bos_id]

def _say(pieces: Iterator[str], out: TextIO) -> str:
  """Write text as it comes, and a line end last. Return all of it."""
  said = ""
  for piece in pieces:
    said += piece
    encoding = getattr(out, "encoding", None) or "utf-8"
    out.write(piece.encode(encoding, "replace").decode(encoding))
    out.flush()
  out.write("\n")
  return said

def _talk(model: Transformer, tok: SimpleTokenizer, template: FallbackTemplate, options: argparse.Namespace, lines: Any,
          out: TextIO) -> None:
  """Answer lines, one after the other."""
  messages = [{"role": "system", "content": options.system}] if options.system else []
  for line in lines:
    messages.append({"role": "user", "content": line.rstrip("\n")})
    said = _say(text_after(model, tok, template.encode(messages), options.max_tokens, options.temperature), out)
    messages.append({"role": "assistant", "content": said})

def _warm_up(model: Transformer) -> None:
  """Capture the steps for a chunk and for a token."""
  size = min(100, model.config.max_context)
  for first in (0, 1 % model.config.vocab_size): next(iter(model.generate([first] * size)))
  for _ in range(3): next(iter(model.generate([0])))

def _serve(server: LLMServer, out: TextIO) -> None:
  """Answer requests until an interrupt."""
  server.log = True
  try:
    out.write(f"serving {server.model_name} at {server.url}/v1; Ctrl-C ends it\n")
    out.flush()
    server.serve_forever()
  finally: server.server_close()
