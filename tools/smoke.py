"""Run every verb of an installed vocabshift once, on small texts of ours.

    python tools/smoke.py
    python tools/smoke.py train extend

For a wheel in a bare environment: it needs nothing but the package, whose demo brings the texts.
Verbs whose extra is not installed are named and left out (`--all`: that is an error), so the last
line is `N verbs ran`, and what did not. A verb that has no line here is an error too. Exit code 1
and the output of the command where one fails.
"""

from __future__ import annotations

import argparse
import importlib.util
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path

from vocabshift.cli.main import build_parser
from vocabshift.demo import story

_LINES = 40
MAKE_MODEL = """
import torch, transformers
torch.manual_seed(0)
tokenizer = transformers.AutoTokenizer.from_pretrained("first")
config = transformers.LlamaConfig(
    vocab_size=len(tokenizer), hidden_size=32, intermediate_size=64, num_hidden_layers=1,
    num_attention_heads=2, max_position_embeddings=256)
transformers.LlamaForCausalLM(config).save_pretrained("model")
tokenizer.save_pretrained("model")
"""
_CPT = """
model = "model"
data = ["hi=hi.txt", "en=en.txt"]
out = "trained"
sequence_length = 64
step_tokens = 512
micro_batch_size = 4
mixed_precision = "no"

[[phases]]
trained = "all"
n_bytes = "8KB"
"""
_SMALL = ["--vocab-size", "600"]
_TEXT = ["hi=hi.txt", "en=en.txt"]
_BRIEFLY = ["--n-prompts", "2", "--prompt-bytes", "64", "--max-new-tokens", "4", "--repeats", "1"]

# A verb, and its commands after `vocabshift`, in an order in which each finds what it needs.
STEPS: dict[str, list[list[str]]] = {
    "normalize": [["normalize", "hi=hi.txt", "--normalizer", "nfc"]],
    "count": [["count", *_TEXT, "-o", "counts"]],
    "train": [
        ["train", "--recipe", "bpe", "--corpus", "en=en.txt", *_SMALL, "-o", "first"],
        ["train", "--recipe", "ist", "--corpus", *_TEXT, *_SMALL, "-o", "second"],
    ],
    "plan": [["plan", "first", "--corpus", *_TEXT, "--max-tokens", "60"]],
    "extend": [["extend", "first", "--corpus", *_TEXT, "--n-tokens", "60", "-o", "extended"]],
    "prune": [["prune", "first", "--corpus", "en=en.txt", "--n-tokens", "60", "-o", "pruned"]],
    "evaluate": [["evaluate", "first", "second", "--text", *_TEXT, "--output", "rows.jsonl"]],
    "compare": [["compare", "first", "extended", "--text", *_TEXT, "--html", "compare.html"]],
    "tables": [["tables", "rows.jsonl", "--format", "latex"]],
    "check": [["check", "first", "extended", "--text", "hi=hi.txt"]],
    "card": [["card", "second", "--results", "rows.jsonl", "-o", "second/README.md"]],
    "publish": [["publish", "second", "me/second"]],  # a dry run
    "encode": [["encode", "second", *_TEXT, "-o", "packed"]],
    "serve": [],  # see _serve
    "transfer": [["transfer", "model", "second", "-o", "moved"]],
    "adapt": [["adapt", "model", "--corpus", *_TEXT, "--n-tokens", "40", "-o", "adapted"]],
    "convert": [["convert", "model", "--dtype", "F16", "-o", "model.gguf"]],
    "draft-vocab": [["draft-vocab", "model", "--corpus", *_TEXT, "--n-tokens", "300", "-o", "few"]],
    "cpt": [["cpt", "cpt.toml"]],
    "score": [["score", "model", "--text", *_TEXT]],
    "teach": [["teach", "model", "en=en.txt", "-o", "taught"]],
    "language-pack": [["language-pack", "moved", "--base", "model", "-o", "pack"]],
    "glitch": [["glitch", "model"]],
    "latency": [["latency", "model", "--text", "en=en.txt", *_BRIEFLY]],
    "harness": [["harness", "model", "--tasks", "sib200:hi", "--help"]],
    "merge": [["merge", "--help"]],
    "decide": [["decide", "--help"]],
    "demo": [["demo", "--help"]],
}
_AFTER = {
    "tables": ["evaluate"],
    "card": ["evaluate"],
    "publish": ["evaluate", "card"],
    "language-pack": ["transfer"],
}
_OF_MODELS = {"transfer", "adapt", "draft-vocab", "cpt", "score", "teach", "language-pack"}
_NEEDS = {  # packages beside those that every install has
    **{verb: ["torch", "transformers"] for verb in [*sorted(_OF_MODELS), "glitch", "latency"]},
    "count": ["pyarrow"],
    "convert": ["torch", "transformers", "gguf"],
    "harness": ["lm_eval"],
    "serve": ["starlette", "uvicorn"],
}


