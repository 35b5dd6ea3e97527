"""Snippets: where two readings of a text meet, and which stretches are kept."""

from __future__ import annotations

from itertools import accumulate
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("torch")

import small_models
from strategies import examples
from vocabshift.surgery import snippets
from vocabshift.surgery.options import DistillOptions
from vocabshift.surgery.snippets import (
    Snippets,
    common_ends,
    cut_document,
    find_snippets,
)
from vocabshift.text.corpus import Corpus
from vocabshift.tokenizer.formats.load import as_tokenizer


def reading(lengths: list[int]) -> tuple[Any, Any]:
    """Ids 0, 1, … of tokens of these lengths, and their ends."""
    ends = np.array([*accumulate(lengths)], dtype=np.int64)
    return np.arange(len(lengths), dtype=np.int32), ends


LENGTHS = st.lists(st.integers(0, 4), max_size=40)


MOST = st.none() | st.integers(1, 9)


@given(LENGTHS, LENGTHS, st.integers(1, 9), MOST, MOST)
@examples(200)
def test_stretches_by_definition(
    old: list[int], new: list[int], length: int, most: Any, most_new: Any
) -> None:
    """Both readings of a stretch cover the same bytes; all common ends inside are listed."""
    (old_ids, old_ends), (new_ids, new_ends) = reading(old), reading(new)
    at_old, at_new = common_ends(old_ends, new_ends)
    by_definition = sorted({*old_ends.tolist()} & {*new_ends.tolist()})
    assert by_definition == old_ends[at_old].tolist() == new_ends[at_new].tolist()
    for at, ends in ((at_old, old_ends.tolist()), (at_new, new_ends.tolist())):
        last = [len(ends) - 1 - ends[::-1].index(end) for end in by_definition]
        assert last == at.tolist()
    after = 0
    for each in cut_document((old_ids, old_ends), (new_ids, new_ends), length, most, most_new):
        assert len(each.new) <= 4 * length
        assert most is None or len(each.old) <= most
        assert most_new is None or len(each.new) <= most_new
        begins = [
            0 if ids[0] == 0 else int(ends[ids[0] - 1])
            for ids, ends in ((each.old, old_ends), (each.new, new_ends))
        ]
        assert begins[0] == begins[1]
        assert after <= each.new[0]
        after = each.new[-1] + 1
        places = zip(each.old[each.at_old].tolist(), each.new[each.at_new].tolist(), strict=True)
        inside = [
            (i, j)
            for i, j in zip(at_old.tolist(), at_new.tolist(), strict=True)
            if each.new[0] <= j <= each.new[-1]
        ]
        assert inside == [*places]
        assert inside[-1] == (each.old[-1], each.new[-1])


def test_nothing_is_left_out_where_readings_meet_often() -> None:
    """Stretches of about equal length from the first token to the last."""
    document = reading([1] * 103)
    found = [len(each.new) for each in cut_document(document, document, 50)]
    assert 103 == sum(found)
    assert max(found) - min(found) <= 1
    assert 4 > len(found)


def snippets_of(texts: list[str], old: Any, new: Any, made: list[int], **options: Any) -> Snippets:
    return find_snippets(
        Corpus.from_texts(texts), old, new, np.array(made), DistillOptions(**options)
    )


def test_superwords_and_parts_of_characters() -> None:
    """A token of two words meets the end of its second; one that ends inside a letter meets none
    of the old ones, unless they end there too."""
    new = small_models.tiny_tokenizer()
    old = small_models.joining_tokenizer()
    both = new.model.vocab["ĠtheĠcat"]
    found = snippets_of(["a the cat sat", "mat"], old, new, [both])
    (only,) = found.snippets
    place = only.new.tolist().index(both)
    assert len(" the cat") == only.old[: only.at_old[1] + 1].size - 1
    assert [0, place] == only.at_new[:2].tolist()
    assert [1] == found.counts.tolist()
    half = new.model.vocab["à¤"]
    (cut,) = snippets_of(["क ख"], old, new, [half]).snippets
    assert [b"\xe0\xa4"] == [new.token_bytes[i] for i in cut.new.tolist() if i == half]
    assert len(cut.old) == 7  # bytes: every token of the new reading ends at one
    assert cut.at_new.tolist() == [*range(len(cut.new))]


