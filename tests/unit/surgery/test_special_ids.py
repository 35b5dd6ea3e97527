"""Special tokens: matched by text, then by role, else appended; nothing is renumbered."""

from __future__ import annotations

import pytest

from vocabshift.errors import InvalidTokenizerError, VocabMismatchError
from vocabshift.surgery.special_ids import match_specials
from vocabshift.tokenizer.added_tokens import AddedToken
from vocabshift.tokenizer.components import bos_template, byte_level_processor


def _added(tokenizer) -> dict[str, int]:
    return {token.content: token.id for token in tokenizer.added_tokens}


def test_lacking_tokens_are_appended(make_byte_level) -> None:
    """They come behind the new vocabulary, which keeps its ids."""
    old = make_byte_level("ab", specials=("<s>", "</s>", "<|reserved|>"))
    new = make_byte_level("ab", "cd", "ef")
    found = match_specials(old, new)
    assert {"<s>": 259, "</s>": 260, "<|reserved|>": 261} == _added(found.tokenizer)
    assert {257: 259, 258: 260, 259: 261} == found.old_to_new
    assert dict(new.model.vocab) == dict(found.tokenizer.model.vocab)


def test_same_text_goes_before_role(make_byte_level) -> None:
    """The new tokenizer's eos is the old one's <b>, whatever the old one ends texts with."""
    old = make_byte_level(specials=("<a>", "<b>"), config={"eos_token": "<a>"})
    new = make_byte_level(specials=("<b>",), config={"eos_token": "<b>"})
    found = match_specials(old, new)
    assert {"<b>": 256, "<a>": 257} == _added(found.tokenizer)
    assert {256: 257, 257: 256} == found.old_to_new
    assert (256, 257) == found.by_role["eos"]
    assert "<a>" == found.tokenizer.config["eos_token"]  # what the model was trained to say


def test_a_token_of_the_same_text_is_not_moved_by_its_role(make_byte_level) -> None:
    """Both have "<s>", and the new tokenizer begins texts with "<t>": "<s>" stays "<s>"."""
    old = make_byte_level(specials=("<s>",), config={"bos_token": "<s>"})
    new = make_byte_level(specials=("<s>", "<t>"), config={"bos_token": "<t>"})
    found = match_specials(old, new)
    assert {256: 256} == found.old_to_new
    assert {"<s>": 256, "<t>": 257} == _added(found.tokenizer)


def test_same_role_under_another_name(make_byte_level) -> None:
    """Its row is taken over, and the old name is not needed any more."""
    old = make_byte_level(
        specials=("<s>", "</s>"), config={"bos_token": "<s>", "eos_token": "</s>"}
    )
    new = make_byte_level(specials=("<|end|>",), config={"eos_token": "<|end|>"})
    found = match_specials(old, new)
    assert {"<|end|>": 256, "<s>": 257} == _added(found.tokenizer)
    assert {256: 257, 257: 256} == found.old_to_new
    assert {"bos_token": "<s>", "eos_token": "<|end|>"} == dict(found.tokenizer.config)


def test_one_old_token_for_several_new_ones(make_byte_level) -> None:
    """GPT-2 begins, ends and pads with one token: each new token of such a role has its row."""
    end = "<|endoftext|>"
    roles = dict.fromkeys(("bos_token", "eos_token"), end)
    old = make_byte_level(specials=(end,), config=roles)
    new = make_byte_level(
        specials=("<s>", "</s>"), config={"bos_token": "<s>", "eos_token": "</s>"}
    )
    found = match_specials(old, new)
    assert {"<s>": 256, "</s>": 257} == _added(found.tokenizer)
    assert {256: 256, 257: 256} == found.new_to_old
    assert {"eos": (256, 257), "bos": (256, 256)} == found.by_role


def test_one_new_token_for_several_old_ones(make_byte_level) -> None:
    """It can have one row: that of the old eos. The others are appended."""
    old = make_byte_level(
        specials=("<s>", "</s>"), config={"bos_token": "<s>", "eos_token": "</s>"}
    )
    end = "<|endoftext|>"
    new = make_byte_level(specials=(end,), config={"bos_token": end, "eos_token": end})
    found = match_specials(old, new)
    assert {end: 256, "<s>": 257} == _added(found.tokenizer)
    assert {257: 256, 256: 257} == found.old_to_new
    assert "<s>" == found.tokenizer.config["bos_token"]


def test_roles_that_only_the_model_names(make_byte_level) -> None:
    """A tokenizer.json alone has no roles; the model's config knows its eos."""
    old = make_byte_level(specials=("</s>",))
    new = make_byte_level(specials=("<|end|>",), config={"eos_token": "<|end|>"})
    found = match_specials(old, new, {"eos": 256})
    assert {"<|end|>": 256} == _added(found.tokenizer)
    assert (256, 256) == found.by_role["eos"]


def test_token_learnt_as_plain_text_becomes_special(make_byte_level) -> None:
    """It has an id already, which it keeps."""
    old, new = make_byte_level(specials=("<s>",)), make_byte_level("<s>")
    found = match_specials(old, new)
    assert {"<s>": new.model.vocab["<s>"]} == _added(found.tokenizer)
    assert [new.model.vocab["<s>"]] == found.tokenizer.backend.encode("<s>").ids


