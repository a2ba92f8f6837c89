"""OPR: filters that are half understood."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast
from unicodedata import normalize

import msgspec
import numpy as np
from memassay.spec.filters import Kind, kind_of
from memassay.spec.operators import Among, And, Node, Or, Range
from memassay.spec.types import Metadata

from .adapter import replaced
from .engine import Engine, conditions_of, items_of
from .mutant import mutant

KNOWN = ("$eq", "$ne", "$gt", "$gte", "$lt", "$lte", "$in", "$nin")


# OPR-1


@mutant("OPR-1", "langchain-ai/langgraphjs#2504")
class _IgnoresUnknownOperators(Engine):
    """An operator that the translator does not know adds no condition."""

    def where(self, given: Any) -> Any:
        if not isinstance(given, dict):
            return given
        kept: dict[Any, Any] = {}
        for key, item in conditions_of(given):
            if key in ("$and", "$or"):
                kept[key] = [self.where(part) for part in items_of(item)] if isinstance(item, list) else item
                continue
            operators = conditions_of(item)
            known = {name: operand for name, operand in operators if name in KNOWN}
            if known or not operators:
                kept[key] = known or item
        return kept


@mutant("OPR-1", "langchain-ai/langgraph#8829")
class _IgnoresUnknownCombinators(Engine):
    """$xor, $not and the like at the top are left out: all rows come back."""

    def where(self, given: Any) -> Any:
        if not isinstance(given, dict):
            return given
        pairs = conditions_of(given)
        return {
            key: item
            for key, item in pairs
            if not isinstance(key, str) or not key.startswith("$") or key in ("$and", "$or")
        }


@mutant("OPR-1", "langchain-ai/langchain-postgres#216")
class _OneValueAKey(Engine):
    """Values are bound by the key's name: of two conditions on a key, both get the last value."""

    def holds(self, node: Node, metadata: Metadata) -> bool:
        return super().holds(_bound(node, _last(node)), metadata)


def _last(node: Node) -> dict[str, Any]:
    """By key and shape, what the last condition compares with."""
    match node:
        case And() | Or():
            found: dict[str, Any] = {}
            for part in node.nodes:
                found |= _last(part)
            return found
        case Among():
            return {f"{node.key} in": node.any_of}
        case Range():
            return {node.key: node.operand}


def _bound(node: Node, last: dict[str, Any]) -> Node:
    match node:
        case And() | Or():
            return replaced(node, nodes=tuple(_bound(part, last) for part in node.nodes))
        case Among():
            return replaced(node, any_of=last[f"{node.key} in"])
        case Range():
            return replaced(node, operand=last[node.key])


@mutant("OPR-1")
class _KeysInsideOrAreOred(Engine):
    """{$or: [{a: 1, b: 2}]} is read as a = 1 or b = 2."""

    def where(self, given: Any) -> Any:
        if not isinstance(given, dict):
            return given
        return {key: self.split(item) if key == "$or" else item for key, item in conditions_of(given)}

    def split(self, given: Any) -> Any:
        """The parts of an $or, each with one key."""
        parts = items_of(given)
        if not all(conditions_of(part) for part in parts):
            return given
        return [{key: item} for part in parts for key, item in conditions_of(part)] if parts else given


@mutant("OPR-1")
class _EmptyObjectsHold(Engine):
    """{k: {}} is no condition instead of an error."""

    def where(self, given: Any) -> Any:
        if not isinstance(given, dict):
            return given
        return {key: item for key, item in conditions_of(given) if item != {} or not isinstance(key, str)}


@mutant("OPR-1")
class _CutsLongOperands(Engine):
    """A range's operand is cut at 1,024 characters instead of refused."""

    def where(self, given: Any) -> Any:
        if isinstance(given, dict):
            return {key: self.where(item) for key, item in conditions_of(given)}
        if isinstance(given, list):
            return [self.where(item) for item in cast("list[Any]", given)]
        return given[:1024] if isinstance(given, str) and len(given) == 1025 else given


@mutant("OPR-1")
class _FlattensDeepFilters(Engine):
    """Below the third level $or is read as $and: what is nested deeper joins the conditions around it."""

    def holds(self, node: Node, metadata: Metadata) -> bool:
        return super().holds(_flattened(node, 1), metadata)


def _flattened(node: Node, level: int) -> Node:
    match node:
        case And() | Or():
            parts = tuple(_flattened(part, level + 1) for part in node.nodes)
            return And(parts) if level > 3 and parts else replaced(node, nodes=parts)
        case _:
            return node


# OPR-2


def _alike(node: Among, metadata: Metadata, kind: Kind, fold: Callable[[Any], object]) -> bool:
    """The condition, where values of this kind are compared by what they are folded to."""
    stored = metadata.get(node.key)
    if kind_of(stored) != kind:
        return node.matches(metadata)
    return (fold(stored) in [fold(equals.value) for equals in node.any_of if equals.kind == kind]) != node.negated


