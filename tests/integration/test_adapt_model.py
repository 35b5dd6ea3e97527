"""`vocabshift adapt` of models: same size, same rows, same logits, one folder, a card."""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from safetensors.torch import load_file, save_file  # noqa: E402

import small_models  # noqa: E402
import vocabshift as vs  # noqa: E402
from vocabshift.cli.main import main  # noqa: E402
from vocabshift.models import shard_writer  # noqa: E402
from vocabshift.tokenizer.tokenizer import Tokenizer  # noqa: E402

ALIKE = "another cat and another heater"
"""Written with tokens that stay."""
KINDS = ("llama", "llama-tied", "qwen2-padded", "gemma3-wrapper", "sentencepiece")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with the text that is learned from."""
    (tmp_path / "en.txt").write_text("\n".join([*small_models.ENGLISH, ALIKE] * 8))
    (tmp_path / "hi.txt").write_text("\n".join(small_models.HINDI * 4), encoding="utf-8")
    return tmp_path


def model_folder(kind: str, place: Path, **options: Any) -> tuple[Any, Tokenizer, Path]:
    """A small random model of the kind, saved with its tokenizer."""
    tokenizer = small_models.old_tokenizer()
    if kind == "sentencepiece":
        tokenizer = small_models.sentencepiece_tokenizer(place)
    model = small_models.build("llama" if kind == "sentencepiece" else kind, tokenizer)
    folder = small_models.save(model, tokenizer, place / "model", **options)
    if kind == "sentencepiece":
        shutil.copy(place / "small.model", folder / "tokenizer.model")
    return model, tokenizer, folder


def specs(place: Path) -> list[str]:
    return ["--corpus", f"en={place}/en.txt", f"hi={place}/hi.txt"]


def adapt(capsys: Any, place: Path, *words: str) -> dict[str, Any]:
    """The object that --json prints."""
    capsys.readouterr()
    argv = ["adapt", str(place / "model"), *specs(place), "-o", str(place / "out"), *words]
    assert 0 == main([*argv, "--json"]), capsys.readouterr().err
    result: dict[str, Any] = json.loads(capsys.readouterr().out)
    return result


def refused(capsys: Any, *words: object) -> str:
    """The one line of an error."""
    capsys.readouterr()
    assert 2 == main([str(word) for word in words])
    found = capsys.readouterr()
    assert ("", 1) == (found.out, len(found.err.strip().splitlines()))
    return str(found.err)


def tensors(folder: Path) -> dict[str, Any]:
    return {
        name: tensor
        for file in sorted(folder.glob("*.safetensors"))
        for name, tensor in load_file(file).items()
    }


def files(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in sorted(folder.iterdir())}


@pytest.mark.parametrize("first", ["prune", "extend"])
@pytest.mark.parametrize("kind", KINDS)
def test_size_rows_and_logits_stay(kind: str, first: str, place: Path, capsys: Any) -> None:
    """Every tensor has its shape, every kept token its row; text cut alike gets equal logits."""
    model, old, source = model_folder(kind, place)
    given = files(source)
    result = adapt(capsys, place, "--n-tokens", "9", "--first", first)
    assert given == files(source)
    out = place / "out"
    new = vs.load_tokenizer(out)
    kept = [i for token, i in old.model.vocab.items() if new.model.vocab.get(token) == i]
    kept += [token.id for token in old.added_tokens]
    assert len(set(kept)) == result["n_copied"]
    before, after = tensors(source), tensors(out)
    assert {n: (t.shape, t.dtype) for n, t in before.items()} == {
        n: (t.shape, t.dtype) for n, t in after.items()
    }
    for name, tensor in before.items():
        is_table = len(tensor) == result["rows"] and tensor.dim() == 2
        for one, two in (
            ((tensor[kept], after[name][kept]),) if is_table else ((tensor, after[name]),)
        ):
            assert torch.equal(one, two), name
    auto = transformers.AutoTokenizer.from_pretrained(out)
    ids = auto(ALIKE, add_special_tokens=False)["input_ids"]
    assert ids == vs.Encoder(old).encode(ALIKE).tolist()
    batch = torch.tensor([ids])
    loaded = type(model).from_pretrained(out).eval()
    with torch.no_grad():
        expected, got = (each(input_ids=batch).logits for each in (model, loaded))
    torch.testing.assert_close(expected[..., kept], got[..., kept])  # rows are equal, see above
    tied = loaded.get_input_embeddings().weight is loaded.get_output_embeddings().weight
    assert tied == result["tied"]


@pytest.mark.parametrize("kind", ["llama-tied", "qwen2-padded", "sentencepiece"])
def test_the_contract(kind: str, place: Path, capsys: Any) -> None:
    """Keys and their kinds; what is told is what is on the disk."""
    model, old, _ = model_folder(kind, place)
    result = adapt(capsys, place, "--n-tokens", "9")
    for key in ("n_copied", "n_initialized", "n_removed", "vocab_size", "rows", "n_relearned"):
        assert type(result[key]) is int
    assert type(result["tied"]) is bool
    rows = len(model.get_input_embeddings().weight)
    assert (rows, 0) == (result["rows"], result["n_moved"])
    n_tokens = len({*old.model.vocab, *(token.content for token in old.added_tokens)})
    assert n_tokens == result["vocab_size"] == result["n_copied"] + result["n_initialized"]
    new = vs.load_tokenizer(place / "out")
    gone = old.model.vocab.keys() - new.model.vocab.keys()
    come = new.model.vocab.keys() - old.model.vocab.keys()
    assert len(gone) == len(come) == result["n_removed"] == result["n_added"]
    assert result["pruning"]["n_removed"] == result["n_removed"] + result["n_relearned"] == 9
    assert new.added_tokens == old.added_tokens
    assert {"model", "out"} == {path.name for path in place.iterdir() if path.is_dir()}
    provenance = json.loads((place / "out" / "vocabshift.json").read_text())
    assert ("adapt", result["card"]) == (provenance["operation"], provenance["figures"]["card"])
    assert any("llama.cpp" in note for note in result["notes"])
    assert vs.check(new).unreachable == ()


def test_the_card(place: Path, capsys: Any) -> None:
    """Figures of text that nothing was learned from, against a count of our own."""
    model, _, source = model_folder("llama-tied", place)
    lines = ["राम घर गया और सीता", "बिल्ली और दूसरी"]
    (place / "held.txt").write_text("\n".join(lines), encoding="utf-8")
    words = ("--text", f"hi={place}/held.txt", "--n-tokens", "12", "--score-bytes", "40")
    result = adapt(capsys, place, *words)
    card = result["card"]
    assert "text of its own" == card["judged_on"]
    n_parameters = sum(parameter.numel() for parameter in model.parameters())
    sizes = [card[side]["parameters"] for side in ("before", "after")]
    assert [n_parameters] * 2 == sizes
    assert card["before"]["weights_bytes"] == (source / "model.safetensors").stat().st_size
    assert card["after"]["weights_bytes"] == (place / "out/model.safetensors").stat().st_size
    results = vs.Results(vs.Result(**row) for row in card["results"])
    n_bytes = len("".join(lines).encode())
    text = lines[0].encode()[:40].decode(errors="ignore")  # 40 bytes: not all of the first line
    for subject, folder in (("before", source), ("after", place / "out")):
        auto = transformers.AutoTokenizer.from_pretrained(folder)
        n_tokens = sum(len(auto(line, add_special_tokens=False)["input_ids"]) for line in lines)
        assert results.value(subject, "hi", "bytes_per_token") == pytest.approx(n_bytes / n_tokens)
        loaded = transformers.AutoModelForCausalLM.from_pretrained(folder).eval()
        ids = auto(text, add_special_tokens=False)["input_ids"]
        ids = torch.tensor([[loaded.config.bos_token_id, *ids]])
        with torch.no_grad():
            mean = loaded(input_ids=ids, labels=ids).loss.item()
        bits = mean * (ids.shape[1] - 1) / math.log(2) / len(text.encode())
        assert results.value(subject, "hi", "bits_per_byte") == pytest.approx(bits, rel=1e-5)
    written = (place / "out" / "adapt.md").read_text(encoding="utf-8")
    for value in (results[0].value, results[1].value):
        assert f"{value:.2f}" in written
    new = vs.load_tokenizer(place / "out").model.vocab
    assert len(card["added_sample"]) == len(card["removed_sample"]) == card["n_added"] <= 12
    assert card["n_relearned"] == 12 - card["n_removed"]
    assert not set(card["removed_sample"]) & {token.replace("Ġ", " ") for token in new}


def test_held_out_text_is_not_learned_from(place: Path, capsys: Any) -> None:
    """A word that only the held-out documents have becomes no token; theirs is the figure."""
    model_folder("llama", place)
    lines = [f"zebra{'' if i % 20 else ' quagga' * 50}" for i in range(40)]
    (place / "en.txt").write_text("\n".join(lines))
    result = adapt(capsys, place, "--n-tokens", "8", "--no-score")
    assert not any("agg" in token for token in vs.load_tokenizer(place / "out").model.vocab)
    rows = [row for row in result["card"]["results"] if row["language"] == "en"]
    assert [2, 2] == [row["n"] for row in rows]  # lines 0 and 20
    assert {"bytes_per_token"} == {row["metric"] for row in rows}
    assert "left out" == result["card"]["scored_on"]


def test_the_number_is_that_of_the_plan(place: Path, capsys: Any) -> None:
    """Without --n-tokens: what `Plan.exchange_of` says of the same two parts of the corpus."""
    _, old, _ = model_folder("llama", place)
    result = adapt(capsys, place, "--no-score")
    from vocabshift.text.held_out import hold_out

    corpus = vs.Corpus.from_files({"en": place / "en.txt", "hi": place / "hi.txt"})
    learned, judged = hold_out(corpus)
    expected = vs.plan(old, learned, text=judged).exchange_of("kept")
    assert (True, expected) == (result["n_tokens_is_planned"], result["n_tokens"])


@pytest.mark.parametrize("init", ["zeros", "first-last", "focus", "auto"])
def test_the_initializer_is_handed_on(init: str, place: Path, capsys: Any) -> None:
    """New rows are those that `transfer` makes of the same tokenizers with the same method."""
    _, _, source = model_folder("llama", place)
    result = adapt(capsys, place, "--n-tokens", "9", "--init", init)
    if init == "auto":
        assert result["init"] == result["tried"][0]["init"]
        prices = [row["bits_per_byte"] for row in result["tried"]]
        assert len(prices) == 6  # focus too: there is a corpus
        assert prices == sorted(prices)
        return
    assert "tried" not in result
    new = vs.load_tokenizer(place / "out")
    if init == "zeros":
        added = [
            i
            for i in new.model.vocab.values()
            if not tensors(place / "out")["lm_head.weight"][i].any()
        ]
        assert result["n_initialized"] == len(added) == 9
        return
    new.save_pretrained(place / "tokenizer")
    words = ["--corpus", f"en={place}/en.txt", f"hi={place}/hi.txt"] if init == "focus" else []
    argv = ["transfer", str(source), str(place / "tokenizer"), "--init", init, *words]
    assert 0 == main([*argv, "-o", str(place / "moved")])
    if init == "first-last":
        expected, got = tensors(place / "moved"), tensors(place / "out")
        assert all(torch.equal(expected[name], tensor) for name, tensor in got.items())
    else:  # adapt holds text out
        assert "focus" == result["init"]


def test_people_see_the_card(place: Path, capsys: Any) -> None:
    """Tables of held-out text, sizes, samples, and nothing of the tokenizer's own tables."""
    _, _, source = model_folder("llama", place)
    argv = ["adapt", str(source), *specs(place), "--n-tokens", "9", "-o", str(place / "out")]
    assert 0 == main(argv)
    shown = capsys.readouterr().out
    for text in (
        "bytes_per_token",
        "bits_per_byte",
        "ids of kept tokens that moved",
        "none",
        "parameters",
        "added, for example",
        "every 20th document",
    ):
        assert text in shown


