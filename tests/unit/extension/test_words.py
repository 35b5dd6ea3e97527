"""Words and special tokens by name: what becomes of each, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer as Backend
from tokenizers.models import WordPiece
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer
from tokenizers.processors import BertProcessing
from tokenizers.processors import Sequence as Processors

import small_models
import vocabshift as vs
from vocabshift.extension.by_name import add_by_name
from vocabshift.extension.named_tokens import AnyKind, NamedTokens, read_words, with_special_tokens
from vocabshift.extension.one_token import MergeChains
from vocabshift.extension.words import WordRow, add_words
from vocabshift.tokenizer.added_tokens import AddedToken
from vocabshift.tokenizer.formats.load import open_tokenizer
from vocabshift.tokenizer.model import BpeModel


def llama3_like() -> vs.Tokenizer:
    """English, cut as Llama-3 cuts it."""
    corpus = vs.Corpus.from_texts(small_models.ENGLISH)
    trained = vs.BpeTrainer(vocab_size=283, pre_tokenizer="cl100k").train(corpus)
    return replace(trained, added_tokens=(AddedToken("<s>", trained.row_count),))


def rows_of(*words: str, **options: Any) -> dict[str, WordRow]:
    """What becomes of words."""
    added = add_words(llama3_like(), NamedTokens(words=words, **options))
    return {row.word: row for row in added.rows}


def test_a_word_is_one_token_after_a_space_and_without_one() -> None:
    """Two tokens, two rows; one of them on request."""
    both = rows_of("heaters")["heaters"]
    assert (both.how, both.alone, both.spaced, len(both.ids)) == ("merges", 1, 1, 2)
    assert both.alone_before > 1 < both.spaced_before
    spaced = rows_of("heaters", word_forms="spaced")["heaters"]
    assert (spaced.alone > 1, spaced.spaced, len(spaced.ids)) == (True, 1, 1)
    bare = rows_of("heaters", word_forms="bare")["heaters"]
    assert (bare.alone, bare.spaced > 1, len(bare.ids)) == (1, True, 1)


def test_what_is_there_is_not_added() -> None:
    """Neither a word of the vocabulary nor a special token."""
    rows = rows_of("the", "<s>", word_forms="spaced")
    assert {row.how for row in rows.values()} == {"present"}
    assert all(row.new_tokens == () for row in rows.values())


@pytest.mark.parametrize(
    ("word", "reason"),
    [
        ("c++", "the pre-tokenizer cuts it: c | ++"),
        ("the cat", "the pre-tokenizer cuts it: the |  cat"),
        ("नमस्ते", "the pre-tokenizer cuts it: नमस | ्त | े"),
        ("x<s>", "the added token '<s>' is in it"),
        ("ab" * 5000, "it has more than 200 characters"),
    ],
)
def test_what_cannot_be_a_token_becomes_an_added_token(word: str, reason: str) -> None:
    """With the reason; the space before it stays a token of its own."""
    row = rows_of(word)[word]
    assert (row.how, row.reason, row.alone) == ("added", reason, 1)
    assert row.spaced == 2


def test_the_repaired_pre_tokenizer_comes_first() -> None:
    """A Hindi word that it no longer cuts is one token by merges."""
    longer = vs.extend(llama3_like(), words=["नमस्ते"], pre_tokenizer="repaired")
    assert [len(longer.encode_batch([text])[0]) for text in ("नमस्ते", " नमस्ते")] == [1, 1]
    assert longer.added_tokens == llama3_like().added_tokens


def test_added_tokens_on_request() -> None:
    """Cut out of other words too."""
    base = llama3_like()
    longer = vs.extend(base, words=["heat", "the"], words_as="added-tokens")
    assert {t.content for t in longer.added_tokens} == {"<s>", "heat"}  # "the" is one already
    assert isinstance(longer, vs.Tokenizer)
    ids = longer.encode_batch(["xheatx"])[0].tolist()
    assert {t.id: t.content for t in longer.added_tokens}[ids[1]] == "heat"
    assert longer.model.merges == base.model.merges


def test_a_text_that_the_vocabulary_spells_otherwise_is_refused() -> None:
    """In a byte-level vocabulary "Ġ" is a space."""
    row = rows_of("Ġ", words_as="added-tokens")["Ġ"]
    assert (row.how, row.ids, row.new_tokens) == ("refused", (), ())
    assert row.reason == "the vocabulary spells another text like this"


def test_a_vocabulary_that_marks_the_parts_of_words() -> None:
    """Special tokens can be added to it, and words as added tokens alone."""
    letters = {letter: i for i, letter in enumerate("abc")}
    vocab = {**letters, **{f"{letter}</w>": 3 + i for letter, i in letters.items()}}
    base = vs.Tokenizer(BpeModel(vocab, (), end_of_word_suffix="</w>"))
    longer = vs.extend(base, special_tokens=["<x>"])
    assert longer.row_count == 7
    with pytest.raises(ValueError, match=r"marks the parts of words \('</w>'\)"):
        vs.extend(base, words=["abc"])
    [row] = add_words(base, NamedTokens(words=("abc",), words_as="added-tokens")).rows
    assert (row.how, row.alone, row.ids) == ("added", 1, (6,))


def test_the_cost_in_other_words_is_counted() -> None:
    """Of the word that changes them; the word itself is not counted."""
    text = vs.Corpus.from_texts({"en": ["the heaters", "xheatersx heaters", "another day"]})
    added = add_by_name(llama3_like(), NamedTokens(words=("heaters", "days")), text=text)
    [effect] = added.effects
    assert (effect.lines, effect.changed_lines) == (3, 2)
    assert 0 < effect.other_tokens < effect.changed_tokens
    assert added.other_tokens is not None
    assert added.other_tokens.keys() == {"heaters"}
    figures = added.figures({"n_added": 2})
    assert figures["n_added"] == 2 + added.n_added
    assert [row["other_tokens_changed"] > 0 for row in figures["words"]] == [True, False]


def test_special_tokens_come_last_and_carry_what_they_stand_for() -> None:
    """Ids after all others; a role's config and template follow."""
    base = small_models.old_tokenizer()
    base = replace(base, chat_template="{{ messages }}</s>")
    longer = vs.extend(
        base,
        words=["heaters"],
        special_tokens={"<think>": "the other day", "<|end|>": ""},
        roles={"eos": "<|end|>", "bos": "<think>"},
    )
    ids = {token.content: token.id for token in longer.added_tokens}
    assert sorted([ids["<think>"], ids["<|end|>"]]) == [longer.row_count - 2, longer.row_count - 1]
    assert longer.config["special_token_descriptions"] == {"<think>": "the other day"}
    assert longer.config["eos_token"] == "<|end|>"
    assert longer.chat_template == "{{ messages }}<|end|>"
    assert longer.backend.encode("the").ids[0] == ids["<think>"]
    kept = {token.content: token.id for token in base.added_tokens}
    assert {text: ids[text] for text in kept} == kept


