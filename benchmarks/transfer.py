"""Time and memory of moving a model's rows, against transformers and against `cp`.

    python benchmarks/transfer.py rows --hidden 2048 [--theirs]
    python benchmarks/transfer.py checkpoint --gb 8 --folder DIR

`rows`: 128,000 -> 200,000 rows in bfloat16, tied, new rows the mean of three or four old ones; the
shard is read from and written to the disk (ours), or the model is in memory already and
`resize_token_embeddings(200_000)` makes random rows (theirs). `checkpoint`: a sharded model of
random weights is made in DIR, transferred, copied with `cp`, and removed. Every run is a process of
its own; its peak memory counts torch and transformers (about 0.5 GB).
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import resource
import shutil
import subprocess
import time
from pathlib import Path

import numpy as np

OLD, NEW = 128_000, 200_000


def row_sources():
    """A map that keeps 126,000 tokens under other ids and makes 74,000 of three or four."""
    from vocabshift.surgery.row_sources import RowSources

    rng = np.random.default_rng(0)
    n_kept = 126_000
    ids = rng.permutation(NEW)
    kept, made = np.sort(ids[:n_kept]), np.sort(ids[n_kept:])
    lengths = rng.integers(3, 5, len(made))
    return RowSources(
        copied_from=np.sort(rng.permutation(OLD)[:n_kept]),
        copied_to=kept,
        made=made,
        pieces=rng.integers(0, OLD, lengths.sum()),
        offsets=np.concatenate([[0], np.cumsum(lengths)]),
        old_ids=np.arange(OLD),
    )


def write_model(folder: Path, hidden: int, other_bytes: int, shard_bytes: int) -> None:
    """A Llama folder of random weights: the tied table, and `other_bytes` of other tensors."""
    import torch
    from safetensors.torch import save_file

    folder.mkdir(parents=True)
    inner = 4 * hidden
    per_layer = 2 * (4 * hidden * hidden + 3 * hidden * inner)
    layers = max(1, other_bytes // per_layer)
    config = {
        "model_type": "llama",
        "architectures": ["LlamaForCausalLM"],
        "vocab_size": OLD,
        "hidden_size": hidden,
        "intermediate_size": inner,
        "num_hidden_layers": layers,
        "num_attention_heads": hidden // 64,
        "tie_word_embeddings": True,
        "bos_token_id": None,
        "eos_token_id": None,
    }
    (folder / "config.json").write_text(json.dumps(config))
    generator = torch.Generator().manual_seed(0)

    def random(*shape: int):
        return torch.randn(shape, generator=generator, dtype=torch.float32).to(torch.bfloat16)

    shapes = {"self_attn.q_proj": (hidden, hidden), "self_attn.k_proj": (hidden, hidden)}
    shapes |= {"self_attn.v_proj": (hidden, hidden), "self_attn.o_proj": (hidden, hidden)}
    shapes |= {"mlp.gate_proj": (inner, hidden), "mlp.up_proj": (inner, hidden)}
    shapes |= {"mlp.down_proj": (hidden, inner)}
    pool = random(inner, hidden)
    shards = [{"model.embed_tokens.weight": torch.cat([random(4000, hidden)] * (OLD // 4000))}]
    for layer in range(layers if other_bytes else 0):
        if sum(t.numel() * 2 for t in shards[-1].values()) > shard_bytes:
            save_file(shards[-1], folder / f"s{len(shards)}.safetensors", {"format": "pt"})
            shards[-1] = dict.fromkeys(shards[-1])
            shards.append({})
        for name, shape in shapes.items():
            # Equal numbers in every layer, but stored layer by layer: nobody reads them.
            shards[-1][f"model.layers.{layer}.{name}.weight"] = (
                pool.view(-1)[: shape[0] * shape[1]].clone().view(shape)
            )
    save_file(shards[-1], folder / f"s{len(shards)}.safetensors", {"format": "pt"})
    places = {
        name: f"s{number}.safetensors" for number, shard in enumerate(shards, 1) for name in shard
    }
    index = {"metadata": {}, "weight_map": places}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))


def ours(folder: Path, out: Path) -> None:
    """Everything but the two tokenizers: plan, check of all rows, shards, index."""
    from vocabshift.models.saved import open_saved
    from vocabshift.storage.output import atomic_folder
    from vocabshift.surgery import stream
    from vocabshift.surgery.initialize import fvt
    from vocabshift.surgery.rows import InitContext, check_rows, new_table

    saved = open_saved(folder)
    sources = row_sources()
    check_rows(saved.matrices, sources, OLD)
    made = InitContext("fvt", 0, sources, sources, fvt)

    def fill(table, rows):
        return new_table(table, made, NEW, out=rows)

    plans = stream.plan_shards(saved, NEW, fill)
    stream.check_space(out, plans, hard_links=False)
    with atomic_folder(out, keep_checkpoints=True) as partial:
        stream.write_shards(saved, plans, partial, "benchmark", hard_links=False)


def plain_copy(folder: Path, out: Path) -> float:
    """`cp`, and until it is on the disk, as ours is; seconds of `cp` alone are printed."""
    start = time.perf_counter()
    subprocess.run(["cp", "-r", folder, out], check=True)
    print(f"  cp without sync {time.perf_counter() - start:.1f} s", flush=True)
    for file in out.iterdir():
        subprocess.run(["sync", file], check=True)
    return time.perf_counter() - start


def theirs(folder: Path, _: Path) -> float:
    """transformers, in memory; seconds without loading."""
    import torch
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.bfloat16)
    start = time.perf_counter()
    model.resize_token_embeddings(NEW)
    return time.perf_counter() - start


def _child(work, folder: Path, out: Path, pipe) -> None:
    import torch
    import transformers  # noqa: F401 - loaded outside the clock

    torch.set_num_threads(1)
    start, before = time.perf_counter(), os.times()
    seconds = work(folder, out)
    wall, after = time.perf_counter() - start, os.times()
    cpu = sum(after[:4]) - sum(before[:4])  # its children too
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    pipe.send((wall if seconds is None else seconds, cpu, peak))


def measure(work, folder: Path, out: Path) -> str:
    context = multiprocessing.get_context("spawn")
    mine, its = context.Pipe()
    process = context.Process(target=_child, args=(work, folder, out, its))
    process.start()
    wall, cpu, peak = mine.recv()
    process.join()
    return f"{wall:6.1f} s wall, {cpu:6.1f} s CPU, peak {peak:.2f} GiB"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("rows", "checkpoint"))
    parser.add_argument("--hidden", type=int, default=2048)
    parser.add_argument("--gb", type=float, default=8)
    parser.add_argument("--folder", type=Path, default=Path("benchmark-model"))
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--theirs", action="store_true")
    args = parser.parse_args()
    model, out = args.folder / "model", args.folder / "out"
    try:
        table = OLD * args.hidden * 2
        other = 0 if args.what == "rows" else int(args.gb * 1e9) - table
        # Its own process: a child's peak begins at what its parent had in memory.
        maker = multiprocessing.get_context("spawn").Process(
            target=write_model, args=(model, args.hidden, other, 1_500_000_000)
        )
        maker.start()
        maker.join()
        size = sum(file.stat().st_size for file in model.iterdir())
        print(f"model of {size / 1e9:.2f} GB, table of {table / 1e9:.2f} GB")
        # Both in a process of their own that has just imported the same: how long ago the last
        # output was removed decides how dear fresh memory for its pages is (in a virtual machine).
        for _ in range(args.runs):
            print("ours    ", measure(ours, model, out), flush=True)
            shutil.rmtree(out)
            if args.what == "checkpoint":
                print("cp, sync", measure(plain_copy, model, out), flush=True)
                shutil.rmtree(out)
        if args.theirs:
            print("theirs  ", measure(theirs, model, out), flush=True)
    finally:
        shutil.rmtree(args.folder)


if __name__ == "__main__":
    main()
