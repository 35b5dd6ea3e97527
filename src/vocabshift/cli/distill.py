"""Flags and summary of the initializer "distill", which `transfer` and `adapt` share."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from vocabshift.cli.fields import add_fields, flags_of, given
from vocabshift.cli.options import UsageError

if TYPE_CHECKING:
    from vocabshift import DistillOptions

_PREFIX = "distill_"  # in front of the names of its fields


def add_distill(parser: argparse.ArgumentParser) -> None:
    """Add the flags of the initializer "distill", which `distill_of` reads."""
    from vocabshift.workflows.transfer import DistillOptions

    group = parser.add_argument_group("for --init distill")
    add_fields(group, DistillOptions, prefix=_PREFIX)


def distill_flags(args: argparse.Namespace) -> list[str]:
    """The flags of it that were given."""
    from vocabshift.workflows.transfer import DistillOptions

    found = given(args, flags_of(DistillOptions), prefix=_PREFIX)
    return [f"{_PREFIX}{name}".replace("_", "-") for name in found]


def distill_of(args: argparse.Namespace) -> DistillOptions:
    """The options that the flags name; UsageError for flags without --init distill."""
    from vocabshift.workflows.transfer import DISTILL, DistillOptions

    found = given(args, flags_of(DistillOptions), prefix=_PREFIX)
    if found and args.init != DISTILL:
        flag = distill_flags(args)[0]
        raise UsageError(f"--{flag} is for --init distill; leave it out, or give that")
    return DistillOptions(**found)


def distilled_facts(result: dict[str, Any]) -> dict[str, str]:
    """What "distill" read and learned, or would."""
    found = result.get("distilled")
    if not found:
        return {}
    facts = {
        "of them with snippets": f"{found['n_learned']:,}",
        "of them without, at the start": f"{found['without_snippets']:,} ({found['start']})",
        "snippets": f"{found['snippets']:,} of {found['corpus_bytes'] / 1e6:,.1f} MB: "
        f"{found['new_tokens']:,} new tokens, {found['old_tokens']:,} old ones",
    }
    if "seconds" in found:
        facts["learning would take"] = (
            f"{found['seconds'] / 60:,.1f} minutes ({found['tokens_per_second']:,.0f} new tokens a "
            f"second), {found['memory_bytes'] / 1e9:,.2f} GB of memory"
        )
    else:
        first, last = found["distance"]
        facts["distance of hidden states"] = f"{first:.4f} at first, {last:.4f} in the end"
    if "seconds" not in found and found["nats_per_token"]:
        first, last = found["nats_per_token"]
        facts["nats per token"] = f"{first:.4f} at first, {last:.4f} in the end"
    return facts
