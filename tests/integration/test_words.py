"""Words and special tokens from the command line to the rows of a model."""

from __future__ import annotations

import json
import runpy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

import small_models  # noqa: E402
import vocabshift as vs  # noqa: E402
from vocabshift.cli.main import main  # noqa: E402
from vocabshift.tokenizer.formats.load import open_tokenizer  # noqa: E402
from vocabshift.workflows.extend import NamedTokens  # noqa: E402

SHAPES = runpy.run_path(str(Path(__file__).parents[1] / "unit" / "pruning" / "conftest.py"))
WORDS = "heatermat\ncatlike\nthe\nc++\n"
SPECIAL = ("--special", "<think>=the other cat", "<|end|>", "--role", "eos=<|end|>", "pad=<think>")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A small Llama, text and a list of words."""
    tokenizer = small_models.old_tokenizer()
    small_models.save(small_models.build("llama", tokenizer), tokenizer, tmp_path / "model")
    (tmp_path / "words.txt").write_text(WORDS, encoding="utf-8")
    (tmp_path / "en.txt").write_text("\n".join(small_models.ENGLISH) + "\n", encoding="utf-8")
    return tmp_path


def run(capsys: pytest.CaptureFixture[str], *argv: str) -> dict[str, Any]:
    """The object that --json prints."""
    capsys.readouterr()
    assert main([*argv, "--json"]) == 0, capsys.readouterr().err
    result: dict[str, Any] = json.loads(capsys.readouterr().out)
    return result


def test_extend_then_transfer(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A described token has the mean of its description's rows; roles reach the configs."""
    argv = ("extend", str(place / "model"), "--words", str(place / "words.txt"), *SPECIAL)
    held_out = ("--held-out", f"en={place}/en.txt")
    longer = run(capsys, *argv, *held_out, "-o", str(place / "longer"))
    assert [row["how"] for row in longer["words"]] == ["merges", "merges", "present", "added"]
    assert longer["by_name"]["effects"][0]["language"] == "en"
    again = run(capsys, *argv, *held_out, "-o", str(place / "again"))
    assert again == longer | {"out": str(place / "again")}
    for file in (place / "longer").iterdir():
        assert file.read_bytes() == (place / "again" / file.name).read_bytes()

    out = place / "out"
    moved = run(capsys, "transfer", str(place / "model"), str(place / "longer"), "-o", str(out))
    assert moved["n_described"] == 1
    assert moved["n_initialized"] == longer["n_added"] - 1  # <|end|> has the row of </s>
    old, new = vs.load_tokenizer(place / "model"), vs.load_tokenizer(out)
    models = [transformers.AutoModelForCausalLM.from_pretrained(p) for p in (place / "model", out)]
    ids = {token.content: token.id for token in new.added_tokens}
    was = {token.content: token.id for token in old.added_tokens}
    about = old.encode_batch(["the other cat"])[0].tolist()
    for table in ("get_input_embeddings", "get_output_embeddings"):
        before, after = (getattr(model, table)().weight for model in models)
        torch.testing.assert_close(after[ids["<think>"]], before[about].mean(0))
        assert torch.equal(after[ids["<|end|>"]], before[was["</s>"]])
    for config in (models[1].config, models[1].generation_config):
        eos = config.eos_token_id
        assert (eos if isinstance(eos, int) else eos[0]) == ids["<|end|>"]
        assert config.pad_token_id == ids["<think>"]
    auto = transformers.AutoTokenizer.from_pretrained(out)
    assert (auto.eos_token, auto.pad_token) == ("<|end|>", "<think>")
    assert len(auto.encode("heatermat catlike c++", add_special_tokens=False)) == 4

    model, tokenizer = vs.transfer(
        transformers.AutoModelForCausalLM.from_pretrained(place / "model"),
        old=old,
        new=vs.load_tokenizer(place / "longer"),
    )
    assert torch.equal(model.get_input_embeddings().weight, models[1].get_input_embeddings().weight)
    assert tokenizer.config["eos_token"] == "<|end|>"


