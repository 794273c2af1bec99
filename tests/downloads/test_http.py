"""HTTP requests: ranges, versions of a file, rates, redirects."""

from __future__ import annotations

from urllib.request import Request

import pytest

from qwp.downloads.http import (
    FileVersion,
    RateCheck,
    RefusedError,
    TooSlowError,
    TransientError,
    _Redirects,
    request_file,
)
from tests.downloads.conftest import VECTORS, WIKI
from tests.downloads.server import Plan, Served

ONE = FileVersion("http://x/y", '"a"', "Mon", 100)


def test_versions_of_a_file_are_distinguished() -> None:
    assert ONE.validator == '"a"'
    assert FileVersion("u", 'W/"a"', "Mon", None).validator == "Mon"
    assert FileVersion("u", 'W/"a"', None, None).validator is None
    assert ONE.is_same(FileVersion("http://x/y", None, None, None))
    assert not ONE.is_same(ONE.with_length(101))
    assert not ONE.is_same(FileVersion("http://x/y", '"b"', "Mon", 100))


def test_the_rate_is_checked_in_each_period() -> None:
    now = [0.0]
    rate = RateCheck(100.0, 60.0, clock=lambda: now[0])
    for second in range(1, 181):  # three periods at the minimum rate
        now[0] = float(second)
        rate.received(100)
    now[0] += 59.0
    rate.received(1)  # an incomplete period is not checked
    now[0] += 60.0
    with pytest.raises(TooSlowError, match="2 bytes came in 119 s, less than 100 bytes per second"):
        rate.received(1)
    now[0] += 60.0
    rate.received(6000)  # a new period


def test_a_long_pause_before_the_first_byte_counts() -> None:
    now = [0.0]
    rate = RateCheck(100.0, 60.0, clock=lambda: now[0])
    now[0] = 61.0
    with pytest.raises(TooSlowError, match="10 bytes came in 61 s"):
        rate.received(10)


def read_all(url: str, begin: int = 0, origin: FileVersion | None = None) -> tuple[int, bytes] | None:
    with request_file(url, begin, origin, 5.0, RateCheck(1.0, 60.0)) as answer:
        if answer is None:
            return None
        return answer.begin, b"".join(iter(answer.read, b""))


@pytest.fixture
def url(server: Served) -> str:
    return f"{server.url}/{WIKI.remote}"


def test_whole_files_and_ranges_are_requested(server: Served, url: str) -> None:
    assert read_all(url) == (0, VECTORS)
    origin = FileVersion(url, '"one"', None, len(VECTORS))
    assert read_all(url, 1000, origin) == (1000, VECTORS[1000:])
    assert server.asked == [(f"/{WIKI.remote}", None, None), (f"/{WIKI.remote}", "bytes=1000-", '"one"')]


def test_a_changed_file_is_sent_from_its_beginning(url: str) -> None:
    assert read_all(url, 1000, FileVersion(url, '"older"', None, len(VECTORS))) == (0, VECTORS)


def test_without_a_validator_no_range_is_requested(server: Served, url: str) -> None:
    assert read_all(url, 1000, FileVersion(url, None, None, len(VECTORS))) == (0, VECTORS)
    assert server.asked[-1][1] is None


def test_bytes_beyond_the_length_are_read(server: Served, url: str) -> None:
    server.plans = [Plan(length=1000)]
    assert read_all(url) == (0, VECTORS)


@pytest.mark.parametrize("ranges", ["wrong", "other", "refused"])
def test_answers_with_another_range_are_refused(server: Served, url: str, ranges: str) -> None:
    server.plans = [Plan(ranges=ranges)]
    assert read_all(url, 1000, FileVersion(url, '"one"', None, len(VECTORS))) is None


def test_an_answer_with_another_etag_is_refused(server: Served, url: str) -> None:
    server.plans = [Plan(ranges="forced", etag='"two"')]
    assert read_all(url, 1000, FileVersion(url, '"one"', None, len(VECTORS))) is None


@pytest.mark.parametrize(("status", "kind"), [(404, TransientError), (500, TransientError), (403, RefusedError)])
def test_statuses_are_transient_or_final(server: Served, url: str, status: int, kind: type[Exception]) -> None:
    server.plans = [Plan(status=status)]
    with pytest.raises(kind, match=f"the server answered {status}"):
        read_all(url)


@pytest.mark.parametrize("url", ["file:///etc/passwd", "ftp://127.0.0.1/x", "data:,x"])
def test_only_http_addresses_are_opened(url: str) -> None:
    with pytest.raises(TransientError, match="unknown url type"):
        read_all(url)


def test_https_addresses_are_opened() -> None:
    with pytest.raises(TransientError, match="Connection refused"):
        read_all("https://127.0.0.1:9/x")  # no server listens on this port


def test_redirects_from_https_to_http_are_refused() -> None:
    with pytest.raises(RefusedError, match="not protected"):
        _Redirects().redirect_request(Request("https://a/b"), None, 302, "", {}, "http://a/b")
    kept = _Redirects().redirect_request(Request("https://a/b"), None, 302, "", {}, "https://c/d")
    assert kept is not None
    assert kept.full_url == "https://c/d"
