"""What each language's files say, and which files of the repository that means."""

import ast
import sysconfig
import time
import warnings
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lc_assets.packing.imports.ordering import in_import_order, scan_file, targets
from lc_assets.packing.imports.python import scan
from lc_assets.packing.imports.scanned import LANGUAGES, MOST_IMPORTS
from lc_assets.packing.imports.tree import Tree, normalised


def imported(files, path):
    """What ``path`` imports, of files given by their text."""
    return targets(Tree({name: scan_file(name, text) for name, text in files.items()}), path)


def named_by_ast(text):
    """What Python's own parser finds."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tree = ast.parse(text)
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {(alias.name, ()) for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add(
                ("." * node.level + (node.module or ""), tuple(alias.name for alias in node.names))
            )
    return found


def test_the_scan_of_python_finds_what_its_parser_finds():
    """In a few hundred files of the standard library, statement by statement."""
    library = Path(sysconfig.get_path("stdlib"))
    files = sorted(
        [
            *library.glob("*.py"),
            *library.glob("asyncio/*.py"),
            *library.glob("email/*.py"),
            *library.glob("unittest/*.py"),
        ]
    )
    assert len(files) > 100
    for file in files:
        text = file.read_bytes().decode()
        assert {(found.module, found.names) for found in scan(text).imports} == named_by_ast(
            text
        ), file


PIECES = [
    '"',
    "'",
    '"""',
    "\\",
    "\n",
    "#",
    "import a",
    "from .b import c",
    "(",
    ")",
    ", d as e",
    ";",
    " ",
    "x",
    "f",
    "rb",
]


@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
@example('x = """\nimport a\n"""\nimport b')
def test_strings_and_comments_are_not_looked_into(text):
    """Whatever is sound Python is read as Python reads it."""
    try:
        wanted = named_by_ast(text)
    except (SyntaxError, ValueError):
        scan(text)  # it must not fail
        return
    assert {(found.module, found.names) for found in scan(text).imports} == wanted


PYTHON = {
    "src/pkg/__init__.py": "",
    "src/pkg/a.py": "from . import b\nfrom .sub.c import thing\nimport pkg.sub.d as d\nimport os, numpy",
    "src/pkg/b.py": "from .. import nothing\nfrom pkg import sub",
    "src/pkg/sub/__init__.py": "from .c import *",
    "src/pkg/sub/c.py": "from ..a import x\nfrom ... import far",
    "src/pkg/sub/d.py": "from . import c, missing",
    "tests/test_a.py": "import helper\nfrom pkg import a\nimport pkg.a.x",
    "tests/helper.py": "import c",
    "src/pkg/py2.py": "print 'not python 3'\nimport pkg.b",
}


@pytest.mark.parametrize(
    ("path", "wanted"),
    [
        ("src/pkg/a.py", ["src/pkg/b.py", "src/pkg/sub/c.py", "src/pkg/sub/d.py"]),
        ("src/pkg/b.py", ["src/pkg/sub/__init__.py"]),
        ("src/pkg/sub/__init__.py", ["src/pkg/sub/c.py"]),
        ("src/pkg/sub/c.py", ["src/pkg/a.py"]),
        ("src/pkg/sub/d.py", ["src/pkg/sub/c.py", "src/pkg/sub/__init__.py"]),
        ("tests/test_a.py", ["tests/helper.py", "src/pkg/a.py"]),
        ("tests/helper.py", []),  # a package's module is not found by its bare name
        ("src/pkg/py2.py", ["src/pkg/b.py"]),
    ],
)
def test_python(path, wanted):
    """Relative to the package, absolute below a root, of a package as a whole; what is not there is somebody else's."""
    assert imported(PYTHON, path) == wanted


C = {
    "src/a.c": '#include "a.h"\n#  include <proj/b.h>\n#include <stdio.h>\n// #include "c.h"\n/* \n#include "c.h"\n*/\n',
    "src/a.h": '#include "../include/proj/b.h"',
    "src/c.h": 'char *s = "\\\n#include \\"a.h\\"\n";',
    "include/proj/b.h": "#pragma once",
    "lib/deep/a.h": "",
    "app/main.cpp": '#include "deep/a.h"\n#import "b.h"\n#include MACRO',
}


