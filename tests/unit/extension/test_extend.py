"""The face of `extend`: options, report and errors."""

from __future__ import annotations

import inspect
from dataclasses import MISSING, fields, replace
from pathlib import Path
from typing import Any

import pytest

import vocabshift as vs
from vocabshift.checks.text import ceilings
from vocabshift.checks.vocabulary import bytes_per_token
from vocabshift.errors import CorpusError
from vocabshift.extension.continued import Additions, extended
from vocabshift.extension.effect import steps
from vocabshift.extension.extend import extend_with_report
from vocabshift.extension.named_tokens import NamedTokens
from vocabshift.extension.options import ExtensionOptions
from vocabshift.text.count_folder import CountFolder, write_counts
from vocabshift.tokenizer.added_tokens import AddedToken
from vocabshift.tokenizer.corpus_reader import TokenizerReader
from vocabshift.tokenizer.id_map import load as load_map
from vocabshift.workflows.extend import extend_to_folder

TEXTS = {
    "en": ["the cat sat on the mat", "the dog ran to the cat"],
    "hi": ["राम घर गया और सीता घर आई", "हिन्दी में राम घर आया"],
}


def base(pre_tokenizer: str = "cl100k") -> vs.Tokenizer:
    """A small tokenizer that knows English."""
    corpus = vs.Corpus.from_texts(TEXTS["en"])
    return vs.BpeTrainer(vocab_size=270, pre_tokenizer=pre_tokenizer).train(corpus)


def test_extend_returns_a_tokenizer_with_new_tokens() -> None:
    """The base is left alone; new ids follow its last row."""
    tokenizer = base()
    longer = vs.extend(tokenizer, vs.Corpus.from_texts(TEXTS), n_tokens=8)
    assert tokenizer.vocab_size == 270
    assert longer.vocab_size == 278
    assert sorted(longer.model.vocab.values())[-8:] == list(range(270, 278))


def test_the_report_tells_every_language_and_the_other_pre_tokenizer() -> None:
    """Ceilings stand by label; the repaired pattern would lift Hindi and leave English."""
    report = extend_with_report(
        base(), vs.Corpus.from_texts(TEXTS), ExtensionOptions(n_tokens=8)
    ).report
    told = report.to_dict()
    assert set(told["ceilings"]) == {"en", "hi"}
    assert told["curve"][0]["n_tokens"] == 0
    assert told["curve"][-1]["n_tokens"] == 8
    assert told["other_pre_tokenizer"]["pre_tokenizer"] == "repaired"
    assert told["other_pre_tokenizer"]["ceilings"]["hi"] > told["ceilings"]["hi"]
    assert told["other_pre_tokenizer"]["ceilings"]["en"] == told["ceilings"]["en"]


def test_added_tokens_that_stand_in_the_text_count(tmp_path: Path) -> None:
    """Figures of running merges are those of encoding, special tokens in the text included."""
    plain = base()
    tokenizer = replace(plain, added_tokens=(AddedToken("<unk>", plain.row_count),))
    texts = {"en": [f"{text} <unk> <unk>" for text in TEXTS["en"]], "hi": TEXTS["hi"]}
    corpus = vs.Corpus.from_texts(texts)
    extension = extend_with_report(tokenizer, corpus, ExtensionOptions(n_tokens=8))
    effect, longer = extension.report.effect, extension.tokenizer
    assert effect is not None
    assert {row.language: row.bytes_per_token for row in effect.languages} == bytes_per_token(
        longer, corpus
    )
    found = ceilings(longer, corpus)
    assert found is not None
    for row in effect.languages:
        assert row.ceiling_bytes_per_token == pytest.approx(found[row.language], abs=1e-4)
    reader = TokenizerReader.of(tokenizer, corpus, by_language=True)
    counts = tmp_path / "counts"
    counts.mkdir()
    write_counts(reader.count_words(), reader, counts)
    assert [4, 0] == [
        group["n_special"] for group in CountFolder.open(counts).reader_state()["groups"]
    ]


def test_repaired_goes_beyond_the_ceiling_of_kept() -> None:
    """With the repaired pattern words with vowel signs become single tokens."""
    corpus = vs.Corpus.from_texts({"hi": TEXTS["hi"]})
    kept = extend_with_report(base(), corpus, ExtensionOptions(n_tokens=100)).report
    lifted = extend_with_report(
        base(), corpus, ExtensionOptions(n_tokens=100, pre_tokenizer="repaired")
    ).report
    assert kept.stopped_because == "no_pair_left"
    assert kept.effect is not None
    assert lifted.effect is not None
    assert lifted.effect.bytes_per_token(lifted.n_added) > kept.effect.ceiling
    assert lifted.drift is not None
    assert lifted.to_dict()["other_pre_tokenizer"]["pre_tokenizer"] == "kept"


def test_running_out_of_pairs_keeps_what_was_learned() -> None:
    """Fewer tokens than asked for, and the reason why."""
    report = extend_with_report(
        base(), vs.Corpus.from_texts(["zebra zebra"]), ExtensionOptions(n_tokens=50)
    ).report
    assert 0 < report.n_added < 50
    assert report.stopped_because == "no_pair_left"


