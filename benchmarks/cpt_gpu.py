"""A training step of a 1B Llama with a large vocabulary: tokens a second, MFU, peak memory.

    python benchmarks/cpt_gpu.py step [--vocab 128256 200000] [--variants …] -o step.jsonl
    python benchmarks/cpt_gpu.py head [--vocab …] [--rows 8192] -o head.jsonl
    python benchmarks/cpt_gpu.py step --device cpu --quick          # tiny: does it run?

`step`: the shape of Llama 3.2 1B (`--shape 135m`: SmolLM2), sequences of 4,096 tokens, bfloat16
products over float32 weights, fused AdamW, through `pretrain` (variants `loop-…`, by the loss) and
in a plain PyTorch loop (`torch-…`: with the logits whole, as everybody writes it, or with our
loss). `head`: the loss of a head alone, forward and backward. Every variant is a process of its
own; one that runs out of memory says so. Losses of the first step are compared: a variant with
another one is marked. MFU is PaLM's (`vocabshift.cpt.steps`): recomputed activations do not count.
"""

from __future__ import annotations

import argparse
import gc
import json
import multiprocessing
import statistics
import time
from pathlib import Path

SHAPES = {
    "1b": {
        "hidden_size": 2048,
        "intermediate_size": 8192,
        "num_hidden_layers": 16,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "head_dim": 64,
    },
    "135m": {  # SmolLM2
        "hidden_size": 576,
        "intermediate_size": 1536,
        "num_hidden_layers": 30,
        "num_attention_heads": 9,
        "num_key_value_heads": 3,
        "head_dim": 64,
    },
    "quick": {
        "hidden_size": 64,
        "intermediate_size": 96,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 16,
    },
}
VARIANTS = (
    *("torch-plain", "torch-auto", "torch-chunked", "torch-liger"),
    *("loop-auto", "loop-compiled", "loop-checkpointed"),
)
LOSSES = ("plain", "chunked", "liger")


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("step", "head"))
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"))
    parser.add_argument("--quick", action="store_true", help="a tiny model: does it run?")
    parser.add_argument("--shape", choices=("1b", "135m"), default="1b", help="of `step`'s model")
    parser.add_argument("--vocab", type=int, nargs="+", default=[128_256, 200_000])
    parser.add_argument("--variants", nargs="+", choices=VARIANTS, help="of `step`; default: all")
    parser.add_argument("--losses", nargs="+", choices=LOSSES, help="of `head`; default: all")
    parser.add_argument("--length", type=int, default=4096, help="tokens of a sequence")
    parser.add_argument("--sequences", type=int, default=4, help="of a step")
    parser.add_argument("--rows", type=int, default=8192, help="tokens of `head`")
    parser.add_argument("--width", type=int, default=2048, help="of `head`")
    parser.add_argument("--steps", type=int, default=10, help="timed, after 3 that are not")
    parser.add_argument("--untied", action="store_true", help="a head of its own")
    parser.add_argument("-o", "--output", type=Path, help="JSON lines")
    options = parser.parse_args(arguments)
    if options.quick:
        options.vocab, options.length, options.sequences = [1000, 1500], 32, 2
        options.rows, options.width, options.steps = 64, 32, 2
    results = [row for vocab in options.vocab for row in measured(options, vocab)]
    if options.output:
        options.output.write_text("".join(json.dumps(row) + "\n" for row in results))
    print(table(results))
    return results


def measured(options, vocab):
    """All variants at one size of vocabulary."""
    has_gpu = options.device == "cuda"
    if options.what == "step":
        names = options.variants or [v for v in VARIANTS if has_gpu or "liger" not in v]
    else:
        names = options.losses or [loss for loss in LOSSES if has_gpu or loss != "liger"]
    first = {}  # by kind of loop: the two read other rows
    for name in names:
        row = {
            "what": options.what,
            "variant": name,
            "vocab": vocab,
            **in_process(options, name, vocab),
        }
        if "loss" in row:
            expected = first.setdefault(name.split("-")[0] if "-" in name else "", row["loss"])
            row["same_loss"] = abs(row["loss"] / expected - 1) < 1e-3
        yield row