def test_a_tokenizer_stays_a_tokenizer(place: Path, capsys: Any) -> None:
    """Without weights, or with --tokenizer-only; and then nothing of a model is taken."""
    _, old, source = model_folder("llama", place)
    old.save_pretrained(place / "tokenizer")
    for words in ((source, "--tokenizer-only"), (place / "tokenizer",)):
        argv = ["adapt", *words, *specs(place), "--n-tokens", "5", "-o", place / "new", "--force"]
        assert 0 == main([str(word) for word in argv])
        assert (place / "new" / "token_map.json").exists()
        assert not (place / "new" / "config.json").exists()
        capsys.readouterr()
        assert "is for models" in refused(capsys, *argv, "--init", "fvt")
    assert "--text is for models" in refused(capsys, *argv, "--text", "x.txt")


def test_a_model_that_predicts_nothing_is_not_scored(place: Path, capsys: Any) -> None:
    """The card says why; all else is done."""
    model_folder("bert", place)
    result = adapt(capsys, place, "--n-tokens", "5")
    assert "BertForMaskedLM does not predict" in result["card"]["scored_on"]
    assert {"bytes_per_token"} == {row["metric"] for row in result["card"]["results"]}


def test_a_killed_run_is_gone_on_with(place: Path, capsys: Any, monkeypatch: Any) -> None:
    """Shards that were finished are kept; the result is that of one run."""
    old = small_models.old_tokenizer()
    model = small_models.build("llama", old, num_hidden_layers=3)
    small_models.save(model, old, place / "model", max_shard_size="12KB")
    real, calls = shard_writer.copy_file, []

    def fail(*args: Any, **options: Any) -> str:
        calls.append(args)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return real(*args, **options)

    monkeypatch.setattr(shard_writer, "copy_file", fail)
    argv = ["adapt", str(place / "model"), *specs(place), "--n-tokens", "9", "--no-score"]
    assert 130 == main([*argv, "-o", str(place / "out")])
    assert not (place / "out").exists()
    result = adapt(capsys, place, "--n-tokens", "9", "--no-score")
    assert "kept from the run before" in result["files"].values()
    assert 0 == main([*argv, "-o", str(place / "once")])
    once = files(place / "once")
    assert all(
        once[name] == data
        for name, data in files(place / "out").items()
        if name.endswith(".safetensors")
    )
    assert not list(place.glob("*.partial"))


