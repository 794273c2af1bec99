from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from qwp.judging.cache import Cache


def test_the_keys_that_were_used_last_are_cached() -> None:
    cache: Cache[int] = Cache(3)
    for number, key in enumerate("abc"):
        cache.add(key, number)
    assert cache.get("a") == 0
    cache.add("d", 3)
    assert [cache.get(key) for key in "abcd"] == [0, None, 2, 3]
    cache.clear()
    assert cache.get("a") is None


def test_the_first_value_of_a_key_stays() -> None:
    cache: Cache[list[int]] = Cache(2)
    first = cache.add("a", [])
    assert cache.add("a", [1]) is first
    assert cache.get("a") is first


def test_threads_share_it() -> None:
    cache: Cache[dict[int, int]] = Cache(4)

    def work(number: int) -> bool:
        # More keys than places: each thread pushes out those of the others.
        for step in range(500):
            key = f"key {(number + step) % 6}"
            cache.add(key, {})[number] = step
            found = cache.get(key)
            if found is not None and not isinstance(found, dict):
                return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(8)))
    assert sum(cache.get(f"key {number}") is not None for number in range(6)) == 4