@mutant("OPR-2")
class _ComparesSinglePrecision(Engine):
    """Numbers are compared as float32: 16777217 is 16777216."""

    def among(self, node: Among, metadata: Metadata) -> bool:
        with np.errstate(over="ignore"):
            return _alike(node, metadata, "number", np.float32)


@mutant("OPR-2")
class _ComparesFifteenDigits(Engine):
    """Numbers are compared with 15 digits: 0.1 + 0.2 is 0.3."""

    def among(self, node: Among, metadata: Metadata) -> bool:
        return _alike(node, metadata, "number", lambda number: f"{number:.15g}")


@mutant("OPR-2")
class _NormalisesText(Engine):
    """Strings are compared in Unicode's normal form C: a letter is the same with its accent apart."""

    def among(self, node: Among, metadata: Metadata) -> bool:
        return _alike(node, metadata, "string", lambda text: normalize("NFC", text))


@mutant("OPR-2")
class _ComparesTheStart(Engine):
    """Strings are compared by their first 1,000 characters."""

    def among(self, node: Among, metadata: Metadata) -> bool:
        return _alike(node, metadata, "string", lambda text: text[:1000])


@mutant("OPR-2")
class _KeysIgnoreCase(Engine):
    """A condition on k is answered by K, too."""

    def among(self, node: Among, metadata: Metadata) -> bool:
        folded = {key.lower(): value for key, value in metadata.items()}
        return replaced(node, key=node.key.lower()).matches(folded)


@mutant("OPR-2")
class _FirstTwentyKeys(Engine):
    """Only the first twenty keys of an object can be asked for."""

    def holds(self, node: Node, metadata: Metadata) -> bool:
        return super().holds(node, dict(list(metadata.items())[:20]))


@mutant("OPR-2", "headroomlabs-ai/headroom#3240")
class _ComparesText(Engine):
    """$eq and $in compare what `->>` gives: 1 is "1", true is "true"."""

    def among(self, node: Among, metadata: Metadata) -> bool:
        stored = metadata.get(node.key)
        if node.key not in metadata or stored is None or isinstance(stored, dict | list):
            return node.matches(metadata)
        texts = [_text(equals.value) for equals in node.any_of if equals.value is not None]
        return (_text(stored) in texts) != node.negated


@mutant("OPR-2", "headroomlabs-ai/headroom#3240")
class _BooleansAreIntegers(Engine):
    """SQLite's booleans: true = 1, and true > 0."""

    def among(self, node: Among, metadata: Metadata) -> bool:
        return any(_number(metadata.get(node.key)) == equals.value for equals in node.any_of) != node.negated

    def range(self, node: Range, metadata: Metadata) -> bool:
        return node.matches({key: _number(value) for key, value in metadata.items()})


@mutant("OPR-2")
class _TypesHaveAnOrder(Engine):
    """Every string is greater than every number."""

    def range(self, node: Range, metadata: Metadata) -> bool:
        kinds = (kind_of(metadata.get(node.key)), node.operand.kind)
        if kinds == ("string", "number"):
            return node.operator in ("$gt", "$gte")
        return node.operator in ("$lt", "$lte") if kinds == ("number", "string") else node.matches(metadata)


@mutant("OPR-2")
class _RangesExcludeTheirEnds(Engine):
    """$gte is $gt, $lte is $lt."""

    def range(self, node: Range, metadata: Metadata) -> bool:
        return replaced(node, operator={"$gte": "$gt", "$lte": "$lt"}.get(node.operator, node.operator)).matches(
            metadata
        )


@mutant("OPR-2", "mastra-ai/mastra#18466")
class _CastsFail(Engine):
    """A range of numbers casts whatever is stored: a string is an error."""

    def range(self, node: Range, metadata: Metadata) -> bool:
        if node.operand.kind == "number" and kind_of(metadata.get(node.key)) == "string":
            float(metadata[node.key])
            raise RuntimeError("invalid input syntax for type double precision")
        return node.matches(metadata)


@mutant("OPR-2", "elastic/elasticsearch#24256")
class _LongStringsAreNotIndexed(Engine):
    """ignore_above 255: longer strings equal nothing."""

    def among(self, node: Among, metadata: Metadata) -> bool:
        stored = metadata.get(node.key)
        return node.matches({} if isinstance(stored, str) and len(stored) > 255 else metadata)


@mutant("OPR-2", "deepset-ai/haystack-core-integrations#590")
class _OrNeedsEveryField(Engine):
    """$or drops rows that lack one of the fields it names."""

    def holds(self, node: Node, metadata: Metadata) -> bool:
        parts = node.nodes if isinstance(node, Or) else ()
        keys = [part.key for part in parts if isinstance(part, Among | Range)]
        return all(key in metadata for key in keys) and super().holds(node, metadata)


