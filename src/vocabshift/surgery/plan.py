"""What is decided before anything is changed: every row, every id, of what new rows are made.

Owns the plan of one transfer, for a model in memory and a saved one alike. Writes nothing; "auto"
alone touches the model, and leaves it as it was.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from vocabshift.errors import VocabMismatchError
from vocabshift.models.folder import TransferReport
from vocabshift.models.tables import Matrices
from vocabshift.surgery import config_ids
from vocabshift.surgery import methods as init_context
from vocabshift.surgery import row_sources as plain_plan
from vocabshift.surgery import row_sources as token_map
from vocabshift.surgery import row_sources as transfer_map
from vocabshift.surgery import rows as resize
from vocabshift.surgery.checks import check_pad
from vocabshift.surgery.methods import AUTO, InitContext, InitSources, Score, candidates, prices
from vocabshift.surgery.overrides import read as read_overrides
from vocabshift.surgery.overrides import resolve as resolve_overrides
from vocabshift.surgery.row_sources import TokenMap
from vocabshift.surgery.special_ids import SpecialTokens, match_specials, roles_of_config
from vocabshift.tokenizer.id_map import TokenIdMap
from vocabshift.tokenizer.tokenizer import Tokenizer
from vocabshift.tokenizer.unigram_or_wordpiece import UnigramOrWordPieceTokenizer

# Ids that a wrapper's other embedders answer for: they lie behind the text's, at a fixed place.
#
# Owns the refusal of transfers that would change anything there. Gemma 3n embeds every id from its
# vision (then its audio) config's `vocab_offset` on with a small table of that part, and not with
# the text's row; new tokens that came to lie there would be taken for images. Knows nothing of
# rows.


def offsets_of(config: Any) -> dict[str, int]:
    """Name of a part of the config -> the first id that this part embeds."""
    parts = {name: part for name, part in vars(config).items() if not name.startswith("_")}
    found = {name: getattr(part, "vocab_offset", None) for name, part in parts.items()}
    return {name: offset for name, offset in found.items() if isinstance(offset, int)}


def check_offsets(config: Any, token_map: TokenMap, rows: int, n_rows: int) -> None:
    """VocabMismatchError where tokens behind a `vocab_offset`, or the number of rows, change.

    `rows`, `n_rows`: of the embeddings before and after (the last id ends an audio's padding).
    """
    offsets = offsets_of(config)
    if not offsets:
        return
    first = min(offsets.values())
    copied_from, copied_to = token_map.copied_from, token_map.copied_to
    moved = copied_from != copied_to
    wrong = [
        *copied_to[moved & ((copied_to >= first) | (copied_from >= first))].tolist(),
        *token_map.made[token_map.made >= first].tolist(),
    ]
    old_ids = token_map.old_ids
    lost = np.setdiff1d(old_ids[old_ids >= first], copied_from).tolist()
    reasons = []
    if wrong:
        reasons.append(f"{len(wrong)} tokens would move there or away, such as new id {wrong[0]}")
    if lost:
        reasons.append(f"{len(lost)} tokens there would be gone, such as old id {lost[0]}")
    if n_rows != rows:
        reasons.append(f"the rows would become {n_rows} instead of {rows}")
    if reasons:
        raise VocabMismatchError(
            f"this model embeds the ids from {first} on by its {' and '.join(offsets)} "
            f"(vocab_offset), and {'; '.join(reasons)}. Give a tokenizer that has all tokens from "
            f"{first} on under the same ids and its own below (as many tokens removed as added), "
            "or transfer the text model alone"
        )


# ---


@dataclass(frozen=True, eq=False)
class Method:
    """How new rows are made, as the caller says it."""

    init: str
    seed: int
    sources: InitSources
    score: Score | None
    overrides: Mapping[str, Any]  # as the user wrote them


@dataclass(frozen=True, eq=False)
class Plan:
    """Everything that is decided before anything is changed."""

    tokenizer: Tokenizer
    specials: SpecialTokens
    mapping: token_map.TokenMap
    changes: list[config_ids.Change]
    method: InitContext  # of what the new rows are made
    id_map: TokenIdMap  # what `transfer_map.json` says
    report: TransferReport

    def move(self, old_id: int) -> int | None:
        """The new id of an old one; None for a token that is gone."""
        return self.specials.old_to_new.get(old_id, self.mapping.old_to_new.get(old_id))


def method_of(
    init: str,
    seed: int,
    *,
    donor: Any,
    corpus: Any,
    score: Score | None,
    overrides: str | Path | Mapping[str, Any] | None,
) -> Method:
    """What the method may use; ValueError where it is unknown or lacks something."""
    InitSources(donor, corpus).check(init)  # before a donor is loaded
    if init == AUTO and score is None:
        raise ValueError(
            "init 'auto' needs text to try the initializers on (vocabshift.transfer: text=, "
            "command line: --text SPEC), or score=: a function of model and tokenizer"
        )
    table = {} if overrides is None else read_overrides(overrides)
    return Method(init, seed, InitSources.of(donor, corpus), score, table)


def make_plan(
    model: Any,
    matrices: Matrices,
    old: Tokenizer | UnigramOrWordPieceTokenizer,
    new: Tokenizer | UnigramOrWordPieceTokenizer,
    *,
    method: Method,
    pad_to_multiple_of: int | None,
    id_map: TokenIdMap | None,
) -> Plan:
    """What becomes of every row and id; `model`: whatever has the configs of one.

    For "auto" it must be a model in memory, which is as before afterwards.
    """
    matched = _match(model, old, new, method, id_map)
    specials, mapping, tokenizer = matched.specials, matched.mapping, matched.specials.tokenizer
    resize.check_rows(matrices, mapping, old.row_count)
    changes = config_ids.plan(model, specials, mapping)
    if matrices.pad_is_fixed:
        check_pad(changes)
    n_rows = resize.padded_rows(matrices, old.row_count, tokenizer.row_count, pad_to_multiple_of)
    check_offsets(model.config, mapping, matrices.rows, n_rows)

    def context(name: str) -> InitContext:
        if not isinstance(old, Tokenizer):
            return InitContext(name, method.seed, mapping, mapping)
        return init_context.prepare(
            name,
            mapping,
            old=old,
            new=tokenizer,
            tied=matrices.tied,
            sources=method.sources,
            seed=method.seed,
        )

    init = method.init
    tried: dict[str, float] = {}
    if init == AUTO and not mapping.n_made:
        init = candidates(method.sources)[0]  # nothing to make: all are alike
    if init == AUTO:
        assert method.score is not None
        contexts = map(context, candidates(method.sources))
        with config_ids.applied_for_now(model, changes, n_rows):
            tried = prices(
                model, matrices, contexts, tokenizer=tokenizer, n_rows=n_rows, score=method.score
            )
        init = next(iter(tried))
    report = TransferReport(
        n_copied=mapping.n_copied,
        n_initialized=mapping.n_made,
        n_removed=mapping.n_removed,
        tied=matrices.tied,
        vocab_size=mapping.n_copied + mapping.n_made,
        rows=n_rows,
        old_rows=matrices.rows,
        init=init,
        special_ids=config_ids.moved_ids(changes),
        tried=tried,
        n_overridden=matched.n_overridden,
        ambiguous={new_id: list(old_ids) for new_id, old_ids in mapping.ambiguous},
        n_moved=int((mapping.copied_from != mapping.copied_to).sum()),
    )
    return Plan(tokenizer, specials, mapping, changes, context(init), matched.map_back, report)


@dataclass(frozen=True, eq=False)
class _Matched:
    """Which token is which."""

    specials: SpecialTokens
    mapping: token_map.TokenMap
    map_back: TokenIdMap
    n_overridden: int = 0


def _match(
    model: Any,
    old: Tokenizer | UnigramOrWordPieceTokenizer,
    new: Tokenizer | UnigramOrWordPieceTokenizer,
    method: Method,
    id_map: TokenIdMap | None,
) -> _Matched:
    if isinstance(old, UnigramOrWordPieceTokenizer) and isinstance(
        new, UnigramOrWordPieceTokenizer
    ):
        assert id_map is not None
        if method.overrides:
            raise ValueError(f"overrides are not taken for a {old.kind} tokenizer")
        return _Matched(*plain_plan.match_by_map(old, new, id_map), id_map)
    assert isinstance(old, Tokenizer) and isinstance(new, Tokenizer)
    overrides = resolve_overrides(method.overrides, old, new)
    specials = match_specials(old, new, roles_of_config(model.config), overrides.same)
    kept = None if id_map is None else id_map.new_to_old()
    mapping = token_map.match(old, specials.tokenizer, specials.new_to_old, kept, overrides)
    map_back = transfer_map.map_of(old, specials.tokenizer, mapping)
    return _Matched(specials, mapping, map_back, len(overrides))
