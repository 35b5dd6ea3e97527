"""The runtimes themselves, each where it is installed, with tokenizers that we train."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from pathlib import Path

import pytest

import vocabshift as vs
from vocabshift.checks.runtime_reports import compare_runtimes
from vocabshift.checks.runtimes import RUNTIMES
from vocabshift.cli.main import main
from vocabshift.demo import story

END = "<|end|>"


@pytest.fixture(scope="module")
def corpus() -> vs.Corpus:
    """Ten lines in each of 20 languages."""
    return vs.Corpus.from_texts(story.beginnings(10))


@pytest.fixture(scope="module")
def plain(corpus: vs.Corpus) -> vs.Tokenizer:
    """One pattern that every engine knows, and a special token."""
    trainer = vs.BpeTrainer(vocab_size=1500, pre_tokenizer="gpt2", special_tokens=(END,))
    return trainer.train(corpus)


def report_on(tokenizer: vs.Tokenizer | Path, name: str, corpus: vs.Corpus | None = None):
    runtime = RUNTIMES[name]
    if not runtime.is_installed:
        pytest.skip(f"{name} is not installed: pip install '{runtime.install}'")
    [report] = vs.check_runtimes(tokenizer, name, corpus=corpus, time_limit=600)
    assert report.version is not None
    return report


@pytest.mark.parametrize("name", RUNTIMES)
def test_a_plain_tokenizer_is_read_alike(name: str, plain: vs.Tokenizer) -> None:
    """iree-tokenizer 0.3.0 ends a text after one id for every two bytes and sixteen more; where it
    does not, nothing is wrong."""
    report = report_on(plain, name)
    usual = {"sentencepiece": "does not apply", "iree-tokenizer": "lost text"}
    assert usual.get(name, "ok") == report.status, report
    if name == "iree-tokenizer":
        assert report.first is not None
        assert () == report.first.theirs


def test_iree_reads_texts_that_it_does_not_cut_off(plain: vs.Tokenizer) -> None:
    iree = pytest.importorskip("iree.tokenizer", reason="iree-tokenizer is not installed")
    backend = iree.Tokenizer.from_str(plain.to_json())
    for text in ("The shop was closed.", f"{END}a {END}", "don't", "नदी"):
        assert plain.encode_batch([text])[0].tolist() == backend.encode(text)


@pytest.mark.parametrize("name", ["tokenizers", "transformers", "kitoken", "morpheme"])
def test_boundaries_are_read_alike(name: str, corpus: vs.Corpus) -> None:
    """IST's pattern is two steps, one of them merged with what is before it."""
    ist = vs.SuperwordTrainer(vocab_size=1500, transition=0.8).train(corpus)
    report = report_on(ist, name, corpus)
    assert ("ok", 109 + 200) == (report.status, report.texts), report


def test_a_stale_sentencepiece_model_is_found(corpus: vs.Corpus, tmp_path: Path) -> None:
    """The folder says one thing to `tokenizers`, and another to who prefers tokenizer.model."""
    sentencepiece = pytest.importorskip("sentencepiece", reason="pip install 'vocabshift[unigram]'")
    text = tmp_path / "text.txt"
    text.write_text("\n".join(story.beginnings(20)["eng"]), encoding="utf-8")
    for name, size in (("model", 400), ("stale", 350)):
        sentencepiece.SentencePieceTrainer.train(
            input=str(text),
            model_prefix=str(tmp_path / name),
            model_type="bpe",
            vocab_size=size,
            byte_fallback=True,
            normalization_rule_name="identity",
            remove_extra_whitespaces=False,
            minloglevel=2,
        )
    folder = vs.load_tokenizer(tmp_path / "model.model").save_pretrained(tmp_path / "folder")
    for name, status in (("model", "ok"), ("stale", "lost text")):
        (folder / "tokenizer.model").write_bytes((tmp_path / f"{name}.model").read_bytes())
        [report] = vs.check_runtimes(folder, "sentencepiece")
        assert status == report.status, report


def test_a_rank_file_is_saved_for_the_runtimes(plain: vs.Tokenizer, tmp_path: Path, capsys) -> None:
    """By the command: the pattern is named there, and the exit status is that of the verdicts."""
    file = tmp_path / "mine.tiktoken"
    lines = [
        base64.b64encode(data) + b" %d\n" % token_id
        for token_id, data in sorted(plain.token_bytes.items())
    ]
    file.write_bytes(b"".join(lines))
    words = ["check", str(file), "--pattern", "gpt2", "--strict", "--json"]
    assert 0 == main([*words, "--runtimes", "tokenizers"])
    [entry] = json.loads(capsys.readouterr().out)["tokenizers"]
    assert ["ok"] == [verdict["status"] for verdict in entry["runtimes"]]
    if RUNTIMES["sentencepiece"].is_installed:
        assert 2 == main([*words, "--runtimes", "tokenizers,sentencepiece"])
        [entry] = json.loads(capsys.readouterr().out)["tokenizers"]
        assert [False, True] == [verdict["is_fault"] for verdict in entry["runtimes"]]
        assert not entry["ok"]


def test_a_rank_file_under_sentencepieces_name_is_not_for_it(
    plain: vs.Tokenizer, tmp_path: Path
) -> None:
    """Llama-3's folder has one."""
    folder = plain.save_pretrained(tmp_path / "folder")
    (folder / "tokenizer.model").write_bytes(base64.b64encode(b"a") + b" 0\n")
    report = report_on(folder, "sentencepiece")
    assert ("does not apply", True) == (report.status, "not SentencePiece's" in report.reason)


def test_tiktoken_has_no_normalizers(plain: vs.Tokenizer) -> None:
    """It would encode text as it is, and be called wrong for it."""
    report = report_on(replace(plain, normalizer={"type": "NFC"}), "tiktoken")
    assert ("refuses", True) == (report.status, "no normalizers" in report.reason)


def test_a_file_that_a_runtime_refuses(plain: vs.Tokenizer, tmp_path: Path) -> None:
    """What became of it since we read it: the command goes on."""
    folder = plain.save_pretrained(tmp_path / "folder")
    file = folder / "tokenizer.json"
    document = json.loads(file.read_text(encoding="utf-8"))
    document["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"] = r"(?<=(a|bc))\p{L}+(?("
    file.write_text(json.dumps(document), encoding="utf-8")
    [report] = compare_runtimes(plain, folder, [RUNTIMES["tokenizers"]])
    assert "refuses" == report.status
    assert report.reason
