# SPDX-License-Identifier: Apache-2.0
"""A real browser for tests: Chromium without a window, told what to do by its DevTools protocol."""

import base64
import itertools
import json
import os
import shutil
import socket
import struct
import subprocess
import time
import urllib.parse
import urllib.request

CHROMIUM = os.environ.get("MILLRACE_CHROMIUM") or shutil.which("chromium")

# All text that a page shows, also within shadow trees and frames.
_TEXT = """(function text(root) {
  let all = "";
  for (const node of root.childNodes) {
    if (node.nodeType === 3) { all += node.data.trim() + " "; continue; }
    if (node.nodeType !== 1 || node.tagName === "STYLE" || node.tagName === "SCRIPT") continue;
    if (node.tagName === "IFRAME" && node.contentDocument) all += text(node.contentDocument);
    if (node.shadowRoot) all += text(node.shadowRoot);
    all += text(node);
  }
  return all;
})(document)"""


class Browser:
    """One page. Use as a context manager."""

    def __init__(self, folder):
        self._process = subprocess.Popen(
            [CHROMIUM, "--headless", "--no-sandbox", "--enable-unsafe-swiftshader", "--use-gl=angle", "--use-angle=swiftshader", "--remote-debugging-port=0"]
            + ["--window-size=1400,1000", "--user-data-dir=%s" % folder, "about:blank"],
            stderr=subprocess.PIPE,
            text=True,
        )
        self.errors, self._numbers = [], itertools.count(1)  # errors: of the page's scripts
        try:
            address = next(line for line in self._process.stderr if "DevTools listening on" in line).split("ws://")[1].split("/")[0]
            with urllib.request.urlopen("http://%s/json/list" % address, timeout=30) as answer:
                page = next(p for p in json.load(answer) if p["type"] == "page")
            self._socket = self._connect(page["webSocketDebuggerUrl"])
            self._call("Runtime.enable")
            self._call("Page.enable")
        except BaseException:
            self.__exit__()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *ignored):
        self._process.kill()
        self._process.wait()
        self._process.stderr.close()

    @staticmethod
    def _connect(url):
        parts = urllib.parse.urlsplit(url)
        made = socket.create_connection((parts.hostname, parts.port), timeout=60)
        key = base64.b64encode(os.urandom(16)).decode()
        lines = ["GET %s HTTP/1.1" % parts.path, "Host: %s" % parts.netloc, "Upgrade: websocket", "Connection: Upgrade"]
        made.sendall("\r\n".join([*lines, "Sec-WebSocket-Key: " + key, "Sec-WebSocket-Version: 13", "", ""]).encode())
        file = made.makefile("rb")
        assert b" 101 " in file.readline()
        while file.readline().strip():
            pass
        return made, file

    def _send(self, text):
        data, mask = text.encode(), os.urandom(4)
        size = struct.pack("!B", 128 | len(data)) if len(data) < 126 else struct.pack("!BQ", 128 | 127, len(data))
        self._socket[0].sendall(b"\x81" + size + mask + bytes(b ^ mask[i % 4] for i, b in enumerate(data)))

    def _receive(self):
        data = b""
        while True:
            first, second = self._socket[1].read(2)
            size = second & 127
            if size >= 126:
                size = struct.unpack("!H" if size == 126 else "!Q", self._socket[1].read(2 if size == 126 else 8))[0]
            data += self._socket[1].read(size)
            if first & 128:
                return json.loads(data)

    def _call(self, method, **parameters):
        number = next(self._numbers)
        self._send(json.dumps({"id": number, "method": method, "params": parameters}))
        while True:
            message = self._receive()
            if message.get("method") == "Runtime.exceptionThrown":
                details = message["params"]["exceptionDetails"]
                self.errors.append(details.get("exception", {}).get("description") or details["text"])
            if message.get("id") == number:
                assert "error" not in message, message
                return message["result"]

    def go(self, url):
        """Opens a page anew."""
        self._call("Page.navigate", url="about:blank")
        self._call("Page.navigate", url=url)

    def ask(self, expression):
        """The value of a JavaScript expression in the page."""
        told = self._call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in told, told
        return told["result"].get("value")

    def wait(self, expression, seconds=90):
        """Until an expression is true; its value."""
        end = time.monotonic() + seconds
        while not (value := self.ask(expression)):
            assert time.monotonic() < end, "%s has not become true; the page shows %s" % (expression, self.text()[-2000:])
            time.sleep(0.2)
        return value

    def text(self):
        """All text that the page shows."""
        return " ".join(self.ask(_TEXT).split())

    def wait_for(self, *texts, seconds=90):
        """Until the page shows these texts."""
        end = time.monotonic() + seconds
        while any(t not in (shown := self.text()) for t in texts):
            assert time.monotonic() < end, "%s: the page shows %s" % (texts, shown[-2000:])
            time.sleep(0.3)

    def picture(self, path):
        """Writes what the window shows, as PNG."""
        with open(path, "wb") as file:
            file.write(base64.b64decode(self._call("Page.captureScreenshot")["data"]))