def test_what_is_refused(place: Path, capsys: Any) -> None:
    """One line, before anything is learned; nothing is written."""
    _, _, source = model_folder("llama", place)
    base = ["adapt", source, *specs(place), "--n-tokens", "9", "-o"]
    out = place / "out"
    (place / "there").mkdir()
    (place / "one.txt").write_text("a single line")
    assert "exists already" in refused(capsys, *base, place / "there")
    assert "would replace the input" in refused(capsys, *base, source, "--force")
    assert "omp' needs donor" in refused(capsys, *base, out, "--init", "omp")
    assert "invalid choice: 'magic'" in refused(capsys, *base, out, "--init", "magic")
    assert "--pattern is for tokenizer files" in refused(capsys, *base, out, "--pattern", "gpt2")
    assert "no such file" in refused(capsys, *base, out, "--text", place / "none.txt")
    one = ["adapt", source, "--corpus", f"en={place}/en.txt", f"et={place}/one.txt", "-o", out]
    assert "the corpus of et has one document at most" in refused(capsys, *one)
    assert "can be" in refused(capsys, *base[:-2], "9999", "--no-score", "-o", out)

    config = json.loads((source / "config.json").read_text())
    (source / "config.json").write_text(json.dumps(config | {"vocab_size": 400}))
    assert "correct config.json" in refused(capsys, *base, out)
    (source / "config.json").write_text(json.dumps(config))
    file = source / "model.safetensors"
    whole = load_file(file)
    scaled = {**whole, "lm_head.weight": whole["lm_head.weight"].to(torch.float8_e4m3fn)}
    save_file(scaled, file, metadata={"format": "pt"})
    assert "Take the unquantized checkpoint" in refused(capsys, *base, out)
    few = {n: t[:287].contiguous() if len(t) == 288 else t for n, t in whole.items()}
    save_file(few, file, metadata={"format": "pt"})
    (source / "config.json").write_text(json.dumps(config | {"vocab_size": 287}))
    assert "287 rows, but its tokenizer needs 288" in refused(capsys, *base, out)
    (source / "config.json").write_text(json.dumps(config))
    file.write_bytes(b"\x08" + bytes(20))
    assert "model.safetensors" in refused(capsys, *base, out)
    assert not out.exists()
    assert not list(place.glob("*.partial"))


