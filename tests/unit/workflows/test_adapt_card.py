"""The card of an adapted model: from Results alone, and nothing in it is markup."""

from __future__ import annotations

import json

import vocabshift as vs
from vocabshift.report.tables import to_markdown
from vocabshift.workflows.adapt_card import AdaptationCard, Side, sample_texts

RESULTS = vs.Results(
    vs.Result(subject, "hi", metric, value, 3)
    for metric, one, two in (("bytes_per_token", 2.5, 4.25), ("bits_per_byte", 1.25, 1.5))
    for subject, value in (("before", one), ("after", two))
)


def card(**changes: object) -> AdaptationCard:
    fields = {
        "model": "llama",
        "before": Side(320, 12_345, 50_000),
        "after": Side(320, 12_345, 50_008),
        "n_kept": 280,
        "n_moved": 0,
        "n_added": 2,
        "n_removed": 2,
        "n_relearned": 1,
        "added_sample": (" घर", "a`b|c"),
        "removed_sample": ("\x1b[31m", "x"),
        "init": "fvt",
        "judged_on": "text of its own",
        "scored_on": "the first 20 bytes",
        "results": RESULTS,
    }
    return AdaptationCard(**(fields | changes))  # type: ignore[arg-type]


def test_the_page() -> None:
    """Figures before and after, tables of the results, samples as code."""
    page = card().to_markdown()
    assert "| rows | 320 | 320 |" in page
    assert "| parameters, as stored | 12,345 | 12,345 |" in page
    assert "| bytes of weights | 50,000 | 50,008 |" in page
    assert to_markdown(RESULTS) in page
    assert "| hi | 2.50 | 4.25 |" in page
    assert '`" घर"`, ``"a`b|c"``' in page
    assert "none of these moved to another id" in page
    assert "\x1b" not in page
    assert r'`"\x1b[31m"`' in page


def test_what_is_not_known_is_a_dash() -> None:
    """Weights in another format are not counted; a name of control characters is no name."""
    page = card(before=Side(320, None, 7), model="a\nb").to_markdown()
    assert "| parameters, as stored | – | 12,345 |" in page
    assert page.startswith("# a?b, adapted\n")
    assert "some of these" not in page
    assert "and 3 of these moved" in card(n_moved=3).to_markdown()


def test_plain_json() -> None:
    """Everything, results too, as `--json` prints it."""
    plain = json.loads(json.dumps(card().to_dict()))
    assert RESULTS == vs.Results(vs.Result(**row) for row in plain["results"])
    assert {"rows": 320, "parameters": 12_345, "weights_bytes": 50_008} == plain["after"]


def test_samples_are_what_tokens_say() -> None:
    """Bytes as text, half a character spelled out; the first ones, or evenly picked."""
    text = "राम घर गया और सीता घर आई, the cat and the other cat sat by the heater another day "
    corpus = vs.Corpus.from_texts([text * 9])
    tokenizer = vs.BpeTrainer(vocab_size=330, pre_tokenizer="o200k").train(corpus)
    tokens = [left + right for left, right in tokenizer.model.merges]
    first = sample_texts(tokenizer, tokens, evenly=False)
    evenly = sample_texts(tokenizer, tokens, evenly=True)
    assert len(tokens) > 40
    assert len(first) == len(evenly) == 20
    assert r"\xe0\xa4" in first
    assert any("घर" in text for text in evenly)
    assert first != evenly
    assert sample_texts(tokenizer, tokens[:3], evenly=True) == first[:3]
