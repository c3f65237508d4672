"""Workers that are not like the process that asks are refused, each difference by its name."""

import pytest

from lc_assets.errors import WorkerUnfit
from lc_assets.execution.environment import (
    SIGNS,
    code_digest,
    current_environment,
    require_same_environment,
)


@pytest.fixture
def environment(tmp_path):
    (tmp_path / "upstream").mkdir()
    with current_environment(
        libraries=("numpy", "no-such-library"), folders=(tmp_path,), sees=(tmp_path / "upstream",)
    ) as made:
        yield made


def test_this_process_is_like_itself_and_leaves_no_sign(tmp_path):
    with current_environment(libraries=("numpy",), folders=(tmp_path,), sees=()) as environment:
        require_same_environment(environment)
        assert len(list((tmp_path / SIGNS).iterdir())) == 1
    assert not list((tmp_path / SIGNS).iterdir())


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"python": "3.10.1"}, "runs Python 3.*, expected 3.10.1: give it the image"),
        ({"code": "0" * 64}, "has another version of lc_assets"),
        ({"libraries": (("numpy", "1.0"),)}, "has numpy .*, expected 1.0: its bytes could differ"),
    ],
    ids=["python", "code", "library"],
)
def test_another_version_is_named(environment, change, words):
    with pytest.raises(WorkerUnfit, match=words):
        require_same_environment(environment._replace(**change))


def test_a_folder_that_is_not_the_same_is_named(environment, tmp_path):
    """A folder of that name is there, and it is another one: it lacks the sign."""
    sign = environment.signs[0]
    content = sign.read_bytes()
    sign.write_bytes(b"another")
    with pytest.raises(WorkerUnfit, match=f"does not see {tmp_path}: mount the same folder"):
        require_same_environment(environment)
    sign.write_bytes(content)
    (tmp_path / "upstream").rmdir()
    with pytest.raises(WorkerUnfit, match="does not see .*/upstream"):
        require_same_environment(environment)


def test_the_digest_is_of_every_source(tmp_path, monkeypatch):
    """One letter in one file of a copy gives another digest; caches do not."""
    from importlib import resources

    found = code_digest.__wrapped__()
    assert found == code_digest.__wrapped__()
    for name, text in (("a.py", "x = 1"), ("b.nbc", "compiled")):
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(resources, "files", lambda _: tmp_path)
    before = code_digest.__wrapped__()
    (tmp_path / "b.nbc").write_text("compiled anew")
    assert code_digest.__wrapped__() == before
    (tmp_path / "a.py").write_text("x = 2")
    assert code_digest.__wrapped__() != before