@pytest.mark.parametrize(
    ("kind", "words", "message"),
    [
        ("llama", ("--order", "best"), "unknown order 'best'"),
        ("llama", ("--keep", "file:none.txt"), "none.txt"),
        ("sentencepiece", ("--pre-tokenizer", "repaired"), "is not byte-level"),
    ],
)
def test_bad_options_are_told_before_the_model_is_read(
    kind: str, words: tuple[str, str], message: str, place: Path, capsys: Any, monkeypatch: Any
) -> None:
    """Reading a large model twice takes minutes; what is wrong is known without."""
    _, _, source = model_folder(kind, place)
    monkeypatch.setattr("vocabshift.workflows.adapt_model.measure_bits", None)
    argv = ["adapt", source, *specs(place), "-o", place / "out", *words]
    assert message in refused(capsys, *argv)


def test_a_unigram_model_is_refused(place: Path, capsys: Any) -> None:
    """Nothing can be added to it; what can be done is said."""
    import tokenizers

    pieces = [("<unk>", 0.0), *((letter, -1.0) for letter in "▁abcdefgh")]
    backend = tokenizers.Tokenizer(tokenizers.models.Unigram(pieces, unk_id=0))
    folder = place / "model"
    transformers.PreTrainedTokenizerFast(tokenizer_object=backend).save_pretrained(folder)
    config = transformers.AutoConfig.for_model("xlm-roberta", vocab_size=10, **small_models._S)
    transformers.XLMRobertaForMaskedLM(config).save_pretrained(folder)
    message = refused(capsys, "adapt", folder, *specs(place), "-o", place / "out")
    assert "is Unigram, which learns no tokens from text; give words" in message


