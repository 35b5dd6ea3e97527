"""BoundlessBPE, PickyBPE, OBPE and stacked vocabularies through the command line, on files."""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
import tokenizers

from vocabshift.cli.main import main

TEXTS = Path(str(resources.files("vocabshift.demo"))) / "texts"
LABELS = ("eng", "hin", "tam")


def train(capsys: pytest.CaptureFixture[str], out: Path, *words: str) -> dict[str, Any]:
    specs = [f"{label}={TEXTS / label}.txt" for label in LABELS]
    common = ("--vocab-size", "1200", "-o", str(out), "-j", "2", "--json")
    status = main(["train", "--corpus", *specs, *common, *words])
    streams = capsys.readouterr()
    assert 0 == status, streams.err
    return dict(json.loads(streams.out))


def lines() -> list[str]:
    return [
        line for label in LABELS for line in (TEXTS / f"{label}.txt").read_text("utf-8").split("\n")
    ]


def tokens_of(folder: Path) -> int:
    """Tokens of the corpus, as `tokenizers` counts them; every line must come back."""
    backend = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    encodings = backend.encode_batch(lines(), add_special_tokens=False)
    assert lines() == [backend.decode(encoding.ids) for encoding in encodings]
    return sum(len(encoding.ids) for encoding in encodings)