def main() -> int:
    """Run the verbs that are asked for; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("verbs", nargs="*", help="only these, and what they need (default: all)")
    parser.add_argument("--all", action="store_true", help="a missing extra is an error")
    asked = parser.parse_args()
    if unknown := set(_verbs()) ^ set(STEPS):
        raise SystemExit(f"verbs and steps differ: {', '.join(sorted(unknown))}")
    wanted = [*asked.verbs, *(name for verb in asked.verbs for name in _AFTER.get(verb, []))]
    wanted = wanted or list(STEPS)
    missing = {
        verb: [name for name in _NEEDS.get(verb, []) if importlib.util.find_spec(name) is None]
        for verb in wanted
    }
    left_out = [f"{verb} (no {', '.join(names)})" for verb, names in missing.items() if names]
    if left_out and asked.all:
        raise SystemExit(f"cannot run {'; '.join(left_out)}")
    run = [verb for verb in STEPS if verb in wanted and not missing[verb]]
    with tempfile.TemporaryDirectory() as folder:
        write_inputs(Path(folder))
        # Every other verb reads one of these tokenizers.
        for command in STEPS["train"]:
            _run([sys.executable, "-m", "vocabshift", *command], folder)
        if any("torch" in _NEEDS.get(verb, []) for verb in run):
            _run([sys.executable, "-c", MAKE_MODEL], folder)
        for verb in run:
            for command in STEPS[verb] if verb != "train" else []:
                _run([sys.executable, "-m", "vocabshift", *command], folder)
            if verb == "serve":
                _serve(folder)
            print(f"{verb}: runs", flush=True)
    print(f"{len(run)} verbs ran" + "".join(f"; not {text}" for text in left_out))
    return 0


def _verbs() -> list[str]:
    for action in build_parser()._actions:
        if isinstance(action, argparse._SubParsersAction):
            return list(action.choices)
    raise SystemExit("the parser has no verbs")


def write_inputs(folder: Path) -> None:
    """Texts of the package's demo, a configuration of `cpt`, and an empty folder of tasks."""
    texts = story.beginnings(_LINES)
    for name, language in (("hi", "hin"), ("en", "eng")):
        lines = [line for key, found in texts.items() if key.startswith(language) for line in found]
        (folder / f"{name}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / "cpt.toml").write_text(_CPT, encoding="utf-8")
    (folder / "tasks").mkdir()


def _run(command: list[str], folder: str) -> None:
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, encoding="utf-8", check=False
    )
    if done.returncode != 0:
        said = done.stdout[-2000:] + done.stderr[-4000:]
        raise SystemExit(f"{' '.join(command)}\nended with {done.returncode}:\n{said}")


def _serve(folder: str) -> None:
    """Start the playground on any port, and fetch its page."""
    command = [sys.executable, "-m", "vocabshift", "serve", "first", "--port", "0", "--no-browser"]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            said = next((line for line in server.stdout if "http://" in line), "")
            address = next((word for word in said.split() if word.startswith("http://")), "")
            if not address:
                raise SystemExit(f"serve names no address: {said}")
            with urllib.request.urlopen(address, timeout=60) as page:
                if b"<html" not in page.read():
                    raise SystemExit(f"no page at {address}")
        finally:
            server.terminate()


if __name__ == "__main__":
    sys.exit(main())
