"""`vocabshift score` on checkpoints made here, held against sums that transformers alone makes."""

from __future__ import annotations

import io
import json
import math
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import torch
import transformers
from safetensors.torch import load_file, save_file

import small_models
import vocabshift as vs
from vocabshift.cli.main import main

HINDI = "बिल्ली और दूसरी बिल्ली वहाँ बैठी थी"
LINES = {
    "en": ["the cat and the other cat", "  a day, another letter ", "heater\u2028 day", "x" * 150],
    "hi": [HINDI, "एक और दिन 🐈‍⬛ é"],
}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Texts, and models: tied with a BOS, untied without one and with other tokens, and BERT."""
    place = tmp_path_factory.mktemp("score")
    (place / "en.txt").write_bytes("".join(f"{line}\r\n" for line in LINES["en"]).encode())
    (place / "hi.txt").write_bytes("\n".join([LINES["hi"][0], " ", LINES["hi"][1]]).encode())
    old = small_models.old_tokenizer()
    small_models.save(_loud(small_models.build("llama-tied", old)), old, place / "tied")
    other = small_models.train(small_models.HINDI, 340, small_models.SPECIALS)
    plain = small_models.build("gpt2", other, bos_token_id=None)
    small_models.save(_loud(plain), other, place / "runs" / "tied")
    small_models.save(small_models.build("bert", old), old, place / "bert")
    small_models.save(small_models.build("mt5", old), old, place / "mt5")
    old.save_pretrained(place / "tokenizer")
    small_models.build("llama", old).save_pretrained(place / "bare")
    small_models.save(small_models.build("llama", old), other, place / "mixed")
    for name, changed in (("nan", lambda head: head * torch.nan), ("cut", lambda head: head[:-8])):
        folder = small_models.save(small_models.build("llama", old), old, place / name)
        tensors = load_file(folder / "model.safetensors")
        tensors["lm_head.weight"] = changed(tensors["lm_head.weight"]).clone()
        save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    return place


def _loud(model: Any) -> Any:
    """Far from uniform, so that every token has a price of its own."""
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return model


def plain_bits(folder: Path, text: str, context: int = 64, overlap: int = 32) -> float:
    """Bits of a document, each token by a run of its own over what stands before it."""
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    prefix = [] if model.config.bos_token_id is None else [model.config.bos_token_id]
    total, at = 0.0, 0
    for position, token_id in enumerate(ids):
        if position == at + context - len(prefix):
            at = position - overlap
        before = prefix + ids[at:position]
        if before:
            with torch.no_grad():
                logits = model(input_ids=torch.tensor([before])).logits[0, -1].double()
            total -= float(logits.log_softmax(-1)[token_id]) / math.log(2)
    return total


def run_json(capsys: pytest.CaptureFixture[str], *words: object) -> dict[str, Any]:
    assert main(["score", *map(str, words), "--json"]) == 0
    out = capsys.readouterr().out
    assert out.count("\n") == 1
    return dict(json.loads(out))


def test_equals_an_independent_sum(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two models, CRLF endings, long documents, no BOS: every figure is rebuilt by transformers."""
    folders = [place / "tied", place / "runs" / "tied"]
    texts = [f"en={place / 'en.txt'}", f"hi={place / 'hi.txt'}"]
    options = ["--batch-tokens", "100", "--device", "cpu", "--output", place / "rows.jsonl"]
    found = run_json(capsys, *folders, "--text", *texts, *options)
    rows = {(row["subject"], row["language"]): row for row in found["results"]}
    subjects = [f"{place.name}/tied", "runs/tied"]
    named = dict(zip(subjects, folders, strict=True))
    lines = [*vs.evaluate(named, LINES), *vs.evaluate(named, [*LINES["en"], *LINES["hi"]])]
    sources = {(r.subject, r.language): (r.tokenizer_sha256, r.text_sha256) for r in lines}
    assert sources == {k: (r["tokenizer_sha256"], r["text_sha256"]) for k, r in rows.items()}
    assert list(rows) == [(s, language) for s in subjects for language in ("en", "hi", "all")]
    bits = {
        (subject, language): [plain_bits(folder, line) for line in lines]
        for subject, folder in zip(subjects, folders, strict=True)
        for language, lines in LINES.items()
    }
    sizes = {language: [len(x.encode()) for x in lines] for language, lines in LINES.items()}
    for (subject, language), own in bits.items():
        row = rows[subject, language]
        assert row["metric"] == "bits_per_byte"
        assert row["value"] == pytest.approx(sum(own) / sum(sizes[language]), rel=1e-4)
        assert row["n"] == len(own)
        assert row["ci_low"] < row["value"] < row["ci_high"]
    n_bytes = sum(map(sum, sizes.values()))
    a, b = (sum(bits[s, "en"]) + sum(bits[s, "hi"]) for s in subjects)
    assert rows[subjects[1], "all"]["value"] == pytest.approx(b / n_bytes, rel=1e-4)
    pairs = {pair["language"]: pair for pair in found["comparisons"]}
    assert list(pairs) == ["en", "hi", "all"]
    assert pairs["all"]["n"] == 6
    assert pairs["all"]["difference"] == pytest.approx((a - b) / n_bytes, rel=1e-3)
    written = (place / "rows.jsonl").read_text(encoding="utf-8").split("\n")[:-1]
    assert [json.loads(line) for line in written] == found["results"]


