"""The patterns of llama.cpp, and the choice of one for a tokenizer or a corpus."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import vocabshift as vs
from real_text import vendor
from vocabshift.checks.deployable import SAMPLES, choose, has_mark
from vocabshift.errors import CorpusError
from vocabshift.extension.extend import extend_with_report
from vocabshift.extension.options import PRE_TOKENIZERS, ExtensionOptions
from vocabshift.text.count_folder import CountFolder, write_counts
from vocabshift.text.llama_cpp import KEEP_MARKS, LLAMA_CPP
from vocabshift.text.patterns import from_spec, splitter
from vocabshift.tokenizer.corpus_reader import TokenizerReader
from vocabshift.tokenizer.formats.encoder import Encoder
from vocabshift.tokenizer.formats.gguf import run_by_llama_cpp
from vocabshift.workflows.extend import extend_to_folder
from vocabshift.workflows.train import train_to_folder

HINDI = ["राम घर गया और सीता घर आई", "हिन्दी में राम घर आया"] * 3
TEXTS = {"en": ["the cat sat on the mat", "the dog's 12 cats\n\nran"] * 3, "hi": HINDI}
CORPUS = vs.Corpus.from_texts(TEXTS)


def base(pre_tokenizer: str) -> vs.Tokenizer:
    """A small tokenizer that knows all of the text."""
    corpus = vs.Corpus.from_texts([*SAMPLES, *TEXTS["en"], *HINDI] * 2)
    return vs.BpeTrainer(vocab_size=360, pre_tokenizer=pre_tokenizer).train(corpus)


@pytest.mark.parametrize(
    ("name", "text", "spans"),
    [
        ("qwen35", "किसी 12", ["किसी", " ", "1", "2"]),
        ("qwen2", "किसी 12", ["क", "िस", "ी", " ", "1", "2"]),
        ("gpt-4o", "किसी ÉcoleX iPhone", ["क", "िस", "ी", " École", "X", " i", "Phone"]),
        (
            "granite-embed-multi-97m",
            "किसी iPhone's 1234",
            ["किसी", " i", "Phone's", " ", "123", "4"],
        ),
        ("tekken", "it's", ["it", "'s"]),
        ("youtu", "मैंDon't。中文", ["मैंDon't", "。", "中文"]),
        ("smollm", "a\n\n12", ["a", "\n\n", "1", "2"]),
        ("deepseek-v3", "(foo कि)", ["(foo", " कि", ")"]),
    ],
)
def test_a_pattern_cuts_as_llama_cpp_does(name: str, text: str, spans: list[str]) -> None:
    """Not always as the vendor does: no case outside ASCII, and gpt-4o cuts words at marks."""
    assert spans == splitter(LLAMA_CPP[name].pattern)(text)


def test_the_marks_that_a_pattern_keeps_decide_its_group() -> None:
    words = {
        name
        for name, (pattern, _) in LLAMA_CPP.items()
        if splitter(pattern)('ab कि ab"1')[1:] == [" कि", " ab", '"', "1"]
    }
    assert set(KEEP_MARKS) == words
    assert set(KEEP_MARKS) < set(PRE_TOKENIZERS)


def test_samples_have_no_mark() -> None:
    assert not any(map(has_mark, SAMPLES))
    assert has_mark("e\u0301")
    assert has_mark("❤\ufe0f")
    assert not has_mark("é\u200d")


def test_the_highest_ceiling_that_keeps_all_ids_wins() -> None:
    tokenizer = base("qwen2")
    found = choose(CORPUS, tokenizer)
    rows = {row.name: row for row in found.candidates}
    assert "qwen35" == found.name
    assert rows["qwen35"].ceilings["hi"] > 1.5 * rows["qwen2"].ceilings["hi"]
    assert rows["qwen35"].ceilings["en"] == rows["qwen2"].ceilings["en"]
    assert "" == rows["qwen35"].refused
    assert 0 == rows["qwen35"].changed_tokens == rows["qwen35"].changed_documents
    assert "superwords" in rows["exaone-moe"].refused
    assert "digits or punctuation" in rows["bloom"].refused
    assert "more digits" in rows["deepseek-v3"].refused
    assert rows["smollm"].refused.startswith("changes ")
    assert rows["smollm"].changed_tokens > 0
    ceilings = [row.ceiling_bytes_per_token for row in found.candidates]
    assert sorted(ceilings, reverse=True) == ceilings
    assert len(LLAMA_CPP) == len(ceilings)


def test_its_own_pattern_is_taken_where_others_change_ids() -> None:
    """Then nothing changes, and the nearest pattern with a higher ceiling is named."""
    tokenizer = base("gpt2")
    found = choose(CORPUS, run_by_llama_cpp(tokenizer)["smollm"])
    assert "smollm" == found.name
    assert found.nearest is not None
    assert found.nearest.name in KEEP_MARKS
    assert found.nearest.changed_tokens > 0
    same = run_by_llama_cpp(tokenizer)["smollm"]
    assert same is run_by_llama_cpp(same)["smollm"]


def test_there_may_be_none() -> None:
    """A tokenizer that joins words across spaces: llama.cpp's word patterns change its ids."""
    tokenizer = base(r"[^\n]+|\n")
    with pytest.raises(ValueError, match="no pattern that keeps the ids") as error:
        choose(CORPUS, tokenizer)
    assert "Nearest: " in str(error.value)
    assert "(ceiling " in str(error.value)
    assert "qwen35" == choose(CORPUS, tokenizer, name="qwen35").name


