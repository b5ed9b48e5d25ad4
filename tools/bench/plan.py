# SPDX-License-Identifier: GPL-2.0-or-later
"""What is measured: places (a pair of labs each) and the rows measured there."""

from dataclasses import dataclass, field

KIB, MIB = 1 << 10, 1 << 20
UNLIMITED = "unlimited"
LIMITED = "1gbit/256kb"


@dataclass(frozen=True)
class Row:
    """One tensor size on one kind of link.

    link: "unlimited", or RATE/BURST as tc writes them
    coexist: also measure the peers through ports that carry our program
    strain: libsaina alone, with and without "overload" or "loss" (strain.py); "tcp": other
        traffic, with and without our program (stream.py); "": none
    extra: no bar needs it (bars.py), so it is what is left out first for want of time
    """

    link: str
    size: int
    coexist: bool = False
    strain: str = ""
    extra: bool = False

    def __str__(self) -> str:
        what = size_text(self.size) if self.size else "TCP"
        return f"{self.link}, {what}" + (f", {self.strain}" if self.strain and self.size else "")


@dataclass
class Place:
    """Workers on a bridge; what does not change while its rows are measured.

    hook: of the ports with our program, as `saina port set' has it
    """

    bridge: str
    mtu: int
    workers: int
    rows: list[Row] = field(default_factory=list)
    hook: str = "auto"

    def __str__(self) -> str:
        bridge = {"linux": "Linux bridge", "ovs": "Open vSwitch (userspace)"}[self.bridge]
        hook = "" if self.hook == "auto" else f", hook {self.hook}"
        return f"{bridge}, MTU {self.mtu}, {self.workers} workers{hook}"


def size_text(size: int) -> str:
    """64 KiB, 4 MiB, ..."""
    return f"{size // MIB} MiB" if size % MIB == 0 else f"{size / KIB:g} KiB"


def rows(link: str, sizes, coexist=(), extra=()) -> list[Row]:
    return [Row(link, s, s in coexist, extra=s in extra) for s in sizes]


def full() -> list[Place]:
    """Under 30 minutes on 2 cores.  What the bars are about comes first."""
    return [common(4), common(8), common(16), common(2), *xdp(), ovs(), jumbo(4), jumbo(8)]


def common(n: int) -> Place:
    """A Linux bridge with tc, MTU 1500."""
    place = Place("linux", 1500, n)
    both = (64 * KIB, 16 * MIB) if n in (4, 8) else ()
    extra = {2: (64 * KIB, MIB, 4 * MIB, 16 * MIB, 64 * MIB), 4: (MIB,), 8: (), 16: (64 * KIB, MIB)}[n]
    if n <= 8:
        place.rows += rows(LIMITED, (4 * MIB, 16 * MIB), (4 * MIB,) if n == 4 else ())
        place.rows.append(Row(LIMITED, 4 * MIB, strain="loss"))
    else:
        place.rows += rows(LIMITED, (4 * MIB,))
        place.rows.append(Row(UNLIMITED, 4 * MIB, strain="overload"))
    if n == 4:
        place.rows += rows(LIMITED, (64 * MIB,))
    if n == 2:
        place.rows.append(Row(UNLIMITED, 0, strain="tcp"))
    place.rows += rows(UNLIMITED, (16 * MIB, 64 * KIB, 4 * MIB, 64 * MIB, MIB), both, extra)
    if n == 4:
        place.rows.append(Row("1gbit/32kb", 4 * MIB, extra=True))
    place.rows += rows(LIMITED, (64 * KIB,), (), () if n == 8 else (64 * KIB,))
    return place


def xdp() -> list[Place]:
    """What is on a Linux bridge's ports where tc cannot be used, and on network cards."""
    places = []
    for mtu, n, sizes in (1500, 4, (16 * MIB, 4 * MIB)), (9000, 4, (16 * MIB, 4 * MIB)), (1500, 8, (16 * MIB,)):
        place = Place("linux", mtu, n, rows(UNLIMITED, sizes, sizes), hook="xdp")
        if (mtu, n) == (1500, 4):
            place.rows.append(Row(UNLIMITED, 0, strain="tcp", extra=True))
        places.append(place)
    return places


def ovs() -> Place:
    """No bar is about it, but the bench must have it."""
    place = Place("ovs", 1500, 4, rows(UNLIMITED, (4 * MIB,), (4 * MIB,)) + rows(LIMITED, (4 * MIB,)))
    place.rows += rows(UNLIMITED, (16 * MIB, 64 * KIB), (), (16 * MIB, 64 * KIB))
    return place


def jumbo(n: int) -> Place:
    place = Place("linux", 9000, n, rows(LIMITED, (4 * MIB,), (), (4 * MIB,)))
    sizes = (16 * MIB, 4 * MIB, 64 * KIB)
    place.rows += rows(UNLIMITED, sizes, (16 * MIB,) if n == 4 else (), sizes)
    return place


def quick() -> list[Place]:
    """Under 3 minutes."""
    return [
        Place("linux", 1500, 4, rows(UNLIMITED, (64 * KIB, 4 * MIB, 16 * MIB), (16 * MIB,)) + rows(LIMITED, (4 * MIB,))),
        Place("linux", 1500, 8, rows(UNLIMITED, (64 * KIB, 4 * MIB, 16 * MIB)) + rows(LIMITED, (4 * MIB,))),
    ]


def chosen(bridges, hooks, mtus, workers, links, sizes, strains) -> list[Place]:
    """Every combination of what the command line says."""
    return [
        Place(b, m, n, [Row(link, s, not strains, x) for link in links for s in sizes for x in strains or [""]], h)
        for b in bridges for h in hooks for m in mtus for n in workers
    ]
