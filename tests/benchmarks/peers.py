"""A document platform and a receiver in one process: 100 kB for every file, 204 for every message.

Run as a process; it prints its port, then a line for each message: when it came, about which file.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import time

_REST = bytes(range(256)) * 390
_TAKEN = b"HTTP/1.1 204 No Content\r\ncontent-length: 0\r\n\r\n"
_GIVEN = b"HTTP/1.1 200 OK\r\ncontent-type: application/pdf\r\ncontent-length: %d\r\n\r\n"


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer the requests of one connection."""
    with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            if head.startswith(b"GET "):
                # Each file has bytes of its own.
                document = b"%PDF-1.4\n% " + head.split(b" ", 2)[1] + b"\n" + _REST
                writer.write(_GIVEN % len(document) + document)
            else:
                _, _, rest = head.lower().partition(b"content-length:")
                body = await reader.readexactly(int(rest.partition(b"\r\n")[0]))
                came_s = time.monotonic()
                writer.write(_TAKEN)
                print(came_s, json.loads(body)["data"]["file_id"], flush=True)
            await writer.drain()
    writer.close()


async def serve() -> None:
    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    # The owner closes our input when it has seen enough.
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    server.close()


if __name__ == "__main__":
    asyncio.run(serve())