def test_min_frequency_stops_too() -> None:
    """Pairs that are too rare are not merged."""
    corpus = vs.Corpus.from_texts(["zebra zebra quick"])
    report = extend_with_report(
        base(), corpus, ExtensionOptions(n_tokens=50, min_frequency=2)
    ).report
    assert report.stopped_because == "min_frequency"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_tokens": 0}, "n_tokens is 0"),
        ({"n_tokens": 5, "method": "best"}, "method is 'best'"),
        ({"n_tokens": 5, "tie_break": "random"}, "tie_break is 'random'"),
        ({"n_tokens": 5, "pre_tokenizer": "new"}, "pre_tokenizer is 'new'"),
        ({"n_tokens": 5, "min_frequency": -1}, "min_frequency is -1"),
        ({"n_tokens": 1 << 40}, "too many"),
        ({"n_tokens": 5, "normalizer": "nfx"}, "no normalizer is named 'nfx'"),
    ],
)
def test_bad_options(options: dict[str, Any], message: str) -> None:
    """What was given, before any work."""
    with pytest.raises(ValueError, match=message):
        extend_with_report(base(), vs.Corpus.from_texts(TEXTS), ExtensionOptions(**options))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"min_frequency": 10_000}, "at least 10,000 times; give"),
        ({"max_token_bytes": 1}, "and make 1 bytes or less; give"),
    ],
)
def test_nothing_to_learn_names_the_option_that_is_in_the_way(
    options: dict[str, Any], message: str
) -> None:
    """Neither option is blamed where it was not given."""
    with pytest.raises(CorpusError, match=message):
        extend_with_report(
            base(), vs.Corpus.from_texts(TEXTS), ExtensionOptions(n_tokens=5, **options)
        )


def test_a_path_is_no_corpus() -> None:
    """What is needed is told before any work; threads too."""
    with pytest.raises(TypeError, match=r"corpus is str; give a Corpus"):
        vs.extend(base(), "hindi.txt", n_tokens=5)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"corpus is str; give a Corpus"):
        vs.prune(base(), "hindi.txt", n_tokens=5)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="threads is 0"):
        vs.extend(base(), vs.Corpus.from_texts(TEXTS), n_tokens=5, threads=0)


def test_text_that_the_normalizer_removes_is_an_error() -> None:
    """A tokenizer whose normalizer deletes a script cannot learn it."""
    from dataclasses import replace

    deletes = {"type": "Replace", "pattern": {"Regex": r"[\u0900-\u097f ]"}, "content": ""}
    tokenizer = replace(base(), normalizer=deletes)
    with pytest.raises(CorpusError, match="leaves nothing of 'hi'"):
        vs.extend(tokenizer, vs.Corpus.from_texts(TEXTS), n_tokens=5)


def test_the_folder_holds_a_map_that_chains(tmp_path: Path) -> None:
    """Two steps of extending: the map begins at the first tokenizer."""
    tokenizer = base()
    tokenizer.save_pretrained(tmp_path / "base")
    corpus = vs.Corpus.from_texts(TEXTS)
    options = ExtensionOptions(n_tokens=5)
    result = extend_to_folder(tmp_path / "base", corpus, options, tmp_path / "one")
    extend_to_folder(tmp_path / "one", corpus, options, tmp_path / "two")

    first, second = load_map(tmp_path / "one"), load_map(tmp_path / "two")

    assert result["n_added"] == 5
    assert first.old == second.old
    assert (first.new_size, second.new_size) == (275, 280)
    assert second.old_to_new.tolist() == list(range(270))
    assert vs.load_tokenizer(tmp_path / "two").vocab_size == 280


def test_tokens_that_are_there_already_are_refused() -> None:
    """`extended` never gives one string two ids."""
    with pytest.raises(ValueError, match="in bpe already"):
        extended(base(), Additions(("a",), ()))


@pytest.mark.parametrize(("n", "points"), [(0, [0]), (1, [0, 1]), (600, [0, 250, 500, 600])])
def test_steps(n: int, points: list[int]) -> None:
    """A curve begins at 0 and ends at the last token."""
    assert steps(n) == points


def test_extend_spells_every_option_with_its_default() -> None:
    """The parameters of the function are the fields of `ExtensionOptions`, in their order."""
    parameters = inspect.signature(vs.extend).parameters
    spelled = {
        name: parameter.default
        for name, parameter in parameters.items()
        if name not in ("tokenizer", "corpus", "threads", "progress")
    }
    needed = {MISSING: inspect.Parameter.empty}
    options = {
        each.name: needed.get(each.default, each.default) for each in fields(ExtensionOptions)
    }
    named = {
        "words": (),
        "word_forms": NamedTokens.word_forms,
        "words_as": NamedTokens.words_as,
        "special_tokens": (),
        "roles": None,
    }
    assert list((options | named).items()) == list(spelled.items())
