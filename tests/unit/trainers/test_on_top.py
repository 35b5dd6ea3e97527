"""Superwords on top of a tokenizer: which bases can carry them, the boundaries, the figures."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from vocabshift import _core
from vocabshift.checks.text import Drift
from vocabshift.errors import CorpusError, InvalidTokenizerError, UnreachableTokenError
from vocabshift.storage.outcome import config_hash
from vocabshift.text.corpus import Corpus
from vocabshift.text.counting import CorpusReader
from vocabshift.text.patterns import NAMED, Pattern, Split, from_spec, splitter
from vocabshift.text.regexes import CL100K, join_words
from vocabshift.tokenizer.added_tokens import AddedToken
from vocabshift.tokenizer.components import metaspace_decoder, space_to_metaspace
from vocabshift.tokenizer.model import BpeModel
from vocabshift.tokenizer.pretrained_folder import check_auto
from vocabshift.tokenizer.tokenizer import Tokenizer
from vocabshift.tokenizer.tokenizer_json import to_json
from vocabshift.trainers.base import config_of
from vocabshift.trainers.boundary_choice import (
    BoundaryCandidate,
    choose,
    keeps_sentences,
    lifts_space_boundary,
)
from vocabshift.trainers.byte_level import BpeTrainer
from vocabshift.trainers.on_top import OnTopReport, SuperwordsOnTopTrainer
from vocabshift.trainers.stages import Stage
from vocabshift.workflows.train import train_to_folder

TEXTS = {
    "en": ["the cat sat on the mat. the cat sat on the hat!", "so the cat sat on the qzx mat"] * 3,
    "hi": ["राम घर गया और सीता घर गया। राम घर गया।"] * 3,
}
CORPUS = Corpus.from_texts(TEXTS)


def make_base(**changes: Any) -> Tokenizer:
    """cl100k, merge skipping, and the token "Ġqzx" that no merge makes."""
    texts = [text.replace("qzx", "") for texts in TEXTS.values() for text in texts]
    trained = BpeTrainer(vocab_size=280, pre_tokenizer="cl100k").train(Corpus.from_texts(texts))
    vocab = {**trained.model.vocab, "Ġqzx": 280}
    added = (AddedToken("<s>", 281), AddedToken("<|end|>", 282))
    template = {
        "type": "TemplateProcessing",
        "single": [
            {"SpecialToken": {"id": "<s>", "type_id": 0}},
            {"Sequence": {"id": "A", "type_id": 0}},
        ],
        "pair": [],
        "special_tokens": {"<s>": {"id": "<s>", "ids": [281], "tokens": ["<s>"]}},
    }
    model = replace(trained.model, vocab=vocab, ignore_merges=True)
    base = replace(
        trained,
        model=model,
        added_tokens=added,
        post_processor=template,
        config={"bos_token": "<s>", "model_max_length": 77},
        chat_template="{{ messages }}",
        name="small",
    )
    return replace(base, **changes)


BASE = make_base()


def run(corpus: Corpus = CORPUS, **options: Any) -> tuple[Tokenizer, OnTopReport]:
    training = SuperwordsOnTopTrainer(**{"base": BASE, "n_tokens": 20, **options}).run(corpus)
    assert isinstance(training.report, OnTopReport)
    return training.tokenizer, training.report


def test_everything_of_the_base_stays() -> None:
    tokenizer, report = run()
    assert BASE.model.vocab.items() <= tokenizer.model.vocab.items()
    assert BASE.added_tokens == tokenizer.added_tokens
    assert [BASE.post_processor, BASE.decoder, BASE.normalizer] == [
        tokenizer.post_processor,
        tokenizer.decoder,
        tokenizer.normalizer,
    ]
    assert BASE.config == tokenizer.config
    assert BASE.chat_template == tokenizer.chat_template
    assert not tokenizer.model.ignore_merges
    assert "ĠonĠthe" in tokenizer.model.vocab
    assert list(range(283, 303)) == sorted(tokenizer.model.vocab.values())[283:]
    ids = tokenizer.backend.encode("<s>the cat<|end|>").ids
    assert [281, 281, 282] == [i for i in ids if 281 <= i < 283]
    assert 303 == report.vocab_size == tokenizer.row_count
    assert 20 == report.new_tokens


def test_the_report() -> None:
    _, report = run()
    assert "small" == report.base
    assert ("Ġqzx",) == report.tokens_lost
    assert {"en": 0.5, "hi": 0.0} == report.changed_lines
    tokens = sum(len(BASE.backend.encode(text).ids) - 1 for text in TEXTS["en"])
    assert {"en": 3 / tokens, "hi": 0.0} == report.changed_tokens
    assert ["own", "own-sentences", "ist-stage2", "superbpe-stage2"] == [
        one.name for one in report.candidates
    ]
    assert [True] * 4 == [one.lifts_space_wall for one in report.candidates]
    assert [True, True, True, False] == [one.keeps_sentences for one in report.candidates]
    by_name = {one.name: one for one in report.candidates}
    assert 1 / 3 == by_name["own"].changed_lines  # three of nine lines hold the word
    assert report.merges == report.stage1_merges + report.stage2_merges
    assert len(BASE.model.merges) == report.stage1_merges
    assert report.superwords > 0
    assert ["measure", "encode", "stage 2"] == [phase.name for phase in report.phases]
    json.dumps(asdict(report))


def test_text_without_labels_is_reported_too() -> None:
    _, report = run(Corpus.from_texts(TEXTS["en"]))
    assert ["unlabelled"] == [*report.changed_lines]


@pytest.mark.parametrize("boundaries", ["own", "own-sentences", "ist-stage2", "superbpe-stage2"])
def test_boundaries_by_name(boundaries: str) -> None:
    tokenizer, report = run(stage2_pre_tokenizer=boundaries)
    assert boundaries == report.stage2_pre_tokenizer
    pattern = from_spec(tokenizer.pre_tokenizer)
    assert pattern is not None
    if boundaries in NAMED:
        assert NAMED[boundaries] == pattern
    else:
        assert join_words(CL100K) == pattern[0].regex


def test_auto_changes_least_and_a_regex_is_taken_as_it_is() -> None:
    assert "own" == run()[1].stage2_pre_tokenizer
    tokenizer, report = run(stage2_pre_tokenizer=r"\n+")
    assert r"\n+" == report.stage2_pre_tokenizer
    assert 5 == len(report.candidates)
    pattern = from_spec(tokenizer.pre_tokenizer)
    assert pattern is not None
    assert [r"\n+"] == [split.regex for split in pattern]


def test_a_base_whose_pattern_cannot_be_lifted() -> None:
    spec = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}
    no_boundaries = make_base(pre_tokenizer={**spec, "use_regex": False})
    assert "ist-stage2" == run(base=no_boundaries)[1].stage2_pre_tokenizer
    with pytest.raises(ValueError, match="whose space boundary could be lifted"):
        run(base=no_boundaries, stage2_pre_tokenizer="own")
    gpt2 = make_base(pre_tokenizer={**spec, "use_regex": True})
    assert "own" == run(base=gpt2)[1].stage2_pre_tokenizer


@pytest.mark.parametrize("one_by_one", [True, False])
def test_digits_before_the_pattern_do_not_hide_it(*, one_by_one: bool) -> None:
    """As SmolLM has them. Nothing of the old segmentation changes, in numbers and code neither."""
    base = make_base()
    steps = [
        {"type": "Digits", "individual_digits": one_by_one},
        {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
    ]
    spec = {"type": "Sequence", "pretokenizers": steps}
    model = replace(base.model, ignore_merges=False)
    base = replace(base, model=model, pre_tokenizer=spec)
    texts = [*TEXTS["en"], "the cat 2024\n    the cat(12, 3)\n\tsat 1 2\n\nthe"] * 3
    tokenizer, report = run(Corpus.from_texts(texts), base=base)
    by_name = {row.name: row for row in report.candidates}
    assert ("own", 0.0) == (report.stage2_pre_tokenizer, by_name["own"].changed_tokens)
    before, after = from_spec(spec), from_spec(tokenizer.pre_tokenizer)
    assert before is not None
    assert after is not None
    assert before[0] == after[0]
    digits = ["2", "4"] if one_by_one else ["24"]
    assert ["the cat", " ", *digits, "\n   ", " sat"] == splitter(after)("the cat 24\n    sat")


def test_the_choice_is_among_those_that_lift_the_boundary_and_keep_sentences() -> None:
    def measured(name: str, pattern: Pattern, changed: int) -> BoundaryCandidate:
        return BoundaryCandidate(name, pattern, {"en": Drift(10, 1, 100, changed)}, ())

    ist, own = NAMED["ist-stage2"], (Split(join_words(CL100K)),)
    rows = [
        measured("keeps the boundary", NAMED["cl100k"], 0),
        measured("joins sentences", NAMED["superbpe-stage2"], 0),
        measured("own", own, 7),
        measured("ist", ist, 5),
        measured("ist again", ist, 5),
    ]
    assert "ist" == choose(rows).name
    assert "own" == choose([rows[2], measured("ist", ist, 7)]).name


def test_what_boundaries_are_told_apart_by() -> None:
    assert lifts_space_boundary(NAMED["superbpe-stage2"])
    assert not lifts_space_boundary(NAMED["o200k"])
    assert keeps_sentences(NAMED["ist-stage2"])
    assert not keeps_sentences(NAMED["superbpe-stage2"])


def test_no_new_token_holds_a_terminal_that_the_own_pattern_lets_stand() -> None:
    """ "!cat" is one piece of cl100k; as a token it would span a sentence end."""
    tokenizer, _ = run(Corpus.from_texts(["!cat sat !cat sat"] * 9), n_tokens=40)
    new = {token for token, i in tokenizer.model.vocab.items() if i >= 283}
    assert "ĠcatĠsat" not in new  # "!" stands before it
    assert "catĠsat" in new
    assert [] == [token for token in new if "!" in token]


def test_the_rule_for_the_rest_of_a_character() -> None:
    rule = _core.MergeRule(whole_first=True)
    assert rule.allows(b"\xa5\xa4")
    assert rule.allows("क".encode() + b"\xe0\xa4")
    assert not rule.allows(b"\xa5\xa4 a")
    assert not rule.allows(b"\xa4\xe0")
    assert _core.MergeRule().allows(b"\xa4 a")


def test_limits_reach_training() -> None:
    tokenizer, _ = run(max_words=2, max_token_bytes=8)
    new = [token for token, i in tokenizer.model.vocab.items() if i >= 283]
    assert new
    assert max(map(len, new)) <= 8
    assert max(len(token.replace("Ġ", " ").split()) for token in new) <= 2
    few, report = run(min_frequency=1000)
    assert 0 == report.new_tokens
    assert 283 == few.vocab_size
    assert "min_frequency" == report.stopped_because


def test_vocab_size_counts_all_tokens() -> None:
    by_count = run(n_tokens=20)[0]
    by_size = run(n_tokens=None, vocab_size=303)[0]
    assert to_json(by_count) == to_json(by_size)


def test_a_normalizer_stays_and_training_sees_its_text() -> None:
    base = make_base(normalizer={"type": "NFC"})
    texts = ["cafe\u0301 noir cafe\u0301 noir", "cafe noir"] * 4
    tokenizer, report = run(Corpus.from_texts(texts), base=base)
    assert {"type": "NFC"} == tokenizer.normalizer
    encodings = tokenizer.backend.encode_batch(texts, add_special_tokens=False)
    assert sum(len(encoding.ids) for encoding in encodings) == report.training_tokens


def test_added_tokens_are_cut_out_with_the_space_that_they_take() -> None:
    added = (
        AddedToken("<s>", 281, lstrip=True, rstrip=True),
        AddedToken("<x>", 282, special=False),
    )
    texts = ["the cat <s> sat on<x>the cat", "the cat <s>"] * 3
    tokenizer, report = run(Corpus.from_texts(texts), base=make_base(added_tokens=added))
    encodings = tokenizer.backend.encode_batch(texts, add_special_tokens=False)
    assert sum(len(encoding.ids) for encoding in encodings) == report.training_tokens


def test_temperature_changes_what_is_learned() -> None:
    def learned(**options: Any) -> list[str]:
        corpus = Corpus.from_texts({"en": TEXTS["en"] * 9, "hi": TEXTS["hi"]})
        return [*run(corpus, n_tokens=9, **options)[0].model.vocab][283:]

    assert learned() != learned(sampling_alpha=0.01)


METASPACE = Tokenizer(
    BpeModel({"<unk>": 0, "▁": 1, "a": 2, "▁a": 3}, (("▁", "a"),), unk_token="<unk>"),
    normalizer=space_to_metaspace(add_prefix=True),
    decoder=metaspace_decoder(strip_prefix=True),
    name="metaspace",
)
PREFIX = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_tokens": 0}, "n_tokens is 0"),
        ({"n_tokens": None}, "either n_tokens"),
        ({"vocab_size": 400}, "either n_tokens"),
        ({"n_tokens": None, "vocab_size": 283}, "the base has 283 tokens"),
        ({"max_words": 0}, "max_words"),
        ({"stage2_pre_tokenizer": "nothing"}, "no pre-tokenizer is named"),
        ({"base": METASPACE}, "metaspace is not byte-level"),
        ({"base": make_base(pre_tokenizer=None)}, "is not byte-level"),
        ({"base": make_base(pre_tokenizer=PREFIX)}, "puts a space before every text"),
        ({"base": make_base(normalizer={"type": "Lowercase"})}, "the normalizer Lowercase"),
        (
            {"base": make_base(added_tokens=(AddedToken("<s>", 281, single_word=True),))},
            "as a single word",
        ),
        (
            {
                "base": make_base(
                    added_tokens=(AddedToken("<s>", 281, normalized=True),),
                    normalizer={"type": "NFC"},
                )
            },
            "in normalized text",
        ),
        ({"n_tokens": 10**9}, "the base has room for"),
    ],
)
def test_bad_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SuperwordsOnTopTrainer(**{"base": BASE, "n_tokens": 20, **options})


def test_a_unigram_base_is_refused(tmp_path: Path) -> None:
    model = {"type": "Unigram", "unk_id": 0, "vocab": [["<unk>", 0.0], ["a", -1.0]]}
    file = tmp_path / "tokenizer.json"
    file.write_text(json.dumps({"version": "1.0", "model": model}), encoding="utf-8")
    with pytest.raises(InvalidTokenizerError, match="Unigram"):
        SuperwordsOnTopTrainer(base=tmp_path, n_tokens=20)


def test_a_corpus_without_text() -> None:
    with pytest.raises(CorpusError, match="no text"):
        run(Corpus.from_texts([""]))


def test_the_key_of_a_run_names_the_content_of_the_base(tmp_path: Path) -> None:
    base = BASE.save_pretrained(tmp_path / "small")

    def key(source: Any) -> str:
        return config_hash(config_of(SuperwordsOnTopTrainer(base=source, n_tokens=20)))

    expected = key(BASE)
    assert expected == key(str(base))
    make_base(normalizer={"type": "NFC"}).save_pretrained(base, force=True)
    assert expected != key(str(base))
    assert len(json.dumps(config_of(SuperwordsOnTopTrainer(base=BASE, n_tokens=20)))) < 1000


def test_a_folder(tmp_path: Path) -> None:
    base = BASE.save_pretrained(tmp_path / "small")
    out = tmp_path / "out"
    result = train_to_folder("on-top", CORPUS, {"base": str(base), "n_tokens": 20}, out, threads=2)
    assert 1 == result["unreachable"]  # the base's own: its merges do not make it
    assert 303 == result["vocab_size"]
    check_auto(out)
    text = (out / "tokenizer.json").read_bytes()
    again = Tokenizer.from_json(text)
    assert again.model.vocab == run()[0].model.vocab
    with pytest.raises((ValueError, FileExistsError), match=r"small|exists"):
        train_to_folder("on-top", CORPUS, {"base": str(base), "n_tokens": 20}, base)
    assert (base / "tokenizer.json").exists()


def test_a_run_cut_short_goes_on_only_with_the_same_base(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The encoded text is kept; another base at the same path does not get it."""
    text = tmp_path / "a.txt"
    text.write_text("\n".join(TEXTS["en"]) + "\n", encoding="utf-8")
    corpus = Corpus.from_specs([f"en={text}"])
    base = BASE.save_pretrained(tmp_path / "small")
    options = {"base": str(base), "n_tokens": 10}
    train_to_folder("on-top", corpus, options, tmp_path / "whole")

    def cut_short(out: Path) -> None:
        def fail(*_: object) -> Stage:
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(Stage, "of", fail)
            with pytest.raises(KeyboardInterrupt):
                train_to_folder("on-top", corpus, options, out)

    reads = 0
    read = CorpusReader.read

    def counted(self: CorpusReader, progress: Any = None, *, threads: int = 1) -> Any:
        nonlocal reads
        reads += 1
        return read(self, progress, threads=threads)

    monkeypatch.setattr(CorpusReader, "read", counted)
    cut_short(tmp_path / "out")
    assert 1 == reads
    train_to_folder("on-top", corpus, options, tmp_path / "out")
    assert 1 == reads
    for name in ("tokenizer.json", "vocabshift.json"):
        assert (tmp_path / "whole" / name).read_bytes() == (tmp_path / "out" / name).read_bytes()
    cut_short(tmp_path / "other")
    assert 2 == reads
    replace(BASE, normalizer={"type": "NFC"}).save_pretrained(base, force=True)
    train_to_folder("on-top", corpus, options, tmp_path / "other")
    assert 3 == reads


def test_a_new_token_out_of_reach_is_a_fault_and_one_of_the_base_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = BASE.save_pretrained(tmp_path / "small")
    options = {"base": str(base), "n_tokens": 10}
    monkeypatch.setattr(Tokenizer, "unreachable", lambda _: ("Ġqzx", "ĠonĠthe"))
    with pytest.raises(UnreachableTokenError, match="1 tokens"):
        train_to_folder("on-top", CORPUS, options, tmp_path / "out")
    assert ["small"] == [path.name for path in tmp_path.iterdir()]
