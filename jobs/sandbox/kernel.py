"""What the Linux kernel offers to lock a process in, as plain functions that say if it worked."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
from functools import cache
from pathlib import Path

NEW_USER, NEW_PID, NEW_NET, NEW_MOUNTS = 0x10000000, 0x20000000, 0x40000000, 0x00020000
_READ_ONLY, _NO_SUID, _NO_DEVICES, _REMOUNT, _BIND = 1, 2, 4, 32, 4096
_RECURSIVE, _PRIVATE = 16384, 1 << 18
_SHARED_PLACES = (b"/tmp", b"/var/tmp")
_SET_PDEATHSIG, _SET_DUMPABLE, _SET_CHILD_SUBREAPER, _SET_NO_NEW_PRIVS = 1, 4, 36, 38

_LANDLOCK_CREATE, _LANDLOCK_ADD, _LANDLOCK_RESTRICT = 444, 445, 446
_LANDLOCK_PATH_BENEATH = 1
_LANDLOCK_VERSION = 1
# Bits of linux/landlock.h: WRITE_FILE, REMOVE_DIR, REMOVE_FILE, MAKE_CHAR … MAKE_SYM; from the
# second ABI on REFER, from the third on TRUNCATE.
_WRITE_FILE, _REMOVE_FILE, _MAKE_SOCKET, _WRITES = 1 << 1, 1 << 5, 1 << 9, 0x1FF2
_REFER, _TRUNCATE = 1 << 13, 1 << 14
_ABI_REFER, _ABI_TRUNCATE = 2, 3


@cache
def _libc() -> ctypes.CDLL | None:
    return ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


def die_with_parent() -> None:
    """The kernel kills this process when the *thread* that forked it ends."""
    _prctl(_SET_PDEATHSIG, signal.SIGKILL)


def adopt_orphans() -> None:
    """Descendants whose parent died become children of this process."""
    _prctl(_SET_CHILD_SUBREAPER, 1)


def renounce_privileges() -> None:
    """No program that is started from here gains rights; no core dump, no tracing."""
    _prctl(_SET_NO_NEW_PRIVS, 1)
    _prctl(_SET_DUMPABLE, 0)


def unshare(flags: int) -> bool:
    """New namespaces; false where the kernel or a container's policy refuses."""
    libc = _libc()
    return libc is not None and libc.unshare(flags) == 0


def enter_namespace(fd: int, kind: int) -> bool:
    """Let later children be born in the namespace behind ``fd``."""
    libc = _libc()
    return libc is not None and libc.setns(fd, kind) == 0


def keep_identity(uid: int, gid: int) -> None:
    """In a new user namespace, stay who we were: files are opened and made as before."""
    own = Path("/proc/self")
    with contextlib.suppress(OSError):
        (own / "setgroups").write_text("deny")
    for name, number in (("uid_map", uid), ("gid_map", gid)):
        with contextlib.suppress(OSError):
            (own / name).write_text(f"{number} {number} 1")


def be_first_to_go() -> None:
    """If memory runs out, the kernel takes this process before the worker."""
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")


def address_space_bytes() -> int:
    """What this process maps now; 0 where that can't be known."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
    except OSError:
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")


def own_children() -> list[int]:
    """The direct children of this process; empty where that can't be known."""
    try:
        return [int(pid) for pid in Path("/proc/thread-self/children").read_text().split()]
    except OSError:
        return []


def close_shared_places(folder: Path) -> None:
    """Make ``/tmp`` and its like unwritable here, also to programs that only ask (access)."""
    libc = _libc()
    if libc is None or not unshare(NEW_MOUNTS):
        return
    own = os.fsencode(folder)
    libc.mount(b"none", b"/", None, _RECURSIVE | _PRIVATE, None)
    libc.mount(own, own, None, _BIND, None)
    closed = _REMOUNT | _BIND | _READ_ONLY | _NO_SUID | _NO_DEVICES
    for place in _SHARED_PLACES:
        libc.mount(place, place, None, _BIND | _RECURSIVE, None)
        libc.mount(b"none", place, None, closed, None)


def write_only_beneath(folder: Path) -> bool:
    """From here on nothing outside ``folder`` can be written, made or removed (Landlock)."""
    libc = _libc()
    abi = libc.syscall(_LANDLOCK_CREATE, None, 0, _LANDLOCK_VERSION) if libc else 0
    if libc is None or abi < 1:
        return False
    truncate = _TRUNCATE if abi >= _ABI_TRUNCATE else 0
    access = _WRITES | truncate | (_REFER if abi >= _ABI_REFER else 0)
    ruleset = libc.syscall(_LANDLOCK_CREATE, ctypes.byref(ctypes.c_uint64(access)), 8, 0)
    if ruleset < 0:
        return False
    try:
        # Programs want to write to /dev/null; they can't make devices there.
        _allow_beneath(libc, ruleset, (Path("/dev"), _WRITE_FILE | truncate))
        _allow_beneath(libc, ruleset, (folder, access))
        for place in _SHARED_PLACES:
            # LibreOffice insists on a socket here unless it finds the place closed.
            _allow_beneath(libc, ruleset, (Path(os.fsdecode(place)), _MAKE_SOCKET | _REMOVE_FILE))
        return bool(libc.syscall(_LANDLOCK_RESTRICT, ruleset, 0) == 0)
    finally:
        os.close(ruleset)


class _PathBeneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed_access", ctypes.c_uint64), ("parent_fd", ctypes.c_int32))


def _allow_beneath(libc: ctypes.CDLL, ruleset: int, rule: tuple[Path, int]) -> None:
    folder, access = rule
    fd = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        beneath = _PathBeneath(access, fd)
        libc.syscall(_LANDLOCK_ADD, ruleset, _LANDLOCK_PATH_BENEATH, ctypes.byref(beneath), 0)
    finally:
        os.close(fd)


def _prctl(option: int, value: int) -> None:
    libc = _libc()
    if libc is not None:
        libc.prctl(option, value, 0, 0, 0)
