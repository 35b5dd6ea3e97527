"""Clients of the playground at the same time: what each gets, and how long the slowest waits.

    python benchmarks/serve.py TOKENIZER --clients 1000 --requests 5

Every client keeps one connection open and sends its own text again and again; all of them connect
before the first one sends. Beside them as many others as `--silent` connect and say nothing. A
wrong or a missing answer is an error. Clients and server share this machine's cores.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import subprocess
import sys
import time


async def client(port: int, number: int, requests: int, ready: asyncio.Barrier) -> list[float]:
    """Seconds that each request took."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    await ready.wait()
    text = f"client {number} writes ಕನ್ನಡ " * 5
    body = json.dumps({"text": text, "parse_special": False}).encode()
    head = (
        f"POST /api/tokenize HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nOrigin: http://127.0.0.1:{port}"
        f"\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    seconds = []
    for _ in range(requests):
        begun = time.perf_counter()
        writer.write(head.encode() + body)
        answer = await reader.readuntil(b"\r\n\r\n")
        if not answer.startswith(b"HTTP/1.1 200"):
            raise SystemExit(f"client {number} got {answer[:60]!r}")
        length = int(answer.lower().partition(b"content-length:")[2].split()[0])
        if json.loads(await reader.readexactly(length))["shown"] != text:
            raise SystemExit(f"client {number} got another client's text")
        seconds.append(time.perf_counter() - begun)
    writer.close()
    return seconds


async def measure(port: int, clients: int, requests: int, silent: int) -> list[float]:
    """Seconds of all requests of all clients."""
    held = [await asyncio.open_connection("127.0.0.1", port) for _ in range(silent)]
    ready = asyncio.Barrier(clients)
    found = await asyncio.gather(*(client(port, i, requests, ready) for i in range(clients)))
    for _, writer in held:
        writer.close()
    return sorted(second for of_client in found for second in of_client)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tokenizer")
    parser.add_argument("--clients", type=int, default=1000)
    parser.add_argument("--requests", type=int, default=5)
    parser.add_argument("--silent", type=int, default=100)
    args = parser.parse_args()
    files = 2 * (args.clients + args.silent) + 100
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(files, hard), hard))  # the server's too
    command = [sys.executable, "-m", "vocabshift", "serve", args.tokenizer, "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as server:
        try:
            assert server.stdout is not None
            port = int(json.loads(server.stdout.readline())["url"].rstrip("/").rpartition(":")[2])
            begun = time.perf_counter()
            seconds = asyncio.run(measure(port, args.clients, args.requests, args.silent))
            whole = time.perf_counter() - begun
        finally:
            server.terminate()
    middle, slow = seconds[len(seconds) // 2], seconds[int(len(seconds) * 0.99)]
    print(
        f"{args.clients} clients and {args.silent} silent: {len(seconds)} answers in {whole:.1f} "
        f"s, median {middle:.2f} s, 99 % below {slow:.2f} s, slowest {seconds[-1]:.2f} s"
    )


if __name__ == "__main__":
    main()