def test_overlap_and_context_are_what_was_asked(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """And standard input is read once for both models."""
    stdin = type("Stdin", (), {"buffer": io.BytesIO((HINDI * 3).encode())})()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdin", stdin)
        options = ["--context", 20, "--overlap", 3]
        models = [place / "tied", place / "runs" / "tied"]
        found = run_json(capsys, *models, "--text", "hi=-", *options)
    for folder, row in zip(models, found["results"], strict=True):
        expected = plain_bits(folder, HINDI * 3, 20, 3) / len((HINDI * 3).encode())
        assert row["value"] == pytest.approx(expected, rel=1e-4)
        assert row["ci_low"] is None


def test_a_bos_that_begins_a_chat_message(
    place: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """`score`, `teach` and `cpt` warn; stdout stays one object."""
    folder = shutil.copytree(place / "tied", tmp_path / "chat")
    bos = json.loads((folder / "config.json").read_text())["bos_token_id"]
    added = json.loads((folder / "tokenizer.json").read_text())["added_tokens"]
    [text] = (token["content"] for token in added if token["id"] == bos)
    template = f"{{% for message in messages %}}{{{{ '{text}' + message['role'] }}}}{{% endfor %}}"
    (folder / "chat_template.jinja").write_text(template)
    settings = {"model": folder, "data": place / "en.txt", "out": tmp_path / "trained"}
    keys = [f"{key}={value}" for key, value in settings.items()]
    commands = (
        ["score", folder, "--text", place / "en.txt"],
        ["teach", folder, place / "en.txt", "-o", tmp_path / "taught"],
        ["cpt", *keys, "n_bytes=200", "sequence_length=32", "cpu=true"],
    )
    for command in commands:
        with pytest.warns(UserWarning, match="documents begin with '<s>', the BOS of"):
            assert main([*map(str, command), "--json"]) == 0
        json.loads(capfd.readouterr().out)


def test_tables_for_people(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Bits per byte with half the interval, then the pairs."""
    models = [str(place / "tied"), str(place / "runs" / "tied")]
    text = f"en={place / 'en.txt'}"
    assert main(["score", *models, "--text", text, "--dtype", "bfloat16"]) == 0
    out = capsys.readouterr().out
    for part in ("bits_per_byte", "runs/tied", "±", "pairs of models", "p (Holm)"):
        assert part in out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("{tokenizer} --text {en}", "no config.json"),
        ("{nothing}/here/it/is --text {en}", "no such file or folder"),
        ("{bare} --text {en}", "tokenizer"),
        ("{mixed} --text {en}", "needs 305 embedding rows and the model has 288"),
        ("{bert} --text {en}", "no causal language model"),
        ("{mt5} --text {en}", "no causal language model"),
        ("{tied} --text {en} --context 65", "64 positions"),
        ("{tied} --text {en} --overlap 64", "overlap is 64"),
        ("{tied} --text {en} --device cuda:77", "no device 'cuda:77'"),
        ("{tied} --text {en} --device abacus", "no device 'abacus'"),
        ("{tied} --text {en} --device meta", "holds no numbers"),
        ("{nan} --text {en} --json", "no finite likelihood"),
        ("{cut} --text {en}", "lm_head.weight is [280, 16] in its weights, and [288, 16] by"),
        ("{tied} --text {empty}", "no text"),
        ("{tied} --text en={en} ta={empty}", "no text to score for ta"),
        ("{tied} --text {en} --output {en}", "also an input"),
        ("{tied}", "--text"),
    ],
)
def test_bad_input(
    words: str, message: str, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line on stderr, nothing on stdout, exit 2, nothing written."""
    (place / "empty.txt").write_text("\n \n")
    folders = ("tokenizer", "bare", "mixed", "bert", "mt5", "tied", "nan", "cut")
    names = {name: place / name for name in folders}
    files = {"en": place / "en.txt", "empty": place / "empty.txt", "nothing": place / "nothing"}
    assert main(["score", *words.format(**names, **files).split()]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert message in captured.err
    assert captured.err.count("\n") == 1
