"""Time a quantized language model beside llama.cpp: a Llama of 1.1B with random parameters, decoding and prefill.

    python3 test/bench/llm.py [type ...] [--llama-bench PROGRAM] [--folder FOLDER] [--seconds 12]

A type is that of a GGUF file: Q4_0, Q4_K_M, Q5_K, Q6_K, Q8_0, F16. A file has 0.6 to 2.2 GB; it is made once, in
FOLDER. Decoding: a token after another. Prefill: a prompt of 128 tokens. Both libraries have two threads and take turns
(turns.py). Printed: medians in tokens/s, ours over theirs, and for decoding the share of the memory's rate, which the
sum of an array of 1 GB shows in the same run.

llama-bench is built from the sources of llama.cpp: `cmake -DGGML_NATIVE=ON -DCMAKE_BUILD_TYPE=Release` and `make
llama-bench`.
"""
from __future__ import annotations
import argparse
from array import array
import json
import math
import os
import random
import statistics
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import transformers
import turns

LAYERS, DIM, HEADS, KV_HEADS, HIDDEN, WORDS = 22, 2048, 32, 4, 5632, 32000
PROMPT, TOKENS, THREADS = 128, 32, 2
TYPES = ("Q4_0", "Q4_K_M", "Q5_K", "Q6_K", "Q8_0", "F16")
PART = 512     # random blocks, which are repeated

# ***** the file *****

def shapes() -> dict[str, tuple[int, ...]]:
  """The tensors of the model."""
  head = DIM // HEADS
  layer = {"attn_q": (DIM, DIM), "attn_k": (KV_HEADS * head, DIM), "attn_v": (KV_HEADS * head, DIM),
           "attn_output": (DIM, DIM), "ffn_gate": (HIDDEN, DIM), "ffn_up": (HIDDEN, DIM), "ffn_down": (DIM, HIDDEN),
           "attn_norm": (DIM,), "ffn_norm": (DIM,)}
  found: dict[str, tuple[int, ...]] = {"token_embd.weight": (WORDS, DIM), "output.weight": (WORDS, DIM),
                                       "output_norm.weight": (DIM,)}
  return {**found, **{f"blk.{k}.{name}.weight": shape for k in range(LAYERS) for name, shape in layer.items()}}

def type_of(mix: str, name: str, shape: tuple[int, ...]) -> str:
  """The type of a tensor. Q4_K_M has Q6_K for the output, and for half of the layers' values and ends of networks."""
  if len(shape) == 1: return "F32"
  if mix != "Q4_K_M": return mix
  layer = int(name.split(".")[1]) if name.startswith("blk") else 0
  often = layer < LAYERS // 8 or layer >= 7 * LAYERS // 8 or (layer - LAYERS // 8) % 3 == 2
  return "Q6_K" if name == "output.weight" or often and ("attn_v" in name or "ffn_down" in name) else "Q4_K"

