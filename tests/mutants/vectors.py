"""VEC: indices that lose rows, keep dead ones, or score by another measure."""

from __future__ import annotations

import contextlib
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from memassay.spec.errors import AlreadyExists, IndexNotFound, InvalidFilter, InvalidVector, Unsupported
from memassay.spec.index_requests import NewIndex, VectorQuery
from memassay.spec.operators import EVERYTHING, Node
from memassay.spec.reference_index import Entry
from memassay.spec.types import IndexDescription, NewVector, VectorHit
from memassay.spec.vectors import Metric, Vector, scores

from .adapter import replaced
from .engine import Engine, Scored
from .mutant import mutant

EF_SEARCH = 40


# VEC-1


@mutant("VEC-1")
class _CreatingAgainWipes(Engine):
    """create_index of an index that exists drops its rows."""

    def create_index(self, name: str, **given: Any) -> None:
        super().create_index(name, **given)
        self.state.rows[name] = {}


@mutant("VEC-1", "mastra-ai/mastra#11854")
class _CreatingAnotherIsSilent(Engine):
    """create_index with another dimension or metric does nothing."""

    def create_index(self, name: str, **given: Any) -> None:
        with contextlib.suppress(AlreadyExists):
            super().create_index(name, **given)


@mutant("VEC-1", "mastra-ai/mastra#22143")
class _CreatingAnotherReplaces(Engine):
    """create_index with another dimension says AlreadyExists, but the first is gone."""

    def create_index(self, name: str, **given: Any) -> None:
        try:
            super().create_index(name, **given)
        except AlreadyExists:
            self.state.rows[name] = {}
            raise


@mutant("VEC-1")
class _CountsUpserts(Engine):
    """describe_index counts what was ever stored: deleted rows are still in it."""

    def upsert_vectors(self, name: str, vectors: Sequence[NewVector]) -> int:
        stored = super().upsert_vectors(name, vectors)
        self._ever = max(self.__dict__.get("_ever", 0), len(self.state.rows[name]))
        return stored

    def describe_index(self, name: str) -> IndexDescription:
        described = super().describe_index(name)
        return replaced(described, count=max(described.count, self.__dict__.get("_ever", 0)))


@mutant("VEC-1", "mastra-ai/mastra#13039")
class _UnknownIndicesAreEmpty(Engine):
    """A query of an unknown index finds nothing instead of failing."""

    def query_vectors(self, name: str, vector: Sequence[float], **given: Any) -> tuple[VectorHit, ...]:
        try:
            return super().query_vectors(name, vector, **given)
        except IndexNotFound:
            return ()


@mutant("VEC-1")
class _DroppedRowsComeBack(Engine):
    """drop_index removes the entry in the catalogue; the rows are there when the name is used again."""

    def drop_index(self, name: str) -> None:
        self._kept = {**self.__dict__.get("_kept", {}), name: self.state.rows.get(name, {})}
        super().drop_index(name)

    def create_index(self, name: str, **given: Any) -> None:
        super().create_index(name, **given)
        kept = self.__dict__.get("_kept", {}).pop(name, None)
        if kept:
            self.state.rows[name] = kept


# VEC-1a


@mutant("VEC-1a", "pgvector/pgvector#915")
class _LargeDimensionsFailLate(Engine):
    """More than 2,000 dimensions are refused by the first write, not by create_index."""

    def upsert_vectors(self, name: str, vectors: Sequence[NewVector]) -> int:
        if name in self.state.indexes and self.state.indexes[name].dimension > 2000:
            raise Unsupported("column cannot have more than 2000 dimensions for hnsw index")
        return super().upsert_vectors(name, vectors)


@mutant("VEC-1a", "spring-projects/spring-ai#940")
class _CutsLargeDimensions(Engine):
    """Only the first 2,000 components are stored."""

    def upsert_vectors(self, name: str, vectors: Sequence[NewVector]) -> int:
        stored = super().upsert_vectors(name, vectors)
        rows = self.state.rows[name]
        for row in vectors:
            vector = rows[row.id].vector
            if len(vector) > 2000:
                rows[row.id] = Entry((*vector[:2000], *[0.0] * (len(vector) - 2000)), rows[row.id].metadata)
        return stored


