#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Labelled pictures as saina-train reads them.

    examples.py PATH OUT

PATH: a .csv or .csv.gz file (a line for each picture: 64 pixels of 0 to 16, then the class), or a folder with MNIST's
four IDX files, each as it is or .gz.  OUT: see write()."""

import gzip
import os
import struct
import sys

CLASSES, DIGITS_DIM, DIGITS_TOP = 10, 64, 16
IMAGES, LABELS = 0x803, 0x801		# an IDX file's first word: unsigned bytes, of 3 and of 1 dimensions
LINES_MIN, EXAMPLES_MAX = 90, 1 << 20


class DataError(Exception):
    """A file is not as it should be; a sentence for the user."""


def write(path: str, train: int, dim: int, top: int, examples: list[bytes]) -> None:
    """Writes five 32-bit numbers (little endian): a magic one, how many examples are for training (0: saina-train chooses
    by its seed), how many there are, the pixels of each, the value that stands for 1; and the examples: pixels, class."""
    with open(path, "wb") as f:
        f.write(struct.pack("<4s4I", b"EXMP", train, len(examples), dim, top))
        f.writelines(examples)


def csv_examples(path: str) -> list[bytes]:
    found = []
    try:
        with (gzip.open if path.endswith(".gz") else open)(path, "rt", encoding="ascii") as f:
            for number, line in enumerate(f, 1):
                try:
                    values = [float(w) for w in line.split(",")]
                except ValueError:
                    values = []
                if len(values) != DIGITS_DIM + 1 or any(v not in range(DIGITS_TOP + 1) for v in values) or values[-1] >= CLASSES:
                    raise DataError(f"{path} line {number} is not {DIGITS_DIM} pixels of 0 to {DIGITS_TOP} and a class of 0 to {CLASSES - 1}, with commas between")
                found.append(bytes(map(int, values)))
    except (EOFError, gzip.BadGzipFile, UnicodeDecodeError) as e:
        raise DataError(f"{path} is damaged or incomplete: fetch it again") from e
    if len(found) < LINES_MIN:
        raise DataError(f"{path} has {len(found)} examples; at least {LINES_MIN} are needed")
    return found


def idx(folder: str, name: str, magic: int, dims: int) -> tuple[str, tuple[int, ...], bytes]:
    """The path of an IDX file, the numbers of its header, and what follows."""
    path = next((p for p in (os.path.join(folder, name), os.path.join(folder, f"{name}.gz")) if os.path.exists(p)), None)
    if not path:
        raise DataError(f"there is no {name} (or {name}.gz) in {folder}: an MNIST folder has four such files")
    try:
        with (gzip.open if path.endswith(".gz") else open)(path, "rb") as f:
            content = f.read()
    except (EOFError, gzip.BadGzipFile) as e:
        raise DataError(f"{path} is damaged or incomplete: fetch it again") from e
    if len(content) < 4 + 4 * dims:
        raise DataError(f"{path} is too short for an IDX header")
    found, *numbers = struct.unpack_from(f">{1 + dims}I", content)
    if found != magic:
        raise DataError(f"{path} begins with {found:08x}; IDX files of this kind begin with {magic:08x}")
    return path, tuple(numbers), content[4 + 4 * dims:]


def idx_examples(folder: str, part: str) -> tuple[int, list[bytes]]:
    """Pixels of a picture, and the examples."""
    path, (n, rows, columns), pixels = idx(folder, f"{part}-images-idx3-ubyte", IMAGES, 3)
    dim = rows * columns
    if not 1 <= n <= EXAMPLES_MAX or not 1 <= rows <= 256 or not 1 <= columns <= 256:
        raise DataError(f"{path} says {n} pictures of {rows} x {columns}; 1 to {EXAMPLES_MAX} of up to 256 x 256 are allowed")
    if len(pixels) < n * dim:
        raise DataError(f"{path} ends after {len(pixels) // dim} of {n} pictures")
    path, (labels,), classes = idx(folder, f"{part}-labels-idx1-ubyte", LABELS, 1)
    if labels != n:
        raise DataError(f"{path} says {labels} labels, but there are {n} pictures")
    if len(classes) < n:
        raise DataError(f"{path} is shorter than its {n} labels")
    bad = next((i for i in range(n) if classes[i] >= CLASSES), None)
    if bad is not None:
        raise DataError(f"{path}: label {bad} is {classes[bad]}; 0 to {CLASSES - 1} are allowed")
    return dim, [pixels[i * dim:(i + 1) * dim] + classes[i:i + 1] for i in range(n)]


def convert(path: str, out: str) -> None:
    """Raises DataError or OSError."""
    if not os.path.isdir(path):
        write(out, 0, DIGITS_DIM, DIGITS_TOP, csv_examples(path))
        return
    (dim, train), (other, test) = (idx_examples(path, part) for part in ("train", "t10k"))
    if dim != other:
        raise DataError(f"the pictures in {path} have {dim} pixels for training and {other} for testing")
    write(out, len(train), dim, 255, train + test)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: examples.py PATH OUT")
    try:
        convert(*sys.argv[1:])
    except (DataError, OSError) as e:
        sys.exit(f"examples: {e}")
