"""Words by name: every word of a list becomes one token, in a tokenizer of any kind.

Owns where a word is one token, what it becomes, and what is reported of it. In running text a word
follows a space, and most vocabularies hold that space in the word's token; the same word without a
space before it is another token. Both are added, or one of them.

A BPE tokenizer builds a word by a chain of merges after all others (`one_token`); Unigram and
WordPiece vocabularies get an entry (`tokenizer.unigram`). Where that is impossible, or on request,
the word becomes an added token: it is cut out of the text before the pre-tokenizer sees it, even
inside of other words. Every word is then encoded, alone and after a space: one that is not one
token all the same becomes an added token too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, pairwise
from itertools import count as count_from

from vocabshift.extension.continued import Additions, extended
from vocabshift.extension.named_tokens import AnyKind, NamedTokens
from vocabshift.extension.one_token import BEFORE, Forms, MergeChains, forms_of
from vocabshift.tokenizer.added_tokens import AddedToken
from vocabshift.tokenizer.any_tokenizer import AnyTokenizer
from vocabshift.tokenizer.tokenizer import Tokenizer
from vocabshift.tokenizer.unigram import grown, scored

HOW: Mapping[str, str] = {
    "present": "already one token",
    "merges": "merges over the tokens that it had",
    "entry": "an entry of the vocabulary",
    "added": "an added token",
    "refused": "nothing",
}
"""What became of a word -> the same, in words."""


@dataclass(frozen=True)
class WordRow:
    """One word of the list; counts are of tokens."""

    word: str
    how: str  # one of HOW
    reason: str  # why it is an added token, or nothing
    ids: tuple[int, ...]  # of its tokens: without a space before it, and with one
    alone_before: int  # as the whole text
    alone: int
    spaced_before: int  # after a word and a space
    spaced: int
    new_tokens: tuple[int, ...]  # ids that were added for it, those in between included


@dataclass(frozen=True)
class Words:
    """A tokenizer with words added, and what became of each."""

    tokenizer: AnyKind
    rows: tuple[WordRow, ...]
    n_tokens: int  # new tokens of all kinds
    n_between: int  # of these, tokens that only chains of merges need
    n_characters: int  # of these, characters that the vocabulary lacked


def add_words(tokenizer: AnyKind, named: NamedTokens, *, free_ids: Iterable[int] = ()) -> Words:
    """Add the words of `named`; the ids and the merges that there are keep their places.

    New ids come after all others, or are taken from `free_ids` first (BPE alone). The same list
    gives the same tokenizer. ValueError for a BPE tokenizer that marks the parts of words, unless
    words become added tokens.
    """
    if not named.words:
        return Words(tokenizer, (), 0, 0, 0)
    marks = isinstance(tokenizer, Tokenizer) and (
        tokenizer.model.continuing_subword_prefix or tokenizer.model.end_of_word_suffix
    )
    if marks and named.words_as == "tokens":
        raise ValueError(
            f"{tokenizer.name} marks the parts of words ({marks!r}); words can be tokens of "
            "byte-level and SentencePiece BPE, Unigram and WordPiece tokenizers; give words_as "
            "'added-tokens'"
        )
    added = {token.content for token in tokenizer.added_tokens}
    words = [word for word in named.words if word not in added]
    forms = {word: forms_of(tokenizer, word) for word in words}
    before = _encoded(tokenizer, named.words)
    free, obstacles = list(free_ids), {w: f.obstacle for w, f in forms.items() if f.obstacle}
    if named.words_as == "added-tokens":
        obstacles |= {w: "" for w in words if not len(before[w][0]) == len(before[w][1]) == 1}
    while True:
        n_obstacles = len(obstacles)
        draft = _draft(tokenizer, named.word_forms, forms, obstacles, free)
        after = _encoded(draft.tokenizer, named.words)
        failed = [
            word
            for word in words
            if word not in obstacles
            and not _is_one_token(draft, named.word_forms, forms[word], *after[word])
        ]
        obstacles |= dict.fromkeys(failed, "other tokens take a part of it in running text")
        if len(obstacles) == n_obstacles:
            break

    added_ids = {token.content: token.id for token in draft.tokenizer.added_tokens}

    def row(word: str) -> WordRow:
        if word in added or word in obstacles:
            ids = {word: added_ids.get(word, -1)}
        else:
            wanted = forms[word].wanted(named.word_forms)
            ids = {string: draft.tokenizer.vocab[string] for string in wanted}
        return _row(word, draft, ids, (before[word], after[word]))

    return Words(
        draft.tokenizer,
        tuple(map(row, named.words)),
        len(draft.new),
        len(draft.between),
        len(draft.characters),
    )


@dataclass(frozen=True)
class _Draft:
    """A tokenizer with the words added, not yet tried."""

    tokenizer: AnyKind
    new: Mapping[str, int]  # new tokens of the model and added tokens, with their ids
    of_word: Mapping[str, tuple[str, ...]]
    """Word -> tokens that were added for it; there is no such word if nothing had to be done."""
    between: frozenset[str]
    characters: frozenset[str]
    obstacles: Mapping[str, str]  # word -> why it is no token of the model
    refused: Mapping[str, str]  # word -> why it cannot be an added token either


def _draft(
    tokenizer: AnyKind,
    which: str,
    forms: Mapping[str, Forms],
    obstacles: dict[str, str],
    free_ids: Sequence[int],
) -> _Draft:
    """Add all words without an obstacle to the model, and the others as added tokens."""
    wanted = {word: form.wanted(which) for word, form in forms.items() if word not in obstacles}
    made: dict[str, tuple[str, ...]] = {}
    longer: AnyKind
    if isinstance(tokenizer, Tokenizer):
        chains = MergeChains(tokenizer.model, _forbidden(tokenizer))
        for word, strings in wanted.items():
            links = [chains.add(string) for string in strings]
            found = [link for link in links if link is not None]
            if len(found) < len(links):
                obstacles[word] = "its merges would make an added token"
            if any(link.tokens or link.merges for link in found):
                made[word] = tuple(token for link in found for token in link.tokens)
        tokens = tuple(chains.tokens)
        learned = Additions(tokens, tuple(chains.merges))
        longer = extended(tokenizer, learned, free_ids=free_ids) if made else tokenizer
    else:
        vocab = tokenizer.vocab
        made = {w: tuple(s for s in strings if s not in vocab) for w, strings in wanted.items()}
        made = {word: strings for word, strings in made.items() if strings}
        entries = scored(tokenizer, chain.from_iterable(made.values()))
        longer, tokens = (grown(tokenizer, entries) if entries else tokenizer), tuple(entries)
    asked = set(chain.from_iterable(wanted.values()))
    characters = {token for token in tokens if len(token) == 1} - asked
    ids = {token: longer.vocab[token] for token in tokens}
    taken = set(ids.values())
    unused = [token_id for token_id in free_ids if token_id not in taken]
    result, contents, refused = _with_added(longer, list(obstacles), unused)
    made |= {word: (word,) if word in contents else () for word in obstacles}
    return _Draft(
        result,
        ids | contents,
        made,
        frozenset(tokens) - asked - characters,
        frozenset(characters),
        dict(obstacles),
        refused,
    )


def _with_added(
    tokenizer: AnyKind, words: Sequence[str], free_ids: Sequence[int]
) -> tuple[AnyKind, dict[str, int], dict[str, str]]:
    """The tokenizer with words as added tokens, these with their ids, and those that cannot be."""
    refused: dict[str, str] = {}
    ids = chain(free_ids, count_from(tokenizer.row_count))
    tokens: list[AddedToken] = []
    # Subtle: WordPiece's are matched in the text as it is normalized, lower-case for many models.
    normalized = tokenizer.kind == "WordPiece"
    for word in words:
        token_id = tokenizer.vocab.get(word)
        if token_id is not None and tokenizer.token_bytes.get(token_id) != word.encode():
            refused[word] = "the vocabulary spells another text like this"
            continue
        token_id = next(ids) if token_id is None else token_id
        tokens.append(AddedToken(word, token_id, special=False, normalized=normalized))
    contents = {t.content: t.id for t in tokens if t.content not in tokenizer.vocab}
    if not tokens:
        return tokenizer, {}, refused
    if isinstance(tokenizer, Tokenizer):
        longer = replace(tokenizer, added_tokens=(*tokenizer.added_tokens, *tokens))
        return longer, contents, refused
    return grown(tokenizer, added=tokens), contents, refused


def _forbidden(tokenizer: Tokenizer) -> frozenset[str]:
    """What no merge may make: ordinary text must yield no added token, byte or unknown token."""
    added = (token.content for token in tokenizer.added_tokens)
    return frozenset((*added, *tokenizer.byte_pieces(), tokenizer.unk_token or ""))


def _encoded(
    tokenizer: AnyTokenizer, words: Sequence[str]
) -> dict[str, tuple[list[int], list[int]]]:
    """By word, its ids as the whole text, and after another word and a space."""
    texts = [text for word in words for text in (word, f"{BEFORE} {word}")]
    ids, offsets = tokenizer.encode_batch([BEFORE, *texts], parse_special=False)
    rows = [ids[start:end].tolist() for start, end in pairwise(offsets.tolist())]
    first, rest = rows[0], iter(rows[1:])
    return {word: (next(rest), next(rest)[len(first) :]) for word in words}


def _is_one_token(
    draft: _Draft, which: str, forms: Forms, alone: Sequence[int], spaced: Sequence[int]
) -> bool:
    """Whether a word is one token wherever it is to be."""
    vocab, wanted = draft.tokenizer.vocab, forms.wanted(which)
    if forms.bare in wanted and list(alone) != [vocab.get(forms.bare)]:
        return False
    after_space = list(spaced)[1:] if forms.space_apart else list(spaced)
    return forms.spaced not in wanted or after_space == [vocab.get(forms.spaced)]


def _row(
    word: str,
    draft: _Draft,
    ids: Mapping[str, int],
    encoded: Sequence[tuple[list[int], list[int]]],
) -> WordRow:
    """What became of a word; `ids`: its tokens, as they would be; `encoded`: before, after."""
    before, after = encoded
    reason, tokens = draft.obstacles.get(word, ""), draft.of_word.get(word, ())
    how = "merges" if draft.tokenizer.kind == "BPE" else "entry"
    if word in draft.refused:
        how, ids = "refused", {}
        reason = f"{reason}; {draft.refused[word]}" if reason else draft.refused[word]
    elif word in draft.obstacles:
        how = "added"
    elif word not in draft.of_word and not any(string in draft.new for string in ids):
        how = "present"
    return WordRow(
        word=word,
        how=how,
        reason=reason,
        ids=tuple(ids.values()),
        alone_before=len(before[0]),
        alone=len(after[0]),
        spaced_before=len(before[1]),
        spaced=len(after[1]),
        new_tokens=tuple(sorted(draft.new[token] for token in tokens)),
    )
