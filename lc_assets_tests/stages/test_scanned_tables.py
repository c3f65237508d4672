"""Look-ups in tables without an index."""

import pyarrow as pa
from hypothesis import given, strategies as st

from lc_assets.builds.lookups import ScannedTable
from lc_assets.builds.tables import write_table
from lc_assets.text.links.addresses import KINDS, values_of

ODD = st.lists(
    st.sampled_from(
        [
            *(
                "http:",
                "https:",
                "ftp:",
                "x:",
                "//",
                "/",
                "\\",
                "?",
                "#",
                "@",
                ":80",
                " ",
                "\t",
                "\n",
            ),
            *("www.", "a.example.org", "EXAMPLE.org", "bücher.example", "exa%6Dple.org", "1.2.3.4"),
            ".",
        ]
    ),
    max_size=7,
).map("".join)


@given(st.lists(ODD, min_size=1, max_size=20), st.data())
def test_a_scan_finds_what_reading_every_line_finds(tmp_path_factory, urls, data):
    """Addresses however they are written, by any of their values."""
    lines = [
        {"id": f"a/{number}", "url": url, "digest": f"sha1:{number % 3}"}
        for number, url in enumerate(urls)
    ]
    values = [(kind, value) for line in lines for kind in KINDS for value in values_of(kind, line)]
    sought = list(dict.fromkeys(data.draw(st.lists(st.sampled_from(values), max_size=4))))
    path = tmp_path_factory.mktemp("scanned") / "table.parquet"
    write_table(path, pa.Table.from_pylist(lines))
    wanted = [
        (number, line)
        for number, (kind, value) in enumerate(sought)
        for line in lines
        if value in values_of(kind, line)
    ]
    assert ScannedTable(path).find_all(sought) == wanted
