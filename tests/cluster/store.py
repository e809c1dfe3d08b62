"""A server that keeps numbers: it appends each line that it gets to a file, and answers when the line is there.

python3 store.py FILE PORT
"""

import socketserver
import sys
import threading

_lock = threading.Lock()


class Keep(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        for line in self.rfile:
            with _lock, open(sys.argv[1], "ab") as file:
                file.write(line)
            self.wfile.write(b"ok\n")


class Store(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True


if __name__ == "__main__":
    with Store(("0.0.0.0", int(sys.argv[2])), Keep) as server:
        print("up", flush=True)
        server.serve_forever()