@pytest.mark.parametrize(
    ("path", "wanted"),
    [
        ("src/a.c", ["src/a.h", "include/proj/b.h"]),
        ("src/a.h", ["include/proj/b.h"]),
        ("src/c.h", []),
        ("app/main.cpp", ["lib/deep/a.h", "include/proj/b.h"]),
    ],
)
def test_c(path, wanted):
    """Beside the file, in the include folder, wherever a path ends so; not in comments and strings."""
    assert imported(C, path) == wanted


JAVASCRIPT = {
    "src/app.ts": 'import React from "react";\nimport { a } from "./a";\nimport type B from \'./b.js\'\n'
    'export * from "../lib";\nimport "./s.css"',
    "src/a.tsx": 'const x = require("./b"); const y = await import( "../lib/util" ); const z = `import "./app"`; // from "./app"',
    "src/b.ts": 'Array.from("./app"); const s = "import \'./app\'"; export { q } from "./nowhere"',
    "lib/index.js": 'module.exports = require("./util.mjs")',
    "lib/util.mjs": "",
}


@pytest.mark.parametrize(
    ("path", "wanted"),
    [
        ("src/app.ts", ["src/a.tsx", "src/b.ts", "lib/index.js"]),
        ("src/a.tsx", ["src/b.ts", "lib/util.mjs"]),
        ("src/b.ts", []),
        ("lib/index.js", ["lib/util.mjs"]),
    ],
)
def test_javascript_and_typescript(path, wanted):
    """Endings left out, .js for .ts, a folder's index; templates, strings and comments are text."""
    assert imported(JAVASCRIPT, path) == wanted


GO = {
    "go.mod": "module example.com/me/proj // why\n\ngo 1.22\n",
    "main.go": 'package main\n\nimport (\n\t"fmt" // (a bracket)\n\tx "example.com/me/proj/pkg/x"\n\t"example.com/you/proj/pkg/y"\n)\n',
    "pkg/x/x.go": 'package x\nimport "example.com/me/proj/pkg/y"\nvar s = `import "example.com/me/proj/pkg/x"`\n',
    "pkg/x/more.go": "package x\n",
    "pkg/y/y.go": 'package y\nimport _ "example.com/me/proj"\n',
    "pkg/y/y_test.go": "package y\n",
}


@pytest.mark.parametrize(
    ("path", "wanted"), [("main.go", ["pkg/x/"]), ("pkg/x/x.go", ["pkg/y/"]), ("pkg/y/y.go", ["/"])]
)
def test_go(path, wanted):
    """The module's own packages, by its go.mod; those of others of a like name are not."""
    assert imported(GO, path) == wanted


def test_go_without_a_module_goes_by_the_end_of_the_name():
    """And never by that of the standard library's names."""
    files = {
        "main.go": 'package main\nimport "github.com/me/proj/pkg/x"\nimport "net/http"\n',
        "pkg/x/x.go": "package x",
        "http/h.go": "package h",
    }
    assert imported(files, "main.go") == ["pkg/x/"]


RUST = {
    "src/lib.rs": 'pub mod a;\nmod b { fn f() {} }\nmod c;\n/* mod d; */ const S: &str = "mod d;"; const R: &str = r#"mod "d;"#;',
    "src/a.rs": "use crate::c::{self, d::Thing as Other, e::*};\nuse std::io;\nmod inner;\nuse super::c;\nlet c = '\"'; mod r#type;",
    "src/a/inner.rs": "use super::super::c::d;\nuse super::Thing;\nuse crate::a::more::X;",
    "src/a/more.rs": "",
    "src/a/type.rs": "",
    "src/c/mod.rs": "mod d; mod e;",
    "src/c/d.rs": "use self::f::g; use super::e;",
    "src/c/e.rs": "",
    "src/d.rs": "",
}


