"""Which tests marked `nightly` are run: none, all, or a share, the same in every run."""

from __future__ import annotations

import zlib


def is_chosen(name: str, chosen: str) -> bool:
    """Whether the test or group called `name` is run.

    `chosen`: "" for none, "all", or "3/8": the third of eight shares.
    """
    if chosen in ("", "all"):
        return chosen == "all"
    share, slash, shares = chosen.partition("/")
    if not (slash and share.isdecimal() and shares.isdecimal() and int(shares)):
        raise ValueError(f'NIGHTLY is {chosen!r}; it is "all", or a share such as 3/8')
    return zlib.crc32(name.encode()) % int(shares) == int(share) % int(shares)
