"""What the Python clients report to the test that runs them: checks, and the keys they got."""


def ok(condition, what):
    print(("ok" if condition else "not ok"), "-", what, flush=True)


def keys(table, pairs):
    """The client believes that the row of this name has this key."""
    for name, key in pairs:
        print("key", table, name, key, flush=True)


def are_distinct_and_rise(ids):
    return len(ids) > 1 and all(a < b for a, b in zip(ids, ids[1:]))


def are_beyond_floats(ids):
    """Whether a float, as JavaScript has, would not hold these."""
    return any(int(float(key)) != key for key in ids)


def done():
    print("done", flush=True)