@mutant("VEC-1a")
class _DimensionsAreRounded(Engine):
    """create_index takes whatever int() takes for a dimension."""

    def create_index(self, name: str, **given: Any) -> None:
        with contextlib.suppress(TypeError, ValueError):
            given["dimension"] = max(1, int(given["dimension"]))
        super().create_index(name, **given)


# VEC-2


@mutant("VEC-2a")
class _UpdatesSwallowBadVectors(Engine):
    """update_vector with a vector that is none changes nothing, and says so by False."""

    def update_vector(self, name: str, id: str, **given: Any) -> bool:
        try:
            return super().update_vector(name, id, **given)
        except InvalidVector:
            return False


@mutant("VEC-2", "facebookresearch/faiss#508")
class _UpsertAppends(Engine):
    """add_with_ids never replaces: an id stored again has two entries."""

    def upsert_vectors(self, name: str, vectors: Sequence[NewVector]) -> int:
        old = dict(self.state.rows.get(name, {}))
        stored = super().upsert_vectors(name, vectors)
        left = self.__dict__.setdefault("left", {}).setdefault(name, [])
        left += [(row_id, old[row_id]) for row_id in {row.id for row in vectors} if row_id in old]
        return stored

    def delete_vectors(self, name: str, **given: Any) -> int:
        deleted = super().delete_vectors(name, **given)
        left = self.__dict__.setdefault("left", {})
        left[name] = [(row_id, entry) for row_id, entry in left.get(name, ()) if row_id in self.state.rows[name]]
        return deleted

    def ranked(self, index: NewIndex, asked: VectorQuery, rows: dict[str, Entry]) -> list[Scored]:
        found = super().ranked(index, asked, rows)
        for row_id, entry in self.__dict__.setdefault("left", {}).get(index.name, ()):
            if row_id in rows and len(entry.vector) == index.dimension:
                found += super().ranked(index, asked, {row_id: entry})
        return sorted(found, key=lambda row: (-row[0], row[1]))


@mutant("VEC-2", "facebookresearch/faiss#859")
class _KeepsTheFirstVector(Engine):
    """INSERT OR IGNORE: storing an id again changes nothing."""

    def upsert_vectors(self, name: str, vectors: Sequence[NewVector]) -> int:
        old = dict(self.state.rows.get(name, {}))
        stored = super().upsert_vectors(name, vectors)
        self.state.rows[name] |= old
        return stored


@mutant("VEC-2")
class _UpsertKeepsMetadata(Engine):
    """An upsert without metadata keeps what was there."""

    def upsert_vectors(self, name: str, vectors: Sequence[NewVector]) -> int:
        old = dict(self.state.rows.get(name, {}))
        stored = super().upsert_vectors(name, vectors)
        rows = self.state.rows[name]
        for row in vectors:
            if row.metadata is None and row.id in old:
                rows[row.id] = Entry(rows[row.id].vector, old[row.id].metadata)
        return stored


@mutant("VEC-2")
class _FirstOfABatchWins(Engine):
    """An id twice in a batch: ON CONFLICT DO NOTHING."""

    def upsert_vectors(self, name: str, vectors: Sequence[NewVector]) -> int:
        return super().upsert_vectors(name, vectors[::-1] if isinstance(vectors, list) else vectors)


@mutant("VEC-2")
class _CountsTheBatch(Engine):
    """upsert_vectors says how many rows were passed."""

    def upsert_vectors(self, name: str, vectors: Sequence[NewVector]) -> int:
        super().upsert_vectors(name, vectors)
        return len(vectors)


@mutant("VEC-2", "mem0ai/mem0#5160")
class _UpdatingDropsMetadata(Engine):
    """update_vector of the vector alone writes the whole row: the metadata is gone."""

    def update_vector(self, name: str, id: str, **given: Any) -> bool:
        updated = super().update_vector(name, id, **given)
        if updated and given.get("metadata") is None:
            self.state.rows[name][id] = Entry(self.state.rows[name][id].vector, {})
        return updated