def test_people_see_what_became_of_each_word(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A table, the cost, and the special tokens."""
    argv = ["extend", str(place / "model"), "--words", str(place / "words.txt"), *SPECIAL]
    assert main([*argv, "--corpus", f"{place}/en.txt", "--n-tokens", "3", "-o", f"{place}/x"]) == 0
    shown = capsys.readouterr().out
    for text in ("heatermat", "added token", "the pre-tokenizer cuts it: c | ++", "the other cat"):
        assert text in shown
    for text in ("changed in other words", "tokens in between", "as many as asked for"):
        assert text in shown


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (("--special", "<a>="), "describes nothing"),
        (("--special", "<a>", "--role", "pad"), "is no ROLE=TOKEN"),
        (("--special", "<a>", "--role", "pad=<a>", "pad=<s>"), "--role pad is given twice"),
        (("--special", "<a>", "--held-out", "x.txt"), "--held-out is read to measure"),
        (("--words", "missing.txt"), "missing.txt"),
        (("--special", "<a>=x", "<a>=y"), "--special <a> is given twice"),
        (("--special", "<a>", "--pre-tokenizer", "qwen35"), "are compared on text"),
        (("--special", "<a>", "--method", "regen"), "method is 'regen'"),
        (("--special", "<a>", "--superwords", "5"), "superwords come after learned words"),
        (("--corpus", "x.txt"), "--n-tokens is required, or --words, or --special"),
    ],
)
def test_bad_requests_are_one_line(
    place: Path, capsys: pytest.CaptureFixture[str], argv: tuple[str, ...], message: str
) -> None:
    """Nothing is written."""
    out = place / "out"
    assert main(["extend", str(place / "model"), *argv, "-o", str(out)]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert len(error.strip().splitlines()) == 1
    assert not out.exists()


@pytest.mark.parametrize("n_tokens", [(), ("--n-tokens", "4")])
def test_adapt_keeps_the_size(
    place: Path, capsys: pytest.CaptureFixture[str], n_tokens: tuple[str, ...]
) -> None:
    """As many tokens go as come; other rows stay in their place."""
    (place / "fi.txt").write_text("kissa istui matolla\nkoira juoksi kissan luo\n" * 20)
    out = place / "out"
    argv = ("--corpus", f"en={place}/en.txt", f"fi={place}/fi.txt", "--no-score", *n_tokens)
    names = ("--words", str(place / "words.txt"), "--special", "<think>=the other cat")
    result = run(capsys, "adapt", str(place / "model"), *argv, *names, "-o", str(out))
    assert result["n_added"] == result["n_removed"] > 0
    old, new = vs.load_tokenizer(place / "model"), vs.load_tokenizer(out)
    assert new.row_count == old.row_count
    for text in ("heatermat", " heatermat", "catlike", "c++", "<think>"):
        assert len(new.encode_batch([text])[0]) == 1
    before, after = (
        transformers.AutoModelForCausalLM.from_pretrained(p).get_input_embeddings().weight
        for p in (place / "model", out)
    )
    kept = [i for token, i in old.vocab.items() if new.vocab.get(token) == i]
    assert len(kept) > 200
    assert torch.equal(before[kept], after[kept])
    assert main(["adapt", str(place / "model"), *argv, *names, "--force", "-o", str(out)]) == 0
    assert "words, merges" in capsys.readouterr().out


def test_a_pattern_of_llama_cpp_comes_before_words(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is taken although nothing is learned, and the candidates are listed."""
    base = vs.BpeTrainer(vocab_size=300, pre_tokenizer="gpt2").train(
        vs.Corpus.from_texts(small_models.ENGLISH)
    )
    base.save_pretrained(place / "base")
    argv = ("--corpus", f"en={place}/en.txt", "--pre-tokenizer", "qwen35", "--special", "<a>")
    for verb in ("extend", "adapt"):
        out = place / verb
        result = run(capsys, verb, str(place / "base"), *argv, "-o", str(out))
        assert result["deployable"]["llama_cpp_pre"] == "qwen35"
        before, after = base.pre_tokenizer, vs.load_tokenizer(out).pre_tokenizer
        assert after != before
    show = ("extend", str(place / "base"), *argv, "--force", "-o", str(place / "extend"))
    assert main([*show]) == 0
    assert "pattern of llama.cpp" in capsys.readouterr().out


def test_adapt_removes_tokens_for_bytes_too(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Bytes that are added before words count among what is exchanged."""
    whole = vs.BpeTrainer(vocab_size=300, pre_tokenizer="gpt2").train(
        vs.Corpus.from_texts(small_models.ENGLISH)
    )
    vocab = {token: i for token, i in whole.model.vocab.items() if token not in "ĄĆ"}
    order = {token: i for i, token in enumerate(vocab)}
    base = replace(whole, model=whole.model.unchecked(vocab=order))
    base.save_pretrained(place / "base")
    argv = ("--corpus", f"en={place}/en.txt", "--complete-bytes", "--special", "<a>")
    result = run(capsys, "adapt", str(place / "base"), *argv, "-o", str(place / "out"))
    assert result["n_added"] == result["n_removed"] == 3
    assert vs.load_tokenizer(place / "out").row_count == base.row_count
    assert result["lost_characters"]["after"] == 0


@pytest.mark.parametrize("shape", SHAPES["MAKERS"])
def test_unigram_and_wordpiece_take_words(shape: str, tmp_path: Path) -> None:
    """One token each, ids of old tokens kept, other text as before; at constant size too."""
    base = open_tokenizer(SHAPES["MAKERS"][shape]())
    words = ["heaterday", "Catmat", "बिल्लीचटाई"]
    special = {"<think>": "the other cat"}
    longer = vs.extend(base, words=words, special_tokens=special)
    named = {**longer.vocab, **{t.content: t.id for t in longer.added_tokens}}
    assert {token: named[token] for token in base.vocab} == dict(base.vocab)
    assert longer.row_count == base.row_count + 4
    for word in words:
        assert len(longer.encode_batch([word])[0]) == 1
        assert len(longer.encode_batch([f"a {word}"])[0]) == len(base.encode_batch(["a"])[0]) + 1
    for text in SHAPES["TEXTS"]:
        assert longer.encode_batch([text])[0].tolist() == base.encode_batch([text])[0].tolist()
    again = vs.extend(base, words=words, special_tokens=special)
    assert again.to_json() == longer.to_json()

    config = transformers.BertConfig(
        vocab_size=base.row_count,
        hidden_size=8,
        num_hidden_layers=1,
        num_attention_heads=1,
        intermediate_size=8,
    )
    model = transformers.BertForMaskedLM(config)
    rows = model.get_input_embeddings().weight.detach().clone()
    vs.transfer(model, old=base, new=longer)
    moved = model.get_input_embeddings().weight
    assert torch.equal(moved[: len(rows)], rows)
    for text, token in (("the other cat", "<think>"), ("heaterday", None)):
        pieces = base.encode_batch([text])[0].tolist()
        token_id = named[token] if token else int(longer.encode_batch([text])[0][0])
        torch.testing.assert_close(moved[token_id], rows[pieces].mean(0))

    corpus = vs.Corpus.from_texts([text for text in SHAPES["TEXTS"] for _ in range(3)])
    base.save_pretrained(tmp_path / "model")
    config.pad_token_id = None
    model = transformers.BertForMaskedLM(config)
    model.save_pretrained(tmp_path / "model")
    named_tokens = NamedTokens(words=tuple(words), special_tokens=special)
    done = vs.adapt_model(tmp_path / "model", corpus, tmp_path / "out", named=named_tokens)
    adapted = done.adaptation.tokenizer
    assert adapted.row_count == base.row_count
    assert len(done.adaptation.removed) == len(done.adaptation.added) == 4
    for word in words:
        assert len(adapted.encode_batch([word])[0]) == 1
    rows = model.get_input_embeddings().weight
    out = transformers.BertForMaskedLM.from_pretrained(tmp_path / "out")
    moved = out.get_input_embeddings().weight
    kept = done.adaptation.id_map.new_to_old()
    assert len(kept) == base.row_count - 4
    assert torch.equal(moved[list(kept)], rows[list(kept.values())])
