"""The error tree. Everything this package raises on purpose is one of these.

::

    LcError
    ├── BadInput        what a person gave cannot be meant: a setting, a path, a name
    ├── CorruptFile     bytes are not what their format promises
    ├── Mismatch        numbers that must agree do not
    ├── NotPublished    an artefact is asked for that is not there (yet)
    ├── CheckFailed     a stage refused to publish what it wrote
    ├── StorageFull     the disk is full; nothing was published
    ├── NotWritable     a folder of the lake cannot be written to; nothing was published
    ├── Unreachable     upstream does not answer, or stopped half-way; what it holds is not known
    ├── Busy            another run is building the same partition
    ├── WorkerDied      a worker process ended without an answer
    └── WorkerUnfit     a worker elsewhere has other code, another Python, or does not see the lake

A message says where, what was found, what was expected, and what to do next. What opens doors is
left out of it (`without_secrets`): messages end up in logs, in an orchestrator's database, and in
mails to others.
"""

import re
from typing import Final

import msgspec

UNDECODABLE: Final = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""What decoding JSON of unknown origin raises: it is none, it is no UTF-8, or it is nested too
deeply. Caught where a file is known.
"""

_USERINFO: Final = re.compile(r"(?<=://)[^/?#\s\"'<>]*@")
_SECRET: Final = re.compile(
    r"""(?<=[?&#])([\w.%-]*(?:token|key|sig|secret|pass|credential|auth)[\w.%-]*)=[^&#\s"'<>)]+""",
    re.IGNORECASE,
)


def without_secrets(words: str) -> str:
    """Words in which no URL names a user or password, nor gives a token, key, signature or password
    in its query.

    >>> without_secrets("cannot reach https://me:open@data.org/rpv2?alt=media&X-Goog-Signature=00ff (403)")
    'cannot reach https://…@data.org/rpv2?alt=media&X-Goog-Signature=… (403)'
    """
    return _SECRET.sub(r"\1=…", _USERINFO.sub("…@", words))


class LcError(Exception):
    """Root of the tree; catch it to catch every deliberate failure."""

    def __str__(self) -> str:
        return without_secrets(super().__str__())

    def __repr__(self) -> str:
        return without_secrets(super().__repr__())


class BadInput(LcError, ValueError):
    """A setting, path or name given by a person is not acceptable."""


class CorruptFile(LcError):
    """A file's bytes contradict its format."""


class Mismatch(LcError):
    """Two numbers that must be equal are not: something was lost or counted twice."""


class NotPublished(LcError, LookupError):
    """The artefact asked for has not been published."""


class CheckFailed(LcError):
    """A stage's own audit found its output wrong, so nothing was published."""


class StorageFull(LcError, OSError):
    """The disk ran full while writing; what was published before is untouched."""


class NotWritable(LcError, OSError):
    """A folder or file may not be written, or is not what it must be; what was published before is
    untouched.
    """


class Unreachable(LcError):
    """A server, bucket or disk upstream did not answer, or not to the end. That says nothing about
    the files there.
    """


class Busy(LcError):
    """Another run is building the same partition of the same lake."""


class WorkerDied(LcError):
    """A worker process ended without an answer, more than once, on the same task."""


class WorkerUnfit(LcError):
    """A worker of a cluster is not like the process that asks: it could publish other bytes, or in
    another place.
    """