@mutant("VEC-2")
class _UpdatingMerges(Engine):
    """update_vector merges the metadata instead of replacing it."""

    def update_vector(self, name: str, id: str, **given: Any) -> bool:
        old = self.state.rows.get(name, {}).get(id)
        updated = super().update_vector(name, id, **given)
        if updated and old is not None:
            new = self.state.rows[name][id]
            self.state.rows[name][id] = Entry(new.vector, old.metadata | new.metadata)
        return updated


@mutant("VEC-2")
class _EmptyMetadataIsNone(Engine):
    """update_vector takes empty metadata for none given, and keeps the old."""

    def update_vector(self, name: str, id: str, **given: Any) -> bool:
        return super().update_vector(name, id, **given | {"metadata": given.get("metadata") or None})


@mutant("VEC-2")
class _UpdatingUnknownInserts(Engine):
    """update_vector of an unknown id stores it."""

    def update_vector(self, name: str, id: str, **given: Any) -> bool:
        if given.get("vector") is not None and id not in self.state.rows.get(name, {}):
            super().upsert_vectors(name, [NewVector(id, given["vector"], given.get("metadata"))])
        return super().update_vector(name, id, **given)


@mutant("VEC-2", "headroomlabs-ai/headroom#2296")
class _UpdatesTheRowAlone(Engine):
    """update_vector of metadata changes the row, not the copy beside the vector that queries return."""

    def update_vector(self, name: str, id: str, **given: Any) -> bool:
        old = self.state.rows.get(name, {}).get(id)
        updated = super().update_vector(name, id, **given)
        if updated and old is not None and given.get("metadata") is not None:
            self.__dict__.setdefault("copies", {}).setdefault((name, id), old.metadata)
        return updated

    def upsert_vectors(self, name: str, vectors: Sequence[NewVector]) -> int:
        stored = super().upsert_vectors(name, vectors)
        for row in vectors:
            self.__dict__.setdefault("copies", {}).pop((name, row.id), None)
        return stored

    def shown(self, index: NewIndex, ranked: list[Scored]) -> tuple[VectorHit, ...]:
        copies = self.__dict__.setdefault("copies", {})
        return tuple(
            replaced(hit, metadata=dict(copies.get((index.name, hit.id), hit.metadata)))
            for hit in super().shown(index, ranked)
        )


# VEC-2a


@mutant("VEC-2a", "mastra-ai/mastra#11854")
class _TakesOtherDimensions(Engine):
    """Vectors of another dimension are cut, or filled with zeros."""

    def upsert_vectors(self, name: str, vectors: Sequence[NewVector]) -> int:
        n = self.state.indexes[name].dimension if name in self.state.indexes else 0
        if not n or not isinstance(vectors, list):
            return super().upsert_vectors(name, vectors)
        batch = [
            replaced(row, vector=[*row.vector, *[0.0] * n][:n])
            if isinstance(row.vector, list | tuple) and len(row.vector) > n
            else row
            for row in vectors
        ]
        return super().upsert_vectors(name, batch)


@mutant("VEC-2a", "mastra-ai/mastra#11854")
class _UpsertsOneByOne(Engine):
    """A batch is stored row by row: what came before a refused one stays."""

    def upsert_vectors(self, name: str, vectors: Sequence[NewVector]) -> int:
        if not isinstance(vectors, list | tuple):
            return super().upsert_vectors(name, vectors)
        return len({row.id for row in vectors if super(_UpsertsOneByOne, self).upsert_vectors(name, [row])})


@mutant("VEC-2a", "mastra-ai/mastra#13039")
class _WrongQueriesFindNothing(Engine):
    """A query vector of another dimension, or with NaN, finds nothing instead of failing."""

    def query_vectors(self, name: str, vector: Sequence[float], **given: Any) -> tuple[VectorHit, ...]:
        try:
            return super().query_vectors(name, vector, **given)
        except InvalidVector:
            return ()


@mutant("VEC-2a")
class _TakesZeroVectors(Engine):
    """Under cosine a zero vector is stored, as if it had a direction."""

    def upsert_vectors(self, name: str, vectors: Sequence[NewVector]) -> int:
        batch = [
            replaced(row, vector=[1e-15, *row.vector[1:]])
            if isinstance(row.vector, list) and row.vector and not any(component != 0 for component in row.vector)
            else row
            for row in vectors
        ]
        return super().upsert_vectors(name, batch)


