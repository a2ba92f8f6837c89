"""Adapters that misbehave: `python adapters.py WAY` answers hello, and breaks in that way at the next call."""

from __future__ import annotations

import json
import os
import sys
from typing import Any


def read() -> dict[str, Any]:
    line = sys.stdin.readline()
    if not line:
        sys.exit(0)
    return json.loads(line)


def write(text: str) -> None:
    os.write(1, text.encode())


def answer(request: dict[str, Any], result: Any) -> None:
    write(json.dumps({"id": request["id"], "result": result}) + "\n")


def main(way: str) -> None:
    hello = read()
    if way == "mute":
        sys.stdin.read()
    if way == "stillborn":
        sys.stderr.write("cannot find module acme\n")
        sys.exit(3)
    introduction: dict[str, Any] = {"protocol": 2 if way == "tomorrow" else 1, "version": "acme 1", "capabilities": {}}
    if way == "boaster":
        introduction["capabilities"] = {"teleport": True, "clone": "yes"}
    answer(hello, introduction)
    while True:
        request = read()
        if request["call"] == "hello":
            answer(request, introduction)
            continue
        match way:
            case "garbage":
                write("listening on port 3000\n")
            case "half":
                write('{"id": 2, "resu')
                sys.exit(1)
            case "silence":
                sys.stderr.write("waiting for a lock\n")
                sys.stderr.flush()
                sys.stdin.read()
            case "crash":
                sys.stderr.write("Traceback\nout of memory\n")
                sys.stderr.flush()
                os.abort()
            case "fragile" if request["call"] == "create_thread":
                sys.stderr.write("out of memory\n")
                sys.stderr.flush()
                os.abort()
            case "fragile" if request["call"] == "list_threads":
                answer(request, {"threads": [], "total": 0, "page": 0, "per_page": False, "has_more": False})
            case "deaf":
                os.close(1)
                sys.stdin.read()
            case "stranger":
                write('{"id": 99, "result": null}\n')
            case "surrogate":
                write(f'{{"id": {request["id"]}, "result": "\\ud83d"}}\n')
            case "pieces":
                whole = json.dumps({"id": request["id"], "result": None}) + "\n"
                for start in range(0, len(whole), 3):
                    write(whole[start : start + 3])
            case "whimsical":
                write(json.dumps({"id": request["id"], "error": {"code": "disk-full", "message": "no room"}}) + "\n")
            case _:
                answer(request, None)


if __name__ == "__main__":
    main(sys.argv[1])