@mutant("OPR-2")
class _OrIsAnd(Engine):
    """$or is translated to must: every part has to hold."""

    def holds(self, node: Node, metadata: Metadata) -> bool:
        return super().holds(And(node.nodes) if isinstance(node, Or) and node.nodes else node, metadata)


# OPR-2a


@mutant("OPR-2a")
class _OrdersUtf16Units(Engine):
    """Strings are ordered by UTF-16 code units, as Java and JavaScript do."""

    def range(self, node: Range, metadata: Metadata) -> bool:
        stored, operand = metadata.get(node.key), node.operand.value
        if not isinstance(stored, str) or not isinstance(operand, str):
            return node.matches(metadata)
        # Bytes stand for the strings: latin-1 keeps their order.
        left, right = (text.encode("utf-16-be").decode("latin-1") for text in (stored, operand))
        return replaced(node, operand=replaced(node.operand, value=right)).matches({node.key: left})


@mutant("OPR-2a")
class _OrdersByALocale(Engine):
    """Strings are ordered by the database's collation: case comes last."""

    def range(self, node: Range, metadata: Metadata) -> bool:
        stored, operand = metadata.get(node.key), node.operand.value
        if not isinstance(stored, str) or not isinstance(operand, str):
            return node.matches(metadata)
        left, right = (text.casefold() + text.swapcase() for text in (stored, operand))
        return replaced(node, operand=replaced(node.operand, value=right)).matches({node.key: left})


# OPR-3


@mutant("OPR-3", "run-llama/llama_index#21792")
class _NullPropagates(Engine):
    """Rows without the key satisfy neither $eq nor $ne, neither $in nor $nin."""

    def among(self, node: Among, metadata: Metadata) -> bool:
        return (node.key in metadata or not node.any_of) and node.matches(metadata)


@mutant("OPR-3", "mastra-ai/mastra#18466")
class _ContainersSatisfyNothing(Engine):
    """Stored arrays and objects satisfy no condition, $ne and $nin neither."""

    def among(self, node: Among, metadata: Metadata) -> bool:
        return (not isinstance(metadata.get(node.key), list | dict) or not node.any_of) and node.matches(metadata)


@mutant("OPR-3", "run-llama/llama_index#21750")
class _NotEqualWithinAType(Engine):
    """$ne holds only for values of the operand's type."""

    def among(self, node: Among, metadata: Metadata) -> bool:
        kinds = {equals.kind for equals in node.any_of}
        alike = not kinds or node.key not in metadata or kind_of(metadata[node.key]) in kinds
        return node.matches(metadata) and (alike or not node.negated)


@mutant("OPR-3", "chroma-core/chroma#1252")
class _NinIsIgnored(Engine):
    """$nin returns the entire collection."""

    def among(self, node: Among, metadata: Metadata) -> bool:
        return node.matches(metadata) or (node.negated and len(node.any_of) > 1)


@mutant("OPR-3", "chroma-core/chroma#1424")
class _NinExcludesOneValue(Engine):
    """$nin excludes the first value of its list only."""

    def among(self, node: Among, metadata: Metadata) -> bool:
        return replaced(node, any_of=node.any_of[:1] if node.negated else node.any_of).matches(metadata)


# OPR-4


@mutant("OPR-4", "deepset-ai/haystack-core-integrations#590")
class _EmptyOrIsEverything(Engine):
    """$or [] is no condition."""

    def holds(self, node: Node, metadata: Metadata) -> bool:
        return (isinstance(node, Or) and not node.nodes) or super().holds(node, metadata)


@mutant("OPR-4", "stargate/data-api#625")
class _EmptyInIsEverything(Engine):
    """$in [] is no condition."""

    def among(self, node: Among, metadata: Metadata) -> bool:
        return not node.any_of or node.matches(metadata)


@mutant("OPR-4", "SAP/langchain-integration-for-sap-hana-cloud#17")
class _EmptyListsAreSyntaxErrors(Engine):
    """$in [] and $nin [] become IN (), which the database refuses."""

    def among(self, node: Among, metadata: Metadata) -> bool:
        if not node.any_of:
            raise RuntimeError('syntax error at or near ")"')
        return node.matches(metadata)


@mutant("OPR-4", "stargate/data-api#625")
class _EmptyNinIsNothing(Engine):
    """$nin [] matches no row."""

    def among(self, node: Among, metadata: Metadata) -> bool:
        return bool(node.any_of) and node.matches(metadata)


@mutant("OPR-4")
class _EmptyFiltersAreNothing(Engine):
    """{} inside $or and $and [] match no row."""

    def holds(self, node: Node, metadata: Metadata) -> bool:
        return node != And(()) and super().holds(node, metadata)

    def matching(self, name: str, node: Node) -> Any:
        return dict(self.state.rows[name]) if node == And(()) else super().matching(name, node)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _number(value: Any) -> Any:
    return int(value) if isinstance(value, bool) else value