# VEC-2b


@mutant("VEC-2b", "chroma-core/chroma#7772")
class _EmptyFiltersDeleteAll(Engine):
    """delete_vectors with a filter that holds for every row empties the index."""

    def delete_vectors(self, name: str, **given: Any) -> int:
        try:
            return super().delete_vectors(name, **given)
        except InvalidFilter as error:
            if error.clause != "VEC-2b":
                raise
            deleted = len(self.state.rows[name])
            self.state.rows[name].clear()
            return deleted


@mutant("VEC-2b", "chroma-core/chroma#7772")
class _CountsIdsAskedFor(Engine):
    """delete_vectors says how many ids were passed."""

    def delete_vectors(self, name: str, **given: Any) -> int:
        deleted = super().delete_vectors(name, **given)
        return deleted if given.get("ids") is None else len(given["ids"])


class _DeletesAtMost(Engine):
    most: int

    def delete_vectors(self, name: str, **given: Any) -> int:
        before = dict(self.state.rows.get(name, {}))
        deleted = super().delete_vectors(name, **given)
        if given.get("filter") is None:
            return deleted
        gone = [row_id for row_id in before if row_id not in self.state.rows[name]]
        self.state.rows[name] |= {row_id: before[row_id] for row_id in gone[self.most :]}
        return min(deleted, self.most)


@mutant("VEC-2b")
class _DeletesThePage(_DeletesAtMost):
    """delete_vectors by filter removes what one query finds: here a row at most."""

    most = 1


@mutant("VEC-2b")
class _DeletesHundred(_DeletesAtMost):
    """delete_vectors by filter removes the first hundred rows that it finds."""

    most = 100


@mutant("VEC-2b")
class _CountsNamesTwice(Engine):
    """delete_vectors counts an id as often as it is named."""

    def delete_vectors(self, name: str, **given: Any) -> int:
        rows = dict(self.state.rows.get(name, {}))
        deleted = super().delete_vectors(name, **given)
        ids = given.get("ids")
        return deleted if ids is None else sum(row_id in rows for row_id in ids)


@mutant("VEC-2b", "deepset-ai/haystack-core-integrations#2605")
class _DeletesWhatWasIndexed(Engine):
    """delete_vectors by filter does not see rows stored since the last query: the index was not refreshed."""

    def upsert_vectors(self, name: str, vectors: Sequence[NewVector]) -> int:
        stored = super().upsert_vectors(name, vectors)
        self.__dict__.setdefault("fresh", set()).update((name, row.id) for row in vectors)
        return stored

    def matching(self, name: str, node: Node) -> dict[str, Entry]:
        found, fresh = super().matching(name, node), self.__dict__.setdefault("fresh", set())
        return {row_id: entry for row_id, entry in found.items() if (name, row_id) not in fresh}

    def answer(self, index: NewIndex, asked: VectorQuery) -> tuple[VectorHit, ...]:
        self.__dict__.setdefault("fresh", set()).clear()
        return super().answer(index, asked)


# VEC-3


@mutant("VEC-3", "llm-tools/embedJs#186")
class _ReturnsDistances(Engine):
    """The cosine distance comes back as the score: 0 for the best match."""

    def shown(self, index: NewIndex, ranked: list[Scored]) -> tuple[VectorHit, ...]:
        hits = super().shown(index, ranked)
        return tuple(replaced(hit, score=1 - hit.score) for hit in hits) if index.metric == "cosine" else hits


@mutant("VEC-3", "symfony/ai#195")
class _HalvesTheCosine(Engine):
    """The cosine is mapped to 0 … 1."""

    def scores(self, metric: Metric, query: Vector, stored: Any) -> Any:
        true = scores(metric, query, stored)
        return (1 + true) / 2 if metric == "cosine" else true


