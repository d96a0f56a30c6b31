# SPDX-License-Identifier: Apache-2.0
"""JSON values: change one at random, make one smaller."""

import copy

KEYS = ["a", "b", "c", "A", "maxPods", "clusterDNS", "evictionHard", "authentication", "webhook", "logging"]
KEYS += ["staticPodURLHeader", "enableServer", "registerWithTaints", "CLUSTERDNS", "syncFrequency", "options", "conntrack"]
SCALARS = [None, True, False, 0, 1, -1, 2**53 + 1, 2**63, 1.5, 1e21, "", "x", "a", "1", "replace", "delete"]
DIRECTIVES = {
    "$patch": ["replace", "delete", "merge", None, "x", 1],
    "$retainKeys": [[], ["a"], ["a", "b"], ["a", "$patch"], "a", None],
    "$deleteFromPrimitiveList/a": [[], ["x"], [1, "x"], [None], "x", None, {}],
    "$deleteFromPrimitiveList/clusterDNS": [["a"], ["x", "b"], [], [["a"]]],
    "$deleteFromPrimitiveList": [["a"]],
    "$setElementOrder/a": [[], ["x"], [1, "x"], "x", None],
    "$setElementOrder/clusterDNS": [["b", "a"], ["a"], ["x", "a"], []],
    "$setElementOrder": [["a"]],
}


def random_value(rng, depth=0, special=None):
    kind = rng.random()
    if depth > 3 or kind < 0.5:
        return rng.choice(SCALARS)
    if kind < 0.7:
        return [random_value(rng, depth + 1, special) for _ in range(rng.randint(0, 3))]
    return {key: value for key, value in (random_member(rng, depth, special) for _ in range(rng.randint(0, 3)))}


def random_member(rng, depth, special):
    if special and rng.random() < 0.25:
        key = rng.choice(list(special))
        if rng.random() < 0.8:
            return key, copy.deepcopy(rng.choice(special[key]))
        return key, random_value(rng, depth + 1, special)
    return rng.choice(KEYS), random_value(rng, depth + 1, special)


def places(value, path=()):
    """Every (path) in a value, the root first."""
    yield path
    if isinstance(value, dict):
        for key, member in value.items():
            yield from places(member, path + (key,))
    elif isinstance(value, list):
        for i, member in enumerate(value):
            yield from places(member, path + (i,))


def at(value, path):
    for step in path:
        value = value[step]
    return value


def put(value, path, new):
    if not path:
        return new
    value = copy.deepcopy(value)
    at(value, path[:-1])[path[-1]] = new
    return value


def drop(value, path):
    value = copy.deepcopy(value)
    del at(value, path[:-1])[path[-1]]
    return value


def mutate(rng, value, other, special=None):
    path = rng.choice(list(places(value)))
    here = at(value, path)
    choice = rng.random()
    if choice < 0.15 and path:
        return drop(value, path)
    if choice < 0.35:
        return put(value, path, copy.deepcopy(at(other, rng.choice(list(places(other))))))
    if choice < 0.75 and isinstance(here, dict):
        key, member = random_member(rng, len(path), special)
        return put(value, path, {**here, key: member})
    if choice < 0.75 and isinstance(here, list):
        new = list(here)
        new.insert(rng.randint(0, len(new)), random_value(rng, len(path), special))
        return put(value, path, new)
    if path or choice > 0.95:
        return put(value, path, random_value(rng, len(path), special))
    return value


def smaller(value):
    for path in places(value):
        here = at(value, path)
        if path:
            yield drop(value, path)
        if isinstance(here, (dict, list)) and here:
            yield put(value, path, type(here)())
            for member in here.values() if isinstance(here, dict) else here:
                yield put(value, path, member)
        elif isinstance(here, str) and len(here) > 1:
            yield put(value, path, here[0])
