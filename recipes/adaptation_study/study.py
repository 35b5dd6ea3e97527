"""Pre-train a small Llama for each seed, adapt it in every arm, and measure what came of it.

    python recipes/adaptation_study/study.py --train texts/train --eval texts/eval \\
        --tokenizers runs/adaptation/tokenizers --home en code --new hi ta -o runs/adaptation

Writes OUT/models/SEED/pretrained, OUT/models/SEED/ARM (model folders) and OUT/arms/SEED-ARM.json;
what is there is not made again. All in one process and one thread: starting torch for each of a
hundred steps would take longer than training does.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import probe
from arms import ARMS, BASE, Arm, adaptation_sizes, drawn, held_out
from training import Setting, make, train

import vocabshift as vs
from vocabshift.evaluation.glitch.find import find_glitch_tokens
from vocabshift.evaluation.glitch.summary import summary, token_rows
from vocabshift.evaluation.scoring.score import score_documents


def save(model: Any, tokenizer: vs.Tokenizer, folder: Path) -> None:
    """Both in one folder, which appears whole."""
    partial = folder.with_name(folder.name + ".partial")
    tokenizer.save_pretrained(partial, force=True)
    model.save_pretrained(partial)
    partial.rename(folder)


def pretrained(args: argparse.Namespace, setting: Setting, seed: int) -> Path:
    """The model of a seed, trained on the languages that are at home."""
    folder: Path = args.out / "models" / str(seed) / "pretrained"
    if not folder.exists():
        tokenizer = vs.load_tokenizer(args.tokenizers / BASE)
        sizes = {language: args.pretrain_bytes // len(args.home) for language in args.home}
        model = make(tokenizer, setting, seed)
        facts = train(
            model,
            tokenizer,
            drawn(args.train, sizes, seed),
            setting,
            seed=seed,
            learning_rate=args.pretrain_rate,
            scored=held_out(args.eval, [*args.home, *args.new], args.curve_documents),
        )
        write(args.out / "arms" / f"{seed}-pretrained.json", facts)
        save(model, tokenizer, folder)
        tell(f"seed {seed}: pre-trained", facts)
    return folder


def adapt(args: argparse.Namespace, setting: Setting, seed: int, arm: Arm) -> None:
    """One arm of one seed, from the pre-trained model to its figures."""
    file = args.out / "arms" / f"{seed}-{arm.key}.json"
    if file.exists():
        return
    from transformers import LlamaForCausalLM

    source = pretrained(args, setting, seed)
    model: Any = LlamaForCausalLM.from_pretrained(source)
    tokenizer = vs.load_tokenizer(source)
    if arm.init is not None:
        new = args.tokenizers / arm.tokenizer
        model, tokenizer = vs.transfer(model, old=source, new=new, init=arm.init, seed=seed)
    sizes = adaptation_sizes(args.home, args.new, args.adapt_bytes)
    facts = train(
        model,
        tokenizer,
        drawn(args.train, sizes, 1000 + seed),  # another draw than that of pre-training
        setting,
        seed=seed,
        learning_rate=args.adapt_rate,
        scored=held_out(args.eval, [*args.home, *args.new], args.curve_documents),
    )
    folder = args.out / "models" / str(seed) / arm.key
    if not folder.exists():
        save(model, tokenizer, folder)
    what = {"arm": arm.name, "tokenizer": arm.tokenizer, "init": arm.init, "seed": seed}
    what |= {"home": args.home, "new": args.new}
    what["rows"] = model.get_input_embeddings().weight.shape[0]
    write(file, what | facts | figures(args, setting, model.eval(), tokenizer, folder))
    tell(f"seed {seed}: {arm.name}", facts)


def figures(
    args: argparse.Namespace, setting: Setting, model: Any, tokenizer: vs.Tokenizer, folder: Path
) -> dict[str, Any]:
    """What a trained model is worth: documents, topics, tokens that look untrained."""
    languages = [*args.home, *args.new]
    texts = held_out(args.eval, languages, args.documents)
    documents = score_documents(model, tokenizer, texts, context=setting.length)
    topics = {name: probe.read(args.sib200 / name) for name in languages if has_topics(args, name)}
    encoder = vs.Encoder(tokenizer)
    report = find_glitch_tokens(folder)
    return {
        "documents": {
            language: [(d.n_bytes, d.nats) for d in documents if d.language == language]
            for language in languages
        },
        "sib200": {
            name: probe.correct(model, encoder, splits, setting.length)
            for name, splits in topics.items()
        },
        "sib200_majority": {name: probe.majority(splits) for name, splits in topics.items()},
        "glitch": summary(report, token_rows(report)),
    }


def has_topics(args: argparse.Namespace, language: str) -> bool:
    """SIB-200 has natural languages only."""
    return (args.sib200 / language).is_dir()


def write(file: Path, facts: dict[str, Any]) -> None:
    """Whole or not at all."""
    file.parent.mkdir(parents=True, exist_ok=True)
    partial = file.with_name(file.name + ".partial")
    partial.write_text(json.dumps(facts, ensure_ascii=False) + "\n", encoding="utf-8")
    partial.rename(file)


def tell(what: str, facts: dict[str, Any]) -> None:
    """One line on standard error."""
    last = facts["curve"][-1]["bits_per_byte"]
    told = " ".join(f"{language} {value:.3f}" for language, value in last.items())
    print(
        f"{what}: {facts['n_tokens']:,} tokens, {facts['n_steps']} steps, "
        f"{facts['cpu_seconds']:.0f} s; {told}",
        file=sys.stderr,
        flush=True,
    )


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--train", type=Path, required=True, help="folder of LANG.txt, LANG.jsonl")
    parser.add_argument("--eval", type=Path, required=True, help="sib200-flores/LANG.txt, code/*")
    parser.add_argument("--sib200", type=Path, required=True, help="LANG/train.tsv, dev, test")
    parser.add_argument("--tokenizers", type=Path, required=True)
    parser.add_argument("--home", nargs="+", required=True, help="languages of pre-training")
    parser.add_argument("--new", nargs="+", required=True, help="languages to adapt to")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--pretrain-bytes", type=int, default=500_000)
    parser.add_argument("--adapt-bytes", type=int, default=200_000)
    parser.add_argument("--step-bytes", type=int, default=2_000, help="of text, in every arm")
    parser.add_argument("--pretrain-rate", type=float, default=4e-3)
    parser.add_argument("--adapt-rate", type=float, default=2e-3)
    parser.add_argument("--points", type=int, default=4, help="of a curve, behind the first")
    parser.add_argument("--documents", type=int, default=100, help="scored, of each language")
    parser.add_argument("--curve-documents", type=int, default=20)
    parser.add_argument("--hidden", type=int, default=96)
    parser.add_argument("--layers", type=int, default=3)
    parser.add_argument("--length", type=int, default=128, help="tokens of a training sequence")
    parser.add_argument("-o", "--out", type=Path, required=True)
    return parser.parse_args()


def main() -> None:
    """Seed by seed, so that whatever is there when it is stopped compares all arms."""
    args = arguments()
    from vocabshift.demo.walk import one_thread

    setting = Setting(
        hidden=args.hidden,
        layers=args.layers,
        length=args.length,
        step_bytes=args.step_bytes,
        points=args.points,
    )
    with one_thread():
        for seed in range(args.seeds):
            for arm in ARMS:
                adapt(args, setting, seed, arm)


if __name__ == "__main__":
    main()