def test_two_tokens_can_change_roles() -> None:
    """Each goes where the other stood, in the template and in the post-processor."""
    base = replace(small_models.old_tokenizer(), chat_template="<s>{{ messages }}</s>")
    swapped = vs.extend(base, special_tokens=["<new>"], roles={"eos": "<s>", "bos": "</s>"})
    assert swapped.chat_template == "</s>{{ messages }}<s>"
    ids = {token.content: token.id for token in base.added_tokens}
    old, new = (each.backend.encode("the").ids for each in (base, swapped))
    other = {ids["<s>"]: ids["</s>"], ids["</s>"]: ids["<s>"]}
    assert [other.get(i, i) for i in old] == new != old


@pytest.mark.parametrize("is_wrapped", [False, True])
def test_a_bert_model_places_its_new_separator(*, is_wrapped: bool) -> None:
    """In its post-processor; added tokens of it become special in their place."""
    backend = Backend.from_str(wordpiece().backend.to_str())
    backend.add_special_tokens(["[CLS]", "[SEP]"])
    backend.add_tokens(["<x>"])
    steps = BertProcessing(("[SEP]", 6), ("[CLS]", 5))
    backend.post_processor = Processors([steps]) if is_wrapped else steps
    base = replace(open_tokenizer(backend), config={"sep_token": "[SEP]", "cls_token": "[CLS]"})
    named = NamedTokens(special_tokens={"<end>": "", "<x>": ""}, roles={"sep": "<end>"})
    longer, rows = with_special_tokens(base, named)
    assert [row.how for row in rows] == ["added", "promoted"]
    assert longer.backend.encode("ab").tokens == ["[CLS]", "a", "##b", "<end>"]
    assert {token.content: token.special for token in longer.added_tokens}["<x>"]


def test_special_tokens_are_a_list() -> None:
    with pytest.raises(TypeError, match="special_tokens is a str; give a list"):
        vs.extend(llama3_like(), special_tokens="<x>")


def test_an_ordinary_token_becomes_special_and_keeps_its_id() -> None:
    """As transformers does with `add_special_tokens`."""
    base = llama3_like()
    longer, [row] = with_special_tokens(base, NamedTokens(special_tokens={"the": ""}))
    assert (row.how, row.id, longer.row_count) == ("promoted", base.vocab["the"], base.row_count)


def test_a_token_with_two_roles_keeps_the_places_of_the_other() -> None:
    """It begins texts no more, and still ends them."""
    base = replace(small_models.old_tokenizer(), chat_template="{{ messages }}</s>")
    base = replace(base, config={**base.config, "bos_token": "</s>"})
    longer = vs.extend(base, special_tokens=["<new>"], roles={"bos": "<new>"})
    assert longer.chat_template == base.chat_template
    assert longer.post_processor == base.post_processor
    assert (longer.config["bos_token"], longer.config["eos_token"]) == ("<new>", "</s>")


