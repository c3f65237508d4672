"""The text of a document as it is tokenized, and its digest.

Personal data are replaced first, where ``[token_documents.privacy]`` names kinds. Duplicates are
looked for among these texts.
"""

import hashlib
from collections.abc import Mapping
from typing import Any

import msgspec

from lc_assets.builds.recipe import Recipe, plain
from lc_assets.builds.settings.common import PrivacySettings
from lc_assets.text.privacy.replacing import Replaced, replace_personal


def tokenized_text(line: Mapping[str, Any], privacy: PrivacySettings) -> Replaced:
    """A document's text with personal data replaced, and the number of replacements by kind.

    Args:
        line: has ``raw_content`` and, where something is replaced, ``language``.
        privacy: what is replaced.
    """
    if not privacy.replace:
        return Replaced(text=line["raw_content"], counts={})
    return replace_personal(
        line["raw_content"],
        privacy.replace,
        style=privacy.style,
        seed=privacy.seed,
        language=line["language"],
        region=privacy.phone_region,
    )


def tokenized_utf8(
    line: Mapping[str, Any], privacy: PrivacySettings
) -> tuple[bytes, Mapping[str, int]]:
    """The same, of a text in UTF-8 and in UTF-8; nothing is decoded where nothing is replaced."""
    if not privacy.replace:
        return line["raw_content"], {}
    found = tokenized_text({**line, "raw_content": line["raw_content"].decode()}, privacy)
    return found.text.encode(), found.counts


def text_columns(privacy: PrivacySettings) -> list[str]:
    """The columns of a document that `tokenized_text` reads."""
    return ["raw_content", *(["language"] if privacy.replace else [])]


def privacy_params(recipe: Recipe) -> dict[str, Any]:
    """The settings of `tokenized_text`, where it replaces anything, for a fingerprint."""
    privacy = recipe.token_documents.privacy
    return {"privacy": plain(privacy)} if privacy.replace else {}


def privacy_of(params: Mapping[str, Any]) -> PrivacySettings:
    """The settings of `tokenized_text`, of a fingerprint with `privacy_params`."""
    return msgspec.convert(params.get("privacy", {}), PrivacySettings)


def text_digest(text: bytes) -> str:
    """Digest of a text's UTF-8, as lists of withdrawals name it.

    >>> text_digest(b"")[:20]
    'sha256:e3b0c44298fc1'
    """
    return f"sha256:{hashlib.sha256(text).hexdigest()}"


def are_held_out(recipe: Recipe) -> bool:
    """Whether any documents are held out."""
    return recipe.token_grid.heldout_fraction > 0
