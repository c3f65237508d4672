"""One machine at a time: an object in a bucket that names who releases or prunes a lake."""

import contextlib
import socket
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

from lc_assets.errors import Busy
from lc_assets.lake.bucket import Bucket, Held
from lc_assets.lake.bucket_lake import BucketLake
from lc_assets.lake.lake import Lake
from lc_assets.lake.receipts import encode_json
from lc_assets.lake.staging import locked

ALONE = "alone.json"
"""Names the machine and its folder of copies."""


@contextlib.contextmanager
def alone(lake: Lake) -> Iterator[None]:
    """Exclude every other command that builds, releases or prunes from this block; in a bucket
    other machines' releases and prunes, and this machine's builds.

    Raises:
        Busy: when others are at work for longer than `lc_assets.publishing.BUSY_SECONDS`, or
            another machine is; says how to go on if it was killed.
    """
    with contextlib.ExitStack() as stack:
        stack.enter_context(locked(lake.root))
        if isinstance(lake, BucketLake):
            stack.enter_context(_alone_in(lake.bucket, lake.root))
        yield


@contextlib.contextmanager
def _alone_in(bucket: Bucket, copies: Path) -> Iterator[None]:
    """Exclude other machines. The lock of the copies is held, so whatever names them was left by a
    command of this machine that was killed, and is replaced.
    """
    own = encode_json(f"{socket.gethostname()} {uuid.getnode():x} {copies}")
    held = bucket.read(ALONE)
    if held is not None and held.content != own:
        _refuse(bucket, held)
    try:
        bucket.write(ALONE, own, after=held.generation if held else "")
    except Busy:
        held = bucket.read(ALONE)
        if held is None or held.content != own:  # else it was written, and the answer was lost
            _refuse(bucket, held)
    try:
        yield
    finally:
        bucket.remove([ALONE])


def _refuse(bucket: Bucket, held: Held | None) -> NoReturn:
    holder = held.content.decode("utf-8", "replace").strip() if held else "now gone"
    raise Busy(
        f"{bucket.url}: another machine releases or prunes this lake ({holder}); wait for it, or, "
        f"if it was killed, run its command there again, or delete {bucket.where(ALONE)}"
    )
