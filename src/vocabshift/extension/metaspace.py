"""Continued BPE for SentencePiece BPE tokenizers in Hugging Face form ("▁" for the space).

Source: "Teaching Old Tokenizers New Words" (arXiv:2512.03989), section 3; adapting.md section 1.3.
A document is encoded as a whole, so what is counted is groups of tokens (`bpe.token_groups`), and
merges obey the rules that the model's own pieces were trained by. Characters that the vocabulary
lacks come first, the most frequent before the others, until the text is covered.

Where we differ from the paper's toolkit: the rules are read from the model where it is given, and
are SentencePiece's own (the prolonged sound mark goes with kana).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from vocabshift import _core
from vocabshift.bpe.components import SPACE
from vocabshift.bpe.pipeline import simple_normalizer
from vocabshift.bpe.sentencepiece_rules import SentencePieceRules
from vocabshift.bpe.token_groups import GroupCutter, require_metaspace
from vocabshift.bpe.tokenizer import Tokenizer
from vocabshift.errors import CorpusError
from vocabshift.extension.apply import extended
from vocabshift.extension.continued import TieBreak, learn
from vocabshift.extension.counted_text import Counted, CountedText
from vocabshift.extension.learned import Learned
from vocabshift.extension.training_base import TrainingBase
from vocabshift.text.corpus import Corpus
from vocabshift.text.counting import CorpusReader, Prepared
from vocabshift.text.documents import pack
from vocabshift.text.piece_characters import NEVER_IN_PIECES

Progress = Callable[[int, int | None], None]


class MetaspaceBase(TrainingBase):
    """A SentencePiece BPE tokenizer in the form that training needs."""

    def __init__(self, tokenizer: Tokenizer, rules: SentencePieceRules | None = None) -> None:
        super().__init__(tokenizer)
        self.cutter = GroupCutter(tokenizer, rules)
        self.names = self.cutter.names  # added tokens outside the vocabulary stand in text too
        self.places = {token: place for place, token in enumerate(self.names)}

    def forbidden(self) -> set[bytes]:
        """What no merge may make: bytes, the unknown token and added tokens."""
        return {token.encode() for token in self.cutter.unmergeable}


def learn_metaspace(
    base: Tokenizer,
    corpus: Corpus,
    *,
    n_tokens: int,
    min_frequency: int = 1,
    tie_break: TieBreak = "id",
    rules: SentencePieceRules | None = None,
    normalizer: str | None = None,
    add_characters: float | None = 0.9995,
    sampling_alpha: float | None = None,
    threads: int = 1,
    progress: Progress | None = None,
) -> Learned:
    """Up to `n_tokens` new tokens for `base`, those for missing characters not counted.

    Options are those of `count_metaspace` and `continued.learn`. Fewer tokens come back where no
    pair is left that occurs `min_frequency` times.
    """
    counted = count_metaspace(
        base,
        corpus,
        rules=rules,
        normalizer=normalizer,
        add_characters=add_characters,
        sampling_alpha=sampling_alpha,
        threads=threads,
        progress=progress,
    )
    return counted.learned(
        learn(
            counted.form,
            counted.text,
            n_tokens=n_tokens,
            tie_break=tie_break,
            min_frequency=min_frequency,
            threads=threads,
            progress=progress,
        )
    )


def count_metaspace(
    base: Tokenizer,
    corpus: Corpus,
    *,
    rules: SentencePieceRules | None = None,
    normalizer: str | None = None,
    add_characters: float | None = 0.9995,
    sampling_alpha: float | None = None,
    threads: int = 1,
    progress: Progress | None = None,
) -> Counted:
    """The groups of tokens of a corpus, after the characters that are missing were added.

    `rules` stand for those of the tokenizer's own model. `normalizer` (a Unicode form) runs before
    the tokenizer's own, which it keeps. `add_characters`: the share of the text's characters that
    the vocabulary is to hold, in (0, 1]; None adds none. The corpus is read twice. ValueError for
    a tokenizer that does not spell the space "▁"; CorpusError where nothing is left of a language
    when its text is normalized.
    """
    if add_characters is not None and not 0 < add_characters <= 1:
        raise ValueError(
            f"add_characters is {add_characters!r}; give the share of the text's characters that "
            "the vocabulary is to hold, above 0 and up to 1, or None"
        )
    require_metaspace(base)
    reader = CorpusReader(corpus, (), normalizer, (), sampling_alpha, by_language=True)
    found = _characters(base, reader, threads, progress)
    characters = _missing(base, found, add_characters) if add_characters is not None else ()
    form = MetaspaceBase(extended(base, Learned(characters, ())) if characters else base, rules)
    words = _core.WordCounter(_core.PreTokenizer([]), threads)
    for block in reader.read(progress):
        form.cutter.add_to(words, block, threads)
    rule = _core.MergeRule(pieces=form.cutter.rule, forbidden=form.forbidden())
    return Counted(form, CountedText(words, reader, None, rule), characters)


def _characters(
    base: Tokenizer, reader: CorpusReader, threads: int, progress: Progress | None
) -> Counter[str]:
    """Characters of the text as the tokenizer normalizes it, weighted, spaces as "▁"."""
    by_group: dict[int, Counter[str]] = {}
    is_simple = simple_normalizer(base.normalizer) is not None
    for block in reader.read(progress):
        counts = by_group.setdefault(block.group, Counter())
        for part in (block,) if is_simple else _normalized(base, block):
            points, times = _core.count_characters(part.data, part.starts, part.ends, threads)
            for point, count in zip(points.tolist(), times.tolist(), strict=True):
                counts[chr(point)] += count
    for counts in by_group.values():
        counts[SPACE] += counts.pop(" ", 0)
    _require_kept_text(base, reader, by_group)
    weights = reader.fixed_point_weights()
    total: Counter[str] = Counter()
    for group, counts in by_group.items():
        for character, count in counts.items():
            total[character] += count * weights[group]
    return total


def _normalized(base: Tokenizer, block: Prepared) -> list[Prepared]:
    normalize = base.backend.normalizer.normalize_str
    spans = zip(block.starts.tolist(), block.ends.tolist(), strict=True)
    texts = (normalize(str(block.data[start:end], "utf-8")).encode() for start, end in spans)
    return [
        Prepared(part.data, part.starts, part.ends, block.group) for part in pack(texts, "corpus")
    ]


def _require_kept_text(
    base: Tokenizer, reader: CorpusReader, by_group: dict[int, Counter[str]]
) -> None:
    labels = {group: reader.groups[group].language for group in by_group}
    kept = {
        labels[group]
        for group, counts in by_group.items()
        if any(character != SPACE and not character.isspace() for character in counts)
    }
    lost = dict.fromkeys(label for label in labels.values() if label not in kept)
    if lost:
        names = ", ".join("the text" if label is None else repr(label) for label in lost)
        raise CorpusError(
            f"the normalizer of {base.name} leaves nothing of {names}: no token can be learned "
            "from it; give text that the tokenizer keeps, or a tokenizer without that normalizer"
        )


def _missing(base: Tokenizer, found: Counter[str], coverage: float) -> tuple[str, ...]:
    """Characters to add, the most frequent first, equal ones by code point."""
    counted = {c: times for c, times in found.items() if c not in NEVER_IN_PIECES}
    known = base.model.vocab.keys() | {token.content for token in base.added_tokens}
    total = sum(counted.values())
    covered = sum(times for c, times in counted.items() if c in known)
    missing = sorted((-times, c) for c, times in counted.items() if c not in known)
    chosen: list[str] = []
    for negative, character in missing:
        if covered >= coverage * total:
            break
        chosen.append(character)
        covered -= negative
    return tuple(chosen)