def content(name: str, elements: int, seed: int) -> bytes:
  """Random elements of a type."""
  from formats.gguf_files import random_blocks
  from tinyhw.llm.blocks import TYPES as KINDS
  if name == "F32": return struct.pack("<f", 1.0) * elements
  kind = next(kind for kind in KINDS.values() if kind.name == name)
  if kind.split is None:
    rng = random.Random(seed)
    part = struct.pack(f"<{PART}e", *[rng.gauss(0, 0.02) for _ in range(PART)])
  else: part = random_blocks(kind, PART, seed)
  size = elements // kind.length * kind.size
  return (part * -(-size // len(part)))[:size]

def write_model(mix: str, path: Path) -> None:
  from formats.gguf_files import write
  from tinyhw.llm.blocks import TYPES as KINDS
  number = {kind.name: n for n, kind in KINDS.items()}
  tensors = {}
  for seed, (name, shape) in enumerate(shapes().items()):
    kind = type_of(mix, name, shape)
    tensors[name] = (shape, number[kind], content(kind, math.prod(shape), seed))
  words = ["<unk>", "<s>", "</s>", *[f"<0x{k:02X}>" for k in range(256)], *[f"w{k}" for k in range(WORDS - 259)]]
  kv = {"general.architecture": "llama", "llama.block_count": LAYERS, "llama.context_length": 2048,
        "llama.embedding_length": DIM, "llama.feed_forward_length": HIDDEN, "llama.attention.head_count": HEADS,
        "llama.attention.head_count_kv": KV_HEADS, "llama.rope.dimension_count": DIM // HEADS,
        "llama.attention.layer_norm_rms_epsilon": 1e-5, "llama.vocab_size": WORDS, "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.tokens": words, "tokenizer.ggml.scores": [-float(k) for k in range(WORDS)],
        "tokenizer.ggml.token_type": array("i", [2, 3, 3, *[6] * 256, *[1] * (WORDS - 259)]),
        "tokenizer.ggml.bos_token_id": 1, "tokenizer.ggml.eos_token_id": 2}
  part = path.with_suffix(".part")
  part.parent.mkdir(parents=True, exist_ok=True)
  part.write_bytes(write(kv, tensors))
  part.replace(path)

# ***** tinyhw *****

def ours(workload: str) -> turns.Run | None:
  """workload: decode or prefill, and a file."""
  if workload == transformers.MEMORY: return transformers.ours(workload)
  from tinyhw.llm.model import Transformer
  kind, _, path = workload.partition(" ")
  model = Transformer.from_gguf(path, max_context=1024)[0]
  draw = random.Random(0)
  def prompt() -> list[int]: return [draw.randrange(3, WORDS) for _ in range(PROMPT)]
  if kind == "prefill": return lambda: next(iter(model.generate(prompt(), chunk_size=PROMPT)))
  def tokens() -> Iterator[int]:
    while True: yield from model.generate([1])
  following = tokens()
  return lambda: next(following)

# ***** llama.cpp *****

def theirs(program: str, path: str) -> dict[str, float]:
  """Tokens/s of decode and prefill, by llama-bench."""
  done = subprocess.run([program, "-m", path, "-p", str(PROMPT), "-n", str(TOKENS), "-t", str(THREADS), "-r", "2",
                         "-o", "json"], check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
  return {"prefill" if row["n_prompt"] else "decode": row["avg_ts"] for row in json.loads(done.stdout)}

def main() -> None:
  parser = argparse.ArgumentParser(description="Time a quantized language model.")
  parser.add_argument("types", nargs="*", default=TYPES[:2])
  parser.add_argument("--llama-bench", metavar="PROGRAM")
  parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()))
  parser.add_argument("--seconds", type=float, default=12, help="of tinyhw for a workload")
  parser.add_argument("--serve")
  options = parser.parse_args()
  if options.serve: return turns.serve(ours)
  if wrong := set(options.types) - set(TYPES):
    parser.error(f"no types: {', '.join(wrong)}; there are {', '.join(TYPES)}")
  memory = turns.Library(__file__, "tinyhw")
  rate = (1 << 30) / statistics.median(memory.turn(transformers.MEMORY, 3)[turns.WARM_UP:])
  memory.close()
  print(f"{'memory':8} {rate / 1e9:22.1f} GB/s", flush=True)
  for mix in options.types:
    path = options.folder / f"llama-1.1b-{mix}.gguf"
    if not path.exists(): write_model(mix, path)
    size = os.path.getsize(path) - content_size(mix, "token_embd.weight")
    found: dict[str, list[float]] = {"decode": [], "prefill": []}
    peers: dict[str, list[float]] = {"decode": [], "prefill": []}
    libraries = {kind: turns.Library(__file__, "tinyhw") for kind in found}
    for _ in range(turns.ROUNDS):
      for kind, times in found.items():
        times += libraries[kind].turn(f"{kind} {path}", options.seconds / turns.ROUNDS)[turns.WARM_UP:]
      if options.llama_bench is None: continue
      for kind, per_second in theirs(options.llama_bench, str(path)).items(): peers[kind].append(per_second)
    for library in libraries.values(): library.close()
    for kind, times in found.items():
      speed = (PROMPT if kind == "prefill" else 1) / statistics.median(times)
      line = f"{mix:8} {kind:8} tinyhw {speed:7.2f} tokens/s"
      if peers[kind]:
        peer = statistics.median(peers[kind])
        line += f"  llama.cpp {peer:7.2f} tokens/s  ratio {speed / peer:.2f}"
      if kind == "decode": line += f"  {size * speed / rate:.0%} of the memory's rate"
      print(line, flush=True)

def content_size(mix: str, name: str) -> int:
  """The bytes of a tensor, of which decoding reads one row only."""
  from tinyhw.llm.blocks import TYPES as KINDS
  shape = shapes()[name]
  kind = next(kind for kind in KINDS.values() if kind.name == type_of(mix, name, shape))
  return math.prod(shape) // kind.length * kind.size

if __name__ == "__main__": main()
