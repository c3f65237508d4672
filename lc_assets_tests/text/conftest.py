from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Folder of real data beside the checkout; what needs it is skipped where there is none."""
    for folder in Path(__file__).resolve().parents:
        if (folder / "shared" / "data" / "MANIFEST.md").is_file():
            return folder / "shared" / "data"
    pytest.skip("no folder shared/data beside the checkout")