def in_process(options, name, vocab):
    """What `work` returns, or the error that ended it, from a process of its own."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=child, args=(options, name, vocab, theirs))
    process.start()
    theirs.close()
    try:
        return ours.recv()
    except EOFError:
        return {"error": f"died (exit code {process.exitcode}): maybe out of memory"}
    finally:
        process.join()


def child(options, name, vocab, pipe):
    import torch

    work = step_variant if options.what == "step" else head_variant
    try:
        pipe.send(work(options, name, vocab))
    except torch.cuda.OutOfMemoryError:
        pipe.send({"error": "out of memory"})
    except (ValueError, ImportError) as error:
        pipe.send({"error": str(error).splitlines()[0]})


def step_variant(options, name, vocab):
    """Seconds of a step, peak memory and MFU of one variant."""
    import torch

    from vocabshift.cpt.steps import device_peak, mfu, model_flops_per_token

    model = make_model(options, vocab)
    tokens = options.length * options.sequences
    flops = model_flops_per_token(model, options.length)
    kind, how = name.split("-")
    if kind == "loop":
        losses, seconds, peak = through_loop(options, model, how)
    else:
        losses, seconds, peak = plain_loop(options, model, how)
    typical = statistics.median(seconds)
    device_peak_flops = device_peak(options.device)
    return {
        "tokens_per_second": tokens / typical,
        "seconds": typical,
        "slowest": max(seconds),
        "mfu": mfu(tokens / typical, flops, device_peak_flops),
        "flops_per_token": flops,
        "peak_bytes": peak,
        "loss": losses[0],
        "device": torch.cuda.get_device_name() if options.device == "cuda" else "cpu",
        "torch": torch.__version__,
    }


def make_model(options, vocab):
    """Random weights, the same for every variant."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    shape = SHAPES["quick" if options.quick else options.shape]
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=vocab,
        max_position_embeddings=options.length,
        bos_token_id=256,
        eos_token_id=256,
        pad_token_id=None,
        tie_word_embeddings=not options.untied,
        attn_implementation="sdpa",
        **shape,
    )
    with torch.device(options.device):
        return LlamaForCausalLM(config).train()


WARM_UP = 3  # steps


def through_loop(options, model, how):
    """`pretrain` on random text; its tokens are bytes, which costs what any tokens cost."""
    import numpy as np

    from vocabshift.cpt.loop import LoopConfig, Phase, pretrain

    n_steps = WARM_UP + options.steps
    n_bytes = options.length * options.sequences * n_steps - n_steps
    config = LoopConfig(
        sequence_length=options.length,
        batch_size=options.sequences,
        mixed_precision="bf16",
        compile=how == "compiled",
        activation_checkpointing=how == "checkpointed",
        warmup=0.0,
        spike_factor=0,
    )
    steps = []
    memory = Memory(options.device)
    phases = [Phase(n_bytes=n_bytes, learning_rate=1e-5)]
    # Random, as in the plain loop: a GPU that multiplies equal rows draws less power and is faster.
    letters = np.random.default_rng(0).integers(97, 123, n_bytes, dtype=np.uint8).tobytes().decode()
    text = [letters[start::8] for start in range(8)]
    pretrain(model, byte_tokenizer(), text, phases=phases, config=config, on_step=steps.append)
    timed = steps[WARM_UP : WARM_UP + options.steps]
    return [step.loss for step in steps], [step.seconds for step in timed], memory.peak()


def byte_tokenizer():
    """256 bytes and an end."""
    from vocabshift.tokenizer import byte_level
    from vocabshift.tokenizer.added_tokens import AddedToken
    from vocabshift.tokenizer.model import BpeModel
    from vocabshift.tokenizer.tokenizer import Tokenizer

    part = {
        "type": "ByteLevel",
        "add_prefix_space": False,
        "trim_offsets": True,
        "use_regex": False,
    }
    vocab = {image: i for i, image in enumerate(byte_level.ALPHABET)}
    added = (AddedToken("<|end|>", 256),)
    return Tokenizer(BpeModel(vocab, ()), pre_tokenizer=part, decoder=part, added_tokens=added)