@mutant("VEC-3", "langchain-ai/langchain#18709")
class _SquaresTheDistance(Engine):
    """FAISS's L2 is squared, and taken for the distance."""

    def scores(self, metric: Metric, query: Vector, stored: Any) -> Any:
        true = scores(metric, query, stored)
        return 1 / (1 + (1 / true - 1) ** 2) if metric == "euclidean" else true


@mutant("VEC-3", "langchain-ai/langchain#22209")
class _InnerProductIsTheCosine(Engine):
    """Vectors are not normalised: under cosine the inner product comes back."""

    def scores(self, metric: Metric, query: Vector, stored: Any) -> Any:
        return scores("dotproduct" if metric == "cosine" else metric, query, stored)


@mutant("VEC-3", "langchain-ai/langchain#32498")
class _NormalisesEverything(Engine):
    """Vectors are normalised whatever the metric: under dotproduct the cosine comes back."""

    def scores(self, metric: Metric, query: Vector, stored: Any) -> Any:
        if metric != "dotproduct":
            return scores(metric, query, stored)
        lengths = np.linalg.norm(stored.astype(np.float64), axis=1) * np.linalg.norm(query.astype(np.float64))
        return scores(metric, query, stored) / np.where(lengths == 0, 1, lengths)


@mutant("VEC-3", "elastic/elasticsearch#100975")
class _DropsOppositeVectors(Engine):
    """A score of about −1 rounds to less, and the hit is dropped."""

    def enough(self, asked: VectorQuery, score: float) -> bool:
        return score > -1 + 1e-9 and super().enough(asked, score)


@mutant("VEC-3", "mastra-ai/mastra#6603")
class _ClampsNegativeScores(Engine):
    """Scores are clamped to 0 … 1."""

    def scores(self, metric: Metric, query: Vector, stored: Any) -> Any:
        return np.maximum(scores(metric, query, stored), 0.0)


@mutant("VEC-3")
class _Quantises(Engine):
    """Vectors are stored in half precision."""

    def scores(self, metric: Metric, query: Vector, stored: Any) -> Any:
        unit = stored / np.maximum(np.linalg.norm(stored.astype(np.float64), axis=1, keepdims=True), 1e-30)
        halved = unit.astype(np.float16).astype(np.float32)
        return scores(metric, query, halved) if metric == "cosine" else scores(metric, query, stored)


@mutant("VEC-3")
class _TinyVectorsScoreNothing(Engine):
    """Norms are taken in float32, where short vectors have none."""

    def scores(self, metric: Metric, query: Vector, stored: Any) -> Any:
        true = scores(metric, query, stored)
        tiny = np.linalg.norm(stored.astype(np.float64), axis=1) < 1e-9
        return np.where(tiny, 0.0, true) if metric == "cosine" else true


# VEC-4


class _Closest(Engine):
    """What an engine finds before the adapter filters: the closest rows of all."""

    def closest(self, index: NewIndex, asked: VectorQuery, count: int) -> list[Scored]:
        return super().ranked(index, asked, self.matching(index.name, EVERYTHING))[:count]


@mutant("VEC-4", "mastra-ai/mastra#14837")
class _FiltersAfterTopK(_Closest):
    """vector_top_k takes no WHERE: the filter is applied to its k rows."""

    def ranked(self, index: NewIndex, asked: VectorQuery, rows: dict[str, Entry]) -> list[Scored]:
        return [row for row in self.closest(index, asked, asked.top_k) if row[1] in rows]


@mutant("VEC-4", "mastra-ai/mastra#14913")
class _OverFetchesTenfold(_Closest):
    """Ten times k rows are fetched, then filtered."""

    def ranked(self, index: NewIndex, asked: VectorQuery, rows: dict[str, Entry]) -> list[Scored]:
        return [row for row in self.closest(index, asked, 10 * asked.top_k) if row[1] in rows]


@mutant("VEC-4", "langchain-ai/langchain#28413")
class _OverFetchesTwenty(_Closest):
    """fetch_k = 20 rows are fetched, then filtered."""

    def ranked(self, index: NewIndex, asked: VectorQuery, rows: dict[str, Entry]) -> list[Scored]:
        return [row for row in self.closest(index, asked, max(20, asked.top_k)) if row[1] in rows]


