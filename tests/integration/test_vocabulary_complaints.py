"""Complaints about words that cannot be added or removed, one named test each.

As `test_transfer_complaints.py`; each test names the issue thread that it answers.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from safetensors.torch import load_file  # noqa: E402
from tokenizers import Tokenizer as Backend  # noqa: E402

import small_models  # noqa: E402
import vocabshift as vs  # noqa: E402
from vocabshift.cli.main import main  # noqa: E402
from vocabshift.tokenizer.tokenizer import Tokenizer  # noqa: E402

TEXTS = ["the cat and the other cat sat", "बिल्ली और दूसरी बिल्ली", "naïve õhtu 日本 12\n"]


@pytest.fixture(scope="module")
def old() -> Tokenizer:
    return small_models.old_tokenizer()


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Text of two languages in a folder."""
    (tmp_path / "en.txt").write_text("\n".join(small_models.ENGLISH))
    (tmp_path / "hi.txt").write_text("\n".join(small_models.HINDI), encoding="utf-8")
    return tmp_path


def run(*words: object) -> None:
    assert 0 == main([str(word) for word in words])


def pruned(place: Path, *words: object) -> tuple[Tokenizer, Path]:
    """A tokenizer folder with some tokens of English taken out."""
    out = place / "pruned"
    run("prune", place / "model", "--corpus", place / "en.txt", "-o", out, *words)
    return vs.load_tokenizer(out), out


def test_tokenizers_615_627_new_words_are_no_added_tokens(old, place) -> None:
    """Encoding and loading became slow with the number of added tokens: there is none more."""
    old.save_pretrained(place / "base")
    argv = ["extend", place / "base", "--corpus", place / "hi.txt", "--n-tokens", 30]
    run(*argv, "-o", place / "out")
    before, after = (
        json.loads((place / name / "tokenizer.json").read_text()) for name in ("base", "out")
    )
    assert before["added_tokens"] == after["added_tokens"]
    new = after["model"]["vocab"].keys() - before["model"]["vocab"].keys()
    assert len(new - {token["content"] for token in after["added_tokens"]}) == 30
    assert len(after["model"]["merges"]) - len(before["model"]["merges"]) >= 30


def test_transformers_1413_indic_words_for_a_llama3_pattern(place) -> None:
    """Llama-3 and an Indic language: all new tokens can be produced, and text gets shorter."""
    english = vs.Corpus.from_files({"en": place / "en.txt"})
    base = vs.BpeTrainer(vocab_size=290, pre_tokenizer="cl100k").train(english)
    corpus = vs.Corpus.from_files({"hi": place / "hi.txt"})
    longer = vs.extend(base, corpus, n_tokens=40, pre_tokenizer="repaired")
    backend = Backend.from_file(str(longer.save_pretrained(place / "out") / "tokenizer.json"))
    assert () == vs.check(longer).unreachable
    line = small_models.HINDI[0]
    ids = backend.encode(line).ids
    assert line == backend.decode(ids)
    assert len(ids) < len(vs.Encoder(base).encode(line)) / 3
    assert len(longer.model.vocab) - len(base.model.vocab) == 40


def test_llms_tool_65_sentencepiece_uses_its_new_words(place) -> None:
    """Words added to a SentencePiece vocabulary were never used: AutoTokenizer gives them."""
    base = small_models.sentencepiece_tokenizer(place)
    corpus = vs.Corpus.from_files({"hi": place / "hi.txt"})
    longer = vs.extend(base, corpus, n_tokens=20)
    auto = transformers.AutoTokenizer.from_pretrained(longer.save_pretrained(place / "out"))
    used = {i for line in small_models.HINDI for i in auto(line)["input_ids"]}
    new = set(longer.model.vocab.values()) - set(base.model.vocab.values())
    assert len(new & used) > len(new) / 2
    line = small_models.HINDI[0]
    assert line == auto.decode(auto(line)["input_ids"], skip_special_tokens=True)


def test_tokenizers_1668_1216_tokens_of_a_bpe_can_be_removed(old, place) -> None:
    """ "I am worried I will never get the `hello` token": what stays is still produced."""
    old.save_pretrained(place / "model")
    smaller, out = pruned(place, "--n-tokens", 15)
    assert len(smaller.model.vocab) == len(old.model.vocab) - 15
    assert () == vs.check(smaller).unreachable
    backend = Backend.from_file(str(out / "tokenizer.json"))
    for token, token_id in smaller.model.vocab.items():
        text = backend.decode([token_id])
        if "\ufffd" not in text:
            assert [token] == backend.encode(text, add_special_tokens=False).tokens
    for text in TEXTS:
        ids = backend.encode(text, add_special_tokens=False).ids
        assert text == backend.decode(ids)


def test_transformers_15032_12760_the_smaller_file_loads(old, place) -> None:
    """Editing the vocabulary broke the merges of GPT-2's tokenizer: here both libraries load it."""
    old.save_pretrained(place / "model")
    smaller, out = pruned(place, "--n-tokens", 15)
    auto = transformers.AutoTokenizer.from_pretrained(out)
    assert len(auto) == smaller.row_count == old.row_count - 15
    model = json.loads((out / "tokenizer.json").read_text())["model"]
    merges = [pair.split(" ") if isinstance(pair, str) else pair for pair in model["merges"]]
    assert {"".join(pair) for pair in merges} | {part for pair in merges for part in pair} <= set(
        model["vocab"]
    )