def test_an_added_token_becomes_special_in_its_place() -> None:
    """It is no news that it is there; that it is special is."""
    base = llama3_like()
    ordinary = AddedToken("<x>", base.row_count, special=False)
    base = replace(base, added_tokens=(*base.added_tokens, ordinary))
    asked = NamedTokens(special_tokens={"<x>": "", "<s>": ""})
    longer, rows = with_special_tokens(base, asked)
    assert [(row.token, row.how) for row in rows] == [("<x>", "promoted"), ("<s>", "present")]
    assert longer.added_tokens == (base.added_tokens[0], replace(ordinary, special=True))
    with pytest.raises(ValueError, match=r"'<x>', which is no special token"):
        with_special_tokens(base, NamedTokens(roles={"pad": "<x>"}))


def test_descriptions_of_earlier_steps_stay() -> None:
    """Each token has its own."""
    base = vs.extend(llama3_like(), special_tokens={"<a>": "the first"})
    longer = vs.extend(base, special_tokens={"<b>": "the second"})
    told = {"<a>": "the first", "<b>": "the second"}
    assert longer.config["special_token_descriptions"] == told


def test_a_word_whose_space_goes_elsewhere_becomes_an_added_token() -> None:
    """Its chain of merges is right, and in running text an earlier merge takes the space."""
    base = llama3_like()
    joins = ("a", "Ġ")
    vocab = {**base.model.vocab, "aĠ": base.row_count}
    base = replace(
        base,
        model=BpeModel(vocab, (joins, *base.model.merges)),
        pre_tokenizer={
            "type": "ByteLevel",
            "add_prefix_space": False,
            "trim_offsets": True,
            "use_regex": False,
        },
    )
    [row] = add_words(base, NamedTokens(words=("heaters",))).rows
    assert (row.how, row.reason) == ("added", "other tokens take a part of it in running text")
    assert row.alone == 1


def test_a_word_that_cannot_be_joined_leaves_nothing() -> None:
    """Merges made on the way are taken back, and the next words do not know of it."""
    model = BpeModel({"a": 0, "b": 1, "c": 2, "d": 3}, ())
    forbidden = frozenset(["ab", "bcdx"])
    chains, fresh = (MergeChains(model, forbidden) for _ in range(2))
    assert chains.add("abcdx") is None  # "dx" and "cdx" come first
    assert (chains.tokens, chains.merges) == ([], [])
    assert chains.add("cd") == fresh.add("cd")
    assert chains.add("cdx") == fresh.add("cdx")
    assert (chains.tokens, chains.merges) == (fresh.tokens, fresh.merges)


def test_free_ids_are_given_once() -> None:
    """To tokens of merges first, then to added tokens."""
    base = llama3_like()
    free = range(base.row_count, base.row_count + 40)
    longer = add_words(base, NamedTokens(words=("heaters", "c++")), free_ids=free).tokenizer
    ids = [*longer.vocab.values(), *(token.id for token in longer.added_tokens)]
    assert len(set(ids)) == len(ids)


def wordpiece() -> AnyKind:
    """Lower-case, of the letters a and b."""
    backend = Backend(
        WordPiece({"[UNK]": 0, "a": 1, "b": 2, "##a": 3, "##b": 4}, unk_token="[UNK]")
    )
    backend.normalizer = BertNormalizer()
    backend.pre_tokenizer = BertPreTokenizer()
    return open_tokenizer(backend)


def test_an_added_word_of_a_lower_casing_model_is_found_in_any_case() -> None:
    """It is looked for in the text as it is normalized."""
    longer = add_words(wordpiece(), NamedTokens(words=("Ab",), words_as="added-tokens")).tokenizer
    ids, _ = longer.encode_batch(["ab AB Ab"], parse_special=True)
    assert len(ids) == 3


def test_a_word_of_one_character_is_no_missing_character() -> None:
    """It was asked for; the characters of other words were not."""
    words = add_words(wordpiece(), NamedTokens(words=("क",)))
    assert (words.n_tokens, words.n_characters) == (1, 0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"roles": {"eos": "<x>"}}, "which is no special token of"),
        ({"roles": {"boss": "<s>"}}, "'boss' is no role"),
        ({"roles": {"eos": ""}}, "the role eos is given no token"),
        ({"special_tokens": ["a"]}, "is one byte"),
        ({"special_tokens": [""]}, "is empty"),
        ({"words": ["day"], "word_forms": "all"}, "word_forms is 'all'"),
        ({"words": ["day"], "words_as": "pieces"}, "words_as is 'pieces'"),
        ({"words": ["  "]}, "holds no word"),
        ({"words": ["day"], "method": "regen"}, "method is 'regen', which says how"),
        ({"words": ["day"], "n_tokens": 5}, "give a corpus"),
        ({}, "n_tokens is 0"),
    ],
)
def test_what_is_refused(options: dict[str, Any], message: str) -> None:
    """Before any work, in one sentence."""
    with pytest.raises(ValueError, match=message):
        vs.extend(llama3_like(), **options)


def test_a_list_of_words(tmp_path: Path) -> None:
    """One a line, each once, spaces and empty lines left out; a BOM is no letter."""
    file = tmp_path / "words.txt"
    file.write_bytes("\ufeffday\r\n\n  night \nday\n".encode())
    assert read_words(file) == read_words(str(file)) == ("day", "night")
    file.write_bytes(b"d\xff")
    with pytest.raises(ValueError, match=r"words.txt is not UTF-8 \(byte 1\)"):
        read_words(file)
