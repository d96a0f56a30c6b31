# SPDX-License-Identifier: Apache-2.0
"""Documents that keep their notation: duplicate keys, the order of keys, the spelling of numbers."""

import json


class Raw(str):
    """Printed as is: a number, a word, a YAML scalar."""


class Members(list):
    """A map: a list of (key, value)."""


def parse(text):
    """Raises ValueError if the text is not JSON."""
    return json.loads(text, parse_int=Raw, parse_float=Raw, parse_constant=Raw, object_pairs_hook=Members)


def dump(value):
    if isinstance(value, Raw):
        return str(value)
    if isinstance(value, Members):
        return "{" + ", ".join(f"{json.dumps(key)}: {dump(member)}" for key, member in value) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(dump(item) for item in value) + "]"
    if isinstance(value, dict):
        return dump(Members(value.items()))
    return json.dumps(value)


def block(members, indent=0):
    """The tree as block YAML; lists in flow form."""
    lines, pad = [], " " * indent
    for key, value in members:
        name = key if key.isidentifier() else json.dumps(key, ensure_ascii=False)
        if isinstance(value, Members) and value:
            lines.append(f"{pad}{name}:\n{block(value, indent + 2)}")
        else:
            lines.append(f"{pad}{name}: {dump(value)}\n")
    return "".join(lines)


def places(value, path=()):
    """Every path (indexes) in a tree, the root first."""
    yield path
    if isinstance(value, Members):
        for i, (_, member) in enumerate(value):
            yield from places(member, path + (i,))
    elif isinstance(value, list):
        for i, item in enumerate(value):
            yield from places(item, path + (i,))


def at(value, path):
    for i in path:
        value = value[i][1] if isinstance(value, Members) else value[i]
    return value


def put(value, path, new):
    """A copy with @new at @path."""
    if not path:
        return new
    copy = type(value)(value)
    if isinstance(value, Members):
        copy[path[0]] = (value[path[0]][0], put(value[path[0]][1], path[1:], new))
    else:
        copy[path[0]] = put(value[path[0]], path[1:], new)
    return copy


def drop(value, path):
    parent = at(value, path[:-1])
    copy = type(parent)(parent)
    del copy[path[-1]]
    return put(value, path[:-1], copy)


def smaller(value):
    for path in places(value):
        if not path:
            continue
        yield drop(value, path)
        here = at(value, path)
        if isinstance(here, str) and not isinstance(here, Raw) and len(here) > 1:
            for shorter in ("", here[: len(here) // 2], here[1:], here[:-1]):
                yield put(value, path, shorter)