@pytest.mark.parametrize("size", [256, 257, 270])
def test_minbpe_36_youtokentome_56_tokenlearn_13_any_size(old, place, size) -> None:
    """ "Removing tokens from BPE tokenizer is not supported": down to the bare bytes it is."""
    old.save_pretrained(place / "model")
    smaller, out = pruned(place, "--vocab-size", size)
    assert size == len(smaller.model.vocab)
    auto = transformers.AutoTokenizer.from_pretrained(out)
    for text in TEXTS:
        assert text == auto.decode(auto(text, add_special_tokens=False)["input_ids"])


def test_lm_vocab_trimmer_2_two_languages_are_kept(place) -> None:
    """Trimming to two languages: the text of both is cut as before, with a third gone."""
    texts = [*small_models.ENGLISH, *small_models.HINDI, *(["õhtu tuli ja läks"] * 9)]
    base = small_models.train(texts, 400, small_models.SPECIALS)
    base.save_pretrained(place / "base")
    corpus = [f"en={place}/en.txt", f"hi={place}/hi.txt"]
    run("prune", place / "base", "--corpus", *corpus, "--n-tokens", 12, "-o", place / "out")
    smaller = vs.load_tokenizer(place / "out")
    for line in {*small_models.ENGLISH, *small_models.HINDI}:
        assert len(vs.Encoder(base).encode(line)) == len(vs.Encoder(smaller).encode(line))
    assert len(vs.Encoder(smaller).encode("õhtu läks")) > len(vs.Encoder(base).encode("õhtu läks"))


def test_llmpruner_2_the_model_follows(old, place) -> None:
    """A Bloom of the pruned tokenizer: rows by the map, the same logits, a smaller file."""
    model = small_models.build("bloom", old)
    source = small_models.save(model, old, place / "model")
    smaller, out = pruned(place, "--n-tokens", 15)
    run("transfer", source, out, "-o", place / "moved")
    back = json.loads((out / "token_map.json").read_text())["old_to_new"]
    kept = [i for i, new in enumerate(back) if new is not None]
    ids = torch.tensor([vs.Encoder(smaller).encode("the cat").tolist()])
    first = torch.tensor([[back.index(i) for i in ids[0].tolist()]])
    loaded = type(model).from_pretrained(place / "moved").eval()
    with torch.no_grad():
        before, after = model(input_ids=first).logits, loaded(input_ids=ids).logits
    moved_to = [back[i] for i in kept]
    old_rows = model.get_input_embeddings().weight
    assert torch.equal(old_rows[kept], loaded.get_input_embeddings().weight[moved_to])
    # Products of another width are summed in another order on some processors.
    torch.testing.assert_close(before[..., kept], after[..., moved_to])
    sizes = [(folder / "model.safetensors").stat().st_size for folder in (source, place / "moved")]
    assert sizes[1] < sizes[0]


def test_gliner_366_textpruner_7_an_encoder_without_a_head(old, place) -> None:
    """A classifier whose embeddings alone are pruned says of a text what it said."""
    model = small_models.build("classifier", old)
    source = small_models.save(model, old, place / "model")
    smaller, out = pruned(place, "--n-tokens", 15)
    run("transfer", source, out, "-o", place / "moved")
    loaded = type(model).from_pretrained(place / "moved").eval()
    texts = [torch.tensor([vs.Encoder(t).encode("the cat").tolist()]) for t in (old, smaller)]
    with torch.no_grad():
        before, after = model(input_ids=texts[0]).logits, loaded(input_ids=texts[1]).logits
    torch.testing.assert_close(before, after)
    assert len(loaded.get_input_embeddings().weight) == old.row_count - 15


@pytest.mark.parametrize("kind", ["mt5", "mt5-tied", "mbart", "bert"])
def test_hf_trim_3_textpruner_5_all_tables_are_pruned(old, place, kind) -> None:
    """102 rows in one place and 101 in another: here all tables have as many as config.json."""
    model = small_models.build(kind, old)
    source = small_models.save(model, old, place / "model")
    _, out = pruned(place, "--n-tokens", 15)
    run("transfer", source, out, "-o", place / "moved")
    loaded, info = type(model).from_pretrained(place / "moved", output_loading_info=True)
    assert not info["missing_keys"]
    assert not info["mismatched_keys"]
    n_rows = old.row_count - 15
    assert n_rows == loaded.config.vocab_size
    for name, tensor in load_file(place / "moved" / "model.safetensors").items():
        old_shape = load_file(source / "model.safetensors")[name].shape
        expected = [n_rows if size == old.row_count else size for size in old_shape]
        assert expected == list(tensor.shape), name
    if hasattr(loaded, "final_logits_bias"):
        assert (1, n_rows) == loaded.final_logits_bias.shape


def test_hf_trim_6_special_tokens_have_no_far_ids(old, place) -> None:
    """Language tokens stayed at 250001: the ids are 0, 1, 2 … special tokens among them."""
    old.save_pretrained(place / "model")
    smaller, _ = pruned(place, "--n-tokens", 15)
    ids = [*smaller.model.vocab.values(), *small_models.special_ids(smaller).values()]
    assert list(range(old.row_count - 15)) == sorted(ids)