def test_a_normalizer_that_changes_the_text() -> None:
    """Both readings are placed in the text itself, so they meet although one writes it in NFC."""
    from tokenizers import Tokenizer, normalizers

    old = small_models.old_tokenizer()
    backend = Tokenizer.from_str(small_models.new_tokenizer().to_json())
    backend.normalizer = normalizers.NFC()
    new = as_tokenizer(backend)
    made = [i for i, data in new.token_bytes.items() if len(data) > 3]
    decomposed = "cafe\u0301 एक और"
    (only,) = snippets_of([decomposed], old, new, made).snippets
    assert len(decomposed.encode()) == len(only.old) or len(only.old) < len(decomposed.encode())
    ends = np.cumsum([len(old.token_bytes[i]) for i in only.old.tolist()])
    assert len(decomposed.encode()) == ends[only.at_old[-1]]
    assert len(only.new) - 1 == only.at_new[-1]


def test_every_token_gets_as_many_snippets_as_wanted() -> None:
    """A stretch is kept if it brings a token of which there are too few; a budget lowers that."""
    old, new = small_models.old_tokenizer(), small_models.new_tokenizer()
    made = [i for i, data in new.token_bytes.items() if data not in {*old.token_bytes.values()}]
    texts = small_models.HINDI * 4
    few = snippets_of(texts, old, new, made, snippets=2)
    many = snippets_of(texts, old, new, made, snippets=7)
    assert 2 == few.counts[few.counts > 0].min()
    assert 7 == many.counts[many.counts > 0].min()
    arrays = [(each.old, each.new, each.at_old, each.at_new) for each in many.snippets]
    assert all(array.base is None for each in arrays for array in each)  # no batch is held by views
    assert many.n_bytes == sum(len(text.encode()) for text in texts)
    cheap = snippets_of(texts, old, new, made, snippets=7, tokens=few.n_new)
    assert few.n_new >= cheap.n_new > 0
    assert 1 == np.unique((cheap.counts > 0) == (few.counts > 0)).size
    tiny = snippets_of(texts, old, new, made, tokens=30)
    assert 30 >= tiny.n_new > 0
    again = snippets_of(texts, old, new, made, tokens=30)
    assert all(
        one.new.tolist() == two.new.tolist()
        for one, two in zip(tiny.snippets, again.snippets, strict=True)
    )


def test_reading_ends_where_nothing_is_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rest of the corpus would give no snippet."""
    old, new = small_models.old_tokenizer(), small_models.new_tokenizer()
    made = [i for i, data in new.token_bytes.items() if data == " और".encode()]
    texts = small_models.HINDI
    whole = snippets_of(texts, old, new, made, snippets=3)
    monkeypatch.setattr(snippets, "_DOCUMENTS", 2)
    part = snippets_of(texts, old, new, made, snippets=3)
    assert whole.n_bytes > part.n_bytes > 0
    assert [each.new.tolist() for each in whole.snippets] == [
        each.new.tolist() for each in part.snippets
    ]
    assert [3] == part.counts.tolist()


def test_special_tokens_in_a_corpus_are_text() -> None:
    """A corpus that spells a special token does not make the model read one."""
    old, new = small_models.old_tokenizer(), small_models.new_tokenizer()
    made = [i for i, data in new.token_bytes.items() if data not in {*old.token_bytes.values()}]
    (only,) = snippets_of(["</s> एक और"], old, new, made).snippets
    assert small_models.special_ids(old)["</s>"] not in only.old.tolist()