@pytest.mark.parametrize(
    ("path", "wanted"),
    [
        ("src/lib.rs", ["src/a.rs", "src/c/mod.rs"]),
        (
            "src/a.rs",
            ["src/c/mod.rs", "src/c/d.rs", "src/c/e.rs", "src/a/inner.rs", "src/a/type.rs"],
        ),
        ("src/a/inner.rs", ["src/c/d.rs", "src/a/more.rs"]),
        ("src/c/mod.rs", ["src/c/d.rs", "src/c/e.rs"]),
        ("src/c/d.rs", ["src/c/e.rs"]),
    ],
)
def test_rust(path, wanted):
    """Modules where they lie, groups of use, and no way back to a module that a file is part of."""
    assert imported(RUST, path) == wanted


JAVA = {
    "main/java/org/x/App.java": "package org.x;\nimport org.x.util.Strings;\nimport static org.x.util.Math.max;\n"
    "import org.x.io.*;\nimport java.util.List;",
    "main/java/org/x/util/Strings.java": 'package org.x.util; /* import org.x.App; */ String s = "import org.x.App;";',
    "main/java/org/x/util/Math.java": "package org.x.util;",
    "main/java/org/x/io/In.java": "package org.x.io;\nimport org.x.App.Inner;",
    "test/java/org/x/AppTest.java": "package org.x;\nimport org.x.util.Strings;",
}


@pytest.mark.parametrize(
    ("path", "wanted"),
    [
        (
            "main/java/org/x/App.java",
            [
                "main/java/org/x/util/Strings.java",
                "main/java/org/x/util/Math.java",
                "main/java/org/x/io/",
            ],
        ),
        ("main/java/org/x/util/Strings.java", []),
        ("main/java/org/x/io/In.java", ["main/java/org/x/App.java"]),
        ("test/java/org/x/AppTest.java", ["main/java/org/x/util/Strings.java"]),
    ],
)
def test_java(path, wanted):
    """Classes, their members, packages as a whole; below the file's own root first."""
    assert imported(JAVA, path) == wanted


@pytest.mark.parametrize(
    ("path", "wanted"),
    [
        ("../../etc/passwd", "etc/passwd"),
        ("/abs//./a/../b.py", "abs/b.py"),
        ("a\\b.h", "a/b.h"),
        ("....//x", "..../x"),
        ("", ""),
        ("..", ""),
        ("a\0b\n.py", "a\0b\n.py"),
    ],
)
def test_a_path_is_a_name(path, wanted):
    """Nothing leads out of the repository, because nothing is opened."""
    assert normalised(path) == wanted


def test_a_path_that_climbs_finds_files_of_the_repository_only():
    """As often as it climbs."""
    files = {
        "a/x.c": f'#include "{"../" * 5000}etc/passwd"',
        "a/y.js": f'require("{"../" * 5000}x.js")',
        "etc/passwd": "",
    }
    assert imported(files, "a/x.c") == ["etc/passwd"]
    assert imported(files, "a/y.js") == []


ENDLESS = [
    *('"""', "'''", '"', "'", "`", "/*", "//", "(", "{", "\\", "\n", "\\\n", "# ", "r#", 'r#"'),
    *(
        "import (",
        "import ",
        "import\n",
        "import a.",
        "import a, ",
        "b,",
        "from.",
        "from ",
        "from a import (",
    ),
    *("#include", '#include "', "mod ", "use a::{", "use crate::{a::", "package "),
]


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("piece", ENDLESS)
def test_time_grows_with_the_length_alone(language, piece):
    """Each fragment over and over, half a million characters of it: what looked back or ahead would take minutes."""
    text = piece * (500_000 // len(piece))
    begin = time.process_time()
    scan_file(f"x{LANGUAGES[language][0]}", text)
    assert time.process_time() - begin < 2.0


def test_files_that_name_each_other_a_thousand_times_are_ordered_in_no_time():
    """Imports, deep paths and packages multiply no further than the bound on what one file may name."""
    names = [f"{'d/' * 60}m{n}" for n in range(30)]
    files = {
        f"{name}.py": "import " + ", ".join(f"x{n}.y.z" for n in range(5000)) for name in names
    }
    scanned = {path: scan_file(path, text) for path, text in files.items()}
    assert all(len(one.imports) == MOST_IMPORTS for one in scanned.values())
    begin = time.process_time()
    assert in_import_order(scanned).n_edges == 0
    assert time.process_time() - begin < 10