def test_only_special_or_spoken_of_tokens_are_kept(make_byte_level) -> None:
    """Runs of spaces cut text and stay behind; a tool call in the template is needed."""
    old = make_byte_level(
        added_tokens=(
            AddedToken("    ", 256, special=False),
            AddedToken("<tool>", 257, special=False),
        ),
        chat_template="{% if x %}    <tool>{% endif %}",
    )
    assert {"<tool>": 256} == _added(match_specials(old, make_byte_level()).tokenizer)


def test_template_moves_with_its_ids(make_byte_level) -> None:
    """The enlarged tokenizer begins texts as the old one did, through ids of its own."""
    old = make_byte_level(
        specials=("<s>",),
        config={"bos_token": "<s>"},
        post_processor=byte_level_processor(("<s>", 256)),
    )
    for own in (None, byte_level_processor(None)):
        new = make_byte_level("ab", post_processor=own)
        tokenizer = match_specials(old, new).tokenizer
        assert [257, 256] == tokenizer.backend.encode("ab").ids
        assert [256] == tokenizer.backend.encode("ab", add_special_tokens=False).ids


def test_own_template_stays(make_byte_level) -> None:
    """A new tokenizer that adds special tokens already knows best."""
    old = make_byte_level(specials=("<s>",), post_processor=bos_template("<s>", 256))
    own = bos_template("<t>", 256)
    new = make_byte_level(specials=("<t>",), post_processor=own)
    assert own == match_specials(old, new).tokenizer.post_processor


def test_template_under_a_new_name(make_byte_level) -> None:
    """Where the bos has another name, template and chat template say that name."""
    old = make_byte_level(
        specials=("<s>",),
        config={"bos_token": "<s>"},
        post_processor=bos_template("<s>", 256),
        chat_template="<s>{{ messages }}",
    )
    new = make_byte_level("ab", specials=("<t>",), config={"bos_token": "<t>"})
    tokenizer = match_specials(old, new).tokenizer
    assert [257, 256] == tokenizer.backend.encode("ab").ids
    assert "<t>{{ messages }}" == tokenizer.chat_template


def test_own_chat_template_stays(make_byte_level) -> None:
    """It speaks of tokens that the old tokenizer may not have; the old one fills a gap alone."""
    old = make_byte_level(specials=("<s>",), chat_template="<s>{{ messages }}")
    new = make_byte_level(specials=("<t>",), chat_template="<t>{{ messages[0] }}")
    assert "<t>{{ messages[0] }}" == match_specials(old, new).tokenizer.chat_template
    bare = make_byte_level(specials=("<s>",))
    assert "<s>{{ messages }}" == match_specials(old, bare).tokenizer.chat_template


def test_facts_about_the_model_stay_with_it(make_byte_level) -> None:
    """Its longest text, for one; a new tokenizer that says no limit does not lift it."""
    old = make_byte_level(config={"model_max_length": 4096, "padding_side": "left"})
    new = make_byte_level(config={"model_max_length": int(1e30), "padding_side": "right"})
    config = match_specials(old, new).tokenizer.config
    assert {"model_max_length": 4096, "padding_side": "right"} == dict(config)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *(("model_max_length", value) for value in ("512", [512], True)),
        *(("model_input_names", value) for value in (5, None)),
    ],
)
def test_facts_of_another_type_are_refused(make_byte_level, key, value) -> None:
    """transformers would stop at them with a TypeError, after the model was written."""
    old, new = make_byte_level(config={key: value}), make_byte_level()
    for pair in ((old, new), (new, old)):
        with pytest.raises(InvalidTokenizerError, match=rf"{key} is .* in tokenizer_config\.json"):
            match_specials(*pair)


def test_a_longest_text_that_nobody_knows(make_byte_level) -> None:
    unknown = make_byte_level(config={"model_max_length": None})
    assert match_specials(unknown, make_byte_level()).tokenizer.config["model_max_length"] is None


def test_other_processors_are_refused(make_byte_level) -> None:
    """What cannot be moved is said, not dropped."""
    bert = {"type": "BertProcessing", "sep": ["<s>", 256], "cls": ["<s>", 256]}
    old = make_byte_level(specials=("<s>",), post_processor=bert)
    with pytest.raises(VocabMismatchError, match="BertProcessing"):
        match_specials(old, make_byte_level())


def test_tokens_that_a_processor_asks_for_by_name(make_byte_level) -> None:
    """Gemma 3's asks its tokenizer for `boi_token`; names of tokens that are gone are left out."""
    config = {
        "image_token": "<img>",
        "boi_token": "<boi>",
        "eoi_token": {"content": "<boi>", "lstrip": False},  # as transformers 4 may write it
        "gone_token": "<gone>",
        "add_bos_token": True,
        "model_specific_special_tokens": {"image_token": "<img>", "gone_token": "<gone>"},
        "extra_special_tokens": ["<img>"],
    }
    old = make_byte_level(specials=("<img>", "<boi>"), config=config)
    new = make_byte_level("ab", config={"boi_token": "<own>"}, specials=("<own>",))
    found = dict(match_specials(old, new).tokenizer.config)
    assert {
        "image_token": "<img>",
        "boi_token": "<own>",
        "eoi_token": "<boi>",
        "model_specific_special_tokens": {"image_token": "<img>"},
    } == found
