#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
"""Generates saina/_libsaina.py from saina.h: cdef.py saina.h OUT.py

cffi's out-of-line ABI mode: the result is Python, needs no compiler, and at run time only
python3-cffi-backend.
"""

import re
import sys

import cffi


def declarations(header):
    """saina.h without lines for the C preprocessor and C++."""
    text = re.sub(r"/\*.*?\*/", "", header, flags=re.S)
    text = re.sub(r"#ifdef __cplusplus\n.*?#endif\n", "", text, flags=re.S)
    lines = [line for line in text.split("\n")
             if not line.startswith("#") or re.match(r"#define\s+SAINA_\w+\s+\w", line)]
    return "\n".join(lines)


def main():
    with open(sys.argv[1], encoding="utf-8") as f:
        text = declarations(f.read())
    ffi = cffi.FFI()
    ffi.set_source("saina._libsaina", None)
    ffi.cdef(text)
    ffi.emit_python_code(sys.argv[2])


main()
