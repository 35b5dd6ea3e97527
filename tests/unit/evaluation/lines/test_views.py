"""Views of a report: the lines that are shown, and vocabularies."""

from __future__ import annotations

from tokenizers import Tokenizer as Backend
from tokenizers import models, normalizers, pre_tokenizers

from vocabshift.evaluation.lines.views import choose_lines, language_name, token_views
from vocabshift.report.html.page import languages_html

FITTING = "x" * 60


def test_parallel_texts_show_the_same_lines() -> None:
    heads = {
        "en": ["short", FITTING, FITTING, "x" * 300, FITTING],
        "hi": [FITTING, "y" * 300, FITTING, FITTING, FITTING],
    }
    assert choose_lines(heads, 2) == {"en": [FITTING] * 2, "hi": [FITTING] * 2}
    numbered = {name: [f"{i}{line}" for i, line in enumerate(of)] for name, of in heads.items()}
    shown = choose_lines(numbered, 3)  # lines 2 and 4 fit, line 0 is the shortest of the others
    assert [[line[0] for line in lines] for lines in shown.values()] == [["0", "2", "4"]] * 2


def test_other_texts_show_the_first_lines_that_read_well() -> None:
    shown = choose_lines({"en": ["a", FITTING + "1", FITTING + "2", FITTING + "3"], "hi": ["b"]}, 2)
    assert shown == {"en": [FITTING + "1", FITTING + "2"], "hi": ["b"]}
    assert choose_lines({"en": ["z" * 900]}, 2) == {"en": ["z" * 400]}
    assert choose_lines({"en": ["a", "b"], "hi": ["c"]}, 5) == {"en": ["a", "b"], "hi": ["c"]}


def test_views_hold_every_tokenizer_and_its_vocabulary(make_tokenizer) -> None:
    tokenizers = {"a": make_tokenizer(), "b": make_tokenizer([("a", "b")])}
    views = token_views(tokenizers, {"en": ["ab cab"], "ks_Arab": ["كٲشُر"]}, n_lines=1)
    assert ["English", "Kashmiri (Arab)"] == [view.name for view in views.languages]
    (line,) = views.languages[0].lines["b"]
    assert [(token.start, token.end) for token in line.tokens] == [
        *((0, 2), (2, 3), (3, 4), (4, 6))
    ]
    assert {"a": 256, "b": 257} == {
        name: sum(part.tokens for part in parts) for name, parts in views.vocabularies.items()
    }
    assert "1 line of each language" == views.text


def test_other_kinds_have_views_too(make_tokenizer) -> None:
    backend = Backend(models.WordPiece({"[UNK]": 0, "mill": 1, "##s": 2}, unk_token="[UNK]"))
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.add_special_tokens(["[CLS]"])
    views = token_views({"words": backend, "bytes": make_tokenizer()}, {"en": ["mills नदी"]})
    (line,) = views.languages[0].lines["words"]
    assert [(token.id, token.unknown) for token in line.tokens] == [
        *((1, False), (2, False), (0, True))
    ]
    found = {part.name: part.tokens for part in views.vocabularies["words"]}
    assert found == {"special tokens": 2, "Latin": 2}
    html = languages_html(views.languages)
    assert "× the fewest" not in html  # few tokens for what cannot be said are no merit
    backend.normalizer = normalizers.Lowercase()
    shouted = token_views({"words": backend, "bytes": make_tokenizer()}, {"en": ["MILL"]})
    (line,) = shouted.languages[0].lines["words"]
    assert (True, False) == (line.lost, line.tokens[0].unknown)
    assert "× the fewest" not in languages_html(shouted.languages)  # nor are capitals
    assert not shouted.languages[0].lines["bytes"][0].lost


def test_labels_that_are_no_language_stay() -> None:
    assert ["my corpus", "Hindi", "all"] == [language_name(x) for x in ("my corpus", "hi", "all")]