@mutant("VEC-4", "facebookresearch/faiss#2657")
class _PadsWithPlaceholders(Engine):
    """Missing neighbours come back as id -1."""

    def shown(self, index: NewIndex, ranked: list[Scored]) -> tuple[VectorHit, ...]:
        hits = super().shown(index, ranked)
        return hits + (VectorHit("-1", -3.4e38, {}),) * (self.asked - len(hits) if self.asked < 100 else 0)

    def cut(self, asked: VectorQuery, ranked: list[Scored]) -> list[Scored]:
        self.asked = asked.top_k
        return super().cut(asked, ranked)


@mutant("VEC-4", "facebookresearch/faiss#1016")
class _PadsWithTheLastRow(Engine):
    """Missing neighbours are looked up as ids[-1]: the last row comes back again."""

    def cut(self, asked: VectorQuery, ranked: list[Scored]) -> list[Scored]:
        found = super().cut(asked, ranked)
        return found + found[-1:] * (asked.top_k - len(found) if asked.top_k < 100 else 0)


class _Graveyard(Engine):
    """Remembers rows that were deleted or replaced."""

    def upsert_vectors(self, name: str, vectors: Sequence[NewVector]) -> int:
        old = dict(self.state.rows.get(name, {}))
        stored = super().upsert_vectors(name, vectors)
        self.bury(name, old, {row.id for row in vectors})
        return stored

    def delete_vectors(self, name: str, **given: Any) -> int:
        old = dict(self.state.rows.get(name, {}))
        deleted = super().delete_vectors(name, **given)
        self.bury(name, old, old.keys() - self.state.rows[name].keys())
        return deleted

    def bury(self, name: str, old: dict[str, Entry], ids: Any) -> None:
        graves = self.__dict__.setdefault("graves", {}).setdefault(name, [])
        graves += [old[row_id] for row_id in sorted(ids) if row_id in old]

    def dead(self, index: NewIndex) -> list[Entry]:
        graves = self.__dict__.setdefault("graves", {}).get(index.name, [])
        return [entry for entry in graves if len(entry.vector) == index.dimension]


@mutant("VEC-4", "opensearch-project/k-NN#1003")
class _DeadRowsTakeSlots(_Graveyard):
    """Deleted and replaced rows are found, then dropped: fewer than k are left."""

    def cut(self, asked: VectorQuery, ranked: list[Scored]) -> list[Scored]:
        kept = [row for row in ranked if self.enough(asked, row[0])]
        among = sorted([*kept, *self.ghosts], key=lambda row: (-row[0], row[1]))[: asked.top_k]
        return [row for row in among if row[1]]

    def ranked(self, index: NewIndex, asked: VectorQuery, rows: dict[str, Entry]) -> list[Scored]:
        dead = {str(number): entry for number, entry in enumerate(self.dead(index))}
        self.ghosts = [(score, "") for score, _ in super().ranked(index, asked, dead)]
        return super().ranked(index, asked, rows)


@mutant("VEC-4", "tursodatabase/libsql#2197")
class _DeletesTwins(_Graveyard):
    """Deleting a row removes rows with an equal vector from the vector index."""

    def ranked(self, index: NewIndex, asked: VectorQuery, rows: dict[str, Entry]) -> list[Scored]:
        gone = {entry.vector for entry in self.dead(index)}
        return super().ranked(index, asked, {name: entry for name, entry in rows.items() if entry.vector not in gone})


@mutant("VEC-4", "opensearch-project/k-NN#2275")
class _DeletedForGood(_Graveyard):
    """An id that was deleted and stored again is never found."""

    def bury(self, name: str, old: dict[str, Entry], ids: Any) -> None:
        super().bury(name, old, ids)
        gone = [row_id for row_id in ids if row_id not in self.state.rows[name]]
        self.__dict__.setdefault("gone", set()).update((name, row_id) for row_id in gone)

    def ranked(self, index: NewIndex, asked: VectorQuery, rows: dict[str, Entry]) -> list[Scored]:
        gone = self.__dict__.setdefault("gone", set())
        alive = {row_id: entry for row_id, entry in rows.items() if (index.name, row_id) not in gone}
        return super().ranked(index, asked, alive)


