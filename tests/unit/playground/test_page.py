"""What the page gets to know of a text and of a token."""

from __future__ import annotations

import json

import pytest

from vocabshift.playground.page import MOST_SHOWN, Playground, Sample, samples_of

KA = "\u0915"
A_B = 256 + 3  # ids of the tiny BPE's products, in order of their merges
FIRST_TWO, KA_ID, A_SPACE, SPECIAL = 256, 257, 258, 260


def test_a_text_by_hand(playground: Playground) -> None:
    """Ka torn from its sign, a superword, and a letter that two of the three do not know."""
    found = playground.tokenize(f"{KA}\u093ea b")
    tiny = found["tokenizers"][0]
    counts = [found[key] for key in ("n_characters", "n_bytes", "n_words", "n_surrogates")]
    assert [5, 9, 2, 0] == counts
    assert [0, 6, 7, 8, 9] == found["borders"]
    assert (tiny["ids"][:2], tiny["ids"][-1]) == ([KA_ID, FIRST_TWO], A_B)
    assert [3, 5, 6, 9] == tiny["ends"]
    assert [4, 6, 2, 1] == tiny["marks"]  # cuts a syllable; and a character; a character; superword
    assert (4, None, True) == (tiny["n_tokens"], tiny["starts"], tiny["exact"])
    assert "Ġ" in tiny["spelled"][A_B]


def test_words_without_spaces_have_starts(playground: Playground) -> None:
    """WordPiece drops the space: a token does not begin where the one before ends."""
    found = playground.tokenize("ab a")["tokenizers"][2]
    assert ([1, 2, 1], [0, 1, 3], [1, 2, 4]) == (found["ids"], found["starts"], found["ends"])


def test_text_that_is_lost(playground: Playground) -> None:
    """Few tokens for it are no merit; the others give it back."""
    for text, lost in (("ab", [False] * 3), (f"{KA} a", [False, True, True])):
        found = playground.tokenize(text)["tokenizers"]
        assert lost == [each["lost"] for each in found]


def test_special_tokens_are_read_or_not(playground: Playground) -> None:
    """As the switch says, and not for the next request."""
    texts = [
        playground.tokenize("a<s>", parse_special=parse)["tokenizers"][0]["n_tokens"]
        for parse in (True, False, True)
    ]
    assert [2, 4, 2] == texts


def test_a_long_text_is_counted_and_its_beginning_shown(playground: Playground) -> None:
    """A megabyte: the answer stays small, and what is shown is as in the whole text."""
    text = "a b" * 340_000
    found = playground.tokenize(text)
    assert (len(text), False) == (found["n_characters"], found["is_whole"])
    assert len(found["shown"]) <= MOST_SHOWN
    tiny = found["tokenizers"][0]
    assert 340_000 == tiny["n_tokens"]
    assert [A_B] * len(tiny["ids"]) == tiny["ids"]
    n_bytes = len(found["shown"].encode())
    assert n_bytes == tiny["ends"][-1] or n_bytes - tiny["ends"][-1] < 3
    assert len(json.dumps(found)) < 1_000_000


@pytest.mark.parametrize("n_characters", [MOST_SHOWN - 1, MOST_SHOWN, MOST_SHOWN + 1, 30_000])
def test_around_the_limit(playground: Playground, n_characters: int) -> None:
    """No token reaches beyond what is shown, and the last reaches its end."""
    found = playground.tokenize(KA * n_characters)
    assert (n_characters <= MOST_SHOWN) == found["is_whole"]
    for row in found["tokenizers"][:1]:
        assert len(found["shown"].encode()) == row["ends"][-1]
    assert n_characters == found["tokenizers"][0]["n_tokens"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n\n",
        "\0",
        "<script>alert(1)</script>",
        "\u202eabc\u2066",
        "\ufeff\u2028",
        "🙂\u0301" * 50,
        "\U0010ffff",
    ],
)
def test_hostile_text_is_only_text(playground: Playground, text: str) -> None:
    """It comes back as it is, and every token lies in it."""
    found = playground.tokenize(text)
    assert text == found["shown"]
    for row in found["tokenizers"]:
        assert sorted(row["ends"]) == row["ends"]
        assert all(0 <= end <= len(text.encode()) for end in row["ends"])
    json.dumps(found, ensure_ascii=False).encode()


def test_lone_surrogates_become_replacement_characters(playground: Playground) -> None:
    """JSON can carry them, UTF-8 cannot."""
    found = playground.tokenize(json.loads(r'"a\ud800b\udfff"'))
    assert ("a\ufffdb\ufffd", 2) == (found["shown"], found["n_surrogates"])


def test_the_tree_of_a_token_by_hand(playground: Playground) -> None:
    """Ka: two bytes by rank 0, then the third by rank 1; parts of characters as bytes."""
    found = playground.token(0, KA_ID)
    assert "merges" == found["how"]
    nodes = found["nodes"]
    assert [KA_ID, FIRST_TWO] == [node["id"] for node in nodes[:2]]
    assert ["e0a495", "e0a4", "95", "e0", "a4"] == [node["bytes"] for node in nodes]
    assert [1, 0, None, None, None] == [node["rank"] for node in nodes]
    assert [(1, 2), (3, 4)] == [(node["left"], node["right"]) for node in nodes[:2]]


@pytest.mark.parametrize(
    ("panel", "token_id", "how"),
    [
        (0, 65, "byte"),
        (0, SPECIAL, "added"),
        (1, 0, "unknown"),
        (1, 3, "score"),
        (2, 0, "unknown"),
        (2, 2, "prefix"),
    ],
)
def test_what_stands_in_a_trees_place(
    playground: Playground, panel: int, token_id: int, how: str
) -> None:
    """One node, and why there is no tree."""
    found = playground.token(panel, token_id)
    assert (how, 1) == (found["how"], len(found["nodes"]))
    assert how != "score" or found["score"] == -4.5
    assert how != "prefix" or found["prefix"] == "##"


def test_what_is_not_there(playground: Playground) -> None:
    """An id without a token, a tokenizer without a panel."""
    for panel, token_id in ((0, 10_000), (0, -1), (7, 0), (-1, 0)):
        with pytest.raises(LookupError, match=r"there is no|no token has"):
            playground.token(panel, token_id)


def test_samples_go_by_the_name_of_their_language() -> None:
    """A text in several scripts comes first; what is no language keeps its label."""
    hindi, code = Sample("Hindi", "hi", "one\ntwo"), Sample("Code", "", "x = 1")
    texts = {"hin": ["one", "two"], "code": ["x = 1"]}
    assert [code, hindi] == samples_of(texts)
    assert [Sample("Several scripts", "", "mixed"), code, hindi] == samples_of(texts, "mixed")