def plain_loop(options, model, how):
    """What a loop in PyTorch looks like, with the logits whole ("plain") or with our loss."""
    import torch

    from vocabshift.models.token_loss import token_loss

    is_gpu = options.device == "cuda"
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=is_gpu)
    shape = (options.sequences, options.length + 1)
    ids = torch.randint(0, 256, shape, generator=torch.Generator().manual_seed(0))
    ids = ids.to(options.device)
    losses, seconds = [], []
    memory = Memory(options.device)
    for _ in range(WARM_UP + options.steps):
        began = time.perf_counter()
        with torch.autocast(options.device, dtype=torch.bfloat16):
            if how == "plain":
                logits = model(input_ids=ids[:, :-1], use_cache=False).logits
                loss = torch.nn.functional.cross_entropy(
                    logits.flatten(0, 1).float(), ids[:, 1:].flatten()
                )
            else:
                loss = token_loss(model, ids[:, :-1], ids[:, 1:], loss=how)
                loss = loss / ids[:, 1:].numel()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        losses.append(loss.item())  # waits for the GPU
        seconds.append(time.perf_counter() - began)
    return losses, seconds[WARM_UP:], memory.peak()


def head_variant(options, name, vocab):
    """The loss of a head alone."""
    import torch

    from vocabshift.models.cross_entropy import linear_cross_entropy

    torch.manual_seed(0)
    dtype = torch.bfloat16 if options.device == "cuda" else torch.float32
    shapes = ((options.rows, options.width), (vocab, options.width))
    hidden, weight = (
        (torch.randn(shape) * scale).to(options.device, dtype).requires_grad_()
        for shape, scale in zip(shapes, (1.0, 0.02), strict=True)
    )
    targets = torch.randint(0, vocab, (options.rows,)).to(options.device)
    seconds, cpu = [], []
    gc.collect()
    memory = Memory(options.device)
    for _ in range(WARM_UP + options.steps):
        began, cpu_began = time.perf_counter(), time.process_time()
        loss = linear_cross_entropy(hidden, weight, targets, loss=name) / options.rows
        loss.backward()
        value = loss.item()
        seconds.append(time.perf_counter() - began)
        cpu.append(time.process_time() - cpu_began)
        hidden.grad = weight.grad = None
    return {
        "seconds": statistics.median(seconds[WARM_UP:]),
        "cpu_seconds": statistics.median(cpu[WARM_UP:]),
        "tokens_per_second": options.rows / statistics.median(seconds[WARM_UP:]),
        "peak_bytes": memory.peak(),
        "loss": value,
        "device": torch.cuda.get_device_name() if options.device == "cuda" else "cpu",
        "torch": torch.__version__,
    }


class Memory:
    """The highest use from here on: of the GPU, or of the process above what it uses now."""

    def __init__(self, device):
        self.device = device
        if device == "cuda":
            import torch

            torch.cuda.reset_peak_memory_stats()
        else:
            Path("/proc/self/clear_refs").write_text("5")
            self.start = self.resident("VmRSS")

    def peak(self):
        """Bytes."""
        if self.device == "cuda":
            import torch

            return torch.cuda.max_memory_allocated()
        return self.resident("VmHWM") - self.start

    @staticmethod
    def resident(name):
        """Linux alone knows its high-water mark by the moment."""
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))


def table(results):
    """Markdown, one row a variant."""
    lines = ["| | vocabulary | tokens/s | ms | MFU | peak GB | |", "|---|---|---|---|---|---|---|"]
    for row in results:
        if "error" in row:
            lines.append(f"| {row['variant']} | {row['vocab']:,} | | | | | {row['error']} |")
            continue
        share = f"{row['mfu']:.1%}" if row.get("mfu") is not None else ""
        lines.append(
            f"| {row['variant']} | {row['vocab']:,} | {row['tokens_per_second']:,.0f} "
            f"| {1000 * row['seconds']:.1f} | {share} | {row['peak_bytes'] / 1e9:.2f} "
            f"| {'' if row['same_loss'] else '**another loss**'} |"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