def test_weights_in_another_format(place: Path, capsys: Any) -> None:
    """A model that is not in safetensors is loaded whole; what was not counted is not told."""
    model, _, source = model_folder("llama", place)
    (source / "model.safetensors").unlink()
    torch.save(model.state_dict(), source / "pytorch_model.bin")
    result = adapt(capsys, place, "--n-tokens", "5")
    card = result["card"]
    size = (source / "pytorch_model.bin").stat().st_size
    assert (None, size) == (card["before"]["parameters"], card["before"]["weights_bytes"])
    file = place / "out" / "model.safetensors"
    assert file.stat().st_size == card["after"]["weights_bytes"]
    assert sum(p.numel() for p in model.parameters()) == card["after"]["parameters"]


def test_python_face(place: Path) -> None:
    """`vs.adapt_model` takes texts too, and tells what it did."""
    _, _, source = model_folder("llama", place)
    corpus = vs.Corpus.from_files({"hi": place / "hi.txt", "en": place / "en.txt"})
    texts = {"en": [ALIKE]}
    done = vs.adapt_model(source, corpus, place / "out", n_tokens=4, text=texts, device="cpu")
    assert (4, 0) == (done.transfer.n_initialized, done.transfer.n_moved)
    assert done.card.results.distinct("metric") == ["bytes_per_token", "bits_per_byte"]
    before, after = (row.value for row in done.card.results.where(metric="bits_per_byte"))
    assert math.isfinite(before + after)
    with pytest.raises(ValueError, match="cannot be scored on 'nowhere'"):
        vs.adapt_model(source, corpus, place / "more", device="nowhere")
    with pytest.raises(FileNotFoundError, match="adapt_tokenizer takes a tokenizer alone"):
        vs.adapt_model(place / "out" / "tokenizer.json", corpus, place / "more")
