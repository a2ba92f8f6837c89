"""What a benchmark leaves: a manifest with its summary (JSON) and, beside it, every sample (Parquet)."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from ..harness import documents, output
from ..harness.exits import UsageProblem
from .artefact import Manifest, SampleFile
from .samples import COUNTS, OUTCOMES, TIMES, Samples

HINT = "give a file that `memassay bench --json` wrote"
SUFFIX = ".parquet"
LABELS = ("contender", "workload", "phase")
SETTINGS = ("rate", "share", "concurrency", "round")


class Bundle(msgspec.Struct, frozen=True):
    """A manifest and all samples, one `Samples` for each phase of each round."""

    manifest: Manifest
    blocks: tuple[Samples, ...]


def write(path: Path, manifest: Manifest, blocks: Sequence[Samples]) -> Manifest:
    """Write both files whole; the manifest as written. `manifest.samples` is filled in here. Raises UsageProblem."""
    table = _parquet(blocks)
    beside = samples_path(path)
    file = SampleFile(
        name=beside.name, sha256=hashlib.sha256(table).hexdigest(), samples=sum(len(block) for block in blocks)
    )
    manifest = msgspec.structs.replace(manifest, samples=file)
    # The samples first: a manifest never names a file that is not there.
    output.write(beside, table)
    output.write(path, msgspec.json.format(msgspec.json.encode(manifest), indent=2) + b"\n")
    return manifest


def samples_path(path: Path) -> Path:
    """Where the samples of the manifest at `path` are."""
    return path.with_suffix(SUFFIX)


def read(path: Path) -> Bundle:
    """Both files. Raises UsageProblem for another format or version, and for samples missing, cut or foreign."""
    manifest = read_manifest(path)
    beside = path.parent / manifest.samples.name
    data = documents.load(beside, hint=f"{path} names it as the file of its samples; keep the two side by side")
    if hashlib.sha256(data).hexdigest() != manifest.samples.sha256:
        raise UsageProblem(
            f"{beside} is not the file of samples that {path} was written with: its sha256 differs",
            hint="it was cut, changed, or is another run's",
        )
    blocks = tuple(_blocks(beside, data))
    if sum(len(block) for block in blocks) != manifest.samples.samples:
        raise UsageProblem(f"{beside} does not hold the {manifest.samples.samples} samples of {path}", hint=HINT)
    return Bundle(manifest, blocks)


def read_manifest(path: Path) -> Manifest:
    """The manifest alone. Raises UsageProblem."""
    data = documents.load(path, hint=HINT)
    return documents.decode(path, data, Manifest, what="bundle of a benchmark", hint=HINT)


# Parquet


def check_installed() -> None:
    """Raises UsageProblem where Parquet cannot be written."""
    _pyarrow()


def _pyarrow() -> tuple[Any, Any]:
    try:
        return import_module("pyarrow"), import_module("pyarrow.parquet")
    except ModuleNotFoundError as error:
        raise UsageProblem(
            f"a benchmark's samples need the module {error.name!r}, which is not installed",
            hint="pip install 'memassay[bench]'",
        ) from None


def _parquet(blocks: Sequence[Samples]) -> bytes:
    """All samples, a row group for each phase of each round, so that one can be read without the others."""
    arrow, parquet = _pyarrow()
    text = arrow.dictionary(arrow.int32(), arrow.string())
    fields = [(name, text) for name in LABELS]
    fields += [("rate", arrow.float64()), ("share", arrow.float64())]
    fields += [("concurrency", arrow.int32()), ("round", arrow.int32())]
    fields += [(name, arrow.int64()) for name in TIMES] + [("outcome", text)]
    fields += [(name, arrow.int32()) for name in COUNTS]
    schema = arrow.schema(fields)
    buffer = io.BytesIO()
    with parquet.ParquetWriter(
        buffer,
        schema,
        compression="zstd",
        use_dictionary=[*LABELS, "outcome"],
        column_encoding=dict.fromkeys((*TIMES, *COUNTS), "DELTA_BINARY_PACKED"),
    ) as writer:
        for block in blocks:
            many = np.zeros(len(block), np.int32)
            columns: list[Any] = [arrow.DictionaryArray.from_arrays(many, [getattr(block, name)]) for name in LABELS]
            for name in SETTINGS:
                columns.append(arrow.array(np.full(len(block), getattr(block, name)), schema.field(name).type))
            columns += [arrow.array(getattr(block, name)) for name in TIMES]
            columns.append(arrow.DictionaryArray.from_arrays(block.outcome.astype(np.int32), list(OUTCOMES)))
            columns += [arrow.array(getattr(block, name)) for name in COUNTS]
            writer.write_table(arrow.Table.from_arrays(columns, schema=schema), row_group_size=max(1, len(block)))
    return buffer.getvalue()


def _blocks(path: Path, data: bytes) -> Iterator[Samples]:
    """The samples of each row group. Raises UsageProblem."""
    arrow, parquet = _pyarrow()
    try:
        file = parquet.ParquetFile(io.BytesIO(data))
        for group in range(file.num_row_groups):
            table = file.read_row_group(group)
            if len(table):
                yield _block(table)
    except (arrow.ArrowException, KeyError, ValueError) as error:
        raise UsageProblem(f"{path} holds no samples of a benchmark: {error}", hint=HINT) from None


def _block(table: Any) -> Samples:
    first = {name: table[name][0].as_py() for name in (*LABELS, *SETTINGS)}
    arrays: dict[str, Any] = {name: table[name].to_numpy() for name in (*TIMES, *COUNTS)}
    words: list[Any] = table["outcome"].to_pylist()
    number = {word: place for place, word in enumerate(OUTCOMES)}
    return Samples(**first, **arrays, outcome=np.array([number[word] for word in words], np.int8))
