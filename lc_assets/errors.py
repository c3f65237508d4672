"""The error tree. Everything this package raises on purpose is one of these.

::

    LcError
    ├── BadInput        a setting, path or name is not acceptable
    ├── CorruptFile     bytes contradict their format
    │   └── DamagedInput    … or the receipt of the version that they were published in
    ├── Mismatch        numbers that must be equal are not
    ├── NotPublished    an artefact that is needed is not published (yet)
    ├── CheckFailed     a stage refused to publish what it wrote
    ├── StorageFull     the disk is full; nothing was published
    ├── NotWritable     a folder of the lake cannot be written to; nothing was published
    ├── Unreachable     a source does not answer, or stopped in the middle; its content is unknown
    ├── Busy            another run is building the same partition
    ├── WorkerDied      a worker process ended without a result
    └── WorkerUnfit     a cluster's worker has other code, another Python, or does not see the lake

A message says where, what was found, what was expected, and what to do next. Credentials are
removed from it (`without_secrets`): messages end up in logs, in an orchestrator's database and in
mail.
"""

import re
from collections.abc import Iterable

import msgspec

UNDECODABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""What decoding foreign JSON raises: it is malformed, not UTF-8, or nested too deeply. Caught where
the file's name is known.
"""

_USERINFO = re.compile(
    r"""(?<=://)(?:[^/?#\s"'<>]*|[^/?#\s"'<>@:]*+(?::(?!//|\d+[/?#])[^\s"'<>@:]*+)++)@"""
)
"""A user with a password, which may hold slashes unless it begins as a port does."""

_SECRET = re.compile(
    r"""(?<=[?&#;])(?=[\w.%-]*?(?:token|key|sig|secret|pass|credential|auth|pwd|jwt)|(?:code|sid)=)"""
    r"""([\w.%-]++=)["']?[^&#\s"'<>)]+|((?:Bearer|Authorization:\ *Basic)\ +|\bhf_)[^\s"'<>]{8,}""",
    re.IGNORECASE,
)
"""A query's value by its name, an authorization header's, and a token of Hugging Face's. The time
is linear: names are found once, and their words are looked for inside.
"""


def without_secrets(words: str) -> str:
    """A text without users and passwords in URLs, without tokens, keys, signatures and passwords in
    their queries, and without the values of authorization headers.

    >>> without_secrets("no https://me:open@data.org/rpv2?alt=media&X-Goog-Signature=00ff (403)")
    'no https://…@data.org/rpv2?alt=media&X-Goog-Signature=… (403)'
    """
    return _SECRET.sub(r"\1\2…", _USERINFO.sub("…@", words))


def known_names(known: Iterable[str], *unknown: str) -> str:
    """The end of a message about unknown names: those that there are, and which may be meant.

    >>> known_names(["min_words", "rules"], "min_word")
    'min_words, rules; did you mean min_words?'
    """
    import difflib

    names = list(known)
    meant = [name for one in unknown for name in difflib.get_close_matches(one, names, 1)]
    return ", ".join(names) + (f"; did you mean {', '.join(meant)}?" if meant else "")


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


class DamagedInput(CorruptFile):
    """A published file that a stage is about to read is missing or differs from its receipt."""


class Mismatch(LcError):
    """Two numbers that must be equal are not: something was lost or counted twice."""


class NotPublished(LcError, LookupError):
    """An artefact that is needed has not been published."""


class CheckFailed(LcError):
    """A stage's own audit found its output wrong, so nothing was published."""


class StorageFull(LcError, OSError):
    """The disk is full; what was published before is unchanged."""


class NotWritable(LcError, OSError):
    """A folder or file cannot be written, or is of the wrong kind; what was published before is
    unchanged.
    """


class Unreachable(LcError):
    """A server, bucket or disk did not answer, or not completely; which files it has is unknown."""


class Busy(LcError):
    """Another run is building the same partition of the same lake."""


class WorkerDied(LcError):
    """A task ended worker processes, more often than its policy allows."""


class WorkerUnfit(LcError):
    """A cluster's worker differs from the submitting process: it could publish other bytes, or
    elsewhere.
    """