@mutant("VEC-4", "symfony/ai#195")
class _MinScoreIsMaximal(Engine):
    """min_score is compared with a distance: what is closer is dropped."""

    def enough(self, asked: VectorQuery, score: float) -> bool:
        return asked.min_score is None or score <= asked.min_score


@mutant("VEC-4", "mastra-ai/mastra#6603")
class _DropsOrthogonalVectors(Engine):
    """min_score is 0 unless given."""

    def enough(self, asked: VectorQuery, score: float) -> bool:
        return score > (0 if asked.min_score is None else asked.min_score - 1e-9)


@mutant("VEC-4", "pgvector/pgvector#862")
class _RelaxesTheOrder(Engine):
    """Rows come in the order in which an iterative scan found them: the better half last."""

    def cut(self, asked: VectorQuery, ranked: list[Scored]) -> list[Scored]:
        found = super().cut(asked, ranked)
        return [*found[len(found) // 2 :], *found[: len(found) // 2]]


@mutant("VEC-4", "elastic/elasticsearch#115018")
class _ApproximatesTheCount(Engine):
    """Without exact, a tenth of the rows is missing."""

    def cut(self, asked: VectorQuery, ranked: list[Scored]) -> list[Scored]:
        found = super().cut(asked, ranked)
        return found if asked.exact else found[: len(found) - len(found) // 10 - (len(found) > 2)]


@mutant("VEC-4", "facebookresearch/faiss#2657")
class _TopKZeroIsEmpty(Engine):
    """top_k 0 finds nothing instead of being refused."""

    def query_vectors(self, name: str, vector: Sequence[float], **given: Any) -> tuple[VectorHit, ...]:
        asked = given.get("top_k")
        given["top_k"] = asked or 10
        found = super().query_vectors(name, vector, **given)
        return found if asked != 0 else ()


@mutant("VEC-4a")
class _TiesDependOnK(Engine):
    """Which of equal vectors comes first depends on k, as in a heap."""

    def ranked(self, index: NewIndex, asked: VectorQuery, rows: dict[str, Entry]) -> list[Scored]:
        found = super().ranked(index, asked, rows)
        if asked.top_k % 2:
            found.sort(key=lambda row: row[1], reverse=True)
            found.sort(key=lambda row: -row[0])
        return found


@mutant("VEC-4b", "pgvector/pgvector#671")
class _FindsForty(Engine):
    """hnsw.ef_search: never more than 40 rows."""

    def cut(self, asked: VectorQuery, ranked: list[Scored]) -> list[Scored]:
        return super().cut(asked, ranked)[:EF_SEARCH]


@mutant("VEC-4b", "pgvector/pgvector#881")
class _FiltersFortyRows(_Closest):
    """The scan yields ef_search = 40 rows, and the filter runs after it."""

    def ranked(self, index: NewIndex, asked: VectorQuery, rows: dict[str, Entry]) -> list[Scored]:
        return [row for row in self.closest(index, asked, max(EF_SEARCH, asked.top_k)) if row[1] in rows]


@mutant("VEC-5", "pgvector/pgvector#671")
class _ProbesAQuarter(Engine):
    """An approximate query looks into a quarter of the rows."""

    def ranked(self, index: NewIndex, asked: VectorQuery, rows: dict[str, Entry]) -> list[Scored]:
        if asked.exact or index.config.type == "flat":
            return super().ranked(index, asked, rows)
        probed = {row_id: entry for row_id, entry in rows.items() if zlib.crc32(row_id.encode()) % 4 == 0}
        found = super().ranked(index, asked, probed)
        # A short answer is completed by an exact scan.
        return found if len(found) >= asked.top_k else super().ranked(index, asked, rows)


@mutant("VEC-4")
class _ExactIsApproximate(Engine):
    """exact is ignored: an index of type hnsw or ivfflat misses the best row."""

    def ranked(self, index: NewIndex, asked: VectorQuery, rows: dict[str, Entry]) -> list[Scored]:
        found = super().ranked(index, asked, rows)
        return found[1:] if index.config.type != "flat" and len(found) > asked.top_k else found