def test_a_new_tokenizer_has_no_ids_to_keep() -> None:
    found = choose(CORPUS)
    best = found.candidates[[row.name for row in found.candidates].index(found.name)]
    words = [row for row in found.candidates if not row.refused]
    assert max(row.ceiling_bytes_per_token for row in words) == best.ceiling_bytes_per_token
    assert {0} == {row.documents for row in found.candidates}
    assert found.name in KEEP_MARKS


def test_extend_takes_the_pattern_and_reports_it(tmp_path: Path) -> None:
    tokenizer = base("qwen2")
    made = extend_with_report(
        tokenizer, CORPUS, ExtensionOptions(n_tokens=8, pre_tokenizer="deployable")
    )
    assert LLAMA_CPP["qwen35"].pattern == from_spec(made.tokenizer.pre_tokenizer)
    told = made.report.to_dict()
    assert "qwen35" == told["deployable"]["llama_cpp_pre"]
    assert "kept" == told["other_pre_tokenizer"]["pre_tokenizer"]
    assert told["ceilings"]["hi"] > told["other_pre_tokenizer"]["ceilings"]["hi"]
    assert 0 == told["drift"]["changed_tokens"]["en"]
    for text in SAMPLES:
        assert (
            Encoder(tokenizer).encode(text).tolist()
            == Encoder(run_by_llama_cpp(tokenizer)["qwen35"]).encode(text).tolist()
        )
    named = extend_to_folder(
        tokenizer,
        CORPUS,
        ExtensionOptions(n_tokens=8, pre_tokenizer="youtu"),
        tmp_path / "named",
    )
    assert ("youtu", True) == tuple(
        named["deployable"][key] for key in ("llama_cpp_pre", "is_named")
    )
    options = ExtensionOptions(n_tokens=8, pre_tokenizer="repaired")
    assert "deployable" not in extend_with_report(tokenizer, CORPUS, options).report.to_dict()


def test_what_cannot_be_is_refused(
    tmp_path: Path, make_metaspace: Callable[..., vs.Tokenizer]
) -> None:
    tokenizer = base("qwen2")
    options = ExtensionOptions(n_tokens=8, pre_tokenizer="deployable")
    reader = TokenizerReader.of(tokenizer, CORPUS, by_language=True)
    write_counts(reader.count_words(), reader, tmp_path)
    with pytest.raises(CorpusError, match="give --corpus"):
        extend_with_report(tokenizer, CountFolder.open(tmp_path), options)
    with pytest.raises(ValueError, match="does not go with superwords"):
        extend_to_folder(tokenizer, CORPUS, options, tmp_path / "out", n_superwords=3)
    with pytest.raises(ValueError, match="not byte-level"):
        extend_with_report(make_metaspace("ab"), CORPUS, options)
    with pytest.raises(ValueError, match="second stage"):
        vs.SuperwordTrainer(vocab_size=300, pre_tokenizer="deployable")


def test_train_takes_the_pattern_and_records_it(tmp_path: Path) -> None:
    """In a folder and in Python the same tokenizer is learned."""
    options = {"vocab_size": 300, "pre_tokenizer": "deployable"}
    result = train_to_folder("bpe", CORPUS, options, tmp_path / "out")
    name = result["deployable"]["llama_cpp_pre"]
    assert choose(CORPUS).name == name
    made = vs.BpeTrainer(vocab_size=300, pre_tokenizer="deployable").train(CORPUS)
    assert LLAMA_CPP[name].pattern == from_spec(made.pre_tokenizer)
    written = vs.load_tokenizer(tmp_path / "out")
    assert (made.pre_tokenizer, made.vocab) == (written.pre_tokenizer, written.vocab)
    assert f'"llama_cpp_pre": "{name}"' in (tmp_path / "out" / "vocabshift.json").read_text()


@pytest.mark.shared
@pytest.mark.parametrize(
    ("vendor_name", "taken", "nearest"),
    [
        ("qwen25", "qwen35", None),
        ("mistral-nemo", "qwen35", None),
        ("llama3", "llama-bpe", "deepseek-v3"),
        ("llama4", "granite-embed-multi-97m", None),
    ],
)
def test_the_vendors_patterns(
    shared_data: Path, vendor_name: str, taken: str, nearest: str | None
) -> None:
    """Where digits go in threes, qwen35 would cut numbers: Llama-3 keeps its own pattern."""
    texts = {}
    for label in ("en", "hi"):
        file = shared_data / "eval" / "sib200-flores" / f"{label}.txt"
        texts[label] = file.read_text(encoding="utf-8").split("\n")[:400]
    tokenizer = vendor(shared_data / "tokenizers-hf" / vendor_name)
    found = choose(vs.Corpus.from_texts(texts), tokenizer)
    assert taken == found.name
    assert nearest == (found.nearest and found.nearest.name)
