"""evaluate: rows from tokenizers and texts."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import pytest
from tokenizers import Tokenizer as Backend
from tokenizers import decoders, models, pre_tokenizers

from small_models import old_tokenizer
from vocabshift.errors import CorpusError, InvalidTokenizerError
from vocabshift.evaluation.evaluate import evaluate
from vocabshift.evaluation.metrics.code_switching import mix
from vocabshift.evaluation.metrics.metric import WithFamily
from vocabshift.evaluation.metrics.morph_score import Morphemes
from vocabshift.evaluation.metrics.registry import METRICS, by_group
from vocabshift.evaluation.metrics.robustness import TYPOS
from vocabshift.report.tables import invalid_rows
from vocabshift.results import Result
from vocabshift.text.corpus import Corpus
from vocabshift.tokenizer.engine import Engine
from vocabshift.tokenizer.model import BpeModel
from vocabshift.tokenizer.tokenizer import Tokenizer


def _names(group: str) -> set[str]:
    return {metric.name for metric in by_group()[group]}


def test_rows(make_tokenizer) -> None:
    """Rows come by metric, language and subject, with the number of lines."""
    small, large = make_tokenizer(name="small"), make_tokenizer([("a", "b")], name="large")
    results = evaluate([small, large], {"x": ["ab ab", "ab"], "y": ["b"]})
    assert [
        ("fertility", "x", "small"),
        ("fertility", "x", "large"),
        ("fertility", "y", "small"),
        ("fertility", "y", "large"),
    ] == [(row.metric, row.language, row.subject) for row in results[:4]]
    assert 7 / 3 == results.value("small", "x", "fertility")
    assert 4 / 3 == results.value("large", "x", "fertility")
    assert Result("small", "y", "bytes_per_token", 1.0, 1) == results[-2]
    assert {("x", 2), ("y", 1)} == {(row.language, row.n) for row in results}


def test_a_base_adds_the_normalized_length(make_tokenizer) -> None:
    """With a base and no metrics named, sequence lengths are compared with it as well."""
    base, ours = make_tokenizer(name="base"), make_tokenizer([("a", "b")], name="ours")
    results = evaluate(ours, {"x": ["abab"]}, base=base)
    assert ["fertility", "bytes_per_token", "normalized_sequence_length"] == results.distinct(
        "metric"
    )
    assert 0.5 == results.value("ours", "x", "normalized_sequence_length")
    assert ["ours"] == results.distinct("subject")


def test_a_side_that_loses_text_is_doubted(make_tokenizer) -> None:
    """What it does not say is short: of a base, and of the language of reference."""
    whole, notes = make_tokenizer(name="whole"), []
    words = Backend(models.WordPiece({"[UNK]": 0, "a": 1}, unk_token="[UNK]"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    words.decoder = decoders.WordPiece()
    texts = {"en": ["a b"], "de": ["a a"]}
    evaluate(whole, texts, base=words, note=notes.append)
    assert ["the base loses text of en: "] == [note[:27] for note in notes]
    notes.clear()
    evaluate({"words": words, "whole": whole}, texts, "premium", note=notes.append)
    assert ["words loses text of en, which the premium"] == [note[:41] for note in notes]
    notes.clear()
    evaluate([whole], texts, ["premium", "fertility"], base=whole, note=notes.append)
    assert not notes


def test_metrics_are_checked_first(make_tokenizer) -> None:
    """An unknown metric and a missing base are refused before any text is read."""
    unread = {"x": iter(["a"])}
    with pytest.raises(ValueError, match="known are"):
        evaluate(make_tokenizer(), unread, ("fertility", "speed"))
    with pytest.raises(ValueError, match="give one as base"):
        evaluate(make_tokenizer(), unread, metrics="normalized_sequence_length")
    assert ["a"] == list(unread["x"])


def test_text_is_tokenized_once(make_tokenizer, monkeypatch) -> None:
    """More metrics of counts do not mean more tokenization; linguistic ones change the text."""
    lines = []
    encode = Engine.encode_batch

    def counting(self, texts, **options):
        lines.extend(texts)
        return encode(self, texts, **options)

    monkeypatch.setattr(Engine, "encode_batch", counting)
    metrics = [
        name
        for name, metric in METRICS.items()
        if "base" not in metric.needs and not isinstance(metric.formula, WithFamily)
    ]
    evaluate([make_tokenizer(), make_tokenizer()], {"en": ["a b"], "x": ["c"]}, metrics)
    assert ["a b", "a b", "c", "c"] == sorted(lines)


def test_an_empty_language_is_refused(make_tokenizer) -> None:
    """A language without text has no figures."""
    with pytest.raises(CorpusError, match="no line of text for y"):
        evaluate(make_tokenizer(), {"x": ["a"], "y": []})


def test_a_tokenizer_that_drops_everything_is_refused() -> None:
    """Without a single token there is no ratio, and the subject and language are named."""
    only_a = Tokenizer(BpeModel({"a": 0}, ()), name="only_a")
    assert 2.0 == evaluate(only_a, {"x": ["aabb"]}).value("only_a", "x", "bytes_per_token")
    with pytest.raises(InvalidTokenizerError, match="only_a gives no token for any line of y"):
        evaluate(only_a, {"x": ["a"], "y": ["b"]})


def test_threads_change_nothing(make_tokenizer) -> None:
    """One thread and two give the same rows, intervals included."""
    tokenizer = make_tokenizer([("a", "b")])
    texts = {"x": ["ab " * n + "c" for n in range(1, 200)]}
    assert evaluate(tokenizer, texts, threads=1) == evaluate(tokenizer, texts, threads=2)


TEXTS = {"en": ["ab ab", "cd ab", "ab"], "x": ["b ab", "cd", "ab cd"]}


def test_every_metric(make_tokenizer) -> None:
    """ "all" computes what the input allows, in the order of the registry, and tells the rest."""
    notes: list[str] = []
    subjects = [make_tokenizer([("a", "b")], name="one"), make_tokenizer([("c", "d")], name="two")]
    results = evaluate(subjects, TEXTS, "all", base=subjects[0], note=notes.append)
    empty = {"fertility_bin_11_100", "fertility_bin_101_1000", "fertility_bin_1001_10000"}
    empty |= {"fertility_bin_10001_up", "fertility_bin_unseen"}  # no such words in these texts
    empty |= {"whole_syllable_rate", "nfc_change", "nfd_change", "lowercase_change"}
    empty |= {f"{typo}_{what}" for typo in TYPOS for what in ("change", "locality")}
    no_data = _names("code switching") | _names("morphemes")
    assert [name for name in METRICS if name not in empty | no_data] == results.distinct("metric")
    assert no_data == {
        name for note in notes for name in METRICS if name in note.split(" are ")[0].split(", ")
    }
    results = evaluate(subjects[0], {"x": ["ab"]}, "all", note=notes.append)
    assert not {"gini", "premium", "pairwise_overlap", "levenshtein_distance"} & set(
        results.distinct("metric")
    )
    told = " ".join(notes)
    assert "gini is left out: gini compares languages" in told
    assert "levenshtein_distance is left out: levenshtein_distance compares with a base" in told


def test_figures_of_a_vocabulary(make_tokenizer) -> None:
    """They stand under "all", a script or another subject; `n` is the size of the vocabulary."""
    one = make_tokenizer([("a", "b"), ("à", "¤")], name="one")
    two = make_tokenizer([("a", "b")], name="two")
    metrics = ["vocab_size", "script_share", "pairwise_overlap", "language_share", "unused_share"]
    results = evaluate([one, two], TEXTS, metrics)
    assert 258 == results.value("one", "all", "vocab_size")
    assert 53 / 257 == results.value("two", "Latin", "script_share")
    assert pytest.approx(1.0) == sum(
        row.value for row in results.where(subject="one", metric="script_share")
    )
    assert 1.0 == results.value("one", "two", "pairwise_overlap")  # of the smaller one
    assert 2 == len(results.where(metric="pairwise_overlap"))
    # ab, Ġ, c, d; of these c, d, Ġ, ab in both languages, b in x alone
    assert 4 / 258 == results.value("one", "en", "language_share")
    assert 5 / 258 == results.value("one", "x", "language_share")
    assert pytest.approx(253 / 258) == results.value("one", "all", "unused_share")
    assert {258, 257} == {row.n for row in results}
    own = evaluate(one, TEXTS, ["own_language_share"])
    assert (0.0, 1 / 258) == (own[0].value, own[1].value)


def test_the_overlap_with_a_base(make_tokenizer) -> None:
    """Over the whole vocabulary and by script."""
    one, base = make_tokenizer([("a", "b"), ("à", "¤")]), make_tokenizer([("c", "d")])
    results = evaluate(one, TEXTS, "vocabulary_overlap", base=base)
    assert 256 / 257 == results.value("tiny", "all", "vocabulary_overlap")
    assert 52 / 53 == results.value("tiny", "Latin", "vocabulary_overlap")


def test_drift_from_a_base(make_tokenizer) -> None:
    """Edits and equal lines are means over lines, with intervals."""
    ours, base = make_tokenizer([("a", "b")]), make_tokenizer()
    results = evaluate(
        ours, {"x": ["ab", "c"]}, ["levenshtein_distance", "exact_match_rate"], base=base
    )
    assert [1.0, 0.5] == [row.value for row in results]  # ab for a|b: one out, one replaced


def test_parallel_metrics(make_tokenizer) -> None:
    """Gini and premium rest on parallel lines; other numbers of lines are refused with names."""
    tokenizer = make_tokenizer([("a", "b")])
    texts = {"eng": ["ab", "ab ab"], "x": ["aab", "a a a"]}
    results = evaluate(tokenizer, texts, ["gini", "premium"])
    assert pytest.approx((7 - 4) / (2 * 11)) == results.value("tiny", "all", "gini")
    assert 7 / 4 == results.value("tiny", "x", "premium")
    assert 1.0 == results.value("tiny", "eng", "premium")
    uneven = {**texts, "y": ["one"]}
    with pytest.raises(CorpusError, match=r"gini needs parallel texts.*x has 2 lines, y has 1"):
        evaluate(tokenizer, uneven, "gini")
    with pytest.raises(CorpusError, match="--parallel"):
        evaluate(tokenizer, uneven, "fertility", parallel=True)
    shifted = {"x": ["a", "", "b", "c"], "y": ["a", "b", "", "c"]}
    evaluate(tokenizer, shifted, "fertility")
    blank = "line 2 is blank in x alone and line 3 is blank in y alone"
    for asked in ({"metrics": "gini"}, {"parallel": True}, {"code_switch": ["x+y"]}):
        with pytest.raises(CorpusError, match=blank):
            evaluate(tokenizer, shifted, **asked)
    with pytest.raises(CorpusError, match="at least two"):
        evaluate(tokenizer, {"x": ["a"]}, "gini")
    with pytest.raises(ValueError, match="reference"):
        evaluate(tokenizer, {"x": ["a"], "y": ["b"]}, "premium")
    found = evaluate(tokenizer, {"x": ["a"], "y": ["b b"]}, "premium", reference="x")
    assert 3.0 == found.value("tiny", "y", "premium")


def test_frequencies_of_another_corpus(make_tokenizer) -> None:
    """Words are ranked by a corpus of their language, or by one for all."""
    tokenizer = make_tokenizer([("a", "b")])
    metrics = ["fertility_bin_1_10", "fertility_bin_unseen"]
    for frequencies in ({"x": ["ab ab"]}, ["ab"], Corpus.from_texts({"x": ["ab"], "z": ["q"]})):
        results = evaluate(tokenizer, {"x": ["ab cd"]}, metrics, frequencies=frequencies)
        assert [1.0, 3.0] == [row.value for row in results]  # ab; space c d
    with pytest.raises(CorpusError, match="frequencies hold no text of y"):
        evaluate(tokenizer, {"x": ["a"], "y": ["b"]}, metrics, frequencies={"x": ["a"]})


def test_a_loss_is_told_unasked() -> None:
    """Where text is lost a row says so, and figures of compression there are not valid."""
    only_a = Tokenizer(BpeModel({"a": 0, " ": 1}, ()), name="only_a")
    results = evaluate(only_a, {"x": ["aa", "aa b"], "y": ["a a"]}, ("fertility", "unk_rate"))
    assert ["fertility", "unk_rate", "loss_rate"] == results.distinct("metric")
    assert [("x", 0.5)] == [(row.language, row.value) for row in results.where(metric="loss_rate")]
    assert {("only_a", "x")} == invalid_rows(results, "fertility")
    assert set() == invalid_rows(results, "unk_rate")
    asked = evaluate(only_a, {"x": ["ab"], "y": ["a"]}, ("loss_rate", "character_loss_rate"))
    assert [1.0, 0.0, 0.5, 0.0] == [row.value for row in asked]


def test_several_at_a_time_change_nothing(make_tokenizer) -> None:
    """Three tokenizers on one thread and on four give the same rows in the same order."""
    subjects = {name: make_tokenizer([("a", "b")][:n]) for n, name in enumerate("xyz")}
    texts = {"en": ["ab " * n + "c" for n in range(1, 50)], "y": ["ba " * n for n in range(1, 50)]}
    one = evaluate(subjects, texts, "all", base=subjects["x"])
    assert one == evaluate(subjects, texts, "all", base=subjects["x"], threads=4)


def test_progress_is_told(make_tokenizer) -> None:
    """Once for each tokenizer."""
    told = []
    evaluate([make_tokenizer()] * 2, TEXTS, progress=lambda *state: told.append(state))
    assert [("tokenizers", 1, 2), ("tokenizers", 2, 2)] == told


PARALLEL = {"hi": ["नदी की बात है", "यह कीमत है"], "en": ["it is the river", "this is a price"]}
WORDS = {"gu": [Morphemes("prices", ("price", "s"))], "en": [Morphemes("rivers", ("river", "s"))]}


def test_code_switched_text_is_measured_like_any(make_tokenizer) -> None:
    """Under its label, by line; languages do not change for it, and fairness does not count it."""
    subjects = {"a": make_tokenizer(), "b": make_tokenizer([("i", "s")])}
    metrics = ("fertility", "gini", "normalized_sequence_length", "whole_syllable_rate")
    options = {"base": subjects["a"]}
    alone = evaluate(subjects, PARALLEL, metrics, **options)
    found = evaluate(subjects, PARALLEL, metrics, code_switch=["hi+en"], **options)
    assert set(alone) < set(found)
    added = [row for row in found if row not in set(alone)]
    assert {"hi+en"} == {row.language for row in added}
    mixed = {"hi+en": mix(PARALLEL, ["hi+en"])["hi+en"].texts}
    expected = evaluate(subjects, mixed, [name for name in metrics if name != "gini"], **options)
    assert set(expected) < set(added)
    assert {"code_switch_premium", "switch_span_rate"} == {
        row.metric for row in set(added) - set(expected)
    }
    assert ["hi", "hi", "en", "en", "hi+en", "hi+en"] == [row.language for row in found[:6]]


def test_words_with_morphemes_need_no_text(make_tokenizer) -> None:
    """Their metrics come with them, language by language, with or without texts."""
    subjects = {"a": make_tokenizer(), "b": make_tokenizer([("s", "t")])}
    found = evaluate(subjects, None, morphemes=WORDS)
    assert _names("morphemes") == set(found.distinct("metric"))
    assert [("gu", "a"), ("gu", "b"), ("en", "a"), ("en", "b")] == [
        (row.language, row.subject) for row in found.where(metric="morph_score")
    ]
    more = evaluate(subjects, PARALLEL, "fertility", morphemes=WORDS, leading_space=True)
    assert ({"fertility"} | _names("morphemes")) - {"morph_score_as_published"} == set(
        more.distinct("metric")
    )
    only = evaluate(subjects, None, ["morph_score", "vocab_size"], morphemes=WORDS)
    assert {"morph_score", "vocab_size"} == set(only.distinct("metric"))


def test_linguistic_metrics_by_name_and_all(make_tokenizer) -> None:
    """By name like any; "all" has those that need no data, and says once what the others need."""
    tokenizer, notes = make_tokenizer(), []
    found = evaluate(tokenizer, PARALLEL, "all", base=tokenizer, note=notes.append)
    metrics = set(found.distinct("metric"))
    for family in ("alignment", "numbers", "robustness"):
        assert len(metrics & _names(family)) > len(_names(family)) / 2
    assert not metrics & (_names("morphemes") | _names("code switching"))
    assert 1 == sum("--morphemes" in note for note in notes)
    assert 1 == sum("--code-switch" in note for note in notes)


@pytest.mark.parametrize(
    ("texts", "options", "error", "message"),
    [
        (PARALLEL, {"metrics": "morph_score"}, ValueError, "--morphemes"),
        (PARALLEL, {"metrics": "switch_span_rate"}, ValueError, "--code-switch"),
        (PARALLEL, {"code_switch": ["hi+ta"]}, CorpusError, "needs text of ta"),
        (PARALLEL, {"code_switch": ["hi"]}, ValueError, "no pair"),
        ({**PARALLEL, "en": ["a"]}, {"code_switch": ["hi+en"]}, CorpusError, "parallel"),
        (None, {"morphemes": WORDS, "metrics": "fertility"}, CorpusError, "texts are needed"),
        (None, {}, TypeError, "texts"),
        (None, {"morphemes": {"gu": []}}, CorpusError, "no word of gu"),
    ],
)
def test_linguistic_data_that_is_not_there(make_tokenizer, texts, options, error, message) -> None:
    with pytest.raises(error, match=message):
        evaluate(make_tokenizer(), texts, **options)


FERTILITY = {  # side by side: published table of vendor fertilities on the same lines
    "llama3": {"hi": 2.68, "ta": 12.21, "en": 1.23, "mni_Mtei": 17.58, "ur": 3.02},
    "qwen25": {"hi": 4.78, "ta": 9.95, "en": 1.25, "mni_Mtei": 17.61, "ur": 3.15},
    "mistral7b-v1": {"hi": 5.35, "ta": 10.36, "en": 1.36, "mni_Mtei": 18.58, "ur": 4.66},
}


@pytest.mark.shared
@pytest.mark.parametrize("name", FERTILITY)
def test_vendor_fertilities(shared_data, name: str) -> None:
    """The fertilities of vendor tokenizers are those that were measured independently."""
    eval_folder = shared_data / "eval" / "sib200-flores"
    expected = FERTILITY[name]
    texts = {
        language: (eval_folder / f"{language}.txt").read_text(encoding="utf-8").split("\n")
        for language in expected
    }
    results = evaluate(shared_data / "tokenizers-hf" / name, texts, metrics="fertility")
    assert {name} == set(results.distinct("subject"))
    assert expected == {row.language: round(row.value, 2) for row in results}
    assert all(row.n == 1004 for row in results)


def test_scripts_keep_their_order_by_size(make_tokenizer) -> None:
    """Scripts that have digits of their own do not come first for it."""
    shares = evaluate(make_tokenizer(), {"en": ["a b"]}, "all").where(metric="script_share")
    alone = evaluate(make_tokenizer(), {"en": ["a b"]}, "script_share")
    assert alone.distinct("language") == shares.distinct("language")
    assert "Latin" == shares[0].language


def test_a_pair_is_not_a_text_too(make_tokenizer) -> None:
    """One label for two texts would give two rows where there can be one."""
    texts = {"hi": ["a b"], "en": ["c d"], "hi+en": ["a d"]}
    with pytest.raises(ValueError, match=r"hi\+en is the label of a text already"):
        evaluate(make_tokenizer(), texts, "fertility", code_switch=["hi+en"])


def test_every_row_names_its_tokenizer_and_its_text(tmp_path: Path) -> None:
    """As sha256sum does: of the saved file, and of the lines as they were measured."""
    tokenizer = old_tokenizer()
    file = tokenizer.save_pretrained(tmp_path / "old") / "tokenizer.json"
    texts = {"en": ["a b\n\nc"], "de": ["d e\r\n", "f"]}
    found = evaluate(tokenizer, texts, ["fertility", "gini"])
    assert {sha256(file.read_bytes()).hexdigest()} == {row.tokenizer_sha256 for row in found}
    expected = {
        "en": sha256(b"a b\nc\n").hexdigest(),
        "de": sha256(b"d e\nf\n").hexdigest(),
        "all": sha256(b"a b\nc\nd e\nf\n").hexdigest(),
    }
    assert expected == {row.language: row.text_sha256 for row in found}
    mixed = evaluate(tokenizer, texts, ["fertility", "gini"], code_switch=["en+de"])
    assert expected["all"] == mixed.where(metric="gini")[0].text_sha256  # of the languages alone


def test_figures_of_no_text_name_none() -> None:
    """Those of a vocabulary, of numbers and of given words do not depend on the lines."""
    words = {"en": [Morphemes("ab", ("a", "b"))]}
    metrics = ["vocab_size", "tokens_per_digit", "morph_score", "unused_share", "bytes_per_token"]
    found = evaluate(old_tokenizer(), {"en": ["a cat 12"]}, metrics, morphemes=words)
    assert set(metrics) == {row.metric for row in found}
    assert {"unused_share", "bytes_per_token"} == {row.metric for row in found if row.text_sha256}
