"""Which packages are read, and which of them stand together.

The packages are those that this project depends on, so whoever runs it has them. A shelf is a set
of packages on one subject; its modules, in the order of the list and then of their paths, are the
chapters that `pages` cuts into pages.

Chosen by measuring (docs/sample.md): together they give about 14 million characters, whatever else
is installed.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Shelf:
    """Packages that are read together.

    Attributes:
        name: says what they are about.
        packages: their names; those that are not installed are passed over.
        one_page: put everything on one page, however long.
        keep_repeats: leave in what repeats, as a web site that is one long reference would.
    """

    name: str
    packages: tuple[str, ...]
    one_page: bool = False
    keep_repeats: bool = False


SHELVES = (
    Shelf("python", ("python",)),
    Shelf("databases", ("SQLAlchemy", "alembic", "Mako")),
    Shelf("figures", ("matplotlib", "fonttools", "pillow", "contourpy", "pyparsing")),
    Shelf("tables", ("pandas", "pandera", "narwhals", "pyarrow", "python-dateutil", "tabulate")),
    Shelf("arrays", ("numpy", "zarr", "numcodecs", "awkward", "fsspec", "universal_pathlib")),
    Shelf(
        "orchestration",
        (
            "dagster",
            "dagster-shared",
            "dagster-graphql",
            "dagster-pipes",
            "dagster-gcp",
            "graphql-core",
            "graphene",
            "gql",
            "humanfriendly",
        ),
    ),
    Shelf(
        "clouds",
        (
            "google-cloud-storage",
            "google-cloud-bigquery",
            "google-auth",
            "google-api-core",
            "google-resumable-media",
            "google-api-python-client",
            "protobuf",
            "proto-plus",
            "grpcio",
            "oauth2client",
            "opentelemetry-api",
            "pyasn1",
            "rsa",
        ),
    ),
    Shelf(
        "installing",
        (
            "pip",
            "setuptools",
            "packaging",
            "filelock",
            "platformdirs",
            "importlib_metadata",
            "future",
        ),
    ),
    Shelf(
        "types",
        (
            "pydantic",
            "pydantic_core",
            "attrs",
            "msgspec",
            "typing_extensions",
            "typeguard",
            "structlog",
        ),
    ),
    Shelf(
        "the web",
        (
            "aiohttp",
            "anyio",
            "h11",
            "httplib2",
            "requests",
            "requests-toolbelt",
            "starlette",
            "urllib3",
            "uvicorn",
            "websockets",
            "yarl",
            "cryptography",
            "charset-normalizer",
            "idna",
            "watchdog",
        ),
    ),
    Shelf(
        "terminals and languages",
        (
            "click",
            "typer",
            "rich",
            "Pygments",
            "coloredlogs",
            "Jinja2",
            "markdown-it-py",
            "antlr4-python3-runtime",
            "cffi",
            "pycparser",
            "PyYAML",
            "tomlkit",
            "regex",
            "tqdm",
        ),
    ),
    Shelf("matplotlib on one page", ("matplotlib",), one_page=True),
    Shelf(
        "google-cloud-storage with its repeats",
        ("google-cloud-storage",),
        one_page=True,
        keep_repeats=True,
    ),
    Shelf("zarr with its repeats", ("zarr",), one_page=True, keep_repeats=True),
)
