"""Weights on their way to the disk: a full disk is an OSError, whoever writes.

Owns what safetensors makes of an error of the operating system, and what is made of it again.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_NUMBER = re.compile(r"\(os error ([0-9]+)\)")


@contextmanager
def disk_errors(place: Path) -> Iterator[None]:
    """Within the block a SafetensorError that the operating system caused becomes an OSError."""
    import safetensors

    try:
        yield
    except safetensors.SafetensorError as error:
        found = _NUMBER.search(str(error))
        if found is None:
            raise
        number = int(found[1])
        raise OSError(number, os.strerror(number), str(place)) from error
