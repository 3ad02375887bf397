"""What the interop scripts share: counted checks, the sandbox's control calls, and a shop that listens for notifications.

Standard library only, so that it stands between no SDK and its sandbox.
"""

import http.server
import json
import queue
import sys
import threading
import urllib.error
import urllib.parse
import urllib.request

WAIT_SECONDS = 20


class Checks:
    """Counts what was checked and prints each."""

    def __init__(self):
        self.passed = 0
        self.failed = 0

    def that(self, what, holds, seen=None):
        if holds:
            self.passed += 1
            print(f"ok   {what}")
        else:
            self.failed += 1
            print(f"FAIL {what}: {seen!r}")

    def equal(self, what, seen, wanted):
        self.that(what, seen == wanted, f"{seen!r}, not {wanted!r}")

    def raises(self, what, act):
        try:
            seen = act()
        except Exception:
            self.that(what, True)
        else:
            self.that(what, False, seen)

    def finish(self):
        if self.failed:
            print(f"{self.failed} of {self.passed + self.failed} checks failed")
            sys.exit(1)
        print(f"{self.passed} checks passed")


class Sandbox:
    """The control calls of a sandbox at `base`."""

    def __init__(self, base):
        self.base = base

    def _call(self, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.base + path, data=data, headers={"content-type": "application/json"})
        with urllib.request.urlopen(request, timeout=WAIT_SECONDS) as answer:
            return json.load(answer)

    def account(self, name):
        return self._call("/_sandbox/accounts")[name]

    def buyer(self, channel, reference, action, **more):
        return self._call("/_sandbox/buyer", {"channel": channel, "channel_ref": reference, "action": action, **more})

    def fault(self, channel, operation, fault):
        return self._call("/_sandbox/faults", {"channel": channel, "operation": operation, "fault": fault})

    def executed(self, channel, reference, kind):
        query = urllib.parse.urlencode({"channel": channel, "channel_ref": reference, "kind": kind})
        return [(row["executed"], row["amount"]) for row in self._call(f"/_sandbox/ledger?{query}")]

    def open(self, url):
        """Opens a page as a browser does."""
        try:
            with urllib.request.urlopen(url, timeout=WAIT_SECONDS) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()


class Shop:
    """Listens on a free loopback port and acknowledges every notification."""

    def __init__(self):
        came = queue.Queue()

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                came.put(self.rfile.read(int(self.headers["content-length"])))
                self.send_response(200)
                self.send_header("content-length", "7")
                self.end_headers()
                self.wfile.write(b"success")

            def log_message(self, *_):
                pass

        self._came = came
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/notify"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def next_form(self):
        """The next notification's parameters, decoded once."""
        body = self._came.get(timeout=WAIT_SECONDS).decode()
        return dict(urllib.parse.parse_qsl(body, keep_blank_values=True, strict_parsing=True))

    def close(self):
        self._server.shutdown()