def test_boundless(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    result = train(capsys, tmp_path / "out", "--recipe", "boundless")
    assert ("boundless", 1200, 0) == (result["recipe"], result["vocab_size"], result["unreachable"])
    assert result["merges"] == result["stage1_merges"] + result["stage2_merges"]
    assert result["superwords"] > 0
    assert tokens_of(tmp_path / "out") == result["training_tokens"]
    assert 0 < result["boundless_tokens"]
    # One document of 166: known of these texts, so that neither a share of 0 nor of all passes.
    assert (166, 1 / 166) == (result["training_documents"], result["documents_differing"])
    assert 0 == main(["check", str(tmp_path / "out"), "--strict", "--json"])


def test_boundless_options_and_summary(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    words = ("--recipe", "boundless", "--max-words", "2", "--merge-pattern", r"\p{L}")
    few = train(capsys, tmp_path / "few", *words)
    provenance = json.loads((tmp_path / "few" / "vocabshift.json").read_text(encoding="utf-8"))
    assert r"\p{L}" == provenance["config"]["merge_pattern"]
    assert few["boundless_tokens"] == provenance["figures"]["boundless_tokens"]
    spec = f"{TEXTS / 'eng'}.txt"
    out = str(tmp_path / "people")
    words = ("--recipe", "boundless", "--corpus", spec, "--vocab-size", "600", "-o", out)
    assert 0 == main(["train", *words])
    streams = capsys.readouterr()
    assert "tokens by BoundlessBPE itself" in streams.out + streams.err
    assert "documents that differ" in streams.out + streams.err


def test_picky(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    result = train(capsys, tmp_path / "out", "--recipe", "picky", "--threshold", "0.8")
    assert ("picky", 1200, 0) == (result["recipe"], result["vocab_size"], result["unreachable"])
    assert result["left_out"] == result["returned"] <= result["removals"]
    assert tokens_of(tmp_path / "out") == result["training_tokens"]
    assert 0 < result["words_differing"] < 1
    assert 0 == main(["check", str(tmp_path / "out"), "--strict", "--json"])
    provenance = json.loads((tmp_path / "out" / "vocabshift.json").read_text(encoding="utf-8"))
    assert 0.8 == provenance["config"]["threshold"]
    assert result["replayed_tokens"] == provenance["figures"]["replayed_tokens"]


def test_overlap(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    result = train(capsys, tmp_path / "out", "--recipe", "overlap")
    assert ("overlap", 1200, 0) == (result["recipe"], result["vocab_size"], result["unreachable"])
    assert set(LABELS) == {*result["high_resource"], *result["low_resource"]}
    assert tokens_of(tmp_path / "out") == result["training_tokens"]
    flags = ("--high-resource", "eng", "tam", "--overlap-alpha", "0.3", "--overlap-power", "min")
    other = train(capsys, tmp_path / "flags", "--recipe", "overlap", *flags)
    assert (["eng", "tam"], ["hin"]) == (other["high_resource"], other["low_resource"])
    toml = tmp_path / "f.toml"
    toml.write_text(
        'recipe = "overlap"\nhigh_resource = ["eng", "tam"]\noverlap_alpha = 0.3\n'
        'overlap_power = "min"\n',
        "utf-8",
    )
    same = train(capsys, tmp_path / "toml", "--config", str(toml))
    assert other["config_hash"] == same["config_hash"]
    assert 0 == main(["check", str(tmp_path / "out"), "--strict", "--json"])


def test_parity(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    result = train(capsys, tmp_path / "out", "--recipe", "parity")
    assert ("parity", 1200, 0) == (result["recipe"], result["vocab_size"], result["unreachable"])
    assert ("training text", 944) == (
        result["measured_on"],
        sum(result["language_merges"].values()),
    )
    assert tokens_of(tmp_path / "out") == result["training_tokens"]
    for label in LABELS:  # as long as each other, if not the same
        lines_of = (TEXTS / f"{label}.txt").read_text("utf-8").splitlines()[:20]
        (tmp_path / f"{label}.txt").write_text("\n".join(lines_of), encoding="utf-8")
    parallel = [f"{label}={tmp_path / label}.txt" for label in LABELS]
    flags = ("--parallel", *parallel, "--global-merges", "100", "--window-size", "50")
    other = train(capsys, tmp_path / "flags", "--recipe", "parity", *flags, "--transition", "0.9")
    assert ("parallel text", 824, 120) == (
        other["measured_on"],
        100 + sum(other["language_merges"].values()),
        other["stage2_merges"],
    )
    measured = other["measured_tokens"].values()
    assert max(measured) < 1.5 * min(measured)
    assert tokens_of(tmp_path / "flags") == other["training_tokens"]
    provenance = json.loads((tmp_path / "flags" / "vocabshift.json").read_text(encoding="utf-8"))
    assert other["language_merges"] == provenance["figures"]["language_merges"]
    assert parallel == provenance["config"]["parallel"]
    assert 0 == main(["check", str(tmp_path / "out"), "--strict", "--json"])


@pytest.mark.parametrize(
    ("recipe", "row"),
    [
        ("picky", "words / tokens that differ"),
        ("overlap", "low-resource languages"),
        ("parity", "merges that served"),
    ],
)
def test_summaries(
    recipe: str, row: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    specs = [f"{label}={TEXTS / label}.txt" for label in LABELS]
    words = ("--recipe", recipe, "--vocab-size", "600", "-o", str(tmp_path / "out"))
    assert 0 == main(["train", "--corpus", *specs, *words])
    streams = capsys.readouterr()
    assert row in streams.out + streams.err


def test_stacked(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    result = train(capsys, tmp_path / "out", "--recipe", "stacked")
    assert ("stacked", 1200, 0) == (result["recipe"], result["vocab_size"], result["unreachable"])
    assert {"Latin", "Devanagari", "Tamil", "Common"} <= {s["script"] for s in result["scripts"]}
    assert result["merges"] == sum(script["tokens"] for script in result["scripts"])
    assert tokens_of(tmp_path / "out") == result["training_tokens"]
    joint = train(capsys, tmp_path / "bpe", "--recipe", "bpe")
    assert joint["training_tokens"] <= result["training_tokens"]
    assert 0 == main(["check", str(tmp_path / "out"), "--strict", "--json"])


def test_budgets(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    flags = ("--budgets", "Devanagari=0.5", "Latin=0.25")
    result = train(capsys, tmp_path / "flags", "--recipe", "stacked", *flags)
    budgets = {script["script"]: script["budget"] for script in result["scripts"]}
    assert (472, 236) == (budgets["Devanagari"], budgets["Latin"])
    toml = tmp_path / "f.toml"
    toml.write_text('recipe = "stacked"\nbudgets = ["Devanagari=0.5,Latin=0.25"]\n', "utf-8")
    same = train(capsys, tmp_path / "toml", "--config", str(toml))
    assert result["config_hash"] == same["config_hash"]
    files = [(tmp_path / name / "tokenizer.json").read_bytes() for name in ("flags", "toml")]
    assert files[0] == files[1]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("boundless", "--transition", "0.9"), "boundless does not take --transition"),
        (("boundless", "--budgets", "Latin=1"), "boundless does not take --budgets"),
        (("boundless", "--merge-pattern", "("), "is not a regex"),
        (("picky", "--threshold", "1.5"), "not a number above 0 and up to 1"),
        (("picky", "--overlap-alpha", "0.5"), "picky does not take --overlap-alpha"),
        (("picky", "--grapheme-safe"), "picky takes merges by its score alone"),
        (("picky", "--memory", "1GB"), "picky holds all words in memory"),
        (("overlap", "--overlap-power", "2"), "neither a number below 0 nor min"),
        (("overlap",), "some of the text has no label"),
        (("parity",), "some of the text has no label"),
        (("parity", "--global-merges", "2000"), "leaves no merge to serve a language"),
        (("picky", "--global-merges", "3"), "picky does not take --global-merges"),
        (("stacked", "--max-words", "2"), "stacked does not take --max-words"),
        (("stacked", "--budgets", "Latin"), "not SCRIPT=SHARE"),
        (("stacked", "--budgets", "Cherokee=0.5"), "no word of the corpus is written in it"),
    ],
)
def test_bad_options(
    words: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    corpus = ("--corpus", f"{TEXTS / 'eng'}.txt", "--vocab-size", "600")
    out = ("-o", str(tmp_path / "out"))
    assert 2 == main(["train", *corpus, *out, "--recipe", *words])
    assert message in capsys.readouterr().err
    assert [] == list(tmp_path.iterdir())
