# SPDX-License-Identifier: Apache-2.0
"""One class per operation: how to generate a request, how to shrink it, when two replies are alike.

To add an operation, write a class with these methods and name it in OPS; answer.c needs a row with the same name.
"""

import copy

import jsontext
import values
import yamltext
from peer import alike


class Op:
    name = ""
    asks = ""  # the operation of its requests; "" = the class's own
    compared = ("ok", "out")
    asked_again = 40  # upstream's answer to some questions depends on the order of a Go map, which changes each time

    def __init__(self, seeds):
        self.seeds = seeds

    def prepare(self, oracle):
        """Called once with the oracle's program, before the first request."""

    def recorded(self, want):
        """The oracle's reply as stored in a vectors file."""
        return want

    def generate(self, rng):
        """A new request, from a seed or from scratch."""
        raise NotImplementedError

    def smaller(self, request):
        """Requests that are slightly smaller than this one, the smallest first."""
        raise NotImplementedError

    def for_oracle(self, request):
        """The same question in the oracle's format."""
        return request

    def of_oracle(self, reply):
        """The oracle's reply in our format."""
        return reply

    def alike(self, request, want, got):
        """We choose the words of an error; whether there is one must agree."""
        if got is None:
            return False
        return all(alike(want.get(key), got.get(key)) for key in self.compared)


class TextOp(Op):
    """Operations on one text."""

    def request(self, text):
        return {"op": self.name, "text": text}

    def smaller(self, request):
        for text in yamltext.shorter(request["text"]):
            yield self.request(text)


class Yaml(TextOp):
    name = "yaml"
    compared = ("ok", "out", "strictOK")

    def generate(self, rng):
        return self.request(yamltext.generate(rng, [seed.get("text", "") for seed in self.seeds]))


class Json(TextOp):
    """The value of an unknown field: the kubelet reads it (leniently) and ignores it."""

    name = "json"
    compared = ("ok",)
    head = '{"kind":"KubeletConfiguration","apiVersion":"kubelet.config.k8s.io/v1beta1","unknown":'

    def generate(self, rng):
        return self.request(jsontext.generate(rng))

    def for_oracle(self, request):
        return {"op": "kubelet", "base": self.head + request["text"] + "}"}

    def of_oracle(self, reply):
        return {"ok": reply.get("stage") != "load"}


class JsonStrict(Json):
    """The same in a drop-in: duplicates and numbers out of range are refused."""

    name = "jsonstrict"

    def for_oracle(self, request):
        dropin = {"path": "a.conf", "text": self.head + request["text"] + "}"}
        return {"op": "kubelet", "base": self.head + "1}", "dropins": [dropin]}

    def of_oracle(self, reply):
        return {"ok": reply.get("stage") not in ("load", "merge")}


class PatchOp(Op):
    """Operations on a target and a patch."""

    def generate(self, rng):
        request = copy.deepcopy(rng.choice(self.seeds))
        for _ in range(rng.randint(1, 4)):
            side = rng.choice(("target", "patch"))
            other = rng.choice(self.seeds).get(rng.choice(("target", "patch")))
            request[side] = self.mutate(rng, request.get(side), other)
        return request

    def mutate(self, rng, value, other):
        return values.mutate(rng, value, other)

    def smaller(self, request):
        for side in ("target", "patch"):
            for value in values.smaller(request.get(side)):
                yield {**request, side: value}


class JsonMergePatch(PatchOp):
    name = "jmp"


class StrategicMergePatch(PatchOp):
    name = "smp"

    def mutate(self, rng, value, other):
        return values.mutate(rng, value, other, values.DIRECTIVES)


OPS = {op.name: op for op in (Yaml, Json, JsonStrict, JsonMergePatch, StrategicMergePatch)}
